/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The two stages of the CPU backend for one combination of types, included by
 * shcentroid-cpu-isa.h:
 * SAMPLE: uint8_t or uint16_t
 * LANE: the unsigned integer in which a strip is summed up
 * SIGNED_LANE: the same, signed: vector units compare signed numbers
 * SUM, SIGNED_SUM: 32 or 64 bits, hold the sums of a cell
 * NAME(x): x with a suffix for the combination
 * and, for one instruction set, ISA_NAME, VECTOR_SIZE in bytes, and INLINE and
 * FUNCTION, which begin a function */

#define Sums NAME (Sums)
#define STRIP NAME (STRIP)
#define add_row NAME (add_row)
#define interleave NAME (interleave)
#define Lanes NAME (Lanes)
#define SignedLanes NAME (SignedLanes)
#define Strip NAME (Strip)
#define Columns NAME (Columns)
#define LANES NAME (LANES)
#define sum_strip NAME (sum_strip)
#define flush_moments NAME (flush_moments)
#define flush_strip NAME (flush_strip)
#define sum_narrow_frame NAME (sum_narrow_frame)
#define sum_rows NAME (sum_rows)
#define sum_area NAME (sum_area)
#define sum_columns NAME (sum_columns)
#define Cells NAME (Cells)
#define sum_cell_xy NAME (sum_cell_xy)
#define sum_cells NAME (sum_cells)
#define find_centres NAME (find_centres)
#define finish_xy NAME (finish_xy)
#define measure_xy NAME (measure_xy)
#define add_columns NAME (add_columns)
#define measure_all NAME (measure_all)
#define Below NAME (Below)
#define load_below NAME (load_below)
#define find_extreme NAME (find_extreme)
#define find_extremes NAME (find_extremes)
#define join_extremes NAME (join_extremes)
#define gather_extremes NAME (gather_extremes)
#define piece_of NAME (piece_of)
#define level_wide_cell NAME (level_wide_cell)
#define find_levels NAME (find_levels)
#define measure_tile NAME (measure_tile)
#define measure_wide_cell NAME (measure_wide_cell)

/* A strip is as wide as a vector of samples; each lane holds two of them. */
enum { LANES = VECTOR_SIZE / sizeof (LANE), STRIP = 2 * LANES };

typedef LANE Lanes __attribute__ ((vector_size (VECTOR_SIZE)));
typedef SIGNED_LANE SignedLanes __attribute__ ((vector_size (VECTOR_SIZE)));

/* The sums of every second column of a strip, in registers; see Strip. */
typedef struct Sums {
  Lanes s0, s1, s2, c0, c1, c2, raw, max;
} Sums;

/* The sums over the rows of one strip, per column. s0, s1, s2 add up 1,
 * (y + 1) and (y + 1) (y + 2) / 2 times the sample, c0, c1, c2 the same
 * times 1 where the sample takes part. The second half is what a strip that
 * begins in the middle of the first ends with, and means nothing. */
typedef struct Strip {
  LANE s0[2 * STRIP], s1[2 * STRIP], s2[2 * STRIP];
  LANE c0[2 * STRIP], c1[2 * STRIP], c2[2 * STRIP];
  LANE raw[2 * STRIP], max[2 * STRIP];
} Strip;

/* The sums of a tile, per column: of v, y v, y^2 v, and of 1, y, y^2. A strip
 * is always flushed in full, beyond the end of the tile too. */
typedef struct Columns {
  SUM v[TILE + STRIP], vy[TILE + STRIP], vyy[TILE + STRIP];
  SUM n[TILE + STRIP], ny[TILE + STRIP], nyy[TILE + STRIP];
  SUM raw[TILE + STRIP], max[TILE + STRIP];
} Columns;

/* What samples of the even and the odd columns of a strip have to be above to
 * take part. */
typedef struct Below {
  SignedLanes low, high; /* as the samples lie in a lane */
} Below;

/* From the last row up: adding the running sum to another one weights each
 * row by its distance, without a multiplication. */
