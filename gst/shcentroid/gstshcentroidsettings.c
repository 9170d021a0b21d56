/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidsettings.h"

#include "gstimagingenum.h"
#include "gstshcentroidfiles.h"
#include "gstshcentroidtemplate.h"

#define DEFAULT_PROP_ORIGIN 0.0
#define DEFAULT_PROP_PITCH 0.0
#define DEFAULT_PROP_COUNT 0
#define DEFAULT_PROP_BIT_DEPTH 0
#define DEFAULT_PROP_SATURATION 0.0
#define DEFAULT_PROP_THRESHOLD 0.0
#define DEFAULT_PROP_THRESHOLD_MODE IMK_SHCENTROID_THRESHOLD_NONE
#define DEFAULT_PROP_THRESHOLD_ACTION IMK_SHCENTROID_ACTION_SUBTRACT
#define DEFAULT_PROP_MIN_FLUX 0.0
#define DEFAULT_PROP_INVALID_POLICY IMK_SHCENTROID_INVALID_ZERO
#define DEFAULT_PROP_GAIN 1.0
#define DEFAULT_PROP_READ_NOISE 0.0
#define DEFAULT_PROP_FIELDS IMK_SHCENTROID_FIELDS_ALL

/* Where a double property has no natural end: beyond every frame. */
#define FAR 1e6

enum {
  PROP_0,
  PROP_X0,
  PROP_Y0,
  PROP_PITCH_X,
  PROP_PITCH_Y,
  PROP_COLUMNS,
  PROP_ROWS,
  PROP_MAP_LOCATION,
  PROP_REFERENCE_LOCATION,
  PROP_FIELDS,
  PROP_FIRST_OF_FRAME, /* those above are the geometry */
  PROP_BIT_DEPTH = PROP_FIRST_OF_FRAME,
  PROP_SATURATION,
  PROP_THRESHOLD,
  PROP_THRESHOLD_MODE,
  PROP_THRESHOLD_ACTION,
  PROP_MIN_FLUX,
  PROP_INVALID_POLICY,
  PROP_GAIN,
  PROP_READ_NOISE,
  PROP_FIRST_OF_GEOMETRY = 1000, /* numbered in gstshcentroidgeometry.h */
};

static const GEnumValue threshold_mode_values[] = {
    {IMK_SHCENTROID_THRESHOLD_NONE, "Every sample counts", "none"},
    {IMK_SHCENTROID_THRESHOLD_ABSOLUTE, "T = threshold, in counts", "absolute"},
    {IMK_SHCENTROID_THRESHOLD_RELATIVE,
        "T = threshold * the largest value of the cell", "relative"},
    {IMK_SHCENTROID_THRESHOLD_RANGE,
        "T = smallest + threshold * (largest - smallest value of the cell)",
        "range"},
    {IMK_SHCENTROID_THRESHOLD_NOISE, "T = threshold * read-noise", "noise"},
    {0, NULL, NULL},
};

static const GEnumValue threshold_action_values[] = {
    {IMK_SHCENTROID_ACTION_SUBTRACT, "max (v - T, 0)", "subtract"},
    {IMK_SHCENTROID_ACTION_KEEP, "v where v >= T, else 0", "keep"},
    {0, NULL, NULL},
};

static const GEnumValue invalid_policy_values[] = {
    {IMK_SHCENTROID_INVALID_ZERO, "x, y are the reference, dx, dy are 0",
        "zero"},
    {IMK_SHCENTROID_INVALID_HOLD, "The last valid values", "hold"},
    {IMK_SHCENTROID_INVALID_NAN, "Not a number", "nan"},
    {IMK_SHCENTROID_INVALID_REFERENCE,
        "As zero, and the cell takes part in means over valid cells",
        "reference"},
    {0, NULL, NULL},
};

static const GEnumValue fields_values[] = {
    {IMK_SHCENTROID_FIELDS_ALL,
        "x, y, dx, dy, flux, flux_raw, max, var_x, var_y, flags of each cell",
        "all"},
    {IMK_SHCENTROID_FIELDS_XY, "x, y of each cell", "xy"},
    {IMK_SHCENTROID_FIELDS_SLOPES,
        "dx of all cells, then dy of all cells: the vector of a reconstructor",
        "slopes"},
    {0, NULL, NULL},
};

/* --- settings ------------------------------------------------------------ */

void
gst_sh_centroid_settings_init (GstShCentroidSettings *settings)
{
  imk_shcentroid_config_init (&settings->config);
  settings->config.columns = DEFAULT_PROP_COUNT;
  settings->config.rows = DEFAULT_PROP_COUNT;
  settings->config.pitch_x = DEFAULT_PROP_PITCH;
  settings->config.pitch_y = DEFAULT_PROP_PITCH;
}

