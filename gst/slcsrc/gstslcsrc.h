/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingfilesrc.h"

#define GST_TYPE_SLC_SRC (gst_slc_src_get_type ())
G_DECLARE_FINAL_TYPE (GstSlcSrc, gst_slc_src, GST, SLC_SRC, GstImagingFileSrc)

GST_ELEMENT_REGISTER_DECLARE (slcsrc);
