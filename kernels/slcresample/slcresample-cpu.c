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
#define N_PHASES IMK_SLCRESAMPLE_N_PHASES

enum {
  BLOCK = 256, /* output columns */
  /* input columns for them: a block stretched, and the taps */
  MAX_COLUMNS = BLOCK + BLOCK / 4 + MAX_TAPS + 4,
  PADDING = IMK_SLCRESAMPLE_PADDING,
};

/* Equidistant positions along a line, each the first of its taps and a
 * fraction: first + steps / N_PHASES, and a part of a step. */
typedef struct Places {
  int32_t first; /* not above that of any */
  int32_t steps[MAX_COLUMNS];
  float parts[MAX_COLUMNS + PADDING];
} Places;

/* One block of one line at work. Runs are written in whole vectors, so that
 * what stands behind one is overwritten by the next. */
typedef struct Block {
  float re[MAX_COLUMNS + PADDING]; /* after the first pass */
  float im[MAX_COLUMNS + PADDING];
  float turned_re[MAX_COLUMNS + PADDING], turned_im[MAX_COLUMNS + PADDING];
  Places lines, columns; /* of input columns; of output columns */
} Block;

/* --- runs ----------------------------------------------------------------- */

#define INLINE static inline __attribute__ ((always_inline))

/* A register of AVX2. The compiler takes it apart where they are shorter; sums
 * are rounded one by one, so the bits are the same everywhere. */
enum { LANES = 8 };
typedef float Vector
    __attribute__ ((vector_size (4 * LANES), aligned (4), may_alias));

/* All bits set where a comparison of vectors is true. */
typedef int32_t Mask
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
    uint32_t at = i + v * LANES;
    Mask data = {0};

    /* what the taps reach beside a gap shall not fill it */
    for (uint32_t k = run->n_taps / 2 - 1; k <= run->n_taps / 2; k++)
      data |= (*(const Vector *) (run->re[k] + at) != 0) |
              (*(const Vector *) (run->im[k] + at) != 0);
    *(Vector *) (out_re + at) = (Vector) ((Mask) re[v] & data);
    *(Vector *) (out_im + at) = (Vector) ((Mask) im[v] & data);
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

/* @n positions from @at on, @distance apart, neither below 0 nor far away. */
INLINE void
divide_places (double at, double distance, uint32_t n, Places *places)
{
  for (uint32_t i = 0; i < n; i++) {
    double steps = at * N_PHASES + distance * N_PHASES * (int32_t) i;

    places->steps[i] = (int32_t) steps;
    places->parts[i] = (float) (steps - places->steps[i]);
  }
}

/* The loops for one instruction set. */
typedef struct Loops {
  void (*sum) (const Run *run, float *out_re, float *out_im);
  void (*divide) (double at, double distance, uint32_t n, Places *places);
} Loops;

static void
sum_base (const Run *run, float *out_re, float *out_im)
{
  sum_run (run, out_re, out_im);
}

static void
divide_base (double at, double distance, uint32_t n, Places *places)
{
  divide_places (at, distance, n, places);
}

#if defined(__x86_64__) && defined(__GNUC__)
#define AVX2 __attribute__ ((target ("avx2")))

AVX2 static void
sum_avx2 (const Run *run, float *out_re, float *out_im)
{
  sum_run (run, out_re, out_im);
}

AVX2 static void
divide_avx2 (double at, double distance, uint32_t n, Places *places)
{
  divide_places (at, distance, n, places);
}
#endif

static Loops
find_loops (void)
{
#ifdef AVX2
  if (__builtin_cpu_supports ("avx2"))
    return (Loops){sum_avx2, divide_avx2};
#endif
  return (Loops){sum_base, divide_base};
}

/* Returns: how many of @n places have the weights of the first, and addresses
 * that grow by @samples from one to the next */
static uint32_t
run_length (const int32_t *steps, uint32_t n, int32_t samples)
{
  uint32_t i = 1;

  while (i < n && steps[i] == steps[i - 1] + samples * N_PHASES)
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
  Loops loops;
} Work;

/* Places that are [first, end). */
typedef struct Span {
  uint32_t first, end;
} Span;

/* @n positions from @at on, @distance apart, as their first taps. */
static void
find_places (
    const Work *work, double at, double distance, uint32_t n, Places *places)
{
  double whole = floor (fmin (at, at + distance * (n - 1))) - 1;

  places->first = (int32_t) whole - (int32_t) (work->band->config.taps / 2 - 1);
  work->loops.divide (at - whole, distance, n, places);
}

static int32_t
first_tap (const Places *places, uint32_t i)
{
  return places->first + places->steps[i] / N_PHASES;
}

/* Returns: which of @n places have their @taps within [first, end); positions
 * rise or fall, so these are in one piece */
static Span
clip_places (
    const Places *places, uint32_t n, uint32_t taps, int64_t first, int64_t end)
{
  Span span = {0, n};

  while (span.first < span.end &&
         (first_tap (places, span.first) < first ||
             (int64_t) first_tap (places, span.first) + taps > end))
    span.first++;
  while (span.end > span.first &&
         (first_tap (places, span.end - 1) < first ||
             (int64_t) first_tap (places, span.end - 1) + taps > end))
    span.end--;
  return span;
}

