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
  MOST_GROUPS = 8,        /* of a block's threads */
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
  return make_float2 (
      __fmaf_rn (y.x, x.x, y.y * x.y), __fmaf_rn (y.y, x.x, -(y.x * x.y)));
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
 * which share most of it.
 * @energy: NULL where nobody needs E */
static __device__ __forceinline__ void
window_sums (const Arguments &a, const float2 *s, const float *energy,
    uint32_t z, float4 *sums, float2 *energies)
{
  uint32_t n = a.n_depths, first, end, next_first, next_end;
  float3 sum = make_float3 (0, 0, 0), next;
  auto add = [&] (float3 *to, uint32_t i) {
    to->x += s[i].x;
    to->y += s[i].y;
    if (energy)
      to->z += energy[i];
  };

  if (a.axial == 3 && z > 0 && z + 2 < n) { /* the default, without loops */
    float4 own = *(const float4 *) (s + z);
    float2 own_energy =
        energy ? *(const float2 *) (energy + z) : make_float2 (0, 0);

    sum =
        make_float3 (own.x + own.z, own.y + own.w, own_energy.x + own_energy.y);
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
  *sums = make_float4 (sum.x, sum.y, next.x, next.y);
  *energies = make_float2 (sum.z, next.z);
}

static __device__ __forceinline__ void
put_sums (const Arguments &a, const float2 *s, const float *energy,
    uint32_t ascan, uint32_t z)
{
  size_t at = (size_t) ascan * a.row + z;
  float2 energies;

  window_sums (
      a, s, a.energy ? energy : nullptr, z, (float4 *) (a.sum + at), &energies);
  if (a.energy)
    *(float2 *) (a.energy + at) = energies;
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

/* Threads that share an A-scan: whole warps. */
struct Group {
  uint32_t index, n_threads; /* in its block, of the group */
  uint32_t thread;           /* this one */

  /* What one of them has written, all of them see. 0 is __syncthreads (). */
  __device__ __forceinline__ void
  wait (void) const
  {
    asm volatile("bar.sync %0, %1;"
                 :
                 : "r"(index + 1), "r"(n_threads)
                 : "memory");
  }
};

/* Of all products of each group of a block. */
template <uint32_t N> struct Bulk {
  static constexpr uint32_t VALUES = power_of_two (2 * N);

  float partial[REGISTER_THREADS / 32][VALUES];
  float2 turn[MOST_GROUPS][N];
};

static __device__ __forceinline__ void
add_if_near (float2 v, float size, float2 turn, bool all, float *re, float *im)
{
  if (all || __fmaf_rn (v.x, turn.x, v.y * turn.y) >= size) {
    *re += v.x;
    *im += v.y;
  }
}

/* Divided by the length of @v; @otherwise where that is 0. Scaled first: the
 * squares of large sums are not finite. */
static __device__ __forceinline__ float2
direction_of (float2 v, float2 otherwise)
{
  float largest = fmaxf (fabsf (v.x), fabsf (v.y));
  float x = share_of (v.x, largest), y = share_of (v.y, largest);
  float length = root_of (__fmaf_rn (x, x, y * y));

  return largest >= LEAST_SUM
             ? make_float2 (share_of (x, length), share_of (y, length))
             : otherwise;
}

/* cos and sin of the phase that most pixels have, of each of N pairs at once.
 * @products: P times two depths; 0 of pairs that are not there
 * @sizes: their absolute values */
template <uint32_t N, uint32_t P>
static __device__ __forceinline__ void
find_bulk (const Group &group, const float4 products[P][N],
    const float2 sizes[P][N], Bulk<N> &bulk, float2 turn[N])
{
  constexpr uint32_t VALUES = Bulk<N>::VALUES;
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = group.thread;
  uint32_t first = warp - group.thread / 32; /* warp of the group */
  float2 own = make_float2 (1, 0);           /* of product k */

#pragma unroll 1
  for (int round = 0; round < ROUNDS; round++) {
    float sums[VALUES] = {}, sum;

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
    if (lane % (32 / VALUES) == 0)
      bulk.partial[warp][lane / (32 / VALUES)] = sum;
    group.wait ();
    if (k < N) {
      float2 all = make_float2 (0, 0);
      float unit = round + 1 < ROUNDS ? 1 / cosine_of (round + 1) : 1;

      for (uint32_t i = first; i < first + group.n_threads / 32; i++) {
        all.x += bulk.partial[i][2 * k];
        all.y += bulk.partial[i][2 * k + 1];
      }
      own = direction_of (all, own);
      /* so that the next round compares with the size alone */
      bulk.turn[group.index][k] = make_float2 (own.x * unit, own.y * unit);
    }
    group.wait ();
#pragma unroll
    for (uint32_t i = 0; i < N; i++)
      turn[i] = bulk.turn[group.index][i];
  }
}

/* @powers: of the two depths of a repeat */
template <uint32_t MOST>
static __device__ __forceinline__ float2
powers_of (const float4 v[MOST], float2 powers[MOST])
{
  float2 sum = make_float2 (0, 0);

#pragma unroll
  for (uint32_t r = 0; r < MOST; r++) {
    powers[r] =
        make_float2 (power_of (first_of (v[r])), power_of (second_of (v[r])));
    sum.x += powers[r].x;
    sum.y += powers[r].y;
  }
  return sum;
}

/* The same, of samples as they are. Sums of powers that are small enough show
 * that all of their numbers count. */
template <uint32_t MOST>
static __device__ __forceinline__ float2
clean_powers_of (float4 v[MOST], float2 powers[MOST])
{
  const float most = IMK_OCTANGIO_LARGEST * IMK_OCTANGIO_LARGEST;
  float2 sum = powers_of<MOST> (v, powers);

  if (sum.x <= most && sum.y <= most)
    return sum;
#pragma unroll
  for (uint32_t r = 0; r < MOST; r++)
    v[r] = clean (v[r]);
  return powers_of<MOST> (v, powers);
}

static __device__ __forceinline__ float4
products_of (float4 x, float4 y)
{
  float2 first = product_of (first_of (x), first_of (y));
  float2 second = product_of (second_of (x), second_of (y));

  return make_float4 (first.x, first.y, second.x, second.y);
}

static __device__ __forceinline__ float2
roots_of (float2 powers)
{
  return make_float2 (root_of (powers.x), root_of (powers.y));
}

/* The products of two depths of repeats and their sizes, E, and the sum of the
 * powers, of samples @v as they are. */
template <uint32_t MOST>
static __device__ __forceinline__ void
multiply_repeats (const Arguments &a, float4 v[MOST], float4 products[MOST - 1],
    float2 sizes[MOST - 1], float2 *energy, float2 *sum)
{
  float2 powers[MOST], roots = make_float2 (0, 0), last = roots;

  *sum = clean_powers_of<MOST> (v, powers);
#pragma unroll
  for (uint32_t r = 0; r < MOST; r++) {
    float2 next = roots_of (powers[r]);

    if (r > 0) {
      products[r - 1] = products_of (v[r - 1], v[r]);
      sizes[r - 1] = make_float2 (roots.x * next.x, roots.y * next.y);
    }
    if (r + 1 == a.n_repeats)
      last = powers[r];
    roots = next;
  }
  /* the first and the last one are in one pair, the others in two */
  *energy = make_float2 (
      sum->x - (powers[0].x + last.x) / 2, sum->y - (powers[0].y + last.y) / 2);
}

/* The same of A-scans @v and @next, whose E nobody needs. */
template <uint32_t MOST>
static __device__ __forceinline__ void
multiply_ascans (float4 v[MOST], float4 next[MOST], bool is_next,
    float4 products[MOST], float2 sizes[MOST], float2 *sum)
{
  float2 powers[MOST], next_powers[MOST];
  float2 first = clean_powers_of<MOST> (v, powers);
  float2 second = clean_powers_of<MOST> (next, next_powers);

  *sum = is_next ? second : first;
#pragma unroll
  for (uint32_t r = 0; r < MOST; r++) {
    float2 x = roots_of (powers[r]), y = roots_of (next_powers[r]);

    products[r] = products_of (v[r], next[r]);
    sizes[r] = make_float2 (x.x * y.x, x.y * y.y);
  }
}

/* The sums of the products without the phases of the bulk motion, of depths of
 * the thread, before the window. */
template <uint32_t N, uint32_t P>
static __device__ __forceinline__ void
put_products (const Group &group, const float4 products[P][N],
    const float2 turn[N], uint32_t n_depths, float2 *s)
{
#pragma unroll
  for (uint32_t p = 0; p < P; p++) {
    uint32_t z = 2 * (group.thread + p * group.n_threads);
    float2 x = make_float2 (0, 0), y = x;

#pragma unroll
    for (uint32_t i = 0; i < N; i++) {
      add_turned (first_of (products[p][i]), turn[i], &x);
      add_turned (second_of (products[p][i]), turn[i], &y);
    }
    if (z < n_depths)
      *(float4 *) (s + z) = make_float4 (x.x, x.y, y.x, y.y);
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
  __shared__ Bulk<N> bulk;
  Group group = {0, blockDim.x, threadIdx.x};
  uint32_t n = a.n_depths, ascan = blockIdx.x;
  float2 *s = (float2 *) shared, turn[N];
  float *energies = (float *) (s + a.row);
  float4 products[P][N];
  float2 sizes[P][N];

#pragma unroll
  for (uint32_t p = 0; p < P; p++) {
    uint32_t z = 2 * (threadIdx.x + p * blockDim.x);
    uint32_t first = BETWEEN ? first_of_pair (a, ascan) : ascan;
    float2 energy = make_float2 (0, 0), sum;
    float4 v[MOST], next[MOST];

    load_raw<MOST, BETWEEN> (a, 0, a.n_repeats, first, z, v);
    if constexpr (BETWEEN) {
      load_raw<MOST, true> (a, 0, a.n_repeats, first + 1, z, next);
      multiply_ascans<MOST> (
          v, next, first < ascan, products[p], sizes[p], &sum);
    } else
      multiply_repeats<MOST> (a, v, products[p], sizes[p], &energy, &sum);
    if (z >= n)
      continue;
    *(float2 *) (energies + z) = energy;
    if (a.mean)
      *(float2 *) (a.mean + (size_t) ascan * a.row + z) =
          make_float2 (sum.x * a.share, sum.y * a.share);
  }
#pragma unroll
  for (uint32_t i = 0; i < N; i++)
    turn[i] = make_float2 (1, 0);
  if (a.bulk_motion)
    find_bulk<N, P> (group, products, sizes, bulk, turn);
  put_products<N, P> (group, products, turn, n, s);
  group.wait ();
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
    return a.scale * phase_of (sum.x, sum.y);
  x = share_of (sum.x, energy);
  y = share_of (sum.y, energy);
  return energy > 0 ? 1 - root_of (x * x + y * y) : 0;
}

/* The A-scans of a tile and of its windows, loaded at once. */
struct Rows {
  float2 sum[TILE_ASCANS + IMK_OCTANGIO_MAX_WINDOW - 1][TILE_DEPTHS];
  float energy[TILE_ASCANS + IMK_OCTANGIO_MAX_WINDOW - 1][TILE_DEPTHS];
};

static __device__ __forceinline__ void
load_rows (const Arguments &a, Rows &rows, uint32_t first, uint32_t end)
{
  uint32_t column = 2 * (threadIdx.x % TILE_PAIRS), z = tile_depth ();

#pragma unroll 2
  for (uint32_t i = threadIdx.x / TILE_PAIRS; first + i < end;
       i += TILE_THREADS / TILE_PAIRS) {
    size_t at = (size_t) (first + i) * a.row + z;

    if (z >= a.n_depths)
      break;
    *(float4 *) &rows.sum[i][column] = *(const float4 *) (a.sum + at);
    if (a.energy)
      *(float2 *) &rows.energy[i][column] = *(const float2 *) (a.energy + at);
  }
}

static __global__ void
__launch_bounds__ (TILE_THREADS) finish (const __grid_constant__ Arguments a)
{
  __shared__ Tile tile;
  __shared__ Rows rows;
  uint32_t first = blockIdx.y * TILE_ASCANS, z = tile_depth ();
  uint32_t ascan = first + threadIdx.x / TILE_PAIRS;
  uint32_t column = 2 * (threadIdx.x % TILE_PAIRS);
  uint32_t before = min ((a.lateral - 1) / 2, first); /* of the first row */
  float2 flow = make_float2 (0, 0), mean = flow;

  if (a.sum) {
    load_rows (a, rows, first - before,
        min (first + TILE_ASCANS + a.lateral / 2, a.n_ascans));
    __syncthreads ();
  }
  if (ascan < a.n_ascans && z < a.n_depths) {
    size_t at = (size_t) ascan * a.row + z;
    float2 energy = flow;
    float4 sum = make_float4 (0, 0, 0, 0);
    uint32_t from, end;

    if (a.mean)
      mean = *(const float2 *) (a.mean + at);
    range_of (ascan, a.lateral, a.n_ascans, &from, &end);
    for (uint32_t i = from; i < end && a.sum; i++) {
      uint32_t row = i + before - first;
      float4 v = *(const float4 *) &rows.sum[row][column];

      sum = make_float4 (sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
      if (a.energy) {
        energy.x += rows.energy[row][column];
        energy.y += rows.energy[row][column + 1];
      }
    }
    flow = a.sum ? make_float2 (flow_of_sum (a, first_of (sum), energy.x),
                       flow_of_sum (a, second_of (sum), energy.y))
                 : *(const float2 *) (a.energy + at); /* of bands */
  }
  put_tile (a, tile, first, flow, mean);
}
