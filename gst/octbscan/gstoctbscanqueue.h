/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The order of B-scans: they come one by one, go to the devices in batches as
 * soon as one has nothing to do, and leave as they came. What comes while all
 * are at work waits until it is a full batch, or a device is free. */
#pragma once

#include "gstoctbscandevice.h"

G_BEGIN_DECLS

/* @devices: (transfer full) (element-type GstOctBscanDevice): at least one
 * @n_batches: that each takes at a time
 * @n_full: B-scans that make a batch behind another */
GstOctBscanQueue *gst_oct_bscan_queue_new (
    GstOctBscan *element, GPtrArray *devices, guint n_batches, guint n_full);

/* Waits for the devices; what has not been pushed is dropped. The pads are
 * flushing, or nothing is left. */
void gst_oct_bscan_queue_free (GstOctBscanQueue *self);

/* Takes @work. Waits while too much is waiting.
 * Returns: what downstream has said to those before */
GstFlowReturn gst_oct_bscan_queue_push (
    GstOctBscanQueue *self, GstOctBscanWork *work);

/* Waits until all has been pushed, or dropped. */
void gst_oct_bscan_queue_drain (GstOctBscanQueue *self);

/* The same, for at most @us, and not while flushing. */
void gst_oct_bscan_queue_wait (GstOctBscanQueue *self, gint64 us);

/* @flushing: from now on all is dropped; else downstream takes B-scans again,
 * whatever it has said */
void gst_oct_bscan_queue_set_flushing (
    GstOctBscanQueue *self, gboolean flushing);

/* The fixed pattern that the first device has taken off last. Any thread. */
ImkStatus gst_oct_bscan_queue_get_pattern (
    GstOctBscanQueue *self, gfloat *pattern, ImkError *error);

/* Returns: how many B-scans may be inside */
guint gst_oct_bscan_queue_capacity (GstOctBscanQueue *self);

/* Returns: (transfer full): how many B-scans each device has made, "cuda0",
 * "cuda1", ..., and "cpu" those after the last device was lost */
GstStructure *gst_oct_bscan_queue_shares (GstOctBscanQueue *self);

G_END_DECLS
