/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tolerance: 1e-6 for numbers that are known; check-variants compares with the
 * definition. */
#include "imk/shreconstruct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/failures.h"
#include "kernel-test.h"

TEST_DEFINE_AUTO_POINTER (ImkShreconstruct, imk_shreconstruct_free)

/* Two cells, two commands: the first is the mean dx, the second the mean dy. */
enum { N_CELLS = 2, N_COMMANDS = 2 };

static const float means[N_COMMANDS][2 * N_CELLS] = {
    {0.5f, 0.5f, 0, 0}, {0, 0, 0.5f, 0.5f}};
static const uint8_t good[N_CELLS];

static ImkShreconstructConfig
mean_config (void)
{
  ImkShreconstructConfig c;

  imk_shreconstruct_config_init (&c);
  c.n_cells = N_CELLS;
  c.n_modes = c.n_commands = N_COMMANDS;
  c.matrix = means[0];
  return c;
}

/* Of the running test. */
static ImkBackend on;

static ImkShreconstruct *
make (const ImkShreconstructConfig *c)
{
  ImkShreconstruct *self = NULL;

  test_ok (imk_shreconstruct_new (on, c, &self, test_new_error ()));
  return self;
}

static void
process_on_device (ImkShreconstruct *self, const float *slopes,
    const uint8_t *flags, float *commands, ImkShreconstructReport *report)
{
  test_auto (TestImage) s = test_image_new (IMK_TYPE_F32, 2 * N_CELLS, 1, 1, 0);
  test_auto (TestImage) f = test_image_new (IMK_TYPE_U8, N_CELLS, 1, 1, 0);
  test_auto (ImkImage) there;
  test_auto (TestMapped) mapped;

  memcpy (s.image.data, slopes, 2 * N_CELLS * sizeof (*slopes));
  memcpy (f.image.data, flags, N_CELLS);
  there = test_to_device (&s);
  mapped = test_to_mapped (&f); /* either memory will do */
  test_ok (imk_shreconstruct_process (
      self, &there, &mapped.image, commands, report, NULL, test_new_error ()));
}

/* On the CPU. */
static void
process_cells (ImkShreconstruct *self, uint32_t n_cells, const float *slopes,
    const uint8_t *flags, float *commands, ImkShreconstructReport *report)
{
  ImkImage s =
      imk_image_of_rows ((void *) slopes, IMK_TYPE_F32, 2 * n_cells, 1);
  ImkImage f = imk_image_of_rows ((void *) flags, IMK_TYPE_U8, n_cells, 1);

  test_ok (imk_shreconstruct_process (
      self, &s, flags ? &f : NULL, commands, report, NULL, test_new_error ()));
}

static void
process (ImkShreconstruct *self, const float *slopes, const uint8_t *flags,
    float *commands, ImkShreconstructReport *report)
{
  if (on == IMK_BACKEND_CUDA)
    process_on_device (self, slopes, flags, commands, report);
  else
    process_cells (self, N_CELLS, slopes, flags, commands, report);
}

/* Slopes dx and dy in all cells. Returns: the first command */
static double
step (ImkShreconstruct *self, double dx, double dy, const uint8_t *flags)
{
  float slopes[2 * N_CELLS] = {(float) dx, (float) dx, (float) dy, (float) dy};
  float commands[N_COMMANDS];

  process (self, slopes, flags, commands, NULL);
  return commands[0];
}

static void
check_near (double value, double expected, const char *what)
{
  test_check (fabs (value - expected) <= 1e-6, "%s is %.9g and should be %.9g",
      what, value, expected);
}

TEST_BACKENDS (test_a_loop_closes, "an integrator closes its loop")
{
  ImkShreconstructConfig c = mean_config ();
  test_autoptr (ImkShreconstruct) self = NULL;
  double command = 0, left = 1;

  on = backend;
  c.gain = 0.25;
  self = make (&c);
  for (int t = 0; t < 20; t++) {
    command = step (self, 1 + command, 0, good); /* the mirror adds to it */
    left *= 1 - c.gain;
    check_near (1 + command, left, "what is left");
  }
}

TEST_BACKENDS (test_leak_and_terms_are_one_formula, "gain and leak are terms")
{
  ImkShreconstructConfig c = mean_config (), by_terms = mean_config ();
  const double feedback[] = {0.9, 0.9}, forward[] = {0.3, 0.3};
  ImkShreconstruct *one, *other;

  on = backend;
  c.gain = 0.3;
  c.leak = 0.1;
  by_terms.n_feedback = by_terms.n_forward = 1;
  by_terms.feedback = feedback;
  by_terms.forward = forward;
  one = make (&c);
  other = make (&by_terms);
  for (int t = 0; t < 10; t++)
    check_near (step (one, t - 3, 1, good), step (other, t - 3, 1, good),
        "the command");
  imk_shreconstruct_free (one);
  imk_shreconstruct_free (other);
}

/* A Smith predictor and others look further back. */
TEST_BACKENDS (test_terms_look_back, "the last term looks seven frames back")
{
  ImkShreconstructConfig c = mean_config ();
  double forward[N_COMMANDS][IMK_SHRECONSTRUCT_MAX_TERMS] = {{0}};
  test_autoptr (ImkShreconstruct) self = NULL;

  on = backend;
  c.n_forward = IMK_SHRECONSTRUCT_MAX_TERMS;
  c.forward = forward[0];
  forward[0][IMK_SHRECONSTRUCT_MAX_TERMS - 1] = 1;
  self = make (&c);
  for (int t = 0; t < 30; t++)
    check_near (step (self, t + 1, 0, good),
        t < IMK_SHRECONSTRUCT_MAX_TERMS - 1
            ? 0
            : -(t + 2 - IMK_SHRECONSTRUCT_MAX_TERMS),
        "the delayed command");
}

TEST_BACKENDS (test_a_limited_command_does_not_wind_up,
    "a limited command does not wind up")
{
  ImkShreconstructConfig c = mean_config ();
  const float turned[N_COMMANDS][N_COMMANDS] = {{0.6f, -0.8f}, {0.8f, 0.6f}};

  on = backend;
  c.gain = 0.5;
  c.minimum = -1;
  c.maximum = 1;
  for (int with_modes = 0; with_modes < 2; with_modes++) {
    test_autoptr (ImkShreconstruct) self = NULL;

    c.modes = with_modes ? turned[0] : NULL;
    self = make (&c);
    for (int t = 0; t < 100; t++)
      check_near (
          step (self, -9, with_modes ? 12 : 0, good), 1, "the limited command");
    if (!with_modes)
      check_near (step (self, 1, 0, good), 0.5, "the first command back");
    else
      test_check (step (self, 1, 0, good) < 1, "the limit was kept too long");
  }
}

TEST_BACKENDS (test_slew_limits_each_step, "slew limits each step")
{
  ImkShreconstructConfig c = mean_config ();
  test_autoptr (ImkShreconstruct) self = NULL;

  on = backend;
  c.slew = 0.1;
  self = make (&c);
  for (int t = 1; t <= 20; t++)
    check_near (step (self, -5, 0, good), 0.1 * t, "the command");
}

static double
first_command (const ImkShreconstruct *self)
{
  float commands[N_COMMANDS];

  imk_shreconstruct_commands (self, commands);
  return commands[0];
}

TEST_BACKENDS (test_slew_limits_the_way_back, "slew limits the way back")
{
  static const uint8_t dark[] = {1, 1};
  ImkShreconstructConfig c = mean_config ();
  test_autoptr (ImkShreconstruct) self = NULL;

  on = backend;
  c.slew = 0.25;
  c.min_valid = 0.5;
  c.dark = IMK_SHRECONSTRUCT_DARK_REFERENCE;
  self = make (&c);
  for (int t = 0; t < 4; t++)
    step (self, -5, 0, good);
  check_near (step (self, -5, 0, dark), 0.75, "the command without light");
  check_near (step (self, -5, 0, good), 1, "the command with light");
  for (int t = 3; t >= 0; t--) {
    test_check (!imk_shreconstruct_rest (self), "it is there too early");
    check_near (first_command (self), 0.25 * t, "the command on its way");
  }
  test_check (imk_shreconstruct_rest (self), "it is not there");
  for (int t = 0; t < 2; t++)
    step (self, -5, 0, good);
  check_near (step (self, -1e6, 0, good), 0.75, "a large step");
  step (self, -1e6, 0, good);
  check_near (step (self, -1e6, 0, good), 1.25, "what comes before it");
}

