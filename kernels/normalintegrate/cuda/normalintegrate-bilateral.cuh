/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The weights and the multigrid cycle of the method bilateral: the passes of
 * cpu/bilateral.c and cpu/multigrid.c as kernels, and their launches. */
#pragma once

#include <new>

#include "core/cuda/cuda-check.h"
#include "normalintegrate/cuda/normalintegrate-passes.cuh"

struct Weighted {
  ImkNormalintegrateBilateral maps;
  Level levels[IMK_NORMALINTEGRATE_LEVELS];
  uint32_t n_levels;
  float *memory;
};

/* ------------------------------------------------------------------------
 * Weights. */

static __global__ void
copy_normals (const __grid_constant__ Arguments a,
    const __grid_constant__ ImkNormalintegrateBilateral m)
{
  float *nx = (float *) m.nx, *ny = (float *) m.ny, *nz = (float *) m.nz;

  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    nx[at] = a.z[at];
    ny[at] = a.p[at];
    nz[at] = a.q[at];
    a.z[at] = 0;
  });
}

static __global__ void
share_out (const __grid_constant__ Arguments a,
    const __grid_constant__ ImkNormalintegrateBilateral m)
{
  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    imk_normalintegrate_share_pixel (&a.plan, &m, a.params.stiffness, x, y);
  });
}

/* Also the sums of the energy. */
static __global__ void
weigh_pixels (const __grid_constant__ Arguments a,
    const __grid_constant__ ImkNormalintegrateBilateral m)
{
  double sum = 0;

  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    sum += imk_normalintegrate_weigh_pixel (&a.plan, &m, x, y);
  });
  sum = block_sum (sum);
  if (threadIdx.x == 0)
    a.sums[blockIdx.x] = sum;
}

/* ------------------------------------------------------------------------
 * Multigrid. */

/* func (x, y, index), see for_pixels (). */
template <typename Func>
static __device__ void
for_cells (const Level &l, Func func)
{
  for (uint32_t y = blockIdx.x; y < l.height; y += gridDim.x)
    for (uint32_t x = threadIdx.x; x < l.width; x += THREADS)
      func (x, y, (size_t) y * l.width + x);
}

static __global__ void
coarsen (const Level fine, const Level coarse)
{
  for_cells (coarse, [&] (uint32_t x, uint32_t y, size_t at) {
    imk_normalintegrate_coarsen (&fine, &coarse, x, y);
  });
}

static __global__ void
relax_first (const Level l)
{
  for_cells (l, [&] (uint32_t x, uint32_t y, size_t at) {
    if ((x + y) % 2)
      l.z[at] = 0;
    else
      imk_normalintegrate_relax_first (&l, x, y);
  });
}

static __global__ void
relax (const Level l, uint32_t colour)
{
  for_cells (l, [&] (uint32_t x, uint32_t y, size_t at) {
    if ((x + y) % 2 == colour)
      imk_normalintegrate_relax (&l, x, y);
  });
}

static __global__ void
gather (const Level fine, const Level coarse)
{
  float *right = (float *) coarse.right;

  for_cells (coarse, [&] (uint32_t x, uint32_t y, size_t at) {
    right[at] = imk_normalintegrate_gather (&fine, x, y);
  });
}

static __global__ void
spread (const Level fine, const Level coarse)
{
  for_cells (fine, [&] (uint32_t x, uint32_t y, size_t at) {
    fine.z[at] += coarse.z[(size_t) (y / 2) * coarse.width + x / 2];
  });
}

/* ------------------------------------------------------------------------
 * Launches. */

static cudaLaunchConfig_t
cells (const Level &l, cudaStream_t stream)
{
  return grid (
      dim3 (l.height < BLOCKS ? l.height : BLOCKS), dim3 (THREADS), stream);
}

static ImkStatus
allocate_weighted (const Arguments &a, Weighted **weighted, ImkError *error)
{
  Weighted *w = new (std::nothrow) Weighted{};
  size_t n;
  ImkStatus status;

  if (!w)
    return IMK_NO_MEMORY (error, "for the object.");
  w->maps.z = a.z;
  w->maps.residual = a.r;
  w->maps.shares_x = a.p;
  w->maps.shares_y = a.q;
  imk_normalintegrate_place_weighted (&a.plan, NULL, &w->maps, w->levels, &n);
  status =
      IMK_CUDA (error, cudaMalloc ((void **) &w->memory, n * sizeof (float)));
  if (status != IMK_OK) {
    delete w;
    return status;
  }
  w->n_levels = imk_normalintegrate_place_weighted (
      &a.plan, w->memory, &w->maps, w->levels, &n);
  *weighted = w;
  return IMK_OK;
}

/* @colour: that comes first */
static ImkStatus
sweep (const Level &l, uint32_t colour, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t all = cells (l, stream);

  IMK_TRY (IMK_CUDA_LAUNCH (error, all, relax, l, colour));
  return IMK_CUDA_LAUNCH (error, all, relax, l, 1 - colour);
}

static ImkStatus
begin_level (const Level &l, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t all = cells (l, stream);

  IMK_TRY (IMK_CUDA_LAUNCH (error, all, relax_first, l));
  return IMK_CUDA_LAUNCH (error, all, relax, l, 1u);
}

static ImkStatus
solve_coarsest (const Level &l, cudaStream_t stream, ImkError *error)
{
  const int n = IMK_NORMALINTEGRATE_COARSEST_SWEEPS;

  IMK_TRY (begin_level (l, stream, error));
  for (int i = 1; i < 2 * n; i++)
    IMK_TRY (sweep (l, i < n ? 0 : 1, stream, error));
  return IMK_OK;
}

static ImkStatus
cycle (const Weighted &w, cudaStream_t stream, ImkError *error)
{
  for (uint32_t i = 0; i + 1 < w.n_levels; i++) {
    cudaLaunchConfig_t coarse = cells (w.levels[i + 1], stream);

    IMK_TRY (begin_level (w.levels[i], stream, error));
    IMK_TRY (
        IMK_CUDA_LAUNCH (error, coarse, gather, w.levels[i], w.levels[i + 1]));
  }
  IMK_TRY (solve_coarsest (w.levels[w.n_levels - 1], stream, error));
  for (uint32_t i = w.n_levels - 1; i-- > 0;) {
    cudaLaunchConfig_t all = cells (w.levels[i], stream);

    IMK_TRY (
        IMK_CUDA_LAUNCH (error, all, spread, w.levels[i], w.levels[i + 1]));
    IMK_TRY (sweep (w.levels[i], 1, stream, error));
  }
  return IMK_OK;
}

/* The sums are the energy of a.z with the weights that go with it. */
static ImkStatus
weigh (
    const Weighted &w, const Arguments &a, cudaStream_t stream, ImkError *error)
{
  cudaLaunchConfig_t all = pixels (stream);

  IMK_TRY (IMK_CUDA_LAUNCH (error, all, share_out, a, w.maps));
  IMK_TRY (IMK_CUDA_LAUNCH (error, all, weigh_pixels, a, w.maps));
  for (uint32_t i = 1; i < w.n_levels; i++) {
    cudaLaunchConfig_t coarse = cells (w.levels[i], stream);

    IMK_TRY (
        IMK_CUDA_LAUNCH (error, coarse, coarsen, w.levels[i - 1], w.levels[i]));
  }
  return IMK_OK;
}
