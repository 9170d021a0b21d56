/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shcentroid/shcentroid.h"

#include <math.h>
#include <stdlib.h>

#include "shcentroid/shcentroid-templates.h"

struct ImkShcentroid {
  const ImkShcentroidBackend *backend;
  bool on_device;
  void *state;

  uint32_t width, height; /* what process checks images against */
  ImkType type;
  ImkShcentroidFields fields;
  uint32_t n_cells;
  bool has_templates;
};

typedef ImkShcentroidBox Box;

void
imk_shcentroid_config_init (ImkShcentroidConfig *config)
{
  *config = (ImkShcentroidConfig){
      .width = 1,
      .height = 1,
      .type = IMK_TYPE_U8,
      .pitch_x = 1.0,
      .pitch_y = 1.0,
      .columns = 1,
      .rows = 1,
      .fields = IMK_SHCENTROID_FIELDS_ALL,
      .threshold_mode = IMK_SHCENTROID_THRESHOLD_NONE,
      .threshold_action = IMK_SHCENTROID_ACTION_SUBTRACT,
      .sigma = 1.0,
      .iterations = 1,
      .power = 1.0,
      .quad_gain = 1.0,
      .template_cell = -1,
      .search_range = 4,
      .min_correlation = 0.25,
      .tracking_gain = 1.0,
      .gain = 1.0,
      .invalid_policy = IMK_SHCENTROID_INVALID_ZERO,
      .slope_scale = 1.0,
  };
}

static uint64_t
count_cells (const ImkShcentroidConfig *c)
{
  return c->n_cells ? c->n_cells : (uint64_t) c->columns * c->rows;
}

uint32_t
imk_shcentroid_n_cells (const ImkShcentroidConfig *config)
{
  uint64_t n = count_cells (config);

  return n < UINT32_MAX ? (uint32_t) n : UINT32_MAX;
}

/* ------------------------------------------------------------------------
 * Validation, the same for both backends. The comparisons are written so that
 * a NaN fails them. */

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
  ImkStatus status = check_choice ("threshold-mode", c->threshold_mode,
      IMK_SHCENTROID_THRESHOLD_NOISE + 1, error);

  if (status == IMK_OK)
    status = check_choice ("threshold-action", c->threshold_action,
        IMK_SHCENTROID_ACTION_KEEP + 1, error);
  if (status == IMK_OK)
    status = check_at_least ("threshold", c->threshold, 0.0, error);
  if (status == IMK_OK)
    status = check_at_least ("threshold-least", c->threshold_least, 0.0, error);
  return status;
}

static ImkStatus
check_weight (const ImkShcentroidConfig *c, ImkError *error)
{
  ImkStatus status = check_choice (
      "weighting", c->weighting, IMK_SHCENTROID_WEIGHTING_TRACKING + 1, error);

  if (status == IMK_OK)
    status = check_above_0 ("sigma", c->sigma, "pixels", error);
  if (status == IMK_OK)
    status = check_between ("iterations", c->iterations, 1, 100, error);
  if (status == IMK_OK)
    status = check_between ("power", c->power, 1.0, 4.0, error);
  return status;
}

static ImkStatus
check_correlation (const ImkShcentroidConfig *c, ImkError *error)
{
  ImkStatus status = check_choice ("correlation", c->correlation,
      IMK_SHCENTROID_CORRELATION_DIFFERENCE + 1, error);

  if (status == IMK_OK)
    status = check_choice (
        "peak-fit", c->peak_fit, IMK_SHCENTROID_PEAK_PARABOLA + 1, error);
  if (status == IMK_OK)
    status = check_between ("search-range", c->search_range, 1,
        IMK_SHCENTROID_MAX_SEARCH_RANGE, error);
  if (status == IMK_OK)
    status =
        check_between ("min-correlation", c->min_correlation, 0.0, 1.0, error);
  return status;
}

static ImkStatus
check_estimator (const ImkShcentroidConfig *c, ImkError *error)
{
  ImkStatus status = check_choice ("estimator", c->estimator,
      IMK_SHCENTROID_ESTIMATOR_CORRELATION + 1, error);

  if (status == IMK_OK)
    status = check_above_0 ("quad-gain", c->quad_gain, "pixels", error);
  if (status == IMK_OK)
    status = check_correlation (c, error);
  if (status == IMK_OK)
    status = check_choice (
        "window", c->window, IMK_SHCENTROID_WINDOW_TRACKING + 1, error);
  if (status == IMK_OK)
    status = check_between ("tracking-gain", c->tracking_gain, 0.0, 1.0, error);
  return status;
}

