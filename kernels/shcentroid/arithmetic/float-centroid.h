/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The chain of a pixel, from the sample to its part in the sums of its cell,
 * in floating point: whatever the integers of the plain centroid cannot do.
 * Both backends compile this file, and they agree bit for bit because the
 * operations are the same and their order does not depend on the backend:
 *
 * - A pixel is float32 up to its calibrated value, then float64. A bad one is
 *   not a number, which no comparison lets through.
 * - A sample that is not finite (imk_shcentroid_sample) is infinite. Then the
 *   sum of its cell is not finite either, whatever the options: that is how its
 *   cell is known, without a second look at the samples.
 * - weight = row factor * column factor. Each pixel is multiplied by its row
 *   factor; the sums of each column are multiplied by the column factor.
 * - A cell is cut into bands of IMK_SHCENTROID_BAND_ROWS rows, these into
 *   groups of imk_shcentroid_group_rows (). In a group each column is added up
 *   from the last row to the first, by ImkShcentroidGroup; the groups are added
 *   to the column from the top (imk_shcentroid_add_group). Column u goes to
 *   lane u % 32, from left to right; the lanes are added up by halves (16 to
 *   the lower 16, 8 to 8, ...); bands are added from the top. Warps do this as
 *   it is, and so do vector units. Lanes without a column hold 0, so fewer will
 *   do for narrow cells. */
#pragma once

#include "shcentroid/arithmetic/integer-centroid.h"

enum {
  IMK_SHCENTROID_LANES = 32,
  IMK_SHCENTROID_BAND_ROWS = 32,
  IMK_SHCENTROID_GROUP_ROWS = 8, /* at most */
};

#define IMK_SHCENTROID_LOG2_E 1.4426950408889634
/* The last bits of its sum with a small whole number are those of the number.
 */
#define IMK_SHCENTROID_WHOLE 6755399441055744.0

/* Where a cell is looked for in the frame: its rect, moved by tracking. */
typedef struct ImkShcentroidWindow {
  uint32_t x, y, width, height;
  bool at_edge; /* it would have moved further, but for the frame's edge */
} ImkShcentroidWindow;

/* What decides which pixels of a cell count. */
typedef struct ImkShcentroidLevel {
  double least;    /* calibrated values below do not take part */
  double pedestal; /* is subtracted from those that do */
} ImkShcentroidLevel;

/* The calibrated values of a cell; bad pixels are left out. */
typedef struct ImkShcentroidRange {
  float min, max;
  uint32_t n;
} ImkShcentroidRange;

/* The sums over a cell: p the part of a pixel, u and y from the corner of the
 * window (quad cell: -1, 0, 1), q its variance; raw of calibrated values. */
typedef struct ImkShcentroidReals {
  double p, pu, py;
  double q, qu, qy, quu, qyy;
  double raw;
  float max;
  float max_sample; /* as it came, of pixels that are not bad */
} ImkShcentroidReals;

/* What part of a small shift of the weight the centroid follows. */
typedef struct ImkShcentroidPull {
  double x, y;
} ImkShcentroidPull;

/* One column of a group, added up from its last row. Adding a running sum to
 * another one before it grows weights each row by its distance, without a
 * multiplication: p1 is the sum of k p, q2 that of k (k - 1) / 2 q, k counted
 * from the first row of the group. In a quad cell p1, q1 and q2 are the sums of
 * y p, y q and y^2 q as they are. */
typedef struct ImkShcentroidGroup {
  double p, p1;
  double q, q1, q2;
  double raw;
} ImkShcentroidGroup;

/* What a frame does not change, prepared once. Pixels and their sums have
 * variances in units of per_count, which is multiplied with at the end. */
typedef struct ImkShcentroidNoise {
  double per_count; /* variance a calibrated count: 1 / gain */
  double read;      /* read noise squared, in that unit */
} ImkShcentroidNoise;

IMK_SHCENTROID_INLINE ImkShcentroidNoise
imk_shcentroid_noise (const ImkShcentroidParams *params)
{
  ImkShcentroidNoise noise;

  noise.per_count = 1.0 / params->gain;
  noise.read = params->read_noise * params->read_noise * params->gain;
  return noise;
}

/* Returns: rows in each group of a cell; the last group may have fewer. A low
 * cell is cut into groups of nearly equal height, because a GPU waits for the
 * tallest. */
