/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Correlation: a lane of a vector is a shift in x, so that every shift has its
 * sums in the order of arithmetic/correlation.h. Compiled for each instruction
 * set. */
#include "shcentroid/cpu/levels.h"
#include "shcentroid/cpu/weights.h"

typedef float Shifts __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
/* as many as Reals */
enum { SHIFTS = IMK_VECTOR_SIZE / sizeof (float) };

INLINE Shifts
load_shifts (const float *from)
{
  Shifts shifts;

  memcpy (&shifts, from, sizeof (shifts));
  return shifts;
}

/* ------------------------------------------------------------------------
 * From the frame to pixels less their mean. */

/* One row of the window, after threshold, weight and power; NaN where bad.
 * Whole vectors, beyond the last column too. */
INLINE void
part_row (const MatchScratch *s, ImkShcentroidLevel level, double weight_y,
    uint32_t n, const Powers *powers, const bool weighted, const bool powered,
    float *row)
{
  for (uint32_t x = 0; x < n; x += REALS) {
    Reals v = widen (s->value + x), p = v - level.pedestal;
    Masks used = v >= level.least, bad = v != v;
    Floats part;

    if (powered)
      raise_vectors (&p, 1, powers);
    if (weighted)
      p *= read_reals (s->weights + x) * weight_y;
    /* all ones are a NaN */
    p = (Reals) (((Masks) p & used) | bad);
    part = __builtin_convertvector(p, Floats);
    memcpy (row + x, &part, sizeof (part));
  }
}

static void
load_match_row (const ChainTile *t, uint32_t y, double weight_y, bool weighted,
    const MatchScratch *s, float *row)
{
  const ImkShcentroidWindow *w = t->windows;
  const Powers *powers = &t->f->cpu->raising;
  ImkShcentroidLevel level = t->levels[0];

  load_row (t->f, w->x, w->y + y, w->width, s->value);
  if (powers->series.power != 1.0 && weighted)
    part_row (s, level, weight_y, w->width, powers, true, true, row);
  else if (powers->series.power != 1.0)
    part_row (s, level, weight_y, w->width, powers, false, true, row);
  else if (weighted)
    part_row (s, level, weight_y, w->width, powers, true, false, row);
  else
    part_row (s, level, weight_y, w->width, powers, false, false, row);
}

/* Adds a row to the sums of its columns; @all: to those that only all fields
 * report, too. */
INLINE void
add_match_row (
    const MatchScratch *s, const float *row, uint32_t n, const bool all)
{
  const MatchColumns *c = &s->columns;

  for (uint32_t x = 0; x < n; x += REALS) {
    Reals v = widen (s->value + x), sum, p;
    Masks good = v == v;
    Floats part;

    memcpy (&part, row + x, sizeof (part));
    p = __builtin_convertvector(part, Reals);
    sum = read_reals (c->p + x) + (Reals) ((Masks) p & good);
    memcpy (c->p + x, &sum, sizeof (sum));
    sum = read_reals (c->n + x) + (Reals) ((Masks) all_reals (1.0) & good);
    memcpy (c->n + x, &sum, sizeof (sum));
    if (!all)
      continue;
    sum = read_reals (c->raw + x) + (Reals) ((Masks) v & good);
    memcpy (c->raw + x, &sum, sizeof (sum));
    sum = larger (read_reals (c->max + x), v);
    memcpy (c->max + x, &sum, sizeof (sum));
    p = (Reals) ((Masks) widen (s->sample + x) & good);
    sum = larger (read_reals (c->max_sample + x), p);
    memcpy (c->max_sample + x, &sum, sizeof (sum));
  }
}

/* The variance of each pixel of a row; 0 where bad, which adds nothing. */
INLINE void
spread_match_row (const ChainTile *t, const MatchScratch *s, uint32_t y,
    double weight_y, bool weighted, const float *restrict row,
    double *restrict spread)
{
  const Cpu *cpu = t->f->cpu;
  const ImkShcentroidParams *params = &cpu->params;
  const ImkShcentroidNoise noise = imk_shcentroid_noise (params);
  const ImkShcentroidWindow *w = t->windows;
  size_t at = (size_t) (w->y + y) * cpu->plan.width + w->x;
  const float *flat = cpu->dark ? cpu->flat + at : NULL;
  double least = t->levels[0].least, pedestal = t->levels[0].pedestal;

  for (uint32_t x = 0; x < w->width; x++) {
    double v = s->value[x], weight = weighted ? s->weights[x] * weight_y : 1.0;
    bool used = row[x] == row[x] && v >= least;

    spread[x] = noise.per_count *
                imk_shcentroid_spread (v, flat ? flat[x] : 1.0, used, pedestal,
                    weight, params->power, used ? row[x] : 0.0, &noise);
  }
}

