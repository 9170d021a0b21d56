/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructtensors.h"

GstCaps *
gst_sh_reconstruct_tensor_caps (const gchar *dimensions, gint fps_n, gint fps_d)
{
  GstCaps *caps = gst_caps_from_string (GST_SH_RECONSTRUCT_TENSOR_CAPS);

  gst_caps_set_simple (caps, "dimensions", G_TYPE_STRING, dimensions,
      "framerate", GST_TYPE_FRACTION, fps_n, fps_d, NULL);
  return caps;
}

GstCaps *
gst_sh_reconstruct_commands_caps (guint n, gint fps_n, gint fps_d)
{
  g_autofree gchar *dimensions = g_strdup_printf ("%u:1:1:1", n);

  return gst_sh_reconstruct_tensor_caps (dimensions, fps_n, fps_d);
}
