/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingformat.h"

/* Is it .fits.gz, a file that gzip has compressed as a whole? */
gboolean gst_imaging_fits_is_gzip (const GstImagingFormatFile *file);

/* Sets fd and size of @to, which are of a file in memory then, to be closed by
 * the caller. Returns: FALSE with @error set */
gboolean gst_imaging_fits_gunzip (
    const GstImagingFormatFile *file, GstImagingFormatFile *to, GError **error);
