/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-photostereo
 * @title: photostereo
 * @short_description: photometric stereo
 *
 * Takes pictures of one view under one known light each, and makes the normal
 * of every pixel, the albedo, and an ambient picture of them, after Pevar et
 * al., "Real-time Photometric Stereo". A set of pictures ends after set-size of
 * them, with the action signal finish-set, with EOS, and when the caps change;
 * what there is then is solved, and the next picture begins a new set.
 *
 * The request pads `normal`, `albedo`, `ambient` and `quality` have the result;
 * with update-interval also on the way. With more than one of them linked, each
 * needs a queue.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 multifilesrc location=%03d.png ! pngdec ! photostereo
 * lights-location=lights.lp ! pngenc ! filesink location=normals.png
 * ]|
 *
 * Since: 0.1
 */
#include "gstphotostereo.h"

#include <gst/base/gstflowcombiner.h>
#include <math.h>

#include "gstimagingallocation.h"
#include "gstimagingenum.h"
#include "gstphotostereofiles.h"
#include "gstphotostereopad.h"

GST_DEBUG_CATEGORY_STATIC (photostereo_debug);
#define GST_CAT_DEFAULT photostereo_debug

#define DEFAULT_PROP_INDEX_SOURCE INDEX_SOURCE_ORDER
#define DEFAULT_PROP_LIGHT_UNITS LIGHT_UNITS_AUTO
#define DEFAULT_PROP_BIT_DEPTH 0
#define DEFAULT_PROP_SET_SIZE 0
#define DEFAULT_PROP_UPDATE_INTERVAL 0
#define DEFAULT_PROP_STOP_BELOW 0.0
#define DEFAULT_PROP_NEXT_LIGHT FALSE
#define DEFAULT_PROP_NORMAL_ENCODING GST_PHOTO_STEREO_ENCODING_AUTO
#define DEFAULT_PROP_MEMORY_LIMIT 0
#define DEFAULT_PROP_THRESHOLD -1.0
#define DEFAULT_PROP_CENTRE -1.0

/* The meta that says which light a picture was taken under. */
#define LIGHT_META "GstImagingLight"

enum {
  PROP_0,
  /* those of the engine come first */
  PROP_LIGHTS_LOCATION = GST_IMAGING_ENGINE_N_PROPERTIES + 1,
  PROP_INTENSITIES_LOCATION,
  PROP_LIGHT_UNITS,
  PROP_LIGHT_MODEL,
  PROP_LED_LOBE,
  PROP_MM_PER_PIXEL,
  PROP_CENTRE_X,
  PROP_CENTRE_Y,
  PROP_PLANE_Z,
  PROP_DARK_LOCATION,
  PROP_WHITE_LOCATION,
  PROP_MASK_LOCATION,
  PROP_GAMMA,
  PROP_BIT_DEPTH,
  PROP_BAYER_PATTERN,
  PROP_GREY_SOURCE,
  PROP_INDEX_SOURCE,
  PROP_SET_SIZE,
  PROP_MEMORY_LIMIT,
  PROP_UPDATE_INTERVAL,
  PROP_NEXT_LIGHT,
  PROP_FIRST_OF_SOLVER, /* those above need a new kernel */
  PROP_ROBUST = PROP_FIRST_OF_SOLVER,
  PROP_THRESHOLD_MODE,
  PROP_T_MIN,
  PROP_T_MAX,
  PROP_T_RES,
  PROP_READMIT,
  PROP_MAX_ITERATIONS,
  PROP_MIN_LIGHTS,
  PROP_MIN_CONDITION,
  PROP_Y_AXIS,
  PROP_STOP_BELOW,
  PROP_NORMAL_ENCODING,
};

enum { SIGNAL_FINISH_SET, N_SIGNALS };

static guint signals[N_SIGNALS];

typedef enum {
  INDEX_SOURCE_ORDER,
  INDEX_SOURCE_META,
  INDEX_SOURCE_OFFSET,
} IndexSource;

typedef enum {
  LIGHT_UNITS_AUTO,
  LIGHT_UNITS_DIRECTIONS,
  LIGHT_UNITS_POSITIONS,
} LightUnits;

/* The properties as they were at one moment. */
typedef struct {
  ImkPhotostereoConfig config; /* without frame and lights */
  gchar *lights_location, *intensities_location;
  gchar *dark_location, *white_location, *mask_location;
  LightUnits light_units;
  guint bit_depth;
  IndexSource index_source;
  guint set_size, update_interval;
  gdouble stop_below;
  gboolean next_light;
  GstPhotoStereoEncoding normal_encoding;
  guint geometry; /* counts changes of what needs a new kernel */
} Settings;

/* In the order of the pads. */
enum { NORMAL, ALBEDO, AMBIENT, QUALITY, N_OUTPUTS };

static const gchar *const output_names[N_OUTPUTS] = {
    "normal", "albedo", "ambient", "quality"};

struct _GstPhotoStereo {
  GstElement parent;

  GstPad *sink;
  GstImagingEngine *engine;
  Settings settings;                  /* under the object lock */
  GstPhotoStereoPad *pads[N_OUTPUTS]; /* likewise */

  /* under the stream lock of the sink pad */
  GstCaps *caps;
  ImkPhotostereoPattern caps_pattern; /* of video/x-bayer */
  GstFlowCombiner *combiner;
  ImkPhotostereo *kernel;
  guint open_geometry, n_lights, n_colours;
  guint set_size;
  guint n_skip; /* pictures left of a set that ended early */
  GstClockTime first_pts, last_pts;
};

#define RGB_FORMATS \
  "RGB, BGR, RGBx, BGRx, xRGB, xBGR, RGBA, BGRA, ARGB, ABGR, RGBA64_LE, " \
  "ARGB64_LE"

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
        "{ GRAY8, GRAY16_LE, " RGB_FORMATS
        " }") ";"
              "video/x-bayer, format = (string) { bggr, rggb, gbrg, grbg }, "
              "width = " GST_VIDEO_SIZE_RANGE ", height = " GST_VIDEO_SIZE_RANGE
              ", framerate = " GST_VIDEO_FPS_RANGE));

#define TENSOR_CAPS \
  "other/tensors, format = (string) static, num_tensors = (int) 1, " \
  "types = (string) float32"

static GstStaticPadTemplate src_templates[N_OUTPUTS] = {
    GST_STATIC_PAD_TEMPLATE ("normal", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (
            GST_VIDEO_CAPS_MAKE ("{ RGB, RGBA64_LE }") ";" TENSOR_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("albedo", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
            "{ GRAY8, RGB, GRAY16_LE, RGBA64_LE }") ";" TENSOR_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("ambient", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
            "{ GRAY8, RGB, GRAY16_LE, RGBA64_LE }") ";" TENSOR_CAPS)),
    GST_STATIC_PAD_TEMPLATE ("quality", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("RGBA64_LE") ";" TENSOR_CAPS)),
};

G_DEFINE_FINAL_TYPE_WITH_CODE (GstPhotoStereo, gst_photo_stereo,
    GST_TYPE_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        photostereo_debug, "photostereo", 0, "Photometric stereo"))
