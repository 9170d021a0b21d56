/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-relight
 * @title: relight
 * @short_description: a surface under a light that moves
 *
 * Shows what a map of normals, as photostereo writes it, looks like under a
 * light from azimuth and elevation: matte, and with a highlight where specular
 * is above 0. The request pad `albedo` takes what the surface is painted with.
 * The light moves with the properties, with a GstController, and with the mouse
 * in a window downstream.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 filesrc location=normals.png ! pngdec ! imagefreeze !
 * relight specular=0.3 ! videoconvert ! autovideosink
 * ]|
 *
 * Since: 0.2
 */
#include "gstrelight-private.h"

#include <gst/video/navigation.h>
#include <math.h>

#include "gstimagingaggregator.h"
#include "gstimagingallocation.h"
#include "gstimagingmetadata.h"
#include "gstimagingstream.h"

GST_DEBUG_CATEGORY (relight_debug);

static GstStaticPadTemplate normal_template = GST_STATIC_PAD_TEMPLATE ("normal",
    GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (GST_IMAGING_PICTURE_TENSOR_CAPS
        ";" GST_VIDEO_CAPS_MAKE ("{ " GST_IMAGING_PICTURE_RGB_FORMATS " }")));

static GstStaticPadTemplate albedo_template = GST_STATIC_PAD_TEMPLATE ("albedo",
    GST_PAD_SINK, GST_PAD_REQUEST,
    GST_STATIC_CAPS (GST_IMAGING_PICTURE_TENSOR_CAPS ";" GST_VIDEO_CAPS_MAKE (
        "{ " GST_IMAGING_PICTURE_RGB_FORMATS ", GRAY8, GRAY16_LE }")));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src",
    GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("RGB")));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstRelight, gst_relight, GST_TYPE_AGGREGATOR,
    GST_DEBUG_CATEGORY_INIT (
        relight_debug, "relight", 0, "A surface under a light that moves"))
GST_ELEMENT_REGISTER_DEFINE (
    relight, "relight", GST_RANK_NONE, GST_TYPE_RELIGHT)

/* --- pictures ------------------------------------------------------------- */

/* Returns: GST_CLOCK_TIME_NONE unless the segment has the format time */
static GstClockTime
running_time (GstPad *pad, GstBuffer *buffer)
{
  const GstSegment *segment = &GST_AGGREGATOR_PAD (pad)->segment;

  return segment->format != GST_FORMAT_TIME
             ? GST_CLOCK_TIME_NONE
             : gst_segment_to_running_time (
                   segment, GST_FORMAT_TIME, GST_BUFFER_PTS (buffer));
}

/* The newest albedo that is no later than the normals, or else the first. */
static void
take_albedo (GstRelight *self, GstBuffer *normals)
{
  GstClockTime now = running_time (self->normal, normals), then;
  GstAggregatorPad *pad;
  GstBuffer *next;

  GST_OBJECT_LOCK (self);
  pad = self->albedo ? gst_object_ref (self->albedo) : NULL;
  GST_OBJECT_UNLOCK (self);
  if (!pad)
    gst_clear_buffer (&self->current); /* the pad was released */
  while (pad && (next = gst_aggregator_pad_peek_buffer (pad))) {
    then = running_time (GST_PAD (pad), next);
    if (self->current && GST_CLOCK_TIME_IS_VALID (then) &&
        GST_CLOCK_TIME_IS_VALID (now) && then > now) {
      gst_buffer_unref (next);
      break;
    }
    if (!gst_imaging_aggregator_is_gap (next)) /* the last one stays */
      gst_buffer_replace (&self->current, next);
    gst_buffer_unref (next);
    gst_aggregator_pad_drop_buffer (pad);
  }
  g_clear_pointer (&pad, gst_object_unref);
}