TEST_BACKENDS (test_slew_counts_from_what_was_sent,
    "slew limits the step from commands that others have sent")
{
  const float poke[N_COMMANDS] = {0.75f, -0.75f};
  ImkShreconstructConfig c = mean_config ();

  on = backend;
  c.slew = 0.25;
  for (int rests = 0; rests < 2; rests++) {
    test_autoptr (ImkShreconstruct) self = make (&c);

    imk_shreconstruct_set_commands (self, poke);
    check_near (first_command (self), 0.75, "the poke");
    for (int t = 2; t >= 0; t--) {
      if (rests)
        imk_shreconstruct_rest (self);
      else
        step (self, 0, 0, good);
      check_near (first_command (self), 0.25 * t, "the command on its way");
    }
  }
}

/* The correction stays as it is, also without light on the way, and with
 * another matrix. */
TEST_BACKENDS (test_slew_limits_the_way_to_another_reference,
    "slew limits the way to another c0")
{
  static const uint8_t dark[] = {1, 1};
  const float turned[N_COMMANDS][N_COMMANDS] = {{0.6f, -0.8f}, {0.8f, 0.6f}};
  const float reference[] = {2, -2};

  on = backend;
  for (int with_modes = 0; with_modes < 2; with_modes++) {
    ImkShreconstructConfig c = mean_config ();
    ImkShreconstruct *self, *next;
    double first;

    c.min_valid = 0.5;
    c.slew = 0.25;
    c.modes = with_modes ? turned[0] : NULL;
    self = make (&c);
    first = step (self, 0.5, 0, good);
    c.reference = reference;
    test_ok (imk_shreconstruct_update (self, &c, test_new_error ()));
    for (int t = 1; t <= 3; t++)
      check_near (step (self, 0, 0, good), first + 0.25 * t, "the command");
    for (int t = 0; t < 9; t++)
      check_near (step (self, 0, 0, dark), first + 0.75, "a dark command");
    check_near (step (self, 0, 0, good), first + 1, "the command with light");
    next = make (&c);
    test_check (imk_shreconstruct_take_state (next, self), "sizes differ");
    for (int t = 5; t < 12; t++)
      check_near (step (next, 0, 0, good), first + fmin (0.25 * t, 2),
          "the command of another matrix");
    imk_shreconstruct_free (self);
    imk_shreconstruct_free (next);
  }
}

/* It begins at once, from where the mirror is, and stays there: a way down to
 * c0 would work against it. With modes the commands are those of a tip. */
TEST_BACKENDS (test_the_loop_begins_on_the_way_to_the_reference,
    "the loop begins on the way to c0")
{
  static const uint8_t dark[] = {1, 1};
  const float modes[] = {1, 1, 1, -1};

  on = backend;
  for (int has_modes = 0; has_modes < 2; has_modes++) {
    ImkShreconstructConfig c = mean_config ();
    test_autoptr (ImkShreconstruct) self = NULL;

    c.slew = 0.25;
    c.min_valid = 0.5;
    c.dark = IMK_SHRECONSTRUCT_DARK_REFERENCE;
    c.modes = has_modes ? modes : NULL;
    self = make (&c);
    for (int t = 0; t < 4; t++)
      step (self, -5, 0, good);
    check_near (step (self, 0, 0, dark), 0.75, "the command without light");
    for (int t = 0; t < 9; t++)
      check_near (step (self, 0, 0, good), 0.75, "the command with light");
    for (int t = 0; t < 3; t++)
      check_near (step (self, 0, 0, dark), 0.5 - 0.25 * t, "dark again");
    check_near (step (self, 0, 0, good), 0, "c0");
  }
}

TEST_BACKENDS (test_slew_limits_what_another_matrix_does,
    "slew limits what another matrix does")
{
  const float modes[] = {1, 1};
  ImkShreconstructConfig c = mean_config ();
  ImkShreconstruct *self, *next;

  on = backend;
  c.slew = 1;
  self = make (&c);
  step (self, -9, 0, good);
  step (self, -9, 0, good);
  c.n_modes = 1;
  c.modes = modes;
  next = make (&c);
  test_check (!imk_shreconstruct_take_state (next, self), "modes are others");
  check_near (first_command (next), 2, "the command before");
  check_near (step (next, 0, 0, good), 1, "the next one");
  check_near (step (next, 0, 0, good), 0, "c0");
  imk_shreconstruct_free (self);
  imk_shreconstruct_free (next);
}

TEST_BACKENDS (test_limits_hold_for_the_reference, "limits hold for c0, too")
{
  static const uint8_t dark[] = {1, 1}, dead[] = {1, 0};
  const float reference[] = {5, -5}, near[] = {3, 0};
  ImkShreconstructConfig c = mean_config ();
  test_autoptr (ImkShreconstruct) self = NULL;

  on = backend;
  c.reference = reference;
  c.dead = dead;
  c.maximum = 1;
  c.min_valid = 0.5;
  self = make (&c);
  check_near (first_command (self), 1, "the first command");
  check_near (step (self, 0, 0, good), 1, "the dead actuator");
  check_near (step (self, 0, 0, dark), 1, "the command without light");
  c.maximum = 0.5;
  test_ok (imk_shreconstruct_update (self, &c, test_new_error ()));
  check_near (first_command (self), 0.5, "the command that was held");
  c.reference = near;
  c.maximum = 9;
  c.slew = 1;
  test_ok (imk_shreconstruct_update (self, &c, test_new_error ()));
  check_near (step (self, 0, 0, good), 1.5, "the dead actuator on its way");
  check_near (step (self, 0, 0, good), 2.5, "the next step");
  check_near (step (self, 0, 0, good), 3, "the new c0");
}

TEST_BACKENDS (test_invalid_cells, "invalid cells are zero or held")
{
  const uint8_t second_dark[] = {0, 1};
  const float slopes[] = {4, 100, 0, 0}, later[] = {NAN, 100, 0, 0};
  ImkShreconstructConfig c = mean_config ();
  ImkShreconstructReport report;
  test_autoptr (ImkShreconstruct) self = NULL;
  float commands[N_COMMANDS];

  on = backend;
  c.gain = c.leak = 1;
  c.invalid = IMK_SHRECONSTRUCT_INVALID_ZERO;
  self = make (&c);
  process (self, slopes, second_dark, commands, &report);
  check_near (commands[0], -2, "the command without the cell");
  test_check (report.n_valid == 1, "%u cells count as valid", report.n_valid);
  imk_shreconstruct_free (self);

  c.invalid = IMK_SHRECONSTRUCT_INVALID_HOLD;
  self = make (&c);
  step (self, 6, 0, good);
  process (self, slopes, second_dark, commands, NULL);
  check_near (commands[0], -5, "the command with the slope before");
  process (self, later, second_dark, commands, &report);
  check_near (commands[0], -5, "the command with both slopes before");
  test_check (report.n_valid == 0, "%u cells count as valid", report.n_valid);
}

TEST_BACKENDS (test_dark, "without light the mirror holds or is safe")
{
  static const uint8_t dark[] = {1, 1};
  const float reference[] = {7, 8};
  ImkShreconstructConfig c = mean_config ();
  ImkShreconstructReport report;
  test_autoptr (ImkShreconstruct) self = NULL;
  float slopes[2 * N_CELLS] = {0}, commands[N_COMMANDS];

  on = backend;
  c.min_valid = 0.5;
  c.reference = reference;
  self = make (&c);
  step (self, -2, 0, good);
  for (int t = 0; t < 100; t++)
    check_near (step (self, -2, 0, dark), 8, "the held command");
  check_near (step (self, -2, 0, good), 9, "the command with light");
  process (self, slopes, dark, commands, &report);
  test_check (report.is_dark, "no light is not told");
  imk_shreconstruct_free (self);

  c.dark = IMK_SHRECONSTRUCT_DARK_REFERENCE;
  self = make (&c);
  step (self, -2, 0, good);
  check_near (step (self, -2, 0, dark), 7, "the safe command");
  check_near (step (self, -2, 0, good), 8, "the command with light");
}

