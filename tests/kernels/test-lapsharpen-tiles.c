/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Focus measures of tiles against their definition, sample by sample. */
#include "core/sample.h"
#include "kernel-test.h"

#include <math.h>
#include <stdlib.h>

#include "imk/lapsharpen-tiles.h"

typedef struct Case {
  ImkType type;
  uint32_t width, height, channels, padding, shift, mask, columns, rows;
} Case;

static const Case cases[] = {
    {IMK_TYPE_U8, 64, 48, 1, 0, 0, 1, 1, 1},
    {IMK_TYPE_U8, 67, 43, 4, 5, 0, 7, 5, 4},
    {IMK_TYPE_U16, 31, 29, 1, 2, 6, 1, 7, 3},
    {IMK_TYPE_U16, 40, 40, 3, 0, 0, 2, 40, 40},
    {IMK_TYPE_U8, 1, 1, 1, 0, 0, 1, 1, 1},
    {IMK_TYPE_U16, 2, 64, 1, 0, 0, 1, 2, 64},
};

static double
sample (const Case *k, const ImkImage *in, int x, int y, uint32_t channel)
{
  int column = x < 0 ? 0 : x >= (int) k->width ? (int) k->width - 1 : x;
  int row = y < 0 ? 0 : y >= (int) k->height ? (int) k->height - 1 : y;
  const uint8_t *line = (const uint8_t *) in->data + (size_t) row * in->stride;
  size_t at = (size_t) column * k->channels + channel;

  return (k->type == IMK_TYPE_U8
                 ? line[at]
                 : ((const uint16_t *) (const void *) line)[at]) >>
         k->shift;
}

static ImkLapsharpenTile
definition (const Case *k, const ImkImage *in, uint32_t column, uint32_t row)
{
  int x0 = (int) (column * k->width / k->columns);
  int x1 = (int) ((column + 1) * k->width / k->columns);
  int y0 = (int) (row * k->height / k->rows);
  int y1 = (int) ((row + 1) * k->height / k->rows);
  double sum = 0, squares = 0, n = 0;
  ImkLapsharpenTile tile = {0};

  for (uint32_t c = 0; c < k->channels; c++)
    for (int y = y0; k->mask >> c & 1 && y < y1; y++)
      for (int x = x0; x < x1; x++) {
        double v[3][3], l, gx, gy, b;

        for (int j = 0; j < 3; j++)
          for (int i = 0; i < 3; i++)
            v[j][i] = sample (k, in, x + i - 1, y + j - 1, c);
        l = 4 * v[1][1] - v[0][1] - v[2][1] - v[1][0] - v[1][2];
        gx = v[0][2] + 2 * v[1][2] + v[2][2] - v[0][0] - 2 * v[1][0] - v[2][0];
        gy = v[2][0] + 2 * v[2][1] + v[2][2] - v[0][0] - 2 * v[0][1] - v[0][2];
        b = sample (k, in, x + 2, y, c) - v[1][1];
        sum += l;
        squares += l * l;
        tile.tenengrad += gx * gx + gy * gy;
        tile.brenner += b * b;
        n++;
      }
  tile.variance = squares / n - sum / n * (sum / n);
  tile.tenengrad /= n;
  tile.brenner /= n;
  return tile;
}

static void
check_near (const char *what, double found, double expected)
{
  test_check (fabs (found - expected) <= 1e-12 * (1 + fabs (expected)),
      "%s is %.17g, expected %.17g", what, found, expected);
}

static void
check_case (const Case *k, uint32_t n_threads)
{
  TestImage in =
      test_image_new (k->type, k->width, k->height, k->channels, k->padding);
  ImkLapsharpenTile *tiles = malloc (k->columns * k->rows * sizeof (*tiles));

  test_image_fill (
      &in, FILL_NOISE, k->type == IMK_TYPE_U8 ? 255 : 65535, k->width);
  test_ok (imk_lapsharpen_measure_tiles (&in.image,
      IMK_LAPSHARPEN_STORAGE_NATIVE, k->shift, k->mask, k->columns, k->rows,
      n_threads, tiles, test_new_error ()));
  for (uint32_t r = 0; r < k->rows; r++)
    for (uint32_t c = 0; c < k->columns; c++) {
      const ImkLapsharpenTile *found = &tiles[r * k->columns + c];
      ImkLapsharpenTile expected = definition (k, &in.image, c, r);

      check_near ("variance", found->variance, expected.variance);
      check_near ("tenengrad", found->tenengrad, expected.tenengrad);
      check_near ("brenner", found->brenner, expected.brenner);
    }
  free (tiles);
  test_image_free (&in);
}

