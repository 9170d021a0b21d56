/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only: how a warp reads rows, border included, and writes them.
 * A thread owns 16 bytes of some rows, in registers; the words beside them come
 * from the threads beside it. */
#pragma once

#include "core/cuda/cuda-launch.h"
#include "lapsharpen/lapsharpen-sample.h"

enum {
  WARP = 32,
  THREAD_BYTES = 16, /* bytes a thread of one row: the widest load */
  THREAD_WORDS = 4,
  BLOCK_WARPS = 4, /* one above the other */
  LARGE_ROWS = 4,  /* rows a thread writes of a large frame */
  SMALL_ROWS = 2,  /* and of others, which need more threads than that has */
  LARGE_SIZE = 1 << 24, /* bytes: enough blocks for every multiprocessor */
};

/* A frame and its border inside a kernel. */
struct Frame {
  uint8_t *in, *out;
  uint32_t in_stride, out_stride; /* 32 bits make addresses cheap */
  int row_size;                   /* bytes */
  int height;
  int pixel_size;
  int before, after;    /* bytes at which the pixels stand that count as the
                         * ones left and right of the row */
  int above, below;     /* likewise the rows */
  bool constant;        /* the border is border_word instead */
  uint32_t border_word; /* samples as they are in memory */
};

/* The 16 bytes of a thread in one row, with @MARGIN words on either side. */
template <int MARGIN> struct Words {
  uint32_t w[MARGIN + THREAD_WORDS + MARGIN];
};

/* Where a thread reads. The first and the last lane also read the margin beyond
 * the warp; the others get it from the lane beside them. */
struct Place {
  int x, top;       /* byte and row of the first one to write */
  bool interior;    /* all that the warp reads is in the frame */
  bool inside;      /* all 16 bytes are in the row */
  bool first, last; /* lane */
  bool before_inside, after_inside; /* and all of the margin is in the row */
};

/* @n_rows: rows that a thread writes */
template <int MARGIN>
static __device__ Place
get_place (const Frame &f, int n_rows)
{
  const int lane = threadIdx.x, left = blockIdx.x * WARP * THREAD_BYTES;
  Place p;

  p.x = left + lane * THREAD_BYTES;
  p.top = (blockIdx.y * BLOCK_WARPS + threadIdx.y) * n_rows;
  p.interior = left > 0 && p.top > 0 && p.top + n_rows < f.height &&
               left + WARP * THREAD_BYTES + 4 * MARGIN <= f.row_size;
  p.inside = p.x + THREAD_BYTES <= f.row_size;
  p.first = lane == 0;
  p.last = lane == WARP - 1;
  p.before_inside = p.first && p.x > 0 && p.x <= f.row_size;
  p.after_inside = p.last && p.x + THREAD_BYTES + 4 * MARGIN <= f.row_size;
  return p;
}

/* Row @r of those that a thread reads, 0 the one above the first it writes. */
static __device__ const uint8_t *
get_row (const Frame &f, const Place &p, int r)
{
  int y = p.top + r - 1;

  y = y < 0 ? f.above : y >= f.height ? f.below : y;
  return f.in + (uint64_t) (uint32_t) y * f.in_stride;
}

/* The whole words of a row, one by one. */
template <int MARGIN>
static __device__ void
load_words (const Frame &f, const Place &p, int r, Words<MARGIN> *words)
{
  const uint32_t *w = (const uint32_t *) (get_row (f, p, r) + p.x);

#pragma unroll
  for (int i = 0; i < THREAD_WORDS; i++)
    if (p.x + 4 * i + 4 <= f.row_size)
      words->w[MARGIN + i] = __ldg (w + i);
}

/* The words of a margin, from @row on. */
template <int UNIT, int MARGIN>
static __device__ void
load_margin (const uint8_t *row, uint32_t *w)
{
  if (UNIT == 16 && MARGIN == 2) {
    uint2 v = __ldg ((const uint2 *) row);

    w[0] = v.x;
    w[1] = v.y;
  } else
#pragma unroll
    for (int i = 0; i < MARGIN; i++)
      w[i] = __ldg ((const uint32_t *) row + i);
}

