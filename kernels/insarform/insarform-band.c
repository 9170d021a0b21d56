/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "insarform/insarform-band.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sample.h"
#include "imk/parallel.h"
#include "insarform/insarform-patches.h"

enum { N = IMK_INSARFORM_BAND_PATCH, STEP = N / 2 };

struct ImkInsarformBand {
  ImkInsarformConfig config;
  uint32_t n_patches;       /* of a row of them */
  uint32_t pushed, pulled;  /* lines */
  int64_t top;              /* first line of the next patches */
  float complex *images[2]; /* [N][width]: line y is y % N; 0 without data */
  float *phase;             /* likewise */
  float complex *sums[2];   /* of patches, likewise */
  float complex *patches;   /* [n_patches][2][N][N] */
  float complex *out;       /* a line of the secondary */
  float weights[N];
  ImkFft *fft[2]; /* forward, backward */
};

/* --- making --------------------------------------------------------------- */

static bool
make_memory (ImkInsarformBand *self)
{
  size_t width = self->config.width, size = N * width * sizeof (float complex);
  bool is_made = true;

  for (int i = 0; i < 2; i++) {
    self->images[i] = malloc (size);
    self->sums[i] = malloc (size);
    is_made = is_made && self->images[i] && self->sums[i];
  }
  self->phase = malloc (N * width * sizeof (float));
  self->out = malloc (width * sizeof (float complex));
  self->patches = aligned_alloc (
      64, (size_t) self->n_patches * 2 * N * N * sizeof (float complex));
  for (int i = 0; i < N; i++)
    self->weights[i] = (float) pow (sin (M_PI * (i + 0.5) / N), 2);
  return is_made && self->phase && self->out && self->patches;
}

ImkStatus
imk_insarform_band_new (
    const ImkInsarformConfig *config, ImkInsarformBand **self, ImkError *error)
{
  ImkInsarformBand *s = calloc (1, sizeof (*s));
  ImkStatus status = IMK_ERROR_MEMORY;

  if (s) {
    s->config = *config;
    s->n_patches = (config->width - 1) / STEP + 2;
  }
  if (s && make_memory (s))
    status = imk_insarform_make_ffts (N, s->fft, error);
  else
    imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for %d lines of two images of %u columns, whose "
        "common band is filtered.",
        N, config->width);
  if (status == IMK_OK) {
    imk_insarform_band_rewind (s);
    *self = s;
  } else {
    imk_insarform_band_free (s);
  }
  return status;
}

void
imk_insarform_band_free (ImkInsarformBand *self)
{
  if (!self)
    return;
  for (int i = 0; i < 2; i++) {
    free (self->images[i]);
    free (self->sums[i]);
    imk_fft_free (self->fft[i]);
  }
  free (self->phase);
  free (self->out);
  free (self->patches);
  free (self);
}

void
imk_insarform_band_rewind (ImkInsarformBand *self)
{
  self->pushed = self->pulled = 0;
  self->top = STEP - N;
  for (int i = 0; i < 2; i++)
    memset (self->sums[i], 0, N * self->config.width * sizeof (*self->sums[i]));
}

/* --- centres and weights -------------------------------------------------- */

static int64_t
left_of (uint32_t patch)
{
  return STEP * ((int64_t) patch + 1) - N;
}

/* Returns: whether (x, y) is in the images, and has come */
static bool
is_inside (const ImkInsarformBand *self, int64_t x, int64_t y)
{
  return x >= 0 && y >= 0 && x < self->config.width && y < self->pushed;
}

static size_t
place_of (const ImkInsarformBand *self, int64_t x, int64_t y)
{
  return (size_t) (y % N) * self->config.width + (size_t) x;
}

static double
cycles_of (double complex sum)
{
  return sum != 0 ? carg (sum) / (2 * M_PI) : 0;
}

