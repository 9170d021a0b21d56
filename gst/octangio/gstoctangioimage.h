/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What flow is, and how it becomes an image. */
#pragma once

#include <gst/video/video.h>

#include "gstoctangiosettings.h"

/* What the numbers stand for, and those that are black and white. */
typedef struct {
  const gchar *name, *unit;
  gboolean is_db; /* of the numbers of the kernel */
  gdouble low, high;
} GstOctAngioQuantity;

/* What the input tells of itself; 0 where it does not. */
typedef struct {
  gdouble wavelengths[2]; /* nm, at the first and the last wavenumber */
  gdouble refractive_index;
  gdouble depth_scale; /* depths of octbscan for each of its samples */
  gdouble n_cameras;   /* that take turns, line by line */
} GstOctAngioOptics;

GstOctAngioOptics gst_oct_angio_optics (GstBuffer *buffer);

/* Returns: whether bidirectional of octbscan has its last line first */
gboolean gst_oct_angio_is_backward (GstBuffer *buffer);

/* Returns: s of the bands */
guint gst_oct_angio_depth_scale (
    const GstOctAngioSettings *settings, const GstOctAngioOptics *optics);

/* Returns: radians to the unit of method=doppler */
gdouble gst_oct_angio_scale (
    const GstOctAngioSettings *settings, const GstOctAngioOptics *optics);

GstOctAngioQuantity gst_oct_angio_quantity (
    const GstOctAngioSettings *settings, const GstOctAngioOptics *optics);

/* Makes an image of @n_rows rows of @width numbers; @info: NULL for float32. */
void gst_oct_angio_draw (const GstOctAngioQuantity *quantity,
    gboolean is_signed, const gfloat *flow, guint width, guint n_rows,
    const GstVideoInfo *info, guint8 *data);