TEST_BACKENDS (
    test_another_matrix_keeps_the_state, "another matrix keeps the state")
{
  ImkShreconstructConfig c = mean_config ();
  ImkShreconstruct *self, *next;

  on = backend;
  self = make (&c);
  step (self, -2, 0, good);
  c.gain = 0.25;
  next = make (&c);
  test_check (imk_shreconstruct_take_state (next, self), "it has another size");
  check_near (step (next, -2, 0, good), 1.5, "the command");
  imk_shreconstruct_free (next);
  c.n_cells = 1;
  next = make (&c);
  test_check (!imk_shreconstruct_take_state (next, self), "sizes are equal");
  imk_shreconstruct_free (next);
  imk_shreconstruct_free (self);
}

/* Returns: a loop of @c after frames that differ from each other, one of them
 * with an invalid cell, one dark */
static ImkShreconstruct *
run_up (const ImkShreconstructConfig *c)
{
  static const uint8_t flags[][N_CELLS] = {{0}, {0}, {0, 1}, {1, 1}, {0}};
  ImkShreconstruct *self = make (c);

  for (int t = 0; t < 5; t++)
    step (self, t + 1, 2 - t, flags[t]);
  return self;
}

/* What it needs of the past is the host's, too: terms, slopes that are held,
 * commands. */
TEST (test_a_loop_leaves_its_device, "a loop continues without its device")
{
  const double terms[N_COMMANDS][3] = {{0.5, 0.2, 0.1}, {0.4, 0.3, 0.2}};
  static const uint8_t flags[] = {1, 0};
  ImkShreconstructConfig c = mean_config ();
  ImkShreconstruct *alone, *there, *back;

  test_need_cuda ();
  c.n_feedback = c.n_forward = 3;
  c.feedback = c.forward = terms[0];
  c.invalid = IMK_SHRECONSTRUCT_INVALID_HOLD;
  c.min_valid = 0.1;
  c.slew = 1.5;
  on = IMK_BACKEND_CUDA;
  there = run_up (&c);
  imk_shreconstruct_leave_device (there);
  on = IMK_BACKEND_CPU;
  alone = run_up (&c);
  back = make (&c);
  test_check (imk_shreconstruct_take_state (back, there), "sizes differ");
  for (int t = 0; t < 10; t++)
    check_near (step (back, t, 3, flags), step (alone, t, 3, flags),
        "a command of the loop that was on a device");
  on = IMK_BACKEND_CUDA;
  imk_shreconstruct_free (there);
  there = make (&c);
  test_check (imk_shreconstruct_take_state (there, back), "sizes differ");
  for (int t = 0; t < 10; t++) {
    double command;

    on = IMK_BACKEND_CPU;
    command = step (alone, t, 3, flags);
    on = IMK_BACKEND_CUDA;
    check_near (step (there, t, 3, flags), command,
        "a command of the loop that came to a device");
  }
  imk_shreconstruct_free (there);
  imk_shreconstruct_free (alone);
  imk_shreconstruct_free (back);
}

/* All that an object with modes and limits asks of a device, of which call
 * @nth fails. Returns: calls made */
static unsigned long
live_through_failure (unsigned long nth, bool *failed)
{
  const float modes[] = {0.6f, -0.8f, 0.8f, 0.6f};
  ImkShreconstructConfig c = mean_config ();
  ImkShreconstruct *self = NULL;
  const float slopes[2 * N_CELLS] = {1, 2, 3, 4};
  test_auto (TestImage) s = test_image_new (IMK_TYPE_F32, 2 * N_CELLS, 1, 1, 0);
  test_auto (ImkImage) there;
  float commands[N_COMMANDS];
  ImkError error;
  ImkStatus status;
  unsigned long n_calls;

  memcpy (s.image.data, slopes, sizeof (slopes));
  there = test_to_device (&s);
  c.modes = modes;
  imk_inject_failure (nth, false);
  status = imk_shreconstruct_new (IMK_BACKEND_CUDA, &c, &self, &error);
  test_check ((status == IMK_OK) == (self != NULL), "call %lu: half made", nth);
  if (status == IMK_OK)
    status = imk_shreconstruct_process (
        self, &there, NULL, commands, NULL, NULL, &error);
  c.maximum = 0.1;
  if (status == IMK_OK)
    status = imk_shreconstruct_update (self, &c, &error);
  if (status == IMK_OK)
    status = imk_shreconstruct_process (
        self, &there, NULL, commands, NULL, NULL, &error);
  n_calls = imk_inject_failure (0, false);
  *failed = status != IMK_OK;
  test_check (
      status == IMK_OK || error.message[0], "call %lu says nothing", nth);
  if (self) {
    imk_shreconstruct_reset (self);
    if (status != IMK_OK) /* one failure is no lost device */
      test_ok (imk_shreconstruct_process (
          self, &there, NULL, commands, NULL, NULL, test_new_error ()));
  }
  imk_shreconstruct_free (self);
  return n_calls;
}

TEST (test_each_call_may_fail, "each call to the device may fail")
{
  unsigned long n_calls, nth = 0;
  bool failed;

  test_need_cuda ();
  do {
    n_calls = live_through_failure (++nth, &failed);
    test_check (failed == (n_calls >= nth), "call %lu of %lu: failed is %d",
        nth, n_calls, failed);
    test_check (nth < 300, "after %lu calls no end of failing", nth);
  } while (n_calls >= nth);
  test_check (nth > 5, "only %lu calls could fail", nth - 1);
}

/* Returns: the rms of the commands of 16 bits less those of float32, by the
 * rms of those; a row for each command, of numbers of a normal distribution and
 * of rows that differ by @range */
static double
error_of_storage (ImkShreconstructStorage storage, double range)
{
  enum { CELLS = 600, COMMANDS = 97 };
  const size_t n = (size_t) COMMANDS * 2 * CELLS;
  test_autofree float *matrix = malloc (n * sizeof (*matrix));
  test_autofree float *slopes = malloc (2 * CELLS * sizeof (*slopes));
  float exact[COMMANDS], stored[COMMANDS];
  double errors = 0, squares = 0;
  uint64_t seed = 7;
  ImkShreconstructConfig c;

  for (size_t i = 0; i < n; i++) {
    double sum = 0;

    for (int k = 0; k < 12; k++)
      sum += (double) (test_random (&seed) >> 11) / 0x1p53 - 0.5;
    matrix[i] = (float) (sum * pow (range, i / (2 * CELLS) % 2));
  }
  for (int i = 0; i < 2 * CELLS; i++)
    slopes[i] = (float) ((double) (test_random (&seed) >> 11) / 0x1p53 - 0.5);
  imk_shreconstruct_config_init (&c);
  c.n_cells = CELLS;
  c.n_modes = c.n_commands = COMMANDS;
  c.matrix = matrix;
  for (int i = 0; i < 2; i++) {
    test_autoptr (ImkShreconstruct) self = NULL;

    c.storage = i ? storage : IMK_SHRECONSTRUCT_STORAGE_F32;
    self = make (&c);
    process_cells (self, CELLS, slopes, NULL, i ? stored : exact, NULL);
  }
  for (int k = 0; k < COMMANDS; k++) {
    double scale = pow (range, -(k % 2)); /* each row counts alike */

    errors += pow (scale * ((double) stored[k] - exact[k]), 2);
    squares += pow (scale * exact[k], 2);
  }
  return sqrt (errors / squares);
}

/* A relative error uniform over the last bit of a number between two powers of
 * 2 has an rms of 0.42 of the largest one, 2^-11 or 2^-8. Errors of the
 * products are the same part, as they add up like the products themselves. */
