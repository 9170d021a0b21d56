/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingsrcpads.h"

#include <gst/base/gstflowcombiner.h>

struct _GstImagingSrcPads {
  GstElement *element; /* owns this */
  GType pad_type;
  const gchar *const *names;
  guint n;
  GstPadEventFunction event;
  GstPadQueryFunction query;
  guint serial;      /* atomic */
  gint flows_differ; /* atomic: some pad returned another flow than OK */

  /* under the object lock of the element */
  GstImagingSrcPad **pads;
  gboolean *taken;   /* of each, from before it is made until it is gone */
  GPtrArray *sticky; /* GstEvent: for pads that are made late */
  GstFlowCombiner *combiner;
};

GstImagingSrcPads *
gst_imaging_src_pads_new (
    GstElement *element, GType pad_type, const gchar *const *names, guint n)
{
  GstImagingSrcPads *self = g_new0 (GstImagingSrcPads, 1);

  self->element = element;
  self->pad_type = pad_type;
  self->names = names;
  self->n = n;
  self->pads = g_new0 (GstImagingSrcPad *, n);
  self->taken = g_new0 (gboolean, n);
  self->sticky =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gst_event_unref);
  self->combiner = gst_flow_combiner_new ();
  return self;
}

void
gst_imaging_src_pads_free (GstImagingSrcPads *self)
{
  for (guint i = 0; i < self->n; i++)
    g_clear_object (&self->pads[i]);
  gst_flow_combiner_free (self->combiner);
  g_ptr_array_unref (self->sticky);
  g_free (self->pads);
  g_free (self->taken);
  g_free (self);
}

void
gst_imaging_src_pads_set_functions (GstImagingSrcPads *self,
    GstPadEventFunction event, GstPadQueryFunction query)
{
  self->event = event;
  self->query = query;
}

/* --- pads ---------------------------------------------------------------- */

GstImagingSrcPad *
gst_imaging_src_pads_get (GstImagingSrcPads *self, guint index)
{
  GstImagingSrcPad *pad = NULL;

  /* most elements have none of them, and ask for each frame */
  if (!g_atomic_pointer_get (&self->pads[index]))
    return NULL;
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self->element));
  g_set_object (&pad, self->pads[index]);
  return pad;
}

gboolean
gst_imaging_src_pads_has (GstImagingSrcPads *self, guint index)
{
  return g_atomic_pointer_get (&self->pads[index]) != NULL;
}

static GstPad *
make_pad (GstImagingSrcPads *self, GstPadTemplate *pad_template)
{
  GstPad *pad =
      g_object_new (self->pad_type, "name", pad_template->name_template,
          "direction", GST_PAD_SRC, "template", pad_template, NULL);

  if (self->event)
    gst_pad_set_event_function (pad, self->event);
  if (self->query)
    gst_pad_set_query_function (pad, self->query);
  if (pad_template->presence == GST_PAD_REQUEST)
    gst_pad_set_active (pad, TRUE);
  gst_element_add_pad (self->element, pad);
  return pad;
}

GstPad *
gst_imaging_src_pads_request (
    GstImagingSrcPads *self, GstPadTemplate *pad_template)
{
  gboolean taken;
  GstPad *pad;
  guint i = 0;

  while (g_strcmp0 (pad_template->name_template, self->names[i]) != 0)
    if (++i == self->n)
      return NULL;
  GST_OBJECT_LOCK (self->element);
  taken = self->taken[i];
  self->taken[i] = TRUE;
  GST_OBJECT_UNLOCK (self->element);
  if (taken)
    return NULL;
  pad = make_pad (self, pad_template);
  GST_OBJECT_LOCK (self->element);
  g_atomic_pointer_set (
      &self->pads[i], gst_object_ref (GST_IMAGING_SRC_PAD (pad)));
  for (guint k = 0; k < self->sticky->len; k++)
    gst_imaging_src_pad_follow (self->pads[i], self->sticky->pdata[k]);
  gst_flow_combiner_add_pad (self->combiner, pad);
  g_atomic_int_inc (&self->serial);
  GST_OBJECT_UNLOCK (self->element);
  return pad;
}

/* A thread that begins to push sends the sticky events first. A pad that is not
 * active has none, and the buffer would arrive without its segment. */
static void
unlink_pad (GstPad *pad)
{
  g_autoptr (GstPad) peer = gst_pad_get_peer (pad);

  if (peer)
    gst_pad_unlink (pad, peer);
}