IMK_SHCENTROID_INLINE uint32_t
imk_shcentroid_group_rows (uint32_t height)
{
  uint32_t most = IMK_SHCENTROID_GROUP_ROWS;
  uint32_t n = (height + most - 1) / most;

  return height > IMK_SHCENTROID_BAND_ROWS ? most : (height + n - 1) / n;
}

IMK_SHCENTROID_INLINE double
imk_shcentroid_infinity (void)
{
  uint64_t bits = UINT64_C (0x7ff0000000000000);
  double infinity;

  memcpy (&infinity, &bits, sizeof (infinity));
  return infinity;
}

/* Is a frame no more than sums of its samples, above a threshold or not? Other
 * settings are of the chain, even where it adds up integers. */
IMK_SHCENTROID_INLINE bool
imk_shcentroid_is_plain (
    const ImkShcentroidParams *p, ImkType type, bool calibrated)
{
  return type != IMK_TYPE_F32 && !calibrated && p->brightest == 0 &&
         p->weighting == IMK_SHCENTROID_WEIGHTING_NONE && p->power == 1.0 &&
         !p->remove_tilt && p->min_illumination == 0.0 &&
         p->estimator == IMK_SHCENTROID_ESTIMATOR_COG &&
         p->window == IMK_SHCENTROID_WINDOW_CELL;
}

/* ------------------------------------------------------------------------
 * Powers of 2 and log: those of a C library and of CUDA differ in the last
 * bits. */

/* 2^x for -1000 < x < 1000; 0 below. Relative error below 1e-15. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_exp2 (double x)
{
  double bounded = x > -1000.0 ? x : -1000.0;
  double shifted = bounded + IMK_SHCENTROID_WHOLE; /* to the nearest */
  double r = bounded - (shifted - IMK_SHCENTROID_WHOLE);
  double sum = 7.070977866508139e-09, scale;
  uint64_t bits;

  /* |r| <= 0.5: the polynomial of about the least relative error that is 1 at 0
   */
  sum = sum * r + 1.0205905413765595e-07;
  sum = sum * r + 1.3215451633221434e-06;
  sum = sum * r + 1.5252672924850737e-05;
  sum = sum * r + 0.00015403530424776529;
  sum = sum * r + 0.0013333558200794592;
  sum = sum * r + 0.009618129107618665;
  sum = sum * r + 0.05550410866465167;
  sum = sum * r + 0.24022650695910075;
  sum = sum * r + 0.6931471805599462;
  sum = sum * r + 1.0;
  memcpy (&bits, &shifted, sizeof (bits));
  bits = (bits + 1023) << 52;
  memcpy (&scale, &bits, sizeof (scale));
  return x > -1000.0 ? sum * scale : 0.0;
}

/* The logarithm to base 2 of a normal, positive number. Relative error of the
 * polynomial below 1e-15. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_log2 (double x)
{
  double mantissa, m, s, square, sum = 0.2429160853987535;
  bool is_large;
  int64_t exponent;
  uint64_t bits;

  memcpy (&bits, &x, sizeof (bits));
  exponent = (int64_t) (bits >> 52) - 1023;
  bits = (bits & UINT64_C (0x000fffffffffffff)) | UINT64_C (0x3ff0000000000000);
  memcpy (&mantissa, &bits, sizeof (mantissa));
  is_large = mantissa > 1.4142135623730951;
  m = is_large ? 0.5 * mantissa : mantissa;
  exponent += is_large;
  /* 2 artanh s / log 2, |s| <= 0.172 */
  s = (m - 1.0) / (m + 1.0);
  square = s * s;
  sum = sum * square + 0.2614442493522915;
  sum = sum * square + 0.32061638813224547;
  sum = sum * square + 0.4121984020482752;
  sum = sum * square + 0.5770780172463286;
  sum = sum * square + 0.9617966939243345;
  sum = sum * square + 2.885390081777927;
  return s * sum + (double) exponent;
}

/* Steps between powers of 2, each as long as the others of its octave: a power
 * is that of the middle of a step, which a CPU looks up, times a series. */
enum { IMK_SHCENTROID_STEP_BITS = 7 };

/* Of the middle m of a step: 1 / m and m^power. */
typedef struct ImkShcentroidStep {
  double inverse, power;
} ImkShcentroidStep;

