/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidpixels.h"

#include <gst/gst.h>

#include "gstimagingenum.h"
#include "gstshcentroidfiles.h"

static const GEnumValue weighting_values[] = {
    {IMK_SHCENTROID_WEIGHTING_NONE, "Every pixel alike", "none"},
    {IMK_SHCENTROID_WEIGHTING_GAUSSIAN,
        "exp (-r^2 / (2 sigma^2)) about the reference", "gaussian"},
    {IMK_SHCENTROID_WEIGHTING_TRACKING, "The same about the tracked position",
        "tracking"},
    {0, NULL, NULL},
};

static const GEnumValue estimator_values[] = {
    {IMK_SHCENTROID_ESTIMATOR_COG, "Centre of gravity", "cog"},
    {IMK_SHCENTROID_ESTIMATOR_QUAD,
        "Quad cell: quad-gain (right - left) / all and (bottom - top) / all "
        "from the middle of the cell",
        "quad"},
    {IMK_SHCENTROID_ESTIMATOR_CORRELATION,
        "Where the template is found, to a fraction of a pixel", "correlation"},
    {0, NULL, NULL},
};

static const GEnumValue window_values[] = {
    {IMK_SHCENTROID_WINDOW_CELL, "A cell stays where it is", "cell"},
    {IMK_SHCENTROID_WINDOW_TRACKING,
        "It moves with the tracked position, in whole pixels", "tracking"},
    {0, NULL, NULL},
};

/* --- properties ---------------------------------------------------------- */

static const GParamFlags live = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                                GST_PARAM_CONTROLLABLE |
                                GST_PARAM_MUTABLE_PLAYING;

static void
install_calibration (GObjectClass *klass)
{
  const GParamFlags flags =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_DARK_LOCATION,
      g_param_spec_string ("dark-location", "Location of the dark",
          "A .npy file [height, width] of counts that are subtracted from the "
          "samples; takes the place of a captured one",
          NULL, flags));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_FLAT_LOCATION,
      g_param_spec_string ("flat-location", "Location of the flat",
          "A .npy file [height, width] of factors that samples less the dark "
          "are multiplied with; 0 for a bad pixel; takes the place of a "
          "captured one",
          NULL, flags));
  g_object_class_install_property (klass,
      GST_SH_CENTROID_PROP_BAD_PIXELS_LOCATION,
      g_param_spec_string ("bad-pixels-location", "Location of the bad pixels",
          "A .npy file [height, width], not 0 where a pixel takes part in "
          "nothing",
          NULL, flags));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_LUT_LOCATION,
      g_param_spec_string ("lut-location", "Location of the look-up table",
          "A .npy file of 256 numbers for GRAY8 or 65536 for GRAY16_LE: what "
          "each sample stands for, before the dark",
          NULL, flags));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_MARGIN,
      g_param_spec_uint ("margin", "Margin",
          "Pixels left out at each edge of every cell; references stay", 0,
          G_MAXUINT16, 0, flags));
}

static void
install_selection (GObjectClass *klass)
{
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_THRESHOLD_LEAST,
      g_param_spec_double ("threshold-least", "Least threshold",
          "Counts; T is at least this with threshold-mode relative or range", 0,
          1e9, 0, live));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_BRIGHTEST,
      g_param_spec_uint ("brightest", "Brightest pixels",
          "Only so many pixels of a cell count, the brightest, and all that tie "
          "with the last of them; with threshold-action=subtract the next lower "
          "value is subtracted; 0 for all",
          0, G_MAXINT, 0, live));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_WEIGHTING,
      g_param_spec_enum ("weighting", "Weighting",
          "What a pixel is multiplied with after the threshold",
          gst_imaging_enum_type ("GstShCentroidWeighting", weighting_values),
          IMK_SHCENTROID_WEIGHTING_NONE, live));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_SIGMA,
      g_param_spec_double ("sigma", "Sigma of the weight",
          "In pixels; a spot of sigma_s seems to move by sigma^2 / (sigma^2 + "
          "sigma_s^2) of what it does about a fixed centre",
          0.01, 1e6, 1, live));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_ITERATIONS,
      g_param_spec_uint ("iterations", "Iterations",
          "How often a weighted cell is measured; from the second time on the "
          "weight is about the centroid found before",
          1, 100, 1, live));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_POWER,
      g_param_spec_double ("power", "Power",
          "The power that a pixel is raised to after threshold and weight", 1,
          4, 1, live));
}

