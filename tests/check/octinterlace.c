/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element octinterlace: lines of cameras take turns, frames are put
 * together by their times, and what is missing is said. */
#include "check-common.h"

#include <string.h>

enum { WIDTH = 7, LINES = 3, MAX_CAMERAS = 4 };

#define PERIOD (10 * GST_MSECOND)

typedef struct {
  GstElement *element;
  GstHarness *src; /* has the src pad alone */
  GstHarness *cameras[MAX_CAMERAS];
  guint n;
  GstBus *bus;
} Run;

static void
set_caps (GstHarness *h, const gchar *format, guint width, guint lines)
{
  g_autofree gchar *caps = g_strdup_printf (
      "video/x-raw,format=%s,width=%u,height=%u,framerate=100/1", format, width,
      lines);

  gst_harness_set_src_caps_str (h, caps);
}

static void
check_caps (GstCaps *caps, const gchar *format, gint width, gint lines)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  gint w = 0, h = 0;

  fail_unless_equals_string (gst_structure_get_string (s, "format"), format);
  gst_structure_get_int (s, "width", &w);
  gst_structure_get_int (s, "height", &h);
  fail_unless_equals_int (w, width);
  fail_unless_equals_int (h, lines);
}

static Run
run_new (const gchar *launch, guint n)
{
  Run r = {.element = check_launch (launch), .n = n};

  r.bus = check_watch (r.element);
  r.src = gst_harness_new_with_element (r.element, NULL, "src");
  /* in another order than that of their numbers */
  for (guint i = n; i > 0; i--) {
    g_autofree gchar *name = g_strdup_printf ("sink_%u", i - 1);

    r.cameras[i - 1] = gst_harness_new_with_element (r.element, name, NULL);
  }
  gst_harness_play (r.src);
  for (guint i = 0; i < n; i++) {
    gst_harness_play (r.cameras[i]);
    set_caps (r.cameras[i], "GRAY16_LE", WIDTH, LINES);
  }
  return r;
}

static void
run_free (Run *r)
{
  for (guint i = 0; i < r->n; i++)
    gst_harness_teardown (r->cameras[i]);
  check_take_down (r->element, r->bus, &r->src, 1);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Run, run_free)

static guint16
sample_at (guint camera, guint frame, guint line, guint x)
{
  return (guint16) (10000 * camera + 1000 * (frame + 1) + 100 * line + x);
}

/* Strides of video are multiples of 4. */
static GstBuffer *
frame_new (guint camera, guint i)
{
  const gsize stride = GST_ROUND_UP_4 (WIDTH * 2);
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, stride * LINES, NULL);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_WRITE);

  for (guint y = 0; y < LINES; y++)
    for (guint x = 0; x < WIDTH; x++)
      ((guint16 *) (map.data + y * stride))[x] = sample_at (camera, i, y, x);
  GST_BUFFER_PTS (buffer) = i * PERIOD;
  GST_BUFFER_DURATION (buffer) = PERIOD;
  return buffer;
}

static void
push (Run *r, guint camera, guint i)
{
  check_push (r->cameras[camera], frame_new (camera, i), GST_FLOW_OK);
}

/* Frame @i, of each camera its frame frames[camera], G_MAXUINT for black.
 * Returns: (transfer full) */
static GstBuffer *
pull_frame (Run *r, guint i, const guint *frames)
{
  const gsize stride = GST_ROUND_UP_4 (WIDTH * 2);
  GstBuffer *out = check_pull (r->src);
  GstMapInfo map;

  gst_buffer_map (out, &map, GST_MAP_READ);
  fail_unless_equals_uint64 (map.size, stride * LINES * r->n);
  for (guint y = 0; y < LINES * r->n; y++)
    for (guint x = 0; x < WIDTH; x++) {
      guint camera = y % r->n, frame = frames ? frames[camera] : i;
      guint expected =
          frame == G_MAXUINT ? 0 : sample_at (camera, frame, y / r->n, x);
      guint found = ((const guint16 *) (map.data + y * stride))[x];

      if (found != expected)
        fail ("frame %u, line %u, sample %u is %u, expected %u", i, y, x, found,
            expected);
    }
  gst_buffer_unmap (out, &map);
  fail_unless_equals_uint64 (GST_BUFFER_PTS (out), i * PERIOD);
  fail_unless_equals_uint64 (GST_BUFFER_DURATION (out), PERIOD);
  return out;
}

static void
check_frame (Run *r, guint i, const guint *frames)
{
  gst_buffer_unref (pull_frame (r, i, frames));
}

/* The same with these of the flags GAP, CORRUPTED and DISCONT. */
static void
check_flags (Run *r, guint i, const guint *frames, guint flags)
{
  g_autoptr (GstBuffer) out = pull_frame (r, i, frames);

  fail_unless_equals_int (GST_BUFFER_FLAGS (out) &
                              (GST_BUFFER_FLAG_GAP | GST_BUFFER_FLAG_CORRUPTED |
                                  GST_BUFFER_FLAG_DISCONT),
      flags);
}