INLINE void
add_row (Sums *s, Lanes v, const bool all, const bool cut, SignedLanes below)
{
  if (all) {
    Lanes more = (Lanes) ((SignedLanes) v > (SignedLanes) s->max);

    s->max = (v & more) | (s->max & ~more);
  }
  if (cut) {
    /* all ones, which is -1, where the sample takes part */
    Lanes used = (Lanes) ((SignedLanes) v > below);

    s->c0 -= used;
    s->c1 += s->c0;
    if (all) {
      s->c2 += s->c1;
      s->raw += v;
    }
    v &= used;
  }
  s->s0 += v;
  s->s1 += s->s0;
  if (all)
    s->s2 += s->s1;
}

INLINE void
interleave (LANE *to, const Lanes *even, const Lanes *odd)
{
  LANE e[LANES], o[LANES];

  memcpy (e, even, sizeof (e));
  memcpy (o, odd, sizeof (o));
  for (uint32_t i = 0; i < LANES; i++) {
    to[2 * i] = e[i];
    to[2 * i + 1] = o[i];
  }
}

/* The samples are not widened, which would shuffle in every row: the two of a
 * lane are masked and shifted out of it. */
INLINE void
sum_strip (const uint8_t *data, size_t stride, uint32_t n_rows, const bool all,
    const bool cut, const Below *below, Strip *strip)
{
  const uint32_t bits = 4 * sizeof (LANE); /* half a lane */
  const LANE mask = (LANE) ((1u << bits) - 1);
  Sums low = {.s0 = {0}}, high = {.s0 = {0}};
  const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  const Sums *even = little ? &low : &high, *odd = little ? &high : &low;

  data += n_rows * stride;
  while (n_rows--) {
    Lanes pair;

    data -= stride;
    memcpy (&pair, data, sizeof (pair));
    add_row (&low, pair & mask, all, cut, below->low);
    add_row (&high, pair >> bits, all, cut, below->high);
  }
  interleave (strip->s0, &even->s0, &odd->s0);
  interleave (strip->s1, &even->s1, &odd->s1);
  if (all) {
    interleave (strip->s2, &even->s2, &odd->s2);
    interleave (strip->max, &even->max, &odd->max);
  }
  if (cut) {
    interleave (strip->c0, &even->c0, &odd->c0);
    interleave (strip->c1, &even->c1, &odd->c1);
  }
  if (cut && all) {
    interleave (strip->c2, &even->c2, &odd->c2);
    interleave (strip->raw, &even->raw, &odd->raw);
  }
}

/* Moves one triple of strip sums, whose first row is row @y of the cell, to
 * the columns. They are overwritten by the strip at the top, which is the
 * first to be summed up. */
INLINE void
flush_moments (const LANE *restrict s0, const LANE *restrict s1,
    const LANE *restrict s2, const bool all, SUM y, SUM *restrict m0,
    SUM *restrict m1, SUM *restrict m2)
{
  if (y == 0) {
    for (uint32_t i = 0; i < STRIP; i++) {
      SUM a0 = s0[i], a1 = s1[i];

      m0[i] = a0;
      m1[i] = a1 - a0;
      if (all)
        m2[i] = 2 * (SUM) s2[i] - 3 * a1 + a0;
    }
    return;
  }
  for (uint32_t i = 0; i < STRIP; i++) {
    SUM a0 = s0[i], a1 = s1[i] - a0;

    m0[i] += a0;
    m1[i] += a1 + y * a0;
    if (all)
      m2[i] += 2 * (SUM) s2[i] - 3 * a1 - 2 * a0 + y * (2 * a1 + y * a0);
  }
}

/* Lanes from @from on, to the columns from @x on. */
INLINE void
flush_strip (const Strip *s, uint32_t from, const bool all, const bool cut,
    uint32_t y, Columns *c, uint32_t x)
{
  flush_moments (s->s0 + from, s->s1 + from, s->s2 + from, all, y, c->v + x,
      c->vy + x, c->vyy + x);
  if (cut)
    flush_moments (s->c0 + from, s->c1 + from, s->c2 + from, all, y, c->n + x,
        c->ny + x, c->nyy + x);
  for (uint32_t i = 0; all && i < STRIP; i++) {
    SUM max = s->max[from + i];

    c->max[x + i] = y && c->max[x + i] > max ? c->max[x + i] : max;
  }
  for (uint32_t i = 0; all && cut && i < STRIP; i++)
    c->raw[x + i] = (y ? c->raw[x + i] : 0) + s->raw[from + i];
}

