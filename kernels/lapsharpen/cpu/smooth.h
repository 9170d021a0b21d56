/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Smoothing for method=unsharp and method=log, of all types: a thread makes low
 * rows and grown ones as it goes down the frame, and keeps the last of them. */
#pragma once

#include "lapsharpen/cpu/floats.h"
#include "lapsharpen/cpu/scratch.h"

typedef struct Smoother {
  const Work *work;
  const ImkLapsharpenRule *rule;
  const ImkLapsharpenSmooth *smooth;
  SmoothSizes sizes;
  int next_low, next_grown; /* the first rows that are not made yet */
  float *wide, *sorted, *low, *blurred, *curved, *smoothed, *grown;
  Sample *outside;      /* a row above or below a constant border */
  float outside_low[4]; /* what its columns come to, by channel */
} Smoother;

static float *
low_row (const Smoother *s, int k)
{
  const int n = 2 * s->smooth->blur_reach + 1;

  return s->low + (size_t) ((k % n + n) % n) * s->sizes.low;
}

static float *
grown_row (const Smoother *s, int k)
{
  return s->grown + (size_t) ((k + GROWN) % GROWN) * s->sizes.grown;
}

/* --- sums ----------------------------------------------------------------- */

/* The vectors of fold () from float @i on. @n: how many, a constant */
INLINE void
fold_vectors (const float *const *rows, const float *w, int reach, size_t i,
    int n, bool add, float *out)
{
  Floats sums[SUMS];

  for (int k = 0; k < n; k++)
    sums[k] = w[0] * load_floats (rows[0] + i + k * LANES);
  for (int j = 1; j <= reach; j++)
    for (int k = 0; k < n; k++)
      sums[k] += w[j] * (load_floats (rows[-j] + i + k * LANES) +
                            load_floats (rows[j] + i + k * LANES));
  for (int k = 0; k < n; k++) {
    if (add)
      sums[k] = load_floats (out + i + k * LANES) + sums[k];
    memcpy (out + i + k * LANES, &sums[k], sizeof (sums[k]));
  }
}

/* @n sums w[0] v_0 + w[1] (v_-1 + v_1) + ..., v_j of vector i from @rows[j] + i
 * on; writes whole vectors. */
INLINE void
fold (const float *const *rows, const float *w, int reach, size_t n, bool add,
    float *out)
{
  size_t i = 0;

  for (; i + SUMS * LANES <= n; i += SUMS * LANES)
    fold_vectors (rows, w, reach, i, SUMS, add, out);
  for (; i < n; i += LANES)
    fold_vectors (rows, w, reach, i, 1, add, out);
}

/* --- shrinking ------------------------------------------------------------ */

/* The @n samples of whole pixels as they are smoothed where alpha counts. */
INLINE void
get_visible (
    const ImkLapsharpenRule *rule, const Sample *row, uint32_t n, float *line)
{
  const uint32_t c = rule->channels, alpha = (uint32_t) rule->weight_channel;

  for (uint32_t i = 0; i < n; i += c)
    for (uint32_t j = 0; j < c; j++)
      line[i + j] = imk_lapsharpen_visible (rule,
          (uint32_t) count_of (row[i + j], rule->shift),
          (uint32_t) count_of (row[i + alpha], rule->shift), j == alpha);
}

/* Sample @i of the sum over @rows[-reach] to @rows[reach]. */
INLINE float
shrink_one (const Smoother *s, const Sample *const *rows, uint32_t i)
{
  const uint32_t shift = s->rule->shift;
  const float *w = s->smooth->shrink;
  float sum = w[0] * (float) count_of (rows[0][i], shift);

  for (int j = 1; j <= s->smooth->shrink_reach; j++)
    sum += w[j] * (float) (count_of (rows[-j][i], shift) +
                           count_of (rows[j][i], shift));
  return sum;
}

static void
shrink_rows (const Smoother *s, const Sample *const *rows, float *out)
{
  const uint32_t end = s->rule->width * s->rule->channels;
  const uint32_t shift = s->rule->shift;
  const int reach = s->smooth->shrink_reach;
  const float *w = s->smooth->shrink;
  uint32_t i = 0;

  for (; i + LANES <= end; i += LANES) {
    Floats sum = w[0] * __builtin_convertvector(
                            load_counts (rows[0] + i, shift), Floats);

    for (int j = 1; j <= reach; j++)
      sum +=
          w[j] * __builtin_convertvector(load_counts (rows[-j] + i, shift) +
                                             load_counts (rows[j] + i, shift),
                     Floats);
    memcpy (out + i, &sum, sizeof (sum));
  }
  for (; i < end; i++)
    out[i] = shrink_one (s, rows, i);
}

