/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <gst/video/video.h>

#include "gstimaging-prelude.h"

#include "imk/image.h"

G_BEGIN_DECLS

/**
 * GstImagingPicture: (skip)
 * @width, @height: pixels
 * @type: of a sample
 * @channels: samples a pixel
 * @colours: which of them are red, green, blue; all 0 for grey; 0, 1, 2 of a
 *   tensor of 3 or more
 * @fps_n, @fps_d: frames a second, 0/1 when unknown
 * @carrier: the video format that buffers travel under: their own, or for a
 *   tensor grey frames of its bytes. Its pixel-aspect-ratio is that of the
 *   picture, also of a tensor whose caps have one
 *
 * What the caps say of pictures whose pixels lie together: grey and RGB-like
 * frames, and tensors of float32, channels:width:height:1.
 */
typedef struct {
  guint width, height;
  ImkType type;
  guint channels, colours[3];
  gint fps_n, fps_d;
  GstVideoInfo carrier;
} GstImagingPicture;

/**
 * GST_IMAGING_PICTURE_TENSOR_CAPS: (skip)
 *
 * The caps of tensors that can be pictures.
 */
#define GST_IMAGING_PICTURE_TENSOR_CAPS \
  "other/tensors, format = (string) static, num_tensors = (int) 1, " \
  "types = (string) float32"

/**
 * GST_IMAGING_PICTURE_RGB_FORMATS: (skip)
 *
 * The video formats with colours that can be pictures.
 */
#define GST_IMAGING_PICTURE_RGB_FORMATS \
  "RGB, BGR, RGBx, BGRx, xRGB, xBGR, RGBA, BGRA, ARGB, ABGR, RGBA64_LE, " \
  "ARGB64_LE"

/**
 * gst_imaging_video_info_from_caps: (skip)
 *
 * As gst_video_info_from_caps(), which takes widths whose rows do not fit a
 * number of their own.
 * Returns: %FALSE also for frames of 4 GiB and more, or rows of 2 GiB
 */
GST_IMAGING_API
gboolean gst_imaging_video_info_from_caps (
    GstVideoInfo *info, const GstCaps *caps);

/**
 * gst_imaging_video_info_set_format: (skip)
 * Returns: as gst_imaging_video_info_from_caps()
 */
GST_IMAGING_API
gboolean gst_imaging_video_info_set_format (
    GstVideoInfo *info, GstVideoFormat format, guint width, guint height);

/**
 * gst_imaging_picture_from_caps: (skip)
 * @caps: fixed caps
 *
 * Returns: IMK_OK, or IMK_ERROR_IMAGE for caps that say no picture
 */
GST_IMAGING_API
ImkStatus gst_imaging_picture_from_caps (
    GstImagingPicture *self, GstCaps *caps, ImkError *error);

/**
 * gst_imaging_picture_tensor_caps: (skip)
 * Returns: (transfer full): of tensors of @channels for each pixel of @self
 */
GST_IMAGING_API
GstCaps *gst_imaging_picture_tensor_caps (
    const GstImagingPicture *self, guint channels);

/**
 * gst_imaging_picture_image: (skip)
 * @plane: of a frame that was mapped as a carrier
 *
 * Returns: the same samples as pixels of the picture
 */
GST_IMAGING_API
ImkImage gst_imaging_picture_image (
    const GstImagingPicture *self, const ImkImage *plane);

G_END_DECLS
