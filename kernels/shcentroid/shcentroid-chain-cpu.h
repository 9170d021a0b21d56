/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The chain on the CPU for one instruction set, included by
 * shcentroid-cpu-isa.h: pieces of rows across all cells of a tile, whatever
 * the width of a cell; then columns, lanes and bands as shcentroid-chain.h
 * wants them. */

#define Reals ISA_NAME (Reals)
#define Masks ISA_NAME (Masks)
#define Floats ISA_NAME (Floats)
#define FloatMasks ISA_NAME (FloatMasks)
#define REALS ISA_NAME (REALS)
#define ChainColumns ISA_NAME (ChainColumns)
#define ChainStrip ISA_NAME (ChainStrip)
#define load_samples ISA_NAME (load_samples)
#define load_row ISA_NAME (load_row)
#define add_range ISA_NAME (add_range)
#define find_ranges ISA_NAME (find_ranges)
#define find_brightest ISA_NAME (find_brightest)
#define count_brighter ISA_NAME (count_brighter)
#define find_levels ISA_NAME (find_levels)
#define spread_cells ISA_NAME (spread_cells)
#define load_reals ISA_NAME (load_reals)
#define read_reals ISA_NAME (read_reals)
#define raise_reals ISA_NAME (raise_reals)
#define larger ISA_NAME (larger)
#define add_pixels ISA_NAME (add_pixels)
#define sum_chain_strip ISA_NAME (sum_chain_strip)
#define sum_chain_strips ISA_NAME (sum_chain_strips)
#define load_band ISA_NAME (load_band)
#define prepare_columns ISA_NAME (prepare_columns)
#define weigh_columns ISA_NAME (weigh_columns)
#define ChainSums ISA_NAME (ChainSums)
#define fetch_ahead ISA_NAME (fetch_ahead)
#define flat_row ISA_NAME (flat_row)
#define halve_vectors ISA_NAME (halve_vectors)
#define halve ISA_NAME (halve)
#define gather_lanes ISA_NAME (gather_lanes)
#define add_maxima ISA_NAME (add_maxima)
#define add_cell ISA_NAME (add_cell)
#define sum_band ISA_NAME (sum_band)
#define sum_chain ISA_NAME (sum_chain)
#define measure_chain ISA_NAME (measure_chain)

/* Vectors of float64, and of as many float32. */
typedef double Reals __attribute__ ((vector_size (VECTOR_SIZE)));
typedef int64_t Masks __attribute__ ((vector_size (VECTOR_SIZE)));
typedef float Floats __attribute__ ((vector_size (VECTOR_SIZE / 2)));
typedef int32_t FloatMasks __attribute__ ((vector_size (VECTOR_SIZE / 2)));
enum { REALS = VECTOR_SIZE / sizeof (double) };

/* Of columns, and room for the vector that begins with the last one. */
typedef double ChainSums[N_CHAIN_SUMS][CHAIN_TILE + IMK_SHCENTROID_LANES];

/* The columns of a piece of a tile in one band: what decides about their
 * pixels, and their sums, in the order of ImkShcentroidReals. */
typedef struct ChainColumns {
  double least[CHAIN_TILE], pedestal[CHAIN_TILE];
  double weight_x[CHAIN_TILE], u[CHAIN_TILE];
  ChainSums sums;
  float max[CHAIN_TILE], max_sample[CHAIN_TILE];
  /* of the pixels; samples where they are not the values, weights where there
   * are some */
  float value[IMK_SHCENTROID_BAND_ROWS][CHAIN_TILE];
  float sample[IMK_SHCENTROID_BAND_ROWS][CHAIN_TILE];
  double weight_y[IMK_SHCENTROID_BAND_ROWS][CHAIN_TILE];
  const float *flat[IMK_SHCENTROID_BAND_ROWS]; /* NULL for none */
} ChainColumns;

/* The sums of the columns of one vector, in registers. */
typedef struct ChainStrip {
  Reals p, py, q, qy, qyy, raw;
  Floats max, max_sample;
} ChainStrip;

