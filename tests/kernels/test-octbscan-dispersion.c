/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The dispersion that was put into generated spectra is found again, for each
 * camera its own. */
#include "kernel-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imk/octbscan-dispersion.h"

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

TEST (test_known_dispersion_is_found, "known dispersion is found")
{
  static const double psi[][2] = {{0, 0}, {9, -2}, {-17.5, 6}, {40, 3}};

  for (uint32_t k = 0; k < sizeof (psi) / sizeof (psi[0]); k++) {
    ImkOctbscanConfig c = base_config ();
    test_auto (TestImage) in = layers (&c, &psi[k]);
    ImkOctbscanDispersion found;

    test_ok (imk_octbscan_estimate_dispersion (
        &c, &in.image, 0, 0, 0, &found, test_new_error ()));
    printf ("# psi %g %g: d2 %.2f, d3 %.2f, sharpness %.2f to %.2f\n",
        psi[k][0], psi[k][1], found.d2, found.d3, found.before, found.after);
    test_check (fabs (found.d2 + psi[k][0]) < 0.02, "d2 is %.3f, expected %.3f",
        found.d2, -psi[k][0]);
    test_check (fabs (found.d3 + psi[k][1]) < 0.02, "d3 is %.3f, expected %.3f",
        found.d3, -psi[k][1]);
    test_check (found.after >= found.before, "it was sharper before");
  }
}

/* Three cameras, whose turns begin with the second; the camera's own phase is
 * kept, and d2 and d3 are in the place of those it has. */
TEST (test_each_camera_has_its_own, "each camera has its own")
{
  static const double psi[][2] = {{9, -2}, {-14, 3}, {25, 0}};
  static const double own[] = {0.4, 2, 99, -99};
  ImkOctbscanCamera cameras[3] = {{.dispersion = own, .n_dispersion = 4}};
  ImkOctbscanConfig c = base_config ();
  test_auto (TestImage) in;

  c.n_cameras = 3;
  c.cameras = cameras;
  c.crop_top = 10;
  c.scale = 2;
  in = layers (&c, psi);
  for (uint32_t camera = 0; camera < 3; camera++) {
    const double *p = psi[(camera + 2) % 3];
    ImkOctbscanDispersion found;

    test_ok (imk_octbscan_estimate_dispersion (
        &c, &in.image, 1, camera, 40, &found, test_new_error ()));
    test_check (fabs (found.d2 + p[0]) < 0.05 && fabs (found.d3 + p[1]) < 0.05,
        "camera %u: %.3f %.3f, expected %.3f %.3f", camera, found.d2, found.d3,
        -p[0], -p[1]);
  }
}

