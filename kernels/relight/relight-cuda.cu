/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/cuda-check.h"
#include "relight/relight-pixel.h"

enum { THREADS = 256 };

/* What the kernel is given. */
struct Arguments {
  ImkRelightParams params;
  ImkRelightSource normals, albedo;
  ImkImage out;
};

static __global__ void
light (const __grid_constant__ Arguments a)
{
  uint32_t x = blockIdx.x * THREADS + threadIdx.x;
  ImkImage out = a.out;

  if (x < out.width)
    imk_relight_pixel (&a.params, &a.normals, &a.albedo, &out, x, blockIdx.y);
}

static ImkStatus
cuda_process (void *state, const ImkRelightParams *params,
    const ImkRelightSource *normals, const ImkRelightSource *albedo,
    ImkImage *out, void *stream, ImkError *error)
{
  cudaLaunchConfig_t launch = {};
  Arguments a = {*params, *normals, *albedo, *out};

  (void) state;
  launch.gridDim = dim3 (imk_div_up (out->width, THREADS), out->height);
  launch.blockDim = dim3 (THREADS);
  launch.stream = (cudaStream_t) stream;
  return IMK_CUDA_LAUNCH (error, launch, light, a);
}

/* There is nothing to keep. */
static ImkStatus
cuda_create (uint32_t n_threads, void **state, ImkError *error)
{
  (void) n_threads;
  (void) error;
  *state = NULL;
  return IMK_OK;
}

static void
cuda_destroy (void *state)
{
  (void) state;
}

const ImkRelightBackend imk_relight_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .create = cuda_create,
    .process = cuda_process,
    .destroy = cuda_destroy,
};