static ImkStatus
check_params (const ImkShcentroidConfig *c, ImkError *error)
{
  ImkStatus status = check_threshold (c, error);

  if (status == IMK_OK)
    status = check_weight (c, error);
  if (status == IMK_OK)
    status = check_estimator (c, error);
  if (status == IMK_OK)
    status = check_choice ("invalid-policy", c->invalid_policy,
        IMK_SHCENTROID_INVALID_REFERENCE + 1, error);
  if (status == IMK_OK)
    status = check_at_least ("min-flux", c->min_flux, 0.0, error);
  if (status == IMK_OK)
    status = check_at_least ("saturation", c->saturation, 0.0, error);
  if (status == IMK_OK)
    status = check_at_least ("read-noise", c->read_noise, 0.0, error);
  if (status == IMK_OK)
    status = check_above_0 ("gain", c->gain, "electrons a count", error);
  if (status == IMK_OK &&
      (!(fabs (c->slope_scale) > 0.0) || !isfinite (c->slope_scale)))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The slopes are multiplied with %g; it must be a finite number other "
        "than 0.",
        c->slope_scale);
  return status;
}

static ImkStatus
check_has_templates (
    const ImkShcentroidConfig *c, bool has_templates, ImkError *error)
{
  if (c->estimator != IMK_SHCENTROID_ESTIMATOR_CORRELATION || has_templates)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "estimator is correlation, but there is no template to look for. Set "
      "template-location, capture one by capture-template, or take it from "
      "each frame by template-source=frame and template-cell.");
}

static ImkStatus
check_frame (const ImkShcentroidConfig *c, ImkError *error)
{
  uint64_t pixels = (uint64_t) c->width * c->height;
  uint64_t n = count_cells (c);

  if (c->width - 1 >= 65535 || c->height - 1 >= 65535)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The frame is %ux%u; it can have 1 to 65535 pixels a side.", c->width,
        c->height);
  if (c->type != IMK_TYPE_U8 && c->type != IMK_TYPE_U16)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The frame is of %s samples; only u8 and u16 are supported.",
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

/* The edges are evaluated from the index and floored once: adjacent cells
 * share an edge, whatever the pitch. */
static double
grid_edge (double origin, double pitch, uint32_t index)
{
  return floor (origin + index * pitch);
}

static double
grid_end (
    const ImkShcentroidConfig *c, double origin, double pitch, uint32_t index)
{
  return c->grid_rule == IMK_SHCENTROID_RULE_PAPER
             ? floor (grid_edge (origin, pitch, index) + pitch)
             : grid_edge (origin, pitch, index + 1);
}

static Box
grid_box (const ImkShcentroidConfig *c, uint32_t row, uint32_t column)
{
  return (Box){
      .left = grid_edge (c->x0, c->pitch_x, column),
      .top = grid_edge (c->y0, c->pitch_y, row),
      .right = grid_end (c, c->x0, c->pitch_x, column),
      .bottom = grid_end (c, c->y0, c->pitch_y, row),
  };
}

static Box
cell_box (const ImkShcentroidCell *cell)
{
  return (Box){
      .left = floor (cell->x),
      .top = floor (cell->y),
      .right = floor (cell->x + cell->width),
      .bottom = floor (cell->y + cell->height),
  };
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
    Box box = grid_box (c, 0, column);

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
    Box box = grid_box (c, row, 0);

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
  ImkStatus status;

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
  status = check_columns (c, error);
  return status != IMK_OK ? status : check_rows (c, error);
}

static ImkStatus
check_cell (const ImkShcentroidConfig *c, uint32_t row, ImkError *error)
{
  const ImkShcentroidCell *cell = &c->cells[row];
  Box box = cell_box (cell);

  if (!isfinite (cell->x) || !isfinite (cell->y) ||
      !is_at_least (cell->width, 1.0) || !is_at_least (cell->height, 1.0))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Row %u of map-location is a cell of %g x %g pixels at (%g, %g); the "
        "numbers must be finite and the sides at least 1.",
        row, cell->width, cell->height, cell->x, cell->y);
  if (!overlaps (box.left, box.right, c->width) ||
      !overlaps (box.top, box.bottom, c->height))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Row %u of map-location is a cell of columns [%g, %g) and rows "
        "[%g, %g), outside the frame of %ux%u. Remove the row or correct it.",
        row, box.left, box.right, box.top, box.bottom, c->width, c->height);
  if (isinf (cell->ref_x) || isinf (cell->ref_y))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Row %u of map-location has the reference (%g, %g); it must be finite, "
        "or nan for the centre of the cell.",
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
  ImkStatus status = IMK_OK;

  if (!c->cells)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "map-location promises %u cells, but there are none.", c->n_cells);
  for (uint32_t row = 0; row < c->n_cells && status == IMK_OK; row++)
    status = check_cell (c, row, error);
  return status;
}

