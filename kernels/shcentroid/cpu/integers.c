/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Centroids of integer samples, or of their squares, without calibration,
 * weights or other powers. A row of cells is summed up vertically, column by
 * column (integer-columns.h); then the columns, by a factor of the height of a
 * cell fewer than pixels, are summed up to cells. Compiled for each instruction
 * set, for samples of 8 and 16 bits, sums of 32 and 64 bits, and as POWER 1
 * or 2. */
#include "shcentroid/cpu/brightest-samples.h"
#include "shcentroid/cpu/integer-columns.h"
#include "shcentroid/cpu/tile.h"

enum { N_PIECES = 10 }; /* powers of 2 up to TILE */

/* Cells side by side, whose columns are summed up together. */
typedef struct Tile {
  uint32_t first, n;              /* cells */
  const ImkShcentroidRect *rects; /* of these cells: x and width */
  Area area;                      /* all of them */
  bool cut;                       /* by a threshold */
  bool leveled;                   /* which the samples of the cell decide */
  double pedestal;                /* of all cells, */
  const double *pedestals;        /* or of each; NULL for that one */
  double min_flux;
} Tile;

/* Samples above it take part under a threshold of @t; no larger than any sample
 * fits the lanes that it is compared in. */
static inline int32_t
sample_below (const Cpu *cpu, double t)
{
  int32_t most = cpu->plan.type == IMK_TYPE_U8 ? 255 : 65535;
  int32_t below = (int32_t) imk_shcentroid_least (t) - 1;

  return below < most ? below : most;
}

static inline uint32_t
widest (const Tile *t)
{
  uint32_t width = 0;

  for (uint32_t i = 0; i < t->n; i++)
    width = t->rects[i].width > width ? t->rects[i].width : width;
  return width;
}

INLINE void
finish_cell (const Frame *f, uint32_t cell, const ImkShcentroidSums *sums,
    double pedestal)
{
  const Cpu *cpu = f->cpu;
  ImkShcentroidRow row;

  imk_shcentroid_finish (&row, sums, &cpu->rects[cell], &cpu->params, pedestal,
      cpu->plan.fields, cpu->fresh, cpu->held + 2 * (size_t) cell);
  store_row (f, cell, &row);
}

/* Where every sample takes part, the sums over 1, u and y are geometry. */
INLINE void
finish_sums (const Frame *f, const Tile *t, uint32_t i, ImkShcentroidSums *s)
{
  if (!t->cut) {
    imk_shcentroid_fill_geometry (s, t->rects[i].width, t->area.height);
    s->raw = s->v;
  }
  finish_cell (
      f, t->first + i, s, t->pedestals ? t->pedestals[i] : t->pedestal);
}

/* ------------------------------------------------------------------------
 * The second stage: from columns to cells. */

/* What a centroid needs, of the cells of a tile. */
typedef struct Cells {
  Sum v[TILE], vu[TILE], vy[TILE];
  Sum n[TILE], nu[TILE], ny[TILE];
  int32_t left[TILE], last[TILE]; /* x, width - 1 */
} Cells;

INLINE void
sum_cell_xy (const Columns *c, uint32_t first, uint32_t width, const bool cut,
    Cells *cells, uint32_t i)
{
  Sum v = 0, vu = 0, vy = 0, n = 0, nu = 0, ny = 0;

  for (uint32_t x = first + width; x-- > first;) {
    v += c->v[x];
    vu += v;
    vy += c->vy[x];
    if (cut) {
      n += c->n[x];
      nu += n;
      ny += c->ny[x];
    }
  }
  cells->v[i] = v;
  cells->vu[i] = vu - v;
  cells->vy[i] = vy;
  if (cut) {
    cells->n[i] = n;
    cells->nu[i] = nu - n;
    cells->ny[i] = ny;
  }
}

