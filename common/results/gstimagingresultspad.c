/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingresultspad.h"

#include <string.h>

#include "gstimaging-private.h"
#include "gstimagingquantity.h"
#include "gstimagingresults-private.h"
#include "gstimagingresultstext.h"

/* What the caps of a tensor depend on. */
typedef struct {
  guint n_rows, n_fields;
  gboolean by_field, has_flags;
  gint fps_n, fps_d;
} Shape;

/* All members belong to the streaming thread. */
struct _GstImagingResultsPad {
  GstImagingSrcPad parent;
  GstImagingResultsText *text;
  gboolean is_text;           /* @text pushes everything */
  const gchar *const *header; /* fields of the last header line */
  guint n_header;
  gint relinked;   /* atomic: the new peer lacks that line */
  GstCaps *tensor; /* caps of the last results as a tensor */
  GstCaps *both;   /* (nullable): as one with a tensor of flags */
  Shape shape;     /* that they are of */
  const gchar *const *fields, *const *field_units; /* likewise */
  const gchar *names, *units; /* interned: these, for files of the tensor */
  gboolean has_posted;        /* the error that the peer refuses */
};

G_DEFINE_FINAL_TYPE (
    GstImagingResultsPad, gst_imaging_results_pad, GST_TYPE_IMAGING_SRC_PAD)

void
gst_imaging_results_pad_close (GstImagingResultsPad *self)
{
  gst_imaging_results_text_close (self->text);
}

void
gst_imaging_results_pad_reset (GstImagingResultsPad *self)
{
  self->has_posted = FALSE;
  self->header = NULL;
  self->is_text = TRUE;
}

gboolean
gst_imaging_results_pad_wants_values (GstImagingResultsPad *self)
{
  return self->is_text;
}

static gboolean
are_text (const GstCaps *caps)
{
  return gst_structure_has_name (gst_caps_get_structure (caps, 0), "text/csv");
}

