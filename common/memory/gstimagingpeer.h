/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames that another device has made: copied from device to device, without
 * a trip through the host. */
#pragma once

#include <gst/video/video.h>

#include "gstimagingmemory.h"

enum { GST_IMAGING_PEER_TURNS = 2 };

/* The place of the copies; begins as zeros. */
typedef struct {
  /* (nullable): copies that are kept from the pool for a while, so that the
   * next one does not wait for the kernel that reads the last one */
  GstBuffer *recent[GST_IMAGING_PEER_TURNS];
  guint turn;
  GstBufferPool *pool;
  GstImagingContext *from; /* whose device has a way to ours */
  gsize size;              /* of a buffer of the pool */
} GstImagingPeer;

/* Returns: whether the samples of @buffer are only in the memory of another
 * device than that of @context, and can be copied by gst_imaging_peer_import()
 */
gboolean gst_imaging_peer_has (GstBuffer *buffer, GstImagingContext *context);

/* @buffer: one for which gst_imaging_peer_has() holds
 * @context: of the own device, always the same until gst_imaging_peer_clear()
 * @stats: (nullable): where the copy is counted
 * Returns: (transfer full) (nullable): a copy of the samples, with the
 *   GstVideoMeta; streams wait for it, the CPU does not. NULL with @error set
 */
GstBuffer *gst_imaging_peer_import (GstImagingPeer *self, GstBuffer *buffer,
    GstImagingContext *context, GstImagingStats *stats, ImkError *error);

void gst_imaging_peer_clear (GstImagingPeer *self);
