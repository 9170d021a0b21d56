/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingformat.h"

#include <json-glib/json-glib.h>

/* Returns: (transfer full) (nullable) */
GVariant *
gst_imaging_format_parse_json (const gchar *text)
{
  GVariant *value = json_gvariant_deserialize_data (text, -1, NULL, NULL);

  return value ? g_variant_take_ref (value) : NULL;
}
