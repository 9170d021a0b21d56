/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is done pixel by pixel: the lobe of a lamp, and the way from a solution
 * to samples. Compiled by both backends. */
#pragma once

#include <math.h>

#include "photostereo/photostereo-backend.h"

#ifdef __CUDACC__
#define IMK_PHOTOSTEREO_FUNCTION static __host__ __device__ __forceinline__
#else
#define IMK_PHOTOSTEREO_FUNCTION static inline
#endif

/* What stands for the grey value of a light with a clipped sample: more than
 * any t_max lets pass, and its square is a number. */
#define IMK_PHOTOSTEREO_CLIPPED 1e18f

/* max (0, d.(-v) / |v|)^@exponent. */
IMK_PHOTOSTEREO_FUNCTION float
imk_photostereo_lobe (const ImkPhotostereoLamp *lamp, float vx, float vy,
    float vz, float exponent)
{
  float along = -(lamp->axis[0] * vx + lamp->axis[1] * vy + lamp->axis[2] * vz);
  float cosine = along / sqrtf (vx * vx + vy * vy + vz * vz);

  return !(cosine > 0) ? 0 : exponent == 1 ? cosine : powf (cosine, exponent);
}

/* @value times @maximum, rounded, no more than @maximum. */
IMK_PHOTOSTEREO_FUNCTION uint32_t
imk_photostereo_quantise (float value, float maximum)
{
  float scaled = value * maximum + 0.5f;

  return scaled >= maximum ? (uint32_t) maximum
         : scaled > 0      ? (uint32_t) scaled
                           : 0;
}

IMK_PHOTOSTEREO_FUNCTION void
imk_photostereo_store_normal (
    const ImkImage *out, uint32_t x, uint32_t y, const float n[3], bool y_down)
{
  uint8_t *row = (uint8_t *) out->data + y * out->stride;
  bool valid = n[0] != 0 || n[1] != 0 || n[2] != 0;
  float v[] = {n[0], y_down ? -n[1] : n[1], n[2]};

  for (int i = 0; i < 3; i++)
    if (out->type == IMK_TYPE_F32)
      ((float *) row)[3 * (size_t) x + i] = valid ? v[i] : 0;
    else if (out->type == IMK_TYPE_U8)
      row[3 * (size_t) x + i] = valid ? (uint8_t) (128.5f + 127 * v[i]) : 0;
    else
      ((uint16_t *) row)[4 * (size_t) x + i] =
          valid ? (uint16_t) (32768.5f + 32767 * v[i]) : 0;
  if (out->type == IMK_TYPE_U16)
    ((uint16_t *) row)[4 * (size_t) x + 3] = valid ? 65535 : 0;
}

IMK_PHOTOSTEREO_FUNCTION void
imk_photostereo_store_quality (
    const ImkImage *out, uint32_t x, uint32_t y, const float q[4])
{
  uint8_t *row = (uint8_t *) out->data + y * out->stride;
  uint16_t *u16 = (uint16_t *) row + 4 * (size_t) x;
  float *f32 = (float *) row + 4 * (size_t) x;

  if (out->type == IMK_TYPE_F32) {
    for (int i = 0; i < 4; i++)
      f32[i] = q[i];
    return;
  }
  u16[0] = (uint16_t) q[IMK_PHOTOSTEREO_LIGHTS];
  u16[1] = (uint16_t) q[IMK_PHOTOSTEREO_ROUNDS];
  for (int i = 2; i < 4; i++)
    u16[i] = (uint16_t) imk_photostereo_quantise (q[i], 65535);
}

/* @values: @n, of bands one below the other, of as many rows each. */
IMK_PHOTOSTEREO_FUNCTION void
imk_photostereo_store_bands (const ImkImage *out, uint32_t x, uint32_t y,
    const float *values, uint32_t n)
{
  uint32_t height = out->height / n;

  for (uint32_t i = 0; i < n; i++) {
    uint8_t *row = (uint8_t *) out->data + (i * height + y) * out->stride;

    if (out->type == IMK_TYPE_U8)
      row[x] = (uint8_t) imk_photostereo_quantise (values[i], 255);
    else
      ((uint16_t *) row)[x] =
          (uint16_t) imk_photostereo_quantise (values[i], 65535);
  }
}

