/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The chain on the CPU for one instruction set, included by
 * shcentroid-cpu-isa.h: pieces of rows across all cells of a tile, whatever
 * the width of a cell; then groups, columns, lanes and bands as
 * shcentroid-chain.h wants them. What is common goes from samples to columns in
 * strips (shcentroid-strips-cpu.h), all else through pixels here. */

#define Reals ISA_NAME (Reals)
#define Masks ISA_NAME (Masks)
#define REALS ISA_NAME (REALS)
#define Floats ISA_NAME (Floats)
#define widen ISA_NAME (widen)
#define add_maximum ISA_NAME (add_maximum)
#define ChainColumns ISA_NAME (ChainColumns)
#define ChainStrip ISA_NAME (ChainStrip)
#define ColumnSums ISA_NAME (ColumnSums)
#define ChainSums ISA_NAME (ChainSums)
#define load_samples ISA_NAME (load_samples)
#define calibrate_one ISA_NAME (calibrate_one)
#define load_calibrated ISA_NAME (load_calibrated)
#define load_listed ISA_NAME (load_listed)
#define fill_reals ISA_NAME (fill_reals)
#define all_reals ISA_NAME (all_reals)
#define load_row ISA_NAME (load_row)
#define add_range ISA_NAME (add_range)
#define plain_floats ISA_NAME (plain_floats)
#define add_floats ISA_NAME (add_floats)
#define find_ranges ISA_NAME (find_ranges)
#define find_brightest ISA_NAME (find_brightest)
#define gather_keys ISA_NAME (gather_keys)
#define count_keys ISA_NAME (count_keys)
#define count_brighter ISA_NAME (count_brighter)
#define find_levels ISA_NAME (find_levels)
#define spread_cells ISA_NAME (spread_cells)
#define read_reals ISA_NAME (read_reals)
#define write_reals ISA_NAME (write_reals)
#define raise_reals ISA_NAME (raise_reals)
#define larger ISA_NAME (larger)
#define add_part ISA_NAME (add_part)
#define add_spread ISA_NAME (add_spread)
#define add_pixels ISA_NAME (add_pixels)
#define group_sums ISA_NAME (group_sums)
#define end_group ISA_NAME (end_group)
#define keep_sum ISA_NAME (keep_sum)
#define sum_chain_strip ISA_NAME (sum_chain_strip)
#define sum_chain_strips ISA_NAME (sum_chain_strips)
#define add_samples ISA_NAME (add_samples)
#define load_group ISA_NAME (load_group)
#define number_columns ISA_NAME (number_columns)
#define weigh_rows ISA_NAME (weigh_rows)
#define prepare_columns ISA_NAME (prepare_columns)
#define weigh_columns ISA_NAME (weigh_columns)
#define end_vector ISA_NAME (end_vector)
#define end_columns ISA_NAME (end_columns)
#define gather_lanes ISA_NAME (gather_lanes)
#define largest ISA_NAME (largest)
#define add_maxima ISA_NAME (add_maxima)
#define sum_band ISA_NAME (sum_band)
#define sum_chain ISA_NAME (sum_chain)
#define store_chain_xy ISA_NAME (store_chain_xy)
#define end_chain ISA_NAME (end_chain)
#define Singles ISA_NAME (Singles)
#define Ints ISA_NAME (Ints)
#define Words ISA_NAME (Words)
#define SINGLES ISA_NAME (SINGLES)
#define HALVES ISA_NAME (HALVES)
#define MOST_VECTORS ISA_NAME (MOST_VECTORS)
#define StripRow ISA_NAME (StripRow)
#define StripPlace ISA_NAME (StripPlace)
#define StripSums ISA_NAME (StripSums)
#define read_singles ISA_NAME (read_singles)
#define fetch_ahead ISA_NAME (fetch_ahead)
#define convert_words ISA_NAME (convert_words)
#define or_masked ISA_NAME (or_masked)
#define subtract_darks ISA_NAME (subtract_darks)
#define subtract_units ISA_NAME (subtract_units)
#define unpack_strip ISA_NAME (unpack_strip)
#define strip_words ISA_NAME (strip_words)
#define strip_singles ISA_NAME (strip_singles)
#define widen_half ISA_NAME (widen_half)
#define larger_single ISA_NAME (larger_single)
#define add_strip_vector ISA_NAME (add_strip_vector)
#define add_strip_row ISA_NAME (add_strip_row)
#define add_strip_rows ISA_NAME (add_strip_rows)
#define add_sums ISA_NAME (add_sums)
#define sum_strip ISA_NAME (sum_strip)
#define strip_place ISA_NAME (strip_place)
#define sum_strips ISA_NAME (sum_strips)
#define is_for_strips ISA_NAME (is_for_strips)
#define sum_strips_of_band ISA_NAME (sum_strips_of_band)
#define fold_pair ISA_NAME (fold_pair)
#define FoldCells ISA_NAME (FoldCells)
#define half_vectors ISA_NAME (half_vectors)
#define fold_columns ISA_NAME (fold_columns)
#define fold_cells ISA_NAME (fold_cells)
#define fold_tile ISA_NAME (fold_tile)
#define add_cells ISA_NAME (add_cells)
#define are_alike ISA_NAME (are_alike)
#define fold_sums ISA_NAME (fold_sums)
#define strip_reals ISA_NAME (strip_reals)
#define sum_groups_of_band ISA_NAME (sum_groups_of_band)
#define find_pulls ISA_NAME (find_pulls)
#define is_order_free ISA_NAME (is_order_free)
#define band_place ISA_NAME (band_place)
#define measure_chain ISA_NAME (measure_chain)

