/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GMTSAR's xcorr by FFT for the usual lengths and range-interp=2: each step
 * goes from global memory through registers to global memory. What is known to
 * be zero or a conjugate is neither stored nor transformed. */
#pragma once

#include "insarxcorr/cuda/insarxcorr-compat.cuh"
#include "insarxcorr/cuda/insarxcorr-registers.cuh"

namespace insar
{

/* A warp a line. */
template <int N> struct Lines {
  static constexpr int EACH = N / WARP; /* elements of a thread */
  static constexpr int COUNT = 4;       /* of a block */
  static constexpr int THREADS = COUNT * WARP;
  static constexpr int SHARED = COUNT * exchange_length (N);
  static constexpr int BLOCKS = N > 512 ? 3 : 5; /* on a multiprocessor */
};

template <int N> struct ColumnsOf {
  static constexpr int EACH = 8;
  static constexpr int COUNT = N > 512 ? 4 : 8;
  static constexpr int THREADS = COUNT * N / EACH;
  static constexpr int SHARED = COUNT * exchange_length (N);
};

static __device__ __forceinline__ float
magnitude (float2 z)
{
  return sqrtf (z.x * z.x + z.y * z.y);
}

/* Amplitudes of the lines that the row before has not left, and their levels.
 * Of samples and those between them, the middle half is stored; of the
 * secondary, what never is in the template counts in the levels alone.
 * blockIdx.y is the patch, blockIdx.z the side. */
template <ImkType type, int N>
static __global__ void
__launch_bounds__ (Lines<N>::THREADS, Lines<N>::BLOCKS) detect_usual_lines (
    const __grid_constant__ Fft f, const __grid_constant__ Arguments a)
{
  using L = Lines<N>;
  __shared__ float2 shared[L::SHARED];
  const uint32_t side = blockIdx.z, item = blockIdx.y;
  const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const uint32_t height = a.fine.height[side];
  const uint32_t y = a.items[item].kept[side] + blockIdx.x * L::COUNT + warp;
  const LineExchange x = {shared + warp * exchange_length (N)};
  const ImkInsarxcorrPatch &patch = a.items[item].patch;
  const Band &band = a.bands[side];
  const uint8_t *line = band_line (band, patch.line[side] + (int32_t) y);
  const size_t out_line = slot_line (a, side, item, y);
  float2 *out = (float2 *) (a.amplitudes[side] + out_line * N);
  LineLevel level = {0, INFINITY, -INFINITY, 0};
  float2 v[L::EACH];
  float even[L::EACH / 2];

  if (y >= height)
    return; /* lines of a block do not wait for each other */
#pragma unroll
  for (int k = 0; k < L::EACH; k++) {
    bool valid;

    v[k] = sample_at<type> (
        band, line, patch.column[side] + (int32_t) (lane + k * WARP), &valid);
    level.n_valid += valid;
  }
#pragma unroll
  for (int k = 0; k < L::EACH / 2; k++)
    even[k] = magnitude (v[k + L::EACH / 4]);
  transform_registers<false, N> (f.turns, x, lane, v);
#pragma unroll
  for (int k = 0; k < L::EACH; k++)
    v[k] = multiply (v[k], __ldg (a.phases + N + lane + k * WARP));
  transform_registers<true, N> (f.turns, x, lane, v);
#pragma unroll
  for (int k = 0; k < L::EACH / 2; k++) {
    float odd = magnitude (v[k + L::EACH / 4]);

    if (side == 0 ||
        (y >= height / 4 && k >= L::EACH / 8 && k < L::EACH / 8 * 3))
      out[lane + k * WARP] = make_float2 (even[k], odd);
    level.sum += (double) even[k] + odd;
    level.least = fminf (level.least, fminf (even[k], odd));
    level.largest = fmaxf (level.largest, fmaxf (even[k], odd));
  }
  level = warp_level (level);
  for (int step = WARP / 2; step > 0; step /= 2)
    level.n_valid += __shfl_xor_sync (0xffffffff, level.n_valid, step);
  if (lane == 0)
    a.line_levels[side][out_line] = level;
}

/* Lines of both sides, transformed as two real lines at a time, P + i Q. Line y
 * of the middle half holds a[y] and b[y]; line y of the first quarter a[y] and
 * a[y + 3/4], where b is 0. So there are 3/4 of the lines. */
template <int N>
static __global__ void
__launch_bounds__ (Lines<N>::THREADS, Lines<N>::BLOCKS) transform_usual_lines (
    const __grid_constant__ Fft f, const __grid_constant__ Arguments a)
{
  using L = Lines<N>;
  __shared__ float2 shared[L::SHARED];
  const uint32_t item = blockIdx.y, height = a.fine.fft_height;
  const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const uint32_t y = blockIdx.x * L::COUNT + warp;
  const LineExchange x = {shared + warp * exchange_length (N)};
  const Level level = a.levels[item];
  const float *in = a.amplitudes[0] + slot_line (a, 0, item, y) * N;
  float2 *out = a.spectra + ((size_t) item * (height / 4 * 3) + y) * N + lane;
  float2 v[L::EACH];

  if (y < height / 4) {
    const float *other =
        a.amplitudes[0] + slot_line (a, 0, item, y + height / 4 * 3) * N;

#pragma unroll
    for (int k = 0; k < L::EACH; k++)
      v[k] = make_float2 (in[lane + k * WARP] - level.mean[0],
          other[lane + k * WARP] - level.mean[0]);
  } else {
    const float *other = a.amplitudes[1] + slot_line (a, 1, item, y) * N + lane;

#pragma unroll
    for (int k = 0; k < L::EACH; k++) {
      v[k] = make_float2 (in[lane + k * WARP] - level.mean[0], 0);
      if (k >= L::EACH / 4 && k < L::EACH / 4 * 3)
        v[k].y = (other[k * WARP] - level.mean[1]) * level.scale;
    }
  }
  transform_registers<false, N> (f.turns, x, lane, v);
#pragma unroll
  for (int k = 0; k < L::EACH; k++)
    out[k * WARP] = v[k];
}

/* Columns of both sides, their product, and what that becomes: the lines of
 * lags. The columns beyond the middle are conjugates. */
template <int N>
static __global__ void
__launch_bounds__ (ColumnsOf<N>::THREADS, 1024 / ColumnsOf<N>::THREADS)
    correlate_usual_columns (
        const __grid_constant__ Fft f, const __grid_constant__ Arguments a)
{
  using C = ColumnsOf<N>;
  constexpr int STEP = N / C::EACH;
  __shared__ float2 shared[C::SHARED];
  const uint32_t item = blockIdx.y, width = a.fine.fft_width;
  const uint32_t column = threadIdx.x % C::COUNT, j = threadIdx.x / C::COUNT;
  const uint32_t wanted = blockIdx.x * C::COUNT + column;
  const uint32_t here = min (wanted, width / 2),
                 there = here ? width - here : 0;
  const ColumnExchange<C::COUNT> x = {shared + column};
  const float2 *in = a.spectra + ((size_t) item * (N / 4 * 3) + j) * width;
  float2 *out = a.products +
                ((size_t) item * a.fine.n_lags_y + j) * (width / 2 + 1) + here;
  float2 p[C::EACH], q[C::EACH] = {};

#pragma unroll
  for (int k = 0; k < 6; k++) {
    float2 z = in[k * STEP * width + here], w = in[k * STEP * width + there];
    float2 second = make_float2 (0.5f * (z.y + w.y), 0.5f * (w.x - z.x));

    p[k] = make_float2 (0.5f * (z.x + w.x), 0.5f * (z.y - w.y));
    if (k < 2)
      p[k + 6] = second;
    else
      q[k] = second;
  }
  transform_registers<false, N> (f.turns, x, j, p);
  transform_registers<false, N> (f.turns, x, j, q);
#pragma unroll
  for (int k = 0; k < C::EACH; k++)
    p[k] = multiply (p[k], make_float2 (q[k].x, -q[k].y));
  transform_registers<true, N> (f.turns, x, j, p);
  if (wanted > width / 2)
    return;
#pragma unroll
  for (int k = 0; k < 4; k++)
    out[(size_t) k * STEP * (width / 2 + 1)] = p[(k + 6) % C::EACH];
}

/* Two lines of lags as one, p + i q, both real when they have been transformed,
 * and the largest of each. */
template <int N>
static __global__ void
__launch_bounds__ (Lines<N>::THREADS, Lines<N>::BLOCKS) make_usual_lags (
    const __grid_constant__ Fft f, const __grid_constant__ Arguments a)
{
  using L = Lines<N>;
  __shared__ float2 shared[L::SHARED];
  const uint32_t item = blockIdx.y;
  const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const uint32_t y = 2 * (blockIdx.x * L::COUNT + warp);
  const size_t line = (size_t) item * a.fine.n_lags_y + y;
  const LineExchange x = {shared + warp * exchange_length (N)};
  const float2 *in = a.products + line * (N / 2 + 1);
  float *out = a.surface + line * (N / 2);
  LinePeak peaks[2] = {};
  float2 v[L::EACH];

#pragma unroll
  for (int k = 0; k < L::EACH; k++) {
    uint32_t i = lane + k * WARP, column = i <= N / 2 ? i : N - i;
    float2 p = in[column], q = in[N / 2 + 1 + column];

    if (column == 0 || column == N / 2)
      p.y = q.y = 0; /* removes the rounding error */
    v[k] = i <= N / 2 ? make_float2 (p.x - q.y, p.y + q.x)
                      : make_float2 (p.x + q.y, q.x - p.y);
  }
  transform_registers<true, N> (f.turns, x, lane, v);
#pragma unroll
  for (int k = 0; k < L::EACH / 2; k++) {
    float2 value = v[(k + L::EACH / 4 * 3) % L::EACH];
    uint32_t at = lane + k * WARP;

    add_lag (&peaks[0], out[at] = fabsf (value.x), y * (N / 2) + at);
    add_lag (
        &peaks[1], out[N / 2 + at] = fabsf (value.y), (y + 1) * (N / 2) + at);
  }
  for (int i = 0; i < 2; i++) {
    peaks[i] = warp_peak (peaks[i]);
    if (lane == 0)
      a.line_peaks[line + i] = peaks[i];
  }
}

} // namespace insar
