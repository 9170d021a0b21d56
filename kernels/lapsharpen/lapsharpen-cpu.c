/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows are handled as streams of samples, in which the neighbours beside a
 * sample are one pixel, so `channels` samples, away. All options go through
 * sharpen_block (); the plain case on bytes has sharpen_bytes () for the inner
 * part of its rows. What the loops need is compiled for several instruction
 * sets, see sharpen_rows (). */
#include "lapsharpen/lapsharpen-backend.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/parallel.h"
#include "lapsharpen/lapsharpen-sample.h"

/* It has to end up inside functions of each instruction set. */
#define INLINE static inline __attribute__ ((always_inline))

enum {
  BLOCK = 384,      /* samples; whole pixels of 1..4 channels, whole vectors */
  LINE = BLOCK + 8, /* and a pixel on either side */
  CACHE_LINE = 64,
  PREFETCH = 3072,   /* bytes; of 1024 to 3072 the fastest */
  BAND_SIZE = 65536, /* bytes that are worth a thread */
};

/* One frame, for all threads. */
typedef struct Work {
  const ImkLapsharpenRule *rule;
  const ImkImage *in;
  ImkImage *out;
  bool plain;
  uint16_t filtered[BLOCK]; /* 0xffff: sharpen the sample; 0: copy it */
  uint8_t filtered_bytes[BLOCK];
  int32_t measured[BLOCK]; /* -1: sum the sample up; 0: do not */
  ImkLapsharpenSums sums;
} Work;

/* The row above, the row itself, the row below; NULL is a constant border. */
typedef struct Rows {
  const void *above, *here, *below;
} Rows;

/* The same for the samples of a block, in counts, from one pixel before it. */
typedef struct Lines {
  uint16_t above[LINE], here[LINE], below[LINE];
} Lines;

typedef struct State {
  ImkLapsharpenRule rule;
  bool plain;
  uint32_t n_threads;
  ImkBandFunc sharpen_rows;
  ImkLapsharpenSums sums;
} State;

/* --- load: counts, with the border added ------------------------------------
 */

INLINE void
widen (const void *row, ImkType type, uint32_t shift, uint32_t from,
    uint32_t end, uint16_t *line)
{
  const uint8_t *bytes = (const uint8_t *) row + from;
  const uint16_t *words = (const uint16_t *) row + from;

  if (type == IMK_TYPE_U8)
    for (uint32_t i = 0; i < end - from; i++)
      line[i] = bytes[i];
  else
    for (uint32_t i = 0; i < end - from; i++)
      line[i] = words[i];
  if (shift) /* apart: vectors of 16 bits cannot shift by a variable */
    for (uint32_t i = 0; i < end - from; i++)
      line[i] = line[i] >> shift;
}

INLINE void
load_outside_pixel (const Work *work, const void *row, int x, uint16_t *line)
{
  const ImkLapsharpenRule *r = work->rule;
  uint32_t from = r->channels * (uint32_t) imk_lapsharpen_inside (
                                    x, (int) r->width, r->reflect101);

  if (!r->constant)
    widen (row, work->in->type, r->shift, from, from + r->channels, line);
  else
    for (uint32_t i = 0; i < r->channels; i++)
      line[i] = (uint16_t) r->border_value;
}

/* Fills @line with the @n samples from @first on and a pixel on either side. */
INLINE void
load_line (const Work *work, const void *row, uint32_t first, uint32_t n,
    uint16_t *line)
{
  const ImkLapsharpenRule *r = work->rule;
  uint32_t margin = r->channels;
  bool at_left = first == 0, at_right = first + n == r->width * r->channels;
  uint32_t from = at_left ? first : first - margin;

  if (!row) {
    for (uint32_t i = 0; i < n + 2 * margin; i++)
      line[i] = (uint16_t) r->border_value;
    return;
  }
  widen (row, work->in->type, r->shift, from,
      at_right ? first + n : first + n + margin, line + margin + from - first);
  if (at_left)
    load_outside_pixel (work, row, -1, line);
  if (at_right)
    load_outside_pixel (work, row, (int) r->width, line + margin + n);
}