/* Samples as they came. */
FUNCTION void
load_samples (
    const Frame *f, uint32_t x, uint32_t y, uint32_t n, float *restrict sample)
{
  const uint8_t *row = (const uint8_t *) f->in->data + y * f->in->stride;
  const uint8_t *bytes = row + x;
  const uint16_t *words = (const uint16_t *) row + x;

  if (f->in->type == IMK_TYPE_U8)
    for (uint32_t i = 0; i < n; i++)
      sample[i] = bytes[i];
  else
    for (uint32_t i = 0; i < n; i++)
      sample[i] = words[i];
}

/* The next row is elsewhere, and too short for the processor to see it come. */
INLINE void
fetch_ahead (const float *from, uint32_t n)
{
  for (uint32_t i = 0; i < n; i += 64 / sizeof (*from))
    __builtin_prefetch (from + i);
}

/* Columns [@x, @x + @n) of row @y of the frame, calibrated. */
FUNCTION void
load_row (
    const Frame *f, uint32_t x, uint32_t y, uint32_t n, float *restrict value)
{
  const Cpu *cpu = f->cpu;
  size_t at = (size_t) y * cpu->plan.width + x;
  const float *dark, *flat;

  load_samples (f, x, y, n, value);
  for (uint32_t i = 0; cpu->lut && i < n; i++)
    value[i] = cpu->lut[(uint32_t) value[i]];
  if (!cpu->dark)
    return;
  dark = cpu->dark + at;
  flat = cpu->flat + at;
  if (y + 1 < cpu->plan.height) {
    fetch_ahead (dark + cpu->plan.width, n);
    fetch_ahead (flat + cpu->plan.width, n);
  }
  for (uint32_t i = 0; i < n; i++) {
    ImkShcentroidPixel pixel = {dark[i], flat[i]};

    value[i] = imk_shcentroid_calibrate (value[i], pixel);
  }
}

/* The flat of the same, for its zeros. */
INLINE const float *
flat_row (const Frame *f, uint32_t x, uint32_t y)
{
  return f->cpu->flat ? f->cpu->flat + (size_t) y * f->cpu->plan.width + x
                      : NULL;
}

/* ------------------------------------------------------------------------
 * Ranges and levels. */

INLINE void
add_range (const float *restrict values, const float *restrict flat, uint32_t n,
    const bool calibrated, float *restrict min, float *restrict max,
    uint32_t *restrict count)
{
  for (uint32_t i = 0; i < n; i++) {
    float value = values[i];
    uint32_t good = calibrated ? flat[i] != 0.0f : true;

    min[i] = (good & (value < min[i])) ? value : min[i];
    max[i] = (good & (value > max[i])) ? value : max[i];
    count[i] += good;
  }
}

FUNCTION void
find_ranges (ChainTile *t)
{
  uint32_t width = tile_width (t), left = t->windows[0].x;

  for (uint32_t i = 0; i < t->n; i++)
    t->ranges[i] = (ImkShcentroidRange){3e38f, -3e38f, 0};
  for (uint32_t x = 0; x < width; x += CHAIN_TILE) {
    uint32_t n = width - x < CHAIN_TILE ? width - x : CHAIN_TILE;
    float min[CHAIN_TILE], max[CHAIN_TILE];
    uint32_t count[CHAIN_TILE] = {0}, column = 0;
    float values[CHAIN_TILE];

    for (uint32_t i = 0; i < n; i++) {
      min[i] = 3e38f;
      max[i] = -3e38f;
    }
    for (uint32_t y = 0; y < t->windows[0].height; y++) {
      uint32_t row = t->windows[0].y + y;

      load_row (t->f, left + x, row, n, values);
      if (t->f->cpu->flat)
        add_range (
            values, flat_row (t->f, left + x, row), n, true, min, max, count);
      else
        add_range (values, NULL, n, false, min, max, count);
    }
    for (uint32_t i = 0; i < t->n; i++) {
      ImkShcentroidRange *range = &t->ranges[i];

      for (uint32_t k = 0; k < t->windows[i].width && column < n;
           k++, column++) {
        range->min = min[column] < range->min ? min[column] : range->min;
        range->max = max[column] > range->max ? max[column] : range->max;
        range->n += count[column];
      }
    }
  }
}

