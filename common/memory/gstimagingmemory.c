/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimaging-private.h"
#include "gstimagingstorage.h"

#define MEMORY_TYPE "GstImagingMemory"

typedef struct {
  GstMemory memory;
  GstImagingStorage *storage;
  GstBuffer *whole; /* (nullable): of which it is a part */
} GstImagingMemory;

G_DEFINE_FINAL_TYPE (
    GstImagingAllocator, gst_imaging_allocator, GST_TYPE_ALLOCATOR)

GstImagingStorage *
gst_imaging_memory_storage (GstMemory *memory)
{
  return ((GstImagingMemory *) memory)->storage;
}

ImkStatus
gst_imaging_memory_acquire (GstMemory *memory, gpointer stream,
    GstMapFlags access, gboolean allow_mapped, GstImagingStats *stats,
    gpointer *pointer, ImkLocation *location, ImkError *error)
{
  GstImagingStorage *s = gst_imaging_memory_storage (memory);
  gboolean mapped = FALSE;
  ImkStatus status;

  if (!gst_mini_object_lock (GST_MINI_OBJECT_CAST (memory),
          (GstLockFlags) (access & GST_MAP_READWRITE)))
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "A buffer that others hold cannot be written.");
  status = gst_imaging_storage_acquire (
      s, stream, access, allow_mapped, stats, &mapped, error);
  if (status == IMK_OK) {
    *pointer = (guint8 *) (mapped ? s->mapped : s->device) + memory->offset;
    *location = mapped ? IMK_LOCATION_HOST_MAPPED : IMK_LOCATION_DEVICE;
  }
  if (status != IMK_OK)
    gst_mini_object_unlock (GST_MINI_OBJECT_CAST (memory),
        (GstLockFlags) (access & GST_MAP_READWRITE));
  return status;
}

ImkStatus
gst_imaging_memory_release (GstMemory *memory, gpointer stream,
    GstMapFlags access, gboolean done, ImkError *error)
{
  ImkStatus status = gst_imaging_storage_release (
      gst_imaging_memory_storage (memory), stream, access, done, error);

  gst_mini_object_unlock (GST_MINI_OBJECT_CAST (memory),
      (GstLockFlags) (access & GST_MAP_READWRITE));
  return status;
}

static GstMemory *
memory_new (GstAllocator *allocator, GstImagingStorage *storage,
    GstMemory *parent, GstMemoryFlags flags, gsize maxsize, gsize align,
    gsize offset, gsize size)
{
  GstImagingMemory *self = g_new0 (GstImagingMemory, 1);

  gst_memory_init (
      &self->memory, flags, allocator, parent, maxsize, align, offset, size);
  self->storage = storage;
  return &self->memory;
}

/* --- GstMemory --------------------------------------------------------- */

static gpointer
map_full (GstMemory *memory, GstMapInfo *info, gsize maxsize)
{
  GstImagingStorage *s = gst_imaging_memory_storage (memory);
  ImkError error;

  if (gst_imaging_storage_map (s, (info->flags & GST_MAP_WRITE) != 0, &error) ==
      IMK_OK)
    return s->host;
  GST_ERROR ("Mapping %" G_GSIZE_FORMAT " bytes for the CPU failed. %s",
      s->size, error.message);
  return NULL;
}

static void
unmap_full (GstMemory *memory, GstMapInfo *info)
{
}

GstBuffer *
gst_imaging_buffer_part (
    GstBuffer *whole, gsize offset, gsize size, GstBufferPool *parts)
{
  GstMemory *memory = gst_buffer_peek_memory (whole, 0), *part;
  GstBuffer *buffer = NULL;

  if (!gst_is_imaging_memory (memory)) {
    buffer =
        gst_buffer_copy_region (whole, GST_BUFFER_COPY_MEMORY, offset, size);
    gst_buffer_add_parent_buffer_meta (buffer, whole);
    return buffer;
  }
  if (!parts ||
      gst_buffer_pool_acquire_buffer (parts, &buffer, NULL) != GST_FLOW_OK)
    buffer = gst_buffer_new ();
  part = memory_new (memory->allocator,
      gst_imaging_storage_ref (gst_imaging_memory_storage (memory)), NULL,
      GST_MINI_OBJECT_FLAGS (memory) | GST_MEMORY_FLAG_READONLY,
      memory->maxsize, memory->align, memory->offset + offset, size);
  ((GstImagingMemory *) part)->whole = gst_buffer_ref (whole);
  gst_buffer_append_memory (buffer, part);
  return buffer;
}

