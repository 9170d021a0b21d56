/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Instructions of the matrix solver. A warp multiplies 16 rows of 16 numbers by
 * 8 columns; the lane 4 g + q has of
 *
 *   rows:    words of numbers 2 q, 2 q + 1 of the rows g and g + 8, then those
 *            of numbers 2 q + 8, 2 q + 9;
 *   columns: words of numbers 2 q, 2 q + 1, and 2 q + 8, 2 q + 9 of column g;
 *   result:  columns 2 q, 2 q + 1 of the row g, then of the row g + 8;
 *
 * so two results side by side lie as the rows of the next product. A sample
 * needs no conversion: a byte with 0 before it is a half precision number,
 * 2^-24 of its value. */
#pragma once

#include <cuda_fp16.h>

static __device__ __forceinline__ uint32_t
half_of (float x)
{
  return __half_as_ushort (__float2half_rn (x));
}

static __device__ __forceinline__ float
float_of (uint32_t half)
{
  return __half2float (__ushort_as_half ((unsigned short) half));
}

/* Adds the product to @sums. */
static __device__ __forceinline__ void
multiply (float sums[4], const uint32_t rows[4], uint32_t low, uint32_t high)
{
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(low),
      "r"(high));
#endif
}

/* The same with rows of 8 numbers: the first two words, and the first of the
 * column. */
static __device__ __forceinline__ void
multiply_half (float sums[4], uint32_t row0, uint32_t row1, uint32_t column)
{
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(row0), "r"(row1), "r"(column));
#endif
}

/* Whether lo <= sample < hi, of two samples: 1 or 0 in half precision. */
static __device__ __forceinline__ uint32_t
ones_between (uint32_t samples, uint32_t lo, uint32_t hi)
{
  uint32_t above, below;

  asm("set.ge.f16x2.f16x2 %0, %1, %2;" : "=r"(above) : "r"(samples), "r"(lo));
  asm("set.lt.u32.f16x2 %0, %1, %2;" : "=r"(below) : "r"(samples), "r"(hi));
  return above & below;
}

/* The signs of two numbers, each over 16 bits; NaN has none. */
static __device__ __forceinline__ uint32_t
signs_of (float x, float y)
{
  uint32_t signs;

  asm("prmt.b32 %0, %1, %2, 0xffbb;"
      : "=r"(signs)
      : "r"(__float_as_uint (x)), "r"(__float_as_uint (y)));
  return signs;
}

/* Samples that are accepted, others as 0. */
static __device__ __forceinline__ uint32_t
accepted (uint32_t samples, uint32_t ones)
{
  uint32_t product;

  asm("mul.f16x2 %0, %1, %2;" : "=r"(product) : "r"(samples), "r"(ones));
  return product;
}
