/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructwindup.h"

#include <math.h>
#include <string.h>

/* Conjugate gradients on the normal equations (Bjorck, Numerical Methods for
 * Least Squares Problems, algorithm 7.4.1): as many steps as there are
 * different strengths, and what fewer leave is smaller in the next frame. */
enum { MOST_STEPS = 8 };
#define LEAST_GRADIENT 1e-6 /* of the first one */

typedef struct {
  const GstShReconstructMirror *const *mirrors;
  const GstShCentroidArray *modes;
  guint n_mirrors, n_commands, n_modes, n_outputs; /* @n_outputs: of all */
  gdouble *commands;                               /* [n_commands]: room */
} System;

static gdouble
dot (const gdouble *a, const gdouble *b, guint n)
{
  gdouble sum = 0;

  for (guint i = 0; i < n; i++)
    sum += a[i] * b[i];
  return sum;
}

static void
add (gdouble *to, gdouble factor, const gdouble *values, guint n)
{
  for (guint i = 0; i < n; i++)
    to[i] += factor * values[i];
}

/* @out: T M @x */
static void
apply (const System *s, const gdouble *x, gdouble *out)
{
  if (s->modes)
    for (guint k = 0; k < s->n_commands; k++)
      s->commands[k] =
          dot (s->modes->values + (gsize) k * s->n_modes, x, s->n_modes);
  else
    memcpy (s->commands, x, s->n_modes * sizeof (*x));
  memset (out, 0, s->n_outputs * sizeof (*out));
  for (guint i = 0; i < s->n_mirrors; out += s->mirrors[i++]->n)
    for (guint k = 0; k < s->n_commands; k++) {
      const gfloat *column =
          s->mirrors[i]->matrix + (gsize) k * s->mirrors[i]->n;

      for (guint row = 0; row < s->mirrors[i]->n; row++)
        out[row] += column[row] * s->commands[k];
    }
}

/* @out: (T M)^T @rest */
static void
apply_transposed (const System *s, const gdouble *rest, gdouble *out)
{
  memset (s->commands, 0, s->n_commands * sizeof (*out));
  for (guint i = 0; i < s->n_mirrors; rest += s->mirrors[i++]->n)
    for (guint k = 0; k < s->n_commands; k++) {
      const gfloat *column =
          s->mirrors[i]->matrix + (gsize) k * s->mirrors[i]->n;

      for (guint row = 0; row < s->mirrors[i]->n; row++)
        s->commands[k] += column[row] * rest[row];
    }
  if (!s->modes) {
    memcpy (out, s->commands, s->n_modes * sizeof (*out));
    return;
  }
  memset (out, 0, s->n_modes * sizeof (*out));
  for (guint k = 0; k < s->n_commands; k++)
    add (out, s->commands[k], s->modes->values + (gsize) k * s->n_modes,
        s->n_modes);
}

static void
solve (const System *s, gdouble *rest, gdouble *x)
{
  g_autofree gdouble *gradient = g_new (gdouble, s->n_modes);
  g_autofree gdouble *direction = g_new (gdouble, s->n_modes);
  g_autofree gdouble *image = g_new (gdouble, s->n_outputs);
  gdouble size, first;

  memset (x, 0, s->n_modes * sizeof (*x));
  apply_transposed (s, rest, gradient);
  memcpy (direction, gradient, s->n_modes * sizeof (*direction));
  first = size = dot (gradient, gradient, s->n_modes);
  for (guint i = 0;
       i < MOST_STEPS && size > LEAST_GRADIENT * LEAST_GRADIENT * first; i++) {
    const gdouble before = size;
    gdouble step;

    apply (s, direction, image);
    step = size / dot (image, image, s->n_outputs);
    add (x, step, direction, s->n_modes);
    add (rest, -step, image, s->n_outputs);
    apply_transposed (s, rest, gradient);
    size = dot (gradient, gradient, s->n_modes);
    for (guint m = 0; m < s->n_modes; m++)
      direction[m] = gradient[m] + size / before * direction[m];
  }
}

gboolean
gst_sh_reconstruct_windup_find (const GstShReconstructMirror *const *mirrors,
    guint n, const GstShCentroidArray *modes, gdouble *change)
{
  System s = {.mirrors = mirrors,
      .modes = modes,
      .n_mirrors = n,
      .n_commands = mirrors[0]->n_commands};
  g_autofree gdouble *commands = g_new (gdouble, s.n_commands);
  g_autofree gdouble *rest = NULL;
  guint at = 0;

  s.commands = commands;
  s.n_modes = modes ? (guint) modes->dims[1] : s.n_commands;
  for (guint i = 0; i < n; i++)
    s.n_outputs += mirrors[i]->n;
  rest = g_new (gdouble, s.n_outputs);
  for (guint i = 0; i < n; i++)
    for (guint k = 0; k < mirrors[i]->n; k++)
      rest[at++] = mirrors[i]->lack[k];
  solve (&s, rest, change);
  for (guint m = 0; m < s.n_modes; m++)
    if (!isfinite (change[m]))
      return FALSE;
  return TRUE;
}
