/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The common band of two images against its definition in float64. */
#include <complex.h>
#include <math.h>

#include "core/sample.h"
#include "insarform-common.h"

static double
noise (uint64_t *seed)
{
  return (double) (test_random (seed) % 2000) - 1000;
}

/* Noise, of which the second image has a part of the first, turned by the
 * phase, and another Doppler centroid; some samples have no data. */
static Pair
make_pair (ImkType type, uint32_t width, uint32_t height)
{
  Pair p = pair_new (type, width, height);
  uint64_t seed = width * 1000 + height;

  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++) {
      double f = 2 * M_PI * (0.13 * x + 0.02 * y) + 2e-3 * x * y;
      double complex s = noise (&seed) + I * noise (&seed);
      double complex t = (0.9 * s + 0.4 * (noise (&seed) + I * noise (&seed))) *
                         cexp (-I * f + I * 0.4 * y);

      if (test_random (&seed) % 40 == 0)
        s = 0;
      test_image_put_complex (&p.a, x, y, creal (s), cimag (s));
      test_image_put_complex (&p.b, x, y, creal (t), cimag (t));
      imk_sample_put (&p.phase.image, x, y, 0,
          test_random (&seed) % 60 ? remainder (f, 2 * M_PI) : NAN);
    }
  return p;
}

/* Relative to the amplitudes. */
static double
compare (const ImkInsarformConfig *c, const Pair *p, bool with_phase,
    uint32_t n_push)
{
  test_auto (TestImage) out = insarform_form (c, p, with_phase, n_push);
  test_auto (TestImage) e = insarform_expected (c, p, with_phase);
  double largest = 0;

  for (uint32_t y = 0; y < e.image.height; y++)
    for (uint32_t x = 0; x < e.image.width; x++)
      for (uint32_t i = 0; i < IMK_INSARFORM_REMOVED; i++) {
        double scale = i < 2 ? 1e6 : i == 2 ? 1e3 : 1;
        double d = imk_sample_get (&out.image, x, y, i) -
                   imk_sample_get (&e.image, x, y, i);

        largest = isnan (d) ? INFINITY : fmax (largest, fabs (d) / scale);
      }
  return largest;
}

TEST (test_the_band_is_its_definition, "the common band is its definition")
{
  static const struct {
    uint32_t width, height, looks, fringe_window, push;
    double range, azimuth, alpha;
  } cases[] = {{150, 97, 1, 0, 7, 0.8, 0.7, 0}, {64, 64, 2, 0, 64, 0.8, 0, 0},
      {40, 21, 3, 0, 1, 0, 0.6, 0}, {130, 70, 2, 0, 1000, 1, 1, 0.5},
      {97, 130, 2, 16, 3, 0.7, 0.8, 0}};

  for (size_t i = 0; i < 2 * sizeof (cases) / sizeof (cases[0]); i++) {
    size_t k = i / 2;
    bool with_phase = cases[k].fringe_window == 0 && k != 2;
    test_auto (Pair) pair = make_pair (
        i % 2 ? IMK_TYPE_CF32 : IMK_TYPE_CI16, cases[k].width, cases[k].height);
    ImkInsarformConfig c = insarform_config (&pair);
    double d;

    c.looks_x = c.looks_y = cases[k].looks;
    c.fringe_window = cases[k].fringe_window;
    c.range_band = cases[k].range;
    c.azimuth_band = cases[k].azimuth;
    c.filter_alpha = cases[k].alpha;
    c.n_threads = 1 + i % 2;
    d = compare (&c, &pair, with_phase, cases[k].push);
    test_check (d < 2e-5, "case %zu: %g", i, d);
  }
}

/* A fringe rate beyond the band: nothing is common, and there is no data. */
TEST (test_nothing_in_common_is_no_data, "nothing in common is no data")
{
  test_auto (Pair) pair = make_pair (IMK_TYPE_CF32, 96, 96);
  ImkInsarformConfig c = insarform_config (&pair);
  test_auto (TestImage) out = {0};

  for (uint32_t y = 0; y < 96; y++)
    for (uint32_t x = 0; x < 96; x++)
      imk_sample_put (&pair.phase.image, x, y, 0,
          remainder (0.45 * 2 * M_PI * x, 2 * M_PI));
  c.range_band = 0.3;
  out = insarform_form (&c, &pair, true, 20);
  for (uint32_t y = 0; y < 96; y++)
    for (uint32_t x = 0; x < 96; x++)
      for (uint32_t i = 0; i < IMK_INSARFORM_REMOVED; i++)
        test_check (imk_sample_get (&out.image, x, y, i) == 0,
            "channel %u of (%u, %u) is %g", i, x, y,
            imk_sample_get (&out.image, x, y, i));
}

TEST (test_bands_are_checked, "bands are checked")
{
  ImkInsarformConfig good;

  imk_insarform_config_init (&good);
  good.width = good.height = 96;
  INSARFORM_REFUSES (good, c.range_band = NAN, "range-bandwidth is nan");
  INSARFORM_REFUSES (good, c.azimuth_band = 1.5, "azimuth-bandwidth 1.5");
}
