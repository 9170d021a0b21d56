/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of a frame, or of a section or a projection of a volume. */
#pragma once

#include "gstimagingviewframe.h"
#include "gstimagingviewsettings.h"

typedef enum {
  GST_IMAGING_VIEW_FRAME,
  GST_IMAGING_VIEW_ROW,
  GST_IMAGING_VIEW_COLUMN,
  GST_IMAGING_VIEW_MAX_FRAME,
  GST_IMAGING_VIEW_MAX_ROW,
  GST_IMAGING_VIEW_MAX_COLUMN,
} GstImagingViewSection;

/* Returns: (nullable): its name; NULL after the last one */
const gchar *gst_imaging_view_section_name (guint section);

/* Appends what a menu needs: label, blurb, and the axes "x", "y" and "z" (of
 * the slices) of the picture and of the place. */
void gst_imaging_view_section_describe (GString *json, guint section);

/* Whether the slices are along x, or along y. */
gboolean gst_imaging_view_section_is_column (guint section);
gboolean gst_imaging_view_section_is_row (guint section);

/* Whether its samples are the largest along an axis */
gboolean gst_imaging_view_section_is_largest (guint section);

void gst_imaging_view_section_size (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, guint *width, guint *height);

/* Cuts @part to the section; one without a width becomes all of it. */
void gst_imaging_view_section_cut (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, GstImagingViewRectangle *part);

/* Samples [n][channels] of row @y of the section, at @xs[0], ... */
void gst_imaging_view_section_read (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, guint y, const guint *xs, guint n,
    gdouble *values);

/* Returns: (nullable): the samples of row @y in the memory of @frame, where
 * they are side by side: of frames and rows of slices that have been seen */
gconstpointer gst_imaging_view_section_row (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, guint y);

/* As gst_imaging_view_frame_print_whole (), of a sample of the section. FALSE
 * also where it is the largest of several */
gboolean gst_imaging_view_section_print_whole (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, guint x, guint y, guint channel,
    gchar *text);

/* Returns: (transfer full): the @n columns from @first on, for the above */
guint *gst_imaging_view_section_columns (guint first, guint n);

/* Whether there is a sample at (@x, @y): inside of the section, of a slice that
 * has been seen */
gboolean gst_imaging_view_section_has (const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, gdouble x, gdouble y);
