/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The .npy files of shcentroid, as its kernel takes them. */
#pragma once

#include "gstimaging-prelude.h"

#include "shcentroid/shcentroid-grid.h"
#include "shcentroid/shcentroid.h"

G_BEGIN_DECLS

/* A map [n, 4..8]: x, y, width, height and optionally ref-x, ref-y, min-flux,
 * threshold of each cell. Returns: (transfer full): @n_cells cells, NULL with
 * @error set */
ImkShcentroidCell *gst_sh_centroid_load_map (
    const gchar *location, guint32 *n_cells, ImkError *error);

/* References [n, 2]: x, y of each of @n_cells cells. Returns: (transfer full):
 * 2 @n_cells numbers, NULL with @error set */
gdouble *gst_sh_centroid_load_references (
    const gchar *location, guint32 n_cells, ImkError *error);

/* Writes a map [n, 6] of the cell around each spot of @grid, with its lattice
 * point for a reference. */
ImkStatus gst_sh_centroid_save_map (
    const gchar *location, const ImkShcentroidGrid *grid, ImkError *error);

/* One number a pixel or a sample, [@n_rows, @n_columns], or [@n_columns] when
 * there is one row. Returns: (transfer full): them, NULL with @error set */
gfloat *gst_sh_centroid_load_floats (const gchar *property,
    const gchar *location, guint64 n_rows, guint64 n_columns, ImkError *error);

G_END_DECLS
