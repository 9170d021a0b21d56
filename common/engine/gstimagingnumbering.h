/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which frame of its stream a buffer is, and how many are missing before it.
 * Internal. */
#pragma once

#include <gst/gst.h>

#include "gstimaging-prelude.h"

/* What offsets count. */
typedef enum {
  GST_IMAGING_OFFSETS_UNKNOWN, /* until two buffers tell */
  GST_IMAGING_OFFSETS_FRAMES,
  GST_IMAGING_OFFSETS_BYTES, /* as of filesrc and rawvideoparse */
} GstImagingOffsets;

typedef struct {
  guint64 n_frames; /* since the start */
  GstImagingOffsets offsets;

  /* of the frame before; without one there is no gap */
  gboolean has_last;
  guint64 offset, offset_end;
  GstClockTime pts, duration;
} GstImagingNumbering;

/* At the start. */
GST_IMAGING_API
void gst_imaging_numbering_reset (GstImagingNumbering *self);

/* The next buffer does not continue the last one, for example after a seek. */
GST_IMAGING_API
void gst_imaging_numbering_interrupt (GstImagingNumbering *self);

/* @n_missing: (out): frames between the one before and this one. Offsets that
 *   count frames tell it, else pts against duration, else offsets in bytes
 * Returns: the offset of @buffer, as a camera numbers its frames; frames since
 *   the start where offsets are absent or count bytes */
GST_IMAGING_API
guint64 gst_imaging_numbering_next (
    GstImagingNumbering *self, GstBuffer *buffer, guint64 *n_missing);
