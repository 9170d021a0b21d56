/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames that are appended to a file, which is valid after each of them. */
#pragma once

#include "gstimagingndarray.h"

/**
 * GstImagingArrayRecorder: (skip)
 *
 * A file that grows. A new one gets its name with its first frame, and replaces
 * what was there. After a crash or on a full disk it has all complete frames.
 */
typedef struct _GstImagingArrayRecorder GstImagingArrayRecorder;

/**
 * gst_imaging_array_recorder_new: (skip)
 * @location: path of the file; its extension selects the format
 * @frame: type, n_dims and dims of a frame, axes and cards; no values are
 * needed
 * @append: whether to continue a file that is there. Its frames must be like
 *   @frame
 * @n_expected: the most frames that will be in it; 0: not known, so that TIFF
 *   becomes BigTIFF
 *
 * Returns: (transfer full): to be given to gst_imaging_array_recorder_free();
 *   %NULL with @error set, also for a format of one picture
 */
GST_IMAGING_API
GstImagingArrayRecorder *gst_imaging_array_recorder_new (const gchar *location,
    const GstImagingNdArray *frame, gboolean append, guint64 n_expected,
    GError **error);

/* Returns: complete frames in the file */
GST_IMAGING_API
guint64 gst_imaging_array_recorder_get_n_frames (
    const GstImagingArrayRecorder *self);

/* After a failure there is no other frame. */
GST_IMAGING_API
gboolean gst_imaging_array_recorder_write (
    GstImagingArrayRecorder *self, gconstpointer values, GError **error);

/* Waits for the disk, also after a failure. A new file without a frame does not
 * appear. */
GST_IMAGING_API
gboolean gst_imaging_array_recorder_finish (
    GstImagingArrayRecorder *self, GError **error);

/* @self: (nullable) */
GST_IMAGING_API
void gst_imaging_array_recorder_free (GstImagingArrayRecorder *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (
    GstImagingArrayRecorder, gst_imaging_array_recorder_free)
