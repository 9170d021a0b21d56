/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The strategy operator on tensor cores. A spectrum x and a row b of the
 * operator are split into two halves of FP16 each, of which the second has what
 * rounding took from the first, and
 *
 *   b x = b1 x1 + b2 x1 + b1 x2, b2 x2 being 2^-22 of it,
 *
 * is one product of rows of 3 N: (x2, x1, x1) (b1, b2, b1). The small parts
 * come first, as tensor cores round every sum on the way down, to its own size.
 * All A-scans of all jobs of a camera are one product of matrices; the cameras
 * are a batch.
 *
 * Means, split, product, ranks where they are asked for, images: each is
 * launched once for any number of jobs.
 */
#include <cstring>
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <new>

#include "octbscan/octbscan-finish.cuh"

enum {
  SUM_COLUMNS = 64, /* that a block adds up, by groups of threads */
  SUM_GROUPS = 8,
  SPLIT_THREADS = 256,
  PARTS = 3,     /* N that a row of the product has */
  ALIGNMENT = 8, /* samples: 16 bytes of FP16 */
  WORKSPACE = 32 * 1024 * 1024,
  EXPONENT = 13, /* what is largest is scaled to 2^13 .. 2^14 */
};

/* What all kernels are given. */
struct Arguments : Finish {
  uint32_t width, padded;
  const float *background; /* [C][N] or NULL */
  float *means;            /* [jobs][C][N] */
  __half *spectra;         /* [C][jobs][camera_rows][PARTS][padded] */
  float *row_scales;       /* scales, while they are written */
};

struct Cuda {
  Arguments arguments; /* all but the jobs */
  ImkType type;
  uint32_t max_jobs;
  ImkOctbscanBackground background_mode;
  void *memory; /* on the device, all of it */
  __half *operators;
  float operator_scale;
  void *workspace;
  Job *jobs;      /* on the device */
  Job *host_jobs; /* page-locked */
  cudaEvent_t copied, done;
  cublasHandle_t blas;
};

/* ------------------------------------------------------------------------
 * Means: sums of integers are exact. */

template <typename Sample> struct SumOf {
  typedef int64_t Type;
};
template <> struct SumOf<float> {
  typedef double Type;
};

template <typename Sample>
static __global__ void
find_means (const __grid_constant__ Arguments a)
{
  typedef typename SumOf<Sample>::Type Sum;
  __shared__ Sum sums[SUM_GROUPS][SUM_COLUMNS];
  const Job &job = a.jobs[blockIdx.z];
  uint32_t camera = blockIdx.y, n = 0;
  uint32_t x = blockIdx.x * SUM_COLUMNS + threadIdx.x;
  uint32_t first =
      (camera + a.n_cameras - job.first_camera % a.n_cameras) % a.n_cameras;
  Sum sum = 0;

  if (first < a.height)
    n = (a.height - first - 1) / a.n_cameras + 1;
  if (x < a.width)
    for (uint32_t i = threadIdx.y; i < n; i += SUM_GROUPS) {
      size_t row = first + (size_t) i * a.n_cameras;

      sum += ((const Sample *) (job.in + row * job.in_stride))[x];
    }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads ();
  if (threadIdx.y != 0 || x >= a.width)
    return;
  for (uint32_t g = 1; g < SUM_GROUPS; g++)
    sum += sums[g][threadIdx.x];
  a.means[((size_t) blockIdx.z * a.n_cameras + camera) * a.width + x] =
      n ? (float) ((double) sum / n) : 0;
}

/* ------------------------------------------------------------------------
 * Spectra, each scaled by a power of 2 so that FP16 holds it, and split. */

/* Returns: the largest of the block, in all its threads */
static __device__ float
block_maximum (float value)
{
  __shared__ float warps[SPLIT_THREADS / 32];

  for (int d = 16; d > 0; d /= 2)
    value = fmaxf (value, __shfl_xor_sync (0xffffffff, value, d));
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = value;
  __syncthreads ();
  value = 0;
  for (int w = 0; w < SPLIT_THREADS / 32; w++)
    value = fmaxf (value, warps[w]);
  return value;
}

/* 0 behind the end. */
template <typename Sample>
static __device__ float
sample_at (const Sample *in, const float *mean, uint32_t x, uint32_t width)
{
  if (x >= width)
    return 0;
  return (float) in[x] - (mean ? mean[x] : 0);
}

