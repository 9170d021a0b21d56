/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sink pad: buffers become B-scans, and events and missing buffers restart
 * the turns of the cameras. */
#include "gstoctbscaninput.h"

#include "gstimagingallocation.h"
#include "gstimagingmemory.h"
#include "gstoctbscanmirror.h"
#include "gstoctbscanoutput.h"
#include "gstoctbscanplan.h"
#include "gstoctbscanprocess.h"
#include "gstoctbscanqueue.h"

static void
restart_turns (GstOctBscan *self, const gchar *why)
{
  gst_oct_bscan_end_run (self, why);
  gst_oct_bscan_begin_turns (self);
}

/* --- buffers -------------------------------------------------------------- */

static void
warn_of_gap (GstOctBscan *self, guint64 n, guint n_waiting, guint n_skipped)
{
  if (self->input.warned_of_gap)
    return;
  self->input.warned_of_gap = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FAILED,
      ("%" G_GUINT64_FORMAT
       " buffer%s of %d lines did not arrive: %u lines before "
       "and %u after are left out, so that B-scans and cameras stay in step. "
       "Further ones are counted in frames-missing of stats.",
          n, n == 1 ? "" : "s", self->input.lines.height, n_waiting, n_skipped),
      (NULL));
}

/* @n buffers did not arrive: their lines still count in the order of the
 * cameras; the rest of an incomplete B-scan is dropped. */
static void
skip_missing (GstOctBscan *self, guint64 n)
{
  guint height = (guint) self->input.bscan.height;
  guint n_waiting = gst_oct_bscan_group_n_waiting (self->input.group);
  guint64 n_lines = n_waiting + n * (guint) self->input.lines.height;
  guint64 n_bscans = (n_lines + height - 1) / height;
  guint n_to_skip = (guint) (n_bscans * height - n_lines);

  gst_oct_bscan_show_mean (self);
  gst_oct_bscan_group_reset (self->input.group);
  gst_oct_bscan_group_skip (self->input.group, n_to_skip);
  self->input.n_bscans += n_bscans;
  self->input.next_line += n_bscans * height;
  gst_imaging_stats_add_missing (
      gst_imaging_engine_stats (self->base.engine), n);
  warn_of_gap (self, n, n_waiting, n_to_skip);
}

/* Returns: how many B-scans of @buffer may be one work item: 1 on the CPU, if
 * an output does not make one image for each B-scan, a mirror is waited for or
 * records are corrected, and on a GPU until downstream has read an image on the
 * CPU */
static guint
most_at_once (GstOctBscan *self, GstBuffer *buffer)
{
  GstMemory *memory = gst_imaging_buffer_peek_memory (buffer);
  gboolean each_alone;

  if (self->input.lines.height <= self->input.bscan.height ||
      !self->shared.queue || !self->shared.host_images || !memory ||
      gst_oct_bscan_wants_mirror (self) || gst_oct_bscan_is_settling (self) ||
      gst_oct_bscan_has_sweeps (self->in_use.now) ||
      gst_imaging_memory_is_on_device (memory))
    return 1;
  each_alone = self->in_use.now->average_bscans > 1 ||
               gst_imaging_src_pads_has (self->base.outputs, COMPLEX) ||
               gst_imaging_src_pads_has (self->base.outputs, ENFACE);
  return each_alone ? 1 : self->shared.n_full;
}

static GstFlowReturn
gst_oct_bscan_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstOctBscan *self = GST_OCT_BSCAN (parent);
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_OK;
  ImkStatus status = IMK_OK;
  guint64 n_missing, frame;
  guint most, n;
  GstBuffer *bscan;
  gboolean ok;
  ImkError error;

  if (!self->in_use.has_caps && self->input.lines.width == 0) {
    gst_buffer_unref (buffer);
    return GST_FLOW_NOT_NEGOTIATED;
  }
  frame =
      gst_imaging_numbering_next (&self->input.numbering, buffer, &n_missing);
  self->input.n_missing += n_missing;
  if (n_missing > 0 && self->in_use.has_caps)
    skip_missing (self, n_missing);
  /* A mean ends at an interruption. If lines of an incomplete B-scan are
   * waiting, the order of the cameras is unknown, too, and restarts. */
  else if (GST_BUFFER_IS_DISCONT (buffer) &&
           gst_oct_bscan_group_n_waiting (self->input.group) > 0)
    restart_turns (self, "the stream is interrupted");
  else if (GST_BUFFER_IS_DISCONT (buffer))
    gst_oct_bscan_show_mean (self);
  ok = gst_oct_bscan_follow_settings (self, buffer);
  g_mutex_lock (&self->engine_lock);
  ok = ok && gst_imaging_engine_follow (self->base.engine, buffer);
  g_mutex_unlock (&self->engine_lock);
  if (!ok) {
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  most = most_at_once (self, buffer);
  if (gst_oct_bscan_group_n_waiting (self->input.group) == 0)
    self->input.frame = frame;
  gst_oct_bscan_group_add_lines (self->input.group, buffer);
  while (flow == GST_FLOW_OK &&
         (bscan = gst_oct_bscan_group_next (
              self->input.group, most, &n, &status, &error))) {
    status = gst_oct_bscan_correct_sweeps (self, &bscan, &error);
    if (status != IMK_OK) {
      gst_buffer_unref (bscan);
      break;
    }
    gst_oct_bscan_follow_actions (self, bscan);
    flow = gst_oct_bscan_process (self,
        gst_oct_bscan_work_new (self, bscan, n, self->input.frame, entered));
    self->input.frame = frame;
  }
  return status == IMK_OK ? flow : gst_oct_bscan_post_error (self, &error);
}

