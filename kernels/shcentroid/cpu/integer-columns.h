/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums of integer samples, column by column: purely vertical, contiguous
 * vector code without borders of cells. SAMPLE_BITS, SUM_BITS and POWER, of
 * samples, choose the types. */
#pragma once

#include <string.h>

#include "shcentroid/cpu/state.h"

#if IMK_VECTOR_SIZE > 16
#include <immintrin.h>
#endif

#ifndef POWER
#define POWER 1
#endif

#if SAMPLE_BITS == 8
typedef uint8_t Sample;
#else
typedef uint16_t Sample;
#endif

#if SAMPLE_BITS * POWER == 8
typedef uint8_t Value;      /* a sample to its power */
typedef uint16_t Lane;      /* in which the rows of a strip are summed up */
typedef int16_t SignedLane; /* vector units compare signed numbers */
#elif SAMPLE_BITS * POWER == 16
typedef uint16_t Value;
typedef uint32_t Lane;
typedef int32_t SignedLane;
#else
typedef uint32_t Value;
typedef uint64_t Lane;
typedef int64_t SignedLane;
#endif

#if SUM_BITS == 32 /* the sums of a cell */
typedef uint32_t Sum;
typedef int32_t SignedSum; /* vector units convert signed numbers */
#else
typedef uint64_t Sum;
typedef int64_t SignedSum;
#endif

enum {
  TILE = INTEGER_TILE,
  MAX_STRIP_ROWS = 64, /* of all strip_rows */
};

/* A rectangle in the frame. */
typedef struct Area {
  const uint8_t *frame;
  size_t stride;
  uint32_t frame_width;
  uint32_t x, y, width, height;
  int32_t below;      /* samples above it take part */
  const void *belows; /* those of each column, lanes; NULL for that one */
  /* where its cells really are, side by side in the area; NULL: in it */
  const ImkShcentroidWindow *windows;
  uint32_t n_windows;
  uint32_t skip; /* rows of the windows above the area */
} Area;

/* Rows to sum up, of the frame or a copy. */
typedef struct Rows {
  const uint8_t *top;
  size_t stride;
  uint32_t x, width; /* of the first column of the area; of a row */
} Rows;

/* Rows that can be summed up in a lane: 255 (n) (n + 1) / 2 < 2^16 for n = 22,
 * with the second moments 255 n (n + 1) (n + 2) / 6 < 2^16 for n = 10; in 32
 * bits 65535 n (n + 1) (n + 2) / 6 < 2^32 for n = 72. */
static inline uint32_t
strip_rows (size_t lane_size, bool all)
{
  return lane_size > 2 ? MAX_STRIP_ROWS : all ? 10 : 22;
}

/* A strip is as wide as a vector of values; each lane holds two of them. */
enum { LANES = IMK_VECTOR_SIZE / sizeof (Lane), STRIP = 2 * LANES };

typedef Value Values __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef Lane Lanes __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef SignedLane SignedLanes __attribute__ ((vector_size (IMK_VECTOR_SIZE)));

/* The sums of every second column of a strip, in registers; see Strip. */
typedef struct Sums {
  Lanes s0, s1, s2, c0, c1, c2, raw, max;
} Sums;

/* The sums over the rows of one strip, per column. s0, s1, s2 add up 1,
 * (y + 1) and (y + 1) (y + 2) / 2 times the sample, c0, c1, c2 the same
 * times 1 where the sample takes part. The second half is what a strip that
 * begins in the middle of the first ends with, and means nothing. */
typedef struct Strip {
  Lane s0[2 * STRIP], s1[2 * STRIP], s2[2 * STRIP];
  Lane c0[2 * STRIP], c1[2 * STRIP], c2[2 * STRIP];
  Lane raw[2 * STRIP], max[2 * STRIP];
} Strip;

/* The sums of a tile, per column: of v, y v, y^2 v, and of 1, y, y^2. A strip
 * is always flushed in full, beyond the end of the tile too. */