/* @from: the first column of the strip, counted from that of the area */
INLINE Below
load_below (const Area *a, int32_t from)
{
  const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  const SIGNED_LANE *lanes =
      a->belows ? (const SIGNED_LANE *) a->belows + from : NULL;
  SIGNED_LANE even[LANES], odd[LANES];
  Below below;

  for (uint32_t i = 0; i < LANES; i++) {
    even[i] = lanes ? lanes[2 * i] : (SIGNED_LANE) a->below;
    odd[i] = lanes ? lanes[2 * i + 1] : (SIGNED_LANE) a->below;
  }
  memcpy (&below.low, little ? even : odd, sizeof (below.low));
  memcpy (&below.high, little ? odd : even, sizeof (below.high));
  return below;
}

/* A frame narrower than a vector is read through a copy. */
FUNCTION void
sum_narrow_frame (const Area *a, uint32_t y, uint32_t n_rows, const bool all,
    const bool cut, const Below *below, Strip *strip)
{
  SAMPLE rows[MAX_STRIP_ROWS][STRIP] = {{0}};

  for (uint32_t i = 0; i < n_rows; i++)
    memcpy (rows[i], a->frame + (a->y + y + i) * a->stride,
        a->frame_width * sizeof (SAMPLE));
  sum_strip (
      (const uint8_t *) rows, sizeof (rows[0]), n_rows, all, cut, below, strip);
}

/* The last strip of a row is read further left, so that it ends with the
 * row: nothing outside the frame is touched. */
INLINE void
sum_rows (const Area *a, uint32_t y, uint32_t n_rows, const bool all,
    const bool cut, Columns *columns)
{
  const uint8_t *top = a->frame + (a->y + y) * a->stride;
  Strip strip;

  for (uint32_t x = 0; x < a->width; x += STRIP) {
    uint32_t start = a->x + x;
    Below below = {{0}};

    if (a->frame_width < STRIP)
      start = 0;
    else if (start > a->frame_width - STRIP)
      start = a->frame_width - STRIP;
    if (cut)
      below = load_below (a, (int32_t) (start - a->x));
    if (a->frame_width < STRIP)
      sum_narrow_frame (a, y, n_rows, all, cut, &below, &strip);
    else
      sum_strip (top + start * sizeof (SAMPLE), a->stride, n_rows, all, cut,
          &below, &strip);
    flush_strip (&strip, a->x + x - start, all, cut, y, columns, x);
  }
}

INLINE void
sum_area (const Area *a, const bool all, const bool cut, Columns *columns)
{
  uint32_t most = strip_rows (sizeof (LANE), all);

  for (uint32_t y = 0; y < a->height; y += most)
    sum_rows (
        a, y, a->height - y < most ? a->height - y : most, all, cut, columns);
}

/* The first stage: purely vertical. */
FUNCTION void
sum_columns (const Area *a, bool all, bool cut, Columns *columns)
{
  if (all && cut)
    sum_area (a, true, true, columns);
  else if (all)
    sum_area (a, true, false, columns);
  else if (cut)
    sum_area (a, false, true, columns);
  else
    sum_area (a, false, false, columns);
}

/* ------------------------------------------------------------------------
 * The second stage: from columns to cells. */

/* What a centroid needs, of the cells of a tile. */
typedef struct Cells {
  SUM v[TILE], vu[TILE], vy[TILE];
  SUM n[TILE], nu[TILE], ny[TILE];
  int32_t left[TILE], last[TILE]; /* x, width - 1 */
} Cells;

