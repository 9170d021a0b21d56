/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of calibrated pixels. */
#pragma once

#include <math.h>

#include "shcentroid/cpu/state.h"

/* Samples as they came. */
static void
load_samples (
    const Frame *f, uint32_t x, uint32_t y, uint32_t n, float *restrict sample)
{
  const uint8_t *row = (const uint8_t *) f->in->data + y * f->in->stride;
  const uint8_t *bytes = row + x;
  const uint16_t *words = (const uint16_t *) row + x;
  const float *floats = (const float *) row + x;

  if (f->in->type == IMK_TYPE_U8)
    for (uint32_t i = 0; i < n; i++)
      sample[i] = bytes[i];
  else if (f->in->type == IMK_TYPE_U16)
    for (uint32_t i = 0; i < n; i++)
      sample[i] = words[i];
  else
    for (uint32_t i = 0; i < n; i++)
      sample[i] = imk_shcentroid_sample (floats[i]);
}

INLINE float
calibrate_one (float sample, float dark, float flat)
{
  return imk_shcentroid_calibrate (sample, (ImkShcentroidPixel){dark, flat});
}

/* load_samples (), less the dark, times the flat. */
static void
load_calibrated (const Frame *f, uint32_t x, uint32_t y, uint32_t n,
    const float *restrict dark, const float *restrict flat,
    float *restrict value)
{
  const uint8_t *row = (const uint8_t *) f->in->data + y * f->in->stride;
  const uint8_t *restrict bytes = row + x;
  const uint16_t *restrict words = (const uint16_t *) row + x;
  const float *restrict floats = (const float *) row + x;

  if (f->in->type == IMK_TYPE_U8)
    for (uint32_t i = 0; i < n; i++)
      value[i] = calibrate_one (bytes[i], dark[i], flat[i]);
  else if (f->in->type == IMK_TYPE_U16)
    for (uint32_t i = 0; i < n; i++)
      value[i] = calibrate_one (words[i], dark[i], flat[i]);
  else
    for (uint32_t i = 0; i < n; i++)
      value[i] =
          calibrate_one (imk_shcentroid_sample (floats[i]), dark[i], flat[i]);
}

/* What the look-up table has for samples. */
static void
look_up_samples (
    const Frame *f, uint32_t x, uint32_t y, uint32_t n, float *restrict value)
{
  const uint8_t *row = (const uint8_t *) f->in->data + y * f->in->stride;
  const uint8_t *restrict bytes = row + x;
  const uint16_t *restrict words = (const uint16_t *) row + x;
  const float *restrict lut = f->cpu->lut;

  if (f->in->type == IMK_TYPE_U8)
    for (uint32_t i = 0; i < n; i++)
      value[i] = lut[bytes[i]];
  else
    for (uint32_t i = 0; i < n; i++)
      value[i] = lut[words[i]];
}

static void
load_listed (const Frame *f, uint32_t x, uint32_t y, uint32_t n,
    const float *restrict dark, const float *restrict flat,
    float *restrict value)
{
  look_up_samples (f, x, y, n, value);
  for (uint32_t i = 0; dark && i < n; i++)
    value[i] = calibrate_one (value[i], dark[i], flat[i]);
}

/* Columns [@x, @x + @n) of row @y of the frame, calibrated. */
static void
load_columns (const Frame *f, uint32_t x, uint32_t y, uint32_t n, float *value)
{
  const Cpu *cpu = f->cpu;
  size_t at = (size_t) y * cpu->plan.width + x;
  const float *dark = cpu->dark ? cpu->dark + at : NULL;
  const float *flat = cpu->dark ? cpu->flat + at : NULL;

  if (cpu->lut)
    load_listed (f, x, y, n, dark, flat, value);
  else if (dark)
    load_calibrated (f, x, y, n, dark, flat, value);
  else
    load_samples (f, x, y, n, value);
}

/* Returns: @n columns from column @x of the frame on, and what there is beyond
 * them in whole vectors: to load that, too, is faster than to stop */
INLINE uint32_t
whole_columns (const Frame *f, uint32_t x, uint32_t n)
{
  uint32_t left = f->cpu->plan.width - x, whole = (n + 63) / 64 * 64;

  return whole < left ? whole : left;
}

/* load_columns () of them. To correlation, what is not finite is as a bad
 * pixel. */
static inline void
load_row (const Frame *f, uint32_t x, uint32_t y, uint32_t n, float *value)
{
  n = whole_columns (f, x, n);
  load_columns (f, x, y, n, value);
  if (f->in->type == IMK_TYPE_F32 &&
      f->cpu->params.estimator == IMK_SHCENTROID_ESTIMATOR_CORRELATION)
    for (uint32_t i = 0; i < n; i++)
      value[i] = value[i] <= 3e38f ? value[i] : NAN;
}