static void
end (Run *r)
{
  for (guint i = 0; i < r->n; i++)
    gst_harness_push_event (r->cameras[i], gst_event_new_eos ());
}

/* Waits for the end of the stream. */
static void
check_end (Run *r)
{
  GstEvent *event;
  gboolean ended = FALSE;

  while (!ended && (event = gst_harness_pull_event (r->src))) {
    ended = GST_EVENT_TYPE (event) == GST_EVENT_EOS;
    gst_event_unref (event);
  }
  fail_unless (ended);
  fail_unless (gst_harness_try_pull (r->src) == NULL);
}

CHECK_TEST (test_lines_take_turns)
{
  for (guint n = 1; n <= MAX_CAMERAS; n++) {
    g_auto (Run) r = run_new ("octinterlace", n);
    GstCaps *caps, *wanted;
    gchar *text;

    for (guint i = 0; i < 3; i++) {
      for (guint camera = 0; camera < n; camera++)
        push (&r, camera, i);
      check_frame (&r, i, NULL);
    }
    caps = gst_pad_get_current_caps (r.src->sinkpad);
    text = g_strdup_printf ("video/x-raw,format=GRAY16_LE,width=%d,height=%u,"
                            "framerate=100/1",
        WIDTH, LINES * n);
    wanted = gst_caps_from_string (text);
    fail_unless (gst_caps_is_subset (caps, wanted), "%" GST_PTR_FORMAT, caps);
    gst_caps_unref (caps);
    gst_caps_unref (wanted);
    g_free (text);
    end (&r);
    check_end (&r);
    fail_unless_equals_uint64 (check_stat (r.element, "frames"), 3);
    fail_unless_equals_uint64 (check_stat (r.element, "incomplete"), 0);
  }
}

/* Half a frame is near enough, more is not. */
CHECK_TEST (test_times_may_differ_a_little)
{
  g_auto (Run) r = run_new ("octinterlace", 2);
  GstBuffer *late = frame_new (1, 0);

  GST_BUFFER_PTS (late) += PERIOD / 2;
  push (&r, 0, 0);
  check_push (r.cameras[1], late, GST_FLOW_OK);
  check_frame (&r, 0, NULL);
  end (&r);
  check_end (&r);
}

/* The second camera has no frame 1. The cameras take turns: this thread feeds
 * both, and a second frame waits until the first is taken. */
static void
push_with_a_hole (Run *r)
{
  static const guint second[] = {0, 2, 3};

  for (guint i = 0; i < 4; i++) {
    push (r, 0, i);
    if (i < G_N_ELEMENTS (second))
      push (r, 1, second[i]);
  }
  end (r);
}

static void
check_lag (Run *r, guint camera, gboolean lags)
{
  g_autoptr (GstMessage) message = check_message (r->bus, GST_MESSAGE_ELEMENT);
  const GstStructure *s = gst_message_get_structure (message);
  gboolean found = !lags;
  guint which = G_MAXUINT;

  fail_unless (gst_structure_has_name (s, "octinterlace-lag"));
  gst_structure_get (
      s, "camera", G_TYPE_UINT, &which, "lags", G_TYPE_BOOLEAN, &found, NULL);
  fail_unless_equals_int (which, camera);
  fail_unless_equals_int (found, lags);
}

CHECK_TEST (test_incomplete_bscans_are_left_out)
{
  g_auto (Run) r = run_new ("octinterlace", 2);

  push_with_a_hole (&r);
  check_frame (&r, 0, NULL);
  check_frame (&r, 2, NULL);
  check_frame (&r, 3, NULL);
  check_end (&r);
  check_lag (&r, 1, TRUE);
  check_warning (r.bus, STREAM, FAILED, "Camera 1 lags");
  check_lag (&r, 1, FALSE);
  fail_unless_equals_uint64 (check_stat (r.element, "incomplete"), 1);
  fail_unless_equals_uint64 (check_stat (r.element, "missing-1"), 1);
  fail_unless_equals_uint64 (check_stat (r.element, "missing-0"), 0);
}

/* What stands behind a segment or a gap says so, or lines of both sides would
 * become one B-scan. */
CHECK_TEST (test_gaps_are_marked)
{
  static const gboolean marked[] = {TRUE, TRUE, FALSE};
  g_auto (Run) r = run_new ("octinterlace", 2);

  push_with_a_hole (&r);
  for (guint i = 0; i < 3; i++) {
    g_autoptr (GstBuffer) out = check_pull (r.src);

    fail_unless_equals_int (GST_BUFFER_IS_DISCONT (out), marked[i]);
  }
  check_end (&r);
}

