/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A number for each frame, kept as runs: regular ones take no memory. */
#pragma once

#include "gstpicturesinkjson.h"

typedef struct {
  GArray *runs;
  guint64 n;
  gboolean any; /* a number that is there */
} GstPictureSinkSeries;

void gst_picture_sink_series_init (GstPictureSinkSeries *self);

/* G_MAXUINT64: none */
void gst_picture_sink_series_add (GstPictureSinkSeries *self, guint64 value);
/* A pts of frames at a constant rate, which are not whole steps apart. */
void gst_picture_sink_series_add_time (
    GstPictureSinkSeries *self, guint64 pts, gint fps_n, gint fps_d);
/* NAN: none */
void gst_picture_sink_series_add_number (
    GstPictureSinkSeries *self, gdouble value);

/* Returns: whether all numbers are equal */
gboolean gst_picture_sink_series_is_constant (const GstPictureSinkSeries *self);

/* An array of numbers and of runs: [first, step, count], or {"framerate",
 * "first", "count"}: floor ((first + i) * 10^9 / framerate). */
void gst_picture_sink_series_write (const GstPictureSinkSeries *self,
    GstPictureSinkJson *json, const gchar *key);

void gst_picture_sink_series_clear (GstPictureSinkSeries *self);
