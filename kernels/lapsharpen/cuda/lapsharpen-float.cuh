/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only: frames of float32, a sample a thread. The frame is copied
 * to a plane that has its border, and lapsharpen-float.h does the rest. */
#pragma once

#include "core/cuda/cuda-check.h"
#include "lapsharpen/cuda/lapsharpen-stage.cuh"
#include "lapsharpen/lapsharpen-float.h"

/* What an object for float32 has on the device. */
struct Floats {
  ImkLapsharpenPlan plan;
  float *arena;
  size_t n_arena;
  ImkLapsharpenMoments *rows;      /* of each row */
  ImkLapsharpenMoments *host_rows; /* the same, page-locked */
};

/* Samples of a plane: along x those of a row, along y rows. */
static cudaLaunchConfig_t
get_plane_launch (const ImkLapsharpenPlane &p, cudaStream_t stream)
{
  return get_pixel_launch ((uint32_t) imk_lapsharpen_row_floats (&p),
      (uint32_t) (p.y1 - p.y0), stream);
}

static __global__ void
pad_floats (const __grid_constant__ ImkLapsharpenRule rule, const Pixels in,
    const ImkLapsharpenPlane p)
{
  const int n = (int) imk_lapsharpen_row_floats (&p);
  const int i = blockIdx.x * WARP + threadIdx.x;
  const int top = p.y0 + blockIdx.y * PIXEL_ROWS + threadIdx.y;
  const int end = min (p.y0 + (int) (blockIdx.y + 1) * PIXEL_ROWS, p.y1);

  for (int y = top; y < end && i < n; y += PIXEL_WARPS)
    imk_lapsharpen_pixel (&p, p.x0, y)[i] = imk_lapsharpen_padded (
        &rule, in.data, in.stride, p.x0 + i / p.channels, y, i % p.channels);
}

static __global__ void
pass_floats (const __grid_constant__ ImkLapsharpenPass pass)
{
  const ImkLapsharpenPlane &p = pass.out;
  const int n = (int) imk_lapsharpen_row_floats (&p);
  const int i = blockIdx.x * WARP + threadIdx.x;
  const int top = p.y0 + blockIdx.y * PIXEL_ROWS + threadIdx.y;
  const int end = min (p.y0 + (int) (blockIdx.y + 1) * PIXEL_ROWS, p.y1);

  for (int y = top; y < end && i < n; y += PIXEL_WARPS)
    imk_lapsharpen_pixel (&p, p.x0, y)[i] =
        imk_lapsharpen_passed (&pass, p.x0 + i / p.channels, y, i % p.channels);
}

/* A warp a row: its lanes are those of the header, added in their order. */
static __global__ void
measure_floats (const __grid_constant__ ImkLapsharpenRule rule,
    const ImkLapsharpenPlane p, bool noise, ImkLapsharpenMoments *rows)
{
  const int y = blockIdx.x, c = p.channels, lane = threadIdx.x;
  const bool used = !noise || (y > 0 && y + 1 < (int) rule.height);
  const int n = used ? ((int) rule.width - (noise ? 2 : 0)) * c : 0;
  const uint32_t channels = noise ? rule.noisy : rule.measured;
  const float *v = imk_lapsharpen_pixel (&p, noise, y);
  const ptrdiff_t s = imk_lapsharpen_row_floats (&p);
  double sum = 0, squares = 0;
  unsigned long long count = 0;
  ImkLapsharpenMoments m = {};

  for (int i = lane; i < n; i += WARP) {
    const float value = noise ? imk_lapsharpen_float_noise (v + i, c, s)
                              : imk_lapsharpen_float_laplacian (
                                    v + i, c, s, rule.neighbours == 8);

    if (value - value != 0 || !(channels >> i % c & 1))
      continue;
    sum += (double) value;
    squares += (double) value * (double) value;
    count++;
  }
  for (int i = 0; i < WARP; i++) {
    m.sum += __shfl_sync (~0u, sum, i);
    m.squares += __shfl_sync (~0u, squares, i);
    m.n += __shfl_sync (~0u, count, i);
  }
  if (lane == 0)
    rows[y] = m;
}

