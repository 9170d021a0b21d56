/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarfit.h"
#include "gstinsarxcorr.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  return GST_ELEMENT_REGISTER (insarxcorr, plugin) &&
         GST_ELEMENT_REGISTER (insarfit, plugin);
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, insarxcorr,
    "Offsets between SAR images", plugin_init, PACKAGE_VERSION, PLUGIN_LICENSE,
    GST_PACKAGE_NAME, GST_PACKAGE_ORIGIN)