/* Cells @rects[0..n), which lie side by side and fill the columns. */
static void
sum_cells (const Columns *columns, const ImkShcentroidRect *rects, uint32_t n,
    bool cut, Cells *cells)
{
  uint32_t x = 0;

  for (uint32_t i = 0; i < n; i++) {
    uint32_t width = rects[i].width;

    if (cut)
      sum_cell_xy (columns, x, width, true, cells, i);
    else
      sum_cell_xy (columns, x, width, false, cells, i);
    cells->left[i] = rects[i].x;
    cells->last[i] = (int32_t) width - 1;
    x += width;
  }
}

/* Without a threshold the pedestal is 0 and the counts are not looked at.
 * Returns: whether all are valid */
static bool
find_centres (const Cells *c, uint32_t n, bool cut,
    const double *restrict pedestal, double min_flux, double top, double last_y,
    double *restrict x, double *restrict y)
{
  uint64_t n_valid = 0;

  for (uint32_t i = 0; i < n; i++) {
    ImkShcentroidCentre centre = imk_shcentroid_centre (
        (double) (SignedSum) c->v[i], (double) (SignedSum) c->vu[i],
        (double) (SignedSum) c->vy[i], cut ? (double) (SignedSum) c->n[i] : 0.0,
        cut ? (double) (SignedSum) c->nu[i] : 0.0,
        cut ? (double) (SignedSum) c->ny[i] : 0.0, pedestal[i], min_flux,
        c->last[i], last_y);

    x[i] = c->left[i] + centre.x;
    y[i] = top + centre.y;
    n_valid += centre.valid;
  }
  return n_valid == n;
}

static inline ImkShcentroidSums
cell_sums (const Cells *c, uint32_t i, bool cut)
{
  ImkShcentroidSums s = {.v = c->v[i], .vu = c->vu[i], .vy = c->vy[i]};

  if (cut) {
    s.n = c->n[i];
    s.nu = c->nu[i];
    s.ny = c->ny[i];
  }
  return s;
}

static void
finish_xy (const Frame *f, const Tile *t, const Cells *c)
{
  for (uint32_t i = 0; i < t->n; i++) {
    ImkShcentroidSums s = cell_sums (c, i, t->cut);

    finish_cell (
        f, t->first + i, &s, t->pedestals ? t->pedestals[i] : t->pedestal);
  }
}

/* Position only: the divisions of all cells are vector code too. */
static void
measure_xy (const Frame *f, const Tile *t, const Columns *columns)
{
  double x[TILE], y[TILE], pedestal[TILE];
  Cells cells;

  sum_cells (columns, t->rects, t->n, t->cut, &cells);
  for (uint32_t i = 0; i < t->n; i++)
    pedestal[i] = t->pedestals ? t->pedestals[i] : t->pedestal;
  if (find_centres (&cells, t->n, t->cut, pedestal, t->min_flux, t->area.y,
          t->area.height - 1.0, x, y) &&
      f->cpu->params.invalid_policy != IMK_SHCENTROID_INVALID_HOLD)
    store_centres (f, t->first, t->n, x, y);
  else
    finish_xy (f, t, &cells);
}

/* Adds the columns [@first, @first + @width), the first of which is the column
 * @u of the cell, to the sums of the cell. */
INLINE void
add_columns (const Columns *c, uint32_t first, uint32_t width, uint64_t u,
    const bool all, const bool cut, ImkShcentroidSums *s)
{
  for (uint32_t x = first; x < first + width; x++, u++) {
    uint64_t v = c->v[x];

    s->v += v;
    s->vu += u * v;
    s->vy += c->vy[x];
    if (all) {
      s->max = c->max[x] > s->max ? (uint32_t) c->max[x] : s->max;
      if (sizeof (Sum) == sizeof (uint32_t)) {
        s->vuu.low += u * u * v;
        s->vyy.low += c->vyy[x];
      } else {
        imk_shcentroid_wide_add (&s->vuu, u * u * v);
        imk_shcentroid_wide_add (&s->vyy, c->vyy[x]);
      }
    }
    if (cut) {
      uint64_t n = c->n[x];

      s->n += n;
      s->nu += u * n;
      s->ny += c->ny[x];
      if (all) {
        s->raw += c->raw[x];
        s->nuu += u * u * n;
        s->nyy += c->nyy[x];
      }
    }
  }
}

