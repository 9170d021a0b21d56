/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files only: all options on u8 and u16, near the speed of memory. L
 * and what is made of it are float32, which is exact up to s L: a float
 * operation costs half of an integer one, and a conversion is a byte
 * permutation and a sum, see get_whole (). */
#pragma once

#include "core/cuda/cuda-check.h"
#include "core/cuda/instance.cuh"
#include "lapsharpen/cuda/lapsharpen-rows.cuh"
#include "lapsharpen/cuda/lapsharpen-tiny.cuh"

enum {
  GROUP = 8,      /* samples that a uniform branch decides for */
  NO_WEIGHT = -1, /* else the channel that neighbours count by */
};

/* 2^23: floats from here on are whole, their low bits the integer. */
#define WHOLE 8388608.0f
#define WHOLE_BITS 0x4b000000u

/* 1.5 * 2^23: the same for numbers of either sign. */
#define SIGNED_WHOLE 12582912.0f
#define SIGNED_WHOLE_BITS 0x4b400000u

/* The scale of plain u8, see lapsharpen-tiny.cuh. */
#define PLAIN_SCALE 0x1p120f

/* As ImkLapsharpenSums, in the type that atomics take. */
struct Sums {
  unsigned long long sum, square_low, square_high;
};

/* What the kernel reads; all of it made from the rule. */
struct Samples {
  Frame frame;
  int unit;
  uint32_t shift, kept; /* v = word >> shift & kept, in every lane */
  bool diagonal, local, limited, soft;
  uint32_t dark, bright, room; /* halos in both lanes, and the largest less the
                                * bright one */
  bool whole_range; /* neither threshold nor edges: a whole |L| < 1 is 0 */
  uint32_t neighbours;
  float amount, threshold, maximum;
  uint32_t maximum_lanes;
  uint32_t sign;    /* 0x7fffffff for |s L|, else all bits */
  float from_value; /* 0 for edges, else 1 */
  uint32_t filtered[THREAD_WORDS];
  uint32_t low[THREAD_WORDS], high[THREAD_WORDS]; /* the range, for limited */
  uint32_t measured;                              /* bit c: sum channel c */
  float reciprocal, rest;                         /* of maximum */
  float per_product; /* of u8: what makes an L of the scale of a product */
  double exact_reciprocal;
};

template <typename Sample> struct Traits;

template <> struct Traits<uint8_t> {
  typedef float Weight, Product; /* 2^104 a; its product with get_tiny () */
  typedef int32_t Signed;
  typedef uint32_t Squares;
};

template <> struct Traits<uint16_t> {
  typedef uint32_t Weight;
  typedef unsigned long long Product;
  typedef long long Signed;
  typedef unsigned long long Squares;
};

/* A pixel of 4 samples has as many words as a sample has bytes. */
template <typename Sample> using Row = Words<sizeof (Sample)>;

/* What a thread saw. The sum of its 16 or 32 L is a whole number below 2^24. */
template <typename Sample> struct Focus {
  float sum;
  typename Traits<Sample>::Squares squares;
};

/* The word with sample @i, counted from the first of the thread, and the
 * __byte_perm selector that puts it below the high byte of the first operand.
 * That order leaves the selector an immediate. */
template <typename Sample>
static __device__ uint32_t
get_word (const Row<Sample> &row, int i)
{
  return row.w[sizeof (Sample) + (i * (int) sizeof (Sample) + 16) / 4 - 4];
}

template <typename Sample>
static __device__ uint32_t
get_selector (int i)
{
  return sizeof (Sample) == 1 ? 0x3004 | (i & 3) : i & 1 ? 0x3076 : 0x3054;
}

/* WHOLE + sample @i */
template <typename Sample>
static __device__ float
get_whole (const Row<Sample> &row, int i)
{
  return __uint_as_float (__byte_perm (
      WHOLE_BITS, get_word<Sample> (row, i), get_selector<Sample> (i)));
}

/* A word of u8 has two words of 16-bit lanes, one of u16 is one. */
template <typename Sample>
static __device__ uint32_t
get_lanes (uint32_t word, int part)
{
  return sizeof (Sample) == 2 ? word
                              : __byte_perm (word, 0, part ? 0x4341 : 0x4240);
}

