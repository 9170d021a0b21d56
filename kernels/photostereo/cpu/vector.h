/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Vectors of IMK_VECTOR_SIZE bytes, for loops.c. */
#pragma once

#include <string.h>

#include "photostereo/cpu/loops.h"

#define INLINE static inline __attribute__ ((always_inline))

typedef float Reals __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef int32_t Masks __attribute__ ((vector_size (IMK_VECTOR_SIZE)));
typedef uint16_t Words __attribute__ ((vector_size (IMK_VECTOR_SIZE)));

INLINE Reals
load (const float *p)
{
  Reals v;

  memcpy (&v, p, sizeof (v));
  return v;
}

INLINE Reals
select_lanes (Masks mask, Reals yes, Reals no)
{
  return (Reals) (((Masks) yes & mask) | ((Masks) no & ~mask));
}

INLINE bool
any_lane (Masks mask)
{
  int32_t any = 0;

  for (uint32_t i = 0; i < IMK_VECTOR_SIZE / sizeof (int32_t); i++)
    any |= mask[i];
  return any != 0;
}
