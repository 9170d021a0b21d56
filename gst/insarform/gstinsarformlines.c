/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What insarform does while lines come: the thread that brings lines waits
 * until they are taken, the one that brings the missing ones takes them. */
#include "gstinsarform-private.h"

#define GST_CAT_DEFAULT gst_insar_form_debug

#define N_REPORTS 10
#define BRIGHTEST 2.5 /* times the mean */

/* --- the end ----------------------------------------------------------------
 */

typedef struct {
  gdouble amplitude, coherence;
  guint64 n; /* cells with data */
} Means;

static Means
mean_cells (const GstInsarCells *cells)
{
  const gfloat *cell = cells->values;
  gsize n_cells = (gsize) cells->width * cells->height;
  Means means = {0};

  for (gsize i = 0; i < n_cells; i++, cell += IMK_INSARFORM_N_CHANNELS)
    if (cell[IMK_INSARFORM_AMPLITUDE] > 0) {
      means.amplitude += cell[IMK_INSARFORM_AMPLITUDE];
      means.coherence += cell[IMK_INSARFORM_COHERENCE];
      means.n++;
    }
  if (means.n) {
    means.amplitude /= (gdouble) means.n;
    means.coherence /= (gdouble) means.n;
  }
  return means;
}

static void
post_summary (GstInsarForm *self, const Means *means)
{
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("insarform-summary", "width", G_TYPE_UINT,
              self->cells.width, "height", G_TYPE_UINT, self->cells.height,
              "with-data", G_TYPE_UINT64, means->n, "mean-coherence",
              G_TYPE_DOUBLE, means->coherence, "mean-amplitude", G_TYPE_DOUBLE,
              means->amplitude, NULL)));
}

/* Returns: (transfer full) (nullable): the pad of a picture, kept while used */
static GstPad *
hold_pad (GstInsarForm *self, guint picture)
{
  GstPad *pad;

  GST_OBJECT_LOCK (self);
  pad = self->pads[picture] ? gst_object_ref (self->pads[picture]) : NULL;
  GST_OBJECT_UNLOCK (self);
  return pad;
}

static gchar *
get_upstream_id (GstInsarForm *self)
{
  gchar *id = gst_pad_get_stream_id (self->sides[REFERENCE].pad);

  return id ? id : g_strdup (GST_OBJECT_NAME (self));
}

/* Without the lock, while is_done keeps the others away. @complete: whether
 * there is an image. Returns: the worst of the pads that somebody reads */
static GstFlowReturn
push_pictures (GstInsarForm *self, gboolean complete)
{
  g_autofree gchar *id = get_upstream_id (self);
  GstFlowReturn flow = GST_FLOW_NOT_LINKED;

  for (guint i = 0; i < GST_INSAR_N_PICTURES; i++) {
    GstPad *pad = hold_pad (self, i);
    GstFlowReturn here;

    if (!pad)
      continue;
    if (complete) {
      here = gst_insar_picture_push (pad, i, &self->cells, id);
      if (here != GST_FLOW_NOT_LINKED &&
          (flow == GST_FLOW_NOT_LINKED || here < flow))
        flow = here;
    }
    gst_insar_picture_eos (pad, id);
    gst_object_unref (pad);
  }
  return flow;
}

/* Under the lock, which is let go of: all cells are there. */
static void
finish (GstInsarForm *self)
{
  Means means = mean_cells (&self->cells);
  gdouble full = self->open_settings.amplitude_max;
  GstFlowReturn flow;

  if (full <= 0)
    full = means.n ? BRIGHTEST * means.amplitude : 1;
  self->cells.full = (gfloat) full;
  self->is_done = self->is_busy = TRUE;
  g_mutex_unlock (&self->lock);
  post_summary (self, &means);
  flow = push_pictures (self, TRUE);
  g_mutex_lock (&self->lock);
  self->is_busy = FALSE;
  /* nobody who reads is no failure here: the summary has been told */
  self->flow =
      flow == GST_FLOW_OK || flow == GST_FLOW_NOT_LINKED ? GST_FLOW_EOS : flow;
  if (flow == GST_FLOW_NOT_NEGOTIATED || flow == GST_FLOW_ERROR)
    GST_ELEMENT_FLOW_ERROR (self, flow);
  g_cond_broadcast (&self->changed);
}

/* --- lines ------------------------------------------------------------------
 */

/* No GST_MESSAGE_PROGRESS: gst-launch-1.0 does not play until it is complete.
 */
