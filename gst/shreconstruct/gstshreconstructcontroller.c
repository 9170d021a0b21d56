/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructcontroller.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#include "gstshreconstructfile.h"

enum { MAX_TERMS = IMK_SHRECONSTRUCT_MAX_TERMS, MAX_STEPS = 500 };

/* Terms that were rounded to float32 move a pole by about this much. */
#define ROUNDING 1e-6

/* z^n - a_1 z^(n-1) - ... - a_n */
static double complex
evaluate (const gdouble *a, guint n, double complex z)
{
  double complex sum = 1;

  for (guint i = 0; i < n; i++)
    sum = sum * z - a[i];
  return sum;
}

/* All roots together: Kerner 1966, Numerische Mathematik 8, 290. */
static void
find_roots (const gdouble *a, guint n, double complex *roots)
{
  gdouble radius = 1, change = 1;

  for (guint i = 0; i < n; i++)
    radius = MAX (radius, fabs (a[i]));
  for (guint i = 0; i < n; i++) /* not symmetric, so that they can part */
    roots[i] = radius * cpow (0.4 + 0.9 * I, i);
  for (guint step = 0; step < MAX_STEPS && change > 1e-15; step++) {
    change = 0;
    for (guint i = 0; i < n; i++) {
      double complex product = 1, move;

      for (guint k = 0; k < n; k++)
        product *= k == i ? 1 : roots[i] - roots[k];
      if (product == 0)
        continue;
      move = evaluate (a, n, roots[i]) / product;
      roots[i] -= move;
      change = MAX (change, cabs (move));
    }
  }
}

/* @a: [n] */
static GstShReconstructPole
find_pole (const gdouble *a, guint n, guint mode)
{
  GstShReconstructPole pole = {0, 0, mode, 0};
  double complex roots[MAX_TERMS], largest = 0;
  gboolean is_outside;

  while (n > 0 && a[n - 1] == 0) /* a pole of 0 each */
    n--;
  find_roots (a, n, roots);
  for (guint i = 0; i < n; i++) {
    pole.n_out += cabs (roots[i]) > 1 - ROUNDING;
    if (cabs (roots[i]) > cabs (largest))
      largest = roots[i];
  }
  is_outside = cabs (largest) > 1 + ROUNDING;
  if (!is_outside && pole.n_out < 2)
    pole.n_out = 0;
  pole.re = creal (largest);
  pole.im = fabs (cimag (largest)) > ROUNDING ? fabs (cimag (largest)) : 0;
  return pole;
}

static GstShReconstructPole
find_largest (const GstShCentroidArray *array)
{
  const gsize n_terms = array->dims[array->n_dims - 1];
  GstShReconstructPole largest = {0};

  if (array->n_dims < 2 || array->dims[array->n_dims - 2] != 2 ||
      n_terms == 0 || n_terms > MAX_TERMS)
    return largest;
  for (gsize at = 0; at < array->n; at += 2 * n_terms) {
    const gdouble *a = array->values + at;
    GstShReconstructPole pole;

    /* many modes have the same terms but for their gain */
    if (at > 0 && memcmp (a, a - 2 * n_terms, n_terms * sizeof (*a)) == 0)
      continue;
    pole = find_pole (a, (guint) n_terms, (guint) (at / (2 * n_terms)));
    if (pole.n_out > 0 &&
        hypot (pole.re, pole.im) > hypot (largest.re, largest.im))
      largest = pole;
  }
  return largest;
}

/* Of the mode with the largest pole. */
static gboolean
is_transposed (
    const GstShCentroidArray *array, const GstShReconstructPole *pole)
{
  const gdouble *terms;

  if (pole->n_out == 0 || array->dims[array->n_dims - 1] != 2)
    return FALSE;
  terms = array->values + 4 * (gsize) pole->mode;
  return find_pole ((const gdouble[]){terms[0], terms[2]}, 2, 0).n_out == 0;
}

gpointer
gst_sh_reconstruct_controller_load (
    const gchar *property, const gchar *location, ImkError *error)
{
  GstShCentroidArray *array =
      gst_sh_reconstruct_array_load (property, location, error);
  GstShReconstructController *self;

  if (!array)
    return NULL;
  self = g_new (GstShReconstructController, 1);
  self->array = array;
  self->pole = find_largest (array);
  self->is_transposed = is_transposed (array, &self->pole);
  return self;
}

void
gst_sh_reconstruct_controller_free (gpointer controller)
{
  GstShReconstructController *self = controller;

  g_free (self->array);
  g_free (self);
}

gchar *
gst_sh_reconstruct_pole_describe (const GstShReconstructPole *pole)
{
  return pole->im > 0 ? g_strdup_printf ("%.6g + %.6gi", pole->re, pole->im)
                      : g_strdup_printf ("%.6g", pole->re);
}
