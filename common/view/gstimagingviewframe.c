/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewframe.h"

#include <math.h>
#include <string.h>

#include "files/gstimagingndarray-private.h"
#include "gstimagingdlpack.h"
#include "gstimagingstats.h"

#define MAX_SIZE (G_GUINT64_CONSTANT (1) << 30) /* of all views */

typedef GstImagingViewLayout Layout;

/* --- the copy ------------------------------------------------------------- */

static gboolean refuse (GError **error, const gchar *format, ...)
    G_GNUC_PRINTF (2, 3);

static gboolean
refuse (GError **error, const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list list;

  va_start (list, format);
  text = g_strdup_vprintf (format, list);
  va_end (list);
  g_set_error_literal (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, text);
  return FALSE;
}

/* All views of the process share one limit: a server has several clients. */
static GMutex size_lock;
static guint64 size_of_all;

static gboolean
reserve (guint64 size)
{
  gboolean ok;

  GST_IMAGING_HOLD (&size_lock);
  ok = size <= MAX_SIZE - size_of_all;
  if (ok)
    size_of_all += size;
  return ok;
}

static void
release (GstImagingViewFrame *self)
{
  g_clear_pointer (&self->samples, g_free);
  g_clear_pointer (&self->is_filled, g_free);
  g_mutex_lock (&size_lock);
  size_of_all -= self->size;
  g_mutex_unlock (&size_lock);
  self->size = 0;
}

static gboolean
has_room (GstImagingViewFrame *self, const Layout *from, guint n_slices,
    GError **error)
{
  const guint64 slice = (guint64) from->width * from->height * from->channels *
                        gst_imaging_nd_array_type_size (from->type);
  const gboolean same =
      self->samples && self->type == from->type && self->width == from->width &&
      self->height == from->height && self->channels == from->channels &&
      self->n_slices == n_slices && self->meaning.kind == from->meaning.kind;

  if (same)
    return TRUE;
  release (self);
  if (slice == 0 || slice > MAX_SIZE || !reserve (slice * n_slices))
    return refuse (error,
        "%u frames of %u x %u samples of %s need more than is left of the "
        "1 GiB that all views may take together. Choose a smaller volume, or "
        "close another view.",
        n_slices, from->width, from->height,
        gst_imaging_nd_array_type_name (from->type));
  self->size = slice * n_slices;
  self->samples = g_try_malloc0 (self->size);
  if (!self->samples) {
    release (self);
    return refuse (error,
        "There is no memory for a view of %u frames of %u x %u.", n_slices,
        from->width, from->height);
  }
  self->is_filled = g_malloc0 (n_slices);
  self->type = from->type;
  self->width = from->width;
  self->height = from->height;
  self->channels = from->channels;
  self->n_slices = n_slices;
  self->n_filled = 0;
  return TRUE;
}

static void
copy_row (guint8 *to, const Layout *from, guint y)
{
  const gsize size = gst_imaging_nd_array_type_size (from->type);
  const guint8 *row;

  if (from->unpacked) {
    gst_imaging_view_video_unpack (from, y, to);
    return;
  }
  row = from->first + (gssize) y * from->row;
  if (from->channel == size && from->pixel == size * from->channels) {
    memcpy (to, row, from->pixel * from->width);
    return;
  }
  for (guint x = 0; x < from->width; x++)
    for (guint c = 0; c < from->channels; c++, to += size)
      memcpy (to, row + x * from->pixel + c * from->channel, size);
}

static guint64
number_of (GstSample *sample)
{
  const GstStructure *info = gst_sample_get_info (sample);
  GstBuffer *buffer = gst_sample_get_buffer (sample);
  guint64 number = 0;

  if (!info || !gst_structure_get_uint64 (info, "number", &number))
    number =
        GST_BUFFER_OFFSET_IS_VALID (buffer) ? GST_BUFFER_OFFSET (buffer) : 0;
  return number;
}

static gboolean
copy (GstImagingViewFrame *self, const Layout *from, guint n_slices,
    GstSample *sample, GError **error)
{
  GstBuffer *buffer = gst_sample_get_buffer (sample);
  gsize row, slice;
  guint z;

  if (!has_room (self, from, n_slices, error))
    return FALSE;
  z = (guint) (number_of (sample) % n_slices);
  row = (gsize) self->width * self->channels *
        gst_imaging_nd_array_type_size (self->type);
  slice = row * self->height;
  for (guint y = 0; y < self->height; y++)
    copy_row (self->samples + z * slice + y * row, from, y);
  self->n_filled += !self->is_filled[z];
  self->is_filled[z] = 1;
  self->meaning = from->meaning;
  gst_clear_buffer (&self->about);
  self->about = gst_buffer_new ();
  gst_buffer_copy_into (self->about, buffer,
      GST_BUFFER_COPY_TIMESTAMPS | GST_BUFFER_COPY_META, 0, (gsize) -1);
  return TRUE;
}

