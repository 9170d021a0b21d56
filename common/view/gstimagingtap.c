/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingtap.h"

#include <gst/app/gstappsrc.h>

#include "gstimagingwake.h"

/* What the streaming thread and the owner share. The probe holds a reference,
 * so that the owner does not wait for a frame that is passing. */
typedef struct {
  gint n_refs;   /* atomic */
  gpointer slot; /* atomic: NULL, &wanted, or a GstSample */
  gint64 time;   /* of the sample in the slot; written before it */
  GstImagingWake wake;
  guint64 n_frames, n_recorded, n_lost; /* atomic */

  guint n_slices; /* 0: any frame will do */
  /* the probe's alone */
  gint *seen; /* the round in which a slice was taken */
  gint round;
  guint n_unseen; /* of this round */

  GMutex lock; /* of the next ones; held for a pointer alone */
  GstAppSrc *source;
  GstCaps *caps; /* that source has got */
  guint64 max_bytes, max_frames;
  gint keeps;      /* atomic; written under the lock */
  GstSample *kept; /* the newest frame */
} State;

struct _GstImagingTap {
  GObject parent;

  GstPad *pad;
  gulong probe;
  State *state;
};

G_DEFINE_FINAL_TYPE (GstImagingTap, gst_imaging_tap, G_TYPE_OBJECT)

static gint wanted; /* its address */

static void
count (guint64 *n)
{
  __atomic_add_fetch (n, 1, __ATOMIC_RELAXED);
}

static guint64
counted (const guint64 *n)
{
  return __atomic_load_n (n, __ATOMIC_RELAXED);
}

/* --- in the streaming thread ---------------------------------------------- */

/* The one that the frame has, else how many frames have passed before it */
static guint64
number_of (State *s, GstBuffer *buffer)
{
  return GST_BUFFER_OFFSET_IS_VALID (buffer) ? GST_BUFFER_OFFSET (buffer)
                                             : counted (&s->n_frames);
}

/* Returns: whether the slice of @buffer is one of this round's; takes it */
static gboolean
take_slice (State *s, GstBuffer *buffer)
{
  const guint64 number = number_of (s, buffer);
  gint *seen = &s->seen[number % s->n_slices];

  if (*seen == s->round)
    return FALSE;
  *seen = s->round;
  if (--s->n_unseen == 0) {
    s->n_unseen = s->n_slices;
    s->round++;
  }
  return TRUE;
}

static void
answer_request (State *s, GstPad *pad, GstBuffer *buffer)
{
  g_autoptr (GstCaps) caps = NULL;
  GstSample *sample;

  if (g_atomic_pointer_get (&s->slot) != &wanted ||
      (s->n_slices > 0 && !take_slice (s, buffer)))
    return;
  caps = gst_pad_get_current_caps (pad);
  sample = gst_sample_new (buffer, caps, NULL,
      s->n_slices > 0 ? gst_structure_new ("imaging-view-number", "number",
                            G_TYPE_UINT64, number_of (s, buffer), NULL)
                      : NULL);
  s->time = g_get_monotonic_time ();
  if (g_atomic_pointer_compare_and_exchange (&s->slot, &wanted, sample))
    gst_imaging_wake_up (&s->wake);
  else /* closed meanwhile */
    gst_sample_unref (sample);
}

static void
record (State *s, GstPad *pad, GstBuffer *buffer)
{
  g_autoptr (GstAppSrc) source = NULL;
  g_autoptr (GstCaps) caps = NULL;

  if (!g_atomic_pointer_get (&s->source))
    return;
  g_mutex_lock (&s->lock);
  if (s->max_frames > 0 && counted (&s->n_recorded) >= s->max_frames)
    ; /* all are there */
  else if (s->source && gst_app_src_get_current_level_bytes (s->source) +
                                gst_buffer_get_size (buffer) >
                            s->max_bytes)
    count (&s->n_lost);
  else if (s->source) {
    source = gst_object_ref (s->source);
    caps = gst_pad_get_current_caps (pad);
    if (caps == s->caps)
      gst_clear_caps (&caps);
    else
      gst_caps_replace (&s->caps, caps);
    count (&s->n_recorded);
  }
  g_mutex_unlock (&s->lock);
  if (!source)
    return;
  if (caps)
    gst_app_src_set_caps (source, caps);
  gst_app_src_push_buffer (source, gst_buffer_ref (buffer));
}

static void
keep (State *s, GstPad *pad, GstBuffer *buffer)
{
  g_autoptr (GstCaps) caps = NULL;
  g_autoptr (GstSample) sample = NULL;

  if (!g_atomic_int_get (&s->keeps))
    return;
  caps = gst_pad_get_current_caps (pad);
  sample = gst_sample_new (buffer, caps, NULL, NULL);
  GST_IMAGING_HOLD (&s->lock);
  if (s->keeps) {
    GstSample *before = s->kept;

    s->kept = sample;
    sample = before;
  }
}

static void
on_frame (State *s, GstPad *pad, GstBuffer *buffer)
{
  keep (s, pad, buffer);
  answer_request (s, pad, buffer);
  record (s, pad, buffer);
  count (&s->n_frames);
}

static GstPadProbeReturn
on_probe (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  State *s = data;
  GstBufferList *list;

  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    if (GST_PAD_PROBE_INFO_BUFFER (info))
      on_frame (s, pad, GST_PAD_PROBE_INFO_BUFFER (info));
    return GST_PAD_PROBE_OK;
  }
  list = GST_PAD_PROBE_INFO_BUFFER_LIST (info);
  for (guint i = 0; list && i < gst_buffer_list_length (list); i++)
    on_frame (s, pad, gst_buffer_list_get (list, i));
  return GST_PAD_PROBE_OK;
}

