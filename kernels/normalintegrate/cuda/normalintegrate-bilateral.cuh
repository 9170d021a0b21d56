/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The passes of cpu/bilateral.c and cpu/multigrid.c as kernels. Included by
 * normalintegrate-cuda.cu. */
#pragma once

#include "normalintegrate/normalintegrate-bilateral.h"
#include "normalintegrate/normalintegrate-multigrid.h"

typedef ImkNormalintegrateLevel Level;

struct Weighted {
  ImkNormalintegrateBilateral maps;
  Level levels[IMK_NORMALINTEGRATE_LEVELS];
  uint32_t n_levels;
  float *memory; /* NULL before the first map of the method bilateral */
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
 * Conjugate gradients. The answer of the preconditioner is the z of level 0. */

static __global__ void
dot_weighted (const __grid_constant__ Arguments a, const float *answer)
{
  double sum = 0;

  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    sum += (double) a.r[at] * answer[at];
  });
  sum = block_sum (sum);
  if (threadIdx.x == 0)
    a.sums[blockIdx.x] = sum;
}

static __global__ void
turn_weighted (const __grid_constant__ Arguments a, const float *answer)
{
  float beta = a.progress->beta;

  if (a.progress->done)
    return;
  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    /* before the first direction, p holds shares */
    a.p[at] = beta != 0 ? answer[at] + beta * a.p[at] : answer[at];
  });
}

static __global__ void
apply_weighted (const __grid_constant__ Arguments a, const Level l)
{
  double sum = 0;

  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    ImkNormalintegrateSums s = imk_normalintegrate_neighbours (&l, a.p, x, y);

    a.q[at] = s.weights * a.p[at] - s.weighted;
    sum += (double) a.p[at] * a.q[at];
  });
  sum = block_sum (sum);
  if (threadIdx.x == 0)
    a.sums[blockIdx.x] = sum;
}

static __global__ void
step_weighted (const __grid_constant__ Arguments a)
{
  float alpha = a.progress->alpha;

  if (a.progress->done)
    return;
  for_pixels (a, [&] (uint32_t x, uint32_t y, size_t at) {
    a.z[at] += alpha * a.p[at];
    a.r[at] -= alpha * a.q[at];
  });
}
