/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan/octbscan-grid.h"

#include <math.h>
#include <stdlib.h>

static const char *const map_keys[] = {
    [IMK_OCTBSCAN_MAP_NONE] = "none",
    [IMK_OCTBSCAN_MAP_RANGE] = "lambda-first and lambda-last",
    [IMK_OCTBSCAN_MAP_POLYNOMIAL] = "polynomial",
    [IMK_OCTBSCAN_MAP_WAVELENGTHS] = "wavelengths",
    [IMK_OCTBSCAN_MAP_CHIRP] = "chirp",
    [IMK_OCTBSCAN_MAP_K_INDEX] = "k-index",
    [IMK_OCTBSCAN_MAP_K_POLYNOMIAL] = "k-polynomial",
};

/* Beyond these what is made of finite numbers need not be finite; phases have
 * lost their place on the circle before. */
#define MOST_OF_A_MAP 1e30
#define LEAST_WAVELENGTH 1e-30
#define WIDEST 10.0 /* the longest wavelength beside the shortest */
#define MOST_RADIANS 1e9
#define LEAST_SHARE 0.1 /* of a camera's wavenumbers that all cameras have */

/* ------------------------------------------------------------------------
 * Checks. */

static ImkStatus
check_within (uint32_t camera, const char *key, const double *values,
    uint32_t n, double most, ImkError *error)
{
  for (uint32_t i = 0; i < n; i++)
    if (!(fabs (values[i]) <= most))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Value %u of %s of camera %u is %g; it must lie in -%g to %g.", i,
          key, camera, values[i], most, most);
  return IMK_OK;
}

static ImkStatus
check_count (const ImkOctbscanConfig *c, uint32_t camera, ImkError *error)
{
  const ImkOctbscanCamera *cam = &c->cameras[camera];
  const char *key = map_keys[cam->map];

  switch (cam->map) {
  case IMK_OCTBSCAN_MAP_NONE:
    return IMK_OK;
  case IMK_OCTBSCAN_MAP_RANGE:
    if (cam->n_values == 2)
      return IMK_OK;
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "Camera %u has %u values for %s; it needs 2.", camera, cam->n_values,
        key);
  case IMK_OCTBSCAN_MAP_POLYNOMIAL:
  case IMK_OCTBSCAN_MAP_K_POLYNOMIAL:
    if (cam->n_values >= 2 && cam->n_values <= IMK_OCTBSCAN_MAX_COEFFICIENTS)
      return IMK_OK;
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "%s of camera %u has %u coefficients; it needs 2 to %d.", key, camera,
        cam->n_values, (int) IMK_OCTBSCAN_MAX_COEFFICIENTS);
  case IMK_OCTBSCAN_MAP_K_INDEX:
    if (cam->n_values >= 2)
      return IMK_OK;
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "k-index of camera %u has %u values; it needs at least 2.", camera,
        cam->n_values);
  default:
    if (cam->n_values == c->width)
      return IMK_OK;
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "%s of camera %u has %u values, but a spectrum has %u samples. Give "
        "the calibration of this spectrometer, a value for each sample.",
        key, camera, cam->n_values, c->width);
  }
}

static double
polynomial (const double *coefficients, uint32_t n, double x)
{
  double sum = 0;

  while (n-- > 0)
    sum = sum * x + coefficients[n];
  return sum;
}

/* What a map that is a polynomial gives at a pixel, with fraction. */
static double
polynomial_at (
    const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam, double pixel)
{
  bool of_pixels = cam->map == IMK_OCTBSCAN_MAP_POLYNOMIAL;

  return polynomial (cam->values, cam->n_values,
      of_pixels ? pixel : 2 * pixel / (c->width - 1) - 1);
}

static bool
is_polynomial (const ImkOctbscanCamera *cam)
{
  return cam->map == IMK_OCTBSCAN_MAP_POLYNOMIAL ||
         cam->map == IMK_OCTBSCAN_MAP_K_POLYNOMIAL;
}

/* What @cam has at pixel @n, for maps that give a value for each pixel. */
static double
value_at (const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam, uint32_t n)
{
  if (cam->map == IMK_OCTBSCAN_MAP_RANGE)
    return cam->values[0] +
           (cam->values[1] - cam->values[0]) * n / (c->width - 1);
  if (is_polynomial (cam))
    return polynomial_at (c, cam, n);
  return cam->values[n];
}

