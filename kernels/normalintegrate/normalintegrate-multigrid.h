/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A multigrid cycle over the weights of edges, cell by cell. Compiled by both
 * backends. A coarse cell is 2 x 2 cells, and its edges have the mean weight of
 * the two edges that they cross. */
#pragma once

#include "normalintegrate/normalintegrate-pixel.h"

enum {
  IMK_NORMALINTEGRATE_LEVELS = 16, /* 65535 pixels and 1 cell between */
  /* Sweeps of the coarsest level, there and back. */
  IMK_NORMALINTEGRATE_COARSEST_SWEEPS = 8,
};

/* A z = right, where A z = sum of weight (z - neighbour). */
typedef struct ImkNormalintegrateLevel {
  uint32_t width, height;
  float *weights_x, *weights_y; /* of the edge to the right and below, 0 at the
                                 * borders */
  float *z, *right;
} ImkNormalintegrateLevel;

/* Sets width, height, and the memory of the levels after 0, of which the caller
 * has set width and height.
 * @memory: (nullable): only sets sizes
 * @n: (out): floats of memory
 *
 * Returns: the number of levels */
static inline uint32_t
imk_normalintegrate_place_levels (
    ImkNormalintegrateLevel *levels, float *memory, size_t *n)
{
  uint32_t i = 0;

  for (*n = 0; levels[i].width > 8 || levels[i].height > 8; i++) {
    ImkNormalintegrateLevel *l = &levels[i + 1];
    size_t size;

    l->width = (levels[i].width + 1) / 2;
    l->height = (levels[i].height + 1) / 2;
    size = (size_t) l->width * l->height;
    if (memory) {
      l->weights_x = memory + *n;
      l->weights_y = l->weights_x + size;
      l->z = l->weights_y + size;
      l->right = l->z + size;
    }
    *n += 4 * size;
  }
  return i + 1;
}

/* Sums over the neighbours of a cell. */
typedef struct ImkNormalintegrateSums {
  float weights, weighted;
} ImkNormalintegrateSums;

IMK_NORMALINTEGRATE_FUNCTION ImkNormalintegrateSums
imk_normalintegrate_neighbours (
    const ImkNormalintegrateLevel *l, const float *z, uint32_t x, uint32_t y)
{
  size_t at = (size_t) y * l->width + x;
  ImkNormalintegrateSums s = {0, 0};

  if (x > 0) {
    s.weights += l->weights_x[at - 1];
    s.weighted += l->weights_x[at - 1] * z[at - 1];
  }
  if (x + 1 < l->width) {
    s.weights += l->weights_x[at];
    s.weighted += l->weights_x[at] * z[at + 1];
  }
  if (y > 0) {
    s.weights += l->weights_y[at - l->width];
    s.weighted += l->weights_y[at - l->width] * z[at - l->width];
  }
  if (y + 1 < l->height) {
    s.weights += l->weights_y[at];
    s.weighted += l->weights_y[at] * z[at + l->width];
  }
  return s;
}

/* Gauss and Seidel. */
IMK_NORMALINTEGRATE_FUNCTION void
imk_normalintegrate_relax (
    const ImkNormalintegrateLevel *l, uint32_t x, uint32_t y)
{
  size_t at = (size_t) y * l->width + x;
  ImkNormalintegrateSums s = imk_normalintegrate_neighbours (l, l->z, x, y);

  l->z[at] = s.weights > 0 ? (l->right[at] + s.weighted) / s.weights : 0;
}

/* The same where all z are 0. */
IMK_NORMALINTEGRATE_FUNCTION void
imk_normalintegrate_relax_first (
    const ImkNormalintegrateLevel *l, uint32_t x, uint32_t y)
{
  size_t at = (size_t) y * l->width + x;
  float weights = 0;

  weights += x > 0 ? l->weights_x[at - 1] : 0;
  weights += x + 1 < l->width ? l->weights_x[at] : 0;
  weights += y > 0 ? l->weights_y[at - l->width] : 0;
  weights += y + 1 < l->height ? l->weights_y[at] : 0;
  l->z[at] = weights > 0 ? l->right[at] / weights : 0;
}

IMK_NORMALINTEGRATE_FUNCTION float
imk_normalintegrate_left (
    const ImkNormalintegrateLevel *l, uint32_t x, uint32_t y)
{
  size_t at = (size_t) y * l->width + x;
  ImkNormalintegrateSums s = imk_normalintegrate_neighbours (l, l->z, x, y);

  return l->right[at] - (s.weights * l->z[at] - s.weighted);
}

/* Returns: what is left in the cells of a coarse cell. Those with even x + y
 * alone have any, as the others were relaxed last */
IMK_NORMALINTEGRATE_FUNCTION float
imk_normalintegrate_gather (
    const ImkNormalintegrateLevel *fine, uint32_t x, uint32_t y)
{
  float sum = imk_normalintegrate_left (fine, 2 * x, 2 * y);

  if (2 * x + 1 < fine->width && 2 * y + 1 < fine->height)
    sum += imk_normalintegrate_left (fine, 2 * x + 1, 2 * y + 1);
  return sum;
}

/* The weights of a coarse cell from those of its cells. */
IMK_NORMALINTEGRATE_FUNCTION void
imk_normalintegrate_coarsen (const ImkNormalintegrateLevel *fine,
    const ImkNormalintegrateLevel *coarse, uint32_t x, uint32_t y)
{
  uint32_t fx = 2 * x + 1, fy = 2 * y + 1;
  bool has_x = fx < fine->width, has_y = fy < fine->height;
  size_t at = (size_t) 2 * y * fine->width + 2 * x, below = at + fine->width;
  size_t to = (size_t) y * coarse->width + x;
  float along_x = has_x ? fine->weights_x[at + 1] : 0;
  float along_y = has_y ? fine->weights_y[below] : 0;

  if (has_x && has_y) {
    along_x += fine->weights_x[below + 1];
    along_y += fine->weights_y[below + 1];
  }
  coarse->weights_x[to] = along_x / 2;
  coarse->weights_y[to] = along_y / 2;
}
