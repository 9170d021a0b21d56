/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "gstimagingviewsettings.h"

G_BEGIN_DECLS

/**
 * GstImagingView:
 *
 * Makes JPEG pictures of the newest frames of a pad.
 */
#define GST_TYPE_IMAGING_VIEW (gst_imaging_view_get_type ())
GST_IMAGING_API
G_DECLARE_FINAL_TYPE (
    GstImagingView, gst_imaging_view, GST, IMAGING_VIEW, GObject)

/**
 * gst_imaging_view_new:
 * @pad: a pad with video or arrays
 * @id: a number for the header of the pictures
 *
 * JPEG pictures of the newest frames of @pad, as docs/reference/panel.md
 * describes them. A thread of low priority copies the samples of a frame,
 * returns its buffer, and makes the picture. The pipeline of @pad never waits,
 * and pays for the frames that become pictures alone. After the end of the
 * stream a new view shows the last frame if the sink directly behind @pad has
 * it (enable-last-sample).
 *
 * Returns: (transfer full): a view, which makes nothing before
 *   gst_imaging_view_allow()
 */
GST_IMAGING_API
GstImagingView *gst_imaging_view_new (GstPad *pad, guint id);

/**
 * gst_imaging_view_get_fd:
 *
 * For poll() and main loops.
 *
 * Returns: a descriptor that can be read when gst_imaging_view_take() has
 *   something; of the view
 */
GST_IMAGING_API
gint gst_imaging_view_get_fd (GstImagingView *self);

/**
 * gst_imaging_view_set:
 * @settings: all that the next pictures are made with; copied
 * @error: which member is out of its range
 *
 * A picture is made with the settings of one call, never with parts of two.
 *
 * Returns: %FALSE if a member is out of its range; the settings before it stay
 */
GST_IMAGING_API
gboolean gst_imaging_view_set (GstImagingView *self,
    const GstImagingViewSettings *settings, GError **error);

/**
 * gst_imaging_view_allow:
 * @n: so many pictures more may be made
 *
 * Allows more pictures; a viewer that is slow allows fewer.
 */
GST_IMAGING_API
void gst_imaging_view_allow (GstImagingView *self, guint n);

/**
 * gst_imaging_view_show:
 * @sample: a frame of the pad that has passed before
 *
 * Makes a picture of @sample, unless a frame passes first: for a pipeline that
 * is paused.
 */
GST_IMAGING_API
void gst_imaging_view_show (GstImagingView *self, GstSample *sample);

/**
 * gst_imaging_view_take:
 * @error: why there is no picture
 *
 * Returns the picture that the descriptor announced.
 *
 * Returns: (transfer full) (nullable): a picture with its header; %NULL before
 *   it is there, or with @error set
 */
GST_IMAGING_API
GBytes *gst_imaging_view_take (GstImagingView *self, GError **error);

/**
 * gst_imaging_view_close:
 *
 * Ends its thread. The last reference does so as well.
 */
GST_IMAGING_API
void gst_imaging_view_close (GstImagingView *self);

G_END_DECLS
