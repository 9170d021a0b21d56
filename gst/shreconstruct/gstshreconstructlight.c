/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructlight.h"

/* Frames. A few without light, as of a shutter, are no fault. */
enum { MIN_BLIND = 100 };

/* Once for each time without light, also where min-valid is 0. */
static void
follow_blindness (GstShReconstructLight *self, GstElement *element,
    const ImkShreconstructReport *report, guint n_cells)
{
  if (report->n_valid == 0 && ++self->n_blind == MIN_BLIND)
    GST_ELEMENT_WARNING (element, STREAM, FAILED,
        ("No cell has been valid for %d frames, so the loop corrects nothing. "
         "Bring light to the sensor, or lower the thresholds of shcentroid. If "
         "spots were valid before, the mirror may have driven them out of their "
         "cells: check the scale and sign of the control matrix.",
            MIN_BLIND),
        (NULL));
  if (report->n_valid == 0)
    return;
  if (self->n_blind >= MIN_BLIND)
    GST_ELEMENT_INFO (element, STREAM, FAILED,
        ("%u of %u cells are valid again, after %" G_GUINT64_FORMAT
         " frames without one.",
            report->n_valid, n_cells, self->n_blind),
        (NULL));
  self->n_blind = 0;
}

void
gst_sh_reconstruct_light_follow (GstShReconstructLight *self,
    GstElement *element, const ImkShreconstructReport *report, guint n_cells)
{
  if (self->is_dark != report->is_dark)
    gst_element_post_message (element,
        gst_message_new_element (GST_OBJECT (element),
            gst_structure_new ("shreconstruct-light", "low-light",
                G_TYPE_BOOLEAN, report->is_dark, "cells-valid", G_TYPE_UINT,
                report->n_valid, "cells", G_TYPE_UINT, n_cells, NULL)));
  self->is_dark = report->is_dark;
  follow_blindness (self, element, report, n_cells);
}
