/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>

#include "imk/insarform.h"

static float
clamp_1 (float value)
{
  return value > 0 ? fminf (value, 1) : 0; /* NaN is 0 */
}

/* A channel of the hue @turn, of 0 to 1: full within a sixth of a turn of its
 * place, 0 within a sixth of the opposite one. */
static float
channel_of (float turn, float place)
{
  float away = fabsf (turn - place);

  return clamp_1 (2 - 6 * fminf (away, 1 - away));
}

static float
shade_of (const float *cell, ImkInsarformShade shade, float full)
{
  if (cell[IMK_INSARFORM_RE] == 0 && cell[IMK_INSARFORM_IM] == 0)
    return 0;
  if (shade == IMK_INSARFORM_SHADE_COHERENCE)
    return clamp_1 (cell[IMK_INSARFORM_COHERENCE]);
  if (shade == IMK_INSARFORM_SHADE_AMPLITUDE)
    return clamp_1 (cell[IMK_INSARFORM_AMPLITUDE] / full);
  return 1;
}

void
imk_insarform_phase_to_rgb (const float *row, uint32_t n,
    ImkInsarformShade shade, float full, uint8_t *rgb)
{
  static const float places[] = {0, 1 / 3.0f, 2 / 3.0f};

  for (uint32_t i = 0; i < n; i++, row += IMK_INSARFORM_N_CHANNELS) {
    float turn = atan2f (row[IMK_INSARFORM_IM], row[IMK_INSARFORM_RE]) /
                 (float) (2 * M_PI);
    float value = 255 * shade_of (row, shade, full);

    turn -= floorf (turn);
    for (int c = 0; c < 3; c++)
      rgb[3 * i + c] = (uint8_t) (value * channel_of (turn, places[c]) + 0.5f);
  }
}

void
imk_insarform_to_u8 (const float *row, uint32_t n, ImkInsarformChannel channel,
    float full, uint8_t *to)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] =
        (uint8_t) (255 * clamp_1 (row[i * IMK_INSARFORM_N_CHANNELS + channel] /
                                  full) +
                   0.5f);
}

void
imk_insarform_to_u16 (const float *row, uint32_t n, ImkInsarformChannel channel,
    float full, uint16_t *to)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] =
        (uint16_t) (65535 *
                        clamp_1 (row[i * IMK_INSARFORM_N_CHANNELS + channel] /
                                 full) +
                    0.5f);
}
