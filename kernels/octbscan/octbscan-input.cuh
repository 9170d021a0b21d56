/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From jobs to what is taken off their spectra, whatever strategy follows. */
#pragma once

#include "octbscan/octbscan-finish.cuh"

enum {
  SUM_COLUMNS = 64, /* that a block adds up, by groups of threads */
  SUM_GROUPS = 8,
  CHUNK_JOBS = 40, /* that fit into the 4 KiB of a launch */
};

/* What the kernels here and of the strategies are given. */
struct Arguments : Finish {
  uint32_t width;
  const float *background; /* [C][N] or NULL */
  float *means;            /* [jobs][C][N] */
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
launch_jobs (const ImkOctbscanJob *jobs, uint32_t n_jobs, Job *to,
    cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t launch = grid (dim3 (1), dim3 (CHUNK_JOBS), stream);
  ImkStatus status = IMK_OK;
  JobChunk chunk = {};

  for (uint32_t i = 0; i < n_jobs && status == IMK_OK; i += CHUNK_JOBS) {
    uint32_t n = n_jobs - i < CHUNK_JOBS ? n_jobs - i : (uint32_t) CHUNK_JOBS;

    for (uint32_t k = 0; k < n; k++)
      chunk.jobs[k] = job_of (&jobs[i + k]);
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

static ImkStatus
launch_means (
    ImkType type, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t sums =
      grid (dim3 (imk_div_up (a.width, SUM_COLUMNS), a.n_cameras, a.n_jobs),
          dim3 (SUM_COLUMNS, SUM_GROUPS), stream);

  if (!a.means)
    return IMK_OK;
  switch (type) {
  case IMK_TYPE_U8:
    return IMK_CUDA_LAUNCH (error, sums, find_means<uint8_t>, a);
  case IMK_TYPE_U16:
    return IMK_CUDA_LAUNCH (error, sums, find_means<uint16_t>, a);
  case IMK_TYPE_I16:
    return IMK_CUDA_LAUNCH (error, sums, find_means<int16_t>, a);
  default:
    return IMK_CUDA_LAUNCH (error, sums, find_means<float>, a);
  }
}

/* ------------------------------------------------------------------------
 * Spectra. */

static __device__ const float *
mean_of (const Arguments &a, uint32_t job, uint32_t camera)
{
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