static gboolean
is_span (GstMemory *first, GstMemory *second, gsize *offset)
{
  if (offset)
    *offset = first->offset - first->parent->offset;
  return gst_imaging_memory_storage (first) ==
             gst_imaging_memory_storage (second) &&
         first->offset + first->size == second->offset;
}

static GstMemory *
share (GstMemory *memory, gssize offset, gssize size)
{
  GstMemory *parent = memory->parent ? memory->parent : memory;

  if (size == -1)
    size = memory->size - offset;
  return memory_new (memory->allocator,
      gst_imaging_storage_ref (gst_imaging_memory_storage (memory)), parent,
      GST_MINI_OBJECT_FLAGS (parent) | GST_MINI_OBJECT_FLAG_LOCK_READONLY,
      memory->maxsize, memory->align, memory->offset + offset, size);
}

static GstMemory *
copy (GstMemory *memory, gssize offset, gssize size)
{
  GstImagingAllocator *allocator = GST_IMAGING_ALLOCATOR (memory->allocator);
  GstImagingStorage *from = gst_imaging_memory_storage (memory), *to;
  ImkError error;

  if (size == -1)
    size = (gssize) memory->size > offset ? memory->size - offset : 0;
  to = gst_imaging_storage_new (allocator, MAX (size, 1), &error);
  if (to && gst_imaging_storage_copy (
                to, from, memory->offset + offset, size, &error) == IMK_OK)
    return memory_new (
        memory->allocator, to, NULL, 0, to->size, memory->align, 0, size);
  if (to)
    gst_imaging_storage_unref (to);
  GST_ERROR ("Copying %" G_GSSIZE_FORMAT " bytes on the device failed. %s",
      size, error.message);
  return NULL;
}

gboolean
gst_is_imaging_memory (GstMemory *memory)
{
  return GST_IS_IMAGING_ALLOCATOR (memory->allocator);
}

GstImagingContext *
gst_imaging_memory_context (GstMemory *memory)
{
  return gst_imaging_memory_storage (memory)->context;
}

gboolean
gst_imaging_memory_is_on_device (GstMemory *memory)
{
  return gst_is_imaging_memory (memory) &&
         gst_imaging_storage_is_on_device (gst_imaging_memory_storage (memory));
}

GstMemory *
gst_imaging_buffer_peek_memory (GstBuffer *buffer)
{
  GstMemory *memory = gst_buffer_n_memory (buffer) == 1
                          ? gst_buffer_peek_memory (buffer, 0)
                          : NULL;

  return memory && gst_is_imaging_memory (memory) ? memory : NULL;
}

const gchar *
gst_imaging_buffer_memory_name (GstBuffer *buffer)
{
  GstMemory *memory = gst_imaging_buffer_peek_memory (buffer);

  if (!memory)
    return "system";
  return gst_imaging_memory_is_on_device (memory) ? "device" : "pinned";
}

void
gst_imaging_pool_clear (GstBufferPool **pool)
{
  if (*pool)
    gst_buffer_pool_set_active (*pool, FALSE);
  gst_clear_object (pool);
}

gsize
gst_imaging_memory_pitch (gsize size)
{
  return (size + HOST_ALIGNMENT - 1) / HOST_ALIGNMENT * HOST_ALIGNMENT;
}

gconstpointer
gst_imaging_memory_address (GstMemory *memory)
{
  return (const guint8 *) gst_imaging_memory_storage (memory)->host +
         memory->offset;
}

gboolean
gst_imaging_memory_are_neighbours (GstMemory *first, GstMemory *second)
{
  GstImagingStorage *a = gst_imaging_memory_storage (first),
                    *b = gst_imaging_memory_storage (second);

  return a->slab && a->slab == b->slab && first->offset == second->offset &&
         (guint8 *) b->host ==
             (guint8 *) a->host + gst_imaging_memory_pitch (a->size);
}

