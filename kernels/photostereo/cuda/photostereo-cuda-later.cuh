/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fast solver: the later solutions. */
#pragma once

#include <cuda_pipeline_primitives.h>

#include "photostereo/cuda/photostereo-cuda-light.cuh"

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

/* The sums and words of the pixel go to shared memory by themselves, see
 * refill (). */
static __device__ __forceinline__ void
load_work (const Arguments &a, uint32_t at, Work &w)
{
  uint32_t step = N_PIXELS * blockDim.x;

#pragma unroll
  for (int i = 0; i < N_LIGHT_SUMS; i++)
    __pipeline_memcpy_async (
        &w.sums[i * step], &a.round_sums[i * a.tile_size + at], sizeof (float));
  for (uint32_t i = 0; i < a.n_packets; i++)
    __pipeline_memcpy_async (
        &w.words[i * step], &a.words[i * a.tile_size + at], sizeof (uint32_t));
  w.at = at;
  w.pixel = (size_t) (a.tile_row - a.first_row) * a.plan.width + at;
  w.place = place_of (a, at);
  w.solution.x = a.states[at];
  w.solution.y = a.states[a.tile_size + at];
  w.solution.z = a.states[2 * a.tile_size + at];
  w.solution.condition = a.states[3 * a.tile_size + at];
  w.found = found_unpack (a.found[at]);
  w.solution.norm2 = w.solution.x * w.solution.x + w.solution.y * w.solution.y +
                     w.solution.z * w.solution.z;
}

/* For load_work (). */
static __device__ __forceinline__ void
save_work (const Arguments &a, const Work &w)
{
  uint32_t step = N_PIXELS * blockDim.x;

#pragma unroll
  for (int i = 0; i < N_LIGHT_SUMS; i++)
    a.round_sums[i * a.tile_size + w.at] = w.sums[i * step];
  for (uint32_t i = 0; i < a.n_packets; i++)
    a.words[i * a.tile_size + w.at] = w.words[i * step];
  store_state (a, w.at, w.solution, w.found);
}

/* Half a packet of N pixels. */
template <typename Sample, int FALLOFF, bool ONE_GAIN, bool SMOOTH, int N>
static __device__ __forceinline__ void
test_half (const Arguments &a, const Lit *lit, const float4 *factors,
    const uint4 samples[N], const Work work[N], const Test test[N],
    uint32_t bias, uint32_t bits[N])
{
  constexpr int WORD = 4 / sizeof (Sample);

#pragma unroll
  for (int j = 0; j < 4 * WORD; j++) {
    const float4 lamp = *(const float4 *) &lit[j];
    const float4 factor = SMOOTH ? factors[j] : float4{};

#pragma unroll
    for (int i = 0; i < N; i++) {
      const Place &place = work[i].place;
      float grey = grey_of<ONE_GAIN> (a, lit[j], place,
          biased_of<Sample> ((&samples[i].x)[j / WORD], j % WORD, bias));
      float k = SMOOTH ? smooth_factor (factor, place)
                       : factor_of<FALLOFF> (lamp, place);
      float along = __fmaf_rn (test[i].z, lamp.z,
          __fmaf_rn (test[i].y, lamp.y,
              __fmaf_rn (test[i].x, lamp.x, test[i].offset)));

      mark (test[i], upper_of<ONE_GAIN> (a, lit[j], place, test[i]), grey,
          misfit_of<FALLOFF> (along, grey, k, lamp), j, bits[i]);
    }
  }
}

/* Tests all lights of N pixels.
 * @factors: with SMOOTH, of all lights, for smooth_factor ()
 * changed[]: a bit for each packet in which one came or went */
