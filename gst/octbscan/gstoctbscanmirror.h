/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The action calibrate-mirror: the positions of a mirror that have been seen,
 * and the calibration that is made of them. */
#pragma once

#include "gstoctbscan-private.h"

GstOctBscanMirrors *gst_oct_bscan_mirrors_new (void);
/* @self may be NULL. */
void gst_oct_bscan_mirrors_free (GstOctBscanMirrors *self);

/* The actions; any thread. @sides: a + or a - for each of the next B-scans;
 * @travel_um: from the first position to the last one; 0: unknown */
void gst_oct_bscan_calibrate_mirror (
    GstOctBscan *self, const gchar *sides, gdouble travel_um);
void gst_oct_bscan_forget_mirrors (GstOctBscan *self);

/* Is the next B-scan one of a mirror? */
gboolean gst_oct_bscan_wants_mirror (GstOctBscan *self);

/* Returns: samples of the spectra of the mirrors; 0 before the first one. Any
 * thread */
guint gst_oct_bscan_mirror_samples (GstOctBscan *self);

/* @in: the B-scan, in host memory. Call from the streaming thread. */
void gst_oct_bscan_follow_mirror (GstOctBscan *self, const ImkImage *in);

/* gstoctbscantravel.c: approximate wavelengths leave depths some per cent off;
 * the distance that a mirror was moved corrects them. Makes the wavenumbers of
 * @camera so far apart that the mirror has moved by @travel_um from the first
 * to the last of @fringes, and scales the depths.
 * @factor: (out): the new depths beside those of the wavelengths
 * @doubt: (out) (transfer full) (nullable): a sentence for the user
 *
 * Returns: IMK_ERROR_CONFIG, where the travel cannot be that of these mirrors
 */
ImkStatus gst_oct_bscan_scale_by_travel (ImkOctbscanMirrors *found,
    const ImkOctbscanFringe *fringes, guint camera, gdouble travel_um,
    gdouble *factor, gchar **doubt, ImkError *error);
