/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscanqueue.h"

#include "gstoctbscanoutput.h"

typedef enum { WAITING, LAUNCHING, LAUNCHED, FAILED, DONE } State;

/* B-scans that go through a device together. */
typedef struct {
  GstOctBscanWork **works;
  guint n, n_bscans;
  State state;
  ImkStatus status; /* of a launch */
  ImkError error;
  gint64 launched; /* us */
} Batch;

/* A device and its batches. */
typedef struct {
  GstOctBscanQueue *queue;
  GstOctBscanDevice *device; /* NULL: the CPU, when no device is left */
  GThread *thread;           /* waits for its batches and pushes */
  GCond changed;
  GThread *launcher; /* launches a batch behind another */
  GCond handed_over;
  Batch *handed; /* that the launcher shall launch, or NULL */
  GQueue flying; /* of Batch, in the order of the launches */
  guint next;    /* slot of the next batch on the device */
  gboolean launching, lost;
  gint64 last_done; /* us */
  gdouble speed;    /* B-scans a us, 0 before the first */
  guint64 n_done;
} Member;

struct _GstOctBscanQueue {
  GstOctBscan *element;
  guint max_jobs; /* of a batch, on devices */
  guint n_batches, n_full, max_waiting, max_taken;

  GMutex lock; /* of all below */
  GCond changed;
  GQueue waiting;  /* of GstOctBscanWork */
  guint n_waiting; /* B-scans of them */
  GQueue again;    /* of Batch, unfinished when their device was lost */
  GQueue order;    /* of Batch, all that were taken, in their order */
  guint n_taken;   /* B-scans of them */
  Member *members;
  guint n_members;
  gboolean pushing, recovering, flushing, quit;
  gboolean is_over; /* no device and no CPU is left */
  GstFlowReturn flow;
  ImkStatus why; /* of the loss of the last device */
  ImkError error;
};

static void
batch_free (Batch *b)
{
  for (guint i = 0; i < b->n; i++)
    gst_oct_bscan_work_free (b->works[i]);
  g_free (b->works);
  g_free (b);
}

/* --- assignment ----------------------------------------------------------- */

/* Returns: us until @m would finish one more B-scan */
static gdouble
expected_end (const Member *m)
{
  guint n = 1;

  for (GList *l = m->flying.head; l; l = l->next)
    n += ((Batch *) l->data)->n_bscans;
  return m->speed > 0 ? n / m->speed : 0;
}

static guint
count_flying (const GstOctBscanQueue *self)
{
  guint n = 0;

  for (guint i = 0; i < self->n_members; i++)
    n += self->members[i].flying.length;
  return n;
}

/* If all devices are idle, any of them takes what is waiting. If others are
 * busy, an early start gains nothing and a larger batch gains much, because a
 * launch takes as long for one B-scan as for many. An idle device then starts
 * with a quarter of a full batch. */
static gboolean
may_begin (GstOctBscanQueue *self, const Member *m)
{
  guint n = m->flying.length;

  if (m->lost || m->launching || n == (m->device ? self->n_batches : 1))
    return FALSE;
  if (self->again.length > 0)
    return TRUE;
  /* unpushed batches count against the limit */
  if (self->n_taken >= self->max_taken)
    return FALSE;
  if (count_flying (self) == 0)
    return TRUE;
  return self->n_waiting >= (n == 0 ? self->n_full / 4 : self->n_full);
}

/* Returns: (nullable): the member that would finish first */
static Member *
choose_member (GstOctBscanQueue *self, const GstOctBscanWork *next)
{
  Member *best = NULL;

  for (guint i = 0; i < self->n_members; i++) {
    Member *m = &self->members[i];

    if (!may_begin (self, m))
      continue;
    if (i > 0 && m->device && !next->may_go_anywhere)
      continue;
    if (!best || expected_end (m) < expected_end (best))
      best = m;
  }
  return best;
}

