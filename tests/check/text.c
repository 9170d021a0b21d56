/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Results as text: the numbers, the line of names, and the thread that writes
 * what is much. */
#include "check-common.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gstimagingnumber.h"

#define CELLS 400
#define FIELDS 9
#define SPOTS \
  "shcentroid columns=20 rows=20 pitch-x=4 pitch-y=4 fields=all backend=cpu"

/* --- numbers -------------------------------------------------------------- */

/* Any bits, places of spots, decimals of few digits, and both neighbours of
 * powers of two and of ten. */
static gdouble
draw (GRand *rand, guint i)
{
  gdouble value = 0;

  switch (i % 6) {
  case 0: {
    guint64 bits = (guint64) g_rand_int (rand) << 32 | g_rand_int (rand);

    memcpy (&value, &bits, sizeof (value));
    return value;
  }
  case 1:
    return g_rand_double_range (rand, -100, 1000);
  case 2:
    return (gfloat) g_rand_double_range (rand, 0, 64);
  case 3:
    value = ldexp (1, g_rand_int_range (rand, -40, 60));
    break;
  case 4:
    return g_rand_int_range (rand, 0, 100000) / 1000.0;
  default:
    value = pow (10, g_rand_int_range (rand, -12, 18)) *
            g_rand_int_range (rand, 1, 10);
  }
  return i / 6 % 3 == 0 ? value
                        : nextafter (value, i / 6 % 3 == 1 ? 0 : INFINITY);
}

static guint
count_digits (const gchar *text)
{
  gsize end = strcspn (text, "e"), first = strcspn (text, "123456789");
  guint n = 0, n_zeros = 0;

  for (gsize i = first; i < end; i++)
    if (g_ascii_isdigit (text[i])) {
      n++;
      n_zeros = text[i] == '0' ? n_zeros + 1 : 0;
    }
  return n - n_zeros;
}

/* The fewest with which the C library reads the same again. */
static guint
fewest_digits (gdouble value)
{
  gchar text[64];

  for (guint n = 1; n < 17; n++) {
    g_snprintf (text, sizeof (text), "%.*e", (gint) n - 1, value);
    if (strtod (text, NULL) == value)
      return n;
  }
  return 17;
}

CHECK_CASE ("numbers", NULL, NULL)

CHECK_TEST (test_numbers_are_the_same_when_they_are_read_again)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);
  gchar text[GST_IMAGING_NUMBER_SIZE + 1];

  for (guint i = 0; i < 300000; i++) {
    gdouble value = draw (rand, i);
    gsize n = gst_imaging_number_print (text, value);

    fail_unless (n > 0 && n <= GST_IMAGING_NUMBER_SIZE);
    text[n] = '\0';
    fail_unless (isnan (value) ? g_str_equal (text, "nan")
                               : g_ascii_strtod (text, NULL) == value,
        "%.17g: %s", value, text);
    if (i % 16 == 0 && fabs (value) > 1e-10 && fabs (value) < 1e15)
      fail_unless (count_digits (text) <= fewest_digits (value),
          "%.17g: %s has more than %u digits", value, text,
          fewest_digits (value));
  }
}

