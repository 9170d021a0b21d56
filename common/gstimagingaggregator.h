/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/base/gstaggregator.h>

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/* What our elements add to #GstAggregator. It makes of a gap an empty buffer;
 * of refused caps nothing that an application hears of; and of its stream one
 * that has nothing to do with those that came. */

/**
 * gst_imaging_aggregator_init: (skip)
 * @held: of the element: where gst_imaging_aggregator_hold() puts events, which
 *   leave before the first buffer
 *
 * In the element's init: from now on the stream-start that leaves has the
 * group and the sequence number of the first sink pad's.
 */
GST_IMAGING_API
void gst_imaging_aggregator_init (GstAggregator *self, GQueue *held);

/**
 * gst_imaging_aggregator_negotiate: (skip)
 * @parent: the class that negotiates
 * @said: set when what is wrong has been said already
 *
 * Returns: what @parent returns; where downstream refuses, after an error has
 *   been posted, as upstream may have given all that it has
 */
GST_IMAGING_API
gboolean gst_imaging_aggregator_negotiate (
    GstAggregator *self, GstAggregatorClass *parent, const gboolean *said);

/**
 * gst_imaging_aggregator_hold: (skip)
 * @held: events that wait; of the aggregating thread
 * @event: (transfer none): what came in on a sink pad
 *
 * The parent class passes on at once what has no meaning for it, as an
 * application's own events, even where nothing has been sent yet.
 * Returns: whether @event waits in @held for the segment
 */
GST_IMAGING_API
gboolean gst_imaging_aggregator_hold (
    GstAggregator *self, GQueue *held, GstEvent *event);

/**
 * gst_imaging_aggregator_finish: (skip)
 * @buffer: (transfer full): as of gst_aggregator_finish_buffer()
 *
 * Returns: its flow; where downstream refuses the caps, after an error has been
 *   posted
 */
GST_IMAGING_API
GstFlowReturn gst_imaging_aggregator_finish (
    GstAggregator *self, GstBuffer *buffer);

/**
 * gst_imaging_aggregator_takes_gap: (skip)
 *
 * Returns: whether the parent class can make a buffer of a gap that came on
 *   @pad: only a segment of time has gaps
 */
GST_IMAGING_API
gboolean gst_imaging_aggregator_takes_gap (GstAggregatorPad *pad);

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
 * Downstream hears that nothing comes, where a segment has been sent.
 */
GST_IMAGING_API
void gst_imaging_aggregator_push_gap (
    GstAggregator *self, GstClockTime pts, GstClockTime duration);

G_END_DECLS