/* Are the values of the map wavenumbers, and not wavelengths? */
static bool
is_of_wavenumbers (const ImkOctbscanCamera *cam)
{
  return cam->map == IMK_OCTBSCAN_MAP_CHIRP ||
         cam->map == IMK_OCTBSCAN_MAP_K_POLYNOMIAL;
}

static ImkStatus
check_order (const ImkOctbscanConfig *c, uint32_t camera, ImkError *error)
{
  const ImkOctbscanCamera *cam = &c->cameras[camera];
  const char *key = map_keys[cam->map];
  bool of_index = cam->map == IMK_OCTBSCAN_MAP_K_INDEX;
  bool of_length = !of_index && !is_of_wavenumbers (cam);
  uint32_t n = of_index ? cam->n_values : c->width;
  double first = value_at (c, cam, 0), before = first, now;
  bool rises = value_at (c, cam, 1) > first;

  for (uint32_t i = 0; i < n; i++, before = now) {
    now = of_index ? cam->values[i] : value_at (c, cam, i);
    if (of_length && !(now >= LEAST_WAVELENGTH && isfinite (now)))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "%s of camera %u gives the wavelength %g at sample %u; it must be "
          "above 0.",
          key, camera, now, i);
    if (of_index && !(now >= -1 && now <= c->width))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Value %u of k-index of camera %u is %g, more than a sample outside "
          "the spectrum of %u.",
          i, camera, now, c->width);
    if (i > 0 && !(rises ? now > before : now < before))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "%s of camera %u is not monotonic: %g at %u follows %g. It must rise "
          "or fall all the way.",
          key, camera, now, i, before);
  }
  if (of_length && fmax (first, before) > WIDEST * fmin (first, before))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "%s of camera %u gives wavelengths from %g to %g, which no spectrometer "
        "has. Take one unit for all, and a polynomial in the order c0;c1;c2, "
        "the constant first.",
        key, camera, first, before);
  return IMK_OK;
}

static ImkStatus
check_phases (const ImkOctbscanConfig *c, uint32_t camera, ImkError *error)
{
  const ImkOctbscanCamera *cam = &c->cameras[camera];

  if (!(cam->gain >= 0 && cam->gain <= 1e6) ||
      (cam->gain > 0 && cam->gain < 1e-6))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "gain of camera %u is %g; it must lie in 1e-6 to 1e6.", camera,
        cam->gain);
  if (cam->n_dispersion > IMK_OCTBSCAN_MAX_COEFFICIENTS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "dispersion of camera %u has %u coefficients; it can have %d.", camera,
        cam->n_dispersion, (int) IMK_OCTBSCAN_MAX_COEFFICIENTS);
  if (cam->n_phase == 1)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "phase of camera %u has 1 value; it needs at least 2.", camera);
  IMK_TRY (check_within (
      camera, "phase", cam->phase, cam->n_phase, MOST_RADIANS, error));
  IMK_TRY (check_within (camera, "dispersion", cam->dispersion,
      cam->n_dispersion, MOST_RADIANS, error));
  if (cam->spectrum_phase)
    IMK_TRY (check_within (
        camera, "phase", cam->spectrum_phase, c->width, MOST_RADIANS, error));
  return IMK_OK;
}

ImkStatus
imk_octbscan_grid_check (
    const ImkOctbscanConfig *config, uint32_t camera, ImkError *error)
{
  const ImkOctbscanCamera *cam = &config->cameras[camera];

  if ((unsigned) cam->map > IMK_OCTBSCAN_MAP_K_POLYNOMIAL)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The map of camera %u is %u; the choices are 0 to %d.", camera,
        (unsigned) cam->map, IMK_OCTBSCAN_MAP_K_POLYNOMIAL);
  IMK_TRY (check_count (config, camera, error));
  IMK_TRY (check_within (camera, map_keys[cam->map], cam->values, cam->n_values,
      MOST_OF_A_MAP, error));
  if (cam->map != IMK_OCTBSCAN_MAP_NONE)
    IMK_TRY (check_order (config, camera, error));
  return check_phases (config, camera, error);
}

/* ------------------------------------------------------------------------
 * Where the wavenumbers are. */

double
imk_octbscan_between (const double *values, uint32_t n, double at)
{
  uint32_t before = (uint32_t) fmin (fmax (floor (at), 0), n - 2);

  return values[before] + (at - before) * (values[before + 1] - values[before]);
}

