/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The only device fails when a setting is changed that needs a new kernel. With
 * backend=auto the CPU takes over with a warning, and the stream continues. */
#include "streams.h"

#define SLC "application/x-slc,format=ci16,width=400,height=400"

typedef struct {
  StreamsCase stream; /* large enough that auto selects CUDA */
  const gchar *property, *value;
} Case;

static const Case cases[] = {
    {{"octbscan taper-cut=7 upsample=128",
         {{"sink",
             "video/x-raw,format=GRAY16_LE,width=60,height=16,framerate=25/1",
             60 * 16 * 2}},
         3, {"src"}},
        "upsample", "256"},
    {{"photostereo lights-location=$/lights.lp",
         {{"sink",
             "video/x-raw,format=GRAY8,width=520,height=520,framerate=25/1",
             520 * 520}},
         3, {"normal"}},
        "y-axis", "down"},
    {{"photostereo lights-location=$/lights.lp",
         {{"sink",
             "video/x-raw,format=GRAY8,width=520,height=520,framerate=25/1",
             520 * 520}},
         3, {"normal"}},
        "bit-depth", "8"},
    {{"insarxcorr nx=32 ny=16 xsearch=64 ysearch=64",
         {{"reference", SLC, 4 * 400 * 400}, {"secondary", SLC, 4 * 400 * 400}},
         1, {"src"}, TRUE},
        "nx", "31"},
};

static void
send_segment (Streams *s, guint sink)
{
  GstSegment segment;

  gst_segment_init (
      &segment, s->c->is_lines ? GST_FORMAT_DEFAULT : GST_FORMAT_TIME);
  gst_pad_push_event (s->sinks[sink], gst_event_new_segment (&segment));
}

/* @begins: the first time; later ones follow a flush */
static void
feed (Streams *s, guint sink, gpointer begins)
{
  if (begins) {
    gst_pad_push_event (s->sinks[sink], gst_event_new_stream_start ("device"));
    streams_send_caps (s, sink);
  }
  send_segment (s, sink);
  for (guint i = 0; i < s->c->n; i++)
    streams_push (s, sink, streams_buffer (s, sink, i));
  gst_pad_push_event (s->sinks[sink], gst_event_new_eos ());
}

static void
flush (Streams *s)
{
  guint32 seqnum = gst_util_seqnum_next ();

  for (guint i = 0; i < s->n_sinks; i++)
    streams_send (s, i, gst_event_new_flush_start (), seqnum);
  for (guint i = 0; i < s->n_sinks; i++)
    streams_send (s, i, gst_event_new_flush_stop (TRUE), seqnum);
}

static guint
n_buffers (Streams *s)
{
  guint n = 0;

  for (guint i = 0; i < s->received[0]->len; i++)
    n += GST_IS_BUFFER (s->received[0]->pdata[i]);
  return n;
}

static void
check_backend (Streams *s, const gchar *expected)
{
  g_autofree gchar *backend = NULL;

  g_object_get (s->element, "active-backend", &backend, NULL);
  fail_unless (g_strcmp0 (backend, expected) == 0, "%s: active-backend is %s",
      s->c->launch, backend);
}

CHECK_CASE ("all", streams_setup, check_remove_folder)

CHECK_LOOP_TEST (
    test_the_cpu_takes_over, check_is_mock () ? G_N_ELEMENTS (cases) : 0)
{
  const Case *c = &cases[__i__];
  Streams *s = streams_new (&c->stream);
  guint n;

  if (!s)
    return;
  streams_feed (s, feed, s);
  streams_wait (s, 0, GST_EVENT_EOS);
  n = n_buffers (s);
  fail_unless (n > 0);
  check_backend (s, "cuda");
  check_no_messages (s->bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);

  check_lose_device (0);
  gst_util_set_object_arg (G_OBJECT (s->element), c->property, c->value);
  flush (s);
  streams_clear (s);
  streams_feed (s, feed, NULL);
  streams_wait (s, 0, GST_EVENT_EOS);
  fail_unless_equals_int (n_buffers (s), n);
  check_backend (s, "cpu");
  check_warning (s->bus, LIBRARY, FAILED,
      "CUDA cannot be used any more, the CPU goes on.");
  check_no_messages (s->bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
  check_lose_device (-1);
  streams_free (s);
  fail_unless_equals_int (check_n_live (), 0);
}