/* Returns: the largest float32 sample as it came, of @n from column @x on that
 * are not bad; infinite where one is not finite */
static float
largest_float (
    const Frame *f, uint32_t x, uint32_t y, uint32_t n, float *restrict sample)
{
  const Cpu *cpu = f->cpu;
  const float *dark =
      cpu->dark ? cpu->dark + (size_t) y * cpu->plan.width + x : NULL;
  float most = 0.0f;

  load_samples (f, x, y, n, sample);
  for (uint32_t i = 0; i < n; i++)
    if (!dark || dark[i] == dark[i])
      most = sample[i] > most ? sample[i] : most;
  return most;
}

/* The pixels of the cell of @t, and their sums. */
static ImkShcentroidCellSums
load_match (const ChainTile *t, MatchScratch *s)
{
  const Cpu *cpu = t->f->cpu;
  const ImkShcentroidWindow *w = t->windows;
  const MatchColumns *c = &s->columns;
  bool all = cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  bool weighted = cpu->params.weighting != IMK_SHCENTROID_WEIGHTING_NONE;
  double weights_y[IMK_SHCENTROID_GROUP_ROWS];
  ImkShcentroidCellSums sums = imk_shcentroid_no_sums ();

  if (weighted)
    weigh_cell_columns (t, w->width, s->weights);
  for (uint32_t x = 0; x < w->width; x++) {
    c->p[x] = c->raw[x] = 0.0;
    c->max[x] = sums.max;
    c->max_sample[x] = c->n[x] = 0.0;
  }
  for (uint32_t y = 0; y < w->height; y++) {
    float *row = s->pixels + (size_t) y * s->stride + s->pad;
    uint32_t k = y % IMK_SHCENTROID_GROUP_ROWS;
    double weight_y;

    if (weighted && k == 0)
      weigh_rows (t, 1, y, IMK_SHCENTROID_GROUP_ROWS, false, weights_y);
    weight_y = weighted ? weights_y[k] : 1.0;
    load_match_row (t, y, weight_y, weighted, s, row);
    if (t->f->in->type == IMK_TYPE_F32) {
      float most = largest_float (t->f, w->x, w->y + y, w->width, s->sample);

      sums.max_sample = most > sums.max_sample ? most : sums.max_sample;
    } else if (all) {
      load_samples (t->f, w->x, w->y + y, w->width, s->sample);
    }
    if (all)
      add_match_row (s, row, w->width, true);
    else
      add_match_row (s, row, w->width, false);
    if (all)
      spread_match_row (
          t, s, y, weight_y, weighted, row, s->spread + (size_t) y * w->width);
  }
  for (uint32_t x = 0; x < w->width; x++) {
    ImkShcentroidCellSums column = {c->p[x], c->raw[x], (float) c->max[x],
        (float) c->max_sample[x], (uint32_t) c->n[x]};

    imk_shcentroid_add_sums (&sums, &column);
  }
  return sums;
}

/* imk_shcentroid_add_along () of four rows of @width pixels, which do not wait
 * for each other. */
static void
add_four_along (const float *restrict pixels, size_t stride, uint32_t width,
    ImkShcentroidTotal *restrict totals)
{
  ImkShcentroidTotal t[4] = {{0.0, 0.0}, {0.0, 0.0}, {0.0, 0.0}, {0.0, 0.0}};

  for (uint32_t k = 0; k < 4; k++)
    totals[k * (width + 1)] = t[k];
  for (uint32_t x = 0; x < width; x++)
    for (uint32_t k = 0; k < 4; k++) {
      double value = pixels[k * stride + x];

      t[k].sum += value;
      t[k].square += value * value;
      totals[k * (width + 1) + x + 1] = t[k];
    }
}

static void
add_totals (const MatchScratch *s, uint32_t width, uint32_t height)
{
  size_t n = width + 1;
  uint32_t y = 0;

  memset (s->totals, 0, n * sizeof (*s->totals));
  for (; y + 4 <= height; y += 4)
    add_four_along (s->pixels + (size_t) y * s->stride + s->pad, s->stride,
        width, s->totals + (y + 1) * n);
  for (; y < height; y++)
    imk_shcentroid_add_along (s->pixels + (size_t) y * s->stride + s->pad,
        (int32_t) width, s->totals + (y + 1) * n);
  for (y = 1; y <= height; y++) {
    const double *restrict above = &s->totals[(y - 1) * n].sum;
    double *restrict row = &s->totals[y * n].sum;

    for (size_t i = 0; i < 2 * n; i++)
      row[i] += above[i];
  }
}

