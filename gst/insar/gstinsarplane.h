/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One number for each place of an image, in any resolution: heights, offsets.
 * Read from rasters of GDAL (.grd of GMT, ISCE, GeoTIFF, ...) and from arrays
 * (.npy, ...). */
#pragma once

#include <glib.h>

#include "imk/status.h"

/**
 * GstInsarPlane:
 * @name: how messages call the file
 * @width, @height: of @values
 * @has_grid: whether the file says which columns and lines of the image its
 *   pixels cover: pixel i those from @origin + i @step to the next; otherwise
 *   it covers the whole image. The first row is the first line: @step[1] > 0
 * @values: [height][width], NaN where there is none */
typedef struct {
  gchar *name;
  guint width, height;
  gboolean has_grid;
  gdouble origin[2], step[2];
  gfloat *values;
} GstInsarPlane;

/* Of several bands, the last axis of an array of three, the first is read.
 * Returns: (transfer full) (nullable): %NULL with @error set */
GstInsarPlane *gst_insar_plane_load (const gchar *location, ImkError *error);

/* @self may be NULL. */
void gst_insar_plane_free (GstInsarPlane *self);

/* For an image of @width x @height samples.
 * Returns: IMK_ERROR_CONFIG when the plane covers nothing of it */
ImkStatus gst_insar_plane_fit (
    GstInsarPlane *self, guint width, guint height, ImkError *error);

/* After gst_insar_plane_fit (): the values of a line of the image, bilinear,
 * those of the border outside. A pixel without a value gives none to samples
 * between it and its neighbours: NaN. */
void gst_insar_plane_line (
    const GstInsarPlane *self, guint line, guint width, gfloat *to);

/* Gives values to pixels without one: between two of their row, else that of
 * the nearest; rows without any, in the same way, those of the rows around
 * them. Values beyond @most, which some programs write for none, are replaced,
 * too. Returns: how many had none; all: nothing was done */
gsize gst_insar_plane_fill (GstInsarPlane *self, gfloat most);
