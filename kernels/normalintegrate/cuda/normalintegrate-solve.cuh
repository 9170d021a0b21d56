/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conjugate gradients, and the rounds of the method bilateral. The CPU looks at
 * their numbers on the device every few iterations. */
#pragma once

#include "core/cuda/cuda-check.h"
#include "normalintegrate/cuda/normalintegrate-bilateral.cuh"
#include "normalintegrate/cuda/normalintegrate-fft.cuh"

struct Cuda {
  Arguments arguments; /* but for those of one call */
  Weighted *weighted;  /* NULL before the first map of the method bilateral */
  float *tables;
  Fft fft;
  Progress *host_progress; /* page-locked */
  double *host_sums;
  float2 *host_ranges;
};

static ImkStatus
look (Cuda *s, cudaStream_t stream, ImkError *error)
{
  return imk_cuda_read (s->host_progress, s->arguments.progress,
      sizeof (Progress), stream, error);
}

/* Waits. @sum: (out): of all blocks */
static ImkStatus
read_sum (Cuda *s, double *sum, cudaStream_t stream, ImkError *error)
{
  IMK_TRY (imk_cuda_read (s->host_sums, s->arguments.sums,
      BLOCKS * sizeof (double), stream, error));
  *sum = 0;
  for (int i = 0; i < BLOCKS; i++)
    *sum += s->host_sums[i];
  return IMK_OK;
}

/* The answer, and the sums of its product with the residual. */
static ImkStatus
precondition_and_dot (
    Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t all = pixels (stream);

  IMK_TRY (a.level.z ? cycle (*s->weighted, stream, error)
                     : solve_whole (s->fft, a, stream, error));
  return IMK_CUDA_LAUNCH (error, all, dot, a);
}

/* The same before the first iteration. Waits. */
static ImkStatus
start (Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t one = grid (dim3 (1), dim3 (THREADS), stream);

  IMK_TRY (precondition_and_dot (s, a, stream, error));
  IMK_TRY (IMK_CUDA_LAUNCH (error, one, start_progress, a));
  return look (s, stream, error);
}

static ImkStatus
iterate (Cuda *s, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t one = grid (dim3 (1), dim3 (THREADS), stream);
  cudaLaunchConfig_t all = pixels (stream);

  IMK_TRY (IMK_CUDA_LAUNCH (error, all, turn, a));
  IMK_TRY (IMK_CUDA_LAUNCH (error, all, apply, a));
  IMK_TRY (IMK_CUDA_LAUNCH (error, one, choose_step, a));
  IMK_TRY (IMK_CUDA_LAUNCH (error, all, step, a));
  IMK_TRY (precondition_and_dot (s, a, stream, error));
  return IMK_CUDA_LAUNCH (error, one, judge_progress, a);
}

/* Iterates until it is done. @look_every: iterations */
static ImkStatus
descend (Cuda *s, const Arguments &a, int look_every, cudaStream_t stream,
    ImkError *error)
{
  while (!s->host_progress->done) {
    for (int i = 0; i < look_every; i++)
      IMK_TRY (iterate (s, a, stream, error));
    IMK_TRY (look (s, stream, error));
  }
  return IMK_OK;
}

static ImkStatus
solve (Cuda *s, const Arguments &a, ImkNormalintegrateSummary *summary,
    cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t all = pixels (stream);
  bool whole = summary->n_valid == summary->n_pixels;

  IMK_TRY (IMK_CUDA_LAUNCH (error, all, begin, a));
  IMK_TRY (IMK_CUDA (error,
      cudaMemsetAsync (a.z, 0, summary->n_pixels * sizeof (float), stream)));
  IMK_TRY (start (s, a, stream, error));
  if (whole && !s->host_progress->done) {
    summary->n_iterations = 1;
    return IMK_CUDA_LAUNCH (error, all, take_answer, a, false);
  }
  IMK_TRY (descend (s, a, LOOK_EVERY, stream, error));
  summary->n_iterations = s->host_progress->n_iterations;
  summary->residual = s->host_progress->residual;
  return IMK_OK;
}

static ImkStatus
count_valid (Cuda *s, ImkNormalintegrateSummary *summary, cudaStream_t stream,
    ImkError *error)
{
  double n;

  IMK_TRY (read_sum (s, &n, stream, error));
  summary->n_valid = (uint64_t) n;
  return IMK_OK;
}

/* ------------------------------------------------------------------------
 * The method bilateral, see cpu/bilateral.c. */

/* @most: (inout): see imk_normalintegrate_enough ()
 * @moved: (out): whether there was anything to do */
static ImkStatus
descend_round (Cuda *s, Arguments a, double *most, bool *moved,
    cudaStream_t stream, ImkError *error)
{
  ImkNormalintegrateRound round = imk_normalintegrate_round (&a.params);
  double first, enough;

  IMK_TRY (start (s, a, stream, error));
  first = s->host_progress->first;
  enough = imk_normalintegrate_enough (&round, first, *most);
  *most = fmax (*most, first);
  *moved = first > enough;
  a.params.max_iterations = round.steps;
  a.params.tolerance = *moved ? (float) sqrt (enough / first) : 1;
  /* steps are few, and cycles expensive */
  return *moved ? descend (s, a, 1, stream, error) : IMK_OK;
}

/* Waits. @energy: (out): of a.z with the weights that go with it */
static ImkStatus
measure_energy (Cuda *s, const Arguments &a, double *energy,
    cudaStream_t stream, ImkError *error)
{
  IMK_TRY (weigh (*s->weighted, a, stream, error));
  return read_sum (s, energy, stream, error);
}

static ImkStatus
bilateral (Cuda *s, Arguments a, ImkNormalintegrateSummary *summary,
    cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t all = pixels (stream);
  double energy = 0, most = 0;
  bool moved = true;

  if (!s->weighted)
    IMK_TRY (allocate_weighted (s->arguments, &s->weighted, error));
  a.level = s->weighted->levels[0];
  IMK_TRY (IMK_CUDA_LAUNCH (error, all, copy_normals, a, s->weighted->maps));
  IMK_TRY (measure_energy (s, a, &energy, stream, error));
  while (summary->n_iterations < a.params.max_iterations) {
    double before = energy;

    IMK_TRY (descend_round (s, a, &most, &moved, stream, error));
    if (!moved)
      break;
    IMK_TRY (measure_energy (s, a, &energy, stream, error));
    /* the energy of the flat start says nothing */
    if (summary->n_iterations++ == 0)
      continue;
    summary->residual = before > 0 ? fabs (energy - before) / before : 0;
    if (summary->residual <= a.params.tolerance)
      break;
  }
  return IMK_OK;
}
