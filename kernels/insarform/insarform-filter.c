/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "insarform/insarform-filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "imk/parallel.h"
#include "insarform/insarform-patches.h"

enum { N_CHANNELS = IMK_INSARFORM_N_CHANNELS };

struct ImkInsarformFilter {
  uint32_t width, height; /* cells */
  uint32_t window, step, n_threads;
  double alpha;
  uint32_t n_patches;   /* of a row of them */
  uint32_t pushed, row; /* rows of cells; the one that is pulled next */
  int64_t top;          /* first row of the next patches */
  float *rows;          /* [window][width][N_CHANNELS]: row y is y % window */
  float (*sums)[2];     /* of patches, [window][width] */
  float *patches;       /* [n_patches][window][window][2] */
  float *scratch;       /* [n_patches][2][window][window]: |Z|, smoothed */
  float *weights;       /* [window] */
  ImkFft *fft[2];       /* forward, backward */
};

/* --- making --------------------------------------------------------------- */

static bool
make_memory (ImkInsarformFilter *self)
{
  size_t cells = (size_t) self->window * self->width;
  size_t bins = (size_t) self->n_patches * self->window * self->window;

  self->rows = malloc (cells * N_CHANNELS * sizeof (float));
  self->sums = calloc (cells, sizeof (*self->sums));
  self->patches = aligned_alloc (64, bins * 2 * sizeof (float));
  self->scratch = malloc (2 * bins * sizeof (float));
  self->weights = malloc (self->window * sizeof (float));
  if (!self->rows || !self->sums || !self->patches || !self->scratch ||
      !self->weights)
    return false;
  for (uint32_t i = 0; i < self->window; i++) {
    double s = sin (M_PI * (i + 0.5) / self->window);

    self->weights[i] = (float) (s * s);
  }
  return true;
}

ImkStatus
imk_insarform_filter_new (uint32_t width, uint32_t height, uint32_t window,
    double alpha, uint32_t n_threads, ImkInsarformFilter **self,
    ImkError *error)
{
  ImkInsarformFilter *s = calloc (1, sizeof (*s));
  ImkStatus status;

  if (!s)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the filter.");
  s->width = width;
  s->height = height;
  s->window = window;
  s->step = window / 4;
  s->alpha = alpha;
  s->n_threads = n_threads;
  s->n_patches = (width + window - s->step - 1) / s->step + 1;
  if (make_memory (s))
    status = imk_insarform_make_ffts (window, s->fft, error);
  else
    status = imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory to filter %u rows of %u cells at a time.", window,
        width);
  if (status == IMK_OK) {
    imk_insarform_filter_rewind (s);
    *self = s;
  } else {
    imk_insarform_filter_free (s);
  }
  return status;
}

void
imk_insarform_filter_free (ImkInsarformFilter *self)
{
  if (!self)
    return;
  free (self->rows);
  free (self->sums);
  free (self->patches);
  free (self->scratch);
  free (self->weights);
  imk_fft_free (self->fft[0]);
  imk_fft_free (self->fft[1]);
  free (self);
}

/* Patches of which the image has at least one row begin where the first ends in
 * row 0 or below. */
void
imk_insarform_filter_rewind (ImkInsarformFilter *self)
{
  self->pushed = self->row = 0;
  self->top = (int64_t) self->step - self->window;
  memset (self->sums, 0,
      (size_t) self->window * self->width * sizeof (*self->sums));
}

/* --- patches -------------------------------------------------------------- */

/* Returns: the first column of a patch */
static int64_t
left_of (const ImkInsarformFilter *self, uint32_t patch)
{
  return (int64_t) self->step * (patch + 1) - self->window;
}

static const float *
cell_at (const ImkInsarformFilter *self, int64_t x, int64_t y)
{
  return self->rows +
         ((size_t) (y % self->window) * self->width + (size_t) x) * N_CHANNELS;
}

