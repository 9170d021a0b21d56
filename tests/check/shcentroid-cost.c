/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The estimate by which backend=auto chooses: which option costs more than
 * which, not how much. */
#include "check-common.h"

#include "shcentroid/gstshcentroidcost.h"

enum { SAMPLES = 640 * 480, CELLS = 768 };

typedef void (*Change) (ImkShcentroidConfig *c);

static gdouble
cost_of (Change change, gdouble n_samples, gboolean calibrated)
{
  ImkShcentroidConfig c;

  imk_shcentroid_config_init (&c);
  c.pitch_x = c.pitch_y = 20;
  if (change)
    change (&c);
  return gst_sh_centroid_cpu_us (&c, n_samples, CELLS, calibrated);
}

static void
remove_tilt (ImkShcentroidConfig *c)
{
  c->remove_tilt = true;
}

static void
take_brightest (ImkShcentroidConfig *c)
{
  c->brightest = 10;
}

static void
square (ImkShcentroidConfig *c)
{
  c->power = 2;
}

static void
raise_to_power (ImkShcentroidConfig *c)
{
  c->power = 1.5;
}

static void
weight (ImkShcentroidConfig *c)
{
  c->weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN;
}

static void
iterate (ImkShcentroidConfig *c)
{
  c->weighting = IMK_SHCENTROID_WEIGHTING_GAUSSIAN;
  c->iterations = 5;
}

static void
track (ImkShcentroidConfig *c)
{
  c->window = IMK_SHCENTROID_WINDOW_TRACKING;
}

static void
quarter (ImkShcentroidConfig *c)
{
  c->estimator = IMK_SHCENTROID_ESTIMATOR_QUAD;
}

static void
correlate (ImkShcentroidConfig *c)
{
  c->estimator = IMK_SHCENTROID_ESTIMATOR_CORRELATION;
  c->template_source = IMK_SHCENTROID_TEMPLATE_FRAME;
  c->search_range = 4;
}

static void
cut (ImkShcentroidConfig *c)
{
  c->threshold_mode = IMK_SHCENTROID_THRESHOLD_ABSOLUTE;
}

GST_START_TEST (test_what_leaves_the_integers_costs_more)
{
  const Change changes[] = {remove_tilt, take_brightest, square, raise_to_power,
      weight, iterate, track, quarter, correlate, cut};
  gdouble plain = cost_of (NULL, SAMPLES, FALSE);

  fail_unless (plain > 0);
  fail_unless (cost_of (NULL, SAMPLES, TRUE) > plain);
  for (guint i = 0; i < G_N_ELEMENTS (changes); i++)
    fail_unless (
        cost_of (changes[i], SAMPLES, FALSE) > plain, "option %u is free", i);
}
GST_END_TEST

GST_START_TEST (test_more_samples_cost_more)
{
  const Change changes[] = {NULL, remove_tilt, iterate, cut};

  for (guint i = 0; i < G_N_ELEMENTS (changes); i++) {
    gdouble one = cost_of (changes[i], SAMPLES, FALSE);
    gdouble two = cost_of (changes[i], 2 * SAMPLES, FALSE);

    fail_unless (
        two > one && two <= 2 * one, "option %u: %g and %g us", i, one, two);
  }
}
GST_END_TEST

GST_START_TEST (test_options_add_up)
{
  fail_unless (cost_of (raise_to_power, SAMPLES, FALSE) >
               cost_of (square, SAMPLES, FALSE));
  fail_unless (
      cost_of (iterate, SAMPLES, FALSE) > cost_of (weight, SAMPLES, FALSE));
  fail_unless (cost_of (remove_tilt, SAMPLES, TRUE) >
               cost_of (remove_tilt, SAMPLES, FALSE));
}
GST_END_TEST

static Suite *
shcentroid_cost_suite (void)
{
  Suite *s = suite_create ("shcentroid-cost");
  TCase *tc = tcase_create ("cost");

  suite_add_tcase (s, tc);

  tcase_add_test (tc, test_what_leaves_the_integers_costs_more);
  tcase_add_test (tc, test_more_samples_cost_more);
  tcase_add_test (tc, test_options_add_up);
  return s;
}

GST_CHECK_MAIN (shcentroid_cost);
