/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscangroup.h"

#include <string.h>

#include "gstimagingmemory.h"
#include "gstimagingmetadata.h"
#include "gstoctbscantime.h"

struct _GstOctBscanGroup {
  GstVideoInfo lines, bscan;
  GstBufferPool *pool;

  GstBuffer *buffer;  /* lines that came last */
  guint n_used;       /* of them */
  GstBuffer *partial; /* lines that wait for more */
  guint n_filled;
  guint n_to_skip; /* of lines that come */
};

GstOctBscanGroup *
gst_oct_bscan_group_new (void)
{
  return g_new0 (GstOctBscanGroup, 1);
}

void
gst_oct_bscan_group_free (GstOctBscanGroup *self)
{
  if (!self)
    return;
  gst_oct_bscan_group_reset (self);
  gst_imaging_pool_clear (&self->pool);
  g_free (self);
}

void
gst_oct_bscan_group_setup (GstOctBscanGroup *self, const GstVideoInfo *lines,
    const GstVideoInfo *bscan, GstBufferPool *pool)
{
  gst_oct_bscan_group_reset (self);
  gst_imaging_pool_clear (&self->pool);
  self->lines = *lines;
  self->bscan = *bscan;
  self->pool = pool ? gst_object_ref (pool) : NULL;
}

guint
gst_oct_bscan_group_reset (GstOctBscanGroup *self)
{
  guint n = self->n_filled;

  gst_clear_buffer (&self->buffer);
  gst_clear_buffer (&self->partial);
  self->n_used = self->n_filled = self->n_to_skip = 0;
  return n;
}

void
gst_oct_bscan_group_skip (GstOctBscanGroup *self, guint n)
{
  self->n_to_skip = n;
}

guint
gst_oct_bscan_group_n_waiting (GstOctBscanGroup *self)
{
  return self->n_filled;
}

void
gst_oct_bscan_group_add_lines (GstOctBscanGroup *self, GstBuffer *buffer)
{
  gst_clear_buffer (&self->buffer);
  self->buffer = buffer;
  self->n_used = MIN (self->n_to_skip, (guint) self->lines.height);
  self->n_to_skip -= self->n_used;
  if (self->n_used == (guint) self->lines.height)
    gst_clear_buffer (&self->buffer);
}

/* The time that @n lines take. */
static GstClockTime
time_of (const GstOctBscanGroup *self, guint n)
{
  GstClockTime duration = GST_BUFFER_DURATION (self->buffer);

  return GST_CLOCK_TIME_IS_VALID (duration)
             ? gst_util_uint64_scale (duration, n, self->lines.height)
             : GST_CLOCK_TIME_NONE;
}

/* Time, flags and metadata of a B-scan that begins with the next line. */
static void
stamp (const GstOctBscanGroup *self, GstBuffer *bscan)
{
  GstClockTime offset = time_of (self, self->n_used);

  gst_imaging_metadata_copy (bscan, self->buffer, FALSE);
  GST_BUFFER_OFFSET (bscan) = GST_BUFFER_OFFSET (self->buffer);
  GST_BUFFER_OFFSET_END (bscan) = GST_BUFFER_OFFSET_END (self->buffer);
  GST_BUFFER_PTS (bscan) =
      gst_oct_bscan_time_later (GST_BUFFER_PTS (self->buffer), offset, 1);
  GST_BUFFER_DTS (bscan) =
      gst_oct_bscan_time_later (GST_BUFFER_DTS (self->buffer), offset, 1);
  GST_BUFFER_DURATION (bscan) = time_of (self, self->bscan.height);
  if (self->n_used == 0 && GST_BUFFER_IS_DISCONT (self->buffer))
    GST_BUFFER_FLAG_SET (bscan, GST_BUFFER_FLAG_DISCONT);
}

static ImkStatus
begin (GstOctBscanGroup *self, ImkError *error)
{
  if (self->pool)
    gst_buffer_pool_acquire_buffer (self->pool, &self->partial, NULL);
  else
    self->partial = gst_buffer_new_allocate (NULL, self->bscan.size, NULL);
  if (!self->partial)
    return IMK_NO_MEMORY (
        error, "for a B-scan of %" G_GSIZE_FORMAT " bytes.", self->bscan.size);
  stamp (self, self->partial);
  self->n_filled = 0;
  return IMK_OK;
}

