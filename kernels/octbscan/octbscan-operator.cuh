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

#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <new>

#include "octbscan/octbscan-input.cuh"

enum {
  SPLIT_ROWS = 8, /* a warp each */
  PARTS = 3,     /* N that a row of the product has */
  ALIGNMENT = 8, /* samples: 16 bytes of FP16 */
  WORKSPACE = 32 * 1024 * 1024,
  EXPONENT = 13, /* what is largest is scaled to 2^13 .. 2^14 */
};

struct Operator {
  uint32_t padded;  /* N, aligned */
  __half *matrices; /* [C][n_depths][2][PARTS][padded] */
  float factor;     /* that makes them what they stand for */
  __half *spectra;  /* [C][jobs][camera_rows][PARTS][padded] */
  float2 *products; /* of Finish, while they are written */
  float *scales;    /* likewise */
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
four_at (const Sample *in, const float *mean, uint32_t x, uint32_t width)
{
  struct alignas (4 * sizeof (Sample)) Four {
    Sample v[4];
  };

  if (x + 4 <= width && (uintptr_t) (in + x) % sizeof (Four) == 0) {
    const Four f = *(const Four *) (in + x);

    return make_float4 ((float) f.v[0] - (mean ? mean[x] : 0),
        (float) f.v[1] - (mean ? mean[x + 1] : 0),
        (float) f.v[2] - (mean ? mean[x + 2] : 0),
        (float) f.v[3] - (mean ? mean[x + 3] : 0));
  }
  return make_float4 (sample_at (in, mean, x, width),
      sample_at (in, mean, x + 1, width), sample_at (in, mean, x + 2, width),
      sample_at (in, mean, x + 3, width));
}

static __device__ void
store_halves (__half *to, const __half halves[4])
{
  uint2 four;

  memcpy (&four, halves, sizeof (four));
  *(uint2 *) to = four;
}

/* A warp does a spectrum, the second time from the cache. */
template <typename Sample>
static __global__ void
split_spectra (const __grid_constant__ Arguments a, const Operator o)
{
  uint32_t row = blockIdx.x * SPLIT_ROWS + threadIdx.x / 32, j = blockIdx.y;
  uint32_t lane = threadIdx.x % 32;
  const Job &job = a.jobs[j];
  const Place place = place_of (a, j, row < a.height ? row : 0);
  const Sample *in = (const Sample *) (job.in + (size_t) row * job.in_stride);
  const float *mean = mean_of (a, j, place.camera, row);
  __half *to = o.spectra + place.row * PARTS * o.padded;
  float largest = 0, scale;
  int exponent = EXPONENT;

  if (row >= a.height || !job.in)
    return;
  for (uint32_t x = 4 * lane; x < a.width; x += 128) {
    const float4 v = four_at (in, mean, x, a.width);

    largest = fmaxf (largest, fmaxf (fabsf (v.x), fabsf (v.y)));
    largest = fmaxf (largest, fmaxf (fabsf (v.z), fabsf (v.w)));
  }
  largest = warp_maximum (largest);
  if (largest > 0 && largest < 1e38f)
    exponent = ilogbf (largest);
  exponent = max (min (exponent, 100), -100);
  scale = ldexpf (1, EXPONENT - exponent);
  for (uint32_t x = 4 * lane; x < o.padded; x += 128) {
    const float4 f = four_at (in, mean, x, a.width);
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
    o.scales[place.row] = ldexpf (1, exponent - EXPONENT);
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
multiply (const Operator &o, const Arguments &a, uint32_t n_jobs, cudaStream_t stream, ImkError *error)
{
  const int k = (int) (PARTS * o.padded), m = (int) (2 * a.n_depths);
  const int n = (int) (n_jobs * a.camera_rows);
  const float alpha = o.factor, beta = 0;
  ImkStatus status =
      check_blas (cublasSetStream (o.blas, stream), "cublasSetStream", error);

  /* a new stream takes the workspace away */
  if (status == IMK_OK)
    status = check_blas (cublasSetWorkspace (o.blas, o.workspace, WORKSPACE),
        "cublasSetWorkspace", error);
  if (status != IMK_OK)
    return status;
  return check_blas (
      cublasGemmStridedBatchedEx (o.blas, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k,
          &alpha, o.matrices, CUDA_R_16F, k, (long long) k * m, o.spectra,
          CUDA_R_16F, k, (long long) k * n, &beta, (void *) o.products,
          CUDA_R_32F, m, (long long) m * n, (int) a.n_cameras,
          CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
      "cublasGemmStridedBatchedEx", error);
}

/* ------------------------------------------------------------------------
 * The strategy. */

template <typename Sample>
static ImkStatus
launch_split (const Operator &o, const Arguments &a, cudaStream_t stream,
    ImkError *error)
{
  cudaLaunchConfig_t rows =
      grid (dim3 (imk_div_up (a.height, SPLIT_ROWS), a.n_jobs),
          dim3 (32 * SPLIT_ROWS), stream);

  return IMK_CUDA_LAUNCH (error, rows, split_spectra<Sample>, a, o);
}

static ImkStatus
operator_run (const Operator &o, ImkType type, const Arguments &a,
    cudaStream_t stream, ImkError *error)
{
  ImkStatus status;

  switch (type) {
  case IMK_TYPE_U8:
    status = launch_split<uint8_t> (o, a, stream, error);
    break;
  case IMK_TYPE_U16:
    status = launch_split<uint16_t> (o, a, stream, error);
    break;
  case IMK_TYPE_I16:
    status = launch_split<int16_t> (o, a, stream, error);
    break;
  default:
    status = launch_split<float> (o, a, stream, error);
    break;
  }
  return status == IMK_OK ? multiply (o, a, a.n_jobs, stream, error) : status;
}

static void
operator_cut (Operator *o, const Arguments &a, uint32_t max_jobs, Cutter *c)
{
  size_t rows = (size_t) a.n_cameras * max_jobs * a.camera_rows;
  size_t row = (size_t) PARTS * o->padded;

  c->cut (&o->matrices, (size_t) a.n_cameras * 2 * a.n_depths * row);
  c->cut (&o->spectra, rows * row);
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
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory for operators of %u depths.", plan->n_depths);
  for (size_t i = 0; i < n_rows * width; i++)
    largest = fmaxf (largest, fabsf (plan->operators[i]));
  scale = largest > 0 ? ldexpf (1, EXPONENT - ilogbf (largest)) : 1;
  for (size_t r = 0; r < n_rows; r++)
    for (uint32_t x = 0; x < width; x++) {
      float v = plan->operators[r * width + x] * scale;
      __half high = __float2half_rn (v);

      /* against (x2, x1, x1) */
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

/* What cuBLAS loads at its first product is loaded before the first B-scan. */
static ImkStatus
operator_open (Operator *o, const Arguments &a, const ImkOctbscanPlan *plan,
    ImkError *error)
{
  ImkStatus status =
      check_blas (cublasCreate (&o->blas), "cublasCreate", error);


  if (status == IMK_OK)
    status = operator_upload (o, plan, error);
  if (status == IMK_OK)
    status = multiply (*o, a, 1, nullptr, error);
  if (status == IMK_OK)
    status = IMK_CUDA (error, cudaStreamSynchronize (nullptr));
  return status;
}

static void
operator_close (Operator *o)
{
  if (o->blas)
    cublasDestroy (o->blas);
}
