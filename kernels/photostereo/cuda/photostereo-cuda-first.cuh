/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fast solver: sums while pictures arrive, and the first
 * solutions. */
#pragma once

#include "photostereo/cuda/photostereo-cuda-later.cuh"

enum { MIN_BUSY = 20 }; /* lanes of a warp for which it goes on by itself */

/* Half a packet of N pixels. @ambient: sum of all grey values, with FIRST
 * Returns: in words[], a bit for each light that counts */
template <typename Sample, int FALLOFF, bool ONE_GAIN, bool SMOOTH, int N,
    bool FIRST>
static __device__ __forceinline__ void
sum_half (const Arguments &a, const Lit *lit, const float4 *factors,
    const uint4 samples[N], const Place place[N], const Test test[N],
    uint32_t bias, LightSums sums[N], float ambient[N], uint32_t words[N])
{
  constexpr int LIGHTS = 4 / sizeof (Sample);

#pragma unroll
  for (int j = 0; j < 4 * LIGHTS; j++) {
    const float4 lamp = *(const float4 *) &lit[j];
    const float4 factor = SMOOTH ? factors[j] : float4{};

#pragma unroll
    for (int i = 0; i < N; i++) {
      const uint32_t *word = &samples[i].x + j / LIGHTS;
      float grey = grey_of<ONE_GAIN> (
          a, lit[j], place[i], biased_of<Sample> (*word, j % LIGHTS, bias));
      float x = lamp.x - place[i].x, y = lamp.y - place[i].y, z = lamp.z;

      if (FALLOFF > 0) {
        float r = fast_rsqrt (__fmaf_rn (x, x, __fmaf_rn (y, y, lit[j].z2)));
        float k = SMOOTH         ? smooth_factor (factor, place[i])
                  : FALLOFF == 3 ? r * r * r
                                 : r;

        x *= k;
        y *= k;
        z *= k;
      }
      add_light (sums[i], test[i],
          upper_of<ONE_GAIN> (a, lit[j], place[i], test[i]), x, y, z, grey,
          FIRST ? lamp.w : misfit_of<FALLOFF> (test[i], x, y, z, grey, lamp), j,
          words[i]);
      if (FIRST)
        ambient[i] += lamp.w >= 0 ? grey : 0;
    }
  }
}

/* Packets @first to @end of the N pixels @pixel[] of the store.
 * @factors: with SMOOTH, of all lights, for smooth_factor ()
 * @work: where the lights that count go in each packet; or NULL
 * Returns: in n[], how many they are */
template <typename Sample, int FALLOFF, bool ONE_GAIN, bool SMOOTH, int N,
    bool FIRST>
static __device__ __forceinline__ void
sum_packets (const Arguments &a, const float4 *factors, uint32_t first,
    uint32_t end, const size_t pixel[N], const Place place[N],
    const Test test[N], uint32_t bias, LightSums sums[N], float ambient[N],
    uint32_t n[N], const Work *work)
{
  constexpr uint32_t LIGHTS = PACKET / sizeof (Sample);
  const Lit *lit = shared_lit ();

  for (uint32_t packet = first; packet < end; packet++) {
    int halves = halves_of<Sample> (a, packet);
    uint4 samples[2][N];
    uint32_t used[N] = {};

#pragma unroll
    for (int i = 0; i < N; i++) {
      const uint4 *from = (const uint4 *) packet_at (a, 0, packet, pixel[i]);

      samples[0][i] = from[0];
      samples[1][i] = from[1];
    }
#pragma unroll 1
    for (int half = 0; half < halves; half++) {
      uint32_t bits[N] = {};

      sum_half<Sample, FALLOFF, ONE_GAIN, SMOOTH, N, FIRST> (a,
          lit + packet * LIGHTS + half * LIGHTS / 2,
          SMOOTH ? factors + packet * LIGHTS + half * LIGHTS / 2 : NULL,
          samples[0], place, test, bias, sums, ambient, bits);
#pragma unroll
      for (int i = 0; i < N; i++) {
        used[i] |= bits[i] << (half * LIGHTS / 2);
        samples[0][i] = samples[1][i];
      }
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
      n[i] += __popc (used[i]);
      if (work)
        work[i].words[packet * N_PIXELS * blockDim.x] = used[i];
    }
  }
}

/* ------------------------------------------------------------------------
 * While pictures arrive. */