void
gst_imaging_results_pad_negotiate_text (GstImagingResultsPad *self)
{
  GstImagingSrcPad *pad = GST_IMAGING_SRC_PAD (self);
  g_autoptr (GstCaps) caps = NULL;

  if (gst_imaging_src_pad_caps (pad))
    return;
  caps = gst_imaging_src_pad_choose_caps (pad, GST_IMAGING_PREFER_PEERS,
      gst_pad_get_pad_template_caps (GST_PAD (self)));
  if (caps && are_text (caps))
    gst_imaging_src_pad_set_caps (pad, g_steal_pointer (&caps));
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

/* Does it say so? Who takes any number of tensors gets one. */
static gboolean
peer_prefers_two (GstPad *pad)
{
  g_autoptr (GstCaps) caps = gst_pad_peer_query_caps (pad, NULL);
  guint n_caps = gst_caps_is_any (caps) ? 0 : gst_caps_get_size (caps);
  gint n = 0;

  for (guint i = 0; i < n_caps; i++) {
    const GstStructure *s = gst_caps_get_structure (caps, i);

    if (gst_structure_has_name (s, "other/tensors"))
      return gst_structure_get_int (s, "num_tensors", &n) && n == 2;
  }
  return FALSE;
}

/* Returns: (transfer full): text, one tensor, or two */
static GstCaps *
make_offers (GstImagingResultsPad *self, const GstImagingResult *result)
{
  GstCaps *offers = gst_caps_new_empty_simple ("text/csv");
  GstBuffer *header = make_header (result);
  GValue array = G_VALUE_INIT, value = G_VALUE_INIT;

  g_value_init (&array, GST_TYPE_ARRAY);
  g_value_init (&value, GST_TYPE_BUFFER);
  gst_value_take_buffer (&value, header);
  gst_value_array_append_and_take_value (&array, &value);
  gst_structure_take_value (
      gst_caps_get_structure (offers, 0), "streamheader", &array);
  if (self->both && peer_prefers_two (GST_PAD (self))) {
    gst_caps_append (offers, gst_caps_copy (self->both));
    gst_caps_append (offers, gst_caps_copy (self->tensor));
    return offers;
  }
  gst_caps_append (offers, gst_caps_copy (self->tensor));
  if (self->both)
    gst_caps_append (offers, gst_caps_copy (self->both));
  return offers;
}

static gboolean
has_header (const GstImagingResultsPad *self, const GstImagingResult *result)
{
  return self->header == result->fields && self->n_header == result->n_fields;
}

/* Whether @caps are those of numbers and flags. */
static gboolean
has_two (const GstCaps *caps)
{
  gint n = 1;

  gst_structure_get_int (gst_caps_get_structure (caps, 0), "num_tensors", &n);
  return n == 2;
}

static GstFlowReturn
negotiate (GstImagingResultsPad *self, const GstImagingResult *result)
{
  GstImagingSrcPad *pad = GST_IMAGING_SRC_PAD (self);
  GstCaps *caps = gst_imaging_src_pad_caps (pad);

  /* The size of the tensor may have changed with the video. */
  if (caps && !GST_PAD_NEEDS_RECONFIGURE (pad) &&
      (self->is_text ? has_header (self, result)
                     : gst_caps_is_equal (
                           caps, has_two (caps) ? self->both : self->tensor)))
    return GST_FLOW_OK;
  return gst_imaging_src_pad_negotiate (
      pad, GST_IMAGING_PREFER_PEERS, make_offers (self, result));
}

/* A sink without caps waits for ever, and so do the sinks of other branches: an
 * error ends that, unless somebody is changing the pipeline. */
static GstFlowReturn
refuse (GstImagingResultsPad *self)
{
  GstPad *pad = GST_PAD (self);
  g_autoptr (GstCaps) taken = NULL;

  if (GST_PAD_IS_FLUSHING (pad))
    return GST_FLOW_FLUSHING;
  if (!gst_pad_is_linked (pad))
    return GST_FLOW_NOT_LINKED;
  if (GST_PAD_NEEDS_RECONFIGURE (pad))
    return GST_FLOW_OK;
  gst_imaging_src_pad_forget_caps (GST_IMAGING_SRC_PAD (self));
  if (self->has_posted)
    return GST_FLOW_ERROR;
  self->has_posted = TRUE;
  taken = gst_pad_peer_query_caps (pad, NULL);
  GST_ELEMENT_ERROR (GST_PAD_PARENT (pad), CORE, NEGOTIATION,
      ("The results are text/csv or %" GST_PTR_FORMAT
       ", but what is linked to the pad \"%s\" takes %" GST_PTR_FORMAT ".",
          self->tensor, GST_PAD_NAME (pad), taken),
      (NULL));
  return GST_FLOW_ERROR;
}

/* --- events -------------------------------------------------------------- */

static void
follow_caps (GstImagingResultsPad *self, GstEvent *event)
{
  gboolean was_text = self->is_text;
  GstCaps *caps;

  gst_event_parse_caps (event, &caps);
  self->is_text = are_text (caps);
  if (was_text && !self->is_text) /* pending text is first */
    gst_imaging_results_text_drain (self->text);
}

static void
end_flush (GstImagingResultsPad *self, GstEvent *event)
{
  gst_imaging_results_text_set_flushing (self->text, FALSE);
  gst_pad_push_event (GST_PAD (self), event);
  if (!gst_imaging_results_text_has_header (self->text))
    self->header = NULL;
}

/* No later frame could report an error of the last row. */
static void
report_last_row (GstImagingResultsPad *self)
{
  if (gst_imaging_results_text_drain (self->text) == GST_FLOW_NOT_NEGOTIATED &&
      self->tensor)
    refuse (self);
}

/* Returns: TRUE: the next push reports a failure */
static gboolean
gst_imaging_results_pad_send_event (GstImagingSrcPad *pad, GstEvent *event)
{
  GstImagingResultsPad *self = GST_IMAGING_RESULTS_PAD (pad);

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_FLUSH_START:
    gst_imaging_results_text_set_flushing (self->text, TRUE);
    break;
  case GST_EVENT_FLUSH_STOP:
    end_flush (self, event);
    return TRUE;
  case GST_EVENT_CAPS:
    follow_caps (self, event);
    break;
  case GST_EVENT_EOS:
    report_last_row (self);
    break;
  default:
    break;
  }
  if (self->is_text && GST_EVENT_IS_SERIALIZED (event))
    gst_imaging_results_text_push_event (self->text, event);
  else
    gst_pad_push_event (GST_PAD (self), event);
  return TRUE;
}

/* --- results ------------------------------------------------------------- */

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

