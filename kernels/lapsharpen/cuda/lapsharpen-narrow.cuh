/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only: method=unsharp with a Gaussian so narrow that the frame
 * is not shrunk, in one kernel: a block blurs a tile of the frame in shared
 * memory and sharpens it, so that a frame is read and written once. */
#pragma once

#include "lapsharpen/cuda/lapsharpen-smooth.cuh"

enum {
  NARROW_THREADS = 128,
  NARROW_ROWS = 16,   /* of a tile, in halves */
  NARROW_HALF = 8,    /* rows, and the pixels of a thread in a row */
  NARROW_WIDE = 512,  /* samples of a row of a tile, those beside included */
  NARROW_PITCH = 516, /* so that 8 rows of pixels of 4 are in all banks */
  NARROW_ITEMS = 4,   /* of a thread in a half */
};

/* Returns: samples in a row of what a block writes */
static __host__ __device__ int
get_narrow_width (int channels, int reach)
{
  return ((NARROW_WIDE - SMOOTH_QUAD) / channels - 2 * reach) / NARROW_HALF *
         NARROW_HALF * channels;
}

/* Blurs NARROW_HALF rows of a quad from row @y on along columns, times
 * TINY_SCALE. */
template <typename Sample, int KEPT, int REACH>
static __device__ void
blur_quad (const ImkLapsharpenRule &rule, const uint8_t *in, size_t stride,
    int y, const float w[REACH + 1], float *to)
{
  constexpr int n = NARROW_HALF + 2 * REACH;
  const bool inside =
      y >= REACH && y + NARROW_HALF + REACH <= (int) rule.height;
  float sum[NARROW_HALF][SMOOTH_QUAD] = {};
  Quad<Sample> quads[n];

  if (inside) {
    const uint8_t *at = in + (size_t) (y - REACH) * stride;

#pragma unroll
    for (int k = 0; k < n; k++, at += stride)
      quads[k] = read_quad<Sample, false> (rule, at);
  } else
#pragma unroll
    for (int k = 0; k < n; k++)
      quads[k] = read_quad<Sample, false> (
          rule, in + stride * (size_t) imk_lapsharpen_inside (
                                  y - REACH + k, (int) rule.height, &rule));
#pragma unroll
  for (int i = 0; i < SMOOTH_QUAD; i++) {
    float v[n];

    if (!(KEPT >> i & 1))
      continue;
#pragma unroll
    for (int k = 0; k < n; k++)
      v[k] = get_tiny (quads[k], i);
#pragma unroll
    for (int r = 0; r < NARROW_HALF; r++)
      sum[r][i] = fold<REACH> (v + REACH + r, w);
  }
#pragma unroll
  for (int r = 0; r < NARROW_HALF; r++)
    *(float4 *) &to[r * NARROW_PITCH] =
        make_float4 (sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
}

/* The same one by one, of samples that may be outside. @first: of a row */
template <typename Sample>
static __device__ void
blur_samples (const ImkLapsharpenRule &rule, const uint8_t *in, size_t stride,
    int first, int y, float *to)
{
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int c = rule.channels;

#pragma unroll 1
  for (int i = 0; i < SMOOTH_QUAD * NARROW_HALF; i++) {
    const int sample = first + i % SMOOTH_QUAD + 64 * c; /* not negative */
    const int x = sample / c - 64, row = y + i / SMOOTH_QUAD;
    float sum =
        s.blur[0] * get_input<Sample> (rule, in, stride, x, row, sample % c);

#pragma unroll 1
    for (int j = 1; j <= s.blur_reach; j++)
      sum += s.blur[j] *
             (get_input<Sample> (rule, in, stride, x, row - j, sample % c) +
                 get_input<Sample> (rule, in, stride, x, row + j, sample % c));
    to[i / SMOOTH_QUAD * NARROW_PITCH + i % SMOOTH_QUAD] = sum * TINY_SCALE;
  }
}

/* Blurs half a tile along rows. @tile: the first sample that its first pixel
 * needs; @n_columns: pixels of a row of it */
template <int KEPT, int REACH>
static __device__ void
blur_half (const float w[REACH + 1], int channels, int n_columns, float *tile)
{
  const int c = KEPT == EVERY ? channels : SMOOTH_QUAD;
  const int kept = KEPT == EVERY ? c : SMOOTH_QUAD - 1;
  float smooth[NARROW_ITEMS][NARROW_HALF];
  int at[NARROW_ITEMS];

#pragma unroll
  for (int k = 0; k < NARROW_ITEMS; k++) {
    const int item = (int) threadIdx.x + k * NARROW_THREADS;
    const int line = item / kept, group = line / NARROW_HALF;
    float v[NARROW_HALF + 2 * REACH];

    at[k] = group * NARROW_HALF < n_columns
                ? line % NARROW_HALF * NARROW_PITCH + group * NARROW_HALF * c +
                      item % kept
                : -1;
    if (at[k] < 0)
      continue;
#pragma unroll
    for (int i = 0; i < NARROW_HALF + 2 * REACH; i++)
      v[i] = tile[at[k] + i * c];
#pragma unroll
    for (int i = 0; i < NARROW_HALF; i++)
      smooth[k][i] = fold<REACH> (v + REACH + i, w);
  }
  __syncthreads ();
#pragma unroll
  for (int k = 0; k < NARROW_ITEMS; k++)
#pragma unroll
    for (int i = 0; i < NARROW_HALF; i++)
      if (at[k] >= 0)
        tile[at[k] + (REACH + i) * c] = smooth[k][i];
}

/* Of rules that are lean, see is_lean (). @REACH: at least that of the rule,
 * whose weights are 0 beyond; @KEPT: EVERY, or 7 of pixels of 4 */
template <typename Sample, int KEPT, int REACH>
static __global__ void
__launch_bounds__ (NARROW_THREADS) sharpen_narrow (
    const __grid_constant__ ImkLapsharpenRule rule, const uint8_t *in,
    size_t in_stride, uint8_t *out, size_t out_stride, uint2 filtered)
{
  __shared__ __align__ (16) float tile[NARROW_ROWS * NARROW_PITCH];
  const int c = KEPT == EVERY ? (int) rule.channels : SMOOTH_QUAD;
  const int row_size = (int) rule.width * c;
  const int width = get_narrow_width (c, REACH);
  const int first = (int) blockIdx.x * width, margin = REACH * c;
  const int spare = -margin & (SMOOTH_QUAD - 1), before = spare + margin;
  const int n_quads = (before + width + margin + SMOOTH_QUAD - 1) / SMOOTH_QUAD;
  const int top = (int) blockIdx.y * NARROW_ROWS;
  const int sample = first - before + SMOOTH_QUAD * (int) threadIdx.x;
  const bool whole =
      sample >= 0 && sample + SMOOTH_QUAD <= row_size &&
      (!rule.constant ||
          (top >= REACH && top + NARROW_ROWS + REACH <= (int) rule.height));
  float w[REACH + 1];

#pragma unroll
  for (int j = 0; j <= REACH; j++)
    w[j] = rule.smooth.blur[j] * FROM_TINY;
#pragma unroll 1
  for (int y = 0; y < NARROW_ROWS; y += NARROW_HALF) {
    float *to = &tile[y * NARROW_PITCH + SMOOTH_QUAD * (int) threadIdx.x];

    if ((int) threadIdx.x >= n_quads)
      break;
    if (whole)
      blur_quad<Sample, KEPT, REACH> (rule,
          in + (size_t) sample * sizeof (Sample), in_stride, top + y, w, to);
    else
      blur_samples<Sample> (rule, in, in_stride, sample, top + y, to);
  }
#pragma unroll
  for (int j = 0; j <= REACH; j++)
    w[j] = rule.smooth.blur[j];
#pragma unroll 1
  for (int y = 0; y < NARROW_ROWS; y += NARROW_HALF) {
    __syncthreads ();
    blur_half<KEPT, REACH> (w, c, width / c, tile + y * NARROW_PITCH + spare);
  }
  __syncthreads ();
#pragma unroll 4
  for (int i = threadIdx.x; i < NARROW_ROWS * width / SMOOTH_QUAD;
       i += NARROW_THREADS) {
    const int row = i / (width / SMOOTH_QUAD);
    const int at = i % (width / SMOOTH_QUAD) * SMOOTH_QUAD;
    const int y = top + row, n = min (row_size - first - at, SMOOTH_QUAD);
    const size_t x = (size_t) (first + at);
    Quad<Sample> quad;

    if (y >= (int) rule.height || n <= 0)
      continue;
    move_quad ((const Sample *) (in + y * in_stride) + x, (Sample *) &quad, n,
        n == SMOOTH_QUAD);
    quad = sharpen_lean<Sample, KEPT> (rule.amount, FROM_TINY, filtered,
        &tile[row * NARROW_PITCH + before + at], quad);
    move_quad ((const Sample *) &quad, (Sample *) (out + y * out_stride) + x, n,
        n == SMOOTH_QUAD);
  }
}

/* Returns: whether one kernel does what the rule asks for, and faster: with
 * fewer channels, threads wait for the banks of shared memory */
static bool
is_narrow (
    const ImkLapsharpenRule *rule, const ImkImage *in, const ImkImage *out)
{
  const int most = rule->channels == 4 ? 10 : rule->channels == 3 ? 8 : 4;

  return rule->smooth.step == 1 && !rule->smooth.is_log &&
         rule->smooth.blur_reach <= most && is_lean (rule, in, out);
}

static ImkStatus
launch_narrow (const ImkLapsharpenRule *rule, const ImkImage *in,
    const ImkImage *out, cudaStream_t stream, ImkError *error)
{
  const int c = (int) rule->channels, half = (rule->smooth.blur_reach + 1) / 2;
  const bool three = c == SMOOTH_QUAD && rule->filtered == 7;
  const auto kernel = instance (
      [] (auto type, auto three, auto half) {
        return sharpen_narrow < SampleOf<type>, three ? 7 : EVERY, 2 * half > ;
      },
      OneOf<IMK_TYPE_U8, IMK_TYPE_U16>{in->type}, three,
      OneOf<1, 2, 3, 4, 5>{half});
  const int width = get_narrow_width (c, 2 * half);
  cudaLaunchConfig_t launch =
      grid (dim3 (imk_div_up (rule->width * rule->channels, (uint32_t) width),
                imk_div_up (rule->height, NARROW_ROWS)),
          dim3 (NARROW_THREADS), stream);
  uint32_t filtered[THREAD_WORDS] = {};

  make_mask (rule, in->type, rule->filtered, filtered);
  return IMK_CUDA_LAUNCH (error, launch, kernel, *rule,
      (const uint8_t *) in->data, in->stride, (uint8_t *) out->data,
      out->stride, make_uint2 (filtered[0], filtered[1]));
}
