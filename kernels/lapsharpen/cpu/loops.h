/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tables of loops.c and float.c, which are compiled once for each
 * instruction set and type of sample. */
#pragma once

#include "core/pool.h"
#include "imk/parallel.h"
#include "lapsharpen/cpu/products.h"
#include "lapsharpen/cpu/ratio.h"

/* Samples that a loop has: whole pixels of 1..4 channels, whole vectors. */
enum { CHUNK = 192 };

/* One frame, for all threads. */
typedef struct Work {
  const ImkLapsharpenRule *rule;
  const ImkLapsharpenProducts *products; /* for bytes */
  const ImkLapsharpenRatio *ratio;       /* likewise */
  const ImkImage *in;
  ImkImage *out;
  ImkPool *pool;       /* scratch memory of threads */
  const uint8_t *mask; /* (nullable) */
  ImkLapsharpenSums sums;
  uint64_t noise;
  ImkLapsharpenMoments *moments; /* of each row, for float32 instead of both */
} Work;

typedef struct ImkLapsharpenLoops {
  ImkBandFunc sharpen_rows;  /* of a Work */
  ImkBandFunc measure_noise; /* likewise; item 0 is row 1 */
} ImkLapsharpenLoops;

#define IMK_LAPSHARPEN_TABLES(level) \
  imk_lapsharpen_u8_##level, imk_lapsharpen_u16_##level, \
      imk_lapsharpen_f32_##level

extern const ImkLapsharpenLoops IMK_LAPSHARPEN_TABLES (scalar),
    IMK_LAPSHARPEN_TABLES (neon), IMK_LAPSHARPEN_TABLES (avx2),
    IMK_LAPSHARPEN_TABLES (avx512);
