/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of loops.c, which is compiled once for each instruction set. */
#pragma once

#include "imk/parallel.h"
#include "lapsharpen/lapsharpen-sample.h"

/* Samples that a loop has: whole pixels of 1..4 channels, whole vectors. */
enum { CHUNK = 192 };

/* One frame, for all threads. */
typedef struct Work {
  const ImkLapsharpenRule *rule;
  const ImkImage *in;
  ImkImage *out;
  bool plain;
  uint16_t filtered[CHUNK]; /* 0xffff: sharpen the sample; 0: copy it */
  uint8_t filtered_bytes[CHUNK];
  int16_t measured[CHUNK]; /* -1: sum the sample; 0: ignore it */
  ImkLapsharpenSums sums;
} Work;

typedef struct ImkLapsharpenLoops {
  ImkBandFunc sharpen_rows; /* of a Work */
} ImkLapsharpenLoops;

extern const ImkLapsharpenLoops imk_lapsharpen_scalar, imk_lapsharpen_neon,
    imk_lapsharpen_avx2, imk_lapsharpen_avx512;
