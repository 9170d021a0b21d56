/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib-object.h>

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/**
 * GST_IMAGING_ND_ARRAY_ERROR: (skip)
 *
 * Domain of the errors of the readers and writers of arrays; the codes are
 * #GstImagingNdArrayError. Each message is a sentence for the user: the file,
 * what was found, what is expected.
 */
#define GST_IMAGING_ND_ARRAY_ERROR (gst_imaging_nd_array_error_quark ())

/**
 * gst_imaging_nd_array_error_quark:
 *
 * The domain of #GstImagingNdArrayError.
 *
 * Returns: a quark
 */
GST_IMAGING_API
GQuark gst_imaging_nd_array_error_quark (void);

/**
 * GstImagingNdArrayError:
 * @GST_IMAGING_ND_ARRAY_ERROR_NOT_FOUND: there is no such file
 * @GST_IMAGING_ND_ARRAY_ERROR_OPEN: the file cannot be opened, or is no regular
 * file
 * @GST_IMAGING_ND_ARRAY_ERROR_READ: the file system failed while reading
 * @GST_IMAGING_ND_ARRAY_ERROR_WRITE: the file system failed while writing
 * @GST_IMAGING_ND_ARRAY_ERROR_FORMAT: not a file of this format, or damaged
 * @GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED: a valid file of a kind that is not
 *   read here: a type not in #GstImagingNdArrayType, more than
 *   #GST_IMAGING_ND_ARRAY_MAX_DIMS dimensions, or a format whose library is
 *   not there
 * @GST_IMAGING_ND_ARRAY_ERROR_SIZE: the header promises more or fewer bytes
 * than there are
 * @GST_IMAGING_ND_ARRAY_ERROR_TYPE: the type of the array does not suit the
 * call
 * @GST_IMAGING_ND_ARRAY_ERROR_MEMORY: the array does not fit in memory
 *
 * Why a file was not read or written.
 */
typedef enum {
  GST_IMAGING_ND_ARRAY_ERROR_NOT_FOUND,
  GST_IMAGING_ND_ARRAY_ERROR_OPEN,
  GST_IMAGING_ND_ARRAY_ERROR_READ,
  GST_IMAGING_ND_ARRAY_ERROR_WRITE,
  GST_IMAGING_ND_ARRAY_ERROR_FORMAT,
  GST_IMAGING_ND_ARRAY_ERROR_UNSUPPORTED,
  GST_IMAGING_ND_ARRAY_ERROR_SIZE,
  GST_IMAGING_ND_ARRAY_ERROR_TYPE,
  GST_IMAGING_ND_ARRAY_ERROR_MEMORY,
} GstImagingNdArrayError;

/**
 * GstImagingNdArrayType:
 * @GST_IMAGING_ND_ARRAY_TYPE_U8: unsigned, 1 byte ("|u1")
 * @GST_IMAGING_ND_ARRAY_TYPE_U16: unsigned, 2 bytes ("<u2", ">u2")
 * @GST_IMAGING_ND_ARRAY_TYPE_I16: signed, 2 bytes ("<i2", ">i2")
 * @GST_IMAGING_ND_ARRAY_TYPE_F32: IEEE single ("<f4", ">f4")
 * @GST_IMAGING_ND_ARRAY_TYPE_F64: IEEE double ("<f8", ">f8")
 * @GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64: two singles, real part first ("<c8",
 * ">c8")
 * @GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128: two doubles, real part first ("<c16",
 *   ">c16")
 * @GST_IMAGING_ND_ARRAY_TYPE_BOOL: 1 byte, 0 or 1 ("|b1")
 * @GST_IMAGING_ND_ARRAY_TYPE_I32: signed, 4 bytes ("<i4", ">i4")
 * @GST_IMAGING_ND_ARRAY_TYPE_U32: unsigned, 4 bytes ("<u4", ">u4")
 * @GST_IMAGING_ND_ARRAY_TYPE_I64: signed, 8 bytes ("<i8", ">i8")
 * @GST_IMAGING_ND_ARRAY_TYPE_F16: IEEE half ("<f2", ">f2")
 * @GST_IMAGING_ND_ARRAY_TYPE_I8: signed, 1 byte ("|i1")
 * @GST_IMAGING_ND_ARRAY_TYPE_U64: unsigned, 8 bytes ("<u8", ">u8")
 *
 * The type of one value of an array.
 */
