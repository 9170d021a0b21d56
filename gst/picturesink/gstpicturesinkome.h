/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The description of a TIFF file as OME-XML, which microscopy reads. */
#pragma once

#include <gst/gst.h>

#include "gstimagingndarray.h"

G_BEGIN_DECLS

/* Of one picture. Returns: (transfer full) (nullable): ASCII; NULL for types
 * that OME does not have */
gchar *gst_picture_sink_make_ome (const GstImagingNdArray *frame,
    const GstStructure *quantity, GstClockTime pts);

G_END_DECLS
