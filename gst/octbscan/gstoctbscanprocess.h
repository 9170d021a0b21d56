/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a B-scan to its images: on the CPU at once, on GPUs through the queue.
 */
#pragma once

#include "gstoctbscan-private.h"

/* @work: (transfer full) */
GstFlowReturn gst_oct_bscan_process (GstOctBscan *self, GstOctBscanWork *work);

/* Pushes the images of an incomplete mean, if there is one. */
GstFlowReturn gst_oct_bscan_show_mean (GstOctBscan *self);

/* Waits until all accepted B-scans have been pushed. */
void gst_oct_bscan_drain (GstOctBscan *self);

/* Opens the devices for the kernel on CUDA; otherwise the first B-scan does so.
 * Call with the engine locked. */
ImkStatus gst_oct_bscan_need_devices (GstOctBscan *self, ImkError *error);

/* Releases the devices, before properties or caps change and at the end. The
 * queue is drained or flushing. */
void gst_oct_bscan_release_devices (GstOctBscan *self);

/* Handles a failure of the device before it received @w (nullable). Returns:
 * whether the CPU continues; if not, an error has been posted */
gboolean gst_oct_bscan_leave_device (GstOctBscan *self,
    const GstOctBscanWork *w, ImkStatus status, const ImkError *why);
