/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Methods of pairs. A block has an A-scan: the products of its pairs, the phase
 * of the bulk motion from all of them, S and E of the window's depths. finish
 * adds those of the window's A-scans.
 *
 * register_pairs keeps the products in registers, and is for sets that fit;
 * pairs keeps them in shared or global memory, for any size. */
#pragma once

#include "octangio/cuda/octangio-pixels.cuh"

enum {
  PAIR_THREADS = 128,
  PAIR_WORDS = 10, /* of pairs, for a depth: last, product, S, E, mean, bulk */
  REGISTER_THREADS = 512, /* at most */
};

/* y conj (x) */
static __device__ __forceinline__ float2
product_of (float2 x, float2 y)
{
  return make_float2 (
      __fmaf_rn (y.x, x.x, y.y * x.y), __fmaf_rn (y.y, x.x, -(y.x * x.y)));
}

/* The same of two depths. */
static __device__ __forceinline__ float4
products_of (float4 x, float4 y)
{
  float2 p = product_of (first_of (x), first_of (y));
  float2 q = product_of (second_of (x), second_of (y));

  return make_float4 (p.x, p.y, q.x, q.y);
}

static __device__ __forceinline__ void
add_turned (float2 v, float2 turn, float2 *sum)
{
  sum->x = __fmaf_rn (v.x, turn.x, __fmaf_rn (v.y, turn.y, sum->x));
  sum->y = __fmaf_rn (v.y, turn.x, __fmaf_rn (-v.x, turn.y, sum->y));
}

/* The A-scans of a pair of them: the last one has the pair before it. */
static __device__ __forceinline__ uint32_t
first_of_pair (const Arguments &a, uint32_t ascan)
{
  return ascan + 1 < a.n_ascans ? ascan : ascan - 1;
}

/* S and E of the depths of the window, of @z, which is even, and of @z + 1,
 * which share most of it. */
static __device__ __forceinline__ void
put_sums (const Arguments &a, const float2 *s, const float *energy,
    uint32_t ascan, uint32_t z)
{
  uint32_t n = a.n_depths, first, end, next_first, next_end;
  size_t at = (size_t) ascan * a.row + z;
  float3 sum = make_float3 (0, 0, 0), next;
  auto add = [&] (float3 *to, uint32_t i) {
    to->x += s[i].x;
    to->y += s[i].y;
    if (a.energy)
      to->z += energy[i];
  };

  if (a.axial == 3 && z > 0 && z + 2 < n) { /* the default, without loops */
    add (&sum, z);
    add (&sum, z + 1);
    next = sum;
    add (&sum, z - 1);
    add (&next, z + 2);
  } else {
    range_of (z, a.axial, n, &first, &end);
    range_of (z + 1, a.axial, n, &next_first, &next_end);
    for (uint32_t i = next_first; i < end; i++)
      add (&sum, i);
    next = sum;
    for (uint32_t i = first; i < min (next_first, end); i++)
      add (&sum, i);
    for (uint32_t i = max (end, next_first); i < next_end; i++)
      add (&next, i);
  }
  *(float4 *) (a.sum + at) = make_float4 (sum.x, sum.y, next.x, next.y);
  if (a.energy)
    *(float2 *) (a.energy + at) = make_float2 (sum.z, next.z);
}

/* ------------------------------------------------------------------------
 * The bulk motion. */

/* 1 / (2 (1 - cos L)) of a round; 0 of the first, whose weights are 1 */
static __device__ __forceinline__ float
share_of_round (int round)
{
  const float shares[] = {0, 1.70710678f, 6.56853559f, 26.0217172f};

  return shares[round];
}

/* How many sums of some depths each there are. */
static __host__ __device__ __forceinline__ uint32_t
bulk_sums (uint32_t n_depths)
{
  return (n_depths + IMK_OCTANGIO_BULK_DEPTHS - 1) / IMK_OCTANGIO_BULK_DEPTHS;
}

/* One instruction each from compute capability 8.0 on. */
static __device__ __forceinline__ int
sum_of_warp (int v)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync (~0u, v);
#else
  for (int other = 16; other > 0; other /= 2)
    v += __shfl_xor_sync (~0u, v, other);
  return v;
#endif
}

/* Of numbers from 0 on, which have the order of their bits. */
static __device__ __forceinline__ float
largest_of_warp (float v)
{
#if __CUDA_ARCH__ >= 800
  return __uint_as_float (__reduce_max_sync (~0u, __float_as_uint (v)));
#else
  for (int other = 16; other > 0; other /= 2)
    v = fmaxf (v, __shfl_xor_sync (~0u, v, other));
  return v;
#endif
}