/* --- events and queries --------------------------------------------------- */

void
gst_oct_bscan_set_flushing (GstOctBscan *self, gboolean flushing)
{
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  if (self->shared.queue)
    gst_oct_bscan_queue_set_flushing (self->shared.queue, flushing);
}

static gboolean
gst_oct_bscan_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstOctBscan *self = GST_OCT_BSCAN (parent);
  GstEventType type = GST_EVENT_TYPE (event);
  GstSegment segment;
  GstCaps *caps;
  gboolean ok;

  /* the images of earlier B-scans go first */
  if (GST_EVENT_IS_SERIALIZED (event))
    gst_oct_bscan_drain (self);
  if (type == GST_EVENT_STREAM_START || type == GST_EVENT_SEGMENT ||
      type == GST_EVENT_CAPS || type == GST_EVENT_GAP)
    gst_imaging_numbering_interrupt (&self->input.numbering);
  switch (type) {
  case GST_EVENT_FLUSH_START:
    gst_oct_bscan_set_flushing (self, TRUE);
    break;
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    ok = gst_oct_bscan_set_caps (self, caps);
    gst_event_unref (event);
    return ok;
  case GST_EVENT_STREAM_START:
    restart_turns (self, "a new stream begins");
    break;
  case GST_EVENT_SEGMENT:
    gst_event_copy_segment (event, &segment);
    if (!gst_segment_is_equal (&segment, &self->input.segment))
      restart_turns (self, "a new segment begins");
    self->input.segment = segment;
    break;
  case GST_EVENT_FLUSH_STOP:
    gst_oct_bscan_set_flushing (self, FALSE);
    gst_imaging_numbering_interrupt (&self->input.numbering);
    gst_oct_bscan_group_reset (self->input.group);
    gst_oct_bscan_enface_reset (self->output.enface);
    gst_segment_init (&self->input.segment, GST_FORMAT_UNDEFINED);
    gst_oct_bscan_begin_turns (self);
    break;
  case GST_EVENT_EOS:
    restart_turns (self, "the stream ends");
    gst_oct_bscan_negotiate_all (
        self); /* pads that are linked since the last B-scan */
    break;
  case GST_EVENT_GAP:
    gst_oct_bscan_negotiate_all (self);
    break;
  default:
    break;
  }
  gst_imaging_src_pads_event (self->base.outputs, event);
  if (type == GST_EVENT_STREAM_START || type == GST_EVENT_SEGMENT)
    gst_imaging_src_pads_begin (self->base.outputs);
  gst_event_unref (event);
  return TRUE;
}

static gboolean
gst_oct_bscan_sink_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstOctBscan *self = GST_OCT_BSCAN (parent);
  GstCaps *caps = NULL;

  if (gst_imaging_engine_query (self->base.engine, query))
    return TRUE;
  if (GST_QUERY_IS_SERIALIZED (query))
    gst_oct_bscan_drain (self);
  if (GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION)
    gst_query_parse_allocation (query, &caps, NULL);
  if (!caps ||
      !gst_structure_has_name (gst_caps_get_structure (caps, 0), "video/x-raw"))
    return gst_pad_query_default (pad, parent, query);
  if (!gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL))
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  gst_imaging_allocation_propose (self->base.engine, query);
  return TRUE;
}

void
gst_oct_bscan_set_sink_functions (GstPad *sink)
{
  gst_pad_set_chain_function (sink, gst_oct_bscan_chain);
  gst_pad_set_event_function (sink, gst_oct_bscan_sink_event);
  gst_pad_set_query_function (sink, gst_oct_bscan_sink_query);
}
