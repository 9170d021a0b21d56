/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cells of shcentroid: the grid that a reference frame shows, and what
 * viewers are told. */
#pragma once

#include <gst/gst.h>

#include "gstshcentroidfiles.h"

/* Returns: (transfer full): what a viewer has to know of the cells, for the
 * meta: `cells` (#GstBuffer of float32 [n, 6]: x, y, width, height, in pixels
 * from the corner of the frame, reference x, y), `row-column` (#GstBuffer of
 * guint32 [n, 2]) and `slope-scale` (double). @indices: guint32 [n, 3] of cell,
 * row, column */
GstStructure *gst_sh_centroid_describe_cells (
    const ImkShcentroidConfig *config, GBytes *indices);

/* Finds the grid in @frame, which is in host memory, and writes it to
 * @location. @map: (out) (transfer full): the same. Returns: (transfer full):
 * the structure of the message that tells of it; NULL with @error set */
GstStructure *gst_sh_centroid_find_grid (const ImkImage *frame,
    ImkShcentroidLattice lattice, const gchar *location, GstShCentroidMap **map,
    ImkError *error);
