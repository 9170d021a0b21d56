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
 * of 3 windows of 50 frames, one after the other, the rms of the residual
 * slopes is above 0.7 of its largest value, and one of two holds. It is above
 * 1.2 times that of the frames before the mirror acted, and 40 % of the mean
 * square are slopes that last: their means over the window. Or it is above
 * 2.5 times that, and the coefficients jump by 22 % of themselves or more from
 * frame to frame. A loop that holds leaves no lasting slopes, but for a leak's,
 * which are smaller than without the mirror. Neither the leak nor the range of
 * the sensor changes that. Dark frames count in the second case only.
 *
 * Returns: (transfer full) (nullable): a sentence, once until
 *   gst_sh_reconstruct_divergence_begin() */
gchar *gst_sh_reconstruct_divergence_follow (GstShReconstructDivergence *self,
    const GstShReconstructSlopes *slopes, guint n_cells,
    const gfloat *coefficients, guint n_modes, guint n_commands,
    const ImkShreconstructReport *report);

G_END_DECLS
