/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames of float32. Both backends copy a frame to a plane that has its border
 * filled in, and compile the functions here, so that they agree bit for bit.
 * The CPU smooths row by row instead (cpu/smooth.h), in the order of
 * imk_lapsharpen_passed (). */
#pragma once

#include "lapsharpen/lapsharpen-sample.h"

/* Samples of the pixels x0 <= x < x1, y0 <= y < y1, without gaps. */
typedef struct ImkLapsharpenPlane {
  float *values;
  int x0, y0, x1, y1;
  int channels;
} ImkLapsharpenPlane;

/* One direction of smoothing, from plane @in to plane @out of the arena. */
typedef struct ImkLapsharpenPass {
  ImkLapsharpenPlane in, out;
  bool along_row, grow, add; /* add: to what is in @out */
  int step, reach;
  float w[IMK_LAPSHARPEN_MAX_SHRINK + 1];
  float grown[IMK_LAPSHARPEN_MAX_STEP][3];
} ImkLapsharpenPass;

enum { IMK_LAPSHARPEN_MAX_PASSES = 8, IMK_LAPSHARPEN_LANES = 32 };

/* All steps of a frame. The planes follow each other in one arena. */
typedef struct ImkLapsharpenPlan {
  size_t n_floats;           /* of the arena */
  ImkLapsharpenPlane frame;  /* the input with its border */
  ImkLapsharpenPlane smooth; /* of the size of the frame */
  uint32_t n_passes;
  ImkLapsharpenPass passes[IMK_LAPSHARPEN_MAX_PASSES];
} ImkLapsharpenPlan;

IMK_HOST_DEVICE static inline ptrdiff_t
imk_lapsharpen_row_floats (const ImkLapsharpenPlane *p)
{
  return (ptrdiff_t) (p->x1 - p->x0) * p->channels;
}

IMK_HOST_DEVICE static inline float *
imk_lapsharpen_pixel (const ImkLapsharpenPlane *p, int x, int y)
{
  return p->values + (ptrdiff_t) (y - p->y0) * imk_lapsharpen_row_floats (p) +
         (ptrdiff_t) (x - p->x0) * p->channels;
}

/* --- the plan ------------------------------------------------------------- */

/* Takes a plane from the arena; @arena may be NULL, to learn its size. */
static inline ImkLapsharpenPlane
imk_lapsharpen_take_plane (ImkLapsharpenPlan *plan, float *arena, int channels,
    int x0, int y0, int x1, int y1)
{
  ImkLapsharpenPlane p = {};

  p.values = arena ? arena + plan->n_floats : NULL;
  p.x0 = x0;
  p.y0 = y0;
  p.x1 = x1;
  p.y1 = y1;
  p.channels = channels;
  plan->n_floats += (size_t) (x1 - x0) * (size_t) (y1 - y0) * (size_t) channels;
  return p;
}

static inline void
imk_lapsharpen_add_pass (ImkLapsharpenPlan *plan, const ImkLapsharpenPlane *in,
    const ImkLapsharpenPlane *out, bool along_row, int step, const float *w,
    int reach, bool add)
{
  ImkLapsharpenPass *pass = &plan->passes[plan->n_passes++];

  pass->in = *in;
  pass->out = *out;
  pass->along_row = along_row;
  pass->step = step;
  pass->reach = reach;
  pass->add = add;
  for (int i = 0; i <= reach; i++)
    pass->w[i] = w[i];
}

static inline void
imk_lapsharpen_add_grow (ImkLapsharpenPlan *plan, const ImkLapsharpenPlane *in,
    const ImkLapsharpenPlane *out, bool along_row, const ImkLapsharpenSmooth *s)
{
  ImkLapsharpenPass *pass = &plan->passes[plan->n_passes];

  imk_lapsharpen_add_pass (
      plan, in, out, along_row, s->step, s->blur, 0, false);
  pass->grow = true;
  for (int i = 0; i < s->step; i++)
    for (int k = 0; k < 3; k++)
      pass->grown[i][k] = s->grow[i][k];
}

/* The blurs of plane @low. */
static inline void
imk_lapsharpen_plan_blur (ImkLapsharpenPlan *plan, const ImkLapsharpenSmooth *s,
    const ImkLapsharpenPlane *low, const ImkLapsharpenPlane *blurred,
    const ImkLapsharpenPlane *smooth)
{
  const int reach = s->blur_reach;

  imk_lapsharpen_add_pass (plan, low, blurred, false, 1, s->blur, reach, false);
  imk_lapsharpen_add_pass (plan, blurred, smooth, true, 1,
      s->is_log ? s->curve : s->blur, reach, false);
  if (!s->is_log)
    return;
  imk_lapsharpen_add_pass (
      plan, low, blurred, false, 1, s->curve, reach, false);
  imk_lapsharpen_add_pass (
      plan, blurred, smooth, true, 1, s->blur, reach, true);
}

