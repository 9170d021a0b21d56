/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where an image lies on the ground: what slcsrc finds in a file, what caps
 * carry, and what the rasters of results get. */
#pragma once

#include <gst/gst.h>

/* A ground control point: column and line from the corner of the first sample,
 * then coordinates of the CRS. */
typedef struct {
  gdouble column, line, x, y, z;
} GstInsarPoint;

/**
 * GstInsarPlace:
 * @crs: (nullable): coordinate reference system as WKT
 * @has_transform: whether @transform is known
 * @transform: of column c and line l: x = [0] + c [1] + l [2], y = [3] + c [4]
 *   + l [5]
 * @points: (nullable): GstInsarPoint, where there is no @transform
 *
 * All 0 where nothing is known. */
typedef struct {
  gchar *crs;
  gboolean has_transform;
  gdouble transform[6];
  GArray *points;
} GstInsarPlace;

/* Pixel i of a raster covers columns origin[0] + i step[0] to the next of the
 * image that it is made from; likewise lines. */
typedef struct {
  gdouble origin[2], step[2];
} GstInsarGrid;

void gst_insar_place_clear (GstInsarPlace *self);

/* Adds to @caps the fields crs, geotransform and gcps, as far as known. */
void gst_insar_place_to_caps (const GstInsarPlace *self, GstCaps *caps);

/* @self: (out): what @caps say; fields that are no list of numbers count as
 * absent */
void gst_insar_place_from_caps (GstInsarPlace *self, const GstCaps *caps);

/* Makes @self that of a raster of @grid. Without a place the coordinates are
 * column and line of the image. */
void gst_insar_place_rescale (GstInsarPlace *self, const GstInsarGrid *grid);

/* Appends the shortest text that reads as @value, in any locale. */
void gst_insar_place_append_number (
    GString *text, const gchar *before, gdouble value);
