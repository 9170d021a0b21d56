/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What insarxcorr does while lines come: each side's thread brings its own, and
 * a third measures each row of patches as soon as its lines are there, so that
 * those of the next come meanwhile. */
#include "gstinsarxcorr-private.h"

#define GST_CAT_DEFAULT gst_insar_xcorr_debug

#define N_REPORTS 10

/* Returns: (transfer full) */
static gchar *
get_upstream_id (GstInsarXcorr *self)
{
  gchar *id = gst_pad_get_stream_id (self->sides[IMK_INSARXCORR_REFERENCE].pad);

  return id ? id : g_strdup (GST_OBJECT_NAME (self));
}

/* Called by the busy thread, without the lock. */
static void
push_end (GstInsarXcorr *self, gboolean complete)
{
  g_autofree gchar *id = get_upstream_id (self);

  gst_insar_end_push (self->end, complete, id);
  gst_insar_output_eos (&self->src, id);
}

/* --- a row of patches -------------------------------------------------------
 */

static void
describe_row (GstInsarXcorr *self, GstImagingResult *result)
{
  static const gchar *const fields[N_FIELDS] = {"x", "y", "dx", "dy",
      "correlation", "peak", "snr", "cov_xx", "cov_yy", "cov_xy", "valid",
      "flags"};
  static const gchar *const units[N_FIELDS] = {"px", "px", "px", "px",
      "percent", "percent", "1", "px2", "px2", "px2", "1", "flags"};
  static const gchar *const indices[] = {"column"};

  *result = (GstImagingResult){
      .id = "insar-offsets-v2",
      .fields = fields,
      .units = units,
      .n_fields = N_FIELDS,
      .n_rows = self->config.nx,
      .index_names = indices,
      .n_indices = 1,
      .indices = self->columns,
      .ref_width = self->config.width[0],
      .ref_height = self->config.height[0],
      .frame = imk_insarxcorr_row (self->kernel),
  };
}

/* What has gone into the bands since the last row. */
static void
count_bytes (GstInsarXcorr *self)
{
  GstImagingStats *stats = gst_imaging_engine_stats (self->engine);
  guint64 bytes = imk_insarxcorr_bytes (self->kernel);

  if (gst_imaging_engine_is_on_cuda (self->engine))
    gst_imaging_stats_add_uploaded (stats, bytes - self->n_bytes);
  else
    gst_imaging_stats_add_copied (stats, bytes - self->n_bytes);
  self->n_bytes = bytes;
}

/* No GST_MESSAGE_PROGRESS: gst-launch-1.0 does not play until it is complete.
 */
static void
report (GstInsarXcorr *self, guint row)
{
  guint done = (guint) ((guint64) row * N_REPORTS / self->config.ny);

  if (done <= self->n_reported)
    return;
  self->n_reported = done;
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("insarxcorr-progress", "rows", G_TYPE_UINT, row,
              "of", G_TYPE_UINT, self->config.ny, NULL)));
}

/* Around calls of the kernel. */
static ImkStatus
enter_context (GstInsarXcorr *self, ImkError *error)
{
  return gst_imaging_engine_is_on_cuda (self->engine)
             ? gst_imaging_context_push (
                   gst_imaging_engine_context (self->engine), error)
             : IMK_OK;
}

static void
leave_context (GstInsarXcorr *self)
{
  if (gst_imaging_engine_is_on_cuda (self->engine))
    gst_imaging_context_pop (gst_imaging_engine_context (self->engine));
}

/* Called by the busy thread, without the lock. */
static ImkStatus
measure_row (GstInsarXcorr *self, GstImagingResult *result, ImkError *error)
{
  gpointer stream = gst_imaging_engine_stream (self->engine);
  ImkStatus status;
  ImkImage image;

  describe_row (self, result);
  status = gst_imaging_table_begin (self->table, stream, TRUE, &image, error);
  if (status != IMK_OK)
    return status;
  status = enter_context (self, error);
  if (status == IMK_OK) {
    status = imk_insarxcorr_process (self->kernel, &image, stream, error);
    if (status == IMK_OK)
      status = gst_imaging_engine_synchronize (self->engine, error);
    leave_context (self);
  }
  result->data = gst_imaging_table_end (self->table, &result->values);
  return status;
}