/* --- the options, each a loop over the block --------------------------------
 */

INLINE void
get_laplacian (const Work *work, const Lines *lines, uint32_t n, int32_t *l)
{
  const uint32_t c = work->rule->channels;
  const uint16_t *above = lines->above + c, *here = lines->here + c;
  const uint16_t *below = lines->below + c;
  const uint16_t *left = here - c, *right = here + c;
  const uint16_t *above_left = above - c, *above_right = above + c;
  const uint16_t *below_left = below - c, *below_right = below + c;

  for (uint32_t i = 0; i < n; i++)
    l[i] = 4 * here[i] - (above[i] + below[i]) - (left[i] + right[i]);
  if (work->rule->neighbours == 8)
    for (uint32_t i = 0; i < n; i++)
      l[i] += 4 * here[i] - (above_left[i] + above_right[i]) -
              (below_left[i] + below_right[i]);
}

INLINE void
measure (const Work *work, const int32_t *l, uint32_t n, int64_t *sum,
    uint64_t *squares)
{
  int64_t s = 0;
  uint64_t q = 0;

  for (uint32_t i = 0; i < n; i++) {
    int32_t value = l[i] & work->measured[i];

    s += value;
    q += (uint64_t) ((int64_t) value * value);
  }
  *sum += s;
  *squares += q;
}

/* Gives every sample of a line the weight of its pixel. */
INLINE void
spread_weights (const uint16_t *line, uint32_t channel, uint32_t c, uint32_t n,
    uint16_t *weights)
{
  for (uint32_t pixel = 0; pixel < n; pixel += c)
    for (uint32_t i = 0; i < c; i++)
      weights[pixel + i] = line[pixel + channel];
}

INLINE void
get_weights (const Work *work, const uint16_t *line, uint32_t n, uint16_t *w)
{
  const uint32_t c = work->rule->channels;
  const uint32_t channel = (uint32_t) work->rule->weight_channel;

  /* A constant number of channels makes vectors of the inner loop. */
  if (c == 4)
    spread_weights (line, channel, 4, n, w);
  else if (c == 2)
    spread_weights (line, channel, 2, n, w);
  else
    spread_weights (line, channel, c, n, w);
}

/* Adds a (v - v_i) of the neighbours at @line. Double holds these integers
 * exactly and comes in vectors where 64-bit products do not. */
INLINE void
add_weighted (const uint16_t *line, const uint16_t *weights,
    const uint16_t *here, uint32_t n, double *numerator)
{
  for (uint32_t i = 0; i < n; i++)
    numerator[i] += (double) weights[i] * (double) (here[i] - line[i]);
}

/* The neighbours of one line: those beside the samples, and @middle. */
INLINE void
add_weighted_line (const Work *work, const uint16_t *line, const uint16_t *here,
    uint32_t n, bool beside, bool middle, double *numerator)
{
  const uint32_t c = work->rule->channels;
  uint16_t weights[LINE];

  get_weights (work, line, n + 2 * c, weights);
  if (beside) {
    add_weighted (line, weights, here, n, numerator);
    add_weighted (line + 2 * c, weights + 2 * c, here, n, numerator);
  }
  if (middle)
    add_weighted (line + c, weights + c, here, n, numerator);
}

INLINE void
get_weighted (const Work *work, const Lines *lines, uint32_t n, float *l)
{
  const uint16_t *here = lines->here + work->rule->channels;
  const bool diagonal = work->rule->neighbours == 8;
  const uint32_t maximum = work->rule->maximum;
  double numerator[BLOCK];

  memset (numerator, 0, n * sizeof (numerator[0]));
  add_weighted_line (work, lines->above, here, n, diagonal, true, numerator);
  add_weighted_line (work, lines->here, here, n, true, false, numerator);
  add_weighted_line (work, lines->below, here, n, diagonal, true, numerator);
  for (uint32_t i = 0; i < n; i++)
    l[i] = imk_lapsharpen_weighted (numerator[i], maximum);
}

