/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From samples straight to the sums of their columns: a strip of columns goes
 * through all rows of a band in registers. Samples, dark and flat are read in
 * place; no pixel is stored but those of copy_band (). */
#pragma once

#include "shcentroid/cpu/columns.h"
#include "shcentroid/cpu/rows.h"
#include "shcentroid/cpu/singles.h"

/* Columns of a strip that go together: vectors of float32, of which HALVES are
 * as many vectors of float64. The more, the less a row costs beside them; 16
 * bytes of each are too many vectors for the registers. */
enum {
  HALVES = 2,
  MOST_VECTORS = IMK_VECTOR_SIZE >= 32 ? STRIP_COLUMNS / SINGLES : 1,
};

/* Where columns begin, in the first row of a band: the samples and what there
 * is of every pixel, @row numbers from row to row. */
typedef struct StripPlace {
  const uint8_t *samples;
  size_t stride; /* bytes */
  uint32_t size; /* log2 of the bytes of a sample */
  const float *dark, *flat;
  const uint32_t *packed; /* instead of these; or NULL */
  Packing packing;
  size_t row, strip; /* from strip to strip; 0: as in the frame */
  uint32_t n_rows;   /* of the band */
  const double *ys;  /* their coordinates, of a quad cell only */
} StripPlace;

/* One row of it. */
typedef struct StripRow {
  const uint8_t *samples;
  ptrdiff_t there;       /* of dark and flat, from those of the place */
  const double *weights; /* of its cells, or one for all */
  double y;
} StripRow;

/* What becomes of it. */
typedef struct StripSums {
  VectorSums half[HALVES];
  Singles max, max_sample;
} StripSums;

/* What comes next: the samples of the strips beside this one in the next line
 * of the cache, dark and flat of the next strips. Processors fetch ahead by
 * themselves, but not far enough from the third level: 64 rows, some 150 ns. */
INLINE void
fetch_ahead (const StripRow *row, const StripPlace *at, const ChainWay way)
{
  enum { LINE = 64, PIXELS = 2 * STRIP_COLUMNS * IMK_SHCENTROID_BAND_ROWS };
  ptrdiff_t next = row->there + PIXELS;

  __builtin_prefetch (row->samples + LINE);
  if (way.packed) {
    __builtin_prefetch (at->packed + next);
  } else if (at->strip) {
    __builtin_prefetch (at->dark + next);
    __builtin_prefetch (at->flat + next);
  }
}

/* imk_shcentroid_sample () of float32. */
INLINE Singles
strip_singles (const uint8_t *from)
{
  Singles singles = read_singles ((const float *) (const void *) from);
  Singles none = {0};
  Ints finite = (Ints) (singles <= none + 1e30f) & (singles >= none - 1e30f);

  return (
      Singles) (((Ints) singles & finite) |
                ((Ints) (none + (float) imk_shcentroid_infinity ()) & ~finite));
}

/* What @table has for as many samples as read_samples () reads. With AVX2 an
 * AMD processor reads one table sooner number by number (0.7 of the time), two
 * by gathering (0.75). */
INLINE Reals
list_samples (
    const double *table, const uint8_t *from, bool words, const bool two)
{
#if IMK_VECTOR_SIZE == 64
  __m256i at =
      words ? _mm256_cvtepu16_epi32 (_mm_loadu_si128 ((const void *) from))
            : _mm256_cvtepu8_epi32 (_mm_loadl_epi64 ((const void *) from));

  return (Reals) _mm512_i32gather_pd (at, table, sizeof (double));
#else
  Reals reals = {0};

#if IMK_VECTOR_SIZE == 32
  if (two) {
    int four;
    __m128i at;

    memcpy (&four, from, sizeof (four));
    at = words ? _mm_cvtepu16_epi32 (_mm_loadl_epi64 ((const void *) from))
               : _mm_cvtepu8_epi32 (_mm_cvtsi32_si128 (four));
    return (Reals) _mm256_i32gather_pd (table, at, sizeof (double));
  }
#endif
  if (words)
    for (uint32_t i = 0; i < REALS; i++)
      reals[i] = table[((const uint16_t *) from)[i]];
  else
    for (uint32_t i = 0; i < REALS; i++)
      reals[i] = table[from[i]];
  return reals;
#endif
}

