/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define _GNU_SOURCE /* SCHED_BATCH */
#include "gstimagingresultstext.h"

#include <pthread.h>
#include <sched.h>

#define MAX_ROWS 8

/* So many numbers are formatted faster than a thread wakes up. */
#define MAX_AT_ONCE 128

/* A pending event or row. */
typedef struct {
  GstEvent *event;
  GstBuffer *header, *row;
  GstImagingResult result; /* with values of its own */
} Item;

struct _GstImagingResultsText {
  GstPad *pad; /* owns this; the thread has a reference */

  GMutex lock; /* of all below */
  GCond changed;
  GQueue items; /* of Item */
  guint n_rows;
  GstFlowReturn flow; /* of the last push */
  gboolean busy;      /* the thread pushes */
  GThread *pusher;    /* while busy */
  gint has_header;    /* atomic; the line of names has been taken */
  gboolean active, flushing;
  gboolean has_flushed; /* since the current push began */
  gboolean closed;      /* the pad has been released */
  GThread *thread;      /* from the first item until the pad is not active */
};

static void
item_free (gpointer data)
{
  Item *self = data;

  g_clear_pointer (&self->event, gst_event_unref);
  gst_clear_buffer (&self->header);
  gst_clear_buffer (&self->row);
  if (self->result.values_buffer)
    gst_buffer_unref (self->result.values_buffer);
  else
    g_free ((gpointer) self->result.values);
  g_clear_pointer (&self->result.indices, g_bytes_unref);
  g_free (self);
}

static void
clear (gpointer data)
{
  GstImagingResultsText *self = data;

  g_queue_clear_full (&self->items, item_free);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
}

/* --- the thread ----------------------------------------------------------- */

static GstFlowReturn
push_row (
    GstImagingResultsText *self, Item *item, const GstImagingResult *result)
{
  GstFlowReturn flow = GST_FLOW_OK;
  GstBuffer *text;

  if (item->header) {
    flow = gst_pad_push (self->pad, g_steal_pointer (&item->header));
    g_atomic_int_set (&self->has_header, flow == GST_FLOW_OK);
  }
  if (flow != GST_FLOW_OK)
    return flow;
  text = gst_imaging_results_to_csv (result, GST_BUFFER_PTS (item->row), FALSE);
  gst_buffer_append_memory (item->row, gst_buffer_get_all_memory (text));
  gst_buffer_unref (text);
  return gst_pad_push (self->pad, g_steal_pointer (&item->row));
}

/* Called with the lock, which is open meanwhile. */
static void
push_item (GstImagingResultsText *self, Item *item)
{
  GstFlowReturn flow = GST_FLOW_OK;
  gboolean is_row = item->event == NULL;

  self->busy = TRUE;
  self->pusher = g_thread_self ();
  self->has_flushed = FALSE;
  self->n_rows -= is_row;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  if (is_row)
    flow = push_row (self, item, &item->result);
  else
    gst_pad_push_event (self->pad, g_steal_pointer (&item->event));
  item_free (item);
  g_mutex_lock (&self->lock);
  self->busy = FALSE;
  self->pusher = NULL;
  if (is_row && !self->flushing && !self->has_flushed)
    self->flow = flow;
  g_cond_broadcast (&self->changed);
}

/* Returns: whether the caller may push directly; no other thread adds items */
static gboolean
is_idle (GstImagingResultsText *self)
{
  GST_IMAGING_HOLD (&self->lock);
  return !self->busy && g_queue_is_empty (&self->items);
}

/* Called with the lock. Returns: whether the caller runs inside a push, such as
 * a seek from a probe. Waiting for the end of that push would deadlock. */
static gboolean
is_pusher (GstImagingResultsText *self)
{
  return self->pusher == g_thread_self ();
}

/* Lets the streaming thread, which wakes this one, finish its frame first. */
static void
lower_priority (void)
{
#ifdef SCHED_BATCH
  const struct sched_param none = {0};

  pthread_setschedparam (pthread_self (), SCHED_BATCH, &none);
#endif
}

static gpointer
run (gpointer data)
{
  GstImagingResultsText *self = data;
  GstPad *pad = self->pad;

  lower_priority ();
  g_mutex_lock (&self->lock);
  /* another one has begun where this one stopped the pad, in a probe */
  while (self->active && self->thread == g_thread_self ()) {
    Item *item = g_queue_pop_head (&self->items);

    if (item)
      push_item (self, item);
    else
      g_cond_wait (&self->changed, &self->lock);
  }
  g_mutex_unlock (&self->lock);
  gst_imaging_results_text_unref (self);
  gst_object_unref (pad);
  return NULL;
}

/* --- the pad -------------------------------------------------------------- */

/* Called with the lock. Sticky events of a pad outlast a flush. */
static void
drop_items (GstImagingResultsText *self)
{
  Item *item;

  while ((item = g_queue_pop_head (&self->items))) {
    if (item->event && GST_EVENT_IS_STICKY (item->event) &&
        GST_EVENT_TYPE (item->event) != GST_EVENT_SEGMENT &&
        GST_EVENT_TYPE (item->event) != GST_EVENT_EOS)
      gst_pad_store_sticky_event (self->pad, item->event);
    item_free (item);
  }
  self->n_rows = 0;
  g_cond_broadcast (&self->changed);
}