template <typename Sample, int FALLOFF, bool ONE_GAIN>
static __global__ void
__launch_bounds__ (THREADS) add_packets (
    const __grid_constant__ Arguments a, uint32_t first, uint32_t end)
{
  extern __shared__ float4 lit[];
  size_t pixel = (size_t) blockIdx.x * THREADS + threadIdx.x;
  size_t pixels = store_pixels (a);
  uint32_t bias = load_bias (a);
  float *sums = a.sums + pixel;

  load_lit (a, lit);
  if (pixel >= pixels)
    return;
  Place place = place_of (a, (uint32_t) pixel);
  Test test = first_test (a);
  LightSums s = {};
  float ambient = 0;
  uint32_t n = 0;

  if (first > 0) {
    load_sums (sums, pixels, s);
    n = (uint32_t) sums[9 * pixels];
    ambient = sums[10 * pixels];
  }
  sum_packets<Sample, FALLOFF, ONE_GAIN, false, 1, true> (
      a, NULL, first, end, &pixel, &place, &test, bias, &s, &ambient, &n, NULL);
  store_sums (sums, pixels, s);
  sums[9 * pixels] = (float) n;
  sums[10 * pixels] = ambient;
}

/* ------------------------------------------------------------------------
 * The first solutions, as far as most pixels of a warp get. */

/* What becomes of a pixel after its second solution @s of @n lights. Returns:
 * whether there is a third to come */
static __device__ __forceinline__ bool
take_second (const Arguments &a, const Solution &s, uint32_t n,
    Solution &solution, Found &found)
{
  const ImkPhotostereoParams &p = a.params;
  bool same = n == found.n; /* lights are only removed from the first set */

  if (!is_good (s, (float) n, (float) min (p.min_lights, a.n_lights),
          p.min_condition))
    return false;
  solution = s;
  found.n = n;
  found.set = 0;
  found.rounds += !same;
  return !same && p.max_iterations > 2;
}

/* The pixels of a row that a block has: a segment, whatever the tile. */
static __device__ __forceinline__ float
middle_of_segment ()
{
  uint32_t n = blockDim.x * N_PIXELS;

  return (float) (blockIdx.x * n) + (float) (n - 1) / 2;
}

/* For smooth_factor (), by all threads of a block: through k at three points of
 * the segment, those of Chebyshev.
 * Returns: of all lights, in shared memory behind all else */
template <int FALLOFF>
static __device__ __forceinline__ const float4 *
find_factors (const Arguments &a)
{
  uint32_t n = packet_lights (a.plan.type);
  float4 *factors = (float4 *) ((char *) shared_lit () +
                                later_size (a.n_packets, n, blockDim.x));
  float step = 0.8660254f * (float) (blockDim.x * N_PIXELS) / 2;
  float middle = middle_of_segment () - a.plan.centre_x;
  float py = ((float) (a.tile_row + blockIdx.y) - a.plan.centre_y) * a.unit_y;

  for (uint32_t i = threadIdx.x; i < a.n_packets * n; i += blockDim.x) {
    const Lit &lit = shared_lit ()[i];
    float k[3];

#pragma unroll
    for (int j = 0; j < 3; j++) {
      float x = lit.x - (middle + (float) (j - 1) * step) * a.unit_x;
      float y = lit.y - py, r2 = __fmaf_rn (x, x, __fmaf_rn (y, y, lit.z2));

      k[j] = FALLOFF == 3 ? 1 / (r2 * sqrtf (r2)) : 1 / sqrtf (r2);
    }
    factors[i] = float4{k[1], (k[2] - k[0]) / (2 * step),
        (k[2] - k[1] + (k[0] - k[1])) / (2 * step * step), 0};
  }
  __syncthreads ();
  return factors;
}

