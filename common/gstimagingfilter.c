/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingfilter.h"

#include "gstimaging-private.h"
#include "gstimagingcuda.h"
#include "gstimagingframe-private.h"
#include "gstimagingresultspad.h"

#define DEFAULT_BACKEND GST_IMAGING_BACKEND_AUTO
#define DEFAULT_CUDA_DEVICE_ID -1
#define DEFAULT_N_THREADS 0

enum {
  PROP_0,
  PROP_BACKEND,
  PROP_CUDA_DEVICE_ID,
  PROP_N_THREADS,
  PROP_ACTIVE_BACKEND,
  PROP_ACTIVE_MEMORY,
  PROP_STATS,
};

typedef struct {
  /* properties, under the object lock */
  GstImagingBackendChoice choice;
  gint device_id;
  guint n_threads;
  const gchar *active_memory; /* static string */
  ImkBackend active;
  GstImagingContext *offered; /* by the application, before start */

  /* of the streaming thread */
  GstVideoInfo info;
  GstCaps *caps;
  gboolean in_is_cuda, out_is_cuda; /* memory:CUDAMemory in the caps */
  gboolean is_open;
  gboolean has_posted; /* an error, since a kernel was last opened */
  gboolean gave_up;    /* on the device, until the next start */
  GstImagingContext *context;
  gpointer stream;
  GstBufferPool *import_pool;
  guint64 frame_number;
  GstClockTime entered;

  GstImagingStats *stats;
  GstPadChainFunction base_chain;
  GstImagingResultsPad *results; /* under the object lock */
  GstFlowReturn results_flow;
} GstImagingFilterPrivate;

typedef GstImagingFilterPrivate Private;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (
    GstImagingFilter, gst_imaging_filter, GST_TYPE_BASE_TRANSFORM)

static Private *
private_of (GstImagingFilter *self)
{
  return gst_imaging_filter_get_instance_private (self);
}

static ImkStatus open_kernel (
    GstImagingFilter *self, ImkBackend backend, ImkError *error);

static const ImkDevice *
device_of (Private *priv)
{
  return gst_imaging_context_device (priv->context);
}

/* --- what subclasses ask ------------------------------------------------ */

guint
gst_imaging_filter_n_threads (GstImagingFilter *self)
{
  guint n;

  GST_OBJECT_LOCK (self);
  n = private_of (self)->n_threads;
  GST_OBJECT_UNLOCK (self);
  return n;
}

GstImagingContext *
gst_imaging_filter_open_context (GstImagingFilter *self)
{
  return private_of (self)->context;
}

ImkStatus
gst_imaging_filter_synchronize (GstImagingFilter *self, ImkError *error)
{
  Private *priv = private_of (self);

  return priv->active == IMK_BACKEND_CUDA
             ? device_of (priv)->stream_synchronize (priv->stream, error)
             : IMK_OK;
}

ImkStatus
gst_imaging_filter_reopen (GstImagingFilter *self, ImkError *error)
{
  Private *priv = private_of (self);

  return open_kernel (self, priv->active, error);
}

guint64
gst_imaging_filter_frame_number (GstImagingFilter *self)
{
  return private_of (self)->frame_number;
}

/* --- the device --------------------------------------------------------- */

static GstImagingBackendChoice
get_choice (GstImagingFilter *self)
{
  Private *priv = private_of (self);
  GstImagingBackendChoice choice;

  GST_OBJECT_LOCK (self);
  choice = priv->choice;
  GST_OBJECT_UNLOCK (self);
  return choice;
}

static void
close_stream (Private *priv)
{
  if (!priv->stream || gst_imaging_context_push (priv->context, NULL) != IMK_OK)
    return;
  /* nobody may compare a dead stream's pointer with pending work on it */
  device_of (priv)->stream_synchronize (priv->stream, NULL);
  device_of (priv)->stream_free (priv->stream);
  gst_imaging_context_pop (priv->context);
  priv->stream = NULL;
}

static void
close_device (GstImagingFilter *self)
{
  Private *priv = private_of (self);

  if (priv->import_pool)
    gst_buffer_pool_set_active (priv->import_pool, FALSE);
  gst_clear_object (&priv->import_pool);
  if (priv->context)
    close_stream (priv);
  GST_OBJECT_LOCK (self);
  g_clear_object (&priv->context);
  GST_OBJECT_UNLOCK (self);
}

/* The application's context, a neighbour's, or the device's primary one. */
static GstImagingContext *
find_context (GstImagingFilter *self, ImkError *error)
{
  Private *priv = private_of (self);
  GstImagingContext *found = NULL;
  gint device_id;

  GST_OBJECT_LOCK (self);
  device_id = priv->device_id;
  found = priv->offered ? g_object_ref (priv->offered) : NULL;
  GST_OBJECT_UNLOCK (self);

  if (!found && imk_backend_load ("cuda", error) != IMK_OK)
    return NULL;
#ifdef HAVE_GST_CUDA
  if (!found)
    found =
        gst_imaging_cuda_find_context (GST_ELEMENT (self), device_id, error);
  if (!found) { /* the application may have answered by now */
    GST_OBJECT_LOCK (self);
    found = priv->offered ? g_object_ref (priv->offered) : NULL;
    GST_OBJECT_UNLOCK (self);
  }
#endif
  return found ? found : gst_imaging_context_get (device_id, error);
}

static ImkStatus
open_device (GstImagingFilter *self, ImkError *error)
{
  Private *priv = private_of (self);
  ImkStatus status;

  if (priv->stream)
    return IMK_OK;
  if (!priv->context) {
    GstImagingContext *context = find_context (self, error);

    GST_OBJECT_LOCK (self); /* context queries come from other threads */
    priv->context = context;
    GST_OBJECT_UNLOCK (self);
  }
  if (!priv->context)
    return IMK_ERROR_UNAVAILABLE;
  status = gst_imaging_context_push (priv->context, error);
  if (status != IMK_OK)
    return status;
  status = device_of (priv)->stream_new (&priv->stream, error);
  gst_imaging_context_pop (priv->context);
  return status;
}

