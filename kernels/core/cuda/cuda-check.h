/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only: every CUDA call and launch goes through IMK_CUDA. */
#pragma once

#include <cuda_runtime.h>

#include "imk/status.h"

/* Evaluates a cudaError_t expression once and turns it into an ImkStatus whose
 * sentence quotes the call. A launch is cudaLaunchKernelEx, which returns its
 * own error, not what an earlier call left behind. */
#define IMK_CUDA(error, ...) \
  (imk_cuda_should_fail () \
          ? imk_cuda_check ((error), cudaErrorUnknown, #__VA_ARGS__) \
          : imk_cuda_check ((error), (__VA_ARGS__), #__VA_ARGS__))

/* The launch of IMK_CUDA, which waits for the kernel when IMK_CUDA_SYNC=1 is in
 * the environment: the failing kernel is then the one that is named. */
#define IMK_CUDA_LAUNCH(error, config, ...) \
  imk_cuda_launched ( \
      IMK_CUDA (error, cudaLaunchKernelEx (&(config), __VA_ARGS__)), \
      (config).stream, #__VA_ARGS__, (error))

extern "C" {
ImkStatus imk_cuda_check (
    ImkError *error, cudaError_t result, const char *call);
ImkStatus imk_cuda_launched (
    ImkStatus status, cudaStream_t stream, const char *call, ImkError *error);
/* @size bytes of the device to @to, after the work of @stream. Waits. */
ImkStatus imk_cuda_read (void *to, const void *from, size_t size,
    cudaStream_t stream, ImkError *error);
bool imk_cuda_should_fail (void);
unsigned long imk_cuda_inject_failure (unsigned long nth, bool forever);
}