CHECK_TEST (test_numbers_are_written_as_by_hand)
{
  static const struct {
    gdouble value;
    const gchar *text;
  } cases[] = {
      {0, "0"},
      {-0.0, "0"},
      {1, "1"},
      {-12, "-12"},
      {0.1, "0.1"},
      {-0.25, "-0.25"},
      {0.1 + 0.2, "0.30000000000000004"},
      {1e-4, "0.0001"},
      {1.5e-5, "1.5e-05"},
      {1e-5, "1e-05"},
      {2e-10, "2e-10"},
      {5e-324, "4.94065645841247e-324"},
      {1e300, "1e+300"},
      {123456789012345, "123456789012345"},
      {1e15, "1e+15"},
      {99.99999999999999, "99.99999999999999"},
      {9.5, "9.5"},
      {INFINITY, "inf"},
      {-INFINITY, "-inf"},
      {NAN, "nan"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar text[GST_IMAGING_NUMBER_SIZE + 1];

    text[gst_imaging_number_print (text, cases[i].value)] = '\0';
    fail_unless_equals_string (text, cases[i].text);
  }
}

/* --- a reader ------------------------------------------------------------- */

typedef struct {
  GstHarness *h;
  GstPad *results, *reader;
  GMutex lock;
  GCond changed;
  GString *text;
  guint n_buffers, n_headers;
  GstFlowReturn flow;
  gboolean hold, waits;
  gboolean drops;   /* what was held when a flush came, as a sink in preroll */
  gboolean flushed; /* one came */
  gboolean may_flush; /* the reader itself, at its third buffer */
  gboolean has_flushed;
} Reading;

static Reading *
reading_of (GstPad *pad)
{
  return gst_pad_get_element_private (pad);
}

static void
flush (Reading *self)
{
  gst_harness_push_event (self->h, gst_event_new_flush_start ());
  gst_harness_push_event (self->h, gst_event_new_flush_stop (TRUE));
}

static void
begin_segment (Reading *self)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (self->h, gst_event_new_segment (&segment));
}

static GstFlowReturn
read_buffer (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Reading *self = reading_of (pad);
  gboolean flushes;
  GstFlowReturn flow;
  GstMapInfo map;

  g_mutex_lock (&self->lock);
  while (self->hold) {
    self->waits = TRUE;
    g_cond_broadcast (&self->changed);
    g_cond_wait (&self->changed, &self->lock);
  }
  if (self->drops && self->flushed) {
    self->flushed = FALSE;
    g_mutex_unlock (&self->lock);
    gst_buffer_unref (buffer);
    return GST_FLOW_FLUSHING;
  }
  gst_buffer_map (buffer, &map, GST_MAP_READ);
  g_string_append_len (self->text, (const gchar *) map.data, map.size);
  gst_buffer_unmap (buffer, &map);
  self->n_headers += GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_HEADER);
  self->n_buffers++;
  flow = self->flow;
  flushes = self->may_flush && self->n_buffers == 3;
  g_mutex_unlock (&self->lock);
  gst_buffer_unref (buffer);
  if (!flushes)
    return flow;
  flush (self);
  g_mutex_lock (&self->lock);
  self->has_flushed = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  return GST_FLOW_FLUSHING;
}

static void
hold (Reading *self, gboolean hold)
{
  g_mutex_lock (&self->lock);
  self->hold = hold;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static gboolean
read_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_START) {
    reading_of (pad)->flushed = TRUE;
    hold (reading_of (pad), FALSE);
  }
  gst_event_unref (event);
  return TRUE;
}

static void
wait_until_it_waits (Reading *self)
{
  gint64 end = g_get_monotonic_time () + GST_TIME_AS_USECONDS (CHECK_TIMEOUT);

  g_mutex_lock (&self->lock);
  while (!self->waits)
    fail_unless (g_cond_wait_until (&self->changed, &self->lock, end));
  g_mutex_unlock (&self->lock);
}

static void
reading_begin (Reading *self)
{
  GstElement *element;

  *self = (Reading){.text = g_string_new (NULL)};
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->h = gst_harness_new_parse (SPOTS);
  element = gst_harness_find_element (self->h, "shcentroid");
  self->results = gst_element_request_pad_simple (element, "results");
  gst_object_unref (element);
  self->reader = gst_pad_new ("reader", GST_PAD_SINK);
  gst_pad_set_element_private (self->reader, self);
  gst_pad_set_chain_function (self->reader, read_buffer);
  gst_pad_set_event_function (self->reader, read_event);
  gst_pad_set_active (self->reader, TRUE);
  fail_unless_equals_int (
      gst_pad_link (self->results, self->reader), GST_PAD_LINK_OK);
  gst_harness_set_src_caps_str (
      self->h, "video/x-raw,format=GRAY8,width=80,height=80,framerate=25/1");
}

static GstFlowReturn
push_frame (Reading *self, guint i)
{
  GstVideoInfo info = check_info ("GRAY8", 80, 80);

  return gst_harness_push (self->h, check_noise (&info, i));
}