void
gst_sh_centroid_settings_clear (GstShCentroidSettings *settings)
{
  g_clear_pointer (&settings->map_location, g_free);
  gst_sh_centroid_calibration_clear (&settings->calibration);
  gst_sh_centroid_geometry_clear (&settings->more_geometry);
}

GstShCentroidSettings
gst_sh_centroid_settings_copy (const GstShCentroidSettings *settings)
{
  GstShCentroidSettings s = *settings;

  s.map_location = g_strdup (s.map_location);
  s.calibration = gst_sh_centroid_calibration_copy (&s.calibration);
  s.more_geometry.find_location = NULL;
  s.more_geometry.pending = g_strdup (s.more_geometry.pending);
  return s;
}

/* 0 counts stands for the largest sample of the format, -1 for never. */
gdouble
gst_sh_centroid_settings_saturation (
    const GstShCentroidSettings *settings, ImkType type)
{
  guint bits = settings->bit_depth   ? settings->bit_depth
               : type == IMK_TYPE_U8 ? 8
                                     : 16;

  return settings->saturation > 0   ? settings->saturation
         : settings->saturation < 0 ? 0
                                    : (1u << bits) - 1;
}

ImkStatus
gst_sh_centroid_settings_load (const GstShCentroidSettings *s,
    ImkShcentroidConfig *config, ImkShcentroidCell **cells, ImkError *error)
{
  if (s->map_location) {
    *cells =
        gst_sh_centroid_load_map (s->map_location, &config->n_cells, error);
    config->cells = *cells;
    if (!*cells)
      return IMK_ERROR_FILE;
  }
  return gst_sh_centroid_geometry_apply (&s->more_geometry, config, error);
}

gboolean
gst_sh_centroid_settings_have_grid (const GstShCentroidSettings *s)
{
  return s->map_location || s->more_geometry.optics.aperture_mm > 0 ||
         (s->config.columns && s->config.rows);
}

/* --- properties ---------------------------------------------------------- */

/* Empty is none: gst-launch cannot write NULL. */
static void
take_location (gchar **location, const GValue *value)
{
  const gchar *text = g_value_get_string (value);

  g_free (*location);
  *location = text && *text ? g_strdup (text) : NULL;
}

static void
set_geometry (GstShCentroidSettings *s, guint id, const GValue *value)
{
  switch (id) {
  case PROP_X0:
    s->config.x0 = g_value_get_double (value);
    break;
  case PROP_Y0:
    s->config.y0 = g_value_get_double (value);
    break;
  case PROP_PITCH_X:
    s->config.pitch_x = g_value_get_double (value);
    break;
  case PROP_PITCH_Y:
    s->config.pitch_y = g_value_get_double (value);
    break;
  case PROP_COLUMNS:
    s->config.columns = g_value_get_uint (value);
    break;
  case PROP_ROWS:
    s->config.rows = g_value_get_uint (value);
    break;
  case PROP_MAP_LOCATION:
    take_location (&s->map_location, value);
    break;
  case PROP_REFERENCE_LOCATION:
    gst_sh_centroid_calibration_locate (
        &s->calibration, GST_SH_CENTROID_REFERENCE, g_value_get_string (value));
    break;
  case PROP_FIELDS:
    s->config.fields = g_value_get_enum (value);
    break;
  }
  s->geometry++;
}

static void
set_more_geometry (GstShCentroidSettings *s, guint id, const GValue *value)
{
  gst_sh_centroid_geometry_set (&s->more_geometry, id, value);
  s->geometry += id <= GST_SH_CENTROID_PIXEL_SIZE;
}

gboolean
gst_sh_centroid_settings_set (
    GstShCentroidSettings *s, guint id, const GValue *value)
{
  gboolean is_geometry;

  s->serial++;
  switch (id) {
  case PROP_BIT_DEPTH:
    s->bit_depth = g_value_get_uint (value);
    break;
  case PROP_SATURATION:
    s->saturation = g_value_get_double (value);
    break;
  case PROP_THRESHOLD:
    s->config.threshold = g_value_get_double (value);
    break;
  case PROP_THRESHOLD_MODE:
    s->config.threshold_mode = g_value_get_enum (value);
    break;
  case PROP_THRESHOLD_ACTION:
    s->config.threshold_action = g_value_get_enum (value);
    break;
  case PROP_MIN_FLUX:
    s->config.min_flux = g_value_get_double (value);
    break;
  case PROP_INVALID_POLICY:
    s->config.invalid_policy = g_value_get_enum (value);
    break;
  case PROP_GAIN:
    s->config.gain = g_value_get_double (value);
    break;
  case PROP_READ_NOISE:
    s->config.read_noise = g_value_get_double (value);
    break;
  default:
    if (id >= PROP_FIRST_OF_GEOMETRY)
      set_more_geometry (s, id - PROP_FIRST_OF_GEOMETRY, value);
    else if (gst_sh_centroid_pixels_set (
                 &s->config, &s->calibration, id, value, &is_geometry) ||
             gst_sh_centroid_template_set (
                 &s->config, &s->calibration, id, value, &is_geometry))
      s->geometry += is_geometry;
    else if (id < PROP_FIRST_OF_FRAME)
      set_geometry (s, id, value);
    else
      return FALSE;
  }
  return TRUE;
}

