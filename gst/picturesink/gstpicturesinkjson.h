/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes JSON, a member a line. */
#pragma once

#include <glib.h>

typedef struct {
  GString *text;
  guint depth;
} GstPictureSinkJson;

/* @key: NULL in an array. */
void gst_picture_sink_json_open (
    GstPictureSinkJson *self, const gchar *key, gchar bracket);
void gst_picture_sink_json_close (GstPictureSinkJson *self, gchar bracket);
/* @text: in any encoding; NULL is null */
void gst_picture_sink_json_text (
    GstPictureSinkJson *self, const gchar *key, const gchar *text);
/* With all digits; what is not finite is null. */
void gst_picture_sink_json_number (
    GstPictureSinkJson *self, const gchar *key, gdouble number);
void gst_picture_sink_json_integer (
    GstPictureSinkJson *self, const gchar *key, guint64 number);
/* @json: true, false, null or text that is JSON */
void gst_picture_sink_json_raw (
    GstPictureSinkJson *self, const gchar *key, const gchar *json);