template <typename Sample, int FALLOFF, bool ONE_GAIN, bool SMOOTH, int N>
static __device__ __forceinline__ void
test_lights (const Arguments &a, uint32_t bias, const float4 *factors,
    const Work work[N], uint64_t changed[N])
{
  constexpr int LIGHTS = PACKET / sizeof (Sample);
  size_t step = store_pixels (a) * (PACKET / sizeof (uint4));
  const Lit *lit = shared_lit ();
  const uint4 *from[N];
  uint4 next[2][N];
  Test test[N];

#pragma unroll
  for (int i = 0; i < N; i++) {
    from[i] = (const uint4 *) packet_at (a, 0, 0, work[i].pixel);
    next[0][i] = from[i][0];
    next[1][i] = from[i][1];
    test[i] = next_test (a, work[i].solution, work[i].place);
    changed[i] = 0;
  }
#pragma unroll 1
  for (uint32_t packet = 0; packet < a.n_packets; packet++) {
    uint32_t at = packet * N_PIXELS * blockDim.x, now[N] = {};
    int halves = halves_of<Sample> (a, packet);
    uint4 samples[2][N];

#pragma unroll
    for (int i = 0; i < N; i++) {
      samples[0][i] = next[0][i];
      samples[1][i] = next[1][i];
      if (packet + 1 < a.n_packets) { /* prefetch during the computation */
        from[i] += step;
        next[0][i] = from[i][0];
        next[1][i] = from[i][1];
      }
    }
#pragma unroll 1
    for (int half = 0; half < halves; half++) {
      uint32_t bits[N] = {};

      test_half<Sample, FALLOFF, ONE_GAIN, SMOOTH, N> (
          a, lit, factors, samples[0], work, test, bias, bits);
#pragma unroll
      for (int i = 0; i < N; i++) {
        now[i] |= bits[i] << (half * LIGHTS / 2);
        samples[0][i] = samples[1][i];
      }
      lit += LIGHTS / 2;
      factors += SMOOTH ? LIGHTS / 2 : 0;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
      uint32_t old = work[i].words[at];

      if (!a.params.readmit)
        now[i] &= old;
      work[i].changes[at] = now[i] ^ old;
      if (work[i].busy)
        changed[i] |= (uint64_t) (now[i] != old) << packet;
    }
  }
}

/* A light that comes (@sign 1) or goes (-1); 0: none. */
struct Change {
  uint32_t light, sample;
  float sign;
};

/* Where the changes of a pixel are read. */
struct Changes {
  uint64_t packets; /* to come */
  uint32_t packet, bits, now;
  uint32_t n; /* lights used, valid after the last packet */
};

template <typename Sample>
static __device__ __forceinline__ Change
read_change (const Arguments &a, const Work &w, Changes &c)
{
  constexpr uint32_t LIGHTS = PACKET / sizeof (Sample);
  Change change = {};

  if (c.bits == 0 && c.packets != 0) {
    uint32_t at;

    c.packet = (uint32_t) __ffsll ((long long) c.packets) - 1;
    at = c.packet * N_PIXELS * blockDim.x;
    c.packets &= c.packets - 1;
    c.bits = w.changes[at];
    c.now = w.words[at] ^= c.bits;
    c.n += 2 * __popc (c.bits & c.now) - __popc (c.bits);
  }
  if (c.bits != 0) {
    uint32_t j = (uint32_t) __ffs ((int) c.bits) - 1;
    const uint8_t *samples = packet_at (a, 0, c.packet, w.pixel);

    c.bits &= c.bits - 1;
    change.light = c.packet * LIGHTS + j;
    change.sign = (c.now >> j & 1) != 0 ? 1 : -1;
    change.sample = ((const Sample *) samples)[j]; /* prefetched */
  }
  return change;
}