/* Entry @i of @m. */
static double
stretched (const double *values, uint32_t n, uint32_t i, uint32_t m)
{
  return imk_octbscan_between (values, n, (double) i * (n - 1) / (m - 1));
}

/* Light of OCT has 0.2 to 5 um. Returns: um in the unit of @wavelength, 0 for
 * no unit of which that is true */
static double
um_of_unit (double wavelength)
{
  static const double units[] = {1e-3, 1, 1e6}; /* nm, um, m */

  for (size_t i = 0; i < sizeof (units) / sizeof (units[0]); i++)
    if (wavelength * units[i] >= 0.2 && wavelength * units[i] <= 5)
      return units[i];
  return 0;
}

/* In the unit of the map, in which 1 / 0 is no wavelength either. */
static double
wavelength_at (
    const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam, uint32_t n)
{
  double value = value_at (c, cam, n);

  return is_of_wavenumbers (cam) ? 1 / value : value;
}

static double
wavenumber_at (
    const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam, uint32_t n)
{
  double value = value_at (c, cam, n);

  return is_of_wavenumbers (cam) ? value : 1 / value;
}

/* Returns: um in the unit of the wavelengths of a checked camera; 0 without
 * wavelengths, or with wavelengths of no known unit */
static double
unit_of (const ImkOctbscanConfig *c, uint32_t camera)
{
  const ImkOctbscanCamera *cam = &c->cameras[camera];
  double a, b, um;

  if (cam->map != IMK_OCTBSCAN_MAP_RANGE &&
      cam->map != IMK_OCTBSCAN_MAP_WAVELENGTHS && !is_polynomial (cam))
    return 0;
  a = wavelength_at (c, cam, 0);
  b = wavelength_at (c, cam, c->width - 1);
  um = um_of_unit (fmin (a, b));
  return um_of_unit (fmax (a, b)) == um ? um : 0;
}

bool
imk_octbscan_grid_wavenumbers (
    const ImkOctbscanConfig *c, uint32_t camera, double *k)
{
  if (unit_of (c, camera) == 0)
    return false;
  for (uint32_t i = 0; i < c->width; i++)
    k[i] = wavenumber_at (c, &c->cameras[camera], i);
  return true;
}

/* The first and the last wavenumber of the grid of @camera. Those of all
 * cameras run in the direction of the first one. */
static void
ends_of (const ImkOctbscanConfig *c, uint32_t camera, double ends[2])
{
  bool common = c->k_range == IMK_OCTBSCAN_K_RANGE_COMMON;
  uint32_t first = common ? 0 : camera;
  uint32_t end = common ? c->n_cameras : camera + 1;
  double low = -INFINITY, high = INFINITY;

  for (uint32_t i = first; i < end; i++) {
    const ImkOctbscanCamera *cam = &c->cameras[i];
    double a = wavenumber_at (c, cam, 0);
    double b = wavenumber_at (c, cam, c->width - 1);

    low = fmax (low, fmin (a, b));
    high = fmin (high, fmax (a, b));
    if (i > first)
      continue;
    ends[0] = a;
    ends[1] = b;
  }
  if (common && ends[0] < ends[1]) {
    ends[0] = low;
    ends[1] = high;
  } else if (common) {
    ends[0] = high;
    ends[1] = low;
  }
}

ImkStatus
imk_octbscan_grid_check_range (const ImkOctbscanConfig *c, ImkError *error)
{
  double ends[2], unit;

  if (c->k_range == IMK_OCTBSCAN_K_RANGE_OWN)
    return IMK_OK;
  unit = unit_of (c, 0);
  for (uint32_t i = 0; i < c->n_cameras; i++)
    if (unit == 0 || unit_of (c, i) != unit)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "k-range=common needs the wavelengths of every camera, all of them "
          "in nm, um or m; camera %u has %s. Set a calibration with "
          "wavelengths, or k-range=own.",
          unit == 0 ? 0 : i,
          unit == 0 ? "none" : "others, or another unit than camera 0");
  ends_of (c, 0, ends);
  for (uint32_t i = 0; i < c->n_cameras; i++) {
    const ImkOctbscanCamera *cam = &c->cameras[i];
    double a = wavelength_at (c, cam, 0);
    double b = wavelength_at (c, cam, c->width - 1);
    bool rises = wavenumber_at (c, &c->cameras[0], c->width - 1) >
                 wavenumber_at (c, &c->cameras[0], 0);
    double share =
        (rises ? ends[1] - ends[0] : ends[0] - ends[1]) / fabs (1 / b - 1 / a);

    if (!(share >= LEAST_SHARE))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "The wavenumbers that all cameras have are %.0f %% of those of "
          "camera %u, which has wavelengths from %g to %g; k-range=common needs "
          "at least %.0f %%. Set k-range=own.",
          100 * fmax (share, 0), i, a, b, 100 * LEAST_SHARE);
  }
  return IMK_OK;
}