INLINE Reals
widen_half (const Singles *singles, uint32_t half)
{
  float floats[SINGLES];

  memcpy (floats, singles, sizeof (floats));
  return widen (floats + half * REALS);
}

/* What is not a number is not larger. */
INLINE Singles
larger_single (Singles a, Singles b)
{
  Ints take = b > a;

  return (Singles) (((Ints) b & take) | ((Ints) a & ~take));
}

/* Bytes less the darks of @packed: the sample in the lower half, the units of
 * the dark in the upper one, each times a factor. 256 times as many units. */
INLINE Words
subtract_darks (const Packing *p, Words bytes, Words packed)
{
  Words pairs = bytes | (packed & ~(uint32_t) PACKED_FLAT);
  Words factors = (Words){0} + p->factors;

#if IMK_VECTOR_SIZE == 64
  return (Words) _mm512_madd_epi16 ((__m512i) pairs, (__m512i) factors);
#elif IMK_VECTOR_SIZE == 32
  return (Words) _mm256_madd_epi16 ((__m256i) pairs, (__m256i) factors);
#else
  return (pairs & 0xffff) * (factors & 0xffff) - (pairs >> 16);
#endif
}

INLINE Singles
subtract_units (const Packing *p, Words words, Words packed)
{
  Singles samples = convert_words (words) - p->dark;
  Singles units = convert_words (packed >> 24);

  return samples - units * p->unit;
}

/* The values of @samples with the darks and the flats of pack_pixel (). A bad
 * pixel is looked for only where pixels may be left out. */
INLINE Singles
unpack_strip (
    const StripPlace *at, ptrdiff_t there, Words samples, const bool cut)
{
  const Packing *p = &at->packing;
  Words packed;
  Singles light;

  memcpy (&packed, at->packed + there, sizeof (packed));
  if (at->size)
    light = subtract_units (p, samples, packed);
  else
    light = convert_words (subtract_darks (p, samples, packed));
  if (cut)
    light = (Singles) ((Words) light | (Words) (packed >> 24 == PACKED_BAD));
  return light * (Singles) (p->flat | (packed & PACKED_FLAT));
}

/* The weights of each vector of a strip. */
typedef CellWeights StripWeights[MOST_VECTORS * HALVES];

/* A vector of pixels: their values, samples as they came and flats. */
typedef struct StripPixels {
  Singles value, sample, flat;
} StripPixels;

/* Vector @k of a row of a strip, as far as it is wanted in float32. */
INLINE StripPixels
strip_pixels (
    const StripPlace *at, const StripRow *row, uint32_t k, const ChainWay way)
{
  const uint8_t *from =
      row->samples + (k * SINGLES << (way.floats ? 2 : at->size));
  ptrdiff_t there = row->there + k * SINGLES;
  StripPixels p = {.sample = {0}};

  if (way.floats)
    p.sample = strip_singles (from);
  else if (!way.packed && (way.flat || way.all))
    p.sample = convert_words (read_words (from, at->size));
  p.value = p.sample;
  if (way.packed) {
    p.value = unpack_strip (at, there, read_words (from, at->size), way.cut);
  } else if (way.flat) {
    p.flat = read_singles (at->flat + there);
    p.value = (p.sample - read_singles (at->dark + there)) * p.flat;
  }
  return p;
}

/* Half @h of it. */
INLINE Reals
strip_reals (const StripPlace *at, const StripRow *row, const StripPixels *p,
    uint32_t k, uint32_t h, const ChainWay way)
{
  if (way.flat || way.all || way.floats)
    return widen_half (&p->value, h);
  return read_samples (
      row->samples + ((k * SINGLES + h * REALS) << at->size), at->size);
}

/* The powers of @n vectors of a row, from column @i on. */
INLINE void
raise_strip_row (Reals *p, const StripPlace *at, const ChainColumns *c,
    uint32_t i, const uint32_t n, const StripRow *row, const ChainRows *r,
    const ChainWay way)
{
  for (uint32_t k = 0; k < n; k++) {
    StripPixels pixels = strip_pixels (at, row, k, way);

    for (uint32_t h = 0; h < HALVES; h++)
      p[k * HALVES + h] = base_of (c, i + k * SINGLES + h * REALS,
          strip_reals (at, row, &pixels, k, h, way), way);
  }
  raise_vectors (p, n * HALVES, &r->raising);
}

