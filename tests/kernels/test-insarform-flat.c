/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Phases that are removed, measured and filtered: against the definitions in
 * float64, and images whose fringes are known. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "core/sample.h"
#include "insarform-common.h"
#include "insarform/insarform-fringes.h"
#include "insarform/insarform-reference.h"

/* --- images --------------------------------------------------------------- */

static double
normal (uint64_t *seed)
{
  double sum = 0;

  for (int i = 0; i < 12; i++)
    sum += (double) (test_random (seed) % 65536) / 65536;
  return sum - 6;
}

/* The phase of a pair at (x, y). */
typedef double (*PhaseFunc) (double x, double y);

/* One fringe every 20 columns. */
static double
ramp (double x, double y)
{
  return 2 * M_PI * x / 20;
}

/* Fringes every 9 columns and 23 lines, in other directions further down. */
static double
bent (double x, double y)
{
  return -2 * M_PI * (x / 9 - y / 23) + 1.5e-3 * (x - y) * (y - 40);
}

static double
flat (double x, double y)
{
  return 0;
}

/* Speckle of a @coherence and a phase; few samples have no data. */
static Pair
make_seeded_pair (uint64_t seed, ImkType type, uint32_t width, uint32_t height,
    double coherence, PhaseFunc phase)
{
  Pair p = pair_new (type, width, height);

  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++) {
      double complex s = normal (&seed) + I * normal (&seed);
      double complex n = normal (&seed) + I * normal (&seed);
      double f = phase (x, y);
      double complex t =
          (coherence * s + sqrt (1 - coherence * coherence) * n) *
          cexp (-I * f);

      if (test_random (&seed) % 50 == 0)
        s = 0;
      test_image_put_complex (&p.a, x, y, 900 * creal (s), 900 * cimag (s));
      test_image_put_complex (&p.b, x, y, 900 * creal (t), 900 * cimag (t));
      imk_sample_put (&p.phase.image, x, y, 0, remainder (f, 2 * M_PI));
    }
  return p;
}

static Pair
make_pair (ImkType type, uint32_t width, uint32_t height, double coherence,
    PhaseFunc phase)
{
  return make_seeded_pair (11, type, width, height, coherence, phase);
}

/* The largest difference of interferogram and coherence, relative to the
 * amplitude. */
static double
difference (const TestImage *out, const TestImage *expected)
{
  double largest = 0;

  for (uint32_t y = 0; y < out->image.height; y++)
    for (uint32_t x = 0; x < out->image.width; x++)
      for (uint32_t i = 0; i < N; i++) {
        double d = imk_sample_get (&out->image, x, y, i) -
                   imk_sample_get (&expected->image, x, y, i);
        double scale = imk_sample_get (&expected->image, x, y, 2);

        if (i == IMK_INSARFORM_REMOVED) /* half a turn is -pi or pi */
          d = remainder (d, 2 * M_PI);
        scale = i < 2 ? scale * scale : i == 2 ? scale : 1;
        d = fabs (d) / fmax (scale, 1e-3);
        largest = isnan (d) ? INFINITY : fmax (largest, d);
      }
  return largest;
}

static double
compare (const ImkInsarformConfig *c, const Pair *pair, bool with_phase,
    uint32_t n_push)
{
  test_auto (TestImage) out = insarform_form (c, pair, with_phase, n_push);
  test_auto (TestImage) e = insarform_expected (c, pair, with_phase);

  return difference (&out, &e);
}

static double
mean_coherence (const TestImage *out)
{
  double sum = 0;

  for (uint32_t y = 0; y < out->image.height; y++)
    for (uint32_t x = 0; x < out->image.width; x++)
      sum += imk_sample_get (&out->image, x, y, IMK_INSARFORM_COHERENCE);
  return sum / out->image.width / out->image.height;
}

/* --- promises ------------------------------------------------------------- */

TEST (test_a_phase_is_removed_and_put_back, "a phase is removed and put back")
{
  static const uint32_t looks[][2] = {{1, 1}, {4, 3}, {5, 2}};

  for (size_t i = 0; i < 12; i++) {
    test_auto (Pair) pair =
        make_pair (i % 2 ? IMK_TYPE_CF32 : IMK_TYPE_CI16, 211, 97, 0.8, bent);
    ImkInsarformConfig c = insarform_config (&pair);
    double d;

    imk_sample_put (&pair.phase.image, 60, 40, 0, NAN);
    c.looks_x = looks[i % 3][0];
    c.looks_y = looks[i % 3][1];
    c.restore = i / 2 % 2;
    c.unbias = i / 4 % 2;
    d = compare (&c, &pair, true, 1 + 7 * (uint32_t) i);
    test_check (d < 1e-6, "case %zu: %g", i, d);
  }
}

