/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Dot products in lanes, which a compiler makes vectors of. */
#pragma once

#include <stdint.h>

/* Defines @name: sum of a [n] times b [n] in numbers of the type @Sum. The
 * order of its additions depends on n alone. */
#define IMK_SHRECONSTRUCT_DOT(name, A, B, Sum) \
  static Sum name (const A *a, const B *b, uint32_t n) \
  { \
    enum { LANES = 8 }; \
    Sum sums[LANES] = {0}, sum = 0; \
    uint32_t i = 0; \
\
    for (; i + LANES <= n; i += LANES) \
      for (uint32_t k = 0; k < LANES; k++) \
        sums[k] += (Sum) a[i + k] * (Sum) b[i + k]; \
    for (; i < n; i++) \
      sum += (Sum) a[i] * (Sum) b[i]; \
    for (uint32_t k = 0; k < LANES; k++) \
      sum += sums[k]; \
    return sum; \
  }
