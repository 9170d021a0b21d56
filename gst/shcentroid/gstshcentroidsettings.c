/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidsettings.h"

#include "gstshcentroidfiles.h"
#include "gstshcentroidpupils.h"

/* Where a double property has no natural end: beyond every frame. */
#define FAR 1e6

static const GEnumValue threshold_mode_values[] = {
    {IMK_SHCENTROID_THRESHOLD_NONE, "Every sample counts", "none"},
    {IMK_SHCENTROID_THRESHOLD_ABSOLUTE, "T = threshold, in counts", "absolute"},
    {IMK_SHCENTROID_THRESHOLD_RELATIVE,
        "T = threshold * the largest value of the cell", "relative"},
    {IMK_SHCENTROID_THRESHOLD_RANGE,
        "T = smallest + threshold * (largest - smallest value of the cell)",
        "range"},
    {IMK_SHCENTROID_THRESHOLD_NOISE, "T = threshold * read-noise", "noise"},
    {GST_SH_CENTROID_THRESHOLD_AUTO,
        "As range; threshold, threshold-least and min-flux, where they are 0, "
        "are chosen from the borders of the cells in the first frame",
        "auto"},
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
    {IMK_SHCENTROID_ESTIMATOR_MATCHED,
        "Matched filter: the shift, brightness and background with which the "
        "template fits the cell best, by gain and read-noise; to a pixel",
        "matched"},
    {IMK_SHCENTROID_ESTIMATOR_PUPILS,
        "Pyramid sensor: normalised differences of the four pupil images of "
        "pupils-location",
        "pupils"},
    {0, NULL, NULL},
};

static const GEnumValue normalisation_values[] = {
    {IMK_SHCENTROID_NORMALISATION_LOCAL, "The flux of the cell", "local"},
    {IMK_SHCENTROID_NORMALISATION_GLOBAL,
        "The mean flux of the valid cells of the frame", "global"},
    {0, NULL, NULL},
};

static const GEnumValue window_values[] = {
    {IMK_SHCENTROID_WINDOW_CELL, "A cell stays where it is", "cell"},
    {IMK_SHCENTROID_WINDOW_TRACKING,
        "It moves with the tracked position, in whole pixels", "tracking"},
    {0, NULL, NULL},
};

static const GEnumValue source_values[] = {
    {IMK_SHCENTROID_TEMPLATE_STORED,
        "template-location, or what capture-template has captured", "stored"},
    {IMK_SHCENTROID_TEMPLATE_FRAME,
        "The cell template-cell of each frame itself: a live reference",
        "frame"},
    {0, NULL, NULL},
};

static const GEnumValue correlation_values[] = {
    {IMK_SHCENTROID_CORRELATION_NORMALISED,
        "Covariance of what lies in both, divided by both standard deviations: "
        "scenes that go on beyond the cell",
        "normalised"},
    {IMK_SHCENTROID_CORRELATION_COVARIANCE,
        "Sum of products, less the means of cell and template: spots",
        "covariance"},
    {IMK_SHCENTROID_CORRELATION_DIFFERENCE,
        "The least mean square of the difference, less the means of what lies "
        "in both; the template has to be as bright as the cell",
        "difference"},
    {0, NULL, NULL},
};

static const GEnumValue peak_fit_values[] = {
    {IMK_SHCENTROID_PEAK_PARABOLOID,
        "A paraboloid by all nine scores about the best: oblique structure",
        "paraboloid"},
    {IMK_SHCENTROID_PEAK_PARABOLA, "A parabola in x and one in y", "parabola"},
    {0, NULL, NULL},
};

static const GEnumValue grid_rule_values[] = {
    {IMK_SHCENTROID_RULE_SINGLE_FLOOR,
        "Neighbours share an edge: every pixel belongs to one cell",
        "single-floor"},
    {IMK_SHCENTROID_RULE_PAPER,
        "floor (floor (x0 + c d) + d) ends a cell, as Mocci et al. write it",
        "paper"},
    {0, NULL, NULL},
};

static const GEnumValue slope_unit_values[] = {
    {GST_SH_CENTROID_SLOPE_PX, "Pixels", "px"},
    {GST_SH_CENTROID_SLOPE_RAD,
        "Radians: pixels times pixel-size / focal-length", "rad"},
    {0, NULL, NULL},
};

