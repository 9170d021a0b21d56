/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The steps of the CPU as kernels; each reads a sample of the B-scans once, but
 * for EIGEN and pairs of A-scans, which read it twice. */
#include <new>

#include "core/cuda/cuda-cutter.h"
#include "core/cuda/cuda-launch.h"
#include "octangio/cuda/octangio-bands.cuh"
#include "octangio/cuda/octangio-eigen.cuh"
#include "octangio/cuda/octangio-pairs.cuh"
#include "octangio/cuda/octangio-points.cuh"
#include "octangio/cuda/octangio-strips.cuh"

enum {
  ASCANS = 32,      /* A-scans whose brightest depths a block looks for */
  STRIPS = 16,      /* threads that look for the brightest depth */
  LEAST_STRIP = 8,  /* A-scans */
  MOST_BLOCKS = 256 /* that have their work in global memory */
};

typedef void (*Kernel) (const Arguments);

struct Cuda {
  Arguments arguments; /* but for those of one call */
  bool is_complex;
  Kernel kernel;                             /* of pairs or bands, else NULL */
  uint32_t n_blocks, n_threads, shared_size; /* 0 blocks: of tiled_bands */
  bool begins_early; /* kernels can begin before the last one is done */
  uint8_t *block;
};

/* ------------------------------------------------------------------------
 * The surface. */

/* Of equal depths the first. */
static __global__ void
look_for_brightest (const __grid_constant__ Arguments a, uint32_t first)
{
  __shared__ float values[STRIPS][ASCANS];
  __shared__ uint32_t depths[STRIPS][ASCANS];
  uint32_t ascan = blockIdx.x * ASCANS + threadIdx.x, depth = first;
  float value = -1;

  for (uint32_t z = first + threadIdx.y; z < a.n_depths && ascan < a.n_ascans;
       z += STRIPS) {
    float v = a.mean_image[(size_t) z * a.n_ascans + ascan];

    if (v > value) {
      value = v;
      depth = z;
    }
  }
  values[threadIdx.y][threadIdx.x] = value;
  depths[threadIdx.y][threadIdx.x] = depth;
  __syncthreads ();
  if (threadIdx.y > 0 || ascan >= a.n_ascans)
    return;
  for (uint32_t i = 1; i < STRIPS; i++) {
    float v = values[i][threadIdx.x];
    uint32_t z = depths[i][threadIdx.x];

    if (v > value || (v == value && z < depth)) {
      value = v;
      depth = z;
    }
  }
  a.brightest[ascan] = depth;
}

/* ------------------------------------------------------------------------
 * Calls. */

/* Registers for as many repeats as there are. */
static Kernel
points_kernel (const Cuda *s)
{
  uint32_t n = s->arguments.n_repeats;

  if (!s->is_complex)
    return n <= 4 ? intensities<4> : n <= 8 ? intensities<8> : intensities<16>;
  if (s->arguments.method == IMK_OCTANGIO_EIGEN)
    return n <= 4 ? eigen<4> : n <= 8 ? eigen<8> : eigen<16>;
  return n <= 4 ? points<4> : n <= 8 ? points<8> : points<16>;
}

/* What kernels are compiled for. */
static uint32_t
most_repeats (uint32_t n)
{
  return n <= 4 ? 4 : n <= 8 ? 8 : 16;
}

/* Returns: how many pairs of depths a thread has, or 0 without a kernel whose
 * registers are enough */
static uint32_t
register_pairs_kernel (const Arguments &a, Kernel *kernel)
{
  uint32_t n = a.n_repeats, n_pairs = n <= 4 ? 2 : 1;

  if (imk_div_up (a.n_depths, 2 * n_pairs) > REGISTER_THREADS)
    return 0;
  if (a.between_ascans)
    *kernel = n <= 4   ? register_pairs<4, 2, true>
              : n <= 8 ? register_pairs<8, 1, true>
                       : nullptr;
  else
    *kernel = n <= 4   ? register_pairs<4, 2, false>
              : n <= 8 ? register_pairs<8, 1, false>
                       : register_pairs<16, 1, false>;
  return *kernel ? n_pairs : 0;
}