typedef enum {
  GST_IMAGING_ND_ARRAY_TYPE_U8,
  GST_IMAGING_ND_ARRAY_TYPE_U16,
  GST_IMAGING_ND_ARRAY_TYPE_I16,
  GST_IMAGING_ND_ARRAY_TYPE_F32,
  GST_IMAGING_ND_ARRAY_TYPE_F64,
  GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64,
  GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128,
  GST_IMAGING_ND_ARRAY_TYPE_BOOL,
  GST_IMAGING_ND_ARRAY_TYPE_I32,
  GST_IMAGING_ND_ARRAY_TYPE_U32,
  GST_IMAGING_ND_ARRAY_TYPE_I64,
  GST_IMAGING_ND_ARRAY_TYPE_F16,
  GST_IMAGING_ND_ARRAY_TYPE_I8,
  GST_IMAGING_ND_ARRAY_TYPE_U64,
} GstImagingNdArrayType;

/**
 * GST_IMAGING_ND_ARRAY_MAX_DIMS:
 *
 * The most dimensions that an array may have here; numpy itself allows 64.
 */
#define GST_IMAGING_ND_ARRAY_MAX_DIMS 8

/**
 * GstImagingNdArray:
 * @name: the file as messages call it, in UTF-8
 * @type: type of a value
 * @n_dims: number of dimensions; 0 is a single value
 * @dims: (array fixed-size=8): length of each dimension, slowest first; 1 from
 *   @n_dims on
 * @n_values: product of the lengths; 0 when one of them is
 * @data_offset: bytes before the first value in the file
 * @big_endian: byte order of the values in the file; %FALSE for one byte types
 * @data: (nullable): the values in C order and in the byte order of the
 *   machine, aligned to their type; %NULL when only the header was read
 * @axes: what the dimensions are, a letter each: n pages, y rows, x columns, c
 *   channels; empty where the file does not say
 * @orientation: what an EXIF header says, 1 to 8, before the picture was turned
 *   upright; 0 where there is none
 * @cards: (nullable) (array zero-terminated=1): what the file tells beside its
 *   values, "KEY=value" each
 *
 * An array of numbers from a file. All members are read only; copies share the
 * values.
 */
typedef struct _GstImagingNpy {
  gchar *name;
  GstImagingNdArrayType type;
  guint n_dims;
  guint64 dims[GST_IMAGING_ND_ARRAY_MAX_DIMS];
  guint64 n_values;
  guint64 data_offset;
  gboolean big_endian;
  gconstpointer data;
  gchar axes[GST_IMAGING_ND_ARRAY_MAX_DIMS + 1];
  guint orientation;
  gchar **cards;

  /*< private >*/
  gchar **records; /* (nullable): cards of FITS with their comments */
  GBytes *bytes;
  gboolean fortran_order; /* of the values in the file */
} GstImagingNdArray;

#define GST_TYPE_IMAGING_ND_ARRAY (gst_imaging_nd_array_get_type ())
GST_IMAGING_API
GType gst_imaging_nd_array_get_type (void);

/**
 * gst_imaging_nd_array_load:
 * @location: (type filename): path of a file
 * @error: the reason of a failure
 *
 * Reads a whole file: .npy, PNM, PFM, and PNG, TIFF, FITS, OpenEXR, JPEG,
 * camera RAW, Thorlabs .oct and .npz where their libraries are there;
 * recordings of OCTproZ and .unp with their settings beside them. What the file
 * holds decides, not its name; only the kinds of camera RAW that look like
 * TIFF, and samples without a header, need theirs.
 *
 * Returns: (transfer full): the array, to be given to
 *   gst_imaging_nd_array_free(); %NULL with @error set
 */
GST_IMAGING_API
GstImagingNdArray *gst_imaging_nd_array_load (
    const gchar *location, GError **error);

/**
 * gst_imaging_nd_array_load_part:
 * @location: (type filename): path of a file
 * @part: which of several pictures, from 0 on: of FITS the units that have one,
 *   of TIFF the pages, of OpenEXR the parts, of Thorlabs .oct and .npz the
 * arrays; -1: as gst_imaging_nd_array_load()
 * @error: the reason of a failure
 *
 * Reads one picture of a file.
 *
 * Returns: (transfer full): as gst_imaging_nd_array_load()
 */
GST_IMAGING_API
GstImagingNdArray *gst_imaging_nd_array_load_part (
    const gchar *location, gint part, GError **error);

