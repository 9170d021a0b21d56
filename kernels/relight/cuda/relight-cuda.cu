/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <cstdlib>

#include "core/cuda/cuda-check.h"
#include "relight/relight-pixel.h"

enum { THREADS = 256 };

/* What the kernel is given. */
struct Arguments {
  ImkRelightParams params;
  ImkRelightSource normals, albedo;
  ImkImage out;
};

static __device__ uint8_t
level_of (float v, float power)
{
  if (v >= 1)
    return 255;
  return (uint8_t) (255 * (power != 1 ? powf (v, power) : v) + 0.5f);
}

static __global__ void
light (const __grid_constant__ Arguments a)
{
  uint32_t x = blockIdx.x * THREADS + threadIdx.x, y = blockIdx.y;
  uint8_t *to = (uint8_t *) a.out.data + y * a.out.stride + 3 * (size_t) x;
  float v[3];

  if (x >= a.out.width)
    return;
  if (imk_relight_values (&a.params, &a.normals, &a.albedo, x, y, v)) {
    for (int i = 0; i < 3; i++)
      to[i] = level_of (v[i], a.params.power);
  } else {
    for (int i = 0; i < 3; i++)
      to[i] = 0;
  }
}

static ImkStatus
cuda_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  const ImkRelightParams *p = (const ImkRelightParams *) state;
  cudaLaunchConfig_t launch = {};
  Arguments a = {*p, imk_relight_source (&in[0], p->normal_colours),
      imk_relight_source (&in[1], p->albedo_colours), *out};

  launch.gridDim = dim3 (imk_div_up (out->width, THREADS), out->height);
  launch.blockDim = dim3 (THREADS);
  launch.stream = (cudaStream_t) stream;
  return IMK_CUDA_LAUNCH (error, launch, light, a);
}

static ImkStatus
cuda_update (void *state, const void *params, ImkError *error)
{
  *(ImkRelightParams *) state = *(const ImkRelightParams *) params;
  return IMK_OK;
}

/* A launch gets everything as arguments: the state is the params. */
static ImkStatus
cuda_create (const void *plan, const void *params, uint32_t n_threads,
    void **state, ImkError *error)
{
  void *made = malloc (sizeof (ImkRelightParams));

  if (!made)
    return IMK_NO_MEMORY (error, "for the object.");
  *state = made;
  return cuda_update (made, params, error);
}

const ImkFilterBackend imk_relight_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .params_size = sizeof (ImkRelightParams),
    .n_inputs = 2,
    .n_outputs = 1,
    .create = cuda_create,
    .update = cuda_update,
    .process = cuda_process,
    .destroy = free,
};
