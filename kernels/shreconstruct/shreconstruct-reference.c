/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The formulas are at imk_shreconstruct_process () in imk/shreconstruct.h:
 *
 *   u[t] = -R s                                   reconstruct ()
 *   q[t] = sum a_i q[t-i] + sum b_j u[t-j]        control ()
 *   c[t] = c0 + M q[t]                            command ()
 *   c is limited, and q follows it                limit (), back_calculate ()
 *
 * Gendron and Lena 1994 (modal control); Astrom and Murray, Feedback Systems
 * (back-calculation). The last function is a frame from beginning to end.
 * Nothing here is shared with the backends, which it judges. */
#include "shreconstruct/shreconstruct-reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TERMS = IMK_SHRECONSTRUCT_MAX_TERMS + 1 };

/* Of a mode that the actuators that are not dead make. */
#define LEAST_PART 0.01

static void
shift (double *past, uint32_t n)
{
  memmove (past + n, past, (TERMS - 1) * n * sizeof (*past));
}

static bool
is_valid (const ImkShreconstructConfig *c, const float *slopes,
    const uint8_t *flags, uint32_t cell)
{
  return !(flags && flags[cell] & 227) && fabs (slopes[cell]) <= 1e6 &&
         fabs (slopes[c->n_cells + cell]) <= 1e6;
}

static uint32_t
count_valid (
    const ImkShreconstructConfig *c, const float *slopes, const uint8_t *flags)
{
  uint32_t n_valid = 0;

  for (uint32_t i = 0; i < c->n_cells; i++)
    n_valid += is_valid (c, slopes, flags, i);
  return n_valid;
}

/* Slopes of invalid cells by the policy.
 * @out: rows of cells to exclude. Returns: how many */
static uint32_t
take_slopes (const ImkShreconstructConfig *c, const float *slopes,
    const uint8_t *flags, double *s, uint32_t *out)
{
  uint32_t n_out = 0;

  for (uint32_t i = 0; i < c->n_cells; i++) {
    const uint32_t at[] = {i, c->n_cells + i};
    bool valid = is_valid (c, slopes, flags, i);

    for (int axis = 0; axis < 2; axis++) {
      double offset = c->offsets ? c->offsets[at[axis]] : 0;

      if (valid)
        s[at[axis]] = slopes[at[axis]] - offset;
      else if (c->invalid != IMK_SHRECONSTRUCT_INVALID_HOLD)
        s[at[axis]] = 0;
      if (!valid)
        out[n_out++] = at[axis];
    }
  }
  return n_out;
}

/* --- cells that are excluded ---------------------------------------------- */

/* Row @i of D M */
static double
interaction (const ImkShreconstructConfig *c, uint32_t i, uint32_t mode)
{
  const float *d = c->interaction + (size_t) i * c->n_commands;
  double sum = 0;

  if (!c->modes || c->interaction_is_modal)
    return c->interaction[(size_t) i * c->n_modes + mode];
  for (uint32_t k = 0; k < c->n_commands; k++)
    sum += (double) d[k] * c->modes[(size_t) k * c->n_modes + mode];
  return sum;
}

/* Gauss: @a [n][2 n], of which the right half is 1, becomes its inverse there.
 * Returns: the least part of its diagonal that the rows before leave */
static double
eliminate (double *a, uint32_t n)
{
  uint32_t width = 2 * n;
  double *whole = malloc (n * sizeof (*whole) + 1), least = 1;

  for (uint32_t i = 0; i < n; i++)
    whole[i] = a[i * width + i];
  for (uint32_t i = 0; i < n; i++) {
    least = fmin (least, a[i * width + i] / whole[i]);
    for (uint32_t row = 0; row < n; row++) {
      double factor = a[row * width + i] / a[i * width + i];

      for (uint32_t j = i; row != i && j <= n + i; j++)
        a[row * width + j] -= factor * a[i * width + j];
    }
  }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = n; j < width; j++)
      a[i * width + j] /= a[i * width + i];
  free (whole);
  return least;
}

/* y of K y = @g, but for eigenvalues of K near 0: see the header.
 * @a: [n][2 n]: K + 0.1 I becomes its inverse in the right half */
