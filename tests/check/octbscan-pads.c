/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element octbscan over many B-scans: means, tracking, backgrounds that
 * remember, the pads linear, complex and enface in every combination. What
 * comes out is what its kernel gives. */
#include "check-common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gstimagingnpy.h"
#include "octbscan/octbscan.h"

enum { WIDTH = 60, HEIGHT = 11, DEPTHS = 30, MAX_BSCANS = 12, VOLUME = 2 };
enum { SRC, LINEAR, COMPLEX, ENFACE, N_PADS };

static const gchar *const pad_names[] = {"src", "linear", "complex", "enface"};

/* Each test runs with either backend, __i__ says which. */
static gboolean on_cuda;

/* --- what is expected ----------------------------------------------------- */

/* What a stream of B-scans gives; of those without images NULL. */
typedef struct {
  guint n, n_ascans, n_images, n_volumes;
  guint8 *db[MAX_BSCANS], *linear[MAX_BSCANS];
  gfloat *complex[MAX_BSCANS];
  guint8 *enface[MAX_BSCANS];
} Expected;

static guint16
sample_at (guint bscan, guint line, guint x)
{
  guint32 v = ((bscan * HEIGHT + line) * WIDTH + x + 1) * 2654435761u;
  gdouble fringe = cos (0.3 * x + bscan + 0.1 * line * line);

  v ^= v >> 15;
  v *= 2246822519u;
  return (guint16) (3000 + 10 * x + ((v ^ v >> 13) >> 22) + 400 * fringe);
}

static GstBuffer *
bscan_new (guint i)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, HEIGHT * WIDTH * 2, NULL);
  GstMapInfo map;

  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  for (guint k = 0; k < HEIGHT * WIDTH; k++)
    ((guint16 *) map.data)[k] = sample_at (i, k / WIDTH, k % WIDTH);
  gst_buffer_unmap (buffer, &map);
  GST_BUFFER_PTS (buffer) = i * 10 * GST_MSECOND;
  GST_BUFFER_DURATION (buffer) = 10 * GST_MSECOND;
  return buffer;
}

static ImkOctbscanConfig
base_config (void)
{
  ImkOctbscanConfig c;

  imk_octbscan_config_init (&c);
  c.width = WIDTH;
  c.height = HEIGHT;
  c.taper_cut = 7;
  c.upsample = 128;
  c.range_max = 90;
  return c;
}

#define ELEMENT "octbscan taper-cut=7 upsample=128 range-max=90 "

static ImkImage
image_of (gpointer data, guint width, guint height, ImkType type)
{
  return (ImkImage){data, width * imk_type_size (type), width, height, 1, type,
      IMK_LOCATION_HOST};
}

/* @every: B-scans a mean, the last of which may have fewer */
static Expected
expect (ImkOctbscanConfig *c, guint n, guint every)
{
  Expected e = {.n = n, .n_ascans = imk_octbscan_n_ascans (c)};
  gfloat *rows = g_new0 (gfloat, MAX_BSCANS * e.n_ascans);
  guint size = e.n_ascans * DEPTHS;
  ImkOctbscan *kernel = NULL;
  ImkError error;

  check_ok (imk_octbscan_new (IMK_BACKEND_CPU, c, &kernel, &error), &error);
  for (guint i = 0; i < n; i++) {
    GstBuffer *buffer = bscan_new (i);
    gboolean shows = (i + 1) % every == 0 || i + 1 == n;
    guint k = e.n_images;
    GstMapInfo map;
    ImkImage in, z, db, linear, enface;
    ImkOctbscanJob job = {
        .in = &in, .complex = &z, .backward = c->bidirectional && i % 2};

    gst_buffer_map (buffer, &map, GST_MAP_READ);
    e.complex[i] = g_new0 (gfloat, 2 * HEIGHT * DEPTHS);
    in = image_of (map.data, WIDTH, HEIGHT, IMK_TYPE_U16);
    z = image_of (e.complex[i], DEPTHS, HEIGHT, IMK_TYPE_CF32);
    if (shows) {
      e.db[k] = g_malloc0 (size);
      e.linear[k] = g_malloc0 (size);
      db = image_of (e.db[k], e.n_ascans, DEPTHS, IMK_TYPE_U8);
      linear = image_of (e.linear[k], e.n_ascans, DEPTHS, IMK_TYPE_U8);
      enface = image_of (rows + k * e.n_ascans, e.n_ascans, 1, IMK_TYPE_F32);
      job.db = &db;
      job.linear = &linear;
      job.enface = &enface;
      e.n_images++;
    }
    check_ok (imk_octbscan_process (kernel, &job, 1, NULL, &error), &error);
    gst_buffer_unmap (buffer, &map);
    gst_buffer_unref (buffer);
  }
  for (; e.n_volumes < e.n_images / VOLUME; e.n_volumes++) {
    ImkImage in = image_of (rows + e.n_volumes * VOLUME * e.n_ascans,
        e.n_ascans, VOLUME, IMK_TYPE_F32);
    ImkImage out;

    e.enface[e.n_volumes] = g_malloc0 (VOLUME * e.n_ascans);
    out = image_of (e.enface[e.n_volumes], e.n_ascans, VOLUME, IMK_TYPE_U8);
    check_ok (imk_octbscan_level_image (c, TRUE, &in, &out, &error), &error);
  }
  imk_octbscan_free (kernel);
  g_free (rows);
  return e;
}

