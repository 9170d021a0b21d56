/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The Laplacian with all options but the focus measure, for loops.c: a vector
 * of samples is read, sharpened, limited and written before the next, which
 * takes 0.2 to 0.4 of the time of the loops of chunk.h. The tests compare both
 * with the reference. */
#pragma once

#include "lapsharpen/cpu/floats.h"

#if defined(__AVX2__)
#if IMK_VECTOR_SIZE == 64
typedef __m512i Vector;
typedef __m512 FloatVector;
#define OP(name) _mm512_##name
#else
typedef __m256i Vector;
typedef __m256 FloatVector;
#define OP(name) _mm256_##name
#endif

#if SAMPLE_BITS == 8
#define SAMPLE_OP(name) OP (name##_epu8)
typedef uint8_t Samples __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
#else
#define SAMPLE_OP(name) OP (name##_epu16)
typedef uint16_t Samples __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
#endif

typedef uint8_t Bytes __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef int16_t Words __attribute__ ((vector_size (IMK_VECTOR_SIZE)));

/* Sums of products of two samples each, twice as wide as samples. */
#if SAMPLE_BITS == 8
typedef Words Sums;
#else
typedef Ints Sums;
#endif

enum {
  STEP = IMK_VECTOR_SIZE / sizeof (Sample),
  /* The hardware prefetcher stops at each page; prefetching saves 10 to 20 % of
   * the time of a frame. The addresses may be beyond the end. */
  PREFETCH = 3072 / sizeof (Sample), /* of 1024 to 3072 bytes the fastest */
};

/* Two weights of a kernel: their bytes in turns, and where the samples are. */
typedef struct Tap {
  const Sample *a, *b;
  Vector weights;
} Tap;

enum {
  MAX_TAPS = IMK_LAPSHARPEN_MAX_KERNEL * IMK_LAPSHARPEN_MAX_KERNEL / 2 + 1
};

/* A rule in the terms of vectors. */
typedef struct Plan {
  ptrdiff_t c;
  bool diagonal, cored, soft, edges, limited;
  Floats amount, threshold;
  Vector maximum, dark, bright;
  bool whole; /* all samples are filtered, up to the largest */
  int16_t fraction;
  Sums half, bits;         /* of 2^q, and q */
  Words over;              /* 2^(15 - q), which mulhrs divides by 2^q with */
  Words least, multiple;   /* for CORED: of |L|, and m */
  Vector minus, centre;    /* weights of neighbours and the sample */
  Vector alpha;            /* bytes of a vector that hold alpha */
  Floats full, reciprocal; /* for WEIGHTED: maximum and 1 / maximum */
} Plan;

INLINE Vector
load (const Sample *from)
{
  Vector v;

  memcpy (&v, from, sizeof (v));
  return v;
}

/* Returns: q of a kernel whose weights are m / 2^q, with sums that fit 16 bits
 * on bytes: they are exact, in float32 as well; -1: of another one */
static int
find_kernel_fraction (const ImkLapsharpenRule *rule)
{
  const uint32_t n = rule->kernel_size * rule->kernel_size;

  for (int q = 0; q < 8; q++) {
    float sum = 0;
    bool whole = true;

    for (uint32_t i = 0; i < n && whole; i++) {
      const float m = rule->kernel[i] * (float) (1 << q);

      whole = m >= -127 && m <= 127 && m == (float) (int) m;
      sum += m < 0 ? -m : m;
    }
    if (whole)
      return sum <= 128 ? q : -1;
  }
  return -1;
}

INLINE Way
choose_way (const ImkLapsharpenRule *rule)
{
  if (rule->measured || rule->adaptive || rule->smooth.step)
    return CHUNKS;
  if (rule->kernel_size)
    return SAMPLE_BITS == 8 && !rule->edges && rule->threshold == 0 &&
                   find_kernel_fraction (rule) >= 0
               ? TAPS
               : CHUNKS;
  if (rule->weight_channel >= 0)
    return SAMPLE_BITS == 8 && rule->channels == 4 ? WEIGHTED : CHUNKS;
  if (rule->multiple && !rule->edges && rule->threshold <= 1)
    return FEW; /* |L| < 1 is L = 0 */
  return SAMPLE_BITS == 8 && rule->multiple && !rule->edges ? CORED : FLOATS;
}

