/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Spectra as images of the kernel, and in which memory they are. */
#include "gstoctbscaninput.h"

#include "gstimagingmemory.h"

void
gst_oct_bscan_input_image (const GstOctBscan *self, ImkImage *plane)
{
  plane->type = self->input.type;
  plane->width /= self->input.bytes_a_pixel;
  plane->data = (guint8 *) plane->data + self->input.n_skipped * plane->stride;
  plane->height -= self->input.n_skipped;
}

gboolean
gst_oct_bscan_map_input (const GstOctBscan *self, GstBuffer *bscan,
    GstMapFlags access, GstVideoFrame *frame, ImkImage *image)
{
  if (!gst_video_frame_map (frame, &self->input.bscan, bscan, access))
    return FALSE;
  *image = (ImkImage){GST_VIDEO_FRAME_PLANE_DATA (frame, 0),
      GST_VIDEO_FRAME_PLANE_STRIDE (frame, 0), self->input.bscan.width,
      self->input.bscan.height, 1, IMK_TYPE_U8, IMK_LOCATION_HOST};
  gst_oct_bscan_input_image (self, image);
  return TRUE;
}

guint
gst_oct_bscan_first_camera (const GstOctBscan *self)
{
  return (guint) ((self->input.next_line + self->input.n_skipped) %
                  self->open.config.n_cameras);
}

gboolean
gst_oct_bscan_is_on_device (GstBuffer *buffer)
{
  GstMemory *memory = gst_imaging_buffer_peek_memory (buffer);

  return memory && gst_imaging_memory_is_on_device (memory);
}

gsize
gst_oct_bscan_work_in_step (const GstOctBscan *self)
{
  return (gsize) self->input.bscan.height * self->input.bscan.stride[0];
}