/* --- the kernel --------------------------------------------------------- */

static void
close_kernel (GstImagingFilter *self)
{
  Private *priv = private_of (self);
  gboolean pushed = priv->is_open && priv->active == IMK_BACKEND_CUDA &&
                    gst_imaging_context_push (priv->context, NULL) == IMK_OK;

  if (priv->is_open)
    GST_IMAGING_FILTER_GET_CLASS (self)->close (self);
  priv->is_open = FALSE;
  if (pushed)
    gst_imaging_context_pop (priv->context);
}

static ImkStatus
open_kernel (GstImagingFilter *self, ImkBackend backend, ImkError *error)
{
  GstImagingFilterClass *klass = GST_IMAGING_FILTER_GET_CLASS (self);
  Private *priv = private_of (self);
  gboolean on_device = backend == IMK_BACKEND_CUDA;
  ImkStatus status = IMK_OK;

  close_kernel (self);
  if (on_device)
    status = open_device (self, error);
  if (status == IMK_OK && on_device)
    status = gst_imaging_context_push (priv->context, error);
  if (status != IMK_OK)
    return status;
  status = klass->open (self, backend, &priv->info, error);
  if (on_device)
    gst_imaging_context_pop (priv->context);
  if (status != IMK_OK)
    return status;

  priv->is_open = TRUE;
  priv->has_posted = FALSE;
  GST_OBJECT_LOCK (self);
  priv->active = backend;
  GST_OBJECT_UNLOCK (self);
  GST_INFO_OBJECT (self, "frames of %" GST_PTR_FORMAT " are processed on %s",
      priv->caps,
      on_device ? gst_imaging_context_info (priv->context)->name : "the CPU");
  return IMK_OK;
}

static gboolean
should_use_cuda (GstImagingFilter *self)
{
  GstImagingFilterClass *klass = GST_IMAGING_FILTER_GET_CLASS (self);
  Private *priv = private_of (self);

  switch (get_choice (self)) {
  case GST_IMAGING_BACKEND_CPU:
    return FALSE;
  case GST_IMAGING_BACKEND_CUDA:
    return TRUE;
  default:
    break;
  }
  if (priv->in_is_cuda || priv->out_is_cuda)
    return TRUE;
  return !priv->gave_up && klass->prefers_cuda &&
         klass->prefers_cuda (self, &priv->info) &&
         imk_backend_load ("cuda", NULL) == IMK_OK;
}

/* Once for one cause: upstream retries what failed to negotiate. */
static void
post_error (GstImagingFilter *self, ImkStatus status, const ImkError *error)
{
  Private *priv = private_of (self);

  if (priv->has_posted)
    return;
  priv->has_posted = TRUE;
  switch (status) {
  case IMK_ERROR_CONFIG:
    GST_ELEMENT_ERROR (self, LIBRARY, SETTINGS, ("%s", error->message), (NULL));
    break;
  case IMK_ERROR_IMAGE:
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("%s", error->message), (NULL));
    break;
  case IMK_ERROR_MEMORY:
    GST_ELEMENT_ERROR (
        self, RESOURCE, NO_SPACE_LEFT, ("%s", error->message), (NULL));
    break;
  case IMK_ERROR_FILE:
    GST_ELEMENT_ERROR (
        self, RESOURCE, OPEN_READ, ("%s", error->message), (NULL));
    break;
  case IMK_ERROR_UNAVAILABLE:
    GST_ELEMENT_ERROR (
        self, RESOURCE, NOT_FOUND, ("%s", error->message), (NULL));
    break;
  default:
    GST_ELEMENT_ERROR (self, LIBRARY, FAILED, ("%s", error->message), (NULL));
    break;
  }
}

static gboolean
is_device_failure (ImkStatus status)
{
  return status == IMK_ERROR_DEVICE || status == IMK_ERROR_MEMORY ||
         status == IMK_ERROR_UNAVAILABLE;
}

/* Frames that downstream wants as CUDAMemory cannot come from the CPU. */
static gboolean
can_fall_back (GstImagingFilter *self)
{
  return get_choice (self) == GST_IMAGING_BACKEND_AUTO &&
         !private_of (self)->out_is_cuda;
}

/* From now on the CPU, until the next start. */
static ImkStatus
fall_back (GstImagingFilter *self, ImkError *error)
{
  private_of (self)->gave_up = TRUE;
  gst_base_transform_reconfigure_src (GST_BASE_TRANSFORM (self));
  return open_kernel (self, IMK_BACKEND_CPU, error);
}

/* Once with every fall_back (). */
static void
post_fall_back (
    GstImagingFilter *self, const ImkError *why, gboolean frame_lost)
{
  GST_ELEMENT_WARNING (self, LIBRARY, FAILED,
      ("CUDA cannot be used any more, the CPU goes on.%s %s",
          frame_lost ? " One frame that was only on the device is lost." : "",
          why->message),
      (NULL));
}

/* --- one frame ---------------------------------------------------------- */

static gboolean
is_on_device (GstBuffer *buffer)
{
  GstMemory *memory = gst_buffer_n_memory (buffer) == 1
                          ? gst_buffer_peek_memory (buffer, 0)
                          : NULL;

  return memory && gst_is_imaging_memory (memory) &&
         gst_imaging_memory_is_on_device (memory);
}

