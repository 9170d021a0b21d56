/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingfilesrc.h"

#define GST_TYPE_PICTURE_SRC (gst_picture_src_get_type ())
G_DECLARE_FINAL_TYPE (
    GstPictureSrc, gst_picture_src, GST, PICTURE_SRC, GstImagingFileSrc)

GST_ELEMENT_REGISTER_DECLARE (picturesrc);
GST_ELEMENT_REGISTER_DECLARE (npysrc);
