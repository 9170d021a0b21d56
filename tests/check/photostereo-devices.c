/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* photostereo on several devices: what comes out and what is said are those of
 * one, whatever becomes of a set; and what is said when a device is not there,
 * or goes. */
#include "check-common.h"
#include "core/failures.h"

#include <math.h>

enum { N_LIGHTS = 8, WIDTH = 31, HEIGHT = 13, N_PADS = 4 };

static const gchar *const names[N_PADS] = {
    "normal", "albedo", "ambient", "quality"};

static gchar *lights;

static void
write_lights (void)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (guint i = 0; i < N_LIGHTS; i++) {
    gdouble phi = 2 * G_PI * i / N_LIGHTS, z = i % 2 ? 0.9 : 0.8;
    gdouble l[] = {90 * sqrt (1 - z * z) * cos (phi),
        90 * sqrt (1 - z * z) * sin (phi), 90 * z};
    gchar number[G_ASCII_DTOSTR_BUF_SIZE];

    for (guint k = 0; k < 3; k++)
      g_string_append_printf (
          text, "%s ", g_ascii_dtostr (number, sizeof (number), l[k]));
    g_string_append (text, "\n");
  }
  lights = check_path_of ("lights.txt");
  fail_unless (g_file_set_contents (lights, text->str, -1, NULL));
}

/* Of a test that needs several. */
#define need_devices() \
  do { \
    if (check_n_devices () < 2) \
      check_skip ("there are no two devices"); \
  } while (0)

/* Room for a few rows on a device, so that some or all of them have strips. */
static const gchar *
strips (void)
{
  return check_is_mock () ? "memory-limit=30000" : "memory-limit=40000";
}

/* --- harnesses ------------------------------------------------------------ */

typedef struct {
  GstElement *element;
  GstHarness *sink, *pads[N_PADS];
  GstBus *bus;
  GstVideoInfo info;
} Ps;

static Ps
ps_new (const gchar *properties)
{
  g_autofree gchar *line = g_strdup_printf (
      "photostereo name=p lights-location=%s mm-per-pixel=0.7 %s", lights,
      properties);
  Ps ps = {.element = check_launch (line)};

  ps.bus = check_watch (ps.element);
  ps.sink = gst_harness_new_with_element (ps.element, "sink", NULL);
  for (guint i = 0; i < N_PADS; i++) {
    ps.pads[i] = gst_harness_new_with_element (ps.element, NULL, names[i]);
    gst_harness_set_sink_caps_str (
        ps.pads[i], i ? "other/tensors" : "video/x-raw");
  }
  return ps;
}

static void
ps_teardown (Ps *ps)
{
  for (guint i = 0; i < N_PADS; i++)
    gst_harness_teardown (ps->pads[i]);
  check_take_down (ps->element, ps->bus, &ps->sink, 1);
}

static void
ps_free (Ps *ps)
{
  ps_teardown (ps);
  fail_unless_equals_int (check_n_live (), 0);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Ps, ps_free)

static void
ps_caps (Ps *ps, const gchar *format, gint height)
{
  gboolean is_bayer = g_str_equal (format, "grbg");
  g_autofree gchar *caps =
      g_strdup_printf ("video/x-%s,format=%s,width=%d,height=%d,framerate=25/1",
          is_bayer ? "bayer" : "raw", format, WIDTH, height);

  ps->info = check_info (is_bayer ? "GRAY8" : format, WIDTH, height);
  gst_harness_set_src_caps_str (ps->sink, caps);
}

static void
ps_push_set (Ps *ps)
{
  for (guint i = 0; i < N_LIGHTS; i++)
    check_push (ps->sink, check_noise (&ps->info, i), GST_FLOW_OK);
}

/* Adds the bytes of a result, of RGB those of pixels: nobody writes what is
 * behind a row. */
static void
tell_result (guint pad, GstBuffer *buffer, GString *told)
{
  gsize row = 3 * WIDTH, stride = GST_ROUND_UP_4 (row);
  GstMapInfo map;

  fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
  g_string_append_printf (told, "\n%s ", names[pad]);
  for (gsize k = 0; k < map.size; k++)
    if (pad != 0 || k % stride < row)
      g_string_append_printf (told, "%02x", map.data[k]);
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
}

/* Adds all results that came, and what was said. */
static void
ps_tell (Ps *ps, GString *told)
{
  GstMessage *message;
  GstBuffer *buffer;

  for (guint i = 0; i < N_PADS; i++)
    while ((buffer = gst_harness_try_pull (ps->pads[i])))
      tell_result (i, buffer, told);
  while ((message = gst_bus_pop_filtered (ps->bus,
              GST_MESSAGE_ELEMENT | GST_MESSAGE_ERROR | GST_MESSAGE_WARNING))) {
    g_autofree gchar *text =
        gst_structure_to_string (gst_message_get_structure (message));

    g_string_append_printf (told, "\n%s", text);
    gst_message_unref (message);
  }
}