/* The time is that of the normals, other metadata that of the latest input. */
static void
describe (GstRelight *self, GstBuffer *out, GstBuffer *normals)
{
  GstBuffer *sources[] = {normals, self->current};

  gst_imaging_metadata_pass (
      out, gst_imaging_metadata_latest (sources, G_N_ELEMENTS (sources)), TRUE);
  GST_BUFFER_PTS (out) = GST_BUFFER_PTS (normals);
  GST_BUFFER_DTS (out) = GST_BUFFER_DTS (normals);
  GST_BUFFER_DURATION (out) = GST_BUFFER_DURATION (normals);
  if (self->is_discont || GST_BUFFER_IS_DISCONT (normals))
    GST_BUFFER_FLAG_SET (out, GST_BUFFER_FLAG_DISCONT);
  else
    GST_BUFFER_FLAG_UNSET (out, GST_BUFFER_FLAG_DISCONT);
  self->is_discont = FALSE;
}

static GstBuffer *
new_output (GstRelight *self, GstBuffer *normals)
{
  g_autoptr (GstBufferPool) pool =
      gst_aggregator_get_buffer_pool (GST_AGGREGATOR (self));
  GstBuffer *out = NULL;

  if (pool && gst_buffer_pool_set_active (pool, TRUE))
    gst_buffer_pool_acquire_buffer (pool, &out, NULL);
  if (out)
    describe (self, out, normals);
  return out;
}

static GstFlowReturn
light (GstRelight *self, GstBuffer *normals)
{
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow;
  GstBuffer *out;

  take_albedo (self, normals);
  if (!gst_imaging_engine_follow (self->engine, normals) ||
      !gst_imaging_settings_take (self->settings, GST_IMAGING_WHEN_LIVE,
          gst_imaging_stream_time (
              &GST_AGGREGATOR_PAD (self->normal)->segment, normals)))
    return GST_FLOW_ERROR;
  out = new_output (self, normals);
  if (!out) {
    GST_ELEMENT_ERROR (self, RESOURCE, NO_SPACE_LEFT,
        ("There is no memory for a picture of %u x %u pixels.",
            self->normal_picture.width, self->normal_picture.height),
        (NULL));
    return GST_FLOW_ERROR;
  }
  flow = gst_relight_render (self, normals, out);
  if (flow == GST_FLOW_OK) {
    gst_imaging_engine_sign (self->engine, out);
    flow = gst_imaging_aggregator_finish (GST_AGGREGATOR (self), out);
  } else {
    gst_buffer_unref (out);
  }
  gst_imaging_engine_count_frame (self->engine, entered);
  return flow == GST_FLOW_CUSTOM_SUCCESS ? GST_FLOW_OK : flow;
}

static GstFlowReturn
gst_relight_aggregate (GstAggregator *agg, gboolean timeout)
{
  GstRelight *self = GST_RELIGHT (agg);
  GstAggregatorPad *pad = GST_AGGREGATOR_PAD (self->normal);
  g_autoptr (GstBuffer) normals = gst_aggregator_pad_pop_buffer (pad);
  GstFlowReturn flow;

  if (!normals)
    return gst_aggregator_pad_is_eos (pad) ? GST_FLOW_EOS
                                           : GST_AGGREGATOR_FLOW_NEED_DATA;
  if (gst_imaging_aggregator_is_gap (normals)) {
    gst_imaging_aggregator_push_gap (
        agg, GST_BUFFER_PTS (normals), GST_BUFFER_DURATION (normals));
    self->is_discont = TRUE;
    flow = GST_FLOW_OK;
  } else {
    flow = self->has_caps ? light (self, normals) : GST_FLOW_NOT_NEGOTIATED;
  }
  return flow;
}