/* How many pixels of the window reach @key, and the smallest that does. */
FUNCTION uint32_t
count_brighter (const ChainTile *t, const ImkShcentroidWindow *w, uint32_t key,
    uint32_t *smallest)
{
  uint32_t count = 0, least = UINT32_MAX;
  float values[CHAIN_TILE];

  for (uint32_t y = 0; y < w->height; y++)
    for (uint32_t x = 0; x < w->width; x += CHAIN_TILE) {
      uint32_t n = w->width - x < CHAIN_TILE ? w->width - x : CHAIN_TILE;
      const float *flat = flat_row (t->f, w->x + x, w->y + y);

      load_row (t->f, w->x + x, w->y + y, n, values);
      for (uint32_t i = 0; i < n; i++) {
        uint32_t k = imk_shcentroid_key (values[i]);
        bool counts = k >= key && (!flat || flat[i] != 0.0f);

        count += counts;
        least = counts && k < least ? k : least;
      }
    }
  *smallest = least;
  return count;
}

/* Returns: the level of the brightest pixels of cell @i */
FUNCTION double
find_brightest (const ChainTile *t, uint32_t i)
{
  uint32_t rank = imk_shcentroid_rank (&t->f->cpu->params, t->ranges[i].n);
  ImkShcentroidSearch search;
  bool found = false;

  if (rank == 0)
    return -imk_shcentroid_infinity ();
  search = imk_shcentroid_search (t->ranges[i], rank);
  while (!found && search.high - search.low > 1) {
    uint32_t smallest, n = count_brighter (t, &t->windows[i],
                           imk_shcentroid_search_key (&search), &smallest);

    found = imk_shcentroid_search_step (&search, n, smallest);
  }
  return imk_shcentroid_value_of_key (search.low);
}

FUNCTION void
find_levels (ChainTile *t)
{
  const Cpu *cpu = t->f->cpu;

  if (imk_shcentroid_needs_range (&cpu->params))
    find_ranges (t);
  for (uint32_t i = 0; i < t->n; i++) {
    double brightest = -imk_shcentroid_infinity ();

    if (cpu->params.brightest > 0)
      brightest = find_brightest (t, i);
    t->levels[i] =
        imk_shcentroid_level (&cpu->params, cpu->rects[t->first + i].threshold,
            t->ranges[i].min, t->ranges[i].max, brightest);
  }
}

/* ------------------------------------------------------------------------
 * Sums. */

/* One number a cell becomes one a column. */
INLINE void
spread_cells (const ChainTile *t, uint32_t n, const double *of_cell,
    size_t stride, double *restrict of_column)
{
  for (uint32_t i = 0, column = 0; i < t->n; i++) {
    uint32_t width = t->n == 1 ? n : t->windows[i].width;
    double value = of_cell[i * stride];

    for (uint32_t k = 0; k < width; k++)
      of_column[column + k] = value;
    column += width;
  }
}

INLINE Reals
load_reals (const float *from)
{
  Floats floats;

  memcpy (&floats, from, sizeof (floats));
  return __builtin_convertvector(floats, Reals);
}

INLINE Reals
read_reals (const double *from)
{
  Reals reals;

  memcpy (&reals, from, sizeof (reals));
  return reals;
}

/* No vector code, and out of line: powers are rare. */
FUNCTION void
raise_reals (Reals *p, double power)
{
  for (uint32_t i = 0; i < REALS; i++)
    (*p)[i] = imk_shcentroid_power ((*p)[i], power);
}

