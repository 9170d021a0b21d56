/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What all kernels of insarxcorr are given, and what they share: samples of
 * patches from the bands, the correlation of two sets of amplitudes. */
#pragma once

#include "insarxcorr/cuda/insarxcorr-fft.cuh"
#include "insarxcorr/insarxcorr-peak.h"

namespace insar
{

enum {
  BLOCK = 512, /* threads, unless the length of lines needs others */
  WARP = 32,
  CORRELATION_PARTS = 8, /* blocks that share the lag of a peak */
  N_SIDES = IMK_INSARXCORR_N_SIDES,
};

/* A patch of a batch. Those that are measured come before those that the mask
 * leaves out. */
struct Item {
  ImkInsarxcorrPatch patch;
  uint32_t row;  /* row of the results */
  uint32_t slot; /* where its amplitudes and the levels of their lines are */
  uint32_t turn[N_SIDES]; /* of the lines in the slot, line 0 */
  uint32_t kept[N_SIDES]; /* lines that the row before has left there */
};

/* Levels of the amplitudes of a patch. */
struct Level {
  float mean[N_SIDES];
  float scale;  /* power of 2 that makes the secondary's amplitudes as large */
  bool is_flat; /* all amplitudes of a side are equal: there is no peak */
};

/* Levels of a line of amplitudes. */
struct LineLevel {
  double sum;
  float least, largest;
  uint32_t n_valid; /* where n_valid of the patch does not have it yet */
};

/* Of a line of lags: the first of the largest has the largest key. */
struct LinePeak {
  unsigned long long key;
  double squares; /* their sum */
};

/* Sums of products at one lag. */
struct Products {
  long long ab, aa, bb;
};

/* The band of an image in memory. */
struct Band {
  const uint8_t *data;
  size_t stride;
  int32_t width, n_lines, image_height;
};

/* Each array has one part for each patch of the batch. */
struct Arguments {
  const ImkInsarxcorrPlan *plan; /* a copy; its pointers are host pointers */
  ImkInsarxcorrFine fine;
  Band bands[N_SIDES];
  const Item *items;
  const double *zoom;   /* tables */
  const float2 *phases; /* COMPAT: [range_interp][width]: to samples m /
                         * range_interp later */
  uint32_t *n_valid;    /* [2] */
  uint2 *centres;       /* PRECISE: [2]: the middle of the spectrum */
  LineLevel *line_levels[N_SIDES]; /* [height]; both by slots */
  Level *levels;
  float *amplitudes[N_SIDES]; /* [height][width] */
  float2 *samples;  /* PRECISE: [height][width] of a patch of the larger side */
  float2 *wide;     /* PRECISE: [fine height][width], the same side */
  float2 *spectra;  /* [fft_height][fft_width] */
  float2 *products; /* [n_lags_y][fft_width / 2 + 1] */
  double2 *sums;    /* PRECISE: [n_lags_y][fine width]: sums of columns */
  float *surface;   /* [n_lags_y][n_lags_x] */
  LinePeak *line_peaks;   /* [n_lags_y] */
  Products *correlations; /* COMPAT: [CORRELATION_PARTS] */
  uint8_t *out;
  size_t out_stride;
};

/* ------------------------------------------------------------------------
 * Samples. */

template <ImkType type> struct Samples;

template <> struct Samples<IMK_TYPE_CI16> {
  static __device__ float2
  at (const uint8_t *line, int32_t i, bool *valid)
  {
    const short2 v = ((const short2 *) line)[i];

    *valid = (v.x | v.y) != 0;
    return make_float2 (v.x, v.y);
  }
};

template <> struct Samples<IMK_TYPE_CF32> {
  static __device__ float2
  at (const uint8_t *line, int32_t i, bool *valid)
  {
    const float2 v = ((const float2 *) line)[i];

    *valid = fabsf (v.x) <= 3.0e38f && fabsf (v.y) <= 3.0e38f &&
             (v.x != 0 || v.y != 0);
    return *valid ? v : make_float2 (0, 0);
  }
};

template <> struct Samples<IMK_TYPE_F32> {
  static __device__ float2
  at (const uint8_t *line, int32_t i, bool *valid)
  {
    const float v = ((const float *) line)[i];

    *valid = fabsf (v) <= 3.0e38f && v != 0;
    return make_float2 (*valid ? v : 0, 0);
  }
};

/* Returns: which line of all slots line @y of the amplitudes of @item is */
static __device__ __forceinline__ size_t
slot_line (const Arguments &a, int side, uint32_t item, uint32_t y)
{
  const Item &i = a.items[item];
  const uint32_t height = a.fine.height[side], at = i.turn[side] + y;

  return (size_t) i.slot * height + (at < height ? at : at - height);
}

/* Returns: the line of the band that is line @line of the image, or of those
 * there are the nearest */
static __device__ __forceinline__ const uint8_t *
band_line (const Band &band, int32_t line)
{
  line = max (0, min (line, band.image_height - 1));
  return band.data + (size_t) (line % band.n_lines) * band.stride;
}

/* Returns: the sample of @column, 0 beside the band */
template <ImkType type>
static __device__ __forceinline__ float2
sample_at (const Band &band, const uint8_t *line, int32_t column, bool *valid)
{
  *valid = false;
  return column >= 0 && column < band.width
             ? Samples<type>::at (line, column, valid)
             : make_float2 (0, 0);
}

/* ------------------------------------------------------------------------
 * Sums over a block, in one order. */

template <typename T>
static __device__ T
block_sum (T value)
{
  __shared__ T sums[BLOCK];

  __syncthreads ();
  sums[threadIdx.x] = value;
  for (uint32_t n = BLOCK / 2; n > 0; n /= 2) {
    __syncthreads ();
    if (threadIdx.x < n)
      sums[threadIdx.x] += sums[threadIdx.x + n];
  }
  __syncthreads ();
  return sums[0];
}

static __device__ unsigned long long
block_max (unsigned long long value)
{
  __shared__ unsigned long long values[BLOCK];

  __syncthreads ();
  values[threadIdx.x] = value;
  for (uint32_t n = BLOCK / 2; n > 0; n /= 2) {
    __syncthreads ();
    if (threadIdx.x < n)
      values[threadIdx.x] = max (values[threadIdx.x], values[threadIdx.x + n]);
  }
  __syncthreads ();
  return values[0];
}

/* ------------------------------------------------------------------------
 * The same over a warp, for each of its lanes. */

static __device__ __forceinline__ LineLevel
warp_level (LineLevel level)
{
  for (int step = WARP / 2; step > 0; step /= 2) {
    level.sum += __shfl_xor_sync (0xffffffff, level.sum, step);
    level.least =
        fminf (level.least, __shfl_xor_sync (0xffffffff, level.least, step));
    level.largest = fmaxf (
        level.largest, __shfl_xor_sync (0xffffffff, level.largest, step));
  }
  return level;
}

static __device__ __forceinline__ LinePeak
warp_peak (LinePeak peak)
{
  for (int step = WARP / 2; step > 0; step /= 2) {
    peak.squares += __shfl_xor_sync (0xffffffff, peak.squares, step);
    peak.key = max (peak.key, __shfl_xor_sync (0xffffffff, peak.key, step));
  }
  return peak;
}

static __device__ __forceinline__ unsigned long long
key_of (uint32_t rank, uint32_t i)
{
  return (unsigned long long) rank << 32 | (0xffffffffu - i);
}

/* @i: place of the lag in the surface */
static __device__ __forceinline__ void
add_lag (LinePeak *peak, float value, uint32_t i)
{
  peak->key = max (peak->key, key_of (imk_insarxcorr_rank (value), i));
  peak->squares += (double) value * value;
}

/* ------------------------------------------------------------------------
 * Levels and peaks. */

/* A warp a line; blockIdx.y is the patch, blockIdx.z the side. */
static __global__ void
find_line_levels (const __grid_constant__ Arguments a)
{
  const uint32_t side = blockIdx.z, lane = threadIdx.x % WARP;
  const uint32_t width = a.fine.width[side], height = a.fine.height[side];
  const uint32_t y = blockIdx.x * (BLOCK / WARP) + threadIdx.x / WARP;
  const size_t line = (size_t) blockIdx.y * height + y;
  const float *in = a.amplitudes[side] + line * width;
  LineLevel level = {0, INFINITY, -INFINITY, 0};

  if (y >= height)
    return;
  for (uint32_t x = lane; x < width; x += WARP) {
    level.sum += in[x];
    level.least = fminf (level.least, in[x]);
    level.largest = fmaxf (level.largest, in[x]);
  }
  level = warp_level (level);
  if (lane == 0)
    a.line_levels[side][line] = level;
}

/* A block a patch. */
static __global__ void
find_levels (const __grid_constant__ Arguments a)
{
  Level level = {};
  int exponents[N_SIDES];

  for (int s = 0; s < IMK_INSARXCORR_N_SIDES; s++) {
    const uint32_t height = a.fine.height[s];
    const LineLevel *in = a.line_levels[s];
    const float first = in[slot_line (a, s, blockIdx.x, 0)].least;
    double sum = 0;
    uint32_t n_uneven = 0, n_valid = 0;

    for (uint32_t y = threadIdx.x; y < height; y += BLOCK) {
      const LineLevel line = in[slot_line (a, s, blockIdx.x, y)];

      sum += line.sum;
      n_uneven += line.least != first || line.largest != first;
      n_valid += line.n_valid;
    }
    n_valid = block_sum (n_valid);
    if (threadIdx.x == 0)
      a.n_valid[N_SIDES * blockIdx.x + s] += n_valid;
    sum = block_sum (sum) / ((double) height * a.fine.width[s]);
    level.mean[s] = (float) sum;
    level.is_flat |= block_sum (n_uneven) == 0;
    exponents[s] = sum > 0 && isfinite (sum) ? ilogb (sum) : 0;
  }
  level.scale = ldexpf (1, max (-60, min (exponents[0] - exponents[1], 60)));
  if (threadIdx.x == 0)
    a.levels[blockIdx.x] = level;
}

/* A warp a line; blockIdx.y is the patch. */
static __global__ void
find_line_peaks (const __grid_constant__ Arguments a)
{
  const uint32_t y = blockIdx.x * (BLOCK / WARP) + threadIdx.x / WARP;
  const uint32_t lane = threadIdx.x % WARP, width = a.fine.n_lags_x;
  const size_t line = (size_t) blockIdx.y * a.fine.n_lags_y + y;
  const float *in = a.surface + line * width;
  LinePeak peak = {};

  if (y >= a.fine.n_lags_y)
    return;
#pragma unroll 4
  for (uint32_t x = lane; x < width; x += WARP)
    add_lag (&peak, in[x], y * width + x);
  peak = warp_peak (peak);
  if (lane == 0)
    a.line_peaks[line] = peak;
}

/* ------------------------------------------------------------------------
 * Correlation: both sides are real, so they are transformed as one, a + i b. */

struct Rect {
  uint32_t left, top, right, bottom;
};

/* Lines of a + i b, each without its mean, 0 beyond @inside. */
struct PackedLines {
  Arguments a;
  Rect inside[N_SIDES];

