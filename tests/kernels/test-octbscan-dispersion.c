/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The dispersion that was put into generated spectra is found again, for each
 * camera its own. */
#include "kernel-test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "octbscan/octbscan-dispersion.h"

static double
uniform (uint64_t *seed)
{
  return (double) (test_random (seed) >> 11) / 0x1p53;
}

/* Six layers with speckle: in each A-scan every layer has its own brightness,
 * phase and, within half a depth, place. Camera c of the rows r % n has the
 * phases psi[c][0] u^2 + psi[c][1] u^3 in its fringes. */
static TestImage
layers (const ImkOctbscanConfig *c, const double psi[][2])
{
  static const double depths[] = {30, 41, 55, 62.5, 90, 120};
  TestImage in = test_image_new (c->type, c->width, c->height, 1, 6);
  uint64_t seed = 5;

  for (uint32_t r = 0; r < c->height; r++) {
    uint16_t *row =
        (uint16_t *) ((uint8_t *) in.image.data + r * in.image.stride);
    double place[6], phase[6], amplitude[6];

    for (int k = 0; k < 6; k++) {
      place[k] = depths[k] + uniform (&seed) - 0.5;
      phase[k] = 2 * M_PI * uniform (&seed);
      amplitude[k] = 100 + 500 * uniform (&seed);
    }
    for (uint32_t i = 0; i < c->width; i++) {
      double u = 2.0 * i / (c->width - 1) - 1;
      double turn =
          u * u * (psi[r % c->n_cameras][0] + psi[r % c->n_cameras][1] * u);
      double v = 20000 + 8000 * sin (M_PI * i / c->width);

      for (int k = 0; k < 6; k++)
        v += amplitude[k] *
             cos (2 * M_PI * place[k] * i / c->width + phase[k] + turn);
      row[i] = (uint16_t) (v + 60 * uniform (&seed));
    }
  }
  return in;
}

static ImkOctbscanConfig
base_config (void)
{
  ImkOctbscanConfig c;

  imk_octbscan_config_init (&c);
  c.width = 512;
  c.height = 60;
  c.upsample = 512;
  c.taper = IMK_OCTBSCAN_TAPER_NONE;
  c.window = IMK_OCTBSCAN_WINDOW_HANN;
  return c;
}

static void
test_known_dispersion_is_found (void)
{
  static const double psi[][2] = {{0, 0}, {9, -2}, {-17.5, 6}, {40, 3}};

  for (uint32_t k = 0; k < sizeof (psi) / sizeof (psi[0]); k++) {
    ImkOctbscanConfig c = base_config ();
    TestImage in = layers (&c, &psi[k]);
    ImkOctbscanDispersion found;
    ImkError error;

    test_ok (imk_octbscan_estimate_dispersion (
                 &c, &in.image, 0, 0, 0, &found, &error),
        &error);
    printf ("# psi %g %g: d2 %.2f, d3 %.2f, sharpness %.2f to %.2f\n",
        psi[k][0], psi[k][1], found.d2, found.d3, found.before, found.after);
    test_check (fabs (found.d2 + psi[k][0]) < 0.02, "d2 is %.3f, expected %.3f",
        found.d2, -psi[k][0]);
    test_check (fabs (found.d3 + psi[k][1]) < 0.02, "d3 is %.3f, expected %.3f",
        found.d3, -psi[k][1]);
    test_check (found.after >= found.before, "it was sharper before");
    test_image_free (&in);
  }
}

/* Three cameras, whose turns begin with the second; the camera's own phase is
 * kept, and d2 and d3 are in the place of those it has. */
static void
test_each_camera_has_its_own (void)
{
  static const double psi[][2] = {{9, -2}, {-14, 3}, {25, 0}};
  static const double own[] = {0.4, 2, 99, -99};
  ImkOctbscanCamera cameras[3] = {{.dispersion = own, .n_dispersion = 4}};
  ImkOctbscanConfig c = base_config ();
  TestImage in;

  c.n_cameras = 3;
  c.cameras = cameras;
  c.crop_top = 10;
  c.scale = 2;
  in = layers (&c, psi);
  for (uint32_t camera = 0; camera < 3; camera++) {
    const double *p = psi[(camera + 2) % 3];
    ImkOctbscanDispersion found;
    ImkError error;

    test_ok (imk_octbscan_estimate_dispersion (
                 &c, &in.image, 1, camera, 40, &found, &error),
        &error);
    test_check (fabs (found.d2 + p[0]) < 0.05 && fabs (found.d3 + p[1]) < 0.05,
        "camera %u: %.3f %.3f, expected %.3f %.3f", camera, found.d2, found.d3,
        -p[0], -p[1]);
  }
  test_image_free (&in);
}

