/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loops over pixels, compiled once for each instruction set ('isa' in
 * gst/shcentroid/meson.build). Each source ends with its table; IMK_CPU_TABLES
 * (core/cpu.h) lists those of the levels that the build has. */
#pragma once

#include <stdint.h>

struct Frame;

typedef struct ImkShcentroidLoops {
  /* cells [first, end), or rows of cells; @frame: a Frame */
  void (*measure) (void *frame, uint32_t first, uint32_t end);
  /* before that, of all cells: correlation and linear only */
  void (*prepare) (struct Frame *frame);
} ImkShcentroidLoops;

/* integers.c: samples of 8 or 16 bits, sums of a cell of 32 or 64 bits. */
extern const ImkShcentroidLoops imk_shcentroid_u8_sum32_scalar,
    imk_shcentroid_u8_sum32_neon, imk_shcentroid_u8_sum32_avx2,
    imk_shcentroid_u8_sum32_avx512;
extern const ImkShcentroidLoops imk_shcentroid_u8_sum64_scalar,
    imk_shcentroid_u8_sum64_neon, imk_shcentroid_u8_sum64_avx2,
    imk_shcentroid_u8_sum64_avx512;
extern const ImkShcentroidLoops imk_shcentroid_u16_sum32_scalar,
    imk_shcentroid_u16_sum32_neon, imk_shcentroid_u16_sum32_avx2,
    imk_shcentroid_u16_sum32_avx512;
extern const ImkShcentroidLoops imk_shcentroid_u16_sum64_scalar,
    imk_shcentroid_u16_sum64_neon, imk_shcentroid_u16_sum64_avx2,
    imk_shcentroid_u16_sum64_avx512;
/* The same of their squares. */
extern const ImkShcentroidLoops imk_shcentroid_u8_square_sum32_scalar,
    imk_shcentroid_u8_square_sum32_neon, imk_shcentroid_u8_square_sum32_avx2,
    imk_shcentroid_u8_square_sum32_avx512;
extern const ImkShcentroidLoops imk_shcentroid_u8_square_sum64_scalar,
    imk_shcentroid_u8_square_sum64_neon, imk_shcentroid_u8_square_sum64_avx2,
    imk_shcentroid_u8_square_sum64_avx512;
extern const ImkShcentroidLoops imk_shcentroid_u16_square_sum64_scalar,
    imk_shcentroid_u16_square_sum64_neon, imk_shcentroid_u16_square_sum64_avx2,
    imk_shcentroid_u16_square_sum64_avx512;

/* chain.c: everything that integers cannot do, in floating point. */
extern const ImkShcentroidLoops imk_shcentroid_chain_scalar,
    imk_shcentroid_chain_neon, imk_shcentroid_chain_avx2,
    imk_shcentroid_chain_avx512;

/* correlation.c */
extern const ImkShcentroidLoops imk_shcentroid_correlation_scalar,
    imk_shcentroid_correlation_neon, imk_shcentroid_correlation_avx2,
    imk_shcentroid_correlation_avx512;

/* linear.c */
extern const ImkShcentroidLoops imk_shcentroid_linear_scalar,
    imk_shcentroid_linear_neon, imk_shcentroid_linear_avx2,
    imk_shcentroid_linear_avx512;
