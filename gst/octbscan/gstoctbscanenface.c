/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscanenface.h"

#include "gstimagingmetadata.h"
#include "gstoctbscantime.h"

struct _GstOctBscanEnface {
  GstPad *pad;  /* (nullable): of the rows */
  gfloat *rows; /* [height][width] */
  guint width, height;
  guint n_rows;
  gboolean is_used;
  GstClockTime pts, duration;
  guint64 offset; /* of the first row */
};

GstOctBscanEnface *
gst_oct_bscan_enface_new (void)
{
  return g_new0 (GstOctBscanEnface, 1);
}

void
gst_oct_bscan_enface_free (GstOctBscanEnface *self)
{
  if (!self)
    return;
  gst_clear_object (&self->pad);
  g_free (self->rows);
  g_free (self);
}

guint
gst_oct_bscan_enface_reset (GstOctBscanEnface *self)
{
  guint n = self->n_rows;

  self->n_rows = 0;
  self->is_used = FALSE;
  return n;
}

gboolean
gst_oct_bscan_enface_is_new (GstOctBscanEnface *self)
{
  return !self->is_used;
}

ImkStatus
gst_oct_bscan_enface_setup (GstOctBscanEnface *self, GstPad *pad, guint width,
    guint height, guint *n_forgotten, ImkError *error)
{
  gboolean is_other = width != self->width || height != self->height;

  *n_forgotten = is_other ? gst_oct_bscan_enface_reset (self) : 0;
  if (gst_object_replace ((GstObject **) &self->pad, GST_OBJECT (pad)))
    gst_oct_bscan_enface_reset (self);
  if (!is_other)
    return IMK_OK;
  g_free (self->rows);
  self->width = self->height = 0;
  self->rows = g_try_new0 (gfloat, (gsize) width * height);
  if (!self->rows)
    return IMK_NO_MEMORY (error,
        "for en-face images of %u x %u; fewer "
        "bscans-per-volume need less.",
        width, height);
  self->width = width;
  self->height = height;
  return IMK_OK;
}

gboolean
gst_oct_bscan_enface_add (GstOctBscanEnface *self, GstBuffer *buffer)
{
  if (self->n_rows == self->height)
    self->n_rows = 0;
  if (self->n_rows == 0) {
    self->pts = GST_BUFFER_PTS (buffer);
    self->offset = GST_BUFFER_OFFSET (buffer);
    self->duration = 0;
  }
  self->is_used = TRUE;
  self->duration =
      gst_oct_bscan_time_sum (self->duration, GST_BUFFER_DURATION (buffer));
  gst_buffer_extract (buffer, 0,
      self->rows + (gsize) self->n_rows * self->width,
      self->width * sizeof (gfloat));
  return ++self->n_rows == self->height;
}

static ImkStatus
level (GstOctBscanEnface *self, GstVideoFrame *frame, gboolean is_float,
    const ImkOctbscanConfig *config, gboolean db, gfloat ends[4],
    ImkError *error)
{
  const ImkImage in = {self->rows, self->width * sizeof (gfloat), self->width,
      self->height, 1, IMK_TYPE_F32, IMK_LOCATION_HOST};
  ImkImage out = {GST_VIDEO_FRAME_PLANE_DATA (frame, 0),
      GST_VIDEO_FRAME_PLANE_STRIDE (frame, 0), self->width, self->height, 1,
      is_float                                                   ? IMK_TYPE_F32
      : GST_VIDEO_FRAME_FORMAT (frame) == GST_VIDEO_FORMAT_GRAY8 ? IMK_TYPE_U8
                                                                 : IMK_TYPE_U16,
      IMK_LOCATION_HOST};

  return imk_octbscan_level_image (config, db, &in, &out, ends, error);
}

GstBuffer *
gst_oct_bscan_enface_image (GstOctBscanEnface *self, const GstVideoInfo *info,
    gboolean is_float, const ImkOctbscanConfig *config, gboolean db,
    GstBuffer *like, gfloat ends[4], ImkError *error)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, info->size, NULL);
  ImkStatus status = IMK_ERROR_MEMORY;
  GstVideoFrame frame;

  if (buffer && gst_video_frame_map (&frame, info, buffer, GST_MAP_WRITE)) {
    status = level (self, &frame, is_float, config, db, ends, error);
    gst_video_frame_unmap (&frame);
  } else {
    imk_error_set (error, status,
        "There is no memory for an en-face image of %u x %u.", self->width,
        self->height);
  }
  self->n_rows = 0;
  if (status != IMK_OK) {
    gst_clear_buffer (&buffer);
    return NULL;
  }
  gst_imaging_metadata_copy (buffer, like, FALSE);
  GST_BUFFER_OFFSET (buffer) = self->offset;
  GST_BUFFER_OFFSET_END (buffer) = GST_BUFFER_OFFSET_END (like);
  GST_BUFFER_PTS (buffer) = self->pts;
  GST_BUFFER_DURATION (buffer) = self->duration;
  return buffer;
}
