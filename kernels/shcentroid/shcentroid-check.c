/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Validation, and what becomes of the parameters; the same for both backends.
 * The comparisons are written so that a NaN fails them. */
#include "core/config.h"
#include "shcentroid/shcentroid-check.h"

#include <math.h>

#include "shcentroid/shcentroid-cells.h"
#include "shcentroid/shcentroid-templates.h"

typedef ImkShcentroidBox Box;

static bool
is_at_least (double value, double minimum)
{
  return value >= minimum && isfinite (value);
}

static ImkStatus
check_at_least (
    const char *property, double value, double minimum, ImkError *error)
{
  if (is_at_least (value, minimum))
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s is %g; it must be a finite number of at least %g.", property, value,
      minimum);
}

static ImkStatus
check_choice (const char *property, unsigned value, unsigned n, ImkError *error)
{
  if (value < n)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s is %u; the choices are 0 to %u.", property, value, n - 1);
}

static ImkStatus
check_between (const char *property, double value, double minimum,
    double maximum, ImkError *error)
{
  if (value >= minimum && value <= maximum)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s is %g; it must be a number from %g to %g.", property, value, minimum,
      maximum);
}

static ImkStatus
check_above_0 (
    const char *property, double value, const char *unit, ImkError *error)
{
  if (value > 0.0 && isfinite (value))
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s is %g %s; it must be a finite number above 0.", property, value,
      unit);
}

static ImkStatus
check_threshold (const ImkShcentroidConfig *c, ImkError *error)
{
  IMK_TRY (check_choice (
      "threshold-mode", c->threshold_mode, IMK_SHCENTROID_N_THRESHOLDS, error));
  IMK_TRY (check_choice ("threshold-action", c->threshold_action,
      IMK_SHCENTROID_ACTION_KEEP + 1, error));
  IMK_TRY (check_at_least ("threshold", c->threshold, 0.0, error));
  return check_at_least ("threshold-least", c->threshold_least, 0.0, error);
}

static ImkStatus
check_weight (const ImkShcentroidConfig *c, ImkError *error)
{
  IMK_TRY (check_choice (
      "weighting", c->weighting, IMK_SHCENTROID_WEIGHTING_TRACKING + 1, error));
  IMK_TRY (check_above_0 ("sigma", c->sigma, "pixels", error));
  IMK_TRY (check_between ("iterations", c->iterations, 1, 100, error));
  return check_between ("power", c->power, 1.0, 4.0, error);
}

static ImkStatus
check_correlation (const ImkShcentroidConfig *c, ImkError *error)
{
  IMK_TRY (check_choice ("correlation", c->correlation,
      IMK_SHCENTROID_CORRELATION_DIFFERENCE + 1, error));
  IMK_TRY (check_choice (
      "peak-fit", c->peak_fit, IMK_SHCENTROID_PEAK_PARABOLA + 1, error));
  IMK_TRY (check_between ("search-range", c->search_range, 1,
      IMK_SHCENTROID_MAX_SEARCH_RANGE, error));
  return check_between ("min-correlation", c->min_correlation, 0.0, 1.0, error);
}

/* The weights of the linear estimators belong to pixels. */
static ImkStatus
check_fixed (const ImkShcentroidConfig *c, ImkError *error)
{
  bool matched = c->estimator == IMK_SHCENTROID_ESTIMATOR_MATCHED;
  bool pupils = c->estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS;

  if (!(matched || pupils) || c->window == IMK_SHCENTROID_WINDOW_CELL)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "window is tracking, but estimator=%s measures pixels that do not move. "
      "Set window=cell.",
      matched ? "matched" : "pupils");
}

static ImkStatus
check_estimator (const ImkShcentroidConfig *c, ImkError *error)
{
  IMK_TRY (check_choice (
      "estimator", c->estimator, IMK_SHCENTROID_N_ESTIMATORS, error));
  IMK_TRY (check_above_0 ("quad-gain", c->quad_gain, "pixels", error));
  IMK_TRY (check_correlation (c, error));
  IMK_TRY (check_choice (
      "window", c->window, IMK_SHCENTROID_WINDOW_TRACKING + 1, error));
  IMK_TRY (check_choice ("normalisation", c->normalisation,
      IMK_SHCENTROID_NORMALISATION_GLOBAL + 1, error));
  IMK_TRY (check_fixed (c, error));
  return check_between ("tracking-gain", c->tracking_gain, 0.0, 1.0, error);
}