INLINE Floats
larger (Floats a, Floats b, FloatMasks good)
{
  FloatMasks take = (b > a) & good;

  return (Floats) (((FloatMasks) b & take) | ((FloatMasks) a & ~take));
}

/* imk_shcentroid_part () and ..._spread () of the pixels of columns [@i, @i +
 * REALS) in row @k of the band, which is row @y of the cell. */
INLINE void
add_pixels (ChainStrip *s, const ChainColumns *c, uint32_t i, uint32_t k,
    double y, const ImkShcentroidNoise *noise, double power, const bool all,
    const bool calibrated, const bool weighted, const bool powered)
{
  Reals least = read_reals (c->least + i), weight;
  Reals pedestal = read_reals (c->pedestal + i);
  Reals v = load_reals (&c->value[k][i]), d = v - pedestal, p = d;
  Reals flat = {0};
  Masks used = v >= least;
  FloatMasks good = {0};

  if (calibrated) {
    flat = load_reals (c->flat[k] + i);
    used &= flat != 0.0;
  }
  if (weighted) {
    weight = read_reals (c->weight_x + i) * read_reals (&c->weight_y[k][i]);
    p *= weight;
  }
  if (powered)
    raise_reals (&p, power);
  p = (Reals) ((Masks) p & used);
  s->p += p;
  s->py += y * p;
  if (all) {
    Masks lit = v > 0.0;
    Reals light = (Reals) ((Masks) v & lit), q;
    Floats value, sample;

    q = calibrated ? flat * light * noise->per_count + flat * flat * noise->read
                   : light * noise->per_count + noise->read;
    if (powered) {
      Masks above = v > pedestal;
      Reals slope = (Reals) ((Masks) (power * p / d) & above);

      q = slope * slope * q;
    } else if (weighted) {
      q = weight * weight * q;
    }
    q = (Reals) ((Masks) q & used);
    s->q += q;
    s->qy += y * q;
    s->qyy += y * y * q;
    s->raw += v;
    memcpy (&value, &c->value[k][i], sizeof (value));
    memcpy (&sample, &c->sample[k][i], sizeof (sample));
    if (calibrated) {
      Floats of_good;

      memcpy (&of_good, c->flat[k] + i, sizeof (of_good));
      good = of_good != 0.0f;
    } else {
      good = ~good;
    }
    s->max = larger (s->max, value, good);
    s->max_sample = larger (s->max_sample, sample, good);
  }
}

/* All rows of one vector of columns. */
INLINE void
sum_chain_strip (ChainColumns *c, uint32_t i, uint32_t n_rows, const double *y,
    const ImkShcentroidNoise *noise, double power, const bool all,
    const bool calibrated, const bool weighted, const bool powered)
{
  ChainStrip s = {.p = {0}};

  s.max -= 3.4e38f;
  for (uint32_t k = 0; k < n_rows; k++)
    add_pixels (
        &s, c, i, k, y[k], noise, power, all, calibrated, weighted, powered);
  memcpy (&c->sums[CHAIN_P][i], &s.p, sizeof (s.p));
  memcpy (&c->sums[CHAIN_PY][i], &s.py, sizeof (s.py));
  if (all) {
    memcpy (&c->sums[CHAIN_Q][i], &s.q, sizeof (s.q));
    memcpy (&c->sums[CHAIN_QY][i], &s.qy, sizeof (s.qy));
    memcpy (&c->sums[CHAIN_QYY][i], &s.qyy, sizeof (s.qyy));
    memcpy (&c->sums[CHAIN_RAW][i], &s.raw, sizeof (s.raw));
    memcpy (&c->max[i], &s.max, sizeof (s.max));
    memcpy (&c->max_sample[i], &s.max_sample, sizeof (s.max_sample));
  }
}

