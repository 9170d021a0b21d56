/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From frame to commands on a GPU: from gst_pad_push () of a frame into
 * shcentroid to the return of what takes the commands behind shreconstruct,
 * beside the same kernels in a bare loop and what the device needs at least.
 * Frames are in the page-locked buffers that shcentroid offers, as a camera
 * would fill them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "imk/device.h"
#include "imk/shcentroid.h"
#include "imk/shreconstruct.h"

#include "bench-element.h"
#include "shreconstruct-floors.h"

enum { N_BUFFERS = 8, WARM_UP = 500 };

typedef struct Case {
  const char *name, *format;
  guint size, bytes, cells, pitch, commands, n_frames; /* @cells: of an axis */
} Case;

static const Case cases[] = {
    {"256x256-to-1000", "GRAY8", 256, 1, 32, 8, 1000, 100000},
    {"700x700-to-4000", "GRAY8", 700, 1, 70, 10, 4000, 30000},
    {"800x800x16-to-5000", "GRAY16_LE", 800, 2, 80, 10, 5000, 20000},
};

/* @between: keeps shreconstruct from taking over the wait */
typedef struct Way {
  const char *who, *between, *storage;
} Way;

static const Way ways[] = {
    {"ours", "", "f32"},
    {"ours-separate", "identity silent=true ! ", "f32"},
    {"ours-f16", "", "f16"},
    {"ours-bf16", "", "bf16"},
};

typedef struct Loop {
  const Case *c;
  gsize frame_size;
  float *matrix;
  gchar *location;
  double arrived; /* us, of the commands of the frame at hand */
  BenchBetween between;
  GstBufferPool *pool;
} Loop;

/* --- what is measured ----------------------------------------------------- */

/* A spot in each cell, which moves from frame to frame, over noise. */
static void
draw_frame (const Case *c, guint8 *pixels, guint stride, guint t)
{
  guint32 seed = 12345 + t;

  for (guint y = 0; y < c->size; y++)
    for (guint x = 0; x < c->size; x++) {
      const double dx = x % c->pitch - 0.5 * c->pitch + sin (x / c->pitch + t);
      const double dy = y % c->pitch - 0.5 * c->pitch + cos (y / c->pitch + t);
      guint value;

      seed = seed * 1664525 + 1013904223;
      value = (guint) (200 * exp (-0.5 * (dx * dx + dy * dy))) + (seed >> 29);
      if (c->bytes == 2)
        ((guint16 *) (gpointer) (pixels + y * stride))[x] =
            (guint16) (16 * value);
      else
        pixels[y * stride + x] = (guint8) value;
    }
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

  l->location =
      g_build_filename (g_get_tmp_dir (), "shreconstruct-loop.npy", NULL);
  file = fopen (l->location, "wb");
  if (!file)
    bench_fail ("%s cannot be written.", l->location);
  fwrite (prefix, 1, sizeof (prefix), file);
  fprintf (file, "%-117s\n", header);
  fwrite (l->matrix, sizeof (float), (gsize) n * l->c->commands, file);
  if (fclose (file) != 0)
    bench_fail ("%s cannot be written.", l->location);
  g_free (header);
}

static void
report (const Case *c, const char *who, double *samples, guint n)
{
  bench_samples (c->name, "cuda", who, samples, n); /* sorts them */
  g_print ("  %s %s: p50 %.2f p99 %.2f p99.9 %.2f max %.2f us, n %u\n", c->name,
      who, samples[n / 2], samples[(gsize) (n * 0.99)],
      samples[(gsize) (n * 0.999)], samples[n - 1], n);
}

/* --- the pipeline --------------------------------------------------------- */

static GstFlowReturn
on_commands (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Loop *l = g_object_get_data (G_OBJECT (pad), "bench");

  gst_buffer_unref (buffer);
  l->arrived = bench_now ();
  return GST_FLOW_OK;
}

/* In all buffers of the pool; they keep it. */
static void
fill_pool (Loop *l, const GstVideoInfo *info)
{
  GstBuffer *buffers[N_BUFFERS];

  for (guint i = 0; i < N_BUFFERS; i++) {
    GstMapInfo map;

    if (gst_buffer_pool_acquire_buffer (l->pool, &buffers[i], NULL) !=
            GST_FLOW_OK ||
        !gst_buffer_map (buffers[i], &map, GST_MAP_WRITE))
      bench_fail ("the pool has no buffer.");
    draw_frame (
        l->c, map.data, (guint) GST_VIDEO_INFO_PLANE_STRIDE (info, 0), i);
    gst_buffer_unmap (buffers[i], &map);
  }
  for (guint i = 0; i < N_BUFFERS; i++)
    gst_buffer_unref (buffers[i]);
}

