/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The formulas are at imk_shcentroid_process () in imk/shcentroid.h:
 *
 *   v = (lut (sample) - dark) flat                     get_pixel ()
 *   T                                                  find_threshold ()
 *   p = ((v - T or v) weight)^power where v >= T       add_pixel ()
 *   c = (sum p u, sum p y) / sum p                     iterate ()
 *   var = sum (u - c)^2 (dp / dv)^2 var (v) / m00^2    get_variances ()
 *
 * Mocci et al. 2020, eqs. 6 and 7; Thomas et al. 2006 (weights). The last
 * function is a cell from beginning to end. */
#include "shcentroid/shcentroid-reference.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shcentroid/shcentroid-cells.h"

/* A calibrated pixel: v = (s - dark) flat, in float32 as the backends have it.
 */
typedef struct Pixel {
  float value;
  double flat;
  bool good;
  double sample;
} Pixel;

static double
get_sample (const ImkImage *in, int64_t x, int64_t y)
{
  const uint8_t *row = (const uint8_t *) in->data + y * (int64_t) in->stride;

  switch (in->type) {
  case IMK_TYPE_U8:
    return row[x];
  case IMK_TYPE_U16:
    return ((const uint16_t *) row)[x];
  default:
    return ((const float *) row)[x];
  }
}

static Pixel
get_pixel (
    const ImkShcentroidConfig *c, const ImkImage *in, int64_t x, int64_t y)
{
  size_t at = (size_t) (y * c->width + x);
  Pixel p = {.sample = get_sample (in, x, y)};
  float flat = c->flat ? c->flat[at] : 1.0f;
  float value = c->lut ? c->lut[(uint32_t) p.sample] : (float) p.sample;

  if (c->dark)
    value = value - c->dark[at];
  p.value = value * flat;
  p.flat = flat;
  p.good = flat != 0 && !(c->bad && c->bad[at]);
  return p;
}

/* --- the threshold T ------------------------------------------------------ */

static int
compare_descending (const void *a, const void *b)
{
  float x = *(const float *) a, y = *(const float *) b;

  return x < y ? 1 : x > y ? -1 : 0;
}

/* Returns: how many good values there are; the largest is the first */
static uint32_t
sort_values (const ImkShcentroidConfig *c, const ImkImage *in,
    const ImkShcentroidRect *r, float *values)
{
  uint32_t n = 0;

  for (int64_t y = r->y; y < r->y + r->height; y++)
    for (int64_t x = r->x; x < r->x + r->width; x++) {
      Pixel p = get_pixel (c, in, x, y);

      if (p.good)
        values[n++] = p.value;
    }
  qsort (values, n, sizeof (*values), compare_descending);
  return n;
}

/* ImkShcentroidThreshold */
static double
threshold_of_mode (
    const ImkShcentroidConfig *c, double t, const float *values, uint32_t n)
{
  double most = values[0], least = values[n - 1];

  switch (c->threshold_mode) {
  case IMK_SHCENTROID_THRESHOLD_ABSOLUTE:
    return t;
  case IMK_SHCENTROID_THRESHOLD_NOISE:
    return t * c->read_noise;
  case IMK_SHCENTROID_THRESHOLD_RELATIVE:
    return fmax (t * most, c->threshold_least);
  case IMK_SHCENTROID_THRESHOLD_RANGE:
    return fmax (least + t * (most - least), c->threshold_least);
  default:
    return -INFINITY;
  }
}

/* brightest: the n-th largest value, or, to subtract, the next lower one. */
static double
threshold_of_brightest (
    const ImkShcentroidConfig *c, const float *values, uint32_t n)
{
  uint32_t k = c->brightest - 1;

  if (c->brightest == 0 || c->brightest >= n)
    return -INFINITY;
  if (c->threshold_action == IMK_SHCENTROID_ACTION_SUBTRACT)
    while (k < n && values[k] == values[c->brightest - 1])
      k++;
  return k < n ? values[k] : -INFINITY;
}

