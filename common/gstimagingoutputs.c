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
  GstEvent *segment; /* NULL before the first: for those that are made late */
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
  self->combiner = gst_flow_combiner_new ();
  return self;
}

void
gst_imaging_outputs_free (GstImagingOutputs *self)
{
  for (guint i = 0; i < self->n; i++)
    g_clear_pointer (&self->outputs[i], gst_imaging_output_unref);
  gst_flow_combiner_free (self->combiner);
  gst_clear_event (&self->segment);
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
  if (self->segment)
    gst_imaging_output_event (output, self->segment);
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

/* @segment: (nullable): of the pads that are made from now on */
static void
keep_segment (GstImagingOutputs *self, GstEvent *segment)
{
  GST_OBJECT_LOCK (self->element);
  gst_event_replace (&self->segment, segment);
  GST_OBJECT_UNLOCK (self->element);
}

/* What comes next has nothing to do with what was before. */
static void
begin_anew (GstImagingOutputs *self)
{
  GST_OBJECT_LOCK (self->element);
  gst_flow_combiner_reset (self->combiner);
  gst_clear_event (&self->segment);
  GST_OBJECT_UNLOCK (self->element);
}

void
gst_imaging_outputs_event (GstImagingOutputs *self, GstEvent *event)
{
  if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP)
    begin_anew (self);
  else if (GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT)
    keep_segment (self, event);
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
  begin_anew (self);
}
