/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What insarxcorr does while lines come: each side's thread brings its own, and
 * a third measures each row of patches as soon as its lines are there, so that
 * those of the next come meanwhile. Before, that one opens the device, while
 * the sources open their files and read. */
#include "gstinsarxcorr-private.h"

#define GST_CAT_DEFAULT gst_insar_xcorr_debug

/* --- a row of patches ----------------------------------------------------- */

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
      .origin = gst_imaging_engine_origin (self->base.engine),
  };
}

/* What has gone into the bands since the last row. */
static void
count_bytes (GstInsarXcorr *self)
{
  GstImagingStats *stats = gst_imaging_engine_stats (self->base.engine);
  guint64 bytes = imk_insarxcorr_bytes (self->kernel);

  if (gst_imaging_engine_is_on_cuda (self->base.engine))
    gst_imaging_stats_add_uploaded (stats, bytes - self->n_bytes);
  else
    gst_imaging_stats_add_copied (stats, bytes - self->n_bytes);
  self->n_bytes = bytes;
}

/* Corrects the flags of a row, and rounds it to float32. The first row of a
 * pair begins with the threshold that its sizes give. Returns: FALSE when the
 * float32 values cannot be written */
static gboolean
judge_row (GstInsarXcorr *self, GstImagingResult *result)
{
  gdouble *values = (gdouble *) result->values; /* of this row until the next */
  GstMapInfo map;

  if (imk_insarxcorr_row (self->kernel) == 0)
    imk_insarxcorr_judge_init (&self->judge, &self->config, self->is_auto);
  imk_insarxcorr_judge_row (&self->judge, values, self->config.nx);
  if (!gst_buffer_map (result->data, &map, GST_MAP_WRITE))
    return FALSE;
  for (gsize i = 0; i < (gsize) self->config.nx * N_FIELDS; i++)
    ((gfloat *) map.data)[i] = (gfloat) values[i];
  gst_buffer_unmap (result->data, &map);
  return TRUE;
}

/* Called by the busy thread, without the lock. */
static ImkStatus
measure_row (GstInsarXcorr *self, GstImagingResult *result, ImkError *error)
{
  gpointer stream = gst_imaging_engine_stream (self->base.engine);
  GstImagingContext *context =
      gst_imaging_engine_kernel_context (self->base.engine);
  ImkStatus status;
  ImkImage images[2];

  describe_row (self, result);
  IMK_TRY (gst_imaging_table_begin (self->table, stream, TRUE, images, error));
  status = gst_imaging_context_push (context, error);
  if (status == IMK_OK) {
    status = imk_insarxcorr_process (self->kernel, &images[0], stream, error);
    if (status == IMK_OK)
      status = gst_imaging_engine_synchronize (self->base.engine, error);
    gst_imaging_context_pop (context);
  }
  result->data = gst_imaging_table_end (self->table, &result->values);
  if (status == IMK_OK && !judge_row (self, result))
    status = imk_error_set (error, IMK_ERROR_MEMORY,
        "The memory for results of %u patches cannot be written.",
        self->config.nx);
  return status;
}

/* Under the lock, which is released meanwhile: measures the next row and pushes
 * it. */
