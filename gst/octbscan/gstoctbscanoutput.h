/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The output, of the thread that pushes: from images to the pads. */
#pragma once

#include "gstoctbscanwork.h"

/* --- gstoctbscannegotiate.c */

/* Negotiates a pad. Call with the engine locked; it is unlocked during the
 * allocation query.
 * @pad: (nullable): of @output */
GstFlowReturn gst_oct_bscan_negotiate (
    GstOctBscan *self, guint output, GstOctBscanPad *pad);

/* Acquires the buffers for the images of @work, from pads that are linked. Call
 * with the engine locked. */
GstFlowReturn gst_oct_bscan_prepare_outputs (
    GstOctBscan *self, GstOctBscanWork *work);

/* --- gstoctbscanoutput.c */

/* Posts an error. Locks the engine. Returns: GST_FLOW_ERROR */
GstFlowReturn gst_oct_bscan_post_error (
    GstOctBscan *self, const ImkError *error);

/* Returns: the combined flow of all pads after @output has returned @flow */
GstFlowReturn gst_oct_bscan_combine (GstOctBscan *self,
    const GstOctBscanSnapshot *snapshot, guint output, GstFlowReturn flow);

/* Warns that @n rows do not fill an en-face image, unless @n is 0. */
void gst_oct_bscan_warn_of_rows (GstOctBscan *self, guint n, const gchar *why);

/* Pushes the images of a work item. One thread at a time. */
GstFlowReturn gst_oct_bscan_push_images (
    GstOctBscan *self, GstOctBscanWork *work);

/* Counts @work in the statistics. One thread at a time. */
void gst_oct_bscan_count (GstOctBscan *self, const GstOctBscanWork *work);

/* --- gstoctbscanlines.c */

/* Adds the lines of a work item of one B-scan to those of its mean. One thread
 * at a time. */
void gst_oct_bscan_add_lines (GstOctBscan *self, const GstOctBscanWork *work);

/* Returns: depths that tracking has moved image @k, the mean of those in a mean
 */
gdouble gst_oct_bscan_shift (const GstOctBscan *self,
    const GstOctBscanWork *work, guint output, guint k);

/* Attaches camera and shift of each line to image @k, with several cameras or
 * tracking. */
void gst_oct_bscan_attach_lines (GstOctBscan *self, const GstOctBscanWork *work,
    guint output, guint k, GstBuffer *image);

/* --- gstoctbscanquantity.c */

/* Of an image, from the kernel and the settings in use. Call with the engine
 * locked. */
GstImagingAxis gst_oct_bscan_depth_axis (const GstOctBscan *self);
GstImagingAxis gst_oct_bscan_lateral_axis (const GstOctBscan *self);

/* Returns: what made the images of @work; valid as long as @work */
GstImagingOrigin gst_oct_bscan_origin (const GstOctBscanWork *work);

/* Attaches to an en-face image what its samples are, and what made it.
 * @ends: as in ImkOctbscanJob */
void gst_oct_bscan_describe_volume (const GstOctBscanWork *work,
    GstBuffer *image, gboolean db, const gfloat ends[4]);

/* The same for image @k of @work.
 * @shift: as gst_oct_bscan_shift () tells */
void gst_oct_bscan_describe_image (const GstOctBscanWork *work, guint output,
    guint k, gdouble shift, GstBuffer *image);
