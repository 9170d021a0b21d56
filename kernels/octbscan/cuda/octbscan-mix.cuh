/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between Z and pictures on the GPU: fixed pattern, A-scans of the image,
 * tracking, means of B-scans, en-face rows. What cpu/finish.c does on the
 * CPU. */
#pragma once

#include <cstring>

#include "core/cuda/cuda-check.h"
#include "core/cuda/cuda-launch.h"
#include "octbscan/octbscan-backend.h"
#include "octbscan/octbscan-rows.h"
#include "octbscan/octbscan-track.h"

enum {
  MIX_THREADS = 256,
  PROFILE_DEPTHS = 32, /* summed by a block, by groups of threads */
  PROFILE_GROUPS = 32,
  TRACK_THREADS = 256,
};

/* What the device needs of an image; without data where there is none. */
struct Plane {
  uint8_t *data;
  size_t stride;
  ImkType type;

  template <typename Sample>
  __device__ Sample *
  row (size_t y) const
  {
    return (Sample *) (data + y * stride);
  }
};

static Plane
plane_of (const ImkImage *image)
{
  return image ? Plane{(uint8_t *) image->data, image->stride, image->type}
               : Plane{};
}

/* A job, as the device sees it. */
struct Job {
  Plane in, db, linear, complex;
  uint32_t first_camera;
  float *enface, *track;
  uint32_t *n_bad;
  float *ends;
  bool backward, has_images, db_is_linear;
  uint32_t pattern; /* index of the pattern that is subtracted */
  bool finds_pattern;
  uint32_t n_summed;  /* B-scans in the mean, including this one */
  uint32_t n_tracked; /* B-scans tracked before this one */
  uint8_t follow[IMK_OCTBSCAN_MAX_CAMERAS]; /* Follow */
};

/* Whether a camera has spectra that a background can take in. */
enum Follow { FOLLOW_NONE, FOLLOW_FIRST, FOLLOW_NEXT };

static Job
job_of (const ImkOctbscanJob *job)
{
  Job j = {};

  j.in = plane_of (job->in);
  j.db = plane_of (job->db);
  j.linear = plane_of (job->linear);
  j.complex = plane_of (job->complex);
  j.enface = (float *) plane_of (job->enface).data;
  j.track = (float *) plane_of (job->track).data;
  j.first_camera = job->first_camera;
  j.n_bad = job->n_bad;
  j.ends = job->ends;
  j.backward = job->backward;
  j.db_is_linear = job->db_is_linear;
  j.has_images = job->db || job->linear || job->enface;
  return j;
}

/* Z of the spectra, as a strategy left it. */
struct Products {
  uint32_t camera_rows; /* maximum rows of a camera in one job */
  float2 *products;     /* [C][jobs][camera_rows][n_depths] */
  float *scales;        /* likewise, what makes Z of them; 0 for a spectrum
                         * that has none */
  uint8_t *bad;         /* [jobs][H] invalid A-scans; NULL: none */
};

/* The matrix of ImkOctbscanLateral. */
struct Lateral {
  bool is_identity;
  uint32_t *first, *rows;
  float *weights;
};

struct Tracking {
  uint32_t n_window;    /* depths */
  double *profiles;     /* [jobs][n_window] */
  double *reference;    /* [n_window] */
  double *tops;         /* [jobs][n_ascans][2] position and intensity */
  double *correlations; /* [2 reach + 1] */
  ImkOctbscanTrack *state;
  ImkOctbscanLock lock;
  int32_t *shifts;   /* [jobs] */
  double *fractions; /* [jobs] */
  float2 *taps;      /* [jobs][IMK_OCTBSCAN_SHIFT_TAPS] of the fractions */
};

/* Means of B-scans. */
struct Mean {
  double *sums;        /* [n_ascans][n_depths] */
  uint32_t *n_in_sums; /* [n_ascans][n_depths] */
  uint8_t *alive;      /* [jobs][n_ascans] valid columns */
};

