/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingelement.h"

G_DEFINE_ABSTRACT_TYPE (
    GstImagingElement, gst_imaging_element, GST_TYPE_ELEMENT)

static GstImagingElement *
base_of (gpointer element)
{
  return G_TYPE_CHECK_INSTANCE_CAST (
      element, GST_TYPE_IMAGING_ELEMENT, GstImagingElement);
}

/* --- what subclasses call ------------------------------------------------- */

void
gst_imaging_element_set_up (GstImagingElement *self,
    const GstImagingEngineFuncs *funcs, const GstImagingSettingsTable *table)
{
  self->engine = gst_imaging_engine_new (&self->parent, funcs);
  self->settings =
      gst_imaging_settings_new (&self->parent, table, self->engine);
}

GstPad *
gst_imaging_element_add_pad (
    GstImagingElement *self, GstStaticPadTemplate *pad_template)
{
  GstPad *pad = gst_pad_new_from_static_template (
      pad_template, pad_template->name_template);

  gst_pad_set_query_function (pad, gst_imaging_element_query);
  gst_element_add_pad (&self->parent, pad);
  return pad;
}

void
gst_imaging_element_add_outputs (GstImagingElement *self,
    const gchar *const *names, guint n, GstPadEventFunction event)
{
  self->outputs = gst_imaging_src_pads_new (
      &self->parent, GST_TYPE_IMAGING_SRC_PAD, names, n);
  gst_imaging_src_pads_set_functions (self->outputs, event, NULL);
}

gboolean
gst_imaging_element_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  return gst_imaging_engine_query (base_of (parent)->engine, query) ||
         gst_pad_query_default (pad, parent, query);
}

void
gst_imaging_element_set_sink (GstImagingElement *self, gboolean is_sink)
{
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  if (is_sink)
    GST_OBJECT_FLAG_SET (self, GST_ELEMENT_FLAG_SINK);
  else
    GST_OBJECT_FLAG_UNSET (self, GST_ELEMENT_FLAG_SINK);
}

void
gst_imaging_element_post_eos (GstImagingElement *self, GstEvent *eos)
{
  GstMessage *message;

  if (!GST_OBJECT_FLAG_IS_SET (self, GST_ELEMENT_FLAG_SINK))
    return;
  message = gst_message_new_eos (GST_OBJECT (self));
  gst_message_set_seqnum (message, gst_event_get_seqnum (eos));
  gst_element_post_message (&self->parent, message);
}

/* --- GstElement ----------------------------------------------------------- */

static GstPad *
gst_imaging_element_request_new_pad (GstElement *element,
    GstPadTemplate *pad_template, const gchar *name, const GstCaps *caps)
{
  GstImagingSrcPads *outputs = base_of (element)->outputs;

  return outputs ? gst_imaging_src_pads_request (outputs, pad_template) : NULL;
}

static void
gst_imaging_element_release_pad (GstElement *element, GstPad *pad)
{
  if (base_of (element)->outputs)
    gst_imaging_src_pads_release (base_of (element)->outputs, pad);
}

static gboolean
gst_imaging_element_start (GstElement *element)
{
  return gst_imaging_engine_start (base_of (element)->engine);
}

static void
gst_imaging_element_stop (GstElement *element)
{
  gst_imaging_engine_stop (base_of (element)->engine);
}

static GstStateChangeReturn
gst_imaging_element_change_state (
    GstElement *element, GstStateChange transition)
{
  GstImagingElementClass *klass = G_TYPE_INSTANCE_GET_CLASS (
      element, GST_TYPE_IMAGING_ELEMENT, GstImagingElementClass);
  gboolean starts = transition == GST_STATE_CHANGE_READY_TO_PAUSED;
  GstStateChangeReturn result;

  if (starts && !klass->start (element))
    return GST_STATE_CHANGE_FAILURE;
  result = GST_ELEMENT_CLASS (gst_imaging_element_parent_class)
               ->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY ||
      (starts && result == GST_STATE_CHANGE_FAILURE))
    klass->stop (element);
  return result;
}

static void
gst_imaging_element_set_context (GstElement *element, GstContext *message)
{
  gst_imaging_engine_set_context (base_of (element)->engine, message);
  GST_ELEMENT_CLASS (gst_imaging_element_parent_class)
      ->set_context (element, message);
}

/* --- GObject -------------------------------------------------------------- */

static void
gst_imaging_element_finalize (GObject *object)
{
  GstImagingElement *self = base_of (object);

  g_clear_pointer (&self->outputs, gst_imaging_src_pads_free);
  gst_imaging_engine_free (self->engine);
  G_OBJECT_CLASS (gst_imaging_element_parent_class)->finalize (object);
}

static void
gst_imaging_element_class_init (GstImagingElementClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gst_imaging_element_finalize;
  element_class->request_new_pad = gst_imaging_element_request_new_pad;
  element_class->release_pad = gst_imaging_element_release_pad;
  element_class->change_state = gst_imaging_element_change_state;
  element_class->set_context = gst_imaging_element_set_context;
  klass->start = gst_imaging_element_start;
  klass->stop = gst_imaging_element_stop;
}

static void
gst_imaging_element_init (GstImagingElement *self)
{
}
