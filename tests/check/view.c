/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures of the frames that pass a pad: true samples, sections of volumes,
 * and that a viewer costs the pipeline nothing but the frames it sees. */
#define _GNU_SOURCE /* SCHED_BATCH */
#include "check-common.h"

#include <gst/app/gstappsink.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#ifdef __linux__
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "gstimagingquantity.h"
#include "gstimagingtap.h"
#include "gstimagingview.h"

/* --- a pad that frames pass ----------------------------------------------- */

static GstStaticPadTemplate any = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
static GstPad *src, *sink;

static GstFlowReturn
drop (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

static void
set_caps (const gchar *text)
{
  g_autoptr (GstCaps) caps = gst_caps_from_string (text);

  gst_pad_push_event (src, gst_event_new_caps (caps));
}

static void
open_pads (const gchar *caps)
{
  GstSegment segment;

  src = gst_pad_new ("src", GST_PAD_SRC);
  sink = gst_pad_new_from_static_template (&any, "sink");
  gst_pad_set_chain_function (sink, drop);
  gst_pad_link (src, sink);
  gst_pad_set_active (sink, TRUE);
  gst_pad_set_active (src, TRUE);
  gst_pad_push_event (src, gst_event_new_stream_start ("test"));
  set_caps (caps);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (src, gst_event_new_segment (&segment));
}

static void
close_pads (void)
{
  gst_pad_set_active (src, FALSE);
  gst_pad_set_active (sink, FALSE);
  gst_object_unref (src);
  gst_object_unref (sink);
}

/* --- settings of a view --------------------------------------------------- */

static GstImagingViewSettings wanted;

static GstImagingView *
view_of_src (guint id)
{
  gst_imaging_view_settings_init (&wanted);
  return gst_imaging_view_new (src, id);
}

/* What @wanted is now. */
static void
set (GstImagingView *view)
{
  GError *error = NULL;

  fail_unless (gst_imaging_view_set (view, &wanted, &error), "%s",
      error ? error->message : "");
}

/* Of @wanted, by name */
static void
want (const gchar *name, const gchar *text)
{
  GError *error = NULL;

  fail_unless (gst_imaging_view_settings_set (&wanted, name, text, &error),
      "%s", error ? error->message : "");
}

static void
set_rate (GstImagingView *view, gdouble rate)
{
  wanted.rate = rate;
  set (view);
}

static void
set_values (GstImagingView *view, guint x, guint y, guint width, guint height)
{
  wanted.values = (GstImagingViewRectangle){x, y, width, height};
  set (view);
}

static void
set_volume (GstImagingView *view, guint n, const gchar *section, guint place)
{
  wanted.n_slices = n;
  want ("section", section);
  wanted.place = place;
  set (view);
}

/* --- pictures ------------------------------------------------------------- */

static gboolean
can_read (gint fd, gint timeout_ms)
{
  struct pollfd p = {fd, POLLIN, 0};

  return poll (&p, 1, timeout_ms) == 1;
}

/* Returns: (transfer full): the header, and with it that a JPEG is behind it */
static gchar *
take_header (GstImagingView *view)
{
  GError *error = NULL;
  g_autoptr (GBytes) message = NULL;
  const guint8 *data;
  gsize size;
  guint32 n;
  gchar *header;

  fail_unless (can_read (gst_imaging_view_get_fd (view), 20000));
  message = gst_imaging_view_take (view, &error);
  fail_unless (message != NULL, "%s", error ? error->message : "no picture");
  data = g_bytes_get_data (message, &size);
  n = GST_READ_UINT32_LE (data);
  fail_unless (size > 4 + n + 4);
  header = g_strndup ((const gchar *) data + 4, n);
  fail_unless (data[4 + n] == 0xff && data[5 + n] == 0xd8, "no JPEG");
  return header;
}

static void
check_has (const gchar *header, const gchar *words)
{
  fail_unless (strstr (header, words) != NULL, "no %s in %s", words, header);
}

/* The picture of @buffer (transfer full). */
static gchar *
picture_of (GstImagingView *view, GstBuffer *buffer)
{
  gint64 begin = g_get_monotonic_time ();

  gst_imaging_view_allow (view, 1);
  while (!can_read (gst_imaging_view_get_fd (view), 5)) {
    fail_unless (
        g_get_monotonic_time () - begin < (gint64) (CHECK_TIMEOUT / 1000));
    gst_pad_push (src, gst_buffer_ref (buffer));
  }
  gst_buffer_unref (buffer);
  return take_header (view);
}

static GstBuffer *
buffer_of (gconstpointer samples, gsize size, guint64 number)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, size, NULL);

  gst_buffer_fill (buffer, 0, samples, size);
  GST_BUFFER_OFFSET (buffer) = number;
  GST_BUFFER_PTS (buffer) = number * GST_MSECOND;
  return buffer;
}

#define GREY16 \
  "video/x-raw,format=" GST_VIDEO_NE (GRAY16) ",width=4,height=2,framerate=0/1"

CHECK_TEST (test_samples_and_window)
{
  const guint16 samples[] = {0, 1, 2, 3, 1000, 40000, 65535, 7};
  const GstImagingAxis axes[] = {
      {"lateral", "um", 5.5, 0}, {"depth", "um", 2, -4}};
  GstBuffer *buffer;
  GstImagingView *view;
  gchar *header;

  open_pads (GREY16);
  view = view_of_src (3);
  set_values (view, 1, 1, 2, 9);
  buffer = buffer_of (samples, sizeof (samples), 42);
  gst_imaging_quantity_attach (buffer, "level", "dB", 0.5, -10, axes, 2);
  header = picture_of (view, buffer);
  check_has (header, "{\"view\":3,\"serial\":0,\"frame\":42,\"pts\":42000000,"
                     "\"width\":4,\"height\":2,\"source\":[4,2],"
                     "\"crop\":[0,0,4,2],");
  check_has (header, "\"minimum\":0,\"maximum\":65535,\"type\":\"u16\"");
  check_has (
      header, "\"values\":{\"crop\":[1,1,2,1],\"samples\":[[40000,65535]]}");
  check_has (header,
      "\"quantity\":{\"name\":\"level\",\"unit\":\"dB\",\"scale\":0.5,"
      "\"offset\":-10}");
  check_has (header, ",{\"name\":\"depth\",\"unit\":\"um\",\"step\":2,"
                     "\"origin\":-4}]");
  g_free (header);

  wanted.window = 100;
  wanted.level = 50;
  wanted.crop = (GstImagingViewRectangle){1, 0, 2, 2};
  want ("colours", "viridis");
  set_values (view, 0, 0, 0, 0);
  header = picture_of (view, buffer_of (samples, sizeof (samples), 43));
  check_has (header, "\"width\":2,\"height\":2,\"source\":[4,2],"
                     "\"crop\":[1,0,2,2],\"window\":100,\"level\":50,"
                     "\"minimum\":1,\"maximum\":65535");
  check_has (header, "\"colours\":\"viridis\"");
  check_has (header, "\"quantity\":null,\"axes\":null,\"values\":null");
  g_free (header);
  g_object_unref (view);
  close_pads ();
}

/* A double, and with it JavaScript, rounds them. */
CHECK_TEST (test_whole_numbers_of_64_bits)
{
  static const gchar *const of_sections[] = {
      ("[[\"9007199254740993\",\"-9223372036854775808\"],"
       "[\"9223372036854775807\",-9007199254740991]]"),      /* frame */
      "[[\"9007199254740993\",\"-9223372036854775808\"]]",   /* row */
      "[[\"9007199254740993\"],[\"9223372036854775807\"]]"}; /* column */
  static const gchar *const of_profiles[] = {
      "[\"-9223372036854775808\",\"9223372036854775807\"]", /* frame */
      "[\"-9223372036854775808\",null]",                    /* row */
      "[null,\"9223372036854775807\"]"};                    /* column */
  static const gchar *const sections[] = {"frame", "row", "column"};
  const gint64 samples[] = {G_GINT64_CONSTANT (9007199254740993), G_MININT64,
      G_MAXINT64, G_GINT64_CONSTANT (-9007199254740991)};
  GstImagingView *view;

  open_pads ("other/tensors,format=static,num-tensors=1,types=int64,"
             "dimensions=1:2:2:1,framerate=0/1");
  view = view_of_src (1);
  for (guint i = 0; i < G_N_ELEMENTS (sections); i++) {
    gchar *header;

    want ("section", sections[i]);
    wanted.n_slices = i > 0 ? 1 : 0;
    wanted.profile = (GstImagingViewLine){1, 0, 0, 1};
    set_values (view, 0, 0, 2, 2);
    header = picture_of (view, buffer_of (samples, sizeof (samples), i));
    check_has (header, of_sections[i]);
    check_has (header, of_profiles[i]);
    g_free (header);
  }
  g_object_unref (view);
  close_pads ();
}

