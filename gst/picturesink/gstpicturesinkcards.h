/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a file tells of its samples, where its format has a place for it. */
#pragma once

#include "gstimagingndarray.h"
#include "gstpicturesinkformat.h"

G_BEGIN_DECLS

/* For a file of one frame, or for the first of several: then what may change
 * from frame to frame is left out.
 * Returns: (transfer full) (nullable): cards, "KEY=value" each */
gchar **gst_picture_sink_make_cards (const gchar *location, gboolean several,
    const GstPictureSinkFormat *format, GstBuffer *buffer);

G_END_DECLS
