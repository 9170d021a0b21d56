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
  IMK_TRY (make_plan (a, CUFFT_R2C, &fft->forward, &fft->has_forward, error));
  return make_plan (a, CUFFT_C2R, &fft->backward, &fft->has_backward, error);
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
  IMK_TRY (IMK_CUFFT (error, cufftSetStream (fft.forward, stream)));
  return IMK_CUFFT (error, cufftSetStream (fft.backward, stream));
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

  IMK_TRY (transform (fft, a, a.spectrum, error));
  IMK_TRY (IMK_CUDA_LAUNCH (error, rows, solve_bins, a));
  return transform_back (fft, a, error);
}

static ImkStatus
frankot_chellappa (
    const Fft &fft, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t all = pixels (stream);
  cudaLaunchConfig_t rows = bins (a, a.plan.height, stream);

  IMK_TRY (IMK_CUDA_LAUNCH (error, all, load_slopes, a, true));
  IMK_TRY (transform (fft, a, a.along_y, error));
  IMK_TRY (IMK_CUDA_LAUNCH (error, all, load_slopes, a, false));
  IMK_TRY (transform (fft, a, a.spectrum, error));
  IMK_TRY (IMK_CUDA_LAUNCH (error, rows, combine_bins, a));
  IMK_TRY (transform_back (fft, a, error));
  return IMK_CUDA_LAUNCH (error, all, take_answer, a, true);
}