GST_ELEMENT_REGISTER_DEFINE (
    photostereo, "photostereo", GST_RANK_NONE, GST_TYPE_PHOTO_STEREO)

/* --- enumerations -------------------------------------------------------- */

static const GEnumValue light_units_values[] = {
    {LIGHT_UNITS_AUTO,
        "As a .dome file says; of text, unit vectors are directions, and when "
        "none is one, positions",
        "auto"},
    {LIGHT_UNITS_DIRECTIONS, "Directions of any length", "directions"},
    {LIGHT_UNITS_POSITIONS, "Positions in mm", "positions"},
    {0, NULL, NULL},
};

static const GEnumValue light_model_values[] = {
    {IMK_PHOTOSTEREO_MODEL_AUTO,
        "directional for directions, inverse-square for positions", "auto"},
    {IMK_PHOTOSTEREO_MODEL_DIRECTIONAL, "Parallel light of equal strength",
        "directional"},
    {IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE,
        "From the position to each pixel, falling off with the distance: R^2 v "
        "/ |v|^3",
        "inverse-square"},
    {IMK_PHOTOSTEREO_MODEL_UNIT, "From the position to each pixel: v / |v|",
        "unit"},
    {IMK_PHOTOSTEREO_MODEL_RAW,
        "The paper's, brighter when farther: v / R; a direction as it is",
        "raw"},
    {0, NULL, NULL},
};

static const GEnumValue pattern_values[] = {
    {IMK_PHOTOSTEREO_PATTERN_NONE, "No colour filter", "none"},
    {IMK_PHOTOSTEREO_PATTERN_BGGR, "Blue, green; green, red", "bggr"},
    {IMK_PHOTOSTEREO_PATTERN_RGGB, "Red, green; green, blue", "rggb"},
    {IMK_PHOTOSTEREO_PATTERN_GBRG, "Green, blue; red, green", "gbrg"},
    {IMK_PHOTOSTEREO_PATTERN_GRBG, "Green, red; blue, green", "grbg"},
    {0, NULL, NULL},
};

static const GEnumValue grey_source_values[] = {
    {IMK_PHOTOSTEREO_GREY_MOSAIC, "The sample of each site", "mosaic"},
    {IMK_PHOTOSTEREO_GREY_LUMA, "Luma of interpolated colours, as the paper",
        "luma"},
    {0, NULL, NULL},
};

static const GEnumValue index_source_values[] = {
    {INDEX_SOURCE_ORDER, "Pictures come in the order of the light file",
        "order"},
    {INDEX_SOURCE_META,
        "A custom meta " LIGHT_META " with an unsigned integer \"index\"",
        "meta"},
    {INDEX_SOURCE_OFFSET, "The offset of the buffer", "offset"},
    {0, NULL, NULL},
};

static const GEnumValue robust_values[] = {
    {IMK_PHOTOSTEREO_ROBUST_NONE, "Least squares of all lights", "none"},
    {IMK_PHOTOSTEREO_ROBUST_THRESHOLDS,
        "Lights that do not fit are left out, and it is solved again",
        "thresholds"},
    {IMK_PHOTOSTEREO_ROBUST_HUBER, "They weigh t-res / residual", "huber"},
    {0, NULL, NULL},
};

static const GEnumValue threshold_mode_values[] = {
    {IMK_PHOTOSTEREO_THRESHOLDS_AUTO,
        "absolute below 20 lights, relative from 20 on", "auto"},
    {IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE, "Fractions of the full scale",
        "absolute"},
    {IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE, "Fractions of the pixel's own albedo",
        "relative"},
    {0, NULL, NULL},
};

static const GEnumValue y_axis_values[] = {
    {FALSE, "Up, as OpenGL has it", "up"},
    {TRUE, "Down, as DirectX has it", "down"},
    {0, NULL, NULL},
};

static const GEnumValue encoding_values[] = {
    {GST_PHOTO_STEREO_ENCODING_AUTO,
        "The first of the others that downstream takes", "auto"},
    {GST_PHOTO_STEREO_ENCODING_8, "RGB: 128 + 127 n", "rgb8"},
    {GST_PHOTO_STEREO_ENCODING_16, "RGBA64_LE: 32768 + 32767 n", "rgba64"},
    {GST_PHOTO_STEREO_ENCODING_TENSOR, "float32 tensor", "tensor"},
    {0, NULL, NULL},
};

/* --- the kernel ---------------------------------------------------------- */

static Settings
get_settings (GstPhotoStereo *self)
{
  Settings s;

  GST_OBJECT_LOCK (self);
  s = self->settings;
  s.lights_location = g_strdup (s.lights_location);
  s.intensities_location = g_strdup (s.intensities_location);
  s.dark_location = g_strdup (s.dark_location);
  s.white_location = g_strdup (s.white_location);
  s.mask_location = g_strdup (s.mask_location);
  GST_OBJECT_UNLOCK (self);
  return s;
}

static void
settings_clear (Settings *s)
{
  g_clear_pointer (&s->lights_location, g_free);
  g_clear_pointer (&s->intensities_location, g_free);
  g_clear_pointer (&s->dark_location, g_free);
  g_clear_pointer (&s->white_location, g_free);
  g_clear_pointer (&s->mask_location, g_free);
}

static void
gst_photo_stereo_close (GstElement *element)
{
  g_clear_pointer (&GST_PHOTO_STEREO (element)->kernel, imk_photostereo_free);
}

static void
describe_frame (GstPhotoStereo *self, const GstVideoInfo *info, Settings *s)
{
  const GstVideoFormatInfo *finfo = info->finfo;
  guint bits = GST_VIDEO_FORMAT_INFO_DEPTH (finfo, 0);
  guint size = bits > 8 ? 2 : 1;
  ImkPhotostereoConfig *c = &s->config;

  c->width = info->width;
  c->height = info->height;
  c->type = size == 2 ? IMK_TYPE_U16 : IMK_TYPE_U8;
  c->channels = GST_VIDEO_FORMAT_INFO_PSTRIDE (finfo, 0) / size;
  for (guint i = 0; i < 3 && GST_VIDEO_FORMAT_INFO_IS_RGB (finfo); i++)
    c->colours[i] = GST_VIDEO_FORMAT_INFO_POFFSET (finfo, i) / size;
  if (self->caps_pattern != IMK_PHOTOSTEREO_PATTERN_NONE)
    c->pattern = self->caps_pattern;
  if (c->centre_x == DEFAULT_PROP_CENTRE)
    c->centre_x = NAN;
  if (c->centre_y == DEFAULT_PROP_CENTRE)
    c->centre_y = NAN;
  c->full_scale = s->bit_depth ? (1u << s->bit_depth) - 1 : 0;
  c->n_threads = gst_imaging_engine_n_threads (self->engine);
  c->track_change = s->update_interval > 0 || s->next_light;
}