static GstFlowReturn
push_text (GstImagingResultsPad *self, const GstImagingResult *result,
    GstBuffer *frame)
{
  GstBuffer *header = NULL, *row = gst_buffer_new (), **first = &row;

  identify (row, frame, result->frame);
  if (!has_header (self, result)) {
    header = make_header (result);
    gst_buffer_copy_into (header, row, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
    self->header = result->fields;
    self->n_header = result->n_fields;
    first = &header;
  }
  *first =
      gst_imaging_src_pad_prepare_buffer (GST_IMAGING_SRC_PAD (self), *first);
  return gst_imaging_results_text_push (self->text, result, header, row);
}

static GstFlowReturn
push (GstImagingResultsPad *self, const GstImagingResult *result,
    GstBuffer *frame)
{
  GstFlowReturn flow;
  GstBuffer *buffer;

  if (g_atomic_int_compare_and_exchange (&self->relinked, TRUE, FALSE))
    self->header = NULL;
  flow = negotiate (self, result);
  if (flow != GST_FLOW_OK)
    return flow;
  /* The peer may have chosen text since the values were left out. */
  if (self->is_text)
    return result->values ? push_text (self, result, frame) : GST_FLOW_OK;
  buffer = gst_buffer_copy (result->data);
  if (result->flags &&
      has_two (gst_imaging_src_pad_caps (GST_IMAGING_SRC_PAD (self))))
    gst_buffer_append_memory (buffer, gst_buffer_get_memory (result->flags, 0));
  identify (buffer, frame, result->frame);
  gst_imaging_quantity_attach (buffer, self->names, self->units, 1, 0, NULL, 0);
  gst_imaging_quantity_sign (buffer, &result->origin);
  return gst_imaging_src_pad_push (GST_IMAGING_SRC_PAD (self), buffer);
}

/* Returns: (transfer none): @names with commas, or the one that all are */
static const gchar *
list_of (const gchar *const *names, guint n)
{
  g_autofree gchar *list = gst_imaging_results_join (names, n);
  guint i = 0;

  while (i < n && g_str_equal (names[i], names[0]))
    i++;
  return i == n ? names[0] : g_intern_string (list);
}

/* Caps cost as much as all else that a frame takes here. */
static void
update_tensor (GstImagingResultsPad *self, const GstImagingResult *result,
    gint fps_n, gint fps_d)
{
  const Shape shape = {result->n_rows, result->n_fields, result->by_field,
      result->flags != NULL, fps_n, fps_d};

  if (self->tensor && memcmp (&shape, &self->shape, sizeof (shape)) == 0 &&
      self->fields == result->fields && self->field_units == result->units)
    return;
  gst_clear_caps (&self->tensor);
  gst_clear_caps (&self->both);
  self->tensor = gst_imaging_results_tensor_caps (result, FALSE, fps_n, fps_d);
  if (result->flags)
    self->both = gst_imaging_results_tensor_caps (result, TRUE, fps_n, fps_d);
  self->names = list_of (result->fields, result->n_fields);
  self->units = list_of (result->units, result->n_fields);
  self->fields = result->fields;
  self->field_units = result->units;
  self->shape = shape;
}

GstFlowReturn
gst_imaging_results_pad_push (GstImagingResultsPad *self,
    const GstImagingResult *result, GstBuffer *frame, gint fps_n, gint fps_d)
{
  GstFlowReturn flow;

  if (!gst_pad_is_linked (GST_PAD (self)))
    return GST_FLOW_NOT_LINKED;
  update_tensor (self, result, fps_n, fps_d);
  flow = push (self, result, frame);
  if (flow == GST_FLOW_NOT_NEGOTIATED)
    flow = refuse (self);
  else
    self->has_posted = FALSE;
  return flow;
}

/* --- the class ------------------------------------------------------------ */

static void
gst_imaging_results_pad_linked (GstPad *pad, GstPad *peer)
{
  g_atomic_int_set (&GST_IMAGING_RESULTS_PAD (pad)->relinked, TRUE);
}

static void
gst_imaging_results_pad_finalize (GObject *object)
{
  GstImagingResultsPad *self = GST_IMAGING_RESULTS_PAD (object);

  gst_imaging_results_text_unref (self->text);
  gst_clear_caps (&self->tensor);
  gst_clear_caps (&self->both);
  G_OBJECT_CLASS (gst_imaging_results_pad_parent_class)->finalize (object);
}

static void
gst_imaging_results_pad_class_init (GstImagingResultsPadClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_imaging_results_pad_finalize;
  GST_PAD_CLASS (klass)->linked = gst_imaging_results_pad_linked;
  GST_IMAGING_SRC_PAD_CLASS (klass)->send_event =
      gst_imaging_results_pad_send_event;
}

static void
gst_imaging_results_pad_init (GstImagingResultsPad *self)
{
  self->text = gst_imaging_results_text_new (GST_PAD (self));
  self->is_text = TRUE;
}
