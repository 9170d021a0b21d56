/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Notices a closed loop that drives its mirror away. It changes nothing. */
#pragma once

#include "gstshreconstructslopes.h"
#include "imk/shreconstruct.h"

G_BEGIN_DECLS

typedef struct _GstShReconstructDivergence GstShReconstructDivergence;

GstShReconstructDivergence *gst_sh_reconstruct_divergence_new (void);
void gst_sh_reconstruct_divergence_free (GstShReconstructDivergence *self);

/* The loop closes with the next frame. */
void gst_sh_reconstruct_divergence_begin (GstShReconstructDivergence *self);

/* @offsets: (nullable): [2 n_cells]: slopes that the loop holds */
void gst_sh_reconstruct_divergence_set_offsets (
    GstShReconstructDivergence *self, const gfloat *offsets, guint n_cells);

/**
 * gst_sh_reconstruct_divergence_follow: (a frame of a closed loop)
 * @slopes: slopes that are not mapped, as they are on a device, have no part
 * @coefficients: [n_modes]: after the frame
 *
 * A loop drives away in one of three cases. The first: half of the commands, or
 * more, are at a limit in 90 of 100 frames. The second: half of the cells that
 * were valid are lost in 50 of 100 frames, and the rms of the residual slopes
 * in the last other frames is twice as large as at closing. The third: in each
 * of 4 windows of 50 frames, one after the other, the rms of the residual
 * slopes is above twice that of the frames before the mirror acted, and above
 * half of its largest value. In each window the coefficients also grow by 15 %
 * or more, or jump by 22 % of themselves or more from frame to frame. A loop
 * that holds has smaller residuals than without the mirror. After air has
 * become stronger they are a small part of what they were at first. Dark frames
 * count in the second case only.
 *
 * Returns: (transfer full) (nullable): a sentence, once until
 *   gst_sh_reconstruct_divergence_begin() */
gchar *gst_sh_reconstruct_divergence_follow (GstShReconstructDivergence *self,
    const GstShReconstructSlopes *slopes, guint n_cells,
    const gfloat *coefficients, guint n_modes, guint n_commands,
    const ImkShreconstructReport *report);

G_END_DECLS
