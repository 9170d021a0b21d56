/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Amounts on bytes by products of 16 bits, for vectors-8.h. */
#pragma once

#include "lapsharpen/lapsharpen-sample.h"

/* The definition rounds amount * L to float32, and then its sum with v + 0.5.
 * Products of integers give the same bytes, except where amount * L is near
 * half a count. Two factors that differ by 1 round such a half up and down. The
 * definition rounds it
 * - up where its product is the half itself: the larger result is taken;
 * - down where its product is less by the last bit. The sum has that bit only
 *   if its highest bit is not above that of the product, else it rounds up.
 * With an amount such as 0.3 the product is less where its two highest bits are
 * set. Amounts for which this is wrong are found by trial. */
typedef struct ImkLapsharpenProducts {
  float amount;
  uint32_t neighbours;
  int16_t scale;     /* of L before the product; 0: only float32 will do */
  int16_t factor[2]; /* in units of 2^-15, with the sign of the scale */
  bool down;         /* whether some halves round down */
} ImkLapsharpenProducts;

/* Returns: products that make the bytes of imk_lapsharpen_sample () of all
 * samples and Laplacians that there are */
ImkLapsharpenProducts imk_lapsharpen_find_products (
    const ImkLapsharpenRule *rule);
