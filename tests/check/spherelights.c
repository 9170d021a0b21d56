/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The spherelights element: formats, the file, the ends of a set, and what is
 * refused. The pictures are a dim disc with a bright square, whose direction
 * follows from the formula. */
#include "check-common.h"

#include <glib/gstdio.h>
#include <math.h>

enum { SIZE = 101, RADIUS = 40 };

/* Returns: (transfer full): the disc around the middle, with a highlight of 3 x
 * 3 pixels @dx to the right and @dy up */
static GstBuffer *
sphere (const gchar *format, gint dx, gint dy)
{
  GstVideoInfo info = check_info (format, SIZE, SIZE);
  GstBuffer *buffer = check_noise (&info, 0);
  guint n = GST_VIDEO_INFO_IS_RGB (&info) ? 3 : 1;
  GstVideoFrame f;

  fail_unless (gst_video_frame_map (&f, &info, buffer, GST_MAP_READWRITE));
  for (guint c = 0; c < n; c++)
    for (gint y = 0; y < SIZE; y++)
      for (gint x = 0; x < SIZE; x++) {
        gint u = x - SIZE / 2, v = SIZE / 2 - y;
        guint level = ABS (u - dx) < 2 && ABS (v - dy) < 2 ? 255
                      : hypot (u, v) < RADIUS              ? 60
                                                           : 0;
        guint8 *p = (guint8 *) GST_VIDEO_FRAME_COMP_DATA (&f, c) +
                    y * GST_VIDEO_FRAME_COMP_STRIDE (&f, c) +
                    x * GST_VIDEO_FRAME_COMP_PSTRIDE (&f, c);

        if (GST_VIDEO_INFO_COMP_DEPTH (&info, c) == 8)
          *p = (guint8) level;
        else
          *(guint16 *) p = (guint16) (257 * level);
      }
  gst_video_frame_unmap (&f);
  return buffer;
}

static void
set_caps (GstHarness *h, const gchar *format)
{
  g_autofree gchar *caps = check_caps_string (format, SIZE, SIZE);

  gst_harness_set_src_caps_str (h, caps);
}

static GstHarness *
harness_new (const gchar *properties, const gchar *path)
{
  g_autofree gchar *line =
      g_strdup_printf ("spherelights location=%s %s", path, properties);

  return gst_harness_new_parse (line);
}

static void
push (GstHarness *h, const gchar *format, gint dx, gint dy)
{
  check_push (h, sphere (format, dx, dy), GST_FLOW_OK);
  gst_buffer_unref (check_pull (h));
}

/* The file has the light of each highlight, to 0.5 degrees. */
static void
assert_lights (const gchar *path, const gint (*highlights)[2], guint n)
{
  g_autofree gchar *text = NULL;
  gchar **lines;

  fail_unless (g_file_get_contents (path, &text, NULL, NULL));
  lines = g_strsplit (text, "\n", -1);
  fail_unless_equals_int (atoi (lines[0]), n);
  for (guint i = 0; i < n; i++) {
    gdouble nx = highlights[i][0] / (gdouble) RADIUS;
    gdouble ny = highlights[i][1] / (gdouble) RADIUS;
    gdouble nz = sqrt (1 - nx * nx - ny * ny), x, y, z;
    guint number;

    fail_unless_equals_int (
        sscanf (lines[1 + i], "%u %lf %lf %lf", &number, &x, &y, &z), 4);
    fail_unless_equals_int (number, i);
    fail_unless (fabs (x - 2 * nz * nx) < 0.01 &&
                     fabs (y - 2 * nz * ny) < 0.01 &&
                     fabs (z - (2 * nz * nz - 1)) < 0.01,
        "light %u is %s", i, lines[1 + i]);
  }
  fail_unless_equals_string (lines[1 + n], "");
  g_strfreev (lines);
}

static const gint highlights[][2] = {{0, 0}, {20, 0}, {-10, 15}, {5, -25}};

CHECK_CASE ("general", check_make_folder, check_remove_folder)

