/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The offsets of SAR images against a plain reference in float64 and closed
 * forms. */
#include "insar-common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insarxcorr/insarxcorr-peak.h"

TEST (test_reference, "offsets are those of the formulas in float64",
    .cpu_only = true)
{
  static const struct {
    uint32_t xsearch, ysearch, range_interp, interp;
    ImkInsarxcorrMethod method;
  } cases[] = {
      {8, 8, 1, 4, IMK_INSARXCORR_FREQ},
      {8, 8, 2, 4, IMK_INSARXCORR_FREQ},
      {16, 4, 2, 3, IMK_INSARXCORR_FREQ},
      {4, 16, 2, 4, IMK_INSARXCORR_FREQ},
      {16, 8, 3, 4, IMK_INSARXCORR_FREQ},
      {16, 8, 4, 2, IMK_INSARXCORR_FREQ},
      {8, 8, 2, 1, IMK_INSARXCORR_FREQ},
      {8, 8, 2, 4, IMK_INSARXCORR_TIME},
      {8, 8, 2, 4, IMK_INSARXCORR_TIME4},
  };

  for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
    ImkInsarxcorrConfig c =
        insar_config (131, 117, cases[i].xsearch, cases[i].ysearch, 2, 2);
    test_autofree int16_t *ref = NULL, *sec = NULL;
    char where[64];

    c.range_interp = cases[i].range_interp;
    c.interp = cases[i].interp;
    c.method = cases[i].method;
    insar_make_pair (&c, 1, -2, 7 + i, &ref, &sec);
    snprintf (where, sizeof (where), "case %zu", i);
    insar_check_reference (&c, ref, sec, where);
    c.rshift = 2;
    c.ashift = -1;
    c.prf_ratio = -0.021;
    snprintf (where, sizeof (where), "case %zu, shifted", i);
    insar_check_reference (&c, ref, sec, where);
  }
}

/* A small -time4 surface is 0 but for the peak. Its sum of squares, added up in
 * another order, is more than that of the peak by a rounding error. */
TEST (test_peaks_alone_have_no_snr, "peaks alone have no SNR")
{
  const ImkInsarxcorrPlan plan = {
      .fine = {1, 1, .n_lags_x = 16, .n_lags_y = 16}};
  ImkInsarxcorrPeak peak = {.correlation = 100};
  ImkInsarxcorrWindow samples = {{0}};

  samples[4][4] = 3;
  imk_insarxcorr_qualify (&plan, 8, 8, nextafter (9, 10), samples, &peak);
  test_check (peak.snr == 0, "the SNR is %g", peak.snr);
  imk_insarxcorr_qualify (&plan, 8, 8, 9 + 192, samples, &peak);
  test_check (peak.snr == 9, "the SNR is %g, not 9", peak.snr);
}

TEST (test_reference_of_floats, "so they are for float samples")
{
  ImkInsarxcorrConfig c = insar_config (97, 103, 8, 8, 2, 2);
  size_t n = (size_t) c.width[0] * c.height[0];
  float *wide[2];
  int16_t *ints[2];

  c.interp = 4;
  insar_make_pair (&c, -1, 1, 3, &ints[0], &ints[1]);
  for (int s = 0; s < 2; s++) {
    wide[s] = malloc (2 * n * sizeof (float));
    for (size_t i = 0; i < 2 * n; i++)
      wide[s][i] = ints[s][i] * 0.75f;
  }
  c.type = IMK_TYPE_CF32;
  insar_check_reference (&c, wide[0], wide[1], "cf32");
  for (int s = 0; s < 2; s++)
    for (size_t i = 0; i < n; i++)
      wide[s][i] = hypotf (ints[s][2 * i], ints[s][2 * i + 1]);
  c.type = IMK_TYPE_F32;
  insar_check_reference (&c, wide[0], wide[1], "f32");
  for (int s = 0; s < 2; s++) {
    free (wide[s]);
    free (ints[s]);
  }
}

/* --- laws ----------------------------------------------------------------- */

