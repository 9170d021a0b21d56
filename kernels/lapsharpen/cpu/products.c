/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lapsharpen/cpu/products.h"

#include <stdlib.h>

static int32_t
keep_byte (int32_t value)
{
  return value < 0 ? 0 : value > 255 ? 255 : value;
}

static int32_t
multiply (const ImkLapsharpenProducts *p, int32_t l, int i)
{
  return (l * p->scale * p->factor[i] + (1 << 14)) >> 15;
}

/* Returns: what sharpen_products () of vectors-8.h makes of a sample */
static int32_t
sharpen (const ImkLapsharpenProducts *p, int32_t l, int32_t v)
{
  const int32_t first = keep_byte (v + multiply (p, l, 0));
  const int32_t second = keep_byte (v + multiply (p, l, 1));
  const int32_t change = abs (first - v);
  const int32_t two_bits = change & change << 1 & 255;
  const int32_t above = (change | second) & ~two_bits;
  const bool down = p->down && above <= two_bits;

  return first > second && !down ? first : second;
}

/* Returns: whether @l makes the same of all samples whose neighbours can give
 * it. @change: by which; others, which are 0 or 255 by far, take no time */
static bool
is_same_for (const ImkLapsharpenProducts *p, int32_t l, int32_t change)
{
  const int32_t k = (int32_t) p->neighbours;
  const int32_t first = keep_byte (-2 - change);
  const int32_t last = keep_byte (257 - change);

  for (int32_t v = first; v <= last; v++) {
    const int32_t sum = k * v - l; /* of the neighbours */

    if (sum >= 0 && sum <= 255 * k &&
        sharpen (p, l, v) != imk_lapsharpen_sample (p->amount, 0, false, false,
                                 (float) l, v, 0, 255))
      return false;
  }
  return true;
}

/* The sample matters only near halves, and where the products differ. */
static bool
is_same (const ImkLapsharpenProducts *p)
{
  const float near = 1.0f / 256;
  const int32_t most = 255 * (int32_t) p->neighbours;

  for (int32_t l = -most; l <= most; l++) {
    const float change = p->amount * (float) l + 0.5f, whole = floorf (change);
    const float rest = change - whole;
    const bool alike = multiply (p, l, 0) == (int32_t) whole &&
                       multiply (p, l, 1) == (int32_t) whole;

    if (!(alike && rest > near && rest < 1 - near) &&
        !is_same_for (p, l, (int32_t) whole))
      return false;
  }
  return true;
}

ImkLapsharpenProducts
imk_lapsharpen_find_products (const ImkLapsharpenRule *rule)
{
  /* what is added to the lower factor; the larger product is taken of both, or
   * the second where halves round down */
  static const struct {
    int16_t first, second;
    bool down;
  } ways[] = {{0, 0}, {1, 1}, {0, 1}, {0, 1, true}, {1, 0, true}};
  ImkLapsharpenProducts p = {
      .amount = rule->amount, .neighbours = rule->neighbours};
  int scale = 1;
  float factor;

  while (rule->amount >= (float) scale)
    scale *= 2;
  factor = rule->amount / (float) scale * 32768;
  for (size_t i = 0; i < sizeof (ways) / sizeof (ways[0]); i++) {
    p.scale = (int16_t) -scale;
    p.factor[0] = (int16_t) - ((int32_t) factor + ways[i].first);
    p.factor[1] = (int16_t) - ((int32_t) factor + ways[i].second);
    p.down = ways[i].down;
    if (rule->multiple || is_same (&p)) /* of few bits: exact */
      return p;
  }
  p.scale = 0;
  return p;
}
