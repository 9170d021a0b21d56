/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The precise mode: from lines to amplitudes that are finer both ways, and from
 * products to the normalised surface. One side after the other. */
#pragma once

#include "insarxcorr/cuda/insarxcorr-cuda.cuh"

namespace insar
{

enum { STRIP = 32 }; /* lines of lags processed by a thread */

/* By the whole block: adds how samples of a side turn from each to the next,
 * along lines and across them. Returns: samples that are data */
template <ImkType type>
static __device__ uint32_t
add_turns (const Arguments &a, int side, ImkInsarxcorrTurns *turns)
{
  const ImkInsarxcorrPatch &patch = a.items[blockIdx.x].patch;
  const Band &band = a.bands[side];
  const uint32_t width = a.plan->patch_width[side];
  const uint32_t height = a.plan->patch_height[side];
  uint32_t n_valid = 0;

  for (uint32_t i = threadIdx.x; i < width * height; i += BLOCK) {
    uint32_t y = i / width, x = i % width;
    int32_t line = patch.line[side] + (int32_t) y;
    int32_t column = patch.column[side] + (int32_t) x;
    const uint8_t *here = band_line (band, line);
    bool valid, ignored;
    float2 p = sample_at<type> (band, here, column, &valid), q;

    n_valid += valid;
    turns->energy += (double) p.x * p.x + (double) p.y * p.y;
    if (x + 1 < width) {
      q = sample_at<type> (band, here, column + 1, &ignored);
      turns->x_re += (double) q.x * p.x + (double) q.y * p.y;
      turns->x_im += (double) q.y * p.x - (double) q.x * p.y;
    }
    if (y + 1 < height) {
      q = sample_at<type> (band, band_line (band, line + 1), column, &ignored);
      turns->y_re += (double) q.x * p.x + (double) q.y * p.y;
      turns->y_im += (double) q.y * p.x - (double) q.x * p.y;
    }
  }
  return block_sum (n_valid);
}

/* A block a patch: the middles of its spectra, of both sides together. */
template <ImkType type>
static __global__ void
find_centres (const __grid_constant__ Arguments a)
{
  ImkInsarxcorrTurns turns = {};
  uint32_t n_valid[IMK_INSARXCORR_N_SIDES];

  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    n_valid[s] = add_turns<type> (a, s, &turns);
    turns.n_samples +=
        (double) a.plan->patch_width[s] * a.plan->patch_height[s];
  }
  turns.x_re = block_sum (turns.x_re);
  turns.x_im = block_sum (turns.x_im);
  turns.y_re = block_sum (turns.y_re);
  turns.y_im = block_sum (turns.y_im);
  turns.energy = block_sum (turns.energy);
  if (threadIdx.x > 0)
    return;
  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    uint2 *centre = &a.centres[IMK_INSARXCORR_N_SIDES * blockIdx.x + s];

    a.n_valid[IMK_INSARXCORR_N_SIDES * blockIdx.x + s] = n_valid[s];
    centre->x = imk_insarxcorr_centre_bin (
        &turns, turns.x_re, turns.x_im, a.plan->patch_width[s]);
    centre->y = imk_insarxcorr_centre_bin (
        &turns, turns.y_re, turns.y_im, a.plan->patch_height[s]);
  }
}

/* Lines of samples, and of their spectra. */
template <ImkType type> struct SampleLines {
  Arguments a;
  int side;
  uint32_t width, height;

  __device__ float2
  load (uint32_t item, uint32_t y, uint32_t x) const
  {
    const ImkInsarxcorrPatch &patch = a.items[item].patch;
    const Band &band = a.bands[side];
    bool ignored;

    return sample_at<type> (band,
        band_line (band, patch.line[side] + (int32_t) y),
        patch.column[side] + (int32_t) x, &ignored);
  }

  __device__ void
  store (uint32_t item, uint32_t y, uint32_t x, float2 value) const
  {
    a.samples[((size_t) item * height + y) * width + x] = value;
  }
};

/* Returns: the bin of @n that stands at bin @i of @wide when the spectrum has
 * been turned by @centre and has zeros in its middle; @n for none */
static __device__ __forceinline__ uint32_t
bin_of (uint32_t i, uint32_t wide, uint32_t n, uint32_t centre)
{
  uint32_t bin = i < n / 2 ? i : i + n - wide;

  if (i >= n / 2 && i < wide - n / 2)
    return n;
  bin += centre;
  return bin >= n ? bin - n : bin;
}

/* Columns of spectra, turned and widened, and the finer lines that are looked
 * at. */
struct WideColumns {
  Arguments a;
  int side;
  uint32_t width, height, wide; /* of the patch; upsampled height */
  uint32_t top, n_lines;        /* its lines that are used */

