/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Several B-scans that came in one buffer and go through as one: what a buffer,
 * a copy and a push cost is paid once. */
#include "gstoctbscan-private.h"

#include "gstimagingmemory.h"
#include "gstimagingmetadata.h"

GstMemory *
gst_oct_bscan_peek_ours (GstBuffer *buffer)
{
  GstMemory *memory = gst_buffer_n_memory (buffer) == 1
                          ? gst_buffer_peek_memory (buffer, 0)
                          : NULL;

  return memory && gst_is_imaging_memory (memory) ? memory : NULL;
}

/* Returns: 1 on the CPU, if an output does not make one image for each B-scan,
 * and on a GPU until downstream has read an image on the CPU */
guint
gst_oct_bscan_most_at_once (GstOctBscan *self, GstBuffer *buffer)
{
  GstMemory *memory = gst_oct_bscan_peek_ours (buffer);
  gboolean each_alone;

  if (self->lines.height <= self->bscan.height || !self->queue ||
      !self->host_images || !memory || gst_oct_bscan_is_settling (self) ||
      gst_imaging_memory_is_on_device (memory))
    return 1;
  each_alone = self->now->average_bscans > 1 ||
               gst_imaging_src_pads_has (self->pads, COMPLEX) ||
               gst_imaging_src_pads_has (self->pads, ENFACE);
  return each_alone ? 1 : self->n_full;
}

gsize
gst_oct_bscan_work_in_step (const GstOctBscan *self)
{
  return (gsize) self->bscan.height * self->bscan.stride[0];
}

static GstClockTime
later (GstClockTime time, GstClockTime by, guint n)
{
  return GST_CLOCK_TIME_IS_VALID (time) && GST_CLOCK_TIME_IS_VALID (by)
             ? time + n * by
             : time;
}

/* Image @k, which keeps the block. */
static GstBuffer *
image_of (GstOctBscan *self, const GstOctBscanWork *w, guint output, guint k)
{
  gsize step = gst_oct_bscan_pad_step (&w->snapshot->info[output]);
  GstBuffer *image = gst_imaging_buffer_part (
      w->out[output], k * step, w->snapshot->info[output].size);

  gst_imaging_metadata_pass (image, w->like, FALSE);
  if (k > 0)
    GST_BUFFER_FLAG_UNSET (image, GST_BUFFER_FLAG_DISCONT);
  image = gst_imaging_src_pad_prepare_buffer (
      GST_IMAGING_SRC_PAD (w->snapshot->pads[output]), image);
  GST_BUFFER_PTS (image) = later (w->pts, w->duration, k);
  GST_BUFFER_DTS (image) = later (w->dts, w->duration, k);
  GST_BUFFER_DURATION (image) = w->duration;
  gst_oct_bscan_describe_image (w, output, k, image);
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
GstFlowReturn
gst_oct_bscan_push_images_of_run (GstOctBscan *self, const GstOctBscanWork *w)
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
