/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only: samples as float32 without conversions. The bits of an
 * integer n below 2^23 are those of the float n 2^-149. A product of it with
 * 2^k w rounds as that with w does, so a whole formula may be computed with the
 * factor 2^(k - 149). Towards zero, a last product with 2^-k leaves an integer.
 */
#pragma once

#include <type_traits>

#include "core/cuda/cuda-launch.h"

/* Samples that are read or written at once. */
constexpr int SMOOTH_QUAD = 4;

/* The channels of a quad that count: all, or samples of any channel. */
constexpr int EVERY = 15, SOME = 0;

#define TINY 0x1p-149f

/* Four samples. */
template <typename Sample>
using Quad = std::conditional_t<sizeof (Sample) == 1, uint32_t, uint2>;

/* Sample @i of a quad, times TINY */
static __device__ float
get_tiny (uint32_t quad, int i)
{
  return __uint_as_float (__byte_perm (quad, 0, 0x4440 | i));
}

static __device__ float
get_tiny (uint2 quad, int i)
{
  return __uint_as_float (
      __byte_perm (i < 2 ? quad.x : quad.y, 0, i % 2 ? 0x4432 : 0x4410));
}

/* The quad of @v, clamped to the range of the type. */
static __device__ uint32_t
clamp_quad (const int32_t v[SMOOTH_QUAD], uint32_t)
{
  uint32_t high, all;

  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;"
      : "=r"(high)
      : "r"(v[3]), "r"(v[2]));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;"
      : "=r"(all)
      : "r"(v[1]), "r"(v[0]), "r"(high));
  return all;
}

static __device__ uint2
clamp_quad (const int32_t v[SMOOTH_QUAD], uint2)
{
  uint2 all;

  asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(all.x) : "r"(v[1]), "r"(v[0]));
  asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(all.y) : "r"(v[3]), "r"(v[2]));
  return all;
}

/* clamp (floor (v + s L + 0.5)) of the samples @KEPT of a quad, others 0.
 * @change: s L times TINY @scale, a power of 2 */
template <int KEPT, typename Whole>
static __device__ Whole
add_change (Whole quad, const float change[SMOOTH_QUAD], float scale)
{
  int32_t values[SMOOTH_QUAD] = {};

#pragma unroll
  for (int i = 0; i < SMOOTH_QUAD; i++)
    if (KEPT == SOME || KEPT >> i & 1) {
      /* v + 0.5 is exact in one step */
      const float base =
          __fmaf_rn (get_tiny (quad, i), scale, 0.5f * scale * TINY);

      values[i] = __float_as_int (
          __fmul_rz (__fadd_rn (change[i], base), 1.0f / scale));
    }
  return clamp_quad (values, quad);
}
