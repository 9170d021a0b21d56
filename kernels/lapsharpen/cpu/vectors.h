/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The Laplacian with all options but the focus measure, for loops.c: a vector
 * of samples is read, sharpened, limited and written before the next, which
 * takes 0.2 to 0.4 of the time of the loops of chunk.h. The tests compare both
 * with the reference. */
#pragma once

#include "lapsharpen/cpu/plan.h"

#if defined(__AVX2__)
#if SAMPLE_BITS == 8
#include "lapsharpen/cpu/vectors-8.h"
#else
#include "lapsharpen/cpu/vectors-16.h"
#endif
#include "lapsharpen/cpu/rows.h"
#include "lapsharpen/cpu/taps.h"

/* --- limits --------------------------------------------------------------- */

/* What of a rule limits samples. */
typedef enum Limits { NO_LIMITS, RANGE, WINDOW } Limits;

/* Extends @least and @most to the samples above and below @here. */
INLINE void
add_column (const Sample *above, const Sample *here, const Sample *below,
    Vector *least, Vector *most)
{
  const Vector a = load (above), h = load (here), b = load (below);

  *least =
      SAMPLE_OP (min) (SAMPLE_OP (min) (*least, h), SAMPLE_OP (min) (a, b));
  *most = SAMPLE_OP (max) (SAMPLE_OP (max) (*most, h), SAMPLE_OP (max) (a, b));
}

/* Keeps @t within the least and the largest of the 3x3 window, or as far beyond
 * as halos may be. */
INLINE Vector
keep_window (const Plan *p, Vector t, const Sample *above, const Sample *here,
    const Sample *below)
{
  const ptrdiff_t c = p->c;
  Vector least = load (here), most = least;

  add_column (above - c, here - c, below - c, &least, &most);
  add_column (above, here, below, &least, &most);
  add_column (above + c, here + c, below + c, &least, &most);
  least = SAMPLE_OP (subs) (least, p->dark);
  most = SAMPLE_OP (adds) (most, p->bright);
  return SAMPLE_OP (min) (SAMPLE_OP (max) (t, least), most);
}

/* --- vectors of a row ----------------------------------------------------- */

/* Samples @first to @end, at least a vector of them: the last one may have
 * samples of the one before. @way, @diagonal, @limits: constants */
INLINE void
sharpen_vectors_with (const Band *band, const Rows *rows, size_t first,
    size_t end, Way way, bool diagonal, Limits limits, Sample *out)
{
  Plan plan = *band->plan; /* a copy that no store can change */
  const Plan *p = &plan;
  const size_t last = end - STEP;
  /* WEIGHTED needs whole pixels; other stores cross no cache line. */
  const size_t crossed =
      way == WEIGHTED
          ? 0
          : (uintptr_t) (out + first) % IMK_VECTOR_SIZE / sizeof (Sample);
  const int n_taps = way == TAPS ? band->work->ratio->n_pairs : 0;
  Tap taps[MAX_TAPS];
  const bool decides = way == TAPS && band->work->ratio->by_order;
  Halves halves;
  const Sample *const above = rows->row[ABOVE];
  const Sample *const here = rows->row[HERE];
  const Sample *const below = rows->row[BELOW];
  size_t next = first + STEP - crossed, phase = (rows->first + first) % CHUNK;

  halves.n = 0;
  if (way == TAPS)
    make_taps (band->work, rows, taps);
  plan.diagonal = diagonal;
  if (way == CORED)
    plan.cored = true;
  if (way == PRODUCTS || way == PLAIN)
    plan.cored = plan.soft = plan.edges = false;
  for (size_t i = first;;) {
    const Vector v = load (here + i);
    Vector t, half = {0};

    __builtin_prefetch (below + i + PREFETCH, 0);
    __builtin_prefetch (out + i + PREFETCH, 1);
    t = way == TAPS    ? sharpen_taps (&p->ratio, taps, n_taps, i, v, &half)
        : way == LINES ? load (band->made + rows->first + i)
        : way == WEIGHTED
            ? sharpen_weighted (p, v, above + i, here + i, below + i)
            : sharpen_vector (p, way, v, above + i, here + i, below + i);
    if (decides && limits != NO_LIMITS)
      t = decide_vector (band->work, rows, i, half, t);
    if (!p->whole)
      t = SAMPLE_OP (min) (t, p->maximum);
    if (limits == WINDOW)
      t = keep_window (p, t, above + i, here + i, below + i);
    if (!p->whole) {
      const Vector filtered = load (band->filtered + phase);

      t = (t & filtered) | (v & ~filtered);
      half = half & filtered;
    }
    if (limits == RANGE || (limits && p->limited)) {
      const Vector low = SAMPLE_OP (min) (v, load (band->low + phase));
      const Vector high = SAMPLE_OP (max) (v, load (band->high + phase));

      t = SAMPLE_OP (min) (SAMPLE_OP (max) (t, low), high);
    }
    if (decides && limits == NO_LIMITS)
      add_halves (half, i, &halves);
    memcpy (out + i, &t, sizeof (t));
    if (i == last)
      break;
    if (decides && __builtin_expect (are_halves_full (&halves), 0)) {
      decide_halves (band->work, rows, &halves, out, 0);
      halves.n = 0;
    }
    next = LEAST (next, last);
    phase += next - i;
    phase -= phase < CHUNK ? 0 : CHUNK;
    i = next;
    next += STEP;
  }
  if (decides)
    decide_halves (band->work, rows, &halves, out, 0);
}