  __device__ float
  side_at (int s, uint32_t item, uint32_t y, uint32_t x) const
  {
    const Rect &r = inside[s];
    uint32_t width = a.fine.width[s];

    if (x < r.left || x >= r.right || y < r.top || y >= r.bottom)
      return 0;
    return a.amplitudes[s][((size_t) item * a.fine.height[s] + y) * width + x] -
           a.levels[item].mean[s];
  }

  __device__ float2
  load (uint32_t item, uint32_t y, uint32_t x) const
  {
    return make_float2 (side_at (0, item, y, x),
        side_at (1, item, y, x) * a.levels[item].scale);
  }

  __device__ void
  store (uint32_t item, uint32_t y, uint32_t x, float2 value) const
  {
    a.spectra[((size_t) item * a.fine.fft_height + y) * a.fine.fft_width + x] =
        value;
  }
};

/* Columns, in place. */
struct Columns {
  float2 *data;
  uint32_t width, height;

  __device__ float2 &
  at (uint32_t item, uint32_t x, uint32_t y) const
  {
    return data[((size_t) item * height + y) * width + x];
  }

  __device__ float2
  load (uint32_t item, uint32_t x, uint32_t y) const
  {
    return at (item, x, y);
  }

  __device__ void
  store (uint32_t item, uint32_t x, uint32_t y, float2 value) const
  {
    at (item, x, y) = value;
  }
};

/* Columns of the product of the two spectra, and of what that becomes the lines
 * of lags. The other half of the columns are conjugates. */
struct ProductColumns {
  Arguments a;
  uint32_t first_lag; /* line of the first lag */
  bool conjugate;     /* b conj (a) instead of a conj (b) */