static ImkStatus
take_lights (const Settings *s, const ImkPhotostereoLights *lights,
    ImkPhotostereoConfig *config, ImkError *error)
{
  config->n_lights = lights->n;
  config->lights = lights->lights;
  config->positions = s->light_units == LIGHT_UNITS_POSITIONS ||
                      lights->kind == IMK_PHOTOSTEREO_KIND_POSITIONS;
  if (s->light_units == LIGHT_UNITS_DIRECTIONS)
    config->positions = FALSE;
  if (s->light_units == LIGHT_UNITS_AUTO &&
      lights->kind == IMK_PHOTOSTEREO_KIND_UNKNOWN)
    return imk_error_set (error, IMK_ERROR_FILE,
        "lights-location \"%s\" has unit vectors and others: say by "
        "light-units whether they are directions or positions.",
        s->lights_location);
  if (s->set_size > lights->n)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "set-size is %u, but lights-location \"%s\" has %u lights.",
        s->set_size, s->lights_location, lights->n);
  return IMK_OK;
}

/* What nobody can solve is said before the recording starts. */
static void
warn_of_lights (GstPhotoStereo *self, const ImkPhotostereoConfig *c)
{
  gdouble condition = imk_photostereo_lights_condition (c);

  if (c->n_lights < 3)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("There are %u lights; normals need 3. There will be an ambient "
         "picture only.",
            c->n_lights),
        (NULL));
  else if (condition < c->min_condition)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("All %u lights are nearly in one plane with the object (condition "
         "%.2g, min-condition %.2g): nothing can be solved.",
            c->n_lights, condition, c->min_condition),
        (NULL));
}

static ImkStatus
open_with (
    GstPhotoStereo *self, ImkBackend backend, Settings *s, ImkError *error)
{
  const gchar *const properties[] = {
      "dark-location", "white-location", "mask-location"};
  const gchar *const locations[] = {
      s->dark_location, s->white_location, s->mask_location};
  const ImkImage **slots[] = {
      &s->config.dark, &s->config.white, &s->config.mask};
  GstImagingNpy *npy[3] = {NULL};
  ImkImage images[3];
  ImkStatus status = IMK_OK;

  for (guint i = 0; i < 3 && status == IMK_OK; i++)
    if (locations[i]) {
      status = gst_photo_stereo_load_image (
          properties[i], locations[i], &npy[i], &images[i], error);
      *slots[i] = &images[i];
    }
  if (status == IMK_OK)
    status = imk_photostereo_new (backend, &s->config, &self->kernel, error);
  for (guint i = 0; i < 3; i++)
    g_clear_pointer (&npy[i], gst_imaging_npy_free);
  return status;
}

static ImkStatus
gst_photo_stereo_open (GstElement *element, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);
  Settings s = get_settings (self);
  ImkPhotostereoLights lights = {0};
  ImkStatus status;

  if (s.lights_location)
    status = gst_photo_stereo_load_lights (
        s.lights_location, s.intensities_location, &lights, error);
  else
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "lights-location is not set; it names the file with the lights.");
  if (status == IMK_OK)
    status = take_lights (&s, &lights, &s.config, error);
  if (status == IMK_OK) {
    describe_frame (self, info, &s);
    status = open_with (self, backend, &s, error);
  }
  if (status == IMK_OK) {
    self->open_geometry = s.geometry;
    self->n_lights = lights.n;
    self->n_colours = imk_photostereo_n_colours (&s.config);
    self->set_size = s.set_size ? s.set_size : lights.n;
    warn_of_lights (self, &s.config);
  }
  imk_photostereo_lights_clear (&lights);
  settings_clear (&s);
  return status;
}

/* From a quarter of a megapixel on: 2 s of the CPU are 30 ms of an H200 at 3
 * megapixels and 260 lights, see docs/benchmarks.md; small sets take the CPU no
 * longer than the copies. */
static gboolean
gst_photo_stereo_prefers_cuda (GstElement *element, const GstVideoInfo *info)
{
  return (gsize) info->width * info->height >= 1 << 18;
}

/* Changes of the solver at once, all others with a new set. */
static ImkStatus
follow_settings (GstPhotoStereo *self, ImkError *error)
{
  ImkPhotostereoConfig config;
  gboolean same;

  GST_OBJECT_LOCK (self);
  config = self->settings.config;
  same = self->open_geometry == self->settings.geometry;
  GST_OBJECT_UNLOCK (self);
  if (!same && imk_photostereo_n_added (self->kernel) == 0)
    return gst_imaging_engine_reopen (self->engine, error);
  return imk_photostereo_update (self->kernel, &config, error);
}

/* Around all work on a kernel and its frames. */
static ImkStatus
enter_device (GstPhotoStereo *self, ImkError *error)
{
  return gst_imaging_engine_is_on_cuda (self->engine)
             ? gst_imaging_context_push (
                   gst_imaging_engine_context (self->engine), error)
             : IMK_OK;
}

static void
leave_device (GstPhotoStereo *self, gboolean on_cuda)
{
  if (on_cuda)
    gst_imaging_context_pop (gst_imaging_engine_context (self->engine));
}

/* --- results ------------------------------------------------------------- */

static void
ref_pads (GstPhotoStereo *self, GstPhotoStereoPad *pads[N_OUTPUTS])
{
  GST_OBJECT_LOCK (self);
  for (guint i = 0; i < N_OUTPUTS; i++)
    pads[i] = self->pads[i] ? gst_photo_stereo_pad_ref (self->pads[i]) : NULL;
  GST_OBJECT_UNLOCK (self);
}

static void
unref_pads (GstPhotoStereoPad *pads[N_OUTPUTS])
{
  for (guint i = 0; i < N_OUTPUTS; i++)
    g_clear_pointer (&pads[i], gst_photo_stereo_pad_unref);
}

static void
post_progress (
    GstPhotoStereo *self, const ImkPhotostereoSummary *s, gboolean final)
{
  gdouble share =
      s->n_pixels ? (gdouble) s->n_invalid / (gdouble) s->n_pixels : 0;

  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("photostereo-progress", "lights", G_TYPE_UINT,
              s->n_lights, "set-size", G_TYPE_UINT, self->set_size, "pixels",
              G_TYPE_UINT64, s->n_pixels, "invalid", G_TYPE_UINT64,
              s->n_invalid, "invalid-share", G_TYPE_DOUBLE, share, "change",
              G_TYPE_DOUBLE, isnan (s->change_deg) ? -1.0 : s->change_deg,
              "mean-lights", G_TYPE_DOUBLE, s->mean_lights, "mean-rounds",
              G_TYPE_DOUBLE, s->mean_rounds, "final", G_TYPE_BOOLEAN, final,
              NULL)));
}

static void
post_next_light (GstPhotoStereo *self, guint light)
{
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("photostereo-next-light", "index", G_TYPE_UINT,
              light, "lights", G_TYPE_UINT,
              imk_photostereo_n_added (self->kernel), NULL)));
}

/* Solves into the buffers of the linked pads; flows[i] tells which of them
 * are to be pushed. */
