/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/gst.h>

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/**
 * GstImagingTap:
 *
 * Reads frames that pass a pad, without a change of the pipeline.
 */
#define GST_TYPE_IMAGING_TAP (gst_imaging_tap_get_type ())
GST_IMAGING_API
G_DECLARE_FINAL_TYPE (GstImagingTap, gst_imaging_tap, GST, IMAGING_TAP, GObject)

/**
 * gst_imaging_tap_new:
 * @pad: of a running pipeline, or of one that will run
 *
 * Reads frames that pass @pad. The thread that pushes them never waits: it
 * reads one atomic number for each frame, and takes a reference to those that
 * somebody has requested. Nothing is linked, no query is answered.
 *
 * Returns: (transfer full): a tap
 */
GST_IMAGING_API
GstImagingTap *gst_imaging_tap_new (GstPad *pad);

/**
 * gst_imaging_tap_new_for_slices:
 * @pad: as for gst_imaging_tap_new()
 * @n: frame k is slice k modulo @n of a volume
 *
 * A request takes the next frame whose slice has not been taken since all have
 * been.
 *
 * Returns: (transfer full): a tap
 */
GST_IMAGING_API
GstImagingTap *gst_imaging_tap_new_for_slices (GstPad *pad, guint n);

/**
 * gst_imaging_tap_get_fd:
 *
 * For poll() and main loops.
 *
 * Returns: a descriptor that can be read when a requested frame is there; of
 *   the tap
 */
GST_IMAGING_API
gint gst_imaging_tap_get_fd (GstImagingTap *self);

/**
 * gst_imaging_tap_request:
 *
 * Asks for the next frame. One that waits to be taken is kept in its place.
 */
GST_IMAGING_API
void gst_imaging_tap_request (GstImagingTap *self);

/**
 * gst_imaging_tap_take:
 * @time: (out) (optional): when it passed, as g_get_monotonic_time () says it
 *
 * Take it soon, and release it soon: its buffer is missing in a pool.
 *
 * Returns: (transfer full) (nullable): the frame that was requested, with its
 *   caps; %NULL before it is there
 */
GST_IMAGING_API
GstSample *gst_imaging_tap_take (GstImagingTap *self, gint64 *time);

/**
 * gst_imaging_tap_get_n_frames:
 *
 * Counts all frames, requested or not.
 *
 * Returns: frames that have passed since gst_imaging_tap_new()
 */
GST_IMAGING_API
guint64 gst_imaging_tap_get_n_frames (GstImagingTap *self);

/**
 * gst_imaging_tap_record:
 * @source: (nullable): an `appsrc` of another pipeline; %NULL ends it
 * @max_bytes: frames that wait there
 * @max_frames: how many frames to pass on; 0: no limit
 *
 * Passes references to all frames to @source, which has a thread of its own.
 * Where more than @max_bytes wait there, a frame is not passed on:
 * gst_imaging_tap_get_n_lost() counts it.
 */
GST_IMAGING_API
void gst_imaging_tap_record (GstImagingTap *self, GstElement *source,
    guint64 max_bytes, guint64 max_frames);

/**
 * gst_imaging_tap_get_n_recorded:
 *
 * Counts the frames of gst_imaging_tap_record().
 *
 * Returns: frames that were passed on
 */
GST_IMAGING_API
guint64 gst_imaging_tap_get_n_recorded (GstImagingTap *self);

/**
 * gst_imaging_tap_get_n_lost:
 *
 * Counts the gaps of gst_imaging_tap_record().
 *
 * Returns: frames that were not passed on because too many bytes waited
 */
GST_IMAGING_API
guint64 gst_imaging_tap_get_n_lost (GstImagingTap *self);

/**
 * gst_imaging_tap_keep:
 * @keep: whether the newest frame is kept from now on
 *
 * For a pipeline that is about to pause: its last frame can be had then. The
 * buffer is missing in a pool until frames are no longer kept.
 */
GST_IMAGING_API
void gst_imaging_tap_keep (GstImagingTap *self, gboolean keep);

/**
 * gst_imaging_tap_get_kept:
 *
 * The frame that gst_imaging_tap_keep() keeps.
 *
 * Returns: (transfer full) (nullable): the newest frame, with its caps; %NULL
 *   where none has passed since gst_imaging_tap_keep()
 */
GST_IMAGING_API
GstSample *gst_imaging_tap_get_kept (GstImagingTap *self);

/**
 * gst_imaging_tap_follow:
 * @sink: a sink pad in a pipeline that gets the frames of @pad
 * @pad: where they come from
 *
 * Tells picturesink, whose sidecar names the elements before it, where the
 * pipeline of a recording begins.
 */
GST_IMAGING_API
void gst_imaging_tap_follow (GstPad *sink, GstPad *pad);

/**
 * gst_imaging_tap_get_followed: (skip)
 * @sink: a sink pad
 *
 * For picturesink.
 *
 * Returns: (transfer full) (nullable): the source pad that
 *   gst_imaging_tap_follow() named
 */
GST_IMAGING_API
GstPad *gst_imaging_tap_get_followed (GstPad *sink);

/**
 * gst_imaging_tap_close:
 *
 * Frames pass unseen from now on. The last reference does so as well.
 */
GST_IMAGING_API
void gst_imaging_tap_close (GstImagingTap *self);

G_END_DECLS