/* Black and white. */
struct Range {
  float fixed[4];     /* imk_octbscan_fixed_ends () */
  float3 *found;      /* [jobs] intensities: black, white in dB, white linear */
  unsigned int *ends; /* [jobs][2] bits of the minimum and the maximum */
  unsigned int *counts; /* [jobs][N_BINS] */
};

struct Images {
  bool flips_depth;
  bool is_mixed;  /* images are made from mixed */
  float *mixed;   /* [jobs][n_ascans][n_depths] */
  float *shifted; /* the same after tracking and means of B-scans */
  uint8_t *dead;  /* [jobs][n_ascans] invalid columns; NULL: none */
};

/* What the kernels here are given: the shape, then a part for each step. */
struct Finish {
  ImkOctbscanConfig config; /* without its pointers; updated */
  uint32_t n_depths, n_ascans, n_jobs;
  const Job *jobs;
  Products z;
  float2 *patterns; /* [max_jobs + 1][C][n_depths], the last persists */
  Lateral lateral;
  Tracking tracking;
  Mean mean;
  Range range;
  Images image;
};

/* ------------------------------------------------------------------------
 * Rows. Row r of a job is the r / C th of its camera. */

struct Place {
  uint32_t camera;
  size_t row; /* of spectra, scales and products */
};

/* Returns: rows of the products of all jobs */
static size_t
n_rows (const Finish &a)
{
  return (size_t) a.config.n_cameras * a.config.max_jobs * a.z.camera_rows;
}

/* Returns: the first row that @job has of @camera */
static __device__ size_t
first_row_of (const Finish &a, uint32_t job, uint32_t camera)
{
  return ((size_t) camera * a.n_jobs + job) * a.z.camera_rows;
}

static __device__ Place
place_of (const Finish &a, uint32_t job, uint32_t row)
{
  Place p;

  p.camera = imk_octbscan_camera_of (
      row, a.config.n_cameras, a.jobs[job].first_camera);
  p.row = first_row_of (a, job, p.camera) + row / a.config.n_cameras;
  return p;
}

/* The fixed pattern that @job takes off, or writes. */
static __device__ float2 *
pattern_of (const Finish &a, uint32_t job, uint32_t camera)
{
  size_t row = (size_t) a.jobs[job].pattern * a.config.n_cameras + camera;

  return a.patterns + row * a.n_depths;
}

/* Z of a row as it came, the fixed pattern taken off. */
static __device__ float2
z_at (const Finish &a, uint32_t job, const Place &p, uint32_t depth)
{
  float2 z = a.z.products[p.row * a.n_depths + depth];
  float scale = a.z.scales[p.row];

  z = make_float2 (z.x * scale, z.y * scale);
  if (a.patterns && scale != 0) {
    float2 pattern = pattern_of (a, job, p.camera)[depth];

    z = make_float2 (z.x - pattern.x, z.y - pattern.y);
  }
  return z;
}

static __device__ bool
is_bad (const Finish &a, uint32_t job, size_t row)
{
  return a.z.bad && a.z.bad[(size_t) job * a.config.height + row];
}

/* ------------------------------------------------------------------------
 * The fixed pattern: a thread a depth of a camera. */

static __global__ void
find_patterns (const __grid_constant__ Finish a)
{
  const Job &job = a.jobs[blockIdx.z];
  uint32_t camera = blockIdx.y, depth = blockIdx.x * blockDim.x + threadIdx.x;
  ImkOctbscanRows rows = imk_octbscan_rows_of (
      camera, a.config.n_cameras, job.first_camera, a.config.height);
  uint32_t n = imk_octbscan_n_segments (&a.config, rows.n);
  float2 pattern = make_float2 (0, 0);
  double least = INFINITY;

  if (!job.finds_pattern || depth >= a.n_depths)
    return;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t i0 = (uint32_t) ((uint64_t) rows.n * k / n);
    uint32_t i1 = (uint32_t) ((uint64_t) rows.n * (k + 1) / n);
    double re = 0, im = 0, squares = 0, variance;
    uint32_t n_sound = 0;

    for (uint32_t i = i0; i < i1; i++) {
      size_t row = first_row_of (a, blockIdx.z, camera) +
                   (rows.first + i * a.config.n_cameras) / a.config.n_cameras;
      float2 z = a.z.products[row * a.n_depths + depth];

      if (a.z.scales[row] == 0)
        continue;
      n_sound++;
      z = make_float2 (z.x * a.z.scales[row], z.y * a.z.scales[row]);
      re += z.x;
      im += z.y;
      squares += (double) z.x * z.x + (double) z.y * z.y;
    }
    re /= n_sound;
    im /= n_sound;
    variance = imk_octbscan_variance (re, im, squares / n_sound, n_sound);
    if (variance < least) {
      least = variance;
      pattern = make_float2 ((float) re, (float) im);
    }
  }
  pattern_of (a, blockIdx.z, camera)[depth] = pattern;
}