/* A frame that has passed before the view was made, and none after it. */
CHECK_TEST (test_a_frame_can_be_shown)
{
  const guint16 samples[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  GstBuffer *buffer;
  GstImagingView *view;
  GstSample *sample;
  gchar *header;

  open_pads (GREY16);
  buffer = buffer_of (samples, sizeof (samples), 7);
  sample = gst_sample_new (buffer, gst_pad_get_current_caps (src), NULL, NULL);
  gst_caps_unref (gst_sample_get_caps (sample)); /* the sample has one */
  gst_buffer_unref (buffer);
  view = view_of_src (1);
  gst_imaging_view_allow (view, 1);
  gst_imaging_view_show (view, sample);
  gst_imaging_view_show (view, sample); /* the newest counts */
  gst_sample_unref (sample);
  header = take_header (view);
  check_has (header, "\"frame\":7,");
  check_has (header, "\"minimum\":0,\"maximum\":7,");
  g_free (header);
  /* frames that pass take its place */
  header = picture_of (view, buffer_of (samples, sizeof (samples), 8));
  check_has (header, "\"frame\":8,");
  g_free (header);
  g_object_unref (view);
  close_pads ();
}

/* 1000 samples: five at each end are left out. */
CHECK_TEST (test_the_automatic_window_leaves_out_half_a_percent)
{
  guint16 samples[1000];
  GstImagingView *view;
  gchar *header;

  for (guint i = 0; i < 1000; i++)
    samples[i] = (guint16) (7 * i % 1000);
  open_pads ("video/x-raw,format=" GST_VIDEO_NE (
      GRAY16) ",width=1000,height=1,framerate=0/1");
  view = view_of_src (1);
  wanted.width = wanted.height = 1000;
  set (view);
  header = picture_of (view, buffer_of (samples, sizeof (samples), 0));
  check_has (header, "\"window\":989,\"level\":499.5,");
  g_free (header);
  g_object_unref (view);
  close_pads ();
}

/* Spots of a pitch that divides the width: a sixteenth of the samples. */
CHECK_TEST (test_the_automatic_window_sees_all_columns)
{
  static const guint sizes[][2] = {
      {512, 512}, {1024, 1024}, {1280, 1024}, {2048, 2048}};

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    const guint width = sizes[i][0], height = sizes[i][1];
    const gsize n = (gsize) width * height;
    g_autofree guint16 *samples = g_new (guint16, n);
    g_autofree gchar *caps =
        g_strdup_printf ("video/x-raw,format=" GST_VIDEO_NE (
                             GRAY16) ",width=%u,height=%u,framerate=0/1",
            width, height);
    GstImagingView *view;
    gchar *header;

    for (guint y = 0; y < height; y++)
      for (guint x = 0; x < width; x++)
        samples[(gsize) y * width + x] =
            (x % 16) / 4 == 2 && (y % 16) / 4 == 2 ? 2000 : 100;
    open_pads (caps);
    view = view_of_src (1);
    wanted.width = width;
    wanted.height = height;
    wanted.n_bins = 4;
    set (view);
    header = picture_of (view, buffer_of (samples, 2 * n, 0));
    check_has (header, "\"window\":1900,\"level\":1050,");
    g_free (header);
    g_object_unref (view);
    close_pads ();
  }
}

CHECK_TEST (test_types_of_samples)
{
  const gfloat floats[] = {0.25f, NAN, -3, INFINITY};
  const gint16 shorts[] = {-5, 4, 3, 2};
  const guint16 halves[] = {0x3c00, 0xc000, 0x7c00, 0x0001};
  const guint8 colours[] = {1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12, 0, 0};
  GstImagingView *view;
  gchar *header;

  open_pads ("other/tensors,format=static,num_tensors=1,types=float32,"
             "dimensions=2:2:1:1,framerate=0/1");
  view = view_of_src (1);
  set_values (view, 0, 0, 2, 2);
  header = picture_of (view, buffer_of (floats, sizeof (floats), 0));
  check_has (header, "\"samples\":[[0.25,\"nan\"],[-3,\"inf\"]]");
  check_has (header, "\"minimum\":-3,\"maximum\":0.25,\"type\":\"f32\"");
  g_free (header);
  set_caps ("other/tensors,format=static,num_tensors=1,types=int16,"
            "dimensions=2:2:1:1,framerate=0/1");
  header = picture_of (view, buffer_of (shorts, sizeof (shorts), 0));
  check_has (header, "\"samples\":[[-5,4],[3,2]]");
  g_free (header);
  set_caps ("other/tensors,format=static,num_tensors=1,types=float16,"
            "dimensions=2:2:1:1,framerate=0/1");
  header = picture_of (view, buffer_of (halves, sizeof (halves), 0));
  check_has (header, "\"samples\":[[1,-2],[\"inf\",5.960464477539063e-08]]");
  g_free (header);
  set_caps ("video/x-raw,format=RGB,width=2,height=2,framerate=25/1");
  header = picture_of (view, buffer_of (colours, sizeof (colours), 0));
  check_has (header, "\"samples\":[[[1,2,3],[4,5,6]],[[7,8,9],[10,11,12]]]");
  g_free (header);
  set_caps ("video/x-raw,format=I420,width=4,height=2,framerate=25/1");
  header = picture_of (view, buffer_of (colours, 16, 0));
  check_has (header, "\"source\":[4,2]");
  check_has (header, "\"type\":\"u8\",\"channels\":3");
  g_free (header);
  set_caps ("video/x-raw,format=NV12,width=4,height=2,framerate=30000/1001,"
            "interlace-mode=interleaved");
  header = picture_of (view, buffer_of (colours, 16, 0));
  check_has (header, "\"type\":\"u8\",\"channels\":3");
  g_free (header);
  g_object_unref (view);
  close_pads ();
}

/* --- video as it is stored ------------------------------------------------ */

/* The header of a frame of 4 x 2 of @format that begins with @bytes. */
static gchar *
video_header (const gchar *format, const guint8 *bytes, gsize n)
{
  g_autofree gchar *caps = g_strdup_printf (
      "video/x-raw,format=%s,width=4,height=2,framerate=25/1", format);
  guint8 samples[256] = {0};
  GstImagingView *view;
  gchar *header;

  memcpy (samples, bytes, n);
  open_pads (caps);
  view = view_of_src (1);
  set_values (view, 0, 0, 4, 2);
  header = picture_of (view, buffer_of (samples, sizeof (samples), 0));
  g_object_unref (view);
  close_pads ();
  return header;
}