static ImkStatus
solve (GstPhotoStereo *self, GstPhotoStereoPad *pads[N_OUTPUTS],
    GstFlowReturn flows[N_OUTPUTS], ImkPhotostereoSummary *summary,
    ImkError *error)
{
  const GstVideoInfo *info = gst_imaging_engine_info (self->engine);
  const guint channels[] = {3, self->n_colours, self->n_colours, 4};
  ImkPhotostereoOutputs out = {0};
  ImkImage *images[] = {&out.normal, &out.albedo, &out.ambient, &out.quality};
  GstPhotoStereoEncoding normal_encoding;
  ImkStatus status = IMK_OK;

  GST_OBJECT_LOCK (self);
  normal_encoding = self->settings.normal_encoding;
  GST_OBJECT_UNLOCK (self);
  for (guint i = 0; i < N_OUTPUTS; i++) {
    flows[i] = GST_FLOW_NOT_LINKED;
    if (pads[i] && status == IMK_OK)
      flows[i] = gst_photo_stereo_pad_begin (pads[i], self->engine, info->width,
          info->height, channels[i],
          i == NORMAL ? normal_encoding : GST_PHOTO_STEREO_ENCODING_AUTO,
          images[i], error);
    if (flows[i] == GST_FLOW_ERROR)
      status = IMK_ERROR_MEMORY;
  }
  if (status == IMK_OK)
    status = imk_photostereo_solve (self->kernel, &out, summary,
        gst_imaging_engine_stream (self->engine), error);
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (flows[i] == GST_FLOW_OK) {
      ImkStatus end = gst_photo_stereo_pad_end (
          pads[i], status == IMK_OK, status == IMK_OK ? error : NULL);

      status = status == IMK_OK ? end : status;
    }
  return status;
}

static GstFlowReturn
push_results (GstPhotoStereo *self, GstPhotoStereoPad *pads[N_OUTPUTS],
    GstFlowReturn flows[N_OUTPUTS], gboolean ok)
{
  GstFlowReturn flow = GST_FLOW_OK;
  GstBuffer *like = gst_buffer_new ();

  GST_BUFFER_PTS (like) = self->last_pts;
  if (GST_CLOCK_TIME_IS_VALID (self->first_pts) &&
      GST_CLOCK_TIME_IS_VALID (self->last_pts) &&
      self->last_pts >= self->first_pts)
    GST_BUFFER_DURATION (like) = self->last_pts - self->first_pts;
  for (guint i = 0; i < N_OUTPUTS; i++) {
    if (flows[i] == GST_FLOW_OK)
      flows[i] = gst_photo_stereo_pad_push (pads[i], ok ? like : NULL);
    if (pads[i] && ok)
      flow = gst_flow_combiner_update_pad_flow (
          self->combiner, gst_photo_stereo_pad_get (pads[i]), flows[i]);
  }
  gst_buffer_unref (like);
  return flow;
}

/* What is there so far, to all pads and the bus.
 * @change: (out): of the normals in degrees, NaN when not known */
static GstFlowReturn
publish (GstPhotoStereo *self, gboolean final, gdouble *change)
{
  gboolean on_cuda = gst_imaging_engine_is_on_cuda (self->engine);
  GstPhotoStereoPad *pads[N_OUTPUTS];
  GstFlowReturn flows[N_OUTPUTS], flow;
  ImkPhotostereoSummary summary = {.change_deg = NAN};
  ImkError error;
  ImkStatus status = enter_device (self, &error);

  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->engine, status, &error);
    return GST_FLOW_ERROR;
  }
  ref_pads (self, pads);
  status = solve (self, pads, flows, &summary, &error);
  leave_device (self, on_cuda);
  if (status == IMK_OK)
    post_progress (self, &summary, final);
  flow = push_results (self, pads, flows, status == IMK_OK);
  unref_pads (pads);
  *change = summary.change_deg;
  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->engine, status, &error);
    return GST_FLOW_ERROR;
  }
  if (final && summary.n_lights < 3)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("The set ended with %u of %u pictures; normals need 3.",
            summary.n_lights, self->set_size),
        (NULL));
  else if (final && summary.n_pixels && summary.n_invalid == summary.n_pixels)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("No pixel could be solved from %u pictures: they are black or "
         "saturated, the thresholds leave out all lights, or these are in one "
         "plane.",
            summary.n_lights),
        (NULL));
  return flow;
}

static void
forget_set (GstPhotoStereo *self)
{
  if (self->kernel)
    imk_photostereo_reset (self->kernel);
  self->first_pts = self->last_pts = GST_CLOCK_TIME_NONE;
}

static GstFlowReturn
finish_set (GstPhotoStereo *self)
{
  GstFlowReturn flow = GST_FLOW_OK;
  gdouble change;

  if (self->kernel && imk_photostereo_n_added (self->kernel) > 0)
    flow = publish (self, TRUE, &change);
  forget_set (self);
  return flow;
}

static void
say_next_light (GstPhotoStereo *self)
{
  gboolean on_cuda = gst_imaging_engine_is_on_cuda (self->engine);
  guint32 light = 0;

  if (imk_photostereo_n_added (self->kernel) == self->n_lights ||
      enter_device (self, NULL) != IMK_OK)
    return;
  if (imk_photostereo_next_light (self->kernel, &light,
          gst_imaging_engine_stream (self->engine), NULL) == IMK_OK)
    post_next_light (self, light);
  leave_device (self, on_cuda);
}

/* After a picture: the set is complete, or it is time for a look. */
static GstFlowReturn
look_at_set (GstPhotoStereo *self)
{
  guint n = imk_photostereo_n_added (self->kernel), interval;
  gboolean next_light, by_order;
  gdouble stop_below, change;
  GstFlowReturn flow;

  GST_OBJECT_LOCK (self);
  interval = self->settings.update_interval;
  stop_below = self->settings.stop_below;
  next_light = self->settings.next_light;
  by_order = self->settings.index_source == INDEX_SOURCE_ORDER;
  GST_OBJECT_UNLOCK (self);
  if (n >= self->set_size)
    return finish_set (self);
  if (!interval || n % interval != 0)
    return GST_FLOW_OK;
  flow = publish (self, FALSE, &change);
  if (flow != GST_FLOW_OK)
    return flow;
  if (change < stop_below) { /* not with NaN */
    self->n_skip = by_order ? self->set_size - n : 0;
    return finish_set (self);
  }
  if (next_light)
    say_next_light (self);
  return GST_FLOW_OK;
}

/* --- pictures ------------------------------------------------------------ */

static ImkStatus
get_index (
    GstPhotoStereo *self, GstBuffer *buffer, guint32 *index, ImkError *error)
{
  GstCustomMeta *meta;
  IndexSource source;

  GST_OBJECT_LOCK (self);
  source = self->settings.index_source;
  GST_OBJECT_UNLOCK (self);
  switch (source) {
  case INDEX_SOURCE_META:
    meta = gst_buffer_get_custom_meta (buffer, LIGHT_META);
    if (!meta || !gst_structure_get_uint (
                     gst_custom_meta_get_structure (meta), "index", index))
      return imk_error_set (error, IMK_ERROR_IMAGE,
          "A picture has no " LIGHT_META " meta with an unsigned integer "
          "\"index\", which index-source=meta needs.");
    break;
  case INDEX_SOURCE_OFFSET:
    if (!GST_BUFFER_OFFSET_IS_VALID (buffer))
      return imk_error_set (error, IMK_ERROR_IMAGE,
          "A picture has no offset, which index-source=offset needs.");
    *index = (guint32) MIN (GST_BUFFER_OFFSET (buffer), G_MAXUINT32);
    break;
  default:
    *index = imk_photostereo_n_added (self->kernel);
  }
  return IMK_OK;
}

