/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What follows Z in imk/octbscan.h, for a sequence of B-scans: backgrounds that
 * remember, the fixed pattern, intensities in the order of the scan, tracking
 * in depth, and means. The sections are in this order. The last function takes
 * each B-scan through them. */
#include "octbscan/octbscan-reference.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is remembered. */
typedef struct State {
  uint32_t n_depths, n_ascans, n_window;
  double *background; /* [C][N] */
  uint32_t *n_background;
  double complex *pattern;
  bool has_pattern;
  double *places, *weights; /* of all B-scans */
  uint32_t n_tracked;
  double *reference; /* [n_window] */
  double held;       /* mu that is kept */
  bool has_held;
  double *sums;
  uint32_t *n_summed; /* [n_ascans] */
  bool *is_dead;      /* [n_ascans] of this B-scan */
} State;

static uint32_t
camera_of (
    const ImkOctbscanConfig *c, const ImkOctbscanReference *b, uint32_t row)
{
  return (row + b->first_camera) % c->n_cameras;
}

static bool
has_ascan (
    const ImkOctbscanConfig *c, const ImkOctbscanReference *b, uint32_t row)
{
  return imk_octbscan_reference_is_sound (
      b->x + (size_t) row * c->width, c->width);
}

/* ------------------------------------------------------------------------
 * Z. */

/* m_c, for the modes that remember. */
static void
follow_background (
    const ImkOctbscanConfig *c, State *s, const ImkOctbscanReference *b)
{
  bool first = c->background_mode == IMK_OCTBSCAN_BACKGROUND_FIRST;

  for (uint32_t camera = 0; camera < c->n_cameras; camera++) {
    double n = 0, share;

    for (uint32_t r = 0; r < c->height; r++)
      n += camera_of (c, b, r) == camera && has_ascan (c, b, r);
    if (n == 0 || (first && s->n_background[camera] >= c->background_bscans))
      continue;
    s->n_background[camera]++;
    share = fmin (s->n_background[camera], c->background_bscans);
    for (uint32_t i = 0; i < c->width; i++) {
      double *m = &s->background[(size_t) camera * c->width + i], sum = 0;

      for (uint32_t r = 0; r < c->height; r++)
        if (camera_of (c, b, r) == camera && has_ascan (c, b, r))
          sum += b->x[(size_t) r * c->width + i];
      *m += (sum / n - *m) / share;
    }
  }
}

/* Each spectrum less its own neighbours. */
static double *
rolled (const ImkOctbscanConfig *c, const double *x)
{
  double *to = calloc ((size_t) c->width * c->height, sizeof (*to));
  int64_t reach = c->background_reach, width = c->width;

  for (uint32_t r = 0; r < c->height; r++)
    for (int64_t i = 0; i < width; i++) {
      double sum = 0, n = 0;

      for (int64_t k = i - reach; k <= i + reach; k++)
        if (k >= 0 && k < width) {
          sum += x[r * width + k];
          n++;
        }
      to[r * width + i] = x[r * width + i] - sum / n;
    }
  return to;
}

static void
find_z (const ImkOctbscanConfig *config, State *s, ImkOctbscanReference *b)
{
  ImkOctbscanConfig c = *config;
  double *own = NULL;

  switch (c.background_mode) {
  case IMK_OCTBSCAN_BACKGROUND_RUNNING:
  case IMK_OCTBSCAN_BACKGROUND_FIRST:
    follow_background (&c, s, b);
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_FILE;
    c.background = s->background;
    break;
  case IMK_OCTBSCAN_BACKGROUND_ROLLING:
    own = rolled (&c, b->x);
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_NONE;
    break;
  default:
    break;
  }
  imk_octbscan_reference (&c, b->first_camera, own ? own : b->x, b->z);
  free (own);
  for (size_t i = 0; i < 2 * (size_t) c.height * s->n_depths; i++)
    b->rms += b->z[i] * b->z[i];
  b->rms = sqrt (b->rms / ((double) c.height * s->n_depths));
}

static double complex
z_at (const State *s, const ImkOctbscanReference *b, uint32_t row, uint32_t q)
{
  const double *z = b->z + 2 * ((size_t) row * s->n_depths + q);

  return z[0] + I * z[1];
}

