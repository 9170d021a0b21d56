/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingdlpack.h"

#include <gst/video/video.h>

#include "gstimaging-private.h"
#include "gstimagingcaps.h"
#include "gstimagingcuda.h"
#include "gstimagingframe-private.h"
#include "gstimagingmemory.h"
#include "gstimagingpicture.h"

#define MAX_DIMS 16 /* of a tensor, as NNStreamer has it */

/* DLManagedTensor of DLPack 0.x and 1.x without flags, on 64 bits. */
#if GLIB_SIZEOF_VOID_P == 8
G_STATIC_ASSERT (sizeof (GstImagingDlTensor) == 64);
G_STATIC_ASSERT (G_STRUCT_OFFSET (GstImagingDlTensor, deleter) == 56);
#endif

typedef struct {
  guint8 code, bits;
} Type;

/* What a buffer holds: the elements from @offset on. */
typedef struct {
  gsize offset, size; /* bytes, up to the last element */
  Type type;
  gint n_dims;
  gint64 shape[MAX_DIMS], strides[MAX_DIMS]; /* strides in elements */
} Layout;

typedef struct {
  GstImagingDlTensor tensor;
  gint64 shape[MAX_DIMS], strides[MAX_DIMS];
  GstBuffer *buffer;
  GstMemory *memory;
  enum { HOST, IMAGING, CUDA } kind;
  GstMapInfo map; /* not of IMAGING */
} View;

/* --- layouts -------------------------------------------------------------- */

/* Elements without gaps. */
static void
pack (Layout *self)
{
  gint64 stride = 1;

  for (gint i = self->n_dims - 1; i >= 0; i--) {
    self->strides[i] = stride;
    stride *= self->shape[i];
  }
  self->size = (gsize) stride * self->type.bits / 8;
}

/* Formats with several samples in a word, or samples of another byte order,
 * are no arrays. */
static gboolean
is_array (const GstVideoFormatInfo *f, guint plane)
{
  const gboolean is_le = (f->flags & GST_VIDEO_FORMAT_FLAG_LE) != 0;
  guint places = 0, n = 0, size = 0, w_sub = 0;

  if (f->flags & (GST_VIDEO_FORMAT_FLAG_COMPLEX | GST_VIDEO_FORMAT_FLAG_TILED))
    return FALSE;
  for (guint c = 0; c < f->n_components; c++) {
    guint sample = f->depth[c] > 8 ? 2 : 1;
    gint pixel = f->pixel_stride[c];

    if (f->plane[c] != plane)
      continue;
    if (f->depth[c] < 8 || f->depth[c] > 16 || pixel <= 0 || pixel % sample ||
        f->poffset[c] % sample || f->poffset[c] >= 32 ||
        (n > 0 && (sample != size || f->w_sub[c] != w_sub)) ||
        places & 1u << f->poffset[c])
      return FALSE;
    places |= 1u << f->poffset[c];
    size = sample;
    w_sub = f->w_sub[c];
    n++;
  }
  return n > 0 && (size == 1 || is_le == (G_BYTE_ORDER == G_LITTLE_ENDIAN));
}

static ImkStatus
set_plane (Layout *self, GstBuffer *buffer, const GstVideoInfo *info,
    guint plane, ImkError *error)
{
  const GstVideoFormatInfo *f = info->finfo;
  const GstVideoMeta *meta = gst_buffer_get_video_meta (buffer);
  ImkImage image;
  gint sample, stride;

  if (plane >= GST_VIDEO_INFO_N_PLANES (info))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A frame of %s has %u planes; there is no plane %u, the first is 0.",
        f->name, GST_VIDEO_INFO_N_PLANES (info), plane);
  if (!is_array (f, plane))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "Samples of %s are no array of whole numbers; convert the video, for "
        "example to GRAY8, GRAY16_LE, RGB or RGBA.",
        f->name);
  if (gst_imaging_frame_check_size (buffer, info, error) != IMK_OK)
    return IMK_ERROR_IMAGE;
  image = gst_imaging_frame_describe_plane (info, plane);
  sample = (gint) imk_type_size (image.type);
  stride = meta ? meta->stride[plane] : info->stride[plane];
  if (stride % sample)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "Rows are %d bytes apart, no multiple of a sample of %d bytes.", stride,
        sample);
  self->offset = meta ? meta->offset[plane] : info->offset[plane];
  self->type = (Type){GST_IMAGING_DL_UINT, (guint8) (8 * sample)};
  self->n_dims = image.channels > 1 ? 3 : 2;
  self->shape[0] = image.height;
  self->shape[1] = image.width;
  self->shape[2] = image.channels;
  self->strides[0] = stride / sample;
  self->strides[1] = image.channels;
  self->strides[2] = 1;
  self->size =
      (image.height - 1) * (gsize) stride + imk_image_row_size (&image);
  return IMK_OK;
}

