/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingoutputs.h"

#include <gst/base/gstflowcombiner.h>

struct _GstImagingOutputs {
  GstElement *element; /* owns this */
  const gchar *const *names;
  guint n;

  /* under the object lock of the element */
  GstImagingOutput **outputs;
  gboolean *taken;   /* of each, from before it is made until it is gone */
  GPtrArray *sticky; /* GstEvent: for those that are made late */
  GstFlowCombiner *combiner;
};

GstImagingOutputs *
gst_imaging_outputs_new (
    GstElement *element, const gchar *const *names, guint n)
{
  GstImagingOutputs *self = g_new0 (GstImagingOutputs, 1);

  self->element = element;
  self->names = names;
  self->n = n;
  self->outputs = g_new0 (GstImagingOutput *, n);
  self->taken = g_new0 (gboolean, n);
  self->sticky =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gst_event_unref);
  self->combiner = gst_flow_combiner_new ();
  return self;
}

void
gst_imaging_outputs_free (GstImagingOutputs *self)
{
  for (guint i = 0; i < self->n; i++)
    g_clear_pointer (&self->outputs[i], gst_imaging_output_unref);
  gst_flow_combiner_free (self->combiner);
  g_ptr_array_unref (self->sticky);
  g_free (self->outputs);
  g_free (self->taken);
  g_free (self);
}

/* --- pads ---------------------------------------------------------------- */

GstImagingOutput *
gst_imaging_outputs_get (GstImagingOutputs *self, guint index)
{
  GstImagingOutput *output = NULL;

  GST_OBJECT_LOCK (self->element);
  if (self->outputs[index])
    output = gst_imaging_output_ref (self->outputs[index]);
  GST_OBJECT_UNLOCK (self->element);
  return output;
}

GstPad *
gst_imaging_outputs_request (
    GstImagingOutputs *self, GstPadTemplate *pad_template)
{
  GstImagingOutput *output;
  gboolean taken;
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
  output = gst_imaging_output_new (self->element, pad_template, self->names[i]);
  GST_OBJECT_LOCK (self->element);
  for (guint k = 0; k < self->sticky->len; k++)
    gst_imaging_output_follow (output, self->sticky->pdata[k]);
  self->outputs[i] = output;
  gst_flow_combiner_add_pad (self->combiner, gst_imaging_output_pad (output));
  GST_OBJECT_UNLOCK (self->element);
  return gst_imaging_output_pad (output);
}

/* Not under the stream lock: another pad may wait with a push. */
void
gst_imaging_outputs_release (GstImagingOutputs *self, GstPad *pad)
{
  GstImagingOutput *found = NULL;
  guint i = 0;

  GST_OBJECT_LOCK (self->element);
  while (i < self->n && !(self->outputs[i] &&
                            gst_imaging_output_pad (self->outputs[i]) == pad))
    i++;
  if (i < self->n)
    found = g_steal_pointer (&self->outputs[i]);
  if (found)
    gst_flow_combiner_remove_pad (self->combiner, pad);
  GST_OBJECT_UNLOCK (self->element);
  if (!found)
    return;
  gst_imaging_output_remove (found);
  gst_imaging_output_unref (found);
  GST_OBJECT_LOCK (self->element);
  self->taken[i] = FALSE;
  GST_OBJECT_UNLOCK (self->element);
}

/* --- flow ---------------------------------------------------------------- */

GstFlowReturn
gst_imaging_outputs_combine (GstImagingOutputs *self, guint index,
    GstImagingOutput *output, GstFlowReturn flow, GstFlowReturn before)
{
  GST_OBJECT_LOCK (self->element);
  if (self->outputs[index] == output)
    before = gst_flow_combiner_update_pad_flow (
        self->combiner, gst_imaging_output_pad (output), flow);
  GST_OBJECT_UNLOCK (self->element);
  return before;
}

/* Under the object lock.
 * @name: of the structure of the event, 0 for any */
static void
forget_sticky (GstImagingOutputs *self, GstEventType type, GQuark name)
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
keep_sticky (GstImagingOutputs *self, GstEvent *event)
{
  GstEventType type = GST_EVENT_TYPE (event);

  if (!GST_EVENT_IS_STICKY (event) || type == GST_EVENT_CAPS ||
      type == GST_EVENT_EOS)
    return;
  GST_OBJECT_LOCK (self->element);
  if (type == GST_EVENT_STREAM_START)
    g_ptr_array_set_size (self->sticky, 0);
  else
    forget_sticky (self, type, name_of (event));
  g_ptr_array_add (self->sticky, gst_event_ref (event));
  GST_OBJECT_UNLOCK (self->element);
}

/* The next buffers do not continue the stream before. */
static void
begin_anew (GstImagingOutputs *self, gboolean stopped)
{
  GST_OBJECT_LOCK (self->element);
  gst_flow_combiner_reset (self->combiner);
  if (stopped)
    g_ptr_array_set_size (self->sticky, 0);
  else
    forget_sticky (self, GST_EVENT_SEGMENT, 0);
  GST_OBJECT_UNLOCK (self->element);
}

void
gst_imaging_outputs_event (GstImagingOutputs *self, GstEvent *event)
{
  if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP)
    begin_anew (self, FALSE);
  keep_sticky (self, event);
  for (guint i = 0; i < self->n; i++) {
    GstImagingOutput *output = gst_imaging_outputs_get (self, i);

    if (output)
      gst_imaging_output_event (output, event);
    gst_imaging_output_unref (output);
  }
}

void
gst_imaging_outputs_reset (GstImagingOutputs *self)
{
  for (guint i = 0; i < self->n; i++) {
    GstImagingOutput *output = gst_imaging_outputs_get (self, i);

    if (output)
      gst_imaging_output_reset (output);
    gst_imaging_output_unref (output);
  }
  begin_anew (self, TRUE);
}
