/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers of 16 bits. They are rounded here for all backends, so that each
 * multiplies with the same ones. */
#include <string.h>

#include "shreconstruct/shreconstruct-private.h"

/* To 8 significant bits, halves to even; what would become infinite is cut. */
static float
round_bf16 (float value)
{
  uint32_t bits, rounded;

  memcpy (&bits, &value, sizeof (bits));
  rounded = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
  if ((rounded & 0x7f800000) == 0x7f800000)
    rounded = bits & 0xffff0000;
  memcpy (&value, &rounded, sizeof (value));
  return value;
}

/* To 11 significant bits, and to multiples of 2^-24. */
static double
round_f16 (double value)
{
  int exponent;
  double unit;

  if (value == 0)
    return value;
  frexp (value, &exponent);
  unit = ldexp (1, exponent - 11 < -24 ? -24 : exponent - 11);
  return nearbyint (value / unit) * unit;
}

void
imk_shreconstruct_round (ImkShreconstructStorage storage, float *values,
    uint32_t n_rows, uint32_t n_columns)
{
  for (uint32_t row = 0; row < n_rows; row++) {
    float *at = values + (size_t) row * n_columns;
    double scale = ldexp (1, imk_shreconstruct_f16_exponent (at, n_columns));

    for (uint32_t i = 0; i < n_columns; i++)
      if (storage == IMK_SHRECONSTRUCT_STORAGE_BF16)
        at[i] = round_bf16 (at[i]);
      else if (storage == IMK_SHRECONSTRUCT_STORAGE_F16)
        at[i] = (float) (round_f16 (at[i] * scale) / scale);
  }
}
