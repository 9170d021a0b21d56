/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shcentroid.h"

#include <math.h>
#include <stdlib.h>

#include "shcentroid/arithmetic/linear-centroid.h"

static ImkStatus
count_pixels (const uint8_t *numbers, uint32_t width, uint32_t height,
    uint32_t count[IMK_SHCENTROID_N_PUPILS], ImkError *error)
{
  for (size_t i = 0; i < (size_t) width * height; i++) {
    if (numbers[i] > IMK_SHCENTROID_N_PUPILS)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "The pupil images have the number %u at (%u, %u); it must be 1 to 4, "
          "or 0 outside of them.",
          numbers[i], (unsigned) (i % width), (unsigned) (i / width));
    if (numbers[i] > 0)
      count[numbers[i] - 1]++;
  }
  for (uint32_t k = 1; k < IMK_SHCENTROID_N_PUPILS; k++)
    if (count[k] != count[0])
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Pupil image %u has %u pixels and pupil image 1 has %u; all four "
          "must have as many, row by row the same part of the pupil.",
          k + 1, count[k], count[0]);
  if (count[0] == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The pupil images have no pixels. Number their pixels 1 to 4.");
  return IMK_OK;
}

ImkStatus
imk_shcentroid_find_pupils (const uint8_t *numbers, uint32_t width,
    uint32_t height, ImkShcentroidConfig *to, ImkShcentroidCell **cells,
    uint32_t **pupils, ImkError *error)
{
  uint32_t count[IMK_SHCENTROID_N_PUPILS] = {0};
  uint32_t next[IMK_SHCENTROID_N_PUPILS] = {0};
  ImkShcentroidCell *map;
  uint32_t *pixels;

  IMK_TRY (count_pixels (numbers, width, height, count, error));
  map = malloc (count[0] * sizeof (*map));
  pixels =
      malloc ((size_t) count[0] * IMK_SHCENTROID_N_PUPILS * sizeof (*pixels));
  if (!map || !pixels) {
    free (map);
    free (pixels);
    return IMK_NO_MEMORY (error, "for pupil images of %u pixels.", count[0]);
  }
  for (size_t i = 0; i < (size_t) width * height; i++) {
    uint32_t k = numbers[i] - 1u, n;

    if (numbers[i] == 0)
      continue;
    n = next[k]++;
    pixels[(size_t) n * IMK_SHCENTROID_N_PUPILS + k] = (uint32_t) i;
    if (k == 0)
      map[n] = (ImkShcentroidCell){.x = (double) (i % width),
          .y = (double) (i / width),
          .width = 1,
          .height = 1,
          .ref_x = NAN,
          .ref_y = NAN,
          .min_flux = NAN,
          .threshold = NAN};
  }
  to->cells = *cells = map;
  to->n_cells = count[0];
  to->pupils = *pupils = pixels;
  return IMK_OK;
}
