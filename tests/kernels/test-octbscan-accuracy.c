/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How far each interpolation is from exact band-limited resampling, by depth:
 * the table of docs/reference/octbscan.md. Exact itself is compared with its
 * definition in test-octbscan. */
#include "kernel-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "imk/octbscan.h"

TEST_DEFINE_AUTO_POINTER (ImkOctbscan, imk_octbscan_free)

enum { WIDTH = 832, HEIGHT = 24, SCALE = 4, DEPTHS = 1664, REFLECTORS = 30 };

/* Depths that are looked at together. */
static const uint32_t ends[] = {40, 400, 800, 1200, 1664};
enum { N_BANDS = 4 };

static const double wavelengths[] = {806, 675};

/* 30 reflectors in each A-scan, anywhere, in spectra of linear wavelength. */
static TestImage
reflectors (void)
{
  TestImage in = test_image_new (IMK_TYPE_F32, WIDTH, HEIGHT, 1, 0);
  uint64_t seed = 3;

  for (uint32_t r = 0; r < HEIGHT; r++) {
    float *row = (float *) ((uint8_t *) in.image.data + r * in.image.stride);
    double depth[REFLECTORS], phase[REFLECTORS];

    for (int k = 0; k < REFLECTORS; k++) {
      depth[k] = (double) (test_random (&seed) >> 11) / 0x1p53;
      phase[k] = (double) (test_random (&seed) >> 11) / 0x1p53;
    }
    for (uint32_t i = 0; i < WIDTH; i++) {
      double l = wavelengths[0] +
                 (wavelengths[1] - wavelengths[0]) * i / (WIDTH - 1.0);
      double along = (1 / l - 1 / wavelengths[0]) /
                     (1 / wavelengths[1] - 1 / wavelengths[0]);
      double v = 0;

      for (int k = 0; k < REFLECTORS; k++)
        v += cos (M_PI * (WIDTH * depth[k] * along + 2 * phase[k]));
      row[i] = (float) (100 * v);
    }
  }
  return in;
}

static ImkOctbscanConfig
base_config (const ImkOctbscanCamera *camera)
{
  ImkOctbscanConfig c;

  imk_octbscan_config_init (&c);
  c.width = WIDTH;
  c.height = HEIGHT;
  c.type = IMK_TYPE_F32;
  c.cameras = camera;
  c.scale = SCALE;
  c.window = IMK_OCTBSCAN_WINDOW_HANN;
  c.background_mode = IMK_OCTBSCAN_BACKGROUND_NONE;
  return c;
}

static TestImage
run (const ImkOctbscanConfig *c, const TestImage *in)
{
  TestImage z = test_image_new (IMK_TYPE_CF32, DEPTHS, HEIGHT, 1, 0);
  ImkOctbscanJob job = {.in = &in->image, .complex = &z.image};
  test_autoptr (ImkOctbscan) kernel = NULL;

  test_ok (imk_octbscan_new (IMK_BACKEND_CPU, c, &kernel, test_new_error ()));
  test_ok (imk_octbscan_process (kernel, &job, 1, NULL, test_new_error ()));
  return z;
}

/* Relative rms in each band. */
static void
compare (const TestImage *found, const TestImage *exact, double error[N_BANDS])
{
  for (uint32_t b = 0; b < N_BANDS; b++) {
    double differences = 0, power = 0;

    for (uint32_t r = 0; r < HEIGHT; r++) {
      const float *f = (const float *) ((const uint8_t *) found->image.data +
                                        r * found->image.stride);
      const float *e = (const float *) ((const uint8_t *) exact->image.data +
                                        r * exact->image.stride);

      for (uint32_t i = 2 * ends[b]; i < 2 * ends[b + 1]; i++) {
        differences += (f[i] - (double) e[i]) * (f[i] - (double) e[i]);
        power += (double) e[i] * e[i];
      }
    }
    error[b] = sqrt (differences / power);
  }
}

typedef struct Case {
  const char *name;
  ImkOctbscanInterpolation interpolation;
  ImkOctbscanGrid grid;
  uint32_t upsample;
  double most[N_BANDS]; /* what is documented, rounded up */
} Case;

static const Case cases[] = {
    {"cubic", IMK_OCTBSCAN_INTERPOLATION_CUBIC, IMK_OCTBSCAN_GRID_EXACT, 4096,
        {0.0008, 0.0009, 0.0012, 0.002}},
    {"lanczos", IMK_OCTBSCAN_INTERPOLATION_LANCZOS, IMK_OCTBSCAN_GRID_EXACT,
        4096, {0.0022, 0.0022, 0.0022, 0.0024}},
    {"linear", IMK_OCTBSCAN_INTERPOLATION_LINEAR, IMK_OCTBSCAN_GRID_EXACT, 4096,
        {0.005, 0.008, 0.017, 0.032}},
    {"thesis", IMK_OCTBSCAN_INTERPOLATION_THESIS, IMK_OCTBSCAN_GRID_THESIS,
        4096, {0.25, 0.55, 0.9, 1.2}},
    {"cubic, not upsampled", IMK_OCTBSCAN_INTERPOLATION_CUBIC,
        IMK_OCTBSCAN_GRID_EXACT, 832, {0.007, 0.05, 0.22, 0.6}},
    {"linear, not upsampled", IMK_OCTBSCAN_INTERPOLATION_LINEAR,
        IMK_OCTBSCAN_GRID_EXACT, 832, {0.035, 0.15, 0.36, 0.7}},
};

TEST (test_accuracy_by_depth, "interpolations are as accurate as documented")
{
  const ImkOctbscanCamera camera = {IMK_OCTBSCAN_MAP_RANGE, wavelengths, 2};
  test_auto (TestImage) in = reflectors ();

  for (uint32_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    const Case *k = &cases[i];
    ImkOctbscanConfig c = base_config (&camera);
    test_auto (TestImage) exact, found;
    double error[N_BANDS];

    c.upsample = k->upsample;
    exact = run (&c, &in);
    c.interpolation = k->interpolation;
    c.grid = k->grid;
    found = run (&c, &in);
    compare (&found, &exact, error);
    printf ("# %-22s", k->name);
    for (uint32_t b = 0; b < N_BANDS; b++)
      printf (" %8.3f %%", 100 * error[b]);
    printf ("\n");
    for (uint32_t b = 0; b < N_BANDS; b++)
      test_check (error[b] <= k->most[b],
          "%s: %.3f %% at depths %u to %u, documented are %.3f %%", k->name,
          100 * error[b], ends[b], ends[b + 1], 100 * k->most[b]);
  }
}
