/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctangio.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  return GST_ELEMENT_REGISTER (octangio, plugin);
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, octangio,
    "Flow from repeated B-scans of optical coherence tomography", plugin_init,
    PACKAGE_VERSION, PLUGIN_LICENSE, GST_PACKAGE_NAME, GST_PACKAGE_ORIGIN)
