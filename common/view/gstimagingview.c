/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define _GNU_SOURCE /* SCHED_BATCH */
#include "gstimagingview.h"

#include <gst/base/gstbasesink.h>
#ifdef __linux__
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#endif

#include "gstimagingjpeg.h"
#include "gstimagingtap.h"
#include "gstimagingviewmessage.h"
#include "gstimagingwake.h"

#define PATIENCE (100 * G_TIME_SPAN_MILLISECOND) /* for a newer frame */

struct _GstImagingView {
  GObject parent;

  GstPad *pad;
  guint id;
  GThread *thread;
  GstImagingWake news;  /* for the thread */
  GstImagingWake ready; /* for the owner */

  GMutex lock; /* of the next ones */
  gboolean is_closing;
  gboolean has_changed; /* since the last picture */
  GstImagingViewSettings settings;
  guint n_allowed;
  GBytes *message;
  GError *error;
  GstSample *shown; /* (nullable): until a frame passes */

  /* of the thread */
  GstImagingTap *tap;
  guint tap_slices;
  GstImagingViewFrame frame;
  GstImagingViewPicture picture;
  GstImagingJpeg jpeg;
  gint64 time; /* when the frame passed */
  gint64 due, requested;
  guint64 serial;
};

G_DEFINE_FINAL_TYPE (GstImagingView, gst_imaging_view, G_TYPE_OBJECT)

/* --- in its thread -------------------------------------------------------- */

/* The pipeline is more important than its pictures. With a low priority alone a
 * thread of the pipeline that wakes on the same processor waits for the end of
 * a slice of time, which are some milliseconds; from Linux 6.12 on the slices
 * of a thread can be short. SCHED_IDLE would stop the pictures where all
 * processors are busy. */
static void
lower_priority (void)
{
#ifdef __linux__
  const id_t thread = (id_t) syscall (SYS_gettid);
  const gint nice = MAX (10, getpriority (PRIO_PROCESS, thread));
  const struct { /* sched_attr of linux/sched/types.h */
    guint32 size, policy;
    guint64 flags;
    gint32 nice;
    guint32 priority;
    guint64 slice_ns, deadline, period;
  } wanted = {.size = sizeof (wanted),
      .policy = SCHED_BATCH,
      .nice = nice,
      .slice_ns = 100000};

  if (syscall (SYS_sched_setattr, thread, &wanted, 0) != 0)
    setpriority (PRIO_PROCESS, thread, nice);
#endif
}

static void
follow_volume (GstImagingView *self, guint n_slices)
{
  if (self->tap && n_slices == self->tap_slices)
    return;
  g_clear_object (&self->tap);
  gst_imaging_view_frame_clear (&self->frame);
  self->tap = gst_imaging_tap_new_for_slices (self->pad, n_slices);
  self->tap_slices = n_slices;
}

static void
give (GstImagingView *self, GBytes *message, GError *error)
{
  g_mutex_lock (&self->lock);
  self->message = message;
  g_clear_error (&self->error);
  self->error = error;
  if (message)
    self->n_allowed--;
  g_mutex_unlock (&self->lock);
  gst_imaging_wake_up (&self->ready);
}

static void
make_picture (GstImagingView *self)
{
  const gint64 begin = g_get_monotonic_time ();
  GstImagingViewSettings s;
  GError *error = NULL;
  GBytes *message = NULL;
  GstBuffer *jpeg;
  gint64 period, end;

  g_mutex_lock (&self->lock);
  s = self->settings;
  self->has_changed = FALSE;
  g_mutex_unlock (&self->lock);
  period = (gint64) (G_TIME_SPAN_SECOND / MAX (s.rate, 0.01));
  if (self->tap_slices == 0)
    s.place = 0;
  gst_imaging_view_picture_make (&self->picture, &self->frame, &s);
  jpeg =
      gst_imaging_jpeg_encode (&self->jpeg, &self->picture, s.quality, &error);
  if (jpeg)
    message = gst_imaging_view_message (self->id, self->serial++, self->time,
        &self->frame, &s, &self->picture, jpeg);
  gst_clear_buffer (&jpeg);
  end = g_get_monotonic_time ();
  /* Projections of volumes, histograms and ends of the range read all samples:
   * a third of a processor at most. */
  if (self->tap_slices > 0 || s.n_bins > 0 || s.clip == 0)
    period = MAX (period, 3 * (end - begin));
  self->due = MAX (self->due + period, begin);
  give (self, message, error);
}