template <int MARGIN>
static __device__ void
load_quad (const uint8_t *at, Words<MARGIN> *words)
{
  uint4 v = __ldg ((const uint4 *) at);

  words->w[MARGIN] = v.x;
  words->w[MARGIN + 1] = v.y;
  words->w[MARGIN + 2] = v.z;
  words->w[MARGIN + 3] = v.w;
}

/* All rows of a warp that sees no border: the usual case, with the fewest
 * instructions. */
template <int MARGIN, int N_ROWS, bool CORNERS>
static __device__ void
load_interior (const Frame &f, const Place &p, Words<MARGIN> rows[N_ROWS])
{
  const uint8_t *at =
      f.in + (uint64_t) (uint32_t) (p.top - 1) * f.in_stride + (uint32_t) p.x;

#pragma unroll
  for (int r = 0; r < N_ROWS; r++, at += f.in_stride) {
    load_quad (at, &rows[r]);
    if (!CORNERS && (r == 0 || r == N_ROWS - 1))
      continue;
    if (p.first)
      load_margin<16, MARGIN> (at - 4 * MARGIN, rows[r].w);
    if (p.last)
      load_margin<16, MARGIN> (
          at + THREAD_BYTES, rows[r].w + MARGIN + THREAD_WORDS);
  }
}

/* @beside: read the margins, too */
template <int UNIT, int MARGIN>
static __device__ void
load_row (
    const Frame &f, const Place &p, int r, bool beside, Words<MARGIN> *words)
{
  const uint8_t *at = get_row (f, p, r) + p.x;

  *words = Words<MARGIN>{};
  if (UNIT == 4)
    load_words (f, p, r, words);
  else if (p.inside)
    load_quad (at, words);
  if (beside && p.before_inside)
    load_margin<UNIT, MARGIN> (at - 4 * MARGIN, words->w);
  if (beside && p.after_inside)
    load_margin<UNIT, MARGIN> (
        at + THREAD_BYTES, words->w + MARGIN + THREAD_WORDS);
}

/* The byte of a row that stands for byte @i of it or its border. Further out
 * than a pixel nobody looks: any byte inside will do. */
static __device__ int
get_offset (const Frame &f, int i)
{
  int at = i < 0             ? f.before + f.pixel_size + i
           : i >= f.row_size ? f.after + i - f.row_size
                             : i;

  return max (0, min (at, f.row_size - 1));
}

/* Word @i of a thread in all rows, byte by byte. The loads do not wait for each
 * other: in a small frame this is what takes longest. */
template <int MARGIN, int N_ROWS>
static __device__ void
gather_words (const Frame &f, const Place &p, int i, Words<MARGIN> rows[N_ROWS])
{
  const int first = p.x + 4 * (i - MARGIN);
  uint32_t words[N_ROWS];

#pragma unroll
  for (int r = 0; r < N_ROWS; r++)
    words[r] = 0;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const bool outside = first + j < 0 || first + j >= f.row_size;
    const int at = get_offset (f, first + j);

#pragma unroll
    for (int r = 0; r < N_ROWS; r++)
      words[r] |= f.constant && outside
                      ? f.border_word & 0xffu << 8 * j
                      : (uint32_t) __ldg (get_row (f, p, r) + at) << 8 * j;
  }
#pragma unroll
  for (int r = 0; r < N_ROWS; r++)
#pragma unroll
    for (int k = 0; k < MARGIN + THREAD_WORDS + MARGIN; k++)
      rows[r].w[k] = k == i ? words[r] : rows[r].w[k];
}

/* What load_row () could not read whole. A thread just beyond the row takes
 * part: the last one in it gets its border from there. */
