/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-invert
 * @title: invert
 * @short_description: Negative of a picture
 *
 * Moves every sample v towards its opposite, by a fraction a:
 *
 *     out = floor (v + a (m - 2 v) + 0.5), m = 255 or 65535
 *
 * with the same bytes on CPU and GPU.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc ! invert ! videoconvert ! autovideosink
 * ]|
 *
 * Since: 0.1
 */
#include "gstimagingfilter.h"

#include "imk/invert.h"

#define GST_TYPE_INVERT (gst_invert_get_type ())
G_DECLARE_FINAL_TYPE (GstInvert, gst_invert, GST, INVERT, GstImagingFilter)

GST_ELEMENT_REGISTER_DECLARE (invert);

GST_DEBUG_CATEGORY_STATIC (invert_debug);
#define GST_CAT_DEFAULT invert_debug

/* The properties. The format in the configuration is filled in by open (). */
typedef struct {
  ImkInvertConfig config;
} Settings;

struct _GstInvert {
  GstImagingFilter parent;
  GstImagingSettings *settings;

  /* of the streaming thread */
  ImkInvert *kernel;
  ImkInvertConfig config; /* of the kernel */
};

#define INVERT_FORMATS "{ GRAY8, GRAY16_LE, RGB, BGR }"

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (INVERT_FORMATS)));

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (INVERT_FORMATS)));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstInvert, gst_invert, GST_TYPE_IMAGING_FILTER,
    GST_DEBUG_CATEGORY_INIT (
        invert_debug, "invert", 0, "negative of a picture"))
GST_ELEMENT_REGISTER_DEFINE (invert, "invert", GST_RANK_NONE, GST_TYPE_INVERT)

static const Settings *
now (GstInvert *self)
{
  return gst_imaging_settings_now (self->settings);
}

/* --- the kernel ---------------------------------------------------------- */

static void
gst_invert_close (GstImagingFilter *filter)
{
  g_clear_pointer (&GST_INVERT (filter)->kernel, imk_invert_free);
}

/* The kernel that is open stays until there is a new one. */
static ImkStatus
gst_invert_open (GstImagingFilter *filter, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  GstInvert *self = GST_INVERT (filter);
  ImkInvertConfig config = now (self)->config;
  ImkInvert *kernel;

  config.width = info->width;
  config.height = info->height;
  config.type =
      GST_VIDEO_INFO_COMP_DEPTH (info, 0) > 8 ? IMK_TYPE_U16 : IMK_TYPE_U8;
  config.channels = GST_VIDEO_INFO_N_COMPONENTS (info);
  config.n_threads = gst_imaging_filter_n_threads (filter);
  IMK_TRY (imk_invert_new (backend, &config, &kernel, error));
  gst_invert_close (filter);
  self->kernel = kernel;
  self->config = config;
  return IMK_OK;
}

/* What the properties do not say. */
static void
take_format (ImkInvertConfig *config, const ImkInvertConfig *from)
{
  config->width = from->width;
  config->height = from->height;
  config->type = from->type;
  config->channels = from->channels;
  config->n_threads = from->n_threads;
}

/* Properties changed; the base calls this before the next frame. */
static ImkStatus
gst_invert_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  GstInvert *self = GST_INVERT (element);

  ImkInvertConfig config = now (self)->config;

  if (!self->kernel)
    return IMK_OK;
  take_format (&config, &self->config);
  IMK_TRY (imk_invert_update (self->kernel, &config, error));
  self->config = config;
  return IMK_OK;
}

static ImkStatus
gst_invert_process (GstImagingFilter *filter, GstImagingFrame *in,
    GstImagingFrame *out, GstBuffer *buffer, gboolean *done, ImkError *error)
{
  return imk_invert_process (GST_INVERT (filter)->kernel, &in->planes[0],
      &out->planes[0], in->stream, error);
}

static gboolean
gst_invert_is_identity (GstImagingFilter *filter)
{
  return now (GST_INVERT (filter))->config.amount == 0;
}

/* --- the properties ------------------------------------------------------ */

static const GstImagingSetting settings[] = {
    GST_IMAGING_DOUBLE ("amount", LIVE, 0, Settings, config.amount, 0, 1, NULL,
        "Fraction a in out = v + a (m - 2 v), m the largest sample: 1 gives "
        "the negative m - v, 0 passes frames on untouched"),
};

static void
init_settings (gpointer data)
{
  Settings *s = data;

  imk_invert_config_init (&s->config);
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .init = init_settings,
    .apply = gst_invert_apply,
};

/* --- GObject ------------------------------------------------------------- */

static void
gst_invert_class_init (GstInvertClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstImagingFilterClass *filter_class = GST_IMAGING_FILTER_CLASS (klass);

  gst_imaging_settings_install (G_OBJECT_CLASS (klass), &table);

  gst_element_class_set_static_metadata (element_class, "Negative",
      "Filter/Effect/Video", "Makes the negative of a picture",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);

  filter_class->device_reach = GST_IMAGING_REACH_DEVICE_OR_MAPPED;
  filter_class->open = gst_invert_open;
  filter_class->close = gst_invert_close;
  filter_class->process = gst_invert_process;
  filter_class->is_identity = gst_invert_is_identity;
}

static void
gst_invert_init (GstInvert *self)
{
  self->settings =
      gst_imaging_filter_use_settings (GST_IMAGING_FILTER (self), &table);
}
