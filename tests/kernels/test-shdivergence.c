/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loops whose slopes and corrections are given by a formula, so that the frame
 * of the verdict and its figures are known. Tolerance: 1e-6 of an rms, as
 * slopes are float32. */
#include "imk/shdivergence.h"

#include <math.h>
#include <string.h>

#include "kernel-test.h"

enum { N_CELLS = 3, N_MODES = 2, N_COMMANDS = 4, N_PAST = 3 };

/* @coefficients: of all modes, the newest first */
typedef struct Bench {
  ImkShdivergence *self;
  double gain, leak, coefficients[N_PAST];
} Bench;

/* @slope: of each valid cell, along x and y
 * @correction: of each mode
 * @frame: what was done */
typedef struct Step {
  double slope, correction;
  ImkShreconstructReport frame;
} Step;

typedef Step (*StepOf) (const Bench *b, int t);

static void
get_coefficients (const Bench *b, float *coefficients)
{
  for (int m = 0; m < N_MODES; m++)
    coefficients[m] = (float) b->coefficients[0];
}

static void
close_loop (Bench *b)
{
  float coefficients[N_MODES];

  get_coefficients (b, coefficients);
  imk_shdivergence_begin (b->self, coefficients);
}

static ImkShreconstructConfig
config_of (const Bench *b)
{
  ImkShreconstructConfig c;

  imk_shreconstruct_config_init (&c);
  c.n_cells = N_CELLS;
  c.n_modes = N_MODES;
  c.n_commands = N_COMMANDS;
  c.gain = b->gain;
  c.leak = b->leak;
  return c;
}

static Bench
bench_of (double gain, double leak)
{
  Bench b = {.gain = gain, .leak = leak};
  const ImkShreconstructConfig c = config_of (&b);

  test_ok (imk_shdivergence_new (
      N_CELLS, N_MODES, N_COMMANDS, &b.self, test_new_error ()));
  imk_shdivergence_set_controller (b.self, &c);
  close_loop (&b);
  return b;
}

static ImkShdivergenceVerdict
follow (Bench *b, Step step, ImkShdivergenceReport *report)
{
  float slopes[2 * N_CELLS], coefficients[N_MODES];
  uint8_t flags[N_CELLS] = {0};

  memmove (b->coefficients + 1, b->coefficients,
      (N_PAST - 1) * sizeof (*b->coefficients));
  if (!step.frame.is_dark)
    b->coefficients[0] =
        (1 - b->leak) * b->coefficients[1] + b->gain * step.correction;
  get_coefficients (b, coefficients);
  for (int i = 0; i < 2 * N_CELLS; i++)
    slopes[i] = (float) step.slope;
  for (uint32_t i = step.frame.n_valid; i < N_CELLS; i++)
    flags[i] = 1;
  return imk_shdivergence_follow (
      b->self, slopes, flags, coefficients, &step.frame, report);
}

/* Returns: the frame of the verdict, from 1; 0 without one in @n frames */
static int
follow_all (Bench *b, StepOf step_of, int n, ImkShdivergenceVerdict *verdict,
    ImkShdivergenceReport *report)
{
  for (int t = 0; t < n; t++) {
    *verdict = follow (b, step_of (b, t), report);
    if (*verdict != IMK_SHDIVERGENCE_NONE)
      return t + 1;
  }
  return 0;
}

/* @b: is freed */
static void
check_told (Bench b, StepOf step_of, int expected,
    ImkShdivergenceVerdict expected_verdict, double rms_at_closing, double rms)
{
  ImkShdivergenceVerdict verdict = IMK_SHDIVERGENCE_NONE;
  ImkShdivergenceReport report = {0};
  const int told = follow_all (&b, step_of, 1000, &verdict, &report);

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
  imk_shdivergence_free (b.self);
}

static void
check_silent (Bench b, StepOf step_of)
{
  check_told (b, step_of, 0, IMK_SHDIVERGENCE_NONE, 0, 0);
}

static const ImkShreconstructReport all_valid = {.n_valid = N_CELLS};

/* --- windows -------------------------------------------------------------- */

/* Noise of two values. */
static double
noise (int t, double size)
{
  return t % 2 ? size : -size;
}

static double
clip (double value, double limit)
{
  return fmin (fmax (value, -limit), limit);
}

/* An aberration of 0.1 that the mirror makes larger, until spots are at the
 * edges of their cells. */
static Step
has_wrong_sign (const Bench *b, int t)
{
  const double slope = clip (0.1 + b->coefficients[1], 3) + noise (t, 0.02);

  return (Step){t < 3 ? 0.1 : 3, slope, all_valid};
}