/* FLOATS of bytes have L times 2^16, which costs nothing and is exact. */
INLINE Plan
make_plan (const ImkLapsharpenRule *rule, Way way, bool diagonal)
{
  const float scale = SAMPLE_BITS == 8 && way == FLOATS ? 65536.0f : 1.0f;
  const uint32_t one = 1u << rule->fraction;
  const uint32_t times = way == FEW ? rule->multiple : 1;
  Plan p = {.c = rule->channels,
      .diagonal = diagonal,
      .cored = rule->threshold > 0,
      .soft = rule->soft,
      .edges = rule->edges,
      .limited = rule->limited};
  Bytes alpha;

  p.amount = (Floats){0} + rule->amount / scale;
  p.threshold = (Floats){0} + rule->threshold * scale;
  p.maximum = (Vector) ((Samples){0} + (Sample) rule->maximum);
  p.dark = (Vector) ((Samples){0} + (Sample) rule->halo_dark);
  p.bright = (Vector) ((Samples){0} + (Sample) rule->halo_bright);
  p.whole = rule->filtered == (1u << rule->channels) - 1 &&
            rule->maximum == (Sample) -1;
  p.fraction = (int16_t) rule->fraction;
  p.half = (Sums){0} + (int16_t) (one / 2);
  p.bits = (Sums){0} + (int16_t) rule->fraction;
  p.over = (Words){0} + (int16_t) ((1 << 15) >> rule->fraction);
  p.least =
      (Words){0} + (int16_t) LEAST (ceilf (rule->threshold), 2048); /* > |L| */
  p.multiple = (Words){0} + (int16_t) rule->multiple;
  p.minus = (Vector) ((Samples){0} - (Sample) times);
  p.centre = (Vector) ((Sums){0} + (int16_t) ((way == FEW ? one : 0) +
                                              times * rule->neighbours));
  for (int i = 0; i < IMK_VECTOR_SIZE; i++) /* of 16 bytes each */
    alpha[i] = (uint8_t) ((i % 16 & ~3) + (rule->weight_channel & 3));
  p.alpha = (Vector) alpha;
  p.full = (Floats){0} + (float) rule->maximum;
  p.reciprocal = (Floats){0} + (float) (1 / (double) rule->maximum);
  return p;
}

/* --- the new samples ------------------------------------------------------ */

/* The high half of the float 2^23 + v, whose low half is v of 16 bits. */
enum { TWO_23 = 0x4b00 };

/* imk_lapsharpen_sample () but for the limits: conversion rounds negative
 * values up, but not above 0. @v: as floats 2^23 + v */
INLINE Ints
sharpen_floats (const Plan *p, Floats l, Vector v)
{
  const Ints sign = (Ints){0} + INT32_MIN;
  Floats base = (Floats) v - 8388607.5f; /* v + 0.5, exactly */

  if (p->edges)
    base = (Floats){0} + 0.5f;
  if (p->soft) {
    Floats rest = (Floats) ((Ints) l & ~sign) - p->threshold;

    rest = (Floats) OP (max_ps) ((FloatVector) rest, (FloatVector){0});
    l = (Floats) ((Ints) rest | ((Ints) l & sign));
  } else if (p->cored)
    l = (Floats) ((Ints) l & ((Floats) ((Ints) l & ~sign) >= p->threshold));
  if (p->edges)
    l = (Floats) ((Ints) l & ~sign);
  l = p->amount * l + base;
  return (Ints) OP (cvttps_epi32) ((FloatVector) l);
}

INLINE Floats
to_floats (Vector v)
{
  return __builtin_convertvector((Ints) v, Floats);
}

#if SAMPLE_BITS == 8

