/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gathers en-face rows into the image of a volume. */
#pragma once

#include <gst/video/video.h>

#include "imk/octbscan.h"

typedef struct _GstOctBscanEnface GstOctBscanEnface;

GstOctBscanEnface *gst_oct_bscan_enface_new (void);
void gst_oct_bscan_enface_free (GstOctBscanEnface *self);

/* For volumes of @height rows of @width A-scans, for @pad; rows for another
 * one, which was released, are forgotten. @n_forgotten: (out): rows of another
 * size, which are forgotten, too */
ImkStatus gst_oct_bscan_enface_setup (GstOctBscanEnface *self, GstPad *pad,
    guint width, guint height, guint *n_forgotten, ImkError *error);

/* Returns: TRUE before the first row since new () or reset () */
gboolean gst_oct_bscan_enface_is_new (GstOctBscanEnface *self);

/* Forgets the rows so far. Returns: how many they were */
guint gst_oct_bscan_enface_reset (GstOctBscanEnface *self);

/* Takes the f32 row that is in @buffer, with its time. Returns: TRUE when the
 * volume is complete; the next row begins another */
gboolean gst_oct_bscan_enface_add (GstOctBscanEnface *self, GstBuffer *buffer);

/* The volume that is complete, as an image of @info with the levels of
 * @config, dB or linear, with the offset and metadata of @like. @is_float: the
 * image is of dB or intensities, @info of its bytes. @ends: (out): its black
 * and white, as in ImkOctbscanJob. Returns: (transfer full): its time is that
 * of its rows; NULL with @error set */
GstBuffer *gst_oct_bscan_enface_image (GstOctBscanEnface *self,
    const GstVideoInfo *info, gboolean is_float,
    const ImkOctbscanConfig *config, gboolean db, GstBuffer *like,
    gfloat ends[4], ImkError *error);