/* Each combination is a loop of its own. */
FUNCTION void
sum_chain_strips (ChainColumns *c, uint32_t n, uint32_t n_rows, const double *y,
    const ImkShcentroidNoise *noise, const ImkShcentroidParams *params,
    bool all, bool calibrated)
{
  bool weighted = params->weighting != IMK_SHCENTROID_WEIGHTING_NONE;
  double power = params->power;

#define SUM_STRIPS(a, b, d, e) \
  for (uint32_t i = 0; i < n; i += REALS) \
  sum_chain_strip (c, i, n_rows, y, noise, power, a, b, d, e)
  if (power != 1.0 && weighted)
    SUM_STRIPS (all, calibrated, true, true);
  else if (power != 1.0)
    SUM_STRIPS (all, calibrated, false, true);
  else if (all && calibrated && weighted)
    SUM_STRIPS (true, true, true, false);
  else if (all && calibrated)
    SUM_STRIPS (true, true, false, false);
  else if (all && weighted)
    SUM_STRIPS (true, false, true, false);
  else if (all)
    SUM_STRIPS (true, false, false, false);
  else if (calibrated && weighted)
    SUM_STRIPS (false, true, true, false);
  else if (calibrated)
    SUM_STRIPS (false, true, false, false);
  else if (weighted)
    SUM_STRIPS (false, false, true, false);
  else
    SUM_STRIPS (false, false, false, false);
#undef SUM_STRIPS
}

/* What the columns [@x, @x + @n) of the tile have in every band. */
FUNCTION void
prepare_columns (
    const ChainTile *t, uint32_t x, uint32_t n, bool cached, ChainColumns *c)
{
  const ImkShcentroidParams *params = &t->f->cpu->params;

  spread_cells (t, n, &t->levels[0].least, 2, c->least);
  spread_cells (t, n, &t->levels[0].pedestal, 2, c->pedestal);
  for (uint32_t i = 0, column = 0; i < t->n; i++) {
    uint32_t width = t->windows[i].width, some = t->n == 1 ? n : width;

    for (uint32_t k = 0; k < some; k++)
      c->u[column + k] = imk_shcentroid_coordinate (params, x + k, width);
    if (params->weighting != IMK_SHCENTROID_WEIGHTING_NONE)
      weight_columns (t, i, x, some, cached, c->weight_x + column);
    column += some;
  }
}

FUNCTION void
weigh_columns (const ChainTile *t, uint32_t n, uint32_t y, uint32_t n_rows,
    bool cached, ChainColumns *c)
{
  for (uint32_t i = 0, column = 0; i < t->n; i++) {
    uint32_t some = t->n == 1 ? n : t->windows[i].width;
    double weights[IMK_SHCENTROID_BAND_ROWS];

    weight_rows (t, i, y, n_rows, cached, weights);
    for (uint32_t k = 0; k < n_rows; k++)
      for (uint32_t u = column; u < column + some; u++)
        c->weight_y[k][u] = weights[k];
    column += some;
  }
}

/* The pixels and the sums of columns [@x, @x + @n) of the tile in the band that
 * begins at row @y. Vectors reach beyond the last column, which means
 * nothing. */
FUNCTION void
load_band (const ChainTile *t, uint32_t x, uint32_t n, uint32_t y,
    uint32_t n_rows, bool cached, ChainColumns *c)
{
  const Cpu *cpu = t->f->cpu;
  const ImkShcentroidParams *params = &cpu->params;
  const ImkShcentroidWindow *w = t->windows;
  bool all = cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  ImkShcentroidNoise noise = {
      1.0 / params->gain, params->read_noise * params->read_noise};
  double rows[IMK_SHCENTROID_BAND_ROWS];

  for (uint32_t k = 0; k < n_rows; k++) {
    rows[k] = imk_shcentroid_coordinate (params, y + k, w->height);
    load_row (t->f, w->x + x, w->y + y + k, n, c->value[k]);
    c->flat[k] = flat_row (t->f, w->x + x, w->y + y + k);
    if (all && (cpu->dark || cpu->lut))
      load_samples (t->f, w->x + x, w->y + y + k, n, c->sample[k]);
    else if (all)
      memcpy (c->sample[k], c->value[k], n * sizeof (float));
  }
  if (params->weighting != IMK_SHCENTROID_WEIGHTING_NONE)
    weigh_columns (t, n, y, n_rows, cached, c);
  sum_chain_strips (c, n, n_rows, rows, &noise, params, all, cpu->dark != NULL);
  for (uint32_t i = 0; i < n; i++)
    c->sums[CHAIN_PU][i] = 0.0 + c->u[i] * c->sums[CHAIN_P][i];
  for (uint32_t i = 0; all && i < n; i++) {
    c->sums[CHAIN_QU][i] = 0.0 + c->u[i] * c->sums[CHAIN_Q][i];
    c->sums[CHAIN_QUU][i] = 0.0 + c->u[i] * c->u[i] * c->sums[CHAIN_Q][i];
  }
}

