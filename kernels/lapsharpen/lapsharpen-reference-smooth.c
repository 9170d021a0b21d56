/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The six steps of method=unsharp and method=log, each over a whole plane of
 * float32 that is as much larger than the frame as the next step needs. */
#include <stdlib.h>

#include "lapsharpen/lapsharpen-reference.h"
#include "lapsharpen/lapsharpen-smooth.h"

/* Samples at x0 <= x < x1, y0 <= y < y1. */
typedef struct Plane {
  int x0, y0, x1, y1;
  float *values;
} Plane;

static Plane
plane_new (int x0, int y0, int x1, int y1)
{
  Plane p = {x0, y0, x1, y1, NULL};

  p.values = malloc ((size_t) (x1 - x0) * (size_t) (y1 - y0) * sizeof (float));
  return p;
}

static float *
at (const Plane *p, int x, int y)
{
  return &p->values[(size_t) (y - p->y0) * (size_t) (p->x1 - p->x0) +
                    (size_t) (x - p->x0)];
}

/* w[0] v_0 + w[1] (v_-1 + v_1) + ... along a row, or along a column */
static float
fold (const Plane *p, int x, int y, bool along_row, const float *w, int reach)
{
  float sum = w[0] * *at (p, x, y);

  for (int j = 1; j <= reach; j++) {
    float before = along_row ? *at (p, x - j, y) : *at (p, x, y - j);
    float after = along_row ? *at (p, x + j, y) : *at (p, x, y + j);
    float pair = before + after;
    float product = w[j] * pair;

    sum = sum + product;
  }
  return sum;
}

/* Every @step-th sum of @in in one direction. */
static Plane
fold_all (const Plane *in, int x0, int y0, int x1, int y1, bool along_row,
    int step, const float *w, int reach)
{
  Plane out = plane_new (x0, y0, x1, y1);

  for (int y = y0; y < y1; y++)
    for (int x = x0; x < x1; x++)
      *at (&out, x, y) = fold (in, along_row ? x * step : x,
          along_row ? y : y * step, along_row, w, reach);
  return out;
}

static Plane
grow_all (const Plane *in, int x1, int y0, int y1, bool along_row,
    const ImkLapsharpenSmooth *s)
{
  Plane out = plane_new (0, y0, x1, y1);

  for (int y = y0; y < y1; y++)
    for (int x = 0; x < x1; x++) {
      int shifted = (along_row ? x : y) + s->step / 2;
      int k = shifted / s->step;
      const float *w = s->grow[shifted % s->step];
      float sum = 0;

      for (int i = -s->halo; i <= s->halo; i++) {
        float v = along_row ? *at (in, k + i, y) : *at (in, x, k + i);
        float product = w[1 + i] * v;

        sum = i == -s->halo ? product : sum + product;
      }
      *at (&out, x, y) = sum;
    }
  return out;
}

static float
get_input (const ImkLapsharpenConfig *k, const ImkImage *in, int x, int y,
    uint32_t channel)
{
  float v = (float) imk_lapsharpen_reference_value (k, in, x, y, channel);
  float opacity;

  if (k->alpha != IMK_LAPSHARPEN_ALPHA_WEIGHTED || k->alpha_channel < 0)
    return v;
  opacity = (float) imk_lapsharpen_reference_value (
                k, in, x, y, (uint32_t) k->alpha_channel) /
            (float) ((1 << k->depth) - 1);
  return (int32_t) channel == k->alpha_channel ? 1 - opacity : v * opacity;
}

float *
imk_lapsharpen_reference_smooth (
    const ImkLapsharpenConfig *k, const ImkImage *in, uint32_t channel)
{
  const int width = (int) k->width, height = (int) k->height;
  ImkLapsharpenSmooth s = {0};
  int d, r, j, h, columns, rows;
  Plane frame, low_rows, low, blurred, curved = {0}, smooth, wide, result;

  imk_lapsharpen_set_smooth (
      &s, k->radius, k->method == IMK_LAPSHARPEN_METHOD_LOG);
  d = s.step;
  j = s.shrink_reach;
  h = s.halo;
  r = h + s.blur_reach;
  columns = (width - 1 + d / 2) / d + 1;
  rows = (height - 1 + d / 2) / d + 1;
  frame = plane_new (-r * d - j, -r * d - j, (columns + r - 1) * d + j + 1,
      (rows + r - 1) * d + j + 1);
  for (int y = frame.y0; y < frame.y1; y++)
    for (int x = frame.x0; x < frame.x1; x++)
      *at (&frame, x, y) = get_input (k, in, x, y, channel);
  low_rows = fold_all (
      &frame, frame.x0, -r, frame.x1, rows + r, false, d, s.shrink, j);
  low =
      fold_all (&low_rows, -r, -r, columns + r, rows + r, true, d, s.shrink, j);
  blurred = fold_all (
      &low, -r, -h, columns + r, rows + h, false, 1, s.blur, s.blur_reach);
  smooth = fold_all (&blurred, -h, -h, columns + h, rows + h, true, 1,
      s.is_log ? s.curve : s.blur, s.blur_reach);
  if (s.is_log) {
    curved = fold_all (
        &low, -r, -h, columns + r, rows + h, false, 1, s.curve, s.blur_reach);
    for (int y = -h; y < rows + h; y++)
      for (int x = -h; x < columns + h; x++)
        *at (&smooth, x, y) = *at (&smooth, x, y) +
                              fold (&curved, x, y, true, s.blur, s.blur_reach);
  }
  wide = grow_all (&smooth, width, -h, rows + h, true, &s);
  result = grow_all (&wide, width, 0, height, false, &s);
  free (frame.values);
  free (low_rows.values);
  free (low.values);
  free (blurred.values);
  free (curved.values);
  free (smooth.values);
  free (wide.values);
  return result.values;
}