/* Under the lock, which is let go of: measures the next row and sends it on. */
static void
work_row (GstInsarXcorr *self)
{
  GstImagingResult result = {NULL};
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_ERROR;
  ImkError error;
  ImkStatus status;

  self->is_busy = TRUE;
  g_mutex_unlock (&self->lock);
  status = measure_row (self, &result, &error);
  g_mutex_lock (&self->lock);
  if (status == IMK_OK)
    imk_insarxcorr_advance (self->kernel); /* there is room for lines again */
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);

  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->engine, status, &error);
  } else if (gst_insar_end_take_row (self->end, result.values)) {
    g_autofree gchar *id = get_upstream_id (self);

    gst_insar_end_start (self->end, id);
    flow = gst_insar_output_push_row (&self->src, &result, id);
    count_bytes (self);
    gst_imaging_engine_count_frame (self->engine, entered);
    report (self, (guint) result.frame + 1);
  }
  gst_clear_buffer (&result.data);

  if (flow == GST_FLOW_NOT_LINKED && gst_insar_end_is_wanted (self->end))
    flow = GST_FLOW_OK; /* somebody wants the fit or the rasters alone */
  /* upstream may have given all its lines and never hear of it */
  if (status == IMK_OK && (flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS))
    GST_ELEMENT_FLOW_ERROR (self, flow);
  g_mutex_lock (&self->lock);
  if (self->flow == GST_FLOW_OK)
    self->flow = flow;
  self->is_busy = FALSE;
  g_cond_broadcast (&self->changed);
}

/* Under the lock. Returns: whether all lines of the next row are there */
static gboolean
has_work (GstInsarXcorr *self)
{
  for (guint s = 0; s < N_SIDES; s++)
    if (self->sides[s].is_stale || self->sides[s].is_flushing)
      return FALSE;
  return self->kernel && self->flow == GST_FLOW_OK &&
         imk_insarxcorr_is_ready (self->kernel);
}

static gpointer
work (gpointer data)
{
  GstInsarXcorr *self = data;

  g_mutex_lock (&self->lock);
  while (!self->is_stopping) {
    if (!self->is_busy && has_work (self))
      work_row (self);
    else
      g_cond_wait (&self->changed, &self->lock);
  }
  g_mutex_unlock (&self->lock);
  return NULL;
}

void
gst_insar_xcorr_start_work (GstInsarXcorr *self)
{
  self->is_stopping = FALSE;
  self->worker = g_thread_new ("insarxcorr", work, self);
}

void
gst_insar_xcorr_stop_work (GstInsarXcorr *self)
{
  g_mutex_lock (&self->lock);
  self->is_stopping = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&self->worker, g_thread_join);
}

/* --- taking lines ------------------------------------------------------------
 */

/* Under the lock. Returns: whether nothing is left to do */
static gboolean
has_ended (GstInsarXcorr *self)
{
  return self->kernel && imk_insarxcorr_row (self->kernel) == self->config.ny;
}

/* Under the lock. Returns: why @side takes no more lines, or GST_FLOW_OK */
static GstFlowReturn
side_flow (GstInsarXcorr *self, const GstInsarSide *side)
{
  if (side->is_flushing)
    return GST_FLOW_FLUSHING;
  if (self->flow != GST_FLOW_OK)
    return self->flow;
  return has_ended (self) && !self->is_busy ? GST_FLOW_EOS : GST_FLOW_OK;
}

/* Under the lock, which is let go of: the other side may do the same. */
static ImkStatus
push_lines (
    GstInsarXcorr *self, guint side, const ImkImage *lines, ImkError *error)
{
  ImkStatus status;

  self->sides[side].is_pushing = TRUE;
  g_mutex_unlock (&self->lock);
  status = enter_context (self, error);
  if (status == IMK_OK) {
    status = imk_insarxcorr_push (self->kernel, side, lines, error);
    leave_context (self);
  }
  g_mutex_lock (&self->lock);
  self->sides[side].is_pushing = FALSE;
  g_cond_broadcast (&self->changed);
  return status;
}

