/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is done pixel by pixel and bin by bin. Compiled by both backends. */
#pragma once

#include <math.h>

#include "normalintegrate/normalintegrate-backend.h"

#ifdef __CUDACC__
#define IMK_NORMALINTEGRATE_FUNCTION static __host__ __device__ __forceinline__
#else
#define IMK_NORMALINTEGRATE_FUNCTION static inline
#endif

/* x to the right, y down, z to the camera; of length 1, or all 0. With a focal
 * length, z is along the view of the pixel, on which the camera axis has length
 * 1: slopes of -focal_pixels log (distance) are -x / z and -y / z then. */
typedef struct ImkNormalintegrateNormal {
  float x, y, z;
} ImkNormalintegrateNormal;

/* Quéau, Durou and Aujol 2018, equation 11. Returns: z of a normal @v of any
 * length, y up */
IMK_NORMALINTEGRATE_FUNCTION float
imk_normalintegrate_along_view (const ImkNormalintegratePlan *plan,
    const ImkNormalintegrateParams *params, const float v[3], uint32_t x,
    uint32_t y)
{
  float from_x, from_y;

  if (!(params->focal_pixels > 0))
    return v[2];
  from_x = (float) x - (float) (plan->width - 1) / 2;
  from_y = ((float) y - (float) (plan->height - 1) / 2) / plan->aspect;
  return v[2] - (from_x * v[0] + from_y * params->y_sign * v[1]) /
                    params->focal_pixels;
}

