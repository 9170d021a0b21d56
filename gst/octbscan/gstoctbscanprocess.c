/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a B-scan to its images: on the CPU at once, on GPUs through the queue.
 */
#include "gstoctbscanprocess.h"

#include "gstoctbscaninput.h"
#include "gstoctbscanoutput.h"
#include "gstoctbscanqueue.h"

/* How long the first image of a stream is waited for: it takes less. */
#define FIRST_US 20000

/* Whether a pad must negotiate, which must wait until all B-scans before have
 * been pushed. Call with the engine locked. */
static gboolean
must_negotiate (GstOctBscan *self, const GstOctBscanWork *w)
{
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (w->snapshot->pads[i] && GST_PAD_PEER (w->snapshot->pads[i]) &&
        !gst_oct_bscan_pad_is_negotiated (w->snapshot->pads[i]))
      return TRUE;
  return FALSE;
}

/* --- on the CPU, at once -------------------------------------------------- */

static GstFlowReturn
process_on_cpu (GstOctBscan *self, GstOctBscanWork *w)
{
  ImkStatus status = IMK_OK;
  GstFlowReturn flow;
  ImkError error;

  g_mutex_lock (&self->engine_lock);
  flow = gst_oct_bscan_prepare_outputs (self, w);
  if (flow == GST_FLOW_OK)
    status = gst_oct_bscan_run_on_cpu (self, w, &error);
  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->base.engine, status, &error);
    flow = GST_FLOW_ERROR;
  } else if (flow == GST_FLOW_OK && w->in) {
    gst_oct_bscan_count (self, w);
  }
  g_mutex_unlock (&self->engine_lock);
  if (flow == GST_FLOW_OK && !w->lost)
    flow = gst_oct_bscan_push_images (self, w);
  gst_oct_bscan_work_free (w);
  return flow;
}

/* --- on GPUs -------------------------------------------------------------- */

/* As soon as somebody downstream has read an image on the CPU, images are
 * copied there a batch at a time; one by one takes longer. A viewer, who sees
 * some of them, does not count. */
static void
follow_readers (GstOctBscan *self)
{
  GstImagingStats *stats = gst_imaging_engine_stats (self->base.engine);

  if (gst_imaging_stats_streamed (stats) > 0 &&
      !gst_imaging_context_info (gst_imaging_engine_context (self->base.engine))
           ->integrated)
    self->shared.host_images = TRUE;
}

/* One device more. */
static ImkStatus
add_device (GstOctBscan *self, GPtrArray *devices, GstImagingContext *context,
    ImkOctbscan *kernel, guint n_batches, ImkError *error)
{
  GstOctBscanDevice *device =
      gst_oct_bscan_device_new (self, context, kernel, n_batches, error);

  if (!device)
    return error->code;
  g_ptr_array_add (devices, device);
  return gst_oct_bscan_device_prepare (device, error);
}

/* The devices of cuda-devices behind the first, which is the engine's. */
static ImkStatus
add_others (GstOctBscan *self, const GstImagingArray *list, GPtrArray *devices,
    guint n_batches, ImkError *error)
{
  ImkStatus status = IMK_OK;
  g_autoptr (GArray) ids =
      gst_imaging_context_list_ids (list->values, list->n, error);

  if (!ids)
    return IMK_ERROR_CONFIG;
  for (guint i = 0; i < ids->len && status == IMK_OK; i++) {
    gint id = g_array_index (ids, gint, i);
    GstImagingContext *context;

    if (id == gst_oct_bscan_device_id (devices->pdata[0]))
      continue;
    context = gst_imaging_context_get (id, error);
    status = context
                 ? add_device (self, devices, context, NULL, n_batches, error)
                 : IMK_ERROR_UNAVAILABLE;
    g_clear_object (&context);
  }
  return status;
}

ImkStatus
gst_oct_bscan_need_devices (GstOctBscan *self, ImkError *error)
{
  const GstImagingArray *list = self->in_use.now->cuda_devices;
  guint n_batches = self->in_use.now->max_in_flight;
  GPtrArray *devices;
  ImkStatus status;
  GstOctBscanQueue *queue;

  if (self->shared.queue)
    return IMK_OK;
  devices = g_ptr_array_new_with_free_func (
      (GDestroyNotify) gst_oct_bscan_device_free);
  status =
      add_device (self, devices, gst_imaging_engine_context (self->base.engine),
          self->open.kernel, n_batches, error);
  if (status == IMK_OK && list &&
      !imk_octbscan_has_history (&self->open.config))
    status = add_others (self, list, devices, n_batches, error);
  if (status != IMK_OK) {
    g_ptr_array_unref (devices);
    return status;
  }
  self->shared.host_images |= devices->len > 1;
  self->shared.n_full =
      (guint) CLAMP (GST_OCT_BSCAN_SLAB_SIZE / self->input.bscan.size, 1,
          self->open.config.max_jobs);
  queue =
      gst_oct_bscan_queue_new (self, devices, n_batches, self->shared.n_full);
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  self->shared.queue = queue;
  return IMK_OK;
}

void
gst_oct_bscan_release_devices (GstOctBscan *self)
{
  GstOctBscanQueue *queue;

  g_mutex_lock (&self->engine_lock);
  GST_OBJECT_LOCK (self);
  queue = g_steal_pointer (&self->shared.queue);
  GST_OBJECT_UNLOCK (self);
  g_mutex_unlock (&self->engine_lock);
  gst_oct_bscan_queue_free (queue);
  gst_oct_bscan_forget_snapshot (self);
}

