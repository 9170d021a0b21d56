/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element octbscan: what comes out is what its kernel gives, whatever the
 * buffers, pads, cameras and changes while it runs. */
#include "check-common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gstimagingnpy.h"
#include "imk/octbscan.h"
#include "core/failures.h"

#define WIDTH 60
#define DEPTHS 30

/* Each test runs with either backend, __i__ says which. */
static gboolean on_cuda;

/* --- files --------------------------------------------------------------- */

/* Returns: (transfer full): the path of a file of the test's own */
static gchar *
write_file (const gchar *name, const gchar *text)
{
  gchar *path = check_path_of (name);

  fail_unless (g_file_set_contents (path, text, -1, NULL));
  return path;
}

/* --- expected images ----------------------------------------------------- */

static const gdouble ranges[3][2] = {{806, 675}, {800, 680}, {700, 790}};
static const gdouble dispersion[] = {0, 1, -12};

static const gchar three_cameras[] =
    "[camera 0]\nlambda-first=806\nlambda-last=675\n"
    "[camera 1]\nlambda-first=800\nlambda-last=680\ndispersion=0;1;-12\n"
    "[camera 2]\nlambda-first=700\nlambda-last=790\n";

static ImkOctbscanCamera
camera (guint i)
{
  return (ImkOctbscanCamera){IMK_OCTBSCAN_MAP_RANGE, ranges[i], 2,
      .dispersion = dispersion, .n_dispersion = i == 1 ? 3 : 0};
}

static ImkOctbscanConfig
kernel_config (guint height)
{
  ImkOctbscanConfig c;

  imk_octbscan_config_init (&c);
  c.width = WIDTH;
  c.height = height;
  c.taper_cut = 7;
  c.upsample = 128;
  c.range_max = 90;
  /* what CUDA does; the mock has it from the CPU */
  if (on_cuda)
    c.strategy = IMK_OCTBSCAN_STRATEGY_OPERATOR;
  return c;
}

/* The properties that kernel_config () has. */
#define ELEMENT "octbscan taper-cut=7 upsample=128 range-max=90 "

/* Lines @first .. of noise that goes on for ever. */
static guint16
noise_at (guint line, guint x)
{
  guint32 v = (line * WIDTH + x + 1) * 2654435761u;

  v ^= v >> 15;
  v *= 2246822519u;
  return (guint16) ((v ^ v >> 13) >> 20);
}

static GstBuffer *
noise_lines (guint first, guint n)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, n * WIDTH * 2, NULL);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_WRITE);

  for (guint i = 0; i < n * WIDTH; i++)
    ((guint16 *) map.data)[i] = noise_at (first + i / WIDTH, i % WIDTH);
  GST_BUFFER_PTS (buffer) = first * GST_MSECOND;
  GST_BUFFER_DURATION (buffer) = n * GST_MSECOND;
  return buffer;
}

/* Fails unless @found is what the kernel makes of the lines from @first on. */
static void
check_bscan (GstBuffer *found, const ImkOctbscanConfig *config, guint first,
    guint first_camera, gboolean linear)
{
  guint32 width, height;
  g_autoptr (GstBuffer) in = noise_lines (first, config->height);
  GstMapInfo from, map;
  gint tolerance = on_cuda && !check_is_mock () ? 1 : 0;
  g_autofree guint8 *expected = NULL;
  ImkOctbscan *kernel = NULL;
  ImkError error;

  imk_octbscan_size (config, &width, &height);
  expected = g_malloc0 ((gsize) width * height);
  gst_buffer_map (in, &from, GST_MAP_READ);
  {
    ImkImage image = {from.data, WIDTH * 2, WIDTH, config->height, 1,
        IMK_TYPE_U16, IMK_LOCATION_HOST};
    ImkImage out = {
        expected, width, width, height, 1, IMK_TYPE_U8, IMK_LOCATION_HOST};
    ImkOctbscanJob job = {
        &image, first_camera, linear ? NULL : &out, linear ? &out : NULL, NULL};

    check_ok (
        imk_octbscan_new (IMK_BACKEND_CPU, config, &kernel, &error), &error);
    check_ok (imk_octbscan_process (kernel, &job, 1, NULL, &error), &error);
  }
  gst_buffer_map (found, &map, GST_MAP_READ);
  for (guint y = 0; y < height; y++)
    for (guint x = 0; x < width; x++) {
      guint f = map.data[y * GST_ROUND_UP_4 (width) + x];

      if (ABS ((gint) f - (gint) expected[y * width + x]) > tolerance)
        fail ("(%u, %u) of the B-scan of line %u is %u, expected %u", x, y,
            first, f, expected[y * width + x]);
    }
  gst_buffer_unmap (found, &map);
  gst_buffer_unmap (in, &from);
  imk_octbscan_free (kernel);
}

/* gst_harness_new_parse () would put it into a bin. */
static GstHarness *
harness_of (const gchar *launch)
{
  g_autoptr (GstElement) element = gst_parse_launch (launch, NULL);
  GstHarness *h;

  gst_util_set_object_arg (
      G_OBJECT (element), "backend", on_cuda ? "cuda" : "cpu");
  h = gst_harness_new_with_element (element, "sink", "src");
  return h;
}

static GstHarness *
harness_new (const gchar *launch, guint lines)
{
  GstHarness *h = harness_of (launch);
  g_autofree gchar *caps = g_strdup_printf (
      "video/x-raw,format=GRAY16_LE,width=%d,height=%u,framerate=100/1", WIDTH,
      lines);

  gst_harness_set_src_caps_str (h, caps);
  return h;
}

/* --- images --------------------------------------------------------------- */

CHECK_BACKENDS_TEST (test_frames_become_what_the_kernel_gives)
{
  for (guint linear = 0; linear < 2; linear++)
    for (guint rows = 0; rows < 2; rows++) {
      ImkOctbscanConfig c = kernel_config (9);
      g_autofree gchar *launch =
          g_strdup_printf (ELEMENT "scaling=%s orientation=%s",
              linear ? "linear" : "db", rows ? "rows" : "depth-down");
      g_autoptr (CheckHarness) h = harness_new (launch, 9);
      GstBuffer *out;

      c.orientation = rows;
      for (guint i = 0; i < 3; i++) {
        check_push (h, noise_lines (9 * i, 9), GST_FLOW_OK);
        out = check_pull (h);
        check_bscan (out, &c, 9 * i, 0, linear);
        fail_unless_equals_uint64 (GST_BUFFER_PTS (out), 9 * i * GST_MSECOND);
        fail_unless_equals_uint64 (GST_BUFFER_DURATION (out), 9 * GST_MSECOND);
        gst_buffer_unref (out);
      }
      fail_unless_equals_uint64 (check_stat (h->element, "frames"), 3);
    }
}

CHECK_CASE ("octbscan", check_make_folder, check_remove_folder)

/* The two pads together; then one of them alone. */
CHECK_BACKENDS_TEST (test_linear_pad_beside_src)
{
  for (guint with_src = 0; with_src < 2; with_src++) {
    ImkOctbscanConfig c = kernel_config (9);
    g_autoptr (GstElement) element = gst_parse_launch (ELEMENT, NULL);
    g_autoptr (CheckHarness) h = NULL, linear = NULL;
    GstBuffer *out;

    gst_util_set_object_arg (
        G_OBJECT (element), "backend", on_cuda ? "cuda" : "cpu");
    h = gst_harness_new_with_element (element, "sink", with_src ? "src" : NULL);
    linear = gst_harness_new_with_element (element, NULL, "linear");
    gst_harness_play (linear);
    gst_harness_set_src_caps_str (
        h, "video/x-raw,format=GRAY16_LE,width=60,height=9,framerate=100/1");
    for (guint i = 0; i < 2; i++) {
      check_push (h, noise_lines (9 * i, 9), GST_FLOW_OK);
      out = check_pull (linear);
      check_bscan (out, &c, 9 * i, 0, TRUE);
      gst_buffer_unref (out);
      if (with_src) {
        out = check_pull (h);
        check_bscan (out, &c, 9 * i, 0, FALSE);
        gst_buffer_unref (out);
      }
    }
  }
}

