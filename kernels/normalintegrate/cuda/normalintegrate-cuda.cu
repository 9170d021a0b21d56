/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The passes of the CPU as kernels, and cuFFT. Conjugate gradients keep their
 * numbers on the device, and the CPU looks at them every few iterations: from
 * the last one on nothing is changed any more. Sums are those of a fixed number
 * of blocks, added up in order, so that the bytes are the same every time. */
#include <cstring>
#include <new>

#include "core/cuda/cuda-fft.h"
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

struct Weighted;

struct Cuda {
  Arguments arguments; /* but for those of one call */
  Weighted *weighted;
  float *tables;
  cufftHandle forward, backward;
  bool has_forward, has_backward;
  Progress *host_progress; /* page-locked */
  double *host_sums;
  float2 *host_ranges;
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

static ImkStatus
transform (Cuda *s, Complex *spectrum, ImkError *error)
{
  return IMK_CUFFT (error,
      cufftExecR2C (s->forward, s->arguments.real, (cufftComplex *) spectrum));
}

static ImkStatus
transform_back (Cuda *s, ImkError *error)
{
  const Arguments &a = s->arguments;

  return IMK_CUFFT (
      error, cufftExecC2R (s->backward, (cufftComplex *) a.spectrum, a.real));
}

static ImkStatus
look (Cuda *s, cudaStream_t stream, ImkError *error)
{
  return imk_cuda_read (s->host_progress, s->arguments.progress,
      sizeof (Progress), stream, error);
}

/* Waits. @sum: (out): of all blocks */
static ImkStatus
read_sum (Cuda *s, double *sum, cudaStream_t stream, ImkError *error)
{
  ImkStatus status = imk_cuda_read (
      s->host_sums, s->arguments.sums, BLOCKS * sizeof (double), stream, error);

  *sum = 0;
  for (int i = 0; i < BLOCKS; i++)
    *sum += s->host_sums[i];
  return status;
}

#include "normalintegrate/cuda/normalintegrate-bilateral.cuh"

/* real from the residual in real. */
static ImkStatus
solve_whole (Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t rows = bins (a, a.plan.height / 2 + 1, stream);
  ImkStatus status = transform (s, a.spectrum, error);

  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, rows, solve_bins, a);
  if (status == IMK_OK)
    status = transform_back (s, error);
  return status;
}

/* The answer, and the sums of its product with the residual. */
static ImkStatus
precondition_and_dot (
    Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t all = pixels (stream);
  ImkStatus status = a.level.z ? cycle (*s->weighted, stream, error)
                               : solve_whole (s, a, stream, error);

  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, all, dot, a);
  return status;
}

/* The same before the first iteration. Waits. */
static ImkStatus
start (Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t one = grid (dim3 (1), dim3 (THREADS), stream);
  ImkStatus status = precondition_and_dot (s, a, stream, error);

  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, one, start_progress, a);
  if (status == IMK_OK)
    status = look (s, stream, error);
  return status;
}

static ImkStatus
iterate (Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t one = grid (dim3 (1), dim3 (THREADS), stream);
  cudaLaunchConfig_t all = pixels (stream);
  ImkStatus status = IMK_CUDA_LAUNCH (error, all, turn, a);

  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, all, apply, a);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, one, choose_step, a);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, all, step, a);
  if (status == IMK_OK)
    status = precondition_and_dot (s, a, stream, error);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, one, judge_progress, a);
  return status;
}

/* Iterates until it is done. @look_every: iterations */
static ImkStatus
descend (Cuda *s, const Arguments &a, int look_every, cudaStream_t stream,
    ImkError *error)
{
  ImkStatus status = IMK_OK;

  while (status == IMK_OK && !s->host_progress->done) {
    for (int i = 0; i < look_every && status == IMK_OK; i++)
      status = iterate (s, a, stream, error);
    if (status == IMK_OK)
      status = look (s, stream, error);
  }
  return status;
}

