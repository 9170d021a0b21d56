/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each way into and out of an element costs: the time from a frame's
 * arrival until the viewer has the result, one frame at a time, and the frames
 * a second when they come as fast as they are taken. */
#include <math.h>
#include <string.h>

#include "imk/backend.h"
#include "gstimagingmemory.h"

#include "bench-element.h"

enum { N_FRAMES = 3000, N_QUICK_FRAMES = 300, N_WARM_UP = 50, N_PICTURES = 8 };

#define CUDA_MEMORY "memory:CUDAMemory"

typedef struct Case {
  const char *name, *element, *format;
  gint width, height;
  gboolean has_cuda_memory; /* CUDAMemory has its formats */
  gint pitch;               /* of spots; 0: noise alone */
} Case;

static const Case cases[] = {
    {"lapsharpen-1920x1080", "lapsharpen", "RGBA", 1920, 1080, TRUE, 0},
    {"shcentroid-700-d10",
        "shcentroid pitch-x=10 pitch-y=10 columns=70 rows=70", "GRAY8", 700,
        700, FALSE, 10},
    {"octbscan-832x240", "octbscan scale=4", "GRAY16_LE", 832, 240, FALSE, 0},
};

/* Where frames come from. */
typedef enum Source { PLAIN, OFFERED, DEVICE, CUDA, PEER } Source;

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
    {"peer-device", "cuda", PEER, NULL, BENCH_VIEW_LEAVE},
};

/* --- frames --------------------------------------------------------------- */

/* What is pushed: all but OFFERED the same buffers again and again, each
 * with a reference of ours, so that the element must leave them as they are;
 * OFFERED as a camera does, each written anew into the pool. */
typedef struct Frames {
  Source source;
  GstBufferPool *pool;
  BenchRing pictures;
  GstBuffer *buffers[N_PICTURES]; /* not OFFERED */
  guint n_given;
} Frames;

static GstBuffer *
acquire (GstBufferPool *pool)
{
  GstBuffer *buffer = NULL;

  if (gst_buffer_pool_acquire_buffer (pool, &buffer, NULL) != GST_FLOW_OK)
    bench_fail ("the pool has no buffer.");
  return buffer;
}

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

/* Pictures in CUDAMemory, or of another device, are those that another element
 * has made. */
static void
make_by (Frames *frames, const Case *c, const char *line, const char *out)
{
  BenchElement maker;

  bench_element_open (&maker, line, c->format, c->width, c->height, NULL, out,
      BENCH_VIEW_LEAVE);
  bench_element_start (&maker);
  frames->pool = bench_element_plain_pool (&maker, N_PICTURES);
  for (guint i = 0; i < N_PICTURES; i++) {
    GstBuffer *buffer = acquire (frames->pool);

    gst_buffer_fill (
        buffer, 0, bench_ring_at (&frames->pictures, i), frames->pictures.size);
    bench_element_push (&maker, buffer);
    bench_element_wait (&maker, i + 1);
    frames->buffers[i] = gst_buffer_ref (maker.last);
  }
  bench_element_stop (&maker);
  bench_element_close (&maker);
}

/* A spot of 3 x 3 pixels in the middle of each cell, and an eighth of the
 * noise: in frames without spots shcentroid seeks its threshold again and
 * again. */
static void
draw_spots (const BenchRing *pictures, const Case *c)
{
  for (guint i = 0; i < N_PICTURES; i++) {
    guint8 *at = bench_ring_at (pictures, i);

    for (gint y = 0; y < c->height; y++)
      for (gint x = 0; x < c->width; x++, at++)
        *at = *at / 8 + (ABS (x % c->pitch - c->pitch / 2) <= 1 &&
                                    ABS (y % c->pitch - c->pitch / 2) <= 1
                                ? 160
                                : 0);
  }
}

