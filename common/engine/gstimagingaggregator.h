/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/base/gstaggregator.h>

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/* What our elements need beyond #GstAggregator: gaps, an error message for
 * refused caps, events in order, and a stream-start that belongs to the streams
 * of its inputs. */

/**
 * gst_imaging_aggregator_init: (skip)
 * @held: queue of the element for gst_imaging_aggregator_keep_event(); its
 *   events are sent before the first buffer
 *
 * Call this in the element's init. The stream-start of the source pad has the
 * group and the sequence number of the first sink pad.
 */
GST_IMAGING_API
void gst_imaging_aggregator_init (GstAggregator *self, GQueue *held);

/**
 * gst_imaging_aggregator_negotiate: (skip)
 * @parent: the class that negotiates
 * @posted: set by the element while @parent negotiates when it has posted an
 *   error itself
 *
 * Posts an error when downstream refuses the caps: upstream may have no further
 * buffer that could be refused.
 * Returns: what @parent returns
 */
GST_IMAGING_API
gboolean gst_imaging_aggregator_negotiate (
    GstAggregator *self, GstAggregatorClass *parent, const gboolean *posted);

/**
 * gst_imaging_aggregator_keep_event: (skip)
 * @held: queue of events, used by the aggregating thread
 * @event: (transfer none): arrived on @pad; (transfer full) when it is kept
 *
 * Call this first for each event of a sink pad. The parent class forwards
 * custom events even before the stream has a segment, so they wait in @held. A
 * gap is dropped unless the segment has format time; the parent class could not
 * make a buffer of it.
 * Returns: whether @event needs no further handling
 */
GST_IMAGING_API
gboolean gst_imaging_aggregator_keep_event (
    GstAggregator *self, GstAggregatorPad *pad, GQueue *held, GstEvent *event);

/**
 * gst_imaging_aggregator_refuse_seek: (skip)
 * @event: (transfer none): arrived on the source pad
 *
 * Call this first for each event of the source pad. A flushing seek stops the
 * parent class until all inputs have been flushed, so it never continues when
 * one of them cannot seek.
 * Returns: whether @event is such a seek, to be dropped with the result %FALSE
 */
GST_IMAGING_API
gboolean gst_imaging_aggregator_refuse_seek (
    GstAggregator *self, GstEvent *event);

/**
 * gst_imaging_aggregator_finish: (skip)
 * @buffer: (transfer full): as of gst_aggregator_finish_buffer()
 *
 * Posts an error when downstream refuses the caps.
 * Returns: the flow of gst_aggregator_finish_buffer()
 */
GST_IMAGING_API
GstFlowReturn gst_imaging_aggregator_finish (
    GstAggregator *self, GstBuffer *buffer);

/**
 * gst_imaging_aggregator_is_gap: (skip)
 *
 * Returns: whether @buffer stands for a gap, in which a frame is missing
 */
GST_IMAGING_API
gboolean gst_imaging_aggregator_is_gap (GstBuffer *buffer);

/**
 * gst_imaging_aggregator_push_gap: (skip)
 *
 * Sends a gap event downstream, if a segment has been sent.
 */
GST_IMAGING_API
void gst_imaging_aggregator_push_gap (
    GstAggregator *self, GstClockTime pts, GstClockTime duration);

G_END_DECLS