/* Vector @k of a row of a strip, to the groups of both halves. @i: its first
 * column in the tile, @begins: the row its group, @raised: its powers, if any
 */
INLINE void
add_strip_vector (ChainStrip g[HALVES], StripSums *s, const StripPlace *at,
    const ChainColumns *c, uint32_t i, uint32_t k, const StripRow *row,
    const ChainRows *r, const StripWeights weights, const Reals *raised,
    const bool begins, const ChainWay way)
{
  StripPixels pixels = strip_pixels (at, row, k, way);

  if (way.all) {
    s->max = larger_single (s->max, pixels.value);
    if (way.flat) {
      Ints good = pixels.value == pixels.value;

      s->max_sample = larger_single (
          s->max_sample, (Singles) ((Ints) pixels.sample & good));
    }
  }
  for (uint32_t h = 0; h < HALVES; h++) {
    const uint8_t *samples =
        row->samples + ((k * SINGLES + h * REALS) << at->size);
    Reals v = {0}, weight = {0}, p, derivative;

    if (!way.listed || way.all)
      v = strip_reals (at, row, &pixels, k, h, way);
    if (way.moving)
      weight = spread_weights (row->weights, &weights[k * HALVES + h]);
    else if (way.weighted)
      weight = all_reals (*row->weights);
    if (way.listed)
      p = list_samples (r->powers, samples, at->size, way.all);
    else
      p = way.raised ? raised[k * HALVES + h]
                     : base_of (c, i + h * REALS, v, way);
    p = weigh_power (c, i + h * REALS, v, p, weight, way);
    add_part (&g[h], row->y, p, begins, way);
    if (!way.all)
      continue;
    derivative = way.listed
                     ? list_samples (r->derivatives, samples, at->size, true)
                     : derivative_of (c, i + h * REALS, r, v, weight, p, way);
    add_spread (&g[h], c, i + h * REALS, row->y, r, v,
        widen_half (&pixels.flat, h), derivative, begins, way);
    if (way.cut || way.weighted || way.raised || way.quad)
      g[h].raw += way.flat ? (Reals) ((Masks) v & (v == v)) : v;
  }
}

INLINE void
add_sums (VectorSums *to, const VectorSums *more, const ChainWay way)
{
  to->p += more->p;
  to->py += more->py;
  if (!way.all)
    return;
  to->q += more->q;
  to->qy += more->qy;
  to->qyy += more->qyy;
  to->raw += more->raw;
}

/* A row of a strip of @n vectors. */
INLINE void
add_strip_row (ChainStrip g[][HALVES], StripSums s[], const StripPlace *at,
    const ChainColumns *c, uint32_t i, const uint32_t n, const StripRow *row,
    const ChainRows *r, const StripWeights weights, const bool begins,
    const ChainWay way)
{
  Reals raised[MOST_VECTORS * HALVES];

  if (way.flat)
    fetch_ahead (row, at, way);
  if (way.raised && !way.listed)
    raise_strip_row (raised, at, c, i, n, row, r, way);
  for (uint32_t k = 0; k < n; k++)
    add_strip_vector (g[k], &s[k], at, c, i + k * SINGLES, k, row, r, weights,
        raised, begins, way);
}

/* The rows [@y, @end) of the band, which are a group, from the last. */
INLINE void
add_strip_rows (ChainStrip g[][HALVES], StripSums s[], const StripPlace *at,
    const ChainColumns *c, uint32_t i, const uint32_t n, uint32_t y,
    uint32_t end, const ChainRows *r, const StripWeights weights,
    const ChainWay way)
{
  ptrdiff_t down = (ptrdiff_t) at->row;
  StripRow row = {
      .samples = at->samples + (end - 1) * at->stride,
      .there = (at->strip ? at->n_rows - end : end - 1) * down,
      .weights = r->weights + (end - 1) * r->stride,
      .y = way.quad ? at->ys[end - 1] : 0,
  };

  add_strip_row (g, s, at, c, i, n, &row, r, weights, true, way);
  for (uint32_t k = end - 1; k-- > y;) {
    row.samples -= at->stride;
    row.there += at->strip ? down : -down;
    row.weights -= r->stride;
    row.y = way.quad ? at->ys[k] : 0;
    add_strip_row (g, s, at, c, i, n, &row, r, weights, false, way);
  }
}