/* The same where alpha counts. */
static void
shrink_visible_rows (const Smoother *s, const Sample *const *rows, float *out)
{
  const uint32_t end = s->rule->width * s->rule->channels;
  const float *w = s->smooth->shrink;

  for (uint32_t i = 0; i < end; i += CHUNK) {
    const uint32_t n = LEAST (end - i, CHUNK);
    float sum[CHUNK], before[CHUNK], after[CHUNK];

    get_visible (s->rule, rows[0] + i, n, sum);
    for (uint32_t k = 0; k < n; k++)
      sum[k] *= w[0];
    for (int j = 1; j <= s->smooth->shrink_reach; j++) {
      get_visible (s->rule, rows[-j] + i, n, before);
      get_visible (s->rule, rows[j] + i, n, after);
      for (uint32_t k = 0; k < n; k++)
        sum[k] += w[j] * (before[k] + after[k]);
    }
    memcpy (out + i, sum, n * sizeof (float));
  }
}

/* Fills pixels @first to @end, which are outside. */
static void
fill_outside (const Smoother *s, int first, int end, float *inside)
{
  const ptrdiff_t c = s->rule->channels;
  const int width = (int) s->rule->width;

  for (int x = first; x < end; x++)
    memcpy (inside + x * c,
        s->rule->constant
            ? s->outside_low
            : inside + imk_lapsharpen_inside (x, width, s->rule) * c,
        (size_t) c * sizeof (float));
}

/* Pixels whose numbers have the same rest by the step come to lie side by side,
 * so that vectors can be used. @c: the channels, as a constant */
INLINE void
shrink_columns (const Smoother *s, const float *wide, ptrdiff_t c, float *low)
{
  const int reach = s->smooth->shrink_reach, step = s->smooth->step;
  const float *rows[2 * IMK_LAPSHARPEN_MAX_SHRINK + 1];

  for (int rest = 0; rest < step; rest++) {
    const float *from = wide + rest * c;
    float *restrict to = s->sorted + (size_t) rest * s->sizes.low;
    const int n = s->sizes.columns + (2 * reach - rest) / step;

    for (int k = 0; k < n; k++, from += step * c)
      for (ptrdiff_t i = 0; i < c; i++)
        to[k * c + i] = from[i];
  }
  for (int j = 0; j <= 2 * reach; j++)
    rows[j] = s->sorted + (size_t) (j % step) * s->sizes.low + j / step * c;
  fold (rows + reach, s->smooth->shrink, reach, (size_t) (s->sizes.columns * c),
      false, low);
}

static void
make_low (const Smoother *s, int k)
{
  const int step = s->smooth->step, width = (int) s->rule->width;
  const int reach = s->smooth->shrink_reach;
  const int right =
      (s->sizes.columns - 1) * step + 2 * reach + 1 - s->sizes.left;
  const ptrdiff_t c = s->rule->channels;
  float *low = low_row (s, k), *wide = step > 1 ? s->wide : low;
  float *inside = wide + s->sizes.left * c;
  const Sample *rows[2 * IMK_LAPSHARPEN_MAX_SHRINK + 1];

  for (int j = -reach; j <= reach; j++) {
    rows[reach + j] = get_row (s->work, k * step + j);
    if (!rows[reach + j])
      rows[reach + j] = s->outside;
  }
  if (s->rule->weight_channel >= 0)
    shrink_visible_rows (s, rows + reach, inside);
  else
    shrink_rows (s, rows + reach, inside);
  fill_outside (s, -s->sizes.left, 0, inside);
  fill_outside (s, width, right, inside);
  if (step == 1)
    return;
  if (c == 1)
    shrink_columns (s, wide, 1, low);
  else if (c == 2)
    shrink_columns (s, wide, 2, low);
  else if (c == 3)
    shrink_columns (s, wide, 3, low);
  else
    shrink_columns (s, wide, 4, low);
}

/* --- blurring ------------------------------------------------------------- */

/* Blurs low row @k in both directions, from the low sample at @first on. */
static void
blur (const Smoother *s, int k, int first, size_t n, float *out)
{
  const ImkLapsharpenSmooth *m = s->smooth;
  const ptrdiff_t c = s->rule->channels;
  const int reach = m->blur_reach;
  const float *rows[2 * IMK_LAPSHARPEN_MAX_BLUR + 1];
  const float *blurred[2 * IMK_LAPSHARPEN_MAX_BLUR + 1];
  const float *curved[2 * IMK_LAPSHARPEN_MAX_BLUR + 1];
  const size_t n_low = (size_t) (s->sizes.columns * c);

  for (int j = -reach; j <= reach; j++) {
    const ptrdiff_t at = (first + m->halo + reach + j) * c;

    rows[reach + j] = low_row (s, k + j);
    blurred[reach + j] = s->blurred + at;
    curved[reach + j] = s->curved + at;
  }
  fold (rows + reach, m->blur, reach, n_low, false, s->blurred);
  fold (blurred + reach, m->is_log ? m->curve : m->blur, reach, n, false, out);
  if (m->is_log) {
    fold (rows + reach, m->curve, reach, n_low, false, s->curved);
    fold (curved + reach, m->blur, reach, n, true, out);
  }
}

