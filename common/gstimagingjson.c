/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingjson.h"

#include <math.h>

#include "gstimaging-private.h"
#include "gstimagingnumber.h"

void
gst_imaging_json_append_text (GString *json, const gchar *text)
{
  g_autofree gchar *valid = g_utf8_make_valid (text, -1);

  g_string_append_c (json, '"');
  for (const gchar *at = valid; *at; at++)
    if (*at == '"' || *at == '\\')
      g_string_append_printf (json, "\\%c", *at);
    else if ((guchar) *at < ' ')
      g_string_append_printf (json, "\\u%04x", *at);
    else
      g_string_append_c (json, *at);
  g_string_append_c (json, '"');
}

void
gst_imaging_json_add_key (GString *json, const gchar *key)
{
  const gboolean is_first = json->len > 0 && json->str[json->len - 1] == '{';

  g_string_append_printf (json, "%s\"%s\":", is_first ? "" : ",", key);
}

void
gst_imaging_json_add_text (GString *json, const gchar *key, const gchar *text)
{
  gst_imaging_json_add_key (json, key);
  gst_imaging_json_append_text (json, text);
}

void
gst_imaging_json_add_number (GString *json, const gchar *key, gdouble value)
{
  gchar text[GST_IMAGING_NUMBER_SIZE];

  gst_imaging_json_add_key (json, key);
  if (isfinite (value))
    g_string_append_len (
        json, text, (gssize) gst_imaging_number_print (text, value));
  else
    g_string_append (json, "null");
}