  __device__ float2
  load (uint32_t item, uint32_t x, uint32_t y) const
  {
    uint32_t width = a.fine.fft_width, height = a.fine.fft_height;
    const float2 *z = a.spectra + (size_t) item * width * height;
    float2 here = z[(size_t) y * width + x];
    float2 there =
        z[(size_t) (y ? height - y : 0) * width + (x ? width - x : 0)];
    /* A, and i B */
    float2 p =
        make_float2 (0.5f * (here.x + there.x), 0.5f * (here.y - there.y));
    float2 q =
        make_float2 (0.5f * (here.x - there.x), 0.5f * (here.y + there.y));
    /* B = q.y - i q.x */
    float2 product = make_float2 (p.x * q.y - p.y * q.x, p.y * q.y + p.x * q.x);

    if (conjugate)
      product.y = -product.y;
    return product;
  }

  __device__ void
  store (uint32_t item, uint32_t x, uint32_t y, float2 value) const
  {
    uint32_t u =
        y >= first_lag ? y - first_lag : y + a.fine.fft_height - first_lag;

    if (u < a.fine.n_lags_y)
      a.products[((size_t) item * a.fine.n_lags_y + u) *
                     (a.fine.fft_width / 2 + 1) +
                 x] = value;
  }
};

/* Two lines of lags as one, p + i q, both real when they have been transformed.
 */
struct LagLines {
  Arguments a;
  uint32_t first_lag; /* column of the first lag */
  bool magnitudes;

