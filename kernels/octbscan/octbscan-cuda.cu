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

#include "core/cuda-check.h"
#include "octbscan/octbscan-backend.h"
#include "octbscan/octbscan-level.h"

enum {
  SUM_COLUMNS = 64, /* that a block adds up, by groups of threads */
  SUM_GROUPS = 8,
  SPLIT_THREADS = 256,
  RANK_THREADS = 1024,
  TILE = 64, /* A-scans and depths that a block turns */
  TILE_THREADS = 256,
  PARTS = 3,     /* N that a row of the product has */
  ALIGNMENT = 8, /* samples: 16 bytes of FP16 */
  WORKSPACE = 32 * 1024 * 1024,
  EXPONENT = 13, /* what is largest is scaled to 2^13 .. 2^14 */
};

/* A job, as the device sees it. */
struct Job {
  const uint8_t *in;
  size_t in_stride;
  uint32_t first_camera;
  uint8_t *db, *linear, *complex;
  size_t db_stride, linear_stride, complex_stride;
  ImkType db_type, linear_type;
};

/* What all kernels are given. */
struct Arguments {
  uint32_t width, height, n_cameras, n_depths, padded;
  uint32_t camera_rows; /* that one job has of a camera, at most */
  uint32_t n_jobs;
  bool depth_down;
  ImkOctbscanParams params;
  const Job *jobs;
  const float *background; /* [C][N] or NULL */
  float *means;            /* [jobs][C][N] */
  __half *spectra;         /* [C][jobs][camera_rows][PARTS][padded] */
  float *scales;           /* [C][jobs][camera_rows] */
  const float *products;   /* [C][jobs][camera_rows][n_depths] complex */
  float2 *ranges;          /* [jobs] intensities of black and white */
  unsigned int *ends;      /* [jobs][2] bits of the least and the largest */
  unsigned int *counts;    /* [jobs][N_BINS] */
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
 * Rows. Row r of a job is the r / C th of its camera. */

struct Place {
  uint32_t camera;
  size_t row; /* of spectra, scales and products */
};

static __device__ Place
place_of (const Arguments &a, uint32_t job, uint32_t row)
{
  Place p;

  p.camera = (row + a.jobs[job].first_camera % a.n_cameras) % a.n_cameras;
  p.row =
      ((size_t) p.camera * a.n_jobs + job) * a.camera_rows + row / a.n_cameras;
  return p;
}

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
    a.scales[place.row] = back;
}

/* ------------------------------------------------------------------------
 * Black and white. */

static __device__ float2
z_at (const Arguments &a, const Place &p, uint32_t depth)
{
  float2 z = ((const float2 *) a.products)[p.row * a.n_depths + depth];
  float scale = a.scales[p.row];

  return make_float2 (z.x * scale, z.y * scale);
}

static __global__ void
begin_ranks (const __grid_constant__ Arguments a)
{
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < IMK_OCTBSCAN_N_BINS)
    a.counts[(size_t) blockIdx.y * IMK_OCTBSCAN_N_BINS + i] = 0;
  if (i == 0) {
    a.ends[2 * blockIdx.y] = 0x7fffffff;
    a.ends[2 * blockIdx.y + 1] = 0;
  }
}

/* Bits of what is not negative are in the order of the values. */
static __global__ void
find_ends (const __grid_constant__ Arguments a)
{
  const Place p = place_of (a, blockIdx.y, blockIdx.x);
  unsigned int least = 0x7fffffff, largest = 0;

  for (uint32_t q = threadIdx.x; q < a.n_depths; q += blockDim.x) {
    float2 z = z_at (a, p, q);
    unsigned int bits = __float_as_uint (imk_octbscan_intensity (z.x, z.y));

    least = min (least, bits);
    largest = max (largest, bits);
  }
  for (int d = 16; d > 0; d /= 2) {
    least = min (least, __shfl_xor_sync (0xffffffff, least, d));
    largest = max (largest, __shfl_xor_sync (0xffffffff, largest, d));
  }
  if (threadIdx.x % 32 == 0) {
    atomicMin (&a.ends[2 * blockIdx.y], least);
    atomicMax (&a.ends[2 * blockIdx.y + 1], largest);
  }
}