static void
expected_free (Expected *e)
{
  for (guint i = 0; i < MAX_BSCANS; i++) {
    g_free (e->db[i]);
    g_free (e->linear[i]);
    g_free (e->complex[i]);
    g_free (e->enface[i]);
  }
}

/* --- what comes ----------------------------------------------------------- */

/* An element with some of its pads linked. */
typedef struct {
  GstElement *element;
  GstHarness *pads[N_PADS]; /* the first has the sink pad as well */
  gboolean has_src;
  GstBus *bus;
} Run;

static Run
run_new (const gchar *launch, guint pads)
{
  Run r = {
      .element = gst_parse_launch (launch, NULL), .has_src = pads & 1 << SRC};

  gst_util_set_object_arg (
      G_OBJECT (r.element), "backend", on_cuda ? "cuda" : "cpu");
  r.bus = gst_bus_new ();
  gst_element_set_bus (r.element, r.bus);
  r.pads[SRC] = gst_harness_new_with_element (
      r.element, "sink", pads & 1 << SRC ? "src" : NULL);
  for (guint p = LINEAR; p < N_PADS; p++)
    if (pads & 1 << p) {
      r.pads[p] = gst_harness_new_with_element (r.element, NULL, pad_names[p]);
      gst_harness_play (r.pads[p]);
    }
  gst_harness_set_src_caps_str (r.pads[SRC],
      "video/x-raw,format=GRAY16_LE,width=60,height=11,framerate=100/1");
  return r;
}

static void
run_free (Run *r)
{
  gst_element_set_bus (r->element, NULL);
  gst_object_unref (r->bus);
  for (guint p = N_PADS; p > 0; p--)
    if (r->pads[p - 1])
      gst_harness_teardown (r->pads[p - 1]);
  gst_object_unref (r->element);
}

static void
check_levels (GstBuffer *buffer, const guint8 *expected, guint width,
    guint height, const gchar *what, guint k)
{
  gint tolerance = on_cuda && !check_is_mock () ? 1 : 0;
  GstMapInfo map;

  gst_buffer_map (buffer, &map, GST_MAP_READ);
  for (guint y = 0; y < height; y++)
    for (guint x = 0; x < width; x++) {
      gint found = map.data[y * GST_ROUND_UP_4 (width) + x];

      if (ABS (found - (gint) expected[y * width + x]) > tolerance)
        fail ("%s %u at (%u, %u) is %d, expected %u", what, k, x, y, found,
            expected[y * width + x]);
    }
  gst_buffer_unmap (buffer, &map);
}

