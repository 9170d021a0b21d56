/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-insarfit
 * @title: insarfit
 * @short_description: fits a smooth field to offsets in GMTSAR's text
 *
 * Reads the rows of a freq_xcorr.dat, as insarxcorr and GMTSAR's xcorr write
 * them, to its end, and then writes the eight lines that GMTSAR's fitoffset.csh
 * prints. Fewer than eight rows above fit-snr are an error.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 -q filesrc location=freq_xcorr.dat ! insarfit fit-snr=18 !
 * fdsink
 * ]|
 */
#include "gstinsarfit.h"

#include "gstinsarxcorrtext.h"

GST_DEBUG_CATEGORY_STATIC (insarfit_debug);
#define GST_CAT_DEFAULT insarfit_debug

#define DEFAULT_PROP_FIT_RANGE 3
#define DEFAULT_PROP_FIT_AZIMUTH 3
#define DEFAULT_PROP_FIT_SNR 20.0

#define MAX_TEXT (1 << 30) /* 30 million rows */

enum {
  PROP_0,
  PROP_FIT_RANGE,
  PROP_FIT_AZIMUTH,
  PROP_FIT_SNR,
};

struct _GstInsarFit {
  GstElement parent;
  GstPad *sink, *src;

  gint range_terms, azimuth_terms; /* under the object lock */
  gdouble snr;

  GString *text; /* of the streaming thread */
};

/* any text: filesrc names none */
static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS ("text/x-gmtsar-prm"));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstInsarFit, gst_insar_fit, GST_TYPE_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        insarfit_debug, "insarfit", 0, "fields through SAR image offsets"))
GST_ELEMENT_REGISTER_DEFINE (
    insarfit, "insarfit", GST_RANK_NONE, GST_TYPE_INSAR_FIT)

/* --- streaming ----------------------------------------------------------- */

static GstFlowReturn
gst_insar_fit_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstInsarFit *self = GST_INSAR_FIT (parent);
  gboolean fits;
  GstMapInfo map;

  if (!gst_buffer_map (buffer, &map, GST_MAP_READ)) {
    GST_ELEMENT_ERROR (self, RESOURCE, READ,
        ("The memory of the offsets cannot be read."), (NULL));
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  fits = self->text->len + map.size <= MAX_TEXT;
  if (fits)
    g_string_append_len (self->text, (const gchar *) map.data, map.size);
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
  if (fits)
    return GST_FLOW_OK;
  GST_ELEMENT_ERROR (self, STREAM, FORMAT,
      ("The offsets are longer than %d bytes of text.", MAX_TEXT), (NULL));
  return GST_FLOW_ERROR;
}

/* Returns: FALSE after an error has been posted */
static gboolean
fit (GstInsarFit *self, ImkInsarxcorrFit *result)
{
  gint range_terms, azimuth_terms;
  ImkStatus status = IMK_ERROR_IMAGE;
  GArray *points;
  ImkError error;
  gdouble snr;

  GST_OBJECT_LOCK (self);
  range_terms = self->range_terms;
  azimuth_terms = self->azimuth_terms;
  snr = self->snr;
  GST_OBJECT_UNLOCK (self);

  points =
      gst_insar_text_parse_rows (self->text->str, self->text->len, snr, &error);
  if (points) {
    status = imk_insarxcorr_fit ((const ImkInsarxcorrPoint *) points->data,
        points->len, range_terms, azimuth_terms, result, &error);
    g_array_unref (points);
  }
  if (status != IMK_OK)
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("%s", error.message), (NULL));
  return status == IMK_OK;
}

/* Returns: FALSE after an error has been posted */
static gboolean
push_fit (GstInsarFit *self)
{
  ImkInsarxcorrFit result;
  GstBuffer *buffer;

  if (!fit (self, &result))
    return FALSE;
  gst_insar_text_post_fit (GST_ELEMENT (self), &result, TRUE);
  buffer = gst_insar_text_of_fit (&result);
  GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT); /* one a segment */
  gst_pad_push (self->src, buffer);
  return TRUE;
}

/* Of what comes out; filesrc's segment is in bytes. */
static gboolean
push_segment (GstInsarFit *self, GstEvent *cause)
{
  GstCaps *caps = gst_static_pad_template_get_caps (&src_template);
  GstSegment segment;
  GstEvent *event;

  gst_pad_push_event (self->src, gst_event_new_caps (caps));
  gst_caps_unref (caps);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  event = gst_event_new_segment (&segment);
  gst_event_set_seqnum (event, gst_event_get_seqnum (cause));
  return gst_pad_push_event (self->src, event);
}