typedef double Reals __attribute__ ((vector_size (VECTOR_SIZE)));
typedef int64_t Masks __attribute__ ((vector_size (VECTOR_SIZE)));
typedef float Floats __attribute__ ((vector_size (VECTOR_SIZE / 2)));
enum { REALS = VECTOR_SIZE / sizeof (double) };

typedef double ChainSums[N_CHAIN_SUMS][CHAIN_ROOM];

/* The columns of a piece of a tile in one band: what decides about their
 * pixels, and their sums, in the order of ImkShcentroidReals. */
typedef struct ChainColumns {
  /* aligned: a vector of 64 bytes is a line of the cache */
  _Alignas(64) double least[CHAIN_ROOM];
  double pedestal[CHAIN_ROOM], factors[CHAIN_ROOM], us[CHAIN_ROOM];
  ChainSums sums;
  float max[CHAIN_ROOM], max_sample[CHAIN_ROOM];
  /* the pixels of a group; weights where they differ from cell to cell */
  float value[IMK_SHCENTROID_GROUP_ROWS][CHAIN_ROOM];
  const float *flat[IMK_SHCENTROID_GROUP_ROWS];
  double weight[IMK_SHCENTROID_GROUP_ROWS][CHAIN_ROOM];
  const double *factor, *u; /* of a table, or factors and us */
} ChainColumns;

/* One group of the columns of one vector, in registers: ImkShcentroidGroup. */
typedef struct ChainStrip {
  Reals p, p1, q, q1, q2, raw;
} ChainStrip;

/* What becomes of the groups of a band: ImkShcentroidReals of the same columns,
 * but for u. */
typedef struct ColumnSums {
  Reals p, py, q, qy, qyy, raw;
} ColumnSums;

#include "shcentroid/shcentroid-levels-cpu.h"

/* ------------------------------------------------------------------------
 * Sums. */

INLINE Reals
all_reals (double value)
{
  double numbers[REALS];
  Reals reals;

  for (uint32_t i = 0; i < REALS; i++)
    numbers[i] = value;
  memcpy (&reals, numbers, sizeof (reals));
  return reals;
}

INLINE Reals
read_reals (const double *from)
{
  Reals reals;

  memcpy (&reals, from, sizeof (reals));
  return reals;
}

INLINE void
write_reals (double *to, Reals reals)
{
  memcpy (to, &reals, sizeof (reals));
}

/* Compilers take a conversion of long vectors apart, so it is spelled out. */
INLINE Reals
widen (const float *from)
{
#if VECTOR_SIZE == 64
  return (Reals) _mm512_cvtps_pd (_mm256_loadu_ps (from));
#elif VECTOR_SIZE == 32
  return (Reals) _mm256_cvtps_pd (_mm_loadu_ps (from));
#else
  Floats floats;

  memcpy (&floats, from, sizeof (floats));
  return __builtin_convertvector(floats, Reals);
#endif
}