/* ------------------------------------------------------------------------
 * The fixed pattern. */

static void
find_pattern (
    const ImkOctbscanConfig *c, State *s, const ImkOctbscanReference *b)
{
  uint32_t *rows = malloc (c->height * sizeof (*rows));

  for (uint32_t camera = 0; camera < c->n_cameras; camera++) {
    uint32_t n = 0, n_segments;

    for (uint32_t r = 0; r < c->height; r++)
      if (camera_of (c, b, r) == camera)
        rows[n++] = r;
    n_segments = n / 2 < c->pattern_segments ? n / 2 : c->pattern_segments;
    for (uint32_t q = 0; q < s->n_depths; q++) {
      double least = INFINITY;
      double complex best = 0;

      for (uint32_t k = 0; k < n_segments; k++) {
        uint32_t from = n * k / n_segments, to = n * (k + 1) / n_segments;
        double complex mean = 0;
        double variance = 0, n_sound = 0;

        for (uint32_t i = from; i < to; i++)
          n_sound += has_ascan (c, b, rows[i]);
        for (uint32_t i = from; i < to; i++)
          if (has_ascan (c, b, rows[i]))
            mean += z_at (s, b, rows[i], q) / n_sound;
        for (uint32_t i = from; i < to; i++)
          if (has_ascan (c, b, rows[i]))
            variance +=
                pow (cabs (z_at (s, b, rows[i], q) - mean), 2) / n_sound;
        if (n_sound > 1 && variance < least) {
          least = variance;
          best = mean;
        }
      }
      s->pattern[(size_t) camera * s->n_depths + q] = best;
    }
  }
  free (rows);
}

static void
take_pattern_off (const ImkOctbscanConfig *c, State *s, ImkOctbscanReference *b)
{
  if (c->fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_NONE)
    return;
  if (c->fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_MINVAR ||
      (c->fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_ONCE && !s->has_pattern))
    find_pattern (c, s, b);
  s->has_pattern = true;
  for (uint32_t r = 0; r < c->height; r++)
    for (uint32_t q = 0; q < s->n_depths; q++) {
      double complex p =
          s->pattern[(size_t) camera_of (c, b, r) * s->n_depths + q];
      double *z = b->z + 2 * ((size_t) r * s->n_depths + q);

      z[0] -= has_ascan (c, b, r) ? creal (p) : 0;
      z[1] -= has_ascan (c, b, r) ? cimag (p) : 0;
    }
}

/* ------------------------------------------------------------------------
 * A-scans of the image. */

/* @part: (out): how much of it there is, 1 when all is */
static double
intensity_at (const ImkOctbscanConfig *c, const State *s,
    const ImkOctbscanReference *b, double position, uint32_t q, double *part)
{
  uint32_t left = (uint32_t) fmin (floor (position), c->height - 1.0);
  uint32_t right = left + 1 < c->height ? left + 1 : left;
  double t = position - left;

  if (b->backward) {
    left = c->height - 1 - left;
    right = c->height - 1 - right;
  }
  *part = (1 - t) * has_ascan (c, b, left) + t * has_ascan (c, b, right);
  return (1 - t) * pow (cabs (z_at (s, b, left, q)), 2) +
         t * pow (cabs (z_at (s, b, right, q)), 2);
}

static double
column_position (const ImkOctbscanConfig *c, uint32_t j)
{
  double last = c->height - 1.0, at;
  uint32_t before;

  if (c->height == 1 || c->scan == IMK_OCTBSCAN_SCAN_EVEN)
    return j;
  /* A mirror at -cos (pi t) is at 2 j / (H - 1) - 1 at this t. */
  if (c->scan == IMK_OCTBSCAN_SCAN_SINE)
    return acos (-(2 * j / last - 1)) / M_PI * last;
  at = j * (c->n_scan_curve - 1.0) / last;
  before = (uint32_t) fmin (floor (at), c->n_scan_curve - 2.0);
  return c->scan_curve[before] * (before + 1 - at) +
         c->scan_curve[before + 1] * (at - before);
}

