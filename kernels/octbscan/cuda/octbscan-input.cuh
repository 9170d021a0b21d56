/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From jobs to what is taken off their spectra, whatever strategy follows. */
#pragma once

#include "core/cuda/instance.cuh"
#include "octbscan/cuda/octbscan-finish.cuh"

enum {
  SUM_COLUMNS = 64, /* summed by a block, by groups of threads */
  SUM_GROUPS = 8,
  ROLL_THREADS = 256,
  CHUNK_JOBS = 3900 / sizeof (Job), /* limit: the 4 KiB of launch arguments */
};

/* What the kernels here and of the strategies are given. */
struct Arguments : Finish {
  const float2 *background; /* [C][N] in two parts, or NULL */
  float2 *means;            /* [jobs][C][N], or along each spectrum
                             * [jobs][H][N]; in two parts; or NULL */
  double *bscan_means;      /* [jobs][C][N], for running backgrounds */
  double *followed;         /* [C][N] */
  uint32_t *n_followed;     /* [C][N] B-scans in it */
};

static __host__ __device__ bool
rolls (const Arguments &a)
{
  return a.config.background_mode == IMK_OCTBSCAN_BACKGROUND_ROLLING;
}

static OneOf<IMK_TYPE_U8, IMK_TYPE_U16, IMK_TYPE_I16, IMK_TYPE_F32>
sample_type (const Arguments &a)
{
  return {a.config.type};
}

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
  JobChunk chunk = {};

  for (uint32_t i = 0; i < n_jobs; i += CHUNK_JOBS) {
    uint32_t n = n_jobs - i < CHUNK_JOBS ? n_jobs - i : (uint32_t) CHUNK_JOBS;

    for (uint32_t k = 0; k < n; k++) {
      chunk.jobs[k] = job_of (&jobs[i + k]);
      enter_history (history, config, i + k, &chunk.jobs[k]);
    }
    IMK_TRY (IMK_CUDA_LAUNCH (error, launch, put_jobs, chunk, n, to + i));
  }
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * Spectra with a sample that is not a number have no A-scan, and no part in
 * what others are compared with. Integers all are numbers. */

/* A warp a spectrum. */
static __global__ void
mark_bad (const __grid_constant__ Arguments a)
{
  const Job &job = a.jobs[blockIdx.y];
  uint32_t row = blockIdx.x * (MIX_THREADS / 32) + threadIdx.x / 32;
  const float *in = job.in.row<float> (row);
  int wild = 0;

  if (!job.in.data || row >= a.config.height)
    return;
  for (uint32_t x = threadIdx.x % 32; x < a.config.width; x += 32)
    wild |= !imk_octbscan_is_sound (in[x]);
  wild = __any_sync (0xffffffff, wild);
  if (threadIdx.x % 32 == 0) {
    a.z.bad[(size_t) blockIdx.y * a.config.height + row] = wild;
    /* of the strategy fft it stays, that of the operator says the same */
    a.z.scales[place_of (a, blockIdx.y, row).row] = !wild;
  }
}

static __global__ void
count_bad (const __grid_constant__ Arguments a)
{
  const Job &job = a.jobs[blockIdx.x];
  __shared__ uint32_t n;

  if (threadIdx.x == 0)
    n = 0;
  __syncthreads ();
  for (uint32_t row = threadIdx.x; job.in.data && row < a.config.height;
       row += MIX_THREADS)
    if (a.z.bad[(size_t) blockIdx.x * a.config.height + row])
      atomicAdd (&n, 1);
  __syncthreads ();
  if (threadIdx.x == 0 && job.n_bad && job.in.data)
    *job.n_bad = n;
}