ImkStatus
imk_shcentroid_check_params (const ImkShcentroidConfig *c, ImkError *error)
{
  IMK_TRY (check_threshold (c, error));
  IMK_TRY (check_weight (c, error));
  IMK_TRY (check_estimator (c, error));
  IMK_TRY (check_choice ("invalid-policy", c->invalid_policy,
      IMK_SHCENTROID_INVALID_REFERENCE + 1, error));
  IMK_TRY (check_at_least ("min-flux", c->min_flux, 0.0, error));
  IMK_TRY (
      check_between ("min-illumination", c->min_illumination, 0.0, 1.0, error));
  IMK_TRY (check_at_least ("saturation", c->saturation, 0.0, error));
  IMK_TRY (check_at_least ("read-noise", c->read_noise, 0.0, error));
  IMK_TRY (check_above_0 ("gain", c->gain, "electrons a count", error));
  if (!(fabs (c->slope_scale) > 0.0) || !isfinite (c->slope_scale))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The slopes are multiplied with %g; it must be a finite number other "
        "than 0.",
        c->slope_scale);
  return IMK_OK;
}

ImkStatus
imk_shcentroid_check_has (const ImkShcentroidConfig *c, bool has_templates,
    bool has_filter, bool has_pupils, ImkError *error)
{
  bool matched = c->estimator == IMK_SHCENTROID_ESTIMATOR_MATCHED;
  bool searches = c->estimator == IMK_SHCENTROID_ESTIMATOR_CORRELATION;

  if (c->estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS && !has_pupils)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "estimator is pupils, but there are no pupil images. Set "
        "pupils-location to a file with the number of each of their pixels.");
  if (matched && c->template_source == IMK_SHCENTROID_TEMPLATE_FRAME)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "estimator is matched, which makes its weights before frames arrive: "
        "template-source=frame is none. Set template-location, or capture a "
        "template by capture-template.");
  if ((matched || searches) && !has_templates)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "estimator is %s, but there is no template to look for. Set "
        "template-location, capture one by capture-template, or%s take it from "
        "each frame by template-source=frame and template-cell.",
        matched ? "matched" : "correlation",
        matched ? ", with estimator=correlation," : "");
  if (matched && !has_filter)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "estimator is matched, but this object was made without its weights. "
        "Make a new one.");
  return IMK_OK;
}

static ImkStatus
check_matched (const ImkShcentroidConfig *c, ImkError *error)
{
  if (c->estimator != IMK_SHCENTROID_ESTIMATOR_MATCHED ||
      (c->template_width >= 5 && c->template_height >= 5))
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "estimator is matched and the template is %ux%u pixels; it needs at least "
      "5x5. Take larger cells, or a smaller template-margin.",
      c->template_width, c->template_height);
}

static ImkStatus
check_pupils (const ImkShcentroidConfig *c, ImkError *error)
{
  uint64_t n = c->pupils ? 4 * (uint64_t) c->n_cells : 0;

  if (c->pupils && c->n_cells == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are pupil images without a map of their cells. Take both from "
        "imk_shcentroid_find_pupils ().");
  for (uint64_t i = 0; i < n; i++)
    if (c->pupils[i] >= (uint64_t) c->width * c->height)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Pixel %u of pupil image %u is %u, outside the frame of %ux%u.",
          (unsigned) (i / 4), (unsigned) (i % 4 + 1), c->pupils[i], c->width,
          c->height);
  return IMK_OK;
}

static ImkStatus
check_frame (const ImkShcentroidConfig *c, ImkError *error)
{
  uint64_t pixels = (uint64_t) c->width * c->height;
  uint64_t n = imk_shcentroid_count_cells (c);

  if (c->width - 1 >= 65535 || c->height - 1 >= 65535)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The frame is %ux%u; it can have 1 to 65535 pixels a side.", c->width,
        c->height);
  if (c->type != IMK_TYPE_U8 && c->type != IMK_TYPE_U16 &&
      c->type != IMK_TYPE_F32)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The frame is of %s samples; it can be of u8, u16 or f32.",
        imk_type_name (c->type));
  if (n == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The grid has %u columns and %u rows of cells; it needs at least 1 of "
        "each, or a map-location.",
        c->columns, c->rows);
  if (n > pixels || n > INT32_MAX) /* a row of slopes holds 2 n numbers */
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "%llu cells are too many for the %llu pixels of a %ux%u frame. Take "
        "fewer columns or rows, or a map-location with fewer cells.",
        (unsigned long long) n, (unsigned long long) pixels, c->width,
        c->height);
  return IMK_OK;
}

static bool
overlaps (double from, double to, uint32_t size)
{
  return fmax (from, 0.0) < fmin (to, size);
}

