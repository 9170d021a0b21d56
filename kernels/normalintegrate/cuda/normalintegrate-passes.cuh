/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The passes of the CPU as kernels. Conjugate gradients keep their numbers on
 * the device: from the last iteration on nothing is changed any more. Sums are
 * those of a fixed number of blocks, added up in order, so that the bytes are
 * the same every time. */
#pragma once

#include "core/cuda/cuda-launch.h"
#include "normalintegrate/normalintegrate-bilateral.h"

typedef ImkNormalintegrateComplex Complex;
typedef ImkNormalintegrateLevel Level;

enum {
  THREADS = 256,
  BLOCKS = 1024,  /* of a sum */
  LOOK_EVERY = 4, /* iterations */
};

/* How conjugate gradients stand. */
struct Progress {
  double first, now, residual;
  float alpha, beta;
  uint32_t n_iterations;
  bool done;
};

/* What all kernels are given. */
struct Arguments {
  ImkNormalintegratePlan plan; /* its tables on the device */
  ImkNormalintegrateParams params;
  ImkImage in;
  /* of conjugate gradients, [height][width]: heights, residual, direction,
   * A direction; normals before */
  float *z, *r, *p, *q;
  uint8_t *valid;              /* likewise */
  float *real;                 /* likewise, in the order of transforms */
  Complex *spectrum, *along_y; /* [height][width / 2 + 1] */
  Level level; /* bilateral: its weights are A, and its z is the answer; without
                * z the answer is real */
  double *sums;   /* [BLOCKS] */
  float2 *ranges; /* [BLOCKS] lowest, highest */
  Progress *progress;
};

/* ------------------------------------------------------------------------
 * Sums. */

/* Returns: the sum of the block, in its first thread */
static __device__ double
block_sum (double value)
{
  __shared__ double warps[THREADS / 32];

  for (int d = 16; d > 0; d /= 2)
    value += __shfl_down_sync (0xffffffff, value, d);
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = value;
  __syncthreads ();
  if (threadIdx.x == 0)
    for (int w = 1; w < THREADS / 32; w++)
      value += warps[w];
  return value;
}

/* Of all blocks of the kernel before, in the first thread. */
static __device__ double
sum_of_blocks (const Arguments &a)
{
  double sum = 0;

  for (int i = threadIdx.x; i < BLOCKS; i += THREADS)
    sum += a.sums[i];
  return block_sum (sum);
}

/* func (x, y, index) of all pixels: rows to blocks in turn, columns to
 * threads. */
template <typename Func>
static __device__ void
for_pixels (const Arguments &a, Func func)
{
  for (uint32_t y = blockIdx.x; y < a.plan.height; y += gridDim.x)
    for (uint32_t x = threadIdx.x; x < a.plan.width; x += THREADS)
      func (x, y, (size_t) y * a.plan.width + x);
}

/* Where a sample is in the order of transforms. */
static __device__ size_t
place_of (const Arguments &a, uint32_t x, uint32_t y)
{
  return (size_t) imk_normalintegrate_place_of (y, a.plan.height) *
             a.plan.width +
         imk_normalintegrate_place_of (x, a.plan.width);
}

/* ------------------------------------------------------------------------
 * Normals. */

static __global__ void
load_normals (const __grid_constant__ Arguments a)
{
  double n = 0;

  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    ImkNormalintegrateNormal normal =
        imk_normalintegrate_load (&a.plan, &a.params, &a.in, x, y);

    a.z[at] = normal.x;
    a.p[at] = normal.y;
    a.q[at] = normal.z;
    a.valid[at] = normal.z > 0;
    n += normal.z > 0;
  });
  n = block_sum (n);
  if (threadIdx.x == 0)
    a.sums[blockIdx.x] = n;
}