/* Returns: a number of B-scans for which all devices need the same time */
static guint
share_of (GstOctBscanQueue *self, const Member *m)
{
  gdouble fastest = m->speed;

  if (!m->device)
    return 1;
  if (!(m->speed > 0))
    return self->max_jobs;
  for (guint i = 0; i < self->n_members; i++)
    if (!self->members[i].lost)
      fastest = MAX (fastest, self->members[i].speed);
  return MAX (1, (guint) (self->max_jobs * m->speed / fastest));
}

/* Returns: (transfer full) (nullable): the first that is waiting */
static GstOctBscanWork *
pop_work (GstOctBscanQueue *self)
{
  GList *link = g_queue_pop_head_link (&self->waiting);
  GstOctBscanWork *w = link ? link->data : NULL;

  if (w)
    self->n_waiting -= w->n;
  return w;
}

/* Moves the first that is waiting into @b. */
static void
take_work (GstOctBscanQueue *self, Batch *b)
{
  GstOctBscanWork *w = pop_work (self);

  b->n_bscans += w->n;
  b->works[b->n++] = w;
}

static void
drop_works (GstOctBscanQueue *self)
{
  GstOctBscanWork *w;

  while ((w = pop_work (self)))
    gst_oct_bscan_work_free (w);
}

static Batch *
take_batch (GstOctBscanQueue *self, const Member *m)
{
  Batch *b = g_queue_pop_head (&self->again);
  const GstOctBscanWork *first, *next;
  guint most = share_of (self, m);

  if (b)
    return b;
  b = g_new0 (Batch, 1);
  b->works = g_new (GstOctBscanWork *, MIN (most, self->waiting.length));
  first = g_queue_peek_head (&self->waiting);
  g_cond_broadcast (&self->changed); /* there is room */
  while ((next = g_queue_peek_head (&self->waiting)) &&
         (b->n == 0 || b->n_bscans + next->n <= most) &&
         next->snapshot == first->snapshot &&
         (m == self->members || !m->device || next->may_go_anywhere))
    take_work (self, b);
  g_queue_push_tail (&self->order, b);
  self->n_taken += b->n_bscans;
  return b;
}

static ImkStatus
run_on_cpu (GstOctBscanQueue *self, Batch *b, ImkError *error)
{
  GST_IMAGING_HOLD (&self->element->engine_lock);
  for (guint i = 0; i < b->n; i++) {
    gst_oct_bscan_work_renew (b->works[i]);
    IMK_TRY (gst_oct_bscan_run_on_cpu (self->element, b->works[i], error));
  }
  return IMK_OK;
}

static void
stop_flow (GstOctBscanQueue *self, GstFlowReturn flow)
{
  if (self->flow == GST_FLOW_OK)
    self->flow = flow;
}

/* Call with the lock held; it is released during the launch. */
static void
launch (GstOctBscanQueue *self, Member *m, Batch *b)
{
  guint slot = m->next;

  m->next = (m->next + 1) % self->n_batches;
  g_mutex_unlock (&self->lock);
  b->launched = g_get_monotonic_time ();
  b->status = m->device ? gst_oct_bscan_device_launch (
                              m->device, slot, b->works, b->n, &b->error)
                        : run_on_cpu (self, b, &b->error);
  g_mutex_lock (&self->lock);
  b->state = b->status == IMK_OK ? LAUNCHED : FAILED;
  m->launching = FALSE;
  g_cond_signal (&m->changed);
}

/* If all devices are idle, the caller launches directly: another thread would
 * have to wake up first. Otherwise the launcher has time to wake up, and the
 * caller continues. */
static void
begin (GstOctBscanQueue *self, Member *m, Batch *b)
{
  gboolean is_idle = count_flying (self) == 0;

  m->launching = TRUE;
  b->state = LAUNCHING;
  g_queue_push_tail (&m->flying, b);
  if (is_idle) {
    launch (self, m, b);
  } else {
    m->handed = b;
    g_cond_signal (&m->handed_over);
  }
}

