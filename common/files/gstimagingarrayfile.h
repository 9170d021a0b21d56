/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of arrays and pictures, whatever the format: read and written page by
 * page, so that they may be larger than memory. */
#pragma once

#include "gstimagingndarray.h"

/**
 * GstImagingArrayReader: (skip)
 *
 * An open file. One thread at a time.
 */
typedef struct _GstImagingArrayReader GstImagingArrayReader;

/**
 * gst_imaging_array_reader_new: (skip)
 * @location: path of a file of any format that is read here
 * @max_size: the most bytes that it may have, GST_IMAGING_FILE_MAX_ARRAY or
 *   GST_IMAGING_FILE_MAX_STREAM
 *
 * Opens a file and reads its header. Sizes that it claims are checked before
 * memory is allocated for them.
 *
 * Returns: (transfer full): to be given to gst_imaging_array_reader_free();
 *   %NULL with @error set
 */
GST_IMAGING_API
GstImagingArrayReader *gst_imaging_array_reader_new (
    const gchar *location, guint64 max_size, GError **error);

/* @part: -1: all pages, of FITS the first unit with a picture; else one of
 * them, from 0 on: a unit of FITS with a picture, a page of TIFF, a part of
 * OpenEXR */
GST_IMAGING_API
GstImagingArrayReader *gst_imaging_array_reader_new_part (
    const gchar *location, guint64 max_size, gint part, GError **error);

/* Returns: (transfer full) (nullable): "0: SCI f32 [2, 3]; 1: ERR f32 [2, 3]",
 * where the file has several and one is read */
GST_IMAGING_API
gchar *gst_imaging_array_reader_describe_parts (
    const GstImagingArrayReader *self);

/* Returns: (transfer none) (nullable): a sentence for the user, where the file
 * may be meant otherwise than it is read */
GST_IMAGING_API
const gchar *gst_imaging_array_reader_get_note (
    const GstImagingArrayReader *self);

/* Returns: (transfer none): type, shape and cards, without values */
GST_IMAGING_API
const GstImagingNdArray *gst_imaging_array_reader_get_array (
    const GstImagingArrayReader *self);

/* Returns: what gst_imaging_array_reader_read () takes one of; all have the
 * same number of values. The first dimension of several. */
GST_IMAGING_API
guint64 gst_imaging_array_reader_get_n_pages (
    const GstImagingArrayReader *self);

/* Reads any page, in C order and in the byte order of the machine. */
GST_IMAGING_API
gboolean gst_imaging_array_reader_read (
    GstImagingArrayReader *self, guint64 page, gpointer values, GError **error);

GST_IMAGING_API
void gst_imaging_array_reader_free (GstImagingArrayReader *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (
    GstImagingArrayReader, gst_imaging_array_reader_free)

/* As gst_imaging_nd_array_save(). @level: of zlib, 0 to 9, for PNG and OpenEXR;
 * -1: what is fast for the format */
GST_IMAGING_API
gboolean gst_imaging_array_save_level (const GstImagingNdArray *array,
    const gchar *location, gint level, GError **error);

typedef enum {
  GST_IMAGING_ARRAY_APPENDS_NONE,
  GST_IMAGING_ARRAY_APPENDS_PICTURES,
  GST_IMAGING_ARRAY_APPENDS_ARRAYS, /* of any shape, also single rows */
} GstImagingArrayAppends;

/**
 * gst_imaging_array_writer_find: (skip)
 * @location: path of a file to write; nothing of it needs to be there
 * @types: (out): that its format may take, a mask of 1 << GstImagingNdArrayType
 * @appends: (out): what a #GstImagingArrayRecorder can append to it
 *
 * Returns: %FALSE with @error set for the name of no format that is written
 * here
 */
GST_IMAGING_API
gboolean gst_imaging_array_writer_find (const gchar *location, guint32 *types,
    GstImagingArrayAppends *appends, GError **error);

/**
 * gst_imaging_array_encode: (skip)
 * @name: of a file that is not written; its extension selects the format
 * @array: an array with its values
 *
 * Returns: (transfer full): the bytes of a file, to be part of another one;
 *   %NULL with @error set
 */
GST_IMAGING_API
GBytes *gst_imaging_array_encode (
    const gchar *name, const GstImagingNdArray *array, GError **error);

/**
 * gst_imaging_array_save: (skip)
 *
 * #GstImagingArrayWriter for values that are in memory.
 */
GST_IMAGING_API
gboolean gst_imaging_array_save (const gchar *location,
    GstImagingNdArrayType type, guint n_dims, const guint64 *dims,
    gconstpointer data, GError **error);

/**
 * gst_imaging_array_check_save: (skip)
 *
 * Whether such an array could be saved now: for work that takes long before
 * there is one. Leaves no file.
 */
GST_IMAGING_API
gboolean gst_imaging_array_check_save (const gchar *location,
    GstImagingNdArrayType type, guint n_dims, const guint64 *dims,
    GError **error);