static void
check_complex (GstBuffer *buffer, const gfloat *expected, guint k)
{
  GstMapInfo map;
  gdouble rms = 0;

  gst_buffer_map (buffer, &map, GST_MAP_READ);
  fail_unless_equals_uint64 (map.size, 2 * HEIGHT * DEPTHS * sizeof (gfloat));
  for (guint i = 0; i < 2 * HEIGHT * DEPTHS; i++)
    rms += expected[i] * expected[i] / (HEIGHT * DEPTHS);
  for (guint i = 0; i < 2 * HEIGHT * DEPTHS; i++)
    if (!(fabs (((gfloat *) map.data)[i] - expected[i]) <= 2e-5 * sqrt (rms)))
      fail ("complex %u, number %u is %g, expected %g", k, i,
          ((gfloat *) map.data)[i], expected[i]);
  gst_buffer_unmap (buffer, &map);
}

static void
check_time (GstBuffer *buffer, guint from, guint n)
{
  fail_unless_equals_uint64 (GST_BUFFER_PTS (buffer), from * 10 * GST_MSECOND);
  fail_unless_equals_uint64 (
      GST_BUFFER_DURATION (buffer), n * 10 * GST_MSECOND);
}

static gboolean
is_linked (const Run *r, guint pad)
{
  return pad == SRC ? r->has_src : r->pads[pad] != NULL;
}

/* All that has come, and nothing more. */
static void
check_run (Run *r, const Expected *e, guint every)
{
  GstBuffer *out;

  for (guint i = 0; r->pads[COMPLEX] && i < e->n; i++) {
    out = check_pull (r->pads[COMPLEX]);
    check_complex (out, e->complex[i], i);
    check_time (out, i, 1);
    gst_buffer_unref (out);
  }
  for (guint p = SRC; p <= LINEAR; p++)
    for (guint k = 0; is_linked (r, p) && k < e->n_images; k++) {
      guint n = MIN (every, e->n - k * every);

      out = check_pull (r->pads[p]);
      check_levels (out, p == SRC ? e->db[k] : e->linear[k], e->n_ascans,
          DEPTHS, pad_names[p], k);
      check_time (out, k * every, n);
      gst_buffer_unref (out);
    }
  for (guint k = 0; r->pads[ENFACE] && k < e->n_volumes; k++) {
    out = check_pull (r->pads[ENFACE]);
    check_levels (out, e->enface[k], e->n_ascans, VOLUME, "enface", k);
    check_time (out, k * VOLUME * every, VOLUME * every);
    gst_buffer_unref (out);
  }
  for (guint p = 0; p < N_PADS; p++)
    if (is_linked (r, p))
      fail_unless (gst_harness_try_pull (r->pads[p]) == NULL, "%s has one more",
          pad_names[p]);
}

static void
push_all (Run *r, guint first, guint end)
{
  for (guint i = first; i < end; i++)
    check_push (r->pads[SRC], bscan_new (i), GST_FLOW_OK);
}

/* --- pads ----------------------------------------------------------------- */

static void
check_every_combination (void)
{
  ImkOctbscanConfig c = base_config ();
  Expected e = expect (&c, 4, 1);

  for (guint pads = 1; pads < 1 << N_PADS; pads++) {
    Run r = run_new (ELEMENT "bscans-per-volume=2", pads);

    push_all (&r, 0, 4);
    gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
    check_run (&r, &e, 1);
    run_free (&r);
  }
  expected_free (&e);
}

GST_START_TEST (test_every_combination_of_pads)
{
  on_cuda = __i__;
  check_every_combination ();
}
GST_END_TEST

static void
check_caps (GstHarness *h, const gchar *expected)
{
  GstCaps *caps = gst_pad_get_current_caps (h->sinkpad);
  GstCaps *wanted = gst_caps_from_string (expected);

  fail_unless (gst_caps_is_subset (caps, wanted), "%" GST_PTR_FORMAT, caps);
  gst_caps_unref (caps);
  gst_caps_unref (wanted);
}