static void
take_frame (GstImagingView *self, GstSample *sample)
{
  GError *error = NULL;
  gboolean ok = gst_imaging_view_frame_copy (
      &self->frame, sample, MAX (self->tap_slices, 1), &error);

  gst_sample_unref (sample); /* to its pool */
  if (ok) {
    make_picture (self);
    return;
  }
  self->due = g_get_monotonic_time () + G_TIME_SPAN_SECOND;
  give (self, NULL, error);
}

/* The sink keeps it anyway: a view that kept frames itself would take them from
 * their pools.
 * Returns: (transfer full) (nullable): the last frame of @pad, after its end,
 * where a sink is directly behind it */
static GstSample *
last_of_sink (GstPad *pad)
{
  g_autoptr (GstEvent) end = gst_pad_get_sticky_event (pad, GST_EVENT_EOS, 0);
  g_autoptr (GstPad) sink =
      GST_PAD_IS_SRC (pad) ? gst_pad_get_peer (pad) : gst_object_ref (pad);
  g_autoptr (GstObject) element = NULL;

  while (sink && GST_IS_GHOST_PAD (sink)) { /* of a bin with the sink */
    GstPad *target = gst_ghost_pad_get_target (GST_GHOST_PAD (sink));

    gst_object_unref (sink);
    sink = target;
  }
  element = sink ? gst_pad_get_parent (sink) : NULL;
  return end && GST_IS_BASE_SINK (element)
             ? gst_base_sink_get_last_sample (GST_BASE_SINK (element))
             : NULL;
}

/* Returns: (transfer full) (nullable): a frame that has passed before */
static GstSample *
take_shown (GstImagingView *self)
{
  GstSample *sample;

  g_mutex_lock (&self->lock);
  sample = g_steal_pointer (&self->shown);
  g_mutex_unlock (&self->lock);
  if (!sample)
    sample = last_of_sink (self->pad);
  if (sample)
    self->time = g_get_monotonic_time ();
  return sample;
}

/* Returns: the time until something is to be done, -1: when somebody asks */
static gint64
work (GstImagingView *self, gboolean may, gboolean has_changed)
{
  const gint64 now = g_get_monotonic_time ();
  GstSample *sample;

  if (!may) {
    sample = gst_imaging_tap_take (self->tap, NULL); /* to its pool */
    if (sample)
      gst_sample_unref (sample);
    return -1;
  }
  if (now < self->due)
    return self->due - now;
  if (self->requested == 0)
    self->requested = now;
  gst_imaging_tap_request (self->tap);
  sample = gst_imaging_tap_take (self->tap, &self->time);
  if (!sample && !self->frame.samples)
    sample = take_shown (self);
  if (!sample && has_changed && self->frame.samples) {
    if (now - self->requested < PATIENCE)
      return self->requested + PATIENCE - now;
    make_picture (self); /* of the last frame: no other comes */
    self->requested = 0;
    return 0;
  }
  if (!sample)
    return -1;
  self->requested = 0;
  take_frame (self, sample);
  return 0;
}