/* Returns: (transfer full): all that came of two sets and a part of one */
static GString *
run (const gchar *properties, const gchar *format, gint height)
{
  g_auto (Ps) ps = ps_new (properties);
  GString *told = g_string_new (NULL);

  ps_caps (&ps, format, height);
  ps_push_set (&ps);
  ps_push_set (&ps);
  for (guint i = 0; i < 5; i++)
    check_push (ps.sink, check_noise (&ps.info, i), GST_FLOW_OK);
  fail_unless (gst_harness_push_event (ps.sink, gst_event_new_eos ()));
  ps_tell (&ps, told);
  fail_unless (told->len > (gsize) (3 * N_PADS * WIDTH * height));
  return told;
}

/* --- the bytes of one ----------------------------------------------------- */

/* Fails with the line that differs, and where. Frees both. */
static void
check_same_told (GString *expected, GString *found, const gchar *what)
{
  g_auto (GStrv) a = g_strsplit (expected->str, "\n", -1);
  g_auto (GStrv) b = g_strsplit (found->str, "\n", -1);

  for (guint i = 0; a[i] && b[i]; i++) {
    gsize at = 0;

    while (a[i][at] && a[i][at] == b[i][at])
      at++;
    fail_unless (a[i][at] == b[i][at],
        "%s: line %u, %.12s..., differs from character %" G_GSIZE_FORMAT
        " on: %.40s, not %.40s",
        what, i, a[i], at, b[i] + at, a[i] + at);
  }
  fail_unless_equals_int (g_strv_length (a), g_strv_length (b));
  g_string_free (expected, TRUE);
  g_string_free (found, TRUE);
}

static void
check_same (
    const gchar *one, const gchar *several, const gchar *format, gint height)
{
  g_autofree gchar *what =
      g_strdup_printf ("%s, %d rows, %s", format, height, several);

  check_same_told (
      run (one, format, height), run (several, format, height), what);
}

static void
setup (void)
{
  g_setenv ("IMK_MOCK_DEVICES", "3", TRUE);
  check_make_folder ();
  write_lights ();
}

static void
teardown (void)
{
  g_clear_pointer (&lights, g_free);
  check_remove_folder ();
}

CHECK_CASE ("devices", setup, teardown)
CHECK_CASE_TAKES (120)

CHECK_TEST (test_devices_give_the_bytes_of_one)
{
  static const gchar *const formats[] = {"GRAY8", "GRAY16_LE", "RGBx", "grbg"};
  /* those with the third device behind */
  static const gchar *const lists[] = {
      "<0,1>", "<-1>", "<1>", "<0,1,2>", "<2,0>"};
  guint n_lists = check_n_devices () > 2 ? 5 : 3;

  need_devices ();
  for (guint f = 0; f < G_N_ELEMENTS (formats); f++)
    for (guint i = 0; i < n_lists; i++) {
      g_autofree gchar *several =
          g_strdup_printf ("backend=cuda cuda-devices=%s", lists[i]);

      check_same ("backend=cuda", several, formats[f], HEIGHT);
    }
}

CHECK_TEST (test_a_picture_may_have_fewer_rows_than_there_are_devices)
{
  need_devices ();
  for (gint height = 1; height <= 2; height++) {
    check_same (
        "backend=cuda", "backend=cuda cuda-devices=<-1>", "GRAY8", height);
    check_same (
        "backend=cuda", "backend=cuda cuda-devices=<-1>", "grbg", height);
  }
}

/* The share of clipped samples is that of all pictures, of the last set of 5
 * also those of the light of which one band of two is there. */
CHECK_TEST (test_what_is_said_of_strips_is_said_without)
{
  guint limit = check_is_mock () ? 30000 : 60000;

  for (guint several = 0; several < (check_n_devices () > 1 ? 2 : 1);
       several++) {
    g_autofree gchar *properties =
        g_strdup_printf ("backend=cuda bands=2 memory-limit=%u %s", limit,
            several ? "cuda-devices=<-1>" : "");

    check_same ("backend=cuda bands=2", properties, "GRAY8", HEIGHT);
  }
}

CHECK_TEST (test_updates_and_what_is_said_are_those_of_one)
{
  need_devices ();
  check_same ("backend=cuda update-interval=3 next-light=true",
      "backend=cuda update-interval=3 next-light=true cuda-devices=<-1>",
      "grbg", HEIGHT);
  check_same ("backend=cuda update-interval=2 stop-below=30",
      "backend=cuda update-interval=2 stop-below=30 cuda-devices=<-1>", "GRAY8",
      HEIGHT);
  check_same ("backend=cuda grey-source=luma robust=huber y-axis=down",
      "backend=cuda grey-source=luma robust=huber y-axis=down cuda-devices=<-1>",
      "grbg", HEIGHT);
}

