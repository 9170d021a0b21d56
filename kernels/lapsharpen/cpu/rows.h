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
enum { TOGETHER = IMK_VECTOR_SIZE == 64 ? MAX_TOGETHER : 2 };

/* Samples of a row whose float32 stay in the nearest cache. */
enum { STRIP = 2 * CHUNK, STRIP_LINE = STRIP + 64 };

/* The lines from the top left neighbours of a strip on. */
typedef struct Strip {
  float line[IMK_LAPSHARPEN_MAX_KERNEL + TOGETHER - 1][STRIP_LINE]
      __attribute__ ((aligned (64)));
} Strip;

/* What a thread has made last. */
typedef struct MadeRows {
  const Work *work;
  int first;
  Sample *row[MAX_TOGETHER];
} MadeRows;

/* Returns: whether a lane of @v is below that of @limit, without signs */
INLINE bool
is_any_below (Ints v, Ints limit)
{
#if IMK_VECTOR_SIZE == 64
  return _mm512_cmplt_epu32_mask ((Vector) v, (Vector) limit) != 0;
#else
  const Ints least = (Ints) OP (min_epu32) ((Vector) v, (Vector) limit);

  return OP (movemask_epi8) ((Vector) (least == limit)) != -1;
#endif
}

INLINE Ints
round_to_counts (const ImkLapsharpenRule *rule, Floats sum)
{
  const FloatVector most = OP (set1_ps) ((float) rule->maximum);
  const FloatVector least = OP (max_ps) ((FloatVector) sum, (FloatVector){0});

  return (Ints) OP (cvtps_epi32) (OP (min_ps) (least, most));
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

/* Turns sums into counts. Two sums round to the same count unless one is near a
 * half, where correlate_exactly () decides. */
INLINE void
round_sums_of_kernel (const ImkLapsharpenRule *rule, const Kernel *k,
    const float (*line)[STRIP_LINE], size_t i, const Floats *sums, Ints *made)
{
  Ints fractions[PARTS], least = {0};

  least -= 1;
  for (int j = 0; j < PARTS; j++) {
    made[j] = (Ints) OP (cvtps_epi32) ((FloatVector) sums[j]);
    fractions[j] = (Ints) OP (min_epu32) ((Vector) made[j], (Vector) k->largest)
                   << k->fraction;
    least = (Ints) OP (min_epu32) ((Vector) least, (Vector) fractions[j]);
  }
  if (__builtin_expect (is_any_below (least, k->near), 0))
    for (int j = 0; j < PARTS; j++)
      if (is_any_below (fractions[j], k->near))
        made[j] = correlate_exactly (rule, line, i + (size_t) j * LANES)
                  << k->bits;
  for (int j = 0; j < PARTS; j++)
    made[j] >>= k->bits;
}

/* Packing takes 16 bytes of each vector in turns. */
INLINE Vector
pack (const Ints *made)
{
  enum { BLOCKS = IMK_VECTOR_SIZE / 16, EACH = 4 / PARTS };
  Vector packed;
  Ints order;

#if SAMPLE_BITS == 8
  packed =
      OP (packus_epi16) (OP (packs_epi32) ((Vector) made[0], (Vector) made[1]),
          OP (packs_epi32) ((Vector) made[2], (Vector) made[3]));
#else
  packed = OP (packus_epi32) ((Vector) made[0], (Vector) made[1]);
#endif
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

#ifdef __clang__
#pragma clang diagnostic pop
#endif

/* Samples @first to @end of rows, of which @strip has the lines. */
INLINE void
make_rows_by (const MadeRows *rows, const Kernel *k, int size, bool fused,
    const Strip *strip, size_t first, size_t end)
{
  const ImkLapsharpenRule *rule = rows->work->rule;

  for (size_t i = 0; first + i < end; i += PARTS * LANES) {
    Floats sums[TOGETHER][PARTS];

    correlate_together (rule, k, size, fused, strip->line, i, sums);
    for (int r = 0; r < TOGETHER; r++) {
      Ints made[PARTS];
      Vector packed;

      if (fused)
        round_sums_of_kernel (rule, k, strip->line + r, i, sums[r], made);
      else
        for (int j = 0; j < PARTS; j++)
          made[j] = round_to_counts (rule, sums[r][j]);
      packed = pack (made);
      memcpy (rows->row[r] + first + i, &packed, sizeof (packed));
    }
  }
}

static void
make_rows (const MadeRows *rows, const Kernel *k, const Strip *strip,
    size_t first, size_t end)
{
  const uint32_t size = rows->work->rule->kernel_size;

  if (k->exact && size == 3)
    make_rows_by (rows, k, 3, false, strip, first, end);
  else if (k->exact && size == 5)
    make_rows_by (rows, k, 5, false, strip, first, end);
  else if (k->exact)
    make_rows_by (rows, k, 7, false, strip, first, end);
  else if (size == 3)
    make_rows_by (rows, k, 3, true, strip, first, end);
  else if (size == 5)
    make_rows_by (rows, k, 5, true, strip, first, end);
  else
    make_rows_by (rows, k, 7, true, strip, first, end);
}

/* Gets samples @first to @end of row @y with their neighbours. */
static void
get_line (const Work *work, int y, size_t first, size_t end, float *line)
{
  const ImkLapsharpenRule *rule = work->rule;
  const uint32_t c = rule->channels, reach = rule->reach;
  const size_t margin = c * reach, n = end - first + 2 * margin;
  const Sample *row = get_row (work, y);
  const bool in_place = row && !rule->shift && first >= margin &&
                        end + margin + LANES <= rule->width * c;
  Sample copies[STRIP_LINE];
  const Sample *samples = in_place ? row + first - margin : copies;

  if (!in_place)
    copy_pixels (
        rule, row, (int) (first / c) - (int) reach, (int) (n / c), copies);
  for (size_t i = 0; i < n; i += LANES) {
    const Floats v = to_floats ((Vector) load_counts (samples + i, 0));

    memcpy (line + i, &v, sizeof (v));
  }
}

static MadeRows
start_made_rows (const Work *work, uint32_t y, float *memory)
{
  MadeRows rows = {.work = work, .first = (int) y - TOGETHER};

  for (size_t i = 0; i < TOGETHER; i++)
    rows.row[i] = (Sample *) (memory + i * made_row_size (work->rule));
  return rows;
}

static const Sample *
get_made_row (MadeRows *rows, const Kernel *k, int y)
{
  const Work *work = rows->work;
  const int reach = (int) work->rule->reach;
  const size_t n = work->rule->width * work->rule->channels;
  Strip strip;

  if (y < rows->first + TOGETHER)
    return rows->row[y - rows->first];
  rows->first = y;
  for (size_t first = 0; first < n; first += STRIP) {
    const size_t end = LEAST (first + STRIP, n);

    for (int i = 0; i < TOGETHER + 2 * reach; i++)
      get_line (work, y - reach + i, first, end, strip.line[i]);
    make_rows (rows, k, &strip, first, end);
  }
  return rows->row[0];
}
