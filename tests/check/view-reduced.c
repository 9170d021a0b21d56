/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures that are smaller than the frame are box means of its samples. */
#include "check-common.h"

#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <math.h>
#include <poll.h>
#include <string.h>

#include "gstimagingview.h"

/* --- pictures ------------------------------------------------------------- */

/* Returns: (transfer full): the message of a picture with @wanted */
static GBytes *
message_of (GstSample *sample, const GstImagingViewSettings *wanted)
{
  g_autoptr (GstPad) pad = gst_pad_new ("src", GST_PAD_SRC);
  g_autoptr (GstImagingView) view = gst_imaging_view_new (pad, 1);
  struct pollfd p = {gst_imaging_view_get_fd (view), POLLIN, 0};
  GError *error = NULL;
  GBytes *message;

  fail_unless (gst_imaging_view_set (view, wanted, NULL));
  gst_imaging_view_show (view, sample);
  gst_imaging_view_allow (view, 1);
  fail_unless_equals_int (poll (&p, 1, (int) (CHECK_TIMEOUT / GST_MSECOND)), 1);
  message = gst_imaging_view_take (view, &error);
  fail_unless (message != NULL, "%s", error ? error->message : "no picture");
  return message;
}

/* Returns: (transfer full): of the JPEG behind a header, in RGB */
static GstSample *
decode (GBytes *message)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (message, &size);
  const gsize begin = 4 + GST_READ_UINT32_LE (data);
  g_autoptr (GstElement) pipeline = gst_parse_launch (
      "appsrc name=in caps=image/jpeg ! jpegdec idct-method=islow ! "
      "videoconvert ! appsink name=out sync=false "
      "caps=video/x-raw,format=RGB",
      NULL);
  g_autoptr (GstElement) in = gst_bin_get_by_name (GST_BIN (pipeline), "in");
  g_autoptr (GstElement) out = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  GstBuffer *jpeg = gst_buffer_new_allocate (NULL, size - begin, NULL);
  GstSample *sample;

  gst_buffer_fill (jpeg, 0, data + begin, size - begin);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  gst_app_src_push_buffer (GST_APP_SRC (in), jpeg);
  gst_app_src_end_of_stream (GST_APP_SRC (in));
  sample = gst_app_sink_try_pull_sample (GST_APP_SINK (out), CHECK_TIMEOUT);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  fail_unless (sample != NULL);
  return sample;
}

/* Returns: (transfer full): [height][width][3] */
static guint8 *
picture_of (GBytes *message, guint width, guint height)
{
  g_autoptr (GstSample) sample = decode (message);
  guint8 *pixels = g_malloc ((gsize) width * height * 3);
  GstVideoInfo info;
  GstVideoFrame frame;

  fail_unless (gst_video_info_from_caps (&info, gst_sample_get_caps (sample)));
  fail_unless_equals_int (info.width, (gint) width);
  fail_unless_equals_int (info.height, (gint) height);
  fail_unless (gst_video_frame_map (
      &frame, &info, gst_sample_get_buffer (sample), GST_MAP_READ));
  for (guint y = 0; y < height; y++)
    memcpy (pixels + (gsize) y * width * 3,
        (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, 0) +
            (gsize) y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0),
        width * 3);
  gst_video_frame_unmap (&frame);
  return pixels;
}

/* --- frames --------------------------------------------------------------- */

typedef enum {
  U8,
  U16,
  I8,
  I16,
  U32,
  I32,
  U64,
  I64,
  F32,
  F64,
} Type;

static const struct {
  const gchar *name;
  gsize size;
} types[] = {
    [U8] = {"uint8", 1},
    [U16] = {"uint16", 2},
    [I8] = {"int8", 1},
    [I16] = {"int16", 2},
    [U32] = {"uint32", 4},
    [I32] = {"int32", 4},
    [U64] = {"uint64", 8},
    [I64] = {"int64", 8},
    [F32] = {"float32", 4},
    [F64] = {"float64", 8},
};

static void
store (Type type, gpointer to, gsize i, gdouble v)
{
  switch (type) {
  case U8:
    ((guint8 *) to)[i] = (guint8) v;
    break;
  case U16:
    ((guint16 *) to)[i] = (guint16) v;
    break;
  case I8:
    ((gint8 *) to)[i] = (gint8) v;
    break;
  case U32:
    ((guint32 *) to)[i] = (guint32) v;
    break;
  case I64:
    ((gint64 *) to)[i] = (gint64) v;
    break;
  case I16:
    ((gint16 *) to)[i] = (gint16) v;
    break;
  case I32:
    ((gint32 *) to)[i] = (gint32) v;
    break;
  case U64:
    ((guint64 *) to)[i] = (guint64) v;
    break;
  case F32:
    ((gfloat *) to)[i] = (gfloat) v;
    break;
  case F64:
    ((gdouble *) to)[i] = v;
    break;
  }
}

