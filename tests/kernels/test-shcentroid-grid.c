/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The grid finder against drawn lattices with noise, and on the lamp frame. */
#include "sh-common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imk/shcentroid-fit.h"
#include "imk/shcentroid-grid.h"

#define PI 3.14159265358979323846

/* A lattice to draw, in pixels, degrees and counts. */
typedef struct Scene {
  ImkShcentroidLattice lattice;
  double pitch, degrees, sigma;
  uint32_t width, height;
  double x, y;        /* of one lattice point */
  double pupil, hole; /* radii about the middle; 0 for none */
  double peak, background, slope, read_noise;
  uint32_t n_hot;
  double missing; /* part of the spots */
  double jitter;  /* rms of the spots about their points */
  double aspect;  /* of a square lattice that is stretched in y; 0 for none */
} Scene;

static void
add_spot (double *light, const Scene *s, double x, double y)
{
  int reach = (int) ceil (5 * s->sigma);

  for (int v = (int) floor (y) - reach; v <= y + reach + 1; v++)
    for (int u = (int) floor (x) - reach; u <= x + reach + 1; u++)
      if (u >= 0 && v >= 0 && u < (int) s->width && v < (int) s->height)
        light[v * s->width + u] +=
            s->peak * exp (-((u - x) * (u - x) + (v - y) * (v - y)) /
                           (2 * s->sigma * s->sigma));
}

/* All spots whose pitch-wide cell is whole in the frame.
 * Returns: how many were drawn */
static uint32_t
add_spots (double *light, const Scene *s, uint64_t *seed)
{
  double angle = s->degrees * PI / 180;
  double turn = s->lattice == IMK_SHCENTROID_LATTICE_SQUARE ? PI / 2 : PI / 3;
  int most = (int) ((s->width + s->height) / s->pitch * 2);
  double margin = s->pitch / 2;
  uint32_t n = 0;

  for (int j = -most; j <= most; j++)
    for (int i = -most; i <= most; i++) {
      double x = s->x + s->pitch * (i * cos (angle) + j * cos (angle + turn));
      double y = s->y + s->pitch * (i * sin (angle) + j * sin (angle + turn));
      double r;

      if (s->aspect > 0)
        y = s->y + (y - s->y) * s->aspect;
      r = hypot (x - s->width / 2.0, y - s->height / 2.0);

      if (x < margin || y < margin || x > s->width - 1 - margin ||
          y > s->height - 1 - margin || (s->pupil > 0 && r > s->pupil) ||
          r < s->hole || sh_uniform (seed) < s->missing)
        continue;
      add_spot (light, s, x + s->jitter * sh_normal (seed) / sqrt (2),
          y + s->jitter * sh_normal (seed) / sqrt (2));
      n++;
    }
  return n;
}

/* With photon noise of 1 electron a count, and read noise. */
static TestImage
draw (const Scene *s, ImkType type, uint64_t seed, uint32_t *n_spots)
{
  TestImage image = test_image_new (type, s->width, s->height, 1, 6);
  size_t n = (size_t) s->width * s->height;
  test_autofree double *light = calloc (n, sizeof (*light));
  double most = type == IMK_TYPE_U8 ? 255 : 65535;

  *n_spots = add_spots (light, s, &seed);
  for (uint32_t k = 0; k < s->n_hot; k++)
    light[test_random (&seed) % n] += 2 * s->peak;
  for (uint32_t y = 0; y < s->height; y++)
    for (uint32_t x = 0; x < s->width; x++) {
      double v =
          light[y * s->width + x] + s->background + s->slope * (x + 0.5 * y);
      uint8_t *row = (uint8_t *) image.image.data + y * image.image.stride;

      v += sqrt (v + s->read_noise * s->read_noise) * sh_normal (&seed);
      v = fmin (fmax (rint (v), 0), most);
      if (type == IMK_TYPE_U8)
        row[x] = (uint8_t) v;
      else
        ((uint16_t *) row)[x] = (uint16_t) v;
    }
  return image;
}

static ImkShcentroidGrid
find (const TestImage *image, ImkShcentroidLattice lattice)
{
  ImkShcentroidGrid grid = {0};

  test_ok (imk_shcentroid_find_grid (
      &image->image, lattice, 0.1, &grid, test_new_error ()));
  test_image_check_canaries (image, "the input");
  return grid;
}

