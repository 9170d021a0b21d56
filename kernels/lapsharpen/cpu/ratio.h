/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels on bytes whose weights are k / n, with whole k and one n, for
 * vectors-8.h. */
#pragma once

#include "lapsharpen/lapsharpen-sample.h"

/* Two weights of a kernel, or one twice. */
typedef struct ImkLapsharpenPair {
  uint8_t weight[2]; /* where in the kernel */
  int8_t k[2]; /* -k of each; the products with two bytes add up to 16 bits;
                * 0: of the one that is there twice */
} ImkLapsharpenPair;

/* Sums of k v are integers of 16 bits, and their quotients by n are exact. The
 * definition adds up rounded products in float32. Its error is less than the
 * distance of a sum from the nearest half count, so that both make the same
 * sample, unless the sum is a half itself:
 * - With an odd n no sum is.
 * - Where float32 has all sums exactly (n a power of two), halves go to even
 *   numbers.
 * - With another n, for example 100, the rounding errors of the definition
 *   decide. Such sums, one in n, are added up again in its order. */
typedef struct ImkLapsharpenRatio {
  uint16_t n;      /* 0: there is none up to 256, or sums do not fit */
  uint16_t centre; /* k of the sample itself, or 0 and it is in a pair */
  ImkLapsharpenPair
      pairs[IMK_LAPSHARPEN_MAX_KERNEL * IMK_LAPSHARPEN_MAX_KERNEL];
  int n_pairs;
  uint16_t rest;          /* makes the sum of all pairs positive */
  uint16_t factor, shift; /* sum / n is sum * factor >> 16 >> shift */
  bool to_even, by_order; /* how halves are rounded; neither: there are none */
  /* for by_order: the weight times each byte, in float32 */
  float products[IMK_LAPSHARPEN_MAX_KERNEL * IMK_LAPSHARPEN_MAX_KERNEL][256];
} ImkLapsharpenRatio;

/* For rules of bytes with a kernel. @ratio: (out) */
void imk_lapsharpen_find_ratio (
    const ImkLapsharpenRule *rule, ImkLapsharpenRatio *ratio);