CHECK_BACKENDS_TEST (test_sixteen_bits_when_downstream_wants_them)
{
  g_autoptr (CheckHarness) h = harness_of (ELEMENT);
  g_autoptr (GstCaps) caps = NULL;
  GstBuffer *out;

  gst_harness_set_sink_caps_str (h, "video/x-raw,format=GRAY16_LE");
  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY16_LE,width=60,height=10,framerate=100/1");
  check_push (h, noise_lines (0, 10), GST_FLOW_OK);
  out = check_pull (h);
  fail_unless_equals_uint64 (gst_buffer_get_size (out), 10 * DEPTHS * 2);
  gst_buffer_unref (out);
  caps = gst_pad_get_current_caps (h->sinkpad);
  fail_unless (caps != NULL);
}

/* --- lines ---------------------------------------------------------------- */

/* Buffers of 7 lines, B-scans of 10 and of 3; 3 cameras, so that turns are
 * carried on. */
CHECK_BACKENDS_TEST (test_lines_are_gathered_and_turns_carried_on)
{
  g_autofree gchar *path = write_file ("three.ini", three_cameras);
  ImkOctbscanCamera cameras[] = {camera (0), camera (1), camera (2)};

  for (guint k = 0; k < 2; k++) {
    guint height = k ? 3 : 10, n_lines = 0, n_bscans = 0;
    ImkOctbscanConfig c = kernel_config (height);
    g_autofree gchar *launch = g_strdup_printf (ELEMENT
        "cameras=3 ascans-per-bscan=%u first-camera=1 calibration=%s",
        height, path);
    g_autoptr (CheckHarness) h = harness_new (launch, 7);
    g_autoptr (CheckBus) bus = check_watch (h->element);

    c.n_cameras = 3;
    c.cameras = cameras;
    for (guint i = 0; i < 8; i++) {
      check_push (h, noise_lines (n_lines, 7), GST_FLOW_OK);
      n_lines += 7;
      for (; (n_bscans + 1) * height <= n_lines; n_bscans++) {
        g_autoptr (GstBuffer) out = check_pull (h);

        check_bscan (
            out, &c, n_bscans * height, (1 + n_bscans * height) % 3, FALSE);
        fail_unless_equals_uint64 (
            GST_BUFFER_PTS (out), n_bscans * height * GST_MSECOND);
      }
      fail_unless (gst_harness_try_pull (h) == NULL);
    }
    gst_harness_push_event (h, gst_event_new_eos ());
    check_warning (bus, STREAM, FORMAT,
        k ? "2 lines do not fill a B-scan of 3"
          : "6 lines do not fill a B-scan of 10");
  }
}

/* The cameras take turns in lines that are skipped as well. */
CHECK_BACKENDS_TEST (test_first_lines_are_skipped)
{
  g_autofree gchar *path = write_file ("three.ini", three_cameras);
  ImkOctbscanCamera cameras[] = {camera (0), camera (1), camera (2)};

  for (guint gather = 0; gather < 2; gather++) {
    g_autofree gchar *launch = g_strdup_printf (ELEMENT
        "cameras=3 skip-first-line=2 calibration=%s ascans-per-bscan=%u",
        path, gather ? 11 : 0);
    ImkOctbscanConfig c = kernel_config (9);
    g_autoptr (CheckHarness) h = harness_new (launch, gather ? 22 : 11);
    g_autoptr (CheckBus) bus = check_watch (h->element);

    c.n_cameras = 3;
    c.cameras = cameras;
    for (guint i = 0; i < 4; i++) {
      g_autoptr (GstBuffer) out = NULL;

      if (!gather)
        check_push (h, noise_lines (11 * i, 11), GST_FLOW_OK);
      else if (i % 2 == 0)
        check_push (h, noise_lines (11 * i, 22), GST_FLOW_OK);
      out = check_pull (h);
      check_bscan (out, &c, 11 * i + 2, (11 * i + 2) % 3, FALSE);
      fail_unless_equals_uint64 (GST_BUFFER_PTS (out), 11 * i * GST_MSECOND);
      fail_unless_equals_uint64 (GST_BUFFER_DURATION (out), 11 * GST_MSECOND);
    }
    g_object_set (h->element, "skip-first-line", 0, NULL);
    c.height = 11;
    check_push (h, noise_lines (44, gather ? 22 : 11), GST_FLOW_OK);
    {
      g_autoptr (GstBuffer) out = check_pull (h);

      check_bscan (out, &c, 44, 44 % 3, FALSE);
    }
    g_object_set (h->element, "skip-first-line", 11, NULL);
    check_push (
        h, noise_lines (gather ? 66 : 55, gather ? 22 : 11), GST_FLOW_OK);
    check_warning (bus, LIBRARY, SETTINGS,
        "skip-first-line is 11 and leaves none of the 11 lines");
  }
}

/* Three lines a buffer, without those from @first on. Returns: the images */
static GPtrArray *
images_without (guint first, guint n_lost, gboolean numbered, GstBus **bus)
{
  GPtrArray *images =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gst_buffer_unref);
  g_autoptr (CheckHarness) h = harness_new (
      "octbscan cameras=3 ascans-per-bscan=10 upsample=128 taper-cut=7 "
      "range-max=60 bidirectional=true",
      3);
  GstBuffer *image;

  *bus = check_watch (h->element);
  for (guint i = 0; i < 40; i++) {
    GstBuffer *in = noise_lines (3 * i, 3);

    if (numbered) {
      GST_BUFFER_PTS (in) = GST_BUFFER_DURATION (in) = GST_CLOCK_TIME_NONE;
      GST_BUFFER_OFFSET (in) = 100 + i;
    }
    if (i >= first && i < first + n_lost)
      gst_buffer_unref (in);
    else
      check_push (h, in, GST_FLOW_OK);
  }
  gst_harness_push_event (h, gst_event_new_eos ());
  while ((image = gst_harness_try_pull (h)))
    g_ptr_array_add (images, image);
  fail_unless_equals_uint64 (check_stat (h->element, "frames-missing"), n_lost);
  gst_element_set_bus (h->element, NULL);
  return images;
}

/* B-scans that have lost lines are left out, and all others are as they would
 * be: their first line, their cameras, their direction. */
static void
check_lost_buffers (guint first, guint n_lost, gboolean numbered)
{
  GstBus *bus, *other;
  GPtrArray *all = images_without (0, 0, numbered, &other);
  GPtrArray *some = images_without (first, n_lost, numbered, &bus);
  guint from = 3 * first / 10, end = (3 * (first + n_lost) + 9) / 10, k = 0;

  fail_unless_equals_int (all->len, 12);
  fail_unless_equals_int (some->len, 12 - (end - from));
  for (guint i = 0; i < 12; i++) {
    GstBuffer *a = all->pdata[i], *b;
    GstMapInfo x, y;

    if (i >= from && i < end)
      continue;
    b = some->pdata[k++];
    fail_unless (GST_BUFFER_PTS (a) == GST_BUFFER_PTS (b));
    gst_buffer_map (a, &x, GST_MAP_READ);
    gst_buffer_map (b, &y, GST_MAP_READ);
    fail_unless (x.size == 12 * DEPTHS && y.size == x.size);
    for (guint d = 0; d < DEPTHS; d++)
      fail_unless (!memcmp (x.data + 12 * d, y.data + 12 * d, 10),
          "without buffers %u to %u B-scan %u is another at depth %u", first,
          first + n_lost - 1, i, d);
    gst_buffer_unmap (a, &x);
    gst_buffer_unmap (b, &y);
  }
  check_warning (bus, STREAM, FAILED, "of 3 lines did not arrive");
  check_no_messages (bus, GST_MESSAGE_WARNING);
  check_no_messages (other, GST_MESSAGE_WARNING);
  g_ptr_array_unref (all);
  g_ptr_array_unref (some);
  gst_object_unref (bus);
  gst_object_unref (other);
}

