/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fast solver: the later solutions. */
#pragma once

#include "photostereo/photostereo-cuda-light.h"

enum { N_LIGHT_SUMS = sizeof (LightSums) / sizeof (float) };

/* A pixel of a lane. */
struct Work {
  bool busy;
  uint32_t at;  /* in the tile */
  size_t pixel; /* of the store */
  Place place;
  Solution solution;
  Found found;
  /* in shared memory, a step apart: sums, which lights count, and where that
   * has changed */
  float *sums;
  uint32_t *words, *changes;
};

/* Shared memory of a block of @n_threads: the lights, and what a pixel has. */
static __host__ __device__ __forceinline__ size_t
later_size (uint32_t n_packets, uint32_t packet_lights, uint32_t n_threads)
{
  return n_packets * packet_lights * sizeof (Lit) +
         N_PIXELS * n_threads *
             (N_LIGHT_SUMS * sizeof (float) +
                 2 * n_packets * sizeof (uint32_t));
}

/* Where the pixel @i of this thread has its part of shared memory. */
static __device__ __forceinline__ void
find_shared (const Arguments &a, uint32_t i, Work &w)
{
  uint32_t step = N_PIXELS * blockDim.x, thread = i * blockDim.x + threadIdx.x;
  float *sums =
      (float *) (shared_lit () + a.n_packets * packet_lights (a.plan.type));

  w.sums = sums + thread;
  w.words = (uint32_t *) (sums + N_LIGHT_SUMS * step) + thread;
  w.changes = w.words + a.n_packets * step;
}

static __device__ __forceinline__ void
load_work (const Arguments &a, uint32_t at, Work &w)
{
  uint32_t step = N_PIXELS * blockDim.x;

  w.at = at;
  w.pixel = (size_t) (a.tile_row - a.first_row) * a.plan.width + at;
  w.place = place_of (a, at);
  w.solution.x = a.states[at];
  w.solution.y = a.states[a.tile_size + at];
  w.solution.z = a.states[2 * a.tile_size + at];
  w.solution.condition = a.states[3 * a.tile_size + at];
  w.solution.norm2 = w.solution.x * w.solution.x + w.solution.y * w.solution.y +
                     w.solution.z * w.solution.z;
  w.found = found_unpack (a.found[at]);
#pragma unroll
  for (int i = 0; i < N_LIGHT_SUMS; i++)
    w.sums[i * step] = a.round_sums[i * a.tile_size + at];
  for (uint32_t i = 0; i < a.n_packets; i++)
    w.words[i * step] = a.words[i * a.tile_size + at];
}

/* Half a packet of N pixels. */
template <typename Sample, int FALLOFF, bool ONE_GAIN, int N>
static __device__ __forceinline__ void
test_half (const Arguments &a, const Lit *lit, const uint4 samples[N],
    const Work work[N], const Test test[N], uint32_t bits[N])
{
  constexpr int WORD = 4 / sizeof (Sample);

#pragma unroll
  for (int j = 0; j < 4 * WORD; j++) {
    const float4 lamp = *(const float4 *) &lit[j];

#pragma unroll
    for (int i = 0; i < N; i++) {
      const Place &place = work[i].place;
      float grey = grey_of<ONE_GAIN> (a, lit[j], place,
          biased_of<Sample> ((&samples[i].x)[j / WORD], j % WORD));
      float k = factor_of<FALLOFF> (lamp, place);
      float along = __fmaf_rn (test[i].z, lamp.z,
          __fmaf_rn (test[i].y, lamp.y,
              __fmaf_rn (test[i].x, lamp.x, test[i].offset)));

      mark (
          test[i], grey, misfit_of<FALLOFF> (along, grey, k, lamp), j, bits[i]);
    }
  }
}

/* Tests all lights of N pixels. changed[]: a bit for each packet in which one
 * came or went */
