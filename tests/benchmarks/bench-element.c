/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bench-element.h"

/* --- the viewer ----------------------------------------------------------- */

static void
read_pixels (GstBuffer *buffer)
{
  GstMapInfo map;

  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    bench_fail ("a frame that came out cannot be mapped.");
  gst_buffer_unmap (buffer, &map);
}

static GstFlowReturn
on_buffer (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  BenchElement *self = g_object_get_data (G_OBJECT (pad), "bench");

  if (self->view != BENCH_VIEW_LEAVE)
    read_pixels (buffer);
  g_mutex_lock (&self->lock);
  gst_buffer_replace (&self->last, buffer);
  self->n_received++;
  g_cond_signal (&self->came);
  g_mutex_unlock (&self->lock);
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

/* Only what it names is taken. */
static gboolean
on_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstCaps *taken = g_object_get_data (G_OBJECT (pad), "caps"), *filter, *caps;

  if (!taken || GST_QUERY_TYPE (query) != GST_QUERY_CAPS)
    return gst_pad_query_default (pad, parent, query);
  gst_query_parse_caps (query, &filter);
  caps = filter ? gst_caps_intersect (filter, taken) : gst_caps_ref (taken);
  gst_query_set_caps_result (query, caps);
  gst_caps_unref (caps);
  return TRUE;
}

static void
take_only (GstPad *pad, const char *feature)
{
  GstCaps *caps = gst_caps_new_empty_simple ("video/x-raw");

  gst_caps_set_features_simple (caps, gst_caps_features_new (feature, NULL));
  g_object_set_data_full (
      G_OBJECT (pad), "caps", caps, (GDestroyNotify) gst_caps_unref);
}

/* --- linking -------------------------------------------------------------- */

static GstPad *
make_pad (BenchElement *self, const char *name, GstPadDirection direction)
{
  GstPad *pad = gst_pad_new (name, direction);

  g_object_set_data (G_OBJECT (pad), "bench", self);
  if (direction == GST_PAD_SINK) {
    gst_pad_set_chain_function (pad, on_buffer);
    gst_pad_set_query_function (pad, on_query);
  }
  gst_pad_set_active (pad, TRUE);
  return pad;
}

void
bench_link (GstPad *src, GstPad *sink)
{
  if (gst_pad_link (src, sink) != GST_PAD_LINK_OK)
    bench_fail ("the element cannot be linked.");
}

static void
link_viewer (BenchElement *self)
{
  GstPad *src = gst_element_get_static_pad (self->element, "src");

  if (self->view == BENCH_VIEW_QUEUE) {
    GstPad *sink;

    self->queue = gst_element_factory_make ("queue", NULL);
    if (!self->queue)
      bench_fail ("there is no element queue.");
    gst_object_ref_sink (self->queue);
    g_object_set (self->queue, "max-size-buffers", 4, "max-size-bytes", 0,
        "max-size-time", (guint64) 0, NULL);
    sink = gst_element_get_static_pad (self->queue, "sink");
    bench_link (src, sink);
    gst_object_unref (sink);
    gst_object_unref (src);
    src = gst_element_get_static_pad (self->queue, "src");
  }
  bench_link (src, self->sink);
  gst_object_unref (src);
}

void
bench_element_open (BenchElement *self, const char *line, const char *format,
    gint width, gint height, const char *in_feature, const char *out_feature,
    BenchView view)
{
  GError *error = NULL;
  GstPad *sink;

  *self = (BenchElement){.view = view};
  g_mutex_init (&self->lock);
  g_cond_init (&self->came);
  self->element = gst_parse_launch (line, &error);
  if (!self->element || error)
    bench_fail ("%s", error->message);
  gst_object_ref_sink (self->element);
  self->caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING,
      format, "width", G_TYPE_INT, width, "height", G_TYPE_INT, height,
      "framerate", GST_TYPE_FRACTION, 1000, 1, NULL);
  gst_video_info_from_caps (&self->info, self->caps);
  if (in_feature)
    gst_caps_set_features_simple (
        self->caps, gst_caps_features_new (in_feature, NULL));
  self->src = make_pad (self, "camera", GST_PAD_SRC);
  self->sink = make_pad (self, "viewer", GST_PAD_SINK);
  if (out_feature)
    take_only (self->sink, out_feature);
  sink = gst_element_get_static_pad (self->element, "sink");
  bench_link (self->src, sink);
  gst_object_unref (sink);
  link_viewer (self);
}

void
bench_element_close (BenchElement *self)
{
  gst_clear_object (&self->queue);
  gst_object_unref (self->src);
  gst_object_unref (self->sink);
  gst_object_unref (self->element);
  gst_caps_unref (self->caps);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->came);
}

/* --- start and stop ------------------------------------------------------- */

static void
set_state (GstElement *element, GstState state)
{
  if (element &&
      gst_element_set_state (element, state) == GST_STATE_CHANGE_FAILURE)
    bench_fail ("the element does not change its state.");
}