/**
 * gst_imaging_nd_array_save:
 * @array: an array with its values
 * @location: (type filename): path of the file to write; its extension selects
 *   the format
 * @error: the reason of a failure
 *
 * Writes all samples as they are, or nothing: a format that cannot hold the
 * type or the shape is an error. The file is written beside @location and then
 * renamed.
 *
 * Returns: %TRUE; %FALSE with @error set
 */
GST_IMAGING_API
gboolean gst_imaging_nd_array_save (
    const GstImagingNdArray *array, const gchar *location, GError **error);

/**
 * gst_imaging_nd_array_to_double:
 * @npy: an array with its values
 * @n_values: (out) (optional): how many there are
 * @error: the reason of a failure
 *
 * The values of any real type as doubles, exactly but for integers beyond 2^53,
 * which are rounded; NaN and infinities pass.
 *
 * Returns: (transfer full) (array length=n_values): the values, to be given to
 *   g_free(), not %NULL even if there are none; %NULL with @error set for
 *   complex arrays, for a header without values, and without memory
 */
GST_IMAGING_API
gdouble *gst_imaging_nd_array_to_double (
    const GstImagingNdArray *npy, gsize *n_values, GError **error);

/**
 * gst_imaging_half_to_double:
 * @half: the bits of an IEEE half
 *
 * Converts a half exactly.
 *
 * Returns: its value
 */
GST_IMAGING_API
gdouble gst_imaging_half_to_double (guint16 half);

/**
 * gst_imaging_nd_array_get_bytes:
 * @npy: an array
 *
 * For bindings, which cannot read `data`.
 *
 * Returns: (transfer full) (nullable): the values, shared and not copied;
 *   %NULL when only the header was read
 */
GST_IMAGING_API
GBytes *gst_imaging_nd_array_get_bytes (const GstImagingNdArray *npy);

/**
 * gst_imaging_nd_array_describe:
 * @npy: an array
 *
 * A short text about the type and the shape.
 *
 * Returns: (transfer full): type and shape for messages, as "f64 [12, 4]"
 */
GST_IMAGING_API
gchar *gst_imaging_nd_array_describe (const GstImagingNdArray *npy);

/**
 * gst_imaging_nd_array_copy:
 * @npy: an array
 *
 * A copy that costs no memory for the values.
 *
 * Returns: (transfer full): another one with the same values, which are shared
 */
GST_IMAGING_API
GstImagingNdArray *gst_imaging_nd_array_copy (const GstImagingNdArray *npy);

/**
 * gst_imaging_nd_array_free:
 * @npy: (transfer full) (nullable): an array

 *
 * Frees the array, and its values with the last copy.
 */
GST_IMAGING_API
void gst_imaging_nd_array_free (GstImagingNdArray *npy);

/**
 * gst_imaging_nd_array_type_size:
 * @type: type of a value
 *
 * The size of one value.
 *
 * Returns: bytes of a value; 0 for what is no #GstImagingNdArrayType
 */
GST_IMAGING_API
gsize gst_imaging_nd_array_type_size (GstImagingNdArrayType type);

/**
 * gst_imaging_nd_array_type_name:
 * @type: type of a value
 *
 * The name of a type in messages.
 *
 * Returns: "u8", "u16", "i16", "f32", "f64", "complex64", "complex128",
 *   "bool", "i32", "u32", "i64", "f16", "i8", "u64"; "?" for what is no
 *   #GstImagingNdArrayType
 */
GST_IMAGING_API
const gchar *gst_imaging_nd_array_type_name (GstImagingNdArrayType type);

/**
 * gst_imaging_nd_array_type_to_tensor:
 * @type: type of a value
 *
 * The type of a tensor with these samples, as caps name it. Two samples
 * stand for a complex value, and a byte for a truth value.
 *
 * Returns: "uint8", "int16", "float32", ...
 */
GST_IMAGING_API
const gchar *gst_imaging_nd_array_type_to_tensor (GstImagingNdArrayType type);

/**
 * gst_imaging_nd_array_type_from_tensor:
 * @name: (nullable): type of a tensor, as caps name it
 * @type: (out): the type of its samples
 *
 * The type of the samples of a tensor, from its name in caps. A value of
 * two samples is not complex here: a file says that of itself.
 *
 * Returns: FALSE if tensors of these caps have no such type
 */
GST_IMAGING_API
gboolean gst_imaging_nd_array_type_from_tensor (
    const gchar *name, GstImagingNdArrayType *type);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstImagingNdArray, gst_imaging_nd_array_free)

G_END_DECLS
