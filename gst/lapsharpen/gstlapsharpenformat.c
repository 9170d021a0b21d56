/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstlapsharpenformat.h"

#include <math.h>
#include <stdio.h>

#include "gstimagingarrayfile.h"

/* --- planes --------------------------------------------------------------- */

/* Three components of 10 bits and one of 2 in a word. */
static gboolean
is_packed (const GstVideoFormatInfo *format)
{
  return GST_VIDEO_FORMAT_INFO_FORMAT (format) == GST_VIDEO_FORMAT_RGB10A2_LE ||
         GST_VIDEO_FORMAT_INFO_FORMAT (format) == GST_VIDEO_FORMAT_Y410;
}

/* Which channel of its plane a component is. Rounded up, because GStreamer 1.22
 * has the V of P010, P012 and P016 at byte 1, where U is not over yet. */
static guint
channel_of (const GstVideoFormatInfo *format, guint component)
{
  guint size = GST_VIDEO_FORMAT_INFO_DEPTH (format, component) > 8 ? 2 : 1;

  /* GStreamer describes no places in these words */
  if (GST_VIDEO_FORMAT_INFO_FORMAT (format) == GST_VIDEO_FORMAT_Y410)
    return (const guint[]){1, 0, 2, 3}[component];
  if (is_packed (format))
    return component;
  return (GST_VIDEO_FORMAT_INFO_POFFSET (format, component) + size - 1) / size;
}

/* Cameras put 10, 12 or 14 bits into it, and its caps cannot say so. */
static gboolean
is_camera_format (const GstVideoFormatInfo *format)
{
  return GST_VIDEO_FORMAT_INFO_FORMAT (format) == GST_VIDEO_FORMAT_GRAY16_LE ||
         GST_VIDEO_FORMAT_INFO_FORMAT (format) == GST_VIDEO_FORMAT_GRAY16_BE;
}

static ImkLapsharpenStorage
storage_of (const GstVideoFormatInfo *format)
{
  return is_packed (format) ? IMK_LAPSHARPEN_STORAGE_PACKED_10
         : GST_VIDEO_FORMAT_INFO_FORMAT (format) == GST_VIDEO_FORMAT_GRAY16_BE
             ? IMK_LAPSHARPEN_STORAGE_BIG_ENDIAN
             : IMK_LAPSHARPEN_STORAGE_NATIVE;
}

/* The type, the depth and the channels of the plane of a component. */
static void
describe_samples (const GstVideoFormatInfo *f, guint c,
    const GstLapSharpenSettings *settings, ImkLapsharpenConfig *config)
{
  config->storage = storage_of (f);
  if (is_packed (f)) {
    config->type = IMK_TYPE_U16;
    config->depth = 10;
    config->shift = 0;
    config->channels = 4;
    return;
  }
  config->depth = GST_VIDEO_FORMAT_INFO_DEPTH (f, c);
  config->shift = GST_VIDEO_FORMAT_INFO_SHIFT (f, c);
  config->type = config->depth > 8 ? IMK_TYPE_U16 : IMK_TYPE_U8;
  if (is_camera_format (f) && settings->bit_depth)
    config->depth = settings->bit_depth;
  config->channels =
      GST_VIDEO_FORMAT_INFO_PSTRIDE (f, c) / imk_type_size (config->type);
}

static gboolean
is_limited (const GstVideoInfo *info, const GstLapSharpenSettings *settings)
{
  return settings->range == GST_LAP_SHARPEN_RANGE_LIMITED ||
         (settings->range == GST_LAP_SHARPEN_RANGE_AUTO &&
             info->colorimetry.range == GST_VIDEO_COLOR_RANGE_16_235);
}

/* 16 to 235 of 256, or 240 for chroma. */
static void
set_range (ImkLapsharpenConfig *config, guint channel, gboolean chroma)
{
  guint unit = config->depth >= 8 ? 1u << (config->depth - 8) : 0;

  config->range_low[channel] = 16 * unit;
  config->range_high[channel] = (chroma ? 240 : 235) * unit;
}

