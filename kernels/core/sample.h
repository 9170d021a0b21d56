/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One number of an image in host memory, of any type: for references and
 * tests, which need not be fast. */
#pragma once

#include <math.h>

#include "imk/image.h"

/* Returns: number @i of pixel (@x, @y). A channel has one, a complex channel
 * two */
static inline void *
imk_sample_at (const ImkImage *image, uint32_t x, uint32_t y, uint32_t i)
{
  ImkType type = image->type;
  size_t parts = type == IMK_TYPE_CI16 || type == IMK_TYPE_CF32 ? 2 : 1;
  size_t at = (size_t) x * image->channels * parts + i;

  return (uint8_t *) image->data + y * image->stride +
         at * (imk_type_size (type) / parts);
}

static inline double
imk_sample_get (const ImkImage *image, uint32_t x, uint32_t y, uint32_t i)
{
  const void *at = imk_sample_at (image, x, y, i);

  switch (image->type) {
  case IMK_TYPE_U8:
    return *(const uint8_t *) at;
  case IMK_TYPE_U16:
    return *(const uint16_t *) at;
  case IMK_TYPE_I16:
  case IMK_TYPE_CI16:
    return *(const int16_t *) at;
  case IMK_TYPE_F64:
    return *(const double *) at;
  default:
    return *(const float *) at;
  }
}

/* Of u8 or u16, for loops over pictures. */
static inline uint32_t
imk_sample_get_uint (
    const ImkImage *image, uint32_t x, uint32_t y, uint32_t channel)
{
  const uint8_t *row = (const uint8_t *) image->data + y * image->stride;
  size_t at = (size_t) x * image->channels + channel;

  return image->type == IMK_TYPE_U8 ? row[at] : ((const uint16_t *) row)[at];
}

/* Rounds to the type. */
static inline void
imk_sample_put (
    const ImkImage *image, uint32_t x, uint32_t y, uint32_t i, double value)
{
  void *at = imk_sample_at (image, x, y, i);

  switch (image->type) {
  case IMK_TYPE_U8:
    *(uint8_t *) at = (uint8_t) lrint (value);
    break;
  case IMK_TYPE_U16:
    *(uint16_t *) at = (uint16_t) lrint (value);
    break;
  case IMK_TYPE_I16:
  case IMK_TYPE_CI16:
    *(int16_t *) at = (int16_t) lrint (value);
    break;
  case IMK_TYPE_F64:
    *(double *) at = value;
    break;
  default:
    *(float *) at = (float) value;
  }
}
