/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The chain at the top of imk/octbscan.h (Kriske 2014, with its errors
 * corrected), from a spectrum x to Z. From the top:
 *
 *   p_i    wavelength () to position ()
 *   a[n]   taper (); the last function has the background
 *   y_i    resampled () to interpolated (), of the spectrum of a
 *   z_i    window () and phase ()
 *   Z_q    one_spectrum (), by the sum of its definition */
#include "octbscan/octbscan-reference.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

static double
wavelength (const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam, double p)
{
  uint32_t before = (uint32_t) fmin (fmax (floor (p), 0), c->width - 2);
  double sum = 0, t = p - before;
  double x = cam->map == IMK_OCTBSCAN_MAP_K_POLYNOMIAL
                 ? 2 * p / (c->width - 1.0) - 1
                 : p;

  switch (cam->map) {
  case IMK_OCTBSCAN_MAP_RANGE:
    return cam->values[0] +
           (cam->values[1] - cam->values[0]) * p / (c->width - 1.0);
  case IMK_OCTBSCAN_MAP_POLYNOMIAL:
  case IMK_OCTBSCAN_MAP_K_POLYNOMIAL:
    for (uint32_t i = 0; i < cam->n_values; i++)
      sum += cam->values[i] * pow (x, i);
    return sum;
  default:
    return (1 - t) * cam->values[before] + t * cam->values[before + 1];
  }
}

static bool
has_wavenumbers (const ImkOctbscanCamera *cam)
{
  return cam->map == IMK_OCTBSCAN_MAP_CHIRP ||
         cam->map == IMK_OCTBSCAN_MAP_K_POLYNOMIAL;
}

/* Of the first and the last pixel. */
static void
wavenumbers (const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam,
    double *first, double *last)
{
  *first = wavelength (c, cam, 0);
  *last = wavelength (c, cam, c->width - 1.0);
  if (has_wavenumbers (cam))
    return;
  *first = 1 / *first;
  *last = 1 / *last;
}

/* What the grid begins and ends with. */
static void
grid_ends (const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam,
    double *first, double *last)
{
  double low = 0, high = INFINITY, a, b;

  wavenumbers (c, cam, first, last);
  if (c->k_range == IMK_OCTBSCAN_K_RANGE_OWN)
    return;
  for (uint32_t i = 0; i < c->n_cameras; i++) {
    wavenumbers (c, &c->cameras[i], &a, &b);
    low = fmax (low, fmin (a, b));
    high = fmin (high, fmax (a, b));
  }
  wavenumbers (c, &c->cameras[0], &a, &b);
  *first = a < b ? low : high;
  *last = a < b ? high : low;
}

/* Where wavenumber @i is, in pixels: by bisection, of the wavelength itself
 * where it is a formula. */
static double
position (const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam, uint32_t i)
{
  double along = i / (c->upsample - 1.0), last = c->width - 1.0;
  double low = 0, high = last, first_value, last_value, wanted, p;
  double first_k, last_k;

  if (cam->map == IMK_OCTBSCAN_MAP_NONE)
    return along * last;
  if (cam->map == IMK_OCTBSCAN_MAP_K_INDEX) {
    double at = along * (cam->n_values - 1);
    uint32_t before = (uint32_t) fmin (floor (at), cam->n_values - 2);

    p = cam->values[before] +
        (at - before) * (cam->values[before + 1] - cam->values[before]);
    return fmin (fmax (p, 0), last);
  }
  first_value = wavelength (c, cam, 0);
  last_value = wavelength (c, cam, last);
  grid_ends (c, cam, &first_k, &last_k);
  wanted = (1 - along) * first_k + along * last_k;
  if (!has_wavenumbers (cam))
    wanted = 1 / wanted;
  for (int k = 0; k < 60; k++) {
    p = (low + high) / 2;
    if ((wavelength (c, cam, p) < wanted) == (last_value > first_value))
      low = p;
    else
      high = p;
  }
  return (low + high) / 2;
}

static double
taper (const ImkOctbscanConfig *c, uint32_t n)
{
  uint32_t from_end = n < c->width - 1 - n ? n : c->width - 1 - n;

  if (c->taper == IMK_OCTBSCAN_TAPER_NONE || c->width >= c->taper_below ||
      from_end >= c->taper_cut)
    return 1;
  if (c->taper == IMK_OCTBSCAN_TAPER_TUKEY)
    return 0.5 - 0.5 * cos (M_PI * from_end / c->taper_cut);
  return (0.5 - 0.5 * cos (2 * M_PI * from_end / (c->width - 1))) /
         (0.5 - 0.5 * cos (2 * M_PI * c->taper_cut / (c->width - 1)));
}

