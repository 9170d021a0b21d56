/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructresults.h"

#include <string.h>

void
gst_sh_reconstruct_results_init (
    GstShReconstructResults *self, GstImagingEngine *engine)
{
  self->engine = engine;
  self->cache = gst_imaging_results_cache_new ();
}

void
gst_sh_reconstruct_results_clear (GstShReconstructResults *self)
{
  gst_imaging_results_cache_unref (self->cache);
  g_clear_pointer (&self->more, gst_structure_free);
}

/* In most frames what it was in the one before. */
static void
describe_outcome (
    GstShReconstructResults *self, const GstShReconstructOutcome *outcome)
{
  if (self->more && memcmp (outcome, &self->outcome, sizeof (*outcome)) == 0)
    return;
  self->outcome = *outcome;
  if (!self->more)
    self->more = gst_structure_new_empty ("more");
  gst_structure_set (self->more, "cells-valid", G_TYPE_UINT, outcome->n_valid,
      "cells-excluded", G_TYPE_UINT, outcome->n_out, "commands-limited",
      G_TYPE_UINT, outcome->n_limited, "low-light", G_TYPE_BOOLEAN,
      outcome->is_dark, "closed", G_TYPE_BOOLEAN, outcome->is_closed,
      "calibrating", G_TYPE_BOOLEAN, outcome->is_calibrating, NULL);
}

GstImagingResult
gst_sh_reconstruct_results_make (GstShReconstructResults *self,
    const GstShReconstructKernel *kernel, const GstShReconstructFrame *f,
    GstImagingResultsPad *pad)
{
  const GstShReconstructOutcome outcome = {f->report.n_valid, f->report.n_out,
      f->report.n_limited, f->report.is_dark, f->is_closed, f->is_calibrating};
  static const gchar *const fields[] = {"coefficient"}, *const units[] = {""};
  GstImagingResult result = {.id = "ao-modes-v1",
      .fields = fields,
      .units = units,
      .n_fields = 1,
      .n_rows = kernel->n_modes,
      .data = gst_buffer_new_memdup (
          kernel->coefficients, kernel->n_modes * sizeof (gfloat)),
      .frame = f->number,
      .frames_missing = f->missing,
      .origin = gst_imaging_engine_origin (self->engine),
      .cache = self->cache};

  describe_outcome (self, &outcome);
  result.more = self->more;
  if (pad && gst_imaging_results_pad_wants_values (pad)) {
    const gsize size = kernel->n_modes * sizeof (gdouble);
    gdouble *copy =
        g_memdup2 (imk_shreconstruct_coefficients (kernel->now), size);

    result.values = copy;
    result.values_buffer = gst_buffer_new_wrapped (copy, size);
  }
  return result;
}

void
gst_sh_reconstruct_result_clear (GstImagingResult *result)
{
  gst_clear_buffer (&result->values_buffer);
  gst_buffer_unref (result->data);
}
