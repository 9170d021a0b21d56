/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Dark, flat and the look-up table as the CPU keeps them. */
#include "shcentroid/cpu/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool
copy_tables (Cpu *cpu, const ImkShcentroidPlan *plan)
{
  size_t n = (size_t) plan->width * plan->height;
  size_t n_samples = plan->type == IMK_TYPE_U8 ? 256 : 65536;

  if (plan->lut) {
    cpu->lut = malloc (n_samples * sizeof (*cpu->lut));
    if (!cpu->lut)
      return false;
    memcpy (cpu->lut, plan->lut, n_samples * sizeof (*cpu->lut));
  }
  if (plan->pixels) {
    /* and what a vector at the last pixel reaches beyond it */
    cpu->dark = calloc (n + CHAIN_TILE, sizeof (*cpu->dark));
    cpu->flat = calloc (n + CHAIN_TILE, sizeof (*cpu->flat));
    if (!cpu->dark || !cpu->flat)
      return false;
    for (size_t i = 0; i < n; i++) {
      cpu->dark[i] = plan->pixels[i].dark;
      cpu->flat[i] = plan->pixels[i].flat;
      cpu->bad |= plan->pixels[i].flat == 0.0f;
    }
  }
  return true;
}

/* Strip @strip of the tile that begins at column @left: the numbers of a row of
 * it from @from to @to. The last strip ends with the frame, if not before. */
static void
copy_strip (const ImkShcentroidPlan *plan, uint32_t left, uint32_t strip,
    uint32_t y, const float *from, float *to)
{
  uint32_t x = left + strip * STRIP_COLUMNS;

  if (x > plan->width - STRIP_COLUMNS)
    x = plan->width - STRIP_COLUMNS;
  memcpy (
      to, from + (size_t) y * plan->width + x, STRIP_COLUMNS * sizeof (*to));
}

/* Those of the tiles of a row of cells, before the tile at each of them. */
static void
count_strips (Cpu *cpu, const ImkShcentroidPlan *plan)
{
  for (uint32_t from = 0, to; from < plan->columns; from = to) {
    uint32_t width = 0;

    cpu->strips_before[from] = cpu->n_strips;
    to = end_of_tile (plan->rects, from, plan->columns);
    for (uint32_t i = from; i < to; i++)
      width += plan->rects[i].width;
    cpu->n_strips += imk_div_up (width, STRIP_COLUMNS);
  }
}

/* Rows of the cells of @plan's rows, all together. */
static size_t
count_rows (const ImkShcentroidPlan *plan)
{
  size_t n = 0;

  for (uint32_t row = 0; row < plan->rows; row++)
    n += plan->rects[row * plan->columns].height;
  return n;
}

/* The rows of strip @strip of the tile that @rect begins, as they are added up:
 * those of a band from the last to the first. Returns: where the next goes */
static float *
copy_strip_rows (const ImkShcentroidPlan *plan, const ImkShcentroidRect *rect,
    uint32_t strip, const float *from, float *to)
{
  const uint32_t most = IMK_SHCENTROID_BAND_ROWS;

  for (uint32_t y = 0; y < rect->height; y += most) {
    uint32_t left = rect->height - y;

    for (uint32_t k = left < most ? left : most; k-- > 0;) {
      copy_strip (plan, rect->x, strip, rect->y + y + k, from, to);
      to += STRIP_COLUMNS;
    }
  }
  return to;
}

/* For each row of cells and each of its strips the rows of that. */
static void
copy_strips (
    const Cpu *cpu, const ImkShcentroidPlan *plan, const float *from, float *to)
{
  for (uint32_t row = 0; row < plan->rows; row++)
    for (uint32_t i = 0, end; i < plan->columns; i = end) {
      uint32_t n = cpu->n_strips - cpu->strips_before[i];

      end = end_of_tile (plan->rects, i, plan->columns);
      if (end < plan->columns)
        n = cpu->strips_before[end] - cpu->strips_before[i];
      for (uint32_t strip = 0; strip < n; strip++)
        to = copy_strip_rows (
            plan, &plan->rects[row * plan->columns + i], strip, from, to);
    }
}

static inline uint32_t
bits_of (float value)
{
  uint32_t bits;

  memcpy (&bits, &value, sizeof (bits));
  return bits;
}

/* What the strips (unpack_strip ()) take for @dark and @flat, bit for bit: the
 * dark as units above the least, the flat as what no flat has in common with
 * all others. Where is_exact (), the difference of a dark and the least needs
 * no more than the 24 bits of float32 up to PACKED_BAD units: what is a whole
 * number of units gives the dark back. Returns: whether there is such a number
 */
