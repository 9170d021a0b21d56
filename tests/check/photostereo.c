/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The photostereo element, on the CPU and on the mock of a device: sets, pads,
 * formats, messages, and what is refused. What it computes, the kernel's tests
 * check; a picture here is a plane under known lights. */
#include "check-common.h"

#include <math.h>
#include <unistd.h>

#include "gstimagingnpy.h"
#include "gstimagingresults.h"

enum { N_LIGHTS = 8, WIDTH = 31, HEIGHT = 5 };

static const gdouble normal_[] = {0.36, 0.48, 0.8};
static const gdouble albedo_ = 0.7;

static void
light_at (guint i, gdouble l[3])
{
  gdouble phi = 2 * G_PI * i / N_LIGHTS, z = i % 2 ? 0.9 : 0.8;

  l[0] = sqrt (1 - z * z) * cos (phi);
  l[1] = sqrt (1 - z * z) * sin (phi);
  l[2] = z;
}

/* The grey value of the plane under light @i. */
static gdouble
shade (guint i)
{
  gdouble l[3];

  light_at (i, l);
  return albedo_ * (normal_[0] * l[0] + normal_[1] * l[1] + normal_[2] * l[2]);
}

/* Returns: (transfer full): the path of a file with @text */
static gchar *
write_file (const gchar *name, const gchar *text)
{
  gchar *path = check_path_of (name);

  fail_unless (g_file_set_contents (path, text, -1, NULL));
  return path;
}

static gchar *
write_lights (guint n)
{
  g_autoptr (GString) text = g_string_new (NULL);
  gchar buffer[3][G_ASCII_DTOSTR_BUF_SIZE], *path;

  g_string_append_printf (text, "%u\n", n);
  for (guint i = 0; i < n; i++) {
    gdouble l[3];

    light_at (i, l);
    for (guint k = 0; k < 3; k++)
      g_ascii_dtostr (buffer[k], sizeof (buffer[k]), l[k]);
    g_string_append_printf (
        text, "%u.png %s %s %s\n", i, buffer[0], buffer[1], buffer[2]);
  }
  path = write_file ("lights.lp", text->str);
  return path;
}

/* --- harnesses ------------------------------------------------------------ */

typedef struct {
  GstElement *element;
  GstHarness *sink; /* pictures go in here */
  /* NULL where not asked */
  GstHarness *normal, *albedo, *ambient, *quality, *confidence, *mask;
  GstBus *bus;
  gboolean is_bayer;
  GstVideoInfo info;
} Ps;

/* @pads: names of outputs in a row, with spaces; @caps: what their peers take,
 * NULL for tensors */
static Ps
ps_new (const gchar *properties, const gchar *pads, const gchar *caps)
{
  g_autofree gchar *lights = write_lights (N_LIGHTS);
  g_autofree gchar *line =
      g_strdup_printf ("photostereo lights-location=%s %s", lights, properties);
  Ps ps = {.element = check_launch (line)};
  GstHarness **slots[] = {&ps.normal, &ps.albedo, &ps.ambient, &ps.quality,
      &ps.confidence, &ps.mask};
  const gchar *names[] = {
      "normal", "albedo", "ambient", "quality", "confidence", "mask"};

  ps.bus = check_watch (ps.element);
  ps.sink = gst_harness_new_with_element (ps.element, "sink", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strstr (pads, names[i])) {
      *slots[i] = gst_harness_new_with_element (ps.element, NULL, names[i]);
      gst_harness_set_sink_caps_str (*slots[i], caps ? caps : "other/tensors");
    }
  return ps;
}

static void
ps_free (Ps *ps)
{
  GstHarness *harnesses[] = {ps->normal, ps->albedo, ps->ambient, ps->quality,
      ps->confidence, ps->mask, ps->sink};

  check_take_down (ps->element, ps->bus, harnesses, G_N_ELEMENTS (harnesses));
  fail_unless_equals_int (check_n_live (), 0);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Ps, ps_free)

static void
ps_caps_of (Ps *ps, const gchar *format, gint width, gint height)
{
  static const gchar *const patterns[] = {"bggr", "rggb", "gbrg", "grbg"};
  g_autofree gchar *caps = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (patterns); i++)
    ps->is_bayer = ps->is_bayer || g_str_equal (format, patterns[i]);
  ps->info = check_info (ps->is_bayer ? "GRAY8" : format, width, height);
  caps =
      g_strdup_printf ("video/x-%s,format=%s,width=%d,height=%d,framerate=25/1",
          ps->is_bayer ? "bayer" : "raw", format, width, height);
  gst_harness_set_src_caps_str (ps->sink, caps);
}

static void
ps_caps (Ps *ps, const gchar *format)
{
  ps_caps_of (ps, format, WIDTH, HEIGHT);
}

/* For tensors, pictures have come in @format. */
static Ps
ps_begin (const gchar *properties, const gchar *pads, const gchar *format)
{
  Ps ps = ps_new (properties, pads, NULL);

  ps_caps (&ps, format);
  return ps;
}

/* Returns: (transfer full): the plane under light @i, its albedo times @paint,
 * with noise in alpha */
static GstBuffer *
painted_picture (const Ps *ps, guint i, gdouble paint)
{
  GstBuffer *buffer = check_noise (&ps->info, i);
  const GstVideoFormatInfo *finfo = ps->info.finfo;
  guint bits = GST_VIDEO_FORMAT_INFO_DEPTH (finfo, 0);
  guint n = GST_VIDEO_FORMAT_INFO_IS_RGB (finfo) ? 3 : 1;
  guint value = (guint) (paint * shade (i) * ((1u << bits) - 1) + 0.5);
  GstVideoFrame frame;

  fail_unless (
      gst_video_frame_map (&frame, &ps->info, buffer, GST_MAP_READWRITE));
  for (guint c = 0; c < n; c++)
    for (gint y = 0; y < ps->info.height; y++)
      for (gint x = 0; x < ps->info.width; x++) {
        guint8 *p = (guint8 *) GST_VIDEO_FRAME_COMP_DATA (&frame, c) +
                    y * GST_VIDEO_FRAME_COMP_STRIDE (&frame, c) +
                    x * GST_VIDEO_FRAME_COMP_PSTRIDE (&frame, c);

        if (bits == 8)
          *p = (guint8) value;
        else
          *(guint16 *) p = (guint16) value;
      }
  gst_video_frame_unmap (&frame);
  return buffer;
}

static GstBuffer *
picture (const Ps *ps, guint i)
{
  return painted_picture (ps, i, 1);
}

static void
ps_push (Ps *ps, guint i)
{
  GstMessage *message;
  GError *error;

  if (gst_harness_push (ps->sink, picture (ps, i)) == GST_FLOW_OK)
    return;
  message = check_message (ps->bus, GST_MESSAGE_ERROR);
  gst_message_parse_error (message, &error, NULL);
  fail ("%s, picture %u: %s", ps->info.finfo->name, i, error->message);
}

static void
ps_push_set (Ps *ps)
{
  for (guint i = 0; i < N_LIGHTS; i++)
    ps_push (ps, i);
}

/* Fails unless the next tensor of @h has @values at every pixel. */
static void
check_tensor (GstHarness *h, const gdouble *values, guint n, gdouble tolerance)
{
  g_autoptr (GstBuffer) buffer = check_pull (h);
  const gfloat *found;
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_READ);

  fail_unless_equals_uint64 (map.size, WIDTH * HEIGHT * n * sizeof (gfloat));
  found = (const gfloat *) map.data;
  for (guint i = 0; i < WIDTH * HEIGHT * n; i++)
    fail_unless (fabs (found[i] - values[i % n]) <= tolerance,
        "%f at pixel %u, channel %u; expected %f", found[i], i / n, i % n,
        values[i % n]);
}

static void
check_no_buffer (GstHarness *h)
{
  fail_unless (gst_harness_try_pull (h) == NULL);
}

/* Returns: (transfer full): the next element message of that name */
static GstMessage *
next_message (Ps *ps, const gchar *name)
{
  GstMessage *message;

  for (;;) {
    message = check_message (ps->bus, GST_MESSAGE_ELEMENT);
    if (gst_message_has_name (message, name))
      return message;
    gst_message_unref (message);
  }
}

static void
check_progress (Ps *ps, guint lights, gboolean final)
{
  g_autoptr (GstMessage) message = next_message (ps, "photostereo-progress");
  const GstStructure *s = gst_message_get_structure (message);
  guint found, size;
  gboolean is_final;
  guint64 pixels, invalid;
  gdouble share;

  fail_unless (gst_structure_get (s, "lights", G_TYPE_UINT, &found, "set-size",
      G_TYPE_UINT, &size, "final", G_TYPE_BOOLEAN, &is_final, "pixels",
      G_TYPE_UINT64, &pixels, "invalid", G_TYPE_UINT64, &invalid,
      "invalid-share", G_TYPE_DOUBLE, &share, NULL));
  fail_unless_equals_int (found, lights);
  fail_unless_equals_int (size, N_LIGHTS);
  fail_unless_equals_int (is_final, final);
  fail_unless_equals_uint64 (pixels, WIDTH * HEIGHT);
  fail_unless_equals_uint64 (invalid, lights < 3 ? pixels : 0);
  fail_unless_equals_float (share, lights < 3 ? 1 : 0);
  fail_unless_equals_string (
      gst_structure_get_string (s, "element"), "photostereo");
  fail_unless (gst_structure_has_field (s, "settings-hash") &&
               gst_structure_has_field (s, "frame") &&
               gst_structure_has_field (s, "backend") &&
               gst_structure_has_field (s, "version"));
}

/* --- tests ---------------------------------------------------------------- */

CHECK_CASE ("photostereo", check_make_folder, check_remove_folder)

CHECK_TEST (test_every_format_gives_the_plane)
{
  static const gchar *const formats[] = {"GRAY8", "GRAY16_LE", "RGB", "BGR",
      "RGBx", "BGRx", "xRGB", "xBGR", "RGBA", "BGRA", "ARGB", "ABGR",
      "RGBA64_LE", "ARGB64_LE", "bggr", "rggb", "gbrg", "grbg"};
  const gdouble albedo[] = {albedo_, albedo_, albedo_};

  for (guint cuda = 0; cuda < 2; cuda++)
    for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
      g_auto (Ps) ps = ps_begin (cuda ? "backend=cuda" : "backend=cpu",
          "normal albedo ambient", formats[i]);
      gboolean grey = g_str_has_prefix (formats[i], "GRAY");
      gdouble ambient[3] = {0};

      for (guint k = 0; k < N_LIGHTS; k++)
        ambient[0] += shade (k) / N_LIGHTS;
      ambient[1] = ambient[2] = ambient[0];
      ps_push_set (&ps);
      check_tensor (ps.normal, normal_, 3, 0.005);
      check_tensor (ps.albedo, albedo, grey ? 1 : 3, 0.003);
      check_tensor (ps.ambient, ambient, grey ? 1 : 3, 0.002);
      check_progress (&ps, N_LIGHTS, TRUE);
    }
}

/* Fails unless the first pixel of the next buffer has these samples. */
static void
check_first_pixel (
    GstHarness *h, const gchar *format, const guint *expected, guint n)
{
  g_autoptr (GstBuffer) buffer = check_pull (h);
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (h->sinkpad);
  const gchar *found =
      gst_structure_get_string (gst_caps_get_structure (caps, 0), "format");
  gboolean wide = g_str_has_suffix (format, "_LE");
  GstMapInfo map;

  fail_unless_equals_string (found, format);
  fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
  for (guint i = 0; i < n; i++) {
    gint value = wide ? ((guint16 *) map.data)[i] : map.data[i];

    fail_unless (abs (value - (gint) expected[i]) <= (wide ? 200 : 1),
        "%s sample %u is %d, expected %u", format, i, value, expected[i]);
  }
  gst_buffer_unmap (buffer, &map);
}