/* The window less its mean, with nothing but 0 beside it, and its totals. */
static void
centre_match (const ImkShcentroidMatch *m, const MatchScratch *s, float mean)
{
  uint32_t width = (uint32_t) m->width, height = (uint32_t) m->height;
  uint32_t right = s->stride - s->pad - width;

  for (uint32_t y = 0; y < height; y++) {
    float *restrict row = s->pixels + (size_t) y * s->stride;

    memset (row, 0, s->pad * sizeof (*row));
    for (uint32_t x = s->pad; x < s->pad + width; x++)
      row[x] = imk_shcentroid_less_mean (row[x], mean);
    memset (row + s->pad + width, 0, right * sizeof (*row));
  }
  add_totals (s, width, height);
}

/* ------------------------------------------------------------------------
 * Products. */

/* @n columns of @n_rows rows of the template, from @b on downwards by -@width,
 * over one row of the window: a row of the template each. The shifts begin at
 * @a and fill @n_vectors. */
INLINE void
multiply_rows (const float *a, const float *b, uint32_t width, uint32_t n,
    const uint32_t n_rows, const uint32_t n_vectors,
    double (*restrict totals)[MATCH_MAX_SHIFTS])
{
  Shifts sums[MATCH_ROWS][3];

  for (uint32_t k = 0; k < n_rows; k++)
    for (uint32_t i = 0; i < n_vectors; i++)
      sums[k][i] = (Shifts){0};
  for (uint32_t x = 0; x < n; x++) {
    Shifts pixels[3];

    for (uint32_t i = 0; i < n_vectors; i++)
      pixels[i] = load_shifts (a + x + i * SHIFTS);
    for (uint32_t k = 0; k < n_rows; k++)
      for (uint32_t i = 0; i < n_vectors; i++)
        sums[k][i] += pixels[i] * (b - (size_t) k * width)[x];
  }
  for (uint32_t k = 0; k < n_rows; k++)
    for (uint32_t i = 0; i < n_vectors; i++)
      for (uint32_t lane = 0; lane < SHIFTS; lane++)
        totals[k][i * SHIFTS + lane] += (double) sums[k][i][lane];
}

/* As many vectors as there are shifts, three at a time. */
INLINE void
multiply_some (const float *a, const float *b, uint32_t width, uint32_t n,
    const uint32_t n_rows, uint32_t n_shifts,
    double (*restrict totals)[MATCH_MAX_SHIFTS])
{
  for (uint32_t i = 0; i < n_shifts; i += 3 * SHIFTS) {
    double (*to)[MATCH_MAX_SHIFTS] =
        (double (*)[MATCH_MAX_SHIFTS]) (&totals[0][i]);

    if (n_shifts - i <= SHIFTS)
      multiply_rows (a + i, b, width, n, n_rows, 1, to);
    else if (n_shifts - i <= 2 * SHIFTS)
      multiply_rows (a + i, b, width, n, n_rows, 2, to);
    else
      multiply_rows (a + i, b, width, n, n_rows, 3, to);
  }
}

/* Row @y of the window under the shifts @dy to @dy + MATCH_ROWS, as far as the
 * template has a row there. */
static void
multiply_match_row (const ImkShcentroidMatch *m, const MatchScratch *s,
    const float *pattern, int32_t y, int32_t dy, int32_t n_rows,
    double (*restrict totals)[MATCH_MAX_SHIFTS])
{
  int32_t width = m->template_width;
  /* columns of the template that no shift brings over the window are left out:
   * they would be read beside the padding */
  int32_t from = imk_shcentroid_more (0, -m->left - m->range_x);
  int32_t to = imk_shcentroid_less (width, m->width - m->left + m->range_x);
  const float *a = s->pixels + (size_t) y * s->stride + s->pad;
  int32_t row = y - m->top - dy; /* of the template, under the first shift */
  int32_t first = imk_shcentroid_more (0, row - m->template_height + 1);
  int32_t end = imk_shcentroid_less (n_rows, row + 1);
  uint32_t n_shifts = (uint32_t) imk_shcentroid_n_shifts (m->range_x);

  if (to <= from)
    return;
  a += m->left - m->range_x + from;
  pattern += from;
  /* each number of rows is a loop of its own, whose sums are registers */
#define MULTIPLY(count) \
  multiply_some (a, pattern + (int64_t) (row - first) * width, \
      (uint32_t) width, (uint32_t) (to - from), count, n_shifts, \
      totals + first)
  switch (end - first) {
  case 4:
    MULTIPLY (4);
    break;
  case 3:
    MULTIPLY (3);
    break;
  case 2:
    MULTIPLY (2);
    break;
  case 1:
    MULTIPLY (1);
    break;
  }
#undef MULTIPLY
}

