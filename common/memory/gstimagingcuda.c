/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingcuda.h"

#ifdef HAVE_GST_CUDA

#define GST_USE_UNSTABLE_API
#include <gst/cuda/gstcudabufferpool.h>
#include <gst/cuda/gstcudacontext.h>
#include <gst/cuda/gstcudaloader.h>
#include <gst/cuda/gstcudamemory.h>
#include <gst/cuda/gstcudautils.h>

#include "gstimaging-private.h"
#include "gstimagingpool.h"

/* --- contexts ---------------------------------------------------------- */

static GQuark
wrapper_quark (void)
{
  return g_quark_from_static_string ("gst-imaging-cuda-context");
}

static GstImagingContext *
from_gst_cuda (GstCudaContext *cuda, ImkError *error)
{
  guint device_id = 0;

  g_object_get (cuda, "cuda-device-id", &device_id, NULL);
  return gst_imaging_context_get_for_handle ((gint) device_id,
      gst_cuda_context_get_handle (cuda), G_OBJECT (cuda), error);
}

/* Our context as theirs: the one it came from, or a wrapper made once. */
static GstCudaContext *
to_gst_cuda (GstImagingContext *context)
{
  static GMutex lock;
  GObject *owner = gst_imaging_context_owner (context);
  GstCudaContext *cuda;

  if (owner && GST_IS_CUDA_CONTEXT (owner))
    return GST_CUDA_CONTEXT (owner);
  GST_IMAGING_HOLD (&lock);
  cuda = g_object_get_qdata (G_OBJECT (context), wrapper_quark ());
  if (!cuda && gst_cuda_load_library ()) {
    cuda = gst_cuda_context_new_wrapped (gst_imaging_context_handle (context),
        gst_imaging_context_device_id (context));
    if (cuda)
      g_object_set_qdata_full (
          G_OBJECT (context), wrapper_quark (), cuda, gst_object_unref);
  }
  return cuda;
}

GstImagingContext *
gst_imaging_cuda_take_context (
    GstElement *element, gint device_id, GstContext *message)
{
  GstCudaContext *cuda = NULL;

  if (!gst_context_has_context_type (message, GST_CUDA_CONTEXT_TYPE) ||
      !gst_cuda_load_library ())
    return NULL;
  gst_cuda_handle_set_context (element, message, device_id, &cuda);
  return cuda ? from_gst_cuda (cuda, NULL) : NULL;
}

static gboolean
query_peer (GstElement *element, GstPad *pad, gpointer query)
{
  /* FALSE ends the search: the peer has answered */
  return !gst_pad_peer_query (pad, query);
}

GstImagingContext *
gst_imaging_cuda_find_context (
    GstElement *element, gint device_id, ImkError *error)
{
  g_autoptr (GstQuery) query = gst_query_new_context (GST_CUDA_CONTEXT_TYPE);
  GstImagingContext *found = NULL;
  GstContext *message = NULL;

  if (!gst_element_foreach_src_pad (element, query_peer, query) ||
      !gst_element_foreach_sink_pad (element, query_peer, query))
    gst_query_parse_context (query, &message);
  if (message)
    found = gst_imaging_cuda_take_context (element, device_id, message);
  /* The application may answer in gst_element_set_context (). */
  if (!found)
    gst_element_post_message (
        element, gst_message_new_need_context (
                     GST_OBJECT (element), GST_CUDA_CONTEXT_TYPE));
  return found;
}

gboolean
gst_imaging_cuda_answer_context (
    GstElement *element, GstImagingContext *context, GstQuery *query)
{
  GstCudaContext *cuda = to_gst_cuda (context);

  return cuda && gst_cuda_handle_context_query (element, query, cuda);
}

/* --- frames ------------------------------------------------------------ */

static gboolean
cuda_can_map (
    GstBuffer *buffer, GstImagingContext *context, GstImagingReach reach)
{
  GstMemory *memory;

  if (reach == GST_IMAGING_REACH_HOST || gst_buffer_n_memory (buffer) != 1)
    return FALSE;
  memory = gst_buffer_peek_memory (buffer, 0);
  return gst_is_cuda_memory (memory) &&
         gst_cuda_context_get_handle (GST_CUDA_MEMORY_CAST (memory)->context) ==
             gst_imaging_context_handle (context);
}