TEST (test_sixteen_bits, "16 bits cost the error that is stated")
{
  const double f16 = 0.42 / 2048, bf16 = 0.42 / 256;

  on = IMK_BACKEND_CPU;
  for (int i = 0; i < 2; i++) {
    double range = i ? 1e-20 : 1;
    double a = error_of_storage (IMK_SHRECONSTRUCT_STORAGE_F16, range);
    double b = error_of_storage (IMK_SHRECONSTRUCT_STORAGE_BF16, range);

    printf (
        "# 16 bits: f16 %.3g, bf16 %.3g of the rms of the commands\n", a, b);
    test_check (a > 0.7 * f16 && a < 1.3 * f16, "f16: %.3g, not %.3g", a, f16);
    test_check (
        b > 0.7 * bf16 && b < 1.3 * bf16, "bf16: %.3g, not %.3g", b, bf16);
  }
}

/* Returns: the sum of the bits of the commands of one frame */
static uint64_t
hash_of (const float *matrix, uint32_t n_cells, uint32_t n_commands,
    const float *slopes, uint32_t n_threads)
{
  test_autofree float *commands = malloc (n_commands * sizeof (*commands));
  ImkShreconstructConfig c;
  test_autoptr (ImkShreconstruct) self = NULL;
  uint64_t hash = 0;

  imk_shreconstruct_config_init (&c);
  c.n_cells = n_cells;
  c.n_modes = c.n_commands = n_commands;
  c.matrix = matrix;
  c.n_threads = n_threads;
  self = make (&c);
  process_cells (self, n_cells, slopes, NULL, commands, NULL);
  for (uint32_t i = 0; i < n_commands; i++) {
    union {
      float value;
      uint32_t bits;
    } word = {.value = commands[i]};

    hash = hash * 31 + word.bits;
  }
  return hash;
}

TEST (test_threads_change_no_bit, "threads change no bit")
{
  enum { CELLS = 1000, COMMANDS = 777 };
  size_t n = (size_t) COMMANDS * 2 * CELLS;
  test_autofree float *matrix = malloc (n * sizeof (*matrix));
  test_autofree float *slopes = malloc (2 * CELLS * sizeof (*slopes));

  on = IMK_BACKEND_CPU;
  for (size_t i = 0; i < n; i++)
    matrix[i] = (float) sin (0.7 * (double) i);
  for (int i = 0; i < 2 * CELLS; i++)
    slopes[i] = (float) cos (0.3 * i);
  test_check (hash_of (matrix, CELLS, COMMANDS, slopes, 1) ==
                  hash_of (matrix, CELLS, COMMANDS, slopes, 4),
      "commands differ between 1 and 4 threads");
}

static void
check_refused (const ImkShreconstructConfig *c, const char *words)
{
  ImkShreconstruct *self = NULL;

  test_error (
      imk_shreconstruct_new (IMK_BACKEND_CPU, c, &self, test_new_error ()),
      IMK_ERROR_CONFIG, words);
  test_check (self == NULL, "an object was made");
}

/* Five cells see one command: slopes 1, 2, 3, 4, 5 along x. Least squares of
 * those that are valid is a sum of products over a sum of squares.
 * @gain: that is part of the control matrix */
static void
check_five_cells (double gain)
{
  enum { CELLS = 5 };
  float d[2 * CELLS] = {1, 2, 3, 4, 5}, r[2 * CELLS], slopes[2 * CELLS];
  const uint8_t flags[][CELLS] = {{0}, {0, 1, 0, 0, 0}, {0, 1, 1, 0, 0},
      {1, 0, 0, 0, 0}, {1, 0, 0, 0, 0}, {1, 0, 0, 0, 0}, {0}};
  enum { FRAMES = sizeof (flags) / sizeof (*flags) };
  /* one cell may change in a frame: zero until its turn, out until it is back
   */
  const int out[FRAMES][2] = {{0}, {2}, {2, 3}, {2}, {0}, {1}, {0}};
  const int zero[FRAMES] = {0, 0, 0, 1, 1, 0, 0};
  ImkShreconstructConfig c;
  ImkShreconstruct *self;

  on = IMK_BACKEND_CPU;
  for (int i = 0; i < 2 * CELLS; i++) {
    r[i] = (float) (gain * d[i] / 55);
    slopes[i] = i < CELLS ? (float) (i * i + 1) : 0;
  }
  imk_shreconstruct_config_init (&c);
  c.n_cells = CELLS;
  c.n_modes = c.n_commands = 1;
  c.matrix = r;
  c.interaction = d;
  c.invalid = IMK_SHRECONSTRUCT_INVALID_EXCLUDE;
  c.exclude_cells = 1;
  c.gain = 1;
  c.leak = 1;
  self = make (&c);
  for (int t = 0; t < FRAMES; t++) {
    double product = 0, squares = 0;
    ImkShreconstructReport report;
    float command;

    for (int i = 0; i < CELLS; i++)
      if (out[t][0] != i + 1 && out[t][1] != i + 1) {
        product += i + 1 == zero[t] ? 0 : d[i] * slopes[i];
        squares += d[i] * d[i];
      }
    process_cells (self, CELLS, slopes, flags[t], &command, &report);
    check_near (
        command, -gain * product / squares, "a command of the cells left");
    test_check ((int) report.n_out == (out[t][0] > 0) + (out[t][1] > 0),
        "frame %d: %u cells are out", t, report.n_out);
  }
  imk_shreconstruct_free (self);
}

TEST (test_cells_leave_the_fit, "invalid cells leave the fit one by one")
{
  check_five_cells (1);
}

TEST (test_a_gain_stays_out_of_the_fit, "a gain stays out of the fit")
{
  check_five_cells (1.25);
  check_five_cells (3);
  check_five_cells (0.4);
  check_five_cells (0.001);
}

/* Two cells see each of three commands, with slopes of 1 along x: D^T D is 2 I.
 */
enum { PAIRED_CELLS = 6, PAIRED_MODES = 3 };

typedef struct Paired {
  float d[2 * PAIRED_CELLS][PAIRED_MODES], r[PAIRED_MODES][2 * PAIRED_CELLS];
  ImkShreconstructConfig config;
} Paired;

/* @p: R is P D^T with a diagonal P */
static void
fill_paired (Paired *a, const double *p)
{
  memset (a, 0, sizeof (*a));
  for (int i = 0; i < PAIRED_CELLS; i++) {
    a->d[i][i / 2] = 1;
    a->r[i / 2][i] = (float) p[i / 2];
  }
  imk_shreconstruct_config_init (&a->config);
  a->config.n_cells = PAIRED_CELLS;
  a->config.n_modes = a->config.n_commands = PAIRED_MODES;
  a->config.matrix = a->r[0];
  a->config.interaction = a->d[0];
  a->config.invalid = IMK_SHRECONSTRUCT_INVALID_EXCLUDE;
  a->config.gain = 1;
  a->config.leak = 1;
  on = IMK_BACKEND_CPU;
}

TEST (test_a_matrix_that_is_not_explained_is_told,
    "a control matrix that the interaction matrix does not explain is told")
{
  const double large[] = {0.45, 0.3, 0.1}, small[] = {0.3, 0.2, 0.1};
  const char *doubt;
  Paired a;
  ImkShreconstruct *self;

  fill_paired (&a, large); /* R D has the eigenvalues 0.9, 0.6, 0.2 */
  self = make (&a.config);
  doubt = imk_shreconstruct_doubt (self);
  test_check (!doubt, "there is a doubt: %s", doubt);
  imk_shreconstruct_free (self);
  fill_paired (&a, small);
  self = make (&a.config);
  doubt = imk_shreconstruct_doubt (self);
  test_check (doubt && strstr (doubt, "at most 0.6,"), "the doubt is: %s",
      doubt ? doubt : "none");
  imk_shreconstruct_free (self);
}