  __device__ float2
  load (uint32_t item, uint32_t pair, uint32_t x) const
  {
    uint32_t half = a.fine.fft_width / 2, n = half + 1;
    uint32_t column = x <= half ? x : a.fine.fft_width - x;
    const float2 *line =
        a.products + ((size_t) item * a.fine.n_lags_y + 2 * pair) * n;
    float2 p = line[column], q = make_float2 (0, 0);

    if (2 * pair + 1 < a.fine.n_lags_y)
      q = line[n + column];
    if (x == 0 || x == half)
      p.y = q.y = 0; /* removes the rounding error */
    if (x > half) {
      p.y = -p.y;
      q.y = -q.y;
    }
    return make_float2 (p.x - q.y, p.y + q.x);
  }

  __device__ void
  store (uint32_t item, uint32_t pair, uint32_t x, float2 value) const
  {
    uint32_t v =
        x >= first_lag ? x - first_lag : x + a.fine.fft_width - first_lag;
    float *line = a.surface + ((size_t) item * a.fine.n_lags_y + 2 * pair) *
                                  a.fine.n_lags_x;

    if (v >= a.fine.n_lags_x)
      return;
    line[v] = magnitudes ? fabsf (value.x) : value.x;
    if (2 * pair + 1 < a.fine.n_lags_y)
      line[a.fine.n_lags_x + v] = magnitudes ? fabsf (value.y) : value.y;
  }
};

} // namespace insar
