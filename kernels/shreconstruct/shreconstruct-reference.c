/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shreconstruct/shreconstruct-reference.h"

#include <math.h>
#include <string.h>

#include "shreconstruct/shreconstruct-private.h"

enum { TERMS = IMK_SHRECONSTRUCT_MAX_TERMS + 1 };

/* Rows of the past move on by one. */
static void
shift (double *past, uint32_t n)
{
  memmove (past + n, past, (TERMS - 1) * n * sizeof (*past));
}

/* Slopes of invalid cells by the policy. Returns: valid cells */
static uint32_t
prepare (const ImkShreconstructConfig *c, const float *slopes,
    const uint8_t *flags, double *s)
{
  uint32_t n_valid = 0;

  for (uint32_t i = 0; i < c->n_cells; i++) {
    const uint32_t at[] = {i, c->n_cells + i};
    bool valid = imk_shreconstruct_is_valid (
        slopes[at[0]], slopes[at[1]], flags ? flags[i] : 0);

    n_valid += valid;
    for (int axis = 0; axis < 2; axis++) {
      double offset = c->offsets ? c->offsets[at[axis]] : 0;

      if (valid)
        s[at[axis]] = slopes[at[axis]] - offset;
      else if (c->invalid == IMK_SHRECONSTRUCT_INVALID_ZERO)
        s[at[axis]] = 0;
    }
  }
  return n_valid;
}

static double
control (const ImkShreconstructConfig *c, const double *q, const double *u,
    uint32_t mode)
{
  double sum = 0;

  if (c->n_forward == 0)
    return (1 - c->leak) * q[c->n_modes + mode] + c->gain * u[mode];
  for (uint32_t i = 0; i < c->n_feedback; i++)
    sum +=
        c->feedback[mode * c->n_feedback + i] * q[(i + 1) * c->n_modes + mode];
  for (uint32_t j = 0; j < c->n_forward; j++)
    sum += c->forward[mode * c->n_forward + j] * u[j * c->n_modes + mode];
  return sum;
}

/* Returns: @wanted within the limits */
static double
limit (const ImkShreconstructConfig *c, double wanted, double before)
{
  double near = fmin (fmax (wanted, before - c->slew), before + c->slew);

  return fmin (fmax (near, c->minimum), c->maximum);
}

/* The controller's q follows what was limited. */
static void
follow (const ImkShreconstructConfig *c, const double *inverse, uint32_t k,
    double change, double *q)
{
  if (!c->modes)
    q[k] += change;
  else
    for (uint32_t m = 0; m < c->n_modes; m++)
      q[m] += inverse[(size_t) m * c->n_commands + k] * change;
}

static double
command (const ImkShreconstructConfig *c, const double *q, uint32_t k)
{
  double sum = c->reference ? c->reference[k] : 0;

  if (!c->modes)
    return sum + q[k];
  for (uint32_t m = 0; m < c->n_modes; m++)
    sum += c->modes[(size_t) k * c->n_modes + m] * q[m];
  return sum;
}

void
imk_shreconstruct_reference (const ImkShreconstructConfig *c,
    ImkShreconstructPast *past, const float *slopes, const uint8_t *flags,
    double *commands)
{
  double *s = past->slopes_before, *before = past->commands_before;
  uint32_t n_valid = prepare (c, slopes, flags, s);

  if (imk_shreconstruct_is_dark (c, n_valid)) {
    if (c->dark == IMK_SHRECONSTRUCT_DARK_REFERENCE) {
      memset (past->q, 0, (size_t) TERMS * c->n_modes * sizeof (*past->q));
      memset (past->u, 0, (size_t) TERMS * c->n_modes * sizeof (*past->u));
      memset (s, 0, 2 * (size_t) c->n_cells * sizeof (*s));
      for (uint32_t k = 0; k < c->n_commands; k++)
        before[k] = c->reference ? c->reference[k] : 0;
    }
    memcpy (commands, before, c->n_commands * sizeof (*commands));
    return;
  }
  shift (past->q, c->n_modes);
  shift (past->u, c->n_modes);
  for (uint32_t m = 0; m < c->n_modes; m++) {
    double sum = 0;

    for (uint32_t i = 0; i < 2 * c->n_cells; i++)
      sum += c->matrix[(size_t) m * 2 * c->n_cells + i] * s[i];
    past->u[m] = -sum;
  }
  for (uint32_t m = 0; m < c->n_modes; m++)
    past->q[m] = control (c, past->q, past->u, m);
  for (uint32_t k = 0; k < c->n_commands; k++)
    commands[k] = command (c, past->q, k);
  for (uint32_t k = 0; k < c->n_commands; k++) {
    double wanted = commands[k];

    commands[k] = limit (c, wanted, before[k]);
    if (commands[k] != wanted)
      follow (c, past->inverse, k, commands[k] - wanted, past->q);
  }
  memcpy (before, commands, c->n_commands * sizeof (*commands));
}