static __device__ __forceinline__ float2
unit_of (float2 v)
{
  float length = rsqrtf (fmaxf (power_of (v), LEAST_SUM));

  return make_float2 (v.x * length, v.y * length);
}

/* Adds @v with the weight of imk/octangio.h: 1 - cos d, which would lose
 * digits, is half the square of the chord of d. */
static __device__ __forceinline__ void
add_near (float2 v, float2 unit, float share, float2 turn, float2 *sum)
{
  float2 d = make_float2 (unit.x - turn.x, unit.y - turn.y);
  float weight = fmaxf (__fmaf_rn (-share, power_of (d), 1), 0);

  sum->x = __fmaf_rn (weight, v.x, sum->x);
  sum->y = __fmaf_rn (weight, v.y, sum->y);
}

/* cos and sin of the phase that most depths have, to all lanes of a warp.
 * Integers are added in one step; they are @n to 2^30 of the largest sum.
 * @add: the lane's part of a round, of @n sums that are at most 1 */
template <typename Add>
static __device__ __forceinline__ float2
find_phase (uint32_t n, Add add)
{
  float unit = 0x1p30f / (float) n;
  float2 turn = make_float2 (1, 0);

#pragma unroll
  for (int round = 0; round < IMK_OCTANGIO_BULK_ROUNDS; round++) {
    float2 sum = add (share_of_round (round), turn);
    float x = (float) sum_of_warp (__float2int_rn (sum.x * unit));
    float y = (float) sum_of_warp (__float2int_rn (sum.y * unit));

    if (x != 0 || y != 0)
      turn = unit_of (make_float2 (x, y));
  }
  return turn;
}

/* The same of any number of sums.
 * @re, @im: [@n] sums of IMK_OCTANGIO_BULK_DEPTHS depths each */
static __device__ __forceinline__ float2
find_bulk (const float *re, const float *im, uint32_t n)
{
  uint32_t lane = threadIdx.x % 32;
  float largest = 0, scale;

  for (uint32_t i = lane; i < n; i += 32)
    largest = fmaxf (largest, fmaxf (fabsf (re[i]), fabsf (im[i])));
  scale = share_of (1, largest_of_warp (largest));
  return find_phase (n, [&] (float share, float2 turn) {
    float2 sum = make_float2 (0, 0);

#pragma unroll 4
    for (uint32_t i = lane; i < n; i += 32) {
      float2 v = make_float2 (re[i] * scale, im[i] * scale);

      add_near (v, unit_of (v), share, turn, &sum);
    }
    return sum;
  });
}

/* ------------------------------------------------------------------------
 * In registers. */

/* The products of two depths, E, and the mean power times N. */
template <uint32_t MOST, uint32_t N, bool BETWEEN>
static __device__ __forceinline__ void
multiply (const Arguments &a, uint32_t ascan, uint32_t z, float4 products[N],
    float2 *energy, float2 *mean)
{
  float4 v[MOST], next[MOST];

  *energy = *mean = make_float2 (0, 0);
  if (BETWEEN) {
    load_pairs<MOST, true> (a, first_of_pair (a, ascan), z, v);
    load_pairs<MOST, true> (a, first_of_pair (a, ascan) + 1, z, next);
  } else
    load_pairs<MOST> (a, ascan, z, v);
#pragma unroll
  for (uint32_t i = 0; i < MOST; i++) {
    float4 w = BETWEEN && first_of_pair (a, ascan) < ascan ? next[i] : v[i];

    mean->x += power_of (first_of (w));
    mean->y += power_of (second_of (w));
  }
#pragma unroll
  for (uint32_t i = 0; i < N; i++) {
    float4 x = v[i], y = BETWEEN ? next[i] : v[i + !BETWEEN];

    products[i] = products_of (x, y);
    if (!BETWEEN && i + 1 < a.n_repeats) {
      energy->x += (power_of (first_of (x)) + power_of (first_of (y))) / 2;
      energy->y += (power_of (second_of (x)) + power_of (second_of (y))) / 2;
    }
  }
}

/* The sum over the depths of four lanes, which have two each. */
static __device__ __forceinline__ float2
add_neighbours (float4 v)
{
  float2 sum = make_float2 (v.x + v.z, v.y + v.w);

#pragma unroll
  for (uint32_t mask = 1; mask < IMK_OCTANGIO_BULK_DEPTHS / 2; mask *= 2) {
    sum.x += __shfl_xor_sync (~0u, sum.x, mask);
    sum.y += __shfl_xor_sync (~0u, sum.y, mask);
  }
  return sum;
}

/* MOST: repeats; P: times two depths of a thread; BETWEEN: A-scans, whose E
 * nobody needs. */
