/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The matched filter, a warp for each cell, and pupil images, a thread for each
 * (arithmetic/linear-centroid.h). */
#pragma once

#include "shcentroid/arithmetic/linear-centroid.h"
#include "shcentroid/cuda/shcentroid-chain.cuh"

enum {
  LINEAR_THREADS = 128,
  LINEAR_WARPS = LINEAR_THREADS / 32,
};

struct LinearArguments {
  ChainArguments chain;
  const float *weights; /* of the matched filter */
  const uint64_t *at;   /* those of each cell */
  const ImkShcentroidAnchor *anchors;
  const uint32_t *pupils;
  double *mean; /* flux of the valid cells of pupil images */
};

/* Every thread with a cell finishes it. */
template <bool ALL>
static __device__ __forceinline__ void
finish_linear (const ChainArguments &a, uint32_t index,
    const ImkShcentroidReals &sums, double *to)
{
  const ImkShcentroidRect &rect = a.common.rects[index];
  ChainCell cell = {};

  cell.sums = sums;
  cell.window = {rect.x, rect.y, rect.width, rect.height, false};
  finish_chain_cell<ALL> (a, index, cell, to);
}

/* ------------------------------------------------------------------------
 * The matched filter. */

/* The pixels of this lane; bad ones count for nothing. */
template <typename Sample, bool CALIBRATED, bool ALL>
static __device__ __forceinline__ ImkShcentroidReals
filter_lane (const LinearArguments &a, uint32_t index, uint32_t lane)
{
  const ImkShcentroidRect &rect = a.chain.common.rects[index];
  const float *weights = a.weights + a.at[index];
  uint32_t width = rect.width, n = width * rect.height;
  size_t stride = ((size_t) n + 31) / 32 * 32;
  ImkShcentroidReals s = no_sums ();

  for (uint32_t i = lane; i < n; i += 32) {
    ChainPixel p = fetch_pixel<Sample, CALIBRATED> (
        a.chain, rect.x + i % width, rect.y + i / width);

    imk_shcentroid_add_weighted (&s, p.good ? p.value : 0.0, p.flat,
        __ldg (weights + i), __ldg (weights + stride + i),
        __ldg (weights + 2 * stride + i), ALL, &a.chain.noise);
    if (ALL && p.good) {
      s.max = p.value > s.max ? p.value : s.max;
      s.max_sample = fmaxf (s.max_sample, p.sample);
    }
  }
  return s;
}

template <typename Sample, bool CALIBRATED, bool ALL>
static __global__ void
__launch_bounds__ (LINEAR_THREADS)
    filter_cells (const __grid_constant__ LinearArguments a)
{
  __shared__ double rows[LINEAR_WARPS * row_length (ALL)];
  const Arguments &common = a.chain.common;
  uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t first = blockIdx.x * LINEAR_WARPS, index = first + warp;

  if (index < common.n_rects) {
    ImkShcentroidReals s =
        filter_lane<Sample, CALIBRATED, ALL> (a, index, lane);

    halve_all<ALL> (&s, 32);
    if (lane == 0) {
      const ImkShcentroidRect &rect = common.rects[index];
      const ImkShcentroidAnchor &anchor = a.anchors[index];

      imk_shcentroid_shift_sums (
          &s, anchor.zero_x - rect.x, anchor.zero_y - rect.y);
      finish_linear<ALL> (a.chain, index, s, rows + warp * row_length (ALL));
    }
  }
  __syncthreads ();
  store_rows<ALL> (common, first,
      min ((uint32_t) LINEAR_WARPS, common.n_rects - first), rows);
}

/* ------------------------------------------------------------------------
 * Pupil images. */

template <typename Sample, bool CALIBRATED, bool ALL>
static __device__ __forceinline__ ImkShcentroidReals
sum_pupils (const LinearArguments &a, uint32_t index)
{
  ImkShcentroidReals s = no_sums ();

#pragma unroll
  for (uint32_t k = 0; k < IMK_SHCENTROID_N_PUPILS; k++) {
    uint32_t at =
        __ldg (a.pupils + (size_t) index * IMK_SHCENTROID_N_PUPILS + k);
    ChainPixel p = fetch_pixel<Sample, CALIBRATED> (
        a.chain, at % a.chain.width, at / a.chain.width);

    imk_shcentroid_add_pupil (
        &s, k, p.value, p.flat, p.sample, ALL, &a.chain.noise);
  }
  return s;
}

/* One block, for NORMALISATION_GLOBAL: the mean flux, as the CPU adds it up. */
template <typename Sample, bool CALIBRATED>
static __global__ void
__launch_bounds__ (IMK_SHCENTROID_TILT_LANES)
    find_mean (const __grid_constant__ LinearArguments a)
{
  __shared__ ImkShcentroidTiltSums lanes[IMK_SHCENTROID_TILT_LANES];
  const Arguments &common = a.chain.common;
  ImkShcentroidTiltSums sums = {};
  double most = 0.0;

  for (uint32_t i = threadIdx.x; i < common.n_rects; i += blockDim.x) {
    ImkShcentroidReals s = sum_pupils<Sample, CALIBRATED, false> (a, i);

    most = fmax (most, imk_shcentroid_pupil_flux (&s));
  }
  most = find_most ((double *) lanes, most);
  for (uint32_t i = threadIdx.x; i < common.n_rects; i += blockDim.x) {
    ImkShcentroidReals s = sum_pupils<Sample, CALIBRATED, false> (a, i);
    ImkShcentroidTiltSums one = {imk_shcentroid_pupil_flux (&s), 0.0, 1};

    if (imk_shcentroid_pupil_counts (
            one.x, most, &common.rects[i], &common.params))
      imk_shcentroid_add_tilt (&sums, &one);
  }
  sums = add_lanes (lanes, sums);
  if (threadIdx.x == 0)
    *a.mean = sums.x;
}

template <typename Sample, bool CALIBRATED, bool ALL>
static __global__ void
__launch_bounds__ (LINEAR_THREADS)
    measure_pupils (const __grid_constant__ LinearArguments a)
{
  __shared__ double rows[LINEAR_THREADS * row_length (ALL)];
  const Arguments &common = a.chain.common;
  uint32_t first = blockIdx.x * LINEAR_THREADS, index = first + threadIdx.x;

  if (index < common.n_rects) {
    ImkShcentroidReals s = sum_pupils<Sample, CALIBRATED, ALL> (a, index);
    bool local =
        common.params.normalisation == IMK_SHCENTROID_NORMALISATION_LOCAL;

    imk_shcentroid_end_pupils (&s, &common.params, local ? 0.0 : *a.mean);
    finish_linear<ALL> (
        a.chain, index, s, rows + threadIdx.x * row_length (ALL));
  }
  __syncthreads ();
  store_rows<ALL> (common, first,
      min ((uint32_t) LINEAR_THREADS, common.n_rects - first), rows);
}
