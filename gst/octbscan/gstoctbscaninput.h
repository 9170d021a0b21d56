/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The input, of the streaming thread: from buffers and events to B-scans. */
#pragma once

#include "gstoctbscan-private.h"

/* --- gstoctbscanformat.c */

/* Makes of the mapped plane of a B-scan the image that kernels take, without
 * the lines of skip-first-line. */
void gst_oct_bscan_input_image (const GstOctBscan *self, ImkImage *plane);

/* Maps @bscan, one that is not on a device, as gst_oct_bscan_input_image ()
 * says; gst_video_frame_unmap () follows. Returns: FALSE where that fails */
gboolean gst_oct_bscan_map_input (const GstOctBscan *self, GstBuffer *bscan,
    GstMapFlags access, GstVideoFrame *frame, ImkImage *image);

/* Returns: the camera of the first line of the next B-scan that is not skipped
 */
guint gst_oct_bscan_first_camera (const GstOctBscan *self);

/* Returns: whether the samples of @buffer are on a device alone */
gboolean gst_oct_bscan_is_on_device (GstBuffer *buffer);

/* Returns: bytes from one B-scan of a work item to the next */
gsize gst_oct_bscan_work_in_step (const GstOctBscan *self);

/* --- gstoctbscanturns.c */

/* Drops the lines of an incomplete B-scan, with a warning of @why. */
void gst_oct_bscan_forget_lines (GstOctBscan *self, const gchar *why);

/* Outputs all images, and drops what is incomplete with a warning of @why. */
void gst_oct_bscan_end_run (GstOctBscan *self, const gchar *why);

/* The next line is that of first-camera. */
void gst_oct_bscan_begin_turns (GstOctBscan *self);

/* --- gstoctbscanactions.c */

void gst_oct_bscan_install_actions (GObjectClass *klass);

/* Runs requested actions on the B-scan @in. */
void gst_oct_bscan_follow_actions (GstOctBscan *self, GstBuffer *in);

/* --- gstoctbscansweep.c */

/* Returns: whether records are corrected */
gboolean gst_oct_bscan_has_sweeps (const Settings *settings);

/* @lines: of a B-scan */
ImkStatus gst_oct_bscan_check_sweeps (
    const Settings *settings, const ImkOctbscanConfig *lines, ImkError *error);

/* Corrects the records of the next B-scan, in a copy where they belong to
 * somebody else. */
ImkStatus gst_oct_bscan_correct_sweeps (
    GstOctBscan *self, GstBuffer **bscan, ImkError *error);

/* --- gstoctbscaninput.c */

void gst_oct_bscan_set_sink_functions (GstPad *sink);

/* Makes the queue drop its B-scans, or accept them again. Any thread. */
void gst_oct_bscan_set_flushing (GstOctBscan *self, gboolean flushing);