/* The lattice point that is drawn at (s->x, s->y) is a point of @grid. */
static double
distance_to_lattice (const ImkShcentroidGrid *g, double x, double y)
{
  double dx = x - g->origin_x, dy = y - g->origin_y;
  double d = g->column_x * g->row_y - g->column_y * g->row_x;
  double i = (dx * g->row_y - dy * g->row_x) / d;
  double j = (dy * g->column_x - dx * g->column_y) / d;

  i -= rint (i);
  j -= rint (j);
  return hypot (i * g->column_x + j * g->row_x, i * g->column_y + j * g->row_y);
}

/* @tolerance: pixels of pitch and of places */
static void
check_scene (
    const Scene *s, ImkShcentroidLattice ask, uint32_t seed, double tolerance)
{
  uint32_t n;
  test_auto (TestImage) image = draw (s, IMK_TYPE_U16, seed, &n);
  ImkShcentroidGrid g = find (&image, ask);
  double symmetry = s->lattice == IMK_SHCENTROID_LATTICE_SQUARE ? 90 : 60;
  double degrees = g.rotation * 180 / PI - s->degrees;

  degrees -= symmetry * rint (degrees / symmetry);
  test_check (g.lattice == s->lattice, "lattice %d of pitch %g was found as %d",
      s->lattice, s->pitch, g.lattice);
  test_check (fabs (g.pitch - s->pitch) < tolerance,
      "pitch %.5f was found as %.5f", s->pitch, g.pitch);
  test_check (fabs (degrees) < tolerance / s->pitch * 180 / PI,
      "%.4f degrees were found as %.4f", s->degrees, g.rotation * 180 / PI);
  test_check (fabs (g.rotation) <= PI / (symmetry == 90 ? 4 : 6) + 1e-3,
      "the rotation is %g degrees", g.rotation * 180 / PI);
  /* the origin is at the rim, as many pitches from the middle as there are */
  test_check (distance_to_lattice (&g, s->x, s->y) < 3 * tolerance,
      "pitch %g: (%g, %g) is %g pixels off the lattice", s->pitch, s->x, s->y,
      distance_to_lattice (&g, s->x, s->y));
  test_check (g.n_spots == n, "pitch %g: %u spots of %u were found", s->pitch,
      g.n_spots, n);
  imk_shcentroid_grid_clear (&g);
}

static Scene
plain (ImkShcentroidLattice lattice, double pitch, double degrees, double sigma,
    uint32_t width, uint32_t height)
{
  return (Scene){
      .lattice = lattice,
      .pitch = pitch,
      .degrees = degrees,
      .sigma = sigma,
      .width = width,
      .height = height,
      .x = width / 2 + 0.37,
      .y = height / 2 - 0.21,
      .peak = 3000,
      .background = 100,
      .read_noise = 5,
  };
}

TEST (test_square, "square lattices are found to 0.01 pixel, at any rotation")
{
  const double cases[][3] = {/* pitch, degrees, sigma */
      {5, 0, 0.9}, {7.3, 0, 1.2}, {12.25, -7, 1.5}, {21, 1.293, 2},
      {29.653, 0.017, 2.5}, {40.54, 43, 3}, {31.7, 44.5, 4}, {64, 10, 9}};

  for (size_t k = 0; k < sizeof (cases) / sizeof (cases[0]); k++) {
    Scene s = plain (IMK_SHCENTROID_LATTICE_SQUARE, cases[k][0], cases[k][1],
        cases[k][2], 401, 333);

    if (test_takes_case (1))
      check_scene (&s, IMK_SHCENTROID_LATTICE_ANY, 1 + k, 0.01);
    if (test_takes_case (1))
      check_scene (&s, IMK_SHCENTROID_LATTICE_SQUARE, 101 + k, 0.01);
  }
}

/* As of pixels that are not square. */
TEST (
    test_rectangular, "rectangular lattices are found with all of their spots")
{
  static const double aspects[] = {0.7, 0.77, 1.25, 1.3, 1.33, 1.5};

  for (size_t k = 0; k < sizeof (aspects) / sizeof (*aspects); k++) {
    Scene s = plain (IMK_SHCENTROID_LATTICE_SQUARE, 22, 0, 1.8, 420, 440);
    ImkShcentroidGrid g;
    uint32_t n_spots;
    test_auto (TestImage) image;

    s.aspect = aspects[k];
    image = draw (&s, IMK_TYPE_U16, 5 + k, &n_spots);
    g = find (&image, IMK_SHCENTROID_LATTICE_ANY);
    test_check (g.n_spots == n_spots && g.n_unplaced == 0,
        "aspect %g: %u of %u spots, %u left out", s.aspect, g.n_spots, n_spots,
        g.n_unplaced);
    test_check (fabs (fabs (g.column_x) - 22) < 0.02 &&
                    fabs (fabs (g.row_y) - 22 * s.aspect) < 0.02,
        "aspect %g: columns are %g apart, and rows %g", s.aspect, g.column_x,
        g.row_y);
    imk_shcentroid_grid_clear (&g);
  }
}

