/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether a matrix is made for the lenslets of the sensor: as many cells may be
 * those of another grid. */
#pragma once

#include "gstshreconstructslopes.h"

G_BEGIN_DECLS

typedef struct _GstShReconstructLenslets GstShReconstructLenslets;

GstShReconstructLenslets *gst_sh_reconstruct_lenslets_new (void);
void gst_sh_reconstruct_lenslets_free (GstShReconstructLenslets *self);

/* @places: (nullable): [n_cells][2]: row and column of each lenslet
 * Returns: FALSE where they only number the cells, such as those of a map
 * without rows and columns */
gboolean gst_sh_reconstruct_lenslets_are_known (
    const guint32 *places, guint n_cells);

/* @of_matrix: (nullable): of the matrix @location, [n_cells][2]
 * Returns: IMK_ERROR_CONFIG where the last frame had others */
ImkStatus gst_sh_reconstruct_lenslets_check (
    const GstShReconstructLenslets *self, const guint32 *of_matrix,
    guint n_cells, const gchar *location, ImkError *error);
/* From now on those of the matrix. */
void gst_sh_reconstruct_lenslets_take (GstShReconstructLenslets *self,
    const guint32 *of_matrix, guint n_cells, const gchar *location);
/* Before a frame: costs nothing while the grid stays the same. */
ImkStatus gst_sh_reconstruct_lenslets_follow (GstShReconstructLenslets *self,
    const GstShReconstructSlopes *slopes, ImkError *error);
/* The sensor is not known. */
void gst_sh_reconstruct_lenslets_forget (GstShReconstructLenslets *self);

G_END_DECLS
