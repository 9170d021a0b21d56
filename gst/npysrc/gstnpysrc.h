/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingfilesrc.h"

G_BEGIN_DECLS

#define GST_TYPE_NPY_SRC (gst_npy_src_get_type ())
G_DECLARE_FINAL_TYPE (GstNpySrc, gst_npy_src, GST, NPY_SRC, GstImagingFileSrc)

GST_ELEMENT_REGISTER_DECLARE (npysrc);

G_END_DECLS
