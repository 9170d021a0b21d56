/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingresultspad.h"

#include <string.h>

#include "gstimaging-private.h"
#include "gstimagingresultstext.h"
#include "gstimagingstream.h"

/* All members but the pad belong to the streaming thread. */
struct _GstImagingResultsPad {
  GstElement *element;
  GstPad *pad;
  GstImagingResultsText *text;
  gboolean started;
  gboolean is_text;           /* then @text pushes everything */
  const gchar *const *header; /* fields that the last line of names had */
  guint n_header;
  gint relinked; /* atomic: the new peer lacks that line */
  GstCaps *caps;
  GstCaps *tensor; /* caps of the last results as tensors */
  GstPad *sink;    /* whose stream this is */
  gboolean segment_sent;
  gboolean is_discont; /* the next buffer does not continue the last */
  gboolean has_posted; /* the error that the peer refuses */
};

static void
on_linked (GstPad *pad, GstPad *peer, gpointer self)
{
  g_atomic_int_set (&((GstImagingResultsPad *) self)->relinked, TRUE);
}

GstImagingResultsPad *
gst_imaging_results_pad_new (
    GstElement *element, GstPadTemplate *template, GstPad *sink)
{
  GstImagingResultsPad *self = g_atomic_rc_box_new0 (GstImagingResultsPad);
  GstPad *pad = gst_pad_new_from_template (template, "results");

  self->element = element;
  self->pad = gst_object_ref_sink (pad);
  self->is_text = TRUE;
  self->sink = gst_object_ref (sink);
  gst_pad_use_fixed_caps (pad);
  self->text = gst_imaging_results_text_new (pad);
  g_signal_connect (pad, "linked", G_CALLBACK (on_linked), self);
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

  g_signal_handlers_disconnect_by_data (self->pad, self);
  gst_imaging_results_text_unref (self->text);
  gst_object_unref (self->pad);
  gst_object_unref (self->sink);
  gst_clear_caps (&self->caps);
  gst_clear_caps (&self->tensor);
}

void
gst_imaging_results_pad_unref (GstImagingResultsPad *self)
{
  g_atomic_rc_box_release_full (self, clear);
}

void
gst_imaging_results_pad_remove (GstImagingResultsPad *self)
{
  gst_imaging_results_text_close (self->text);
  gst_pad_set_active (self->pad, FALSE);
  gst_element_remove_pad (self->element, self->pad);
}

