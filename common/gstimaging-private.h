/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of libgstimaging share and do not show. */
#pragma once

#include <gst/gst.h>

#include "imk/status.h"

GST_DEBUG_CATEGORY_EXTERN (gst_imaging_debug);
#define GST_CAT_DEFAULT gst_imaging_debug

/* Registers the debug category of the library; safe to call often. */
void gst_imaging_init_debug (void);

/* Appends the name of a member, and what separates it from the one before. */
void gst_imaging_json_add_key (GString *json, const gchar *key);

/* Appends a member. */
void gst_imaging_json_add_text (
    GString *json, const gchar *key, const gchar *text);

/* Likewise; null where @value is not finite. */
void gst_imaging_json_add_number (
    GString *json, const gchar *key, gdouble value);