/* ------------------------------------------------------------------------
 * A-scans of the image: a block for some depths of one. */

static __global__ void
mix_rows (const __grid_constant__ Finish a)
{
  uint32_t depth = blockIdx.x * blockDim.x + threadIdx.x, ascan = blockIdx.y;
  const Job &job = a.jobs[blockIdx.z];
  float sum = 0, weights = 0;
  bool is_whole = true;

  if (depth >= a.n_depths || !job.in.data)
    return;
  for (uint32_t k = a.lateral.first[ascan]; k < a.lateral.first[ascan + 1];
       k++) {
    uint32_t row = job.backward ? a.config.height - 1 - a.lateral.rows[k]
                                : a.lateral.rows[k];
    float2 z;

    if (is_bad (a, blockIdx.z, row)) {
      is_whole = false;
      continue;
    }
    z = z_at (a, blockIdx.z, place_of (a, blockIdx.z, row), depth);
    weights += a.lateral.weights[k];
    sum += a.lateral.weights[k] * imk_octbscan_intensity (z.x, z.y);
  }
  if (!is_whole && weights > 0)
    sum /= weights;
  if (a.image.dead && depth == 0)
    a.image.dead[(size_t) blockIdx.z * a.n_ascans + ascan] = !(weights > 0);
  a.image
      .mixed[((size_t) blockIdx.z * a.n_ascans + ascan) * a.n_depths + depth] =
      sum;
}

static __device__ const float *
mixed_row (const Finish &a, uint32_t job, uint32_t ascan)
{
  return a.image.mixed + ((size_t) job * a.n_ascans + ascan) * a.n_depths;
}

/* Z after tracking. */
static __device__ __forceinline__ float2
moved_z (const Finish &a, uint32_t job, uint32_t row, uint32_t depth)
{
  const float2 *taps = a.tracking.taps + job * IMK_OCTBSCAN_SHIFT_TAPS;
  int64_t at = (int64_t) depth - a.tracking.shifts[job];
  float2 sum = make_float2 (0, 0);

  if (at < 0 || at >= a.n_depths)
    return sum;
  if (a.tracking.fractions[job] == 0)
    return z_at (a, job, place_of (a, job, row), (uint32_t) at);
  for (int k = 0; k < IMK_OCTBSCAN_SHIFT_TAPS; k++) {
    int64_t from = at + k - IMK_OCTBSCAN_SHIFT_REACH;
    float2 z, tap = taps[k];

    if (from < 0 || from >= a.n_depths)
      continue;
    z = z_at (a, job, place_of (a, job, row), (uint32_t) from);
    sum.x += tap.x * z.x - tap.y * z.y;
    sum.y += tap.x * z.y + tap.y * z.x;
  }
  return sum;
}

/* The complex image, where it is not written with the others. It follows
 * tracking where it moves. */
static __global__ void
write_complex (const __grid_constant__ Finish a)
{
  uint32_t depth = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  const Job &job = a.jobs[blockIdx.z];

  if (depth < a.n_depths && job.complex.data && job.in.data)
    job.complex.row<float2> (row)[depth] =
        imk_octbscan_moves_complex (&a.config)
            ? moved_z (a, blockIdx.z, row, depth)
            : z_at (a, blockIdx.z, place_of (a, blockIdx.z, row), depth);
}