/* What was found makes the image as sharp as it says. */
static void
test_sharpness_is_that_of_the_image (void)
{
  static const double psi[][2] = {{-12, 2.5}};
  double d[4] = {0};
  ImkOctbscanCamera camera = {.dispersion = d, .n_dispersion = 4};
  ImkOctbscanConfig c = base_config ();
  TestImage in = layers (&c, psi);
  TestImage out = test_image_new (IMK_TYPE_F32, 256, 60, 1, 0);
  ImkOctbscanJob job = {.in = &in.image, .linear = &out.image};
  ImkOctbscanDispersion found;
  ImkOctbscan *kernel = NULL;
  ImkError error;

  c.cameras = &camera;
  c.orientation = IMK_OCTBSCAN_ORIENTATION_ROWS;
  test_ok (
      imk_octbscan_estimate_dispersion (&c, &in.image, 0, 0, 0, &found, &error),
      &error);
  for (int after = 0; after < 2; after++) {
    double sum = 0, squares = 0, expected = after ? found.after : found.before;

    d[2] = after ? found.d2 : 0;
    d[3] = after ? found.d3 : 0;
    test_ok (imk_octbscan_new (IMK_BACKEND_CPU, &c, &kernel, &error), &error);
    test_ok (imk_octbscan_process (kernel, &job, 1, NULL, &error), &error);
    imk_octbscan_free (kernel);
    for (uint32_t i = 0; i < 60 * 256; i++)
      if (i % 256 >= 4) {
        double v = ((const float *) out.image.data)[i];

        sum += v;
        squares += v * v;
      }
    test_check (fabs (squares * 60 * 252 / (sum * sum) / expected - 1) < 0.02,
        "sharpness %.3f, expected %.3f", squares * 60 * 252 / (sum * sum),
        expected);
  }
  test_image_free (&in);
  test_image_free (&out);
}

static void
test_what_cannot_be_is_said (void)
{
  ImkOctbscanConfig c = base_config ();
  TestImage in = test_image_new (c.type, c.width, c.height, 1, 0);
  TestImage other = test_image_new (c.type, c.width, 7, 1, 0);
  ImkOctbscanCamera cameras[2] = {{.gain = 0}};
  ImkOctbscanDispersion found = {.d2 = 5};
  ImkError error;

  memset (in.image.data, 0, in.image.stride * c.height);
  test_error (
      imk_octbscan_estimate_dispersion (&c, &in.image, 0, 0, 0, &found, &error),
      &error, IMK_ERROR_IMAGE, "the image is dark");
  test_error (
      imk_octbscan_estimate_dispersion (&c, &in.image, 0, 1, 0, &found, &error),
      &error, IMK_ERROR_CONFIG, "camera is 1");
  test_error (imk_octbscan_estimate_dispersion (
                  &c, &other.image, 0, 0, 0, &found, &error),
      &error, IMK_ERROR_IMAGE, "input");
  c.height = 1;
  c.n_cameras = 2;
  c.cameras = cameras;
  in.image.height = 1;
  test_error (
      imk_octbscan_estimate_dispersion (&c, &in.image, 0, 1, 0, &found, &error),
      &error, IMK_ERROR_IMAGE, "Camera 1 has no line");
  test_check (found.d2 == 5, "the result was written to");
  test_image_free (&in);
  test_image_free (&other);
}

static const Test tests[] = {
    {"known dispersion is found", test_known_dispersion_is_found},
    {"each camera has its own", test_each_camera_has_its_own},
    {"sharpness is that of the image", test_sharpness_is_that_of_the_image},
    {"what cannot be is said", test_what_cannot_be_is_said},
    {NULL},
};

int
main (void)
{
  return test_main (tests);
}