template <int MARGIN, int N_ROWS>
static __device__ void
patch_rows (const Frame &f, const Place &p, Words<MARGIN> rows[N_ROWS])
{
#pragma unroll 1
  for (int i = 0; i < MARGIN + THREAD_WORDS + MARGIN; i++) {
    const int first = p.x + 4 * (i - MARGIN);
    const bool own = i >= MARGIN && i < MARGIN + THREAD_WORDS;
    const bool missing =
        i < MARGIN ? p.first && !p.before_inside : p.last && !p.after_inside;
    const bool whole = first >= 0 && first + 4 <= f.row_size;

    /* Of a margin that is partly inside load_row () has read nothing. */
    if ((own ? !whole : missing) && first < f.row_size + 4 * MARGIN)
      gather_words<MARGIN, N_ROWS> (f, p, i, rows);
  }
#pragma unroll
  for (int r = 0; r < N_ROWS; r++)
    if (f.constant && (p.top + r < 1 || p.top + r > f.height))
#pragma unroll
      for (int i = 0; i < MARGIN + THREAD_WORDS + MARGIN; i++)
        rows[r].w[i] = f.border_word;
}

template <int UNIT, int MARGIN, int N_ROWS, bool CORNERS>
static __device__ void
load_border (const Frame &f, const Place &p, Words<MARGIN> rows[N_ROWS])
{
#pragma unroll
  for (int r = 0; r < N_ROWS; r++)
    load_row<UNIT, MARGIN> (
        f, p, r, CORNERS || (r > 0 && r < N_ROWS - 1), &rows[r]);
  if (p.inside && p.first == p.before_inside && p.last == p.after_inside &&
      !(f.constant && (p.top == 0 || p.top + N_ROWS - 2 >= f.height)))
    return;
  if (UNIT != 4 && !p.inside)
#pragma unroll
    for (int r = 0; r < N_ROWS; r++)
      load_words (f, p, r, &rows[r]);
  patch_rows<MARGIN, N_ROWS> (f, p, rows);
}

/* Fills @near words of the margins from the lanes beside this one. */
template <int MARGIN>
static __device__ void
share_margins (int near, Words<MARGIN> *words)
{
  const int lane = threadIdx.x;

#pragma unroll
  for (int i = 0; i < near; i++) {
    const int before = MARGIN - 1 - i, after = MARGIN + THREAD_WORDS + i;
    uint32_t left =
        __shfl_up_sync (~0u, words->w[MARGIN + THREAD_WORDS - 1 - i], 1);
    uint32_t right = __shfl_down_sync (~0u, words->w[MARGIN + i], 1);

    words->w[before] = lane == 0 ? words->w[before] : left;
    words->w[after] = lane == WARP - 1 ? words->w[after] : right;
  }
}

/* Reads @N_ROWS rows, two more than a thread writes. All threads of a warp have
 * to call it.
 * @UNIT: bytes, 16 or 4, that divide all addresses
 * @NEAR: words of the margins that are read
 * @CORNERS: so are those of the first and the last row */
template <int UNIT, int MARGIN, int N_ROWS, int NEAR = MARGIN,
    bool CORNERS = true>
static __device__ void
load_rows (const Frame &f, const Place &p, Words<MARGIN> rows[N_ROWS])
{
  /* All loads before the first use, or each would wait for the one before. */
  if (UNIT == 16 && p.interior)
    load_interior<MARGIN, N_ROWS, CORNERS> (f, p, rows);
  else
    load_border<UNIT, MARGIN, N_ROWS, CORNERS> (f, p, rows);
#pragma unroll
  for (int r = 0; r < N_ROWS; r++)
    if (CORNERS || (r > 0 && r < N_ROWS - 1))
      share_margins<MARGIN> (NEAR, &rows[r]);
}

/* Writes what of the 16 bytes at @x is in the row. */
template <int UNIT>
static __device__ void
store_words (const Frame &f, int x, int y, const uint32_t w[THREAD_WORDS])
{
  uint8_t *out = f.out + (uint64_t) (uint32_t) y * f.out_stride + x;

  if (UNIT == THREAD_BYTES && x + THREAD_BYTES <= f.row_size) {
    *(uint4 *) out = make_uint4 (w[0], w[1], w[2], w[3]);
    return;
  }
#pragma unroll
  for (int i = 0; i < THREAD_WORDS; i++) {
    if (x + 4 * i + 4 <= f.row_size)
      ((uint32_t *) out)[i] = w[i];
    else
#pragma unroll 1
      for (int j = 0; j < f.row_size - (x + 4 * i); j++)
        out[4 * i + j] = (uint8_t) (w[i] >> 8 * j);
  }
}

