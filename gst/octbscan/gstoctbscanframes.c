/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a B-scan to its images, and out by the pads. */
#include "gstoctbscan-private.h"

#include "gstimagingallocation.h"

GstPad *
gst_oct_bscan_ref_pad (GstOctBscan *self, guint output)
{
  GstPad *pad;

  GST_OBJECT_LOCK (self);
  pad = self->outputs[output].pad;
  if (pad)
    gst_object_ref (pad);
  GST_OBJECT_UNLOCK (self);
  return pad;
}

GstFlowReturn
gst_oct_bscan_negotiate (GstOctBscan *self, guint i, GstPad *pad)
{
  if (!pad || !gst_pad_is_linked (pad))
    return GST_FLOW_NOT_LINKED;
  return gst_oct_bscan_output_negotiate (&self->outputs[i], self->engine,
      self->width, self->height, self->bscan.fps_n, self->bscan.fps_d);
}

/* --- one B-scan ---------------------------------------------------------- */

/* What is at work: a B-scan and an image for each pad that wants one. */
typedef struct {
  GstBuffer *in;
  GstBuffer *out[N_OUTPUTS];
  GstVideoInfo info[N_OUTPUTS];
} Work;

static ImkStatus
run_kernel (GstOctBscan *self, GstImagingFrame *in, GstImagingFrame *out,
    const Work *w, ImkError *error)
{
  ImkOctbscanJob job = {
      .in = &in->planes[0], .first_camera = self->next_camera};
  ImkOctbscanConfig config;
  Scaling scaling;
  ImkStatus status;

  GST_OBJECT_LOCK (self);
  config = self->settings.config;
  scaling = self->settings.scaling;
  GST_OBJECT_UNLOCK (self);
  status = imk_octbscan_update (self->kernel, &config, error);
  if (w->out[LINEAR])
    job.linear = &out[LINEAR].planes[0];
  if (w->out[SRC] && scaling == SCALING_DB)
    job.db = &out[SRC].planes[0];
  if (status == IMK_OK && (job.db || job.linear))
    status = imk_octbscan_process (self->kernel, &job, 1, in->stream, error);
  if (status == IMK_OK && w->out[SRC] && scaling == SCALING_LINEAR) {
    job.db = NULL;
    job.linear = &out[SRC].planes[0];
    status = imk_octbscan_process (self->kernel, &job, 1, in->stream, error);
  }
  return status;
}

static ImkStatus
process_mapped (GstOctBscan *self, GstBuffer *in, const Work *w,
    GstImagingReach reach, ImkError *error)
{
  GstImagingFrame from, out[N_OUTPUTS];
  gboolean mapped[N_OUTPUTS] = {FALSE}, done = reach == GST_IMAGING_REACH_HOST;
  ImkStatus status = gst_imaging_engine_map (
      self->engine, in, &self->bscan, GST_MAP_READ, reach, &from, error);
  ImkStatus unmapped;
  ImkError ignored;

  if (status != IMK_OK)
    return status;
  gst_imaging_engine_note_memory (self->engine, from.memory_name);
  for (guint i = 0; i < N_OUTPUTS && status == IMK_OK; i++)
    if (w->out[i]) {
      status = gst_imaging_engine_map (self->engine, w->out[i], &w->info[i],
          GST_MAP_WRITE, reach, &out[i], error);
      mapped[i] = status == IMK_OK;
    }
  if (status == IMK_OK)
    status = run_kernel (self, &from, out, w, error);
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (mapped[i]) {
      unmapped = gst_imaging_frame_unmap (
          &out[i], done, status == IMK_OK ? error : &ignored);
      status = status == IMK_OK ? unmapped : status;
    }
  unmapped = gst_imaging_frame_unmap (
      &from, done, status == IMK_OK ? error : &ignored);
  return status == IMK_OK ? unmapped : status;
}

static ImkStatus
process_on_device (GstOctBscan *self, const Work *w, ImkError *error)
{
  GstImagingContext *context = gst_imaging_engine_context (self->engine);
  ImkStatus status = gst_imaging_context_push (context, error);
  GstBuffer *source;

  if (status != IMK_OK)
    return status;
  source = gst_imaging_engine_reachable (
      self->engine, w->in, GST_IMAGING_REACH_DEVICE, error);
  if (source) {
    status = process_mapped (self, source, w, GST_IMAGING_REACH_DEVICE, error);
    if (source != w->in)
      gst_buffer_unref (source);
  } else {
    status = error->code;
  }
  gst_imaging_context_pop (context);
  return status;
}

