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
};

/* Beyond these what is made of finite numbers need not be finite; phases have
 * lost their place on the circle before. */
#define MOST_OF_A_MAP 1e30
#define LEAST_WAVELENGTH 1e-30
#define WIDEST 10.0 /* the longest wavelength beside the shortest */
#define MOST_RADIANS 1e9

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
    if (cam->n_values >= 2 && cam->n_values <= IMK_OCTBSCAN_MAX_COEFFICIENTS)
      return IMK_OK;
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "polynomial of camera %u has %u coefficients; it needs 2 to %d.",
        camera, cam->n_values, (int) IMK_OCTBSCAN_MAX_COEFFICIENTS);
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

/* What @camera has at @pixel, for maps that give a value for each pixel. */
static double
value_at (const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam, uint32_t n)
{
  if (cam->map == IMK_OCTBSCAN_MAP_RANGE)
    return cam->values[0] +
           (cam->values[1] - cam->values[0]) * n / (c->width - 1);
  if (cam->map == IMK_OCTBSCAN_MAP_POLYNOMIAL)
    return polynomial (cam->values, cam->n_values, n);
  return cam->values[n];
}

static ImkStatus
check_order (const ImkOctbscanConfig *c, uint32_t camera, ImkError *error)
{
  const ImkOctbscanCamera *cam = &c->cameras[camera];
  const char *key = map_keys[cam->map];
  bool of_index = cam->map == IMK_OCTBSCAN_MAP_K_INDEX;
  bool of_length = !of_index && cam->map != IMK_OCTBSCAN_MAP_CHIRP;
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
  ImkStatus status;

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
  status = check_within (
      camera, "phase", cam->phase, cam->n_phase, MOST_RADIANS, error);
  if (status == IMK_OK)
    status = check_within (camera, "dispersion", cam->dispersion,
        cam->n_dispersion, MOST_RADIANS, error);
  if (status == IMK_OK && cam->spectrum_phase)
    status = check_within (
        camera, "phase", cam->spectrum_phase, c->width, MOST_RADIANS, error);
  return status;
}

ImkStatus
imk_octbscan_grid_check (
    const ImkOctbscanConfig *config, uint32_t camera, ImkError *error)
{
  const ImkOctbscanCamera *cam = &config->cameras[camera];
  ImkStatus status;

  if ((unsigned) cam->map > IMK_OCTBSCAN_MAP_K_INDEX)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The map of camera %u is %u; the choices are 0 to %d.", camera,
        (unsigned) cam->map, IMK_OCTBSCAN_MAP_K_INDEX);
  status = check_count (config, camera, error);
  if (status == IMK_OK)
    status = check_within (camera, map_keys[cam->map], cam->values,
        cam->n_values, MOST_OF_A_MAP, error);
  if (status == IMK_OK && cam->map != IMK_OCTBSCAN_MAP_NONE)
    status = check_order (config, camera, error);
  return status != IMK_OK ? status : check_phases (config, camera, error);
}

/* ------------------------------------------------------------------------
 * Where the wavenumbers are. */

/* Entry @i of @m, of a curve of @n values. */
static double
stretched (const double *values, uint32_t n, uint32_t i, uint32_t m)
{
  double x = (double) i * (n - 1) / (m - 1);
  uint32_t before = x < n - 1 ? (uint32_t) x : n - 2;

  return values[before] + (x - before) * (values[before + 1] - values[before]);
}

/* Wavelengths of equal distances in wavenumber between the two ends; a chirp
 * is a wavenumber already. */
static double
target (const ImkOctbscanCamera *cam, double first, double last, double along)
{
  return cam->map == IMK_OCTBSCAN_MAP_CHIRP
             ? first + along * (last - first)
             : 1 / (1 / first + along * (1 / last - 1 / first));
}

/* Between the pixels the values are taken to be linear: wavelengths of a
 * grating are, to 1e-4 pixel. A polynomial is known there, and nearly linear,
 * so that each round finds thousands of times better. */
static double
position_between (
    const ImkOctbscanCamera *cam, const double *values, uint32_t left, double t)
{
  double slope = values[left + 1] - values[left];
  double p = left + (t - values[left]) / slope;

  if (cam->map == IMK_OCTBSCAN_MAP_POLYNOMIAL)
    for (int round = 0; round < 4; round++)
      p += (t - polynomial (cam->values, cam->n_values, p)) / slope;
  return p;
}

static ImkStatus
search_positions (const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam,
    double *positions, ImkError *error)
{
  uint32_t n = c->width, left = 0;
  double *values = malloc (n * sizeof (*values));

  if (!values)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for the wavelengths of %u samples.", n);
  for (uint32_t i = 0; i < n; i++)
    values[i] = value_at (c, cam, i);
  for (uint32_t i = 0; i < c->upsample; i++) {
    double t =
        target (cam, values[0], values[n - 1], (double) i / (c->upsample - 1));
    bool rises = values[n - 1] > values[0];

    while (
        left < n - 2 && (rises ? t > values[left + 1] : t < values[left + 1]))
      left++;
    positions[i] = position_between (cam, values, left, t);
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
  ImkStatus status = IMK_OK;

  if (cam->map == IMK_OCTBSCAN_MAP_NONE)
    for (uint32_t i = 0; i < m; i++)
      positions[i] = (double) i * (n - 1) / (m - 1);
  else if (cam->map == IMK_OCTBSCAN_MAP_K_INDEX)
    for (uint32_t i = 0; i < m; i++)
      positions[i] = stretched (cam->values, cam->n_values, i, m);
  else
    status = search_positions (config, cam, positions, error);
  if (status == IMK_OK)
    for (uint32_t i = 0; i < m; i++)
      positions[i] = fmin (fmax (positions[i], 0), n - 1) * stretch;
  return status;
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

/* A reflector at z has z 2 / lambda fringes, so 2 z |1 / a - 1 / b| over the
 * M - 1 steps of the spectrum, and of a transform of s M samples depth q has
 * q / (s M) fringes a step. */
double
imk_octbscan_grid_depth_step (const ImkOctbscanConfig *c, uint32_t camera)
{
  const ImkOctbscanCamera *cam = &c->cameras[camera];
  double a, b, um;

  if (cam->map != IMK_OCTBSCAN_MAP_RANGE &&
      cam->map != IMK_OCTBSCAN_MAP_POLYNOMIAL &&
      cam->map != IMK_OCTBSCAN_MAP_WAVELENGTHS)
    return 0;
  a = value_at (c, cam, 0);
  b = value_at (c, cam, c->width - 1);
  um = um_of_unit (fmin (a, b));
  if (um_of_unit (fmax (a, b)) != um)
    return 0;
  return um * (c->upsample - 1.0) / ((double) c->scale * c->upsample) /
         (2 * fabs (1 / a - 1 / b));
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
imk_octbscan_grid_weights (
    const ImkOctbscanConfig *config, uint32_t camera, double *re, double *im)
{
  const ImkOctbscanCamera *cam = &config->cameras[camera];
  uint32_t m = config->upsample;
  bool thesis = config->interpolation == IMK_OCTBSCAN_INTERPOLATION_THESIS;

  for (uint32_t i = 0; i < m; i++) {
    double u = axis (i, m);
    double weight = window_at (config, i) / (cam->gain ? cam->gain : 1);
    double phase = polynomial (cam->dispersion, cam->n_dispersion, u);

    if (cam->n_phase)
      phase += stretched (cam->phase, cam->n_phase, i, m);
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
