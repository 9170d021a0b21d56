/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only: how method=unsharp and method=log smooth a frame, see
 * lapsharpen-smooth.h. Two kernels make the blurred low samples, one row and
 * some columns a block; smooth_at () makes a pixel of them. */
#pragma once

#include "lapsharpen/cuda/lapsharpen-rows.cuh"

enum {
  SMOOTH_THREADS = 256,
  SMOOTH_COLUMNS = 32, /* low samples of a block, in each channel */
  SMOOTH_WIDE = (SMOOTH_COLUMNS - 1) * IMK_LAPSHARPEN_MAX_STEP +
                2 * IMK_LAPSHARPEN_MAX_SHRINK + 1,
  SMOOTH_BLURRED = SMOOTH_COLUMNS + 2 * IMK_LAPSHARPEN_MAX_BLUR,
};

/* The low samples of a frame, some of them beside it. */
struct Low {
  float *shrunk;  /* reach more on either side, and above and below */
  float *blurred; /* halo more */
  int columns, rows;
};

static Low
make_low (const ImkLapsharpenRule *rule, float *memory)
{
  const int step = rule->smooth.step;
  const int reach = rule->smooth.halo + rule->smooth.blur_reach;
  Low low = {};

  low.columns = ((int) rule->width - 1 + step / 2) / step + 1;
  low.rows = ((int) rule->height - 1 + step / 2) / step + 1;
  low.shrunk = memory;
  low.blurred = memory + (size_t) (low.columns + 2 * reach) *
                             (size_t) (low.rows + 2 * reach) * rule->channels;
  return low;
}

/* Floats of both planes. */
static size_t
get_low_size (const ImkLapsharpenRule *rule)
{
  const Low low = make_low (rule, nullptr);
  const size_t halo = (size_t) rule->smooth.halo;

  return (size_t) (low.blurred - low.shrunk) +
         (low.columns + 2 * halo) * (low.rows + 2 * halo) * rule->channels;
}

/* --- shrinking ------------------------------------------------------------ */

/* A sample, which may be outside, as it is smoothed. */
template <typename Sample>
static __device__ float
get_input (const ImkLapsharpenRule &rule, const uint8_t *in, size_t stride,
    int x, int y, int channel)
{
  const int width = rule.width, height = rule.height;
  const bool outside =
      rule.constant && (x < 0 || y < 0 || x >= width || y >= height);
  const Sample *pixel =
      (const Sample *) (in + stride * imk_lapsharpen_inside (y, height, &rule)) +
      imk_lapsharpen_inside (x, width, &rule) * (int) rule.channels;
  const uint32_t v = outside ? rule.border_value
                             : (uint32_t) __ldg (pixel + channel) >> rule.shift;

  if (rule.weight_channel < 0)
    return (float) v;
  return imk_lapsharpen_visible (&rule, v,
      outside ? rule.border_value
              : (uint32_t) __ldg (pixel + rule.weight_channel) >> rule.shift,
      channel == rule.weight_channel);
}

template <typename Sample>
static __global__ void
__launch_bounds__ (SMOOTH_THREADS)
    shrink_frame (const __grid_constant__ ImkLapsharpenRule rule,
        const uint8_t *in, size_t stride, const Low low)
{
  __shared__ float wide[4 * SMOOTH_WIDE];
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int c = rule.channels, reach = s.halo + s.blur_reach;
  const int n_columns = low.columns + 2 * reach;
  const int column = (int) blockIdx.y * SMOOTH_COLUMNS, row = blockIdx.x;
  const int n = min (SMOOTH_COLUMNS, n_columns - column);
  const int left = (column - reach) * s.step - s.shrink_reach;
  const int y = (row - reach) * s.step;
  float *to = low.shrunk + ((size_t) row * n_columns + column) * c;

  for (int i = threadIdx.x; i < ((n - 1) * s.step + 2 * s.shrink_reach + 1) * c;
       i += blockDim.x) {
    const int x = left + i / c, ch = i % c;
    float sum = s.shrink[0] * get_input<Sample> (rule, in, stride, x, y, ch);

    for (int j = 1; j <= s.shrink_reach; j++)
      sum += s.shrink[j] *
             (get_input<Sample> (rule, in, stride, x, y - j, ch) +
                 get_input<Sample> (rule, in, stride, x, y + j, ch));
    wide[i] = sum;
  }
  __syncthreads ();
  for (int i = threadIdx.x; i < n * c; i += blockDim.x) {
    const float *at = wide + (i / c * s.step + s.shrink_reach) * c + i % c;
    float sum = s.shrink[0] * at[0];

    for (int j = 1; j <= s.shrink_reach; j++)
      sum += s.shrink[j] * (at[-j * c] + at[j * c]);
    to[i] = sum;
  }
}