/* The lanes of the samples from @i on, for u8 every other of four. They are put
 * together from the lanes of whole words, which the neighbours need as well. */
template <typename Sample>
static __device__ uint32_t
get_lanes_at (const Row<Sample> &row, int i)
{
  const int byte = (i + 4) * (int) sizeof (Sample), word = byte / 4;

  if (sizeof (Sample) == 2 || byte % 4 < 2)
    return sizeof (Sample) == 2 && byte % 4
               ? __byte_perm (row.w[word], row.w[word + 1], 0x5432)
               : get_lanes<Sample> (row.w[word], byte % 4);
  return __byte_perm (get_lanes<Sample> (row.w[word], byte % 2),
      get_lanes<Sample> (row.w[word + 1], byte % 2), 0x5432);
}

template <int CHANNELS>
static __device__ uint32_t
get_lanes_beside (const Row<uint8_t> &row, int i)
{
  return get_lanes_at<uint8_t> (row, i - CHANNELS) +
         get_lanes_at<uint8_t> (row, i + CHANNELS);
}

/* Sums of the neighbours of a group of u8, two a time in 16-bit lanes that are
 * added as one number. */
template <int CHANNELS>
static __device__ void
add_neighbours (const Samples &s, const Row<uint8_t> &above,
    const Row<uint8_t> &here, const Row<uint8_t> &below, int first,
    uint32_t sums[GROUP / 2])
{
#pragma unroll
  for (int j = 0; j < GROUP / 2; j++) {
    const int i = first + j / 2 * 4 + j % 2;

    sums[j] = get_lanes_at<uint8_t> (above, i) +
              get_lanes_at<uint8_t> (below, i) +
              get_lanes_beside<CHANNELS> (here, i);
  }
  if (s.diagonal)
#pragma unroll
    for (int j = 0; j < GROUP / 2; j++) {
      const int i = first + j / 2 * 4 + j % 2;

      sums[j] += get_lanes_beside<CHANNELS> (above, i) +
                 get_lanes_beside<CHANNELS> (below, i);
    }
}

/* L of a group of u8; with 0x8000 more no lane borrows from the other. */
template <int CHANNELS>
static __device__ void
get_laplacian (const Samples &s, const Row<uint8_t> &above,
    const Row<uint8_t> &here, const Row<uint8_t> &below, int first,
    float l[GROUP])
{
  uint32_t sums[GROUP / 2];

  add_neighbours<CHANNELS> (s, above, here, below, first, sums);
#pragma unroll
  for (int j = 0; j < GROUP; j++) {
    const int part = j / 4 * 2 + j % 2;
    uint32_t v = get_lanes_at<uint8_t> (here, first + j / 4 * 4 + j % 2);
    uint32_t lanes = s.neighbours * v + 0x80008000 - sums[part];

    l[j] = __uint_as_float (
               __byte_perm (WHOLE_BITS, lanes, j & 2 ? 0x3076 : 0x3054)) -
           (WHOLE + 0x8000);
  }
}

/* The same times TINY. */
template <int CHANNELS>
static __device__ void
get_tiny_laplacian (const Samples &s, const Row<uint8_t> &above,
    const Row<uint8_t> &here, const Row<uint8_t> &below, int first,
    float l[GROUP])
{
  uint32_t sums[GROUP / 2];

  add_neighbours<CHANNELS> (s, above, here, below, first, sums);
#pragma unroll
  for (int j = 0; j < GROUP; j++)
    l[j] = __fmaf_rn (
        get_tiny (get_word<uint8_t> (here, first + j), (first + j) & 3),
        (float) s.neighbours,
        -__uint_as_float (
            __byte_perm (sums[j / 4 * 2 + j % 2], 0, j & 2 ? 0x4432 : 0x4410)));
}

static __device__ uint32_t
get_bits (const Row<uint16_t> &row, int i)
{
  return __float_as_uint (get_whole<uint16_t> (row, i));
}

