/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine and the device: context, stream, and memory for both. */
#include "gstimagingengine-private.h"

#include "gstimaging-private.h"
#include "gstimagingcuda.h"
#include "gstimagingnvmm.h"

static const ImkDevice *
device_of (GstImagingEngine *self)
{
  return gst_imaging_context_device (self->context);
}

/* --- context and stream -------------------------------------------------- */

/* Under the object lock. Returns: the device that the user names, or -1 */
static gint
named_device (const GstImagingEngine *self)
{
  return self->first_device >= 0 ? self->first_device : self->device_id;
}

void
gst_imaging_engine_close_import_pool (GstImagingEngine *self)
{
  gst_imaging_pool_clear (&self->import_pool);
  gst_imaging_peer_clear (&self->peer);
}

static void
close_stream (GstImagingEngine *self)
{
  gpointer stream = g_steal_pointer (&self->stream);

  /* a context that is gone has taken its streams along */
  if (!stream || gst_imaging_context_push (self->context, NULL) != IMK_OK)
    return;
  /* nobody may compare a dead stream's pointer with pending work on it */
  device_of (self)->stream_synchronize (stream, NULL);
  device_of (self)->stream_free (stream);
  gst_imaging_context_pop (self->context);
}

void
gst_imaging_engine_close_device (GstImagingEngine *self)
{
  gst_imaging_engine_close_import_pool (self);
  if (self->context)
    close_stream (self);
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self->element));
  g_clear_object (&self->context);
}

/* Under the object lock. The device that the user names goes first. */
static GstImagingContext *
ref_offered (GstImagingEngine *self)
{
  GstImagingContext *offered = self->offered;
  gint device_id = named_device (self);

  if (offered && device_id >= 0 &&
      gst_imaging_context_device_id (offered) != device_id)
    offered = NULL;
  return offered ? g_object_ref (offered) : NULL;
}

/* The application's context, a neighbour's, or the device's primary one. */
static GstImagingContext *
find_context (GstImagingEngine *self, ImkError *error)
{
  GstImagingContext *found = NULL;
  gint device_id;

  GST_OBJECT_LOCK (self->element);
  device_id = named_device (self);
  found = ref_offered (self);
  GST_OBJECT_UNLOCK (self->element);

  if (!found && imk_backend_load ("cuda", error) != IMK_OK)
    return NULL;
#ifdef HAVE_GST_CUDA
  if (!found && self->format.in_memory != GST_IMAGING_CAPS_NVMM &&
      self->format.out_memory != GST_IMAGING_CAPS_NVMM)
    found = gst_imaging_cuda_find_context (self->element, device_id, error);
  if (!found) { /* the application may have answered by now */
    GST_OBJECT_LOCK (self->element);
    found = ref_offered (self);
    GST_OBJECT_UNLOCK (self->element);
  }
#endif
  return found ? found : gst_imaging_context_get (device_id, error);
}

static ImkStatus
open_device (GstImagingEngine *self, ImkError *error)
{
  if (self->stream)
    return IMK_OK;
  if (!self->context) {
    GstImagingContext *context = find_context (self, error);

    GST_OBJECT_LOCK (self->element); /* queries come from other threads */
    self->context = context;
    GST_OBJECT_UNLOCK (self->element);
  }
  if (!self->context)
    return IMK_ERROR_UNAVAILABLE;
  GST_IMAGING_ENTER (self->context, error);
  return device_of (self)->stream_new (&self->stream, error);
}

ImkStatus
gst_imaging_engine_open_device (GstImagingEngine *self, ImkError *error)
{
  ImkStatus ahead = self->ahead;

  self->ahead = IMK_OK; /* the attempt after this one is a new one */
  if (ahead == IMK_OK)
    return open_device (self, error);
  return imk_error_set (error, ahead, "%s", self->ahead_error.message);
}

void
gst_imaging_engine_open_ahead (GstImagingEngine *self)
{
  if (self->ahead == IMK_OK) /* a failure is reported before another attempt */
    self->ahead = open_device (self, &self->ahead_error);
}

