/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* insarform against sums over all samples in float64, and what an interferogram
 * must be by its definition. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/sample.h"
#include "insarform-common.h"

enum { WIDTH = 613, HEIGHT = 97 };

/* --- images --------------------------------------------------------------- */

static Pair
noise (ImkType type, uint64_t seed, uint64_t seed_b)
{
  Pair pair = pair_new (type, WIDTH, HEIGHT);
  const TestImage *images[] = {&pair.a, &pair.b};
  uint64_t seeds[] = {seed, seed_b};

  for (int i = 0; i < 2; i++)
    for (uint32_t y = 0; y < HEIGHT; y++)
      for (uint32_t x = 0; x < WIDTH; x++)
        test_image_put_complex (images[i], x, y,
            (double) (test_random (&seeds[i]) % 65536) - 32768,
            (double) (test_random (&seeds[i]) % 65536) - 32768);
  return pair;
}

/* --- runs ----------------------------------------------------------------- */

static ImkInsarformConfig
config_of (const Pair *pair, uint32_t looks_x, uint32_t looks_y,
    uint32_t window_x, uint32_t window_y)
{
  ImkInsarformConfig c = insarform_config (pair);

  c.looks_x = looks_x;
  c.looks_y = looks_y;
  c.window_x = window_x;
  c.window_y = window_y;
  return c;
}

static TestImage
form (const ImkInsarformConfig *c, const Pair *pair, uint32_t n_push)
{
  return insarform_form (c, pair, false, n_push);
}

static const float *
cell (const TestImage *out, uint32_t x, uint32_t y)
{
  const uint8_t *row =
      (const uint8_t *) out->image.data + y * out->image.stride;

  return (const float *) row + (size_t) x * N;
}

/* --- the reference -------------------------------------------------------- */

static void
check_value (const char *name, uint32_t x, uint32_t y, double found,
    double expected, double scale)
{
  test_check (fabs (found - expected) <= 2e-7 * scale,
      "%s of cell (%u, %u) is %.9g, expected %.9g", name, x, y, found,
      expected);
}

static bool
is_empty (const TestImage *expected, uint32_t x, uint32_t y)
{
  return imk_sample_get (&expected->image, x, y, IMK_INSARFORM_AMPLITUDE) == 0;
}

/* Returns: cells without data that have some beside them */
static uint32_t
check_cells (
    const ImkInsarformConfig *c, const Pair *pair, const TestImage *out)
{
  static const struct {
    const char *name;
    double scale;
  } channels[N] = {{"real part", 2e9}, {"imaginary part", 2e9},
      {"amplitude", 5e4}, {"coherence", 1}, {"phase removed", 1}};
  test_auto (TestImage) e = insarform_expected (c, pair, false);
  uint32_t n_holes = 0;

  for (uint32_t y = 0; y < e.image.height; y++)
    for (uint32_t x = 0; x < e.image.width; x++) {
      for (uint32_t i = 0; i < N; i++)
        check_value (channels[i].name, x, y, cell (out, x, y)[i],
            imk_sample_get (&e.image, x, y, i), channels[i].scale);
      n_holes += x > 0 && is_empty (&e, x, y) && !is_empty (&e, x - 1, y);
    }
  return n_holes;
}

/* --- promises ------------------------------------------------------------- */

TEST (test_cells_are_their_sums, "cells are their sums")
{
  static const uint32_t cases[][5] = {{1, 1, 5, 5, 1000}, {4, 3, 3, 7, 10},
      {1, 1, 1, 1, 1}, {7, 2, 63, 1, 5}, {256, 97, 3, 3, 50},
      {2, 8, 5, 63, 97}};

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    ImkType type = i % 2 ? IMK_TYPE_CF32 : IMK_TYPE_CI16;
    test_auto (Pair) pair = noise (type, 1, 2);
    ImkInsarformConfig c =
        config_of (&pair, cases[i][0], cases[i][1], cases[i][2], cases[i][3]);
    test_auto (TestImage) out = {0};

    for (uint32_t k = 0; k < HEIGHT; k++) { /* and some without data */
      test_image_put_complex (&pair.a, 50 + k, k, 0, 0);
      test_image_put_complex (&pair.b, 200, k, 0, 0);
      if (type == IMK_TYPE_CF32)
        test_image_put_complex (
            k % 2 ? &pair.a : &pair.b, 300, k, NAN, k % 3 ? INFINITY : 0);
    }
    out = form (&c, &pair, cases[i][4]);
    test_check (check_cells (&c, &pair, &out) > 0 ||
                    c.looks_x * c.looks_y > 1 || c.window_x == 1,
        "there are no cells without data");
  }
}