/* Returns: NULL where no filter bank was compiled for it */
static Kernel
tiled_bands_kernel (const ImkOctangioConfig *c)
{
  static const struct {
    uint32_t n_bands, scale;
    Kernel kernel;
  } kernels[] = {
      {2, 1, tiled_bands<2, 1>},
      {2, 2, tiled_bands<2, 2>},
      {4, 1, tiled_bands<4, 1>},
      {4, 2, tiled_bands<4, 2>},
      {8, 1, tiled_bands<8, 1>},
  };

  for (const auto &k : kernels)
    if (k.n_bands == c->n_bands && k.scale == c->depth_scale)
      return k.kernel;
  return nullptr;
}

static dim3
tiles_of (const Arguments &a)
{
  return dim3 (imk_div_up (a.n_depths, TILE_DEPTHS),
      imk_div_up (a.n_ascans, TILE_ASCANS));
}

static ImkStatus
run_points (
    const Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t launch = grid (
      s->is_complex ? tiles_of (a)
                    : dim3 (imk_div_up (a.n_ascans, ROW_THREADS * ROW_ASCANS),
                          imk_div_up (a.n_depths, ROW_ROWS)),
      s->is_complex ? dim3 (TILE_THREADS) : dim3 (ROW_THREADS, ROW_ROWS),
      stream);
  cudaLaunchAttribute early = early_begin ();
  Kernel kernel = points_kernel (s);

  launch.attrs = &early;
  launch.numAttrs =
      s->begins_early && s->arguments.method == IMK_OCTANGIO_EIGEN ? 1 : 0;
  return IMK_CUDA_LAUNCH (error, launch, kernel, a);
}

static ImkStatus
run_eigen (
    const Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t sums =
      grid (dim3 (a.n_ascans, a.n_chunks), dim3 (GRAM_THREADS), stream);
  bool are_few = a.n_repeats <= FEW_REPEATS;
  cudaLaunchAttribute early = early_begin ();
  cudaLaunchConfig_t vectors =
      grid (dim3 (imk_div_up (a.n_ascans, are_few ? FEW_ASCANS : SOLVE_ASCANS)),
          are_few ? dim3 (FEW_REPEATS * FEW_ASCANS) : dim3 (32, SOLVE_ASCANS),
          stream);
  Kernel kernel = are_few ? gram<1> : a.n_repeats <= 8 ? gram<2> : gram<4>;
  ImkStatus status = IMK_CUDA_LAUNCH (error, sums, kernel, a);

  kernel = are_few ? solve_few : solve;
  vectors.attrs = &early;
  vectors.numAttrs = s->begins_early ? 1 : 0;
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, vectors, kernel, a);
  return status == IMK_OK ? run_points (s, a, stream, error) : status;
}

static ImkStatus
run_tiled_bands (
    const Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t launch = grid (dim3 (imk_div_up (a.n_depths, BAND_DEPTHS),
                                        imk_div_up (a.n_ascans, BAND_ASCANS)),
      dim3 (32 * BAND_ASCANS), stream);

  return IMK_CUDA_LAUNCH (error, launch, s->kernel, a);
}

static ImkStatus
run_strips (
    const Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t launch = grid (dim3 (imk_div_up (a.n_ascans, a.strip)),
      dim3 (s->n_threads), stream, s->shared_size);
  cudaLaunchAttribute early = early_begin ();

  launch.attrs = &early;
  launch.numAttrs = s->begins_early ? 1 : 0;
  return IMK_CUDA_LAUNCH (error, launch, strips, a);
}

/* pairs or bands, and finish. */
static ImkStatus
run_ascans (
    const Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t ascans =
      grid (dim3 (s->n_blocks), dim3 (s->n_threads), stream);
  cudaLaunchConfig_t tiles = grid (tiles_of (a), dim3 (TILE_THREADS), stream);
  cudaLaunchAttribute early = early_begin ();
  ImkStatus status;

  ascans.dynamicSmemBytes = s->shared_size;
  ascans.attrs = tiles.attrs = &early;
  ascans.numAttrs = tiles.numAttrs = s->begins_early ? 1 : 0;
  status = IMK_CUDA_LAUNCH (error, ascans, s->kernel, a);
  return status == IMK_OK ? IMK_CUDA_LAUNCH (error, tiles, finish, a) : status;
}

