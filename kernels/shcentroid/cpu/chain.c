/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The chain (arithmetic/float-centroid.h): pieces of rows across all cells of a
 * tile, whatever the width of a cell. Strips (strips.h) take them from samples
 * to columns, fold.h from columns to cells. Compiled for each instruction set.
 */
#include "shcentroid/cpu/fold.h"
#include "shcentroid/cpu/levels.h"
#include "shcentroid/cpu/strips.h"

/* One number a cell becomes one a column. */
INLINE void
spread_cells (const ChainTile *t, uint32_t n, const double *of_cell,
    size_t stride, double *of_column)
{
  for (uint32_t i = 0, column = 0; i < t->n; i++) {
    uint32_t width = t->n == 1 ? n : t->windows[i].width;

    fill_reals (of_column + column, of_cell[i * stride], width);
    column += width;
  }
}

/* The weights of the columns [@x, @x + @n) of the tile. */
static void
weigh_tile_columns (
    const ChainTile *t, uint32_t x, uint32_t n, bool cached, ChainColumns *c)
{
  const Cpu *cpu = t->f->cpu;

  if (cached) {
    c->factor = cpu->column_weights + cpu->columns_at[t->first] + x;
    return;
  }
  c->factor = c->factors;
  for (uint32_t i = 0, column = 0; i < t->n; i++) {
    uint32_t some = t->n == 1 ? n : t->windows[i].width;

    count_distances (
        t->windows[i].x - t->centre_x[i], x, some, c->factors + column);
    column += some;
  }
  weigh_distances (c->factors, n, cpu->params.sigma);
}

/* Which cells they are in. */
static void
find_cells (const ChainTile *t, uint32_t n, ChainColumns *c)
{
  for (uint32_t i = 0, column = 0; i < t->n; i++) {
    uint32_t width = t->n == 1 ? n : t->windows[i].width;

    /* a vector at a time: the next cell writes over what is too much */
    for (uint32_t k = 0; k < width; k += REALS)
      for (uint32_t j = 0; j < REALS; j++)
        c->cells[column + k + j] = i;
    column += width;
  }
  /* strips reach beyond the last column */
  for (uint32_t k = 0; k < IMK_SHCENTROID_LANES; k++)
    c->cells[n + k] = t->n - 1;
}

/* Where they stand in their cells. */
static void
number_tile_columns (
    const ChainTile *t, uint32_t x, uint32_t n, ChainColumns *c)
{
  const Cpu *cpu = t->f->cpu;

  if (cpu->us && cpu->params.window == IMK_SHCENTROID_WINDOW_CELL) {
    c->u = cpu->us + t->windows[0].x + x;
    return;
  }
  c->u = c->us;
  for (uint32_t i = 0, column = 0; i < t->n; i++) {
    uint32_t width = t->windows[i].width, some = t->n == 1 ? n : width;

    for (uint32_t k = 0; k < some; k++)
      c->us[column + k] =
          imk_shcentroid_coordinate (&cpu->params, x + k, width);
    column += some;
  }
}

/* What the columns [@x, @x + @n) of the tile have in every band. */
static void
prepare_columns (const ChainTile *t, uint32_t x, uint32_t n, bool cached,
    const ChainWay *way, ChainColumns *c)
{
  if (way->cut || way->raised) {
    spread_cells (t, n, &t->levels[0].least, 2, c->least);
    spread_cells (t, n, &t->levels[0].pedestal, 2, c->pedestal);
  }
  if (way->weighted)
    weigh_tile_columns (t, x, n, cached, c);
  if (way->moving)
    find_cells (t, n, c);
  number_tile_columns (t, x, n, c);
}

/* Do the weights of rows differ from cell to cell? */
static bool
is_moving (const ChainTile *t)
{
  for (uint32_t i = 1; i < t->n; i++)
    if (t->centre_y[i] != t->centre_y[0])
      return true;
  return false;
}