static void
install_estimator (GObjectClass *klass)
{
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_ESTIMATOR,
      g_param_spec_enum ("estimator", "Estimator", "How a spot is located",
          gst_imaging_enum_type ("GstShCentroidEstimator", estimator_values),
          IMK_SHCENTROID_ESTIMATOR_COG, live));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_QUAD_GAIN,
      g_param_spec_double ("quad-gain", "Gain of the quad cell",
          "Pixels for all light in one half, with estimator=quad", 1e-9, 1e6, 1,
          live));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_WINDOW,
      g_param_spec_enum ("window", "Window",
          "Where a cell is looked for; the reference stays",
          gst_imaging_enum_type ("GstShCentroidWindow", window_values),
          IMK_SHCENTROID_WINDOW_CELL, live));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_TRACKING_GAIN,
      g_param_spec_double ("tracking-gain", "Gain of the tracking",
          "A valid centroid c moves the tracked position t, which starts at "
          "the reference, by tracking-gain (c - t)",
          0, 1, 1, live));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_TRACKING_RESET,
      g_param_spec_uint ("tracking-reset", "Reset of the tracking",
          "Invalid frames in a row after which the tracked position of a cell "
          "is the reference again; 0 for never",
          0, G_MAXINT, 0, live));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_REMOVE_TILT,
      g_param_spec_boolean ("remove-tilt", "Remove tip and tilt",
          "dx and dy are less their mean over the valid cells; x and y stay",
          FALSE, live));
}

void
gst_sh_centroid_pixels_install (GObjectClass *klass)
{
  install_calibration (klass);
  install_selection (klass);
  install_estimator (klass);
}

/* The calibration that a property locates. Returns: whether it does */
static gboolean
kind_of (guint id, GstShCentroidCalibrationKind *kind)
{
  switch (id) {
  case GST_SH_CENTROID_PROP_DARK_LOCATION:
    *kind = GST_SH_CENTROID_DARK;
    return TRUE;
  case GST_SH_CENTROID_PROP_FLAT_LOCATION:
    *kind = GST_SH_CENTROID_FLAT;
    return TRUE;
  case GST_SH_CENTROID_PROP_BAD_PIXELS_LOCATION:
    *kind = GST_SH_CENTROID_BAD_PIXELS;
    return TRUE;
  case GST_SH_CENTROID_PROP_LUT_LOCATION:
    *kind = GST_SH_CENTROID_LUT;
    return TRUE;
  }
  return FALSE;
}

