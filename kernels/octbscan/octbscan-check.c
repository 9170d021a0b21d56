/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Validation, the same for both backends. The comparisons are written so that
 * a NaN fails them. */
#include "octbscan/octbscan-config.h"

#include <math.h>

#include "core/limits.h"
#include "octbscan/octbscan-grid.h"
#include "octbscan/octbscan-lateral.h"

static ImkStatus
check_sizes (const ImkOctbscanConfig *c, ImkError *error)
{
  const ImkLimits limits[] = {
      {"The number of samples a spectrum", c->width, 2, IMK_OCTBSCAN_MAX_WIDTH},
      {"The number of A-scans a B-scan", c->height, 1, IMK_OCTBSCAN_MAX_HEIGHT},
      {"The number of cameras", c->n_cameras, 1, IMK_OCTBSCAN_MAX_CAMERAS},
      {"scale", c->scale, 1, 64},
      {"average-ascans", c->average_ascans, 1, IMK_OCTBSCAN_MAX_HEIGHT},
      {"max_jobs", c->max_jobs, 1, 65535},
      {NULL},
  };

  IMK_TRY (imk_limits_check (limits, error));
  if (c->type > IMK_TYPE_F32)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Spectra of type %s cannot be processed; u8, u16, i16 and f32 can.",
        imk_type_name (c->type));
  if (c->upsample < c->width || c->upsample < 4)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "upsample is %u, less than the %u samples of a spectrum. Take at least "
        "%u, and at least 4.",
        c->upsample, c->width, c->width);
  if ((uint64_t) c->upsample * c->scale > IMK_OCTBSCAN_MAX_POINTS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "upsample %u times scale %u is more than %u. Take less of either.",
        c->upsample, c->scale, IMK_OCTBSCAN_MAX_POINTS);
  if (imk_octbscan_n_depths (c) == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "crop-top %u and crop-bottom %u leave none of the %llu depths. Take "
        "less of either.",
        c->crop_top, c->crop_bottom,
        (unsigned long long) c->width * c->scale / 2);
  return IMK_OK;
}

ImkStatus
imk_octbscan_check_operators (const ImkOctbscanConfig *c, ImkError *error)
{
  uint64_t size = (uint64_t) imk_octbscan_n_depths (c) * c->width *
                  c->n_cameras * 2 * sizeof (float);

  if (size <= IMK_OCTBSCAN_MAX_OPERATORS)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "strategy=operator needs %llu MiB for %u depths of %u samples of %u "
      "cameras, more than %llu. Crop more, or take a smaller scale or "
      "backend=cpu with strategy=fft.",
      (unsigned long long) size >> 20, imk_octbscan_n_depths (c), c->width,
      c->n_cameras, (unsigned long long) IMK_OCTBSCAN_MAX_OPERATORS >> 20);
}

static ImkStatus
check_choices (const ImkOctbscanConfig *c, ImkError *error)
{
  const ImkLimits limits[] = {
      {"interpolation", c->interpolation, 0, IMK_OCTBSCAN_N_INTERPOLATIONS - 1},
      {"grid", c->grid, 0, IMK_OCTBSCAN_GRID_THESIS},
      {"taper", c->taper, 0, IMK_OCTBSCAN_TAPER_NONE},
      {"window", c->window, 0, IMK_OCTBSCAN_N_WINDOWS - 1},
      {"background", c->background_mode, 0, IMK_OCTBSCAN_BACKGROUND_ROLLING},
      {"background-bscans", c->background_bscans, 1, UINT32_MAX},
      {"background-reach", c->background_reach, 1, IMK_OCTBSCAN_MAX_WIDTH},
      {"fixed-pattern", c->fixed_pattern, 0, IMK_OCTBSCAN_FIXED_PATTERN_FILE},
      {"pattern-segments", c->pattern_segments, 1, IMK_OCTBSCAN_MAX_HEIGHT},
      {"scan-correction", c->scan, 0, IMK_OCTBSCAN_SCAN_CURVE},
      {"flip", c->flip, 0, IMK_OCTBSCAN_FLIP_BOTH},
      {"tracking", c->tracking, 0, IMK_OCTBSCAN_TRACKING_XCORR},
      {"tracking-bscans", c->tracking_bscans, 1, IMK_OCTBSCAN_MAX_TRACKED},
      {"tracking-reach", c->tracking_reach, 1, IMK_OCTBSCAN_MAX_POINTS},
      {"enface-projection", c->projection, 0, IMK_OCTBSCAN_PROJECTION_MAXIMUM},
      {"orientation", c->orientation, 0, IMK_OCTBSCAN_ORIENTATION_ROWS},
      {"strategy", c->strategy, 0, IMK_OCTBSCAN_STRATEGY_OPERATOR},
      {"k-range", c->k_range, 0, IMK_OCTBSCAN_K_RANGE_COMMON},
      {NULL},
  };
  bool tapers =
      c->taper != IMK_OCTBSCAN_TAPER_NONE && c->width < c->taper_below;

  IMK_TRY (imk_limits_check (limits, error));
  if (tapers && c->width < 4)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Spectra of %u samples are too short to be tapered. Set taper to none.",
        c->width);
  if (tapers)
    IMK_TRY (imk_limits_check_one (
        "taper-cut", c->taper_cut, 1, c->width / 2 - 1, error));
  return IMK_OK;
}