/* @n numbers and what is beyond them in whole vectors: whoever comes next
 * writes over it. */
INLINE void
fill_reals (double *to, double value, uint32_t n)
{
  Reals reals = all_reals (value);

  for (uint32_t i = 0; i < n; i += REALS)
    memcpy (to + i, &reals, sizeof (reals));
}

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

/* No vector code, and out of line: powers are rare. */
FUNCTION void
raise_reals (Reals *p, double power)
{
  for (uint32_t i = 0; i < REALS; i++)
    (*p)[i] = imk_shcentroid_power ((*p)[i], power);
}

/* A bad pixel is not a number, and not larger. */
INLINE Reals
larger (Reals a, Reals b)
{
  Masks take = b > a;

  return (Reals) (((Masks) b & take) | ((Masks) a & ~take));
}

/* imk_shcentroid_add_part (): the pixels of columns [@i, @i + REALS) in row @k
 * of the group. */
INLINE Reals
add_part (ChainStrip *s, const ChainColumns *c, uint32_t i, uint32_t k,
    const ChainRows *r, Reals v, Reals weight, const bool begins,
    const ChainWay way)
{
  Reals p = v;

  if (way.cut)
    p -= read_reals (c->pedestal + i);
  if (way.weighted)
    p *= weight;
  if (way.rare && r->power != 1.0)
    raise_reals (&p, r->power);
  if (way.cut)
    p = (Reals) ((Masks) p & (v >= read_reals (c->least + i)));
  if (way.rare && r->quad)
    s->p1 += r->y[k] * p;
  else if (!begins)
    s->p1 += s->p;
  s->p = begins ? p : s->p + p;
  return p;
}

/* imk_shcentroid_spread () and ..._add_spread () of the same. */
INLINE void
add_spread (ChainStrip *s, const ChainColumns *c, uint32_t i, uint32_t k,
    const ChainRows *r, Reals v, Reals flat, Reals weight, Reals p,
    const bool begins, const ChainWay way)
{
  Masks lit = v > 0.0;
  Reals light = (Reals) ((Masks) v & lit), q;

  if (way.flat) {
    q = flat * light;
    if (r->noise.read > 0.0)
      q += flat * flat * r->noise.read;
  } else {
    q = light + r->noise.read;
  }
  if (way.rare && r->power != 1.0) {
    Reals d = v - read_reals (c->pedestal + i);
    Masks above = d > 0.0;
    Reals slope = (Reals) ((Masks) (r->power * p / d) & above);

    q = slope * slope * q;
  } else if (way.weighted) {
    q = weight * weight * q;
  }
  if (way.cut)
    q = (Reals) ((Masks) q & (v >= read_reals (c->least + i)));
  if (way.rare && r->quad) {
    s->q1 += r->y[k] * q;
    s->q2 += r->y[k] * r->y[k] * q;
  } else if (!begins) {
    s->q2 += s->q1;
    s->q1 += s->q;
  }
  s->q = begins ? q : s->q + q;
}

INLINE void
add_pixels (ChainStrip *s, const ChainColumns *c, uint32_t i, uint32_t k,
    const ChainRows *r, const ChainWay way)
{
  Reals v = widen (&c->value[k][i]), weight = {0}, p;

  if (way.weighted)
    weight = r->same ? all_reals (r->weight[k]) : read_reals (&c->weight[k][i]);
  p = add_part (s, c, i, k, r, v, weight, false, way);
  if (way.all) {
    add_spread (s, c, i, k, r, v, way.flat ? widen (c->flat[k] + i) : v, weight,
        p, false, way);
    if (way.cut || way.weighted || way.rare)
      s->raw += way.flat ? (Reals) ((Masks) v & (v == v)) : v;
  }
}

/* Adds to the columns from @at on, or begins their sums. */
INLINE void
keep_sum (double *at, Reals sum, bool begins)
{
  if (!begins)
    sum = read_reals (at) + sum;
  write_reals (at, sum);
}

/* imk_shcentroid_add_group (): what a group that begins at row @y adds to its
 * columns. */
