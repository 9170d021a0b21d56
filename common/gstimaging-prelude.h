/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/gst.h>

#ifdef BUILDING_GST_IMAGING
#define GST_IMAGING_API __attribute__ ((visibility ("default"))) extern
#else
#define GST_IMAGING_API extern
#endif

/* Holds @mutex to the end of the block. */
#define GST_IMAGING_HOLD(mutex) \
  G_GNUC_UNUSED g_autoptr (GMutexLocker) gst_imaging_held = \
      g_mutex_locker_new (mutex)