void
gst_imaging_engine_prefer_primary (GstImagingEngine *self)
{
  g_autoptr (GstImagingContext) primary = NULL;
  gboolean is_offered;
  gint device_id;

  if (!self->context)
    return;
  GST_OBJECT_LOCK (self->element);
  device_id = named_device (self);
  is_offered = self->offered == self->context;
  GST_OBJECT_UNLOCK (self->element);
  primary = is_offered ? NULL : gst_imaging_context_get (device_id, NULL);
  if (primary && primary != self->context)
    gst_imaging_engine_close_device (self); /* the next one is found anew */
}

void
gst_imaging_engine_adopt_context (GstImagingEngine *self, GstBuffer *input)
{
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self->element));
  if (!self->context && !self->offered && named_device (self) < 0)
    self->context = g_object_ref (
        gst_imaging_memory_context (gst_buffer_peek_memory (input, 0)));
}

void
gst_imaging_engine_set_context (GstImagingEngine *self, GstContext *message)
{
#ifdef HAVE_GST_CUDA
  g_autoptr (GstImagingContext) offered = NULL;
  gint device_id;

  GST_OBJECT_LOCK (self->element);
  device_id = named_device (self);
  GST_OBJECT_UNLOCK (self->element);
  offered = gst_imaging_cuda_take_context (self->element, device_id, message);
  if (offered) {
    GST_OBJECT_LOCK (self->element);
    g_set_object (&self->offered, offered);
    GST_OBJECT_UNLOCK (self->element);
  }
#endif
}

gboolean
gst_imaging_engine_query (GstImagingEngine *self, GstQuery *query)
{
#ifdef HAVE_GST_CUDA
  g_autoptr (GstImagingContext) context = NULL;

  if (GST_QUERY_TYPE (query) != GST_QUERY_CONTEXT)
    return FALSE;
  GST_OBJECT_LOCK (self->element);
  context = self->context ? g_object_ref (self->context) : NULL;
  GST_OBJECT_UNLOCK (self->element);
  return context &&
         gst_imaging_cuda_answer_context (self->element, context, query);
#else
  return FALSE;
#endif
}

/* Whether cuda-devices counts. Without CUDA auto takes the CPU, and the start
 * says why there is none for cuda. */
static gboolean
may_use_devices (GstImagingEngine *self)
{
  return gst_imaging_engine_choice (self) != GST_IMAGING_BACKEND_CPU &&
         imk_backend_load ("cuda", NULL) == IMK_OK;
}

gboolean
gst_imaging_engine_choose_devices (
    GstImagingEngine *self, const GstImagingArray *list, GArray **others)
{
  gint first = -1;
  GArray *ids;
  ImkError error;

  if (list && may_use_devices (self))
    ids = gst_imaging_context_list_ids (list->values, list->n, &error);
  else
    ids = g_array_new (FALSE, FALSE, sizeof (gint));
  if (!ids) {
    GST_ELEMENT_ERROR (
        self->element, LIBRARY, SETTINGS, ("%s", error.message), (NULL));
    return FALSE;
  }
  if (ids->len > 0) {
    first = g_array_index (ids, gint, 0);
    g_array_remove_index (ids, 0);
  }
  GST_OBJECT_LOCK (self->element);
  self->first_device = first;
  GST_OBJECT_UNLOCK (self->element);
  if (others)
    *others = ids;
  else
    g_array_unref (ids);
  return TRUE;
}

GstImagingContext *
gst_imaging_engine_context (GstImagingEngine *self)
{
  return self->context;
}

GstImagingContext *
gst_imaging_engine_ref_context (GstImagingEngine *self)
{
  GstImagingContext *context = NULL;

  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self->element));
  if (self->is_open && self->active == IMK_BACKEND_CUDA)
    context = g_object_ref (self->context);
  return context;
}