static ImkStatus
add_mapped (GstPhotoStereo *self, GstBuffer *buffer, guint32 index,
    GstImagingReach reach, ImkError *error)
{
  GstImagingFrame frame;
  ImkError late;
  ImkStatus end;
  ImkStatus status = gst_imaging_engine_map (self->engine, buffer,
      gst_imaging_engine_info (self->engine), GST_MAP_READ, reach, &frame,
      error);

  if (status != IMK_OK)
    return status;
  gst_imaging_engine_note_memory (self->engine, frame.memory_name);
  status = imk_photostereo_add (
      self->kernel, &frame.planes[0], index, frame.stream, error);
  end = gst_imaging_frame_unmap (&frame, FALSE, &late);
  if (status == IMK_OK && end != IMK_OK)
    status = imk_error_set (error, end, "%s", late.message);
  return status;
}

static ImkStatus
add_picture (GstPhotoStereo *self, GstBuffer *buffer, ImkError *error)
{
  gboolean on_cuda = gst_imaging_engine_is_on_cuda (self->engine);
  GstImagingReach reach =
      on_cuda ? GST_IMAGING_REACH_DEVICE_OR_MAPPED : GST_IMAGING_REACH_HOST;
  GstBuffer *input;
  guint32 index = 0;
  ImkStatus status = get_index (self, buffer, &index, error);

  if (status == IMK_OK)
    status = enter_device (self, error);
  if (status != IMK_OK)
    return status;
  input = gst_imaging_engine_reachable (self->engine, buffer, reach, error);
  if (input)
    status = add_mapped (self, input, index, reach, error);
  else
    status = error->code;
  if (input && input != buffer)
    gst_buffer_unref (input);
  leave_device (self, on_cuda);
  return status;
}

static void
note_time (GstPhotoStereo *self, GstBuffer *buffer)
{
  if (imk_photostereo_n_added (self->kernel) == 1)
    self->first_pts = GST_BUFFER_PTS (buffer);
  self->last_pts = GST_BUFFER_PTS (buffer);
}

/* Before a picture: a kernel that follows the properties. */
static ImkStatus
prepare (GstPhotoStereo *self, ImkError *error)
{
  ImkStatus status = gst_imaging_engine_ensure_open (self->engine, error);
  gboolean on_cuda = gst_imaging_engine_is_on_cuda (self->engine);

  if (status == IMK_OK)
    status = enter_device (self, error);
  if (status != IMK_OK)
    return status;
  status = follow_settings (self, error);
  leave_device (self, on_cuda);
  return status;
}

static GstFlowReturn
gst_photo_stereo_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (parent);
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_OK;
  ImkStatus status = IMK_OK;
  ImkError error;

  if (!self->caps) {
    gst_buffer_unref (buffer);
    return GST_FLOW_NOT_NEGOTIATED;
  }
  if (self->n_skip > 0) {
    self->n_skip--;
    gst_buffer_unref (buffer);
    return GST_FLOW_OK;
  }
  /* the backend follows the data from the first picture of a set on */
  if ((!self->kernel || imk_photostereo_n_added (self->kernel) == 0) &&
      !gst_imaging_engine_follow (self->engine, buffer)) {
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  status = prepare (self, &error);
  if (status == IMK_OK)
    status = add_picture (self, buffer, &error);
  if (status == IMK_OK) {
    note_time (self, buffer);
    flow = look_at_set (self);
    gst_imaging_engine_count_frame (self->engine, entered);
  } else {
    gst_imaging_engine_post_error (self->engine, status, &error);
    flow = GST_FLOW_ERROR;
  }
  gst_buffer_unref (buffer);
  return flow;
}

/* --- events and queries -------------------------------------------------- */

/* A mosaic travels through memory as grey frames do. */
static GstCaps *
grey_caps (GstPhotoStereo *self, GstCaps *caps)
{
  GstStructure *s = gst_caps_get_structure (caps, 0);
  const gchar *format = gst_structure_get_string (s, "format");
  GstCaps *grey;

  self->caps_pattern = IMK_PHOTOSTEREO_PATTERN_NONE;
  if (!gst_structure_has_name (s, "video/x-bayer"))
    return gst_caps_ref (caps);
  for (const GEnumValue *v = pattern_values; v->value_nick; v++)
    if (g_strcmp0 (v->value_nick, format) == 0)
      self->caps_pattern = v->value;
  grey = gst_caps_copy (caps);
  s = gst_caps_get_structure (grey, 0);
  gst_structure_set_name (s, "video/x-raw");
  gst_structure_set (s, "format", G_TYPE_STRING, "GRAY8", NULL);
  return grey;
}

static gboolean
set_caps (GstPhotoStereo *self, GstCaps *caps)
{
  GstCaps *grey;
  gboolean ok;

  if (self->caps && gst_caps_is_equal (self->caps, caps))
    return TRUE;
  finish_set (self);
  self->n_skip = 0;
  gst_caps_replace (&self->caps, caps);
  grey = grey_caps (self, caps);
  ok = gst_imaging_engine_set_caps (self->engine, grey, NULL);
  gst_caps_unref (grey);
  return ok;
}

static void
send_to_pads (GstPhotoStereo *self, GstEvent *event)
{
  GstPhotoStereoPad *pads[N_OUTPUTS];

  ref_pads (self, pads);
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (pads[i])
      gst_photo_stereo_pad_event (pads[i], event);
  unref_pads (pads);
}

static gboolean
gst_photo_stereo_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (parent);
  gboolean ok = TRUE;
  GstCaps *caps;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    ok = set_caps (self, caps);
    break;
  case GST_EVENT_EOS:
    finish_set (self);
    self->n_skip = 0;
    send_to_pads (self, event);
    break;
  case GST_EVENT_FLUSH_STOP:
    forget_set (self);
    self->n_skip = 0;
    gst_flow_combiner_reset (self->combiner);
    send_to_pads (self, event);
    break;
  default:
    send_to_pads (self, event);
  }
  gst_event_unref (event);
  return ok;
}

static gboolean
gst_photo_stereo_sink_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (parent);

  if (gst_imaging_engine_query (self->engine, query))
    return TRUE;
  if (GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION) {
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
    gst_imaging_allocation_propose (self->engine, query);
    return TRUE;
  }
  return gst_pad_query_default (pad, parent, query);
}

/* --- pads ---------------------------------------------------------------- */

static GstPad *
gst_photo_stereo_request_new_pad (GstElement *element, GstPadTemplate *template,
    const gchar *name, const GstCaps *caps)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);
  GstPhotoStereoPad *pad;
  gboolean taken;
  guint i = 0;

  while (g_strcmp0 (template->name_template, output_names[i]) != 0)
    if (++i == N_OUTPUTS)
      return NULL;
  GST_OBJECT_LOCK (self);
  taken = self->pads[i] != NULL;
  GST_OBJECT_UNLOCK (self);
  if (taken)
    return NULL;
  pad = gst_photo_stereo_pad_new (element, template, output_names[i]);
  GST_OBJECT_LOCK (self);
  self->pads[i] = pad;
  GST_OBJECT_UNLOCK (self);
  GST_PAD_STREAM_LOCK (self->sink);
  gst_flow_combiner_add_pad (self->combiner, gst_photo_stereo_pad_get (pad));
  GST_PAD_STREAM_UNLOCK (self->sink);
  return gst_photo_stereo_pad_get (pad);
}

