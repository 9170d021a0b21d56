/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The plug-in of the elements that a folder declares. The build gives
 * PLUGIN_NAME, PLUGIN_DESCRIPTION and PLUGIN_ELEMENTS, which has ELEMENT (name)
 * for each element. */
#include <gst/gst.h>

#define ELEMENT(name) GST_ELEMENT_REGISTER_DECLARE (name)
PLUGIN_ELEMENTS
#undef ELEMENT

#define ELEMENT(name) GST_ELEMENT_REGISTER (name, plugin) &&

static gboolean
plugin_init (GstPlugin *plugin)
{
  return PLUGIN_ELEMENTS TRUE;
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, PLUGIN_NAME,
    PLUGIN_DESCRIPTION, plugin_init, PACKAGE_VERSION, PLUGIN_LICENSE,
    GST_PACKAGE_NAME, GST_PACKAGE_ORIGIN)