/* Of the step that the normal, positive number @x is in. */
IMK_SHCENTROID_INLINE ImkShcentroidStep
imk_shcentroid_step (double x, double power)
{
  const uint64_t half = UINT64_C (1) << (51 - IMK_SHCENTROID_STEP_BITS);
  ImkShcentroidStep step;
  uint64_t bits;
  double middle;

  memcpy (&bits, &x, sizeof (bits));
  bits = (bits & ~(2 * half - 1)) | half;
  memcpy (&middle, &bits, sizeof (middle));
  step.inverse = 1.0 / middle;
  step.power = imk_shcentroid_exp2 (power * imk_shcentroid_log2 (middle));
  return step;
}

/* (1 + d)^power = 1 + power d + @second d^2 + @third d^3 + @fourth d^4 */
typedef struct ImkShcentroidSeries {
  double power, second, third, fourth;
} ImkShcentroidSeries;

IMK_SHCENTROID_INLINE ImkShcentroidSeries
imk_shcentroid_series (double power)
{
  ImkShcentroidSeries s;

  s.power = power;
  s.second = power * (power - 1.0) * 0.5;
  s.third = s.second * (power - 2.0) * (1.0 / 3.0);
  s.fourth = s.third * (power - 3.0) * 0.25;
  return s;
}

/* x^power, 0 for what has no such power; what is not finite stays so. From 1 to
 * 4 the relative error is below 1e-13: |d| < 2^-8, the next term 0.03 d^5. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_power (double x, double power)
{
  ImkShcentroidSeries s;
  ImkShcentroidStep step;
  double d, sum;

  if (!(x < 1e300))
    return x;
  if (power == 2.0)
    return x > 0.0 ? x * x : 0.0;
  if (power == 1.5)
    return x > 0.0 ? x * sqrt (x) : 0.0;
  if (!(x > 1e-300))
    return 0.0;
  step = imk_shcentroid_step (x, power);
  s = imk_shcentroid_series (power);
  d = x * step.inverse - 1.0;
  sum = s.fourth * d + s.third;
  sum = sum * d + s.second;
  sum = sum * d + s.power;
  sum = sum * d + 1.0;
  return sum * step.power;
}

/* One factor of a Gaussian weight, @distance from its centre. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_weight (double distance, double sigma)
{
  double scale = -0.5 * IMK_SHCENTROID_LOG2_E / (sigma * sigma);

  return imk_shcentroid_exp2 (distance * distance * scale);
}

/* ------------------------------------------------------------------------
 * One pixel. */

/* A float32 sample: what is no number, infinite, or so large that its sums
 * could end beyond all numbers, is infinite. */
IMK_SHCENTROID_INLINE float
imk_shcentroid_sample (float sample)
{
  bool finite = (sample >= -1e30f) & (sample <= 1e30f);

  return finite ? sample : (float) imk_shcentroid_infinity ();
}

/* Is the sum of a cell one of finite samples? */
IMK_SHCENTROID_INLINE bool
imk_shcentroid_is_finite (double sum)
{
  return (sum > -1e300) & (sum < 1e300);
}

IMK_SHCENTROID_INLINE float
imk_shcentroid_calibrate (float sample, ImkShcentroidPixel pixel)
{
  return (sample - pixel.dark) * pixel.flat;
}

/* Where column or row @i of @n stands in the moments. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_coordinate (
    const ImkShcentroidParams *params, uint32_t i, uint32_t n)
{
  if (params->estimator != IMK_SHCENTROID_ESTIMATOR_QUAD)
    return i;
  return 2 * i + 1 < n ? -1.0 : 2 * i + 1 > n ? 1.0 : 0.0;
}

/* The part of a pixel: (v - pedestal)^power weight, of the weight that of its
 * row. The sigma of ImkShcentroidParams is that of the weight to the power. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_part (
    double v, bool used, double pedestal, double weight, double power)
{
  double p = v - pedestal;

  if (power != 1.0)
    p = imk_shcentroid_power (p, power);
  return used ? p * weight : 0.0;
}

/* Its variance, (dp / dv)^2 var (v): v is known to flat (raw - dark), of which
 * the variance is flat^2 ((raw - dark) / gain + read noise^2). See
 * ImkShcentroidNoise for the unit. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_spread (double v, double flat, bool used, double pedestal,
    double weight, double power, double part, const ImkShcentroidNoise *noise)
{
  double light = v > 0.0 ? v : 0.0;
  double slope = weight;
  double variance = flat * light + flat * flat * noise->read;

  if (power != 1.0)
    slope = v > pedestal ? power * part / (v - pedestal) : 0.0;
  return used ? slope * slope * variance : 0.0;
}

/* ------------------------------------------------------------------------
 * From rows to columns. */

