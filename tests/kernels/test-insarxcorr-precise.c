/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The precise mode against a plain reference in float64, and against the true
 * offsets of real and synthetic pairs. */
#include "insar-common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* A carrier: whole turns of @kx / 64 a column and @ky / 64 a line. */
static void
modulate (const ImkInsarxcorrConfig *c, int16_t *image, int kx, int ky)
{
  for (uint32_t y = 0; y < c->height[0]; y++)
    for (uint32_t x = 0; x < c->width[0]; x++) {
      int16_t *z = image + 2 * ((size_t) y * c->width[0] + x);
      double angle = 2 * pi * (kx * (int) x + ky * (int) y) / 64.0;
      double re = z[0] * cos (angle) - z[1] * sin (angle);
      double im = z[0] * sin (angle) + z[1] * cos (angle);

      z[0] = (int16_t) rint (re);
      z[1] = (int16_t) rint (im);
    }
}

TEST (test_reference,
    "offsets and quality are those of the formulas in float64",
    .cpu_only = true)
{
  static const struct {
    uint32_t xsearch, ysearch, width, height, range_interp, azimuth_interp;
    int kx, ky, rshift, ashift;
  } cases[] = {
      {4, 4, 16, 16, 2, 2},
      {5, 4, 17, 13, 2, 2, 0, 0, 2, -3},
      {4, 6, 12, 20, 1, 2, 0, 20},
      {4, 4, 14, 12, 3, 1, -25, 0},
      {4, 4, 12, 18, 2, 4, 13, -29},
  };

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    ImkInsarxcorrConfig c =
        insar_config (160, 150, cases[i].xsearch, cases[i].ysearch, 2, 2);
    test_autofree int16_t *ref = NULL, *sec = NULL;
    char where[32];

    c.mode = IMK_INSARXCORR_PRECISE;
    c.window_width = cases[i].width;
    c.window_height = cases[i].height;
    c.range_interp = cases[i].range_interp;
    c.azimuth_interp = cases[i].azimuth_interp;
    c.interp = 8;
    c.rshift = cases[i].rshift;
    c.ashift = cases[i].ashift;
    insar_make_pair (&c, 1, -2, 40 + i, &ref, &sec);
    for (size_t k = 0; k < 2 * 160 * 150; k += 5) /* not all alike */
      sec[k] = (int16_t) (sec[k] / 2);
    modulate (&c, ref, cases[i].kx, cases[i].ky);
    modulate (&c, sec, cases[i].kx, cases[i].ky);
    snprintf (where, sizeof (where), "case %zu", i);
    insar_check_reference (&c, ref, sec, where);
  }
}

/* A carrier says nothing about where things are. */
TEST (test_carriers_do_not_matter, "carriers do not matter")
{
  ImkInsarxcorrConfig c = insar_config (300, 300, 8, 8, 3, 3);
  test_autofree int16_t *ref = NULL, *sec = NULL;
  test_autofree double *plain = NULL, *carried = NULL;

  c.mode = IMK_INSARXCORR_PRECISE;
  c.window_width = c.window_height = 48;
  insar_make_pair (&c, 2, -1, 3, &ref, &sec);
  plain = insar_run (&c, ref, sec);
  modulate (&c, ref, 27, -19);
  modulate (&c, sec, 27, -19);
  carried = insar_run (&c, ref, sec);
  for (int i = 0; i < 9; i++)
    for (int f = IMK_INSARXCORR_DX; f <= IMK_INSARXCORR_DY; f++)
      test_check (
          fabs (plain[i * N_FIELDS + f] - carried[i * N_FIELDS + f]) < 0.02,
          "patch %d field %d: %g, and with a carrier %g", i, f,
          plain[i * N_FIELDS + f], carried[i * N_FIELDS + f]);
}

/* --- accuracy ------------------------------------------------------------- */

/* Offsets are r0 + sr x + ar y, a0 + sa x + aa y. */
typedef struct Truth {
  double r0, sr, ar, a0, sa, aa;
} Truth;

