/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between lapsharpen.c, which validates, and the backends, which compute. */
#pragma once

#include "core/filter-backend.h"
#include "imk/lapsharpen.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sums of one row, or of a frame, over what is finite. */
typedef struct ImkLapsharpenMoments {
  double sum, squares;
  uint64_t n;
} ImkLapsharpenMoments;

/* The params are an ImkLapsharpenConfig without its pointers, the plan is one
 * with them, and the result is this: exact sums of L over the filtered samples.
 * A square of a 16-bit L takes 39 bits, so the squares are summed in two halves
 * that cannot overflow: sum L^2 = square_low + 2^32 square_high. Of float32
 * there are @moments instead. */
typedef struct ImkLapsharpenSums {
  int64_t sum;
  uint64_t square_low, square_high;
  ImkLapsharpenMoments moments;
} ImkLapsharpenSums;

extern const ImkFilterBackend imk_lapsharpen_cpu;
extern const ImkFilterBackend imk_lapsharpen_cuda;

#ifdef __cplusplus
}
#endif