static const GEnumValue lattice_values[] = {
    {IMK_SHCENTROID_LATTICE_ANY, "Whichever fits more spots", "any"},
    {IMK_SHCENTROID_LATTICE_SQUARE, "Square", "square"},
    {IMK_SHCENTROID_LATTICE_HEXAGONAL, "Hexagonal", "hexagonal"},
    {0, NULL, NULL},
};

/* --- files ---------------------------------------------------------------- */

/* One of a wrong length is refused with the length that the frame needs. */
static gpointer
load_lut (const gchar *property, const gchar *location, ImkError *error)
{
  GstShCentroidArray *array =
      gst_sh_centroid_array_load (property, location, error);
  gboolean fits =
      array && (gst_sh_centroid_array_has_shape (array, 1, 256) ||
                   gst_sh_centroid_array_has_shape (array, 1, 65536));

  if (fits &&
      !gst_sh_centroid_array_check_finite (array, property, location, error))
    g_clear_pointer (&array, g_free);
  return array;
}

const gchar *
gst_sh_centroid_settings_file_property (GstShCentroidCalibrationKind kind)
{
  static const gchar *const names[GST_SH_CENTROID_N_CALIBRATIONS] = {
      "dark-location", "flat-location", "reference-location",
      "template-location", "bad-pixels-location", "lut-location"};

  return names[kind];
}

/* --- the table ------------------------------------------------------------ */

enum { CELLS = GST_SH_CENTROID_SETTINGS_CELLS };

