/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a receiver that sleeps costs, and one that does not: from the write of a
 * frame into shared memory, 1000 a second, to the commands behind shmimsrc,
 * shcentroid and shreconstruct in their own thread.
 * AO_LATENCY_PROPERTIES: further properties of shreconstruct */
#include <stdio.h>

#include "bench-element.h"

enum { SIZE = 49, PERIOD = 1000 /* us */, N_FRAMES = 10000, N_TURN = 100 };

typedef struct Receiver {
  const char *name, *settings;
  GstElement *writer, *reader;
  GstPad *camera;
  double *samples;
  gint n_done; /* atomic */
} Receiver;

static GstPadProbeReturn
on_commands (GstPad *pad, GstPadProbeInfo *info, gpointer receiver)
{
  g_atomic_int_inc (&((Receiver *) receiver)->n_done);
  return GST_PAD_PROBE_OK;
}

static GstElement *
parse (const gchar *line)
{
  GError *error = NULL;
  GstElement *element = gst_parse_launch (line, &error);

  if (error)
    bench_fail ("%s", error->message);
  return element;
}

static void
open_receiver (Receiver *r, const gchar *folder)
{
  const gchar *more = g_getenv ("AO_LATENCY_PROPERTIES");
  GstCaps *caps = gst_caps_from_string (
      "video/x-raw,format=GRAY8,width=49,height=49,framerate=1000/1");
  g_autofree gchar *write =
      g_strdup_printf ("shmimsink stream=%s folder=%s", r->name, folder);
  g_autofree gchar *read = g_strdup_printf (
      "shmimsrc stream=%s folder=%s timeout=0 end-policy=wait %s ! "
      "shcentroid backend=cpu n-threads=1 columns=7 rows=7 pitch-x=7 pitch-y=7 "
      "fields=slopes ! shreconstruct n-threads=1 commands=97 %s ! "
      "fakesink name=mirror sync=false",
      r->name, folder, r->settings, more ? more : "");
  GstElement *mirror;
  GstPad *pad;

  r->writer = gst_object_ref_sink (parse (write));
  r->camera = gst_pad_new ("camera", GST_PAD_SRC);
  gst_pad_set_active (r->camera, TRUE);
  pad = gst_element_get_static_pad (r->writer, "sink");
  bench_link (r->camera, pad);
  gst_object_unref (pad);
  bench_play (r->writer, r->camera, caps);
  gst_caps_unref (caps);
  r->reader = parse (read);
  mirror = gst_bin_get_by_name (GST_BIN (r->reader), "mirror");
  pad = gst_element_get_static_pad (mirror, "sink");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, on_commands, r, NULL);
  gst_object_unref (pad);
  gst_object_unref (mirror);
  gst_element_set_state (r->reader, GST_STATE_PLAYING);
}

/* The sink leaves its stream. */
static void
remove_stream (const Receiver *r, const gchar *folder)
{
  g_autofree gchar *path = g_strdup_printf ("%s/%s.im.shm", folder, r->name);

  remove (path);
}

static void
close_receiver (Receiver *r)
{
  gst_element_set_state (r->reader, GST_STATE_NULL);
  gst_element_set_state (r->writer, GST_STATE_NULL);
  gst_object_unref (r->reader);
  gst_object_unref (r->writer);
  gst_object_unref (r->camera);
}

/* Returns: us from the write to the commands; -1 without commands for a second:
 * the first frames are before the reader is there */
static double
time_frame (Receiver *r, guint i)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, 52 * SIZE, NULL);
  const gint before = g_atomic_int_get (&r->n_done);
  double start;

  gst_buffer_memset (buffer, 0, (guint8) i, 52 * SIZE);
  g_usleep (PERIOD);
  start = bench_now ();
  if (gst_pad_push (r->camera, buffer) != GST_FLOW_OK)
    bench_fail ("a frame was refused.");
  while (g_atomic_int_get (&r->n_done) == before)
    if (bench_now () - start > 1e6)
      return -1;
  return bench_now () - start;
}

int
main (int argc, char **argv)
{
  Receiver receivers[] = {
      {"sleep", "spin=0"},
      {"spin", "spin=2000"},
  };
  gchar *folder = g_dir_make_tmp ("ao-receive-XXXXXX", NULL);
  guint n;

  bench_open (argc, argv, "ao-receive");
  n = bench_is_quick () ? N_FRAMES / 10 : N_FRAMES;
  gst_init (NULL, NULL);
  for (guint k = 0; k < G_N_ELEMENTS (receivers); k++) {
    receivers[k].samples = g_new (double, n);
    open_receiver (&receivers[k], folder);
    for (guint i = 0; time_frame (&receivers[k], i) < 0; i++)
      if (i == 10)
        bench_fail ("no commands come.");
  }
  for (guint first = 0; first < n; first += N_TURN)
    for (guint k = 0; k < G_N_ELEMENTS (receivers); k++)
      for (guint i = first; i < MIN (first + N_TURN, n); i++)
        receivers[k].samples[i] = time_frame (&receivers[k], i);
  for (guint k = 0; k < G_N_ELEMENTS (receivers); k++) {
    double *s = receivers[k].samples;

    bench_samples ("49x49-shared-memory", "cpu", receivers[k].name, s, n);
    g_print ("  %s: p50 %.1f, p99 %.1f, p99.9 %.1f, max %.1f us\n",
        receivers[k].name, s[n / 2], s[n - n / 100 - 1], s[n - n / 1000 - 1],
        s[n - 1]);
    close_receiver (&receivers[k]);
    remove_stream (&receivers[k], folder);
    g_free (s);
  }
  remove (folder);
  g_free (folder);
  return bench_close ();
}
