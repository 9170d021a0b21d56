/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames that are appended to a FITS file. cfitsio writes a file in no order
 * that a crash or a full disk would leave valid. */
#pragma once

#include "gstimagingformat.h"

enum { GST_IMAGING_FITS_BLOCK = 2880, GST_IMAGING_FITS_CARD = 80 };

typedef struct _GstImagingFitsGrowth GstImagingFitsGrowth;

/* @data: bytes of the header, which is complete and says @n_frames */
GstImagingFitsGrowth *gst_imaging_fits_growth_new (
    const GstImagingFormatFile *file, const GstImagingNdArray *frame,
    guint64 data, guint64 n_frames, GError **error);

gboolean gst_imaging_fits_growth_write (
    GstImagingFitsGrowth *self, gconstpointer values, GError **error);

void gst_imaging_fits_growth_free (GstImagingFitsGrowth *self);