static void
check_caps_of_pads (void)
{
  Run r = run_new (ELEMENT "average-bscans=2 average-ascans=3 scaling=linear "
                           "bscans-per-volume=5",
      15);

  push_all (&r, 0, 2);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  check_caps (
      r.pads[SRC], "video/x-raw,format=GRAY8,width=4,height=30,framerate=50/1");
  check_caps (r.pads[LINEAR],
      "video/x-raw,format=GRAY8,width=4,height=30,framerate=50/1");
  check_caps (r.pads[COMPLEX],
      "other/tensors,format=static,num_tensors=1,types=float32,"
      "dimensions=2:30:11:1,framerate=100/1");
  check_caps (r.pads[ENFACE],
      "video/x-raw,format=GRAY8,width=4,height=5,framerate=10/1");
  check_message_says (check_message (r.bus, GST_MESSAGE_WARNING),
      GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
      "1 B-scans do not fill an en-face image");
  run_free (&r);
}

GST_START_TEST (test_caps_of_pads)
{
  on_cuda = __i__;
  check_caps_of_pads ();
}
GST_END_TEST

/* A sink of enface has something to preroll with at the first B-scan. */
GST_START_TEST (test_enface_prerolls)
{
  Run r;
  GstEvent *event;
  gboolean gap = FALSE;

  on_cuda = __i__;
  r = run_new (ELEMENT, 15);
  push_all (&r, 0, 1);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  while ((event = gst_harness_try_pull_event (r.pads[ENFACE]))) {
    gap |= GST_EVENT_TYPE (event) == GST_EVENT_GAP;
    gst_event_unref (event);
  }
  fail_unless (gap);
  run_free (&r);
}
GST_END_TEST

/* --- over many B-scans ---------------------------------------------------- */

typedef struct {
  const gchar *properties;
  guint every;
} Case;

static const Case cases[] = {
    {"background=running background-bscans=3", 1},
    {"background=first background-bscans=2", 1},
    {"background=rolling background-reach=6", 1},
    {"fixed-pattern=minvar pattern-segments=3", 1},
    {"fixed-pattern=once", 1},
    {"scan-correction=sine", 1},
    {"average-ascans=4", 1},
    {"average-bscans=3", 3},
    {"bidirectional=true", 1},
    {"flip=both", 1},
    {"tracking=rpe tracking-top=3 tracking-bscans=4", 1},
    {"tracking=contour tracking-bottom=3 tracking-bscans=4", 1},
    {"tracking=xcorr tracking-reach=5", 1},
    {"enface-projection=maximum enface-top=2 enface-bottom=9", 1},
    {"background=running fixed-pattern=minvar scan-correction=sine "
     "average-ascans=2 average-bscans=2 bidirectional=true flip=both "
     "tracking=xcorr enface-top=3",
        2},
};

/* The properties as the kernel has them. */
static ImkOctbscanConfig
config_of (guint i)
{
  ImkOctbscanConfig c = base_config ();

  c.averages_bscans = cases[i].every > 1;
  switch (i) {
  case 0:
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_RUNNING;
    c.background_bscans = 3;
    break;
  case 1:
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_FIRST;
    c.background_bscans = 2;
    break;
  case 2:
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_ROLLING;
    c.background_reach = 6;
    break;
  case 3:
    c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_MINVAR;
    c.pattern_segments = 3;
    break;
  case 4:
    c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_ONCE;
    break;
  case 5:
    c.scan = IMK_OCTBSCAN_SCAN_SINE;
    break;
  case 6:
    c.average_ascans = 4;
    break;
  case 8:
    c.bidirectional = true;
    break;
  case 9:
    c.flip = IMK_OCTBSCAN_FLIP_BOTH;
    break;
  case 10:
    c.tracking = IMK_OCTBSCAN_TRACKING_RPE;
    c.tracking_top = 3;
    c.tracking_bscans = 4;
    break;
  case 11:
    c.tracking = IMK_OCTBSCAN_TRACKING_CONTOUR;
    c.tracking_bottom = 3;
    c.tracking_bscans = 4;
    break;
  case 12:
    c.tracking = IMK_OCTBSCAN_TRACKING_XCORR;
    c.tracking_reach = 5;
    break;
  case 13:
    c.projection = IMK_OCTBSCAN_PROJECTION_MAXIMUM;
    c.enface_top = 2;
    c.enface_bottom = 9;
    break;
  case 14:
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_RUNNING;
    c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_MINVAR;
    c.scan = IMK_OCTBSCAN_SCAN_SINE;
    c.average_ascans = 2;
    c.bidirectional = true;
    c.flip = IMK_OCTBSCAN_FLIP_BOTH;
    c.tracking = IMK_OCTBSCAN_TRACKING_XCORR;
    c.enface_top = 3;
    break;
  default:
    break;
  }
  return c;
}