/* ------------------------------------------------------------------------
 * Tracking. */

static __global__ void
find_profiles (const __grid_constant__ Finish a)
{
  __shared__ double sums[PROFILE_GROUPS][PROFILE_DEPTHS];
  uint32_t z = blockIdx.x * PROFILE_DEPTHS + threadIdx.x;
  double sum = 0;

  if (z < a.tracking.n_window)
    for (uint32_t i = threadIdx.y; i < a.n_ascans; i += PROFILE_GROUPS)
      sum += mixed_row (a, blockIdx.z, i)[a.config.tracking_top + z];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads ();
  if (threadIdx.y != 0 || z >= a.tracking.n_window)
    return;
  for (uint32_t g = 1; g < PROFILE_GROUPS; g++)
    sum += sums[g][threadIdx.x];
  a.tracking.profiles[(size_t) blockIdx.z * a.tracking.n_window + z] =
      imk_octbscan_profile (sum, a.n_ascans);
}

/* The largest of what the threads of a warp have, the first of equals. */
static __device__ void
warp_largest (double *value, uint32_t *at)
{
  for (int d = 16; d > 0; d /= 2) {
    double v = __shfl_down_sync (0xffffffff, *value, d);
    uint32_t i = __shfl_down_sync (0xffffffff, *at, d);

    if (v > *value || (v == *value && i < *at)) {
      *value = v;
      *at = i;
    }
  }
}

/* A warp an A-scan. */
static __global__ void
find_contours (const __grid_constant__ Finish a)
{
  uint32_t ascan = blockIdx.x * (MIX_THREADS / 32) + threadIdx.x / 32;
  uint32_t lane = threadIdx.x % 32, at = 0;
  const float *v;
  double *top, best = -1;

  if (ascan >= a.n_ascans)
    return;
  v = mixed_row (a, blockIdx.y, ascan) + a.config.tracking_top;
  for (uint32_t z = lane; z < a.tracking.n_window; z += 32)
    if (v[z] > best) {
      best = v[z];
      at = z;
    }
  warp_largest (&best, &at);
  if (lane != 0)
    return;
  top = a.tracking.tops + 2 * ((size_t) blockIdx.y * a.n_ascans + ascan);
  imk_octbscan_contour_top (v, a.tracking.n_window, at, top);
}

/* What a block adds up; in thread 0. */
static __device__ double
block_sum (double value)
{
  __shared__ double sums[TRACK_THREADS];
  double sum = 0;

  sums[threadIdx.x] = value;
  __syncthreads ();
  if (threadIdx.x == 0)
    for (uint32_t i = 0; i < TRACK_THREADS; i++)
      sum += sums[i];
  __syncthreads ();
  return sum;
}

/* Returns: where the largest of @n is, in all threads */
static __device__ uint32_t
block_largest (const double *values, uint32_t n)
{
  __shared__ double best[TRACK_THREADS / 32];
  __shared__ uint32_t places[TRACK_THREADS / 32];
  double value = -1e300;
  uint32_t at = 0;

  for (uint32_t i = threadIdx.x; i < n; i += TRACK_THREADS)
    if (values[i] > value) {
      value = values[i];
      at = i;
    }
  warp_largest (&value, &at);
  if (threadIdx.x % 32 == 0) {
    best[threadIdx.x / 32] = value;
    places[threadIdx.x / 32] = at;
  }
  __syncthreads ();
  value = best[0];
  at = places[0];
  for (uint32_t w = 1; w < TRACK_THREADS / 32; w++)
    if (best[w] > value || (best[w] == value && places[w] < at)) {
      value = best[w];
      at = places[w];
    }
  __syncthreads ();
  return at;
}