/* maddubs multiplies bytes of two sources by a small number each and adds the
 * products in 16 bits: pairs of neighbours by -m, the centre by 2^q + k m. That
 * takes half the instructions of what compilers make of loops, which first
 * widen every source. */
INLINE void
add_pairs (Vector a, Vector b, Vector weights, Words *low, Words *high)
{
  *low += (Words) OP (maddubs_epi16) (OP (unpacklo_epi8) (a, b), weights);
  *high += (Words) OP (maddubs_epi16) (OP (unpackhi_epi8) (a, b), weights);
}

/* The samples of words of L and of the sample itself. */
INLINE Vector
sharpen_halves (const Plan *p, Words l, Vector v)
{
  const Vector zero = {0}, words = (Vector) l;
  const Vector top = (Vector) ((Words){0} + TWO_23);

  return OP (packs_epi32) (
      (Vector) sharpen_floats (p, to_floats (OP (unpacklo_epi16) (zero, words)),
          OP (unpacklo_epi16) (v, top)),
      (Vector) sharpen_floats (p, to_floats (OP (unpackhi_epi16) (zero, words)),
          OP (unpackhi_epi16) (v, top)));
}

/* Returns: sums over 2^q, halves rounded up; shifts by a variable take longer
 */
INLINE Words
divide_words (const Plan *p, Words sums)
{
  if (p->fraction == 0)
    return sums;
  return (Words) OP (mulhrs_epi16) ((Vector) sums, (Vector) p->over);
}

/* The same for amounts of few bits, see sharpen_words () of chunk.h. */
INLINE Vector
core_words (const Plan *p, Words l, Vector v)
{
  const Words kept = l & ((Words) OP (abs_epi16) ((Vector) l) >= p->least);

  return (Vector) ((Words) v + divide_words (p, p->multiple * kept));
}

/* Returns: the number of @taps; weights of 0 take no time */
static int
make_taps (
    const ImkLapsharpenRule *rule, const Rows *rows, int fraction, Tap *taps)
{
  const ptrdiff_t c = rule->channels, reach = rule->reach;
  const float *weight = rule->kernel;
  int n = 0;

  for (ptrdiff_t y = -reach; y <= reach; y++)
    for (ptrdiff_t x = -reach; x <= reach; x++, weight++) {
      const uint8_t m = (uint8_t) (int8_t) (*weight * (float) (1 << fraction));
      const Sample *from = rows->row[HERE + y] + x * c;
      Tap *tap = &taps[n / 2];

      if (m == 0)
        continue;
      if (n++ % 2 == 0) {
        tap->a = tap->b = from;
        tap->weights = (Vector) ((Words){0} + m);
      } else {
        tap->b = from;
        tap->weights |= (Vector) ((Words){0} + (int16_t) (m << 8));
      }
    }
  return (n + 1) / 2;
}

/* Samples @i on: sums rounded to the nearest integer, halves to even, as
 * imk_lapsharpen_correlated () does. */
INLINE Vector
sharpen_taps (const Tap *taps, int n, int16_t fraction, size_t i)
{
  const Words least = (Words){0} + (int16_t) ((1 << fraction) / 2 - 1);
  Words low = {0}, high = {0};

  for (int j = 0; j < n; j++)
    add_pairs (load (taps[j].a + i), load (taps[j].b + i), taps[j].weights,
        &low, &high);
  if (fraction > 0) {
    low = (low + least + ((low >> fraction) & 1)) >> fraction;
    high = (high + least + ((high >> fraction) & 1)) >> fraction;
  }
  return OP (packus_epi16) ((Vector) low, (Vector) high);
}

