/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The output: caps, segment, buffers of lines, progress, and warnings of
 * settings that do not fit the image. */
#include "gstslcresample-private.h"

#include <math.h>

#include "gstimagingmetadata.h"

#define BUFFER_SIZE (1 << 20) /* bytes of an output buffer, about */
#define N_REPORTS 10
#define LITTLE 0.1 /* part of the output with data that cannot be intended */
#define MAX_DOPPLER_ERROR 0.1 /* cycles a line */

/* Memory of this size fresh from the system costs more than writing it. */
static gboolean
make_pool (GstSlcResample *self, GstCaps *caps)
{
  GstStructure *config;

  gst_imaging_pool_clear (&self->pool);
  self->lines_per_buffer =
      (guint) CLAMP (BUFFER_SIZE / self->out.line_size, 1, self->out.height);
  self->pool = gst_buffer_pool_new ();
  config = gst_buffer_pool_get_config (self->pool);
  gst_buffer_pool_config_set_params (config, caps,
      (guint) (self->lines_per_buffer * self->out.line_size), 0, 0);
  return gst_buffer_pool_set_config (self->pool, config) &&
         gst_buffer_pool_set_active (self->pool, TRUE);
}

/* The cause may be a fit of another pair. */
static void
warn_of_little (GstSlcResample *self)
{
  if (self->covered < LITTLE)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("%.0f %% of the output, %u x %u, lie inside the input, %u x %u, "
         "with shifts of %g columns and %g lines; the rest is 0. Is "
         "the fit that of this pair?",
            100 * self->covered, self->config.out_width,
            self->config.out_height, self->config.width, self->config.height,
            self->config.shift[0], self->config.shift[1]),
        (NULL));
}

/* A wrong fd1 costs coherence. Samples do not show whole cycles. */
static void
warn_of_doppler (GstSlcResample *self)
{
  gdouble measured, off;

  if (self->config.estimate_doppler ||
      !imk_slcresample_measure_doppler (self->kernel, &measured))
    return;
  off = self->config.doppler - measured;
  if (fabs (off - rint (off)) > MAX_DOPPLER_ERROR)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("The Doppler centroid is %.2f cycles a line by the caps (fd1 / PRF of a "
         "PRM file) and %.2f by the first lines of the image. A wrong one costs "
         "coherence: correct fd1, or take doppler=data.",
            self->config.doppler, measured),
        (NULL));
}

gboolean
gst_slc_resample_begin_output (GstSlcResample *self)
{
  g_autoptr (GstCaps) out = gst_insar_slc_info_to_caps (&self->out);

  warn_of_little (self);
  self->n_reported = 0;
  return make_pool (self, out) &&
         gst_pad_push_event (self->srcpad, gst_event_new_caps (out));
}

void
gst_slc_resample_send_segment (GstSlcResample *self)
{
  GstSegment segment;
  GstEvent *event;

  if (self->segment_sent || !gst_pad_has_current_caps (self->srcpad))
    return;
  gst_segment_init (&segment, GST_FORMAT_DEFAULT);
  segment.duration = self->out.height;
  event = gst_event_new_segment (&segment);
  if (self->seqnum != GST_SEQNUM_INVALID)
    gst_event_set_seqnum (event, self->seqnum);
  gst_pad_push_event (self->srcpad, event);
  self->segment_sent = self->is_discont = TRUE;
}

/* No GST_MESSAGE_PROGRESS: gst-launch-1.0 does not play until it is complete.
 */
static void
report (GstSlcResample *self)
{
  guint line = imk_slcresample_line (self->kernel);
  guint done = (guint) ((guint64) line * N_REPORTS / self->out.height);

  if (done <= self->n_reported)
    return;
  self->n_reported = done;
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("slcresample-progress", "lines", G_TYPE_UINT, line,
              "of", G_TYPE_UINT, self->out.height, "doppler", G_TYPE_DOUBLE,
              imk_slcresample_doppler (self->kernel), NULL)));
}

static GstFlowReturn
push_lines (GstSlcResample *self, guint n)
{
  GstClockTime entered = gst_util_get_timestamp ();
  guint line = imk_slcresample_line (self->kernel);
  GstBuffer *buffer = NULL;
  GstFlowReturn flow;
  ImkStatus status;
  GstMapInfo map;
  ImkImage image;
  ImkError error;

  flow = gst_buffer_pool_acquire_buffer (self->pool, &buffer, NULL);
  if (flow != GST_FLOW_OK)
    return flow;
  gst_buffer_set_size (buffer, (gssize) (n * self->out.line_size));
  gst_buffer_map (buffer, &map, GST_MAP_WRITE); /* our memory: cannot fail */
  image = gst_insar_slc_lines (&self->out, map.data, map.size);
  if (line == 0)
    warn_of_doppler (self);
  status = imk_slcresample_process (self->kernel, &image, &error);
  gst_buffer_unmap (buffer, &map);
  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->base.engine, status, &error);
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  gst_imaging_metadata_copy (buffer, self->lines, FALSE);
  gst_imaging_engine_sign (self->base.engine, buffer);
  GST_BUFFER_OFFSET (buffer) = line;
  GST_BUFFER_OFFSET_END (buffer) = line + n;
  gst_imaging_engine_count_frame (self->base.engine, entered);
  gst_slc_resample_send_segment (self);
  if (self->is_discont)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  self->is_discont = FALSE;
  report (self);
  return gst_pad_push (self->srcpad, buffer);
}

GstFlowReturn
gst_slc_resample_push_ready (GstSlcResample *self)
{
  GstFlowReturn flow = GST_FLOW_OK;

  while (flow == GST_FLOW_OK) {
    guint n = imk_slcresample_ready (self->kernel, self->lines_per_buffer);
    guint left = self->out.height - imk_slcresample_line (self->kernel);

    if (n == 0 || (n < MIN (self->lines_per_buffer, left) &&
                      imk_slcresample_room (self->kernel) > 0))
      break;
    flow = push_lines (self, n);
  }
  return flow;
}
