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
  PAIR_WORDS = 8,         /* of pairs, for a depth: last, product, S, E, mean */
  REGISTER_THREADS = 512, /* at most */
};

/* of find_bulk: all, then those within pi / 4, pi / 8 and pi / 16 */
enum { ROUNDS = 4 };

/* The cosine of the limit of a round after the first one. */
static __device__ __forceinline__ float
cosine_of (int round)
{
  return round == 1 ? 0.70710678f : round == 2 ? 0.92387953f : 0.98078528f;
}

/* y conj (x) */
static __device__ __forceinline__ float2
product_of (float2 x, float2 y)
{
  return make_float2 (y.x * x.x + y.y * x.y, y.y * x.x - y.x * x.y);
}

static __device__ __forceinline__ void
add_turned (float2 v, float2 turn, float2 *sum)
{
  sum->x += v.x * turn.x + v.y * turn.y;
  sum->y += v.y * turn.x - v.x * turn.y;
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
 * In registers. */

/* The least power of two that is at least @n. */
static constexpr uint32_t
power_of_two (uint32_t n)
{
  uint32_t p = 1;

  while (p < n)
    p *= 2;
  return p;
}

/* Sums of N values over a warp, N a power of two up to 32. Halves of the warp
 * share the values, so that there are about N steps, not 5 N: lane k has the
 * sum of value k / (32 / N). */
template <uint32_t N>
static __device__ __forceinline__ float
add_warp (float v[N])
{
  uint32_t mask = 16;

#pragma unroll
  for (uint32_t half = N / 2; half > 0; half /= 2, mask /= 2)
#pragma unroll
    for (uint32_t i = 0; i < half; i++) {
      bool is_upper = threadIdx.x & mask;
      float mine = is_upper ? v[i + half] : v[i];
      float other = is_upper ? v[i] : v[i + half];

      v[i] = mine + __shfl_xor_sync (~0u, other, mask);
    }
#pragma unroll
  for (; mask > 0; mask /= 2)
    v[0] += __shfl_xor_sync (~0u, v[0], mask);
  return v[0];
}

static __device__ __forceinline__ void
add_if_near (float2 v, float size, float2 turn, bool all, float *re, float *im)
{
  if (all || v.x * turn.x + v.y * turn.y >= size) {
    *re += v.x;
    *im += v.y;
  }
}

/* cos and sin of the phase that most pixels have, of each of N pairs at once.
 * Warps leave their sums in two places in turns, so that one barrier a round is
 * enough; then each warp adds up all of them for itself. Lane 2 i has the real
 * part of the sum of pair i, and lane 2 i + 1 the imaginary part.
 * @products: P times two depths; 0 of pairs that are not there
 * @sizes: their absolute values */
template <uint32_t N, uint32_t P, uint32_t VALUES = power_of_two (2 * N)>
static __device__ __forceinline__ void
find_bulk (
    const float4 products[P][N], const float2 sizes[P][N], float2 turn[N])
{
  constexpr uint32_t WARPS_A_STEP = 32 / VALUES;
  __shared__ float partial[2][REGISTER_THREADS / 32][VALUES];
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float own = lane % 2 ? 0 : 1;
  bool is_found = true;

#pragma unroll
  for (int round = 0; round < ROUNDS; round++) {
    /* so that the next round compares with the size alone */
    float unit = round + 1 < ROUNDS ? 1 / cosine_of (round + 1) : 1;
    float sums[VALUES] = {}, sum, other, larger;

#pragma unroll
    for (uint32_t i = 0; i < N; i++)
#pragma unroll
      for (uint32_t p = 0; p < P; p++) {
        add_if_near (first_of (products[p][i]), sizes[p][i].x, turn[i],
            round == 0, &sums[2 * i], &sums[2 * i + 1]);
        add_if_near (second_of (products[p][i]), sizes[p][i].y, turn[i],
            round == 0, &sums[2 * i], &sums[2 * i + 1]);
      }
    sum = add_warp<VALUES> (sums);
    if (lane % WARPS_A_STEP == 0)
      partial[round % 2][warp][lane / WARPS_A_STEP] = sum;
    __syncthreads ();
    sum = 0;
#pragma unroll
    for (uint32_t i = 0; i < REGISTER_THREADS / 32; i += WARPS_A_STEP)
      if (i + lane / VALUES < blockDim.x / 32)
        sum += partial[round % 2][i + lane / VALUES][lane % VALUES];
#pragma unroll
    for (uint32_t mask = VALUES; mask < 32; mask *= 2)
      sum += __shfl_xor_sync (~0u, sum, mask);
    other = __shfl_xor_sync (~0u, sum, 1);
    larger = fmaxf (fabsf (sum), fabsf (other));
    is_found = is_found && larger > 0;
    if (is_found) { /* squares of what is at most 1 are numbers */
      float x = sum / larger, y = other / larger;

      own = x * rsqrtf (x * x + y * y);
    }
#pragma unroll
    for (uint32_t i = 0; i < N; i++)
      turn[i] = make_float2 (__shfl_sync (~0u, own * unit, 2 * i),
          __shfl_sync (~0u, own * unit, 2 * i + 1));
  }
}

/* The products of two depths and their sizes, E, and the mean power times N. */
template <uint32_t MOST, uint32_t N, bool BETWEEN>
static __device__ __forceinline__ void
multiply (const Arguments &a, uint32_t ascan, uint32_t z, float4 products[N],
    float2 sizes[N], float2 *energy, float2 *mean)
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
    float2 p = product_of (first_of (x), first_of (y));
    float2 q = product_of (second_of (x), second_of (y));
    float2 power_x =
        make_float2 (power_of (first_of (x)), power_of (second_of (x)));
    float2 power_y =
        make_float2 (power_of (first_of (y)), power_of (second_of (y)));

    products[i] = make_float4 (p.x, p.y, q.x, q.y);
    sizes[i] = make_float2 (root_of (power_x.x) * root_of (power_y.x),
        root_of (power_x.y) * root_of (power_y.y));
    if (!BETWEEN && i + 1 < a.n_repeats) {
      energy->x += (power_x.x + power_y.x) / 2;
      energy->y += (power_x.y + power_y.y) / 2;
    }
  }
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
  float2 *s = (float2 *) shared, turn[N];
  float *energies = (float *) (s + a.row);
  float4 products[P][N];
  float2 sizes[P][N];

