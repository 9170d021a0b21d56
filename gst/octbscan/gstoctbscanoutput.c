/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscanoutput.h"

#include "gstimagingallocation.h"
#include "gstimagingmemory.h"
#include "gstimagingpicture.h"

/* Bytes of images that are made ready in page-locked memory, and how many at
 * most. */
#define READY_SIZE ((gsize) 16 << 20)
#define MOST_READY 128

static void
drop (GstBufferPool **pool)
{
  if (*pool)
    gst_buffer_pool_set_active (*pool, FALSE);
  gst_clear_object (pool);
}

static void
drop_pool (GstOctBscanOutput *self)
{
  drop (&self->pool);
  drop (&self->host);
  drop (&self->blocks);
}

void
gst_oct_bscan_output_reset (GstOctBscanOutput *self)
{
  drop_pool (self);
  gst_clear_caps (&self->caps);
}

static GstCaps *
our_caps (const GstOctBscanOutput *self, gint width, gint height)
{
  g_autofree gchar *dims = g_strdup_printf ("2:%d:%d:1", width, height);
  GstCaps *caps;

  if (self->kind == OUTPUT_COMPLEX)
    return gst_caps_new_simple ("other/tensors", "format", G_TYPE_STRING,
        "static", "num_tensors", G_TYPE_INT, 1, "types", G_TYPE_STRING,
        "float32", "dimensions", G_TYPE_STRING, dims, NULL);
  caps = gst_caps_copy (gst_pad_get_pad_template_caps (self->pad));
  gst_caps_set_simple (caps, "width", G_TYPE_INT, width, "height", G_TYPE_INT,
      height, "pixel-aspect-ratio", GST_TYPE_FRACTION, 1, 1, NULL);
  return caps;
}

/* The format that downstream names first; 8 bits when it has no wish. */
static GstCaps *
choose_caps (const GstOctBscanOutput *self, gint width, gint height, gint fps_n,
    gint fps_d)
{
  GstCaps *ours = our_caps (self, width, height), *common;

  gst_caps_set_simple (
      ours, "framerate", GST_TYPE_FRACTION, fps_n, fps_d, NULL);
  common = gst_pad_peer_query_caps (self->pad, ours);
  gst_caps_unref (ours);
  return common;
}

/* Frames are mapped as video, whatever they hold. */
static gboolean
set_infos (GstOctBscanOutput *self, gint width, gint height)
{
  gint fps_n = 0, fps_d = 1;

  self->width = width;
  self->height = height;
  gst_structure_get_fraction (
      gst_caps_get_structure (self->caps, 0), "framerate", &fps_n, &fps_d);
  switch (self->kind) {
  case OUTPUT_COMPLEX:
    if (!gst_imaging_video_info_set_format (&self->info, GST_VIDEO_FORMAT_GRAY8,
            (guint) width * 2 * sizeof (gfloat), (guint) height))
      return FALSE;
    break;
  case OUTPUT_ENFACE:
    if (!gst_imaging_video_info_from_caps (&self->volume, self->caps))
      return FALSE;
    gst_video_info_set_format (&self->info, GST_VIDEO_FORMAT_GRAY8,
        (guint) width * sizeof (gfloat), 1);
    break;
  default:
    if (!gst_imaging_video_info_from_caps (&self->info, self->caps))
      return FALSE;
    break;
  }
  self->info.fps_n = fps_n;
  self->info.fps_d = fps_d;
  return TRUE;
}

/* Nobody downstream knows of these frames. */
static gboolean
make_pool (GstOctBscanOutput *self, GstImagingEngine *engine)
{
  GstAllocator *allocator =
      gst_imaging_engine_is_on_cuda (engine)
          ? gst_imaging_engine_allocator_new (engine, GST_IMAGING_MEMORY_DEVICE)
          : NULL;
  GstCaps *caps = gst_video_info_to_caps (&self->info);

  drop_pool (self);
  self->pool = gst_imaging_video_pool_new (allocator, caps, &self->info, FALSE);
  gst_clear_object (&allocator);
  gst_caps_unref (caps);
  return self->pool && gst_buffer_pool_set_active (self->pool, TRUE);
}

/* To lock pages takes milliseconds, in which many B-scans come: not while they
 * do. Images that are larger wait until they are wanted. */