CHECK_BACKENDS_TEST (test_lines_that_did_not_arrive_take_their_turns)
{
  for (gint numbered = 0; numbered < 2; numbered++) {
    check_lost_buffers (5, 1, numbered);
    check_lost_buffers (9, 2, numbered);
    check_lost_buffers (10, 10, numbered); /* whole B-scans */
    check_lost_buffers (31, 1, numbered);
  }
}

CHECK_BACKENDS_TEST (test_gathering_is_latency)
{
  g_autoptr (CheckHarness) h = harness_new (ELEMENT "ascans-per-bscan=20", 10);

  gst_harness_set_upstream_latency (h, 5 * GST_MSECOND);
  check_push (h, noise_lines (0, 10), GST_FLOW_OK);
  fail_unless_equals_uint64 (gst_harness_query_latency (h), 15 * GST_MSECOND);
}

/* After a flush the stream begins anew, with camera first-camera. */
CHECK_BACKENDS_TEST (test_flush_forgets_lines)
{
  g_autofree gchar *path = write_file ("three.ini", three_cameras);
  g_autofree gchar *launch = g_strdup_printf (
      ELEMENT "cameras=3 ascans-per-bscan=10 calibration=%s", path);
  ImkOctbscanCamera cameras[] = {camera (0), camera (1), camera (2)};
  ImkOctbscanConfig c = kernel_config (10);
  g_autoptr (CheckHarness) h = harness_new (launch, 5);
  g_autoptr (GstBuffer) out = NULL;

  c.n_cameras = 3;
  c.cameras = cameras;
  for (guint i = 0; i < 3; i++)
    check_push (h, noise_lines (5 * i, 5), GST_FLOW_OK);
  gst_buffer_unref (check_pull (h));
  check_flush (h);
  check_push (h, noise_lines (50, 5), GST_FLOW_OK);
  check_push (h, noise_lines (55, 5), GST_FLOW_OK);
  out = check_pull (h);
  check_bscan (out, &c, 50, 0, FALSE);
}

/* --- changes -------------------------------------------------------------- */

CHECK_BACKENDS_TEST (test_everything_changes_while_playing)
{
  g_autofree gchar *path = write_file ("three.ini", three_cameras);
  ImkOctbscanCamera cameras[] = {camera (2), camera (1)};
  ImkOctbscanConfig c = kernel_config (9);
  g_autoptr (CheckHarness) h = harness_new (ELEMENT, 9);
  guint line = 0;

#define NEXT(first_camera) \
  do { \
    GstBuffer *out_; \
\
    check_push (h, noise_lines (line, 9), GST_FLOW_OK); \
    out_ = check_pull (h); \
    check_bscan (out_, &c, line, first_camera, FALSE); \
    gst_buffer_unref (out_); \
    line += 9; \
  } while (0)

  NEXT (0);
  g_object_set (h->element, "range-min", 20.0, "range-max", 80.0, NULL);
  c.range_min = 20;
  c.range_max = 80;
  NEXT (0);
  g_object_set (h->element, "range", IMK_OCTBSCAN_RANGE_MINMAX, NULL);
  c.range = IMK_OCTBSCAN_RANGE_MINMAX;
  NEXT (0);
  g_object_set (h->element, "scale", 4, "crop-top", 3, "crop-bottom", 50,
      "window", IMK_OCTBSCAN_WINDOW_HANN, NULL);
  c.scale = 4;
  c.crop_top = 3;
  c.crop_bottom = 50;
  c.window = IMK_OCTBSCAN_WINDOW_HANN;
  NEXT (0);
  g_object_set (h->element, "orientation", IMK_OCTBSCAN_ORIENTATION_ROWS,
      "strategy", IMK_OCTBSCAN_STRATEGY_OPERATOR, NULL);
  c.orientation = IMK_OCTBSCAN_ORIENTATION_ROWS;
  c.strategy = IMK_OCTBSCAN_STRATEGY_OPERATOR;
  NEXT (0);
  gst_util_set_object_arg (G_OBJECT (h->element), "camera-order", "<2,1>");
  g_object_set (
      h->element, "calibration", path, "cameras", 2, "first-camera", 1, NULL);
  c.n_cameras = 2;
  c.cameras = cameras;
  NEXT (1);
  NEXT (0);
  NEXT (1);
}

/* --- files of a calibration ----------------------------------------------- */

static void
save_npy (const gchar *name, const gdouble *values, guint64 n)
{
  g_autofree gchar *path = check_path_of (name);

  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_F64, 1, &n, values, NULL));
}

/* Every kind of file, named relative to the .ini, gives what its numbers give
 * the kernel. */
CHECK_BACKENDS_TEST (test_files_are_read)
{
  static const gchar *const texts[] = {
      "[camera]\nwavelengths=waves.npy\nphase=phase.npy\ngain=2\n",
      "[camera]\nchirp=curve.txt\nphase=phase.npy\nphase-domain=spectrum\n",
      "[camera]\nk-index=curve.npy\ndispersion=1;-3\n",
  };
  static const gdouble slope[] = {1, -3};
  gdouble waves[WIDTH], curve[WIDTH], phase[WIDTH], background[WIDTH];
  GString *chirp = g_string_new (NULL);
  gchar number[G_ASCII_DTOSTR_BUF_SIZE], *path;

  for (guint i = 0; i < WIDTH; i++) {
    waves[i] = 806 - 2.2 * i + 0.001 * i * i;
    curve[i] = 0.5 + i * 0.9 + 0.001 * i * i;
    phase[i] = 0.002 * i * i;
    background[i] = 1000 + 7 * i;
    g_string_append (chirp, g_ascii_dtostr (number, sizeof (number), curve[i]));
    g_string_append (chirp, "\r\n");
  }
  g_free (write_file ("curve.txt", chirp->str));
  g_string_free (chirp, TRUE);
  save_npy ("waves.npy", waves, WIDTH);
  save_npy ("curve.npy", curve, WIDTH);
  save_npy ("phase.npy", phase, WIDTH);
  save_npy ("background.npy", background, WIDTH);
  path = check_path_of ("background.npy");

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    const ImkOctbscanCamera cameras[] = {
        {IMK_OCTBSCAN_MAP_WAVELENGTHS, waves, WIDTH, phase, WIDTH, .gain = 2},
        {IMK_OCTBSCAN_MAP_CHIRP, curve, WIDTH, .spectrum_phase = phase},
        {IMK_OCTBSCAN_MAP_K_INDEX, curve, WIDTH, .dispersion = slope,
            .n_dispersion = 2},
    };
    g_autofree gchar *ini = write_file ("files.ini", texts[i]);
    g_autofree gchar *launch = g_strdup_printf (ELEMENT
        "calibration=%s background=file background-location=%s",
        ini, path);
    ImkOctbscanConfig c = kernel_config (9);
    g_autoptr (CheckHarness) h = harness_new (launch, 9);
    g_autoptr (GstBuffer) out = NULL;

    c.cameras = &cameras[i];
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_FILE;
    c.background = background;
    check_push (h, noise_lines (0, 9), GST_FLOW_OK);
    out = check_pull (h);
    check_bscan (out, &c, 0, 0, FALSE);
  }
  g_free (path);
}

