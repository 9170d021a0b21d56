/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sums of a round by a lane for each pixel, where
 * photostereo-cuda-matrix.cu is not for it: samples of 16 bits, lamps that are
 * not equally bright, lamps so near that light vectors are no parabolas, lights
 * that may not come back, least squares. The sums of the first solution, which
 * takes all lights, are made packet by packet while pictures arrive.
 *
 * L = k (s - x), in a unit of length in which k is |s - x|^-3, |s - x|^-1 or 1.
 */
#include "photostereo/cuda/photostereo-cuda-segment.cuh"

/* ------------------------------------------------------------------------
 * Sums of lights. */

/* A pixel of a lane. */
struct Work {
  Place place;
  Test test;
  const uint4 *samples;
  /* where lights may not come back: those that counted in the last solution,
   * and where those of this one go; else NULL */
  const uint32_t *kept;
  uint32_t *used;
  Round round;
};

/* Half a packet of N pixels: @samples.
 * Returns: in words[], a bit for each light that counts */
template <typename Sample, int FALLOFF, bool ONE_GAIN, int N, bool FIRST>
static __device__ __forceinline__ void
sum_half (const Arguments &a, const Lit *lit, const uint4 samples[N],
    uint32_t bias, const uint32_t kept[N], Work work[N], uint32_t words[N])
{
  constexpr int LIGHTS = 4 / sizeof (Sample);

#pragma unroll
  for (int j = 0; j < 4 * LIGHTS; j++) {
    const float4 lamp = *(const float4 *) &lit[j];

#pragma unroll
    for (int i = 0; i < N; i++) {
      Work &w = work[i];
      const uint32_t *word = &samples[i].x + j / LIGHTS;
      float grey = grey_of<ONE_GAIN> (
          a, lit[j], w.place, biased_of<Sample> (*word, j % LIGHTS, bias));
      float3 l = light_vector<FALLOFF> (lamp, lit[j].z2, w.place);

      add_light (w.round.sums, w.test,
          upper_of<ONE_GAIN> (a, lit[j], w.place, w.test), l, grey,
          FIRST ? lamp.w : misfit_of<FALLOFF> (w.test, l, grey, lamp), kept[i],
          1u << j, words[i]);
      if (FIRST)
        w.round.ambient += lamp.w >= 0 ? grey : 0;
    }
  }
}

/* Packets @first to @end of N pixels. */
template <typename Sample, int FALLOFF, bool ONE_GAIN, int N, bool FIRST>
static __device__ __forceinline__ void
sum_packets (const Arguments &a, const Lit *lit, uint32_t first, uint32_t end,
    Work work[N])
{
  constexpr uint32_t LIGHTS = PACKET / sizeof (Sample);
  size_t step = store_pixels (a) * (PACKET / sizeof (uint4));
  uint32_t bias = load_bias (a);

  for (uint32_t packet = first; packet < end; packet++) {
    uint4 samples[2][N];
    uint32_t used[N] = {}, kept[N];

#pragma unroll
    for (int i = 0; i < N; i++) {
      samples[0][i] = work[i].samples[packet * step];
      samples[1][i] = work[i].samples[packet * step + 1];
      kept[i] = work[i].kept ? work[i].kept[packet * a.tile_size] : ~0u;
    }
#pragma unroll 1
    for (int half = 0; half < halves_of<Sample> (a, packet); half++) {
      uint32_t bits[N] = {};

      sum_half<Sample, FALLOFF, ONE_GAIN, N, FIRST> (a,
          lit + packet * LIGHTS + half * LIGHTS / 2, samples[0], bias, kept,
          work, bits);
#pragma unroll
      for (int i = 0; i < N; i++) {
        used[i] |= bits[i] << (half * LIGHTS / 2);
        kept[i] >>= LIGHTS / 2;
        samples[0][i] = samples[1][i];
      }
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
      work[i].round.n += (float) __popc (used[i]);
      if (work[i].used)
        work[i].used[packet * a.tile_size] = used[i];
    }
  }
}

static __device__ __forceinline__ void
load_round (const Arguments &a, size_t pixel, Round &round)
{
  float *to = (float *) &round;

#pragma unroll
  for (int i = 0; i < N_SUMS; i++)
    to[i] = a.sums[i * store_pixels (a) + pixel];
}

/* ------------------------------------------------------------------------
 * While pictures arrive. */

