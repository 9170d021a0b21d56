/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstpicturesinkjson.h"

#include <math.h>

#include "gstimagingjson.h"

/* Returns: as @text, for the caller to write the value */
static GString *
begin (GstPictureSinkJson *self, const gchar *key)
{
  GString *s = self->text;
  gchar last = s->len > 0 ? s->str[s->len - 1] : '\0';

  if (last && last != '{' && last != '[')
    g_string_append_c (s, ',');
  if (key) {
    g_string_append_printf (s, "\n%*s\"%s\": ", 2 * self->depth, "", key);
  } else if (last && last != '{' && last != '[') {
    g_string_append_c (s, ' ');
  }
  return s;
}

void
gst_picture_sink_json_open (
    GstPictureSinkJson *self, const gchar *key, gchar bracket)
{
  g_string_append_c (begin (self, key), bracket);
  self->depth++;
}

void
gst_picture_sink_json_close (GstPictureSinkJson *self, gchar bracket)
{
  self->depth--;
  if (bracket == '}')
    g_string_append_printf (self->text, "\n%*s", 2 * self->depth, "");
  g_string_append_c (self->text, bracket);
}

void
gst_picture_sink_json_text (
    GstPictureSinkJson *self, const gchar *key, const gchar *text)
{
  GString *s = begin (self, key);

  if (text)
    gst_imaging_json_append_text (s, text);
  else
    g_string_append (s, "null");
}

void
gst_picture_sink_json_number (
    GstPictureSinkJson *self, const gchar *key, gdouble number)
{
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];

  g_string_append (begin (self, key),
      isfinite (number) ? g_ascii_dtostr (digits, sizeof (digits), number)
                        : "null");
}

void
gst_picture_sink_json_integer (
    GstPictureSinkJson *self, const gchar *key, guint64 number)
{
  g_string_append_printf (begin (self, key), "%" G_GUINT64_FORMAT, number);
}

void
gst_picture_sink_json_raw (
    GstPictureSinkJson *self, const gchar *key, const gchar *json)
{
  g_string_append (begin (self, key), json);
}