INLINE void
sharpen_vectors_by (const Band *band, const Rows *rows, size_t first,
    size_t end, Way way, bool diagonal, Sample *out)
{
  const ImkLapsharpenRule *r = band->rule;

  if (r->local)
    sharpen_vectors_with (band, rows, first, end, way, diagonal, WINDOW, out);
  else if (r->limited)
    sharpen_vectors_with (band, rows, first, end, way, diagonal, RANGE, out);
  else
    sharpen_vectors_with (
        band, rows, first, end, way, diagonal, NO_LIMITS, out);
}

INLINE void
sharpen_vectors_so (const Band *band, const Rows *rows, size_t first,
    size_t end, Way way, Sample *out)
{
  if (way == TAPS || way == LINES || band->rule->neighbours == 4)
    sharpen_vectors_by (band, rows, first, end, way, false, out);
  else
    sharpen_vectors_by (band, rows, first, end, way, true, out);
}

static void
sharpen_vectors (
    const Band *band, const Rows *rows, size_t first, size_t end, Sample *out)
{
  if (band->way == FEW)
    sharpen_vectors_so (band, rows, first, end, FEW, out);
  else if (band->way == PRODUCTS)
    sharpen_vectors_so (band, rows, first, end, PRODUCTS, out);
  else if (band->way == CORED)
    sharpen_vectors_so (band, rows, first, end, CORED, out);
  else if (band->way == PLAIN)
    sharpen_vectors_so (band, rows, first, end, PLAIN, out);
  else if (band->way == FLOATS)
    sharpen_vectors_so (band, rows, first, end, FLOATS, out);
  else if (band->way == WEIGHTED)
    sharpen_vectors_so (band, rows, first, end, WEIGHTED, out);
  else if (band->way == TAPS)
    sharpen_vectors_so (band, rows, first, end, TAPS, out);
  else
    sharpen_vectors_so (band, rows, first, end, LINES, out);
}

/* --- rows ----------------------------------------------------------------- */

/* Copies the pixels beside a row, see make_band (). */
INLINE void
copy_beside (
    const ImkLapsharpenRule *rule, const Sample *row, const int *at, Sample *to)
{
  const int n = (int) (rule->reach * rule->channels);

  for (int i = 0; i < n; i++)
    to[i] = rule->constant ? (Sample) rule->border_value : row[at[i]];
}

/* Copies the vector of samples @first on, with which a row begins or ends, and
 * the pixels beside. */
static Rows
copy_end (const Band *band, const Rows *rows, size_t first, Line *lines)
{
  const ImkLapsharpenRule *rule = band->rule;
  const uint32_t reach = rule->reach;
  Rows copies = {.first = first};

  for (uint32_t i = HERE - reach; i <= HERE + reach; i++) {
    const Sample *row = rows->row[i];
    Sample *line = lines[i].samples + MARGIN;

    memcpy (line, row + first, STEP * sizeof (Sample));
    if (first == 0) {
      memcpy (line + STEP, row + STEP, MARGIN * sizeof (Sample));
      copy_beside (rule, row, band->beside[0], line - reach * rule->channels);
    } else {
      memcpy (line - MARGIN, row + first - MARGIN, MARGIN * sizeof (Sample));
      copy_beside (rule, row, band->beside[1], line + STEP);
    }
    copies.row[i] = line;
  }
  return copies;
}

/* Rows of at least 2 vectors and @end samples. Copies are read long after they
 * are written: the processor waits for stores that a load has parts of. */
static void
sharpen_row_by_vectors (Band *band, const Rows *rows, size_t end, Sample *out)
{
  const ImkLapsharpenRule *rule = band->rule;
  const size_t margin = rule->reach * rule->channels;
  Rows left, right;

  if (band->way == LINES && !rule->local) {
    sharpen_vectors (band, rows, 0, end, out);
    return;
  }
  left = copy_end (band, rows, 0, band->lines);
  right = copy_end (band, rows, end - STEP, band->right_lines);
  sharpen_vectors (band, rows, margin, end - margin, out);
  sharpen_vectors (band, &left, 0, STEP, out);
  sharpen_vectors (band, &right, 0, STEP, out + end - STEP);
}

#else

/* The loops of chunk.h are as good for amounts of few bits. */
enum { STEP = CHUNK };

typedef struct Kernel {
  Way way;
} Kernel;

typedef struct Plan {
  Kernel kernel;
} Plan;

typedef struct MadeRows {
  const Work *work;
} MadeRows;

INLINE Way
choose_way (const Work *work)
{
  return CHUNKS;
}

INLINE Plan
make_plan (const Work *work, Way way)
{
  return (Plan){{way}};
}

INLINE MadeRows
start_made_rows (const Work *work, const Plan *plan, float *memory)
{
  return (MadeRows){work};
}

INLINE const Sample *
get_made_row (MadeRows *made, int y)
{
  return NULL;
}

INLINE void
sharpen_vectors (
    const Band *band, const Rows *rows, size_t first, size_t end, Sample *out)
{
}

INLINE void
sharpen_row_by_vectors (Band *band, const Rows *rows, size_t end, Sample *out)
{
}

#endif
