/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CPU backend for one instruction set, included by shcentroid-cpu.c once
 * for each:
 * ISA_NAME(x): x with a suffix for it
 * VECTOR_SIZE: bytes of its registers; the compiler takes longer vectors apart
 *   lane by lane
 * TARGET: the function attribute that allows it */

#define FUNCTION TARGET static
#define INLINE TARGET static inline __attribute__ ((always_inline))

/* @n pairs. */
FUNCTION void
ISA_NAME (store_f32) (float *restrict to, const double *restrict x,
    const double *restrict y, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    to[2 * i] = (float) x[i];
    to[2 * i + 1] = (float) y[i];
  }
}

#define SAMPLE uint8_t
#define LANE uint16_t
#define SIGNED_LANE int16_t
#define SUM uint32_t
#define SIGNED_SUM int32_t
#define NAME(x) ISA_NAME (x##_u8_u32)
#include "shcentroid/shcentroid-cpu-template.h"

#define SAMPLE uint8_t
#define LANE uint16_t
#define SIGNED_LANE int16_t
#define SUM uint64_t
#define SIGNED_SUM int64_t
#define NAME(x) ISA_NAME (x##_u8_u64)
#include "shcentroid/shcentroid-cpu-template.h"

#define SAMPLE uint16_t
#define LANE uint32_t
#define SIGNED_LANE int32_t
#define SUM uint32_t
#define SIGNED_SUM int32_t
#define NAME(x) ISA_NAME (x##_u16_u32)
#include "shcentroid/shcentroid-cpu-template.h"

#define SAMPLE uint16_t
#define LANE uint32_t
#define SIGNED_LANE int32_t
#define SUM uint64_t
#define SIGNED_SUM int64_t
#define NAME(x) ISA_NAME (x##_u16_u64)
#include "shcentroid/shcentroid-cpu-template.h"

#include "shcentroid/shcentroid-chain-cpu.h"
#include "shcentroid/shcentroid-correlation-cpu.h"

static const Functions ISA_NAME (functions)[] = {
    {ISA_NAME (measure_tile_u8_u32), ISA_NAME (measure_wide_cell_u8_u32),
        ISA_NAME (measure_chain), ISA_NAME (measure_match),
        ISA_NAME (take_template)},
    {ISA_NAME (measure_tile_u8_u64), ISA_NAME (measure_wide_cell_u8_u64),
        ISA_NAME (measure_chain), ISA_NAME (measure_match),
        ISA_NAME (take_template)},
    {ISA_NAME (measure_tile_u16_u32), ISA_NAME (measure_wide_cell_u16_u32),
        ISA_NAME (measure_chain), ISA_NAME (measure_match),
        ISA_NAME (take_template)},
    {ISA_NAME (measure_tile_u16_u64), ISA_NAME (measure_wide_cell_u16_u64),
        ISA_NAME (measure_chain), ISA_NAME (measure_match),
        ISA_NAME (take_template)},
};

#undef FUNCTION
#undef INLINE
#undef ISA_NAME
#undef VECTOR_SIZE
#undef TARGET