INLINE uint16_t
least_of (uint16_t a, uint16_t b)
{
  return a < b ? a : b;
}

INLINE uint16_t
most_of (uint16_t a, uint16_t b)
{
  return a > b ? a : b;
}

/* Keeps the samples within the least and the largest of their 3x3 windows. */
INLINE void
clamp_local (const Lines *lines, uint32_t c, uint32_t n, uint16_t *sharpened)
{
  uint16_t low[LINE], high[LINE];
  const uint16_t *low_here = low + c, *low_right = low_here + c;
  const uint16_t *high_here = high + c, *high_right = high_here + c;

  for (uint32_t i = 0; i < n + 2 * c; i++) {
    uint16_t a = lines->above[i], h = lines->here[i], b = lines->below[i];

    low[i] = least_of (least_of (a, b), h);
    high[i] = most_of (most_of (a, b), h);
  }
  for (uint32_t i = 0; i < n; i++) {
    uint16_t least = least_of (least_of (low[i], low_right[i]), low_here[i]);
    uint16_t most = most_of (most_of (high[i], high_right[i]), high_here[i]);

    sharpened[i] = least_of (most_of (sharpened[i], least), most);
  }
}

/* Local variables keep the compiler from rereading the rule in each turn. */
INLINE void
get_sharpened (const ImkLapsharpenRule *rule, const uint16_t *here,
    const float *l, uint32_t n, uint16_t *sharpened)
{
  const float amount = rule->amount, threshold = rule->threshold;
  const int32_t maximum = (int32_t) rule->maximum;

  if (rule->edges)
    for (uint32_t i = 0; i < n; i++)
      sharpened[i] = (uint16_t) imk_lapsharpen_sample (
          amount, threshold, true, l[i], here[i], 0, maximum);
  else
    for (uint32_t i = 0; i < n; i++)
      sharpened[i] = (uint16_t) imk_lapsharpen_sample (
          amount, threshold, false, l[i], here[i], 0, maximum);
}

/* Puts the samples that are copied into @sharpened, and the unused bits. */
INLINE void
finish (const Work *work, const uint16_t *here, uint32_t n, uint16_t *sharpened)
{
  const uint32_t shift = work->rule->shift;

  for (uint32_t i = 0; i < n; i++)
    sharpened[i] = (sharpened[i] & work->filtered[i]) |
                   (here[i] & (uint16_t) ~work->filtered[i]);
  if (shift)
    for (uint32_t i = 0; i < n; i++)
      sharpened[i] = (uint16_t) (sharpened[i] << shift);
}

INLINE void
store (const uint16_t *sharpened, ImkType type, void *row, uint32_t first,
    uint32_t n)
{
  uint8_t *bytes = (uint8_t *) row + first;

  if (type == IMK_TYPE_U16)
    memcpy ((uint16_t *) row + first, sharpened, n * sizeof (uint16_t));
  else
    for (uint32_t i = 0; i < n; i++)
      bytes[i] = (uint8_t) sharpened[i];
}

/* Sharpens the samples [first, first + n) of a row, n at most BLOCK. */
INLINE void
sharpen_block (const Work *work, const Rows *rows, void *out, uint32_t first,
    uint32_t n, int64_t *sum, uint64_t *squares)
{
  const ImkLapsharpenRule *rule = work->rule;
  const uint32_t c = rule->channels;
  Lines lines;
  int32_t laplacian[BLOCK];
  float l[BLOCK];
  uint16_t sharpened[BLOCK];

  load_line (work, rows->above, first, n, lines.above);
  load_line (work, rows->here, first, n, lines.here);
  load_line (work, rows->below, first, n, lines.below);
  get_laplacian (work, &lines, n, laplacian);
  if (rule->measured)
    measure (work, laplacian, n, sum, squares);
  if (rule->weight_channel >= 0)
    get_weighted (work, &lines, n, l);
  else
    for (uint32_t i = 0; i < n; i++)
      l[i] = (float) laplacian[i];
  get_sharpened (rule, lines.here + c, l, n, sharpened);
  if (rule->local)
    clamp_local (&lines, c, n, sharpened);
  finish (work, lines.here + c, n, sharpened);
  store (sharpened, work->out->type, out, first, n);
}

