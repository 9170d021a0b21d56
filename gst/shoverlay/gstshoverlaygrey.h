/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Grey frames as the picture below the drawing. */
#pragma once

#include <gst/video/video.h>

/* Counts that become black and white; negative: from the frame. */
typedef struct {
  gint black, white;
  gdouble gamma;
} GstShOverlayLevels;

/* Paints @in, GRAY8 or GRAY16_LE, into @out, 4 bytes a pixel, of the same
 * size: 255 ((v - black) / (white - black))^(1 / gamma), clipped.
 * Black from the frame: what 10 % of the samples do not reach; white: what
 * 99.8 % do not exceed, and at least 8 counts more. */
void gst_sh_overlay_paint_grey (const GstVideoFrame *in, GstVideoFrame *out,
    const GstShOverlayLevels *levels);
