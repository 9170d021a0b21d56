/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Samples of FITS that are not compressed, read as they are in the file.
 * cfitsio makes NaN of infinite floats and 0 of small ones, and scales integers
 * of 64 bits as doubles. */
#pragma once

#include "gstimagingformat.h"

typedef struct {
  guint64 data;        /* bytes before the first sample */
  gint bits;           /* BITPIX: 64, -32 or -64 */
  gdouble scale, zero; /* BSCALE and BZERO */
  const gint64 *blank; /* (nullable): BLANK, where integers become floats */
} GstImagingFitsRaw;

/* The type that holds all of their values; f64 where integers of 64 bits have
 * a fraction, or are scaled and some of them blank. */
GstImagingNdArrayType gst_imaging_fits_raw_find_type (
    const GstImagingFitsRaw *self, gboolean has_blank);

/* Reads @n samples from that with the number @first on. */
gboolean gst_imaging_fits_raw_read (const GstImagingFitsRaw *self,
    const GstImagingFormatFile *file, GstImagingNdArrayType type, guint64 first,
    gsize n, gpointer values, GError **error);
