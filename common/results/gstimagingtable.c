/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingtable.h"

#include "gstimagingmemory.h"
#include "gstimagingpool.h"

/* Memory that is open for the kernel. */
typedef struct {
  GstMemory *memory; /* NULL: not open */
  GstMapInfo map;
} Target;

struct _GstImagingTable {
  guint width, height;
  GstAllocator *allocator;    /* NULL: plain host memory */
  GstBufferPool *pool;        /* of float32 */
  GstBufferPool *values_pool; /* of float64 */
  GstBuffer *values;          /* NULL when not wanted; until the next begin */
  GstBufferPool *flags_pool;  /* (nullable): from the first begin_flags () on */
  GstBufferPool *device_pool; /* (nullable): of float32 that are handed over */
  gboolean hands_over;

  /* between begin and end */
  GstBuffer *data;
  GstBuffer *flags; /* (nullable); until it is taken */
  Target targets[3];
  gpointer stream;
};

static gsize
n_numbers (const GstImagingTable *self)
{
  return (gsize) self->width * self->height;
}

static GstBufferPool *
new_pool (GstAllocator *allocator, gsize size)
{
  GstBufferPool *pool = gst_imaging_pool_configure (
      gst_buffer_pool_new (), allocator, NULL, size, NULL);

  if (pool && !gst_buffer_pool_set_active (pool, TRUE))
    gst_clear_object (&pool);
  return pool;
}

GstImagingTable *
gst_imaging_table_new (
    GstImagingContext *context, guint width, guint height, ImkError *error)
{
  GstImagingTable *self = g_new0 (GstImagingTable, 1);

  self->width = width;
  self->height = height;
  if (context)
    self->allocator =
        gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_PINNED, NULL);
  /* the size of a pool's buffers is a guint */
  if (n_numbers (self) <= G_MAXUINT / sizeof (gdouble)) {
    self->pool = new_pool (self->allocator, n_numbers (self) * sizeof (gfloat));
    self->values_pool =
        new_pool (self->allocator, n_numbers (self) * sizeof (gdouble));
  }
  if (self->pool && self->values_pool)
    return self;
  IMK_NO_MEMORY (error, "for results of %u x %u numbers.", width, height);
  gst_imaging_table_free (self);
  return NULL;
}

void
gst_imaging_table_free (GstImagingTable *self)
{
  if (!self)
    return;
  gst_clear_buffer (&self->values);
  gst_clear_buffer (&self->flags);
  gst_imaging_pool_clear (&self->flags_pool);
  gst_imaging_pool_clear (&self->device_pool);
  gst_imaging_pool_clear (&self->pool);
  gst_imaging_pool_clear (&self->values_pool);
  gst_clear_object (&self->allocator);
  g_free (self);
}

void
gst_imaging_table_hand_over (GstImagingTable *self, gboolean hands_over)
{
  g_autoptr (GstAllocator) allocator = NULL;

  self->hands_over = hands_over && self->allocator;
  if (!self->hands_over || self->device_pool)
    return;
  allocator = gst_imaging_allocator_new (
      gst_imaging_allocator_context (GST_IMAGING_ALLOCATOR (self->allocator)),
      GST_IMAGING_MEMORY_DEVICE, NULL);
  self->device_pool = new_pool (allocator, n_numbers (self) * sizeof (gfloat));
  self->hands_over = self->device_pool != NULL;
}

/* The kernel's view of @buffer: the device's where there is one. */
static ImkStatus
open_target (GstImagingTable *self, Target *target, GstBuffer *buffer,
    guint width, guint height, ImkType type, ImkImage *image, ImkError *error)
{
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0);

  *image = imk_image_of_rows (NULL, type, width, height);
  if (self->allocator) {
    IMK_TRY (gst_imaging_memory_acquire (memory, self->stream, GST_MAP_WRITE,
        TRUE, NULL, &image->data, &image->location, error));
  } else if (gst_memory_map (memory, &target->map, GST_MAP_WRITE)) {
    image->data = target->map.data;
    image->location = IMK_LOCATION_HOST;
  } else {
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "The memory for results cannot be written.");
  }
  target->memory = memory;
  return IMK_OK;
}

static void
close_targets (GstImagingTable *self)
{
  for (guint i = 0; i < G_N_ELEMENTS (self->targets); i++) {
    Target *target = &self->targets[i];

    if (target->memory && self->allocator)
      gst_imaging_memory_release (
          target->memory, self->stream, GST_MAP_WRITE, !self->hands_over, NULL);
    else if (target->memory)
      gst_memory_unmap (target->memory, &target->map);
    target->memory = NULL;
  }
}

ImkStatus
gst_imaging_table_begin (GstImagingTable *self, gpointer stream,
    gboolean with_values, ImkImage images[2], ImkError *error)
{
  ImkImage *rounded = &images[with_values ? 1 : 0];
  GstBufferPool *pool;
  ImkStatus status = IMK_OK;

  gst_clear_buffer (&self->values);
  self->hands_over &= !with_values;
  pool = self->hands_over ? self->device_pool : self->pool;
  if (gst_buffer_pool_acquire_buffer (pool, &self->data, NULL) != GST_FLOW_OK ||
      (with_values && gst_buffer_pool_acquire_buffer (self->values_pool,
                          &self->values, NULL) != GST_FLOW_OK)) {
    gst_clear_buffer (&self->data);
    return IMK_NO_MEMORY (
        error, "for results of %u x %u numbers.", self->width, self->height);
  }
  self->stream = stream;
  images[1] = (ImkImage){0};
  if (with_values)
    status = open_target (self, &self->targets[1], self->values, self->width,
        self->height, IMK_TYPE_F64, &images[0], error);
  if (status == IMK_OK)
    status = open_target (self, &self->targets[0], self->data, self->width,
        self->height, IMK_TYPE_F32, rounded, error);
  if (status != IMK_OK) {
    close_targets (self);
    gst_clear_buffer (&self->data);
  }
  return status;
}

/* Maps of page-locked memory that nobody waits for cannot fail. */
static const gdouble *
find_values (GstImagingTable *self)
{
  GstMapInfo map;

  if (!gst_buffer_map (self->values, &map, GST_MAP_READ))
    return NULL;
  gst_buffer_unmap (self->values, &map);
  return (const gdouble *) map.data;
}

GstBuffer *
gst_imaging_table_end (GstImagingTable *self, const gdouble **values)
{
  close_targets (self);
  *values = self->values ? find_values (self) : NULL;
  return g_steal_pointer (&self->data);
}

GstBuffer *
gst_imaging_table_values (GstImagingTable *self)
{
  return self->values;
}

ImkStatus
gst_imaging_table_begin_flags (
    GstImagingTable *self, guint n, ImkImage *image, ImkError *error)
{
  gst_clear_buffer (&self->flags);
  if (!self->flags_pool)
    self->flags_pool = new_pool (self->allocator, n);
  if (!self->flags_pool || gst_buffer_pool_acquire_buffer (self->flags_pool,
                               &self->flags, NULL) != GST_FLOW_OK)
    return IMK_NO_MEMORY (error, "for %u flags.", n);
  return open_target (
      self, &self->targets[2], self->flags, n, 1, IMK_TYPE_U8, image, error);
}

GstBuffer *
gst_imaging_table_take_flags (GstImagingTable *self)
{
  return g_steal_pointer (&self->flags);
}