void
gst_imaging_results_pad_reset (GstImagingResultsPad *self)
{
  self->started = self->segment_sent = self->has_posted = FALSE;
  self->header = NULL;
  self->is_text = TRUE;
  gst_clear_caps (&self->caps);
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

/* @event: (transfer full) */
static void
send_event (GstImagingResultsPad *self, GstEvent *event)
{
  if (self->is_text)
    gst_imaging_results_text_push_event (self->text, event);
  else
    gst_pad_push_event (self->pad, event);
}

static void
start_stream (GstImagingResultsPad *self)
{
  g_autofree gchar *id = NULL;
  GstEvent *upstream;

  if (self->started)
    return;
  id = gst_pad_create_stream_id (self->pad, self->element, "results");
  upstream = gst_pad_get_sticky_event (self->sink, GST_EVENT_STREAM_START, 0);
  send_event (self, gst_imaging_stream_start_new (id, upstream));
  gst_clear_event (&upstream);
  self->started = TRUE;
}

static void
send_segment (GstImagingResultsPad *self)
{
  GstEvent *upstream;

  if (self->segment_sent)
    return;
  upstream = gst_pad_get_sticky_event (self->sink, GST_EVENT_SEGMENT, 0);
  send_event (self, gst_imaging_stream_segment (upstream));
  gst_clear_event (&upstream);
  self->segment_sent = self->is_discont = TRUE;
}

/* Returns: (transfer full): what the peer takes of @ours (transfer full) */
static GstCaps *
ask_peer (GstImagingResultsPad *self, GstCaps *ours)
{
  GstCaps *answer = gst_pad_peer_query_caps (self->pad, ours);
  /* in the order of the answer; some peers do not look at the filter */
  GstCaps *common =
      gst_caps_intersect_full (answer, ours, GST_CAPS_INTERSECT_FIRST);

  gst_caps_unref (answer);
  gst_caps_unref (ours);
  return common;
}

/* Sends caps before the segment even without a frame: text needs none.
 * Returns: whether there are caps */
static gboolean
negotiate_text (GstImagingResultsPad *self)
{
  GstCaps *common;

  if (self->caps)
    return TRUE;
  common = ask_peer (self, gst_caps_from_string (GST_IMAGING_RESULTS_CAPS));
  if (gst_caps_get_size (common) > 0 &&
      gst_structure_has_name (gst_caps_get_structure (common, 0), "text/csv")) {
    self->caps = gst_caps_new_empty_simple ("text/csv");
    self->is_text = TRUE;
    send_event (self, gst_event_new_caps (self->caps));
  }
  gst_caps_unref (common);
  return self->caps != NULL;
}

/* Our text or our tensor, whichever the peer names first. */
static GstCaps *
choose_caps (GstImagingResultsPad *self, GstCaps *tensor)
{
  GstCaps *ours = gst_caps_new_empty_simple ("text/csv"), *common;

  gst_caps_append (ours, gst_caps_ref (tensor));
  common = ask_peer (self, ours);
  if (gst_caps_is_empty (common)) {
    gst_caps_unref (common);
    return NULL;
  }
  return gst_caps_fixate (common);
}

/* For late clients of a server, and for each of many files. */
static GstBuffer *
make_header (const GstImagingResult *result)
{
  gchar *text = gst_imaging_results_csv_header (result);
  GstBuffer *header = gst_buffer_new_wrapped (text, strlen (text));

  GST_BUFFER_FLAG_SET (header, GST_BUFFER_FLAG_HEADER);
  return header;
}

static void
set_stream_header (GstCaps *caps, const GstImagingResult *result)
{
  GstBuffer *header = make_header (result);
  GValue array = G_VALUE_INIT, value = G_VALUE_INIT;

  g_value_init (&array, GST_TYPE_ARRAY);
  g_value_init (&value, GST_TYPE_BUFFER);
  gst_value_take_buffer (&value, header);
  gst_value_array_append_and_take_value (&array, &value);
  gst_structure_take_value (
      gst_caps_get_structure (caps, 0), "streamheader", &array);
}

static gboolean
has_header (const GstImagingResultsPad *self, const GstImagingResult *result)
{
  return self->header == result->fields && self->n_header == result->n_fields;
}

static void
set_caps (GstImagingResultsPad *self, GstCaps *caps)
{
  gboolean is_text =
      gst_structure_has_name (gst_caps_get_structure (caps, 0), "text/csv");

  gst_caps_replace (&self->caps, caps);
  if (self->is_text && !is_text) /* what is text goes first */
    gst_imaging_results_text_drain (self->text);
  self->is_text = is_text;
  send_event (self, gst_event_new_caps (caps));
}

/* Returns: whether there are caps. The next push sends them again and returns
 * the answer of the peer */
static gboolean
negotiate (
    GstImagingResultsPad *self, const GstImagingResult *result, GstCaps *tensor)
{
  gboolean reconfigure = gst_pad_check_reconfigure (self->pad);
  GstCaps *chosen;

  /* The size of the tensor may have changed with the video. */
  if (self->caps && !reconfigure &&
      (self->is_text ? has_header (self, result)
                     : gst_caps_is_equal (self->caps, tensor)))
    return TRUE;
  chosen = choose_caps (self, tensor);
  if (!chosen)
    return FALSE;
  if (gst_structure_has_name (gst_caps_get_structure (chosen, 0), "text/csv")) {
    chosen = gst_caps_make_writable (chosen);
    set_stream_header (chosen, result);
  }
  if (!self->caps || !gst_caps_is_equal (self->caps, chosen))
    set_caps (self, chosen);
  gst_caps_unref (chosen);
  return TRUE;
}

/* A sink without caps waits for ever, and with it those of other branches: an
 * error ends that, unless somebody is just changing the pipeline. */
static GstFlowReturn
refuse (GstImagingResultsPad *self, const GstCaps *tensor)
{
  GstCaps *taken;

  if (GST_PAD_IS_FLUSHING (self->pad))
    return GST_FLOW_FLUSHING;
  if (!gst_pad_is_linked (self->pad))
    return GST_FLOW_NOT_LINKED;
  if (GST_PAD_NEEDS_RECONFIGURE (self->pad))
    return GST_FLOW_OK;
  gst_clear_caps (&self->caps); /* the next frame asks again */
  if (self->has_posted)
    return GST_FLOW_ERROR;
  self->has_posted = TRUE;
  taken = gst_pad_peer_query_caps (self->pad, NULL);
  GST_ELEMENT_ERROR (self->element, CORE, NEGOTIATION,
      ("The results are text/csv or %" GST_PTR_FORMAT
       ", but what is linked to the pad \"%s\" takes %" GST_PTR_FORMAT ".",
          tensor, GST_PAD_NAME (self->pad), taken),
      (NULL));
  gst_caps_unref (taken);
  return GST_FLOW_ERROR;
}

static gboolean
has_event (GstImagingResultsPad *self, GstEventType type)
{
  GstEvent *event = gst_pad_get_sticky_event (self->pad, type, 0);
  gboolean has = event != NULL;

  gst_clear_event (&event);
  return has;
}

/* What a flush took from the thread before downstream had it is sent again. */
static void
restore_stream (GstImagingResultsPad *self)
{
  if (!has_event (self, GST_EVENT_STREAM_START))
    self->started = FALSE;
  if (!has_event (self, GST_EVENT_CAPS))
    gst_clear_caps (&self->caps);
  if (!gst_imaging_results_text_has_header (self->text))
    self->header = NULL;
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
    self->segment_sent = FALSE;
    break;
  case GST_EVENT_EOS:
    /* A sink waits for EOS even without a frame. */
    start_stream (self);
    if (negotiate_text (self))
      send_segment (self);
    /* no later frame could report an error of the last row */
    if (gst_imaging_results_text_drain (self->text) ==
            GST_FLOW_NOT_NEGOTIATED &&
        self->tensor)
      refuse (self, self->tensor);
    send_event (self, gst_event_ref (event));
    break;
  case GST_EVENT_FLUSH_STOP:
    self->segment_sent = FALSE;
    gst_imaging_results_text_set_flushing (self->text, FALSE);
    gst_pad_push_event (self->pad, gst_event_ref (event));
    restore_stream (self);
    break;
  case GST_EVENT_FLUSH_START:
    gst_imaging_results_text_set_flushing (self->text, TRUE);
    gst_pad_push_event (self->pad, gst_event_ref (event));
    break;
  case GST_EVENT_GAP:
    /* also before the first frame: a sink has to preroll */
    start_stream (self);
    if (negotiate_text (self)) {
      send_segment (self);
      send_event (self, gst_event_ref (event));
    }
    break;
  case GST_EVENT_CAPS: /* ours are others */
    break;
  default: /* as what applications make */
    if (GST_EVENT_IS_SERIALIZED (event)) {
      start_stream (self);
      send_event (self, gst_event_ref (event));
    } else {
      gst_pad_push_event (self->pad, gst_event_ref (event));
    }
    break;
  }
}

