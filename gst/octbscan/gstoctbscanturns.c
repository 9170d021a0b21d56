/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the input stands: the turns of the cameras, and lines of an incomplete
 * B-scan. */
#include "gstoctbscaninput.h"

#include "gstoctbscanoutput.h"
#include "gstoctbscanprocess.h"

void
gst_oct_bscan_forget_lines (GstOctBscan *self, const gchar *why)
{
  guint n = gst_oct_bscan_group_reset (self->input.group);

  if (n > 0)
    GST_ELEMENT_WARNING (self, STREAM, FORMAT,
        ("%u lines do not fill a B-scan of %d (ascans-per-bscan) and are left "
         "out: %s.",
            n, self->input.bscan.height, why),
        (NULL));
}

void
gst_oct_bscan_end_run (GstOctBscan *self, const gchar *why)
{
  if (self->in_use.has_caps)
    gst_oct_bscan_show_mean (self);
  gst_oct_bscan_drain (self);
  gst_oct_bscan_forget_lines (self, why);
  gst_oct_bscan_warn_of_rows (
      self, gst_oct_bscan_enface_reset (self->output.enface), why);
}

void
gst_oct_bscan_begin_turns (GstOctBscan *self)
{
  self->input.n_bscans = self->input.mean.n = 0;
  self->input.history++;
  imk_octbscan_sweep_reset (self->input.sweep);
  self->input.next_line = self->in_use.now->first_camera;
}