INLINE Vector
sharpen_vector (const Plan *p, Way way, Vector v, const Sample *above,
    const Sample *here, const Sample *below)
{
  const ptrdiff_t c = p->c;
  const Vector zero = {0};
  Words low = {0}, high = {0};

  add_pairs (v, zero, p->centre, &low, &high);
  add_pairs (load (above), load (below), p->minus, &low, &high);
  add_pairs (load (here - c), load (here + c), p->minus, &low, &high);
  if (p->diagonal) {
    add_pairs (load (above - c), load (above + c), p->minus, &low, &high);
    add_pairs (load (below - c), load (below + c), p->minus, &low, &high);
  }
  if (way == FEW)
    return OP (packus_epi16) (
        (Vector) divide_words (p, low), (Vector) divide_words (p, high));
  if (way == CORED)
    return OP (packus_epi16) (core_words (p, low, OP (unpacklo_epi8) (v, zero)),
        core_words (p, high, OP (unpackhi_epi8) (v, zero)));
  return OP (packus_epi16) (
      sharpen_halves (p, low, OP (unpacklo_epi8) (v, zero)),
      sharpen_halves (p, high, OP (unpackhi_epi8) (v, zero)));
}

/* The sums a_i (v - v_i) of two neighbours @a and @b. @own: v in words, twice
 * each */