static ImkStatus
solve (Cuda *s, const Arguments &a, ImkNormalintegrateSummary *summary,
    cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t all = pixels (stream);
  bool whole = summary->n_valid == summary->n_pixels;
  ImkStatus status = IMK_CUDA_LAUNCH (error, all, begin, a);

  if (status == IMK_OK)
    status = IMK_CUDA (error,
        cudaMemsetAsync (a.z, 0, summary->n_pixels * sizeof (float), stream));
  if (status == IMK_OK)
    status = start (s, a, stream, error);
  if (status == IMK_OK && whole && !s->host_progress->done) {
    summary->n_iterations = 1;
    return IMK_CUDA_LAUNCH (error, all, take_answer, a, false);
  }
  if (status == IMK_OK)
    status = descend (s, a, LOOK_EVERY, stream, error);
  summary->n_iterations = s->host_progress->n_iterations;
  summary->residual = s->host_progress->residual;
  return status;
}

static ImkStatus
frankot_chellappa (
    Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t all = pixels (stream);
  cudaLaunchConfig_t rows = bins (a, a.plan.height, stream);
  ImkStatus status = IMK_CUDA_LAUNCH (error, all, load_slopes, a, true);

  if (status == IMK_OK)
    status = transform (s, a.along_y, error);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, all, load_slopes, a, false);
  if (status == IMK_OK)
    status = transform (s, a.spectrum, error);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, rows, combine_bins, a);
  if (status == IMK_OK)
    status = transform_back (s, error);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, all, take_answer, a, true);
  return status;
}

static ImkStatus
count_valid (Cuda *s, ImkNormalintegrateSummary *summary, cudaStream_t stream,
    ImkError *error)
{
  double n;
  ImkStatus status = read_sum (s, &n, stream, error);

  summary->n_valid = (uint64_t) n;
  return status;
}

/* ------------------------------------------------------------------------
 * The method bilateral, see cpu/bilateral.c. */

/* @most: (inout): see imk_normalintegrate_enough ()
 * @moved: (out): whether there was anything to do */
static ImkStatus
descend_round (Cuda *s, Arguments a, double *most, bool *moved,
    cudaStream_t stream, ImkError *error)
{
  ImkNormalintegrateRound round = imk_normalintegrate_round (&a.params);
  ImkStatus status = start (s, a, stream, error);
  double first = status == IMK_OK ? s->host_progress->first : 0;
  double enough = imk_normalintegrate_enough (&round, first, *most);

  *most = fmax (*most, first);
  *moved = first > enough;
  a.params.max_iterations = round.steps;
  a.params.tolerance = *moved ? (float) sqrt (enough / first) : 1;
  /* steps are few, and cycles expensive */
  if (status == IMK_OK && *moved)
    status = descend (s, a, 1, stream, error);
  return status;
}

static ImkStatus
bilateral (Cuda *s, Arguments a, ImkNormalintegrateSummary *summary,
    cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t all = pixels (stream);
  ImkStatus status = s->weighted ? IMK_OK : allocate_weighted (s, error);
  double energy = 0, most = 0;
  bool moved = true;

  if (status == IMK_OK)
    a.level = s->weighted->levels[0];
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, all, copy_normals, a, s->weighted->maps);
  if (status == IMK_OK)
    status = weigh (s, a, &energy, stream, error);
  while (status == IMK_OK && summary->n_iterations < a.params.max_iterations) {
    double before = energy;

    status = descend_round (s, a, &most, &moved, stream, error);
    if (status != IMK_OK || !moved)
      break;
    status = weigh (s, a, &energy, stream, error);
    /* the energy of the flat start says nothing */
    if (summary->n_iterations++ == 0)
      continue;
    summary->residual = before > 0 ? fabs (energy - before) / before : 0;
    if (summary->residual <= a.params.tolerance)
      break;
  }
  return status;
}

static ImkStatus
cuda_find_range (void *state, const ImkNormalintegrateScale *scale,
    ImkNormalintegrateRange *range, void *stream, ImkError *error)
{
  Cuda *s = (Cuda *) state;
  const cudaStream_t on = (cudaStream_t) stream;
  const Arguments &a = s->arguments;
  cudaLaunchConfig_t all = pixels (on);
  ImkStatus status = IMK_CUDA_LAUNCH (error, all, find_range, a, *scale);

  if (status == IMK_OK)
    status = imk_cuda_read (
        s->host_ranges, a.ranges, BLOCKS * sizeof (float2), on, error);
  *range = {INFINITY, -INFINITY};
  for (int i = 0; i < BLOCKS && status == IMK_OK; i++) {
    range->lowest = fminf (range->lowest, s->host_ranges[i].x);
    range->highest = fmaxf (range->highest, s->host_ranges[i].y);
  }
  return status;
}

