/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From jobs to what is taken off their spectra, whatever strategy follows. */
#pragma once

#include "octbscan/octbscan-finish.cuh"

enum {
  SUM_COLUMNS = 64, /* that a block adds up, by groups of threads */
  SUM_GROUPS = 8,
  ROLL_THREADS = 256,
  CHUNK_JOBS = 3900 / sizeof (Job), /* that fit into the 4 KiB of a launch */
};

/* What the kernels here and of the strategies are given. */
struct Arguments : Finish {
  uint32_t width;
  uint32_t reach;          /* of a mean along the spectrum, 0 for none */
  const float *background; /* [C][N] or NULL */
  float *means;            /* [jobs][C][N], or along each spectrum
                            * [jobs][H][N]; or NULL */
  double *bscan_means;     /* [jobs][C][N], where the background follows them */
  double *followed;        /* [C][N] */
};

/* ------------------------------------------------------------------------
 * Jobs go with a launch. A copy would queue up behind the B-scans that are
 * being uploaded, and the GPU would have nothing to do meanwhile. */

struct JobChunk {
  Job jobs[CHUNK_JOBS];
};

static __global__ void
put_jobs (const __grid_constant__ JobChunk chunk, uint32_t n, Job *to)
{
  if (threadIdx.x < n)
    to[threadIdx.x] = chunk.jobs[threadIdx.x];
}

static ImkStatus
launch_jobs (const ImkOctbscanJob *jobs, uint32_t n_jobs,
    const ImkOctbscanConfig &config, History *history, Job *to,
    cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t launch = grid (dim3 (1), dim3 (CHUNK_JOBS), stream);
  ImkStatus status = IMK_OK;
  JobChunk chunk = {};

  for (uint32_t i = 0; i < n_jobs && status == IMK_OK; i += CHUNK_JOBS) {
    uint32_t n = n_jobs - i < CHUNK_JOBS ? n_jobs - i : (uint32_t) CHUNK_JOBS;

    for (uint32_t k = 0; k < n; k++) {
      chunk.jobs[k] = job_of (&jobs[i + k]);
      enter_history (history, config, i + k, &chunk.jobs[k]);
    }
    status = IMK_CUDA_LAUNCH (error, launch, put_jobs, chunk, n, to + i);
  }
  return status;
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
  size_t to = ((size_t) blockIdx.z * a.n_cameras + camera) * a.width + x;
  Sum sum = 0;

  if (!job.in)
    return;
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
  if (a.bscan_means)
    a.bscan_means[to] = n ? (double) sum / n : 0;
  else
    a.means[to] = n ? (float) ((double) sum / n) : 0;
}

/* Backgrounds that remember, jobs in their order. */
static __global__ void
follow_means (const __grid_constant__ Arguments a)
{
  uint32_t x = blockIdx.x * ROLL_THREADS + threadIdx.x, camera = blockIdx.y;
  size_t at = (size_t) camera * a.width + x;
  double m;

  if (x >= a.width)
    return;
  m = a.followed[at];
  for (uint32_t j = 0; j < a.n_jobs; j++) {
    size_t here = (size_t) j * a.n_cameras * a.width + at;
    float share = a.jobs[j].follow[camera];

    if (share > 0)
      m = imk_octbscan_background (m, a.bscan_means[here], share);
    a.means[here] = (float) m;
  }
  a.followed[at] = m;
}

/* Along each spectrum; a thread a sample. */
template <typename Sample>
static __global__ void
roll_means (const __grid_constant__ Arguments a)
{
  typedef typename SumOf<Sample>::Type Sum;
  const Job &job = a.jobs[blockIdx.z];
  uint32_t x = blockIdx.x * ROLL_THREADS + threadIdx.x, row = blockIdx.y;
  const Sample *in = (const Sample *) (job.in + (size_t) row * job.in_stride);
  uint32_t first = x > a.reach ? x - a.reach : 0, end;
  Sum sum = 0;

  if (x >= a.width || !job.in)
    return;
  end = a.width - x > a.reach ? x + a.reach + 1 : a.width;
  for (uint32_t i = first; i < end; i++)
    sum += in[i];
  a.means[((size_t) blockIdx.z * a.height + row) * a.width + x] =
      (float) ((double) sum / (end - first));
}

template <typename Sample>
static ImkStatus
launch_means_of (const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t sums =
      grid (dim3 (imk_div_up (a.width, SUM_COLUMNS), a.n_cameras, a.n_jobs),
          dim3 (SUM_COLUMNS, SUM_GROUPS), stream);
  cudaLaunchConfig_t samples =
      grid (dim3 (imk_div_up (a.width, ROLL_THREADS), a.height, a.n_jobs),
          dim3 (ROLL_THREADS), stream);

  return a.reach ? IMK_CUDA_LAUNCH (error, samples, roll_means<Sample>, a)
                 : IMK_CUDA_LAUNCH (error, sums, find_means<Sample>, a);
}

static ImkStatus
launch_means (
    ImkType type, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t columns =
      grid (dim3 (imk_div_up (a.width, ROLL_THREADS), a.n_cameras),
          dim3 (ROLL_THREADS), stream);
  ImkStatus status;

  if (!a.means)
    return IMK_OK;
  switch (type) {
  case IMK_TYPE_U8:
    status = launch_means_of<uint8_t> (a, stream, error);
    break;
  case IMK_TYPE_U16:
    status = launch_means_of<uint16_t> (a, stream, error);
    break;
  case IMK_TYPE_I16:
    status = launch_means_of<int16_t> (a, stream, error);
    break;
  default:
    status = launch_means_of<float> (a, stream, error);
    break;
  }
  if (status == IMK_OK && a.followed)
    status = IMK_CUDA_LAUNCH (error, columns, follow_means, a);
  return status;
}

/* ------------------------------------------------------------------------
 * Spectra. */

static __device__ const float *
mean_of (const Arguments &a, uint32_t job, uint32_t camera, uint32_t row)
{
  if (a.reach)
    return a.means + ((size_t) job * a.height + row) * a.width;
  if (a.means)
    return a.means + ((size_t) job * a.n_cameras + camera) * a.width;
  return a.background ? a.background + (size_t) camera * a.width : nullptr;
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