TEST (test_tiles_are_their_definition, "tiles are their definition")
{
  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++)
    for (uint32_t n_threads = 1; n_threads <= 3; n_threads += 2)
      check_case (&cases[i], n_threads);
}

/* The largest samples that there are: sums must not run over. */
TEST (test_largest_samples, "the largest samples fit")
{
  enum { N = 2048 };
  TestImage in = test_image_new (IMK_TYPE_U16, N, N, 1, 0);
  ImkLapsharpenTile tile;

  test_image_fill (&in, FILL_CHECKERBOARD, 65535, 0);
  test_ok (imk_lapsharpen_measure_tiles (&in.image,
      IMK_LAPSHARPEN_STORAGE_NATIVE, 0, 1, 1, 1, 1, &tile, test_new_error ()));
  /* 4 x 65535 inside, of either sign, and less at the border */
  test_check (tile.variance > 0.99 * 16 * 65535. * 65535 &&
                  tile.variance <= 16 * 65535. * 65535,
      "%g", tile.variance);
  test_image_free (&in);
}

TEST (test_storage, "samples count, not how they are stored")
{
  enum { N = 9 };
  TestImage native = test_image_new (IMK_TYPE_U16, N, N, 1, 0);
  TestImage swapped = test_image_new (IMK_TYPE_U16, N, N, 1, 0);
  TestImage packed = test_image_new (IMK_TYPE_U16, N, N, 2, 0);
  ImkLapsharpenTile tile, other;

  test_image_fill (&native, FILL_NOISE, 1023, 1);
  for (uint32_t y = 0; y < N; y++)
    for (uint32_t x = 0; x < N; x++) {
      uint32_t v = (uint32_t) imk_sample_get (&native.image, x, y, 0);

      imk_sample_put (&swapped.image, x, y, 0, (v << 8 & 0xff00) | v >> 8);
      imk_sample_put (&packed.image, x, y, 0, v << 10 & 0xffff);
      imk_sample_put (&packed.image, x, y, 1, v >> 6);
    }
  test_ok (imk_lapsharpen_measure_tiles (&native.image,
      IMK_LAPSHARPEN_STORAGE_NATIVE, 0, 1, 1, 1, 1, &tile, test_new_error ()));
  test_ok (imk_lapsharpen_measure_tiles (&swapped.image,
      IMK_LAPSHARPEN_STORAGE_BIG_ENDIAN, 0, 1, 1, 1, 1, &other,
      test_new_error ()));
  check_near ("variance of swapped bytes", other.variance, tile.variance);
  check_near ("brenner of swapped bytes", other.brenner, tile.brenner);
  test_ok (imk_lapsharpen_measure_tiles (&packed.image,
      IMK_LAPSHARPEN_STORAGE_PACKED_10, 0, 2, 1, 1, 1, &other,
      test_new_error ()));
  check_near ("variance of packed bits", other.variance, tile.variance);
  check_near ("tenengrad of packed bits", other.tenengrad, tile.tenengrad);
  test_image_free (&native);
  test_image_free (&swapped);
  test_image_free (&packed);
}

TEST (test_grids_that_do_not_fit, "grids that do not fit are refused")
{
  TestImage in = test_image_new (IMK_TYPE_U8, 8, 8, 1, 0);
  ImkLapsharpenTile tile;

  for (uint32_t i = 0; i < 3; i++)
    test_error (
        imk_lapsharpen_measure_tiles (&in.image, IMK_LAPSHARPEN_STORAGE_NATIVE,
            0, 1, (const uint32_t[]){0, 9, 1}[i],
            (const uint32_t[]){1, 1, 65}[i], 1, &tile, test_new_error ()),
        IMK_ERROR_CONFIG, "cannot be divided");
  test_image_free (&in);
}