static void
solve_regularized (double *a, uint32_t n, const double *g, double *y)
{
  double *next = malloc (n * sizeof (*next) + 1);

  eliminate (a, n);
  memset (y, 0, n * sizeof (*y));
  for (int step = 0; step < 8; step++) {
    for (uint32_t i = 0; i < n; i++) {
      next[i] = 0;
      for (uint32_t j = 0; j < n; j++)
        next[i] += a[i * 2 * n + n + j] * (g[j] + 0.1 * y[j]);
    }
    for (uint32_t i = 0; i < n; i++)
      y[i] += 1.15 * (next[i] - y[i]);
  }
  free (next);
}

/* @x: R s; the slopes of rows @out become those that it predicts:
 * (I - D_S R_S / k) p = D_S x / k */
static void
exclude (const ImkShreconstructConfig *c, double scale, const uint32_t *out,
    uint32_t n_out, double *x)
{
  size_t n_slopes = 2 * (size_t) c->n_cells, width = 2 * (size_t) n_out;
  double *a = calloc (n_out * width + 1, sizeof (*a));
  double *g = calloc (width + 1, sizeof (*g)), *y = g + n_out;

  for (uint32_t i = 0; i < n_out; i++)
    for (uint32_t m = 0; m < c->n_modes; m++) {
      double d = interaction (c, out[i], m);

      for (uint32_t j = 0; j < n_out; j++)
        a[i * width + j] -= d * c->matrix[m * n_slopes + out[j]] / scale;
      g[i] += d * x[m] / scale;
    }
  for (uint32_t i = 0; i < n_out; i++) {
    a[i * width + i] += 1.1;
    a[i * width + n_out + i] = 1;
  }
  solve_regularized (a, n_out, g, y);
  for (uint32_t m = 0; m < c->n_modes; m++)
    for (uint32_t j = 0; j < n_out; j++)
      x[m] += c->matrix[m * n_slopes + out[j]] * y[j];
  free (a);
  free (g);
}

