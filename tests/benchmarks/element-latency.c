/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How long a frame is inside an element, from the element's own `stats`: from
 * the buffer's arrival to the results' leaving. The program plays camera and
 * sink: it writes each frame into the pool that the element offers. */
#include <gst/video/video.h>

#include <math.h>

#include "core/backend.h"

#include "bench.h"

enum { N_FRAMES = 10000, N_QUICK_FRAMES = 1000, N_PICTURES = 8 };

typedef struct Case {
  const char *name;
  const char *element;
  const char *format;
  gint width, height;
} Case;

#define CENTROIDS "shcentroid pitch-x=10 pitch-y=10 columns=70 rows=70 "

static const Case cases[] = {
    {"shcentroid-700-d10-xy", CENTROIDS "fields=xy", "GRAY8", 700, 700},
    {"shcentroid-700-d10-all", CENTROIDS "fields=all", "GRAY8", 700, 700},
    {"lapsharpen-1920x1080", "lapsharpen", "RGBA", 1920, 1080},
};

typedef struct Bench {
  GstElement *element;
  GstPad *src, *sink; /* ours */
  GstCaps *caps;
  GstVideoInfo info;
  GstBufferPool *pool;
  gboolean offered; /* @pool is the element's */
  guint64 n_received;
} Bench;

static GstFlowReturn
on_buffer (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Bench *b = g_object_get_data (G_OBJECT (pad), "bench");

  b->n_received++;
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

static GstPad *
make_pad (Bench *b, const char *name, GstPadDirection direction)
{
  GstPad *pad = gst_pad_new (name, direction);

  g_object_set_data (G_OBJECT (pad), "bench", b);
  if (direction == GST_PAD_SINK)
    gst_pad_set_chain_function (pad, on_buffer);
  gst_pad_set_active (pad, TRUE);
  return pad;
}

static void
link_pads (Bench *b)
{
  GstPad *sink = gst_element_get_static_pad (b->element, "sink");
  GstPad *src = gst_element_get_static_pad (b->element, "src");

  b->src = make_pad (b, "camera", GST_PAD_SRC);
  b->sink = make_pad (b, "viewer", GST_PAD_SINK);
  if (gst_pad_link (b->src, sink) != GST_PAD_LINK_OK ||
      gst_pad_link (src, b->sink) != GST_PAD_LINK_OK)
    bench_fail ("the element cannot be linked.");
  gst_object_unref (sink);
  gst_object_unref (src);
}

static void
start_stream (Bench *b)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (b->src, gst_event_new_stream_start ("camera"));
  if (!gst_pad_push_event (b->src, gst_event_new_caps (b->caps)))
    bench_fail ("the element does not take the caps.");
  gst_pad_push_event (b->src, gst_event_new_segment (&segment));
}

static void
start_pool (Bench *b)
{
  GstStructure *config = gst_buffer_pool_get_config (b->pool);

  gst_buffer_pool_config_set_params (config, b->caps, b->info.size, 4, 0);
  /* refused when the pool had to change it; what it changed it to is fine */
  if (!gst_buffer_pool_set_config (b->pool, config))
    gst_buffer_pool_set_config (b->pool, gst_buffer_pool_get_config (b->pool));
  if (!gst_buffer_pool_set_active (b->pool, TRUE))
    bench_fail ("the pool does not start.");
}

/* The pool that the element offers, else one of plain memory. */
static void
choose_pool (Bench *b)
{
  GstQuery *query = gst_query_new_allocation (b->caps, TRUE);

  g_clear_object (&b->pool);
  if (gst_pad_peer_query (b->src, query) &&
      gst_query_get_n_allocation_pools (query) > 0)
    gst_query_parse_nth_allocation_pool (query, 0, &b->pool, NULL, NULL, NULL);
  b->offered = b->pool != NULL;
  if (!b->pool)
    b->pool = gst_video_buffer_pool_new ();
  start_pool (b);
  gst_query_unref (query);
}