/* With M, R is of modes, and D of commands or of modes. */
TEST (test_what_the_loop_makes_of_its_modes,
    "R D tells sign and size of the loop")
{
  static const struct {
    double p[PAIRED_MODES], mean, largest, lowest;
  } cases[] = {
      {{0.5, 0.5, 0.5}, 1, 1, 1},
      {{0.5, 0.5, 0}, 2. / 3, 1, 0},
      {{-0.5, -0.5, -0.5}, -1, 1, -1},
      {{0.5, -0.5, 0.25}, 0.5 / 3, 1, -1},
      {{1.5, 0.5, 0.5}, 5. / 3, 3, 1},
      {{0, 0, 0}, 0, 0, 0},
  };
  const float turn[] = {0.8f, -0.6f, 0, 0.6f, 0.8f, 0, 0, 0, 1};
  float of_commands[2 * PAIRED_CELLS][PAIRED_MODES];

  for (size_t i = 0; i < sizeof (cases) / sizeof (*cases); i++)
    for (int with_modes = 0; with_modes < 3; with_modes++) {
      ImkShreconstructFit fit = {0};
      ImkError error;
      Paired a;

      fill_paired (&a, cases[i].p);
      a.config.invalid = IMK_SHRECONSTRUCT_INVALID_ZERO;
      if (with_modes > 0)
        a.config.modes = turn;
      for (int row = 0; row < 2 * PAIRED_CELLS; row++)
        for (int m = 0; m < PAIRED_MODES; m++) {
          of_commands[row][m] = 0;
          for (int k = 0; k < PAIRED_MODES; k++)
            of_commands[row][m] += a.d[row][k] * turn[PAIRED_MODES * m + k];
        }
      if (with_modes == 1)
        a.config.interaction = of_commands[0];
      a.config.interaction_is_modal = with_modes == 2;
      test_check (
          imk_shreconstruct_find_fit (&a.config, &fit, &error) == IMK_OK,
          "it is not found: %s", error.message);
      test_check (fabs (fit.largest - cases[i].largest) < 1e-4 &&
                      fabs (fit.lowest - cases[i].lowest) < 1e-4 &&
                      fabs (fit.mean - cases[i].mean) < 1e-4,
          "case %zu, modes %d: mean %g, largest %g, lowest %g", i, with_modes,
          fit.mean, fit.largest, fit.lowest);
      test_check (fit.runs_away == (cases[i].lowest < 0), "case %zu", i);
    }
}

/* k of R = k P D^T by what D and R tell. Cell 0 is out, which sees half of mode
 * 0. */
TEST (test_a_gain_is_found_where_it_can_be,
    "a gain is found where D and R tell it")
{
  static const struct {
    double strengths[PAIRED_MODES], eigenvalues[PAIRED_MODES], gain;
    const char *kind;
  } cases[] = {
      {{1, 1, 1}, {0.9, 0.6, 0.2}, 1, "a prior"},
      {{1, 1, 1}, {0.5, 0.501, 0.5}, 0.5, "least squares, measured again"},
      {{1, 1.000001, 1}, {0.5, 0.5, 0.5}, 0.5, "least squares"},
      {{1, 2, 3}, {0.2, 0.32, 0.36}, 0.4, "Tikhonov"},
      {{1, 2, 3}, {0.45, 0.66, 0.81}, 1, "nearly Tikhonov"},
      {{1, 2, 3}, {0.1, 0.4, 0.9}, 1, "a transposed D"},
      {{1, 2, 0}, {0.9, 0.3, 0}, 1, "a prior of two modes"},
  };
  const uint8_t flags[PAIRED_CELLS] = {1};

  for (size_t k = 0; k < sizeof (cases) / sizeof (*cases); k++) {
    const double half = cases[k].eigenvalues[0] / 2;
    const double expected = half / (1 - half / cases[k].gain);
    float slopes[2 * PAIRED_CELLS] = {0}, commands[PAIRED_MODES];
    double p[PAIRED_MODES];
    Paired a;
    test_autoptr (ImkShreconstruct) self = NULL;

    for (int m = 0; m < PAIRED_MODES; m++)
      p[m] = cases[k].eigenvalues[m] / 2;
    fill_paired (&a, p);
    for (int i = 0; i < PAIRED_CELLS; i++) {
      const double strength = cases[k].strengths[i / 2];

      a.d[i][i / 2] = (float) strength;
      a.r[i / 2][i] = strength > 0 ? (float) (p[i / 2] / strength) : 0;
      slopes[i] = a.d[i][i / 2];
    }
    self = make (&a.config);
    process_cells (self, PAIRED_CELLS, slopes, flags, commands, NULL);
    test_check (fabs (commands[0] + expected) < 2e-3 * expected,
        "%s: mode 0 is %g, not %g", cases[k].kind, commands[0], -expected);
  }
}

/* 1.5, the largest eigenvalue of R D, is taken for a gain: cell 0 leaves 1 / 2
 * of mode 0, and of mode 1 cell 2 leaves 1 - 0.4. */
TEST (test_the_largest_eigenvalue_is_a_gain, "the largest eigenvalue is a gain")
{
  const double p[] = {0.75, 0.6, 0.3};
  const uint8_t flags[PAIRED_CELLS] = {1, 0, 1};
  float slopes[2 * PAIRED_CELLS], commands[PAIRED_MODES];
  Paired a;
  test_autoptr (ImkShreconstruct) self = NULL;

  fill_paired (&a, p);
  for (int i = 0; i < 2 * PAIRED_CELLS; i++)
    slopes[i] = i < PAIRED_CELLS;
  self = make (&a.config);
  process_cells (self, PAIRED_CELLS, slopes, flags, commands, NULL);
  /* it is found by iteration */
  test_check (fabs (commands[0] + 1.5) < 1e-4, "mode 0 is %g", commands[0]);
  test_check (fabs (commands[1] + 1) < 1e-4, "mode 1 is %g", commands[1]);
  check_near (commands[2], -0.6, "mode 2");
}

/* Its asymmetry is relative to the trace of D R, which is 3. */
TEST (test_asymmetry_of_rounding_is_taken, "an asymmetry of rounding is taken")
{
  const double p[] = {0.5, 0.5, 0.5};
  Paired a;
  test_autoptr (ImkShreconstruct) self = NULL;

  fill_paired (&a, p);
  a.r[0][2] = 3e-4F;
  self = make (&a.config);
  a.r[0][2] = 3e-2F;
  check_refused (&a.config, "no least-squares inverse");
}

/* D of three modes, with as many commands, is not D of the commands. */
TEST (test_modes_have_an_interaction_matrix_of_their_own,
    "modes have an interaction matrix of their own")
{
  const double p[] = {0.5, 0.5, 0.5};
  const float turned[PAIRED_MODES][PAIRED_MODES] = {
      {0.6F, -0.8F, 0}, {0.8F, 0.6F, 0}, {0, 0, 2}};
  const float more[4][PAIRED_MODES] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1}};
  const uint8_t flags[PAIRED_CELLS] = {1};
  const float slopes[2 * PAIRED_CELLS] = {9, 1, 2, 4};
  const struct {
    const float *modes;
    uint32_t n_commands;
    bool is_modal;
  } cases[] = {{turned[0], 3, false}, {turned[0], 3, true}, {more[0], 4, true}};

  for (int i = 0; i < 3; i++) {
    const float *m = cases[i].modes;
    float commands[4];
    Paired a;
    test_autoptr (ImkShreconstruct) self = NULL;

    fill_paired (&a, p);
    a.config.modes = m;
    a.config.n_commands = cases[i].n_commands;
    a.config.interaction_is_modal = cases[i].is_modal;
    self = make (&a.config);
    process_cells (self, PAIRED_CELLS, slopes, flags, commands, NULL);
    check_near (commands[0], -m[0] - 3 * m[1], "a command of cells left");
    check_near (commands[1], -m[3] - 3 * m[4], "a command of cells left");
  }
}

static uint32_t
count_out (ImkShreconstruct *self, const uint8_t *flags)
{
  const float slopes[2 * PAIRED_CELLS] = {0};
  float commands[PAIRED_MODES];
  ImkShreconstructReport report;

  process_cells (self, PAIRED_CELLS, slopes, flags, commands, &report);
  return report.n_out;
}

static void
check_out (ImkShreconstruct *self, const uint8_t *flags, uint32_t expected)
{
  const uint32_t n_out = count_out (self, flags);

  test_check (n_out == expected, "%u cells are out, not %u", n_out, expected);
}

TEST (test_cells_without_numbers_take_no_turn,
    "cells without numbers take no turn")
{
  const double p[] = {0, 0.5, 0.5};
  const uint8_t flags[PAIRED_CELLS] = {1, 1, 1};
  Paired a;
  test_autoptr (ImkShreconstruct) self = NULL;

  fill_paired (&a, p); /* cells 0 and 1 of mode 0 have no numbers in R */
  a.config.exclude_cells = 1;
  self = make (&a.config);
  check_out (self, flags, 1);
  check_out (self, flags, 1);
}

