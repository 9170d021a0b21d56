/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imk/shwindup.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "shreconstruct/dot.h"

enum { N_STEPS = 3 };
#define MIN_GRADIENT 1e-3 /* of the first one */

/* @n_outputs: of all mirrors; the vectors are room */
typedef struct System {
  const ImkShwindupMirror *mirrors;
  const float *modes;
  uint32_t n_mirrors, n_commands, n_modes, n_outputs;
  float *commands, *gradient, *direction, *image, *residual;
} System;

IMK_SHRECONSTRUCT_DOT (dot, float, float, float)

static void
add_scaled (float *to, float factor, const float *values, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    to[i] += factor * values[i];
}

/* Returns: the numbers of @mirror that go with command @k */
static const float *
column_of (const ImkShwindupMirror *mirror, uint32_t k)
{
  return mirror->matrix + (size_t) k * mirror->n_outputs;
}

/* @out: T M @x */
static void
multiply_mirrors (const System *s, const float *x, float *out)
{
  if (s->modes)
    for (uint32_t k = 0; k < s->n_commands; k++)
      s->commands[k] = dot (s->modes + (size_t) k * s->n_modes, x, s->n_modes);
  else
    memcpy (s->commands, x, s->n_modes * sizeof (*x));
  memset (out, 0, s->n_outputs * sizeof (*out));
  for (uint32_t i = 0; i < s->n_mirrors; out += s->mirrors[i++].n_outputs)
    for (uint32_t k = 0; k < s->n_commands; k++)
      add_scaled (out, s->commands[k], column_of (&s->mirrors[i], k),
          s->mirrors[i].n_outputs);
}

/* s->gradient: (T M)^T residual. Returns: its square */
static double
find_gradient (const System *s)
{
  const float *residual = s->residual;

  memset (s->commands, 0, s->n_commands * sizeof (*s->commands));
  for (uint32_t i = 0; i < s->n_mirrors; residual += s->mirrors[i++].n_outputs)
    for (uint32_t k = 0; k < s->n_commands; k++)
      s->commands[k] += dot (
          column_of (&s->mirrors[i], k), residual, s->mirrors[i].n_outputs);
  if (s->modes) {
    memset (s->gradient, 0, s->n_modes * sizeof (*s->gradient));
    for (uint32_t k = 0; k < s->n_commands; k++)
      add_scaled (s->gradient, s->commands[k],
          s->modes + (size_t) k * s->n_modes, s->n_modes);
  } else {
    memcpy (s->gradient, s->commands, s->n_modes * sizeof (*s->gradient));
  }
  return dot (s->gradient, s->gradient, s->n_modes);
}

/* Returns: whether there is a gradient */
static bool
find_change (const System *s, float *x)
{
  double size = find_gradient (s), first = size;

  memset (x, 0, s->n_modes * sizeof (*x));
  memcpy (s->direction, s->gradient, s->n_modes * sizeof (*s->direction));
  for (uint32_t i = 0;
       i < N_STEPS && size > MIN_GRADIENT * MIN_GRADIENT * first; i++) {
    const double before = size;
    float step;

    multiply_mirrors (s, s->direction, s->image);
    step = (float) (size / dot (s->image, s->image, s->n_outputs));
    add_scaled (x, step, s->direction, s->n_modes);
    add_scaled (s->residual, -step, s->image, s->n_outputs);
    if (i + 1 == N_STEPS)
      break;
    size = find_gradient (s);
    for (uint32_t m = 0; m < s->n_modes; m++)
      s->direction[m] =
          s->gradient[m] + (float) (size / before) * s->direction[m];
  }
  return isfinite (first);
}

bool
imk_shwindup_find (const ImkShwindupMirror *mirrors, uint32_t n_mirrors,
    const float *modes, uint32_t n_commands, uint32_t n_modes, float *change)
{
  System s = {.mirrors = mirrors,
      .modes = modes,
      .n_mirrors = n_mirrors,
      .n_commands = n_commands,
      .n_modes = n_modes};
  bool is_finite;
  float *to;

  for (uint32_t i = 0; i < n_mirrors; i++)
    s.n_outputs += mirrors[i].n_outputs;
  s.commands =
      malloc ((n_commands + 2 * (size_t) n_modes + 2 * (size_t) s.n_outputs) *
              sizeof (float));
  if (!s.commands)
    return false;
  s.gradient = s.commands + n_commands;
  s.direction = s.gradient + n_modes;
  s.image = s.direction + n_modes;
  s.residual = to = s.image + s.n_outputs;
  for (uint32_t i = 0; i < n_mirrors; to += mirrors[i++].n_outputs)
    memcpy (to, mirrors[i].lack, mirrors[i].n_outputs * sizeof (*to));
  is_finite = find_change (&s, change);
  for (uint32_t m = 0; m < n_modes; m++)
    is_finite &= isfinite (change[m]) != 0;
  free (s.commands);
  return is_finite;
}