static void
open_pipeline (Loop *l, const Way *way)
{
  const Case *c = l->c;
  gchar *line = g_strdup_printf (
      "shcentroid name=first backend=cuda columns=%u rows=%u pitch-x=%u "
      "pitch-y=%u fields=slopes ! %s shreconstruct name=last backend=cuda "
      "matrix-storage=%s matrix-location=%s",
      c->cells, c->cells, c->pitch, c->pitch, way->between, way->storage,
      l->location);
  GstCaps *caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING,
      c->format, "width", G_TYPE_INT, c->size, "height", G_TYPE_INT, c->size,
      "framerate", GST_TYPE_FRACTION, 1000, 1, NULL);
  GstVideoInfo info;

  bench_between_open (&l->between, line, caps, on_commands, l);
  gst_video_info_from_caps (&info, caps);
  l->pool =
      bench_offered_pool (l->between.camera, caps, &info, N_BUFFERS, N_BUFFERS);
  if (!l->pool)
    bench_fail ("shcentroid offers no pool.");
  fill_pool (l, &info);
  gst_caps_unref (caps);
  g_free (line);
}

static void
close_pipeline (Loop *l)
{
  gst_buffer_pool_set_active (l->pool, FALSE);
  gst_object_unref (l->pool);
  bench_between_close (&l->between);
}

static double
time_pipeline (Loop *l, guint i)
{
  GstBuffer *buffer;
  double start;

  if (gst_buffer_pool_acquire_buffer (l->pool, &buffer, NULL) != GST_FLOW_OK)
    bench_fail ("the pool has no buffer.");
  GST_BUFFER_OFFSET (buffer) = i;
  start = bench_now ();
  if (gst_pad_push (l->between.camera, buffer) != GST_FLOW_OK)
    bench_fail ("a frame was refused.");
  return l->arrived - start;
}

static void
run_pipeline (Loop *l, const Way *way, guint n)
{
  double *samples = g_new (double, n);

  open_pipeline (l, way);
  for (guint i = 0; i < WARM_UP; i++)
    time_pipeline (l, i);
  for (guint i = 0; i < n; i++)
    samples[i] = time_pipeline (l, WARM_UP + i);
  close_pipeline (l);
  report (l->c, way->who, samples, n);
  g_free (samples);
}

/* --- the bare loop -------------------------------------------------------- */

typedef struct Kernels {
  const ImkDevice *device;
  void *context, *stream;
  ImkShcentroid *centroid;
  ImkShreconstruct *reconstruct;
  ImkImage frames[N_BUFFERS], slopes, flags;
  void *pinned[N_BUFFERS];
  float *commands;
} Kernels;

static ImkImage
plain_image (guint width, guint height, ImkType type, ImkLocation location)
{
  return (ImkImage){.width = width,
      .height = height,
      .channels = 1,
      .type = type,
      .stride = (width * imk_type_size (type) + 3) / 4 * 4,
      .location = location};
}

static void
open_kernels (Loop *l, Kernels *k)
{
  const Case *c = l->c;
  const guint n = c->cells * c->cells;
  ImkShcentroidConfig config;
  ImkShreconstructConfig r;
  ImkError error;

  bench_ok (imk_device_get (&k->device, &error), &error);
  bench_ok (k->device->context (0, &k->context, &error), &error);
  bench_ok (k->device->push (k->context, &error), &error);
  bench_ok (k->device->stream_new (&k->stream, &error), &error);
  imk_shcentroid_config_init (&config);
  config.width = config.height = c->size;
  config.type = c->bytes == 2 ? IMK_TYPE_U16 : IMK_TYPE_U8;
  config.columns = config.rows = c->cells;
  config.pitch_x = config.pitch_y = c->pitch;
  config.fields = IMK_SHCENTROID_FIELDS_SLOPES;
  bench_ok (
      imk_shcentroid_new (IMK_BACKEND_CUDA, &config, &k->centroid, &error),
      &error);
  imk_shreconstruct_config_init (&r);
  r.n_cells = n;
  r.n_modes = r.n_commands = c->commands;
  r.matrix = l->matrix;
  bench_ok (
      imk_shreconstruct_new (IMK_BACKEND_CUDA, &r, &k->reconstruct, &error),
      &error);
  k->commands = g_new0 (float, c->commands);
  k->slopes = plain_image (2 * n, 1, IMK_TYPE_F32, IMK_LOCATION_DEVICE);
  k->flags = plain_image (n, 1, IMK_TYPE_U8, IMK_LOCATION_DEVICE);
  bench_ok (
      k->device->alloc_device (2 * n * sizeof (float), &k->slopes.data, &error),
      &error);
  bench_ok (k->device->alloc_device (n, &k->flags.data, &error), &error);
  for (guint i = 0; i < N_BUFFERS; i++) {
    k->frames[i] =
        plain_image (c->size, c->size, config.type, IMK_LOCATION_HOST_MAPPED);
    bench_ok (k->device->alloc_pinned (k->frames[i].stride * c->size,
                  &k->pinned[i], &k->frames[i].data, &error),
        &error);
    draw_frame (c, k->pinned[i], (guint) k->frames[i].stride, i);
  }
}

