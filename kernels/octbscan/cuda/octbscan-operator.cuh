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
 */
#pragma once

#include <cuda_fp16.h>
#include <new>

#include "core/cuda/cuda-blas.h"
#include "octbscan/cuda/octbscan-input.cuh"

enum {
  SPLIT_ROWS = 8, /* a warp each */
  PARTS = 3,      /* length of a row of the product, in N */
  ALIGNMENT = 8,  /* samples: 16 bytes of FP16 */
  WORKSPACE = 32 * 1024 * 1024,
  EXPONENT = 13, /* the largest sample is scaled to 2^13 .. 2^14 */
};

struct Operator {
  uint32_t padded;  /* N, aligned */
  __half *matrices; /* [C][n_depths][2][PARTS][padded] */
  float factor;     /* scale of the matrices */
  __half *spectra;  /* [C][jobs][camera_rows][PARTS][padded] */
  void *workspace;
  cublasHandle_t blas;
};

/* ------------------------------------------------------------------------
 * Spectra, each scaled by a power of 2 so that FP16 holds it, and split. */

/* Returns: the largest of the warp, in all its threads */
static __device__ float
warp_maximum (float value)
{
  for (int d = 16; d > 0; d /= 2)
    value = fmaxf (value, __shfl_xor_sync (0xffffffff, value, d));
  return value;
}

/* Four samples less their mean, 0 behind the end; one load where the rows of
 * the image allow it. */
template <typename Sample>
static __device__ float4
four_at (const Sample *in, const float2 *mean, uint32_t x, uint32_t width)
{
  struct alignas (4 * sizeof (Sample)) Four {
    Sample v[4];
  };
  float v[4];

  if (x + 4 <= width && (uintptr_t) (in + x) % sizeof (Four) == 0) {
    const Four f = *(const Four *) (in + x);

    for (uint32_t i = 0; i < 4; i++)
      v[i] = less_mean ((float) f.v[i], mean, x + i);
  } else {
    for (uint32_t i = 0; i < 4; i++)
      v[i] = sample_at (in, mean, x + i, width);
  }
  return make_float4 (v[0], v[1], v[2], v[3]);
}

static __device__ void
store_halves (__half *to, const __half halves[4])
{
  uint2 four;

  memcpy (&four, halves, sizeof (four));
  *(uint2 *) to = four;
}

/* Where the largest of a row is scaled to, for all its samples to be halves. */
static __device__ int
exponent_of (float largest)
{
  int exponent = EXPONENT;

  if (largest > 0 && largest < 1e38f)
    exponent = ilogbf (largest);
  return max (min (exponent, 100), -100);
}

/* One row of the spectra, by a warp. @at: gives four samples */
template <typename At>
static __device__ void
split_row (const Operator &o, float *scales, size_t row, const At &at)
{
  __half *to = o.spectra + row * PARTS * o.padded;
  uint32_t lane = threadIdx.x % 32;
  float largest = 0, scale;
  int exponent;

  for (uint32_t x = 4 * lane; x < o.padded; x += 128) {
    const float4 v = at (x);

    largest = fmaxf (largest, fmaxf (fabsf (v.x), fabsf (v.y)));
    largest = fmaxf (largest, fmaxf (fabsf (v.z), fabsf (v.w)));
  }
  largest = warp_maximum (largest);
  exponent = exponent_of (largest);
  scale = ldexpf (1, EXPONENT - exponent);
  for (uint32_t x = 4 * lane; x < o.padded; x += 128) {
    const float4 f = at (x);
    const float v[4] = {f.x * scale, f.y * scale, f.z * scale, f.w * scale};
    __half high[4], low[4];

    for (uint32_t i = 0; i < 4; i++) {
      high[i] = __float2half_rn (v[i]);
      low[i] = __float2half_rn (v[i] - __half2float (high[i]));
    }
    store_halves (to + x, low);
    store_halves (to + x + o.padded, high);
    store_halves (to + x + 2 * o.padded, high);
  }
  if (lane == 0)
    scales[row] = ldexpf (1, exponent - EXPONENT);
}

/* A warp does a spectrum, the second time from the cache. */
template <typename Sample>
static __global__ void
split_spectra (const __grid_constant__ Arguments a, const Operator o)
{
  uint32_t row = blockIdx.x * SPLIT_ROWS + threadIdx.x / 32, j = blockIdx.y;
  const Job &job = a.jobs[j];

  if (!job.in.data || row >= a.config.height)
    return;
  const Place place = place_of (a, j, row);
  const Sample *in = job.in.row<Sample> (row);
  const float2 *mean = mean_of (a, j, place.camera, row);
  const bool is_black = is_bad (a, j, row);
  const auto at = [=] (uint32_t x) {
    return is_black ? make_float4 (0, 0, 0, 0)
                    : four_at (in, mean, x, a.config.width);
  };

  split_row (o, a.z.scales, place.row, at);
  if (is_black && threadIdx.x % 32 == 0)
    a.z.scales[place.row] = 0;
}