static gboolean
find_type (const gchar *name, Type *type)
{
  static const gchar *const kinds[] = {[GST_IMAGING_DL_INT] = "int",
      [GST_IMAGING_DL_UINT] = "uint",
      [GST_IMAGING_DL_FLOAT] = "float"};

  for (guint8 code = 0; code < G_N_ELEMENTS (kinds); code++)
    for (guint8 bits = code == GST_IMAGING_DL_FLOAT ? 16 : 8; bits <= 64;
         bits *= 2) {
      g_autofree gchar *known = g_strdup_printf ("%s%u", kinds[code], bits);

      if (g_str_equal (name, known)) {
        *type = (Type){code, bits};
        return TRUE;
      }
    }
  return FALSE;
}

/* "28:20:1:1" is [20, 28]. */
static gboolean
parse_dimensions (Layout *self, const gchar *text)
{
  gint64 dims[MAX_DIMS];
  guint64 n_elements = 1;
  gint n = 0;

  for (const gchar *at = text; at && n < MAX_DIMS; at++) {
    gchar *end;

    if (!g_ascii_isdigit (*at))
      return FALSE;
    dims[n] = (gint64) g_ascii_strtoull (at, &end, 10);
    if (dims[n] == 0 && n > 0 && (*end == ':' || *end == '\0'))
      break; /* NNStreamer fills up with 0 */
    if (dims[n] <= 0 || n_elements > (G_MAXINT64 / 64) / (guint64) dims[n])
      return FALSE;
    n_elements *= (guint64) dims[n++];
    if (*end == '\0')
      break;
    if (*end != ':')
      return FALSE;
    at = end;
  }
  while (n > 1 && dims[n - 1] == 1)
    n--;
  self->n_dims = n;
  for (gint i = 0; i < n; i++)
    self->shape[i] = dims[n - 1 - i];
  return n > 0;
}

/* Each of several tensors is a memory of its own. */
static ImkStatus
set_tensor (Layout *self, GstBuffer *buffer, const GstStructure *s, guint index,
    ImkError *error)
{
  const gchar *types = gst_structure_get_string (s, "types");
  const gchar *dims = gst_structure_get_string (s, "dimensions");
  g_auto (GStrv) all_types = g_strsplit (types ? types : "", ",", -1);
  g_auto (GStrv) all_dims = g_strsplit_set (dims ? dims : "", ",.", -1);
  const guint n = g_strv_length (all_types);
  gsize size = gst_buffer_get_size (buffer);

  if (index >= n || index >= g_strv_length (all_dims))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The caps describe %u tensors; there is no tensor %u, the first is 0.",
        MIN (n, g_strv_length (all_dims)), index);
  if (!find_type (g_strstrip (all_types[index]), &self->type) ||
      !parse_dimensions (self, g_strstrip (all_dims[index])))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A tensor of types=%s, dimensions=%s is no array.", all_types[index],
        all_dims[index]);
  if (n > 1 && n != gst_buffer_n_memory (buffer))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A buffer of %u memories does not hold %u tensors, one in each.",
        gst_buffer_n_memory (buffer), n);
  self->offset = 0;
  for (guint i = 0; n > 1 && i < index; i++)
    self->offset += gst_buffer_peek_memory (buffer, i)->size;
  if (n > 1)
    size = gst_buffer_peek_memory (buffer, index)->size;
  pack (self);
  if (self->size > size)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A tensor of %" G_GSIZE_FORMAT
        " bytes is too small for dimensions=%s of %s, which take %" G_GSIZE_FORMAT
        ".",
        size, all_dims[index], all_types[index], self->size);
  return IMK_OK;
}

