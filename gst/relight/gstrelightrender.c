/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Renders one picture: the kernel, the memory of its inputs and output, and the
 * CPU when the device fails. */
#include "gstrelight-private.h"

/* --- the kernel ---------------------------------------------------------- */

static ImkRelightConfig
get_config (GstRelight *self)
{
  const GstRelightSettings *now = gst_imaging_settings_now (self->settings);
  ImkRelightConfig c = now->config;

  c.y_down = now->y_down;
  c.width = self->normal_picture.width;
  c.height = self->normal_picture.height;
  c.n_threads = gst_imaging_engine_n_threads (self->engine);
  return c;
}

static void
drop_imports (GstRelight *self)
{
  if (self->imports)
    gst_buffer_pool_set_active (self->imports, FALSE);
  gst_clear_object (&self->imports);
}

void
gst_relight_forget_albedo (GstRelight *self)
{
  gst_clear_buffer (&self->paint);
  drop_imports (self);
}

static void
gst_relight_close (GstElement *element)
{
  GstRelight *self = GST_RELIGHT (element);

  drop_imports (self);
  g_clear_pointer (&self->kernel, imk_relight_free);
}

static ImkStatus
gst_relight_open (GstElement *element, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  GstRelight *self = GST_RELIGHT (element);
  ImkRelightConfig config = get_config (self);

  return imk_relight_new (backend, &config, &self->kernel, error);
}

ImkStatus
gst_relight_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  GstRelight *self = GST_RELIGHT (element);
  ImkRelightConfig config = get_config (self);

  return self->kernel ? imk_relight_update (self->kernel, &config, error)
                      : IMK_OK;
}

static void
gst_relight_reconfigure (GstElement *element)
{
  gst_pad_mark_reconfigure (GST_AGGREGATOR_SRC_PAD (element));
}

const GstImagingEngineFuncs gst_relight_engine_funcs = {
    .open = gst_relight_open,
    .close = gst_relight_close,
    .reconfigure = gst_relight_reconfigure,
};

/* --- one picture ---------------------------------------------------------- */

static ImkStatus
map_source (GstRelight *self, GstBuffer *buffer, const GstImagingPicture *p,
    GstImagingReach reach, GstImagingFrame *frame, ImkRelightSource *source,
    ImkError *error)
{
  ImkStatus status = gst_imaging_engine_map (
      self->engine, buffer, &p->carrier, GST_MAP_READ, reach, frame, error);

  if (status != IMK_OK)
    return status;
  source->image = gst_imaging_picture_image (p, &frame->planes[0]);
  for (guint i = 0; i < 3; i++)
    source->colours[i] = p->colours[i];
  return IMK_OK;
}

/* Keeps the first failure. */
static ImkStatus
unmap (GstImagingFrame *frame, ImkStatus status, ImkError *error)
{
  ImkStatus end =
      gst_imaging_frame_unmap (frame, FALSE, status == IMK_OK ? error : NULL);

  return status == IMK_OK ? end : status;
}

/* @albedo: without data when there is none */
static ImkStatus
process_sources (GstRelight *self, const ImkRelightSource *normals,
    const ImkRelightSource *albedo, GstBuffer *out, GstImagingReach reach,
    ImkError *error)
{
  ImkRelightConfig config = get_config (self);
  GstImagingFrame frame;
  GstVideoInfo info;
  ImkStatus status;

  gst_video_info_set_format (
      &info, GST_VIDEO_FORMAT_RGB, config.width, config.height);
  status = gst_imaging_engine_map (
      self->engine, out, &info, GST_MAP_WRITE, reach, &frame, error);
  if (status != IMK_OK)
    return status;
  status = imk_relight_process (self->kernel, normals, albedo, &frame.planes[0],
      gst_imaging_engine_stream (self->engine), error);
  return unmap (&frame, status, error);
}

static ImkStatus
process_mapped (GstRelight *self, GstBuffer *in, GstBuffer *out,
    GstImagingReach reach, ImkError *error)
{
  ImkRelightSource normals = {0}, albedo = {0};
  GstImagingFrame frame, paint;
  ImkStatus status = map_source (
      self, in, &self->normal_picture, reach, &frame, &normals, error);

  if (status != IMK_OK)
    return status;
  gst_imaging_engine_note_memory (self->engine, frame.memory_name);
  if (self->paint)
    status = map_source (self, self->paint, &self->albedo_picture, reach,
        &paint, &albedo, error);
  if (status == IMK_OK) {
    status = process_sources (self, &normals, &albedo, out, reach, error);
    if (self->paint)
      status = unmap (&paint, status, error);
  }
  return unmap (&frame, status, error);
}