static double
window (const ImkOctbscanConfig *c, uint32_t i)
{
  double t = 2 * M_PI * i / (c->upsample - 1.0), u = t / M_PI - 1;

  switch (c->window) {
  case IMK_OCTBSCAN_WINDOW_HANN:
    return 0.5 - 0.5 * cos (t);
  case IMK_OCTBSCAN_WINDOW_HAMMING:
    return 0.54 - 0.46 * cos (t);
  case IMK_OCTBSCAN_WINDOW_BLACKMAN:
    return 0.42 - 0.5 * cos (t) + 0.08 * cos (2 * t);
  case IMK_OCTBSCAN_WINDOW_GAUSS:
    return exp (-u * u / 0.32);
  case IMK_OCTBSCAN_WINDOW_FILE: {
    double at = i * (c->n_window_values - 1.0) / (c->upsample - 1.0);
    uint32_t before = (uint32_t) fmin (floor (at), c->n_window_values - 2);

    return (before + 1 - at) * c->window_values[before] +
           (at - before) * c->window_values[before + 1];
  }
  default:
    return 1;
  }
}

/* One spectrum, resampled band-limited at pixel @p. */
static double complex
resampled (const double complex *bins, uint32_t n, double p)
{
  double complex sum = 0;

  for (uint32_t f = 0; f < n; f++) {
    double s = f <= n / 2 ? (double) f : (double) f - n;
    double complex turn = cexp (2 * I * M_PI * s * p / n);

    sum += 2 * f == n ? bins[f] * creal (turn) : bins[f] * turn;
  }
  return sum / n;
}

/* Upsampled sample @m of M; only whole pixels when nothing is upsampled. */
static double complex
upsampled (const ImkOctbscanConfig *c, const double complex *bins, int64_t m)
{
  int64_t wrapped = ((m % c->upsample) + c->upsample) % c->upsample;

  return resampled (bins, c->width, (double) wrapped * c->width / c->upsample);
}

static double
lanczos (double x)
{
  double a = M_PI * x, b = M_PI * x / 4;

  return fabs (x) >= 4 ? 0 : fabs (x) < 1e-12 ? 1 : sin (a) / a * sin (b) / b;
}

static double complex
interpolated (const ImkOctbscanConfig *c, const double complex *bins,
    uint32_t i, double p)
{
  bool thesis = c->interpolation == IMK_OCTBSCAN_INTERPOLATION_THESIS;
  double at = c->grid == IMK_OCTBSCAN_GRID_THESIS
                  ? p * (c->upsample - 1.0) / (c->width - 1.0)
                  : p * c->upsample / c->width;
  int64_t m = (int64_t) floor (at);
  double t = at - m, total = 0;
  double complex v[4], sum = 0;

  switch (c->interpolation) {
  case IMK_OCTBSCAN_INTERPOLATION_EXACT:
    return resampled (bins, c->width, at * c->width / c->upsample);
  case IMK_OCTBSCAN_INTERPOLATION_CUBIC:
    for (int k = 0; k < 4; k++)
      v[k] = upsampled (c, bins, m - 1 + k);
    return v[1] + 0.5 * t *
                      (v[2] - v[0] +
                          t * (2 * v[0] - 5 * v[1] + 4 * v[2] - v[3] +
                                  t * (3 * (v[1] - v[2]) + v[3] - v[0])));
  case IMK_OCTBSCAN_INTERPOLATION_LANCZOS:
    for (int64_t k = m - 3; k <= m + 4; k++) {
      sum += lanczos (at - k) * upsampled (c, bins, k);
      total += lanczos (at - k);
    }
    return sum / total;
  default:
    if (thesis && (i < 2 || i + 2 >= c->upsample))
      return 0;
    return (1 - t) * upsampled (c, bins, m) + t * upsampled (c, bins, m + 1);
  }
}

/* Does the grid run the other way than the camera's own wavenumbers do? Then a
 * fringe has the negative phase. */
static bool
turns (const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam)
{
  double first, last, own_first, own_last;

  if (c->k_range == IMK_OCTBSCAN_K_RANGE_OWN)
    return false;
  grid_ends (c, cam, &first, &last);
  wavenumbers (c, cam, &own_first, &own_last);
  return (first < last) != (own_first < own_last);
}