static ImkStatus
cuda_map (GstImagingFrame *frame, const GstVideoInfo *info,
    GstImagingReach reach, GstImagingStats *stats, ImkError *error)
{
#if GST_CHECK_VERSION(1, 24, 0)
  /* the writer may not have waited for its stream; this waits for it */
  gst_cuda_memory_sync (
      GST_CUDA_MEMORY_CAST (gst_buffer_peek_memory (frame->buffer, 0)));
#endif
  if (!gst_video_frame_map (&frame->video, info, frame->buffer,
          (GstMapFlags) (frame->access | GST_MAP_CUDA |
                         GST_VIDEO_FRAME_MAP_FLAG_NO_REF)))
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "A CUDAMemory buffer could not be mapped for the device.");
  gst_imaging_frame_take_planes (frame, IMK_LOCATION_DEVICE, "CUDAMemory");
  return IMK_OK;
}

/* GstCudaMemory 1.22 knows no stream: its users expect finished work, both in
 * what they read and in what they are about to overwrite. Later ones may, and
 * find nothing pending. */
static ImkStatus
cuda_unmap (GstImagingFrame *frame, gboolean done, ImkError *error)
{
  const ImkDevice *device = NULL;
  ImkStatus status = done ? IMK_OK : imk_device_get (&device, error);

  if (status == IMK_OK && !done)
    status = device->stream_synchronize (frame->stream, error);
  gst_video_frame_unmap (&frame->video);
  return status;
}

const GstImagingMapper gst_imaging_cuda_mapper = {
    cuda_can_map, cuda_map, cuda_unmap};

/* --- views -------------------------------------------------------------- */

gboolean
gst_imaging_cuda_is_memory (GstMemory *memory)
{
  return gst_is_cuda_memory (memory);
}

ImkStatus
gst_imaging_cuda_memory_map (GstMemory *memory, GstMapInfo *map,
    gpointer *pointer, gint *device_id, ImkError *error)
{
  guint id = 0;

#if GST_CHECK_VERSION(1, 24, 0)
  gst_cuda_memory_sync (GST_CUDA_MEMORY_CAST (memory));
#endif
  if (!gst_memory_map (memory, map, GST_MAP_READ | GST_MAP_CUDA))
    return imk_error_set (error, IMK_ERROR_DEVICE,
        "A CUDAMemory buffer could not be mapped for the device.");
  g_object_get (
      GST_CUDA_MEMORY_CAST (memory)->context, "cuda-device-id", &id, NULL);
  *pointer = map->data;
  *device_id = (gint) id;
  return IMK_OK;
}

/* An event, as the legacy default stream waits for others only when something
 * is put on it. */
static ImkStatus
wait_for_default_stream (ImkError *error)
{
  const ImkDevice *device;
  gpointer event = NULL;
  ImkStatus status = imk_device_get (&device, error);

  if (status == IMK_OK)
    status = device->event_new (&event, error);
  if (status == IMK_OK)
    status = device->event_record (event, NULL, error);
  if (status == IMK_OK)
    status = device->event_synchronize (event, error);
  if (event)
    device->event_free (event);
  return status;
}

void
gst_imaging_cuda_memory_unmap (GstMemory *memory, GstMapInfo *map)
{
  ImkError error;

  if (gst_cuda_context_push (GST_CUDA_MEMORY_CAST (memory)->context)) {
    if (wait_for_default_stream (&error) != IMK_OK)
      GST_WARNING ("The end of a view could not be awaited. %s", error.message);
    gst_cuda_context_pop (NULL);
  }
  gst_memory_unmap (memory, map);
}

GstBufferPool *
gst_imaging_cuda_pool_new (GstImagingContext *context, GstCaps *caps,
    const GstVideoInfo *info, guint *size)
{
  GstCudaContext *cuda = to_gst_cuda (context);
  GstBufferPool *pool;
  g_autoptr (GstStructure) config = NULL;

  if (!cuda)
    return NULL;
  /* GStreamer's CUDA elements do it, and there may be none */
  gst_cuda_memory_init_once ();
  pool = gst_imaging_pool_configure (gst_cuda_buffer_pool_new (cuda), NULL,
      caps, info->size, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (!pool)
    return NULL;
  /* The pool rounds pitches up, and with them the size. */
  config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_get_params (config, NULL, size, NULL, NULL);
  return pool;
}

#endif
