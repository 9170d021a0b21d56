/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The solver for one plane of samples as they are, where
 * photostereo-cuda-matrix.cu is not for them: samples of 16 bits, lamps that
 * are not equally bright, lamps so near that light vectors are no parabolas,
 * lights that may not come back, least squares.
 *
 * The sums of the first solution, which takes all lights, are made packet by
 * packet while pictures arrive. The first rejection tests all lights of all
 * pixels and sums those that stay. From then on few lights change: a round only
 * tests, and the lights that come and go are added to the sums or taken away:
 * as these were made without what does not fit, no digits are lost by that. A
 * warp goes on with its pixels while most of them change. Then they stand in a
 * list; a lane takes the next one when it is done with its own, so that warps
 * stay full though one pixel takes 2 rounds and another 10. A round that
 * changes no light is the last.
 *
 * With L = k (s - x), n'.L - G is k (n'.s - n'.x) - G: a test needs no L.
 * Lengths are in a unit in which k is |s - x|^-3, |s - x|^-1 or 1. */
#include "photostereo/cuda/photostereo-cuda-first.cuh"
#include "photostereo/cuda/photostereo-cuda-later.cuh"

/* ------------------------------------------------------------------------
 * Results. */

/* The rms residual over the lights of the solution. */
template <typename Sample, int FALLOFF>
static __device__ __noinline__ float
residual_of (const Arguments &a, uint32_t at, const Solution &s, const Found &f)
{
  constexpr uint32_t LIGHTS = PACKET / sizeof (Sample);
  size_t pixel = (size_t) (a.tile_row - a.first_row) * a.plan.width + at;
  Place place = place_of (a, at);
  Test first = first_test (a);
  float sum = 0;

  for (uint32_t packet = 0; packet < a.n_packets; packet++) {
    const Sample *samples = (const Sample *) packet_at (a, 0, packet, pixel);
    uint32_t used =
        f.set == FIRST_SET ? ~0u : a.words[packet * a.tile_size + at];

    for (uint32_t j = 0; j < LIGHTS; j++) {
      const Lit &lit = a.lit[packet * LIGHTS + j];
      const float4 lamp = *(const float4 *) &lit;
      float grey = (float) samples[j] * lit.gain[place.site];
      float k = factor_of<FALLOFF> (lamp, place), r;

      if (!(lamp.w >= 0) || !(used >> j & 1) ||
          (f.set == FIRST_SET && !(grey > first.lo && grey < first.hi &&
                                     (float) samples[j] < a.clip)))
        continue;
      r = k * (s.x * (lamp.x - place.x) + s.y * (lamp.y - place.y) +
                  s.z * lamp.z) -
          grey;
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
    Solution s = {state[0], state[a.tile_size], state[2 * a.tile_size], 0,
        state[3 * a.tile_size]};
    Found f = found_unpack (a.found[at]);
    Result r = {};

    if (f.valid) {
      float length = sqrtf (s.x * s.x + s.y * s.y + s.z * s.z);

      r.normal[0] = s.x / length;
      r.normal[1] = s.y / length;
      r.normal[2] = s.z / length;
      r.albedo[0] = length;
      r.quality[IMK_PHOTOSTEREO_LIGHTS] = (float) f.n;
      r.quality[IMK_PHOTOSTEREO_ROUNDS] = (float) f.rounds;
      r.quality[IMK_PHOTOSTEREO_CONDITION] = s.condition;
      r.length = length;
      if (a.measures)
        r.quality[IMK_PHOTOSTEREO_RESIDUAL] =
            residual_of<Sample, FALLOFF> (a, at, s, f);
    }
    if (a.n_lights)
      r.ambient[0] = state[4 * a.tile_size] / (float) a.n_lights;
    store_result (a, x, y, r, row);
  }
  add_row (&a.rows[y], row);
}

/* ------------------------------------------------------------------------
 * Launches. */

/* Returns: how many a block may have; 0 where there are too many lights */
static uint32_t
later_threads (const ImkPhotostereoPlan *p)
{
  uint32_t n = packet_lights (p->type), threads = THREADS;
  uint32_t n_packets = imk_div_up (p->n_lights, n);

  while (threads >= 32 && later_size (n_packets, n, threads) > SHARED)
    threads /= 2;
  return threads >= 32 && n_packets <= MAX_PACKETS ? threads : 0;
}

bool
imk_photostereo_cuda_is_fast (
    const ImkPhotostereoPlan *p, const ImkPhotostereoParams *params)
{
  return p->n_planes == 1 && !p->table && !p->dark && !p->white &&
         p->led_lobe == 0 && later_threads (p) > 0 &&
         params->robust != IMK_PHOTOSTEREO_ROBUST_HUBER && !params->adaptive;
}

typedef void (*Kernel) (const Arguments);

struct Kernels {
  void (*add) (const Arguments, uint32_t, uint32_t);
  Kernel first, first_smooth, later, results;
};

template <typename Sample, int FALLOFF, bool ONE_GAIN>
static Kernels
kernels_of ()
{
  return Kernels{add_packets<Sample, FALLOFF, ONE_GAIN>,
      solve_first<Sample, FALLOFF, ONE_GAIN, false, N_PIXELS>,
      solve_first<Sample, FALLOFF, ONE_GAIN, (FALLOFF > 0), N_PIXELS>,
      solve_later<Sample, FALLOFF, ONE_GAIN, N_PIXELS>,
      store_results<Sample, FALLOFF>};
}

template <typename Sample, int FALLOFF>
static Kernels
kernels_of (bool one_gain)
{
  return one_gain ? kernels_of<Sample, FALLOFF, true> ()
                  : kernels_of<Sample, FALLOFF, false> ();
}

static Kernels
choose_kernels (const Arguments *a)
{
  bool u8 = a->plan.type == IMK_TYPE_U8;

  switch (a->plan.model) {
  case IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE:
    return u8 ? kernels_of<uint8_t, 3> (a->one_gain)
              : kernels_of<uint16_t, 3> (a->one_gain);
  case IMK_PHOTOSTEREO_MODEL_UNIT:
    return u8 ? kernels_of<uint8_t, 1> (a->one_gain)
              : kernels_of<uint16_t, 1> (a->one_gain);
  default:
    return u8 ? kernels_of<uint8_t, 0> (a->one_gain)
              : kernels_of<uint16_t, 0> (a->one_gain);
  }
}

static size_t
lit_size (const Arguments *a)
{
  return a->n_packets * packet_lights (a->plan.type) * sizeof (Lit);
}

ImkStatus
imk_photostereo_cuda_sum (const Arguments *a, uint32_t first, uint32_t end,
    cudaStream_t stream, ImkError *error)
{
  Arguments whole = *a;
  cudaLaunchConfig_t launch = launch_of (store_pixels (*a), 1, stream);

  whole.tile_row = a->first_row;
  launch.dynamicSmemBytes = lit_size (a);
  return IMK_CUDA_LAUNCH (
      error, launch, choose_kernels (a).add, whole, first, end);
}

/* As many blocks as run at a time. */
static ImkStatus
launch_later (const Arguments *a, const Kernels *kernels, cudaStream_t stream,
    ImkError *error)
{
  Kernel kernel = kernels->later;
  uint32_t n = packet_lights (a->plan.type);
  cudaLaunchConfig_t launch = launch_of (THREADS, 1, stream);
  int device, n_multiprocessors, n_blocks;
  ImkStatus status = IMK_CUDA (error, cudaGetDevice (&device));

  launch.blockDim = dim3 (later_threads (&a->plan));
  launch.dynamicSmemBytes = later_size (a->n_packets, n, launch.blockDim.x);
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaDeviceGetAttribute (&n_multiprocessors,
                                  cudaDevAttrMultiProcessorCount, device));
  if (status == IMK_OK)
    status =
        IMK_CUDA (error, cudaOccupancyMaxActiveBlocksPerMultiprocessor (
                             &n_blocks, (const void *) kernel,
                             (int) launch.blockDim.x, launch.dynamicSmemBytes));
  if (status != IMK_OK)
    return status;
  launch.gridDim = dim3 ((unsigned) (n_multiprocessors * n_blocks));
  return IMK_CUDA_LAUNCH (error, launch, kernel, *a);
}

