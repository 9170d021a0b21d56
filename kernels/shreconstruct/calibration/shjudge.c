/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shjudge.h"

#include <math.h>
#include <stdio.h>

#define MAX_CHANCE 0.01   /* that noise alone makes a command seen */
#define MAX_NOISE 0.3     /* of the rms of elements */
#define WANTED_NOISE 0.1  /* likewise */
#define MAX_NONLINEAR 0.1 /* of the response */
#define MAX_ONE_SIDED 0.2 /* of the response to one command */
/* Likewise, of all commands at once. Those of push-pull move spots one by one,
 * and so less far. */
#define MAX_SUPERPOSITION_OF_ALL 0.1
#define MAX_SUPERPOSITION_OF_SINGLE 0.25
/* In a column, by the superposition and the rms of all elements. Of 957
 * simulated dead columns 11 have more, all of less than 65 commands. */
#define MAX_CROSSTALK 1.5
#define MAX_DRIFT 0.1          /* likewise */
#define MAX_MISSING 0.1        /* of the elements of cells with light */
#define CERTAIN_DEVIATIONS 5.0 /* standard errors */

/* Returns: what a variable of Student with @n degrees of freedom exceeds, on
 * either side, with the probability @chance: Abramowitz and Stegun 1964,
 * 26.2.23, and Wallace 1959, Ann. Math. Stat. 30, 1124 */
static double
quantile (double chance, double n)
{
  const double u = sqrt (-2 * log (chance / 2));
  const double z = u - (2.515517 + u * (0.802853 + u * 0.010328)) /
                           (1 + u * (1.432788 + u * (0.189269 + u * 0.001308)));

  return sqrt (n * expm1 (z * z * (n - 1.5) / ((n - 1) * (n - 1))));
}

/* Returns: whether a slope is of a cell that has light */
static bool
is_lit (const ImkShjudgeData *d, uint32_t slope)
{
  return !d->lit || d->lit[slope % (d->n_slopes / 2)];
}

/* @n_lit, @n_missing: elements of a command, and those without an error, are
 * added. The largest element tells whether one is above the noise, whatever the
 * noise of one slope has to do with that of others.
 * Returns: whether one is */
static bool
is_seen (const ImkShjudgeData *d, uint32_t command, uint32_t *n_lit,
    uint32_t *n_missing)
{
  double most = 0;
  uint32_t n = 0;

  for (uint32_t i = 0; i < d->n_slopes; i++) {
    const size_t at = (size_t) i * d->n_commands + command;
    const bool is_measured = isfinite (d->noise[at]);

    *n_lit += is_lit (d, i);
    *n_missing += is_lit (d, i) && !is_measured;
    n += is_measured;
    if (is_measured && d->interaction[at] != 0)
      most = fmax (most, fabsf (d->interaction[at]) / d->noise[at]);
  }
  return n > 0 && most > quantile (MAX_CHANCE / n, fmax (d->n_free, 3));
}

/* Returns: mean square of the elements of a command, without their noise */
static double
power_of (const ImkShjudgeData *d, uint32_t command)
{
  double squares = 0;
  uint32_t n = 0;

  for (uint32_t i = 0; i < d->n_slopes; i++) {
    const size_t at = (size_t) i * d->n_commands + command;
    const double error = d->noise[at];

    if (!isfinite (error))
      continue;
    squares += (double) d->interaction[at] * d->interaction[at] - error * error;
    n++;
  }
  return n > 0 ? squares / n : 0;
}

/* Where commands move at once, slopes that are not in proportion are spread
 * over all columns, also over those of dead actuators. Beyond the limit of
 * superposition the matrix is not of use.
 * @power: mean square of all elements
 * Returns: that of a column of cross-talk alone, at most */
static double
find_crosstalk (const ImkShjudgeData *d, const ImkShjudgement *j, double power)
{
  const double part =
      MAX_CROSSTALK * fmin (j->superposition, MAX_SUPERPOSITION_OF_ALL);

  return d->is_single || isnan (j->superposition) ? 0 : part * part * power;
}