INLINE void
add_weighted_pair (
    const Plan *p, Vector a, Vector b, const Vector *own, Ints *sums)
{
  const Vector zero = {0};
  const Vector alpha_a = OP (shuffle_epi8) (a, p->alpha);
  const Vector alpha_b = OP (shuffle_epi8) (b, p->alpha);
  const Vector low = OP (unpacklo_epi8) (a, b);
  const Vector high = OP (unpackhi_epi8) (a, b);
  const Vector alpha_low = OP (unpacklo_epi8) (alpha_a, alpha_b);
  const Vector alpha_high = OP (unpackhi_epi8) (alpha_a, alpha_b);

#define ADD(i, half, part) \
  sums[i] += (Ints) OP (madd_epi16) ( \
      (Vector) ((Words) own[i] - (Words) OP (part##_epi8) (half, zero)), \
      OP (part##_epi8) (alpha_##half, zero))
  ADD (0, low, unpacklo);
  ADD (1, low, unpackhi);
  ADD (2, high, unpacklo);
  ADD (3, high, unpackhi);
#undef ADD
}

/* imk_lapsharpen_weighted_u8 () and what is made of it. */
INLINE Vector
sharpen_sum (const Plan *p, Ints sum, Vector v)
{
  const Floats n = to_floats ((Vector) sum);
  const FloatVector reciprocal = (FloatVector) p->reciprocal;
  const FloatVector quotient = (FloatVector) (n * p->reciprocal);
  const FloatVector rest =
      OP (fnmadd_ps) (quotient, (FloatVector) p->full, (FloatVector) n);

  return (Vector) sharpen_floats (
      p, (Floats) OP (fmadd_ps) (rest, reciprocal, quotient), v);
}

INLINE Vector
sharpen_weighted (const Plan *p, Vector v, const Sample *above,
    const Sample *here, const Sample *below)
{
  const ptrdiff_t c = p->c;
  const Vector zero = {0};
  const Vector top = (Vector) ((Words){0} + TWO_23);
  const Vector low = OP (unpacklo_epi8) (v, zero);
  const Vector high = OP (unpackhi_epi8) (v, zero);
  const Vector own[4] = {OP (unpacklo_epi16) (low, low),
      OP (unpackhi_epi16) (low, low), OP (unpacklo_epi16) (high, high),
      OP (unpackhi_epi16) (high, high)};
  Ints sums[4] = {0};

  add_weighted_pair (p, load (above), load (below), own, sums);
  add_weighted_pair (p, load (here - c), load (here + c), own, sums);
  if (p->diagonal) {
    add_weighted_pair (p, load (above - c), load (above + c), own, sums);
    add_weighted_pair (p, load (below - c), load (below + c), own, sums);
  }
  return OP (packus_epi16) (
      OP (packs_epi32) (
          sharpen_sum (p, sums[0], OP (unpacklo_epi16) (low, top)),
          sharpen_sum (p, sums[1], OP (unpackhi_epi16) (low, top))),
      OP (packs_epi32) (
          sharpen_sum (p, sums[2], OP (unpacklo_epi16) (high, top)),
          sharpen_sum (p, sums[3], OP (unpackhi_epi16) (high, top))));
}

#else

/* Less 2^15: with a sign, as madd needs them. */
INLINE Vector
load_signed (const Sample *from)
{
  return (Vector) ((Words) load (from) ^ INT16_MIN);
}

/* As that of bytes, in 32 bits. */
INLINE void
add_pairs (Vector a, Vector b, Vector weights, Ints *low, Ints *high)
{
  *low += (Ints) OP (madd_epi16) (OP (unpacklo_epi16) (a, b), weights);
  *high += (Ints) OP (madd_epi16) (OP (unpackhi_epi16) (a, b), weights);
}

/* The weights of L add up to 0, so that it has nothing less. Those of FEW add
 * up to 2^q: what is less by 2^15 before is so after the division, too. */
INLINE Vector
sharpen_vector (const Plan *p, Way way, Vector v, const Sample *above,
    const Sample *here, const Sample *below)
{
  const ptrdiff_t c = p->c;
  const Vector zero = {0}, top = (Vector) ((Words){0} + TWO_23);
  Ints low = {0}, high = {0};

  add_pairs (load_signed (here), zero, p->centre, &low, &high);
  add_pairs (load_signed (above), load_signed (below), p->minus, &low, &high);
  add_pairs (
      load_signed (here - c), load_signed (here + c), p->minus, &low, &high);
  if (p->diagonal) {
    add_pairs (load_signed (above - c), load_signed (above + c), p->minus, &low,
        &high);
    add_pairs (load_signed (below - c), load_signed (below + c), p->minus, &low,
        &high);
  }
  if (way == FEW && p->fraction > 0) {
    low = (low + p->half) >> p->bits;
    high = (high + p->half) >> p->bits;
  }
  if (way == FEW)
    return (Vector) ((Words) OP (packs_epi32) ((Vector) low, (Vector) high) ^
                     INT16_MIN);
  return OP (packus_epi32) (
      (Vector) sharpen_floats (
          p, to_floats ((Vector) low), OP (unpacklo_epi16) (v, top)),
      (Vector) sharpen_floats (
          p, to_floats ((Vector) high), OP (unpackhi_epi16) (v, top)));
}

INLINE Vector
sharpen_weighted (const Plan *p, Vector v, const Sample *above,
    const Sample *here, const Sample *below)
{
  return v; /* not chosen, as those below */
}

INLINE int
make_taps (
    const ImkLapsharpenRule *rule, const Rows *rows, int fraction, Tap *taps)
{
  return 0;
}

INLINE Vector
sharpen_taps (const Tap *taps, int n, int16_t fraction, size_t i)
{
  return (Vector){0};
}

#endif

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

/* --- rows ----------------------------------------------------------------- */

/* Samples @first to @end, at least a vector of them: the last one may have
 * samples of the one before. @way, @diagonal, @limits: constants */
INLINE void
sharpen_vectors_with (const Band *band, const Rows *rows, size_t first,
    size_t end, Way way, bool diagonal, Limits limits, Sample *out)
{
  const Plan plan = make_plan (band->rule, way, diagonal), *p = &plan;
  const size_t last = end - STEP;
  /* WEIGHTED needs whole pixels; other stores cross no cache line. */
  const size_t crossed =
      way == WEIGHTED
          ? 0
          : (uintptr_t) (out + first) % IMK_VECTOR_SIZE / sizeof (Sample);
  const int fraction = way == TAPS ? find_kernel_fraction (band->rule) : 0;
  Tap taps[MAX_TAPS];
  const int n_taps =
      way == TAPS ? make_taps (band->rule, rows, fraction, taps) : 0;
  size_t step;

  for (size_t i = first, phase = (rows->first + first) % CHUNK;; i += step) {
    const Sample *above = rows->row[ABOVE] + i;
    const Sample *here = rows->row[HERE] + i;
    const Sample *below = rows->row[BELOW] + i;
    const Vector v = load (here);
    Vector t;

    __builtin_prefetch (below + PREFETCH, 0);
    __builtin_prefetch (out + i + PREFETCH, 1);
    t = way == TAPS       ? sharpen_taps (taps, n_taps, (int16_t) fraction, i)
        : way == WEIGHTED ? sharpen_weighted (p, v, above, here, below)
                          : sharpen_vector (p, way, v, above, here, below);
    if (!p->whole)
      t = SAMPLE_OP (min) (t, p->maximum);
    if (limits == WINDOW)
      t = keep_window (p, t, above, here, below);
    if (!p->whole) {
      const Vector filtered = load (band->filtered + phase);

      t = (t & filtered) | (v & ~filtered);
    }
    if (limits == RANGE || (limits && p->limited)) {
      const Vector low = SAMPLE_OP (min) (v, load (band->low + phase));
      const Vector high = SAMPLE_OP (max) (v, load (band->high + phase));

      t = SAMPLE_OP (min) (SAMPLE_OP (max) (t, low), high);
    }
    memcpy (out + i, &t, sizeof (t));
    if (i == last)
      break;
    step = LEAST (i == first ? STEP - crossed : STEP, last - i);
    phase += step;
    phase -= phase < CHUNK ? 0 : CHUNK;
  }
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
  if (way == TAPS || band->rule->neighbours == 4)
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
  else if (band->way == CORED)
    sharpen_vectors_so (band, rows, first, end, CORED, out);
  else if (band->way == FLOATS)
    sharpen_vectors_so (band, rows, first, end, FLOATS, out);
  else if (band->way == WEIGHTED)
    sharpen_vectors_so (band, rows, first, end, WEIGHTED, out);
  else
    sharpen_vectors_so (band, rows, first, end, TAPS, out);
}

/* --- rows ----------------------------------------------------------------- */

/* Copies the pixels beside a row that a kernel reaches, from pixel @x on. */
INLINE void
copy_beside (
    const ImkLapsharpenRule *rule, const Sample *row, int x, Sample *to)
{
  const int c = (int) rule->channels;

  for (int end = x + (int) rule->reach; x < end; x++, to += c) {
    const Sample *inside =
        row + imk_lapsharpen_inside (x, (int) rule->width, rule) * c;

    for (int i = 0; i < c; i++)
      to[i] = rule->constant ? (Sample) rule->border_value : inside[i];
  }
}

/* The vector of samples @first on, with which a row begins or ends: by way of
 * copies, which have the pixels beside. */
static void
sharpen_end (Band *band, const Rows *rows, size_t first, Sample *out)
{
  const ImkLapsharpenRule *rule = band->rule;
  const uint32_t reach = rule->reach;
  Rows copies = {.first = first};

  for (uint32_t i = HERE - reach; i <= HERE + reach; i++) {
    const Sample *row = rows->row[i];
    Sample *line = band->lines[i].samples + MARGIN;

    memcpy (line, row + first, STEP * sizeof (Sample));
    if (first == 0) {
      memcpy (line + STEP, row + STEP, MARGIN * sizeof (Sample));
      copy_beside (rule, row, -(int) reach, line - reach * rule->channels);
    } else {
      memcpy (line - MARGIN, row + first - MARGIN, MARGIN * sizeof (Sample));
      copy_beside (rule, row, (int) rule->width, line + STEP);
    }
    copies.row[i] = line;
  }
  sharpen_vectors (band, &copies, 0, STEP, out + first);
}

/* Rows of at least 2 vectors and @end samples. */
static void
sharpen_row_by_vectors (Band *band, const Rows *rows, size_t end, Sample *out)
{
  const size_t margin = band->rule->reach * band->rule->channels;

  sharpen_end (band, rows, 0, out);
  sharpen_vectors (band, rows, margin, end - margin, out);
  sharpen_end (band, rows, end - STEP, out);
}

#else

/* The loops of chunk.h are as good for amounts of few bits. */
enum { STEP = CHUNK };

INLINE Way
choose_way (const ImkLapsharpenRule *rule)
{
  return CHUNKS;
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
