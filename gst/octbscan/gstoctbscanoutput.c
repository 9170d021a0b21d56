/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscanoutput.h"

#include "gstimagingallocation.h"

static void
drop_pool (GstOctBscanOutput *self)
{
  if (self->pool)
    gst_buffer_pool_set_active (self->pool, FALSE);
  gst_clear_object (&self->pool);
}

void
gst_oct_bscan_output_reset (GstOctBscanOutput *self)
{
  drop_pool (self);
  gst_clear_caps (&self->caps);
}

/* The format that downstream names first; 8 bits when it has no wish. */
static GstCaps *
choose_caps (GstPad *pad, gint width, gint height, gint fps_n, gint fps_d)
{
  GstCaps *ours = gst_caps_copy (gst_pad_get_pad_template_caps (pad));
  GstCaps *common;

  gst_caps_set_simple (ours, "width", G_TYPE_INT, width, "height", G_TYPE_INT,
      height, "framerate", GST_TYPE_FRACTION, fps_n, fps_d,
      "pixel-aspect-ratio", GST_TYPE_FRACTION, 1, 1, NULL);
  common = gst_pad_peer_query_caps (pad, ours);
  gst_caps_unref (ours);
  return common;
}

static gboolean
decide_allocation (GstOctBscanOutput *self, GstImagingEngine *engine)
{
  GstQuery *query = gst_query_new_allocation (self->caps, TRUE);
  gboolean ok;

  drop_pool (self);
  if (!gst_pad_peer_query (self->pad, query))
    GST_DEBUG_OBJECT (self->pad, "the peer proposes no allocation");
  ok = gst_imaging_allocation_decide_mode (engine, query,
      self->use_host ? GST_IMAGING_MEMORY_PINNED : GST_IMAGING_MEMORY_DEVICE);
  if (ok)
    gst_query_parse_nth_allocation_pool (
        query, 0, &self->pool, NULL, NULL, NULL);
  gst_query_unref (query);
  return ok && gst_buffer_pool_set_active (self->pool, TRUE);
}

GstFlowReturn
gst_oct_bscan_output_negotiate (GstOctBscanOutput *self,
    GstImagingEngine *engine, gint width, gint height, gint fps_n, gint fps_d)
{
  gboolean again = gst_pad_check_reconfigure (self->pad);
  GstCaps *caps;
  gboolean ok = TRUE;

  if (self->caps && self->pool && !again && self->info.width == width &&
      self->info.height == height && self->info.fps_n == fps_n &&
      self->info.fps_d == fps_d)
    return GST_FLOW_OK;
  caps = choose_caps (self->pad, width, height, fps_n, fps_d);
  if (gst_caps_is_empty (caps)) {
    gst_caps_unref (caps);
    return GST_PAD_IS_FLUSHING (self->pad) ? GST_FLOW_FLUSHING
                                           : GST_FLOW_NOT_NEGOTIATED;
  }
  caps = gst_caps_fixate (caps);
  if (!self->caps || !gst_caps_is_equal (caps, self->caps)) {
    gst_caps_replace (&self->caps, caps);
    ok = gst_video_info_from_caps (&self->info, caps) &&
         gst_pad_push_event (self->pad, gst_event_new_caps (caps));
  }
  gst_caps_unref (caps);
  if (ok && decide_allocation (self, engine))
    return GST_FLOW_OK;
  gst_oct_bscan_output_reset (self);
  gst_pad_mark_reconfigure (self->pad);
  return GST_PAD_IS_FLUSHING (self->pad) ? GST_FLOW_FLUSHING
                                         : GST_FLOW_NOT_NEGOTIATED;
}

gboolean
gst_oct_bscan_output_is_agreed (const GstOctBscanOutput *self, GstPad *pad)
{
  return self->caps && self->pool && !GST_PAD_NEEDS_RECONFIGURE (pad);
}

void
gst_oct_bscan_output_use_host (GstOctBscanOutput *self, gboolean use_host)
{
  if (self->use_host != use_host)
    drop_pool (self);
  self->use_host = use_host;
}

GstFlowReturn
gst_oct_bscan_output_acquire (GstOctBscanOutput *self, GstBuffer **buffer)
{
  return gst_buffer_pool_acquire_buffer (self->pool, buffer, NULL);
}