/* Whole cells with all their sums. */
static void
measure_all (const Frame *f, const Tile *t, const Columns *columns)
{
  uint32_t x = 0;

  for (uint32_t i = 0; i < t->n; i++) {
    uint32_t width = t->rects[i].width;
    ImkShcentroidSums s = {0};

    if (t->cut)
      add_columns (columns, x, width, 0, true, true, &s);
    else
      add_columns (columns, x, width, 0, true, false, &s);
    finish_sums (f, t, i, &s);
    x += width;
  }
}

/* ------------------------------------------------------------------------
 * Levels: thresholds that the samples of a cell decide. */

/* The largest samples of each column and, if @whole, the smallest. */
INLINE void
find_extremes (
    const Area *a, const bool whole, Sample *restrict min, Sample *restrict max)
{
  const uint8_t *from = a->frame + a->y * a->stride + a->x * sizeof (Sample);

  memcpy (max, from, a->width * sizeof (Sample));
  if (whole)
    memcpy (min, from, a->width * sizeof (Sample));
  for (uint32_t y = 1; y < a->height; y++) {
    const Sample *restrict row = (const Sample *) (from + y * a->stride);

    for (uint32_t x = 0; x < a->width; x++) {
      max[x] = row[x] > max[x] ? row[x] : max[x];
      if (whole)
        min[x] = row[x] < min[x] ? row[x] : min[x];
    }
  }
}

/* From those of 2^(k - 1) columns to those of 2^k, from each column on. */
INLINE void
join_extremes (const Sample *restrict from, uint32_t n, uint32_t half,
    const bool largest, Sample *restrict to)
{
  for (uint32_t x = 0; x + half < n; x++) {
    Sample a = from[x], b = from[x + half];

    to[x] = (largest ? a > b : a < b) ? a : b;
  }
}

/* Those of each cell: of two pieces of it, as wide as powers of 2, which
 * overlap. @of: of columns, with room for the pieces */
INLINE void
gather_extremes (const Tile *t, Sample of[N_PIECES][TILE], const bool largest,
    double *restrict to)
{
  uint32_t n = t->area.width, k = 0, x = 0;

  for (; k + 1 < N_PIECES && 2u << k <= widest (t); k++)
    join_extremes (of[k], n, 1u << k, largest, of[k + 1]);
  for (uint32_t i = 0; i < t->n; i++) {
    uint32_t width = t->rects[i].width;
    uint32_t p = 31 - (uint32_t) __builtin_clz (width);
    Sample a = of[p][x], b = of[p][x + width - (1u << p)];

    to[i] = (largest ? a > b : a < b) ? a : b;
    x += width;
  }
}

/* The thresholds of cells that their largest and smallest samples decide. */
static void
find_thresholds (const Frame *f, const Tile *t, double *restrict levels)
{
  const ImkShcentroidParams *params = &f->cpu->params;
  Sample low[N_PIECES][TILE], high[N_PIECES][TILE];
  double min[TILE], max[TILE];
  bool whole = imk_shcentroid_needs_least (params);

  if (whole)
    find_extremes (&t->area, true, low[0], high[0]);
  else
    find_extremes (&t->area, false, low[0], high[0]);
  gather_extremes (t, high, true, max);
  if (whole)
    gather_extremes (t, low, false, min);
  else
    memcpy (min, max, t->n * sizeof (*min));
  for (uint32_t i = 0; i < t->n; i++)
    levels[i] = imk_shcentroid_threshold (
        params, f->cpu->rects[t->first + i].threshold, min[i], max[i]);
}

/* From the @levels of cells, which become pedestals.
 * @belows: of each column, room for a strip on both sides */