/* Cells 0 and 1 flicker, so that one leaves and one returns in each frame. */
TEST (test_each_invalid_cell_has_its_turn, "each invalid cell has its turn")
{
  const double p[] = {0.5, 0.5, 0.5};
  const uint8_t flags[][PAIRED_CELLS] = {{1}, {0, 1, 0, 0, 1}, {1, 0, 0, 0, 1}};
  Paired a;
  test_autoptr (ImkShreconstruct) self = NULL;

  fill_paired (&a, p);
  a.config.exclude_cells = 2;
  self = make (&a.config);
  check_out (self, flags[0], 1);
  for (int t = 0; t < 20; t++)
    count_out (self, flags[1 + t % 2]);
  check_out (self, flags[1], 2);
}

TEST (test_other_bounds_count_at_once, "another exclude-cells counts at once")
{
  const double p[] = {0.5, 0.5, 0.5};
  const uint8_t flags[PAIRED_CELLS] = {1, 0, 1, 0, 1};
  Paired a;
  test_autoptr (ImkShreconstruct) self = NULL;

  fill_paired (&a, p);
  a.config.exclude_cells = 1;
  self = make (&a.config);
  check_out (self, flags, 1);
  a.config.exclude_cells = 2;
  test_ok (imk_shreconstruct_update (self, &a.config, test_new_error ()));
  check_out (self, flags, 3);
}

TEST (test_half_of_the_cells_can_be_out, "half of the cells can be out")
{
  const double p[] = {0.5, 0.5, 0.5};
  const uint8_t flags[PAIRED_CELLS] = {1, 1, 1, 1, 1};
  Paired a;
  test_autoptr (ImkShreconstruct) self = NULL;

  fill_paired (&a, p);
  self = make (&a.config);
  check_out (self, flags, PAIRED_CELLS / 2);
}

/* So that the first frame of another matrix takes no longer than others. */
TEST (test_another_matrix_begins_with_all_cells,
    "another matrix begins with all cells")
{
  const double p[] = {0.5, 0.5, 0.5};
  const uint8_t flags[PAIRED_CELLS] = {1, 0, 1, 0, 1};
  Paired a;
  ImkShreconstruct *before, *self;

  fill_paired (&a, p);
  before = make (&a.config);
  check_out (before, flags, 3);
  a.config.exclude_cells = 2;
  self = make (&a.config);
  test_check (imk_shreconstruct_take_state (self, before), "no state is taken");
  check_out (self, flags, 2);
  check_out (self, flags, 3);
  imk_shreconstruct_free (before);
  imk_shreconstruct_free (self);
}

/* Two cells see one mode. The eigenvalue @e of I - D_S R_S is the part of the
 * square of the slopes that cell 1 has, which is left.
 * Returns: what is found of a mode of 1 */
static double
find_weak_mode (double e)
{
  const float d[4] = {(float) sqrt (1 - e), (float) sqrt (e)};
  const float slopes[4] = {0, d[1]};
  const uint8_t flags[] = {1, 0};
  ImkShreconstructConfig c = mean_config ();
  test_autoptr (ImkShreconstruct) self = NULL;
  float command;

  on = IMK_BACKEND_CPU;
  c.n_modes = c.n_commands = 1;
  c.matrix = c.interaction = d;
  c.invalid = IMK_SHRECONSTRUCT_INVALID_EXCLUDE;
  c.gain = 1;
  self = make (&c);
  process_cells (self, N_CELLS, slopes, flags, &command, NULL);
  return -command;
}

TEST (test_a_weak_mode_is_moved_less, "a mode that cells hardly see moves less")
{
  for (double e = 1e-4; e < 0.9; e *= 1.2) {
    const double lack = (1 - e) * pow (1 - 1.15 * e / (e + 0.1), 8);
    const double found = find_weak_mode (e);

    test_check (fabs (found - (1 - lack)) < 3e-6, "%g of a mode, not %g", found,
        1 - lack);
    test_check (found / sqrt (e) < 6, "noise grows by %g", found / sqrt (e));
    test_check (e < 0.26 || fabs (found - 1) < 1e-6,
        "%g of a mode whose noise grows by %g", found, 1 / sqrt (e));
  }
}

TEST (test_what_cannot_leave_a_fit_is_refused,
    "another control matrix is refused")
{
  const float d[8] = {1, 0, 0, 0, 0, 1, 0, 0};
  float r[8] = {1, 0, 0, 0, 0, 0, 1, 0};
  ImkShreconstructConfig c = mean_config ();

  c.matrix = r;
  c.interaction = d;
  c.invalid = IMK_SHRECONSTRUCT_INVALID_EXCLUDE;
  c.storage = IMK_SHRECONSTRUCT_STORAGE_F16;
  check_refused (&c, "matrix-storage=f32");
  c.storage = IMK_SHRECONSTRUCT_STORAGE_F32;
  c.interaction = NULL;
  check_refused (&c, "interaction-location");
  c.interaction = d;
  r[6] = -1;
  check_refused (&c, "has the eigenvalue -1,");
  r[0] = -1;
  check_refused (&c, "has the eigenvalue -1,");
  r[1] = 1;
  check_refused (&c, "no least-squares inverse");
}

enum { FLICKER_CELLS = 60, FLICKER_COMMANDS = 52 };

/* x of the least squares |D x - s|^2 over rows that are not @dark (nullable).
 */
static void
solve_valid (const float *d, const float *s, const uint8_t *dark, double *x)
{
  enum { N = FLICKER_COMMANDS };
  double a[N][N + 1] = {{0}};

  for (uint32_t i = 0; i < 2 * FLICKER_CELLS; i++) {
    const float *row = d + i * N;

    if (dark && dark[i % FLICKER_CELLS])
      continue;
    for (int r = 0; r < N; r++) {
      for (int k = 0; k < N; k++)
        a[r][k] += (double) row[r] * row[k];
      a[r][N] += (double) row[r] * s[i];
    }
  }
  for (int k = 0; k < N; k++) /* positive: no pivots are needed */
    for (int r = 0; r < N; r++) {
      const double factor = a[r][k] / a[k][k];

      for (int i = k; i <= N && r != k; i++)
        a[r][i] -= factor * a[k][i];
    }
  for (int k = 0; k < N; k++)
    x[k] = a[k][N] / a[k][k];
}

/* Relative to the rms. */
static double
difference (const float *commands, const double *x)
{
  double wrong = 0, size = 0;

  for (int k = 0; k < FLICKER_COMMANDS; k++) {
    wrong += (commands[k] + x[k]) * (commands[k] + x[k]);
    size += x[k] * x[k];
  }
  return sqrt (wrong / size);
}

/* Of commands that are 30 or more: slopes of up to 1 make commands of up to 1
 * with all cells. */
static uint32_t
count_large (const float *commands)
{
  uint32_t n = 0;

  for (int k = 0; k < FLICKER_COMMANDS; k++)
    if (!(commands[k] > -30 && commands[k] < 30))
      n++;
  return n;
}

static double
random_sign (uint64_t *seed)
{
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double) (*seed >> 40) / 0x1p23 - 1;
}

/* One of twenty cells is lit or dark anew, half of all dark at most. */
static void
flicker (uint8_t *flags, uint64_t *seed)
{
  uint32_t n_dark = 0;

  for (uint32_t i = 0; i < FLICKER_CELLS; i++) {
    if (random_sign (seed) > 0.9)
      flags[i] = random_sign (seed) > 0.1;
    if (flags[i] && n_dark == FLICKER_CELLS / 2)
      flags[i] = 0;
    if (flags[i])
      n_dark++;
  }
}