/* The others go on, with fewer lines. */
CHECK_TEST (test_a_camera_leaves)
{
  g_auto (Run) r = run_new ("octinterlace", 2);
  g_autoptr (GstPad) pad = gst_element_get_static_pad (r.element, "sink_1");
  g_autoptr (GstBuffer) out = NULL;

  push (&r, 0, 0);
  push (&r, 1, 0);
  check_frame (&r, 0, NULL);
  gst_element_release_request_pad (r.element, pad);
  push (&r, 0, 1);
  out = check_pull (r.src);
  fail_unless_equals_uint64 (
      gst_buffer_get_size (out), GST_ROUND_UP_4 (WIDTH * 2) * LINES);
}

CHECK_TEST (test_missing_frames_are_replaced)
{
  static const guint repeated[] = {1, 0}, black[] = {1, G_MAXUINT};

  for (guint i = 0; i < 2; i++) {
    g_auto (Run) r = run_new (
        i ? "octinterlace missing=black" : "octinterlace missing=repeat", 2);

    push_with_a_hole (&r);
    check_frame (&r, 0, NULL);
    check_frame (&r, 1, i ? black : repeated);
    check_frame (&r, 2, NULL);
    check_frame (&r, 3, NULL);
    check_end (&r);
  }
}

/* GStreamer says with a gap what a camera does not send: it is missing, also
 * where one gap is as long as two frames, and where all cameras have one. */
CHECK_LOOP_TEST (test_a_gap_is_a_missing_frame, 3)
{
  static const gchar *const modes[] = {"drop", "repeat", "black"};
  static const guint one_repeated[] = {1, 0}, two_repeated[] = {2, 0};
  static const guint one_black[] = {1, G_MAXUINT}, two_black[] = {2, G_MAXUINT};
  g_autofree gchar *line =
      g_strdup_printf ("octinterlace missing=%s", modes[__i__]);
  g_auto (Run) r = run_new (line, 2);
  GstMessage *message;

  push (&r, 0, 0);
  push (&r, 1, 0);
  push (&r, 0, 1);
  gst_harness_push_event (r.cameras[1], gst_event_new_gap (PERIOD, 2 * PERIOD));
  push (&r, 0, 2);
  for (guint i = 0; i < 2; i++)
    gst_harness_push_event (
        r.cameras[i], gst_event_new_gap (3 * PERIOD, PERIOD));
  push (&r, 0, 4);
  push (&r, 1, 4);
  end (&r);
  check_frame (&r, 0, NULL);
  if (__i__ > 0) {
    check_frame (&r, 1, __i__ == 1 ? one_repeated : one_black);
    check_frame (&r, 2, __i__ == 1 ? two_repeated : two_black);
  }
  check_frame (&r, 4, NULL);
  check_end (&r);
  fail_unless_equals_uint64 (check_stat (r.element, "incomplete"), 2);
  fail_unless_equals_uint64 (check_stat (r.element, "missing-1"), 2);
  message = gst_bus_pop_filtered (r.bus, GST_MESSAGE_ERROR);
  fail_unless (message == NULL);
}

/* A camera that ends early is missing from then on. */
CHECK_TEST (test_a_camera_that_ends_is_missing)
{
  static const guint black[] = {1, G_MAXUINT};
  g_auto (Run) r = run_new ("octinterlace missing=black", 2);

  push (&r, 0, 0);
  push (&r, 1, 0);
  check_frame (&r, 0, NULL);
  gst_harness_push_event (r.cameras[1], gst_event_new_eos ());
  push (&r, 0, 1);
  check_frame (&r, 1, black);
  gst_harness_push_event (r.cameras[0], gst_event_new_eos ());
  check_end (&r);
}

CHECK_TEST (test_frames_without_times_go_in_order)
{
  g_auto (Run) r = run_new ("octinterlace", 2);

  for (guint i = 0; i < 2; i++)
    for (guint camera = 0; camera < 2; camera++) {
      GstBuffer *frame = frame_new (camera, i);

      GST_BUFFER_PTS (frame) = GST_CLOCK_TIME_NONE;
      check_push (r.cameras[camera], frame, GST_FLOW_OK);
    }
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GstBuffer) out = check_pull (r.src);
    guint16 sample;

    gst_buffer_extract (out, 0, &sample, 2);
    fail_unless_equals_int (sample, sample_at (0, i, 0, 0));
    fail_unless (!GST_BUFFER_PTS_IS_VALID (out));
  }
  end (&r);
  check_end (&r);
}

/* Frames of any size, all of whose bytes are @value. */
static GstBuffer *
plain_frame (gsize size, guint i, guint8 value)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, size, NULL);

  gst_buffer_memset (buffer, 0, value, size);
  GST_BUFFER_PTS (buffer) = i * PERIOD;
  GST_BUFFER_DURATION (buffer) = PERIOD;
  return buffer;
}

/* Frame @i of a camera; the clock of camera 1 is wrong by more than a frame. */
static void
push_counted (Run *r, guint camera, guint i, guint64 offset)
{
  GstBuffer *frame = frame_new (camera, i);

  if (camera == 1)
    GST_BUFFER_PTS (frame) += 3 * PERIOD / 2;
  GST_BUFFER_OFFSET (frame) = offset;
  check_push (r->cameras[camera], frame, GST_FLOW_OK);
}