/* The next row up. @y: its coordinate, of a quad cell only */
IMK_SHCENTROID_INLINE void
imk_shcentroid_add_part (ImkShcentroidGroup *g, double p, bool quad, double y)
{
  g->p1 += quad ? y * p : g->p;
  g->p += p;
}

IMK_SHCENTROID_INLINE void
imk_shcentroid_add_spread (ImkShcentroidGroup *g, double q, bool quad, double y)
{
  g->q2 += quad ? y * y * q : g->q1;
  g->q1 += quad ? y * q : g->q;
  g->q += q;
}

/* To the sums of its column the group that begins at row @y of the window. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_add_group (
    ImkShcentroidReals *c, const ImkShcentroidGroup *g, bool quad, double y)
{
  c->p += g->p;
  c->py += quad ? g->p1 : g->p1 + y * g->p;
}

IMK_SHCENTROID_INLINE void
imk_shcentroid_add_group_spread (
    ImkShcentroidReals *c, const ImkShcentroidGroup *g, bool quad, double y)
{
  double q2 = 2.0 * g->q2 + g->q1;

  c->q += g->q;
  c->qy += quad ? g->q1 : g->q1 + y * g->q;
  c->qyy += quad ? g->q2 : q2 + y * (2.0 * g->q1 + y * g->q);
  c->raw += g->raw;
}

/* Column @u, when all its groups are there. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_end_column (
    ImkShcentroidReals *c, bool weighted, double factor, double u)
{
  if (weighted) {
    c->p *= factor;
    c->py *= factor;
  }
  c->pu = u * c->p;
}

IMK_SHCENTROID_INLINE void
imk_shcentroid_end_column_spread (
    ImkShcentroidReals *c, bool weighted, double factor, double u)
{
  if (weighted) {
    c->q *= factor * factor;
    c->qy *= factor * factor;
    c->qyy *= factor * factor;
  }
  c->qu = u * c->q;
  c->quu = u * u * c->q;
}

/* ------------------------------------------------------------------------
 * The level of a cell. */

/* Keys are in the order of the values. */
IMK_SHCENTROID_INLINE uint32_t
imk_shcentroid_key (float value)
{
  uint32_t bits;

  memcpy (&bits, &value, sizeof (bits));
  return bits >> 31 ? ~bits : bits | UINT32_C (0x80000000);
}

IMK_SHCENTROID_INLINE float
imk_shcentroid_value_of_key (uint32_t key)
{
  uint32_t bits = key >> 31 ? key & UINT32_C (0x7fffffff) : ~key;
  float value;

  memcpy (&value, &bits, sizeof (value));
  return value;
}

IMK_SHCENTROID_INLINE bool
imk_shcentroid_needs_range (const ImkShcentroidParams *params)
{
  return imk_shcentroid_is_leveled (params) || params->brightest > 0;
}

/* The rank, counted from the largest as 1, of the least of the brightest pixels
 * of a cell; 0 when all are among them. */
IMK_SHCENTROID_INLINE uint32_t
imk_shcentroid_rank (const ImkShcentroidParams *params, uint32_t n)
{
  return params->brightest < n ? params->brightest : 0;
}

/* The range is looked at where imk_shcentroid_needs_range () says so.
 * @brightest: the level of the brightest pixels; -infinity for all */
IMK_SHCENTROID_INLINE ImkShcentroidLevel
imk_shcentroid_level (const ImkShcentroidParams *params, double own_threshold,
    float min, float max, double brightest)
{
  double t = imk_shcentroid_threshold (params, own_threshold, min, max);
  ImkShcentroidLevel level;

  if (params->threshold_mode == IMK_SHCENTROID_THRESHOLD_NONE)
    t = -imk_shcentroid_infinity ();
  level.least = t > brightest ? t : brightest;
  level.pedestal = params->subtract && level.least > -imk_shcentroid_infinity ()
                       ? level.least
                       : 0.0;
  return level;
}

/* ------------------------------------------------------------------------
 * Tracking. */

IMK_SHCENTROID_INLINE bool
imk_shcentroid_tracks (const ImkShcentroidParams *params)
{
  return params->window == IMK_SHCENTROID_WINDOW_TRACKING ||
         params->weighting == IMK_SHCENTROID_WEIGHTING_TRACKING;
}

/* The shift of @position from @reference, so that the window stays between 0
 * and @size. */
