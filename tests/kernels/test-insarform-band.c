/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The common band of two images against its definition in float64. */
#include <complex.h>
#include <math.h>

#include "core/sample.h"
#include "imk/insarform.h"
#include "insarform/insarform-reference.h"
#include "kernel-test.h"

enum { N = IMK_INSARFORM_N_CHANNELS };

typedef struct Pair {
  TestImage images[2], phase;
} Pair;

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
  Pair p = {{test_image_new (type, width, height, 1, 8),
                test_image_new (type, width, height, 1, 24)},
      test_image_new (IMK_TYPE_F32, width, height, 1, 4)};
  uint64_t seed = width * 1000 + height;

  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++) {
      double f = 2 * M_PI * (0.13 * x + 0.02 * y) + 2e-3 * x * y;
      double complex s = noise (&seed) + I * noise (&seed);
      double complex t = (0.9 * s + 0.4 * (noise (&seed) + I * noise (&seed))) *
                         cexp (-I * f + I * 0.4 * y);

      if (test_random (&seed) % 40 == 0)
        s = 0;
      test_image_put_complex (&p.images[0], x, y, creal (s), cimag (s));
      test_image_put_complex (&p.images[1], x, y, creal (t), cimag (t));
      imk_sample_put (&p.phase.image, x, y, 0,
          test_random (&seed) % 60 ? remainder (f, 2 * M_PI) : NAN);
    }
  return p;
}

static void
free_pair (Pair *p)
{
  test_image_free (&p->images[0]);
  test_image_free (&p->images[1]);
  test_image_free (&p->phase);
}

static ImkImage
lines_of (const TestImage *image, uint32_t first, uint32_t n)
{
  ImkImage lines = image->image;

  lines.data = (uint8_t *) lines.data + first * lines.stride;
  lines.height = n;
  return lines;
}

/* At most @n_push lines at a time, twice with the same object. */
static TestImage
form (const ImkInsarformConfig *c, const Pair *p, bool with_phase,
    uint32_t n_push)
{
  TestImage out = test_image_new (
      IMK_TYPE_F32, c->width / c->looks_x, c->height / c->looks_y, N, 8);
  ImkInsarform *self = NULL;

  test_ok (imk_insarform_new (IMK_BACKEND_CPU, c, &self, test_new_error ()));
  for (int run = 0; run < 2; run++) {
    imk_insarform_rewind (self);
    while (imk_insarform_row (self) < out.image.height) {
      uint32_t at = imk_insarform_pushed (self);
      uint32_t room = imk_insarform_room (self);
      uint32_t n = room < n_push ? room : n_push;
      ImkImage row = lines_of (&out, imk_insarform_row (self), 1);
      ImkImage a = lines_of (&p->images[0], at, n);
      ImkImage b = lines_of (&p->images[1], at, n);
      ImkImage phase = lines_of (&p->phase, at, n);

      if (imk_insarform_is_ready (self)) {
        test_ok (imk_insarform_process (self, &row, test_new_error ()));
        continue;
      }
      test_check (room > 0, "no room after %u lines", at);
      test_ok (imk_insarform_push_flat (
          self, &a, &b, with_phase ? &phase : NULL, test_new_error ()));
    }
  }
  imk_insarform_free (self);
  test_image_check_canaries (&out, "output");
  return out;
}

/* Relative to the amplitudes. */
static double
compare (const ImkInsarformConfig *c, const Pair *p, bool with_phase,
    uint32_t n_push)
{
  TestImage out = form (c, p, with_phase, n_push);
  TestImage e =
      test_image_new (IMK_TYPE_F64, out.image.width, out.image.height, N, 0);
  double largest = 0;

  imk_insarform_reference (c, &p->images[0].image, &p->images[1].image,
      with_phase ? &p->phase.image : NULL, &e.image);
  for (uint32_t y = 0; y < e.image.height; y++)
    for (uint32_t x = 0; x < e.image.width; x++)
      for (uint32_t i = 0; i < IMK_INSARFORM_REMOVED; i++) {
        double scale = i < 2 ? 1e6 : i == 2 ? 1e3 : 1;
        double d = imk_sample_get (&out.image, x, y, i) -
                   imk_sample_get (&e.image, x, y, i);

        largest = isnan (d) ? INFINITY : fmax (largest, fabs (d) / scale);
      }
  test_image_free (&out);
  test_image_free (&e);
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
    ImkInsarformConfig c;
    size_t k = i / 2;
    bool with_phase = cases[k].fringe_window == 0 && k != 2;
    Pair pair = make_pair (
        i % 2 ? IMK_TYPE_CF32 : IMK_TYPE_CI16, cases[k].width, cases[k].height);
    double d;

    imk_insarform_config_init (&c);
    c.width = cases[k].width;
    c.height = cases[k].height;
    c.type = pair.images[0].image.type;
    c.looks_x = c.looks_y = cases[k].looks;
    c.fringe_window = cases[k].fringe_window;
    c.range_band = cases[k].range;
    c.azimuth_band = cases[k].azimuth;
    c.filter_alpha = cases[k].alpha;
    c.n_threads = 1 + i % 2;
    d = compare (&c, &pair, with_phase, cases[k].push);
    test_check (d < 2e-5, "case %zu: %g", i, d);
    free_pair (&pair);
  }
}

/* A fringe rate beyond the band: nothing is common, and there is no data. */
TEST (test_nothing_in_common_is_no_data, "nothing in common is no data")
{
  Pair pair = make_pair (IMK_TYPE_CF32, 96, 96);
  ImkInsarformConfig c;
  TestImage out;

  for (uint32_t y = 0; y < 96; y++)
    for (uint32_t x = 0; x < 96; x++)
      imk_sample_put (&pair.phase.image, x, y, 0,
          remainder (0.45 * 2 * M_PI * x, 2 * M_PI));
  imk_insarform_config_init (&c);
  c.width = c.height = 96;
  c.type = IMK_TYPE_CF32;
  c.range_band = 0.3;
  out = form (&c, &pair, true, 20);
  for (uint32_t y = 0; y < 96; y++)
    for (uint32_t x = 0; x < 96; x++)
      for (uint32_t i = 0; i < IMK_INSARFORM_REMOVED; i++)
        test_check (imk_sample_get (&out.image, x, y, i) == 0,
            "channel %u of (%u, %u) is %g", i, x, y,
            imk_sample_get (&out.image, x, y, i));
  test_image_free (&out);
  free_pair (&pair);
}

TEST (test_bands_are_checked, "bands are checked")
{
  ImkInsarformConfig c;
  ImkInsarform *self;

  imk_insarform_config_init (&c);
  c.width = c.height = 96;
  c.range_band = NAN;
  test_error (imk_insarform_new (IMK_BACKEND_CPU, &c, &self, test_new_error ()),
      IMK_ERROR_CONFIG, "range-bandwidth is nan");
  c.range_band = 0;
  c.azimuth_band = 1.5;
  test_error (imk_insarform_new (IMK_BACKEND_CPU, &c, &self, test_new_error ()),
      IMK_ERROR_CONFIG, "azimuth-bandwidth 1.5");
}
