/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loops whose slopes and coefficients are given by a formula, so that the frame
 * of the verdict and its figures are known. Tolerance: 1e-6 of an rms, as
 * slopes are float32. */
#include "imk/shdivergence.h"

#include <math.h>

#include "kernel-test.h"

enum { N_CELLS = 3, N_MODES = 2, N_COMMANDS = 4 };

/* @slope: of each valid cell, along x and y
 * @frame: what was done */
typedef struct Step {
  float slope, coefficient;
  ImkShreconstructReport frame;
} Step;

static ImkShdivergence *
watch (void)
{
  ImkShdivergence *self = NULL;

  test_ok (imk_shdivergence_new (
      N_CELLS, N_MODES, N_COMMANDS, &self, test_new_error ()));
  return self;
}

static ImkShdivergenceVerdict
follow (ImkShdivergence *self, Step step, ImkShdivergenceReport *report)
{
  float slopes[2 * N_CELLS], coefficients[N_MODES];
  uint8_t flags[N_CELLS] = {0};

  for (int i = 0; i < 2 * N_CELLS; i++)
    slopes[i] = step.slope;
  for (int m = 0; m < N_MODES; m++)
    coefficients[m] = step.coefficient;
  for (uint32_t i = step.frame.n_valid; i < N_CELLS; i++)
    flags[i] = 1;
  return imk_shdivergence_follow (
      self, slopes, flags, coefficients, &step.frame, report);
}

/* Returns: the frame of the verdict, from 1; 0 without one in @n frames */
static int
follow_all (ImkShdivergence *self, Step (*step_of) (int t), int n,
    ImkShdivergenceVerdict *verdict, ImkShdivergenceReport *report)
{
  for (int t = 0; t < n; t++) {
    *verdict = follow (self, step_of (t), report);
    if (*verdict != IMK_SHDIVERGENCE_NONE)
      return t + 1;
  }
  return 0;
}

static void
check_told (Step (*step_of) (int t), int expected,
    ImkShdivergenceVerdict expected_verdict, double rms_at_closing, double rms)
{
  ImkShdivergence *self = watch ();
  ImkShdivergenceVerdict verdict = IMK_SHDIVERGENCE_NONE;
  ImkShdivergenceReport report = {0};
  const int told = follow_all (self, step_of, 400, &verdict, &report);

  test_check (told == expected && verdict == expected_verdict,
      "verdict %d in frame %d, expected %d in %d", verdict, told,
      expected_verdict, expected);
  test_check (expected == 0 || report.n_frames == (uint32_t) expected,
      "the report has %u frames", report.n_frames);
  test_check (
      expected == 0 || (fabs (report.rms_at_closing - rms_at_closing) <= 1e-6 &&
                           fabs (report.rms - rms) <= 1e-6 * rms),
      "the report has an rms of %.9g at closing and of %.9g, expected %.9g and "
      "%.9g",
      report.rms_at_closing, report.rms, rms_at_closing, rms);
  imk_shdivergence_free (self);
}

static const ImkShreconstructReport all_valid = {.n_valid = N_CELLS};

/* --- windows -------------------------------------------------------------- */

static Step
lasts (int t)
{
  return (Step){t < 3 ? 1 : 1.25F, 1, all_valid};
}

TEST (test_slopes_that_last, "slopes that last are told after three windows")
{
  check_told (lasts, 3 + 3 * 50, IMK_SHDIVERGENCE_SLOPES, 1, 1.25);
}

static Step
lasts_as_at_closing (int t)
{
  return (Step){t < 3 ? 1 : 1.19F, 1, all_valid};
}

TEST (test_no_growth, "slopes below 1.2 times those at closing are not told")
{
  check_told (lasts_as_at_closing, 0, IMK_SHDIVERGENCE_NONE, 0, 0);
}

static Step
swings (int t)
{
  return (Step){t < 3 ? 1 : t % 2 ? 4 : -4, 1, all_valid};
}

TEST (test_slopes_that_swing, "slopes that swing about 0 are not told")
{
  check_told (swings, 0, IMK_SHDIVERGENCE_NONE, 0, 0);
}

static Step
jumps (int t)
{
  const Step step = swings (t);

  return (Step){step.slope, t % 2 ? 1 : 0.7F, all_valid};
}

TEST (test_coefficients_that_jump, "with coefficients that jump they are told")
{
  check_told (jumps, 3 + 3 * 50, IMK_SHDIVERGENCE_SLOPES, 1, 4);
}

static Step
settles (int t)
{
  return (Step){t < 3 ? 1 : t < 53 ? 8 : 1.25F, 1, all_valid};
}

TEST (test_slopes_that_settle, "slopes below 0.7 of their largest are not told")
{
  check_told (settles, 0, IMK_SHDIVERGENCE_NONE, 0, 0);
}

/* Each third frame is dark, and has slopes that would hide those that last. */
static Step
lasts_between_dark (int t)
{
  if (t % 3 == 2)
    return (Step){0, 1, {.n_valid = 2, .is_dark = true}};
  return (Step){t < 4 ? 1 : 1.25F, 1, all_valid};
}

TEST (test_dark_frames, "dark frames are in no window")
{
  ImkShdivergence *self = watch ();
  ImkShdivergenceVerdict verdict = IMK_SHDIVERGENCE_NONE;
  ImkShdivergenceReport report = {0};
  const int told =
      follow_all (self, lasts_between_dark, 400, &verdict, &report);

  test_check (told == 3 * 153 / 2, "told in frame %d", told);
  imk_shdivergence_free (self);
}

