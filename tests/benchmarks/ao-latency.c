/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From frame to commands: from gst_pad_push () of a frame into shcentroid to
 * the return of the function that takes the commands behind shreconstruct.
 * Beside it two identities with the same metadata, the same kernels in a bare
 * loop, a copy of the frame, one read of the control matrix, and the peers of
 * ao-latency-peers.py.
 * AO_LATENCY_PEERS: the command that runs them, an interpreter and the script
 * AO_LATENCY_PROPERTIES: further properties of shreconstruct */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "imk/shcentroid.h"
#include "imk/shreconstruct.h"

#include "bench-element.h"
#include "plain-loop.h"

/* Of peers, which may take a hundred times as long, one turn of so many. */
enum { MAX_PEERS = 8, PEER_SHARE = 10 };

/* @cells: along an axis. @n_turn: frames of one entry before the next; its
 * first frame finds a cold cache, and shall not be one of a hundred. */
typedef struct Case {
  const char *name;
  guint size, cells, pitch, commands, n_frames, n_turn, n_threads;
} Case;

static const Case cases[] = {
    {"49x49-to-97", 49, 7, 7, 97, 100000, 1000, 1},
    {"256x256-to-1000", 256, 32, 8, 1000, 100000, 1000, 1},
    {"700x700-to-4000", 700, 70, 10, 4000, 2000, 100, 1},
    {"700x700-to-4000-threads", 700, 70, 10, 4000, 2000, 100, 0},
};

typedef struct Loop {
  const Case *c;
  BenchRing frames;
  float *matrix, *slopes, *commands;
  ImkShcentroid *centroid;
  ImkShreconstruct *reconstruct;
  ImkImage in, out;
  double returned; /* us: when the commands of the frame had been taken */
  guint8 *copy;
  guint32 sum;
  FILE *ask, *answer;          /* NULL without peers */
  BenchBetween between, plain; /* our elements; identities */
  GstBuffer *made;             /* a frame's commands, with all metadata */
  gchar *location;
} Loop;

/* --- the pipeline --------------------------------------------------------- */

static GstFlowReturn
on_commands (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Loop *l = g_object_get_data (G_OBJECT (pad), "bench");

  if (!l->made)
    l->made = gst_buffer_ref (buffer);
  gst_buffer_unref (buffer);
  l->returned = bench_now ();
  return GST_FLOW_OK;
}

