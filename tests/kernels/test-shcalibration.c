/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A sensor and a mirror that are a random matrix, with a delay. Without noise
 * an element is the true one to 1e-6 of the rms; with noise it is so to five
 * standard errors. */
#include "imk/shcalibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel-test.h"

enum { N_CELLS = 9, N_COMMANDS = 5, N_SLOPES = 2 * N_CELLS, MOST = 128 };

typedef struct Bench {
  float truth[N_SLOPES * N_COMMANDS];
  float past[MOST][N_COMMANDS]; /* the newest first */
  double impulse[MOST];         /* lag 1, 2, ... */
  double noise, aberration, drift;
  double lost;      /* share of frames before which one or two are missing */
  double slew;      /* of the mirror in a frame, 0 for any */
  double vibration; /* of all slopes */
  double frequency; /* of it, in cycles for each frame; 0: 0.8 radian */
  double ramp;      /* of all slopes, in a frame */
  double range;     /* of slopes, which are bent like tanh, 0 for any */
  double even;      /* factor of the square of a slope that is added to it */
  double fading;    /* of the response, in a frame */
  double stop;      /* of command 2 on one side, 0 for none */
  double glare;     /* slopes from which on a spot is saturated, 0 for none */
  uint32_t n_frames;
  uint64_t seed;
} Bench;

/* Near to a normal distribution of rms 1 */
static double
draw (Bench *b)
{
  double sum = -6;

  for (int i = 0; i < 12; i++) {
    b->seed = b->seed * 6364136223846793005u + 1442695040888963407u;
    sum += (double) (b->seed >> 11) / 9007199254740992.0;
  }
  return sum;
}

static void
bench_init (Bench *b, double noise, const double *impulse, uint32_t n)
{
  *b = (Bench){.seed = 7, .noise = noise, .aberration = 3};
  for (uint32_t i = 0; i < N_SLOPES * N_COMMANDS; i++)
    b->truth[i] = (float) draw (b);
  for (uint32_t i = 0; i < n; i++)
    b->impulse[i] = impulse[i];
}

/* @flags: (nullable) */
static void
see (Bench *b, float *slopes, uint8_t *flags)
{
  const double part = pow (1 - b->fading, b->n_frames);
  const double omega = b->frequency > 0 ? 6.283185307 * b->frequency : 0.8;
  const double tilt =
      b->vibration * sin (omega * b->n_frames) + b->ramp * b->n_frames;

  b->n_frames++;
  if (b->drift > 0)
    b->aberration += b->drift * draw (b);
  for (int i = 0; i < N_SLOPES; i++) {
    double sum = b->aberration + tilt + b->noise * draw (b), moved = 0;

    for (int lag = 0; lag < MOST; lag++)
      for (int k = 0; b->impulse[lag] != 0 && k < N_COMMANDS; k++)
        moved +=
            b->impulse[lag] * b->truth[i * N_COMMANDS + k] * b->past[lag][k];
    moved *= part;
    moved += b->even * moved * moved;
    if (b->range > 0)
      moved = b->range * tanh (moved / b->range);
    if (b->glare > 0 && fabs (moved) > b->glare && flags)
      flags[i % N_CELLS] |= 4; /* IMK_SHCENTROID_SATURATED */
    slopes[i] = (float) (sum + moved);
  }
}

/* @pokes: (nullable): those before stay */
static void
send (Bench *b, const float *pokes)
{
  memmove (b->past[1], b->past[0], sizeof (b->past) - sizeof (b->past[0]));
  for (int k = 0; pokes && k < N_COMMANDS; k++) {
    const float limit = b->slew > 0 ? (float) b->slew : INFINITY;
    const float step = pokes[k] - b->past[1][k];

    b->past[0][k] = b->past[1][k] + fminf (fmaxf (step, -limit), limit);
    if (k == 2 && b->stop > 0)
      b->past[0][k] = fminf (b->past[0][k], (float) b->stop);
  }
}

/* Returns: whether frames were lost */
static bool
lose (Bench *b)
{
  const double chance = fabs (draw (b));
  const bool is_lost = chance < b->lost * 1.25;

  if (is_lost)
    send (b, NULL);
  if (chance < b->lost * 0.6)
    send (b, NULL);
  return is_lost;
}

typedef struct Result {
  float interaction[N_SLOPES * N_COMMANDS], noise[N_SLOPES * N_COMMANDS];
  ImkShcalibrationReport report;
  ImkShjudgement judgement;
  ImkShcalibrationState state;
} Result;

/* @flags: (nullable): [N_CELLS], of all frames
 * @dropouts: share of frames in which a cell is invalid besides */