IMK_NORMALINTEGRATE_FUNCTION ImkNormalintegrateNormal
imk_normalintegrate_load (const ImkNormalintegratePlan *plan,
    const ImkNormalintegrateParams *params, const ImkImage *in, uint32_t x,
    uint32_t y)
{
  const uint8_t *row = (const uint8_t *) in->data + y * in->stride;
  ImkNormalintegrateNormal n = {0, 0, 0};
  float v[3], length, scale, view;

  for (int i = 0; i < 3; i++) {
    size_t at = (size_t) x * plan->channels + plan->colours[i];

    v[i] = plan->type == IMK_TYPE_U8 ? ((float) row[at] - 128) / 127
           : plan->type == IMK_TYPE_U16
               ? ((float) ((const uint16_t *) row)[at] - 32768) / 32767
               : ((const float *) row)[at];
  }
  length = sqrtf (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  view = imk_normalintegrate_along_view (plan, params, v, x, y);
  /* not the contrary of it: NaN must fail too; a view from behind does, as no
   * slope is below 0 */
  if (!(v[2] > 0 && length > 1e-6f && length < INFINITY &&
          sqrtf (v[0] * v[0] + v[1] * v[1]) <= params->max_slope * view))
    return n;
  scale = 1 / length;
  n.x = v[0] * scale;
  n.y = v[1] * scale * params->y_sign;
  n.z = view * scale;
  return n;
}

/* The rise from a pixel to the next, along the axis of @a and @b; 0 where one
 * of them has no normal. */
IMK_NORMALINTEGRATE_FUNCTION float
imk_normalintegrate_rise (float a, float a_z, float b, float b_z)
{
  return a_z > 0 && b_z > 0 ? -(a + b) / (a_z + b_z) : 0;
}

/* A cosine transform is a Fourier transform of the even samples followed by the
 * odd ones backwards (Makhoul 1980). Returns: the sample of place @i of @n */
IMK_NORMALINTEGRATE_FUNCTION uint32_t
imk_normalintegrate_sample_at (uint32_t i, uint32_t n)
{
  return i < (n + 1) / 2 ? 2 * i : 2 * (n - i) - 1;
}

/* Returns: the place of sample @x of @n */
IMK_NORMALINTEGRATE_FUNCTION uint32_t
imk_normalintegrate_place_of (uint32_t x, uint32_t n)
{
  return x % 2 ? n - (x + 1) / 2 : x / 2;
}

/* Divides by the eigenvalue of cosine k of @y and l of @x. Returns: @c
 * divided; 0 for the mean, which slopes do not tell */
IMK_NORMALINTEGRATE_FUNCTION float
imk_normalintegrate_divide (float c, float lambda_y, float lambda_x)
{
  float lambda = lambda_y + lambda_x;

  return lambda > 0 ? c / lambda : 0;
}

/* Solves the Poisson equation in the spectrum of samples in that order. The
 * bins @v = V(k, l) and @w = V(-k, l) are the four cosines (k, l), (n - k, l),
 * (k, n - l), (n - k, n - l): with t = exp (-i pi k / 2n), s likewise of l,
 * A = t s V(k, l) and B = t conj (s V(-k, l)), they are
 *   Re (A + B) / 2, -Im (A + B) / 2, Im (B - A) / 2, Re (B - A) / 2.
 * @scale: 1 / (width x height), as transforms there and back do not scale */
IMK_NORMALINTEGRATE_FUNCTION void
imk_normalintegrate_solve_bins (const ImkNormalintegrateAxis *ay,
    const ImkNormalintegrateAxis *ax, uint32_t k, uint32_t l, float scale,
    ImkNormalintegrateComplex *v, ImkNormalintegrateComplex *w)
{
  ImkNormalintegrateComplex t = ay->turn[k], s = ax->turn[l], ts, tc, a, b;
  float half = scale / 2, c00, c10, c01, c11;

  ts.re = t.re * s.re - t.im * s.im;
  ts.im = t.re * s.im + t.im * s.re;
  tc.re = t.re * s.re + t.im * s.im;
  tc.im = t.im * s.re - t.re * s.im;
  a.re = ts.re * v->re - ts.im * v->im;
  a.im = ts.re * v->im + ts.im * v->re;
  b.re = tc.re * w->re + tc.im * w->im;
  b.im = tc.im * w->re - tc.re * w->im;
  c00 = imk_normalintegrate_divide (
      half * (a.re + b.re), ay->lambda[k], ax->lambda[l]);
  c10 = imk_normalintegrate_divide (
      -half * (a.im + b.im), ay->lambda[ay->n - k], ax->lambda[l]);
  c01 = imk_normalintegrate_divide (
      half * (b.im - a.im), ay->lambda[k], ax->lambda[ax->n - l]);
  c11 = imk_normalintegrate_divide (
      half * (b.re - a.re), ay->lambda[ay->n - k], ax->lambda[ax->n - l]);
  a.re = c00 - c11;
  a.im = -(c10 + c01);
  b.re = c00 + c11;
  b.im = c01 - c10;
  /* back: V(k, l) = A conj (t s), V(-k, l) = conj (B) t conj (s) */
  w->re = b.re * tc.re + b.im * tc.im;
  w->im = b.re * tc.im - b.im * tc.re;
  v->re = a.re * ts.re + a.im * ts.im;
  v->im = a.im * ts.re - a.re * ts.im;
}

/* Frankot and Chellappa: the bin of the surface, from those of its slopes. */
IMK_NORMALINTEGRATE_FUNCTION ImkNormalintegrateComplex
imk_normalintegrate_surface_bin (ImkNormalintegrateComplex p,
    ImkNormalintegrateComplex q, float wave_y, float wave_x, float scale)
{
  float square = wave_y * wave_y + wave_x * wave_x;
  float by = square > 0 ? scale / square : 0;
  ImkNormalintegrateComplex z;

  z.re = by * (wave_x * p.im + wave_y * q.im);
  z.im = -by * (wave_x * p.re + wave_y * q.re);
  return z;
}

/* A row or column of A z, where A z = sum of (z - neighbour) over those
 * neighbours that have a normal too, along y times aspect^2. */
IMK_NORMALINTEGRATE_FUNCTION float
imk_normalintegrate_difference (const float *z, const uint8_t *valid, size_t at,
    size_t step, bool has_before, bool has_after)
{
  float sum = 0;

  if (has_before && valid[at - step])
    sum += z[at] - z[at - step];
  if (has_after && valid[at + step])
    sum += z[at] - z[at + step];
  return sum;
}

IMK_NORMALINTEGRATE_FUNCTION float
imk_normalintegrate_apply (const ImkNormalintegratePlan *plan, const float *z,
    const uint8_t *valid, uint32_t x, uint32_t y)
{
  size_t at = (size_t) y * plan->width + x;

  if (!valid[at])
    return 0;
  return imk_normalintegrate_difference (
             z, valid, at, 1, x > 0, x + 1 < plan->width) +
         plan->aspect * plan->aspect *
             imk_normalintegrate_difference (
                 z, valid, at, plan->width, y > 0, y + 1 < plan->height);
}

/* The surface that is taken off at a pixel whose height was @mm. */
IMK_NORMALINTEGRATE_FUNCTION float
imk_normalintegrate_removed (
    const ImkNormalintegrateScale *s, uint32_t x, uint32_t y, float mm)
{
  const float *t = s->terms;
  float u = ((float) x - s->middle_x) * s->scale_x;
  float v = (s->middle_y - (float) y) * s->scale_y, r2;

  /* higher points are nearer, and seen larger */
  if (s->focal > 0) {
    u *= 1 - mm / (s->focal * s->mm);
    v *= 1 - mm / (s->focal * s->mm);
  }
  u -= s->from_u;
  v -= s->from_v;
  r2 = u * u + v * v;
  return t[0] + u * (t[1] + t[3] * u + t[4] * v) + v * (t[2] + t[5] * v) +
         t[6] * r2 * r2;
}

/* With a focal length, z is -focal log (distance), and the distance of the
 * lowest point is focal times mm. Returns: mm */
IMK_NORMALINTEGRATE_FUNCTION float
imk_normalintegrate_height (
    const ImkNormalintegrateScale *s, uint32_t x, uint32_t y, float z)
{
  float above = z - s->lowest, mm = above * s->mm;

  if (!s->is_bent)
    return mm;
  if (s->focal > 0)
    mm = -s->focal * s->mm * expm1f (-above / s->focal);
  return s->is_corrected ? mm - imk_normalintegrate_removed (s, x, y, mm) : mm;
}

IMK_NORMALINTEGRATE_FUNCTION uint16_t
imk_normalintegrate_grey (
    const ImkNormalintegrateScale *s, float mm, bool valid)
{
  float value = 1.5f + (mm - s->datum) * s->per_grey;
  uint32_t grey = !valid ? 0 : value < 65535 ? (uint32_t) value : 65535;

  return (uint16_t) (s->swapped ? grey >> 8 | grey << 8 : grey);
}

IMK_NORMALINTEGRATE_FUNCTION void
imk_normalintegrate_store (ImkNormalintegrateOutputs *out,
    const ImkNormalintegrateScale *s, uint32_t x, uint32_t y, float z,
    bool valid)
{
  const ImkImage *height = &out->height, *grey = &out->grey;
  float mm = imk_normalintegrate_height (s, x, y, z);

  if (height->data) {
    uint8_t *row = (uint8_t *) height->data + y * height->stride;

    ((float *) row)[x] = valid ? mm : NAN;
  }
  if (grey->data) {
    uint8_t *row = (uint8_t *) grey->data + y * grey->stride;

    ((uint16_t *) row)[x] = imk_normalintegrate_grey (s, mm, valid);
  }
}
