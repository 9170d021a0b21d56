/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only: the low samples of method=unsharp and method=log, see
 * lapsharpen-smooth.h. Two kernels shrink the frame and blur it, a tile a
 * block. Tiles hold samples of all channels in a row; neighbours are as many
 * samples apart as there are channels. */
#pragma once

#include "core/cuda/cuda-check.h"
#include "core/cuda/instance.cuh"
#include "lapsharpen/cuda/lapsharpen-rows.cuh"
#include "lapsharpen/cuda/lapsharpen-tiny.cuh"

enum {
  SMOOTH_THREADS = 256,
  SHRINK_ROWS = 4,    /* low rows of a block */
  SHRINK_WIDE = 2048, /* samples of the frame beneath a block */
  SHRINK_READS =      /* and rows, at most */
  (SHRINK_ROWS - 1) * IMK_LAPSHARPEN_MAX_STEP + 2 * IMK_LAPSHARPEN_MAX_SHRINK +
  1,
  BLUR_ROWS = 8,      /* low rows of a block, and the low columns of a
                       * thread: so its threads read all banks */
  BLUR_SAMPLES = 512, /* samples in one row of what a block reads, at most */
  BLUR_ITEMS = BLUR_SAMPLES / SMOOTH_THREADS, /* of a thread */
};

/* The low samples of a frame, some of them beside it. */
struct Low {
  float *shrunk;  /* reach more on either side, and above and below */
  float *blurred; /* halo more */
  int columns, rows;
  int kept;     /* bit c: channel c has low samples */
  int channels; /* that have */
};

/* @kept: EVERY, or 3 channels of 4 that stand side by side */
static Low
make_low (const ImkLapsharpenRule *rule, int kept, float *memory)
{
  const int step = rule->smooth.step;
  const int reach = rule->smooth.halo + rule->smooth.blur_reach;
  Low low = {};

  low.columns = ((int) rule->width - 1 + step / 2) / step + 1;
  low.rows = ((int) rule->height - 1 + step / 2) / step + 1;
  low.kept = kept;
  low.channels = kept == EVERY ? (int) rule->channels : SMOOTH_QUAD - 1;
  low.shrunk = memory;
  low.blurred = memory + (size_t) (low.columns + 2 * reach) *
                             (size_t) (low.rows + 2 * reach) * low.channels;
  return low;
}

/* Floats of both planes, and of the rows below the first that blur_low () may
 * read. */
static size_t
get_low_size (const ImkLapsharpenRule *rule)
{
  const Low low = make_low (rule, EVERY, nullptr);
  const size_t halo = (size_t) rule->smooth.halo;
  const size_t reach = halo + (size_t) rule->smooth.blur_reach;

  return (size_t) (low.blurred - low.shrunk) +
         ((low.columns + 2 * halo) * (low.rows + 2 * halo) +
             (low.columns + 2 * reach) * BLUR_ROWS) *
             rule->channels;
}

/* --- reading ----------------------------------------------------------------
 */

#define FROM_TINY 0x1p127f
#define TINY_SCALE (TINY * FROM_TINY) /* of products with FROM_TINY */

static __device__ uint32_t
shift_quad (uint32_t quad, uint32_t shift)
{
  return quad >> shift & (0xffu >> shift) * 0x01010101u;
}

static __device__ uint2
shift_quad (uint2 quad, uint32_t shift)
{
  const uint32_t kept = (0xffffu >> shift) * 0x00010001u;

  return make_uint2 (quad.x >> shift & kept, quad.y >> shift & kept);
}

template <typename Sample, bool SHIFTED>
static __device__ Quad<Sample>
read_quad (const ImkLapsharpenRule &rule, const uint8_t *at)
{
  const Quad<Sample> quad = __ldg ((const Quad<Sample> *) at);

  return SHIFTED ? shift_quad (quad, rule.shift) : quad;
}

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

/* --- shrinking ------------------------------------------------------------ */

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