/* --- the plain case on bytes ------------------------------------------------
 */

/* Sharpens @n bytes of whole pixels that have all their neighbours. 16 bits
 * hold every intermediate value: |t| <= (8 * 10 + 1) * 255. */
INLINE void
sharpen_bytes (const Work *work, const Rows *rows, uint8_t *out, uint32_t first,
    uint32_t n)
{
  const ptrdiff_t c = work->rule->channels;
  const bool diagonal = work->rule->neighbours == 8;
  const int16_t amount = (int16_t) work->rule->amount;
  const int16_t centre = (int16_t) (1 + amount * (diagonal ? 8 : 4));
  const uint8_t *above = (const uint8_t *) rows->above + first;
  const uint8_t *here = (const uint8_t *) rows->here + first;
  const uint8_t *below = (const uint8_t *) rows->below + first;

  out += first;
  for (ptrdiff_t i = 0; i < (ptrdiff_t) n; i++) {
    int16_t sum = above[i] + below[i] + here[i - c] + here[i + c];
    int16_t t;

    if (diagonal)
      sum += above[i - c] + above[i + c] + below[i - c] + below[i + c];
    t = centre * here[i] - amount * sum;
    t = t < 0 ? 0 : t > 255 ? 255 : t;
    out[i] = (uint8_t) (work->filtered[i] ? t : here[i]);
  }
}

/* Sharpens BLOCK bytes. */
typedef void (*BytesBlock) (
    const Work *work, const Rows *rows, uint8_t *out, uint32_t first);

INLINE void
bytes_block_any (
    const Work *work, const Rows *rows, uint8_t *out, uint32_t first)
{
  sharpen_bytes (work, rows, out, first, BLOCK);
}

#if defined(__x86_64__)

/* maddubs multiplies bytes of two sources by a small number each and adds the
 * products in 16 bits: pairs of neighbours by -s, the centre by 1 + k s. That
 * takes half the instructions of what compilers make of sharpen_bytes (), which
 * first widens every source. */
#define AVX2 __attribute__ ((target ("avx2")))

/* Both streams ahead of the hardware, which stops at each page: 10 to 20 % of
 * the time of a frame. Nothing is read, so it may be beyond the end. */
INLINE void
prefetch (const uint8_t *in, uint8_t *out)
{
  __builtin_prefetch (in + PREFETCH, 0);
  __builtin_prefetch (out + PREFETCH, 1);
}

AVX2 INLINE __m256i
load_32 (const uint8_t *bytes)
{
  return _mm256_loadu_si256 ((const __m256i *) bytes);
}

AVX2 INLINE void
add_pair_32 (__m256i a, __m256i b, __m256i weight, __m256i *low, __m256i *high)
{
  *low = _mm256_add_epi16 (
      *low, _mm256_maddubs_epi16 (_mm256_unpacklo_epi8 (a, b), weight));
  *high = _mm256_add_epi16 (
      *high, _mm256_maddubs_epi16 (_mm256_unpackhi_epi8 (a, b), weight));
}

