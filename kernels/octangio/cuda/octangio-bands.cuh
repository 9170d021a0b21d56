/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decorrelation of bands. tiled_bands<B, S> is for the numbers of bands and the
 * depth scales that it was compiled for; bands is for any, and leaves its
 * result to finish. */
#pragma once

#include "octangio/cuda/octangio-pairs.cuh"

enum {
  BAND_THREADS = 256,
  BAND_WORDS = 6,   /* of bands, beside a word a band */
  BAND_ASCANS = 8,  /* of a block of tiled_bands, a warp each */
  BAND_DEPTHS = 64, /* of the same: two of a thread */
};

/* ------------------------------------------------------------------------
 * A filter bank. With L = B S samples from one band to the next in phase, the
 * filters of all bands are one filter times exp (2 pi i b j / L), so that Z_b
 * is a Fourier transform of L sums:
 *
 *   Y_m = sum of w (j) Z' (z - j) over j = m modulo L
 *   |Z_b| = |sum over m of Y_m exp (-2 pi i b m / L)|
 *
 * where Z' is Z with the phases of band 0: each sample is multiplied by one
 * real tap for all bands. With m = S q + p it is S transforms of B values. */

static __device__ __forceinline__ float2
add (float2 x, float2 y)
{
  return make_float2 (x.x + y.x, x.y + y.y);
}

static __device__ __forceinline__ float2
subtract (float2 x, float2 y)
{
  return make_float2 (x.x - y.x, x.y - y.y);
}

static __device__ __forceinline__ float2
rotate (float2 v, float2 turn)
{
  return make_float2 (v.x * turn.x - v.y * turn.y, v.x * turn.y + v.y * turn.x);
}

/* X_b = sum of Y_q exp (-2 pi i b q / B), B = 2, 4 or 8 */
template <uint32_t B>
static __device__ __forceinline__ void
transform (const float2 y[B], float2 x[B])
{
  constexpr uint32_t H = B / 2;
  constexpr float R = 0.70710678f;
  const float2 turns[] = {{1, 0}, {R, -R}, {0, -1}, {-R, -R}};
  float2 even[H], odd[H], first[H], second[H];

#pragma unroll
  for (uint32_t i = 0; i < H; i++) {
    even[i] = y[2 * i];
    odd[i] = y[2 * i + 1];
  }
  transform<H> (even, first);
  transform<H> (odd, second);
#pragma unroll
  for (uint32_t i = 0; i < H; i++) {
    float2 v = second[i];

    if (B == 4 && i == 1) /* by -i */
      v = make_float2 (v.y, -v.x);
    else if (B == 8 && i == 2)
      v = make_float2 (v.y, -v.x);
    else if (i > 0)
      v = rotate (v, turns[i]);
    x[i] = add (first[i], v);
    x[i + H] = subtract (first[i], v);
  }
}

template <>
__device__ __forceinline__ void
transform<1> (const float2 y[1], float2 x[1])
{
  x[0] = y[0];
}

/* exp (-2 pi i b / (2 B)) of band b, for S = 2 */
template <uint32_t B>
static __device__ __forceinline__ float2
half_turn (uint32_t b)
{
  constexpr float C = 0.92387953f, D = 0.38268343f, R = 0.70710678f;
  const float2 turns[] = {
      {1, 0}, {C, -D}, {R, -R}, {D, -C}, {0, -1}, {-D, -C}, {-R, -R}, {-C, -D}};

  return turns[b * (8 / B)];
}

template <uint32_t B, uint32_t S> struct Bank {
  static constexpr uint32_t L = B * S;
  static constexpr uint32_t RADIUS = L * 3 / 2; /* imk_octangio_band_sigma () */
  static constexpr uint32_t HALO = RADIUS + RADIUS % 2;
  static constexpr uint32_t ROW = BAND_DEPTHS + 2 * HALO;
};

/* The powers of all bands of depth @d of the thread's two, of @v: 2 HALO + 2
 * samples from HALO before its first depth on. */