INLINE ColumnSums
group_sums (
    const ChainStrip *g, const double y, const bool quad, const ChainWay way)
{
  ColumnSums s = {.p = g->p, .py = quad ? g->p1 : g->p1 + y * g->p};

  if (way.all) {
    Reals q2 = 2.0 * g->q2 + g->q1;

    s.q = g->q;
    s.qy = quad ? g->q1 : g->q1 + y * g->q;
    s.qyy = quad ? g->q2 : q2 + y * (2.0 * g->q1 + y * g->q);
    /* it is p where nothing is cut and nothing weighted */
    s.raw = way.cut || way.weighted || way.rare ? g->raw : g->p;
  }
  return s;
}

INLINE void
end_group (ChainColumns *c, uint32_t i, const ChainRows *r, const ChainStrip *g,
    const ChainWay way)
{
  ColumnSums s = group_sums (g, r->first, way.rare && r->quad, way);

  keep_sum (&c->sums[CHAIN_P][i], s.p, r->begins);
  keep_sum (&c->sums[CHAIN_PY][i], s.py, r->begins);
  if (!way.all)
    return;
  keep_sum (&c->sums[CHAIN_Q][i], s.q, r->begins);
  keep_sum (&c->sums[CHAIN_QY][i], s.qy, r->begins);
  keep_sum (&c->sums[CHAIN_QYY][i], s.qyy, r->begins);
  keep_sum (&c->sums[CHAIN_RAW][i], s.raw, r->begins);
}

/* All rows of a group in one vector of columns. */
INLINE void
sum_chain_strip (
    ChainColumns *c, uint32_t i, const ChainRows *r, const ChainWay way)
{
  ChainStrip s = {.p = {0}};

  for (uint32_t k = r->n; k-- > 0;)
    add_pixels (&s, c, i, k, r, way);
  end_group (c, i, r, &s, way);
}

/* Each combination is a loop of its own, but for what is rare. */
FUNCTION void
sum_chain_strips (
    ChainColumns *c, uint32_t n, const ChainRows *r, const ChainWay *way)
{
#define SUM_STRIPS(...) \
  for (uint32_t i = 0; i < n; i += REALS) \
  sum_chain_strip (c, i, r, (ChainWay){.flat = way->flat, __VA_ARGS__})
  if (way->rare)
    for (uint32_t i = 0; i < n; i += REALS)
      sum_chain_strip (c, i, r, *way);
  else if (way->all)
    SUM_WEIGHTED_OR_NOT (.all = true);
  else
    SUM_WEIGHTED_OR_NOT (.all = false);
#undef SUM_STRIPS
}

/* The weights of the columns [@x, @x + @n) of the tile. */
FUNCTION void
weigh_columns (
    const ChainTile *t, uint32_t x, uint32_t n, bool cached, ChainColumns *c)
{
  double power = t->f->cpu->params.power;

  if (cached) {
    c->factor = cached_columns (t) + x;
    return;
  }
  c->factor = c->factors;
  for (uint32_t i = 0, column = 0; i < t->n; i++) {
    uint32_t some = t->n == 1 ? n : t->windows[i].width;

    weight_columns (t, i, x, some, c->factors + column);
    column += some;
  }
  for (uint32_t i = 0; power != 1.0 && i < n; i++)
    c->factors[i] = imk_shcentroid_factor (c->factors[i], power);
}