/* --- blurring ------------------------------------------------------------- */

/* w[0] v_0 + w[1] (v_-1 + v_1) + ..., the v @stride apart */
static __device__ float
fold (const float *at, ptrdiff_t stride, const float *w, int reach)
{
  float sum = w[0] * at[0];

  for (int j = 1; j <= reach; j++)
    sum += w[j] * (at[-j * stride] + at[j * stride]);
  return sum;
}

static __global__ void
__launch_bounds__ (SMOOTH_THREADS)
    blur_low (const __grid_constant__ ImkLapsharpenRule rule, const Low low)
{
  __shared__ float blurred[4 * SMOOTH_BLURRED], curved[4 * SMOOTH_BLURRED];
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int c = rule.channels, reach = s.blur_reach;
  const int n_columns = low.columns + 2 * s.halo;
  const int column = (int) blockIdx.y * SMOOTH_COLUMNS, row = blockIdx.x;
  const int n = min (SMOOTH_COLUMNS, n_columns - column);
  const ptrdiff_t stride = (ptrdiff_t) (n_columns + 2 * reach) * c;
  const float *from = low.shrunk + (row + reach) * stride + column * c;
  float *to = low.blurred + ((size_t) row * n_columns + column) * c;

  for (int i = threadIdx.x; i < (n + 2 * reach) * c; i += blockDim.x) {
    blurred[i] = fold (from + i, stride, s.blur, reach);
    if (s.is_log)
      curved[i] = fold (from + i, stride, s.curve, reach);
  }
  __syncthreads ();
  for (int i = threadIdx.x; i < n * c; i += blockDim.x) {
    const int at = i + reach * c;
    float sum = fold (blurred + at, c, s.is_log ? s.curve : s.blur, reach);

    if (s.is_log)
      sum += fold (curved + at, c, s.blur, reach);
    to[i] = sum;
  }
}

/* --- growing -------------------------------------------------------------- */

static __device__ float
grow (const float *at, ptrdiff_t stride, const float w[3], int halo)
{
  /* step 1 has no samples beside, and the weights 0 1 0 */
  return halo ? w[0] * at[-stride] + w[1] * at[0] + w[2] * at[stride] : at[0];
}

/* Returns: what smoothing makes of a sample */
static __device__ float
smooth_at (
    const ImkLapsharpenRule &rule, const Low &low, int x, int y, int channel)
{
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int c = rule.channels, half = s.step / 2;
  const int column = (x + half) / s.step, row = (y + half) / s.step;
  const float *w = s.grow[(x + half) % s.step];
  const ptrdiff_t stride = (ptrdiff_t) (low.columns + 2 * s.halo) * c;
  const float *at = low.blurred + (row + s.halo) * stride +
                    (column + s.halo) * c + channel;
  float rows[3] = {};

  for (int i = -s.halo; i <= s.halo; i++)
    rows[1 + i] = grow (at + i * stride, c, w, s.halo);
  return grow (rows + 1, 1, s.grow[(y + half) % s.step], s.halo);
}

/* Returns: L of the sample @v */
static __device__ float
get_detail (const ImkLapsharpenRule &rule, const Low &low, int x, int y,
    int channel, int32_t v)
{
  const float transparent =
      rule.weight_channel < 0
          ? 0.0f
          : smooth_at (rule, low, x, y, rule.weight_channel);

  return imk_lapsharpen_detail (
      &rule, v, smooth_at (rule, low, x, y, channel), transparent);
}

static inline ImkStatus
launch_smooth (const ImkLapsharpenRule *rule, const ImkImage *in,
    const Low &low, cudaStream_t stream, ImkError *error)
{
  const auto shrink =
      in->type == IMK_TYPE_U8 ? shrink_frame<uint8_t> : shrink_frame<uint16_t>;
  const int halo = rule->smooth.halo, reach = halo + rule->smooth.blur_reach;
  cudaLaunchConfig_t launch = {};
  ImkStatus status;

  launch.blockDim = dim3 (SMOOTH_THREADS);
  /* there can be more rows than a grid has blocks in y */
  launch.gridDim = dim3 ((uint32_t) (low.rows + 2 * reach),
      imk_div_up ((uint32_t) (low.columns + 2 * reach), SMOOTH_COLUMNS));
  launch.stream = stream;
  status = IMK_CUDA_LAUNCH (error, launch, shrink, *rule,
      (const uint8_t *) in->data, in->stride, low);
  if (status != IMK_OK)
    return status;
  launch.gridDim = dim3 ((uint32_t) (low.rows + 2 * halo),
      imk_div_up ((uint32_t) (low.columns + 2 * halo), SMOOTH_COLUMNS));
  return IMK_CUDA_LAUNCH (error, launch, blur_low, *rule, low);
}