/* --- lost cells, and limits ----------------------------------------------- */

static Step
loses (int t)
{
  const ImkShreconstructReport lost = {.n_valid = 1};

  return t < 3    ? (Step){1, 1, all_valid}
         : t < 40 ? (Step){t % 2 ? 2.5F : -2.5F, 1, all_valid}
                  : (Step){0, 1, lost};
}

TEST (test_lost_cells, "cells that are lost after the slopes grew are told")
{
  check_told (loses, 100, IMK_SHDIVERGENCE_SLOPES, 1, 2.5);
}

static Step
goes_dark (int t)
{
  const Step step = loses (t);

  return (Step){1, 1, step.frame};
}

TEST (test_lost_light, "cells that are lost with slopes as before are not told")
{
  check_told (goes_dark, 0, IMK_SHDIVERGENCE_NONE, 0, 0);
}

static Step
is_limited (int t)
{
  return (Step){1, 1, {.n_valid = N_CELLS, .n_limited = t < 10 ? 1 : 2}};
}

TEST (
    test_limits, "half of the commands at limits in 90 of 100 frames are told")
{
  check_told (is_limited, 100, IMK_SHDIVERGENCE_LIMITED, 1, 1);
}

static Step
is_limited_later (int t)
{
  return (Step){1, 1, {.n_valid = N_CELLS, .n_limited = t % 100 < 11 ? 1 : 2}};
}

TEST (test_fewer_limits, "in 89 of 100 frames they are not told")
{
  check_told (is_limited_later, 0, IMK_SHDIVERGENCE_NONE, 0, 0);
}

TEST (test_limits_on_a_device, "limits are followed without slopes")
{
  ImkShdivergence *self = watch ();
  const ImkShreconstructReport frame = {
      .n_valid = N_CELLS, .n_limited = N_COMMANDS};
  const float coefficients[N_MODES] = {0};
  ImkShdivergenceReport report;
  int t = 1;

  while (t < 200 && imk_shdivergence_follow (self, NULL, NULL, coefficients,
                        &frame, &report) == IMK_SHDIVERGENCE_NONE)
    t++;
  test_check (t == 100, "told in frame %d", t);
  imk_shdivergence_free (self);
}

/* --- what a loop is compared with ----------------------------------------- */

TEST (test_once, "a verdict comes once for each closing, with new figures")
{
  ImkShdivergence *self = watch ();

  for (int closing = 0; closing < 2; closing++) {
    ImkShdivergenceVerdict verdict = IMK_SHDIVERGENCE_NONE;
    ImkShdivergenceReport report = {0};

    test_check (follow_all (self, lasts, 400, &verdict, &report) == 153,
        "not told in frame 153 of closing %d", closing);
    test_check (
        follow_all (self, lasts, 400, &verdict, &report) == 0, "told twice");
    imk_shdivergence_begin (self);
  }
  imk_shdivergence_free (self);
}

TEST (test_offsets, "offsets are no residual slopes, until they are taken away")
{
  ImkShdivergence *self = watch ();
  ImkShdivergenceVerdict verdict = IMK_SHDIVERGENCE_NONE;
  ImkShdivergenceReport report = {0};
  float offsets[2 * N_CELLS];

  for (int i = 0; i < 2 * N_CELLS; i++)
    offsets[i] = 0.25F;
  imk_shdivergence_set_offsets (self, offsets);
  test_check (follow_all (self, lasts, 400, &verdict, &report) == 153,
      "not told in frame 153");
  test_check (fabs (report.rms_at_closing - 0.75) <= 1e-6 &&
                  fabs (report.rms - 1) <= 1e-6,
      "the rms is %g at closing and %g", report.rms_at_closing, report.rms);
  imk_shdivergence_set_offsets (self, NULL);
  imk_shdivergence_begin (self);
  follow_all (self, lasts, 400, &verdict, &report);
  test_check (fabs (report.rms - 1.25) <= 1e-6, "the rms is %g", report.rms);
  imk_shdivergence_free (self);
}

/* Cell 0 has slopes that no other has, and is invalid for another reason in
 * each frame. */
TEST (test_invalid_cells, "invalid cells have no part")
{
  ImkShdivergence *self = watch ();
  const ImkShreconstructReport frame = {.n_valid = N_CELLS - 1};
  const float coefficients[N_MODES] = {1, 1};
  ImkShdivergenceVerdict verdict = IMK_SHDIVERGENCE_NONE;
  ImkShdivergenceReport report = {0};
  int t = 0;

  for (; t < 200 && verdict == IMK_SHDIVERGENCE_NONE; t++) {
    const float size = t < 3 ? 1 : 3;
    const float first[] = {1000, NAN, 2e6F};
    float slopes[2 * N_CELLS];
    const uint8_t flags[N_CELLS] = {t % 3 == 0 ? 2 : 4};

    for (int i = 0; i < 2 * N_CELLS; i++)
      slopes[i] = i % N_CELLS == 0 ? first[t % 3] : size;
    verdict = imk_shdivergence_follow (
        self, slopes, flags, coefficients, &frame, &report);
  }
  test_check (t == 153, "told in frame %d", t);
  test_check (
      fabs (report.rms_at_closing - 1) <= 1e-6 && fabs (report.rms - 3) <= 1e-6,
      "the rms is %g at closing and %g", report.rms_at_closing, report.rms);
  imk_shdivergence_free (self);
}
