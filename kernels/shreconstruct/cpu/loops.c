/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The product with a tile, and coefficients of a frame, compiled once for each
 * instruction set with IMK_ISA_TABLE as the name of the table. */
#include <string.h>

#include "shreconstruct/cpu/loops.h"

/* A tile has 2 to 8 registers of sums. Each operation is rounded alone, so the
 * bits are the same everywhere. */
enum {
  LANES = IMK_VECTOR_SIZE / sizeof (float),
  N_VECTORS = IMK_SHRECONSTRUCT_TILE_ROWS / LANES,
};
typedef float Vector
    __attribute__ ((vector_size (IMK_VECTOR_SIZE), aligned (4), may_alias));

static void
multiply (
    const float *tile, const float *vector, uint32_t n_columns, float *product)
{
  const Vector *values = (const Vector *) tile;
  Vector *out = (Vector *) product;
  Vector sums[N_VECTORS] = {{0}};

  for (uint32_t i = 0; i < n_columns; i++)
    for (int k = 0; k < N_VECTORS; k++)
      sums[k] += values[i * N_VECTORS + k] * vector[i];
  for (int k = 0; k < N_VECTORS; k++)
    out[k] = sums[k];
}

static void
narrow (const double *from, uint32_t n, float *to)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] = (float) from[i];
}

/* Without a branch, so that the compiler makes vectors of it. */
static bool
are_finite (const float *values, uint32_t n)
{
  uint32_t full = 0; /* exponents */

  for (uint32_t i = 0; i < n; i++) {
    uint32_t bits;

    memcpy (&bits, values + i, sizeof (bits));
    full |= (bits & 0x7fffffff) + 0x00800000;
  }
  return full >> 31 == 0;
}

const ImkShreconstructLoops IMK_ISA_TABLE = {
    .multiply = multiply, .narrow = narrow, .are_finite = are_finite};
