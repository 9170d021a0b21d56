/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstnormalintegratealbedo.h"

typedef struct {
  GstBuffer *buffer; /* (nullable) */
  GstImagingPicture picture;
  GstClockTime time; /* running time */
} Albedo;

/* What the events of a pad say. */
typedef struct {
  gboolean flushes; /* or the element stops */
  gboolean is_eos;
} Input;

struct _GstNormalIntegrateAlbedo {
  GstElement *element;
  GstImagingEngine *engine;

  /* under the stream lock of the pad */
  gboolean has_caps;
  GstImagingPicture picture;

  GMutex lock; /* of all below */
  GCond changed;
  GstPad *pad;    /* (nullable) */
  Albedo next;    /* has arrived */
  Albedo current; /* in use */
  Input own, sink;
};

static GstStaticPadTemplate template = GST_STATIC_PAD_TEMPLATE ("albedo",
    GST_PAD_SINK, GST_PAD_REQUEST,
    GST_STATIC_CAPS (GST_IMAGING_PICTURE_TENSOR_CAPS ";" GST_VIDEO_CAPS_MAKE (
        "{ " GST_IMAGING_PICTURE_RGB_FORMATS ", GRAY8, GRAY16_LE }")));

static GstNormalIntegrateAlbedo *
self_of (GstPad *pad)
{
  return gst_pad_get_element_private (pad);
}

/* Returns: GST_CLOCK_TIME_NONE without pts and in segments without time */
static GstClockTime
running_time (GstPad *pad, GstBuffer *buffer)
{
  g_autoptr (GstEvent) event =
      gst_pad_get_sticky_event (pad, GST_EVENT_SEGMENT, 0);
  GstClockTime time = GST_CLOCK_TIME_NONE;
  const GstSegment *segment;

  if (!event)
    return time;
  gst_event_parse_segment (event, &segment);
  if (segment->format == GST_FORMAT_TIME)
    time = gst_segment_to_running_time (
        segment, GST_FORMAT_TIME, GST_BUFFER_PTS (buffer));
  return time;
}

/* --- the normals ---------------------------------------------------------- */

static gboolean
is_later (GstClockTime time, GstClockTime now)
{
  return GST_CLOCK_TIME_IS_VALID (time) && GST_CLOCK_TIME_IS_VALID (now) &&
         time > now;
}

gboolean
gst_normal_integrate_albedo_take (GstNormalIntegrateAlbedo *self, GstPad *sink,
    GstBuffer *normals, GstBuffer **albedo, GstImagingPicture *picture)
{
  GstClockTime now = running_time (sink, normals);
  gboolean ok;

  g_mutex_lock (&self->lock);
  while (self->pad && gst_pad_is_linked (self->pad) && !self->own.is_eos &&
         !self->own.flushes && !self->sink.flushes && !self->next.buffer)
    g_cond_wait (&self->changed, &self->lock);
  if (!self->pad)
    gst_clear_buffer (&self->current.buffer);
  if (self->next.buffer &&
      !(self->current.buffer && is_later (self->next.time, now))) {
    gst_clear_buffer (&self->current.buffer);
    self->current = self->next;
    self->next.buffer = NULL;
    g_cond_broadcast (&self->changed);
  }
  *albedo = self->current.buffer ? gst_buffer_ref (self->current.buffer) : NULL;
  *picture = self->current.picture;
  ok = !self->sink.flushes;
  g_mutex_unlock (&self->lock);
  if (!ok)
    gst_clear_buffer (albedo);
  return ok;
}

/* With the lock. */
static void
forget (GstNormalIntegrateAlbedo *self)
{
  gst_clear_buffer (&self->next.buffer);
  gst_clear_buffer (&self->current.buffer);
  self->own.is_eos = FALSE;
}

/* @input: one of @self */
static void
follow (GstNormalIntegrateAlbedo *self, Input *input, GstEvent *event)
{
  GST_IMAGING_HOLD (&self->lock);
  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_FLUSH_START:
    input->flushes = TRUE;
    break;
  case GST_EVENT_FLUSH_STOP:
    input->flushes = input->is_eos = FALSE;
    if (input == &self->own)
      forget (self);
    break;
  case GST_EVENT_STREAM_START:
    input->is_eos = FALSE;
    break;
  case GST_EVENT_EOS:
    input->is_eos = TRUE;
    break;
  default:
    break;
  }
  g_cond_broadcast (&self->changed);
}

void
gst_normal_integrate_albedo_follow (
    GstNormalIntegrateAlbedo *self, GstEvent *event)
{
  follow (self, &self->sink, event);
}

