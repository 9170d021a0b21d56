/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/base/gstpushsrc.h>

G_BEGIN_DECLS

#define GST_TYPE_SHMIM_SRC (gst_shmim_src_get_type ())
G_DECLARE_FINAL_TYPE (GstShmimSrc, gst_shmim_src, GST, SHMIM_SRC, GstPushSrc)

GST_ELEMENT_REGISTER_DECLARE (shmimsrc);

G_END_DECLS
