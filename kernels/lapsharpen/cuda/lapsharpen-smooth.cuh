/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only: how method=unsharp and method=log smooth a frame, see
 * lapsharpen-smooth.h. Two kernels make the blurred low samples, a tile of them
 * a block; sharpen_smooth () makes a frame of them where no sample needs its
 * neighbours besides, and smooth_at () a pixel elsewhere. Tiles hold samples of
 * all channels in a row; neighbours are as many samples apart as there are
 * channels. */
#pragma once

#include <type_traits>

#include "core/cuda/cuda-check.h"
#include "core/cuda/instance.cuh"
#include "lapsharpen/cuda/lapsharpen-rows.cuh"

enum {
  SMOOTH_THREADS = 256,
  SMOOTH_QUAD = 4,    /* samples that a thread reads or writes at once */
  SHRINK_ROWS = 4,    /* low rows of a block */
  SHRINK_WIDE = 1536, /* samples of the frame beneath a block */
  BLUR_ROWS = 8,      /* low rows of a block, and the low columns of a
                       * thread: so its threads read all banks */
  BLUR_SAMPLES = 512, /* low samples of a block in one row, at most */
  BLUR_ITEMS = BLUR_SAMPLES / SMOOTH_THREADS, /* of a thread */
  BLUR_PITCH = BLUR_SAMPLES + 2 * 4 * IMK_LAPSHARPEN_MAX_BLUR + 32,
  GROW_ROWS = 48, /* rows of a thread */
  GROW_AHEAD = 4, /* rows that it reads before it uses the first */
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
      (const Sample *) (in +
                        stride * imk_lapsharpen_inside (y, height, &rule)) +
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

/* Four samples from @at on, a multiple of their size, in float32. */
static __device__ void
load_quad_floats (
    const ImkLapsharpenRule &rule, const uint8_t *at, float v[SMOOTH_QUAD])
{
  const uint32_t word = __ldg ((const uint32_t *) at);

#pragma unroll
  for (int i = 0; i < SMOOTH_QUAD; i++)
    v[i] = (float) ((word >> 8 * i & 0xff) >> rule.shift);
}

static __device__ void
load_quad_floats (
    const ImkLapsharpenRule &rule, const uint16_t *at, float v[SMOOTH_QUAD])
{
  const uint2 words = __ldg ((const uint2 *) at);

  v[0] = (float) ((words.x & 0xffff) >> rule.shift);
  v[1] = (float) (words.x >> 16 >> rule.shift);
  v[2] = (float) ((words.y & 0xffff) >> rule.shift);
  v[3] = (float) (words.y >> 16 >> rule.shift);
}

/* What the samples @first .. @first + 3 of low row @y are shrunk to along
 * columns, where all of them are read whole. */
template <typename Sample>
static __device__ void
shrink_quad (const ImkLapsharpenRule &rule, const uint8_t *in, size_t stride,
    int first, int y, float sum[SMOOTH_QUAD])
{
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int height = rule.height;
  float v[SMOOTH_QUAD], w[SMOOTH_QUAD];

  load_quad_floats (rule,
      (const Sample *) (in +
                        stride * imk_lapsharpen_inside (y, height, &rule)) +
          first,
      v);
#pragma unroll
  for (int i = 0; i < SMOOTH_QUAD; i++)
    sum[i] = s.shrink[0] * v[i];
#pragma unroll 4
  for (int j = 1; j <= s.shrink_reach; j++) {
    const int above = imk_lapsharpen_inside (y - j, height, &rule);
    const int below = imk_lapsharpen_inside (y + j, height, &rule);

    load_quad_floats (rule, (const Sample *) (in + stride * above) + first, v);
    load_quad_floats (rule, (const Sample *) (in + stride * below) + first, w);
#pragma unroll
    for (int i = 0; i < SMOOTH_QUAD; i++)
      sum[i] += s.shrink[j] * (v[i] + w[i]);
  }
}

/* The same of one sample, which may be outside. */
template <typename Sample>
static __device__ float
shrink_sample (const ImkLapsharpenRule &rule, const uint8_t *in, size_t stride,
    int x, int y, int channel)
{
  const ImkLapsharpenSmooth &s = rule.smooth;
  float sum = s.shrink[0] * get_input<Sample> (rule, in, stride, x, y, channel);

  for (int j = 1; j <= s.shrink_reach; j++)
    sum += s.shrink[j] *
           (get_input<Sample> (rule, in, stride, x, y - j, channel) +
               get_input<Sample> (rule, in, stride, x, y + j, channel));
  return sum;
}

/* @n_columns: low columns of a block; @aligned: every fourth sample of a row
 * stands at a multiple of the size of four */
template <typename Sample>
static __global__ void
__launch_bounds__ (SMOOTH_THREADS) shrink_frame (
    const __grid_constant__ ImkLapsharpenRule rule, const uint8_t *in,
    size_t stride, bool aligned, int n_columns, const Low low)
{
  __shared__ __align__ (16) float wide[SHRINK_ROWS][SHRINK_WIDE];
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int c = rule.channels, reach = s.halo + s.blur_reach;
  const int row_size = (int) rule.width * c;
  const int low_columns = low.columns + 2 * reach;
  const int low_rows = low.rows + 2 * reach;
  const int column = (int) blockIdx.y * n_columns;
  const int row = (int) blockIdx.x * SHRINK_ROWS;
  const int n = min (n_columns, low_columns - column);
  const int n_rows = min ((int) SHRINK_ROWS, low_rows - row);
  const int left = ((column - reach) * s.step - s.shrink_reach) * c;
  const int spare = left & (SMOOTH_QUAD - 1); /* of negative ones, too */
  const int n_quads = (spare + ((n - 1) * s.step + 2 * s.shrink_reach + 1) * c +
                          SMOOTH_QUAD - 1) /
                      SMOOTH_QUAD;

  for (int r = 0; r < n_rows; r++) {
    const int y = (row + r - reach) * s.step;
    const bool whole =
        aligned && rule.weight_channel < 0 &&
        (!rule.constant ||
            (y >= s.shrink_reach && y + s.shrink_reach < (int) rule.height));

    for (int i = threadIdx.x; i < n_quads; i += SMOOTH_THREADS) {
      const int first = left - spare + SMOOTH_QUAD * i;
      float sum[SMOOTH_QUAD];

      if (whole && first >= 0 && first + SMOOTH_QUAD <= row_size)
        shrink_quad<Sample> (rule, in, stride, first, y, sum);
      else
#pragma unroll 1
        for (int j = 0; j < SMOOTH_QUAD; j++) {
          const int at = first + j + 64 * 1024 * c; /* not negative */

          sum[j] = shrink_sample<Sample> (
              rule, in, stride, at / c - 64 * 1024, y, at % c);
        }
      *(float4 *) &wide[r][SMOOTH_QUAD * i] =
          make_float4 (sum[0], sum[1], sum[2], sum[3]);
    }
  }
  __syncthreads ();
  for (int i = threadIdx.x; i < n * c; i += SMOOTH_THREADS) {
    const int from = spare + (i / c * s.step + s.shrink_reach) * c + i % c;

    for (int r = 0; r < n_rows; r++) {
      const float *at = &wide[r][from];
      float sum = s.shrink[0] * at[0];

      for (int j = 1; j <= s.shrink_reach; j++)
        sum += s.shrink[j] * (at[-j * c] + at[j * c]);
      low.shrunk[((size_t) (row + r) * low_columns + column) * c + i] = sum;
    }
  }
}

/* --- blurring ------------------------------------------------------------- */

/* w[0] v_0 + w[1] (v_-1 + v_1) + ... */
template <int REACH>
static __device__ float
fold (const float *at, const float *w)
{
  float sum = w[0] * at[0];

#pragma unroll
  for (int j = 1; j <= REACH; j++)
    sum += w[j] * (at[-j] + at[j]);
  return sum;
}

/* Reads BLUR_ROWS samples and those beside them, @stride apart, of which the
 * first @n are there. */
template <int REACH>
static __device__ void
load_line (
    const float *from, size_t stride, int n, float v[BLUR_ROWS + 2 * REACH])
{
#pragma unroll
  for (int i = 0; i < BLUR_ROWS + 2 * REACH; i++)
    v[i] = i < n ? from[i * stride] : 0.0f;
}

/* @n_columns: low columns of a block. Each thread has a column of the tile in
 * registers, then BLUR_ROWS samples of a row of it. */
template <int REACH, bool IS_LOG>
static __global__ void
__launch_bounds__ (SMOOTH_THREADS)
    blur_low (const __grid_constant__ ImkLapsharpenRule rule, int n_columns,
        const Low low)
{
  __shared__ float blurred[BLUR_ROWS * BLUR_PITCH];
  __shared__ float curved[IS_LOG ? BLUR_ROWS * BLUR_PITCH : 1];
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int c = rule.channels, halo = s.halo;
  const int low_columns = low.columns + 2 * halo;
  const int column = (int) blockIdx.y * n_columns;
  const int row = (int) blockIdx.x * BLUR_ROWS;
  const int n = min (n_columns, low_columns - column);
  const int n_rows = min ((int) BLUR_ROWS, low.rows + 2 * halo - row);
  const int pitch = BLUR_PITCH / 32 * 32 + c;
  const size_t stride = (size_t) (low_columns + 2 * REACH) * c;
  const float *from = low.shrunk + row * stride + (size_t) column * c;
  float *to = low.blurred + ((size_t) row * low_columns + column) * c;
  float v[BLUR_ROWS + 2 * REACH], w[BLUR_ROWS + 2 * REACH];
  float smooth[BLUR_ITEMS][BLUR_ROWS];

  for (int i = threadIdx.x; i < (n + 2 * REACH) * c; i += SMOOTH_THREADS) {
    load_line<REACH> (from + i, stride, n_rows + 2 * REACH, v);
#pragma unroll
    for (int r = 0; r < BLUR_ROWS; r++) {
      blurred[r * pitch + i] = fold<REACH> (v + REACH + r, s.blur);
      if (IS_LOG)
        curved[r * pitch + i] = fold<REACH> (v + REACH + r, s.curve);
    }
  }
  __syncthreads ();
#pragma unroll
  for (int k = 0; k < BLUR_ITEMS; k++) {
    const int item = threadIdx.x + k * SMOOTH_THREADS;
    const int group = item / (BLUR_ROWS * c);
    const int at =
        item / c % BLUR_ROWS * pitch + group * BLUR_ROWS * c + item % c;
    const int there = n + 2 * REACH - group * BLUR_ROWS;

    load_line<REACH> (blurred + at, c, there, v);
    if (IS_LOG)
      load_line<REACH> (curved + at, c, there, w);
#pragma unroll
    for (int r = 0; r < BLUR_ROWS; r++) {
      smooth[k][r] = fold<REACH> (v + REACH + r, IS_LOG ? s.curve : s.blur);
      if (IS_LOG)
        smooth[k][r] += fold<REACH> (w + REACH + r, s.blur);
    }
  }
  __syncthreads ();
#pragma unroll
  for (int k = 0; k < BLUR_ITEMS; k++) {
    const int item = threadIdx.x + k * SMOOTH_THREADS;
    const int group = item / (BLUR_ROWS * c);
    const int at =
        item / c % BLUR_ROWS * pitch + group * BLUR_ROWS * c + item % c;

#pragma unroll
    for (int r = 0; r < BLUR_ROWS; r++)
      if (group * BLUR_ROWS + r < n)
        blurred[at + r * c] = smooth[k][r];
  }
  __syncthreads ();
  for (int i = threadIdx.x; i < n * c; i += SMOOTH_THREADS)
    for (int r = 0; r < n_rows; r++)
      to[(size_t) r * low_columns * c + i] = blurred[r * pitch + i];
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
  const float *at =
      low.blurred + (row + s.halo) * stride + (column + s.halo) * c + channel;
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

/* --- sharpening by what is smoothed ----------------------------------------
 */

/* Samples of a row that a thread has, and what grows them. */
struct Quad {
  int n; /* samples that are there */
  int channel[SMOOTH_QUAD];
  const float *at[SMOOTH_QUAD]; /* in the first low row */
  float w[SMOOTH_QUAD][3];
};

/* Along one low row, @offset after the first. @PIXEL: the quad is a pixel */
template <bool PIXEL>
static __device__ void
grow_quad (
    const Quad &q, size_t offset, int c, int halo, float row[SMOOTH_QUAD])
{
  if constexpr (PIXEL) {
    const float4 *at = (const float4 *) (q.at[0] + offset);
    const float *w = q.w[0];
    const float4 b = __ldg (at);

    row[0] = b.x, row[1] = b.y, row[2] = b.z, row[3] = b.w;
    if (halo) {
      const float4 a = __ldg (at - 1), d = __ldg (at + 1);

      row[0] = w[0] * a.x + w[1] * b.x + w[2] * d.x;
      row[1] = w[0] * a.y + w[1] * b.y + w[2] * d.y;
      row[2] = w[0] * a.z + w[1] * b.z + w[2] * d.z;
      row[3] = w[0] * a.w + w[1] * b.w + w[2] * d.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < SMOOTH_QUAD; i++)
      row[i] = grow (q.at[i] + offset, c, q.w[i], halo);
  }
}

template <bool PIXEL>
static __device__ Quad
make_quad (const ImkLapsharpenRule &rule, const Low &low, int first)
{
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int c = rule.channels, half = s.step / 2;
  Quad q;

  q.n = min ((int) SMOOTH_QUAD, (int) rule.width * c - first);
#pragma unroll
  for (int i = 0; i < SMOOTH_QUAD; i++) {
    const int at = i < q.n ? first + i : first;
    const int x = PIXEL ? first / SMOOTH_QUAD : at / c;

    q.channel[i] = PIXEL ? i : at % c;
    q.at[i] = low.blurred + ((x + half) / s.step + s.halo) * c + q.channel[i];
#pragma unroll
    for (int k = 0; k < 3; k++)
      q.w[i][k] = s.grow[(x + half) % s.step][k];
  }
  return q;
}

/* The new samples of a quad of which smoothing makes @smooth. */
template <typename Sample, bool PIXEL>
static __device__ void
sharpen_quad (const ImkLapsharpenRule &rule, const Quad &q,
    const float smooth[SMOOTH_QUAD], Sample samples[SMOOTH_QUAD])
{
  float transparent = 0;

  if (PIXEL)
#pragma unroll
    for (int i = 0; i < SMOOTH_QUAD; i++)
      if (rule.weight_channel == i)
        transparent = smooth[i];
#pragma unroll
  for (int i = 0; i < SMOOTH_QUAD; i++) {
    const int32_t v = samples[i] >> rule.shift;
    int32_t value = v;

    if (rule.filtered >> q.channel[i] & 1)
      value = imk_lapsharpen_sample (rule.amount, rule.threshold, rule.soft,
          rule.edges, imk_lapsharpen_detail (&rule, v, smooth[i], transparent),
          v, 0, (int32_t) rule.maximum);
    if (rule.limited)
      value = imk_lapsharpen_limited (&rule, v, value, q.channel[i]);
    samples[i] = (Sample) (value << rule.shift);
  }
}

template <typename Sample>
static __device__ void
move_quad (const Sample *from, Sample *to, int n, bool aligned)
{
  if (aligned && n == SMOOTH_QUAD) {
    typedef
        typename std::conditional<sizeof (Sample) == 1, uint32_t, uint2>::type
            Whole;

    *(Whole *) to = *(const Whole *) from;
    return;
  }
#pragma unroll
  for (int i = 0; i < SMOOTH_QUAD; i++)
    if (i < n)
      to[i] = from[i];
}

/* @aligned: as for shrink_frame (), of both images */
template <typename Sample, bool PIXEL>
static __global__ void
__launch_bounds__ (SMOOTH_THREADS)
    sharpen_smooth (const __grid_constant__ ImkLapsharpenRule rule,
        const uint8_t *in, size_t in_stride, uint8_t *out, size_t out_stride,
        bool aligned, const Low low)
{
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int c = rule.channels;
  const int first =
      ((int) blockIdx.x * SMOOTH_THREADS + (int) threadIdx.x) * SMOOTH_QUAD;
  const int top = (int) blockIdx.y * GROW_ROWS;
  const int end = min (top + GROW_ROWS, (int) rule.height);
  const size_t stride = (size_t) (low.columns + 2 * s.halo) * c;
  int phase = (top + s.step / 2) % s.step;
  size_t next = (top + s.step / 2) / s.step * stride; /* low row to read */
  float rows[3][SMOOTH_QUAD] = {};
  Quad q;

  if (first >= (int) rule.width * c)
    return;
  q = make_quad<PIXEL> (rule, low, first);
  for (int i = 1 - s.halo; i <= 1 + s.halo; i++, next += stride)
    grow_quad<PIXEL> (q, next, c, s.halo,
        i == 0   ? rows[0]
        : i == 1 ? rows[1]
                 : rows[2]);
#pragma unroll 1
  for (int y = top; y < end; y += GROW_AHEAD) {
    __align__ (8) Sample samples[GROW_AHEAD][SMOOTH_QUAD];

#pragma unroll
    for (int r = 0; r < GROW_AHEAD; r++)
      if (y + r < end)
        move_quad ((const Sample *) (in + (size_t) (y + r) * in_stride) + first,
            samples[r], q.n, aligned);
#pragma unroll
    for (int r = 0; r < GROW_AHEAD; r++) {
      float smooth[SMOOTH_QUAD];

      if (y + r >= end)
        break;
      if (phase == s.step) {
        phase = 0;
#pragma unroll
        for (int i = 0; i < SMOOTH_QUAD; i++) {
          rows[0][i] = rows[1][i];
          rows[1][i] = rows[2][i];
        }
        grow_quad<PIXEL> (q, next, c, s.halo, s.halo ? rows[2] : rows[1]);
        next += stride;
      }
#pragma unroll
      for (int i = 0; i < SMOOTH_QUAD; i++) {
        const float *w = s.grow[phase];

        smooth[i] =
            s.halo ? w[0] * rows[0][i] + w[1] * rows[1][i] + w[2] * rows[2][i]
                   : rows[1][i];
      }
      phase++;
      sharpen_quad<Sample, PIXEL> (rule, q, smooth, samples[r]);
      move_quad (samples[r],
          (Sample *) (out + (size_t) (y + r) * out_stride) + first, q.n,
          aligned);
    }
  }
}

/* Returns: whether sharpen_smooth () can do what the rule asks for: it sees no
 * neighbours, and a pixel's weight in pixels of 4 samples alone */
static bool
is_for_smooth (const ImkLapsharpenRule *rule)
{
  return !rule->local && !rule->measured &&
         (rule->weight_channel < 0 || rule->channels == 4);
}

static bool
has_quads (const ImkImage *image)
{
  const size_t size = SMOOTH_QUAD * imk_type_size (image->type);

  return (uintptr_t) image->data % size == 0 && image->stride % size == 0;
}

static ImkStatus
launch_sharpen_smooth (const ImkLapsharpenRule *rule, const ImkImage *in,
    const ImkImage *out, const Low &low, cudaStream_t stream, ImkError *error)
{
  const auto kernel = instance (
      [] (auto type, auto pixel) {
        return sharpen_smooth<SampleOf<type>, pixel>;
      },
      OneOf<IMK_TYPE_U8, IMK_TYPE_U16>{in->type},
      rule->channels == SMOOTH_QUAD);
  cudaLaunchConfig_t launch = {};

  launch.blockDim = dim3 (SMOOTH_THREADS);
  launch.gridDim = dim3 (
      imk_div_up (rule->width * rule->channels, SMOOTH_THREADS * SMOOTH_QUAD),
      imk_div_up (rule->height, GROW_ROWS));
  launch.stream = stream;
  return IMK_CUDA_LAUNCH (error, launch, kernel, *rule,
      (const uint8_t *) in->data, in->stride, (uint8_t *) out->data,
      out->stride, has_quads (in) && has_quads (out), low);
}

typedef void (*BlurKernel) (ImkLapsharpenRule, int, Low);

/* @REACH: from the largest down to that of the rule */
template <int REACH>
static BlurKernel
choose_blur (const ImkLapsharpenSmooth *s)
{
  if constexpr (REACH > 1)
    if (s->blur_reach < REACH)
      return choose_blur<REACH - 1> (s);
  return s->is_log ? blur_low<REACH, true> : blur_low<REACH, false>;
}

static inline ImkStatus
launch_smooth (const ImkLapsharpenRule *rule, const ImkImage *in,
    const Low &low, cudaStream_t stream, ImkError *error)
{
  const ImkLapsharpenSmooth *s = &rule->smooth;
  const auto shrink =
      in->type == IMK_TYPE_U8 ? shrink_frame<uint8_t> : shrink_frame<uint16_t>;
  const BlurKernel blur = choose_blur<IMK_LAPSHARPEN_MAX_BLUR> (s);
  const int c = (int) rule->channels, reach = s->halo + s->blur_reach;
  const int wide =
      ((SHRINK_WIDE - 2 * SMOOTH_QUAD) / c - 2 * s->shrink_reach - 1) /
          s->step +
      1;
  const int blurred = BLUR_SAMPLES / c / BLUR_ROWS * BLUR_ROWS;
  cudaLaunchConfig_t launch = {};
  ImkStatus status;

  launch.blockDim = dim3 (SMOOTH_THREADS);
  launch.gridDim =
      dim3 (imk_div_up ((uint32_t) (low.rows + 2 * reach), SHRINK_ROWS),
          imk_div_up ((uint32_t) (low.columns + 2 * reach), (uint32_t) wide));
  launch.stream = stream;
  status = IMK_CUDA_LAUNCH (error, launch, shrink, *rule,
      (const uint8_t *) in->data, in->stride, has_quads (in), wide, low);
  if (status != IMK_OK)
    return status;
  launch.gridDim = dim3 (
      imk_div_up ((uint32_t) (low.rows + 2 * s->halo), BLUR_ROWS),
      imk_div_up ((uint32_t) (low.columns + 2 * s->halo), (uint32_t) blurred));
  return IMK_CUDA_LAUNCH (error, launch, blur, *rule, blurred, low);
}