static gboolean
is_any_left (GstOctBscanQueue *self)
{
  for (guint i = 0; i < self->n_members; i++)
    if (!self->members[i].lost)
      return TRUE;
  return FALSE;
}

/* Returns: whether the samples of @w are on the first device only, which is
 * lost. The CPU, once it is a member, notices that itself. */
static gboolean
is_stuck (GstOctBscanQueue *self, const GstOctBscanWork *w)
{
  return self->members[0].lost && is_any_left (self) &&
         self->members[self->n_members - 1].device && !w->may_go_anywhere;
}

/* Moves stuck works of @b into a finished batch before it, which is counted and
 * not pushed. */
static void
separate_stuck (GstOctBscanQueue *self, Batch *b)
{
  Batch *stuck = g_new0 (Batch, 1);
  guint n = 0;

  stuck->works = g_new (GstOctBscanWork *, b->n);
  for (guint i = 0; i < b->n; i++) {
    GstOctBscanWork *w = b->works[i];

    if (is_stuck (self, w)) {
      stuck->works[stuck->n++] = w;
      stuck->n_bscans += w->n;
      w->lost = TRUE;
    } else {
      b->works[n++] = w;
    }
  }
  b->n = n;
  b->n_bscans -= stuck->n_bscans;
  if (stuck->n > 0)
    GST_WARNING_OBJECT (self->element, "%u B-scans are lost", stuck->n_bscans);
  stuck->state = DONE;
  g_queue_insert_before (&self->order, g_queue_find (&self->order, b), stuck);
}

/* Releases works that no member can take. */
static void
drop_stuck (GstOctBscanQueue *self)
{
  const GstOctBscanWork *w;
  Batch *b;

  for (GList *l = self->again.head, *next; l; l = next) {
    next = l->next;
    b = l->data;
    separate_stuck (self, b);
    if (b->n == 0) {
      b->state = DONE;
      g_queue_delete_link (&self->again, l);
    }
  }
  while ((w = g_queue_peek_head (&self->waiting)) && is_stuck (self, w)) {
    b = g_new0 (Batch, 1);
    b->works = g_new (GstOctBscanWork *, 1);
    take_work (self, b);
    g_queue_push_tail (&self->order, b);
    self->n_taken += b->n_bscans;
    separate_stuck (self, b);
    b->state = DONE;
    g_cond_broadcast (&self->changed); /* there is room */
  }
}

/* Assigns batches to idle members. Call with the lock held; it is released
 * meanwhile. */
static void
submit (GstOctBscanQueue *self)
{
  const GstOctBscanWork *next;
  const Batch *again;
  Member *m;

  while (!self->recovering && !self->quit) {
    if (self->members[0].lost)
      drop_stuck (self);
    again = g_queue_peek_head (&self->again);
    next = again ? again->works[0] : g_queue_peek_head (&self->waiting);
    if (!next || !(m = choose_member (self, next)))
      break;
    begin (self, m, take_batch (self, m));
  }
}

/* --- output --------------------------------------------------------------- */

static GstFlowReturn
push_images_of_batch (GstOctBscanQueue *self, Batch *b)
{
  GstFlowReturn flow = GST_FLOW_OK;

  /* without the lock of the engine: the streaming thread may hold it while it
   * allocates page-locked memory for more images */
  for (guint i = 0; i < b->n; i++)
    if (b->works[i]->lost || b->works[i]->in)
      gst_oct_bscan_count (self->element, b->works[i]);
  for (guint i = 0; i < b->n && flow == GST_FLOW_OK; i++)
    if (!b->works[i]->lost)
      flow = gst_oct_bscan_push_images (self->element, b->works[i]);
  return flow;
}

/* Pushes finished batches up to the first unfinished one, whichever member has
 * finished them. Only one thread does so at a time. Call with the lock held. */
