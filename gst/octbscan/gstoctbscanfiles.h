/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The arrays of octbscan, as its kernel takes them, from .npy files. All are
 * (transfer full), NULL with @error set, whose message names the property. */
#pragma once

#include "gstimaging-prelude.h"

#include "octbscan/octbscan.h"

G_BEGIN_DECLS

/* Spectra, [N] for all cameras or [n_cameras, N] for each. Returns: n_cameras
 * spectra */
gdouble *gst_oct_bscan_load_background (
    const gchar *location, guint n_cameras, guint width, ImkError *error);

/* A fixed pattern, complex, [n_depths] or [n_cameras, n_depths]. Returns:
 * n_cameras times n_depths pairs */
gdouble *gst_oct_bscan_load_pattern (
    const gchar *location, guint n_cameras, guint n_depths, ImkError *error);

/* A curve, [n]; @property: whose file it is. */
gdouble *gst_oct_bscan_load_curve (
    const gchar *property, const gchar *location, guint32 *n, ImkError *error);

/* Writes a fixed pattern of @n_cameras times @n_depths pairs. */
gboolean gst_oct_bscan_save_pattern (const gchar *location, guint n_cameras,
    guint n_depths, const gfloat *pattern, GError **error);

G_END_DECLS