static gpointer
run (gpointer data)
{
  GstImagingView *self = data;

  lower_priority ();
  for (;;) {
    gboolean is_closing, may, has_changed;
    guint n_slices;
    gint64 wait;

    gst_imaging_wake_drain (&self->news);
    g_mutex_lock (&self->lock);
    is_closing = self->is_closing;
    n_slices = self->settings.n_slices;
    may = self->settings.rate > 0 && self->n_allowed > 0 && !self->message;
    has_changed = self->has_changed;
    g_mutex_unlock (&self->lock);
    if (is_closing)
      return NULL;
    follow_volume (self, n_slices);
    wait = work (self, may, has_changed);
    if (wait != 0)
      gst_imaging_wake_wait_for_two (&self->news,
          gst_imaging_tap_get_fd (self->tap),
          wait < 0 ? -1 : (gint) (wait / 1000 + 1));
  }
}

/* --- for its owner -------------------------------------------------------- */

GstImagingView *
gst_imaging_view_new (GstPad *pad, guint id)
{
  GstImagingView *self = g_object_new (GST_TYPE_IMAGING_VIEW, NULL);

  self->pad = gst_object_ref (pad);
  self->id = id;
  self->thread = g_thread_new ("imaging-view", run, self);
  return self;
}

gint
gst_imaging_view_get_fd (GstImagingView *self)
{
  return self->ready.fds[0];
}

static void
end_change (GstImagingView *self)
{
  g_mutex_unlock (&self->lock);
  gst_imaging_wake_up (&self->news);
}

gboolean
gst_imaging_view_set (GstImagingView *self,
    const GstImagingViewSettings *settings, GError **error)
{
  if (!gst_imaging_view_settings_check (settings, error))
    return FALSE;
  g_mutex_lock (&self->lock);
  self->settings = *settings;
  self->has_changed = TRUE;
  end_change (self);
  return TRUE;
}

void
gst_imaging_view_allow (GstImagingView *self, guint n)
{
  g_mutex_lock (&self->lock);
  self->n_allowed += n;
  end_change (self);
}

void
gst_imaging_view_show (GstImagingView *self, GstSample *sample)
{
  g_autoptr (GstSample) before = NULL;

  g_mutex_lock (&self->lock);
  before = self->shown;
  self->shown = gst_sample_ref (sample);
  end_change (self);
}

GBytes *
gst_imaging_view_take (GstImagingView *self, GError **error)
{
  GBytes *message;

  gst_imaging_wake_drain (&self->ready);
  g_mutex_lock (&self->lock);
  message = g_steal_pointer (&self->message);
  if (!message && self->error)
    g_propagate_error (error, g_steal_pointer (&self->error));
  g_clear_error (&self->error);
  end_change (self);
  return message;
}

void
gst_imaging_view_close (GstImagingView *self)
{
  if (!self->thread)
    return;
  g_mutex_lock (&self->lock);
  self->is_closing = TRUE;
  end_change (self);
  g_thread_join (g_steal_pointer (&self->thread));
  g_clear_object (&self->tap);
  gst_clear_object (&self->pad);
  gst_imaging_view_frame_clear (&self->frame);
  gst_imaging_view_picture_clear (&self->picture);
  gst_imaging_jpeg_clear (&self->jpeg);
}

static void
gst_imaging_view_finalize (GObject *object)
{
  GstImagingView *self = GST_IMAGING_VIEW (object);

  gst_imaging_view_close (self);
  g_clear_pointer (&self->message, g_bytes_unref);
  g_clear_pointer (&self->shown, gst_sample_unref);
  g_clear_error (&self->error);
  gst_imaging_wake_clear (&self->news);
  gst_imaging_wake_clear (&self->ready);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gst_imaging_view_parent_class)->finalize (object);
}

static void
gst_imaging_view_class_init (GstImagingViewClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_imaging_view_finalize;
  /* threads of several views make and free taps */
  g_type_class_ref (GST_TYPE_IMAGING_TAP);
}

static void
gst_imaging_view_init (GstImagingView *self)
{
  g_mutex_init (&self->lock);
  gst_imaging_wake_init (&self->news);
  gst_imaging_wake_init (&self->ready);
  gst_imaging_view_settings_init (&self->settings);
}