/* What a block reads of the frame. */
struct Tile {
  int first, y; /* sample and row, the middle of the first one it makes */
  int n_quads, n_rows;
  int begin, end; /* the quads that are in the row and read whole */
};

static __device__ const uint8_t *
get_quad (const uint8_t *in, size_t stride, const Tile &tile, int i, int y,
    int sample_size)
{
  return in + y * stride +
         (ptrdiff_t) (tile.first + SMOOTH_QUAD * i) * sample_size;
}

/* Shrinks the quads of a tile along columns, times TINY_SCALE. */
template <typename Sample, int KEPT, bool SHIFTED>
static __device__ void
shrink_quads (const ImkLapsharpenRule &rule, const uint8_t *in, size_t stride,
    const Tile &tile, float *wide)
{
  __shared__ int rows[SHRINK_READS];
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int n = tile.end - tile.begin;

  for (int i = threadIdx.x; i < SHRINK_READS; i += SMOOTH_THREADS)
    rows[i] = imk_lapsharpen_inside (
        tile.y - s.shrink_reach + i, (int) rule.height, &rule);
  __syncthreads ();
#pragma unroll 1
  for (int item = threadIdx.x; item < n * tile.n_rows; item += SMOOTH_THREADS) {
    const int i = tile.begin + item % n, r = item / n;
    const uint8_t *column =
        get_quad (in, stride, tile, i, 0, (int) sizeof (Sample));
    const int *row = rows + r * s.step + s.shrink_reach;
    const auto middle =
        read_quad<Sample, SHIFTED> (rule, column + row[0] * stride);
    float weight = s.shrink[0] * FROM_TINY;
    float sum[SMOOTH_QUAD] = {};

#pragma unroll
    for (int k = 0; k < SMOOTH_QUAD; k++)
      if (KEPT >> k & 1)
        sum[k] = weight * get_tiny (middle, k);
#pragma unroll 4
    for (int j = 1; j <= s.shrink_reach; j++) {
      const auto a =
          read_quad<Sample, SHIFTED> (rule, column + row[-j] * stride);
      const auto b =
          read_quad<Sample, SHIFTED> (rule, column + row[j] * stride);

      weight = s.shrink[j] * FROM_TINY;
#pragma unroll
      for (int k = 0; k < SMOOTH_QUAD; k++)
        if (KEPT >> k & 1)
          sum[k] += weight * (get_tiny (a, k) + get_tiny (b, k));
    }
    *(float4 *) &wide[r * SHRINK_WIDE + SMOOTH_QUAD * i] =
        make_float4 (sum[0], sum[1], sum[2], sum[3]);
  }
}

/* The same where all rows are in the frame: the usual case, with the fewest
 * instructions. A thread reads the rows of its quads once. */
