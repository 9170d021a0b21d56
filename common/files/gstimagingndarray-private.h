/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the readers and writers of arrays share. */
#pragma once

#include "gstimagingndarray.h"

typedef struct {
  const gchar *name;
  const gchar *code; /* in an .npy header, after the byte order */
  guint size;
  guint n_parts;       /* 2 for complex: byte order applies to the parts */
  const gchar *tensor; /* of the parts, as caps name it */
} GstImagingNdArrayTypeInfo;

/* By GstImagingNdArrayType */
extern const GstImagingNdArrayTypeInfo gst_imaging_nd_array_types[];
#define GST_IMAGING_ND_ARRAY_N_TYPES (GST_IMAGING_ND_ARRAY_TYPE_U64 + 1)

/* Returns: FALSE, so that a failure is one `return` */
gboolean gst_imaging_nd_array_fail (GError **error, GstImagingNdArrayError code,
    const gchar *format, ...) G_GNUC_PRINTF (3, 4);

/* Multiplies @dims. Their bytes must fit into 63 bits. */
gboolean gst_imaging_nd_array_count_values (const gchar *name,
    GstImagingNdArrayType type, guint n_dims, const guint64 *dims,
    guint64 *n_values, GError **error);

/* Returns: memory for @n values of @size bytes, at least one byte; NULL with
 * @error set */
gpointer gst_imaging_nd_array_alloc_values (
    const gchar *name, guint64 n, gsize size, GError **error);

/* The values begin to belong to @array. */
void gst_imaging_nd_array_take_values (
    GstImagingNdArray *array, gpointer values);

/* Sets @error to what the opener or the saver says; frees @why. */
gboolean gst_imaging_nd_array_take_file_error (GError *why, GError **error);