static Result
calibrate_with (Bench *b, const ImkShcalibrationConfig *c, const uint8_t *flags,
    double dropouts)
{
  ImkShcalibration *self = NULL;
  Result result;
  double progress = 0;

  test_ok (imk_shcalibration_new (c, &self, test_new_error ()));
  do {
    float slopes[N_SLOPES], pokes[N_COMMANDS];
    uint8_t now[N_CELLS] = {0};

    if (b->lost > 0 && lose (b))
      imk_shcalibration_interrupt (self);
    see (b, slopes, now);
    for (int i = 0; i < N_CELLS; i++)
      now[i] |= (flags && flags[i]) || fabs (draw (b)) < dropouts * 1.25;
    result.state = imk_shcalibration_process (self, slopes, now, pokes);
    send (b, pokes);
    for (int k = 0; k < N_COMMANDS; k++)
      test_check (fabsf (pokes[k]) <= (float) c->poke, "a poke of %g",
          (double) pokes[k]);
    test_check (imk_shcalibration_progress (self) >= progress, "it goes back");
    progress = imk_shcalibration_progress (self);
  } while (result.state == IMK_SHCALIBRATION_RUNNING);
  test_check (progress <= 1, "progress %g", progress);
  if (result.state == IMK_SHCALIBRATION_DONE) {
    imk_shcalibration_result (
        self, result.interaction, result.noise, &result.report);
    imk_shcalibration_judge (
        self, result.interaction, result.noise, &result.judgement);
  }
  imk_shcalibration_free (self);
  return result;
}

static Result
calibrate (Bench *b, const ImkShcalibrationConfig *c, const uint8_t *flags)
{
  return calibrate_with (b, c, flags, 0);
}

static ImkShcalibrationConfig
config_of (int method)
{
  ImkShcalibrationConfig c;

  imk_shcalibration_config_init (&c);
  c.n_cells = N_CELLS;
  c.n_commands = N_COMMANDS;
  c.method = (ImkShcalibrationMethod) method;
  return c;
}

static const double whole[] = {0, 1}, slow[] = {0, 0, 0.3, 0.7},
                    at_once[] = {1};
static const struct {
  const double *impulse;
  uint32_t n, first, last;
  double latency;
} delays[] = {{at_once, 1, 1, 1, 1}, {whole, 2, 2, 2, 2}, {slow, 4, 3, 4, 3.7}};

TEST (test_the_matrix_is_the_true_one, "the matrix is the true one")
{
  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++)
    for (int d = 0; d < 3; d++) {
      ImkShcalibrationConfig c = config_of (method);
      Bench b;
      Result r;

      bench_init (&b, 0, delays[d].impulse, delays[d].n);
      r = calibrate (&b, &c, NULL);
      test_check (r.state == IMK_SHCALIBRATION_DONE, "state %d", r.state);
      test_check (r.report.first == delays[d].first &&
                      r.report.last == delays[d].last &&
                      fabs (r.report.latency - delays[d].latency) < 1e-6,
          "delay %d is %g, from %u to %u", d, r.report.latency, r.report.first,
          r.report.last);
      for (int i = 0; i < N_SLOPES * N_COMMANDS; i++)
        test_check (fabsf (r.interaction[i] - b.truth[i]) < 5e-5f,
            "method %d, delay %d: element %d is %g and should be %g", method, d,
            i, (double) r.interaction[i], (double) b.truth[i]);
      test_check (r.report.noise < 1e-4, "noise %g", r.report.noise);
    }
}

static const struct {
  double latency, reach; /* part of what is left of a step, in a frame */
} mirrors[] = {{1.01, 1}, {1.05, 1}, {1.95, 1}, {2.02, 1}, {2.09, 1}, {2.12, 1},
    {2.5, 1}, {2, 0.95}, {2, 0.9}, {2, 0.8}, {1.3, 0.5}, {2, 0.3}, {1, 0.15}};

static void
make_impulse (double latency, double reach, double *impulse)
{
  const int whole_frames = (int) latency;
  double left = 1;

  memset (impulse, 0, MOST * sizeof (*impulse));
  for (int lag = whole_frames - 1; lag < MOST - 1; lag++) {
    const double part = left * reach;

    impulse[lag] += (1 - latency + whole_frames) * part;
    impulse[lag + 1] += (latency - whole_frames) * part;
    left -= part;
  }
}

TEST (test_a_response_of_several_frames, "a response of several frames")
{
  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++)
    for (uint32_t d = 0; d < sizeof (mirrors) / sizeof (mirrors[0]); d++)
      for (uint32_t n_frames = 1; n_frames <= 3; n_frames += 2) {
        ImkShcalibrationConfig c = config_of (method);
        double impulse[MOST], expected;
        Bench b;
        Result r;

        make_impulse (mirrors[d].latency, mirrors[d].reach, impulse);
        bench_init (&b, 0, impulse, MOST);
        b.lost = n_frames > 1 && mirrors[d].reach > 0.5 ? 0.03 : 0;
        c.n_frames = n_frames;
        r = calibrate (&b, &c, NULL);
        expected = mirrors[d].latency + 1 / mirrors[d].reach - 1;
        test_check (r.state == IMK_SHCALIBRATION_DONE, "state %d", r.state);
        test_check (fabs (r.report.latency - expected) < 1e-3,
            "method %d, mirror %u: a latency of %g and not %g", method, d,
            r.report.latency, expected);
        for (int i = 0; i < N_SLOPES * N_COMMANDS; i++)
          test_check (fabsf (r.interaction[i] - b.truth[i]) < 5e-5f,
              "method %d, mirror %u: element %d is %g and should be %g", method,
              d, i, (double) r.interaction[i], (double) b.truth[i]);
      }
}