/* --- refusals ------------------------------------------------------------- */

typedef struct {
  const gchar *calibration; /* text of the .ini */
  const gchar *properties;
  const gchar *words;
} Refusal;

static const Refusal refusals[] = {
    {"[camera]\nlambda-frist=806\n", "", "lambda-frist in [camera]"},
    {"[camera]\nlambda-first=806\n", "", "has no lambda-last beside it"},
    {"[camera]\nlambda-last=806\n", "", "has no lambda-first beside it"},
    {"[camera]\nlambda-first=8o6\nlambda-last=675\n", "", "holds \"8o6\""},
    {"[camera]\nlambda-first=806,5\nlambda-last=675\n", "", "holds \"806,5\""},
    {"[camera]\nlambda-first=\nlambda-last=675\n", "",
        "lambda-first in [camera]"},
    {"[camera]\nlambda-first=806;1\nlambda-last=675\n", "",
        "must be one number"},
    {"[camera]\nlambda-first=806\nlambda-last=675\npolynomial=1;2\n", "",
        "is one map too many"},
    {"[camera]\npolynomial=806;-40;1\n", "", "polynomial of camera 0 is not"},
    {"[camera]\npolynomial=806;x\n", "", "holds \"x\""},
    {"[camera]\nwavelengths=nothing.npy\n", "", "wavelengths in [camera]"},
    {"[camera]\nchirp=nothing.txt\n", "", "chirp in [camera]"},
    {"[camera]\nchirp=short.txt\n", "",
        "chirp of camera 0 has 3 values, but a spectrum has 60"},
    {"[camera]\nchirp=bad.txt\n", "", "holds \"two\""},
    {"[camera]\nk-index=\n", "", "k-index in [camera]"},
    {"[camera]\nphase-domain=time\n", "", "phase-domain in [camera]"},
    {"[camera]\ndispersion=0;;nan\n", "", "dispersion of camera 0 is nan"},
    {"[camera]\ngain=0\n", "", "gain in [camera]"},
    {"[camera]\ngain=1;2\n", "", "gain in [camera]"},
    {"[camera]\nsamples=0\n", "", "samples in [camera]"},
    {"[camera]\nk-polynomial=1;2\nsamples=64\n", "",
        "was made from spectra of 64 samples, but these have 60"},
    {"[camera 0]\nsamples=60\n[camera 1]\nsamples=61\n", "cameras=2",
        "[camera 1] of calibration"},
    {"[camera 0]\n[camera 1]\n", "cameras=3", "has 2 cameras, but camera 2"},
    {"[camera 0]\n[camera 2]\n", "cameras=1", "[camera 2] in calibration"},
    {"[kamera]\n", "", "[kamera] in calibration"},
    {"[camera 0]\n[camera 00]\n", "", "[camera 00] in calibration"},
    {"[camera 0]\n[camera  0]\n", "", "[camera  0] in calibration"},
    {"camera\n", "", "cannot be read"},
    {"[camera]\n", "cameras=2 camera-order=<0>", "camera-order has 1"},
    {"[camera]\n", "upsample=30", "upsample is 30"},
    {"[camera]\n", "crop-top=20 crop-bottom=10", "leave none of the 30"},
    {"[camera]\n", "range-min=91", "range-min is 91"},
    {"[camera]\n", "background=file", "background-location"},
    {"[camera]\n", "background=file background-location=/nowhere.npy",
        "background-location"},
};

CHECK_LOOP_TEST (test_wrong_calibrations_are_said, G_N_ELEMENTS (refusals))
{
  const Refusal *r = &refusals[__i__];
  g_autofree gchar *path = write_file ("wrong.ini", r->calibration);
  g_autofree gchar *launch =
      g_strdup_printf (ELEMENT "calibration=%s %s", path, r->properties);
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;

  g_free (write_file ("short.txt", "0\n1.5\n3\n"));
  g_free (write_file ("bad.txt", "0\ntwo\n3\n"));
  h = harness_of (launch);
  bus = check_watch (h->element);
  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY16_LE,width=60,height=9,framerate=100/1");
  gst_harness_push (h, noise_lines (0, 9));
  check_says (bus, GST_MESSAGE_ERROR, r->words);
  check_no_messages (bus, GST_MESSAGE_ERROR);
}

/* A wrong setting while playing is a warning at the next frame, which is made
 * with the settings before. */
CHECK_BACKENDS_TEST (test_wrong_setting_while_playing)
{
  g_autoptr (CheckHarness) h = harness_new (ELEMENT, 9);
  g_autoptr (CheckBus) bus = check_watch (h->element);

  check_push (h, noise_lines (0, 9), GST_FLOW_OK);
  g_object_set (h->element, "crop-top", 40, NULL);
  check_push (h, noise_lines (9, 9), GST_FLOW_OK);
  check_warning (bus, LIBRARY, SETTINGS, "leave none of the 30");
  gst_buffer_unref (check_pull (h));
  gst_buffer_unref (check_pull (h));
  check_no_messages (bus, GST_MESSAGE_ERROR);
}

/* --- real spectra --------------------------------------------------------- */

/* Pushes @n B-scans of a file of raw u16 lines, which begins anew at its end;
 * 0: all. Returns: the images in @format, none without the file */
static GPtrArray *
run_file (const gchar *name, const gchar *launch, guint width, guint height,
    guint n, const gchar *format)
{
  g_autofree gchar *path =
      g_build_filename (check_data_folder (), "octbscan", name, NULL);
  g_autofree gchar *out = g_strdup_printf ("video/x-raw,format=%s", format);
  g_autofree gchar *caps = g_strdup_printf (
      "video/x-raw,format=GRAY16_LE,width=%u,height=%u,framerate=25/1", width,
      height);
  g_autofree gchar *bytes = NULL;
  GPtrArray *images =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gst_buffer_unref);
  gsize size, frame = (gsize) width * height * 2;
  g_autoptr (CheckHarness) h = NULL;

  if (!g_file_get_contents (path, &bytes, &size, NULL))
    return images;
  h = harness_of (launch);
  gst_harness_set_sink_caps_str (h, out);
  gst_harness_set_src_caps_str (h, caps);
  for (guint i = 0; i < (n > 0 ? n : size / frame); i++) {
    const gchar *bscan = bytes + i % (size / frame) * frame;

    check_push (h, gst_buffer_new_memdup (bscan, frame), GST_FLOW_OK);
    g_ptr_array_add (images, check_pull (h));
  }
  return images;
}

/* Mean of I^2 over the square of the mean of I, from depth 5 on. */
static gdouble
sharpness (GstBuffer *image, guint n_rows, guint n_depths)
{
  gdouble sum = 0, squares = 0, n = n_rows * (n_depths - 5.0);
  g_auto (CheckMap) map = check_map (image, GST_MAP_READ);

  for (guint y = 0; y < n_rows; y++)
    for (guint x = 5; x < n_depths; x++) {
      gdouble v = ((const guint16 *) map.data)[y * n_depths + x];

      sum += v;
      squares += v * v;
    }
  return squares / n / (sum / n * sum / n);
}

/* octcal: what its README found with numpy, and what the definition of exact
 * interpolation gives in float64 (numpy). */
