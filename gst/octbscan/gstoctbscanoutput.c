/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Images leave by the pads, and are counted. */
#include "gstoctbscanoutput.h"

#include "gstimagingmetadata.h"
#include "gstoctbscanplan.h"
#include "gstoctbscantime.h"

GstFlowReturn
gst_oct_bscan_post_error (GstOctBscan *self, const ImkError *error)
{
  GST_IMAGING_HOLD (&self->engine_lock);
  gst_imaging_engine_post_error (self->base.engine, error->code, error);
  return GST_FLOW_ERROR;
}

GstFlowReturn
gst_oct_bscan_combine (GstOctBscan *self, const GstOctBscanSnapshot *snapshot,
    guint output, GstFlowReturn flow)
{
  return gst_imaging_src_pads_combine (self->base.outputs, output,
      GST_IMAGING_SRC_PAD (snapshot->pads[output]), flow, GST_FLOW_OK);
}

void
gst_oct_bscan_warn_of_rows (GstOctBscan *self, guint n, const gchar *why)
{
  if (n > 0)
    GST_ELEMENT_WARNING (self, STREAM, FORMAT,
        ("%u B-scans do not fill an en-face image (bscans-per-volume) and are "
         "left out of it: %s.",
            n, why),
        (NULL));
}

/* --- several B-scans at once --------------------------------------------- */

/* Image @k, which keeps the block. */
static GstBuffer *
image_of (GstOctBscan *self, const GstOctBscanWork *w, guint output, guint k)
{
  gsize step = gst_oct_bscan_pad_step (&w->snapshot->info[output]);
  GstBuffer *image = gst_imaging_buffer_part (w->out[output], k * step,
      w->snapshot->info[output].size, self->output.parts[output]);

  gst_imaging_metadata_pass (image, w->like, FALSE);
  if (k > 0)
    GST_BUFFER_FLAG_UNSET (image, GST_BUFFER_FLAG_DISCONT);
  image = gst_imaging_src_pad_prepare_buffer (
      GST_IMAGING_SRC_PAD (w->snapshot->pads[output]), image);
  GST_BUFFER_PTS (image) =
      gst_oct_bscan_time_later (w->stamp.pts, w->stamp.duration, k);
  GST_BUFFER_DTS (image) =
      gst_oct_bscan_time_later (w->stamp.dts, w->stamp.duration, k);
  GST_BUFFER_DURATION (image) = w->stamp.duration;
  gst_oct_bscan_describe_image (
      w, output, k, gst_oct_bscan_shift (self, w, output, k), image);
  gst_oct_bscan_attach_lines (self, w, output, k, image);
  return image;
}

static GstFlowReturn
push_image_list (GstOctBscan *self, const GstOctBscanWork *w, guint output)
{
  GstBufferList *list = gst_buffer_list_new_sized (w->n);

  for (guint k = 0; k < w->n; k++)
    gst_buffer_list_add (list, image_of (self, w, output, k));
  return gst_oct_bscan_combine (self, w->snapshot, output,
      gst_pad_push_list (GST_PAD (w->snapshot->pads[output]), list));
}

/* By several pads in turns: who waits for the images of one B-scan shall not
 * have to hold a list of one of them. */
static GstFlowReturn
push_images_of_run (GstOctBscan *self, const GstOctBscanWork *w)
{
  GstFlowReturn flow = GST_FLOW_OK;
  guint n_outputs = 0, last = SRC;

  for (guint i = 0; i < N_OUTPUTS; i++)
    if (w->out[i]) {
      n_outputs++;
      last = i;
    }
  if (n_outputs == 1)
    return push_image_list (self, w, last);
  for (guint k = 0; n_outputs > 1 && k < w->n && flow == GST_FLOW_OK; k++)
    for (guint i = 0; i < N_OUTPUTS && flow != GST_FLOW_ERROR; i++)
      if (w->out[i])
        flow = gst_oct_bscan_combine (self, w->snapshot, i,
            gst_pad_push (
                GST_PAD (w->snapshot->pads[i]), image_of (self, w, i, k)));
  return flow;
}

/* --- one B-scan ---------------------------------------------------------- */