static GstBufferPool *
get_import_pool (GstImagingFilter *self)
{
  Private *priv = private_of (self);
  GstAllocator *allocator;

  if (priv->import_pool)
    return priv->import_pool;
  allocator = gst_imaging_allocator_new (
      priv->context, GST_IMAGING_MEMORY_PINNED, priv->stats);
  priv->import_pool =
      gst_imaging_video_pool_new (allocator, priv->caps, &priv->info, FALSE);
  gst_object_unref (allocator);
  if (priv->import_pool)
    gst_buffer_pool_set_active (priv->import_pool, TRUE);
  return priv->import_pool;
}

/* @buffer itself, not referenced, because it has to stay writable; or a copy of
 * it that the kernel reaches; or NULL with @error set. */
static GstBuffer *
reachable (GstImagingFilter *self, GstBuffer *buffer, GstImagingReach reach,
    ImkError *error)
{
  Private *priv = private_of (self);
  GstBuffer *copy = NULL;

  if (gst_imaging_frame_can_map (buffer, priv->context, reach))
    return buffer;
  if (gst_imaging_frame_check_size (buffer, &priv->info, error) != IMK_OK)
    return NULL;
  if (get_import_pool (self))
    copy = gst_imaging_frame_import (
        buffer, &priv->info, priv->import_pool, priv->stats);
  if (!copy)
    imk_error_set (error, IMK_ERROR_DEVICE,
        "A frame of %" G_GSIZE_FORMAT
        " bytes could not be copied into page-locked memory.",
        gst_buffer_get_size (buffer));
  return copy;
}

static void
note_memory (GstImagingFilter *self, const gchar *memory_name)
{
  Private *priv = private_of (self);
  gboolean changed;

  GST_OBJECT_LOCK (self);
  changed = g_strcmp0 (priv->active_memory, memory_name) != 0;
  priv->active_memory = memory_name;
  GST_OBJECT_UNLOCK (self);
  if (changed)
    GST_INFO_OBJECT (self, "input frames are in %s memory", memory_name);
}

/* Runs the kernel between map and unmap of both frames. */
static ImkStatus
process_mapped (GstImagingFilter *self, GstBuffer *in, GstBuffer *out,
    GstBuffer *annotated, GstImagingReach reach, ImkError *error)
{
  GstImagingFilterClass *klass = GST_IMAGING_FILTER_GET_CLASS (self);
  Private *priv = private_of (self);
  GstImagingFrame in_frame, out_frame;
  gboolean done = reach == GST_IMAGING_REACH_HOST;
  ImkError ignored;
  ImkStatus status = gst_imaging_frame_map (in, &priv->info, GST_MAP_READ,
      reach, priv->context, priv->stream, priv->stats, &in_frame, error);
  ImkStatus unmapped;

  if (status != IMK_OK)
    return status;
  if (out)
    status = gst_imaging_frame_map (out, &priv->info, GST_MAP_WRITE, reach,
        priv->context, priv->stream, priv->stats, &out_frame, error);
  if (status == IMK_OK) {
    note_memory (self, in_frame.memory_name);
    status = klass->process (
        self, &in_frame, out ? &out_frame : NULL, annotated, &done, error);
    if (out) {
      unmapped = gst_imaging_frame_unmap (
          &out_frame, done, status == IMK_OK ? error : &ignored);
      status = status == IMK_OK ? unmapped : status;
    }
  }
  unmapped = gst_imaging_frame_unmap (
      &in_frame, done, status == IMK_OK ? error : &ignored);
  return status == IMK_OK ? unmapped : status;
}

static ImkStatus
process_on_device (GstImagingFilter *self, GstBuffer *in, GstBuffer *out,
    GstBuffer *annotated, ImkError *error)
{
  GstImagingReach reach = GST_IMAGING_FILTER_GET_CLASS (self)->device_reach;
  Private *priv = private_of (self);
  ImkStatus status = gst_imaging_context_push (priv->context, error);
  GstBuffer *source;

  if (status != IMK_OK)
    return status;
  source = reachable (self, in, reach, error);
  if (source) {
    status = process_mapped (self, source, out, annotated, reach, error);
    if (source != in)
      gst_buffer_unref (source);
  } else {
    status = error->code;
  }
  gst_imaging_context_pop (priv->context);
  return status;
}

static ImkStatus
process (GstImagingFilter *self, GstBuffer *in, GstBuffer *out,
    GstBuffer *annotated, ImkError *error)
{
  Private *priv = private_of (self);
  ImkStatus status = IMK_OK;

  /* closed when the last attempt to reopen it failed; the properties may be
   * better by now */
  if (!priv->is_open)
    status = open_kernel (self, priv->active, error);
  if (status != IMK_OK)
    return status;
  return priv->active == IMK_BACKEND_CUDA
             ? process_on_device (self, in, out, annotated, error)
             : process_mapped (
                   self, in, out, annotated, GST_IMAGING_REACH_HOST, error);
}

/* @out was meant for the device; the CPU needs memory that does not. */
static void
replace_memory (GstBuffer *out, gsize size)
{
  gst_buffer_remove_all_memory (out);
  gst_buffer_append_memory (out, gst_allocator_alloc (NULL, size, NULL));
}

static GstFlowReturn
count_frame (GstImagingFilter *self)
{
  Private *priv = private_of (self);

  priv->frame_number++;
  gst_imaging_stats_add_frame (
      priv->stats, gst_util_get_timestamp () - priv->entered);
  return GST_FLOW_OK;
}

/* On the CPU now, with what the failed device has left. */
static ImkStatus
process_again (GstImagingFilter *self, GstBuffer *in, GstBuffer *out,
    GstBuffer *annotated, ImkError *error)
{
  ImkStatus status = fall_back (self, error);

  if (status != IMK_OK)
    return status;
  if (out)
    replace_memory (out, private_of (self)->info.size);
  return process (self, in, out, annotated, error);
}

/* Nobody can read it any more: a frame of a device that was given up. */
static gboolean
is_lost (GstImagingFilter *self, GstBuffer *in, ImkStatus status)
{
  return is_device_failure (status) && private_of (self)->gave_up &&
         is_on_device (in);
}