static void
reading_end (Reading *self)
{
  hold (self, FALSE);
  gst_harness_teardown (self->h);
  gst_pad_set_active (self->reader, FALSE);
  gst_object_unref (self->results);
  gst_object_unref (self->reader);
  g_string_free (self->text, TRUE);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Reading, reading_end)

/* --- the thread ----------------------------------------------------------- */

/* Whole lines of all cells of frames 0, 1, 2, ... */
static void
check_rows (const gchar *text, guint n_frames)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);

  fail_unless_equals_int (
      (gint) g_strv_length (lines), (gint) (1 + n_frames * CELLS + 1));
  fail_unless (g_str_has_prefix (lines[0], "frame,pts,cell,row,col,"));
  for (guint i = 0; i < n_frames * CELLS; i++) {
    guint64 frame = 0, pts = 0;
    guint cell = 0;

    fail_unless_equals_int (
        sscanf (lines[1 + i], "%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%u,",
            &frame, &pts, &cell),
        3);
    fail_unless (frame == i / CELLS && pts == frame * 40 * GST_MSECOND &&
                     cell == i % CELLS,
        "%s", lines[1 + i]);
  }
}

CHECK_CASE ("rows", check_make_folder, check_remove_folder)

CHECK_TEST (test_all_rows_come_in_order_before_eos)
{
  g_auto (Reading) r = {0};

  reading_begin (&r);
  for (guint i = 0; i < 50; i++)
    fail_unless_equals_int (push_frame (&r, i), GST_FLOW_OK);
  fail_unless (gst_harness_push_event (r.h, gst_event_new_eos ()));
  check_rows (r.text->str, 50);
  fail_unless_equals_int (r.n_buffers, 51);
  fail_unless_equals_int (r.n_headers, 1);
}

/* Where offsets number the frames, missing ones are missing numbers. Without
 * offsets @frame counts on, and the time of the frame tells. */
CHECK_LOOP_TEST (test_rows_show_missing_frames, 2)
{
  static const guint numbers[] = {4, 5, 6, 9, 109, 110};
  GstVideoInfo info = check_info ("GRAY8", 80, 80);
  g_auto (GStrv) lines = NULL;
  gboolean has_offsets = __i__ == 0;
  g_auto (Reading) r = {0};

  reading_begin (&r);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++) {
    GstBuffer *frame = check_noise (&info, numbers[i]); /* pts: 40 ms each */

    if (has_offsets) {
      GST_BUFFER_OFFSET (frame) = numbers[i];
      GST_BUFFER_OFFSET_END (frame) = numbers[i] + 1;
    }
    fail_unless_equals_int (gst_harness_push (r.h, frame), GST_FLOW_OK);
  }
  fail_unless (gst_harness_push_event (r.h, gst_event_new_eos ()));
  lines = g_strsplit (r.text->str, "\n", -1);
  fail_unless (g_strv_length (lines) == 1 + CELLS * G_N_ELEMENTS (numbers) + 1);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++) {
    guint64 frame = 0, pts = 0;

    sscanf (lines[1 + i * CELLS], "%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT,
        &frame, &pts);
    fail_unless_equals_uint64 (frame, has_offsets ? numbers[i] : i);
    fail_unless_equals_uint64 (pts, numbers[i] * 40 * GST_MSECOND);
  }
}

/* Late clients of a server, and every file of many, take it from the caps. */
CHECK_TEST (test_caps_have_the_line_of_names)
{
  const GValue *array;
  GstBuffer *header;
  g_autoptr (GstCaps) caps = NULL;
  GstMapInfo map;
  g_auto (Reading) r = {0};

  reading_begin (&r);
  push_frame (&r, 0);
  gst_harness_push_event (r.h, gst_event_new_eos ());
  caps = gst_pad_get_current_caps (r.results);
  array = gst_structure_get_value (
      gst_caps_get_structure (caps, 0), "streamheader");
  fail_unless (array && gst_value_array_get_size (array) == 1);
  header = gst_value_get_buffer (gst_value_array_get_value (array, 0));
  fail_unless (GST_BUFFER_FLAG_IS_SET (header, GST_BUFFER_FLAG_HEADER));
  gst_buffer_map (header, &map, GST_MAP_READ);
  fail_unless (map.size > 20 && map.data[map.size - 1] == '\n');
  fail_unless (memcmp (map.data, r.text->str, map.size) == 0);
  gst_buffer_unmap (header, &map);
}

