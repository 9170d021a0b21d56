/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between octbscan.c, which validates and plans, and the backends. */
#pragma once

#include "octbscan/octbscan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a backend is given by imk_octbscan_new; its pointers are valid during
 * create only. Depths are those of the crop. */
typedef struct ImkOctbscanPlan {
  const ImkOctbscanConfig *config; /* strategy is not AUTO */
  uint32_t n_depths;
  /* OPERATOR: Z_q of a spectrum of camera c that is 1 at pixel n; the real
   * part at ((c n_depths + q) 2) N + n, the imaginary one N further */
  const float *operators;
  /* FFT, for a device: the chain */
  const struct ImkOctbscanChain *chain;
  /* with IMK_OCTBSCAN_BACKGROUND_FILE C spectra of N, else NULL */
  const float *background;
} ImkOctbscanPlan;

/* What may change between B-scans. */
typedef struct ImkOctbscanParams {
  ImkOctbscanRange range;
  float intensity_min, intensity_max; /* of FIXED */
  double percent_min, percent_max;    /* of PERCENTILE */
} ImkOctbscanParams;

typedef struct ImkOctbscanBackend {
  IMK_BACKEND_HEADER;
  ImkStatus (*create) (const ImkOctbscanPlan *plan,
      const ImkOctbscanParams *params, void **state, ImkError *error);
  ImkStatus (*update) (
      void *state, const ImkOctbscanParams *params, ImkError *error);
  ImkStatus (*process) (void *state, const ImkOctbscanJob *jobs,
      uint32_t n_jobs, void *stream, ImkError *error);
  void (*destroy) (void *state);
} ImkOctbscanBackend;

extern const ImkOctbscanBackend imk_octbscan_cpu;
extern const ImkOctbscanBackend imk_octbscan_cuda;

#ifdef __cplusplus
}
#endif