/* Place and weight of one B-scan, in thread 0. */
static __device__ void
follow_profile (const Finish &a, uint32_t job, double *place, double *weight)
{
  const double *profile =
      a.tracking.profiles + (size_t) job * a.tracking.n_window;
  uint32_t at = block_largest (profile, a.tracking.n_window);
  double mean = 0, sum = 0, weights = 0;

  for (uint32_t z = threadIdx.x; z < a.tracking.n_window; z += TRACK_THREADS)
    mean += profile[z];
  mean = block_sum (mean) / a.tracking.n_window;
  if (a.config.tracking == IMK_OCTBSCAN_TRACKING_RPE) {
    imk_octbscan_rpe (profile, a.tracking.n_window, at, mean, place, weight);
    return;
  }
  for (uint32_t i = threadIdx.x; i < a.n_ascans; i += TRACK_THREADS) {
    const double *top = a.tracking.tops + 2 * ((size_t) job * a.n_ascans + i);

    sum += top[0] * top[1];
    weights += top[1];
  }
  sum = block_sum (sum);
  weights = block_sum (weights);
  imk_octbscan_contour (sum, weights, a.n_ascans, mean, place, weight);
}

/* The same by correlation; the reference takes the profile. */
static __device__ void
correlate_profile (const Finish &a, uint32_t job, uint32_t n_seen,
    double *place, double *weight)
{
  const double *profile =
      a.tracking.profiles + (size_t) job * a.tracking.n_window;
  const int32_t reach =
      (int32_t) imk_octbscan_reach (&a.config, a.tracking.n_window);
  const uint32_t n_lags = 2 * (uint32_t) reach + 1;
  const bool has_reference = n_seen > 0 || a.tracking.lock.has_profile;
  uint32_t at;

  *place = 0;
  *weight = has_reference ? 0 : 1;
  if (has_reference) {
    for (uint32_t i = threadIdx.x; i < n_lags; i += TRACK_THREADS)
      a.tracking.correlations[i] = imk_octbscan_correlation (profile,
          a.tracking.reference, a.tracking.n_window, (int32_t) i - reach);
    __syncthreads ();
    at = block_largest (a.tracking.correlations, n_lags);
    imk_octbscan_xcorr (a.tracking.correlations, reach, at, place, weight);
  }
  for (uint32_t z = threadIdx.x; z < a.tracking.n_window; z += TRACK_THREADS)
    a.tracking.reference[z] =
        imk_octbscan_follow (&a.config, a.tracking.lock, profile,
            a.tracking.reference[z], a.tracking.n_window, z, *place, n_seen);
  __syncthreads ();
}

/* One block: each job needs what those before it left. */
static __global__ void
track_jobs (const __grid_constant__ Finish a)
{
  for (uint32_t j = 0; j < a.n_jobs; j++) {
    const Job &job = a.jobs[j];
    double place, weight;

    if (!job.in.data) {
      if (threadIdx.x == 0)
        a.tracking.shifts[j] = 0;
      continue;
    }
    if (a.config.tracking == IMK_OCTBSCAN_TRACKING_XCORR)
      correlate_profile (a, j, job.n_tracked, &place, &weight);
    else
      follow_profile (a, j, &place, &weight);
    if (threadIdx.x == 0) {
      ImkOctbscanMotion m;

      a.tracking.state->n_seen = job.n_tracked;
      m = imk_octbscan_motion (
          &a.config, a.tracking.lock, a.tracking.state, place, weight);
      a.tracking.shifts[j] = m.shift;
      a.tracking.fractions[j] = m.fraction;
      if (job.track)
        imk_octbscan_tell_motion (&m, job.track);
    }
    __syncthreads ();
    if (imk_octbscan_moves_complex (&a.config) &&
        threadIdx.x < IMK_OCTBSCAN_SHIFT_TAPS) {
      float tap[2];

      imk_octbscan_shift_tap (a.tracking.fractions[j],
          (int32_t) threadIdx.x - IMK_OCTBSCAN_SHIFT_REACH, a.config.scale,
          tap);
      a.tracking.taps[j * IMK_OCTBSCAN_SHIFT_TAPS + threadIdx.x] =
          make_float2 (tap[0], tap[1]);
    }
  }
}