static bool
pack_pixel (const Packing *p, float dark, float flat, uint32_t *packed)
{
  float units = (dark - p->dark) / p->unit;
  uint32_t low = bits_of (flat) ^ p->top;

  if (flat == 0.0f) {
    *packed = (uint32_t) PACKED_BAD << 24;
    return true;
  }
  if (!(units >= 0.0f && units < PACKED_BAD) || units != floorf (units) ||
      low > PACKED_FLAT)
    return false;
  *packed = (uint32_t) units << 24 | low;
  return true;
}

/* Are samples less the least dark, which only those of two bytes have, numbers
 * of units below 2^24, and so exact? And are flats no smaller than 2^-63, so
 * that they stay normal numbers with what they make up for? */
static bool
is_exact (const Packing *p)
{
  float units = p->dark / p->unit;

  return p->dark >= 0.0f && p->dark < 65280.0f && units == floorf (units) &&
         p->top >= 64u << 23;
}

/* With the least dark of @n pixels, the one of bytes is 0; and with what the
 * flats have in common. */
static void
begin_packing (
    Packing *p, const float *dark, const float *flat, size_t n, bool words)
{
  *p = (Packing){.dark = words ? 3e38f : 0.0f};
  for (size_t i = 0; i < n; i++) {
    if (flat[i] == 0.0f)
      continue;
    p->dark = words && dark[i] < p->dark ? dark[i] : p->dark;
    p->top = bits_of (flat[i]) & ~(uint32_t) PACKED_FLAT;
  }
}

/* The unit of darks is 4^-@shift. Bytes less their dark come out of integers
 * that begin 8 bits further up, and the flat makes up for both. */
static void
choose_unit (Packing *p, uint32_t shift, bool words)
{
  p->unit = 1.0f / (float) (1u << 2 * shift);
  p->factors = 0xffff0000u | 256u << 2 * shift;
  p->flat = words ? p->top : p->top - ((8 + 2 * shift) << 23);
}

/* The strips in half the room, where that is exact: the darks are few whole
 * counts apart, or quarters, ..., or 64ths as in a mean of so many frames, and
 * the flats lie between 1/2 and 2, or 1/8 and 1/2, ... */
static void
pack_strips (Cpu *cpu, const ImkShcentroidPlan *plan, size_t n)
{
  const bool words = plan->type == IMK_TYPE_U16;
  uint32_t *packed = aligned_alloc (64, n * sizeof (*packed));
  Packing *p = &cpu->packing;
  size_t i = 0;

  begin_packing (p, cpu->dark_strips, cpu->flat_strips, n, words);
  for (uint32_t shift = 0; packed && i < n && shift <= 3; shift++) {
    choose_unit (p, shift, words);
    i = 0;
    while (i < n && is_exact (p) &&
           pack_pixel (p, cpu->dark_strips[i], cpu->flat_strips[i], &packed[i]))
      i++;
  }
  if (!packed || i < n) {
    free (packed);
    return;
  }
  free (cpu->dark_strips);
  free (cpu->flat_strips);
  cpu->dark_strips = cpu->flat_strips = NULL;
  cpu->packed_strips = packed;
}

/* Dark and flat once more, in the order in which they are needed: they are read
 * from the first to the last without a gap, which is what processors fetch
 * ahead; and each by itself, as they do not fetch far ahead. */
static bool
make_strips (Cpu *cpu, const ImkShcentroidPlan *plan)
{
  size_t n;

  if (!plan->pixels || !plan->columns || plan->width < STRIP_COLUMNS ||
      plan->type == IMK_TYPE_F32)
    return true;
  cpu->strips_before = calloc (plan->columns, sizeof (uint32_t));
  if (!cpu->strips_before)
    return false;
  count_strips (cpu, plan);
  n = count_rows (plan) * cpu->n_strips * STRIP_COLUMNS;
  cpu->dark_strips = aligned_alloc (64, n * sizeof (float));
  cpu->flat_strips = aligned_alloc (64, n * sizeof (float));
  if (!cpu->dark_strips || !cpu->flat_strips)
    return false;
  copy_strips (cpu, plan, cpu->dark, cpu->dark_strips);
  copy_strips (cpu, plan, cpu->flat, cpu->flat_strips);
  /* all fields compute enough to wait for no memory; packed darks are those of
   * integers */
  if (!plan->lut && plan->fields != IMK_SHCENTROID_FIELDS_ALL)
    pack_strips (cpu, plan, n);
  return true;
}

bool
imk_shcentroid_copy_calibration (Cpu *cpu, const ImkShcentroidPlan *plan)
{
  return copy_tables (cpu, plan) && make_strips (cpu, plan);
}

void
imk_shcentroid_free_calibration (Cpu *cpu)
{
  free (cpu->dark);
  free (cpu->flat);
  free (cpu->dark_strips);
  free (cpu->flat_strips);
  free (cpu->packed_strips);
  free (cpu->strips_before);
  free (cpu->lut);
}