static GstFlowReturn
gst_relight_update_src_caps (GstAggregator *agg, GstCaps *caps, GstCaps **ret)
{
  GstRelight *self = GST_RELIGHT (agg);
  const GstImagingPicture *p = &self->normal_picture;

  if (!self->has_caps)
    return self->refused ? GST_FLOW_NOT_NEGOTIATED
                         : GST_AGGREGATOR_FLOW_NEED_DATA;
  *ret = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING, "RGB",
      "width", G_TYPE_INT, (gint) p->width, "height", G_TYPE_INT,
      (gint) p->height, "framerate", GST_TYPE_FRACTION, p->fps_n, p->fps_d,
      NULL);
  return GST_FLOW_OK;
}

static gboolean
gst_relight_negotiate (GstAggregator *agg)
{
  return gst_imaging_aggregator_negotiate (agg,
      GST_AGGREGATOR_CLASS (gst_relight_parent_class),
      &GST_RELIGHT (agg)->refused);
}

static gboolean
gst_relight_decide_allocation (GstAggregator *agg, GstQuery *query)
{
  return gst_imaging_allocation_decide (GST_RELIGHT (agg)->engine, query);
}

static gboolean
gst_relight_propose_allocation (GstAggregator *agg, GstAggregatorPad *pad,
    GstQuery *decide_query, GstQuery *query)
{
  gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  gst_imaging_allocation_propose (GST_RELIGHT (agg)->engine, query);
  return TRUE;
}

/* --- events and queries -------------------------------------------------- */

static gboolean
set_normal_caps (GstRelight *self, GstCaps *caps)
{
  GstImagingPicture *p = &self->normal_picture;
  g_autoptr (GstCaps) carrier = p->type == IMK_TYPE_F32
                                    ? gst_video_info_to_caps (&p->carrier)
                                    : gst_caps_ref (caps);
  gboolean ok = gst_imaging_engine_set_caps (self->engine, carrier, NULL);

  gst_pad_mark_reconfigure (GST_AGGREGATOR_SRC_PAD (self));
  return ok;
}

/* Only a warning: the normals may be linked later. */
static void
warn_of_missing_normals (GstRelight *self)
{
  if (!gst_pad_is_linked (self->normal))
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("There is an albedo, but the pad normal is not linked: no picture "
         "comes out before it is."),
        (NULL));
}

static gboolean
set_caps (GstRelight *self, GstPad *pad, GstCaps *caps)
{
  gboolean is_normal = pad == self->normal, ok;
  GstImagingPicture picture;
  ImkError error;
  ImkStatus status = gst_imaging_picture_from_caps (&picture, caps, &error);

  GST_OBJECT_LOCK (self);
  if (status == IMK_OK && is_normal)
    self->normal_picture = picture;
  else if (status == IMK_OK)
    self->albedo_picture = picture;
  GST_OBJECT_UNLOCK (self);
  if (status != IMK_OK)
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("%s", error.message), (NULL));
  ok = status == IMK_OK && (!is_normal || set_normal_caps (self, caps));
  if (is_normal) {
    self->has_caps = ok;
    self->refused = !ok;
  } else {
    warn_of_missing_normals (self);
    gst_relight_forget_albedo (self);
  }
  return ok;
}

static gboolean
gst_relight_sink_event (
    GstAggregator *agg, GstAggregatorPad *pad, GstEvent *event)
{
  GstRelight *self = GST_RELIGHT (agg);
  const GstSegment *segment;
  GstCaps *caps;
  gboolean ok;

  if (gst_imaging_aggregator_keep_event (agg, pad, &self->held, event))
    return TRUE;
  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    ok = set_caps (self, GST_PAD (pad), caps);
    gst_event_unref (event);
    return ok;
  case GST_EVENT_SEGMENT:
    if (GST_PAD (pad) != self->normal)
      break; /* pictures have the time of the normals */
    gst_event_parse_segment (event, &segment);
    if (segment->format == GST_FORMAT_TIME)
      gst_aggregator_update_segment (agg, segment);
    self->is_discont = TRUE;
    break;
  default:
    break;
  }
  return GST_AGGREGATOR_CLASS (gst_relight_parent_class)
      ->sink_event (agg, pad, event);
}