/* Offsets say what belongs together, whatever the clocks say, and what no
 * camera has: frame 3. Camera 1 has no frame 1 and counts from 5. */
CHECK_LOOP_TEST (test_offsets_in_place_of_times, 3)
{
  static const gchar *const modes[] = {"drop", "repeat", "black"};
  static const guint repeated[] = {1, 0}, black[] = {1, G_MAXUINT};
  static const guint all_repeated[] = {2, 2},
                     all_black[] = {G_MAXUINT, G_MAXUINT};
  g_autofree gchar *line = g_strdup_printf (
      "octinterlace match=offset counter-offsets=<0,5> missing=%s",
      modes[__i__]);
  g_auto (Run) r = run_new (line, 2);

  for (guint i = 0; i < 5; i++) {
    if (i != 3)
      push_counted (&r, 0, i, i);
    if (i != 1 && i != 3)
      push_counted (&r, 1, i, i + 5);
  }
  end (&r);
  check_flags (&r, 0, NULL, GST_BUFFER_FLAG_DISCONT);
  if (__i__ > 0)
    check_flags (
        &r, 1, __i__ == 1 ? repeated : black, GST_BUFFER_FLAG_CORRUPTED);
  check_flags (&r, 2, NULL, __i__ == 0 ? GST_BUFFER_FLAG_DISCONT : 0);
  if (__i__ > 0)
    check_flags (
        &r, 3, __i__ == 1 ? all_repeated : all_black, GST_BUFFER_FLAG_GAP);
  check_flags (&r, 4, NULL, __i__ == 0 ? GST_BUFFER_FLAG_DISCONT : 0);
  check_end (&r);
  fail_unless_equals_uint64 (check_stat (r.element, "incomplete"), 2);
  fail_unless_equals_uint64 (check_stat (r.element, "missing-0"), 1);
  fail_unless_equals_uint64 (check_stat (r.element, "missing-1"), 2);
}

/* More than can be filled is an interruption. */
CHECK_TEST (test_a_jump_of_the_counter_is_not_filled)
{
  g_auto (Run) r = run_new ("octinterlace match=offset missing=black", 2);

  for (guint i = 0; i < 2; i++)
    for (guint camera = 0; camera < 2; camera++)
      push_counted (&r, camera, i, i * G_GUINT64_CONSTANT (1000000000000));
  end (&r);
  check_flags (&r, 0, NULL, GST_BUFFER_FLAG_DISCONT);
  check_flags (&r, 1, NULL, GST_BUFFER_FLAG_DISCONT);
  check_end (&r);
  fail_unless_equals_uint64 (check_stat (r.element, "missing-1"), 999999999999);
}

/* A counter of 2 + 2 bits in two samples, which begins again at 0. It counts
 * LINES for each frame, and frame 4 is missing. */
CHECK_TEST (test_a_counter_in_the_line)
{
  g_auto (Run) r =
      run_new ("octinterlace match=line counter-sample=3 counter-samples=2 "
               "counter-bits=2 missing=black",
          2);
  guint first = 7; /* 7, 10, 13, 0, 3, 6, 9 */

  for (guint i = 0; i < 7; i++)
    for (guint camera = 0; camera < 2; camera++) {
      GstBuffer *frame = frame_new (camera, i);
      guint counter = (first + i * LINES) % 16;
      /* other bits are not of the counter */
      guint16 samples[] = {
          (guint16) (sample_at (camera, i, 0, 3) & ~3u) | (counter & 3),
          (guint16) (sample_at (camera, i, 0, 4) & ~3u) | counter >> 2};

      if (camera == 1)
        GST_BUFFER_PTS (frame) += 3 * PERIOD / 2;
      gst_buffer_fill (frame, 3 * 2, samples, sizeof (samples));
      if (i != 4 && (i != 2 || camera == 0))
        check_push (r.cameras[camera], frame, GST_FLOW_OK);
      else
        gst_buffer_unref (frame);
    }
  end (&r);
  for (guint i = 0; i < 7; i++) {
    static const guint expected[] = {GST_BUFFER_FLAG_DISCONT, 0,
        GST_BUFFER_FLAG_CORRUPTED, 0, GST_BUFFER_FLAG_GAP, 0, 0};
    g_autoptr (GstBuffer) out = check_pull (r.src);
    guint16 sample;

    fail_unless_equals_int (
        GST_BUFFER_FLAGS (out) &
            (GST_BUFFER_FLAG_GAP | GST_BUFFER_FLAG_CORRUPTED |
                GST_BUFFER_FLAG_DISCONT),
        expected[i]);
    fail_unless_equals_uint64 (GST_BUFFER_PTS (out), i * PERIOD);
    for (guint camera = 0; camera < 2; camera++) {
      gboolean is_black = i == 4 || (i == 2 && camera == 1);

      gst_buffer_extract (out, camera * GST_ROUND_UP_4 (WIDTH * 2), &sample, 2);
      fail_unless_equals_int (
          sample, is_black ? 0 : sample_at (camera, i, 0, 0));
    }
  }
  check_end (&r);
}