static void
make_ready (GstBufferPool *pool, gsize size)
{
  gsize n = MIN (READY_SIZE / gst_imaging_memory_pitch (size), MOST_READY);
  GstStructure *config = gst_buffer_pool_get_config (pool);
  GstCaps *caps = NULL;
  guint pool_size = 0;

  gst_buffer_pool_config_get_params (config, &caps, &pool_size, NULL, NULL);
  gst_buffer_pool_config_set_params (config, caps, pool_size, (guint) n, 0);
  gst_buffer_pool_set_config (pool, config);
}

/* A pool as the answer to @query wants it. Returns: (nullable) */
static GstBufferPool *
decide_pool (GstOctBscanOutput *self, GstImagingEngine *engine,
    const GstQuery *answer, GstImagingMemoryMode mode)
{
  GstQuery *query = gst_query_copy (answer);
  GstBufferPool *pool = NULL;

  if (gst_imaging_allocation_decide_mode (engine, query, mode))
    gst_query_parse_nth_allocation_pool (query, 0, &pool, NULL, NULL, NULL);
  gst_query_unref (query);
  if (pool && mode == GST_IMAGING_MEMORY_PINNED &&
      gst_imaging_engine_is_on_cuda (engine))
    make_ready (pool, self->info.size);
  if (pool && !gst_buffer_pool_set_active (pool, TRUE))
    gst_clear_object (&pool);
  return pool;
}

/* Whether images may be born on the device first and in host memory later. */
static gboolean
may_turn_to_host (const GstOctBscanOutput *self, GstImagingEngine *engine)
{
  return !self->use_host && gst_imaging_engine_is_on_cuda (engine) &&
         !gst_imaging_context_info (gst_imaging_engine_context (engine))
              ->integrated;
}

/* A queue may let the query wait until the pipeline plays; who lets it play may
 * want a pad before. Returns: FALSE when it is no longer the output's pad that
 * has been asked */
static gboolean
ask_downstream (GstOctBscanOutput *self, GMutex *lock, GstQuery *query)
{
  GstPad *pad = gst_object_ref (self->pad);
  gboolean stays;

  g_mutex_unlock (lock);
  if (!gst_pad_peer_query (pad, query))
    GST_DEBUG_OBJECT (pad, "the peer proposes no allocation");
  g_mutex_lock (lock);
  stays = pad == self->pad;
  gst_object_unref (pad);
  return stays;
}

static GstFlowReturn
decide_allocation (
    GstOctBscanOutput *self, GstImagingEngine *engine, GMutex *lock)
{
  GstQuery *query;

  if (self->kind != OUTPUT_IMAGE)
    return make_pool (self, engine) ? GST_FLOW_OK : GST_FLOW_NOT_NEGOTIATED;
  query = gst_query_new_allocation (self->caps, TRUE);
  if (!ask_downstream (self, lock, query)) {
    gst_query_unref (query);
    return GST_FLOW_NOT_LINKED;
  }
  drop_pool (self);
  self->pool = decide_pool (self, engine, query,
      self->use_host ? GST_IMAGING_MEMORY_PINNED : GST_IMAGING_MEMORY_DEVICE);
  if (self->pool && may_turn_to_host (self, engine))
    self->host = decide_pool (self, engine, query, GST_IMAGING_MEMORY_PINNED);
  gst_query_unref (query);
  return self->pool ? GST_FLOW_OK : GST_FLOW_NOT_NEGOTIATED;
}

static void
post_too_large (GstOctBscanOutput *self, GstImagingEngine *engine)
{
  ImkError error;

  imk_error_set (&error, IMK_ERROR_CONFIG,
      "The images of %s, %d x %d, would have 4 GiB or more each. Crop more, or "
      "take fewer lines or bscans-per-volume.",
      GST_PAD_NAME (self->pad), self->width, self->height);
  gst_imaging_engine_post_error (engine, IMK_ERROR_CONFIG, &error);
}

/* A pad that is not linked has caps as well, since the segment, which must come
 * behind them, is stored on it, too. */
