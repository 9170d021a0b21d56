/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/video/video.h>

#include "gstimagingmemory.h"

#include "imk/image.h"

G_BEGIN_DECLS

/**
 * GstImagingReach:
 * @GST_IMAGING_REACH_HOST: the CPU
 * @GST_IMAGING_REACH_DEVICE: a kernel that reads samples more than once
 * @GST_IMAGING_REACH_DEVICE_OR_MAPPED: a kernel that touches each sample once,
 *   and takes page-locked host memory as it is
 *
 * Which processor will read or write the memory of a frame.
 */
typedef enum {
  GST_IMAGING_REACH_HOST,
  GST_IMAGING_REACH_DEVICE,
  GST_IMAGING_REACH_DEVICE_OR_MAPPED,
} GstImagingReach;

/**
 * GstImagingFrame: (skip)
 * @planes: the picture, a plane each, as kernels take it
 * @n_planes: how many
 * @stream: the stream that kernels work on, %NULL on the host
 * @memory_name: "system", "pinned", "device", "CUDAMemory", "NVMM",
 *   "NVMM-array"
 *
 * A mapped buffer.
 */
typedef struct _GstImagingFrame {
  ImkImage planes[GST_VIDEO_MAX_PLANES];
  guint n_planes;
  gpointer stream;
  const gchar *memory_name;

  /*< private >*/
  const struct _GstImagingMapper *mapper;
  GstBuffer *buffer;
  GstMapFlags access;
  GstVideoFrame video;
  gpointer mapping; /* of NVMM */
} GstImagingFrame;

/**
 * gst_imaging_frame_can_map: (skip)
 * @buffer: a video buffer
 * @context: (nullable): the context of the kernels
 * @reach: who is going to use it
 *
 * Returns: whether gst_imaging_frame_map() takes @buffer as it is; if not,
 *   gst_imaging_frame_import() makes one that it takes
 */
GST_IMAGING_API
gboolean gst_imaging_frame_can_map (
    GstBuffer *buffer, GstImagingContext *context, GstImagingReach reach);

/**
 * gst_imaging_frame_map: (skip)
 * @buffer: a buffer for which gst_imaging_frame_can_map() holds
 * @info: its format
 * @access: %GST_MAP_READ or %GST_MAP_WRITE
 * @reach: who is going to use it
 * @context: (nullable): for a device: current for this thread
 * @stream: (nullable): for a device: where the kernels run
 * @stats: (nullable): where an upload is counted
 * @frame: (out): the planes
 *
 * The one place that knows kinds of memory. Device frames are valid for work
 * put on @stream from now on.
 *
 * Returns: IMK_OK, or an error and nothing to unmap
 */
GST_IMAGING_API
ImkStatus gst_imaging_frame_map (GstBuffer *buffer, const GstVideoInfo *info,
    GstMapFlags access, GstImagingReach reach, GstImagingContext *context,
    gpointer stream, GstImagingStats *stats, GstImagingFrame *frame,
    ImkError *error);

/**
 * gst_imaging_frame_unmap: (skip)
 * @frame: a mapped frame
 * @done: whether the caller has waited for the stream since
 *
 * Returns: IMK_ERROR_DEVICE when the end of the work could not be marked
 */
GST_IMAGING_API
ImkStatus gst_imaging_frame_unmap (
    GstImagingFrame *frame, gboolean done, ImkError *error);

/**
 * gst_imaging_frame_end: (skip)
 * @status: of the work on @frame; @error says why it is not IMK_OK
 *
 * gst_imaging_frame_unmap() after work that may have failed.
 *
 * Returns: the first failure, to which @error belongs
 */
GST_IMAGING_API
ImkStatus gst_imaging_frame_end (
    GstImagingFrame *frame, gboolean done, ImkStatus status, ImkError *error);

/**
 * gst_imaging_frame_import: (skip)
 * @buffer: a buffer in memory that no kernel reaches
 * @info: its format
 * @pool: (nullable): an active pool of UPLOAD imaging memory for @info; %NULL
 *   where none could be made
 * @stats: (nullable): where the copy is counted
 *
 * Returns: (transfer full) (nullable): a copy of the samples in a buffer of
 *   @pool; %NULL with @error set: IMK_ERROR_IMAGE for what is no frame of
 *   @info, IMK_ERROR_DEVICE when it cannot be copied
 */
GST_IMAGING_API
GstBuffer *gst_imaging_frame_import (GstBuffer *buffer,
    const GstVideoInfo *info, GstBufferPool *pool, GstImagingStats *stats,
    ImkError *error);

/**
 * gst_imaging_video_pool_new: (skip)
 * @allocator: of the memories
 * @caps: of the frames
 * @info: the same
 * @with_meta: whether buffers carry #GstVideoMeta
 *
 * Returns: (transfer full) (nullable): a configured, inactive pool
 */
GST_IMAGING_API
GstBufferPool *gst_imaging_video_pool_new (GstAllocator *allocator,
    GstCaps *caps, const GstVideoInfo *info, gboolean with_meta);

G_END_DECLS