static GstFlowReturn
run (
    GstImagingFilter *self, GstBuffer *in, GstBuffer *out, GstBuffer *annotated)
{
  Private *priv = private_of (self);
  ImkError why, error;
  ImkStatus status = process (self, in, out, annotated, &error);

  if (is_device_failure (status) && priv->active == IMK_BACKEND_CUDA &&
      can_fall_back (self)) {
    why = error;
    status = process_again (self, in, out, annotated, &error);
    post_fall_back (self, &why, is_lost (self, in, status));
  }
  if (status == IMK_OK)
    return count_frame (self);
  if (is_lost (self, in, status)) {
    GST_WARNING_OBJECT (self, "a frame is lost: %s", error.message);
    priv->frame_number++;
    gst_imaging_stats_add_lost (priv->stats);
    return GST_BASE_TRANSFORM_FLOW_DROPPED;
  }
  post_error (self, status, &error);
  return GST_FLOW_ERROR;
}

static GstFlowReturn
gst_imaging_filter_transform (
    GstBaseTransform *trans, GstBuffer *in, GstBuffer *out)
{
  return run (GST_IMAGING_FILTER (trans), in, out, out);
}

static GstFlowReturn
gst_imaging_filter_transform_ip (GstBaseTransform *trans, GstBuffer *buffer)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);

  /* Passthrough of an element that makes new frames comes here as well. */
  return GST_IMAGING_FILTER_GET_CLASS (self)->measures
             ? run (self, buffer, NULL, buffer)
             : count_frame (self);
}

/* The neighbour's context is the one of its frames, where the user has named
 * no device and the application has brought no context. */
static void
adopt_context (GstImagingFilter *self, GstBuffer *input)
{
  Private *priv = private_of (self);

  GST_OBJECT_LOCK (self);
  if (!priv->context && !priv->offered && priv->device_id < 0)
    priv->context = g_object_ref (
        gst_imaging_memory_context (gst_buffer_peek_memory (input, 0)));
  GST_OBJECT_UNLOCK (self);
}

/* auto follows the data: frames that are on the device stay there. */
static ImkStatus
follow_data (GstImagingFilter *self, GstBuffer *input, ImkError *error)
{
  Private *priv = private_of (self);
  ImkError why;
  ImkStatus status;

  if (!priv->is_open || priv->active == IMK_BACKEND_CUDA || priv->gave_up ||
      get_choice (self) != GST_IMAGING_BACKEND_AUTO || !is_on_device (input))
    return IMK_OK;
  adopt_context (self, input);
  status = open_kernel (self, IMK_BACKEND_CUDA, &why);
  if (is_device_failure (status)) {
    status = fall_back (self, error);
    post_fall_back (self, &why, FALSE);
  } else if (status != IMK_OK) {
    *error = why;
  }
  gst_base_transform_reconfigure_src (GST_BASE_TRANSFORM (self));
  return status;
}

/* Here and not in set_property (): the base class must not see passthrough
 * change in the middle of a frame. */
static void
follow_identity (GstImagingFilter *self)
{
  GstImagingFilterClass *klass = GST_IMAGING_FILTER_GET_CLASS (self);
  GstBaseTransform *trans = GST_BASE_TRANSFORM (self);
  Private *priv = private_of (self);
  gboolean identity = klass->is_identity && klass->is_identity (self) &&
                      priv->in_is_cuda == priv->out_is_cuda;

  if (identity == gst_base_transform_is_passthrough (trans))
    return;
  gst_base_transform_set_passthrough (trans, identity);
  gst_base_transform_reconfigure_src (trans);
}

/* Controlled properties follow stream time, which only TIME segments have. */
static void
sync_controlled (GstBaseTransform *trans, GstBuffer *buffer)
{
  GstClockTime pts = GST_BUFFER_PTS (buffer);

  if (trans->segment.format != GST_FORMAT_TIME ||
      !GST_CLOCK_TIME_IS_VALID (pts))
    return;
  pts = gst_segment_to_stream_time (&trans->segment, GST_FORMAT_TIME, pts);
  if (GST_CLOCK_TIME_IS_VALID (pts))
    gst_object_sync_values (GST_OBJECT (trans), pts);
}

static GstFlowReturn
gst_imaging_filter_submit_input_buffer (
    GstBaseTransform *trans, gboolean is_discont, GstBuffer *input)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  ImkError error;
  ImkStatus status;

  sync_controlled (trans, input);
  status = follow_data (self, input, &error);
  if (status != IMK_OK) {
    post_error (self, status, &error);
    gst_buffer_unref (input);
    return GST_FLOW_ERROR;
  }
  follow_identity (self);
  return GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
      ->submit_input_buffer (trans, is_discont, input);
}

/* --- caps and memory ---------------------------------------------------- */

/* A new frame may be in another kind of memory than the one it is made of;
 * the CPU takes no CUDAMemory, though it could map it: downloading is the job
 * of elements that say so. */
static GstCaps *
gst_imaging_filter_transform_caps (GstBaseTransform *trans,
    GstPadDirection direction, GstCaps *caps, GstCaps *filter)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  GstCaps *ours, *result;

  if (get_choice (self) == GST_IMAGING_BACKEND_CPU)
    ours = gst_imaging_cuda_remove_memory (caps);
  else if (GST_IMAGING_FILTER_GET_CLASS (self)->measures)
    ours = gst_caps_ref (caps);
  else
    ours = gst_imaging_cuda_add_memory (caps);
  if (!filter)
    return ours;
  result = gst_caps_intersect_full (filter, ours, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref (ours);
  /* An element that can give both, as cudaupload, was put there for one. */
  return direction == GST_PAD_SRC ? gst_imaging_cuda_sort_first (result)
                                  : result;
}