/* Under the lock. A flush of the other side, while this one waits, makes what
 * is left of @lines old. */
static GstFlowReturn
take_lines (GstInsarXcorr *self, guint side, ImkImage lines)
{
  const GstInsarSide *s = &self->sides[side];
  GstFlowReturn flow;
  ImkError error;

  while ((flow = side_flow (self, s)) == GST_FLOW_OK && !s->is_stale &&
         lines.height > 0) {
    guint room = self->kernel ? imk_insarxcorr_room (self->kernel, side) : 0;
    ImkImage part = lines;
    ImkStatus status;

    if (room == 0 || has_ended (self)) { /* what becomes of the last row? */
      g_cond_wait (&self->changed, &self->lock);
      continue;
    }
    part.height = MIN (room, lines.height);
    status = push_lines (self, side, &part, &error);
    if (status != IMK_OK) {
      gst_imaging_engine_post_error (self->engine, status, &error);
      return self->flow = GST_FLOW_ERROR;
    }
    lines.data = (guint8 *) lines.data + part.height * lines.stride;
    lines.height -= part.height;
  }
  return flow;
}

/* Under the lock. Returns: FALSE after an error has been posted */
static gboolean
check_lines (GstInsarXcorr *self, guint side, gsize size, guint64 offset)
{
  const GstInsarSide *s = &self->sides[side];
  guint pushed = self->kernel ? imk_insarxcorr_pushed (self->kernel, side) : 0;

  return gst_imaging_slc_check_lines (GST_ELEMENT (self), s->pad,
      s->caps ? &s->info : NULL, size, offset, pushed);
}

static guint
side_of (GstInsarXcorr *self, GstPad *pad)
{
  return pad == self->sides[IMK_INSARXCORR_SECONDARY].pad
             ? IMK_INSARXCORR_SECONDARY
             : IMK_INSARXCORR_REFERENCE;
}

GstFlowReturn
gst_insar_xcorr_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (parent);
  guint side = side_of (self, pad);
  GstInsarSide *s = &self->sides[side];
  GstFlowReturn flow;
  GstMapInfo map;

  if (!gst_imaging_slc_map_lines (
          self->engine, GST_ELEMENT (self), pad, buffer, &map)) {
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  g_mutex_lock (&self->lock);
  flow = side_flow (self, s);
  if (flow == GST_FLOW_OK && !s->is_stale) {
    if (check_lines (self, side, map.size, GST_BUFFER_OFFSET (buffer))) {
      flow = take_lines (
          self, side, gst_imaging_slc_lines (&s->info, map.data, map.size));
    } else {
      flow = self->flow = GST_FLOW_ERROR;
      g_cond_broadcast (&self->changed);
    }
  }
  g_mutex_unlock (&self->lock);
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
  return flow;
}

/* --- events
 * ---------------------------------------------------------------------- */

/* Under the lock. Waits until nobody else measures, could measure or brings
 * lines; others see that something is up. */
static void
begin_work (GstInsarXcorr *self)
{
  while (self->is_busy || has_work (self) || self->sides[0].is_pushing ||
         self->sides[1].is_pushing)
    g_cond_wait (&self->changed, &self->lock);
  self->is_busy = TRUE;
}

static void
end_work (GstInsarXcorr *self)
{
  self->is_busy = FALSE;
  g_cond_broadcast (&self->changed);
}

/* Under the lock. Returns: whether lines of @side are missing, which has been
 * posted then */
static gboolean
is_cut_short (GstInsarXcorr *self, guint side)
{
  const GstInsarSide *s = &self->sides[side];
  guint pushed = self->kernel ? imk_insarxcorr_pushed (self->kernel, side) : 0;

  if (self->flow != GST_FLOW_OK || has_ended (self) || s->is_flushing ||
      s->is_stale || !s->caps || pushed == s->info.height)
    return FALSE;
  gst_imaging_slc_post_end (
      GST_ELEMENT (self), GST_PAD_NAME (s->pad), &s->info, pushed);
  return TRUE;
}

