/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Formats of the source pads, and the buffers for the images of a work item. */
#include "gstoctbscanoutput.h"

#include "gstimagingmetadata.h"

GstFlowReturn
gst_oct_bscan_negotiate (GstOctBscan *self, guint i, GstOctBscanPad *pad)
{
  const ImkOctbscanConfig *c = &self->open.config;
  GstOctBscanPadFormat f = {.output = i,
      .fps_n = self->input.bscan.fps_n,
      .fps_d = self->input.bscan.fps_d};
  guint32 width, height;
  guint n = i == COMPLEX ? 1 : self->in_use.now->average_bscans;

  if (!pad)
    return GST_FLOW_NOT_LINKED;
  gst_oct_bscan_pad_use_host (pad, self->shared.host_images);
  imk_octbscan_size (c, &width, &height);
  if (i == COMPLEX) {
    width = imk_octbscan_n_depths (c);
    height = c->height;
  } else if (i == ENFACE) {
    width = imk_octbscan_n_ascans (c);
    height = self->in_use.now->bscans_per_volume;
    n = n > G_MAXINT / height ? G_MAXINT : n * height;
  }
  f.width = (gint) width;
  f.height = (gint) height;
  if (!gst_util_fraction_multiply (
          f.fps_n, f.fps_d, 1, (gint) n, &f.fps_n, &f.fps_d)) {
    f.fps_n = 0;
    f.fps_d = 1;
  }
  return gst_oct_bscan_pad_negotiate (
      pad, self->base.engine, &self->engine_lock, &f);
}

static void
stamp (const GstOctBscanWork *w, guint output, GstBuffer *buffer)
{
  if (w->like)
    gst_imaging_metadata_pass (buffer, w->like, FALSE);
  if (output == COMPLEX)
    return;
  if (w->stamp.is_discont)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  if (w->stamp.offset != GST_BUFFER_OFFSET_NONE) {
    GST_BUFFER_OFFSET (buffer) = w->stamp.offset;
    GST_BUFFER_OFFSET_END (buffer) = w->stamp.offset_end;
  }
  GST_BUFFER_PTS (buffer) = w->stamp.pts;
  GST_BUFFER_DTS (buffer) = w->stamp.dts;
  GST_BUFFER_DURATION (buffer) = w->stamp.duration;
}

/* Nothing has changed since the last B-scan. */
static gboolean
is_settled (GstOctBscanPad *pad, const GstOctBscanWork *w)
{
  return gst_oct_bscan_pad_is_negotiated (pad) &&
         pad->settled == w->snapshot->changes && GST_PAD_PEER (pad);
}

/* A frame for a pad that is linked; none, and GST_FLOW_NOT_LINKED, else. */
static GstFlowReturn
prepare_output (
    GstOctBscan *self, guint i, GstOctBscanWork *w, gboolean *are_new)
{
  GstOctBscanPad *pad = w->snapshot->pads[i];
  GstFlowReturn flow = GST_FLOW_OK;

  if (!pad)
    return GST_FLOW_NOT_LINKED;
  gst_oct_bscan_pad_use_host (pad, self->shared.host_images);
  if (!is_settled (pad, w)) {
    flow = gst_oct_bscan_negotiate (self, i, pad);
    *are_new |= flow == GST_FLOW_OK;
  }
  pad->settled = w->snapshot->changes;
  if (flow == GST_FLOW_OK && (i == COMPLEX ? w->in != NULL : w->has_images))
    flow = w->n > 1
               ? gst_oct_bscan_pad_acquire_block (pad, self->base.engine,
                     MAX (w->n, self->shared.n_full), &w->out[i])
               : gst_oct_bscan_pad_acquire (pad, self->base.engine, &w->out[i]);
  if (w->out[i])
    stamp (w, i, w->out[i]);
  else if (flow != GST_FLOW_OK && flow != GST_FLOW_ERROR)
    flow = gst_oct_bscan_combine (self, w->snapshot, i, flow);
  return flow;
}

GstFlowReturn
gst_oct_bscan_prepare_outputs (GstOctBscan *self, GstOctBscanWork *w)
{
  GstFlowReturn flow = GST_FLOW_OK;
  gboolean are_new = FALSE;

  w->to_host = self->shared.host_images;
  for (guint i = 0; i < N_OUTPUTS && flow == GST_FLOW_OK; i++) {
    flow = prepare_output (self, i, w, &are_new);
    if (flow == GST_FLOW_NOT_LINKED && i != SRC)
      flow = GST_FLOW_OK; /* src, the last, decides */
  }
  if (are_new)
    gst_oct_bscan_renew_formats (self, &w->snapshot);
  return flow;
}