/* @values: @n_values: one, or red, green, blue, or of bands. */
IMK_PHOTOSTEREO_FUNCTION void
imk_photostereo_store_colours (const ImkImage *out, uint32_t x, uint32_t y,
    const float *values, uint32_t n_values)
{
  uint8_t *row = (uint8_t *) out->data + y * out->stride;
  uint32_t n = out->channels;

  if (n_values > n) {
    imk_photostereo_store_bands (out, x, y, values, n_values);
    return;
  }

  for (uint32_t i = 0; i < n; i++)
    if (out->type == IMK_TYPE_F32)
      ((float *) row)[n * (size_t) x + i] = values[i];
    else if (out->type == IMK_TYPE_U8)
      row[n * (size_t) x + i] =
          (uint8_t) imk_photostereo_quantise (values[i], 255);
    else
      ((uint16_t *) row)[n * (size_t) x + i] =
          i == 3 ? 65535
                 : (uint16_t) imk_photostereo_quantise (values[i], 65535);
}

/* See ImkPhotostereoOutputs. @length: |n'|; @constant: it was solved, too. No
 * product meets a sum, so that no compiler fuses them: equal qualities have
 * equal confidences on all backends. */
IMK_PHOTOSTEREO_FUNCTION float
imk_photostereo_confidence (const float q[4], float length, bool constant)
{
  float spare = q[IMK_PHOTOSTEREO_LIGHTS] - (constant ? 4 : 3);
  float firm = length * sqrtf (spare * q[IMK_PHOTOSTEREO_CONDITION]);
  float degrees = 57.2957795f * q[IMK_PHOTOSTEREO_RESIDUAL] / firm;

  return spare > 0 && firm > 0 ? 1 / (1 + degrees) : 0;
}

/* What is made of the quality of a pixel. */
IMK_PHOTOSTEREO_FUNCTION void
imk_photostereo_store_trust (const ImkPhotostereoOutputs *out, uint32_t x,
    uint32_t y, const float q[4], float length, bool constant)
{
  float confidence = imk_photostereo_confidence (q, length, constant);
  float mask = q[IMK_PHOTOSTEREO_LIGHTS] > 0;

  if (out->quality.data)
    imk_photostereo_store_quality (&out->quality, x, y, q);
  if (out->confidence.data)
    imk_photostereo_store_colours (&out->confidence, x, y, &confidence, 1);
  if (out->mask.data)
    imk_photostereo_store_colours (&out->mask, x, y, &mask, 1);
}

/* Bilinear interpolation of a mosaic: the pixel itself where it is a site of
 * @colour, else the mean of such sites among its 8 neighbours, 0 without any.
 * @plane: [height][width]; with @skip_zero sites of value 0 do not count. */
IMK_PHOTOSTEREO_FUNCTION float
imk_photostereo_colour_at (const float *plane, uint32_t width, uint32_t height,
    const uint8_t site[4], uint32_t x, uint32_t y, uint32_t colour,
    bool skip_zero)
{
  float sum = 0;
  int n = 0;

  if (site[2 * (y & 1) + (x & 1)] == colour)
    return plane[(size_t) y * width + x];
  for (uint32_t v = y ? y - 1 : 0; v <= y + 1 && v < height; v++)
    for (uint32_t u = x ? x - 1 : 0; u <= x + 1 && u < width; u++) {
      float value = plane[(size_t) v * width + u];

      if (site[2 * (v & 1) + (u & 1)] == colour && (!skip_zero || value != 0)) {
        sum += value;
        n++;
      }
    }
  return n ? sum / (float) n : 0;
}

/* In degrees; arccos of the product would lose half of the digits. */
IMK_PHOTOSTEREO_FUNCTION double
imk_photostereo_angle (const float a[3], const float b[3])
{
  double x = (double) a[1] * b[2] - (double) a[2] * b[1];
  double y = (double) a[2] * b[0] - (double) a[0] * b[2];
  double z = (double) a[0] * b[1] - (double) a[1] * b[0];
  double dot =
      (double) a[0] * b[0] + (double) a[1] * b[1] + (double) a[2] * b[2];

  return atan2 (sqrt (x * x + y * y + z * z), dot) * 57.295779513082323;
}