static ImkStatus
cuda_process (void *state, const ImkImage *bscans, uint32_t n_bscans,
    const ImkImage *flow, void *stream, ImkError *error)
{
  const Cuda *s = (const Cuda *) state;
  const cudaStream_t on = (cudaStream_t) stream;
  Arguments a = s->arguments;

  a.is_wide = true;
  for (uint32_t r = 0; r < n_bscans; r++) {
    if (s->is_complex &&
        ((uintptr_t) bscans[r].data | bscans[r].stride) % sizeof (float2))
      return imk_error_set (error, IMK_ERROR_IMAGE,
          "B-scan %u of the set lies at %p with a stride of %zu bytes; CUDA "
          "needs both to be multiples of 8.",
          r, bscans[r].data, bscans[r].stride);
    if (((uintptr_t) bscans[r].data | bscans[r].stride) % sizeof (float4))
      a.is_wide = false;
    a.bscans[r] = (const uint8_t *) bscans[r].data;
    a.strides[r] = bscans[r].stride;
  }
  a.flow = (float *) flow->data;
  a.flow_stride = flow->stride / sizeof (float);
  if (a.method == IMK_OCTANGIO_EIGEN)
    return run_eigen (s, a, on, error);
  if (!s->kernel)
    return run_points (s, a, on, error);
  if (s->kernel == strips)
    return run_strips (s, a, on, error);
  return s->n_blocks > 0 ? run_ascans (s, a, on, error)
                         : run_tiled_bands (s, a, on, error);
}

static ImkStatus
cuda_find_brightest (void *state, uint32_t first, uint32_t *depths,
    void *stream, ImkError *error)
{
  const Cuda *s = (const Cuda *) state;
  const cudaStream_t on = (cudaStream_t) stream;
  const Arguments &a = s->arguments;
  cudaLaunchConfig_t launch =
      grid (dim3 (imk_div_up (a.n_ascans, ASCANS)), dim3 (ASCANS, STRIPS), on);
  ImkStatus status =
      IMK_CUDA_LAUNCH (error, launch, look_for_brightest, a, first);

  if (status == IMK_OK)
    status = imk_cuda_read (
        depths, a.brightest, a.n_ascans * sizeof (*depths), on, error);
  return status;
}

/* ------------------------------------------------------------------------
 * The object. */

static void
cuda_destroy (void *state)
{
  Cuda *s = (Cuda *) state;

  if (!s)
    return;
  cudaFree (s->block);
  delete s;
}

static void
cut_all (Cuda *s, const ImkOctangioPlan *plan, uint32_t n_words, Cutter *cutter)
{
  const ImkOctangioConfig *c = &plan->config;
  Arguments *a = &s->arguments;
  size_t n = (size_t) c->n_ascans * a->row;

  if (c->finds_surface) {
    cutter->cut (&a->mean_image, (size_t) c->n_ascans * c->n_depths);
    cutter->cut (&a->brightest, c->n_ascans);
  }
  if ((s->n_blocks > 0 || s->kernel == strips) &&
      (c->floor > 0 || c->finds_surface))
    cutter->cut (&a->mean, n);
  if (s->n_blocks > 0) {
    if (c->n_bands == 1)
      cutter->cut (&a->sum, n);
    if (c->n_bands > 1 || c->method == IMK_OCTANGIO_COMPLEX_DECORRELATION)
      cutter->cut (&a->energy, n);
    if (s->shared_size == 0)
      cutter->cut (&a->work, (size_t) s->n_blocks * n_words * c->n_depths);
  }
  if (c->n_bands > 1) {
    cutter->cut ((float **) &a->taps, plan->radius + 1);
    cutter->cut ((float2 **) &a->turns, (size_t) c->n_bands * c->n_depths);
  }
  if (c->method == IMK_OCTANGIO_EIGEN) {
    cutter->cut (&a->gram, (size_t) c->n_ascans * a->n_chunks * c->n_repeats *
                               (c->n_repeats + 1) / 2);
    cutter->cut (
        &a->vectors, (size_t) c->n_ascans * c->n_tissue * c->n_repeats);
  }
}

