/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of what a kernel of any weights makes of a frame, for vectors.h. Each
 * row of the frame is read once: it is added to the sums of all rows that it is
 * a neighbour of. */
#pragma once

#include "lapsharpen/cpu/copies.h"
#include "lapsharpen/cpu/plan.h"
#include "lapsharpen/cpu/scratch.h"

/* Floats of a vector of samples. */
enum { PARTS = sizeof (float) / sizeof (Sample) };

/* Vectors of samples of which some have sums near a half. */
enum { MAX_NEAR = 256 };

typedef struct Near {
  uint32_t n;
  size_t at[MAX_NEAR];     /* their first sample */
  uint64_t bits[MAX_NEAR]; /* bit j: sample j */
} Near;

/* What a thread has of the rows that it makes. */
typedef struct MadeRows {
  const Work *work;
  const Kernel *kernel;
  int next;     /* row that the sums are for */
  size_t size;  /* floats from the sums of a row to those of the next */
  float *sums;  /* of row next and those below it, all but the last that has
                 * the row next + reach as a neighbour */
  Sample *made; /* a row, unless it is made where the new frame has it */
  Sample *copy; /* of parts of a row, with the pixels beside it */
  bool in_place;
} MadeRows;

INLINE Ints
round_to_counts (const ImkLapsharpenRule *rule, Floats sum)
{
  const FloatVector most = OP (set1_ps) ((float) rule->maximum);
  const FloatVector least = OP (max_ps) ((FloatVector) sum, (FloatVector){0});

  return (Ints) OP (cvtps_epi32) (OP (min_ps) (least, most));
}

/* Packing takes 16 bytes of each vector in turns. */
INLINE Vector
put_in_order (Vector packed)
{
  enum { BLOCKS = IMK_VECTOR_SIZE / 16, EACH = 4 / PARTS };
  Ints order;

  for (int i = 0; i < (int) LANES; i++) {
    const int block = i / EACH % BLOCKS, part = i / EACH / BLOCKS;

    order[i] = block * 4 + part * EACH + i % EACH;
  }
#if IMK_VECTOR_SIZE == 64
  return _mm512_permutexvar_epi32 ((Vector) order, packed);
#else
  return _mm256_permutevar8x32_epi32 (packed, (Vector) order);
#endif
}

INLINE Vector
pack (const Ints *made)
{
#if SAMPLE_BITS == 8
  return put_in_order (
      OP (packus_epi16) (OP (packs_epi32) ((Vector) made[0], (Vector) made[1]),
          OP (packs_epi32) ((Vector) made[2], (Vector) made[3])));
#else
  return put_in_order (OP (packus_epi32) ((Vector) made[0], (Vector) made[1]));
#endif
}

#if SAMPLE_BITS == 8

/* Returns: whether a word of @v is below @limit, without signs */
INLINE bool
is_any_below (Vector v, Words limit)
{
#if IMK_VECTOR_SIZE == 64
  return _mm512_cmplt_epu16_mask (v, (Vector) limit) != 0;
#else
  const Words least = (Words) OP (min_epu16) (v, (Vector) limit);

  return OP (movemask_epi8) ((Vector) (least == limit)) != -1;
#endif
}

/* The high words of two vectors in turns. */
INLINE Vector
mix_high (Ints even, Ints odd)
{
  const Ints high = even >> 16;

#if IMK_VECTOR_SIZE == 64
  return _mm512_mask_blend_epi16 (0xaaaaaaaa, (Vector) high, (Vector) odd);
#else
  return _mm256_blend_epi16 ((Vector) high, (Vector) odd, 0xaa);
#endif
}

/* Returns: the samples of sums in units of 2^-16 counts, see make_kernel () */
INLINE Vector
pack_sums (const Ints *made)
{
  Bytes order;

  for (int j = 0; j < IMK_VECTOR_SIZE; j++)
    order[j] = (uint8_t) (j / 8 % 2 * 8 + j % 4 * 2 + j / 4 % 2);
  return put_in_order (
      OP (shuffle_epi8) (OP (packus_epi16) (mix_high (made[0], made[1]),
                             mix_high (made[2], made[3])),
          (Vector) order));
}

/* Adds the vector of samples @i on if a sum is near a half. */
INLINE void
add_near (Words limit, const Ints *made, size_t i, Near *near)
{
  uint64_t bits = 0;

  if (__builtin_expect (
          !is_any_below (
              OP (min_epu16) (
                  OP (min_epu16) ((Vector) made[0], (Vector) made[1]),
                  OP (min_epu16) ((Vector) made[2], (Vector) made[3])),
              limit),
          1))
    return;
  for (int j = 0; j < PARTS; j++) {
    const Ints low = made[j] & UINT16_MAX;
#if IMK_VECTOR_SIZE == 64
    const uint32_t mask =
        _mm512_cmplt_epi32_mask ((Vector) low, (Vector) limit);
#else
    const uint32_t mask = (uint32_t) _mm256_movemask_ps (
        (FloatVector) (Vector) (low < (Ints) limit));
#endif

    bits |= (uint64_t) mask << (j * LANES);
  }
  near->at[near->n] = i;
  near->bits[near->n++] = bits;
}

