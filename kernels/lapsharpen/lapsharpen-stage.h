/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames whose samples are not stored as they are sharpened: in another order
 * of bytes or bits, or to be sharpened in linear light. Both backends unpack
 * them to u16, sharpen these, and pack the outcome, with the functions here. */
#pragma once

#include "lapsharpen/lapsharpen-backend.h"

#ifdef __CUDACC__
#define IMK_HOST_DEVICE __host__ __device__
#else
#define IMK_HOST_DEVICE
#endif

enum { IMK_LAPSHARPEN_WHITE = 65535 }; /* the largest value of linear light */

typedef struct ImkLapsharpenStage {
  ImkType type;
  ImkLapsharpenStorage storage;
  uint32_t channels, shift;
  uint32_t maximum;  /* the largest count */
  uint32_t linear;   /* bit c: channel c has the tables */
  bool light, edges; /* u16 are in linear light, else counts */
  const uint16_t *decode, *encode;
} ImkLapsharpenStage;

/* @decode, @encode: the tables where the backend has them, or NULL */
static inline ImkLapsharpenStage
imk_lapsharpen_stage (const ImkLapsharpenConfig *c, const uint16_t *decode,
    const uint16_t *encode)
{
  ImkLapsharpenStage stage = {};

  stage.type = c->type;
  stage.storage = c->storage;
  stage.channels = c->channels;
  stage.shift = c->shift;
  stage.maximum = c->type == IMK_TYPE_F32 ? 0 : (1u << c->depth) - 1;
  stage.linear = c->linear_mask;
  stage.light = decode != NULL;
  stage.edges = c->output == IMK_LAPSHARPEN_OUTPUT_EDGES;
  stage.decode = decode;
  stage.encode = encode;
  return stage;
}

static inline bool
imk_lapsharpen_is_staged (const ImkLapsharpenConfig *c)
{
  return c->decode || c->storage != IMK_LAPSHARPEN_STORAGE_NATIVE;
}

/* Returns: a count as a value of linear light, without a table */
IMK_HOST_DEVICE static inline uint32_t
imk_lapsharpen_scale (uint32_t count, uint32_t maximum)
{
  return (count * IMK_LAPSHARPEN_WHITE + maximum / 2) / maximum;
}

/* Returns: what to do with the unpacked u16. @decode: where the CPU can read it
 */
static inline ImkLapsharpenConfig
imk_lapsharpen_inner (const ImkLapsharpenConfig *config,
    const ImkLapsharpenStage *stage, const uint16_t *decode)
{
  ImkLapsharpenConfig c = *config;
  const uint32_t maximum = stage->maximum, border = c.border_value;

  c.type = IMK_TYPE_U16;
  c.shift = 0;
  c.storage = IMK_LAPSHARPEN_STORAGE_NATIVE;
  c.decode = c.encode = NULL;
  if (!stage->light)
    return c;
  c.depth = 16;
  if (c.threshold_unit == IMK_LAPSHARPEN_UNIT_COUNTS)
    c.threshold = c.threshold * (double) IMK_LAPSHARPEN_WHITE / maximum;
  if (border <= maximum)
    c.border_value = decode[border];
  if (c.halo_bright < maximum)
    c.halo_bright = imk_lapsharpen_scale (c.halo_bright, maximum);
  else
    c.halo_bright = UINT32_MAX;
  if (c.halo_dark < maximum)
    c.halo_dark = imk_lapsharpen_scale (c.halo_dark, maximum);
  else
    c.halo_dark = UINT32_MAX;
  for (uint32_t i = 0; i < c.channels; i++) {
    /* @encode keeps the range of a channel that it is for */
    c.range_low[i] = imk_lapsharpen_scale (c.range_low[i], maximum);
    c.range_high[i] = stage->linear >> i & 1
                          ? 0
                          : imk_lapsharpen_scale (c.range_high[i], maximum);
  }
  return c;
}