static const struct {
  const char *pair;
  uint32_t width, height;
  uint32_t window_width, window_height, xsearch, ysearch;
  Truth truth;
  double range, azimuth; /* largest standard deviations */
} sets[] = {
    /* the centres and templates of GMTSAR's run base, which has 0.054 columns
     * and 0.101 lines: half of that */
    {"affine", 896, 1024, 64, 128, 88, 56,
        {3.37, 1.9e-3, -7.0e-4, -5.61, 4.0e-4, -1.3e-3}, 0.054, 0.0505},
    /* what GMTSAR has */
    {"envisat", 500, 500, 32, 64, 8, 8, {2.28, 9e-4, 3e-4, 1.43, -5e-4, 1.1e-3},
        0.057, 0.052},
    /* 2048 samples */
    {"ampcor_wn", 512, 512, 32, 64, 8, 8, {0}, 0.03, 0.03},
};

TEST (test_offsets_are_accurate, "offsets are accurate")
{
  for (size_t i = 0; i < sizeof (sets) / sizeof (sets[0]); i++) {
    const Truth *t = &sets[i].truth;
    ImkInsarxcorrConfig c = insar_config (sets[i].width, sets[i].height,
        sets[i].xsearch, sets[i].ysearch, 12, 14);
    size_t n = (size_t) c.width[0] * c.height[0];
    int16_t *ref = insar_read_slc (sets[i].pair, "ref.SLC", n);
    int16_t *sec = insar_read_slc (sets[i].pair, "sec.SLC", n);
    double sums[6] = {0}, *found, mean[2], deviation[2];
    int n_good = 0;

    c.mode = IMK_INSARXCORR_PRECISE;
    c.window_width = sets[i].window_width;
    c.window_height = sets[i].window_height;
    found = insar_run (&c, ref, sec);
    for (uint32_t p = 0; p < c.nx * c.ny; p++) {
      const double *row = found + p * N_FIELDS;
      double x = row[IMK_INSARXCORR_X], y = row[IMK_INSARXCORR_Y];
      double ex = row[IMK_INSARXCORR_DX] - (t->r0 + t->sr * x + t->ar * y);
      double ey = row[IMK_INSARXCORR_DY] - (t->a0 + t->sa * x + t->aa * y);

      /* as GMTSAR's own errors were told */
      if (row[IMK_INSARXCORR_CORRELATION] <= 18 || fabs (ex) >= 1 ||
          fabs (ey) >= 1)
        continue;
      n_good++;
      sums[0] += ex;
      sums[1] += ex * ex;
      sums[2] += ey;
      sums[3] += ey * ey;
      sums[4] += row[IMK_INSARXCORR_COV_XX];
      sums[5] += row[IMK_INSARXCORR_COV_YY];
    }
    for (int axis = 0; axis < 2; axis++) {
      mean[axis] = sums[2 * axis] / n_good;
      deviation[axis] =
          sqrt (sums[2 * axis + 1] / n_good - mean[axis] * mean[axis]);
    }
    printf ("# %s: %d of %u patches; range %+.4f +- %.4f (%.4f by covariance), "
            "azimuth %+.4f +- %.4f (%.4f)\n",
        sets[i].pair, n_good, c.nx * c.ny, mean[0], deviation[0],
        sqrt (sums[4] / n_good), mean[1], deviation[1],
        sqrt (sums[5] / n_good));
    test_check (n_good > 0.95 * c.nx * c.ny, "%s: only %d patches are good",
        sets[i].pair, n_good);
    test_check (
        deviation[0] <= sets[i].range && deviation[1] <= sets[i].azimuth,
        "%s: errors of %.4f columns and %.4f lines, at most %.4f and %.4f",
        sets[i].pair, deviation[0], deviation[1], sets[i].range,
        sets[i].azimuth);
    free (found);
    free (ref);
    free (sec);
  }
}

