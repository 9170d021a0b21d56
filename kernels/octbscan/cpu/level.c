/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Levels of an image that was put together of rows, see
 * imk_octbscan_level_image (). */
#include <stdlib.h>
#include <string.h>

#include "octbscan/cpu/picture.h"
#include "octbscan/octbscan-config.h"

/* Pixels without an A-scan are 0; they say nothing about the others.
 * @lit: room for @n */
static void
find_lit_range (const float *intensity, size_t n, float *lit,
    const ImkOctbscanConfig *config, uint32_t *counts, float ends[4])
{
  ImkOctbscanPicture picture = {.intensity = lit, .n_ascans = 1};

  for (size_t i = 0; i < n; i++)
    if (intensity[i] > 0)
      lit[picture.n_depths++] = intensity[i];
  imk_octbscan_picture_range (&picture, config, counts, ends);
}

/* As rows of intensities, which need no turning. */
ImkStatus
imk_octbscan_level_image (const ImkOctbscanConfig *given, bool db,
    const ImkImage *in, ImkImage *out, float *ends, ImkError *error)
{
  ImkOctbscanConfig own;
  const ImkOctbscanConfig *config =
      IMK_CONFIG_READ (octbscan, given, &own, error);
  ImkOctbscanPicture picture = {.n_ascans = in->height, .n_depths = in->width};
  size_t n = (size_t) in->width * in->height;
  ImkPool *pool = NULL;
  uint32_t *counts;
  float *intensity, found[4];
  ImkStatus status;

  IMK_TRY (
      config ? imk_octbscan_check_range (config, error) : IMK_ERROR_CONFIG);
  IMK_TRY (imk_image_check (in, "en-face rows", IMK_TYPE_F32, 1, in->width,
      in->height, false, error));
  IMK_TRY (imk_image_check (
      out, "en-face image", out->type, 1, in->width, in->height, false, error));
  IMK_TRY (imk_octbscan_choose_loops (&picture.loops, error));
  counts = malloc (IMK_OCTBSCAN_N_BINS * sizeof (*counts));
  intensity = malloc (2 * n * sizeof (*intensity) + 1);
  status = counts && intensity
               ? imk_pool_new (1, imk_octbscan_picture_scratch_size (in->width),
                     &pool, error)
               : IMK_NO_MEMORY (error, "for the plan.");
  if (status == IMK_OK) {
    for (uint32_t y = 0; y < in->height; y++)
      memcpy (intensity + (size_t) y * in->width,
          (const uint8_t *) in->data + y * in->stride,
          in->width * sizeof (*intensity));
    picture.intensity = intensity;
    find_lit_range (intensity, n, intensity + n, config, counts, found);
    imk_octbscan_picture_write (
        &picture, db, found[db ? 0 : 2], found[db ? 1 : 3], out, pool, 1);
    if (ends)
      memcpy (ends, found, sizeof (found));
  }
  imk_pool_free (pool);
  free (counts);
  free (intensity);
  return status;
}
