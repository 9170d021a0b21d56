/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The inner loops, compiled once for each instruction set with IMK_ISA_TABLE as
 * the name of the table. */
#include "slcresample/cpu/loops.h"

/* A register of AVX2. The compiler splits it if registers are shorter. Each sum
 * is rounded alone, so the bits are the same everywhere. */
enum { LANES = 8 };
typedef float Vector
    __attribute__ ((vector_size (4 * LANES), aligned (4), may_alias));

/* All bits set where a comparison of vectors is true. */
typedef int32_t Mask
    __attribute__ ((vector_size (4 * LANES), aligned (4), may_alias));

/* @n_vectors vectors of sums from sample @i on. */
static inline __attribute__ ((always_inline)) void
sum_vectors (const Run *run, uint32_t i, uint32_t n_vectors, float *out_re,
    float *out_im)
{
  Vector re[2] = {{0}}, im[2] = {{0}};

  for (uint32_t k = 0; k < run->n_taps; k++) {
    float w = run->weights[k], step = run->next_weights[k] - w;

    for (uint32_t v = 0; v < n_vectors; v++) {
      uint32_t at = i + v * LANES;
      Vector weights = *(const Vector *) (run->parts + at) * step + w;

      re[v] += weights * *(const Vector *) (run->re[k] + at);
      im[v] += weights * *(const Vector *) (run->im[k] + at);
    }
  }
  for (uint32_t v = 0; v < n_vectors; v++) {
    uint32_t at = i + v * LANES;
    Mask data = {0};

    /* samples whose two middle taps are 0 stay a gap */
    for (uint32_t k = run->n_taps / 2 - 1; k <= run->n_taps / 2; k++)
      data |= (*(const Vector *) (run->re[k] + at) != 0) |
              (*(const Vector *) (run->im[k] + at) != 0);
    *(Vector *) (out_re + at) = (Vector) ((Mask) re[v] & data);
    *(Vector *) (out_im + at) = (Vector) ((Mask) im[v] & data);
  }
}

/* Two vectors at a time: an addition has the latency of four. */
static void
sum_run (const Run *run, float *out_re, float *out_im)
{
  uint32_t i = 0;

  for (; i + LANES < run->n; i += 2 * LANES)
    sum_vectors (run, i, 2, out_re, out_im);
  if (i < run->n)
    sum_vectors (run, i, 1, out_re, out_im);
}

static void
divide_places (double at, double distance, uint32_t n, Places *places)
{
  for (uint32_t i = 0; i < n; i++) {
    double steps = at * N_PHASES + distance * N_PHASES * (int32_t) i;

    places->steps[i] = (int32_t) steps;
    places->parts[i] = (float) (steps - places->steps[i]);
  }
}

const ImkSlcresampleLoops IMK_ISA_TABLE = {
    .sum = sum_run,
    .divide = divide_places,
};
