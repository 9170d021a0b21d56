/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where frames come from: a file, a camera, or neither. */
#pragma once

#include <gst/gst.h>

#include "gstpicturesinkjson.h"

/* Returns: (transfer full): what `location` and `locations` of an element name
 */
GPtrArray *gst_picture_sink_source_get_files (GstElement *element);

/* Objects of an array: one for each file. Sizes are always written; @hash:
 * hashes, too */
void gst_picture_sink_source_write (GstPictureSinkJson *json,
    GstElement *element, const gchar *name, gboolean hash);
