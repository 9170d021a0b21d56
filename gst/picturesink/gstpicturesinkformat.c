/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstpicturesinkformat.h"

#include <string.h>

#include "gstimagingpicture.h"

/* Samples of video formats, in the byte order of the machine after BIG, LITTLE
 */
struct _GstPictureSinkVideo {
  const gchar *name;
  guint n_channels, size; /* of a pixel; bytes of a sample */
  guint bits;             /* of a sample, if they are not all of its bytes */
  gint order;             /* of the bytes of a sample */
};

static const GstPictureSinkVideo videos[] = {
    {"GRAY8", 1, 1},
    {"GRAY16_LE", 1, 2, 16, G_LITTLE_ENDIAN},
    {"GRAY16_BE", 1, 2, 16, G_BIG_ENDIAN},
    {"GRAY10_LE16", 1, 2, 10, G_LITTLE_ENDIAN},
    {"GRAY12_LE16", 1, 2, 12, G_LITTLE_ENDIAN},
    {"RGB", 3, 1},
    {"BGR", 3, 1},
    {"RGBx", 3, 1},
    {"BGRx", 3, 1},
    {"xRGB", 3, 1},
    {"xBGR", 3, 1},
    {"RGBA", 4, 1},
    {"BGRA", 4, 1},
    {"ARGB", 4, 1},
    {"ABGR", 4, 1},
    {"RGBA64_LE", 4, 2, 16, G_LITTLE_ENDIAN},
    {"RGBA64_BE", 4, 2, 16, G_BIG_ENDIAN},
    {"BGRA64_LE", 4, 2, 16, G_LITTLE_ENDIAN},
    {"BGRA64_BE", 4, 2, 16, G_BIG_ENDIAN},
    {"ARGB64_LE", 4, 2, 16, G_LITTLE_ENDIAN},
    {"ARGB64_BE", 4, 2, 16, G_BIG_ENDIAN},
    {"ABGR64_LE", 4, 2, 16, G_LITTLE_ENDIAN},
    {"ABGR64_BE", 4, 2, 16, G_BIG_ENDIAN},
};

/* NNStreamer has 16 in its newer releases. */
#define MAX_TENSOR_DIMS 16

static gboolean
has_type (guint32 types, GstImagingNdArrayType type)
{
  return types >> type & 1;
}

/* --- caps ----------------------------------------------------------------- */

static GstImagingNdArrayType
type_of (const GstPictureSinkVideo *video)
{
  return video->size == 2 ? GST_IMAGING_ND_ARRAY_TYPE_U16
                          : GST_IMAGING_ND_ARRAY_TYPE_U8;
}

static void
append_text (GValue *list, const gchar *text)
{
  GValue value = G_VALUE_INIT;

  g_value_init (&value, G_TYPE_STRING);
  g_value_set_string (&value, text);
  gst_value_list_append_and_take_value (list, &value);
}

/* Appends a structure with a list, if it has something in it. @list: freed */
static void
append_list (GstCaps *caps, const gchar *text, const gchar *field, GValue *list)
{
  GstStructure *s = gst_structure_new_from_string (text);

  if (gst_value_list_get_size (list) > 0) {
    gst_structure_set_value (s, field, list);
    gst_caps_append_structure (caps, s);
  } else {
    gst_structure_free (s);
  }
  g_value_unset (list);
}