void
bench_play (GstElement *element, GstPad *camera, GstCaps *caps)
{
  GstSegment segment;

  set_state (element, GST_STATE_PLAYING);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (camera, gst_event_new_stream_start ("camera"));
  if (!gst_pad_push_event (camera, gst_event_new_caps (caps)))
    bench_fail ("the element does not take the caps.");
  gst_pad_push_event (camera, gst_event_new_segment (&segment));
}

static void
link_one (BenchBetween *self, const char *element, const char *pad)
{
  GstElement *e = gst_bin_get_by_name (GST_BIN (self->bin), element);
  GstPad *p = gst_element_get_static_pad (e, pad);

  if (GST_PAD_IS_SINK (p))
    bench_link (self->camera, p);
  else
    bench_link (p, self->viewer);
  gst_object_unref (p);
  gst_object_unref (e);
}

void
bench_between_open (BenchBetween *self, const char *line, GstCaps *caps,
    GstPadChainFunction on_buffer, gpointer data)
{
  GError *error = NULL;

  self->bin = gst_parse_bin_from_description (line, FALSE, &error);
  if (!self->bin)
    bench_fail ("%s", error->message);
  gst_object_ref_sink (self->bin);
  self->camera = gst_pad_new ("camera", GST_PAD_SRC);
  self->viewer = gst_pad_new ("viewer", GST_PAD_SINK);
  g_object_set_data (G_OBJECT (self->viewer), "bench", data);
  gst_pad_set_chain_function (self->viewer, on_buffer);
  gst_pad_set_active (self->camera, TRUE);
  gst_pad_set_active (self->viewer, TRUE);
  link_one (self, "first", "sink");
  link_one (self, "last", "src");
  bench_play (self->bin, self->camera, caps);
}

void
bench_between_close (BenchBetween *self)
{
  gst_element_set_state (self->bin, GST_STATE_NULL);
  gst_object_unref (self->bin);
  gst_object_unref (self->camera);
  gst_object_unref (self->viewer);
}

void
bench_element_start (BenchElement *self)
{
  self->n_received = 0;
  set_state (self->queue, GST_STATE_PLAYING);
  bench_play (self->element, self->src, self->caps);
}

void
bench_element_stop (BenchElement *self)
{
  gst_pad_push_event (self->src, gst_event_new_eos ());
  gst_clear_buffer (&self->last);
  set_state (self->element, GST_STATE_NULL);
  set_state (self->queue, GST_STATE_NULL);
  /* the state changes have deactivated only the elements' pads */
  gst_pad_set_active (self->src, FALSE);
  gst_pad_set_active (self->sink, FALSE);
  gst_pad_set_active (self->src, TRUE);
  gst_pad_set_active (self->sink, TRUE);
}

/* --- frames --------------------------------------------------------------- */

static void
start_pool (GstBufferPool *pool, GstCaps *caps, const GstVideoInfo *info,
    guint least, guint most)
{
  GstStructure *config = gst_buffer_pool_get_config (pool);

  gst_buffer_pool_config_set_params (config, caps, info->size, least, most);
  /* refused when the pool had to change it; what it changed it to is fine */
  if (!gst_buffer_pool_set_config (pool, config))
    gst_buffer_pool_set_config (pool, gst_buffer_pool_get_config (pool));
  if (!gst_buffer_pool_set_active (pool, TRUE))
    bench_fail ("the pool does not start.");
}

GstBufferPool *
bench_offered_pool (GstPad *camera, GstCaps *caps, const GstVideoInfo *info,
    guint least, guint most)
{
  GstQuery *query = gst_query_new_allocation (caps, TRUE);
  GstBufferPool *pool = NULL;

  if (gst_pad_peer_query (camera, query) &&
      gst_query_get_n_allocation_pools (query) > 0)
    gst_query_parse_nth_allocation_pool (query, 0, &pool, NULL, NULL, NULL);
  gst_query_unref (query);
  if (pool)
    start_pool (pool, caps, info, least, most);
  return pool;
}

GstBufferPool *
bench_plain_pool (
    GstCaps *caps, const GstVideoInfo *info, guint least, guint most)
{
  GstBufferPool *pool = gst_video_buffer_pool_new ();

  start_pool (pool, caps, info, least, most);
  return pool;
}

GstBufferPool *
bench_element_offered_pool (BenchElement *self, guint n)
{
  return bench_offered_pool (self->src, self->caps, &self->info, n, 0);
}

GstBufferPool *
bench_element_plain_pool (BenchElement *self, guint n)
{
  return bench_plain_pool (self->caps, &self->info, n, 0);
}

void
bench_element_push (BenchElement *self, GstBuffer *buffer)
{
  if (gst_pad_push (self->src, buffer) != GST_FLOW_OK)
    bench_fail ("the element does not take a frame.");
}

void
bench_element_wait (BenchElement *self, guint64 n)
{
  gint64 end = g_get_monotonic_time () + 20 * G_TIME_SPAN_SECOND;

  g_mutex_lock (&self->lock);
  while (self->n_received < n)
    if (!g_cond_wait_until (&self->came, &self->lock, end))
      bench_fail ("only %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                  " frames came out.",
          self->n_received, n);
  g_mutex_unlock (&self->lock);
}
