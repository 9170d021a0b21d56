/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the cells of shcentroid come from when it is not the properties of the
 * grid: the optics, or a reference frame in which the grid is found. */
#pragma once

#include <gst/video/video.h>

#include "gstimaging-prelude.h"

#include "shcentroid/shcentroid-grid.h"
#include "shcentroid/shcentroid-optics.h"

G_BEGIN_DECLS

/* The properties, numbered from the first that the element gives. */
typedef enum {
  GST_SH_CENTROID_GRID_RULE,
  GST_SH_CENTROID_APERTURE,
  GST_SH_CENTROID_LENSLET_PITCH,
  GST_SH_CENTROID_PIXEL_SIZE,
  GST_SH_CENTROID_FOCAL_LENGTH,
  GST_SH_CENTROID_SLOPE_UNIT,
  GST_SH_CENTROID_LATTICE,
  GST_SH_CENTROID_FIND_GRID_LOCATION,
  GST_SH_CENTROID_N_GEOMETRY,
} GstShCentroidGeometryProperty;

typedef enum {
  GST_SH_CENTROID_SLOPE_PX,
  GST_SH_CENTROID_SLOPE_RAD,
} GstShCentroidSlopeUnit;

/* Their values, and what waits for the next frame. */
typedef struct {
  ImkShcentroidRule grid_rule;
  ImkShcentroidOptics optics;
  GstShCentroidSlopeUnit slope_unit;
  ImkShcentroidLattice lattice;
  gchar *find_location; /* as the property says */
  gchar *pending;       /* where to write the grid of the next frame */
} GstShCentroidGeometry;

void gst_sh_centroid_geometry_install (GObjectClass *klass, guint first_id);
void gst_sh_centroid_geometry_set (GstShCentroidGeometry *self,
    GstShCentroidGeometryProperty property, const GValue *value);
void gst_sh_centroid_geometry_get (const GstShCentroidGeometry *self,
    GstShCentroidGeometryProperty property, GValue *value);
void gst_sh_centroid_geometry_clear (GstShCentroidGeometry *self);

/* Turns optics, if they are given, into the grid of @config; the grid rule and
 * the scale of the slopes. */
ImkStatus gst_sh_centroid_geometry_apply (const GstShCentroidGeometry *self,
    ImkShcentroidConfig *config, ImkError *error);

/* The scale of the slopes alone, for parameters between two frames. */
ImkStatus gst_sh_centroid_geometry_scale (const GstShCentroidGeometry *self,
    ImkShcentroidConfig *config, ImkError *error);

/* Returns: (transfer full): what a viewer has to know of the cells, for the
 * meta: `cells` (#GstBuffer of float32 [n, 6]: x, y, width, height, in pixels
 * from the corner of the frame, reference x, y) and `slope-scale` (double) */
GstStructure *gst_sh_centroid_describe_cells (
    const ImkShcentroidConfig *config);

/* Finds the grid in @frame, which is in host memory, and writes it to
 * @location. Returns: (transfer full): the structure of the message that tells
 * of it; NULL with @error set */
GstStructure *gst_sh_centroid_find_grid (const ImkImage *frame,
    ImkShcentroidLattice lattice, const gchar *location, ImkError *error);

G_END_DECLS