static void
work_row (GstInsarXcorr *self)
{
  GstInsarPair *pair = &self->pair;
  GstImagingResult result = {NULL};
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_ERROR;
  gboolean is_old; /* flushed meanwhile: the row will be measured again */
  ImkError error;
  ImkStatus status;

  pair->is_busy = TRUE;
  g_mutex_unlock (&pair->lock);
  status = measure_row (self, &result, &error);
  g_mutex_lock (&pair->lock);
  if (status == IMK_OK)
    imk_insarxcorr_advance (self->kernel); /* there is room for lines again */
  is_old = status != IMK_OK && gst_insar_pair_is_flushing (pair);
  g_cond_broadcast (&pair->changed);
  g_mutex_unlock (&pair->lock);

  if (is_old) {
    flow = GST_FLOW_OK;
  } else if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->base.engine, status, &error);
  } else if (gst_insar_end_take_row (
                 self->end, result.values, self->judge.threshold)) {
    flow = gst_insar_end_start (self->end);
    if (flow == GST_FLOW_OK)
      flow = gst_insar_output_push_row (self->src, &result, &self->header_sent);
    count_bytes (self);
    gst_imaging_engine_count_frame (self->base.engine, entered);
    gst_insar_pair_report (
        pair, "insarxcorr-progress", (guint) result.frame + 1, self->config.ny);
  }
  gst_clear_buffer (&result.data);

  if (flow == GST_FLOW_NOT_LINKED && gst_insar_end_is_wanted (self->end))
    flow = GST_FLOW_OK; /* only the fit, the rasters or a file are wanted */
  /* upstream may have pushed all its lines and not see this flow */
  if (status == IMK_OK && (flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS))
    GST_ELEMENT_FLOW_ERROR (self, flow);
  g_mutex_lock (&pair->lock);
  if (pair->flow == GST_FLOW_OK)
    pair->flow = flow;
  gst_insar_pair_end_work (pair);
}

/* Under the lock. Returns: whether all lines of the next row are there */
static gboolean
has_work (GstInsarXcorr *self)
{
  for (guint s = 0; s < GST_INSAR_N_SIDES; s++)
    if (self->pair.sides[s].is_stale || self->pair.sides[s].is_flushing)
      return FALSE;
  return self->kernel && self->pair.flow == GST_FLOW_OK &&
         imk_insarxcorr_is_ready (self->kernel);
}

/* Under the lock. Unlike caps that are refused, these do not come again. */
static void
open_kernel (GstInsarXcorr *self)
{
  GstInsarSide *sides = self->pair.sides;

  if (gst_imaging_engine_set_caps (
          self->base.engine, sides[GST_INSAR_REFERENCE].caps, NULL))
    self->has_pair = FALSE;
  else if (self->pair.flow == GST_FLOW_OK)
    self->pair.flow = GST_FLOW_NOT_NEGOTIATED;
}

/* Under the lock, which is released meanwhile. */
static void
open_device (GstInsarXcorr *self)
{
  GstInsarPair *pair = &self->pair;
  gboolean on_cuda;

  pair->is_busy = TRUE;
  g_mutex_unlock (&pair->lock);
  gst_imaging_engine_open_ahead (self->base.engine);
  g_mutex_lock (&pair->lock);
  self->is_opening = FALSE;
  if (self->has_pair && !self->is_stopping)
    open_kernel (self);
  on_cuda = gst_imaging_engine_is_on_cuda (self->base.engine);
  g_mutex_unlock (&pair->lock);
  /* both sides can write where the device reads */
  for (guint s = 0; on_cuda && s < GST_INSAR_N_SIDES; s++)
    gst_pad_push_event (pair->sides[s].pad, gst_event_new_reconfigure ());
  g_mutex_lock (&pair->lock);
  gst_insar_pair_end_work (pair);
}

void
gst_insar_xcorr_open_later (GstInsarXcorr *self)
{
  self->is_opening = self->has_pair = TRUE;
  g_cond_broadcast (&self->pair.changed);
}

static gpointer
work (gpointer data)
{
  GstInsarXcorr *self = data;
  GstInsarPair *pair = &self->pair;

  GST_IMAGING_HOLD (&pair->lock);
  while (!self->is_stopping) {
    if (!pair->is_busy && self->is_opening)
      open_device (self);
    else if (!pair->is_busy && has_work (self))
      work_row (self);
    else
      g_cond_wait (&pair->changed, &pair->lock);
  }
  return NULL;
}

void
gst_insar_xcorr_start_work (GstInsarXcorr *self)
{
  self->is_stopping = self->has_pair = FALSE;
  self->is_opening =
      gst_imaging_engine_choice (self->base.engine) == GST_IMAGING_BACKEND_CUDA;
  self->worker = g_thread_new ("insarxcorr", work, self);
}

