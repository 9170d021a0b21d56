/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <string.h>

#include "imk/parallel.h"
#include "insarform/insarform-private.h"

/* What is worth a thread: cells of a line, of the sum of a window's rows, and
 * of a row that is made. */
enum { GRAIN = 128, SUM_GRAIN = 2048, ROW_GRAIN = 256 };

/* --- cells ---------------------------------------------------------------- */

typedef struct Add {
  ImkInsarformCells *cells;
  uint32_t line;
  const ImkImage *reference, *secondary, *phase; /* phase: nullable */
} Add;

static inline void
add_sample (ImkInsarformSums *s, double re1, double im1, double re2, double im2)
{
  double p1 = re1 * re1 + im1 * im1, p2 = re2 * re2 + im2 * im2;

  if (!(p1 > 0 && p2 > 0 && p1 < INFINITY && p2 < INFINITY))
    return;
  s->re += re1 * re2 + im1 * im2;
  s->im += im1 * re2 - re1 * im2;
  s->p1 += p1;
  s->p2 += p2;
  s->n++;
}

/* @phase: (nullable): turns the secondary, whose powers stay, by the phase to
 * remove */
static inline void
add_samples (ImkInsarformSums *s, bool is_float, const void *reference,
    const void *secondary, const float *phase, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    double re1, im1, re2, im2, c, d;

    imk_insarform_load (is_float, reference, i, &re1, &im1);
    imk_insarform_load (is_float, secondary, i, &re2, &im2);
    if (phase) {
      c = cosf (phase[i]);
      d = sinf (phase[i]);
      add_sample (s, re1, im1, re2 * c - im2 * d, re2 * d + im2 * c);
    } else {
      add_sample (s, re1, im1, re2, im2);
    }
  }
}

/* Of an even number of samples the middle is between two. */
static inline bool
is_middle (uint32_t i, uint32_t n)
{
  return i == (n - 1) / 2 || i == n / 2;
}

static void
add_middle (ImkInsarformSums *s, const float *phase, uint32_t n)
{
  for (uint32_t i = (n - 1) / 2; i <= n / 2; i++)
    if (isfinite (phase[i])) {
      s->middle[0] += cosf (phase[i]);
      s->middle[1] += sinf (phase[i]);
    }
}

/* All lines for the cells of some columns. */
static void
add_columns (void *data, uint32_t first, uint32_t end)
{
  const Add *add = data;
  const ImkInsarformCells *c = add->cells;
  bool is_float = c->config.type == IMK_TYPE_CF32;
  uint32_t looks = c->config.looks_x;
  size_t size = imk_type_size (c->config.type) * looks;

  for (uint32_t i = 0; i < add->reference->height; i++) {
    uint32_t line = add->line + i, row = line / c->config.looks_y;
    ImkInsarformSums *sums = c->sums + (size_t) (row % c->n_rows) * c->width;
    const uint8_t *a =
        (const uint8_t *) add->reference->data + i * add->reference->stride;
    const uint8_t *b =
        (const uint8_t *) add->secondary->data + i * add->secondary->stride;
    const float *phase =
        add->phase ? (const float *) ((const uint8_t *) add->phase->data +
                                      i * add->phase->stride)
                   : NULL;

    if (line % c->config.looks_y == 0)
      memset (sums + first, 0, (end - first) * sizeof (*sums));
    for (uint32_t x = first; x < end; x++) {
      const float *of_cell = phase ? phase + (size_t) x * looks : NULL;

      add_samples (
          &sums[x], is_float, a + x * size, b + x * size, of_cell, looks);
      if (phase && is_middle (line % c->config.looks_y, c->config.looks_y))
        add_middle (&sums[x], of_cell, looks);
    }
  }
}

void
imk_insarform_cpu_add (ImkInsarformCells *cells, uint32_t line,
    const ImkImage *reference, const ImkImage *secondary, const ImkImage *phase)
{
  Add add = {cells, line, reference, secondary, phase};

  imk_parallel_for (cells->config.n_threads, cells->width,
      1 + GRAIN / reference->height, add_columns, &add);
}

/* --- rows ----------------------------------------------------------------- */