template <uint32_t B, uint32_t S>
static __device__ __forceinline__ void
filter (const Arguments &a, const float2 *v, uint32_t d, float power[B])
{
  constexpr uint32_t L = B * S;
  constexpr int32_t RADIUS = Bank<B, S>::RADIUS;
  float2 sum[B] = {};

#pragma unroll
  for (uint32_t p = 0; p < S; p++) {
    float2 y[B] = {}, x[B];

#pragma unroll
    for (int32_t j = -RADIUS; j <= RADIUS; j++) {
      uint32_t m = (uint32_t) (j + 2 * (int32_t) L) % L;
      float2 sample = v[(int32_t) (Bank<B, S>::HALO + d) - j];
      float tap = a.band_taps[j < 0 ? -j : j];

      if (m % S == p)
        y[m / S] = make_float2 (__fmaf_rn (tap, sample.x, y[m / S].x),
            __fmaf_rn (tap, sample.y, y[m / S].y));
    }
    transform<B> (y, x);
#pragma unroll
    for (uint32_t b = 0; b < B; b++)
      sum[b] = add (sum[b], p == 0 ? x[b] : rotate (x[b], half_turn<B> (b)));
  }
#pragma unroll
  for (uint32_t b = 0; b < B; b++)
    power[b] = power_of (sum[b]);
}

/* A warp has an A-scan of the block's, and loads its own samples: the next
 * repeat's are under way while it computes. */
template <uint32_t B, uint32_t S>
static __global__ void __launch_bounds__ (32 * BAND_ASCANS)
    tiled_bands (const __grid_constant__ Arguments a)
{
  typedef Bank<B, S> Bank;
  constexpr uint32_t LOADS = (Bank::ROW / 2 + 31) / 32; /* of a thread */
  __shared__ float4 rows[BAND_ASCANS][Bank::ROW / 2];
  __shared__ float tile[2][BAND_DEPTHS][BAND_ASCANS + 1];
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t ascan = min (blockIdx.y * BAND_ASCANS + warp, a.n_ascans - 1);
  uint32_t first = blockIdx.x * BAND_DEPTHS; /* depth */
  float4 *row = rows[warp], next[LOADS], turns[LOADS];
  float last[2][B] = {};
  float2 result = make_float2 (0, 0), mean = result;
  auto load_next = [&] (uint32_t r) {
#pragma unroll
    for (uint32_t i = 0; i < LOADS; i++) {
      uint32_t z = first + 2 * (lane + 32 * i) - Bank::HALO; /* or below 0 */

      next[i] = make_float4 (0, 0, 0, 0);
      if (lane + 32 * i < Bank::ROW / 2)
        load_raw<1> (a, r, a.n_repeats, ascan, z, &next[i]);
    }
  };

#pragma unroll
  for (uint32_t i = 0; i < LOADS; i++) {
    uint32_t z = first + 2 * (lane + 32 * i) - Bank::HALO;
    float2 x = z < a.n_depths ? a.turns[z] : make_float2 (1, 0);
    float2 y = z + 1 < a.n_depths ? a.turns[z + 1] : make_float2 (1, 0);

    turns[i] = make_float4 (x.x, x.y, y.x, y.y);
  }
  load_next (0);
  for (uint32_t r = 0; r < a.n_repeats; r++) {
    float4 samples[Bank::HALO + 1];

    __syncwarp (); /* the samples before have been read */
#pragma unroll
    for (uint32_t i = 0; i < LOADS; i++)
      if (lane + 32 * i < Bank::ROW / 2) {
        float4 v = clean (next[i]);
        float2 x = rotate (first_of (v), first_of (turns[i]));
        float2 y = rotate (second_of (v), second_of (turns[i]));

        row[lane + 32 * i] = make_float4 (x.x, x.y, y.x, y.y);
      }
    __syncwarp ();
    if (r + 1 < a.n_repeats)
      load_next (r + 1);
#pragma unroll
    for (uint32_t i = 0; i <= Bank::HALO; i++)
      samples[i] = row[lane + i];
    mean.x += power_of (first_of (samples[Bank::HALO / 2]));
    mean.y += power_of (second_of (samples[Bank::HALO / 2]));
#pragma unroll
    for (uint32_t d = 0; d < 2; d++) {
      float power[B], sum = 0;

      filter<B, S> (a, (const float2 *) samples, d, power);
#pragma unroll
      for (uint32_t b = 0; b < B; b++) {
        float amplitude = root_of (power[b]), change = amplitude - last[d][b];

        if (r > 0)
          sum += share_of (
              change * change, __fmaf_rn (last[d][b], last[d][b], power[b]));
        last[d][b] = amplitude;
      }
      (d == 0 ? result.x : result.y) += sum;
    }
  }
  tile[0][2 * lane][warp] = result.x;
  tile[0][2 * lane + 1][warp] = result.y;
  tile[1][2 * lane][warp] = mean.x * a.share;
  tile[1][2 * lane + 1][warp] = mean.y * a.share;
  __syncthreads ();
#pragma unroll
  for (uint32_t i = threadIdx.x; i < BAND_ASCANS * BAND_DEPTHS;
       i += 32 * BAND_ASCANS) {
    uint32_t column = i % BAND_ASCANS, z = i / BAND_ASCANS;
    uint32_t to = blockIdx.y * BAND_ASCANS + column;

    if (to < a.n_ascans && first + z < a.n_depths) {
      float flow = tile[0][z][column] * a.pair_share / B;

      a.flow[(first + z) * a.flow_stride + to] =
          tile[1][z][column] < a.floor ? 0 : flow;
      if (a.mean_image)
        a.mean_image[(size_t) (first + z) * a.n_ascans + to] =
            tile[1][z][column];
    }
  }
}