TEST (test_whole_shifts_are_found,
    "whole shifts are found to a quarter of a sample")
{
  for (int dy = -5; dy <= 5; dy += 5)
    for (int dx = -3; dx <= 3; dx += 3) {
      ImkInsarxcorrConfig c = insar_config (201, 233, 16, 16, 3, 3);
      test_autofree int16_t *ref = NULL, *sec = NULL;
      test_autofree double *found = NULL;

      insar_make_pair (&c, dx, dy, 11, &ref, &sec);
      found = insar_run (&c, ref, sec);
      for (uint32_t i = 0; i < c.nx * c.ny; i++) {
        const double *row = found + i * N_FIELDS;

        /* plain correlation follows the bright spots of so small a template:
         * the reference in float64 is as far off */
        test_check (fabs (row[IMK_INSARXCORR_DX] - dx) <= 0.25 &&
                        fabs (row[IMK_INSARXCORR_DY] - dy) <= 0.25 &&
                        row[IMK_INSARXCORR_CORRELATION] > 90 &&
                        row[IMK_INSARXCORR_VALID] > 0.99 &&
                        row[IMK_INSARXCORR_FLAGS] == 0,
            "shift (%d, %d) patch %u: (%g, %g) correlation %g flags %g", dx, dy,
            i, row[IMK_INSARXCORR_DX], row[IMK_INSARXCORR_DY],
            row[IMK_INSARXCORR_CORRELATION], row[IMK_INSARXCORR_FLAGS]);
      }
    }
}

/* Every bit is the same, however lines come, threads run and memory is short.
 */
TEST (test_results_do_not_depend_on_bands,
    "results do not depend on bands and threads")
{
  ImkInsarxcorrConfig c = insar_config (311, 407, 16, 8, 5, 9);
  size_t size = (size_t) c.nx * c.ny * N_FIELDS * sizeof (double);
  test_autofree int16_t *ref = NULL, *sec = NULL;
  test_autofree double *expected = NULL, *found = NULL;

  c.rshift = 20;
  c.ashift = -30;
  c.prf_ratio = 0.03;
  insar_make_pair (&c, 3, 2, 5, &ref, &sec);
  expected = insar_run_pushing (IMK_BACKEND_CPU, &c, ref, sec, 1000);
  for (uint32_t at_once = 1; at_once < 80; at_once = 3 * at_once + 1) {
    found = insar_run_pushing (IMK_BACKEND_CPU, &c, ref, sec, at_once);
    test_check (memcmp (found, expected, size) == 0,
        "results differ when %u lines come at once", at_once);
    free (found);
  }
  for (uint32_t n_threads = 0; n_threads < 5; n_threads++) {
    c.n_threads = n_threads;
    found = insar_run (&c, ref, sec);
    test_check (memcmp (found, expected, size) == 0,
        "results differ with %u threads", n_threads);
    free (found);
  }
  c.memory_limit = 200000; /* the bands alone take 70 to 150 kB */
  found = insar_run (&c, ref, sec);
  test_check (memcmp (found, expected, size) == 0,
      "results differ within %u bytes", 200000);
}

/* Patches far from each other: bands leave columns and lines out. */
TEST (test_sparse_grids, "sparse grids keep what they need")
{
  ImkInsarxcorrConfig c = insar_config (700, 650, 4, 8, 3, 3);
  test_autofree int16_t *ref = NULL, *sec = NULL;
  test_autofree double *found = NULL;

  c.interp = 4;
  c.memory_limit = 60000; /* of 1.8 MB a image */
  insar_make_pair (&c, 1, 1, 9, &ref, &sec);
  insar_check_reference (&c, ref, sec, "sparse");
  found = insar_run_pushing (IMK_BACKEND_CPU, &c, ref, sec, 650);
  test_check (found[IMK_INSARXCORR_X] == 16 + 2 * (676 / 6) &&
                  found[IMK_INSARXCORR_Y] == 32 + 602 / 4,
      "the first patch is at (%g, %g)", found[IMK_INSARXCORR_X],
      found[IMK_INSARXCORR_Y]);
}

