/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From Z to images on the GPU, whatever strategy made Z: black and white where
 * they are asked for, levels, turning. Each step is launched once for any
 * number of jobs. */
#pragma once

#include <cstring>

#include "core/cuda-check.h"
#include "octbscan/octbscan-backend.h"
#include "octbscan/octbscan-level.h"

enum {
  RANK_THREADS = 1024,
  TILE = 64, /* A-scans and depths that a block turns */
  TILE_THREADS = 256,
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

/* What the kernels here are given. */
struct Finish {
  uint32_t height, n_cameras, n_depths;
  uint32_t camera_rows; /* that one job has of a camera, at most */
  uint32_t n_jobs;
  bool depth_down;
  ImkOctbscanParams params;
  const Job *jobs;
  const float2 *products; /* [C][jobs][camera_rows][n_depths] */
  const float *scales;    /* [C][jobs][camera_rows], what makes Z of them */
  float2 *ranges;         /* [jobs] intensities of black and white */
  unsigned int *ends;     /* [jobs][2] bits of the least and the largest */
  unsigned int *counts;   /* [jobs][N_BINS] */
};

/* ------------------------------------------------------------------------
 * Rows. Row r of a job is the r / C th of its camera. */

struct Place {
  uint32_t camera;
  size_t row; /* of spectra, scales and products */
};

static __device__ Place
place_of (const Finish &a, uint32_t job, uint32_t row)
{
  Place p;

  p.camera = (row + a.jobs[job].first_camera % a.n_cameras) % a.n_cameras;
  p.row =
      ((size_t) p.camera * a.n_jobs + job) * a.camera_rows + row / a.n_cameras;
  return p;
}

/* ------------------------------------------------------------------------
 * Black and white. */

static __device__ float2
z_at (const Finish &a, const Place &p, uint32_t depth)
{
  float2 z = a.products[p.row * a.n_depths + depth];
  float scale = a.scales[p.row];

  return make_float2 (z.x * scale, z.y * scale);
}

static __global__ void
begin_ranks (const __grid_constant__ Finish a)
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
find_ends (const __grid_constant__ Finish a)
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
count_bins (const __grid_constant__ Finish a)
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
find_ranks (const __grid_constant__ Finish a)
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
range_of (const Finish &a, uint32_t job)
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
load_tile (const Finish &a, const Job &job, uint32_t row0, uint32_t depth0,
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
        z = a.products[at + q];
        z = make_float2 (z.x * scale, z.y * scale);
        if (job.complex)
          ((float2 *) (job.complex + (size_t) row * job.complex_stride))[q] = z;
      }
      tile[first + i][d] = imk_octbscan_intensity (z.x, z.y);
    }
  }
}

static __device__ void
store_tile (const Finish &a, const Writer &w, uint32_t row0, uint32_t depth0,
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
write_images (const __grid_constant__ Finish a)
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

static ImkStatus
launch_ranks (const Finish &a, cudaStream_t stream, ImkError *error)
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

static ImkStatus
launch_images (const Finish &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t images =
      grid (dim3 (imk_div_up (a.n_depths, TILE), imk_div_up (a.height, TILE),
                a.n_jobs),
          dim3 (TILE_THREADS), stream);

  return IMK_CUDA_LAUNCH (error, images, write_images, a);
}

/* All that follows Z. */
static ImkStatus
launch_finish (const Finish &a, cudaStream_t stream, ImkError *error)
{
  ImkStatus status = launch_ranks (a, stream, error);

  return status == IMK_OK ? launch_images (a, stream, error) : status;
}

/* ------------------------------------------------------------------------
 * Memory. */

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

/* What finishing works in. */
static void
cut_finish (Finish *a, uint32_t max_jobs, Cutter *c)
{
  c->cut (&a->ranges, max_jobs);
  c->cut (&a->ends, 2 * (size_t) max_jobs);
  c->cut (&a->counts, (size_t) max_jobs * IMK_OCTBSCAN_N_BINS);
}
