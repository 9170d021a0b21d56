/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan/octbscan-chain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "octbscan/octbscan-grid.h"

enum { MAX_TAPS = 32 };

/* A Kaiser-Bessel kernel on a grid that is finer than the band limit asks for,
 * see kernel_for (). */
typedef struct Kernel {
  double width; /* grid points */
  double beta;
} Kernel;

/* A few samples near a place, and what each counts. */
typedef struct Taps {
  int32_t first;
  uint32_t n;
  double weights[MAX_TAPS];
} Taps;

/* ------------------------------------------------------------------------
 * Kernels. */

static double
bessel_i0 (double x)
{
  double sum = 1, term = 1;

  for (int k = 1; term > sum * 1e-17; k++) {
    term *= x * x / (4.0 * k * k);
    sum += term;
  }
  return sum;
}

/* The error is about exp (-pi width sqrt (1 - 1 / oversampling)); this is 4e-8,
 * what float32 resolves. */
static Kernel
kernel_for (double oversampling)
{
  double width = ceil (17 / (M_PI * sqrt (1 - 1 / oversampling)));

  width = fmin (fmax (width, 4), MAX_TAPS - 2);
  return (Kernel){width, M_PI * width * (1 - 0.5 / oversampling)};
}

/* Its Fourier transform at @frequency, in cycles a grid point; inside the band
 * limit the root is real. */
static double
kernel_spectrum (const Kernel *k, double frequency)
{
  double a = M_PI * k->width * frequency;
  double root = sqrt (fmax (k->beta * k->beta - a * a, 1e-12));

  return k->width * sinh (root) / root;
}

static Taps
kernel_taps (const Kernel *k, double x)
{
  Taps taps = {.first = (int32_t) ceil (x - k->width / 2)};

  while (
      taps.first + (double) taps.n <= x + k->width / 2 && taps.n < MAX_TAPS) {
    double r = 2 * (x - (taps.first + (double) taps.n)) / k->width;
    double inside = 1 - r * r;

    taps.weights[taps.n++] =
        inside < 0 ? 0 : bessel_i0 (k->beta * sqrt (inside));
  }
  return taps;
}

static double
lanczos_at (double x)
{
  const double a = 4;

  if (fabs (x) >= a)
    return 0;
  if (fabs (x) < 1e-9)
    return 1;
  return a * sin (M_PI * x) * sin (M_PI * x / a) / (M_PI * M_PI * x * x);
}

/* The samples that make the one at @x, in units of samples. */
static Taps
interpolation_taps (
    ImkOctbscanInterpolation interpolation, const Kernel *k, double x)
{
  int32_t left = (int32_t) floor (x);
  double t = x - left, sum = 0;
  Taps taps;

  switch (interpolation) {
  case IMK_OCTBSCAN_INTERPOLATION_EXACT:
    return kernel_taps (k, x);
  case IMK_OCTBSCAN_INTERPOLATION_CUBIC:
    return (Taps){left - 1, 4,
        {t * (t * (2 - t) - 1) / 2, (t * t * (3 * t - 5) + 2) / 2,
            t * (t * (4 - 3 * t) + 1) / 2, t * t * (t - 1) / 2}};
  case IMK_OCTBSCAN_INTERPOLATION_LANCZOS:
    taps = (Taps){left - 3, 8, {0}};
    for (uint32_t i = 0; i < 8; i++)
      sum += taps.weights[i] = lanczos_at (x - (taps.first + (int32_t) i));
    for (uint32_t i = 0; i < 8; i++)
      taps.weights[i] /= sum;
    return taps;
  default:
    return (Taps){left, 2, {1 - t, t}};
  }
}

/* ------------------------------------------------------------------------
 * Sizes. */

/* How much finer the grids are than they need be. With less, the spectrum of
 * the kernel falls off steeply, by 500 at 1.2, and what makes up for that makes
 * up rounding errors as well. With more the transforms are longer. */
#define OVERSAMPLING 1.5

/* The least of 2^a, 3 2^a and 5 2^a that is at least @least; these are much
 * faster than what has 13 in it, as 832 has. */
static uint32_t
good_size (double least)
{
  for (uint32_t n = 16;; n *= 2) {
    if (n >= least)
      return n;
    if (n / 4 * 5 >= least)
      return n / 4 * 5;
    if (n / 2 * 3 >= least)
      return n / 2 * 3;
  }
}