/* Returns: sample @i of row @y by the definition */
static Sample
correlate_exactly (const Work *work, size_t i, int y)
{
  const ImkLapsharpenRule *r = work->rule;
  const int reach = (int) r->reach, width = (int) r->width;
  const int c = (int) r->channels, x = (int) i / c, channel = (int) i % c;
  const float *weight = r->kernel;
  float sum = 0;

  for (int dy = -reach; dy <= reach; dy++) {
    const Sample *row = get_row (work, y + dy);

    for (int dx = -reach; dx <= reach; dx++) {
      const int at = imk_lapsharpen_inside (x + dx, width, r);

      sum += *weight++ * (float) (!row || (r->constant && at != x + dx)
                                      ? r->border_value
                                      : row[at * c + channel]);
    }
  }
  return (Sample) imk_lapsharpen_correlated (
      r, sum, 0, 0, (int32_t) r->maximum);
}

/* Decides samples of row @y whose sums are near a half. */
static void
decide_near (const Work *work, const Near *near, int y, Sample *out)
{
  const size_t n = work->rule->width * work->rule->channels;

  for (uint32_t i = 0; i < near->n; i++)
    for (uint64_t bits = near->bits[i]; bits; bits &= bits - 1) {
      const size_t at = near->at[i] + (size_t) __builtin_ctzll (bits);

      if (at < n)
        out[at] = correlate_exactly (work, at, y);
    }
}

#else

/* Not chosen, see make_kernel (). */
INLINE Vector
pack_sums (const Ints *made)
{
  return (Vector){0};
}

INLINE void
add_near (Words limit, const Ints *made, size_t i, Near *near)
{
}

INLINE void
decide_near (const Work *work, const Near *near, int y, Sample *out)
{
}

#endif

/* With sanitizers clang unrolls no loops, and says so. */
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

/* Adds a vector of samples @from on to the sums of the rows that it is in the
 * kernel of. Returns: those that are complete. Fused multiply-add takes half
 * the instructions, but rounds otherwise. @size: of the kernel; @size and
 * @fused: constants */
