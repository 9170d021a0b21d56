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
 * gst-launch-1.0 npysrc location=spots.npy ! shcentroid columns=12 rows=8
 * pitch-x=20 pitch-y=20 ! shoverlay arrow-scale=5 ! videoconvert !
 * autovideosink
 * ]|
 *
 * Since: 0.1
 */
#include "gstshoverlay.h"

#include "gstimagingresults.h"
#include "gstshoverlaydraw.h"
#include "gstshoverlaygrey.h"

GST_DEBUG_CATEGORY_STATIC (shoverlay_debug);
#define GST_CAT_DEFAULT shoverlay_debug

#define DEFAULT_PROP_PARTS \
  (GST_SH_OVERLAY_CELLS | GST_SH_OVERLAY_ARROWS | GST_SH_OVERLAY_CENTROIDS | \
      GST_SH_OVERLAY_FLAGS | GST_SH_OVERLAY_TEXT)
#define DEFAULT_PROP_ARROW_SCALE 5.0
#define DEFAULT_PROP_LINE_WIDTH 1.0
#define DEFAULT_PROP_LEVEL -1
#define DEFAULT_PROP_GAMMA 2.0
#define DEFAULT_CELL_COLOUR 0x66a0a0a0
#define DEFAULT_REFERENCE_COLOUR 0xff30a0ff
#define DEFAULT_ARROW_COLOUR 0xffffd000
#define DEFAULT_CENTROID_COLOUR 0xff00ff60
#define DEFAULT_FLAG_COLOUR 0xffff4030
#define DEFAULT_TEXT_COLOUR 0xffffffff

enum {
  PROP_0,
  PROP_RESULTS,
  PROP_PARTS,
  PROP_ARROW_SCALE,
  PROP_LINE_WIDTH,
  PROP_CELL_COLOUR,
  PROP_REFERENCE_COLOUR,
  PROP_ARROW_COLOUR,
  PROP_CENTROID_COLOUR,
  PROP_FLAG_COLOUR,
  PROP_TEXT_COLOUR,
  PROP_BLACK,
  PROP_WHITE,
  PROP_GAMMA,
};

struct _GstShOverlay {
  GstVideoFilter parent;

