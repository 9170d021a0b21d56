/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarpair.h"

#include "gstimagingmetadata.h"

#define N_REPORTS 10

static guint
side_of (GstInsarPair *self, GstPad *pad)
{
  return pad == self->sides[GST_INSAR_SECONDARY].pad ? GST_INSAR_SECONDARY
                                                     : GST_INSAR_REFERENCE;
}

/* Under the lock, after an error has been posted: wakes all waiting threads. */
static void
fail (GstInsarPair *self, GstFlowReturn flow)
{
  self->flow = flow;
  g_cond_broadcast (&self->changed);
}

/* Under the lock. Waits until no other thread works or is about to, and becomes
 * the busy thread. */
static void
begin_work (GstInsarPair *self)
{
  while (self->is_busy ||
         (self->funcs->is_working && self->funcs->is_working (self->element)))
    g_cond_wait (&self->changed, &self->lock);
  self->is_busy = TRUE;
}

/* Under the lock, which is released meanwhile: in the busy thread. Events of
 * the secondary wait for the stream-start, which is that of the reference. */
static void
deliver_events (GstInsarPair *self)
{
  GstEvent *event;

  while (self->has_started && (event = g_queue_pop_head (&self->events))) {
    g_mutex_unlock (&self->lock);
    gst_imaging_src_pads_event (self->outputs, event);
    gst_event_unref (event);
    g_mutex_lock (&self->lock);
  }
}

void
gst_insar_pair_end_work (GstInsarPair *self)
{
  deliver_events (self);
  self->is_busy = FALSE;
  g_cond_broadcast (&self->changed);
}

/* --- lines ---------------------------------------------------------------- */

gboolean
gst_insar_pair_is_flushing (GstInsarPair *self)
{
  return self->sides[GST_INSAR_REFERENCE].is_flushing ||
         self->sides[GST_INSAR_SECONDARY].is_flushing;
}

GstFlowReturn
gst_insar_pair_flow (GstInsarPair *self, guint side)
{
  if (self->sides[side].is_flushing)
    return GST_FLOW_FLUSHING;
  if (self->flow != GST_FLOW_OK || self->is_busy)
    return self->flow;
  return self->funcs->is_complete (self->element) ? GST_FLOW_EOS : GST_FLOW_OK;
}

/* What upstream says of an image, without the memory of its lines. */
static void
keep_description (GstInsarSide *side, GstBuffer *buffer)
{
  gst_clear_buffer (&side->first);
  side->first = gst_buffer_new ();
  gst_imaging_metadata_pass (side->first, buffer, FALSE);
}

/* The output image is no part of either input, so it does not take over line
 * numbers and times of lines. */
void
gst_insar_pair_describe (GstInsarPair *self, GstBuffer *buffer)
{
  GstBuffer *sides[GST_INSAR_N_SIDES], *latest;

  GST_IMAGING_HOLD (&self->lock);
  for (guint s = 0; s < GST_INSAR_N_SIDES; s++)
    sides[s] = self->sides[s].first;
  latest = gst_imaging_metadata_latest (sides, GST_INSAR_N_SIDES);
  if (latest)
    gst_imaging_metadata_copy (buffer, latest, FALSE);
}

/* Under the lock: the lines in @map come on @side. */
static GstFlowReturn
take_lines (
    GstInsarPair *self, guint side, const GstMapInfo *map, GstBuffer *buffer)
{
  GstInsarSide *s = &self->sides[side];
  GstFlowReturn flow = gst_insar_pair_flow (self, side);
  ImkImage lines;

  if (flow != GST_FLOW_OK || s->is_stale)
    return flow;
  if (!gst_insar_slc_check_lines (s->pad, s->caps ? &s->info : NULL, map->size,
          GST_BUFFER_OFFSET (buffer), s->n_lines)) {
    fail (self, GST_FLOW_ERROR);
    return GST_FLOW_ERROR;
  }
  lines = gst_insar_slc_lines (&s->info, map->data, map->size);
  if (s->n_lines == 0)
    keep_description (s, buffer);
  s->n_lines += lines.height;
  return self->funcs->take_lines (self->element, side, lines);
}

