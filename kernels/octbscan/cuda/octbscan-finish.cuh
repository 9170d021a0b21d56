/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From Z to images on the GPU, whatever strategy made Z: fixed pattern, A-scans
 * of the image, tracking, means of B-scans (octbscan-mix.cuh), black and white
 * where they are asked for, levels, turning. Each step is launched once for any
 * number of jobs. */
#pragma once

#include "core/cuda/cuda-cutter.h"
#include "octbscan/cuda/octbscan-mix.cuh"

enum {
  RANK_THREADS = 1024,
  TILE = 64, /* A-scans and depths transposed by a block */
  TILE_THREADS = 256,
};

/* ------------------------------------------------------------------------
 * Black and white. */

static __global__ void
begin_ranks (const __grid_constant__ Finish a)
{
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < IMK_OCTBSCAN_N_BINS)
    a.range.counts[(size_t) blockIdx.y * IMK_OCTBSCAN_N_BINS + i] = 0;
  if (i == 0) {
    a.range.ends[2 * blockIdx.y] = 0x7fffffff;
    a.range.ends[2 * blockIdx.y + 1] = 0;
  }
}

/* Bits of what is not negative are in the order of the values. */
static __global__ void
find_ends (const __grid_constant__ Finish a)
{
  unsigned int least = 0x7fffffff, largest = 0;

  if (is_dead (a, blockIdx.y, blockIdx.x))
    return;
  for (uint32_t q = threadIdx.x; q < a.n_depths; q += blockDim.x) {
    unsigned int bits =
        __float_as_uint (intensity_at (a, blockIdx.y, blockIdx.x, q));

    least = min (least, bits);
    largest = max (largest, bits);
  }
  for (int d = 16; d > 0; d /= 2) {
    least = min (least, __shfl_xor_sync (0xffffffff, least, d));
    largest = max (largest, __shfl_xor_sync (0xffffffff, largest, d));
  }
  if (threadIdx.x % 32 == 0) {
    atomicMin (&a.range.ends[2 * blockIdx.y], least);
    atomicMax (&a.range.ends[2 * blockIdx.y + 1], largest);
  }
}

static __global__ void
count_bins (const __grid_constant__ Finish a)
{
  unsigned int *counts =
      a.range.counts + (size_t) blockIdx.y * IMK_OCTBSCAN_N_BINS;

  if (is_dead (a, blockIdx.y, blockIdx.x))
    return;
  for (uint32_t q = threadIdx.x; q < a.n_depths; q += blockDim.x)
    atomicAdd (
        &counts[imk_octbscan_bin (intensity_at (a, blockIdx.y, blockIdx.x, q))],
        1);
}

/* One block a job: each thread has a run of bins. */
static __global__ void
find_ranks (const __grid_constant__ Finish a)
{
  const uint32_t run = IMK_OCTBSCAN_N_BINS / RANK_THREADS;
  const unsigned int *counts = a.range.counts +
                               (size_t) blockIdx.x * IMK_OCTBSCAN_N_BINS +
                               threadIdx.x * run;
  __shared__ uint64_t before[RANK_THREADS];
  uint64_t n = 0, sum = 0, seen = 0, ranks[3];

  for (uint32_t i = 0; i < run; i++)
    sum += counts[i];
  before[threadIdx.x] = sum;
  __syncthreads ();
  for (uint32_t i = 0; i < RANK_THREADS; i++) {
    seen += i < threadIdx.x ? before[i] : 0;
    n += before[i];
  }
  if (n == 0 && threadIdx.x == 0)
    a.range.found[blockIdx.x] = make_float3 (0, 0, 0);
  if (n == 0)
    return;
  imk_octbscan_ranks (&a.config, n, ranks);
  for (int k = 0; k < 3; k++)
    if (seen <= ranks[k] && ranks[k] < seen + sum) {
      uint64_t upto = seen;
      uint32_t i = 0;

      while ((upto += counts[i]) <= ranks[k])
        i++;
      ((float *) &a.range.found[blockIdx.x])[k] =
          imk_octbscan_bin_start (threadIdx.x * run + i);
    }
}