CHECK_BACKENDS_TEST (test_sharpness_of_a_published_calibration)
{
  static const struct {
    const gchar *interpolation;
    gboolean has_phase;
    gdouble expected, tolerance;
  } cases[] = {{"linear", FALSE, 37.3, 0.01}, {"linear", TRUE, 38.6, 0.01},
      {"exact", FALSE, 36.4202, 1e-3}, {"exact", TRUE, 37.6784, 1e-3}};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *octcal =
        g_build_filename (check_data_folder (), "octbscan", "octcal", NULL);
    g_autofree gchar *phase =
        cases[i].has_phase
            ? g_strdup_printf (
                  "phase=%s/dispersion.npy\nphase-domain=spectrum\n", octcal)
            : g_strdup ("");
    g_autofree gchar *text =
        g_strdup_printf ("[camera]\nk-index=%s/klinear.npy\n%s", octcal, phase);
    g_autofree gchar *path = write_file ("octcal.ini", text);
    g_autofree gchar *element = g_strdup_printf (
        "octbscan calibration=%s upsample=1024 "
        "interpolation=%s taper=none window=hann scaling=linear "
        "range=minmax orientation=rows",
        path, cases[i].interpolation);
    g_autoptr (GPtrArray) images =
        run_file ("octcal/bscans_040-047_1024x100x8_u16le.raw", element, 1024,
            100, 0, "GRAY16_LE");
    gdouble found = 0;

    if (images->len == 0)
      check_skip ("there is no octcal");
    fail_unless_equals_int (images->len, 8);
    found = sharpness (images->pdata[0], 100, 512);
    fail_unless (fabs (found / cases[i].expected - 1) < cases[i].tolerance,
        "sharpness %.3f, expected %.3f", found, cases[i].expected);
  }
}

/* octopod: the brightest layer at bin 127, 20.1 dB above the median depth. */
CHECK_BACKENDS_TEST (test_layers_of_a_retina)
{
  g_autofree gchar *path = write_file (
      "octopod.ini", "[camera]\npolynomial=806;-0.064\ndispersion=0;0;-12\n");
  g_autofree gchar *element = g_strdup_printf (
      "octbscan calibration=%s upsample=2048 interpolation=linear "
      "taper=none window=hann scaling=db range-min=-60 range-max=60 "
      "orientation=rows",
      path);
  g_autoptr (GPtrArray) images = run_file (
      "octopod/volume_2048x20x20_u16le.unp", element, 2048, 20, 0, "GRAY16_LE");
  gdouble depths[1024] = {0}, sorted[1024], best = 0;
  guint at = 0;

  if (images->len == 0)
    check_skip ("there is no octopod");
  fail_unless_equals_int (images->len, 20);
  for (guint i = 0; i < images->len; i++) {
    g_auto (CheckMap) map = check_map (images->pdata[i], GST_MAP_READ);

    for (guint k = 0; k < 20 * 1024; k++)
      depths[k % 1024] +=
          pow (10, (((const guint16 *) map.data)[k] * 120.0 / 65535 - 60) / 10);
  }
  for (guint q = 20; q < 1024; q++)
    if (depths[q] > best) {
      best = depths[q];
      at = q;
    }
  memcpy (sorted, depths, sizeof (sorted));
  for (guint i = 1; i < 1024; i++)
    for (guint k = i; k > 0 && sorted[k] < sorted[k - 1]; k--) {
      gdouble swap = sorted[k];

      sorted[k] = sorted[k - 1];
      sorted[k - 1] = swap;
    }
  fail_unless_equals_int (at, 127);
  best = 10 * log10 (best / sorted[512]);
  fail_unless (fabs (best - 20.1) < 0.2,
      "the brightest layer is %.2f dB above the median depth, expected 20.1",
      best);
}

/* The device fails for good in the middle of a stream: a warning, and the CPU
 * goes on without losing a B-scan. */
/* --- range=auto ----------------------------------------------------------- */

static gdouble
black_level (GstBuffer *image)
{
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (image, "GstImagingQuantity");
  gdouble black = 0;

  fail_unless (meta != NULL, "an image without its ends");
  fail_unless (gst_structure_get_double (
      gst_custom_meta_get_structure (meta), "offset", &black));
  return black;
}

static gint
compare_rows (gconstpointer a, gconstpointer b)
{
  const guint *x = a, *y = b;

  return (*x < *y) - (*x > *y);
}

static gint
compare_bytes (gconstpointer a, gconstpointer b)
{
  return *(const guint8 *) a - *(const guint8 *) b;
}

/* The fifth of the rows that is brightest has a median between 60 and 160, and
 * fewer than 1 % of all samples are white. */
static void
check_first_picture (
    const gchar *name, guint i, GstBuffer *image, guint width, guint height)
{
  gsize stride = GST_ROUND_UP_4 (width), n = 0, n_white = 0;
  guint (*rows)[2] = g_malloc (height * sizeof (*rows));
  g_autofree guint8 *bright = g_malloc ((gsize) width * height);
  GstMapInfo map;

  gst_buffer_map (image, &map, GST_MAP_READ);
  for (guint y = 0; y < height; y++) {
    rows[y][0] = 0;
    rows[y][1] = y;
    for (guint x = 0; x < width; x++) {
      rows[y][0] += map.data[y * stride + x];
      n_white += map.data[y * stride + x] == 255;
    }
  }
  qsort (rows, height, sizeof (*rows), compare_rows);
  for (guint k = 0; k < height / 5; k++)
    for (guint x = 0; x < width; x++)
      bright[n++] = map.data[rows[k][1] * stride + x];
  gst_buffer_unmap (image, &map);
  qsort (bright, n, 1, compare_bytes);
  fail_unless (bright[n / 2] >= 60 && bright[n / 2] <= 160,
      "%s, image %u: the median of the brightest rows is %u", name, i,
      bright[n / 2]);
  fail_unless (n_white * 100 < (gsize) width * height,
      "%s, image %u: %u samples are white", name, i, (guint) n_white);
  g_free (rows);
}

/* B-scans of a real file with the properties of @ini alone. */
static void
check_first_pictures (
    const gchar *name, const gchar *ini, guint width, guint height)
{
  g_autofree gchar *calibration = write_file ("auto.ini", ini);
  g_autofree gchar *launch =
      g_strdup_printf ("octbscan backend=cpu calibration=%s", calibration);
  g_autoptr (GPtrArray) images =
      run_file (name, launch, width, height, 20, "GRAY8");
  gdouble offsets[20];

  if (images->len == 0)
    check_skip ("there is no %s", name);
  for (guint i = 0; i < images->len; i++) {
    offsets[i] = black_level (images->pdata[i]);
    check_first_picture (name, i, images->pdata[i], height, width / 2);
  }
  for (guint i = 8; i < images->len; i++)
    fail_unless (offsets[i] == offsets[7], "%s: black is %g dB at %u, then %g",
        name, offsets[7], i, offsets[i]);
  fail_unless (offsets[1] != offsets[0] && offsets[6] != offsets[7],
      "%s: the first ends stay", name);
}

CHECK_TEST (test_first_pictures_of_octcal)
{
  g_autofree gchar *ini = g_strdup_printf (
      "[camera]\nk-index=%s/octbscan/octcal/klinear.npy\n"
      "phase=%s/octbscan/octcal/dispersion.npy\nphase-domain=spectrum\n",
      check_data_folder (), check_data_folder ());

  check_first_pictures (
      "octcal/bscans_040-047_1024x100x8_u16le.raw", ini, 1024, 100);
}

CHECK_TEST (test_first_pictures_of_octopod)
{
  check_first_pictures ("octopod/volume_2048x20x20_u16le.unp",
      "[camera]\npolynomial=806;-0.064\ndispersion=0;0;-12\n", 2048, 20);
}

/* --- axes ----------------------------------------------------------------- */

