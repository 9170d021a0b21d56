/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fourier transforms of the usual lengths in registers, with the radices and
 * turns of plan_fft. Before and after a transform of N, thread j of N / E has
 * elements j + k N / E, k < E; between passes they change threads through
 * shared memory. */
#pragma once

#include "insarxcorr/cuda/insarxcorr-fft.cuh"

namespace insar
{

/* The pass after others whose radices' product is DONE. */
template <int N, int E, int DONE> struct Pass {
  static constexpr int REST = N / DONE;
  static constexpr int RADIX = REST % 8 == 0 ? 8 : REST % 4 == 0 ? 4 : 2;
  static constexpr int THREADS = N / E;
  static constexpr int EACH = E / RADIX; /* butterflies of a thread */

  /* Three of the seven turns of radix 8 are loaded; the others are products. */
  template <bool backward>
  static __device__ __forceinline__ void
  turn (const float2 *turns, uint32_t k, float2 *v)
  {
    float2 by[RADIX];

#pragma unroll
    for (int t = 1; t < RADIX; t *= 2)
      by[t] = turn_of<backward> (turns + DONE - 1, (t - 1) * DONE + k);
#pragma unroll
    for (int t = 3; t < RADIX; t++)
      if (t != 4)
        by[t] = multiply (by[t > 4 ? 4 : 2], by[t - (t > 4 ? 4 : 2)]);
#pragma unroll
    for (int t = 1; t < RADIX; t++)
      v[t] = multiply (v[t], by[t]);
  }

  template <bool backward>
  static __device__ __forceinline__ void
  compute (const float2 *turns, uint32_t j, float2 (&v)[E])
  {
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      float2 part[RADIX];

#pragma unroll
      for (int t = 0; t < RADIX; t++)
        part[t] = v[i + t * EACH];
      if (DONE > 1)
        turn<backward> (
            turns, (THREADS % DONE ? j + i * THREADS : j) % DONE, part);
      butterfly<RADIX, backward> (part);
#pragma unroll
      for (int t = 0; t < RADIX; t++)
        v[i + t * EACH] = part[t];
    }
  }

  template <typename Exchange>
  static __device__ __forceinline__ void
  scatter (const Exchange &x, uint32_t j, const float2 (&v)[E])
  {
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      uint32_t at = j + i * THREADS, k = at % DONE;

#pragma unroll
      for (int t = 0; t < RADIX; t++)
        x.template at<DONE> ((at - k) * RADIX + k + t * DONE) = v[i + t * EACH];
    }
  }

  template <typename Exchange>
  static __device__ __forceinline__ void
  gather (const Exchange &x, uint32_t j, float2 (&v)[E])
  {
#pragma unroll
    for (int k = 0; k < E; k++)
      v[k] = x.template at<DONE> (j + k * THREADS);
  }
};

/* All threads of @x call it. */
template <bool backward, int N, int E, int DONE = 1, typename Exchange>
static __device__ __forceinline__ void
transform_registers (
    const float2 *turns, const Exchange &x, uint32_t j, float2 (&v)[E])
{
  using P = Pass<N, E, DONE>;

  P::template compute<backward> (turns, j, v);
  if constexpr (DONE * P::RADIX < N) {
    x.sync (); /* what was exchanged before has been read */
    P::scatter (x, j, v);
    x.sync ();
    P::gather (x, j, v);
    transform_registers<backward, N, E, DONE * P::RADIX> (turns, x, j, v);
  }
}

/* Elements that a line of @n takes in shared memory, for either exchange. */
static __host__ __device__ constexpr int
exchange_length (int n)
{
  return n + n / 8;
}

/* A line of a warp. The gaps let each half of a warp reach all banks. */
struct LineExchange {
  float2 *line;

  template <int DONE>
  __device__ __forceinline__ float2 &
  at (uint32_t i) const
  {
    return line[DONE == 1 ? i + i / 16 : DONE == 8 ? i + i / 64 * 8 : i];
  }

  __device__ __forceinline__ void
  sync () const
  {
    __syncwarp ();
  }
};

/* One of @columns columns of a block, which are neighbours in memory. */
template <int columns> struct ColumnExchange {
  float2 *column;

  template <int DONE>
  __device__ __forceinline__ float2 &
  at (uint32_t i) const
  {
    return column[(i + i / 8) * columns];
  }

  __device__ __forceinline__ void
  sync () const
  {
    __syncthreads ();
  }
};

} // namespace insar