static double
find_threshold (const ImkShcentroidConfig *c, const ImkImage *in,
    const ImkShcentroidRect *r)
{
  float *values = malloc (((size_t) r->width * r->height + 1) * sizeof (float));
  uint32_t n = sort_values (c, in, r, values);
  double t = isnan (r->threshold) ? c->threshold : r->threshold;

  t = n == 0 ? -INFINITY
             : fmax (threshold_of_mode (c, t, values, n),
                   threshold_of_brightest (c, values, n));
  free (values);
  return t;
}

float
imk_shcentroid_reference_pixel (
    const ImkShcentroidConfig *c, const ImkImage *in, int64_t x, int64_t y)
{
  Pixel p = get_pixel (c, in, x, y);

  return p.good ? p.value : NAN;
}

double
imk_shcentroid_reference_threshold (
    const ImkShcentroidConfig *c, const ImkImage *in, uint32_t cell)
{
  ImkShcentroidRect r = imk_shcentroid_cell_rect (c, cell);

  return find_threshold (c, in, &r);
}

/* --- the sums ------------------------------------------------------------- */

typedef struct Sums {
  long double m00, m10, m01;      /* of p, p u, p v */
  long double spread_x, spread_y; /* of the variance of p, times u^2, v^2 */
  long double raw;
  float max;
  double max_sample;
} Sums;

/* Where the sums are taken from: a weight about (weight_x, weight_y), and
 * coordinates from (mean_x, mean_y). */
typedef struct Centre {
  double weight_x, weight_y; /* pixels of the frame */
  long double mean_x, mean_y;
} Centre;

/* A quad cell only knows sides: a middle column counts for neither. */
static double
coordinate (const ImkShcentroidConfig *c, int64_t i, int64_t n)
{
  if (c->estimator == IMK_SHCENTROID_ESTIMATOR_COG)
    return (double) i;
  return 2 * i < n - 1 ? -1 : 2 * i > n - 1 ? 1 : 0;
}

/* ImkShcentroidWeighting */
static long double
get_weight (
    const ImkShcentroidConfig *c, const Centre *centre, int64_t x, int64_t y)
{
  long double dx = x - centre->weight_x, dy = y - centre->weight_y;

  return c->weighting == IMK_SHCENTROID_WEIGHTING_NONE
             ? 1
             : expl (-(dx * dx + dy * dy) / (2 * c->sigma * c->sigma));
}

/* p = (d w)^power, d = v - T or v. Its variance comes from photon and read
 * noise of the sample. */
static void
add_pixel (const ImkShcentroidConfig *c, const Pixel *k, double t,
    long double w, long double u, long double v, Sums *s)
{
  bool subtract =
      c->threshold_action == IMK_SHCENTROID_ACTION_SUBTRACT && isfinite (t);
  long double d = k->value - (subtract ? t : 0), p = d * w, slope = w;
  long double variance = k->flat * fmax (k->value, 0) / c->gain +
                         k->flat * k->flat * c->read_noise * c->read_noise;

  if (c->power != 1) {
    slope = d > 0 ? c->power * powl (p, c->power - 1) * w : 0;
    p = p > 0 ? powl (p, c->power) : 0;
  }
  s->m00 += p;
  s->m10 += p * u;
  s->m01 += p * v;
  s->spread_x += slope * slope * variance * u * u;
  s->spread_y += slope * slope * variance * v * v;
}

static Sums
sum_cell (const ImkShcentroidConfig *c, const ImkImage *in,
    const ImkShcentroidRect *r, double t, const Centre *centre)
{
  Sums s = {.max = -INFINITY};

  for (int64_t y = 0; y < r->height; y++)
    for (int64_t x = 0; x < r->width; x++) {
      Pixel k = get_pixel (c, in, r->x + x, r->y + y);
      long double u = coordinate (c, x, r->width) - centre->mean_x;
      long double v = coordinate (c, y, r->height) - centre->mean_y;

      if (!k.good)
        continue;
      s.raw += k.value;
      s.max = fmaxf (s.max, k.value);
      s.max_sample = fmax (s.max_sample, k.sample);
      if (k.value >= t)
        add_pixel (
            c, &k, t, get_weight (c, centre, r->x + x, r->y + y), u, v, &s);
    }
  return s;
}