static double
phase (const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam, uint32_t i)
{
  double along = i / (c->upsample - 1.0), sum = 0;

  if (c->k_range == IMK_OCTBSCAN_K_RANGE_COMMON) { /* along the own ones */
    double first, last, own_first, own_last;

    grid_ends (c, cam, &first, &last);
    wavenumbers (c, cam, &own_first, &own_last);
    along = ((1 - along) * first + along * last - own_first) /
            (own_last - own_first);
  }
  for (uint32_t k = 0; k < cam->n_dispersion; k++)
    sum += cam->dispersion[k] * pow (2 * along - 1, k);
  if (cam->n_phase) {
    double at = along * (cam->n_phase - 1);
    uint32_t before = (uint32_t) fmin (floor (at), cam->n_phase - 2);

    sum += (1 - (at - before)) * cam->phase[before] +
           (at - before) * cam->phase[before + 1];
  }
  return turns (c, cam) ? -sum : sum;
}

static void
one_spectrum (const ImkOctbscanConfig *c, const ImkOctbscanCamera *cam,
    const double *x, const double *mean, double *z)
{
  uint32_t n = c->width, m = c->upsample;
  double complex *bins = calloc (n, sizeof (*bins));
  double complex *y = calloc (m, sizeof (*y));
  double sum_window = 0;

  for (uint32_t i = 0; i < n; i++) {
    double turn = cam->spectrum_phase
                      ? (turns (c, cam) ? -1 : 1) * cam->spectrum_phase[i]
                      : 0;
    double complex a = taper (c, i) * (x[i] - mean[i]) * cexp (I * turn);

    for (uint32_t f = 0; f < n; f++)
      bins[f] += a * cexp (-2 * I * M_PI * ((uint64_t) i * f % n) / n);
  }
  for (uint32_t i = 0; i < m; i++) {
    double p = position (c, cam, i);

    y[i] = interpolated (c, bins, i, p) * window (c, i) *
           cexp (I * phase (c, cam, i));
    sum_window += window (c, i);
  }
  for (uint32_t d = 0; d < imk_octbscan_n_depths (c); d++) {
    uint64_t q = (uint64_t) c->crop_top + d, padded = (uint64_t) m * c->scale;
    double complex sum = 0;

    for (uint32_t i = 0; i < m; i++)
      sum += y[i] * cexp (-2 * I * M_PI * (double) (q * i % padded) / padded);
    sum /= cam->gain ? cam->gain : 1;
    z[2 * d] = 2 * creal (sum) / sum_window;
    z[2 * d + 1] = 2 * cimag (sum) / sum_window;
  }
  free (bins);
  free (y);
}

bool
imk_octbscan_reference_is_sound (const double *x, uint32_t n)
{
  uint32_t i = 0;

  while (i < n && fabs (x[i]) <= 1e15)
    i++;
  return i == n;
}

void
imk_octbscan_reference (const ImkOctbscanConfig *c, uint32_t first_camera,
    const double *x, double *z)
{
  uint32_t depths = imk_octbscan_n_depths (c);
  double *mean = calloc (c->width, sizeof (*mean));
  bool *is_sound = calloc (c->height, sizeof (*is_sound));

  for (uint32_t r = 0; r < c->height; r++)
    is_sound[r] =
        imk_octbscan_reference_is_sound (x + (size_t) r * c->width, c->width);
  for (uint32_t r = 0; r < c->height; r++) {
    uint32_t camera = (r + first_camera) % c->n_cameras;

    for (uint32_t i = 0; i < c->width; i++) {
      double sum = 0, count = 0;

      for (uint32_t s = r % c->n_cameras; s < c->height; s += c->n_cameras)
        if (is_sound[s]) {
          sum += x[(size_t) s * c->width + i];
          count++;
        }
      mean[i] = c->background_mode == IMK_OCTBSCAN_BACKGROUND_MEAN ? sum / count
                : c->background_mode == IMK_OCTBSCAN_BACKGROUND_FILE
                    ? c->background[(size_t) camera * c->width + i]
                    : 0;
    }
    if (is_sound[r])
      one_spectrum (c, &c->cameras[camera], x + (size_t) r * c->width, mean,
          z + 2 * (size_t) r * depths);
    for (uint32_t i = 0; !is_sound[r] && i < 2 * depths; i++)
      z[2 * (size_t) r * depths + i] = 0;
  }
  free (mean);
  free (is_sound);
}
