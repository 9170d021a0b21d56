/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstphotostereoresult.h"

#include "gstimagingmetadata.h"
#include "gstimagingquantity.h"

/* --- caps ---------------------------------------------------------------- */

/* Returns: (transfer full) (nullable): one encoding, without the content */
static GstCaps *
plain_caps (const GstPhotoStereoShape *shape, GstPhotoStereoEncoding encoding)
{
  static const gchar *const bytes[] = {NULL, "GRAY8", NULL, "RGB", NULL};
  static const gchar *const words[] = {
      NULL, "GRAY16_LE", NULL, "RGBA64_LE", "RGBA64_LE"};
  const GstImagingPicture picture = {.width = shape->width,
      .height = shape->height,
      .fps_n = 0,
      .fps_d = 1,
      .carrier = {.par_n = shape->par_n, .par_d = shape->par_d}};
  guint channels = shape->bands ? 1 : shape->channels;
  guint height = shape->height * (shape->bands ? shape->channels : 1);
  const gchar *format = encoding == GST_PHOTO_STEREO_ENCODING_8
                            ? bytes[channels]
                            : words[channels];
  GstCaps *caps;

  if (encoding == GST_PHOTO_STEREO_ENCODING_TENSOR)
    return gst_imaging_picture_tensor_caps (&picture, shape->channels);
  if (!format)
    return NULL;
  caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING, format,
      "width", G_TYPE_INT, (gint) shape->width, "height", G_TYPE_INT,
      (gint) height, "framerate", GST_TYPE_FRACTION, 0, 1, NULL);
  if (shape->par_n != shape->par_d)
    gst_caps_set_simple (caps, "pixel-aspect-ratio", GST_TYPE_FRACTION,
        shape->par_n, shape->par_d, NULL);
  return caps;
}

/* Returns: (transfer full) (nullable): one encoding */
static GstCaps *
encoding_caps (
    const GstPhotoStereoShape *shape, GstPhotoStereoEncoding encoding)
{
  GstCaps *caps = plain_caps (shape, encoding);

  if (caps && shape->content)
    gst_caps_set_simple (caps, "content", G_TYPE_STRING, shape->content, NULL);
  return caps;
}

/* The same in CUDAMemory, which GstCuda has of RGB.
 * Returns: (transfer full) */
static GstCaps *
cuda_caps (const GstPhotoStereoShape *shape)
{
  GstCaps *caps = encoding_caps (shape, GST_PHOTO_STEREO_ENCODING_8);

  gst_caps_set_features_simple (
      caps, gst_caps_features_new ("memory:CUDAMemory", NULL));
  return caps;
}

/* Returns: (transfer full): what we would give, the best first; CUDAMemory is
 * for those who take nothing that the CPU can map */
static GstCaps *
offers (GstImagingEngine *engine, const GstPhotoStereoShape *shape,
    GstPhotoStereoEncoding choice)
{
  gboolean bytes = choice == GST_PHOTO_STEREO_ENCODING_AUTO ||
                   choice == GST_PHOTO_STEREO_ENCODING_8;
  g_autoptr (GstCaps) all = gst_caps_new_empty ();

  for (GstPhotoStereoEncoding e = GST_PHOTO_STEREO_ENCODING_8;
       e <= GST_PHOTO_STEREO_ENCODING_TENSOR; e++) {
    GstCaps *caps = choice == GST_PHOTO_STEREO_ENCODING_AUTO || choice == e
                        ? encoding_caps (shape, e)
                        : NULL;

    if (caps)
      gst_caps_append (all, caps);
  }
  if (bytes && shape->channels == 3 && gst_imaging_engine_is_on_cuda (engine))
    gst_caps_append (all, cuda_caps (shape));
  return gst_imaging_engine_usable_caps (engine, all);
}

GstFlowReturn
gst_photo_stereo_negotiate_pad (GstImagingSrcPad *pad, GstImagingEngine *engine,
    const GstPhotoStereoShape *shape, GstPhotoStereoEncoding choice)
{
  return pad ? gst_imaging_src_pad_negotiate (
                   pad, GST_IMAGING_PREFER_OURS, offers (engine, shape, choice))
             : GST_FLOW_NOT_LINKED;
}

/* --- one result ---------------------------------------------------------- */