gboolean
gst_sh_centroid_settings_get (
    const GstShCentroidSettings *s, guint id, GValue *value)
{
  switch (id) {
  case PROP_X0:
    g_value_set_double (value, s->config.x0);
    break;
  case PROP_Y0:
    g_value_set_double (value, s->config.y0);
    break;
  case PROP_PITCH_X:
    g_value_set_double (value, s->config.pitch_x);
    break;
  case PROP_PITCH_Y:
    g_value_set_double (value, s->config.pitch_y);
    break;
  case PROP_COLUMNS:
    g_value_set_uint (value, s->config.columns);
    break;
  case PROP_ROWS:
    g_value_set_uint (value, s->config.rows);
    break;
  case PROP_MAP_LOCATION:
    g_value_set_string (value, s->map_location);
    break;
  case PROP_REFERENCE_LOCATION:
    g_value_set_string (
        value, s->calibration.location[GST_SH_CENTROID_REFERENCE]);
    break;
  case PROP_FIELDS:
    g_value_set_enum (value, s->config.fields);
    break;
  case PROP_BIT_DEPTH:
    g_value_set_uint (value, s->bit_depth);
    break;
  case PROP_SATURATION:
    g_value_set_double (value, s->saturation);
    break;
  case PROP_THRESHOLD:
    g_value_set_double (value, s->config.threshold);
    break;
  case PROP_THRESHOLD_MODE:
    g_value_set_enum (value, s->config.threshold_mode);
    break;
  case PROP_THRESHOLD_ACTION:
    g_value_set_enum (value, s->config.threshold_action);
    break;
  case PROP_MIN_FLUX:
    g_value_set_double (value, s->config.min_flux);
    break;
  case PROP_INVALID_POLICY:
    g_value_set_enum (value, s->config.invalid_policy);
    break;
  case PROP_GAIN:
    g_value_set_double (value, s->config.gain);
    break;
  case PROP_READ_NOISE:
    g_value_set_double (value, s->config.read_noise);
    break;
  default:
    if (id >= PROP_FIRST_OF_GEOMETRY)
      gst_sh_centroid_geometry_get (
          &s->more_geometry, id - PROP_FIRST_OF_GEOMETRY, value);
    else if (!gst_sh_centroid_pixels_get (
                 &s->config, &s->calibration, id, value) &&
             !gst_sh_centroid_template_get (
                 &s->config, &s->calibration, id, value))
      return FALSE;
  }
  return TRUE;
}

static const GParamFlags live = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                                GST_PARAM_CONTROLLABLE |
                                GST_PARAM_MUTABLE_PLAYING;

