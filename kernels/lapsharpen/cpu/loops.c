/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of a frame, compiled once for each instruction set:
 * IMK_ISA_TABLE: the name of its table
 * IMK_VECTOR_SIZE: bytes of its registers
 * A row is cut into chunks. Those inside are read and written in place; those
 * at its ends, and samples with unused bits, by way of copies. */
#include "lapsharpen/cpu/plain.h"

enum { CACHE_LINE = 64 };

/* --- one chunk -------------------------------------------------------------
 */

INLINE void
sharpen_u8 (const Work *work, const Rows *rows, uint32_t n, uint8_t *out,
    ImkLapsharpenSums *sums)
{
  const ImkLapsharpenRule *rule = work->rule;
  int16_t laplacian[CHUNK];
  float l[CHUNK];
  uint16_t sharpened[CHUNK];

  get_laplacian_u8 (rule, rows, laplacian);
  if (rule->measured)
    measure_u8 (work, laplacian, n, sums);
  if (rule->weight_channel >= 0)
    get_weighted_u8 (rule, rows, l);
  if (rule->adaptive && rule->weight_channel < 0)
    adapt (rule, rows, IMK_TYPE_U8, laplacian, L_I16, l);
  else if (rule->adaptive)
    adapt (rule, rows, IMK_TYPE_U8, l, L_F32, l);
  if (rule->kernel_size)
    correlate (rule, rows, IMK_TYPE_U8, sharpened);
  else if (rule->adaptive || rule->weight_channel >= 0)
    sharpen (rule, rows->row[HERE], IMK_TYPE_U8, l, L_F32, sharpened);
  else if (rule->multiple)
    sharpen_words (rule, rows->row[HERE], laplacian, sharpened);
  else
    sharpen (rule, rows->row[HERE], IMK_TYPE_U8, laplacian, L_I16, sharpened);
  merge (work, rows->row[HERE], IMK_TYPE_U8, sharpened, out);
  if (rule->local)
    clamp_local_u8 (work, rows, out);
}

INLINE void
sharpen_u16 (const Work *work, const Rows *rows, uint32_t n, uint16_t *out,
    ImkLapsharpenSums *sums)
{
  const ImkLapsharpenRule *rule = work->rule;
  int32_t laplacian[CHUNK];
  float l[CHUNK];
  uint16_t sharpened[CHUNK];

  get_laplacian_u16 (rule, rows, laplacian);
  if (rule->measured)
    measure_u16 (work, laplacian, n, sums);
  if (rule->weight_channel >= 0)
    get_weighted_u16 (rule, rows, l);
  if (rule->adaptive && rule->weight_channel < 0)
    adapt (rule, rows, IMK_TYPE_U16, laplacian, L_I32, l);
  else if (rule->adaptive)
    adapt (rule, rows, IMK_TYPE_U16, l, L_F32, l);
  if (rule->kernel_size)
    correlate (rule, rows, IMK_TYPE_U16, sharpened);
  else if (rule->adaptive || rule->weight_channel >= 0)
    sharpen (rule, rows->row[HERE], IMK_TYPE_U16, l, L_F32, sharpened);
  else
    sharpen (rule, rows->row[HERE], IMK_TYPE_U16, laplacian, L_I32, sharpened);
  merge (work, rows->row[HERE], IMK_TYPE_U16, sharpened, out);
  if (rule->local)
    clamp_local_u16 (work, rows, out);
}

/* @n: samples that are in the row; whole chunks are written */
static void
sharpen_chunks (const Work *work, const Rows *rows, uint32_t n, void *out,
    ImkLapsharpenSums *sums)
{
  const size_t size = imk_type_size (work->in->type);
  const uint32_t n_written = (n + CHUNK - 1) / CHUNK * CHUNK;
  const bool plain = HAVE_PLAIN && work->plain;

  if (plain)
    sharpen_bytes (work, rows, n_written, out);
  for (uint32_t i = 0; i < n; i += CHUNK) {
    const Rows at = rows_at (work->rule, rows, i * size);
    const uint32_t m = n - i < CHUNK ? n - i : CHUNK;
    void *to = (uint8_t *) out + i * size;

    if (plain && !work->rule->local)
      break;
    if (plain)
      clamp_local_u8 (work, &at, to);
    else if (work->in->type == IMK_TYPE_U8)
      sharpen_u8 (work, &at, m, to, sums);
    else
      sharpen_u16 (work, &at, m, to, sums);
  }
}

/* --- copies for the ends of rows -------------------------------------------
 */

/* The samples of a chunk with the pixels on either side, one row. */
typedef union Line {
  uint8_t bytes[CHUNK + 2 * 4 * REACH];
  uint16_t words[CHUNK + 2 * 4 * REACH];
} Line;

/* Copies the counts of @n samples from @first on to number @at of the line. */
INLINE void
copy_counts (const Work *work, const void *row, uint32_t first, uint32_t n,
    Line *line, uint32_t at)
{
  const uint32_t shift = work->rule->shift;
  const uint8_t *bytes = (const uint8_t *) row + first;
  const uint16_t *words = (const uint16_t *) row + first;

  if (!shift && work->in->type == IMK_TYPE_U8)
    memcpy (line->bytes + at, bytes, n);
  else if (work->in->type == IMK_TYPE_U8)
    for (uint32_t i = 0; i < n; i++)
      line->bytes[at + i] = bytes[i] >> shift;
  else
    for (uint32_t i = 0; i < n; i++)
      line->words[at + i] = words[i] >> shift;
}

static void
fill_counts (const Work *work, uint32_t n, Line *line, uint32_t at)
{
  for (uint32_t i = at; i < at + n; i++)
    if (work->in->type == IMK_TYPE_U8)
      line->bytes[i] = (uint8_t) work->rule->border_value;
    else
      line->words[i] = (uint16_t) work->rule->border_value;
}

