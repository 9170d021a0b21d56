/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A video pool for memories of slabs: frames are given out in the order in
 * which they lie in memory, so that those of one batch are neighbours, whatever
 * the order in which they were returned. */
#pragma once

#include <gst/video/gstvideopool.h>

#define GST_TYPE_IMAGING_POOL (gst_imaging_pool_get_type ())
G_DECLARE_FINAL_TYPE (
    GstImagingPool, gst_imaging_pool, GST, IMAGING_POOL, GstVideoBufferPool)

/* Returns: (transfer full): an inactive pool without configuration */
GstBufferPool *gst_imaging_pool_new (void);

/* Gives @pool (transfer full), of any kind, buffers of @size bytes, any number.
 * @allocator, @caps, @option: (nullable)
 * Returns: (transfer full) (nullable): @pool, inactive; NULL where it refuses
 */
GstBufferPool *gst_imaging_pool_configure (GstBufferPool *pool,
    GstAllocator *allocator, GstCaps *caps, gsize size, const gchar *option);
