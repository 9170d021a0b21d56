/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-shoverlay
 * @title: shoverlay
 * @short_description: Draws Shack-Hartmann centroids onto video
 *
 * Draws what shcentroid measured: cells, references, centroids, slopes as
 * arrows, and flags. It takes the grey frames of cameras as they are, stretches
 * their contrast, and gives colour.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 picturesrc location=spots.npy ! shcentroid columns=12 rows=8
 * pitch-x=20 pitch-y=20 ! shoverlay arrow-scale=5 ! videoconvert !
 * autovideosink
 * ]|
 *
 * Since: 0.1
 */
#include <gst/video/gstvideofilter.h>

#include "gstimagingmodule.h"
#include "gstimagingresults.h"
#include "gstimagingsettings.h"
#include "gstimagingstream.h"
#include "gstshoverlaydraw.h"
#include "gstshoverlaygrey.h"

#define GST_TYPE_SH_OVERLAY (gst_sh_overlay_get_type ())
G_DECLARE_FINAL_TYPE (
    GstShOverlay, gst_sh_overlay, GST, SH_OVERLAY, GstVideoFilter)

GST_ELEMENT_REGISTER_DECLARE (shoverlay);

GST_DEBUG_CATEGORY_STATIC (shoverlay_debug);
#define GST_CAT_DEFAULT shoverlay_debug

typedef struct {
  gchar *results;
  GstShOverlayStyle style;
  GstShOverlayLevels levels;
} Settings;

struct _GstShOverlay {
  GstVideoFilter parent;

  GstImagingSettings *settings;
  GstShOverlayDraw draw;
  gboolean warned; /* streaming thread: that there is nothing to draw */
};

/* cairo draws in words of 0xXXRRGGBB; red and blue may change places. */
#if G_BYTE_ORDER == G_LITTLE_ENDIAN
#define COLOUR_FORMATS "{ BGRx, RGBx }"
#define SWAPPED_FORMAT GST_VIDEO_FORMAT_RGBx
#else
#define COLOUR_FORMATS "{ xRGB, xBGR }"
#define SWAPPED_FORMAT GST_VIDEO_FORMAT_xBGR
#endif

#define GREY_CAPS GST_VIDEO_CAPS_MAKE ("{ GRAY8, GRAY16_LE }")
#define COLOUR_CAPS GST_VIDEO_CAPS_MAKE (COLOUR_FORMATS)

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GREY_CAPS ";" COLOUR_CAPS));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (COLOUR_CAPS));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstShOverlay, gst_sh_overlay,
    GST_TYPE_VIDEO_FILTER,
    GST_DEBUG_CATEGORY_INIT (
        shoverlay_debug, "shoverlay", 0, "drawing of centroids"))
GST_ELEMENT_REGISTER_DEFINE (
    shoverlay, "shoverlay", GST_RANK_NONE, GST_TYPE_SH_OVERLAY)

/* --- settings ------------------------------------------------------------ */

static const GFlagsValue parts[] = {
    {GST_SH_OVERLAY_CELLS, "The edges of the cells", "cells"},
    {GST_SH_OVERLAY_REFERENCES, "Rings where spots should be", "references"},
    {GST_SH_OVERLAY_ARROWS, "Slopes, from the reference on", "arrows"},
    {GST_SH_OVERLAY_CENTROIDS, "Crosses where spots are", "centroids"},
    {GST_SH_OVERLAY_FLAGS, "Letters of flags, invalid cells crossed out",
        "flags"},
    {GST_SH_OVERLAY_TEXT, "A line of frame number and counts", "text"},
    {0, NULL, NULL},
};

#define COLOUR(NAME, MEMBER, BLURB) \
  GST_IMAGING_UINT (NAME, LIVE, 0, Settings, style.MEMBER, 0, G_MAXUINT32, \
      "0xAARRGGBB", BLURB ", as 0xAARRGGBB; AA is the opacity")