/* 5 commands: 2 x 5 pokes, or 2 x 8, in 4 repeats, after 276 frames. */
TEST (test_a_fraction_of_a_frame_takes_no_more_frames,
    "a fraction of a frame takes no more frames")
{
  const uint32_t n_pokes[] = {40, 64};

  for (int method = 0; method <= IMK_SHCALIBRATION_HADAMARD; method++)
    for (int d = 0; d < 5; d++) {
      ImkShcalibrationConfig c = config_of (method);
      double impulse[MOST];
      Bench b;
      Result r;

      make_impulse (mirrors[d].latency, mirrors[d].reach, impulse);
      bench_init (&b, 0, impulse, MOST);
      r = calibrate (&b, &c, NULL);
      test_check (r.report.n_frames <= 276 + n_pokes[method] + 3,
          "method %d, mirror %d: %u frames", method, d, r.report.n_frames);
    }
}

TEST (test_noise_of_a_response_of_several_frames,
    "noise of a response of several frames")
{
  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++)
    for (uint32_t d = 0; d < sizeof (mirrors) / sizeof (mirrors[0]); d++) {
      ImkShcalibrationConfig c = config_of (method);
      double impulse[MOST], squares = 0;
      Bench b;
      Result r;

      c.n_repeats = 8;
      make_impulse (mirrors[d].latency, mirrors[d].reach, impulse);
      bench_init (&b, 0.005, impulse, MOST);
      r = calibrate (&b, &c, NULL);
      for (int i = 0; i < N_SLOPES * N_COMMANDS; i++) {
        double z = (r.interaction[i] - b.truth[i]) / r.noise[i];

        squares += z * z / (N_SLOPES * N_COMMANDS);
      }
      test_check (squares < 1.5 * 1.5 && squares > 0.6,
          "method %d, mirror %u: errors are %g times what they should be",
          method, d, sqrt (squares));
    }
}

/* The drift hides 7 % in the next frame, which must not look like a mirror with
 * a limit, and is in the stated noise. */
TEST (test_a_fraction_that_drift_hides, "a fraction that drift hides")
{
  enum { N_BENCHES = 30 };

  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++) {
    ImkShcalibrationConfig c = config_of (method);
    double impulse[MOST], squares = 0;

    c.n_repeats = 20;
    make_impulse (2.07, 1, impulse);
    for (int n = 0; n < N_BENCHES; n++) {
      Bench b;
      Result r;

      bench_init (&b, 0.003, impulse, MOST);
      b.seed = (uint64_t) n + 1;
      b.drift = 0.05;
      r = calibrate (&b, &c, NULL);
      test_check (r.state == IMK_SHCALIBRATION_DONE && r.report.is_linear,
          "method %d, bench %d: state %d", method, n, r.state);
      for (int i = 0; i < N_SLOPES * N_COMMANDS; i++) {
        double z = (r.interaction[i] - b.truth[i]) / r.noise[i];

        squares += z * z / (N_BENCHES * N_SLOPES * N_COMMANDS);
      }
    }
    test_check (squares < 1.5 * 1.5,
        "method %d: errors are %g times the stated noise", method,
        sqrt (squares));
  }
}

TEST (test_noise_is_known, "noise is known")
{
  double noise[3];

  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++) {
    ImkShcalibrationConfig c = config_of (method);
    double squares = 0;
    Bench b;
    Result r;

    c.n_repeats = 40;
    bench_init (&b, 0.05, whole, 2);
    r = calibrate (&b, &c, NULL);
    for (int i = 0; i < N_SLOPES * N_COMMANDS; i++) {
      double z = (r.interaction[i] - b.truth[i]) / r.noise[i];

      test_check (fabs (z) < 5, "method %d: element %d is off by %g sigma",
          method, i, z);
      squares += z * z;
    }
    squares /= N_SLOPES * N_COMMANDS;
    test_check (squares > 0.6 && squares < 1.6,
        "method %d: errors are %g times what they should be", method,
        sqrt (squares));
    noise[method] = r.report.noise;
  }
  /* sigma / (poke sqrt (2 repeats)), with 8 rows smaller by the root of 8 */
  test_check (
      fabs (noise[0] / (0.5 / sqrt (80)) - 1) < 0.1, "push-pull %g", noise[0]);
  test_check (
      fabs (noise[1] / (0.5 / sqrt (640)) - 1) < 0.1, "Hadamard %g", noise[1]);
}

/* Of two repeats alone the spread of an element is often next to nothing: with
 * 5 degrees of freedom errors are 1.29 times the stated noise. */
TEST (test_two_repeats_tell_the_noise, "two repeats tell the noise")
{
  enum { N_BENCHES = 20 };

  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++) {
    ImkShcalibrationConfig c = config_of (method);
    double squares = 0;

    c.n_repeats = 2;
    for (int n = 0; n < N_BENCHES; n++) {
      float least = INFINITY;
      Bench b;
      Result r;

      bench_init (&b, 0.05, whole, 2);
      b.seed = (uint64_t) n + 1;
      r = calibrate (&b, &c, NULL);
      for (int i = 0; i < N_SLOPES * N_COMMANDS; i++) {
        double z = (r.interaction[i] - b.truth[i]) / r.noise[i];

        squares += z * z / (N_BENCHES * N_SLOPES * N_COMMANDS);
        least = fminf (least, r.noise[i]);
      }
      test_check (least > r.report.noise / 5,
          "method %d, bench %d: an error of %g, their rms is %g", method, n,
          (double) least, r.report.noise);
    }
    test_check (squares > 1 && squares < 1.4 * 1.4,
        "method %d: errors are %g times the stated noise", method,
        sqrt (squares));
  }
}

