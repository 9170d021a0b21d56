/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the B-scans of a set to its flow: on the device or on the CPU, wherever
 * the kernel is. */
#include "gstoctangio-private.h"

#include "gstimagingallocation.h"
#include "gstimagingpicture.h"

ImkStatus
gst_oct_angio_carrier (
    GstElement *element, GstCaps *caps, GstVideoInfo *info, ImkError *error)
{
  const GstOctAngio *self = GST_OCT_ANGIO (element);
  guint64 row = (self->is_complex ? 2 * (guint64) self->n_depths
                                  : (guint64) self->n_ascans) *
                sizeof (gfloat);
  guint n_rows = self->is_complex ? self->n_ascans : self->n_depths;

  if (row <= G_MAXINT && gst_imaging_video_info_set_format (
                             info, GST_VIDEO_FORMAT_GRAY8, (guint) row, n_rows))
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "B-scans of %u A-scans and %u depths have 4 GiB or more each. Crop them.",
      self->n_ascans, self->n_depths);
}

void
gst_oct_angio_drop_flow (GstOctAngio *self)
{
  gst_clear_buffer (&self->flow);
  gst_imaging_pool_clear (&self->flows);
}

/* Memory that the kernel writes. */
static ImkStatus
acquire_flow (GstOctAngio *self, ImkError *error)
{
  gboolean on_cuda = gst_imaging_engine_is_on_cuda (self->base.engine);
  GstAllocator *allocator;
  GstCaps *caps;
  guint size;

  gst_clear_buffer (&self->flow);
  if (self->flows && self->flows_on_cuda != on_cuda)
    gst_oct_angio_drop_flow (self);
  if (!self->flows) {
    caps = gst_video_info_to_caps (&self->flow_info);
    self->flows = gst_imaging_allocation_pool_new (self->base.engine, caps,
        &self->flow_info, FALSE, GST_IMAGING_MEMORY_DEVICE, &allocator, &size);
    self->flows_on_cuda = on_cuda;
    gst_caps_unref (caps);
    gst_clear_object (&allocator);
    if (self->flows && !gst_buffer_pool_set_active (self->flows, TRUE))
      gst_clear_object (&self->flows);
  }
  if (self->flows && gst_buffer_pool_acquire_buffer (
                         self->flows, &self->flow, NULL) == GST_FLOW_OK)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_MEMORY,
      "There is no memory for %u x %u pixels of flow.", self->n_ascans,
      self->n_depths);
}

/* A B-scan as the kernel takes it. */
static ImkImage
image_of (const GstOctAngio *self, const GstImagingFrame *frame)
{
  ImkImage image = frame->planes[0];

  image.type = self->is_complex ? IMK_TYPE_CF32 : IMK_TYPE_F32;
  image.width = self->is_complex ? self->n_depths : self->n_ascans;
  return image;
}

static ImkStatus
run_kernel (GstOctAngio *self, const ImkImage *bscans, GstImagingReach reach,
    ImkError *error)
{
  const GstOctAngioSettings *s = gst_imaging_settings_now (self->base.settings);
  gpointer stream = gst_imaging_engine_stream (self->base.engine);
  GstImagingFrame frame;
  ImkImage flow;
  ImkStatus status = gst_imaging_engine_map (self->base.engine, self->flow,
      &self->flow_info, GST_MAP_WRITE, reach, &frame, error);

  if (status != IMK_OK)
    return status;
  if (reach == GST_IMAGING_REACH_HOST)
    stream = NULL;
  flow = frame.planes[0];
  flow.type = IMK_TYPE_F32;
  flow.width = self->n_ascans;
  status = imk_octangio_process (self->kernel, bscans, &flow, stream, error);
  if (status == IMK_OK && self->surface)
    status = imk_octangio_surface (self->kernel, s->surface_top,
        s->surface_window, self->surface, stream, error);
  return gst_imaging_frame_end (&frame, FALSE, status, error);
}

/* @in: the first B-scan; the kernel reaches it */
static ImkStatus
process (gpointer data, GstBuffer *in, GstImagingReach reach, gboolean again,
    ImkError *error)
{
  GstOctAngio *self = data;
  GstImagingEngine *engine = self->base.engine;
  GstBuffer *sources[IMK_OCTANGIO_MAX_REPEATS];
  GstImagingFrame frames[IMK_OCTANGIO_MAX_REPEATS];
  ImkImage bscans[IMK_OCTANGIO_MAX_REPEATS];
  ImkStatus status = acquire_flow (self, error);
  guint n = 0;

  while (n < self->n_held && status == IMK_OK) {
    sources[n] = n == 0 ? in
                 : reach == GST_IMAGING_REACH_HOST
                     ? self->held[n]
                     : gst_imaging_engine_reachable (
                           engine, self->held[n], reach, error);
    status = sources[n] ? gst_imaging_engine_map (engine, sources[n],
                              gst_imaging_engine_info (engine), GST_MAP_READ,
                              reach, &frames[n], error)
                        : error->code;
    if (status == IMK_OK)
      bscans[n] = image_of (self, &frames[n]);
    else if (sources[n] && sources[n] != in && sources[n] != self->held[n])
      gst_buffer_unref (sources[n]);
    n += status == IMK_OK;
  }
  if (status == IMK_OK) {
    gst_imaging_engine_note_memory (engine, frames[0].memory_name);
    status = run_kernel (self, bscans, reach, error);
  }
  while (n-- > 0) {
    status = gst_imaging_frame_end (&frames[n], FALSE, status, error);
    if (sources[n] != in && sources[n] != self->held[n])
      gst_buffer_unref (sources[n]);
  }
  return status;
}

/* Whether the kernel reads each sample of the B-scans only once: methods of
 * pairs read A-scans where two strips of them meet twice. */
static gboolean
reads_once (const GstOctAngioSettings *s)
{
  return s->config.method == IMK_OCTANGIO_MEAN ||
         s->config.method == IMK_OCTANGIO_SPECKLE_VARIANCE ||
         s->config.method == IMK_OCTANGIO_DECORRELATION;
}

void
gst_oct_angio_cancel (GstOctAngio *self, gboolean yes)
{
  GST_OBJECT_LOCK (self);
  self->is_stopping = yes;
  if (self->kernel)
    imk_octangio_cancel (self->kernel, yes);
  GST_OBJECT_UNLOCK (self);
}

static gboolean
is_stopping (GstOctAngio *self)
{
  gboolean stopping;

  GST_OBJECT_LOCK (self);
  stopping = self->is_stopping;
  GST_OBJECT_UNLOCK (self);
  return stopping;
}

GstFlowReturn
gst_oct_angio_compute (GstOctAngio *self)
{
  const GstOctAngioSettings *s;
  /* one that was turned is not where octbscan has its B-scans */
  guint k = self->n_held > 1 && gst_oct_angio_is_backward (self->held[0]);
  GstFlowReturn flow;

  if (!gst_imaging_engine_follow (self->base.engine, self->held[k]))
    return GST_FLOW_ERROR;
  s = gst_imaging_settings_now (self->base.settings); /* another kernel's */
  flow = gst_imaging_engine_process (self->base.engine, self->held[0],
      reads_once (s) ? GST_IMAGING_REACH_DEVICE_OR_MAPPED
                     : GST_IMAGING_REACH_DEVICE,
      process, self);
  return flow != GST_FLOW_ERROR && is_stopping (self) ? GST_FLOW_FLUSHING
                                                      : flow;
}
