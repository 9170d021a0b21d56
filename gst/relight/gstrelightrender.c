/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Renders one picture: the kernel, and the memory of its inputs and output. */
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

void
gst_relight_forget_albedo (GstRelight *self)
{
  gst_clear_buffer (&self->current);
  gst_imaging_pool_clear (&self->imports);
}

static void
gst_relight_close (GstElement *element)
{
  GstRelight *self = GST_RELIGHT (element);

  gst_imaging_pool_clear (&self->imports);
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
  IMK_TRY (gst_imaging_engine_map (
      self->engine, buffer, &p->carrier, GST_MAP_READ, reach, frame, error));
  source->image = gst_imaging_picture_image (p, &frame->planes[0]);
  for (guint i = 0; i < 3; i++)
    source->colours[i] = p->colours[i];
  return IMK_OK;
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
  IMK_TRY (gst_imaging_engine_map (
      self->engine, out, &info, GST_MAP_WRITE, reach, &frame, error));
  status = imk_relight_process (self->kernel, normals, albedo, &frame.planes[0],
      gst_imaging_engine_stream (self->engine), error);
  return gst_imaging_frame_end (&frame, FALSE, status, error);
}

static ImkStatus
process_mapped (GstRelight *self, GstBuffer *in, GstBuffer *out,
    GstImagingReach reach, ImkError *error)
{
  ImkRelightSource normals = {0}, albedo = {0};
  GstImagingFrame frame, albedo_frame;
  ImkStatus status = IMK_OK;

  IMK_TRY (map_source (
      self, in, &self->normal_picture, reach, &frame, &normals, error));
  gst_imaging_engine_note_memory (self->engine, frame.memory_name);
  if (self->current)
    status = map_source (self, self->current, &self->albedo_picture, reach,
        &albedo_frame, &albedo, error);
  if (status == IMK_OK) {
    status = process_sources (self, &normals, &albedo, out, reach, error);
    if (self->current)
      status = gst_imaging_frame_end (&albedo_frame, FALSE, status, error);
  }
  return gst_imaging_frame_end (&frame, FALSE, status, error);
}

/* Replaces an albedo that the device cannot read by a copy for this and all
 * later pictures. */
static ImkStatus
import_albedo (GstRelight *self, ImkError *error)
{
  const GstVideoInfo *info = &self->albedo_picture.carrier;
  g_autoptr (GstBuffer) copy = NULL;

  if (!self->current ||
      gst_imaging_frame_can_map (self->current,
          gst_imaging_engine_context (self->engine), GST_IMAGING_REACH_DEVICE))
    return IMK_OK;
  if (!self->imports) {
    g_autoptr (GstAllocator) allocator = gst_imaging_engine_allocator_new (
        self->engine, GST_IMAGING_MEMORY_UPLOAD);
    g_autoptr (GstCaps) caps = gst_video_info_to_caps (info);

    self->imports = gst_imaging_video_pool_new (allocator, caps, info, FALSE);
  }
  if (self->imports)
    gst_buffer_pool_set_active (self->imports, TRUE);
  copy = gst_imaging_frame_import (
      self->current, info, self->imports, NULL, error);
  if (!copy)
    return error->code;
  gst_buffer_replace (&self->current, copy);
  return IMK_OK;
}

static ImkStatus
check_sizes (GstRelight *self, ImkError *error)
{
  const GstImagingPicture *n = &self->normal_picture;
  const GstImagingPicture *a = &self->albedo_picture;

  if (self->current && (n->width != a->width || n->height != a->height))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The albedo has %u x %u pixels and the normals %u x %u; they have to "
        "be of one size.",
        a->width, a->height, n->width, n->height);
  return IMK_OK;
}

typedef struct {
  GstRelight *self;
  GstBuffer *out;
} Work;

static ImkStatus
process (gpointer data, GstBuffer *in, GstImagingReach reach, gboolean again,
    ImkError *error)
{
  Work *w = data;
  gsize size = gst_buffer_get_size (w->out);
  ImkStatus status = check_sizes (w->self, error);

  if (again) {
    gst_buffer_remove_all_memory (w->out);
    gst_buffer_append_memory (w->out, gst_allocator_alloc (NULL, size, NULL));
  }
  if (status == IMK_OK && reach == GST_IMAGING_REACH_DEVICE)
    status = import_albedo (w->self, error);
  return status == IMK_OK ? process_mapped (w->self, in, w->out, reach, error)
                          : status;
}

GstFlowReturn
gst_relight_render (GstRelight *self, GstBuffer *normals, GstBuffer *out)
{
  Work w = {self, out};

  return gst_imaging_engine_process (
      self->engine, normals, GST_IMAGING_REACH_DEVICE, process, &w);
}
