/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "insarform/insarform-patches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

ImkStatus
imk_insarform_patches_init (ImkInsarformPatches *self, ImkError *error)
{
  const uint32_t n = self->n;
  const size_t size = self->n_planes * n * sizeof (float complex);
  ImkStatus status = IMK_OK;
  ImkFftConfig c;

  self->n_patches = (self->width + n - 1) / self->step;
  self->sums = malloc (size * self->width);
  self->patches = aligned_alloc (64, size * n * self->n_patches);
  self->weights = malloc (n * sizeof (float));
  if (!self->sums || !self->patches || !self->weights)
    return IMK_NO_MEMORY (
        error, "to filter %u lines of %u columns at a time.", n, self->width);
  for (uint32_t i = 0; i < n; i++)
    self->weights[i] = (float) pow (sin (M_PI * (i + 0.5) / n), 2);
  imk_fft_config_init (&c);
  c.width = c.height = n;
  c.in_place = true;
  for (int i = 0; i < 2 && status == IMK_OK; i++) {
    c.direction = i ? IMK_FFT_BACKWARD : IMK_FFT_FORWARD;
    status = imk_fft_new (&c, &self->fft[i], error);
  }
  imk_insarform_patches_rewind (self);
  return status;
}

void
imk_insarform_patches_clear (ImkInsarformPatches *self)
{
  free (self->sums);
  free (self->patches);
  free (self->weights);
  imk_fft_free (self->fft[0]);
  imk_fft_free (self->fft[1]);
}

/* Patches of which the image has at least one line begin where the first ends
 * in line 0 or below. */
void
imk_insarform_patches_rewind (ImkInsarformPatches *self)
{
  self->pushed = self->pulled = 0;
  self->top = (int64_t) self->step - self->n;
  memset (self->sums, 0,
      (size_t) self->n_planes * self->n * self->width * sizeof (*self->sums));
}

/* --- a row of patches ----------------------------------------------------- */

static int64_t
left_of (const ImkInsarformPatches *self, uint32_t i)
{
  return (int64_t) self->step * (i + 1) - self->n;
}

/* Returns: line @j of @plane of patch @i */
static float complex *
line_of (
    const ImkInsarformPatches *self, uint32_t i, uint32_t plane, uint32_t j)
{
  return self->patches +
         (((size_t) i * self->n_planes + plane) * self->n + j) * self->n;
}

static void
make_patches (void *data, uint32_t first, uint32_t end)
{
  ImkInsarformPatches *self = data;

  for (uint32_t i = first; i < end; i++)
    self->make (self->owner, i, left_of (self, i), line_of (self, i, 0, 0));
}

/* Adds line @j of all patches to the columns [first, end). */
static void
add_line (ImkInsarformPatches *self, uint32_t plane, uint32_t j, uint32_t first,
    uint32_t end)
{
  float complex *sums = self->sums + (size_t) plane * self->n * self->width +
                        imk_insarform_patches_place (self, 0, self->top + j);

  for (uint32_t i = first / self->step;
       i < self->n_patches && left_of (self, i) < end; i++) {
    const float complex *z = line_of (self, i, plane, j);
    int64_t left = left_of (self, i), right = left + self->n;

    right = right < end ? right : end;
    for (int64_t x = left > first ? left : first; x < right; x++)
      sums[x] += z[x - left];
  }
}

static void
add_patches (void *data, uint32_t first, uint32_t end)
{
  ImkInsarformPatches *self = data;

  for (uint32_t j = 0; j < self->n; j++)
    if (self->top + j >= 0 && self->top + j < self->height)
      for (uint32_t plane = 0; plane < self->n_planes; plane++)
        add_line (self, plane, j, first, end);
}

void
imk_insarform_patches_advance (ImkInsarformPatches *self)
{
  while (
      !imk_insarform_patches_is_ready (self) && self->pulled < self->height &&
      (self->pushed == self->height || self->top + self->n <= self->pushed)) {
    imk_parallel_for (self->n_threads, self->n_patches, 1, make_patches, self);
    imk_parallel_for (self->n_threads, self->width, 64, add_patches, self);
    self->top += self->step;
  }
}
