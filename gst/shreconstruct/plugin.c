/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstruct.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  return GST_ELEMENT_REGISTER (shreconstruct, plugin);
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, shreconstruct,
    "Commands of a mirror from Shack-Hartmann slopes", plugin_init,
    PACKAGE_VERSION, PLUGIN_LICENSE, GST_PACKAGE_NAME, GST_PACKAGE_ORIGIN)