/* The kind of memory that the frame comes in, where the peer takes it. */
static GstCaps *
gst_imaging_filter_fixate_caps (GstBaseTransform *trans,
    GstPadDirection direction, GstCaps *caps, GstCaps *othercaps)
{
  GstCapsFeatures *features = gst_caps_get_features (caps, 0);
  GstCaps *same = gst_caps_new_empty ();

  for (guint i = 0; i < gst_caps_get_size (othercaps); i++)
    if (gst_caps_features_is_equal (
            features, gst_caps_get_features (othercaps, i)))
      gst_caps_append (same, gst_caps_copy_nth (othercaps, i));
  if (gst_caps_is_empty (same))
    gst_caps_unref (same);
  else
    gst_caps_take (&othercaps, same);
  return GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
      ->fixate_caps (trans, direction, caps, othercaps);
}

static gboolean
gst_imaging_filter_set_caps (
    GstBaseTransform *trans, GstCaps *in_caps, GstCaps *out_caps)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  Private *priv = private_of (self);
  ImkError why, error;
  ImkStatus status;

  close_kernel (self);
  if (!gst_video_info_from_caps (&priv->info, in_caps)) {
    GST_ERROR_OBJECT (self, "not video caps: %" GST_PTR_FORMAT, in_caps);
    return FALSE;
  }
  gst_caps_replace (&priv->caps, in_caps);
  priv->in_is_cuda = gst_imaging_cuda_is_caps (in_caps);
  priv->out_is_cuda = gst_imaging_cuda_is_caps (out_caps);
  if (priv->import_pool)
    gst_buffer_pool_set_active (priv->import_pool, FALSE);
  gst_clear_object (&priv->import_pool);

  if (!should_use_cuda (self)) {
    status = open_kernel (self, IMK_BACKEND_CPU, &error);
  } else {
    status = open_kernel (self, IMK_BACKEND_CUDA, &error);
    if (is_device_failure (status) && can_fall_back (self)) {
      why = error;
      status = fall_back (self, &error);
      post_fall_back (self, &why, FALSE);
    }
  }
  if (status != IMK_OK)
    post_error (self, status, &error);
  return status == IMK_OK;
}

static gboolean
is_on_cuda (GstImagingFilter *self)
{
  Private *priv = private_of (self);

  return priv->is_open && priv->active == IMK_BACKEND_CUDA;
}

/* A camera, or any other source, writes where the GPU reads. */
static void
offer_pinned_pool (GstImagingFilter *self, GstQuery *query)
{
  Private *priv = private_of (self);
  GstAllocator *allocator;
  GstBufferPool *pool = NULL;
  GstVideoInfo info;
  GstCaps *caps;

  gst_query_parse_allocation (query, &caps, NULL);
  if (!caps || !gst_video_info_from_caps (&info, caps))
    return;
  if (gst_imaging_cuda_is_caps (caps))
    return;
  allocator = gst_imaging_allocator_new (
      priv->context, GST_IMAGING_MEMORY_PINNED, priv->stats);
  pool = gst_imaging_video_pool_new (allocator, caps, &info, FALSE);
  if (pool) {
    if (gst_query_get_n_allocation_pools (query) > 0)
      gst_query_set_nth_allocation_pool (query, 0, pool, info.size, 0, 0);
    else
      gst_query_add_allocation_pool (query, pool, info.size, 0, 0);
    if (gst_query_get_n_allocation_params (query) > 0)
      gst_query_set_nth_allocation_param (query, 0, allocator, NULL);
    else
      gst_query_add_allocation_param (query, allocator, NULL);
    gst_object_unref (pool);
  }
  gst_object_unref (allocator);
}

static gboolean
offers_our_memory (GstQuery *query)
{
  GstAllocator *allocator = NULL;
  gboolean ours;

  if (gst_query_get_n_allocation_params (query) == 0)
    return FALSE;
  gst_query_parse_nth_allocation_param (query, 0, &allocator, NULL);
  ours = allocator && GST_IS_IMAGING_ALLOCATOR (allocator);
  gst_clear_object (&allocator);
  return ours;
}

static gboolean
gst_imaging_filter_propose_allocation (
    GstBaseTransform *trans, GstQuery *decide_query, GstQuery *query)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  gboolean measures = GST_IMAGING_FILTER_GET_CLASS (self)->measures;
  gboolean handled = GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
                         ->propose_allocation (trans, decide_query, query);

  /* An in-place or passthrough element has just asked downstream, and what
   * downstream offers travels through it; an unlinked one has nobody to ask. */
  if (!measures && (!decide_query || !handled))
    return handled;
  /* Frames that are only measured go on as they came, so that downstream has
   * the say on their rows; we take any. */
  if ((!measures || !gst_pad_is_linked (GST_BASE_TRANSFORM_SRC_PAD (trans))) &&
      !gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL))
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  if (is_on_cuda (self) && !offers_our_memory (query))
    offer_pinned_pool (self, query);
  return TRUE;
}

static GstBufferPool *
new_output_pool (GstImagingFilter *self, GstCaps *caps,
    const GstVideoInfo *info, gboolean with_meta, GstAllocator **allocator,
    guint *size)
{
  Private *priv = private_of (self);

#ifdef HAVE_GST_CUDA
  if (is_on_cuda (self) && gst_imaging_cuda_is_caps (caps))
    return gst_imaging_cuda_pool_new (priv->context, caps, info, size);
#endif
  if (is_on_cuda (self))
    *allocator = gst_imaging_allocator_new (
        priv->context, GST_IMAGING_MEMORY_DEVICE, priv->stats);
  return gst_imaging_video_pool_new (*allocator, caps, info, with_meta);
}

/* Downstream's pool is not used: ours is where the kernel writes, and every
 * element can map what comes out of it. */
