/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shcentroid/shcentroid-light.h"

#include <math.h>
#include <stdlib.h>

#include "shcentroid/shcentroid-cells.h"
#include "shcentroid/shcentroid-chain.h"

/* NaN for a bad pixel, or one that is not finite. */
static float
value_at (
    const ImkShcentroidConfig *c, const ImkImage *frame, uint32_t x, uint32_t y)
{
  const uint8_t *row = (const uint8_t *) frame->data + y * frame->stride;
  size_t at = (size_t) y * c->width + x;
  float v;

  if (c->type == IMK_TYPE_F32) {
    v = ((const float *) row)[x];
  } else {
    uint32_t sample =
        c->type == IMK_TYPE_U8 ? row[x] : ((const uint16_t *) row)[x];

    v = c->lut ? c->lut[sample] : (float) sample;
  }
  if ((c->bad && c->bad[at]) || (c->flat && c->flat[at] == 0.0f) ||
      !(fabsf (v) <= 1e30f))
    return NAN;
  return (v - (c->dark ? c->dark[at] : 0.0f)) * (c->flat ? c->flat[at] : 1.0f);
}

static int
compare_descending (const void *a, const void *b)
{
  float x = *(const float *) a, y = *(const float *) b;

  return (x < y) - (x > y);
}

/* @sorted: @n values, the largest first */
static ImkShcentroidLevel
level_of (
    const ImkShcentroidConfig *c, double own, const float *sorted, uint32_t n)
{
  bool noise = c->threshold_mode == IMK_SHCENTROID_THRESHOLD_NOISE;
  ImkShcentroidParams params = {
      .threshold_mode = c->threshold_mode,
      .subtract = c->threshold_action == IMK_SHCENTROID_ACTION_SUBTRACT,
      .unit = noise ? c->read_noise : 1.0,
      .threshold = c->threshold * (noise ? c->read_noise : 1.0),
      .threshold_least = c->threshold_least,
      .brightest = c->brightest,
  };
  uint32_t rank = params.brightest ? imk_shcentroid_rank (&params, n) : 0;
  double brightest = -imk_shcentroid_infinity ();

  if (rank > 0) {
    uint32_t k = rank - 1;

    while (params.subtract && k < n && sorted[k] == sorted[rank - 1])
      k++;
    brightest = k < n ? sorted[k] : brightest;
  }
  return imk_shcentroid_level (
      &params, own, sorted[n - 1], sorted[0], brightest);
}

static double
part_of (float value, ImkShcentroidLevel level)
{
  return value >= level.least ? value - level.pedestal : 0.0;
}

/* Does a largest value of @most stand out? @rim: @n values, the largest first
 */
static bool
is_spot (const ImkShcentroidConfig *c, float most, const float *rim, uint32_t n)
{
  float step = c->type == IMK_TYPE_F32 ? 0.0f : 1.0f;
  float spread = rim[n / 4] - rim[n - 1 - n / 4] + step;

  return most - rim[n / 2] > 4.0f * spread;
}

/* @room: for the values of the cell, twice. Returns: its share; NaN without
 * a spot */
static double
share_of (const ImkShcentroidConfig *c, const ImkImage *frame, uint32_t index,
    float *room)
{
  ImkShcentroidRect rect = imk_shcentroid_cell_rect (c, index);
  float *rim = room + (size_t) rect.width * rect.height;
  uint32_t n = 0, n_rim = 0;
  ImkShcentroidLevel level;
  double flux = 0.0, share;

  for (uint32_t v = 0; v < rect.height; v++)
    for (uint32_t u = 0; u < rect.width; u++) {
      float value = value_at (c, frame, rect.x + u, rect.y + v);

      if (isnan (value))
        continue;
      room[n++] = value;
      if (u == 0 || v == 0 || u == rect.width - 1u || v == rect.height - 1u)
        rim[n_rim++] = value;
    }
  if (n_rim == 0)
    return NAN;
  qsort (room, n, sizeof (*room), compare_descending);
  qsort (rim, n_rim, sizeof (*rim), compare_descending);
  if (!is_spot (c, room[0], rim, n_rim))
    return NAN;
  level = level_of (c, rect.threshold, room, n);
  for (uint32_t i = 0; i < n; i++)
    flux += part_of (room[i], level);
  if (!(flux > 0.0) ||
      flux < (isnan (rect.min_flux) ? c->min_flux : rect.min_flux))
    return NAN;
  share = part_of (rim[n_rim / 2], level) * n / flux;
  return share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
}

ImkStatus
imk_shcentroid_background (const ImkShcentroidConfig *c, const ImkImage *frame,
    double *share, ImkError *error)
{
  uint32_t n = imk_shcentroid_n_cells (c), n_lit = 0;
  size_t most = 1;
  ImkStatus status = imk_image_check (
      frame, "input", c->type, 1, c->width, c->height, false, error);
  float *room, *shares;

  if (status != IMK_OK)
    return status;
  for (uint32_t i = 0; i < n; i++) {
    ImkShcentroidRect rect = imk_shcentroid_cell_rect (c, i);
    size_t size = (size_t) rect.width * rect.height;

    most = size > most ? size : most;
  }
  room = malloc (2 * most * sizeof (*room));
  shares = malloc ((size_t) n * sizeof (*shares));
  for (uint32_t i = 0; room && shares && i < n; i++) {
    double of_cell = share_of (c, frame, i, room);

    if (!isnan (of_cell))
      shares[n_lit++] = (float) of_cell;
  }
  if (!room || !shares) {
    status = imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory to look at the light of %u cells.", n);
  } else {
    qsort (shares, n_lit, sizeof (*shares), compare_descending);
    *share = n_lit ? shares[n_lit / 2] : -1.0;
  }
  free (room);
  free (shares);
  return status;
}
