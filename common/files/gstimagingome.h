/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The description of a TIFF file as OME-XML, which microscopy reads. */
#pragma once

#include <gst/gst.h>

#include "gstimagingndarray.h"

/* Of @n_frames pictures one after the other: along z, where the third axis is a
 * length, else in time. Returns: (transfer full) (nullable): ASCII; NULL for
 * types that OME does not have */
gchar *gst_imaging_ome_make (const GstImagingNdArray *frame, guint64 n_frames,
    const GstStructure *quantity, GstClockTime pts);

/* Does the name of a file promise OME-XML: .ome.tif, .ome.tiff? */
gboolean gst_imaging_ome_is_promised (const gchar *location);

/* Fills @quantity with what @xml tells: sizes of pixels, and the members that
 * gst_imaging_ome_make () wrote. Returns: is there anything? */
gboolean gst_imaging_ome_read (const gchar *xml, GstStructure *quantity);

/* Has gst_imaging_ome_make () written it? */
gboolean gst_imaging_ome_is_ours (const gchar *xml);
