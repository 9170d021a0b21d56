/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes a B-scan of one frame of each camera: its lines and its metadata. */
#include "gstoctinterlace-private.h"

#include <string.h>

#include "gstimagingmetadata.h"

/* Black without a frame. */
static gboolean
copy_lines (GstOctInterlacePad *camera, guint first, guint step,
    const GstVideoFrame *to)
{
  gsize size = (gsize) camera->lines.info.width *
               GST_VIDEO_INFO_COMP_PSTRIDE (&camera->lines.info, 0);
  gsize stride = GST_VIDEO_FRAME_PLANE_STRIDE (to, 0);
  guint8 *line = (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (to, 0) + first * stride;
  gint height = GST_VIDEO_FRAME_HEIGHT (to) / (gint) step;
  GstVideoFrame from;

  if (!camera->frame) {
    for (gint y = 0; y < height; y++)
      memset (line + (gsize) y * step * stride, 0, stride);
    return TRUE;
  }
  if (!gst_video_frame_map (
          &from, &camera->lines.info, camera->frame, GST_MAP_READ))
    return FALSE;
  for (gint y = 0; y < height; y++)
    memcpy (line + (gsize) y * step * stride,
        (const guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&from, 0) +
            (gsize) y * GST_VIDEO_FRAME_PLANE_STRIDE (&from, 0),
        size);
  gst_video_frame_unmap (&from);
  return TRUE;
}

static GstFlowReturn
acquire (GstOctInterlace *self, GstBuffer **buffer)
{
  g_autoptr (GstBufferPool) pool =
      gst_aggregator_get_buffer_pool (GST_AGGREGATOR (self));
  GstFlowReturn flow = GST_FLOW_OK;

  if (pool)
    flow = gst_buffer_pool_acquire_buffer (pool, buffer, NULL);
  else
    *buffer = gst_buffer_new_allocate (NULL, self->lines.info.size, NULL);
  return flow;
}

static gboolean
interlace (GstOctInterlace *self, GPtrArray *cameras, GstBuffer *bscan)
{
  gboolean ok = TRUE;
  GstVideoFrame to;

  if (!gst_video_frame_map (&to, &self->lines.info, bscan, GST_MAP_WRITE)) {
    GST_ELEMENT_ERROR (self, RESOURCE, WRITE,
        ("The memory of a B-scan of %d lines cannot be written to.",
            self->lines.info.height),
        (NULL));
    return FALSE;
  }
  for (guint i = 0; i < cameras->len && ok; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];

    ok = copy_lines (camera, i, cameras->len, &to);
    if (!ok)
      GST_ELEMENT_ERROR (self, RESOURCE, READ,
          ("A frame of camera %u cannot be read as %d lines of %u samples.",
              camera->number, self->camera_lines.info.height,
              gst_imaging_lines_get_width (&self->camera_lines)),
          (NULL));
  }
  gst_video_frame_unmap (&to);
  return ok;
}

/* Returns: @time in the output segment. If a frame of this time has the same
 * segment its pts is used: conversion to running time and back rounds. */
static GstClockTime
position_of (GstOctInterlace *self, GPtrArray *cameras, GstClockTime time)
{
  const GstSegment *ours =
      &GST_AGGREGATOR_PAD (GST_AGGREGATOR_SRC_PAD (self))->segment;
  GstClockTime position = GST_CLOCK_TIME_NONE;

  if (GST_CLOCK_TIME_IS_VALID (time))
    position =
        gst_segment_position_from_running_time (ours, GST_FORMAT_TIME, time);
  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];
    const GstSegment *segment = &GST_AGGREGATOR_PAD (camera)->segment;

    if (camera->frame && !camera->repeats &&
        gst_oct_interlace_pad_time_of (camera, camera->frame) == time &&
        time != position && segment->format == GST_FORMAT_TIME &&
        segment->rate == ours->rate && segment->start == ours->start &&
        segment->stop == ours->stop && segment->base == ours->base &&
        segment->offset == ours->offset)
      return GST_BUFFER_PTS (camera->frame);
  }
  return position;
}

/* Lines that no camera has sent for this B-scan are filled. Some of them: it is
 * corrupted. All: there is nothing in it. */
static void
mark_filled (GPtrArray *cameras, GstBuffer *bscan)
{
  guint n_filled = 0;
  gboolean is_corrupted = FALSE;

  for (guint i = 0; i < cameras->len; i++) {
    const GstOctInterlacePad *camera = cameras->pdata[i];

    n_filled += !camera->frame || camera->repeats ||
                GST_BUFFER_FLAG_IS_SET (camera->frame, GST_BUFFER_FLAG_GAP);
    is_corrupted |= camera->frame && GST_BUFFER_FLAG_IS_SET (camera->frame,
                                         GST_BUFFER_FLAG_CORRUPTED);
  }
  GST_BUFFER_FLAG_UNSET (
      bscan, GST_BUFFER_FLAG_GAP | GST_BUFFER_FLAG_CORRUPTED);
  if (n_filled == cameras->len)
    GST_BUFFER_FLAG_SET (bscan, GST_BUFFER_FLAG_GAP);
  else if (n_filled > 0 || is_corrupted)
    GST_BUFFER_FLAG_SET (bscan, GST_BUFFER_FLAG_CORRUPTED);
}

/* Metadata is that of the latest frame. A DISCONT of one camera is one of all.
 */
static void
describe (GstOctInterlace *self, GPtrArray *cameras, GstClockTime position,
    GstBuffer *bscan)
{
  GstBuffer **frames = g_newa0 (GstBuffer *, cameras->len);
  GstClockTime duration = GST_CLOCK_TIME_NONE;
  GstBuffer *latest;

  for (guint i = 0; i < cameras->len; i++) {
    const GstOctInterlacePad *camera = cameras->pdata[i];

    if (!camera->frame)
      continue;
    duration = MIN (duration, GST_BUFFER_DURATION (camera->frame));
    if (camera->repeats)
      continue;
    frames[i] = camera->frame;
    self->is_gap |= GST_BUFFER_IS_DISCONT (camera->frame);
  }
  latest = gst_imaging_metadata_latest (frames, cameras->len);
  if (latest)
    gst_imaging_metadata_pass (bscan, latest, FALSE);
  else if (self->last_offset != GST_BUFFER_OFFSET_NONE)
    GST_BUFFER_OFFSET (bscan) = self->last_offset + 1;
  GST_BUFFER_PTS (bscan) = position;
  GST_BUFFER_DTS (bscan) = GST_CLOCK_TIME_NONE;
  GST_BUFFER_DURATION (bscan) = latest ? duration : self->last_duration;
  mark_filled (cameras, bscan);
  if (self->is_gap)
    GST_BUFFER_FLAG_SET (bscan, GST_BUFFER_FLAG_DISCONT);
  self->is_gap = FALSE;
  self->last_offset = GST_BUFFER_OFFSET (bscan);
  self->last_duration = GST_BUFFER_DURATION (bscan);
}

GstFlowReturn
gst_oct_interlace_make_bscan (GstOctInterlace *self, GPtrArray *cameras,
    GstClockTime time, GstBuffer **bscan)
{
  GstFlowReturn flow = acquire (self, bscan);

  if (flow != GST_FLOW_OK)
    return flow;
  if (!interlace (self, cameras, *bscan)) {
    gst_clear_buffer (bscan);
    return GST_FLOW_ERROR;
  }
  describe (self, cameras, position_of (self, cameras, time), *bscan);
  return GST_FLOW_OK;
}