/* @there: room on the device for the indices and the heights */
static ImkStatus
gather_all (const Arguments &a, uint32_t *there, const uint32_t *at, uint32_t n,
    float *z, cudaStream_t on, ImkError *error)
{
  float *found = (float *) (there + n);
  cudaLaunchConfig_t some =
      grid (dim3 (imk_div_up (n, THREADS)), dim3 (THREADS), on);
  ImkStatus status =
      IMK_CUDA (error, cudaMemcpyAsync (there, at, n * sizeof (*at),
                           cudaMemcpyHostToDevice, on));

  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, some, gather_heights, a, there, n, found);
  if (status == IMK_OK)
    status = imk_cuda_read (z, found, n * sizeof (*z), on, error);
  return status;
}

static ImkStatus
cuda_gather (void *state, const uint32_t *at, uint32_t n, float *z,
    void *stream, ImkError *error)
{
  Cuda *s = (Cuda *) state;
  uint32_t *there = NULL;
  ImkStatus status = IMK_CUDA (
      error, cudaMalloc ((void **) &there, n * (sizeof (*at) + sizeof (*z))));

  if (status == IMK_OK)
    status = gather_all (
        s->arguments, there, at, n, z, (cudaStream_t) stream, error);
  cudaFree (there);
  return status;
}

static ImkStatus
cuda_store (void *state, const ImkNormalintegrateScale *scale,
    ImkNormalintegrateOutputs *outputs, void *stream, ImkError *error)
{
  Cuda *s = (Cuda *) state;
  const cudaStream_t on = (cudaStream_t) stream;
  cudaLaunchConfig_t all = pixels (on);
  ImkStatus status =
      IMK_CUDA_LAUNCH (error, all, store, s->arguments, *scale, *outputs);

  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaStreamSynchronize (on));
  return status;
}

static ImkStatus
set_stream (Cuda *s, cudaStream_t stream, ImkError *error)
{
  ImkStatus status = IMK_CUFFT (error, cufftSetStream (s->forward, stream));

  if (status == IMK_OK)
    status = IMK_CUFFT (error, cufftSetStream (s->backward, stream));
  return status;
}

static ImkStatus
cuda_integrate (void *state, const ImkNormalintegrateParams *params,
    const ImkImage *in, ImkNormalintegrateSummary *summary, void *stream,
    ImkError *error)
{
  Cuda *s = (Cuda *) state;
  const cudaStream_t on = (cudaStream_t) stream;
  cudaLaunchConfig_t all = pixels (on);
  Arguments a = s->arguments;
  ImkStatus status = set_stream (s, on, error);

  a.params = *params;
  a.in = *in;
  if (params->method == IMK_NORMALINTEGRATE_FRANKOT_CHELLAPPA) {
    if (status == IMK_OK)
      status = frankot_chellappa (s, a, on, error);
    if (status == IMK_OK)
      status = count_valid (s, summary, on, error);
    summary->n_iterations = 1;
  } else {
    if (status == IMK_OK)
      status = IMK_CUDA_LAUNCH (error, all, load_normals, a);
    if (status == IMK_OK)
      status = count_valid (s, summary, on, error);
    if (status == IMK_OK && summary->n_valid > 0)
      status = params->method == IMK_NORMALINTEGRATE_BILATERAL
                   ? bilateral (s, a, summary, on, error)
                   : solve (s, a, summary, on, error);
  }
  return status;
}

/* ------------------------------------------------------------------------
 * The object. */

static void
cuda_destroy (void *state)
{
  Cuda *s = (Cuda *) state;
  Arguments &a = s->arguments;
  void *blocks[] = {a.z, a.r, a.p, a.q, a.valid, a.real, a.spectrum, a.along_y,
      a.sums, a.ranges, a.progress, s->tables};

  for (size_t i = 0; i < sizeof (blocks) / sizeof (*blocks); i++)
    cudaFree (blocks[i]);
  if (s->weighted)
    cudaFree (s->weighted->memory);
  delete s->weighted;
  cudaFreeHost (s->host_progress);
  cudaFreeHost (s->host_sums);
  cudaFreeHost (s->host_ranges);
  if (s->has_forward)
    cufftDestroy (s->forward);
  if (s->has_backward)
    cufftDestroy (s->backward);
  delete s;
}