/* Two first: what offers flags beside its numbers shall give them. */
static void
append_tensors (GstCaps *caps, guint32 types)
{
  static const GstImagingNdArrayType offered[] = {
      GST_IMAGING_ND_ARRAY_TYPE_U8,
      GST_IMAGING_ND_ARRAY_TYPE_I8,
      GST_IMAGING_ND_ARRAY_TYPE_U16,
      GST_IMAGING_ND_ARRAY_TYPE_I16,
      GST_IMAGING_ND_ARRAY_TYPE_U32,
      GST_IMAGING_ND_ARRAY_TYPE_I32,
      GST_IMAGING_ND_ARRAY_TYPE_U64,
      GST_IMAGING_ND_ARRAY_TYPE_I64,
      GST_IMAGING_ND_ARRAY_TYPE_F16,
      GST_IMAGING_ND_ARRAY_TYPE_F32,
      GST_IMAGING_ND_ARRAY_TYPE_F64,
  };
  GValue one = G_VALUE_INIT, two = G_VALUE_INIT;

  g_value_init (&one, GST_TYPE_LIST);
  g_value_init (&two, GST_TYPE_LIST);
  for (guint i = 0; i < G_N_ELEMENTS (offered); i++) {
    const gchar *name = gst_imaging_nd_array_type_to_tensor (offered[i]);
    g_autofree gchar *both = g_strconcat (name, ",uint8", NULL);

    if (has_type (types, offered[i])) {
      append_text (&one, name);
      append_text (&two, both);
    }
  }
  append_list (caps,
      "other/tensors, format = (string) static, num_tensors = (int) 2", "types",
      &two);
  append_list (caps,
      "other/tensors, format = (string) static, num_tensors = (int) 1", "types",
      &one);
}

GstCaps *
gst_picture_sink_format_caps (guint32 types, gboolean rows)
{
  GstCaps *caps = gst_caps_new_empty ();
  GValue list = G_VALUE_INIT;

  g_value_init (&list, GST_TYPE_LIST);
  for (guint i = 0; i < G_N_ELEMENTS (videos); i++)
    if (has_type (types, type_of (&videos[i])) &&
        gst_video_format_from_string (videos[i].name) !=
            GST_VIDEO_FORMAT_UNKNOWN) /* which later releases have */
      append_text (&list, videos[i].name);
  append_list (caps,
      "video/x-raw, width = (int) [ 1, max ], height = (int) [ 1, max ]",
      "format", &list);
  if (has_type (types, GST_IMAGING_ND_ARRAY_TYPE_U8))
    gst_caps_append (caps,
        gst_caps_from_string (
            "video/x-bayer, format = (string) { bggr, gbrg, grbg, rggb }, "
            "width = (int) [ 1, max ], height = (int) [ 1, max ]"));
  append_tensors (caps, types);
  if (rows && has_type (types, GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64))
    gst_caps_append (
        caps, gst_caps_from_string (
                  "application/x-slc, format = (string) { ci16, cf32, f32 }, "
                  "width = (int) [ 1, max ], height = (int) [ 1, max ]"));
  return caps;
}

/* --- what caps say -------------------------------------------------------- */

static gboolean
fail (GError **error, const GstCaps *caps)
{
  g_autofree gchar *text = gst_caps_to_string (caps);

  g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
      "Frames of \"%s\" cannot be written: they are no picture or array of at "
      "most 4 GiB a frame.",
      text);
  return FALSE;
}

static void
set_picture (
    GstImagingNdArray *frame, guint64 width, guint64 height, guint n_channels)
{
  frame->n_dims = n_channels > 1 ? 3 : 2;
  frame->dims[0] = height;
  frame->dims[1] = width;
  frame->dims[2] = n_channels;
  g_strlcpy (frame->axes, n_channels > 1 ? "yxc" : "yx", sizeof (frame->axes));
}

/* Are the rows of a frame those of the array? */
static gboolean
is_plain (const GstPictureSinkVideo *video, const GstVideoInfo *info)
{
  gboolean plain = video->size == 1 || video->order == G_BYTE_ORDER;

  for (guint c = 0; c < video->n_channels; c++)
    plain = plain && GST_VIDEO_INFO_COMP_POFFSET (info, c) == c * video->size &&
            GST_VIDEO_INFO_COMP_PSTRIDE (info, c) ==
                (gint) (video->n_channels * video->size);
  return plain;
}

static gboolean
set_video (GstPictureSinkFormat *self, const GstCaps *caps)
{
  const gchar *name;

  if (!gst_imaging_video_info_from_caps (&self->info, caps))
    return FALSE;
  name = gst_video_format_to_string (GST_VIDEO_INFO_FORMAT (&self->info));
  for (guint i = 0; i < G_N_ELEMENTS (videos); i++)
    if (strcmp (videos[i].name, name) == 0) {
      self->video = &videos[i];
      self->frame.type = type_of (self->video);
      self->bits = self->video->bits;
      self->is_plain = is_plain (self->video, &self->info);
      set_picture (&self->frame, GST_VIDEO_INFO_WIDTH (&self->info),
          GST_VIDEO_INFO_HEIGHT (&self->info), self->video->n_channels);
      return TRUE;
    }
  return FALSE;
}