/* An image with itself, turned by a phase: coherence 1, that phase. */
TEST (test_equal_images_are_coherent, "equal images are coherent")
{
  test_auto (Pair) pair = noise (IMK_TYPE_CF32, 3, 3);
  ImkInsarformConfig c = config_of (&pair, 3, 2, 3, 5);
  test_auto (TestImage) out = {0};

  for (uint32_t y = 0; y < HEIGHT; y++)
    for (uint32_t x = 0; x < WIDTH; x++) {
      double re, im;

      test_image_get_complex (&pair.a, x, y, &re, &im);
      test_image_put_complex (&pair.b, x, y, re * cos (0.7) - im * sin (0.7),
          re * sin (0.7) + im * cos (0.7));
    }
  out = form (&c, &pair, 13);
  for (uint32_t y = 0; y < out.image.height; y++)
    for (uint32_t x = 0; x < out.image.width; x++) {
      const float *found = cell (&out, x, y);

      test_check (found[3] > 0.999999 && found[3] <= 1,
          "coherence of (%u, %u) is %.9g", x, y, found[3]);
      test_check (fabs (atan2 (found[1], found[0]) + 0.7) < 1e-5,
          "phase of (%u, %u) is %g", x, y, atan2 (found[1], found[0]));
    }
}

TEST (
    test_pieces_and_threads_change_nothing, "pieces and threads change no bit")
{
  test_auto (Pair) pair = noise (IMK_TYPE_CI16, 5, 6);
  ImkInsarformConfig c = config_of (&pair, 2, 3, 5, 5);
  test_auto (TestImage) expected = form (&c, &pair, 1000);

  for (uint32_t i = 1; i < 40; i *= 3) {
    test_auto (TestImage) out;

    c.n_threads = i;
    out = form (&c, &pair, i);
    test_image_same (&out, &expected, "pieces");
  }
}

TEST (test_images_without_data_are_0, "images without data are 0")
{
  test_auto (Pair) pair = noise (IMK_TYPE_CI16, 5, 6);
  ImkInsarformConfig c = config_of (&pair, 2, 2, 5, 5);
  test_auto (TestImage) out;

  for (uint32_t y = 0; y < HEIGHT; y++)
    for (uint32_t x = 0; x < WIDTH; x++)
      test_image_put_complex (&pair.b, x, y, 0, 0);
  out = form (&c, &pair, 1000);
  for (uint32_t y = 0; y < out.image.height; y++)
    for (uint32_t x = 0; x < out.image.width; x++)
      for (int i = 0; i < N; i++)
        test_check (cell (&out, x, y)[i] == 0, "(%u, %u) is %g", x, y,
            cell (&out, x, y)[i]);
}

/* --- pictures ------------------------------------------------------------- */

TEST (test_colours_are_those_of_the_phase, "colours are those of the phase")
{
  static const struct {
    int degrees;
    uint8_t rgb[3];
  } cases[] = {{0, {255, 0, 0}}, {60, {255, 255, 0}}, {120, {0, 255, 0}},
      {180, {0, 255, 255}}, {-120, {0, 0, 255}}, {-60, {255, 0, 255}},
      {30, {255, 128, 0}}, {-30, {255, 0, 128}}};

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    double angle = cases[i].degrees * M_PI / 180;
    const float row[] = {
        (float) (5 * cos (angle)), (float) (5 * sin (angle)), 3, 0.5f};
    uint8_t rgb[3];

    imk_insarform_phase_to_rgb (row, 1, IMK_INSARFORM_SHADE_NONE, 1, rgb);
    for (int k = 0; k < 3; k++)
      test_check (abs (rgb[k] - cases[i].rgb[k]) <= 1,
          "%d degrees: channel %d is %d, expected %d", cases[i].degrees, k,
          rgb[k], cases[i].rgb[k]);
    imk_insarform_phase_to_rgb (row, 1, IMK_INSARFORM_SHADE_COHERENCE, 1, rgb);
    for (int k = 0; k < 3; k++)
      test_check (abs (rgb[k] - (cases[i].rgb[k] + 1) / 2) <= 1,
          "%d degrees by coherence: channel %d is %d", cases[i].degrees, k,
          rgb[k]);
    imk_insarform_phase_to_rgb (row, 1, IMK_INSARFORM_SHADE_AMPLITUDE, 6, rgb);
    for (int k = 0; k < 3; k++)
      test_check (abs (rgb[k] - (cases[i].rgb[k] + 1) / 2) <= 1,
          "%d degrees by amplitude: channel %d is %d", cases[i].degrees, k,
          rgb[k]);
  }
}