/* --- growing -------------------------------------------------------------- */

/* @low: @n low samples, from that left of the frame on; @c: the channels, as a
 * constant */
INLINE void
grow_columns (const Smoother *s, const float *low, size_t n, ptrdiff_t c,
    float *restrict out)
{
  const ImkLapsharpenSmooth *m = s->smooth;
  const int width = (int) s->rule->width;

  for (int j = 0; j < m->step; j++) {
    const float *w = m->grow[j];
    const int first = j < m->step / 2; /* pixel j - step / 2 is outside */
    float *restrict made = s->wide;
    const float *from = made + first * c;

    for (size_t i = 0; i < n; i++)
      made[i] = w[0] * low[i] + w[1] * low[c + (ptrdiff_t) i] +
                w[2] * low[2 * c + (ptrdiff_t) i];
    for (int x = first * m->step + j - m->step / 2; x < width;
         x += m->step, from += c)
      for (ptrdiff_t i = 0; i < c; i++)
        out[x * c + i] = from[i];
  }
}

static void
make_grown (const Smoother *s, int k)
{
  const ptrdiff_t c = s->rule->channels;
  const size_t n =
      (size_t) (c * (s->sizes.columns - 2 * s->smooth->blur_reach));

  if (s->smooth->step == 1) {
    blur (s, k, 0, c * s->rule->width, grown_row (s, k));
    return;
  }
  blur (s, k, -1, n, s->smoothed);
  if (c == 1)
    grow_columns (s, s->smoothed, n, 1, grown_row (s, k));
  else if (c == 2)
    grow_columns (s, s->smoothed, n, 2, grown_row (s, k));
  else if (c == 3)
    grow_columns (s, s->smoothed, n, 3, grown_row (s, k));
  else
    grow_columns (s, s->smoothed, n, 4, grown_row (s, k));
}

/* --- the rows of a thread ------------------------------------------------- */

/* For rows from @y on. @memory: sizes.total floats, 0 or from an earlier frame:
 * what chunks read beyond a row is a number, and thrown away */
static void
start_smoother (Smoother *s, const Work *work, uint32_t y, float *memory)
{
  const ImkLapsharpenRule *rule = work->rule;
  const ImkLapsharpenSmooth *m = &rule->smooth;
  const uint32_t c = rule->channels, alpha = (uint32_t) rule->weight_channel;
  const uint32_t border = rule->border_value;

  *s = (Smoother){.work = work, .rule = rule, .smooth = m};
  s->sizes = smooth_sizes (rule);
  s->next_grown = ((int) y + m->step / 2) / m->step - m->halo;
  s->next_low = s->next_grown - m->blur_reach;
  s->wide = memory;
  s->sorted = s->wide + s->sizes.wide;
  s->low = s->sorted + (size_t) m->step * s->sizes.low;
  s->blurred = s->low + (size_t) (2 * m->blur_reach + 1) * s->sizes.low;
  s->curved = s->blurred + s->sizes.low;
  s->smoothed = s->curved + s->sizes.low;
  s->grown = s->smoothed + s->sizes.low;
  s->outside = (Sample *) (s->grown + GROWN * s->sizes.grown);
  for (uint32_t i = 0; i < c * rule->width; i++)
    s->outside[i] = (Sample) (border << rule->shift);
  for (uint32_t i = 0; i < c; i++) {
    const float v = rule->weight_channel < 0 ? (float) border
                                             : imk_lapsharpen_visible (rule,
                                                   border, border, i == alpha);

    s->outside_low[i] = m->shrink[0] * v;
    for (int j = 1; j <= m->shrink_reach; j++)
      s->outside_low[i] += m->shrink[j] * (v + v);
  }
}

/* Makes what row @y of the frame needs, which is not above those before it. */
static void
smooth_row (Smoother *s, uint32_t y, Grown *grown)
{
  const ImkLapsharpenSmooth *m = s->smooth;
  const int shifted = (int) y + m->step / 2, k = shifted / m->step;

  for (; s->next_grown <= k + m->halo; s->next_grown++) {
    for (; s->next_low <= s->next_grown + m->blur_reach; s->next_low++)
      make_low (s, s->next_low);
    make_grown (s, s->next_grown);
  }
  for (int i = 0; i < GROWN; i++) {
    grown->row[i] = grown_row (s, k + (i - 1) * m->halo);
    grown->weight[i] = m->grow[shifted % m->step][i];
  }
}
