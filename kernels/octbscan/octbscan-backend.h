/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between octbscan.c, which validates and plans, and the backends. */
#pragma once

#include "imk/octbscan.h"

IMK_BEGIN_DECLS

/* A-scan i is the sum of weights[k] times the intensity of row rows[k], k from
 * first[i] to first[i + 1] - 1. Rows are in the order of a mirror on its way
 * there. */
typedef struct ImkOctbscanLateral {
  bool is_identity;
  uint32_t n_ascans;
  const uint32_t *first; /* [n_ascans + 1] */
  const uint32_t *rows;
  const float *weights;
} ImkOctbscanLateral;

/* What a backend is given by imk_octbscan_new; its pointers are valid during
 * create only. Depths are those of the crop. */
typedef struct ImkOctbscanPlan {
  const ImkOctbscanConfig *config; /* strategy is not AUTO */
  uint32_t n_depths;
  /* OPERATOR: Z_q of a spectrum of camera c that is 1 at pixel n; the real
   * part at ((c n_depths + q) 2) N + n, the imaginary one N further */
  const float *operators;
  /* FFT, for a device: the chain; it stays as long as the object when it has
   * tuners */
  const struct ImkOctbscanChain *chain;
  /* with IMK_OCTBSCAN_FIXED_PATTERN_FILE C times n_depths of Z, else NULL */
  const float *pattern;
  /* of which rows an A-scan of the image is made; it stays as long as the
   * object */
  const ImkOctbscanLateral *lateral;
} ImkOctbscanPlan;

typedef struct ImkOctbscanBackend {
  IMK_BACKEND_HEADER;
  ImkStatus (*create) (
      const ImkOctbscanPlan *plan, void **state, ImkError *error);
  /* @config: that of the plan without its pointers, but for what
   * imk_octbscan_update () takes */
  ImkStatus (*update) (
      void *state, const ImkOctbscanConfig *config, ImkError *error);
  ImkStatus (*process) (void *state, const ImkOctbscanJob *jobs,
      uint32_t n_jobs, void *stream, ImkError *error);
  /* Another live dispersion: @chain, for a device, has it already. */
  ImkStatus (*tune) (void *state, const struct ImkOctbscanChain *chain,
      const double *live, ImkError *error);
  ImkStatus (*get_pattern) (void *state, float *pattern, ImkError *error);
  ImkStatus (*get_background) (
      void *state, double *background, ImkError *error);
  void (*destroy) (void *state);
} ImkOctbscanBackend;

/* In cpu/operators.c. @operators: (out): to be freed, also after a failure; as
 * in @plan, whose operators are not read */
ImkStatus imk_octbscan_make_operators (
    const ImkOctbscanPlan *plan, float **operators, ImkError *error);

extern const ImkOctbscanBackend imk_octbscan_cpu;
extern const ImkOctbscanBackend imk_octbscan_cuda;

IMK_END_DECLS
