/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between normalintegrate.c and the backends. What arrives here is valid. */
#pragma once

#include "imk/normalintegrate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ImkNormalintegrateComplex {
  float re, im;
} ImkNormalintegrateComplex;

/* Tables of one side of the picture, n samples long. */
typedef struct ImkNormalintegrateAxis {
  uint32_t n;
  const ImkNormalintegrateComplex *turn; /* exp (-i pi k / 2n), 0..n / 2 */
  const float *lambda; /* 4 sin^2 (pi k / 2n), 0..n: of second differences; of
                        * y times aspect^2 */
  const float
      *wave; /* 2 pi k / n, of y times aspect, k from -n / 2 to n / 2 as in a
              * spectrum, 0 at n / 2 where there is one: 0..n - 1 */
} ImkNormalintegrateAxis;

/* What stays. */
typedef struct ImkNormalintegratePlan {
  uint32_t width, height;
  ImkType type;
  uint32_t channels;
  uint32_t colours[3];
  ImkNormalintegrateAxis x, y; /* tables live as long as the object */
  float aspect;                /* width of a pixel over its height */
  uint32_t n_threads;
} ImkNormalintegratePlan;

/* What may change from map to map. */
/* Below, float32 has no digits left, and the steps go astray. */
#define IMK_NORMALINTEGRATE_LEAST_TOLERANCE 1e-6f

typedef struct ImkNormalintegrateParams {
  ImkNormalintegrateMethod method;
  float y_sign; /* of the y of normals, to point down */
  float max_slope;
  float stiffness;
  float tolerance;
  uint32_t max_iterations;
  float mm_per_pixel, grey_range;
  bool grey_swapped;
} ImkNormalintegrateParams;

typedef struct ImkNormalintegrateBackend {
  IMK_BACKEND_HEADER;
  ImkStatus (*create) (
      const ImkNormalintegratePlan *plan, void **state, ImkError *error);
  /* Waits. */
  ImkStatus (*process) (void *state, const ImkNormalintegrateParams *params,
      const ImkImage *in, ImkNormalintegrateOutputs *outputs,
      ImkNormalintegrateSummary *summary, void *stream, ImkError *error);
  void (*destroy) (void *state);
} ImkNormalintegrateBackend;

extern const ImkNormalintegrateBackend imk_normalintegrate_cpu;
extern const ImkNormalintegrateBackend imk_normalintegrate_cuda;

#ifdef __cplusplus
}
#endif