/* Without a counter frames go in their order, with a warning. */
CHECK_LOOP_TEST (test_no_counter_is_said, 2)
{
  g_auto (Run) r = run_new (__i__ ? "octinterlace match=line counter-sample=7"
                                  : "octinterlace match=offset",
      2);

  for (guint i = 0; i < 2; i++)
    for (guint camera = 0; camera < 2; camera++)
      push_counted (&r, camera, i, GST_BUFFER_OFFSET_NONE);
  end (&r);
  check_frame (&r, 0, NULL);
  check_frame (&r, 1, NULL);
  check_end (&r);
  for (guint camera = 0; camera < 2; camera++) {
    g_autofree gchar *words =
        g_strdup_printf ("Frames of camera %u have no counter", camera);

    check_warning (r.bus, STREAM, DECODE, words);
  }
}

/* A frame that is filled already, or damaged, says so. */
CHECK_TEST (test_flags_of_the_frames)
{
  static const guint flags[][3] = {{0, 0, 0},
      {GST_BUFFER_FLAG_GAP, 0, GST_BUFFER_FLAG_CORRUPTED},
      {0, GST_BUFFER_FLAG_CORRUPTED, GST_BUFFER_FLAG_CORRUPTED},
      {GST_BUFFER_FLAG_GAP, GST_BUFFER_FLAG_GAP, GST_BUFFER_FLAG_GAP}};
  g_auto (Run) r = run_new ("octinterlace", 2);

  for (guint i = 0; i < G_N_ELEMENTS (flags); i++) {
    for (guint camera = 0; camera < 2; camera++) {
      GstBuffer *frame = frame_new (camera, i);

      GST_BUFFER_FLAG_SET (frame, flags[i][camera]);
      check_push (r.cameras[camera], frame, GST_FLOW_OK);
    }
    check_flags (
        &r, i, NULL, flags[i][2] | (i == 0 ? GST_BUFFER_FLAG_DISCONT : 0));
  }
}

/* --- tensors -------------------------------------------------------------- */

CHECK_LOOP_TEST (test_tensors_take_turns, 4)
{
  static const struct {
    const gchar *type;
    gsize size;
  } types[] = {{"float32", 4}, {"int16", 2}, {"uint16", 2}, {"uint8", 1}};
  const gsize size = types[__i__].size, line = WIDTH * size;
  g_autofree gchar *text = g_strdup_printf (
      "other/tensors,format=static,num_tensors=1,types=%s,dimensions=%d:%d:1:1,"
      "framerate=100/1",
      types[__i__].type, WIDTH, LINES);
  g_autofree gchar *expected = g_strdup_printf (
      "other/tensors,format=static,num_tensors=1,types=%s,dimensions=%d:%d:1:1,"
      "framerate=100/1",
      types[__i__].type, WIDTH, 2 * LINES);
  g_auto (Run) r = run_new ("octinterlace missing=black", 2);
  g_autoptr (GstCaps) wanted = gst_caps_from_string (expected);
  g_autoptr (GstCaps) caps = NULL;

  for (guint camera = 0; camera < 2; camera++)
    gst_harness_set_src_caps_str (r.cameras[camera], text);
  for (guint i = 0; i < 2; i++) {
    guint8 *frames[2];
    GstBuffer *out;
    GstMapInfo map;

    for (guint camera = 0; camera < 2; camera++) {
      GstBuffer *frame;

      frames[camera] = g_malloc (line * LINES);
      for (guint k = 0; k < line * LINES; k++)
        frames[camera][k] = (guint8) (1 + 3 * k + 100 * camera + i);
      frame = gst_buffer_new_memdup (frames[camera], line * LINES);
      GST_BUFFER_PTS (frame) = i * PERIOD;
      GST_BUFFER_DURATION (frame) = PERIOD;
      if (i == 0 || camera == 0)
        check_push (r.cameras[camera], frame, GST_FLOW_OK);
      else
        gst_buffer_unref (frame);
    }
    if (i == 1)
      end (&r);
    out = check_pull (r.src);
    fail_unless_equals_int (
        GST_BUFFER_FLAG_IS_SET (out, GST_BUFFER_FLAG_CORRUPTED), i == 1);
    gst_buffer_map (out, &map, GST_MAP_READ);
    fail_unless_equals_uint64 (map.size, 2 * LINES * line);
    for (guint y = 0; y < 2 * LINES; y++)
      if (i == 0 || y % 2 == 0)
        fail_unless (memcmp (map.data + y * line, frames[y % 2] + y / 2 * line,
                         line) == 0);
      else
        for (guint k = 0; k < line; k++)
          fail_unless_equals_int (map.data[y * line + k], 0);
    gst_buffer_unmap (out, &map);
    gst_buffer_unref (out);
    for (guint camera = 0; camera < 2; camera++)
      g_free (frames[camera]);
  }
  caps = gst_pad_get_current_caps (r.src->sinkpad);
  fail_unless (gst_caps_is_equal (caps, wanted), "%" GST_PTR_FORMAT, caps);
}