/* Of noise, which is what it is made for. */
TEST (test_covariance_is_that_of_the_errors,
    "the covariance is that of the errors", .cpu_only = true)
{
  ImkInsarxcorrConfig c = insar_config (512, 512, 8, 8, 12, 14);
  size_t n = (size_t) c.width[0] * c.height[0];
  test_autofree int16_t *ref = insar_read_slc ("ampcor_wn", "ref.SLC", n);
  test_autofree int16_t *sec = insar_read_slc ("ampcor_wn", "sec.SLC", n);
  double told[2] = {0}, true_[2] = {0}, *found;

  c.mode = IMK_INSARXCORR_PRECISE;
  c.window_width = 32;
  c.window_height = 64;
  found = insar_run (&c, ref, sec);
  for (uint32_t p = 0; p < c.nx * c.ny; p++) {
    const double *row = found + p * N_FIELDS;

    told[0] += row[IMK_INSARXCORR_COV_XX];
    told[1] += row[IMK_INSARXCORR_COV_YY];
    true_[0] += row[IMK_INSARXCORR_DX] * row[IMK_INSARXCORR_DX];
    true_[1] += row[IMK_INSARXCORR_DY] * row[IMK_INSARXCORR_DY];
  }
  for (int axis = 0; axis < 2; axis++)
    test_check (told[axis] > true_[axis] / 2 && told[axis] < true_[axis] * 2,
        "axis %d: variance %.3e told, %.3e measured", axis,
        told[axis] / (c.nx * c.ny), true_[axis] / (c.nx * c.ny));
  free (found);
}

/* --- no data -------------------------------------------------------------- */

TEST (test_no_data_is_said, "no data is said")
{
  ImkInsarxcorrConfig c = insar_config (200, 200, 8, 8, 3, 3);
  size_t n = (size_t) c.width[0] * c.height[0];
  test_autofree float *image = calloc (2 * n, sizeof (*image));
  double *found;
  uint64_t seed = 8;

  c.mode = IMK_INSARXCORR_PRECISE;
  c.window_width = c.window_height = 32;
  c.type = IMK_TYPE_CF32;
  c.rshift = 3;
  for (int fill = 0; fill < 3; fill++) {
    for (size_t i = 0; fill && i < 2 * n; i++)
      image[i] = fill == 1 ? NAN : (float) insar_uniform (&seed) * 1e30f;
    found = insar_run (&c, image, image);
    for (uint32_t p = 0; p < 9; p++) {
      const double *row = found + p * N_FIELDS;
      unsigned flags = (unsigned) row[IMK_INSARXCORR_FLAGS];

      for (int f = 0; f < N_FIELDS; f++)
        test_check (isfinite (row[f]), "fill %d patch %u field %d is %g", fill,
            p, f, row[f]);
      if (fill < 2)
        test_check (
            flags & IMK_INSARXCORR_NO_DATA && row[IMK_INSARXCORR_DX] == 3 &&
                row[IMK_INSARXCORR_DY] == 0 && row[IMK_INSARXCORR_VALID] == 0,
            "fill %d patch %u: (%g, %g), flags %u", fill, p,
            row[IMK_INSARXCORR_DX], row[IMK_INSARXCORR_DY], flags);
    }
    free (found);
  }
}

TEST (test_bad_configs_are_refused, "bad configurations are refused")
{
  const struct {
    uint32_t window_width, window_height, azimuth_interp;
    const char *words;
  } cases[] = {
      {7, 0, 2, "window-width is 7; it can be 8 to 2048."},
      {0, 2049, 2, "window-height is 2049"},
      {0, 0, 5, "azimuth-interp is 5"},
      {2048, 0, 2, "A window of 2048 x 16 samples"},
      {180, 180, 1, "need at least"},
  };

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    ImkInsarxcorrConfig c = insar_config (200, 200, 8, 8, 3, 3);
    ImkInsarxcorr *self = NULL;

    c.mode = IMK_INSARXCORR_PRECISE;
    c.window_width = cases[i].window_width;
    c.window_height = cases[i].window_height;
    c.azimuth_interp = cases[i].azimuth_interp;
    test_error (
        imk_insarxcorr_new (IMK_BACKEND_CPU, &c, &self, test_new_error ()),
        IMK_ERROR_CONFIG, cases[i].words);
  }
}