/* As a .npy file, version 1.0. */
static void
write_matrix (Loop *l)
{
  const guint n = 2 * l->c->cells * l->c->cells;
  gchar *header = g_strdup_printf (
      "{'descr': '<f4', 'fortran_order': False, 'shape': (%u, %u), }",
      l->c->commands, n);
  guint8 prefix[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
  gint fd = g_file_open_tmp ("ao-latency-XXXXXX.npy", &l->location, NULL);
  FILE *file = fd < 0 ? NULL : fdopen (fd, "wb");

  if (!file)
    bench_fail ("%s cannot be written to.", g_get_tmp_dir ());
  fwrite (prefix, 1, sizeof (prefix), file);
  fprintf (file, "%-117s\n", header);
  fwrite (l->matrix, sizeof (float), (gsize) n * l->c->commands, file);
  fclose (file);
  g_free (header);
}

/* --- two identities ------------------------------------------------------- */

static gboolean
set_field (GQuark name, const GValue *value, gpointer to)
{
  gst_structure_id_set_value (to, name, value);
  return TRUE;
}

/* The first @n structures that our elements attach. */
static void
attach (GstBuffer *made, guint n, GstBuffer *to)
{
  gpointer state = NULL;
  GstMeta *meta;

  while (n > 0 && (meta = gst_buffer_iterate_meta (made, &state))) {
    const GstStructure *from;

    if (!gst_meta_info_is_custom (meta->info))
      continue;
    from = gst_custom_meta_get_structure ((GstCustomMeta *) meta);
    gst_structure_foreach (from, set_field,
        gst_custom_meta_get_structure (
            gst_buffer_add_custom_meta (to, gst_structure_get_name (from))));
    n--;
  }
}

/* As behind shcentroid. */
static GstPadProbeReturn
attach_slopes (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Loop *l = data;
  GstBuffer *out = gst_buffer_make_writable (GST_PAD_PROBE_INFO_BUFFER (info));

  attach (l->made, 1, out);
  GST_PAD_PROBE_INFO_DATA (info) = out;
  return GST_PAD_PROBE_OK;
}

/* As behind shreconstruct: a buffer for each frame, with its metadata too. */
static GstPadProbeReturn
attach_commands (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Loop *l = data;
  GstBuffer *out =
      gst_buffer_new_allocate (NULL, l->c->commands * sizeof (float), NULL);

  attach (l->made, G_MAXUINT, out);
  gst_buffer_unref (GST_PAD_PROBE_INFO_BUFFER (info));
  GST_PAD_PROBE_INFO_DATA (info) = out;
  return GST_PAD_PROBE_OK;
}

static void
probe (Loop *l, const char *name, GstPadProbeCallback callback)
{
  GstElement *element = gst_bin_get_by_name (GST_BIN (l->plain.bin), name);
  GstPad *src = gst_element_get_static_pad (element, "src");

  gst_pad_add_probe (src, GST_PAD_PROBE_TYPE_BUFFER, callback, l, NULL);
  gst_object_unref (src);
  gst_object_unref (element);
}

static void
open_plain (Loop *l, GstCaps *caps)
{
  bench_between_open (&l->plain,
      "identity name=first silent=true ! identity name=last silent=true", caps,
      on_commands, l);
  probe (l, "first", attach_slopes);
  probe (l, "last", attach_commands);
}

/* --- our elements --------------------------------------------------------- */

static void
open_pipeline (Loop *l)
{
  const Case *c = l->c;
  const gchar *more = g_getenv ("AO_LATENCY_PROPERTIES");
  gchar *line = g_strdup_printf (
      "shcentroid name=first backend=cpu n-threads=%u columns=%u rows=%u "
      "pitch-x=%u pitch-y=%u fields=slopes ! shreconstruct name=last "
      "n-threads=%u gain=0.001 matrix-location=%s %s",
      c->n_threads, c->cells, c->cells, c->pitch, c->pitch, c->n_threads,
      l->location, more ? more : "");
  gchar *text = g_strdup_printf ("video/x-raw,format=GRAY8,width=%u,height=%u,"
                                 "framerate=1000/1",
      c->size, c->size);
  GstCaps *caps = gst_caps_from_string (text);

  bench_between_open (&l->between, line, caps, on_commands, l);
  open_plain (l, caps);
  gst_caps_unref (caps);
  g_free (text);
  g_free (line);
}

/* --- the bare loop -------------------------------------------------------- */

static void
open_kernels (Loop *l)
{
  const Case *c = l->c;
  const guint n = c->cells * c->cells;
  ImkShcentroidConfig config;
  ImkShreconstructConfig r;
  ImkError error;

  imk_shcentroid_config_init (&config);
  config.width = config.height = c->size;
  config.columns = config.rows = c->cells;
  config.pitch_x = config.pitch_y = c->pitch;
  config.fields = IMK_SHCENTROID_FIELDS_SLOPES;
  config.n_threads = c->n_threads;
  bench_ok (imk_shcentroid_new (IMK_BACKEND_CPU, &config, &l->centroid, &error),
      &error);
  imk_shreconstruct_config_init (&r);
  r.n_cells = n;
  r.n_modes = r.n_commands = c->commands;
  r.matrix = l->matrix;
  r.gain = 0.001;
  r.n_threads = c->n_threads;
  bench_ok (
      imk_shreconstruct_new (IMK_BACKEND_CPU, &r, &l->reconstruct, &error),
      &error);
  l->in = (ImkImage){.width = c->size, .height = c->size, .channels = 1};
  l->in.type = IMK_TYPE_U8;
  l->in.stride = (c->size + 3) / 4 * 4;
  l->out = (ImkImage){.width = 2 * n, .height = 1, .channels = 1};
  l->out.type = IMK_TYPE_F32;
  l->out.stride = 2 * n * sizeof (float);
  l->out.data = l->slopes;
}

/* --- one frame of each ---------------------------------------------------- */

static double
time_between (Loop *l, BenchBetween *between, guint i)
{
  GstBuffer *buffer = gst_buffer_new_wrapped_full (GST_MEMORY_FLAG_READONLY,
      bench_ring_at (&l->frames, i), l->frames.size, 0, l->frames.size, NULL,
      NULL);
  double start;

  GST_BUFFER_OFFSET (buffer) = i;
  start = bench_now ();
  if (gst_pad_push (between->camera, buffer) != GST_FLOW_OK)
    bench_fail ("a frame was refused.");
  return l->returned - start;
}

static double
time_pipeline (Loop *l, guint i)
{
  return time_between (l, &l->between, i);
}

static double
time_identities (Loop *l, guint i)
{
  return time_between (l, &l->plain, i);
}

static double
time_kernels (Loop *l, guint i)
{
  double start = bench_now ();
  ImkError error;

  l->in.data = bench_ring_at (&l->frames, i);
  bench_ok (imk_shcentroid_process (l->centroid, &l->in, &l->out, NULL, &error),
      &error);
  bench_ok (imk_shreconstruct_process (
                l->reconstruct, &l->out, NULL, l->commands, NULL, NULL, &error),
      &error);
  return bench_now () - start;
}

static double
time_copy (Loop *l, guint i)
{
  double start = bench_now ();

  memcpy (l->copy, bench_ring_at (&l->frames, i), l->frames.size);
  return bench_now () - start;
}

static double
time_matrix (Loop *l, guint i)
{
  const guint32 *words = (const guint32 *) (gpointer) l->matrix;
  const gsize n = (gsize) l->c->commands * 2 * l->c->cells * l->c->cells;
  double start = bench_now ();

  l->sum += plain_sum (words, n); /* so that it cannot be left out */
  return bench_now () - start;
}

/* --- the peers ------------------------------------------------------------ */

/* Returns: (transfer full): the names of the peers that there are */
static gchar **
open_peers (Loop *l)
{
  const gchar *command = g_getenv ("AO_LATENCY_PEERS");
  const Case *c = l->c;
  gchar line[256] = "", *whole, **argv = NULL;
  gint in = -1, out = -1;
  GError *error = NULL;

  if (!command) {
    g_print ("  no peers: AO_LATENCY_PEERS is not set\n");
    return g_new0 (gchar *, 1);
  }
  whole = g_strdup_printf ("%s %u %u %u %u %s", command, c->size, c->cells,
      c->pitch, c->commands, l->location);
  if (!g_shell_parse_argv (whole, NULL, &argv, &error) ||
      !g_spawn_async_with_pipes (NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL,
          NULL, NULL, &in, &out, NULL, &error))
    bench_fail ("%s", error->message);
  g_strfreev (argv);
  g_free (whole);
  l->ask = fdopen (in, "w");
  l->answer = fdopen (out, "r");
  if (!fgets (line, sizeof (line), l->answer))
    bench_fail ("the peers ended.");
  return g_strsplit (g_strchomp (line), " ", MAX_PEERS);
}

/* @samples: (out): of @n frames */
static void
time_peer (Loop *l, const gchar *who, double *samples, guint n)
{
  fprintf (l->ask, "%s %u\n", who, n);
  fflush (l->ask);
  if (fread (samples, sizeof (*samples), n, l->answer) != n)
    bench_fail ("the peers ended.");
}

static void
close_peers (Loop *l)
{
  if (!l->ask)
    return;
  fclose (l->ask); /* they end */
  fclose (l->answer);
}

/* --- one case ------------------------------------------------------------- */

typedef struct Entry {
  const gchar *name;
  double (*time) (Loop *l, guint i); /* NULL: a peer */
  double *samples;
  guint n; /* samples so far */
} Entry;

static void
time_turn (Loop *l, Entry *e, guint first, guint end)
{
  double *samples = e->samples + e->n;
  guint n = end - first;

  if (!e->time && first / l->c->n_turn % PEER_SHARE != 0)
    return;
  if (!e->time)
    time_peer (l, e->name, samples, n);
  for (guint i = 0; i < n && e->time; i++)
    samples[i] = e->time (l, first + i);
  e->n += n;
}

static void
report (const Loop *l, const Entry *e)
{
  double *s = e->samples;
  guint n = e->n;

  bench_samples (l->c->name, "cpu", e->name, s, n); /* sorts them */
  g_print ("  %s %s: p50 %.1f, p99 %.1f, p99.9 %.1f, max %.1f us\n", l->c->name,
      e->name, s[n / 2], s[n - n / 100 - 1], s[n - n / 1000 - 1], s[n - 1]);
}

static void
time_entries (Loop *l, Entry *entries, guint n_entries)
{
  const Case *c = l->c;
  const guint n = bench_is_quick () ? c->n_frames / 10 : c->n_frames;

  for (guint k = 0; k < n_entries; k++) {
    entries[k].samples = g_new (double, n);
    time_turn (l, &entries[k], 0, c->n_turn); /* warms it up */
    entries[k].n = 0;
  }
  for (guint first = 0; first < n; first += c->n_turn)
    for (guint k = 0; k < n_entries; k++)
      time_turn (l, &entries[k], first, MIN (first + c->n_turn, n));
  for (guint k = 0; k < n_entries; k++) {
    report (l, &entries[k]);
    g_free (entries[k].samples);
  }
}

static void
open_loop (Loop *l)
{
  const Case *c = l->c;
  const guint n_slopes = 2 * c->cells * c->cells;

  l->frames = bench_ring_new ((gsize) (c->size + 3) / 4 * 4 * c->size, 1 << 20);
  bench_ring_noise (&l->frames, 1);
  l->copy = g_malloc0 (l->frames.size);
  l->matrix = g_new (float, (gsize) c->commands *n_slopes);
  l->slopes = g_new0 (float, n_slopes);
  l->commands = g_new0 (float, c->commands);
  for (gsize i = 0; i < (gsize) c->commands * n_slopes; i++)
    l->matrix[i] = (float) sin (0.37 * (double) i);
  write_matrix (l);
  open_pipeline (l);
  open_kernels (l);
}

static void
close_loop (Loop *l)
{
  gst_clear_buffer (&l->made);
  bench_between_close (&l->plain);
  bench_between_close (&l->between);
  imk_shcentroid_free (l->centroid);
  imk_shreconstruct_free (l->reconstruct);
  remove (l->location);
  g_free (l->location);
  bench_ring_free (&l->frames);
  g_free (l->copy);
  g_free (l->matrix);
  g_free (l->slopes);
  g_free (l->commands);
}

static void
run_case (const Case *c)
{
  Entry entries[5 + MAX_PEERS] = {
      {"ours", time_pipeline}, /* the first: it makes what others attach */
      {"identities", time_identities},
      {"kernels", time_kernels},
      {"copy", time_copy},
      {"matrix", time_matrix},
  };
  guint n_entries = 5;
  Loop l = {.c = c};
  gchar **peers;

  if (!bench_wants_row (c->name))
    return;
  open_loop (&l);
  peers = open_peers (&l);
  for (guint i = 0; peers[i]; i++)
    entries[n_entries++].name = peers[i];
  time_entries (&l, entries, n_entries);
  close_peers (&l);
  g_strfreev (peers);
  close_loop (&l);
}

int
main (int argc, char **argv)
{
  bench_open (argc, argv, "ao-loop");
  gst_init (NULL, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    run_case (&cases[i]);
  return bench_close ();
}