static void
push_finished_batches (GstOctBscanQueue *self)
{
  Batch *b = g_queue_peek_head (&self->order);

  if (self->pushing || !b || b->state != DONE)
    return;
  self->pushing = TRUE;
  while ((b = g_queue_peek_head (&self->order)) && b->state == DONE) {
    gboolean wanted = !self->flushing && self->flow == GST_FLOW_OK;
    GstFlowReturn flow = GST_FLOW_OK;
    guint n_bscans;

    g_queue_pop_head (&self->order);
    g_mutex_unlock (&self->lock);
    if (wanted)
      flow = push_images_of_batch (self, b);
    n_bscans = b->n_bscans;
    batch_free (b);
    g_mutex_lock (&self->lock);
    self->n_taken -= n_bscans;
    stop_flow (self, flow);
    g_cond_broadcast (&self->changed);
  }
  self->pushing = FALSE;
  g_cond_broadcast (&self->changed);
}

/* --- failures ------------------------------------------------------------- */

/* Drops all remaining work: no member is left. */
static void
drop_all (GstOctBscanQueue *self)
{
  Batch *b;

  self->is_over = TRUE;
  stop_flow (self, GST_FLOW_ERROR);
  while ((b = g_queue_pop_head (&self->again)))
    b->state = DONE;
  drop_works (self);
}

/* @device: (nullable): NULL for the CPU. Call with the lock held. */
static void add_member (GstOctBscanQueue *self, GstOctBscanDevice *device);

/* The last device is lost: the CPU becomes a member, if that is allowed. */
static void
recover (GstOctBscanQueue *self)
{
  gboolean ok;

  self->recovering = TRUE;
  g_mutex_unlock (&self->lock);
  g_mutex_lock (&self->element->engine_lock);
  ok = gst_oct_bscan_fall_back (self->element, NULL, self->why, &self->error);
  g_mutex_unlock (&self->element->engine_lock);
  g_mutex_lock (&self->lock);
  self->recovering = FALSE;
  if (!ok)
    drop_all (self);
  else if (!self->quit)
    add_member (self, NULL);
}

static void
fail (GstOctBscanQueue *self, Member *m, Batch *b)
{
  gboolean is_first = !m->lost;
  gboolean is_of_device = b->status == IMK_ERROR_DEVICE ||
                          b->status == IMK_ERROR_MEMORY ||
                          b->status == IMK_ERROR_UNAVAILABLE;

  /* errors of a frame would be the same on any device */
  if (!m->device || !is_of_device) {
    stop_flow (self, GST_FLOW_ERROR);
    g_mutex_unlock (&self->lock);
    gst_oct_bscan_post_error (self->element, &b->error);
    g_mutex_lock (&self->lock);
    b->state = DONE;
    return;
  }
  m->lost = TRUE;
  self->why = b->status;
  self->error = b->error;
  for (guint i = 0; i < b->n; i++)
    gst_oct_bscan_work_renew (b->works[i]);
  b->state = WAITING;
  g_queue_push_tail (&self->again, b); /* another member takes it */
  if (is_first && is_any_left (self)) {
    ImkError why = self->error;

    g_mutex_unlock (&self->lock);
    GST_ELEMENT_WARNING (self->element, LIBRARY, FAILED,
        ("CUDA device %d cannot be used any more, the others go on; no B-scan "
         "in host memory is lost. %s",
            gst_oct_bscan_device_id (m->device), why.message),
        (NULL));
    g_mutex_lock (&self->lock);
  }
}

/* --- the threads ---------------------------------------------------------- */

static void
measure (Member *m, const Batch *b)
{
  gint64 now = g_get_monotonic_time ();
  gint64 spent = now - MAX (b->launched, m->last_done);
  gdouble speed = (gdouble) b->n_bscans / MAX (spent, 1);

  m->last_done = now;
  m->speed = m->speed > 0 ? (3 * m->speed + speed) / 4 : speed;
  m->n_done += b->n_bscans;
}