/* Waves of low frequencies have more of it than others. All slopes of a bench
 * drift together, so that it has one error alone. */
TEST (test_drift_is_noise, "drift is noise")
{
  enum { N_BENCHES = 20 };

  double of_first = 0, of_last = 0, squares = 0;
  ImkShcalibrationConfig c = config_of (IMK_SHCALIBRATION_SINUSOIDAL);

  c.n_repeats = 40;
  for (int n = 0; n < N_BENCHES; n++) {
    Bench b;
    Result r;

    bench_init (&b, 0.001, whole, 2);
    b.seed = (uint64_t) n + 1;
    b.drift = 0.05;
    r = calibrate (&b, &c, NULL);
    for (int i = 0; i < N_SLOPES; i++) {
      const float *noise = r.noise + (size_t) i * N_COMMANDS;
      double z = (r.interaction[i * N_COMMANDS] - b.truth[i * N_COMMANDS]) /
                 (double) noise[0];

      of_first += noise[0];
      of_last += noise[N_COMMANDS - 1];
      squares += z * z / (N_SLOPES * N_BENCHES);
    }
  }
  test_check (
      of_first > 1.5 * of_last, "errors of %g and %g", of_first, of_last);
  test_check (
      squares < 3, "errors are %g times what they should be", sqrt (squares));
}

TEST (test_dark_cells_and_dead_actuators, "dark cells and dead actuators")
{
  const uint8_t flags[N_CELLS] = {0, 0, 1}, dead[N_COMMANDS] = {0, 1};

  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++) {
    ImkShcalibrationConfig c = config_of (method);
    Bench b;
    Result r;

    c.dead = dead;
    bench_init (&b, 0, whole, 2);
    r = calibrate (&b, &c, flags);
    test_check (r.report.n_unseen == 1, "%u cells unseen", r.report.n_unseen);
    for (int i = 0; i < N_SLOPES; i++)
      for (int k = 0; k < N_COMMANDS; k++) {
        int at = i * N_COMMANDS + k;
        bool is_dark = i % N_CELLS == 2;
        float expected = is_dark || k == 1 ? 0 : b.truth[at];

        test_check (fabsf (r.interaction[at] - expected) < 5e-5f,
            "slope %d of command %d is %g and should be %g", i, k,
            (double) r.interaction[at], (double) expected);
        test_check ((k == 1 || is_dark) == !isfinite (r.noise[at]),
            "the noise of slope %d, command %d is %g", i, k,
            (double) r.noise[at]);
      }
  }
}

/* Without noise: what is invalid has no part in what is found. */
TEST (test_cells_that_drop_out_are_measured, "cells that drop out are measured")
{
  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++)
    for (uint32_t n_frames = 1; n_frames <= 3; n_frames += 2) {
      ImkShcalibrationConfig c = config_of (method);
      Bench b;
      Result r;

      c.n_repeats = 12;
      c.n_frames = n_frames;
      bench_init (&b, 0, whole, 2);
      b.aberration = 0;
      r = calibrate_with (&b, &c, NULL, 0.05);
      test_check (r.state == IMK_SHCALIBRATION_DONE, "state %d", r.state);
      test_check (r.report.n_unseen == 0, "method %d: %u cells unseen", method,
          r.report.n_unseen);
      for (int i = 0; i < N_SLOPES * N_COMMANDS; i++)
        test_check (fabsf (r.interaction[i] - b.truth[i]) < 5e-5f &&
                        isfinite (r.noise[i]),
            "method %d: element %d is %g and should be %g, error %g", method, i,
            (double) r.interaction[i], (double) b.truth[i],
            (double) r.noise[i]);
    }
}

/* Cells that are valid in most frames, but never in one pattern, or in too few
 * frames of each period. */
TEST (test_cells_that_are_lost_are_told, "cells that are lost are told")
{
  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++) {
    const uint8_t flags[N_CELLS] = {1};
    ImkShcalibrationConfig c = config_of (method);
    Bench b;
    Result r;

    /* of pairs that were seen once alone no error is known */
    c.n_repeats = method == IMK_SHCALIBRATION_PUSH_PULL ? 4 : 2;
    bench_init (&b, 0, whole, 2);
    b.aberration = 0;
    r = calibrate_with (&b, &c, flags, 0.4);
    test_check (r.state == IMK_SHCALIBRATION_DONE, "state %d", r.state);
    test_check (r.report.n_lost > 0 && r.report.n_lost < N_CELLS,
        "method %d: %u cells are lost", method, r.report.n_lost);
    if (method == IMK_SHCALIBRATION_PUSH_PULL) /* some commands are measured */
      test_check (r.report.n_unseen == 1, "%u cells unseen", r.report.n_unseen);
    else
      test_check (r.report.n_lost < r.report.n_unseen,
          "method %d: %u of %u unseen cells are lost", method, r.report.n_lost,
          r.report.n_unseen);
  }
}

