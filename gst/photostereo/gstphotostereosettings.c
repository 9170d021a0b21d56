/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstphotostereosettings.h"

#include "gstimagingenum.h"

enum {
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
  PROP_SATURATION,
  PROP_BAYER_PATTERN,
  PROP_GREY_SOURCE,
  PROP_BANDS,
  PROP_BAND_ORDER,
  PROP_INDEX_SOURCE,
  PROP_SET_SIZE,
  PROP_MEMORY_LIMIT,
  PROP_HOST_MEMORY_LIMIT,
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
  PROP_CUDA_DEVICES,
};

#define DEFAULT_PROP_BAND_ORDER GST_PHOTO_STEREO_BANDS_BY_LIGHT
#define DEFAULT_PROP_INDEX_SOURCE GST_PHOTO_STEREO_INDEX_ORDER
#define DEFAULT_PROP_LIGHT_UNITS GST_PHOTO_STEREO_UNITS_AUTO
#define DEFAULT_PROP_BIT_DEPTH 0
#define DEFAULT_PROP_SET_SIZE 0
#define DEFAULT_PROP_UPDATE_INTERVAL 0
#define DEFAULT_PROP_STOP_BELOW 0.0
#define DEFAULT_PROP_NEXT_LIGHT FALSE
#define DEFAULT_PROP_NORMAL_ENCODING GST_PHOTO_STEREO_ENCODING_AUTO
#define DEFAULT_PROP_MEMORY_LIMIT 0
#define DEFAULT_PROP_THRESHOLD -1.0

static const GEnumValue light_units_values[] = {
    {GST_PHOTO_STEREO_UNITS_AUTO,
        "As a .dome file says; of text, unit vectors are directions, and when "
        "none is one, positions",
        "auto"},
    {GST_PHOTO_STEREO_UNITS_DIRECTIONS, "Directions of any length",
        "directions"},
    {GST_PHOTO_STEREO_UNITS_POSITIONS, "Positions in mm", "positions"},
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

ImkPhotostereoPattern
gst_photo_stereo_pattern_of (const gchar *format)
{
  for (const GEnumValue *v = pattern_values; v->value_nick; v++)
    if (g_strcmp0 (v->value_nick, format) == 0)
      return v->value;
  return IMK_PHOTOSTEREO_PATTERN_NONE;
}

static const GEnumValue grey_source_values[] = {
    {IMK_PHOTOSTEREO_GREY_MOSAIC, "The sample of each site", "mosaic"},
    {IMK_PHOTOSTEREO_GREY_LUMA, "Luma of interpolated colours, as the paper",
        "luma"},
    {0, NULL, NULL},
};

static const GEnumValue band_order_values[] = {
    {GST_PHOTO_STEREO_BANDS_BY_LIGHT,
        "All bands of a light, then those of the next", "by-light"},
    {GST_PHOTO_STEREO_BANDS_BY_BAND,
        "All lights of a band, then those of the next", "by-band"},
    {0, NULL, NULL},
};

static const GEnumValue index_source_values[] = {
    {GST_PHOTO_STEREO_INDEX_ORDER,
        "Pictures come in the order of the light file", "order"},
    {GST_PHOTO_STEREO_INDEX_META,
        "A custom meta " GST_PHOTO_STEREO_LIGHT_META
        " with an unsigned integer \"index\", and \"band\" where there are "
        "several",
        "meta"},
    {GST_PHOTO_STEREO_INDEX_OFFSET, "The offset of the buffer", "offset"},
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
        "adaptive below 20 lights, relative from 20 on", "auto"},
    {IMK_PHOTOSTEREO_THRESHOLDS_ABSOLUTE, "Fractions of the full scale",
        "absolute"},
    {IMK_PHOTOSTEREO_THRESHOLDS_RELATIVE, "Fractions of the pixel's own albedo",
        "relative"},
    {IMK_PHOTOSTEREO_THRESHOLDS_ADAPTIVE,
        "Likewise, and t-res grows with the residuals of the pixel",
        "adaptive"},
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

/* --- values -------------------------------------------------------------- */

void
gst_photo_stereo_settings_init (GstPhotoStereoSettings *self)
{
  *self = (GstPhotoStereoSettings){.geometry = 0};
  imk_photostereo_config_init (&self->config);
  self->config.centre_x = GST_PHOTO_STEREO_CENTRE;
  self->config.centre_y = GST_PHOTO_STEREO_CENTRE;
}

GstPhotoStereoSettings
gst_photo_stereo_settings_copy (const GstPhotoStereoSettings *self)
{
  GstPhotoStereoSettings s = *self;

  s.lights_location = g_strdup (s.lights_location);
  s.intensities_location = g_strdup (s.intensities_location);
  s.dark_location = g_strdup (s.dark_location);
  s.white_location = g_strdup (s.white_location);
  s.mask_location = g_strdup (s.mask_location);
  s.cuda_devices = g_strdup (s.cuda_devices);
  return s;
}

void
gst_photo_stereo_settings_clear (GstPhotoStereoSettings *self)
{
  g_clear_pointer (&self->lights_location, g_free);
  g_clear_pointer (&self->intensities_location, g_free);
  g_clear_pointer (&self->dark_location, g_free);
  g_clear_pointer (&self->white_location, g_free);
  g_clear_pointer (&self->mask_location, g_free);
  g_clear_pointer (&self->cuda_devices, g_free);
}

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
location_of (GstPhotoStereoSettings *s, guint id)
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
  case PROP_CUDA_DEVICES:
    return &s->cuda_devices;
  default:
    return NULL;
  }
}