TEST (test_grids, "the grid of GMTSAR ends early, the even one does not")
{
  ImkInsarxcorrConfig c = insar_config (399, 347, 8, 8, 90, 60);
  test_autofree int16_t *image = calloc ((size_t) c.width[0] * c.height[0], 4);
  test_autofree double *found = NULL;
  double last_x, last_y;

  /* X = 351, cut to 3 a patch: the last of 90 ends at 32 + 91 * 3 */
  found = insar_run (&c, image, image);
  last_x = found[(c.nx * c.ny - 1) * N_FIELDS + IMK_INSARXCORR_X];
  last_y = found[(c.nx * c.ny - 1) * N_FIELDS + IMK_INSARXCORR_Y];
  test_check (last_x == 305 && last_y == 32 + 60 * 4, "gmtsar ends at (%g, %g)",
      last_x, last_y);
  free (found);
  c.grid = IMK_INSARXCORR_GRID_EVEN;
  found = insar_run (&c, image, image);
  last_x = found[(c.nx * c.ny - 1) * N_FIELDS + IMK_INSARXCORR_X];
  last_y = found[(c.nx * c.ny - 1) * N_FIELDS + IMK_INSARXCORR_Y];
  test_check (last_x == 32 + 91 * 351 / 93 && last_y == 32 + 60 * 299 / 61,
      "even ends at (%g, %g)", last_x, last_y);
}

/* --- no data -------------------------------------------------------------- */

TEST (test_no_data_is_said, "no data is said")
{
  ImkInsarxcorrConfig c = insar_config (200, 200, 16, 16, 2, 2);
  test_autofree int16_t *zero = calloc ((size_t) c.width[0] * c.height[0], 4);
  test_autofree int16_t *ref = NULL, *sec = NULL;
  test_autofree double *found = NULL;

  /* what GMTSAR prints: xsearch / 2 + 1/32, ysearch + 1/16, 0 */
  found = insar_run (&c, zero, zero);
  test_check (found[IMK_INSARXCORR_DX] == 8.03125 &&
                  found[IMK_INSARXCORR_DY] == 16.0625 &&
                  found[IMK_INSARXCORR_CORRELATION] == 0 &&
                  found[IMK_INSARXCORR_VALID] == 0 &&
                  insar_flags (found) & IMK_INSARXCORR_NO_DATA &&
                  insar_flags (found) & IMK_INSARXCORR_LOW,
      "zeros give (%g, %g), %g, flags %u", found[IMK_INSARXCORR_DX],
      found[IMK_INSARXCORR_DY], found[IMK_INSARXCORR_CORRELATION],
      insar_flags (found));
  free (found);

  /* 60 of 200 columns of the secondary are data */
  insar_make_pair (&c, 1, 1, 2, &ref, &sec);
  for (uint32_t y = 0; y < 200; y++)
    memset (sec + (y * 200 + 60) * 2, 0, 140 * 4);
  found = insar_run (&c, ref, sec);
  for (uint32_t i = 0; i < 4; i++)
    test_check (insar_flags (found + i * N_FIELDS) & IMK_INSARXCORR_NO_DATA &&
                    found[i * N_FIELDS + IMK_INSARXCORR_VALID] < 0.5,
        "patch %u has flags %u, valid %g", i,
        insar_flags (found + i * N_FIELDS),
        found[i * N_FIELDS + IMK_INSARXCORR_VALID]);
}

TEST (
    test_numbers_that_are_none_are_no_data, "numbers that are none are no data")
{
  ImkInsarxcorrConfig c = insar_config (131, 131, 8, 8, 2, 2);
  size_t n = (size_t) c.width[0] * c.height[0];
  test_autofree float *image = malloc (2 * n * sizeof (float));
  uint64_t seed = 4;
  test_autofree double *found = NULL;

  c.type = IMK_TYPE_CF32;
  for (size_t i = 0; i < 2 * n; i++)
    image[i] = (float) insar_uniform (&seed) * 1e3f;
  for (size_t i = 0; i < n; i += 3)
    image[2 * i] = i % 2 ? NAN : INFINITY;
  found = insar_run (&c, image, image);
  for (uint32_t i = 0; i < 4 * N_FIELDS; i++)
    test_check (isfinite (found[i]), "field %u is %g", i, found[i]);
  test_check (fabs (found[IMK_INSARXCORR_VALID] - 2.0 / 3) < 0.01,
      "%g of the samples are valid", found[IMK_INSARXCORR_VALID]);
  test_check (fabs (found[IMK_INSARXCORR_DX]) <= 2.0 / 32 &&
                  fabs (found[IMK_INSARXCORR_DY]) <= 2.0 / 16,
      "the offset is (%g, %g)", found[IMK_INSARXCORR_DX],
      found[IMK_INSARXCORR_DY]);
  free (found);

  /* so large that the surface overflows */
  for (size_t i = 0; i < 2 * n; i++)
    image[i] = (float) insar_uniform (&seed) * 1e38f;
  found = insar_run (&c, image, image);
  for (uint32_t i = 0; i < 4 * N_FIELDS; i++)
    test_check (isfinite (found[i]), "field %u is %g", i, found[i]);
  test_check (insar_flags (found) & IMK_INSARXCORR_NO_DATA, "flags are %u",
      insar_flags (found));
}