/* Cells shrink to nothing only by rounding, far outside the frame. */
static ImkStatus
check_columns (const ImkShcentroidConfig *c, ImkError *error)
{
  for (uint32_t column = 0; column < c->columns; column++) {
    Box box = imk_shcentroid_grid_box (c, 0, column);

    if (!overlaps (box.left, box.right, c->width))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Cell (row 0, column %u) covers the columns [%g, %g), outside the "
          "%u pixels of a row: %u columns of pitch-x %.3f from x0 %.2f. Take "
          "fewer columns, or another x0 or pitch-x.",
          column, box.left, box.right, c->width, c->columns, c->pitch_x, c->x0);
  }
  return IMK_OK;
}

static ImkStatus
check_rows (const ImkShcentroidConfig *c, ImkError *error)
{
  for (uint32_t row = 0; row < c->rows; row++) {
    Box box = imk_shcentroid_grid_box (c, row, 0);

    if (!overlaps (box.top, box.bottom, c->height))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Cell (row %u, column 0) covers the rows [%g, %g), outside the %u "
          "rows of the frame: %u rows of pitch-y %.3f from y0 %.2f. Take fewer "
          "rows, or another y0 or pitch-y.",
          row, box.top, box.bottom, c->height, c->rows, c->pitch_y, c->y0);
  }
  return IMK_OK;
}

static ImkStatus
check_grid (const ImkShcentroidConfig *c, ImkError *error)
{
  if (!isfinite (c->x0) || !isfinite (c->y0))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The grid starts at x0 %g, y0 %g; both must be finite numbers of "
        "pixels.",
        c->x0, c->y0);
  if (c->pitch_x == 0 && c->pitch_y == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is a grid of %u by %u cells without their size. Set pitch-x and "
        "pitch-y, in pixels.",
        c->columns, c->rows);
  if (!is_at_least (c->pitch_x, 1.0) || !is_at_least (c->pitch_y, 1.0))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The cells are pitch-x %g by pitch-y %g pixels; both must be finite "
        "and at least 1.",
        c->pitch_x, c->pitch_y);
  IMK_TRY (check_columns (c, error));
  return check_rows (c, error);
}

/* Sums of such places and of pixels fit 32 bits, and float32 holds them. */
static bool
is_place (double pixels)
{
  return fabs (pixels) <= 1e9;
}

static ImkStatus
check_cell (const ImkShcentroidConfig *c, uint32_t row, ImkError *error)
{
  const ImkShcentroidCell *cell = &c->cells[row];
  Box box = imk_shcentroid_cell_box (cell);

  if (!is_place (cell->x) || !is_place (cell->y) ||
      !(cell->width >= 1.0 && cell->width <= 1e9) ||
      !(cell->height >= 1.0 && cell->height <= 1e9))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Row %u of map-location is a cell of %g x %g pixels at (%g, %g); the "
        "numbers must be from -1e9 to 1e9 and the sides at least 1.",
        row, cell->width, cell->height, cell->x, cell->y);
  if (!overlaps (box.left, box.right, c->width) ||
      !overlaps (box.top, box.bottom, c->height))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Row %u of map-location is a cell of columns [%g, %g) and rows "
        "[%g, %g), outside the frame of %ux%u. Remove the row or correct it.",
        row, box.left, box.right, box.top, box.bottom, c->width, c->height);
  if ((!isnan (cell->ref_x) && !is_place (cell->ref_x)) ||
      (!isnan (cell->ref_y) && !is_place (cell->ref_y)))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Row %u of map-location has the reference (%g, %g); both must be from "
        "-1e9 to 1e9, or nan for the centre of the cell.",
        row, cell->ref_x, cell->ref_y);
  if (cell->min_flux < 0.0 || isinf (cell->min_flux) || cell->threshold < 0.0 ||
      isinf (cell->threshold))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Row %u of map-location has min-flux %g and threshold %g; both must be "
        "finite and at least 0, or nan for the configured ones.",
        row, cell->min_flux, cell->threshold);
  return IMK_OK;
}

static ImkStatus
check_map (const ImkShcentroidConfig *c, ImkError *error)
{
  if (!c->cells)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "map-location promises %u cells, but there are none.", c->n_cells);
  for (uint32_t row = 0; row < c->n_cells; row++)
    IMK_TRY (check_cell (c, row, error));
  return IMK_OK;
}

