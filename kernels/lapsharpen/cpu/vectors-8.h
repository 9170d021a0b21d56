/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* New samples of vectors of bytes, for vectors.h. */
#pragma once

#include "lapsharpen/cpu/plan.h"

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

/* The samples @v of L times the scale and a factor. */
INLINE Vector
add_products (Words low, Words high, Words factor, Vector v)
{
  const Vector zero = {0};
  const Vector first = OP (mulhrs_epi16) ((Vector) low, (Vector) factor);
  const Vector second = OP (mulhrs_epi16) ((Vector) high, (Vector) factor);

  return OP (packus_epi16) (
      (Vector) ((Words) first + (Words) OP (unpacklo_epi8) (v, zero)),
      (Vector) ((Words) second + (Words) OP (unpackhi_epi8) (v, zero)));
}

/* Returns: @l where it is not below the threshold */
INLINE Words
core_words (const Plan *p, Words l)
{
  return l & ((Words) OP (abs_epi16) ((Vector) l) >= p->least);
}

/* See products.h. @low, @high: L times the scale */
INLINE Vector
sharpen_products (const Plan *p, Words low, Words high, Vector v)
{
  Vector first, second, change, two_bits, above;
  Bytes down;

  if (p->cored) {
    low = core_words (p, low);
    high = core_words (p, high);
  }
  second = add_products (low, high, p->factor[1], v);
  if (!p->two_factors)
    return second;
  first = add_products (low, high, p->factor[0], v);
  if (p->down) {
    change = (Vector) ((Bytes) OP (max_epu8) (first, v) -
                       (Bytes) OP (min_epu8) (first, v));
    two_bits = change & (Vector) ((Bytes) change + (Bytes) change);
    above = (change | second) & ~two_bits;
    down = (Bytes) above <= (Bytes) two_bits;
    first = first & ~(Vector) down;
  }
  return OP (max_epu8) (first, second);
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
  if (way == PRODUCTS || way == CORED)
    return sharpen_products (p, low, high, v);
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
  const FloatVector l = OP (fmadd_ps) ((FloatVector) n,
      (FloatVector) p->reciprocal, (FloatVector) (n * p->rest));

  return (Vector) sharpen_floats (p, (Floats) l, v);
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