/* The right side of the normal equations, see the CPU's. */
static __global__ void
begin (const __grid_constant__ Arguments a)
{
  const float *nx = a.z, *ny = a.p, *nz = a.q;
  uint32_t width = a.plan.width, height = a.plan.height;

  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    size_t above = at - width, below = at + width;
    float sum = 0;

    if (x > 0)
      sum += imk_normalintegrate_rise (nx[at - 1], nz[at - 1], nx[at], nz[at]);
    if (x + 1 < width)
      sum -= imk_normalintegrate_rise (nx[at], nz[at], nx[at + 1], nz[at + 1]);
    if (y > 0)
      sum += a.plan.aspect *
             imk_normalintegrate_rise (ny[above], nz[above], ny[at], nz[at]);
    if (y + 1 < height)
      sum -= a.plan.aspect *
             imk_normalintegrate_rise (ny[at], nz[at], ny[below], nz[below]);
    a.r[at] = sum;
    a.real[place_of (a, x, y)] = sum;
  });
}

static __global__ void
load_slopes (const __grid_constant__ Arguments a, bool is_y)
{
  double n = 0;

  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    ImkNormalintegrateNormal normal =
        imk_normalintegrate_load (&a.plan, &a.params, &a.in, x, y);
    float along = is_y ? normal.y : normal.x;

    a.real[at] = normal.z > 0 ? -along / normal.z : 0;
    a.valid[at] = normal.z > 0;
    n += normal.z > 0;
  });
  n = block_sum (n);
  if (threadIdx.x == 0)
    a.sums[blockIdx.x] = n;
}

/* ------------------------------------------------------------------------
 * Spectra. A row of blocks is a row of bins. */

static __device__ float
transform_scale (const Arguments &a)
{
  return 1 / ((float) a.plan.width * (float) a.plan.height);
}

static __global__ void
solve_bins (const __grid_constant__ Arguments a)
{
  uint32_t l = blockIdx.x * THREADS + threadIdx.x, k = blockIdx.y;
  uint32_t half = a.plan.width / 2 + 1;
  uint32_t mirrored = k ? a.plan.height - k : 0;

  if (l < half) {
    Complex *at = a.spectrum + (size_t) k * half + l;
    Complex *other = a.spectrum + (size_t) mirrored * half + l;
    Complex v = *at, w = *other;

    imk_normalintegrate_solve_bins (
        &a.plan.y, &a.plan.x, k, l, transform_scale (a), &v, &w);
    *other = w;
    *at = v;
  }
}

static __global__ void
combine_bins (const __grid_constant__ Arguments a)
{
  uint32_t l = blockIdx.x * THREADS + threadIdx.x, k = blockIdx.y;
  uint32_t half = a.plan.width / 2 + 1;
  size_t at = (size_t) k * half + l;

  if (l < half)
    a.spectrum[at] = imk_normalintegrate_surface_bin (a.spectrum[at],
        a.along_y[at], a.plan.y.wave[k], a.plan.x.wave[l], transform_scale (a));
}

/* ------------------------------------------------------------------------
 * Conjugate gradients, see the CPU's. */

static __device__ float
answer_at (const Arguments &a, uint32_t x, uint32_t y, size_t at)
{
  return a.level.z ? a.level.z[at] : a.real[place_of (a, x, y)];
}

static __global__ void
dot (const __grid_constant__ Arguments a)
{
  double sum = 0;

  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    sum += (double) a.r[at] * answer_at (a, x, y, at);
  });
  sum = block_sum (sum);
  if (threadIdx.x == 0)
    a.sums[blockIdx.x] = sum;
}

/* After the first dot product. */
static __global__ void
start_progress (const __grid_constant__ Arguments a)
{
  double sum = sum_of_blocks (a);

  if (threadIdx.x == 0) {
    Progress p = {};

    p.first = p.now = sum;
    p.done = !(sum > 0);
    *a.progress = p;
  }
}

/* After the dot product of an iteration. */
static __global__ void
judge_progress (const __grid_constant__ Arguments a)
{
  double sum = sum_of_blocks (a);
  Progress *p = a.progress;

  if (threadIdx.x == 0 && !p->done) {
    p->residual = sum > 0 ? sqrt (sum / p->first) : 0;
    p->beta = (float) (sum / p->now);
    p->now = sum;
    p->done = !(sum > 0) || p->residual <= a.params.tolerance ||
              p->n_iterations == a.params.max_iterations;
  }
}

