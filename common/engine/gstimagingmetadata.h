/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/**
 * gst_imaging_metadata_copy: (skip)
 * @to: a writable buffer that an element has made
 * @from: the buffer that it was made of
 * @same_geometry: whether a pixel of @to is the same place as that of @from
 *
 * Copies the metas of @from that are still true: reference timestamps,
 * timecodes and custom metas always; regions of interest and all that has to do
 * with size or orientation with @same_geometry only. Metas of the memory, the
 * #GstVideoMeta and our own metas that describe samples are not copied: the
 * element has others.
 */
GST_IMAGING_API
void gst_imaging_metadata_copy (
    GstBuffer *to, GstBuffer *from, gboolean same_geometry);

/**
 * gst_imaging_metadata_latest: (skip)
 * @buffers: (array length=n): of each input, in the order of the pads; %NULL
 *   where there is none
 *
 * Returns: (transfer none) (nullable): the buffer with the latest pts, whose
 *   metadata is that of the output; on a tie and without any pts the first
 */
GST_IMAGING_API
GstBuffer *gst_imaging_metadata_latest (GstBuffer *const *buffers, guint n);

/**
 * gst_imaging_metadata_pass: (skip)
 *
 * Flags, times, offsets and metas of @from for @to.
 */
GST_IMAGING_API
void gst_imaging_metadata_pass (
    GstBuffer *to, GstBuffer *from, gboolean same_geometry);

G_END_DECLS