/* How one chain is laid out, beside what ImkOctbscanChain says. */
typedef struct Plan {
  Kernel interpolate, spread;
  bool spreads;
  double centre;     /* depth that the transform sees as 0 */
  int32_t first_row; /* row 0, before it is wrapped */
  double per_sample; /* points a wavenumber */
} Plan;

static void
lay_out_samples (const ImkOctbscanConfig *c, ImkOctbscanChain *s, Plan *p)
{
  bool exact = c->interpolation == IMK_OCTBSCAN_INTERPOLATION_EXACT;

  s->upsamples = exact || c->upsample > c->width;
  s->n_samples = exact          ? good_size (OVERSAMPLING * c->width)
                 : s->upsamples ? c->upsample
                                : c->width;
  p->interpolate =
      kernel_for (fmax ((double) s->n_samples / c->width, OVERSAMPLING));
}

/* Lengths with greater prime factors take a transform several times as long. */
static bool
is_smooth (uint32_t n)
{
  static const uint32_t primes[] = {2, 3, 5, 7};

  for (uint32_t i = 0; i < sizeof (primes) / sizeof (primes[0]); i++)
    while (n % primes[i] == 0)
      n /= primes[i];
  return n == 1;
}

/* Depths about depth 0 that the DC of a spectrum fills, for each of scale. */
enum { DC_DEPTHS = 16 };

/* Returns: whether a DC above the depths of the crop comes out beside them, at
 * the depth where @n_points alias it to. The kernel leaves 1e-7 of it there,
 * which is more than a weak sample has. */
static bool
dc_stays_out (const ImkOctbscanConfig *c, uint32_t half, uint32_t n_points)
{
  uint32_t centre = c->crop_top + half;
  uint32_t around = centre % n_points;
  uint32_t from_centre =
      around < n_points - around ? around : n_points - around;

  return centre <= n_points / 2 || from_centre > half + DC_DEPTHS * c->scale;
}

/* A short transform of the depths, unless the padded one is about as short. */
static void
choose_points (const ImkOctbscanConfig *c, ImkOctbscanChain *s, Plan *p)
{
  uint32_t padded = c->scale * c->upsample, half = s->n_depths / 2;

  s->n_points = good_size (OVERSAMPLING * s->n_depths);
  while (s->n_points < padded && !dc_stays_out (c, half, s->n_points))
    s->n_points = good_size (s->n_points + 1.0);
  p->spreads =
      s->n_points < padded && (padded > 2 * s->n_points || !is_smooth (padded));
  if (!p->spreads)
    s->n_points = padded;
}

static void
lay_out_points (const ImkOctbscanConfig *c, ImkOctbscanChain *s, Plan *p)
{
  uint32_t padded = c->scale * c->upsample;
  uint32_t half = s->n_depths / 2;

  choose_points (c, s, p);
  p->spread = kernel_for ((double) s->n_points / (2 * half + 1));
  p->per_sample = (double) s->n_points / padded;
  p->centre = p->spreads ? c->crop_top + half : 0;
  p->first_row = p->spreads ? (int32_t) ceil (-p->spread.width / 2) : 0;
  s->n_rows =
      p->spreads
          ? (uint32_t) ((int32_t) floor ((c->upsample - 1) * p->per_sample +
                                         p->spread.width / 2) -
                        p->first_row + 1)
          : c->upsample;
  s->first_point =
      p->first_row < 0 ? s->n_points - (uint32_t) -p->first_row : 0;
  s->first_bin = p->spreads ? s->n_points - half : c->crop_top;
}

/* ------------------------------------------------------------------------
 * The factors that all cameras share. */

static ImkStatus
no_memory (ImkError *error)
{
  return IMK_NO_MEMORY (error, "for the plan of the B-scans.");
}