TEST (test_flicker_adds_no_errors, "cells that flicker leave no errors")
{
  enum { N = FLICKER_COMMANDS, ROWS = 2 * FLICKER_CELLS, FRAMES = 2000 };
  static float d[ROWS * N], r[N * ROWS], slopes[ROWS], unit[ROWS];
  uint8_t flags[FLICKER_CELLS] = {0};
  double x[N];
  float commands[N];
  uint64_t seed = 1;
  uint32_t n_large = 0;
  ImkShreconstructConfig c;
  ImkShreconstructReport report;
  test_autoptr (ImkShreconstruct) self = NULL;

  on = IMK_BACKEND_CPU;
  for (int i = 0; i < ROWS * N; i++)
    d[i] = (float) random_sign (&seed);
  for (int i = 0; i < ROWS; i++) {
    slopes[i] = (float) random_sign (&seed);
    memset (unit, 0, sizeof (unit));
    unit[i] = 1;
    solve_valid (d, unit, NULL, x);
    for (int k = 0; k < N; k++)
      r[k * ROWS + i] = (float) x[k];
  }
  imk_shreconstruct_config_init (&c);
  c.n_cells = FLICKER_CELLS;
  c.n_modes = c.n_commands = N;
  c.matrix = r;
  c.interaction = d;
  c.invalid = IMK_SHRECONSTRUCT_INVALID_EXCLUDE;
  c.exclude_cells = FLICKER_CELLS;
  c.gain = 1;
  c.leak = 1;
  self = make (&c);
  for (int t = 0; t < FRAMES; t++) {
    flicker (flags, &seed);
    process_cells (self, FLICKER_CELLS, slopes, flags, commands, &report);
    n_large += count_large (commands);
  }
  test_check (n_large == 0, "%u commands are large", n_large);
  for (int n_left = 1; n_left >= 0; n_left--) {
    memset (flags, 0, sizeof (flags));
    flags[7] = n_left;
    process_cells (self, FLICKER_CELLS, slopes, flags, commands, &report);
    test_check ((int) report.n_out == n_left, "%u of %d cells are out",
        report.n_out, n_left);
    solve_valid (d, slopes, flags, x);
    test_check (difference (commands, x) < 1e-5,
        "with %d dark cells commands are wrong by %g of their rms", n_left,
        difference (commands, x));
  }
}

/* Each mode is seen by two cells of dx. */
TEST (test_no_invalid_cell_keeps_a_valid_one_out,
    "no invalid cell keeps a valid one out")
{
  enum { CELLS = 8, MODES = CELLS / 2 };
  float d[2 * CELLS * MODES] = {0}, r[MODES * 2 * CELLS] = {0};
  float slopes[2 * CELLS], commands[MODES];
  const uint8_t flags[][CELLS] = {{1}, {0, 1, 1, 1}};
  ImkShreconstructConfig c;
  ImkShreconstructReport report;
  test_autoptr (ImkShreconstruct) self = NULL;

  on = IMK_BACKEND_CPU;
  for (int i = 0; i < CELLS; i++) {
    d[i * MODES + i / 2] = 1;
    r[i / 2 * 2 * CELLS + i] = 0.5F;
    slopes[i] = 1;
    slopes[CELLS + i] = 0;
  }
  imk_shreconstruct_config_init (&c);
  c.n_cells = CELLS;
  c.n_modes = c.n_commands = MODES;
  c.matrix = r;
  c.interaction = d;
  c.invalid = IMK_SHRECONSTRUCT_INVALID_EXCLUDE;
  c.exclude_cells = 1;
  c.gain = 1;
  c.leak = 1;
  self = make (&c);
  for (int t = 0; t < 5; t++)
    process_cells (self, CELLS, slopes, flags[t > 0], commands, &report);
  test_check (report.n_out == 3, "%u of 3 cells are out", report.n_out);
  for (int k = 0; k < MODES; k++) /* no cell sees mode 1 */
    check_near (commands[k], k == 1 ? 0 : -1, "a mode of the valid cells");
}

/* Only the first cell sees the commands. In float32 its products with the
 * control matrix are 1 - 2e-8 along x and 1 + 3e-8 along y. */
TEST (test_rounding_moves_nothing, "rounding moves nothing")
{
  const float d[8] = {25, 0, 0, 0, 0, 3, 0, 0};
  const float r[8] = {1 / 25.0f, 0, 0, 0, 0, 0, 1 / 3.0f, 0};
  const float slopes[4] = {1, 1, 1, 1};
  const uint8_t flags[] = {1, 0};
  ImkShreconstructConfig c = mean_config ();
  ImkShreconstructReport report;
  test_autoptr (ImkShreconstruct) self = NULL;
  float commands[2];

  on = IMK_BACKEND_CPU;
  c.matrix = r;
  c.interaction = d;
  c.invalid = IMK_SHRECONSTRUCT_INVALID_EXCLUDE;
  self = make (&c);
  process_cells (self, N_CELLS, slopes, flags, commands, &report);
  check_near (commands[0], 0, "a command that nothing is known of");
  check_near (commands[1], 0, "another command that nothing is known of");
  test_check (report.n_out == 1, "%u cells are out", report.n_out);
}

TEST_BACKENDS (test_a_cell_that_is_held_for_long_is_told,
    "a cell that is held for long is told")
{
  const uint8_t flags[] = {1, 0};
  const float without_first[N_COMMANDS][2 * N_CELLS] = {
      {0, 0.5f}, {0, 0, 0, 1}};

  on = backend;
  for (int kind = 0; kind < 3; kind++) { /* noise; no noise; not used */
    ImkShreconstructConfig c = mean_config ();
    test_autoptr (ImkShreconstruct) self = NULL;

    c.invalid = IMK_SHRECONSTRUCT_INVALID_HOLD;
    c.leak = 1;
    if (kind == 2)
      c.matrix = without_first[0];
    self = make (&c);
    step (self, 1, 2, good);
    for (int t = 0; t < 200; t++) {
      const char *doubt = imk_shreconstruct_doubt (self);

      test_check (kind == 0 && t >= 100
                      ? doubt && strstr (doubt, "Cell 0 has been invalid for")
                      : !doubt,
          "kind %d, after %d frames: %s", kind, t, doubt ? doubt : "no doubt");
      step (self, kind == 1 ? 1 : t, 2, flags);
    }
  }
}

TEST_BACKENDS (test_a_dead_actuator_stays, "a dead actuator stays")
{
  const float modes[] = {1, 1}, sum[] = {1, 1, 0, 0}, reference[] = {3, 4};
  const uint8_t dead[] = {0, 1};
  ImkShreconstructConfig c = mean_config ();
  test_autoptr (ImkShreconstruct) self = NULL;
  float slopes[4] = {-1, -1, 0, 0}, commands[2], coefficient;

  on = backend;
  c.matrix = sum;
  c.n_modes = 1;
  c.modes = modes;
  c.reference = reference;
  c.dead = dead;
  c.gain = 1;
  self = make (&c);
  process (self, slopes, good, commands, NULL);
  check_near (commands[0], 5, "the actuator that moves");
  check_near (commands[1], 4, "the dead one");
  /* the other makes all that it can of the mode */
  check_near (*imk_shreconstruct_coefficients (self), 2, "the mode");
  test_check (imk_shreconstruct_get_coefficients (self, &coefficient),
      "the numbers are not finite");
  check_near (coefficient, 2, "the mode in float32");
  c.dead = NULL; /* and from now on both, as far as they can */
  c.maximum = 7;
  test_ok (imk_shreconstruct_update (self, &c, test_new_error ()));
  memset (slopes, 0, sizeof (slopes));
  process (self, slopes, good, commands, NULL);
  check_near (commands[1], 6, "the one that is alive again");
  slopes[0] = slopes[1] = -1;
  process (self, slopes, good, commands, NULL);
  check_near (*imk_shreconstruct_coefficients (self), 3.5, "the limited mode");
}

TEST_BACKENDS (test_a_mode_of_dead_actuators_stays,
    "a mode of dead actuators alone does not wind up")
{
  const float modes[] = {1, 0, 0, 1};
  const uint8_t dead[] = {0, 1};
  ImkShreconstructConfig c = mean_config ();
  test_autoptr (ImkShreconstruct) self = NULL;
  float slopes[4] = {-1, -1, -1, -1}, commands[2];

  on = backend;
  c.modes = modes;
  c.dead = dead;
  c.gain = 1;
  self = make (&c);
  for (int t = 0; t < 5; t++)
    process (self, slopes, good, commands, NULL);
  check_near (imk_shreconstruct_coefficients (self)[1], 0, "the mode");
}

