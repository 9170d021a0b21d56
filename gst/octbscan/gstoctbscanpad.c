/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscanpad.h"

#include <string.h>

#include "gstimagingallocation.h"
#include "gstimagingmemory.h"
#include "gstimagingpicture.h"

/* Bytes of images that are made in advance in page-locked memory, and the
 * largest number of images. */
#define READY_SIZE ((gsize) 16 << 20)
#define MOST_READY 128

G_DEFINE_FINAL_TYPE (
    GstOctBscanPad, gst_oct_bscan_pad, GST_TYPE_IMAGING_SRC_PAD)

static void
drop_pools (GstOctBscanPad *self)
{
  gst_imaging_pool_clear (&self->pool);
  gst_imaging_pool_clear (&self->host);
  gst_imaging_pool_clear (&self->blocks);
}

void
gst_oct_bscan_pad_forget (GstOctBscanPad *self)
{
  drop_pools (self);
  gst_imaging_src_pad_forget_caps (GST_IMAGING_SRC_PAD (self));
}

/* --- caps ---------------------------------------------------------------- */

static gboolean
is_tensor (const GstStructure *s)
{
  return gst_structure_has_name (s, "other/tensors");
}

/* Video is first: a peer that takes anything shows it. */
static GstCaps *
make_offers (GstOctBscanPad *self, const GstOctBscanPadFormat *f)
{
  g_autofree gchar *dims = g_strdup_printf (
      f->output == COMPLEX ? "2:%d:%d:1" : "%d:%d:1:1", f->width, f->height);
  GstCaps *caps =
      gst_caps_make_writable (gst_pad_get_pad_template_caps (GST_PAD (self)));

  gst_caps_set_simple (
      caps, "framerate", GST_TYPE_FRACTION, f->fps_n, f->fps_d, NULL);
  for (guint i = 0; i < gst_caps_get_size (caps); i++) {
    GstStructure *s = gst_caps_get_structure (caps, i);

    if (is_tensor (s))
      gst_structure_set (s, "dimensions", G_TYPE_STRING, dims, NULL);
    else
      gst_structure_set (s, "width", G_TYPE_INT, f->width, "height", G_TYPE_INT,
          f->height, "pixel-aspect-ratio", GST_TYPE_FRACTION, 1, 1, NULL);
  }
  return caps;
}

static gboolean
set_floats (GstVideoInfo *info, gint n, gint rows)
{
  return gst_imaging_video_info_set_format (
      info, GST_VIDEO_FORMAT_GRAY8, (guint) n * sizeof (gfloat), (guint) rows);
}

/* Frames are mapped as video, whatever they hold. */
static gboolean
set_infos (
    GstOctBscanPad *self, const GstCaps *caps, const GstOctBscanPadFormat *f)
{
  GstVideoInfo *image = f->output == ENFACE ? &self->volume : &self->info;
  gint n = f->output == COMPLEX ? 2 * f->width : f->width;

  self->format = *f;
  self->is_float = is_tensor (gst_caps_get_structure (caps, 0));
  if (self->is_float ? !set_floats (image, n, f->height)
                     : !gst_imaging_video_info_from_caps (image, caps))
    return FALSE;
  if (f->output == ENFACE)
    set_floats (&self->info, f->width, 1);
  self->info.fps_n = f->fps_n;
  self->info.fps_d = f->fps_d;
  return TRUE;
}

static void
post_too_large (GstOctBscanPad *self, GstImagingEngine *engine)
{
  ImkError error;

  imk_error_set (&error, IMK_ERROR_CONFIG,
      "The images of %s, %d x %d, would have 4 GiB or more each. Crop more, or "
      "take fewer lines or bscans-per-volume.",
      GST_PAD_NAME (self), self->format.width, self->format.height);
  gst_imaging_engine_post_error (engine, IMK_ERROR_CONFIG, &error);
}

static GstFlowReturn
negotiate_caps (GstOctBscanPad *self, GstImagingEngine *engine,
    const GstOctBscanPadFormat *format)
{
  GstImagingSrcPad *pad = GST_IMAGING_SRC_PAD (self);
  GstCaps *caps;

  if (!gst_pad_is_linked (GST_PAD (self)))
    return GST_FLOW_NOT_LINKED;
  caps = gst_imaging_src_pad_choose_caps (
      pad, GST_IMAGING_PREFER_PEERS, make_offers (self, format));
  if (caps && !set_infos (self, caps, format)) {
    post_too_large (self, engine);
    gst_clear_caps (&caps);
  }
  return gst_imaging_src_pad_set_caps (pad, caps);
}

/* --- memory -------------------------------------------------------------- */

/* Locking pages takes milliseconds, in which many B-scans arrive: it is done
 * before. Larger images are made when they are needed. */
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
decide_pool (GstOctBscanPad *self, GstImagingEngine *engine,
    const GstQuery *answer, GstImagingMemoryMode mode)
{
  g_autoptr (GstQuery) query = gst_query_copy (answer);
  GstBufferPool *pool = NULL;

  if (gst_imaging_allocation_decide_mode (engine, query, mode))
    gst_query_parse_nth_allocation_pool (query, 0, &pool, NULL, NULL, NULL);
  if (pool && mode == GST_IMAGING_MEMORY_PINNED &&
      gst_imaging_engine_is_on_cuda (engine))
    make_ready (pool, self->info.size);
  if (pool && !gst_buffer_pool_set_active (pool, TRUE))
    gst_clear_object (&pool);
  return pool;
}