static void
check_refused (
    const gchar *properties, GQuark domain, gint code, const gchar *words)
{
  g_auto (Ps) ps = ps_begin (properties, "normal", "GRAY8");

  gst_harness_push (ps.sink, picture (&ps, 0));
  check_message_says (
      check_message (ps.bus, GST_MESSAGE_ERROR), domain, code, words);
  check_no_buffer (ps.normal);
}

/* Samples of @bits in the low bits, in GRAY8 or GRAY16_LE. */
static GstBuffer *
raw_picture (const Ps *ps, guint i, guint bits)
{
  GstBuffer *buffer = picture (ps, i);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_READWRITE);

  for (gsize k = 0; bits > 8 && k < map.size / 2; k++)
    ((guint16 *) map.data)[k] =
        (guint16) (shade (i) * ((1u << bits) - 1) + 0.5);
  return buffer;
}

/* Seven pictures of the plane and one of one and a half times its albedo. */
static void
push_doubtful_set (Ps *ps)
{
  for (guint i = 0; i < N_LIGHTS; i++)
    check_push (
        ps->sink, painted_picture (ps, i, i == 3 ? 1.5 : 1), GST_FLOW_OK);
}

/* Returns: the confidence of each pixel, in float64 from albedo and quality */
static gdouble
check_confidence_as_floats (const gchar *properties)
{
  g_auto (Ps) ps =
      ps_begin (properties, "albedo quality confidence mask", "GRAY16_LE");
  g_autoptr (GstBuffer) quality = NULL;
  g_autoptr (GstBuffer) albedo = NULL;
  const gdouble one = 1;
  gdouble confidence;
  gfloat q[4], a;

  push_doubtful_set (&ps);
  quality = check_pull (ps.quality);
  albedo = check_pull (ps.albedo);
  gst_buffer_extract (quality, 0, q, sizeof (q));
  gst_buffer_extract (albedo, 0, &a, sizeof (a));
  fail_unless (q[2] > 0.01, "the residual is %g", q[2]);
  confidence =
      1 / (1 + 180 / G_PI * q[2] / a / sqrt ((N_LIGHTS - 3) * (gdouble) q[3]));
  fail_unless (confidence > 0.05 && confidence < 0.5, "%g", confidence);
  check_tensor (ps.confidence, &confidence, 1, 1e-6);
  check_tensor (ps.mask, &one, 1, 0);
  return confidence;
}

CHECK_TEST (test_confidence_and_mask_tell_where_normals_are_sound)
{
  static const gchar *const properties[] = {
      "backend=cpu robust=none", "backend=cuda robust=none"};
  static const gchar *const formats[] = {"GRAY8", "GRAY16_LE"};
  static const guint white[] = {255, 65535};

  for (guint i = 0; i < G_N_ELEMENTS (properties); i++) {
    gdouble confidence = check_confidence_as_floats (properties[i]);

    for (guint k = 0; k < G_N_ELEMENTS (formats); k++) {
      g_autofree gchar *caps =
          g_strdup_printf ("video/x-raw,format=%s", formats[k]);
      g_auto (Ps) ps = ps_new (properties[i], "confidence mask", caps);
      const guint sample = (guint) (confidence * white[k] + 0.5);

      ps_caps (&ps, "GRAY16_LE");
      push_doubtful_set (&ps);
      check_first_pixel (ps.confidence, formats[k], &sample, 1);
      check_first_pixel (ps.mask, formats[k], &white[k], 1);
    }
  }
}

CHECK_TEST (test_each_output_has_the_name_of_its_quantity)
{
  g_auto (Ps) ps = ps_begin (
      "backend=cpu", "normal albedo ambient confidence mask", "GRAY16_LE");
  GstHarness *const pads[] = {
      ps.normal, ps.albedo, ps.ambient, ps.confidence, ps.mask};
  static const gchar *const names[] = {
      "normal", "albedo", "ambient", "confidence", "mask"};

  push_doubtful_set (&ps);
  for (guint i = 0; i < G_N_ELEMENTS (pads); i++) {
    g_autoptr (GstBuffer) buffer = check_pull (pads[i]);
    GstCustomMeta *meta =
        gst_buffer_get_custom_meta (buffer, "GstImagingQuantity");

    fail_unless (meta != NULL, "%s", names[i]);
    fail_unless_equals_string (
        gst_structure_get_string (gst_custom_meta_get_structure (meta), "name"),
        names[i]);
  }
}

CHECK_TEST (test_half_a_camera_is_refused)
{
  check_refused ("height-rounds=1 focal-length-mm=50",
      CHECK_CODE (LIBRARY, SETTINGS),
      "focal-length-mm is 50 and sensor-width-mm 0: a camera needs both");
}

CHECK_TEST (test_mosaics_of_sensors_have_8_to_16_bits)
{
  static const gchar *const patterns[] = {"bggr", "rggb", "gbrg", "grbg"};
  const gdouble albedo[] = {albedo_, albedo_, albedo_};

  for (guint cuda = 0; cuda < 2; cuda++)
    for (guint i = 0; i < G_N_ELEMENTS (patterns); i++)
      for (guint bits = 8; bits <= 16; bits += 2) {
        g_autofree gchar *properties =
            g_strdup_printf ("backend=%s bayer-pattern=%s bit-depth=%u",
                cuda ? "cuda" : "cpu", patterns[i], bits);
        g_auto (Ps) ps = ps_begin (
            properties, "normal albedo", bits == 8 ? "GRAY8" : "GRAY16_LE");

        for (guint k = 0; k < N_LIGHTS; k++)
          check_push (ps.sink, raw_picture (&ps, k, bits), GST_FLOW_OK);
        check_tensor (ps.normal, normal_, 3, 0.005);
        check_tensor (ps.albedo, albedo, 3, 0.003);
      }
}

/* room for one row of 31 pixels and eight lights, 22 kB, not for five */
#define STRIPS "backend=cuda memory-limit=30000"

/* Returns: (transfer full): the normals of the second set of two */
static GBytes *
solve_sets (const gchar *properties)
{
  g_auto (Ps) ps = ps_begin (properties, "normal", "GRAY8");
  GBytes *normals = NULL;

  for (guint set = 0; set < 2; set++) {
    g_autoptr (GstBuffer) buffer = NULL;
    gpointer data;
    gsize size;

    ps_push_set (&ps);
    buffer = check_pull (ps.normal);
    g_clear_pointer (&normals, g_bytes_unref);
    gst_buffer_extract_dup (buffer, 0, -1, &data, &size);
    normals = g_bytes_new_take (data, size);
  }
  return normals;
}

CHECK_TEST (test_a_set_that_does_not_fit_the_device_waits_outside)
{
  g_autoptr (GBytes) whole = solve_sets ("backend=cuda");
  g_autoptr (GBytes) strips = solve_sets (STRIPS);

  fail_unless (g_bytes_equal (whole, strips));
  check_refused (STRIPS " host-memory-limit=1000",
      CHECK_CODE (LIBRARY, SETTINGS),
      "8 pictures of 31x5 do not fit the device and have to stay in host "
      "memory: 1 MiB; host-memory-limit allows 0 MiB");
}

CHECK_TEST (test_pictures_that_wait_go_with_a_flush_and_with_the_element)
{
  g_auto (Ps) ps = ps_begin (STRIPS, "normal", "GRAY8");
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  ps_push (&ps, 0);
  ps_push (&ps, 1);
  check_flush (ps.sink);
  ps_push (&ps, 0); /* and again, without complaint */
}

/* Also when there is nobody upstream to hear of it. */
CHECK_LOOP_TEST (test_a_result_that_nobody_takes_is_said, 2)
{
  g_auto (Ps) ps = ps_new ("", "normal", "video/x-raw,width=3");

  ps_caps (&ps, "GRAY8");
  ps_push (&ps, 0);
  if (__i__ == 0)
    gst_harness_push_event (ps.sink, gst_event_new_eos ());
  else
    g_signal_emit_by_name (ps.element, "finish-set");
  check_error (ps.bus, STREAM, FAILED, "stream error");
}

/* Also of one that is asked for in the middle of a set. */
CHECK_TEST (test_a_late_pad_has_the_segment)
{
  g_auto (Ps) ps = ps_begin ("", "normal", "GRAY8");
  GstHarness *late, *outputs[2];
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.start = segment.time = 10 * GST_SECOND;
  gst_harness_push_event (ps.sink, gst_event_new_segment (&segment));
  ps_push (&ps, 0);
  late = gst_harness_new_with_element (ps.element, NULL, "albedo");
  gst_harness_set_sink_caps_str (late, "other/tensors");
  for (guint i = 1; i < N_LIGHTS; i++)
    ps_push (&ps, i);
  outputs[0] = ps.normal;
  outputs[1] = late;
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GstEvent) event =
        gst_pad_get_sticky_event (outputs[i]->sinkpad, GST_EVENT_SEGMENT, 0);

    gst_buffer_unref (check_pull (outputs[i]));
    gst_event_copy_segment (event, &segment);
    fail_unless_equals_uint64 (segment.start, 10 * GST_SECOND);
  }
  gst_harness_teardown (late);
}

CHECK_TEST (test_downstream_chooses_the_encoding)
{
  const guint n8[] = {174, 189, 230};
  const guint down8[] = {174, 67, 230};
  const guint n16[] = {44564, 48496, 58982, 65535};
  const guint a8[] = {179, 179, 179}, a16[] = {45874};
  g_auto (Ps) ps = ps_new ("", "normal albedo", "video/x-raw");

  ps_caps (&ps, "RGB");
  ps_push_set (&ps);
  check_first_pixel (ps.normal, "RGB", n8, 3);
  check_first_pixel (ps.albedo, "RGB", a8, 3);
  g_object_set (ps.element, "normal-encoding", 2, "y-axis", 0, NULL);
  ps_push_set (&ps);
  check_first_pixel (ps.normal, "RGBA64_LE", n16, 4);
  check_first_pixel (ps.albedo, "RGB", a8, 3);
  g_object_set (ps.element, "normal-encoding", 1, "y-axis", 1, NULL);
  ps_push_set (&ps);
  check_first_pixel (ps.normal, "RGB", down8, 3);
  ps_free (&ps);

  ps = ps_new ("", "albedo", "video/x-raw,format=GRAY16_LE");
  ps_caps (&ps, "GRAY8");
  ps_push_set (&ps);
  check_first_pixel (ps.albedo, "GRAY16_LE", a16, 1);
}

/* Fails unless offset + scale * sample of the first pixel is @values. */
/* What the message tells of the set goes with its images. */
static void
check_summary (GstBuffer *image)
{
  const GstStructure *s = gst_imaging_results_get (image, NULL);
  gfloat numbers[11] = {0};
  guint64 frame;

  fail_unless (s != NULL && gst_structure_get_uint64 (s, "frame", &frame));
  fail_unless_equals_uint64 (frame, N_LIGHTS - 1);
  fail_unless_equals_string (
      gst_structure_get_string (s, "id"), "photostereo-summary-v1");
  fail_unless_equals_string (gst_structure_get_string (s, "fields"),
      "lights,set-size,pixels,invalid,invalid-share,clipped-share,change,"
      "mean-lights,mean-rounds,mean-residual,final");
  gst_buffer_extract (
      gst_value_get_buffer (gst_structure_get_value (s, "data")), 0, numbers,
      sizeof (numbers));
  fail_unless_equals_float (numbers[0], N_LIGHTS);
  fail_unless_equals_float (numbers[1], N_LIGHTS);
  fail_unless_equals_float (numbers[2], WIDTH * HEIGHT);
  fail_unless_equals_float (numbers[10], 1);
}