static gboolean
set_bayer (GstPictureSinkFormat *self, const GstStructure *s)
{
  gint width = 0, height = 0;

  self->bayer = gst_structure_get_string (s, "format");
  if (!self->bayer || !gst_structure_get_int (s, "width", &width) ||
      !gst_structure_get_int (s, "height", &height) || width < 1 ||
      height < 1 ||
      !gst_imaging_video_info_set_format (
          &self->info, GST_VIDEO_FORMAT_GRAY8, (guint) width, (guint) height))
    return FALSE;
  self->bayer = g_intern_string (self->bayer);
  self->video = &videos[0];
  self->is_plain = TRUE;
  self->frame.type = GST_IMAGING_ND_ARRAY_TYPE_U8;
  set_picture (&self->frame, (guint64) width, (guint64) height, 1);
  return TRUE;
}

/* "1:640:480:1" has the fastest first, and one channel and one picture that are
 * no dimensions. Returns: the number of dimensions; 0 where it says none */
static guint
parse_dimensions (const gchar *text, guint64 *dims)
{
  g_auto (GStrv) words = g_strsplit (text ? text : "", ":", -1);
  guint n = g_strv_length (words);

  if (n > MAX_TENSOR_DIMS)
    return 0;
  for (guint i = 0; i < n; i++)
    if (!g_ascii_string_to_unsigned (
            words[i], 10, 0, G_MAXUINT32, &dims[i], NULL))
      return 0;
  while (n > 2 && dims[n - 1] <= 1)
    n--;
  for (guint i = 0; i < n; i++)
    if (dims[i] == 0)
      return 0;
  if (n > 2 && dims[0] == 1)
    memmove (dims, dims + 1, --n * sizeof (dims[0]));
  return n;
}

/* A picture of two floats a pixel is one of complex numbers. */
static void
pair_parts (GstImagingNdArray *frame, guint32 types)
{
  gboolean is_double = frame->type == GST_IMAGING_ND_ARRAY_TYPE_F64;
  GstImagingNdArrayType type = is_double ? GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128
                                         : GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64;

  if (frame->n_dims < 3 || frame->dims[frame->n_dims - 1] != 2 ||
      (!is_double && frame->type != GST_IMAGING_ND_ARRAY_TYPE_F32) ||
      !has_type (types, type))
    return;
  frame->type = type;
  frame->n_dims--;
}

static gboolean
set_one_tensor (GstImagingNdArray *frame, const gchar *name,
    const gchar *dimensions, guint32 types)
{
  guint64 dims[MAX_TENSOR_DIMS];
  guint n = parse_dimensions (dimensions, dims);

  if (!gst_imaging_nd_array_type_from_tensor (name, &frame->type) || n == 0 ||
      n > GST_IMAGING_ND_ARRAY_MAX_DIMS - 1)
    return FALSE;
  frame->n_dims = n;
  for (guint d = 0; d < n; d++)
    frame->dims[d] = dims[n - 1 - d];
  pair_parts (frame, types);
  if (frame->n_dims == 2 || frame->n_dims == 3)
    g_strlcpy (
        frame->axes, frame->n_dims == 2 ? "yx" : "yxc", sizeof (frame->axes));
  return TRUE;
}

/* [cells]: without the 1 that a tensor has at least as second dimension */
static gboolean
set_flags (GstPictureSinkFormat *self, const gchar *dimensions)
{
  GstImagingNdArray *flags = &self->flags;

  if (!set_one_tensor (flags, "uint8", dimensions, 0))
    return FALSE;
  if (flags->n_dims == 2 && flags->dims[0] == 1) {
    flags->n_dims = 1;
    flags->dims[0] = flags->dims[1];
    *flags->axes = '\0';
  }
  self->flags_size = 1;
  for (guint i = 0; i < flags->n_dims; i++)
    if (!g_size_checked_mul (
            &self->flags_size, self->flags_size, flags->dims[i]) ||
        self->flags_size > G_MAXUINT32)
      return FALSE;
  return TRUE;
}

