/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The header of an .npy file: a preamble (magic, version, length), then the
 * text of a Python dict. numpy/lib/_format_impl.py defines it. */
#pragma once

#include "gstimagingndarray-private.h"

#define GST_IMAGING_NPY_MAX_PREAMBLE 12

/* @bytes: the first GST_IMAGING_NPY_MAX_PREAMBLE bytes of the file, or @size if
 * there are fewer.
 * Returns: offset of the text; 0 with @error set */
gsize gst_imaging_npy_parse_preamble (const guint8 *bytes, gsize size,
    const gchar *name, gsize *header_size, GError **error);

/* Reads the text of the header.
 * @file_size: of the whole file, compared with what the header states
 * Returns: (transfer full): an array without values; NULL with @error set */
GstImagingNdArray *gst_imaging_npy_parse_header (const gchar *header,
    gsize header_size, guint64 data_offset, guint64 file_size,
    const gchar *name, GError **error);

/* Sets the error of a file that ends inside its header. */
void gst_imaging_npy_fail_truncated (
    const gchar *name, guint64 file_size, guint64 data_offset, GError **error);

/* Returns: all bytes before the values, as numpy 1.23 and later write them */
GString *gst_imaging_npy_format_header (
    GstImagingNdArrayType type, guint n_dims, const guint64 *dims);

/* The same for an array whose first dimension grows, in @size bytes; 0: as many
 * as above. @growing: the file may end with more bytes than these dimensions
 * have, as there was no time to count them: a tab stands at the end.
 * Returns: NULL where @size is too small */
GString *gst_imaging_npy_format_growing_header (GstImagingNdArrayType type,
    guint n_dims, const guint64 *dims, gsize size, gboolean growing);

/* As gst_imaging_npy_open_header (), of a file that is open; and of an array in
 * Fortran order, whose values gst_imaging_npy_read_all () puts into C order. */
GstImagingNdArray *gst_imaging_npy_read_header (
    gint fd, guint64 size, const gchar *name, GError **error);
gboolean gst_imaging_npy_read_all (
    GstImagingNdArray *npy, gint fd, GError **error);