static void
check_quantity (
    GstHarness *h, const gchar *name, const gdouble *values, gdouble tolerance)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (h->sinkpad);
  const gchar *format =
      gst_structure_get_string (gst_caps_get_structure (caps, 0), "format");
  g_autoptr (GstBuffer) buffer = check_pull (h);
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (buffer, "GstImagingQuantity");
  gdouble scale, offset, step, row, last;
  const GstStructure *s;
  GstMapInfo map;

  fail_unless (meta != NULL);
  s = gst_custom_meta_get_structure (meta);
  fail_unless (gst_structure_get (s, "scale", G_TYPE_DOUBLE, &scale, "offset",
      G_TYPE_DOUBLE, &offset, "axis-0-step", G_TYPE_DOUBLE, &step,
      "axis-1-step", G_TYPE_DOUBLE, &row, "axis-1-origin", G_TYPE_DOUBLE, &last,
      NULL));
  /* upwards, as the y of normals */
  fail_unless_equals_float (row, -0.25);
  fail_unless_equals_float (last, (HEIGHT - 1) * 0.25);
  fail_unless_equals_string (gst_structure_get_string (s, "name"), name);
  fail_unless_equals_string (gst_structure_get_string (s, "unit"), "");
  fail_unless_equals_string (gst_structure_get_string (s, "axis-0-unit"), "mm");
  fail_unless_equals_float (step, 0.25);
  fail_unless_equals_string (
      gst_structure_get_string (s, "element"), "photostereo");
  fail_unless (gst_structure_has_field (s, "settings-hash"));
  check_summary (buffer);
  fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
  for (guint i = 0; i < 3; i++) {
    gdouble sample = g_str_equal (format, "RGB") ? map.data[i]
                     : g_str_equal (format, "RGBA64_LE")
                         ? ((const guint16 *) map.data)[i]
                         : ((const gfloat *) map.data)[i];

    fail_unless (fabs (scale * sample + offset - values[i]) <= tolerance,
        "%s: %s %u is %g, expected %g", format, name, i,
        scale * sample + offset, values[i]);
  }
  gst_buffer_unmap (buffer, &map);
}

CHECK_TEST (test_samples_tell_what_they_stand_for)
{
  const gchar *const backends[] = {"cpu", "cuda"};
  const gdouble albedo[] = {albedo_, albedo_, albedo_};
  const struct {
    const gchar *caps;
    gdouble half; /* of a step */
  } cases[] = {{"video/x-raw,format=RGB", 0.5 / 127},
      {"video/x-raw,format=RGBA64_LE", 0.5 / 32767}, {"other/tensors", 0}};

  for (guint i = 0; i < 2 * G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *properties =
        g_strdup_printf ("mm-per-pixel=0.25 backend=%s", backends[i % 2]);
    g_auto (Ps) ps =
        ps_new (properties, "normal albedo ambient", cases[i / 2].caps);

    ps_caps (&ps, "RGBA64_LE");
    ps_push_set (&ps);
    check_quantity (ps.normal, "normal", normal_, cases[i / 2].half + 2e-4);
    check_quantity (ps.albedo, "albedo", albedo, cases[i / 2].half + 2e-4);
  }
}

CHECK_TEST (test_a_scale_of_1_is_a_scale)
{
  static const gchar *const cases[][2] = {
      {"", "pixel"}, {"mm-per-pixel=0", "pixel"}, {"mm-per-pixel=1", "mm"}};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Ps) ps = ps_begin (cases[i][0], "normal", "GRAY16_LE");
    g_autoptr (GstBuffer) buffer = NULL;
    const GstStructure *s;
    gdouble step = 0;

    ps_push_set (&ps);
    buffer = check_pull (ps.normal);
    s = gst_custom_meta_get_structure (
        gst_buffer_get_custom_meta (buffer, "GstImagingQuantity"));
    gst_structure_get_double (s, "axis-0-step", &step);
    fail_unless_equals_float (step, 1);
    fail_unless_equals_string (
        gst_structure_get_string (s, "axis-0-unit"), cases[i][1]);
  }
}

CHECK_TEST (test_y_down_goes_from_row_to_row)
{
  g_auto (Ps) ps =
      ps_begin ("mm-per-pixel=0.25 y-axis=down", "normal", "GRAY16_LE");
  g_autoptr (GstBuffer) buffer = NULL;
  const GstStructure *s;
  gdouble row, origin;

  ps_push_set (&ps);
  buffer = check_pull (ps.normal);
  s = gst_custom_meta_get_structure (
      gst_buffer_get_custom_meta (buffer, "GstImagingQuantity"));
  fail_unless (gst_structure_get (s, "axis-1-step", G_TYPE_DOUBLE, &row,
      "axis-1-origin", G_TYPE_DOUBLE, &origin, NULL));
  fail_unless_equals_float (row, 0.25);
  fail_unless_equals_float (origin, 0);
}

CHECK_TEST (test_a_set_ends_by_count_and_the_next_begins)
{
  g_auto (Ps) ps = ps_begin ("", "normal", "GRAY16_LE");

  for (guint set = 0; set < 3; set++) {
    for (guint i = 0; i < N_LIGHTS; i++) {
      check_no_buffer (ps.normal);
      ps_push (&ps, i);
    }
    check_tensor (ps.normal, normal_, 3, 5e-4);
    check_progress (&ps, N_LIGHTS, TRUE);
  }
}

