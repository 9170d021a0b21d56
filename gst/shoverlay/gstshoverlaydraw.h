/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Results of shcentroid as a drawing. */
#pragma once

#include <gst/video/video.h>

#include "gstimaging-prelude.h"

/* What is drawn, in this order. */
typedef enum {
  GST_SH_OVERLAY_CELLS = 1 << 0,
  GST_SH_OVERLAY_REFERENCES = 1 << 1,
  GST_SH_OVERLAY_ARROWS = 1 << 2,
  GST_SH_OVERLAY_CENTROIDS = 1 << 3,
  GST_SH_OVERLAY_FLAGS = 1 << 4,
  GST_SH_OVERLAY_TEXT = 1 << 5,
} GstShOverlayParts;

/* Colours are 0xAARRGGBB. */
typedef struct {
  GstShOverlayParts parts;
  gdouble arrow_scale, line_width;
  guint32 cell_colour, reference_colour, arrow_colour, centroid_colour,
      flag_colour, text_colour;
  gboolean swapped; /* red and blue, where memory has them so */
} GstShOverlayStyle;

/* Draws @result, fields of the meta as docs/reference/metadata.md has them,
 * onto @frame. Returns: whether these are centroids */
typedef gboolean (*GstShOverlayDraw) (GstVideoFrame *frame,
    const GstStructure *result, const GstShOverlayStyle *style);

/* The module that has cairo, and in it a function of that type. */
#define GST_SH_OVERLAY_MODULE "libgstimaging-overlay.so"
#define GST_SH_OVERLAY_SYMBOL "gst_sh_overlay_draw"