/* The other elements of its cell are those of any calibration. */
TEST (test_a_missing_element_is_no_missing_cell,
    "a missing element is no missing cell")
{
  ImkShcalibrationConfig c = config_of (IMK_SHCALIBRATION_PUSH_PULL);
  uint32_t n_missing = 0;
  Bench b;
  Result r;

  c.n_repeats = 3;
  bench_init (&b, 0, whole, 2);
  b.aberration = 0;
  r = calibrate_with (&b, &c, NULL, 0.2);
  test_check (r.report.n_unseen == 0, "%u cells unseen", r.report.n_unseen);
  test_check (r.report.n_lost > 0, "no cell lacks an element");
  for (int i = 0; i < N_SLOPES * N_COMMANDS; i++) {
    const bool is_missing = r.interaction[i] == 0;

    n_missing += is_missing;
    test_check (is_missing || fabsf (r.interaction[i] - b.truth[i]) < 5e-5f,
        "element %d is %g and should be %g", i, (double) r.interaction[i],
        (double) b.truth[i]);
    test_check (!is_missing || isinf (r.noise[i]),
        "the noise of element %d, which is missing, is %g", i,
        (double) r.noise[i]);
  }
  test_check (n_missing > 0 && n_missing < N_SLOPES * N_COMMANDS / 3,
      "%u elements are missing", n_missing);
}

/* Without noise: a frame that sees two pokes has no part in what is found. */
TEST (test_lost_frames_spoil_nothing, "lost frames spoil nothing")
{
  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++)
    for (int d = 0; d < 3; d++)
      for (uint32_t n_frames = 1; n_frames <= 3; n_frames += 2) {
        ImkShcalibrationConfig c = config_of (method);
        Bench b;
        Result r;

        c.n_repeats = 2;
        c.n_frames = n_frames;
        bench_init (&b, 0, delays[d].impulse, delays[d].n);
        b.lost = 0.05;
        r = calibrate (&b, &c, NULL);
        test_check (r.state == IMK_SHCALIBRATION_DONE, "state %d", r.state);
        test_check (fabs (r.report.latency - delays[d].latency) < 1e-6,
            "delay %d is %g", d, r.report.latency);
        for (int i = 0; i < N_SLOPES * N_COMMANDS; i++)
          test_check (fabsf (r.interaction[i] - b.truth[i]) < 5e-5f &&
                          isfinite (r.noise[i]),
              "method %d, delay %d: element %d is %g and should be %g", method,
              d, i, (double) r.interaction[i], (double) b.truth[i]);
      }
}

TEST (test_too_many_gaps_are_told, "too many gaps are told")
{
  ImkShcalibrationConfig c = config_of (IMK_SHCALIBRATION_PUSH_PULL);
  Bench b;

  bench_init (&b, 0, whole, 2);
  b.lost = 10;
  test_check (calibrate (&b, &c, NULL).state == IMK_SHCALIBRATION_GAPS,
      "a calibration without a frame between gaps");
}

TEST (test_a_mirror_that_does_not_answer_is_found,
    "a mirror that does not answer is found")
{
  ImkShcalibrationConfig c = config_of (IMK_SHCALIBRATION_PUSH_PULL);
  Bench b;

  bench_init (&b, 0.1, NULL, 0);
  test_check (calibrate (&b, &c, NULL).state == IMK_SHCALIBRATION_NO_RESPONSE,
      "noise is taken for an answer");
}

static const double slews[] = {0.19, 0.15, 0.12, 0.09, 0.07, 0.05, 0.03};

/* A step of two pokes is 0.2. */
TEST (test_a_mirror_with_a_limit_of_its_own, "a mirror with a limit of its own")
{
  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++)
    for (uint32_t i = 0; i < sizeof (slews) / sizeof (slews[0]); i++) {
      ImkShcalibrationConfig c = config_of (method);
      double squares = 0;
      Bench b;
      Result r;

      c.n_repeats = 8;
      bench_init (&b, 0.01, whole, 2);
      b.slew = slews[i];
      r = calibrate (&b, &c, NULL);
      if (method == IMK_SHCALIBRATION_SINUSOIDAL) {
        test_check (r.state == IMK_SHCALIBRATION_NONLINEAR, "slew %g: state %d",
            b.slew, r.state);
        continue;
      }
      test_check (!r.report.is_linear, "method %d, slew %g is not found",
          method, b.slew);
      for (int k = 0; k < N_SLOPES * N_COMMANDS; k++) {
        double z = (r.interaction[k] - b.truth[k]) / r.noise[k];

        squares += z * z / (N_SLOPES * N_COMMANDS);
      }
      test_check (squares > 0.6 && squares < 1.6,
          "method %d, slew %g: errors are %g times what they should be", method,
          b.slew, sqrt (squares));
    }
}

