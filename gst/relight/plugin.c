/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstrelight.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  return GST_ELEMENT_REGISTER (relight, plugin);
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, relight,
    "A surface under a light that moves, on the CPU and the GPU", plugin_init,
    PACKAGE_VERSION, PLUGIN_LICENSE, GST_PACKAGE_NAME, GST_PACKAGE_ORIGIN)