/* The numbers of the settings, likewise. */
static gdouble *
number_of (GstPhotoStereoSettings *s, guint id)
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
  case PROP_SATURATION:
    return &s->config.saturation;
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
count_of (GstPhotoStereoSettings *s, guint id)
{
  switch (id) {
  case PROP_BIT_DEPTH:
    return &s->bit_depth;
  case PROP_BANDS:
    return &s->config.bands;
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
set_choice (GstPhotoStereoSettings *s, guint id, const GValue *value)
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
  case PROP_BAND_ORDER:
    s->band_order = g_value_get_enum (value);
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
  case PROP_HOST_MEMORY_LIMIT:
    s->host_memory_limit = g_value_get_uint64 (value);
    break;
  default:
    return FALSE;
  }
  return TRUE;
}

gboolean
gst_photo_stereo_settings_set (
    GstPhotoStereoSettings *self, guint id, const GValue *value)
{
  if (location_of (self, id))
    take_location (location_of (self, id), value);
  else if (number_of (self, id))
    *number_of (self, id) = g_value_get_double (value);
  else if (count_of (self, id))
    *count_of (self, id) = g_value_get_uint (value);
  else if (!set_choice (self, id, value))
    return FALSE;
  self->geometry += id < PROP_FIRST_OF_SOLVER;
  return TRUE;
}

static gboolean
get_choice (const GstPhotoStereoSettings *s, guint id, GValue *value)
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
  case PROP_BAND_ORDER:
    g_value_set_enum (value, s->band_order);
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
  case PROP_HOST_MEMORY_LIMIT:
    g_value_set_uint64 (value, s->host_memory_limit);
    break;
  default:
    return FALSE;
  }
  return TRUE;
}

gboolean
gst_photo_stereo_settings_get (
    const GstPhotoStereoSettings *self, guint id, GValue *value)
{
  GstPhotoStereoSettings *s = (GstPhotoStereoSettings *) self;

  if (location_of (s, id))
    g_value_set_string (value, *location_of (s, id));
  else if (number_of (s, id))
    g_value_set_double (value, *number_of (s, id));
  else if (count_of (s, id))
    g_value_set_uint (value, *count_of (s, id));
  else
    return get_choice (s, id, value);
  return TRUE;
}

/* --- properties ---------------------------------------------------------- */

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
      "A line each light with its intensity, or those of red, green, blue, or of "
      "each band, by which samples are divided; without it those of lights-location, or 1");
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
      "Column above which x = 0; the least number there is, the default, for the "
      "middle of the frame",
      GST_PHOTO_STEREO_CENTRE, 1e9, GST_PHOTO_STEREO_CENTRE);
  install_number (klass, PROP_CENTRE_Y, "centre-y",
      "Row above which y = 0; the least number there is, the default, for the "
      "middle of the frame",
      GST_PHOTO_STEREO_CENTRE, 1e9, GST_PHOTO_STEREO_CENTRE);
  install_number (klass, PROP_PLANE_Z, "plane-z",
      "z of the working plane in mm, below all lights", -1e9, 1e9, 0);
}