/* Twice, with a flush between: what was remembered is forgotten. */
static void
check_case (guint i)
{
  ImkOctbscanConfig c = config_of (i);
  gchar *launch =
      g_strdup_printf (ELEMENT "bscans-per-volume=2 %s", cases[i].properties);
  Expected e = expect (&c, 8, cases[i].every);
  Run r = run_new (launch, 15);
  GstSegment segment;

  push_all (&r, 0, 8);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  check_run (&r, &e, cases[i].every);
  gst_harness_push_event (r.pads[SRC], gst_event_new_flush_start ());
  gst_harness_push_event (r.pads[SRC], gst_event_new_flush_stop (TRUE));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (r.pads[SRC], gst_event_new_segment (&segment));
  push_all (&r, 0, 8);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  check_run (&r, &e, cases[i].every);
  fail_unless_equals_uint64 (check_stat (r.element, "frames"), 16);
  run_free (&r);
  expected_free (&e);
  g_free (launch);
}

GST_START_TEST (test_properties_reach_the_kernel)
{
  on_cuda = __i__ % 2;
  check_case (__i__ / 2);
}
GST_END_TEST

/* An interruption ends a mean; it is shown with what it has. */
static void
check_means_end_at_interruptions (void)
{
  ImkOctbscanConfig c = base_config ();
  Run r = run_new (ELEMENT "average-bscans=3", 1 << SRC);
  GstBuffer *out, *late = bscan_new (2);
  Expected e;

  c.averages_bscans = true;
  e = expect (&c, 2, 3);
  push_all (&r, 0, 2);
  GST_BUFFER_FLAG_SET (late, GST_BUFFER_FLAG_DISCONT);
  check_push (r.pads[SRC], late, GST_FLOW_OK);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  out = check_pull (r.pads[SRC]);
  check_levels (out, e.db[0], HEIGHT, DEPTHS, "mean", 0);
  check_time (out, 0, 2);
  gst_buffer_unref (out);
  out = check_pull (r.pads[SRC]);
  check_time (out, 2, 1);
  gst_buffer_unref (out);
  fail_unless (gst_harness_try_pull (r.pads[SRC]) == NULL);
  run_free (&r);
  expected_free (&e);
}

GST_START_TEST (test_means_end_at_interruptions)
{
  on_cuda = __i__;
  check_means_end_at_interruptions ();
}
GST_END_TEST

/* All of them while PLAYING; the pads follow with their sizes. */
GST_START_TEST (test_changes_while_playing)
{
  GstSegment segment;
  Run r;

  on_cuda = __i__;
  r = run_new (ELEMENT "bscans-per-volume=2", 15);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    ImkOctbscanConfig c = config_of (i);
    gchar *launch =
        g_strdup_printf (ELEMENT "bscans-per-volume=2 %s", cases[i].properties);
    GstElement *other = gst_parse_launch (launch, NULL);
    guint n;
    GParamSpec **specs =
        g_object_class_list_properties (G_OBJECT_GET_CLASS (other), &n);
    Expected e = expect (&c, 12, cases[i].every);

    for (guint k = 0; k < n; k++) {
      GValue value = G_VALUE_INIT;

      if (!(specs[k]->flags & GST_PARAM_MUTABLE_PLAYING) ||
          !(specs[k]->flags & G_PARAM_WRITABLE))
        continue;
      g_object_get_property (G_OBJECT (other), specs[k]->name, &value);
      g_object_set_property (G_OBJECT (r.element), specs[k]->name, &value);
      g_value_unset (&value);
    }
    push_all (&r, 0, 12);
    gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
    gst_harness_push_event (r.pads[SRC], gst_event_new_flush_start ());
    gst_harness_push_event (r.pads[SRC], gst_event_new_flush_stop (TRUE));
    gst_segment_init (&segment, GST_FORMAT_TIME);
    gst_harness_push_event (r.pads[SRC], gst_event_new_segment (&segment));
    check_run (&r, &e, cases[i].every);
    expected_free (&e);
    g_free (specs);
    gst_object_unref (other);
    g_free (launch);
  }
  run_free (&r);
}
GST_END_TEST