/* --- video ---------------------------------------------------------------- */

static gboolean
copy_video (GstImagingViewFrame *self, GstSample *sample, guint n_slices,
    GError **error)
{
  GstBuffer *buffer = gst_sample_get_buffer (sample);
  const GstCaps *caps = gst_sample_get_caps (sample);
  GstVideoInfo info;
  GstVideoFrame frame;
  Layout layout = {0};
  gboolean ok;

  if (!gst_video_info_from_caps (&info, caps))
    return refuse (error, "The caps of the video are not complete.");
  if (!gst_video_frame_map (&frame, &info, buffer,
          GST_MAP_READ | GST_VIDEO_FRAME_MAP_FLAG_NO_REF))
    return refuse (
        error, "A frame of %s cannot be read by the CPU.", info.finfo->name);
  if (!gst_imaging_view_video_is_whole (&frame))
    ok = refuse (error,
        "A buffer of %s has %" G_GSIZE_FORMAT " bytes, fewer than %d x %d "
        "pixels with its strides need. An element before this pad describes it "
        "wrongly.",
        info.finfo->name, gst_buffer_get_size (buffer), frame.info.width,
        frame.info.height);
  else if (!gst_imaging_view_video_lay_out (&layout, &frame))
    ok = refuse (
        error, "Video of the format %s cannot be shown.", info.finfo->name);
  else
    ok = copy (self, &layout, n_slices, sample, error);
  g_free (layout.line);
  gst_video_frame_unmap (&frame);
  return ok;
}

/* --- arrays --------------------------------------------------------------- */

/* The last two dimensions, and a third of up to 4 channels; of more the first
 * of each. Complex numbers are two channels. */
static gboolean
lay_out_tensor (Layout *to, const GstImagingDlTensor *t, GError **error)
{
  const gboolean is_complex = t->type_code == GST_IMAGING_DL_COMPLEX;
  const guint bits = is_complex ? t->type_bits / 2u : t->type_bits;
  const gint n = t->n_dims;
  const gboolean has_channels = !is_complex && n > 2 && t->shape[n - 1] <= 4;
  const gint x = n - 1 - has_channels, y = x - 1;
  const guint8 code = is_complex ? GST_IMAGING_DL_FLOAT : t->type_code;
  const gsize element = t->type_bits / 8u;
  gchar name[8]; /* by the code of DLPack: i, u or f, and the bits */
  guint i = 0;

  g_snprintf (name, sizeof (name), "%c%u", code < 3 ? "iuf"[code] : '?', bits);
  while (i < GST_IMAGING_ND_ARRAY_N_TYPES &&
         strcmp (gst_imaging_nd_array_type_name (i), name) != 0)
    i++;
  if (i == GST_IMAGING_ND_ARRAY_N_TYPES || t->device_type != GST_IMAGING_DL_CPU)
    return refuse (error, "Samples of this type or in this memory cannot be "
                          "shown.");
  if (x < 0 || t->shape[x] > G_MAXINT32 || (y >= 0 && t->shape[y] > G_MAXINT32))
    return refuse (error, "An array of this shape is no picture.");
  to->type = (GstImagingNdArrayType) i;
  to->width = (guint) t->shape[x];
  to->height = y >= 0 ? (guint) t->shape[y] : 1;
  to->channels = is_complex ? 2 : has_channels ? (guint) t->shape[n - 1] : 1;
  to->first = t->data;
  to->pixel = (gsize) t->strides[x] * element;
  to->row = y >= 0 ? (gssize) t->strides[y] * (gssize) element : 0;
  to->channel = is_complex     ? element / 2
                : has_channels ? (gsize) t->strides[n - 1] * element
                               : element;
  return TRUE;
}

