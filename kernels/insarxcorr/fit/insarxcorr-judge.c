/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/insarxcorr-judge.h"

#include <math.h>

#include "insarxcorr/insarxcorr-backend.h"

enum { N_BINS = IMK_INSARXCORR_JUDGE_BINS };

/* Octaves of sigma from its assumed value either way. */
#define OCTAVES 2.0

/* Spectra of radars are between these; a wider scatter is that of texture. */
#define MIN_BAND (1 / 3.0)
#define MAX_BAND 1.0

/* A peak that is so much above the threshold is none of noise. */
#define SIGNAL 1.15

void
imk_insarxcorr_judge_init (
    ImkInsarxcorrJudge *self, const ImkInsarxcorrConfig *config, bool follows)
{
  *self = (ImkInsarxcorrJudge){
      .config = *config,
      .follows = follows && config->mode == IMK_INSARXCORR_PRECISE,
      .threshold = config->min_correlation,
  };
}

/* The lags of a surface, in samples of the image. */
typedef struct Surface {
  double assumed;      /* sigma */
  double z;            /* threshold / sigma */
  double area, window; /* of all lags; of those around the peak, which SNR
                        * leaves out */
} Surface;

static Surface
describe_surface (const ImkInsarxcorrPlan *plan)
{
  const double band = IMK_INSARXCORR_ASSUMED_BAND;
  const ImkInsarxcorrFine *f = &plan->fine;
  double lags = (double) f->interp_x * f->interp_y;
  double sigma = imk_insarxcorr_scatter (plan, band);

  return (Surface){
      .assumed = sigma,
      .z = imk_insarxcorr_significant (plan, band) / (100 * sigma),
      .area = (double) f->n_lags_x * f->n_lags_y / lags,
      .window = IMK_INSARXCORR_WINDOW * IMK_INSARXCORR_WINDOW / lags,
  };
}

/* The largest value of noise belongs to the noise, with what is around it: the
 * square of a peak of height h covers 0.81 h^2 / B^2 samples, as its spectrum
 * is the squared triangle. A peak of what correlates is far higher.
 *
 * Returns: sigma of a surface with this @largest value */
static double
scatter_of (const Surface *surface, double largest, double snr)
{
  double mean = largest * largest / snr, sigma = sqrt (2 * mean);
  double band = IMK_INSARXCORR_ASSUMED_BAND * surface->assumed / sigma;
  double peak = 0.81 / (band * band);

  if (largest > SIGNAL * surface->z * sigma)
    return sigma;
  return sqrt (
      2 *
      (mean * (surface->area - surface->window) + largest * largest * peak) /
      surface->area);
}

static void
count (ImkInsarxcorrJudge *self, const Surface *surface, const double *values)
{
  const uint32_t not_noise = IMK_INSARXCORR_NO_DATA | IMK_INSARXCORR_OUTSIDE;
  double largest = values[IMK_INSARXCORR_CORRELATION] / 100, bin;

  if (((uint32_t) values[IMK_INSARXCORR_FLAGS] & not_noise) ||
      !(largest > 0 && values[IMK_INSARXCORR_SNR] > 0))
    return;
  bin = scatter_of (surface, largest, values[IMK_INSARXCORR_SNR]);
  bin = N_BINS * (log2 (bin / surface->assumed) / OCTAVES + 1) / 2;
  if (!isfinite (bin))
    return;
  self->bins[bin < 0 ? 0 : bin < N_BINS - 1 ? (int) bin : N_BINS - 1]++;
  self->n++;
}

/* Returns: the median of sigma / what is assumed */
static double
median (const ImkInsarxcorrJudge *self)
{
  uint64_t below = 0;
  int bin = 0;

  while (2 * (below + self->bins[bin]) < self->n)
    below += self->bins[bin++];
  return exp2 (OCTAVES * (2 * (bin + 0.5) / N_BINS - 1));
}

static void
renew_threshold (ImkInsarxcorrJudge *self, const ImkInsarxcorrPlan *plan)
{
  double band;

  if (!self->n)
    return;
  band = IMK_INSARXCORR_ASSUMED_BAND / median (self);
  self->threshold =
      imk_insarxcorr_significant (plan, fmin (fmax (band, MIN_BAND), MAX_BAND));
}

/* As GMTSAR prints it, with two decimals. */
static bool
is_low (const double *values, double threshold)
{
  return !(rint (values[IMK_INSARXCORR_CORRELATION] * 100) / 100 > threshold);
}

/* Returns: whether a patch has data, but a surface without a peak */
static bool
is_flat (const ImkInsarxcorrConfig *c, const double *values, uint32_t flags)
{
  return (flags & IMK_INSARXCORR_NO_DATA) && !(flags & IMK_INSARXCORR_MASKED) &&
         values[IMK_INSARXCORR_VALID] > 0 &&
         values[IMK_INSARXCORR_VALID] >= c->min_valid;
}

void
imk_insarxcorr_judge_row (
    ImkInsarxcorrJudge *self, double *values, uint32_t n_patches)
{
  const ImkInsarxcorrConfig *c = &self->config;
  bool is_time4 =
      c->mode == IMK_INSARXCORR_COMPAT && c->method == IMK_INSARXCORR_TIME4;
  ImkInsarxcorrPlan plan;

  imk_insarxcorr_plan_sizes (&plan, c);
  if (self->follows) {
    Surface surface = describe_surface (&plan);

    for (uint32_t i = 0; i < n_patches; i++)
      count (self, &surface, values + (size_t) i * IMK_INSARXCORR_N_FIELDS);
    renew_threshold (self, &plan);
  }
  for (uint32_t i = 0; i < n_patches; i++) {
    double *patch = values + (size_t) i * IMK_INSARXCORR_N_FIELDS;
    uint32_t flags = (uint32_t) patch[IMK_INSARXCORR_FLAGS];

    if (is_time4 && is_flat (c, patch, flags))
      flags &= ~(uint32_t) IMK_INSARXCORR_INVALID_MASK;
    flags &= ~(uint32_t) IMK_INSARXCORR_LOW;
    if (is_low (patch, self->threshold))
      flags |= IMK_INSARXCORR_LOW;
    patch[IMK_INSARXCORR_FLAGS] = flags;
  }
}