static void
gst_photo_stereo_release_pad (GstElement *element, GstPad *pad)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);
  GstPhotoStereoPad *found = NULL;

  GST_OBJECT_LOCK (self);
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (self->pads[i] && gst_photo_stereo_pad_get (self->pads[i]) == pad)
      found = g_steal_pointer (&self->pads[i]);
  GST_OBJECT_UNLOCK (self);
  if (!found)
    return;
  gst_pad_set_active (pad, FALSE); /* a push that is under way ends */
  GST_PAD_STREAM_LOCK (self->sink);
  gst_flow_combiner_remove_pad (self->combiner, pad);
  GST_PAD_STREAM_UNLOCK (self->sink);
  gst_photo_stereo_pad_remove (found);
  gst_photo_stereo_pad_unref (found);
}

static void
gst_photo_stereo_finish_set (GstPhotoStereo *self)
{
  GST_PAD_STREAM_LOCK (self->sink);
  self->n_skip = 0;
  finish_set (self);
  GST_PAD_STREAM_UNLOCK (self->sink);
}

/* --- GstElement ---------------------------------------------------------- */

static void
reset (GstPhotoStereo *self)
{
  GstPhotoStereoPad *pads[N_OUTPUTS];

  ref_pads (self, pads);
  for (guint i = 0; i < N_OUTPUTS; i++)
    if (pads[i])
      gst_photo_stereo_pad_reset (pads[i]);
  unref_pads (pads);
  gst_flow_combiner_reset (self->combiner);
  gst_clear_caps (&self->caps);
  self->n_skip = 0;
  self->first_pts = self->last_pts = GST_CLOCK_TIME_NONE;
}

static GstStateChangeReturn
gst_photo_stereo_change_state (GstElement *element, GstStateChange transition)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (element);
  GstStateChangeReturn result;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED) {
    reset (self);
    if (!gst_imaging_engine_start (self->engine))
      return GST_STATE_CHANGE_FAILURE;
  }
  result = GST_ELEMENT_CLASS (gst_photo_stereo_parent_class)
               ->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY ||
      (transition == GST_STATE_CHANGE_READY_TO_PAUSED &&
          result == GST_STATE_CHANGE_FAILURE)) {
    reset (self);
    gst_imaging_engine_stop (self->engine);
  }
  return result;
}

static void
gst_photo_stereo_set_context (GstElement *element, GstContext *context)
{
  gst_imaging_engine_set_context (GST_PHOTO_STEREO (element)->engine, context);
  GST_ELEMENT_CLASS (gst_photo_stereo_parent_class)
      ->set_context (element, context);
}

/* --- GObject ------------------------------------------------------------- */

/* Empty is none: gst-launch cannot write NULL. */
static void
take_location (gchar **location, const GValue *value)
{
  const gchar *text = g_value_get_string (value);

  g_free (*location);
  *location = text && *text ? g_strdup (text) : NULL;
}

/* The strings of the settings. Returns: NULL when @id is none of them */
static gchar **
location_of (Settings *s, guint id)
{
  switch (id) {
  case PROP_LIGHTS_LOCATION:
    return &s->lights_location;
  case PROP_INTENSITIES_LOCATION:
    return &s->intensities_location;
  case PROP_DARK_LOCATION:
    return &s->dark_location;
  case PROP_WHITE_LOCATION:
    return &s->white_location;
  case PROP_MASK_LOCATION:
    return &s->mask_location;
  default:
    return NULL;
  }
}

/* The numbers of the settings, likewise. */
static gdouble *
number_of (Settings *s, guint id)
{
  switch (id) {
  case PROP_LED_LOBE:
    return &s->config.led_lobe;
  case PROP_MM_PER_PIXEL:
    return &s->config.mm_per_pixel;
  case PROP_CENTRE_X:
    return &s->config.centre_x;
  case PROP_CENTRE_Y:
    return &s->config.centre_y;
  case PROP_PLANE_Z:
    return &s->config.plane_z;
  case PROP_GAMMA:
    return &s->config.gamma;
  case PROP_T_MIN:
    return &s->config.t_min;
  case PROP_T_MAX:
    return &s->config.t_max;
  case PROP_T_RES:
    return &s->config.t_res;
  case PROP_MIN_CONDITION:
    return &s->config.min_condition;
  case PROP_STOP_BELOW:
    return &s->stop_below;
  default:
    return NULL;
  }
}

static guint *
count_of (Settings *s, guint id)
{
  switch (id) {
  case PROP_BIT_DEPTH:
    return &s->bit_depth;
  case PROP_SET_SIZE:
    return &s->set_size;
  case PROP_UPDATE_INTERVAL:
    return &s->update_interval;
  case PROP_MAX_ITERATIONS:
    return &s->config.max_iterations;
  case PROP_MIN_LIGHTS:
    return &s->config.min_lights;
  default:
    return NULL;
  }
}

static gboolean
set_choice (Settings *s, guint id, const GValue *value)
{
  switch (id) {
  case PROP_LIGHT_UNITS:
    s->light_units = g_value_get_enum (value);
    break;
  case PROP_LIGHT_MODEL:
    s->config.model = g_value_get_enum (value);
    break;
  case PROP_BAYER_PATTERN:
    s->config.pattern = g_value_get_enum (value);
    break;
  case PROP_GREY_SOURCE:
    s->config.grey = g_value_get_enum (value);
    break;
  case PROP_INDEX_SOURCE:
    s->index_source = g_value_get_enum (value);
    break;
  case PROP_ROBUST:
    s->config.robust = g_value_get_enum (value);
    break;
  case PROP_THRESHOLD_MODE:
    s->config.thresholds = g_value_get_enum (value);
    break;
  case PROP_Y_AXIS:
    s->config.y_down = g_value_get_enum (value);
    break;
  case PROP_NORMAL_ENCODING:
    s->normal_encoding = g_value_get_enum (value);
    break;
  case PROP_READMIT:
    s->config.readmit = g_value_get_boolean (value);
    break;
  case PROP_NEXT_LIGHT:
    s->next_light = g_value_get_boolean (value);
    break;
  case PROP_MEMORY_LIMIT:
    s->config.memory_limit = g_value_get_uint64 (value);
    break;
  default:
    return FALSE;
  }
  return TRUE;
}

