/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Methods of amplitudes: a thread has pixels, and all their repeats in
 * registers. */
#pragma once

#include "octangio/cuda/octangio-pixels.cuh"

enum {
  ROW_THREADS = 32, /* of intensities, along the A-scans */
  ROW_ROWS = 8,
  ROW_ASCANS = 4, /* of a thread */
};

/* Of one pixel; the powers of repeats that are not there are 0. */
template <uint32_t MOST>
static __device__ __forceinline__ float
flow_of (const Arguments &a, const float power[MOST], float *mean)
{
  float amplitude[MOST], middle = 0, sum = 0, result = 0;

#pragma unroll
  for (uint32_t r = 0; r < MOST; r++)
    sum += power[r];
  *mean = sum * a.share;
  if (a.method == IMK_OCTANGIO_MEAN)
    return *mean;
#pragma unroll
  for (uint32_t r = 0; r < MOST; r++) {
    amplitude[r] = root_of (power[r]);
    middle += amplitude[r];
  }
  if (a.method == IMK_OCTANGIO_SPECKLE_VARIANCE) {
    middle *= a.share;
#pragma unroll
    for (uint32_t r = 0; r < MOST; r++) {
      float d = amplitude[r] - middle;

      result += r < a.n_repeats ? d * d : 0;
    }
    return result * a.share;
  }
#pragma unroll
  for (uint32_t r = 0; r + 1 < MOST; r++) {
    float d = amplitude[r] - amplitude[r + 1];

    if (r + 1 < a.n_repeats)
      result += share_of (d * d, power[r] + power[r + 1]);
  }
  return result * a.pair_share;
}

template <uint32_t MOST>
static __global__ void
__launch_bounds__ (TILE_THREADS) points (const __grid_constant__ Arguments a)
{
  __shared__ Tile tile;
  uint32_t first = blockIdx.y * TILE_ASCANS, z = tile_depth ();
  uint32_t ascan = first + threadIdx.x / TILE_PAIRS;
  float2 flow = make_float2 (0, 0), mean = flow;

  if (ascan < a.n_ascans && z < a.n_depths) {
    float4 v[MOST];
    float power[MOST];

    load_pairs<MOST> (a, ascan, z, v);
#pragma unroll
    for (uint32_t r = 0; r < MOST; r++)
      power[r] = power_of (first_of (v[r]));
    flow.x = flow_of<MOST> (a, power, &mean.x);
#pragma unroll
    for (uint32_t r = 0; r < MOST; r++)
      power[r] = power_of (second_of (v[r]));
    flow.y = flow_of<MOST> (a, power, &mean.y);
  }
  put_tile (a, tile, first, flow, mean);
}

/* ------------------------------------------------------------------------
 * Intensities, which are an image already. */

/* 0 beyond the last A-scan. */
static __device__ __forceinline__ float4
intensities_at (const Arguments &a, uint32_t r, uint32_t ascan, uint32_t z)
{
  const float *from = (const float *) (a.bscans[r] + z * a.strides[r]) + ascan;
  float v[ROW_ASCANS];

  if (a.is_wide && ascan + ROW_ASCANS <= a.n_ascans)
    return __ldcs ((const float4 *) from);
#pragma unroll
  for (uint32_t k = 0; k < ROW_ASCANS; k++)
    v[k] = ascan + k < a.n_ascans ? __ldcs (from + k) : 0;
  return make_float4 (v[0], v[1], v[2], v[3]);
}

static __device__ __forceinline__ float
intensity_of (float v)
{
  return v > 0 && v <= IMK_OCTANGIO_LARGEST * IMK_OCTANGIO_LARGEST ? v : 0;
}

template <uint32_t MOST>
static __global__ void
__launch_bounds__ (ROW_THREADS *ROW_ROWS)
    intensities (const __grid_constant__ Arguments a)
{
  uint32_t first =
      (blockIdx.x * ROW_THREADS + threadIdx.x) * (uint32_t) ROW_ASCANS;
  uint32_t z = blockIdx.y * ROW_ROWS + threadIdx.y;
  float4 v[MOST];

  if (first >= a.n_ascans || z >= a.n_depths)
    return;
#pragma unroll
  for (uint32_t r = 0; r < MOST; r++)
    v[r] = r < a.n_repeats ? intensities_at (a, r, first, z)
                           : make_float4 (0, 0, 0, 0);
#pragma unroll
  for (uint32_t k = 0; k < ROW_ASCANS; k++) {
    float power[MOST], mean, flow;

#pragma unroll
    for (uint32_t r = 0; r < MOST; r++)
      power[r] = intensity_of (k == 0   ? v[r].x
                               : k == 1 ? v[r].y
                               : k == 2 ? v[r].z
                                        : v[r].w);
    flow = flow_of<MOST> (a, power, &mean);
    if (first + k >= a.n_ascans)
      break;
    a.flow[z * a.flow_stride + first + k] = mean < a.floor ? 0 : flow;
    if (a.mean_image)
      a.mean_image[(size_t) z * a.n_ascans + first + k] = mean;
  }
}