  __device__ float2
  load (uint32_t item, uint32_t x, uint32_t y) const
  {
    uint32_t bin = bin_of (
        y, wide, height, a.centres[IMK_INSARXCORR_N_SIDES * item + side].y);

    return bin < height ? a.samples[((size_t) item * height + bin) * width + x]
                        : make_float2 (0, 0);
  }

  __device__ void
  store (uint32_t item, uint32_t x, uint32_t y, float2 value) const
  {
    if (y - top < n_lines)
      a.wide[((size_t) item * n_lines + y - top) * width + x] = value;
  }
};

/* The same of lines, which end as amplitudes. */
struct WideLines {
  Arguments a;
  int side;
  uint32_t width, wide; /* of the patch; upsampled width */
  uint32_t left;
  float scale;

  __device__ float2
  load (uint32_t item, uint32_t y, uint32_t x) const
  {
    uint32_t bin = bin_of (
        x, wide, width, a.centres[IMK_INSARXCORR_N_SIDES * item + side].x);
    size_t line = (size_t) item * a.fine.height[side] + y;

    return bin < width ? a.wide[line * width + bin] : make_float2 (0, 0);
  }

  __device__ void
  store (uint32_t item, uint32_t y, uint32_t x, float2 value) const
  {
    size_t line = (size_t) item * a.fine.height[side] + y;

    if (x - left < a.fine.width[side])
      a.amplitudes[side][line * a.fine.width[side] + x - left] =
          sqrtf (value.x * value.x + value.y * value.y) * scale;
  }
};

/* Sums, and sums of squares, of each column under the template: a thread slides
 * down a strip of lags. */
static __global__ void
sum_columns (const __grid_constant__ Arguments a)
{
  const uint32_t x = blockIdx.x * BLOCK + threadIdx.x, item = blockIdx.z;
  const uint32_t width = a.fine.width[1], template_height = a.fine.height[0];
  const uint32_t first = blockIdx.y * STRIP;
  const uint32_t end = min (first + STRIP, a.fine.n_lags_y);
  const float *in =
      a.amplitudes[1] + (size_t) item * a.fine.height[1] * width + x;
  const float mean = a.levels[item].mean[1];
  double2 sum = make_double2 (0, 0);

  if (x >= width)
    return;
  for (uint32_t y = first; y < first + template_height; y++) {
    double value = in[(size_t) y * width] - mean;

    sum.x += value;
    sum.y += value * value;
  }
  for (uint32_t u = first; u < end; u++) {
    a.sums[((size_t) item * a.fine.n_lags_y + u) * width + x] = sum;
    if (u + 1 < end) {
      double old = in[(size_t) u * width] - mean;
      double value = in[(size_t) (u + template_height) * width] - mean;

      sum.x += value - old;
      sum.y += value * value - old * old;
    }
  }
}

/* By the whole block. Returns: sum of squares of the template */
static __device__ double
template_energy (const Arguments &a, uint32_t item)
{
  const uint32_t n = a.fine.width[0] * a.fine.height[0];
  const float *in = a.amplitudes[0] + (size_t) item * n;
  const float mean = a.levels[item].mean[0];
  double sum = 0;

  for (uint32_t i = threadIdx.x; i < n; i += BLOCK) {
    double value = in[i] - mean;

    sum += value * value;
  }
  return block_sum (sum);
}

/* A block some lines of lags; the sums of its columns wait in shared memory. */
static __global__ void
normalise_lines (const __grid_constant__ Arguments a)
{
  extern __shared__ double2 columns[]; /* [fine width of the secondary] */
  const uint32_t item = blockIdx.y, width = a.fine.width[1];
  const uint32_t template_width = a.fine.width[0];
  const double n = (double) template_width * a.fine.height[0];
  const double scale = 1.0 / ((double) a.fine.fft_width * a.fine.fft_height) /
                       a.levels[item].scale;
  const double tt = template_energy (a, item);

  for (uint32_t u = blockIdx.x; u < a.fine.n_lags_y; u += gridDim.x) {
    size_t line = (size_t) item * a.fine.n_lags_y + u;
    float *out = a.surface + line * a.fine.n_lags_x;

    __syncthreads ();
    for (uint32_t x = threadIdx.x; x < width; x += BLOCK)
      columns[x] = a.sums[line * width + x];
    __syncthreads ();
    for (uint32_t v = threadIdx.x; v < a.fine.n_lags_x; v += BLOCK) {
      double2 sum = make_double2 (0, 0);

      for (uint32_t x = v; x < v + template_width; x++) {
        sum.x += columns[x].x;
        sum.y += columns[x].y;
      }
      out[v] = imk_insarxcorr_normalise (out[v] * scale, tt, sum.x, sum.y, n);
    }
  }
}

} // namespace insar