/* But not without an end: then they wait, and no row is lost. */
CHECK_TEST (test_frames_do_not_wait_for_their_rows)
{
  g_auto (Reading) r = {0};

  reading_begin (&r);
  hold (&r, TRUE);
  for (guint i = 0; i < 6; i++)
    fail_unless_equals_int (push_frame (&r, i), GST_FLOW_OK);
  wait_until_it_waits (&r);
  fail_unless_equals_int (gst_harness_buffers_received (r.h), 6);
  hold (&r, FALSE);
  gst_harness_push_event (r.h, gst_event_new_eos ());
  check_rows (r.text->str, 6);
}

/* They are formatted when the element may have other cells. */
CHECK_TEST (test_rows_are_of_the_cells_of_their_frame)
{
  g_auto (GStrv) lines = NULL;
  GstElement *element;
  g_auto (Reading) r = {0};

  reading_begin (&r);
  hold (&r, TRUE);
  for (guint i = 0; i < 2; i++)
    fail_unless_equals_int (push_frame (&r, i), GST_FLOW_OK);
  element = gst_harness_find_element (r.h, "shcentroid");
  g_object_set (element, "columns", 10, NULL);
  gst_object_unref (element);
  fail_unless_equals_int (push_frame (&r, 2), GST_FLOW_OK);
  hold (&r, FALSE);
  gst_harness_push_event (r.h, gst_event_new_eos ());
  lines = g_strsplit (r.text->str, "\n", -1);
  for (guint i = 0; i < 2 * CELLS + CELLS / 2; i++) {
    guint frame = 0, cell = 0, row = 0, column = 0, k = i % CELLS;
    guint columns = i < 2 * CELLS ? 20 : 10;

    fail_unless_equals_int (
        sscanf (lines[1 + i], "%u,%*u,%u,%u,%u,", &frame, &cell, &row, &column),
        4);
    fail_unless (frame == i / CELLS && cell == k && row == k / columns &&
                     column == k % columns,
        "%s", lines[1 + i]);
  }
}

CHECK_LOOP_TEST (test_what_fails_at_the_reader_reaches_upstream, 2)
{
  static const GstFlowReturn flows[] = {GST_FLOW_ERROR, GST_FLOW_CUSTOM_ERROR};
  gint64 end = g_get_monotonic_time () + GST_TIME_AS_USECONDS (CHECK_TIMEOUT);
  GstFlowReturn flow = GST_FLOW_OK;
  g_auto (Reading) r = {0};

  reading_begin (&r);
  r.flow = flows[__i__];
  for (guint i = 0; flow == GST_FLOW_OK; i++) {
    flow = push_frame (&r, i);
    fail_unless (g_get_monotonic_time () < end);
    g_usleep (1000);
  }
  fail_unless_equals_int (flow, flows[__i__]);
}

/* What waits is gone, and rows begin anew. */
CHECK_TEST (test_a_flush_ends_the_wait)
{
  g_auto (Reading) r = {0};

  reading_begin (&r);
  hold (&r, TRUE);
  for (guint i = 0; i < 6; i++)
    push_frame (&r, i);
  wait_until_it_waits (&r);
  flush (&r);
  begin_segment (&r);
  g_string_truncate (r.text, 0);
  fail_unless_equals_int (push_frame (&r, 6), GST_FLOW_OK);
  gst_harness_push_event (r.h, gst_event_new_eos ());
  fail_unless (g_str_has_prefix (r.text->str, "6,"), "%.40s", r.text->str);
}