template <typename Sample, int FALLOFF, bool ONE_GAIN>
static __global__ void
__launch_bounds__ (THREADS) add_packets (
    const __grid_constant__ Arguments a, uint32_t first, uint32_t end)
{
  extern __shared__ uint4 shared[];
  size_t pixel = (size_t) blockIdx.x * THREADS + threadIdx.x;
  size_t pixels = store_pixels (a);
  uint32_t y = (uint32_t) pixel / a.plan.width;
  const float *from;
  Work work = {};

  load_lit (a, shared);
  if (pixel >= pixels)
    return;
  work.place =
      place_of (a, (uint32_t) pixel - y * a.plan.width, a.first_row + y);
  work.test = first_test (a);
  work.samples = (const uint4 *) packet_at (a, 0, 0, pixel);
  if (first > 0)
    load_round (a, pixel, work.round);
  sum_packets<Sample, FALLOFF, ONE_GAIN, 1, true> (
      a, (const Lit *) shared, first, end, &work);
  from = (const float *) &work.round;
#pragma unroll
  for (int i = 0; i < N_SUMS; i++)
    a.sums[i * pixels + pixel] = from[i];
}

/* ------------------------------------------------------------------------
 * The variant. */

template <typename Sample, int FALLOFF, bool ONE_GAIN> struct Scalar {
  enum {
    TILE = 32,  /* pixels that a warp has at least */
    PIXELS = 2, /* of a lane at most, to reuse the data of a light */
  };

  const Lit *lit;

  static __device__ __forceinline__ float
  unit (const Arguments &a)
  {
    return 1;
  }

  __device__ __forceinline__
  Scalar (const Arguments &a, uint4 *shared, uint32_t n_pixels)
      : lit ((const Lit *) shared)
  {
    load_lit (a, shared);
  }

  template <bool FIRST, int N>
  __device__ __forceinline__ void
  sum_pixels (const Arguments &a, const Segment &segment,
      const uint32_t pixels[N], Round rounds[N]) const
  {
    uint32_t at = first_of_segment (a), y = a.tile_row + blockIdx.y;
    size_t base = (size_t) (a.tile_row - a.first_row) * a.plan.width + at;
    Work work[N] = {};

#pragma unroll
    for (int i = 0; i < N; i++) {
      Work &w = work[i];

      w.place = place_of (a, blockIdx.x * SEGMENT + pixels[i], y);
      w.samples = (const uint4 *) packet_at (a, 0, 0, base + pixels[i]);
      if (FIRST) {
        w.test = first_test (a);
        if (a.n_summed > 0)
          load_round (a, base + pixels[i], w.round);
      } else {
        float4 n = segment.states[pixels[i]];
        Found found = found_unpack (__float_as_uint (n.w));

        w.test = next_test (a, n.x, n.y, n.z);
        if (!a.params.readmit) {
          w.used = words_of (a, next_set (found), at + pixels[i]);
          if (found.set != FIRST_SET)
            w.kept = words_of (a, found.set, at + pixels[i]);
        }
      }
    }
    sum_packets<Sample, FALLOFF, ONE_GAIN, N, FIRST> (
        a, lit, FIRST ? a.n_summed : 0, a.n_packets, work);
#pragma unroll
    for (int i = 0; i < N; i++)
      rounds[i] = work[i].round;
  }

  template <bool FIRST>
  __device__ __forceinline__ void
  sum (const Arguments &a, const Segment &segment, const uint8_t *list,
      uint32_t n, const uint32_t pixels[PIXELS], Round rounds[PIXELS]) const
  {
    if (n > TILE)
      sum_pixels<FIRST, PIXELS> (a, segment, pixels, rounds);
    else
      sum_pixels<FIRST, 1> (a, segment, pixels, rounds);
  }
};

/* ------------------------------------------------------------------------
 * Results, of both variants. */

