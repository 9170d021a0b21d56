/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sink pad of a camera. */
#include "gstoctinterlace-private.h"

G_DEFINE_FINAL_TYPE (
    GstOctInterlacePad, gst_oct_interlace_pad, GST_TYPE_AGGREGATOR_PAD)

GstClockTime
gst_oct_interlace_pad_time_of (GstOctInterlacePad *self, GstBuffer *frame)
{
  const GstSegment *segment = &GST_AGGREGATOR_PAD (self)->segment;

  return segment->format == GST_FORMAT_TIME
             ? gst_segment_to_running_time (
                   segment, GST_FORMAT_TIME, GST_BUFFER_PTS (frame))
             : GST_BUFFER_PTS (frame);
}

gboolean
gst_oct_interlace_has_format (
    const GstOctInterlace *self, const GstOctInterlacePad *camera)
{
  const GstImagingLines *a = &self->camera_lines, *b = &camera->lines;

  return a->info.width == b->info.width && a->info.height == b->info.height &&
         a->type == b->type && a->is_tensor == b->is_tensor;
}

static GstFlowReturn
gst_oct_interlace_pad_flush (GstAggregatorPad *pad, GstAggregator *aggregator)
{
  /* the aggregating thread may be copying lines of the last frame */
  g_atomic_int_set (&GST_OCT_INTERLACE_PAD (pad)->is_flushed, TRUE);
  return GST_FLOW_OK;
}

static void
gst_oct_interlace_pad_finalize (GObject *object)
{
  GstOctInterlacePad *self = GST_OCT_INTERLACE_PAD (object);

  gst_clear_buffer (&self->frame);
  gst_clear_buffer (&self->last);
  G_OBJECT_CLASS (gst_oct_interlace_pad_parent_class)->finalize (object);
}

static void
gst_oct_interlace_pad_class_init (GstOctInterlacePadClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_oct_interlace_pad_finalize;
  GST_AGGREGATOR_PAD_CLASS (klass)->flush = gst_oct_interlace_pad_flush;
}

static void
gst_oct_interlace_pad_init (GstOctInterlacePad *self)
{
  gst_video_info_init (&self->lines.info);
}