TEST (test_noise_is_no_limit, "noise is no limit")
{
  static const struct {
    double noise, drift, vibration, dropouts;
  } airs[] = {{0.001, 0, 0, 0}, {0.1, 0, 0, 0}, {0.001, 0.01, 0, 0},
      {0.01, 0, 0.1, 0}, {0.01, 0.01, 0.05, 0}, {0.01, 0, 0, 0.05},
      {0.001, 0, 0.5, 0}, {0.001, 0.03, 0, 0}};

  for (uint32_t i = 0; i < sizeof (airs) / sizeof (airs[0]); i++)
    for (uint64_t seed = 1; seed <= 30; seed++) {
      ImkShcalibrationConfig c = config_of (IMK_SHCALIBRATION_SINUSOIDAL);
      Bench b;
      Result r;

      c.n_repeats = 2;
      bench_init (&b, airs[i].noise, whole, 2);
      b.seed = seed;
      b.drift = airs[i].drift;
      b.vibration = airs[i].vibration;
      r = calibrate_with (&b, &c, NULL, airs[i].dropouts);
      test_check (r.state == IMK_SHCALIBRATION_DONE && r.report.is_linear,
          "air %u, seed %u: state %d", i, (unsigned) seed, r.state);
    }
}

TEST (
    test_a_mirror_that_is_too_slow_is_told, "a mirror that is too slow is told")
{
  ImkShcalibrationConfig c = config_of (IMK_SHCALIBRATION_PUSH_PULL);
  double impulse[MOST];
  Bench b;
  Result r;

  make_impulse (1, 0.02, impulse);
  bench_init (&b, 0.001, impulse, MOST);
  r = calibrate (&b, &c, NULL);
  test_check (r.state == IMK_SHCALIBRATION_DONE && !r.report.is_settled,
      "state %d", r.state);
  make_impulse (1, 0.2, impulse);
  bench_init (&b, 0.001, impulse, MOST);
  r = calibrate (&b, &c, NULL);
  test_check (r.state == IMK_SHCALIBRATION_DONE && r.report.is_settled,
      "state %d", r.state);
}

static void
check_refused (const ImkShcalibrationConfig *c, const char *words)
{
  ImkShcalibration *self = NULL;

  test_check (
      imk_shcalibration_new (c, &self, test_new_error ()) == IMK_ERROR_CONFIG,
      "\"%s\" is not refused", words);
  test_check (strstr (test_message (), words) != NULL, "%s", test_message ());
}

TEST (test_what_is_wrong_is_said, "what is wrong is said")
{
  const uint8_t dead[] = {1, 1, 1, 1, 1};
  ImkShcalibrationConfig c = config_of (0);

  c.n_commands = 0;
  check_refused (&c, "0 commands");
  c = config_of (0);
  c.poke = NAN;
  check_refused (&c, "poke");
  c = config_of (0);
  c.n_repeats = 1;
  check_refused (&c, "1 repeats");
  c = config_of (0);
  c.n_frames = 0;
  check_refused (&c, "averages 0");
  c = config_of (0);
  c.dead = dead;
  check_refused (&c, "dead");
  imk_shcalibration_free (NULL);
}

/* --- the judgement -------------------------------------------------------- */

/* Noise in slopes of 0.1 for a poke, seeds from 1 on. */
static const struct {
  double noise, drift, vibration, dropouts, lost, latency, reach;
} good_runs[] = {{1e-5, 0, 0, 0, 0, 2, 1}, {0.01, 0, 0, 0, 0, 2, 1},
    {0.02, 0, 0, 0, 0, 1.3, 1}, {0.005, 0.003, 0, 0, 0, 2, 1},
    {0.005, 0, 0.02, 0, 0, 2.12, 1}, {0.01, 0, 0, 0.03, 0, 2, 1},
    {0.01, 0, 0, 0, 0.03, 2, 0.9}, {0.005, 0, 0, 0, 0, 1.3, 0.5}};

TEST (test_good_runs_are_called_good, "good runs are called good")
{
  enum { N_RUNS = TEST_SANITIZED ? 5 : 42 };

  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++)
    for (uint32_t i = 0; i < sizeof (good_runs) / sizeof (good_runs[0]); i++)
      for (uint64_t seed = 1; seed <= N_RUNS; seed++) {
        ImkShcalibrationConfig c = config_of (method);
        double impulse[MOST];
        char text[300];
        Bench b;
        Result r;

        c.n_repeats = 4 + seed % 3;
        make_impulse (good_runs[i].latency, good_runs[i].reach, impulse);
        bench_init (&b, good_runs[i].noise, impulse, MOST);
        b.seed = seed;
        b.aberration = 0;
        b.drift = good_runs[i].drift;
        b.vibration = good_runs[i].vibration;
        b.lost = good_runs[i].lost;
        r = calibrate_with (&b, &c, NULL, good_runs[i].dropouts);
        test_check (r.state == IMK_SHCALIBRATION_DONE, "state %d", r.state);
        imk_shjudge_describe (&r.judgement, text, sizeof (text));
        test_check (r.judgement.verdict == IMK_SHJUDGE_GOOD,
            "method %d, air %u, seed %u: %s", method, i, (unsigned) seed, text);
      }
}

typedef struct Fault {
  const char *name;
  double noise, poke, range, even, fading, glare;
  int dead; /* command, or -1 */
  const char *words;
} Fault;

