/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pads that there are on request. */
#include "gstoctbscan-private.h"

/* Those that there are on request, by their names. */
static const gchar *const output_names[N_OUTPUTS] = {
    [LINEAR] = "linear",
    [COMPLEX] = "complex",
    [ENFACE] = "enface",
};

/* What stands before the caps. */
static gboolean
copy_early (GstPad *pad, GstEvent **event, gpointer to)
{
  if (GST_EVENT_TYPE (*event) < GST_EVENT_CAPS)
    gst_pad_store_sticky_event (to, *event);
  return TRUE;
}

static gboolean
copy_late (GstPad *pad, GstEvent **event, gpointer to)
{
  if (GST_EVENT_TYPE (*event) > GST_EVENT_CAPS)
    gst_pad_store_sticky_event (to, *event);
  return TRUE;
}

/* A segment may have been passed on to all pads before @to was one of them, and
 * be stored by the sink pad only after that: src has it by then. */
static void
follow_segment (GstOctBscan *self, GstPad *to)
{
  GstPad *src = self->outputs[SRC].pad;
  GstEvent *event = gst_pad_get_sticky_event (src, GST_EVENT_SEGMENT, 0);
  GstEvent *last = NULL;

  while (event && event != last) {
    gst_pad_store_sticky_event (to, event);
    gst_event_take (&last, event);
    event = gst_pad_get_sticky_event (src, GST_EVENT_SEGMENT, 0);
  }
  gst_clear_event (&event);
  gst_clear_event (&last);
}

static guint
find_output (const gchar *name)
{
  guint i = 0;

  while (i < N_OUTPUTS && g_strcmp0 (output_names[i], name) != 0)
    i++;
  return i;
}

GstPad *
gst_oct_bscan_request_new_pad (GstElement *element, GstPadTemplate *template,
    const gchar *name, const GstCaps *caps)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);
  const gchar *wanted = GST_PAD_TEMPLATE_NAME_TEMPLATE (template);
  guint output = find_output (wanted);
  GstPad *pad = gst_oct_bscan_ref_pad (self, output);

  if (pad) { /* there is one already */
    gst_object_unref (pad);
    return NULL;
  }
  pad = gst_pad_new_from_template (template, wanted);
  gst_pad_set_query_function (pad, gst_oct_bscan_src_query);
  gst_pad_set_active (pad, TRUE);
  gst_pad_sticky_events_foreach (self->sink, copy_early, pad);
  /* not the stream's lock: it is held while downstream is prerolled */
  g_mutex_lock (&self->frames);
  GST_OBJECT_LOCK (self);
  self->outputs[output].pad = gst_object_ref (pad);
  g_atomic_int_set (&self->outputs[output].is_discont, TRUE);
  gst_flow_combiner_add_pad (self->flows, pad);
  GST_OBJECT_UNLOCK (self);
  if (self->has_caps)
    gst_oct_bscan_negotiate (self, output, pad);
  gst_pad_sticky_events_foreach (self->sink, copy_late, pad);
  g_mutex_unlock (&self->frames);
  gst_element_add_pad (element, pad);
  follow_segment (self, pad);
  return pad;
}

/* What is said to it from now on is not the stream's. */
static void
leave_flows (GstOctBscan *self, guint output, GstPad *pad)
{
  GST_OBJECT_LOCK (self);
  gst_flow_combiner_remove_pad (self->flows, pad);
  self->outputs[output].is_leaving = TRUE;
  GST_OBJECT_UNLOCK (self);
}

/* A thread that has just begun to push sends the sticky events first; an
 * inactive pad has none any more, and the buffer would come without its
 * segment. */
static void
unlink_pad (GstPad *pad)
{
  GstPad *peer = gst_pad_get_peer (pad);

  if (!peer)
    return;
  gst_pad_unlink (pad, peer);
  gst_object_unref (peer);
}

static void
drop_output (GstOctBscan *self, guint output)
{
  GstPad *pad;

  g_mutex_lock (&self->frames);
  GST_OBJECT_LOCK (self);
  pad = g_steal_pointer (&self->outputs[output].pad);
  self->outputs[output].is_leaving = FALSE;
  GST_OBJECT_UNLOCK (self);
  gst_oct_bscan_output_reset (&self->outputs[output]);
  g_mutex_unlock (&self->frames);
  g_clear_object (&pad);
}

void
gst_oct_bscan_release_pad (GstElement *element, GstPad *pad)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);
  guint output = find_output (GST_PAD_NAME (pad));

  gst_object_ref (pad);
  leave_flows (self, output, pad);
  unlink_pad (pad);
  gst_pad_set_active (pad, FALSE);
  drop_output (self, output);
  gst_element_remove_pad (element, pad);
  gst_object_unref (pad);
}