CHECK_TEST (test_strips_of_devices_change_nothing)
{
  static const gchar *const formats[] = {"grbg", "GRAY16_LE"};
  static const gchar *const lists[] = {"<-1>", "<0,1>"};

  need_devices ();
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    g_autofree gchar *several = g_strdup_printf (
        "backend=cuda %s cuda-devices=%s", strips (), lists[i]);

    check_same ("backend=cuda", several, formats[i], HEIGHT);
  }
}

/* Wherever pictures are: those on one device are copied from there. */
CHECK_TEST (test_pictures_come_from_any_memory)
{
  static const GstImagingMemoryMode modes[] = {
      GST_IMAGING_MEMORY_PINNED, GST_IMAGING_MEMORY_DEVICE};
  g_autofree gchar *in_strips =
      g_strdup_printf ("backend=cuda cuda-devices=<1,0> %s", strips ());
  g_autoptr (GString) expected = NULL;

  need_devices ();
  expected = g_string_new (NULL);
  for (guint i = 0; i < 1 + 2 * G_N_ELEMENTS (modes); i++) {
    Ps ps = ps_new (i == 0  ? "backend=cuda"
                    : i % 2 ? "backend=cuda cuda-devices=<-1>"
                            : in_strips);
    GString *found = i ? g_string_new (NULL) : expected;

    ps_caps (&ps, "grbg", HEIGHT);
    for (guint k = 0; k < N_LIGHTS; k++) {
      GstBuffer *buffer = check_noise (&ps.info, k);

      if (i > 0)
        buffer = check_ours (modes[(i - 1) / 2], NULL, buffer);
      check_push (ps.sink, buffer, GST_FLOW_OK);
    }
    ps_tell (&ps, found);
    ps_free (&ps);
    if (i > 0)
      check_same_told (g_string_new (expected->str), found, "other memory");
  }
}

/* Who wrote them has to be asked once, not each of them by the bus of one. */
CHECK_TEST (test_results_of_several_are_page_locked)
{
  static const gchar *const properties[] = {
      "backend=cuda", "backend=cuda cuda-devices=<-1>"};
  static const gchar *const memories[] = {"device", "pinned"};

  need_devices ();
  for (guint i = 0; i < 2; i++) {
    g_auto (Ps) ps = ps_new (properties[i]);

    ps_caps (&ps, "GRAY8", HEIGHT);
    ps_push_set (&ps);
    for (guint k = 0; k < N_PADS; k++) {
      g_autoptr (GstBuffer) buffer = check_pull (ps.pads[k]);

      fail_unless_equals_string (
          gst_imaging_buffer_memory_name (buffer), memories[i]);
    }
  }
}

/* --- sets that end early -------------------------------------------- */

/* Ends a set that has begun by a flush, by the signal, by other caps, by a
 * property, or with the element. */
static void
interrupt (Ps *ps, guint how)
{
  GstSegment segment;

  switch (how) {
  case 0:
    gst_segment_init (&segment, GST_FORMAT_TIME);
    check_flush (ps->sink);
    break;
  case 1:
    g_signal_emit_by_name (ps->element, "finish-set");
    break;
  case 2:
    ps_caps (ps, "GRAY16_LE", HEIGHT - 2);
    break;
  case 3: /* the next set is that of another kernel */
    g_object_set (ps->element, "set-size", 6, "led-lobe", 1.0, NULL);
    check_push (ps->sink, check_noise (&ps->info, 6), GST_FLOW_OK);
    check_push (ps->sink, check_noise (&ps->info, 7), GST_FLOW_OK);
    break;
  default:
    break;
  }
}

static GString *
run_interrupted (const gchar *properties, guint how)
{
  g_auto (Ps) ps = ps_new (properties);
  GString *told = g_string_new (NULL);

  ps_caps (&ps, "grbg", HEIGHT);
  for (guint i = 0; i < 6; i++)
    check_push (ps.sink, check_noise (&ps.info, i), GST_FLOW_OK);
  interrupt (&ps, how);
  for (guint i = 0; how < 4 && i < 6; i++)
    check_push (ps.sink, check_noise (&ps.info, i), GST_FLOW_OK);
  if (how < 4)
    fail_unless (gst_harness_push_event (ps.sink, gst_event_new_eos ()));
  ps_tell (&ps, told);
  return told;
}

CHECK_LOOP_TEST (test_a_set_may_be_interrupted, 5)
{
  need_devices ();
  for (guint i = 0; i < 2; i++) {
    g_autofree gchar *properties =
        g_strdup_printf ("backend=cuda cuda-devices=%s %s",
            i ? "<1,0>" : "<-1>", i ? strips () : "");
    GString *expected = run_interrupted ("backend=cuda", __i__);
    GString *found = run_interrupted (properties, __i__);

    fail_unless (__i__ == 4 || found->len > 4 * WIDTH * HEIGHT);
    check_same_told (expected, found, properties);
  }
}