/* dB of black and white, intensities of black and white. */
static __device__ float4
ends_of (const Finish &a, uint32_t job)
{
  const float *fixed = a.range.fixed;
  float found[3], ends[4] = {fixed[0], fixed[1], fixed[2], fixed[3]};

  if (a.config.range == IMK_OCTBSCAN_RANGE_FIXED)
    return make_float4 (ends[0], ends[1], ends[2], ends[3]);
  if (a.config.range == IMK_OCTBSCAN_RANGE_MINMAX) {
    /* Minimum > maximum means that no A-scan is valid. */
    bool is_there = a.range.ends[2 * job] <= a.range.ends[2 * job + 1];

    found[0] = is_there ? __uint_as_float (a.range.ends[2 * job]) : 0;
    found[1] = found[2] =
        is_there ? __uint_as_float (a.range.ends[2 * job + 1]) : 0;
  } else {
    found[0] = a.range.found[job].x;
    found[1] = a.range.found[job].y;
    found[2] = a.range.found[job].z;
  }
  imk_octbscan_ends (&a.config, found, ends);
  return make_float4 (ends[0], ends[1], ends[2], ends[3]);
}

static __global__ void
tell_ends (const __grid_constant__ Finish a)
{
  const Job &job = a.jobs[blockIdx.x];
  const float4 ends = ends_of (a, blockIdx.x);

  if (!job.ends)
    return;
  job.ends[0] = ends.x;
  job.ends[1] = ends.y;
  job.ends[2] = ends.z;
  job.ends[3] = ends.w;
}

/* ------------------------------------------------------------------------
 * Images. */

/* How one image is written. */
struct Writer {
  Plane image;
  bool db;
  ImkOctbscanLevels levels;
};

static __device__ Writer
writer_of (const Plane &image, bool db, const float4 &ends)
{
  return Writer{image, db,
      imk_octbscan_levels (
          db ? ends.x : ends.z, db ? ends.y : ends.w, image.type)};
}

/* @n up to 4 pixels of a row from @x on: a store of four where the rows of the
 * image allow it. @at: gives the sample of a value */
template <typename Sample, typename Four, typename At>
static __device__ void
store_four (const Plane &image, uint32_t x, uint32_t y, uint32_t n,
    const float values[4], const At &at)
{
  Sample *to = image.row<Sample> (y) + x;
  Sample samples[4];

  for (int i = 0; i < 4; i++)
    samples[i] = (Sample) at (values[i]);
  if (n == 4 && (uintptr_t) to % sizeof (Four) == 0) {
    Four four;

    memcpy (&four, samples, sizeof (four));
    *(Four *) to = four;
    return;
  }
  for (uint32_t i = 0; i < n; i++)
    to[i] = samples[i];
}

static __device__ void
write_four (const Writer &w, uint32_t x, uint32_t y, uint32_t n,
    const float intensities[4])
{
  const auto level = [&w] (
                         float v) { return imk_octbscan_level (w.levels, v); };
  float v[4];

  for (int i = 0; i < 4; i++)
    v[i] = w.db ? imk_octbscan_db (intensities[i]) : intensities[i];
  if (w.image.type == IMK_TYPE_U8)
    store_four<uint8_t, uint32_t> (w.image, x, y, n, v, level);
  else if (w.image.type == IMK_TYPE_U16)
    store_four<uint16_t, uint2> (w.image, x, y, n, v, level);
  else
    store_four<float, float4> (
        w.image, x, y, n, v, [] (float value) { return value; });
}

typedef float Tile[TILE][TILE + 1]; /* by A-scan and depth */

/* Depth of an image to depth of Z. */
static __device__ uint32_t
depth_of (const Finish &a, uint32_t q)
{
  return a.image.flips_depth ? a.n_depths - 1 - q : q;
}

/* A warp has rows of the tile; its lanes find where they are, one each. All is
 * read before the first store, which might be to the same memory for all that
 * the compiler knows: then one load would wait for the other. */