static gboolean
copy_array (GstImagingViewFrame *self, GstSample *sample, guint n_slices,
    GError **error)
{
  GstBuffer *buffer = gst_sample_get_buffer (sample);
  const GstCaps *caps = gst_sample_get_caps (sample);
  GstImagingDlTensor *tensor;
  Layout layout = {0};
  GstMapInfo map;
  gboolean ok;

  /* samples of a device come to the host, where a view is then */
  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    return refuse (error, "The frame cannot be read by the CPU.");
  tensor = gst_imaging_dlpack_new (buffer, caps, 0, error);
  ok = tensor && lay_out_tensor (&layout, tensor, error) &&
       copy (self, &layout, n_slices, sample, error);
  gst_imaging_dlpack_free (tensor);
  gst_buffer_unmap (buffer, &map);
  return ok;
}

gboolean
gst_imaging_view_frame_copy (GstImagingViewFrame *self, GstSample *sample,
    guint n_slices, GError **error)
{
  const GstCaps *caps = gst_sample_get_caps (sample);
  gboolean ok;

  if (!caps || gst_caps_is_empty (caps))
    return refuse (error, "The pad has no caps yet.");
  gst_imaging_stats_set_viewing (TRUE);
  ok = gst_structure_has_name (gst_caps_get_structure (caps, 0), "video/x-raw")
           ? copy_video (self, sample, n_slices, error)
           : copy_array (self, sample, n_slices, error);
  gst_imaging_stats_set_viewing (FALSE);
  return ok;
}

void
gst_imaging_view_frame_clear (GstImagingViewFrame *self)
{
  release (self);
  gst_clear_buffer (&self->about);
  memset (self, 0, sizeof (*self));
}

/* --- samples -------------------------------------------------------------- */

#define READ(type, expression) \
  do { \
    const type *p = row; \
\
    if (is_dense) \
      for (gsize i = 0; i < (gsize) n * channels; i++) { \
        const type v = p[(gsize) xs[0] * channels + i]; \
\
        values[i] = (expression); \
      } \
    else \
      for (guint i = 0; i < n; i++) \
        for (guint c = 0; c < channels; c++) { \
          const type v = p[(gsize) xs[i] * channels + c]; \
\
          *values++ = (expression); \
        } \
  } while (0)

gconstpointer
gst_imaging_view_frame_row (const GstImagingViewFrame *self, guint z, guint y)
{
  return self->samples + ((gsize) z * self->height + y) * self->width *
                             self->channels *
                             gst_imaging_nd_array_type_size (self->type);
}

void
gst_imaging_view_frame_read (const GstImagingViewFrame *self, guint z, guint y,
    const guint *xs, guint n, gdouble *values)
{
  const guint channels = self->channels;
  /* side by side, for which a compiler has faster code */
  const gboolean is_dense = n > 0 && xs[n - 1] - xs[0] == n - 1;
  gconstpointer row = gst_imaging_view_frame_row (self, z, y);

  switch (self->type) {
  case GST_IMAGING_ND_ARRAY_TYPE_U8:
    READ (guint8, v);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_U16:
    READ (guint16, v);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_I8:
    READ (gint8, v);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_I16:
    READ (gint16, v);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_U32:
    READ (guint32, v);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_I32:
    READ (gint32, v);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_U64:
    READ (guint64, (gdouble) v);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_I64:
    READ (gint64, (gdouble) v);
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_F16:
    READ (guint16, gst_imaging_half_to_double (v));
    break;
  case GST_IMAGING_ND_ARRAY_TYPE_F32:
    READ (gfloat, (gdouble) v);
    break;
  default: /* F64: of complex numbers a frame has the parts */
    READ (gdouble, v);
    break;
  }
}

gboolean
gst_imaging_view_frame_print_whole (const GstImagingViewFrame *self, guint z,
    guint y, guint x, guint channel, gchar *text)
{
  const guint64 *row = gst_imaging_view_frame_row (self, z, y);
  guint64 value;

  if (self->type != GST_IMAGING_ND_ARRAY_TYPE_U64 &&
      self->type != GST_IMAGING_ND_ARRAY_TYPE_I64)
    return FALSE;
  value = row[(gsize) x * self->channels + channel];
  if (self->type == GST_IMAGING_ND_ARRAY_TYPE_U64)
    g_snprintf (text, GST_IMAGING_VIEW_WHOLE_SIZE, "%" G_GUINT64_FORMAT, value);
  else
    g_snprintf (
        text, GST_IMAGING_VIEW_WHOLE_SIZE, "%" G_GINT64_FORMAT, (gint64) value);
  return TRUE;
}