static void
gst_photo_stereo_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (object);
  Settings *s = &self->settings;

  if (gst_imaging_engine_set_property (self->engine, id, value))
    return;
  GST_OBJECT_LOCK (object);
  if (location_of (s, id))
    take_location (location_of (s, id), value);
  else if (number_of (s, id))
    *number_of (s, id) = g_value_get_double (value);
  else if (count_of (s, id))
    *count_of (s, id) = g_value_get_uint (value);
  else if (!set_choice (s, id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  s->geometry += id < PROP_FIRST_OF_SOLVER;
  GST_OBJECT_UNLOCK (object);
}

static gboolean
get_choice (const Settings *s, guint id, GValue *value)
{
  switch (id) {
  case PROP_LIGHT_UNITS:
    g_value_set_enum (value, s->light_units);
    break;
  case PROP_LIGHT_MODEL:
    g_value_set_enum (value, s->config.model);
    break;
  case PROP_BAYER_PATTERN:
    g_value_set_enum (value, s->config.pattern);
    break;
  case PROP_GREY_SOURCE:
    g_value_set_enum (value, s->config.grey);
    break;
  case PROP_INDEX_SOURCE:
    g_value_set_enum (value, s->index_source);
    break;
  case PROP_ROBUST:
    g_value_set_enum (value, s->config.robust);
    break;
  case PROP_THRESHOLD_MODE:
    g_value_set_enum (value, s->config.thresholds);
    break;
  case PROP_Y_AXIS:
    g_value_set_enum (value, s->config.y_down);
    break;
  case PROP_NORMAL_ENCODING:
    g_value_set_enum (value, s->normal_encoding);
    break;
  case PROP_READMIT:
    g_value_set_boolean (value, s->config.readmit);
    break;
  case PROP_NEXT_LIGHT:
    g_value_set_boolean (value, s->next_light);
    break;
  case PROP_MEMORY_LIMIT:
    g_value_set_uint64 (value, s->config.memory_limit);
    break;
  default:
    return FALSE;
  }
  return TRUE;
}

static void
gst_photo_stereo_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (object);
  Settings *s = &self->settings;

  if (gst_imaging_engine_get_property (self->engine, id, value))
    return;
  GST_OBJECT_LOCK (object);
  if (location_of (s, id))
    g_value_set_string (value, *location_of (s, id));
  else if (number_of (s, id))
    g_value_set_double (value, *number_of (s, id));
  else if (count_of (s, id))
    g_value_set_uint (value, *count_of (s, id));
  else if (!get_choice (s, id, value))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  GST_OBJECT_UNLOCK (object);
}

static void
gst_photo_stereo_finalize (GObject *object)
{
  GstPhotoStereo *self = GST_PHOTO_STEREO (object);

  for (guint i = 0; i < N_OUTPUTS; i++)
    g_clear_pointer (&self->pads[i], gst_photo_stereo_pad_unref);
  settings_clear (&self->settings);
  gst_flow_combiner_free (self->combiner);
  gst_imaging_engine_free (self->engine);
  G_OBJECT_CLASS (gst_photo_stereo_parent_class)->finalize (object);
}

static const GParamFlags live =
    G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

static void
install_location (
    GObjectClass *klass, guint id, const gchar *name, const gchar *blurb)
{
  g_object_class_install_property (
      klass, id, g_param_spec_string (name, name, blurb, NULL, live));
}

static void
install_enum (GObjectClass *klass, guint id, const gchar *name,
    const gchar *blurb, const gchar *type, const GEnumValue *values,
    gint default_value)
{
  g_object_class_install_property (klass, id,
      g_param_spec_enum (name, name, blurb,
          gst_imaging_enum_type (type, values), default_value, live));
}

static void
install_number (GObjectClass *klass, guint id, const gchar *name,
    const gchar *blurb, gdouble least, gdouble most, gdouble default_value)
{
  g_object_class_install_property (klass, id,
      g_param_spec_double (
          name, name, blurb, least, most, default_value, live));
}

static void
install_count (GObjectClass *klass, guint id, const gchar *name,
    const gchar *blurb, guint least, guint most, guint default_value)
{
  g_object_class_install_property (klass, id,
      g_param_spec_uint (name, name, blurb, least, most, default_value, live));
}

static void
install_lights (GObjectClass *klass)
{
  install_location (klass, PROP_LIGHTS_LOCATION, "lights-location",
      "The lights: an .lp file, lines of x y z with x to the right, y up and z "
      "to the camera, or a .dome file of Relight; needed");
  install_location (klass, PROP_INTENSITIES_LOCATION, "intensities-location",
      "A line each light with its intensity, or those of red, green, blue, by "
      "which samples are divided; without it those of lights-location, or 1");
  install_enum (klass, PROP_LIGHT_UNITS, "light-units",
      "What the numbers of lights-location are", "GstPhotoStereoLightUnits",
      light_units_values, DEFAULT_PROP_LIGHT_UNITS);
  install_enum (klass, PROP_LIGHT_MODEL, "light-model",
      "The light vector at a pixel, v being the way from there to the light "
      "and R the mean distance of the lights",
      "GstPhotoStereoLightModel", light_model_values,
      IMK_PHOTOSTEREO_MODEL_AUTO);
  install_number (klass, PROP_LED_LOBE, "led-lobe",
      "Exponent m of lamps aimed at the centre, which shine cos(angle)^m; 0 "
      "shines equally in all directions, 1 is a Lambertian LED",
      0, 100, 0);
  install_number (klass, PROP_MM_PER_PIXEL, "mm-per-pixel",
      "Size of a pixel on the working plane, for lights with a position", 1e-9,
      1e6, 1);
  install_number (klass, PROP_CENTRE_X, "centre-x",
      "Column above which x = 0; -1 for the middle of the frame", -1e9, 1e9,
      DEFAULT_PROP_CENTRE);
  install_number (klass, PROP_CENTRE_Y, "centre-y",
      "Row above which y = 0; -1 for the middle of the frame", -1e9, 1e9,
      DEFAULT_PROP_CENTRE);
  install_number (klass, PROP_PLANE_Z, "plane-z",
      "z of the working plane in mm, below all lights", -1e9, 1e9, 0);
}

static void
install_samples (GObjectClass *klass)
{
  install_location (klass, PROP_DARK_LOCATION, "dark-location",
      "A .npy file with a picture without light, of type and size of the "
      "frames; subtracted, with 0 for what would be negative");
  install_location (klass, PROP_WHITE_LOCATION, "white-location",
      "A .npy file with a picture of a white plane; samples are divided by it "
      "and multiplied by its mean");
  install_location (klass, PROP_MASK_LOCATION, "mask-location",
      "A .npy file [height, width] of u8, 0 where nothing is to be solved");
  install_number (klass, PROP_GAMMA, "gamma",
      "Exponent that makes samples linear: (sample / full scale)^gamma", 0.1,
      10, 1);
  install_count (klass, PROP_BIT_DEPTH, "bit-depth",
      "Significant bits of a sample, in its low bits: 10, 12 or 14 of most "
      "cameras; 0 for all bits of the format",
      0, 16, DEFAULT_PROP_BIT_DEPTH);
  install_enum (klass, PROP_BAYER_PATTERN, "bayer-pattern",
      "Colour filter of a sensor whose frames come as GRAY8 or GRAY16_LE",
      "GstPhotoStereoBayerPattern", pattern_values,
      IMK_PHOTOSTEREO_PATTERN_NONE);
  install_enum (klass, PROP_GREY_SOURCE, "grey-source",
      "What is solved, where there is a colour filter",
      "GstPhotoStereoGreySource", grey_source_values,
      IMK_PHOTOSTEREO_GREY_MOSAIC);
}

