/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From buffers of any number of lines to B-scans of one. */
#pragma once

#include <gst/video/video.h>

#include "imk/status.h"

typedef struct _GstOctBscanGroup GstOctBscanGroup;

GstOctBscanGroup *gst_oct_bscan_group_new (void);
void gst_oct_bscan_group_free (GstOctBscanGroup *self);

/* @lines: of the buffers that come; @bscan: the format of a B-scan; @pool:
 * (nullable): an active pool for them. What was collected is forgotten. */
void gst_oct_bscan_group_setup (GstOctBscanGroup *self,
    const GstVideoInfo *lines, const GstVideoInfo *bscan, GstBufferPool *pool);

/* Forgets what was collected. Returns: how many lines that were */
guint gst_oct_bscan_group_reset (GstOctBscanGroup *self);

/* Returns: lines that wait for more */
guint gst_oct_bscan_group_n_waiting (GstOctBscanGroup *self);

/* Leaves out the next @n lines. */
void gst_oct_bscan_group_skip (GstOctBscanGroup *self, guint n);

/* Takes @buffer (transfer full), whose lines gst_oct_bscan_group_next gives. */
void gst_oct_bscan_group_add_lines (GstOctBscanGroup *self, GstBuffer *buffer);

/* @most: B-scans that may come together, where they lie together in the buffer
 *   as they are to be
 * @n: (out): how many do
 *
 * Returns: (transfer full) (nullable): the next B-scans, one behind the other:
 *   the buffer itself, or a part of it that holds it, or a copy of lines, which
 *   is one B-scan. NULL when more lines are needed, or with @error set. Time
 * and duration are those of the first */
GstBuffer *gst_oct_bscan_group_next (GstOctBscanGroup *self, guint most,
    guint *n, ImkStatus *status, ImkError *error);