static double *
mix (const ImkOctbscanConfig *c, State *s, const ImkOctbscanReference *b)
{
  double *to = calloc ((size_t) s->n_ascans * s->n_depths, sizeof (*to));
  bool flips = c->flip & IMK_OCTBSCAN_FLIP_LATERAL;

  for (uint32_t i = 0; i < s->n_ascans; i++) {
    uint32_t at = flips ? s->n_ascans - 1 - i : i;

    for (uint32_t q = 0; q < s->n_depths; q++) {
      double sum = 0, n = 0, part;

      for (uint32_t j = i * c->average_ascans;
           j < (i + 1) * c->average_ascans && j < c->height; j++) {
        sum += intensity_at (c, s, b, column_position (c, j), q, &part);
        n += part;
      }
      to[(size_t) at * s->n_depths + q] = n > 1e-9 ? sum / n : 0;
      s->is_dead[at] = !(n > 1e-9);
    }
  }
  return to;
}

/* ------------------------------------------------------------------------
 * Tracking. */

static double
vertex (const double *v, uint32_t n, uint32_t at)
{
  /* Coefficients of the parabola through three points. */
  double a, b;

  if (at == 0 || at + 1 == n)
    return at;
  a = (v[at - 1] + v[at + 1]) / 2 - v[at];
  b = (v[at + 1] - v[at - 1]) / 2;
  return a < 0 ? at - b / (2 * a) : at;
}

static uint32_t
largest (const double *v, uint32_t n)
{
  uint32_t at = 0;

  for (uint32_t i = 0; i < n; i++)
    at = v[i] > v[at] ? i : at;
  return at;
}

static double
mean_of (const double *v, uint32_t n)
{
  double sum = 0;

  for (uint32_t i = 0; i < n; i++)
    sum += v[i] / n;
  return sum;
}

static double
correlation (
    const double *profile, const double *reference, int64_t n, int64_t lag)
{
  double mp = 0, mr = 0, pp = 0, rr = 0, pr = 0, count = 0;

  for (int64_t z = 0; z < n; z++)
    if (z + lag >= 0 && z + lag < n) {
      mp += profile[z + lag];
      mr += reference[z];
      count++;
    }
  mp /= count;
  mr /= count;
  for (int64_t z = 0; z < n; z++)
    if (z + lag >= 0 && z + lag < n) {
      double p = profile[z + lag] - mp, r = reference[z] - mr;

      pp += p * p;
      rr += r * r;
      pr += p * r;
    }
  return pp > 0 && rr > 0 ? pr / sqrt (pp * rr) : 0;
}

static void
correlate (const ImkOctbscanConfig *c, State *s, const double *profile,
    double *place, double *weight)
{
  int64_t n = s->n_window;
  int64_t reach = c->tracking_reach < n / 2 ? c->tracking_reach : n / 2;
  double *r = malloc ((2 * reach + 1) * sizeof (*r));
  double share = fmin (s->n_tracked + 1, c->tracking_bscans);
  uint32_t at;

  *place = 0;
  *weight = s->n_tracked > 0 || c->tracking_profile ? 0 : 1;
  if (s->n_tracked > 0 || c->tracking_profile) {
    for (int64_t lag = -reach; lag <= reach; lag++)
      r[lag + reach] = correlation (profile, s->reference, n, lag);
    at = largest (r, 2 * reach + 1);
    if (r[at] > 0) {
      *place = vertex (r, 2 * reach + 1, at) - reach;
      *weight = r[at];
    }
  }
  free (r);
  if (c->tracking_profile || (c->tracking_lock && s->n_tracked > 0))
    return;
  for (int64_t z = 0; z < n; z++) {
    int64_t from = z + llround (*place);

    if (s->n_tracked == 0)
      s->reference[z] = profile[z];
    else if (from >= 0 && from < n)
      s->reference[z] += (profile[from] - s->reference[z]) / share;
  }
}

static void
contour (const ImkOctbscanConfig *c, const State *s, const double *intensity,
    const double *profile, double *place, double *weight)
{
  double sum = 0, weights = 0;

  for (uint32_t i = 0; i < s->n_ascans; i++) {
    const double *v = intensity + (size_t) i * s->n_depths + c->tracking_top;
    uint32_t at = largest (v, s->n_window);

    sum += v[at] * vertex (v, s->n_window, at);
    weights += v[at];
  }
  *place = sum / weights;
  *weight = weights / s->n_ascans / mean_of (profile, s->n_window);
}