/* Along x, of the phase that is removed. */
static double
fringes_of (const ImkInsarformBand *self, int64_t left)
{
  double complex sum = 0;

  for (int j = 0; j < N; j++)
    for (int i = 0; i + 1 < N; i++) {
      int64_t x = left + i, y = self->top + j;
      float d;

      if (!is_inside (self, x, y) || !is_inside (self, x + 1, y))
        continue;
      d = self->phase[place_of (self, x + 1, y)] -
          self->phase[place_of (self, x, y)];
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
  for (int j = 0; j < N; j++)
    for (int i = 0; i < N; i++) {
      int64_t x = left + i, y = self->top + j;
      float w = self->weights[i] * self->weights[j];
      size_t at;

      z1[j * N + i] = z2[j * N + i] = 0;
      if (!is_inside (self, x, y))
        continue;
      at = place_of (self, x, y);
      if (self->images[0][at] == 0)
        continue;
      z1[j * N + i] = w * self->images[0][at];
      z2[j * N + i] = w * self->images[1][at] *
                      (cosf (self->phase[at]) + I * sinf (self->phase[at]));
    }
}

static void
filter_patches (void *data, uint32_t first, uint32_t end)
{
  ImkInsarformBand *self = data;
  ImkError error;

  for (uint32_t p = first; p < end; p++) {
    float complex *z[2] = {self->patches + (size_t) p * 2 * N * N};
    float along[2][N], across[2][N];

    z[1] = z[0] + N * N;
    load_patch (self, left_of (p), z[0], z[1]);
    make_weights (self->config.range_band, 0, fringes_of (self, left_of (p)),
        across[0], across[1]);
    make_weights (self->config.azimuth_band, doppler_of (z[0]),
        doppler_of (z[1]), along[0], along[1]);
    for (int i = 0; i < 2; i++) {
      if (imk_fft_execute (self->fft[0], z[i], z[i], &error) != IMK_OK)
        continue;
      for (int k = 0; k < N * N; k++)
        z[i][k] *= across[i][k % N] * along[i][k / N] / (N * N);
      (void) imk_fft_execute (self->fft[1], z[i], z[i], &error);
    }
  }
}

/* Adds all patches to the columns [first, end) of their lines. */
static void
add_patches (void *data, uint32_t first, uint32_t end)
{
  ImkInsarformBand *self = data;

  for (int j = 0; j < N; j++) {
    int64_t y = self->top + j;

    if (y < 0 || y >= self->config.height)
      continue;
    for (uint32_t x = first; x < end; x++)
      for (uint32_t p = x / STEP; p < x / STEP + 2; p++) {
        const float complex *z = self->patches + (size_t) p * 2 * N * N +
                                 (size_t) j * N + (x - left_of (p));

        self->sums[0][place_of (self, x, y)] += z[0];
        self->sums[1][place_of (self, x, y)] += z[N * N];
      }
  }
}

/* --- lines ---------------------------------------------------------------- */

/* Lines above the next patches are complete. */
bool
imk_insarform_band_is_ready (const ImkInsarformBand *self)
{
  return self->pulled < self->config.height && self->pulled < self->top;
}

static void
filter (ImkInsarformBand *self)
{
  while (
      !imk_insarform_band_is_ready (self) &&
      self->pulled < self->config.height &&
      (self->pushed == self->config.height || self->top + N <= self->pushed)) {
    imk_parallel_for (
        self->config.n_threads, self->n_patches, 1, filter_patches, self);
    imk_parallel_for (
        self->config.n_threads, self->config.width, 64, add_patches, self);
    self->top += STEP;
  }
}

uint32_t
imk_insarform_band_room (const ImkInsarformBand *self)
{
  uint32_t left = self->config.height - self->pushed;
  uint32_t room = self->pulled + N - self->pushed;

  return room < left ? room : left;
}

void
imk_insarform_band_push (ImkInsarformBand *self, const ImkImage *reference,
    const ImkImage *secondary, const ImkImage *phase)
{
  for (uint32_t j = 0; j < reference->height; j++)
    for (uint32_t x = 0; x < self->config.width; x++) {
      size_t at = place_of (self, x, self->pushed + j);
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
  self->pushed += reference->height;
  filter (self);
}

void
imk_insarform_band_pull (ImkInsarformBand *self, ImkImage *reference,
    ImkImage *secondary, ImkImage *phase)
{
  uint32_t width = self->config.width;
  size_t at = place_of (self, 0, self->pulled);
  ImkImage line = {.width = width, .height = 1, .channels = 1};

  for (uint32_t x = 0; x < width; x++) {
    bool is_data = self->images[0][at + x] != 0;
    float f = self->phase[at + x];

    self->images[0][at + x] = is_data ? self->sums[0][at + x] : 0;
    self->out[x] =
        is_data ? self->sums[1][at + x] * (cosf (f) - I * sinf (f)) : 0;
    self->sums[0][at + x] = self->sums[1][at + x] = 0;
  }
  *reference = *secondary = *phase = line;
  reference->type = secondary->type = IMK_TYPE_CF32;
  reference->stride = secondary->stride = width * sizeof (float complex);
  reference->data = self->images[0] + at;
  secondary->data = self->out;
  phase->type = IMK_TYPE_F32;
  phase->stride = width * sizeof (float);
  phase->data = self->phase + at;
  self->pulled++;
  filter (self);
}
