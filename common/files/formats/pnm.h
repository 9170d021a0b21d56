/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The header of a PNM file */
#pragma once

#include "gstimagingformat.h"

#define GST_IMAGING_PNM_MAX_HEADER 4096 /* comments included */

typedef struct {
  const GstImagingFormatFile *file;
  gchar kind; /* after the P */
  GstImagingNdArrayType type;
  guint64 width, height, channels, maximum;
  gboolean swapped; /* samples have the other byte order */
  gchar text[GST_IMAGING_PNM_MAX_HEADER + 1];
  gsize at, size; /* of the header */
} GstImagingPnm;

/* "expected is WHAT". Returns: FALSE */
gboolean gst_imaging_pnm_fail (
    GstImagingPnm *self, const gchar *what, GError **error);

/* Fills all but @file, @text and @size from these. */
gboolean gst_imaging_pnm_scan_header (GstImagingPnm *self, GError **error);