static GstFlowReturn
chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstInsarPair *self = gst_pad_get_element_private (pad);
  GstFlowReturn flow = GST_FLOW_ERROR;
  GstMapInfo map;

  if (gst_insar_slc_map_lines (self->engine, pad, buffer, &map)) {
    g_mutex_lock (&self->lock);
    flow = take_lines (self, side_of (self, pad), &map, buffer);
    g_mutex_unlock (&self->lock);
    gst_buffer_unmap (buffer, &map);
  }
  gst_buffer_unref (buffer);
  return flow;
}

/* --- events --------------------------------------------------------------- */

/* Returns: whether both images have samples of one type; FALSE after an error
 * has been posted */
static gboolean
check_types (GstInsarPair *self)
{
  ImkType reference = self->sides[GST_INSAR_REFERENCE].info.type;
  ImkType secondary = self->sides[GST_INSAR_SECONDARY].info.type;

  if (reference == secondary)
    return TRUE;
  GST_ELEMENT_ERROR (self->element, STREAM, FORMAT,
      ("The reference has samples of %s and the secondary of %s; both must be "
       "the same.",
          imk_type_name (reference), imk_type_name (secondary)),
      (NULL));
  return FALSE;
}

/* Under the lock. Returns: FALSE after an error has been posted */
static gboolean
take_caps (GstInsarPair *self, guint side, GstCaps *caps)
{
  GstInsarSide *s = &self->sides[side], *other = &self->sides[!side];

  if (s->caps && gst_caps_is_equal (s->caps, caps))
    return TRUE;
  if (self->flow != GST_FLOW_OK)
    return FALSE; /* refused caps are sent again with each buffer; an error has
                     been posted */
  if (s->caps && (s->n_lines > 0 || other->n_lines > 0)) {
    GST_ELEMENT_ERROR (self->element, STREAM, FORMAT,
        ("Another image arrived on the pad %s in the middle of a run; stop the "
         "pipeline before.",
            GST_PAD_NAME (s->pad)),
        (NULL));
    return FALSE;
  }
  gst_caps_replace (&s->caps, caps);
  gst_insar_slc_info_from_caps (&s->info, caps);
  if (!other->caps) {
    if (!gst_pad_is_linked (other->pad))
      GST_ELEMENT_WARNING (self->element, CORE, PAD,
          ("Nothing is linked to the pad %s; the element waits for its lines.",
              GST_PAD_NAME (other->pad)),
          (NULL));
    return TRUE;
  }
  if (check_types (self) && self->funcs->open (self->element, side))
    return TRUE;
  gst_clear_caps (&s->caps); /* they come again after a flush */
  return FALSE;
}

static gboolean
set_caps (GstInsarPair *self, guint side, GstCaps *caps)
{
  gboolean done;

  GST_IMAGING_HOLD (&self->lock);
  done = take_caps (self, side, caps);
  if (!done)
    self->flow = GST_FLOW_NOT_NEGOTIATED;
  g_cond_broadcast (&self->changed);
  return done;
}

/* Under the lock. Returns: whether lines of @side are missing */
static gboolean
is_cut_short (GstInsarPair *self, guint side)
{
  const GstInsarSide *s = &self->sides[side];

  return self->flow == GST_FLOW_OK && !s->is_flushing &&
         !self->funcs->is_complete (self->element) &&
         (!s->caps || s->n_lines < s->info.height);
}

/* Serialized events are pushed by the busy thread, because an element's worker
 * pushes, too: pushing may block on the peer, and no other thread must wait for
 * that. Other events are pushed at once. */
static void
push_event (GstInsarPair *self, GstEvent *event)
{
  if (!GST_EVENT_IS_SERIALIZED (event)) {
    gst_imaging_src_pads_event (self->outputs, event);
    return;
  }
  GST_IMAGING_HOLD (&self->lock);
  if (GST_EVENT_TYPE (event) == GST_EVENT_STREAM_START) {
    self->has_started = TRUE;
    g_queue_push_head (&self->events, gst_event_ref (event));
  } else {
    g_queue_push_tail (&self->events, gst_event_ref (event));
  }
  if (!self->is_busy) {
    self->is_busy = TRUE;
    gst_insar_pair_end_work (self);
  }
}

/* Lines come in a segment of lines; images go out in one of time. */
static void
push_segment (GstInsarPair *self, GstEvent *cause)
{
  GstSegment segment;
  g_autoptr (GstEvent) event = NULL;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  event = gst_event_new_segment (&segment);
  gst_event_set_seqnum (event, gst_event_get_seqnum (cause));
  g_mutex_lock (&self->lock);
  self->seqnum = gst_event_get_seqnum (cause);
  g_mutex_unlock (&self->lock);
  push_event (self, event);
}

