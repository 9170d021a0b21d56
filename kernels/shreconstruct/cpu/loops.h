/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "shreconstruct/shreconstruct-private.h"

typedef struct ImkShreconstructLoops {
  /* @tile [n_columns][TILE_ROWS] times @vector */
  void (*multiply) (const float *tile, const float *vector, uint32_t n_columns,
      float *product);
  /* @to: rounded to float32 */
  void (*narrow) (const double *from, uint32_t n, float *to);
  bool (*are_finite) (const float *values, uint32_t n);
} ImkShreconstructLoops;

/* Returns: IMK_ERROR_CONFIG for a wrong IMK_CPU */
ImkStatus imk_shreconstruct_choose_loops (
    const ImkShreconstructLoops **loops, ImkError *error);