/* Returns: (transfer full): an array of @type with these samples */
static GstSample *
sample_of (Type type, const gdouble *samples, guint channels, guint width,
    guint height)
{
  const gsize n = (gsize) channels * width * height;
  g_autofree gchar *text =
      g_strdup_printf ("other/tensors,format=static,num_tensors=1,types=%s,"
                       "dimensions=%u:%u:%u:1,framerate=0/1",
          types[type].name, channels, width, height);
  g_autoptr (GstCaps) caps = gst_caps_from_string (text);
  g_autoptr (GstBuffer) buffer =
      gst_buffer_new_allocate (NULL, n * types[type].size, NULL);
  GstMapInfo map;

  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  for (gsize i = 0; i < n; i++)
    store (type, map.data, i, samples[i]);
  gst_buffer_unmap (buffer, &map);
  return gst_sample_new (buffer, caps, NULL, NULL);
}

/* Of sample @at in pixel @pixel of @n_pixels over @n samples */
static gdouble
part_of (guint at, guint pixel, guint n, guint n_pixels)
{
  const gdouble scale = n / (gdouble) n_pixels;

  return fmax (
      0, fmin (at + 1, (pixel + 1) * scale) - fmax (at, pixel * scale));
}

/* The reference, from its definition. NaN: there is no number */
static gdouble
mean_of (const gdouble *samples, guint channels, guint c, guint width,
    guint height, guint x, guint y, guint to_width, guint to_height)
{
  gdouble sum = 0, area = 0;

  for (guint j = 0; j < height; j++)
    for (guint i = 0; i < width; i++) {
      const gdouble part =
          part_of (i, x, width, to_width) * part_of (j, y, height, to_height);
      const gdouble v = samples[((gsize) j * width + i) * channels + c];

      if (part > 0 && !isnan (v)) {
        sum += part * v;
        area += part;
      }
    }
  return area > 0 ? sum / area : (gdouble) NAN;
}

/* --- tests ---------------------------------------------------------------- */

#define WIDTH 93 /* to 40 x 30: 2.325 samples of each axis a pixel */
#define HEIGHT 70

/* Spikes on a ramp: no sample is near the mean of its pixel. */
static void
fill (gdouble *samples, guint channels)
{
  for (guint i = 0; i < WIDTH * HEIGHT * channels; i++)
    samples[i] = (i / channels % WIDTH) / 2 + 40 * (i % channels) +
                 (i / channels * 7 % 5 == 0 ? 60 : 0);
}

static void
compare (Type type, guint channels, guint left, guint top)
{
  const guint width = WIDTH - left, height = HEIGHT - top;
  g_autofree gdouble *samples = g_new (gdouble, WIDTH * HEIGHT * channels);
  g_autoptr (GstSample) sample = NULL;
  g_autoptr (GBytes) message = NULL;
  g_autofree guint8 *pixels = NULL;
  GstImagingViewSettings wanted;

  fill (samples, channels);
  sample = sample_of (type, samples, channels, WIDTH, HEIGHT);
  gst_imaging_view_settings_init (&wanted);
  wanted.width = 40;
  wanted.height = 30;
  wanted.quality = 100;
  wanted.window = 255;
  wanted.level = 127.5;
  wanted.crop = (GstImagingViewRectangle){left, top, width, height};
  message = message_of (sample, &wanted);
  pixels = picture_of (message, 40, 30);
  for (guint y = 0; y < height; y++) /* the crop alone, for the reference */
    memmove (samples + (gsize) y * width * channels,
        samples + ((gsize) (y + top) * WIDTH + left) * channels,
        width * channels * sizeof (*samples));
  for (guint y = 0; y < 30; y++)
    for (guint x = 0; x < 40; x++) {
      const gdouble mean =
          mean_of (samples, channels, 0, width, height, x, y, 40, 30);
      const guint got = pixels[(y * 40 + x) * 3];

      /* half a level by rounding, 1 by the JPEG */
      fail_unless (fabs (got - mean) <= 1.5, "%s at (%u, %u): %u, not %g",
          types[type].name, x, y, got, mean);
    }
}