CHECK_TEST (test_a_set_ends_by_set_size_signal_eos_and_caps)
{
  g_auto (Ps) ps = ps_begin ("set-size=5", "normal", "GRAY16_LE");

  for (guint i = 0; i < 5; i++)
    ps_push (&ps, i);
  check_tensor (ps.normal, normal_, 3, 5e-4);
  g_signal_emit_by_name (ps.element, "finish-set"); /* nothing is there */
  check_no_buffer (ps.normal);
  for (guint i = 0; i < 4; i++)
    ps_push (&ps, i);
  g_signal_emit_by_name (ps.element, "finish-set");
  check_tensor (ps.normal, normal_, 3, 5e-4);
  for (guint i = 0; i < 3; i++)
    ps_push (&ps, i);
  ps_caps (&ps, "GRAY8"); /* what there is is solved first */
  check_tensor (ps.normal, normal_, 3, 5e-4);
  check_warning (ps.bus, STREAM, FAILED, "3 of 5 pictures");
  for (guint i = 0; i < 4; i++)
    ps_push (&ps, i);
  fail_unless (gst_harness_push_event (ps.sink, gst_event_new_eos ()));
  check_tensor (ps.normal, normal_, 3, 0.01);
  check_warning (ps.bus, STREAM, FAILED, "4 of 5 pictures");
  check_no_messages (ps.bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
}

CHECK_TEST (test_too_few_pictures_are_said)
{
  const gdouble nothing[] = {0, 0, 0};
  const gdouble mean[] = {(shade (0) + shade (1)) / 2};
  g_auto (Ps) ps = ps_begin ("", "normal ambient", "GRAY16_LE");

  ps_push (&ps, 0);
  ps_push (&ps, 1);
  fail_unless (gst_harness_push_event (ps.sink, gst_event_new_eos ()));
  check_tensor (ps.normal, nothing, 3, 0);
  check_tensor (ps.ambient, mean, 1, 1e-4);
  check_warning (ps.bus, STREAM, FAILED, "2 of 8 pictures");
}

/* Their normals are those of the others, as lights that do not fit do not
 * count. */
CHECK_LOOP_TEST (test_a_picture_that_contradicts_the_others_is_named, 2)
{
  static const gdouble paints[] = {1, 0.95, 0.5, 0.02};
  static const gchar *const backends[] = {"backend=cpu", "backend=cuda"};

  for (guint k = 0; k < G_N_ELEMENTS (paints); k++) {
    g_auto (Ps) ps = ps_begin (backends[__i__], "normal", "GRAY16_LE");
    g_autoptr (GstMessage) message = NULL;
    gdouble residual = 0;
    guint index = 0;

    for (guint i = 0; i < N_LIGHTS; i++)
      check_push (ps.sink, painted_picture (&ps, i, i == 3 ? paints[k] : 1),
          GST_FLOW_OK);
    gst_buffer_unref (check_pull (ps.normal));
    if (paints[k] <= 0.5) {
      message = next_message (&ps, "photostereo-misfit");
      fail_unless (
          gst_structure_get (gst_message_get_structure (message), "index",
              G_TYPE_UINT, &index, "residual", G_TYPE_DOUBLE, &residual, NULL));
      fail_unless_equals_int (index, 3);
      fail_unless (residual > 0.3, "%g", residual);
      check_warning (ps.bus, STREAM, FAILED,
          "1 of 8 pictures contradict the others: of light 4 (");
    }
    check_no_messages (ps.bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
  }
}

/* Who says which light a picture is of has none in the wrong place. */
CHECK_TEST (test_lights_may_be_left_out_by_name)
{
  g_auto (Ps) ps = ps_begin ("index-source=offset", "normal", "GRAY16_LE");

  for (guint i = 0; i < N_LIGHTS; i += 2) {
    GstBuffer *buffer = picture (&ps, i);

    GST_BUFFER_OFFSET (buffer) = i;
    check_push (ps.sink, buffer, GST_FLOW_OK);
  }
  fail_unless (gst_harness_push_event (ps.sink, gst_event_new_eos ()));
  check_tensor (ps.normal, normal_, 3, 5e-4);
  check_no_messages (ps.bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
}

CHECK_TEST (test_a_mask_without_a_pixel_is_said)
{
  g_autofree gchar *path = check_path_of ("empty.npy");
  g_autofree gchar *properties = g_strdup_printf ("mask-location=%s", path);
  const guint64 dims[] = {HEIGHT, WIDTH};
  const guint8 bytes[HEIGHT * WIDTH] = {0};
  const gdouble nothing[] = {0, 0, 0};
  g_auto (Ps) ps;

  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_U8, 2, dims, bytes, NULL));
  ps = ps_new (properties, "normal", NULL);
  ps_caps (&ps, "GRAY8");
  ps_push_set (&ps);
  check_tensor (ps.normal, nothing, 3, 0);
  check_warning (ps.bus, STREAM, FAILED, "mask-location is 0 everywhere");
}

CHECK_TEST (test_a_flush_drops_the_set)
{
  g_auto (Ps) ps = ps_begin ("", "normal", "GRAY16_LE");

  for (guint i = 3; i < 8; i++)
    ps_push (&ps, i);
  check_flush (ps.sink);
  ps_push_set (&ps);
  check_tensor (ps.normal, normal_, 3, 5e-4);
  check_no_buffer (ps.normal);
}

CHECK_TEST (test_updates_show_the_set_so_far)
{
  g_auto (Ps) ps = ps_begin (
      "update-interval=3 next-light=true", "normal quality", "GRAY16_LE");
  GstMessage *message;
  guint index;

  ps_push_set (&ps);
  for (guint i = 0; i < 3; i++)
    check_tensor (ps.normal, normal_, 3, 5e-4);
  check_no_buffer (ps.normal);
  check_progress (&ps, 3, FALSE);
  message = next_message (&ps, "photostereo-next-light");
  fail_unless (gst_structure_get_uint (
      gst_message_get_structure (message), "index", &index));
  fail_unless (index >= 3 && index < N_LIGHTS, "light %u", index);
  gst_message_unref (message);
  check_progress (&ps, 6, FALSE);
  check_progress (&ps, 8, TRUE);
}

CHECK_TEST (test_stop_below_ends_the_set_early)
{
  g_auto (Ps) ps =
      ps_begin ("update-interval=3 stop-below=1", "normal", "GRAY16_LE");

  for (guint set = 0; set < 2; set++) {
    ps_push_set (&ps); /* the last two are left out */
    check_progress (&ps, 3, FALSE);
    check_progress (&ps, 6, FALSE);
    check_progress (&ps, 6, TRUE);
    check_no_messages (ps.bus, GST_MESSAGE_ELEMENT);
  }
}

static GstBuffer *
with_index (GstBuffer *buffer, guint index)
{
  GstCustomMeta *meta = gst_buffer_add_custom_meta (buffer, "GstImagingLight");

  fail_unless (meta != NULL);
  gst_structure_set (
      gst_custom_meta_get_structure (meta), "index", G_TYPE_UINT, index, NULL);
  return buffer;
}

CHECK_TEST (test_pictures_may_say_their_light)
{
  for (guint by_meta = 0; by_meta < 2; by_meta++) {
    g_auto (Ps) ps =
        ps_begin (by_meta ? "index-source=meta" : "index-source=offset",
            "normal", "GRAY16_LE");

    for (guint i = 0; i < N_LIGHTS; i++) {
      guint light = (3 * i + 5) % N_LIGHTS;
      GstBuffer *buffer = picture (&ps, light);

      GST_BUFFER_OFFSET (buffer) = by_meta ? 99 : light;
      check_push (
          ps.sink, by_meta ? with_index (buffer, light) : buffer, GST_FLOW_OK);
    }
    check_tensor (ps.normal, normal_, 3, 5e-4);
  }
}

/* --- bands --------------------------------------------------------------- */

/* Of a band, less than 1. */
static gdouble
paint_of (guint band)
{
  return 0.9 - 0.05 * band;
}

static GstBuffer *
band_picture (const Ps *ps, guint light, guint band)
{
  return painted_picture (ps, light, paint_of (band));
}

/* Pictures @first to @end of a set in @order. */
static void
ps_push_bands (Ps *ps, guint bands, const gchar *order, guint first, guint end)
{
  gboolean by_light = g_str_equal (order, "by-light");

  for (guint i = first; i < end; i++)
    check_push (ps->sink,
        band_picture (ps, by_light ? i / bands : i % N_LIGHTS,
            by_light ? i % bands : i / N_LIGHTS),
        GST_FLOW_OK);
}

/* --- window=sliding ------------------------------------------------------- */

/* The paint fades, so that each set of pictures has a result of its own. */
static GstBuffer *
faded_picture (const Ps *ps, guint i)
{
  return painted_picture (ps, i % N_LIGHTS, 1 - 0.02 * i);
}

/* Returns: (transfer full): the next result of @h; fails without one */
static GstBuffer *
next_result (GstHarness *h)
{
  GstBuffer *buffer = gst_harness_try_pull (h);

  fail_unless (buffer != NULL, "no result");
  return buffer;
}

/* Fails unless @got (transfer full) has the bytes of the albedo of the set of
 * the pictures @last - N_LIGHTS + 1 to @last. */
static void
check_same (GstBuffer *got, const gchar *properties, guint last)
{
  g_auto (Ps) set = ps_begin (properties, "albedo", "GRAY16_LE");
  g_autoptr (GstBuffer) wanted = NULL;
  guint first = last + 1 - N_LIGHTS;
  GstMapInfo map;

  for (guint light = 0; light < N_LIGHTS; light++) {
    guint i = first + (light + N_LIGHTS - first % N_LIGHTS) % N_LIGHTS;

    check_push (set.sink, faded_picture (&set, i), GST_FLOW_OK);
  }
  wanted = next_result (set.albedo);
  fail_unless (gst_buffer_map (wanted, &map, GST_MAP_READ));
  fail_unless (gst_buffer_memcmp (got, 0, map.data, map.size) == 0,
      "the result after picture %u is not that of its set", last);
  gst_buffer_unmap (wanted, &map);
  gst_buffer_unref (got);
}

/* Likewise, of the next albedo of @ps. */
static void
check_window (Ps *ps, const gchar *properties, guint last)
{
  check_same (next_result (ps->albedo), properties, last);
}

/* Returns: (transfer full): the next result of @h, in memory of its own */
static GstBuffer *
copy_result (GstHarness *h)
{
  GstBuffer *buffer = next_result (h), *copy;
  GstMapInfo map;

  fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
  copy = gst_buffer_new_memdup (map.data, map.size);
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
  return copy;
}

CHECK_LOOP_TEST (test_a_window_has_the_result_of_the_last_pictures, 2)
{
  static const gchar *const backends[] = {"backend=cpu", "backend=cuda"};
  const gchar *backend = backends[__i__];
  g_autofree gchar *sliding = g_strconcat (backend, " window=sliding", NULL);
  Ps ps = ps_begin (sliding, "albedo", "GRAY16_LE");
  GstBuffer *results[3 * N_LIGHTS] = {NULL};

  for (guint i = 0; i < G_N_ELEMENTS (results); i++) {
    check_push (ps.sink, faded_picture (&ps, i), GST_FLOW_OK);
    if (i + 1 >= N_LIGHTS)
      results[i] = copy_result (ps.albedo);
    check_no_buffer (ps.albedo);
  }
  gst_harness_push_event (ps.sink, gst_event_new_eos ());
  check_no_buffer (ps.albedo); /* all pictures have had their result */
  check_no_messages (ps.bus, GST_MESSAGE_WARNING);
  ps_free (&ps);
  for (guint i = N_LIGHTS - 1; i < G_N_ELEMENTS (results); i++)
    check_same (results[i], backend, i);
}

CHECK_TEST (test_a_window_begins_anew)
{
  g_auto (Ps) ps = ps_begin ("window=sliding", "albedo", "GRAY16_LE");

  for (guint i = 3; i < 3 + N_LIGHTS - 1; i++)
    check_push (ps.sink, faded_picture (&ps, i), GST_FLOW_OK);
  check_flush (ps.sink);
  for (guint turn = 0; turn < 2; turn++) {
    for (guint i = 0; i < N_LIGHTS; i++) {
      check_no_buffer (ps.albedo);
      check_push (ps.sink, faded_picture (&ps, i), GST_FLOW_OK);
    }
    check_window (&ps, "", N_LIGHTS - 1);
    g_signal_emit_by_name (ps.element, "finish-set");
  }
}

CHECK_TEST (test_a_window_that_is_not_full_is_solved_at_the_end)
{
  g_auto (Ps) ps = ps_begin ("window=sliding", "normal", "GRAY16_LE");

  for (guint i = 0; i < 5; i++)
    ps_push (&ps, i);
  check_no_buffer (ps.normal);
  gst_harness_push_event (ps.sink, gst_event_new_eos ());
  check_tensor (ps.normal, normal_, 3, 5e-4);
  fail_unless_equals_int (
      check_count_messages (ps.bus, GST_MESSAGE_WARNING), 1);
}

CHECK_TEST (test_a_window_has_a_result_after_some_pictures)
{
  g_auto (Ps) ps =
      ps_begin ("window=sliding update-interval=3", "albedo", "GRAY16_LE");

  for (guint i = 0; i < 2 * N_LIGHTS; i++) {
    check_push (ps.sink, faded_picture (&ps, i), GST_FLOW_OK);
    if (i == 7 || i == 10 || i == 13)
      check_window (&ps, "", i);
    check_no_buffer (ps.albedo);
  }
}

/* Returns: at the first pixel */
static guint
lights_used (GstHarness *h)
{
  GstBuffer *buffer = next_result (h);
  gfloat quality[4];

  fail_unless_equals_int (
      gst_buffer_extract (buffer, 0, quality, sizeof (quality)),
      sizeof (quality));
  gst_buffer_unref (buffer);
  return (guint) quality[0];
}

/* A light whose picture is lost keeps the one before. */
CHECK_TEST (test_a_window_keeps_its_places)
{
  Ps ps = ps_begin ("window=sliding", "normal quality", "GRAY16_LE");

  for (guint i = 0; i < 3 * N_LIGHTS; i++) {
    GstBuffer *buffer;

    if (i == 10 || i == 15 || i == 16)
      continue;
    buffer = picture (&ps, i % N_LIGHTS);
    GST_BUFFER_OFFSET (buffer) = 1000 + i;
    check_push (ps.sink, buffer, GST_FLOW_OK);
    if (i + 1 < N_LIGHTS)
      continue;
    check_tensor (ps.normal, normal_, 3, 1e-4);
    fail_unless_equals_int (lights_used (ps.quality), N_LIGHTS);
  }
  check_no_buffer (ps.normal);
  fail_unless_equals_int (
      check_count_messages (ps.bus, GST_MESSAGE_WARNING), 1);
  fail_unless_equals_uint64 (check_stat (ps.element, "frames-missing"), 3);
  ps_free (&ps);
}

CHECK_TEST (test_a_window_of_pictures_that_say_their_light)
{
  g_auto (Ps) ps =
      ps_begin ("window=sliding index-source=meta", "normal", "GRAY16_LE");
  static const guint order[] = {5, 0, 7, 7, 2, 1, 3, 0, 6, 4, 4, 2};

  for (guint i = 0; i < G_N_ELEMENTS (order); i++) {
    check_push (
        ps.sink, with_index (picture (&ps, order[i]), order[i]), GST_FLOW_OK);
    if (i >= 9) /* all 8 have come */
      check_tensor (ps.normal, normal_, 3, 5e-4);
    check_no_buffer (ps.normal);
  }
  check_push (ps.sink, with_index (picture (&ps, 0), N_LIGHTS), GST_FLOW_ERROR);
}

CHECK_LOOP_TEST (test_a_window_has_all_bands, 2)
{
  static const gchar *const orders[] = {"by-light", "by-band"};
  g_autofree gchar *line =
      g_strdup_printf ("window=sliding bands=2 band-order=%s", orders[__i__]);
  g_auto (Ps) ps = ps_begin (line, "normal", "GRAY16_LE");

  ps_push_bands (&ps, 2, orders[__i__], 0, 2 * N_LIGHTS - 1);
  check_no_buffer (ps.normal);
  ps_push_bands (&ps, 2, orders[__i__], 2 * N_LIGHTS - 1, 2 * N_LIGHTS);
  ps_push_bands (&ps, 2, orders[__i__], 0, 5);
  for (guint i = 0; i < 6; i++)
    check_tensor (ps.normal, normal_, 3, 5e-4);
  check_no_buffer (ps.normal);
}

CHECK_TEST (test_a_window_follows_its_settings)
{
  g_auto (Ps) ps = ps_begin ("window=sliding", "albedo", "GRAY16_LE");

  for (guint i = 0; i < N_LIGHTS; i++)
    check_push (ps.sink, faded_picture (&ps, i), GST_FLOW_OK);
  check_window (&ps, "", N_LIGHTS - 1);
  g_object_set (ps.element, "gamma", 1.1, NULL); /* another kernel */
  for (guint i = 0; i < N_LIGHTS; i++) {
    check_no_buffer (ps.albedo);
    check_push (ps.sink, faded_picture (&ps, i), GST_FLOW_OK);
  }
  check_window (&ps, "gamma=1.1", N_LIGHTS - 1);
  gst_util_set_object_arg (G_OBJECT (ps.element), "window", "set");
  for (guint i = 0; i < N_LIGHTS; i++) {
    check_no_buffer (ps.albedo);
    check_push (ps.sink, faded_picture (&ps, i), GST_FLOW_OK);
  }
  check_window (&ps, "gamma=1.1", N_LIGHTS - 1);
  check_no_buffer (ps.albedo);
}

CHECK_TEST (test_bands_have_one_normal_and_an_albedo_each)
{
  const guint counts[] = {2, 3, 8, 16};
  const gchar *const others[] = {
      "backend=cpu band-order=by-band", "backend=cuda", STRIPS};
  gdouble albedo[16], ambient[16] = {0};

  for (guint band = 0; band < 16; band++) {
    albedo[band] = paint_of (band) * albedo_;
    for (guint i = 0; i < N_LIGHTS; i++)
      ambient[band] += paint_of (band) * shade (i) / N_LIGHTS;
  }
  for (guint k = 0; k < 4 * G_N_ELEMENTS (others); k++) {
    guint bands = counts[k % 4];
    /* strips need room for a row of all bands */
    const gchar *other = others[bands < 16 ? k / 4 : k / 8];
    g_autofree gchar *all = g_strdup_printf ("bands=%u %s", bands, other);
    g_auto (Ps) ps =
        ps_begin (all, "normal albedo ambient", k % 2 ? "GRAY8" : "GRAY16_LE");

    for (guint set = 0; set < 2; set++) {
      ps_push_bands (&ps, bands,
          strstr (other, "by-band") ? "by-band" : "by-light", 0,
          bands * N_LIGHTS);
      check_tensor (ps.normal, normal_, 3, 0.005);
      check_tensor (ps.albedo, albedo, bands, 0.003);
      check_tensor (ps.ambient, ambient, bands, 0.002);
      check_progress (&ps, N_LIGHTS, TRUE);
    }
  }
}

CHECK_TEST (test_bands_are_pictures_below_each_other)
{
  const gchar *const formats[] = {"GRAY8", "GRAY16_LE"};

  for (guint k = 0; k < 2; k++) {
    g_autofree gchar *caps =
        g_strdup_printf ("video/x-raw,format=%s", formats[k]);
    g_auto (Ps) ps = ps_new ("bands=5", "albedo", caps);
    guint scale = k ? 65535 : 255;
    g_autoptr (GstBuffer) buffer = NULL;
    GstMapInfo map;

    ps_caps_of (&ps, "GRAY16_LE", 32, HEIGHT); /* rows without padding */
    ps_push_bands (&ps, 5, "by-light", 0, 5 * N_LIGHTS);
    buffer = check_pull (ps.albedo);
    fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
    fail_unless_equals_uint64 (map.size, 32 * 5 * HEIGHT * (k + 1));
    for (guint i = 0; i < 32 * 5 * HEIGHT; i++) {
      gdouble expected = scale * albedo_ * paint_of (i / (32 * HEIGHT));
      guint found = k ? ((guint16 *) map.data)[i] : map.data[i];

      fail_unless (fabs (found - expected) <= scale / 250.0,
          "%u at pixel %u, expected %g", found, i, expected);
    }
    gst_buffer_unmap (buffer, &map);
  }
}

CHECK_TEST (test_three_bands_are_a_colour_picture)
{
  g_auto (Ps) ps = ps_new ("bands=3", "albedo", "video/x-raw,format=RGB");
  guint expected[3];

  for (guint band = 0; band < 3; band++)
    expected[band] = (guint) (255 * albedo_ * paint_of (band) + 0.5);
  ps_caps (&ps, "GRAY16_LE");
  ps_push_bands (&ps, 3, "by-light", 0, 3 * N_LIGHTS);
  check_first_pixel (ps.albedo, "RGB", expected, 3);
}

/* Updates and the end of a set go by lights with all their bands. */
CHECK_TEST (test_sets_of_bands_are_counted_in_lights)
{
  g_auto (Ps) ps = ps_begin (
      "bands=4 update-interval=3 stop-below=1", "normal", "GRAY16_LE");

  for (guint set = 0; set < 2; set++) {
    ps_push_bands (&ps, 4, "by-light", 0, 4 * N_LIGHTS);
    check_progress (&ps, 3, FALSE);
    check_progress (&ps, 6, FALSE);
    check_progress (&ps, 6, TRUE);
  }
  ps_push_bands (&ps, 4, "by-light", 0, 4 * 5 + 3);
  fail_unless (gst_harness_push_event (ps.sink, gst_event_new_eos ()));
  check_warning (ps.bus, STREAM, FAILED, "5 of 8 lights");
  check_warning (
      ps.bus, STREAM, FAILED, "3 pictures of lights of which not all 4 bands");
}

static GstBuffer *
with_band (GstBuffer *buffer, guint band)
{
  GstCustomMeta *meta = gst_buffer_get_custom_meta (buffer, "GstImagingLight");

  gst_structure_set (
      gst_custom_meta_get_structure (meta), "band", G_TYPE_UINT, band, NULL);
  return buffer;
}

CHECK_TEST (test_pictures_may_say_their_band)
{
  const gchar *const sources[] = {"index-source=meta", "index-source=offset",
      "index-source=offset band-order=by-band"};

  for (guint k = 0; k < G_N_ELEMENTS (sources); k++) {
    g_autofree gchar *all = g_strdup_printf ("bands=3 %s", sources[k]);
    g_auto (Ps) ps = ps_begin (all, "albedo", "GRAY16_LE");
    const gdouble albedo[] = {
        albedo_ * paint_of (0), albedo_ * paint_of (1), albedo_ * paint_of (2)};

    for (guint i = 0; i < 3 * N_LIGHTS; i++) {
      guint j = 5 * i % (3 * N_LIGHTS), light = j / 3, band = j % 3;
      GstBuffer *buffer = band_picture (&ps, light, band);

      GST_BUFFER_OFFSET (buffer) = k == 2 ? band * N_LIGHTS + light : j;
      if (k == 0)
        buffer = with_band (with_index (buffer, light), band);
      check_push (ps.sink, buffer, GST_FLOW_OK);
    }
    check_tensor (ps.albedo, albedo, 3, 1e-3);
  }
}

/* A picture of a light that stays incomplete does not end a set too early. */
CHECK_TEST (test_sets_of_chosen_lights_are_counted_in_whole_ones)
{
  static const guint pictures[][2] = {
      {0, 0}, {3, 1}, {1, 0}, {2, 0}, {2, 1}, {1, 1}, {5, 0}, {0, 1}};
  g_auto (Ps) ps =
      ps_begin ("bands=2 index-source=meta set-size=3", "normal", "GRAY16_LE");
  GstMessage *message;
  guint found;

  for (guint i = 0; i < G_N_ELEMENTS (pictures); i++) {
    guint light = pictures[i][0], band = pictures[i][1];

    fail_unless_equals_int (gst_harness_buffers_received (ps.normal), 0);
    check_push (ps.sink,
        with_band (with_index (band_picture (&ps, light, band), light), band),
        GST_FLOW_OK);
  }
  fail_unless_equals_int (gst_harness_buffers_received (ps.normal), 1);
  message = next_message (&ps, "photostereo-progress");
  fail_unless (gst_structure_get_uint (
      gst_message_get_structure (message), "lights", &found));
  fail_unless_equals_int (found, 3);
  gst_message_unref (message);
  check_warning (
      ps.bus, STREAM, FAILED, "2 pictures of lights of which not all 2 bands");
}

/* Returns: (transfer full): the path of [bands, HEIGHT, WIDTH] of u8, @value
 * times 1, 2, ... */
static gchar *
write_dark (guint bands, guint8 value)
{
  g_autoptr (GError) error = NULL;
  gchar *path = check_path_of ("dark.npy");
  g_autofree guint8 *data = g_malloc (bands * HEIGHT * WIDTH);
  const guint64 dims[] = {bands, HEIGHT, WIDTH};

  for (guint i = 0; i < bands * HEIGHT * WIDTH; i++)
    data[i] = (guint8) (value * (i / (HEIGHT * WIDTH) + 1));
  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_U8, 3, dims, data, &error));
  return path;
}