static const float *
row_of (const ImkSlcresampleBand *band, int32_t line)
{
  return band->samples +
         (size_t) ((uint32_t) line % band->n_lines) * 2 * band->config.width;
}

/* One run of the first pass, of columns whose taps are the same lines. */
static void
cross_lines (
    const Work *work, Block *b, uint32_t column, uint32_t from, uint32_t n)
{
  const ImkSlcresampleBand *band = work->band;
  const ImkSlcresampleWeights *w = &band->weights[IMK_SLCRESAMPLE_AZIMUTH];
  uint32_t phase = (uint32_t) b->lines.steps[from] % N_PHASES;
  int32_t line = first_tap (&b->lines, from);
  Run run = {
      .n_taps = band->config.taps, .n = n, .parts = b->lines.parts + from};

  for (uint32_t k = 0; k < run.n_taps; k++) {
    run.re[k] = row_of (band, line + (int32_t) k) + column;
    run.im[k] = run.re[k] + band->config.width;
  }
  set_weights (&run, w->re, phase);
  work->loops.sum (&run, b->re + from, b->im + from);
  if (!w->im)
    return;
  set_weights (&run, w->im, phase);
  work->loops.sum (&run, b->turned_re, b->turned_im);
  for (uint32_t i = 0; i < n; i++) {
    b->re[from + i] -= b->turned_im[i];
    b->im[from + i] += b->turned_re[i];
  }
}

/* The first pass: @n columns from @column on, where line @a crosses them.
 * Returns: which of them, counted from @column on, have all their taps */
static Span
cross_columns (
    const Work *work, Block *b, double a, uint32_t column, uint32_t n)
{
  const ImkSlcresampleConfig *c = &work->band->config;
  Span inside;

  find_places (work, imk_slcresample_y (c, column, a),
      c->stretch[1] / (1 + c->stretch[0]), n, &b->lines);
  inside = clip_places (&b->lines, n, c->taps, 0, c->height);
  for (uint32_t i = inside.first; i < inside.end;) {
    uint32_t length = run_length (b->lines.steps + i, inside.end - i, 0);

    cross_lines (work, b, column + i, i, length);
    i += length;
  }
  return inside;
}

/* The second pass, in the block's columns from @column on: the samples of the
 * line that are @span. */
static void
follow_line (const Work *work, Block *b, int32_t column, Span span,
    float *out_re, float *out_im)
{
  const ImkSlcresampleBand *band = work->band;
  const float *table = band->weights[IMK_SLCRESAMPLE_RANGE].re;
  Run run = {.n_taps = band->config.taps};

  for (uint32_t i = span.first; i < span.end; i += run.n) {
    uint32_t at = (uint32_t) (first_tap (&b->columns, i) - column);

    run.n = run_length (b->columns.steps + i, span.end - i, 1);
    run.parts = b->columns.parts + i;
    for (uint32_t k = 0; k < run.n_taps; k++) {
      run.re[k] = b->re + at + k;
      run.im[k] = b->im + at + k;
    }
    set_weights (&run, table, (uint32_t) b->columns.steps[i] % N_PHASES);
    work->loops.sum (&run, out_re + i, out_im + i);
  }
}

/* What a float32 has behind the point goes when it is this large, to the next
 * even number: rounding that vectors can do as well. */
#define ROUNDER 12582912.0f /* 1.5 2^23 */

static int16_t
round_to_i16 (float value)
{
  float clamped = value > INT16_MIN ? value : INT16_MIN;

  clamped = clamped < INT16_MAX ? clamped : INT16_MAX;
  return (int16_t) (clamped + ROUNDER - ROUNDER);
}

static void
store (ImkType type, const float *re, const float *im, uint32_t n, void *to)
{
  float *f = to;
  int16_t *i16 = to;

  if (type == IMK_TYPE_CF32) {
    for (uint32_t i = 0; i < n; i++) {
      f[2 * i] = re[i];
      f[2 * i + 1] = im[i];
    }
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
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
  Span span, inside;

  find_places (
      work, imk_slcresample_x (c, r, a), 1 + c->stretch[0], n, &b->columns);
  span = clip_places (&b->columns, n, c->taps, 0, c->width);
  if (span.first < span.end) {
    int32_t column = first_tap (&b->columns, span.first);
    int32_t last = first_tap (&b->columns, span.end - 1);

    inside = cross_columns (
        work, b, a, (uint32_t) column, (uint32_t) (last - column) + c->taps);
    span = clip_places (
        &b->columns, n, c->taps, column + inside.first, column + inside.end);
    follow_line (work, b, column, span, re, im);
    memset (re + span.end, 0, (BLOCK + PADDING - span.end) * sizeof (float));
    memset (im + span.end, 0, (BLOCK + PADDING - span.end) * sizeof (float));
  }
  store (c->type, re, im, n, to);
}

static void
make_lines (void *data, uint32_t first, uint32_t end)
{
  const Work *work = data;
  const ImkSlcresampleConfig *c = &work->band->config;
  size_t size = imk_type_size (c->type);
  Block block = {.re = {0}}; /* what is read beyond a run is a number */

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
  Work work = {.band = band, .line = line, .out = out, .loops = find_loops ()};

  imk_parallel_for (band->config.n_threads, out->height, 1, make_lines, &work);
}
