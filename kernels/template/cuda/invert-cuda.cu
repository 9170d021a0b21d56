/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <cstdlib>

#include "core/cuda/cuda-check.h"
#include "template/invert-backend.h"
#include "template/invert-sample.h"

enum { THREADS = 256 };

template <typename Sample>
static __global__ void
invert (const __grid_constant__ ImkImage in,
    const __grid_constant__ ImkImage out, float amount)
{
  const uint32_t x = blockIdx.x * THREADS + threadIdx.x, y = blockIdx.y;
  const Sample *from =
      (const Sample *) ((const uint8_t *) in.data + y * in.stride);
  Sample *to = (Sample *) ((uint8_t *) out.data + y * out.stride);

  if (x < in.width * in.channels)
    to[x] = (Sample) imk_invert_sample (from[x], (Sample) -1, amount);
}

static ImkStatus
cuda_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  const float amount = (float) ((const ImkInvertConfig *) state)->amount;
  cudaLaunchConfig_t launch = {};

  launch.gridDim =
      dim3 (imk_div_up (in->width * in->channels, THREADS), in->height);
  launch.blockDim = dim3 (THREADS);
  launch.stream = (cudaStream_t) stream;
  return in->type == IMK_TYPE_U8 ? IMK_CUDA_LAUNCH (error, launch,
                                       invert<uint8_t>, *in, *out, amount)
                                 : IMK_CUDA_LAUNCH (error, launch,
                                       invert<uint16_t>, *in, *out, amount);
}

static ImkStatus
cuda_update (void *state, const void *params, ImkError *error)
{
  *(ImkInvertConfig *) state = *(const ImkInvertConfig *) params;
  return IMK_OK;
}

/* A launch gets everything as arguments: the state is the configuration. */
static ImkStatus
cuda_create (const void *plan, const void *params, uint32_t n_threads,
    void **state, ImkError *error)
{
  void *made = malloc (sizeof (ImkInvertConfig));

  if (!made)
    return IMK_NO_MEMORY (error, "for the object.");
  *state = made;
  return cuda_update (made, params, error);
}

const ImkFilterBackend imk_invert_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .params_size = sizeof (ImkInvertConfig),
    .n_inputs = 1,
    .n_outputs = 1,
    .create = cuda_create,
    .update = cuda_update,
    .process = cuda_process,
    .destroy = free,
};