static ImkStatus
set_lines (
    Layout *self, GstBuffer *buffer, const GstStructure *s, ImkError *error)
{
  const gchar *format = gst_structure_get_string (s, "format");
  gsize line, size = gst_buffer_get_size (buffer);
  gint width = 0;

  gst_structure_get_int (s, "width", &width);
  self->n_dims = 2;
  if (g_strcmp0 (format, "cf32") == 0) {
    self->type = (Type){GST_IMAGING_DL_COMPLEX, 64};
  } else if (g_strcmp0 (format, "f32") == 0) {
    self->type = (Type){GST_IMAGING_DL_FLOAT, 32};
  } else {
    self->type = (Type){GST_IMAGING_DL_INT, 16};
    self->n_dims = 3;
  }
  self->shape[1] = width;
  self->shape[2] = 2;
  line = (gsize) width * self->type.bits / 8 * (self->n_dims == 3 ? 2 : 1);
  if (width <= 0 || size == 0 || size % line)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A buffer of %" G_GSIZE_FORMAT " bytes does not hold whole lines of %d "
        "samples (%s).",
        size, width, format ? format : "ci16");
  self->shape[0] = (gint64) (size / line);
  pack (self);
  return IMK_OK;
}

/* Features whose memory is no bytes of the CPU or CUDA, or would be copied. */
static ImkStatus
check_features (const GstCaps *caps, ImkError *error)
{
  GstCapsFeatures *features = gst_caps_get_features (caps, 0);
  g_autofree gchar *text = NULL;

  if (!features || gst_caps_features_is_any (features) ||
      gst_caps_features_get_size (features) == 0 ||
      gst_caps_features_contains (
          features, GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY) ||
      gst_caps_features_contains (features, GST_IMAGING_CAPS_FEATURE_CUDA))
    return IMK_OK;
  text = gst_caps_features_to_string (features);
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "Samples in %s have no view without a copy; take system memory, the "
      "memory of our elements or memory:CUDAMemory.",
      text);
}

static ImkStatus
set_video (Layout *self, GstBuffer *buffer, const GstCaps *caps, guint index,
    ImkError *error)
{
  const GstVideoMeta *meta = gst_buffer_get_video_meta (buffer);
  GstVideoInfo info;

  gst_video_info_init (&info);
  if (caps && !gst_imaging_video_info_from_caps (&info, caps))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The caps of the video are not complete: expected are format, width "
        "and height.");
  if (!caps && !meta)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "What the buffer holds is not known: it has no GstVideoMeta. Pass its "
        "caps, or the sample of an appsink.");
  if (!caps && !gst_video_info_set_format (
                   &info, meta->format, meta->width, meta->height))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The GstVideoMeta of a buffer has no valid format.");
  return set_plane (self, buffer, &info, index, error);
}

static ImkStatus
find_layout (Layout *self, GstBuffer *buffer, const GstCaps *caps, guint index,
    ImkError *error)
{
  const GstStructure *s = caps && gst_caps_is_fixed (caps)
                              ? gst_caps_get_structure (caps, 0)
                              : NULL;

  if (caps && !s)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The caps leave open what the buffer holds; pass those of its pad or "
        "sample.");
  if (s && check_features (caps, error) != IMK_OK)
    return IMK_ERROR_IMAGE;
  if (!s || gst_structure_has_name (s, "video/x-raw"))
    return set_video (self, buffer, caps, index, error);
  if (gst_structure_has_name (s, "other/tensors"))
    return set_tensor (self, buffer, s, index, error);
  if (gst_structure_has_name (s, "application/x-slc"))
    return set_lines (self, buffer, s, error);
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "%s is no array: expected is video/x-raw, other/tensors or "
      "application/x-slc.",
      gst_structure_get_name (s));
}

/* --- memory --------------------------------------------------------------- */

/* The legacy default stream, as it has no handle: ours and most streams of
 * others are in order with it. */
#define LEGACY_STREAM NULL

static ImkStatus
map_imaging (View *self, ImkError *error)
{
  GstImagingContext *context = gst_imaging_memory_context (self->memory);
  ImkLocation location;
  ImkStatus status;

  IMK_TRY (gst_imaging_context_push (context, error));
  status = gst_imaging_memory_acquire (self->memory, LEGACY_STREAM,
      GST_MAP_READ, FALSE, NULL, &self->tensor.data, &location, error);
  if (status == IMK_OK) {
    status = gst_imaging_context_device (context)->stream_synchronize (
        LEGACY_STREAM, error);
    if (status != IMK_OK)
      gst_imaging_memory_release (
          self->memory, LEGACY_STREAM, GST_MAP_READ, TRUE, NULL);
  }
  gst_imaging_context_pop (context);
  self->kind = IMAGING;
  self->tensor.device_type = GST_IMAGING_DL_CUDA;
  self->tensor.device_id = gst_imaging_context_device_id (context);
  return status;
}