static void
report (GstInsarForm *self)
{
  guint row = imk_insarform_row (self->kernel);
  guint done = (guint) ((guint64) row * N_REPORTS / self->cells.height);

  if (done <= self->n_reported)
    return;
  self->n_reported = done;
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("insarform-progress", "rows", G_TYPE_UINT, row,
              "of", G_TYPE_UINT, self->cells.height, NULL)));
}

static void
drop_lines (GstInsarFormSide *side, guint n)
{
  side->lines.data = (guint8 *) side->lines.data + n * side->lines.stride;
  side->lines.height -= n;
}

/* Under the lock: both sides have lines. */
static ImkStatus
form_cells (GstInsarForm *self, ImkError *error)
{
  GstInsarFormSide *ref = &self->sides[REFERENCE],
                   *sec = &self->sides[SECONDARY];
  GstClockTime entered = gst_util_get_timestamp ();
  guint n = MIN (MIN (ref->lines.height, sec->lines.height),
      imk_insarform_room (self->kernel));
  ImkImage a = ref->lines, b = sec->lines;
  ImkStatus status = IMK_OK;

  a.height = b.height = n;
  if (n > 0)
    status = imk_insarform_push (self->kernel, &a, &b, error);
  drop_lines (ref, n);
  drop_lines (sec, n);
  while (status == IMK_OK && imk_insarform_is_ready (self->kernel)) {
    guint row = imk_insarform_row (self->kernel);
    gsize row_size = (gsize) self->cells.width * IMK_INSARFORM_N_CHANNELS;
    ImkImage out = {
        .data = self->cells.values + row * row_size,
        .stride = row_size * sizeof (gfloat),
        .width = self->cells.width,
        .height = 1,
        .channels = IMK_INSARFORM_N_CHANNELS,
        .type = IMK_TYPE_F32,
    };

    status = imk_insarform_process (self->kernel, &out, error);
  }
  gst_imaging_engine_count_frame (self->engine, entered);
  return status;
}

/* Under the lock. Returns: whether lines of @side will never get a partner,
 * which has been posted then */
static gboolean
is_cut_short (GstInsarForm *self, guint side)
{
  const GstInsarFormSide *s = &self->sides[side];

  if (!s->is_eos || s->lines.height > 0 || self->is_done ||
      self->flow != GST_FLOW_OK)
    return FALSE;
  self->flow = GST_FLOW_ERROR;
  g_cond_broadcast (&self->changed);
  gst_imaging_slc_post_end (GST_ELEMENT (self), GST_PAD_NAME (s->pad),
      s->has_info ? &s->info : NULL, s->n_lines);
  return TRUE;
}

static GstFlowReturn
side_flow (GstInsarForm *self, const GstInsarFormSide *side)
{
  return side->is_flushing ? GST_FLOW_FLUSHING : self->flow;
}

/* Under the lock: until the lines of @side are taken. */
static GstFlowReturn
offer_lines (GstInsarForm *self, guint side)
{
  GstInsarFormSide *s = &self->sides[side], *other = &self->sides[!side];
  ImkError error;

  while (side_flow (self, s) == GST_FLOW_OK && s->lines.height > 0) {
    if (self->is_done || !self->kernel || other->lines.height == 0) {
      if (!is_cut_short (self, !side))
        g_cond_wait (&self->changed, &self->lock);
      continue;
    }
    if (form_cells (self, &error) != IMK_OK) {
      gst_imaging_engine_post_error (self->engine, error.code, &error);
      self->flow = GST_FLOW_ERROR;
    } else {
      report (self);
      if (imk_insarform_row (self->kernel) == self->cells.height)
        finish (self);
    }
    g_cond_broadcast (&self->changed);
  }
  return side_flow (self, s);
}

static guint
side_of (GstInsarForm *self, GstPad *pad)
{
  return pad == self->sides[SECONDARY].pad ? SECONDARY : REFERENCE;
}

GstFlowReturn
gst_insar_form_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstInsarForm *self = GST_INSAR_FORM (parent);
  guint side = side_of (self, pad);
  GstInsarFormSide *s = &self->sides[side];
  GstFlowReturn flow;
  GstMapInfo map;

  if (!gst_imaging_slc_map_lines (
          self->engine, GST_ELEMENT (self), pad, buffer, &map)) {
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  g_mutex_lock (&self->lock);
  flow = side_flow (self, s);
  if (flow == GST_FLOW_OK && !s->is_stale &&
      !gst_imaging_slc_check_lines (GST_ELEMENT (self), pad,
          s->has_info ? &s->info : NULL, map.size, GST_BUFFER_OFFSET (buffer),
          s->n_lines)) {
    flow = self->flow = GST_FLOW_ERROR;
    g_cond_broadcast (&self->changed);
  }
  if (flow == GST_FLOW_OK && !s->is_stale) {
    s->lines = gst_imaging_slc_lines (&s->info, map.data, map.size);
    s->n_lines += s->lines.height;
    g_cond_broadcast (&self->changed);
    flow = offer_lines (self, side);
    s->lines.height = 0;
  }
  g_mutex_unlock (&self->lock);
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
  return flow;
}

