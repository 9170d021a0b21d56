/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/lapsharpen-tiles.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "imk/parallel.h"
#include "lapsharpen/lapsharpen-stage.h"

/* Of one tile. Those of a row of 65535 samples fit 53 bits; a sum of rows may
 * need more than 64. */
typedef struct Sums {
  __extension__ __int128 laplacian, squares, tenengrad, brenner;
  uint64_t n;
} Sums;

typedef struct Work {
  const ImkImage *in;
  ImkLapsharpenStage stage;
  uint32_t channel_mask, columns, rows;
  ImkLapsharpenTile *tiles;
  int32_t *lines; /* [rows][3][BEFORE + width + AFTER] */
} Work;

enum { BEFORE = 1, AFTER = 2 }; /* samples beside a line that are looked at */

static size_t
line_size (const Work *w)
{
  return (size_t) w->in->width + BEFORE + AFTER;
}

/* One channel of row @y, with what lies beside it. Row -1 is row 0, and so at
 * the end. */
static void
unpack (const Work *w, uint32_t channel, int64_t y, int32_t *line)
{
  const ImkImage *in = w->in;
  int64_t last = (int64_t) in->height - 1;
  int64_t row = y < 0 ? 0 : y > last ? last : y;
  const uint8_t *bytes = (const uint8_t *) in->data + (size_t) row * in->stride;
  const uint16_t *words = (const uint16_t *) (const void *) bytes;

  line += BEFORE;
  for (uint32_t x = 0; x < in->width; x++) {
    size_t at = (size_t) x * in->channels + channel;

    if (w->stage.storage != IMK_LAPSHARPEN_STORAGE_NATIVE)
      line[x] =
          (int32_t) imk_lapsharpen_get_count (&w->stage, bytes, x, channel);
    else
      line[x] =
          (in->type == IMK_TYPE_U8 ? bytes[at] : words[at]) >> w->stage.shift;
  }
  line[-1] = line[0];
  line[in->width] = line[in->width + 1] = line[in->width - 1];
}

/* The columns @from to @to of the row in the middle of three. */
static void
add_row (const int32_t *above, const int32_t *row, const int32_t *below,
    uint32_t from, uint32_t to, Sums *sums)
{
  int64_t laplacian = 0, squares = 0, tenengrad = 0, brenner = 0;

  for (uint32_t x = from + BEFORE; x < to + BEFORE; x++) {
    int64_t l = 4 * row[x] - row[x - 1] - row[x + 1] - above[x] - below[x];
    int64_t gx = above[x + 1] - above[x - 1] + 2 * (row[x + 1] - row[x - 1]) +
                 below[x + 1] - below[x - 1];
    int64_t gy = below[x - 1] - above[x - 1] + 2 * (below[x] - above[x]) +
                 below[x + 1] - above[x + 1];
    int64_t b = row[x + 2] - row[x];

    laplacian += l;
    squares += l * l;
    tenengrad += gx * gx + gy * gy;
    brenner += b * b;
  }
  sums->laplacian += laplacian;
  sums->squares += squares;
  sums->tenengrad += tenengrad;
  sums->brenner += brenner;
  sums->n += to - from;
}

static uint32_t
edge (uint32_t i, uint32_t n, uint32_t size)
{
  return (uint32_t) ((uint64_t) i * size / n);
}

/* All tiles of one row of tiles. */
static void
measure_row (const Work *w, uint32_t r)
{
  size_t size = line_size (w);
  int32_t *lines[3];
  Sums sums[IMK_LAPSHARPEN_MAX_TILES] = {0};

  for (uint32_t i = 0; i < 3; i++)
    lines[i] = w->lines + (3 * (size_t) r + i) * size;
  for (uint32_t channel = 0; channel < w->in->channels; channel++) {
    uint32_t first = edge (r, w->rows, w->in->height);
    uint32_t end = edge (r + 1, w->rows, w->in->height);

    if (!(w->channel_mask >> channel & 1))
      continue;
    unpack (w, channel, (int64_t) first - 1, lines[0]);
    unpack (w, channel, first, lines[1]);
    for (uint32_t y = first; y < end; y++) {
      int32_t *above = lines[0];

      unpack (w, channel, (int64_t) y + 1, lines[2]);
      for (uint32_t c = 0; c < w->columns; c++)
        add_row (lines[0], lines[1], lines[2],
            edge (c, w->columns, w->in->width),
            edge (c + 1, w->columns, w->in->width), &sums[c]);
      lines[0] = lines[1];
      lines[1] = lines[2];
      lines[2] = above;
    }
  }
  for (uint32_t c = 0; c < w->columns; c++) {
    const Sums *s = &sums[c];
    ImkLapsharpenTile *tile = &w->tiles[r * w->columns + c];
    double n = (double) s->n;

    *tile = (ImkLapsharpenTile){0};
    if (s->n == 0)
      continue;
    tile->variance =
        (double) (s->n * s->squares - s->laplacian * s->laplacian) / (n * n);
    tile->tenengrad = (double) s->tenengrad / n;
    tile->brenner = (double) s->brenner / n;
  }
}

