/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimaging-private.h"

void
gst_imaging_json_add_text (GString *json, const gchar *key, const gchar *text)
{
  g_string_append_printf (json, ",\"%s\":\"", key);
  for (; *text; text++)
    if (*text == '"' || *text == '\\')
      g_string_append_printf (json, "\\%c", *text);
    else if ((guchar) *text < ' ')
      g_string_append_printf (json, "\\u%04x", *text);
    else
      g_string_append_c (json, *text);
  g_string_append_c (json, '"');
}
