/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A kernel of shcentroid for one geometry, and all that goes with it. */
#pragma once

#include "gstimagingfilter.h"
#include "gstimagingtable.h"
#include "gstshcentroidtables.h"

/* All zero when there is none. */
typedef struct {
  ImkShcentroid *kernel;
  ImkShcentroidConfig config; /* its cells belong to the settings in use */
  GstVideoInfo info;
  ImkType type;
  gboolean provisional; /* until find-grid has found the cells */
  GstShCentroidTables tables;
  ImkShcentroidFields fields;
  guint n_cells;
  GBytes *indices; /* cell, row, column of each cell: guint32 */
  gfloat *edges;   /* left, top, right, bottom of each, in result coordinates */
  GstImagingTable *table;
  GstBuffer *untallied; /* numbers of a frame that has not left yet */
  GstStructure *more;   /* of the results: the cells */

  /* while references are captured: a second kernel that tells invalid cells */
  ImkShcentroid *reference_kernel;
  GstImagingTable *reference_table;
  gdouble *references; /* x and y of each cell, as they are */
} GstShCentroidKernel;

/* Opens what @config says. Whatever comes of it, @self is to be cleared.
 * @places: (nullable): row and column of each cell of a map
 * @for_references: with the second kernel */
ImkStatus gst_sh_centroid_kernel_open (GstShCentroidKernel *self,
    GstImagingFilter *filter, ImkBackend backend,
    const ImkShcentroidConfig *config, const guint32 *places,
    gboolean for_references, ImkError *error);

/* Parameters for the frames from now on, of both kernels. */
ImkStatus gst_sh_centroid_kernel_update (GstShCentroidKernel *self,
    const ImkShcentroidConfig *config, ImkError *error);

/* On CUDA, with its context current. */
void gst_sh_centroid_kernel_clear (GstShCentroidKernel *self);