/* Pixel @x left or right of a row, to number @at of the line. */
static void
copy_outside (const Work *work, const void *row, int x, Line *line, uint32_t at)
{
  const ImkLapsharpenRule *r = work->rule;
  int inside = imk_lapsharpen_inside (x, (int) r->width, r);

  if (r->constant)
    fill_counts (work, r->channels, line, at);
  else
    copy_counts (
        work, row, (uint32_t) inside * r->channels, r->channels, line, at);
}

/* Copies the @n samples from @first on and the pixels on either side, as
 * counts. Returns: the first of the samples */
static const void *
copy_line (
    const Work *work, const void *row, uint32_t first, uint32_t n, Line *line)
{
  const ImkLapsharpenRule *r = work->rule;
  const uint32_t c = r->channels, margin = r->reach * c, end = r->width * c;
  const uint32_t from = first < margin ? 0 : first - margin;
  const uint32_t to = first + n + margin < end ? first + n + margin : end;
  const size_t size = imk_type_size (work->in->type);
  const int left = (int) (first / c - r->reach);

  /* What is computed of the rest of the chunk is thrown away. */
  if (n < CHUNK)
    memset ((uint8_t *) line + (n + 2 * margin) * size, 0, (CHUNK - n) * size);
  if (!row)
    fill_counts (work, n + 2 * margin, line, 0);
  else {
    copy_counts (work, row, from, to - from, line, margin + from - first);
    for (int x = left; x < 0; x++)
      copy_outside (work, row, x, line, (uint32_t) (x - left) * c);
    for (int x = (int) r->width; x < (int) ((first + n + margin) / c); x++)
      copy_outside (work, row, x, line, (uint32_t) (x - left) * c);
  }
  return (uint8_t *) line + margin * size;
}

static void
sharpen_copies (const Work *work, const Rows *rows, uint32_t first, uint32_t n,
    void *out, ImkLapsharpenSums *sums)
{
  const size_t size = imk_type_size (work->out->type);
  const uint32_t shift = work->rule->shift;
  Line lines[IMK_LAPSHARPEN_MAX_KERNEL], sharpened;
  Rows copies = {};

  for (uint32_t i = HERE - work->rule->reach; i <= HERE + work->rule->reach;
       i++)
    copies.row[i] = copy_line (work, rows->row[i], first, n, &lines[i]);
  sharpen_chunks (work, &copies, n, &sharpened, sums);
  if (!shift)
    memcpy ((uint8_t *) out + first * size, &sharpened, n * size);
  else if (work->out->type == IMK_TYPE_U8)
    for (uint32_t i = 0; i < n; i++)
      ((uint8_t *) out)[first + i] = (uint8_t) (sharpened.bytes[i] << shift);
  else
    for (uint32_t i = 0; i < n; i++)
      ((uint16_t *) out)[first + i] = (uint16_t) (sharpened.words[i] << shift);
}

/* --- rows ------------------------------------------------------------------
 */

/* Returns: row @y, NULL where the border is constant */
static const void *
get_row (const Work *work, int y)
{
  const ImkLapsharpenRule *r = work->rule;
  int inside = imk_lapsharpen_inside (y, (int) r->height, r);

  if (r->constant && (y < 0 || y >= (int) r->height))
    return NULL;
  return (const uint8_t *) work->in->data + (size_t) inside * work->in->stride;
}

/* Returns: whole pixels of a first chunk after which the stores of the others
 * cross no cache line, where that is possible */
static uint32_t
first_chunk (const void *out, uint32_t channels, size_t size)
{
  uint32_t n = (uint32_t) (-(uintptr_t) out % CACHE_LINE / size);

  return n && n % channels == 0 ? n : CHUNK;
}

static void
sharpen_row (
    const Work *work, const Rows *rows, uint8_t *out, ImkLapsharpenSums *sums)
{
  const ImkLapsharpenRule *r = work->rule;
  const size_t size = imk_type_size (work->in->type);
  const uint32_t end = r->width * r->channels;
  const uint32_t margin = r->reach * r->channels;
  bool in_place = !r->shift;
  uint32_t first = 0, n = first_chunk (out, r->channels, size);

  for (uint32_t i = HERE - r->reach; i <= HERE + r->reach; i++)
    in_place = in_place && rows->row[i];
  for (; first < end; first += n, n = CHUNK) {
    uint32_t inside =
        end - first > margin ? (end - first - margin) / CHUNK * CHUNK : 0;

    if (in_place && first >= margin && inside) {
      const Rows at = rows_at (work->rule, rows, first * size);

      sharpen_chunks (work, &at, inside, out + first * size, sums);
      first += inside;
    }
    n = n < end - first ? n : end - first;
    sharpen_copies (work, rows, first, n, out, sums);
  }
}

/* All threads add to the same sums; they are integers, so in any order. */
static void
sharpen_rows (void *data, uint32_t first, uint32_t end)
{
  Work *work = data;
  ImkLapsharpenSums band = {0};

  for (uint32_t y = first; y < end; y++) {
    Rows rows = {};
    ImkLapsharpenSums sums = {0}; /* of a row: squares below 2^18 * 2^38 */

    for (uint32_t i = HERE - work->rule->reach; i <= HERE + work->rule->reach;
         i++)
      rows.row[i] = get_row (work, (int) (y + i) - HERE);
    sharpen_row (work, &rows,
        (uint8_t *) work->out->data + y * work->out->stride, &sums);
    band.sum += sums.sum;
    band.square_low += (uint32_t) sums.square_low;
    band.square_high += sums.square_low >> 32;
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
