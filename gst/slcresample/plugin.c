/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstslcresample.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  return GST_ELEMENT_REGISTER (slcresample, plugin);
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, slcresample,
    "Resamples SAR images into the geometry of a reference", plugin_init,
    PACKAGE_VERSION, PLUGIN_LICENSE, GST_PACKAGE_NAME, GST_PACKAGE_ORIGIN)
