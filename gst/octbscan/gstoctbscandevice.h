/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A GPU and the batches of B-scans that are on it: each has a stream and memory
 * of its own, so that one is uploaded while another is computed and a third
 * downloaded. Neighbours in memory are copied together. */
#pragma once

#include "gstoctbscanwork.h"

typedef struct _GstOctBscanDevice GstOctBscanDevice;

/* @context: of the device; @kernel: (nullable): of the engine, on its context;
 *   without one the device makes its own; @n_slots: batches at a time
 * Returns: (transfer full) (nullable): NULL with @error set */
GstOctBscanDevice *gst_oct_bscan_device_new (GstOctBscan *element,
    GstImagingContext *context, ImkOctbscan *kernel, guint n_slots,
    ImkError *error);

/* No batch is on it. */
void gst_oct_bscan_device_free (GstOctBscanDevice *self);

/* Does what would otherwise make the first B-scans late. */
ImkStatus gst_oct_bscan_device_prepare (
    GstOctBscanDevice *self, ImkError *error);

/* Returns: its number, as CUDA counts */
gint gst_oct_bscan_device_id (GstOctBscanDevice *self);

/* Puts @works of one setting to work, as the batch of slot @number, and does
 * not wait. One thread at a time. Returns: an error, after which
 * gst_oct_bscan_device_finish is still due */
ImkStatus gst_oct_bscan_device_launch (GstOctBscanDevice *self, guint number,
    GstOctBscanWork **works, guint n, ImkError *error);

/* What the kernel took off last. Any thread. */
ImkStatus gst_oct_bscan_device_get (GstOctBscanDevice *self,
    GstOctBscanFound what, gpointer values, ImkError *error);

/* Waits for the batch of slot @number. */
ImkStatus gst_oct_bscan_device_finish (
    GstOctBscanDevice *self, guint number, ImkError *error);
