/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of a frame, compiled once for each instruction set and type of sample:
 * IMK_ISA_TABLE: the name of its table
 * IMK_VECTOR_SIZE: bytes of its registers
 * SAMPLE_BITS: 8 or 16
 * Chunks of a row are read and written in place. Its ends, and samples with
 * unused bits, go by way of copies. */
#include "lapsharpen/cpu/plain.h"
#include "lapsharpen/cpu/smooth.h"

enum { CACHE_LINE = 64 };

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
}

/* Writes whole chunks, or vectors, until at least @n samples are written. */
static void
sharpen_chunks (Band *band, const Rows *rows, uint32_t n, Sample *out)
{
  const bool plain = HAVE_PLAIN && band->work->plain;

  if (plain)
    sharpen_bytes (band, rows, n, out);
  for (uint32_t i = 0; i < n && (!plain || band->rule->local); i += CHUNK) {
    const Rows at = rows_at (band->rule, rows, i);

    if (plain)
      clamp_local (band, &at, out + i);
    else
      sharpen_chunk (band, &at, LEAST (n - i, CHUNK), out + i);
  }
}

/* --- copies for the ends of rows ------------------------------------------ */

/* Copies the counts of @n samples. */
INLINE void
copy_counts (
    const ImkLapsharpenRule *rule, const Sample *from, uint32_t n, Sample *to)
{
  if (!rule->shift)
    memcpy (to, from, n * sizeof (Sample));
  else
    for (uint32_t i = 0; i < n; i++)
      to[i] = (Sample) (from[i] >> rule->shift);
}

/* Copies @n pixels from pixel @x of a row on, which may be outside; the row is
 * NULL where the border is constant. */
static void
copy_pixels (
    const ImkLapsharpenRule *rule, const Sample *row, int x, int n, Sample *to)
{
  const uint32_t c = rule->channels;
  const int width = (int) rule->width;

  for (int end = x + n; x < end; to += c, x++) {
    const bool outside = x < 0 || x >= width;

    if (!row || (outside && rule->constant))
      for (uint32_t i = 0; i < c; i++)
        to[i] = (Sample) rule->border_value;
    else if (outside)
      copy_counts (rule,
          row + c * (uint32_t) imk_lapsharpen_inside (x, width, rule), c, to);
    else {
      const uint32_t m = (uint32_t) (LEAST (end, width) - x);

      copy_counts (rule, row + c * (uint32_t) x, c * m, to);
      to += c * (m - 1);
      x += (int) m - 1;
    }
  }
}

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
    sharpen_chunks (band, &copies, n, sharpened);
    if (!rule->shift)
      memcpy (out + first, sharpened, n * sizeof (Sample));
    else
      for (uint32_t i = 0; i < n; i++)
        out[first + i] = (Sample) (sharpened[i] << rule->shift);
  }
}

/* --- rows ----------------------------------------------------------------- */

/* Returns: whole pixels at the left end, at least @margin samples. After them
 * chunks fit up to the right margin, or, of bytes, the stores of vectors cross
 * no cache line, where that is possible. */
static uint32_t
left_end (const Band *band, const Sample *out, uint32_t margin, uint32_t end,
    bool plain)
{
  uint32_t n = (end - margin) % CHUNK;

  if (!plain)
    return n < margin ? n + CHUNK : n;
  for (n = -(uintptr_t) out % CACHE_LINE; n < CHUNK; n += CACHE_LINE)
    if (n >= margin && n % band->rule->channels == 0)
      return n;
  return CHUNK;
}

static void
sharpen_row (Band *band, const Rows *rows, Sample *out)
{
  const ImkLapsharpenRule *r = band->rule;
  const uint32_t end = r->width * r->channels;
  const uint32_t margin = r->reach * r->channels;
  const bool plain = HAVE_PLAIN && band->work->plain;
  /* whole pixels */
  const uint32_t unit =
      plain && !r->local && r->channels != 3 ? IMK_VECTOR_SIZE : CHUNK;
  bool in_place = !r->shift && end >= 2 * CHUNK;
  uint32_t first = 0, n = 0;

  for (uint32_t i = HERE - r->reach; i <= HERE + r->reach; i++)
    in_place = in_place && rows->row[i];
  if (in_place) {
    Rows at;

    first = left_end (band, out, margin, end, plain);
    at = rows_at (r, rows, first);
    n = (end - margin - first) / unit * unit;
    sharpen_copies (band, rows, 0, first, out);
    sharpen_chunks (band, &at, n, out + first);
  }
  sharpen_copies (band, rows, first + n, end, out);
}

static Band
make_band (const Work *work)
{
  const ImkLapsharpenRule *rule = work->rule;
  Band band = {.work = work, .rule = rule};

  for (uint32_t i = 0; i < CHUNK; i++) {
    const uint32_t channel = i % rule->channels;

    band.filtered[i] = (Sample) (rule->filtered >> channel & 1 ? -1 : 0);
    band.measured[i] = rule->measured >> channel & 1 ? -1 : 0;
  }
  return band;
}

/* All threads add to the same sums; they are integers, so in any order. */
static void
sharpen_rows (void *data, uint32_t first, uint32_t end)
{
  Work *work = data;
  Band band = make_band (work);
  ImkLapsharpenSums sums = {0};
  Scratch *scratch = NULL;
  Smoother smoother;

  if (band.rule->smooth.step) {
    scratch = imk_lapsharpen_take_scratch (work->scratch);
    start_smoother (&smoother, work, first, scratch->memory);
  }
  for (uint32_t y = first; y < end; y++) {
    Rows rows = {};

    for (uint32_t i = HERE - band.rule->reach; i <= HERE + band.rule->reach;
         i++)
      rows.row[i] = get_row (work, (int) (y + i) - HERE);
    if (scratch)
      smooth_row (&smoother, y, &band.grown);
    band.sums.square_low = 0; /* of a row: squares below 2^18 * 2^38 */
    sharpen_row (&band, &rows,
        (Sample *) ((uint8_t *) work->out->data + y * work->out->stride));
    sums.square_low += (uint32_t) band.sums.square_low;
    sums.square_high += band.sums.square_low >> 32;
  }
  if (scratch)
    imk_lapsharpen_give_back_scratch (scratch);
  if (band.rule->measured) {
    __atomic_fetch_add (&work->sums.sum, band.sums.sum, __ATOMIC_RELAXED);
    __atomic_fetch_add (
        &work->sums.square_low, sums.square_low, __ATOMIC_RELAXED);
    __atomic_fetch_add (
        &work->sums.square_high, sums.square_high, __ATOMIC_RELAXED);
  }
}

const ImkLapsharpenLoops IMK_ISA_TABLE = {.sharpen_rows = sharpen_rows};