/* Returns: the count of a sample */
IMK_HOST_DEVICE static inline uint32_t
imk_lapsharpen_get_count (
    const ImkLapsharpenStage *s, const void *row, uint32_t x, uint32_t channel)
{
  const uint32_t i = x * s->channels + channel;
  const uint16_t *words = (const uint16_t *) row;
  uint32_t v;

  if (s->storage == IMK_LAPSHARPEN_STORAGE_PACKED_10) {
    const uint32_t pixel = words[2 * x] | (uint32_t) words[2 * x + 1] << 16;

    return channel < 3 ? pixel >> 10 * channel & 1023 : (pixel >> 30) * 341;
  }
  v = s->type == IMK_TYPE_U8 ? ((const uint8_t *) row)[i] : words[i];
  if (s->storage == IMK_LAPSHARPEN_STORAGE_BIG_ENDIAN)
    v = (v << 8 & 0xff00) | v >> 8;
  return v >> s->shift;
}

/* Returns: a count that there are tables for */
IMK_HOST_DEVICE static inline uint32_t
imk_lapsharpen_valid (const ImkLapsharpenStage *s, uint32_t count)
{
  return count < s->maximum ? count : s->maximum;
}

/* Returns: the u16 that stands for a count */
IMK_HOST_DEVICE static inline uint32_t
imk_lapsharpen_unpack (
    const ImkLapsharpenStage *s, uint32_t count, uint32_t channel)
{
  if (!s->light)
    return count;
  count = imk_lapsharpen_valid (s, count);
  return s->linear >> channel & 1 ? s->decode[count]
                                  : imk_lapsharpen_scale (count, s->maximum);
}

/* Returns: the new count of a sample that was @count, of which sharpening has
 * made @value */
IMK_HOST_DEVICE static inline uint32_t
imk_lapsharpen_pack (const ImkLapsharpenStage *s, uint32_t count,
    uint32_t value, uint32_t channel)
{
  if (!s->light)
    return value;
  count = imk_lapsharpen_valid (s, count);
  if (s->linear >> channel & 1 && !s->edges)
    return value == s->decode[count] ? count : s->encode[value];
  return (value * s->maximum + IMK_LAPSHARPEN_WHITE / 2) / IMK_LAPSHARPEN_WHITE;
}

IMK_HOST_DEVICE static inline void
imk_lapsharpen_unpack_pixel (
    const ImkLapsharpenStage *s, const void *row, uint32_t x, uint16_t *to)
{
  for (uint32_t c = 0; c < s->channels; c++)
    to[x * s->channels + c] = (uint16_t) imk_lapsharpen_unpack (
        s, imk_lapsharpen_get_count (s, row, x, c), c);
}

/* @in: the row that was unpacked; @sharpened: what became of it */
IMK_HOST_DEVICE static inline void
imk_lapsharpen_pack_pixel (const ImkLapsharpenStage *s, const void *in,
    const uint16_t *sharpened, uint32_t x, void *out)
{
  uint16_t *words = (uint16_t *) out;
  uint32_t pixel = 0;

  for (uint32_t c = 0; c < s->channels; c++) {
    const uint32_t i = x * s->channels + c;
    uint32_t v = imk_lapsharpen_pack (
        s, imk_lapsharpen_get_count (s, in, x, c), sharpened[i], c);

    if (s->storage == IMK_LAPSHARPEN_STORAGE_PACKED_10) {
      pixel |= (c < 3 ? v : (v * 3 + 511) / 1023) << 10 * c;
      continue;
    }
    v <<= s->shift;
    if (s->storage == IMK_LAPSHARPEN_STORAGE_BIG_ENDIAN)
      v = (v << 8 & 0xff00) | v >> 8;
    if (s->type == IMK_TYPE_U8)
      ((uint8_t *) out)[i] = (uint8_t) v;
    else
      words[i] = (uint16_t) v;
  }
  if (s->storage == IMK_LAPSHARPEN_STORAGE_PACKED_10) {
    words[2 * x] = (uint16_t) pixel;
    words[2 * x + 1] = (uint16_t) (pixel >> 16);
  }
}
