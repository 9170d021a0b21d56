/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels of the weights k / n on bytes, see ratio.h, for vectors.h. */
#pragma once

#include "lapsharpen/cpu/plan.h"

/* Two weights of a kernel: their bytes in turns, and where the samples are. */
typedef struct Tap {
  const Sample *a, *b;
  Vector weights;
} Tap;

enum { MAX_TAPS = IMK_LAPSHARPEN_MAX_KERNEL * IMK_LAPSHARPEN_MAX_KERNEL };

/* Samples of a row whose sums are half a count. With weights in hundredths,
 * deciding them after their vectors takes 0.7 of the time of a frame. */
typedef struct Halves {
  uint32_t n, at[256 + STEP];
} Halves;

/* Is there room for another vector's? */
INLINE bool
are_halves_full (const Halves *halves)
{
  return halves->n > sizeof (halves->at) / sizeof (halves->at[0]) - STEP;
}

#if SAMPLE_BITS == 8

/* The pairs of a ratio, where they are in @rows. */
static void
make_taps (const Work *work, const Rows *rows, Tap *taps)
{
  const int c = (int) work->rule->channels;
  const int size = (int) work->rule->kernel_size, reach = size / 2;

  for (int i = 0; i < work->ratio->n_pairs; i++) {
    const ImkLapsharpenPair *pair = &work->ratio->pairs[i];
    const Sample *from[2];

    for (int j = 0; j < 2; j++)
      from[j] = rows->row[HERE - reach + pair->weight[j] / size] +
                (pair->weight[j] % size - reach) * c;
    taps[i].a = from[0];
    taps[i].b = from[1];
    taps[i].weights = (Vector) ((Words){0} + (int16_t) ((uint8_t) pair->k[0] |
                                                        pair->k[1] * 256));
  }
}

/* Returns: sums over n, rounded; halves that the order decides are rounded up.
 * @less: what makes a sum less than k times @v; @half: -1 where a sum is half a
 * count */
INLINE Words
divide_sums (const Ratio *r, Words less, Words v, Words *half)
{
  const Vector sums =
      OP (subs_epu16) ((Vector) (v * r->centre + r->start), (Vector) less);
  const Words quotient =
      (Words) OP (srl_epi16) (OP (mulhi_epu16) (sums, (Vector) r->factor),
          _mm_cvtsi32_si128 (r->shift));

  *half = quotient * r->n == (Words) sums;
  return r->to_even ? quotient & ~(*half & 1) : quotient;
}

/* Samples @i on. @half: all bits of those to decide */
INLINE Vector
sharpen_taps (
    const Ratio *r, const Tap *taps, int n, size_t i, Vector v, Vector *half)
{
  const Vector zero = {0};
  Words low = r->rest, high = r->rest, halves[2];
  Vector t;

  for (int j = 0; j < n; j++)
    add_pairs (load (taps[j].a + i), load (taps[j].b + i), taps[j].weights,
        &low, &high);
  low = divide_sums (r, low, (Words) OP (unpacklo_epi8) (v, zero), &halves[0]);
  high =
      divide_sums (r, high, (Words) OP (unpackhi_epi8) (v, zero), &halves[1]);
  t = OP (packus_epi16) ((Vector) low, (Vector) high);
  *half = OP (packs_epi16) ((Vector) halves[0], (Vector) halves[1]) &
          (Vector) ((Bytes) t != 0); /* 0: of any sum below 0 */
  return t;
}

/* Adds those of @half, from sample @i on. Most vectors have none or one: for
 * these there is no branch. */
INLINE void
add_halves (Vector half, size_t i, Halves *halves)
{
#if IMK_VECTOR_SIZE == 64
  uint64_t bits = _mm512_movepi8_mask (half);
#else
  uint64_t bits = (uint32_t) _mm256_movemask_epi8 (half);
#endif

  do {
    halves->at[halves->n] =
        (uint32_t) i + (uint32_t) __builtin_ctzll (bits | 1ull << 63);
    halves->n += bits != 0;
    bits &= bits - 1;
  } while (__builtin_expect (bits != 0, 0));
}

/* @size: of the kernel, a constant */
INLINE void
decide_by (const Work *work, const Rows *rows, const Halves *halves, int size,
    Sample *out, size_t first)
{
  const float maximum = (float) work->rule->maximum;
  const size_t c = work->rule->channels;

  for (uint32_t i = 0; i < halves->n; i++) {
    const float (*product)[256] = work->ratio->products;
    const size_t at = halves->at[i];
    float sum = 0;

    for (int y = HERE - size / 2; y <= HERE + size / 2; y++) {
      const Sample *from = rows->row[y] + at - (size_t) (size / 2) * c;

      for (int x = 0; x < size; x++)
        sum += (*product++)[from[(size_t) x * c]];
    }
    sum = MOST (sum, 0.0f);
    out[at - first] =
        (Sample) _mm_cvtss_si32 (_mm_set_ss (LEAST (sum, maximum)));
  }
}

/* Rounds samples as imk_lapsharpen_correlated () does without a threshold.
 * @out: sample @first of the row and those after it */
static __attribute__ ((noinline)) void
decide_halves (const Work *work, const Rows *rows, const Halves *halves,
    Sample *out, size_t first)
{
  if (work->rule->kernel_size == 3)
    decide_by (work, rows, halves, 3, out, first);
  else if (work->rule->kernel_size == 5)
    decide_by (work, rows, halves, 5, out, first);
  else
    decide_by (work, rows, halves, 7, out, first);
}

/* Returns: @t, the samples @i on, with those of @half decided */
INLINE Vector
decide_vector (
    const Work *work, const Rows *rows, size_t i, Vector half, Vector t)
{
  Halves halves;
  Sample samples[STEP];

  halves.n = 0;
  add_halves (half, i, &halves);
  if (halves.n == 0)
    return t;
  memcpy (samples, &t, sizeof (t));
  decide_halves (work, rows, &halves, samples, i);
  memcpy (&t, samples, sizeof (t));
  return t;
}

#else

/* Not chosen. */
INLINE void
make_taps (const Work *work, const Rows *rows, Tap *taps)
{
}

INLINE Vector
sharpen_taps (
    const Ratio *r, const Tap *taps, int n, size_t i, Vector v, Vector *half)
{
  return *half = v;
}

INLINE void
add_halves (Vector half, size_t i, Halves *halves)
{
}

INLINE void
decide_halves (const Work *work, const Rows *rows, const Halves *halves,
    Sample *out, size_t first)
{
}

INLINE Vector
decide_vector (
    const Work *work, const Rows *rows, size_t i, Vector half, Vector t)
{
  return t;
}

#endif