static __global__ void
count_bins (const __grid_constant__ Arguments a)
{
  const Place p = place_of (a, blockIdx.y, blockIdx.x);
  unsigned int *counts = a.counts + (size_t) blockIdx.y * IMK_OCTBSCAN_N_BINS;

  for (uint32_t q = threadIdx.x; q < a.n_depths; q += blockDim.x) {
    float2 z = z_at (a, p, q);

    atomicAdd (
        &counts[imk_octbscan_bin (imk_octbscan_intensity (z.x, z.y))], 1);
  }
}

static __device__ uint64_t
rank_of (double percent, uint64_t n)
{
  return (uint64_t) (percent / 100 * (double) (n - 1) + 0.5);
}

/* One block a job: each thread has a run of bins. */
static __global__ void
find_ranks (const __grid_constant__ Arguments a)
{
  const uint32_t run = IMK_OCTBSCAN_N_BINS / RANK_THREADS;
  const unsigned int *counts =
      a.counts + (size_t) blockIdx.x * IMK_OCTBSCAN_N_BINS + threadIdx.x * run;
  __shared__ uint64_t before[RANK_THREADS];
  uint64_t n = (uint64_t) a.height * a.n_depths, sum = 0, seen = 0;
  const uint64_t ranks[2] = {
      rank_of (a.params.percent_min, n), rank_of (a.params.percent_max, n)};

  for (uint32_t i = 0; i < run; i++)
    sum += counts[i];
  before[threadIdx.x] = sum;
  __syncthreads ();
  for (uint32_t i = 0; i < threadIdx.x; i++)
    seen += before[i];
  for (int k = 0; k < 2; k++)
    if (seen <= ranks[k] && ranks[k] < seen + sum) {
      uint64_t upto = seen;
      uint32_t i = 0;

      while ((upto += counts[i]) <= ranks[k])
        i++;
      ((float *) &a.ranges[blockIdx.x])[k] =
          imk_octbscan_bin_start (threadIdx.x * run + i);
    }
}

static __device__ float2
range_of (const Arguments &a, uint32_t job)
{
  switch (a.params.range) {
  case IMK_OCTBSCAN_RANGE_FIXED:
    return make_float2 (a.params.intensity_min, a.params.intensity_max);
  case IMK_OCTBSCAN_RANGE_MINMAX:
    return make_float2 (__uint_as_float (a.ends[2 * job]),
        __uint_as_float (a.ends[2 * job + 1]));
  default:
    return a.ranges[job];
  }
}

/* ------------------------------------------------------------------------
 * Images. */

/* How one image is written. */
struct Writer {
  uint8_t *image;
  size_t stride;
  ImkType type;
  bool db;
  ImkOctbscanLevels levels;
};

static __device__ Writer
writer_of (
    uint8_t *image, size_t stride, ImkType type, bool db, float low, float high)
{
  Writer w;

  w.image = image;
  w.stride = stride;
  w.type = type;
  w.db = db;
  w.levels =
      imk_octbscan_levels (low, high, type == IMK_TYPE_U8 ? 255.0f : 65535.0f);
  return w;
}

/* A store of four where the rows of the image allow it. */
template <typename Sample, typename Four>
static __device__ void
store_four (uint8_t *row, uint32_t x, uint32_t n, const Sample samples[4])
{
  Sample *to = (Sample *) row + x;

  if (n == 4 && (uintptr_t) to % sizeof (Four) == 0) {
    Four four;

    memcpy (&four, samples, sizeof (four));
    *(Four *) to = four;
    return;
  }
  for (uint32_t i = 0; i < n; i++)
    to[i] = samples[i];
}