template <typename T>
static ImkStatus
allocate (T **block, size_t n, ImkStatus before, ImkError *error)
{
  return before == IMK_OK
             ? IMK_CUDA (error, cudaMalloc ((void **) block, n * sizeof (T)))
             : before;
}

template <typename T>
static ImkStatus
allocate_host (T **block, size_t n, ImkStatus before, ImkError *error)
{
  return before == IMK_OK ? IMK_CUDA (error, cudaMallocHost ((void **) block,
                                                 n * sizeof (T)))
                          : before;
}

static ImkStatus
allocate_all (Cuda *s, ImkError *error)
{
  Arguments &a = s->arguments;
  size_t n = (size_t) a.plan.width * a.plan.height;
  size_t n_bins = (size_t) (a.plan.width / 2 + 1) * a.plan.height;
  ImkStatus status = allocate (&a.z, n, IMK_OK, error);

  status = allocate (&a.r, n, status, error);
  status = allocate (&a.p, n, status, error);
  status = allocate (&a.q, n, status, error);
  status = allocate (&a.valid, n, status, error);
  status = allocate (&a.real, n, status, error);
  status = allocate (&a.spectrum, n_bins, status, error);
  status = allocate (&a.along_y, n_bins, status, error);
  status = allocate (&a.sums, BLOCKS, status, error);
  status = allocate (&a.ranges, BLOCKS, status, error);
  status = allocate (&a.progress, 1, status, error);
  status = allocate_host (&s->host_progress, 1, status, error);
  status = allocate_host (&s->host_sums, BLOCKS, status, error);
  status = allocate_host (&s->host_ranges, BLOCKS, status, error);
  return status;
}

/* Returns: what follows this axis */
static float *
upload_axis (
    ImkNormalintegrateAxis *axis, float *to, ImkStatus *status, ImkError *error)
{
  struct {
    const float **table;
    size_t n;
  } parts[] = {
      {(const float **) &axis->turn, 2 * (size_t) (axis->n / 2 + 1)},
      {&axis->lambda, axis->n + (size_t) 1},
      {&axis->wave, axis->n},
  };

  for (size_t i = 0; i < 3; i++) {
    if (*status == IMK_OK)
      *status = IMK_CUDA (
          error, cudaMemcpy (to, *parts[i].table, parts[i].n * sizeof (float),
                     cudaMemcpyHostToDevice));
    *parts[i].table = to;
    to += parts[i].n + parts[i].n % 2; /* pairs stay aligned */
  }
  return to;
}

static ImkStatus
upload_tables (Cuda *s, ImkError *error)
{
  ImkNormalintegratePlan *p = &s->arguments.plan;
  size_t n = 3 * ((size_t) p->width + p->height) + 16;
  ImkStatus status = allocate (&s->tables, n, IMK_OK, error);
  float *after = upload_axis (&p->x, s->tables, &status, error);

  upload_axis (&p->y, after, &status, error);
  return status;
}

static ImkStatus
make_plan (
    Cuda *s, cufftType type, cufftHandle *plan, bool *made, ImkError *error)
{
  ImkStatus status =
      IMK_CUFFT (error, cufftPlan2d (plan, (int) s->arguments.plan.height,
                            (int) s->arguments.plan.width, type));

  *made = status == IMK_OK;
  return status;
}

static ImkStatus
cuda_create (const ImkNormalintegratePlan *plan, void **state, ImkError *error)
{
  Cuda *s = new (std::nothrow) Cuda{};
  ImkStatus status;

  if (!s)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the object.");
  s->arguments.plan = *plan;
  status = allocate_all (s, error);
  if (status == IMK_OK)
    status = upload_tables (s, error);
  if (status == IMK_OK)
    status = make_plan (s, CUFFT_R2C, &s->forward, &s->has_forward, error);
  if (status == IMK_OK)
    status = make_plan (s, CUFFT_C2R, &s->backward, &s->has_backward, error);
  if (status == IMK_OK)
    *state = s;
  else
    cuda_destroy (s);
  return status;
}

const ImkNormalintegrateBackend imk_normalintegrate_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = cuda_create,
    .integrate = cuda_integrate,
    .find_range = cuda_find_range,
    .gather = cuda_gather,
    .store = cuda_store,
    .destroy = cuda_destroy,
};
