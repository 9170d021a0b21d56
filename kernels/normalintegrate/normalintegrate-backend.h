/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between normalintegrate.c and the backends. What arrives here is valid. */
#pragma once

#include "imk/normalintegrate.h"

IMK_BEGIN_DECLS

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

/* Below, float32 has no digits left, and the steps go astray. */
#define IMK_NORMALINTEGRATE_LEAST_TOLERANCE 1e-6f

/* What may change from map to map. */
typedef struct ImkNormalintegrateParams {
  ImkNormalintegrateMethod method;
  float y_sign; /* of the y of normals, to point down */
  float max_slope;
  float stiffness;
  float tolerance;
  uint32_t max_iterations;
  float focal_pixels; /* 0: all views are parallel */
} ImkNormalintegrateParams;

/* How a height is written. */
typedef struct ImkNormalintegrateScale {
  float lowest; /* pixels, before anything else */
  float mm;     /* a pixel */
  float focal;  /* pixels; 0: all views are parallel */
  bool is_bent; /* focal or is_corrected */
  /* the surface that is taken off, of u = (x - middle_x) scale_x - from_u, y up
   */
  bool is_corrected;
  float middle_x, middle_y, scale_x, scale_y, from_u, from_v;
  float terms[IMK_NORMALINTEGRATE_N_TERMS];
  float datum;    /* mm, of grey value 1 */
  float per_grey; /* grey values a mm; 0 when all is of one height */
  bool swapped;   /* grey values */
} ImkNormalintegrateScale;

/* Of heights that are there; from infinity to -infinity if there are none. */
typedef struct ImkNormalintegrateRange {
  float lowest, highest;
} ImkNormalintegrateRange;

typedef struct ImkNormalintegrateBackend {
  IMK_BACKEND_HEADER;
  ImkStatus (*create) (
      const ImkNormalintegratePlan *plan, void **state, ImkError *error);
  /* The state has the heights afterwards; those below are for it. All wait. */
  ImkStatus (*integrate) (void *state, const ImkNormalintegrateParams *params,
      const ImkImage *in, ImkNormalintegrateSummary *summary, void *stream,
      ImkError *error);
  /* Of the heights in mm. */
  ImkStatus (*find_range) (void *state, const ImkNormalintegrateScale *scale,
      ImkNormalintegrateRange *range, void *stream, ImkError *error);
  /* @at: indices of pixels; @z: (out): in pixels, NaN where there is none */
  ImkStatus (*gather) (void *state, const uint32_t *at, uint32_t n, float *z,
      void *stream, ImkError *error);
  ImkStatus (*store) (void *state, const ImkNormalintegrateScale *scale,
      ImkNormalintegrateOutputs *outputs, void *stream, ImkError *error);
  void (*destroy) (void *state);
} ImkNormalintegrateBackend;

extern const ImkNormalintegrateBackend imk_normalintegrate_cpu;
extern const ImkNormalintegrateBackend imk_normalintegrate_cuda;

IMK_END_DECLS