#pragma unroll
  for (uint32_t p = 0; p < P; p++) {
    uint32_t z = 2 * (threadIdx.x + p * blockDim.x);
    float2 energy, mean;

    multiply<MOST, N, BETWEEN> (
        a, ascan, z, products[p], sizes[p], &energy, &mean);
    if (z >= n)
      continue;
    *(float2 *) (energies + z) = energy;
    if (a.mean)
      *(float2 *) (a.mean + (size_t) ascan * a.row + z) =
          make_float2 (mean.x * a.share, mean.y * a.share);
  }
#pragma unroll
  for (uint32_t i = 0; i < N; i++)
    turn[i] = make_float2 (1, 0);
  if (a.bulk_motion)
    find_bulk<N, P> (products, sizes, turn);
#pragma unroll
  for (uint32_t p = 0; p < P; p++) {
    uint32_t z = 2 * (threadIdx.x + p * blockDim.x);
    float2 x = make_float2 (0, 0), y = x;

#pragma unroll
    for (uint32_t i = 0; i < N; i++) {
      add_turned (first_of (products[p][i]), turn[i], &x);
      add_turned (second_of (products[p][i]), turn[i], &y);
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

/* The sum of the block, in all its threads, which must all call it. Two sets of
 * partial sums in turns make one barrier enough. */
struct Adder {
  float2 (*partial)[PAIR_THREADS / 32];
  uint32_t turn;

  __device__ __forceinline__ float2
  add (float2 v)
  {
    float2 sum = make_float2 (0, 0);
    float values[] = {v.x, v.y}, mine = add_warp<2> (values);

    if (threadIdx.x % 32 == 0)
      partial[turn][threadIdx.x / 32].x = mine;
    if (threadIdx.x % 32 == 16)
      partial[turn][threadIdx.x / 32].y = mine;
    __syncthreads ();
    for (uint32_t i = 0; i < PAIR_THREADS / 32; i++) {
      sum.x += partial[turn][i].x;
      sum.y += partial[turn][i].y;
    }
    turn ^= 1;
    return sum;
  }
};

static __device__ __forceinline__ float2
find_bulk (const float2 *products, uint32_t n, Adder &adder)
{
  float2 turn = make_float2 (1, 0);

  for (int round = 0; round < ROUNDS; round++) {
    float2 sum = make_float2 (0, 0);
    float length;

    for (uint32_t z = threadIdx.x; z < n; z += PAIR_THREADS) {
      float2 v = products[z];

      add_if_near (v, cosine_of (round) * hypotf (v.x, v.y), turn, round == 0,
          &sum.x, &sum.y);
    }
    sum = adder.add (sum);
    length = hypotf (sum.x, sum.y);
    if (!(length > 0))
      break;
    turn = make_float2 (sum.x / length, sum.y / length);
  }
  return turn;
}

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
  __shared__ float2 partial[2][PAIR_THREADS / 32];
  uint32_t n = a.n_depths;
  uint32_t n_pairs = a.between_ascans ? a.n_repeats : a.n_repeats - 1;
  float2 *last = (float2 *) work_of (a, shared, PAIR_WORDS);
  float2 *products = last + n, *s = products + n;
  float *energy = (float *) (s + n), *mean = energy + n;
  Adder adder = {partial, 0};

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
      float2 turn = make_float2 (1, 0);

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
      if (a.bulk_motion)
        turn = find_bulk (products, n, adder);
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

static __device__ __forceinline__ float
flow_of_sum (const Arguments &a, float2 sum, float energy)
{
  float x, y;

  if (a.method == IMK_OCTANGIO_DOPPLER)
    return a.scale * atan2f (sum.y, sum.x);
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