/* The spots that a command moves may be among those that were not measured: it
 * is called unseen only where nearly all were.
 * @crosstalk: of find_crosstalk()
 * Returns: commands that are above the noise */
static uint32_t
find_unseen (const ImkShjudgeData *d, double crosstalk, ImkShjudgement *j)
{
  double n_all = 0, n_all_missing = 0;
  uint32_t n_seen = 0;

  for (uint32_t k = 0; k < d->n_live; k++) {
    uint32_t n_lit = 0, n_missing = 0;
    const bool seen = is_seen (d, d->live[k], &n_lit, &n_missing);

    n_seen += seen;
    n_all += n_lit;
    n_all_missing += n_missing;
    if ((seen && power_of (d, d->live[k]) > crosstalk) ||
        n_missing > MAX_MISSING * n_lit)
      continue;
    if (j->n_unseen < IMK_SHJUDGE_MAX_NAMED)
      j->unseen[j->n_unseen] = d->live[k];
    j->n_unseen++;
    j->n_hidden += seen;
  }
  j->missing = n_all > 0 ? n_all_missing / n_all : 0;
  return n_seen;
}

/* Returns: whether an element has a finite error */
static bool
is_any_measured (const ImkShjudgeData *d)
{
  for (size_t i = 0; i < (size_t) d->n_slopes * d->n_commands; i++)
    if (isfinite (d->noise[i]))
      return true;
  return false;
}

/* Squares of elements have those of their errors in them.
 * Returns: mean square of the elements without noise, 0 where they have none */
static double
find_noise (const ImkShjudgeData *d, ImkShjudgement *j)
{
  const size_t n = (size_t) d->n_slopes * d->n_commands;
  double squares = 0, errors = 0;
  size_t n_seen = 0, n_noisy = 0;

  for (size_t i = 0; i < n; i++)
    if (isfinite (d->noise[i])) {
      squares += (double) d->interaction[i] * d->interaction[i];
      errors += (double) d->noise[i] * d->noise[i];
      n_seen++;
    }
  for (size_t i = 0; i < n; i++)
    n_noisy += isfinite (d->noise[i]) &&
               100.0 * d->noise[i] * d->noise[i] * (double) n_seen > squares;
  j->noise = squares > errors ? sqrt (errors / (squares - errors)) : INFINITY;
  j->noisy = n_seen ? (double) n_noisy / (double) n_seen : 1;
  return squares > errors ? (squares - errors) / (double) n_seen : 0;
}

/* Returns: whether all elements of a slope are known; then @sum and @variance
 * are those of @pattern */
static bool
add_elements (
    const ImkShjudgeData *d, uint32_t i, double *sum, double *variance)
{
  *sum = *variance = 0;
  for (uint32_t k = 0; k < d->n_live; k++) {
    const size_t at = (size_t) i * d->n_commands + d->live[k];
    const double error = d->poke * d->noise[at];

    *sum += d->pattern[k] * d->poke * d->interaction[at];
    *variance += error * error;
  }
  return isfinite (d->whole[i]) && isfinite (*variance);
}

/* Returns: whether it is more than noise explains */
static bool
find_superposition (const ImkShjudgeData *d, ImkShjudgement *j)
{
  double differences = 0, errors = 0, all = 0;

  for (uint32_t i = 0; i < d->n_slopes; i++) {
    double sum, variance, difference;

    if (!add_elements (d, i, &sum, &variance))
      continue;
    difference = d->whole[i] - sum;
    differences += difference * difference;
    errors += variance + d->whole_error[i] * d->whole_error[i];
    all += sum * sum;
  }
  j->superposition =
      all > errors ? sqrt (fmax (0, differences - errors) / all) : NAN;
  return differences > CERTAIN_DEVIATIONS * CERTAIN_DEVIATIONS * errors;
}