/* Under the lock, which is let go of: the end of a side, and with it, or when
 * nothing is left to do, of all. */
static void
finish_side (GstInsarXcorr *self, guint side)
{
  gboolean ends, complete;

  self->sides[side].is_eos = TRUE;
  if (is_cut_short (self, side))
    self->flow = GST_FLOW_ERROR;
  g_cond_broadcast (&self->changed);
  begin_work (self);
  complete = has_ended (self);
  ends = !self->is_done &&
         (self->sides[!side].is_eos || complete || self->flow != GST_FLOW_OK);
  self->is_done = self->is_done || ends;
  g_mutex_unlock (&self->lock);
  if (ends)
    push_end (self, complete);
  g_mutex_lock (&self->lock);
  end_work (self);
}

static void
push_to_outputs (GstInsarXcorr *self, GstEvent *event)
{
  gst_pad_push_event (self->src.pad, gst_event_ref (event));
  gst_insar_end_push_event (self->end, event);
}

static void
start_flush (GstInsarXcorr *self, guint side)
{
  g_mutex_lock (&self->lock);
  self->sides[side].is_flushing = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

/* All begins anew. A flush concerns both sides: until the other has had its
 * own, its lines are old ones. */
static void
stop_flush (GstInsarXcorr *self, guint side)
{
  GstInsarSide *s = &self->sides[side], *other = &self->sides[!side];

  g_mutex_lock (&self->lock);
  begin_work (self);
  if (self->kernel)
    imk_insarxcorr_rewind (self->kernel, side);
  other->is_stale = !s->is_stale;
  s->is_stale = s->is_flushing = s->is_eos = FALSE;
  self->is_done = FALSE;
  self->flow = GST_FLOW_OK;
  self->n_reported = 0;
  gst_insar_output_reset (&self->src, FALSE);
  gst_insar_end_reset (self->end, FALSE);
  end_work (self);
  g_mutex_unlock (&self->lock);
}

gboolean
gst_insar_xcorr_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (parent);
  guint side = side_of (self, pad);
  gboolean done = TRUE;
  GstCaps *caps;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    g_mutex_lock (&self->lock);
    done = gst_insar_xcorr_set_caps (self, side, caps);
    if (!done)
      self->flow = GST_FLOW_NOT_NEGOTIATED;
    g_cond_broadcast (&self->changed);
    g_mutex_unlock (&self->lock);
    break;
  case GST_EVENT_FLUSH_START:
    start_flush (self, side);
    push_to_outputs (self, event);
    break;
  case GST_EVENT_FLUSH_STOP:
    push_to_outputs (self, event);
    stop_flush (self, side);
    break;
  case GST_EVENT_EOS:
    g_mutex_lock (&self->lock);
    finish_side (self, side);
    g_mutex_unlock (&self->lock);
    break;
  case GST_EVENT_TAG:
    done = gst_pad_push_event (self->src.pad, gst_event_ref (event));
    break;
  default: /* the streams that come in are not those that go out */
    break;
  }
  gst_event_unref (event);
  return done;
}

void
gst_insar_xcorr_set_flushing (GstInsarXcorr *self, gboolean is_flushing)
{
  g_mutex_lock (&self->lock);
  for (guint s = 0; s < N_SIDES; s++)
    self->sides[s].is_flushing = is_flushing;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

void
gst_insar_xcorr_forget (GstInsarXcorr *self)
{
  for (guint s = 0; s < N_SIDES; s++) {
    gst_clear_caps (&self->sides[s].caps);
    self->sides[s].is_eos = self->sides[s].is_stale = FALSE;
  }
  self->flow = GST_FLOW_OK;
  self->is_done = FALSE;
  self->n_reported = 0;
  gst_insar_output_reset (&self->src, TRUE);
  gst_insar_end_reset (self->end, TRUE);
}
