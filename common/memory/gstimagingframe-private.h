/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a kind of memory joins gst_imaging_frame_map (). */
#pragma once

#include "gstimagingframe.h"

/* One kind of memory. */
typedef struct _GstImagingMapper {
  gboolean (*can_map) (
      GstBuffer *buffer, GstImagingContext *context, GstImagingReach reach);
  /* Fills data, stride and location of the planes, and memory_name; the rest
   * of @frame is set. */
  ImkStatus (*map) (GstImagingFrame *frame, const GstVideoInfo *info,
      GstImagingReach reach, GstImagingStats *stats, ImkError *error);
  ImkStatus (*unmap) (GstImagingFrame *frame, gboolean done, ImkError *error);
} GstImagingMapper;

/* Returns: size, channels and type of a plane, without its memory */
ImkImage gst_imaging_frame_describe_plane (
    const GstVideoInfo *info, guint plane);

/* The planes of a GstVideoFrame that has been mapped. */
void gst_imaging_frame_take_planes (
    GstImagingFrame *frame, ImkLocation location, const gchar *memory_name);

/* Whether @buffer holds all rows of a frame of @info, as it lies in it.
 * Returns: IMK_OK or IMK_ERROR_IMAGE */
ImkStatus gst_imaging_frame_check_size (
    GstBuffer *buffer, const GstVideoInfo *info, ImkError *error);
