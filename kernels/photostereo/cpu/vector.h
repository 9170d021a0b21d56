/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Vectors of IMK_VECTOR_SIZE bytes, for loops.c. */
#pragma once

#include <math.h>
#include <string.h>

#include "photostereo/cpu/loops.h"

#define INLINE static inline __attribute__ ((always_inline))

typedef float Reals __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef int32_t Masks __attribute__ ((vector_size (IMK_VECTOR_SIZE)));

enum { LANES = IMK_VECTOR_SIZE / sizeof (float) };

INLINE Reals
load (const float *p)
{
  Reals v;

  memcpy (&v, p, sizeof (v));
  return v;
}

INLINE void
store (float *p, Reals v)
{
  memcpy (p, &v, sizeof (v));
}

INLINE Reals
broadcast (float v)
{
  return v - (Reals){0}; /* + would lose the sign of 0 */
}

/* Of @v where the mask is set, else 0. */
INLINE Reals
keep (Reals v, Masks mask)
{
  return (Reals) ((Masks) v & mask);
}

/* Loops over lanes become one instruction. */
INLINE Reals
square_root (Reals v)
{
  for (uint32_t i = 0; i < LANES; i++)
    v[i] = sqrtf (v[i]);
  return v;
}

INLINE Reals
minimum (Reals a, Reals b)
{
  for (uint32_t i = 0; i < LANES; i++)
    a[i] = a[i] < b[i] ? a[i] : b[i];
  return a;
}

INLINE Reals
maximum (Reals a, Reals b)
{
  for (uint32_t i = 0; i < LANES; i++)
    a[i] = a[i] > b[i] ? a[i] : b[i];
  return a;
}

INLINE Reals
select_lanes (Masks mask, Reals yes, Reals no)
{
  return (Reals) (((Masks) yes & mask) | ((Masks) no & ~mask));
}

/* Of structures of @n vectors, those lanes of @from that the mask has. */
INLINE void
take_lanes (Masks mask, const void *from, void *to, uint32_t n)
{
  const Reals *a = from;
  Reals *b = to;

  for (uint32_t i = 0; i < n; i++)
    b[i] = select_lanes (mask, a[i], b[i]);
}

INLINE bool
any_lane (Masks mask)
{
  int32_t any = 0;

  for (uint32_t i = 0; i < LANES; i++)
    any |= mask[i];
  return any != 0;
}