static gboolean
set_tensor (GstPictureSinkFormat *self, const GstStructure *s, guint32 types)
{
  const gchar *names = gst_structure_get_string (s, "types");
  const gchar *dims = gst_structure_get_string (s, "dimensions");
  g_auto (GStrv) name = g_strsplit (names ? names : "", ",", 2);
  g_auto (GStrv) dim = g_strsplit (dims ? dims : "", ",", 2);
  gint n = 1;

  gst_structure_get_int (s, "num_tensors", &n);
  if (n < 1 || n > 2 || g_strv_length (name) != (guint) n ||
      g_strv_length (dim) != (guint) n)
    return FALSE;
  return set_one_tensor (&self->frame, name[0], dim[0], types) &&
         (n == 1 || set_flags (self, dim[1]));
}

static gboolean
set_rows (GstPictureSinkFormat *self, const GstStructure *s)
{
  const gchar *format = gst_structure_get_string (s, "format");
  gboolean is_real = g_strcmp0 (format, "f32") == 0;
  gint width = 0;

  if (!format || !gst_structure_get_int (s, "width", &width) || width < 1)
    return FALSE;
  self->is_ci16 = strcmp (format, "ci16") == 0;
  self->frame.type = is_real ? GST_IMAGING_ND_ARRAY_TYPE_F32
                             : GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64;
  self->frame.n_dims = 1;
  self->frame.dims[0] = (guint64) width;
  self->row_size = (gsize) width * (is_real || self->is_ci16 ? 4 : 8);
  return TRUE;
}

gboolean
gst_picture_sink_format_set_caps (GstPictureSinkFormat *self,
    const GstCaps *caps, guint32 types, GError **error)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  gboolean is_rows = gst_structure_has_name (s, "application/x-slc");
  gboolean ok;

  gst_picture_sink_format_clear (self);
  gst_video_info_init (&self->info);
  ok = is_rows ? set_rows (self, s)
       : gst_structure_has_name (s, "other/tensors")
           ? set_tensor (self, s, types)
       : gst_structure_has_name (s, "video/x-bayer") ? set_bayer (self, s)
                                                     : set_video (self, caps);
  if (!ok)
    return fail (error, caps);
  self->size = gst_imaging_nd_array_type_size (self->frame.type);
  for (guint i = 0; i < self->frame.n_dims; i++)
    if (!g_size_checked_mul (&self->size, self->size, self->frame.dims[i]) ||
        self->size > G_MAXUINT32)
      return fail (error, caps);
  return TRUE;
}

/* --- values of a buffer --------------------------------------------------- */

static guint8 *
get_room (GstPictureSinkFormat *self, gsize size, GError **error)
{
  if (size <= self->packed_size)
    return self->packed;
  g_free (self->packed);
  self->packed = g_try_malloc (size);
  self->packed_size = self->packed ? size : 0;
  if (!self->packed)
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED,
        "A frame of %" G_GSIZE_FORMAT " bytes does not fit in memory.", size);
  return self->packed;
}

static void
pack_bytes (const GstPictureSinkFormat *self, const GstVideoFrame *frame,
    const guint8 *from, guint8 *to)
{
  guint n = self->video->n_channels;
  gsize width = self->frame.dims[1];

  for (guint c = 0; c < n; c++) {
    const guint8 *in = from + GST_VIDEO_FRAME_COMP_POFFSET (frame, c);
    gsize step = (gsize) GST_VIDEO_FRAME_COMP_PSTRIDE (frame, c);

    for (gsize x = 0; x < width; x++)
      to[x * n + c] = in[x * step];
  }
}

static void
pack_words (const GstPictureSinkFormat *self, const GstVideoFrame *frame,
    const guint8 *from, guint16 *to)
{
  guint n = self->video->n_channels;
  gsize width = self->frame.dims[1];
  gboolean swaps = self->video->order != G_BYTE_ORDER;

  for (guint c = 0; c < n; c++) {
    const guint8 *in = from + GST_VIDEO_FRAME_COMP_POFFSET (frame, c);
    gsize step = (gsize) GST_VIDEO_FRAME_COMP_PSTRIDE (frame, c);

    for (gsize x = 0; x < width; x++) {
      guint16 sample;

      memcpy (&sample, in + x * step, sizeof (sample));
      to[x * n + c] = swaps ? GUINT16_SWAP_LE_BE (sample) : sample;
    }
  }
}

