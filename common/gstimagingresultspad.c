/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingresultspad.h"

#include "gstimaging-private.h"

/* All members but the pad belong to the streaming thread. */
struct _GstImagingResultsPad {
  GstElement *element;
  GstPad *pad;
  gboolean started;
  gboolean is_text;
  gboolean header_sent;
  GstCaps *caps;
  GstSegment segment;
  gboolean segment_sent;
};

GstImagingResultsPad *
gst_imaging_results_pad_new (
    GstElement *element, GstPadTemplate *template, const GstSegment *segment)
{
  GstImagingResultsPad *self = g_atomic_rc_box_new0 (GstImagingResultsPad);
  GstPad *pad = gst_pad_new_from_template (template, "results");

  self->element = element;
  self->pad = gst_object_ref_sink (pad);
  self->is_text = TRUE;
  self->segment = *segment;
  if (segment->format == GST_FORMAT_UNDEFINED)
    gst_segment_init (&self->segment, GST_FORMAT_TIME);
  gst_pad_use_fixed_caps (pad);
  gst_pad_set_active (pad, TRUE);
  gst_element_add_pad (element, pad); /* takes a reference of its own */
  return self;
}

GstImagingResultsPad *
gst_imaging_results_pad_ref (GstImagingResultsPad *self)
{
  return g_atomic_rc_box_acquire (self);
}

static void
clear (gpointer data)
{
  GstImagingResultsPad *self = data;

  gst_object_unref (self->pad);
  gst_clear_caps (&self->caps);
}

void
gst_imaging_results_pad_unref (GstImagingResultsPad *self)
{
  g_atomic_rc_box_release_full (self, clear);
}

void
gst_imaging_results_pad_remove (GstImagingResultsPad *self)
{
  gst_pad_set_active (self->pad, FALSE);
  gst_element_remove_pad (self->element, self->pad);
}

void
gst_imaging_results_pad_reset (GstImagingResultsPad *self)
{
  self->started = self->segment_sent = self->header_sent = FALSE;
  self->is_text = TRUE;
  gst_clear_caps (&self->caps);
  gst_segment_init (&self->segment, GST_FORMAT_TIME);
}

GstPad *
gst_imaging_results_pad_get (GstImagingResultsPad *self)
{
  return self->pad;
}

gboolean
gst_imaging_results_pad_wants_values (GstImagingResultsPad *self)
{
  return self->is_text;
}

static void
start_stream (GstImagingResultsPad *self)
{
  gchar *id;

  if (self->started)
    return;
  id = gst_pad_create_stream_id (self->pad, self->element, "results");
  gst_pad_push_event (self->pad, gst_event_new_stream_start (id));
  g_free (id);
  self->started = TRUE;
}

static void
send_segment (GstImagingResultsPad *self)
{
  if (self->segment_sent)
    return;
  gst_pad_push_event (self->pad, gst_event_new_segment (&self->segment));
  self->segment_sent = TRUE;
}

/* Our text or our tensor, whichever the peer names first. */
static GstCaps *
choose_caps (GstImagingResultsPad *self, GstCaps *tensor)
{
  GstCaps *ours = gst_caps_new_empty_simple ("text/csv"), *common, *chosen;

  gst_caps_append (ours, gst_caps_ref (tensor));
  common = gst_pad_peer_query_caps (self->pad, ours);
  gst_caps_unref (ours);
  if (gst_caps_is_empty (common)) {
    gst_caps_unref (common);
    return NULL;
  }
  chosen = gst_caps_fixate (common);
  return chosen;
}

static gboolean
negotiate (GstImagingResultsPad *self, const GstImagingResult *result,
    gint fps_n, gint fps_d)
{
  GstCaps *tensor = gst_imaging_results_tensor_caps (result, fps_n, fps_d);
  gboolean ok = TRUE;
  GstCaps *chosen;

  /* The size of the tensor may have changed with the video. */
  if (self->caps && !gst_pad_check_reconfigure (self->pad) &&
      (self->is_text || gst_caps_is_equal (self->caps, tensor))) {
    gst_caps_unref (tensor);
    return TRUE;
  }
  chosen = choose_caps (self, tensor);
  gst_caps_unref (tensor);
  if (!chosen)
    return FALSE;
  if (!self->caps || !gst_caps_is_equal (self->caps, chosen)) {
    gst_caps_replace (&self->caps, chosen);
    self->is_text =
        gst_structure_has_name (gst_caps_get_structure (chosen, 0), "text/csv");
    ok = gst_pad_push_event (self->pad, gst_event_new_caps (chosen));
  }
  gst_caps_unref (chosen);
  return ok;
}

void
gst_imaging_results_pad_event (GstImagingResultsPad *self, GstEvent *event)
{
  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_STREAM_START:
    /* Only a new stream makes data flow again after EOS. */
    self->started = self->segment_sent = FALSE;
    break;
  case GST_EVENT_SEGMENT:
    gst_event_copy_segment (event, &self->segment);
    self->segment_sent = FALSE;
    break;
  case GST_EVENT_EOS:
    /* A sink waits for EOS even when not one frame came. */
    start_stream (self);
    send_segment (self);
    gst_pad_push_event (self->pad, gst_event_ref (event));
    break;
  case GST_EVENT_FLUSH_STOP:
    self->segment_sent = FALSE;
    gst_segment_init (&self->segment, GST_FORMAT_TIME);
    gst_pad_push_event (self->pad, gst_event_ref (event));
    break;
  case GST_EVENT_FLUSH_START:
    gst_pad_push_event (self->pad, gst_event_ref (event));
    break;
  case GST_EVENT_GAP:
    if (self->caps) {
      start_stream (self);
      send_segment (self);
      gst_pad_push_event (self->pad, gst_event_ref (event));
    }
    break;
  default:
    break;
  }
}

static GstBuffer *
make_buffer (GstImagingResultsPad *self, const GstImagingResult *result,
    GstBuffer *frame)
{
  GstBuffer *buffer;

  if (self->is_text) {
    buffer = gst_imaging_results_to_csv (
        result, GST_BUFFER_PTS (frame), !self->header_sent);
    self->header_sent = TRUE;
  } else {
    buffer = gst_buffer_copy (result->data);
  }
  gst_buffer_copy_into (buffer, frame, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  return buffer;
}

GstFlowReturn
gst_imaging_results_pad_push (GstImagingResultsPad *self,
    const GstImagingResult *result, GstBuffer *frame, gint fps_n, gint fps_d)
{
  if (!gst_pad_is_linked (self->pad))
    return GST_FLOW_NOT_LINKED;
  start_stream (self);
  if (!negotiate (self, result, fps_n, fps_d))
    return GST_PAD_IS_FLUSHING (self->pad) ? GST_FLOW_FLUSHING
                                           : GST_FLOW_NOT_NEGOTIATED;
  send_segment (self);
  /* The peer may have chosen text since the values were left out. */
  if (self->is_text && !result->values)
    return GST_FLOW_OK;
  return gst_pad_push (self->pad, make_buffer (self, result, frame));
}