/* @arena: (nullable): of n_floats of an earlier plan */
static inline ImkLapsharpenPlan
imk_lapsharpen_plan (const ImkLapsharpenRule *rule, float *arena)
{
  const ImkLapsharpenSmooth *s = &rule->smooth;
  const int c = (int) rule->channels, d = s->step, j = s->shrink_reach;
  const int w = (int) rule->width, h = (int) rule->height, halo = s->halo;
  const int r = d ? halo + s->blur_reach : (int) rule->reach;
  /* low samples that the frame is between */
  const int columns = d ? (w - 1 + d / 2) / d + 1 : w;
  const int rows = d ? (h - 1 + d / 2) / d + 1 : h;
  const int left = d ? r * d + j : r; /* and above */
  const int right = d ? (columns + r - 1) * d + j + 1 : w + r;
  const int bottom = d ? (rows + r - 1) * d + j + 1 : h + r;
  ImkLapsharpenPlan plan = {};
  ImkLapsharpenPlane low, shrunk, blurred, smooth, wide;

  plan.frame =
      imk_lapsharpen_take_plane (&plan, arena, c, -left, -left, right, bottom);
  if (!d)
    return plan;
  low = plan.frame;
  if (d > 1) {
    shrunk =
        imk_lapsharpen_take_plane (&plan, arena, c, -left, -r, right, rows + r);
    low = imk_lapsharpen_take_plane (
        &plan, arena, c, -r, -r, columns + r, rows + r);
    imk_lapsharpen_add_pass (
        &plan, &plan.frame, &shrunk, false, d, s->shrink, j, false);
    imk_lapsharpen_add_pass (
        &plan, &shrunk, &low, true, d, s->shrink, j, false);
  }
  blurred = imk_lapsharpen_take_plane (
      &plan, arena, c, -r, -halo, columns + r, rows + halo);
  smooth = imk_lapsharpen_take_plane (
      &plan, arena, c, -halo, -halo, columns + halo, rows + halo);
  imk_lapsharpen_plan_blur (&plan, s, &low, &blurred, &smooth);
  plan.smooth = smooth;
  if (d == 1)
    return plan;
  wide = imk_lapsharpen_take_plane (&plan, arena, c, 0, -halo, w, rows + halo);
  plan.smooth = imk_lapsharpen_take_plane (&plan, arena, c, 0, 0, w, h);
  imk_lapsharpen_add_grow (&plan, &smooth, &wide, true, s);
  imk_lapsharpen_add_grow (&plan, &wide, &plan.smooth, false, s);
  return plan;
}

/* --- one sample ----------------------------------------------------------- */

/* Returns: what counts as sample @i of pixel (@x, @y), which may be outside */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_padded (const ImkLapsharpenRule *rule, const void *in,
    size_t stride, int x, int y, int i)
{
  const int w = (int) rule->width, h = (int) rule->height;
  const int nx = imk_lapsharpen_inside (x, w, rule);
  const int ny = imk_lapsharpen_inside (y, h, rule);
  const float *row = (const float *) ((const char *) in + (size_t) ny * stride);

  if (rule->constant && (nx != x || ny != y))
    return (float) rule->border_value;
  return row[(ptrdiff_t) nx * (int) rule->channels + i];
}

/* w_0 v_0 + w_1 (v_-1 + v_1) + ... @distance: from one v to the next */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_fold (
    const float *v, ptrdiff_t distance, const float *w, int reach)
{
  float sum = w[0] * v[0];

  for (int j = 1; j <= reach; j++) {
    float pair = v[-j * distance] + v[j * distance];

    sum = sum + w[j] * pair;
  }
  return sum;
}

/* What pass @p makes of channel @i of pixel (@x, @y) of its output. */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_passed (const ImkLapsharpenPass *p, int x, int y, int i)
{
  const int d = p->step;
  const ptrdiff_t distance =
      p->along_row ? p->in.channels : imk_lapsharpen_row_floats (&p->in);
  const float *v, *w;
  float sum;

  if (p->grow) {
    const int shifted = (p->along_row ? x : y) + d / 2, k = shifted / d;

    v = imk_lapsharpen_pixel (
            &p->in, p->along_row ? k : x, p->along_row ? y : k) +
        i;
    w = p->grown[shifted % d];
    sum = w[0] * v[-distance] + w[1] * v[0];
    return sum + w[2] * v[distance];
  }
  v = imk_lapsharpen_pixel (
          &p->in, p->along_row ? x * d : x, p->along_row ? y : y * d) +
      i;
  sum = imk_lapsharpen_fold (v, distance, p->w, p->reach);
  return p->add ? imk_lapsharpen_pixel (&p->out, x, y)[i] + sum : sum;
}