INLINE void
sum_cell_xy (const Columns *c, uint32_t first, uint32_t width, const bool cut,
    Cells *cells, uint32_t i)
{
  SUM v = 0, vu = 0, vy = 0, n = 0, nu = 0, ny = 0;

  for (uint32_t x = first + width; x-- > first;) {
    v += c->v[x];
    vu += v;
    vy += c->vy[x];
    if (cut) {
      n += c->n[x];
      nu += n;
      ny += c->ny[x];
    }
  }
  cells->v[i] = v;
  cells->vu[i] = vu - v;
  cells->vy[i] = vy;
  if (cut) {
    cells->n[i] = n;
    cells->nu[i] = nu - n;
    cells->ny[i] = ny;
  }
}

/* Cells @rects[0..n), which lie side by side and fill the columns. */
FUNCTION void
sum_cells (const Columns *columns, const ImkShcentroidRect *rects, uint32_t n,
    bool cut, Cells *cells)
{
  uint32_t x = 0;

  for (uint32_t i = 0; i < n; i++) {
    uint32_t width = rects[i].width;

    if (cut)
      sum_cell_xy (columns, x, width, true, cells, i);
    else
      sum_cell_xy (columns, x, width, false, cells, i);
    cells->left[i] = rects[i].x;
    cells->last[i] = (int32_t) width - 1;
    x += width;
  }
}

/* Without a threshold the pedestal is 0 and the counts are not looked at.
 * Returns: whether all are valid */
FUNCTION bool
find_centres (const Cells *c, uint32_t n, bool cut,
    const double *restrict pedestal, double min_flux, double top, double last_y,
    double *restrict x, double *restrict y)
{
  uint64_t n_valid = 0;

  for (uint32_t i = 0; i < n; i++) {
    ImkShcentroidCentre centre =
        imk_shcentroid_centre ((double) (SIGNED_SUM) c->v[i],
            (double) (SIGNED_SUM) c->vu[i], (double) (SIGNED_SUM) c->vy[i],
            cut ? (double) (SIGNED_SUM) c->n[i] : 0.0,
            cut ? (double) (SIGNED_SUM) c->nu[i] : 0.0,
            cut ? (double) (SIGNED_SUM) c->ny[i] : 0.0, pedestal[i], min_flux,
            c->last[i], last_y);

    x[i] = c->left[i] + centre.x;
    y[i] = top + centre.y;
    n_valid += centre.valid;
  }
  return n_valid == n;
}

FUNCTION void
finish_xy (const Frame *f, const Tile *t, const Cells *c)
{
  for (uint32_t i = 0; i < t->n; i++) {
    ImkShcentroidSums s = {.v = c->v[i], .vu = c->vu[i], .vy = c->vy[i]};

    if (t->cut) {
      s.n = c->n[i];
      s.nu = c->nu[i];
      s.ny = c->ny[i];
    }
    finish_cell (
        f, t->first + i, &s, t->pedestals ? t->pedestals[i] : t->pedestal);
  }
}

/* Position only: the divisions of all cells are vector code too. */
FUNCTION void
measure_xy (const Frame *f, const Tile *t, const Columns *columns)
{
  double x[TILE], y[TILE], pedestal[TILE];
  Cells cells;

  sum_cells (columns, t->rects, t->n, t->cut, &cells);
  for (uint32_t i = 0; i < t->n; i++)
    pedestal[i] = t->pedestals ? t->pedestals[i] : t->pedestal;
  if (find_centres (&cells, t->n, t->cut, pedestal, t->min_flux, t->area.y,
          t->area.height - 1.0, x, y) &&
      f->cpu->params.invalid_policy != IMK_SHCENTROID_INVALID_HOLD)
    store_centres (f, t->first, t->n, x, y, ISA_NAME (store_f32));
  else
    finish_xy (f, t, &cells);
}

/* Adds the columns [@first, @first + @width), the first of which is the column
 * @u of the cell, to the sums of the cell. */
