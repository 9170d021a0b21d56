/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingenum.h"

GType
gst_imaging_enum_type (const gchar *name, const GEnumValue *values)
{
  GType type = g_type_from_name (name);

  if (!type) {
    type = g_enum_register_static (name, values);
    gst_type_mark_as_plugin_api (type, 0);
  }
  return type;
}
