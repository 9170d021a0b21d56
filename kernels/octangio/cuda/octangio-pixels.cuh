/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernels of octangio share: their arguments, loads of pixels, and
 * tiles. A-scans are rows of complex B-scans and columns of the image: tiles in
 * shared memory transpose them, so that a warp accesses neighbours. */
#pragma once

#include "core/cuda/cuda-check.h"
#include "core/cuda/early-begin.cuh"
#include "octangio/octangio-backend.h"

enum {
  TILE_ASCANS = 32,
  TILE_PAIRS = 8, /* of depths: a row of a tile is 128 bytes of a B-scan */
  TILE_DEPTHS = 2 * TILE_PAIRS,
  TILE_THREADS = TILE_ASCANS * TILE_PAIRS,
  MOST_BAND_TAPS = 13, /* of tiled_bands: a radius of 12 */
};

/* Sums below count as 0: their reciprocals would not be finite. */
#define LEAST_SUM 1.17549435e-38f

struct Arguments {
  uint32_t n_ascans, n_depths, n_repeats;
  ImkOctangioMethod method;
  bool is_wide; /* rows of all B-scans begin at multiples of 16 bytes */
  bool between_ascans, bulk_motion;
  uint32_t lateral, axial, n_tissue, n_bands, radius;
  float floor, scale;
  float share, pair_share; /* 1/N, 1/(N - 1) */
  const uint8_t *bscans[IMK_OCTANGIO_MAX_REPEATS];
  size_t strides[IMK_OCTANGIO_MAX_REPEATS];
  float *flow;
  size_t flow_stride; /* numbers */
  float *mean_image;  /* [D][A] for the surface, or NULL */
  uint32_t strip;     /* A-scans of a block of strips */
  uint32_t row;       /* D, rounded up to an even number */
  float *mean;        /* [A][row], or NULL where nobody needs it */
  float2 *sum;        /* [A][row] S of the window's depths */
  float *energy;      /* [A][row] E of the same, or the result of bands */
  float *work;        /* NULL: in shared memory */
  double2 *gram;      /* [A][n_chunks][N (N + 1) / 2] */
  uint32_t n_chunks;  /* of the depths */
  double2 *vectors;   /* [A][K][N] */
  float band_taps[MOST_BAND_TAPS]; /* of tiled_bands */
  const float *taps;               /* [radius + 1] */
  const float2 *turns;             /* [n_bands][D] */
  uint32_t *brightest;             /* [A] */
};

/* ------------------------------------------------------------------------
 * Pixels. */

static __device__ __forceinline__ bool
is_number (float x, float y)
{
  return fabsf (x) <= IMK_OCTANGIO_LARGEST && fabsf (y) <= IMK_OCTANGIO_LARGEST;
}

static __device__ __forceinline__ float2
value_at (const Arguments &a, uint32_t r, uint32_t ascan, uint32_t z)
{
  float2 v = ((const float2 *) (a.bscans[r] + ascan * a.strides[r]))[z];

  return is_number (v.x, v.y) ? v : make_float2 (0, 0);
}

static __device__ __forceinline__ float
power_of (float2 v)
{
  return __fmaf_rn (v.x, v.x, v.y * v.y);
}

/* Two depths of one A-scan: of complex numbers, x and y are the first. */
static __device__ __forceinline__ float2
first_of (float4 v)
{
  return make_float2 (v.x, v.y);
}

static __device__ __forceinline__ float2
second_of (float4 v)
{
  return make_float2 (v.z, v.w);
}

static __device__ __forceinline__ const float2 *
address_of (const Arguments &a, uint32_t r, uint32_t ascan, uint32_t z)
{
  return (const float2 *) (a.bscans[r] + ascan * a.strides[r]) + z;
}

/* Without AGAIN the cache keeps other data rather than this. */
template <bool AGAIN, typename T>
static __device__ __forceinline__ T
load (const T *from)
{
  return AGAIN ? *from : __ldcs (from);
}

/* Depths @z, which is even, and @z + 1, as they are, of repeats from @first to
 * before @end; 0 beyond the last depth and of repeats that are not there. One
 * branch for all: all loads are under way before the first is used. */
