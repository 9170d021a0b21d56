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
 * @window: range of samples from the first colour to the last; NaN: chosen from
 *   each picture; 0: samples above @level have the last colour, others the
 *   first
 * @level: the sample in the middle of it; NaN: likewise
 * @clip: percent of the samples beyond each end of a window that is chosen, 0
 *   to 49; 0: the window is from the smallest to the largest sample of @crop
 * @profile: the samples that are nearest to this line are added to the header,
 *   4096 at most; x0 NaN: no profile
 * @width: pixels of the picture, at most. It keeps the aspect of the frame
 * @height: pixels of the picture, at most
 * @quality: of the JPEG, 1 to 100
 * @colours: number of the colour map of pictures with one channel
 * @crop: the part that is shown; width 0: all of the frame
 * @values: the part whose samples are added to the header as numbers, 16384 at
 *   most; width 0: none
 * @region: the part whose statistics and histogram are added; width 0: all
 * @n_bins: "histogram": its bins, at most 1024; 0: no statistics
 * @n_slices: "volume": frame k is slice k modulo this, at most 65535; 0: single
 *   frames
 * @section: number of what is shown of a volume
 * @place: the number of the frame, row or column of the section
 *
 * What a viewer asks for. gst_imaging_view_settings_describe() has the names,
 * limits and defaults.
 */
typedef struct _GstImagingViewSettings {
  gdouble rate, window, level, clip;
  GstImagingViewLine profile;
  guint width, height, quality, colours;
  GstImagingViewRectangle crop, values, region;
  guint n_bins, n_slices, section, place;
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
 * gst_imaging_view_settings_describe:
 *
 * The settings as JSON: an array of objects with `name`, `type`, `minimum`,
 * `maximum` and `default`. A type is "int", "double", "enum", "rectangle" (x,
 * y, width, height; its limits are of samples) or "line" (x0, y0, x1, y1). A
 * default of null is none: NaN, or all of the frame. Choices of an enumeration
 * are in `values`, with `nick`; colour maps with `table`: 256 times the bytes
 * R, G, B in Base64, from the lowest to the highest sample of the window;
 * sections with `label`, `blurb`, `axes` ("x", "y" and "z", that of the slices,
 * along x and y of the picture) and `place`, the axis of the place.
 *
 * Returns: (transfer full): JSON
 */
GST_IMAGING_API
gchar *gst_imaging_view_settings_describe (void);

/**
 * gst_imaging_view_settings_set:
 * @name: of gst_imaging_view_settings_describe()
 * @text: (nullable): a number, four with commas between them, or a choice;
 *   %NULL: the default
 * @error: why it is no value of this setting
 *
 * Sets one member.
 *
 * Returns: %FALSE with @error set; nothing has changed then
 */
GST_IMAGING_API
gboolean gst_imaging_view_settings_set (GstImagingViewSettings *self,
    const gchar *name, const gchar *text, GError **error);

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
