/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only: every call of cuBLAS goes through IMK_CUBLAS. */
#pragma once

#include <cublas_v2.h>

#include "core/cuda/cuda-check.h"

/* IMK_CUDA for a cublasStatus_t. */
#define IMK_CUBLAS(error, ...) \
  imk_cublas_check ((error), \
      imk_cuda_should_fail () ? CUBLAS_STATUS_INTERNAL_ERROR : (__VA_ARGS__), \
      #__VA_ARGS__)

static inline ImkStatus
imk_cublas_check (ImkError *error, cublasStatus_t result, const char *call)
{
  if (result == CUBLAS_STATUS_SUCCESS)
    return IMK_OK;
  cudaGetLastError (); /* or the next launch would report this one */
  return imk_error_set (error,
      result == CUBLAS_STATUS_ALLOC_FAILED ? IMK_ERROR_MEMORY
                                           : IMK_ERROR_DEVICE,
      "cuBLAS says: %s (in %s).", cublasGetStatusString (result), call);
}
