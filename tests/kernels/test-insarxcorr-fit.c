/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fit alone: to GMTSAR's offsets, and to fields that are known. */
#include "insar-common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "imk/insarxcorr-misfit.h"
#include "imk/insarxcorr-reach.h"

static const struct {
  const char *pair, *name, *fit;
  int range_terms, azimuth_terms;
  double snr;
} fits[] = {
    {"affine", "base", "fit", 3, 3, 18},
    {"affine", "base", "fit_1_1", 1, 1, 20},
    {"affine", "base", "fit_2_2", 2, 2, 20},
    {"affine", "base", "fit_3_2", 3, 2, 20},
    {"affine", "asym", "fit", 3, 3, 18},
    {"affine", "defaults", "fit", 3, 3, 18},
    {"affine", "edge", "fit", 3, 3, 18},
    {"affine", "eof", "fit", 3, 3, 18},
    {"affine", "if32", "fit", 3, 3, 18},
    {"affine", "if8", "fit", 3, 3, 18},
    {"affine", "norange", "fit", 3, 3, 18},
    {"affine", "noshift", "fit", 3, 3, 18},
    {"affine", "paper", "fit", 3, 3, 18},
    {"affine", "prf", "fit", 3, 3, 18},
    {"affine", "ri4", "fit", 3, 3, 18},
    {"affine", "shift", "fit", 3, 3, 18},
    {"affine", "small", "fit", 3, 3, 18},
    {"affine", "tiny", "fit", 3, 3, 18},
    {"envisat", "s16", "fit", 3, 3, 18},
    {"envisat", "s32", "fit", 3, 3, 18},
    {"envisat", "s32norange", "fit", 3, 3, 18},
};

static ImkInsarxcorrPoint *
read_points (const char *pair, const char *name, double snr, size_t *n)
{
  FILE *file = insar_open_data (pair, name);
  ImkInsarxcorrPoint *points = calloc (2000, sizeof (*points)), p;
  double correlation;

  *n = 0;
  while (*n < 2000 && fscanf (file, "%lf %lf %lf %lf %lf", &p.x, &p.dx, &p.y,
                          &p.dy, &correlation) == 5)
    if (correlation > snr)
      points[(*n)++] = p;
  fclose (file);
  return points;
}

/* From GMTSAR's offsets, so this tests the fit alone. */
TEST (test_gmtsar_fits, "fits are those of GMTSAR")
{
  for (size_t i = 0; i < sizeof (fits) / sizeof (fits[0]); i++) {
    char name[128], text[IMK_INSARXCORR_FIT_TEXT_SIZE], expected[1024] = "";
    test_autofree ImkInsarxcorrPoint *points = NULL;
    ImkInsarxcorrFit fit;
    size_t n;
    FILE *file;

    snprintf (name, sizeof (name), "expected/%s.freq_xcorr.dat", fits[i].name);
    points = read_points (fits[i].pair, name, fits[i].snr, &n);
    test_ok (imk_insarxcorr_fit (points, n, fits[i].range_terms,
        fits[i].azimuth_terms, &fit, test_new_error ()));
    n = imk_insarxcorr_fit_print (&fit, text);
    test_check (n == strlen (text), "%zu bytes, not %zu", n, strlen (text));
    snprintf (
        name, sizeof (name), "expected/%s.%s.txt", fits[i].name, fits[i].fit);
    file = insar_open_data (fits[i].pair, name);
    test_check (file && fread (expected, 1, sizeof (expected) - 1, file) > 0,
        "there is no %s", name);
    fclose (file);
    test_check (strcmp (text, expected) == 0, "%s:\n%s# expected:\n%s", name,
        text, expected);
  }
}