/* All rows of a band in @n vectors, by groups from the top. @first: the row of
 * the window that the band begins with */
INLINE void
sum_strip (ChainColumns *c, uint32_t i, const StripPlace *at,
    const ChainRows *r, uint32_t group_rows, uint32_t first, const uint32_t n,
    const ChainWay way)
{
  const uint32_t n_rows = at->n_rows;
  const Singles none = {0};
  StripSums s[MOST_VECTORS];
  StripWeights weights;

  for (uint32_t k = 0; way.moving && k < n * HALVES; k++)
    weights[k] = cell_weights (c, i + k * REALS);
  for (uint32_t k = 0; k < n; k++)
    s[k] = (StripSums){.max = none - 3.4e38f, .max_sample = none};
  for (uint32_t y = 0; y < n_rows; y += group_rows) {
    uint32_t end = n_rows - y < group_rows ? n_rows : y + group_rows;
    ChainStrip g[MOST_VECTORS][HALVES] = {{{.p = {0}}}};

    add_strip_rows (g, s, at, c, i, n, y, end, r, weights, way);
    for (uint32_t k = 0; k < n * HALVES; k++) {
      VectorSums *half = &s[k / HALVES].half[k % HALVES];
      VectorSums sums = group_sums (&g[k / HALVES][k % HALVES], first + y, way);

      if (y == 0)
        *half = sums;
      else
        add_sums (half, &sums, way);
    }
  }
  for (uint32_t k = 0; k < n * HALVES; k++)
    end_vector (c, i + k * REALS, s[k / HALVES].half[k % HALVES], way);
  for (uint32_t k = 0; way.all && k < n; k++) {
    memcpy (c->max + i + k * SINGLES, &s[k].max, sizeof (Singles));
    memcpy (
        c->max_sample + i + k * SINGLES, &s[k].max_sample, sizeof (Singles));
  }
}

/* Strip @i of those from @band on, which begins at column @start; columns from
 * @from on. */
INLINE StripPlace
strip_place (const StripPlace *band, uint32_t i, uint32_t start, uint32_t from)
{
  StripPlace at = *band;
  size_t there = at.strip ? i * at.strip + from : start + from;

  at.samples += (size_t) (start + from) << at.size;
  if (at.packed)
    at.packed += there;
  if (at.dark) {
    at.dark += there;
    at.flat += there;
  }
  return at;
}

/* @n columns; the last strip ends with the row of the frame, @left columns from
 * here, if not before, and sums up some again. */
INLINE void
sum_strips (ChainColumns *c, uint32_t n, uint32_t left, const StripPlace *band,
    const ChainRows *r, uint32_t group_rows, uint32_t first, const ChainWay way)
{
  /* all fields have three times the sums */
  const uint32_t n_vectors = way.all ? 1 : MOST_VECTORS;
  uint32_t last = left - STRIP_COLUMNS;

  for (uint32_t i = 0; i * STRIP_COLUMNS < n; i++)
    for (uint32_t k = 0; k < STRIP_COLUMNS; k += n_vectors * SINGLES) {
      uint32_t start = i * STRIP_COLUMNS < last ? i * STRIP_COLUMNS : last;
      StripPlace at = strip_place (band, i, start, k);

      sum_strip (c, start + k, &at, r, group_rows, first, n_vectors, way);
    }
}

/* Would a strip of the columns from @x of the tile on reach beyond the frame?
 */
static bool
is_narrow (const ChainTile *t, uint32_t x)
{
  return t->windows[0].x + x + STRIP_COLUMNS > t->f->cpu->plan.width;
}

/* The samples of @n columns of a band, or what the look-up table has for them,
 * as float32, in whole vectors as load_row () has them; 0 up to a whole strip
 * where the frame ends. @x, @y: of the frame */