/* The end of @side, and with it, or when nothing is left to do, of all. */
static void
end_side (GstInsarPair *self, guint side, GstEvent *eos)
{
  GstInsarSide *s = &self->sides[side];
  gboolean ends, complete;

  g_mutex_lock (&self->lock);
  if (s->is_stale || self->is_done) {
    g_mutex_unlock (&self->lock);
    return;
  }
  s->is_eos = TRUE;
  if (is_cut_short (self, side)) {
    gst_insar_slc_post_end (self->element, GST_PAD_NAME (s->pad),
        s->caps ? &s->info : NULL, s->n_lines);
    fail (self, GST_FLOW_ERROR);
  }
  begin_work (self);
  complete = self->funcs->is_complete (self->element);
  ends = !self->is_done &&
         (self->sides[!side].is_eos || complete || self->flow != GST_FLOW_OK);
  self->is_done = self->is_done || ends;
  g_mutex_unlock (&self->lock);
  if (ends)
    self->funcs->push_end (self->element, eos, complete);
  g_mutex_lock (&self->lock);
  gst_insar_pair_end_work (self);
  g_mutex_unlock (&self->lock);
}

/* Under the lock. */
static void
set_flushing (GstInsarPair *self, guint side, gboolean is_flushing)
{
  self->sides[side].is_flushing = is_flushing;
  if (self->funcs->cancel)
    self->funcs->cancel (self->element, gst_insar_pair_is_flushing (self));
  g_cond_broadcast (&self->changed);
}

/* The end of one side's flush, in the middle of the beginning of the other's,
 * would set going what that waits for: a queue that does so waits for ever. */
static void
push_flush (GstInsarPair *self, GstEvent *event)
{
  GST_IMAGING_HOLD (&self->flush_lock);
  gst_imaging_src_pads_event (self->outputs, event);
}

static void
start_flush (GstInsarPair *self, guint side, GstEvent *event)
{
  g_mutex_lock (&self->lock);
  set_flushing (self, side, TRUE);
  g_mutex_unlock (&self->lock);
  push_flush (self, event);
}

static void
restart_pair (GstInsarPair *self)
{
  self->flow = GST_FLOW_OK;
  self->is_done = FALSE;
  self->n_reported = 0;
}

/* A flush concerns both sides: until the other has had its own, its lines and
 * its end are old ones. Nobody pushes while @event goes out. */
static void
stop_flush (GstInsarPair *self, guint side, GstEvent *event)
{
  GstInsarSide *s = &self->sides[side], *other = &self->sides[!side];

  g_mutex_lock (&self->lock);
  begin_work (self);
  other->is_stale = !s->is_stale;
  if (other->is_stale) {
    other->is_eos = FALSE;
    other->n_lines = 0;
  }
  s->is_stale = s->is_eos = FALSE;
  s->n_lines = 0;
  restart_pair (self);
  self->funcs->rewind (self->element, side);
  g_mutex_unlock (&self->lock);
  push_flush (self, event);
  g_mutex_lock (&self->lock);
  set_flushing (self, side, FALSE);
  gst_insar_pair_end_work (self);
  g_mutex_unlock (&self->lock);
}

/* The output has the stream-start of the reference and a segment of its own;
 * other events are passed on. */
static gboolean
take_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstInsarPair *self = gst_pad_get_element_private (pad);
  guint side = side_of (self, pad);
  gboolean done = TRUE;
  GstCaps *caps;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    done = set_caps (self, side, caps);
    break;
  case GST_EVENT_FLUSH_START:
    start_flush (self, side, event);
    break;
  case GST_EVENT_FLUSH_STOP:
    stop_flush (self, side, event);
    break;
  case GST_EVENT_EOS:
    end_side (self, side, event);
    break;
  case GST_EVENT_STREAM_START:
    if (side == GST_INSAR_REFERENCE)
      push_event (self, event);
    break;
  case GST_EVENT_SEGMENT:
    if (side == GST_INSAR_REFERENCE)
      push_segment (self, event);
    break;
  case GST_EVENT_GAP: /* lines are missing, which their numbers tell */
    break;
  default:
    push_event (self, event);
    break;
  }
  gst_event_unref (event);
  return done;
}