static gboolean
agree_on_caps (GstOctBscanOutput *self, GstImagingEngine *engine, gint width,
    gint height, gint fps_n, gint fps_d)
{
  GstCaps *caps = choose_caps (self, width, height, fps_n, fps_d);
  gboolean linked = gst_pad_is_linked (self->pad), ok = TRUE;

  if (gst_caps_is_empty (caps)) {
    gst_caps_unref (caps);
    return FALSE;
  }
  caps = gst_caps_fixate (caps);
  if (!self->caps || !gst_caps_is_equal (caps, self->caps)) {
    gst_caps_replace (&self->caps, caps);
    ok = set_infos (self, width, height);
    if (!ok && linked)
      post_too_large (self, engine);
    ok = ok &&
         (gst_pad_push_event (self->pad, gst_event_new_caps (caps)) || !linked);
  }
  gst_caps_unref (caps);
  return ok;
}

GstFlowReturn
gst_oct_bscan_output_negotiate (GstOctBscanOutput *self,
    GstImagingEngine *engine, GMutex *lock, gint width, gint height, gint fps_n,
    gint fps_d)
{
  gboolean linked = gst_pad_is_linked (self->pad);
  gboolean again = gst_pad_check_reconfigure (self->pad);
  GstFlowReturn flow;

  if (self->caps && (self->pool || !linked) && !again && self->width == width &&
      self->height == height && self->info.fps_n == fps_n &&
      self->info.fps_d == fps_d)
    return linked ? GST_FLOW_OK : GST_FLOW_NOT_LINKED;
  if (agree_on_caps (self, engine, width, height, fps_n, fps_d)) {
    flow =
        linked ? decide_allocation (self, engine, lock) : GST_FLOW_NOT_LINKED;
    if (flow != GST_FLOW_NOT_NEGOTIATED)
      return flow;
  }
  gst_oct_bscan_output_reset (self);
  gst_pad_mark_reconfigure (self->pad);
  if (!linked)
    return GST_FLOW_NOT_LINKED;
  return GST_PAD_IS_FLUSHING (self->pad) ? GST_FLOW_FLUSHING
                                         : GST_FLOW_NOT_NEGOTIATED;
}

gboolean
gst_oct_bscan_output_is_agreed (const GstOctBscanOutput *self, GstPad *pad)
{
  return self->caps && self->pool && !GST_PAD_NEEDS_RECONFIGURE (pad);
}

void
gst_oct_bscan_output_use_host (GstOctBscanOutput *self, gboolean use_host)
{
  GstBufferPool *ready = NULL;

  if (self->use_host == use_host)
    return;
  if (use_host)
    ready = g_steal_pointer (&self->host);
  drop_pool (self);
  self->pool = ready;
  self->use_host = use_host;
}

GstFlowReturn
gst_oct_bscan_output_acquire (GstOctBscanOutput *self, GstBuffer **buffer)
{
  return gst_buffer_pool_acquire_buffer (self->pool, buffer, NULL);
}

gsize
gst_oct_bscan_output_step (const GstVideoInfo *info)
{
  return gst_imaging_memory_pitch (info->size);
}

/* Downstream sees parts of these alone. */
static GstBufferPool *
block_pool_new (GstImagingEngine *engine, gsize size)
{
  GstAllocator *allocator =
      gst_imaging_engine_is_on_cuda (engine)
          ? gst_imaging_engine_allocator_new (engine, GST_IMAGING_MEMORY_PINNED)
          : NULL;
  GstBufferPool *pool = gst_buffer_pool_new ();
  GstStructure *config = gst_buffer_pool_get_config (pool);

  gst_buffer_pool_config_set_params (config, NULL, (guint) size, 0, 0);
  if (allocator)
    gst_buffer_pool_config_set_allocator (config, allocator, NULL);
  if (!gst_buffer_pool_set_config (pool, config) ||
      !gst_buffer_pool_set_active (pool, TRUE))
    gst_clear_object (&pool);
  gst_clear_object (&allocator);
  return pool;
}

GstFlowReturn
gst_oct_bscan_output_acquire_block (GstOctBscanOutput *self,
    GstImagingEngine *engine, guint n, GstBuffer **buffer)
{
  gsize size = n * gst_oct_bscan_output_step (&self->info);

  if (size > self->block_size)
    drop (&self->blocks);
  if (!self->blocks) {
    self->blocks = block_pool_new (engine, size);
    self->block_size = size;
  }
  return self->blocks
             ? gst_buffer_pool_acquire_buffer (self->blocks, buffer, NULL)
             : GST_FLOW_ERROR;
}