static const Fault faults[] = {
    {"too small", 0.01, 0.002, 0, 0, 0, 0, -1, "calibration-poke"},
    {"bent", 0.01, 3, 2, 0, 0, 0, -1, "smaller calibration-poke"},
    {"one side", 0.01, 0.5, 0, 0.7, 0, 0, -1, "smaller calibration-poke"},
    {"glare", 0.01, 0.1, 0, 0, 0, 0.2, -1, "less light"},
    {"fading", 0.01, 0.3, 0, 0, 0.005, 0, -1, "first repeat to the last"},
    {"dead", 0.01, 0.1, 0, 0, 0, 0, 3,
        "1 command moves no spot above the noise (3, counted from 0)"}};

TEST (
    test_what_is_wrong_with_a_run_is_named, "what is wrong with a run is named")
{
  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++)
    for (uint32_t i = 0; i < sizeof (faults) / sizeof (faults[0]); i++)
      for (uint64_t seed = 1; seed <= 20; seed++) {
        const Fault *f = &faults[i];
        ImkShcalibrationConfig c = config_of (method);
        char text[300] = "";
        Bench b;
        Result r;

        c.poke = f->poke;
        bench_init (&b, f->noise, whole, 2);
        for (int k = 0; f->dead >= 0 && k < N_SLOPES; k++)
          b.truth[k * N_COMMANDS + f->dead] = 0;
        b.seed = seed;
        b.aberration = 0;
        b.range = f->range;
        b.even = f->even;
        b.fading = f->fading;
        b.glare = f->glare;
        /* of waves, squares are orthogonal to all elements */
        if (f->even != 0 && method == IMK_SHCALIBRATION_SINUSOIDAL)
          continue;
        r = calibrate (&b, &c, NULL);
        if (r.state == IMK_SHCALIBRATION_DONE)
          imk_shjudge_describe (&r.judgement, text, sizeof (text));
        test_check (
            (r.state == IMK_SHCALIBRATION_NO_RESPONSE && i == 0) ||
                (r.state == IMK_SHCALIBRATION_DONE && strstr (text, f->words)),
            "method %d, %s, seed %u: state %d, %s (%g %g %g)", method, f->name,
            (unsigned) seed, r.state, text, r.judgement.push_pull,
            r.judgement.superposition, r.judgement.drift);
      }
}

/* Slopes that bend leave cross-talk of up to 60 standard errors in its column.
 */
TEST (test_a_dead_command_is_named_despite_crosstalk,
    "a dead command is named despite cross-talk")
{
  for (int method = IMK_SHCALIBRATION_HADAMARD;
       method <= IMK_SHCALIBRATION_SINUSOIDAL; method++)
    for (uint64_t seed = 1; seed <= 20; seed++)
      for (int dead = 0; dead < N_COMMANDS; dead++) {
        ImkShcalibrationConfig c = config_of (method);
        char text[300];
        Bench b;
        Result r;

        bench_init (&b, 1e-4, whole, 2);
        for (int k = 0; k < N_SLOPES; k++)
          b.truth[k * N_COMMANDS + dead] = 0;
        b.seed = seed;
        b.aberration = 0;
        b.range = 0.7;
        r = calibrate (&b, &c, NULL);
        imk_shjudge_describe (&r.judgement, text, sizeof (text));
        test_check (r.judgement.superposition < 0.1 &&
                        r.judgement.verdict == IMK_SHJUDGE_UNSEEN &&
                        r.judgement.n_unseen == 1 &&
                        r.judgement.unseen[0] == (uint32_t) dead &&
                        (!r.judgement.n_hidden || strstr (text, "push-pull")),
            "method %d, dead %d, seed %u: superposition %g, %s", method, dead,
            (unsigned) seed, r.judgement.superposition, text);
      }
}

/* A tenth of the others, as at the edge of a pupil. */
TEST (
    test_a_weak_command_is_not_called_dead, "a weak command is not called dead")
{
  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++)
    for (uint64_t seed = 1; seed <= 20; seed++) {
      ImkShcalibrationConfig c = config_of (method);
      char text[300];
      Bench b;
      Result r;

      bench_init (&b, 1e-4, whole, 2);
      for (int k = 0; k < N_SLOPES; k++)
        b.truth[k * N_COMMANDS + 3] *= 0.1F;
      b.seed = seed;
      b.aberration = 0;
      b.range = 0.8;
      r = calibrate (&b, &c, NULL);
      imk_shjudge_describe (&r.judgement, text, sizeof (text));
      test_check (r.judgement.verdict == IMK_SHJUDGE_GOOD,
          "method %d, seed %u: superposition %g, %s", method, (unsigned) seed,
          r.judgement.superposition, text);
    }
}

/* Its element is 0.65 of the true one. */
TEST (test_a_command_that_stops_on_one_side_is_named,
    "a command that stops on one side is named")
{
  for (uint64_t seed = 1; seed <= 20; seed++) {
    ImkShcalibrationConfig c = config_of (IMK_SHCALIBRATION_PUSH_PULL);
    char text[300];
    Bench b;
    Result r;

    bench_init (&b, 0.002, whole, 2);
    b.seed = seed;
    b.aberration = 0;
    b.stop = 0.03;
    r = calibrate (&b, &c, NULL);
    imk_shjudge_describe (&r.judgement, text, sizeof (text));
    test_check (r.judgement.verdict != IMK_SHJUDGE_GOOD &&
                    r.judgement.worst == 2 && r.judgement.worst_push_pull > 0.3,
        "seed %u: command %u, %g: %s", (unsigned) seed, r.judgement.worst,
        r.judgement.worst_push_pull, text);
  }
}