static ImkStatus
check_window (const ImkOctbscanConfig *c, ImkError *error)
{
  double sum, largest = 0;

  if (c->window != IMK_OCTBSCAN_WINDOW_FILE)
    return IMK_OK;
  if (!c->window_values || c->n_window_values < 2)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "window is file, but it has %u values; it needs at least 2. Set "
        "window-location.",
        c->window_values ? c->n_window_values : 0);
  for (uint32_t i = 0; i < c->n_window_values; i++) {
    if (!(fabs (c->window_values[i]) <= 1e6))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Value %u of the window is %g; it must lie in -1e6 to 1e6.", i,
          c->window_values[i]);
    largest = fmax (largest, fabs (c->window_values[i]));
  }
  /* Z is divided by the window's sum; a sum of rounding errors is invalid. */
  sum = imk_octbscan_grid_window_sum (c);
  if (sum > 1e-6 * largest)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "The sum of the window is %g over the %u wavenumbers; it must be above "
      "0.",
      sum, c->upsample);
}

/* Rows of @n times @parts numbers, one for each camera, that a file gives.
 * @key: of the choice of a file, @location: of the file, @entry, @what: of the
 * messages */
static ImkStatus
check_rows (const ImkOctbscanConfig *c, const double *values, size_t n,
    size_t parts, const char *key, const char *location, const char *entry,
    const char *what, ImkError *error)
{
  if (!values)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "%s is file, but there is none. Set %s.", key, location);
  for (size_t i = 0; i < c->n_cameras * n * parts; i++)
    if (!(fabs (values[i]) <= 1e30))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "%s %zu of the %s of camera %zu is %g; it must be a finite number.",
          entry, i / parts % n, what, i / parts / n, values[i]);
  return IMK_OK;
}

static ImkStatus
check_files (const ImkOctbscanConfig *c, ImkError *error)
{
  if (c->background_mode == IMK_OCTBSCAN_BACKGROUND_FILE)
    IMK_TRY (check_rows (c, c->background, c->width, 1, "background",
        "background-location", "Sample", "background", error));
  if (c->fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_FILE)
    IMK_TRY (check_rows (c, c->pattern, imk_octbscan_n_depths (c), 2,
        "fixed-pattern", "pattern-location", "Depth", "fixed pattern", error));
  return IMK_OK;
}

/* Depths that are left between two ends. */
static ImkStatus
check_slab (const ImkOctbscanConfig *c, const char *what, uint32_t top,
    uint32_t bottom, uint32_t least, ImkError *error)
{
  uint32_t n = imk_octbscan_n_depths (c);
  uint64_t cut = (uint64_t) top + bottom;

  if (cut + least <= n)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s-top %u and %s-bottom %u leave %llu of the %u depths; there must be "
      "%u. Take less of either.",
      what, top, what, bottom, (unsigned long long) (n > cut ? n - cut : 0), n,
      least);
}