TEST (test_commands_that_make_slopes, "commands that make the slopes are told")
{
  check_told (bench_of (0.1, 0), has_wrong_sign, 3 + 3 * 50,
      IMK_SHDIVERGENCE_SLOPES, 0.1, 3);
}

/* A star that drifts leaves its rate by the gain, 30 times the noise. */
static Step
drifts (const Bench *b, int t)
{
  const double slope =
      0.03 * fmax (0, t - 20) - b->coefficients[1] + noise (t, 0.01);

  return (Step){slope, slope, all_valid};
}

/* A matrix of the wrong sign and of another scale. */
TEST (test_wrong_scale, "a wrong sign is told with any scale of the matrix")
{
  const double scales[] = {0.05, 0.1, 0.3, 3, 10};

  for (size_t i = 0; i < sizeof (scales) / sizeof (*scales); i++) {
    Bench b = bench_of (0.1, 0);
    ImkShdivergenceVerdict verdict = IMK_SHDIVERGENCE_NONE;
    ImkShdivergenceReport report;
    int t = 0;

    for (; t < 2000 && verdict == IMK_SHDIVERGENCE_NONE; t++) {
      const double correction =
          scales[i] * clip (0.1 + b.coefficients[1] + noise (t, 0.02), 3);

      verdict = follow (&b, (Step){0.1, correction, all_valid}, &report);
    }
    test_check (verdict == IMK_SHDIVERGENCE_SLOPES && t < 150 + 60 / scales[i],
        "scale %g: verdict %d in frame %d", scales[i], verdict, t);
    imk_shdivergence_free (b.self);
  }
}

/* It drifts on, and the leak leaves more and more of it. */
static Step
drifts_with_leak (const Bench *b, int t)
{
  const double slope = 0.02 * t - b->coefficients[1] + noise (t, 0.001);

  return (Step){slope, t < 3 ? slope + noise (t, 0.2) : slope, all_valid};
}

TEST (test_drift_with_leak, "a drift that a leak holds back is not told")
{
  check_silent (bench_of (0.2, 0.02), drifts_with_leak);
}

/* A loop of gain 0.04 does not follow it, and u turns its sign. */
static Step
vibrates (const Bench *b, int t)
{
  const double slope = 0.3 * sin (2 * M_PI * t / 103) - b->coefficients[1];

  return (Step){slope, slope + noise (t, 0.03), all_valid};
}

TEST (test_vibration, "a vibration slower than two windows is not told")
{
  check_silent (bench_of (0.04, 0), vibrates);
}

/* Air that begins in a loop that closed in still air. */
static Step
begins_fast (const Bench *b, int t)
{
  const double slope =
      t < 50 ? 0.01 : sin (0.3 * t) + sin (0.17 * t) - b->coefficients[1];

  return (Step){slope, slope + noise (t, 0.01), all_valid};
}

TEST (test_air_begins, "fast air that begins in a closed loop is not told")
{
  check_silent (bench_of (0.25, 0), begins_fast);
}

TEST (test_drift, "a drift that the mirror follows is not told")
{
  const double gains[] = {0.02, 0.05, 0.1, 0.3, 0.5};

  for (size_t i = 0; i < sizeof (gains) / sizeof (*gains); i++)
    check_silent (bench_of (gains[i], 0), drifts);
}

static Step
has_unseen (const Bench *b, int t)
{
  return (Step){t < 3 ? 1 : 10, noise (t, 0.1), all_valid};
}

TEST (test_unseen_slopes, "slopes that the control matrix does not see are not "
                          "told")
{
  check_silent (bench_of (0.1, 0), has_unseen);
}

/* Corrections that the commands make, until spots are at the edges. */
static Step
drives_away (const Bench *b, int t)
{
  return (Step){t < 3 ? 1 : 1.25, fmin (0.1 * exp (0.1 * t), 3), all_valid};
}

static Step
lasts (const Bench *b, int t)
{
  return (Step){1, (t < 3 ? 1 : 1.25) + noise (t, 0.2), all_valid};
}

TEST (test_lasting, "those that last with their noise are not told")
{
  check_silent (bench_of (0.1, 0), lasts);
}

static Step
lasts_as_at_closing (const Bench *b, int t)
{
  return (Step){1, t < 3 ? 1 + noise (t, 0.2) : 1.1, all_valid};
}

TEST (test_no_growth, "slopes below 1.2 times those at closing are not told")
{
  check_silent (bench_of (0.1, 0), lasts_as_at_closing);
}