INLINE void
add_columns (const Columns *c, uint32_t first, uint32_t width, uint64_t u,
    const bool all, const bool cut, ImkShcentroidSums *s)
{
  for (uint32_t x = first; x < first + width; x++, u++) {
    uint64_t v = c->v[x];

    s->v += v;
    s->vu += u * v;
    s->vy += c->vy[x];
    if (all) {
      s->max = c->max[x] > s->max ? (uint32_t) c->max[x] : s->max;
      if (sizeof (SUM) == sizeof (uint32_t)) {
        s->vuu.low += u * u * v;
        s->vyy.low += c->vyy[x];
      } else {
        imk_shcentroid_wide_add (&s->vuu, u * u * v);
        imk_shcentroid_wide_add (&s->vyy, c->vyy[x]);
      }
    }
    if (cut) {
      uint64_t n = c->n[x];

      s->n += n;
      s->nu += u * n;
      s->ny += c->ny[x];
      if (all) {
        s->raw += c->raw[x];
        s->nuu += u * u * n;
        s->nyy += c->nyy[x];
      }
    }
  }
}

/* Whole cells with all their sums. */
FUNCTION void
measure_all (const Frame *f, const Tile *t, const Columns *columns)
{
  uint32_t x = 0;

  for (uint32_t i = 0; i < t->n; i++) {
    uint32_t width = t->rects[i].width;
    ImkShcentroidSums s = {0};

    if (t->cut)
      add_columns (columns, x, width, 0, true, true, &s);
    else
      add_columns (columns, x, width, 0, true, false, &s);
    finish_sums (f, t, i, &s);
    x += width;
  }
}

/* ------------------------------------------------------------------------
 * Levels: thresholds that the samples of a cell decide. */

/* The largest sample of each column, or the smallest. */
INLINE void
find_extreme (const Area *a, const bool largest, SAMPLE *restrict to)
{
  const uint8_t *from = a->frame + a->y * a->stride + a->x * sizeof (SAMPLE);

  memcpy (to, from, a->width * sizeof (SAMPLE));
  for (uint32_t y = 1; y < a->height; y++) {
    const SAMPLE *restrict row = (const SAMPLE *) (from + y * a->stride);

    for (uint32_t x = 0; x < a->width; x++)
      to[x] = (largest ? row[x] > to[x] : row[x] < to[x]) ? row[x] : to[x];
  }
}

/* @whole: the smallest ones, too */
FUNCTION void
find_extremes (
    const Area *a, bool whole, SAMPLE *restrict min, SAMPLE *restrict max)
{
  find_extreme (a, true, max);
  if (whole)
    find_extreme (a, false, min);
}

/* From those of 2^(k - 1) columns to those of 2^k, from each column on. */
INLINE void
join_extremes (const SAMPLE *restrict from, uint32_t n, uint32_t half,
    const bool largest, SAMPLE *restrict to)
{
  for (uint32_t x = 0; x + half < n; x++) {
    SAMPLE a = from[x], b = from[x + half];

    to[x] = (largest ? a > b : a < b) ? a : b;
  }
}

/* Those of each cell: of two pieces of it, as wide as powers of 2, which
 * overlap. @of: of columns, with room for the pieces */
INLINE void
gather_extremes (const Tile *t, SAMPLE of[N_PIECES][TILE], const bool largest,
    double *restrict to)
{
  uint32_t n = t->area.width, k = 0, x = 0;

  for (; k + 1 < N_PIECES && 2u << k <= widest (t); k++)
    join_extremes (of[k], n, 1u << k, largest, of[k + 1]);
  for (uint32_t i = 0; i < t->n; i++) {
    uint32_t width = t->rects[i].width;
    uint32_t p = 31 - (uint32_t) __builtin_clz (width);
    SAMPLE a = of[p][x], b = of[p][x + width - (1u << p)];

    to[i] = (largest ? a > b : a < b) ? a : b;
    x += width;
  }
}

