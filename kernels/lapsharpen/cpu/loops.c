/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of a frame, compiled once for each instruction set and type of sample:
 * IMK_ISA_TABLE: the name of its table
 * IMK_VECTOR_SIZE: bytes of its registers
 * SAMPLE_BITS: 8 or 16
 * Chunks of a row, or vectors, are read and written in place. Its ends, and
 * samples with unused bits, go by way of copies. */
#include "lapsharpen/cpu/copies.h"
#include "lapsharpen/cpu/correlate.h"
#include "lapsharpen/cpu/smooth.h"
#include "lapsharpen/cpu/vectors.h"

/* --- chunks --------------------------------------------------------------- */

/* @n: samples that are in the row */
INLINE void
sharpen_chunk (Band *band, const Rows *rows, uint32_t n, Sample *out)
{
  const ImkLapsharpenRule *rule = band->rule;
  const Sample *here = rows->row[HERE];
  const bool smooth = rule->smooth.step, weighted = rule->weight_channel >= 0;
  Laplacian laplacian[CHUNK];
  float l[CHUNK];
  uint16_t sharpened[CHUNK];
  Source source = {laplacian, l};

  if (!smooth || rule->measured)
    get_laplacian (rule, rows, laplacian);
  if (rule->measured)
    measure (band, laplacian, n);
  if (smooth && weighted)
    get_visible_detail (band, rows, l);
  else if (weighted)
    get_weighted (rule, rows, l);
  else if (rule->adaptive)
    for (uint32_t i = 0; i < CHUNK; i++)
      l[i] = laplacian[i];
  if (rule->adaptive)
    adapt (rule, rows, l);
  if (smooth)
    source.smooth = smooth_at (band, rows);
  if (rule->kernel_size)
    correlate (rule, rows, sharpened);
  else if (rule->adaptive || weighted)
    sharpen (rule, here, &source, FRACTION, sharpened);
  else if (smooth)
    sharpen (rule, here, &source, SMOOTH, sharpened);
  else if (SAMPLE_BITS == 8 && rule->multiple)
    sharpen_words (rule, here, laplacian, sharpened);
  else
    sharpen (rule, here, &source, WHOLE, sharpened);
  merge (band, here, sharpened, out);
  if (rule->local)
    clamp_local (band, rows, out);
  if (rule->limited)
    keep_range (band, here, out);
}

/* Writes whole chunks until at least @n samples are written. */
static void
sharpen_chunks (Band *band, const Rows *rows, uint32_t n, Sample *out)
{
  for (uint32_t i = 0; i < n; i += CHUNK) {
    const Rows at = rows_at (band->rule, rows, i);

    sharpen_chunk (band, &at, LEAST (n - i, CHUNK), out + i);
  }
}

/* --- copies for the ends of rows ------------------------------------------ */

/* Samples @first to @end. What is computed of the rest of a chunk is thrown
 * away. */
static void
sharpen_copies (
    Band *band, const Rows *rows, uint32_t first, uint32_t end, Sample *out)
{
  const ImkLapsharpenRule *rule = band->rule;
  const uint32_t c = rule->channels, reach = rule->reach;

  for (; first < end; first += CHUNK) {
    const uint32_t n = LEAST (end - first, CHUNK);
    Sample sharpened[CHUNK];
    Rows copies = {.first = first};

    for (uint32_t i = HERE - reach; i <= HERE + reach; i++) {
      copy_pixels (rule, rows->row[i], (int) (first / c) - (int) reach,
          (int) (n / c + 2 * reach), band->lines[i].samples);
      copies.row[i] = band->lines[i].samples + reach * c;
    }
    if (band->way == CHUNKS)
      sharpen_chunks (band, &copies, n, sharpened);
    else
      sharpen_vectors (
          band, &copies, 0, (n + STEP - 1) / STEP * STEP, sharpened);
    if (!rule->shift)
      memcpy (out + first, sharpened, n * sizeof (Sample));
    else
      for (uint32_t i = 0; i < n; i++)
        out[first + i] = (Sample) (sharpened[i] << rule->shift);
  }
}

/* --- rows ----------------------------------------------------------------- */