CHECK_TEST (test_cameras_must_be_alike)
{
  /* whichever camera is told of */
  static const gchar *const words[] = {
      "of 8",
      "4",
      "GRAY8",
  };

  for (guint i = 0; i < 3; i++) {
    g_auto (Run) r = run_new ("octinterlace", 2);

    set_caps (r.cameras[1], i == 2 ? "GRAY8" : "GRAY16_LE",
        i == 0 ? WIDTH + 1 : WIDTH, i == 1 ? LINES + 1 : LINES);
    push (&r, 0, 0);
    gst_harness_push (r.cameras[1], plain_frame (i == 2   ? 8 * 3
                                                 : i == 1 ? 64
                                                          : 48,
                                        0, 1));
    check_error (r.bus, STREAM, FORMAT, words[i]);
  }
}

/* Each camera changes when it comes to it; with one that has nothing yet in the
 * new format the B-scan is left out, or has black lines. */
CHECK_TEST (test_the_format_changes_while_playing)
{
  static const guint8 lines[] = {3, 4, 3, 4, 3, 4, 3, 4, 3, 4};
  g_auto (Run) r = run_new ("octinterlace missing=repeat", 2);
  GstBuffer *out;
  g_autoptr (GstCaps) caps = NULL;
  GstMapInfo map;

  push (&r, 0, 0);
  push (&r, 1, 0);
  check_frame (&r, 0, NULL);
  push (&r, 0, 1);
  set_caps (r.cameras[0], "GRAY8", 8, 5);
  push (&r, 1, 1);
  check_frame (&r, 1, NULL);
  check_push (r.cameras[0], plain_frame (40, 2, 3), GST_FLOW_OK);
  set_caps (r.cameras[1], "GRAY8", 8, 5);
  /* it has none at 2 */
  check_push (r.cameras[1], plain_frame (40, 3, 4), GST_FLOW_OK);
  check_push (r.cameras[0], plain_frame (40, 3, 3), GST_FLOW_OK);
  for (guint i = 2; i < 4; i++) {
    out = check_pull (r.src);
    gst_buffer_map (out, &map, GST_MAP_READ);
    fail_unless_equals_uint64 (map.size, 80);
    for (guint y = 0; y < 10; y++)
      fail_unless_equals_int (
          map.data[8 * y], i == 2 && y % 2 == 1 ? 0 : lines[y]);
    gst_buffer_unmap (out, &map);
    fail_unless_equals_uint64 (GST_BUFFER_PTS (out), i * PERIOD);
    gst_buffer_unref (out);
  }
  caps = gst_pad_get_current_caps (r.src->sinkpad);
  check_caps (caps, "GRAY8", 8, 10);
  end (&r);
}

static GstSegment
get_segment (GstHarness *h)
{
  g_autoptr (GstEvent) event =
      gst_pad_get_sticky_event (h->sinkpad, GST_EVENT_SEGMENT, 0);
  GstSegment segment;

  fail_unless (event != NULL);
  gst_event_copy_segment (event, &segment);
  return segment;
}

/* What a seek has put before the segment is not shown. The segment is that of
 * the cameras, so the position and the running time are. */
CHECK_TEST (test_frames_before_the_segment_are_left_out)
{
  g_auto (Run) r = run_new ("octinterlace", 2);
  GstSegment segment, received;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.start = segment.time = segment.position = 3 * PERIOD + PERIOD / 2;
  for (guint camera = 0; camera < 2; camera++)
    gst_harness_push_event (
        r.cameras[camera], gst_event_new_segment (&segment));
  for (guint i = 0; i < 5; i++)
    for (guint camera = 0; camera < 2; camera++)
      push (&r, camera, i);
  end (&r);
  for (guint i = 3; i < 5; i++) {
    g_autoptr (GstBuffer) out = check_pull (r.src);
    guint16 sample;

    gst_buffer_extract (out, 0, &sample, 2);
    fail_unless_equals_int (sample, sample_at (0, i, 0, 0));
    received = get_segment (r.src);
    received.position = segment.position; /* of the element that pushes */
    fail_unless (gst_segment_is_equal (&received, &segment));
    fail_unless_equals_uint64 (
        GST_BUFFER_PTS (out), i == 3 ? segment.start : i * PERIOD);
    fail_unless_equals_uint64 (gst_segment_to_running_time (&received,
                                   GST_FORMAT_TIME, GST_BUFFER_PTS (out)),
        i == 3 ? 0 : PERIOD / 2);
    fail_unless_equals_uint64 (
        GST_BUFFER_DURATION (out), i == 3 ? PERIOD / 2 : PERIOD);
  }
  check_end (&r);
}