static void
push_frame (Bench *b, const BenchRing *pictures, guint i)
{
  GstBuffer *buffer = NULL;

  if (gst_buffer_pool_acquire_buffer (b->pool, &buffer, NULL) != GST_FLOW_OK)
    bench_fail ("the pool has no buffer.");
  gst_buffer_fill (buffer, 0, bench_ring_at (pictures, i), pictures->size);
  GST_BUFFER_PTS (buffer) = i * GST_MSECOND;
  if (gst_pad_push (b->src, buffer) != GST_FLOW_OK)
    bench_fail ("the element does not take frame %u.", i);
}

static gdouble
get_number (const GstStructure *stats, const char *field)
{
  gdouble value = NAN;

  gst_structure_get_double (stats, field, &value);
  return value;
}

static void
report (Bench *b, const Case *c, const char *backend, guint n_frames)
{
  GstStructure *stats = NULL;
  gchar *text;

  g_object_get (b->element, "stats", &stats, NULL);
  text = gst_structure_to_string (stats);
  bench_row (c->name, backend, "ours", get_number (stats, "time-p50"),
      get_number (stats, "time-p99"), NAN, get_number (stats, "time-max"),
      n_frames);
  g_print ("  %s pool; %s\n", b->offered ? "the element's" : "plain", text);
  if (b->n_received < n_frames)
    bench_fail ("%" G_GUINT64_FORMAT " of %u frames came out.", b->n_received,
        n_frames);
  g_free (text);
  gst_structure_free (stats);
}

/* Restarts the element, which starts its statistics anew; code and memory stay
 * warm. */
static void
run_frames (Bench *b, const BenchRing *pictures, guint n_frames)
{
  b->n_received = 0;
  if (gst_element_set_state (b->element, GST_STATE_PLAYING) ==
      GST_STATE_CHANGE_FAILURE)
    bench_fail ("the element does not start.");
  start_stream (b);
  /* the backend, and so the pool, is known once the caps are */
  choose_pool (b);
  for (guint i = 0; i < n_frames; i++)
    push_frame (b, pictures, i);
}

static void
stop (Bench *b)
{
  gst_pad_push_event (b->src, gst_event_new_eos ());
  gst_buffer_pool_set_active (b->pool, FALSE);
  g_clear_object (&b->pool);
  gst_element_set_state (b->element, GST_STATE_NULL);
  /* the state change has deactivated only the element's pads */
  gst_pad_set_active (b->src, FALSE);
  gst_pad_set_active (b->sink, FALSE);
  gst_pad_set_active (b->src, TRUE);
  gst_pad_set_active (b->sink, TRUE);
}

static void
run_case (const Case *c, const char *backend)
{
  guint n_frames = bench_is_quick () ? N_QUICK_FRAMES : N_FRAMES;
  gchar *line = g_strdup_printf ("%s backend=%s", c->element, backend);
  BenchRing pictures;
  Bench b = {};
  GError *error = NULL;

  b.element = gst_parse_launch (line, &error);
  if (!b.element)
    bench_fail ("%s", error->message);
  gst_object_ref_sink (b.element);
  b.caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING,
      c->format, "width", G_TYPE_INT, c->width, "height", G_TYPE_INT, c->height,
      "framerate", GST_TYPE_FRACTION, 1000, 1, NULL);
  gst_video_info_from_caps (&b.info, b.caps);
  pictures = bench_ring_new (b.info.size, N_PICTURES * b.info.size);
  bench_ring_noise (&pictures, 1);
  link_pads (&b);

  run_frames (&b, &pictures, 100);
  stop (&b);
  run_frames (&b, &pictures, n_frames);
  report (&b, c, backend, n_frames);
  stop (&b);

  gst_object_unref (b.src);
  gst_object_unref (b.sink);
  gst_object_unref (b.element);
  gst_caps_unref (b.caps);
  bench_ring_free (&pictures);
  g_free (line);
}

int
main (int argc, char **argv)
{
  ImkError error;

  bench_open (argc, argv, "element");
  gst_init (NULL, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    run_case (&cases[i], "cpu");
  if (imk_backend_load ("cuda", &error) == IMK_OK)
    for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
      run_case (&cases[i], "cuda");
  else
    g_print ("  no rows for cuda: %s\n", error.message);
  return bench_close ();
}