/* --- tensors -------------------------------------------------------------- */

/* A tensor of 11 lines of @width samples, whose rows stand close. */
static GstBuffer *
tensor_new (ImkType type, guint width)
{
  gsize size = imk_type_size (type);
  GstBuffer *buffer =
      gst_buffer_new_allocate (NULL, size * width * HEIGHT, NULL);
  GstMapInfo map;

  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  for (guint i = 0; i < width * HEIGHT; i++) {
    gdouble v = 100 * cos (0.3 * (i % width) + i / width) - 20;

    if (type == IMK_TYPE_F32)
      ((gfloat *) map.data)[i] = (gfloat) v;
    else if (type == IMK_TYPE_I16)
      ((gint16 *) map.data)[i] = (gint16) v;
    else if (type == IMK_TYPE_U16)
      ((guint16 *) map.data)[i] = (guint16) (v + 500);
    else
      map.data[i] = (guint8) (v + 125);
  }
  gst_buffer_unmap (buffer, &map);
  return buffer;
}

static void
check_tensor (ImkType type, const gchar *name, guint width)
{
  gchar *caps = g_strdup_printf (
      "other/tensors,format=static,num_tensors=1,types=%s,dimensions=%u:%d:1:1,"
      "framerate=100/1",
      name, width, HEIGHT);
  GstBuffer *in = tensor_new (type, width), *out;
  ImkOctbscanConfig c = base_config ();
  guint8 *expected = g_malloc0 ((gsize) HEIGHT * (width / 2));
  Run r = run_new (ELEMENT, 1 << SRC);
  ImkOctbscan *kernel = NULL;
  GstMapInfo map;
  ImkImage from, to;
  ImkOctbscanJob job = {.in = &from, .db = &to};
  ImkError error;

  c.width = width;
  c.type = type;
  gst_buffer_map (in, &map, GST_MAP_READ);
  from = image_of (map.data, width, HEIGHT, type);
  to = image_of (expected, HEIGHT, width / 2, IMK_TYPE_U8);
  if (on_cuda)
    c.strategy = IMK_OCTBSCAN_STRATEGY_OPERATOR;
  check_ok (imk_octbscan_new (IMK_BACKEND_CPU, &c, &kernel, &error), &error);
  check_ok (imk_octbscan_process (kernel, &job, 1, NULL, &error), &error);
  imk_octbscan_free (kernel);
  gst_buffer_unmap (in, &map);
  gst_harness_set_src_caps_str (r.pads[SRC], caps);
  for (guint i = 0; i < 2; i++) {
    check_push (r.pads[SRC], gst_buffer_ref (in), GST_FLOW_OK);
    out = check_pull (r.pads[SRC]);
    check_levels (out, expected, HEIGHT, width / 2, name, i);
    gst_buffer_unref (out);
  }
  run_free (&r);
  gst_buffer_unref (in);
  g_free (expected);
  g_free (caps);
}

GST_START_TEST (test_tensors_are_taken)
{
  on_cuda = __i__;
  for (guint width = 60; width <= 61; width++) {
    check_tensor (IMK_TYPE_I16, "int16", width);
    check_tensor (IMK_TYPE_F32, "float32", width);
    check_tensor (IMK_TYPE_U16, "uint16", width);
    check_tensor (IMK_TYPE_U8, "uint8", width);
  }
}
GST_END_TEST