typedef struct {
  gdouble step, origin;
  gchar unit[8];
} Axis;

/* Pushes noise. Returns: axis @k of the image, which has the name @name */
static Axis
axis_of (GstHarness *h, guint k, const gchar *name)
{
  gchar *fields[] = {g_strdup_printf ("axis-%u-name", k),
      g_strdup_printf ("axis-%u-unit", k), g_strdup_printf ("axis-%u-step", k),
      g_strdup_printf ("axis-%u-origin", k)};
  const GstStructure *s;
  g_autoptr (GstBuffer) image = NULL;
  Axis axis;

  check_push (h, noise_lines (0, 9), GST_FLOW_OK);
  image = check_pull (h);
  s = gst_custom_meta_get_structure (
      gst_buffer_get_custom_meta (image, "GstImagingQuantity"));
  fail_unless_equals_string (gst_structure_get_string (s, fields[0]), name);
  g_strlcpy (
      axis.unit, gst_structure_get_string (s, fields[1]), sizeof (axis.unit));
  fail_unless (gst_structure_get (s, fields[2], G_TYPE_DOUBLE, &axis.step,
      fields[3], G_TYPE_DOUBLE, &axis.origin, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (fields); i++)
    g_free (fields[i]);
  return axis;
}

static void
check_axis (Axis axis, const gchar *unit, gdouble step, gdouble origin)
{
  fail_unless_equals_string (axis.unit, unit);
  fail_unless (ABS (axis.step - step) <= 1e-9 * ABS (step) &&
                   ABS (axis.origin - origin) <= 1e-9 * ABS (origin),
      "step %.12g and origin %.12g, not %.12g and %.12g", axis.step,
      axis.origin, step, origin);
}

CHECK_BACKENDS_TEST (test_images_have_axes)
{
  /* um: (M - 1) / (s M) / (2 |1 / lambda_first - 1 / lambda_last|) */
  const gdouble step = 127.0 / 128 / (2 * (1 / 0.675 - 1 / 0.806));
  g_autofree gchar *ini = check_path_of ("axes.ini");
  g_autofree gchar *launch =
      g_strdup_printf (ELEMENT "crop-top=5 calibration=%s", ini);
  g_autoptr (CheckHarness) h = NULL;
  Axis axis;

  fail_unless (g_file_set_contents (
      ini, "[camera]\nlambda-first=806\nlambda-last=675\n", -1, NULL));
  h = harness_new (launch, 9);
  check_axis (axis_of (h, 1, "depth"), "um", step, 5 * step);
  check_axis (axis_of (h, 0, "lateral"), "pixel", 1, 0);

  /* while frames arrive */
  g_object_set (
      h->element, "refractive-index", 1.4, "lateral-step-um", 12.5, NULL);
  check_axis (axis_of (h, 1, "depth"), "um", step / 1.4, 5 * step / 1.4);
  check_axis (axis_of (h, 0, "lateral"), "um", 12.5, 0);

  gst_util_set_object_arg (G_OBJECT (h->element), "flip", "both");
  axis = axis_of (h, 1, "depth");
  fail_unless (axis.step < 0 && axis.origin > 0);
  check_axis (axis_of (h, 0, "lateral"), "um", -12.5, 8 * 12.5);
  gst_util_set_object_arg (G_OBJECT (h->element), "flip", "none");
  g_object_set (h->element, "average-ascans", 3, NULL);
  check_axis (axis_of (h, 0, "lateral"), "um", 37.5, 12.5);
  gst_util_set_object_arg (G_OBJECT (h->element), "orientation", "rows");
  check_axis (axis_of (h, 0, "depth"), "um", step / 1.4, 5 * step / 1.4);
  gst_harness_teardown (h);

  h = harness_new (ELEMENT, 9);
  check_axis (axis_of (h, 1, "depth"), "pixel", 1, 0);
}

static gdouble
black_of (GstHarness *h, guint i)
{
  g_autoptr (GstBuffer) image = NULL;

  check_push (h, noise_lines (9 * i, 9), GST_FLOW_OK);
  image = check_pull (h);
  return black_level (image);
}

/* Ends that are set are fixed, by whatever way; auto begins anew. */
CHECK_BACKENDS_TEST (test_setting_an_end_fixes_the_range)
{
  static const gchar *const names[] = {
      "range-min", "range-max", "linear-min", "linear-max"};
  g_autoptr (CheckHarness) h = NULL;
  gdouble first, held;

  h = harness_new ("octbscan upsample=128 taper-cut=7 ", 9);
  first = black_of (h, 0);
  for (guint i = 1; i < 8; i++)
    held = black_of (h, i);
  fail_unless (held != first);
  for (guint i = 8; i < 12; i++)
    fail_unless (black_of (h, i) == held, "the range moves at %u", i);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    GstStructure *s =
        gst_structure_new ("settings", names[i], G_TYPE_DOUBLE, 5.0, NULL);
    gint range;

    gst_util_set_object_arg (G_OBJECT (h->element), "range", "auto");
    if (i % 2)
      g_object_set (h->element, "settings", s, NULL);
    else
      g_object_set (h->element, names[i], 5.0, NULL);
    gst_structure_free (s);
    g_object_get (h->element, "range", &range, NULL);
    fail_unless_equals_int (range, IMK_OCTBSCAN_RANGE_FIXED);
  }
  fail_unless (black_of (h, 1) == 5);
  gst_util_set_object_arg (G_OBJECT (h->element), "range", "auto");
  fail_unless (black_of (h, 0) == first, "auto does not begin anew");
  for (guint i = 1; i < 10; i++)
    black_of (h, i);
  g_signal_emit_by_name (h->element, "reset-range");
  fail_unless (black_of (h, 0) == first, "reset-range does not begin anew");
}

enum { RANGE_WIDE = 256, RANGE_TALL = 40 };

/* B-scan @i: noise, and with @sample reflectors at many depths. */
static GstBuffer *
range_lines (guint i, gboolean sample)
{
  GstBuffer *in =
      gst_buffer_new_allocate (NULL, RANGE_WIDE * RANGE_TALL * 2, NULL);
  GRand *random = g_rand_new_with_seed (i);
  g_auto (CheckMap) map = check_map (in, GST_MAP_WRITE);

  for (guint y = 0; y < RANGE_TALL; y++) {
    gdouble light[RANGE_WIDE] = {0};

    for (guint k = 0; sample && k < 20; k++) {
      gdouble f = g_rand_double_range (random, 0.6, 1.6), a = 60.0 / (k + 1);
      gdouble phase = g_rand_double_range (random, 0, 6.28);

      for (guint x = 0; x < RANGE_WIDE; x++)
        light[x] += a * cos (f * x + phase);
    }
    for (guint x = 0; x < RANGE_WIDE; x++)
      ((guint16 *) map.data)[y * RANGE_WIDE + x] =
          (guint16) (2000 + light[x] + g_rand_double_range (random, -3, 3));
  }
  g_rand_free (random);
  GST_BUFFER_PTS (in) = i * 10 * GST_MSECOND;
  GST_BUFFER_DURATION (in) = 10 * GST_MSECOND;
  return in;
}

/* Its black and white, dB, and how many of a thousand samples are white. */
static void
range_of (GstHarness *h, GstBuffer *in, gdouble ends[2], gdouble *white)
{
  const GstStructure *s;
  g_autoptr (GstBuffer) image = NULL;
  GstMapInfo map;
  guint n = 0;

  check_push (h, in, GST_FLOW_OK);
  image = check_pull (h);
  s = gst_custom_meta_get_structure (
      gst_buffer_get_custom_meta (image, "GstImagingQuantity"));
  fail_unless (gst_structure_get (s, "offset", G_TYPE_DOUBLE, &ends[0], "scale",
      G_TYPE_DOUBLE, &ends[1], NULL));
  ends[1] = ends[0] + 255 * ends[1];
  gst_buffer_map (image, &map, GST_MAP_READ);
  for (gsize i = 0; i < map.size; i++)
    n += map.data[i] == 255;
  *white = 1000.0 * n / map.size;
  gst_buffer_unmap (image, &map);
}

