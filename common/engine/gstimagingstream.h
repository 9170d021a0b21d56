/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/gst.h>

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/* Events and times of streams, for all elements. */

/**
 * gst_imaging_stream_time: (skip)
 * @segment: of the stream of @buffer
 *
 * Returns: the stream time of @buffer, which values of a GstController follow;
 *   GST_CLOCK_TIME_NONE without pts, and when @segment has another format than
 *   time
 */
GST_IMAGING_API
GstClockTime gst_imaging_stream_time (
    const GstSegment *segment, GstBuffer *buffer);

/**
 * gst_imaging_stream_start_new: (skip)
 * @id: of the new stream
 * @upstream: (nullable): stream-start of the stream that it is made of
 *
 * Returns: (transfer full): a stream-start with the group and the sequence
 *   number of @upstream
 */
GST_IMAGING_API
GstEvent *gst_imaging_stream_start_new (const gchar *id, GstEvent *upstream);

/**
 * gst_imaging_stream_segment: (skip)
 * @upstream: (nullable): the segment of the stream
 *
 * Returns: (transfer full): @upstream, or a segment of time without limits
 */
GST_IMAGING_API
GstEvent *gst_imaging_stream_segment (GstEvent *upstream);

/* Returns: (transfer full) (nullable): the first sink pad of an element with
 * @least of them or more, at least 1. Internal. */
GstPad *gst_imaging_stream_first_sink (GstElement *element, guint least);

/* Returns: whether @pad has a sticky event of @type. Internal. */
gboolean gst_imaging_stream_has_sent (GstPad *pad, GstEventType type);

G_END_DECLS