TEST (test_fields_are_recovered, "fields are recovered from their points")
{
  ImkInsarxcorrPoint points[400];
  uint64_t seed = 1;
  ImkInsarxcorrFit fit;

  /* an exact plane with every tenth point far off it */
  for (int i = 0; i < 400; i++) {
    double x = 1000 + 5000 * (insar_uniform (&seed) + 0.5);
    double y = 300 + 9000 * (insar_uniform (&seed) + 0.5);

    points[i] = (ImkInsarxcorrPoint){
        x, y, 5.25 + 1e-4 * x - 2e-5 * y, -12.5 - 3e-5 * x + 4e-4 * y};
    points[i].dx += 1e-3 * insar_uniform (&seed);
    points[i].dy += 1e-3 * insar_uniform (&seed);
    if (i % 10 == 0)
      points[i].dx += 20 + insar_uniform (&seed);
  }
  test_ok (imk_insarxcorr_fit (points, 400, 3, 3, &fit, test_new_error ()));
  test_check (fabs (fit.range.shift - 5.25) < 0.02 &&
                  fabs (fit.range.stretch - 1e-4) < 1e-6 &&
                  fabs (fit.range.a_stretch + 2e-5) < 1e-6 &&
                  fabs (fit.azimuth.shift + 12.5) < 1e-3 &&
                  fabs (fit.azimuth.stretch + 3e-5) < 1e-7 &&
                  fabs (fit.azimuth.a_stretch - 4e-4) < 1e-7,
      "range %g %g %g, azimuth %g %g %g", fit.range.shift, fit.range.stretch,
      fit.range.a_stretch, fit.azimuth.shift, fit.azimuth.stretch,
      fit.azimuth.a_stretch);

  /* ten terms, exactly */
  for (int i = 0; i < 400; i++) {
    double u, v;

    points[i].x = i % 20;
    points[i].y = (double) (i / 20);
    u = points[i].x / 9.5 - 1;
    v = points[i].y / 9.5 - 1;
    points[i].dx = 1 + 2 * u + 3 * v + 4 * u * v + 5 * (2 * u * u - 1) +
                   6 * (2 * v * v - 1) + 7 * (4 * u * u * u - 3 * u) +
                   8 * (2 * u * u - 1) * v + 9 * u * (2 * v * v - 1) +
                   10 * (4 * v * v * v - 3 * v);
  }
  test_ok (imk_insarxcorr_fit (points, 400, 10, 1, &fit, test_new_error ()));
  for (int i = 0; i < 10; i++)
    test_check (fabs (fit.range.terms[i] - (i + 1)) < 1e-9, "term %d is %.12g",
        i + 1, fit.range.terms[i]);
}

TEST (test_points_on_a_line_give_no_slope_across,
    "points on a line give no slope across it")
{
  ImkInsarxcorrPoint points[20];
  ImkInsarxcorrFit fit;

  for (int i = 0; i < 20; i++)
    points[i] = (ImkInsarxcorrPoint){10.0 * i, 77, 1 + 0.1 * i, 2};
  test_ok (imk_insarxcorr_fit (points, 20, 3, 3, &fit, test_new_error ()));
  test_check (fabs (fit.range.stretch - 0.01) < 1e-12 &&
                  fit.range.a_stretch == 0 && fabs (fit.range.shift - 1) < 1e-9,
      "shift %g stretch %g %g", fit.range.shift, fit.range.stretch,
      fit.range.a_stretch);
}

TEST (test_bad_fits_are_refused, "bad fits are refused")
{
  ImkInsarxcorrPoint points[9] = {{0}};
  ImkInsarxcorrFit fit;

  for (int i = 0; i < 9; i++)
    points[i].x = i;
  test_error (imk_insarxcorr_fit (points, 7, 3, 3, &fit, test_new_error ()),
      IMK_ERROR_CONFIG, "not enough points to estimate parameters: 7 are good");
  test_error (imk_insarxcorr_fit (points, 9, 10, 3, &fit, test_new_error ()),
      IMK_ERROR_CONFIG, "11 are needed");
  test_error (imk_insarxcorr_fit (points, 9, 0, 3, &fit, test_new_error ()),
      IMK_ERROR_CONFIG, "each can have 1 to 10");
  points[4].dy = NAN;
  test_error (imk_insarxcorr_fit (points, 9, 3, 3, &fit, test_new_error ()),
      IMK_ERROR_CONFIG, "Point 4");
}

/* A negative shift is split downwards, a whole one as well. */
TEST (test_shifts_are_split_as_gmtsar_does, "shifts are split as GMTSAR does")
{
  static const struct {
    double shift;
    const char *expected;
  } cases[] = {
      {3.25, "rshift =  3 \nsub_int_r =  0.25 \n"},
      {-3.25, "rshift =  -4 \nsub_int_r =  0.75 \n"},
      {-3, "rshift =  -4 \nsub_int_r =  1 \n"},
      {0, "rshift =  0 \nsub_int_r =  0 \n"},
      {1234.56789, "rshift =  1234 \nsub_int_r =  0.57 \n"},
  };

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    ImkInsarxcorrFit fit = {.range = {.shift = cases[i].shift}};
    char text[IMK_INSARXCORR_FIT_TEXT_SIZE];

    imk_insarxcorr_fit_print (&fit, text);
    test_check (
        strncmp (text, cases[i].expected, strlen (cases[i].expected)) == 0,
        "%g gives\n%s# expected\n%s", cases[i].shift, text, cases[i].expected);
  }
}

