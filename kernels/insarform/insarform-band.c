/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "insarform/insarform-band.h"

#include <math.h>
#include <stdlib.h>

#include "core/sample.h"
#include "insarform/insarform-patches.h"

enum { N = IMK_INSARFORM_BAND_PATCH };

struct ImkInsarformBand {
  ImkInsarformConfig config;
  ImkInsarformPatches patches; /* a plane for each image */
  float complex *images[2];    /* [N][width]: line y is y % N; 0 without data */
  float *phase;                /* likewise */
  float complex *out;          /* a line of the secondary */
};

/* --- centres and weights -------------------------------------------------- */

static double
cycles_of (double complex sum)
{
  return sum != 0 ? carg (sum) / (2 * M_PI) : 0;
}

/* Along x, of the phase that is removed. */
static double
fringes_of (const ImkInsarformBand *self, int64_t left)
{
  const ImkInsarformPatches *p = &self->patches;
  double complex sum = 0;

  for (int j = 0; j < N; j++)
    for (int i = 0; i + 1 < N; i++) {
      int64_t x = left + i, y = p->top + j;
      const float *phase;
      float d;

      if (!imk_insarform_patches_is_inside (p, x, y) ||
          !imk_insarform_patches_is_inside (p, x + 1, y))
        continue;
      phase = self->phase + imk_insarform_patches_place (p, x, y);
      d = phase[1] - phase[0];
      if (isfinite (d))
        sum += cosf (d) + I * sinf (d);
    }
  return cycles_of (sum);
}

static double
doppler_of (const float complex *z)
{
  double complex sum = 0;

  for (int k = 0; k + N < N * N; k++)
    sum += z[k + N] * conjf (z[k]);
  return cycles_of (sum);
}

/* Of the bins of one axis: @w1, @w2 become what both spectra are multiplied by.
 */
static void
make_weights (double band, double c1, double c2, float *w1, float *w2)
{
  double common[N], power[2] = {0}, both = 0;

  for (int k = 0; k < N; k++) {
    double at = (double) k / N, w[2];

    for (int i = 0; i < 2; i++) {
      double away = fabs (remainder (at - (i ? c2 : c1), 1));

      w[i] = band > 0 ? fmax (0, fmin (1, N * band / 2 + 0.5 - N * away)) : 1;
      power[i] += w[i] * w[i];
    }
    common[k] = w[0] * w[1];
    both += common[k] * common[k];
  }
  for (int k = 0; k < N; k++) {
    w1[k] = both < 1 ? 0 : (float) (common[k] * sqrt (power[0] / both));
    w2[k] = both < 1 ? 0 : (float) (common[k] * sqrt (power[1] / both));
  }
}

/* --- patches -------------------------------------------------------------- */

static void
load_patch (const ImkInsarformBand *self, int64_t left, float complex *z1,
    float complex *z2)
{
  const ImkInsarformPatches *p = &self->patches;

  for (int j = 0; j < N; j++)
    for (int i = 0; i < N; i++) {
      int64_t x = left + i, y = p->top + j;
      float w = p->weights[i] * p->weights[j];
      size_t at;

      z1[j * N + i] = z2[j * N + i] = 0;
      if (!imk_insarform_patches_is_inside (p, x, y))
        continue;
      at = imk_insarform_patches_place (p, x, y);
      if (self->images[0][at] == 0)
        continue;
      z1[j * N + i] = w * self->images[0][at];
      z2[j * N + i] = w * self->images[1][at] *
                      (cosf (self->phase[at]) + I * sinf (self->phase[at]));
    }
}

static void
make_patch (void *data, uint32_t i, int64_t left, float complex *patch)
{
  const ImkInsarformBand *self = data;
  ImkFft *const *fft = self->patches.fft;
  float complex *z[2] = {patch, patch + N * N};
  float along[2][N], across[2][N];
  ImkError error;

  load_patch (self, left, z[0], z[1]);
  make_weights (self->config.range_band, 0, fringes_of (self, left), across[0],
      across[1]);
  make_weights (self->config.azimuth_band, doppler_of (z[0]), doppler_of (z[1]),
      along[0], along[1]);
  for (int s = 0; s < 2; s++) {
    if (imk_fft_execute (fft[0], z[s], z[s], &error) != IMK_OK)
      continue;
    for (int k = 0; k < N * N; k++)
      z[s][k] *= across[s][k % N] * along[s][k / N] / (N * N);
    (void) imk_fft_execute (fft[1], z[s], z[s], &error);
  }
}

