/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshmimsink.h"
#include "gstshmimsrc.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  return GST_ELEMENT_REGISTER (shmimsrc, plugin) &&
         GST_ELEMENT_REGISTER (shmimsink, plugin);
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, shmim,
    "Streams in shared memory in the layout of ImageStreamIO", plugin_init,
    PACKAGE_VERSION, PLUGIN_LICENSE, GST_PACKAGE_NAME, GST_PACKAGE_ORIGIN)