void
gst_insar_xcorr_stop_work (GstInsarXcorr *self)
{
  g_mutex_lock (&self->pair.lock);
  self->is_stopping = TRUE;
  g_cond_broadcast (&self->pair.changed);
  g_mutex_unlock (&self->pair.lock);
  g_clear_pointer (&self->worker, g_thread_join);
}

/* --- lines ---------------------------------------------------------------- */

static gboolean
is_complete (GstElement *element)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);

  return self->kernel && imk_insarxcorr_row (self->kernel) == self->config.ny;
}

static gboolean
is_working (GstElement *element)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);

  return has_work (self) || self->is_pushing[GST_INSAR_REFERENCE] ||
         self->is_pushing[GST_INSAR_SECONDARY];
}

/* Under the lock, which is released meanwhile: the other side may do the same.
 */
static ImkStatus
push_lines (
    GstInsarXcorr *self, guint side, const ImkImage *lines, ImkError *error)
{
  GstInsarPair *pair = &self->pair;
  GstImagingContext *context =
      gst_imaging_engine_kernel_context (self->base.engine);
  ImkStatus status;

  self->is_pushing[side] = TRUE;
  g_mutex_unlock (&pair->lock);
  status = gst_imaging_context_push (context, error);
  if (status == IMK_OK) {
    status = imk_insarxcorr_push (self->kernel, side, lines, error);
    gst_imaging_context_pop (context);
  }
  g_mutex_lock (&pair->lock);
  self->is_pushing[side] = FALSE;
  g_cond_broadcast (&pair->changed);
  return status;
}

/* A flush of the other side, while this one waits, makes what is left of @lines
 * old. */
static GstFlowReturn
take_lines (GstElement *element, guint side, ImkImage lines)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);
  GstInsarPair *pair = &self->pair;
  GstFlowReturn flow;
  ImkError error;

  while ((flow = gst_insar_pair_flow (pair, side)) == GST_FLOW_OK &&
         !pair->sides[side].is_stale && lines.height > 0) {
    guint room = self->kernel ? imk_insarxcorr_room (self->kernel, side) : 0;
    ImkImage part = lines;
    ImkStatus status;

    /* when all is measured: what becomes of the last row? */
    if (room == 0 || is_complete (element)) {
      g_cond_wait (&pair->changed, &pair->lock);
      continue;
    }
    part.height = MIN (room, lines.height);
    status = push_lines (self, side, &part, &error);
    if (status != IMK_OK) {
      gst_imaging_engine_post_error (self->base.engine, status, &error);
      return pair->flow = GST_FLOW_ERROR;
    }
    lines.data = (guint8 *) lines.data + part.height * lines.stride;
    lines.height -= part.height;
  }
  return flow;
}

static void
cancel (GstElement *element, gboolean yes)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);

  if (self->kernel)
    imk_insarxcorr_cancel (self->kernel, yes);
}

static void
rewind_side (GstElement *element, guint side)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);

  gst_insar_pair_take_settings (&self->pair, side);
  if (self->has_pair) /* the settings may be better now */
    gst_insar_xcorr_open_later (self);
  if (self->kernel)
    imk_insarxcorr_rewind (self->kernel, side);
  self->header_sent = FALSE; /* the flush may have dropped it */
  gst_insar_end_reset (self->end, FALSE);
}

/* --- output --------------------------------------------------------------- */

static void
push_end (GstElement *element, GstEvent *eos, gboolean complete)
{
  GstInsarXcorr *self = GST_INSAR_XCORR (element);

  gst_insar_end_push (self->end, eos, complete);
  gst_imaging_src_pad_event (self->src, eos);
  if (complete)
    gst_imaging_element_post_eos (&self->base, eos);
}

const GstInsarPairFuncs gst_insar_xcorr_pair_funcs = {
    .open = gst_insar_xcorr_open,
    .take_lines = take_lines,
    .is_complete = is_complete,
    .is_working = is_working,
    .cancel = cancel,
    .rewind = rewind_side,
    .push_end = push_end,
};