static __device__ void
store_halves (__half *to, const __half halves[4])
{
  uint2 four;

  memcpy (&four, halves, sizeof (four));
  *(uint2 *) to = four;
}

template <typename Sample>
static __global__ void
split_spectra (const __grid_constant__ Arguments a)
{
  uint32_t row = blockIdx.x, j = blockIdx.y;
  const Job &job = a.jobs[j];
  const Place place = place_of (a, j, row);
  const Sample *in = (const Sample *) (job.in + (size_t) row * job.in_stride);
  const float *mean =
      a.means ? a.means + ((size_t) j * a.n_cameras + place.camera) * a.width
      : a.background ? a.background + (size_t) place.camera * a.width
                     : nullptr;
  __half *to = a.spectra + place.row * PARTS * a.padded;
  float largest = 0, scale, back;
  int exponent = EXPONENT;

  for (uint32_t x = 4 * threadIdx.x; x < a.width; x += 4 * SPLIT_THREADS)
    for (uint32_t i = 0; i < 4; i++)
      largest = fmaxf (largest, fabsf (sample_at (in, mean, x + i, a.width)));
  largest = block_maximum (largest);
  if (largest > 0 && largest < 1e38f)
    exponent = ilogbf (largest);
  exponent = max (min (exponent, 100), -100);
  scale = ldexpf (1, EXPONENT - exponent);
  back = ldexpf (1, exponent - EXPONENT);
  for (uint32_t x = 4 * threadIdx.x; x < a.padded; x += 4 * SPLIT_THREADS) {
    __half high[4], low[4];

    for (uint32_t i = 0; i < 4; i++) {
      float v = sample_at (in, mean, x + i, a.width) * scale;

      high[i] = __float2half_rn (v);
      low[i] = __float2half_rn (v - __half2float (high[i]));
    }
    store_halves (to + x, low);
    store_halves (to + x + a.padded, high);
    store_halves (to + x + 2 * a.padded, high);
  }
  if (threadIdx.x == 0)
    a.row_scales[place.row] = back;
}

/* ------------------------------------------------------------------------
 * cuBLAS. */

static ImkStatus
check_blas (cublasStatus_t result, const char *call, ImkError *error)
{
  if (result == CUBLAS_STATUS_SUCCESS)
    return IMK_OK;
  cudaGetLastError ();
  return imk_error_set (error,
      result == CUBLAS_STATUS_ALLOC_FAILED ? IMK_ERROR_MEMORY
                                           : IMK_ERROR_DEVICE,
      "cuBLAS says: %s (in %s).", cublasGetStatusString (result), call);
}

static ImkStatus
multiply (Cuda *s, uint32_t n_jobs, cudaStream_t stream, ImkError *error)
{
  const Arguments &a = s->arguments;
  const int k = (int) (PARTS * a.padded), m = (int) (2 * a.n_depths);
  const int n = (int) (n_jobs * a.camera_rows);
  const float alpha = s->operator_scale, beta = 0;
  ImkStatus status =
      check_blas (cublasSetStream (s->blas, stream), "cublasSetStream", error);

  /* a new stream takes the workspace away */
  if (status == IMK_OK)
    status = check_blas (cublasSetWorkspace (s->blas, s->workspace, WORKSPACE),
        "cublasSetWorkspace", error);
  if (status != IMK_OK)
    return status;
  return check_blas (
      cublasGemmStridedBatchedEx (s->blas, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k,
          &alpha, s->operators, CUDA_R_16F, k, (long long) k * m, a.spectra,
          CUDA_R_16F, k, (long long) k * n, &beta, (void *) a.products,
          CUDA_R_32F, m, (long long) m * n, (int) a.n_cameras,
          CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
      "cublasGemmStridedBatchedEx", error);
}

/* ------------------------------------------------------------------------
 * Launches. */

template <typename Sample>
static ImkStatus
launch_input (const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t sums =
      grid (dim3 (imk_div_up (a.width, SUM_COLUMNS), a.n_cameras, a.n_jobs),
          dim3 (SUM_COLUMNS, SUM_GROUPS), stream);
  cudaLaunchConfig_t rows =
      grid (dim3 (a.height, a.n_jobs), dim3 (SPLIT_THREADS), stream);
  ImkStatus status = IMK_OK;

  if (a.means)
    status = IMK_CUDA_LAUNCH (error, sums, find_means<Sample>, a);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, rows, split_spectra<Sample>, a);
  return status;
}