/* @n up to 4 pixels of row @y from @x on. */
static __device__ void
write_four (const Writer &w, uint32_t x, uint32_t y, uint32_t n,
    const float intensities[4])
{
  uint8_t *row = w.image + (size_t) y * w.stride;
  float v[4];

  for (int i = 0; i < 4; i++)
    v[i] = w.db ? imk_octbscan_db (intensities[i]) : intensities[i];
  if (w.type == IMK_TYPE_U8) {
    uint8_t levels[4];

    for (int i = 0; i < 4; i++)
      levels[i] = (uint8_t) imk_octbscan_level (w.levels, v[i]);
    store_four<uint8_t, uint32_t> (row, x, n, levels);
  } else if (w.type == IMK_TYPE_U16) {
    uint16_t levels[4];

    for (int i = 0; i < 4; i++)
      levels[i] = (uint16_t) imk_octbscan_level (w.levels, v[i]);
    store_four<uint16_t, uint2> (row, x, n, levels);
  } else {
    store_four<float, float4> (row, x, n, v);
  }
}

typedef float Tile[TILE][TILE + 1]; /* by A-scan and depth */

/* A warp reads one A-scan after the other; its lanes find where they are, one
 * each. */
static __device__ void
load_tile (const Arguments &a, const Job &job, uint32_t row0, uint32_t depth0,
    Tile &tile)
{
  const uint32_t n_rows = TILE / (TILE_THREADS / 32);
  uint32_t lane = threadIdx.x % 32, first = threadIdx.x / 32 * n_rows;
  uint32_t mine = row0 + first + lane % n_rows;
  const Place p =
      place_of (a, blockIdx.z, mine < a.height ? mine : a.height - 1);
  const float my_scale = a.scales[p.row];

  for (uint32_t i = 0; i < n_rows; i++) {
    uint32_t row = row0 + first + i;
    size_t at = __shfl_sync (0xffffffff, p.row, (int) i) * a.n_depths;
    float scale = __shfl_sync (0xffffffff, my_scale, (int) i);

    for (uint32_t d = lane; d < TILE; d += 32) {
      uint32_t q = depth0 + d;
      float2 z = make_float2 (0, 0);

      if (row < a.height && q < a.n_depths) {
        z = ((const float2 *) a.products)[at + q];
        z = make_float2 (z.x * scale, z.y * scale);
        if (job.complex)
          ((float2 *) (job.complex + (size_t) row * job.complex_stride))[q] = z;
      }
      tile[first + i][d] = imk_octbscan_intensity (z.x, z.y);
    }
  }
}

static __device__ void
store_tile (const Arguments &a, const Writer &w, uint32_t row0, uint32_t depth0,
    const Tile &tile)
{
  uint32_t x0 = a.depth_down ? row0 : depth0;
  uint32_t y0 = a.depth_down ? depth0 : row0;
  uint32_t width = a.depth_down ? a.height : a.n_depths;
  uint32_t height = a.depth_down ? a.n_depths : a.height;

  if (!w.image)
    return;
  for (uint32_t k = threadIdx.x; k < TILE * TILE / 4; k += TILE_THREADS) {
    uint32_t dx = k % (TILE / 4) * 4, dy = k / (TILE / 4);
    uint32_t x = x0 + dx, y = y0 + dy;
    float v[4];

    if (x >= width || y >= height)
      continue;
    for (uint32_t i = 0; i < 4; i++)
      v[i] = a.depth_down ? tile[dx + i][dy] : tile[dy][dx + i];
    write_four (w, x, y, min (4u, width - x), v);
  }
}

