/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which files the actions of octbscan may replace: what they wrote themselves,
 * and never the spectra that a pipeline reads. */
#pragma once

#include "imk/octbscan.h"

#include <glib.h>

G_BEGIN_DECLS

/* Returns: FALSE with @error set, a sentence for the user, where @location is
 * a file that is neither empty nor a calibration */
gboolean gst_oct_bscan_destination_of_calibration (
    const gchar *location, GError **error);

/* Returns: FALSE with @error set, a sentence for the user, where @location is
 * a file that is neither empty nor an array of float numbers [cameras, n] */
gboolean gst_oct_bscan_destination_of_array (
    const gchar *location, GError **error);

G_END_DECLS