/* --- events -----------------------------------------------------------------
 */

/* Under the lock, which is let go of: no more lines come on @side. */
static void
end_side (GstInsarForm *self, guint side)
{
  if (self->sides[side].is_stale)
    return;
  self->sides[side].is_eos = TRUE;
  g_cond_broadcast (&self->changed);
  if (self->sides[!side].lines.height > 0 || self->sides[!side].is_eos)
    is_cut_short (self, side);
  if (self->is_done || !self->sides[!side].is_eos)
    return;
  self->is_done = self->is_busy = TRUE;
  g_mutex_unlock (&self->lock);
  push_pictures (self, FALSE);
  g_mutex_lock (&self->lock);
  self->is_busy = FALSE;
  g_cond_broadcast (&self->changed);
}

static void
push_to_pictures (GstInsarForm *self, GstEvent *event)
{
  for (guint i = 0; i < GST_INSAR_N_PICTURES; i++) {
    GstPad *pad = hold_pad (self, i);

    if (pad)
      gst_pad_push_event (pad, gst_event_ref (event));
    gst_clear_object (&pad);
  }
}

static void
start_flush (GstInsarForm *self, guint side)
{
  g_mutex_lock (&self->lock);
  self->sides[side].is_flushing = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

/* The thread of the other side may push them; a flush lets it go. */
static void
wait_for_pictures (GstInsarForm *self)
{
  g_mutex_lock (&self->lock);
  while (self->is_busy)
    g_cond_wait (&self->changed, &self->lock);
  g_mutex_unlock (&self->lock);
}

/* All begins anew with the first lines of both sides. */
static void
begin_anew (GstInsarForm *self)
{
  if (self->kernel)
    imk_insarform_rewind (self->kernel);
  self->flow = GST_FLOW_OK;
  self->is_done = FALSE;
  self->n_reported = 0;
}

/* A flush concerns both sides: until the other has had its own, its lines and
 * its end are old ones. */
static void
stop_flush (GstInsarForm *self, guint side)
{
  GstInsarFormSide *s = &self->sides[side], *other = &self->sides[!side];

  g_mutex_lock (&self->lock);
  s->is_flushing = s->is_eos = FALSE;
  s->n_lines = 0;
  if (s->is_stale) {
    s->is_stale = FALSE;
  } else {
    other->is_stale = TRUE;
    other->is_eos = FALSE;
    other->n_lines = other->lines.height = 0;
    begin_anew (self);
  }
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

gboolean
gst_insar_form_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstInsarForm *self = GST_INSAR_FORM (parent);
  guint side = side_of (self, pad);
  gboolean done = TRUE;
  GstCaps *caps;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    g_mutex_lock (&self->lock);
    done = gst_insar_form_set_caps (self, side, caps);
    if (!done)
      self->flow = GST_FLOW_NOT_NEGOTIATED;
    g_cond_broadcast (&self->changed);
    g_mutex_unlock (&self->lock);
    break;
  case GST_EVENT_FLUSH_START:
    start_flush (self, side);
    push_to_pictures (self, event);
    break;
  case GST_EVENT_FLUSH_STOP:
    wait_for_pictures (self);
    push_to_pictures (self, event);
    stop_flush (self, side);
    break;
  case GST_EVENT_EOS:
    g_mutex_lock (&self->lock);
    end_side (self, side);
    g_mutex_unlock (&self->lock);
    break;
  default: /* the streams that come in are not those that go out */
    break;
  }
  gst_event_unref (event);
  return done;
}

void
gst_insar_form_set_flushing (GstInsarForm *self, gboolean is_flushing)
{
  g_mutex_lock (&self->lock);
  for (guint s = 0; s < N_SIDES; s++)
    self->sides[s].is_flushing = is_flushing;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

void
gst_insar_form_forget (GstInsarForm *self)
{
  for (guint s = 0; s < N_SIDES; s++) {
    self->sides[s].has_info = self->sides[s].is_eos = FALSE;
    self->sides[s].is_stale = FALSE;
    self->sides[s].n_lines = 0;
  }
  begin_anew (self);
}
