/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructwarnings.h"

#include <string.h>

#include "gstshreconstructmatrix.h"
#include "shcentroid/gstshcentroidfiles.h"

/* R D of other units is 0.001 or less, and gains in R are seldom below this. */
#define MIN_RESPONSE 0.01

static void
warn_of_clipping (GstShReconstructWarnings *self, GstElement *element,
    const ImkShreconstructConfig *c)
{
  const gboolean was_clipped = self->is_clipped;

  self->is_clipped = FALSE;
  for (guint i = 0; i < c->n_commands && !self->is_clipped; i++) {
    const gdouble reference = c->reference ? c->reference[i] : 0;

    self->is_clipped = imk_shreconstruct_c0 (c, i) != reference;
    if (self->is_clipped && !was_clipped)
      GST_ELEMENT_WARNING (element, LIBRARY, SETTINGS,
          ("Reference command %u is %g, beyond minimum or maximum, so the "
           "nearer of the two takes its place. Set other limits or another "
           "reference-location.",
              i, reference),
          (NULL));
  }
}

/* The sum of nothing: the commands stay c0. */
static gboolean
is_zero (const GstShReconstructMatrix *m)
{
  for (gsize i = 0; m && i < m->array->n; i++)
    if (m->array->values[i] != 0)
      return FALSE;
  return m != NULL;
}

static void
warn_of_zeros (GstShReconstructWarnings *self, GstElement *element,
    const GstShReconstructSettings *s)
{
  const gboolean was_zero = self->is_zero;

  self->is_zero = is_zero (gst_imaging_setting_file_data (s->matrix));
  if (self->is_zero && !was_zero)
    GST_ELEMENT_WARNING (element, LIBRARY, SETTINGS,
        ("All numbers of matrix-location \"%s\" are 0, so the loop corrects "
         "nothing. Make the control matrix again from the interaction matrix.",
            s->matrix->location),
        (NULL));
}

/* It is no error: what is measured may hold it. */
static void
warn_of_pole (GstShReconstructWarnings *self, GstElement *element,
    const GstShReconstructSettings *s, gboolean is_idle)
{
  const GstShReconstructController *c =
      gst_imaging_setting_file_data (s->controller);
  const GstShReconstructPole before = self->pole;
  g_autofree gchar *text = NULL;

  self->pole = c && !is_idle ? c->pole : (GstShReconstructPole){0};
  if (self->pole.n_out == 0 ||
      memcmp (&before, &self->pole, sizeof (before)) == 0)
    return;
  text = gst_sh_reconstruct_pole_describe (&self->pole);
  GST_ELEMENT_WARNING (element, LIBRARY, SETTINGS,
      ("controller-location \"%s\": mode %u has %u pole%s on the unit circle or "
       "outside, the largest %s, so its commands can grow without an error. "
       "Check a_1, a_2, ... of it, unless this is meant.%s",
          s->controller->location, self->pole.mode, self->pole.n_out,
          self->pole.n_out > 1 ? "s" : "", text,
          c->is_transposed ? " It may be transposed: a_1, a_2 are its first "
                             "row, and b_0, b_1 its second."
                           : ""),
      (NULL));
}

/* Where R and D make no loop, or hardly one. */
static void
warn_of_misfit (GstShReconstructWarnings *self, GstElement *element)
{
  const gboolean had_misfit = self->has_misfit;
  const ImkShreconstructFit *fit = &self->fit;
  const gboolean is_weak = fit->largest < MIN_RESPONSE;

  self->has_misfit = fit->runs_away || is_weak;
  if (!self->has_misfit || had_misfit)
    return;
  if (fit->runs_away && fit->mean < 0)
    GST_ELEMENT_WARNING (element, LIBRARY, SETTINGS,
        ("The control matrix has another sign than the inverse of the "
         "interaction matrix: R D is %.3g on average over the modes, and needs "
         "0 or more, so the loop runs away. Change the sign of one of them.",
            fit->mean),
        (NULL));
  else if (fit->runs_away)
    GST_ELEMENT_WARNING (element, LIBRARY, SETTINGS,
        ("Some modes of the loop run away: R D has the eigenvalue %.3g, and "
         "needs 0 or more. Make matrix-location from this "
         "interaction-location, and check the order of slopes and commands in "
         "both.",
            fit->lowest),
        (NULL));
  else
    GST_ELEMENT_WARNING (element, LIBRARY, SETTINGS,
        ("R D reaches %.3g, where 1 is that of an inverse, so the loop hardly "
         "corrects. Check that matrix-location and interaction-location have "
         "the same units, and leave gains to gain and mode-gains.",
            fit->largest),
        (NULL));
}