void
gst_lap_sharpen_describe_plane (const GstVideoInfo *info, guint plane,
    const GstLapSharpenSettings *settings, ImkLapsharpenConfig *config)
{
  const GstVideoFormatInfo *f = info->finfo;
  gboolean yuv = GST_VIDEO_FORMAT_INFO_IS_YUV (f);
  gboolean luma_only = yuv && settings->planes == GST_LAP_SHARPEN_PLANES_LUMA;

  config->channel_mask = 0;
  config->linear_mask = 0;
  config->alpha_channel = -1;
  memset (config->range_low, 0, sizeof (config->range_low));
  memset (config->range_high, 0, sizeof (config->range_high));
  for (guint c = 0; c < GST_VIDEO_FORMAT_INFO_N_COMPONENTS (f); c++) {
    guint channel = channel_of (f, c);

    if (GST_VIDEO_FORMAT_INFO_PLANE (f, c) != plane)
      continue;
    config->width = GST_VIDEO_FORMAT_INFO_SCALE_WIDTH (f, c, info->width);
    config->height = GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT (f, c, info->height);
    describe_samples (f, c, settings, config);
    if (GST_VIDEO_FORMAT_INFO_HAS_ALPHA (f) && c == GST_VIDEO_COMP_A) {
      config->alpha_channel = channel;
      continue;
    }
    if (!luma_only || c == GST_VIDEO_COMP_Y)
      config->channel_mask |= 1u << channel;
    if (!yuv || c == GST_VIDEO_COMP_Y)
      config->linear_mask |= 1u << channel;
    if (is_limited (info, settings))
      set_range (config, channel, yuv && c != GST_VIDEO_COMP_Y);
  }
}

/* --- tensors -------------------------------------------------------------- */

/* Caps of "width:height" and of a third dimension 1 count as one channel, as
 * in shcentroid. Returns: (transfer full) */
static GstCaps *
name_channels (GstCaps *caps)
{
  const gchar *text =
      gst_structure_get_string (gst_caps_get_structure (caps, 0), "dimensions");
  guint width, height, depth = 1, rest = 1;
  GstCaps *named = gst_caps_copy (caps);

  if (text &&
      sscanf (text, "%u:%u:%u:%u", &width, &height, &depth, &rest) >= 2 &&
      depth == 1 && rest == 1) {
    g_autofree gchar *dimensions = g_strdup_printf ("1:%u:%u:1", width, height);

    gst_caps_set_simple (named, "dimensions", G_TYPE_STRING, dimensions, NULL);
  }
  return named;
}

ImkStatus
gst_lap_sharpen_read_tensor (
    GstCaps *caps, GstImagingPicture *picture, ImkError *error)
{
  GstCaps *named = name_channels (caps);
  ImkStatus status = gst_imaging_picture_from_caps (picture, named, error);

  gst_caps_unref (named);
  if (status == IMK_OK && picture->channels > 4)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A tensor of %u channels cannot be sharpened; there can be 1 to 4. "
        "Split it into several.",
        picture->channels);
  return status;
}

void
gst_lap_sharpen_describe_tensor (
    const GstImagingPicture *picture, ImkLapsharpenConfig *config)
{
  config->width = picture->width;
  config->height = picture->height;
  config->type = IMK_TYPE_F32;
  config->storage = IMK_LAPSHARPEN_STORAGE_NATIVE;
  config->channels = picture->channels;
  config->channel_mask = (1u << picture->channels) - 1;
  config->linear_mask = 0;
  config->alpha_channel = -1;
  memset (config->range_low, 0, sizeof (config->range_low));
  memset (config->range_high, 0, sizeof (config->range_high));
}

/* --- light and masks ------------------------------------------------------ */

static void
make_light (const GstVideoInfo *info, ImkLapsharpenConfig *config,
    GstLapSharpenTables *tables)
{
  GstVideoTransferFunction transfer = info->colorimetry.transfer;
  guint channel = 0, maximum = (1u << config->depth) - 1;
  gdouble low, high;

  while (!(config->linear_mask >> channel & 1))
    channel++;
  low = config->range_low[channel];
  high = config->range_high[channel] ? config->range_high[channel] : maximum;
  tables->decode = g_new (guint16, maximum + 1);
  for (guint v = 0; v <= maximum; v++)
    tables->decode[v] = (guint16) lrint (
        65535 * CLAMP (gst_video_transfer_function_decode (
                           transfer, CLAMP ((v - low) / (high - low), 0, 1)),
                    0, 1));
  tables->encode = g_new (guint16, 65536);
  for (guint l = 0; l < 65536; l++)
    tables->encode[l] = (guint16) lrint (
        low + (high - low) * CLAMP (gst_video_transfer_function_encode (
                                        transfer, l / 65535.0),
                                 0, 1));
}