static ImkStatus
map_new_buffer (GstPhotoStereoResult *self, GstImagingEngine *engine,
    ImkImage *image, ImkError *error)
{
  GstImagingReach reach = !gst_imaging_engine_is_on_cuda (engine)
                              ? GST_IMAGING_REACH_HOST
                          : self->is_shared ? GST_IMAGING_REACH_DEVICE_OR_MAPPED
                                            : GST_IMAGING_REACH_DEVICE;
  GstImagingPicture picture;
  ImkStatus status = gst_imaging_picture_from_caps (
      &picture, gst_imaging_src_pad_caps (self->pad), error);

  gst_imaging_src_pad_use_host (self->pad, self->is_shared);
  if (status == IMK_OK)
    status = gst_imaging_src_pad_acquire (
        self->pad, engine, &picture.carrier, &self->buffer, error);
  if (status != IMK_OK)
    return status;
  status = gst_imaging_engine_map (engine, self->buffer, &picture.carrier,
      GST_MAP_WRITE, reach, &self->frame, error);
  if (status == IMK_OK)
    *image = gst_imaging_picture_image (&picture, &self->frame.planes[0]);
  else
    gst_clear_buffer (&self->buffer);
  return status;
}

GstFlowReturn
gst_photo_stereo_result_begin (GstPhotoStereoResult *self,
    GstImagingEngine *engine, const GstPhotoStereoShape *shape,
    GstPhotoStereoEncoding choice, ImkImage *image, ImkError *error)
{
  GstFlowReturn flow =
      gst_photo_stereo_negotiate_pad (self->pad, engine, shape, choice);

  if (flow != GST_FLOW_OK)
    return flow;
  return map_new_buffer (self, engine, image, error) == IMK_OK ? GST_FLOW_OK
                                                               : GST_FLOW_ERROR;
}

/* Whether the bands of @shape are one below the other. */
static gboolean
is_stacked (const GstPhotoStereoShape *shape)
{
  return shape->bands && shape->channels > 1;
}

/* Tells what the samples of @buffer stand for. */
static void
describe (GstPhotoStereoResult *self, const GstPhotoStereoShape *shape,
    GstBuffer *buffer)
{
  gboolean is_known = shape->mm_per_pixel > 0;
  const gchar *unit = is_known ? "mm" : "pixel";
  gdouble column = is_known ? shape->mm_per_pixel : 1;
  gdouble row = column * shape->par_d / shape->par_n;
  /* as the y of normals goes: upwards from the last row, as in the mesh */
  const GstImagingAxis axes[] = {{"x", unit, column, 0},
      {"y", unit, shape->y_down ? row : -row,
          shape->y_down ? 0 : (shape->height - 1) * row}};
  gboolean is_normal = g_strcmp0 (shape->quantity, "normal") == 0;
  GstImagingPicture picture;
  gdouble white, zero;

  if (!shape->quantity ||
      gst_imaging_picture_from_caps (
          &picture, gst_imaging_src_pad_caps (self->pad), NULL) != IMK_OK)
    return;
  white = picture.type == IMK_TYPE_U8    ? 255
          : picture.type == IMK_TYPE_U16 ? 65535
                                         : 1;
  zero = is_normal && white > 1 ? (white + 1) / 2 : 0;
  /* rows of several bands are no axis */
  gst_imaging_quantity_attach (buffer, shape->quantity, "", 1 / (white - zero),
      -zero / (white - zero), axes,
      is_stacked (shape) && white > 1 ? 1 : G_N_ELEMENTS (axes));
}

GstFlowReturn
gst_photo_stereo_result_push (GstPhotoStereoResult *self,
    const GstPhotoStereoShape *shape, GstBuffer *like,
    const GstImagingResult *summary)
{
  GstBuffer *buffer = g_steal_pointer (&self->buffer);

  if (!like) {
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  gst_buffer_copy_into (buffer, like, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_imaging_metadata_copy (buffer, like, !is_stacked (shape));
  describe (self, shape, buffer);
  gst_imaging_quantity_sign (buffer, &summary->origin);
  gst_imaging_results_attach (
      buffer, GST_OBJECT_NAME (GST_PAD_PARENT (self->pad)), summary);
  return gst_imaging_src_pad_push (self->pad, buffer);
}
