/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures on their way to the kernel: its device, streams and memory. */
#include "gstphotostereoprivate.h"

/* The device is through with them: results have been waited for, or nobody
 * looks at them. */
void
gst_photo_stereo_release_pictures (GstPhotoStereo *self)
{
  GstImagingContext *context =
      gst_imaging_engine_kernel_context (self->base.engine);
  gboolean entered;

  if (self->held->len == 0)
    return;
  entered = gst_imaging_context_push (context, NULL) == IMK_OK;
  for (guint i = 0; i < self->held->len; i++) {
    Held *held = &g_array_index (self->held, Held, i);

    gst_imaging_frame_unmap (&held->frame, FALSE, NULL);
    gst_buffer_unref (held->buffer);
  }
  g_array_set_size (self->held, 0);
  if (entered)
    gst_imaging_context_pop (context);
}

/* --- streams ------------------------------------------------------------- */

static const ImkDevice *
device_of (GstPhotoStereo *self)
{
  return gst_imaging_context_device (
      gst_imaging_engine_context (self->base.engine));
}

void
gst_photo_stereo_close_gates (GstPhotoStereo *self)
{
  for (; self->n_gates > 0; self->n_gates--) {
    gpointer stream = self->gates[self->n_gates - 1];

    /* nobody may compare a dead stream's pointer with pending work on it */
    device_of (self)->stream_synchronize (stream, NULL);
    device_of (self)->stream_free (stream);
  }
}

ImkStatus
gst_photo_stereo_open_gates (GstPhotoStereo *self, ImkError *error)
{
  ImkStatus status = IMK_OK;

  while (self->n_gates < N_GATES && status == IMK_OK) {
    status = device_of (self)->stream_new (&self->gates[self->n_gates], error);
    self->n_gates += status == IMK_OK;
  }
  if (status != IMK_OK)
    gst_photo_stereo_close_gates (self);
  return status;
}

/* A set that waits in host memory is read when it is solved, on the stream of
 * the element. */
static gpointer
next_stream (GstPhotoStereo *self)
{
  if (self->n_gates == 0 || imk_photostereo_keeps_frames (self->kernel))
    return gst_imaging_engine_stream (self->base.engine);
  self->next_gate = (self->next_gate + 1) % self->n_gates;
  return self->gates[self->next_gate];
}

/* --- pictures ------------------------------------------------------------ */

/* A camera has a handful of surfaces, and would wait for those of a window, or
 * of a set that is solved in strips until the set is whole. */
static ImkStatus
check_may_stay (
    GstPhotoStereo *self, const GstImagingFrame *frame, ImkError *error)
{
  gboolean is_sliding = gst_photo_stereo_is_sliding (self);

  if ((!imk_photostereo_keeps_frames (self->kernel) && !is_sliding) ||
      !g_str_has_prefix (frame->memory_name, "NVMM"))
    return IMK_OK;
  if (is_sliding)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "window=sliding keeps the last picture of each light, which cannot "
        "stay in the surfaces of memory:NVMM. Put nvvidconv before, into plain "
        "video/x-raw.");
  return imk_error_set (error, IMK_ERROR_MEMORY,
      "A set that does not fit the device cannot stay in the surfaces of "
      "memory:NVMM. Raise memory-limit, use fewer or smaller pictures, or put "
      "nvvidconv before, into plain video/x-raw.");
}

static ImkStatus
add_mapped (GstPhotoStereo *self, GstBuffer *buffer, GstPhotoStereoIndex index,
    GstImagingReach reach, ImkError *error)
{
  GstImagingFrame frame;
  ImkStatus status;

  IMK_TRY (gst_imaging_engine_map_on (self->base.engine, buffer,
      gst_imaging_engine_info (self->base.engine), GST_MAP_READ, reach,
      next_stream (self), &frame, error));
  gst_imaging_engine_note_memory (self->base.engine, frame.memory_name);
  status = check_may_stay (self, &frame, error);
  if (status == IMK_OK)
    status = imk_photostereo_add_band (self->kernel, &frame.planes[0],
        index.light, index.band, frame.stream, error);
  if (status == IMK_OK && imk_photostereo_keeps_frames (self->kernel)) {
    Held held = {.buffer = gst_buffer_ref (buffer), .frame = frame};

    g_array_append_val (self->held, held);
    return IMK_OK;
  }
  return gst_imaging_frame_end (&frame, FALSE, status, error);
}

/* What judges pictures works on the CPU: nothing is downloaded for it. */
static void
probe_picture (
    GstPhotoStereo *self, GstBuffer *buffer, GstPhotoStereoIndex index)
{
  GstImagingFrame frame;

  if (gst_buffer_n_memory (buffer) == 0 ||
      !gst_memory_is_type (
          gst_buffer_peek_memory (buffer, 0), GST_ALLOCATOR_SYSMEM) ||
      gst_imaging_engine_map (self->base.engine, buffer,
          gst_imaging_engine_info (self->base.engine), GST_MAP_READ,
          GST_IMAGING_REACH_HOST, &frame, NULL) != IMK_OK)
    return;
  imk_photostereo_probe (
      self->kernel, &frame.planes[0], index.light, index.band, NULL);
  gst_imaging_frame_unmap (&frame, FALSE, NULL);
}

ImkStatus
gst_photo_stereo_add_at (GstPhotoStereo *self, GstBuffer *buffer,
    GstPhotoStereoIndex index, ImkError *error)
{
  GstImagingContext *context =
      gst_imaging_engine_kernel_context (self->base.engine);
  GstImagingReach reach =
      context ? GST_IMAGING_REACH_DEVICE_OR_MAPPED : GST_IMAGING_REACH_HOST;
  GstBuffer *input;
  ImkStatus status;

  IMK_TRY (gst_imaging_context_push (context, error));
  input =
      gst_imaging_engine_reachable (self->base.engine, buffer, reach, error);
  status = input ? add_mapped (self, input, index, reach, error) : error->code;
  if (input && input != buffer)
    gst_buffer_unref (input);
  gst_imaging_context_pop (context);
  if (status == IMK_OK && context)
    probe_picture (self, buffer, index);
  return status;
}