/* --- for the owner -------------------------------------------------------- */

static void
state_unref (gpointer data)
{
  State *s = data;

  if (!g_atomic_int_dec_and_test (&s->n_refs))
    return;
  if (s->slot && s->slot != &wanted)
    gst_sample_unref (s->slot);
  gst_clear_object (&s->source);
  gst_clear_caps (&s->caps);
  g_clear_pointer (&s->kept, gst_sample_unref);
  gst_imaging_wake_clear (&s->wake);
  g_mutex_clear (&s->lock);
  g_free (s->seen);
  g_free (s);
}

GstImagingTap *
gst_imaging_tap_new_for_slices (GstPad *pad, guint n)
{
  GstImagingTap *self = g_object_new (GST_TYPE_IMAGING_TAP, NULL);
  State *s = self->state;

  s->n_slices = s->n_unseen = n;
  s->seen = g_new0 (gint, n);
  s->round = 1;
  self->pad = gst_object_ref (pad);
  g_atomic_int_inc (&s->n_refs); /* of the probe */
  self->probe = gst_pad_add_probe (pad,
      GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST, on_probe, s,
      state_unref);
  return self;
}

GstImagingTap *
gst_imaging_tap_new (GstPad *pad)
{
  return gst_imaging_tap_new_for_slices (pad, 0);
}

gint
gst_imaging_tap_get_fd (GstImagingTap *self)
{
  return self->state->wake.fds[0];
}

void
gst_imaging_tap_request (GstImagingTap *self)
{
  g_atomic_pointer_compare_and_exchange (&self->state->slot, NULL, &wanted);
}

GstSample *
gst_imaging_tap_take (GstImagingTap *self, gint64 *time)
{
  State *s = self->state;
  gpointer found;

  gst_imaging_wake_drain (&s->wake); /* first: one that comes now wakes again */
  found = g_atomic_pointer_get (&s->slot);
  if (!found || found == &wanted)
    return NULL;
  if (time)
    *time = s->time;
  g_atomic_pointer_set (&s->slot, NULL);
  return found;
}

guint64
gst_imaging_tap_get_n_frames (GstImagingTap *self)
{
  return counted (&self->state->n_frames);
}

void
gst_imaging_tap_record (GstImagingTap *self, GstElement *source,
    guint64 max_bytes, guint64 max_frames)
{
  State *s = self->state;
  g_autoptr (GstAppSrc) before = NULL;

  GST_IMAGING_HOLD (&s->lock);
  before = s->source;
  g_atomic_pointer_set (
      &s->source, source ? gst_object_ref (GST_APP_SRC (source)) : NULL);
  s->max_bytes = max_bytes;
  s->max_frames = max_frames;
  gst_caps_replace (&s->caps, NULL);
}

guint64
gst_imaging_tap_get_n_recorded (GstImagingTap *self)
{
  return counted (&self->state->n_recorded);
}

guint64
gst_imaging_tap_get_n_lost (GstImagingTap *self)
{
  return counted (&self->state->n_lost);
}

void
gst_imaging_tap_keep (GstImagingTap *self, gboolean keep)
{
  State *s = self->state;
  g_autoptr (GstSample) before = NULL;

  GST_IMAGING_HOLD (&s->lock);
  g_atomic_int_set (&s->keeps, keep);
  if (!keep)
    before = g_steal_pointer (&s->kept);
}

GstSample *
gst_imaging_tap_get_kept (GstImagingTap *self)
{
  State *s = self->state;

  GST_IMAGING_HOLD (&s->lock);
  return s->kept ? gst_sample_ref (s->kept) : NULL;
}

#define FOLLOWED "gst-imaging-followed-pad"

void
gst_imaging_tap_follow (GstPad *sink, GstPad *pad)
{
  GstPad *source =
      GST_PAD_IS_SRC (pad) ? gst_object_ref (pad) : gst_pad_get_peer (pad);

  g_object_set_data_full (
      G_OBJECT (sink), FOLLOWED, source, source ? gst_object_unref : NULL);
}

GstPad *
gst_imaging_tap_get_followed (GstPad *sink)
{
  GstPad *pad = g_object_get_data (G_OBJECT (sink), FOLLOWED);

  return pad ? gst_object_ref (pad) : NULL;
}

void
gst_imaging_tap_close (GstImagingTap *self)
{
  gpointer found;

  if (self->probe)
    gst_pad_remove_probe (self->pad, self->probe);
  self->probe = 0;
  gst_clear_object (&self->pad);
  gst_imaging_tap_record (self, NULL, 0, 0);
  gst_imaging_tap_keep (self, FALSE);
  found = g_atomic_pointer_get (&self->state->slot);
  while (found && !g_atomic_pointer_compare_and_exchange (
                      &self->state->slot, found, NULL))
    found = g_atomic_pointer_get (&self->state->slot);
  if (found && found != &wanted)
    gst_sample_unref (found);
}

static void
gst_imaging_tap_finalize (GObject *object)
{
  GstImagingTap *self = GST_IMAGING_TAP (object);

  gst_imaging_tap_close (self);
  state_unref (self->state);
  G_OBJECT_CLASS (gst_imaging_tap_parent_class)->finalize (object);
}

static void
gst_imaging_tap_class_init (GstImagingTapClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_imaging_tap_finalize;
}

static void
gst_imaging_tap_init (GstImagingTap *self)
{
  self->state = g_new0 (State, 1);
  self->state->n_refs = 1;
  g_mutex_init (&self->state->lock);
  gst_imaging_wake_init (&self->state->wake);
}