/* The product of float32 matrices is not exact: equality is not above. */
#define ROUNDING (1 + 1e-4)

/* z^d - (1 - leak) z^(d-1) + gain has its roots within the unit circle
 * for a delay d of 1 if gain is below 2 - leak, and for a longer one if it is
 * below less than that. The gain of the loop is that times R D, if D is known.
 */
static void
warn_of_gain (GstShReconstructWarnings *self, GstElement *element,
    const GstShReconstructSettings *s, gboolean is_idle)
{
  const gboolean had_high_gain = self->has_high_gain;
  const gboolean is_known = self->fit.largest > 0;
  const gdouble response = is_known ? self->fit.largest : 1;
  gdouble factor = s->mode_gains ? 0 : 1;

  for (guint m = 0; s->mode_gains && m < s->mode_gains->n; m++)
    factor = MAX (factor, s->mode_gains->values[m]);
  factor *= s->gain;
  self->has_high_gain = !is_idle && !self->fit.runs_away && !s->controller &&
                        factor * response > (2 - s->leak) * ROUNDING;
  if (!self->has_high_gain || had_high_gain)
    return;
  if (is_known)
    GST_ELEMENT_WARNING (element, LIBRARY, SETTINGS,
        ("The largest gain of a mode is %g, and R D reaches %.3g, where 1 is "
         "that of an inverse: their product is %.3g, above 2 - leak = %g, so "
         "the loop diverges. Set a gain below %.3g, or check that both "
         "matrices have the same units.",
            factor, response, factor * response, 2 - s->leak,
            (2 - s->leak) * s->gain / (factor * response)),
        (NULL));
  else
    GST_ELEMENT_WARNING (element, LIBRARY, SETTINGS,
        ("The largest gain of a mode is %g, above 2 - leak = %g: no loop holds "
         "it, unless the control matrix is smaller than the inverse of the "
         "interaction matrix. Set a smaller gain%s.",
            factor, 2 - s->leak, s->mode_gains ? " or mode-gains" : ""),
        (NULL));
}

void
gst_sh_reconstruct_warn (GstShReconstructWarnings *self, GstElement *element,
    const GstShReconstructSettings *settings, const GstShReconstructPlan *plan)
{
  warn_of_clipping (self, element, &plan->config);
  warn_of_pole (self, element, settings, plan->is_idle);
  if (plan->has_matrices) {
    warn_of_zeros (self, element, settings);
    self->fit = plan->fit;
    warn_of_misfit (self, element);
  }
  warn_of_gain (self, element, settings, plan->is_idle);
}

void
gst_sh_reconstruct_warn_of_doubt (GstShReconstructWarnings *self,
    GstElement *element, const ImkShreconstruct *kernel)
{
  const gchar *doubt = imk_shreconstruct_doubt (kernel);

  if (doubt && !self->has_doubt)
    GST_ELEMENT_WARNING (element, LIBRARY, SETTINGS, ("%s", doubt), (NULL));
  self->has_doubt = doubt != NULL;
}

void
gst_sh_reconstruct_warn_of_divergence (GstElement *element,
    ImkShdivergenceVerdict verdict, const ImkShdivergenceReport *report,
    const ImkShreconstructReport *frame, guint n_cells, guint n_commands,
    guint64 number)
{
  if (verdict == IMK_SHDIVERGENCE_LIMITED)
    GST_ELEMENT_WARNING (element, STREAM, FAILED,
        ("The loop drives the mirror away: %u frames after it closed, %u of %u "
         "commands are at a limit, in %d of the last %d frames or more. Lower "
         "the gain, check the sign of the control matrix and the order of its "
         "slopes and commands, or set wider limits.",
            report->n_frames, frame->n_limited, n_commands,
            IMK_SHDIVERGENCE_LIMITED_FRAMES, IMK_SHDIVERGENCE_COUNTED),
        ("frame %" G_GUINT64_FORMAT, number));
  else if (verdict == IMK_SHDIVERGENCE_SLOPES)
    GST_ELEMENT_WARNING (element, STREAM, FAILED,
        ("The loop drives the mirror away: %u frames after it closed, the rms "
         "of the residual slopes is %.3g, %.3g before the mirror acted, and %u "
         "of %u cells are valid. Lower the gain, or check the sign of the "
         "control matrix and the order of its slopes and commands.",
            report->n_frames, report->rms, report->rms_at_closing,
            frame->n_valid, n_cells),
        ("frame %" G_GUINT64_FORMAT, number));
}
