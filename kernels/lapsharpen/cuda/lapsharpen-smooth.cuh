/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only: method=unsharp and method=log by the low samples of
 * lapsharpen-low.cuh. sharpen_smooth () makes a frame of them where no sample
 * needs its neighbours besides, and smooth_at () a pixel elsewhere. */
#pragma once

#include "lapsharpen/cuda/lapsharpen-low.cuh"

enum {
  GROW_ROWS = 48, /* rows of a thread, about */
  GROW_AHEAD = 4, /* rows that it reads at once, at most */
};

/* --- growing -------------------------------------------------------------- */

/* step 1 has no samples beside, and the weights 0 1 0 */
static __device__ float
grow (const float *at, ptrdiff_t stride, const float w[3], int halo)
{
  return halo ? w[0] * at[-stride] + w[1] * at[0] + w[2] * at[stride]
              : w[1] * at[0];
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

/* Samples of a row that a thread has, and what grows them. @KEPT: low.kept of
 * pixels of 4, or SOME */
template <int KEPT> struct Column {
  static constexpr int places = KEPT == SOME ? SMOOTH_QUAD : 1;
  int n; /* samples that are there */
  int channel[SMOOTH_QUAD];
  int at;             /* of the first, in a low row */
  int beside[places]; /* the others, from there */
  float w[places][3];
};

/* @scale: of the samples that are grown */
template <int KEPT>
static __device__ Column<KEPT>
make_column (
    const ImkLapsharpenRule &rule, const Low &low, int first, float scale)
{
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int c = KEPT == SOME ? (int) rule.channels : SMOOTH_QUAD;
  Column<KEPT> column;

  column.at =
      ((first / c + s.step / 2) / s.step + s.halo) * low.channels + first % c;
  column.n = KEPT == SOME ? min (SMOOTH_QUAD, (int) rule.width * c - first)
                          : SMOOTH_QUAD;
#pragma unroll
  for (int i = 0; i < SMOOTH_QUAD; i++) {
    const int sample = i < column.n ? first + i : first;
    const int x = sample / c + s.step / 2;

    column.channel[i] = sample % c;
    if (i >= column.places)
      continue;
    column.beside[i] =
        (x / s.step + s.halo) * low.channels + sample % c - column.at;
#pragma unroll
    for (int k = 0; k < 3; k++)
      column.w[i][k] = s.grow[x % s.step][k] * scale;
  }
  return column;
}

/* The samples of a low pixel that are kept. */
template <int KEPT>
static __device__ void
load_pixel (const float *at, float v[SMOOTH_QUAD])
{
  if (KEPT == EVERY) {
    const float4 all = __ldg ((const float4 *) at);

    v[0] = all.x, v[1] = all.y, v[2] = all.z, v[3] = all.w;
  } else
#pragma unroll
    for (int i = 0; i < SMOOTH_QUAD; i++)
      if (KEPT >> i & 1)
        v[i] = __ldg (at + i - (KEPT & 1 ? 0 : 1));
}

/* Along a low row, which has the thread's first sample at @at. */
template <int KEPT>
static __device__ void
grow_row (const Column<KEPT> &column, const float *at, int c, int halo,
    float row[SMOOTH_QUAD])
{
  if constexpr (KEPT == SOME) {
#pragma unroll
    for (int i = 0; i < SMOOTH_QUAD; i++)
      row[i] = grow (at + column.beside[i], c, column.w[i], halo);
  } else {
    const float *w = column.w[0];
    float a[SMOOTH_QUAD] = {}, b[SMOOTH_QUAD] = {}, d[SMOOTH_QUAD] = {};

    load_pixel<KEPT> (at, b);
    if (halo) {
      load_pixel<KEPT> (at - c, a);
      load_pixel<KEPT> (at + c, d);
#pragma unroll
      for (int i = 0; i < SMOOTH_QUAD; i++)
        row[i] = w[0] * a[i] + w[1] * b[i] + w[2] * d[i];
    } else {
#pragma unroll
      for (int i = 0; i < SMOOTH_QUAD; i++)
        row[i] = w[1] * b[i];
    }
  }
}

/* A quad of which smoothing makes @smooth. */
template <typename Sample, int KEPT>
static __device__ Quad<Sample>
sharpen_quad (const ImkLapsharpenRule &rule, const Column<KEPT> &column,
    const float smooth[SMOOTH_QUAD], Quad<Sample> quad)
{
  Sample *samples = (Sample *) &quad;
  float transparent = 0;

  if (KEPT != SOME)
#pragma unroll
    for (int i = 0; i < SMOOTH_QUAD; i++)
      if (rule.weight_channel == i)
        transparent = smooth[i];
#pragma unroll
  for (int i = 0; i < SMOOTH_QUAD; i++) {
    const int32_t v = samples[i] >> rule.shift;
    int32_t value = v;

    if (rule.filtered >> column.channel[i] & 1)
      value = imk_lapsharpen_sample (rule.amount, rule.threshold, rule.soft,
          rule.edges, imk_lapsharpen_detail (&rule, v, smooth[i], transparent),
          v, 0, (int32_t) rule.maximum);
    if (rule.limited)
      value = imk_lapsharpen_limited (&rule, v, value, column.channel[i]);
    samples[i] = (Sample) (value << rule.shift);
  }
  return quad;
}

static __device__ uint32_t
choose_bits (uint2 mask, uint32_t a, uint32_t b)
{
  return (a & mask.x) | (b & ~mask.x);
}

static __device__ uint2
choose_bits (uint2 mask, uint2 a, uint2 b)
{
  return make_uint2 (
      (a.x & mask.x) | (b.x & ~mask.x), (a.y & mask.y) | (b.y & ~mask.y));
}

/* The same without options, see is_lean (), of @smooth times TINY_SCALE.
 * @own: FROM_TINY where L has the sample itself; @filtered: bits of the samples
 * to sharpen */
template <typename Sample, int KEPT>
static __device__ Quad<Sample>
sharpen_lean (float amount, float own, uint2 filtered,
    const float smooth[SMOOTH_QUAD], Quad<Sample> quad)
{
  float change[SMOOTH_QUAD];

  /* the product that is in L is exact */
#pragma unroll
  for (int i = 0; i < SMOOTH_QUAD; i++)
    change[i] =
        __fmul_rn (amount, __fmaf_rn (get_tiny (quad, i), own, -smooth[i]));
  return choose_bits (
      filtered, add_change<KEPT> (quad, change, FROM_TINY), quad);
}

/* @whole: all of the quad is there, at a multiple of its size */
template <typename Sample>
static __device__ void
move_quad (const Sample *from, Sample *to, int n, bool whole)
{
  if (whole)
    *(Quad<Sample> *) to = *(const Quad<Sample> *) from;
  else
#pragma unroll
    for (int i = 0; i < SMOOTH_QUAD; i++)
      if (i < n)
        to[i] = from[i];
}

/* Returns: low rows of a block */
static __host__ __device__ int
get_low_rows (int step)
{
  return GROW_ROWS / step;
}

/* @aligned: as for shrink_frame (), of both images, always so where it is LEAN;
 * @filtered: for LEAN; @KEPT: low.kept of pixels of 4, or SOME; @STEP: 0 for
 * any
 */
template <typename Sample, int KEPT, bool LEAN, int STEP>
static __global__ void
__launch_bounds__ (SMOOTH_THREADS)
    sharpen_smooth (const __grid_constant__ ImkLapsharpenRule rule,
        const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size,
        bool aligned, uint2 filtered, const Low low)
{
  typedef std::conditional_t<LEAN, uint32_t, size_t> Stride;
  const Stride in_stride = (Stride) in_size, out_stride = (Stride) out_size;
  const ImkLapsharpenSmooth &s = rule.smooth;
  const int c = KEPT == 7 || KEPT == 14 ? SMOOTH_QUAD - 1 : low.channels;
  const int step = STEP ? STEP : s.step, height = rule.height;
  const int halo = STEP > 1 ? 1 : s.halo;
  const int first =
      ((int) blockIdx.x * SMOOTH_THREADS + (int) threadIdx.x) * SMOOTH_QUAD;
  const int begin = (int) blockIdx.y * get_low_rows (step);
  const int end = min (begin + get_low_rows (step), low.rows);
  const int stride = (low.columns + 2 * halo) * c;
  const float own = s.is_log ? 0.0f : FROM_TINY;
  const int left = first * (int) sizeof (Sample);
  int y = begin * step - step / 2;
  const float *at = low.blurred + begin * (size_t) stride;
  const uint8_t *from = in + y * (ptrdiff_t) in_size + left;
  uint8_t *to = out + y * (ptrdiff_t) out_size + left;
  float rows[3][SMOOTH_QUAD] = {};
  Column<KEPT> column;
  bool whole;

  if (first >= (int) rule.width * (KEPT == SOME ? c : SMOOTH_QUAD))
    return;
  column = make_column<KEPT> (rule, low, first, LEAN ? TINY_SCALE : 1.0f);
  whole = (LEAN || aligned) && column.n == SMOOTH_QUAD;
  at += column.at;
  if (halo) {
    grow_row<KEPT> (column, at, c, halo, rows[1]);
    at += stride;
  }
  grow_row<KEPT> (column, at, c, halo, rows[2]);
#pragma unroll 1
  for (int row = begin; row < end; row++) {
    /* step 1 needs no row below, but what is there shall not be NaN */
    at += halo || row + 1 < low.rows ? stride : 0;
#pragma unroll 1
    for (int phase = 0; phase < step; phase += GROW_AHEAD) {
      const int n = min (step - phase, (int) GROW_AHEAD);
      Quad<Sample> quads[GROW_AHEAD];

#pragma unroll
      for (int r = 0; r < GROW_AHEAD; r++)
        if (r < n && y + r >= 0 && y + r < height)
          move_quad ((const Sample *) (from + (size_t) in_stride * r),
              (Sample *) &quads[r], column.n, whole);
      if (phase == 0) {
#pragma unroll
        for (int i = 0; i < SMOOTH_QUAD; i++) {
          rows[0][i] = rows[1][i];
          rows[1][i] = rows[2][i];
        }
        grow_row<KEPT> (column, at, c, halo, rows[2]);
      }
#pragma unroll
      for (int r = 0; r < GROW_AHEAD; r++) {
        const float *w = s.grow[phase + r];
        float smooth[SMOOTH_QUAD];

        if (r >= n || y + r < 0 || y + r >= height)
          continue;
#pragma unroll
        for (int i = 0; i < SMOOTH_QUAD; i++)
          smooth[i] = w[0] * rows[0][i] + w[1] * rows[1][i] + w[2] * rows[2][i];
        if (LEAN)
          quads[r] = sharpen_lean<Sample, KEPT> (
              rule.amount, own, filtered, smooth, quads[r]);
        else
          quads[r] =
              sharpen_quad<Sample, KEPT> (rule, column, smooth, quads[r]);
        move_quad ((const Sample *) &quads[r],
            (Sample *) (to + (size_t) out_stride * r), column.n, whole);
      }
      from += (size_t) in_stride * (uint32_t) n;
      to += (size_t) out_stride * (uint32_t) n;
      y += n;
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

/* Returns: whether that is clamp (v + s L), with the range of the type, of the
 * same channels in every quad */
static bool
is_lean (const ImkLapsharpenRule *rule, const ImkImage *in, const ImkImage *out)
{
  const uint32_t most = in->type == IMK_TYPE_U8 ? UINT8_MAX : UINT16_MAX;

  return is_for_smooth (rule) && has_quads (in) && has_quads (out) &&
         (in->stride | out->stride) <= UINT32_MAX &&
         (rule->channels != 3 || rule->filtered == 7) &&
         rule->maximum == most && !rule->shift && rule->threshold <= 0 &&
         !rule->soft && !rule->edges && !rule->limited &&
         rule->weight_channel < 0;
}

/* Returns: the low samples that sharpening needs, at @memory */
static Low
choose_low (const ImkLapsharpenRule *rule, bool lean, float *memory)
{
  const bool three = lean && rule->channels == SMOOTH_QUAD &&
                     (rule->filtered == 7 || rule->filtered == 14);

  return make_low (rule, three ? (int) rule->filtered : EVERY, memory);
}

static ImkStatus
launch_sharpen_smooth (const ImkLapsharpenRule *rule, const ImkImage *in,
    const ImkImage *out, const Low &low, bool lean, cudaStream_t stream,
    ImkError *error)
{
  const int kept = rule->channels == SMOOTH_QUAD ? low.kept : SOME;
  const auto kernel = instance (
      [] (auto type, auto kept, auto lean, auto step) {
        /* all channels are kept but for lean */
        constexpr int every = kept == SOME ? SOME : EVERY;
        constexpr int channels = lean ? kept : every;

        return sharpen_smooth < SampleOf<type>, channels, lean,
               lean ? step : 0 > ;
      },
      OneOf<IMK_TYPE_U8, IMK_TYPE_U16>{in->type},
      OneOf<SOME, 7, 14, EVERY>{kept}, lean, OneOf<2, 3, 0>{rule->smooth.step});
  uint32_t filtered[THREAD_WORDS] = {};
  cudaLaunchConfig_t launch = {};

  make_mask (rule, in->type, rule->filtered, filtered);
  launch.blockDim = dim3 (SMOOTH_THREADS);
  launch.gridDim = dim3 (
      imk_div_up (rule->width * rule->channels, SMOOTH_THREADS * SMOOTH_QUAD),
      imk_div_up (
          (uint32_t) low.rows, (uint32_t) get_low_rows (rule->smooth.step)));
  launch.stream = stream;
  return IMK_CUDA_LAUNCH (error, launch, kernel, *rule,
      (const uint8_t *) in->data, in->stride, (uint8_t *) out->data,
      out->stride, has_quads (in) && has_quads (out),
      make_uint2 (filtered[0], filtered[1]), low);
}

/* A frame by way of its low samples, at @memory. */
static ImkStatus
launch_smooth (const ImkLapsharpenRule *rule, const ImkImage *in,
    const ImkImage *out, float *memory, cudaStream_t stream, ImkError *error)
{
  const bool lean = is_lean (rule, in, out);
  const Low low = choose_low (rule, lean, memory);
  const ImkStatus status = launch_low (rule, in, low, stream, error);

  return status != IMK_OK
             ? status
             : launch_sharpen_smooth (rule, in, out, low, lean, stream, error);
}
