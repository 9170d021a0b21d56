/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A line is made in blocks of columns, whose work fits the cache and the stack.
 * Both passes are sums over the taps of samples that lie side by side: as long
 * as the whole part of the position grows by one from sample to sample, or not
 * at all, so do the addresses, and as long as the fraction stays in one step of
 * the tables, so do the weights; where either does something else, a new run
 * begins. With GMTSAR's small stretches runs have some tens of samples. */
#include <string.h>

#include "core/parallel.h"
#include "slcresample/slcresample-private.h"

#define MAX_TAPS IMK_SLCRESAMPLE_MAX_TAPS

enum {
  BLOCK = 256, /* columns that go */
  /* columns that come for them: a block stretched, and the taps */
  MAX_COLUMNS = BLOCK + BLOCK / 4 + MAX_TAPS + 4,
  PADDING = IMK_SLCRESAMPLE_PADDING,
};

/* One block of one line at work. Runs are written in whole vectors, so that
 * what stands behind one is overwritten by the next. */
typedef struct Block {
  float re[MAX_COLUMNS + PADDING]; /* after the first pass */
  float im[MAX_COLUMNS + PADDING];
  float turned_re[MAX_COLUMNS + PADDING], turned_im[MAX_COLUMNS + PADDING];
  float parts[MAX_COLUMNS + PADDING]; /* of the places, for vectors */
  ImkSlcresamplePlace places[MAX_COLUMNS];
} Block;

/* --- runs ----------------------------------------------------------------- */

#define INLINE static inline __attribute__ ((always_inline))

/* A register of AVX2. The compiler takes it apart where they are shorter; sums
 * are rounded one by one, so the bits are the same everywhere. */
enum { LANES = 8 };
typedef float Vector
    __attribute__ ((vector_size (4 * LANES), aligned (4), may_alias));

/* A run: tap k of sample i is re[k][i] and im[k][i], its weight between those
 * of one step and the next. */
typedef struct Run {
  const float *re[MAX_TAPS], *im[MAX_TAPS];
  const float *weights, *next_weights; /* [n_taps] */
  const float *parts;                  /* of a step, [n] */
  uint32_t n_taps, n;
} Run;

/* @n_vectors vectors of sums from sample @i on. */
INLINE void
sum_vectors (const Run *run, uint32_t i, uint32_t n_vectors, float *out_re,
    float *out_im)
{
  Vector re[2] = {{0}}, im[2] = {{0}};

  for (uint32_t k = 0; k < run->n_taps; k++) {
    float w = run->weights[k], step = run->next_weights[k] - w;

    for (uint32_t v = 0; v < n_vectors; v++) {
      uint32_t at = i + v * LANES;
      Vector weights = *(const Vector *) (run->parts + at) * step + w;

      re[v] += weights * *(const Vector *) (run->re[k] + at);
      im[v] += weights * *(const Vector *) (run->im[k] + at);
    }
  }
  for (uint32_t v = 0; v < n_vectors; v++) {
    *(Vector *) (out_re + i + v * LANES) = re[v];
    *(Vector *) (out_im + i + v * LANES) = im[v];
  }
}

/* Two vectors at a time, for an addition takes as long as four others. */
INLINE void
sum_run (const Run *run, float *out_re, float *out_im)
{
  uint32_t i = 0;

  for (; i + LANES < run->n; i += 2 * LANES)
    sum_vectors (run, i, 2, out_re, out_im);
  if (i < run->n)
    sum_vectors (run, i, 1, out_re, out_im);
}

typedef void (*SumFunc) (const Run *run, float *out_re, float *out_im);

