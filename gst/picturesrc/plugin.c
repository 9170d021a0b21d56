/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstpicturesrc.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  return GST_ELEMENT_REGISTER (picturesrc, plugin) &&
         GST_ELEMENT_REGISTER (npysrc, plugin);
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, picturesrc,
    "Plays pictures and arrays from files", plugin_init, PACKAGE_VERSION,
    PLUGIN_LICENSE, GST_PACKAGE_NAME, GST_PACKAGE_ORIGIN)