/* @smooth: a plane of the size of the frame, for rules that smooth */
static __global__ void
sharpen_floats (const __grid_constant__ ImkLapsharpenRule rule,
    const ImkLapsharpenPlane p, const ImkLapsharpenPlane smooth,
    const uint8_t *mask, const Pixels out)
{
  const int c = p.channels, n = (int) rule.width * c;
  const int i = blockIdx.x * WARP + threadIdx.x, x = i / c;
  const int top = blockIdx.y * PIXEL_ROWS + threadIdx.y;
  const int end = min ((int) (blockIdx.y + 1) * PIXEL_ROWS, (int) rule.height);
  const ptrdiff_t s = imk_lapsharpen_row_floats (&p);

  for (int y = top; y < end && i < n; y += PIXEL_WARPS) {
    const float *v = imk_lapsharpen_pixel (&p, 0, y) + i;
    const float smoothed =
        rule.smooth.step ? imk_lapsharpen_pixel (&smooth, 0, y)[i] : 0;
    const bool used =
        imk_lapsharpen_in_areas (&rule, x, y) && (rule.filtered >> i % c & 1);
    const uint32_t weight = !used  ? 0
                            : mask ? mask[(size_t) y * rule.width + x]
                                   : 255;

    ((float *) (out.data + (size_t) y * out.stride))[i] =
        imk_lapsharpen_float_mixed (v[0],
            imk_lapsharpen_float_sample (&rule, v, c, s, smoothed), weight);
  }
}

/* --- the object ----------------------------------------------------------- */

static void
floats_clear (Floats *self)
{
  cudaFree (self->arena); /* waits for kernels that use it */
  cudaFree (self->rows);
  cudaFreeHost (self->host_rows);
}

static ImkStatus
floats_init (Floats *self, uint32_t height, ImkError *error)
{
  const size_t size = height * sizeof (*self->rows);
  ImkStatus status = IMK_CUDA (error, cudaMalloc ((void **) &self->rows, size));

  return status != IMK_OK
             ? status
             : IMK_CUDA (error, cudaHostAlloc ((void **) &self->host_rows, size,
                                    cudaHostAllocPortable));
}

static ImkStatus
floats_update (Floats *self, const ImkLapsharpenRule *rule, ImkError *error)
{
  const size_t n = imk_lapsharpen_plan (rule, nullptr).n_floats;

  if (n > self->n_arena) {
    float *arena = nullptr;
    ImkStatus status =
        IMK_CUDA (error, cudaMalloc ((void **) &arena, n * sizeof (float)));

    if (status != IMK_OK)
      return status;
    cudaFree (self->arena); /* waits for kernels that use it */
    self->arena = arena;
    self->n_arena = n;
  }
  self->plan = imk_lapsharpen_plan (rule, self->arena);
  return IMK_OK;
}

/* Starts to measure a frame that is padded, and to copy the sums of its rows.
 */
static ImkStatus
floats_measure (Floats *self, const ImkLapsharpenRule *rule, bool noise,
    cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t launch = grid (dim3 (rule->height), dim3 (WARP), stream);
  ImkStatus status = IMK_CUDA_LAUNCH (error, launch, measure_floats, *rule,
      self->plan.frame, noise, self->rows);

  return status != IMK_OK
             ? status
             : IMK_CUDA (error, cudaMemcpyAsync (self->host_rows, self->rows,
                                    rule->height * sizeof (*self->rows),
                                    cudaMemcpyDeviceToHost, stream));
}

static ImkStatus
floats_launch (Floats *self, const ImkLapsharpenRule *given,
    const uint8_t *mask, const ImkImage *in, const ImkImage *out,
    cudaStream_t stream, ImkError *error)
{
  ImkLapsharpenRule rule = *given;
  const ImkLapsharpenPlan *plan = &self->plan;
  cudaLaunchConfig_t launch = get_plane_launch (plan->frame, stream);
  ImkStatus status = IMK_CUDA_LAUNCH (
      error, launch, pad_floats, rule, pixels_of (in), plan->frame);

  for (uint32_t i = 0; i < plan->n_passes && status == IMK_OK; i++) {
    launch = get_plane_launch (plan->passes[i].out, stream);
    status = IMK_CUDA_LAUNCH (error, launch, pass_floats, plan->passes[i]);
  }
  if (status == IMK_OK && rule.per_sigma > 0 && rule.noisy) {
    status = floats_measure (self, &rule, true, stream, error);
    if (status == IMK_OK)
      status = IMK_CUDA (error, cudaStreamSynchronize (stream));
    if (status == IMK_OK)
      rule.threshold = imk_lapsharpen_float_threshold (&rule, self->host_rows);
  }
  launch = get_pixel_launch (rule.width * rule.channels, rule.height, stream);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, launch, sharpen_floats, rule, plan->frame,
        plan->smooth, mask, pixels_of (out));
  return status == IMK_OK && rule.measured
             ? floats_measure (self, &rule, false, stream, error)
             : status;
}
