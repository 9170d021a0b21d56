/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The queue of B-scans. They arrive one by one, go to an idle device in a
 * batch, and are pushed in the order of their arrival. While all devices are
 * busy, B-scans wait until they are a full batch or a device is idle. */
#pragma once

#include "gstoctbscandevice.h"

/* @devices: (transfer full) (element-type GstOctBscanDevice): at least one
 * @n_batches: that each device holds at a time
 * @n_full: B-scans of a full batch */
GstOctBscanQueue *gst_oct_bscan_queue_new (
    GstOctBscan *element, GPtrArray *devices, guint n_batches, guint n_full);

/* Waits for the devices and drops unpushed B-scans. The pads are flushing, or
 * the queue is empty. */
void gst_oct_bscan_queue_free (GstOctBscanQueue *self);

/* @work: (transfer full)
 *
 * Blocks while the queue is full.
 * Returns: the flow return of earlier B-scans */
GstFlowReturn gst_oct_bscan_queue_add_work (
    GstOctBscanQueue *self, GstOctBscanWork *work);

/* Waits until all B-scans have been pushed or dropped. */
void gst_oct_bscan_queue_drain (GstOctBscanQueue *self);

/* The same, for at most @us, and not while flushing. */
void gst_oct_bscan_queue_wait (GstOctBscanQueue *self, gint64 us);

/* @flushing: TRUE: drop all B-scans from now on; FALSE: forget the last flow
 * return and push again */
void gst_oct_bscan_queue_set_flushing (
    GstOctBscanQueue *self, gboolean flushing);

/* What the first device took off last. Any thread. */
ImkStatus gst_oct_bscan_queue_get (GstOctBscanQueue *self,
    GstOctBscanFound what, gpointer values, ImkError *error);

/* Returns: how many B-scans the queue holds at most */
guint gst_oct_bscan_queue_capacity (GstOctBscanQueue *self);

/* Returns: (transfer full): the number of B-scans of each device, "cuda0",
 * "cuda1", ...; "cpu": those after the loss of the last device */
GstStructure *gst_oct_bscan_queue_shares (GstOctBscanQueue *self);