gboolean
gst_sh_centroid_pixels_set (ImkShcentroidConfig *config,
    GstShCentroidCalibration *calibration, guint id, const GValue *value,
    gboolean *is_geometry)
{
  GstShCentroidCalibrationKind kind;

  *is_geometry = TRUE;
  if (kind_of (id, &kind)) {
    gst_sh_centroid_calibration_locate (
        calibration, kind, g_value_get_string (value));
    return TRUE;
  }
  *is_geometry = id == GST_SH_CENTROID_PROP_MARGIN;
  switch (id) {
  case GST_SH_CENTROID_PROP_MARGIN:
    config->margin = g_value_get_uint (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_THRESHOLD_LEAST:
    config->threshold_least = g_value_get_double (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_BRIGHTEST:
    config->brightest = g_value_get_uint (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_WEIGHTING:
    config->weighting = g_value_get_enum (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_SIGMA:
    config->sigma = g_value_get_double (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_ITERATIONS:
    config->iterations = g_value_get_uint (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_POWER:
    config->power = g_value_get_double (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_ESTIMATOR:
    config->estimator = g_value_get_enum (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_QUAD_GAIN:
    config->quad_gain = g_value_get_double (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_WINDOW:
    config->window = g_value_get_enum (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_TRACKING_GAIN:
    config->tracking_gain = g_value_get_double (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_TRACKING_RESET:
    config->tracking_reset = g_value_get_uint (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_REMOVE_TILT:
    config->remove_tilt = g_value_get_boolean (value);
    return TRUE;
  }
  return FALSE;
}

gboolean
gst_sh_centroid_pixels_get (const ImkShcentroidConfig *config,
    const GstShCentroidCalibration *calibration, guint id, GValue *value)
{
  GstShCentroidCalibrationKind kind;

  if (kind_of (id, &kind)) {
    g_value_set_string (value, calibration->location[kind]);
    return TRUE;
  }
  switch (id) {
  case GST_SH_CENTROID_PROP_MARGIN:
    g_value_set_uint (value, config->margin);
    return TRUE;
  case GST_SH_CENTROID_PROP_THRESHOLD_LEAST:
    g_value_set_double (value, config->threshold_least);
    return TRUE;
  case GST_SH_CENTROID_PROP_BRIGHTEST:
    g_value_set_uint (value, config->brightest);
    return TRUE;
  case GST_SH_CENTROID_PROP_WEIGHTING:
    g_value_set_enum (value, config->weighting);
    return TRUE;
  case GST_SH_CENTROID_PROP_SIGMA:
    g_value_set_double (value, config->sigma);
    return TRUE;
  case GST_SH_CENTROID_PROP_ITERATIONS:
    g_value_set_uint (value, config->iterations);
    return TRUE;
  case GST_SH_CENTROID_PROP_POWER:
    g_value_set_double (value, config->power);
    return TRUE;
  case GST_SH_CENTROID_PROP_ESTIMATOR:
    g_value_set_enum (value, config->estimator);
    return TRUE;
  case GST_SH_CENTROID_PROP_QUAD_GAIN:
    g_value_set_double (value, config->quad_gain);
    return TRUE;
  case GST_SH_CENTROID_PROP_WINDOW:
    g_value_set_enum (value, config->window);
    return TRUE;
  case GST_SH_CENTROID_PROP_TRACKING_GAIN:
    g_value_set_double (value, config->tracking_gain);
    return TRUE;
  case GST_SH_CENTROID_PROP_TRACKING_RESET:
    g_value_set_uint (value, config->tracking_reset);
    return TRUE;
  case GST_SH_CENTROID_PROP_REMOVE_TILT:
    g_value_set_boolean (value, config->remove_tilt);
    return TRUE;
  }
  return FALSE;
}

/* --- calibration --------------------------------------------------------- */

void
gst_sh_centroid_calibration_locate (GstShCentroidCalibration *self,
    GstShCentroidCalibrationKind kind, const gchar *location)
{
  g_free (self->location[kind]);
  self->location[kind] = location && *location ? g_strdup (location) : NULL;
  g_clear_pointer (&self->captured[kind], g_bytes_unref);
}

void
gst_sh_centroid_calibration_take (GstShCentroidCalibration *self,
    GstShCentroidCalibrationKind kind, GBytes *data, const gchar *location)
{
  gst_sh_centroid_calibration_locate (self, kind, location);
  self->captured[kind] = data;
}

GstShCentroidCalibration
gst_sh_centroid_calibration_copy (const GstShCentroidCalibration *self)
{
  GstShCentroidCalibration copy = *self;

  for (guint i = 0; i < GST_SH_CENTROID_N_CALIBRATIONS; i++) {
    copy.location[i] = g_strdup (self->location[i]);
    copy.captured[i] =
        self->captured[i] ? g_bytes_ref (self->captured[i]) : NULL;
  }
  return copy;
}

void
gst_sh_centroid_calibration_clear (GstShCentroidCalibration *self)
{
  for (guint i = 0; i < GST_SH_CENTROID_N_CALIBRATIONS; i++) {
    g_clear_pointer (&self->location[i], g_free);
    g_clear_pointer (&self->captured[i], g_bytes_unref);
  }
}

/* Returns: (transfer full) (nullable): what was captured, or the file; NULL
 * with IMK_OK in @status when there is neither */
static gpointer
load (const GstShCentroidCalibration *self, GstShCentroidCalibrationKind kind,
    const gchar *property, guint64 n_rows, guint64 n_columns, gsize value_size,
    ImkStatus *status, ImkError *error)
{
  gsize size = (gsize) (n_rows * n_columns) * value_size;
  gpointer values = NULL;

  if (*status != IMK_OK)
    return NULL;
  if (self->captured[kind] && g_bytes_get_size (self->captured[kind]) != size)
    *status = imk_error_set (error, IMK_ERROR_CONFIG,
        "The captured %s is of another frame or grid than this one. Set %s, to "
        "\"\" for none; then it can be captured again.",
        gst_sh_centroid_calibration_name (kind), property);
  else if (self->captured[kind])
    values = g_memdup2 (g_bytes_get_data (self->captured[kind], NULL), size);
  else if (self->location[kind] && value_size == sizeof (gdouble))
    values = gst_sh_centroid_load_references (
        self->location[kind], (guint32) n_rows, error);
  else if (self->location[kind])
    values = gst_sh_centroid_load_floats (
        property, self->location[kind], n_rows, n_columns, error);
  if (*status == IMK_OK && self->location[kind] && !values)
    *status = IMK_ERROR_FILE;
  return values;
}

/* Returns: (transfer full) (nullable): 1 where @values are not 0 */
static guint8 *
to_flags (const gfloat *values, gsize n)
{
  guint8 *flags = values ? g_new (guint8, n) : NULL;

  for (gsize i = 0; values && i < n; i++)
    flags[i] = values[i] != 0;
  return flags;
}

ImkStatus
gst_sh_centroid_tables_load (GstShCentroidTables *tables,
    const GstShCentroidCalibration *calibration, ImkShcentroidConfig *config,
    ImkError *error)
{
  guint64 width = config->width, height = config->height;
  guint64 n_samples = config->type == IMK_TYPE_U8 ? 256 : 65536;
  ImkStatus status = IMK_OK;
  gfloat *bad;

  tables->dark = load (calibration, GST_SH_CENTROID_DARK, "dark-location",
      height, width, sizeof (gfloat), &status, error);
  tables->flat = load (calibration, GST_SH_CENTROID_FLAT, "flat-location",
      height, width, sizeof (gfloat), &status, error);
  bad = load (calibration, GST_SH_CENTROID_BAD_PIXELS, "bad-pixels-location",
      height, width, sizeof (gfloat), &status, error);
  tables->lut = load (calibration, GST_SH_CENTROID_LUT, "lut-location", 1,
      n_samples, sizeof (gfloat), &status, error);
  tables->references =
      load (calibration, GST_SH_CENTROID_REFERENCE, "reference-location",
          imk_shcentroid_n_cells (config), 2, sizeof (gdouble), &status, error);
  tables->bad = to_flags (bad, (gsize) (width * height));
  g_free (bad);
  config->dark = tables->dark;
  config->flat = tables->flat;
  config->bad = tables->bad;
  config->lut = tables->lut;
  config->references = tables->references;
  return status;
}

void
gst_sh_centroid_tables_clear (GstShCentroidTables *tables)
{
  g_clear_pointer (&tables->dark, g_free);
  g_clear_pointer (&tables->flat, g_free);
  g_clear_pointer (&tables->lut, g_free);
  g_clear_pointer (&tables->templates, g_free);
  g_clear_pointer (&tables->bad, g_free);
  g_clear_pointer (&tables->references, g_free);
}