static ImkStatus
check_references (const ImkShcentroidConfig *c, ImkError *error)
{
  uint32_t n = c->references ? imk_shcentroid_n_cells (c) : 0;

  for (uint32_t i = 0; i < n; i++)
    if (!isfinite (c->references[2 * i]) ||
        !isfinite (c->references[2 * i + 1]))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "The reference of cell %u is (%g, %g); both must be finite numbers "
          "of pixels. Leave the references out for the centres of the cells.",
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
  ImkStatus status =
      check_table ("The dark", c->dark, n, c->width, -1e6, 1e6, error);

  if (status == IMK_OK)
    status = check_table ("The flat", c->flat, n, c->width, 0.0, 1e6, error);
  if (status == IMK_OK)
    status = check_table (
        "The look-up table", c->lut, n_samples, 65536, -1e9, 1e9, error);
  return status;
}

ImkShcentroidBox
imk_shcentroid_whole_cell (const ImkShcentroidConfig *c, uint32_t i)
{
  Box box = c->n_cells ? cell_box (&c->cells[i])
                       : grid_box (c, i / c->columns, i % c->columns);

  box.left += c->margin;
  box.top += c->margin;
  box.right -= c->margin;
  box.bottom -= c->margin;
  return box;
}

ImkStatus
imk_shcentroid_check_cells (const ImkShcentroidConfig *c, ImkError *error)
{
  ImkStatus status = check_frame (c, error);

  if (status == IMK_OK)
    status = check_choice (
        "grid-rule", c->grid_rule, IMK_SHCENTROID_RULE_PAPER + 1, error);
  if (status == IMK_OK)
    status = c->n_cells ? check_map (c, error) : check_grid (c, error);
  return status;
}

static ImkStatus
check_config (const ImkShcentroidConfig *c, ImkError *error)
{
  ImkStatus status = imk_shcentroid_check_cells (c, error);

  if (status == IMK_OK)
    status = check_choice (
        "fields", c->fields, IMK_SHCENTROID_FIELDS_SLOPES + 1, error);
  if (status == IMK_OK)
    status = check_references (c, error);
  if (status == IMK_OK)
    status = check_calibration (c, error);
  if (status == IMK_OK)
    status = imk_shcentroid_check_templates (c, error);
  if (status == IMK_OK)
    status = check_has_templates (c, imk_shcentroid_has_templates (c), error);
  return status != IMK_OK ? status : check_params (c, error);
}

/* ------------------------------------------------------------------------
 * The plan. */

static ImkShcentroidRect
clip (const ImkShcentroidConfig *c, Box box)
{
  double left = fmax (box.left, 0.0), right = fmin (box.right, c->width);
  double top = fmax (box.top, 0.0), bottom = fmin (box.bottom, c->height);
  bool clipped = left != box.left || right != box.right || top != box.top ||
                 bottom != box.bottom;

  /* the margin is taken from the cell, not from what is left of it */
  left = fmax (left, box.left + c->margin);
  right = fmax (left, fmin (right, box.right - c->margin));
  top = fmax (top, box.top + c->margin);
  bottom = fmax (top, fmin (bottom, box.bottom - c->margin));

  return (ImkShcentroidRect){
      .x = (uint16_t) left,
      .y = (uint16_t) top,
      .width = (uint16_t) (right - left),
      .height = (uint16_t) (bottom - top),
      .flags = clipped ? IMK_SHCENTROID_CLIPPED : 0,
      .min_flux = NAN,
      .threshold = NAN,
  };
}

static ImkShcentroidRect
grid_rect (const ImkShcentroidConfig *c, uint32_t index)
{
  uint32_t row = index / c->columns, column = index % c->columns;
  ImkShcentroidRect rect = clip (c, grid_box (c, row, column));

  rect.ref_x = c->x0 + (column + 0.5) * c->pitch_x - 0.5;
  rect.ref_y = c->y0 + (row + 0.5) * c->pitch_y - 0.5;
  return rect;
}