/* After a flush nothing of before is left. */
CHECK_TEST (test_flush_forgets_frames)
{
  static const guint black[] = {G_MAXUINT, 3};
  g_auto (Run) r = run_new ("octinterlace missing=repeat", 2);
  GstSegment segment;

  push (&r, 0, 0);
  push (&r, 1, 0);
  check_frame (&r, 0, NULL);
  push (&r, 0, 1);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  for (guint i = 0; i < 2; i++) {
    gst_harness_push_event (r.cameras[i], gst_event_new_flush_start ());
  }
  for (guint i = 0; i < 2; i++) {
    gst_harness_push_event (r.cameras[i], gst_event_new_flush_stop (TRUE));
    gst_harness_push_event (r.cameras[i], gst_event_new_segment (&segment));
  }
  push (&r, 1, 3);
  gst_harness_push_event (r.cameras[0], gst_event_new_eos ());
  check_frame (&r, 3, black);
}

static void
push_live (GstElement *source)
{
  GstFlowReturn flow;
  g_autoptr (GstBuffer) frame = frame_new (0, 0);

  GST_BUFFER_PTS (frame) = GST_CLOCK_TIME_NONE;
  g_signal_emit_by_name (source, "push-buffer", frame, &flow);
  fail_unless_equals_int (flow, GST_FLOW_OK);
}

/* When it is live, the others do not wait for a camera for ever. The times are
 * those of a machine that may be busy. */
CHECK_TEST (test_a_live_camera_that_stops_is_missed)
{
  const gchar *const source =
      "appsrc is-live=true format=time do-timestamp=true min-latency=0 "
      "caps=video/x-raw,format=GRAY16_LE,width=7,height=3,framerate=100/1";
  g_autofree gchar *launch = g_strdup_printf (
      "octinterlace name=i latency=20000000 tolerance=500000000 ! "
      "fakesink sync=false "
      "%s name=a ! i.sink_0 %s name=b ! i.sink_1",
      source, source);
  g_autoptr (CheckPipeline) pipeline = gst_parse_launch (launch, NULL);
  g_autoptr (GstElement) a = gst_bin_get_by_name (GST_BIN (pipeline), "a");
  g_autoptr (GstElement) b = gst_bin_get_by_name (GST_BIN (pipeline), "b");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  GstMessage *message;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  push_live (a);
  push_live (b);
  push_live (a);
  message = gst_bus_timed_pop_filtered (
      bus, 10 * GST_SECOND, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
  check_message_says (message, CHECK_CODE (STREAM, FAILED), "Camera 1 lags");
}

static gpointer
flush_main (gpointer data)
{
  gst_harness_push_event (data, gst_event_new_flush_start ());
  gst_harness_push_event (data, gst_event_new_flush_stop (TRUE));
  return NULL;
}

/* When a camera begins to lag. */
static GstBusSyncReply
flush_at_lag (GstBus *bus, GstMessage *message, gpointer data)
{
  Run *r = data;

  if (gst_message_has_name (message, "octinterlace-lag") &&
      GST_MESSAGE_TYPE (message) == GST_MESSAGE_ELEMENT)
    g_thread_join (g_thread_new ("flush", flush_main, r->cameras[1]));
  return GST_BUS_PASS;
}

/* One camera is flushed while its frame is put together with those of others:
 * that is finished. */
CHECK_TEST (test_flush_of_a_camera_while_lines_are_copied)
{
  static const guint frames[] = {0, 0, G_MAXUINT};
  g_auto (Run) r = run_new ("octinterlace missing=black", 3);

  gst_bus_set_sync_handler (r.bus, flush_at_lag, &r, NULL);
  push (&r, 0, 0);
  push (&r, 1, 0);
  gst_harness_push_event (r.cameras[2], gst_event_new_eos ());
  check_frame (&r, 0, frames);
  gst_bus_set_sync_handler (r.bus, NULL, NULL, NULL);
}

/* Frames of 4 GiB and more cannot be taken, nor a B-scan of so much be made. */
CHECK_LOOP_TEST (test_sizes_that_are_too_large_are_said, 3)
{
  g_auto (Run) r = run_new ("octinterlace", 2);

  for (gint i = 0; i < 2; i++) {
    set_caps (r.cameras[i], "GRAY16_LE", 65535, i == __i__ ? 65535 : 30000);
    gst_harness_push (r.cameras[i], plain_frame (48, 0, 1));
  }
  check_error (r.bus, STREAM, FORMAT, "4 GiB");
}

/* A source may push a frame although its caps were refused. */
CHECK_TEST (test_a_frame_with_refused_caps_is_an_error)
{
  g_auto (Run) r = run_new ("octinterlace", 2);

  set_caps (r.cameras[1], "GRAY16_LE", 65535, 65535);
  gst_harness_push (r.cameras[0], frame_new (0, 0));
  gst_harness_push (r.cameras[1], frame_new (1, 0));
  check_error (r.bus, STREAM, FORMAT, "Frames of camera 1 have");
  check_error (r.bus, STREAM, FORMAT, "no known format");
}

static gpointer
flush_all (gpointer data)
{
  Run *r = data;
  guint32 seqnum = gst_util_seqnum_next ();

  for (guint i = 0; i < r->n; i++) {
    GstEvent *event = gst_event_new_flush_start ();

    gst_event_set_seqnum (event, seqnum);
    gst_harness_push_event (r->cameras[i], event);
  }
  return NULL;
}

typedef struct {
  Run *run;
  GThread *thread; /* atomic, as is_flushing */
  gint is_flushing;
} FlushAtStart;

/* The stream that begins is flushed before it has a segment. */
static GstPadProbeReturn
flush_at_start (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstEventType type = GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info));
  FlushAtStart *f = data;

  if (type == GST_EVENT_FLUSH_START) {
    g_atomic_int_set (&f->is_flushing, TRUE);
  } else if (type == GST_EVENT_STREAM_START) {
    g_atomic_pointer_set (
        &f->thread, g_thread_new ("flush", flush_all, f->run));
    for (guint i = 0; i < 5000 && !g_atomic_int_get (&f->is_flushing); i++)
      g_usleep (1000);
  }
  return GST_PAD_PROBE_OK;
}