template <uint32_t MOST, uint32_t P, bool BETWEEN>
static __global__ void
__launch_bounds__ (REGISTER_THREADS)
    register_pairs (const __grid_constant__ Arguments a)
{
  constexpr uint32_t N = BETWEEN ? MOST : MOST - 1; /* products */
  extern __shared__ float shared[];
  uint32_t n = a.n_depths, ascan = blockIdx.x;
  uint32_t lane = threadIdx.x % 32, n_bulk = bulk_sums (n);
  float2 *s = (float2 *) shared;
  float *energies = (float *) (s + a.row), *bulk = energies + a.row;
  float4 products[P][N];
  __shared__ float2 turns[N];

  wait_for_last_kernel ();
  let_next_kernel_begin ();
#pragma unroll
  for (uint32_t p = 0; p < P; p++) {
    uint32_t z = 2 * (threadIdx.x + p * blockDim.x);
    float2 energy, mean;

    multiply<MOST, N, BETWEEN> (a, ascan, z, products[p], &energy, &mean);
#pragma unroll
    for (uint32_t i = 0; i < N; i++) {
      float2 sum = add_neighbours (products[p][i]);

      if (lane % 4 == 0 && z < n) {
        bulk[2 * i * n_bulk + z / IMK_OCTANGIO_BULK_DEPTHS] = sum.x;
        bulk[(2 * i + 1) * n_bulk + z / IMK_OCTANGIO_BULK_DEPTHS] = sum.y;
      }
    }
    if (z >= n)
      continue;
    *(float2 *) (energies + z) = energy;
    if (a.mean)
      *(float2 *) (a.mean + (size_t) ascan * a.row + z) =
          make_float2 (mean.x * a.share, mean.y * a.share);
  }
  __syncthreads ();
  for (uint32_t i = threadIdx.x / 32; i < N; i += blockDim.x / 32) {
    float2 turn = make_float2 (1, 0);

    if (a.bulk_motion)
      turn = find_bulk (
          bulk + 2 * i * n_bulk, bulk + (2 * i + 1) * n_bulk, n_bulk);
    if (lane == 0)
      turns[i] = turn;
  }
  __syncthreads ();
#pragma unroll
  for (uint32_t p = 0; p < P; p++) {
    uint32_t z = 2 * (threadIdx.x + p * blockDim.x);
    float2 x = make_float2 (0, 0), y = x;

#pragma unroll
    for (uint32_t i = 0; i < N; i++) {
      add_turned (first_of (products[p][i]), turns[i], &x);
      add_turned (second_of (products[p][i]), turns[i], &y);
    }
    if (z < n)
      *(float4 *) (s + z) = make_float4 (x.x, x.y, y.x, y.y);
  }
  __syncthreads ();
#pragma unroll
  for (uint32_t p = 0; p < P; p++) {
    uint32_t z = 2 * (threadIdx.x + p * blockDim.x);

    if (z < n)
      put_sums (a, s, energies, ascan, z);
  }
}

/* ------------------------------------------------------------------------
 * Of any size. */

static __device__ __forceinline__ float *
work_of (const Arguments &a, float *shared, uint32_t n_words)
{
  return a.work ? a.work + (size_t) blockIdx.x * n_words * a.n_depths : shared;
}