CHECK_TEST (test_video_tells_what_it_stores){
    static const struct {const gchar * format, *type, *components, *samples;
guint8 bytes[64];
}
cases[] = {
    {"GRAY16_BE", "u16", "null", "[[1,256,65535,2],[772,0,0,513]]",
        {0, 1, 1, 0, 255, 255, 0, 2, 3, 4, 0, 0, 0, 0, 2, 1}},
    {"I420", "u8", "[\"Y\",\"U\",\"V\"]",
        "[[[16,90,240],[17,90,240],[18,91,241],[235,91,241]],"
        "[[20,90,240],[21,90,240],[22,91,241],[23,91,241]]]",
        {16, 17, 18, 235, 20, 21, 22, 23, 90, 91, 0, 0, 240, 241}},
    {"NV12", "u8", "[\"Y\",\"U\",\"V\"]",
        "[[[16,90,240],[17,90,240],[18,91,241],[235,91,241]],"
        "[[20,90,240],[21,90,240],[22,91,241],[23,91,241]]]",
        {16, 17, 18, 235, 20, 21, 22, 23, 90, 240, 91, 241}},
    {"YUY2", "u8", "[\"Y\",\"U\",\"V\"]",
        "[[[1,2,4],[3,2,4],[5,6,8],[7,6,8]],"
        "[[9,10,12],[11,10,12],[13,14,16],[15,14,16]]]",
        {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
    /* ten bits in the highest ones of each word: 0x1040 is 65 */
    {"P010_10LE", "u16", "[\"Y\",\"U\",\"V\"]",
        "[[[65,512,1],[1023,512,1],[0,1023,2],[1,1023,2]],"
        "[[4,512,1],[5,512,1],[6,1023,2],[7,1023,2]]]",
        {0x40, 0x10, 0xc0, 0xff, 0, 0, 0x40, 0, 0, 1, 0x40, 1, 0x80, 1, 0xc0, 1,
            0, 0x80, 0x40, 0, 0xc0, 0xff, 0x80, 0}},
    {"I420_10LE", "u16", "[\"Y\",\"U\",\"V\"]",
        "[[[65,512,3],[1023,512,3],[0,513,4],[1,513,4]],"
        "[[0,512,3],[0,512,3],[0,513,4],[0,513,4]]]",
        {65, 0, 255, 3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2, 3, 0, 4,
            0}},
    {"BGRx", "u8", "[\"R\",\"G\",\"B\"]",
        "[[[3,2,1],[6,5,4],[0,0,0],[0,0,0]],"
        "[[0,0,0],[0,0,0],[0,0,0],[0,0,0]]]",
        {1, 2, 3, 9, 4, 5, 6, 9}},
    {"ARGB", "u8", "[\"R\",\"G\",\"B\",\"A\"]",
        "[[[1,2,3,255],[4,5,6,128],[0,0,0,0],[0,0,0,0]],"
        "[[0,0,0,0],[0,0,0,0],[0,0,0,0],[0,0,0,0]]]",
        {255, 1, 2, 3, 128, 4, 5, 6}},
    /* 5, 6 and 5 bits: 0xf81f and 0x07e1, in the order of the host */
    {"RGB16", "u8", "[\"R\",\"G\",\"B\"]",
        "[[[31,0,31],[0,63,1],[0,0,0],[0,0,0]],"
        "[[0,0,0],[0,0,0],[0,0,0],[0,0,0]]]",
#if G_BYTE_ORDER == G_LITTLE_ENDIAN
        {0x1f, 0xf8, 0xe1, 0x07}},
#else
        {0xf8, 0x1f, 0x07, 0xe1}},
#endif
    {"GBR_10LE", "u16", "[\"R\",\"G\",\"B\"]",
        "[[[4,1023,2],[0,0,0],[0,0,0],[0,0,0]],"
        "[[0,0,0],[0,0,0],[0,0,0],[0,0,0]]]",
        {[0] = 255, [1] = 3, [16] = 2, [32] = 4}},
};

for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
  g_autofree gchar *header =
      video_header (cases[i].format, cases[i].bytes, sizeof (cases[i].bytes));
  g_autofree gchar *type = g_strdup_printf ("\"type\":\"%s\"", cases[i].type);
  g_autofree gchar *names =
      g_strdup_printf ("\"components\":%s", cases[i].components);
  g_autofree gchar *words =
      g_strdup_printf ("\"samples\":%s}", cases[i].samples);

  check_has (header, type);
  check_has (header, names);
  check_has (header, words);
}
}

/* Component @c of a pixel, from the description of the format alone. */
static guint
stored (const GstVideoFrame *frame, guint c, guint x, guint y)
{
  const GstVideoFormatInfo *f = frame->info.finfo;
  const guint8 *at = GST_VIDEO_FRAME_COMP_DATA (frame, c);
  guint word;

  at += (gsize) (y >> f->h_sub[c]) *
        (gsize) GST_VIDEO_FRAME_COMP_STRIDE (frame, c);
  at += (gsize) (x >> f->w_sub[c]) *
        (gsize) GST_VIDEO_FRAME_COMP_PSTRIDE (frame, c);
  word = f->depth[c] + f->shift[c] <= 8        ? *at
         : f->flags & GST_VIDEO_FORMAT_FLAG_LE ? GST_READ_UINT16_LE (at)
                                               : GST_READ_UINT16_BE (at);
  return (word >> f->shift[c]) & ((1u << f->depth[c]) - 1);
}

/* Of some formats GStreamer 1.22 gives all components one place. It does not
 * know the byte order of v216, swaps components of VYUY, BGR15 and BGR16, and
 * has half a sample in the offset of V of P010, P012 and P016. */
static gboolean
is_described (const GstVideoFormatInfo *f)
{
  static const gchar *const wrong[] = {"v216", "VYUY", "BGR15", "BGR16", NULL};
  const guint n = f->n_components;
  const GstVideoFormatFlags other = GST_VIDEO_FORMAT_FLAG_COMPLEX |
                                    GST_VIDEO_FORMAT_FLAG_PALETTE |
                                    GST_VIDEO_FORMAT_FLAG_TILED;
  const gboolean shares_a_place = n > 1 && f->plane[0] == f->plane[1] &&
                                  f->poffset[0] == f->poffset[1] &&
                                  f->shift[0] == f->shift[1];

  return !(f->flags & other) && !g_strv_contains (wrong, f->name) &&
         !shares_a_place && f->pixel_stride[0] > 0 &&
         !(n > 2 && f->depth[2] > 8 && f->poffset[2] % 2 == 1);
}

static GString *
samples_of (const GstVideoFrame *frame)
{
  const guint n = GST_VIDEO_FRAME_N_COMPONENTS (frame);
  GString *text = g_string_new ("\"samples\":[");

  for (guint y = 0; y < 5; y++) {
    g_string_append (text, y ? ",[" : "[");
    for (guint x = 0; x < 7; x++) {
      g_string_append (text, x ? "," : "");
      g_string_append (text, n > 1 ? "[" : "");
      for (guint c = 0; c < n; c++)
        g_string_append_printf (
            text, "%s%u", c ? "," : "", stored (frame, c, x, y));
      g_string_append (text, n > 1 ? "]" : "");
    }
    g_string_append_c (text, ']');
  }
  g_string_append (text, "]}");
  return text;
}

/* check_noise () knows no tiles. */
static GstBuffer *
noise (gsize size)
{
  guint8 *bytes = g_malloc (size);

  for (guint32 i = 0; i < size; i++)
    bytes[i] = (guint8) ((i + 1) * 2654435761u >> 24);
  return gst_buffer_new_wrapped (bytes, size);
}

/* All formats are shown; what they store is compared where a format describes
 * where a component is. Over noise, of an odd size. */
CHECK_TEST (test_each_format_tells_what_it_stores)
{
  guint n = 0, n_formats = 0;
  const GstVideoFormat *formats = gst_video_formats_raw (&n);

  for (guint i = 0; i < n; i++) {
    const GstVideoFormatInfo *f = gst_video_format_get_info (formats[i]);
    g_autofree gchar *header = NULL;
    g_autoptr (GstCaps) caps = NULL;
    g_autofree gchar *text = NULL;
    GstVideoInfo info;
    GstVideoFrame frame;
    GstImagingView *view;
    GstBuffer *buffer;
    GString *expected;

    gst_video_info_set_format (&info, formats[i], 7, 5);
    info.fps_n = 25;
    caps = gst_video_info_to_caps (&info);
    text = gst_caps_to_string (caps);
    buffer = noise (info.size);
    open_pads (text);
    view = view_of_src (1);
    set_values (view, 0, 0, 7, 5);
    header = picture_of (view, gst_buffer_ref (buffer));
    if (is_described (f)) {
      fail_unless (gst_video_frame_map (&frame, &info, buffer, GST_MAP_READ));
      expected = samples_of (&frame);
      gst_video_frame_unmap (&frame);
      fail_unless (strstr (header, expected->str) != NULL, "%s: no %s in %s",
          f->name, expected->str, header);
      g_string_free (expected, TRUE);
      n_formats++;
    }
    gst_buffer_unref (buffer);
    g_object_unref (view);
    close_pads ();
  }
  fail_unless (n_formats > 60, "%u formats", n_formats);
}