template <typename Sample, int FALLOFF, bool ONE_GAIN, bool DROP, int N>
static __device__ __forceinline__ void
test_lights (const Arguments &a, const Work work[N], uint64_t changed[N])
{
  constexpr int LIGHTS = PACKET / sizeof (Sample);
  size_t step = store_pixels (a) * (PACKET / sizeof (uint4));
  const Lit *lit = shared_lit ();
  Test test[N];

#pragma unroll
  for (int i = 0; i < N; i++) {
    test[i] = next_test (a.params, work[i].solution, work[i].place);
    changed[i] = 0;
  }
#pragma unroll 1
  for (uint32_t packet = 0; packet < a.n_packets; packet++) {
    uint32_t at = packet * N_PIXELS * blockDim.x, now[N] = {};
    int halves = halves_of<Sample> (a, packet);
    uint4 samples[2][N];

#pragma unroll
    for (int i = 0; i < N; i++) {
      const uint4 *from =
          (const uint4 *) packet_at (a, 0, packet, work[i].pixel);

      samples[0][i] = from[0];
      samples[1][i] = from[1];
      /* on its way to the near cache meanwhile */
      if (packet + 1 < a.n_packets)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + step));
    }
#pragma unroll 1
    for (int half = 0; half < halves; half++) {
      uint32_t bits[N] = {};

      test_half<Sample, FALLOFF, ONE_GAIN, N> (
          a, lit, samples[0], work, test, bits);
#pragma unroll
      for (int i = 0; i < N; i++) {
        now[i] |= bits[i] << (half * LIGHTS / 2);
        samples[0][i] = samples[1][i];
      }
      lit += LIGHTS / 2;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
      uint32_t old = work[i].words[at];

      if (DROP)
        now[i] &= old;
      work[i].changes[at] = now[i] ^ old;
      if (work[i].busy)
        changed[i] |= (uint64_t) (now[i] != old) << packet;
    }
  }
}

/* One light comes (@sign 1) or goes (-1). */
template <typename Sample, int FALLOFF, bool ONE_GAIN>
static __device__ __forceinline__ void
change_light (const Arguments &a, const Work &w, const Sample *samples,
    uint32_t packet, uint32_t j, float sign, LightSums &s)
{
  constexpr uint32_t LIGHTS = PACKET / sizeof (Sample);
  const Lit &lit = shared_lit ()[packet * LIGHTS + j];
  const float4 lamp = *(const float4 *) &lit;
  float k = factor_of<FALLOFF> (lamp, w.place);
  float x = k * (lamp.x - w.place.x), y = k * (lamp.y - w.place.y);
  float z = k * lamp.z, sx = sign * x, sy = sign * y, sz = sign * z;
  float grey =
      grey_of<ONE_GAIN> (a, lit, w.place, (float) samples[j] + 8388608.0f);

  s.xx = __fmaf_rn (sx, x, s.xx);
  s.xy = __fmaf_rn (sx, y, s.xy);
  s.xz = __fmaf_rn (sx, z, s.xz);
  s.yy = __fmaf_rn (sy, y, s.yy);
  s.yz = __fmaf_rn (sy, z, s.yz);
  s.zz = __fmaf_rn (sz, z, s.zz);
  s.x = __fmaf_rn (sx, grey, s.x);
  s.y = __fmaf_rn (sy, grey, s.y);
  s.z = __fmaf_rn (sz, grey, s.z);
}

/* All that test_lights () found; every lane has its own. @sums: of those that
 * come less those that go
 * Returns: how many lights count now */
template <typename Sample, int FALLOFF, bool ONE_GAIN>
static __device__ __forceinline__ uint32_t
change_lights (
    const Arguments &a, const Work &w, uint64_t changed, LightSums &sums)
{
  uint32_t bits = 0, now = 0, packet = 0, n = w.found.n;
  const Sample *samples = NULL;

  while (__any_sync (~0u, changed != 0 || bits != 0)) {
    if (bits == 0 && changed != 0) {
      uint32_t at;

      packet = (uint32_t) __ffsll ((long long) changed) - 1;
      at = packet * N_PIXELS * blockDim.x;
      changed &= changed - 1;
      bits = w.changes[at];
      now = w.words[at] ^= bits;
      samples = (const Sample *) packet_at (a, 0, packet, w.pixel);
    }
    if (bits != 0) {
      uint32_t j = (uint32_t) __ffs ((int) bits) - 1;
      bool comes = (now >> j & 1) != 0;

      bits &= bits - 1;
      n += comes ? 1 : ~0u;
      change_light<Sample, FALLOFF, ONE_GAIN> (
          a, w, samples, packet, j, comes ? 1 : -1, sums);
    }
  }
  return n;
}

