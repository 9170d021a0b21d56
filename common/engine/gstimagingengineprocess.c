/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One frame through the kernel: on the device, or on the CPU after a failure.
 */
#include "gstimagingengine-private.h"

static ImkStatus
process_on_device (GstImagingEngine *self, GstBuffer *in, GstImagingReach reach,
    GstImagingEngineProcess process, gpointer data, ImkError *error)
{
  ImkStatus status;
  GstBuffer *source;

  GST_IMAGING_ENTER (gst_imaging_engine_context (self), error);
  source = gst_imaging_engine_reachable (self, in, reach, error);
  status = source ? process (data, source, reach, FALSE, error) : error->code;
  if (source && source != in)
    gst_buffer_unref (source);
  return status;
}

GstFlowReturn
gst_imaging_engine_process (GstImagingEngine *self, GstBuffer *in,
    GstImagingReach reach, GstImagingEngineProcess process, gpointer data)
{
  ImkError why, error;
  ImkStatus status = gst_imaging_engine_ensure_open (self, &error);

  if (status == IMK_OK)
    status = gst_imaging_engine_is_on_cuda (self)
                 ? process_on_device (self, in, reach, process, data, &error)
                 : process (data, in, GST_IMAGING_REACH_HOST, FALSE, &error);
  if (gst_imaging_engine_can_fall_back (self, status)) {
    why = error;
    status = gst_imaging_engine_fall_back (self, &error);
    if (status == IMK_OK)
      status = process (data, in, GST_IMAGING_REACH_HOST, TRUE, &error);
    gst_imaging_engine_post_fall_back (
        self, &why, gst_imaging_engine_is_lost (self, in, status));
  }
  if (status == IMK_OK)
    return GST_FLOW_OK;
  if (gst_imaging_engine_is_lost (self, in, status)) {
    GST_WARNING_OBJECT (self->element, "a frame is lost: %s", error.message);
    gst_imaging_engine_count_lost (self);
    return GST_FLOW_CUSTOM_SUCCESS;
  }
  gst_imaging_engine_post_error (self, status, &error);
  return GST_FLOW_ERROR;
}
