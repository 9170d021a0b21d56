/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Buffers for parts of other buffers. One that was let go waits without memory,
 * with its pooled metadata: that of an image is all but the same as of the one
 * before, and to make it anew takes longer than all else that is done for it.
 */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_TYPE_IMAGING_PARTS (gst_imaging_parts_get_type ())
G_DECLARE_FINAL_TYPE (
    GstImagingParts, gst_imaging_parts, GST, IMAGING_PARTS, GstBufferPool)

G_END_DECLS