/* A reader of bare numbers, such as a tensor, identifies the frame by the
 * offset and by the time of the camera. */
static void
identify (GstBuffer *buffer, GstBuffer *frame, guint64 number)
{
  gpointer state = NULL;
  GstMeta *meta;

  gst_buffer_copy_into (buffer, frame, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  GST_BUFFER_OFFSET (buffer) = number;
  GST_BUFFER_OFFSET_END (buffer) = number + 1;
  while ((meta = gst_buffer_iterate_meta_filtered (
              frame, &state, GST_REFERENCE_TIMESTAMP_META_API_TYPE))) {
    const GstReferenceTimestampMeta *camera =
        (const GstReferenceTimestampMeta *) meta;

    gst_buffer_add_reference_timestamp_meta (
        buffer, camera->reference, camera->timestamp, camera->duration);
  }
}

static void
mark_discont (GstImagingResultsPad *self, GstBuffer *buffer)
{
  if (self->is_discont)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  self->is_discont = FALSE;
}

static GstFlowReturn
push_text (GstImagingResultsPad *self, const GstImagingResult *result,
    GstBuffer *frame)
{
  GstBuffer *header = NULL, *row = gst_buffer_new ();

  identify (row, frame, result->frame);
  if (!has_header (self, result)) {
    header = make_header (result);
    gst_buffer_copy_into (header, row, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
    self->header = result->fields;
    self->n_header = result->n_fields;
  }
  mark_discont (self, header ? header : row);
  return gst_imaging_results_text_push (self->text, result, header, row);
}

static GstFlowReturn
push (GstImagingResultsPad *self, const GstImagingResult *result,
    GstBuffer *frame, GstCaps *tensor)
{
  GstBuffer *buffer;

  if (g_atomic_int_compare_and_exchange (&self->relinked, TRUE, FALSE))
    self->header = NULL;
  start_stream (self);
  if (!negotiate (self, result, tensor))
    return GST_FLOW_NOT_NEGOTIATED;
  send_segment (self);
  /* The peer may have chosen text since the values were left out. */
  if (self->is_text)
    return result->values ? push_text (self, result, frame) : GST_FLOW_OK;
  buffer = gst_buffer_copy (result->data);
  identify (buffer, frame, result->frame);
  mark_discont (self, buffer);
  return gst_pad_push (self->pad, buffer);
}

GstFlowReturn
gst_imaging_results_pad_push (GstImagingResultsPad *self,
    const GstImagingResult *result, GstBuffer *frame, gint fps_n, gint fps_d)
{
  GstFlowReturn flow;
  GstCaps *tensor;

  if (!gst_pad_is_linked (self->pad))
    return GST_FLOW_NOT_LINKED;
  tensor = gst_imaging_results_tensor_caps (result, fps_n, fps_d);
  flow = push (self, result, frame, tensor);
  if (flow == GST_FLOW_NOT_NEGOTIATED)
    flow = refuse (self, tensor);
  else
    self->has_posted = FALSE;
  gst_caps_replace (&self->tensor, tensor);
  gst_caps_unref (tensor);
  return flow;
}