static GstHarness *
range_harness (guint rate)
{
  g_autofree gchar *caps =
      g_strdup_printf ("video/x-raw,format=GRAY16_LE,"
                       "width=256,height=40,framerate=%u/1",
          rate);
  GstHarness *h = harness_of ("octbscan upsample=512");

  gst_harness_set_sink_caps_str (h, "video/x-raw,format=GRAY8");
  gst_harness_set_src_caps_str (h, caps);
  return h;
}

/* Live the light is on before the sample is there: what is held of noise is
 * given up when there is more, and what is held of a sample stays. */
CHECK_BACKENDS_TEST (test_range_auto_waits_for_the_sample)
{
  enum { N_NOISE = 150, N = 300 };
  gdouble alone[2], ends[2], held[2] = {0, 0}, white;
  guint n_changes = 0, settled = 0;
  g_autoptr (CheckHarness) h = NULL;

  h = range_harness (100);
  for (guint i = 0; i < 9; i++)
    range_of (h, range_lines (1000 + i, TRUE), alone, &white);
  fail_unless (alone[1] - alone[0] > 20);
  gst_harness_teardown (h);

  h = range_harness (100);
  for (guint i = 0; i < N; i++) {
    range_of (h, range_lines (i, i >= N_NOISE), ends, &white);
    if (i >= 8 && i < N_NOISE) {
      fail_unless (
          ends[1] - ends[0] < 16, "noise over %g dB", ends[1] - ends[0]);
      n_changes += ends[0] != held[0] || ends[1] != held[1];
    }
    if (i >= N_NOISE && !settled && ends[1] - ends[0] > 20)
      settled = i;
    if (settled && i >= settled) {
      fail_unless (
          white < 10, "%g of 1000 samples of B-scan %u are white", white, i);
      fail_unless (ABS (ends[0] - alone[0]) < 1 && ABS (ends[1] - alone[1]) < 1,
          "B-scan %u from %g to %g dB, alone from %g to %g", i, ends[0],
          ends[1], alone[0], alone[1]);
    }
    if (settled && i >= settled + 8)
      fail_unless (ends[0] == held[0] && ends[1] == held[1],
          "the ends change at B-scan %u", i);
    memcpy (held, ends, sizeof (held));
  }
  fail_unless (settled && settled <= N_NOISE + 66, "settled at %u", settled);
  fail_unless (n_changes <= 4, "the ends of noise changed %u times", n_changes);
}

/* Each look at noise empties the queue of a device: a fast camera has a tenth
 * of a second between two. */
CHECK_TEST (test_a_fast_camera_holds_noise_longer)
{
  g_autoptr (CheckHarness) h = range_harness (2000);
  gdouble ends[2], held[2] = {0, 0}, white;
  guint n_changes = 0;

  for (guint i = 0; i < 8 + 2 * 202; i++) {
    range_of (h, range_lines (i, FALSE), ends, &white);
    n_changes += i > 8 && (ends[0] != held[0] || ends[1] != held[1]);
    memcpy (held, ends, sizeof (held));
  }
  fail_unless_equals_int (n_changes, 2);
}

/* Eight B-scans of 40 lines. Returns: the warnings that speak of a fringe */
static guint
n_fringe_warnings (const gchar *launch, gdouble mirror, gboolean sample)
{
  g_autoptr (CheckHarness) h = harness_of (launch);
  g_autoptr (GstBus) bus = check_watch (h->element);
  GstMessage *message;
  guint n = 0;

  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY16_LE,width=256,height=40,framerate=100/1");
  for (guint i = 0; i < 8; i++) {
    GstBuffer *in = range_lines (i, sample);
    GstMapInfo map;

    gst_buffer_map (in, &map, GST_MAP_READWRITE);
    for (guint k = 0; k < RANGE_WIDE * RANGE_TALL; k++) {
      gdouble x = k % RANGE_WIDE;

      /* a source of 2000 counts in the middle, and what a mirror adds */
      ((guint16 *) map.data)[k] +=
          (guint16) (2000 * exp (-pow ((x - 128) / 60, 2)) +
                     mirror * (1 + cos (0.9 * x)));
    }
    gst_buffer_unmap (in, &map);
    check_push (h, in, GST_FLOW_OK);
    gst_buffer_unref (check_pull (h));
  }
  while ((message = gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING))) {
    g_autofree gchar *text = NULL;
    g_autoptr (GError) error = NULL;

    gst_message_parse_warning (message, &error, &text);
    n += strstr (error->message, "which background=mean takes off") != NULL;
    gst_message_unref (message);
  }
  gst_element_set_bus (h->element, NULL);
  return n;
}

CHECK_BACKENDS_TEST (test_a_mirror_that_the_mean_takes_off_is_one_warning)
{
  fail_unless_equals_int (
      n_fringe_warnings ("octbscan upsample=512", 40, FALSE), 1);
  fail_unless_equals_int (
      n_fringe_warnings ("octbscan upsample=512 cameras=2", 40, FALSE), 1);
  fail_unless_equals_int (
      n_fringe_warnings ("octbscan upsample=512", 0, FALSE), 0);
  fail_unless_equals_int (
      n_fringe_warnings ("octbscan upsample=512", 0, TRUE), 0);
  fail_unless_equals_int (
      n_fringe_warnings ("octbscan upsample=512", 40, TRUE), 0);
  fail_unless_equals_int (
      n_fringe_warnings ("octbscan upsample=512 background=rolling", 40, FALSE),
      0);
}

/* --- live dispersion ------------------------------------------------------ */

static void
set_array (gpointer element, const gchar *name, gdouble value)
{
  g_auto (GValue) array = G_VALUE_INIT, number = G_VALUE_INIT;

  g_value_init (&array, GST_TYPE_ARRAY);
  g_value_init (&number, G_TYPE_DOUBLE);
  g_value_set_double (&number, value);
  gst_value_array_append_value (&array, &number);
  g_object_set_property (G_OBJECT (element), name, &array);
}

static GstClockTime
processor_time (void)
{
  struct timespec now;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &now);
  return GST_TIMESPEC_TO_TIME (now);
}

/* Each B-scan has the dispersion that was set before it, and none is late; the
 * first change alone plans. */