CHECK_TEST (test_each_band_may_have_a_dark_frame)
{
  g_autofree gchar *dark = write_dark (4, 3);
  g_autofree gchar *all = g_strdup_printf ("bands=4 dark-location=%s", dark);
  g_auto (Ps) ps = ps_begin (all, "ambient", "GRAY8");
  gdouble ambient[4] = {0};

  for (guint band = 0; band < 4; band++)
    for (guint i = 0; i < N_LIGHTS; i++)
      ambient[band] +=
          (paint_of (band) * shade (i) - 3.0 / 255 * (band + 1)) / N_LIGHTS;
  ps_push_bands (&ps, 4, "by-light", 0, 4 * N_LIGHTS);
  check_tensor (ps.ambient, ambient, 4, 0.002);
}

CHECK_TEST (test_bad_bands_are_refused)
{
  g_autofree gchar *dark = write_dark (3, 1);
  g_autofree gchar *all = g_strdup_printf ("bands=4 dark-location=%s", dark);
  g_auto (Ps) ps;

  check_refused (all, CHECK_CODE (RESOURCE, OPEN_READ),
      "[4, height, width] for each band");
  check_refused ("bands=17", CHECK_CODE (LIBRARY, SETTINGS),
      "bands is 17; it can be 1 to 16");
  check_refused ("bands=2 bayer-pattern=rggb", CHECK_CODE (LIBRARY, SETTINGS),
      "these have a Bayer pattern");
  ps = ps_new ("bands=2", "normal", NULL);
  ps_caps (&ps, "RGB");
  check_push (ps.sink, picture (&ps, 0), GST_FLOW_NOT_NEGOTIATED);
  check_error (ps.bus, LIBRARY, SETTINGS, "these have colours");
  ps_free (&ps);
  ps = ps_new ("bands=2 index-source=meta", "normal", NULL);
  ps_caps (&ps, "GRAY8");
  check_push (ps.sink, with_index (picture (&ps, 0), 0), GST_FLOW_ERROR);
  check_error (ps.bus, STREAM, FORMAT, "and another one, \"band\"");
}

/* --- indices ------------------------------------------------------------- */

static void
check_bad_index (const gchar *properties, GstBuffer *(*spoil) (GstBuffer *),
    const gchar *words)
{
  g_auto (Ps) ps = ps_begin (properties, "normal", "GRAY8");

  check_push (ps.sink, spoil (picture (&ps, 0)), GST_FLOW_ERROR);
  check_error (ps.bus, STREAM, FORMAT, words);
}

static GstBuffer *
offset_8 (GstBuffer *buffer)
{
  GST_BUFFER_OFFSET (buffer) = 8;
  return buffer;
}

static GstBuffer *
offset_huge (GstBuffer *buffer)
{
  GST_BUFFER_OFFSET (buffer) = G_GUINT64_CONSTANT (1) << 32;
  return buffer;
}

static GstBuffer *
offset_none (GstBuffer *buffer)
{
  GST_BUFFER_OFFSET (buffer) = GST_BUFFER_OFFSET_NONE;
  return buffer;
}

CHECK_TEST (test_bad_indices_are_refused)
{
  g_auto (Ps) ps;

  check_bad_index ("index-source=offset", offset_8, "8 lights");
  check_bad_index ("index-source=offset", offset_huge, "8 lights");
  check_bad_index ("index-source=offset", offset_none, "no offset");
  check_bad_index ("index-source=meta", offset_8, "GstImagingLight");

  ps = ps_new ("index-source=meta", "normal", NULL);
  ps_caps (&ps, "GRAY8");
  check_push (ps.sink, with_index (picture (&ps, 0), 5), GST_FLOW_OK);
  check_push (ps.sink, with_index (picture (&ps, 1), 5), GST_FLOW_ERROR);
  check_error (ps.bus, STREAM, FORMAT, "second picture");
}

/* Fails unless caps are refused with these words. */
CHECK_TEST (test_bad_settings_are_refused)
{
  g_autofree gchar *bad = write_file ("bad.lp", "0 0 1\n0 nan 1\n");
  g_autofree gchar *mixed = write_file ("mixed.txt", "0 0 1\n0 9 3\n1 0 7\n");
  g_autofree gchar *few = write_file ("few.txt", "1\n1\n");
  g_autofree gchar *long_file = write_file ("long.txt", "0 0 1\n");
  g_autofree gchar *mask = check_path_of ("mask.npy");
  g_autofree gchar *words = write_file ("no.npy", "this is no array");
  guint64 dims[] = {HEIGHT, WIDTH + 1};
  guint8 bytes[HEIGHT * (WIDTH + 1)] = {0};
  const struct {
    const gchar *property, *value;
    GQuark domain;
    gint code;
    const gchar *words;
  } cases[] = {
      {"lights-location", "", CHECK_CODE (LIBRARY, SETTINGS),
          "lights-location is not set"},
      {"lights-location", "/none/such.lp", CHECK_CODE (RESOURCE, OPEN_READ),
          "such.lp"},
      {"lights-location", bad, CHECK_CODE (RESOURCE, OPEN_READ), "line 2"},
      {"lights-location", long_file, CHECK_CODE (RESOURCE, OPEN_READ),
          "17825792 bytes; a file of"},
      {"lights-location", mixed, CHECK_CODE (RESOURCE, OPEN_READ),
          "light-units"},
      {"intensities-location", few, CHECK_CODE (RESOURCE, OPEN_READ),
          "2 lights; there are 8"},
      {"mask-location", mask, CHECK_CODE (STREAM, FORMAT),
          "it needs height 5 and width 31, as the pictures"},
      {"dark-location", words, CHECK_CODE (RESOURCE, OPEN_READ),
          "dark-location"},
      {"set-size", "9", CHECK_CODE (LIBRARY, SETTINGS), "set-size is 9"},
      {"light-model", "unit", CHECK_CODE (LIBRARY, SETTINGS),
          "light-model=unit"},
      {"memory-limit", "1000", CHECK_CODE (LIBRARY, SETTINGS),
          "; memory-limit allows 0 MiB"},
      {"host-memory-limit", "1000", CHECK_CODE (LIBRARY, SETTINGS),
          "1 MiB; host-memory-limit allows 0 MiB"},
  };

  fail_unless (gst_imaging_npy_save (
      mask, GST_IMAGING_ND_ARRAY_TYPE_U8, 2, dims, bytes, NULL));
  fail_unless_equals_int (truncate (long_file, 17 << 20), 0);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *properties =
        g_strdup_printf ("%s=\"%s\"", cases[i].property, cases[i].value);

    check_refused (properties, cases[i].domain, cases[i].code, cases[i].words);
  }
}