CHECK_TEST (test_pixels_are_box_means)
{
  for (Type type = U8; type <= F64; type++) {
    compare (type, 1, 0, 0);
    compare (type, 1, 5, 4);
  }
  compare (F32, 2, 5, 4);
}

/* Fringes of 3.25 samples at 3.6 samples a pixel: nearest samples show slow
 * fringes of the full amplitude, 106. */
CHECK_TEST (test_no_false_fringes)
{
  const guint width = 2304, height = 1728, to_width = 640, to_height = 480;
  g_autofree gdouble *samples = g_new (gdouble, (gsize) width * height);
  g_autoptr (GstSample) sample = NULL;
  g_autoptr (GBytes) message = NULL;
  g_autofree guint8 *pixels = NULL;
  GstImagingViewSettings wanted;

  for (guint y = 0; y < height; y++)
    for (guint x = 0; x < width; x++)
      samples[(gsize) y * width + x] =
          rint (128 + 106 * sin (2 * G_PI * x / 3.25));
  sample = sample_of (U8, samples, 1, width, height);
  gst_imaging_view_settings_init (&wanted);
  wanted.quality = 100;
  wanted.window = 255;
  wanted.level = 127.5;
  message = message_of (sample, &wanted);
  pixels = picture_of (message, to_width, to_height);
  for (guint x = 0; x < to_width; x++) {
    const gdouble mean = mean_of (samples, 1, 0, width, 1, x, 0, to_width, 1);

    fail_unless (fabs (mean - 128) < 25, "the reference has fringes");
    fail_unless (fabs (pixels[(100 * to_width + x) * 3] - mean) <= 1.5,
        "column %u: %u, not %g", x, pixels[(100 * to_width + x) * 3], mean);
  }
}

/* Returns: (transfer full): of a frame of 48 x 48 in 12 x 12 pixels */
static guint8 *
small_picture_of (
    const gdouble *samples, const gchar *colours, const gchar *header_words)
{
  g_autoptr (GstSample) sample = sample_of (F64, samples, 1, 48, 48);
  g_autoptr (GBytes) message = NULL;
  g_autofree gchar *header = NULL;
  GstImagingViewSettings wanted;

  gst_imaging_view_settings_init (&wanted);
  wanted.width = wanted.height = 12;
  wanted.quality = 100;
  wanted.clip = 0;
  fail_unless (
      gst_imaging_view_settings_set (&wanted, "colours", colours, NULL));
  message = message_of (sample, &wanted);
  header = g_strndup ((const gchar *) g_bytes_get_data (message, NULL) + 4,
      GST_READ_UINT32_LE (g_bytes_get_data (message, NULL)));
  fail_unless (strstr (header, header_words) != NULL, "%s", header);
  return picture_of (message, 12, 12);
}

/* Wherever it is: its light is in the pixels that it touches. The
 * range of samples is that of the frame, not of the means. */
CHECK_TEST (test_a_hot_spot_is_not_lost)
{
  for (guint at = 16; at < 24; at++) {
    gdouble samples[48 * 48] = {0};
    g_autofree guint8 *pixels = NULL;
    guint sum = 0;

    for (guint i = 0; i < 4; i++)
      samples[(at + i / 2) * 48 + at + i % 2] = 255;
    pixels = small_picture_of (samples, "grey",
        "\"window\":255,\"level\":127.5,\"minimum\":0,\"maximum\":255");
    for (guint i = 0; i < 12 * 12; i++)
      sum += pixels[i * 3] > 8 ? pixels[i * 3] : 0;
    fail_unless (ABS ((gint) sum - 64) <= 8, "spot at %u: %u", at, sum);
  }
}

/* One NaN of 16 samples changes nothing; a pixel of nothing else is violet, and
 * infinities are no NaN. */
