/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GMTSAR's xcorr: from lines to amplitudes, and its methods of time. */
#pragma once

#include "insarxcorr/cuda/insarxcorr-cuda.cuh"

namespace insar
{

/* Finer column j is sample j / ri; those of [n / 2, 3 n / 2) are kept. Of
 * @line, samples at @phase / ri behind whole ones, they are in turn every
 * ri-th. */
static __device__ void
store_phase (
    const float2 *line, uint32_t n, uint32_t ri, uint32_t phase, float *out)
{
  uint32_t half = ri == 1 ? 0 : n / 2;
  uint32_t first = (phase + ri - half % ri) % ri;

  for (uint32_t j = first + threadIdx.x * ri; j < n; j += blockDim.x * ri) {
    float2 z = line[padded ((half + j) / ri)];

    out[j] = sqrtf (z.x * z.x + z.y * z.y);
  }
}

/* blockIdx.y is the patch, blockIdx.z the side. */
template <ImkType type>
static __global__ void
detect_lines (
    const __grid_constant__ Fft f, const __grid_constant__ Arguments a)
{
  extern __shared__ float2 shared[];
  const uint32_t side = blockIdx.z, y = blockIdx.x * blockDim.y + threadIdx.y;
  const uint32_t height = a.fine.height[side], ri = a.fine.interp_x;
  const ImkInsarxcorrPatch &patch = a.items[blockIdx.y].patch;
  const Band &band = a.bands[side];
  const uint8_t *line = band_line (band, patch.line[side] + (int32_t) y);
  const bool here = y < height;
  float *out = a.amplitudes[side] +
               ((size_t) blockIdx.y * height + (here ? y : 0)) * f.n;
  float2 *x = line_at (shared, f.n, threadIdx.y, 0);
  float2 *free = line_at (shared, f.n, threadIdx.y, 1), *spectrum;
  uint32_t n_valid = 0;

  for (uint32_t i = threadIdx.x; i < f.n; i += blockDim.x) {
    bool valid;
    float2 z =
        sample_at<type> (band, line, patch.column[side] + (int32_t) i, &valid);

    x[padded (i)] = z;
    n_valid += here && valid;
  }
  for (int step = 16; step > 0; step /= 2)
    n_valid += __shfl_down_sync (0xffffffff, n_valid, step);
  if ((threadIdx.y * blockDim.x + threadIdx.x) % 32 == 0)
    atomicAdd (&a.n_valid[2 * blockIdx.y + side], n_valid);
  __syncthreads ();
  if (here)
    store_phase (x, f.n, ri, 0, out);
  if (ri == 1)
    return;

  spectrum = transform_line<false> (f, x, free);
  free = spectrum == x ? free : x;
  for (uint32_t m = 1; m < ri; m++) {
    /* After the second phase the spectrum is no longer needed. */
    float2 *to = ri > 2 ? free : spectrum;
    float2 *with = ri > 2 ? line_at (shared, f.n, threadIdx.y, 2) : free;

    __syncthreads ();
    for (uint32_t i = threadIdx.x; i < f.n; i += blockDim.x)
      to[padded (i)] =
          multiply (spectrum[padded (i)], __ldg (a.phases + m * f.n + i));
    to = transform_line<true> (f, to, with);
    if (here)
      store_phase (to, f.n, ri, m, out);
  }
}

/* Returns: the secondary's template, or the part of the reference under it at
 * lag (@v, @u), without fractions */
static __device__ __forceinline__ int32_t
cut_at (const Arguments &a, int side, uint32_t item, uint32_t y, uint32_t x)
{
  size_t at = slot_line (a, side, item, y) * a.fine.width[side] + x;

  return imk_insarxcorr_cut (
      a.amplitudes[side][at] - a.levels[item].mean[side]);
}

/* A thread a lag. The sums of doubles are in the CPU's order. */
static __global__ void
correlate_in_time (const __grid_constant__ Arguments a, bool fourth)
{
  const uint32_t lag = blockIdx.x * BLOCK + threadIdx.x, item = blockIdx.y;
  const uint32_t width = a.fine.n_lags_x, height = a.fine.n_lags_y;
  const uint32_t u = lag / width, v = lag % width;
  long long ab = 0, aa = 0, bb = 0;
  double aabb = 0, aaaa = 0, bbbb = 0;
  double value;

  if (u >= height)
    return;
  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++) {
      int32_t p = cut_at (a, 0, item, y + u, x + v);
      int32_t q = cut_at (a, 1, item, y + height / 2, x + width / 2);

      if (fourth) {
        double pp = (double) p * p, qq = (double) q * q;

        aabb += pp * qq;
        aaaa += pp * pp;
        bbbb += qq * qq;
      } else {
        ab += (long long) p * q;
        aa += (long long) p * p;
        bb += (long long) q * q;
      }
    }
  value = fourth ? imk_insarxcorr_gatelli (aabb, aaaa, bbbb)
                 : imk_insarxcorr_correlation (ab, aa, bb);
  a.surface[(size_t) item * width * height + lag] = (float) value;
}

/* Part blockIdx.x of the products at lag (@v, @u), by the whole block. */
static __device__ Products
multiply_at (const Arguments &a, uint32_t item, uint32_t v, uint32_t u)
{
  const uint32_t width = a.fine.n_lags_x, height = a.fine.n_lags_y;
  const uint32_t n_warps = BLOCK / WARP;
  Products sums = {};

  /* a warp a line */
  for (uint32_t y = blockIdx.x * n_warps + threadIdx.x / WARP; y < height;
       y += gridDim.x * n_warps)
#pragma unroll 8
    for (uint32_t x = threadIdx.x % WARP; x < width; x += WARP) {
      int32_t p = cut_at (a, 0, item, y + u, x + v);
      int32_t q = cut_at (a, 1, item, y + height / 2, x + width / 2);

      sums.ab += (long long) p * q;
      sums.aa += (long long) p * p;
      sums.bb += (long long) q * q;
    }
  sums.ab = block_sum (sums.ab);
  sums.aa = block_sum (sums.aa);
  sums.bb = block_sum (sums.bb);
  return sums;
}

/* Returns: GMTSAR's correlation at the lag of the peak */
static __device__ double
correlation_of (const Arguments &a, uint32_t item)
{
  const Products *in = a.correlations + (size_t) item * CORRELATION_PARTS;
  Products sums = {};

#pragma unroll
  for (int i = 0; i < CORRELATION_PARTS; i++) {
    sums.ab += in[i].ab;
    sums.aa += in[i].aa;
    sums.bb += in[i].bb;
  }
  return imk_insarxcorr_correlation (sums.ab, sums.aa, sums.bb);
}

} // namespace insar