static ImkStatus
launch_input_of (
    ImkType type, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  switch (type) {
  case IMK_TYPE_U8:
    return launch_input<uint8_t> (a, stream, error);
  case IMK_TYPE_U16:
    return launch_input<uint16_t> (a, stream, error);
  case IMK_TYPE_I16:
    return launch_input<int16_t> (a, stream, error);
  default:
    return launch_input<float> (a, stream, error);
  }
}

/* Work on this object may still run on another stream, and uses the same
 * memory; the last jobs must have been copied before there are new ones. */
static ImkStatus
send_jobs (Cuda *s, const ImkOctbscanJob *jobs, uint32_t n_jobs,
    cudaStream_t stream, ImkError *error)
{
  ImkStatus status = IMK_CUDA (error, cudaEventSynchronize (s->copied));

  if (status != IMK_OK)
    return status;
  for (uint32_t i = 0; i < n_jobs; i++)
    s->host_jobs[i] = job_of (&jobs[i]);
  status = IMK_CUDA (error, cudaStreamWaitEvent (stream, s->done, 0));
  if (status == IMK_OK)
    status = IMK_CUDA (
        error, cudaMemcpyAsync (s->jobs, s->host_jobs, n_jobs * sizeof (Job),
                   cudaMemcpyHostToDevice, stream));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaEventRecord (s->copied, stream));
  return status;
}

static ImkStatus
cuda_process (void *state, const ImkOctbscanJob *jobs, uint32_t n_jobs,
    void *stream, ImkError *error)
{
  Cuda *s = (Cuda *) state;
  const cudaStream_t on = (cudaStream_t) stream;
  Arguments a = s->arguments;
  ImkStatus status = send_jobs (s, jobs, n_jobs, on, error);

  a.n_jobs = n_jobs;
  if (status == IMK_OK)
    status = launch_input_of (s->type, a, on, error);
  if (status == IMK_OK)
    status = multiply (s, n_jobs, on, error);
  if (status == IMK_OK)
    status = launch_finish (a, on, error);
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaEventRecord (s->done, on));
  return status;
}

static ImkStatus
cuda_update (void *state, const ImkOctbscanParams *params, ImkError *error)
{
  (void) error;
  ((Cuda *) state)->arguments.params = *params;
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * The object. */

static void
cuda_destroy (void *state)
{
  Cuda *s = (Cuda *) state;

  cudaFree (s->memory); /* waits for kernels that use it */
  cudaFreeHost (s->host_jobs);
  if (s->copied)
    cudaEventDestroy (s->copied);
  if (s->done)
    cudaEventDestroy (s->done);
  if (s->blas)
    cublasDestroy (s->blas);
  delete s;
}

static void
cut_memory (Cuda *s, Cutter *c, bool has_background)
{
  Arguments &a = s->arguments;
  size_t rows = (size_t) a.n_cameras * s->max_jobs * a.camera_rows;
  size_t row = (size_t) PARTS * a.padded;
  float *background = nullptr;
  float2 *products = nullptr;

  c->cut (&s->operators, (size_t) a.n_cameras * 2 * a.n_depths * row);
  c->cut (&a.spectra, rows * row);
  c->cut (&products, rows * a.n_depths);
  c->cut (&a.row_scales, rows);
  cut_finish (&a, s->max_jobs, c);
  c->cut (&s->jobs, s->max_jobs);
  c->cut ((uint8_t **) &s->workspace, WORKSPACE);
  if (s->background_mode == IMK_OCTBSCAN_BACKGROUND_MEAN)
    c->cut (&a.means, (size_t) s->max_jobs * a.n_cameras * a.width);
  if (has_background)
    c->cut (&background, (size_t) a.n_cameras * a.width);
  a.products = products;
  a.scales = a.row_scales;
  a.background = background;
  a.jobs = s->jobs;
}

static ImkStatus
allocate (Cuda *s, const ImkOctbscanPlan *plan, ImkError *error)
{
  Cutter c = {nullptr, 0};
  ImkStatus status;

  cut_memory (s, &c, plan->background != nullptr);
  status = IMK_CUDA (error, cudaMalloc (&s->memory, c.used));
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaMemset (s->memory, 0, c.used));
  if (status == IMK_OK) {
    c = {(uint8_t *) s->memory, 0};
    cut_memory (s, &c, plan->background != nullptr);
    status = IMK_CUDA (
        error, cudaHostAlloc ((void **) &s->host_jobs,
                   s->max_jobs * sizeof (Job), cudaHostAllocPortable));
  }
  if (status == IMK_OK)
    status = IMK_CUDA (
        error, cudaEventCreateWithFlags (&s->copied, cudaEventDisableTiming));
  if (status == IMK_OK)
    status = IMK_CUDA (
        error, cudaEventCreateWithFlags (&s->done, cudaEventDisableTiming));
  if (status == IMK_OK)
    status = check_blas (cublasCreate (&s->blas), "cublasCreate", error);
  return status;
}