static void
sum_chain (
    ChainTile *t, bool cached, const ChainWay *way_of_all, ChainColumns *c)
{
  uint32_t width = tile_width (t), height = t->windows[0].height;
  ChainRows rows = chain_rows (t->f->cpu);
  ChainWay with_weights = *way_of_all, *way = &with_weights;
  ChainSums lanes;

  for (uint32_t k = 0; k < (way->all ? N_CHAIN_SUMS : N_CHAIN_XY_SUMS); k++)
    fill_reals (t->sums[k], 0.0, t->n);
  for (uint32_t i = 0; i < t->n; i++) {
    t->max[i] = -3.4e38f;
    t->max_sample[i] = 0.0f;
  }
  way->moving = way->weighted && is_moving (t);
  rows.weights = c->weights;
  rows.stride = row_weights_stride (way->moving ? t->n : 1);
  for (uint32_t y = 0; y < height; y += IMK_SHCENTROID_BAND_ROWS) {
    uint32_t end = y + IMK_SHCENTROID_BAND_ROWS;

    if (end > height)
      end = height;
    if (way->weighted)
      weigh_rows (t, way->moving ? t->n : 1, y, end - y, cached, c->weights);
    for (uint32_t x = 0; x < width; x += CHAIN_TILE) {
      uint32_t n = width - x < CHAIN_TILE ? width - x : CHAIN_TILE;
      bool last = x + n == width;

      if (y == 0 || width > CHAIN_TILE)
        prepare_columns (t, x, n, cached, way, c);
      sum_strips_of_band (t, x, n, y, end, &rows, way, c);
      if (way->all)
        sum_band (t, c, x, n, last, rows.calibrated, lanes, true);
      else
        sum_band (t, c, x, n, last, rows.calibrated, lanes, false);
    }
  }
  /* where it is not known apart from the largest value */
  for (uint32_t i = 0; way->all && !rows.calibrated && i < t->n; i++)
    t->max_sample[i] = t->max[i];
}

/* What a shift of the weights does to the centroids. */
static void
find_pulls (ChainTile *t, const ChainWay *way, ChainColumns *columns)
{
  const ImkShcentroidParams *params = &t->f->cpu->params;
  double nudge = imk_shcentroid_nudge (params), kept[CHAIN_TILE];
  ChainSums sums;
  ImkShcentroidReals before[CHAIN_TILE];

  memcpy (sums, t->sums, sizeof (sums));
  for (uint32_t i = 0; i < t->n; i++)
    before[i] = chain_sums (t, i);
  for (int y = 0; y < 2; y++) {
    double *centres = y ? t->centre_y : t->centre_x;

    memcpy (kept, centres, t->n * sizeof (*kept));
    for (uint32_t i = 0; i < t->n; i++)
      centres[i] += nudge;
    sum_chain (t, false, way, columns);
    memcpy (centres, kept, t->n * sizeof (*kept));
    for (uint32_t i = 0; i < t->n; i++) {
      ImkShcentroidReals after = chain_sums (t, i);

      imk_shcentroid_see_pull (
          &t->pulls[i], y, &before[i], &after, &t->windows[i], params);
    }
  }
  memcpy (t->sums, sums, sizeof (sums));
}

static void
measure_chain (const Frame *f, uint32_t first, uint32_t n)
{
  const Cpu *cpu = f->cpu;
  ChainWay way = chain_way (cpu);
  bool cached = cpu->column_weights &&
                cpu->params.weighting == IMK_SHCENTROID_WEIGHTING_GAUSSIAN &&
                cpu->params.window == IMK_SHCENTROID_WINDOW_CELL;
  ChainColumns columns;
  ChainTile tile;

  if (n == 0)
    return;
  begin_chain (&tile, f, first, n, true);
  if (way.cut || way.raised)
    find_levels (&tile);
  sum_chain (&tile, cached, &way, &columns);
  for (uint32_t i = 1; i < cpu->params.iterations; i++) {
    move_weights (&tile);
    sum_chain (&tile, false, &way, &columns);
  }
  if (imk_shcentroid_pulls (&cpu->params, cpu->plan.fields))
    find_pulls (&tile, &way, &columns);
  finish_chain (&tile);
}

/* Cells that stay beside each other go through the chain together. Frames go
 * downwards and upwards in turn: where dark and flat are more than a cache
 * holds, it is what came last that it has when the next frame begins. */
static void
measure_chain_rows (void *data, uint32_t first, uint32_t end)
{
  const Frame *f = data;
  const Cpu *cpu = f->cpu;
  bool together = cpu->params.window == IMK_SHCENTROID_WINDOW_CELL;
  uint32_t n_rows = cpu->plan.n_rects / cpu->cells_a_row;

  for (uint32_t i = first; i < end; i++) {
    uint32_t row = cpu->upwards ? n_rows - 1 - i : i;
    uint32_t from = row * cpu->cells_a_row, last = from + cpu->cells_a_row;

    while (from < last) {
      uint32_t to = together ? end_of_tile (cpu->rects, from, last) : from + 1;

      measure_chain (f, from, to - from);
      from = to;
    }
  }
}

const ImkShcentroidLoops IMK_ISA_TABLE = {.measure = measure_chain_rows};
