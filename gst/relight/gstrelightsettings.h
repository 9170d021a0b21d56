/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The properties of relight. */
#pragma once

#include "gstimagingsettings.h"

#include "imk/relight.h"

G_BEGIN_DECLS

typedef struct {
  ImkRelightConfig config; /* without the size */
  gint y_down;
  gboolean mouse;
} GstRelightSettings;

/* Of a GstRelightSettings. */
extern const GstImagingSettingsTable gst_relight_table;

/* Of the table, in gstrelightrender.c. */
ImkStatus gst_relight_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error);

G_END_DECLS