CHECK_TEST (test_lights_that_cannot_do_are_said_before)
{
  static const gchar *const files[] = {
      "0 0 1\n0.6 0.02 0.8\n-0.6 0.02 0.8\n0.8 -0.02 0.6\n",
      "0 0 1\n0.6 0 -0.8\n-0.6 0 0.8\n0 0.6 -0.8\n", "1\na 0 0 1\n",
      "2\na 0 0 1\nb 0.6 0 0.8\n", "0 0 1\n0.6 0 0.8\n-0.6 0 0.8\n0.8 0 0.6\n",
      "0.36 0.48 0.8\n0.36 0.48 0.8\n0.36 0.48 0.8\n0.36 0.48 0.8\n",
      "0 0 -1\n0.6 0 -0.8\n-0.6 0 -0.8\n0 0.6 -0.8\n"};
  static const gchar *const words[] = {"almost in one plane",
      "2 of 4 lights of lights-location (the first is light 1", "1 lights",
      "2 lights", "nearly in one plane", "nearly in one plane",
      "All 4 lights of"};

  for (guint i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autofree gchar *path = write_file ("few.lp", files[i]);
    g_autofree gchar *properties = g_strdup_printf ("lights-location=%s", path);
    g_auto (Ps) ps = ps_new (properties, "normal", NULL);

    ps_caps (&ps, "GRAY8"); /* no picture has come */
    check_warning (ps.bus, LIBRARY, SETTINGS, words[i]);
    check_no_messages (ps.bus, GST_MESSAGE_WARNING);
  }
}

/* Of 155 pixels, the first @n_black are black in all pictures. */
CHECK_TEST (test_many_pixels_without_normal_are_said)
{
  static const struct {
    guint n_black;
    const gchar *words; /* NULL: nothing is said */
  } cases[] = {{0, NULL}, {7, NULL},
      {8, "5.2 % of the pixels (there is no mask), 8 of 155, have no normal"},
      {150, "96.8 % of the pixels (there is no mask), 150 of 155"}};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Ps) ps = ps_begin ("", "normal", "GRAY8");

    for (guint j = 0; j < N_LIGHTS; j++) {
      GstBuffer *buffer = picture (&ps, j);
      GstVideoFrame frame;

      fail_unless (
          gst_video_frame_map (&frame, &ps.info, buffer, GST_MAP_READWRITE));
      for (guint k = 0; k < cases[i].n_black; k++)
        ((guint8 *) GST_VIDEO_FRAME_PLANE_DATA (
            &frame, 0))[k / WIDTH * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0) +
                        k % WIDTH] = 0;
      gst_video_frame_unmap (&frame);
      check_push (ps.sink, buffer, GST_FLOW_OK);
    }
    if (cases[i].words)
      check_warning (ps.bus, STREAM, FAILED, cases[i].words);
    check_no_messages (ps.bus, GST_MESSAGE_WARNING);
  }
}

/* Pictures of a camera that takes set after set; some do not arrive. Times
 * alone tell where offsets do not count pictures. */
CHECK_TEST (test_lost_pictures_keep_their_places)
{
  static const struct {
    guint lost[3]; /* of the pictures from the beginning on, 0: none */
    guint lights[3];
  } cases[] = {
      {{0, 0, 0}, {8, 8, 8}},
      {{11, 12, 0}, {8, 6, 8}},
      {{7, 8, 0}, {7, 7, 8}},
      {{15, 0, 0}, {8, 7, 8}},
      {{8, 18, 19}, {8, 7, 6}},
  };

  for (guint k = 0; k < 2 * G_N_ELEMENTS (cases); k++) {
    gboolean by_time = k % 2;
    Ps ps = ps_begin ("", "normal", "GRAY16_LE");
    guint n_lost = 0, n_warnings = 0, n_sets = 0;
    GstMessage *message;

    for (guint i = 0; i < 3 * N_LIGHTS; i++) {
      const guint *lost = cases[k / 2].lost;
      GstBuffer *buffer;

      if (i > 0 && (i == lost[0] || i == lost[1] || i == lost[2])) {
        n_lost++;
        continue;
      }
      buffer = picture (&ps, i % N_LIGHTS);
      GST_BUFFER_PTS (buffer) = i * 40 * GST_MSECOND;
      GST_BUFFER_DURATION (buffer) = 40 * GST_MSECOND;
      GST_BUFFER_OFFSET (buffer) = by_time ? GST_BUFFER_OFFSET_NONE : 1000 + i;
      if (by_time && i > 0 &&
          (i - 1 == lost[0] || i - 1 == lost[1] || i - 1 == lost[2]))
        GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
      check_push (ps.sink, buffer, GST_FLOW_OK);
    }
    while ((message = gst_bus_pop (ps.bus))) {
      guint lights;

      n_warnings += GST_MESSAGE_TYPE (message) == GST_MESSAGE_WARNING;
      if (gst_message_has_name (message, "photostereo-progress")) {
        gst_structure_get_uint (
            gst_message_get_structure (message), "lights", &lights);
        fail_unless_equals_int (lights, cases[k / 2].lights[n_sets++]);
        check_tensor (ps.normal, normal_, 3, 1e-4);
      }
      gst_message_unref (message);
    }
    fail_unless_equals_int (n_sets, 3);
    fail_unless_equals_int (n_warnings, n_lost > 0);
    check_no_buffer (ps.normal);
    fail_unless_equals_uint64 (
        check_stat (ps.element, "frames-missing"), n_lost);
    ps_free (&ps);
  }
}

/* A gap counts if more than two thirds of the pictures came without one. */
CHECK_TEST (test_gaps_count_where_they_are_few)
{
  for (guint n_steps = 2; n_steps <= 3; n_steps++) {
    g_auto (Ps) ps = ps_begin ("", "normal", "GRAY16_LE");

    for (guint i = 0; i <= n_steps; i++) {
      GstBuffer *buffer = picture (&ps, i);

      GST_BUFFER_OFFSET (buffer) = 1000 + i + (i == n_steps);
      check_push (ps.sink, buffer, GST_FLOW_OK);
    }
    fail_unless_equals_uint64 (
        check_stat (ps.element, "frames-missing"), n_steps == 3);
    fail_unless_equals_int (
        check_count_messages (ps.bus, GST_MESSAGE_WARNING), n_steps == 3);
  }
}

/* An application that waits for the lamps keeps every tenth picture. */
CHECK_TEST (test_pictures_that_are_picked_are_in_order)
{
  g_auto (Ps) ps = ps_begin ("", "normal", "GRAY16_LE");

  for (guint i = 0; i < 2 * N_LIGHTS; i++) {
    GstBuffer *buffer = picture (&ps, i % N_LIGHTS);

    GST_BUFFER_OFFSET (buffer) = 10 * i;
    GST_BUFFER_OFFSET_END (buffer) = 10 * i + 1;
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
    check_push (ps.sink, buffer, GST_FLOW_OK);
  }
  for (guint set = 0; set < 2; set++)
    check_tensor (ps.normal, normal_, 3, 1e-4);
  check_no_messages (ps.bus, GST_MESSAGE_WARNING);
}

/* A plane in 8 pictures, in the order of the lights or not. */
CHECK_TEST (test_lights_that_do_not_explain_the_pictures_are_said)
{
  for (guint k = 0; k < 4; k++) {
    g_auto (Ps) ps =
        ps_begin (k / 2 ? "backend=cuda" : "backend=cpu", "normal", "GRAY8");
    GstMessage *message;
    gdouble residual = -2;

    for (guint i = 0; i < N_LIGHTS; i++)
      ps_push (&ps, k % 2 ? (i * 3 + 1) % N_LIGHTS : i);
    message = check_message (ps.bus, GST_MESSAGE_ELEMENT);
    fail_unless (gst_structure_get_double (
        gst_message_get_structure (message), "mean-residual", &residual));
    gst_message_unref (message);
    if (k % 2) {
      fail_unless (residual > 0.08 && residual < 1, "residual %g", residual);
      check_warning (ps.bus, STREAM, FAILED,
          "The lights do not explain the pictures: residuals are");
    } else {
      fail_unless (residual >= 0 && residual < 0.01, "residual %g", residual);
    }
    check_no_messages (ps.bus, GST_MESSAGE_WARNING);
  }
}