/* The sentence that comes in place of a picture of @buffer (transfer full) */
static gchar *
error_of (GstImagingView *view, GstBuffer *buffer)
{
  GError *error = NULL;
  gchar *text;

  gst_imaging_view_allow (view, 1);
  while (!can_read (gst_imaging_view_get_fd (view), 5))
    gst_pad_push (src, gst_buffer_ref (buffer));
  gst_buffer_unref (buffer);
  fail_unless (gst_imaging_view_take (view, &error) == NULL);
  fail_unless (error != NULL);
  text = g_strdup (error->message);
  g_error_free (error);
  return text;
}

/* Buffers of fields have half of the rows, and nothing behind them. Chroma is
 * that of the field. */
CHECK_TEST (test_a_field_is_shown_alone)
{
  static const guint8 samples[] = {1, 1, 2, 2, 3, 3, 4, 4};
  static const guint8 chroma[32] = {[16] = 10, [20] = 20};
  GstImagingView *view;
  gchar *header;

  open_pads ("video/x-raw(format:Interlaced),format=GRAY8,width=4,height=4,"
             "framerate=25/1,interlace-mode=alternate");
  view = view_of_src (1);
  set_values (view, 0, 0, 9, 9);
  header = picture_of (view, buffer_of (samples, 8, 0));
  check_has (header, "\"source\":[4,2],");
  check_has (header, "\"samples\":[[1,1,2,2],[3,3,4,4]]}");
  g_free (header);
  set_caps ("video/x-raw(format:Interlaced),format=I420,width=1,height=8,"
            "framerate=25/1,interlace-mode=alternate");
  header = picture_of (view, buffer_of (chroma, sizeof (chroma), 0));
  check_has (header, "\"source\":[1,4],");
  check_has (header, "\"samples\":[[[0,10,0]],[[0,10,0]],[[0,20,0]],");
  g_free (header);
  g_object_unref (view);
  close_pads ();
}

/* Without the flag of the buffer a frame of mixed video is progressive. */
CHECK_TEST (test_chroma_of_mixed_video)
{
  static const struct {
    guint flags;
    const gchar *samples;
  } cases[] = {
      {0, "\"samples\":[[[1,10,0]],[[1,10,0]],[[1,20,0]],[[1,20,0]]]}"},
      {GST_VIDEO_BUFFER_FLAG_INTERLACED,
          "\"samples\":[[[1,10,0]],[[1,20,0]],[[1,10,0]],[[1,20,0]]]}"},
  };
  guint8 samples[32] = {0};

  for (guint y = 0; y < 4; y++)
    samples[4 * y] = 1;
  samples[16] = 10;
  samples[20] = 20;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstBuffer *buffer = buffer_of (samples, sizeof (samples), 0);
    GstImagingView *view;
    g_autofree gchar *header = NULL;

    GST_BUFFER_FLAG_SET (buffer, cases[i].flags);
    open_pads ("video/x-raw,format=I420,width=1,height=4,framerate=25/1,"
               "interlace-mode=mixed");
    view = view_of_src (1);
    set_values (view, 0, 0, 1, 4);
    header = picture_of (view, buffer);
    check_has (header, cases[i].samples);
    g_object_unref (view);
    close_pads ();
  }
}

/* A meta may promise more than its buffer has, and rows may go up. */
CHECK_TEST (test_what_a_meta_says_is_checked)
{
  static const struct {
    guint width, height;
    gsize offset;
    gint stride;
    gboolean is_whole;
  } cases[] = {
      {4, 2, 0, 8, TRUE},
      {4, 2, 8, -8, TRUE},
      {4, 2, 0, -8, FALSE}, /* before the buffer */
      {4, 2, 4, 8, FALSE},
      {4, 3, 0, 8, FALSE},
      {5, 2, 0, 8, FALSE},
      {400, 300, 0, 800, FALSE},
  };
  const guint16 samples[] = {1, 2, 3, 4, 5, 6, 7, 8};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gsize offset[GST_VIDEO_MAX_PLANES] = {cases[i].offset};
    gint stride[GST_VIDEO_MAX_PLANES] = {cases[i].stride};
    GstBuffer *buffer = buffer_of (samples, sizeof (samples), 0);
    GstImagingView *view;
    g_autofree gchar *text = NULL;

    gst_buffer_add_video_meta_full (buffer, GST_VIDEO_FRAME_FLAG_NONE,
        gst_video_format_from_string (GST_VIDEO_NE (GRAY16)), cases[i].width,
        cases[i].height, 1, offset, stride);
    open_pads (GREY16);
    view = view_of_src (1);
    set_values (view, 0, 0, 9, 9);
    text =
        cases[i].is_whole ? picture_of (view, buffer) : error_of (view, buffer);
    check_has (text, i == 0   ? "[[1,2,3,4],[5,6,7,8]]"
                     : i == 1 ? "[[5,6,7,8],[1,2,3,4]]"
                              : "fewer than");
    g_object_unref (view);
    close_pads ();
  }
}

/* BT.601, 8 bits: 81, 90, 240 is red, 16 black and 235 white. */
CHECK_TEST (test_colours_of_yuv)
{
  static const guint8 red[] = {
      81, 81, 81, 81, 81, 81, 81, 81, 90, 90, 0, 0, 240, 240};
  static const guint8 ends[] = {
      16, 16, 235, 235, 16, 16, 235, 235, 128, 128, 0, 0, 128, 128};
  gchar *header = video_header ("I420", red, sizeof (red));

  /* of R, G, B: near 255, 0, 0 */
  check_has (header, "\"minimum\":0,\"maximum\":254.4");
  g_free (header);
  header = video_header ("I420", ends, sizeof (ends));
  check_has (header, "\"minimum\":0,\"maximum\":255,");
  g_free (header);
}

/* --- what is measured ----------------------------------------------------- */

CHECK_TEST (test_statistics_and_histogram)
{
  const guint16 samples[] = {1, 2, 3, 4, 5, 60, 70, 8};
  const gfloat floats[] = {1, NAN, -3, INFINITY};
  GstImagingView *view;
  gchar *header;

  open_pads (GREY16);
  view = view_of_src (1);
  wanted.n_bins = 4;
  wanted.region = (GstImagingViewRectangle){0, 0, 0, 0};
  set (view);
  header = picture_of (view, buffer_of (samples, sizeof (samples), 0));
  /* 70 numbers in four bins: 18 each */
  check_has (header, "\"statistics\":{\"region\":[0,0,4,2],\"low\":1,"
                     "\"step\":18,\"channels\":[{\"n\":8,\"nan\":0,"
                     "\"infinite\":0,\"below\":0,\"above\":0,"
                     "\"mean\":19.125,\"deviation\":26.6760074786");
  check_has (header, "\"minimum\":1,\"maximum\":70,\"counts\":[6,0,0,2]}]}");
  g_free (header);
  wanted.region = (GstImagingViewRectangle){2, 0, 9, 1};
  set (view);
  header = picture_of (view, buffer_of (samples, sizeof (samples), 0));
  check_has (header, "\"region\":[2,0,2,1],\"low\":3,\"step\":1,"
                     "\"channels\":[{\"n\":2,\"nan\":0,\"infinite\":0,"
                     "\"below\":0,\"above\":0,\"mean\":3.5,"
                     "\"deviation\":0.5,\"minimum\":3,\"maximum\":4,"
                     "\"counts\":[1,1]}]}");
  g_free (header);
  set_caps ("other/tensors,format=static,num_tensors=1,types=float32,"
            "dimensions=2:2:1:1,framerate=0/1");
  wanted.region = (GstImagingViewRectangle){0, 0, 0, 0};
  set (view);
  header = picture_of (view, buffer_of (floats, sizeof (floats), 0));
  check_has (header, "\"low\":-3,\"step\":1,\"channels\":[{\"n\":2,"
                     "\"nan\":1,\"infinite\":1,\"below\":0,\"above\":0,"
                     "\"mean\":-1,\"deviation\":2,\"minimum\":-3,"
                     "\"maximum\":1,\"counts\":[1,0,0,1]}]}");
  g_free (header);
  /* none is finite */
  wanted.region = (GstImagingViewRectangle){1, 0, 1, 2};
  set (view);
  header = picture_of (view, buffer_of (floats, sizeof (floats), 0));
  check_has (header, "{\"n\":0,\"nan\":1,\"infinite\":1,\"below\":0,"
                     "\"above\":0,\"mean\":null,\"deviation\":null,"
                     "\"minimum\":null,\"maximum\":null,"
                     "\"counts\":[0,0,0,0]}");
  g_free (header);
  g_object_unref (view);
  close_pads ();
}