/* ------------------------------------------------------------------------
 * Of any number and scale. */

static __global__ void
bands (const __grid_constant__ Arguments a)
{
  extern __shared__ float shared[];
  uint32_t n = a.n_depths;
  float2 *raw = (float2 *) work_of (a, shared, BAND_WORDS + a.n_bands);
  float2 *moved = raw + n;
  float *result = (float *) (moved + n), *mean = result + n;
  float *amplitudes = mean + n; /* [n_bands][D] of the repeat before */
  float share = a.pair_share / (float) a.n_bands;

  wait_for_last_kernel ();
  let_next_kernel_begin ();
  for (uint32_t ascan = blockIdx.x; ascan < a.n_ascans; ascan += gridDim.x) {
    for (uint32_t z = threadIdx.x; z < n; z += BAND_THREADS)
      result[z] = mean[z] = 0;
    for (uint32_t r = 0; r < a.n_repeats; r++) {
      for (uint32_t z = threadIdx.x; z < n; z += BAND_THREADS) {
        raw[z] = value_at (a, r, ascan, z);
        mean[z] += power_of (raw[z]);
      }
      for (uint32_t band = 0; band < a.n_bands; band++) {
        float *last = amplitudes + (size_t) band * n;

        for (uint32_t z = threadIdx.x; z < n; z += BAND_THREADS)
          moved[z] = rotate (raw[z], a.turns[(size_t) band * n + z]);
        __syncthreads ();
        for (uint32_t z = threadIdx.x; z < n; z += BAND_THREADS) {
          float re = a.taps[0] * moved[z].x, im = a.taps[0] * moved[z].y;
          float power, change, sum;

          for (uint32_t k = 1; k <= a.radius && k < n; k++) {
            float tap = a.taps[k];

            if (z + k < n) {
              re = __fmaf_rn (tap, moved[z + k].x, re);
              im = __fmaf_rn (tap, moved[z + k].y, im);
            }
            if (z >= k) {
              re = __fmaf_rn (tap, moved[z - k].x, re);
              im = __fmaf_rn (tap, moved[z - k].y, im);
            }
          }
          power = re * re + im * im;
          if (r > 0) {
            change = sqrtf (power) - last[z];
            sum = power + last[z] * last[z];
            result[z] += sum > 0 ? share * change * change / sum : 0;
          }
          last[z] = sqrtf (power);
        }
        __syncthreads (); /* before the next band takes the place */
      }
    }
    for (uint32_t z = threadIdx.x; z < n; z += BAND_THREADS) {
      a.energy[(size_t) ascan * a.row + z] = result[z];
      if (a.mean)
        a.mean[(size_t) ascan * a.row + z] = mean[z] * a.share;
    }
  }
}
