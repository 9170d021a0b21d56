/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The formula of relight.h for some pixels of a row at a time, in loops that
 * compilers vectorise. IMK_ISA_TABLE is the name of the table. */
#include "relight/cpu/loops.h"

#include <math.h>
#include <string.h>

#include "relight/cpu/power.h"

#define INLINE static inline __attribute__ ((always_inline))

enum { CHUNK = 64 /* pixels */ };

/* One array for each channel. */
typedef float Channels[3][CHUNK];

/* Samples as they are stored, from pixel @x of row @y on. */
INLINE void
read_as (const ImkRelightSource *s, uint32_t x, uint32_t y, uint32_t n,
    ImkType type, Channels to)
{
  const uint8_t *row = (const uint8_t *) s->image.data + y * s->image.stride;
  const size_t step = s->image.channels;

  for (uint32_t k = 0; k < 3; k++) {
    size_t at = x * step + s->colours[k];

    for (uint32_t i = 0; i < n; i++, at += step)
      to[k][i] = type == IMK_TYPE_U8    ? row[at]
                 : type == IMK_TYPE_U16 ? ((const uint16_t *) row)[at]
                                        : ((const float *) row)[at];
  }
}

static void
read_samples (
    const ImkRelightSource *s, uint32_t x, uint32_t y, uint32_t n, Channels to)
{
  switch (s->image.type) {
  case IMK_TYPE_U8:
    read_as (s, x, y, n, IMK_TYPE_U8, to);
    break;
  case IMK_TYPE_U16:
    read_as (s, x, y, n, IMK_TYPE_U16, to);
    break;
  default:
    read_as (s, x, y, n, IMK_TYPE_F32, to);
  }
}

/* @n: what is stored, then unit vectors; @there: 1 where there is one, or 0 */
static void
make_unit (ImkType type, Channels n, float there[CHUNK])
{
  const float zero = type == IMK_TYPE_U8    ? 128
                     : type == IMK_TYPE_U16 ? 32768
                                            : 0;

  for (uint32_t i = 0; i < CHUNK; i++) {
    bool any = (n[0][i] != 0) | (n[1][i] != 0) | (n[2][i] != 0);
    float x = n[0][i] - zero, y = n[1][i] - zero, z = n[2][i] - zero;
    float length = sqrtf (x * x + y * y + z * z);
    bool valid = any & (length > 1e-6f) & (length < INFINITY); /* NaN is not */
    float by = valid ? 1 / length : 0;

    n[0][i] = valid ? x * by : 0;
    n[1][i] = valid ? y * by : 0;
    n[2][i] = valid ? z * by : 0;
    there[i] = valid;
  }
}

static void
multiply (const Channels n, const float by[3], float out[CHUNK])
{
  for (uint32_t i = 0; i < CHUNK; i++)
    out[i] = n[0][i] * by[0] + n[1][i] * by[1] + n[2][i] * by[2];
}

/* @matte: what the albedo is multiplied by; @gloss: what is added */
static void
find_light (const ImkRelightParams *p, const Channels n, float matte[CHUNK],
    float gloss[CHUNK])
{
  float facing[CHUNK], strength[CHUNK];

  multiply (n, p->light, facing);
  for (uint32_t i = 0; i < CHUNK; i++)
    matte[i] = p->ambient + p->diffuse * (facing[i] > 0 ? facing[i] : 0);
  memset (gloss, 0, CHUNK * sizeof (*gloss));
  if (!(p->specular > 0))
    return;
  multiply (n, p->halfway, gloss);
  for (uint32_t i = 0; i < CHUNK; i++)
    strength[i] = ((facing[i] > 0) & (gloss[i] > 0)) ? p->specular : 0;
  raise_to_power (gloss, CHUNK, p->shininess);
  for (uint32_t i = 0; i < CHUNK; i++)
    gloss[i] *= strength[i];
}

/* @a: what is stored, then 0 to 1 and above */
static void
scale_albedo (ImkType type, Channels a)
{
  const float by = type == IMK_TYPE_U8    ? 1.0f / 255
                   : type == IMK_TYPE_U16 ? 1.0f / 65535
                                          : 1;

  for (uint32_t k = 0; k < 3; k++)
    for (uint32_t i = 0; i < CHUNK; i++) {
      float v = a[k][i] * by;

      a[k][i] = ((v > 0) & (v < INFINITY)) ? v : 0; /* so is NaN */
    }
}

static void
light_chunk (const Job *job, uint32_t x, uint32_t y, uint32_t n)
{
  const ImkRelightParams *p = job->params;
  const bool white = !job->albedo.image.data;
  const uint32_t n_channels =
      white || job->albedo.image.channels == 1 ? 1 : 3; /* that differ */
  uint8_t *to =
      (uint8_t *) job->out->data + y * job->out->stride + 3 * (size_t) x;
  Channels normals = {{0}}, v = {{0}};
  float there[CHUNK], matte[CHUNK], gloss[CHUNK];

  read_samples (&job->normals, x, y, n, normals);
  make_unit (job->normals.image.type, normals, there);
  find_light (p, normals, matte, gloss);
  if (!white) {
    read_samples (&job->albedo, x, y, n, v);
    scale_albedo (job->albedo.image.type, v);
  }
  for (uint32_t k = 0; k < n_channels; k++) {
    for (uint32_t i = 0; i < CHUNK; i++) {
      float value = (white ? 1 : v[k][i]) * matte[i] + gloss[i];

      v[k][i] = there[i] * (value < 1 ? value : 1);
    }
    if (p->power != 1)
      raise_to_power (v[k], CHUNK, p->power);
  }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < 3; k++)
      to[3 * i + k] = (uint8_t) (255 * v[n_channels == 3 ? k : 0][i] + 0.5f);
}

static void
light_rows (void *data, uint32_t first, uint32_t end)
{
  const Job *job = data;
  const uint32_t width = job->out->width;

  for (uint32_t y = first; y < end; y++)
    for (uint32_t x = 0; x < width; x += CHUNK)
      light_chunk (job, x, y, width - x < CHUNK ? width - x : CHUNK);
}

const ImkRelightLoops IMK_ISA_TABLE = {.light_rows = light_rows};
