/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Surfaces for frames that go on as memory:NVMM. */
#include "gstimagingnvmm.h"

#ifdef HAVE_NVMM

#include "gstimaging-private.h"
#include "gstimagingpool.h"

#define MEMORY_TYPE "GstImagingNvmmMemory"

/* --- memory -------------------------------------------------------------- */

typedef struct {
  GstMemory memory;
  NvBufSurface *surface;
} NvmmMemory;

#define GST_TYPE_IMAGING_NVMM_ALLOCATOR (gst_imaging_nvmm_allocator_get_type ())
G_DECLARE_FINAL_TYPE (GstImagingNvmmAllocator, gst_imaging_nvmm_allocator,
    GST_IMAGING, NVMM_ALLOCATOR, GstAllocator)

struct _GstImagingNvmmAllocator {
  GstAllocator parent;
  GstImagingContext *context;
  NvBufSurfaceCreateParams params;
};

G_DEFINE_FINAL_TYPE (
    GstImagingNvmmAllocator, gst_imaging_nvmm_allocator, GST_TYPE_ALLOCATOR)

static gpointer
map (GstMemory *memory, gsize maxsize, GstMapFlags flags)
{
  return ((NvmmMemory *) (memory->parent ? memory->parent : memory))->surface;
}

static void
unmap (GstMemory *memory)
{
}

/* A copy is the same surface: two handles of it that both end it must not be.
 * It is marked read-only, as all shared memory. */
static GstMemory *
share (GstMemory *memory, gssize offset, gssize size)
{
  GstMemory *parent = memory->parent ? memory->parent : memory;
  NvmmMemory *self = g_new0 (NvmmMemory, 1);

  gst_memory_init (&self->memory,
      GST_MINI_OBJECT_FLAGS (parent) | GST_MINI_OBJECT_FLAG_LOCK_READONLY,
      memory->allocator, parent, memory->maxsize, memory->align, memory->offset,
      memory->size);
  return &self->memory;
}

static GstMemory *
alloc (GstAllocator *allocator, gsize size, GstAllocationParams *params)
{
  GstImagingNvmmAllocator *self = GST_IMAGING_NVMM_ALLOCATOR (allocator);
  const GstImagingNvmmLibrary *library = gst_imaging_nvmm_library (NULL);
  NvBufSurfaceCreateParams wanted = self->params;
  NvBufSurface *surface = NULL;
  NvmmMemory *memory;
  gint result = -1;

  if (library && gst_imaging_context_push (self->context, NULL) == IMK_OK) {
    result = library->create (&surface, 1, &wanted);
    gst_imaging_context_pop (self->context);
  }
  if (result != 0 || !surface) {
    GST_ERROR ("NvBufSurfaceCreate of %ux%u, format %d, on GPU %u gave %d.",
        wanted.width, wanted.height, (gint) wanted.colorFormat, wanted.gpuId,
        result);
    return NULL;
  }
  surface->numFilled = 1;
  memory = g_new0 (NvmmMemory, 1);
  gst_memory_init (&memory->memory, params->flags, allocator, NULL,
      sizeof (NvBufSurface), 0, 0, sizeof (NvBufSurface));
  memory->surface = surface;
  return &memory->memory;
}

static void
free_memory (GstAllocator *allocator, GstMemory *memory)
{
  NvBufSurface *surface = ((NvmmMemory *) memory)->surface;

  if (surface)
    gst_imaging_nvmm_library (NULL)->destroy (surface);
  g_free (memory);
}

static void
gst_imaging_nvmm_allocator_finalize (GObject *object)
{
  g_object_unref (GST_IMAGING_NVMM_ALLOCATOR (object)->context);
  G_OBJECT_CLASS (gst_imaging_nvmm_allocator_parent_class)->finalize (object);
}

static void
gst_imaging_nvmm_allocator_class_init (GstImagingNvmmAllocatorClass *klass)
{
  GstAllocatorClass *allocator_class = GST_ALLOCATOR_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gst_imaging_nvmm_allocator_finalize;
  allocator_class->alloc = alloc;
  allocator_class->free = free_memory;
}

static void
gst_imaging_nvmm_allocator_init (GstImagingNvmmAllocator *self)
{
  GstAllocator *allocator = GST_ALLOCATOR (self);

  allocator->mem_type = MEMORY_TYPE;
  allocator->mem_map = map;
  allocator->mem_unmap = unmap;
  allocator->mem_share = share;
  allocator->mem_copy = share;
  GST_OBJECT_FLAG_SET (allocator, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
}

/* --- the pool ------------------------------------------------------------ */

static NvBufSurfaceColorFormat
color_format (GstVideoFormat format)
{
  switch (format) {
  case GST_VIDEO_FORMAT_GRAY8:
    return NVBUF_COLOR_FORMAT_GRAY8;
  case GST_VIDEO_FORMAT_NV12:
    return NVBUF_COLOR_FORMAT_NV12;
  case GST_VIDEO_FORMAT_RGBA:
    return NVBUF_COLOR_FORMAT_RGBA;
  case GST_VIDEO_FORMAT_P010_10LE:
    return NVBUF_COLOR_FORMAT_NV12_10LE;
  case GST_VIDEO_FORMAT_NV16:
    return NVBUF_COLOR_FORMAT_NV16;
  default:
    return NVBUF_COLOR_FORMAT_INVALID;
  }
}

static GstAllocator *
allocator_new (GstImagingContext *context, const GstVideoInfo *info)
{
  GstImagingNvmmAllocator *self =
      g_object_new (GST_TYPE_IMAGING_NVMM_ALLOCATOR, NULL);

  self->context = g_object_ref (context);
  self->params = (NvBufSurfaceCreateParams){
      .gpuId = gst_imaging_context_device_id (context),
      .width = info->width,
      .height = info->height,
      .colorFormat = color_format (GST_VIDEO_INFO_FORMAT (info)),
      .layout = NVBUF_LAYOUT_PITCH,
      .memType = NVBUF_MEM_DEFAULT,
  };
  return gst_object_ref_sink (GST_ALLOCATOR (self));
}

/* Without an upper bound: a queue may hold any number of frames, and the pool
 * makes no more surfaces than are held at once. */
GstBufferPool *
gst_imaging_nvmm_pool_new (GstImagingContext *context, GstCaps *caps,
    const GstVideoInfo *info, GstAllocator **allocator, guint *size)
{
  GstBufferPool *pool;

  if (color_format (GST_VIDEO_INFO_FORMAT (info)) == NVBUF_COLOR_FORMAT_INVALID)
    return NULL;
  *allocator = allocator_new (context, info);
  *size = sizeof (NvBufSurface);
  pool = gst_imaging_pool_configure (
      gst_buffer_pool_new (), *allocator, caps, *size, NULL);
  if (!pool)
    gst_clear_object (allocator);
  return pool;
}

#endif
