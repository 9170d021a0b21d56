/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Settings that are taken, and are probably not what was meant: each is said
 * once, as they may be taken many times. */
#pragma once

#include "gstshreconstructcontroller.h"
#include "gstshreconstructsettings.h"
#include "imk/shdivergence.h"

G_BEGIN_DECLS

/* What was said; zeros: nothing yet.
 * @fit: of the matrices in use */
typedef struct {
  gboolean is_clipped, is_zero, has_high_gain, has_misfit, has_doubt;
  ImkShreconstructFit fit;
  GstShReconstructPole pole;
} GstShReconstructWarnings;

/* @plan: of @settings, which are taken */
void gst_sh_reconstruct_warn (GstShReconstructWarnings *self,
    GstElement *element, const GstShReconstructSettings *settings,
    const GstShReconstructPlan *plan);

/* imk_shreconstruct_doubt (), at the start and after a frame. */
void gst_sh_reconstruct_warn_of_doubt (GstShReconstructWarnings *self,
    GstElement *element, const ImkShreconstruct *kernel);

/* @verdict, @report: of a loop that diverges; the others of the frame in which
 * it was found */
void gst_sh_reconstruct_warn_of_divergence (GstElement *element,
    ImkShdivergenceVerdict verdict, const ImkShdivergenceReport *report,
    const ImkShreconstructReport *frame, guint n_cells, guint n_commands,
    guint64 number);

G_END_DECLS