static void
sharpen_row (Band *band, const Rows *rows, Sample *out)
{
  const ImkLapsharpenRule *r = band->rule;
  const uint32_t end = r->width * r->channels;
  const uint32_t margin = r->reach * r->channels;
  bool in_place = !r->shift && end >= 2 * CHUNK;
  uint32_t first = 0, last = 0;

  for (uint32_t i = HERE - r->reach; i <= HERE + r->reach; i++)
    in_place = in_place && rows->row[i];
  if (in_place && band->way == CHUNKS) {
    Rows at;

    /* After the left end, chunks fit up to the right margin. */
    first = (end - margin) % CHUNK;
    first += first < margin ? CHUNK : 0;
    last = end - margin;
    at = rows_at (r, rows, first);
    sharpen_copies (band, rows, 0, first, out);
    sharpen_chunks (band, &at, last - first, out + first);
  } else if (in_place) {
    sharpen_row_by_vectors (band, rows, end, out);
    return;
  }
  sharpen_copies (band, rows, last, end, out);
}

/* --- areas and masks ------------------------------------------------------ */

/* Returns: where the areas that pixel @x is in, or is not in, change */
static uint32_t
end_of_run (const ImkLapsharpenRule *rule, uint32_t x, uint32_t y)
{
  uint32_t end = rule->width;

  for (uint32_t i = 0; i < rule->n_areas; i++) {
    const ImkLapsharpenArea *a = &rule->areas[i];
    const uint64_t right = (uint64_t) a->x + a->width;

    if (y < a->y || y - a->y >= a->height)
      continue;
    if (a->x > x && a->x < end)
      end = a->x;
    if (right > x && right < end)
      end = (uint32_t) right;
  }
  return end;
}

/* Gives back what a row of @out is not to change of @in. */
static void
restore_row (
    const Work *work, uint32_t y, const Sample *in, Sample *restrict out)
{
  const ImkLapsharpenRule *rule = work->rule;
  const uint32_t c = rule->channels;
  const uint8_t *mask =
      work->mask ? work->mask + (size_t) y * rule->width : NULL;

  for (uint32_t x = 0, end; x < rule->width; x = end) {
    end = end_of_run (rule, x, y);
    if (!imk_lapsharpen_in_areas (rule, x, y))
      memcpy (out + x * c, in + x * c, (end - x) * c * sizeof (Sample));
    else if (mask)
      for (uint32_t i = x * c; i < end * c; i++)
        out[i] =
            (Sample) imk_lapsharpen_mixed (rule, in[i], out[i], mask[i / c]);
  }
}

static bool
is_row_in_areas (const ImkLapsharpenRule *rule, uint32_t y)
{
  for (uint32_t i = 0; i < rule->n_areas; i++)
    if (y >= rule->areas[i].y && y - rule->areas[i].y < rule->areas[i].height)
      return true;
  return rule->n_areas == 0;
}

/* --- bands ---------------------------------------------------------------- */

static Band
make_band (const Work *work)
{
  const ImkLapsharpenRule *rule = work->rule;
  const int c = (int) rule->channels, width = (int) rule->width;
  Band band = {.work = work, .rule = rule, .way = choose_way (work)};

  for (uint32_t i = 0; i < CHUNK; i++)
    band.measured[i] = rule->measured >> i % rule->channels & 1 ? -1 : 0;
  for (uint32_t i = 0; i < PERIOD; i++) {
    const uint32_t channel = i % rule->channels;

    band.filtered[i] = (Sample) (rule->filtered >> channel & 1 ? -1 : 0);
    band.low[i] = (Sample) rule->low[channel];
    band.high[i] = (Sample) rule->high[channel];
  }
  for (int i = 0; i < (int) rule->reach * c; i++) {
    const int x = i / c - (int) rule->reach;

    band.beside[0][i] = imk_lapsharpen_inside (x, width, rule) * c + i % c;
    band.beside[1][i] =
        imk_lapsharpen_inside (width + i / c, width, rule) * c + i % c;
  }
  return band;
}