TEST (test_images_may_end_anywhere, "images may end anywhere")
{
  ImkInsarxcorrConfig c = insar_config (140, 140, 8, 8, 4, 4);
  test_autofree int16_t *ref = NULL, *sec = NULL;

  c.interp = 4;
  insar_make_pair (&c, 0, 0, 6, &ref, &sec);
  /* the secondary is smaller, and the patches reach over all of its edges */
  c.width[1] = 101;
  c.height[1] = 77;
  for (int ashift = -90; ashift <= 90; ashift += 45)
    for (int rshift = -150; rshift <= 150; rshift += 50) {
      test_autofree double *found = NULL;

      c.rshift = rshift;
      c.ashift = ashift;
      found = insar_run (&c, ref, sec);
      for (uint32_t i = 0; i < 16; i++) {
        const double *row = found + i * N_FIELDS;
        int left = (int) row[IMK_INSARXCORR_X] - 16 + rshift;
        int top = (int) row[IMK_INSARXCORR_Y] - 16 + ashift;
        bool outside = left < 0 || top < 0 || left + 32 > 101 || top + 32 > 77;

        test_check (!(insar_flags (row) & IMK_INSARXCORR_OUTSIDE) == !outside,
            "shift (%d, %d): patch %u has flags %u", rshift, ashift, i,
            insar_flags (row));
      }
    }
  c.rshift = -40;
  c.ashift = 40;
  insar_check_reference (&c, ref, sec, "secondary smaller");
}

TEST (test_peaks_at_the_edge_are_flagged, "peaks at the edge are flagged")
{
  ImkInsarxcorrConfig c = insar_config (200, 200, 16, 16, 2, 2);
  test_autofree int16_t *ref = NULL, *sec = NULL;
  test_autofree double *found = NULL;

  /* 13 of 16 lines: the window of 8 leaves the surface */
  insar_make_pair (&c, 0, 13, 8, &ref, &sec);
  found = insar_run (&c, ref, sec);
  test_check (insar_flags (found) == IMK_INSARXCORR_EDGE &&
                  fabs (found[IMK_INSARXCORR_DY] - 13) < 0.2,
      "flags %u, dy %g", insar_flags (found), found[IMK_INSARXCORR_DY]);
}

/* --- what is refused ------------------------------------------------------ */

static void
check_refused (const ImkInsarxcorrConfig *c, const char *words)
{
  ImkInsarxcorr *self = NULL;

  test_error (imk_insarxcorr_new (IMK_BACKEND_CPU, c, &self, test_new_error ()),
      IMK_ERROR_CONFIG, words);
  test_check (!self, "an object was made");
}

TEST (test_bad_configs_are_refused, "bad configurations are refused")
{
  const ImkInsarxcorrConfig good = insar_config (200, 200, 16, 16, 2, 2);
  ImkInsarxcorrConfig c;

#define REFUSED(member, value, words) \
  c = good; \
  c.member = value; \
  check_refused (&c, words)
  REFUSED (nx, 0, "nx is 0; it can be 1 to 1000000.");
  REFUSED (ny, 1000001, "ny is 1000001");
  REFUSED (xsearch, 1025, "xsearch is 1025; it can be 4 to 1024.");
  REFUSED (ysearch, 2, "ysearch is 2");
  REFUSED (xsearch, 0, "xsearch is 0");
  REFUSED (range_interp, 0, "range-interp is 0");
  REFUSED (interp, 65, "interp is 65");
  REFUSED (prf_ratio, -1, "PRF");
  REFUSED (prf_ratio, NAN, "PRF");
  REFUSED (min_valid, 1.5, "min-valid is 1.5");
  REFUSED (min_correlation, NAN, "correlation is nan");
  REFUSED (method, 9, "method is 9");
  REFUSED (type, IMK_TYPE_U8, "Images of u8");
  REFUSED (width[0], 95, "200 lines of 95 columns");
  REFUSED (width[1], 0, "secondary has 200 lines of 0 columns");
  REFUSED (height[0], 0, "reference has 0 lines");
  REFUSED (rshift, 2000000, "rshift is 2000000");
  REFUSED (memory_limit, 1000, "memory-limit is 1000 bytes");
  REFUSED (memory_limit, 70000, "memory-limit leaves");
#undef REFUSED
  c = good;
  c.width[0] = c.height[0] = 7000;
  c.xsearch = c.ysearch = 1024;
  check_refused (&c, "product of the searches");
}

