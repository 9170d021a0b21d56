/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstnpysrc.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  return GST_ELEMENT_REGISTER (npysrc, plugin);
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, npysrc,
    "Plays arrays from files as video frames", plugin_init, PACKAGE_VERSION,
    PLUGIN_LICENSE, GST_PACKAGE_NAME, GST_PACKAGE_ORIGIN)