/* Returns: the frame itself where its rows are next to each other */
static gconstpointer
pack (GstPictureSinkFormat *self, const GstVideoFrame *frame, GError **error)
{
  gsize height = self->frame.dims[0], row = self->size / height;
  gsize stride = (gsize) GST_VIDEO_FRAME_PLANE_STRIDE (frame, 0);
  const guint8 *from = GST_VIDEO_FRAME_PLANE_DATA (frame, 0);
  guint8 *to;

  if (self->is_plain && stride == row)
    return from;
  to = get_room (self, self->size, error);
  for (gsize y = 0; to && y < height; y++)
    if (self->is_plain)
      memcpy (to + y * row, from + y * stride, row);
    else if (self->video->size == 1)
      pack_bytes (self, frame, from + y * stride, to + y * row);
    else
      pack_words (self, frame, from + y * stride, (guint16 *) (to + y * row));
  return to;
}

static gboolean
map_video (GstPictureSinkFormat *self, GstBuffer *buffer,
    GstPictureSinkView *view, GError **error)
{
  if (!gst_video_frame_map (&view->frame, &self->info, buffer,
          GST_MAP_READ | GST_VIDEO_FRAME_MAP_FLAG_NO_REF)) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ,
        "A frame of %" G_GSIZE_FORMAT
        " bytes cannot be read as a picture of %" G_GSIZE_FORMAT ".",
        gst_buffer_get_size (buffer), GST_VIDEO_INFO_SIZE (&self->info));
    return FALSE;
  }
  view->is_video = TRUE;
  view->values = pack (self, &view->frame, error);
  view->n_frames = 1;
  return view->values != NULL;
}

/* The parts of a complex integer are exact as floats. */
static gconstpointer
widen (GstPictureSinkFormat *self, const GstMapInfo *map, GError **error)
{
  gsize n = map->size / sizeof (gint16);
  gfloat *to = (gfloat *) get_room (self, n * sizeof (gfloat), error);

  for (gsize i = 0; to && i < n; i++)
    to[i] = ((const gint16 *) map->data)[i];
  return to;
}

gboolean
gst_picture_sink_format_map (GstPictureSinkFormat *self, GstBuffer *buffer,
    GstPictureSinkView *view, GError **error)
{
  gsize unit =
      self->row_size > 0 ? self->row_size : self->size + self->flags_size;

  memset (view, 0, sizeof (*view));
  if (self->video)
    return map_video (self, buffer, view, error);
  if (!gst_buffer_map (buffer, &view->map, GST_MAP_READ)) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ,
        "The memory of a buffer cannot be read.");
    return FALSE;
  }
  view->buffer = buffer;
  view->n_frames = view->map.size / unit;
  if (view->n_frames * unit != view->map.size ||
      (self->row_size == 0 && view->n_frames != 1)) {
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
        "A buffer of %" G_GSIZE_FORMAT " bytes is not what its caps say: %s of "
        "%" G_GSIZE_FORMAT " bytes.",
        view->map.size, self->row_size > 0 ? "whole lines" : "one array", unit);
    return FALSE;
  }
  view->values =
      self->is_ci16 ? widen (self, &view->map, error) : view->map.data;
  view->flags = self->flags_size > 0 ? view->map.data + self->size : NULL;
  return view->values != NULL;
}

void
gst_picture_sink_view_unmap (GstPictureSinkView *view)
{
  if (view->is_video)
    gst_video_frame_unmap (&view->frame);
  if (view->buffer)
    gst_buffer_unmap (view->buffer, &view->map);
  view->is_video = FALSE;
  view->buffer = NULL;
}

void
gst_picture_sink_format_clear (GstPictureSinkFormat *self)
{
  g_free (self->packed);
  memset (self, 0, sizeof (*self));
}