static ImkStatus
fill_factors (const ImkOctbscanConfig *c, ImkOctbscanChain *s, const Plan *p,
    ImkError *error)
{
  bool exact = c->interpolation == IMK_OCTBSCAN_INTERPOLATION_EXACT;
  uint32_t n = c->width;
  double *taper = malloc (n * sizeof (*taper));
  double scale = 2 / imk_octbscan_grid_window_sum (c);

  s->taper = malloc (n * sizeof (*s->taper));
  s->widen = malloc ((n / 2 + 1) * sizeof (*s->widen));
  s->finish = malloc (s->n_depths * sizeof (*s->finish));
  if (!taper || !s->taper || !s->widen || !s->finish) {
    free (taper);
    return no_memory (error);
  }
  imk_octbscan_grid_taper (c, taper);
  for (uint32_t i = 0; i < n; i++)
    s->taper[i] = (float) taper[i];
  free (taper);
  /* The highest bin of an even N is split in halves between +N/2 and -N/2. */
  for (uint32_t f = 0; f <= n / 2; f++)
    s->widen[f] = (float) ((2 * f == n ? 0.5 : 1.0) / n /
                           (exact ? kernel_spectrum (&p->interpolate,
                                        (double) f / s->n_samples)
                                  : 1));
  for (uint32_t q = 0; q < s->n_depths; q++) {
    double depth = (double) c->crop_top + q - p->centre;

    s->finish[q] = (float) (p->spreads ? scale / kernel_spectrum (&p->spread,
                                                     depth / s->n_points)
                                       : scale);
  }
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * The band of a camera. */

struct ImkOctbscanTuner {
  double axis[2];    /* u of the first and the last wavenumber */
  uint32_t n;        /* wavenumbers */
  int32_t first_row; /* before it is wrapped */
  Taps *in, *out;    /* [n] samples, and points */
  double *re, *im;   /* [n] weights without d2 and d3 */
  int32_t *first;    /* [n_rows] samples, before they are wrapped */
  double *sums;      /* [2][n_rows][n_taps] */
};

static void
tuner_free (ImkOctbscanTuner *t)
{
  free (t->in);
  free (t->out);
  free (t->re);
  free (t->im);
  free (t->first);
  free (t->sums);
}

/* Returns: the row of the @k th point of a wavenumber, beyond all rows for
 * none */
static uint32_t
row_of (const ImkOctbscanTuner *t, const Taps *out, uint32_t k)
{
  return (uint32_t) (out->first + (int32_t) k - t->first_row);
}

/* Which samples each row looks at, before they are wrapped; a row that looks
 * at none has its ends crossed. */
static void
find_ends (const ImkOctbscanTuner *t, uint32_t n_rows, int32_t *last)
{
  for (uint32_t j = 0; j < n_rows; j++) {
    t->first[j] = INT32_MAX;
    last[j] = INT32_MIN;
  }
  for (uint32_t i = 0; i < t->n; i++) {
    const Taps *in = &t->in[i], *out = &t->out[i];

    for (uint32_t k = 0; k < out->n; k++) {
      uint32_t j = row_of (t, out, k);

      if (j >= n_rows)
        continue;
      if (in->first < t->first[j])
        t->first[j] = in->first;
      if (in->first + (int32_t) in->n - 1 > last[j])
        last[j] = in->first + (int32_t) in->n - 1;
    }
  }
}

static void
add_wavenumber (const ImkOctbscanTuner *t, uint32_t i, double re, double im,
    uint32_t n_rows, uint32_t n_taps)
{
  const Taps *in = &t->in[i], *out = &t->out[i];
  size_t size = (size_t) n_rows * n_taps;

  for (uint32_t k = 0; k < out->n; k++) {
    uint32_t j = row_of (t, out, k);
    double *to;

    if (j >= n_rows)
      continue;
    to = t->sums + (size_t) j * n_taps + (size_t) (in->first - t->first[j]);
    for (uint32_t l = 0; l < in->n; l++) {
      double weight = out->weights[k] * in->weights[l];

      to[l] += weight * re;
      to[size + l] += weight * im;
    }
  }
}

/* The weights of a band. */
static void
tune_band (const ImkOctbscanTuner *t, uint32_t n_rows, double d2, double d3,
    ImkOctbscanBand *b)
{
  size_t size = (size_t) n_rows * b->n_taps;

  memset (t->sums, 0, 2 * size * sizeof (*t->sums));
  for (uint32_t i = 0; i < t->n; i++) {
    double u = t->axis[0] + (t->axis[1] - t->axis[0]) * i / (t->n - 1);
    double phase = u * u * (d2 + d3 * u);
    double re = t->re[i], im = t->im[i];

    if (phase != 0) {
      double c = cos (phase),
             s = t->axis[0] < t->axis[1] ? sin (phase) : -sin (phase);

      re = t->re[i] * c - t->im[i] * s;
      im = t->re[i] * s + t->im[i] * c;
    }
    add_wavenumber (t, i, re, im, n_rows, b->n_taps);
  }
  for (size_t i = 0; i < size; i++) {
    b->re[i] = (float) t->sums[i];
    b->im[i] = (float) t->sums[size + i];
  }
}

/* Weights are turned so that the centre of the depths comes to depth 0. */
static ImkStatus
fill_tuner (const ImkOctbscanConfig *c, uint32_t camera, const Plan *p,
    const ImkOctbscanChain *s, ImkOctbscanTuner *t, ImkError *error)
{
  size_t size = c->upsample * sizeof (double);
  double *positions = malloc (size);
  ImkStatus status;

  *t = (ImkOctbscanTuner){.n = c->upsample,
      .first_row = p->first_row,
      .in = malloc (c->upsample * sizeof (*t->in)),
      .out = malloc (c->upsample * sizeof (*t->out)),
      .first = malloc (s->n_rows * sizeof (*t->first)),
      .re = malloc (size),
      .im = malloc (size)};
  status = positions && t->in && t->out && t->first && t->re && t->im
               ? imk_octbscan_grid_positions (c, camera, positions, error)
               : no_memory (error);
  if (status == IMK_OK) {
    imk_octbscan_grid_axis (c, camera, t->axis);
    imk_octbscan_grid_weights (c, camera, t->re, t->im);
  }
  for (uint32_t i = 0; i < t->n && status == IMK_OK; i++) {
    double turn = -2 * M_PI * p->centre * i / ((double) c->scale * c->upsample);
    double re = t->re[i], im = t->im[i];

    t->re[i] = re * cos (turn) - im * sin (turn);
    t->im[i] = re * sin (turn) + im * cos (turn);
    t->in[i] = interpolation_taps (c->interpolation, &p->interpolate,
        positions[i] * ((double) s->n_samples / s->width));
    t->out[i] = p->spreads ? kernel_taps (&p->spread, i * p->per_sample)
                           : (Taps){(int32_t) i, 1, {1}};
  }
  free (positions);
  return status;
}

/* @live: d2 and d3 */
static ImkStatus
fill_band (const ImkOctbscanChain *s, ImkOctbscanTuner *t, const double *live,
    ImkOctbscanBand *b, ImkError *error)
{
  uint32_t n_rows = s->n_rows;
  int32_t *last = malloc (n_rows * sizeof (*last));
  size_t n;

  if (!last)
    return no_memory (error);
  find_ends (t, n_rows, last);
  for (uint32_t j = 0; j < n_rows; j++)
    if (last[j] >= t->first[j] &&
        (uint32_t) (last[j] - t->first[j]) >= b->n_taps)
      b->n_taps = (uint32_t) (last[j] - t->first[j]) + 1;
  b->n_taps += b->n_taps & 1;
  n = (size_t) n_rows * b->n_taps;
  b->first = calloc (n_rows, sizeof (*b->first));
  b->re = malloc (n * sizeof (*b->re));
  b->im = malloc (n * sizeof (*b->im));
  t->sums = malloc (2 * n * sizeof (*t->sums));
  if (!b->first || !b->re || !b->im || !t->sums) {
    free (last);
    return no_memory (error);
  }
  for (uint32_t j = 0; j < n_rows; j++)
    if (last[j] >= t->first[j])
      b->first[j] =
          (uint32_t) (((int64_t) t->first[j] % s->n_samples + s->n_samples) %
                      s->n_samples);
  tune_band (t, n_rows, live[0], live[1], b);
  free (last);
  return IMK_OK;
}

void
imk_octbscan_chain_tune (ImkOctbscanChain *self, const double *live)
{
  for (uint32_t i = 0; i < self->n_cameras; i++)
    tune_band (&self->tuners[i], self->n_rows, live[2 * i], live[2 * i + 1],
        &self->bands[i]);
}

static ImkStatus
fill_turn (const ImkOctbscanConfig *c, uint32_t camera,
    const ImkOctbscanChain *s, ImkOctbscanBand *b, ImkError *error)
{
  const double *phase = c->cameras[camera].spectrum_phase;
  double axis[2], sign;

  imk_octbscan_grid_axis (c, camera, axis);
  sign = axis[0] < axis[1] ? 1 : -1;
  if (!phase)
    return IMK_OK;
  b->turn_re = malloc (c->width * sizeof (*b->turn_re));
  b->turn_im = malloc (c->width * sizeof (*b->turn_im));
  if (!b->turn_re || !b->turn_im)
    return no_memory (error);
  for (uint32_t i = 0; i < c->width; i++) {
    b->turn_re[i] = (float) (s->taper[i] * cos (phase[i]));
    b->turn_im[i] = (float) (sign * s->taper[i] * sin (phase[i]));
  }
  return IMK_OK;
}

/* @c: with a live dispersion, which is the d2 and d3 then */
static ImkStatus
fill_camera (const ImkOctbscanConfig *c, uint32_t camera, ImkOctbscanChain *s,
    const Plan *p, ImkError *error)
{
  const double none[2] = {0, 0};
  const double *live =
      c->live_dispersion ? c->live_dispersion + 2 * camera : none;
  ImkOctbscanCamera cameras[IMK_OCTBSCAN_MAX_CAMERAS];
  ImkOctbscanCamera *plain = &cameras[camera];
  double coefficients[IMK_OCTBSCAN_MAX_COEFFICIENTS];
  ImkOctbscanConfig one = *c;
  ImkOctbscanBand *b = &s->bands[camera];
  ImkOctbscanTuner own, *t = s->tuners ? &s->tuners[camera] : &own;
  ImkStatus status;

  memcpy (cameras, c->cameras, c->n_cameras * sizeof (*cameras));
  for (uint32_t i = 0; c->live_dispersion && i < plain->n_dispersion; i++)
    coefficients[i] = i == 2 || i == 3 ? 0 : plain->dispersion[i];
  if (c->live_dispersion)
    plain->dispersion = coefficients;
  one.cameras = cameras;
  status = fill_tuner (&one, camera, p, s, t, error);
  if (status == IMK_OK)
    status = fill_band (s, t, live, b, error);
  if (status == IMK_OK)
    status = fill_turn (c, camera, s, b, error);
  if (t == &own)
    tuner_free (t);
  return status;
}

/* ------------------------------------------------------------------------
 * The object. */

ImkStatus
imk_octbscan_chain_new (
    const ImkOctbscanConfig *config, ImkOctbscanChain **self, ImkError *error)
{
  ImkOctbscanChain *s = calloc (1, sizeof (*s));
  ImkStatus status;
  Plan plan = {0};

  if (!s)
    return no_memory (error);
  s->width = config->width;
  s->n_depths = imk_octbscan_n_depths (config);
  s->n_cameras = config->n_cameras;
  s->bands = calloc (s->n_cameras, sizeof (*s->bands));
  if (config->live_dispersion)
    s->tuners = calloc (s->n_cameras, sizeof (*s->tuners));
  lay_out_samples (config, s, &plan);
  lay_out_points (config, s, &plan);
  status = s->bands && (s->tuners || !config->live_dispersion)
               ? fill_factors (config, s, &plan, error)
               : no_memory (error);
  for (uint32_t i = 0; i < s->n_cameras && status == IMK_OK; i++)
    status = fill_camera (config, i, s, &plan, error);
  if (status == IMK_OK)
    *self = s;
  else
    imk_octbscan_chain_free (s);
  return status;
}

void
imk_octbscan_chain_free (ImkOctbscanChain *self)
{
  if (!self)
    return;
  for (uint32_t i = 0; i < self->n_cameras && self->bands; i++) {
    free (self->bands[i].first);
    free (self->bands[i].re);
    free (self->bands[i].im);
    free (self->bands[i].turn_re);
    free (self->bands[i].turn_im);
  }
  for (uint32_t i = 0; i < self->n_cameras && self->tuners; i++)
    tuner_free (&self->tuners[i]);
  free (self->tuners);
  free (self->bands);
  free (self->taper);
  free (self->widen);
  free (self->finish);
  free (self);
}
