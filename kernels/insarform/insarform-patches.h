/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Square patches that overlap, as the filters of spectra have them. They begin
 * at all multiples of a step that overlap the image. A row of them is made when
 * its lines have come, and added to the rows before. */
#pragma once

#include <complex.h>

#include "imk/fft.h"
#include "imk/parallel.h"

typedef struct ImkInsarformPatches {
  uint32_t width, height;     /* of the image */
  uint32_t n, step, n_planes; /* of a patch: samples a side, to the next one */
  uint32_t n_threads;
  /* Makes patch @i of the row at @top. @left: its first column; @z:
   * [n_planes][n][n] */
  void (*make) (void *owner, uint32_t i, int64_t left, float complex *z);
  void *owner;
  uint32_t n_patches;      /* of a row of them */
  uint32_t pushed, pulled; /* lines */
  int64_t top;             /* first line of the next patches */
  float complex *sums;     /* of patches, [n_planes][n][width] */
  float complex *patches;  /* [n_patches][n_planes][n][n] */
  float *weights;          /* sin^2 (pi (x + 1/2) / n), [n] */
  ImkFft *fft[2];          /* of a plane, in place: forward, backward */
} ImkInsarformPatches;

/* @self: all up to @owner is set, the others 0; to be cleared in any case */
ImkStatus imk_insarform_patches_init (
    ImkInsarformPatches *self, ImkError *error);
void imk_insarform_patches_clear (ImkInsarformPatches *self);
void imk_insarform_patches_rewind (ImkInsarformPatches *self);

/* Makes rows of patches until a line is complete, or lines are missing. */
void imk_insarform_patches_advance (ImkInsarformPatches *self);

/* Returns: whether the next line is complete: it lies above the next patches */
static inline bool
imk_insarform_patches_is_ready (const ImkInsarformPatches *self)
{
  return self->pulled < self->height && self->pulled < self->top;
}

/* Returns: where column @x of line @y is in n lines: line y is y % n */
static inline size_t
imk_insarform_patches_place (
    const ImkInsarformPatches *self, int64_t x, int64_t y)
{
  return (size_t) (y % self->n) * self->width + (size_t) x;
}

/* Returns: whether (x, y) is in the image, and has come */
static inline bool
imk_insarform_patches_is_inside (
    const ImkInsarformPatches *self, int64_t x, int64_t y)
{
  return x >= 0 && y >= 0 && x < self->width && y < self->pushed;
}