static void
copy_band (const Frame *f, uint32_t x, uint32_t y, uint32_t n, StripPlace *band,
    ChainColumns *c)
{
  n = whole_columns (f, x, n);
  for (uint32_t k = 0; k < band->n_rows; k++) {
    float *copy = c->copy[k];

    if (f->cpu->lut)
      look_up_samples (f, x, y + k, n, copy);
    else
      load_samples (f, x, y + k, n, copy);
    for (uint32_t i = n; i % STRIP_COLUMNS; i++)
      copy[i] = 0.0f;
  }
  band->samples = (const uint8_t *) c->copy;
  band->stride = sizeof (c->copy[0]);
  band->size = 2;
}

/* The largest samples of @n columns of a band as they came, which strips do not
 * see behind a look-up table; of pixels that are not bad. @x, @y: of the frame
 */
static void
find_max_samples (const Frame *f, uint32_t x, uint32_t y, uint32_t n,
    uint32_t n_rows, float *restrict max)
{
  const Cpu *cpu = f->cpu;
  _Alignas(64) float samples[CHAIN_ROOM];

  n = whole_columns (f, x, n);
  for (uint32_t i = 0; i < n; i++)
    max[i] = 0.0f;
  for (uint32_t k = 0; k < n_rows; k++) {
    const float *restrict dark =
        cpu->bad ? cpu->dark + (size_t) (y + k) * cpu->plan.width + x : NULL;

    load_samples (f, x, y + k, n, samples);
    for (uint32_t i = 0; dark && i < n; i++)
      samples[i] = dark[i] == dark[i] ? samples[i] : 0.0f;
    for (uint32_t i = 0; i < n; i++)
      max[i] = samples[i] > max[i] ? samples[i] : max[i];
  }
}

/* Are the sums of the columns of a packed band exact in whatever order? A byte
 * less its dark is below 2^14 units, a flat below four times the least: rounded
 * to float32 the values are multiples of one number, below 2^39 of them, and
 * their moments over 32 rows below 2^50 of them. */
static bool
is_order_free (const StripPlace *band, uint32_t height, const ChainWay *way)
{
  return band->packed && !band->size && !way->cut && !way->weighted &&
         !way->raised && height <= IMK_SHCENTROID_BAND_ROWS;
}

/* Column @x and row @y of the tile, where a band of @n_rows begins. @narrow: it
 * has no strips of dark and flat */
static StripPlace
band_place (const ChainTile *t, uint32_t x, uint32_t y, uint32_t n_rows,
    bool narrow, const double *ys)
{
  const Frame *f = t->f;
  const Cpu *cpu = f->cpu;
  const ImkShcentroidWindow *w = t->windows;
  size_t at = (size_t) (w->y + y) * cpu->plan.width + w->x + x;
  uint32_t size = f->in->type == IMK_TYPE_U8    ? 0
                  : f->in->type == IMK_TYPE_U16 ? 1
                                                : 2;
  StripPlace band = {
      .samples = (const uint8_t *) f->in->data + (w->y + y) * f->in->stride +
                 ((size_t) (w->x + x) << size),
      .stride = f->in->stride,
      .size = size,
      .row = cpu->plan.width,
      .n_rows = n_rows,
      .ys = ys,
  };

  if (cpu->strips_before && !narrow &&
      cpu->params.window == IMK_SHCENTROID_WINDOW_CELL) {
    uint32_t strip =
        cpu->strips_before[t->first % cpu->plan.columns] + x / STRIP_COLUMNS;

    band.row = STRIP_COLUMNS;
    band.strip = w->height * band.row;
    at = (size_t) (w->y - cpu->rects[0].y) * cpu->n_strips * band.row +
         strip * band.strip + y * band.row;
    band.packing = cpu->packing;
    if (cpu->packed_strips) {
      band.packed = cpu->packed_strips + at;
    } else {
      band.dark = cpu->dark_strips + at;
      band.flat = cpu->flat_strips + at;
    }
  } else if (cpu->dark) {
    band.dark = cpu->dark + at;
    band.flat = cpu->flat + at;
  }
  return band;
}