CHECK_TEST (test_a_header_that_a_flush_drops_is_sent_again)
{
  g_auto (Reading) r = {0};

  reading_begin (&r);
  r.drops = TRUE;
  hold (&r, TRUE);
  for (guint i = 0; i < 6; i++)
    push_frame (&r, i);
  wait_until_it_waits (&r);
  flush (&r);
  begin_segment (&r);
  fail_unless_equals_int (push_frame (&r, 6), GST_FLOW_OK);
  gst_harness_push_event (r.h, gst_event_new_eos ());
  fail_unless_equals_int (r.n_headers, 1);
  fail_unless (g_str_has_prefix (r.text->str, "frame,"), "%.40s", r.text->str);
}

/* As a seek from a probe or from the callback of an appsink: the thread that
 * pushes does not wait for the end of its own push. */
CHECK_TEST (test_the_reader_may_flush)
{
  gint64 end = g_get_monotonic_time () + GST_TIME_AS_USECONDS (CHECK_TIMEOUT);
  g_auto (Reading) r = {0};

  reading_begin (&r);
  r.may_flush = TRUE;
  for (guint i = 0; i < 2; i++) /* a header and two rows */
    push_frame (&r, i);
  g_mutex_lock (&r.lock);
  while (!r.has_flushed)
    fail_unless (g_cond_wait_until (&r.changed, &r.lock, end));
  g_mutex_unlock (&r.lock);
  begin_segment (&r);
  fail_unless_equals_int (push_frame (&r, 2), GST_FLOW_OK);
  gst_harness_push_event (r.h, gst_event_new_eos ());
  fail_unless (strstr (r.text->str, "\n2,") != NULL);
}

CHECK_TEST (test_a_pad_whose_reader_is_blocked_can_be_released)
{
  GstElement *element;
  g_auto (Reading) r = {0};

  reading_begin (&r);
  hold (&r, TRUE);
  for (guint i = 0; i < 4; i++)
    push_frame (&r, i);
  wait_until_it_waits (&r);
  element = gst_pad_get_parent_element (r.results);
  gst_element_release_request_pad (element, r.results);
  gst_object_unref (element);
  fail_unless_equals_int (push_frame (&r, 4), GST_FLOW_OK);
}

static GstPadProbeReturn
release_here (GstPad *pad, GstPadProbeInfo *info, gpointer done)
{
  GstElement *element = gst_pad_get_parent_element (pad);

  if (element) {
    gst_element_release_request_pad (element, pad);
    gst_object_unref (element);
  }
  g_atomic_int_set ((gint *) done, TRUE);
  return GST_PAD_PROBE_DROP;
}

/* As applications do that change a playing pipeline. */
CHECK_TEST (test_a_probe_may_release_the_pad)
{
  gint64 end = g_get_monotonic_time () + GST_TIME_AS_USECONDS (CHECK_TIMEOUT);
  gint done = FALSE;
  g_auto (Reading) r = {0};

  reading_begin (&r);
  gst_pad_add_probe (
      r.results, GST_PAD_PROBE_TYPE_BUFFER, release_here, &done, NULL);
  for (guint i = 0; i < 4; i++)
    push_frame (&r, i);
  while (!g_atomic_int_get (&done)) {
    fail_unless (g_get_monotonic_time () < end);
    g_usleep (1000);
  }
  fail_unless_equals_int (push_frame (&r, 4), GST_FLOW_OK);
}

CHECK_TEST (test_text_starts_and_stops_at_any_time)
{
  for (guint i = 0; i < 100; i++) {
    g_autoptr (CheckPipeline) pipeline = check_launch (
        "videotestsrc ! video/x-raw,format=GRAY8,width=80,height=80 ! " SPOTS
        " name=s ! queue ! fakesink s.results ! text/csv ! queue ! fakesink");

    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    if (i % 2)
      gst_element_get_state (pipeline, NULL, NULL, CHECK_TIMEOUT);
    g_usleep (i % 7 * 300);
    if (i % 3 == 0) {
      gst_element_set_state (pipeline, GST_STATE_READY);
      gst_element_set_state (pipeline, GST_STATE_PLAYING);
    }
  }
}