/* Offsets of a plane with @noise (rms), of which @n_wrong of 600 are of chance,
 * and a hill of @hill columns that is 60 wide (one sigma) at (300, 400). */
static void
make_offsets (
    double noise, double hill, int n_wrong, ImkInsarxcorrPoint points[600])
{
  uint64_t seed = 9;

  for (int i = 0; i < 600; i++) {
    double x = 30 + 40 * (i % 24), y = 20 + 40 * (i / 24);
    double far = pow (x - 300, 2) + pow (y - 400, 2);
    bool is_wrong = i * n_wrong / 600 != (i + 1) * n_wrong / 600;

    points[i] = (ImkInsarxcorrPoint){x, y,
        3 + 0.002 * x + hill * exp (-far / (2 * 60 * 60)) +
            sqrt (12) * noise * insar_uniform (&seed),
        -2 - 0.001 * y + sqrt (12) * noise * insar_uniform (&seed)};
    if (is_wrong) {
      points[i].dx += 60 * insar_uniform (&seed);
      points[i].dy += 60 * insar_uniform (&seed);
    }
  }
}

/* Noise and single wrong offsets are no misfit; a hill is, in its axis. */
TEST (test_a_hill_is_a_misfit, "a hill is a misfit")
{
  static const struct {
    double noise, hill;
    int n_wrong;
    bool is_local;
  } cases[] = {
      {0.03, 0, 0},
      {0.2, 0, 0},
      {0.03, 0, 60},
      {0.03, 1.2, 0, true},
      {0.03, 1.2, 60, true},
      {0.03, -0.6, 30, true},
      {0.2, 0.3, 0},
  };

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    ImkInsarxcorrPoint points[600];
    ImkInsarxcorrMisfit range, azimuth;
    ImkInsarxcorrFit fit;

    make_offsets (cases[i].noise, cases[i].hill, cases[i].n_wrong, points);
    test_ok (imk_insarxcorr_fit (points, 600, 3, 3, &fit, test_new_error ()));
    test_ok (imk_insarxcorr_misfit (
        points, 600, &fit, &range, &azimuth, test_new_error ()));
    test_check (range.is_local == cases[i].is_local && !azimuth.is_local &&
                    !azimuth.is_wide,
        "case %zu: worst %g of %g rms in range, %g of %g in azimuth", i,
        range.worst, range.rms, azimuth.worst, azimuth.rms);
    test_check (azimuth.rms < 0.7 * cases[i].noise + 0.02,
        "case %zu: misfit of %g in azimuth", i, azimuth.rms);
    if (cases[i].is_local)
      test_check (fabs (range.worst_x - 300) < 60 &&
                      fabs (range.worst_y - 400) < 60 &&
                      range.worst / cases[i].hill > 0.4 &&
                      range.worst / cases[i].hill < 1,
          "case %zu: worst %g at (%g, %g)", i, range.worst, range.worst_x,
          range.worst_y);
  }
}

/* A wave that a plane cannot follow: its rms is known. */
TEST (test_a_wave_is_a_wide_misfit, "a wave is a wide misfit")
{
  ImkInsarxcorrMisfit range, azimuth;
  ImkInsarxcorrPoint points[600];
  ImkInsarxcorrFit fit;

  make_offsets (0.02, 0, 0, points);
  for (int i = 0; i < 600; i++)
    points[i].dy += 0.2 * cos (points[i].x * 6.2831853 / 480);
  test_ok (imk_insarxcorr_fit (points, 600, 3, 3, &fit, test_new_error ()));
  test_ok (imk_insarxcorr_misfit (
      points, 600, &fit, &range, &azimuth, test_new_error ()));
  test_check (azimuth.is_wide && !azimuth.is_local && !range.is_wide &&
                  fabs (azimuth.rms - 0.2 / sqrt (2)) < 0.02,
      "rms %g, noise %g, worst %g", azimuth.rms, azimuth.noise, azimuth.worst);
}

/* More terms follow a wide hill, but the eight lines are a plane: the quality
 * is that of the plane. */