/* Takes over the solution of @n lights. Returns: whether it was good */
static __device__ __forceinline__ bool
take_next (const Arguments &a, const LightSums &sums, uint32_t n, Work &w)
{
  Solution s = solve_light_sums (sums);

  if (!is_good (s, (float) n, (float) min (a.params.min_lights, a.n_lights),
          a.params.min_condition))
    return false;
  w.solution = s;
  w.found.n = n;
  w.found.rounds++;
  return true;
}

/* The lights of a solution, for residual_of (). @failed: the last round was for
 * nothing, and the lights are those before it */
static __device__ __forceinline__ void
store_words (const Arguments &a, const Work &w, bool failed)
{
  for (uint32_t i = 0; i < a.n_packets; i++) {
    uint32_t at = i * N_PIXELS * blockDim.x;

    a.words[i * a.tile_size + w.at] =
        w.words[at] ^ (failed ? w.changes[at] : 0);
  }
}

/* After a round. A solution of the same lights would be the same one. */
template <typename Sample, int FALLOFF, bool ONE_GAIN>
static __device__ __forceinline__ void
end_round (const Arguments &a, uint64_t changed, Work &w)
{
  uint32_t step = N_PIXELS * blockDim.x, n;
  bool good = false, more;
  LightSums sums = {};

  if (!__any_sync (~0u, w.busy))
    return;
  n = change_lights<Sample, FALLOFF, ONE_GAIN> (a, w, changed, sums);
#pragma unroll
  for (int i = 0; i < N_LIGHT_SUMS; i++)
    ((float *) &sums)[i] = w.sums[i * step] += ((float *) &sums)[i];
  if (w.busy && changed)
    good = take_next (a, sums, n, w);
  more = good && w.found.rounds < a.params.max_iterations;
  if (w.busy && !more) {
    store_state (a, w.at, w.solution, w.found);
    if (a.measures)
      store_words (a, w, changed && !good);
  }
  w.busy = more;
}

/* Lanes without a pixel take the next of the list. */
static __device__ __forceinline__ void
refill (const Arguments &a, uint32_t n, Work &w)
{
  uint32_t lanes = __ballot_sync (~0u, !w.busy), base = n;
  uint32_t lane = threadIdx.x % 32;

  if (lane == 0 && lanes && *(volatile uint32_t *) &a.counters[1] < n)
    base = atomicAdd (&a.counters[1], __popc (lanes));
  base = __shfl_sync (~0u, base, 0);
  if (!w.busy) {
    uint32_t i = base + __popc (lanes & ((1u << lane) - 1));

    w.busy = i < n;
    if (w.busy)
      load_work (a, a.list[i], w);
  }
}

template <typename Sample, int FALLOFF, bool ONE_GAIN, bool DROP, int N>
static __global__ void
__launch_bounds__ (THREADS, 5) solve_later (const __grid_constant__ Arguments a)
{
  extern __shared__ float4 lit[];
  uint32_t n = a.counters[0];
  Work work[N] = {};

  load_lit (a, lit);
#pragma unroll
  for (int i = 0; i < N; i++)
    find_shared (a, i, work[i]);
  for (;;) {
    uint64_t changed[N];
    bool any = false;

#pragma unroll
    for (int i = 0; i < N; i++) {
      refill (a, n, work[i]);
      any |= work[i].busy;
    }
    if (!__any_sync (~0u, any))
      break;
    test_lights<Sample, FALLOFF, ONE_GAIN, DROP, N> (a, work, changed);
#pragma unroll
    for (int i = 0; i < N; i++)
      end_round<Sample, FALLOFF, ONE_GAIN> (a, changed[i], work[i]);
  }
}
