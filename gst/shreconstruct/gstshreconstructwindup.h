/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What limits of further mirrors leave of the commands, in coefficients: the
 * controller is to know it, or it winds up. */
#pragma once

#include "gstshreconstructmirror.h"

G_BEGIN_DECLS

/* @mirrors: [n] that have sent commands of the same frame
 * @modes: (nullable): M [n_commands][n_modes]
 * @change: (out): [n_modes]: x of the least squares |T M x - (sent - wanted)|^2
 *   over all mirrors
 *
 * A few steps toward it: up to 6 products with T and M.
 * Returns: whether @change is finite */
gboolean gst_sh_reconstruct_windup_find (
    const GstShReconstructMirror *const *mirrors, guint n, const gfloat *modes,
    guint n_modes, gfloat *change);

G_END_DECLS