/* All threads add to the same sums; they are integers, so in any order. */
static void
sharpen_rows (void *data, uint32_t first, uint32_t end)
{
  Work *work = data;
  Band band = make_band (work);
  const Plan plan = make_plan (work, band.way);
  ImkLapsharpenSums sums = {0};
  float *memory = NULL;
  Smoother smoother;
  MadeRows made;

  band.plan = &plan;
  if (band.rule->smooth.step) {
    memory = imk_pool_take (work->pool);
    start_smoother (&smoother, work, first, memory);
  } else if (band.way == LINES) {
    memory = imk_pool_take (work->pool);
    made = start_made_rows (work, &plan, memory);
  }
  for (uint32_t y = first; y < end; y++) {
    Sample *out =
        (Sample *) ((uint8_t *) work->out->data + y * work->out->stride);
    Rows rows = {};

    if (!band.rule->measured && !is_row_in_areas (band.rule, y)) {
      memcpy (out, get_row (work, (int) y), imk_image_row_size (work->in));
      continue;
    }
    for (uint32_t i = HERE - band.rule->reach; i <= HERE + band.rule->reach;
         i++)
      rows.row[i] = get_row (work, (int) (y + i) - HERE);
    if (band.way == LINES)
      band.made = get_made_row (&made, (int) y);
    else if (memory)
      smooth_row (&smoother, y, &band.grown);
    band.sums.square_low = 0; /* of a row: squares below 2^18 * 2^38 */
    if (band.made != out)
      sharpen_row (&band, &rows, out);
    if (work->mask || band.rule->n_areas)
      restore_row (work, y, rows.row[HERE], out);
    sums.square_low += (uint32_t) band.sums.square_low;
    sums.square_high += band.sums.square_low >> 32;
  }
  if (memory)
    imk_pool_give (work->pool, memory);
  if (band.rule->measured) {
    __atomic_fetch_add (&work->sums.sum, band.sums.sum, __ATOMIC_RELAXED);
    __atomic_fetch_add (
        &work->sums.square_low, sums.square_low, __ATOMIC_RELAXED);
    __atomic_fetch_add (
        &work->sums.square_high, sums.square_high, __ATOMIC_RELAXED);
  }
}

/* Returns: the sum of |N| over @n samples. N is the second difference of rows,
 * and then that of columns. */
INLINE int32_t
sum_noise (const ImkLapsharpenRule *rule, const Sample *a, const Sample *h,
    const Sample *b, const Laplacian *counts, ptrdiff_t n)
{
  const ptrdiff_t c = rule->channels;
  const uint32_t shift = rule->shift;
  Laplacian rows[WIDE];
  int32_t sum = 0; /* below 192 * 2^19 */

  for (ptrdiff_t i = 0; i < n + 2 * c; i++)
    rows[i] =
        (Laplacian) ((a[i] >> shift) + (b[i] >> shift) - 2 * (h[i] >> shift));
  for (ptrdiff_t i = 0; i < n; i++) {
    Laplacian value = (Laplacian) (rows[i] + rows[i + 2 * c] - 2 * rows[i + c]);

    sum += (Laplacian) ((value < 0 ? -value : value) & counts[i]);
  }
  return sum;
}

/* Adds up |N| of the samples that have 8 neighbours, see imk/lapsharpen.h. */
static void
measure_noise (void *data, uint32_t first, uint32_t end)
{
  Work *work = data;
  const ImkLapsharpenRule *rule = work->rule;
  const uint32_t n = (rule->width - 2) * rule->channels;
  Laplacian counts[CHUNK];
  uint64_t sum = 0;

  for (uint32_t i = 0; i < CHUNK; i++)
    counts[i] = rule->noisy >> i % rule->channels & 1 ? -1 : 0;
  for (int y = (int) first; y < (int) end; y++) {
    const Sample *a = get_row (work, y), *h = get_row (work, y + 1);
    const Sample *b = get_row (work, y + 2);
    uint32_t i = 0;

    for (; i + CHUNK <= n; i += CHUNK)
      sum += (uint64_t) sum_noise (rule, a + i, h + i, b + i, counts, CHUNK);
    sum += (uint64_t) sum_noise (rule, a + i, h + i, b + i, counts, n - i);
  }
  __atomic_fetch_add (&work->noise, sum, __ATOMIC_RELAXED);
}

const ImkLapsharpenLoops IMK_ISA_TABLE = {
    .sharpen_rows = sharpen_rows,
    .measure_noise = measure_noise,
};