/* Without tracking. */
static __global__ void
clear_tracks (const __grid_constant__ Finish a)
{
  const Job &job = a.jobs[blockIdx.x];

  if (job.track && threadIdx.x < 4)
    job.track[threadIdx.x] = 0;
}

/* ------------------------------------------------------------------------
 * Shift and sum: a thread a depth, jobs in their order. */

static __global__ void
shift_and_add (const __grid_constant__ Finish a)
{
  uint32_t depth = blockIdx.x * blockDim.x + threadIdx.x, ascan = blockIdx.y;
  size_t at = (size_t) ascan * a.n_depths + depth;
  uint32_t n;
  double sum;

  if (depth >= a.n_depths)
    return;
  sum = a.config.averages_bscans ? a.mean.sums[at] : 0;
  n = a.config.averages_bscans ? a.mean.n_in_sums[at] : 0;
  for (uint32_t j = 0; j < a.n_jobs; j++) {
    const Job &job = a.jobs[j];
    uint8_t *dead =
        a.image.dead ? a.image.dead + (size_t) j * a.n_ascans + ascan : nullptr;
    int64_t from =
        (int64_t) depth - (a.tracking.shifts ? a.tracking.shifts[j] : 0);
    float value = 0;

    if (job.in.data && from >= 0 && from < a.n_depths)
      value = mixed_row (a, j, ascan)[from];
    if (a.config.averages_bscans) {
      if (job.n_summed == (job.in.data ? 1 : 0)) {
        sum = 0;
        n = 0;
      }
      if (job.in.data && !(dead && *dead)) {
        sum += value;
        n++;
      }
      value = n ? (float) (sum / n) : 0;
    }
    a.image.shifted[(size_t) j * a.n_ascans * a.n_depths + at] = value;
    if (a.config.averages_bscans && a.mean.alive && depth == 0)
      a.mean.alive[(size_t) j * a.n_ascans + ascan] = n > 0;
  }
  if (a.config.averages_bscans) {
    a.mean.sums[at] = sum;
    a.mean.n_in_sums[at] = n;
  }
}

/* ------------------------------------------------------------------------
 * What images are of. */

/* A column without an A-scan has no part in what is black and white. */
static __device__ bool
is_dead (const Finish &a, uint32_t job, uint32_t ascan)
{
  size_t at = (size_t) job * a.n_ascans + ascan;

  if (!a.z.bad)
    return false;
  if (a.config.averages_bscans)
    return !a.mean.alive[at];
  return a.image.is_mixed ? a.image.dead[at]
                          : a.z.bad[(size_t) job * a.config.height + ascan];
}

static __device__ float
intensity_at (const Finish &a, uint32_t job, uint32_t ascan, uint32_t depth)
{
  size_t at = ((size_t) job * a.n_ascans + ascan) * a.n_depths + depth;
  float2 z;

  if (a.image.shifted)
    return a.image.shifted[at];
  if (a.image.is_mixed)
    return a.image.mixed[at];
  z = z_at (a, job, place_of (a, job, ascan), depth);
  return imk_octbscan_intensity (z.x, z.y);
}

/* A warp an A-scan. */
static __global__ void
project (const __grid_constant__ Finish a)
{
  const Job &job = a.jobs[blockIdx.y];
  uint32_t ascan = blockIdx.x * (MIX_THREADS / 32) + threadIdx.x / 32;
  const ImkOctbscanProjection projection = a.config.projection;
  uint32_t n = a.n_depths - a.config.enface_top - a.config.enface_bottom;
  double sum = 0;

  if (!job.enface || ascan >= a.n_ascans)
    return;
  for (uint32_t q = threadIdx.x % 32; q < n; q += 32) {
    double v = intensity_at (a, blockIdx.y, ascan, a.config.enface_top + q);

    sum = imk_octbscan_project (projection, sum, v);
  }
  for (int d = 16; d > 0; d /= 2) {
    double other = __shfl_xor_sync (0xffffffff, sum, d);

    sum = imk_octbscan_project (projection, sum, other);
  }
  if (projection == IMK_OCTBSCAN_PROJECTION_MEAN)
    sum /= n;
  if (threadIdx.x % 32 == 0)
    job.enface[ascan] = (float) sum;
}

