/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where frames come from: a file, a camera, or neither. */
#pragma once

#include <gst/gst.h>

#include "gstpicturesinkjson.h"

G_BEGIN_DECLS

/* An object of an array. @location: (nullable) */
void gst_picture_sink_source_write (GstPictureSinkJson *json,
    GstElement *element, const gchar *name, const gchar *location,
    gboolean hash);

G_END_DECLS