template <int FALLOFF, bool ONE_GAIN>
static __device__ __forceinline__ void
add_change (
    const Arguments &a, const Place &place, const Change &c, LightSums &s)
{
  const Lit &lit = shared_lit ()[c.light];
  const float4 lamp = *(const float4 *) &lit;
  float k = factor_of<FALLOFF> (lamp, place);
  float x = k * (lamp.x - place.x), y = k * (lamp.y - place.y);
  float z = k * lamp.z, sx = c.sign * x, sy = c.sign * y, sz = c.sign * z;
  float grey = grey_of<ONE_GAIN> (a, lit, place, (float) c.sample + 8388608.0f);

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

/* All that test_lights () found. Every lane has its own, and their samples are
 * far: that of each pixel is read before the first is used.
 * @sums: of those that come less those that go
 * Returns: in n[], how many lights count now */
template <typename Sample, int FALLOFF, bool ONE_GAIN, int N>
static __device__ __forceinline__ void
change_lights (const Arguments &a, const Work work[N],
    const uint64_t changed[N], LightSums sums[N], uint32_t n[N])
{
  Changes changes[N];
  bool any = false;

#pragma unroll
  for (int i = 0; i < N; i++) {
    changes[i] = Changes{changed[i], 0, 0, 0, work[i].found.n};
    any |= changed[i] != 0;
  }
  while (__any_sync (~0u, any)) {
    Change change[N];

    any = false;
#pragma unroll
    for (int i = 0; i < N; i++)
      change[i] = read_change<Sample> (a, work[i], changes[i]);
#pragma unroll
    for (int i = 0; i < N; i++) {
      if (change[i].sign != 0)
        add_change<FALLOFF, ONE_GAIN> (a, work[i].place, change[i], sums[i]);
      any |= changes[i].packets != 0 || changes[i].bits != 0;
    }
  }
#pragma unroll
  for (int i = 0; i < N; i++)
    n[i] = changes[i].n;
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
template <typename Sample, int FALLOFF, bool ONE_GAIN, int N>
static __device__ __forceinline__ void
end_round (const Arguments &a, const uint64_t changed[N], Work work[N])
{
  uint32_t step = N_PIXELS * blockDim.x, n[N];
  LightSums sums[N] = {};

  change_lights<Sample, FALLOFF, ONE_GAIN, N> (a, work, changed, sums, n);
#pragma unroll
  for (int i = 0; i < N; i++) {
    Work &w = work[i];
    bool good = false, more;

#pragma unroll
    for (int k = 0; k < N_LIGHT_SUMS; k++)
      ((float *) &sums[i])[k] = w.sums[k * step] += ((float *) &sums[i])[k];
    if (w.busy && changed[i])
      good = take_next (a, sums[i], n[i], w);
    more = good && w.found.rounds < a.params.max_iterations;
    if (w.busy && !more) {
      store_state (a, w.at, w.solution, w.found);
      if (a.measures)
        store_words (a, w, changed[i] && !good);
    }
    w.busy = more;
  }
}

/* Lanes without a pixel take the next of the list.
 * Returns: whether any lane of the warp has one */
template <int N>
static __device__ __forceinline__ bool
refill (const Arguments &a, uint32_t n, Work work[N])
{
  uint32_t lane = threadIdx.x % 32, below = (1u << lane) - 1;
  uint32_t lanes[N], wanted = 0, base = n, at[N];
  bool fresh[N], any = false;

#pragma unroll
  for (int i = 0; i < N; i++) {
    lanes[i] = __ballot_sync (~0u, !work[i].busy);
    wanted += __popc (lanes[i]);
  }
  if (lane == 0 && wanted && *(volatile uint32_t *) &a.counters[TAKEN] < n)
    base = atomicAdd (&a.counters[TAKEN], wanted);
  base = __shfl_sync (~0u, base, 0);
#pragma unroll
  for (int i = 0; i < N; i++) {
    uint32_t next = base + __popc (lanes[i] & below);

    fresh[i] = !work[i].busy && next < n;
    at[i] = fresh[i] ? a.list[next] : 0;
    base += __popc (lanes[i]);
  }
#pragma unroll
  for (int i = 0; i < N; i++) {
    if (fresh[i])
      load_work (a, at[i], work[i]);
    work[i].busy |= fresh[i];
    any |= work[i].busy;
  }
  __pipeline_commit ();
  __pipeline_wait_prior (0);
  return __any_sync (~0u, any);
}

template <typename Sample, int FALLOFF, bool ONE_GAIN, int N>
static __global__ void
__launch_bounds__ (THREADS, 5) solve_later (const __grid_constant__ Arguments a)
{
  extern __shared__ float4 lit[];
  uint32_t n = a.counters[LISTED], bias = load_bias (a);
  Work work[N] = {};

  load_lit (a, lit);
#pragma unroll
  for (int i = 0; i < N; i++)
    find_shared (a, i, work[i]);
  while (refill<N> (a, n, work)) {
    uint64_t changed[N];

    test_lights<Sample, FALLOFF, ONE_GAIN, false, N> (
        a, bias, NULL, work, changed);
    end_round<Sample, FALLOFF, ONE_GAIN, N> (a, changed, work);
  }
}