/* 1000 samples from 0 to 9.99, and two that are far away: they leave the bins
 * to the others, and are counted. With clip 0 the bins hold all. */
CHECK_TEST (test_far_samples_are_counted_outside_of_the_bins)
{
  gfloat samples[1002];
  GstImagingView *view;
  gchar *header;

  for (guint i = 0; i < 1000; i++)
    samples[i] = (gfloat) (i * 37 % 1000) / 100;
  samples[1000] = 1e20f;
  samples[1001] = -1e20f;
  open_pads ("other/tensors,format=static,num_tensors=1,types=float32,"
             "dimensions=1002:1:1:1,framerate=0/1");
  view = view_of_src (1);
  wanted.n_bins = 4;
  set (view);
  header = picture_of (view, buffer_of (samples, sizeof (samples), 0));
  /* 0.5 % at each end: 0.04 and 9.95 are the ends, half of 9.91 is added */
  check_has (header, "\"low\":-4.91");
  check_has (header, "\"step\":4.95499");
  check_has (header, "\"n\":1002,\"nan\":0,\"infinite\":0,\"below\":1,"
                     "\"above\":1,");
  check_has (header, "\"counts\":[4,496,495,5]}]}");
  g_free (header);
  wanted.clip = 0;
  set (view);
  header = picture_of (view, buffer_of (samples, sizeof (samples), 0));
  check_has (header, "\"below\":0,\"above\":0,");
  check_has (header, "\"counts\":[1,0,1000,1]}]}");
  g_free (header);
  g_object_unref (view);
  close_pads ();
}

CHECK_TEST (test_ends_of_64_bits)
{
  const guint64 whole[] = {G_MAXUINT64, 0, 5, 7};
  const gdouble doubles[] = {1.7e308, -1.7e308, 0, 1};
  GstImagingView *view;
  gchar *header;

  open_pads ("other/tensors,format=static,num_tensors=1,types=uint64,"
             "dimensions=4:1:1:1,framerate=0/1");
  view = view_of_src (1);
  wanted.n_bins = 16;
  set (view);
  header = picture_of (view, buffer_of (whole, sizeof (whole), 0));
  check_has (header, "\"counts\":[3,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1]}]}");
  g_free (header);
  set_caps ("other/tensors,format=static,num_tensors=1,types=float64,"
            "dimensions=4:1:1:1,framerate=0/1");
  header = picture_of (view, buffer_of (doubles, sizeof (doubles), 0));
  check_has (header, "\"window\":1.797693134862");
  check_has (header, "\"level\":0,");
  g_free (header);
  g_object_unref (view);
  close_pads ();
}

CHECK_TEST (test_profiles)
{
  static const struct {
    const gchar *line, *samples;
  } cases[] = {
      {"0,1,3,1", "[5,60,70,8]}"},
      {"2,0,2,1", "[3,70]}"},
      {"3,1,0,0", "[8,70,2,1]}"}, /* along the longer side */
      {"-1,0,4,0", "[null,1,2,3,4,null]}"},
      {"1,1,1,1", "[60]}"},
      {"-2147483648,0,2147483648,0", "[null,null,"},
  };
  const guint16 samples[] = {1, 2, 3, 4, 5, 60, 70, 8};
  GstImagingView *view;

  open_pads (GREY16);
  view = view_of_src (1);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *words =
        g_strdup_printf ("\"profile\":{\"line\":[%s],\"samples\":%s",
            cases[i].line, cases[i].samples);
    g_autofree gchar *header = NULL;

    want ("profile", cases[i].line);
    set (view);
    header = picture_of (view, buffer_of (samples, sizeof (samples), 0));
    check_has (header, words);
  }
  g_object_unref (view);
  close_pads ();
}

/* A sample that the picture leaves out, of 8 x 8 samples in 2 x 2 pixels. */
CHECK_TEST (test_the_full_range_is_that_of_all_samples)
{
  guint8 samples[64];
  GstImagingView *view;
  gchar *header;

  memset (samples, 10, sizeof (samples));
  samples[0] = 3;
  samples[9] = 250;
  open_pads ("video/x-raw,format=GRAY8,width=8,height=8,framerate=0/1");
  view = view_of_src (1);
  wanted.width = wanted.height = 2;
  wanted.clip = 0;
  set (view);
  header = picture_of (view, buffer_of (samples, sizeof (samples), 0));
  check_has (header, "\"window\":247,\"level\":126.5,\"minimum\":3,"
                     "\"maximum\":250,");
  g_free (header);
  g_object_unref (view);
  close_pads ();
}

static void
check_pixels (const gchar *header, gconstpointer bytes, gsize n)
{
  g_autofree gchar *text = g_base64_encode (bytes, n);
  g_autofree gchar *words = g_strdup_printf ("\"pixels\":\"%s\"", text);

  check_has (header, words);
}

/* As the picture has them before it is a JPEG. A window of 0 is a threshold. */
CHECK_TEST (test_pixels_of_samples)
{
  const guint16 samples[] = {0, 1, 2, 3, 4, 5, 6, 7};
  const guint8 grey[] = {0, 0, 0, 0, 255, 255, 255, 255};
  guint8 rgb[24]; /* a row of slice 0, and one of slice 1, which is not seen */
  GstImagingView *view;
  gchar *header;

  open_pads (GREY16);
  view = view_of_src (1);
  want ("window", "0");
  want ("level", "3");
  set_values (view, 0, 0, 9, 9);
  header = picture_of (view, buffer_of (samples, sizeof (samples), 0));
  check_pixels (header, grey, sizeof (grey));
  g_free (header);

  want ("colours", "viridis");
  want ("window", "4");
  want ("level", "2");
  set_volume (view, 2, "row", 0);
  header = picture_of (view, buffer_of (samples, sizeof (samples), 0));
  memcpy (rgb, "\x44\x01\x54\x3b\x52\x8b\x20\x90\x8c\x5c\xc9\x63", 12);
  memset (rgb + 12, 0, 12);
  check_pixels (header, rgb, sizeof (rgb));
  g_free (header);

  set_values (view, 0, 0, 3, 2); /* not the part of the picture */
  header = picture_of (view, buffer_of (samples, sizeof (samples), 0));
  check_has (header, "\"pixels\":null");
  g_free (header);
  g_object_unref (view);
  close_pads ();
}

/* A setting out of its range names the member, and changes nothing. */
CHECK_TEST (test_settings_are_checked)
{
  static const struct {
    const gchar *name, *good, *bad;
  } cases[] = {
      {"rate", "0.5", "nan"},
      {"rate", "1000", "1000.1"},
      {"width", "1", "0"},
      {"width", "1", "1.5"},
      {"height", "16384", "16385"},
      {"quality", "100", "101"},
      {"window", "nan", "-1"},
      {"window", "0", "inf"},
      {"level", "-1e300", "inf"},
      {"clip", "49", "50"},
      {"colours", "blue-red", "rainbow"},
      {"crop", "0,1,2,3", "0,1,2"},
      {"crop", "0,1,2,3", "0,1,-2,3"},
      {"crop", "0,1,2,3", "0,1,2,3e9"},
      {"values", "0,0,128,128", "0,0,129,128"},
      {"profile", "0,-1,2.5,0", "0,0,nan,0"},
      {"profile", "0,-1,2.5,0", "0,0,1e10,0"},
      {"region", "5,6,7,8", "5,6,7,8,9"},
      {"histogram", "1024", "1025"},
      {"volume", "65535", "65536"},
      {"section", "max-row", "5"},
      {"place", "2147483647", "2147483648"},
      {"place", "7", ""},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstImagingViewSettings s, before;
    g_autoptr (GError) error = NULL;

    gst_imaging_view_settings_init (&s);
    fail_unless (
        gst_imaging_view_settings_set (&s, cases[i].name, cases[i].good, NULL));
    fail_unless (gst_imaging_view_settings_check (&s, NULL));
    before = s;
    fail_if (gst_imaging_view_settings_set (
        &s, cases[i].name, cases[i].bad, &error));
    fail_unless (
        g_str_has_prefix (error->message, cases[i].name), "%s", error->message);
    fail_unless (memcmp (&s, &before, sizeof (s)) == 0);
    fail_unless (gst_imaging_view_settings_set (&s, cases[i].name, NULL, NULL));
    gst_imaging_view_settings_init (&before);
    fail_unless (memcmp (&s, &before, sizeof (s)) == 0, "%s", cases[i].name);
  }
  fail_if (gst_imaging_view_settings_set (&wanted, "depth", "1", NULL));
}

