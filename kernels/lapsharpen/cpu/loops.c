/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of a frame, compiled once for each instruction set:
 * IMK_ISA_TABLE: the name of its table
 * IMK_VECTOR_SIZE: bytes of its registers
 * Plain rows on bytes have their own loop, all others go through
 * sharpen_block (). */
#include "lapsharpen/cpu/plain.h"

enum { CACHE_LINE = 64 };

/* Returns: row @y of -1..height, NULL where the border is constant */
INLINE const void *
get_row (const Work *work, int y)
{
  const ImkLapsharpenRule *r = work->rule;
  int inside = imk_lapsharpen_inside (y, (int) r->height, r->reflect101);

  if (r->constant && (y < 0 || y >= (int) r->height))
    return NULL;
  return (const uint8_t *) work->in->data + (size_t) inside * work->in->stride;
}

/* The byte of column @x of -1..width. */
INLINE int32_t
get_byte (const ImkLapsharpenRule *r, const void *row, int x, uint32_t channel)
{
  int inside = imk_lapsharpen_inside (x, (int) r->width, r->reflect101);

  if (r->constant && (x < 0 || x >= (int) r->width))
    return (int32_t) r->border_value;
  return ((const uint8_t *) row)[(uint32_t) inside * r->channels + channel];
}

/* The first or the last pixel of a row. */
INLINE void
sharpen_end (const Work *work, const Rows *rows, uint8_t *out, int x)
{
  const ImkLapsharpenRule *r = work->rule;
  const int32_t amount = (int32_t) r->amount;

  for (uint32_t ch = 0; ch < r->channels; ch++) {
    int32_t v = get_byte (r, rows->here, x, ch);
    int32_t t = v + amount * (int32_t) r->neighbours * v;

    t -= amount *
         (get_byte (r, rows->above, x, ch) + get_byte (r, rows->below, x, ch));
    for (int side = x - 1; side <= x + 1; side += 2) {
      t -= amount * get_byte (r, rows->here, side, ch);
      if (r->neighbours == 8)
        t -= amount * (get_byte (r, rows->above, side, ch) +
                          get_byte (r, rows->below, side, ch));
    }
    t = t < 0 ? 0 : t > 255 ? 255 : t;
    out[(uint32_t) x * r->channels + ch] =
        (uint8_t) (work->filtered[ch] ? t : v);
  }
}

/* Returns: bytes from @out to where a cache line begins; 0 where that is inside
 * a pixel */
INLINE uint32_t
whole_pixels_to_line (const uint8_t *out, uint32_t channels)
{
  uint32_t n = (uint32_t) (-(uintptr_t) out % CACHE_LINE);

  return n % channels ? 0 : n;
}

INLINE void
sharpen_plain_row (const Work *work, const Rows *rows, uint8_t *out)
{
  const uint32_t c = work->rule->channels;
  const uint32_t end = (work->rule->width - 1) * c;
  uint32_t i;

  sharpen_end (work, rows, out, 0);
  sharpen_end (work, rows, out, (int) work->rule->width - 1);
  if (end < c + BLOCK) {
    if (end > c)
      sharpen_bytes (work, rows, out, c, end - c);
    return;
  }
  /* Some bytes are computed twice, so that only the first and the last stores
   * cross a cache line. */
  sharpen_bytes_block (work, rows, out, c);
  for (i = c + whole_pixels_to_line (out + c, c); i + BLOCK <= end; i += BLOCK)
    sharpen_bytes_block (work, rows, out, i);
  sharpen_bytes_block (work, rows, out, end - BLOCK);
}

INLINE void
sharpen_any_row (const Work *work, const Rows *rows, void *out, int64_t *sum,
    uint64_t *squares)
{
  const uint32_t n = work->rule->width * work->rule->channels;

  for (uint32_t i = 0; i < n; i += BLOCK)
    sharpen_block (
        work, rows, out, i, n - i < BLOCK ? n - i : BLOCK, sum, squares);
}

/* All threads add to the same sums; they are integers, so in any order. */
static void
sharpen_rows (void *data, uint32_t first, uint32_t end)
{
  Work *work = data;
  ImkLapsharpenSums band = {0};

  for (uint32_t y = first; y < end; y++) {
    Rows rows = {get_row (work, (int) y - 1), get_row (work, (int) y),
        get_row (work, (int) y + 1)};
    uint8_t *out = (uint8_t *) work->out->data + y * work->out->stride;
    uint64_t squares = 0; /* of a row: at most 2^18 * 2^38 */

    if (work->plain && rows.above && rows.below)
      sharpen_plain_row (work, &rows, out);
    else
      sharpen_any_row (work, &rows, out, &band.sum, &squares);
    band.square_low += (uint32_t) squares;
    band.square_high += squares >> 32;
  }
  if (work->rule->measured) {
    __atomic_fetch_add (&work->sums.sum, band.sum, __ATOMIC_RELAXED);
    __atomic_fetch_add (
        &work->sums.square_low, band.square_low, __ATOMIC_RELAXED);
    __atomic_fetch_add (
        &work->sums.square_high, band.square_high, __ATOMIC_RELAXED);
  }
}

const ImkLapsharpenLoops IMK_ISA_TABLE = {.sharpen_rows = sharpen_rows};