/* With the phase that the output reports as removed, the interferogram is the
 * one in which it was put back. */
TEST (test_what_was_removed_is_told, "what was removed is told")
{
  for (int measured = 0; measured < 2; measured++) {
    test_auto (Pair) pair = make_pair (IMK_TYPE_CF32, 211, 97, 0.9, bent);
    ImkInsarformConfig c = insarform_config (&pair);
    test_auto (TestImage) flat_cells = {0}, restored = {0};
    double worst = 0;

    c.looks_x = 4;
    c.looks_y = 3;
    c.fringe_window = measured ? 32 : 0;
    flat_cells = insarform_form (&c, &pair, !measured, 50);
    c.restore = true;
    restored = insarform_form (&c, &pair, !measured, 50);
    for (uint32_t y = 0; y < flat_cells.image.height; y++)
      for (uint32_t x = 0; x < flat_cells.image.width; x++) {
        const float *a = imk_sample_at (&flat_cells.image, x, y, 0);
        const float *b = imk_sample_at (&restored.image, x, y, 0);
        double complex z =
            (a[0] + I * a[1]) * cexp (I * (double) a[IMK_INSARFORM_REMOVED]);

        worst = fmax (worst, cabs (z - b[0] - I * b[1]) / cabs (z));
      }
    test_check (worst < 1e-6, "measured %d: %g", measured, worst);
  }
}

TEST (test_measured_fringes_are_their_definition,
    "measured fringes are their definition")
{
  static const struct {
    uint32_t width, height, window, looks_x, looks_y, push;
  } cases[] = {{211, 97, 16, 1, 1, 3}, {64, 64, 64, 2, 2, 64},
      {130, 129, 32, 4, 3, 1000}, {16, 40, 16, 3, 7, 1},
      {97, 130, 32, 1, 40, 17}, {40, 16, 16, 1, 1, 5}};

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    test_auto (Pair) pair = make_pair (i % 2 ? IMK_TYPE_CF32 : IMK_TYPE_CI16,
        cases[i].width, cases[i].height, 0.9, bent);
    ImkInsarformConfig c = insarform_config (&pair);
    double d;

    c.fringe_window = cases[i].window;
    c.looks_x = cases[i].looks_x;
    c.looks_y = cases[i].looks_y;
    c.restore = i % 2;
    c.filter_alpha = i == 2 ? 0.5 : 0;
    d = compare (&c, &pair, false, cases[i].push);
    test_check (d < 2e-5, "case %zu: %g", i, d);
  }
}

/* The rate of nodes is that of the phase, far better than a bin, whose rms
 * error would be 0.06 rad a sample. */
TEST (test_measured_rates_are_right, "measured rates are right")
{
  test_auto (Pair) pair = make_pair (IMK_TYPE_CF32, 320, 256, 0.9, bent);
  ImkInsarformConfig c = insarform_config (&pair);
  test_auto (TestImage) phase = test_image_new (IMK_TYPE_F64, 320, 256, 1, 0);
  double sum = 0;
  int n = 0;

  c.fringe_window = 32;
  imk_insarform_reference_fringes (
      &c, &pair.a.image, &pair.b.image, &phase.image);
  for (uint32_t y = 16; y < 240; y++)
    for (uint32_t x = 16; x < 300; x++, n++) {
      double found = imk_sample_get (&phase.image, x + 1, y, 0) -
                     imk_sample_get (&phase.image, x, y, 0);

      sum += pow (found - bent (x + 1, y) + bent (x, y), 2);
    }
  test_check (sqrt (sum / n) < 0.01, "%g rad a sample", sqrt (sum / n));
}

/* Near half a cycle, noise puts a rate on either side of it. */
static double
steep (double x, double y)
{
  return -2 * M_PI * (0.48 * x + 0.01 * y);
}

static void
conjugate (TestImage *image)
{
  for (uint32_t y = 0; y < image->image.height; y++)
    for (uint32_t x = 0; x < image->image.width; x++)
      imk_sample_put (
          &image->image, x, y, 1, -imk_sample_get (&image->image, x, y, 1));
}