/* Blocks of pairs or bands, which have their work in shared memory where it
 * fits. */
static ImkStatus
place_work (
    Cuda *s, const ImkOctangioConfig *c, uint32_t n_words, ImkError *error)
{
  size_t size = (size_t) n_words * c->n_depths * sizeof (float);
  cudaFuncAttributes attributes = {};
  int device = 0, most = 0;
  ImkStatus status = IMK_CUDA (error, cudaGetDevice (&device));
  bool fits;

  if (status == IMK_OK)
    status =
        IMK_CUDA (error, cudaDeviceGetAttribute (&most,
                             cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaFuncGetAttributes (&attributes, s->kernel));
  most -= (int) attributes.sharedSizeBytes;
  fits = size <= (size_t) most;
  s->n_blocks = fits || c->n_ascans < MOST_BLOCKS ? c->n_ascans : MOST_BLOCKS;
  s->shared_size = fits ? (uint32_t) size : 0;
  if (status != IMK_OK || !fits)
    return status;
  /* the attribute is that of every object: all there is */
  return IMK_CUDA (
      error, cudaFuncSetAttribute (
                 s->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
}

/* Chooses strips where they are possible: they take all processors, where there
 * are enough A-scans. */
static ImkStatus
plan_strips (Cuda *s, const ImkOctangioConfig *c, ImkError *error)
{
  int device = 0, n_processors = 1, most_shared = 0;
  uint32_t n, n_rows;
  ImkStatus status = IMK_CUDA (error, cudaGetDevice (&device));

  if (c->pairs != IMK_OCTANGIO_PAIRS_BSCANS || c->n_repeats > STRIP_REPEATS ||
      c->n_depths > STRIP_DEPTHS || c->lateral > STRIP_WINDOW ||
      c->axial > STRIP_WINDOW)
    return status;
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaDeviceGetAttribute (&n_processors,
                                  cudaDevAttrMultiProcessorCount, device));
  if (status == IMK_OK)
    status =
        IMK_CUDA (error, cudaDeviceGetAttribute (&most_shared,
                             cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  if (status != IMK_OK || (size_t) most_shared < sizeof (Strip))
    return status;
  n = imk_div_up (c->n_ascans, (uint32_t) n_processors);
  /* two kernels are faster, also where rows of the flow are not aligned */
  if (n < LEAST_STRIP || c->n_ascans % 4 != 0)
    return status;
  s->arguments.strip = n < STRIP_ASCANS ? n : STRIP_ASCANS;
  n_rows = s->arguments.strip + c->lateral - 1;
  s->kernel = strips;
  s->n_threads = GROUP_THREADS *
                 (n_rows <= STRIP_GROUPS ? n_rows : imk_div_up (n_rows, 2));
  s->shared_size = sizeof (Strip);
  return IMK_CUDA (
      error, cudaFuncSetAttribute (strips,
                 cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof (Strip)));
}

/* Chooses the kernels of pairs or bands. */
static ImkStatus
choose_kernel (
    Cuda *s, const ImkOctangioPlan *plan, uint32_t *n_words, ImkError *error)
{
  const ImkOctangioConfig *c = &plan->config;
  uint32_t n_pairs;
  ImkStatus status;

  *n_words = 0;
  if (c->n_bands > 1) {
    s->kernel = tiled_bands_kernel (c);
    for (uint32_t i = 0; i <= plan->radius && i < MOST_BAND_TAPS; i++)
      s->arguments.band_taps[i] = plan->taps[i];
    if (s->kernel)
      return IMK_OK;
    s->kernel = bands;
    s->n_threads = BAND_THREADS;
    *n_words = BAND_WORDS + c->n_bands;
    return place_work (s, c, *n_words, error);
  }
  if (!imk_octangio_needs_phase (c->method) || c->method == IMK_OCTANGIO_EIGEN)
    return IMK_OK;
  status = plan_strips (s, c, error);
  if (status != IMK_OK || s->kernel)
    return status;
  n_pairs = register_pairs_kernel (s->arguments, &s->kernel);
  if (n_pairs > 0) {
    s->n_blocks = c->n_ascans;
    s->n_threads = 32 * imk_div_up (c->n_depths, 2 * 32 * n_pairs);
    s->shared_size = sizeof (float) *
                     (3 * s->arguments.row + 2 * most_repeats (c->n_repeats) *
                                                 bulk_sums (c->n_depths));
    return IMK_OK;
  }
  s->kernel = pairs;
  s->n_threads = PAIR_THREADS;
  *n_words = PAIR_WORDS;
  return place_work (s, c, PAIR_WORDS, error);
}

static ImkStatus
upload_bands (const Cuda *s, const ImkOctangioPlan *plan, ImkError *error)
{
  const ImkOctangioConfig *c = &plan->config;
  ImkStatus status = IMK_CUDA (
      error, cudaMemcpy ((void *) s->arguments.taps, plan->taps,
                 (plan->radius + 1) * sizeof (float), cudaMemcpyHostToDevice));

  return status != IMK_OK
             ? status
             : IMK_CUDA (error,
                   cudaMemcpy ((void *) s->arguments.turns, plan->turns,
                       (size_t) c->n_bands * c->n_depths * sizeof (float2),
                       cudaMemcpyHostToDevice));
}

static ImkStatus
allocate_all (Cuda *s, const ImkOctangioPlan *plan, ImkError *error)
{
  Cutter cutter = {};
  uint32_t n_words;
  ImkStatus status = choose_kernel (s, plan, &n_words, error);

  if (status != IMK_OK)
    return status;
  cut_all (s, plan, n_words, &cutter);
  if (cutter.used == 0)
    return IMK_OK;
  status = IMK_CUDA (error, cudaMalloc ((void **) &s->block, cutter.used));
  if (status != IMK_OK)
    return status;
  cutter = {s->block, 0};
  cut_all (s, plan, n_words, &cutter);
  return plan->config.n_bands > 1 ? upload_bands (s, plan, error) : IMK_OK;
}

/* Whether the kernels were compiled with wait_for_last_kernel (): one that a
 * driver made of PTX for an older device would begin too early. */
static ImkStatus
find_early (Cuda *s, ImkError *error)
{
  cudaFuncAttributes attributes;
  ImkStatus status =
      IMK_CUDA (error, cudaFuncGetAttributes (&attributes, solve));

  s->begins_early = status == IMK_OK && attributes.ptxVersion >= 90;
  return status;
}

static ImkStatus
cuda_create (const ImkOctangioPlan *plan, void **state, ImkError *error)
{
  const ImkOctangioConfig *c = &plan->config;
  Cuda *s = new (std::nothrow) Cuda{};
  ImkStatus status;

  if (!s)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the object.");
  s->is_complex = c->is_complex;
  s->arguments.n_ascans = c->n_ascans;
  s->arguments.n_depths = c->n_depths;
  s->arguments.n_repeats = c->n_repeats;
  s->arguments.row = c->n_depths + c->n_depths % 2;
  s->arguments.method = c->method;
  s->arguments.between_ascans = c->pairs == IMK_OCTANGIO_PAIRS_ASCANS;
  s->arguments.bulk_motion = c->bulk_motion;
  s->arguments.lateral = c->lateral;
  s->arguments.axial = c->axial;
  s->arguments.n_tissue = c->n_tissue;
  s->arguments.n_bands = c->n_bands;
  s->arguments.radius = plan->radius;
  s->arguments.floor = (float) c->floor;
  s->arguments.scale = (float) c->scale;
  s->arguments.share = 1.0f / (float) c->n_repeats;
  s->arguments.pair_share =
      c->n_repeats > 1 ? 1.0f / (float) (c->n_repeats - 1) : 0;
  s->arguments.n_chunks = imk_div_up (c->n_depths, GRAM_CHUNK);
  status = find_early (s, error);
  if (status == IMK_OK)
    status = allocate_all (s, plan, error);
  if (status == IMK_OK)
    *state = s;
  else
    cuda_destroy (s);
  return status;
}

const ImkOctangioBackend imk_octangio_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = cuda_create,
    .process = cuda_process,
    .find_brightest = cuda_find_brightest,
    .destroy = cuda_destroy,
};