template <uint32_t MOST, bool AGAIN = false>
static __device__ __forceinline__ void
load_raw (const Arguments &a, uint32_t first, uint32_t end, uint32_t ascan,
    uint32_t z, float4 v[MOST])
{
#pragma unroll
  for (uint32_t i = 0; i < MOST; i++)
    v[i] = make_float4 (0, 0, 0, 0);
  if (a.is_wide && z + 1 < a.n_depths) {
#pragma unroll
    for (uint32_t i = 0; i < MOST; i++)
      if (first + i < end)
        v[i] =
            load<AGAIN> ((const float4 *) address_of (a, first + i, ascan, z));
  } else if (z < a.n_depths) {
#pragma unroll
    for (uint32_t i = 0; i < MOST; i++)
      if (first + i < end) {
        const float2 *from = address_of (a, first + i, ascan, z);
        float2 x = load<AGAIN> (from), y = make_float2 (0, 0);

        if (z + 1 < a.n_depths)
          y = load<AGAIN> (from + 1);
        v[i] = make_float4 (x.x, x.y, y.x, y.y);
      }
  }
}

static __device__ __forceinline__ float4
clean (float4 v)
{
  if (!is_number (v.x, v.y))
    v.x = v.y = 0;
  if (!is_number (v.z, v.w))
    v.z = v.w = 0;
  return v;
}

/* The same, of all repeats. */
template <uint32_t MOST, bool AGAIN = false>
static __device__ __forceinline__ void
load_pairs (const Arguments &a, uint32_t ascan, uint32_t z, float4 v[MOST])
{
  load_raw<MOST, AGAIN> (a, 0, a.n_repeats, ascan, z, v);
#pragma unroll
  for (uint32_t r = 0; r < MOST; r++)
    v[r] = clean (v[r]);
}

/* To 1 ulp, and 0 of a number below LEAST_SUM: sqrtf () is slower, for a bit
 * that no result shows. */
static __device__ __forceinline__ float
root_of (float power)
{
  float root;

  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(power));
  return root;
}

/* @part of @whole, to 2 ulp; 0 where both are 0. @part: at most @whole, which
 * is at most 1e37 */
static __device__ __forceinline__ float
share_of (float part, float whole)
{
  float reciprocal;

  asm("rcp.approx.ftz.f32 %0, %1;"
      : "=f"(reciprocal)
      : "f"(fmaxf (whole, LEAST_SUM)));
  return part * reciprocal;
}

/* The depths of the window, cut off at the ends. */
static __device__ __forceinline__ void
range_of (
    uint32_t at, uint32_t window, uint32_t n, uint32_t *first, uint32_t *end)
{
  uint32_t before = (window - 1) / 2;

  *first = at > before ? at - before : 0;
  *end = min (at + window - before, n);
}

/* ------------------------------------------------------------------------
 * Tiles of TILE_THREADS threads: a thread has two depths of an A-scan. */

struct Tile {
  /* a warp writes to 32 banks, and reads rows */
  float flow[TILE_DEPTHS][TILE_ASCANS + 2], mean[TILE_DEPTHS][TILE_ASCANS + 2];
};

static __device__ __forceinline__ uint32_t
tile_depth (void)
{
  return blockIdx.x * TILE_DEPTHS + 2 * (threadIdx.x % TILE_PAIRS);
}

/* To the image, of all threads of the block, whose first A-scan is @first. */
static __device__ __forceinline__ void
put_tile (
    const Arguments &a, Tile &tile, uint32_t first, float2 flow, float2 mean)
{
  uint32_t row = threadIdx.x / TILE_PAIRS;
  uint32_t column = 2 * (threadIdx.x % TILE_PAIRS);

  tile.flow[column][row] = mean.x < a.floor ? 0 : flow.x;
  tile.flow[column + 1][row] = mean.y < a.floor ? 0 : flow.y;
  if (a.mean_image) {
    tile.mean[column][row] = mean.x;
    tile.mean[column + 1][row] = mean.y;
  }
  __syncthreads ();
#pragma unroll
  for (uint32_t i = threadIdx.x; i < TILE_ASCANS * TILE_DEPTHS;
       i += TILE_THREADS) {
    uint32_t ascan = first + i % TILE_ASCANS;
    uint32_t z = blockIdx.x * TILE_DEPTHS + i / TILE_ASCANS;

    if (ascan >= a.n_ascans || z >= a.n_depths)
      continue;
    a.flow[z * a.flow_stride + ascan] =
        tile.flow[i / TILE_ASCANS][i % TILE_ASCANS];
    if (a.mean_image)
      a.mean_image[(size_t) z * a.n_ascans + ascan] =
          tile.mean[i / TILE_ASCANS][i % TILE_ASCANS];
  }
}