/* After the sum of p q. */
static __global__ void
choose_step (const __grid_constant__ Arguments a)
{
  double curvature = sum_of_blocks (a);
  Progress *p = a.progress;

  if (threadIdx.x == 0 && !p->done) {
    p->n_iterations++;
    p->alpha = (float) (p->now / curvature);
    p->done = !(curvature > 0);
  }
}

static __global__ void
turn (const __grid_constant__ Arguments a)
{
  float beta = a.progress->beta;

  if (a.progress->done)
    return;
  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    float answer = answer_at (a, x, y, at);

    /* before the first direction, p holds something else */
    a.p[at] = beta != 0 ? answer + beta * a.p[at] : answer;
  });
}

static __device__ float
apply_at (const Arguments &a, uint32_t x, uint32_t y, size_t at)
{
  ImkNormalintegrateSums s;

  if (!a.level.z)
    return imk_normalintegrate_apply (&a.plan, a.p, a.valid, x, y);
  s = imk_normalintegrate_neighbours (&a.level, a.p, x, y);
  return s.weights * a.p[at] - s.weighted;
}

static __global__ void
apply (const __grid_constant__ Arguments a)
{
  double sum = 0;

  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    a.q[at] = apply_at (a, x, y, at);
    sum += (double) a.p[at] * a.q[at];
  });
  sum = block_sum (sum);
  if (threadIdx.x == 0)
    a.sums[blockIdx.x] = sum;
}

/* Also puts the residual where it is transformed, if it is. */
static __global__ void
step (const __grid_constant__ Arguments a)
{
  float alpha = a.progress->alpha;

  if (a.progress->done)
    return;
  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    float r = a.r[at] - alpha * a.q[at];

    a.z[at] += alpha * a.p[at];
    a.r[at] = r;
    if (!a.level.z)
      a.real[place_of (a, x, y)] = r;
  });
}

/* Where the first answer is the solution. */
static __global__ void
take_answer (const __grid_constant__ Arguments a, bool in_order)
{
  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    a.z[at] = a.real[in_order ? at : place_of (a, x, y)];
  });
}

/* ------------------------------------------------------------------------
 * Results. */

static __global__ void
find_range (const __grid_constant__ Arguments a,
    const __grid_constant__ ImkNormalintegrateScale scale)
{
  __shared__ float2 threads[THREADS];
  float2 range = make_float2 (INFINITY, -INFINITY);

  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    if (a.valid[at]) {
      float mm = imk_normalintegrate_height (&scale, x, y, a.z[at]);

      range.x = fminf (range.x, mm);
      range.y = fmaxf (range.y, mm);
    }
  });
  threads[threadIdx.x] = range;
  __syncthreads ();
  if (threadIdx.x > 0)
    return;
  for (int t = 1; t < THREADS; t++) {
    range.x = fminf (range.x, threads[t].x);
    range.y = fmaxf (range.y, threads[t].y);
  }
  a.ranges[blockIdx.x] = range;
}

static __global__ void
gather_heights (const __grid_constant__ Arguments a, const uint32_t *at,
    uint32_t n, float *z)
{
  uint32_t i = blockIdx.x * THREADS + threadIdx.x;

  if (i < n)
    z[i] = a.valid[at[i]] ? a.z[at[i]] : NAN;
}

static __global__ void
store (const __grid_constant__ Arguments a,
    const __grid_constant__ ImkNormalintegrateScale scale,
    ImkNormalintegrateOutputs out)
{
  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    imk_normalintegrate_store (&out, &scale, x, y, a.z[at], a.valid[at]);
  });
}

/* ------------------------------------------------------------------------
 * Launches. */

static cudaLaunchConfig_t
pixels (cudaStream_t stream)
{
  return grid (dim3 (BLOCKS), dim3 (THREADS), stream);
}

static cudaLaunchConfig_t
bins (const Arguments &a, uint32_t rows, cudaStream_t stream)
{
  return grid (dim3 (imk_div_up (a.plan.width / 2 + 1, THREADS), rows),
      dim3 (THREADS), stream);
}