typedef struct Columns {
  Sum v[TILE + STRIP], vy[TILE + STRIP], vyy[TILE + STRIP];
  Sum n[TILE + STRIP], ny[TILE + STRIP], nyy[TILE + STRIP];
  Sum raw[TILE + STRIP], max[TILE + STRIP];
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
interleave (Lane *to, const Lanes *even, const Lanes *odd)
{
  Lane e[LANES], o[LANES];

  memcpy (e, even, sizeof (e));
  memcpy (o, odd, sizeof (o));
  for (uint32_t i = 0; i < LANES; i++) {
    to[2 * i] = e[i];
    to[2 * i + 1] = o[i];
  }
}

#if POWER == 2
/* The squares of a strip of samples. */
INLINE Lanes
read_lanes (const uint8_t *from)
{
  Values values;

#if IMK_VECTOR_SIZE == 64
  __m256i samples = _mm256_loadu_si256 ((const void *) from);

  values = (Values) (SAMPLE_BITS == 8 ? _mm512_cvtepu8_epi16 (samples)
                                      : _mm512_cvtepu16_epi32 (samples));
#elif IMK_VECTOR_SIZE == 32
  __m128i samples = _mm_loadu_si128 ((const void *) from);

  values = (Values) (SAMPLE_BITS == 8 ? _mm256_cvtepu8_epi16 (samples)
                                      : _mm256_cvtepu16_epi32 (samples));
#else
  Sample samples __attribute__ ((vector_size (IMK_VECTOR_SIZE / 2)));

  memcpy (&samples, from, sizeof (samples));
  values = __builtin_convertvector(samples, Values);
#endif
  return (Lanes) (values * values);
}
#else
INLINE Lanes
read_lanes (const uint8_t *from)
{
  Lanes values;

  memcpy (&values, from, sizeof (values));
  return values;
}
#endif

/* Values are not widened, which would shuffle in every row: the two of a lane
 * are masked and shifted out of it. */
INLINE void
sum_integer_strip (const uint8_t *data, size_t stride, uint32_t n_rows,
    const bool all, const bool cut, const Below *below, Strip *strip)
{
  const uint32_t bits = 4 * sizeof (Lane); /* half a lane */
  const Lane mask = (Value) -1;
  Sums low = {.s0 = {0}}, high = {.s0 = {0}};
  const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  const Sums *even = little ? &low : &high, *odd = little ? &high : &low;

  data += n_rows * stride;
  while (n_rows--) {
    Lanes pair;

    data -= stride;
    pair = read_lanes (data);
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
flush_moments (const Lane *restrict s0, const Lane *restrict s1,
    const Lane *restrict s2, const bool all, Sum y, Sum *restrict m0,
    Sum *restrict m1, Sum *restrict m2)
{
  if (y == 0) {
    for (uint32_t i = 0; i < STRIP; i++) {
      Sum a0 = s0[i], a1 = s1[i];

      m0[i] = a0;
      m1[i] = a1 - a0;
      if (all)
        m2[i] = 2 * (Sum) s2[i] - 3 * a1 + a0;
    }
    return;
  }
  for (uint32_t i = 0; i < STRIP; i++) {
    Sum a0 = s0[i], a1 = s1[i] - a0;

    m0[i] += a0;
    m1[i] += a1 + y * a0;
    if (all)
      m2[i] += 2 * (Sum) s2[i] - 3 * a1 - 2 * a0 + y * (2 * a1 + y * a0);
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
    Sum max = s->max[from + i];

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
  const SignedLane *lanes =
      a->belows ? (const SignedLane *) a->belows + from : NULL;
  SignedLane even[LANES], odd[LANES];
  Below below;

  for (uint32_t i = 0; i < LANES; i++) {
    even[i] = lanes ? lanes[2 * i] : (SignedLane) a->below;
    odd[i] = lanes ? lanes[2 * i + 1] : (SignedLane) a->below;
  }
  memcpy (&below.low, little ? even : odd, sizeof (below.low));
  memcpy (&below.high, little ? odd : even, sizeof (below.high));
  return below;
}

enum {
  COPY_STEP = 16 / sizeof (Sample), /* samples that are copied at a time */
  COPY_ROOM = TILE + STRIP,
};

/* @n_rows of a window from its row @y on, to @to, rows of COPY_ROOM samples.
 * What a step copies beyond the window, the next window overwrites. */
INLINE void
copy_window (const Area *a, const ImkShcentroidWindow *w, uint32_t y,
    uint32_t n_rows, Sample *to)
{
  const uint8_t *from =
      a->frame + (w->y + a->skip + y) * a->stride + w->x * sizeof (Sample);
  uint32_t whole = (w->width + COPY_STEP - 1) / COPY_STEP * COPY_STEP;
  bool in_steps = w->x + whole <= a->frame_width;

  for (uint32_t k = 0; k < n_rows; k++) {
    if (in_steps)
      for (uint32_t x = 0; x < w->width; x += COPY_STEP)
        memcpy (to + x, from + x * sizeof (Sample), 16);
    else
      memcpy (to, from, w->width * sizeof (Sample));
    from += a->stride;
    to += COPY_ROOM;
  }
}

/* The last strip of a row is read further left, so that it ends with the
 * row: nothing outside the rows is touched. */
INLINE void
sum_rows (const Area *a, const Rows *rows, uint32_t y, uint32_t n_rows,
    const bool all, const bool cut, Columns *columns)
{
  Strip strip;

  for (uint32_t x = 0; x < a->width; x += STRIP) {
    uint32_t here = rows->x + x, start = here;
    Below below = {{0}};

    if (start > rows->width - STRIP)
      start = rows->width - STRIP;
    if (cut)
      below = load_below (a, (int32_t) (start - rows->x));
    sum_integer_strip (rows->top + start * sizeof (Sample), rows->stride,
        n_rows, all, cut, &below, &strip);
    flush_strip (&strip, here - start, all, cut, y, columns, x);
  }
}

/* Where cells do not touch, or a frame is narrower than a vector.
 * Returns: @n_rows of the area from its row @y on, in @copy */
INLINE Rows
copy_rows (const Area *a, uint32_t y, uint32_t n_rows, Sample *copy)
{
  const ImkShcentroidWindow whole = {
      .x = a->x, .y = a->y - a->skip, .width = a->width};
  const ImkShcentroidWindow *windows = a->windows ? a->windows : &whole;
  uint32_t n = a->windows ? a->n_windows : 1;

  for (uint32_t i = 0, x = 0; i < n; x += windows[i++].width)
    copy_window (a, &windows[i], y, n_rows, copy + x);
  return (Rows){
      (const uint8_t *) copy, COPY_ROOM * sizeof (*copy), 0, COPY_ROOM};
}

INLINE void
sum_area (const Area *a, const bool all, const bool cut, Columns *columns)
{
  uint32_t most = strip_rows (sizeof (Lane), all);
  bool copied = a->windows || a->frame_width < STRIP;
  Sample copy[MAX_STRIP_ROWS * COPY_ROOM];

  for (uint32_t y = 0; y < a->height; y += most) {
    uint32_t n_rows = a->height - y < most ? a->height - y : most;
    Rows rows = {
        a->frame + (a->y + y) * a->stride, a->stride, a->x, a->frame_width};

    if (copied)
      rows = copy_rows (a, y, n_rows, copy);
    sum_rows (a, &rows, y, n_rows, all, cut, columns);
  }
}

static void
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
