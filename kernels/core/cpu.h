/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which instruction set the CPU backends use. A kernel compiles its fast file
 * once for each level ('isa' in gst/<name>/meson.build) and gets the table of
 * functions for this processor from imk_cpu_choose (). */
#pragma once

#include "imk/status.h"

IMK_BEGIN_DECLS

/* Each x86 level includes those before it. */
typedef enum ImkCpuLevel {
  IMK_CPU_SCALAR, /* what every processor of this architecture has */
  IMK_CPU_NEON,   /* arm64 */
  IMK_CPU_AVX2,   /* with FMA */
  IMK_CPU_AVX512, /* F, BW, DQ, VL */
  IMK_CPU_N_LEVELS,
} ImkCpuLevel;

/**
 * imk_cpu_level: (the level to use)
 * @level: (out): the highest that this processor has, or that of the
 *   environment variable IMK_CPU: "scalar", "neon", "avx2" or "avx512"
 *
 * Reads IMK_CPU at each call, so that a test can change it between objects.
 * Returns: IMK_ERROR_CONFIG if IMK_CPU is another word or names a level that
 *   this processor does not have */
IMK_API ImkStatus imk_cpu_level (ImkCpuLevel *level, ImkError *error);

/* Returns: "scalar", "neon", "avx2", "avx512" */
IMK_API const char *imk_cpu_level_name (ImkCpuLevel level);

/**
 * imk_cpu_choose: (one of a kernel's tables of functions)
 * @tables: one a level, NULL where the kernel has none; at least one is not
 * NULL
 * @table: (out): that of the highest level that is not above imk_cpu_level (),
 *   or the lowest that there is
 *
 * Returns: as imk_cpu_level () */
IMK_API ImkStatus imk_cpu_choose (const void *const tables[IMK_CPU_N_LEVELS],
    const void **table, ImkError *error);

/* The tables of a kernel that the build compiles for this architecture:
 * IMK_CPU_TABLES (imk_shcentroid) holds &imk_shcentroid_avx2 and so on. */
#if defined(IMK_HAVE_AVX512)
#define IMK_CPU_TABLES(name) \
  { \
    [IMK_CPU_SCALAR] = &name##_scalar, [IMK_CPU_AVX2] = &name##_avx2, \
    [IMK_CPU_AVX512] = &name##_avx512, \
  }
#elif defined(IMK_HAVE_NEON)
#define IMK_CPU_TABLES(name) \
  { \
    [IMK_CPU_NEON] = &name##_neon \
  }
#else
#define IMK_CPU_TABLES(name) \
  { \
    [IMK_CPU_SCALAR] = &name##_scalar \
  }
#endif

IMK_END_DECLS