/* --- GstAllocator ------------------------------------------------------ */

static GstMemory *
alloc (GstAllocator *allocator, gsize size, GstAllocationParams *params)
{
  gsize maxsize = size + params->prefix + params->padding;
  ImkError error;
  GstImagingStorage *s = gst_imaging_storage_new (
      GST_IMAGING_ALLOCATOR (allocator), MAX (maxsize, 1), &error);

  /* Both allocations of CUDA are aligned to 256 bytes, beyond any request. */
  if (s)
    return memory_new (allocator, s, NULL,
        params->flags &
            ~(GST_MEMORY_FLAG_ZERO_PREFIXED | GST_MEMORY_FLAG_ZERO_PADDED),
        maxsize, params->align, params->prefix, size);
  if (GST_IMAGING_ALLOCATOR (allocator)->plain_on_failure) {
    GST_WARNING ("Ordinary memory for %" G_GSIZE_FORMAT " bytes. %s", maxsize,
        error.message);
    return gst_allocator_alloc (NULL, size, params);
  }
  GST_ERROR ("Allocating %" G_GSIZE_FORMAT " bytes failed. %s", maxsize,
      error.message);
  return NULL;
}

static void
free_memory (GstAllocator *allocator, GstMemory *memory)
{
  GstBuffer *whole = ((GstImagingMemory *) memory)->whole;

  gst_imaging_storage_unref (gst_imaging_memory_storage (memory));
  g_free (memory);
  gst_clear_buffer (&whole); /* last: a pool expects no other reference */
}

GstAllocator *
gst_imaging_allocator_new (GstImagingContext *context,
    GstImagingMemoryMode mode, GstImagingStats *stats)
{
  GstImagingAllocator *self = g_object_new (GST_TYPE_IMAGING_ALLOCATOR, NULL);

  self->context = g_object_ref (context);
  self->mode = mode;
  self->stats = stats ? gst_imaging_stats_ref (stats) : NULL;
  return gst_object_ref_sink (GST_ALLOCATOR (self));
}

void
gst_imaging_allocator_allow_plain (GstImagingAllocator *self)
{
  self->plain_on_failure = TRUE;
}

void
gst_imaging_allocator_use_slabs (GstImagingAllocator *self, gsize size)
{
  self->slab_size = size;
}

gboolean
gst_imaging_allocator_has_slabs (GstImagingAllocator *self)
{
  return self->slab_size > 0 && self->mode != GST_IMAGING_MEMORY_DEVICE;
}

GstImagingContext *
gst_imaging_allocator_context (GstImagingAllocator *self)
{
  return self->context;
}

static void
gst_imaging_allocator_finalize (GObject *object)
{
  GstImagingAllocator *self = GST_IMAGING_ALLOCATOR (object);

  if (self->slab && gst_imaging_context_push (self->context, NULL) == IMK_OK) {
    gst_imaging_slab_unref (self->slab);
    gst_imaging_context_pop (self->context);
  }
  g_mutex_clear (&self->lock);
  g_object_unref (self->context);
  if (self->stats)
    gst_imaging_stats_unref (self->stats);
  G_OBJECT_CLASS (gst_imaging_allocator_parent_class)->finalize (object);
}

static void
gst_imaging_allocator_class_init (GstImagingAllocatorClass *klass)
{
  GstAllocatorClass *allocator_class = GST_ALLOCATOR_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gst_imaging_allocator_finalize;
  allocator_class->alloc = alloc;
  allocator_class->free = free_memory;
}

static void
gst_imaging_allocator_init (GstImagingAllocator *self)
{
  GstAllocator *allocator = GST_ALLOCATOR (self);

  gst_imaging_init_debug ();
  g_mutex_init (&self->lock);
  allocator->mem_type = MEMORY_TYPE;
  allocator->mem_map_full = map_full;
  allocator->mem_unmap_full = unmap_full;
  allocator->mem_share = share;
  allocator->mem_copy = copy;
  allocator->mem_is_span = is_span;
  GST_OBJECT_FLAG_SET (allocator, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
}