/* A leak of 0.1 and a gain of 0.05 hold it at twice the aberration. */
static Step
leaks (const Bench *b, int t)
{
  const double correction = 1 + b->coefficients[0] + noise (t, 0.2);

  return (Step){t < 3 ? 1 : 2, correction, all_valid};
}

static Step
leaks_and_corrects (const Bench *b, int t)
{
  return (Step){1, 1 - b->coefficients[0] + noise (t, 0.2), all_valid};
}

TEST (test_leak, "a leak that holds a loop of the wrong sign is told")
{
  Bench b = bench_of (0.05, 0.1);
  ImkShdivergenceVerdict verdict;
  ImkShdivergenceReport report;
  const int told = follow_all (&b, leaks, 1000, &verdict, &report);

  test_check (told > 150 && told < 600, "told in frame %d", told);
  imk_shdivergence_free (b.self);
  check_silent (bench_of (0.05, 0.1), leaks_and_corrects);
}

static Step
jumps (const Bench *b, int t)
{
  return (Step){t < 3 ? 1 : 4, noise (t, t < 3 ? 1 : 4), all_valid};
}

TEST (test_coefficients_that_jump, "coefficients that jump are told")
{
  check_told (
      bench_of (0.5, 0), jumps, 3 + 3 * 50, IMK_SHDIVERGENCE_SLOPES, 1, 4);
}

TEST (test_slopes_that_swing, "with small steps they are not told")
{
  Bench b = bench_of (0.5, 0);

  b.coefficients[0] = 10;
  close_loop (&b);
  check_silent (b, jumps);
}

static Step
settles (const Bench *b, int t)
{
  return (Step){1, t < 3 ? 1 + noise (t, 0.2) : t < 53 ? 8 : 1.25, all_valid};
}

TEST (test_slopes_that_settle, "slopes below 0.7 of their largest are not told")
{
  check_silent (bench_of (0.1, 0), settles);
}

/* Each third frame is dark, and has slopes that would hide those that last. */
static Step
drives_away_between_dark (const Bench *b, int t)
{
  if (t % 3 == 2)
    return (Step){0, 0, {.n_valid = 2, .is_dark = true}};
  return drives_away (b, t < 4 ? t - t / 3 : t);
}

TEST (test_dark_frames, "dark frames are in no window")
{
  Bench b = bench_of (0.1, 0);
  ImkShdivergenceVerdict verdict = IMK_SHDIVERGENCE_NONE;
  ImkShdivergenceReport report = {0};
  const int told =
      follow_all (&b, drives_away_between_dark, 400, &verdict, &report);

  test_check (told == 3 * 153 / 2, "told in frame %d", told);
  imk_shdivergence_free (b.self);
}

/* --- lost cells, and limits ----------------------------------------------- */

static Step
loses (const Bench *b, int t)
{
  const ImkShreconstructReport lost = {.n_valid = 1};

  return t < 3    ? (Step){1, 1, all_valid}
         : t < 40 ? (Step){t % 2 ? 2.5 : -2.5, 1, all_valid}
                  : (Step){0, 1, lost};
}

TEST (test_lost_cells, "cells that are lost after the slopes grew are told")
{
  check_told (bench_of (0.1, 0), loses, 100, IMK_SHDIVERGENCE_SLOPES, 1, 2.5);
}

static Step
goes_dark (const Bench *b, int t)
{
  const Step step = loses (b, t);

  return (Step){1, 1, step.frame};
}

TEST (test_lost_light, "cells that are lost with slopes as before are not told")
{
  check_silent (bench_of (0.1, 0), goes_dark);
}

static Step
goes_dark_in_wind (const Bench *b, int t)
{
  const Step step = loses (b, t);

  return t < 40 ? step : (Step){0, 1, {.n_valid = 0}};
}

TEST (test_blackout, "light that is lost after the air grew is not told")
{
  check_silent (bench_of (0.1, 0), goes_dark_in_wind);
}

static Step
is_limited (const Bench *b, int t)
{
  return (Step){1, 1, {.n_valid = N_CELLS, .n_limited = t < 10 ? 1 : 2}};
}

TEST (
    test_limits, "half of the commands at limits in 90 of 100 frames are told")
{
  check_told (
      bench_of (0.1, 0), is_limited, 100, IMK_SHDIVERGENCE_LIMITED, 1, 1);
}

static Step
is_limited_later (const Bench *b, int t)
{
  return (Step){1, 1, {.n_valid = N_CELLS, .n_limited = t % 100 < 11 ? 1 : 2}};
}

TEST (test_fewer_limits, "in 89 of 100 frames they are not told")
{
  check_silent (bench_of (0.1, 0), is_limited_later);
}