CHECK_TEST (test_dispersion_changes_live)
{
  enum { WIDE = 2048, TALL = 128, N = 40 };
  const GstClockTime period = 40 * GST_MSECOND;
  g_autoptr (GstBuffer) in =
      gst_buffer_new_allocate (NULL, WIDE * TALL * 2, NULL);
  g_autoptr (CheckHarness) h = NULL, other = NULL;
  GstClockTime usual = GST_CLOCK_TIME_NONE;
  GstMapInfo map;

  on_cuda = FALSE;
  gst_buffer_map (in, &map, GST_MAP_WRITE);
  for (guint i = 0; i < WIDE * TALL; i++)
    ((guint16 *) map.data)[i] =
        (guint16) (2000 + 300 * cos (0.4 * (i % WIDE) + i / WIDE));
  gst_buffer_unmap (in, &map);
  h = harness_of ("octbscan backend=cpu range-max=60 dispersion-2=<1.0>");
  other = harness_of ("octbscan backend=cpu range-max=60");
  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY16_LE,width=2048,height=128,framerate=25/1");
  gst_harness_set_src_caps_str (other,
      "video/x-raw,format=GRAY16_LE,width=2048,height=128,framerate=25/1");
  for (guint i = 0; i < N; i++) {
    /* of the processor: a busy machine is not the element's */
    GstClockTime began = processor_time (), took;
    g_autoptr (GstBuffer) found = NULL;

    if (i >= N / 2) {
      set_array (h->element, "dispersion-2", -9 + 0.5 * i);
      set_array (h->element, "dispersion-3", 0.1 * i);
    }
    check_push (h, gst_buffer_ref (in), GST_FLOW_OK);
    found = check_pull (h);
    took = processor_time () - began;
    if (i < N / 2)
      usual = i == 0 ? took : MAX (usual, took);
    else
      fail_unless (took < usual + period,
          "B-scan %u took %" G_GUINT64_FORMAT " us, others %" G_GUINT64_FORMAT,
          i, took / 1000, usual / 1000);
    if (i == N - 1) {
      g_autoptr (GstBuffer) expected = NULL;
      g_autofree gchar *text =
          g_strdup_printf ("0;0;%g;%g", -9 + 0.5 * i, 0.1 * i);
      GstMapInfo a, b;
      guint n_off = 0;

      g_object_set (other->element, "dispersion", text, NULL);
      check_push (other, gst_buffer_ref (in), GST_FLOW_OK);
      expected = check_pull (other);
      gst_buffer_map (found, &a, GST_MAP_READ);
      gst_buffer_map (expected, &b, GST_MAP_READ);
      fail_unless_equals_uint64 (a.size, b.size);
      for (gsize k = 0; k < a.size; k++) {
        gint d = a.data[k] - b.data[k];

        fail_unless (ABS (d) <= 1, "byte %u is off by %d", (guint) k, d);
        n_off += d != 0;
      }
      fail_unless (n_off < a.size / 500, "%u bytes are off", n_off);
      gst_buffer_unmap (found, &a);
      gst_buffer_unmap (expected, &b);
    }
  }
  fail_unless_equals_uint64 (check_stat (h->element, "replans"), 0);
}

enum { LIVE_WIDE = 1024, LIVE_TALL = 64 };

static GstHarness *
live_harness (gdouble d2, gdouble d3)
{
  g_autofree gchar *launch = g_strdup_printf (
      "octbscan range-max=60 dispersion-2=<%.3f> dispersion-3=<%.3f>", d2, d3);
  GstHarness *h = harness_of (launch);

  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY16_LE,width=1024,height=64,framerate=25/1");
  return h;
}

/* Is @found what an element gives that begins with this dispersion? */
static void
check_fresh (GstBuffer *in, GstBuffer *found, gdouble d2, gdouble d3)
{
  g_autoptr (CheckHarness) h = live_harness (d2, d3);
  g_autoptr (GstBuffer) fresh = NULL;
  GstMapInfo a, b;

  check_push (h, gst_buffer_ref (in), GST_FLOW_OK);
  fresh = check_pull (h);
  gst_buffer_map (found, &a, GST_MAP_READ);
  gst_buffer_map (fresh, &b, GST_MAP_READ);
  fail_unless_equals_uint64 (a.size, b.size);
  for (gsize k = 0; k < a.size; k++)
    fail_unless (a.data[k] == b.data[k],
        "dispersion-2=%g: byte %u is %u, in a fresh element %u", d2, (guint) k,
        a.data[k], b.data[k]);
  gst_buffer_unmap (found, &a);
  gst_buffer_unmap (fresh, &b);
}

enum { LIVE_N = 40 };

/* Of all threads. Unlike a clock it does not count other programs. */
static GstClockTime
cpu_time (void)
{
  struct timespec t;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return GST_TIMESPEC_TO_TIME (t);
}

/* The longest B-scans, of the first half with one dispersion, of the second
 * with another each. */
static void
change_live (GstHarness *h, GstBuffer *in, GstClockTime longest[2])
{
  longest[0] = longest[1] = 0;
  for (guint i = 0; i < LIVE_N; i++) {
    gboolean moves = i >= LIVE_N / 2;
    gdouble d2 = -9 + 0.5 * i, d3 = 0.125 * i;
    GstClockTime began = cpu_time (), took;
    g_autoptr (GstBuffer) found = NULL;

    if (moves) {
      set_array (h->element, "dispersion-2", d2);
      set_array (h->element, "dispersion-3", d3);
    }
    check_push (h, gst_buffer_ref (in), GST_FLOW_OK);
    found = check_pull (h);
    took = cpu_time () - began;
    if (i >= 4) /* the first ones make what all need */
      longest[moves] = MAX (longest[moves], took);
    if (moves && i % 5 == 0)
      check_fresh (in, found, d2, d3);
  }
}

/* The same bits as without the changes before, and no image is a period of the
 * camera late. */
CHECK_BACKENDS_TEST (test_live_dispersion_is_that_of_a_fresh_element)
{
  const GstClockTime period = 40 * GST_MSECOND;
  g_autoptr (GstBuffer) in =
      gst_buffer_new_allocate (NULL, LIVE_WIDE * LIVE_TALL * 2, NULL);
  GstClockTime longest[2];
  g_autoptr (CheckHarness) h = NULL;
  GstMapInfo map;

  gst_buffer_map (in, &map, GST_MAP_WRITE);
  for (guint i = 0; i < LIVE_WIDE * LIVE_TALL; i++)
    ((guint16 *) map.data)[i] =
        (guint16) (2000 + 300 * cos (0.2 * (i % LIVE_WIDE) + i / LIVE_WIDE) +
                   90 * cos (1.1 * (i % LIVE_WIDE) + 0.7 * (i / LIVE_WIDE)));
  gst_buffer_unmap (in, &map);
  h = live_harness (1, 0);
  change_live (h, in, longest);
  g_print ("# %s: the longest B-scan took %.2f ms of CPU, with another "
           "dispersion %.2f ms\n",
      on_cuda ? "cuda" : "cpu", (gdouble) longest[0] / GST_MSECOND,
      (gdouble) longest[1] / GST_MSECOND);
  fail_unless (longest[1] < longest[0] + period);
  fail_unless_equals_uint64 (check_stat (h->element, "replans"), 0);
}

CHECK_MOCK_TEST (test_auto_goes_on_with_the_cpu)
{
  ImkOctbscanConfig c;
  g_autoptr (GstElement) element = gst_parse_launch (ELEMENT, NULL);
  g_autoptr (CheckHarness) h =
      gst_harness_new_with_element (element, "sink", "src");
  g_autoptr (CheckBus) bus = check_watch (h->element);
  gchar *backend;

  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY16_LE,width=60,height=20,framerate=100/1");
  for (guint i = 0; i < 4; i++) {
    GstBuffer *out;

    if (i == 2)
      imk_inject_failure (1, TRUE);
    check_push (h, noise_lines (20 * i, 20), GST_FLOW_OK);
    imk_inject_failure (0, FALSE);
    out = check_pull (h);
    on_cuda = i < 2;
    c = kernel_config (20);
    check_bscan (out, &c, 20 * i, 0, FALSE);
    gst_buffer_unref (out);
    g_object_get (element, "active-backend", &backend, NULL);
    fail_unless_equals_string (backend, i < 2 ? "cuda" : "cpu");
    g_free (backend);
  }
  fail_unless_equals_uint64 (check_stat (element, "frames"), 4);
  fail_unless_equals_uint64 (check_stat (element, "lost-frames"), 0);
  check_warning (bus, LIBRARY, FAILED, "the CPU goes on");
  check_no_messages (bus, GST_MESSAGE_ERROR);
}
