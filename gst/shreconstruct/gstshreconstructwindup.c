/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructwindup.h"

#include <math.h>
#include <string.h>

/* Conjugate gradients on the normal equations (Bjorck, Numerical Methods for
 * Least Squares Problems, algorithm 7.4.1). What a few steps leave is taken
 * back after the next frames. */
enum { MOST_STEPS = 3, LANES = 8 };
#define LEAST_GRADIENT 1e-3 /* of the first one */

typedef struct {
  const GstShReconstructMirror *const *mirrors;
  const gfloat *modes;
  guint n_mirrors, n_commands, n_modes, n_outputs; /* @n_outputs: of all */
  gfloat *commands;                                /* [n_commands]: room */
} System;

static gfloat
dot (const gfloat *a, const gfloat *b, guint n)
{
  gfloat sums[LANES] = {0}, sum = 0;
  guint i = 0;

  for (; i + LANES <= n; i += LANES)
    for (guint k = 0; k < LANES; k++)
      sums[k] += a[i + k] * b[i + k];
  for (; i < n; i++)
    sum += a[i] * b[i];
  for (guint k = 0; k < LANES; k++)
    sum += sums[k];
  return sum;
}

static void
add (gfloat *to, gfloat factor, const gfloat *values, guint n)
{
  for (guint i = 0; i < n; i++)
    to[i] += factor * values[i];
}

/* @out: T M @x */
static void
apply (const System *s, const gfloat *x, gfloat *out)
{
  if (s->modes)
    for (guint k = 0; k < s->n_commands; k++)
      s->commands[k] = dot (s->modes + (gsize) k * s->n_modes, x, s->n_modes);
  else
    memcpy (s->commands, x, s->n_modes * sizeof (*x));
  memset (out, 0, s->n_outputs * sizeof (*out));
  for (guint i = 0; i < s->n_mirrors; out += s->mirrors[i++]->n)
    for (guint k = 0; k < s->n_commands; k++)
      add (out, s->commands[k],
          s->mirrors[i]->matrix + (gsize) k * s->mirrors[i]->n,
          s->mirrors[i]->n);
}

/* @out: (T M)^T @rest */
static void
apply_transposed (const System *s, const gfloat *rest, gfloat *out)
{
  memset (s->commands, 0, s->n_commands * sizeof (*out));
  for (guint i = 0; i < s->n_mirrors; rest += s->mirrors[i++]->n)
    for (guint k = 0; k < s->n_commands; k++)
      s->commands[k] +=
          dot (s->mirrors[i]->matrix + (gsize) k * s->mirrors[i]->n, rest,
              s->mirrors[i]->n);
  if (!s->modes) {
    memcpy (out, s->commands, s->n_modes * sizeof (*out));
    return;
  }
  memset (out, 0, s->n_modes * sizeof (*out));
  for (guint k = 0; k < s->n_commands; k++)
    add (out, s->commands[k], s->modes + (gsize) k * s->n_modes, s->n_modes);
}

static void
solve (const System *s, gfloat *rest, gfloat *x)
{
  g_autofree gfloat *gradient = g_new (gfloat, s->n_modes);
  g_autofree gfloat *direction = g_new (gfloat, s->n_modes);
  g_autofree gfloat *image = g_new (gfloat, s->n_outputs);
  gdouble size, first;

  memset (x, 0, s->n_modes * sizeof (*x));
  apply_transposed (s, rest, gradient);
  memcpy (direction, gradient, s->n_modes * sizeof (*direction));
  first = size = dot (gradient, gradient, s->n_modes);
  for (guint i = 0;
       i < MOST_STEPS && size > LEAST_GRADIENT * LEAST_GRADIENT * first; i++) {
    const gdouble before = size;
    gfloat step;

    apply (s, direction, image);
    step = (gfloat) (size / dot (image, image, s->n_outputs));
    add (x, step, direction, s->n_modes);
    add (rest, -step, image, s->n_outputs);
    if (i + 1 == MOST_STEPS)
      return;
    apply_transposed (s, rest, gradient);
    size = dot (gradient, gradient, s->n_modes);
    for (guint m = 0; m < s->n_modes; m++)
      direction[m] = gradient[m] + (gfloat) (size / before) * direction[m];
  }
}

gboolean
gst_sh_reconstruct_windup_find (const GstShReconstructMirror *const *mirrors,
    guint n, const gfloat *modes, guint n_modes, gfloat *change)
{
  System s = {.mirrors = mirrors,
      .modes = modes,
      .n_mirrors = n,
      .n_commands = mirrors[0]->n_commands,
      .n_modes = n_modes};
  g_autofree gfloat *commands = g_new (gfloat, s.n_commands);
  g_autofree gfloat *rest = NULL;
  guint at = 0;

  s.commands = commands;
  for (guint i = 0; i < n; i++)
    s.n_outputs += mirrors[i]->n;
  rest = g_new (gfloat, s.n_outputs);
  for (guint i = 0; i < n; i++)
    for (guint k = 0; k < mirrors[i]->n; k++)
      rest[at++] = mirrors[i]->lack[k];
  solve (&s, rest, change);
  for (guint m = 0; m < n_modes; m++)
    if (!isfinite (change[m]))
      return FALSE;
  return TRUE;
}