static void
sum_base (const Run *run, float *out_re, float *out_im)
{
  sum_run (run, out_re, out_im);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__ ((target ("avx2"))) static void
sum_avx2 (const Run *run, float *out_re, float *out_im)
{
  sum_run (run, out_re, out_im);
}

static SumFunc
find_sum (void)
{
  return __builtin_cpu_supports ("avx2") ? sum_avx2 : sum_base;
}
#else
static SumFunc
find_sum (void)
{
  return sum_base;
}
#endif

/* Returns: how many of @n places are in one step, with addresses that grow by
 * @step from one to the next */
static uint32_t
run_length (const ImkSlcresamplePlace *places, uint32_t n, int32_t step)
{
  uint32_t i = 1;

  while (i < n && places[i].first == places[i - 1].first + step &&
         places[i].phase == places[0].phase)
    i++;
  return i;
}

static void
set_weights (Run *run, const float *table, uint32_t phase)
{
  run->weights = table + phase * run->n_taps;
  run->next_weights = run->weights + run->n_taps;
}

/* --- the passes ----------------------------------------------------------- */

typedef struct Work {
  const ImkSlcresampleBand *band;
  uint32_t line;
  ImkImage *out;
  SumFunc sum;
} Work;

static const float *
row_of (const ImkSlcresampleBand *band, int32_t line)
{
  return band->samples +
         (size_t) ((uint32_t) line % band->n_lines) * 2 * band->config.width;
}

static bool
is_inside (ImkSlcresamplePlace place, uint32_t taps, uint32_t n)
{
  return place.first >= 0 && (uint32_t) place.first + taps <= n;
}

/* One run of the first pass, of columns whose taps are the same lines. */
static void
cross_lines (
    const Work *work, Block *b, uint32_t column, uint32_t from, uint32_t n)
{
  const ImkSlcresampleBand *band = work->band;
  const ImkSlcresampleWeights *w = &band->weights[IMK_SLCRESAMPLE_AZIMUTH];
  ImkSlcresamplePlace place = b->places[from];
  Run run = {.n_taps = band->config.taps, .n = n, .parts = b->parts + from};

  for (uint32_t k = 0; k < run.n_taps; k++) {
    run.re[k] = row_of (band, place.first + (int32_t) k) + column;
    run.im[k] = run.re[k] + band->config.width;
  }
  set_weights (&run, w->re, place.phase);
  work->sum (&run, b->re + from, b->im + from);
  if (!w->im)
    return;
  set_weights (&run, w->im, place.phase);
  work->sum (&run, b->turned_re, b->turned_im);
  for (uint32_t i = 0; i < n; i++) {
    b->re[from + i] -= b->turned_im[i];
    b->im[from + i] += b->turned_re[i];
  }
}

/* The first pass: @n columns from @column on, where line @a crosses them.
 * Returns: which of them, [first, end) from @column on, have all their taps */
static ImkSlcresamplePlace
cross_columns (
    const Work *work, Block *b, double a, uint32_t column, uint32_t n)
{
  const ImkSlcresampleConfig *c = &work->band->config;
  uint32_t first = 0, end = n;

  for (uint32_t i = 0; i < n; i++) {
    b->places[i] =
        imk_slcresample_place (imk_slcresample_y (c, column + i, a), c->taps);
    b->parts[i] = b->places[i].part;
  }
  /* a line crosses columns in order, so that what is inside is in one piece */
  while (first < end && !is_inside (b->places[first], c->taps, c->height))
    first++;
  while (end > first && !is_inside (b->places[end - 1], c->taps, c->height))
    end--;
  for (uint32_t i = first; i < end;) {
    uint32_t length = run_length (b->places + i, end - i, 0);

    cross_lines (work, b, column + i, i, length);
    i += length;
  }
  return (ImkSlcresamplePlace){.first = (int32_t) first, .phase = end};
}

/* The second pass, in the block's columns from @column on: @n samples of the
 * line. */
static void
follow_line (const Work *work, Block *b, int32_t column, uint32_t n,
    float *out_re, float *out_im)
{
  const ImkSlcresampleBand *band = work->band;
  const float *table = band->weights[IMK_SLCRESAMPLE_RANGE].re;
  Run run = {.n_taps = band->config.taps};

  for (uint32_t i = 0; i < n; i++)
    b->parts[i] = b->places[i].part;
  for (uint32_t i = 0; i < n; i += run.n) {
    uint32_t at = (uint32_t) (b->places[i].first - column);

    run.n = run_length (b->places + i, n - i, 1);
    run.parts = b->parts + i;
    for (uint32_t k = 0; k < run.n_taps; k++) {
      run.re[k] = b->re + at + k;
      run.im[k] = b->im + at + k;
    }
    set_weights (&run, table, b->places[i].phase);
    work->sum (&run, out_re + i, out_im + i);
  }
}

static int16_t
round_to_i16 (float value)
{
  if (value >= INT16_MAX)
    return INT16_MAX;
  return value <= INT16_MIN ? INT16_MIN : (int16_t) lrintf (value);
}

static void
store (ImkType type, const float *re, const float *im, uint32_t n, void *to)
{
  float *f = to;
  int16_t *i16 = to;

  for (uint32_t i = 0; i < n; i++)
    if (type == IMK_TYPE_CF32) {
      f[2 * i] = re[i];
      f[2 * i + 1] = im[i];
    } else {
      i16[2 * i] = round_to_i16 (re[i]);
      i16[2 * i + 1] = round_to_i16 (im[i]);
    }
}

/* Columns [@r, @r + @n) of line @a. */
static void
make_block (
    const Work *work, Block *b, uint32_t a, uint32_t r, uint32_t n, void *to)
{
  const ImkSlcresampleConfig *c = &work->band->config;
  float re[BLOCK + PADDING] = {0}, im[BLOCK + PADDING] = {0};
  ImkSlcresamplePlace places[BLOCK], whole;
  uint32_t first = 0, end = n;
  int32_t column;

  for (uint32_t i = 0; i < n; i++)
    places[i] =
        imk_slcresample_place (imk_slcresample_x (c, r + i, a), c->taps);
  while (first < end && !is_inside (places[first], c->taps, c->width))
    first++;
  while (end > first && !is_inside (places[end - 1], c->taps, c->width))
    end--;
  if (first < end) {
    column = places[first].first;
    whole = cross_columns (work, b, a, (uint32_t) column,
        (uint32_t) (places[end - 1].first - column) + c->taps);
    while (first < end && places[first].first < column + whole.first)
      first++;
    while (end > first && places[end - 1].first + (int32_t) c->taps >
                              column + (int32_t) whole.phase)
      end--;
    memcpy (b->places, places + first, (end - first) * sizeof (places[0]));
    follow_line (work, b, column, end - first, re + first, im + first);
    memset (re + end, 0, (BLOCK + PADDING - end) * sizeof (float));
    memset (im + end, 0, (BLOCK + PADDING - end) * sizeof (float));
  }
  store (c->type, re, im, n, to);
}

static void
make_lines (void *data, uint32_t first, uint32_t end)
{
  const Work *work = data;
  const ImkSlcresampleConfig *c = &work->band->config;
  size_t size = imk_type_size (c->type);
  Block block = {{0}}; /* what is read beyond a run is a number */

  for (uint32_t i = first; i < end; i++) {
    uint8_t *row = (uint8_t *) work->out->data + i * work->out->stride;

    for (uint32_t r = 0; r < c->out_width; r += BLOCK) {
      uint32_t left = c->out_width - r;

      make_block (work, &block, work->line + i, r, left < BLOCK ? left : BLOCK,
          row + r * size);
    }
  }
}

void
imk_slcresample_cpu_process (
    const ImkSlcresampleBand *band, uint32_t line, ImkImage *out)
{
  Work work = {.band = band, .line = line, .out = out, .sum = find_sum ()};

  imk_parallel_for (band->config.n_threads, out->height, 1, make_lines, &work);
}
