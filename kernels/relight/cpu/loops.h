/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of loops.c, which is compiled once for each instruction set. */
#pragma once

#include "imk/parallel.h"
#include "relight/relight-backend.h"

/* One picture, for all threads. */
typedef struct Job {
  const ImkRelightParams *params;
  ImkRelightSource normals, albedo;
  ImkImage *out;
} Job;

typedef struct ImkRelightLoops {
  ImkBandFunc light_rows; /* of a Job */
} ImkRelightLoops;

extern const ImkRelightLoops imk_relight_scalar, imk_relight_neon,
    imk_relight_avx2, imk_relight_avx512;
