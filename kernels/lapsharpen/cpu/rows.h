/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of what a kernel of any weights makes of a frame, for vectors.h. Some
 * rows are made together: each vector that is loaded is for all of them. */
#pragma once

#include "lapsharpen/cpu/copies.h"
#include "lapsharpen/cpu/plan.h"
#include "lapsharpen/cpu/scratch.h"

/* Floats of a vector of samples. */
enum { PARTS = sizeof (float) / sizeof (Sample) };

/* As many as registers have room for the sums of. */
enum { TOGETHER = IMK_VECTOR_SIZE == 64 ? 4 : 2 };

/* Samples of a row whose float32 stay in the nearest cache. */
enum { STRIP = CHUNK, STRIP_LINE = STRIP + 64 };

/* The lines from the top left neighbours of a strip on. */
typedef struct Strip {
  float line[MADE_ROWS + 2 * REACH][STRIP_LINE] __attribute__ ((aligned (64)));
} Strip;

/* What a thread has made last: rows @first to @end. */
typedef struct MadeRows {
  const Work *work;
  int first, end, last; /* and the end of all that it makes */
  Sample *memory;
  bool in_place; /* rows are made where the new frame has them */
  Sample *row[MADE_ROWS];
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

/* The samples of a vector as imk_lapsharpen_correlated () makes them without a
 * threshold. @line: of the strip, the first that they need */
static __attribute__ ((noinline)) Ints
correlate_exactly (
    const ImkLapsharpenRule *rule, const float (*line)[STRIP_LINE], size_t i)
{
  const int size = (int) rule->kernel_size;
  const float *weight = rule->kernel;
  Floats sum = {0};

  for (int y = 0; y < size; y++)
    for (int x = 0; x < size; x++, weight++)
      sum += *weight * load_floats (line[y] + i + x * (int) rule->channels);
  return round_to_counts (rule, sum);
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

/* Returns: the samples of sums in units of 2^-16 counts. Two sums round to the
 * same count unless one is near a half, where correlate_exactly () decides. */
INLINE Vector
round_sums_of_kernel (const ImkLapsharpenRule *rule, const Kernel *k,
    const float (*line)[STRIP_LINE], size_t i, const Floats *sums)
{
  Ints made[PARTS];
  Bytes order;

  for (int j = 0; j < PARTS; j++)
    made[j] = (Ints) OP (cvtps_epi32) ((FloatVector) sums[j]);
  if (__builtin_expect (
          is_any_below (
              OP (min_epu16) (
                  OP (min_epu16) ((Vector) made[0], (Vector) made[1]),
                  OP (min_epu16) ((Vector) made[2], (Vector) made[3])),
              k->near),
          0))
    for (int j = 0; j < PARTS; j++)
      if (is_any_below ((Vector) made[j], k->near))
        made[j] = correlate_exactly (rule, line, i + (size_t) j * LANES) << 16;
  for (int j = 0; j < IMK_VECTOR_SIZE; j++)
    order[j] = (uint8_t) (j / 8 % 2 * 8 + j % 4 * 2 + j / 4 % 2);
  return put_in_order (
      OP (shuffle_epi8) (OP (packus_epi16) (mix_high (made[0], made[1]),
                             mix_high (made[2], made[3])),
          (Vector) order));
}

#else

INLINE Vector
round_sums_of_kernel (const ImkLapsharpenRule *rule, const Kernel *k,
    const float (*line)[STRIP_LINE], size_t i, const Floats *sums)
{
  return (Vector){0}; /* not chosen, see make_kernel () */
}

#endif

/* With sanitizers clang unrolls no loops, and says so. */
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

/* The sums of vectors of samples @i on, row by row of the kernel. Fused
 * multiply-add takes half the instructions, but rounds otherwise.
 * @size: of the kernel; @size and @fused: constants */
INLINE void
correlate_together (const ImkLapsharpenRule *rule, const Kernel *k, int size,
    bool fused, const float (*line)[STRIP_LINE], size_t i, Floats sums[][PARTS])
{
  const ptrdiff_t c = rule->channels;
  const float *weights = fused ? k->weights : rule->kernel;

  for (int r = 0; r < TOGETHER; r++)
    for (int j = 0; j < PARTS; j++)
      sums[r][j] = fused ? k->start : (Floats){0};
#pragma GCC unroll 16
  for (int y = 0; y < size + TOGETHER - 1; y++) {
    const float *from = line[y] + i;

#pragma GCC unroll 16
    for (int x = 0; x < size; x++, from += c)
#pragma GCC unroll 16
      for (int j = 0; j < PARTS; j++) {
        Floats v = load_floats (from + j * LANES);

        /* Without this, gcc 12 loads it for each row anew. */
        __asm__("" : "+v"(v));
#pragma GCC unroll 16
        for (int r = MOST (y - size + 1, 0); r <= LEAST (y, TOGETHER - 1);
             r++) {
          const FloatVector w = OP (set1_ps) (weights[(y - r) * size + x]);

          sums[r][j] = fused ? (Floats) OP (fmadd_ps) (
                                   w, (FloatVector) v, (FloatVector) sums[r][j])
                             : sums[r][j] + (Floats) w * v;
        }
      }
  }
}

/* Samples @first to @end of rows @y of those made on, of which @strip has the
 * lines. */
INLINE void
make_rows_by (const MadeRows *rows, const Kernel *k, int size, bool fused,
    const Strip *strip, int y, size_t first, size_t end)
{
  const ImkLapsharpenRule *rule = rows->work->rule;
  const float (*line)[STRIP_LINE] = strip->line + y;

  for (size_t i = 0; first + i < end; i += PARTS * LANES) {
    Floats sums[TOGETHER][PARTS];

    correlate_together (rule, k, size, fused, line, i, sums);
    for (int r = 0; r < TOGETHER; r++) {
      Ints made[PARTS];
      Vector packed;

      for (int j = 0; j < PARTS && !fused; j++)
        made[j] = round_to_counts (rule, sums[r][j]);
      packed = fused ? round_sums_of_kernel (rule, k, line + r, i, sums[r])
                     : pack (made);
      __builtin_prefetch (rows->row[y + r] + first + i + STRIP, 1);
      memcpy (rows->row[y + r] + first + i, &packed, sizeof (packed));
    }
  }
}

static void
make_rows (const MadeRows *rows, const Kernel *k, const Strip *strip, int y,
    size_t first, size_t end)
{
  const bool exact = SAMPLE_BITS == 16 || k->exact;
  const uint32_t size = rows->work->rule->kernel_size;

  if (exact && size == 3)
    make_rows_by (rows, k, 3, false, strip, y, first, end);
  else if (exact && size == 5)
    make_rows_by (rows, k, 5, false, strip, y, first, end);
  else if (exact)
    make_rows_by (rows, k, 7, false, strip, y, first, end);
  else if (size == 3)
    make_rows_by (rows, k, 3, true, strip, y, first, end);
  else if (size == 5)
    make_rows_by (rows, k, 5, true, strip, y, first, end);
  else
    make_rows_by (rows, k, 7, true, strip, y, first, end);
}

INLINE void
convert_samples (const Sample *samples, float *line)
{
  const Floats v = to_floats ((Vector) load_counts (samples, 0));

  memcpy (line, &v, sizeof (v));
}

/* Gets samples @first to @end of @row with their neighbours. */
static void
get_line (
    const Work *work, const Sample *row, size_t first, size_t end, float *line)
{
  const ImkLapsharpenRule *rule = work->rule;
  const uint32_t c = rule->channels, reach = rule->reach;
  const size_t margin = c * reach, n = end - first + 2 * margin;
  const bool in_place = row && !rule->shift && first >= margin &&
                        end + margin + LANES <= rule->width * c;
  Sample copies[STRIP_LINE];
  const Sample *samples = in_place ? row + first - margin : copies;
  size_t i = 0;

  if (!in_place)
    copy_pixels (
        rule, row, (int) (first / c) - (int) reach, (int) (n / c), copies);
  if (in_place && end - first == STRIP) {
    /* nearly all of it */
#pragma GCC unroll 32
    for (; i < STRIP; i += LANES) {
      if (i % (64 / sizeof (Sample)) == 0)
        __builtin_prefetch (samples + STRIP + i);
      convert_samples (samples + i, line + i);
    }
  }
  for (; i < n; i += LANES)
    convert_samples (samples + i, line + i);
}

#ifdef __clang__
#pragma clang diagnostic pop
#endif

/* For rows @y to @end. */
static MadeRows
start_made_rows (
    const Work *work, const Plan *plan, uint32_t y, uint32_t end, float *memory)
{
  const ImkLapsharpenRule *rule = work->rule;

  return (MadeRows){.work = work,
      .end = (int) y,
      .last = (int) end,
      .memory = (Sample *) memory,
      .in_place = plan->whole && !rule->local && !rule->limited &&
                  rule->width * rule->channels >= STRIP};
}

/* Where row @i of those made is. */
static Sample *
place_row (const MadeRows *rows, int i)
{
  const int y = rows->first + i;

  if (rows->in_place && y < rows->last)
    return (Sample *) ((uint8_t *) rows->work->out->data +
                       (size_t) y * rows->work->out->stride);
  return rows->memory + (size_t) i * made_row_size (rows->work->rule);
}

/* Returns: row @y, for the caller to copy unless it is in its place; rows after
 * it may be in theirs already */
static const Sample *
get_made_row (MadeRows *rows, const Kernel *k, int y)
{
  const Work *work = rows->work;
  const int reach = (int) work->rule->reach;
  const int left = (rows->last - y + TOGETHER - 1) / TOGETHER * TOGETHER;
  const int n_rows = LEAST (MADE_ROWS, left);
  const size_t n = work->rule->width * work->rule->channels;
  const Sample *from[MADE_ROWS + 2 * REACH];
  Strip strip;

  if (y < rows->end)
    return rows->row[y - rows->first];
  rows->first = y;
  rows->end = y + n_rows;
  for (int i = 0; i < n_rows; i++)
    rows->row[i] = place_row (rows, i);
  for (int i = 0; i < n_rows + 2 * reach; i++)
    from[i] = get_row (work, y - reach + i);
  for (size_t next = 0; next < n; next += STRIP) {
    /* The last strip has samples of the one before, and whole vectors. */
    const size_t first = n < STRIP ? 0 : LEAST (next, n - STRIP);
    const size_t end = LEAST (first + STRIP, n);

    for (int i = 0; i < n_rows + 2 * reach; i++)
      get_line (work, from[i], first, end, strip.line[i]);
    for (int i = 0; i < n_rows; i += TOGETHER)
      make_rows (rows, k, &strip, i, first, end);
  }
  return rows->row[0];
}
