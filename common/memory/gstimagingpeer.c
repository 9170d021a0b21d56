/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingpeer.h"

#include "gstimaging-private.h"
#include "gstimagingpool.h"
#include "gstimagingstorage.h"

gboolean
gst_imaging_peer_has (GstBuffer *buffer, GstImagingContext *context)
{
  GstMemory *memory = gst_imaging_buffer_peek_memory (buffer);

  /* an integrated device works on page-locked memory, not on copies of it */
  return memory && gst_imaging_memory_is_on_device (memory) &&
         !gst_imaging_context_info (context)->integrated &&
         gst_imaging_context_device_id (gst_imaging_memory_context (memory)) !=
             gst_imaging_context_device_id (context);
}

void
gst_imaging_peer_clear (GstImagingPeer *self)
{
  for (guint i = 0; i < GST_IMAGING_PEER_TURNS; i++)
    gst_clear_buffer (&self->recent[i]);
  gst_imaging_pool_clear (&self->pool);
  g_clear_object (&self->from);
}

static ImkStatus
open_way (GstImagingContext *from, GstImagingContext *to, ImkError *error)
{
  GST_IMAGING_ENTER (from, error);
  gst_imaging_context_device (from)->enable_peer (
      gst_imaging_context_handle (to));
  return IMK_OK;
}

static ImkStatus
open_pool (GstImagingPeer *self, GstMemory *memory, GstImagingContext *context,
    GstImagingStats *stats, ImkError *error)
{
  GstImagingContext *from = gst_imaging_memory_context (memory);
  gsize size = memory->size;
  g_autoptr (GstAllocator) allocator = NULL;

  if (self->from == from && self->size == size)
    return IMK_OK;
  gst_imaging_peer_clear (self);
  IMK_TRY (open_way (from, context, error));
  self->from = g_object_ref (from);
  self->size = size;
  allocator =
      gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_DEVICE, stats);
  self->pool = gst_imaging_pool_configure (
      gst_buffer_pool_new (), allocator, NULL, size, NULL);
  gst_buffer_pool_set_active (self->pool, TRUE);
  return IMK_OK;
}

static void
copy_video_meta (GstBuffer *to, GstBuffer *from)
{
  GstVideoMeta *meta = gst_buffer_get_video_meta (from);

  if (meta)
    gst_buffer_add_video_meta_full (to, meta->flags, meta->format, meta->width,
        meta->height, meta->n_planes, meta->offset, meta->stride);
}

GstBuffer *
gst_imaging_peer_import (GstImagingPeer *self, GstBuffer *buffer,
    GstImagingContext *context, GstImagingStats *stats, ImkError *error)
{
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0);
  GstBuffer *copy = NULL;
  ImkStatus status;

  if (open_pool (self, memory, context, stats, error) != IMK_OK)
    return NULL;
  if (gst_buffer_pool_acquire_buffer (self->pool, &copy, NULL) != GST_FLOW_OK) {
    imk_error_set (error, IMK_ERROR_MEMORY,
        "CUDA device %d has no memory for a frame of %" G_GSIZE_FORMAT
        " bytes that device %d has made. Take smaller frames, or one device.",
        gst_imaging_context_device_id (context), memory->size,
        gst_imaging_context_device_id (self->from));
    return NULL;
  }
  status = gst_imaging_storage_copy (
      gst_imaging_memory_storage (gst_buffer_peek_memory (copy, 0)),
      gst_imaging_memory_storage (memory), memory->offset, memory->size, error);
  if (status != IMK_OK) {
    gst_buffer_unref (copy);
    return NULL;
  }
  copy_video_meta (copy, buffer);
  gst_buffer_replace (&self->recent[self->turn], copy);
  self->turn = (self->turn + 1) % GST_IMAGING_PEER_TURNS;
  gst_imaging_stats_add_from_peers (stats, memory->size);
  return copy;
}