/* As many lines as there are and fit. */
static ImkStatus
copy_lines (GstOctBscanGroup *self, ImkError *error)
{
  guint n = MIN (
      self->lines.height - self->n_used, self->bscan.height - self->n_filled);
  gsize size =
      (gsize) self->lines.width * GST_VIDEO_INFO_COMP_PSTRIDE (&self->lines, 0);
  GstVideoFrame from, to;

  if (!gst_video_frame_map (&from, &self->lines, self->buffer, GST_MAP_READ))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A buffer of %" G_GSIZE_FORMAT " bytes cannot be read as %d lines of "
        "%" G_GSIZE_FORMAT " bytes.",
        gst_buffer_get_size (self->buffer), self->lines.height, size);
  if (!gst_video_frame_map (
          &to, &self->bscan, self->partial, GST_MAP_READ | GST_MAP_WRITE)) {
    gst_video_frame_unmap (&from);
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "The memory of a B-scan cannot be written to.");
  }
  for (guint i = 0; i < n; i++)
    memcpy ((guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&to, 0) +
                (gsize) (self->n_filled + i) *
                    GST_VIDEO_FRAME_PLANE_STRIDE (&to, 0),
        (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&from, 0) +
            (gsize) (self->n_used + i) *
                GST_VIDEO_FRAME_PLANE_STRIDE (&from, 0),
        size);
  gst_video_frame_unmap (&to);
  gst_video_frame_unmap (&from);
  self->n_used += n;
  self->n_filled += n;
  return IMK_OK;
}

/* Whole B-scans that are left in the buffer, in memory that the device reaches;
 * other memory would be copied anyway. */
static guint
count_whole (const GstOctBscanGroup *self)
{
  gsize stride = self->bscan.stride[0];

  if (self->partial || (gsize) self->lines.stride[0] != stride ||
      !gst_imaging_buffer_peek_memory (self->buffer) ||
      gst_buffer_get_video_meta (self->buffer) ||
      gst_buffer_get_size (self->buffer) < self->lines.height * stride)
    return 0;
  return (self->lines.height - self->n_used) / (guint) self->bscan.height;
}

/* @n B-scans as they are in the buffer, which stays as long as its part. */
static GstBuffer *
take_part (GstOctBscanGroup *self, guint n)
{
  gsize stride = self->bscan.stride[0], size = self->bscan.height * stride;
  GstBuffer *part = gst_imaging_buffer_part (
      self->buffer, self->n_used * stride, n * size, NULL);

  stamp (self, part);
  self->n_used += n * (guint) self->bscan.height;
  if (self->n_used == (guint) self->lines.height)
    gst_clear_buffer (&self->buffer);
  return part;
}

GstBuffer *
gst_oct_bscan_group_next (GstOctBscanGroup *self, guint most, guint *n,
    ImkStatus *status, ImkError *error)
{
  guint n_whole, n_parts;

  *n = 1;
  *status = IMK_OK;
  if (!self->buffer)
    return NULL;
  if (self->lines.height == self->bscan.height && !self->partial &&
      self->n_used == 0 && self->lines.stride[0] == self->bscan.stride[0])
    return g_steal_pointer (&self->buffer);
  if ((n_whole = count_whole (self)) > 0) {
    n_parts = (n_whole + most - 1) / most; /* of about one size */
    *n = (n_whole + n_parts - 1) / n_parts;
    return take_part (self, *n);
  }
  if (!self->partial)
    *status = begin (self, error);
  if (*status == IMK_OK)
    *status = copy_lines (self, error);
  if (*status != IMK_OK || self->n_used == (guint) self->lines.height)
    gst_clear_buffer (&self->buffer);
  if (*status != IMK_OK || self->n_filled < (guint) self->bscan.height)
    return NULL;
  self->n_filled = 0;
  return g_steal_pointer (&self->partial);
}
