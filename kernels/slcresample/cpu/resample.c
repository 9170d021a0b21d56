/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A line is computed in blocks of columns, whose data fit the cache and the
 * stack. Both passes are sums over the taps of adjacent samples. A run is a
 * stretch of samples whose positions grow by one (or not at all) from sample to
 * sample, and whose fractions stay in one step of the table of weights. With
 * GMTSAR's small stretches a run has some tens of samples. */
#include <string.h>

#include "core/cpu.h"
#include "imk/parallel.h"
#include "slcresample/cpu/loops.h"

/* Buffers for one block of one line. Runs are written in whole vectors; the
 * next run overwrites the excess. */
typedef struct Block {
  float re[MAX_COLUMNS + PADDING]; /* after the first pass */
  float im[MAX_COLUMNS + PADDING];
  float turned_re[MAX_COLUMNS + PADDING], turned_im[MAX_COLUMNS + PADDING];
  Places lines, columns; /* of input columns; of output columns */
} Block;

/* --- the passes ----------------------------------------------------------- */

/* Returns: the number of places, at most @n, that have the weights of the first
 * and whose addresses grow by @samples each */
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

typedef struct Work {
  const ImkSlcresampleBand *band;
  uint32_t line;
  ImkImage *out;
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
  work->band->loops->divide (at - whole, distance, n, places);
}

static int32_t
first_tap (const Places *places, uint32_t i)
{
  return places->first + places->steps[i] / N_PHASES;
}

/* Returns: the places of @n whose @taps are within [first, end); positions are
 * monotonic, so these are one span */
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
  work->band->loops->sum (&run, b->re + from, b->im + from);
  if (!w->im)
    return;
  set_weights (&run, w->im, phase);
  work->band->loops->sum (&run, b->turned_re, b->turned_im);
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
    work->band->loops->sum (&run, out_re + i, out_im + i);
  }
}

/* Adding and subtracting this rounds a float32 to the nearest integer (ties to
 * even); compilers vectorise it, unlike lrintf (). */
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

/* --- with a field --------------------------------------------------------- */

enum { REACH = IMK_SLCRESAMPLE_REACH };

/* Places of the output columns from @first on, in the input. */
typedef struct Path {
  int64_t first;
  double x[BLOCK + 2 * REACH], y[BLOCK + 2 * REACH];
} Path;

static void
set_places (const Work *work, const double *at, uint32_t n, Places *places)
{
  double least = at[0], whole;

  for (uint32_t i = 1; i < n; i++)
    least = fmin (least, at[i]);
  whole = floor (least) - 1;
  places->first = (int32_t) whole - (int32_t) (work->band->config.taps / 2 - 1);
  for (uint32_t i = 0; i < n; i++) {
    double steps = (at[i] - whole) * N_PHASES;

    places->steps[i] = (int32_t) steps;
    places->parts[i] = (float) (steps - places->steps[i]);
  }
}

/* The first pass, as cross_columns (). Columns without all their taps are NaN,
 * which the second pass hands on. */
static void
cross_path (
    const Work *work, Block *b, const Path *path, int32_t column, uint32_t n)
{
  const ImkSlcresampleConfig *c = &work->band->config;
  double at[MAX_COLUMNS] = {0};
  uint32_t k = 0;

  for (uint32_t i = 0; i < n; i++) {
    double x = column + (double) i;

    while (path->x[k + 1] < x)
      k++;
    at[i] = path->y[k] + (x - path->x[k]) / (path->x[k + 1] - path->x[k]) *
                             (path->y[k + 1] - path->y[k]);
  }
  set_places (work, at, n, &b->lines);
  for (uint32_t i = 0; i < n;) {
    uint32_t length = run_length (b->lines.steps + i, n - i, 0);
    int64_t first = first_tap (&b->lines, i);

    if (first >= 0 && first + c->taps <= c->height)
      cross_lines (work, b, (uint32_t) column + i, i, length);
    else
      for (uint32_t m = i; m < i + length; m++)
        b->re[m] = b->im[m] = NAN;
    i += length;
  }
}

/* The second pass for the @n columns from @r on; blocks that are stretched too
 * much for the buffers are halved. */
static void
follow_path (const Work *work, Block *b, const Path *path, uint32_t r,
    uint32_t n, float *re, float *im)
{
  const ImkSlcresampleConfig *c = &work->band->config;
  Span span;
  int32_t column, last;

  set_places (work, path->x + (r - path->first), n, &b->columns);
  span = clip_places (&b->columns, n, c->taps, 0, c->width);
  if (span.first == span.end)
    return;
  column = first_tap (&b->columns, span.first);
  last = first_tap (&b->columns, span.end - 1);
  if (last - column + (int32_t) c->taps > MAX_COLUMNS) {
    follow_path (work, b, path, r, n / 2, re, im);
    memset (re + n / 2, 0, PADDING * sizeof (float));
    memset (im + n / 2, 0, PADDING * sizeof (float));
    follow_path (work, b, path, r + n / 2, n - n / 2, re + n / 2, im + n / 2);
    return;
  }
  cross_path (work, b, path, column, (uint32_t) (last - column) + c->taps);
  follow_line (work, b, column, span, re, im);
  for (uint32_t i = span.first; i < span.end; i++)
    if (isnan (re[i]) || isnan (im[i]))
      re[i] = im[i] = 0;
  memset (re + span.end, 0, (n - span.end + PADDING) * sizeof (float));
  memset (im + span.end, 0, (n - span.end + PADDING) * sizeof (float));
}

static void
make_warped_block (
    const Work *work, Block *b, uint32_t a, uint32_t r, uint32_t n, void *to)
{
  float re[BLOCK + 2 * PADDING] = {0}, im[BLOCK + 2 * PADDING] = {0};
  Path path = {.first = (int64_t) r - REACH};

  imk_slcresample_field_line (
      &work->band->config, path.first, a, n + 2 * REACH, path.x, path.y);
  follow_path (work, b, &path, r, n, re, im);
  store (work->band->config.type, re, im, n, to);
}

/* --- lines ---------------------------------------------------------------- */

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
  Block block = {.re = {0}}; /* samples read beyond a run must be finite */

  for (uint32_t i = first; i < end; i++) {
    uint8_t *row = (uint8_t *) work->out->data + i * work->out->stride;

    for (uint32_t r = 0; r < c->out_width; r += BLOCK) {
      uint32_t left = c->out_width - r;

      (c->field ? make_warped_block : make_block) (work, &block, work->line + i,
          r, left < BLOCK ? left : BLOCK, row + r * size);
    }
  }
}

ImkStatus
imk_slcresample_cpu_init (ImkSlcresampleBand *band, ImkError *error)
{
  static const void *const tables[IMK_CPU_N_LEVELS] =
      IMK_CPU_TABLES (imk_slcresample);
  const void *loops = NULL;
  ImkStatus status = imk_cpu_choose (tables, &loops, error);

  band->loops = loops;
  return status;
}

void
imk_slcresample_cpu_process (
    const ImkSlcresampleBand *band, uint32_t line, ImkImage *out)
{
  Work work = {.band = band, .line = line, .out = out};

  imk_parallel_for (band->config.n_threads, out->height, 1, make_lines, &work);
}