/* Memory of tensors and en-face images is not shared with downstream. */
static gboolean
has_pool (const GstOctBscanPad *self)
{
  return self->format.output != ENFACE && !self->is_float;
}

static GstFlowReturn
decide_allocation (GstOctBscanPad *self, GstImagingEngine *engine, GMutex *lock)
{
  GstCaps *caps = gst_imaging_src_pad_caps (GST_IMAGING_SRC_PAD (self));
  g_autoptr (GstQuery) query = NULL;

  drop_pools (self);
  if (!has_pool (self))
    return GST_FLOW_OK;
  query = gst_query_new_allocation (caps, TRUE);
  /* a queue may answer only when the pipeline plays */
  g_mutex_unlock (lock);
  if (!gst_pad_peer_query (GST_PAD (self), query))
    GST_DEBUG_OBJECT (self, "the peer proposes no allocation");
  g_mutex_lock (lock);
  self->pool = decide_pool (self, engine, query,
      self->use_host ? GST_IMAGING_MEMORY_PINNED : GST_IMAGING_MEMORY_DEVICE);
  /* images may be in device memory first and in host memory later */
  if (self->pool && !self->use_host && gst_imaging_engine_is_on_cuda (engine) &&
      !gst_imaging_context_info (gst_imaging_engine_context (engine))
           ->integrated)
    self->host = decide_pool (self, engine, query, GST_IMAGING_MEMORY_PINNED);
  return self->pool ? GST_FLOW_OK : GST_FLOW_NOT_NEGOTIATED;
}

gboolean
gst_oct_bscan_pad_is_negotiated (GstOctBscanPad *self)
{
  return gst_imaging_src_pad_caps (GST_IMAGING_SRC_PAD (self)) &&
         (self->pool || !has_pool (self)) && !GST_PAD_NEEDS_RECONFIGURE (self);
}

GstFlowReturn
gst_oct_bscan_pad_negotiate (GstOctBscanPad *self, GstImagingEngine *engine,
    GMutex *lock, const GstOctBscanPadFormat *format)
{
  GstFlowReturn flow;

  if (gst_pad_is_linked (GST_PAD (self)) &&
      gst_oct_bscan_pad_is_negotiated (self) &&
      memcmp (&self->format, format, sizeof (*format)) == 0)
    return GST_FLOW_OK;
  flow = negotiate_caps (self, engine, format);
  if (flow == GST_FLOW_OK)
    flow = decide_allocation (self, engine, lock);
  if (flow != GST_FLOW_OK)
    gst_oct_bscan_pad_forget (self);
  return flow;
}

void
gst_oct_bscan_pad_use_host (GstOctBscanPad *self, gboolean use_host)
{
  GstBufferPool *ready = NULL;

  if (self->use_host == use_host)
    return;
  if (use_host)
    ready = g_steal_pointer (&self->host);
  drop_pools (self);
  self->pool = ready;
  self->use_host = use_host;
  gst_imaging_src_pad_use_host (GST_IMAGING_SRC_PAD (self), use_host);
}

GstFlowReturn
gst_oct_bscan_pad_acquire (
    GstOctBscanPad *self, GstImagingEngine *engine, GstBuffer **buffer)
{
  if (self->pool)
    return gst_buffer_pool_acquire_buffer (self->pool, buffer, NULL);
  return gst_imaging_src_pad_acquire (GST_IMAGING_SRC_PAD (self), engine,
             &self->info, buffer, NULL) == IMK_OK
             ? GST_FLOW_OK
             : GST_FLOW_ERROR;
}

gsize
gst_oct_bscan_pad_step (const GstVideoInfo *info)
{
  return gst_imaging_memory_pitch (info->size);
}

/* Downstream sees only parts of a block. */
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
gst_oct_bscan_pad_acquire_block (
    GstOctBscanPad *self, GstImagingEngine *engine, guint n, GstBuffer **buffer)
{
  gsize size = n * gst_oct_bscan_pad_step (&self->info);

  if (size > self->block_size)
    gst_imaging_pool_clear (&self->blocks);
  if (!self->blocks) {
    self->blocks = block_pool_new (engine, size);
    self->block_size = size;
  }
  return self->blocks
             ? gst_buffer_pool_acquire_buffer (self->blocks, buffer, NULL)
             : GST_FLOW_ERROR;
}

/* --- the class ------------------------------------------------------------ */

static void
gst_oct_bscan_pad_finalize (GObject *object)
{
  drop_pools (GST_OCT_BSCAN_PAD (object));
  G_OBJECT_CLASS (gst_oct_bscan_pad_parent_class)->finalize (object);
}

static void
gst_oct_bscan_pad_class_init (GstOctBscanPadClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_oct_bscan_pad_finalize;
  GST_IMAGING_SRC_PAD_CLASS (klass)->keeps_stream = TRUE;
}

static void
gst_oct_bscan_pad_init (GstOctBscanPad *self)
{
  /* a peer that takes another format may be linked later */
  GST_OBJECT_FLAG_UNSET (self, GST_PAD_FLAG_FIXED_CAPS);
}
