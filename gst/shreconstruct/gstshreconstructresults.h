/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a frame says of itself: the coefficients of the modes, and what was
 * done. */
#pragma once

#include "gstimagingresultspad.h"
#include "gstshreconstructframe.h"
#include "gstshreconstructkernel.h"

G_BEGIN_DECLS

/* Beside the coefficients. Without padding: compared as bytes. */
typedef struct {
  guint n_valid, n_out, n_limited;
  gboolean is_dark, is_closed, is_calibrating;
} GstShReconstructOutcome;

typedef struct {
  GstImagingEngine *engine; /* not owned */
  GstImagingResultsCache *cache;
  GstStructure *more; /* (nullable): @outcome as fields */
  GstShReconstructOutcome outcome;
} GstShReconstructResults;

/* @engine: not owned */
void gst_sh_reconstruct_results_init (
    GstShReconstructResults *self, GstImagingEngine *engine);
void gst_sh_reconstruct_results_clear (GstShReconstructResults *self);

/* @kernel: with the coefficients of the frame
 * @pad: (nullable): results
 * Returns: for gst_sh_reconstruct_result_clear () */
GstImagingResult gst_sh_reconstruct_results_make (GstShReconstructResults *self,
    const GstShReconstructKernel *kernel, const GstShReconstructFrame *frame,
    GstImagingResultsPad *pad);
void gst_sh_reconstruct_result_clear (GstImagingResult *result);

G_END_DECLS
