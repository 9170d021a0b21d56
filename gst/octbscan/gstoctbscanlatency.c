/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How late images are: a B-scan waits for the last of its buffers, a mean for
 * its last B-scan. */
#include "gstoctbscanplan.h"

#include "gstoctbscanqueue.h"

/* A mean that takes longer is no matter of being in time; a sink would hold
 * back all that much, of all pads. */
#define LONGEST_WAIT (2 * GST_SECOND)

/* Returns: how long @n frames take at a rate, 0 without one. With a month for
 * more than that sums overflow nowhere. */
static GstClockTime
time_of (guint n, gint fps_n, gint fps_d)
{
  return fps_n > 0 ? MIN (gst_util_uint64_scale (n * GST_SECOND, fps_d, fps_n),
                         30 * 24 * 3600 * GST_SECOND)
                   : 0;
}

void
gst_oct_bscan_update_latency (GstOctBscan *self)
{
  const GstVideoInfo *lines = &self->input.lines, *bscan = &self->input.bscan;
  guint n = (bscan->height + lines->height - 1) / lines->height;
  GstClockTime latency = time_of (n - 1, lines->fps_n, lines->fps_d);
  GstClockTime wait = time_of (
      self->in_use.now->average_bscans - 1, bscan->fps_n, bscan->fps_d);
  GstClockTime period = bscan->fps_n > 0
                            ? time_of (1, bscan->fps_n, bscan->fps_d)
                            : GST_CLOCK_TIME_NONE;
  gboolean changed;

  if (wait > LONGEST_WAIT)
    wait = 0;
  GST_OBJECT_LOCK (self);
  changed =
      latency != self->latency || period != self->period || wait != self->wait;
  self->latency = latency;
  self->period = period;
  self->wait = wait;
  GST_OBJECT_UNLOCK (self);
  if (changed)
    gst_element_post_message (
        GST_ELEMENT (self), gst_message_new_latency (GST_OBJECT (self)));
}

/* B-scans leave as soon as they are made, but many can wait for that. Volumes
 * would hold back all other pads for seconds; their sink need not be in time.
 */
static void
add_latency (GstOctBscan *self, GstPad *pad, GstQuery *query)
{
  g_autoptr (GstImagingSrcPad) complex =
      gst_imaging_src_pads_get (self->base.outputs, COMPLEX);
  GstClockTime minimum, maximum, ours, period;
  guint n = 0;
  gboolean live;

  GST_OBJECT_LOCK (self);
  ours = self->latency;
  if (pad != GST_PAD_CAST (complex))
    ours += self->wait;
  period = self->period;
  if (self->shared.queue && GST_CLOCK_TIME_IS_VALID (period))
    n = gst_oct_bscan_queue_capacity (self->shared.queue);
  GST_OBJECT_UNLOCK (self);
  gst_query_parse_latency (query, &live, &minimum, &maximum);
  gst_query_set_latency (query, live, minimum + ours,
      GST_CLOCK_TIME_IS_VALID (maximum) ? maximum + ours + n * period
                                        : maximum);
}

gboolean
gst_oct_bscan_src_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  if (!gst_imaging_element_query (pad, parent, query))
    return FALSE;
  if (GST_QUERY_TYPE (query) == GST_QUERY_LATENCY)
    add_latency (GST_OCT_BSCAN (parent), pad, query);
  return TRUE;
}
