/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One pixel on CUDA; on the CPU cpu/loops.c has the same for some at a time. */
#pragma once

#include <math.h>

#include "relight/relight-backend.h"

#ifdef __CUDACC__
#define IMK_RELIGHT_FUNCTION static __host__ __device__ __forceinline__
#else
#define IMK_RELIGHT_FUNCTION static inline
#endif

IMK_RELIGHT_FUNCTION ImkRelightSource
imk_relight_source (const ImkImage *image, const uint32_t colours[3])
{
  ImkRelightSource s = {*image, {colours[0], colours[1], colours[2]}};

  return s;
}

/* Channel @colour of a pixel as it is stored. */
IMK_RELIGHT_FUNCTION float
imk_relight_sample (
    const ImkRelightSource *s, uint32_t x, uint32_t y, uint32_t colour)
{
  const uint8_t *row = (const uint8_t *) s->image.data + y * s->image.stride;
  size_t at = (size_t) x * s->image.channels + s->colours[colour];

  return s->image.type == IMK_TYPE_U8    ? row[at]
         : s->image.type == IMK_TYPE_U16 ? ((const uint16_t *) row)[at]
                                         : ((const float *) row)[at];
}

/* Returns: false when there is no normal, else @n of length 1 */
IMK_RELIGHT_FUNCTION bool
imk_relight_normal (
    const ImkRelightSource *s, uint32_t x, uint32_t y, float n[3])
{
  float zero = s->image.type == IMK_TYPE_U8    ? 128
               : s->image.type == IMK_TYPE_U16 ? 32768
                                               : 0;
  float length, largest = 0;

  for (uint32_t i = 0; i < 3; i++) {
    n[i] = imk_relight_sample (s, x, y, i);
    largest = fmaxf (largest, fabsf (n[i]));
    n[i] -= zero;
  }
  length = sqrtf (n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
  /* not the contrary of it: NaN must fail too */
  if (!(largest > 0 && length > 1e-6f && length < INFINITY))
    return false;
  for (int i = 0; i < 3; i++)
    n[i] /= length;
  return true;
}

IMK_RELIGHT_FUNCTION float
imk_relight_albedo (
    const ImkRelightSource *s, uint32_t x, uint32_t y, uint32_t colour)
{
  float v;

  if (!s->image.data)
    return 1;
  v = imk_relight_sample (s, x, y, colour);
  v *= s->image.type == IMK_TYPE_U8    ? 1.0f / 255
       : s->image.type == IMK_TYPE_U16 ? 1.0f / 65535
                                       : 1;
  return v > 0 && v < INFINITY ? v : 0; /* so is NaN */
}

/* Returns: false when there is no normal, else @v before the power */
IMK_RELIGHT_FUNCTION bool
imk_relight_values (const ImkRelightParams *p, const ImkRelightSource *normals,
    const ImkRelightSource *albedo, uint32_t x, uint32_t y, float v[3])
{
  float n[3], facing, matte, gloss = 0;

  if (!imk_relight_normal (normals, x, y, n))
    return false;
  facing = n[0] * p->light[0] + n[1] * p->light[1] + n[2] * p->light[2];
  matte = p->ambient + p->diffuse * (facing > 0 ? facing : 0);
  if (p->specular > 0 && facing > 0) {
    float half =
        n[0] * p->halfway[0] + n[1] * p->halfway[1] + n[2] * p->halfway[2];

    gloss = half > 0 ? p->specular * powf (half, p->shininess) : 0;
  }
  for (uint32_t i = 0; i < 3; i++)
    v[i] = imk_relight_albedo (albedo, x, y, i) * matte + gloss;
  return true;
}
