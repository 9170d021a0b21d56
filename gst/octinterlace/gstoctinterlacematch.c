/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which frames are a B-scan: those of one time, and what replaces a missing
 * one. */
#include "gstoctinterlace-private.h"

#include "gstimagingaggregator.h"

/* Returns: 0 without a frame rate */
static GstClockTime
half_a_frame (const GstVideoInfo *info)
{
  return info->fps_n > 0
             ? gst_util_uint64_scale (GST_SECOND / 2, info->fps_d, info->fps_n)
             : 0;
}

GstClockTime
gst_oct_interlace_get_tolerance (GstOctInterlace *self)
{
  const Settings *now = gst_imaging_settings_now (self->settings);

  return GST_CLOCK_TIME_IS_VALID (now->tolerance)
             ? now->tolerance
             : half_a_frame (&self->lines.info);
}

/* Returns: (transfer full) (nullable): the next frame; NULL for a gap */
static GstBuffer *
peek_frame (GstOctInterlacePad *camera)
{
  GstBuffer *frame =
      gst_aggregator_pad_peek_buffer (GST_AGGREGATOR_PAD (camera));

  if (frame && gst_imaging_aggregator_is_gap (frame))
    gst_clear_buffer (&frame);
  return frame;
}

GstOctInterlacePad *
gst_oct_interlace_find_earliest (
    GstOctInterlace *self, GPtrArray *cameras, guint64 *key)
{
  GstOctInterlacePad *found = NULL;

  *key = GST_OCT_INTERLACE_NO_KEY;
  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];
    GstBuffer *frame = peek_frame (camera);
    guint64 own = frame && camera->lines.info.width > 0
                      ? gst_oct_interlace_key_of (self, camera, i, frame)
                      : GST_OCT_INTERLACE_NO_KEY;

    if (frame && (!found || own < *key)) {
      found = camera;
      *key = own;
    }
    gst_clear_buffer (&frame);
  }
  return found;
}

/* An end within half a frame of @time counts as over: times are rounded. */
static gboolean
drop_old_gap (GstOctInterlacePad *camera, GstClockTime time)
{
  GstAggregatorPad *pad = GST_AGGREGATOR_PAD (camera);
  g_autoptr (GstBuffer) head = gst_aggregator_pad_peek_buffer (pad);
  GstClockTime half = half_a_frame (&camera->lines.info), end;
  gboolean is_old = FALSE;

  if (head && gst_imaging_aggregator_is_gap (head)) {
    end = gst_oct_interlace_pad_time_of (camera, head);
    if (GST_CLOCK_TIME_IS_VALID (end))
      end += GST_BUFFER_DURATION_IS_VALID (head) ? GST_BUFFER_DURATION (head)
                                                 : 2 * half;
    is_old = !GST_CLOCK_TIME_IS_VALID (time) ||
             !GST_CLOCK_TIME_IS_VALID (end) || end <= time + half;
  }
  if (is_old)
    gst_aggregator_pad_drop_buffer (pad);
  return is_old;
}

gboolean
gst_oct_interlace_drop_old_gaps (GPtrArray *cameras, GstClockTime time)
{
  gboolean any = FALSE;

  for (guint i = 0; i < cameras->len; i++)
    any |= drop_old_gap (cameras->pdata[i], time);
  return any;
}

void
gst_oct_interlace_forget_flushed (GstOctInterlace *self, GPtrArray *cameras)
{
  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];

    if (g_atomic_int_compare_and_exchange (&camera->is_flushed, TRUE, FALSE)) {
      gst_clear_buffer (&camera->last);
      gst_oct_interlace_forget_counters (self);
    }
  }
}

static void
begin_bscan (GPtrArray *cameras)
{
  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];

    camera->repeats = FALSE;
    gst_clear_buffer (&camera->frame);
  }
}

GstClockTime
gst_oct_interlace_take_frames (GstOctInterlace *self, GPtrArray *cameras)
{
  guint64 tolerance = gst_oct_interlace_has_counters (self)
                          ? 0
                          : gst_oct_interlace_get_tolerance (self);
  GstClockTime time = GST_CLOCK_TIME_NONE;
  guint64 earliest;

  begin_bscan (cameras);
  gst_oct_interlace_find_earliest (self, cameras, &earliest);
  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];
    guint64 key;

    camera->frame = peek_frame (camera);
    if (!camera->frame)
      continue;
    key = gst_oct_interlace_key_of (self, camera, i, camera->frame);
    if (key != GST_OCT_INTERLACE_NO_KEY && key - earliest > tolerance) {
      gst_clear_buffer (&camera->frame);
    } else {
      time = MIN (time, gst_oct_interlace_pad_time_of (camera, camera->frame));
      gst_aggregator_pad_drop_buffer (GST_AGGREGATOR_PAD (camera));
    }
  }
  gst_oct_interlace_note_key (self, earliest);
  return time;
}

/* At equal distances from the last B-scan to the next one that cameras have */
GstClockTime
gst_oct_interlace_take_hole (
    GstOctInterlace *self, GPtrArray *cameras, guint64 n)
{
  GstClockTime next = GST_CLOCK_TIME_NONE;

  begin_bscan (cameras);
  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];
    GstBuffer *frame = peek_frame (camera);

    if (frame)
      next = MIN (next, gst_oct_interlace_pad_time_of (camera, frame));
    gst_clear_buffer (&frame);
  }
  gst_oct_interlace_step (self);
  return GST_CLOCK_TIME_IS_VALID (next) &&
                 GST_CLOCK_TIME_IS_VALID (self->last_time) &&
                 next > self->last_time
             ? self->last_time + (next - self->last_time) / (n + 1)
             : GST_CLOCK_TIME_NONE;
}

/* Posts a message when a lag begins and when it ends; the first time also a
 * warning. */
static void
note_lag (GstOctInterlace *self, GstOctInterlacePad *camera, GstClockTime time)
{
  gboolean lags = camera->frame == NULL;

  GST_OBJECT_LOCK (self);
  camera->n_missing += lags;
  GST_OBJECT_UNLOCK (self);
  if (lags == camera->lags)
    return;
  camera->lags = lags;
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("octinterlace-lag", "camera", G_TYPE_UINT,
              camera->number, "lags", G_TYPE_BOOLEAN, lags, "running-time",
              G_TYPE_UINT64, time, "missing", G_TYPE_UINT64, camera->n_missing,
              NULL)));
  if (lags && !camera->warned)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("Camera %u lags: it has no frame at %" GST_TIME_FORMAT
         ". What follows is told by element messages and stats.",
            camera->number, GST_TIME_ARGS (time)),
        (NULL));
  camera->warned |= lags;
}

gboolean
gst_oct_interlace_handle_missing (
    GstOctInterlace *self, GPtrArray *cameras, GstClockTime time)
{
  const Settings *now = gst_imaging_settings_now (self->settings);
  gboolean complete = TRUE;

  for (guint i = 0; i < cameras->len; i++) {
    GstOctInterlacePad *camera = cameras->pdata[i];

    note_lag (self, camera, time);
    complete &= camera->frame != NULL;
    if (!camera->frame && camera->last && now->missing == MISSING_REPEAT &&
        gst_oct_interlace_has_format (self, camera)) {
      camera->frame = gst_buffer_ref (camera->last);
      camera->repeats = TRUE;
    }
  }
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  self->n_incomplete += !complete;
  return complete || now->missing != MISSING_DROP;
}