/* --- making --------------------------------------------------------------- */

static bool
make_memory (ImkInsarformBand *self)
{
  size_t width = self->config.width;

  for (int i = 0; i < 2; i++)
    self->images[i] = malloc (N * width * sizeof (float complex));
  self->phase = malloc (N * width * sizeof (float));
  self->out = malloc (width * sizeof (float complex));
  return self->images[0] && self->images[1] && self->phase && self->out;
}

ImkStatus
imk_insarform_band_new (
    const ImkInsarformConfig *config, ImkInsarformBand **self, ImkError *error)
{
  ImkInsarformBand *s = calloc (1, sizeof (*s));
  ImkStatus status = IMK_ERROR_MEMORY;

  if (s) {
    s->config = *config;
    s->patches = (ImkInsarformPatches){
        .width = config->width,
        .height = config->height,
        .n = N,
        .step = N / 2,
        .n_planes = 2,
        .n_threads = config->n_threads,
        .make = make_patch,
        .owner = s,
    };
  }
  if (s && make_memory (s))
    status = imk_insarform_patches_init (&s->patches, error);
  else
    IMK_NO_MEMORY (error,
        "for %d lines of two images of %u columns, whose "
        "common band is filtered.",
        N, config->width);
  if (status == IMK_OK)
    *self = s;
  else
    imk_insarform_band_free (s);
  return status;
}

void
imk_insarform_band_free (ImkInsarformBand *self)
{
  if (!self)
    return;
  for (int i = 0; i < 2; i++)
    free (self->images[i]);
  free (self->phase);
  free (self->out);
  imk_insarform_patches_clear (&self->patches);
  free (self);
}

void
imk_insarform_band_rewind (ImkInsarformBand *self)
{
  imk_insarform_patches_rewind (&self->patches);
}

/* --- lines ---------------------------------------------------------------- */

uint32_t
imk_insarform_band_room (const ImkInsarformBand *self)
{
  uint32_t left = self->config.height - self->patches.pushed;
  uint32_t room = self->patches.pulled + N - self->patches.pushed;

  return room < left ? room : left;
}

void
imk_insarform_band_push (ImkInsarformBand *self, const ImkImage *reference,
    const ImkImage *secondary, const ImkImage *phase)
{
  ImkInsarformPatches *p = &self->patches;

  for (uint32_t j = 0; j < reference->height; j++)
    for (uint32_t x = 0; x < self->config.width; x++) {
      size_t at = imk_insarform_patches_place (p, x, p->pushed + j);
      const ImkImage *images[2] = {reference, secondary};
      float complex s[2];
      float f = phase ? (float) imk_sample_get (phase, x, j, 0) : 0;

      for (int i = 0; i < 2; i++)
        s[i] = (float) imk_sample_get (images[i], x, j, 0) +
               I * (float) imk_sample_get (images[i], x, j, 1);
      if (s[0] == 0 || s[1] == 0 || !isfinite (crealf (s[0] * s[1])) ||
          !isfinite (cimagf (s[0] * s[1])) || !isfinite (f))
        s[0] = s[1] = 0;
      self->images[0][at] = s[0];
      self->images[1][at] = s[1];
      self->phase[at] = f;
    }
  p->pushed += reference->height;
  imk_insarform_patches_advance (p);
}

bool
imk_insarform_band_pull (ImkInsarformBand *self, ImkImage *reference,
    ImkImage *secondary, ImkImage *phase)
{
  ImkInsarformPatches *p = &self->patches;
  size_t width = p->width, at = imk_insarform_patches_place (p, 0, p->pulled);
  float complex *sums[2] = {p->sums + at, p->sums + N * width + at};
  float complex *first = self->images[0] + at;

  if (!imk_insarform_patches_is_ready (p))
    return false;
  for (uint32_t x = 0; x < width; x++) {
    bool is_data = first[x] != 0;
    float f = self->phase[at + x];

    first[x] = is_data ? sums[0][x] : 0;
    self->out[x] = is_data ? sums[1][x] * (cosf (f) - I * sinf (f)) : 0;
    sums[0][x] = sums[1][x] = 0;
  }
  *reference = imk_image_of_rows (first, IMK_TYPE_CF32, p->width, 1);
  *secondary = imk_image_of_rows (self->out, IMK_TYPE_CF32, p->width, 1);
  *phase = imk_image_of_rows (self->phase + at, IMK_TYPE_F32, p->width, 1);
  p->pulled++;
  imk_insarform_patches_advance (p);
  return true;
}
