/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each way into and out of an element costs: the time from a frame's
 * arrival until the viewer has the result, one frame at a time, and the frames
 * a second when they come as fast as they are taken. */
#include <math.h>
#include <string.h>

#include "core/backend.h"
#include "gstimagingmemory.h"

#include "bench-element.h"

enum { N_FRAMES = 3000, N_QUICK_FRAMES = 300, N_WARM_UP = 50, N_PICTURES = 8 };

#define CUDA_MEMORY "memory:CUDAMemory"

typedef struct Case {
  const char *name, *element, *format;
  gint width, height;
  gboolean has_cuda_memory; /* CUDAMemory has its formats */
} Case;

static const Case cases[] = {
    {"lapsharpen-1920x1080", "lapsharpen", "RGBA", 1920, 1080, TRUE},
    {"shcentroid-700-d10",
        "shcentroid pitch-x=10 pitch-y=10 columns=70 rows=70", "GRAY8", 700,
        700, FALSE},
    {"octbscan-832x240", "octbscan scale=4", "GRAY16_LE", 832, 240, FALSE},
};

/* Where frames come from. */
typedef enum Source { PLAIN, OFFERED, DEVICE, CUDA } Source;

typedef struct Path {
  const char *name, *backend;
  Source source;
  const char *out; /* feature of caps */
  BenchView view;
} Path;

/* Of each: latency with the view as it is, rate behind a queue where frames are
 * mapped. */
static const Path paths[] = {
    {"cpu", "cpu", PLAIN, NULL, BENCH_VIEW_MAP},
    {"system-system", "cuda", PLAIN, NULL, BENCH_VIEW_MAP},
    {"pinned-system", "cuda", OFFERED, NULL, BENCH_VIEW_MAP},
    {"pinned-device", "cuda", OFFERED, NULL, BENCH_VIEW_LEAVE},
    {"device-device", "cuda", DEVICE, NULL, BENCH_VIEW_LEAVE},
    {"CUDAMemory", "cuda", CUDA, CUDA_MEMORY, BENCH_VIEW_LEAVE},
};

/* --- frames -----------------------------------------------------------------
 */

static GstBufferPool *
device_pool (BenchElement *b)
{
  ImkError error;
  GstImagingContext *context = gst_imaging_context_get (-1, &error);
  GstBufferPool *pool = gst_video_buffer_pool_new ();
  GstStructure *config = gst_buffer_pool_get_config (pool);
  GstAllocationParams params;
  GstAllocator *allocator;

  if (!context)
    bench_fail ("%s", error.message);
  allocator =
      gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_DEVICE, NULL);
  gst_allocation_params_init (&params);
  gst_buffer_pool_config_set_params (
      config, b->caps, b->info.size, N_PICTURES, 0);
  gst_buffer_pool_config_set_allocator (config, allocator, &params);
  if (!gst_buffer_pool_set_config (pool, config) ||
      !gst_buffer_pool_set_active (pool, TRUE))
    bench_fail ("a pool of device memory does not start.");
  gst_object_unref (allocator);
  g_object_unref (context);
  return pool;
}

static GstBufferPool *
pool_for (BenchElement *b, Source source)
{
  GstBufferPool *pool;

  if (source == PLAIN)
    return bench_element_plain_pool (b, N_PICTURES);
  if (source == DEVICE)
    return device_pool (b);
  pool = bench_element_offered_pool (b, N_PICTURES);
  if (!pool)
    bench_fail ("the element offers no pool.");
  return pool;
}

/* Filled once and pushed again and again, each with a reference of ours, so
 * that the element must leave them as they are. */
static void
fill (GstBuffer **buffers, BenchElement *b, GstBufferPool *pool,
    const BenchRing *pictures)
{
  for (guint i = 0; i < N_PICTURES; i++) {
    if (gst_buffer_pool_acquire_buffer (pool, &buffers[i], NULL) != GST_FLOW_OK)
      bench_fail ("the pool has no buffer.");
    gst_buffer_fill (
        buffers[i], 0, bench_ring_at (pictures, i), pictures->size);
  }
}