TEST (test_hexagonal,
    "hexagonal lattices are found to 0.01 pixel, at any rotation")
{
  const double cases[][3] = {{6.1, 0, 1}, {11, 17, 1.5}, {20.5, -29, 2},
      {39.04, 28.5, 3}, {40.7, 30, 3}, {70, 5, 8}};

  for (size_t k = 0; k < sizeof (cases) / sizeof (cases[0]); k++) {
    Scene s = plain (IMK_SHCENTROID_LATTICE_HEXAGONAL, cases[k][0], cases[k][1],
        cases[k][2], 350, 421);

    if (test_takes_case (1))
      check_scene (&s, IMK_SHCENTROID_LATTICE_ANY, 11 + k, 0.01);
    if (test_takes_case (1))
      check_scene (&s, IMK_SHCENTROID_LATTICE_HEXAGONAL, 111 + k, 0.01);
  }
}

/* A telescope: round pupil, hole in the middle, rising background, hot pixels,
 * and some lenslets that are dark. */
TEST (test_pupil,
    "an obscured pupil, a slope, hot pixels and dark lenslets do not matter")
{
  for (uint32_t seed = 1; seed <= 6; seed++) {
    Scene s = plain (seed % 2 ? IMK_SHCENTROID_LATTICE_SQUARE
                              : IMK_SHCENTROID_LATTICE_HEXAGONAL,
        17.31, 3.0 * seed, 2, 400, 380);

    s.pupil = 170;
    s.hole = 60;
    s.slope = 1;
    s.n_hot = 40;
    s.missing = 0.05;
    check_scene (&s, IMK_SHCENTROID_LATTICE_ANY, seed, 0.01);
  }
}

/* Of a wavefront that is not flat: rms 8 % of a pitch. */
TEST (
    test_aberrated, "spots off their points by 8 % of the pitch are all found")
{
  Scene s = plain (IMK_SHCENTROID_LATTICE_SQUARE, 20, 2, 2, 500, 500);

  s.jitter = 1.6;
  check_scene (&s, IMK_SHCENTROID_LATTICE_ANY, 5, 0.05);
}

/* More spots than those that propose lattices. */
TEST (test_many, "thousands of spots are found")
{
  Scene s = plain (IMK_SHCENTROID_LATTICE_SQUARE, 8.1, -3, 1.2, 640, 480);

  check_scene (&s, IMK_SHCENTROID_LATTICE_ANY, 3, 0.01);
}

TEST (test_few, "nine spots are enough, and numbered row by row")
{
  Scene s = plain (IMK_SHCENTROID_LATTICE_SQUARE, 30, 4, 2.5, 110, 110);
  uint32_t n;
  test_auto (TestImage) image = draw (&s, IMK_TYPE_U16, 1, &n);
  ImkShcentroidGrid g = find (&image, IMK_SHCENTROID_LATTICE_ANY);

  test_check (n == 9 && g.n_spots == 9 && g.columns == 3 && g.rows == 3,
      "%u of %u spots, %u x %u", g.n_spots, n, g.columns, g.rows);
  for (uint32_t k = 0; k < 9; k++)
    test_check (g.spots[k].column == (int32_t) k % 3 &&
                    g.spots[k].row == (int32_t) k / 3,
        "spot %u is (%d, %d)", k, g.spots[k].column, g.spots[k].row);
  test_check (imk_shcentroid_grid_side (&g) == g.pitch, "the side of a cell");
  imk_shcentroid_grid_clear (&g);
  imk_shcentroid_grid_clear (&g);
}

/* 8 bits, of which the spots clip: flat tops have no single maximum. */
TEST (test_saturated, "saturated spots of 8 bits are found")
{
  Scene s = plain (IMK_SHCENTROID_LATTICE_SQUARE, 24.6, 5, 2.5, 301, 299);
  uint32_t n;
  test_auto (TestImage) image;
  ImkShcentroidGrid g;

  s.peak = 600;
  s.background = 10;
  s.read_noise = 1;
  image = draw (&s, IMK_TYPE_U8, 4, &n);
  g = find (&image, IMK_SHCENTROID_LATTICE_ANY);
  test_check (g.n_spots == n && fabs (g.pitch - 24.6) < 0.01,
      "%u of %u spots of pitch %g", g.n_spots, n, g.pitch);
  imk_shcentroid_grid_clear (&g);
}