TEST (test_limits_on_a_device, "limits are followed without slopes")
{
  Bench b = bench_of (0.1, 0);
  const ImkShreconstructReport frame = {
      .n_valid = N_CELLS, .n_limited = N_COMMANDS};
  const float coefficients[N_MODES] = {0};
  ImkShdivergenceReport report;
  int t = 1;

  while (t < 200 && imk_shdivergence_follow (b.self, NULL, NULL, coefficients,
                        &frame, &report) == IMK_SHDIVERGENCE_NONE)
    t++;
  test_check (t == 100, "told in frame %d", t);
  imk_shdivergence_free (b.self);
}

/* Spots are lost 30 frames after each light, when slopes are 0.1 exp (t / 10),
 * and the mirror goes to the reference for 5 frames. */
static Step
loses_again (const Bench *b, int t)
{
  const double slope = 0.1 * exp (t % 35 / 10.0);

  if (t % 35 >= 30)
    return (Step){0, 0, {.n_valid = 0, .is_dark = true}};
  return (Step){slope, 0, all_valid};
}

TEST (test_lights, "lights that end with larger slopes are told, if the mirror "
                   "begins anew in each")
{
  for (int restarts = 0; restarts < 2; restarts++) {
    Bench b = bench_of (0.1, 0);
    ImkShreconstructConfig c = config_of (&b);
    ImkShdivergenceVerdict verdict;
    ImkShdivergenceReport report;
    int told;

    c.dark = restarts ? IMK_SHRECONSTRUCT_DARK_REFERENCE
                      : IMK_SHRECONSTRUCT_DARK_HOLD;
    imk_shdivergence_set_controller (b.self, &c);
    told = follow_all (&b, loses_again, 400, &verdict, &report);
    test_check (told == (restarts ? 4 * 35 + 31 : 0), "told in frame %d", told);
    imk_shdivergence_free (b.self);
  }
}

/* --- what a loop is compared with ----------------------------------------- */

TEST (test_once, "a verdict comes once for each closing, with new figures")
{
  Bench b = bench_of (0.1, 0);

  for (int closing = 0; closing < 2; closing++) {
    ImkShdivergenceVerdict verdict = IMK_SHDIVERGENCE_NONE;
    ImkShdivergenceReport report = {0};

    test_check (follow_all (&b, drives_away, 400, &verdict, &report) == 153,
        "not told in frame 153 of closing %d", closing);
    test_check (follow_all (&b, drives_away, 400, &verdict, &report) == 0,
        "told twice");
    close_loop (&b);
  }
  imk_shdivergence_free (b.self);
}

TEST (test_offsets, "offsets are no residual slopes, until they are taken away")
{
  Bench b = bench_of (0.1, 0);
  ImkShdivergenceVerdict verdict = IMK_SHDIVERGENCE_NONE;
  ImkShdivergenceReport report = {0};
  ImkShreconstructConfig c = config_of (&b);
  float offsets[2 * N_CELLS];

  for (int i = 0; i < 2 * N_CELLS; i++)
    offsets[i] = 0.25F;
  c.offsets = offsets;
  imk_shdivergence_set_controller (b.self, &c);
  test_check (follow_all (&b, drives_away, 400, &verdict, &report) == 153,
      "not told in frame 153");
  test_check (fabs (report.rms_at_closing - 0.75) <= 1e-6 &&
                  fabs (report.rms - 1) <= 1e-6,
      "the rms is %g at closing and %g", report.rms_at_closing, report.rms);
  c.offsets = NULL;
  imk_shdivergence_set_controller (b.self, &c);
  close_loop (&b);
  follow_all (&b, drives_away, 400, &verdict, &report);
  test_check (fabs (report.rms - 1.25) <= 1e-6, "the rms is %g", report.rms);
  imk_shdivergence_free (b.self);
}

/* Cell 0 has slopes that no other has, and is invalid for another reason in
 * each frame. */
TEST (test_invalid_cells, "invalid cells have no part")
{
  Bench b = bench_of (0.1, 0);
  const ImkShreconstructReport frame = {.n_valid = N_CELLS - 1};
  float coefficients[N_MODES];
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
    b.coefficients[0] += b.gain * drives_away (&b, t).correction;
    get_coefficients (&b, coefficients);
    verdict = imk_shdivergence_follow (
        b.self, slopes, flags, coefficients, &frame, &report);
  }
  test_check (t == 153, "told in frame %d", t);
  test_check (
      fabs (report.rms_at_closing - 1) <= 1e-6 && fabs (report.rms - 3) <= 1e-6,
      "the rms is %g at closing and %g", report.rms_at_closing, report.rms);
  imk_shdivergence_free (b.self);
}