IMK_SHCENTROID_INLINE uint32_t
imk_shcentroid_moved (double position, double reference, uint32_t from,
    uint32_t length, uint32_t size, bool *at_edge)
{
  double to = from + floor (position - reference + 0.5);
  double last = size - length;

  *at_edge |= to < 0.0 || to > last;
  return (uint32_t) (to < 0.0 ? 0.0 : to > last ? last : to);
}

IMK_SHCENTROID_INLINE ImkShcentroidWindow
imk_shcentroid_window (const ImkShcentroidRect *cell,
    const ImkShcentroidParams *params, const ImkShcentroidTrack *track,
    uint32_t frame_width, uint32_t frame_height)
{
  ImkShcentroidWindow w;

  w.x = cell->x;
  w.y = cell->y;
  w.width = cell->width;
  w.height = cell->height;
  w.at_edge = false;
  if (params->window == IMK_SHCENTROID_WINDOW_TRACKING) {
    w.x = imk_shcentroid_moved (
        track->x, cell->ref_x, w.x, w.width, frame_width, &w.at_edge);
    w.y = imk_shcentroid_moved (
        track->y, cell->ref_y, w.y, w.height, frame_height, &w.at_edge);
  }
  return w;
}

/* Where the spot is looked for in the next frame. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_follow (ImkShcentroidTrack *track, const ImkShcentroidRect *cell,
    const ImkShcentroidParams *params, double x, double y, bool valid)
{
  if (valid) {
    track->x += params->tracking_gain * (x - track->x);
    track->y += params->tracking_gain * (y - track->y);
    track->n_dark = 0;
  } else if (params->tracking_reset > 0 &&
             ++track->n_dark >= params->tracking_reset) {
    track->x = cell->ref_x;
    track->y = cell->ref_y;
    track->n_dark = 0;
  }
}

/* ------------------------------------------------------------------------
 * The numbers of a cell. */

/* Values below 0 may push a mean of positions beyond @first and @last. Up to
 * half a pixel it is still in the cell, and held at its edge; farther it is no
 * place. */
IMK_SHCENTROID_INLINE bool
imk_shcentroid_is_outside (double c, double first, double last)
{
  return (c < first - 0.5) | (c > last + 0.5);
}

/* Of the sums @flux, @pu and @py of a cell; its last column and row are @last_x
 * and @last_y. No branches but those that are the same for all cells. */
IMK_SHCENTROID_INLINE ImkShcentroidCentre
imk_shcentroid_centre_of (double flux, double pu, double py, double last_x,
    double last_y, const ImkShcentroidParams *params, double min_flux)
{
  bool quad = params->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD;
  double x = pu / flux, y = py / flux, first_x = 0.0, first_y = 0.0;
  ImkShcentroidCentre centre;
  bool outside_x, outside_y;

  if (quad) { /* a spot in one half is a gain from the middle */
    double gain = params->quad_gain;

    x = 0.5 * last_x + gain * x;
    y = 0.5 * last_y + gain * y;
    first_x = 0.5 * last_x - gain;
    first_y = 0.5 * last_y - gain;
    last_x = 0.5 * last_x + gain;
    last_y = 0.5 * last_y + gain;
  }
  if (params->estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS) {
    first_x = first_y = -3e38; /* a slope, of any size */
    last_x = last_y = 3e38;
  }
  centre.x = imk_shcentroid_clamp (x, first_x, last_x);
  centre.y = imk_shcentroid_clamp (y, first_y, last_y);
  outside_x = imk_shcentroid_is_outside (x, first_x, last_x);
  outside_y = imk_shcentroid_is_outside (y, first_y, last_y);
  centre.outside = (flux > 0.0) & (outside_x | outside_y);
  centre.valid = (flux > 0.0) & (flux >= min_flux) & !centre.outside &
                 imk_shcentroid_is_finite (flux);
  centre.flux = flux > 0.0 ? flux : 0.0;
  return centre;
}

IMK_SHCENTROID_INLINE ImkShcentroidCentre
imk_shcentroid_real_centre (const ImkShcentroidReals *s,
    const ImkShcentroidWindow *window, const ImkShcentroidParams *params,
    double min_flux)
{
  return imk_shcentroid_centre_of (s->p, s->pu, s->py, window->width - 1.0,
      window->height - 1.0, params, min_flux);
}