static void
set_active (GstImagingResultsText *self, gboolean active)
{
  GThread *thread;
  gboolean closed;

  g_mutex_lock (&self->lock);
  self->active = active;
  self->flushing = FALSE;
  self->flow = GST_FLOW_OK;
  drop_items (self);
  closed = self->closed;
  thread = g_steal_pointer (&self->thread);
  g_mutex_unlock (&self->lock);
  if (!thread)
    return;
  /* A pad that was released may be blocked as long as it likes. */
  if (closed || thread == g_thread_self ())
    g_thread_unref (thread);
  else
    g_thread_join (thread);
}

static gboolean
on_activate (GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active)
{
  GstImagingResultsText *self = gst_pad_get_element_private (pad);

  if (self)
    set_active (self, active);
  return mode == GST_PAD_MODE_PUSH;
}

GstImagingResultsText *
gst_imaging_results_text_new (GstPad *pad)
{
  GstImagingResultsText *self = g_atomic_rc_box_new0 (GstImagingResultsText);

  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  g_queue_init (&self->items);
  self->pad = pad;
  gst_pad_set_element_private (pad, self);
  gst_pad_set_activatemode_function (pad, on_activate);
  return self;
}

void
gst_imaging_results_text_close (GstImagingResultsText *self)
{
  g_mutex_lock (&self->lock);
  self->closed = TRUE;
  g_mutex_unlock (&self->lock);
  gst_pad_set_element_private (self->pad, NULL);
  set_active (self, FALSE);
}

void
gst_imaging_results_text_unref (GstImagingResultsText *self)
{
  g_atomic_rc_box_release_full (self, clear);
}

/* --- input ---------------------------------------------------------------- */

/* Called with the lock. Returns: FALSE when @item (transfer full) is too late
 */
static gboolean
append (GstImagingResultsText *self, Item *item)
{
  if (!self->active || self->flushing) {
    item_free (item);
    return FALSE;
  }
  if (!self->thread) {
    gst_object_ref (self->pad);
    self->thread =
        g_thread_new ("results", run, g_atomic_rc_box_acquire (self));
  }
  g_queue_push_tail (&self->items, item);
  g_cond_broadcast (&self->changed);
  return TRUE;
}

void
gst_imaging_results_text_push_event (
    GstImagingResultsText *self, GstEvent *event)
{
  Item *item;

  if (is_idle (self)) {
    gst_pad_push_event (self->pad, event);
    return;
  }
  item = g_new0 (Item, 1);
  item->event = event;
  GST_IMAGING_HOLD (&self->lock);
  append (self, item);
}

/* Copies what the element overwrites with the next frame. */
static void
keep_result (Item *item, const GstImagingResult *result)
{
  gsize n = (gsize) result->n_rows * result->n_fields;

  item->result = *result;
  item->result.data = item->result.flags = NULL;
  item->result.more = NULL;
  if (result->indices)
    g_bytes_ref (result->indices);
  if (result->values_buffer)
    gst_buffer_ref (result->values_buffer);
  else
    item->result.values =
        g_memdup2 (result->values, n * sizeof (*result->values));
}

GstFlowReturn
gst_imaging_results_text_push (GstImagingResultsText *self,
    const GstImagingResult *result, GstBuffer *header, GstBuffer *row)
{
  gsize n_numbers = (gsize) result->n_rows * result->n_fields;
  Item *item = g_new0 (Item, 1);
  GstFlowReturn flow;

  if (header)
    g_atomic_int_set (&self->has_header, FALSE);
  item->header = header;
  item->row = row;
  if (n_numbers <= MAX_AT_ONCE && is_idle (self)) {
    flow = push_row (self, item, result);
    item_free (item);
    return flow;
  }
  keep_result (item, result);
  GST_IMAGING_HOLD (&self->lock);
  while (self->n_rows >= MAX_ROWS && self->active && !self->flushing)
    g_cond_wait (&self->changed, &self->lock);
  flow = self->flow;
  if (append (self, item))
    self->n_rows++;
  else
    flow = GST_FLOW_FLUSHING;
  return flow;
}

GstFlowReturn
gst_imaging_results_text_drain (GstImagingResultsText *self)
{
  GST_IMAGING_HOLD (&self->lock);
  while ((self->busy || !g_queue_is_empty (&self->items)) && self->active &&
         !self->flushing && !is_pusher (self))
    g_cond_wait (&self->changed, &self->lock);
  return self->active && !self->flushing ? self->flow : GST_FLOW_FLUSHING;
}

void
gst_imaging_results_text_set_flushing (
    GstImagingResultsText *self, gboolean flushing)
{
  GST_IMAGING_HOLD (&self->lock);
  if (flushing) {
    self->flushing = TRUE;
    drop_items (self);
  } else if (self->flushing) {
    while (self->busy && self->active && !is_pusher (self))
      g_cond_wait (&self->changed, &self->lock);
    self->flushing = FALSE;
    self->flow = GST_FLOW_OK;
    self->has_flushed = TRUE;
  }
}

gboolean
gst_imaging_results_text_has_header (GstImagingResultsText *self)
{
  return g_atomic_int_get (&self->has_header);
}