CHECK_TEST (test_every_format_gives_the_lights)
{
  const gchar *formats[] = {
      "GRAY8", "GRAY16_LE", "RGB", "BGRx", "ARGB", "RGBA64_LE", "ARGB64_LE"};
  const gchar *spheres[] = {"", "centre-x=50 centre-y=50 radius=40"};
  g_autofree gchar *path = check_path_of ("lights.lp");

  for (guint k = 0; k < G_N_ELEMENTS (spheres); k++)
    for (guint f = 0; f < G_N_ELEMENTS (formats); f++) {
      g_autoptr (CheckHarness) h = harness_new (spheres[k], path);

      set_caps (h, formats[f]);
      for (guint i = 0; i < G_N_ELEMENTS (highlights); i++)
        push (h, formats[f], highlights[i][0], highlights[i][1]);
      gst_harness_push_event (h, gst_event_new_eos ());
      assert_lights (path, highlights, G_N_ELEMENTS (highlights));
      g_remove (path);
    }
}

CHECK_TEST (test_a_lamp_taken_twice_is_said)
{
  static const gint twins[][2] = {{0, 0}, {20, 0}, {5, -25}, {20, 0}};
  g_autofree gchar *path = check_path_of ("lights.lp");

  for (guint n = 3; n <= 4; n++) {
    g_autoptr (CheckHarness) h = harness_new ("", path);
    g_autoptr (CheckBus) bus = gst_bus_new ();
    g_autoptr (GstElement) element =
        gst_harness_find_element (h, "spherelights");

    gst_element_set_bus (element, bus);
    set_caps (h, "GRAY8");
    for (guint i = 0; i < n; i++)
      push (h, "GRAY8", twins[i][0], twins[i][1]);
    gst_harness_push_event (h, gst_event_new_eos ());
    assert_lights (path, twins, n);
    if (n == 4)
      check_warning (bus, STREAM, FAILED,
          "Pictures 1 and 3, counted from 0, have the highlight at the same");
    check_no_messages (bus, GST_MESSAGE_WARNING);
    g_remove (path);
  }
}

CHECK_TEST (test_action_ends_a_set_and_the_next_begins)
{
  g_autofree gchar *path = check_path_of ("lights.lp");
  g_autoptr (CheckHarness) h = harness_new ("", path);
  g_autoptr (GstElement) element = gst_harness_find_element (h, "spherelights");

  set_caps (h, "GRAY8");
  push (h, "GRAY8", highlights[0][0], highlights[0][1]);
  g_signal_emit_by_name (element, "finish-set");
  assert_lights (path, highlights, 1);
  push (h, "GRAY8", highlights[1][0], highlights[1][1]);
  push (h, "GRAY8", highlights[2][0], highlights[2][1]);
  g_signal_emit_by_name (element, "finish-set");
  assert_lights (path, highlights + 1, 2);
  g_remove (path);
  g_signal_emit_by_name (element, "finish-set");
  fail_if (g_file_test (path, G_FILE_TEST_EXISTS));
}

/* What has to be in the error of a set with one picture. */
static void
assert_refused (const gchar *properties, const gchar *path, gint dx,
    gboolean at_once, const gchar *words)
{
  g_autoptr (CheckHarness) h = harness_new (properties, path);
  g_autoptr (GstElement) element = gst_harness_find_element (h, "spherelights");
  g_autoptr (CheckBus) bus = check_watch (element);

  set_caps (h, "GRAY8");
  check_push (
      h, sphere ("GRAY8", dx, 0), at_once ? GST_FLOW_ERROR : GST_FLOW_OK);
  gst_harness_push_event (h, gst_event_new_eos ());
  check_says (bus, GST_MESSAGE_ERROR, words);
}

CHECK_TEST (test_what_cannot_be_is_an_error)
{
  g_autofree gchar *path = check_path_of ("lights.lp");

  assert_refused ("", "/nowhere/at/all.lp", 0, FALSE, "/nowhere/at/all.lp");
  assert_refused ("mask-location=/nowhere.npy", path, 0, TRUE, "/nowhere.npy");
  assert_refused ("centre-x=3 centre-y=3 radius=2", path, 0, TRUE, "black");
}

/* @descr: "u1" or "b1" */
static void
write_mask (const gchar *path, const gchar *descr)
{
  g_autofree gchar *header = g_strdup_printf (
      "{'descr': '|%s', 'fortran_order': False, 'shape': (101, 101), }", descr);
  g_autoptr (GString) npy = g_string_new (NULL);

  g_string_append_len (npy, "\x93NUMPY\x01\x00\x76\x00", 10);
  g_string_append_printf (npy, "%-117s\n", header);
  for (gint y = 0; y < SIZE; y++)
    for (gint x = 0; x < SIZE; x++)
      g_string_append_c (
          npy, hypot (x - SIZE / 2, y - SIZE / 2) < RADIUS ? 1 : 0);
  fail_unless (g_file_set_contents (path, npy->str, (gssize) npy->len, NULL));
}

