/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gaussian weights of the cells of a tile. They are computed in rows as long as
 * there are: one vector waits for its exponential, many side by side do not. */
#pragma once

#include "shcentroid/cpu/tile.h"
#include "shcentroid/cpu/vectors.h"

/* imk_shcentroid_weight () of @n vectors of distances. */
INLINE void
weigh_vectors (double *weights, const uint32_t n, double sigma)
{
  const double scale = -0.5 * IMK_SHCENTROID_LOG2_E / (sigma * sigma);
  Reals x[EXP_VECTORS];

  for (uint32_t j = 0; j < n; j++) {
    Reals distance = read_reals (weights + j * REALS);

    x[j] = distance * distance * scale;
  }
  exp2_vectors (x, n);
  for (uint32_t j = 0; j < n; j++)
    write_reals (weights + j * REALS, x[j]);
}

/* The same of @n distances in @weights, and more up to a whole
 * vector. */
static inline void
weigh_distances (double *weights, uint32_t n, double sigma)
{
  uint32_t i = 0;

  for (; i + EXP_VECTORS * REALS <= n; i += EXP_VECTORS * REALS)
    weigh_vectors (weights + i, EXP_VECTORS, sigma);
  for (; i < n; i += REALS)
    weigh_vectors (weights + i, 1, sigma);
}

/* Distances @from, @from + 1, ... , of whole numbers added up as integers. */
INLINE void
count_distances (double from, uint32_t first, uint32_t n, double *distances)
{
  for (uint32_t k = 0; k < n; k++)
    distances[k] = from + (double) (first + k);
}

/* Of the @n columns of a tile of one cell. There is room for a vector beyond
 * them. */
static inline void
weigh_cell_columns (const ChainTile *t, uint32_t n, double *weights)
{
  count_distances (t->windows[0].x - t->centre_x[0], 0, n, weights);
  weigh_distances (weights, n, t->f->cpu->params.sigma);
}

/* Returns: from one row to the next, see weigh_rows () */
INLINE uint32_t
row_weights_stride (uint32_t n_cells)
{
  return n_cells > 1 ? (n_cells + REALS - 1) / REALS * REALS : 1;
}

/* Weights of the rows [@y, @y + @n_rows) of the first @n_cells cells: those of
 * a row side by side. There is room for a vector beyond them. */
static inline void
weigh_rows (const ChainTile *t, uint32_t n_cells, uint32_t y, uint32_t n_rows,
    bool cached, double *weights)
{
  const Cpu *cpu = t->f->cpu;
  uint32_t stride = row_weights_stride (n_cells);
  double from[CHAIN_TILE];

  for (uint32_t i = 0; cached && i < n_cells; i++)
    for (uint32_t k = 0; k < n_rows; k++)
      weights[k * stride + i] =
          cpu->row_weights[cpu->rows_at[t->first + i] + y + k];
  if (cached)
    return;
  for (uint32_t i = 0; i < n_cells; i++)
    from[i] = t->windows[i].y - t->centre_y[i];
  if (n_cells == 1)
    count_distances (from[0], y, n_rows, weights);
  for (uint32_t i = n_cells; i < stride; i++)
    from[i] = 0.0;
  for (uint32_t k = 0; n_cells > 1 && k < n_rows; k++)
    for (uint32_t i = 0; i < stride; i += REALS)
      write_reals (weights + (size_t) k * stride + i,
          read_reals (from + i) + (double) (y + k));
  weigh_distances (weights, n_rows * stride, cpu->params.sigma);
}
