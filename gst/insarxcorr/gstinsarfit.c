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
#include <gst/gst.h>

#include "gstimagingsettings.h"
#include "gstinsarxcorrtext.h"

#define GST_TYPE_INSAR_FIT (gst_insar_fit_get_type ())
G_DECLARE_FINAL_TYPE (GstInsarFit, gst_insar_fit, GST, INSAR_FIT, GstElement)

GST_ELEMENT_REGISTER_DECLARE (insarfit);

GST_DEBUG_CATEGORY_STATIC (insarfit_debug);
#define GST_CAT_DEFAULT insarfit_debug

#define MAX_TEXT (1 << 30) /* 30 million rows */

typedef struct {
  gint range_terms, azimuth_terms;
  gdouble snr;
} Settings;

struct _GstInsarFit {
  GstElement parent;
  GstPad *sink, *src;

  GstImagingSettings *settings; /* not owned */

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

static const GstImagingSetting settings[] = {
    GST_IMAGING_INT ("fit-range", NEXT_SET, 0, Settings, range_terms, 1,
        IMK_INSARXCORR_FIT_MAX_TERMS, "terms",
        "Number of terms of the polynomial that is fitted to the range "
        "offsets. 1: shift; 2: and stretch along range; 3: and along azimuth; "
        "up to 10 for cubic terms"),
    GST_IMAGING_INT ("fit-azimuth", NEXT_SET, 0, Settings, azimuth_terms, 1,
        IMK_INSARXCORR_FIT_MAX_TERMS, "terms",
        "Number of terms of the polynomial that is fitted to the azimuth "
        "offsets, as fit-range"),
    GST_IMAGING_DOUBLE ("fit-snr", NEXT_SET, 0, Settings, snr, 0, 100,
        "percent",
        "Rows with a correlation, 0 to 100, above this value are used in the "
        "fit; the others are ignored"),
};

static void
init_settings (gpointer data)
{
  *(Settings *) data =
      (Settings){.range_terms = 3, .azimuth_terms = 3, .snr = 20};
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .timeless = TRUE,
    .init = init_settings,
};

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

/* Returns: (nullable) (transfer full): the fit, which is posted */
static GstBuffer *
make_fit (GstInsarFit *self, ImkError *error)
{
  const Settings *settings = gst_imaging_settings_now (self->settings);
  GstBuffer *buffer = NULL;
  ImkInsarxcorrFit fit;
  g_autoptr (GArray) points = gst_insar_text_parse_rows (
      self->text->str, self->text->len, settings->snr, error);

  if (!points)
    return NULL;
  if (imk_insarxcorr_fit ((const ImkInsarxcorrPoint *) points->data,
          points->len, settings->range_terms, settings->azimuth_terms, &fit,
          error) == IMK_OK) {
    gst_insar_text_post_fit (GST_ELEMENT (self), points, &fit,
        &(GstInsarFitOrigin){
            .min_correlation = settings->snr, .is_wanted = TRUE});
    buffer = gst_insar_text_of_fit (&fit);
  }
  return buffer;
}

/* Returns: FALSE after an error has been posted */
static gboolean
push_fit (GstInsarFit *self)
{
  GstBuffer *buffer = NULL;
  ImkError error;

  if (gst_imaging_settings_update (self->settings, GST_IMAGING_WHEN_NEXT_SET,
          GST_CLOCK_TIME_NONE, &error) == IMK_OK)
    buffer = make_fit (self, &error);
  if (!buffer) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("%s", error.message), (NULL));
    return FALSE;
  }
  GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT); /* one a segment */
  gst_pad_push (self->src, buffer);
  return TRUE;
}

/* The segment of the output: filesrc's is in bytes. */
static gboolean
push_segment (GstInsarFit *self, GstEvent *cause)
{
  g_autoptr (GstCaps) caps = gst_static_pad_template_get_caps (&src_template);
  GstSegment segment;
  GstEvent *event;

  gst_pad_push_event (self->src, gst_event_new_caps (caps));
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
  GstStateChangeReturn result;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED)
    gst_imaging_settings_start (self->settings);
  result = GST_ELEMENT_CLASS (gst_insar_fit_parent_class)
               ->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    g_string_truncate (self->text, 0);
  return result;
}

/* --- the object ---------------------------------------------------------- */

static void
gst_insar_fit_finalize (GObject *object)
{
  g_string_free (GST_INSAR_FIT (object)->text, TRUE);
  G_OBJECT_CLASS (gst_insar_fit_parent_class)->finalize (object);
}

static void
gst_insar_fit_class_init (GstInsarFitClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->finalize = gst_insar_fit_finalize;
  element_class->change_state = gst_insar_fit_change_state;

  gst_imaging_settings_install (object_class, &table);

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
  self->settings = gst_imaging_settings_new (GST_ELEMENT (self), &table, NULL);
  self->sink = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sink, gst_insar_fit_chain);
  gst_pad_set_event_function (self->sink, gst_insar_fit_event);
  gst_element_add_pad (GST_ELEMENT (self), self->sink);
  self->src = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_use_fixed_caps (self->src);
  gst_element_add_pad (GST_ELEMENT (self), self->src);
}