static void
close_kernels (Kernels *k)
{
  imk_shcentroid_free (k->centroid);
  imk_shreconstruct_free (k->reconstruct);
  k->device->free_device (k->slopes.data);
  k->device->free_device (k->flags.data);
  for (guint i = 0; i < N_BUFFERS; i++)
    k->device->free_pinned (k->pinned[i]);
  k->device->stream_free (k->stream);
  k->device->pop ();
  g_free (k->commands);
}

static double
time_kernels (Kernels *k, guint i)
{
  double start = bench_now ();
  ImkError error;

  bench_ok (
      imk_shcentroid_process_flags (k->centroid, &k->frames[i % N_BUFFERS],
          &k->slopes, NULL, &k->flags, k->stream, &error),
      &error);
  bench_ok (imk_shreconstruct_process (k->reconstruct, &k->slopes, &k->flags,
                k->commands, NULL, k->stream, &error),
      &error);
  return bench_now () - start;
}

/* The commands of the last frame, by the CPU. */
static void
check_commands (Loop *l, Kernels *k)
{
  const Case *c = l->c;
  const guint n = 2 * c->cells * c->cells;
  float *slopes = g_new (float, n);
  double worst = 0, squares = 0;
  ImkError error;

  imk_shreconstruct_reset (k->reconstruct);
  time_kernels (k, 0);
  bench_ok (k->device->copy (slopes, n * sizeof (float), k->slopes.data,
                n * sizeof (float), n * sizeof (float), 1, k->stream, &error),
      &error);
  bench_ok (k->device->stream_synchronize (k->stream, &error), &error);
  for (guint m = 0; m < c->commands; m++) {
    double sum = 0;

    for (guint i = 0; i < n; i++)
      sum -= 0.5 * (double) l->matrix[(gsize) m * n + i] * slopes[i];
    worst = fmax (worst, fabs (k->commands[m] - sum));
    squares += sum * sum;
  }
  worst /= sqrt (squares / c->commands);
  g_print ("  %s: commands differ by %.2g of their rms from float64\n", c->name,
      worst);
  if (!(worst <= 1e-5))
    bench_fail ("that is more than 1e-5.");
  g_free (slopes);
}

static void
run_kernels (Loop *l, guint n)
{
  double *samples = g_new (double, n);
  Kernels k;

  open_kernels (l, &k);
  for (guint i = 0; i < WARM_UP; i++)
    time_kernels (&k, i);
  for (guint i = 0; i < n; i++)
    samples[i] = time_kernels (&k, i);
  check_commands (l, &k);
  close_kernels (&k);
  report (l->c, "kernels", samples, n);
  g_free (samples);
}

/* --- the floors ----------------------------------------------------------- */

static void
run_floors (Loop *l, guint n)
{
  static const struct {
    const char *who;
    void (*run) (void);
  } floors[] = {{"empty-graph", floors_graph}, {"mapped-frame", floors_frame},
      {"read-of-matrix", floors_matrix}};
  const Case *c = l->c;
  const gsize n_numbers = (gsize) c->commands * 2 * c->cells * c->cells;
  double *samples = g_new (double, n);
  double on_device = INFINITY;

  floors_open (l->frame_size, n_numbers * sizeof (float));
  for (guint f = 0; f < G_N_ELEMENTS (floors); f++) {
    for (guint i = 0; i < WARM_UP; i++)
      floors[f].run ();
    for (guint i = 0; i < n; i++) {
      const double start = bench_now ();

      floors[f].run ();
      samples[i] = bench_now () - start;
    }
    report (c, floors[f].who, samples, n);
  }
  for (guint i = 0; i < 20; i++)
    on_device = MIN (on_device, floors_matrix_on_device ());
  bench_row (c->name, "cuda", "read-of-matrix-on-device", on_device, NAN, NAN,
      NAN, 20);
  g_print ("  %s: a read of the matrix takes the device %.2f us, %.2f TB/s\n",
      c->name, on_device, 4e-6 * (double) n_numbers / on_device);
  g_print ("  %s: mapped-frame + read on the device = %.2f us\n", c->name,
      bench_find (c->name, "mapped-frame").median + on_device);
  floors_close ();
  g_free (samples);
}

static void
run_case (const Case *c)
{
  const gsize n_numbers = (gsize) c->commands * 2 * c->cells * c->cells;
  const guint n = bench_is_quick () ? c->n_frames / 10 : c->n_frames;
  guint64 seed = 1;
  Loop l = {.c = c};

  if (!bench_wants (c->name))
    return;
  l.frame_size = (gsize) c->size * c->size * c->bytes;
  l.matrix = g_new (float, n_numbers);
  for (gsize i = 0; i < n_numbers; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    l.matrix[i] = (float) ((double) (seed >> 40) / 0x1p23 - 1);
  }
  write_matrix (&l);
  run_floors (&l, n / 4);
  run_kernels (&l, n);
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++)
    run_pipeline (&l, &ways[i], n);
  run_floors (&l, n / 4);
  remove (l.location);
  g_free (l.location);
  g_free (l.matrix);
}

int
main (int argc, char **argv)
{
  bench_open (argc, argv, "ao-gpu");
  gst_init (NULL, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    run_case (&cases[i]);
  return bench_close ();
}