static void
end_batch (GstOctBscanQueue *self, Member *m, Batch *b, guint slot)
{
  ImkError error;
  ImkStatus status = IMK_OK;

  if (m->device) {
    g_mutex_unlock (&self->lock);
    status = gst_oct_bscan_device_finish (m->device, slot, &error);
    g_mutex_lock (&self->lock);
  }
  if (b->status == IMK_OK && status != IMK_OK) {
    b->status = status;
    b->error = error;
  }
  g_queue_pop_head (&m->flying);
  if (b->status == IMK_OK) {
    measure (m, b);
    b->state = DONE;
  } else {
    fail (self, m, b);
  }
  /* batches of other members may still succeed */
  if (!self->recovering && !self->is_over && !is_any_left (self) &&
      count_flying (self) == 0)
    recover (self);
}

static gpointer
member_main (gpointer data)
{
  Member *m = data;
  GstOctBscanQueue *self = m->queue;
  guint slot = 0;
  Batch *b;

  GST_IMAGING_HOLD (&self->lock);
  while ((b = g_queue_peek_head (&m->flying)) || !self->quit) {
    if (!b || b->state == LAUNCHING) {
      g_cond_wait (&m->changed, &self->lock);
      continue;
    }
    end_batch (self, m, b, slot);
    slot = (slot + 1) % self->n_batches;
    submit (self);
    push_finished_batches (self);
    submit (self); /* there may be room again */
  }
  return NULL;
}

static gpointer
launcher_main (gpointer data)
{
  Member *m = data;
  GstOctBscanQueue *self = m->queue;
  Batch *b;

  GST_IMAGING_HOLD (&self->lock);
  while (m->handed || !self->quit) {
    if (!m->handed) {
      g_cond_wait (&m->handed_over, &self->lock);
      continue;
    }
    b = g_steal_pointer (&m->handed);
    launch (self, m, b);
    submit (self);
  }
  return NULL;
}

static void
add_member (GstOctBscanQueue *self, GstOctBscanDevice *device)
{
  Member *m = &self->members[self->n_members++];

  m->queue = self;
  m->device = device;
  g_cond_init (&m->changed);
  g_cond_init (&m->handed_over);
  g_queue_init (&m->flying);
  m->thread = g_thread_new ("octbscan", member_main, m);
  m->launcher = g_thread_new ("octbscan-launch", launcher_main, m);
}

/* --- the object ----------------------------------------------------------- */

GstOctBscanQueue *
gst_oct_bscan_queue_new (
    GstOctBscan *element, GPtrArray *devices, guint n_batches, guint n_full)
{
  GstOctBscanQueue *self = g_new0 (GstOctBscanQueue, 1);

  self->element = element;
  self->n_batches = n_batches;
  self->n_full = n_full;
  self->max_jobs = element->open.config.max_jobs;
  self->max_waiting = 2 * self->max_jobs;
  self->max_taken = (n_batches + 1) * devices->len * self->max_jobs;
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  /* with room for the CPU, which may become a member later */
  self->members = g_new0 (Member, devices->len + 1);
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < devices->len; i++)
    add_member (self, devices->pdata[i]);
  g_mutex_unlock (&self->lock);
  g_ptr_array_set_free_func (devices, NULL);
  g_ptr_array_unref (devices);
  return self;
}

void
gst_oct_bscan_queue_free (GstOctBscanQueue *self)
{
  if (!self)
    return;
  g_mutex_lock (&self->lock);
  self->flushing = self->quit = TRUE;
  drop_works (self);
  for (guint i = 0; i < self->n_members; i++) {
    g_cond_signal (&self->members[i].changed);
    g_cond_signal (&self->members[i].handed_over);
  }
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < self->n_members; i++) {
    Member *m = &self->members[i];

    g_thread_join (m->launcher);
    g_thread_join (m->thread);
    g_cond_clear (&m->changed);
    g_cond_clear (&m->handed_over);
    gst_oct_bscan_device_free (m->device);
  }
  g_queue_clear (&self->again); /* its batches are in order, too */
  g_queue_clear_full (&self->order, (GDestroyNotify) batch_free);
  g_cond_clear (&self->changed);
  g_mutex_clear (&self->lock);
  g_free (self->members);
  g_free (self);
}