/* L of a group of u16, from the bits of whole floats: what they have beside the
 * sample goes away as they are added and subtracted. */
template <int CHANNELS>
static __device__ void
get_laplacian (const Samples &s, const Row<uint16_t> &above,
    const Row<uint16_t> &here, const Row<uint16_t> &below, int first,
    float l[GROUP])
{
  uint32_t sums[GROUP];

#pragma unroll
  for (int j = 0, i = first; j < GROUP; j++, i++)
    sums[j] = get_bits (above, i) + get_bits (below, i) +
              get_bits (here, i - CHANNELS) + get_bits (here, i + CHANNELS) -
              SIGNED_WHOLE_BITS;
  if (s.diagonal)
#pragma unroll
    for (int j = 0, i = first; j < GROUP; j++, i++)
      sums[j] +=
          get_bits (above, i - CHANNELS) + get_bits (above, i + CHANNELS) +
          get_bits (below, i - CHANNELS) + get_bits (below, i + CHANNELS);
#pragma unroll
  for (int j = 0, i = first; j < GROUP; j++, i++)
    l[j] = __uint_as_float (s.neighbours * get_bits (here, i) - sums[j]) -
           SIGNED_WHOLE;
}

/* Adds the L of a group. @gain: 1 for the channels to measure, in the phase of
 * the thread; @n: samples of the group that are in the row */
template <typename Sample, int CHANNELS>
static __device__ void
measure (const float l[GROUP], int first, int n, const float gain[CHANNELS],
    Focus<Sample> *focus)
{
#pragma unroll
  for (int j = 0; j < GROUP; j++) {
    float value = j < n ? l[j] * gain[(first + j) % CHANNELS] : 0.0f;
    typename Traits<Sample>::Signed whole =
        __float_as_int (value + SIGNED_WHOLE) - (int) SIGNED_WHOLE_BITS;

    focus->sum += value;
    focus->squares += (typename Traits<Sample>::Squares) (whole * whole);
  }
}

/* --- weighted by alpha, in pixels of 4 samples ------------------------------
 */

/* Sample @i times 2^104, the weight of its pixel. */
static __device__ float
get_weight (const Row<uint8_t> &row, int i)
{
  return __uint_as_float (__byte_perm (
             0x7f000000, get_word<uint8_t> (row, i), 0x3004 | (i & 3))) -
         0x1p127f;
}

static __device__ uint32_t
get_weight (const Row<uint16_t> &row, int i)
{
  const uint32_t word = get_word<uint16_t> (row, i);

  return i & 1 ? word >> 16 : word & 0xffff;
}

/* Adds a product, which is exact. */
static __device__ float
add_product (float weight, const Row<uint8_t> &row, int i, float products)
{
  return __fmaf_rn (
      weight, get_tiny (get_word<uint8_t> (row, i), i & 3), products);
}

static __device__ unsigned long long
add_product (uint32_t weight, const Row<uint16_t> &row, int i,
    unsigned long long products)
{
  return products + (unsigned long long) weight * get_weight (row, i);
}

/* imk_lapsharpen_weighted () of sum a_i (v - v_i), below 2^20; the scale of a
 * product is 2^-45. */
static __device__ float
get_quotient (const Samples &s, const Row<uint8_t> &here, int i, float weights,
    float products)
{
  float n = __fmaf_rn (
      get_tiny (get_word<uint8_t> (here, i), i & 3), weights, -products);

  return s.per_product * imk_lapsharpen_weighted_u8 (n, s.reciprocal, s.rest);
}

/* u16: below 2^36. */
static __device__ float
get_quotient (const Samples &s, const Row<uint16_t> &here, int i,
    uint32_t weights, unsigned long long products)
{
  long long n = (long long) (add_product (weights, here, i, 0) - products);

  return imk_lapsharpen_weighted_by ((double) n, s.exact_reciprocal);
}

