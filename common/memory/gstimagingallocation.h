/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingengine.h"

G_BEGIN_DECLS

/**
 * gst_imaging_allocation_propose: (skip)
 * @engine: of the element
 * @query: an allocation query that upstream asks
 *
 * On CUDA, offers page-locked memory, unless our memory is offered already: a
 * camera, or any other source, writes where the GPU reads. For video a pool,
 * else the allocator alone.
 */
GST_IMAGING_API
void gst_imaging_allocation_propose (GstImagingEngine *engine, GstQuery *query);

/**
 * gst_imaging_allocation_decide: (skip)
 * @engine: of the element
 * @query: an allocation query that downstream has answered
 *
 * Replaces downstream's pool: ours is where the kernel writes, and every
 * element can map what comes out of it.
 *
 * Returns: %FALSE when there can be no pool for the caps of @query
 */
GST_IMAGING_API
gboolean gst_imaging_allocation_decide (
    GstImagingEngine *engine, GstQuery *query);

/**
 * gst_imaging_allocation_decide_plain: (skip)
 * @engine: an open engine
 * @query: an allocation query of frames that are not video
 *
 * Answers with an allocator, of memory where the kernel writes, and without a
 * pool: those of video refuse the caps of other frames.
 */
void gst_imaging_allocation_decide_plain (
    GstImagingEngine *engine, GstQuery *query);

/**
 * gst_imaging_allocation_decide_mode: (skip)
 * @mode: of frames on CUDA that are in no other memory by their caps
 *
 * gst_imaging_allocation_decide() with a choice where frames are born.
 */
GST_IMAGING_API
gboolean gst_imaging_allocation_decide_mode (
    GstImagingEngine *engine, GstQuery *query, GstImagingMemoryMode mode);

/**
 * gst_imaging_allocation_pool_new: (skip)
 * @engine: of the element, whose kernel writes into the buffers
 * @caps: of the buffers; their features say in which memory
 * @info: of @caps
 * @with_meta: whether the peer knows GstVideoMeta
 * @mode: of frames on CUDA that are in no other memory by their caps
 * @allocator: (out) (nullable) (transfer full): of the pool
 * @size: (out): of a buffer
 *
 * Returns: (nullable) (transfer full): a configured pool, not active
 */
GST_IMAGING_API
GstBufferPool *gst_imaging_allocation_pool_new (GstImagingEngine *engine,
    GstCaps *caps, const GstVideoInfo *info, gboolean with_meta,
    GstImagingMemoryMode mode, GstAllocator **allocator, guint *size);

G_END_DECLS
