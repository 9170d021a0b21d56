/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingpicture.h"

#include <stdio.h>

static gboolean
fits (const GstVideoInfo *info)
{
  for (guint i = 0; i < GST_VIDEO_INFO_N_PLANES (info); i++)
    if (GST_VIDEO_INFO_PLANE_STRIDE (info, i) <= 0)
      return FALSE;
  return GST_VIDEO_INFO_SIZE (info) <= G_MAXUINT32;
}

gboolean
gst_imaging_video_info_from_caps (GstVideoInfo *info, const GstCaps *caps)
{
  return gst_video_info_from_caps (info, caps) && fits (info);
}

gboolean
gst_imaging_video_info_set_format (
    GstVideoInfo *info, GstVideoFormat format, guint width, guint height)
{
  return width <= G_MAXINT && height <= G_MAXINT &&
         gst_video_info_set_format (info, format, width, height) && fits (info);
}

/* Tensors may have any fraction in these fields; pictures may not. What is not
 * positive is as if it were absent. */
static void
read_fraction (const GstStructure *s, const gchar *field, gint *numerator,
    gint *denominator)
{
  gint n, d;

  if (gst_structure_get_fraction (s, field, &n, &d) && n > 0 && d > 0) {
    *numerator = n;
    *denominator = d;
  }
}

static ImkStatus
read_tensor (GstImagingPicture *self, const GstStructure *s, ImkError *error)
{
  const gchar *text = gst_structure_get_string (s, "dimensions");
  guint channels = 0, width = 0, height = 0, rest = 1;

  if (!text ||
      sscanf (text, "%u:%u:%u:%u", &channels, &width, &height, &rest) < 3 ||
      channels < 1 || channels > 16 || width < 1 || width > G_MAXUINT16 ||
      height < 1 || height > G_MAXUINT16 || rest != 1)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A tensor of dimensions %s is no picture; it has to be "
        "channels:width:height:1, with up to 16 channels and 65535 pixels a "
        "side.",
        text ? text : "that are not told");
  self->width = width;
  self->height = height;
  self->type = IMK_TYPE_F32;
  self->channels = channels;
  for (guint i = 0; i < 3 && channels >= 3; i++)
    self->colours[i] = i;
  if (!gst_imaging_video_info_set_format (&self->carrier,
          GST_VIDEO_FORMAT_GRAY8, width * channels * (guint) sizeof (gfloat),
          height))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A tensor of dimensions %s has 4 GiB or more, which cannot be taken. "
        "Use fewer pixels.",
        text);
  read_fraction (
      s, "pixel-aspect-ratio", &self->carrier.par_n, &self->carrier.par_d);
  return IMK_OK;
}

static ImkStatus
read_video (GstImagingPicture *self, GstCaps *caps, ImkError *error)
{
  GstVideoInfo *info = &self->carrier;
  guint size;

  if (!gst_imaging_video_info_from_caps (info, caps))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The caps are those of no picture, or of one of 4 GiB or more, which "
        "cannot be taken.");
  size = GST_VIDEO_INFO_COMP_DEPTH (info, 0) > 8 ? 2 : 1;
  self->width = GST_VIDEO_INFO_WIDTH (info);
  self->height = GST_VIDEO_INFO_HEIGHT (info);
  self->type = size == 2 ? IMK_TYPE_U16 : IMK_TYPE_U8;
  self->channels = GST_VIDEO_INFO_COMP_PSTRIDE (info, 0) / size;
  for (guint i = 0; i < 3 && GST_VIDEO_INFO_IS_RGB (info); i++)
    self->colours[i] = GST_VIDEO_INFO_COMP_POFFSET (info, i) / size;
  return IMK_OK;
}

ImkStatus
gst_imaging_picture_from_caps (
    GstImagingPicture *self, GstCaps *caps, ImkError *error)
{
  GstStructure *s = gst_caps_get_structure (caps, 0);
  GstImagingPicture picture = {.fps_n = 0, .fps_d = 1};
  ImkStatus status;

  gst_video_info_init (&picture.carrier);
  status = gst_structure_has_name (s, "other/tensors")
               ? read_tensor (&picture, s, error)
               : read_video (&picture, caps, error);
  if (status != IMK_OK)
    return status;
  read_fraction (s, "framerate", &picture.fps_n, &picture.fps_d);
  *self = picture;
  return IMK_OK;
}

GstCaps *
gst_imaging_picture_tensor_caps (const GstImagingPicture *self, guint channels)
{
  g_autofree gchar *dimensions =
      g_strdup_printf ("%u:%u:%u:1", channels, self->width, self->height);
  GstCaps *caps = gst_caps_from_string (GST_IMAGING_PICTURE_TENSOR_CAPS);

  gst_caps_set_simple (caps, "dimensions", G_TYPE_STRING, dimensions,
      "framerate", GST_TYPE_FRACTION, self->fps_n, self->fps_d, NULL);
  if (self->carrier.par_n != self->carrier.par_d)
    gst_caps_set_simple (caps, "pixel-aspect-ratio", GST_TYPE_FRACTION,
        self->carrier.par_n, self->carrier.par_d, NULL);
  return caps;
}

ImkImage
gst_imaging_picture_image (const GstImagingPicture *self, const ImkImage *plane)
{
  ImkImage image = *plane;

  image.width = self->width;
  image.height = self->height;
  image.channels = self->channels;
  image.type = self->type;
  return image;
}