/* Adds a neighbour of each pixel of a group, @dx pixels away in @row. */
template <typename Sample, int WEIGHT>
static __device__ void
add_weighted (const Row<Sample> &row, int first, int dx,
    typename Traits<Sample>::Weight weights[GROUP / 4],
    typename Traits<Sample>::Product products[GROUP])
{
#pragma unroll
  for (int j = 0; j < GROUP; j += 4) {
    const int i = first + j + 4 * dx;
    const auto weight = get_weight (row, i + WEIGHT);

    weights[j / 4] += weight;
#pragma unroll
    for (int k = 0; k < 4; k++)
      if (k != WEIGHT)
        products[j + k] = add_product (weight, row, i + k, products[j + k]);
  }
}

/* The weight itself gets an L of 0. */
template <typename Sample, int WEIGHT>
static __device__ void
get_weighted (const Samples &s, const Row<Sample> &above,
    const Row<Sample> &here, const Row<Sample> &below, int first,
    float l[GROUP])
{
  typename Traits<Sample>::Weight weights[GROUP / 4] = {};
  typename Traits<Sample>::Product products[GROUP] = {};

  add_weighted<Sample, WEIGHT> (above, first, 0, weights, products);
  add_weighted<Sample, WEIGHT> (here, first, -1, weights, products);
  add_weighted<Sample, WEIGHT> (here, first, 1, weights, products);
  add_weighted<Sample, WEIGHT> (below, first, 0, weights, products);
  if (s.diagonal) {
    add_weighted<Sample, WEIGHT> (above, first, -1, weights, products);
    add_weighted<Sample, WEIGHT> (above, first, 1, weights, products);
    add_weighted<Sample, WEIGHT> (below, first, -1, weights, products);
    add_weighted<Sample, WEIGHT> (below, first, 1, weights, products);
  }
#pragma unroll
  for (int j = 0; j < GROUP; j++)
    l[j] = j % 4 == WEIGHT
               ? 0.0f
               : get_quotient (s, here, first + j, weights[j / 4], products[j]);
}

/* --- the new samples --------------------------------------------------------
 */

/* imk_lapsharpen_sample () step by step, but for the conversions: a float whose
 * low 16 bits are the sample, of u8 the one before it is clamped. All of u16 is
 * scaled by 2^-16, so that the sum is clamped to 0..1 as it is rounded. */
static __device__ uint32_t
sharpen_u8 (float factor, float l, float base)
{
  float sum = __fadd_rn (__fmul_rn (factor, l), base); /* |sum| < 2^15 */

  return __float_as_uint (__fadd_rd (sum, SIGNED_WHOLE)); /* floor */
}

static __device__ uint32_t
sharpen_u16 (float factor, float l, float base, float maximum)
{
  float sum = __saturatef (__fadd_rn (__fmul_rn (factor, l), base));

  return __float_as_uint (__fadd_rd (fminf (sum, maximum), 0x1p-16f * WHOLE));
}

template <typename Sample>
static __device__ uint32_t
sharpen_sample (const Samples &s, const Row<Sample> &row, int i, float factor,
    float l, float from_value)
{
  const float scale = sizeof (Sample) == 1 ? 1 : 0x1p-16f;
  /* v from_value + 0.5, in one step that is exact */
  float base = __fmaf_rn (get_whole<Sample> (row, i), scale * from_value,
      scale * (0.5f - WHOLE * from_value));

  return sizeof (Sample) == 1
             ? sharpen_u8 (factor, l, base)
             : sharpen_u16 (scale * factor, l, base, scale * s.maximum);
}

/* A weight is copied afterwards, like all that is not filtered. */
template <typename Sample, int WEIGHT>
static __device__ void
sharpen_samples (const Samples &s, const Row<Sample> &row, int first,
    const float l[GROUP], uint32_t samples[GROUP])
{
  if (s.whole_range) {
#pragma unroll
    for (int j = 0; j < GROUP; j++)
      samples[j] = WEIGHT != NO_WEIGHT && j % 4 == WEIGHT
                       ? 0
                       : sharpen_sample<Sample> (
                             s, row, first + j, s.amount, l[j], 1.0f);
    return;
  }
#pragma unroll
  for (int j = 0; j < GROUP; j++) {
    float magnitude = fabsf (l[j]);
    float factor = magnitude < s.threshold ? 0.0f : s.amount;
    float cored =
        s.soft ? copysignf (__fsub_rn (magnitude, s.threshold), l[j]) : l[j];
    float signed_l = __uint_as_float (__float_as_uint (cored) & s.sign);

    samples[j] = sharpen_sample<Sample> (
        s, row, first + j, factor, signed_l, s.from_value);
  }
}