AVX2 INLINE void
bytes_block_avx2 (
    const Work *work, const Rows *rows, uint8_t *out, uint32_t first)
{
  const ptrdiff_t c = work->rule->channels;
  const bool diagonal = work->rule->neighbours == 8;
  const int amount = (int) work->rule->amount;
  const __m256i minus = _mm256_set1_epi8 ((char) -amount);
  const __m256i centre =
      _mm256_set1_epi16 ((short) (1 + amount * (diagonal ? 8 : 4)));

  for (ptrdiff_t j = 0; j < BLOCK; j += 32) {
    const uint8_t *above = (const uint8_t *) rows->above + first + j;
    const uint8_t *here = (const uint8_t *) rows->here + first + j;
    const uint8_t *below = (const uint8_t *) rows->below + first + j;
    __m256i v = load_32 (here), low = _mm256_setzero_si256 (), high = low;
    __m256i mask = load_32 (work->filtered_bytes + j);

    prefetch (below, out + first + j);
    add_pair_32 (v, _mm256_setzero_si256 (), centre, &low, &high);
    add_pair_32 (load_32 (above), load_32 (below), minus, &low, &high);
    add_pair_32 (load_32 (here - c), load_32 (here + c), minus, &low, &high);
    if (diagonal) {
      add_pair_32 (
          load_32 (above - c), load_32 (above + c), minus, &low, &high);
      add_pair_32 (
          load_32 (below - c), load_32 (below + c), minus, &low, &high);
    }
    _mm256_storeu_si256 ((__m256i *) (out + first + j),
        _mm256_blendv_epi8 (v, _mm256_packus_epi16 (low, high), mask));
  }
}

#define AVX512 __attribute__ ((target ("avx512bw,avx512vl,avx512dq")))

AVX512 INLINE __m512i
load_64 (const uint8_t *bytes)
{
  return _mm512_loadu_si512 (bytes);
}

AVX512 INLINE void
add_pair_64 (__m512i a, __m512i b, __m512i weight, __m512i *low, __m512i *high)
{
  *low = _mm512_add_epi16 (
      *low, _mm512_maddubs_epi16 (_mm512_unpacklo_epi8 (a, b), weight));
  *high = _mm512_add_epi16 (
      *high, _mm512_maddubs_epi16 (_mm512_unpackhi_epi8 (a, b), weight));
}

AVX512 INLINE void
bytes_block_avx512 (
    const Work *work, const Rows *rows, uint8_t *out, uint32_t first)
{
  const ptrdiff_t c = work->rule->channels;
  const bool diagonal = work->rule->neighbours == 8;
  const int amount = (int) work->rule->amount;
  const __m512i minus = _mm512_set1_epi8 ((char) -amount);
  const __m512i centre =
      _mm512_set1_epi16 ((short) (1 + amount * (diagonal ? 8 : 4)));

  for (ptrdiff_t j = 0; j < BLOCK; j += 64) {
    const uint8_t *above = (const uint8_t *) rows->above + first + j;
    const uint8_t *here = (const uint8_t *) rows->here + first + j;
    const uint8_t *below = (const uint8_t *) rows->below + first + j;
    __m512i v = load_64 (here), low = _mm512_setzero_si512 (), high = low;
    __m512i mask = load_64 (work->filtered_bytes + j);

    prefetch (below, out + first + j);
    add_pair_64 (v, _mm512_setzero_si512 (), centre, &low, &high);
    add_pair_64 (load_64 (above), load_64 (below), minus, &low, &high);
    add_pair_64 (load_64 (here - c), load_64 (here + c), minus, &low, &high);
    if (diagonal) {
      add_pair_64 (
          load_64 (above - c), load_64 (above + c), minus, &low, &high);
      add_pair_64 (
          load_64 (below - c), load_64 (below + c), minus, &low, &high);
    }
    _mm512_storeu_si512 (out + first + j,
        _mm512_ternarylogic_epi32 (mask, _mm512_packus_epi16 (low, high), v,
            0xca)); /* mask ? sharpened : v */
  }
}

#endif

/* --- rows -------------------------------------------------------------------
 */

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

/* The first or the last pixel of a row, for which a block is too long a way. */
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
sharpen_plain_row (
    const Work *work, const Rows *rows, uint8_t *out, BytesBlock bytes_block)
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
  /* Some bytes are made twice, so that no store but the first and the last
   * ones crosses a cache line. */
  bytes_block (work, rows, out, c);
  for (i = c + whole_pixels_to_line (out + c, c); i + BLOCK <= end; i += BLOCK)
    bytes_block (work, rows, out, i);
  bytes_block (work, rows, out, end - BLOCK);
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

