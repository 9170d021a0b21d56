/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A picture of a frame or of a section of a volume: crop, scale, window and
 * level, colours. */
#pragma once

#include "gstimagingviewframe.h"

G_BEGIN_DECLS

typedef enum {
  GST_IMAGING_VIEW_FRAME,
  GST_IMAGING_VIEW_ROW,
  GST_IMAGING_VIEW_COLUMN,
  GST_IMAGING_VIEW_MAX_FRAME,
  GST_IMAGING_VIEW_MAX_ROW,
  GST_IMAGING_VIEW_MAX_COLUMN,
} GstImagingViewSection;

typedef struct {
  guint x, y, width, height; /* width 0: all, or none */
} GstImagingViewRectangle;

/* What a viewer asks for. */
typedef struct {
  guint width, height;   /* at most */
  gdouble window, level; /* NaN: of the picture */
  guint colours;         /* gst_imaging_view_colours_find () */
  GstImagingViewRectangle crop;
  GstImagingViewRectangle values;
  GstImagingViewSection section;
  guint place;
} GstImagingViewRequest;

typedef struct {
  guint width, height;
  guint source_width, source_height; /* of the section */
  GstImagingViewRectangle crop;
  gdouble window, level, minimum, maximum;
  gboolean is_grey;
  guint stride;
  guint8 *pixels; /* grey or R, G, B */
  gsize size;
} GstImagingViewPicture;

/* Returns: the number of a colour map; -1: there is none of this name */
gint gst_imaging_view_colours_find (const gchar *name);
const gchar *gst_imaging_view_colours_name (guint colours);

/* Returns: -1 without a section of this name */
gint gst_imaging_view_section_find (const gchar *name);
const gchar *gst_imaging_view_section_name (GstImagingViewSection section);

void gst_imaging_view_picture_make (GstImagingViewPicture *self,
    const GstImagingViewFrame *frame, const GstImagingViewRequest *request);
void gst_imaging_view_picture_clear (GstImagingViewPicture *self);

/* Samples of a part, [height][width][channels]. @part is cut to what is there.
 * Returns: (transfer full) */
gdouble *gst_imaging_view_picture_values (const GstImagingViewFrame *frame,
    const GstImagingViewRequest *request, GstImagingViewRectangle *part);

G_END_DECLS
