/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only. */
#pragma once

#include <cuda_runtime.h>

/* @shared: bytes of dynamic shared memory of a block
 * Returns: the configuration of a launch, see IMK_CUDA_LAUNCH */
static inline cudaLaunchConfig_t
grid (dim3 blocks, dim3 threads, cudaStream_t stream, size_t shared = 0)
{
  cudaLaunchConfig_t launch = {};

  launch.gridDim = blocks;
  launch.blockDim = threads;
  launch.dynamicSmemBytes = shared;
  launch.stream = stream;
  return launch;
}
