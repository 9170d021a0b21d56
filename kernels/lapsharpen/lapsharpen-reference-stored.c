/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Samples that are not stored as they are sharpened: in another order of bytes
 * or bits, or as counts of which linear light is made. */
#include <math.h>
#include <string.h>

#include "core/sample.h"
#include "lapsharpen/lapsharpen-reference.h"

enum { WHITE = 65535 }; /* the largest value of linear light */

static int64_t
largest_count (const ImkLapsharpenConfig *k)
{
  return (1 << k->depth) - 1;
}

/* From counts to light, both in proportion. */
static uint32_t
to_light (const ImkLapsharpenConfig *k, int64_t count)
{
  return (uint32_t) llround ((double) count * WHITE / largest_count (k));
}

/* Both words of a pixel of three samples of 10 bits and one of 2. */
static uint32_t
get_packed (const ImkImage *in, uint32_t x, uint32_t y)
{
  const uint8_t *row = (const uint8_t *) in->data + y * in->stride;
  uint16_t words[2];

  memcpy (words, row + x * sizeof (words), sizeof (words));
  return words[0] | (uint32_t) words[1] << 16;
}

static uint32_t
swap_bytes (uint32_t word)
{
  return word % 256 * 256 + word / 256;
}

/* The fourth sample, 0 to 3, counts as 0, 341, 682 or 1023. */
static int64_t
get_count (const ImkLapsharpenConfig *k, const ImkImage *in, uint32_t x,
    uint32_t y, uint32_t channel)
{
  uint32_t stored;

  if (k->storage == IMK_LAPSHARPEN_STORAGE_PACKED_10)
    return (get_packed (in, x, y) >> 10 * channel) % 1024 *
           (channel == 3 ? 341 : 1);
  stored = (uint32_t) imk_sample_get (in, x, y, channel);
  if (k->storage == IMK_LAPSHARPEN_STORAGE_BIG_ENDIAN)
    stored = swap_bytes (stored);
  return stored >> k->shift;
}

static bool
has_tables (const ImkLapsharpenConfig *k, uint32_t channel)
{
  return k->linear_mask >> channel & 1;
}

/* The tables have no more counts. */
static int64_t
valid_count (const ImkLapsharpenConfig *k, int64_t count)
{
  return count < largest_count (k) ? count : largest_count (k);
}

uint16_t
imk_lapsharpen_reference_unpacked (const ImkLapsharpenConfig *k,
    const ImkImage *in, uint32_t x, uint32_t y, uint32_t channel)
{
  int64_t count = get_count (k, in, x, y, channel);

  if (!k->decode)
    return (uint16_t) count;
  count = valid_count (k, count);
  return has_tables (k, channel) ? k->decode[count]
                                 : (uint16_t) to_light (k, count);
}

/* The new count. A value that sharpening has left alone gives the old count
 * back, of which the tables may know only a neighbour. Edges are differences,
 * which no table is for. */
static uint32_t
get_new_count (
    const ImkLapsharpenConfig *k, int64_t old, uint16_t value, uint32_t channel)
{
  if (!k->decode)
    return value;
  if (!has_tables (k, channel) || k->output == IMK_LAPSHARPEN_OUTPUT_EDGES)
    return (uint32_t) llround ((double) value * largest_count (k) / WHITE);
  old = valid_count (k, old);
  return value == k->decode[old] ? (uint32_t) old : k->encode[value];
}

void
imk_lapsharpen_reference_pack (const ImkLapsharpenConfig *k, const ImkImage *in,
    const ImkImage *sharpened, uint32_t x, uint32_t y, ImkImage *out)
{
  uint32_t packed = 0;
  uint16_t words[2];

  for (uint32_t ch = 0; ch < k->channels; ch++) {
    uint16_t value = (uint16_t) imk_sample_get (sharpened, x, y, ch);
    uint32_t count = get_new_count (k, get_count (k, in, x, y, ch), value, ch);
    uint32_t stored = count << k->shift;

    if (k->storage == IMK_LAPSHARPEN_STORAGE_PACKED_10) {
      packed |= (ch == 3 ? (uint32_t) lround (count / 341.0) : count)
                << 10 * ch;
      continue;
    }
    if (k->storage == IMK_LAPSHARPEN_STORAGE_BIG_ENDIAN)
      stored = swap_bytes (stored);
    imk_sample_put (out, x, y, ch, stored);
  }
  if (k->storage != IMK_LAPSHARPEN_STORAGE_PACKED_10)
    return;
  words[0] = (uint16_t) packed;
  words[1] = (uint16_t) (packed >> 16);
  memcpy ((uint8_t *) out->data + y * out->stride + x * sizeof (words), words,
      sizeof (words));
}

/* All counts of the settings become light, too. The range of a channel with
 * tables is that of its counts, which the table of new counts keeps. */
ImkLapsharpenConfig
imk_lapsharpen_reference_unpacked_config (const ImkLapsharpenConfig *config)
{
  ImkLapsharpenConfig k = *config;

  k.type = IMK_TYPE_U16;
  k.shift = 0;
  k.storage = IMK_LAPSHARPEN_STORAGE_NATIVE;
  k.decode = k.encode = NULL;
  if (!config->decode)
    return k;
  k.depth = 16;
  if (k.threshold_unit == IMK_LAPSHARPEN_UNIT_COUNTS)
    k.threshold =
        k.threshold * (double) WHITE / (double) largest_count (config);
  if (k.border_value <= largest_count (config))
    k.border_value = config->decode[k.border_value];
  k.halo_dark = k.halo_dark < largest_count (config)
                    ? to_light (config, k.halo_dark)
                    : UINT32_MAX;
  k.halo_bright = k.halo_bright < largest_count (config)
                      ? to_light (config, k.halo_bright)
                      : UINT32_MAX;
  for (uint32_t ch = 0; ch < k.channels; ch++) {
    k.range_low[ch] = to_light (config, k.range_low[ch]);
    k.range_high[ch] =
        has_tables (config, ch) ? 0 : to_light (config, k.range_high[ch]);
  }
  return k;
}