static ImkStatus
process (GstOctBscan *self, const Work *w, ImkError *error)
{
  ImkStatus status = gst_imaging_engine_ensure_open (self->engine, error);

  if (status != IMK_OK)
    return status;
  return gst_imaging_engine_is_on_cuda (self->engine)
             ? process_on_device (self, w, error)
             : process_mapped (self, w->in, w, GST_IMAGING_REACH_HOST, error);
}

/* On the CPU now, with what the failed device has left. */
static ImkStatus
process_again (GstOctBscan *self, const Work *w, ImkError *error)
{
  ImkStatus status = gst_imaging_engine_fall_back (self->engine, error);

  if (status != IMK_OK)
    return status;
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (w->out[i]) {
      gst_buffer_remove_all_memory (w->out[i]);
      gst_buffer_append_memory (
          w->out[i], gst_allocator_alloc (NULL, w->info[i].size, NULL));
    }
  return process (self, w, error);
}

/* Returns: GST_FLOW_CUSTOM_SUCCESS for a B-scan that is lost */
static GstFlowReturn
run (GstOctBscan *self, const Work *w)
{
  ImkError why, error;
  ImkStatus status = process (self, w, &error);

  if (gst_imaging_engine_can_fall_back (self->engine, status)) {
    why = error;
    status = process_again (self, w, &error);
    gst_imaging_engine_post_fall_back (self->engine, &why,
        gst_imaging_engine_is_lost (self->engine, w->in, status));
  }
  if (status == IMK_OK)
    return GST_FLOW_OK;
  if (gst_imaging_engine_is_lost (self->engine, w->in, status)) {
    GST_WARNING_OBJECT (self, "a B-scan is lost: %s", error.message);
    gst_imaging_engine_count_lost (self->engine);
    return GST_FLOW_CUSTOM_SUCCESS;
  }
  gst_imaging_engine_post_error (self->engine, status, &error);
  return GST_FLOW_ERROR;
}

/* --- pads ---------------------------------------------------------------- */

/* A frame for a pad that is linked; none, and GST_FLOW_NOT_LINKED, else. */
static GstFlowReturn
prepare (GstOctBscan *self, guint i, Work *w)
{
  GstOctBscanOutput *output = &self->outputs[i];
  GstPad *pad = gst_oct_bscan_ref_pad (self, i);
  GstFlowReturn flow = gst_oct_bscan_negotiate (self, i, pad);

  if (flow == GST_FLOW_OK)
    flow = gst_oct_bscan_output_acquire (output, &w->out[i]);
  w->info[i] = output->info;
  if (flow == GST_FLOW_OK)
    gst_buffer_copy_into (w->out[i], w->in,
        GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  if (pad) {
    if (flow != GST_FLOW_OK)
      flow = gst_flow_combiner_update_pad_flow (self->flows, pad, flow);
    gst_object_unref (pad);
  }
  return flow;
}

/* The combiner goes on as long as one of the two wants more. */
static GstFlowReturn
push (GstOctBscan *self, Work *w)
{
  GstFlowReturn flow = GST_FLOW_OK;

  for (guint i = 0; i < N_OUTPUTS; i++) {
    GstPad *pad = gst_oct_bscan_ref_pad (self, i);

    if (pad && w->out[i])
      flow = gst_flow_combiner_update_pad_flow (
          self->flows, pad, gst_pad_push (pad, g_steal_pointer (&w->out[i])));
    g_clear_object (&pad);
  }
  return flow;
}

GstFlowReturn
gst_oct_bscan_process (GstOctBscan *self, GstBuffer *in, GstClockTime entered)
{
  Work w = {.in = in};
  GstFlowReturn flow = GST_FLOW_OK;

  for (guint i = 0; i < N_OUTPUTS && flow == GST_FLOW_OK; i++) {
    flow = prepare (self, i, &w);
    if (flow == GST_FLOW_NOT_LINKED && i == LINEAR)
      flow = GST_FLOW_OK; /* src decides */
  }
  if (flow == GST_FLOW_OK)
    flow = run (self, &w);
  self->next_camera =
      (guint) ((self->next_camera + (guint64) self->bscan.height) %
               self->n_cameras);
  if (flow == GST_FLOW_OK) {
    gst_imaging_engine_count_frame (self->engine, entered);
    flow = push (self, &w);
  } else if (flow == GST_FLOW_CUSTOM_SUCCESS) {
    flow = GST_FLOW_OK;
  }
  for (guint i = 0; i < N_OUTPUTS; i++)
    gst_clear_buffer (&w.out[i]);
  gst_buffer_unref (in);
  return flow;
}
