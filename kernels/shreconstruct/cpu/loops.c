/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The product with a tile, compiled once for each instruction set with
 * IMK_ISA_TABLE as the name of the table. */
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

const ImkShreconstructLoops IMK_ISA_TABLE = {.multiply = multiply};