/* ------------------------------------------------------------------------
 * Launches. */

static ImkStatus
launch_tracking (const Finish &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t profiles = grid (
      dim3 (imk_div_up (a.tracking.n_window, PROFILE_DEPTHS), 1, a.n_jobs),
      dim3 (PROFILE_DEPTHS, PROFILE_GROUPS), stream);
  cudaLaunchConfig_t contours =
      grid (dim3 (imk_div_up (a.n_ascans, MIX_THREADS / 32), a.n_jobs),
          dim3 (MIX_THREADS), stream);
  cudaLaunchConfig_t jobs = grid (dim3 (1), dim3 (TRACK_THREADS), stream);

  IMK_TRY (IMK_CUDA_LAUNCH (error, profiles, find_profiles, a));
  if (a.config.tracking == IMK_OCTBSCAN_TRACKING_CONTOUR)
    IMK_TRY (IMK_CUDA_LAUNCH (error, contours, find_contours, a));
  return IMK_CUDA_LAUNCH (error, jobs, track_jobs, a);
}

/* Whether one of @n jobs has @what. */
template <typename Member>
static bool
any_has (const ImkOctbscanJob *jobs, uint32_t n, Member ImkOctbscanJob::*what)
{
  for (uint32_t i = 0; i < n; i++)
    if (jobs[i].*what)
      return true;
  return false;
}

/* Up to what images are of. */
static ImkStatus
launch_mix (const Finish &a, const ImkOctbscanJob *jobs, cudaStream_t stream,
    ImkError *error)
{
  const uint32_t parts = imk_div_up (a.n_depths, MIX_THREADS);
  cudaLaunchConfig_t patterns = grid (
      dim3 (parts, a.config.n_cameras, a.n_jobs), dim3 (MIX_THREADS), stream);
  cudaLaunchConfig_t ascans =
      grid (dim3 (parts, a.n_ascans, a.n_jobs), dim3 (MIX_THREADS), stream);
  cudaLaunchConfig_t rows = grid (
      dim3 (parts, a.config.height, a.n_jobs), dim3 (MIX_THREADS), stream);
  cudaLaunchConfig_t sums =
      grid (dim3 (parts, a.n_ascans), dim3 (MIX_THREADS), stream);
  cudaLaunchConfig_t tracks = grid (dim3 (a.n_jobs), dim3 (32), stream);
  cudaLaunchConfig_t enface =
      grid (dim3 (imk_div_up (a.n_ascans, MIX_THREADS / 32), a.n_jobs),
          dim3 (MIX_THREADS), stream);
  bool wants_complex = any_has (jobs, a.n_jobs, &ImkOctbscanJob::complex);
  bool moves = wants_complex && imk_octbscan_moves_complex (&a.config);

  if (a.patterns)
    IMK_TRY (IMK_CUDA_LAUNCH (error, patterns, find_patterns, a));
  if (a.image.is_mixed)
    IMK_TRY (IMK_CUDA_LAUNCH (error, ascans, mix_rows, a));
  if (a.image.is_mixed && wants_complex && !moves)
    IMK_TRY (IMK_CUDA_LAUNCH (error, rows, write_complex, a));
  if (a.config.tracking != IMK_OCTBSCAN_TRACKING_NONE)
    IMK_TRY (launch_tracking (a, stream, error));
  else if (any_has (jobs, a.n_jobs, &ImkOctbscanJob::track))
    IMK_TRY (IMK_CUDA_LAUNCH (error, tracks, clear_tracks, a));
  if (moves)
    IMK_TRY (IMK_CUDA_LAUNCH (error, rows, write_complex, a));
  if (a.image.shifted)
    IMK_TRY (IMK_CUDA_LAUNCH (error, sums, shift_and_add, a));
  if (any_has (jobs, a.n_jobs, &ImkOctbscanJob::enface))
    IMK_TRY (IMK_CUDA_LAUNCH (error, enface, project, a));
  return IMK_OK;
}
