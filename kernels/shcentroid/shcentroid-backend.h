/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between shcentroid.c, which validates and plans, and the backends. */
#pragma once

#include "shcentroid/shcentroid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One cell, as the backends see it: inside the frame, never empty. */
typedef struct ImkShcentroidRect {
  uint16_t x, y, width, height;
  uint32_t flags; /* those known beforehand: IMK_SHCENTROID_CLIPPED */
  double ref_x, ref_y;
  double min_flux, threshold; /* NaN: the configured one */
} ImkShcentroidRect;

/* The geometry. @rects holds @n_rects cells in the order of the output. When
 * @columns is not 0 they form a grid of @rows x @columns, in which all cells
 * of a row share y and height and touch from left to right. */
typedef struct ImkShcentroidPlan {
  uint32_t width, height;
  ImkType type;
  uint32_t columns, rows;
  uint32_t n_rects;
  const ImkShcentroidRect *rects; /* valid during create only */
  uint32_t n_threads;
  ImkShcentroidFields fields;
} ImkShcentroidPlan;

/* What may change from frame to frame; see ImkShcentroidConfig. */
typedef struct ImkShcentroidParams {
  bool has_threshold;
  bool subtract;
  double threshold, min_flux, saturation, gain, read_noise;
  ImkShcentroidInvalid invalid_policy;
  double slope_scale;
} ImkShcentroidParams;

typedef struct ImkShcentroidBackend {
  IMK_BACKEND_HEADER;
  ImkStatus (*create) (const ImkShcentroidPlan *plan,
      const ImkShcentroidParams *params, void **state, ImkError *error);
  ImkStatus (*update) (
      void *state, const ImkShcentroidParams *params, ImkError *error);
  ImkStatus (*process) (void *state, const ImkImage *in, ImkImage *out,
      void *stream, ImkError *error);
  ImkStatus (*reset) (void *state, void *stream, ImkError *error);
  void (*destroy) (void *state);
} ImkShcentroidBackend;

extern const ImkShcentroidBackend imk_shcentroid_cpu;
extern const ImkShcentroidBackend imk_shcentroid_cuda;

#ifdef __cplusplus
}
#endif