/* The rms residual over the lights of the solution @s. */
template <typename Sample, int FALLOFF>
static __device__ __noinline__ float
residual_of (const Arguments &a, uint32_t x, uint32_t y, uint32_t at,
    const float s[3], const Found &f)
{
  constexpr uint32_t LIGHTS = PACKET / sizeof (Sample);
  size_t pixel = (size_t) (y - a.first_row) * a.plan.width + x;
  bool first = f.set == FIRST_SET;
  const float *last = a.last + at;
  const uint32_t *words =
      first || a.params.readmit ? NULL : words_of (a, f.set, at);
  Place place = place_of (a, x, y);
  Test test =
      first ? first_test (a)
            : next_test (a, last[0], last[a.tile_size], last[2 * a.tile_size]);
  float sum = 0;

  for (uint32_t packet = 0; packet < a.n_packets; packet++) {
    const Sample *samples = (const Sample *) packet_at (a, 0, packet, pixel);
    uint32_t used = words ? words[packet * a.tile_size] : ~0u;

    for (uint32_t j = 0; j < LIGHTS; j++) {
      const Lit &lit = a.lit[packet * LIGHTS + j];
      const float4 lamp = *(const float4 *) &lit;
      float grey = (float) samples[j] * lit.gain[place.site], r;
      float3 l = light_vector<FALLOFF> (lamp, lit.z2, place);

      if (!(lamp.w >= 0) || !(used >> j & 1) ||
          !(grey > test.lo && grey < test.hi && (float) samples[j] < a.clip) ||
          !(first || misfit_of<FALLOFF> (test, l, grey, lamp) <= test.limit))
        continue;
      r = s[0] * l.x + s[1] * l.y + s[2] * l.z - grey;
      sum += r * r;
    }
  }
  return sqrtf (sum / (float) f.n);
}

template <typename Sample, int FALLOFF>
static __global__ void
store_results (const __grid_constant__ Arguments a)
{
  uint32_t x = blockIdx.x * THREADS + threadIdx.x, tile_y = blockIdx.y;
  uint32_t at = tile_y * a.plan.width + x, y = a.tile_row + tile_y;
  Row row = {};

  if (x < a.plan.width) {
    const float *state = a.states + at;
    float s[] = {state[0], state[a.tile_size], state[2 * a.tile_size]};
    Found f = found_unpack (a.found[at]);
    Result r = {};

    if (f.valid) {
      fill_result (s, (float) f.n, (float) f.rounds, state[3 * a.tile_size], r);
      if (a.measures)
        r.quality[IMK_PHOTOSTEREO_RESIDUAL] =
            residual_of<Sample, FALLOFF> (a, x, y, at, s, f);
    }
    if (a.n_lights)
      r.ambient[0] = a.ambients[at] / (float) a.n_lights;
    store_result (a, x, y, r, row);
  }
  add_row (&a.rows[y], row);
}

/* ------------------------------------------------------------------------
 * Launches. */

static size_t
lit_size (const ImkPhotostereoPlan *p)
{
  uint32_t n = packet_lights (p->type);

  return imk_div_up (p->n_lights, n) * n * sizeof (Lit);
}

bool
imk_photostereo_cuda_is_fast (
    const ImkPhotostereoPlan *p, const ImkPhotostereoParams *params)
{
  return p->n_planes == 1 && !p->table && !p->dark && !p->white &&
         p->led_lobe == 0 && sizeof (Segment) + lit_size (p) <= SHARED &&
         params->robust != IMK_PHOTOSTEREO_ROBUST_HUBER && !params->adaptive;
}

struct Kernels {
  void (*add) (const Arguments, uint32_t, uint32_t);
  Kernel solve, results;
};

static Kernels
choose_kernels (const Arguments *a)
{
  return instance (
      [] (auto type, auto falloff, auto one_gain) {
        typedef SampleOf<type> Sample;

        return Kernels{add_packets<Sample, falloff, one_gain>,
            solve_segments<Scalar<Sample, falloff, one_gain>>,
            store_results<Sample, falloff>};
      },
      OneOf<IMK_TYPE_U8, IMK_TYPE_U16>{a->plan.type},
      falloff_of (a->plan.model), a->one_gain);
}

ImkStatus
imk_photostereo_cuda_sum (const Arguments *a, uint32_t first, uint32_t end,
    cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t launch = launch_of (store_pixels (*a), 1, stream);

  launch.dynamicSmemBytes = lit_size (&a->plan);
  return IMK_CUDA_LAUNCH (
      error, launch, choose_kernels (a).add, *a, first, end);
}

ImkStatus
imk_photostereo_cuda_solve_fast (
    const Arguments *a, cudaStream_t stream, ImkError *error)
{
  Kernels kernels = choose_kernels (a);
  cudaLaunchConfig_t launch = launch_of (a->plan.width, a->tile_rows, stream);

  IMK_TRY (imk_photostereo_cuda_is_matrix (a)
               ? imk_photostereo_cuda_solve_matrix (a, stream, error)
               : launch_segments (
                     a, kernels.solve, lit_size (&a->plan), stream, error));
  return IMK_CUDA_LAUNCH (error, launch, kernels.results, *a);
}