GST_START_TEST (test_wrong_tensors_are_said)
{
  static const gchar *const dimensions[] = {
      "60", "60:11:2", "0:11", "60:x", "60:11:1:1:3", "-1:4", "99999:2"};

  on_cuda = FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (dimensions); i++) {
    gchar *caps = g_strdup_printf (
        "other/tensors,format=static,num_tensors=1,types=float32,"
        "dimensions=(string)\"%s\",framerate=100/1",
        dimensions[i]);
    Run r = run_new (ELEMENT, 1 << SRC);

    gst_harness_set_src_caps_str (r.pads[SRC], caps);
    check_message_says (check_message (r.bus, GST_MESSAGE_ERROR),
        GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, "samples:lines");
    run_free (&r);
    g_free (caps);
  }
}
GST_END_TEST

/* --- files ---------------------------------------------------------------- */

GST_START_TEST (test_pattern_and_curve_are_read)
{
  gchar *folder = check_folder_new ();
  gchar *pattern_path = g_build_filename (folder, "pattern.npy", NULL);
  gchar *curve_path = g_build_filename (folder, "curve.npy", NULL);
  gchar *launch = g_strdup_printf (ELEMENT
      "bscans-per-volume=2 fixed-pattern=file pattern-location=%s "
      "scan-correction=curve scan-curve=%s window=file window-location=%s",
      pattern_path, curve_path, curve_path);
  static const gdouble curve[] = {0, 2, 9.5, 10};
  gdouble pattern[2 * DEPTHS];
  const guint64 n_pattern[] = {1, DEPTHS}, n_curve = 4;
  ImkOctbscanConfig c = base_config ();
  Expected e;
  Run r;

  on_cuda = __i__;
  for (guint i = 0; i < 2 * DEPTHS; i++)
    pattern[i] = sin (i);
  fail_unless (gst_imaging_npy_save (pattern_path,
      GST_IMAGING_NPY_TYPE_COMPLEX128, 2, n_pattern, pattern, NULL));
  fail_unless (gst_imaging_npy_save (
      curve_path, GST_IMAGING_NPY_TYPE_F64, 1, &n_curve, curve, NULL));
  c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_FILE;
  c.pattern = pattern;
  c.scan = IMK_OCTBSCAN_SCAN_CURVE;
  c.scan_curve = curve;
  c.n_scan_curve = 4;
  c.window = IMK_OCTBSCAN_WINDOW_FILE;
  c.window_values = curve;
  c.n_window_values = 4;
  e = expect (&c, 2, 1);
  r = run_new (launch, 15);
  push_all (&r, 0, 2);
  gst_harness_push_event (r.pads[SRC], gst_event_new_eos ());
  check_run (&r, &e, 1);
  run_free (&r);
  expected_free (&e);
  check_folder_free (&folder);
  g_free (launch);
  g_free (pattern_path);
  g_free (curve_path);
}
GST_END_TEST

static const gchar *const refusals[][2] = {
    {"fixed-pattern=file", "Set pattern-location"},
    {"fixed-pattern=file pattern-location=/nowhere.npy", "pattern-location"},
    {"scan-correction=curve", "Set scan-curve"},
    {"window=file", "Set window-location"},
    {"window=file window-location=/nowhere.npy", "window-location"},
    {"scan-correction=curve scan-curve=/nowhere.npy", "scan-curve"},
    {"tracking=rpe tracking-top=29", "tracking-top 29"},
    {"enface-top=30", "enface-top 30"},
    {"dispersion=0;x", "dispersion \"0;x\" holds \"x\""},
    {"cameras=3 dispersion=0;1,0;2", "is for 2 cameras, but there are 3"},
    {"dispersion=0;nan", "dispersion of camera 0 is nan"},
};

GST_START_TEST (test_wrong_settings_are_said)
{
  gchar *launch = g_strdup_printf (ELEMENT "%s", refusals[__i__][0]);
  GstMessage *message;
  GError *error = NULL;
  Run r;

  on_cuda = FALSE;
  r = run_new (launch, 1 << SRC);
  gst_harness_push (r.pads[SRC], bscan_new (0));
  message = check_message (r.bus, GST_MESSAGE_ERROR);
  gst_message_parse_error (message, &error, NULL);
  fail_unless (strstr (error->message, refusals[__i__][1]) != NULL,
      "\"%s\" does not say \"%s\"", error->message, refusals[__i__][1]);
  g_error_free (error);
  gst_message_unref (message);
  run_free (&r);
  g_free (launch);
}
GST_END_TEST