static gboolean
gst_relight_sink_query (
    GstAggregator *agg, GstAggregatorPad *pad, GstQuery *query)
{
  return gst_imaging_engine_query (GST_RELIGHT (agg)->engine, query) ||
         GST_AGGREGATOR_CLASS (gst_relight_parent_class)
             ->sink_query (agg, pad, query);
}

static gboolean
gst_relight_src_query (GstAggregator *agg, GstQuery *query)
{
  return gst_imaging_engine_query (GST_RELIGHT (agg)->engine, query) ||
         GST_AGGREGATOR_CLASS (gst_relight_parent_class)
             ->src_query (agg, query);
}

/* The picture's middle is the pole of a ball that touches its nearer edges; the
 * light comes from where the mouse points at. */
static void
point_light (GstRelight *self, gdouble x, gdouble y)
{
  gdouble width, height, radius, dx, dy, r, azimuth, elevation;

  GST_OBJECT_LOCK (self);
  width = self->normal_picture.width;
  height = self->normal_picture.height;
  GST_OBJECT_UNLOCK (self);
  radius = MIN (width, height) / 2;
  dx = (x - (width - 1) / 2) / MAX (radius, 1);
  dy = ((height - 1) / 2 - y) / MAX (radius, 1);
  r = MIN (hypot (dx, dy), 1);
  azimuth = fmod (atan2 (dy, dx) * 180 / G_PI + 360, 360);
  elevation = acos (r) * 180 / G_PI;
  g_object_set (self, "azimuth", azimuth, "elevation", elevation, NULL);
}

static gboolean
gst_relight_src_event (GstAggregator *agg, GstEvent *event)
{
  GstRelight *self = GST_RELIGHT (agg);
  gboolean mouse;
  gdouble x, y;

  if (gst_imaging_aggregator_refuse_seek (agg, event)) {
    gst_event_unref (event);
    return FALSE;
  }
  g_object_get (self, "mouse", &mouse, NULL);
  if (mouse && GST_EVENT_TYPE (event) == GST_EVENT_NAVIGATION &&
      gst_navigation_event_parse_mouse_move_event (event, &x, &y)) {
    point_light (self, x, y);
    gst_event_unref (event);
    return TRUE;
  }
  return GST_AGGREGATOR_CLASS (gst_relight_parent_class)
      ->src_event (agg, event);
}

/* --- pads ---------------------------------------------------------------- */

static GstPad *
gst_relight_request_new_pad (GstElement *element, GstPadTemplate *template,
    const gchar *name, const GstCaps *caps)
{
  GstRelight *self = GST_RELIGHT (element);
  gboolean taken;
  GstPad *pad;

  GST_OBJECT_LOCK (self);
  taken = self->has_albedo;
  self->has_albedo = TRUE;
  GST_OBJECT_UNLOCK (self);
  if (taken)
    return NULL;
  pad = GST_ELEMENT_CLASS (gst_relight_parent_class)
            ->request_new_pad (element, template, "albedo", caps);
  GST_OBJECT_LOCK (self);
  self->albedo = pad;
  self->has_albedo = pad != NULL;
  GST_OBJECT_UNLOCK (self);
  return pad;
}

static void
gst_relight_release_pad (GstElement *element, GstPad *pad)
{
  GstRelight *self = GST_RELIGHT (element);

  GST_OBJECT_LOCK (self);
  if (self->albedo == pad)
    self->albedo = NULL;
  GST_OBJECT_UNLOCK (self);
  GST_ELEMENT_CLASS (gst_relight_parent_class)->release_pad (element, pad);
  GST_OBJECT_LOCK (self);
  self->has_albedo = self->albedo != NULL;
  GST_OBJECT_UNLOCK (self);
}

