/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Elements of the same pipeline that use the file of a sink. */
#pragma once

#include "gstpicturesinkfile.h"

/* Does another sink write the file of @sink, or a source read what it would
 * replace? Nothing is written yet.
 * Returns: (transfer full) (nullable): a sentence */
gchar *gst_picture_sink_describe_rival (
    GstElement *sink, const GstPictureSinkFile *file);
