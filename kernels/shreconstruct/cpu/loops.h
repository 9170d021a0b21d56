/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "shreconstruct/shreconstruct-private.h"

typedef struct ImkShreconstructLoops {
  /* @tile [n_columns][TILE_ROWS] times @vector */
  void (*multiply) (const float *tile, const float *vector, uint32_t n_columns,
      float *product);
} ImkShreconstructLoops;