/* --- the centroid --------------------------------------------------------- */

/* Pixels from the edge of the cell, never outside of it. */
static double
position_in_cell (const ImkShcentroidConfig *c, long double mean, int64_t n)
{
  double m = (double) mean;

  if (c->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD)
    return (double) (n - 1) / 2 + c->quad_gain * fmin (fmax (m, -1), 1);
  return fmin (fmax (m, 0), (double) (n - 1));
}

/* Values below 0 can put the mean outside; half a pixel is tolerated. */
static bool
is_outside (const ImkShcentroidConfig *c, long double mean, int64_t n)
{
  if (c->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD)
    return c->quad_gain * fabsl (mean) > c->quad_gain + 0.5;
  return mean < -0.5 || mean > (long double) n - 0.5;
}

/* By how much the weight moves: 1/1024 of the sigma of its power. */
static double
nudge_of (const ImkShcentroidConfig *c)
{
  return c->sigma / sqrt (c->power) / 1024;
}

/* How an iterated weight raises the variance: it follows the part q of each
 * shift of itself, so noise counts 1 + q + q^2 + ... times. q is measured by
 * moving the weight from @from to @to. */
static double
iterated_gain (const ImkShcentroidConfig *c, double from, double to)
{
  double q = fmin (fmax ((to - from) / nudge_of (c), 0), 1), sum = 0;

  for (uint32_t i = 0; i < c->iterations; i++)
    sum += pow (q, i);
  return sum * sum;
}

typedef struct Measurement {
  const ImkShcentroidConfig *c;
  const ImkImage *in;
  ImkShcentroidRect r;
  double t;
  Centre centre; /* of the last sums; its means are 0 */
  Sums s;
  long double mean_x, mean_y;
  bool outside;
} Measurement;

/* With a weight, each iteration moves it to the last centroid. */
static void
iterate (Measurement *m)
{
  uint32_t n = m->c->weighting ? m->c->iterations : 1;

  for (uint32_t k = 0; k < n; k++) {
    m->s = sum_cell (m->c, m->in, &m->r, m->t, &m->centre);
    if (!(m->s.m00 > 0))
      continue;
    m->mean_x = m->s.m10 / m->s.m00;
    m->mean_y = m->s.m01 / m->s.m00;
    m->outside = is_outside (m->c, m->mean_x, m->r.width) ||
                 is_outside (m->c, m->mean_y, m->r.height);
    if (k + 1 < n && !m->outside) {
      m->centre.weight_x =
          m->r.x + position_in_cell (m->c, m->mean_x, m->r.width);
      m->centre.weight_y =
          m->r.y + position_in_cell (m->c, m->mean_y, m->r.height);
    }
  }
}

static uint32_t
get_flags (const Measurement *m)
{
  double min_flux = isnan (m->r.min_flux) ? m->c->min_flux : m->r.min_flux;
  uint32_t flags = m->r.flags;

  if (!(m->s.m00 > 0))
    flags |= IMK_SHCENTROID_NO_FLUX;
  else if (m->outside)
    flags |= IMK_SHCENTROID_OUTSIDE;
  if (fmax ((double) m->s.m00, 0) < min_flux)
    flags |= IMK_SHCENTROID_LOW_FLUX;
  if (m->c->saturation > 0 && m->s.max_sample >= m->c->saturation)
    flags |= IMK_SHCENTROID_SATURATED;
  return flags;
}

/* var = sum of (variance of p) (u - mean)^2 / m00^2, at most 3e38, which a
 * float32 can hold */