/* Σ (u - c)^2 q @unit. The terms cancel where one pixel has nearly all the
 * light and others the noise. What may be rounding counts as variance: such a
 * centroid must not look certain. Sums that are not finite give the largest
 * variance. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_real_variance (
    double c, double q, double qu, double quu, double unit)
{
  double least = IMK_SHCENTROID_ROUNDING * (quu + c * c * q);
  double exact = quu - 2.0 * c * qu + c * c * q;
  double sum = exact < least ? least : exact;
  double variance = sum <= 0.0 ? 0.0 : sum * unit;

  return variance < 3e38 ? variance : 3e38;
}

/* The shift of the weight by which its pull is found: of a cell's sums the
 * rounding is a 1e-10 of it, and the pull as good as constant. */
IMK_SHCENTROID_INLINE double
imk_shcentroid_nudge (const ImkShcentroidParams *params)
{
  return params->sigma / 1024.0;
}

/* @y: whether the weight was nudged in y, not in x
 * @moved: the sums with it there */
IMK_SHCENTROID_INLINE void
imk_shcentroid_see_pull (ImkShcentroidPull *pull, bool y,
    const ImkShcentroidReals *s, const ImkShcentroidReals *moved,
    const ImkShcentroidWindow *window, const ImkShcentroidParams *params)
{
  double nudge = imk_shcentroid_nudge (params);
  ImkShcentroidCentre from =
      imk_shcentroid_real_centre (s, window, params, 0.0);
  ImkShcentroidCentre to =
      imk_shcentroid_real_centre (moved, window, params, 0.0);

  if (y)
    pull->y = (to.y - from.y) / nudge;
  else
    pull->x = (to.x - from.x) / nudge;
}

/* Is the pull wanted? */
IMK_SHCENTROID_INLINE bool
imk_shcentroid_pulls (
    const ImkShcentroidParams *params, ImkShcentroidFields fields)
{
  return params->iterations > 1 && fields == IMK_SHCENTROID_FIELDS_ALL;
}

/* The noise of the pixels moves the centroid by n, which moves the weight of
 * the next iteration, which moves the next centroid by n + @pull n, and so on:
 * by n (1 + q + ... + q^(k - 1)) in the end.
 * Returns: what the variance grows by */
IMK_SHCENTROID_INLINE double
imk_shcentroid_scatter (double pull, uint32_t iterations)
{
  double q = pull > 0.0 ? pull < 1.0 ? pull : 1.0 : 0.0;
  double sum = 1.0;

  for (uint32_t i = 1; i < iterations; i++)
    sum = 1.0 + q * sum;
  return sum * sum;
}

/* The fields that would be of a sample that is not finite. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_describe_broken (
    ImkShcentroidRow *row, const ImkShcentroidRect *cell, bool at_edge)
{
  row->field[IMK_SHCENTROID_FLUX] = 0.0;
  row->field[IMK_SHCENTROID_FLUX_RAW] = 0.0;
  row->field[IMK_SHCENTROID_MAX] = 0.0;
  row->field[IMK_SHCENTROID_FLAGS] =
      cell->flags | IMK_SHCENTROID_NOT_FINITE |
      (at_edge ? (uint32_t) IMK_SHCENTROID_EDGE : 0);
}

IMK_SHCENTROID_INLINE void
imk_shcentroid_describe_real (ImkShcentroidRow *row, ImkShcentroidCentre centre,
    const ImkShcentroidReals *s, const ImkShcentroidPull *pull,
    const ImkShcentroidRect *cell, const ImkShcentroidWindow *window,
    const ImkShcentroidParams *params, const ImkShcentroidNoise *noise,
    double min_flux)
{
  bool quad = params->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD;
  bool nan = params->invalid_policy == IMK_SHCENTROID_INVALID_NAN;
  double scale = quad ? params->quad_gain * params->quad_gain : 1.0;
  double var_x = nan ? imk_shcentroid_nan () : 0.0;
  double var_y = var_x;

  if (centre.valid) {
    double unit = noise->per_count * scale / (s->p * s->p);

    var_x = imk_shcentroid_real_variance (s->pu / s->p, s->q, s->qu, s->quu,
        unit * imk_shcentroid_scatter (pull->x, params->iterations));
    var_y = imk_shcentroid_real_variance (s->py / s->p, s->q, s->qy, s->qyy,
        unit * imk_shcentroid_scatter (pull->y, params->iterations));
  }
  row->field[IMK_SHCENTROID_FLUX] = centre.flux;
  row->field[IMK_SHCENTROID_FLUX_RAW] = s->raw;
  /* no pixel is good: -infinity; and -0 is 0 */
  row->field[IMK_SHCENTROID_MAX] = s->max > -3e38f ? s->max + 0.0 : 0.0;
  row->field[IMK_SHCENTROID_VAR_X] = var_x;
  row->field[IMK_SHCENTROID_VAR_Y] = var_y;
  row->field[IMK_SHCENTROID_FLAGS] =
      imk_shcentroid_flags (
          s->max_sample, centre.flux, min_flux, cell, params) |
      (window->at_edge ? (uint32_t) IMK_SHCENTROID_EDGE : 0) |
      (centre.outside ? (uint32_t) IMK_SHCENTROID_OUTSIDE : 0);
  if (!imk_shcentroid_is_finite (s->p))
    imk_shcentroid_describe_broken (row, cell, window->at_edge);
}