/* The next writer waits for what reads the view on the default stream. */
static void
unmap_imaging (View *self)
{
  GstImagingContext *context = gst_imaging_memory_context (self->memory);
  ImkError error;
  gboolean is_lost = gst_imaging_context_push (context, &error) != IMK_OK;

  if (gst_imaging_memory_release (
          self->memory, LEGACY_STREAM, GST_MAP_READ, is_lost, &error) != IMK_OK)
    GST_WARNING ("The end of a view could not be marked. %s", error.message);
  if (!is_lost)
    gst_imaging_context_pop (context);
}

static ImkStatus
map_host (View *self, ImkError *error)
{
  if (!gst_memory_map (self->memory, &self->map, GST_MAP_READ))
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "The memory of the buffer cannot be read by the CPU.");
  self->kind = HOST;
  self->tensor.data = self->map.data;
  self->tensor.device_type = GST_IMAGING_DL_CPU;
  return IMK_OK;
}

static ImkStatus
map_memory (View *self, ImkError *error)
{
#ifdef HAVE_GST_CUDA
  if (gst_imaging_cuda_is_memory (self->memory)) {
    self->kind = CUDA;
    self->tensor.device_type = GST_IMAGING_DL_CUDA;
    return gst_imaging_cuda_memory_map (self->memory, &self->map,
        &self->tensor.data, &self->tensor.device_id, error);
  }
#endif
  return gst_imaging_memory_is_on_device (self->memory)
             ? map_imaging (self, error)
             : map_host (self, error);
}

static void
unmap_memory (View *self)
{
  switch (self->kind) {
  case IMAGING:
    unmap_imaging (self);
    break;
  case CUDA:
#ifdef HAVE_GST_CUDA
    gst_imaging_cuda_memory_unmap (self->memory, &self->map);
#endif
    break;
  default:
    gst_memory_unmap (self->memory, &self->map);
  }
}

/* --- views ---------------------------------------------------------------- */

static void
delete_view (GstImagingDlTensor *tensor)
{
  View *self = tensor->manager;

  unmap_memory (self);
  gst_memory_unref (self->memory);
  gst_buffer_unref (self->buffer); /* last: its pool expects no mapping */
  g_free (self);
}

/* @skip: (out): bytes of the memory before the elements
 * Returns: (transfer full) (nullable): the memory that holds all of @layout */
static GstMemory *
find_memory (
    GstBuffer *buffer, const Layout *layout, gsize *skip, ImkError *error)
{
  guint first = 0, n = 0;

  if (gst_buffer_find_memory (
          buffer, layout->offset, layout->size, &first, &n, skip) &&
      n == 1)
    return gst_memory_ref (gst_buffer_peek_memory (buffer, first));
  imk_error_set (error, IMK_ERROR_IMAGE,
      "The samples lie in %u memories of the buffer; a view without a copy "
      "needs them in one. Copy the buffer first (gst_buffer_copy_deep ()).",
      n);
  return NULL;
}

static View *
make_view (GstBuffer *buffer, const Layout *layout, ImkError *error)
{
  gsize skip;
  GstMemory *memory = find_memory (buffer, layout, &skip, error);
  View *self;

  if (!memory)
    return NULL;
  self = g_new0 (View, 1);
  self->memory = memory;
  if (map_memory (self, error) != IMK_OK) {
    gst_memory_unref (memory);
    g_free (self);
    return NULL;
  }
  self->buffer = gst_buffer_ref (buffer);
  memcpy (self->shape, layout->shape, sizeof (self->shape));
  memcpy (self->strides, layout->strides, sizeof (self->strides));
  self->tensor.data = (guint8 *) self->tensor.data + skip;
  self->tensor.n_dims = layout->n_dims;
  self->tensor.type_code = layout->type.code;
  self->tensor.type_bits = layout->type.bits;
  self->tensor.type_lanes = 1;
  self->tensor.shape = self->shape;
  self->tensor.strides = self->strides;
  self->tensor.manager = self;
  self->tensor.deleter = delete_view;
  return self;
}

GstImagingDlTensor *
gst_imaging_dlpack_new (
    GstBuffer *buffer, const GstCaps *caps, guint index, GError **error)
{
  Layout layout = {0};
  View *self = NULL;
  ImkError why;

  g_return_val_if_fail (GST_IS_BUFFER (buffer), NULL);

  gst_imaging_init_debug ();
  if (find_layout (&layout, buffer, caps, index, &why) == IMK_OK)
    self = make_view (buffer, &layout, &why);
  if (!self)
    g_set_error_literal (
        error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, why.message);
  return self ? &self->tensor : NULL;
}

void
gst_imaging_dlpack_free (GstImagingDlTensor *self)
{
  if (self)
    self->deleter (self);
}