/* --- the pad -------------------------------------------------------------- */

static GstFlowReturn
chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstNormalIntegrateAlbedo *self = self_of (pad);
  Albedo next = {buffer, self->picture, running_time (pad, buffer)};
  GstFlowReturn flow;

  GST_IMAGING_HOLD (&self->lock);
  while (self->next.buffer && !self->own.flushes && !self->sink.is_eos)
    g_cond_wait (&self->changed, &self->lock);
  flow = self->own.flushes   ? GST_FLOW_FLUSHING
         : self->sink.is_eos ? GST_FLOW_EOS
         : !self->has_caps   ? GST_FLOW_NOT_NEGOTIATED
                             : GST_FLOW_OK;
  if (flow == GST_FLOW_OK) {
    self->next = next;
    g_cond_broadcast (&self->changed);
  } else {
    gst_buffer_unref (buffer);
  }
  return flow;
}

static gboolean
set_caps (GstNormalIntegrateAlbedo *self, GstEvent *event)
{
  GstCaps *caps;
  ImkError error;

  gst_event_parse_caps (event, &caps);
  self->has_caps =
      gst_imaging_picture_from_caps (&self->picture, caps, &error) == IMK_OK;
  if (!self->has_caps)
    GST_ELEMENT_ERROR (
        self->element, STREAM, FORMAT, ("%s", error.message), (NULL));
  return self->has_caps;
}

static gboolean
handle_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstNormalIntegrateAlbedo *self = self_of (pad);
  gboolean ok = TRUE;

  if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS)
    ok = set_caps (self, event);
  follow (self, &self->own, event);
  gst_event_unref (event);
  return ok;
}

static gboolean
handle_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  if (gst_imaging_engine_query (self_of (pad)->engine, query))
    return TRUE;
  if (GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION) {
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
    return TRUE;
  }
  return gst_pad_query_default (pad, parent, query);
}

GstPad *
gst_normal_integrate_albedo_request (
    GstNormalIntegrateAlbedo *self, GstPadTemplate *pad_template)
{
  GstPad *pad = gst_pad_new_from_template (pad_template, "albedo");
  gboolean is_new;

  gst_pad_set_element_private (pad, self);
  gst_pad_set_chain_function (pad, chain);
  gst_pad_set_event_function (pad, handle_event);
  gst_pad_set_query_function (pad, handle_query);
  g_mutex_lock (&self->lock);
  is_new = !self->pad;
  if (is_new) {
    self->pad = pad;
    forget (self);
  }
  g_mutex_unlock (&self->lock);
  if (!is_new) {
    gst_object_unref (gst_object_ref_sink (pad));
    return NULL;
  }
  gst_pad_set_active (pad, TRUE);
  gst_element_add_pad (self->element, pad);
  return pad;
}

gboolean
gst_normal_integrate_albedo_release (
    GstNormalIntegrateAlbedo *self, GstPad *pad)
{
  gboolean flushed, is_ours;

  g_mutex_lock (&self->lock);
  flushed = self->own.flushes;
  is_ours = pad == self->pad;
  if (is_ours)
    self->own.flushes = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  if (!is_ours)
    return FALSE;
  gst_pad_set_active (pad, FALSE); /* waits for a buffer that is arriving */
  gst_element_remove_pad (self->element, pad);
  g_mutex_lock (&self->lock);
  self->own.flushes = flushed;
  self->pad = NULL;
  self->has_caps = FALSE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

/* --- start and stop ------------------------------------------------------- */

void
gst_normal_integrate_albedo_start (GstNormalIntegrateAlbedo *self)
{
  GST_IMAGING_HOLD (&self->lock);
  self->own.flushes = self->sink.flushes = self->sink.is_eos = FALSE;
  forget (self);
}

void
gst_normal_integrate_albedo_stop (GstNormalIntegrateAlbedo *self)
{
  GST_IMAGING_HOLD (&self->lock);
  self->own.flushes = self->sink.flushes = TRUE;
  forget (self);
  g_cond_broadcast (&self->changed);
}

GstNormalIntegrateAlbedo *
gst_normal_integrate_albedo_new (GstElement *element, GstImagingEngine *engine)
{
  GstNormalIntegrateAlbedo *self = g_new0 (GstNormalIntegrateAlbedo, 1);

  self->element = element;
  self->engine = engine;
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  return self;
}

void
gst_normal_integrate_albedo_free (GstNormalIntegrateAlbedo *self)
{
  forget (self);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}

void
gst_normal_integrate_albedo_add_template (GstElementClass *klass)
{
  gst_element_class_add_static_pad_template (klass, &template);
}