/* As if the noise of all slopes were one: then each pair tells it once.
 * Returns: likewise */
static bool
find_push_pull (const ImkShjudgeData *d, ImkShjudgement *j)
{
  const double repeats = d->n_repeats;
  const double spread = sqrt (2 / (double) d->n_even * (1 + 1 / (repeats - 1)));

  j->push_pull = NAN;
  if (d->n_even * (d->n_repeats - 1) < 8 || !(d->odd > 0))
    return false;
  j->push_pull = sqrt (fmax (0, d->even - d->even_noise) / d->odd);
  if (d->worst_odd > 0) {
    j->worst = d->worst;
    j->worst_push_pull = sqrt (d->worst_even / d->worst_odd);
  }
  return d->even > (1 + CERTAIN_DEVIATIONS * spread) * d->even_noise;
}

/* After find_push_pull(). The noise of the neighbours is in it, too.
 * Returns: whether one command stops on one side */
static bool
is_one_sided (const ImkShjudgeData *d, const ImkShjudgement *j)
{
  return j->worst_push_pull > MAX_ONE_SIDED &&
         d->worst_even >
             CERTAIN_DEVIATIONS * CERTAIN_DEVIATIONS * 1.5 * d->even_noise;
}

void
imk_shjudge (const ImkShjudgeData *d, ImkShjudgement *j)
{
  double power;
  uint32_t n_seen;
  bool is_sum, is_pair;

  *j = (ImkShjudgement){.n_saturated = d->n_saturated, .drift = d->drift};
  power = find_noise (d, j);
  is_sum = find_superposition (d, j) &&
           j->superposition > (d->is_single ? MAX_SUPERPOSITION_OF_SINGLE
                                            : MAX_SUPERPOSITION_OF_ALL);
  is_pair = find_push_pull (d, j) && j->push_pull > MAX_NONLINEAR;
  n_seen = find_unseen (d, find_crosstalk (d, j, power), j);
  if (!is_any_measured (d))
    j->verdict = IMK_SHJUDGE_UNMEASURED;
  else if (n_seen == 0)
    j->verdict = IMK_SHJUDGE_NO_RESPONSE;
  else if (j->n_saturated > 0)
    j->verdict = IMK_SHJUDGE_SATURATED;
  else if (j->missing > MAX_MISSING)
    j->verdict = IMK_SHJUDGE_INCOMPLETE;
  else if (!d->is_settled)
    j->verdict = IMK_SHJUDGE_UNSETTLED;
  else if (d->is_limited)
    j->verdict = IMK_SHJUDGE_LIMITED;
  else if (fabs (d->drift) > MAX_DRIFT &&
           fabs (d->drift) > CERTAIN_DEVIATIONS * d->drift_error)
    j->verdict = IMK_SHJUDGE_DRIFTING;
  else if (is_sum || is_pair)
    j->verdict = IMK_SHJUDGE_NONLINEAR;
  else if (is_one_sided (d, j))
    j->verdict = IMK_SHJUDGE_ONE_SIDED;
  else if (j->noise > MAX_NOISE)
    j->verdict = IMK_SHJUDGE_NOISY;
  else if (j->n_unseen > 0)
    j->verdict = IMK_SHJUDGE_UNSEEN;
}

/* "3, 17 and 5 more" */
static void
list (const ImkShjudgement *j, char *text, size_t size)
{
  size_t at = 0;

  *text = '\0';
  for (uint32_t i = 0; i < j->n_unseen && i < IMK_SHJUDGE_MAX_NAMED; i++)
    if (at < size)
      at += (size_t) snprintf (
          text + at, size - at, "%s%u", i ? ", " : "", j->unseen[i]);
  if (j->n_unseen > IMK_SHJUDGE_MAX_NAMED && at < size)
    snprintf (text + at, size - at, " and %u more",
        j->n_unseen - IMK_SHJUDGE_MAX_NAMED);
}