TEST (test_fringes_of_both_signs_are_alike, "fringes of both signs are alike")
{
  for (uint64_t seed = 1; seed <= 8; seed++) {
    test_auto (Pair) pair =
        make_seeded_pair (seed, IMK_TYPE_CF32, 256, 192, 0.3, steep);
    ImkInsarformConfig c = insarform_config (&pair);
    test_auto (TestImage) one = {0}, other = {0};
    double found[2];

    c.looks_x = c.looks_y = 4;
    c.fringe_window = 32;
    one = insarform_form (&c, &pair, false, 50);
    conjugate (&pair.a);
    conjugate (&pair.b);
    other = insarform_form (&c, &pair, false, 50);
    found[0] = mean_coherence (&one);
    found[1] = mean_coherence (&other);
    test_check (fabs (found[0] - found[1]) < 1e-4,
        "seed %d: coherence %.4f and %.4f", (int) seed, found[0], found[1]);
  }
}

/* Without it the 5 x 5 cells of 4 x 4 samples see a whole fringe. */
TEST (test_fringes_do_not_cost_coherence, "fringes do not cost coherence")
{
  test_auto (Pair) pair = make_pair (IMK_TYPE_CI16, 800, 400, 0.9, ramp);

  for (int measured = 0; measured < 2; measured++) {
    ImkInsarformConfig c = insarform_config (&pair);
    test_auto (TestImage) out;
    double coherence;

    c.looks_x = c.looks_y = 4;
    c.fringe_window = measured ? 32 : 0;
    out = insarform_form (&c, &pair, false, 100);
    coherence = mean_coherence (&out);
    test_check (
        measured ? coherence > 0.85 && coherence < 0.91 : coherence < 0.1,
        "measured %d: coherence %.3f", measured, coherence);
  }
}

/* The phase that is put back is that of the middle of a cell. */
TEST (test_restored_fringes_are_those_of_the_images,
    "restored fringes are those of the images")
{
  test_auto (Pair) pair = make_pair (IMK_TYPE_CF32, 400, 320, 0.95, bent);
  ImkInsarformConfig c = insarform_config (&pair);
  double sum = 0;
  test_auto (TestImage) out = {0};
  int n = 0;

  c.looks_x = 4;
  c.looks_y = 5;
  c.fringe_window = 32;
  c.restore = true;
  out = insarform_form (&c, &pair, false, 100);
  for (uint32_t y = 0; y < out.image.height; y++)
    for (uint32_t x = 0; x < out.image.width; x++, n++) {
      double found = atan2 (imk_sample_get (&out.image, x, y, 1),
          imk_sample_get (&out.image, x, y, 0));

      sum +=
          pow (remainder (found - bent (4 * x + 1.5, 5 * y + 2), 2 * M_PI), 2);
    }
  /* of 20 looks: sqrt ((1 - g^2) / (2 g^2 20)) = 0.052 rad */
  test_check (sqrt (sum / n) < 0.065, "rms %g rad", sqrt (sum / n));
}

/* Theory for no coherence and L = 98 samples (2 % have no data) of 100:
 * sqrt (pi / (4 L)) = 0.0895; unbiased, the mean of sqrt (max (0, .)) of an
 * exponential distribution. */
TEST (test_noise_has_no_more_coherence, "noise has no more coherence")
{
  test_auto (Pair) pair = make_pair (IMK_TYPE_CF32, 1000, 400, 0, flat);
  double found[3];

  for (int i = 0; i < 3; i++) {
    ImkInsarformConfig c = insarform_config (&pair);
    test_auto (TestImage) out;

    c.looks_x = c.looks_y = 2;
    c.fringe_window = i == 1 ? 32 : 0;
    c.unbias = i == 2;
    out = insarform_form (&c, &pair, false, 100);
    found[i] = mean_coherence (&out);
  }
  test_check (fabs (found[0] - 0.0895) < 0.004, "%g", found[0]);
  test_check (fabs (found[1] - found[0]) < 0.001, "%g, measured %g", found[0],
      found[1]);
  test_check (
      found[2] < 0.45 * found[0], "%g, unbiased %g", found[0], found[2]);
}