/* Pictures are 31 x 5 pixels. */
CHECK_TEST (test_a_picture_among_the_lamps_is_said)
{
  static const struct {
    const gchar *properties, *words; /* NULL: nothing is said */
    gboolean is_far;
  } cases[] = {
      {"", "with mm-per-pixel=0, which counts as 1, the picture is 31 x 5 mm"},
      {"mm-per-pixel=1", "with mm-per-pixel=1 the picture is 31 x 5 mm"},
      {"mm-per-pixel=0.5", NULL},
      /* the lamps are a few widths away, but nobody has set the scale */
      {"", "which counts as 1, the picture is 31 x 5 mm", TRUE},
      {"mm-per-pixel=1", NULL, TRUE},
      {"plane-z=-200", NULL, TRUE},
      {"mm-per-pixel=2", "mm-per-pixel=2 the picture is 62 x 10 mm"},
      {"light-units=directions", NULL},
      {"light-model=directional", NULL},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *path = write_file ("near.txt",
        cases[i].is_far ? "0 80 160\n60 -40 160\n-60 -40 160\n90 40 180\n"
                        : "0 8 16\n6 -4 16\n-6 -4 16\n9 4 18\n");
    g_autofree gchar *properties =
        g_strdup_printf ("lights-location=%s %s", path, cases[i].properties);
    g_auto (Ps) ps = ps_begin (properties, "normal", "GRAY8");

    if (cases[i].words)
      check_warning (ps.bus, LIBRARY, SETTINGS, cases[i].words);
    check_no_messages (ps.bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
  }
}

CHECK_TEST (test_black_and_saturated_pictures_are_said)
{
  const gdouble nothing[] = {0, 0, 0};

  for (guint cuda = 0; cuda < 2; cuda++)
    for (guint value = 0; value < 256; value += 255) {
      g_auto (Ps) ps = ps_begin (
          cuda ? "backend=cuda" : "backend=cpu", "normal ambient", "GRAY8");
      const gdouble ambient[] = {value / 255.0};

      for (guint i = 0; i < N_LIGHTS; i++) {
        GstBuffer *buffer = picture (&ps, i);

        gst_buffer_memset (buffer, 0, (guint8) value, -1);
        check_push (ps.sink, buffer, GST_FLOW_OK);
      }
      check_tensor (ps.normal, nothing, 3, 0);
      check_tensor (ps.ambient, ambient, 1, 1e-6);
      if (value)
        check_warning (
            ps.bus, STREAM, FAILED, "100 % of the samples are clipped");
      check_warning (ps.bus, STREAM, FAILED,
          "No pixel could be solved from 8 pictures: they are black or "
          "saturated");
    }
}

/* The set with the brightest @n pictures at full scale. */
static void
push_overexposed (Ps *ps, guint n)
{
  for (guint i = 0; i < N_LIGHTS; i++) {
    GstBuffer *buffer = picture (ps, i);
    guint brighter = 0;

    for (guint j = 0; j < N_LIGHTS; j++)
      brighter += shade (j) > shade (i);
    if (brighter < n)
      gst_buffer_memset (buffer, 0, 0xff, -1);
    check_push (ps->sink, buffer, GST_FLOW_OK);
  }
}

static void
check_clipped_share (Ps *ps, gdouble expected)
{
  g_autoptr (GstMessage) message = next_message (ps, "photostereo-progress");
  gdouble share;

  fail_unless (gst_structure_get_double (
      gst_message_get_structure (message), "clipped-share", &share));
  fail_unless_equals_float (share, expected);
}

CHECK_TEST (test_clipped_pictures_do_not_bend_the_plane_and_are_said)
{
  const gchar *const modes[] = {"threshold-mode=relative t-res=1 t-max=1000",
      "threshold-mode=absolute t-max=1000", "robust=huber"};

  for (guint i = 0; i < 2 * G_N_ELEMENTS (modes); i++) {
    g_autofree gchar *all = g_strdup_printf (
        "%s min-lights=3 backend=%s", modes[i / 2], i % 2 ? "cuda" : "cpu");
    g_auto (Ps) ps = ps_begin (all, "normal", "GRAY16_LE");

    for (guint set = 0; set < 2; set++) { /* said once in each */
      push_overexposed (&ps, 3);
      check_tensor (ps.normal, normal_, 3, 1e-3);
      check_warning (ps.bus, STREAM, FAILED, "38 % of the samples are clipped");
      check_clipped_share (&ps, 3.0 / N_LIGHTS); /* comes after that */
    }
    ps_push_set (&ps);
    check_tensor (ps.normal, normal_, 3, 1e-3);
    check_no_messages (ps.bus, GST_MESSAGE_WARNING);
  }
}

CHECK_TEST (test_saturation_says_where_samples_are_clipped)
{
  g_auto (Ps) ps = ps_begin ("saturation=40000", "quality", "GRAY16_LE");
  const gdouble nothing[] = {0, 0, 0, 0};
  g_autoptr (GstMessage) message = NULL;

  for (guint i = 0; i < N_LIGHTS; i++) {
    GstBuffer *buffer = picture (&ps, i);

    gst_buffer_memset (buffer, 0, 40000 >> 8, -1); /* 40092 */
    check_push (ps.sink, buffer, GST_FLOW_OK);
  }
  check_tensor (ps.quality, nothing, 4, 0);
  check_clipped_share (&ps, 1);
  g_object_set (ps.element, "saturation", 300.0, NULL);
  ps_caps (&ps, "GRAY8");
  check_push (ps.sink, picture (&ps, 0), GST_FLOW_NOT_NEGOTIATED);
  message = check_message (ps.bus, GST_MESSAGE_ERROR);
  check_message_says (g_steal_pointer (&message),
      CHECK_CODE (LIBRARY, SETTINGS),
      "saturation is 300, but samples end at 255");
}

CHECK_TEST (test_rows_with_padding_are_read)
{
  g_auto (Ps) ps = ps_begin ("", "normal", "GRAY16_LE");

  for (guint i = 0; i < N_LIGHTS; i++) {
    GstBuffer *plain = picture (&ps, i);
    GstBuffer *padded = check_noise_padded (&ps.info, i, 12);
    GstVideoFrame from, to;

    fail_unless (gst_video_frame_map (&from, &ps.info, plain, GST_MAP_READ));
    fail_unless (gst_video_frame_map (&to, &ps.info, padded, GST_MAP_WRITE));
    gst_video_frame_copy (&to, &from);
    gst_video_frame_unmap (&to);
    gst_video_frame_unmap (&from);
    gst_buffer_unref (plain);
    check_push (ps.sink, padded, GST_FLOW_OK);
  }
  check_tensor (ps.normal, normal_, 3, 5e-4);
}

CHECK_TEST (test_times_are_those_of_the_last_picture)
{
  g_auto (Ps) ps = ps_begin ("", "normal", "GRAY8");
  g_autoptr (GstBuffer) buffer = NULL;

  for (guint i = 0; i < N_LIGHTS; i++) {
    buffer = picture (&ps, i);
    GST_BUFFER_PTS (buffer) = i * 40 * GST_MSECOND;
    GST_BUFFER_DURATION (buffer) = 40 * GST_MSECOND;
    check_push (ps.sink, buffer, GST_FLOW_OK);
  }
  buffer = check_pull (ps.normal);
  fail_unless_equals_uint64 (
      GST_BUFFER_PTS (buffer), (N_LIGHTS - 1) * 40 * GST_MSECOND);
  fail_unless_equals_uint64 (GST_BUFFER_DURATION (buffer), 40 * GST_MSECOND);
}

CHECK_TEST (test_a_pad_that_goes_stops_nobody)
{
  g_auto (Ps) ps = ps_new ("", "normal albedo", NULL);
  GstPad *pad = gst_element_get_static_pad (ps.element, "albedo");
  const gdouble albedo[] = {albedo_};

  ps_caps (&ps, "GRAY16_LE");
  ps_push_set (&ps);
  check_tensor (ps.albedo, albedo, 1, 1e-4);
  check_tensor (ps.normal, normal_, 3, 5e-4);
  gst_element_release_request_pad (ps.element, pad);
  gst_object_unref (pad);
  ps_push_set (&ps);
  check_tensor (ps.normal, normal_, 3, 5e-4);
}

static gpointer
push_set_in_thread (gpointer ps)
{
  ps_push_set (ps);
  return NULL;
}

CHECK_TEST (test_pads_come_and_go_while_another_waits)
{
  g_auto (Ps) ps = ps_begin ("", "normal", "GRAY16_LE");
  CheckWaiting w;
  GstPad *albedo;

  check_wait_at (&w, ps.element, "normal", push_set_in_thread, &ps);
  albedo = gst_element_request_pad_simple (ps.element, "albedo");
  fail_unless (albedo != NULL);
  gst_element_release_request_pad (ps.element, albedo);
  gst_object_unref (albedo);
  check_release (&w);
  check_tensor (ps.normal, normal_, 3, 5e-4);
}

CHECK_TEST (test_a_pad_may_go_while_it_pushes)
{
  g_auto (Ps) ps = ps_begin ("", "normal albedo", "GRAY16_LE");
  CheckWaiting w;

  check_wait_at (&w, ps.element, "albedo", push_set_in_thread, &ps);
  gst_element_release_request_pad (ps.element, w.pad);
  check_release (&w); /* without a failed push */
  check_tensor (ps.normal, normal_, 3, 5e-4);
  ps_push_set (&ps);
  check_tensor (ps.normal, normal_, 3, 5e-4);
}

static gpointer
finish_sets (gpointer element)
{
  for (guint i = 0; i < 50; i++)
    g_signal_emit_by_name (element, "finish-set");
  return NULL;
}

CHECK_TEST (test_sets_may_be_finished_while_the_element_stops)
{
  for (guint i = 0; i < 50; i++) {
    g_auto (Ps) ps = ps_begin ("", "normal", "GRAY8");
    GThread *thread;

    ps_push (&ps, 0);
    thread = g_thread_new ("finish", finish_sets, ps.element);
    g_usleep (10 * i);
    gst_element_set_state (ps.element, GST_STATE_NULL);
    g_thread_join (thread);
  }
}

static gpointer
push_picture_in_thread (gpointer ps)
{
  ps_push (ps, 0);
  return NULL;
}

/* A paused pipeline keeps the first update, and the thread that brought it. */
CHECK_TEST (test_a_set_may_be_finished_while_an_update_waits)
{
  g_auto (Ps) ps = ps_begin ("update-interval=1", "normal", "GRAY16_LE");
  CheckWaiting w;

  check_wait_at (&w, ps.element, "normal", push_picture_in_thread, &ps);
  g_signal_emit_by_name (ps.element, "finish-set"); /* returns */
  check_progress (&ps, 1, FALSE);
  check_release (&w);
  gst_buffer_unref (check_pull (ps.normal));
  gst_buffer_unref (check_pull (ps.normal));
  check_progress (&ps, 1, TRUE);
}

/* The next picture may come before the set could be ended. */
CHECK_TEST (test_finish_set_parts_the_pictures_before_from_those_after)
{
  for (guint i = 0; i < 20; i++) {
    g_auto (Ps) ps = ps_begin ("index-source=offset", "normal", "GRAY16_LE");

    for (guint set = 0; set < 2; set++) {
      for (guint light = 0; light < 4; light++) {
        GstBuffer *buffer = picture (&ps, light);

        GST_BUFFER_OFFSET (buffer) = light;
        check_push (ps.sink, buffer, GST_FLOW_OK);
      }
      g_signal_emit_by_name (ps.element, "finish-set");
    }
    check_tensor (ps.normal, normal_, 3, 5e-4);
    check_tensor (ps.normal, normal_, 3, 5e-4);
    check_progress (&ps, 4, TRUE);
    check_progress (&ps, 4, TRUE);
  }
}

/* Returns: (transfer full): the normals of the plane under lamps near by */
static GstBuffer *
normals_of_near_lamps (const gchar *properties)
{
  g_autofree gchar *all = g_strdup_printf (
      "light-units=positions mm-per-pixel=0.05 %s", properties);
  g_auto (Ps) ps = ps_begin (all, "normal", "GRAY16_LE");
  GstBuffer *buffer;

  ps_push_set (&ps);
  buffer = check_pull (ps.normal);
  return buffer;
}

CHECK_TEST (test_the_centre_may_be_any_pixel)
{
  const gchar *const same[] = {"centre-x=15", "centre-y=2"};
  const gchar *const others[] = {"centre-x=-1", "centre-y=-1"};
  g_autoptr (GstBuffer) middle = normals_of_near_lamps ("");
  g_auto (CheckMap) map = check_map (middle, GST_MAP_READ);

  for (guint i = 0; i < G_N_ELEMENTS (same); i++) {
    g_autoptr (GstBuffer) buffer = normals_of_near_lamps (same[i]);

    fail_unless_equals_int (
        gst_buffer_memcmp (buffer, 0, map.data, map.size), 0);
    gst_buffer_unref (buffer);
    buffer = normals_of_near_lamps (others[i]);
    fail_unless (gst_buffer_memcmp (buffer, 0, map.data, map.size) != 0,
        "%s is taken for the middle", others[i]);
  }
}

/* 12 bits in 16: what is clipped stands at 4095. */
CHECK_TEST (test_samples_that_end_at_a_power_of_2_are_said)
{
  for (guint most = 4094; most <= 4096; most++) {
    g_auto (Ps) ps = ps_begin ("", "normal", "GRAY16_LE");

    for (guint i = 0; i < N_LIGHTS; i++) {
      GstBuffer *buffer = picture (&ps, i);
      GstMapInfo map;

      fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READWRITE));
      for (gsize k = 0; k < map.size / 2; k++)
        ((guint16 *) map.data)[k] = (guint16) MIN (
            ((guint16 *) map.data)[k] / 8, i || k ? most - 1 : most);
      if (i == 0)
        ((guint16 *) map.data)[0] = (guint16) most;
      gst_buffer_unmap (buffer, &map);
      check_push (ps.sink, buffer, GST_FLOW_OK);
    }
    if (most == 4095)
      check_warning (
          ps.bus, LIBRARY, SETTINGS, "The largest sample is 4095 = 2^12 - 1");
    check_no_messages (ps.bus, GST_MESSAGE_WARNING);
  }
}

