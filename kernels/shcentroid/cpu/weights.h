/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gaussian weights of the cells of a tile. They are computed in rows as long as
 * there are: one vector waits for its exponential, many side by side do not. */
#pragma once

#include "shcentroid/cpu/tile.h"
#include "shcentroid/cpu/vectors.h"

/* imk_shcentroid_weight () of @n distances in @weights, and more up to a whole
 * vector. */
static inline void
weigh_distances (double *weights, uint32_t n, double sigma)
{
  for (uint32_t i = 0; i < n; i += REALS) {
    Reals r = read_reals (weights + i) / sigma;

    write_reals (weights + i, exp_reals (-0.5 * r * r));
  }
}

/* Distances @from, @from + 1, ... , of whole numbers added up as integers. */
INLINE void
count_distances (double from, uint32_t first, uint32_t n, double *distances)
{
  for (uint32_t k = 0; k < n; k++)
    distances[k] = from + (double) (first + k);
}

/* Of @n columns of cell @i, from its column @u on. There is room for a vector
 * beyond them. */
static inline void
weight_columns (
    const ChainTile *t, uint32_t i, uint32_t u, uint32_t n, double *weights)
{
  count_distances (t->windows[i].x - t->centre_x[i], u, n, weights);
  weigh_distances (weights, n, t->f->cpu->params.sigma);
}

/* Of the rows of a group, some beyond the cell, of the first @n_cells cells:
 * IMK_SHCENTROID_GROUP_ROWS of each. */
static inline void
weight_rows (const ChainTile *t, uint32_t n_cells, uint32_t y, bool cached,
    double *weights)
{
  enum { ROWS = IMK_SHCENTROID_GROUP_ROWS };
  const Cpu *cpu = t->f->cpu;

  for (uint32_t i = 0; i < n_cells; i++)
    if (cached)
      memcpy (weights + (size_t) i * ROWS,
          cpu->row_weights + cpu->rows_at[t->first + i] + y,
          ROWS * sizeof (*weights));
    else
      count_distances (t->windows[i].y - t->centre_y[i], y, ROWS,
          weights + (size_t) i * ROWS);
  if (!cached)
    weigh_distances (weights, n_cells * ROWS, cpu->params.sigma);
}