/* --- float32 -------------------------------------------------------------- */

/* Sample (@x, @y) of float32, or the nearest one of the frame. */
static double
value_at (const ImkImage *in, int64_t x, int64_t y, uint32_t channel)
{
  const int64_t right = (int64_t) in->width - 1;
  const int64_t bottom = (int64_t) in->height - 1;
  const int64_t row = y < 0 ? 0 : y > bottom ? bottom : y;
  const int64_t column = x < 0 ? 0 : x > right ? right : x;
  const uint8_t *bytes = (const uint8_t *) in->data + (size_t) row * in->stride;

  return (double) ((const float *) (const void *)
          bytes)[(size_t) column * in->channels + channel];
}

/* Adds what is finite. @v: the 3x3 window, column by column; @second: the
 * sample two columns to the right */
static void
add_floats (const double v[3][3], double second, double sums[4], double *n)
{
  const double l = 4 * v[1][1] - v[0][1] - v[2][1] - v[1][0] - v[1][2];
  const double gx =
      v[2][0] - v[0][0] + 2 * (v[2][1] - v[0][1]) + v[2][2] - v[0][2];
  const double gy =
      v[0][2] - v[0][0] + 2 * (v[1][2] - v[1][0]) + v[2][2] - v[2][0];
  const double b = second - v[1][1], all = l * l + gx * gx + gy * gy + b * b;

  if (!isfinite (all))
    return;
  sums[0] += l;
  sums[1] += l * l;
  sums[2] += gx * gx + gy * gy;
  sums[3] += b * b;
  (*n)++;
}

static void
measure_float_tile (const Work *w, uint32_t column, uint32_t row)
{
  const int64_t left = edge (column, w->columns, w->in->width);
  const int64_t right = edge (column + 1, w->columns, w->in->width);
  const int64_t top = edge (row, w->rows, w->in->height);
  const int64_t bottom = edge (row + 1, w->rows, w->in->height);
  ImkLapsharpenTile *tile = &w->tiles[row * w->columns + column];
  double sums[4] = {0}, n = 0, mean;

  for (uint32_t c = 0; c < w->in->channels; c++)
    for (int64_t y = top; y < bottom && w->channel_mask >> c & 1; y++)
      for (int64_t x = left; x < right; x++) {
        double v[3][3];

        for (int i = 0; i < 9; i++)
          v[i / 3][i % 3] = value_at (w->in, x + i / 3 - 1, y + i % 3 - 1, c);
        add_floats (v, value_at (w->in, x + 2, y, c), sums, &n);
      }
  *tile = (ImkLapsharpenTile){0};
  if (n == 0)
    return;
  mean = sums[0] / n;
  tile->variance = fmax (sums[1] / n - mean * mean, 0);
  tile->tenengrad = sums[2] / n;
  tile->brenner = sums[3] / n;
}

static void
measure_rows (void *data, uint32_t first, uint32_t end)
{
  const Work *w = data;

  for (uint32_t r = first; r < end; r++)
    if (w->in->type == IMK_TYPE_F32)
      for (uint32_t c = 0; c < w->columns; c++)
        measure_float_tile (w, c, r);
    else
      measure_row (w, r);
}

ImkStatus
imk_lapsharpen_measure_tiles (const ImkImage *in, ImkLapsharpenStorage storage,
    uint32_t shift, uint32_t channel_mask, uint32_t columns, uint32_t rows,
    uint32_t n_threads, ImkLapsharpenTile *tiles, ImkError *error)
{
  Work w = {in,
      {.type = in->type,
          .storage = storage,
          .channels = in->channels,
          .shift = shift},
      channel_mask, columns, rows, tiles, NULL};

  if (columns < 1 || rows < 1 || columns > IMK_LAPSHARPEN_MAX_TILES ||
      rows > IMK_LAPSHARPEN_MAX_TILES || columns > in->width ||
      rows > in->height)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "A frame of %ux%u cannot be divided into %u x %u tiles; there can be 1 "
        "to %u along a side, not more than pixels.",
        in->width, in->height, columns, rows, IMK_LAPSHARPEN_MAX_TILES);
  w.lines = malloc (3 * rows * line_size (&w) * sizeof (*w.lines));
  if (!w.lines)
    return IMK_NO_MEMORY (
        error, "for the lines of a frame of %u columns.", in->width);
  imk_parallel_for (n_threads, rows, 1, measure_rows, &w);
  free (w.lines);
  return IMK_OK;
}
