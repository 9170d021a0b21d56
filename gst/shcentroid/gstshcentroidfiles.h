/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The .npy files of shcentroid: arrays of numbers, and maps. */
#pragma once

#include "gstimaging-prelude.h"

#include "imk/shcentroid-grid.h"
#include "imk/shcentroid.h"

/* Numbers in the order of a .npy file. Free with g_free (). */
typedef struct {
  guint n_dims; /* 1 to 3 */
  guint64 dims[3];
  gsize n;
  gchar text[100]; /* "f32 [30, 40]", of a file */
  gdouble values[];
} GstShCentroidArray;

/* Returns: (transfer full): all 0 */
GstShCentroidArray *gst_sh_centroid_array_new (
    guint n_dims, const guint64 *dims);

/* A GstImagingFileLoad. Returns: GstShCentroidArray */
gpointer gst_sh_centroid_array_load (
    const gchar *property, const gchar *location, ImkError *error);
/* One of several images in a file, from 0 on; -1: the first. */
gpointer gst_sh_centroid_array_load_part (
    const gchar *property, const gchar *location, gint part, ImkError *error);
/* As gst_sh_centroid_array_load (); all its numbers are finite. */
gpointer gst_sh_centroid_array_load_finite (
    const gchar *property, const gchar *location, ImkError *error);

/* Returns: FALSE with @error set where a number is not finite */
gboolean gst_sh_centroid_array_check_finite (const GstShCentroidArray *self,
    const gchar *property, const gchar *location, ImkError *error);

/* Whether it is [@n_rows, @n_columns], or [@n_columns] when there is one row.
 */
gboolean gst_sh_centroid_array_has_shape (
    const GstShCentroidArray *self, guint64 n_rows, guint64 n_columns);

/* Returns: (transfer full) */
gfloat *gst_sh_centroid_array_to_floats (const GstShCentroidArray *self);

/* @as_floats: as float32, else as float64 */
gboolean gst_sh_centroid_array_save (const GstShCentroidArray *self,
    const gchar *location, gboolean as_floats, GError **error);

/* Cells. Free with g_free (). */
typedef struct {
  guint32 n_cells;
  guint32 *places; /* (nullable): row and column of each; with the cells */
  ImkShcentroidCell cells[];
} GstShCentroidMap;

/* A GstImagingFileLoad: a map [n, 4..12] of x, y, width, height and optionally
 * ref-x, ref-y, min-flux, threshold, row, column of each cell; further columns
 * are not read */
gpointer gst_sh_centroid_map_load (
    const gchar *property, const gchar *location, ImkError *error);

/* Writes a map [n, 12] of the cell around each spot of @grid, with its lattice
 * point for a reference; then its row and column in the lattice, and, in each
 * row the same, how many peaks were not placed and the rms distance of the
 * spots from the lattice. Returns: (transfer full) (nullable): what was written
 */
GstShCentroidMap *gst_sh_centroid_map_save (
    const gchar *location, const ImkShcentroidGrid *grid, ImkError *error);