/* @v: a sample with neighbours at @c and @s floats from it, as in the functions
 * that follow */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_float_laplacian (
    const float *v, ptrdiff_t c, ptrdiff_t s, bool eight)
{
  float sum = (v[-s] + v[s]) + (v[-c] + v[c]);

  if (eight)
    sum = sum + ((v[-s - c] + v[-s + c]) + (v[s - c] + v[s + c]));
  return (eight ? 8.0f : 4.0f) * v[0] - sum;
}

/* |N| of the header. */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_float_noise (const float *v, ptrdiff_t c, ptrdiff_t s)
{
  float sides = (v[-s] + v[s]) + (v[-c] + v[c]);
  float corners = (v[-s - c] + v[-s + c]) + (v[s - c] + v[s + c]);

  return fabsf ((4.0f * v[0] - 2.0f * sides) + corners);
}

/* What the kernel makes of a sample, row by row. */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_float_correlate (
    const ImkLapsharpenRule *rule, const float *v, ptrdiff_t c, ptrdiff_t s)
{
  const int size = (int) rule->kernel_size, reach = (int) rule->reach;
  float sum = 0;

  for (int dy = 0; dy < size; dy++)
    for (int dx = 0; dx < size; dx++)
      sum = sum + rule->kernel[dy * size + dx] *
                      v[(dy - reach) * s + (dx - reach) * c];
  return sum;
}

/* Returns: the new value of @v. @added: s L; @made: @v and s L; @least: what
 * |s L| must reach */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_float_cored (
    float v, float added, float made, float least, bool soft, bool edges)
{
  float magnitude = fabsf (added), less = soft ? least : 0.0f;
  float value = edges       ? magnitude - less
                : added < 0 ? made + less
                            : made - less;

  /* 0 where L is finite, NaN where it is not */
  value = value + (added - added);
  return magnitude < least ? (edges ? 0.0f : v) : value;
}

/* Returns: @value within the 3x3 window of @v, or as far beyond it as halos
 * may be. NaN in a window do not count. */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_float_limited (const ImkLapsharpenRule *rule, const float *v,
    ptrdiff_t c, ptrdiff_t s, float value)
{
  float low = v[0], high = v[0];

  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) {
      float n = v[dy * s + dx * c];

      low = n < low ? n : low;
      high = n > high ? n : high;
    }
  if (rule->halo_dark < UINT32_MAX) {
    low = low - (float) rule->halo_dark;
    value = value < low ? low : value;
  }
  if (rule->halo_bright < UINT32_MAX) {
    high = high + (float) rule->halo_bright;
    value = value > high ? high : value;
  }
  return value;
}

/* Returns: the new value of a sample. @smooth: what smoothing makes of it, for
 * rules with a smooth.step. All NaN are the same one. */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_float_sample (const ImkLapsharpenRule *rule, const float *v,
    ptrdiff_t c, ptrdiff_t s, float smooth)
{
  float least = rule->threshold * rule->amount, added, made, value;

  if (rule->kernel_size) {
    made = imk_lapsharpen_float_correlate (rule, v, c, s);
    added = made - v[0];
  } else {
    float own = rule->smooth.is_log ? 0.0f : v[0];
    float l = rule->smooth.step ? own - smooth
                                : imk_lapsharpen_float_laplacian (
                                      v, c, s, rule->neighbours == 8);

    added = rule->amount * l;
    made = v[0] + added;
  }
  value = imk_lapsharpen_float_cored (
      v[0], added, made, least, rule->soft, rule->edges);
  if (rule->local)
    value = imk_lapsharpen_float_limited (rule, v, c, s, value);
  return value == value ? value : NAN;
}

/* Returns: @v and the sharpened @value, mixed */
IMK_HOST_DEVICE static inline float
imk_lapsharpen_float_mixed (float v, float value, uint32_t weight)
{
  float mixed = v + (value - v) * (float) weight / 255.0f;

  return weight == 0 ? v : weight == 255 || value != value ? value : mixed;
}

/* --- sums ----------------------------------------------------------------- */

/* Returns: the sums of @n rows */
static inline ImkLapsharpenMoments
imk_lapsharpen_add_moments (const ImkLapsharpenMoments *rows, uint32_t n)
{
  ImkLapsharpenMoments all = {};

  for (uint32_t i = 0; i < n; i++) {
    all.sum += rows[i].sum;
    all.squares += rows[i].squares;
    all.n += rows[i].n;
  }
  return all;
}

/* Returns: the threshold for the noise of a frame, from |N| of its rows */
static inline float
imk_lapsharpen_float_threshold (
    const ImkLapsharpenRule *rule, const ImkLapsharpenMoments *rows)
{
  const ImkLapsharpenMoments all =
      imk_lapsharpen_add_moments (rows, rule->height);

  /* sqrt (pi / 2) / 6 */
  return all.n ? (float) (rule->per_sigma * 0.20888568955258338 * all.sum /
                          (double) all.n)
               : 0;
}
