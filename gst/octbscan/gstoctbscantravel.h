/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Approximate wavelengths leave depths some per cent off; the distance that a
 * mirror was moved corrects them. */
#pragma once

#include "gstimagingsettings.h"

#include "imk/octbscan-mirror.h"

G_BEGIN_DECLS

/* Makes the wavenumbers of @camera so far apart that the mirror has moved by
 * @travel_um from the first to the last of @fringes, and scales the depths.
 * @factor: (out): the new depths beside those of the wavelengths
 * @doubt: (out) (transfer full) (nullable): a sentence for the user
 *
 * Returns: IMK_ERROR_CONFIG, where the travel cannot be that of these mirrors
 */
ImkStatus gst_oct_bscan_scale_by_travel (ImkOctbscanMirrors *found,
    const ImkOctbscanFringe *fringes, guint camera, gdouble travel_um,
    gdouble *factor, gchar **doubt, ImkError *error);

G_END_DECLS