/* The word of what sharpen_sample () returned. */
template <typename Sample>
static __device__ uint32_t
pack (const Samples &s, const uint32_t *samples)
{
  uint32_t even, odd;

  if (sizeof (Sample) == 2)
    return __byte_perm (samples[0], samples[1], 0x5410);
  even = __byte_perm (samples[0], samples[2], 0x5410);
  odd = __byte_perm (samples[1], samples[3], 0x5410);
  return __byte_perm (__vimin_s16x2_relu (even, s.maximum_lanes),
      __vimin_s16x2_relu (odd, s.maximum_lanes), 0x6240);
}

/* Keeps the samples of a word, @i after the first of the thread, within the
 * least and the largest of their 3x3 windows, or the halos beyond. */
template <typename Sample, int CHANNELS>
static __device__ uint32_t
clamp_local (const Samples &s, const Row<Sample> *rows, int i, uint32_t word)
{
  uint32_t clamped[2];

#pragma unroll
  for (int part = 0; part < (sizeof (Sample) == 1 ? 2 : 1); part++) {
    uint32_t least[3], most[3];

#pragma unroll
    for (int r = 0; r < 3; r++) {
      uint32_t left = get_lanes_at<Sample> (rows[r], i + part - CHANNELS);
      uint32_t middle = get_lanes_at<Sample> (rows[r], i + part);
      uint32_t right = get_lanes_at<Sample> (rows[r], i + part + CHANNELS);

      least[r] = __vimin3_u16x2 (left, middle, right);
      most[r] = __vimax3_u16x2 (left, middle, right);
    }
    least[0] = __vimin3_u16x2 (least[0], least[1], least[2]);
    most[0] = __vimax3_u16x2 (most[0], most[1], most[2]);
    if (s.dark | s.bright) { /* no lane borrows or carries */
      least[0] = __vmaxu2 (least[0], s.dark) - s.dark;
      most[0] = __vminu2 (most[0], s.room) + s.bright;
    }
    clamped[part] = __vmaxu2 (get_lanes<Sample> (word, part), least[0]);
    clamped[part] = __vminu2 (clamped[part], most[0]);
  }
  return sizeof (Sample) == 2 ? clamped[0]
                              : __byte_perm (clamped[0], clamped[1], 0x6240);
}

/* Keeps the samples of a word within the range, or no further outside than
 * @here was. */
template <typename Sample>
static __device__ uint32_t
keep_range (uint32_t here, uint32_t word, uint32_t low, uint32_t high)
{
  if (sizeof (Sample) == 2)
    return __vminu2 (
        __vmaxu2 (word, __vminu2 (low, here)), __vmaxu2 (high, here));
  return __vminu4 (
      __vmaxu4 (word, __vminu4 (low, here)), __vmaxu4 (high, here));
}

/* The words of a group, from row @rows[1]. */
template <typename Sample, int CHANNELS, int WEIGHT>
static __device__ void
sharpen_group (const Samples &s, const Row<Sample> *rows, int first,
    const float l[GROUP], uint32_t *out)
{
  constexpr int per_word = 4 / sizeof (Sample);
  uint32_t samples[GROUP];

  sharpen_samples<Sample, WEIGHT> (s, rows[1], first, l, samples);
#pragma unroll
  for (int j = 0; j < GROUP; j += per_word)
    out[j / per_word] = pack<Sample> (s, samples + j);
  if (s.local)
#pragma unroll
    for (int j = 0; j < GROUP; j += per_word)
      out[j / per_word] =
          clamp_local<Sample, CHANNELS> (s, rows, first + j, out[j / per_word]);
}

/* --- the kernel -------------------------------------------------------------
 */

