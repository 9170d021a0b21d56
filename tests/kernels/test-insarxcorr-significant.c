/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The correlation that is significant: noise does not reach it, images of low
 * coherence do. */
#include "insar-common.h"

#include <math.h>
#include <stdlib.h>

/* patches across: of noise, and of low coherence */
enum {
  N_NOISE = TEST_SANITIZED ? 20 : 100,
  N_COHERENT = TEST_SANITIZED ? 7 : 18
};

/* A Gaussian number. */
static double
normal (uint64_t *seed)
{
  double u = insar_uniform (seed) + 0.5, v = insar_uniform (seed);

  return sqrt (-2 * log (u + 1e-300)) * cos (2 * 3.14159265358979323846 * v);
}

/* Complex Gaussian noise of unit power, [height][width][2]; @smooth: each
 * sample is the mean of 2 x 2, as coarse as radar images are at the most. */
static float *
make_noise (uint32_t width, uint32_t height, bool smooth, uint64_t seed)
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

        noise[(y * width + x) * 2 + part] = smooth ? sum / 2 : p[0];
      }
  return noise;
}

/* Returns: patches that are above the threshold, of all @n that are not at the
 * edge of the search */
static uint32_t
count_accepted (const ImkInsarxcorrConfig *c, const float *ref,
    const float *sec, uint32_t *n)
{
  ImkInsarxcorrConfig complete = *c;
  uint32_t n_accepted = 0;
  ImkError error;
  double *found;

  test_ok (imk_insarxcorr_config_complete (&complete, &error), &error);
  found = insar_run (&complete, ref, sec);
  *n = complete.nx * complete.ny;
  for (uint32_t i = 0; i < *n; i++)
    n_accepted += insar_flags (found + (size_t) i * N_FIELDS) == 0;
  free (found);
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

static void
test_noise_is_not_accepted (void)
{
  static const struct {
    uint32_t size, search, step;
    bool smooth;
  } cases[] = {{16, 8, 12, false}, {16, 8, 12, true}, {32, 8, 20, true},
      {64, 8, 32, true}};

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    bool smooth = cases[i].smooth;
    ImkInsarxcorrConfig c = significant_config (
        cases[i].size, cases[i].search, cases[i].step, N_NOISE);
    float *ref = make_noise (c.width[0], c.height[0], smooth, 2 * i + 1);
    float *sec = make_noise (c.width[0], c.height[0], smooth, 2 * i + 2);
    uint32_t n, n_accepted = count_accepted (&c, ref, sec, &n);

    printf ("# templates of %u, %s noise: %u of %u patches\n", cases[i].size,
        smooth ? "smooth" : "white", n_accepted, n);
    test_check (n >= N_NOISE * N_NOISE && n_accepted <= n / 100,
        "%u of %u patches of noise are accepted", n_accepted, n);
    free (ref);
    free (sec);
  }
}

/* The secondary is @coherence times the reference, and other noise. */
static void
test_low_coherence_is_accepted (void)
{
  static const uint32_t searches[] = {8, 64};
  const double coherence = 0.4;

  for (size_t i = 0; i < 4; i++) {
    ImkInsarxcorrConfig c =
        significant_config (64, searches[i / 2], 48, N_COHERENT);
    float *ref = make_noise (c.width[0], c.height[0], i % 2, 20 + i);
    float *sec = make_noise (c.width[0], c.height[0], i % 2, 30 + i);
    uint32_t n, n_accepted;

    for (size_t k = 0; k < (size_t) c.width[0] * c.height[0] * 2; k++)
      sec[k] = (float) (coherence * ref[k] +
                        sqrt (1 - coherence * coherence) * sec[k]);
    n_accepted = count_accepted (&c, ref, sec, &n);
    printf ("# coherence %.1f, search %u, %s: %u of %u patches\n", coherence,
        searches[i / 2], i % 2 ? "smooth" : "white", n_accepted, n);
    test_check (n_accepted >= 0.95 * n,
        "%u of %u patches of coherence %.1f are accepted", n_accepted, n,
        coherence);
    free (ref);
    free (sec);
  }
}

/* A white spectrum has no middle: turned by the angle of chance that it has, a
 * part of it would move the wrong way. */
static void
test_white_images_correlate_between_samples (void)
{
  ImkInsarxcorrConfig c = significant_config (32, 8, 24, 8);
  uint32_t width = c.width[0], height = c.height[0];
  float *ref = make_noise (width, height, false, 50);
  float *sec = calloc ((size_t) width * height * 2, sizeof (*sec));
  double *found;
  ImkError error;

  test_ok (imk_insarxcorr_config_complete (&c, &error), &error);
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
static void
test_threshold_follows_from_the_template (void)
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
    ImkError error;

    c.mode = cases[i].mode;
    c.min_correlation = cases[i].given;
    test_ok (imk_insarxcorr_config_complete (&c, &error), &error);
    test_check (c.min_correlation >= cases[i].least &&
                    c.min_correlation <= cases[i].most,
        "case %zu: the threshold is %.2f, expected %g to %g", i,
        c.min_correlation, cases[i].least, cases[i].most);
  }
}

int
main (void)
{
  static const Test tests[] = {
      {"noise is not accepted", test_noise_is_not_accepted, .cpu_only = true},
      {"low coherence is accepted", test_low_coherence_is_accepted,
          .cpu_only = true},
      {"white images correlate between samples",
          test_white_images_correlate_between_samples, .cpu_only = true},
      {"the threshold follows from the template",
          test_threshold_follows_from_the_template},
      {NULL},
  };

  return test_main (tests);
}