/* Adds up @n lanes from @first on by halves; those from @n on count as 0. The
 * lanes fill @n_vectors, a power of 2. To sums[...][@first]. */
INLINE void
halve_vectors (ChainSums sums, const uint32_t n_sums, uint32_t first,
    uint32_t n, const uint32_t n_vectors)
{
  Masks real[IMK_SHCENTROID_LANES / REALS];

  for (uint32_t j = 0; j < n_vectors; j++)
    real[j] = read_reals (lane_numbers + j * REALS) < (double) n;
  for (uint32_t k = 0; k < n_sums; k++) {
    double *at = &sums[k][first];
    Reals v[IMK_SHCENTROID_LANES / REALS];
    double last[REALS];

    for (uint32_t j = 0; j < n_vectors; j++)
      v[j] = (Reals) ((Masks) read_reals (at + j * REALS) & real[j]);
    for (uint32_t step = n_vectors / 2; step; step /= 2)
      for (uint32_t j = 0; j < step; j++)
        v[j] += v[j + step];
    memcpy (last, &v[0], sizeof (last));
    for (uint32_t step = REALS / 2; step; step /= 2)
      for (uint32_t i = 0; i < step; i++)
        last[i] += last[i + step];
    *at = last[0];
  }
}

/* The same, by the number of vectors that it takes. */
INLINE void
halve (ChainSums sums, const uint32_t n_sums, uint32_t first, uint32_t n)
{
  if (n <= REALS)
    halve_vectors (sums, n_sums, first, n, 1);
  else if (n <= 2 * REALS)
    halve_vectors (sums, n_sums, first, n, 2);
  else if (n <= 4 * REALS)
    halve_vectors (sums, n_sums, first, n, 4);
  else if (n <= 8 * REALS)
    halve_vectors (sums, n_sums, first, n, 8);
  else
    halve_vectors (sums, n_sums, first, n, 16);
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

INLINE void
add_cell (ImkShcentroidReals *s, ChainSums sums, uint32_t at, const bool all)
{
  s->p += sums[CHAIN_P][at];
  s->pu += sums[CHAIN_PU][at];
  s->py += sums[CHAIN_PY][at];
  if (all) {
    s->q += sums[CHAIN_Q][at];
    s->qu += sums[CHAIN_QU][at];
    s->qy += sums[CHAIN_QY][at];
    s->quu += sums[CHAIN_QUU][at];
    s->qyy += sums[CHAIN_QYY][at];
    s->raw += sums[CHAIN_RAW][at];
  }
}

INLINE void
add_maxima (
    ImkShcentroidReals *s, const ChainColumns *c, uint32_t first, uint32_t n)
{
  float max = s->max, max_sample = (float) s->max_sample;

  for (uint32_t i = first; i < first + n; i++) {
    max = c->max[i] > max ? c->max[i] : max;
    max_sample = c->max_sample[i] > max_sample ? c->max_sample[i] : max_sample;
  }
  s->max = max;
  s->max_sample = (uint32_t) max_sample;
}

/* From the columns [@x, @x + @n) of a tile to its cells, in one band; all of
 * them but when the tile is one wide cell, whose @lanes are filled piece by
 * piece. */
INLINE void
sum_band (ChainTile *t, ChainColumns *c, uint32_t x, uint32_t n, bool last,
    ChainSums lanes, const bool all)
{
  const uint32_t n_sums = all ? N_CHAIN_SUMS : N_CHAIN_XY_SUMS;

  for (uint32_t i = 0, column = 0; i < t->n; i++) {
    uint32_t width = t->windows[i].width, some = t->n == 1 ? n : width;

    if (all)
      add_maxima (&t->sums[i], c, column, some);
    if (width <= IMK_SHCENTROID_LANES) {
      halve (c->sums, n_sums, column, width);
      add_cell (&t->sums[i], c->sums, column, all);
    } else {
      for (uint32_t k = 0; x == 0 && k < n_sums; k++)
        memset (lanes[k], 0, IMK_SHCENTROID_LANES * sizeof (double));
      gather_lanes (c, n_sums, column, some, x, lanes);
      if (last) {
        halve (lanes, n_sums, 0, IMK_SHCENTROID_LANES);
        add_cell (&t->sums[i], lanes, 0, all);
      }
    }
    column += some;
  }
}

FUNCTION void
sum_chain (ChainTile *t, bool cached, ChainColumns *c)
{
  const ImkShcentroidWindow *w = t->windows;
  bool all = t->f->cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  ChainSums lanes;
  uint32_t width = tile_width (t);

  for (uint32_t i = 0; i < t->n; i++)
    t->sums[i] = (ImkShcentroidReals){.max = -3.4e38f};
  for (uint32_t y = 0; y < w->height; y += IMK_SHCENTROID_BAND_ROWS) {
    uint32_t n_rows = w->height - y < IMK_SHCENTROID_BAND_ROWS
                          ? w->height - y
                          : IMK_SHCENTROID_BAND_ROWS;

    for (uint32_t x = 0; x < width; x += CHAIN_TILE) {
      uint32_t n = width - x < CHAIN_TILE ? width - x : CHAIN_TILE;
      bool last = x + n == width;

      if (y == 0 || width > CHAIN_TILE)
        prepare_columns (t, x, n, cached, c);
      load_band (t, x, n, y, n_rows, cached, c);
      if (all)
        sum_band (t, c, x, n, last, lanes, true);
      else
        sum_band (t, c, x, n, last, lanes, false);
    }
  }
}

FUNCTION void
measure_chain (const Frame *f, uint32_t first, uint32_t n)
{
  const Cpu *cpu = f->cpu;
  bool cached = cpu->weights &&
                cpu->params.weighting == IMK_SHCENTROID_WEIGHTING_GAUSSIAN &&
                cpu->params.window == IMK_SHCENTROID_WINDOW_CELL;
  ChainColumns columns;
  ChainTile tile;

  if (n == 0)
    return;
  chain_begin (&tile, f, first, n);
  find_levels (&tile);
  sum_chain (&tile, cached, &columns);
  for (uint32_t i = 1; i < cpu->params.iterations; i++) {
    move_weights (&tile);
    sum_chain (&tile, false, &columns);
  }
  chain_end (&tile);
}

#undef Reals
#undef Masks
#undef Floats
#undef FloatMasks
#undef REALS
#undef ChainColumns
#undef ChainStrip
#undef load_samples
#undef load_row
#undef add_range
#undef find_ranges
#undef find_brightest
#undef count_brighter
#undef find_levels
#undef spread_cells
#undef load_reals
#undef read_reals
#undef raise_reals
#undef larger
#undef add_pixels
#undef sum_chain_strip
#undef sum_chain_strips
#undef load_band
#undef prepare_columns
#undef weigh_columns
#undef ChainSums
#undef fetch_ahead
#undef flat_row
#undef halve_vectors
#undef halve
#undef gather_lanes
#undef add_maxima
#undef add_cell
#undef sum_band
#undef sum_chain
#undef measure_chain