TEST (test_calls_out_of_order_are_refused, "calls out of order are refused")
{
  ImkInsarxcorrConfig c = insar_config (200, 200, 16, 16, 2, 2);
  test_autoptr (ImkInsarxcorr) self = insar_new (IMK_BACKEND_CPU, &c);
  test_auto (TestImage) out = test_image_new (IMK_TYPE_F64, N_FIELDS, 2, 1, 0);
  test_auto (TestImage) lines = test_image_new (IMK_TYPE_CI16, 200, 200, 1, 0);
  test_auto (TestImage) narrow = test_image_new (IMK_TYPE_CI16, 199, 2, 1, 0);
  uint32_t room = imk_insarxcorr_room (self, 0);

  test_error (
      imk_insarxcorr_process (self, &out.image, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "Row 0 of 2 rows of patches is not ready");
  test_error (imk_insarxcorr_push (self, 0, &narrow.image, test_new_error ()),
      IMK_ERROR_IMAGE, "199x2");
  lines.image.height = room + 1;
  test_check (room < 200, "there is room for %u lines", room);
  test_error (imk_insarxcorr_push (self, 0, &lines.image, test_new_error ()),
      IMK_ERROR_IMAGE, "there is room for");
  lines.image.height = room;
  test_ok (imk_insarxcorr_push (self, 0, &lines.image, test_new_error ()));
  test_check (imk_insarxcorr_room (self, 0) == 0, "there is room left");
  test_check (!imk_insarxcorr_is_ready (self), "half a pair is ready");
  imk_insarxcorr_rewind (self, 0);
  test_check (imk_insarxcorr_room (self, 0) == room, "rewinding did not");
  imk_insarxcorr_free (NULL);
}

/* A row that was cancelled comes again, with the same bytes. */
TEST (test_rows_can_be_cancelled, "rows can be cancelled")
{
  ImkInsarxcorrConfig c = insar_config (120, 110, 16, 16, 3, 1);
  const size_t n = (size_t) c.width[0] * c.height[0] * 2;
  int16_t *images[2] = {malloc (n * 2), malloc (n * 2)};
  ImkInsarxcorr *self = insar_new (IMK_BACKEND_CPU, &c);
  TestImage out = test_image_new (IMK_TYPE_F64, N_FIELDS, c.nx, 1, 0);
  uint64_t seed = 3;
  double *expected;

  for (size_t i = 0; i < n; i++)
    for (int s = 0; s < 2; s++)
      images[s][i] = (int16_t) (test_random (&seed) % 400) - 200;
  expected = insar_run (&c, images[0], images[1]);
  for (int s = 0; s < 2; s++)
    insar_push (self, &c, s, images[s], 50);
  imk_insarxcorr_cancel (self, true);
  test_error (
      imk_insarxcorr_process (self, &out.image, NULL, test_new_error ()),
      IMK_ERROR_IMAGE, "The row was cancelled");
  test_check (imk_insarxcorr_row (self) == 0, "the row was taken");
  imk_insarxcorr_cancel (self, false);
  test_ok (imk_insarxcorr_process (self, &out.image, NULL, test_new_error ()));
  test_check (
      memcmp (expected, out.image.data, sizeof (double) * N_FIELDS * c.nx) == 0,
      "the row is another one");
  test_image_free (&out);
  imk_insarxcorr_free (self);
  free (expected);
  free (images[0]);
  free (images[1]);
}