TEST (test_levels_are_rounded_and_clamped, "levels are rounded and clamped")
{
  const float rows[] = {
      0, 0, 0, 0, 0, 0, 0, 1, 0.25f, 0, 1, 0, 2, 1, 0, 0, 0, 5, 1, 0};
  const uint8_t coherences[] = {0, 64, 255, 255},
                amplitudes[] = {0, 128, 255, 255};
  uint16_t wide[4];
  uint8_t found[4], rgb[12];

  imk_insarform_to_u8 (rows, 4, IMK_INSARFORM_COHERENCE, 1, found);
  test_check (memcmp (found, coherences, 4) == 0, "%u %u %u %u", found[0],
      found[1], found[2], found[3]);
  imk_insarform_to_u8 (rows, 4, IMK_INSARFORM_AMPLITUDE, 2, found);
  test_check (memcmp (found, amplitudes, 4) == 0, "%u %u %u %u", found[0],
      found[1], found[2], found[3]);
  imk_insarform_to_u16 (rows, 4, IMK_INSARFORM_COHERENCE, 1, wide);
  test_check (
      wide[0] == 0 && wide[1] == 16384 && wide[2] == 65535 && wide[3] == 65535,
      "%u %u %u %u", wide[0], wide[1], wide[2], wide[3]);
  /* no data is black */
  imk_insarform_phase_to_rgb (rows, 4, IMK_INSARFORM_SHADE_NONE, 1, rgb);
  test_check (!rgb[0] && !rgb[1] && !rgb[2] && rgb[6] == 255, "%u %u %u %u",
      rgb[0], rgb[1], rgb[2], rgb[6]);
}

TEST (test_what_is_wrong_is_said, "what is wrong is said")
{
  test_auto (Pair) pair = noise (IMK_TYPE_CI16, 1, 2);
  ImkInsarformConfig good = config_of (&pair, 2, 2, 5, 5);
  ImkImage a = pair.a.image, b = pair.b.image;
  ImkInsarform *self = NULL;

  INSARFORM_REFUSES (good, c.type = IMK_TYPE_F32, "f32 make no interferogram");
  INSARFORM_REFUSES (good, c.width = 0, "97 lines of 0 columns");
  INSARFORM_REFUSES (good, c.looks_x = 0, "looks-x is 0");
  INSARFORM_REFUSES (good, c.looks_y = 98, "looks-y is 98; it can be 1 to 97");
  INSARFORM_REFUSES (good, c.looks_x = 257, "it can be 1 to 256");
  INSARFORM_REFUSES (
      good, c.window_x = 4, "window-x is 4; it must be an odd number");
  INSARFORM_REFUSES (good, c.window_y = 65, "window-y is 65");
  test_error (
      imk_insarform_new (IMK_BACKEND_CUDA, &good, &self, test_new_error ()),
      IMK_ERROR_UNAVAILABLE, "on the CPU alone");
  test_ok (
      imk_insarform_new (IMK_BACKEND_CPU, &good, &self, test_new_error ()));
  test_error (imk_insarform_push (self, &a, &b, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "there is room for 42"); /* 14 rows of 3 */
  a.height = 2;
  test_error (imk_insarform_push (self, &a, &b, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "secondary");
  imk_insarform_free (self);
  imk_insarform_free (NULL);
}