/* Between the pixels the values are taken to be linear: wavelengths of a
 * grating are, to 1e-4 pixel. A polynomial is known there, and nearly linear,
 * so that each round finds thousands of times better. */
static double
position_between (const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam,
    const double *values, uint32_t left, double t)
{
  double slope = values[left + 1] - values[left];
  double p = left + (t - values[left]) / slope;

  for (int round = 0; round < 4 && is_polynomial (cam); round++)
    p += (t - polynomial_at (c, cam, p)) / slope;
  return p;
}

/* Returns: the first of two neighbours of @n that have @t between them; the
 * outermost where it lies beyond */
static uint32_t
neighbour_of (const double *values, uint32_t n, double t)
{
  bool rises = values[n - 1] > values[0];
  uint32_t low = 0, high = n - 2;

  while (low < high) {
    uint32_t middle = (low + high) / 2;

    if (rises ? t > values[middle + 1] : t < values[middle + 1])
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static ImkStatus
search_positions (const ImkOctbscanConfig *c, uint32_t camera,
    double *positions, ImkError *error)
{
  const ImkOctbscanCamera *cam = &c->cameras[camera];
  uint32_t n = c->width;
  double *values = malloc (n * sizeof (*values)), ends[2];

  if (!values)
    return IMK_NO_MEMORY (error, "for the wavelengths of %u samples.", n);
  for (uint32_t i = 0; i < n; i++)
    values[i] = value_at (c, cam, i);
  ends_of (c, camera, ends);
  for (uint32_t i = 0; i < c->upsample; i++) {
    double along = (double) i / (c->upsample - 1);
    double k = ends[0] + along * (ends[1] - ends[0]);
    double t = is_of_wavenumbers (cam) ? k : 1 / k; /* as the map has it */

    positions[i] =
        position_between (c, cam, values, neighbour_of (values, n, t), t);
  }
  free (values);
  return IMK_OK;
}

ImkStatus
imk_octbscan_grid_positions (const ImkOctbscanConfig *config, uint32_t camera,
    double *positions, ImkError *error)
{
  const ImkOctbscanCamera *cam = &config->cameras[camera];
  uint32_t n = config->width, m = config->upsample;
  double stretch = config->grid == IMK_OCTBSCAN_GRID_THESIS
                       ? (m - 1.0) * n / ((n - 1.0) * m)
                       : 1.0;

  if (cam->map == IMK_OCTBSCAN_MAP_NONE)
    for (uint32_t i = 0; i < m; i++)
      positions[i] = (double) i * (n - 1) / (m - 1);
  else if (cam->map == IMK_OCTBSCAN_MAP_K_INDEX)
    for (uint32_t i = 0; i < m; i++)
      positions[i] = stretched (cam->values, cam->n_values, i, m);
  else
    IMK_TRY (search_positions (config, camera, positions, error));
  for (uint32_t i = 0; i < m; i++)
    positions[i] = fmin (fmax (positions[i], 0), n - 1) * stretch;
  return IMK_OK;
}

/* A reflector at z has z 2 / lambda fringes, so 2 z |1 / a - 1 / b| over the
 * M - 1 steps of the spectrum, and of a transform of s M samples depth q has
 * q / (s M) fringes a step. */
double
imk_octbscan_grid_depth_step (const ImkOctbscanConfig *c, uint32_t camera)
{
  double um = unit_of (c, camera), ends[2];

  if (um == 0)
    return 0;
  ends_of (c, camera, ends);
  return um * (c->upsample - 1.0) / ((double) c->scale * c->upsample) /
         (2 * fabs (ends[0] - ends[1]));
}

bool
imk_octbscan_grid_wavelengths (
    const ImkOctbscanConfig *c, uint32_t camera, double nm[2])
{
  double um = unit_of (c, camera), ends[2];

  if (um == 0)
    return false;
  ends_of (c, camera, ends);
  nm[0] = 1e3 * um / ends[0];
  nm[1] = 1e3 * um / ends[1];
  return true;
}

/* ------------------------------------------------------------------------
 * What the samples are multiplied by. */

/* -1 .. 1 over the wavenumbers. */
static double
axis (uint32_t i, uint32_t m)
{
  return 2.0 * i / (m - 1) - 1;
}

static double
window_at (const ImkOctbscanConfig *c, uint32_t i)
{
  double u = axis (i, c->upsample);

  switch (c->window) {
  case IMK_OCTBSCAN_WINDOW_HANN:
    return (1 + cos (M_PI * u)) / 2;
  case IMK_OCTBSCAN_WINDOW_HAMMING:
    return 0.54 + 0.46 * cos (M_PI * u);
  case IMK_OCTBSCAN_WINDOW_BLACKMAN:
    return 0.42 + 0.5 * cos (M_PI * u) + 0.08 * cos (2 * M_PI * u);
  case IMK_OCTBSCAN_WINDOW_GAUSS:
    return exp (-(u / 0.4) * (u / 0.4) / 2);
  case IMK_OCTBSCAN_WINDOW_FILE:
    return stretched (c->window_values, c->n_window_values, i, c->upsample);
  default:
    return 1;
  }
}

double
imk_octbscan_grid_window_sum (const ImkOctbscanConfig *config)
{
  double sum = 0;

  for (uint32_t i = 0; i < config->upsample; i++)
    sum += window_at (config, i);
  return sum;
}

void
imk_octbscan_grid_axis (
    const ImkOctbscanConfig *c, uint32_t camera, double axis[2])
{
  const ImkOctbscanCamera *cam = &c->cameras[camera];
  double ends[2], first, last;

  axis[0] = -1;
  axis[1] = 1;
  if (c->k_range == IMK_OCTBSCAN_K_RANGE_OWN)
    return;
  first = wavenumber_at (c, cam, 0);
  last = wavenumber_at (c, cam, c->width - 1);
  ends_of (c, camera, ends);
  for (int i = 0; i < 2; i++)
    axis[i] = 2 * (ends[i] - first) / (last - first) - 1;
}

void
imk_octbscan_grid_weights (
    const ImkOctbscanConfig *config, uint32_t camera, double *re, double *im)
{
  const ImkOctbscanCamera *cam = &config->cameras[camera];
  uint32_t m = config->upsample;
  bool thesis = config->interpolation == IMK_OCTBSCAN_INTERPOLATION_THESIS;
  double ends[2];

  imk_octbscan_grid_axis (config, camera, ends);
  for (uint32_t i = 0; i < m; i++) {
    double u = ends[0] + (ends[1] - ends[0]) * i / (m - 1);
    double weight = window_at (config, i) / (cam->gain ? cam->gain : 1);
    double phase = polynomial (cam->dispersion, cam->n_dispersion, u);

    if (cam->n_phase && config->k_range == IMK_OCTBSCAN_K_RANGE_OWN)
      phase += stretched (cam->phase, cam->n_phase, i, m);
    else if (cam->n_phase)
      phase += imk_octbscan_between (cam->phase, cam->n_phase,
          fmin (fmax ((u + 1) / 2, 0), 1) * (cam->n_phase - 1));
    /* read backwards, a fringe has the negative phase */
    phase = ends[0] < ends[1] ? phase : -phase;
    if (thesis && (i < 2 || i >= m - 2))
      weight = 0;
    re[i] = weight * cos (phase);
    im[i] = weight * sin (phase);
  }
}

void
imk_octbscan_grid_taper (const ImkOctbscanConfig *config, double *taper)
{
  uint32_t n = config->width, cut = config->taper_cut;
  bool thesis = config->taper == IMK_OCTBSCAN_TAPER_THESIS;

  for (uint32_t i = 0; i < n; i++)
    taper[i] = 1;
  if (config->taper == IMK_OCTBSCAN_TAPER_NONE || n >= config->taper_below)
    return;
  for (uint32_t i = 0; i < cut; i++) {
    double t = thesis ? (1 - cos (2 * M_PI * i / (n - 1))) /
                            (1 - cos (2 * M_PI * cut / (n - 1)))
                      : (1 - cos (M_PI * i / cut)) / 2;

    taper[i] = taper[n - 1 - i] = t;
  }
}