typedef struct Row {
  const ImkInsarformCells *cells;
  uint32_t row;
  float *out;
} Row;

static inline void
add_sums (ImkInsarformSums *s, const ImkInsarformSums *more)
{
  s->re += more->re;
  s->im += more->im;
  s->p1 += more->p1;
  s->p2 += more->p2;
  s->n += more->n;
}

static uint32_t
clip_first (uint32_t at, uint32_t window)
{
  return at > window / 2 ? at - window / 2 : 0;
}

static uint32_t
clip_end (uint32_t at, uint32_t window, uint32_t size)
{
  return at + window / 2 < size ? at + window / 2 + 1 : size;
}

static void
add_rows (void *data, uint32_t first, uint32_t end)
{
  const Row *row = data;
  const ImkInsarformCells *c = row->cells;
  uint32_t window = c->config.window_y;

  memset (c->columns + first, 0, (end - first) * sizeof (*c->columns));
  for (uint32_t y = clip_first (row->row, window);
       y < clip_end (row->row, window, c->height); y++) {
    const ImkInsarformSums *sums =
        c->sums + (size_t) (y % c->n_rows) * c->width;

    for (uint32_t x = first; x < end; x++)
      add_sums (&c->columns[x], &sums[x]);
  }
}

static float
coherence (const ImkInsarformSums *s, bool unbias)
{
  double power = sqrt (s->p1) * sqrt (s->p2);
  /* rounding can make it larger than 1 */
  double g = power > 0 ? fmin (hypot (s->re, s->im) / power, 1) : 0;

  if (unbias)
    g = s->n > 1 ? sqrt (fmax (0, (s->n * g * g - 1) / (s->n - 1))) : 0;
  return (float) g;
}

/* Puts back the phase of the middle, if any was removed. */
static void
restore (float *out, const ImkInsarformSums *s)
{
  double length = hypot (s->middle[0], s->middle[1]);
  double c = s->middle[0] / length, d = s->middle[1] / length;
  double re = out[IMK_INSARFORM_RE], im = out[IMK_INSARFORM_IM];

  if (!(length > 0))
    return;
  out[IMK_INSARFORM_RE] = (float) (re * c - im * d);
  out[IMK_INSARFORM_IM] = (float) (re * d + im * c);
}

static void
make_cells (void *data, uint32_t first, uint32_t end)
{
  const Row *row = data;
  const ImkInsarformCells *c = row->cells;
  uint32_t window = c->config.window_x;
  const ImkInsarformSums *cells =
      c->sums + (size_t) (row->row % c->n_rows) * c->width;

  for (uint32_t x = first; x < end; x++) {
    const ImkInsarformSums *s = &cells[x];
    float *out = row->out + (size_t) x * IMK_INSARFORM_N_CHANNELS;
    ImkInsarformSums sum = {0};

    for (uint32_t i = clip_first (x, window);
         i < clip_end (x, window, c->width); i++)
      add_sums (&sum, &c->columns[i]);
    out[IMK_INSARFORM_RE] = s->n > 0 ? (float) (s->re / s->n) : 0;
    out[IMK_INSARFORM_IM] = s->n > 0 ? (float) (s->im / s->n) : 0;
    out[IMK_INSARFORM_AMPLITUDE] =
        s->n > 0 ? (float) sqrt (sqrt (s->p1 / s->n) * sqrt (s->p2 / s->n)) : 0;
    /* a cell without data has no coherence, whatever its neighbours have */
    out[IMK_INSARFORM_COHERENCE] =
        s->n > 0 ? coherence (&sum, c->config.unbias) : 0;
    out[IMK_INSARFORM_REMOVED] = (float) atan2 (s->middle[1], s->middle[0]);
    if (c->config.restore)
      restore (out, s);
  }
}

void
imk_insarform_cpu_process (ImkInsarformCells *cells, uint32_t row, float *out)
{
  Row work = {cells, row, out};

  imk_parallel_for (
      cells->config.n_threads, cells->width, SUM_GRAIN, add_rows, &work);
  imk_parallel_for (
      cells->config.n_threads, cells->width, ROW_GRAIN, make_cells, &work);
}