/* Also without the setter. */
CHECK_TEST (test_structures_are_checked)
{
  GstImagingViewSettings s;
  g_autoptr (GError) error = NULL;

  gst_imaging_view_settings_init (&s);
  s.section = 6;
  fail_if (gst_imaging_view_settings_check (&s, &error));
  fail_unless (
      g_str_has_prefix (error->message, "section of"), "%s", error->message);
}

CHECK_TEST (test_settings_are_described)
{
  g_autofree gchar *json = gst_imaging_view_settings_describe ();

  check_has (json, "{\"name\":\"clip\",\"type\":\"double\",\"minimum\":0,"
                   "\"maximum\":49,\"default\":0.5}");
  check_has (json, "{\"name\":\"values\",\"type\":\"rectangle\","
                   "\"minimum\":0,\"maximum\":16384,\"default\":null}");
  check_has (json, "\"default\":\"grey\",\"values\":[{\"nick\":\"grey\","
                   "\"table\":\"AAAAAQEBAgIC");
  check_has (json, "{\"nick\":\"row\",\"label\":\"Row\",\"blurb\":\"One row of "
                   "every slice\",\"axes\":\"xz\",\"place\":\"y\"}");
}

/* Also through the ghost pad of a bin. Other elements behind the pad have none.
 */
CHECK_TEST (test_a_view_after_the_end_shows_the_last_frame)
{
  static const struct {
    const gchar *behind;
    gboolean is_shown;
  } cases[] = {
      {"fakesink", TRUE},
      {"( fakesink )", TRUE},
      {"fakesink enable-last-sample=false", FALSE},
      {"queue ! fakesink", FALSE},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *text =
        g_strdup_printf ("videotestsrc name=s num-buffers=3 ! "
                         "video/x-raw,format=GRAY8,width=8,height=8 ! "
                         "identity name=i ! %s",
            cases[i].behind);
    g_autoptr (GstElement) pipeline = gst_parse_launch (text, NULL);
    g_autoptr (GstElement) element =
        gst_bin_get_by_name (GST_BIN (pipeline), "i");
    g_autoptr (GstPad) pad = gst_element_get_static_pad (element, "src");
    g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
    g_autoptr (GstMessage) end = NULL;
    GstImagingView *view;

    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    end = gst_bus_timed_pop_filtered (
        bus, CHECK_TIMEOUT, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    fail_unless (end && GST_MESSAGE_TYPE (end) == GST_MESSAGE_EOS);
    view = gst_imaging_view_new (pad, 1);
    gst_imaging_view_allow (view, 1);
    if (cases[i].is_shown) {
      g_autofree gchar *header = take_header (view);

      check_has (header, "\"frame\":2,");
    } else {
      fail_if (can_read (gst_imaging_view_get_fd (view), 200));
    }
    g_object_unref (view);
    gst_element_set_state (pipeline, GST_STATE_NULL);
  }
}

/* 2 MiB a slice: two volumes of 300 do not fit in 1 GiB. */
CHECK_TEST (test_all_views_share_a_limit_of_memory)
{
  const gsize size = (gsize) 2 << 20;
  g_autofree gchar *samples = g_malloc0 (size);
  GstImagingView *views[2];
  GError *error = NULL;
  gint64 begin;

  open_pads ("video/x-raw,format=" GST_VIDEO_NE (
      GRAY16) ",width=1024,height=1024,framerate=25/1");
  for (guint i = 0; i < 2; i++) {
    views[i] = view_of_src (i);
    set_volume (views[i], 300, "frame", 0);
  }
  g_free (picture_of (views[0], buffer_of (samples, size, 0)));
  gst_imaging_view_allow (views[1], 1);
  begin = g_get_monotonic_time ();
  while (!can_read (gst_imaging_view_get_fd (views[1]), 5)) {
    fail_unless (
        g_get_monotonic_time () - begin < (gint64) (CHECK_TIMEOUT / 1000));
    gst_pad_push (src, buffer_of (samples, size, 0));
  }
  fail_unless (gst_imaging_view_take (views[1], &error) == NULL);
  fail_unless (strstr (error->message, "1 GiB") != NULL, "%s", error->message);
  g_clear_error (&error);
  g_object_unref (views[0]);
  g_free (picture_of (views[1], buffer_of (samples, size, 1)));
  g_object_unref (views[1]);
  close_pads ();
}

/* What is no picture is told in a sentence, and the next one is shown. */
CHECK_TEST (test_what_is_no_picture)
{
  GstImagingView *view;
  GstBuffer *buffer = buffer_of ("a,b\n", 4, 0);
  GError *error = NULL;

  open_pads ("text/csv");
  view = view_of_src (1);
  gst_imaging_view_allow (view, 1);
  while (!can_read (gst_imaging_view_get_fd (view), 5))
    gst_pad_push (src, gst_buffer_ref (buffer));
  gst_buffer_unref (buffer);
  fail_unless (gst_imaging_view_take (view, &error) == NULL);
  fail_unless (
      strstr (error->message, "text/csv") != NULL, "%s", error->message);
  g_clear_error (&error);
  fail_unless (gst_imaging_view_take (view, &error) == NULL && !error);
  g_object_unref (view);
  close_pads ();
}

/* Slices z of rows y of samples 100 z + 10 y + x. */
CHECK_TEST (test_sections_of_a_volume)
{
  static const struct {
    const gchar *section;
    guint place;
    const gchar *source, *samples;
  } cases[] = {
      {"frame", 2, "\"source\":[4,2]", "[[200,201,202,203],[210,211,212,213]]"},
      {"row", 1, "\"source\":[4,3]",
          "[[10,11,12,13],[110,111,112,113],[210,211,212,213]]"},
      {"column", 3, "\"source\":[3,2]", "[[3,103,203],[13,113,213]]"},
      {"max-frame", 0, "\"source\":[4,2]",
          "[[200,201,202,203],[210,211,212,213]]"},
      {"max-row", 0, "\"source\":[4,3]",
          "[[10,11,12,13],[110,111,112,113],[210,211,212,213]]"},
      {"max-column", 0, "\"source\":[3,2]", "[[3,103,203],[13,113,213]]"},
  };
  GstImagingView *view;
  gchar *header = NULL;

  open_pads (GREY16);
  view = view_of_src (1);
  set_rate (view, 1000);
  set_values (view, 0, 0, 4, 4);
  set_volume (view, 3, "frame", 0);
  /* each slice comes once: no other frame is taken for it */
  for (guint64 z = 0; z < 3; z++) {
    guint16 samples[8];

    for (guint i = 0; i < 8; i++)
      samples[i] = (guint16) (100 * z + 10 * (i / 4) + i % 4);
    g_free (header);
    header = picture_of (view, buffer_of (samples, sizeof (samples), 3 + z));
  }
  check_has (header, "\"filled\":3");
  g_free (header);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *words =
        g_strdup_printf ("\"samples\":%s}", cases[i].samples);

    set_volume (view, 3, cases[i].section, cases[i].place);
    gst_imaging_view_allow (view, 1); /* of the last frames: none comes */
    header = take_header (view);
    check_has (header, cases[i].source);
    check_has (header, words);
    g_free (header);
  }
  g_object_unref (view);
  close_pads ();
}

/* Frames without a number are counted, and each slice is renewed: sample k of
 * frame k, a row for each slice. */