static gboolean
gst_insar_fit_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstInsarFit *self = GST_INSAR_FIT (parent);
  gboolean done;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_unref (event);
    return TRUE;
  case GST_EVENT_SEGMENT:
    done = push_segment (self, event);
    gst_event_unref (event);
    return done;
  case GST_EVENT_FLUSH_STOP:
    g_string_truncate (self->text, 0);
    break;
  case GST_EVENT_EOS:
    done = push_fit (self);
    g_string_truncate (self->text, 0);
    if (done)
      break;
    gst_event_unref (event); /* an error is the end */
    return FALSE;
  default:
    break;
  }
  return gst_pad_event_default (pad, parent, event);
}

static GstStateChangeReturn
gst_insar_fit_change_state (GstElement *element, GstStateChange transition)
{
  GstInsarFit *self = GST_INSAR_FIT (element);
  GstStateChangeReturn result = GST_ELEMENT_CLASS (gst_insar_fit_parent_class)
                                    ->change_state (element, transition);

  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    g_string_truncate (self->text, 0);
  return result;
}

/* --- the object ---------------------------------------------------------- */

static void
gst_insar_fit_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstInsarFit *self = GST_INSAR_FIT (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_FIT_RANGE:
    self->range_terms = g_value_get_int (value);
    break;
  case PROP_FIT_AZIMUTH:
    self->azimuth_terms = g_value_get_int (value);
    break;
  case PROP_FIT_SNR:
    self->snr = g_value_get_double (value);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_insar_fit_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstInsarFit *self = GST_INSAR_FIT (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_FIT_RANGE:
    g_value_set_int (value, self->range_terms);
    break;
  case PROP_FIT_AZIMUTH:
    g_value_set_int (value, self->azimuth_terms);
    break;
  case PROP_FIT_SNR:
    g_value_set_double (value, self->snr);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_insar_fit_finalize (GObject *object)
{
  g_string_free (GST_INSAR_FIT (object)->text, TRUE);
  G_OBJECT_CLASS (gst_insar_fit_parent_class)->finalize (object);
}

static void
gst_insar_fit_class_init (GstInsarFitClass *klass)
{
  const GParamFlags flags =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->set_property = gst_insar_fit_set_property;
  object_class->get_property = gst_insar_fit_get_property;
  object_class->finalize = gst_insar_fit_finalize;
  element_class->change_state = gst_insar_fit_change_state;

  g_object_class_install_property (object_class, PROP_FIT_RANGE,
      g_param_spec_int ("fit-range", "Range terms",
          "Terms of the polynomial in range: 1 shift, 2 and stretch along "
          "range, 3 and along azimuth, up to 10 for cubic ones",
          1, IMK_INSARXCORR_FIT_MAX_TERMS, DEFAULT_PROP_FIT_RANGE, flags));
  g_object_class_install_property (object_class, PROP_FIT_AZIMUTH,
      g_param_spec_int ("fit-azimuth", "Azimuth terms",
          "Terms of the polynomial in azimuth, as fit-range", 1,
          IMK_INSARXCORR_FIT_MAX_TERMS, DEFAULT_PROP_FIT_AZIMUTH, flags));
  g_object_class_install_property (object_class, PROP_FIT_SNR,
      g_param_spec_double ("fit-snr", "Least correlation",
          "Rows whose correlation, 0 to 100, is above it take part in the fit",
          0.0, 100.0, DEFAULT_PROP_FIT_SNR, flags));

  gst_element_class_set_static_metadata (element_class, "SAR offset fit",
      "Filter/Analyzer", "Fits a smooth field to offsets in GMTSAR's text",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
}

static void
gst_insar_fit_init (GstInsarFit *self)
{
  self->text = g_string_new (NULL);
  self->range_terms = DEFAULT_PROP_FIT_RANGE;
  self->azimuth_terms = DEFAULT_PROP_FIT_AZIMUTH;
  self->snr = DEFAULT_PROP_FIT_SNR;
  self->sink = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sink, gst_insar_fit_chain);
  gst_pad_set_event_function (self->sink, gst_insar_fit_event);
  gst_element_add_pad (GST_ELEMENT (self), self->sink);
  self->src = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_use_fixed_caps (self->src);
  gst_element_add_pad (GST_ELEMENT (self), self->src);
}