static int64_t
track (const ImkOctbscanConfig *c, State *s, const double *intensity,
    ImkOctbscanReference *b)
{
  double *profile = calloc (s->n_window, sizeof (*profile));
  double place, weight, mu = 0, weights = 0;
  uint32_t at;

  for (uint32_t i = 0; i < s->n_ascans; i++)
    for (uint32_t z = 0; z < s->n_window; z++)
      profile[z] += intensity[(size_t) i * s->n_depths + c->tracking_top + z] /
                    s->n_ascans;
  for (uint32_t z = 0; z < s->n_window; z++)
    profile[z] = isfinite (profile[z]) ? profile[z] : 0;
  if (c->tracking == IMK_OCTBSCAN_TRACKING_XCORR) {
    correlate (c, s, profile, &place, &weight);
  } else if (c->tracking == IMK_OCTBSCAN_TRACKING_CONTOUR) {
    contour (c, s, intensity, profile, &place, &weight);
  } else {
    at = largest (profile, s->n_window);
    place = vertex (profile, s->n_window, at);
    weight = profile[at] / mean_of (profile, s->n_window);
  }
  free (profile);
  if (!isfinite (place) || !isfinite (weight))
    place = weight = 0;
  s->places[s->n_tracked] = place;
  s->weights[s->n_tracked++] = weight;
  for (uint32_t i = 0; i < s->n_tracked; i++)
    if (i + c->tracking_bscans >= s->n_tracked) {
      mu += s->weights[i] * s->places[i];
      weights += s->weights[i];
    }
  mu = weights > 0 ? mu / weights : place;
  if (c->tracking_profile) {
    at = largest (c->tracking_profile, s->n_window);
    mu = c->tracking == IMK_OCTBSCAN_TRACKING_XCORR
             ? 0
             : vertex (c->tracking_profile, s->n_window, at);
  } else if (c->tracking_lock && s->has_held) {
    mu = s->held;
  } else if (weights > 0) {
    s->held = mu;
    s->has_held = true;
  }
  b->track[0] = place;
  b->track[1] = weight;
  b->track[2] = mu;
  b->track[3] = weight > 0 ? floor (mu - place + 0.5) : 0;
  return (int64_t) b->track[3];
}

/* ------------------------------------------------------------------------
 * Images. */

static void
add (State *s, const double *intensity, int64_t shift)
{
  for (uint32_t i = 0; i < s->n_ascans; i++) {
    for (int64_t q = 0; q < s->n_depths; q++) {
      int64_t from = q - shift;

      if (from >= 0 && from < s->n_depths)
        s->sums[(size_t) i * s->n_depths + q] +=
            intensity[(size_t) i * s->n_depths + from];
    }
    s->n_summed[i] += !s->is_dead[i];
  }
}

static void
finish (const ImkOctbscanConfig *c, State *s, ImkOctbscanReference *b)
{
  size_t n = (size_t) s->n_ascans * s->n_depths;
  uint32_t end = s->n_depths - c->enface_bottom;

  for (size_t i = 0; i < n; i++) {
    uint32_t n_summed = s->n_summed[i / s->n_depths];

    b->intensity[i] = n_summed ? s->sums[i] / n_summed : 0;
  }
  for (uint32_t i = 0; i < s->n_ascans; i++) {
    const double *v = b->intensity + (size_t) i * s->n_depths;
    double sum = 0, most = 0;

    for (uint32_t q = c->enface_top; q < end; q++) {
      sum += v[q];
      most = fmax (most, v[q]);
    }
    b->enface[i] = c->projection == IMK_OCTBSCAN_PROJECTION_MAXIMUM
                       ? most
                       : sum / (end - c->enface_top);
  }
  memset (s->sums, 0, n * sizeof (*s->sums));
  memset (s->n_summed, 0, s->n_ascans * sizeof (*s->n_summed));
}