static gboolean
gst_imaging_filter_decide_allocation (GstBaseTransform *trans, GstQuery *query)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  gboolean with_meta =
      gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  GstAllocator *allocator = NULL;
  GstAllocationParams params;
  GstBufferPool *pool;
  GstVideoInfo info;
  GstCaps *caps;
  guint size;

  gst_query_parse_allocation (query, &caps, NULL);
  if (!caps || !gst_video_info_from_caps (&info, caps))
    return FALSE;
  size = info.size;
  pool = new_output_pool (self, caps, &info, with_meta, &allocator, &size);
  if (!pool)
    return FALSE;
  while (gst_query_get_n_allocation_params (query) > 0)
    gst_query_remove_nth_allocation_param (query, 0);
  while (gst_query_get_n_allocation_pools (query) > 0)
    gst_query_remove_nth_allocation_pool (query, 0);
  gst_allocation_params_init (&params);
  gst_query_add_allocation_param (query, allocator, &params);
  gst_query_add_allocation_pool (query, pool, size, 0, 0);
  gst_object_unref (pool);
  gst_clear_object (&allocator);
  return GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
      ->decide_allocation (trans, query);
}

/* The pool of the base class may find the device full, or gone. */
static GstFlowReturn
gst_imaging_filter_prepare_output_buffer (
    GstBaseTransform *trans, GstBuffer *input, GstBuffer **output)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  Private *priv = private_of (self);
  GstFlowReturn flow =
      GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
          ->prepare_output_buffer (trans, input, output);
  ImkError why, error;
  ImkStatus status;

  if (flow != GST_FLOW_ERROR || !is_on_cuda (self))
    return flow;
  status = imk_error_set (&why, IMK_ERROR_MEMORY,
      "There is no device memory for a frame of %" G_GSIZE_FORMAT " bytes.",
      priv->info.size);
  error = why;
  if (can_fall_back (self)) {
    status = fall_back (self, &error);
    post_fall_back (self, &why, FALSE);
  }
  if (status != IMK_OK) {
    post_error (self, status, &error);
    return GST_FLOW_ERROR;
  }
  *output = gst_buffer_new_allocate (NULL, priv->info.size, NULL);
  GST_BASE_TRANSFORM_GET_CLASS (trans)->copy_metadata (trans, input, *output);
  return GST_FLOW_OK;
}

/* Format and size stay, so what is known of a frame stays true. Metas of the
 * memory do not come here. */
static gboolean
gst_imaging_filter_transform_meta (
    GstBaseTransform *trans, GstBuffer *out, GstMeta *meta, GstBuffer *in)
{
  return TRUE;
}

/* --- the results pad ---------------------------------------------------- */

static GstImagingResultsPad *
ref_results (GstImagingFilter *self)
{
  Private *priv = private_of (self);
  GstImagingResultsPad *results;

  GST_OBJECT_LOCK (self);
  results = priv->results ? gst_imaging_results_pad_ref (priv->results) : NULL;
  GST_OBJECT_UNLOCK (self);
  return results;
}

gboolean
gst_imaging_filter_wants_values (GstImagingFilter *self)
{
  GstImagingResultsPad *results = ref_results (self);
  gboolean wants = results && gst_imaging_results_pad_wants_values (results);

  g_clear_pointer (&results, gst_imaging_results_pad_unref);
  return wants;
}

void
gst_imaging_filter_publish (
    GstImagingFilter *self, GstBuffer *buffer, const GstImagingResult *result)
{
  Private *priv = private_of (self);
  GstImagingResultsPad *results = ref_results (self);
  GstFlowReturn flow;

  gst_imaging_results_attach (buffer, GST_OBJECT_NAME (self), result);
  if (!results)
    return;
  flow = gst_imaging_results_pad_push (results, result, buffer,
      GST_VIDEO_INFO_FPS_N (&priv->info), GST_VIDEO_INFO_FPS_D (&priv->info));
  /* a pad that was released meanwhile is flushing; that stops nobody else */
  GST_OBJECT_LOCK (self);
  priv->results_flow = priv->results == results ? flow : GST_FLOW_NOT_LINKED;
  GST_OBJECT_UNLOCK (self);
  gst_imaging_results_pad_unref (results);
}

/* What upstream is told: as long as one of the two wants more, go on; what
 * went wrong on either is said. */
static GstFlowReturn
combine (GstFlowReturn src, GstFlowReturn results)
{
  if (results == GST_FLOW_NOT_LINKED)
    return src;
  if (src == GST_FLOW_NOT_LINKED || src == GST_FLOW_EOS)
    return results;
  if (results == GST_FLOW_EOS)
    return src;
  return src != GST_FLOW_OK ? src : results;
}

static GstFlowReturn
gst_imaging_filter_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Private *priv = private_of (GST_IMAGING_FILTER (parent));
  GstFlowReturn flow;

  priv->entered = gst_util_get_timestamp ();
  priv->results_flow = GST_FLOW_NOT_LINKED;
  flow = priv->base_chain (pad, parent, buffer);
  return combine (flow, priv->results_flow);
}

static void
reset_kernel (GstImagingFilter *self)
{
  GstImagingFilterClass *klass = GST_IMAGING_FILTER_GET_CLASS (self);
  Private *priv = private_of (self);

  if (!priv->is_open || !klass->reset)
    return;
  if (priv->active == IMK_BACKEND_CPU) {
    klass->reset (self, NULL);
  } else if (gst_imaging_context_push (priv->context, NULL) == IMK_OK) {
    klass->reset (self, priv->stream);
    gst_imaging_context_pop (priv->context);
  }
}

static gboolean
gst_imaging_filter_sink_event (GstBaseTransform *trans, GstEvent *event)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  GstImagingResultsPad *results = ref_results (self);

  if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP)
    reset_kernel (self);
  if (results) {
    gst_imaging_results_pad_event (results, event);
    gst_imaging_results_pad_unref (results);
  }
  return GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
      ->sink_event (trans, event);
}