static double
phase_noise (const TestImage *out, PhaseFunc phase)
{
  double sum = 0;

  for (uint32_t y = 0; y < out->image.height; y++)
    for (uint32_t x = 0; x < out->image.width; x++)
      sum += pow (remainder (atan2 (imk_sample_get (&out->image, x, y, 1),
                                 imk_sample_get (&out->image, x, y, 0)) -
                                 phase (x, y),
                      2 * M_PI),
          2);
  return sqrt (sum / out->image.height / out->image.width);
}

TEST (test_the_filter_is_its_definition, "the filter is its definition")
{
  static const uint32_t cases[][4] = {{70, 45, 16, 3}, {33, 64, 32, 1000},
      {8, 8, 8, 1}, {20, 5, 32, 2}, {129, 40, 8, 10}};

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    test_auto (Pair) pair =
        make_pair (IMK_TYPE_CF32, cases[i][0], cases[i][1], 0.6, ramp);
    ImkInsarformConfig c = insarform_config (&pair);
    double d;

    c.window_x = c.window_y = 3;
    c.filter_window = cases[i][2];
    c.filter_alpha = 0.2 + 0.2 * (double) i;
    d = compare (&c, &pair, false, cases[i][3]);
    test_check (d < 5e-5, "case %zu: %g", i, d);
  }
}

TEST (test_the_filter_removes_noise, "the filter removes noise")
{
  test_auto (Pair) pair = make_pair (IMK_TYPE_CF32, 200, 160, 0.8, ramp);
  double before = 0;

  for (int i = 0; i < 3; i++) {
    ImkInsarformConfig c = insarform_config (&pair);
    test_auto (TestImage) out;
    double now;

    c.filter_alpha = 0.5 * i;
    out = insarform_form (&c, &pair, false, 100);
    now = phase_noise (&out, ramp);
    test_check (i == 0 || now < 0.7 * before, "alpha %g: %g rad after %g",
        c.filter_alpha, now, before);
    before = now;
  }
}

TEST (
    test_threads_and_pieces_change_nothing, "threads and pieces change no bit")
{
  test_auto (Pair) pair = make_pair (IMK_TYPE_CI16, 300, 200, 0.7, bent);
  ImkInsarformConfig c = insarform_config (&pair);
  test_auto (TestImage) expected = {0};

  c.looks_x = 2;
  c.fringe_window = 32;
  c.filter_alpha = 0.5;
  c.n_threads = 1;
  expected = insarform_form (&c, &pair, false, 1000);
  for (uint32_t i = 2; i < 40; i *= 3) {
    test_auto (TestImage) out;

    c.n_threads = i;
    out = insarform_form (&c, &pair, false, i);
    test_image_same (&out, &expected, "pieces");
  }
}

TEST (test_what_is_wrong_is_said, "what is wrong is said")
{
  test_auto (Pair) pair = make_pair (IMK_TYPE_CI16, 100, 60, 0.7, bent);
  ImkInsarformConfig good = insarform_config (&pair);
  ImkImage a = insarform_lines (&pair.a, 0, 2),
           b = insarform_lines (&pair.b, 0, 2),
           phase = insarform_lines (&pair.phase, 0, 3);
  ImkInsarform *self = NULL;

  INSARFORM_REFUSES (
      good, c.fringe_window = 8, "fringe-window is 8; it must be 16");
  INSARFORM_REFUSES (good, c.fringe_window = 24, "fringe-window is 24");
  INSARFORM_REFUSES (good, c.fringe_window = 64, "60 lines of 100 columns");
  INSARFORM_REFUSES (good, c.filter_alpha = NAN, "filter-alpha is nan");
  INSARFORM_REFUSES (good, c.filter_alpha = 1.5, "filter-alpha is 1.5");
  INSARFORM_REFUSES (good, c.filter_window = 4, "filter-window is 4");
  test_ok (
      imk_insarform_new (IMK_BACKEND_CPU, &good, &self, test_new_error ()));
  test_error (imk_insarform_push (self, &a, &b, &phase, test_new_error ()),
      IMK_ERROR_IMAGE, "phase");
  imk_insarform_free (self);
  good.fringe_window = 32;
  phase.height = 2;
  test_ok (
      imk_insarform_new (IMK_BACKEND_CPU, &good, &self, test_new_error ()));
  test_error (imk_insarform_push (self, &a, &b, &phase, test_new_error ()),
      IMK_ERROR_IMAGE, "is measured");
  imk_insarform_free (self);
}