/* Whether the first kernel is worth parabolas, and has room for them. */
static bool
is_smooth (const Arguments *a, size_t first_size, uint32_t n_lit)
{
  return a->smooth && a->params.robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS &&
         a->params.max_iterations > 1 &&
         first_size + n_lit * sizeof (float4) <= SHARED;
}

/* All solutions, by the kernels of this file. */
static ImkStatus
solve_scalar (const Arguments *a, const Kernels *kernels, cudaStream_t stream,
    ImkError *error)
{
  uint32_t n = packet_lights (a->plan.type);
  uint32_t threads = later_threads (&a->plan);
  size_t size = later_size (a->n_packets, n, threads);
  bool smooth = is_smooth (a, size, a->n_packets * n);
  cudaLaunchConfig_t launch = launch_of (THREADS, 1, stream);
  ImkStatus status = IMK_CUDA (error,
      cudaMemsetAsync (a->counters, 0, N_COUNTERS * sizeof (uint32_t), stream));

  launch.gridDim =
      dim3 (imk_div_up (a->plan.width, threads * N_PIXELS), a->tile_rows);
  launch.blockDim = dim3 (threads);
  launch.dynamicSmemBytes =
      size + (smooth ? a->n_packets * n * sizeof (float4) : 0);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (
        error, launch, smooth ? kernels->first_smooth : kernels->first, *a);
  if (status == IMK_OK &&
      a->params.robust == IMK_PHOTOSTEREO_ROBUST_THRESHOLDS &&
      a->params.max_iterations > 2)
    status = launch_later (a, kernels, stream, error);
  return status;
}

ImkStatus
imk_photostereo_cuda_solve_fast (
    const Arguments *a, cudaStream_t stream, ImkError *error)
{
  Kernels kernels = choose_kernels (a);
  cudaLaunchConfig_t launch = launch_of (a->plan.width, a->tile_rows, stream);
  ImkStatus status = imk_photostereo_cuda_is_matrix (a)
                         ? imk_photostereo_cuda_solve_matrix (a, stream, error)
                         : solve_scalar (a, &kernels, stream, error);

  if (status != IMK_OK)
    return status;
  return IMK_CUDA_LAUNCH (error, launch, kernels.results, *a);
}