/* Replaces an albedo that the device cannot read by a copy for this and all
 * later pictures. */
static ImkStatus
import_paint (GstRelight *self, ImkError *error)
{
  const GstVideoInfo *info = &self->albedo_picture.carrier;
  GstAllocator *allocator;
  GstBuffer *copy;
  GstCaps *caps;

  if (!self->paint ||
      gst_imaging_frame_can_map (self->paint,
          gst_imaging_engine_context (self->engine), GST_IMAGING_REACH_DEVICE))
    return IMK_OK;
  if (!self->imports) {
    allocator = gst_imaging_engine_allocator_new (
        self->engine, GST_IMAGING_MEMORY_UPLOAD);
    caps = gst_video_info_to_caps (info);
    self->imports = gst_imaging_video_pool_new (allocator, caps, info, FALSE);
    gst_caps_unref (caps);
    gst_object_unref (allocator);
  }
  if (self->imports)
    gst_buffer_pool_set_active (self->imports, TRUE);
  copy =
      gst_imaging_frame_import (self->paint, info, self->imports, NULL, error);
  if (!copy)
    return error->code;
  gst_buffer_replace (&self->paint, copy);
  gst_buffer_unref (copy);
  return IMK_OK;
}

static ImkStatus
process_on_device (
    GstRelight *self, GstBuffer *in, GstBuffer *out, ImkError *error)
{
  GstImagingContext *context = gst_imaging_engine_context (self->engine);
  GstBuffer *source = NULL;
  ImkStatus status = gst_imaging_context_push (context, error);

  if (status != IMK_OK)
    return status;
  status = import_paint (self, error);
  if (status == IMK_OK) {
    source = gst_imaging_engine_reachable (
        self->engine, in, GST_IMAGING_REACH_DEVICE, error);
    status = source ? process_mapped (
                          self, source, out, GST_IMAGING_REACH_DEVICE, error)
                    : error->code;
  }
  if (source && source != in)
    gst_buffer_unref (source);
  gst_imaging_context_pop (context);
  return status;
}

static ImkStatus
check_sizes (GstRelight *self, ImkError *error)
{
  const GstImagingPicture *n = &self->normal_picture;
  const GstImagingPicture *a = &self->albedo_picture;

  if (self->paint && (n->width != a->width || n->height != a->height))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The albedo has %u x %u pixels and the normals %u x %u; they have to "
        "be of one size.",
        a->width, a->height, n->width, n->height);
  return IMK_OK;
}

static ImkStatus
process (GstRelight *self, GstBuffer *in, GstBuffer *out, ImkError *error)
{
  ImkStatus status = check_sizes (self, error);

  if (status == IMK_OK)
    status = gst_imaging_engine_ensure_open (self->engine, error);
  if (status != IMK_OK)
    return status;
  return gst_imaging_engine_is_on_cuda (self->engine)
             ? process_on_device (self, in, out, error)
             : process_mapped (self, in, out, GST_IMAGING_REACH_HOST, error);
}

/* On the CPU. The failed device may still write to the old output memory. */
static ImkStatus
process_again (GstRelight *self, GstBuffer *in, GstBuffer *out, ImkError *error)
{
  ImkStatus status = gst_imaging_engine_fall_back (self->engine, error);
  gsize size = gst_buffer_get_size (out);

  if (status != IMK_OK)
    return status;
  gst_buffer_remove_all_memory (out);
  gst_buffer_append_memory (out, gst_allocator_alloc (NULL, size, NULL));
  return process (self, in, out, error);
}

GstFlowReturn
gst_relight_render (GstRelight *self, GstBuffer *normals, GstBuffer *out)
{
  ImkError why, error;
  ImkStatus status = process (self, normals, out, &error);

  if (gst_imaging_engine_can_fall_back (self->engine, status)) {
    why = error;
    status = process_again (self, normals, out, &error);
    gst_imaging_engine_post_fall_back (self->engine, &why,
        gst_imaging_engine_is_lost (self->engine, normals, status));
  }
  if (status == IMK_OK)
    return GST_FLOW_OK;
  if (gst_imaging_engine_is_lost (self->engine, normals, status)) {
    GST_WARNING_OBJECT (self, "a picture is lost: %s", error.message);
    gst_imaging_engine_count_lost (self->engine);
    return GST_FLOW_CUSTOM_SUCCESS;
  }
  gst_imaging_engine_post_error (self->engine, status, &error);
  return GST_FLOW_ERROR;
}