/* Rows and columns change places, to the last bit but for rounding. */
TEST (test_transposed, "a transposed frame has the transposed grid")
{
  Scene s = plain (IMK_SHCENTROID_LATTICE_SQUARE, 19.7, 2.5, 2, 240, 240);
  uint32_t n;
  test_auto (TestImage) a = draw (&s, IMK_TYPE_U16, 8, &n);
  test_auto (TestImage) b = test_image_new (IMK_TYPE_U16, 240, 240, 1, 0);
  ImkShcentroidGrid g, h;

  for (uint32_t y = 0; y < 240; y++)
    for (uint32_t x = 0; x < 240; x++)
      ((uint16_t *) ((uint8_t *) b.image.data + x * b.image.stride))[y] =
          ((uint16_t *) ((uint8_t *) a.image.data + y * a.image.stride))[x];
  g = find (&a, IMK_SHCENTROID_LATTICE_ANY);
  h = find (&b, IMK_SHCENTROID_LATTICE_ANY);
  test_check (g.n_spots == h.n_spots && fabs (g.pitch - h.pitch) < 1e-4 &&
                  fabs (g.column_x - h.row_y) < 1e-4 &&
                  fabs (g.column_y - h.row_x) < 1e-4,
      "pitch %g and %g, columns (%g, %g), rows of the other (%g, %g)", g.pitch,
      h.pitch, g.column_x, g.column_y, h.row_x, h.row_y);
  imk_shcentroid_grid_clear (&g);
  imk_shcentroid_grid_clear (&h);
}

/* Of 0 to 1, less a pedestal, with pixels that are no number. */
TEST (test_floats, "a frame of float32 has the grid of its integers")
{
  Scene s = plain (IMK_SHCENTROID_LATTICE_SQUARE, 19.7, 2.5, 2, 240, 240);
  uint32_t n;
  test_auto (TestImage) a = draw (&s, IMK_TYPE_U16, 8, &n);
  test_auto (TestImage) b = test_image_new (IMK_TYPE_F32, 240, 240, 1, 12);
  ImkShcentroidGrid g = find (&a, IMK_SHCENTROID_LATTICE_ANY), h;

  for (uint32_t y = 0; y < 240; y++)
    for (uint32_t x = 0; x < 240; x++)
      ((float *) ((uint8_t *) b.image.data + y * b.image.stride))[x] =
          (x + 240 * y) % 5003 == 77 ? NAN
                                     : ((uint16_t *) ((uint8_t *) a.image.data +
                                                      y * a.image.stride))[x] /
                                               65535.0f -
                                           0.3f;
  h = find (&b, IMK_SHCENTROID_LATTICE_ANY);
  test_check (g.n_spots == h.n_spots && fabs (g.pitch - h.pitch) < 0.01 &&
                  fabs (g.origin_x - h.origin_x) < 0.05 && g.n_unplaced == 0 &&
                  h.n_unplaced == 0,
      "pitch %g and %g, %u and %u spots", g.pitch, h.pitch, g.n_spots,
      h.n_spots);
  imk_shcentroid_grid_clear (&g);
  imk_shcentroid_grid_clear (&h);
}

static void
refuse (const TestImage *image, ImkShcentroidLattice lattice, double least,
    ImkStatus expected, const char *words)
{
  ImkShcentroidGrid grid = {.n_spots = 77};

  test_error (imk_shcentroid_find_grid (image ? &image->image : NULL, lattice,
                  least, &grid, test_new_error ()),
      expected, words);
  test_check (grid.n_spots == 77 && !grid.spots, "the grid was touched");
}

TEST (test_nothing_there, "frames without a grid are refused")
{
  const char *words = "There is no grid of spots";

  for (Fill fill = FILL_ZERO; fill < N_FILLS; fill++) {
    TestImage image = test_image_new (IMK_TYPE_U8, 131, 90, 1, 0);

    if (fill != FILL_CHECKERBOARD) { /* that is a lattice, if a fine one */
      test_image_fill (&image, fill, 255, 3);
      refuse (&image, IMK_SHCENTROID_LATTICE_ANY, 0.1, IMK_ERROR_IMAGE, words);
    }
    test_image_free (&image);
  }
  for (uint64_t seed = 1; seed <= 5; seed++) { /* spots anywhere */
    Scene s = plain (IMK_SHCENTROID_LATTICE_SQUARE, 20, 0, 2, 300, 300);
    uint32_t n;
    TestImage image;

    s.jitter = 15;
    image = draw (&s, IMK_TYPE_U16, seed, &n);
    refuse (&image, IMK_SHCENTROID_LATTICE_ANY, 0.1, IMK_ERROR_IMAGE, words);
    test_image_free (&image);
  }
}