CHECK_TEST (test_means_leave_out_nan)
{
  gdouble samples[48 * 48];
  g_autofree guint8 *pixels = NULL;
  const guint8 *p;

  for (guint i = 0; i < 48 * 48; i++)
    samples[i] = i % 48 < 24 ? 0 : 200;
  samples[10 * 48 + 9] = NAN;
  samples[10 * 48 + 41] = INFINITY;
  for (guint y = 16; y < 48; y++) /* as large as a block of the JPEG */
    for (guint x = 0; x < 32; x++)
      samples[y * 48 + x] = NAN;
  pixels = small_picture_of (samples, "grey",
      "\"window\":200,\"level\":100,\"minimum\":0,\"maximum\":200");
  p = pixels + (2 * 12 + 2) * 3;
  fail_unless (
      p[0] < 10 && p[1] < 10 && p[2] < 10, "%u %u %u", p[0], p[1], p[2]);
  p = pixels + (2 * 12 + 10) * 3;
  fail_unless (
      p[0] > 245 && p[1] > 245 && p[2] > 245, "%u %u %u", p[0], p[1], p[2]);
  p = pixels + (8 * 12 + 3) * 3;
  fail_unless (
      ABS (p[0] - 0x60) < 8 && ABS (p[1] - 0x40) < 8 && ABS (p[2] - 0x80) < 8,
      "%u %u %u", p[0], p[1], p[2]);
}

/* The largest doubles: no sum of them overflows. */
CHECK_TEST (test_means_of_huge_samples)
{
  gdouble samples[48 * 48];
  g_autofree guint8 *pixels = NULL;

  for (guint i = 0; i < 48 * 48; i++)
    samples[i] = i % 2 ? G_MAXDOUBLE : -G_MAXDOUBLE;
  pixels = small_picture_of (samples, "grey", "\"level\":0,");
  for (guint i = 0; i < 12 * 12; i++)
    fail_unless (ABS (pixels[3 * i] - 128) <= 2, "%u", pixels[3 * i]);
}

/* Rounding errors of its mean would be all that the automatic window shows. */
CHECK_TEST (test_a_constant_frame_stays_constant)
{
  gdouble samples[48 * 48];
  g_autofree guint8 *pixels = NULL;
  GstImagingViewSettings wanted;
  g_autoptr (GstSample) sample = NULL;
  g_autoptr (GBytes) message = NULL;

  for (guint i = 0; i < 48 * 48; i++)
    samples[i] = 0.1;
  sample = sample_of (F64, samples, 1, 48, 48);
  gst_imaging_view_settings_init (&wanted);
  wanted.width = wanted.height = 40; /* whole blocks of the JPEG */
  message = message_of (sample, &wanted);
  pixels = picture_of (message, 40, 40);
  for (guint i = 1; i < 40 * 40; i++)
    fail_unless_equals_int (pixels[3 * i], pixels[0]);
}

/* What is beside a picture in the last block of a row shows in the block: at a
 * low quality by tens. */
CHECK_TEST (test_the_right_edge_has_no_stripes)
{
  static const gchar *const colours[] = {"grey", "viridis"};
  enum { MOST = 48, ROWS = 21 };
  gdouble samples[MOST * ROWS];

  for (guint i = 0; i < MOST * ROWS; i++)
    samples[i] = 200;
  for (guint k = 0; k < G_N_ELEMENTS (colours); k++)
    for (guint width = 33; width <= MOST; width++) {
      g_autoptr (GstSample) sample = sample_of (U8, samples, 1, width, ROWS);
      g_autoptr (GBytes) message = NULL;
      g_autofree guint8 *pixels = NULL;
      GstImagingViewSettings wanted;

      gst_imaging_view_settings_init (&wanted);
      fail_unless (
          gst_imaging_view_settings_set (&wanted, "colours", colours[k], NULL));
      wanted.window = 255;
      wanted.level = 127.5;
      wanted.quality = 50;
      message = message_of (sample, &wanted);
      pixels = picture_of (message, width, ROWS);
      for (guint i = 3; i < 3 * width * ROWS; i++)
        fail_unless (ABS (pixels[i] - pixels[i % 3]) <= 1,
            "%s, %u columns: %u at sample %u of row %u, %u at its left",
            colours[k], width, pixels[i], i % (3 * width), i / (3 * width),
            pixels[i % 3]);
    }
}

/* The mean of -179 and 179 degrees is not 0: angles are the nearest samples. */
CHECK_TEST (test_angles_are_not_averaged)
{
  gdouble samples[48 * 48];
  g_autofree guint8 *pixels = NULL;

  for (guint i = 0; i < 48 * 48; i++)
    samples[i] = i % 2 ? 3.1 : -3.1;
  pixels =
      small_picture_of (samples, "phase", "\"minimum\":-3.1,\"maximum\":3.1");
  for (guint i = 0; i < 12 * 12;
       i++) /* all are an end of the map, not its middle */
    fail_unless (ABS (pixels[3 * i] - pixels[0]) < 8);
}