static __device__ void
load_z_tile (
    const Finish &a, const Job &job, uint32_t row0, uint32_t depth0, Tile &tile)
{
  constexpr uint32_t n_rows = TILE / (TILE_THREADS / 32), n_steps = TILE / 32;
  uint32_t lane = threadIdx.x % 32, first = threadIdx.x / 32 * n_rows;
  uint32_t mine = row0 + first + lane % n_rows;
  const Place p = place_of (
      a, blockIdx.z, mine < a.config.height ? mine : a.config.height - 1);
  const float my_scale = a.z.scales[p.row];
  float2 z[n_rows][n_steps];

#pragma unroll
  for (uint32_t i = 0; i < n_rows; i++) {
    const float2 *from = a.z.products + (size_t) __shfl_sync (0xffffffff,
                                            (uint32_t) p.row, (int) i) *
                                            a.n_depths;

#pragma unroll
    for (uint32_t k = 0; k < n_steps; k++) {
      uint32_t q = depth0 + lane + 32 * k;

      z[i][k] = row0 + first + i < a.config.height && q < a.n_depths
                    ? from[depth_of (a, q)]
                    : make_float2 (0, 0);
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < n_rows; i++) {
    uint32_t row = row0 + first + i;
    float scale = __shfl_sync (0xffffffff, my_scale, (int) i);
    uint32_t camera = __shfl_sync (0xffffffff, p.camera, (int) i);
    const float2 *pattern =
        a.patterns ? a.patterns +
                         ((size_t) job.pattern * a.config.n_cameras + camera) *
                             a.n_depths
                   : nullptr;

#pragma unroll
    for (uint32_t k = 0; k < n_steps; k++) {
      uint32_t d = lane + 32 * k, q = depth_of (a, depth0 + d);
      float2 v = make_float2 (z[i][k].x * scale, z[i][k].y * scale);

      if (row < a.config.height && depth0 + d < a.n_depths) {
        if (pattern && scale != 0)
          v = make_float2 (v.x - pattern[q].x, v.y - pattern[q].y);
        if (job.complex.data)
          job.complex.row<float2> (row)[q] = v;
      }
      tile[first + i][d] = imk_octbscan_intensity (v.x, v.y);
    }
  }
}

static __device__ void
load_tile (const Finish &a, uint32_t row0, uint32_t depth0, Tile &tile)
{
  for (uint32_t k = threadIdx.x; k < TILE * TILE; k += TILE_THREADS) {
    uint32_t row = row0 + k / TILE, q = depth0 + k % TILE;

    tile[k / TILE][k % TILE] =
        row < a.n_ascans && q < a.n_depths
            ? intensity_at (a, blockIdx.z, row, depth_of (a, q))
            : 0;
  }
}

static __device__ void
store_tile (const Finish &a, const Writer &w, uint32_t row0, uint32_t depth0,
    const Tile &tile)
{
  bool down = a.config.orientation == IMK_OCTBSCAN_ORIENTATION_DEPTH_DOWN;
  uint32_t x0 = down ? row0 : depth0;
  uint32_t y0 = down ? depth0 : row0;
  uint32_t width = down ? a.n_ascans : a.n_depths;
  uint32_t height = down ? a.n_depths : a.n_ascans;
  uint32_t dx = threadIdx.x % (TILE / 4) * 4;

  if (!w.image.data || x0 + dx >= width)
    return;
  for (uint32_t dy = threadIdx.x / (TILE / 4); dy < TILE;
       dy += TILE_THREADS / (TILE / 4)) {
    uint32_t x = x0 + dx, y = y0 + dy;
    float v[4];

    if (y >= height)
      return;
    for (uint32_t i = 0; i < 4; i++)
      v[i] = down ? tile[dx + i][dy] : tile[dy][dx + i];
    write_four (w, x, y, min (4u, width - x), v);
  }
}

static __global__ void
write_images (const __grid_constant__ Finish a)
{
  __shared__ Tile tile;
  const Job &job = a.jobs[blockIdx.z];
  const float4 ends = ends_of (a, blockIdx.z);
  uint32_t row0 = blockIdx.y * TILE, depth0 = blockIdx.x * TILE;

  if (a.image.is_mixed)
    load_tile (a, row0, depth0, tile);
  else
    load_z_tile (a, job, row0, depth0, tile);
  __syncthreads ();
  store_tile (
      a, writer_of (job.db, !job.db_is_linear, ends), row0, depth0, tile);
  store_tile (a, writer_of (job.linear, false, ends), row0, depth0, tile);
}

/* ------------------------------------------------------------------------
 * Launches. */

static ImkStatus
launch_ranks (const Finish &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t begin =
      grid (dim3 (IMK_OCTBSCAN_N_BINS / 256, a.n_jobs), dim3 (256), stream);
  cudaLaunchConfig_t rows =
      grid (dim3 (a.n_ascans, a.n_jobs), dim3 (256), stream);
  cudaLaunchConfig_t ranks =
      grid (dim3 (a.n_jobs), dim3 (RANK_THREADS), stream);

  if (a.config.range == IMK_OCTBSCAN_RANGE_FIXED)
    return IMK_OK;
  IMK_TRY (IMK_CUDA_LAUNCH (error, begin, begin_ranks, a));
  if (a.config.range == IMK_OCTBSCAN_RANGE_MINMAX)
    return IMK_CUDA_LAUNCH (error, rows, find_ends, a);
  IMK_TRY (IMK_CUDA_LAUNCH (error, rows, count_bins, a));
  return IMK_CUDA_LAUNCH (error, ranks, find_ranks, a);
}

static ImkStatus
launch_images (const Finish &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t images =
      grid (dim3 (imk_div_up (a.n_depths, TILE), imk_div_up (a.n_ascans, TILE),
                a.n_jobs),
          dim3 (TILE_THREADS), stream);

  return IMK_CUDA_LAUNCH (error, images, write_images, a);
}

/* All that follows Z. */
static ImkStatus
launch_finish (
    Finish a, const ImkOctbscanJob *jobs, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t ends = grid (dim3 (a.n_jobs), dim3 (1), stream);

  a.image.is_mixed = a.image.shifted || !a.lateral.is_identity ||
                     any_has (jobs, a.n_jobs, &ImkOctbscanJob::backward);
  IMK_TRY (launch_mix (a, jobs, stream, error));
  IMK_TRY (launch_ranks (a, stream, error));
  if (any_has (jobs, a.n_jobs, &ImkOctbscanJob::ends))
    IMK_TRY (IMK_CUDA_LAUNCH (error, ends, tell_ends, a));
  return launch_images (a, stream, error);
}

/* ------------------------------------------------------------------------
 * Memory. */

template <typename T>
static ImkStatus
upload (T *to, const T *from, size_t n, ImkError *error)
{
  return IMK_CUDA (
      error, cudaMemcpy (to, from, n * sizeof (T), cudaMemcpyHostToDevice));
}

/* What finishing works in; @lateral: of the plan. */
static void
cut_finish (Finish *a, const ImkOctbscanLateral *lateral, Cutter *c)
{
  const ImkOctbscanConfig *config = &a->config;
  size_t image = (size_t) a->n_ascans * a->n_depths, jobs = config->max_jobs;
  size_t entries = lateral->first[lateral->n_ascans];
  bool tracks = config->tracking != IMK_OCTBSCAN_TRACKING_NONE;

  c->cut (&a->range.found, jobs);
  c->cut (&a->range.ends, 2 * jobs);
  c->cut (&a->range.counts, jobs * IMK_OCTBSCAN_N_BINS);
  c->cut (&a->lateral.first, a->n_ascans + 1);
  c->cut (&a->lateral.rows, entries);
  c->cut (&a->lateral.weights, entries);
  if (!a->lateral.is_identity || config->bidirectional ||
      config->averages_bscans || tracks)
    c->cut (&a->image.mixed, jobs * image);
  if (config->fixed_pattern != IMK_OCTBSCAN_FIXED_PATTERN_NONE)
    c->cut (&a->patterns, (jobs + 1) * config->n_cameras * a->n_depths);
  if (config->averages_bscans) {
    c->cut (&a->mean.sums, image);
    c->cut (&a->mean.n_in_sums, image);
  }
  if (config->type == IMK_TYPE_F32) {
    c->cut (&a->z.bad, jobs * config->height);
    c->cut (&a->image.dead, jobs * a->n_ascans);
    c->cut (&a->mean.alive, jobs * a->n_ascans);
  }
  if (config->averages_bscans || tracks)
    c->cut (&a->image.shifted, jobs * image);
  if (!tracks)
    return;
  c->cut (&a->tracking.profiles, jobs * a->tracking.n_window);
  c->cut (&a->tracking.reference, a->tracking.n_window);
  c->cut (&a->tracking.tops, jobs * a->n_ascans * 2);
  c->cut (&a->tracking.correlations,
      2 * imk_octbscan_reach (config, a->tracking.n_window) + 1);
  c->cut (&a->tracking.state, 1);
  c->cut (&a->tracking.shifts, jobs);
  c->cut (&a->tracking.fractions, jobs);
  c->cut (&a->tracking.taps, jobs * IMK_OCTBSCAN_SHIFT_TAPS);
}

/* What stays from the plan on. */
static ImkStatus
upload_finish (const Finish &a, const ImkOctbscanPlan *plan, ImkError *error)
{
  const ImkOctbscanLateral *l = plan->lateral;
  size_t entries = l->first[l->n_ascans];
  size_t kept = (size_t) a.config.n_cameras * a.n_depths;

  IMK_TRY (upload (a.lateral.first, l->first, l->n_ascans + 1, error));
  IMK_TRY (upload (a.lateral.rows, l->rows, entries, error));
  IMK_TRY (upload (a.lateral.weights, l->weights, entries, error));
  if (a.tracking.reference && a.tracking.lock.has_profile)
    IMK_TRY (upload (a.tracking.reference, plan->config->tracking_profile,
        a.tracking.n_window, error));
  if (plan->pattern)
    IMK_TRY (upload (a.patterns + a.config.max_jobs * kept,
        (const float2 *) plan->pattern, kept, error));
  return IMK_OK;
}

/* What may change between B-scans, too. @config: without its pointers */
static void
update_finish (Finish *a, const ImkOctbscanConfig &config)
{
  a->config = config;
  imk_octbscan_fixed_ends (&config, a->range.fixed);
}

static void
set_finish (Finish *a, const ImkOctbscanPlan *plan)
{
  const ImkOctbscanConfig *c = plan->config;

  update_finish (a, imk_octbscan_without_pointers (c));
  a->n_depths = plan->n_depths;
  a->n_ascans = plan->lateral->n_ascans;
  a->z.camera_rows = imk_div_up (c->height, c->n_cameras);
  a->image.flips_depth = imk_octbscan_flips_depth (c);
  a->lateral.is_identity = plan->lateral->is_identity;
  a->tracking.lock = imk_octbscan_lock (c);
  a->tracking.n_window = imk_octbscan_n_window (c, plan->n_depths);
}

/* ------------------------------------------------------------------------
 * What the host remembers of B-scans. */

struct History {
  bool follows[IMK_OCTBSCAN_MAX_CAMERAS];
  bool has_pattern;
  uint32_t n_summed, n_tracked;
};

/* Which cameras have spectra for the background. */
static void
follow_background (
    History *h, const ImkOctbscanConfig &c, uint32_t first_camera, Job *job)
{
  for (uint32_t i = 0; i < c.n_cameras; i++) {
    if (imk_octbscan_rows_of (i, c.n_cameras, first_camera, c.height).n == 0)
      continue;
    job->follow[i] = h->follows[i] ? FOLLOW_NEXT : FOLLOW_FIRST;
    h->follows[i] = true;
  }
}

/* Numbers a job; @index: in its call. */
static void
enter_history (History *h, const ImkOctbscanConfig &c, uint32_t index, Job *job)
{
  bool keeps = c.fixed_pattern != IMK_OCTBSCAN_FIXED_PATTERN_MINVAR;

  job->pattern = keeps ? c.max_jobs : index;
  job->finds_pattern =
      job->in.data &&
      (!keeps || (c.fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_ONCE &&
                     !h->has_pattern));
  if (job->in.data) {
    h->has_pattern = true;
    h->n_summed++;
    job->n_tracked = h->n_tracked++;
    follow_background (h, c, job->first_camera, job);
  }
  job->n_summed = h->n_summed;
  if (job->has_images)
    h->n_summed = 0;
}