gpointer
gst_imaging_engine_stream (GstImagingEngine *self)
{
  return self->stream;
}

ImkStatus
gst_imaging_engine_synchronize (GstImagingEngine *self, ImkError *error)
{
  return self->active == IMK_BACKEND_CUDA
             ? device_of (self)->stream_synchronize (self->stream, error)
             : IMK_OK;
}

/* --- frames -------------------------------------------------------------- */

GstAllocator *
gst_imaging_engine_allocator_new (
    GstImagingEngine *self, GstImagingMemoryMode mode)
{
  return gst_imaging_engine_allocator_new_in (self, self->context, mode);
}

GstAllocator *
gst_imaging_engine_allocator_new_in (GstImagingEngine *self,
    GstImagingContext *context, GstImagingMemoryMode mode)
{
  GstAllocator *allocator =
      gst_imaging_allocator_new (context, mode, self->stats);

  gst_imaging_allocator_use_slabs (
      GST_IMAGING_ALLOCATOR (allocator), self->slab_size);
  return allocator;
}

void
gst_imaging_engine_use_slabs (GstImagingEngine *self, gsize size)
{
  self->slab_size = size;
}

static GstBufferPool *
get_import_pool (GstImagingEngine *self)
{
  g_autoptr (GstAllocator) allocator = NULL;
  /* of the carrier, where frames are no video */
  g_autoptr (GstCaps) caps = NULL;

  if (self->import_pool)
    return self->import_pool;
  GST_INFO_OBJECT (self->element,
      "upstream does not fill the page-locked buffers that it is offered: each "
      "frame is copied into one first");
  allocator =
      gst_imaging_engine_allocator_new (self, GST_IMAGING_MEMORY_UPLOAD);
  caps = gst_video_info_to_caps (&self->format.info);
  self->import_pool =
      gst_imaging_video_pool_new (allocator, caps, &self->format.info, FALSE);
  if (self->import_pool)
    gst_buffer_pool_set_active (self->import_pool, TRUE);
  return self->import_pool;
}

/* What caps know of a buffer and the buffer itself does not show. */
static ImkStatus
adopt_surface (GstImagingEngine *self, GstBuffer *buffer,
    GstImagingCapsMemory memory, ImkError *error)
{
#ifdef HAVE_NVMM
  if (memory == GST_IMAGING_CAPS_NVMM)
    return gst_imaging_nvmm_adopt (buffer, self->context, error);
#endif
  return IMK_OK;
}

GstBuffer *
gst_imaging_engine_reachable (GstImagingEngine *self, GstBuffer *buffer,
    GstImagingReach reach, ImkError *error)
{
  if (adopt_surface (self, buffer, self->format.in_memory, error) != IMK_OK)
    return NULL;
  if (gst_imaging_frame_can_map (buffer, self->context, reach))
    return buffer;
  if (gst_imaging_peer_has (buffer, self->context))
    return gst_imaging_peer_import (
        &self->peer, buffer, self->context, self->stats, error);
  return gst_imaging_frame_import (
      buffer, &self->format.info, get_import_pool (self), self->stats, error);
}

ImkStatus
gst_imaging_engine_map (GstImagingEngine *self, GstBuffer *buffer,
    const GstVideoInfo *info, GstMapFlags access, GstImagingReach reach,
    GstImagingFrame *frame, ImkError *error)
{
  return gst_imaging_engine_map_on (
      self, buffer, info, access, reach, self->stream, frame, error);
}

ImkStatus
gst_imaging_engine_map_on (GstImagingEngine *self, GstBuffer *buffer,
    const GstVideoInfo *info, GstMapFlags access, GstImagingReach reach,
    gpointer stream, GstImagingFrame *frame, ImkError *error)
{
  IMK_TRY (adopt_surface (self, buffer,
      access & GST_MAP_WRITE ? self->format.out_memory : self->format.in_memory,
      error));
  return gst_imaging_frame_map (buffer, info, access, reach, self->context,
      stream, self->stats, frame, error);
}
