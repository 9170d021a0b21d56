/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The arrays of octbscan, from .npy files to what its kernel takes. All are
 * (transfer full), NULL with @error set, whose message names the property. */
#pragma once

#include "gstimagingndarray.h"
#include "gstimagingsettings.h"

#include "imk/octbscan.h"

/* A GstImagingFileLoad of a curve, [n] numbers: a GstImagingNdArray. */
gpointer gst_oct_bscan_load_curve (
    const gchar *property, const gchar *location, ImkError *error);

/* Spectra, [N] for all cameras or [n_cameras, N] for each. Returns: n_cameras
 * spectra */
gdouble *gst_oct_bscan_get_background (
    const GstImagingFile *file, guint n_cameras, guint width, ImkError *error);

/* A fixed pattern, complex, [n_depths] or [n_cameras, n_depths]. Returns:
 * n_cameras times n_depths pairs */
gdouble *gst_oct_bscan_get_pattern (const GstImagingFile *file, guint n_cameras,
    guint n_depths, ImkError *error);

/* The @n numbers of a curve. */
gdouble *gst_oct_bscan_get_curve (const GstImagingFile *file, guint32 *n);