static ImkStatus
check_references (const ImkShcentroidConfig *c, ImkError *error)
{
  uint32_t n = c->references ? imk_shcentroid_n_cells (c) : 0;

  for (uint32_t i = 0; i < n; i++)
    if (!is_place (c->references[2 * i]) ||
        !is_place (c->references[2 * i + 1]))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "The reference of cell %u is (%g, %g); both must be from -1e9 to 1e9 "
          "pixels. Leave the references out for the centres of the cells.",
          i, c->references[2 * i], c->references[2 * i + 1]);
  return IMK_OK;
}

/* One number a pixel, or a sample; @least to @most also excludes a NaN. */
static ImkStatus
check_table (const char *property, const float *values, size_t n,
    uint32_t width, double least, double most, ImkError *error)
{
  for (size_t i = 0; values && i < n; i++)
    if (!(values[i] >= least && values[i] <= most))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "%s has the value %g at (%u, %u); it must be a number from %g to %g.",
          property, values[i], (unsigned) (i % width), (unsigned) (i / width),
          least, most);
  return IMK_OK;
}

static ImkStatus
check_calibration (const ImkShcentroidConfig *c, ImkError *error)
{
  size_t n = (size_t) c->width * c->height;
  size_t n_samples = c->type == IMK_TYPE_U8 ? 256 : 65536;

  IMK_TRY (check_table ("The dark", c->dark, n, c->width, -1e6, 1e6, error));
  if (c->lut && c->type == IMK_TYPE_F32)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is a look-up table for frames of f32 samples, which have no "
        "place in it. Leave lut-location out, or send u8 or u16 frames.");
  IMK_TRY (check_table ("The flat", c->flat, n, c->width, 0.0, 1e6, error));
  return check_table (
      "The look-up table", c->lut, n_samples, 65536, -1e9, 1e9, error);
}

ImkStatus
imk_shcentroid_check_cells (const ImkShcentroidConfig *c, ImkError *error)
{
  IMK_TRY (check_frame (c, error));
  IMK_TRY (check_choice (
      "grid-rule", c->grid_rule, IMK_SHCENTROID_RULE_PAPER + 1, error));
  return c->n_cells ? check_map (c, error) : check_grid (c, error);
}

ImkStatus
imk_shcentroid_check_config (const ImkShcentroidConfig *c, ImkError *error)
{
  IMK_TRY (imk_shcentroid_check_cells (c, error));
  IMK_TRY (check_choice (
      "fields", c->fields, IMK_SHCENTROID_FIELDS_SLOPES + 1, error));
  IMK_TRY (check_references (c, error));
  IMK_TRY (check_calibration (c, error));
  IMK_TRY (imk_shcentroid_check_templates (c, error));
  IMK_TRY (check_pupils (c, error));
  /* new () makes the filter */
  IMK_TRY (imk_shcentroid_check_has (
      c, imk_shcentroid_has_templates (c), true, c->pupils != NULL, error));
  IMK_TRY (check_matched (c, error));
  return imk_shcentroid_check_params (c, error);
}

ImkShcentroidParams
imk_shcentroid_params (const ImkShcentroidConfig *c, ImkShcentroidFields fields)
{
  bool noise = c->threshold_mode == IMK_SHCENTROID_THRESHOLD_NOISE;
  double unit = noise ? c->read_noise : 1.0;

  return (ImkShcentroidParams){
      .threshold_mode = c->threshold_mode,
      .subtract = c->threshold_action == IMK_SHCENTROID_ACTION_SUBTRACT,
      .unit = unit,
      .threshold = c->threshold * unit,
      .threshold_least = c->threshold_least,
      .brightest = c->brightest,
      .weighting = c->weighting,
      .sigma = c->sigma / sqrt (c->power), /* weight^power is a Gaussian, too */
      .iterations =
          c->weighting == IMK_SHCENTROID_WEIGHTING_NONE ? 1 : c->iterations,
      .power = c->power,
      .estimator = c->estimator,
      .quad_gain = c->quad_gain,
      .correlation = c->correlation,
      .peak_fit = c->peak_fit,
      .search_range = c->search_range,
      .min_correlation = c->min_correlation,
      .window = c->window,
      .tracking_gain = c->tracking_gain,
      .tracking_reset = c->tracking_reset,
      .remove_tilt = c->remove_tilt && fields != IMK_SHCENTROID_FIELDS_XY,
      .min_flux = c->min_flux,
      .saturation = c->saturation,
      .gain = c->gain,
      .read_noise = c->read_noise,
      .invalid_policy = c->invalid_policy,
      .slope_scale = c->slope_scale,
      .min_illumination = c->min_illumination,
      .normalisation = c->normalisation,
  };
}
