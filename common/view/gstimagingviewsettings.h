/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/gst.h>

#include "gstimaging-prelude.h"

G_BEGIN_DECLS

/**
 * GstImagingViewRectangle:
 * @x: first column
 * @y: first row
 * @width: columns; 0: see the member of the settings
 * @height: rows
 *
 * A part of a frame, in samples.
 */
typedef struct _GstImagingViewRectangle {
  guint x, y, width, height;
} GstImagingViewRectangle;

/**
 * GstImagingViewLine:
 * @x0: column of the first point, 0 the middle of the first sample
 * @y0: row of the first point
 * @x1: column of the last point
 * @y1: row of the last point
 *
 * A line through a frame.
 */
typedef struct _GstImagingViewLine {
  gdouble x0, y0, x1, y1;
} GstImagingViewLine;

/**
 * GstImagingViewSettings:
 * @rate: pictures a second, at most; 0: none
 * @width: pixels of the picture, at most. It keeps the aspect of the frame
 * @height: pixels of the picture, at most
 * @quality: of the JPEG, 1 to 100
 * @window: range of samples from the first colour to the last; NaN: chosen from
 *   each picture
 * @level: the sample in the middle of it; NaN: likewise
 * @clip: percent of the samples beyond each end of a window that is chosen, 0
 *   to 49; 0: the window is from the smallest to the largest sample of @crop
 * @colours: number of the colour map of pictures with one channel:
 *   gst_imaging_view_find_colours()
 * @crop: the part that is shown; width 0: all of the frame
 * @values: the part whose samples are added to the header as numbers, 16384 at
 *   most; width 0: none
 * @profile: the samples that are nearest to this line are added to the header
 * @n_points: points of the profile, at most 4096; 0: no profile
 * @region: the part whose statistics and histogram are added; width 0: all
 * @n_bins: bins of the histogram, at most 1024; 0: no statistics
 * @n_slices: frame k is slice k modulo this of a volume, at most 65535; 0:
 *   single frames
 * @section: number of what is shown of a volume:
 *   gst_imaging_view_find_section()
 * @place: the number of the frame, row or column of the section
 *
 * What a viewer asks for.
 */
typedef struct _GstImagingViewSettings {
  gdouble rate;
  guint width, height, quality;
  gdouble window, level, clip;
  guint colours;
  GstImagingViewRectangle crop;
  GstImagingViewRectangle values;
  GstImagingViewLine profile;
  guint n_points;
  GstImagingViewRectangle region;
  guint n_bins;
  guint n_slices, section, place;
} GstImagingViewSettings;

/**
 * gst_imaging_view_settings_init:
 *
 * Sets the defaults: 30 pictures a second of all of the frame, 640 x 480 at
 * most, in grey, with a window that leaves out half a percent at each end.
 */
GST_IMAGING_API
void gst_imaging_view_settings_init (GstImagingViewSettings *self);

/**
 * gst_imaging_view_settings_get_limits:
 * @member: "rate", "width", "height", "quality", "window", "level", "clip",
 *   "colours", "values" (samples), "n_points", "n_bins", "n_slices" or
 * "section"
 * @minimum: (out): the smallest number that it can be
 * @maximum: (out): the largest one
 *
 * The limits that gst_imaging_view_settings_check() applies, for front ends.
 * @window and @level can also be NaN.
 *
 * Returns: %FALSE if no member with limits has this name; the numbers are 0
 * then
 */
GST_IMAGING_API
gboolean gst_imaging_view_settings_get_limits (
    const gchar *member, gdouble *minimum, gdouble *maximum);

/**
 * gst_imaging_view_settings_check:
 * @error: which member is out of its range
 *
 * Compares each member with its range.
 *
 * Returns: whether all members are in their ranges
 */
GST_IMAGING_API
gboolean gst_imaging_view_settings_check (
    const GstImagingViewSettings *self, GError **error);

G_END_DECLS