static void
install_geometry (GObjectClass *klass)
{
  const GParamFlags flags =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  g_object_class_install_property (klass, PROP_X0,
      g_param_spec_double ("x0", "Left edge of the grid",
          "Left edge of the first column of cells, in pixels; cell column c "
          "covers the pixels floor (x0 + c * pitch-x) to before floor (x0 + "
          "(c + 1) * pitch-x)",
          -FAR, FAR, DEFAULT_PROP_ORIGIN, flags));
  g_object_class_install_property (klass, PROP_Y0,
      g_param_spec_double ("y0", "Top edge of the grid",
          "Top edge of the first row of cells, in pixels, as x0", -FAR, FAR,
          DEFAULT_PROP_ORIGIN, flags));
  g_object_class_install_property (klass, PROP_PITCH_X,
      g_param_spec_double ("pitch-x", "Pitch in x",
          "Width of a cell in pixels, at least 1, with any fraction", -FAR, FAR,
          DEFAULT_PROP_PITCH, flags));
  g_object_class_install_property (klass, PROP_PITCH_Y,
      g_param_spec_double ("pitch-y", "Pitch in y",
          "Height of a cell in pixels, at least 1, with any fraction", -FAR,
          FAR, DEFAULT_PROP_PITCH, flags));
  g_object_class_install_property (klass, PROP_COLUMNS,
      g_param_spec_uint ("columns", "Columns",
          "Cells in a row of the grid; needed without map-location", 0,
          G_MAXUINT16, DEFAULT_PROP_COUNT, flags));
  g_object_class_install_property (klass, PROP_ROWS,
      g_param_spec_uint ("rows", "Rows",
          "Rows of cells in the grid; needed without map-location", 0,
          G_MAXUINT16, DEFAULT_PROP_COUNT, flags));
  g_object_class_install_property (klass, PROP_MAP_LOCATION,
      g_param_spec_string ("map-location", "Location of the map",
          "A .npy file [n, 4..8] of cells instead of the grid: x, y, width, "
          "height in pixels, then optionally ref-x, ref-y, min-flux, threshold "
          "(NaN for the properties' values); cells may overlap",
          NULL, flags));
  g_object_class_install_property (klass, PROP_REFERENCE_LOCATION,
      g_param_spec_string ("reference-location", "Location of the references",
          "A .npy file [cells, 2] with the x and y that each slope is measured "
          "from, in pixels; without it the centres of the cells",
          NULL, flags));
  g_object_class_install_property (klass, PROP_FIELDS,
      g_param_spec_enum ("fields", "Fields", "What is reported",
          gst_imaging_enum_type ("GstShCentroidFields", fields_values),
          DEFAULT_PROP_FIELDS, flags));
}

static void
install_validity (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_BIT_DEPTH,
      g_param_spec_uint ("bit-depth", "Bit depth",
          "Significant bits of a sample, in its low bits, for the default "
          "saturation: 10, 12 or 14 of most cameras; 0 for all bits of the "
          "format",
          0, 16, DEFAULT_PROP_BIT_DEPTH, live));
  g_object_class_install_property (klass, PROP_SATURATION,
      g_param_spec_double ("saturation", "Saturation",
          "Counts at and above which a sample is saturated, and its cell "
          "flagged (4); 0 for the largest of bit-depth, -1 for never",
          -1, G_MAXUINT16, DEFAULT_PROP_SATURATION, live));
  g_object_class_install_property (klass, PROP_MIN_FLUX,
      g_param_spec_double ("min-flux", "Least flux",
          "Counts of flux, after the threshold, below which a cell is invalid "
          "and flagged (2)",
          0, G_MAXDOUBLE, DEFAULT_PROP_MIN_FLUX, live));
  g_object_class_install_property (klass, PROP_INVALID_POLICY,
      g_param_spec_enum ("invalid-policy", "Invalid policy",
          "What an invalid cell reports; its flags say that it is",
          gst_imaging_enum_type (
              "GstShCentroidInvalidPolicy", invalid_policy_values),
          DEFAULT_PROP_INVALID_POLICY, live));
  g_object_class_install_property (klass, PROP_GAIN,
      g_param_spec_double ("gain", "Gain",
          "Electrons a count, above 0, for the photon noise in var_x and var_y",
          0, 1e9, DEFAULT_PROP_GAIN, live));
  g_object_class_install_property (klass, PROP_READ_NOISE,
      g_param_spec_double ("read-noise", "Read noise",
          "Counts rms of a sample, for var_x and var_y", 0, 1e6,
          DEFAULT_PROP_READ_NOISE, live));
}

static void
install_threshold (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_THRESHOLD,
      g_param_spec_double ("threshold", "Threshold",
          "T, in the unit of threshold-mode: counts, a fraction from 0 to 1, or "
          "times read-noise",
          0, 1e9, DEFAULT_PROP_THRESHOLD, live));
  g_object_class_install_property (klass, PROP_THRESHOLD_MODE,
      g_param_spec_enum ("threshold-mode", "Threshold mode",
          "Which samples count",
          gst_imaging_enum_type (
              "GstShCentroidThresholdMode", threshold_mode_values),
          DEFAULT_PROP_THRESHOLD_MODE, live));
  g_object_class_install_property (klass, PROP_THRESHOLD_ACTION,
      g_param_spec_enum ("threshold-action", "Threshold action",
          "What a sample v counts as",
          gst_imaging_enum_type (
              "GstShCentroidThresholdAction", threshold_action_values),
          DEFAULT_PROP_THRESHOLD_ACTION, live));
}

void
gst_sh_centroid_settings_install (GObjectClass *klass)
{
  install_geometry (klass);
  install_threshold (klass);
  install_validity (klass);
  gst_sh_centroid_pixels_install (klass);
  gst_sh_centroid_template_install (klass);
  gst_sh_centroid_geometry_install (klass, PROP_FIRST_OF_GEOMETRY);
}