/* Here, and not when the state changes: after a flush that ends in between, the
 * thread of a pad would wait again, for lines that no longer arrive. */
static gboolean
activate (GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active)
{
  GstInsarPair *self = gst_pad_get_element_private (pad);

  GST_IMAGING_HOLD (&self->lock);
  set_flushing (self, side_of (self, pad), !active);
  return TRUE;
}

static gboolean
can_seek (const GstInsarSide *side)
{
  g_autoptr (GstQuery) query = gst_query_new_seeking (GST_FORMAT_DEFAULT);
  gboolean can = FALSE;

  if (gst_pad_peer_query (side->pad, query))
    gst_query_parse_seeking (query, NULL, &can, NULL, NULL);
  return can;
}

gboolean
gst_insar_pair_src_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  g_autoptr (GstPad) sink =
      gst_element_get_static_pad (GST_ELEMENT (parent), "reference");
  const GstInsarPair *self = gst_pad_get_element_private (sink);

  if (GST_EVENT_TYPE (event) != GST_EVENT_SEEK ||
      (gst_insar_slc_is_rewind (event) &&
          can_seek (&self->sides[GST_INSAR_REFERENCE]) &&
          can_seek (&self->sides[GST_INSAR_SECONDARY])))
    return gst_pad_event_default (pad, parent, event);
  gst_event_unref (event);
  return FALSE;
}

/* --- from the element ----------------------------------------------------- */

void
gst_insar_pair_init (GstInsarPair *self, GstImagingElement *base,
    GstStaticPadTemplate *reference, GstStaticPadTemplate *secondary,
    const GstInsarPairFuncs *funcs)
{
  *self = (GstInsarPair){
      .element = GST_ELEMENT (base),
      .engine = base->engine,
      .outputs = base->outputs,
      .funcs = funcs,
  };
  g_queue_init (&self->events);
  g_mutex_init (&self->lock);
  g_mutex_init (&self->flush_lock);
  g_cond_init (&self->changed);
  for (guint s = 0; s < GST_INSAR_N_SIDES; s++) {
    GstPad *pad = gst_imaging_element_add_pad (
        base, s == GST_INSAR_REFERENCE ? reference : secondary);

    gst_pad_set_element_private (pad, self);
    gst_pad_set_activatemode_function (pad, activate);
    gst_pad_set_chain_function (pad, chain);
    gst_pad_set_event_function (pad, take_event);
    self->sides[s].pad = pad;
  }
}

void
gst_insar_pair_clear (GstInsarPair *self)
{
  g_mutex_clear (&self->lock);
  g_mutex_clear (&self->flush_lock);
  g_cond_clear (&self->changed);
}

void
gst_insar_pair_take_settings (GstInsarPair *self, guint side)
{
  if (!self->sides[!side].is_stale)
    return; /* of the other side there may be lines of this pair */
  if (!gst_imaging_settings_take (gst_imaging_settings_of (self->element),
          GST_IMAGING_WHEN_NEXT_SET, GST_CLOCK_TIME_NONE))
    fail (self, GST_FLOW_ERROR);
}

/* No GST_MESSAGE_PROGRESS: gst-launch-1.0 does not play until it is complete.
 */
void
gst_insar_pair_report (
    GstInsarPair *self, const gchar *name, guint row, guint n_rows)
{
  guint done = (guint) ((guint64) row * N_REPORTS / n_rows);

  if (done <= self->n_reported)
    return;
  self->n_reported = done;
  gst_element_post_message (
      self->element, gst_message_new_element (GST_OBJECT (self->element),
                         gst_structure_new (name, "rows", G_TYPE_UINT, row,
                             "of", G_TYPE_UINT, n_rows, NULL)));
}

void
gst_insar_pair_stop (GstInsarPair *self)
{
  g_mutex_lock (&self->lock);
  gst_imaging_engine_stop (self->engine);
  for (guint s = 0; s < GST_INSAR_N_SIDES; s++) {
    GstInsarSide *side = &self->sides[s];

    gst_clear_caps (&side->caps);
    gst_clear_buffer (&side->first);
    side->is_eos = side->is_stale = FALSE;
    side->n_lines = 0;
  }
  g_queue_clear_full (&self->events, (GDestroyNotify) gst_event_unref);
  self->has_started = FALSE;
  restart_pair (self);
  g_mutex_unlock (&self->lock);
  gst_imaging_src_pads_reset (self->outputs);
}