/* With a power or of quad cells: what samples are is looked up in each row. */
static void
sum_rare_strips (ChainColumns *c, uint32_t n, uint32_t left,
    const StripPlace *band, const ChainRows *r, uint32_t group_rows,
    uint32_t first, const ChainWay *way)
{
  const bool floats = band->size == 2, packed = band->packed != NULL;
  const bool listed = way->listed && !floats;

#define SUM_STRIPS(...) \
  sum_strips (c, n, left, band, r, group_rows, first, \
      (ChainWay){ \
          .flat = way->flat, .floats = floats, .packed = packed, __VA_ARGS__})
  if (way->all && listed)
    SUM_STRIPS (.all = true, .raised = true, .listed = true, .quad = way->quad);
  else if (listed && way->moving)
    SUM_STRIPS (.all = false, .raised = true, .listed = true, .weighted = true,
        .moving = true, .quad = way->quad);
  else if (listed && way->weighted)
    SUM_STRIPS (.all = false, .raised = true, .listed = true, .weighted = true,
        .quad = way->quad);
  else if (listed)
    SUM_STRIPS (.all = false, .raised = true, .listed = true,
        .quad = way->quad);
  else if (way->all && way->raised)
    SUM_WEIGHTED_OR_NOT (.all = true, .raised = true, .quad = way->quad);
  else if (way->all)
    SUM_WEIGHTED_OR_NOT (.all = true, .raised = false, .quad = true);
  else if (way->raised)
    SUM_WEIGHTED_OR_NOT (.all = false, .raised = true, .quad = way->quad);
  else
    SUM_WEIGHTED_OR_NOT (.all = false, .raised = false, .quad = true);
#undef SUM_STRIPS
}

/* The columns [@x, @x + @n) of the tile in its rows [@y, @end), which are a
 * band. Each combination is a loop of its own, but for what is rare. */
static void
sum_strips_of_band (const ChainTile *t, uint32_t x, uint32_t n, uint32_t y,
    uint32_t end, const ChainRows *r, const ChainWay *way, ChainColumns *c)
{
  const uint32_t frame_x = t->windows[0].x + x, frame_y = t->windows[0].y + y;
  const bool narrow = is_narrow (t, x);
  double ys[IMK_SHCENTROID_BAND_ROWS];
  StripPlace band = band_place (t, x, y, end - y, narrow, ys);
  uint32_t left = narrow ? CHAIN_ROOM : t->f->cpu->plan.width - frame_x;
  uint32_t height = t->windows[0].height;
  uint32_t group_rows = is_order_free (&band, height, way)
                            ? end - y
                            : imk_shcentroid_group_rows (height);

  for (uint32_t k = 0; way->quad && k < end - y; k++)
    ys[k] = imk_shcentroid_coordinate (&t->f->cpu->params, y + k, height);
  if (narrow || t->f->cpu->lut)
    copy_band (t->f, frame_x, frame_y, n, &band, c);
#define SUM_STRIPS(...) \
  sum_strips (c, n, left, &band, r, group_rows, y, (ChainWay){__VA_ARGS__})
  if (way->raised || way->quad)
    sum_rare_strips (c, n, left, &band, r, group_rows, y, way);
  else if (band.size == 2 && way->all && way->flat)
    SUM_WEIGHTED_OR_NOT (.floats = true, .all = true, .flat = true);
  else if (band.size == 2 && way->all)
    SUM_WEIGHTED_OR_NOT (.floats = true, .all = true, .flat = false);
  else if (band.size == 2 && way->flat)
    SUM_WEIGHTED_OR_NOT (.floats = true, .all = false, .flat = true);
  else if (band.size == 2)
    SUM_WEIGHTED_OR_NOT (.floats = true, .all = false, .flat = false);
  else if (way->all && way->flat)
    SUM_WEIGHTED_OR_NOT (.all = true, .flat = true);
  else if (way->all)
    SUM_WEIGHTED_OR_NOT (.all = true, .flat = false);
  else if (band.packed)
    SUM_WEIGHTED_OR_NOT (.all = false, .flat = true, .packed = true);
  else if (way->flat)
    SUM_WEIGHTED_OR_NOT (.all = false, .flat = true);
  else
    SUM_WEIGHTED_OR_NOT (.all = false, .flat = false);
#undef SUM_STRIPS
  if (way->all && t->f->cpu->lut)
    find_max_samples (t->f, frame_x, frame_y, n, end - y, c->max_sample);
}
