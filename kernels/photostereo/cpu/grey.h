/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From samples to grey values and light vectors: the first part of loops.c,
 * which includes it. */
#pragma once

#include "photostereo/cpu/vector.h"

/* ------------------------------------------------------------------------
 * Largest and clipped samples of a row. */

INLINE void
scan_samples (const Cpu *cpu, uint32_t y, const void *row, const bool wide)
{
  const ImkPhotostereoPlan *p = &cpu->plan;
  const uint8_t *mask = p->mask ? p->mask + (size_t) y * p->width : NULL;
  const uint8_t *bytes = row;
  const uint16_t *words = row;
  Scan *scan = &cpu->scans[y];
  uint16_t largest = 0;
  uint32_t n = 0;

  for (uint32_t x = 0; x < p->width; x++) {
    uint16_t v = wide ? words[x] : bytes[x];

    v = !mask || mask[x] ? v : 0;
    largest = v > largest ? v : largest;
  }
  /* most rows have none */
  for (uint32_t x = 0; largest >= p->saturation && x < p->width; x++)
    n += (wide ? words[x] : bytes[x]) >= p->saturation && (!mask || mask[x]);
  scan->n_clipped += n;
  if (largest > scan->largest)
    scan->largest = largest;
}

/* Called just after the row was stored, while it is in the cache. */
static void
scan_row (const Cpu *cpu, uint32_t y, const uint8_t *row)
{
  if (cpu->plan.type == IMK_TYPE_U16)
    scan_samples (cpu, y, row, true);
  else
    scan_samples (cpu, y, row, false);
}

/* ------------------------------------------------------------------------
 * From samples to grey values. */

INLINE void
decode_samples (const Cpu *cpu, const uint8_t *row, uint32_t x, float *to)
{
  const float unit = cpu->plan.unit, *table = cpu->plan.table;

  if (cpu->plan.type == IMK_TYPE_U8) {
    const uint8_t *s = row + x;

    for (uint32_t i = 0; !table && i < CHUNK; i++)
      to[i] = (float) s[i] * unit;
    for (uint32_t i = 0; table && i < CHUNK; i++)
      to[i] = table[s[i]];
  } else {
    const uint16_t *s = (const uint16_t *) row + x;

    for (uint32_t i = 0; !table && i < CHUNK; i++)
      to[i] = (float) s[i] * unit;
    for (uint32_t i = 0; table && i < CHUNK; i++)
      to[i] = table[s[i]];
  }
}

/* Dark and white frame; they have no padding, so only c->n pixels. */
INLINE void
calibrate (const Chunk *c, uint32_t plane, float *values)
{
  const ImkPhotostereoPlan *p = &c->cpu->plan;
  size_t at = ((size_t) plane * p->height + c->y) * p->width + c->x;

  for (uint32_t i = 0; p->dark && i < c->n; i++) {
    float v = values[i] - p->dark[at + i];

    values[i] = v > 0 ? v : 0;
  }
  for (uint32_t i = 0; p->white && i < c->n; i++)
    values[i] *= p->white[at + i];
}

/* One plane of one picture. */
INLINE void
fill_plane (const Chunk *c, uint32_t light, uint32_t plane, float *restrict to,
    float *restrict ambient)
{
  const Cpu *cpu = c->cpu;
  const float *gain = cpu->lamps[light].gain;
  const uint8_t *site = cpu->plan.site + 2 * (c->y & 1);
  /* a chunk begins at an even pixel */
  float even = gain[cpu->plan.mosaic ? site[0] : plane];
  float odd = gain[cpu->plan.mosaic ? site[1] : plane];
  const uint8_t *row = samples_row (cpu, c->y, light, plane);
  const size_t size = cpu->plan.type == IMK_TYPE_U8 ? 1 : 2;

  /* of the next chunk; rows are too many for the processor to look ahead */
  for (size_t i = 0; i < CHUNK * size; i += CACHE_LINE)
    __builtin_prefetch (row + (c->x + CHUNK) * size + i);
  decode_samples (cpu, row, c->x, to);
  calibrate (c, plane, to);
  for (uint32_t i = 0; (even != 1 || odd != 1) && i < CHUNK; i += 2) {
    to[i] *= even;
    to[i + 1] *= odd;
  }
  for (uint32_t i = 0; c->wants_ambient && i < CHUNK; i++)
    ambient[i] += to[i];
}

/* Excludes the light where a sample of this plane is clipped. Most rows have no
 * clipped sample. */