/* The mask for a plane that may have fewer pixels than the frame. */
static guint8 *
scale_mask (const GstLapSharpenMask *mask, guint width, guint height)
{
  guint8 *scaled = g_new (guint8, (gsize) width * height);

  for (guint y = 0; y < height; y++)
    for (guint x = 0; x < width; x++)
      scaled[(gsize) y * width + x] =
          mask->weights[(gsize) ((guint64) y * mask->height / height) *
                            mask->width +
                        (guint64) x * mask->width / width];
  return scaled;
}

void
gst_lap_sharpen_make_tables (const GstVideoInfo *info, guint plane,
    const GstLapSharpenSettings *settings, ImkLapsharpenConfig *config,
    GstLapSharpenTables *tables)
{
  const GstLapSharpenMask *mask =
      gst_imaging_setting_file_data (settings->mask);

  *tables = (GstLapSharpenTables){NULL};
  if (settings->light == GST_LAP_SHARPEN_LIGHT_LINEAR && config->linear_mask)
    make_light (info, config, tables);
  if (mask)
    tables->mask = scale_mask (mask, config->width, config->height);
  config->decode = tables->decode;
  config->encode = tables->encode;
  config->mask = tables->mask;
}

void
gst_lap_sharpen_clear_tables (GstLapSharpenTables *tables)
{
  g_clear_pointer (&tables->decode, g_free);
  g_clear_pointer (&tables->encode, g_free);
  g_clear_pointer (&tables->mask, g_free);
}

/* Returns: what white is in an array of this type, 0 for types that are no
 * weights */
static gdouble
white_of (GstImagingNdArrayType type)
{
  switch (type) {
  case GST_IMAGING_ND_ARRAY_TYPE_U8:
    return 255;
  case GST_IMAGING_ND_ARRAY_TYPE_U16:
    return 65535;
  case GST_IMAGING_ND_ARRAY_TYPE_BOOL:
  case GST_IMAGING_ND_ARRAY_TYPE_F16:
  case GST_IMAGING_ND_ARRAY_TYPE_F32:
  case GST_IMAGING_ND_ARRAY_TYPE_F64:
    return 1;
  default:
    return 0;
  }
}

gpointer
gst_lap_sharpen_load_mask (
    const gchar *property, const gchar *location, ImkError *error)
{
  g_autoptr (GError) why = NULL;
  g_autoptr (GstImagingNdArray) array =
      gst_imaging_nd_array_load (location, &why);
  g_autofree gdouble *values =
      array ? gst_imaging_nd_array_to_double (array, NULL, &why) : NULL;
  g_autofree gchar *shape = NULL;
  GstLapSharpenMask *mask;
  gdouble white;

  if (!values) {
    imk_error_set (error, IMK_ERROR_FILE, "%s: %s", property, why->message);
    return NULL;
  }
  white = white_of (array->type);
  if (array->n_dims != 2 || white == 0 || array->dims[0] > G_MAXUINT16 ||
      array->dims[1] > G_MAXUINT16) {
    shape = gst_imaging_nd_array_describe (array);
    imk_error_set (error, IMK_ERROR_FILE,
        "mask-location \"%s\" is %s; it must be [height, width] of u8, u16, "
        "bool or floats from 0 to 1.",
        location, shape);
    return NULL;
  }
  mask = g_malloc (sizeof (*mask) + array->n_values);
  mask->height = (guint) array->dims[0];
  mask->width = (guint) array->dims[1];
  for (gsize i = 0; i < array->n_values; i++)
    /* of NaN 0 */
    mask->weights[i] =
        values[i] > 0 ? (guint8) lrint (255 * MIN (values[i] / white, 1)) : 0;
  return mask;
}