/* ------------------------------------------------------------------------
 * cuBLAS. */

static ImkStatus
multiply (const Operator &o, const Arguments &a, uint32_t n_jobs,
    cudaStream_t stream, ImkError *error)
{
  const int row = (int) (PARTS * o.padded), m = (int) (2 * a.n_depths);
  const int n = (int) (n_jobs * a.z.camera_rows);
  const float alpha = o.factor, beta = 0;

  IMK_TRY (IMK_CUBLAS (error, cublasSetStream (o.blas, stream)));
  /* cublasSetStream resets the workspace. */
  IMK_TRY (
      IMK_CUBLAS (error, cublasSetWorkspace (o.blas, o.workspace, WORKSPACE)));
  return IMK_CUBLAS (error,
      cublasGemmStridedBatchedEx (o.blas, CUBLAS_OP_T, CUBLAS_OP_N, m, n, row,
          &alpha, o.matrices, CUDA_R_16F, row, (long long) row * m, o.spectra,
          CUDA_R_16F, row, (long long) row * n, &beta, (void *) a.z.products,
          CUDA_R_32F, m, (long long) m * n, (int) a.config.n_cameras,
          CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

/* ------------------------------------------------------------------------
 * The strategy. */

static ImkStatus
operator_run (
    const Operator &o, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t rows =
      grid (dim3 (imk_div_up (a.config.height, SPLIT_ROWS), a.n_jobs),
          dim3 (32 * SPLIT_ROWS), stream);
  const auto kernel =
      instance ([] (auto type) { return split_spectra<SampleOf<type>>; },
          sample_type (a));

  IMK_TRY (IMK_CUDA_LAUNCH (error, rows, kernel, a, o));
  return multiply (o, a, a.n_jobs, stream, error);
}

static void
operator_cut (Operator *o, const Arguments &a, Cutter *c)
{
  size_t row = (size_t) PARTS * o->padded;

  c->cut (&o->matrices, (size_t) a.config.n_cameras * 2 * a.n_depths * row);
  c->cut (&o->spectra, n_rows (a) * row);
  c->cut ((uint8_t **) &o->workspace, WORKSPACE);
}

/* Rows of (b1, b2, b1), scaled together by a power of 2. */
static ImkStatus
operator_upload (Operator *o, const ImkOctbscanPlan *plan, ImkError *error)
{
  uint32_t width = plan->config->width;
  size_t n_rows = (size_t) plan->config->n_cameras * 2 * plan->n_depths;
  size_t row = PARTS * o->padded;
  __half *halves = new (std::nothrow) __half[n_rows * row]();
  float largest = 0, scale;
  ImkStatus status;

  if (!halves)
    return IMK_NO_MEMORY (error, "for operators of %u depths.", plan->n_depths);
  for (size_t i = 0; i < n_rows * width; i++)
    largest = fmaxf (largest, fabsf (plan->operators[i]));
  scale = largest > 0 ? ldexpf (1, EXPONENT - ilogbf (largest)) : 1;
  for (size_t r = 0; r < n_rows; r++)
    for (uint32_t x = 0; x < width; x++) {
      float v = plan->operators[r * width + x] * scale;
      __half high = __float2half_rn (v);

      /* Multiplied by (x2, x1, x1). */
      halves[r * row + x] = halves[r * row + x + 2 * o->padded] = high;
      halves[r * row + x + o->padded] =
          __float2half_rn (v - __half2float (high));
    }
  o->factor = 1 / scale;
  status = IMK_CUDA (
      error, cudaMemcpy (o->matrices, halves, n_rows * row * sizeof (__half),
                 cudaMemcpyHostToDevice));
  delete[] halves;
  return status;
}

/* cuBLAS has products for different sizes, and loads each when it is first
 * used: better before the first B-scan. The more jobs, the less one more
 * changes what it chooses. */
static ImkStatus
warm_up (const Operator &o, const Arguments &a, ImkError *error)
{
  uint32_t max_jobs = a.config.max_jobs;

  for (uint32_t n = 1; n <= max_jobs; n += n < 24 ? 1 : 4)
    IMK_TRY (multiply (o, a, n, nullptr, error));
  return IMK_CUDA (error, cudaStreamSynchronize (nullptr));
}

static ImkStatus
operator_open (Operator *o, const Arguments &a, const ImkOctbscanPlan *plan,
    ImkError *error)
{
  IMK_TRY (IMK_CUBLAS (error, cublasCreate (&o->blas)));
  IMK_TRY (operator_upload (o, plan, error));
  return warm_up (*o, a, error);
}

static void
operator_close (Operator *o)
{
  if (o->blas)
    cublasDestroy (o->blas);
}