/* --- one path ---------------------------------------------------------------
 */

static void
one_at_a_time (BenchElement *b, GstBuffer **buffers, double *samples, guint n)
{
  for (guint i = 0; i < n; i++) {
    double start = bench_now ();

    bench_element_push (b, gst_buffer_ref (buffers[i % N_PICTURES]));
    bench_element_wait (b, i + 1);
    samples[i] = bench_now () - start;
  }
}

/* Returns: microseconds a frame */
static double
as_fast_as_they_go (BenchElement *b, GstBuffer **buffers, guint n)
{
  double start = bench_now ();
  GstMapInfo map;

  for (guint i = 0; i < n; i++)
    bench_element_push (b, gst_buffer_ref (buffers[i % N_PICTURES]));
  bench_element_wait (b, n);
  /* what was left on the device counts when it is done */
  if (!gst_buffer_map (b->last, &map, GST_MAP_READ))
    bench_fail ("the last frame cannot be mapped.");
  gst_buffer_unmap (b->last, &map);
  return (bench_now () - start) / n;
}

/* Returns: microseconds a frame; latencies go to @samples unless it is NULL */
static double
run (const Case *c, const Path *path, BenchView view, double *samples, guint n)
{
  gchar *line = g_strdup_printf ("%s backend=%s", c->element, path->backend);
  GstBuffer *buffers[N_PICTURES];
  BenchElement b;
  BenchRing pictures;
  GstBufferPool *pool;
  double each = NAN;

  bench_element_open (&b, line, c->format, c->width, c->height,
      path->source == CUDA ? CUDA_MEMORY : NULL, path->out, view);
  pictures = bench_ring_new (b.info.size, N_PICTURES * b.info.size);
  bench_ring_noise (&pictures, 1);
  bench_element_start (&b);
  pool = pool_for (&b, path->source);
  fill (buffers, &b, pool, &pictures);
  as_fast_as_they_go (&b, buffers, N_WARM_UP);
  b.n_received = 0;
  if (samples)
    one_at_a_time (&b, buffers, samples, n);
  else
    each = as_fast_as_they_go (&b, buffers, n);
  for (guint i = 0; i < N_PICTURES; i++)
    gst_buffer_unref (buffers[i]);
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
  bench_element_stop (&b);
  bench_element_close (&b);
  bench_ring_free (&pictures);
  g_free (line);
  return each;
}

static void
run_path (const Case *c, const Path *path)
{
  guint n = bench_is_quick () ? N_QUICK_FRAMES : N_FRAMES;
  gchar *name = g_strdup_printf ("%s-%s", c->name, path->name);
  gchar *rate = g_strdup_printf ("%s-rate", name);
  double *samples = g_new (double, n), each;

  run (c, path, path->view, samples, n);
  bench_samples (name, path->backend, "ours", samples, n);
  each = run (c, path,
      path->view == BENCH_VIEW_MAP ? BENCH_VIEW_QUEUE : path->view, NULL, n);
  bench_row (rate, path->backend, "ours", each, NAN, NAN, NAN, n);
  g_print ("  %s: %.0f frames/s\n", name, 1e6 / each);
  g_free (samples);
  g_free (rate);
  g_free (name);
}

static gboolean
can_run (const Case *c, const Path *path)
{
  GstElementFactory *factory;
  gchar **words = g_strsplit (c->element, " ", 2);
  ImkError error;

  factory = gst_element_factory_find (words[0]);
  g_strfreev (words);
  if (!factory)
    return FALSE;
  gst_object_unref (factory);
  return (strcmp (path->backend, "cpu") == 0 ||
             imk_backend_load ("cuda", &error) == IMK_OK) &&
         (path->source != CUDA || c->has_cuda_memory);
}

int
main (int argc, char **argv)
{
  bench_open (argc, argv, "path");
  gst_init (NULL, NULL);
  for (guint c = 0; c < G_N_ELEMENTS (cases); c++)
    for (guint p = 0; p < G_N_ELEMENTS (paths); p++)
      if (can_run (&cases[c], &paths[p]))
        run_path (&cases[c], &paths[p]);
  return bench_close ();
}