static void
mark_clipped (const Chunk *c, uint32_t light, uint32_t plane, float *grey)
{
  const ImkPhotostereoPlan *p = &c->cpu->plan;
  const uint8_t *row = samples_row (c->cpu, c->y, light, plane);
  const uint16_t *words = (const uint16_t *) row + c->x;
  const uint32_t level = p->saturation;

  row += c->x;
  if (c->cpu->params.robust == IMK_PHOTOSTEREO_ROBUST_NONE ||
      c->cpu->scans[c->y].n_clipped == 0)
    return;
  if (p->type == IMK_TYPE_U8)
    for (uint32_t i = 0; i < CHUNK; i++)
      grey[i] = row[i] >= level ? IMK_PHOTOSTEREO_CLIPPED : grey[i];
  else
    for (uint32_t i = 0; i < CHUNK; i++)
      grey[i] = words[i] >= level ? IMK_PHOTOSTEREO_CLIPPED : grey[i];
}

/* The grey values of the @i-th picture of the set. */
INLINE void
fill_grey (const Chunk *c, uint32_t i)
{
  const ImkPhotostereoPlan *p = &c->cpu->plan;
  float *grey = c->scratch->grey + (size_t) i * CHUNK;
  float *colours = c->scratch->colours;

  if (p->n_planes == 1) {
    fill_plane (c, c->lights[i], 0, grey, c->scratch->ambient);
    mark_clipped (c, c->lights[i], 0, grey);
    return;
  }
  colours += p->n_planes * (size_t) i * CHUNK;
  memset (grey, 0, CHUNK * sizeof (*grey));
  for (uint32_t k = 0; k < p->n_planes; k++) {
    float *values = colours + k * CHUNK;

    fill_plane (c, c->lights[i], k, values, c->scratch->ambient + k * CHUNK);
    for (uint32_t j = 0; j < CHUNK; j++)
      grey[j] += p->weight[k] * values[j];
  }
  for (uint32_t k = 0; k < p->n_planes; k++)
    mark_clipped (c, c->lights[i], k, grey);
}

/* What a room light of 1 in all planes adds to the grey values of a picture. */
static void
fill_units (const Chunk *c, uint32_t i)
{
  const ImkPhotostereoPlan *p = &c->cpu->plan;
  const float *gain = c->cpu->lamps[c->lights[i]].gain;
  const uint8_t *site = p->site + 2 * (c->y & 1);
  float *units = c->scratch->units + (size_t) i * CHUNK;
  float sum = 0;

  for (uint32_t k = 0; k < p->n_planes; k++)
    sum += p->n_planes > 1 ? p->weight[k] * gain[k] : gain[k];
  for (uint32_t j = 0; j < CHUNK; j++)
    units[j] = p->mosaic ? gain[site[j & 1]] : sum;
}

/* The factor k in L = k v of one light, for the pixels of a chunk. */
static void
fill_factors (const Chunk *c, const ImkPhotostereoLamp *lamp, float *to)
{
  const ImkPhotostereoPlan *p = &c->cpu->plan;
  const float *x = c->scratch->pixel_x, *y = c->scratch->pixel_y;
  const float *z = c->scratch->pixel_z;
  const bool is_square = p->model == IMK_PHOTOSTEREO_MODEL_INVERSE_SQUARE;

  if (is_square || p->model == IMK_PHOTOSTEREO_MODEL_UNIT)
    for (uint32_t i = 0; i < CHUNK; i++) {
      float vx = lamp->x - x[i], vy = lamp->y - y[i];
      float vz = lamp->z - z[i];
      float r2 = vx * vx + (vy * vy + vz * vz);

      to[i] = lamp->scale / (is_square ? r2 * sqrtf (r2) : sqrtf (r2));
    }
  else
    for (uint32_t i = 0; i < CHUNK; i++)
      to[i] = lamp->scale;
  for (uint32_t i = 0; p->led_lobe > 0 && i < CHUNK; i++)
    to[i] *= imk_photostereo_lobe (
        lamp, lamp->x - x[i], lamp->y - y[i], lamp->z - z[i], p->led_lobe);
}

/* The vectors of the lights, where they do not depend on the pixel: those of
 * the first one. */
static void
fill_beams (const Chunk *c)
{
  float factors[CHUNK];
  Products all = {0};

  for (uint32_t i = 0; i < c->n_lights; i++) {
    const ImkPhotostereoLamp *lamp = &c->cpu->lamps[c->lights[i]];
    Beam *b = &c->scratch->beams[i];

    fill_factors (c, lamp, factors);
    b->x = factors[0] * lamp->x;
    b->y = factors[0] * lamp->y;
    b->z = factors[0] * lamp->z;
    all.xx += b->x * b->x;
    all.xy += b->x * b->y;
    all.xz += b->x * b->z;
    all.yy += b->y * b->y;
    all.yz += b->y * b->z;
    all.zz += b->z * b->z;
  }
  c->scratch->all = all;
}