/* The bands of all threads add to the same sums; integers, so in any order. */
INLINE void
sharpen_rows (Work *work, uint32_t first, uint32_t end, BytesBlock bytes_block)
{
  ImkLapsharpenSums band = {0};

  for (uint32_t y = first; y < end; y++) {
    Rows rows = {get_row (work, (int) y - 1), get_row (work, (int) y),
        get_row (work, (int) y + 1)};
    uint8_t *out = (uint8_t *) work->out->data + y * work->out->stride;
    uint64_t squares = 0; /* of a row: at most 2^18 * 2^38 */

    if (work->plain && rows.above && rows.below)
      sharpen_plain_row (work, &rows, out, bytes_block);
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

static void
sharpen_rows_any (void *work, uint32_t first, uint32_t end)
{
  sharpen_rows (work, first, end, bytes_block_any);
}

#if defined(__x86_64__)

AVX2 static void
sharpen_rows_avx2 (void *work, uint32_t first, uint32_t end)
{
  sharpen_rows (work, first, end, bytes_block_avx2);
}

AVX512 static void
sharpen_rows_avx512 (void *work, uint32_t first, uint32_t end)
{
  sharpen_rows (work, first, end, bytes_block_avx512);
}

#endif

static ImkBandFunc
choose_sharpen_rows (void)
{
#if defined(__x86_64__)
  if (__builtin_cpu_supports ("avx512bw") &&
      __builtin_cpu_supports ("avx512vl") &&
      __builtin_cpu_supports ("avx512dq"))
    return sharpen_rows_avx512;
  if (__builtin_cpu_supports ("avx2"))
    return sharpen_rows_avx2;
#endif
  return sharpen_rows_any;
}

/* --- the table --------------------------------------------------------------
 */

static ImkStatus
cpu_update (void *state, const ImkLapsharpenConfig *config, ImkError *error)
{
  State *self = state;

  self->rule = imk_lapsharpen_rule (config);
  self->plain = imk_lapsharpen_is_plain (&self->rule, config->type);
  return IMK_OK;
}

static ImkStatus
cpu_create (const ImkLapsharpenConfig *config, void **state, ImkError *error)
{
  State *self = calloc (1, sizeof (*self));

  if (!self)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for a CPU sharpener.");
  self->n_threads = config->n_threads;
  self->sharpen_rows = choose_sharpen_rows ();
  *state = self;
  return cpu_update (self, config, error);
}

static ImkStatus
cpu_process (void *state, const ImkImage *in, ImkImage *out, void *stream,
    ImkError *error)
{
  State *self = state;
  const ImkLapsharpenRule *rule = &self->rule;
  Work work = {.rule = rule, .in = in, .out = out, .plain = self->plain};
  size_t row_size = imk_image_row_size (in);

  for (uint32_t i = 0; i < BLOCK; i++) {
    uint32_t channel = i % rule->channels;

    work.filtered[i] = rule->filtered >> channel & 1 ? 0xffff : 0;
    work.filtered_bytes[i] = (uint8_t) work.filtered[i];
    work.measured[i] = rule->measured >> channel & 1 ? -1 : 0;
  }
  imk_parallel_for (self->n_threads, rule->height,
      1 + (uint32_t) (BAND_SIZE / row_size), self->sharpen_rows, &work);
  self->sums = work.sums;
  return IMK_OK;
}

static ImkStatus
cpu_get_sums (void *state, ImkLapsharpenSums *sums, ImkError *error)
{
  *sums = ((State *) state)->sums;
  return IMK_OK;
}

static void
cpu_destroy (void *state)
{
  free (state);
}

const ImkLapsharpenBackend imk_lapsharpen_cpu = {
    .abi = IMK_BACKEND_ABI,
    .name = "cpu",
    .create = cpu_create,
    .update = cpu_update,
    .process = cpu_process,
    .get_sums = cpu_get_sums,
    .destroy = cpu_destroy,
};