static void
install_samples (GObjectClass *klass)
{
  install_location (klass, PROP_DARK_LOCATION, "dark-location",
      "A .npy file with a picture without light, of type and size of the "
      "frames, or [bands, height, width]; subtracted, with 0 for what would be negative");
  install_location (klass, PROP_WHITE_LOCATION, "white-location",
      "A .npy file with a picture of a white plane, likewise; samples are divided by it "
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
  install_number (klass, PROP_SATURATION, "saturation",
      "Counts at and above which a sample, as it came, is clipped; 0 for the "
      "largest value of bit-depth, -1 for never. A light does not count at a "
      "pixel of which it clips a sample, but with robust=none",
      -1, 65535, 0);
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
  install_count (klass, PROP_BANDS, "bands",
      "Grey pictures a light, 1 to 16, each of another colour of light or through "
      "another filter: one normal is solved from all of them, and an albedo of "
      "each",
      1, G_MAXUINT16, 1);
  install_enum (klass, PROP_BAND_ORDER, "band-order",
      "How pictures follow each other where there are several bands",
      "GstPhotoStereoBandOrder", band_order_values, DEFAULT_PROP_BAND_ORDER);
  install_enum (klass, PROP_INDEX_SOURCE, "index-source",
      "How it is known under which light, counted from 0, a picture was taken",
      "GstPhotoStereoIndexSource", index_source_values,
      DEFAULT_PROP_INDEX_SOURCE);
  install_count (klass, PROP_SET_SIZE, "set-size",
      "Lights of a set, with a picture of each band; 0 for all there are", 0,
      IMK_PHOTOSTEREO_MAX_LIGHTS, DEFAULT_PROP_SET_SIZE);
  install_count (klass, PROP_UPDATE_INTERVAL, "update-interval",
      "A result of what is there after so many lights each, with their pictures "
      "of all bands; 0 for the end of the set only",
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
          "Bytes that may be taken where the set is solved, on each device or "
          "the host; 0 for what is free there. A set that does not fit the device "
          "waits in host memory and is solved in strips; one that does not fit "
          "the host is refused with the figure that it needs",
          0, G_MAXUINT64, DEFAULT_PROP_MEMORY_LIMIT, live));
  g_object_class_install_property (klass, PROP_HOST_MEMORY_LIMIT,
      g_param_spec_uint64 ("host-memory-limit", "host-memory-limit",
          "Bytes of host memory for the pictures of a set, on the CPU and where "
          "they wait to be solved in strips; 0 for nine tenths of what the "
          "machine has. What does not fit is refused with the figure that it "
          "needs",
          0, G_MAXUINT64, DEFAULT_PROP_MEMORY_LIMIT, live));
}

static void
install_devices (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_CUDA_DEVICES,
      g_param_spec_string ("cuda-devices", "cuda-devices",
          "GPUs that share the rows of a set, each over its own bus: \"0;1\", or "
          "\"all\", 16 at most; without it cuda-device-id alone, the place of "
          "which the first takes. Results do not depend on it",
          NULL,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
              GST_PARAM_MUTABLE_READY));
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
      "A light counts where it is brighter; -1 for 0.04 absolute, else 0.1", -1,
      1e6, DEFAULT_PROP_THRESHOLD);
  install_number (klass, PROP_T_MAX, "t-max",
      "and darker; -1 for 0.98 absolute, else 1.3", -1, 1e6,
      DEFAULT_PROP_THRESHOLD);
  install_number (klass, PROP_T_RES, "t-res",
      "and not farther than this from what the solution predicts (the paper "
      "compares squares); -1 for 0.03 absolute, 0.15 relative, 0.05 adaptive, "
      "0.02 with robust=huber",
      -1, 1e6, DEFAULT_PROP_THRESHOLD);
  g_object_class_install_property (klass, PROP_READMIT,
      g_param_spec_boolean ("readmit", "readmit",
          "A light that was left out may come back; the paper says no", TRUE,
          live));
  install_count (klass, PROP_MAX_ITERATIONS, "max-iterations",
      "Solutions of a pixel at most, the first one included", 1, 1000, 10);
  install_count (klass, PROP_MIN_LIGHTS, "min-lights",
      "Lights that a later solution needs, else the last good one stays; 0 for "
      "3 absolute, 6 relative, 4 adaptive",
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

void
gst_photo_stereo_settings_install (GObjectClass *klass)
{
  install_lights (klass);
  install_samples (klass);
  install_set (klass);
  install_solver (klass);
  install_devices (klass);
}
