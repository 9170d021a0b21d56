/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The correlation that is significant: noise does not reach it, images of low
 * coherence do. */
#include "insar-common.h"
#include "imk/insarxcorr-judge.h"

#include <math.h>
#include <stdlib.h>

/* patches across: of noise, and of low coherence */
static uint32_t
n_noise (void)
{
  return TEST_SANITIZED || test_is_short () ? 20 : 100;
}

static uint32_t
n_coherent (void)
{
  return TEST_SANITIZED || test_is_short () ? 7 : 18;
}

/* A Gaussian number. */
static double
normal (uint64_t *seed)
{
  double u = insar_uniform (seed) + 0.5, v = insar_uniform (seed);

  return sqrt (-2 * log (u + 1e-300)) * cos (2 * 3.14159265358979323846 * v);
}

/* Spectra of images: all that is sampled; the mean of 2 x 2 samples, as coarse
 * as radar images are at the most; 0.75 of it with Hamming's weights. */
typedef enum { WHITE, SMOOTH, HAMMING } Spectrum;

static const char *const spectra[] = {"white", "smooth", "Hamming"};

enum { N_TAPS = 12 };

static double
sinc (double x)
{
  const double pi = 3.14159265358979323846;

  return fabs (x) < 1e-9 ? 1 : sin (pi * x) / (pi * x);
}

/* Complex noise becomes that of a spectrum 0.54 + 0.46 cos (2 pi f / B), |f| <
 * B / 2, along one axis. @step: floats from a sample to the next of @n;
 * @line: [n][2] */
static void
filter_line (float *samples, size_t n, size_t step, float *line)
{
  const double band = 0.75;
  float taps[2 * N_TAPS + 1];

  for (int k = -N_TAPS; k <= N_TAPS; k++)
    taps[k + N_TAPS] =
        (float) (0.54 * sinc (band * k) +
                 0.23 * (sinc (band * k + 1) + sinc (band * k - 1)));
  for (size_t i = 0; i < n; i++)
    for (size_t part = 0; part < 2; part++)
      line[2 * i + part] = samples[i * step + part];
  for (size_t i = N_TAPS; i + N_TAPS < n; i++)
    for (size_t part = 0; part < 2; part++) {
      float sum = 0;

      for (size_t k = 0; k < 2 * N_TAPS + 1; k++)
        sum += taps[k] * line[2 * (i + k - N_TAPS) + part];
      samples[i * step + part] = sum;
    }
}

static void
filter_noise (float *noise, size_t width, size_t height)
{
  size_t most = width > height ? width : height;
  test_autofree float *line = malloc (most * 2 * sizeof (*line));

  for (size_t y = 0; y < height; y++)
    filter_line (noise + y * width * 2, width, 2, line);
  for (size_t x = 0; x < width; x++)
    filter_line (noise + x * 2, height, width * 2, line);
}

/* Complex Gaussian noise, [height][width][2]. */
static float *
make_noise (uint32_t width, uint32_t height, Spectrum spectrum, uint64_t seed)
{
  size_t wide = width + 1, n = wide * (height + 1) * 2;
  float *noise = malloc (n * sizeof (*noise));

  for (size_t i = 0; i < n; i++)
    noise[i] = (float) normal (&seed);
  for (size_t y = 0; y < height; y++)
    for (size_t x = 0; x < width; x++)
      for (size_t part = 0; part < 2; part++) {
        const float *p = noise + (y * wide + x) * 2 + part;
        float sum = p[0] + p[2] + p[2 * wide] + p[2 * wide + 2];

        noise[(y * width + x) * 2 + part] = spectrum == SMOOTH ? sum / 2 : p[0];
      }
  if (spectrum == HAMMING)
    filter_noise (noise, width, height);
  return noise;
}

/* Returns: patches that are above the threshold, of all @n that are not at the
 * edge of the search */
