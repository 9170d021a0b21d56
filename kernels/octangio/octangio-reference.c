/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table at the top of imk/octangio.h has the formula and the source of each
 * method. From the top: a pixel Z, a pair of pixels, the phase of bulk motion,
 * S and E over the window, and a function for each kind of method; flow_at ()
 * selects one. */
#include "octangio/octangio-reference.h"

#include <complex.h>
#include <math.h>

#include "octangio/octangio-backend.h"
#include "octangio/octangio-eigen.h"

static double complex
value_at (
    const ImkOctangioConfig *c, const float *bscan, uint32_t a, uint32_t z)
{
  const float *v = c->is_complex ? bscan + 2 * ((size_t) a * c->n_depths + z)
                                 : bscan + (size_t) z * c->n_ascans + a;

  if (!c->is_complex)
    return v[0] > 0 && v[0] <= 1e30 ? sqrt (v[0]) : 0;
  return fabs (v[0]) <= 1e15 && fabs (v[1]) <= 1e15 ? v[0] + I * v[1] : 0;
}

/* The two pixels of pair @k of a pixel. Returns: FALSE where there is no such
 */
static bool
pair_at (const ImkOctangioConfig *c, const float *const *bscans, uint32_t k,
    uint32_t a, uint32_t z, double complex *first, double complex *second)
{
  uint32_t last = c->n_ascans - 1;

  if (c->pairs == IMK_OCTANGIO_PAIRS_BSCANS) {
    if (k + 1 >= c->n_repeats)
      return false;
    *first = value_at (c, bscans[k], a, z);
    *second = value_at (c, bscans[k + 1], a, z);
    return true;
  }
  if (k >= c->n_repeats || last == 0)
    return false;
  *first = value_at (c, bscans[k], a < last ? a : last - 1, z);
  *second = value_at (c, bscans[k], a < last ? a + 1 : last, z);
  return true;
}

/* Returns: the phase that most depths of pair @k of an A-scan have */
static double
bulk_phase (const ImkOctangioConfig *c, const float *const *bscans, uint32_t k,
    uint32_t a)
{
  double phase = 0;

  for (int round = 0; round < IMK_OCTANGIO_BULK_ROUNDS; round++) {
    double complex sum = 0, x = 0, y = 0;
    double limit = cos (M_PI / (2 << round));

    for (uint32_t first = 0; first < c->n_depths;
         first += IMK_OCTANGIO_BULK_DEPTHS) {
      double complex p = 0;
      double near;

      for (uint32_t z = first;
           z < c->n_depths && z < first + IMK_OCTANGIO_BULK_DEPTHS; z++) {
        pair_at (c, bscans, k, a, z, &x, &y);
        p += y * conj (x);
      }
      near = cos (carg (p * cexp (-I * phase)));
      sum += round == 0 ? p : p * fmax (0, (near - limit) / (1 - limit));
    }
    phase = cabs (sum) > 0 ? carg (sum) : phase;
  }
  return phase;
}

static void
range_of (
    uint32_t at, uint32_t window, uint32_t n, uint32_t *first, uint32_t *end)
{
  uint32_t before = (window - 1) / 2;

  *first = at > before ? at - before : 0;
  *end = at + window - before < n ? at + window - before : n;
}

/* S and E. */
static void
sums_at (const ImkOctangioConfig *c, const float *const *bscans, uint32_t a,
    uint32_t z, double complex *s, double *e)
{
  uint32_t a0, a1, z0, z1;
  double complex x = 0, y = 0;

  range_of (a, c->lateral, c->n_ascans, &a0, &a1);
  range_of (z, c->axial, c->n_depths, &z0, &z1);
  *s = *e = 0;
  for (uint32_t i = a0; i < a1; i++)
    for (uint32_t k = 0; pair_at (c, bscans, k, i, z, &x, &y); k++) {
      double phase = c->bulk_motion ? bulk_phase (c, bscans, k, i) : 0;

      for (uint32_t q = z0; q < z1; q++) {
        pair_at (c, bscans, k, i, q, &x, &y);
        *s += y * conj (x) * cexp (-I * phase);
        *e += (creal (x * conj (x)) + creal (y * conj (y))) / 2;
      }
    }
}

