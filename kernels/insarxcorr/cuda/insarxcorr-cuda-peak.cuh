/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The peak of each surface and what is known of it, a block a patch. */
#pragma once

#include "insarxcorr/cuda/insarxcorr-compat.cuh"

namespace insar
{

enum { WINDOW = IMK_INSARXCORR_WINDOW };

/* Returns: an integer of the same order as @value */
static __device__ __forceinline__ uint32_t
order_of (float value)
{
  uint32_t bits = __float_as_uint (value);

  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* By the whole block. Returns: the place of the largest lag of @item */
static __device__ uint32_t
find_largest (const Arguments &a, uint32_t item)
{
  const LinePeak *in = a.line_peaks + (size_t) item * a.fine.n_lags_y;
  unsigned long long best = 0;

  for (uint32_t y = threadIdx.x; y < a.fine.n_lags_y; y += BLOCK)
    best = max (best, in[y].key);
  return 0xffffffffu - (uint32_t) block_max (best);
}

/* By the whole block. Returns: the sum of the squares of the lags of @item */
static __device__ double
sum_squares (const Arguments &a, uint32_t item)
{
  const LinePeak *in = a.line_peaks + (size_t) item * a.fine.n_lags_y;
  double sum = 0;

  for (uint32_t y = threadIdx.x; y < a.fine.n_lags_y; y += BLOCK)
    sum += in[y].squares;
  return block_sum (sum);
}

/* Returns: whether @largest is the peak of @item */
static __device__ __forceinline__ bool
has_peak (const Arguments &a, uint32_t item, float largest)
{
  return !a.levels[item].is_flat && largest > 0 && isfinite (largest);
}

/* COMPAT by FFT: blockIdx.y is the patch. */
static __global__ void
multiply_at_peaks (const __grid_constant__ Arguments a)
{
  const uint32_t item = blockIdx.y, width = a.fine.n_lags_x;
  const uint32_t at = find_largest (a, item);
  const size_t n = (size_t) width * a.fine.n_lags_y;
  Products sums;

  if (!has_peak (a, item, a.surface[item * n + at]))
    return;
  sums = multiply_at (a, item, at % width, at / width);
  if (threadIdx.x == 0)
    a.correlations[(size_t) item * gridDim.x + blockIdx.x] = sums;
}

/* By the whole block: the largest of the finer window. */
static __device__ void
refine (const Arguments &a, const ImkInsarxcorrWindow window, double *rows,
    uint32_t v, uint32_t u, ImkInsarxcorrPeak *peak)
{
  const ImkInsarxcorrZoom zoom =
      imk_insarxcorr_zoom_over (a.plan->config.interp, a.zoom);
  const uint32_t n_fine = WINDOW * zoom.interp;
  const double alternating = imk_insarxcorr_zoom_alternating (window);
  unsigned long long best = 0;
  uint32_t at, g, h;
  double fine[3][3];

  for (uint32_t i = threadIdx.x; i < WINDOW * n_fine; i += BLOCK)
    rows[i] = imk_insarxcorr_zoom_row (&zoom, window, i / n_fine, i % n_fine);
  __syncthreads ();
  for (uint32_t i = threadIdx.x; i < n_fine * n_fine; i += BLOCK) {
    float value = (float) imk_insarxcorr_zoom_at (
        &zoom, alternating, rows, i % n_fine, i / n_fine);

    best = max (best, key_of (order_of (value), i));
  }
  at = 0xffffffffu - (uint32_t) block_max (best);
  g = at / n_fine;
  h = at % n_fine;
  if (threadIdx.x > 0)
    return;
  for (uint32_t i = 0; i < 3; i++)
    for (uint32_t j = 0; j < 3; j++)
      fine[i][j] = imk_insarxcorr_zoom_at (&zoom, alternating, rows,
          imk_insarxcorr_beside (h, j, n_fine),
          imk_insarxcorr_beside (g, i, n_fine));
  imk_insarxcorr_refine (a.plan, v, u, h, g, fine, peak);
}

/* By the whole block: what is known of a patch whose largest lag is (@v, @u).
 */
static __device__ void
measure (const Arguments &a, double *rows, float largest, uint32_t v,
    uint32_t u, ImkInsarxcorrPeak *peak)
{
  __shared__ ImkInsarxcorrWindow samples, window;
  const ImkInsarxcorrConfig *c = &a.plan->config;
  const uint32_t width = a.fine.n_lags_x, height = a.fine.n_lags_y;
  const uint32_t item = blockIdx.x, i = threadIdx.x / WINDOW % WINDOW;
  const uint32_t j = threadIdx.x % WINDOW;
  const double squares = sum_squares (a, item);

  if (c->mode == IMK_INSARXCORR_PRECISE)
    peak->correlation = 100 * (double) largest;
  else if (c->method == IMK_INSARXCORR_FREQ)
    peak->correlation = correlation_of (a, item);
  else
    peak->correlation = largest;
  if (threadIdx.x < WINDOW * WINDOW) {
    /* Negative values wrap to large numbers. */
    uint32_t y = u + i - WINDOW / 2, x = v + j - WINDOW / 2;

    samples[i][j] = y < height && x < width
                        ? a.surface[((size_t) item * height + y) * width + x]
                        : 0;
    window[i][j] = imk_insarxcorr_weigh (c, samples[i][j], largest);
  }
  __syncthreads ();
  if (threadIdx.x == 0)
    imk_insarxcorr_qualify (a.plan, v, u, squares, samples, peak);
  refine (a, window, rows, v, u, peak);
}

static __global__ void
find_peaks (const __grid_constant__ Arguments a)
{
  extern __shared__ double rows[]; /* [8][8 F] */
  const Item &item = a.items[blockIdx.x];
  const uint32_t n = a.fine.n_lags_x * a.fine.n_lags_y;
  double *out = (double *) (a.out + item.row * a.out_stride);
  ImkInsarxcorrPeak peak = {};
  uint32_t at;
  float largest;

  if (item.patch.flags & IMK_INSARXCORR_MASKED) {
    if (threadIdx.x == 0)
      imk_insarxcorr_finish_masked (a.plan, &item.patch, out);
    return;
  }
  at = find_largest (a, blockIdx.x);
  largest = a.surface[(size_t) blockIdx.x * n + at];
  if (has_peak (a, blockIdx.x, largest))
    measure (
        a, rows, largest, at % a.fine.n_lags_x, at / a.fine.n_lags_x, &peak);
  else
    imk_insarxcorr_no_peak (&a.plan->config, &peak);
  if (threadIdx.x > 0)
    return;
  peak.valid = 1;
  for (int s = 0; s < N_SIDES; s++) {
    double size = (double) a.plan->patch_width[s] * a.plan->patch_height[s];

    peak.valid = fmin (peak.valid, a.n_valid[2 * blockIdx.x + s] / size);
  }
  imk_insarxcorr_finish (a.plan, &item.patch, &peak, out);
}

} // namespace insar