INLINE Floats
add_vector (const float *weights, Floats start, int size, bool fused,
    const Sample *from, ptrdiff_t c, float *sums, size_t next)
{
  Floats sum[IMK_LAPSHARPEN_MAX_KERNEL] = {start};

#pragma GCC unroll 8
  for (int y = 1; y < size; y++)
    sum[y] = load_floats (sums + (size_t) (y - 1) * next);
#pragma GCC unroll 8
  for (int x = 0; x < size; x++) {
    Floats v = to_floats ((Vector) load_counts (from + (x - size / 2) * c, 0));

    /* Without this, gcc 12 loads it for each row anew. */
    __asm__("" : "+v"(v));
#pragma GCC unroll 8
    for (int y = 0; y < size; y++) {
      const FloatVector w = OP (set1_ps) (weights[y * size + x]);

      sum[y] = fused ? (Floats) OP (fmadd_ps) (
                           w, (FloatVector) v, (FloatVector) sum[y])
                     : sum[y] + (Floats) w * v;
    }
  }
#pragma GCC unroll 8
  for (int y = 0; y < size - 1; y++)
    memcpy (sums + (size_t) y * next, &sum[y], sizeof (sum[y]));
  return sum[size - 1];
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

/* Adds samples @first to @end of a row of the frame, and those after them up to
 * a whole vector. @out: (nullable): row that they complete; @near: (out): what
 * is to be decided of it */
INLINE void
add_samples_by (const MadeRows *rows, int size, bool fused, const Sample *row,
    size_t first, size_t end, Sample *out, Near *near)
{
  const ImkLapsharpenRule *rule = rows->work->rule;
  const ptrdiff_t c = rule->channels;
  const size_t next = rows->size;
  const Kernel *k = rows->kernel;
  float *sums = rows->sums;
  float weights[IMK_LAPSHARPEN_MAX_KERNEL * IMK_LAPSHARPEN_MAX_KERNEL];

  /* a copy that no store can change */
  memcpy (weights, fused ? k->weights : rule->kernel,
      (size_t) (size * size) * sizeof (*weights));
  for (size_t i = first; i < end; i += STEP) {
    Ints made[PARTS];
    Vector packed;

    __builtin_prefetch (row + i + PREFETCH, 0);
#pragma GCC unroll 4
    for (size_t j = 0; j < PARTS; j++) {
      const size_t at = i + j * LANES;
      const Floats sum = add_vector (weights, fused ? k->start : (Floats){0},
          size, fused, row + at, c, sums + at, next);

      made[j] = fused ? (Ints) OP (cvtps_epi32) ((FloatVector) sum)
                      : round_to_counts (rule, sum);
    }
    if (!out)
      continue;
    __builtin_prefetch (out + i + PREFETCH, 1);
    packed = fused ? pack_sums (made) : pack (made);
    memcpy (out + i, &packed, sizeof (packed));
    if (fused)
      add_near (k->near, made, i, near);
  }
}

/* Likewise. @y: of the row that they complete */
static void
add_samples (const MadeRows *rows, const Sample *row, size_t first, size_t end,
    int y, Sample *out)
{
  const bool fused = SAMPLE_BITS == 8 && !rows->kernel->exact;
  const uint32_t size = rows->work->rule->kernel_size;

  for (size_t last; first < end; first = last) {
    Near near;

    near.n = 0;
    last = LEAST (first + MAX_NEAR * STEP, end);
    if (fused && size == 3)
      add_samples_by (rows, 3, true, row, first, last, out, &near);
    else if (fused && size == 5)
      add_samples_by (rows, 5, true, row, first, last, out, &near);
    else if (fused)
      add_samples_by (rows, 7, true, row, first, last, out, &near);
    else if (size == 3)
      add_samples_by (rows, 3, false, row, first, last, out, &near);
    else if (size == 5)
      add_samples_by (rows, 5, false, row, first, last, out, &near);
    else
      add_samples_by (rows, 7, false, row, first, last, out, &near);
    decide_near (rows->work, &near, y, out);
  }
}

/* Copies what samples @first to @end of a row need. */
static void
copy_samples (const MadeRows *rows, const Sample *row, size_t first, size_t end)
{
  const ImkLapsharpenRule *rule = rows->work->rule;
  const size_t c = rule->channels, reach = rule->reach, x = first / c;

  copy_pixels (rule, row, (int) x - (int) reach,
      (int) ((end - x * c + c - 1) / c + 2 * reach), rows->copy + x * c);
}

/* Adds a row of the frame that is @reach below row @y. Its ends, and samples
 * with unused bits, go by way of copies. */
static void
add_row (const MadeRows *rows, int y, Sample *out)
{
  const ImkLapsharpenRule *rule = rows->work->rule;
  const size_t n = rule->width * rule->channels;
  const size_t margin = rule->reach * rule->channels;
  const Sample *row = get_row (rows->work, y + (int) rule->reach);
  const Sample *copy = rows->copy + margin;
  const bool in_place = row && !rule->shift && n >= 2 * STEP + margin;
  const size_t first = in_place ? STEP : 0;
  const size_t last = in_place ? (n - margin) / STEP * STEP : 0;

  if (in_place) {
    copy_samples (rows, row, 0, first);
    copy_samples (rows, row, last, n);
    add_samples (rows, row, first, last, y, out);
    add_samples (rows, copy, 0, first, y, out);
  } else
    copy_samples (rows, row, 0, n);
  add_samples (rows, copy, last, n, y, out ? rows->made : NULL);
  if (out && out != rows->made)
    memcpy (out + last, rows->made + last, (n - last) * sizeof (Sample));
}

/* @memory: a block of the pool */
static MadeRows
start_made_rows (const Work *work, const Plan *plan, float *memory)
{
  const ImkLapsharpenRule *rule = work->rule;
  const size_t size = made_row_size (rule);
  float *sums = (float *) (((uintptr_t) memory + IMK_VECTOR_SIZE - 1) /
                           IMK_VECTOR_SIZE * IMK_VECTOR_SIZE);

  return (MadeRows){.work = work,
      .kernel = &plan->kernel,
      .next = -1,
      .size = size,
      .sums = sums,
      .made = (Sample *) (sums + (rule->kernel_size - 1) * size),
      .copy = (Sample *) (sums + rule->kernel_size * size),
      .in_place = plan->whole && !rule->local && !rule->limited};
}

/* Returns: row @y, for the caller to copy unless it is in its place; fast for
 * one row after the other */
static const Sample *
get_made_row (MadeRows *rows, int y)
{
  const Work *work = rows->work;
  const int reach = (int) work->rule->reach;
  Sample *out = rows->in_place ? (Sample *) ((uint8_t *) work->out->data +
                                             (size_t) y * work->out->stride)
                               : rows->made;

  for (int i = y == rows->next ? y : y - 2 * reach; i < y; i++)
    add_row (rows, i, NULL);
  add_row (rows, y, out);
  rows->next = y + 1;
  return out;
}