void
gst_oct_bscan_drain (GstOctBscan *self)
{
  if (self->shared.queue)
    gst_oct_bscan_queue_drain (self->shared.queue);
}

/* Memory for the images, and the B-scan where the device reaches it. Call with
 * the engine locked. */
static ImkStatus
prepare_for_device (
    GstOctBscan *self, GstOctBscanWork *w, GstFlowReturn *flow, ImkError *error)
{
  GstImagingContext *context = gst_imaging_engine_context (self->base.engine);
  ImkStatus status = gst_oct_bscan_need_devices (self, error);
  GstBuffer *source;
  ImkError ignored;

  *flow = GST_FLOW_OK;
  IMK_TRY (status);
  IMK_TRY (gst_imaging_context_push (context, error));
  follow_readers (self);
  *flow = gst_oct_bscan_prepare_outputs (self, w);
  source = w->in ? gst_imaging_engine_reachable (self->base.engine, w->in,
                       GST_IMAGING_REACH_DEVICE, &ignored)
                 : NULL;
  gst_imaging_context_pop (context);
  /* without page-locked memory as it is, which takes longer */
  if (source && source != w->in) {
    gst_buffer_unref (w->source);
    w->source = source;
  }
  w->may_go_anywhere =
      w->to_host && w->source && !gst_oct_bscan_is_on_device (w->source);
  if (w->in)
    gst_imaging_engine_note_memory (
        self->base.engine, gst_imaging_buffer_memory_name (w->source));
  if (*flow == GST_FLOW_ERROR)
    return imk_error_set (
        error, IMK_ERROR_DEVICE, "The device has no memory for an image.");
  return IMK_OK;
}

gboolean
gst_oct_bscan_leave_device (GstOctBscan *self, const GstOctBscanWork *w,
    ImkStatus status, const ImkError *why)
{
  gst_oct_bscan_drain (self);
  gst_oct_bscan_release_devices (self);
  GST_IMAGING_HOLD (&self->engine_lock);
  /* the queue may have left it */
  return !gst_imaging_engine_is_on_cuda (self->base.engine) ||
         gst_oct_bscan_fall_back (self, w, status, why);
}

/* Call with the engine locked; it is unlocked. */
static GstFlowReturn
process_on_devices (GstOctBscan *self, GstOctBscanWork *w)
{
  gboolean is_first = !self->shared.has_shown && w->has_images;
  gboolean is_settling = w->snapshot->config.range == IMK_OCTBSCAN_RANGE_AUTO;
  GstFlowReturn flow;
  ImkStatus status;
  ImkError error;

  if (must_negotiate (self, w)) {
    g_mutex_unlock (&self->engine_lock);
    gst_oct_bscan_drain (self);
    g_mutex_lock (&self->engine_lock);
  }
  status = prepare_for_device (self, w, &flow, &error);
  g_mutex_unlock (&self->engine_lock);
  if (status != IMK_OK) { /* before it has any work; the earlier is output */
    gst_oct_bscan_work_clear_outputs (w);
    if (gst_oct_bscan_leave_device (self, w, status, &error))
      return process_on_cpu (self, w);
    flow = GST_FLOW_ERROR;
  }
  /* the next B-scan needs the ends that are found in this one */
  is_settling &= w->has_images && (w->out[SRC] || w->out[LINEAR]);
  if (flow == GST_FLOW_OK) {
    flow = gst_oct_bscan_queue_add_work (self->shared.queue, w);
    if (is_settling)
      gst_oct_bscan_drain (self);
    /* The first reader of an image on the device waits for an allocation and a
     * copy, longer than a B-scan takes. Waiting for the first image here keeps
     * the next ones from queueing behind it. The wait is short, because a sink
     * may hold the image until the pipeline plays. */
    if (flow == GST_FLOW_OK && is_first && !self->shared.host_images)
      gst_oct_bscan_queue_wait (self->shared.queue, FIRST_US);
    self->shared.has_shown |= flow == GST_FLOW_OK && is_first;
    return flow;
  }
  gst_oct_bscan_work_free (w);
  return flow;
}

/* --- both ----------------------------------------------------------------- */

GstFlowReturn
gst_oct_bscan_process (GstOctBscan *self, GstOctBscanWork *w)
{
  ImkStatus status;
  ImkError error;

  g_mutex_lock (&self->engine_lock);
  status = gst_imaging_engine_ensure_open (self->base.engine, &error);
  if (status == IMK_OK && gst_imaging_engine_is_on_cuda (self->base.engine))
    return process_on_devices (self, w);
  g_mutex_unlock (&self->engine_lock);
  if (status != IMK_OK) {
    gst_oct_bscan_work_free (w);
    return gst_oct_bscan_post_error (self, &error);
  }
  /* the last of several devices may have been lost */
  gst_oct_bscan_drain (self);
  gst_oct_bscan_release_devices (self);
  return process_on_cpu (self, w);
}

GstFlowReturn
gst_oct_bscan_show_mean (GstOctBscan *self)
{
  GstOctBscanWork *w = gst_oct_bscan_work_of_mean (self);

  return w ? gst_oct_bscan_process (self, w) : GST_FLOW_OK;
}