static uint32_t
count_accepted (const ImkInsarxcorrConfig *c, const float *ref,
    const float *sec, uint32_t *n)
{
  ImkInsarxcorrConfig complete = *c;
  ImkInsarxcorrJudge judge;
  uint32_t n_accepted = 0;
  test_autofree double *found = NULL;

  test_ok (imk_insarxcorr_config_complete (&complete, test_new_error ()));
  found = insar_run (&complete, ref, sec);
  *n = complete.nx * complete.ny;
  imk_insarxcorr_judge_init (&judge, &complete, true);
  for (uint32_t row = 0; row < complete.ny; row++)
    imk_insarxcorr_judge_row (
        &judge, found + (size_t) row * complete.nx * N_FIELDS, complete.nx);
  for (uint32_t i = 0; i < *n; i++)
    n_accepted += insar_flags (found + (size_t) i * N_FIELDS) == 0;
  return n_accepted;
}

static ImkInsarxcorrConfig
significant_config (uint32_t size, uint32_t search, uint32_t step, uint32_t n)
{
  uint32_t patch = size + 2 * search + 2 * 8 + 8;
  ImkInsarxcorrConfig c =
      insar_config (patch + step * n, patch + step * n, search, search, n, n);

  c.type = IMK_TYPE_CF32;
  c.mode = IMK_INSARXCORR_PRECISE;
  c.grid = IMK_INSARXCORR_GRID_STEP;
  c.step_x = c.step_y = step;
  c.window_width = c.window_height = size;
  c.min_correlation = IMK_INSARXCORR_SIGNIFICANT;
  return c;
}

/* Few patches, where time is short, may be three sigma off. */
static double
slack (double part, uint32_t n)
{
  return TEST_SANITIZED || test_is_short () ? 3 * sqrt (part * (1 - part) * n)
                                            : 0;
}

TEST (test_noise_is_not_accepted, "noise is not accepted", .cpu_only = true)
{
  static const struct {
    uint32_t size, search, step;
    Spectrum spectrum;
  } cases[] = {{16, 8, 12, WHITE}, {16, 8, 12, SMOOTH}, {16, 8, 12, HAMMING},
      {32, 8, 20, SMOOTH}, {32, 8, 20, HAMMING}, {64, 8, 32, SMOOTH},
      {64, 8, 32, HAMMING}};

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    Spectrum spectrum = cases[i].spectrum;
    ImkInsarxcorrConfig c = significant_config (
        cases[i].size, cases[i].search, cases[i].step, n_noise ());
    test_autofree float *ref =
        make_noise (c.width[0], c.height[0], spectrum, 2 * i + 1);
    test_autofree float *sec =
        make_noise (c.width[0], c.height[0], spectrum, 2 * i + 2);
    uint32_t n, n_accepted = count_accepted (&c, ref, sec, &n);

    printf ("# templates of %u, %s noise: %u of %u patches\n", cases[i].size,
        spectra[spectrum], n_accepted, n);
    test_check (n >= n_noise () * n_noise () &&
                    n_accepted <= 0.01 * n + slack (0.01, n),
        "%u of %u patches of noise are accepted", n_accepted, n);
  }
}

/* The secondary is @coherence times the reference, and other noise. */
TEST (test_low_coherence_is_accepted, "low coherence is accepted",
    .cpu_only = true)
{
  static const uint32_t searches[] = {8, 64};
  const double coherence = 0.4;

  for (size_t i = 0; i < 6; i++) {
    Spectrum spectrum = (Spectrum) (i % 3);
    ImkInsarxcorrConfig c =
        significant_config (64, searches[i / 3], 48, n_coherent ());
    test_autofree float *ref =
        make_noise (c.width[0], c.height[0], spectrum, 20 + i);
    test_autofree float *sec =
        make_noise (c.width[0], c.height[0], spectrum, 30 + i);
    /* Hamming's weights leave less than half of the samples independent */
    double least = spectrum == HAMMING ? 0.75 : 0.95;
    uint32_t n, n_accepted;

    for (size_t k = 0; k < (size_t) c.width[0] * c.height[0] * 2; k++)
      sec[k] = (float) (coherence * ref[k] +
                        sqrt (1 - coherence * coherence) * sec[k]);
    n_accepted = count_accepted (&c, ref, sec, &n);
    printf ("# coherence %.1f, search %u, %s: %u of %u patches\n", coherence,
        searches[i / 3], spectra[spectrum], n_accepted, n);
    test_check (n_accepted >= least * n - slack (least, n),
        "%u of %u patches of coherence %.1f are accepted", n_accepted, n,
        coherence);
  }
}