/* Sums of products of all shifts, row by row. */
static void
multiply_match (
    const ImkShcentroidMatch *m, const MatchScratch *s, const float *pattern)
{
  int32_t n = imk_shcentroid_n_shifts (m->range_x);

  for (int32_t dy = -m->range_y; dy <= m->range_y; dy += MATCH_ROWS) {
    int32_t n_rows = imk_shcentroid_less (MATCH_ROWS, m->range_y - dy + 1);
    double totals[MATCH_ROWS][MATCH_MAX_SHIFTS];
    int32_t top = imk_shcentroid_more (0, m->top + dy);
    int32_t end = imk_shcentroid_less (
        m->height, m->top + dy + n_rows - 1 + m->template_height);

    for (int32_t k = 0; k < MATCH_ROWS; k++)
      memset (totals[k], 0, ((size_t) n + 3 * SHIFTS) * sizeof (double));
    for (int32_t y = top; y < end; y++)
      multiply_match_row (m, s, pattern, y, dy, n_rows, totals);
    for (int32_t k = 0; k < n_rows; k++)
      memcpy (s->products + (size_t) (dy + k + m->range_y) * (size_t) n,
          totals[k], (size_t) n * sizeof (double));
  }
}

/* Returns: the index of the best shift; -1 for none */
static int32_t
score_match (const ImkShcentroidMatch *m, const MatchScratch *s,
    const ImkShcentroidTotal *totals, ImkShcentroidCorrelation how)
{
  double best = IMK_SHCENTROID_NO_SCORE;
  int32_t best_index = -1, index = 0;

  for (int32_t dy = -m->range_y; dy <= m->range_y; dy++)
    for (int32_t dx = -m->range_x; dx <= m->range_x; dx++, index++) {
      ImkShcentroidProducts p = imk_shcentroid_products (
          m, dx, dy, s->totals, totals, s->products[index]);
      double score = imk_shcentroid_rank_of (&p, how);

      if (score > best) {
        best = score;
        best_index = index;
      }
    }
  return best_index;
}

/* ------------------------------------------------------------------------
 * Variances. */

/* What the pixels of row @y do to the gradient through one score. */
INLINE void
respond_row (const ImkShcentroidResponse *r, const MatchScratch *s,
    const float *pattern, int32_t width, int32_t y)
{
  const float *a = s->pixels + (size_t) y * s->stride + s->pad;
  const float *b = pattern + (int64_t) (y - r->top) * width - r->left;
  double *restrict in_x = s->columns.in_x, *restrict in_y = s->columns.in_y;

  if (y - r->top < r->overlap.y0 || y - r->top >= r->overlap.y1)
    return;
  for (int32_t x = r->overlap.x0 + r->left; x < r->overlap.x1 + r->left; x++)
    imk_shcentroid_respond (r, a[x], b[x], &in_x[x], &in_y[x]);
}

static ImkShcentroidSpreads
spread_match (const ImkShcentroidMatch *m, const MatchScratch *s,
    const ImkShcentroidPeak *peak, const ImkShcentroidProducts *products,
    const float *pattern, ImkShcentroidCorrelation how)
{
  const MatchColumns *c = &s->columns;
  ImkShcentroidSpreads spreads = {0.0, 0.0, 0.0};
  ImkShcentroidResponse responses[9];
  size_t size = (size_t) m->width * sizeof (double);

  for (int32_t k = 0; k < 9; k++)
    responses[k] = imk_shcentroid_response (m, peak, k, &products[k], how);
  memset (c->xx, 0, size);
  memset (c->xy, 0, size);
  memset (c->yy, 0, size);
  for (int32_t y = 0; y < m->height; y++) {
    const double *restrict q = s->spread + (size_t) y * (size_t) m->width;

    memset (c->in_x, 0, size);
    memset (c->in_y, 0, size);
    for (int32_t k = 0; k < 9; k++)
      respond_row (&responses[k], s, pattern, m->template_width, y);
    for (int32_t x = 0; x < m->width; x++) {
      c->xx[x] += c->in_x[x] * c->in_x[x] * q[x];
      c->xy[x] += c->in_x[x] * c->in_y[x] * q[x];
      c->yy[x] += c->in_y[x] * c->in_y[x] * q[x];
    }
  }
  for (int32_t x = 0; x < m->width; x++) {
    spreads.xx += c->xx[x];
    spreads.xy += c->xy[x];
    spreads.yy += c->yy[x];
  }
  return spreads;
}

