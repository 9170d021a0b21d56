/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingelement.h"

#define GST_TYPE_PHOTO_STEREO (gst_photo_stereo_get_type ())
G_DECLARE_FINAL_TYPE (
    GstPhotoStereo, gst_photo_stereo, GST, PHOTO_STEREO, GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (photostereo);