template <typename Sample, int CHANNELS, int ROWS, bool CORNERS>
static __device__ void
load_samples (const Samples &s, const Place &p, Row<Sample> *rows)
{
  constexpr int margin = sizeof (Sample);
  constexpr int near = (CHANNELS * margin + 3) / 4;

  if (s.unit == 16)
    load_rows<16, margin, ROWS + 2, near, CORNERS> (s.frame, p, rows);
  else
    load_rows<4, margin, ROWS + 2, near, CORNERS> (s.frame, p, rows);
  if (s.shift)
#pragma unroll
    for (int r = 0; r < ROWS + 2; r++)
#pragma unroll
      for (int i = 0; i < margin + THREAD_WORDS + margin; i++)
        rows[r].w[i] = rows[r].w[i] >> s.shift & s.kept;
}

/* The words of a group of u8 without options. @KEPT: of 4 channels */
template <int CHANNELS, int WEIGHT, int KEPT>
static __device__ void
sharpen_plain_group (
    const Samples &s, const Row<uint8_t> *rows, int first, uint32_t *out)
{
  constexpr bool weighted = WEIGHT != NO_WEIGHT;
  /* of an L without weights the amount has the scale */
  const float scale = weighted ? 0x1p104f : PLAIN_SCALE;
  float l[GROUP];

  if (weighted)
    get_weighted<uint8_t, WEIGHT> (s, rows[0], rows[1], rows[2], first, l);
  else
    get_tiny_laplacian<CHANNELS> (s, rows[0], rows[1], rows[2], first, l);
#pragma unroll
  for (int j = 0; j < GROUP; j++)
    l[j] = __fmul_rn (s.amount, l[j]);
#pragma unroll
  for (int j = 0; j < GROUP; j += 4)
    out[j / 4] =
        add_change < weighted
            ? EVERY & ~(1 << WEIGHT)
            : KEPT > (get_word<uint8_t> (rows[1], first + j), l + j, scale);
}

/* Writes row @y, rows[1]. @KEPT: for plain groups of u8, else SOME */
template <typename Sample, int CHANNELS, int WEIGHT, int KEPT>
static __device__ void
sharpen_row (const Samples &s, const Place &p, const Row<Sample> *rows, int y,
    const float gain[CHANNELS], Focus<Sample> *focus)
{
  constexpr int size = sizeof (Sample);
  uint32_t out[THREAD_WORDS];
  float l[GROUP];

#pragma unroll
  for (int first = 0; first < THREAD_BYTES / size; first += GROUP) {
    if constexpr (KEPT != SOME) {
      sharpen_plain_group<CHANNELS, WEIGHT, KEPT> (
          s, rows, first, out + first / 4);
      continue;
    }
    if (WEIGHT == NO_WEIGHT || s.measured)
      get_laplacian<CHANNELS> (s, rows[0], rows[1], rows[2], first, l);
    if (s.measured)
      measure<Sample, CHANNELS> (
          l, first, (s.frame.row_size - p.x) / size - first, gain, focus);
    if (WEIGHT != NO_WEIGHT)
      get_weighted<Sample, WEIGHT> (s, rows[0], rows[1], rows[2], first, l);
    sharpen_group<Sample, CHANNELS, WEIGHT> (
        s, rows, first, l, out + first * size / 4);
  }
#pragma unroll
  for (int i = 0; i < THREAD_WORDS; i++) {
    const uint32_t mask = get_mask<CHANNELS> (s.filtered, p.x, i);

    out[i] = (out[i] & mask) | (rows[1].w[size + i] & ~mask);
    if (s.limited)
      out[i] = keep_range<Sample> (rows[1].w[size + i], out[i],
          get_mask<CHANNELS> (s.low, p.x, i),
          get_mask<CHANNELS> (s.high, p.x, i));
    out[i] <<= s.shift;
  }
  if (p.x >= s.frame.row_size)
    return;
  if (s.unit == 16)
    store_words<16> (s.frame, p.x, y, out);
  else
    store_words<4> (s.frame, p.x, y, out);
}

template <typename Sample, int CHANNELS, int WEIGHT, int ROWS, bool CORNERS,
    int KEPT = SOME>
