/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/cuda/cuda-check.h"
#include "core/failures.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

extern "C" const ImkFailures imk_failures_cuda;

/* The test hook: calls made, and which of them to fail. It is the one mutable
 * global; it is all zero outside tests. */
static std::atomic<unsigned long> n_calls, fail_at;
static std::atomic<bool> fail_forever;

unsigned long
imk_cuda_inject_failure (unsigned long nth, bool forever)
{
  fail_at = 0;
  fail_forever = forever;
  unsigned long made = n_calls.exchange (0);
  fail_at = nth;
  return made;
}

const ImkFailures imk_failures_cuda = {
    .abi = IMK_BACKEND_ABI,
    .name = "cuda",
    .inject = imk_cuda_inject_failure,
};

bool
imk_cuda_should_fail (void)
{
  unsigned long call = ++n_calls;
  unsigned long at = fail_at;

  return at && (fail_forever ? call >= at : call == at);
}

static ImkStatus
status_of (cudaError_t result)
{
  switch (result) {
  case cudaErrorMemoryAllocation:
    return IMK_ERROR_MEMORY;
  case cudaErrorNoDevice:
  case cudaErrorInsufficientDriver:
  case cudaErrorInvalidDevice:
  case cudaErrorNoKernelImageForDevice:
  case cudaErrorUnsupportedPtxVersion:
    return IMK_ERROR_UNAVAILABLE;
  default:
    return IMK_ERROR_DEVICE;
  }
}

ImkStatus
imk_cuda_check (ImkError *error, cudaError_t result, const char *call)
{
  if (result == cudaSuccess)
    return IMK_OK;
  cudaGetLastError (); /* or the next launch would report this one */
  if (result == cudaErrorInsufficientDriver)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "There is no NVIDIA driver, or one older than CUDA %d.%d. Install or "
        "update it, or use backend=cpu.",
        CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  if (result == cudaErrorNoDevice)
    return imk_error_set (error, IMK_ERROR_UNAVAILABLE,
        "No CUDA device is visible to this process. Check nvidia-smi and "
        "CUDA_VISIBLE_DEVICES, or use backend=cpu.");
  return imk_error_set (error, status_of (result), "CUDA says: %s (%s in %s).",
      cudaGetErrorString (result), cudaGetErrorName (result), call);
}

ImkStatus
imk_cuda_launched (
    ImkStatus status, cudaStream_t stream, const char *call, ImkError *error)
{
  static const char *sync = secure_getenv ("IMK_CUDA_SYNC");

  if (status == IMK_OK && sync && strcmp (sync, "1") == 0)
    status = imk_cuda_check (error, cudaStreamSynchronize (stream), call);
  return status;
}

ImkStatus
imk_cuda_read (void *to, const void *from, size_t size, cudaStream_t stream,
    ImkError *error)
{
  IMK_TRY (IMK_CUDA (
      error, cudaMemcpyAsync (to, from, size, cudaMemcpyDeviceToHost, stream)));
  return IMK_CUDA (error, cudaStreamSynchronize (stream));
}