CHECK_TEST (test_a_bit_depth_below_the_data_is_said)
{
  const gchar *const properties[] = {"bit-depth=16", "bit-depth=12"};

  for (guint i = 0; i < 2; i++)
    for (guint cuda = 0; cuda < 2; cuda++) {
      g_autofree gchar *all = g_strdup_printf (
          "robust=none %s backend=%s", properties[i], cuda ? "cuda" : "cpu");
      g_auto (Ps) ps = ps_begin (all, "normal", "GRAY16_LE");

      ps_push_set (&ps);
      ps_push_set (&ps); /* said once */
      fail_unless_equals_int (
          check_count_messages (ps.bus, GST_MESSAGE_WARNING), i);
    }
}

/* A wrong value is a warning with the picture or set at which it would count,
 * and what was in use stays. */
CHECK_TEST (test_wrong_values_do_not_end_a_stream)
{
  static const struct {
    const gchar *property, *value, *words;
  } cases[] = {
      {"lights-location", "/nowhere.lp", "/nowhere.lp"},
      {"lights-location", "", "lights-location is not set"},
      {"intensities-location", "$few", "intensities of 2 lights; there are 8"},
      {"mask-location", "$few", "mask-location"},
      {"dark-location", "$mask", "dark"},
      {"light-model", "unit", "light-model=unit needs the positions"},
      {"set-size", "9", "set-size is 9, but"},
      {"saturation", "300", "saturation is 300, but samples end at 255"},
      {"bands", "17", "bands is 17; it can be 1 to 16"},
      {"bayer-pattern", "bggr", NULL}, /* is none */
      {"t-min", "2", "t-min is 2 and t-max 1.5"},
  };
  const guint64 dims[] = {HEIGHT, WIDTH + 1};
  guint8 bytes[HEIGHT * (WIDTH + 1)] = {0};
  g_autofree gchar *few = write_file ("few.txt", "1\n2\n");
  g_autofree gchar *mask = check_path_of ("mask.npy");

  fail_unless (gst_imaging_npy_save (
      mask, GST_IMAGING_ND_ARRAY_TYPE_U8, 2, dims, bytes, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const gchar *value = g_str_equal (cases[i].value, "$few") ? few
                         : g_str_equal (cases[i].value, "$mask")
                             ? mask
                             : cases[i].value;
    g_auto (Ps) ps = ps_begin ("t-max=1.5", "normal", "GRAY8");
    gboolean valid = FALSE;

    for (guint set = 0; set < 3; set++) {
      if (set == 1)
        gst_util_set_object_arg (
            G_OBJECT (ps.element), cases[i].property, value);
      if (set == 2) /* goes on with what is in use */
        g_object_get (ps.element, "settings-valid", &valid, NULL);
      if (set == 2)
        fail_unless_equals_int (valid, cases[i].words == NULL);
      ps_push_set (&ps);
      check_tensor (ps.normal, normal_, 3, 0.01);
    }
    if (cases[i].words)
      check_warning (ps.bus, LIBRARY, SETTINGS, cases[i].words);
    check_no_messages (ps.bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
  }
}

/* Changes of the solver count at once, those of the lights with the next set.
 */
CHECK_TEST (test_files_count_from_the_next_set_on)
{
  g_auto (Ps) ps = ps_new ("", "albedo", NULL);
  const gdouble bright[] = {albedo_}, dim[] = {albedo_ / 2};
  g_autofree gchar *path =
      write_file ("intensities.txt", "2\n2\n2\n2\n2\n2\n2\n2\n");

  ps_caps (&ps, "GRAY16_LE");
  for (guint i = 0; i < N_LIGHTS; i++) {
    if (i == 3)
      g_object_set (ps.element, "intensities-location", path, NULL);
    ps_push (&ps, i);
  }
  check_tensor (ps.albedo, bright, 1, 0.001);
  fail_unless (g_file_set_contents (path, "garbage", -1, NULL)); /* is read */
  ps_push_set (&ps);
  check_tensor (ps.albedo, dim, 1, 0.001);
  g_object_set (ps.element, "intensities-location", path, NULL); /* anew */
  ps_push_set (&ps);
  check_tensor (ps.albedo, dim, 1, 0.001);
  check_warning (ps.bus, LIBRARY, SETTINGS, "\"garbage\" is not a number");
  g_object_set (ps.element, "intensities-location", "", NULL);
  ps_push_set (&ps);
  check_tensor (ps.albedo, bright, 1, 0.001);
}

CHECK_TEST (test_pictures_without_a_place_are_left_out)
{
  g_auto (Ps) ps = ps_begin ("", "normal", "GRAY8");

  ps_push_set (&ps);
  g_object_set (ps.element, "index-source", 1, NULL); /* meta */
  ps_push_set (&ps);
  check_warning (ps.bus, STREAM, FAILED, "are left out");
  g_object_set (ps.element, "index-source", 0, NULL);
  ps_push_set (&ps);
  for (guint i = 0; i < 2; i++)
    check_tensor (ps.normal, normal_, 3, 0.01);
  check_no_buffer (ps.normal);
  check_no_messages (ps.bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
}

/* Of pixels that are not square; lamps 100 mm above the object. */
CHECK_TEST (test_outputs_have_the_aspect_of_the_pixels)
{
  static const gchar *const peers[] = {"other/tensors", "video/x-raw"};
  g_autofree gchar *path =
      write_file ("near.txt", "40 0 100\n-40 0 100\n0 40 100\n0 -40 100\n");
  g_autofree gchar *properties =
      g_strdup_printf ("lights-location=%s mm-per-pixel=2", path);

  for (guint i = 0; i < G_N_ELEMENTS (peers); i++) {
    g_auto (Ps) ps = ps_new (properties, "normal", peers[i]);
    gint n = 0, d = 0;
    GstCaps *caps;

    ps.info = check_info ("GRAY8", WIDTH, HEIGHT);
    gst_harness_set_src_caps_str (ps.sink,
        "video/x-raw,format=GRAY8,width=31,height=5,framerate=25/1,"
        "pixel-aspect-ratio=1/4"); /* 40 mm high */
    for (guint k = 0; k < 4; k++)
      ps_push (&ps, k);
    gst_buffer_unref (check_pull (ps.normal));
    caps = gst_pad_get_current_caps (ps.normal->sinkpad);
    fail_unless (gst_structure_get_fraction (
        gst_caps_get_structure (caps, 0), "pixel-aspect-ratio", &n, &d));
    fail_unless (n == 1 && d == 4, "pixel-aspect-ratio %d/%d", n, d);
    gst_caps_unref (caps);
    g_object_set (ps.element, "mm-per-pixel", 10.0, NULL);
    for (guint k = 0; k < 4; k++)
      ps_push (&ps, k);
    check_warning (ps.bus, LIBRARY, SETTINGS, "310 x 200 mm");
    gst_buffer_unref (check_pull (ps.normal));
  }
}

/* 0 and 1 of a bool are the counts 0 and 1 of the frames' type. */
CHECK_TEST (test_masks_darks_and_whites_may_be_bool)
{
  static const gchar *const formats[] = {"GRAY8", "GRAY16_LE"};
  const guint64 dims[] = {HEIGHT, WIDTH};
  guint8 ones[HEIGHT * WIDTH], mask[HEIGHT * WIDTH];
  g_autofree gchar *one = check_path_of ("one.npy");
  g_autofree gchar *half = check_path_of ("half.npy");

  memset (ones, 1, sizeof (ones));
  for (guint i = 0; i < sizeof (mask); i++)
    mask[i] = i % 2;
  fail_unless (gst_imaging_npy_save (
      one, GST_IMAGING_ND_ARRAY_TYPE_BOOL, 2, dims, ones, NULL));
  fail_unless (gst_imaging_npy_save (
      half, GST_IMAGING_ND_ARRAY_TYPE_BOOL, 2, dims, mask, NULL));
  for (guint i = 0; i < 4 * G_N_ELEMENTS (formats); i++) {
    gboolean is_white = i / 4; /* a dark frame of ones leaves it black */
    g_autofree gchar *properties =
        g_strdup_printf ("mask-location=%s %s-location=%s backend=%s", half,
            is_white ? "white" : "dark", one, i / 2 % 2 ? "cuda" : "cpu");
    gdouble full = i % 2 ? 65535 : 255, ambient = 0;
    g_auto (Ps) ps = ps_begin (properties, "normal ambient", formats[i % 2]);
    GstBuffer *buffer;
    GstMapInfo map;

    for (guint k = 0; k < N_LIGHTS; k++)
      ambient += (floor (shade (k) * full + 0.5) - !is_white) / full / N_LIGHTS;
    ps_push_set (&ps);
    buffer = check_pull (ps.normal);
    fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
    for (guint k = 0; k < HEIGHT * WIDTH; k++)
      fail_unless ((((gfloat *) map.data)[3 * k + 2] != 0) == (k % 2),
          "pixel %u: %g", k, ((gfloat *) map.data)[3 * k + 2]);
    gst_buffer_unmap (buffer, &map);
    gst_buffer_unref (buffer);
    check_tensor (ps.ambient, &ambient, 1, 1e-6);
  }
}

CHECK_TEST (test_a_white_frame_that_is_black_in_a_part)
{
  const guint64 dims[] = {HEIGHT, WIDTH};
  guint8 white[HEIGHT * WIDTH];
  g_autofree gchar *part = check_path_of ("part.npy");
  g_autofree gchar *black = check_path_of ("black.npy");

  memset (white, 0, sizeof (white));
  fail_unless (gst_imaging_npy_save (
      black, GST_IMAGING_ND_ARRAY_TYPE_U8, 2, dims, white, NULL));
  for (guint i = 0; i < sizeof (white); i++)
    white[i] = i % 4 ? 200 : 0;
  fail_unless (gst_imaging_npy_save (
      part, GST_IMAGING_ND_ARRAY_TYPE_U8, 2, dims, white, NULL));
  for (guint i = 0; i < 2; i++) {
    g_autofree gchar *properties = g_strdup_printf (
        "white-location=%s backend=%s", part, i ? "cuda" : "cpu");
    g_auto (Ps) ps = ps_begin (properties, "normal", "GRAY8");
    GstBuffer *buffer;
    GstMapInfo map;

    ps_push_set (&ps);
    check_warning (ps.bus, STREAM, FAILED, "black or clipped at 25");
    buffer = check_pull (ps.normal);
    fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
    for (guint k = 0; k < HEIGHT * WIDTH; k++)
      fail_unless ((((gfloat *) map.data)[3 * k + 2] != 0) == (k % 4 != 0),
          "pixel %u: %g", k, ((gfloat *) map.data)[3 * k + 2]);
    gst_buffer_unmap (buffer, &map);
    gst_buffer_unref (buffer);
  }
  for (guint i = 0; i < 2; i++) {
    g_autofree gchar *properties = g_strdup_printf (
        "white-location=%s backend=%s", black, i ? "cuda" : "cpu");
    g_auto (Ps) ps = ps_begin (properties, "normal", "GRAY8");

    check_push (ps.sink, picture (&ps, 0), GST_FLOW_NOT_NEGOTIATED);
    check_error (ps.bus, STREAM, FORMAT, "black or clipped at 100 %");
  }
}

CHECK_TEST (test_settings_change_while_playing)
{
  const gdouble all[] = {8, 1, 0, 0}, five[] = {5, 1, 0, 0};
  g_auto (Ps) ps = ps_begin ("robust=none", "quality", "GRAY16_LE");
  GstBuffer *buffer;
  GstMapInfo map;

  for (guint set = 0; set < 2; set++) {
    const gdouble *expected = set ? five : all;

    g_object_set (ps.element, "set-size", set ? 5 : 0, NULL);
    for (guint i = 0; i < expected[0]; i++)
      ps_push (&ps, i);
    buffer = check_pull (ps.quality);
    fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
    fail_unless_equals_float (((gfloat *) map.data)[0], expected[0]);
    fail_unless_equals_float (((gfloat *) map.data)[1], expected[1]);
    gst_buffer_unmap (buffer, &map);
    gst_buffer_unref (buffer);
  }
}