/* Returns: the largest of 16 and 4 that divides the addresses of all rows, 0
 * for images that these functions cannot read */
static inline int
get_unit (const ImkImage *in, const ImkImage *out)
{
  uintptr_t bits = (uintptr_t) in->data | (uintptr_t) out->data;

  if ((in->stride | out->stride) > UINT32_MAX)
    return 0;
  if (in->height > 1)
    bits |= in->stride | out->stride;
  return bits % 16 == 0 ? 16 : bits % 4 == 0 ? 4 : 0;
}

static inline Frame
make_frame (
    const ImkLapsharpenRule *rule, const ImkImage *in, const ImkImage *out)
{
  const int width = (int) rule->width, height = (int) rule->height;
  const uint32_t border = rule->border_value << rule->shift;
  Frame f = {};

  f.in = (uint8_t *) in->data;
  f.out = (uint8_t *) out->data;
  f.in_stride = (uint32_t) in->stride;
  f.out_stride = (uint32_t) out->stride;
  f.row_size = (int) imk_image_row_size (in);
  f.height = height;
  f.pixel_size = f.row_size / width;
  f.before = f.pixel_size * imk_lapsharpen_inside (-1, width, rule);
  f.after = f.pixel_size * imk_lapsharpen_inside (width, width, rule);
  f.above = imk_lapsharpen_inside (-1, height, rule);
  f.below = imk_lapsharpen_inside (height, height, rule);
  f.constant = rule->constant;
  f.border_word =
      border * (in->type == IMK_TYPE_U8 ? 0x01010101u : 0x00010001u);
  return f;
}

static inline bool
is_large (const Frame *f)
{
  return (int64_t) f->row_size * f->height >= LARGE_SIZE;
}

/* @n_rows: that a thread writes */
static inline cudaLaunchConfig_t
get_rows_launch (const Frame *f, int n_rows, cudaStream_t stream)
{
  return grid (
      dim3 (imk_div_up ((uint32_t) f->row_size, WARP * THREAD_BYTES),
          imk_div_up ((uint32_t) f->height, BLOCK_WARPS * (uint32_t) n_rows)),
      dim3 (WARP, BLOCK_WARPS), stream);
}

/* Sets @mask[i] to the bits of word i that belong to the channels of @channels.
 * Words come in the same phase again after 1, 2 or, for 3 channels, 3. */
static inline void
make_mask (const ImkLapsharpenRule *rule, ImkType type, uint32_t channels,
    uint32_t mask[THREAD_WORDS])
{
  const uint32_t size = (uint32_t) imk_type_size (type);

  for (uint32_t i = 0; i < THREAD_BYTES; i++)
    if (channels >> i / size % rule->channels & 1)
      mask[i / 4] |= 0xffu << i % 4 * 8;
}

/* Sets @words to the samples of a thread, each the value of its channel, in the
 * same phases. */
static inline void
spread_values (const ImkLapsharpenRule *rule, ImkType type,
    const uint32_t values[4], uint32_t words[THREAD_WORDS])
{
  const uint32_t size = (uint32_t) imk_type_size (type);

  for (uint32_t i = 0; i < THREAD_BYTES; i += size)
    words[i / 4] |= values[i / size % rule->channels] << i % 4 * 8;
}

/* The word of a mask for word @i of a thread at byte @x. */
template <int CHANNELS>
static __device__ uint32_t
get_mask (const uint32_t mask[THREAD_WORDS], int x, int i)
{
  const int phase = x / 4 % 3; /* an index would put the masks in memory */

  if (CHANNELS != 3)
    return mask[i];
  return phase == 0   ? mask[i % 3]
         : phase == 1 ? mask[(i + 1) % 3]
                      : mask[(i + 2) % 3];
}