/* Returns: the rms of the errors, by the standard errors */
static double
errors_of (const Bench *b, const Result *r)
{
  double squares = 0;

  for (int i = 0; i < N_SLOPES * N_COMMANDS; i++) {
    const double z = (r->interaction[i] - b->truth[i]) / (double) r->noise[i];

    squares += z * z / (N_SLOPES * N_COMMANDS);
  }
  return sqrt (squares);
}

TEST (test_a_steady_drift_cancels, "a steady drift cancels")
{
  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++)
    for (uint64_t seed = 1; seed <= 60; seed++) {
      ImkShcalibrationConfig c = config_of (method);
      char text[300];
      Bench b;
      Result r;

      c.n_repeats = 4 + seed % 3;
      bench_init (&b, 0.005, whole, 2);
      b.seed = seed;
      b.aberration = 0;
      b.ramp = 0.001 * (double) (seed % 5);
      r = calibrate (&b, &c, NULL);
      test_check (r.state == IMK_SHCALIBRATION_DONE, "state %d", r.state);
      imk_shjudge_describe (&r.judgement, text, sizeof (text));
      test_check (
          r.judgement.verdict == IMK_SHJUDGE_GOOD && errors_of (&b, &r) < 2,
          "method %d, seed %u: errors %g times the stated ones, %s", method,
          (unsigned) seed, errors_of (&b, &r), text);
    }
}

/* Returns: elements without a finite error, which have to be 0 */
static uint32_t
count_missing (const Result *r)
{
  uint32_t n = 0;

  for (int i = 0; i < N_SLOPES * N_COMMANDS; i++) {
    n += !isfinite (r->noise[i]);
    test_check (isfinite (r->noise[i]) || r->interaction[i] == 0,
        "element %d without an error is %g", i, (double) r->interaction[i]);
  }
  return n;
}

/* All commands move spots, and all cells have light in most frames. */
TEST (test_a_matrix_with_holes_is_not_good, "a matrix with holes is not good")
{
  uint32_t n_of[IMK_SHJUDGE_UNSEEN + 1] = {0};

  for (int method = 0; method <= IMK_SHCALIBRATION_SINUSOIDAL; method++)
    for (uint64_t seed = 1; seed <= 40; seed++) {
      ImkShcalibrationConfig c = config_of (method);
      const double dropouts = 0.05 * (double) (seed % 8);
      char text[300];
      uint32_t n;
      Bench b;
      Result r;

      bench_init (&b, 0.01, whole, 2);
      b.seed = seed;
      b.aberration = 0;
      r = calibrate_with (&b, &c, NULL, dropouts);
      test_check (r.state == IMK_SHCALIBRATION_DONE, "state %d", r.state);
      imk_shjudge_describe (&r.judgement, text, sizeof (text));
      n = count_missing (&r);
      n_of[r.judgement.verdict]++;
      test_check (r.judgement.n_unseen == 0 &&
                      fabs (r.judgement.missing -
                            n / (double) (N_SLOPES * N_COMMANDS)) < 1e-9,
          "method %d, seed %u: %u unseen, missing %g: %s", method,
          (unsigned) seed, r.judgement.n_unseen, r.judgement.missing, text);
      test_check (n < N_SLOPES * N_COMMANDS ||
                      r.judgement.verdict == IMK_SHJUDGE_UNMEASURED,
          "method %d, seed %u, none measured: %s", method, (unsigned) seed,
          text);
      test_check (10 * n <= N_SLOPES * N_COMMANDS ||
                      strstr (text, "not measured") || strstr (text, "No elem"),
          "method %d, seed %u, %u missing: %s", method, (unsigned) seed, n,
          text);
    }
  test_check (n_of[IMK_SHJUDGE_GOOD] && n_of[IMK_SHJUDGE_INCOMPLETE] &&
                  n_of[IMK_SHJUDGE_UNMEASURED],
      "%u good, %u incomplete, %u unmeasured", n_of[IMK_SHJUDGE_GOOD],
      n_of[IMK_SHJUDGE_INCOMPLETE], n_of[IMK_SHJUDGE_UNMEASURED]);
}

TEST (test_a_mirror_that_is_not_connected_has_no_matrix,
    "a mirror that is not connected has no matrix")
{
  enum { N_RUNS = TEST_SANITIZED ? 20 : 1000 };

  for (uint64_t seed = 1; seed <= N_RUNS; seed++) {
    ImkShcalibrationConfig c = config_of ((int) (seed % 3));
    Bench b;
    Result r;

    bench_init (&b, 0.1, NULL, 0);
    b.seed = seed;
    b.vibration = seed % 2 ? 0.1 : 0;
    b.drift = seed % 5 ? 0 : 0.01;
    r = calibrate (&b, &c, NULL);
    test_check (r.state != IMK_SHCALIBRATION_DONE ||
                    r.judgement.verdict == IMK_SHJUDGE_NO_RESPONSE,
        "seed %u: state %d, verdict %d", (unsigned) seed, r.state,
        r.judgement.verdict);
  }
}