static void
frames_open (Frames *frames, BenchElement *b, const Case *c, const Path *path)
{
  *frames = (Frames){.source = path->source};
  frames->pictures = bench_ring_new (b->info.size, N_PICTURES * b->info.size);
  bench_ring_noise (&frames->pictures, 1);
  if (c->pitch)
    draw_spots (&frames->pictures, c);
  switch (path->source) {
  case OFFERED:
    frames->pool = bench_element_offered_pool (b, N_PICTURES);
    if (!frames->pool)
      bench_fail ("the element offers no pool.");
    return;
  case CUDA:
    make_by (frames, c, "lapsharpen backend=cuda amount=0.5", CUDA_MEMORY);
    return;
  case PEER:
    make_by (
        frames, c, "lapsharpen backend=cuda cuda-device-id=1 amount=0.5", NULL);
    return;
  case DEVICE:
    frames->pool = device_pool (b);
    break;
  default:
    frames->pool = bench_element_plain_pool (b, N_PICTURES);
  }
  for (guint i = 0; i < N_PICTURES; i++) {
    frames->buffers[i] = acquire (frames->pool);
    gst_buffer_fill (frames->buffers[i], 0,
        bench_ring_at (&frames->pictures, i), frames->pictures.size);
  }
}

static void
frames_close (Frames *frames)
{
  for (guint i = 0; i < N_PICTURES; i++)
    gst_clear_buffer (&frames->buffers[i]);
  gst_buffer_pool_set_active (frames->pool, FALSE);
  gst_object_unref (frames->pool);
  bench_ring_free (&frames->pictures);
}

/* As a camera has it: it is told that the pixels are new, which takes no time,
 * but of a buffer that has not been used yet they are. */
static GstBuffer *
write_frame (Frames *frames)
{
  GQuark filled = g_quark_from_static_string ("bench-filled");
  GstBuffer *buffer = acquire (frames->pool);
  GstMapInfo map;

  if (!gst_buffer_map (buffer, &map, GST_MAP_WRITE))
    bench_fail ("a buffer of the offered pool cannot be written.");
  if (!gst_mini_object_get_qdata (GST_MINI_OBJECT (buffer), filled)) {
    memcpy (map.data,
        bench_ring_at (&frames->pictures, frames->n_given % N_PICTURES),
        frames->pictures.size);
    gst_mini_object_set_qdata (
        GST_MINI_OBJECT (buffer), filled, GINT_TO_POINTER (1), NULL);
  }
  gst_buffer_unmap (buffer, &map);
  return buffer;
}

static GstBuffer *
frames_next (Frames *frames)
{
  GstBuffer *buffer =
      frames->source == OFFERED
          ? write_frame (frames)
          : gst_buffer_ref (frames->buffers[frames->n_given % N_PICTURES]);

  frames->n_given++;
  return buffer;
}

/* --- the floor of PEER ---------------------------------------------------- */

static void
ring_on (GstImagingContext *context, gsize size, gpointer ring[N_PICTURES])
{
  const ImkDevice *device = gst_imaging_context_device (context);
  ImkError error;

  bench_ok (gst_imaging_context_push (context, &error), &error);
  for (guint i = 0; i < N_PICTURES; i++)
    bench_ok (device->alloc_device (size, &ring[i], &error), &error);
  gst_imaging_context_pop (context);
}

static void
free_ring (GstImagingContext *context, gpointer ring[N_PICTURES])
{
  bench_ok (gst_imaging_context_push (context, NULL), NULL);
  for (guint i = 0; i < N_PICTURES; i++)
    gst_imaging_context_device (context)->free_device (ring[i]);
  gst_imaging_context_pop (context);
}

/* Returns: microseconds a frame, when nothing is done but to copy them */
static double
bare_copies (
    GstImagingContext *from, GstImagingContext *to, gsize size, guint n)
{
  const ImkDevice *device = gst_imaging_context_device (from);
  gpointer stream = gst_imaging_context_stream (from);
  gpointer source[N_PICTURES], target[N_PICTURES];
  double start = 0;
  ImkError error;

  ring_on (from, size, source);
  ring_on (to, size, target);
  bench_ok (gst_imaging_context_push (from, &error), &error);
  device->enable_peer (gst_imaging_context_handle (to));
  for (guint i = 0; i < N_WARM_UP + n; i++) {
    if (i == N_WARM_UP) {
      bench_ok (device->stream_synchronize (stream, &error), &error);
      start = bench_now ();
    }
    bench_ok (device->copy (target[i % N_PICTURES], size,
                  source[i % N_PICTURES], size, size, 1, stream, &error),
        &error);
  }
  bench_ok (device->stream_synchronize (stream, &error), &error);
  start = (bench_now () - start) / n;
  gst_imaging_context_pop (from);
  free_ring (from, source);
  free_ring (to, target);
  return start;
}