static const GstImagingSetting settings[] = {
    GST_IMAGING_DOUBLE ("x0", LIVE, CELLS, GstShCentroidSettings, config.x0,
        -FAR, FAR, "px",
        "Left edge of the first column of cells, in pixels. Column c covers "
        "the pixels from floor (x0 + c * pitch-x) to floor (x0 + (c + 1) * "
        "pitch-x) - 1"),
    GST_IMAGING_DOUBLE ("y0", LIVE, CELLS, GstShCentroidSettings, config.y0,
        -FAR, FAR, "px",
        "Top edge of the first row of cells, in pixels. Row r covers the lines "
        "from floor (y0 + r * pitch-y) to floor (y0 + (r + 1) * pitch-y) - 1"),
    GST_IMAGING_DOUBLE ("pitch-x", LIVE, CELLS, GstShCentroidSettings,
        config.pitch_x, -FAR, FAR, "px",
        "Width of a cell in pixels, at least 1; fractions are allowed"),
    GST_IMAGING_DOUBLE ("pitch-y", LIVE, CELLS, GstShCentroidSettings,
        config.pitch_y, -FAR, FAR, "px",
        "Height of a cell in pixels, at least 1; fractions are allowed"),
    GST_IMAGING_UINT ("columns", LIVE, CELLS, GstShCentroidSettings,
        config.columns, 0, G_MAXUINT16, NULL,
        "Number of cells in a row of the grid. Required without map-location"),
    GST_IMAGING_UINT ("rows", LIVE, CELLS, GstShCentroidSettings, config.rows,
        0, G_MAXUINT16, NULL,
        "Number of rows of cells in the grid. Required without map-location"),
    GST_IMAGING_PATH ("map-location", LIVE, CELLS, GstShCentroidSettings, map,
        gst_sh_centroid_map_load, g_free,
        "Array file [n, 4..12] of cells that replaces the grid: x, y, width, "
        "height in pixels, then optionally ref-x, ref-y, min-flux, threshold "
        "(NaN: the value of the property). Cells may overlap"),
    GST_IMAGING_ENUM ("grid-rule", LIVE, CELLS, GstShCentroidSettings,
        config.grid_rule, "GstShCentroidGridRule", grid_rule_values,
        "Which pixels belong to a cell of the grid. Both rules agree if the "
        "pitch is a whole number of pixels"),
    GST_IMAGING_DOUBLE ("aperture", LIVE, CELLS, GstShCentroidSettings,
        optics.aperture_mm, 0, 1e9, "mm",
        "Diameter of the beam on the lenslets in mm. Above 0 the grid is "
        "computed from it and replaces columns, rows and pitches: floor "
        "(aperture / lenslet-pitch) cells a side of lenslet-pitch / pixel-size "
        "pixels, in the middle of the frame, moved by x0 and y0"),
    GST_IMAGING_DOUBLE ("lenslet-pitch", LIVE, CELLS, GstShCentroidSettings,
        optics.lenslet_pitch_um, 0, 1e9, "um",
        "Distance between neighbouring lenslets in micrometres, used with "
        "aperture"),
    GST_IMAGING_DOUBLE ("pixel-size", LIVE, CELLS, GstShCentroidSettings,
        optics.pixel_size_um, 0, 1e9, "um",
        "Size of a detector pixel in micrometres, used with aperture and "
        "slope-unit=rad. Behind a relay, divide it by the magnification"),
    GST_IMAGING_DOUBLE ("focal-length", LIVE, 0, GstShCentroidSettings,
        optics.focal_length_mm, 0, 1e9, "mm",
        "Focal length of the lenslets in mm, used with slope-unit=rad"),
    GST_IMAGING_ENUM ("slope-unit", LIVE, 0, GstShCentroidSettings, slope_unit,
        "GstShCentroidSlopeUnit", slope_unit_values,
        "Unit of dx and dy. All other results stay in pixels"),
    GST_IMAGING_OUTPUT ("find-grid-location", LIVE, 0, GstShCentroidSettings,
        find,
        "Array file to write. The element finds the lenslet grid in the next "
        "frame, writes it to this file and measures with it, like the action "
        "find-grid; for use with gst-launch-1.0"),
    GST_IMAGING_ENUM ("lattice", LIVE, 0, GstShCentroidSettings, lattice,
        "GstShCentroidLattice", lattice_values,
        "Arrangement of the lenslets that find-grid searches for"),
    GST_IMAGING_PATH ("reference-location", LIVE, CELLS, GstShCentroidSettings,
        files[GST_SH_CENTROID_REFERENCE], gst_sh_centroid_array_load_finite,
        g_free,
        "Array file [cells, 2] with the reference x and y of each cell, in "
        "pixels. Slopes are measured from there. Without a file the references "
        "are the centres of the cells"),
    GST_IMAGING_ENUM ("fields", LIVE, CELLS, GstShCentroidSettings,
        config.fields, "GstShCentroidFields", fields_values,
        "Values that are output for each cell"),
    GST_IMAGING_UINT ("margin", LIVE, CELLS, GstShCentroidSettings,
        config.margin, 0, G_MAXUINT16, "px",
        "Number of pixels ignored at each edge of every cell. The references "
        "do not move"),
    GST_IMAGING_PATH ("dark-location", LIVE, CELLS, GstShCentroidSettings,
        files[GST_SH_CENTROID_DARK], gst_sh_centroid_array_load_finite, g_free,
        "Array file [height, width] of counts that are subtracted from the "
        "samples. It replaces a captured dark frame"),
    GST_IMAGING_PATH ("flat-location", LIVE, CELLS, GstShCentroidSettings,
        files[GST_SH_CENTROID_FLAT], gst_sh_centroid_array_load_finite, g_free,
        "Array file [height, width] of factors for the samples after the dark "
        "frame is subtracted; 0 marks a bad pixel. It replaces a captured flat"),
    GST_IMAGING_PATH ("bad-pixels-location", LIVE, CELLS, GstShCentroidSettings,
        files[GST_SH_CENTROID_BAD_PIXELS], gst_sh_centroid_array_load_finite,
        g_free,
        "Array file [height, width]. Pixels that are not 0 there are ignored "
        "everywhere"),
    GST_IMAGING_PATH ("lut-location", LIVE, CELLS, GstShCentroidSettings,
        files[GST_SH_CENTROID_LUT], load_lut, g_free,
        "Array file with the value of each possible sample, 256 numbers for "
        "GRAY8 or 65536 for GRAY16_LE. It is applied before the dark frame is "
        "subtracted"),
    GST_IMAGING_ENUM ("threshold-mode", LIVE, 0, GstShCentroidSettings,
        threshold_mode, "GstShCentroidThresholdMode", threshold_mode_values,
        "How the threshold T of a cell is computed. Samples below T are "
        "ignored"),
    GST_IMAGING_DOUBLE ("threshold", LIVE, 0, GstShCentroidSettings,
        config.threshold, 0, 1e9, NULL,
        "Value from which T is computed, in the unit of threshold-mode: "
        "counts, a fraction from 0 to 1, or multiples of read-noise"),
    GST_IMAGING_DOUBLE ("threshold-least", LIVE, 0, GstShCentroidSettings,
        config.threshold_least, 0, 1e9, "counts",
        "Smallest T in counts, with threshold-mode relative, range or auto"),
    GST_IMAGING_ENUM ("threshold-action", LIVE, 0, GstShCentroidSettings,
        config.threshold_action, "GstShCentroidThresholdAction",
        threshold_action_values, "Value of a sample v after the threshold T"),
    GST_IMAGING_UINT ("brightest", LIVE, 0, GstShCentroidSettings,
        config.brightest, 0, G_MAXINT, "px",
        "Number of brightest pixels of a cell that are used, ties included; 0: "
        "all. With threshold-action=subtract the next lower value is "
        "subtracted"),
    GST_IMAGING_ENUM ("weighting", LIVE, 0, GstShCentroidSettings,
        config.weighting, "GstShCentroidWeighting", weighting_values,
        "Weight of each pixel, applied after the threshold"),
    GST_IMAGING_DOUBLE ("sigma", LIVE, 0, GstShCentroidSettings, config.sigma,
        0.01, 1e6, "px",
        "Width of the Gaussian weight, in pixels. With a fixed centre, a spot "
        "of width s seems to move by only sigma^2 / (sigma^2 + s^2) of its "
        "true shift"),
    GST_IMAGING_UINT ("iterations", LIVE, 0, GstShCentroidSettings,
        config.iterations, 1, 100, NULL,
        "How often each cell is measured with weighting. From the second time "
        "on, the weight is centred on the last centroid"),
    GST_IMAGING_DOUBLE ("power", LIVE, 0, GstShCentroidSettings, config.power,
        1, 4, NULL,
        "Exponent that is applied to each pixel after threshold and weight"),
    GST_IMAGING_ENUM ("estimator", LIVE, 0, GstShCentroidSettings,
        config.estimator, "GstShCentroidEstimator", estimator_values,
        "Method that locates a spot"),
    GST_IMAGING_PATH ("template-location", LIVE, CELLS, GstShCentroidSettings,
        files[GST_SH_CENTROID_TEMPLATE], gst_sh_centroid_array_load, g_free,
        "Array file [height, width] with one template for all cells, or "
        "[cells, height, width] with one for each, used with "
        "estimator=correlation and matched. A template is at most as large as a "
        "cell. It replaces a captured template"),
    GST_IMAGING_PATH ("pupils-location", LIVE, CELLS, GstShCentroidSettings,
        pupils, gst_sh_centroid_pupils_load, gst_sh_centroid_pupils_free,
        "Array file for estimator=pupils, of the size of the frame: [height, "
        "width] with 1 to 4 in the pixels of that pupil image and 0 elsewhere, "
        "or [4, height, width] with a mask for each. All four have as many "
        "pixels"),
    GST_IMAGING_ENUM ("normalisation", LIVE, 0, GstShCentroidSettings,
        config.normalisation, "GstShCentroidNormalisation",
        normalisation_values,
        "Divisor of the differences of pupil images, with estimator=pupils"),
    GST_IMAGING_ENUM ("template-source", LIVE, CELLS, GstShCentroidSettings,
        config.template_source, "GstShCentroidTemplateSource", source_values,
        "Source of the template"),
    GST_IMAGING_INT ("template-cell", LIVE, CELLS, GstShCentroidSettings,
        config.template_cell, -1, G_MAXINT, NULL,
        "Number of the cell, from 0, that the template was taken from: shifts "
        "are measured from the centre of that cell. template-source=frame and "
        "capture-template take this cell. -1: none; capture-template takes one "
        "template from each cell"),
    GST_IMAGING_UINT ("template-margin", LIVE, CELLS, GstShCentroidSettings,
        config.template_margin, 0, G_MAXUINT16, "px",
        "Pixels by which a template taken from a cell is smaller than the "
        "smallest cell, at each edge. From search-range on, the shifted "
        "template always stays in the cell"),
    GST_IMAGING_ENUM ("correlation", LIVE, 0, GstShCentroidSettings,
        config.correlation, "GstShCentroidCorrelation", correlation_values,
        "How similarity of template and cell is measured, with "
        "estimator=correlation"),
    GST_IMAGING_ENUM ("peak-fit", LIVE, 0, GstShCentroidSettings,
        config.peak_fit, "GstShCentroidPeakFit", peak_fit_values,
        "How the peak of the correlation is located to a fraction of a pixel"),
    GST_IMAGING_UINT ("search-range", LIVE, 0, GstShCentroidSettings,
        config.search_range, 1, IMK_SHCENTROID_MAX_SEARCH_RANGE, "px",
        "Largest shift of the template from the middle of the cell, in whole "
        "pixels, at most half a cell. A best match at this limit is invalid "
        "(flag 32)"),
    GST_IMAGING_DOUBLE ("min-correlation", LIVE, 0, GstShCentroidSettings,
        config.min_correlation, 0, 1, NULL,
        "Smallest valid normalised correlation, 0 to 1. A cell below it is "
        "invalid (flag 32)"),
    GST_IMAGING_DOUBLE ("quad-gain", LIVE, 0, GstShCentroidSettings,
        config.quad_gain, 1e-9, 1e6, "px",
        "Offset in pixels that is reported if all light is in one half, with "
        "estimator=quad"),
    GST_IMAGING_ENUM ("window", LIVE, 0, GstShCentroidSettings, config.window,
        "GstShCentroidWindow", window_values,
        "Where the pixels of a cell are taken from. The reference does not "
        "move"),
    GST_IMAGING_DOUBLE ("tracking-gain", LIVE, 0, GstShCentroidSettings,
        config.tracking_gain, 0, 1, NULL,
        "Gain g of the tracked position t, which starts at the reference: a "
        "valid centroid c moves t by g (c - t)"),
    GST_IMAGING_UINT ("tracking-reset", LIVE, 0, GstShCentroidSettings,
        config.tracking_reset, 0, G_MAXINT, "frames",
        "Number of invalid frames in a row after which the tracked position "
        "returns to the reference; 0: never"),
    GST_IMAGING_BOOLEAN ("remove-tilt", LIVE, 0, GstShCentroidSettings,
        config.remove_tilt,
        "Subtract the mean of dx and dy over the valid cells from dx and dy. x "
        "and y do not change"),
    GST_IMAGING_DOUBLE ("min-flux", LIVE, 0, GstShCentroidSettings,
        config.min_flux, 0, G_MAXDOUBLE, "counts",
        "Smallest valid flux of a cell in counts, after the threshold. A cell "
        "below it is invalid (flag 2)"),
    GST_IMAGING_DOUBLE ("min-illumination", LIVE, 0, GstShCentroidSettings,
        config.min_illumination, 0, 1, NULL,
        "Smallest valid flux of a cell as a share of the flux of the brightest "
        "cell of the frame, 0 to 1. A cell below it is invalid (flag 2); 0: "
        "off"),
    GST_IMAGING_ENUM ("invalid-policy", LIVE, 0, GstShCentroidSettings,
        config.invalid_policy, "GstShCentroidInvalidPolicy",
        invalid_policy_values,
        "Values that an invalid cell reports. Its flags always mark it"),
    GST_IMAGING_UINT ("bit-depth", LIVE, 0, GstShCentroidSettings, bit_depth, 0,
        16, "bits",
        "Number of significant low bits of a sample, for the default "
        "saturation: 10, 12 or 14 of most cameras; 0: all bits of the format"),
    GST_IMAGING_DOUBLE ("saturation", LIVE, 0, GstShCentroidSettings,
        saturation, -1, 1e30, "counts",
        "Samples at or above this count are saturated, and their cell gets "
        "flag 4. 0: largest value of bit-depth; -1: never"),
    GST_IMAGING_DOUBLE ("gain", LIVE, 0, GstShCentroidSettings, config.gain, 0,
        1e9, "electrons/count",
        "Electrons per count, above 0, for the photon noise in var_x and var_y"),
    GST_IMAGING_DOUBLE ("read-noise", LIVE, 0, GstShCentroidSettings,
        config.read_noise, 0, 1e6, "counts",
        "Read noise of a sample in counts rms, for var_x and var_y"),
};

