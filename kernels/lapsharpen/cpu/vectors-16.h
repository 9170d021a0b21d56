/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* New samples of vectors of 16 bits, for vectors.h. */
#pragma once

#include "lapsharpen/cpu/plan.h"

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
  return v; /* not chosen */
}
