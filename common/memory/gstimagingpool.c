/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingpool.h"

#include "gstimagingmemory.h"

/* Its address beside a frame: to find its place among others takes a look at
 * none of them, which another core has had last. */
typedef struct {
  const guint8 *address;
  GstBuffer *buffer;
} Idle;

struct _GstImagingPool {
  GstVideoBufferPool parent;

  GMutex lock; /* of all below */
  GCond changed;
  GArray *idle;       /* of Idle, by address */
  const guint8 *last; /* address of the frame that was given out last */
  guint n_released;   /* counts, and wraps around */
  guint n_waiting;    /* threads */
  gboolean flushing;
};

G_DEFINE_FINAL_TYPE (
    GstImagingPool, gst_imaging_pool, GST_TYPE_VIDEO_BUFFER_POOL)

static GstBufferPoolClass *
parent_class (void)
{
  return GST_BUFFER_POOL_CLASS (gst_imaging_pool_parent_class);
}

static const guint8 *
address_of (GstBuffer *buffer)
{
  return gst_imaging_memory_address (gst_buffer_peek_memory (buffer, 0));
}

/* Returns: how many are idle at @address or before. Call with the lock held. */
static guint
count_upto (const GstImagingPool *self, const guint8 *address)
{
  guint low = 0, high = self->idle->len;

  while (low < high) {
    guint middle = (low + high) / 2;

    if (g_array_index (self->idle, Idle, middle).address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The next one behind the last; from the beginning after the end. Call with the
 * lock held. */
static GstBuffer *
take_idle (GstImagingPool *self)
{
  guint next = count_upto (self, self->last);
  Idle idle;

  if (self->idle->len == 0)
    return NULL;
  if (next == self->idle->len)
    next = 0;
  idle = g_array_index (self->idle, Idle, next);
  g_array_remove_index (self->idle, next);
  self->last = idle.address;
  return idle.buffer;
}

/* Call with the lock held. */
static void
put_idle (GstImagingPool *self, GstBuffer *buffer)
{
  const Idle idle = {address_of (buffer), buffer};

  g_array_insert_val (self->idle, count_upto (self, idle.address), idle);
}

/* What was changed outside, and ordinary memory in place of ours, is for the
 * parent. */
static gboolean
is_as_it_was (GstBuffer *buffer)
{
  return !GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_TAG_MEMORY) &&
         gst_imaging_buffer_peek_memory (buffer) &&
         gst_buffer_is_all_memory_writable (buffer);
}

/* A new one, as long as there may be more. Locking the pages of a block takes
 * milliseconds. Call with the lock held; it is released meanwhile, so that
 * returned frames do not wait. */
static GstFlowReturn
acquire_new (GstImagingPool *self, GstBuffer **buffer)
{
  GstBufferPoolAcquireParams no_wait = {
      .flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT};
  GstFlowReturn flow;

  g_mutex_unlock (&self->lock);
  flow = parent_class ()->acquire_buffer (
      GST_BUFFER_POOL (self), buffer, &no_wait);
  g_mutex_lock (&self->lock);
  if (flow == GST_FLOW_OK && is_as_it_was (*buffer))
    self->last = address_of (*buffer);
  return flow;
}

static GstFlowReturn
acquire (
    GstBufferPool *pool, GstBuffer **buffer, GstBufferPoolAcquireParams *params)
{
  GstImagingPool *self = GST_IMAGING_POOL (pool);
  gboolean waits =
      !params || !(params->flags & GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT);
  GstFlowReturn flow = GST_FLOW_OK;

  GST_IMAGING_HOLD (&self->lock);
  while (!(*buffer = take_idle (self))) {
    guint n_released = self->n_released;

    /* none is idle with the parent */
    flow = self->flushing ? GST_FLOW_FLUSHING : acquire_new (self, buffer);
    if (flow != GST_FLOW_EOS)
      break;
    if (n_released != self->n_released || self->flushing)
      continue; /* meanwhile */
    if (!waits)
      break;
    self->n_waiting++;
    g_cond_wait (&self->changed, &self->lock);
    self->n_waiting--;
  }
  return *buffer ? GST_FLOW_OK : flow;
}

static void
release (GstBufferPool *pool, GstBuffer *buffer)
{
  GstImagingPool *self = GST_IMAGING_POOL (pool);

  GST_IMAGING_HOLD (&self->lock);
  if (is_as_it_was (buffer))
    put_idle (self, buffer);
  else
    parent_class ()->release_buffer (pool, buffer);
  self->n_released++;
  if (self->n_waiting > 0) /* GLib asks the system also for nobody */
    g_cond_broadcast (&self->changed);
}

static gboolean
stop (GstBufferPool *pool)
{
  GstImagingPool *self = GST_IMAGING_POOL (pool);
  GstBuffer *buffer;

  /* the parent frees what is idle there */
  g_mutex_lock (&self->lock);
  while ((buffer = take_idle (self)))
    parent_class ()->release_buffer (pool, buffer);
  g_mutex_unlock (&self->lock);
  return parent_class ()->stop (pool);
}

static void
set_flushing (GstBufferPool *pool, gboolean flushing)
{
  GstImagingPool *self = GST_IMAGING_POOL (pool);

  GST_IMAGING_HOLD (&self->lock);
  self->flushing = flushing;
  g_cond_broadcast (&self->changed);
}

static void
flush_start (GstBufferPool *pool)
{
  set_flushing (pool, TRUE);
}

static void
flush_stop (GstBufferPool *pool)
{
  set_flushing (pool, FALSE);
}

static void
finalize (GObject *object)
{
  GstImagingPool *self = GST_IMAGING_POOL (object);

  g_array_unref (self->idle);
  g_cond_clear (&self->changed);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gst_imaging_pool_parent_class)->finalize (object);
}

static void
gst_imaging_pool_class_init (GstImagingPoolClass *klass)
{
  GstBufferPoolClass *pool_class = GST_BUFFER_POOL_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = finalize;
  pool_class->acquire_buffer = acquire;
  pool_class->release_buffer = release;
  pool_class->stop = stop;
  pool_class->flush_start = flush_start;
  pool_class->flush_stop = flush_stop;
}

static void
gst_imaging_pool_init (GstImagingPool *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->idle = g_array_new (FALSE, FALSE, sizeof (Idle));
}

GstBufferPool *
gst_imaging_pool_new (void)
{
  return gst_object_ref_sink (g_object_new (GST_TYPE_IMAGING_POOL, NULL));
}

GstBufferPool *
gst_imaging_pool_configure (GstBufferPool *pool, GstAllocator *allocator,
    GstCaps *caps, gsize size, const gchar *option)
{
  GstStructure *config = gst_buffer_pool_get_config (pool);

  gst_buffer_pool_config_set_params (config, caps, (guint) size, 0, 0);
  if (allocator)
    gst_buffer_pool_config_set_allocator (config, allocator, NULL);
  if (option)
    gst_buffer_pool_config_add_option (config, option);
  if (!gst_buffer_pool_set_config (pool, config))
    gst_clear_object (&pool);
  return pool;
}