/* Drops waiting works if they can no longer be pushed. */
static void
drop_waiting (GstOctBscanQueue *self)
{
  if (self->flushing || self->flow != GST_FLOW_OK)
    drop_works (self);
}

/* Forgets the flow return of downstream, so that the next push asks again. */
static void
reset_flow (GstOctBscanQueue *self)
{
  self->flow = self->is_over ? GST_FLOW_ERROR : GST_FLOW_OK;
}

GstFlowReturn
gst_oct_bscan_queue_add_work (GstOctBscanQueue *self, GstOctBscanWork *work)
{
  GstFlowReturn flow;

  g_mutex_lock (&self->lock);
  while (self->n_waiting >= self->max_waiting && !self->flushing &&
         self->flow == GST_FLOW_OK)
    g_cond_wait (&self->changed, &self->lock);
  flow = self->flushing ? GST_FLOW_FLUSHING : self->flow;
  if (flow == GST_FLOW_OK) {
    work->link.data = work;
    g_queue_push_tail_link (&self->waiting, &work->link);
    self->n_waiting += work->n;
    submit (self);
    push_finished_batches (self);
    submit (self);
    flow = self->flow;
  } else {
    gst_oct_bscan_work_free (work);
  }
  drop_waiting (self);
  reset_flow (self); /* each failure is returned once */
  g_mutex_unlock (&self->lock);
  return flow;
}

void
gst_oct_bscan_queue_drain (GstOctBscanQueue *self)
{
  GST_IMAGING_HOLD (&self->lock);
  drop_waiting (self);
  while (self->waiting.length > 0 || self->order.length > 0 || self->pushing) {
    g_cond_wait (&self->changed, &self->lock);
    drop_waiting (self);
  }
}

void
gst_oct_bscan_queue_wait (GstOctBscanQueue *self, gint64 us)
{
  gint64 until = g_get_monotonic_time () + us;
  gboolean in_time = TRUE;

  GST_IMAGING_HOLD (&self->lock);
  while (in_time && !self->flushing &&
         (self->waiting.length > 0 || self->order.length > 0 || self->pushing))
    in_time = g_cond_wait_until (&self->changed, &self->lock, until);
}

void
gst_oct_bscan_queue_set_flushing (GstOctBscanQueue *self, gboolean flushing)
{
  GST_IMAGING_HOLD (&self->lock);
  self->flushing = flushing;
  if (!flushing)
    reset_flow (self);
  g_cond_broadcast (&self->changed);
}

ImkStatus
gst_oct_bscan_queue_get (GstOctBscanQueue *self, GstOctBscanFound what,
    gpointer values, ImkError *error)
{
  return gst_oct_bscan_device_get (
      self->members[0].device, what, values, error);
}

guint
gst_oct_bscan_queue_capacity (GstOctBscanQueue *self)
{
  /* the last batch may start just below the limit */
  return self->max_waiting + self->max_taken + self->max_jobs;
}

GstStructure *
gst_oct_bscan_queue_shares (GstOctBscanQueue *self)
{
  GstStructure *shares = gst_structure_new_empty ("octbscan-shares");

  GST_IMAGING_HOLD (&self->lock);
  for (guint i = 0; i < self->n_members; i++) {
    const Member *m = &self->members[i];
    gchar *name = m->device ? g_strdup_printf (
                                  "cuda%d", gst_oct_bscan_device_id (m->device))
                            : g_strdup ("cpu");

    gst_structure_set (shares, name, G_TYPE_UINT64, m->n_done, NULL);
    g_free (name);
  }
  return shares;
}