/* Not under the stream lock: another pad may be blocked in a push. */
void
gst_imaging_src_pads_release (GstImagingSrcPads *self, GstPad *pad)
{
  GstImagingSrcPad *found = NULL;
  guint i = 0;

  GST_OBJECT_LOCK (self->element);
  while (i < self->n && (GstPad *) self->pads[i] != pad)
    i++;
  if (i < self->n) {
    found = self->pads[i];
    g_atomic_pointer_set (&self->pads[i], NULL);
    gst_flow_combiner_remove_pad (self->combiner, pad);
    g_atomic_int_inc (&self->serial);
  }
  GST_OBJECT_UNLOCK (self->element);
  if (!found)
    return;
  unlink_pad (pad);
  gst_pad_set_active (pad, FALSE);
  gst_element_remove_pad (self->element, pad);
  gst_object_unref (found);
  GST_OBJECT_LOCK (self->element);
  self->taken[i] = FALSE;
  GST_OBJECT_UNLOCK (self->element);
}

guint
gst_imaging_src_pads_serial (GstImagingSrcPads *self)
{
  return g_atomic_int_get (&self->serial);
}

/* --- flow ---------------------------------------------------------------- */

GstFlowReturn
gst_imaging_src_pads_combine (GstImagingSrcPads *self, guint index,
    GstImagingSrcPad *pad, GstFlowReturn flow, GstFlowReturn before)
{
  /* a thread that brings many frames needs the object lock often */
  if (flow != GST_FLOW_OK)
    g_atomic_int_set (&self->flows_differ, TRUE);
  else if (!g_atomic_int_get (&self->flows_differ))
    return GST_FLOW_OK;
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self->element));
  if (pad && self->pads[index] == pad)
    before =
        gst_flow_combiner_update_pad_flow (self->combiner, GST_PAD (pad), flow);
  return before;
}

/* Under the object lock.
 * @name: of the structure of the event, 0 for any */
static void
forget_sticky (GstImagingSrcPads *self, GstEventType type, GQuark name)
{
  for (guint i = self->sticky->len; i > 0; i--) {
    GstEvent *event = self->sticky->pdata[i - 1];

    if (GST_EVENT_TYPE (event) == type &&
        (name == 0 || gst_event_has_name_id (event, name)))
      g_ptr_array_remove_index (self->sticky, i - 1);
  }
}

/* As a pad keeps them: of some types one of each name. */
static GQuark
name_of (GstEvent *event)
{
  const GstStructure *s = gst_event_get_structure (event);
  GstEventTypeFlags flags = gst_event_type_get_flags (GST_EVENT_TYPE (event));

  return s && flags & GST_EVENT_TYPE_STICKY_MULTI
             ? gst_structure_get_name_id (s)
             : 0;
}

/* For the pads that are made from now on, which have caps of their own. */
static void
keep_sticky (GstImagingSrcPads *self, GstEvent *event)
{
  GstEventType type = GST_EVENT_TYPE (event);

  if (!GST_EVENT_IS_STICKY (event) || type == GST_EVENT_CAPS ||
      type == GST_EVENT_EOS)
    return;
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self->element));
  if (type == GST_EVENT_STREAM_START)
    g_ptr_array_set_size (self->sticky, 0);
  else
    forget_sticky (self, type, name_of (event));
  g_ptr_array_add (self->sticky, gst_event_ref (event));
}

/* The next buffers do not continue the stream before. */
static void
restart_streams (GstImagingSrcPads *self, gboolean stopped)
{
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self->element));
  gst_flow_combiner_reset (self->combiner);
  g_atomic_int_set (&self->flows_differ, FALSE);
  if (stopped)
    g_ptr_array_set_size (self->sticky, 0);
  else
    forget_sticky (self, GST_EVENT_SEGMENT, 0);
}

typedef void (*PadFunction) (GstImagingSrcPad *pad, GstEvent *event);

static void
call_all (GstImagingSrcPads *self, PadFunction function, GstEvent *event)
{
  for (guint i = 0; i < self->n; i++) {
    g_autoptr (GstImagingSrcPad) pad = gst_imaging_src_pads_get (self, i);

    if (pad)
      function (pad, event);
  }
}

void
gst_imaging_src_pads_event (GstImagingSrcPads *self, GstEvent *event)
{
  if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP)
    restart_streams (self, FALSE);
  keep_sticky (self, event);
  call_all (self, gst_imaging_src_pad_event, event);
}

static void
begin_pad (GstImagingSrcPad *pad, GstEvent *unused)
{
  gst_imaging_src_pad_begin (pad);
}

void
gst_imaging_src_pads_begin (GstImagingSrcPads *self)
{
  call_all (self, begin_pad, NULL);
}

static void
reset_pad (GstImagingSrcPad *pad, GstEvent *unused)
{
  gst_imaging_src_pad_reset (pad);
}

void
gst_imaging_src_pads_reset (GstImagingSrcPads *self)
{
  call_all (self, reset_pad, NULL);
  restart_streams (self, TRUE);
}