static void
run_bare_copies (const Case *c, const char *name, guint n)
{
  GstVideoInfo info;
  GstImagingContext *from, *to;
  ImkError error;
  double each;

  gst_video_info_set_format (
      &info, gst_video_format_from_string (c->format), c->width, c->height);
  from = gst_imaging_context_get (1, &error);
  to = gst_imaging_context_get (0, &error);
  if (!from || !to)
    bench_fail ("%s", error.message);
  each = bare_copies (from, to, info.size, n);
  bench_row (name, "cuda", "peer-copy", each, NAN, NAN, NAN, n);
  g_print ("  %s: bare copies %.0f frames/s, %.0f GB/s\n", name, 1e6 / each,
      info.size / each / 1e3);
  g_object_unref (from);
  g_object_unref (to);
}

/* --- one path ------------------------------------------------------------- */

static void
one_at_a_time (BenchElement *b, Frames *frames, double *samples, guint n)
{
  for (guint i = 0; i < n; i++) {
    GstBuffer *buffer = frames_next (frames);
    double start = bench_now ();

    bench_element_push (b, buffer);
    bench_element_wait (b, i + 1);
    samples[i] = bench_now () - start;
  }
}

/* Returns: microseconds a frame */
static double
as_fast_as_they_go (BenchElement *b, Frames *frames, guint n)
{
  double start = bench_now ();
  GstMapInfo map;

  for (guint i = 0; i < n; i++)
    bench_element_push (b, frames_next (frames));
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
  gchar *line = g_strdup_printf ("%s backend=%s%s", c->element, path->backend,
      path->source == PEER ? " cuda-device-id=0" : "");
  BenchElement b;
  Frames frames;
  double each = NAN;

  bench_element_open (&b, line, c->format, c->width, c->height,
      path->source == CUDA ? CUDA_MEMORY : NULL, path->out, view);
  bench_element_start (&b);
  frames_open (&frames, &b, c, path);
  as_fast_as_they_go (&b, &frames, N_WARM_UP);
  b.n_received = 0;
  if (samples)
    one_at_a_time (&b, &frames, samples, n);
  else
    each = as_fast_as_they_go (&b, &frames, n);
  frames_close (&frames);
  bench_element_stop (&b);
  bench_element_close (&b);
  g_free (line);
  return each;
}

static void
run_path (const Case *c, const Path *path)
{
  guint n = bench_is_quick () ? N_QUICK_FRAMES : N_FRAMES;
  gchar *name = g_strdup_printf ("%s-%s", c->name, path->name);
  gchar *rate = g_strdup_printf ("%s-rate", name);
  double *samples, each;

  if (!bench_wants_row (name)) {
    g_free (rate);
    g_free (name);
    return;
  }
  samples = g_new (double, n);
  run (c, path, path->view, samples, n);
  bench_samples (name, path->backend, "ours", samples, n);
  each = run (c, path,
      path->view == BENCH_VIEW_MAP ? BENCH_VIEW_QUEUE : path->view, NULL, n);
  bench_row (rate, path->backend, "ours", each, NAN, NAN, NAN, n);
  g_print ("  %s: %.0f frames/s\n", name, 1e6 / each);
  if (path->source == PEER)
    run_bare_copies (c, rate, n);
  g_free (samples);
  g_free (rate);
  g_free (name);
}

static gint
n_devices (void)
{
  const ImkDevice *device;
  gint n = 0;

  if (imk_device_get (&device, NULL) != IMK_OK ||
      device->count (&n, NULL) != IMK_OK)
    return 0;
  return n;
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
         (path->source != CUDA || c->has_cuda_memory) &&
         (path->source != PEER || n_devices () > 1);
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
