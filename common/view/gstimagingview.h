/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/gst.h>

#include "gstimaging-prelude.h"

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
 * and pays for the frames that become pictures alone.
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
 * gst_imaging_view_set_rate:
 * @rate: pictures a second, at most; 0: none

 *
 * Limits how often a picture is made.
 */
GST_IMAGING_API
void gst_imaging_view_set_rate (GstImagingView *self, gdouble rate);

/**
 * gst_imaging_view_set_size:
 * @quality: of the JPEG, 1 to 100
 * @width: pixels of the picture, at most
 * @height: pixels of the picture, at most

 *
 * Pictures keep the aspect of the frame.
 */
GST_IMAGING_API
void gst_imaging_view_set_size (
    GstImagingView *self, guint width, guint height, guint quality);

/**
 * gst_imaging_view_set_window:
 * @window: range of samples from the first colour to the last; NaN: chosen from
 *   each picture
 * @level: the sample in the middle of it; NaN: likewise

 *
 * Maps samples to colours.
 */
GST_IMAGING_API
void gst_imaging_view_set_window (
    GstImagingView *self, gdouble window, gdouble level);

/**
 * gst_imaging_view_set_colours:
 * @name: of a colour map: "grey", "viridis", ...
 *
 * Chooses the colour map of pictures with one channel.
 *
 * Returns: %FALSE without a map of this name
 */
GST_IMAGING_API
gboolean gst_imaging_view_set_colours (GstImagingView *self, const gchar *name);

/**
 * gst_imaging_view_set_crop:
 * @x: first column
 * @y: first row
 * @width: columns; 0: all of the frame
 * @height: rows

 *
 * Shows a part of the frame.
 */
GST_IMAGING_API
void gst_imaging_view_set_crop (
    GstImagingView *self, guint x, guint y, guint width, guint height);

/**
 * gst_imaging_view_set_values:
 * @x: first column
 * @y: first row
 * @width: columns; 0: no samples
 * @height: rows

 *
 * Adds samples as numbers to the header of a picture.
 */
GST_IMAGING_API
void gst_imaging_view_set_values (
    GstImagingView *self, guint x, guint y, guint width, guint height);

/**
 * gst_imaging_view_set_volume:
 * @n: frame k is slice k modulo @n; 0: single frames
 * @section: "frame", "row", "column", "max-frame", "max-row", "max-column"
 * @place: the number of the frame, row or column
 *
 * Shows a section or a projection of a volume.
 *
 * Returns: %FALSE without a section of this name
 */
GST_IMAGING_API
gboolean gst_imaging_view_set_volume (
    GstImagingView *self, guint n, const gchar *section, guint place);

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
