/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From frame to commands: from gst_pad_push () of a frame into shcentroid to
 * the arrival of the commands behind shreconstruct. Beside it the same kernels
 * in a bare loop. */
#include <math.h>
#include <stdio.h>

#include "imk/shcentroid.h"
#include "imk/shreconstruct.h"

#include "bench-element.h"

enum { TURN = 100 }; /* frames of one, before the next */

typedef struct Case {
  const char *name;
  guint size, cells, pitch, commands, n_frames; /* @cells: along an axis */
} Case;

static const Case cases[] = {
    {"49x49-to-97", 49, 7, 7, 97, 100000},
    {"256x256-to-1000", 256, 32, 8, 1000, 10000},
    {"700x700-to-4000", 700, 70, 10, 4000, 300},
};

typedef struct Loop {
  const Case *c;
  BenchRing frames;
  float *matrix, *slopes, *commands;
  ImkShcentroid *centroid;
  ImkShreconstruct *reconstruct;
  ImkImage in, out;
  double arrived; /* us, of the commands of the frame at hand */
  GstPad *camera, *mirror;
  GstElement *bin;
  gchar *location;
} Loop;

/* --- the pipeline --------------------------------------------------------- */

static GstFlowReturn
on_commands (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Loop *l = g_object_get_data (G_OBJECT (pad), "loop");

  l->arrived = bench_now ();
  gst_buffer_unref (buffer);
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
  FILE *file;

  l->location = g_build_filename (g_get_tmp_dir (), "shreconstruct.npy", NULL);
  file = fopen (l->location, "wb");
  if (!file)
    bench_fail ("%s cannot be written.", l->location);
  fwrite (prefix, 1, sizeof (prefix), file);
  fprintf (file, "%-117s\n", header);
  fwrite (l->matrix, sizeof (float), (gsize) n * l->c->commands, file);
  fclose (file);
  g_free (header);
}

static void
open_pipeline (Loop *l)
{
  const Case *c = l->c;
  gchar *line = g_strdup_printf (
      "shcentroid backend=cpu n-threads=1 columns=%u rows=%u pitch-x=%u "
      "pitch-y=%u fields=slopes ! shreconstruct n-threads=1 matrix-location=%s",
      c->cells, c->cells, c->pitch, c->pitch, l->location);
  gchar *text = g_strdup_printf ("video/x-raw,format=GRAY8,width=%u,height=%u,"
                                 "framerate=1000/1",
      c->size, c->size);
  GstCaps *caps = gst_caps_from_string (text);
  GstPad *sink, *src;
  GError *error = NULL;

  l->bin = gst_parse_bin_from_description (line, TRUE, &error);
  if (!l->bin)
    bench_fail ("%s", error->message);
  gst_object_ref_sink (l->bin);
  l->camera = gst_pad_new ("camera", GST_PAD_SRC);
  l->mirror = gst_pad_new ("mirror", GST_PAD_SINK);
  g_object_set_data (G_OBJECT (l->mirror), "loop", l);
  gst_pad_set_chain_function (l->mirror, on_commands);
  gst_pad_set_active (l->camera, TRUE);
  gst_pad_set_active (l->mirror, TRUE);
  sink = gst_element_get_static_pad (l->bin, "sink");
  src = gst_element_get_static_pad (l->bin, "src");
  bench_link (l->camera, sink);
  bench_link (src, l->mirror);
  gst_object_unref (sink);
  gst_object_unref (src);
  bench_play (l->bin, l->camera, caps);
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
  config.n_threads = 1;
  bench_ok (imk_shcentroid_new (IMK_BACKEND_CPU, &config, &l->centroid, &error),
      &error);
  imk_shreconstruct_config_init (&r);
  r.n_cells = n;
  r.n_modes = r.n_commands = c->commands;
  r.matrix = l->matrix;
  r.n_threads = 1;
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
time_pipeline (Loop *l, guint i)
{
  GstBuffer *buffer = gst_buffer_new_wrapped_full (GST_MEMORY_FLAG_READONLY,
      bench_ring_at (&l->frames, i), l->frames.size, 0, l->frames.size, NULL,
      NULL);
  double start;

  GST_BUFFER_OFFSET (buffer) = i;
  start = bench_now ();
  if (gst_pad_push (l->camera, buffer) != GST_FLOW_OK)
    bench_fail ("a frame was refused.");
  return l->arrived - start;
}

static double
time_kernels (Loop *l, guint i)
{
  double start = bench_now ();
  ImkError error;

  l->in.data = bench_ring_at (&l->frames, i);
  bench_ok (imk_shcentroid_process (l->centroid, &l->in, &l->out, NULL, &error),
      &error);
  imk_shreconstruct_process (
      l->reconstruct, l->slopes, NULL, l->commands, NULL);
  return bench_now () - start;
}

static void
report (const char *name, const char *who, double *samples, guint n)
{
  bench_samples (name, "cpu", who, samples, n); /* sorts them */
  g_print ("  %s %s: p99.9 %.1f us, max %.1f us\n", name, who,
      samples[(gsize) (n * 0.999)], samples[n - 1]);
}

static void
run_case (const Case *c)
{
  static const char *const who[] = {"ours", "kernels"};
  double (*const times[]) (Loop *, guint) = {time_pipeline, time_kernels};
  const guint n_slopes = 2 * c->cells * c->cells;
  const guint n = bench_is_quick () ? c->n_frames / 10 : c->n_frames;
  double *samples[G_N_ELEMENTS (who)];
  Loop l = {.c = c};

  if (!bench_wants_row (c->name))
    return;
  l.frames = bench_ring_new ((gsize) (c->size + 3) / 4 * 4 * c->size, 1 << 20);
  bench_ring_noise (&l.frames, 1);
  l.matrix = g_new (float, (gsize) c->commands *n_slopes);
  l.slopes = g_new0 (float, n_slopes);
  l.commands = g_new0 (float, c->commands);
  for (gsize i = 0; i < (gsize) c->commands * n_slopes; i++)
    l.matrix[i] = (float) sin (0.37 * (double) i);
  write_matrix (&l);
  open_pipeline (&l);
  open_kernels (&l);
  for (guint k = 0; k < G_N_ELEMENTS (who); k++) {
    samples[k] = g_new (double, n);
    for (guint i = 0; i < n / 10; i++)
      times[k](&l, i);
  }
  /* each has a matrix of its own, which stays in the cache as in a loop */
  for (guint first = 0; first < n; first += TURN)
    for (guint k = 0; k < G_N_ELEMENTS (who); k++)
      for (guint i = first; i < MIN (first + TURN, n); i++)
        samples[k][i] = times[k](&l, i);
  for (guint k = 0; k < G_N_ELEMENTS (who); k++) {
    report (c->name, who[k], samples[k], n);
    g_free (samples[k]);
  }
  gst_element_set_state (l.bin, GST_STATE_NULL);
  gst_object_unref (l.bin);
  gst_object_unref (l.camera);
  gst_object_unref (l.mirror);
  imk_shcentroid_free (l.centroid);
  imk_shreconstruct_free (l.reconstruct);
  remove (l.location);
  g_free (l.location);
  bench_ring_free (&l.frames);
  g_free (l.matrix);
  g_free (l.slopes);
  g_free (l.commands);
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
