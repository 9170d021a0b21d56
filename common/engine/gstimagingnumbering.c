/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingnumbering.h"

/* Without an offset-end, a step to the next buffer that is larger than this
 * counts bytes. */
#define MOST_FRAMES 1000

void
gst_imaging_numbering_reset (GstImagingNumbering *self)
{
  *self = (GstImagingNumbering){.n_frames = 0};
}

void
gst_imaging_numbering_interrupt (GstImagingNumbering *self)
{
  self->has_last = FALSE;
}

/* Returns: steps of @step from @from to @to beyond the one to the next frame,
 * 0 backwards */
static guint64
count_gap (guint64 from, guint64 to, guint64 step)
{
  guint64 n;

  if (to <= from || step == 0)
    return 0;
  n = (to - from) / step + ((to - from) % step >= step - step / 2);
  return n > 1 ? n - 1 : 0;
}

/* Offsets may be of another format: videoconvert keeps those of rawvideoparse,
 * so they need not grow by the size of the buffer, but then times tell. */
static gboolean
steps_are_frames (const GstImagingNumbering *self, GstBuffer *buffer)
{
  guint64 step = GST_BUFFER_OFFSET (buffer) - self->offset;
  gsize size = gst_buffer_get_size (buffer);

  if (GST_BUFFER_PTS_IS_VALID (buffer) && GST_CLOCK_TIME_IS_VALID (self->pts) &&
      GST_CLOCK_TIME_IS_VALID (self->duration))
    return step - 1 ==
           count_gap (self->pts, GST_BUFFER_PTS (buffer), self->duration);
  return step <= MOST_FRAMES && (size == 0 || step % size != 0);
}

static GstImagingOffsets
learn_offsets (const GstImagingNumbering *self, GstBuffer *buffer)
{
  guint64 offset = GST_BUFFER_OFFSET (buffer);

  if (GST_BUFFER_OFFSET_END_IS_VALID (buffer) &&
      GST_BUFFER_OFFSET_END (buffer) > offset)
    return GST_BUFFER_OFFSET_END (buffer) - offset == 1
               ? GST_IMAGING_OFFSETS_FRAMES
               : GST_IMAGING_OFFSETS_BYTES;
  if (!self->has_last || self->offset == GST_BUFFER_OFFSET_NONE ||
      offset <= self->offset)
    return self->offsets;
  if (offset - self->offset == 1)
    return GST_IMAGING_OFFSETS_FRAMES;
  if (self->offsets != GST_IMAGING_OFFSETS_UNKNOWN)
    return self->offsets;
  return steps_are_frames (self, buffer) ? GST_IMAGING_OFFSETS_FRAMES
                                         : GST_IMAGING_OFFSETS_BYTES;
}

static gboolean
counts_frames (const GstImagingNumbering *self, GstBuffer *buffer)
{
  guint64 offset = GST_BUFFER_OFFSET (buffer);
  gsize size = gst_buffer_get_size (buffer);

  if (self->offsets != GST_IMAGING_OFFSETS_UNKNOWN)
    return self->offsets == GST_IMAGING_OFFSETS_FRAMES;
  return offset < size || size == 0 || offset % size != 0;
}

static guint64
count_missing (const GstImagingNumbering *self, GstBuffer *buffer)
{
  guint64 offset = GST_BUFFER_OFFSET (buffer);
  gboolean has_offsets = GST_BUFFER_OFFSET_IS_VALID (buffer) &&
                         self->offset != GST_BUFFER_OFFSET_NONE;

  if (has_offsets && self->offsets == GST_IMAGING_OFFSETS_FRAMES)
    return count_gap (self->offset, offset, 1);
  if (GST_BUFFER_PTS_IS_VALID (buffer) && GST_CLOCK_TIME_IS_VALID (self->pts) &&
      GST_CLOCK_TIME_IS_VALID (self->duration))
    return count_gap (self->pts, GST_BUFFER_PTS (buffer), self->duration);
  if (has_offsets && self->offset_end != GST_BUFFER_OFFSET_NONE &&
      self->offset_end > self->offset)
    return count_gap (self->offset, offset, self->offset_end - self->offset);
  return 0;
}

guint64
gst_imaging_numbering_next (
    GstImagingNumbering *self, GstBuffer *buffer, guint64 *n_missing)
{
  gboolean has_offset = GST_BUFFER_OFFSET_IS_VALID (buffer);
  guint64 number = self->n_frames;

  if (has_offset)
    self->offsets = learn_offsets (self, buffer);
  if (has_offset && counts_frames (self, buffer))
    number = GST_BUFFER_OFFSET (buffer);
  *n_missing = self->has_last ? count_missing (self, buffer) : 0;
  self->n_frames++;
  self->has_last = TRUE;
  self->offset = GST_BUFFER_OFFSET (buffer);
  self->offset_end = GST_BUFFER_OFFSET_END (buffer);
  self->pts = GST_BUFFER_PTS (buffer);
  self->duration = GST_BUFFER_DURATION (buffer);
  return number;
}