/* ------------------------------------------------------------------------
 * Cells. */

/* The cell @cell, less its mean. Returns: its sums */
INLINE ImkShcentroidCellSums
prepare_match (const Frame *f, uint32_t cell, ChainTile *tile,
    ImkShcentroidMatch *m, MatchScratch *s)
{
  const Cpu *cpu = f->cpu;
  const ImkShcentroidTemplates *t = &cpu->matching.templates;

  begin_chain (tile, f, cell, 1, true);
  find_levels (tile);
  *m = imk_shcentroid_match (&tile->windows[0], &cpu->rects[cell],
      &t->anchors[cell], t, cpu->params.search_range);
  return load_match (tile, s);
}

static void
measure_match (const Frame *f, uint32_t cell, MatchScratch *s)
{
  const Cpu *cpu = f->cpu;
  const ImkShcentroidParams *params = &cpu->params;
  const ImkShcentroidTemplates *t = &cpu->matching.templates;
  size_t which = t->n > 1 ? cell : 0;
  const float *pattern = cpu->matching.pixels + which * t->width * t->height;
  const ImkShcentroidTotal *totals =
      t->totals + which * match_n_totals (t->width, t->height);
  ImkShcentroidSpreads spreads = {0.0, 0.0, 0.0};
  ImkShcentroidProducts nine[9];
  ImkShcentroidRow row = {{0}};
  ImkShcentroidCellSums sums;
  ImkShcentroidMatch m;
  ImkShcentroidPeak peak;
  ChainTile tile;
  int32_t best;

  sums = prepare_match (f, cell, &tile, &m, s);
  centre_match (&m, s, imk_shcentroid_mean (sums.p, sums.n));
  multiply_match (&m, s, pattern);
  best = score_match (&m, s, totals, params->correlation);
  peak = imk_shcentroid_peak_at (&m, best);
  for (int32_t k = 0; peak.found && k < 9; k++)
    peak.score[k] = imk_shcentroid_score_near (&m, &peak, k, s->products,
        s->totals, totals, params->correlation, &nine[k]);
  imk_shcentroid_finish_peak (&peak, &nine[4], params);
  if (peak.found && cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL)
    spreads = spread_match (&m, s, &peak, nine, pattern, params->correlation);
  imk_shcentroid_finish_match (&row, &sums, &peak, &spreads, &cpu->rects[cell],
      &t->anchors[cell], &tile.windows[0], params, cpu->fresh,
      cpu->held + 2 * (size_t) cell, &cpu->tracks[cell], &cpu->slopes[cell]);
  store_row (f, cell, &row);
}

/* The template is a cell of this frame. */
static void
take_template (Frame *f)
{
  const Matching *matching = &f->cpu->matching;
  const ImkShcentroidTemplates *t = &matching->templates;
  MatchScratch s = imk_shcentroid_take_scratch (matching);
  ImkShcentroidMatch m;
  ChainTile tile;

  prepare_match (f, t->cell, &tile, &m, &s);
  for (int32_t y = 0; y < m.template_height; y++)
    for (int32_t x = 0; x < m.template_width; x++) {
      int32_t u = m.left + x, v = m.top + y;
      bool inside = u >= 0 && v >= 0 && u < m.width && v < m.height;

      matching->pixels[y * m.template_width + x] =
          inside ? s.pixels[(size_t) v * s.stride + s.pad + (uint32_t) u] : NAN;
    }
  imk_shcentroid_make_template (
      matching->pixels, t->width, t->height, matching->totals);
  imk_shcentroid_give_back_scratch (matching, &s);
}

/* Cell by cell, each looked for its template. */
static void
measure_matches (void *data, uint32_t first, uint32_t end)
{
  const Frame *f = data;
  MatchScratch scratch = imk_shcentroid_take_scratch (&f->cpu->matching);

  for (uint32_t i = first; i < end; i++)
    measure_match (f, i, &scratch);
  imk_shcentroid_give_back_scratch (&f->cpu->matching, &scratch);
}

const ImkShcentroidLoops IMK_ISA_TABLE = {
    .measure = measure_matches,
    .prepare = take_template,
};