static __device__ void
sharpen_rows (const Samples &s, const Place &p, Focus<Sample> *focus)
{
  const int phase = p.x / (int) sizeof (Sample);
  Row<Sample> rows[ROWS + 2];
  float gain[CHANNELS];

  load_samples<Sample, CHANNELS, ROWS, CORNERS> (s, p, rows);
#pragma unroll
  for (int i = 0; i < CHANNELS; i++)
    gain[i] = (float) (s.measured >> (phase + i) % CHANNELS & 1);
#pragma unroll
  for (int r = 0; r < ROWS; r++)
    if (p.top + r < s.frame.height)
      sharpen_row<Sample, CHANNELS, WEIGHT, KEPT> (
          s, p, rows + r, p.top + r, gain, focus);
}

/* Adds what all threads of a block found, with three atomics. */
static __device__ void
add_to_sums (long long sum, unsigned long long squares, Sums *sums)
{
  __shared__ Sums block;
  const bool first = threadIdx.x == 0 && threadIdx.y == 0;

  if (first)
    block = Sums{};
  __syncthreads ();
  for (int step = WARP / 2; step; step /= 2) {
    sum += __shfl_down_sync (~0u, sum, step);
    squares += __shfl_down_sync (~0u, squares, step);
  }
  if (threadIdx.x == 0) {
    atomicAdd (&block.sum, (unsigned long long) sum);
    atomicAdd (&block.square_low, squares); /* of a block: below 2^52 */
  }
  __syncthreads ();
  if (first) {
    atomicAdd (&sums->sum, block.sum);
    atomicAdd (&sums->square_low, block.square_low & 0xffffffff);
    atomicAdd (&sums->square_high, block.square_low >> 32);
  }
}

template <typename Sample, int CHANNELS, int WEIGHT>
static __global__ void
__launch_bounds__ (WARP *BLOCK_WARPS, WEIGHT != NO_WEIGHT ? 5
                                      : sizeof (Sample) == 2 && CHANNELS > 2
                                          ? 7
                                          : 8)
    sharpen_frame (const __grid_constant__ Samples s, Sums *sums)
{
  const Place p = get_place<sizeof (Sample)> (s.frame, SMALL_ROWS);
  Focus<Sample> focus = {};

  /* No return: all warps meet in add_to_sums (). */
  if (p.top < s.frame.height)
    sharpen_rows<Sample, CHANNELS, WEIGHT, SMALL_ROWS, true> (s, p, &focus);
  if (s.measured)
    add_to_sums ((long long) focus.sum, focus.squares, sums);
}

/* The same for a large frame without options: all choices are constants, and a
 * thread has more rows. */
template <typename Sample, int CHANNELS, int WEIGHT, int NEIGHBOURS, int KEPT>
static __global__ void
__launch_bounds__ (WARP *BLOCK_WARPS, NEIGHBOURS == 8       ? 5
                                      : WEIGHT == NO_WEIGHT ? 8
                                                            : 6)
    sharpen_plain (const __grid_constant__ Samples given, Sums *sums)
{
  const Place p = get_place<sizeof (Sample)> (given.frame, LARGE_ROWS);
  Focus<Sample> focus = {};
  Samples s = given;

  s.unit = 16;
  s.neighbours = NEIGHBOURS;
  s.diagonal = NEIGHBOURS == 8;
  s.whole_range = true;
  s.local = s.limited = s.soft = false;
  s.measured = 0;
  s.per_product = 1.0f;
  if (sizeof (Sample) == 1)
    s.shift = 0;
  if (WEIGHT == NO_WEIGHT && sizeof (Sample) == 1)
    s.amount *= PLAIN_SCALE;
  if (p.top < s.frame.height) /* all of a warp */
    sharpen_rows<Sample, CHANNELS, WEIGHT, LARGE_ROWS, NEIGHBOURS == 8,
        sizeof (Sample) == 1 ? KEPT : SOME> (s, p, &focus);
}