/* A stream without a frame ends while it is flushed: no critical. */
CHECK_TEST (test_a_flush_while_an_empty_stream_ends)
{
  g_auto (Run)
      r = {.element = gst_element_factory_make ("octinterlace", NULL), .n = 2};
  FlushAtStart f = {.run = &r};

  r.bus = gst_bus_new ();
  r.src = gst_harness_new_with_element (r.element, NULL, "src");
  r.cameras[0] = gst_harness_new_with_element (r.element, "sink_0", NULL);
  r.cameras[1] = gst_harness_new_with_element (r.element, "sink_1", NULL);
  gst_pad_add_probe (r.src->sinkpad,
      GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH,
      flush_at_start, &f, NULL);
  gst_harness_play (r.src);
  for (guint i = 0; i < 2; i++) {
    gst_harness_play (r.cameras[i]);
    gst_harness_push_event (r.cameras[i], gst_event_new_stream_start ("empty"));
    gst_harness_push_event (r.cameras[i], gst_event_new_eos ());
  }
  for (guint i = 0; i < 5000 && !(g_atomic_int_get (&f.is_flushing) &&
                                    g_atomic_pointer_get (&f.thread));
       i++)
    g_usleep (1000);
  fail_unless (g_atomic_int_get (&f.is_flushing));
  g_thread_join (g_atomic_pointer_get (&f.thread));
}

/* A camera that cannot seek has no flush for GstAggregator, which would wait
 * for it for ever. */
CHECK_TEST (test_a_seek_that_a_camera_cannot_do_is_refused)
{
  g_autoptr (CheckPipeline) pipeline = gst_parse_launch (
      "videotestsrc is-live=true ! video/x-raw,format=GRAY8,width=64,height=8,"
      "framerate=100/1 ! i.sink_0 "
      "appsrc name=a is-live=true format=time do-timestamp=true "
      "caps=video/x-raw,format=GRAY8,width=64,height=8,framerate=100/1 ! "
      "i.sink_1 octinterlace name=i missing=black ! appsink name=s sync=false",
      NULL);
  g_autoptr (GstElement) source = gst_bin_get_by_name (GST_BIN (pipeline), "a");
  g_autoptr (GstElement) sink = gst_bin_get_by_name (GST_BIN (pipeline), "s");

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < 4; i++) {
    GstBuffer *frame = plain_frame (64 * 8, 0, 1);
    GstSample *sample = NULL;
    GstFlowReturn flow;

    GST_BUFFER_PTS (frame) = GST_CLOCK_TIME_NONE;
    g_signal_emit_by_name (source, "push-buffer", frame, &flow);
    gst_buffer_unref (frame);
    g_signal_emit_by_name (
        sink, "try-pull-sample", (guint64) CHECK_TIMEOUT, &sample);
    fail_unless (sample != NULL, "no frame %u", i);
    gst_sample_unref (sample);
    if (i == 1)
      fail_if (gst_element_seek_simple (
          pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, 0));
  }
}

/* Frames may be of a pool that wants them back. */
CHECK_TEST (test_nothing_is_kept_after_a_stop)
{
  g_auto (Run) r = run_new ("octinterlace", 2);
  g_autoptr (GstBuffer) frame = gst_buffer_ref (frame_new (0, 0));

  check_push (r.cameras[0], frame, GST_FLOW_OK);
  push (&r, 1, 0);
  check_frame (&r, 0, NULL);
  gst_element_set_state (r.element, GST_STATE_READY);
  fail_unless_equals_int (GST_MINI_OBJECT_REFCOUNT_VALUE (frame), 1);
}
