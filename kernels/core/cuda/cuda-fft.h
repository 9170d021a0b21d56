/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only: every call of cuFFT goes through IMK_CUFFT. */
#pragma once

#include <cufft.h>

#include "core/cuda/cuda-check.h"

/* IMK_CUDA for a cufftResult. */
#define IMK_CUFFT(error, ...) \
  imk_cufft_check ((error), \
      imk_cuda_should_fail () ? CUFFT_INTERNAL_ERROR : (__VA_ARGS__), \
      #__VA_ARGS__)

static inline ImkStatus
imk_cufft_check (ImkError *error, cufftResult result, const char *call)
{
  if (result == CUFFT_SUCCESS)
    return IMK_OK;
  cudaGetLastError (); /* or the next launch would report this one */
  return imk_error_set (error,
      result == CUFFT_ALLOC_FAILED ? IMK_ERROR_MEMORY : IMK_ERROR_DEVICE,
      "cuFFT says: error %d (in %s).", (int) result, call);
}
