/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarxcorroutput.h"

#include "gstinsarxcorrtext.h"
#include "insarxcorr/insarxcorr.h"

void
gst_insar_output_init (
    GstInsarOutput *self, GstPadTemplate *template, const gchar *name)
{
  *self = (GstInsarOutput){
      .pad = gst_pad_new_from_template (template, name),
  };
  gst_pad_use_fixed_caps (self->pad);
  gst_pad_set_active (self->pad, TRUE);
}

void
gst_insar_output_reset (GstInsarOutput *self, gboolean stopped)
{
  self->segment_sent = FALSE;
  if (!stopped)
    return;
  self->started = self->header_sent = FALSE;
  gst_clear_caps (&self->caps);
}

static void
start_stream (GstInsarOutput *self, const gchar *upstream)
{
  g_autofree gchar *id = NULL;

  if (self->started)
    return;
  id = g_strdup_printf ("%s/%s", upstream, GST_PAD_NAME (self->pad));
  gst_pad_push_event (self->pad, gst_event_new_stream_start (id));
  self->started = TRUE;
}

static void
send_segment (GstInsarOutput *self)
{
  GstSegment segment;

  if (self->segment_sent)
    return;
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (self->pad, gst_event_new_segment (&segment));
  self->segment_sent = TRUE;
}

/* Returns: FALSE when the peer takes none of @offered */
static gboolean
negotiate (GstInsarOutput *self, GstCaps *offered)
{
  gboolean done = TRUE;
  GstCaps *chosen;

  if (self->caps && !gst_pad_check_reconfigure (self->pad))
    return TRUE;
  chosen = gst_pad_peer_query_caps (self->pad, offered);
  if (gst_caps_is_empty (chosen)) {
    gst_caps_unref (chosen);
    return FALSE;
  }
  chosen = gst_caps_fixate (chosen);
  if (!self->caps || !gst_caps_is_equal (self->caps, chosen)) {
    gst_caps_replace (&self->caps, chosen);
    done = gst_pad_push_event (self->pad, gst_event_new_caps (chosen));
  }
  gst_caps_unref (chosen);
  return done;
}

void
gst_insar_output_start (
    GstInsarOutput *self, GstCaps *caps, const gchar *upstream)
{
  start_stream (self, upstream);
  negotiate (self, caps);
  send_segment (self);
}

void
gst_insar_output_gap (GstInsarOutput *self)
{
  gst_pad_push_event (self->pad, gst_event_new_gap (0, GST_CLOCK_TIME_NONE));
}

void
gst_insar_output_eos (GstInsarOutput *self, const gchar *upstream)
{
  start_stream (self, upstream);
  send_segment (self);
  gst_pad_push_event (self->pad, gst_event_new_eos ());
}

/* --- rows of patches ---------------------------------------------------------
 */

static GstBuffer *
gmtsar_text (const GstImagingResult *result)
{
  GString *text = g_string_sized_new (result->n_rows * 40);
  gsize size;

  for (guint i = 0; i < result->n_rows; i++) {
    const gdouble *row = result->values + (gsize) i * result->n_fields;

    gst_insar_text_append_row (text, row[IMK_INSARXCORR_X],
        row[IMK_INSARXCORR_DX], row[IMK_INSARXCORR_Y], row[IMK_INSARXCORR_DY],
        row[IMK_INSARXCORR_CORRELATION]);
  }
  size = text->len;
  return gst_buffer_new_wrapped (g_string_free (text, FALSE), size);
}

static GstBuffer *
make_buffer (GstInsarOutput *self, const GstImagingResult *result)
{
  const GstStructure *s = gst_caps_get_structure (self->caps, 0);
  GstBuffer *buffer;

  if (gst_structure_has_name (s, "text/x-gmtsar-xcorr")) {
    buffer = gmtsar_text (result);
  } else if (gst_structure_has_name (s, "text/csv")) {
    buffer = gst_imaging_results_to_csv (
        result, GST_CLOCK_TIME_NONE, !self->header_sent);
    self->header_sent = TRUE;
  } else {
    buffer = gst_buffer_copy (result->data);
  }
  GST_BUFFER_OFFSET (buffer) = result->frame;
  GST_BUFFER_OFFSET_END (buffer) = result->frame + 1;
  return buffer;
}

GstFlowReturn
gst_insar_output_push_row (
    GstInsarOutput *self, const GstImagingResult *result, const gchar *upstream)
{
  GstCaps *offered;
  gboolean agreed;

  if (!gst_pad_is_linked (self->pad))
    return GST_FLOW_NOT_LINKED;
  start_stream (self, upstream);
  offered = gst_caps_from_string ("text/x-gmtsar-xcorr; text/csv");
  gst_caps_append (offered, gst_imaging_results_tensor_caps (result, 0, 1));
  agreed = negotiate (self, offered);
  gst_caps_unref (offered);
  if (!agreed)
    return GST_PAD_IS_FLUSHING (self->pad) ? GST_FLOW_FLUSHING
                                           : GST_FLOW_NOT_NEGOTIATED;
  send_segment (self);
  return gst_pad_push (self->pad, make_buffer (self, result));
}
