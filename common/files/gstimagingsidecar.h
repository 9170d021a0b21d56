/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The .json beside an array that an element writes; that of frames is made by
 * picturesink. */
#pragma once

#include "gstimagingndarray.h"

#define GST_IMAGING_SIDECAR_SCHEMA "gst-imaging-sidecar-v1"

/**
 * gst_imaging_sidecar_save: (skip)
 * @location: path of the array, which has been written
 * @array: its type and shape, values are not needed
 * @axes: (array zero-terminated=1): their names, that along a row first
 * @row_column: (nullable): [n_cells][2]: row and column of the lenslet of each
 *   cell, whose slopes the array has
 * @more: (nullable): further members of the object, as JSON
 *
 * It has the SHA-256 of the file, so that it is not taken for one of another
 * array.
 *
 * Returns: %FALSE with @error set
 */
GST_IMAGING_API
gboolean gst_imaging_sidecar_save (const gchar *location,
    const GstImagingNdArray *array, const gchar *const *axes,
    const guint32 *row_column, guint n_cells, const gchar *more,
    GError **error);

/* Returns: FALSE with @error set where a file of somebody else has its name */
GST_IMAGING_API
gboolean gst_imaging_sidecar_check_save (const gchar *location, GError **error);

/* Removes the one of ours beside a file that is written anew. */
void gst_imaging_sidecar_remove (const gchar *location);

/* Returns: (transfer full) (nullable): the SHA-256 of a file in hexadecimal
 * digits, NULL if it cannot be read */
gchar *gst_imaging_sidecar_digest (const gchar *location);