static const GstImagingSetting settings[] = {
    GST_IMAGING_STRING ("results", LIVE, 0, Settings, results,
        "Name of the element whose centroids are drawn. Empty: the first "
        "results on a frame"),
    GST_IMAGING_FLAGS ("draw", LIVE, 0, Settings, style.parts,
        "GstShOverlayParts", parts,
        "Parts that are drawn, joined by +, as cells+arrows+text"),
    GST_IMAGING_DOUBLE ("arrow-scale", LIVE, 0, Settings, style.arrow_scale, 0,
        1e6, NULL, "Length of an arrow divided by the slope in pixels"),
    GST_IMAGING_DOUBLE ("line-width", LIVE, 0, Settings, style.line_width, 0.1,
        100, "px", "Width of all lines, in pixels of the picture"),
    COLOUR ("cell-color", cell_colour, "Colour of the edges of cells"),
    COLOUR ("reference-color", reference_colour, "Colour of the rings"),
    COLOUR ("arrow-color", arrow_colour, "Colour of the slopes"),
    COLOUR ("centroid-color", centroid_colour, "Colour of the crosses"),
    COLOUR (
        "flag-color", flag_colour, "Colour of letters and crossed out cells"),
    COLOUR ("text-color", text_colour, "Colour of the line at the bottom"),
    GST_IMAGING_INT ("black", LIVE, 0, Settings, levels.black, -1, G_MAXUINT16,
        "counts",
        "Sample of a grey frame that is shown as black. -1: chosen so that 10 "
        "% of each frame are darker"),
    GST_IMAGING_INT ("white", LIVE, 0, Settings, levels.white, -1, G_MAXUINT16,
        "counts",
        "Sample of a grey frame that is shown as white. -1: chosen so that 0.2 "
        "% of each frame are brighter"),
    GST_IMAGING_DOUBLE ("gamma", LIVE, 0, Settings, levels.gamma, 0.1, 10, NULL,
        "Gamma of grey frames: 1 is linear, larger values show faint light "
        "beside bright spots"),
};

static void
init_settings (gpointer data)
{
  *(Settings *) data = (Settings){
      .style = {.parts = GST_SH_OVERLAY_CELLS | GST_SH_OVERLAY_ARROWS |
                         GST_SH_OVERLAY_CENTROIDS | GST_SH_OVERLAY_FLAGS |
                         GST_SH_OVERLAY_TEXT,
          .arrow_scale = 5,
          .line_width = 1,
          .cell_colour = 0x66a0a0a0,
          .reference_colour = 0xff30a0ff,
          .arrow_colour = 0xffffd000,
          .centroid_colour = 0xff00ff60,
          .flag_colour = 0xffff4030,
          .text_colour = 0xffffffff},
      .levels = {.black = -1, .white = -1, .gamma = 2},
  };
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .init = init_settings,
};

/* --- caps ----------------------------------------------------------------- */

/* The parts of @caps with formats of @from, with those of @to instead. */
static GstCaps *
change_formats (GstCaps *caps, const gchar *from, const gchar *to)
{
  g_autoptr (GstCaps) wanted = gst_caps_from_string (from);
  g_autoptr (GstCaps) new_formats = gst_caps_from_string (to);
  g_autoptr (GstCaps) some = gst_caps_make_writable (
      gst_caps_intersect_full (caps, wanted, GST_CAPS_INTERSECT_FIRST));

  for (guint i = 0; i < gst_caps_get_size (some); i++)
    gst_structure_remove_fields (gst_caps_get_structure (some, i), "format",
        "colorimetry", "chroma-site", NULL);
  return gst_caps_intersect_full (some, new_formats, GST_CAPS_INTERSECT_FIRST);
}