/* --- devices that are not there, or go ------------------------------------ */

CHECK_MOCK_TEST (test_wrong_devices_are_said)
{
  check_wrong_devices ("photostereo");
}

/* A further device goes before the kernel is made, before a picture, before
 * the solution. */
CHECK_MOCK_TEST (test_a_device_that_goes_is_an_error)
{
  static const guint pictures[] = {0, 3, N_LIGHTS - 1};

  for (guint i = 0; i < G_N_ELEMENTS (pictures); i++)
    for (guint strips = 0; strips < 2; strips++) {
      g_auto (Ps) ps = ps_new (strips ? "backend=cuda cuda-devices=<-1> "
                                        "memory-limit=30000"
                                      : "backend=cuda cuda-devices=<-1>");
      GstFlowReturn flow = GST_FLOW_OK;

      if (pictures[i] == 0)
        check_lose_device (1);
      ps_caps (&ps, "GRAY8", HEIGHT);
      for (guint k = 0; k < N_LIGHTS && flow == GST_FLOW_OK; k++) {
        if (k == pictures[i])
          check_lose_device (1);
        flow = gst_harness_push (ps.sink, check_noise (&ps.info, k));
      }
      fail_unless (flow != GST_FLOW_OK);
      check_error (
          ps.bus, LIBRARY, FAILED, "mock device 1 has fallen off the bus");
      for (guint k = 0; k < N_PADS; k++)
        fail_unless (gst_harness_try_pull (ps.pads[k]) == NULL);
      check_lose_device (-1);
    }
}

/* What is left is on the device: a stream and an event. */
CHECK_MOCK_TEST (test_a_context_that_is_gone_leaves_nothing_on_the_host)
{
  for (guint i = 0; i < 2; i++) {
    Ps ps = ps_new (i ? "backend=cuda cuda-devices=<1,0> memory-limit=30000"
                      : "backend=cuda cuda-devices=<1,0>");

    ps_caps (&ps, "GRAY8", HEIGHT);
    check_push (ps.sink, check_noise (&ps.info, 0), GST_FLOW_OK);
    check_close_device (0);
    fail_unless_equals_int (gst_element_set_state (ps.element, GST_STATE_NULL),
        GST_STATE_CHANGE_SUCCESS);
    fail_unless_equals_int (check_n_live (), 2 * (i + 1));
    check_close_device (-1);
    ps_teardown (&ps);
  }
}

CHECK_MOCK_TEST (test_auto_takes_the_cpu_when_a_device_is_gone)
{
  enum { SIDE = 520 }; /* auto would take CUDA */
  g_auto (Ps) ps =
      ps_new ("cuda-devices=<-1> n-threads=1 set-size=3 mm-per-pixel=0.1");
  gchar *backend;

  ps.info = check_info ("GRAY8", SIDE, SIDE);
  check_lose_device (2);
  gst_harness_set_src_caps_str (
      ps.sink, "video/x-raw,format=GRAY8,width=520,height=520,framerate=25/1");
  check_warning (
      ps.bus, LIBRARY, FAILED, "mock device 2 has fallen off the bus");
  for (guint i = 0; i < 3; i++)
    check_push (ps.sink, check_noise (&ps.info, i), GST_FLOW_OK);
  gst_buffer_unref (check_pull (ps.pads[0]));
  g_object_get (ps.element, "active-backend", &backend, NULL);
  fail_unless_equals_string (backend, "cpu");
  g_free (backend);
  check_lose_device (-1);
}

/* Each call of a set fails once: an error with a sentence, or the set as it is;
 * nothing hangs and nothing is left. */
CHECK_MOCK_TEST (test_no_failure_goes_unsaid)
{
  gulong n = 0, made = 0;

  while (made >= n) {
    g_auto (Ps) ps =
        ps_new ("backend=cuda cuda-devices=<-1> update-interval=4");
    GstFlowReturn flow = GST_FLOW_OK;

    imk_inject_failure (++n, FALSE);
    ps_caps (&ps, "grbg", HEIGHT);
    for (guint k = 0; k < N_LIGHTS && flow == GST_FLOW_OK; k++)
      flow = gst_harness_push (ps.sink, check_noise (&ps.info, k));
    made = imk_inject_failure (0, FALSE);
    fail_unless (flow == GST_FLOW_OK ||
                     check_count_messages (ps.bus, GST_MESSAGE_ERROR) > 0,
        "call %lu: %s and no error", n, gst_flow_get_name (flow));
    fail_unless (n < 5000, "no end to calls");
  }
  fail_unless (n > 100, "%lu calls", n);
}