static ImkStatus
launch_bad (const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t rows =
      grid (dim3 (imk_div_up (a.config.height, MIX_THREADS / 32), a.n_jobs),
          dim3 (MIX_THREADS), stream);
  cudaLaunchConfig_t jobs = grid (dim3 (a.n_jobs), dim3 (MIX_THREADS), stream);

  if (a.z.bad)
    IMK_TRY (IMK_CUDA_LAUNCH (error, rows, mark_bad, a));
  if (a.z.bad)
    IMK_TRY (IMK_CUDA_LAUNCH (error, jobs, count_bad, a));
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * Means: sums of integers are exact. */

static __device__ float2
split (double mean)
{
  float2 parts;

  imk_octbscan_split (mean, &parts.x, &parts.y);
  return parts;
}

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
  __shared__ uint32_t counts[SUM_GROUPS];
  uint32_t camera = blockIdx.y, n_sound = 0;
  uint32_t x = blockIdx.x * SUM_COLUMNS + threadIdx.x;
  ImkOctbscanRows rows = imk_octbscan_rows_of (
      camera, a.config.n_cameras, job.first_camera, a.config.height);
  size_t to =
      ((size_t) blockIdx.z * a.config.n_cameras + camera) * a.config.width + x;
  Sum sum = 0;

  if (!job.in.data)
    return;
  for (uint32_t i = threadIdx.y; i < rows.n; i += SUM_GROUPS) {
    size_t row = rows.first + (size_t) i * a.config.n_cameras;

    if (is_bad (a, blockIdx.z, row))
      continue;
    n_sound++;
    if (x < a.config.width)
      sum += job.in.row<Sample> (row)[x];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  if (threadIdx.x == 0)
    counts[threadIdx.y] = n_sound;
  __syncthreads ();
  if (threadIdx.y != 0 || x >= a.config.width)
    return;
  uint32_t n = n_sound;
  for (uint32_t g = 1; g < SUM_GROUPS; g++) {
    sum += sums[g][threadIdx.x];
    n += counts[g];
  }
  /* NaN: the B-scan has no valid A-scan. */
  if (a.bscan_means)
    a.bscan_means[to] = n ? (double) sum / n : (double) NAN;
  else
    a.means[to] = split (n ? (double) sum / n : 0);
}

/* Backgrounds that remember, jobs in their order. */
static __global__ void
follow_means (const __grid_constant__ Arguments a)
{
  uint32_t x = blockIdx.x * ROLL_THREADS + threadIdx.x, camera = blockIdx.y;
  size_t at = (size_t) camera * a.config.width + x;
  uint32_t n, most = a.config.background_bscans;
  bool keeps = a.config.background_mode == IMK_OCTBSCAN_BACKGROUND_FIRST;
  double m;

  if (x >= a.config.width)
    return;
  m = a.followed[at];
  n = a.n_followed[at];
  for (uint32_t j = 0; j < a.n_jobs; j++) {
    size_t here = (size_t) j * a.config.n_cameras * a.config.width + at;
    double mean = a.bscan_means[here];
    Follow follow = (Follow) a.jobs[j].follow[camera];

    if (follow == FOLLOW_FIRST)
      n = 0;
    if (follow != FOLLOW_NONE && isfinite (mean) && !(keeps && n >= most)) {
      n += n < most;
      m = imk_octbscan_background (m, mean, n);
    }
    a.means[here] = split (m);
  }
  a.followed[at] = m;
  a.n_followed[at] = n;
}

/* Along each spectrum; a thread a sample. */
template <typename Sample>
static __global__ void
roll_means (const __grid_constant__ Arguments a)
{
  typedef typename SumOf<Sample>::Type Sum;
  const Job &job = a.jobs[blockIdx.z];
  uint32_t x = blockIdx.x * ROLL_THREADS + threadIdx.x, row = blockIdx.y;
  const Sample *in = job.in.row<Sample> (row);
  uint32_t reach = a.config.background_reach;
  uint32_t first = x > reach ? x - reach : 0, end;
  Sum sum = 0;

  if (x >= a.config.width || !job.in.data)
    return;
  end = a.config.width - x > reach ? x + reach + 1 : a.config.width;
  for (uint32_t i = first; i < end; i++)
    sum += in[i];
  a.means[((size_t) blockIdx.z * a.config.height + row) * a.config.width + x] =
      split ((double) sum / (end - first));
}

template <typename Sample>
static ImkStatus
launch_means_of (const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t sums =
      grid (dim3 (imk_div_up (a.config.width, SUM_COLUMNS), a.config.n_cameras,
                a.n_jobs),
          dim3 (SUM_COLUMNS, SUM_GROUPS), stream);
  cudaLaunchConfig_t samples =
      grid (dim3 (imk_div_up (a.config.width, ROLL_THREADS), a.config.height,
                a.n_jobs),
          dim3 (ROLL_THREADS), stream);

  return rolls (a) ? IMK_CUDA_LAUNCH (error, samples, roll_means<Sample>, a)
                   : IMK_CUDA_LAUNCH (error, sums, find_means<Sample>, a);
}

static ImkStatus
launch_means (const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t columns = grid (
      dim3 (imk_div_up (a.config.width, ROLL_THREADS), a.config.n_cameras),
      dim3 (ROLL_THREADS), stream);

  if (!a.means)
    return IMK_OK;
  IMK_TRY (instance (
      [&] (auto type) {
        return launch_means_of<SampleOf<type>> (a, stream, error);
      },
      sample_type (a)));
  if (a.followed)
    IMK_TRY (IMK_CUDA_LAUNCH (error, columns, follow_means, a));
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * Spectra. */

static __device__ const float2 *
mean_of (const Arguments &a, uint32_t job, uint32_t camera, uint32_t row)
{
  if (rolls (a))
    return a.means + ((size_t) job * a.config.height + row) * a.config.width;
  if (a.means)
    return a.means +
           ((size_t) job * a.config.n_cameras + camera) * a.config.width;
  return a.background ? a.background + (size_t) camera * a.config.width
                      : nullptr;
}

/* The first difference is exact near the mean. */
static __device__ float
less_mean (float sample, const float2 *mean, uint32_t x)
{
  return mean ? (sample - mean[x].x) - mean[x].y : sample;
}

/* 0 behind the end. */
template <typename Sample>
static __device__ float
sample_at (const Sample *in, const float2 *mean, uint32_t x, uint32_t width)
{
  return x < width ? less_mean ((float) in[x], mean, x) : 0;
}