TEST_BACKENDS (test_an_actuator_that_dies_keeps_the_slew_limit,
    "an actuator that dies goes to c0 within the slew limit")
{
  const uint8_t dead[] = {1, 0};
  ImkShreconstructConfig c = mean_config ();
  test_autoptr (ImkShreconstruct) self = NULL;

  on = backend;
  c.gain = 1;
  self = make (&c);
  check_near (step (self, -4, 0, good), 4, "alive");
  c.dead = dead;
  c.slew = 1;
  test_ok (imk_shreconstruct_update (self, &c, test_new_error ()));
  for (int t = 3; t >= 0; t--)
    check_near (step (self, -4, 0, good), t, "dead");
  check_near (step (self, -4, 0, good), 0, "at c0");
}

TEST_BACKENDS (
    test_what_float32_cannot_hold_is_told, "what float32 cannot hold is told")
{
  const float large[N_COMMANDS][2 * N_CELLS] = {
      {5e31f, 5e31f, 0, 0}, {0, 0, 5e31f, 5e31f}};
  ImkShreconstructConfig c = mean_config ();
  test_autoptr (ImkShreconstruct) self = NULL;
  float coefficients[N_COMMANDS];

  on = backend;
  c.gain = 1;
  c.matrix = large[0];
  self = make (&c);
  step (self, -1e6, 0, good);
  test_check (imk_shreconstruct_get_coefficients (self, coefficients),
      "1e38 counts as infinite");
  for (int i = 0; i < 3; i++)
    step (self, -1e6, 0, good);
  test_check (!imk_shreconstruct_get_coefficients (self, coefficients),
      "4e38 counts as finite in float32");
}

TEST_BACKENDS (test_a_controller_changes_under_its_matrices,
    "a controller changes under its matrices")
{
  const float modes[] = {2, 0, 0, 1}, wrong[] = {NAN, 0};
  ImkShreconstructConfig c = mean_config ();
  test_autoptr (ImkShreconstruct) self = NULL;

  on = backend;
  c.gain = 1;
  c.modes = modes;
  self = make (&c);
  check_near (step (self, -1, 0, good), 2, "twice the mean");
  c.matrix = c.modes = NULL; /* are not read */
  c.gain = 0.5;
  c.maximum = 2.5; /* the first limit needs the inverse of the modes */
  test_ok (imk_shreconstruct_update (self, &c, test_new_error ()));
  check_near (step (self, -1, 0, good), 2.5, "at the limit");
  check_near (step (self, 1, 0, good), 1.5, "away from it at once");
  c.reference = wrong;
  test_check (imk_shreconstruct_update (self, &c, test_new_error ()) ==
                  IMK_ERROR_CONFIG,
      "NaN is taken");
  c.reference = NULL;
  c.n_cells = 3;
  test_check (imk_shreconstruct_update (self, &c, test_new_error ()) ==
                  IMK_ERROR_CONFIG,
      "another size is taken");
  check_near (step (self, 1, 0, good), 0.5, "as before");
}

TEST_BACKENDS (test_what_is_low_light_changes, "what is low light changes")
{
  const uint8_t one_bad[N_CELLS] = {1, 0};
  ImkShreconstructConfig c = mean_config ();
  test_autoptr (ImkShreconstruct) self = NULL;

  on = backend;
  c.gain = 1;
  self = make (&c);
  check_near (step (self, -1, 0, one_bad), 0.5, "half of the light");
  c.min_valid = 0.75;
  test_ok (imk_shreconstruct_update (self, &c, test_new_error ()));
  check_near (step (self, -1, 0, one_bad), 0.5, "held");
  c.dark = IMK_SHRECONSTRUCT_DARK_REFERENCE;
  test_ok (imk_shreconstruct_update (self, &c, test_new_error ()));
  check_near (step (self, -1, 0, one_bad), 0, "at c0");
}

/* Sums of them would be inf, or NaN where two of them differ. */
TEST_BACKENDS (
    test_a_slope_that_is_too_large_is_invalid, "a slope beyond 1e6 is invalid")
{
  const float wrong[] = {1e30f, -1e30f, INFINITY, -INFINITY, NAN, 1.001e6f};

  on = backend;
  for (size_t i = 0; i < sizeof (wrong) / sizeof (*wrong); i++)
    for (int has_limits = 0; has_limits < 2; has_limits++)
      for (int axis = 0; axis < 2; axis++) {
        ImkShreconstructConfig c = mean_config ();
        float slopes[2 * N_CELLS] = {-1, -3, 0, 0};
        test_autoptr (ImkShreconstruct) self = NULL;
        float commands[N_COMMANDS], coefficients[N_COMMANDS];
        ImkShreconstructReport report;

        c.gain = 1;
        if (has_limits)
          c.maximum = 100;
        slopes[axis * N_CELLS] = wrong[i];
        self = make (&c);
        process (self, slopes, good, commands, &report);
        check_near (report.n_valid, 1, "the number of valid cells");
        check_near (commands[0], 1.5, "the command of the other cell");
        check_near (commands[1], 0, "the other command");
        test_check (imk_shreconstruct_get_coefficients (self, coefficients),
            "%g overflows", (double) wrong[i]);
      }
}

/* M q of inf and -inf is NaN. */
TEST_BACKENDS (test_no_limit_hides_an_overflow, "no limit hides an overflow")
{
  const float modes[N_COMMANDS][N_COMMANDS] = {{1, -1}, {1, 1}};
  const double forward[] = {1e40, 1e40};
  const struct {
    double limit, slew;
  } limits[] = {{INFINITY, 0.25}, {7, INFINITY}, {7, 0.25}};

  for (size_t i = 0; i < sizeof (limits) / sizeof (*limits); i++) {
    ImkShreconstructConfig c = mean_config ();
    test_autoptr (ImkShreconstruct) self = NULL;
    float coefficients[N_COMMANDS];

    c.modes = modes[0];
    c.n_forward = 1;
    c.forward = forward;
    c.minimum = -limits[i].limit;
    c.maximum = limits[i].limit;
    c.slew = limits[i].slew;
    on = backend;
    self = make (&c);
    step (self, -1, -1, good);
    test_check (!imk_shreconstruct_get_coefficients (self, coefficients),
        "limits %zu hide inf - inf", i);
  }
}

TEST (test_what_is_wrong_is_said, "what is wrong is said")
{
  const float with_nan[] = {NAN, 0, 0, 0, 0, 0, 0, 0};
  const float large[] = {0, 0, 0, 0, 2e32f, -2e32f, 0, 0};
  const float same_modes[] = {1, 1, 1, 1};
  ImkShreconstructConfig c = mean_config ();

  c.matrix = with_nan;
  check_refused (&c, "Number 0 of the control matrix");
  c = mean_config ();
  c.matrix = NULL;
  check_refused (&c, "no control matrix");
  c = mean_config ();
  c.gain = NAN;
  check_refused (&c, "gain");
  c = mean_config ();
  c.leak = 2;
  check_refused (&c, "leak");
  c = mean_config ();
  c.slew = 0;
  check_refused (&c, "slew");
  c = mean_config ();
  c.minimum = 1;
  c.maximum = 0;
  check_refused (&c, "The smallest command");
  c = mean_config ();
  c.n_modes = 1;
  check_refused (&c, "1 modes and 2 commands");
  c = mean_config ();
  c.storage = (ImkShreconstructStorage) 3;
  check_refused (&c, "no storage of the number 3");
  c = mean_config ();
  c.invalid = (ImkShreconstructInvalid) 3;
  check_refused (&c, "no policy of the number 3 for invalid cells");
  c = mean_config ();
  c.dark = (ImkShreconstructDark) 2;
  check_refused (&c, "no policy of the number 2 for low light");
  c = mean_config ();
  c.matrix = large;
  check_refused (&c, "Row 1 of the control matrix");
  c = mean_config ();
  c.n_forward = IMK_SHRECONSTRUCT_MAX_TERMS + 1;
  check_refused (&c, "9 forward terms");
  c = mean_config ();
  c.modes = same_modes;
  c.maximum = 1;
  check_refused (&c, "not independent");
  imk_shreconstruct_free (NULL);
}
