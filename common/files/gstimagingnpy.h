/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingndarray.h"

G_BEGIN_DECLS

/**
 * gst_imaging_npy_load:
 * @location: (type filename): path of an .npy file
 * @error: the reason of a failure
 *
 * Reads a whole file. Its size must be exactly what the header says.
 *
 * Returns: (transfer full): the array, to be given to
 * gst_imaging_nd_array_free(); %NULL with @error set
 */
GST_IMAGING_API
GstImagingNdArray *gst_imaging_npy_load (const gchar *location, GError **error);

/**
 * gst_imaging_npy_open_header:
 * @location: (type filename): path of an .npy file
 * @fd: (out) (optional): the file, open for reading, to be closed by the
 *   caller; untouched on failure
 * @error: the reason of a failure
 *
 * Reads the header only, and compares the size of the file with it: for arrays
 * that are larger than memory. Read the values from @fd with
 * gst_imaging_npy_read_values(), not through @location, which may name another
 * file by then.
 *
 * Returns: (transfer full): the array without its values; %NULL with @error
 *   set
 */
GST_IMAGING_API
GstImagingNdArray *gst_imaging_npy_open_header (
    const gchar *location, gint *fd, GError **error);

/**
 * gst_imaging_npy_read_values: (skip)
 * @npy: what gst_imaging_npy_open_header() returned
 * @fd: the file that it opened; its position is neither used nor moved
 * @first: index of the first value to read, in C order
 * @n: how many to read; @first + @n is at most @n_values of @npy
 * @values: (out caller-allocates): room for them, aligned to their type; gets
 *   them in the byte order of the machine
 * @error: the reason of a failure
 *
 * Reads a piece of an array, whatever was read before; several threads may.
 * A file that became shorter is #GST_IMAGING_ND_ARRAY_ERROR_SIZE; then, and
 * when reading fails, @values are undefined.
 *
 * Returns: %TRUE; %FALSE with @error set
 */
GST_IMAGING_API
gboolean gst_imaging_npy_read_values (const GstImagingNdArray *npy, gint fd,
    guint64 first, gsize n, gpointer values, GError **error);

/**
 * gst_imaging_npy_parse:
 * @bytes: (array length=size): the content of an .npy file; copied
 * @size: how many there are
 * @name: how messages shall call it
 * @error: the reason of a failure
 *
 * gst_imaging_npy_load() for a file that is in memory already.
 *
 * Returns: (transfer full): the array, to be given to
 * gst_imaging_nd_array_free(); %NULL with @error set
 */
GST_IMAGING_API
GstImagingNdArray *gst_imaging_npy_parse (
    const guint8 *bytes, gsize size, const gchar *name, GError **error);

/**
 * gst_imaging_npy_save: (skip)
 * @location: (type filename): path of the file to write
 * @type: type of a value
 * @n_dims: number of dimensions, at most #GST_IMAGING_ND_ARRAY_MAX_DIMS
 * @dims: (array length=n_dims): length of each dimension, slowest first
 * @data: the values in C order and in the byte order of the machine; may be
 *   %NULL when a dimension is 0
 * @error: the reason of a failure
 *
 * Writes version 1.0, as numpy.save() does. The file is written beside
 * @location and then renamed: a reader sees the old file or the new one, and
 * a failure leaves the old one in place. A pipe or device is refused.
 *
 * Returns: %TRUE; %FALSE with @error set
 */
GST_IMAGING_API
gboolean gst_imaging_npy_save (const gchar *location,
    GstImagingNdArrayType type, guint n_dims, const guint64 *dims,
    gconstpointer data, GError **error);

G_END_DECLS