/* A white spectrum has no middle: turned by the angle of chance that it has, a
 * part of it would move the wrong way. */
TEST (test_white_images_correlate_between_samples,
    "white images correlate between samples", .cpu_only = true)
{
  ImkInsarxcorrConfig c = significant_config (32, 8, 24, 8);
  uint32_t width = c.width[0], height = c.height[0];
  float *ref = make_noise (width, height, WHITE, 50);
  float *sec = calloc ((size_t) width * height * 2, sizeof (*sec));
  double *found;

  test_ok (imk_insarxcorr_config_complete (&c, test_new_error ()));
  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 40; x < width - 40; x++)
      for (int k = -40; k < 40; k++) {
        double at = 3.14159265358979323846 * (k + 0.5);
        size_t to = ((size_t) y * width + x) * 2;

        for (int part = 0; part < 2; part++)
          sec[to + (size_t) part] +=
              (float) (sin (at) / at) * ref[to + (size_t) (2 * k + part)];
      }
  found = insar_run (&c, ref, sec);
  for (uint32_t i = 0; i < c.nx * c.ny; i++) {
    const double *row = found + (size_t) i * N_FIELDS;

    /* whole patches lie in what was shifted: by half a column to the right */
    if (row[IMK_INSARXCORR_X] < 80 || row[IMK_INSARXCORR_X] > width - 80)
      continue;
    test_check (row[IMK_INSARXCORR_CORRELATION] > 80 &&
                    fabs (row[IMK_INSARXCORR_DX] - 0.5) < 0.1 &&
                    fabs (row[IMK_INSARXCORR_DY]) < 0.1,
        "patch %u: (%.3f, %.3f), correlation %.1f", i, row[IMK_INSARXCORR_DX],
        row[IMK_INSARXCORR_DY], row[IMK_INSARXCORR_CORRELATION]);
  }
  free (found);
  free (ref);
  free (sec);
}

/* GMTSAR's correlation has a threshold as well when it is asked for; numbers
 * are those that were given. */
TEST (test_threshold_follows_from_the_template,
    "the threshold follows from the template")
{
  static const struct {
    ImkInsarxcorrMode mode;
    uint32_t size, search;
    double given, least, most;
  } cases[] = {
      {IMK_INSARXCORR_PRECISE, 16, 8, -1, 33, 37},
      {IMK_INSARXCORR_PRECISE, 64, 8, -1, 33 / 4.0, 37 / 4.0},
      {IMK_INSARXCORR_PRECISE, 64, 64, -1, 10, 11},
      {IMK_INSARXCORR_PRECISE, 8, 8, -1, 66, 74},
      {IMK_INSARXCORR_COMPAT, 0, 16, -1, 20, 30},
      {IMK_INSARXCORR_COMPAT, 0, 64, -1, 5, 8},
      {IMK_INSARXCORR_PRECISE, 64, 64, 18, 18, 18},
      {IMK_INSARXCORR_COMPAT, 0, 64, 0, 0, 0},
  };

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    ImkInsarxcorrConfig c =
        significant_config (cases[i].size, cases[i].search, 400, 2);

    c.mode = cases[i].mode;
    c.min_correlation = cases[i].given;
    test_ok (imk_insarxcorr_config_complete (&c, test_new_error ()));
    test_check (c.min_correlation >= cases[i].least &&
                    c.min_correlation <= cases[i].most,
        "case %zu: the threshold is %.2f, expected %g to %g", i,
        c.min_correlation, cases[i].least, cases[i].most);
  }
}