/* The first solution, from the sums so far and the packets that they lack. */
template <typename Sample, int FALLOFF, bool ONE_GAIN, bool SMOOTH, int N>
static __device__ __forceinline__ void
solve_all_lights (
    const Arguments &a, uint32_t bias, const float4 *factors, Work work[N])
{
  size_t pixels = store_pixels (a), pixel[N];
  LightSums sums[N];
  Place place[N];
  Test test[N];
  float ambient[N] = {};
  uint32_t n[N] = {}, at[N];

#pragma unroll
  for (int i = 0; i < N; i++) {
    at[i] = work[i].at;
    pixel[i] = work[i].pixel;
    place[i] = work[i].place;
    test[i] = first_test (a);
    sums[i] = LightSums{};
    if (a.n_summed > 0) {
      load_sums (a.sums + pixel[i], pixels, sums[i]);
      n[i] = (uint32_t) a.sums[9 * pixels + pixel[i]];
      ambient[i] = a.sums[10 * pixels + pixel[i]];
    }
  }
  sum_packets<Sample, FALLOFF, ONE_GAIN, SMOOTH, N, true> (a, factors,
      a.n_summed, a.n_packets, pixel, place, test, bias, sums, ambient, n,
      NULL);
#pragma unroll
  for (int i = 0; i < N; i++) {
    uint32_t y = at[i] / a.plan.width, x = at[i] - y * a.plan.width;

    a.states[4 * a.tile_size + at[i]] = ambient[i];
    work[i].solution = solve_light_sums (sums[i]);
    work[i].found = Found{n[i], 1, FIRST_SET, false};
    work[i].found.valid =
        a.n_lights >= 3 && is_wanted (a, x, a.tile_row + y) &&
        is_good (work[i].solution, (float) n[i], 3, a.params.min_condition);
  }
}

/* The second, of the lights that the first leaves. */
template <typename Sample, int FALLOFF, bool ONE_GAIN, bool SMOOTH, int N>
static __device__ __forceinline__ void
solve_second (
    const Arguments &a, uint32_t bias, const float4 *factors, Work work[N])
{
  uint32_t step = N_PIXELS * blockDim.x;
  LightSums sums[N] = {};
  size_t pixel[N];
  Place place[N];
  Test test[N];
  uint32_t n[N] = {};

#pragma unroll
  for (int i = 0; i < N; i++) {
    pixel[i] = work[i].pixel;
    place[i] = work[i].place;
    test[i] = next_test (a, work[i].solution, place[i]);
  }
  sum_packets<Sample, FALLOFF, ONE_GAIN, SMOOTH, N, false> (a, factors, 0,
      a.n_packets, pixel, place, test, bias, sums, NULL, n, work);
#pragma unroll
  for (int i = 0; i < N; i++) {
    Work &w = work[i];

    w.busy = w.found.valid && take_second (a, solve_light_sums (sums[i]), n[i],
                                  w.solution, w.found);
    store_sums (w.sums, step, sums[i]);
  }
}

template <typename Sample, int FALLOFF, bool ONE_GAIN, bool SMOOTH, int N>
static __global__ void
__launch_bounds__ (THREADS, 4) solve_first (const __grid_constant__ Arguments a)
{
  extern __shared__ float4 lit[];
  uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * N;
  size_t base = (size_t) (a.tile_row - a.first_row) * a.plan.width;
  bool rejects = a.params.robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS &&
                 a.params.max_iterations > 1;
  uint32_t bias = load_bias (a), n_busy;
  const float4 *factors = NULL;
  Work work[N] = {};

  load_lit (a, lit);
  if (SMOOTH)
    factors = find_factors<FALLOFF> (a);
#pragma unroll
  for (int i = 0; i < N; i++) { /* beyond the end, repeat the last pixel */
    uint32_t column = min (x + i, a.plan.width - 1);

    find_shared (a, i, work[i]);
    work[i].at = blockIdx.y * a.plan.width + column;
    work[i].pixel = base + work[i].at;
    work[i].place = place_of (a, work[i].at);
    work[i].place.u = (float) column - middle_of_segment ();
  }
  solve_all_lights<Sample, FALLOFF, ONE_GAIN, SMOOTH, N> (
      a, bias, factors, work);
  if (rejects)
    solve_second<Sample, FALLOFF, ONE_GAIN, SMOOTH, N> (a, bias, factors, work);
#pragma unroll
  for (int i = 0; i < N; i++) {
    store_state (a, work[i].at, work[i].solution, work[i].found);
    if (rejects && a.measures && !work[i].busy)
      store_words (a, work[i], false);
  }
  for (;;) { /* in place while that is cheaper than a list */
    uint64_t changed[N];

    n_busy = 0;
#pragma unroll
    for (int i = 0; i < N; i++)
      n_busy += __popc (__ballot_sync (~0u, work[i].busy));
    if (n_busy < MIN_BUSY * N)
      break;
    test_lights<Sample, FALLOFF, ONE_GAIN, SMOOTH, N> (
        a, bias, factors, work, changed);
    end_round<Sample, FALLOFF, ONE_GAIN, N> (a, changed, work);
  }
#pragma unroll
  for (int i = 0; i < N; i++) {
    bool busy = work[i].busy && x + i < a.plan.width;

    if (busy)
      save_work (a, work[i]);
    append (a, busy, work[i].at);
  }
}