/* What was found makes the image as sharp as it says. */
TEST (test_sharpness_is_that_of_the_image, "sharpness is that of the image")
{
  static const double psi[][2] = {{-12, 2.5}};
  double d[4] = {0};
  ImkOctbscanCamera camera = {.dispersion = d, .n_dispersion = 4};
  ImkOctbscanConfig c = base_config ();
  test_auto (TestImage) in = layers (&c, psi);
  test_auto (TestImage) out = test_image_new (IMK_TYPE_F32, 256, 60, 1, 0);
  ImkOctbscanJob job = {.in = &in.image, .linear = &out.image};
  ImkOctbscanDispersion found;
  ImkOctbscan *kernel = NULL;

  c.cameras = &camera;
  c.orientation = IMK_OCTBSCAN_ORIENTATION_ROWS;
  test_ok (imk_octbscan_estimate_dispersion (
      &c, &in.image, 0, 0, 0, &found, test_new_error ()));
  for (int after = 0; after < 2; after++) {
    double sum = 0, squares = 0, expected = after ? found.after : found.before;

    d[2] = after ? found.d2 : 0;
    d[3] = after ? found.d3 : 0;
    test_ok (
        imk_octbscan_new (IMK_BACKEND_CPU, &c, &kernel, test_new_error ()));
    test_ok (imk_octbscan_process (kernel, &job, 1, NULL, test_new_error ()));
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
}

TEST (test_failures_are_explained, "failures are explained")
{
  ImkOctbscanConfig c = base_config ();
  test_auto (TestImage) in = test_image_new (c.type, c.width, c.height, 1, 0);
  test_auto (TestImage) other = test_image_new (c.type, c.width, 7, 1, 0);
  ImkOctbscanCamera cameras[2] = {{.gain = 0}};
  ImkOctbscanDispersion found = {.d2 = 5};

  memset (in.image.data, 0, in.image.stride * c.height);
  test_error (imk_octbscan_estimate_dispersion (
                  &c, &in.image, 0, 0, 0, &found, test_new_error ()),
      IMK_ERROR_IMAGE, "the image is dark");
  test_error (imk_octbscan_estimate_dispersion (
                  &c, &in.image, 0, 1, 0, &found, test_new_error ()),
      IMK_ERROR_CONFIG, "camera is 1");
  test_error (imk_octbscan_estimate_dispersion (
                  &c, &other.image, 0, 0, 0, &found, test_new_error ()),
      IMK_ERROR_IMAGE, "input");
  c.height = 1;
  c.n_cameras = 2;
  c.cameras = cameras;
  in.image.height = 1;
  test_error (imk_octbscan_estimate_dispersion (
                  &c, &in.image, 0, 1, 0, &found, test_new_error ()),
      IMK_ERROR_IMAGE, "Camera 1 has no line");
  test_check (found.d2 == 5, "the result was written to");
}

/* What is refused keeps the coefficients of the camera, and says why. */
static void
check_refused (const ImkOctbscanConfig *config, const TestImage *in,
    const char *words, double *confidence)
{
  static const double own[] = {0, 0, 1.25, -0.5};
  const ImkOctbscanCamera camera = {.dispersion = own, .n_dispersion = 4};
  ImkOctbscanConfig c = *config;
  ImkOctbscanDispersion found;
  ImkStatus status;

  c.cameras = &camera;
  status = imk_octbscan_estimate_dispersion (
      &c, &in->image, 0, 0, 0, &found, test_new_error ());
  test_error (status, IMK_ERROR_IMAGE, words);
  test_check (found.d2 == 1.25 && found.d3 == -0.5, "d2 is %g, d3 %g", found.d2,
      found.d3);
  *confidence = found.confidence;
}

/* Noise of any size, with a drift of the light that changes from line to line
 * or without. */
TEST (test_noise_has_no_dispersion, "noise has no dispersion")
{
  static const uint32_t heights[] = {1, 2, 5, 20, 60, 200};
  double most = 0;

  for (uint32_t i = 0; i < 24; i++) {
    ImkOctbscanConfig c = base_config ();
    uint64_t seed = 40 + i;
    double confidence;
    test_auto (TestImage) in;

    c.height = heights[i % 6];
    c.background_mode = IMK_OCTBSCAN_BACKGROUND_NONE;
    in = test_image_new (c.type, c.width, c.height, 1, 0);
    for (uint32_t r = 0; r < c.height; r++) {
      double light = i < 12 ? 0 : 3000 * uniform (&seed);
      uint16_t *row =
          (uint16_t *) ((uint8_t *) in.image.data + r * in.image.stride);

      for (uint32_t x = 0; x < c.width; x++)
        row[x] = (uint16_t) (20000 + light * sin (M_PI * (x + 0.5) / c.width) +
                             200 * (uniform (&seed) + uniform (&seed)));
    }
    check_refused (&c, &in, "cannot be estimated", &confidence);
    most = fmax (most, confidence);
  }
  printf ("# confidence up to %.2f\n", most);
  test_check (most < IMK_OCTBSCAN_LEAST_CONFIDENCE, "confidence %.2f", most);
}

TEST (test_ends_of_the_range_are_refused, "ends of the range are refused")
{
  static const double psi[][2] = {{64, 0}, {-75, 5}, {2, 33}};

  for (uint32_t k = 0; k < 3; k++) {
    ImkOctbscanConfig c = base_config ();
    test_auto (TestImage) in = layers (&c, &psi[k]);
    double confidence;

    check_refused (&c, &in, "at an end of the search range", &confidence);
  }
}

/* Light that drifts by 30 % from line to line: what its mean leaves is brighter
 * than all layers. */
TEST (test_residue_of_the_dc_is_left_out, "what is left of the DC is left out")
{
  static const double psi[][2] = {{9, -2}, {-17.5, 6}};

  for (uint32_t k = 0; k < 2; k++) {
    ImkOctbscanConfig c = base_config ();
    test_auto (TestImage) in = layers (&c, &psi[k]);
    ImkOctbscanDispersion found;

    for (uint32_t r = 0; r < c.height; r++) {
      uint16_t *row =
          (uint16_t *) ((uint8_t *) in.image.data + r * in.image.stride);
      double light = 0.3 * sin (0.37 * r);

      for (uint32_t x = 0; x < c.width; x++)
        row[x] = (uint16_t) (row[x] +
                             light * (20000 + 8000 * sin (M_PI * x / c.width)));
    }
    test_ok (imk_octbscan_estimate_dispersion (
        &c, &in.image, 0, 0, 0, &found, test_new_error ()));
    printf ("# residue of %u depths, confidence %.2f, d2 %.2f, d3 %.2f\n",
        found.residue, found.confidence, found.d2, found.d3);
    test_check (fabs (found.d2 + psi[k][0]) < 0.05 &&
                    fabs (found.d3 + psi[k][1]) < 0.05,
        "d2 %.3f, d3 %.3f", found.d2, found.d3);
    test_check (
        found.residue >= 3 && found.residue < 26, "residue %u", found.residue);
  }
}

/* The curve is what it says. */
TEST (test_the_curve_has_its_maximum_there, "the curve has its maximum there")
{
  static const double psi[][2] = {{9, -2}};
  ImkOctbscanConfig c = base_config ();
  test_auto (TestImage) in = layers (&c, psi);
  ImkOctbscanDispersion found;
  uint32_t at = 0;

  test_ok (imk_octbscan_estimate_dispersion (
      &c, &in.image, 0, 0, 40, &found, test_new_error ()));
  for (uint32_t i = 0; i < IMK_OCTBSCAN_CURVE; i++)
    at = found.curve[i] > found.curve[at] ? i : at;
  test_check (found.range == 40 && at == 31, "%u of %g", at, found.range);
  test_check (fabs (found.curve[at] / found.after - 1) < 1e-6, "%g and %g",
      found.curve[at], found.after);
  test_check (found.confidence > 0.8, "confidence %g", found.confidence);
}

/* octopod: -12 by its README, each B-scan and all of them as one, whose light
 * drifts. */
TEST (test_real_bscans_agree, "real B-scans agree")
{
  static const double polynomial[] = {806, -0.064};
  const ImkOctbscanCamera camera = {
      .map = IMK_OCTBSCAN_MAP_POLYNOMIAL, .values = polynomial, .n_values = 2};
  FILE *file = test_open_data ("octbscan/octopod/volume_2048x20x20_u16le.unp");
  test_auto (TestImage) all = test_image_new (IMK_TYPE_U16, 2048, 400, 1, 0);
  bool whole = true;

  for (uint32_t r = 0; r < 400; r++)
    whole = whole && fread ((uint8_t *) all.image.data + r * all.image.stride,
                         2, 2048, file) == 2048;
  fclose (file);
  test_check (whole, "the volume is short");
  for (uint32_t b = 0; b <= 20; b++) {
    ImkOctbscanConfig c = base_config ();
    ImkOctbscanDispersion found;
    ImkImage in = all.image;

    c.width = c.upsample = 2048;
    c.height = in.height = b < 20 ? 20 : 400;
    c.cameras = &camera;
    in.data = (uint8_t *) in.data + (b < 20 ? b * 20 * in.stride : 0);
    test_ok (imk_octbscan_estimate_dispersion (
        &c, &in, 0, 0, 0, &found, test_new_error ()));
    printf ("# %u lines: d2 %.2f, d3 %.2f, confidence %.2f, residue %u\n",
        in.height, found.d2, found.d3, found.confidence, found.residue);
    test_check (
        fabs (found.d2 + 11.5) < 1.6, "B-scan %u: d2 is %.2f", b, found.d2);
    test_check (found.confidence > 0.75, "B-scan %u: confidence %.2f", b,
        found.confidence);
  }
}

/* An etalon's fringe, without dispersion and sharper than all layers, is taken
 * off the image by its fixed pattern. It has no part in the estimate then. */
TEST (test_fixed_pattern_is_left_out, "fixed pattern is left out")
{
  static const double psi[][2] = {{12, -1.5}};
  static const ImkOctbscanFixedPattern patterns[] = {
      IMK_OCTBSCAN_FIXED_PATTERN_MINVAR,
      IMK_OCTBSCAN_FIXED_PATTERN_ONCE,
      IMK_OCTBSCAN_FIXED_PATTERN_FILE,
  };
  ImkOctbscanConfig c = base_config ();
  test_auto (TestImage) in = layers (&c, psi);
  test_autofree double *recorded = calloc (2 * 256, sizeof (*recorded));

  for (uint32_t r = 0; r < c.height; r++)
    for (uint32_t x = 0; x < c.width; x++)
      ((uint16_t *) (void *) ((uint8_t *) in.image.data +
                              r * in.image.stride))[x] +=
          (uint16_t) (1500 + 1500 * cos (2 * M_PI * 75 * x / c.width));
  c.background_mode = IMK_OCTBSCAN_BACKGROUND_ROLLING;
  c.pattern = recorded;
  for (uint32_t k = 0; k < sizeof (patterns) / sizeof (patterns[0]); k++) {
    ImkOctbscanDispersion found;

    c.fixed_pattern = patterns[k];
    test_ok (imk_octbscan_estimate_dispersion (
        &c, &in.image, 0, 0, 0, &found, test_new_error ()));
    printf ("# pattern %u: d2 %.2f, d3 %.2f, confidence %.2f\n",
        (unsigned) patterns[k], found.d2, found.d3, found.confidence);
    test_check (
        fabs (found.d2 + psi[0][0]) < 0.05 && fabs (found.d3 + psi[0][1]) < 0.2,
        "d2 %.3f, d3 %.3f", found.d2, found.d3);
  }
}

/* Noise and a fixed line: what is shown is noise. */
TEST (test_a_fixed_line_alone_is_refused, "a fixed line alone is refused")
{
  ImkOctbscanConfig c = base_config ();
  test_auto (TestImage) in = test_image_new (c.type, c.width, c.height, 1, 0);
  uint64_t seed = 3;
  double confidence;

  for (uint32_t r = 0; r < c.height; r++)
    for (uint32_t x = 0; x < c.width; x++)
      ((uint16_t *) (void *) ((uint8_t *) in.image.data +
                              r * in.image.stride))[x] =
          (uint16_t) (20000 + 200 * (uniform (&seed) + uniform (&seed)) +
                      1500 * cos (2 * M_PI * 75 * x / c.width));
  c.background_mode = IMK_OCTBSCAN_BACKGROUND_ROLLING;
  c.fixed_pattern = IMK_OCTBSCAN_FIXED_PATTERN_MINVAR;
  check_refused (&c, &in, "no d2 makes the image", &confidence);
}

/* Spectra linear in wavelength, taken to be linear in wavenumber: what d2 makes
 * up for rises with the depth, which is told. With the wavelengths all depths
 * agree. */
TEST (test_a_missing_calibration_is_told, "a missing calibration is told")
{
  static const double wavelengths[] = {790, 890};
  const ImkOctbscanCamera camera = {
      .map = IMK_OCTBSCAN_MAP_RANGE, .values = wavelengths, .n_values = 2};
  ImkOctbscanConfig c = base_config ();
  test_auto (TestImage) in = test_image_new (c.type, c.width, c.height, 1, 0);
  ImkOctbscanDispersion found;
  uint64_t seed = 9;
  double confidence;

  for (uint32_t r = 0; r < c.height; r++) {
    uint16_t *row =
        (uint16_t *) ((uint8_t *) in.image.data + r * in.image.stride);
    double place[9], phase[9];

    for (int k = 0; k < 9; k++) {
      place[k] = 20 + 22 * k + 0.5 * uniform (&seed);
      phase[k] = 2 * M_PI * uniform (&seed);
    }
    for (uint32_t i = 0; i < c.width; i++) {
      double lambda = 790 + 100.0 * i / (c.width - 1);
      double along = (1 / lambda - 1.0 / 790) / (1.0 / 890 - 1.0 / 790);
      double v = 20000 + 60 * uniform (&seed);

      for (int k = 0; k < 9; k++)
        v += 300 * cos (2 * M_PI * place[k] * along + phase[k]);
      row[i] = (uint16_t) v;
    }
  }
  check_refused (&c, &in, "with the depth", &confidence);
  c.cameras = &camera;
  test_ok (imk_octbscan_estimate_dispersion (
      &c, &in.image, 0, 0, 0, &found, test_new_error ()));
  test_check (fabs (found.d2) < 0.02 && fabs (found.d3) < 0.02,
      "d2 %.3f, d3 %.3f", found.d2, found.d3);
}
