/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <glib.h>

#include "gstimaging-prelude.h"

/**
 * gst_imaging_json_append_text: (skip)
 * @text: in any encoding
 *
 * Appends it in quotes, with what JSON does not take in a text escaped.
 */
GST_IMAGING_API
void gst_imaging_json_append_text (GString *json, const gchar *text);