/* Colour stays as it is; grey becomes colour of either order. */
static GstCaps *
gst_sh_overlay_transform_caps (GstBaseTransform *base,
    GstPadDirection direction, GstCaps *caps, GstCaps *filter)
{
  g_autoptr (GstCaps) colour = gst_static_pad_template_get_caps (&src_template);
  g_autoptr (GstCaps) result = gst_caps_merge (
      gst_caps_intersect_full (caps, colour, GST_CAPS_INTERSECT_FIRST),
      direction == GST_PAD_SINK
          ? change_formats (caps, GREY_CAPS, COLOUR_CAPS)
          : change_formats (caps, COLOUR_CAPS, GREY_CAPS));

  return filter ? gst_caps_intersect_full (
                      filter, result, GST_CAPS_INTERSECT_FIRST)
                : g_steal_pointer (&result);
}

/* --- frames --------------------------------------------------------------- */

/* Once, as a picture without a drawing may be what somebody wants. */
static void
warn_once (GstShOverlay *self, const gchar *results)
{
  if (self->warned)
    return;
  self->warned = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FAILED,
      ("There are no centroids%s%s%s on the frames. Put shcentroid before "
       "shoverlay.",
          results ? " of an element named \"" : "", results ? results : "",
          results ? "\"" : ""),
      ("no GstImagingResults of shwfs-centroids-v1"));
}

static GstFlowReturn
gst_sh_overlay_transform_frame (
    GstVideoFilter *filter, GstVideoFrame *in, GstVideoFrame *out)
{
  GstShOverlay *self = GST_SH_OVERLAY (filter);
  const Settings *s;
  const GstStructure *result;
  GstShOverlayStyle style;

  gst_imaging_settings_update (self->settings, GST_IMAGING_WHEN_LIVE,
      gst_imaging_stream_time (
          &GST_BASE_TRANSFORM (filter)->segment, in->buffer),
      NULL); /* nothing can be rejected */
  s = gst_imaging_settings_now (self->settings);
  style = s->style;
  if (GST_VIDEO_FORMAT_INFO_IS_GRAY (in->info.finfo))
    gst_sh_overlay_paint_grey (in, out, &s->levels);
  else
    gst_video_frame_copy (out, in);
  style.swapped = GST_VIDEO_FRAME_FORMAT (out) == SWAPPED_FORMAT;
  result = gst_imaging_results_get (in->buffer, s->results);
  if (!result || !self->draw (out, result, &style))
    warn_once (self, s->results);
  return GST_FLOW_OK;
}

static gboolean
gst_sh_overlay_start (GstBaseTransform *base)
{
  GstShOverlay *self = GST_SH_OVERLAY (base);
  g_autofree gchar *why = NULL;

  self->draw = (GstShOverlayDraw) gst_imaging_module_symbol (
      GST_SH_OVERLAY_MODULE, GST_SH_OVERLAY_SYMBOL, &why);
  if (!self->draw) {
    GST_ELEMENT_ERROR (self, LIBRARY, INIT,
        ("The module that draws is missing: %s. Install gst-imaging again.",
            why),
        (NULL));
    return FALSE;
  }
  self->warned = FALSE;
  gst_imaging_settings_start (self->settings);
  return TRUE;
}

/* --- GObject -------------------------------------------------------------- */

static void
gst_sh_overlay_class_init (GstShOverlayClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *base_class = GST_BASE_TRANSFORM_CLASS (klass);

  gst_imaging_settings_install (G_OBJECT_CLASS (klass), &table);

  gst_element_class_set_static_metadata (element_class,
      "Shack-Hartmann overlay", "Filter/Effect/Video",
      "Draws the cells, centroids, slopes and flags that shcentroid measured",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);

  base_class->transform_caps = gst_sh_overlay_transform_caps;
  base_class->start = gst_sh_overlay_start;
  GST_VIDEO_FILTER_CLASS (klass)->transform_frame =
      gst_sh_overlay_transform_frame;
}

static void
gst_sh_overlay_init (GstShOverlay *self)
{
  /* a picture of every frame, for files; a sink drops what is late */
  gst_base_transform_set_qos_enabled (GST_BASE_TRANSFORM (self), FALSE);
  self->settings = gst_imaging_settings_new (GST_ELEMENT (self), &table, NULL);
}
