/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rounds for one plane of samples as they are, under lamps without a lobe.
 *
 * A block has a segment of a row of pixels, and a list of those that are not
 * solved yet. A warp makes the sums of a round for some of these at a time and
 * solves them; a pixel whose lights change is in the next list. So warps stay
 * full though one pixel takes 2 rounds and another 10. What comes of a pixel
 * does not depend on its neighbours in the list. A round makes all sums anew,
 * in the order of the lights: the same lights give the same bits, and that is
 * the end.
 *
 * How the sums of a round are made is the variant: Scalar or Matrix. */
#pragma once

#include "core/cuda/instance.cuh"
#include "photostereo/cuda/photostereo-cuda-light.cuh"

enum {
  WARPS = THREADS / 32,
  SEGMENT = 2 * THREADS, /* pixels; Arguments.smooth is of as many */
};

/* Of a block, in shared memory before what the variant has there. */
struct Segment {
  float4 states[SEGMENT]; /* n' in the unit of the variant, Found */
  float condition[SEGMENT];
  uint8_t lists[2][SEGMENT]; /* pixels: of this round, of the next */
  uint32_t
      n_listed[3]; /* in lists of this round, the next, and the one after */
};

/* What comes of a round for a pixel. */
struct Round {
  LightSums sums;
  float n, ambient; /* the second of the first round alone */
};

/* In the tile. */
static __device__ __forceinline__ uint32_t
first_of_segment (const Arguments &a)
{
  return blockIdx.y * a.plan.width + blockIdx.x * SEGMENT;
}

static __device__ __forceinline__ float4
state_of (const Solution &s, const Found &f)
{
  return float4{s.x, s.y, s.z, __uint_as_float (found_pack (f))};
}

/* After the first solution. Returns: whether another is to come */
static __device__ __forceinline__ bool
take_first (const Arguments &a, const Solution &s, const Round &round,
    uint32_t pixel, Segment &segment)
{
  Found found = {(uint32_t) round.n, 1, FIRST_SET, false};
  uint32_t x = blockIdx.x * SEGMENT + pixel, y = a.tile_row + blockIdx.y;

  found.valid = a.n_lights >= 3 && is_wanted (a, x, y) &&
                is_good (s, round.n, 3, a.params.min_condition);
  segment.states[pixel] = state_of (s, found);
  segment.condition[pixel] = s.condition;
  a.ambients[first_of_segment (a) + pixel] = round.ambient;
  return found.valid && rejects (a);
}

/* After a later one, which is the same where the lights are the same.
 * @unit: n' of the solution is as many times that of the state */
static __device__ __forceinline__ bool
take_later (const Arguments &a, const Solution &s, const Round &round,
    float unit, uint32_t pixel, Segment &segment)
{
  float4 state = segment.states[pixel];
  Found found = found_unpack (__float_as_uint (state.w));

  if (!is_good (s, round.n, (float) min (a.params.min_lights, a.n_lights),
          a.params.min_condition) ||
      (s.x == state.x && s.y == state.y && s.z == state.z))
    return false;
  if (a.measures) {
    float *last = a.last + first_of_segment (a) + pixel;

    last[0] = state.x * unit;
    last[a.tile_size] = state.y * unit;
    last[2 * a.tile_size] = state.z * unit;
  }
  found.n = (uint32_t) round.n;
  found.set = next_set (found);
  found.rounds++;
  segment.states[pixel] = state_of (s, found);
  segment.condition[pixel] = s.condition;
  return found.rounds < a.params.max_iterations;
}

/* The lanes with @more put @pixel into a list. */
static __device__ __forceinline__ void
list_pixel (bool more, uint32_t pixel, uint8_t *list, uint32_t *n_listed)
{
  uint32_t lane = threadIdx.x % 32, lanes = __ballot_sync (~0u, more), base = 0;

  if (lane == 0 && lanes)
    base = atomicAdd (n_listed, __popc (lanes));
  base = __shfl_sync (~0u, base, 0);
  if (more)
    list[base + __popc (lanes & ((1u << lane) - 1))] = (uint8_t) pixel;
}

/* One round of all pixels of the list, by all threads of a block; those with
 * another to come are in the next list then. */