/* ------------------------------------------------------------------------
 * What all cells of a frame decide together, when they are measured: which of
 * them are dark beside the brightest, and then tip and tilt. The slopes are
 * added up in lanes, cell i in lane i % IMK_SHCENTROID_TILT_LANES, and the
 * lanes by halves. */

enum { IMK_SHCENTROID_TILT_LANES = 1024 };

/* What a cell has to do with the mean. */
typedef enum ImkShcentroidTilt {
  IMK_SHCENTROID_TILT_APART,   /* nothing */
  IMK_SHCENTROID_TILT_REMOVED, /* it is subtracted from its slope */
  IMK_SHCENTROID_TILT_COUNTED, /* the same, and its slope is in it */
} ImkShcentroidTilt;

/* What is kept of a cell for that. */
typedef struct ImkShcentroidSlope {
  double x, y;
  ImkShcentroidTilt tilt;
  uint32_t flags;
  double flux;
  /* as they were before this frame */
  double held[2];
  ImkShcentroidTrack track;
} ImkShcentroidSlope;

/* Sums of slopes, and over how many cells. */
typedef struct ImkShcentroidTiltSums {
  double x, y;
  uint32_t n;
} ImkShcentroidTiltSums;

/* Do the cells of a frame decide anything together? */
IMK_SHCENTROID_INLINE bool
imk_shcentroid_joins (const ImkShcentroidParams *params)
{
  return params->remove_tilt || params->min_illumination > 0.0;
}

/* Before the row of a cell is finished. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_begin_slope (ImkShcentroidSlope *slope,
    const ImkShcentroidParams *params, const double *held,
    const ImkShcentroidTrack *track)
{
  if (params->invalid_policy == IMK_SHCENTROID_INVALID_HOLD)
    memcpy (slope->held, held, sizeof (slope->held));
  if (imk_shcentroid_tracks (params))
    slope->track = *track;
}

/* After that. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_end_slope (ImkShcentroidSlope *slope,
    const ImkShcentroidRow *row, ImkShcentroidInvalid policy)
{
  slope->x = row->field[IMK_SHCENTROID_DX];
  slope->y = row->field[IMK_SHCENTROID_DY];
  slope->flux = row->field[IMK_SHCENTROID_FLUX];
  slope->flags = (uint32_t) row->field[IMK_SHCENTROID_FLAGS];
  slope->tilt = !(slope->flags & IMK_SHCENTROID_INVALID_MASK) ||
                        policy == IMK_SHCENTROID_INVALID_REFERENCE
                    ? IMK_SHCENTROID_TILT_COUNTED
                : policy == IMK_SHCENTROID_INVALID_HOLD
                    ? IMK_SHCENTROID_TILT_REMOVED
                    : IMK_SHCENTROID_TILT_APART;
}

/* The whole row of a cell, and what it leaves for the next frame and, in
 * @slope, for the other cells.
 * @pull: of imk_shcentroid_pulls (), else 0 */
