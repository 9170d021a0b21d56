/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The terms of a controller, and whether its modes are stable by themselves. */
#pragma once

#include "imk/shreconstruct.h"
#include "shcentroid/gstshcentroidfiles.h"

G_BEGIN_DECLS

/* The largest pole of a mode: a root of z^n - a_1 z^(n-1) - ... - a_n.
 * @n_out: poles of the mode on the unit circle or outside; 0: all modes are
 *   stable, or have one pole on the circle, as an integrator */
typedef struct {
  gdouble re, im;
  guint mode, n_out;
} GstShReconstructPole;

typedef struct {
  GstShCentroidArray *array;
  GstShReconstructPole pole; /* the largest of an unstable mode */
  gboolean is_transposed;    /* of 2 terms, and stable with those transposed */
} GstShReconstructController;

/* A GstImagingFileLoad: [2, terms] or [modes, 2, terms]; other shapes have no
 * pole. Returns: GstShReconstructController */
gpointer gst_sh_reconstruct_controller_load (
    const gchar *property, const gchar *location, ImkError *error);
void gst_sh_reconstruct_controller_free (gpointer controller);

/* Returns: (transfer full): "1.02", "0.8 + 0.7i" */
gchar *gst_sh_reconstruct_pole_describe (const GstShReconstructPole *pole);

G_END_DECLS
