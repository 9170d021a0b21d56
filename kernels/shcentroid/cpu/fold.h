/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the sums of columns to those of cells. The lanes of a cell are added up
 * by halves, in as many cells at a time as a vector has lanes: each addition
 * that arithmetic/float-centroid.h defines is one lane of a vector. */
#pragma once

#include "shcentroid/cpu/columns.h"

static const double lane_numbers[IMK_SHCENTROID_LANES] = {0, 1, 2, 3, 4, 5, 6,
    7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
    27, 28, 29, 30, 31};

/* Of the blocks of 2 @step lanes of @a, then of @b: the first halves plus the
 * second. */
INLINE Reals
fold_pair (Reals a, Reals b, const uint32_t step)
{
#if IMK_VECTOR_SIZE == 64
  if (step == 4)
    return SHUFFLE (Masks, a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
           SHUFFLE (Masks, a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  if (step == 2)
    return SHUFFLE (Masks, a, b, 0, 1, 4, 5, 8, 9, 12, 13) +
           SHUFFLE (Masks, a, b, 2, 3, 6, 7, 10, 11, 14, 15);
  return SHUFFLE (Masks, a, b, 0, 2, 4, 6, 8, 10, 12, 14) +
         SHUFFLE (Masks, a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#elif IMK_VECTOR_SIZE == 32
  if (step == 2)
    return SHUFFLE (Masks, a, b, 0, 1, 4, 5) +
           SHUFFLE (Masks, a, b, 2, 3, 6, 7);
  return SHUFFLE (Masks, a, b, 0, 2, 4, 6) + SHUFFLE (Masks, a, b, 1, 3, 5, 7);
#else
  return SHUFFLE (Masks, a, b, 0, 2) + SHUFFLE (Masks, a, b, 1, 3);
#endif
}

/* Cells side by side: as many as a vector has lanes. */
typedef struct FoldCells {
  uint32_t at[REALS]; /* the first column */
  double n[REALS];    /* columns; 0 beyond the last cell */
} FoldCells;

/* The columns of cell @i, those beyond it as 0, by halves to one vector. They
 * fill @n_vectors; to add the 0 of those beyond would change nothing. */
INLINE Reals
fold_columns (const double *sums, const FoldCells *cells, uint32_t i,
    const uint32_t n_vectors)
{
  Reals v[IMK_SHCENTROID_LANES / REALS];

  for (uint32_t j = 0; j < n_vectors; j++) {
    Masks inside = read_reals (lane_numbers + j * REALS) < cells->n[i];

    v[j] = read_reals (sums + cells->at[i] + j * REALS);
    v[j] = (Reals) ((Masks) v[j] & inside);
  }
  for (uint32_t step = IMK_SHCENTROID_LANES / REALS / 2; step; step /= 2)
    for (uint32_t j = 0; j < step && j + step < n_vectors; j++)
      v[j] += v[j + step];
  return v[0];
}

/* Of each vector of @v, which become rubbish, the sum by halves. */
INLINE Reals
fold_vectors (Reals v[REALS])
{
  for (uint32_t step = REALS / 2; step; step /= 2)
    for (uint32_t j = 0; j < step; j++)
      v[j] = fold_pair (v[2 * j], v[2 * j + 1], step);
  return v[0];
}

/* One sum of these cells. */
INLINE Reals
fold_cells (
    const double *sums, const FoldCells *cells, const uint32_t n_vectors)
{
  Reals v[REALS];

  for (uint32_t j = 0; j < REALS; j++)
    v[j] = fold_columns (sums, cells, j, n_vectors);
  return fold_vectors (v);
}

INLINE void
fold_sums (ChainTile *t, uint32_t i, ChainSums sums, const FoldCells *cells,
    const bool all, const uint32_t n_vectors)
{
  const uint32_t n_sums = all ? N_CHAIN_SUMS : N_CHAIN_XY_SUMS;

  for (uint32_t k = 0; k < n_sums; k++) {
    Reals sum =
        read_reals (&t->sums[k][i]) + fold_cells (sums[k], cells, n_vectors);

    memcpy (&t->sums[k][i], &sum, sizeof (sum));
  }
}

/* The cells [@first, @end), of which the columns begin at @left. */
INLINE void
fold_tile (ChainTile *t, uint32_t first, uint32_t end, ChainSums sums,
    uint32_t left, const bool all, const uint32_t n_vectors)
{
  for (uint32_t i = first; i < end; i += REALS) {
    FoldCells cells;

    for (uint32_t j = 0; j < REALS; j++) {
      cells.at[j] = i + j < end ? t->windows[i + j].x - left : 0;
      cells.n[j] = i + j < end ? t->windows[i + j].width : 0;
    }
    fold_sums (t, i, sums, &cells, all, n_vectors);
  }
}

/* The same, by the number of vectors that @width columns take. */
INLINE void
add_cells (ChainTile *t, uint32_t first, uint32_t end, ChainSums sums,
    uint32_t left, uint32_t width, const bool all)
{
  if (width <= REALS)
    fold_tile (t, first, end, sums, left, all, 1);
  else if (width <= 2 * REALS)
    fold_tile (t, first, end, sums, left, all, 2);
  else if (width <= 3 * REALS)
    fold_tile (t, first, end, sums, left, all, 3);
  else if (width <= 4 * REALS)
    fold_tile (t, first, end, sums, left, all, 4);
  else if (width <= 8 * REALS)
    fold_tile (t, first, end, sums, left, all, 8);
  else
    fold_tile (t, first, end, sums, left, all, 16);
}

/* Of a cell with more columns than lanes, of which @n are here. */
INLINE void
gather_lanes (const ChainColumns *c, const uint32_t n_sums, uint32_t first,
    uint32_t n, uint32_t u, ChainSums lanes)
{
  for (uint32_t k = 0; k < n_sums; k++)
    for (uint32_t i = 0; i < n; i++)
      lanes[k][(u + i) % IMK_SHCENTROID_LANES] += c->sums[k][first + i];
}

/* Returns: the largest of @n and @least */
INLINE double
largest (const float *from, uint32_t n, double least)
{
  Reals v = all_reals (least);
  double numbers[REALS];

  for (uint32_t i = 0; i < n; i += REALS) {
    Masks real = read_reals (lane_numbers) < (double) (n - i);
    Reals more = widen (from + i);

    v = larger (v, (Reals) (((Masks) more & real) | ((Masks) v & ~real)));
  }
  memcpy (numbers, &v, sizeof (numbers));
  for (uint32_t step = REALS / 2; step; step /= 2)
    for (uint32_t i = 0; i < step; i++)
      numbers[i] =
          numbers[i + step] > numbers[i] ? numbers[i + step] : numbers[i];
  return numbers[0];
}

INLINE void
add_maxima (ChainTile *t, const ChainColumns *c, uint32_t i, uint32_t first,
    uint32_t n, bool calibrated)
{
  t->max[i] = (float) largest (c->max + first, n, t->max[i]);
  if (calibrated)
    t->max_sample[i] =
        (float) largest (c->max_sample + first, n, t->max_sample[i]);
}

/* From the columns [@x, @x + @n) of a tile to its cells, in one band; all of
 * them but when the tile is one wide cell, whose @lanes are filled piece by
 * piece. */
INLINE void
sum_band (ChainTile *t, ChainColumns *c, uint32_t x, uint32_t n, bool last,
    bool calibrated, ChainSums lanes, const bool all)
{
  const uint32_t n_sums = all ? N_CHAIN_SUMS : N_CHAIN_XY_SUMS;
  uint32_t widest = 0;

  for (uint32_t i = 0, column = 0; i < t->n; i++) {
    uint32_t width = t->windows[i].width, some = t->n == 1 ? n : width;

    if (all)
      add_maxima (t, c, i, column, some, calibrated);
    widest = width > widest ? width : widest;
    column += some;
  }
  if (widest <= IMK_SHCENTROID_LANES) {
    add_cells (t, 0, t->n, c->sums, t->windows[0].x, widest, all);
    return;
  }
  for (uint32_t i = 0, column = 0; i < t->n; i++) {
    uint32_t some = t->n == 1 ? n : t->windows[i].width;

    for (uint32_t k = 0; x == 0 && k < n_sums; k++)
      memset (lanes[k], 0, IMK_SHCENTROID_LANES * sizeof (double));
    gather_lanes (c, n_sums, column, some, x, lanes);
    if (last)
      add_cells (
          t, i, i + 1, lanes, t->windows[i].x, IMK_SHCENTROID_LANES, all);
    column += some;
  }
}