CHECK_TEST (test_mask_gives_the_sphere)
{
  static const gchar *const types[] = {"u1", "b1"};
  g_autofree gchar *path = check_path_of ("lights.lp");
  g_autofree gchar *mask = check_path_of ("mask.npy");
  g_autofree gchar *property = g_strdup_printf ("mask-location=%s", mask);
  GstHarness *h;

  for (guint k = 0; k < G_N_ELEMENTS (types); k++) {
    write_mask (mask, types[k]);
    h = harness_new (property, path);
    set_caps (h, "GRAY8");
    for (guint i = 0; i < G_N_ELEMENTS (highlights); i++)
      push (h, "GRAY8", highlights[i][0], highlights[i][1]);
    gst_harness_push_event (h, gst_event_new_eos ());
    assert_lights (path, highlights, G_N_ELEMENTS (highlights));
    gst_harness_teardown (h);
    g_remove (path);
  }
  /* of another size */
  g_remove (path);
  h = harness_new (property, path);
  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY8,width=8,height=8,framerate=1/1");
  check_push (h, gst_buffer_new_allocate (NULL, 64, NULL), GST_FLOW_ERROR);
  gst_harness_teardown (h);
  g_remove (mask);
}

/* A file that cannot be used is a warning at the next set, which has the
 * settings before. */
CHECK_TEST (test_a_wrong_mask_does_not_end_the_stream)
{
  g_autofree gchar *path = check_path_of ("lights.lp");
  g_autofree gchar *mask = check_path_of ("mask.npy");
  g_autoptr (CheckHarness) h =
      harness_new ("centre-x=50 centre-y=50 radius=40", path);
  g_autoptr (GstElement) element = gst_harness_find_element (h, "spherelights");
  g_autoptr (GstBus) bus = gst_bus_new ();

  gst_element_set_bus (element, bus);
  set_caps (h, "GRAY8");
  for (guint set = 0; set < 4; set++) {
    for (guint i = 0; i < G_N_ELEMENTS (highlights); i++) {
      push (h, "GRAY8", highlights[i][0], highlights[i][1]);
      if (i == 1) /* counts from the next set on */
        g_object_set (element, "mask-location",
            set == 0   ? "/nowhere.npy"
            : set == 1 ? path
                       : mask,
            NULL);
    }
    g_signal_emit_by_name (element, "finish-set");
    assert_lights (path, highlights, G_N_ELEMENTS (highlights));
    if (set == 1)
      check_warning (bus, LIBRARY, SETTINGS, "nowhere.npy");
    if (set == 1)
      write_mask (mask, "b1");
    if (set == 2)
      check_warning (bus, LIBRARY, SETTINGS, "lights.lp");
  }
  check_no_messages (bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
  gst_element_set_bus (element, NULL);
  g_remove (path);
  g_remove (mask);
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
  g_autofree gchar *path = check_path_of ("lights.lp");

  for (guint i = 0; i < 50; i++) {
    g_autoptr (GstElement) element =
        gst_element_factory_make ("spherelights", NULL);
    g_autoptr (CheckHarness) h = NULL;
    GThread *thread;

    g_object_set (element, "location", path, NULL);
    h = gst_harness_new_with_element (element, "sink", "src");
    set_caps (h, "GRAY8");
    push (h, "GRAY8", 0, 0);
    thread = g_thread_new ("finish", finish_sets, element);
    g_usleep (10 * i);
    gst_element_set_state (element, GST_STATE_NULL);
    g_thread_join (thread);
  }
  g_remove (path); /* of those that were in time */
}

static gpointer
push_in_thread (gpointer h)
{
  check_push (
      h, sphere ("GRAY8", highlights[0][0], highlights[0][1]), GST_FLOW_OK);
  return NULL;
}

/* A paused pipeline keeps the first picture, and the thread that brought it. */
CHECK_TEST (test_a_set_may_be_finished_while_a_picture_waits)
{
  g_autofree gchar *path = check_path_of ("lights.lp");
  g_autoptr (CheckHarness) h = harness_new ("", path);
  g_autoptr (GstElement) element = gst_harness_find_element (h, "spherelights");
  CheckWaiting w;

  set_caps (h, "GRAY8");
  check_wait_at (&w, element, "src", push_in_thread, h);
  g_signal_emit_by_name (element, "finish-set");
  assert_lights (path, highlights, 1);
  check_release (&w);
  gst_buffer_unref (check_pull (h));
  g_remove (path);
}