static void
init_settings (gpointer data)
{
  GstShCentroidSettings *s = data;

  imk_shcentroid_config_init (&s->config);
  s->config.columns = s->config.rows = 0;
  s->config.pitch_x = s->config.pitch_y = 0;
}

const GstImagingSettingsTable gst_sh_centroid_settings_table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (GstShCentroidSettings),
    .replan = CELLS,
    .init = init_settings,
    .apply = gst_sh_centroid_apply,
};

/* --- what they mean ------------------------------------------------------- */

/* 0 counts stands for the largest sample of the format, -1 for never. */
gdouble
gst_sh_centroid_settings_saturation (
    const GstShCentroidSettings *settings, ImkType type)
{
  guint bits = settings->bit_depth   ? settings->bit_depth
               : type == IMK_TYPE_U8 ? 8
                                     : 16;

  if (settings->saturation != 0)
    return MAX (settings->saturation, 0);
  /* float32 has no largest sample of its own */
  return type == IMK_TYPE_F32 && settings->bit_depth == 0 ? 0
                                                          : (1u << bits) - 1;
}

static gdouble
chosen (gdouble set, gboolean is_known, gdouble proposal, gdouble otherwise)
{
  return set > 0 ? set : is_known ? proposal : otherwise;
}

/* The estimators after correlation look at no threshold. */
gboolean
gst_sh_centroid_settings_choose (const GstShCentroidSettings *s)
{
  return s->threshold_mode == GST_SH_CENTROID_THRESHOLD_AUTO &&
         s->config.estimator <= IMK_SHCENTROID_ESTIMATOR_CORRELATION;
}

