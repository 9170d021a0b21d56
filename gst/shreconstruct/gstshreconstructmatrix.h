/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A matrix of slopes, whose file may tell the order of the slopes. */
#pragma once

#include "gstshreconstructsettings.h"
#include "shcentroid/gstshcentroidfiles.h"

G_BEGIN_DECLS

typedef enum {
  GST_SH_RECONSTRUCT_ROWS_UNNAMED,
  GST_SH_RECONSTRUCT_ROWS_COMMANDS,
  GST_SH_RECONSTRUCT_ROWS_MODES,
} GstShReconstructRows;

/* gst_imaging/ao/matrices.py has these structures, too.
 * @image: (nullable): its name, where there are others
 * @name: (nullable): of the axis of slopes, where names tell which it is
 * @rows: as the file names the axis without slopes
 * @order: AUTO: the file does not tell
 * @is_guess: @order is that of the shape, not of a name
 * @lenslets: (nullable): row and column of each cell, [n][2] */
typedef struct {
  GstShCentroidArray *array;
  const gchar *image;
  gchar *name;
  GstShReconstructRows rows;
  GstShReconstructOrder order;
  gboolean is_guess, is_transposed;
  guint32 *lenslets;
} GstShReconstructMatrix;

/* @axis: of slopes: 0 along a row, 1 from row to row. A file that names the
 * axes the other way round is transposed. A cube, as cacao has, is [modes, y,
 * x]: slopes are along y and x. One of [modes, cells, 2] is interleaved
 * Returns: (transfer full) (nullable): with finite numbers */
GST_PLUGIN_EXPORT GstShReconstructMatrix *gst_sh_reconstruct_matrix_load (
    const gchar *property, const gchar *location, guint axis, ImkError *error);
/* A GstImagingFileLoad: [commands, modes], or a cube [modes, y, x].
 * Returns: GstShCentroidArray, with two dimensions of a cube */
gpointer gst_sh_reconstruct_modes_load (
    const gchar *property, const gchar *location, ImkError *error);
GST_PLUGIN_EXPORT void gst_sh_reconstruct_matrix_free (gpointer matrix);

G_END_DECLS