TEST (test_other_lattice, "a lattice of the other kind is refused")
{
  Scene s = plain (IMK_SHCENTROID_LATTICE_HEXAGONAL, 20, 4, 2, 300, 300);
  uint32_t n;
  test_auto (TestImage) image = draw (&s, IMK_TYPE_U16, 2, &n);

  refuse (&image, IMK_SHCENTROID_LATTICE_SQUARE, 0.1, IMK_ERROR_IMAGE,
      "no square lattice");
  test_image_free (&image);
  s.lattice = IMK_SHCENTROID_LATTICE_SQUARE;
  image = draw (&s, IMK_TYPE_U16, 2, &n);
  refuse (&image, IMK_SHCENTROID_LATTICE_HEXAGONAL, 0.1, IMK_ERROR_IMAGE,
      "no hexagonal lattice");
}

TEST (test_bad_input, "bad input is refused with its numbers")
{
  test_auto (TestImage) small = test_image_new (IMK_TYPE_U8, 15, 16, 1, 0);
  test_auto (TestImage) doubles = test_image_new (IMK_TYPE_F64, 32, 32, 1, 0);
  test_auto (TestImage) good = test_image_new (IMK_TYPE_U16, 32, 32, 1, 0);
  const double parts[] = {0, 1, -1, NAN, INFINITY};

  refuse (&small, 0, 0.1, IMK_ERROR_IMAGE, "15x16");
  refuse (&doubles, 0, 0.1, IMK_ERROR_IMAGE, "f64");
  refuse (NULL, 0, 0.1, IMK_ERROR_IMAGE, "input");
  refuse (&good, 3, 0.1, IMK_ERROR_CONFIG, "lattice is 3");
  for (int k = 0; k < 5; k++)
    refuse (&good, 0, parts[k], IMK_ERROR_CONFIG, "least strength");
}

/* The real one: pitch 29.653 as measured elsewhere, at 16 x 16 cells of the
 * table and more, of which some are cut by the edge of the frame. */
TEST (test_lamp, "the lamp frame has its pitch and all its spots")
{
  FILE *file = test_open_data ("shcentroid/f5_hecto_ref.gray16le.raw");
  test_auto (TestImage) image = test_image_new (IMK_TYPE_U16, 512, 512, 1, 0);
  uint32_t in_table = 0;
  ImkShcentroidGrid g;

  test_check (fread (image.image.data, 2, 512 * 512, file) == 512 * 512,
      "the frame is shorter than 512x512");
  fclose (file);
  g = find (&image, IMK_SHCENTROID_LATTICE_ANY);
  test_check (g.lattice == IMK_SHCENTROID_LATTICE_SQUARE &&
                  fabs (g.pitch - 29.653) < 0.02 &&
                  fabs (g.rotation * 180 / PI - 0.017) < 0.02,
      "lattice %d, pitch %g, %g degrees", g.lattice, g.pitch,
      g.rotation * 180 / PI);
  for (uint32_t k = 0; k < g.n_spots; k++) {
    double column = (g.spots[k].x + 0.5 - 23.51) / 29.653;
    double row = (g.spots[k].y + 0.5 - 20.65) / 29.653;

    in_table += column > 0 && column < 16 && row > 0 && row < 16;
  }
  test_check (in_table == 256, "%u spots in the 256 cells", in_table);
  imk_shcentroid_grid_clear (&g);
}

/* --- cells beside the lattice --------------------------------------------- */

/* A grid about the middle of the frame, whose lattice point is in the middle of
 * a cell. @shift: of the cells, of their pitch */
static ImkShcentroidConfig
cells_of (const Scene *s, double pitch, double shift)
{
  uint32_t columns = (uint32_t) (s->width / pitch) - 1;
  uint32_t rows = (uint32_t) (s->height / pitch) - 1;
  double x = s->x + 0.5 + (shift - 0.5) * pitch;
  double y = s->y + 0.5 + (shift - 0.5) * pitch;

  return sh_grid (IMK_TYPE_U16, s->width, s->height, x - pitch * (columns / 2),
      y - pitch * (rows / 2), pitch, pitch, columns, rows);
}