/* @belows: of each column, room for a strip on both sides */
FUNCTION void
find_levels (const Frame *f, const Tile *t, double *restrict pedestals,
    SIGNED_LANE *restrict belows)
{
  const ImkShcentroidParams *params = &f->cpu->params;
  SAMPLE low[N_PIECES][TILE], high[N_PIECES][TILE];
  double min[TILE], max[TILE];
  int32_t below[TILE];
  bool whole = imk_shcentroid_needs_least (params);

  find_extremes (&t->area, whole, low[0], high[0]);
  gather_extremes (t, high, true, max);
  if (whole)
    gather_extremes (t, low, false, min);
  else
    memcpy (min, max, t->n * sizeof (*min));
  for (uint32_t i = 0; i < t->n; i++) {
    double own = f->cpu->rects[t->first + i].threshold;
    double level = imk_shcentroid_threshold (params, own, min[i], max[i]);

    pedestals[i] = imk_shcentroid_pedestal (params, level);
    below[i] = sample_below (f->cpu, level);
  }
  /* a vector at a time: the next cell writes over what is too much */
  for (uint32_t i = 0; i < t->n; i++) {
    for (uint32_t x = 0; x < t->rects[i].width; x += LANES)
      for (uint32_t k = 0; k < LANES; k++)
        belows[x + k] = (SIGNED_LANE) below[i];
    belows += t->rects[i].width;
  }
}

FUNCTION void
measure_tile (const Frame *f, const Tile *tile)
{
  bool all = f->cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  SIGNED_LANE belows[STRIP + TILE + STRIP];
  double pedestals[TILE];
  Tile t = *tile;
  Columns columns;

  if (t.leveled) {
    memset (belows, 0, STRIP * sizeof (*belows));
    find_levels (f, &t, pedestals, belows + STRIP);
    t.pedestals = pedestals;
    t.area.belows = belows + STRIP;
  }
  sum_columns (&t.area, all, t.cut, &columns);
  if (all)
    measure_all (f, &t, &columns);
  else
    measure_xy (f, &t, &columns);
}

/* @u: where the piece begins in the cell */
FUNCTION Area
piece_of (const Area *cell, uint32_t u)
{
  Area piece = *cell;

  piece.x += u;
  piece.width = piece.width - u < TILE ? piece.width - u : TILE;
  return piece;
}

FUNCTION void
level_wide_cell (const Frame *f, Tile *t)
{
  const ImkShcentroidParams *params = &f->cpu->params;
  SAMPLE low[TILE], high[TILE], min = (SAMPLE) -1, max = 0;
  double level;

  for (uint32_t u = 0; u < t->area.width; u += TILE) {
    Area piece = piece_of (&t->area, u);

    find_extremes (&piece, true, low, high);
    for (uint32_t x = 0; x < piece.width; x++) {
      min = low[x] < min ? low[x] : min;
      max = high[x] > max ? high[x] : max;
    }
  }
  level = imk_shcentroid_threshold (
      params, f->cpu->rects[t->first].threshold, min, max);
  t->pedestal = imk_shcentroid_pedestal (params, level);
  t->area.below = sample_below (f->cpu, level);
}

/* A cell wider than a tile. */
FUNCTION void
measure_wide_cell (const Frame *f, const Tile *tile)
{
  bool all = f->cpu->plan.fields == IMK_SHCENTROID_FIELDS_ALL;
  ImkShcentroidSums s = {0};
  Tile t = *tile;
  Columns columns;

  if (t.leveled)
    level_wide_cell (f, &t);
  for (uint32_t u = 0; u < t.area.width; u += TILE) {
    Area piece = piece_of (&t.area, u);

    sum_columns (&piece, all, t.cut, &columns);
    add_columns (&columns, 0, piece.width, u, all, t.cut, &s);
  }
  finish_sums (f, &t, 0, &s);
}

#undef Sums
#undef STRIP
#undef add_row
#undef interleave
#undef Lanes
#undef SignedLanes
#undef Strip
#undef Columns
#undef LANES
#undef sum_strip
#undef flush_moments
#undef flush_strip
#undef sum_narrow_frame
#undef sum_rows
#undef sum_area
#undef sum_columns
#undef Cells
#undef sum_cell_xy
#undef sum_cells
#undef find_centres
#undef finish_xy
#undef measure_xy
#undef add_columns
#undef measure_all
#undef Below
#undef load_below
#undef find_extreme
#undef find_extremes
#undef join_extremes
#undef gather_extremes
#undef piece_of
#undef level_wide_cell
#undef find_levels
#undef measure_tile
#undef measure_wide_cell
#undef SAMPLE
#undef LANE
#undef SIGNED_LANE
#undef SUM
#undef NAME
#undef SIGNED_SUM