template <typename Sample, int KEPT, bool SHIFTED, int STEP>
static __device__ void
shrink_inside (const ImkLapsharpenRule &rule, const uint8_t *in, size_t stride,
    const Tile &tile, float *wide)
{
  constexpr int reach = (3 * STEP - 1) / 2;
  constexpr int n = (SHRINK_ROWS - 1) * STEP + 2 * reach + 1;
  float w[reach + 1];

#pragma unroll
  for (int j = 0; j <= reach; j++)
    w[j] = rule.smooth.shrink[j] * FROM_TINY;
#pragma unroll 1
  for (int i = tile.begin + (int) threadIdx.x; i < tile.end;
       i += SMOOTH_THREADS) {
    const uint8_t *at =
        get_quad (in, stride, tile, i, tile.y - reach, sizeof (Sample));
    Quad<Sample> quads[n];
    float sum[SHRINK_ROWS][SMOOTH_QUAD] = {};

#pragma unroll
    for (int k = 0; k < n; k++, at += stride)
      quads[k] = read_quad<Sample, SHIFTED> (rule, at);
#pragma unroll
    for (int k = 0; k < SMOOTH_QUAD; k++) {
      float v[n];

      if (!(KEPT >> k & 1))
        continue;
#pragma unroll
      for (int j = 0; j < n; j++)
        v[j] = get_tiny (quads[j], k);
#pragma unroll
      for (int r = 0; r < SHRINK_ROWS; r++)
        sum[r][k] = fold<reach> (v + reach + r * STEP, w);
    }
#pragma unroll
    for (int r = 0; r < SHRINK_ROWS; r++)
      *(float4 *) &wide[r * SHRINK_WIDE + SMOOTH_QUAD * i] =
          make_float4 (sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
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

#pragma unroll 1
  for (int j = 1; j <= s.shrink_reach; j++)
    sum += s.shrink[j] *
           (get_input<Sample> (rule, in, stride, x, y - j, channel) +
               get_input<Sample> (rule, in, stride, x, y + j, channel));
  return sum * TINY_SCALE;
}

/* Fills in the other samples of a tile: from the quads, where the border is
 * made of what they hold, else one by one. */
template <typename Sample>
static __device__ void
shrink_beside (const ImkLapsharpenRule &rule, const uint8_t *in, size_t stride,
    const Tile &tile, float *wide)
{
  const int c = rule.channels, width = rule.width;
  const int begin = SMOOTH_QUAD * tile.begin, end = SMOOTH_QUAD * tile.end;
  const int n = begin + SMOOTH_QUAD * tile.n_quads - end;

#pragma unroll 1
  for (int item = threadIdx.x; item < n * tile.n_rows; item += SMOOTH_THREADS) {
    const int r = item / n, left = item % n;
    const int i = left < begin ? left : left - begin + end;
    const int sample = tile.first + i + 64 * 1024 * c; /* not negative */
    const int x = sample / c - 64 * 1024, channel = sample % c;
    const int from =
        imk_lapsharpen_inside (x, width, &rule) * c + channel - tile.first;
    const bool outside = x < 0 || x >= width;

    wide[r * SHRINK_WIDE + i] =
        !(rule.constant && outside) && from >= begin && from < end
            ? wide[r * SHRINK_WIDE + from]
            : shrink_sample<Sample> (
                  rule, in, stride, x, tile.y + r * rule.smooth.step, channel);
  }
}

/* Fills a tile. @aligned: every fourth sample of a row stands at a multiple of
 * the size of four */
template <typename Sample, int KEPT, bool SHIFTED>
static __device__ void
shrink_tile (const ImkLapsharpenRule &rule, const uint8_t *in, size_t stride,
    bool aligned, Tile tile, float *wide)
{
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int row_size = (int) rule.width * (int) rule.channels;
  const bool inside =
      tile.y >= s.shrink_reach &&
      tile.y + (tile.n_rows - 1) * s.step + s.shrink_reach < (int) rule.height;

  if (aligned && rule.weight_channel < 0 && (inside || !rule.constant)) {
    tile.begin =
        min (max (SMOOTH_QUAD - 1 - tile.first, 0) / SMOOTH_QUAD, tile.n_quads);
    tile.end =
        max (min (max (row_size - tile.first, 0) / SMOOTH_QUAD, tile.n_quads),
            tile.begin);
  }
  if (inside && tile.n_rows == SHRINK_ROWS && s.step == 3)
    shrink_inside<Sample, KEPT, SHIFTED, 3> (rule, in, stride, tile, wide);
  else if (inside && tile.n_rows == SHRINK_ROWS && s.step == 2)
    shrink_inside<Sample, KEPT, SHIFTED, 2> (rule, in, stride, tile, wide);
  else
    shrink_quads<Sample, KEPT, SHIFTED> (rule, in, stride, tile, wide);
  if (tile.begin > 0 || tile.end < tile.n_quads) {
    __syncthreads ();
    shrink_beside<Sample> (rule, in, stride, tile, wide);
  }
}

/* Shrinks @n_rows of a tile along rows, to @n low columns. @REACH: 0 for any;
 * @stride: low columns of a row */
template <int KEPT, int REACH>
static __device__ void
shrink_along (const ImkLapsharpenSmooth &s, int c, const float *wide, int n,
    int n_rows, float *low, int stride)
{
  const int low_c = KEPT == EVERY ? c : SMOOTH_QUAD - 1;
  const int reach = REACH ? REACH : s.shrink_reach;

  for (int i = threadIdx.x; i < n * low_c; i += SMOOTH_THREADS) {
    const float *at = wide + (i / low_c * s.step + reach) * c + i % low_c +
                      (KEPT & 1 ? 0 : 1);
    float *to = low + i;
    float weight = s.shrink[0] / TINY_SCALE;
    float sum[SHRINK_ROWS];

#pragma unroll
    for (int r = 0; r < SHRINK_ROWS; r++)
      sum[r] = weight * at[r * SHRINK_WIDE];
#pragma unroll 4
    for (int j = 1; j <= reach; j++) {
      weight = s.shrink[j] / TINY_SCALE;
#pragma unroll
      for (int r = 0; r < SHRINK_ROWS; r++)
        sum[r] += weight *
                  (at[r * SHRINK_WIDE - j * c] + at[r * SHRINK_WIDE + j * c]);
    }
#pragma unroll
    for (int r = 0; r < SHRINK_ROWS; r++, to += (ptrdiff_t) stride * low_c)
      if (r < n_rows)
        *to = sum[r];
  }
}

/* @n_columns: low columns of a block; @aligned: as above; @KEPT: low.kept;
 * @SHIFTED: by rule.shift */
template <typename Sample, int KEPT, bool SHIFTED>
static __global__ void
__launch_bounds__ (SMOOTH_THREADS, 4) shrink_frame (
    const __grid_constant__ ImkLapsharpenRule rule, const uint8_t *in,
    size_t stride, bool aligned, int n_columns, const Low low)
{
  __shared__ __align__ (16) float wide[SHRINK_ROWS][SHRINK_WIDE];
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int c = KEPT == EVERY ? (int) rule.channels : SMOOTH_QUAD;
  const int low_c = KEPT == EVERY ? c : SMOOTH_QUAD - 1;
  const int reach = s.halo + s.blur_reach;
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
  float *to = low.shrunk + ((size_t) row * low_columns + column) * low_c;

  shrink_tile<Sample, KEPT, SHIFTED> (rule, in, stride, aligned,
      {left - spare, (row - reach) * s.step, n_quads, n_rows}, wide[0]);
  __syncthreads ();
  if (s.shrink_reach == 4)
    shrink_along<KEPT, 4> (s, c, wide[0] + spare, n, n_rows, to, low_columns);
  else
    shrink_along<KEPT, 0> (s, c, wide[0] + spare, n, n_rows, to, low_columns);
}

/* --- blurring ------------------------------------------------------------- */

/* Reads BLUR_ROWS samples and those beside them, @stride apart. */
template <int REACH>
static __device__ void
load_line (const float *from, int stride, float v[BLUR_ROWS + 2 * REACH])
{
#pragma unroll
  for (int i = 0; i < BLUR_ROWS + 2 * REACH; i++, from += stride)
    v[i] = *from;
}

/* @n_columns: low columns of a block, a multiple of BLUR_ROWS. Each thread has
 * a column of the tile in registers, then BLUR_ROWS samples of a row of it.
 * What it reads beyond the tile or the plane goes nowhere. */
template <int REACH, bool IS_LOG>
static __global__ void
__launch_bounds__ (SMOOTH_THREADS)
    blur_low (const __grid_constant__ ImkLapsharpenRule rule, int n_columns,
        const Low low)
{
  constexpr int most = BLUR_ROWS * (BLUR_SAMPLES + SMOOTH_QUAD);
  __shared__ float blurred[most];
  __shared__ float curved[IS_LOG ? most : 1];
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int c = low.channels, halo = s.halo;
  const int low_columns = low.columns + 2 * halo;
  const int column = (int) blockIdx.y * n_columns;
  const int row = (int) blockIdx.x * BLUR_ROWS;
  const int n = min (n_columns, low_columns - column);
  const int n_rows = min ((int) BLUR_ROWS, low.rows + 2 * halo - row);
  const int pitch = BLUR_SAMPLES + c;
  const int stride = (low_columns + 2 * REACH) * c;
  const float *from = low.shrunk + (size_t) row * stride + column * c;
  float *to =
      low.blurred + ((size_t) row * low_columns + column) * c + threadIdx.x;
  float v[BLUR_ROWS + 2 * REACH], w[BLUR_ROWS + 2 * REACH];
  float smooth[BLUR_ITEMS][BLUR_ROWS];
  int at[BLUR_ITEMS];

#pragma unroll 1
  for (int i = threadIdx.x; i < (n + 2 * REACH) * c; i += SMOOTH_THREADS) {
    load_line<REACH> (from + i, stride, v);
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
    const int line = (threadIdx.x + k * SMOOTH_THREADS) / c;
    const int channel = threadIdx.x + k * SMOOTH_THREADS - line * c;
    const int group = line / BLUR_ROWS;

    at[k] = group * BLUR_ROWS < n
                ? line % BLUR_ROWS * pitch + group * BLUR_ROWS * c + channel
                : -1;
    if (at[k] < 0)
      continue;
    load_line<REACH> (blurred + at[k], c, v);
    if (IS_LOG)
      load_line<REACH> (curved + at[k], c, w);
#pragma unroll
    for (int r = 0; r < BLUR_ROWS; r++) {
      smooth[k][r] = fold<REACH> (v + REACH + r, IS_LOG ? s.curve : s.blur);
      if (IS_LOG)
        smooth[k][r] += fold<REACH> (w + REACH + r, s.blur);
    }
  }
  __syncthreads ();
#pragma unroll
  for (int k = 0; k < BLUR_ITEMS; k++)
#pragma unroll
    for (int r = 0; r < BLUR_ROWS; r++)
      if (at[k] >= 0)
        blurred[at[k] + r * c] = smooth[k][r];
  __syncthreads ();
#pragma unroll
  for (int r = 0; r < BLUR_ROWS; r++, to += low_columns * c)
#pragma unroll
    for (int i = 0; i < BLUR_SAMPLES; i += SMOOTH_THREADS)
      if (r < n_rows && (int) threadIdx.x + i < n * c)
        to[i] = blurred[r * pitch + (int) threadIdx.x + i];
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

static bool
has_quads (const ImkImage *image)
{
  const size_t size = SMOOTH_QUAD * imk_type_size (image->type);

  return (uintptr_t) image->data % size == 0 && image->stride % size == 0;
}

/* Makes the low samples of a frame. */
static ImkStatus
launch_low (const ImkLapsharpenRule *rule, const ImkImage *in, const Low &low,
    cudaStream_t stream, ImkError *error)
{
  const ImkLapsharpenSmooth *s = &rule->smooth;
  const auto shrink = instance (
      [] (auto type, auto kept, auto shifted) {
        return shrink_frame < SampleOf<type>, shifted ? EVERY : kept,
               shifted > ;
      },
      OneOf<IMK_TYPE_U8, IMK_TYPE_U16>{in->type}, OneOf<7, 14, EVERY>{low.kept},
      rule->shift > 0);
  const BlurKernel blur = choose_blur<IMK_LAPSHARPEN_MAX_BLUR> (s);
  const int c = (int) rule->channels, reach = s->halo + s->blur_reach;
  const int wide =
      ((SHRINK_WIDE - 2 * SMOOTH_QUAD) / c - 2 * s->shrink_reach - 1) /
          s->step +
      1;
  const int blurred =
      (BLUR_SAMPLES / low.channels - 2 * s->blur_reach) / BLUR_ROWS * BLUR_ROWS;
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