static void
get_variances (const Measurement *m, double row[IMK_SHCENTROID_N_FIELDS])
{
  const ImkShcentroidConfig *c = m->c;
  double scale = c->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD
                     ? c->quad_gain * c->quad_gain
                     : 1;
  double x = row[IMK_SHCENTROID_X] - m->r.x, y = row[IMK_SHCENTROID_Y] - m->r.y;
  Centre centre = m->centre;
  Sums s;

  centre.mean_x = m->mean_x;
  centre.mean_y = m->mean_y;
  s = sum_cell (c, m->in, &m->r, m->t, &centre);
  row[IMK_SHCENTROID_VAR_X] =
      fmin (scale * (double) (s.spread_x / (s.m00 * s.m00)), 3e38);
  row[IMK_SHCENTROID_VAR_Y] =
      fmin (scale * (double) (s.spread_y / (s.m00 * s.m00)), 3e38);
  if (!c->weighting || c->iterations < 2)
    return;
  centre = m->centre;
  centre.weight_x += nudge_of (c);
  s = sum_cell (c, m->in, &m->r, m->t, &centre);
  row[IMK_SHCENTROID_VAR_X] *=
      iterated_gain (c, x, position_in_cell (c, s.m10 / s.m00, m->r.width));
  centre = m->centre;
  centre.weight_y += nudge_of (c);
  s = sum_cell (c, m->in, &m->r, m->t, &centre);
  row[IMK_SHCENTROID_VAR_Y] *=
      iterated_gain (c, y, position_in_cell (c, s.m01 / s.m00, m->r.height));
}

static Measurement
measure (const ImkShcentroidConfig *c, const ImkImage *in, uint32_t cell)
{
  Measurement m = {c, in, imk_shcentroid_cell_rect (c, cell)};

  m.t = find_threshold (c, in, &m.r);
  m.centre.weight_x = m.r.ref_x;
  m.centre.weight_y = m.r.ref_y;
  iterate (&m);
  return m;
}

double
imk_shcentroid_reference_rounding (const ImkShcentroidConfig *c,
    const ImkImage *in, uint32_t cell, ImkShcentroidField field)
{
  bool in_x = field == IMK_SHCENTROID_VAR_X;
  double gain = c->weighting ? c->iterations * (double) c->iterations : 1;
  Measurement m;

  if (!in_x && field != IMK_SHCENTROID_VAR_Y)
    return 0;
  m = measure (c, in, cell);
  if (c->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD)
    gain *= c->quad_gain * c->quad_gain;
  /* the backends report no less than a part of two such sums; as much again for
   * their own rounding */
  return 4 * IMK_SHCENTROID_ROUNDING * gain *
         (double) ((in_x ? m.s.spread_x : m.s.spread_y) / (m.s.m00 * m.s.m00));
}

void
imk_shcentroid_reference (const ImkShcentroidConfig *c, const ImkImage *in,
    uint32_t cell, double row[IMK_SHCENTROID_N_FIELDS])
{
  Measurement m = measure (c, in, cell);
  uint32_t flags = get_flags (&m);

  memset (row, 0, IMK_SHCENTROID_N_FIELDS * sizeof (*row));
  row[IMK_SHCENTROID_FLUX] = fmax ((double) m.s.m00, 0);
  row[IMK_SHCENTROID_FLUX_RAW] = (double) m.s.raw;
  row[IMK_SHCENTROID_MAX] = isfinite (m.s.max) ? m.s.max : 0;
  row[IMK_SHCENTROID_FLAGS] = flags;
  row[IMK_SHCENTROID_X] = m.r.ref_x;
  row[IMK_SHCENTROID_Y] = m.r.ref_y;
  if (!(flags & IMK_SHCENTROID_INVALID_MASK)) {
    row[IMK_SHCENTROID_X] = m.r.x + position_in_cell (c, m.mean_x, m.r.width);
    row[IMK_SHCENTROID_Y] = m.r.y + position_in_cell (c, m.mean_y, m.r.height);
    get_variances (&m, row);
  }
  row[IMK_SHCENTROID_DX] = (row[IMK_SHCENTROID_X] - m.r.ref_x) * c->slope_scale;
  row[IMK_SHCENTROID_DY] = (row[IMK_SHCENTROID_Y] - m.r.ref_y) * c->slope_scale;
}
