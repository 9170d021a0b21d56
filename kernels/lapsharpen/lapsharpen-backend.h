/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between lapsharpen.c, which validates, and the backends, which compute. */
#pragma once

#include "lapsharpen/lapsharpen.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Exact sums of L over the filtered samples. A square of a 16-bit L takes 39
 * bits, so the squares are summed in two halves that cannot overflow:
 * sum L^2 = square_low + 2^32 square_high. */
typedef struct ImkLapsharpenSums {
  int64_t sum;
  uint64_t square_low, square_high;
} ImkLapsharpenSums;

/* Configurations are valid and images checked when they come here. */
typedef struct ImkLapsharpenBackend {
  IMK_BACKEND_HEADER;
  ImkStatus (*create) (
      const ImkLapsharpenConfig *config, void **state, ImkError *error);
  ImkStatus (*update) (
      void *state, const ImkLapsharpenConfig *config, ImkError *error);
  ImkStatus (*process) (void *state, const ImkImage *in, ImkImage *out,
      void *stream, ImkError *error);
  /* Waits for the last frame. */
  ImkStatus (*get_sums) (void *state, ImkLapsharpenSums *sums, ImkError *error);
  void (*destroy) (void *state);
} ImkLapsharpenBackend;

extern const ImkLapsharpenBackend imk_lapsharpen_cpu;
extern const ImkLapsharpenBackend imk_lapsharpen_cuda;

#ifdef __cplusplus
}
#endif