/* Rows of a volume that gets another size are counted. */
GST_START_TEST (test_a_volume_changes_its_size)
{
  Run r;

  on_cuda = FALSE;
  r = run_new (ELEMENT, 15);
  g_object_set (r.pads[SRC]->element, "bscans-per-volume", 3, NULL);
  push_all (&r, 0, 2);
  g_object_set (r.pads[SRC]->element, "bscans-per-volume", 4, NULL);
  push_all (&r, 2, 3);
  check_message_says (check_message (r.bus, GST_MESSAGE_WARNING),
      GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, "2 B-scans do not fill");
  run_free (&r);
}
GST_END_TEST

/* The stream is held back by a sink that is prerolled; pads come and go all the
 * same, and what is linked meanwhile has images as soon as it plays. */
GST_START_TEST (test_pads_come_and_go_while_prerolled)
{
  gchar *launch = g_strdup_printf (
      "videotestsrc ! "
      "video/x-raw,format=GRAY16_LE,width=%d,height=%d ! octbscan name=oct "
      "taper-cut=7 upsample=128 backend=%s ! fakesink",
      WIDTH, HEIGHT, __i__ ? "cuda" : "cpu");
  GstElement *pipeline = gst_parse_launch (launch, NULL);
  GstElement *oct = gst_bin_get_by_name (GST_BIN (pipeline), "oct");
  GstElement *sink = gst_element_factory_make ("fakesink", NULL);
  GstBus *bus = gst_element_get_bus (pipeline);
  GstSample *last = NULL;

  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  fail_unless_equals_int (
      gst_element_get_state (pipeline, NULL, NULL, GST_CLOCK_TIME_NONE),
      GST_STATE_CHANGE_SUCCESS);
  for (guint i = LINEAR; i < N_PADS; i++) {
    GstPad *pad = gst_element_request_pad_simple (oct, pad_names[i]);

    fail_unless (pad != NULL);
    gst_element_release_request_pad (oct, pad);
    gst_object_unref (pad);
  }
  g_object_set (sink, "async", FALSE, NULL);
  gst_bin_add (GST_BIN (pipeline), sink);
  gst_element_sync_state_with_parent (sink);
  fail_unless (gst_element_link_pads (oct, "linear", sink, "sink"));
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  while (!last) {
    g_usleep (1000);
    g_object_get (sink, "last-sample", &last, NULL);
  }
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ERROR), 0);
  gst_sample_unref (last);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (oct);
  gst_object_unref (pipeline);
  g_free (launch);
}
GST_END_TEST

static Suite *
octbscan_pads_suite (void)
{
  Suite *suite = suite_create ("octbscan-pads");
  TCase *tc = tcase_create ("octbscan-pads");

  suite_add_tcase (suite, tc);
  tcase_add_loop_test (tc, test_every_combination_of_pads, 0, 2);
  tcase_add_loop_test (tc, test_caps_of_pads, 0, 2);
  tcase_add_loop_test (tc, test_enface_prerolls, 0, 2);
  tcase_add_test (tc, test_a_volume_changes_its_size);
  tcase_add_loop_test (tc, test_pads_come_and_go_while_prerolled, 0, 2);
  tcase_add_loop_test (
      tc, test_properties_reach_the_kernel, 0, 2 * G_N_ELEMENTS (cases));
  tcase_add_loop_test (tc, test_means_end_at_interruptions, 0, 2);
  tcase_add_loop_test (tc, test_changes_while_playing, 0, 2);
  tcase_add_loop_test (tc, test_tensors_are_taken, 0, 2);
  tcase_add_test (tc, test_wrong_tensors_are_said);
  tcase_add_loop_test (tc, test_pattern_and_curve_are_read, 0, 2);
  tcase_add_loop_test (
      tc, test_wrong_settings_are_said, 0, G_N_ELEMENTS (refusals));
  return suite;
}

GST_CHECK_MAIN (octbscan_pads);