TEST (test_fit, "cells that are not where the lenslets are, are known as such")
{
  static const struct {
    ImkShcentroidLattice lattice;
    double pitch, shift; /* of the cells; lenslets have 24 pixels */
    double degrees, jitter, pupil;
    bool is_off;
  } cases[] = {
      {IMK_SHCENTROID_LATTICE_SQUARE, 24, 0, 0, 0, 0, false},
      {IMK_SHCENTROID_LATTICE_SQUARE, 24, 0.2, 0, 2, 100, false},
      {IMK_SHCENTROID_LATTICE_SQUARE, 24, 0, 0.5, 3, 140, false},
      {IMK_SHCENTROID_LATTICE_SQUARE, 24.5, 0, 0, 2, 0, false},
      {IMK_SHCENTROID_LATTICE_SQUARE, 24, 0.5, 0, 2, 0, true},
      {IMK_SHCENTROID_LATTICE_SQUARE, 20, 0, 0, 0, 0, true},
      {IMK_SHCENTROID_LATTICE_SQUARE, 28, 0, 0, 2, 140, true},
      {IMK_SHCENTROID_LATTICE_SQUARE, 48, 0.25, 0, 0, 0, true},
      {IMK_SHCENTROID_LATTICE_SQUARE, 12, 0, 0, 0, 0, true},
      {IMK_SHCENTROID_LATTICE_SQUARE, 24, 0, 10, 0, 0, true},
      {IMK_SHCENTROID_LATTICE_HEXAGONAL, 24, 0, 0, 0, 0, true},
  };

  for (size_t k = 0; k < sizeof (cases) / sizeof (*cases); k++) {
    Scene s = plain (cases[k].lattice, 24, cases[k].degrees, 2, 360, 330);
    ImkShcentroidConfig c;
    ImkShcentroidFit fit;
    uint32_t n;

    s.jitter = cases[k].jitter;
    s.pupil = cases[k].pupil;
    c = cells_of (&s, cases[k].pitch, cases[k].shift);
    for (uint32_t seed = 1; seed <= 3; seed++) {
      test_auto (TestImage) image = draw (&s, IMK_TYPE_U16, seed, &n);

      test_ok (
          imk_shcentroid_check_fit (&c, &image.image, &fit, test_new_error ()));
      test_check (fit.is_off == cases[k].is_off,
          "case %zu: %u of %u spots are misplaced, and the cells are %s", k,
          fit.n_misplaced, fit.n_spots, fit.is_off ? "off" : "not off");
      test_check (fabs (fit.grid.pitch - 24) < 0.5, "case %zu: pitch %g", k,
          fit.grid.pitch);
    }
  }
}

/* As for other frames without a lattice, the cells are not judged. */
TEST (test_no_fit, "without a lattice cells are not off")
{
  Scene s = plain (IMK_SHCENTROID_LATTICE_SQUARE, 24, 0, 2, 200, 200);
  ImkShcentroidConfig c = cells_of (&s, 24, 0.5);
  test_auto (TestImage) image = test_image_new (IMK_TYPE_U16, 200, 200, 1, 6);
  ImkShcentroidFit fit = {.is_off = true};

  test_ok (
      imk_shcentroid_check_fit (&c, &image.image, &fit, test_new_error ()));
  test_check (!fit.is_off, "the cells of a dark frame are off");
}

/* Lamp and star, with the cells of their table; and with others. */
TEST (test_real_fit, "the cells of real frames fit")
{
  static const char *const names[] = {"f5_hecto_ref", "auto_wfs_0037_ave"};

  for (int i = 0; i < 2; i++) {
    ImkShcentroidConfig c = sh_real_grid ();
    test_auto (TestImage) image = sh_load_frame (names[i]);
    ImkShcentroidFit fit;

    test_ok (
        imk_shcentroid_check_fit (&c, &image.image, &fit, test_new_error ()));
    test_check (!fit.is_off, "%s: %u of %u spots are misplaced", names[i],
        fit.n_misplaced, fit.n_spots);
    c.pitch_x = c.pitch_y = 25;
    test_ok (
        imk_shcentroid_check_fit (&c, &image.image, &fit, test_new_error ()));
    test_check (fit.is_off, "%s: cells of 25 pixels fit", names[i]);
  }
}