/* Depths threadIdx.x, ... are the thread's own until the window. */
static __global__ void
pairs (const __grid_constant__ Arguments a)
{
  extern __shared__ float shared[];
  __shared__ float2 turn;
  uint32_t n = a.n_depths, n_bulk = bulk_sums (n);
  uint32_t n_pairs = a.between_ascans ? a.n_repeats : a.n_repeats - 1;
  float2 *last = (float2 *) work_of (a, shared, PAIR_WORDS);
  float2 *products = last + n, *s = products + n;
  float *energy = (float *) (s + n), *mean = energy + n;
  float *re = mean + n, *im = re + n_bulk;

  if (threadIdx.x == 0)
    turn = make_float2 (1, 0);
  wait_for_last_kernel ();
  let_next_kernel_begin ();

  for (uint32_t ascan = blockIdx.x; ascan < a.n_ascans; ascan += gridDim.x) {
    uint32_t first = a.between_ascans ? first_of_pair (a, ascan) : ascan;

    for (uint32_t z = threadIdx.x; z < n; z += PAIR_THREADS) {
      s[z] = make_float2 (0, 0);
      energy[z] = mean[z] = 0;
      if (!a.between_ascans) {
        last[z] = value_at (a, 0, ascan, z);
        mean[z] = power_of (last[z]);
      }
    }
    for (uint32_t k = 0; k < n_pairs; k++) {
#pragma unroll 4
      for (uint32_t z = threadIdx.x; z < n; z += PAIR_THREADS) {
        float2 x = a.between_ascans ? value_at (a, k, first, z) : last[z];
        float2 y = a.between_ascans ? value_at (a, k, first + 1, z)
                                    : value_at (a, k + 1, ascan, z);

        products[z] = product_of (x, y);
        energy[z] += (power_of (x) + power_of (y)) / 2;
        mean[z] += power_of (a.between_ascans && first == ascan ? x : y);
        last[z] = y;
      }
      __syncthreads ();
      for (uint32_t i = threadIdx.x; i < n_bulk && a.bulk_motion;
           i += PAIR_THREADS) {
        uint32_t z = i * IMK_OCTANGIO_BULK_DEPTHS;
        uint32_t end = min (z + IMK_OCTANGIO_BULK_DEPTHS, n);
        float2 sum = make_float2 (0, 0);

        for (; z < end; z++) {
          sum.x += products[z].x;
          sum.y += products[z].y;
        }
        re[i] = sum.x;
        im[i] = sum.y;
      }
      __syncthreads ();
      if (a.bulk_motion && threadIdx.x < 32) {
        float2 v = find_bulk (re, im, n_bulk);

        if (threadIdx.x == 0)
          turn = v;
      }
      __syncthreads ();
      for (uint32_t z = threadIdx.x; z < n; z += PAIR_THREADS)
        add_turned (products[z], turn, &s[z]);
    }
    __syncthreads ();
    for (uint32_t z = 2 * threadIdx.x; z < n; z += 2 * PAIR_THREADS)
      put_sums (a, s, energy, ascan, z);
    for (uint32_t z = threadIdx.x; z < n && a.mean; z += PAIR_THREADS)
      a.mean[(size_t) ascan * a.row + z] = mean[z] * a.share;
    __syncthreads (); /* before the next A-scan takes the place */
  }
}

/* ------------------------------------------------------------------------
 * The window's A-scans, and the image. */

/* arg v, to 1e-6: a polynomial of the tangent of the angle to the nearer axis,
 * fitted to 3e-7. 0 of 0. */
static __device__ __forceinline__ float
phase_of (float2 v)
{
  const float pi = 3.14159265f;
  float x = fabsf (v.x), y = fabsf (v.y);
  float t = share_of (fminf (x, y), fmaxf (x, y)), u = t * t;
  float phase = 0.00681177931f;

  phase = __fmaf_rn (phase, u, -0.0336041757f);
  phase = __fmaf_rn (phase, u, 0.0796236171f);
  phase = __fmaf_rn (phase, u, -0.132333388f);
  phase = __fmaf_rn (phase, u, 0.198078146f);
  phase = __fmaf_rn (phase, u, -0.333173679f);
  phase = __fmaf_rn (phase, u, 0.999996112f) * t;
  phase = y > x ? pi / 2 - phase : phase;
  return copysignf (v.x < 0 ? pi - phase : phase, v.y);
}

static __device__ __forceinline__ float
flow_of_sum (const Arguments &a, float2 sum, float energy)
{
  float x, y;

  if (a.method == IMK_OCTANGIO_DOPPLER)
    return a.scale * phase_of (sum);
  x = share_of (sum.x, energy);
  y = share_of (sum.y, energy);
  return energy > 0 ? 1 - root_of (x * x + y * y) : 0;
}

static __global__ void
__launch_bounds__ (TILE_THREADS) finish (const __grid_constant__ Arguments a)
{
  __shared__ Tile tile;
  uint32_t first = blockIdx.y * TILE_ASCANS, z = tile_depth ();
  uint32_t ascan = first + threadIdx.x / TILE_PAIRS;
  float2 flow = make_float2 (0, 0), mean = flow;

  wait_for_last_kernel ();
  let_next_kernel_begin ();
  if (ascan < a.n_ascans && z < a.n_depths) {
    size_t at = (size_t) ascan * a.row + z;
    float4 sum = make_float4 (0, 0, 0, 0);
    float2 energy = flow;
    uint32_t from, end;

    if (a.mean)
      mean = *(const float2 *) (a.mean + at);
    range_of (ascan, a.lateral, a.n_ascans, &from, &end);
#pragma unroll 3
    for (uint32_t i = from; i < end && a.sum; i++) {
      size_t of_ascan = (size_t) i * a.row + z;
      float4 v = *(const float4 *) (a.sum + of_ascan);

      sum = make_float4 (sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
      if (a.energy) {
        float2 e = *(const float2 *) (a.energy + of_ascan);

        energy = make_float2 (energy.x + e.x, energy.y + e.y);
      }
    }
    flow = a.sum ? make_float2 (flow_of_sum (a, first_of (sum), energy.x),
                       flow_of_sum (a, second_of (sum), energy.y))
                 : *(const float2 *) (a.energy + at); /* of bands */
  }
  put_tile (a, tile, first, flow, mean);
}
