/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <string.h>

#include "imk/parallel.h"
#include "insarform/insarform-private.h"

enum { GRAIN = 128 }; /* cells that are worth a thread */

/* --- cells ------------------------------------------------------------------
 */

typedef struct Add {
  ImkInsarformCells *cells;
  uint32_t line;
  const ImkImage *reference, *secondary;
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

static void
add_i16 (ImkInsarformSums *s, const void *reference, const void *secondary,
    uint32_t n)
{
  const int16_t *a = reference, *b = secondary;

  for (uint32_t i = 0; i < 2 * n; i += 2)
    add_sample (s, a[i], a[i + 1], b[i], b[i + 1]);
}

static void
add_f32 (ImkInsarformSums *s, const void *reference, const void *secondary,
    uint32_t n)
{
  const float *a = reference, *b = secondary;

  for (uint32_t i = 0; i < 2 * n; i += 2)
    add_sample (s, a[i], a[i + 1], b[i], b[i + 1]);
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

    if (line % c->config.looks_y == 0)
      memset (sums + first, 0, (end - first) * sizeof (*sums));
    for (uint32_t x = first; x < end; x++)
      (is_float ? add_f32 : add_i16) (
          &sums[x], a + x * size, b + x * size, looks);
  }
}

void
imk_insarform_cpu_add (ImkInsarformCells *cells, uint32_t line,
    const ImkImage *reference, const ImkImage *secondary)
{
  Add add = {cells, line, reference, secondary};

  imk_parallel_for (
      cells->config.n_threads, cells->width, GRAIN, add_columns, &add);
}

/* --- rows -------------------------------------------------------------------
 */

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
coherence (const ImkInsarformSums *s)
{
  double power = sqrt (s->p1) * sqrt (s->p2);

  /* rounding can make it larger than 1 */
  return power > 0 ? (float) fmin (hypot (s->re, s->im) / power, 1) : 0;
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
    out[IMK_INSARFORM_COHERENCE] = s->n > 0 ? coherence (&sum) : 0;
  }
}

void
imk_insarform_cpu_process (ImkInsarformCells *cells, uint32_t row, float *out)
{
  Row work = {cells, row, out};

  imk_parallel_for (
      cells->config.n_threads, cells->width, GRAIN, add_rows, &work);
  imk_parallel_for (
      cells->config.n_threads, cells->width, GRAIN, make_cells, &work);
}
