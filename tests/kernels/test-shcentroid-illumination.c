/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* min_illumination: cells that are dark beside the brightest one. */
#include <math.h>
#include <string.h>

#include "sh-common.h"

enum { COLUMNS = 7, ROWS = 4, N_CELLS = COLUMNS * ROWS, PITCH = 9 };

/* Cells of very different light; another one each @turn, which the spots move
 * in. What float32 holds needs the chain, as the mask does. */
static TestImage
make_frame (uint32_t turn)
{
  TestImage in =
      test_image_new (IMK_TYPE_F32, COLUMNS * PITCH, ROWS * PITCH, 1, 4);
  uint64_t seed = 40 + turn;

  for (uint32_t y = 0; y < ROWS * PITCH; y++)
    for (uint32_t x = 0; x < COLUMNS * PITCH; x++) {
      uint32_t cell = y / PITCH * COLUMNS + x / PITCH;
      double peak = 10.0 + 990.0 * ((cell * 5 + turn) % 13) / 12;
      double u = x % PITCH - 3.4 - 0.2 * turn, v = y % PITCH - 4.3;

      sh_set (&in, x, y,
          peak * exp (-(u * u + v * v) / 4.5) + 0.5 * sh_uniform (&seed));
    }
  return in;
}

static ImkShcentroidConfig
make_config (void)
{
  ImkShcentroidConfig c = sh_grid (IMK_TYPE_F32, COLUMNS * PITCH, ROWS * PITCH,
      0, 0, PITCH, PITCH, COLUMNS, ROWS);

  c.gain = 2;
  c.read_noise = 1;
  return c;
}

/* Returns: the flux of the brightest cell of @in */
static double
find_most (const ImkShcentroidConfig *of, const TestImage *in)
{
  ImkShcentroidConfig c = *of;
  test_auto (TestImage) out;
  double most = 0;

  c.fields = IMK_SHCENTROID_FIELDS_ALL;
  c.min_illumination = 0;
  out = sh_run (IMK_BACKEND_CPU, &c, in, IMK_TYPE_F64, 0);
  for (uint32_t i = 0; i < N_CELLS; i++)
    most = fmax (most, sh_get (&out, i, IMK_SHCENTROID_FLUX));
  return most;
}

static void
process_flags (ImkShcentroid *s, const TestImage *in, TestImage *out,
    TestImage *rounded, TestImage *flags)
{
  test_ok (imk_shcentroid_process_flags (s, &in->image, &out->image,
      &rounded->image, &flags->image, NULL, test_new_error ()));
}

/* The share of the brightest cell does what its number of counts as min_flux
 * does, in frames that have other brightest cells. */
static void
check_as_min_flux (const ImkShcentroidConfig *of, const char *name)
{
  ImkShcentroidConfig share = *of, counts = *of;
  test_autoptr (ImkShcentroid) a = NULL;
  test_autoptr (ImkShcentroid) b = sh_new (IMK_BACKEND_CPU, &counts);

  share.min_illumination = 0.4;
  a = sh_new (IMK_BACKEND_CPU, &share);
  for (uint32_t turn = 0; turn < 5; turn++) {
    test_auto (TestImage) in = make_frame (turn);
    test_auto (TestImage) out_a = sh_output (of, IMK_TYPE_F64, 8);
    test_auto (TestImage) out_b = sh_output (of, IMK_TYPE_F64, 8);
    test_auto (TestImage) near_a = sh_output (of, IMK_TYPE_F32, 4);
    test_auto (TestImage) near_b = sh_output (of, IMK_TYPE_F32, 4);
    test_auto (TestImage) flags_a =
        test_image_new (IMK_TYPE_U8, N_CELLS, 1, 1, 0);
    test_auto (TestImage) flags_b =
        test_image_new (IMK_TYPE_U8, N_CELLS, 1, 1, 0);
    uint32_t n_dark = 0;

    counts.min_flux = share.min_illumination * find_most (of, &in);
    test_ok (imk_shcentroid_update (b, &counts, test_new_error ()));
    process_flags (a, &in, &out_a, &near_a, &flags_a);
    process_flags (b, &in, &out_b, &near_b, &flags_b);
    test_image_same (&out_a, &out_b, name);
    test_image_same (&near_a, &near_b, name);
    test_image_same (&flags_a, &flags_b, name);
    test_image_check_canaries (&out_a, name);
    test_image_check_canaries (&near_a, name);
    for (uint32_t i = 0; i < N_CELLS; i++)
      n_dark +=
          (((uint8_t *) flags_a.image.data)[i] & IMK_SHCENTROID_LOW_FLUX) != 0;
    test_check (n_dark >= N_CELLS / 4 && n_dark <= 3 * N_CELLS / 4,
        "%s: %u of %u cells are dark, which proves nothing", name, n_dark,
        N_CELLS);
  }
}

/* Calls @check with each estimator, policy, choice of fields, and with what
 * remembers earlier frames. */
