/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bilaterally weighted integration (Cao et al. 2022), pixel by pixel. Compiled
 * by both backends. Where there is no normal, its z is 0. */
#pragma once

#include "normalintegrate/normalintegrate-multigrid.h"

#define IMK_NORMALINTEGRATE_LEAST 1e-6f /* share */

/* A round ends when the root of r' M r has fallen to @tolerance of the first,
 * or after @steps of conjugate gradients. */
typedef struct ImkNormalintegrateRound {
  float tolerance;
  uint32_t steps;
} ImkNormalintegrateRound;

/* Rough rounds are faster, as the next has other weights. The least tolerance
 * asks for rounds that are as exact as float32 makes them. */
static inline ImkNormalintegrateRound
imk_normalintegrate_round (const ImkNormalintegrateParams *p)
{
  bool exact = p->tolerance <= IMK_NORMALINTEGRATE_LEAST_TOLERANCE;

  return exact ? (ImkNormalintegrateRound){1e-5f, 200}
               : (ImkNormalintegrateRound){0.3f, 20};
}

/* @most: r' M r at the start of the round that had the most; what is below
 * 1e-10 of it is rounding, which leads steps astray
 *
 * Returns: r' M r at which a round ends that starts with @first */
static inline double
imk_normalintegrate_enough (
    const ImkNormalintegrateRound *round, double first, double most)
{
  return fmax ((double) round->tolerance * round->tolerance * first,
      1e-10 * fmax (most, first));
}

/* The maps of a round, [height][width]. */
typedef struct ImkNormalintegrateBilateral {
  const float *z;               /* heights so far, in pixels */
  const float *nx, *ny;         /* y down */
  const float *nz;              /* of views, see imk_normalintegrate_load () */
  float *shares_x, *shares_y;   /* of the equation to the right and below */
  float *weights_x, *weights_y; /* of the edge to the right and below */
  float *residual;              /* of the normal equations */
} ImkNormalintegrateBilateral;

/* Places the maps and levels of @plan that are of this method alone.
 * @memory: (nullable): only sets sizes
 * @m: z, the shares and the residual are the caller's
 * @n: (out): floats of memory
 *
 * Returns: the number of levels */
static inline uint32_t
imk_normalintegrate_place_weighted (const ImkNormalintegratePlan *plan,
    float *memory, ImkNormalintegrateBilateral *m,
    ImkNormalintegrateLevel *levels, size_t *n)
{
  size_t size = (size_t) plan->width * plan->height;
  uint32_t n_levels;

  levels[0].width = plan->width;
  levels[0].height = plan->height;
  if (memory) {
    m->nx = memory;
    m->ny = memory + size;
    m->nz = memory + 2 * size;
    m->weights_x = levels[0].weights_x = memory + 3 * size;
    m->weights_y = levels[0].weights_y = memory + 4 * size;
    levels[0].z = memory + 5 * size;
    levels[0].right = m->residual;
  }
  n_levels = imk_normalintegrate_place_levels (
      levels, memory ? memory + 6 * size : NULL, n);
  *n += 6 * size;
  return n_levels;
}

/* Two neighbours a and b: n_z (z_b - z_a) + n = 0 by the normal of each. */
typedef struct ImkNormalintegrateEdge {
  float weight; /* of (z_b - z_a)^2 */
  float pull;   /* half the derivative of the energy by z_b */
  float energy;
} ImkNormalintegrateEdge;

/* Equation 17: the smaller of the steps to both neighbours counts. The sigmoid
 * of k times the square before less the square after, which are those of the
 * differences times n_z. Returns: the weight of the equation after @at; the one
 * before has the rest of 1 */
IMK_NORMALINTEGRATE_FUNCTION float
imk_normalintegrate_share (const float *z, const float *nz, size_t at,
    size_t step, bool has_before, bool has_after, float stiffness)
{
  float before = 0, after = 0;

  if (has_before && nz[at - step] > 0)
    before = nz[at] * (z[at] - z[at - step]);
  if (has_after && nz[at + step] > 0)
    after = nz[at] * (z[at + step] - z[at]);
  /* a little remains, so that what is cut off all around stays where it is */
  return IMK_NORMALINTEGRATE_LEAST +
         (1 - 2 * IMK_NORMALINTEGRATE_LEAST) /
             (1 + expf (stiffness * (after * after - before * before)));
}

/* @b: the neighbour after @a; @n: the normals along that axis, @scale: pixels
 * of that axis in the width of one */
IMK_NORMALINTEGRATE_FUNCTION ImkNormalintegrateEdge
imk_normalintegrate_edge (const ImkNormalintegrateBilateral *m, const float *n,
    const float *shares, size_t a, size_t b, float scale)
{
  ImkNormalintegrateEdge e = {0, 0, 0};
  float rise = scale * (m->z[b] - m->z[a]), of_a, of_b, share_a, share_b;

  if (!(m->nz[a] > 0 && m->nz[b] > 0))
    return e;
  of_a = m->nz[a] * rise + n[a];
  of_b = m->nz[b] * rise + n[b];
  share_a = shares[a];
  share_b = 1 - shares[b];
  e.weight = scale * scale *
             (share_a * m->nz[a] * m->nz[a] + share_b * m->nz[b] * m->nz[b]);
  e.pull = scale * (share_a * m->nz[a] * of_a + share_b * m->nz[b] * of_b);
  e.energy = share_a * of_a * of_a + share_b * of_b * of_b;
  return e;
}

IMK_NORMALINTEGRATE_FUNCTION void
imk_normalintegrate_share_pixel (const ImkNormalintegratePlan *plan,
    const ImkNormalintegrateBilateral *m, float stiffness, uint32_t x,
    uint32_t y)
{
  size_t at = (size_t) y * plan->width + x;

  if (!(m->nz[at] > 0))
    return;
  m->shares_x[at] = imk_normalintegrate_share (
      m->z, m->nz, at, 1, x > 0, x + 1 < plan->width, stiffness);
  m->shares_y[at] = imk_normalintegrate_share (m->z, m->nz, at, plan->width,
      y > 0, y + 1 < plan->height, stiffness * plan->aspect * plan->aspect);
}

/* Weights to the right and below, and the residual. Returns: the energy of
 * these two edges */
IMK_NORMALINTEGRATE_FUNCTION float
imk_normalintegrate_weigh_pixel (const ImkNormalintegratePlan *plan,
    const ImkNormalintegrateBilateral *m, uint32_t x, uint32_t y)
{
  size_t at = (size_t) y * plan->width + x, width = plan->width;
  ImkNormalintegrateEdge right = {0, 0, 0}, below = {0, 0, 0};
  float residual = 0;

  if (x + 1 < plan->width)
    right = imk_normalintegrate_edge (m, m->nx, m->shares_x, at, at + 1, 1);
  if (y + 1 < plan->height)
    below = imk_normalintegrate_edge (
        m, m->ny, m->shares_y, at, at + width, plan->aspect);
  residual = right.pull + below.pull;
  if (x > 0)
    residual -=
        imk_normalintegrate_edge (m, m->nx, m->shares_x, at - 1, at, 1).pull;
  if (y > 0)
    residual -= imk_normalintegrate_edge (
        m, m->ny, m->shares_y, at - width, at, plan->aspect)
                    .pull;
  m->weights_x[at] = right.weight;
  m->weights_y[at] = below.weight;
  m->residual[at] = residual;
  return right.energy + below.energy;
}