static __global__ void
write_images (const __grid_constant__ Arguments a)
{
  __shared__ Tile tile;
  const Job &job = a.jobs[blockIdx.z];
  const float2 range = range_of (a, blockIdx.z);
  uint32_t row0 = blockIdx.y * TILE, depth0 = blockIdx.x * TILE;

  load_tile (a, job, row0, depth0, tile);
  __syncthreads ();
  store_tile (a,
      writer_of (job.db, job.db_stride, job.db_type, true,
          imk_octbscan_db (range.x), imk_octbscan_db (range.y)),
      row0, depth0, tile);
  store_tile (a,
      writer_of (job.linear, job.linear_stride, job.linear_type, false, range.x,
          range.y),
      row0, depth0, tile);
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

static cudaLaunchConfig_t
grid (dim3 blocks, dim3 threads, cudaStream_t stream)
{
  cudaLaunchConfig_t launch = {};

  launch.gridDim = blocks;
  launch.blockDim = threads;
  launch.stream = stream;
  return launch;
}

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

static ImkStatus
launch_ranks (const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t begin =
      grid (dim3 (IMK_OCTBSCAN_N_BINS / 256, a.n_jobs), dim3 (256), stream);
  cudaLaunchConfig_t rows =
      grid (dim3 (a.height, a.n_jobs), dim3 (256), stream);
  cudaLaunchConfig_t ranks =
      grid (dim3 (a.n_jobs), dim3 (RANK_THREADS), stream);
  ImkStatus status;

  if (a.params.range == IMK_OCTBSCAN_RANGE_FIXED)
    return IMK_OK;
  status = IMK_CUDA_LAUNCH (error, begin, begin_ranks, a);
  if (status == IMK_OK && a.params.range == IMK_OCTBSCAN_RANGE_MINMAX)
    return IMK_CUDA_LAUNCH (error, rows, find_ends, a);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, rows, count_bins, a);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, ranks, find_ranks, a);
  return status;
}

static Job
job_of (const ImkOctbscanJob *job)
{
  Job j = {};

  j.in = (const uint8_t *) job->in->data;
  j.in_stride = job->in->stride;
  j.first_camera = job->first_camera;
  if (job->db) {
    j.db = (uint8_t *) job->db->data;
    j.db_stride = job->db->stride;
    j.db_type = job->db->type;
  }
  if (job->linear) {
    j.linear = (uint8_t *) job->linear->data;
    j.linear_stride = job->linear->stride;
    j.linear_type = job->linear->type;
  }
  if (job->complex) {
    j.complex = (uint8_t *) job->complex->data;
    j.complex_stride = job->complex->stride;
  }
  return j;
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
  cudaLaunchConfig_t images;
  ImkStatus status = send_jobs (s, jobs, n_jobs, on, error);

  a.n_jobs = n_jobs;
  images = grid (
      dim3 (imk_div_up (a.n_depths, TILE), imk_div_up (a.height, TILE), n_jobs),
      dim3 (TILE_THREADS), on);
  if (status == IMK_OK)
    status = launch_input_of (s->type, a, on, error);
  if (status == IMK_OK)
    status = multiply (s, n_jobs, on, error);
  if (status == IMK_OK)
    status = launch_ranks (a, on, error);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, images, write_images, a);
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

/* Cuts one block of memory into parts; with a NULL block it only adds up. */
struct Cutter {
  uint8_t *block;
  size_t used;

  template <typename T>
  void
  cut (T **part, size_t n)
  {
    *part = block ? (T *) (block + used) : nullptr;
    used += (n * sizeof (T) + 255) / 256 * 256;
  }
};

static void
cut_memory (Cuda *s, Cutter *c, bool has_background)
{
  Arguments &a = s->arguments;
  size_t rows = (size_t) a.n_cameras * s->max_jobs * a.camera_rows;
  size_t row = (size_t) PARTS * a.padded;
  float *background = nullptr, *products = nullptr;

  c->cut (&s->operators, (size_t) a.n_cameras * 2 * a.n_depths * row);
  c->cut (&a.spectra, rows * row);
  c->cut (&products, rows * 2 * a.n_depths);
  c->cut (&a.scales, rows);
  c->cut (&a.ranges, s->max_jobs);
  c->cut (&a.ends, 2 * (size_t) s->max_jobs);
  c->cut (&a.counts, (size_t) s->max_jobs * IMK_OCTBSCAN_N_BINS);
  c->cut (&s->jobs, s->max_jobs);
  c->cut ((uint8_t **) &s->workspace, WORKSPACE);
  if (s->background_mode == IMK_OCTBSCAN_BACKGROUND_MEAN)
    c->cut (&a.means, (size_t) s->max_jobs * a.n_cameras * a.width);
  if (has_background)
    c->cut (&background, (size_t) a.n_cameras * a.width);
  a.products = products;
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