static void
for_each_config (void (*check) (const ImkShcentroidConfig *c, const char *name))
{
  for (int kind = 0; kind < 5; kind++)
    for (int policy = 0; policy <= IMK_SHCENTROID_INVALID_REFERENCE; policy++)
      for (int fields = 0; fields <= IMK_SHCENTROID_FIELDS_SLOPES; fields++)
        for (int tilt = 0; tilt < 2; tilt++) {
          ImkShcentroidConfig c = make_config ();
          char name[100];

          c.invalid_policy = policy;
          c.fields = fields;
          c.remove_tilt = tilt;
          switch (kind) {
          case 1:
            c.estimator = IMK_SHCENTROID_ESTIMATOR_QUAD;
            break;
          case 2:
            c.estimator = IMK_SHCENTROID_ESTIMATOR_CORRELATION;
            c.template_source = IMK_SHCENTROID_TEMPLATE_FRAME;
            c.template_cell = 9;
            c.template_margin = c.search_range = 2;
            break;
          case 3:
            c.window = IMK_SHCENTROID_WINDOW_TRACKING;
            c.tracking_reset = 2;
            break;
          case 4:
            c.weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN;
            c.sigma = 3;
            c.brightest = 20;
            break;
          }
          snprintf (name, sizeof (name), "kind %d policy %d fields %d tilt %d",
              kind, policy, fields, tilt);
          check (&c, name);
        }
}

TEST (test_share_of_the_brightest,
    "min_illumination does what its share of the brightest cell does as "
    "min_flux",
    .cpu_only = true)
{
  for_each_config (check_as_min_flux);
}

TEST_BACKENDS (test_dark_cells, "cells below the share of the brightest are "
                                "flagged and report the policy")
{
  ImkShcentroidConfig c = sh_grid (IMK_TYPE_U8, 12, 3, 0, 0, 3, 3, 4, 1);
  static const double flux[] = {100, 50, 49, 0};
  static const uint32_t flags[] = {0, 0, IMK_SHCENTROID_LOW_FLUX,
      IMK_SHCENTROID_NO_FLUX | IMK_SHCENTROID_LOW_FLUX};
  test_auto (TestImage) in = test_image_new (IMK_TYPE_U8, 12, 3, 1, 0);
  test_auto (TestImage) out;

  test_image_fill (&in, FILL_ZERO, 0, 0);
  for (uint32_t i = 0; i < 4; i++)
    sh_set (&in, 3 * i + 2, 1, flux[i]);
  c.min_illumination = 0.5;
  out = sh_run (backend, &c, &in, IMK_TYPE_F64, 0);
  for (uint32_t i = 0; i < 4; i++) {
    sh_near (&out, i, IMK_SHCENTROID_FLUX, flux[i], 0);
    sh_near (&out, i, IMK_SHCENTROID_FLAGS, flags[i], 0);
    sh_near (&out, i, IMK_SHCENTROID_X, 3 * i + (flags[i] ? 1 : 2), 0);
    sh_near (&out, i, IMK_SHCENTROID_DX, flags[i] ? 0 : 1, 0);
    sh_near (&out, i, IMK_SHCENTROID_FLUX_RAW, flux[i], 0);
  }
}

/* The brightest of all is no cell of a sample that is not finite. */
TEST_BACKENDS (test_not_finite, "a cell that is not finite is not the "
                                "brightest, and keeps its own flag")
{
  ImkShcentroidConfig c = make_config ();
  test_auto (TestImage) in = make_frame (0), good, bad;

  c.min_illumination = 0.4;
  good = sh_run (backend, &c, &in, IMK_TYPE_F64, 0);
  sh_set (&in, 4, 4, INFINITY); /* cell 0 is one of the darkest */
  bad = sh_run (backend, &c, &in, IMK_TYPE_F64, 0);
  sh_near (&bad, 0, IMK_SHCENTROID_FLAGS, IMK_SHCENTROID_NOT_FINITE, 0);
  for (uint32_t i = 1; i < N_CELLS; i++)
    for (uint32_t f = 0; f < N_FIELDS; f++)
      sh_near (&bad, i, f, sh_get (&good, i, f), 0);
}

TEST (test_refused, "a share that is none is refused", .cpu_only = true)
{
  static const double shares[] = {-0.1, 1.1, NAN};
  static const char *const words[] = {
      "min-illumination is -0.1", "from 0 to 1", "min-illumination is nan"};

  for (int i = 0; i < 3; i++) {
    ImkShcentroidConfig c = make_config ();
    ImkShcentroid *s = NULL;

    c.min_illumination = shares[i];
    test_error (imk_shcentroid_new (IMK_BACKEND_CPU, &c, &s, test_new_error ()),
        IMK_ERROR_CONFIG, words[i]);
  }
}

static void
check_parity (const ImkShcentroidConfig *of, const char *name)
{
  ImkShcentroidConfig c = *of;

  c.min_illumination = 0.4;
  for (uint32_t turn = 0; turn < 2; turn++) {
    test_auto (TestImage) in = make_frame (turn);

    sh_check_parity (&c, &in, IMK_TYPE_F64, 8, 3, turn == 1, name);
  }
}

TEST (test_parity, "CPU and CUDA agree bit for bit")
{
  test_need_cuda ();
  for_each_config (check_parity);
}