static ImkStatus
check_profile (const ImkOctbscanConfig *c, ImkError *error)
{
  uint32_t n = imk_octbscan_n_depths (c) - c->tracking_top - c->tracking_bottom;

  if (c->tracking == IMK_OCTBSCAN_TRACKING_NONE || !c->tracking_profile)
    return IMK_OK;
  if (c->n_tracking_profile != n)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "tracking-reference has %u values, but the window has %u depths "
        "(tracking-top %u, tracking-bottom %u). It needs a value for each.",
        c->n_tracking_profile, n, c->tracking_top, c->tracking_bottom);
  for (uint32_t z = 0; z < n; z++)
    if (!(fabs (c->tracking_profile[z]) <= 1e30))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Value %u of tracking-reference is %g; it must be a finite number.",
          z, c->tracking_profile[z]);
  return IMK_OK;
}

static ImkStatus
check_slabs (const ImkOctbscanConfig *c, ImkError *error)
{
  IMK_TRY (check_slab (c, "enface", c->enface_top, c->enface_bottom, 1, error));
  if (c->tracking != IMK_OCTBSCAN_TRACKING_NONE)
    IMK_TRY (check_slab (
        c, "tracking", c->tracking_top, c->tracking_bottom, 3, error));
  return check_profile (c, error);
}

ImkStatus
imk_octbscan_check_live (
    const double *live, uint32_t n_cameras, ImkError *error)
{
  for (uint32_t i = 0; live && i < 2 * n_cameras; i++)
    if (!(fabs (live[i]) <= 1e9))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "dispersion-%u of camera %u is %g; it must lie in -1e9 to 1e9.",
          2 + i % 2, i / 2, live[i]);
  return IMK_OK;
}

ImkStatus
imk_octbscan_check_range (const ImkOctbscanConfig *c, ImkError *error)
{
  IMK_TRY (imk_limits_check_one (
      "range", c->range, 0, IMK_OCTBSCAN_N_RANGES - 1, error));
  if (!(c->range_min >= -200 && c->range_max <= 300 &&
          c->range_min <= c->range_max))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "range-min is %g dB and range-max %g dB; they must lie in -200 to 300, "
        "and range-max not below range-min.",
        c->range_min, c->range_max);
  if (!(c->linear_min >= -1e30 && c->linear_max <= 1e30 &&
          c->linear_min <= c->linear_max))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "linear-min is %g and linear-max %g; they must lie in -1e30 to 1e30, "
        "and linear-max not below linear-min.",
        c->linear_min, c->linear_max);
  if (!(c->percent_min >= 0 && c->percent_max <= 100 &&
          c->percent_min <= c->percent_max))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "percent-min is %g and percent-max %g; they must lie in 0 to 100, and "
        "percent-max not below percent-min.",
        c->percent_min, c->percent_max);
  return IMK_OK;
}

ImkStatus
imk_octbscan_take_config (
    const ImkOctbscanConfig *given, ImkOctbscanConfig *c, ImkError *error)
{
  const ImkOctbscanConfig *config = IMK_CONFIG_READ (octbscan, given, c, error);

  if (!config)
    return IMK_ERROR_CONFIG;
  *c = *config;
  IMK_TRY (check_sizes (c, error));
  IMK_TRY (check_choices (c, error));
  for (uint32_t i = 0; i < c->n_cameras; i++)
    IMK_TRY (imk_octbscan_grid_check (c, i, error));
  IMK_TRY (imk_octbscan_grid_check_range (c, error));
  IMK_TRY (imk_octbscan_check_live (c->live_dispersion, c->n_cameras, error));
  IMK_TRY (check_window (c, error));
  IMK_TRY (check_files (c, error));
  IMK_TRY (imk_octbscan_lateral_check (c, error));
  IMK_TRY (check_slabs (c, error));
  return imk_octbscan_check_range (c, error);
}

ImkStatus
imk_octbscan_check (const ImkOctbscanConfig *given, ImkError *error)
{
  ImkOctbscanConfig config;

  IMK_TRY (imk_octbscan_take_config (given, &config, error));
  if (config.strategy == IMK_OCTBSCAN_STRATEGY_OPERATOR)
    IMK_TRY (imk_octbscan_check_operators (&config, error));
  return IMK_OK;
}