void
imk_shjudge_describe (const ImkShjudgement *j, char *text, size_t size)
{
  const double factor = j->noise / WANTED_NOISE;
  char names[160];

  list (j, names, sizeof (names));
  switch (j->verdict) {
  case IMK_SHJUDGE_GOOD:
    snprintf (text, size, "good");
    break;
  case IMK_SHJUDGE_NO_RESPONSE:
    snprintf (text, size,
        "No command moves a spot above the noise: check that the commands "
        "reach the mirror and its light the sensor, or set a larger "
        "calibration-poke. If its pokes move spots out of their cells, set a "
        "smaller one.");
    break;
  case IMK_SHJUDGE_UNMEASURED:
    snprintf (text, size,
        "No element was measured in enough repeats to know its error: bring "
        "more light to the sensor, set more calibration-repeats, or "
        "calibration-method=push-pull if spots flicker.");
    break;
  case IMK_SHJUDGE_SATURATED:
    snprintf (text, size,
        "The spots of %u cells are saturated: bring less light to the sensor "
        "or expose it for a shorter time, and calibrate again.",
        j->n_saturated);
    break;
  case IMK_SHJUDGE_INCOMPLETE:
    snprintf (text, size,
        "%.0f %% of the elements of cells with light were not measured, and "
        "are 0: bring more light to the sensor, set more calibration-repeats, "
        "or calibration-method=push-pull if spots flicker.",
        100 * j->missing);
    break;
  case IMK_SHJUDGE_UNSETTLED:
    snprintf (text, size,
        "The mirror still moves 100 frames after a poke: calibrate again at a "
        "lower frame rate.");
    break;
  case IMK_SHJUDGE_LIMITED:
    snprintf (text, size,
        "The mirror does not follow steps of twice calibration-poke: set "
        "slew-limit to that of the mirror, and calibration-poke to half of it "
        "at most.");
    break;
  case IMK_SHJUDGE_NONLINEAR:
    snprintf (text, size,
        "The slopes differ by %.0f %% from what is in proportion to the pokes: "
        "set a smaller calibration-poke. If a vibration moves the spots, take "
        "another calibration-method instead.",
        100 * fmax (j->push_pull, j->superposition)); /* one may be NaN */
    break;
  case IMK_SHJUDGE_ONE_SIDED:
    snprintf (text, size,
        "Push and pull of command %u (counted from 0) differ by %.0f %% of its "
        "response: check whether its actuator stops on one side, and name it "
        "in dead-actuators, or set a smaller calibration-poke.",
        j->worst, 200 * j->worst_push_pull);
    break;
  case IMK_SHJUDGE_NOISY:
    if (isfinite (factor))
      snprintf (text, size,
          "The noise of an element is %.2g times the rms of the elements: set "
          "calibration-poke %.1f times larger, or calibration-repeats %.0f "
          "times.",
          j->noise, factor, ceil (factor * factor));
    else
      snprintf (text, size,
          "The elements are not above their noise: set a larger "
          "calibration-poke, or more calibration-repeats.");
    break;
  case IMK_SHJUDGE_DRIFTING:
    snprintf (text, size,
        "The response changed by %.0f %% from the first repeat to the last: "
        "wait until light and mirror are steady, and calibrate again.",
        100 * j->drift);
    break;
  case IMK_SHJUDGE_UNSEEN:
    snprintf (text, size,
        "%u command%s no spot above the noise%s (%s, counted from 0): check "
        "whether %s%s, and name dead ones in dead-actuators.",
        j->n_unseen, j->n_unseen == 1 ? " moves" : "s move",
        j->n_hidden ? " and the cross-talk of other commands" : "", names,
        j->n_unseen == 1 ? "it moves" : "they move",
        j->n_hidden ? " with calibration-method=push-pull" : "");
    break;
  }
}