static void
load_patch (const ImkInsarformFilter *self, int64_t left, float *to)
{
  memset (to, 0, 2 * sizeof (float) * self->window * self->window);
  for (uint32_t j = 0; j < self->window; j++)
    for (uint32_t i = 0; i < self->window; i++) {
      int64_t x = left + i, y = self->top + j;
      const float *cell;
      float length;

      if (x < 0 || y < 0 || x >= self->width || y >= self->pushed)
        continue;
      cell = cell_at (self, x, y);
      length = hypotf (cell[IMK_INSARFORM_RE], cell[IMK_INSARFORM_IM]);
      if (!(length > 0 && length < INFINITY))
        continue;
      to[2 * (j * self->window + i)] = cell[IMK_INSARFORM_RE] / length;
      to[2 * (j * self->window + i) + 1] = cell[IMK_INSARFORM_IM] / length;
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

/* @lengths: [2][W][W], the second half for the smoothed ones */
static void
weigh_spectrum (const ImkInsarformFilter *self, float *z, float *lengths)
{
  uint32_t n = self->window;
  float *smoothed = lengths + n * n, largest = 0;

  for (uint32_t i = 0; i < n * n; i++)
    lengths[i] = hypotf (z[2 * i], z[2 * i + 1]);
  for (uint32_t i = 0; i < n * n; i++) {
    smoothed[i] = smooth (lengths, n, i % n, i / n);
    largest = fmaxf (largest, smoothed[i]);
  }
  for (uint32_t i = 0; i < n * n && largest > 0; i++) {
    float w = powf (smoothed[i] / largest, (float) self->alpha);

    z[2 * i] *= w;
    z[2 * i + 1] *= w;
  }
}

static void
filter_patches (void *data, uint32_t first, uint32_t end)
{
  ImkInsarformFilter *self = data;
  size_t size = (size_t) self->window * self->window;
  ImkError error;

  for (uint32_t i = first; i < end; i++) {
    float *z = self->patches + 2 * size * i;

    load_patch (self, left_of (self, i), z);
    if (imk_fft_execute (self->fft[0], z, z, &error) == IMK_OK) {
      weigh_spectrum (self, z, self->scratch + 2 * size * i);
      (void) imk_fft_execute (self->fft[1], z, z, &error);
    }
  }
}

/* Adds all patches to the columns [first, end) of their rows. */
static void
add_patches (void *data, uint32_t first, uint32_t end)
{
  ImkInsarformFilter *self = data;
  uint32_t n = self->window;

  for (uint32_t j = 0; j < n; j++) {
    int64_t y = self->top + j;

    if (y < 0 || y >= self->height)
      continue;
    for (uint32_t x = first; x < end; x++) {
      float *sum = self->sums[(size_t) (y % n) * self->width + x];
      /* the patches that begin in the n columns up to x */
      uint32_t begin = x / self->step, stop = (x + n) / self->step;

      for (uint32_t i = begin; i < stop && i < self->n_patches; i++) {
        uint32_t at = (uint32_t) (x - left_of (self, i));
        const float *z = self->patches + 2 * (((size_t) i * n + j) * n + at);
        float w = self->weights[at] * self->weights[j];

        sum[0] += w * z[0];
        sum[1] += w * z[1];
      }
    }
  }
}

/* --- rows ----------------------------------------------------------------- */

/* Rows above the next patches are complete. */
bool
imk_insarform_filter_is_ready (const ImkInsarformFilter *self)
{
  return self->row < self->height && self->row < self->top;
}

static void
filter (ImkInsarformFilter *self)
{
  while (!imk_insarform_filter_is_ready (self) && self->row < self->height &&
         (self->pushed == self->height ||
             self->top + self->window <= self->pushed)) {
    imk_parallel_for (
        self->n_threads, self->n_patches, 1, filter_patches, self);
    imk_parallel_for (self->n_threads, self->width, 64, add_patches, self);
    self->top += self->step;
  }
}

void
imk_insarform_filter_push (ImkInsarformFilter *self, const float *row)
{
  memcpy (self->rows +
              (size_t) (self->pushed % self->window) * self->width * N_CHANNELS,
      row, (size_t) self->width * N_CHANNELS * sizeof (float));
  self->pushed++;
  filter (self);
}

void
imk_insarform_filter_pull (ImkInsarformFilter *self, float *row)
{
  size_t at = (size_t) (self->row % self->window) * self->width;

  memcpy (row, self->rows + at * N_CHANNELS,
      (size_t) self->width * N_CHANNELS * sizeof (float));
  for (uint32_t x = 0; x < self->width; x++) {
    float *cell = row + (size_t) x * N_CHANNELS, *sum = self->sums[at + x];
    float length = hypotf (sum[0], sum[1]);
    float amplitude = hypotf (cell[IMK_INSARFORM_RE], cell[IMK_INSARFORM_IM]);

    if (length > 0 && amplitude > 0) {
      cell[IMK_INSARFORM_RE] = amplitude * (sum[0] / length);
      cell[IMK_INSARFORM_IM] = amplitude * (sum[1] / length);
    }
    sum[0] = sum[1] = 0;
  }
  self->row++;
  filter (self);
}
