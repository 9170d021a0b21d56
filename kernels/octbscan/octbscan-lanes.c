/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan/octbscan-lanes.h"

#include <string.h>

/* One binary for all x86-64; elsewhere the compiler has the vector units that
 * it was told of. */
#define ISA_NAME(x) x##_base
#define TARGET
#define REGISTER_LANES 4
#define DEPTHS 1
#define FMA(a, b, c) ((a) * (b) + (c))
#include "octbscan/octbscan-lanes-isa.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_X86_ISAS 1
#include <immintrin.h>

#define ISA_NAME(x) x##_avx2
#define TARGET __attribute__ ((target ("avx2,fma")))
#define REGISTER_LANES 8
#define DEPTHS 1
#define FMA(a, b, c) _mm256_fmadd_ps (a, b, c)
#include "octbscan/octbscan-lanes-isa.h"

#define ISA_NAME(x) x##_avx512
#define TARGET \
  __attribute__ ((target ("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")))
#define REGISTER_LANES 16
#define DEPTHS 2
#define FMA(a, b, c) _mm512_fmadd_ps (a, b, c)
#include "octbscan/octbscan-lanes-isa.h"
#endif

const ImkOctbscanLoops *
imk_octbscan_loops (void)
{
#ifdef HAVE_X86_ISAS
  if (__builtin_cpu_supports ("avx512bw") &&
      __builtin_cpu_supports ("avx512dq") &&
      __builtin_cpu_supports ("avx512vl"))
    return &loops_avx512;
  if (__builtin_cpu_supports ("avx2") && __builtin_cpu_supports ("fma"))
    return &loops_avx2;
#endif
  return &loops_base;
}
