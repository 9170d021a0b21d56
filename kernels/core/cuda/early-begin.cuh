/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A kernel that begins while the one before it on the stream ends, where the
 * device can (programmatic dependent launch). */
#pragma once

#include <cuda_runtime.h>

/* What the kernels before have written is there afterwards. */
static __device__ __forceinline__ void
wait_for_last_kernel (void)
{
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize ();
#endif
}

/* Of the blocks that have called it or ended, the last. */
static __device__ __forceinline__ void
let_next_kernel_begin (void)
{
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion ();
#endif
}

/* For the launch of a kernel that calls wait_for_last_kernel (). */
static inline cudaLaunchAttribute
early_begin (void)
{
  cudaLaunchAttribute early = {};

  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  return early;
}