CHECK_TEST (test_a_volume_of_frames_without_numbers)
{
  const guint n = 5;
  guint begin = n; /* frame of slice 0: its thread looks when it has begun */
  guint8 k = 0, oldest = 0;
  GstImagingView *view;

  open_pads ("video/x-raw,format=GRAY8,width=1,height=1,framerate=25/1");
  view = view_of_src (1);
  set_rate (view, 1000);
  set_values (view, 0, 0, 1, n);
  set_volume (view, n, "row", 0);
  while (k < 20 * n) {
    g_autofree gchar *header = NULL;
    const gchar *at;

    gst_imaging_view_allow (view, 1);
    while (!can_read (gst_imaging_view_get_fd (view), 5)) {
      const guint8 row[4] = {k};

      gst_pad_push (src, buffer_of (row, 4, GST_BUFFER_OFFSET_NONE));
      k++;
    }
    header = take_header (view);
    at = strstr (header, "\"samples\":[");
    fail_unless (at != NULL, "%s", header);
    at += strlen ("\"samples\":[");
    oldest = G_MAXUINT8;
    for (guint z = 0; z < n; z++) {
      const guint v = (guint) strtoul (at + 1, NULL, 10);

      if (at[1] != 'n') { /* null: not seen */
        if (begin == n)
          begin = (v + n - z) % n;
        fail_unless ((begin + z) % n == v % n, "%s", header);
      }
      oldest = at[1] == 'n' ? 0 : (guint8) MIN (v, oldest);
      at = strchr (at + 1, '[');
      fail_unless (at || z == n - 1);
    }
  }
  fail_unless (oldest > 2 * n, "a slice is of frame %u of %u", oldest, k);
  g_object_unref (view);
  close_pads ();
}

/* Of four slices one has been seen: the others are no zeros. */
CHECK_TEST (test_slices_that_nobody_has_seen)
{
  static const struct {
    const gchar *section, *samples, *profile;
  } cases[] = {
      {"row", "[[100,100],[null,null],[null,null],[null,null]]", "[100,null]"},
      {"column", "[[100,null,null,null],[100,null,null,null]]", "[100,100]"},
      {"max-row", "[[100,100],[null,null],[null,null],[null,null]]",
          "[100,null]"},
      {"max-column", "[[100,null,null,null],[100,null,null,null]]",
          "[100,100]"},
      {"max-frame", "[[100,100],[100,100]]", "[100,100]"},
  };
  const guint8 samples[8] = {100, 100, 0, 0, 100, 100};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *header = NULL;
    g_autofree gchar *of_values =
        g_strdup_printf ("\"samples\":%s}", cases[i].samples);
    g_autofree gchar *of_profile =
        g_strdup_printf ("\"samples\":%s}", cases[i].profile);
    GstImagingView *view;

    open_pads ("video/x-raw,format=GRAY8,width=2,height=2,framerate=25/1");
    view = view_of_src (1);
    wanted.n_bins = 4;
    wanted.profile = (GstImagingViewLine){0, 0, 0, 1};
    set_values (view, 0, 0, 9, 9);
    set_volume (view, 4, cases[i].section, 0);
    header = picture_of (view, buffer_of (samples, sizeof (samples), 0));
    check_has (header, of_values);
    check_has (header, of_profile);
    check_has (header, "\"minimum\":100,\"maximum\":100,\"type\"");
    check_has (header, "\"nan\":0,\"infinite\":0,");
    check_has (header, "\"mean\":100,\"deviation\":0,\"minimum\":100,");
    g_object_unref (view);
    close_pads ();
  }
}

/* --- what it costs
 * ------------------------------------------------------------
 */

/* Frames that nobody looks at are neither kept nor copied from the device. */
CHECK_TEST (test_only_viewed_frames_are_downloaded)
{
  GstVideoInfo info = check_info ("GRAY8", 64, 48);
  GstImagingStats *stats;
  guint64 n_passed = 0, n_viewed = 0, n_downloaded;
  GstStructure *all;
  GstImagingView *view;

  if (check_n_devices () == 0) /* asked here: CUDA does not outlive a fork */
    check_skip ("there is no card");
  stats = gst_imaging_stats_new ();
  open_pads ("video/x-raw,format=GRAY8,width=64,height=48,framerate=0/1");
  view = view_of_src (1);
  set_rate (view, 1000);
  for (guint i = 0; i < 200; i++) {
    if (i % 50 == 25)
      gst_imaging_view_allow (view, 1);
    gst_pad_push (src,
        check_ours (GST_IMAGING_MEMORY_DEVICE, stats, check_noise (&info, i)));
    n_passed++;
    if (i % 50 == 40 || can_read (gst_imaging_view_get_fd (view), 1)) {
      if (can_read (gst_imaging_view_get_fd (view), i % 50 == 40 ? 0 : 1)) {
        g_free (take_header (view));
        n_viewed++;
      }
    }
  }
  gst_imaging_view_close (view);
  fail_unless (n_viewed > 0 && n_viewed <= 4);
  fail_unless (n_passed == 200);
  all = gst_imaging_stats_to_structure (stats);
  fail_unless (
      gst_structure_get_uint64 (all, "bytes-downloaded", &n_downloaded));
  fail_unless_equals_uint64 (n_downloaded, n_viewed * 64 * 48);
  gst_structure_free (all);
  g_object_unref (view);
  close_pads ();
  gst_imaging_stats_unref (stats);
}

enum { BSCAN = 256 * 16 * 2, IMAGE = 128 * 16, N_VIEWED = 4 };

/* Pushes B-scans until the viewer has a picture. */
static void
push_until_seen (GstHarness *h, GstImagingView *view, const GstVideoInfo *info)
{
  gint64 begin = g_get_monotonic_time ();

  gst_imaging_view_allow (view, 1);
  while (!can_read (gst_imaging_view_get_fd (view), 5)) {
    fail_unless (
        g_get_monotonic_time () - begin < (gint64) (CHECK_TIMEOUT / 1000));
    check_push (h, check_noise (info, 1), GST_FLOW_OK);
  }
  g_free (take_header (view));
}

/* Of octbscan on a device, whose images nobody else reads. */
CHECK_TEST (test_a_viewer_of_octbscan_costs_what_it_sees)
{
  GstVideoInfo info = check_info ("GRAY16_LE", 256, 16);
  GstElement *element;
  GstImagingView *view;
  GstHarness *h;
  GstPad *pad;

  if (!check_have_element ("octbscan"))
    return;
  if (check_n_devices () == 0)
    check_skip ("there is no card");
  element = gst_parse_launch ("octbscan backend=cuda", NULL);
  h = gst_harness_new_with_element (element, "sink", "src");
  gst_harness_set_drop_buffers (h, TRUE);
  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY16_LE,width=256,height=16,framerate=0/1");
  pad = gst_element_get_static_pad (element, "src");
  gst_imaging_view_settings_init (&wanted);
  view = gst_imaging_view_new (pad, 1);
  set_rate (view, 1000);
  for (guint i = 0; i < N_VIEWED; i++) {
    for (guint k = 0; k < 20; k++)
      check_push (h, check_noise (&info, k), GST_FLOW_OK);
    push_until_seen (h, view, &info);
  }
  gst_harness_push_event (h, gst_event_new_eos ());
  /* each B-scan came in ordinary memory */
  fail_unless_equals_uint64 (check_stat (element, "bytes-copied"),
      check_stat (element, "frames") * BSCAN);
  fail_unless_equals_uint64 (
      check_stat (element, "bytes-downloaded"), N_VIEWED * IMAGE);
  gst_imaging_view_close (view);
  g_object_unref (view);
  gst_object_unref (pad);
  gst_harness_teardown (h);
  gst_object_unref (element);
}

/* A viewer that never takes its picture holds no buffer of the pipeline. */
CHECK_TEST (test_a_dead_viewer_holds_nothing)
{
  const guint16 samples[8] = {0};
  GstBuffer *buffer = buffer_of (samples, sizeof (samples), 0);
  GstImagingView *view;
  gint64 begin = g_get_monotonic_time ();

  open_pads (GREY16);
  view = view_of_src (1);
  set_rate (view, 1000);
  gst_imaging_view_allow (view, 1000);
  while (!can_read (gst_imaging_view_get_fd (view), 5))
    gst_pad_push (src, gst_buffer_ref (buffer));
  for (guint i = 0; i < 1000; i++)
    gst_pad_push (src, gst_buffer_ref (buffer));
  while (GST_MINI_OBJECT_REFCOUNT_VALUE (buffer) > 1) {
    fail_unless (
        g_get_monotonic_time () - begin < (gint64) (CHECK_TIMEOUT / 1000));
    g_usleep (1000);
  }
  gst_buffer_unref (buffer);
  g_object_unref (view);
  close_pads ();
}

