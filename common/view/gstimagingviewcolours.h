/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The colour maps of pictures with one channel. */
#pragma once

#include <glib.h>

#define GST_IMAGING_VIEW_N_COLOURS 6

/* Returns: (nullable): its name; NULL after the last one */
const gchar *gst_imaging_view_colours_name (guint colours);

/* Whether its ends are one colour: samples are angles then */
gboolean gst_imaging_view_colours_is_cyclic (guint colours);

/* @table: R, G, B from the lowest to the highest sample of the window */
void gst_imaging_view_colours_fill (guint colours, guint8 table[256][3]);

/* Appends "table": the above in Base64. */
void gst_imaging_view_colours_describe (GString *json, guint colours);

/* Returns: 0xRRGGBB of a NaN, which the map does not have */
guint32 gst_imaging_view_colours_nan (guint colours);