static void
move_z (const ImkOctbscanConfig *c, State *s, int64_t shift,
    ImkOctbscanReference *b)
{
  double *z = calloc (2 * (size_t) c->height * s->n_depths, sizeof (*z));
  double f = b->track[1] > 0 ? b->track[2] - b->track[0] - b->track[3] : 0;
  double complex taps[17];

  for (int k = -8; k <= 8; k++) {
    double x = -f - k;

    taps[8 + k] = (x == 0 ? 1 : sin (M_PI * x) / (M_PI * x)) *
                  (1 + cos (M_PI * x / 9)) / 2 *
                  cexp (-I * M_PI * x / c->scale);
  }
  for (uint32_t row = 0; row < c->height; row++)
    for (int64_t q = 0; q < s->n_depths; q++) {
      size_t to = (size_t) row * s->n_depths + (size_t) q;
      double complex sum = 0;

      if (q - shift < 0 || q - shift >= s->n_depths)
        continue;
      for (int k = -8; k <= 8; k++) {
        int64_t at = q - shift + k;

        if (at >= 0 && at < s->n_depths) {
          const double *v =
              b->z + 2 * ((size_t) row * s->n_depths + (size_t) at);

          sum += taps[8 + k] * (v[0] + I * v[1]);
        }
      }
      z[2 * to] = creal (sum);
      z[2 * to + 1] = cimag (sum);
    }
  free (b->z);
  b->z = z;
}

static void
one_bscan (const ImkOctbscanConfig *c, State *s, ImkOctbscanReference *b)
{
  if (b->x) {
    double *intensity;
    int64_t shift = 0;

    find_z (c, s, b);
    take_pattern_off (c, s, b);
    intensity = mix (c, s, b);
    if (c->tracking != IMK_OCTBSCAN_TRACKING_NONE)
      shift = track (c, s, intensity, b);
    add (s, intensity, shift);
    free (intensity);
    if (c->tracking_complex)
      move_z (c, s, shift, b);
  }
  if (b->has_images)
    finish (c, s, b);
}

void
imk_octbscan_finish_reference (const ImkOctbscanConfig *config,
    ImkOctbscanReference *bscans, uint32_t n, double *pattern)
{
  uint32_t n_depths = imk_octbscan_n_depths (config);
  size_t size = (size_t) config->n_cameras * n_depths;
  State s = {.n_depths = n_depths, .n_ascans = imk_octbscan_n_ascans (config)};

  s.n_window = n_depths - config->tracking_top - config->tracking_bottom;
  s.background =
      calloc ((size_t) config->n_cameras * config->width, sizeof (double));
  s.n_background = calloc (config->n_cameras, sizeof (uint32_t));
  s.pattern = calloc (size, sizeof (*s.pattern));
  for (size_t i = 0; i < size && config->pattern; i++)
    s.pattern[i] = config->pattern[2 * i] + I * config->pattern[2 * i + 1];
  s.places = calloc (n, sizeof (double));
  s.weights = calloc (n, sizeof (double));
  s.reference = calloc (n_depths, sizeof (double));
  for (uint32_t z = 0; config->tracking_profile && z < s.n_window; z++)
    s.reference[z] = config->tracking_profile[z];
  s.sums = calloc ((size_t) s.n_ascans * n_depths, sizeof (double));
  s.n_summed = calloc (s.n_ascans, sizeof (*s.n_summed));
  s.is_dead = calloc (s.n_ascans, sizeof (*s.is_dead));
  for (uint32_t i = 0; i < n; i++) {
    ImkOctbscanReference *b = &bscans[i];

    b->z = calloc (2 * (size_t) config->height * n_depths, sizeof (double));
    b->intensity = calloc ((size_t) s.n_ascans * n_depths, sizeof (double));
    b->enface = calloc (s.n_ascans, sizeof (double));
    one_bscan (config, &s, b);
  }
  for (size_t i = 0; i < size && pattern; i++) {
    pattern[2 * i] = creal (s.pattern[i]);
    pattern[2 * i + 1] = cimag (s.pattern[i]);
  }
  free (s.background);
  free (s.n_background);
  free (s.pattern);
  free (s.places);
  free (s.weights);
  free (s.reference);
  free (s.sums);
  free (s.n_summed);
  free (s.is_dead);
}

void
imk_octbscan_reference_clear (ImkOctbscanReference *bscan)
{
  free (bscan->z);
  free (bscan->intensity);
  free (bscan->enface);
}