static gpointer
push_until_told (gpointer stop)
{
  const guint16 samples[8] = {0};

  while (!g_atomic_int_get ((gint *) stop))
    gst_pad_push (src, buffer_of (samples, sizeof (samples), 0));
  return NULL;
}

/* Views come and go while frames pass in another thread. */
CHECK_TEST (test_views_come_and_go)
{
  gint stop = 0;
  GThread *thread;
  GstImagingTap *tap;
  GstSample *kept = NULL;

  open_pads (GREY16);
  tap = gst_imaging_tap_new (src);
  thread = g_thread_new ("pusher", push_until_told, &stop);
  for (guint i = 0; i < 50; i++) {
    GstImagingView *view = view_of_src (1);

    set_rate (view, 1000);
    gst_imaging_view_allow (view, 2);
    gst_imaging_tap_keep (tap, i % 3 == 0);
    g_clear_pointer (&kept, gst_sample_unref);
    kept = gst_imaging_tap_get_kept (tap);
    if (i % 2)
      g_free (take_header (view));
    if (i % 5 == 0)
      set_volume (view, 2, "max-row", 0);
    g_object_unref (view);
  }
  g_atomic_int_set (&stop, 1);
  g_thread_join (thread);
  g_clear_pointer (&kept, gst_sample_unref);
  g_object_unref (tap);
  close_pads ();
}

/* --- the tap
 * ------------------------------------------------------------------
 */

CHECK_TEST (test_a_tap_takes_what_is_requested)
{
  const guint16 samples[8] = {0};
  GstImagingTap *tap;
  GstSample *sample;
  gint64 time = 0;

  open_pads (GREY16);
  tap = gst_imaging_tap_new (sink);
  for (guint i = 0; i < 3; i++)
    gst_pad_push (src, buffer_of (samples, sizeof (samples), i));
  fail_unless (gst_imaging_tap_take (tap, NULL) == NULL);
  gst_imaging_tap_request (tap);
  fail_unless (gst_imaging_tap_take (tap, NULL) == NULL);
  for (guint i = 3; i < 6; i++)
    gst_pad_push (src, buffer_of (samples, sizeof (samples), i));
  fail_unless (can_read (gst_imaging_tap_get_fd (tap), 0));
  sample = gst_imaging_tap_take (tap, &time);
  fail_unless (sample && time > 0);
  fail_unless_equals_uint64 (
      GST_BUFFER_OFFSET (gst_sample_get_buffer (sample)), 3);
  fail_unless (gst_sample_get_caps (sample) != NULL);
  gst_sample_unref (sample);
  fail_if (can_read (gst_imaging_tap_get_fd (tap), 0));
  fail_unless_equals_uint64 (gst_imaging_tap_get_n_frames (tap), 6);
  gst_imaging_tap_request (tap);
  gst_pad_push (src, buffer_of (samples, sizeof (samples), 6));
  g_object_unref (tap); /* with a frame in it */
  close_pads ();
}

/* All frames, in order, and no more than were asked for; where they would wait
 * they are counted as lost, and the pad goes on. */
CHECK_TEST (test_a_tap_passes_frames_on)
{
  const guint16 samples[8] = {0};
  GstElement *pipeline =
      gst_parse_launch ("appsrc name=in format=time ! appsink name=out "
                        "sync=false",
          NULL);
  GstElement *in = gst_bin_get_by_name (GST_BIN (pipeline), "in");
  GstElement *out = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  GstImagingTap *tap;

  open_pads (GREY16);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  tap = gst_imaging_tap_new (src);
  gst_imaging_tap_record (tap, in, 1 << 20, 3);
  for (guint i = 0; i < 10; i++)
    gst_pad_push (src, buffer_of (samples, sizeof (samples), i));
  for (guint i = 0; i < 3; i++) {
    g_autoptr (GstSample) sample =
        gst_app_sink_try_pull_sample (GST_APP_SINK (out), CHECK_TIMEOUT);

    fail_unless_equals_uint64 (
        GST_BUFFER_OFFSET (gst_sample_get_buffer (sample)), i);
  }
  fail_unless_equals_uint64 (gst_imaging_tap_get_n_recorded (tap), 3);
  fail_unless_equals_uint64 (gst_imaging_tap_get_n_lost (tap), 0);
  gst_imaging_tap_record (tap, in, 15, 0); /* a frame has 16 bytes */
  gst_pad_push (src, buffer_of (samples, sizeof (samples), 10));
  fail_unless_equals_uint64 (gst_imaging_tap_get_n_lost (tap), 1);
  gst_imaging_tap_record (tap, NULL, 0, 0);
  gst_pad_push (src, buffer_of (samples, sizeof (samples), 11));
  fail_unless_equals_uint64 (gst_imaging_tap_get_n_lost (tap), 1);
  g_object_unref (tap);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (in);
  gst_object_unref (out);
  gst_object_unref (pipeline);
  close_pads ();
}

/* The newest frame of a pipeline that pauses; none is held after that. */
CHECK_TEST (test_a_tap_keeps_the_newest_frame)
{
  const guint16 samples[8] = {0};
  GstBuffer *last = buffer_of (samples, sizeof (samples), 4);
  GstImagingTap *tap;
  GstSample *sample;

  open_pads (GREY16);
  tap = gst_imaging_tap_new (src);
  gst_pad_push (src, buffer_of (samples, sizeof (samples), 0));
  gst_imaging_tap_keep (tap, TRUE);
  fail_unless (gst_imaging_tap_get_kept (tap) == NULL);
  for (guint i = 1; i < 4; i++)
    gst_pad_push (src, buffer_of (samples, sizeof (samples), i));
  gst_pad_push (src, gst_buffer_ref (last));
  sample = gst_imaging_tap_get_kept (tap);
  fail_unless (gst_sample_get_buffer (sample) == last);
  fail_unless (gst_sample_get_caps (sample) != NULL);
  gst_sample_unref (sample);
  gst_imaging_tap_keep (tap, FALSE);
  fail_unless (gst_imaging_tap_get_kept (tap) == NULL);
  ASSERT_BUFFER_REFCOUNT (last, "the newest frame", 1);
  gst_imaging_tap_keep (tap, TRUE);
  gst_pad_push (src, gst_buffer_ref (last));
  g_object_unref (tap); /* with a frame in it */
  ASSERT_BUFFER_REFCOUNT (last, "the newest frame", 1);
  gst_buffer_unref (last);
  close_pads ();
}

#ifdef __linux__
/* Returns: whether @task is the thread of a view */
static gboolean
is_view (const gchar *task)
{
  g_autofree gchar *path =
      g_build_filename ("/proc/self/task", task, "comm", NULL);
  g_autofree gchar *name = NULL;

  return g_file_get_contents (path, &name, NULL, NULL) &&
         g_str_equal (name, "imaging-view\n");
}

/* sched_attr of linux/sched/types.h */
typedef struct {
  guint32 size, policy;
  guint64 flags;
  gint32 nice;
  guint32 priority;
  guint64 slice_ns, deadline, period;
} Scheduling;

/* Threads of the pipeline do not wait for its slice: kernels before 6.12 tell
 * none. */
CHECK_TEST (test_the_pipeline_goes_before_its_pictures)
{
  const guint16 samples[8] = {0};
  g_autofree gchar *header = NULL;
  g_autoptr (GDir) tasks = NULL;
  GstImagingView *view;
  const gchar *task;
  guint n = 0;

  open_pads (GREY16);
  view = view_of_src (1);
  header = picture_of (view, buffer_of (samples, sizeof (samples), 0));
  tasks = g_dir_open ("/proc/self/task", 0, NULL);
  while ((task = g_dir_read_name (tasks))) {
    Scheduling found = {0};

    if (!is_view (task))
      continue;
    n++;
    fail_unless_equals_int ((int) syscall (SYS_sched_getattr, atoi (task),
                                &found, sizeof (found), 0),
        0);
    fail_unless_equals_int ((int) found.policy, SCHED_BATCH);
    fail_unless (found.nice >= 10);
    fail_unless (found.slice_ns <= 100000);
  }
  fail_unless_equals_int ((int) n, 1);
  g_object_unref (view);
  close_pads ();
}
#endif