TEST (test_the_quality_is_that_of_the_plane, "the quality is that of the plane")
{
  ImkInsarxcorrPoint points[600];
  double rms = 0;
  ImkInsarxcorrMisfit range, azimuth;
  ImkInsarxcorrFit fit;

  make_offsets (0.02, 0, 0, points);
  for (int i = 0; i < 600; i++) {
    double far = pow (points[i].x - 500, 2) + pow (points[i].y - 500, 2);

    points[i].dx += 3 * exp (-far / (2 * 420 * 420));
  }
  test_ok (imk_insarxcorr_fit (points, 600, 10, 3, &fit, test_new_error ()));
  test_ok (imk_insarxcorr_misfit (
      points, 600, &fit, &range, &azimuth, test_new_error ()));
  for (int i = 0; i < 600; i++)
    rms +=
        pow (points[i].dx - fit.range.shift - fit.range.stretch * points[i].x -
                 fit.range.a_stretch * points[i].y,
            2);
  rms = sqrt (rms / 600);
  test_check (rms > 0.3 && fabs (fit.range.rms / rms - 1) < 0.1,
      "an rms of %g, that of the plane is %g", fit.range.rms, rms);
  test_check (range.is_wide && fabs (range.rms / rms - 1) < 0.1,
      "a misfit of %g rms", range.rms);
  test_check (fit.azimuth.rms < 0.05 && !azimuth.is_wide,
      "rms %g, misfit %g in azimuth", fit.azimuth.rms, azimuth.rms);
}

/* Points of a 600 x 600 image on a grid, as far as @half_strip from its
 * diagonal, with noise of 0.02 and a curve of @curve at the corners.
 * Returns: how many there are */
static size_t
make_area (double half_strip, double curve, ImkInsarxcorrPoint *points)
{
  uint64_t seed = 5;
  size_t n = 0;

  for (int i = 0; i < 400; i++) {
    double x = 15 + 30 * (i % 20), y = 15 + 30 * (i / 20);
    double u = (x - 300) / 300, v = (y - 300) / 300;

    if (fabs (x - y) <= half_strip)
      points[n++] = (ImkInsarxcorrPoint){x, y,
          3 + 0.001 * x + curve * u * v + 0.07 * insar_uniform (&seed),
          -4 + 0.07 * insar_uniform (&seed)};
  }
  return n;
}

/* The error at the corners is that of the fit to other noise. */
TEST (test_the_reach_is_that_of_the_points, "the reach is that of the points")
{
  static const struct {
    double half_strip, curve, least_span, most_span;
    bool is_curved;
  } cases[] = {
      {600, 0, 0.95, 1.05, false},
      {600, 0.2, 0.95, 1.05, true},
      {600, 0.05, 0.95, 1.05, false},
      {50, 0, 0.05, 0.2, false},
  };
  const ImkInsarxcorrArea area = {0, 600, 0, 600, 1};

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    ImkInsarxcorrPoint points[400];
    size_t n = make_area (cases[i].half_strip, cases[i].curve, points);
    ImkInsarxcorrReach reach;
    ImkInsarxcorrFit fit;

    test_ok (imk_insarxcorr_fit (points, n, 3, 3, &fit, test_new_error ()));
    test_ok (imk_insarxcorr_reach (
        points, n, &fit, &area, &reach, test_new_error ()));
    test_check (
        reach.span > cases[i].least_span && reach.span < cases[i].most_span,
        "case %zu: the span is %.2f", i, reach.span);
    /* 1 + 2 (1/2)^2 12 = 7 at the corners of a full square */
    test_check (cases[i].half_strip < 600 ? reach.gain > 7
                                          : fabs (reach.gain - sqrt (7)) < 0.1,
        "case %zu: the gain is %.2f", i, reach.gain);
    test_check (fabs (reach.leverage * sqrt ((double) n) - reach.gain) < 1e-9,
        "case %zu: the leverage is %g", i, reach.leverage);
    test_check (reach.range.is_curved == cases[i].is_curved,
        "case %zu: a curve of %.3f (rms), %.3f at most", i, reach.range.rms,
        reach.range.largest);
    test_check (!reach.azimuth.is_curved, "case %zu: a curve of noise", i);
  }
}

TEST (test_points_on_a_line_reach_nowhere, "points on a line reach nowhere")
{
  ImkInsarxcorrPoint points[30];
  ImkInsarxcorrReach reach;
  ImkInsarxcorrFit fit;

  for (int i = 0; i < 30; i++)
    points[i] = (ImkInsarxcorrPoint){10 * i, 10 * i, 1, 2};
  test_ok (imk_insarxcorr_fit (points, 30, 3, 3, &fit, test_new_error ()));
  test_ok (
      imk_insarxcorr_reach (points, 30, &fit, NULL, &reach, test_new_error ()));
  test_check (reach.span < 1e-6 && reach.leverage >= 1e6,
      "span %g, leverage %g", reach.span, reach.leverage);
}