static double
eigen_at (const ImkOctangioConfig *c, const float *const *bscans, uint32_t a,
    uint32_t z)
{
  uint32_t n = c->n_repeats, first, end;
  double complex matrix[IMK_OCTANGIO_MAX_REPEATS * IMK_OCTANGIO_MAX_REPEATS] = {
      0};
  double complex vectors[IMK_OCTANGIO_MAX_REPEATS * IMK_OCTANGIO_MAX_REPEATS];
  double power = 0;

  range_of (a, c->lateral, c->n_ascans, &first, &end);
  for (uint32_t i = first; i < end; i++)
    for (uint32_t q = 0; q < c->n_depths; q++)
      for (uint32_t r = 0; r < n; r++)
        for (uint32_t t = 0; t < n; t++)
          matrix[r * n + t] += value_at (c, bscans[r], i, q) *
                               conj (value_at (c, bscans[t], i, q));
  imk_octangio_eigenvectors (matrix, n, c->n_tissue, vectors);
  for (uint32_t r = 0; r < n; r++) {
    double complex rest = value_at (c, bscans[r], a, z);

    for (uint32_t k = 0; k < c->n_tissue; k++) {
      double complex share = 0;

      for (uint32_t t = 0; t < n; t++)
        share += conj (vectors[k * n + t]) * value_at (c, bscans[t], a, z);
      rest -= share * vectors[k * n + r];
    }
    power += creal (rest * conj (rest));
  }
  return power / n;
}

static double
amplitudes_at (const ImkOctangioConfig *c, const float *const *bscans,
    uint32_t a, uint32_t z)
{
  double n = c->n_repeats, mean = 0, variance = 0, likeness = 0;

  for (uint32_t r = 0; r < c->n_repeats; r++)
    mean += cabs (value_at (c, bscans[r], a, z)) / n;
  for (uint32_t r = 0; r < c->n_repeats; r++)
    variance += pow (cabs (value_at (c, bscans[r], a, z)) - mean, 2) / n;
  if (c->method == IMK_OCTANGIO_SPECKLE_VARIANCE)
    return variance;
  for (uint32_t r = 0; r + 1 < c->n_repeats; r++) {
    double x = cabs (value_at (c, bscans[r], a, z));
    double y = cabs (value_at (c, bscans[r + 1], a, z));

    likeness += x * x + y * y > 0 ? 2 * x * y / (x * x + y * y) : 1;
  }
  return 1 - likeness / (n - 1);
}

/* The amplitude of a pixel in one band. */
static double
band_at (const ImkOctangioConfig *c, const float *bscan, uint32_t band,
    uint32_t a, uint32_t z)
{
  double sigma = imk_octangio_band_sigma (c);
  int64_t radius = (int64_t) ceil (4 * sigma);
  double complex sum = 0;

  for (int64_t j = -radius; j <= radius; j++) {
    int64_t at = (int64_t) z - j;

    if (at >= 0 && at < c->n_depths)
      sum += exp (-(double) (j * j) / (2 * sigma * sigma)) *
             value_at (c, bscan, a, (uint32_t) at) *
             cexp (2 * M_PI * I * (band + 0.5) * (double) at /
                   (c->n_bands * c->depth_scale));
  }
  return cabs (sum);
}

static double
bands_at (const ImkOctangioConfig *c, const float *const *bscans, uint32_t a,
    uint32_t z)
{
  double sum = 0;

  for (uint32_t band = 0; band < c->n_bands; band++)
    for (uint32_t r = 0; r + 1 < c->n_repeats; r++) {
      double x = band_at (c, bscans[r], band, a, z);
      double y = band_at (c, bscans[r + 1], band, a, z);

      sum += x * x + y * y > 0 ? 1 - 2 * x * y / (x * x + y * y) : 0;
    }
  return sum / (c->n_bands * (c->n_repeats - 1));
}

static double
flow_at (const ImkOctangioConfig *c, const float *const *bscans, uint32_t a,
    uint32_t z)
{
  double complex s;
  double e, mean = 0;

  for (uint32_t r = 0; r < c->n_repeats; r++)
    mean += pow (cabs (value_at (c, bscans[r], a, z)), 2) / c->n_repeats;
  if (c->method == IMK_OCTANGIO_MEAN || mean < c->floor)
    return mean < c->floor ? 0 : mean;
  switch (c->method) {
  case IMK_OCTANGIO_COMPLEX_DECORRELATION:
    sums_at (c, bscans, a, z, &s, &e);
    return e > 0 ? 1 - cabs (s) / e : 0;
  case IMK_OCTANGIO_DOPPLER:
    sums_at (c, bscans, a, z, &s, &e);
    return cabs (s) > 0 ? c->scale * carg (s) : 0;
  case IMK_OCTANGIO_EIGEN:
    return eigen_at (c, bscans, a, z);
  default:
    return c->n_bands > 1 ? bands_at (c, bscans, a, z)
                          : amplitudes_at (c, bscans, a, z);
  }
}

void
imk_octangio_reference (
    const ImkOctangioConfig *c, const float *const *bscans, double *flow)
{
  for (uint32_t z = 0; z < c->n_depths; z++)
    for (uint32_t a = 0; a < c->n_ascans; a++)
      flow[(size_t) z * c->n_ascans + a] = flow_at (c, bscans, a, z);
}
