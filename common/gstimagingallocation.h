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
 * gst_imaging_allocation_decide_mode: (skip)
 * @mode: of frames on CUDA that are in no other memory by their caps
 *
 * gst_imaging_allocation_decide() with a choice where frames are born.
 */
GST_IMAGING_API
gboolean gst_imaging_allocation_decide_mode (
    GstImagingEngine *engine, GstQuery *query, GstImagingMemoryMode mode);

G_END_DECLS