IMK_SHCENTROID_INLINE void
imk_shcentroid_finish_real (ImkShcentroidRow *row, const ImkShcentroidReals *s,
    const ImkShcentroidPull *pull, const ImkShcentroidRect *cell,
    const ImkShcentroidWindow *window, const ImkShcentroidParams *params,
    const ImkShcentroidNoise *noise, ImkShcentroidFields fields, bool fresh,
    double *held, ImkShcentroidTrack *track, ImkShcentroidSlope *slope)
{
  ImkShcentroidCentre centre;
  double min_flux, x, y;

  if (imk_shcentroid_joins (params))
    imk_shcentroid_begin_slope (slope, params, held, track);
  min_flux = imk_shcentroid_min_flux (params, cell->min_flux);
  centre = imk_shcentroid_real_centre (s, window, params, min_flux);
  x = window->x + centre.x;
  y = window->y + centre.y;
  if (imk_shcentroid_tracks (params))
    imk_shcentroid_follow (track, cell, params, x, y, centre.valid);
  imk_shcentroid_place (row, x, y, centre.valid, cell, params, fresh, held);
  row->field[IMK_SHCENTROID_FLUX] = centre.flux;
  if (fields == IMK_SHCENTROID_FIELDS_ALL)
    imk_shcentroid_describe_real (
        row, centre, s, pull, cell, window, params, noise, min_flux);
  else if (imk_shcentroid_is_finite (s->p))
    row->field[IMK_SHCENTROID_FLAGS] =
        imk_shcentroid_flags (0.0, centre.flux, min_flux, cell, params) |
        (centre.outside ? (uint32_t) IMK_SHCENTROID_OUTSIDE : 0);
  else
    row->field[IMK_SHCENTROID_FLAGS] = IMK_SHCENTROID_NOT_FINITE;
  if (imk_shcentroid_joins (params))
    imk_shcentroid_end_slope (slope, row, params->invalid_policy);
}

/* Returns: the flux that the brightest cell is sought by */
IMK_SHCENTROID_INLINE double
imk_shcentroid_light_of (const ImkShcentroidSlope *slope)
{
  return slope->flags & IMK_SHCENTROID_NOT_FINITE ? 0.0 : slope->flux;
}

/* A cell of less than @least counts becomes invalid, as if it had been so when
 * it was measured: the row has its place, variances and flags.
 * Returns: whether it is such a cell */
IMK_SHCENTROID_INLINE bool
imk_shcentroid_darken (ImkShcentroidSlope *slope, ImkShcentroidRow *row,
    double least, const ImkShcentroidRect *cell,
    const ImkShcentroidParams *params, bool fresh, double *held,
    ImkShcentroidTrack *track)
{
  bool nan = params->invalid_policy == IMK_SHCENTROID_INVALID_NAN;

  if (!(slope->flux < least) || slope->flags & IMK_SHCENTROID_NOT_FINITE)
    return false;
  if (params->invalid_policy == IMK_SHCENTROID_INVALID_HOLD)
    memcpy (held, slope->held, sizeof (slope->held));
  if (imk_shcentroid_tracks (params)) {
    *track = slope->track;
    imk_shcentroid_follow (track, cell, params, 0.0, 0.0, false);
  }
  imk_shcentroid_place (row, 0.0, 0.0, false, cell, params, fresh, held);
  row->field[IMK_SHCENTROID_FLUX] = slope->flux;
  row->field[IMK_SHCENTROID_VAR_X] = nan ? imk_shcentroid_nan () : 0.0;
  row->field[IMK_SHCENTROID_VAR_Y] = row->field[IMK_SHCENTROID_VAR_X];
  row->field[IMK_SHCENTROID_FLAGS] =
      slope->flags | (uint32_t) IMK_SHCENTROID_LOW_FLUX;
  imk_shcentroid_end_slope (slope, row, params->invalid_policy);
  return true;
}

IMK_SHCENTROID_INLINE void
imk_shcentroid_add_slope (
    ImkShcentroidTiltSums *sums, const ImkShcentroidSlope *slope)
{
  if (slope->tilt != IMK_SHCENTROID_TILT_COUNTED)
    return;
  sums->x += slope->x;
  sums->y += slope->y;
  sums->n++;
}

IMK_SHCENTROID_INLINE void
imk_shcentroid_add_tilt (
    ImkShcentroidTiltSums *sums, const ImkShcentroidTiltSums *more)
{
  sums->x += more->x;
  sums->y += more->y;
  sums->n += more->n;
}

/* Of @sums, which become means. */
IMK_SHCENTROID_INLINE void
imk_shcentroid_find_tilt (ImkShcentroidTiltSums *sums)
{
  if (sums->n == 0)
    return;
  sums->x /= sums->n;
  sums->y /= sums->n;
}

/* Of all lanes, on one thread. */
IMK_SHCENTROID_INLINE ImkShcentroidTiltSums
imk_shcentroid_mean_of (ImkShcentroidTiltSums *lanes)
{
  for (uint32_t step = IMK_SHCENTROID_TILT_LANES / 2; step; step /= 2)
    for (uint32_t i = 0; i < step; i++)
      imk_shcentroid_add_tilt (&lanes[i], &lanes[i + step]);
  imk_shcentroid_find_tilt (&lanes[0]);
  return lanes[0];
}