static ImkShcentroidRect
map_rect (const ImkShcentroidConfig *c, uint32_t index)
{
  const ImkShcentroidCell *cell = &c->cells[index];
  ImkShcentroidRect rect = clip (c, cell_box (cell));

  rect.ref_x =
      isnan (cell->ref_x) ? cell->x + cell->width / 2 - 0.5 : cell->ref_x;
  rect.ref_y =
      isnan (cell->ref_y) ? cell->y + cell->height / 2 - 0.5 : cell->ref_y;
  rect.min_flux = cell->min_flux;
  rect.threshold = cell->threshold;
  return rect;
}

static ImkShcentroidRect
cell_rect (const ImkShcentroidConfig *c, uint32_t i)
{
  ImkShcentroidRect rect = c->n_cells ? map_rect (c, i) : grid_rect (c, i);

  if (c->references) {
    rect.ref_x = c->references[2 * i];
    rect.ref_y = c->references[2 * i + 1];
  }
  return rect;
}

ImkShcentroidCell
imk_shcentroid_cell (const ImkShcentroidConfig *config, uint32_t index)
{
  ImkShcentroidRect r = cell_rect (config, index);

  return (ImkShcentroidCell){
      r.x, r.y, r.width, r.height, r.ref_x, r.ref_y, r.min_flux, r.threshold};
}

void
imk_shcentroid_get_references (const ImkShcentroidConfig *config, double *xy)
{
  for (uint32_t i = 0; i < imk_shcentroid_n_cells (config); i++) {
    ImkShcentroidRect rect = cell_rect (config, i);

    xy[2 * i] = rect.ref_x;
    xy[2 * i + 1] = rect.ref_y;
  }
}

static ImkStatus
check_rects (const ImkShcentroidConfig *c, const ImkShcentroidRect *rects,
    uint32_t n, ImkError *error)
{
  for (uint32_t i = 0; i < n; i++)
    if (rects[i].width == 0 || rects[i].height == 0)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "margin is %u pixels, which leaves nothing of cell %u inside the "
          "frame. Take a smaller margin.",
          c->margin, i);
  return IMK_OK;
}

/* Returns: (nullable): dark, flat and bad pixels in one */
static ImkShcentroidPixel *
make_pixels (const ImkShcentroidConfig *c)
{
  size_t n = (size_t) c->width * c->height;
  ImkShcentroidPixel *pixels = malloc (n * sizeof (*pixels));

  for (size_t i = 0; pixels && i < n; i++) {
    pixels[i].flat = c->bad && c->bad[i] ? 0.0f : c->flat ? c->flat[i] : 1.0f;
    pixels[i].dark = pixels[i].flat == 0.0f ? NAN : c->dark ? c->dark[i] : 0.0f;
  }
  return pixels;
}

static ImkShcentroidParams
params_of (const ImkShcentroidConfig *c, ImkShcentroidFields fields)
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
      .sigma = c->sigma,
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
  };
}

/* The paper's cells need not touch. */
static bool
is_partition (const ImkShcentroidConfig *c)
{
  return !c->n_cells && c->grid_rule == IMK_SHCENTROID_RULE_SINGLE_FLOOR;
}

static ImkStatus
create_with (ImkShcentroid *s, const ImkShcentroidConfig *c,
    ImkShcentroidRect *rects, const ImkShcentroidPixel *pixels,
    const ImkShcentroidTemplates *templates, ImkError *error)
{
  /* cells with a margin do not touch */
  bool is_grid = is_partition (c) && c->margin == 0;
  ImkShcentroidParams params = params_of (c, c->fields);
  ImkShcentroidPlan plan = {
      .width = c->width,
      .height = c->height,
      .type = c->type,
      .columns = is_grid ? c->columns : 0,
      .rows = is_grid ? c->rows : 0,
      .n_rects = s->n_cells,
      .rects = rects,
      .pixels = pixels,
      .lut = c->lut,
      .templates = *templates,
      .n_threads = c->n_threads,
      .fields = c->fields,
  };
  ImkStatus status;

  for (uint32_t i = 0; i < s->n_cells; i++)
    rects[i] = cell_rect (c, i);
  status = check_rects (c, rects, s->n_cells, error);
  s->has_templates = templates->n > 0;
  return status != IMK_OK
             ? status
             : s->backend->create (&plan, &params, &s->state, error);
}

