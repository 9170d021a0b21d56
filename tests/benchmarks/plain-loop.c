/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compiled with all the optimisation that the compiler has. */
#include "plain-loop.h"

void
plain_centroids (const uint8_t *frame, size_t stride, uint32_t columns,
    uint32_t rows, uint32_t pitch, float *xy)
{
  for (uint32_t row = 0; row < rows; row++)
    for (uint32_t column = 0; column < columns; column++) {
      const uint8_t *cell = frame + row * pitch * stride + column * pitch;
      uint32_t m00 = 0, m10 = 0, m01 = 0;

      for (uint32_t v = 0; v < pitch; v++) {
        const uint8_t *line = cell + v * stride;

        for (uint32_t u = 0; u < pitch; u++) {
          m00 += line[u];
          m10 += u * line[u];
          m01 += v * line[u];
        }
      }
      *xy++ = column * pitch + (m00 ? (float) m10 / (float) m00 : 0.0f);
      *xy++ = row * pitch + (m00 ? (float) m01 / (float) m00 : 0.0f);
    }
}

uint32_t
plain_sum (const uint32_t *words, size_t n)
{
  uint32_t sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += words[i];
  return sum;
}