static GstPad *
gst_imaging_filter_request_new_pad (GstElement *element,
    GstPadTemplate *template, const gchar *name, const GstCaps *caps)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (element);
  Private *priv = private_of (self);
  GstImagingResultsPad *results = ref_results (self);

  if (results) { /* there is one already */
    gst_imaging_results_pad_unref (results);
    return NULL;
  }
  results = gst_imaging_results_pad_new (
      element, template, &GST_BASE_TRANSFORM (self)->segment);
  GST_OBJECT_LOCK (self);
  priv->results = results;
  GST_OBJECT_UNLOCK (self);
  return gst_imaging_results_pad_get (results);
}

static void
drop_results (GstImagingFilter *self)
{
  Private *priv = private_of (self);
  GstImagingResultsPad *results;

  GST_OBJECT_LOCK (self);
  results = g_steal_pointer (&priv->results);
  GST_OBJECT_UNLOCK (self);
  if (!results)
    return;
  gst_imaging_results_pad_remove (results);
  gst_imaging_results_pad_unref (results);
}

static void
gst_imaging_filter_release_pad (GstElement *element, GstPad *pad)
{
  drop_results (GST_IMAGING_FILTER (element));
}

void
gst_imaging_filter_class_add_results_pad (GstImagingFilterClass *klass)
{
  GstCaps *caps = gst_caps_from_string (GST_IMAGING_RESULTS_CAPS);

  gst_element_class_add_pad_template (GST_ELEMENT_CLASS (klass),
      gst_pad_template_new ("results", GST_PAD_SRC, GST_PAD_REQUEST, caps));
  gst_caps_unref (caps);
}

/* --- contexts, start and stop ------------------------------------------- */

static void
gst_imaging_filter_set_context (GstElement *element, GstContext *message)
{
#ifdef HAVE_GST_CUDA
  Private *priv = private_of (GST_IMAGING_FILTER (element));
  GstImagingContext *offered =
      gst_imaging_cuda_take_context (element, priv->device_id, message);

  if (offered) {
    GST_OBJECT_LOCK (element);
    g_set_object (&priv->offered, offered);
    GST_OBJECT_UNLOCK (element);
    g_object_unref (offered);
  }
#endif
  GST_ELEMENT_CLASS (gst_imaging_filter_parent_class)
      ->set_context (element, message);
}

static gboolean
gst_imaging_filter_query (
    GstBaseTransform *trans, GstPadDirection direction, GstQuery *query)
{
#ifdef HAVE_GST_CUDA
  Private *priv = private_of (GST_IMAGING_FILTER (trans));
  GstImagingContext *context = NULL;
  gboolean answered = FALSE;

  if (GST_QUERY_TYPE (query) == GST_QUERY_CONTEXT) {
    GST_OBJECT_LOCK (trans);
    context = priv->context ? g_object_ref (priv->context) : NULL;
    GST_OBJECT_UNLOCK (trans);
    if (context)
      answered =
          gst_imaging_cuda_answer_context (GST_ELEMENT (trans), context, query);
    g_clear_object (&context);
    if (answered)
      return TRUE;
  }
#endif
  return GST_BASE_TRANSFORM_CLASS (gst_imaging_filter_parent_class)
      ->query (trans, direction, query);
}

static gboolean
gst_imaging_filter_start (GstBaseTransform *trans)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  Private *priv = private_of (self);
  ImkError error;
  ImkStatus status;

  gst_imaging_stats_reset (priv->stats);
  priv->frame_number = 0;
  priv->gave_up = FALSE;
  priv->has_posted = FALSE;
  priv->active_memory = NULL;
  if (get_choice (self) != GST_IMAGING_BACKEND_CUDA)
    return TRUE;
  /* A missing device is said before the first frame comes. */
  status = open_device (self, &error);
  if (status != IMK_OK) {
    post_error (self, status, &error);
    close_device (self); /* the base class does not stop what did not start */
  }
  return status == IMK_OK;
}

static gboolean
gst_imaging_filter_stop (GstBaseTransform *trans)
{
  GstImagingFilter *self = GST_IMAGING_FILTER (trans);
  Private *priv = private_of (self);
  GstImagingResultsPad *results = ref_results (self);

  close_kernel (self);
  close_device (self);
  gst_clear_caps (&priv->caps);
  if (results) {
    gst_imaging_results_pad_reset (results);
    gst_imaging_results_pad_unref (results);
  }
  return TRUE;
}

/* --- GObject ------------------------------------------------------------- */

static void
gst_imaging_filter_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  Private *priv = private_of (GST_IMAGING_FILTER (object));

  GST_OBJECT_LOCK (object);
  switch (id) {
  case PROP_BACKEND:
    priv->choice = g_value_get_enum (value);
    break;
  case PROP_CUDA_DEVICE_ID:
    priv->device_id = g_value_get_int (value);
    break;
  case PROP_N_THREADS:
    priv->n_threads = g_value_get_uint (value);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
  GST_OBJECT_UNLOCK (object);
}

static void
gst_imaging_filter_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  Private *priv = private_of (GST_IMAGING_FILTER (object));

  GST_OBJECT_LOCK (object);
  switch (id) {
  case PROP_BACKEND:
    g_value_set_enum (value, priv->choice);
    break;
  case PROP_CUDA_DEVICE_ID:
    g_value_set_int (value, priv->device_id);
    break;
  case PROP_N_THREADS:
    g_value_set_uint (value, priv->n_threads);
    break;
  case PROP_ACTIVE_BACKEND:
    g_value_set_static_string (
        value, priv->active == IMK_BACKEND_CUDA ? "cuda" : "cpu");
    break;
  case PROP_ACTIVE_MEMORY:
    g_value_set_static_string (
        value, priv->active_memory ? priv->active_memory : "none");
    break;
  case PROP_STATS:
    g_value_take_boxed (value, gst_imaging_stats_to_structure (priv->stats));
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
  GST_OBJECT_UNLOCK (object);
}