static ImkStatus
create_state (ImkShcentroid *s, const ImkShcentroidConfig *c, ImkError *error)
{
  bool calibrated = c->dark || c->flat || c->bad;
  ImkShcentroidRect *rects = calloc (s->n_cells, sizeof (*rects));
  ImkShcentroidPixel *pixels = calibrated ? make_pixels (c) : NULL;
  ImkShcentroidTemplates templates = {.n = 0};
  ImkStatus status = imk_shcentroid_templates_init (&templates, c, error);

  if (status == IMK_OK && (!rects || (calibrated && !pixels)))
    status = imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for the geometry of %u cells.", s->n_cells);
  if (status == IMK_OK)
    status = create_with (s, c, rects, pixels, &templates, error);
  free (rects);
  free (pixels);
  imk_shcentroid_templates_clear (&templates);
  return status;
}

/* ------------------------------------------------------------------------
 * The object. */

static ImkStatus
find_backend (
    ImkBackend backend, const ImkShcentroidBackend **table, ImkError *error)
{
  const void *found;
  ImkStatus status = IMK_OK;

  switch (backend) {
  case IMK_BACKEND_CPU:
    *table = &imk_shcentroid_cpu;
    return IMK_OK;
  case IMK_BACKEND_CUDA:
    status = imk_backend_find (IMK_MODULE_CUDA, "shcentroid", &found, error);
    if (status == IMK_OK)
      *table = found;
    return status;
  }
  return imk_error_set (
      error, IMK_ERROR_CONFIG, "There is no backend %d.", (int) backend);
}

ImkStatus
imk_shcentroid_new (ImkBackend backend, const ImkShcentroidConfig *config,
    ImkShcentroid **self, ImkError *error)
{
  const ImkShcentroidBackend *table = NULL;
  ImkShcentroid *s;
  ImkStatus status = check_config (config, error);

  if (status == IMK_OK)
    status = find_backend (backend, &table, error);
  if (status != IMK_OK)
    return status;
  s = malloc (sizeof (*s));
  if (!s)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the object.");
  *s = (ImkShcentroid){
      .backend = table,
      .on_device = backend == IMK_BACKEND_CUDA,
      .width = config->width,
      .height = config->height,
      .type = config->type,
      .fields = config->fields,
      .n_cells = imk_shcentroid_n_cells (config),
  };
  status = create_state (s, config, error);
  if (status == IMK_OK)
    *self = s;
  else
    free (s);
  return status;
}

ImkStatus
imk_shcentroid_update (
    ImkShcentroid *self, const ImkShcentroidConfig *config, ImkError *error)
{
  ImkStatus status = check_params (config, error);
  ImkShcentroidParams params;

  if (status == IMK_OK)
    status = check_has_templates (config, self->has_templates, error);
  if (status != IMK_OK)
    return status;
  params = params_of (config, self->fields);
  return self->backend->update (self->state, &params, error);
}

static ImkStatus
check_output (const ImkShcentroid *s, const ImkImage *out, ImkError *error)
{
  bool slopes = s->fields == IMK_SHCENTROID_FIELDS_SLOPES;
  bool all = s->fields == IMK_SHCENTROID_FIELDS_ALL;
  bool f64 = out && out->type == IMK_TYPE_F64; /* the one other choice */
  uint32_t columns = slopes ? 2 * s->n_cells
                     : all  ? (uint32_t) IMK_SHCENTROID_N_FIELDS
                            : 2;

  return imk_image_check (out, "output", f64 ? IMK_TYPE_F64 : IMK_TYPE_F32, 1,
      columns, slopes ? 1 : s->n_cells, s->on_device, error);
}

ImkStatus
imk_shcentroid_process (ImkShcentroid *self, const ImkImage *in, ImkImage *out,
    void *stream, ImkError *error)
{
  ImkStatus status = imk_image_check (in, "input", self->type, 1, self->width,
      self->height, self->on_device, error);

  if (status == IMK_OK)
    status = check_output (self, out, error);
  return status != IMK_OK
             ? status
             : self->backend->process (self->state, in, out, stream, error);
}

ImkStatus
imk_shcentroid_reset (ImkShcentroid *self, void *stream, ImkError *error)
{
  return self->backend->reset (self->state, stream, error);
}

void
imk_shcentroid_free (ImkShcentroid *self)
{
  if (!self)
    return;
  self->backend->destroy (self->state);
  free (self);
}