static void
apply_levels (const Frame *f, const Tile *t, double *restrict levels,
    SignedLane *restrict belows)
{
  int32_t below[TILE];

  for (uint32_t i = 0; i < t->n; i++) {
    /* all samples reach a level of 0, as they do without one */
    double level = levels[i] > 0.0 ? levels[i] : 0.0;

    below[i] = sample_below (f->cpu, level);
    levels[i] = imk_shcentroid_pedestal (&f->cpu->params, level);
  }
  memset (belows - STRIP, 0, STRIP * sizeof (*belows));
  /* a vector at a time: the next cell writes over what is too much */
  for (uint32_t i = 0; i < t->n; i++) {
    for (uint32_t x = 0; x < t->rects[i].width; x += LANES)
      for (uint32_t k = 0; k < LANES; k++)
        belows[x + k] = (SignedLane) below[i];
    belows += t->rects[i].width;
  }
}

static void
measure_tile (const Frame *f, const Tile *tile)
{
  bool all = f->cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  SignedLane belows[STRIP + TILE + STRIP];
  double pedestals[TILE];
  Tile t = *tile;
  Columns columns;

  if (t.leveled) {
    find_thresholds (f, &t, pedestals);
    apply_levels (f, &t, pedestals, belows + STRIP);
    t.pedestals = pedestals;
    t.area.belows = belows + STRIP;
  }
  sum_columns (&t.area, all, t.cut, &columns);
  if (all)
    measure_all (f, &t, &columns);
  else
    measure_xy (f, &t, &columns);
}

/* ------------------------------------------------------------------------
 * Settings of the chain whose sums are whole numbers (see is_whole ()): added
 * up here, they are the same to the last bit. */

/* Adds @n columns of one side of a quad cell, whose coordinates are @u and @y.
 */
INLINE void
add_side (const Columns *c, uint32_t first, uint32_t n, int64_t u, int64_t y,
    const bool all, const bool cut, ImkShcentroidSums *s)
{
  Sum v = 0, count = 0, raw = 0, max = 0;

  for (uint32_t x = first; x < first + n; x++) {
    v += c->v[x];
    if (cut)
      count += c->n[x];
    if (cut && all)
      raw += c->raw[x];
    if (all)
      max = c->max[x] > max ? c->max[x] : max;
  }
  s->v += v;
  s->vu += (uint64_t) u * v;
  s->vy += (uint64_t) y * v;
  s->n += count;
  s->nu += (uint64_t) u * count;
  s->ny += (uint64_t) y * count;
  if (!all)
    return;
  s->vuu.low += (uint64_t) (u * u) * v;
  s->vyy.low += (uint64_t) (y * y) * v;
  s->raw += raw;
  s->max = max > s->max ? (uint32_t) max : s->max;
}

INLINE void
add_quad_cells (const Tile *t, const Columns *columns, int64_t y,
    const bool all, const bool cut, ImkShcentroidSums *sums)
{
  for (uint32_t i = 0, x = 0; i < t->n; i++) {
    uint32_t width = t->rects[i].width, half = width / 2;

    add_side (columns, x, half, -1, y, all, cut, &sums[i]);
    if (width % 2)
      add_side (columns, x + half, 1, 0, y, all, cut, &sums[i]);
    x += width;
    add_side (columns, x - half, half, 1, y, all, cut, &sums[i]);
  }
}

INLINE void
fill_all (const Tile *t, const Columns *columns, const bool cut,
    ImkShcentroidSums *sums)
{
  for (uint32_t i = 0, x = 0; i < t->n; x += t->rects[i++].width)
    add_columns (columns, x, t->rects[i].width, 0, true, cut, &sums[i]);
}

static void
fill_xy (const Tile *t, const Columns *columns, ImkShcentroidSums *sums)
{
  Cells cells;

  sum_cells (columns, t->rects, t->n, t->cut, &cells);
  for (uint32_t i = 0; i < t->n; i++)
    sums[i] = cell_sums (&cells, i, t->cut);
}

/* Adds @n_rows of a tile from row @from of its cells on; @y: the coordinate of
 * these rows in a quad cell */
