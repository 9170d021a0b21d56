/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A line is made in blocks of columns, whose work fits the cache and the stack.
 * Both passes are sums over the taps of samples that lie side by side: as long
 * as the whole part of the position grows by one from sample to sample, or not
 * at all, so do the addresses; where it does something else, a new run begins.
 */
#include <string.h>

#include "core/parallel.h"
#include "slcresample/slcresample-private.h"

#define MAX_TAPS IMK_SLCRESAMPLE_MAX_TAPS

enum {
  BLOCK = 256, /* columns that go */
  /* columns that come for them: a block stretched, and the taps */
  MAX_COLUMNS = BLOCK + BLOCK / 4 + MAX_TAPS + 4,
};

/* One block of one line at work. */
typedef struct Block {
  float re[MAX_COLUMNS], im[MAX_COLUMNS]; /* after the first pass */
  float turned_re[MAX_COLUMNS], turned_im[MAX_COLUMNS];
  float weights[MAX_TAPS][MAX_COLUMNS];
  ImkSlcresamplePlace places[MAX_COLUMNS];
} Block;

/* --- runs ----------------------------------------------------------------- */

#define INLINE static inline __attribute__ ((always_inline))

/* out[i] = sum over k of weights[k][i] * taps[k][i] */
INLINE void
sum_taps (const float *const *taps, float (*weights)[MAX_COLUMNS],
    uint32_t n_taps, uint32_t n, float *restrict out)
{
  memset (out, 0, n * sizeof (float));
  for (uint32_t k = 0; k < n_taps; k++) {
    const float *restrict from = taps[k];
    const float *restrict w = weights[k];

    for (uint32_t i = 0; i < n; i++)
      out[i] += w[i] * from[i];
  }
}

typedef void (*SumFunc) (const float *const *taps,
    float (*weights)[MAX_COLUMNS], uint32_t n_taps, uint32_t n, float *out);

static void
sum_base (const float *const *taps, float (*weights)[MAX_COLUMNS],
    uint32_t n_taps, uint32_t n, float *out)
{
  sum_taps (taps, weights, n_taps, n, out);
}

#if defined(__x86_64__) && defined(__GNUC__)
/* Products and sums are rounded one by one, so the bits are the same. */
__attribute__ ((target ("avx2"))) static void
sum_avx2 (const float *const *taps, float (*weights)[MAX_COLUMNS],
    uint32_t n_taps, uint32_t n, float *out)
{
  sum_taps (taps, weights, n_taps, n, out);
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

static void
gather_weights (
    Block *b, const float *table, uint32_t n_taps, uint32_t from, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    const float *w = table + b->places[from + i].phase * n_taps;

    for (uint32_t k = 0; k < n_taps; k++)
      b->weights[k][i] = w[k];
  }
}

/* Returns: from @from on, how many of @n places have addresses that grow by
 * @step from one to the next */
static uint32_t
run_length (const ImkSlcresamplePlace *places, uint32_t n, int32_t step)
{
  uint32_t i = 1;

  while (i < n && places[i].first == places[i - 1].first + step)
    i++;
  return i;
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
  uint32_t n_taps = band->config.taps;
  const float *re[MAX_TAPS], *im[MAX_TAPS];

  for (uint32_t k = 0; k < n_taps; k++) {
    re[k] = row_of (band, b->places[from].first + (int32_t) k) + column;
    im[k] = re[k] + band->config.width;
  }
  gather_weights (b, w->re, n_taps, from, n);
  work->sum (re, b->weights, n_taps, n, b->re + from);
  work->sum (im, b->weights, n_taps, n, b->im + from);
  if (!w->im)
    return;
  gather_weights (b, w->im, n_taps, from, n);
  work->sum (re, b->weights, n_taps, n, b->turned_re);
  work->sum (im, b->weights, n_taps, n, b->turned_im);
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

  for (uint32_t i = 0; i < n; i++)
    b->places[i] =
        imk_slcresample_place (imk_slcresample_y (c, column + i, a), c->taps);
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
  uint32_t n_taps = band->config.taps;

  for (uint32_t i = 0; i < n;) {
    uint32_t length = run_length (b->places + i, n - i, 1);
    const float *re[MAX_TAPS], *im[MAX_TAPS];

    for (uint32_t k = 0; k < n_taps; k++) {
      re[k] = b->re + (b->places[i].first - column) + k;
      im[k] = b->im + (b->places[i].first - column) + k;
    }
    gather_weights (
        b, band->weights[IMK_SLCRESAMPLE_RANGE].re, n_taps, i, length);
    work->sum (re, b->weights, n_taps, length, out_re + i);
    work->sum (im, b->weights, n_taps, length, out_im + i);
    i += length;
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
  float re[BLOCK] = {0}, im[BLOCK] = {0};
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
  }
  store (c->type, re, im, n, to);
}

static void
make_lines (void *data, uint32_t first, uint32_t end)
{
  const Work *work = data;
  const ImkSlcresampleConfig *c = &work->band->config;
  size_t size = imk_type_size (c->type);
  Block block;

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
