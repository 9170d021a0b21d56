/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructwarnings.h"

#include <string.h>

static void
warn_of_clipping (GstShReconstructWarnings *self, GstElement *element,
    const ImkShreconstructConfig *c)
{
  const gboolean was_clipped = self->is_clipped;

  self->is_clipped = FALSE;
  for (guint i = 0; i < c->n_commands && !self->is_clipped; i++) {
    const gdouble reference = c->reference ? c->reference[i] : 0;

    self->is_clipped = reference < c->minimum || reference > c->maximum;
    if (self->is_clipped && !was_clipped)
      GST_ELEMENT_WARNING (element, LIBRARY, SETTINGS,
          ("Reference command %u is %g, beyond minimum or maximum, so the "
           "nearer of the two takes its place. Set other limits or another "
           "reference-location.",
              i, reference),
          (NULL));
  }
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

/* z^d - (1 - leak) z^(d-1) + gain has its roots within the unit circle
 * for a delay d of 1 if gain is below 2 - leak, and for a longer one if it is
 * below less than that. */
static void
warn_of_gain (GstShReconstructWarnings *self, GstElement *element,
    const GstShReconstructSettings *s, gboolean is_idle)
{
  const gboolean had_high_gain = self->has_high_gain;
  gdouble factor = s->mode_gains ? 0 : 1;

  for (guint m = 0; s->mode_gains && m < s->mode_gains->n; m++)
    factor = MAX (factor, s->mode_gains->values[m]);
  self->has_high_gain =
      !is_idle && !s->controller && factor * s->gain > 2 - s->leak;
  if (self->has_high_gain && !had_high_gain)
    GST_ELEMENT_WARNING (element, LIBRARY, SETTINGS,
        ("The largest gain of a mode is %g, above 2 - leak = %g: no loop holds "
         "it, unless the control matrix is smaller than the inverse of the "
         "interaction matrix. Set a smaller gain%s.",
            factor * s->gain, 2 - s->leak,
            s->mode_gains ? " or mode-gains" : ""),
        (NULL));
}

void
gst_sh_reconstruct_warn (GstShReconstructWarnings *self, GstElement *element,
    const GstShReconstructSettings *settings, const GstShReconstructPlan *plan)
{
  warn_of_clipping (self, element, &plan->config);
  warn_of_pole (self, element, settings, plan->is_idle);
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
