/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan/octbscan-lanes.h"

#include <string.h>

/* One binary for all x86-64; elsewhere the compiler has the vector units that
 * it was told of. */
#define ISA_NAME(x) x##_base
#define TARGET
#include "octbscan/octbscan-lanes-isa.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_X86_ISAS 1

#define ISA_NAME(x) x##_avx2
#define TARGET __attribute__ ((target ("avx2,fma")))
#include "octbscan/octbscan-lanes-isa.h"

#define ISA_NAME(x) x##_avx512
#define TARGET \
  __attribute__ ((target ("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")))
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