/* Where they stand in their cells. */
FUNCTION void
number_columns (const ChainTile *t, uint32_t x, uint32_t n, ChainColumns *c)
{
  const Cpu *cpu = t->f->cpu;
  bool quad = cpu->params.estimator == IMK_SHCENTROID_ESTIMATOR_QUAD;
  bool stay = cpu->params.window == IMK_SHCENTROID_WINDOW_CELL;

  if (cpu->us && stay && !quad) {
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
FUNCTION void
prepare_columns (const ChainTile *t, uint32_t x, uint32_t n, bool cached,
    const ChainWay *way, ChainColumns *c)
{
  if (way->cut || way->rare) {
    spread_cells (t, n, &t->levels[0].least, 2, c->least);
    spread_cells (t, n, &t->levels[0].pedestal, 2, c->pedestal);
  }
  if (way->weighted)
    weigh_columns (t, x, n, cached, c);
  number_columns (t, x, n, c);
}

/* Of the rows of a group: one for all cells, or one for each column. */
FUNCTION void
weigh_rows (const ChainTile *t, uint32_t n, uint32_t y, bool cached,
    ChainRows *r, ChainColumns *c)
{
  r->same = true;
  weight_rows (t, 0, y, cached, r->weight);
  for (uint32_t i = 1; i < t->n && r->same; i++)
    r->same = t->centre_y[i] == t->centre_y[0];
  if (r->same)
    return;
  for (uint32_t i = 0, column = 0; i < t->n; i++) {
    uint32_t some = t->n == 1 ? n : t->windows[i].width;
    double weights[IMK_SHCENTROID_GROUP_ROWS];

    weight_rows (t, i, y, cached, weights);
    for (uint32_t k = 0; k < r->n; k++)
      for (uint32_t u = column; u < column + some; u++)
        c->weight[k][u] = weights[k];
    column += some;
  }
}

/* A bad pixel is not a number, and not larger. */
INLINE void
add_maximum (
    const float *restrict value, uint32_t n, bool begins, float *restrict max)
{
  for (uint32_t i = 0; begins && i < n; i++)
    max[i] = -3.4e38f;
  for (uint32_t i = 0; i < n; i++)
    max[i] = value[i] > max[i] ? value[i] : max[i];
}

/* The largest samples as they came, of row @k of the group, where the pixels
 * are not bad. */
FUNCTION void
add_samples (const Frame *f, uint32_t x, uint32_t y, uint32_t n,
    ChainColumns *c, uint32_t k, bool begins)
{
  float *restrict max = c->max_sample;
  const float *restrict value = c->value[k];
  _Alignas(64) float samples[CHAIN_TILE];

  load_samples (f, x, y, n, samples);
  for (uint32_t i = 0; begins && i < n; i++)
    max[i] = 0.0f;
  for (uint32_t i = 0; i < n; i++) {
    float sample = value[i] == value[i] ? samples[i] : 0.0f;

    max[i] = sample > max[i] ? sample : max[i];
  }
}

/* The pixels and the sums of columns [@x, @x + @n) of the tile in the group of
 * @r. Vectors reach beyond the last column, which means nothing. */
FUNCTION void
load_group (const ChainTile *t, uint32_t x, uint32_t n, bool cached,
    const ChainWay *way, ChainRows *r, ChainColumns *c)
{
  const Frame *f = t->f;
  const ImkShcentroidWindow *w = t->windows;
  uint32_t y = (uint32_t) r->first;

  for (uint32_t k = 0; k < r->n; k++) {
    bool begins = r->begins && k == 0;
    size_t at = (size_t) (w->y + y + k) * f->cpu->plan.width + w->x + x;

    if (r->quad)
      r->y[k] = imk_shcentroid_coordinate (&f->cpu->params, y + k, w->height);
    load_row (f, w->x + x, w->y + y + k, n, c->value[k]);
    if (way->flat)
      c->flat[k] = f->cpu->flat + at;
    if (way->all)
      add_maximum (c->value[k], n, begins, c->max);
    if (way->all && r->calibrated)
      add_samples (f, w->x + x, w->y + y + k, n, c, k, begins);
  }
  if (way->weighted)
    weigh_rows (t, n, y, cached, r, c);
  sum_chain_strips (c, n, r, way);
}

/* imk_shcentroid_end_column () of the columns of the vector from @i on. */
INLINE void
end_vector (ChainColumns *c, uint32_t i, ColumnSums s, const ChainWay way)
{
  Reals u = read_reals (c->u + i);

  if (way.weighted) {
    Reals factor = read_reals (c->factor + i), square = factor * factor;

    s.p *= factor;
    s.py *= factor;
    s.q *= square;
    s.qy *= square;
    s.qyy *= square;
  }
  write_reals (&c->sums[CHAIN_P][i], s.p);
  write_reals (&c->sums[CHAIN_PU][i], u * s.p);
  write_reals (&c->sums[CHAIN_PY][i], s.py);
  if (!way.all)
    return;
  write_reals (&c->sums[CHAIN_Q][i], s.q);
  write_reals (&c->sums[CHAIN_QU][i], u * s.q);
  write_reals (&c->sums[CHAIN_QY][i], s.qy);
  write_reals (&c->sums[CHAIN_QUU][i], u * u * s.q);
  write_reals (&c->sums[CHAIN_QYY][i], s.qyy);
  write_reals (&c->sums[CHAIN_RAW][i], s.raw);
}

/* The same where they were added up in memory. */
FUNCTION void
end_columns (ChainColumns *c, uint32_t n, const ChainWay *way)
{
  for (uint32_t i = 0; i < n; i += REALS) {
    ColumnSums s = {.p = read_reals (&c->sums[CHAIN_P][i]),
        .py = read_reals (&c->sums[CHAIN_PY][i])};

    if (way->all) {
      s.q = read_reals (&c->sums[CHAIN_Q][i]);
      s.qy = read_reals (&c->sums[CHAIN_QY][i]);
      s.qyy = read_reals (&c->sums[CHAIN_QYY][i]);
      s.raw = read_reals (&c->sums[CHAIN_RAW][i]);
    }
    end_vector (c, i, s, *way);
  }
}

#include "shcentroid/shcentroid-strips-cpu.h"
#include "shcentroid/shcentroid-fold-cpu.h"

/* The columns [@x, @x + @n) of the tile in its rows [@y, @end), which are a
 * band, group by group: what strips cannot do. */
FUNCTION void
sum_groups_of_band (const ChainTile *t, uint32_t x, uint32_t n, uint32_t y,
    uint32_t end, bool cached, ChainRows *r, const ChainWay *way,
    ChainColumns *c)
{
  uint32_t group_rows = imk_shcentroid_group_rows (t->windows[0].height);

  for (uint32_t from = y; from < end; from += r->n) {
    r->first = from;
    r->begins = from == y;
    r->n = end - from < group_rows ? end - from : group_rows;
    load_group (t, x, n, cached, way, r, c);
  }
  end_columns (c, n, way);
}

FUNCTION void
sum_chain (ChainTile *t, bool cached, const ChainWay *way, ChainColumns *c)
{
  uint32_t width = tile_width (t), height = t->windows[0].height;
  ChainRows rows = chain_rows (&t->f->cpu->params, t->f->cpu);
  ChainSums lanes;

  for (uint32_t k = 0; k < (way->all ? N_CHAIN_SUMS : N_CHAIN_XY_SUMS); k++)
    fill_reals (t->sums[k], 0.0, t->n);
  for (uint32_t i = 0; i < t->n; i++) {
    t->max[i] = -3.4e38f;
    t->max_sample[i] = 0.0f;
  }
  for (uint32_t y = 0; y < height; y += IMK_SHCENTROID_BAND_ROWS) {
    uint32_t end = y + IMK_SHCENTROID_BAND_ROWS;

    if (end > height)
      end = height;
    for (uint32_t x = 0; x < width; x += CHAIN_TILE) {
      uint32_t n = width - x < CHAIN_TILE ? width - x : CHAIN_TILE;
      bool last = x + n == width;

      if (y == 0 || width > CHAIN_TILE)
        prepare_columns (t, x, n, cached, way, c);
      if (is_for_strips (t, x, way))
        sum_strips_of_band (t, x, n, y, end, cached, &rows, way, c);
      else
        sum_groups_of_band (t, x, n, y, end, cached, &rows, way, c);
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

/* Positions of a tile, when all its cells are valid: the divisions are vector
 * code. Returns: whether they are */
FUNCTION bool
store_chain_xy (const ChainTile *t)
{
  const ImkShcentroidParams *params = &t->f->cpu->params;
  double p[CHAIN_TILE], x[CHAIN_TILE], y[CHAIN_TILE], last_x[CHAIN_TILE];
  double last_y = t->windows[0].height - 1.0, top = t->windows[0].y;
  uint64_t n_valid = 0;

  for (uint32_t i = 0; i < t->n; i++) {
    p[i] = t->sums[CHAIN_P][i];
    x[i] = t->sums[CHAIN_PU][i];
    y[i] = t->sums[CHAIN_PY][i];
    last_x[i] = t->windows[i].width - 1.0;
  }
  for (uint32_t i = 0; i < t->n; i++) {
    double u = x[i] / p[i], v = y[i] / p[i];
    bool outside_x = imk_shcentroid_is_outside (u, 0.0, last_x[i]);
    bool outside_y = imk_shcentroid_is_outside (v, 0.0, last_y);

    x[i] = imk_shcentroid_clamp (u, 0.0, last_x[i]);
    y[i] = top + imk_shcentroid_clamp (v, 0.0, last_y);
    n_valid += (p[i] > 0.0) & (p[i] >= params->min_flux) & !outside_x &
               !outside_y & imk_shcentroid_is_finite (p[i]);
  }
  if (n_valid < t->n)
    return false;
  for (uint32_t i = 0; i < t->n; i++)
    x[i] = t->windows[i].x + x[i];
  store_centres (t->f, t->first, t->n, x, y, ISA_NAME (store_f32));
  return true;
}

FUNCTION void
end_chain (const ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;
  const ImkShcentroidParams *params = &cpu->params;
  bool simple = cpu->plan.fields != IMK_SHCENTROID_FIELDS_ALL &&
                cpu->plan.columns > 0 && !params->remove_tilt &&
                params->estimator == IMK_SHCENTROID_ESTIMATOR_COG &&
                params->invalid_policy != IMK_SHCENTROID_INVALID_HOLD &&
                !imk_shcentroid_tracks (params);

  if (!simple || !store_chain_xy (t))
    chain_end (t);
}

/* What a shift of the weights does to the centroids. */
FUNCTION void
find_pulls (ChainTile *t, const ChainWay *way, ChainColumns *columns)
{
  const ImkShcentroidParams *params = &t->f->cpu->params;
  double nudge = imk_shcentroid_nudge (params), kept[CHAIN_TILE];
  double sums[N_CHAIN_SUMS][CHAIN_TILE];
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

FUNCTION void
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
  chain_begin (&tile, f, first, n);
  if (way.cut || way.rare)
    find_levels (&tile);
  sum_chain (&tile, cached, &way, &columns);
  for (uint32_t i = 1; i < cpu->params.iterations; i++) {
    move_weights (&tile);
    sum_chain (&tile, false, &way, &columns);
  }
  if (imk_shcentroid_pulls (&cpu->params, cpu->plan.fields))
    find_pulls (&tile, &way, &columns);
  end_chain (&tile);
}

#undef Reals
#undef Masks
#undef REALS
#undef Floats
#undef widen
#undef add_maximum
#undef ChainColumns
#undef ChainStrip
#undef ColumnSums
#undef ChainSums
#undef load_samples
#undef calibrate_one
#undef load_calibrated
#undef load_listed
#undef fill_reals
#undef all_reals
#undef load_row
#undef add_range
#undef plain_floats
#undef add_floats
#undef find_ranges
#undef find_brightest
#undef gather_keys
#undef count_keys
#undef count_brighter
#undef find_levels
#undef spread_cells
#undef read_reals
#undef write_reals
#undef raise_reals
#undef larger
#undef add_part
#undef add_spread
#undef add_pixels
#undef group_sums
#undef end_group
#undef keep_sum
#undef sum_chain_strip
#undef sum_chain_strips
#undef add_samples
#undef load_group
#undef number_columns
#undef weigh_rows
#undef prepare_columns
#undef weigh_columns
#undef end_vector
#undef end_columns
#undef gather_lanes
#undef largest
#undef add_maxima
#undef sum_band
#undef sum_chain
#undef store_chain_xy
#undef end_chain
#undef Singles
#undef Ints
#undef Words
#undef SINGLES
#undef HALVES
#undef MOST_VECTORS
#undef StripRow
#undef StripPlace
#undef StripSums
#undef read_singles
#undef fetch_ahead
#undef convert_words
#undef or_masked
#undef subtract_darks
#undef subtract_units
#undef unpack_strip
#undef strip_words
#undef strip_singles
#undef widen_half
#undef larger_single
#undef add_strip_vector
#undef add_strip_row
#undef add_strip_rows
#undef add_sums
#undef sum_strip
#undef strip_place
#undef sum_strips
#undef is_for_strips
#undef sum_strips_of_band
#undef fold_pair
#undef FoldCells
#undef half_vectors
#undef fold_columns
#undef fold_cells
#undef fold_tile
#undef add_cells
#undef are_alike
#undef fold_sums
#undef strip_reals
#undef sum_groups_of_band
#undef find_pulls
#undef is_order_free
#undef band_place
#undef measure_chain
