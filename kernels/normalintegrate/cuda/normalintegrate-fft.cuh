/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The transforms of a map: cuFFT, and what its spectra are for. */
#pragma once

#include "core/cuda/cuda-fft.h"
#include "normalintegrate/cuda/normalintegrate-passes.cuh"

struct Fft {
  cufftHandle forward, backward;
  bool has_forward, has_backward;
};

static ImkStatus
make_plan (const Arguments &a, cufftType type, cufftHandle *plan, bool *made,
    ImkError *error)
{
  ImkStatus status = IMK_CUFFT (
      error, cufftPlan2d (plan, (int) a.plan.height, (int) a.plan.width, type));

  *made = status == IMK_OK;
  return status;
}

static ImkStatus
fft_open (Fft *fft, const Arguments &a, ImkError *error)
{
  ImkStatus status =
      make_plan (a, CUFFT_R2C, &fft->forward, &fft->has_forward, error);

  return status == IMK_OK ? make_plan (a, CUFFT_C2R, &fft->backward,
                                &fft->has_backward, error)
                          : status;
}

static void
fft_close (Fft *fft)
{
  if (fft->has_forward)
    cufftDestroy (fft->forward);
  if (fft->has_backward)
    cufftDestroy (fft->backward);
}

static ImkStatus
fft_set_stream (const Fft &fft, cudaStream_t stream, ImkError *error)
{
  ImkStatus status = IMK_CUFFT (error, cufftSetStream (fft.forward, stream));

  if (status == IMK_OK)
    status = IMK_CUFFT (error, cufftSetStream (fft.backward, stream));
  return status;
}

/* Of a.real. */
static ImkStatus
transform (
    const Fft &fft, const Arguments &a, Complex *spectrum, ImkError *error)
{
  return IMK_CUFFT (
      error, cufftExecR2C (fft.forward, a.real, (cufftComplex *) spectrum));
}

/* Of a.spectrum, into a.real. */
static ImkStatus
transform_back (const Fft &fft, const Arguments &a, ImkError *error)
{
  return IMK_CUFFT (
      error, cufftExecC2R (fft.backward, (cufftComplex *) a.spectrum, a.real));
}

/* real from the residual in real. */
static ImkStatus
solve_whole (
    const Fft &fft, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t rows = bins (a, a.plan.height / 2 + 1, stream);
  ImkStatus status = transform (fft, a, a.spectrum, error);

  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, rows, solve_bins, a);
  if (status == IMK_OK)
    status = transform_back (fft, a, error);
  return status;
}

static ImkStatus
frankot_chellappa (
    const Fft &fft, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t all = pixels (stream);
  cudaLaunchConfig_t rows = bins (a, a.plan.height, stream);
  ImkStatus status = IMK_CUDA_LAUNCH (error, all, load_slopes, a, true);

  if (status == IMK_OK)
    status = transform (fft, a, a.along_y, error);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, all, load_slopes, a, false);
  if (status == IMK_OK)
    status = transform (fft, a, a.spectrum, error);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, rows, combine_bins, a);
  if (status == IMK_OK)
    status = transform_back (fft, a, error);
  if (status == IMK_OK)
    status = IMK_CUDA_LAUNCH (error, all, take_answer, a, true);
  return status;
}
