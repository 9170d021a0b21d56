/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingtable.h"

#include "gstimagingmemory.h"

struct _GstImagingTable {
  guint width, height;
  GstAllocator *allocator;    /* NULL: plain host memory */
  GstBufferPool *pool;        /* of float32 */
  GstBufferPool *values_pool; /* of float64 */
  GstBuffer *values;          /* NULL when not wanted; until the next begin */

  /* between begin and end */
  GstBuffer *data;
  GstMemory *target;
  gpointer stream;
  GstMapInfo map;
};

static gsize
n_numbers (const GstImagingTable *self)
{
  return (gsize) self->width * self->height;
}

static GstBufferPool *
new_pool (GstAllocator *allocator, gsize size)
{
  GstBufferPool *pool = gst_buffer_pool_new ();
  GstStructure *config = gst_buffer_pool_get_config (pool);
  GstAllocationParams params;

  gst_allocation_params_init (&params);
  gst_buffer_pool_config_set_params (config, NULL, size, 0, 0);
  gst_buffer_pool_config_set_allocator (config, allocator, &params);
  if (gst_buffer_pool_set_config (pool, config) &&
      gst_buffer_pool_set_active (pool, TRUE))
    return pool;
  gst_object_unref (pool);
  return NULL;
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
  imk_error_set (error, IMK_ERROR_MEMORY,
      "There is no memory for results of %u x %u numbers.", width, height);
  gst_imaging_table_free (self);
  return NULL;
}

void
gst_imaging_table_free (GstImagingTable *self)
{
  if (!self)
    return;
  gst_clear_buffer (&self->values);
  if (self->pool)
    gst_buffer_pool_set_active (self->pool, FALSE);
  if (self->values_pool)
    gst_buffer_pool_set_active (self->values_pool, FALSE);
  gst_clear_object (&self->pool);
  gst_clear_object (&self->values_pool);
  gst_clear_object (&self->allocator);
  g_free (self);
}

/* The kernel's view of the target: the device's where there is one. */
static ImkStatus
open_target (GstImagingTable *self, ImkImage *image, ImkError *error)
{
  if (self->allocator)
    return gst_imaging_memory_acquire (self->target, self->stream,
        GST_MAP_WRITE, TRUE, NULL, &image->data, &image->location, error);
  if (!gst_memory_map (self->target, &self->map, GST_MAP_WRITE))
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "The memory for results cannot be written.");
  image->data = self->map.data;
  image->location = IMK_LOCATION_HOST;
  return IMK_OK;
}

static void
close_target (GstImagingTable *self)
{
  if (self->allocator)
    gst_imaging_memory_release (
        self->target, self->stream, GST_MAP_WRITE, TRUE, NULL);
  else
    gst_memory_unmap (self->target, &self->map);
}

ImkStatus
gst_imaging_table_begin (GstImagingTable *self, gpointer stream,
    gboolean with_values, ImkImage *image, ImkError *error)
{
  ImkType type = with_values ? IMK_TYPE_F64 : IMK_TYPE_F32;
  ImkStatus status;

  gst_clear_buffer (&self->values);
  if (gst_buffer_pool_acquire_buffer (self->pool, &self->data, NULL) !=
          GST_FLOW_OK ||
      (with_values && gst_buffer_pool_acquire_buffer (self->values_pool,
                          &self->values, NULL) != GST_FLOW_OK)) {
    gst_clear_buffer (&self->data);
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for results of %u x %u numbers.", self->width,
        self->height);
  }
  self->stream = stream;
  self->target =
      gst_buffer_peek_memory (with_values ? self->values : self->data, 0);
  *image = (ImkImage){
      .width = self->width,
      .height = self->height,
      .channels = 1,
      .type = type,
      .stride = self->width * imk_type_size (type),
  };
  status = open_target (self, image, error);
  if (status != IMK_OK)
    gst_clear_buffer (&self->data);
  return status;
}

/* On its own, so that the compiler knows enough to make vectors of it. */
static void
round_all (gfloat *restrict to, const gdouble *restrict from, gsize n)
{
  for (gsize i = 0; i < n; i++)
    to[i] = (gfloat) from[i];
}

/* Maps of page-locked memory that nobody waits for cannot fail. */
static const gdouble *
round_values (GstImagingTable *self)
{
  GstMapInfo values, data;

  if (!gst_buffer_map (self->values, &values, GST_MAP_READ))
    return NULL;
  if (gst_buffer_map (self->data, &data, GST_MAP_WRITE)) {
    round_all (
        (gfloat *) data.data, (const gdouble *) values.data, n_numbers (self));
    gst_buffer_unmap (self->data, &data);
  }
  gst_buffer_unmap (self->values, &values);
  return (const gdouble *) values.data;
}

GstBuffer *
gst_imaging_table_end (GstImagingTable *self, const gdouble **values)
{
  close_target (self);
  *values = self->values ? round_values (self) : NULL;
  return g_steal_pointer (&self->data);
}

GstBuffer *
gst_imaging_table_values (GstImagingTable *self)
{
  return self->values;
}