/* Not in init (): the class of an object that is being initialised is the one
 * of the base, which does not know what `measures` will be. */
static void
gst_imaging_filter_constructed (GObject *object)
{
  gst_base_transform_set_in_place (GST_BASE_TRANSFORM (object),
      GST_IMAGING_FILTER_GET_CLASS (object)->measures);
  G_OBJECT_CLASS (gst_imaging_filter_parent_class)->constructed (object);
}

static void
gst_imaging_filter_dispose (GObject *object)
{
  drop_results (GST_IMAGING_FILTER (object));
  G_OBJECT_CLASS (gst_imaging_filter_parent_class)->dispose (object);
}

static void
gst_imaging_filter_finalize (GObject *object)
{
  Private *priv = private_of (GST_IMAGING_FILTER (object));

  g_clear_object (&priv->offered);
  gst_imaging_stats_unref (priv->stats);
  G_OBJECT_CLASS (gst_imaging_filter_parent_class)->finalize (object);
}

static void
install_properties (GObjectClass *klass)
{
  const GParamFlags fixed =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;
  const GParamFlags readable = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;

  g_object_class_install_property (klass, PROP_BACKEND,
      g_param_spec_enum ("backend", "Backend",
          "Where frames are processed. auto: on the GPU when they are there "
          "already or it is faster for frames of their size, else on the CPU, "
          "and on the CPU when the GPU fails",
          GST_TYPE_IMAGING_BACKEND_CHOICE, DEFAULT_BACKEND, fixed));
  g_object_class_install_property (klass, PROP_CUDA_DEVICE_ID,
      g_param_spec_int ("cuda-device-id", "CUDA device ID",
          "Number of the GPU, counted from 0; -1 for the one that the "
          "application or a neighbour uses, else the first",
          -1, G_MAXINT, DEFAULT_CUDA_DEVICE_ID, fixed));
  g_object_class_install_property (klass, PROP_N_THREADS,
      g_param_spec_uint ("n-threads", "Threads",
          "CPU threads at most; 0 for one a processor. The results do not "
          "depend on it",
          0, 1024, DEFAULT_N_THREADS, fixed));
  g_object_class_install_property (klass, PROP_ACTIVE_BACKEND,
      g_param_spec_string ("active-backend", "Active backend",
          "Where the last frame was processed: cpu or cuda", "cpu", readable));
  g_object_class_install_property (klass, PROP_ACTIVE_MEMORY,
      g_param_spec_string ("active-memory", "Active memory",
          "Where the last frame was taken from: system, pinned, device or "
          "CUDAMemory; none before the first",
          "none", readable));
  g_object_class_install_property (klass, PROP_STATS,
      g_param_spec_boxed ("stats", "Statistics",
          "Since the element started: frames, lost-frames, bytes-uploaded, "
          "bytes-downloaded (of its output, by whoever mapped it), "
          "bytes-copied (host to host), and the time a frame spent in the "
          "element as time-p50, time-p99, time-max in microseconds",
          GST_TYPE_STRUCTURE, readable));
}

static void
gst_imaging_filter_class_init (GstImagingFilterClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS (klass);

  object_class->set_property = gst_imaging_filter_set_property;
  object_class->get_property = gst_imaging_filter_get_property;
  object_class->constructed = gst_imaging_filter_constructed;
  object_class->dispose = gst_imaging_filter_dispose;
  object_class->finalize = gst_imaging_filter_finalize;
  install_properties (object_class);

  element_class->request_new_pad = gst_imaging_filter_request_new_pad;
  element_class->release_pad = gst_imaging_filter_release_pad;
  element_class->set_context = gst_imaging_filter_set_context;

  trans_class->start = gst_imaging_filter_start;
  trans_class->stop = gst_imaging_filter_stop;
  trans_class->query = gst_imaging_filter_query;
  trans_class->transform_caps = gst_imaging_filter_transform_caps;
  trans_class->fixate_caps = gst_imaging_filter_fixate_caps;
  trans_class->set_caps = gst_imaging_filter_set_caps;
  trans_class->propose_allocation = gst_imaging_filter_propose_allocation;
  trans_class->decide_allocation = gst_imaging_filter_decide_allocation;
  trans_class->sink_event = gst_imaging_filter_sink_event;
  trans_class->submit_input_buffer = gst_imaging_filter_submit_input_buffer;
  trans_class->transform = gst_imaging_filter_transform;
  trans_class->transform_ip = gst_imaging_filter_transform_ip;
  trans_class->transform_meta = gst_imaging_filter_transform_meta;
  trans_class->prepare_output_buffer = gst_imaging_filter_prepare_output_buffer;

  gst_type_mark_as_plugin_api (GST_TYPE_IMAGING_BACKEND_CHOICE, 0);
  gst_type_mark_as_plugin_api (GST_TYPE_IMAGING_FILTER, 0);
  gst_imaging_results_register ();
  gst_imaging_init_debug ();
}

static void
gst_imaging_filter_init (GstImagingFilter *self)
{
  GstBaseTransform *trans = GST_BASE_TRANSFORM (self);
  Private *priv = private_of (self);

  priv->choice = DEFAULT_BACKEND;
  priv->device_id = DEFAULT_CUDA_DEVICE_ID;
  priv->n_threads = DEFAULT_N_THREADS;
  priv->stats = gst_imaging_stats_new ();

  /* The base class stops upstream when src is not linked. */
  priv->base_chain = GST_PAD_CHAINFUNC (GST_BASE_TRANSFORM_SINK_PAD (trans));
  gst_pad_set_chain_function (
      GST_BASE_TRANSFORM_SINK_PAD (trans), gst_imaging_filter_chain);
}
