/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingelement.h"

G_BEGIN_DECLS

#define GST_TYPE_SH_RECONSTRUCT (gst_sh_reconstruct_get_type ())
G_DECLARE_FINAL_TYPE (GstShReconstruct, gst_sh_reconstruct, GST, SH_RECONSTRUCT,
    GstImagingElement)

GST_ELEMENT_REGISTER_DECLARE (shreconstruct);

G_END_DECLS