/* -R s in @u */
static void
reconstruct (const ImkShreconstructConfig *c, double scale, const double *s,
    const uint32_t *out, uint32_t n_out, double *u)
{
  for (uint32_t m = 0; m < c->n_modes; m++) {
    u[m] = 0;
    for (uint32_t i = 0; i < 2 * c->n_cells; i++)
      u[m] += c->matrix[(size_t) m * 2 * c->n_cells + i] * s[i];
  }
  if (c->invalid == IMK_SHRECONSTRUCT_INVALID_EXCLUDE)
    exclude (c, scale, out, n_out, u);
  for (uint32_t m = 0; m < c->n_modes; m++)
    u[m] = -u[m];
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

/* A NaN stays one. */
static double
between (double least, double most, double number)
{
  return number < least ? least : number > most ? most : number;
}

/* Returns: command @k of c0 */
static double
find_c0 (const ImkShreconstructConfig *c, uint32_t k)
{
  return between (c->minimum, c->maximum, c->reference ? c->reference[k] : 0);
}

/* Returns: the next number on the way from @before to @wanted */
static double
step (const ImkShreconstructConfig *c, double wanted, double before)
{
  return between (before - c->slew, before + c->slew, wanted);
}

/* Returns: @wanted within the limits */
static double
limit (
    const ImkShreconstructConfig *c, uint32_t k, double wanted, double before)
{
  return c->dead && c->dead[k]
             ? step (c, find_c0 (c, k), before)
             : between (c->minimum, c->maximum, step (c, wanted, before));
}

/* The controller's q follows what was limited. */
static void
back_calculate (const ImkShreconstructConfig *c, const double *inverse,
    uint32_t k, double change, double *q)
{
  if (!c->modes)
    q[k] += change;
  else
    for (uint32_t m = 0; m < c->n_modes; m++)
      q[m] += inverse[(size_t) m * c->n_commands + k] * change;
}

static double
command (const ImkShreconstructConfig *c, const double *c0, const double *q,
    uint32_t k)
{
  double sum = c0[k];

  if (!c->modes)
    return sum + q[k];
  for (uint32_t m = 0; m < c->n_modes; m++)
    sum += c->modes[(size_t) k * c->n_modes + m] * q[m];
  return sum;
}

/* --- pinv (M) --------------------------------------------------------------
 */

/* Part of the square of mode @m that is of actuators that are not dead. */
static double
live_part (const ImkShreconstructConfig *c, uint32_t m)
{
  double live = 0, all = 0;

  for (uint32_t k = 0; k < c->n_commands; k++) {
    const double d = c->modes[(size_t) k * c->n_modes + m];

    all += d * d;
    live += c->dead[k] ? 0 : d * d;
  }
  return live / all;
}

/* (M^T M)^-1 M^T, without the rows of M of @dead ones
 * Returns: the least part of a mode that those before it do not make */
static double
invert (const ImkShreconstructConfig *c, const uint8_t *dead, double *inverse)
{
  const size_t n = c->n_modes;
  double *a = calloc (2 * n * n, sizeof (*a)), least;

  for (size_t k = 0; k < c->n_commands; k++)
    for (size_t i = 0; i < n && !(dead && dead[k]); i++)
      for (size_t j = 0; j < n; j++)
        a[i * 2 * n + j] +=
            (double) c->modes[k * n + i] * (double) c->modes[k * n + j];
  for (size_t i = 0; i < n; i++)
    a[i * 2 * n + n + i] = 1;
  least = eliminate (a, (uint32_t) n);
  for (size_t m = 0; m < n; m++)
    for (size_t k = 0; k < c->n_commands; k++) {
      inverse[m * c->n_commands + k] = 0;
      for (size_t j = 0; j < n && !(dead && dead[k]); j++)
        inverse[m * c->n_commands + k] +=
            a[m * 2 * n + n + j] * c->modes[k * n + j];
    }
  free (a);
  return least;
}

void
imk_shreconstruct_reference_invert (
    const ImkShreconstructConfig *c, double *inverse)
{
  double least = c->dead ? 1 : 0;

  for (uint32_t m = 0; c->dead && m < c->n_modes; m++)
    least = fmin (least, live_part (c, m));
  if (!(least > LEAST_PART && invert (c, c->dead, inverse) > LEAST_PART))
    invert (c, NULL, inverse);
}

/* --- a frame ---------------------------------------------------------------
 */

/* A step to c0. The controller has no past but what was sent, and c0 is there
 * from the next frame with light on. */
static void
rest_in_the_dark (const ImkShreconstructConfig *c, ImkShreconstructPast *past)
{
  double *before = past->commands_before, *c0 = past->c0_before;

  memset (past->q, 0, (size_t) TERMS * c->n_modes * sizeof (*past->q));
  memset (past->u, 0, (size_t) TERMS * c->n_modes * sizeof (*past->u));
  memset (past->slopes_before, 0, 2 * (size_t) c->n_cells * sizeof (double));
  for (uint32_t k = 0; k < c->n_commands; k++) {
    c0[k] = find_c0 (c, k);
    before[k] = step (c, c0[k], before[k]);
    if (isfinite (c->slew))
      back_calculate (c, past->inverse, k, before[k] - c0[k], past->q);
  }
  for (uint32_t i = 1; i < TERMS; i++)
    memcpy (past->q + i * (size_t) c->n_modes, past->q,
        c->n_modes * sizeof (*past->q));
}

void
imk_shreconstruct_reference (const ImkShreconstructConfig *c,
    ImkShreconstructPast *past, const float *slopes, const uint8_t *flags,
    double *commands)
{
  double *s = past->slopes_before, *before = past->commands_before;
  double *c0 = past->c0_before;
  uint32_t *out, n_out;

  if (count_valid (c, slopes, flags) < c->min_valid * c->n_cells) {
    if (c->dark == IMK_SHRECONSTRUCT_DARK_REFERENCE)
      rest_in_the_dark (c, past);
    memcpy (commands, before, c->n_commands * sizeof (*commands));
    return;
  }
  shift (past->q, c->n_modes);
  shift (past->u, c->n_modes);
  out = malloc (2 * c->n_cells * sizeof (*out));
  n_out = take_slopes (c, slopes, flags, s, out);
  reconstruct (c, past->scale, s, out, n_out, past->u);
  free (out);
  for (uint32_t m = 0; m < c->n_modes; m++)
    past->q[m] = control (c, past->q, past->u, m);
  for (uint32_t k = 0; k < c->n_commands; k++)
    c0[k] = step (c, find_c0 (c, k), c0[k]);
  for (uint32_t k = 0; k < c->n_commands; k++)
    commands[k] = command (c, c0, past->q, k);
  for (uint32_t k = 0; k < c->n_commands; k++) {
    double wanted = commands[k];

    commands[k] = limit (c, k, wanted, before[k]);
    if (commands[k] != wanted)
      back_calculate (c, past->inverse, k, commands[k] - wanted, past->q);
  }
  memcpy (before, commands, c->n_commands * sizeof (*commands));
}