static void
add_rows (const Frame *f, const Tile *t, uint32_t from, uint32_t n_rows,
    int64_t y, ImkShcentroidSums *sums)
{
  bool all = f->cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  bool quad = f->cpu->params.estimator == IMK_SHCENTROID_ESTIMATOR_QUAD;
  Area area = t->area;
  Columns columns;

  if (n_rows == 0)
    return;
  area.y += from;
  area.skip = from;
  area.height = n_rows;
  sum_columns (&area, all, t->cut, &columns);
  if (quad && (all || t->cut))
    add_quad_cells (t, &columns, y, all, t->cut, sums);
  else if (quad)
    add_quad_cells (t, &columns, y, false, false, sums);
  else if (all)
    fill_all (t, &columns, t->cut, sums);
  else
    fill_xy (t, &columns, sums);
}

/* To the sums of the chain. Without read noise a sample is its own variance. */
static void
give_chain (ChainTile *cells, const Tile *t, const ImkShcentroidSums *sums)
{
  bool all = cells->f->cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;

  for (uint32_t i = 0; i < t->n; i++) {
    const ImkShcentroidSums *s = &sums[i];
    double pedestal = t->pedestals ? t->pedestals[i] : t->pedestal;
    double v = imk_shcentroid_real (s->v), vu = imk_shcentroid_real (s->vu);
    double vy = imk_shcentroid_real (s->vy);

    cells->sums[CHAIN_P][i] = v - pedestal * imk_shcentroid_real (s->n);
    cells->sums[CHAIN_PU][i] = vu - pedestal * imk_shcentroid_real (s->nu);
    cells->sums[CHAIN_PY][i] = vy - pedestal * imk_shcentroid_real (s->ny);
    if (!all)
      continue;
    cells->sums[CHAIN_Q][i] = v;
    cells->sums[CHAIN_QU][i] = vu;
    cells->sums[CHAIN_QY][i] = vy;
    cells->sums[CHAIN_QUU][i] = imk_shcentroid_wide_value (s->vuu);
    cells->sums[CHAIN_QYY][i] = imk_shcentroid_wide_value (s->vyy);
    cells->sums[CHAIN_RAW][i] = t->cut ? imk_shcentroid_real (s->raw) : v;
    cells->max[i] = cells->max_sample[i] = (float) s->max;
  }
}

static void
measure_whole (const Frame *f, const Tile *tile)
{
  const ImkShcentroidParams *params = &f->cpu->params;
  uint32_t height = tile->area.height;
  SignedLane belows[STRIP + TILE + STRIP];
  ImkShcentroidSums sums[CHAIN_TILE];
  double levels[TILE];
  Tile t = *tile;
  ChainTile cells;

  begin_chain (&cells, f, t.first, t.n, true);
  if (params->window == IMK_SHCENTROID_WINDOW_TRACKING) {
    t.area.windows = cells.windows;
    t.area.n_windows = t.n;
  }
  if (params->brightest > 0)
    find_brightest_samples (f, cells.windows, t.n, levels, sizeof (Sample) - 1);
  else if (t.leveled)
    find_thresholds (f, &t, levels);
  if (params->brightest > 0 || t.leveled) {
    apply_levels (f, &t, levels, belows + STRIP);
    t.pedestals = levels;
    t.area.belows = belows + STRIP;
    t.cut = true;
  }
  memset (sums, 0, t.n * sizeof (*sums));
  if (params->estimator == IMK_SHCENTROID_ESTIMATOR_QUAD) {
    add_rows (f, &t, 0, height / 2, -1, sums);
    add_rows (f, &t, height / 2, height % 2, 0, sums);
    add_rows (f, &t, height - height / 2, height / 2, 1, sums);
  } else {
    add_rows (f, &t, 0, height, 0, sums);
  }
  give_chain (&cells, &t, sums);
  finish_chain (&cells);
}

/* ------------------------------------------------------------------------ */

/* @u: where the piece begins in the cell */
static Area
piece_of (const Area *cell, uint32_t u)
{
  Area piece = *cell;

  piece.x += u;
  piece.width = piece.width - u < TILE ? piece.width - u : TILE;
  return piece;
}