ImkStatus
gst_lap_sharpen_check_mask (const GstVideoInfo *info,
    const GstLapSharpenSettings *settings, ImkError *error)
{
  const GstLapSharpenMask *mask =
      gst_imaging_setting_file_data (settings->mask);

  if (!mask || (mask->width == (guint) info->width &&
                   mask->height == (guint) info->height))
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "mask-location \"%s\" has %u x %u pixels, the frames have %d x %d. Take a "
      "mask of their size.",
      settings->mask->location, mask->width, mask->height, info->width,
      info->height);
}

/* --- areas ---------------------------------------------------------------- */

/* The region of the properties, right of the split. */
static ImkLapsharpenArea
get_region (const GstVideoInfo *info, const GstLapSharpenSettings *s)
{
  guint split = (guint) floor (s->split * info->width + 0.5);
  guint left = MAX (s->x, split);
  guint64 right = s->width ? (guint64) s->x + s->width : G_MAXUINT32;

  return (ImkLapsharpenArea){left, s->y,
      right > left ? (guint) MIN (right - left, G_MAXUINT32) : 0,
      s->height ? s->height : G_MAXUINT32};
}

static ImkLapsharpenArea
intersect (const ImkLapsharpenArea *a, const ImkLapsharpenArea *b)
{
  guint x = MAX (a->x, b->x), y = MAX (a->y, b->y);
  guint64 right = MIN ((guint64) a->x + a->width, (guint64) b->x + b->width);
  guint64 bottom = MIN ((guint64) a->y + a->height, (guint64) b->y + b->height);

  return (ImkLapsharpenArea){x, y, right > x ? (guint) (right - x) : 0,
      bottom > y ? (guint) (bottom - y) : 0};
}

gboolean
gst_lap_sharpen_get_areas (const GstVideoInfo *info,
    const GstLapSharpenSettings *settings, GstBuffer *buffer,
    GstLapSharpenAreas *areas)
{
  ImkLapsharpenArea region = get_region (info, settings);
  gpointer state = NULL;
  GstMeta *meta;
  gboolean fits = TRUE;

  memset (areas, 0, sizeof (*areas)); /* padding as well: it is compared */
  if (!settings->roi_meta) {
    areas->n = settings->x || settings->y || settings->width ||
               settings->height || settings->split > 0;
    areas->areas[0] = region;
    return TRUE;
  }
  while (buffer && (meta = gst_buffer_iterate_meta_filtered (buffer, &state,
                        GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE))) {
    const GstVideoRegionOfInterestMeta *roi =
        (const GstVideoRegionOfInterestMeta *) meta;
    ImkLapsharpenArea area = {roi->x, roi->y, roi->w, roi->h};

    fits = areas->n < IMK_LAPSHARPEN_MAX_AREAS;
    if (!fits)
      break;
    areas->areas[areas->n++] = intersect (&area, &region);
  }
  if (areas->n == 0)
    areas->n = 1; /* an empty one: sharpen nothing */
  return fits;
}

void
gst_lap_sharpen_set_areas (const GstVideoInfo *info,
    const GstLapSharpenAreas *areas, ImkLapsharpenConfig *config)
{
  config->n_areas = areas->n;
  for (guint i = 0; i < areas->n; i++) {
    const ImkLapsharpenArea *a = &areas->areas[i];
    guint64 right = MIN ((guint64) a->x + a->width, (guint64) info->width);
    guint64 bottom = MIN ((guint64) a->y + a->height, (guint64) info->height);
    guint64 x = (guint64) a->x * config->width / info->width;
    guint64 y = (guint64) a->y * config->height / info->height;

    /* a pixel of chroma belongs to an area as soon as one of its luma does */
    right = gst_util_uint64_scale_ceil (right, config->width, info->width);
    bottom = gst_util_uint64_scale_ceil (bottom, config->height, info->height);
    config->areas[i] = (ImkLapsharpenArea){(guint) x, (guint) y,
        a->width && right > x ? (guint) (right - x) : 0,
        a->height && bottom > y ? (guint) (bottom - y) : 0};
  }
}