  /* under the object lock */
  gchar *results;
  GstShOverlayStyle style;
  GstShOverlayLevels levels;

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

static GType
gst_sh_overlay_parts_get_type (void)
{
  static const GFlagsValue values[] = {
      {GST_SH_OVERLAY_CELLS, "The edges of the cells", "cells"},
      {GST_SH_OVERLAY_REFERENCES, "Rings where spots should be", "references"},
      {GST_SH_OVERLAY_ARROWS, "Slopes, from the reference on", "arrows"},
      {GST_SH_OVERLAY_CENTROIDS, "Crosses where spots are", "centroids"},
      {GST_SH_OVERLAY_FLAGS, "Letters of flags, invalid cells crossed out",
          "flags"},
      {GST_SH_OVERLAY_TEXT, "A line of frame number and counts", "text"},
      {0, NULL, NULL},
  };
  static gsize type;

  if (g_once_init_enter (&type)) {
    GType registered = g_flags_register_static ("GstShOverlayParts", values);

    gst_type_mark_as_plugin_api (registered, 0);
    g_once_init_leave (&type, registered);
  }
  return type;
}

/* --- caps ----------------------------------------------------------------- */

/* The parts of @caps with formats of @from, with those of @to instead. */
static GstCaps *
change_formats (GstCaps *caps, const gchar *from, const gchar *to)
{
  GstCaps *wanted = gst_caps_from_string (from);
  GstCaps *new_formats = gst_caps_from_string (to);
  GstCaps *some =
      gst_caps_intersect_full (caps, wanted, GST_CAPS_INTERSECT_FIRST);
  GstCaps *result;

  some = gst_caps_make_writable (some);
  for (guint i = 0; i < gst_caps_get_size (some); i++)
    gst_structure_remove_fields (gst_caps_get_structure (some, i), "format",
        "colorimetry", "chroma-site", NULL);
  result =
      gst_caps_intersect_full (some, new_formats, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref (some);
  gst_caps_unref (wanted);
  gst_caps_unref (new_formats);
  return result;
}

/* Colour stays as it is; grey becomes colour of either order. */
static GstCaps *
gst_sh_overlay_transform_caps (GstBaseTransform *base,
    GstPadDirection direction, GstCaps *caps, GstCaps *filter)
{
  GstCaps *colour = gst_static_pad_template_get_caps (&src_template);
  GstCaps *result =
      gst_caps_intersect_full (caps, colour, GST_CAPS_INTERSECT_FIRST);

  gst_caps_unref (colour);
  result = gst_caps_merge (
      result, direction == GST_PAD_SINK
                  ? change_formats (caps, GREY_CAPS, COLOUR_CAPS)
                  : change_formats (caps, COLOUR_CAPS, GREY_CAPS));
  if (filter) {
    GstCaps *both =
        gst_caps_intersect_full (filter, result, GST_CAPS_INTERSECT_FIRST);

    gst_caps_unref (result);
    result = both;
  }
  return result;
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

/* The largest picture that cairo takes. */
enum { TILE = 32767 };

/* Draws into the part of @frame that begins at (@x, @y). */
static gboolean
draw_tile (GstVideoFrame *frame, gint x, gint y, const GstStructure *result,
    const GstShOverlayStyle *style)
{
  gint width = GST_VIDEO_FRAME_WIDTH (frame);
  gint height = GST_VIDEO_FRAME_HEIGHT (frame);
  gint stride = GST_VIDEO_FRAME_PLANE_STRIDE (frame, 0);
  guint8 *pixels = GST_VIDEO_FRAME_PLANE_DATA (frame, 0);
  cairo_surface_t *surface = cairo_image_surface_create_for_data (
      pixels + (gsize) y * stride + 4 * (gsize) x, CAIRO_FORMAT_RGB24,
      MIN (width - x, TILE), MIN (height - y, TILE), stride);
  cairo_t *cr = cairo_create (surface);
  gboolean done;

  cairo_translate (cr, -x, -y);
  done = gst_sh_overlay_draw (cr, result, width, height, style);
  cairo_destroy (cr);
  cairo_surface_destroy (surface);
  return done;
}

static GstFlowReturn
gst_sh_overlay_transform_frame (
    GstVideoFilter *filter, GstVideoFrame *in, GstVideoFrame *out)
{
  GstShOverlay *self = GST_SH_OVERLAY (filter);
  const GstStructure *result;
  GstShOverlayLevels levels;
  GstShOverlayStyle style;
  gboolean done = FALSE;
  gchar *results;

  GST_OBJECT_LOCK (self);
  levels = self->levels;
  style = self->style;
  results = g_strdup (self->results);
  GST_OBJECT_UNLOCK (self);
  if (GST_VIDEO_FORMAT_INFO_IS_GRAY (in->info.finfo))
    gst_sh_overlay_paint_grey (in, out, &levels);
  else
    gst_video_frame_copy (out, in);
  style.swapped = GST_VIDEO_FRAME_FORMAT (out) == SWAPPED_FORMAT;
  result = gst_imaging_results_get (in->buffer, results);
  for (gint y = 0; y < GST_VIDEO_FRAME_HEIGHT (out); y += TILE)
    for (gint x = 0; x < GST_VIDEO_FRAME_WIDTH (out); x += TILE)
      done = result && draw_tile (out, x, y, result, &style);
  if (!done)
    warn_once (self, results);
  g_free (results);
  return GST_FLOW_OK;
}

static gboolean
gst_sh_overlay_start (GstBaseTransform *base)
{
  GST_SH_OVERLAY (base)->warned = FALSE;
  return TRUE;
}

/* --- GObject -------------------------------------------------------------- */

static guint32 *
colour_of (GstShOverlay *self, guint id)
{
  switch (id) {
  case PROP_CELL_COLOUR:
    return &self->style.cell_colour;
  case PROP_REFERENCE_COLOUR:
    return &self->style.reference_colour;
  case PROP_ARROW_COLOUR:
    return &self->style.arrow_colour;
  case PROP_CENTROID_COLOUR:
    return &self->style.centroid_colour;
  case PROP_FLAG_COLOUR:
    return &self->style.flag_colour;
  case PROP_TEXT_COLOUR:
    return &self->style.text_colour;
  default:
    return NULL;
  }
}

static void
gst_sh_overlay_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstShOverlay *self = GST_SH_OVERLAY (object);
  const gchar *text;

  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_RESULTS:
    g_free (self->results);
    text = g_value_get_string (value);
    self->results = text && *text ? g_strdup (text) : NULL;
    break;
  case PROP_PARTS:
    self->style.parts = g_value_get_flags (value);
    break;
  case PROP_ARROW_SCALE:
    self->style.arrow_scale = g_value_get_double (value);
    break;
  case PROP_LINE_WIDTH:
    self->style.line_width = g_value_get_double (value);
    break;
  case PROP_BLACK:
    self->levels.black = g_value_get_int (value);
    break;
  case PROP_WHITE:
    self->levels.white = g_value_get_int (value);
    break;
  case PROP_GAMMA:
    self->levels.gamma = g_value_get_double (value);
    break;
  default:
    if (colour_of (self, id))
      *colour_of (self, id) = g_value_get_uint (value);
    else
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_sh_overlay_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstShOverlay *self = GST_SH_OVERLAY (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_RESULTS:
    g_value_set_string (value, self->results);
    break;
  case PROP_PARTS:
    g_value_set_flags (value, self->style.parts);
    break;
  case PROP_ARROW_SCALE:
    g_value_set_double (value, self->style.arrow_scale);
    break;
  case PROP_LINE_WIDTH:
    g_value_set_double (value, self->style.line_width);
    break;
  case PROP_BLACK:
    g_value_set_int (value, self->levels.black);
    break;
  case PROP_WHITE:
    g_value_set_int (value, self->levels.white);
    break;
  case PROP_GAMMA:
    g_value_set_double (value, self->levels.gamma);
    break;
  default:
    if (colour_of (self, id))
      g_value_set_uint (value, *colour_of (self, id));
    else
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_sh_overlay_finalize (GObject *object)
{
  g_free (GST_SH_OVERLAY (object)->results);
  G_OBJECT_CLASS (gst_sh_overlay_parent_class)->finalize (object);
}

static const GParamFlags live = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                                GST_PARAM_CONTROLLABLE |
                                GST_PARAM_MUTABLE_PLAYING;

static void
install_colour (GObjectClass *klass, guint id, const gchar *name,
    const gchar *nick, const gchar *blurb, guint32 value)
{
  g_object_class_install_property (klass, id,
      g_param_spec_uint (name, nick, blurb, 0, G_MAXUINT32, value, live));
}

static void
install_colours (GObjectClass *klass)
{
  install_colour (klass, PROP_CELL_COLOUR, "cell-color", "Colour of cells",
      "Of the edges of cells, as 0xAARRGGBB; AA is the opacity",
      DEFAULT_CELL_COLOUR);
  install_colour (klass, PROP_REFERENCE_COLOUR, "reference-color",
      "Colour of references", "Of the rings, as 0xAARRGGBB",
      DEFAULT_REFERENCE_COLOUR);
  install_colour (klass, PROP_ARROW_COLOUR, "arrow-color", "Colour of arrows",
      "Of the slopes, as 0xAARRGGBB", DEFAULT_ARROW_COLOUR);
  install_colour (klass, PROP_CENTROID_COLOUR, "centroid-color",
      "Colour of centroids", "Of the crosses, as 0xAARRGGBB",
      DEFAULT_CENTROID_COLOUR);
  install_colour (klass, PROP_FLAG_COLOUR, "flag-color", "Colour of flags",
      "Of letters and of what is crossed out, as 0xAARRGGBB",
      DEFAULT_FLAG_COLOUR);
  install_colour (klass, PROP_TEXT_COLOUR, "text-color", "Colour of the text",
      "Of the line below, as 0xAARRGGBB", DEFAULT_TEXT_COLOUR);
}

static void
install_levels (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_BLACK,
      g_param_spec_int ("black", "Black",
          "Counts of a grey frame that become black; -1: what 10 % of each "
          "frame do not reach",
          -1, G_MAXUINT16, DEFAULT_PROP_LEVEL, live));
  g_object_class_install_property (klass, PROP_WHITE,
      g_param_spec_int ("white", "White",
          "Counts of a grey frame that become white; -1: what 99.8 % of each "
          "frame do not exceed",
          -1, G_MAXUINT16, DEFAULT_PROP_LEVEL, live));
  g_object_class_install_property (klass, PROP_GAMMA,
      g_param_spec_double ("gamma", "Gamma",
          "Of grey frames: above 1 shows faint light beside bright spots, 1 is "
          "linear",
          0.1, 10, DEFAULT_PROP_GAMMA, live));
}

static void
install_drawing (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_RESULTS,
      g_param_spec_string ("results", "Results",
          "Name of the element whose centroids are drawn; none for those that "
          "come first",
          NULL, live & ~GST_PARAM_CONTROLLABLE));
  g_object_class_install_property (klass, PROP_PARTS,
      g_param_spec_flags ("draw", "What to draw",
          "Parts of the drawing, as cells+arrows+text",
          gst_sh_overlay_parts_get_type (), DEFAULT_PROP_PARTS, live));
  g_object_class_install_property (klass, PROP_ARROW_SCALE,
      g_param_spec_double ("arrow-scale", "Arrow scale",
          "How many times as long as the slope in pixels an arrow is", 0, 1e6,
          DEFAULT_PROP_ARROW_SCALE, live));
  g_object_class_install_property (klass, PROP_LINE_WIDTH,
      g_param_spec_double ("line-width", "Line width",
          "Of all lines, in pixels of the picture", 0.1, 100,
          DEFAULT_PROP_LINE_WIDTH, live));
}

static void
gst_sh_overlay_class_init (GstShOverlayClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *base_class = GST_BASE_TRANSFORM_CLASS (klass);

  object_class->set_property = gst_sh_overlay_set_property;
  object_class->get_property = gst_sh_overlay_get_property;
  object_class->finalize = gst_sh_overlay_finalize;
  install_drawing (object_class);
  install_colours (object_class);
  install_levels (object_class);

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
  self->levels = (GstShOverlayLevels){
      DEFAULT_PROP_LEVEL, DEFAULT_PROP_LEVEL, DEFAULT_PROP_GAMMA};
  self->style = (GstShOverlayStyle){
      .parts = DEFAULT_PROP_PARTS,
      .arrow_scale = DEFAULT_PROP_ARROW_SCALE,
      .line_width = DEFAULT_PROP_LINE_WIDTH,
      .cell_colour = DEFAULT_CELL_COLOUR,
      .reference_colour = DEFAULT_REFERENCE_COLOUR,
      .arrow_colour = DEFAULT_ARROW_COLOUR,
      .centroid_colour = DEFAULT_CENTROID_COLOUR,
      .flag_colour = DEFAULT_FLAG_COLOUR,
      .text_colour = DEFAULT_TEXT_COLOUR,
  };
}
