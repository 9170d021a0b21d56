/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "insarform/insarform-filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "insarform/insarform-patches.h"

enum { N_CHANNELS = IMK_INSARFORM_N_CHANNELS };

struct ImkInsarformFilter {
  ImkInsarformPatches patches; /* of cells */
  double alpha;
  float *rows;    /* [window][width][N_CHANNELS]: row y is y % window */
  float *scratch; /* [n_patches][2][window][window]: |Z|, smoothed */
};

/* --- patches -------------------------------------------------------------- */

static void
load_patch (const ImkInsarformFilter *self, int64_t left, float complex *to)
{
  const ImkInsarformPatches *p = &self->patches;

  for (uint32_t j = 0; j < p->n; j++)
    for (uint32_t i = 0; i < p->n; i++, to++) {
      int64_t x = left + i, y = p->top + j;
      const float *cell;
      float length;

      *to = 0;
      if (!imk_insarform_patches_is_inside (p, x, y))
        continue;
      cell = self->rows + imk_insarform_patches_place (p, x, y) * N_CHANNELS;
      length = hypotf (cell[IMK_INSARFORM_RE], cell[IMK_INSARFORM_IM]);
      if (length > 0 && length < INFINITY)
        *to = cell[IMK_INSARFORM_RE] / length +
              I * (cell[IMK_INSARFORM_IM] / length);
    }
}

/* The mean of 3 x 3 bins; the ninth is left out, as S is divided by its
 * maximum. */
static float
smooth (const float *lengths, uint32_t n, uint32_t u, uint32_t v)
{
  float sum = 0;

  for (uint32_t j = v + n - 1; j <= v + n + 1; j++)
    for (uint32_t i = u + n - 1; i <= u + n + 1; i++)
      sum += lengths[(j % n) * n + i % n];
  return sum;
}

/* @lengths: [2][n][n], the second half for the smoothed ones */
static void
weigh_spectrum (float complex *z, uint32_t n, double alpha, float *lengths)
{
  float *smoothed = lengths + n * n, largest = 0;

  for (uint32_t i = 0; i < n * n; i++)
    lengths[i] = hypotf (crealf (z[i]), cimagf (z[i]));
  for (uint32_t i = 0; i < n * n; i++) {
    smoothed[i] = smooth (lengths, n, i % n, i / n);
    largest = fmaxf (largest, smoothed[i]);
  }
  for (uint32_t i = 0; i < n * n && largest > 0; i++)
    z[i] *= powf (smoothed[i] / largest, (float) alpha);
}

static void
make_patch (void *data, uint32_t i, int64_t left, float complex *z)
{
  const ImkInsarformFilter *self = data;
  const ImkInsarformPatches *p = &self->patches;
  size_t size = (size_t) p->n * p->n;
  ImkError error;

  load_patch (self, left, z);
  if (imk_fft_execute (p->fft[0], z, z, &error) == IMK_OK) {
    weigh_spectrum (z, p->n, self->alpha, self->scratch + 2 * size * i);
    (void) imk_fft_execute (p->fft[1], z, z, &error);
  }
  for (uint32_t k = 0; k < size; k++)
    z[k] *= p->weights[k % p->n] * p->weights[k / p->n];
}

/* --- making --------------------------------------------------------------- */

ImkStatus
imk_insarform_filter_new (const ImkInsarformConfig *config,
    ImkInsarformFilter **self, ImkError *error)
{
  const uint32_t width = config->width / config->looks_x;
  const uint32_t window = config->filter_window;
  ImkInsarformFilter *s = calloc (1, sizeof (*s));
  ImkInsarformPatches *p;
  ImkStatus status;

  if (!s)
    return IMK_NO_MEMORY (error, "for the filter.");
  p = &s->patches;
  *p = (ImkInsarformPatches){
      .width = width,
      .height = config->height / config->looks_y,
      .n = window,
      .step = window / 4,
      .n_planes = 1,
      .n_threads = config->n_threads,
      .make = make_patch,
      .owner = s,
  };
  s->alpha = config->filter_alpha;
  status = imk_insarform_patches_init (p, error);
  s->rows = malloc ((size_t) window * width * N_CHANNELS * sizeof (float));
  s->scratch =
      malloc ((size_t) p->n_patches * 2 * window * window * sizeof (float));
  if (status == IMK_OK && (!s->rows || !s->scratch))
    status = IMK_NO_MEMORY (error, "for %u rows of %u cells.", window, width);
  if (status == IMK_OK)
    *self = s;
  else
    imk_insarform_filter_free (s);
  return status;
}

void
imk_insarform_filter_free (ImkInsarformFilter *self)
{
  if (!self)
    return;
  imk_insarform_patches_clear (&self->patches);
  free (self->rows);
  free (self->scratch);
  free (self);
}

void
imk_insarform_filter_rewind (ImkInsarformFilter *self)
{
  imk_insarform_patches_rewind (&self->patches);
}

/* --- rows ----------------------------------------------------------------- */

bool
imk_insarform_filter_is_ready (const ImkInsarformFilter *self)
{
  return imk_insarform_patches_is_ready (&self->patches);
}

void
imk_insarform_filter_push (ImkInsarformFilter *self, const float *row)
{
  ImkInsarformPatches *p = &self->patches;

  memcpy (
      self->rows + imk_insarform_patches_place (p, 0, p->pushed) * N_CHANNELS,
      row, (size_t) p->width * N_CHANNELS * sizeof (float));
  p->pushed++;
  imk_insarform_patches_advance (p);
}

void
imk_insarform_filter_pull (ImkInsarformFilter *self, float *row)
{
  ImkInsarformPatches *p = &self->patches;
  size_t at = imk_insarform_patches_place (p, 0, p->pulled);

  memcpy (row, self->rows + at * N_CHANNELS,
      (size_t) p->width * N_CHANNELS * sizeof (float));
  for (uint32_t x = 0; x < p->width; x++) {
    float *cell = row + (size_t) x * N_CHANNELS;
    float complex *sum = p->sums + at + x;
    float length = hypotf (crealf (*sum), cimagf (*sum));
    float amplitude = hypotf (cell[IMK_INSARFORM_RE], cell[IMK_INSARFORM_IM]);

    if (length > 0 && amplitude > 0) {
      cell[IMK_INSARFORM_RE] = amplitude * (crealf (*sum) / length);
      cell[IMK_INSARFORM_IM] = amplitude * (cimagf (*sum) / length);
    }
    *sum = 0;
  }
  p->pulled++;
  imk_insarform_patches_advance (p);
}
