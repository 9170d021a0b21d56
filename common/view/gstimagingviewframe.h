/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A copy of the samples of a frame, so that its buffer can return to its pool,
 * or of the frames of a volume. */
#pragma once

#include "gstimagingviewvideo.h"

typedef struct {
  GstImagingNdArrayType type;
  guint width, height, channels; /* 1 to 4 */
  guint n_slices;                /* 1: no volume */
  guint n_filled;
  guint8 *is_filled; /* [n_slices] */
  guint8 *samples;   /* [n_slices][height][width][channels] */
  guint64 size;      /* of samples, as counted for all views */
  GstBuffer *about;  /* offset, times and metas of the last frame */
  GstImagingViewMeaning meaning;
} GstImagingViewFrame;

/* @n_slices: 1, or frame k is slice k modulo that. Returns: FALSE with a
 * sentence; frames of another size are then gone */
gboolean gst_imaging_view_frame_copy (GstImagingViewFrame *self,
    GstSample *sample, guint n_slices, GError **error);

void gst_imaging_view_frame_clear (GstImagingViewFrame *self);

/* Returns: the samples of row @y of slice @z, [width][channels] */
gconstpointer gst_imaging_view_frame_row (
    const GstImagingViewFrame *self, guint z, guint y);

/* @values: doubles of the samples at @xs[0] < @xs[1] ... of row @y of slice @z
 */
void gst_imaging_view_frame_read (const GstImagingViewFrame *self, guint z,
    guint y, const guint *xs, guint n, gdouble *values);

#define GST_IMAGING_VIEW_WHOLE_SIZE 24 /* bytes of a text */

/* @text: (out): the digits of a sample of 64 bits. Returns: FALSE of samples of
 * another type, which a double holds */
gboolean gst_imaging_view_frame_print_whole (const GstImagingViewFrame *self,
    guint z, guint y, guint x, guint channel, gchar *text);
