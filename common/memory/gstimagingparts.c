/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingparts.h"

#include "gstimagingmemory.h"
#include "gstimagingpool.h"

struct _GstImagingParts {
  GstBufferPool parent;

  GMutex lock;
  GPtrArray *idle; /* of GstBuffer; the one that was used last goes first */
};

G_DEFINE_FINAL_TYPE (GstImagingParts, gst_imaging_parts, GST_TYPE_BUFFER_POOL)

static GstBufferPoolClass *
parent_class (void)
{
  return GST_BUFFER_POOL_CLASS (gst_imaging_parts_parent_class);
}

static GstFlowReturn
alloc (
    GstBufferPool *pool, GstBuffer **buffer, GstBufferPoolAcquireParams *params)
{
  *buffer = gst_buffer_new ();
  return GST_FLOW_OK;
}

static GstFlowReturn
acquire (
    GstBufferPool *pool, GstBuffer **buffer, GstBufferPoolAcquireParams *params)
{
  GstImagingParts *self = GST_IMAGING_PARTS (pool);

  g_mutex_lock (&self->lock);
  *buffer = self->idle->len > 0
                ? g_ptr_array_steal_index_fast (self->idle, self->idle->len - 1)
                : NULL;
  g_mutex_unlock (&self->lock);
  return *buffer ? GST_FLOW_OK
                 : parent_class ()->acquire_buffer (pool, buffer, params);
}

/* The parent keeps metadata of pools alone, and the size of memory that was
 * changed as it is. */
static void
reset (GstBufferPool *pool, GstBuffer *buffer)
{
  parent_class ()->reset_buffer (pool, buffer);
  gst_buffer_remove_all_memory (buffer);
  GST_BUFFER_FLAG_UNSET (buffer, GST_BUFFER_FLAG_TAG_MEMORY);
}

static void
release (GstBufferPool *pool, GstBuffer *buffer)
{
  GstImagingParts *self = GST_IMAGING_PARTS (pool);

  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->idle, buffer);
  g_mutex_unlock (&self->lock);
}

/* The parent counts and frees what it finds in its own queue. */
static gboolean
stop (GstBufferPool *pool)
{
  GstImagingParts *self = GST_IMAGING_PARTS (pool);

  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->idle->len; i++)
    parent_class ()->release_buffer (pool, g_ptr_array_index (self->idle, i));
  g_ptr_array_set_size (self->idle, 0);
  g_mutex_unlock (&self->lock);
  return parent_class ()->stop (pool);
}

static void
finalize (GObject *object)
{
  GstImagingParts *self = GST_IMAGING_PARTS (object);

  g_ptr_array_unref (self->idle);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gst_imaging_parts_parent_class)->finalize (object);
}

static void
gst_imaging_parts_class_init (GstImagingPartsClass *klass)
{
  GstBufferPoolClass *pool_class = GST_BUFFER_POOL_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = finalize;
  pool_class->alloc_buffer = alloc;
  pool_class->acquire_buffer = acquire;
  pool_class->reset_buffer = reset;
  pool_class->release_buffer = release;
  pool_class->stop = stop;
}

static void
gst_imaging_parts_init (GstImagingParts *self)
{
  g_mutex_init (&self->lock);
  self->idle = g_ptr_array_new ();
}

GstBufferPool *
gst_imaging_parts_new (void)
{
  return gst_imaging_pool_configure (
      gst_object_ref_sink (g_object_new (GST_TYPE_IMAGING_PARTS, NULL)), NULL,
      NULL, 0, NULL);
}