/* Weights are of pixels of four channels alone. */
static auto
choose_samples_kernel (ImkType type, const ImkLapsharpenRule *rule, bool plain)
{
  return instance (
      [plain] (
          auto type, auto channels, auto weight, auto neighbours, auto kept) {
        typedef SampleOf<type> Sample;
        constexpr int N = weight == NO_WEIGHT ? channels : 4;
        constexpr bool all =
            type == IMK_TYPE_U16 || weight != NO_WEIGHT || channels < 4;

        return plain ? sharpen_plain < Sample, N, weight, neighbours,
               all ? EVERY : kept > : sharpen_frame<Sample, N, weight>;
      },
      OneOf<IMK_TYPE_U8, IMK_TYPE_U16>{type}, OneOf<1, 2, 3, 4>{rule->channels},
      OneOf<0, 3, NO_WEIGHT>{rule->weight_channel},
      OneOf<4, 8>{rule->neighbours}, OneOf<7, EVERY>{rule->filtered});
}

static Samples
make_samples (const ImkLapsharpenRule *rule, const ImkImage *in,
    const ImkImage *out, int unit)
{
  const bool bytes = in->type == IMK_TYPE_U8;
  Samples s = {};

  s.frame = make_frame (rule, in, out);
  s.unit = unit;
  s.shift = rule->shift;
  s.kept = bytes ? (0xffu >> rule->shift) * 0x01010101u
                 : (0xffffu >> rule->shift) * 0x00010001u;
  s.diagonal = rule->neighbours == 8;
  s.local = rule->local;
  s.limited = rule->limited;
  s.soft = rule->soft;
  s.dark = rule->halo_dark * 0x00010001u;
  s.bright = rule->halo_bright * 0x00010001u;
  s.room = (rule->maximum - rule->halo_bright) * 0x00010001u;
  s.whole_range = rule->threshold <= (rule->weight_channel < 0 ? 1 : 0) &&
                  !rule->edges && !rule->soft;
  s.neighbours = rule->neighbours;
  s.amount = rule->amount;
  s.threshold = rule->threshold;
  s.maximum = (float) rule->maximum;
  s.maximum_lanes = rule->maximum * 0x00010001u;
  s.sign = rule->edges ? 0x7fffffffu : ~0u;
  s.from_value = rule->edges ? 0.0f : 1.0f;
  make_mask (rule, in->type, rule->filtered, s.filtered);
  spread_values (rule, in->type, rule->low, s.low);
  spread_values (rule, in->type, rule->high, s.high);
  s.measured = rule->measured;
  s.reciprocal = 1.0f / s.maximum;
  s.rest = imk_lapsharpen_rest (rule->maximum, s.reciprocal);
  s.per_product = 0x1p45f;
  s.exact_reciprocal = 1.0 / rule->maximum;
  return s;
}

/* Returns: whether launch_samples () can do what the rule asks for. Weights
 * above the maximum, which frames of less than 8 bits may hold, could take a
 * sum out of the 16 bits that sharpen_sample () has for u8. */
static bool
is_for_samples (const ImkLapsharpenRule *rule, ImkType type)
{
  const bool full =
      type != IMK_TYPE_U8 || (rule->maximum + 1) << rule->shift == 256;

  return rule->weight_channel < 0 ||
         (rule->channels == 4 && full &&
             (rule->weight_channel == 0 || rule->weight_channel == 3));
}

static ImkStatus
launch_samples (const ImkLapsharpenRule *rule, const ImkImage *in,
    const ImkImage *out, int unit, Sums *sums, cudaStream_t stream,
    ImkError *error)
{
  const Samples s = make_samples (rule, in, out, unit);
  const bool plain = is_large (&s.frame) && unit == 16 && s.whole_range &&
                     !s.local && !s.limited && !s.measured &&
                     (in->type == IMK_TYPE_U16 || rule->maximum == UINT8_MAX);
  const auto kernel = choose_samples_kernel (in->type, rule, plain);
  const cudaLaunchConfig_t launch =
      get_rows_launch (&s.frame, plain ? LARGE_ROWS : SMALL_ROWS, stream);

  return IMK_CUDA_LAUNCH (error, launch, kernel, s, sums);
}