/* Rows of (b1, b2, b1), scaled together by a power of 2. */
static ImkStatus
upload_operators (Cuda *s, const ImkOctbscanPlan *plan, ImkError *error)
{
  const Arguments &a = s->arguments;
  size_t n_rows = (size_t) a.n_cameras * 2 * a.n_depths, row = PARTS * a.padded;
  __half *halves = new (std::nothrow) __half[n_rows * row]();
  float largest = 0, scale;
  ImkStatus status;

  if (!halves)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for operators of %u depths.", a.n_depths);
  for (size_t i = 0; i < n_rows * a.width; i++)
    largest = fmaxf (largest, fabsf (plan->operators[i]));
  scale = largest > 0 ? ldexpf (1, EXPONENT - ilogbf (largest)) : 1;
  for (size_t r = 0; r < n_rows; r++)
    for (uint32_t x = 0; x < a.width; x++) {
      float v = plan->operators[r * a.width + x] * scale;
      __half high = __float2half_rn (v);

      /* against (x2, x1, x1) */
      halves[r * row + x] = halves[r * row + x + 2 * a.padded] = high;
      halves[r * row + x + a.padded] =
          __float2half_rn (v - __half2float (high));
    }
  s->operator_scale = 1 / scale;
  status = IMK_CUDA (
      error, cudaMemcpy (s->operators, halves, n_rows * row * sizeof (__half),
                 cudaMemcpyHostToDevice));
  delete[] halves;
  if (status == IMK_OK && plan->background)
    status =
        IMK_CUDA (error, cudaMemcpy ((void *) a.background, plan->background,
                             (size_t) a.n_cameras * a.width * sizeof (float),
                             cudaMemcpyHostToDevice));
  return status;
}

/* What cuBLAS loads at its first product is loaded before the first B-scan. */
static ImkStatus
warm_up (Cuda *s, ImkError *error)
{
  ImkStatus status = multiply (s, 1, nullptr, error);

  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaStreamSynchronize (nullptr));
  return status;
}

static ImkStatus
cuda_create (const ImkOctbscanPlan *plan, const ImkOctbscanParams *params,
    void **state, ImkError *error)
{
  const ImkOctbscanConfig *c = plan->config;
  Cuda *s = new (std::nothrow) Cuda{};
  ImkStatus status;

  if (!s)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for CUDA B-scans.");
  s->type = c->type;
  s->max_jobs = c->max_jobs;
  s->background_mode = c->background_mode;
  s->arguments.width = c->width;
  s->arguments.height = c->height;
  s->arguments.n_cameras = c->n_cameras;
  s->arguments.n_depths = plan->n_depths;
  s->arguments.padded = imk_div_up (c->width, ALIGNMENT) * ALIGNMENT;
  s->arguments.camera_rows = imk_div_up (c->height, c->n_cameras);
  s->arguments.depth_down =
      c->orientation == IMK_OCTBSCAN_ORIENTATION_DEPTH_DOWN;
  s->arguments.params = *params;
  status = allocate (s, plan, error);
  if (status == IMK_OK)
    status = upload_operators (s, plan, error);
  if (status == IMK_OK)
    status = warm_up (s, error);
  if (status == IMK_OK)
    *state = s;
  else
    cuda_destroy (s);
  return status;
}

const ImkOctbscanBackend imk_octbscan_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = cuda_create,
    .update = cuda_update,
    .process = cuda_process,
    .destroy = cuda_destroy,
};