static GstAggregatorPad *
gst_relight_create_new_pad (GstAggregator *agg, GstPadTemplate *template,
    const gchar *name, const GstCaps *caps)
{
  return g_object_new (GST_TYPE_AGGREGATOR_PAD, "name", "albedo", "direction",
      GST_PAD_SINK, "template", template, NULL);
}

/* --- start and stop ------------------------------------------------------- */

static void
forget (GstRelight *self)
{
  gst_clear_buffer (&self->current);
  g_queue_clear_full (&self->held, (GDestroyNotify) gst_event_unref);
  self->has_caps = self->refused = FALSE;
}

static gboolean
gst_relight_start (GstAggregator *agg)
{
  GstRelight *self = GST_RELIGHT (agg);

  forget (self);
  return gst_imaging_engine_start (self->engine);
}

static gboolean
gst_relight_stop (GstAggregator *agg)
{
  GstRelight *self = GST_RELIGHT (agg);

  forget (self);
  gst_imaging_engine_stop (self->engine);
  return TRUE;
}

static void
gst_relight_set_context (GstElement *element, GstContext *context)
{
  gst_imaging_engine_set_context (GST_RELIGHT (element)->engine, context);
  GST_ELEMENT_CLASS (gst_relight_parent_class)->set_context (element, context);
}

/* --- GObject ------------------------------------------------------------- */

static void
gst_relight_finalize (GObject *object)
{
  gst_imaging_engine_free (GST_RELIGHT (object)->engine);
  G_OBJECT_CLASS (gst_relight_parent_class)->finalize (object);
}

static void
gst_relight_class_init (GstRelightClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstAggregatorClass *agg_class = GST_AGGREGATOR_CLASS (klass);

  object_class->finalize = gst_relight_finalize;
  gst_imaging_settings_install (object_class, &gst_relight_table);

  gst_element_class_set_static_metadata (element_class,
      "A surface under a light that moves", "Filter/Effect/Video",
      "Pictures from normals and albedo under a light from any direction",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template_with_gtype (
      element_class, &normal_template, GST_TYPE_AGGREGATOR_PAD);
  gst_element_class_add_static_pad_template_with_gtype (
      element_class, &albedo_template, GST_TYPE_AGGREGATOR_PAD);
  gst_element_class_add_static_pad_template_with_gtype (
      element_class, &src_template, GST_TYPE_AGGREGATOR_PAD);
  element_class->request_new_pad = gst_relight_request_new_pad;
  element_class->release_pad = gst_relight_release_pad;
  element_class->set_context = gst_relight_set_context;
  agg_class->create_new_pad = gst_relight_create_new_pad;
  agg_class->start = gst_relight_start;
  agg_class->stop = gst_relight_stop;
  agg_class->aggregate = gst_relight_aggregate;
  agg_class->negotiate = gst_relight_negotiate;
  agg_class->update_src_caps = gst_relight_update_src_caps;
  agg_class->decide_allocation = gst_relight_decide_allocation;
  agg_class->propose_allocation = gst_relight_propose_allocation;
  agg_class->sink_event = gst_relight_sink_event;
  agg_class->sink_query = gst_relight_sink_query;
  agg_class->src_query = gst_relight_src_query;
  agg_class->src_event = gst_relight_src_event;
}

static void
gst_relight_init (GstRelight *self)
{
  g_autoptr (GstPadTemplate) template =
      gst_static_pad_template_get (&normal_template);

  gst_imaging_aggregator_init (GST_AGGREGATOR (self), &self->held);
  self->engine =
      gst_imaging_engine_new (GST_ELEMENT (self), &gst_relight_engine_funcs);
  self->settings = gst_imaging_settings_new (
      GST_ELEMENT (self), &gst_relight_table, self->engine);
  self->normal = g_object_new (GST_TYPE_AGGREGATOR_PAD, "name", "normal",
      "direction", GST_PAD_SINK, "template", template, NULL);
  gst_element_add_pad (GST_ELEMENT (self), self->normal);
}