template <bool FIRST, class Variant>
static __device__ __forceinline__ void
do_round (const Arguments &a, const Variant &variant, Segment &segment,
    uint32_t round, uint32_t n_listed)
{
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint8_t *list = segment.lists[round % 2];
  /* With few pixels all warps share each pixel. */
  uint32_t size = (n_listed > Variant::TILE * WARPS ? 2 : 1) * Variant::TILE;

  if (threadIdx.x == 0)
    segment.n_listed[(round + 2) % 3] = 0;
  for (uint32_t first = warp * size; first < n_listed; first += WARPS * size) {
    uint32_t n = min (n_listed - first, size), pixels[Variant::PIXELS];
    Round rounds[Variant::PIXELS] = {};

#pragma unroll
    for (uint32_t i = 0; i < Variant::PIXELS; i++)
      pixels[i] = list[first + min (32 * i + lane, n - 1)];
    variant.template sum<FIRST> (a, segment, list + first, n, pixels, rounds);
    __syncwarp (); /* lanes beyond @n have read a state that changes now */
#pragma unroll
    for (uint32_t i = 0; i < Variant::PIXELS; i++) {
      bool more = false;

      if (32 * i + lane < n) {
        Solution s = solve_light_sums (rounds[i].sums);

        more = FIRST ? take_first (a, s, rounds[i], pixels[i], segment)
                     : take_later (a, s, rounds[i], Variant::unit (a),
                           pixels[i], segment);
      }
      list_pixel (more, pixels[i], segment.lists[(round + 1) % 2],
          &segment.n_listed[(round + 1) % 3]);
    }
  }
  __syncthreads ();
}

template <class Variant>
static __global__ void
__launch_bounds__ (THREADS, 4)
    solve_segments (const __grid_constant__ Arguments a)
{
  extern __shared__ uint4 shared[];
  Segment &segment = *(Segment *) shared;
  uint32_t x = blockIdx.x * SEGMENT, at = first_of_segment (a), round = 0, n;
  uint32_t n_pixels = min (a.plan.width - x, (uint32_t) SEGMENT);
  Variant variant (a, shared + sizeof (Segment) / sizeof (*shared), n_pixels);

  for (uint32_t i = threadIdx.x; i < n_pixels; i += THREADS)
    segment.lists[0][i] = (uint8_t) i;
  if (threadIdx.x < 3)
    segment.n_listed[threadIdx.x] = 0;
  __syncthreads ();
  do_round<true> (a, variant, segment, round, n_pixels);
  while ((n = segment.n_listed[++round % 3]) > 0)
    do_round<false> (a, variant, segment, round, n);
  for (uint32_t i = threadIdx.x; i < n_pixels; i += THREADS) {
    float4 state = segment.states[i];
    float unit = Variant::unit (a);

    a.states[at + i] = state.x * unit;
    a.states[a.tile_size + at + i] = state.y * unit;
    a.states[2 * a.tile_size + at + i] = state.z * unit;
    a.states[3 * a.tile_size + at + i] = segment.condition[i];
    a.found[at + i] = __float_as_uint (state.w);
  }
}

/* ------------------------------------------------------------------------
 * Launches. */

typedef void (*Kernel) (const Arguments);

/* The power of 1 / |s - x| in k, see light_vector (). */
static OneOf<3, 1, 0>
falloff_of (ImkPhotostereoModel model)
{
  return {model == IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE ? 3
          : model == IMK_PHOTOSTEREO_MODEL_UNIT         ? 1
                                                        : 0};
}

/* @size: of the variant's shared memory */
static ImkStatus
launch_segments (const Arguments *a, Kernel kernel, size_t size,
    cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t launch = launch_of (THREADS, a->tile_rows, stream);

  launch.gridDim.x = imk_div_up (a->plan.width, SEGMENT);
  launch.dynamicSmemBytes = sizeof (Segment) + size;
  /* the same of all objects: another one's threads may be between these calls
   */
  if (launch.dynamicSmemBytes > SHARED)
    IMK_TRY (IMK_CUDA (
        error, cudaFuncSetAttribute ((const void *) kernel,
                   cudaFuncAttributeMaxDynamicSharedMemorySize, MAX_SHARED)));
  return IMK_CUDA_LAUNCH (error, launch, kernel, *a);
}
