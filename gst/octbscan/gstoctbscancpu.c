/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A work item on the CPU, at once, also after the last device is lost. */
#include "gstoctbscaninput.h"
#include "gstoctbscanwork.h"

static ImkStatus
run_kernel (GstOctBscan *self, const ImkImage *from, const GstImagingFrame *out,
    GstOctBscanWork *w, ImkError *error)
{
  IMK_TRY (
      imk_octbscan_update (self->open.kernel, &w->snapshot->config, error));
  for (guint k = 0; k < w->n; k++) {
    ImkImage images[N_OUTPUTS], in, track;
    ImkOctbscanJob job;

    for (guint i = 0; i < N_OUTPUTS; i++)
      if (w->out[i]) {
        images[i] = out[i].planes[0];
        images[i].data = (guint8 *) images[i].data +
                         k * gst_oct_bscan_pad_step (&w->snapshot->info[i]);
        gst_oct_bscan_work_image (w, i, &images[i]);
      }
    if (from) {
      in = *from;
      in.data = (guint8 *) in.data + k * gst_oct_bscan_work_in_step (self);
    }
    job = gst_oct_bscan_work_job (self, w, k, from ? &in : NULL, images,
        &w->reports[k], IMK_LOCATION_HOST, &track);
    IMK_TRY (imk_octbscan_process (self->open.kernel, &job, 1, NULL, error));
  }
  return IMK_OK;
}

static ImkStatus
run (GstOctBscan *self, GstOctBscanWork *w, ImkError *error)
{
  GstImagingFrame from, out[N_OUTPUTS];
  gboolean mapped[N_OUTPUTS] = {FALSE};
  ImkStatus status = IMK_OK;

  w->on_cpu = TRUE;
  if (w->in)
    IMK_TRY (
        gst_imaging_engine_map (self->base.engine, w->in, &self->input.bscan,
            GST_MAP_READ, GST_IMAGING_REACH_HOST, &from, error));
  if (w->in)
    gst_imaging_engine_note_memory (self->base.engine, from.memory_name);
  for (guint i = 0; i < N_OUTPUTS && status == IMK_OK; i++)
    if (w->out[i]) {
      status = gst_imaging_engine_map (self->base.engine, w->out[i],
          &w->snapshot->info[i], GST_MAP_WRITE, GST_IMAGING_REACH_HOST, &out[i],
          error);
      mapped[i] = status == IMK_OK;
    }
  if (w->in)
    gst_oct_bscan_input_image (self, &from.planes[0]);
  if (status == IMK_OK)
    status = run_kernel (self, w->in ? &from.planes[0] : NULL, out, w, error);
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (mapped[i])
      gst_imaging_frame_unmap (&out[i], TRUE, NULL);
  if (w->in)
    gst_imaging_frame_unmap (&from, TRUE, NULL);
  return status;
}

ImkStatus
gst_oct_bscan_run_on_cpu (
    GstOctBscan *self, GstOctBscanWork *w, ImkError *error)
{
  ImkStatus status = run (self, w, error);

  if (status == IMK_OK || !gst_oct_bscan_work_is_lost (self, w, status))
    return status;
  GST_WARNING_OBJECT (self, "a B-scan is lost: %s", error->message);
  w->lost = TRUE;
  return IMK_OK;
}

gboolean
gst_oct_bscan_fall_back (GstOctBscan *self, const GstOctBscanWork *w,
    ImkStatus status, const ImkError *why)
{
  GstImagingEngine *engine = self->base.engine;
  ImkError error = *why;

  if (gst_imaging_engine_can_fall_back (engine, status))
    status = gst_imaging_engine_fall_back (engine, &error);
  if (status != IMK_OK) {
    gst_imaging_engine_post_error (engine, status, &error);
    return FALSE;
  }
  gst_imaging_engine_post_fall_back (
      engine, why, w && gst_oct_bscan_work_is_lost (self, w, IMK_ERROR_DEVICE));
  return TRUE;
}