static void
install_set (GObjectClass *klass)
{
  install_enum (klass, PROP_INDEX_SOURCE, "index-source",
      "How it is known under which light, counted from 0, a picture was taken",
      "GstPhotoStereoIndexSource", index_source_values,
      DEFAULT_PROP_INDEX_SOURCE);
  install_count (klass, PROP_SET_SIZE, "set-size",
      "Pictures of a set; 0 for as many as there are lights", 0,
      IMK_PHOTOSTEREO_MAX_LIGHTS, DEFAULT_PROP_SET_SIZE);
  install_count (klass, PROP_UPDATE_INTERVAL, "update-interval",
      "A result of what is there after so many pictures each; 0 for the end of "
      "the set only",
      0, IMK_PHOTOSTEREO_MAX_LIGHTS, DEFAULT_PROP_UPDATE_INTERVAL);
  install_number (klass, PROP_STOP_BELOW, "stop-below",
      "Degrees of mean change between two updates below which the set ends "
      "early; 0 for never. With index-source=order the rest of its pictures is "
      "left out",
      0, 180, DEFAULT_PROP_STOP_BELOW);
  g_object_class_install_property (klass, PROP_NEXT_LIGHT,
      g_param_spec_boolean ("next-light", "next-light",
          "With each update post a message photostereo-next-light with the "
          "index of the light whose picture is expected to add most",
          DEFAULT_PROP_NEXT_LIGHT, live));
  g_object_class_install_property (klass, PROP_MEMORY_LIMIT,
      g_param_spec_uint64 ("memory-limit", "memory-limit",
          "Bytes that the set may take; 0 for any number. What does not fit is "
          "refused with the figure that it needs",
          0, G_MAXUINT64, DEFAULT_PROP_MEMORY_LIMIT, live));
}

static void
install_solver (GObjectClass *klass)
{
  install_enum (klass, PROP_ROBUST, "robust",
      "What becomes of lights that do not fit: shadows, highlights",
      "GstPhotoStereoRobust", robust_values, IMK_PHOTOSTEREO_ROBUST_THRESHOLDS);
  install_enum (klass, PROP_THRESHOLD_MODE, "threshold-mode",
      "Unit of t-min, t-max, t-res, for samples divided by the intensity of "
      "their light",
      "GstPhotoStereoThresholdMode", threshold_mode_values,
      IMK_PHOTOSTEREO_THRESHOLDS_AUTO);
  install_number (klass, PROP_T_MIN, "t-min",
      "A light counts where it is brighter; -1 for 0.04 absolute, 0.1 relative",
      -1, 1e6, DEFAULT_PROP_THRESHOLD);
  install_number (klass, PROP_T_MAX, "t-max",
      "and darker; -1 for 0.98 absolute, 1.3 relative", -1, 1e6,
      DEFAULT_PROP_THRESHOLD);
  install_number (klass, PROP_T_RES, "t-res",
      "and not farther than this from what the solution predicts (the paper "
      "compares squares); -1 for 0.03 absolute, 0.15 relative, 0.02 with "
      "robust=huber",
      -1, 1e6, DEFAULT_PROP_THRESHOLD);
  g_object_class_install_property (klass, PROP_READMIT,
      g_param_spec_boolean ("readmit", "readmit",
          "A light that was left out may come back; the paper says no", TRUE,
          live));
  install_count (klass, PROP_MAX_ITERATIONS, "max-iterations",
      "Solutions of a pixel at most, the first one included", 1, 1000, 10);
  install_count (klass, PROP_MIN_LIGHTS, "min-lights",
      "Lights that a later solution needs, else the last good one stays; 0 for "
      "3 absolute, 6 relative",
      0, IMK_PHOTOSTEREO_MAX_LIGHTS, 0);
  install_number (klass, PROP_MIN_CONDITION, "min-condition",
      "det A / (tr A tr adj A) of A = sum L L' below which a pixel is invalid: "
      "3e-6 are lights in one plane, 1e-2 lights near the camera, 5e-2 a dome",
      0, 1, 1e-4);
  install_enum (klass, PROP_Y_AXIS, "y-axis",
      "Where the y of the normals points", "GstPhotoStereoYAxis", y_axis_values,
      FALSE);
  install_enum (klass, PROP_NORMAL_ENCODING, "normal-encoding",
      "How normals n are written; all 0 where there is none",
      "GstPhotoStereoEncoding", encoding_values, DEFAULT_PROP_NORMAL_ENCODING);
}

static void
gst_photo_stereo_class_init (GstPhotoStereoClass *klass)
{
  static const gchar *no_tags[] = {NULL};
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->set_property = gst_photo_stereo_set_property;
  object_class->get_property = gst_photo_stereo_get_property;
  object_class->finalize = gst_photo_stereo_finalize;
  gst_imaging_engine_install_properties (object_class);
  install_lights (object_class);
  install_samples (object_class);
  install_set (object_class);
  install_solver (object_class);

  /**
   * GstPhotoStereo::finish-set:
   *
   * Ends the set: what there is is solved, and the next picture begins another.
   * Waits for the picture that is being worked on.
   */
  signals[SIGNAL_FINISH_SET] = g_signal_new_class_handler ("finish-set",
      G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION,
      G_CALLBACK (gst_photo_stereo_finish_set), NULL, NULL, NULL, G_TYPE_NONE,
      0);

  /* without tags, so that whatever is done to the pixels does not drop it; a
   * NULL list is refused before GStreamer 1.24 */
  gst_meta_register_custom (LIGHT_META, no_tags, NULL, NULL, NULL);
  gst_element_class_set_static_metadata (element_class, "Photometric stereo",
      "Filter/Converter/Video",
      "Normals, albedo and ambient picture from pictures under known lights",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  for (guint i = 0; i < N_OUTPUTS; i++)
    gst_element_class_add_static_pad_template (
        element_class, &src_templates[i]);
  element_class->change_state = gst_photo_stereo_change_state;
  element_class->set_context = gst_photo_stereo_set_context;
  element_class->request_new_pad = gst_photo_stereo_request_new_pad;
  element_class->release_pad = gst_photo_stereo_release_pad;
}

static void
gst_photo_stereo_init (GstPhotoStereo *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = gst_photo_stereo_open,
      .close = gst_photo_stereo_close,
      .prefers_cuda = gst_photo_stereo_prefers_cuda,
  };

  imk_photostereo_config_init (&self->settings.config);
  self->settings.config.centre_x = DEFAULT_PROP_CENTRE;
  self->settings.config.centre_y = DEFAULT_PROP_CENTRE;
  self->engine = gst_imaging_engine_new (GST_ELEMENT (self), &funcs);
  self->combiner = gst_flow_combiner_new ();
  self->first_pts = self->last_pts = GST_CLOCK_TIME_NONE;
  self->sink = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sink, gst_photo_stereo_chain);
  gst_pad_set_event_function (self->sink, gst_photo_stereo_sink_event);
  gst_pad_set_query_function (self->sink, gst_photo_stereo_sink_query);
  gst_element_add_pad (GST_ELEMENT (self), self->sink);
}