static void
level_wide_cell (const Frame *f, Tile *t)
{
  const ImkShcentroidParams *params = &f->cpu->params;
  Sample low[TILE], high[TILE], min = (Sample) -1, max = 0;
  double level;

  for (uint32_t u = 0; u < t->area.width; u += TILE) {
    Area piece = piece_of (&t->area, u);

    find_extremes (&piece, true, low, high);
    for (uint32_t x = 0; x < piece.width; x++) {
      min = low[x] < min ? low[x] : min;
      max = high[x] > max ? high[x] : max;
    }
  }
  level = imk_shcentroid_threshold (
      params, f->cpu->rects[t->first].threshold, min, max);
  t->pedestal = imk_shcentroid_pedestal (params, level);
  t->area.below = sample_below (f->cpu, level);
}

/* A cell wider than a tile. */
static void
measure_wide_cell (const Frame *f, const Tile *tile)
{
  bool all = f->cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  ImkShcentroidSums s = {0};
  Tile t = *tile;
  Columns columns;

  if (t.leveled)
    level_wide_cell (f, &t);
  for (uint32_t u = 0; u < t.area.width; u += TILE) {
    Area piece = piece_of (&t.area, u);

    sum_columns (&piece, all, t.cut, &columns);
    add_columns (&columns, 0, piece.width, u, all, t.cut, &s);
  }
  finish_sums (f, &t, 0, &s);
}

/* A row of cells without these: one threshold, one top, one height. */
static Tile
row_tile (const Frame *f, uint32_t row)
{
  const Cpu *cpu = f->cpu;
  uint32_t first = row * cpu->cells_a_row;
  const ImkShcentroidRect *rect = &cpu->rects[first];
  const ImkShcentroidParams *params = &cpu->params;
  bool any = params->threshold_mode != IMK_SHCENTROID_THRESHOLD_NONE;
  bool leveled = any && imk_shcentroid_is_leveled (params);
  double t = any && !leveled
                 ? imk_shcentroid_threshold (params, rect->threshold, 0, 0)
                 : 0.0;

  return (Tile){
      .first = first,
      .area =
          {
              .frame = f->in->data,
              .stride = f->in->stride,
              .frame_width = f->in->width,
              .y = rect->y,
              .height = rect->height,
              .below = sample_below (cpu, t),
          },
      .cut = leveled || t > 0.0,
      .leveled = leveled,
      .pedestal = imk_shcentroid_pedestal (params, t),
      .min_flux = imk_shcentroid_min_flux (params, rect->min_flux),
  };
}

/* Appends to @tile the cells of its row from @i on that fit; at least one.
 * Returns: the first that did not */
static uint32_t
fill_tile (const Cpu *cpu, Tile *tile, uint32_t row, uint32_t i)
{
  /* the columns of all rows of a grid are those of the first: a cache full of
   * rects less to read */
  uint32_t column_of = cpu->plan.columns ? 0 : row;
  const ImkShcentroidRect *rects = cpu->rects + column_of;

  tile->first = row * cpu->cells_a_row + i;
  tile->rects = rects + i;
  tile->n = 0;
  tile->area.x = rects[i].x;
  tile->area.width = 0;
  while (i < cpu->cells_a_row && tile->n < CHAIN_TILE &&
         (tile->n == 0 || tile->area.width + rects[i].width <= TILE)) {
    tile->area.width += rects[i++].width;
    tile->n++;
  }
  return i;
}

static void
measure_rows (void *data, uint32_t first, uint32_t end)
{
  const Frame *f = data;
  bool plain = imk_shcentroid_is_plain (&f->cpu->params, f->in->type, false);

  for (uint32_t row = first; row < end; row++) {
    Tile tile = row_tile (f, row);

    for (uint32_t i = 0; i < f->cpu->cells_a_row;) {
      i = fill_tile (f->cpu, &tile, row, i);
      if (!plain)
        measure_whole (f, &tile);
      else if (tile.area.width > TILE)
        measure_wide_cell (f, &tile);
      else
        measure_tile (f, &tile);
    }
  }
}

const ImkShcentroidLoops IMK_ISA_TABLE = {.measure = measure_rows};