void
gst_sh_centroid_settings_threshold (const GstShCentroidSettings *s,
    const ImkShcentroidLight *light, ImkShcentroidConfig *config)
{
  gboolean known = light->n_lit > 0;

  config->threshold = s->config.threshold;
  config->threshold_least = s->config.threshold_least;
  config->min_flux = s->config.min_flux;
  if (!gst_sh_centroid_settings_choose (s)) {
    config->threshold_mode = s->threshold_mode == GST_SH_CENTROID_THRESHOLD_AUTO
                                 ? IMK_SHCENTROID_THRESHOLD_NONE
                                 : (ImkShcentroidThreshold) s->threshold_mode;
    return;
  }
  config->threshold_mode = IMK_SHCENTROID_THRESHOLD_RANGE;
  config->threshold = chosen (
      config->threshold, known, light->fraction, IMK_SHCENTROID_FIRST_FRACTION);
  config->threshold_least =
      chosen (config->threshold_least, known, light->least, 0);
  config->min_flux = chosen (config->min_flux, known, light->min_flux, 0);
}

gboolean
gst_sh_centroid_settings_have_grid (const GstShCentroidSettings *s)
{
  return s->config.estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS || s->map ||
         s->optics.aperture_mm > 0 || (s->config.columns && s->config.rows);
}

ImkStatus
gst_sh_centroid_settings_scale (const GstShCentroidSettings *s,
    ImkShcentroidConfig *config, ImkError *error)
{
  config->slope_scale = 1;
  if (s->slope_unit != GST_SH_CENTROID_SLOPE_PX &&
      s->config.estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "slope-unit is rad, but slopes of estimator=pupils have no unit. Set "
        "slope-unit=px.");
  return s->slope_unit == GST_SH_CENTROID_SLOPE_PX
             ? IMK_OK
             : imk_shcentroid_optics_slope (
                   &s->optics, &config->slope_scale, error);
}

ImkStatus
gst_sh_centroid_settings_cells (const GstShCentroidSettings *s,
    ImkShcentroidConfig *config, ImkError *error)
{
  const GstShCentroidMap *map = gst_imaging_setting_file_data (s->map);

  if (s->config.estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS)
    return gst_sh_centroid_pupils_use (s->pupils, config, error);
  if (map) {
    config->cells = map->cells;
    config->n_cells = map->n_cells;
  } else if (s->optics.aperture_mm > 0) {
    return imk_shcentroid_optics_grid (&s->optics, config, error);
  }
  return IMK_OK;
}
