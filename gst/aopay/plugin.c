/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstaodepay.h"
#include "gstaopay.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  return GST_ELEMENT_REGISTER (aopay, plugin) &&
         GST_ELEMENT_REGISTER (aodepay, plugin);
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, aopay,
    "Slopes and commands as datagrams", plugin_init, PACKAGE_VERSION,
    PLUGIN_LICENSE, GST_PACKAGE_NAME, GST_PACKAGE_ORIGIN)
