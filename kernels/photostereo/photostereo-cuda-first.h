/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fast solver: sums while pictures arrive, and the first two solutions. */
#pragma once

#include "photostereo/photostereo-cuda-light.h"

/* Half a packet of N pixels. @ambient: sum of all grey values, with FIRST
 * Returns: in words[], a bit for each light that counts */
template <typename Sample, int FALLOFF, bool ONE_GAIN, int N, bool FIRST>
static __device__ __forceinline__ void
sum_half (const Arguments &a, const Lit *lit, const uint4 samples[N],
    const Place place[N], const Test test[N], LightSums sums[N],
    float ambient[N], uint32_t words[N])
{
  constexpr int LIGHTS = 4 / sizeof (Sample);

#pragma unroll
  for (int j = 0; j < 4 * LIGHTS; j++) {
    const float4 lamp = *(const float4 *) &lit[j];

#pragma unroll
    for (int i = 0; i < N; i++) {
      const uint32_t *word = &samples[i].x + j / LIGHTS;
      float grey = grey_of<ONE_GAIN> (
          a, lit[j], place[i], biased_of<Sample> (*word, j % LIGHTS));
      float x = lamp.x - place[i].x, y = lamp.y - place[i].y, k = 1;
      float along = __fmaf_rn (
          test[i].z, lamp.z, __fmaf_rn (test[i].y, y, test[i].x * x));

      if (FALLOFF > 0) {
        float r = fast_rsqrt (__fmaf_rn (x, x, __fmaf_rn (y, y, lit[j].z2)));

        k = FALLOFF == 3 ? r * r * r : r;
      }
      /* the first test has no limit, but for a light that is not there */
      mark (test[i], grey,
          FIRST ? lamp.w : misfit_of<FALLOFF> (along, grey, k, lamp), j,
          words[i], k);
      add_light (sums[i], k * x, k * y, k * lamp.z, grey);
      if (FIRST)
        ambient[i] += lamp.w >= 0 ? grey : 0;
    }
  }
}

/* Packets @first to @end of the N pixels @pixel[] of the store.
 * @words: where the lights that count go in each packet, for the pixels @at[]
 *   of the tile; or NULL
 * Returns: in n[], how many they are */
template <typename Sample, int FALLOFF, bool ONE_GAIN, int N, bool FIRST>
static __device__ __forceinline__ void
sum_packets (const Arguments &a, uint32_t first, uint32_t end,
    const size_t pixel[N], const Place place[N], const Test test[N],
    LightSums sums[N], float ambient[N], uint32_t n[N], uint32_t *words,
    const uint32_t at[N])
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

      sum_half<Sample, FALLOFF, ONE_GAIN, N, FIRST> (a,
          lit + packet * LIGHTS + half * LIGHTS / 2, samples[0], place, test,
          sums, ambient, bits);
#pragma unroll
      for (int i = 0; i < N; i++) {
        used[i] |= bits[i] << (half * LIGHTS / 2);
        samples[0][i] = samples[1][i];
      }
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
      n[i] += __popc (used[i]);
      if (words)
        words[packet * a.tile_size + at[i]] = used[i];
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
  float *sums = a.sums + pixel;

  load_lit (a, lit);
  if (pixel >= pixels)
    return;
  Place place = place_of (a, (uint32_t) pixel);
  Test test = first_test (a.params);
  LightSums s = {};
  float ambient = 0;
  uint32_t n = 0;

  if (first > 0) {
    load_sums (sums, pixels, s);
    n = (uint32_t) sums[9 * pixels];
    ambient = sums[10 * pixels];
  }
  sum_packets<Sample, FALLOFF, ONE_GAIN, 1, true> (
      a, first, end, &pixel, &place, &test, &s, &ambient, &n, NULL, NULL);
  store_sums (sums, pixels, s);
  sums[9 * pixels] = (float) n;
  sums[10 * pixels] = ambient;
}

/* ------------------------------------------------------------------------
 * The first two solutions. */

/* What becomes of a pixel after its second solution @s of @n lights. Returns:
 * whether there is a third to come */
static __device__ __forceinline__ bool
take_second (const Arguments &a, const Solution &s, uint32_t n,
    Solution &solution, Found &found)
{
  const ImkPhotostereoParams &p = a.params;
  bool same = n == found.n; /* lights go from the first set, none comes */

  if (!is_good (s, (float) n, (float) min (p.min_lights, a.n_lights),
          p.min_condition))
    return false;
  solution = s;
  found.n = n;
  found.set = 0;
  found.rounds += !same;
  return !same && p.max_iterations > 2;
}

template <typename Sample, int FALLOFF, bool ONE_GAIN, int N>
static __global__ void
__launch_bounds__ (THREADS, 4) solve_first (const __grid_constant__ Arguments a)
{
  extern __shared__ float4 lit[];
  uint32_t tile = a.tile_rows * a.plan.width;
  uint32_t first = (blockIdx.x * THREADS + threadIdx.x) * N;
  size_t base = (size_t) (a.tile_row - a.first_row) * a.plan.width;
  size_t pixels = store_pixels (a), pixel[N];
  bool rejects = a.params.robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS &&
                 a.params.max_iterations > 1;
  Place place[N];
  Test test[N];
  LightSums sums[N];
  Solution solution[N];
  Found found[N];
  float ambient[N] = {};
  uint32_t n[N] = {}, at[N];

  load_lit (a, lit);
#pragma unroll
  for (int i = 0; i < N; i++) { /* beyond the end: the last pixel again */
    at[i] = min (first + i, tile - 1);
    pixel[i] = base + at[i];
    place[i] = place_of (a, at[i]);
    test[i] = first_test (a.params);
    sums[i] = LightSums{};
    if (a.n_summed > 0) {
      load_sums (a.sums + pixel[i], pixels, sums[i]);
      n[i] = (uint32_t) a.sums[9 * pixels + pixel[i]];
      ambient[i] = a.sums[10 * pixels + pixel[i]];
    }
  }
  sum_packets<Sample, FALLOFF, ONE_GAIN, N, true> (a, a.n_summed, a.n_packets,
      pixel, place, test, sums, ambient, n, NULL, at);
#pragma unroll
  for (int i = 0; i < N; i++) {
    uint32_t y = at[i] / a.plan.width, x = at[i] - y * a.plan.width;

    solution[i] = solve_light_sums (sums[i]);
    found[i] = Found{n[i], 1, FIRST_SET, false};
    found[i].valid =
        a.n_lights >= 3 && is_wanted (a, x, a.tile_row + y) &&
        is_good (solution[i], (float) n[i], 3, a.params.min_condition);
    test[i] = next_test (a.params, solution[i], place[i]);
    sums[i] = LightSums{};
    n[i] = 0;
  }
  if (rejects)
    sum_packets<Sample, FALLOFF, ONE_GAIN, N, false> (
        a, 0, a.n_packets, pixel, place, test, sums, ambient, n, a.words, at);
#pragma unroll
  for (int i = 0; i < N; i++) {
    bool more = false;

    if (rejects && found[i].valid)
      more = take_second (
          a, solve_light_sums (sums[i]), n[i], solution[i], found[i]);
    store_state (a, at[i], solution[i], found[i]);
    a.states[4 * a.tile_size + at[i]] = ambient[i];
    if (more)
      store_sums (a.round_sums + at[i], a.tile_size, sums[i]);
    append (a, more && first + i < tile, at[i]);
  }
}