/* The row of this B-scan becomes the image of its volume, or nothing yet. */
static GstFlowReturn
gather_row (GstOctBscan *self, GstOctBscanWork *w)
{
  g_autoptr (GstBuffer) row = g_steal_pointer (&w->out[ENFACE]);
  gboolean db = w->snapshot->scaling == SCALING_DB;
  ImkOctbscanConfig config;
  GstEvent *gap = NULL;
  gfloat ends[4];
  ImkError error;
  gboolean full;
  guint n_forgotten;
  ImkStatus status = gst_oct_bscan_enface_setup (self->output.enface,
      GST_PAD (w->snapshot->pads[ENFACE]),
      (guint) w->snapshot->info[ENFACE].width / sizeof (gfloat),
      (guint) w->snapshot->volume.height, &n_forgotten, &error);

  gst_oct_bscan_warn_of_rows (self, n_forgotten, "its size changes");
  if (status != IMK_OK)
    return gst_oct_bscan_post_error (self, &error);
  /* an image is long in coming; a sink prerolls with less */
  if (gst_oct_bscan_enface_is_new (self->output.enface) &&
      GST_CLOCK_TIME_IS_VALID (w->stamp.pts))
    gap = gst_event_new_gap (w->stamp.pts, w->stamp.duration);
  full = gst_oct_bscan_enface_add (self->output.enface, row);
  if (gap)
    gst_pad_push_event (GST_PAD (w->snapshot->pads[ENFACE]), gap);
  if (!full)
    return GST_FLOW_OK;
  config = w->snapshot->config;
  if (w->snapshot->auto_range) { /* of this image */
    config.range = IMK_OCTBSCAN_RANGE_AUTO;
    config.auto_bscans = 0;
  }
  w->out[ENFACE] =
      gst_oct_bscan_enface_image (self->output.enface, &w->snapshot->volume,
          w->snapshot->is_float[ENFACE], &config, db, row, ends, &error);
  if (!w->out[ENFACE])
    return gst_oct_bscan_post_error (self, &error);
  gst_oct_bscan_describe_volume (w, w->out[ENFACE], db, ends);
  return GST_FLOW_OK;
}

/* The combiner goes on as long as one of them wants more. */
GstFlowReturn
gst_oct_bscan_push_images (GstOctBscan *self, GstOctBscanWork *w)
{
  GstFlowReturn flow = GST_FLOW_OK;

  if (w->n > 1)
    return push_images_of_run (self, w);
  gst_oct_bscan_add_lines (self, w);
  if (w->out[ENFACE])
    flow = gather_row (self, w);
  for (guint i = 0; i < N_OUTPUTS && flow != GST_FLOW_ERROR; i++)
    if (w->out[i]) {
      gst_oct_bscan_describe_image (
          w, i, 0, gst_oct_bscan_shift (self, w, i, 0), w->out[i]);
      gst_oct_bscan_attach_lines (self, w, i, 0, w->out[i]);
      flow = gst_oct_bscan_combine (self, w->snapshot, i,
          gst_imaging_src_pad_push (GST_IMAGING_SRC_PAD (w->snapshot->pads[i]),
              g_steal_pointer (&w->out[i])));
    }
  if (w->has_images)
    self->output.mean_lines.n = 0;
  return flow;
}

/* --- statistics ---------------------------------------------------------- */

static void
count_bad (GstOctBscan *self, const GstOctBscanWork *w)
{
  guint n_bad = 0;

  for (guint k = 0; k < w->n; k++)
    n_bad += w->reports[k].n_bad;
  if (n_bad == 0)
    return;
  gst_imaging_stats_add_own (
      gst_imaging_engine_stats (self->base.engine), n_bad);
  if (!g_atomic_int_compare_and_exchange (&self->warned_of_bad, FALSE, TRUE))
    return;
  GST_ELEMENT_WARNING (self, STREAM, DECODE,
      ("%u A-scans are black, as samples of their spectra are not numbers, are "
       "infinite or are beyond 1e15. bad-ascans of stats counts all of them. "
       "Look at what writes the spectra.",
          n_bad),
      ("the B-scan with pts %" GST_TIME_FORMAT, GST_TIME_ARGS (w->stamp.pts)));
}

void
gst_oct_bscan_count (GstOctBscan *self, const GstOctBscanWork *w)
{
  if (!w->lost) {
    gst_oct_bscan_note_ends (self, w);
    count_bad (self, w);
  }
  for (guint k = 0; k < w->n; k++)
    if (w->lost)
      gst_imaging_engine_count_lost (self->base.engine);
    else
      gst_imaging_engine_count_frame (self->base.engine, w->entered);
}
