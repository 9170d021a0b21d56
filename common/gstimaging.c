/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimaging-private.h"

GST_DEBUG_CATEGORY (gst_imaging_debug);

void
gst_imaging_init_debug (void)
{
  static gsize done;

  if (g_once_init_enter (&done)) {
    GST_DEBUG_CATEGORY_INIT (gst_imaging_debug, "imaging", 0,
        "memory, contexts and results of gst-imaging");
    g_once_init_leave (&done, 1);
  }
}
