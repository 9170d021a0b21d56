/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How long a frame is inside an element, from the element's own `stats`: from
 * the buffer's arrival to the results' leaving. The program plays camera and
 * sink: it writes each frame into the pool that the element offers. */
#include <math.h>

#include "imk/backend.h"

#include "bench-element.h"

enum { N_FRAMES = 10000, N_QUICK_FRAMES = 1000, N_PICTURES = 8 };

typedef struct Case {
  const char *name;
  const char *element;
  const char *format;
  gint width, height;
  gulong period;       /* us a frame, as of a camera; 0: as fast as can be */
  gboolean has_reader; /* of the results as text */
} Case;

#define CENTROIDS "shcentroid pitch-x=10 pitch-y=10 columns=70 rows=70 "

#define CELLS(n) \
  "shcentroid pitch-x=20 pitch-y=20 fields=all columns=" #n " rows=" #n " "

static const Case cases[] = {
    {"shcentroid-700-d10-xy", CENTROIDS "fields=xy", "GRAY8", 700, 700},
    {"shcentroid-700-d10-all", CENTROIDS "fields=all", "GRAY8", 700, 700},
    {"shcentroid-400-cells", CELLS (20), "GRAY8", 400, 400, 1000},
    {"shcentroid-400-cells-text", CELLS (20), "GRAY8", 400, 400, 1000, TRUE},
    {"shcentroid-6400-cells", CELLS (80), "GRAY8", 1600, 1600, 10000},
    {"shcentroid-6400-cells-text", CELLS (80), "GRAY8", 1600, 1600, 10000,
        TRUE},
    {"lapsharpen-1920x1080", "lapsharpen", "RGBA", 1920, 1080},
};

static void
push_frame (
    BenchElement *b, GstBufferPool *pool, const BenchRing *pictures, guint i)
{
  GstBuffer *buffer = NULL;

  if (gst_buffer_pool_acquire_buffer (pool, &buffer, NULL) != GST_FLOW_OK)
    bench_fail ("the pool has no buffer.");
  gst_buffer_fill (buffer, 0, bench_ring_at (pictures, i), pictures->size);
  GST_BUFFER_PTS (buffer) = i * GST_MSECOND;
  bench_element_push (b, buffer);
}

static gdouble
get_number (const GstStructure *stats, const char *field)
{
  gdouble value = NAN;

  gst_structure_get_double (stats, field, &value);
  return value;
}

static void
report (BenchElement *b, const Case *c, const char *backend, guint n_frames,
    gboolean offered)
{
  GstStructure *stats = NULL;
  gchar *text;

  g_object_get (b->element, "stats", &stats, NULL);
  text = gst_structure_to_string (stats);
  bench_row (c->name, backend, "ours", get_number (stats, "time-p50"),
      get_number (stats, "time-p99"), NAN, get_number (stats, "time-max"),
      n_frames);
  g_print ("  %s pool; %s\n", offered ? "the element's" : "plain", text);
  g_free (text);
  gst_structure_free (stats);
}

/* Restarts the element, which starts its statistics anew; code and memory stay
 * warm. */
static void
run_frames (BenchElement *b, const Case *c, const char *backend,
    const BenchRing *pictures, guint n_frames, gboolean is_warm_up)
{
  GstBufferPool *pool;
  gboolean offered;

  bench_element_start (b);
  /* the backend, and so the pool, is known once the caps are */
  pool = bench_element_offered_pool (b, 4);
  offered = pool != NULL;
  if (!pool)
    pool = bench_element_plain_pool (b, 4);
  for (guint i = 0; i < n_frames; i++) {
    if (c->period)
      g_usleep (c->period);
    push_frame (b, pool, pictures, i);
  }
  bench_element_wait (b, n_frames);
  if (!is_warm_up)
    report (b, c, backend, n_frames, offered);
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
  bench_element_stop (b);
}

static GstFlowReturn
read_text (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

/* Returns: (transfer full): who reads the results, as a queue before a file
 * does: lets go at once */
static GstPad *
add_reader (BenchElement *b)
{
  GstPad *results = gst_element_request_pad_simple (b->element, "results");
  GstPad *reader = gst_pad_new ("reader", GST_PAD_SINK);

  gst_pad_set_chain_function (reader, read_text);
  gst_pad_set_active (reader, TRUE);
  bench_link (results, reader);
  gst_object_unref (results);
  return reader;
}

static void
run_case (const Case *c, const char *backend)
{
  guint n_frames = bench_is_quick () ? N_QUICK_FRAMES : N_FRAMES;
  gchar *line = g_strdup_printf ("%s backend=%s", c->element, backend);
  BenchRing pictures;
  BenchElement b;
  GstPad *reader = NULL;

  bench_element_open (
      &b, line, c->format, c->width, c->height, NULL, NULL, BENCH_VIEW_LEAVE);
  if (c->has_reader)
    reader = add_reader (&b);
  pictures = bench_ring_new (b.info.size, N_PICTURES * b.info.size);
  bench_ring_noise (&pictures, 1);
  run_frames (&b, c, backend, &pictures, 100, TRUE);
  run_frames (&b, c, backend, &pictures, n_frames, FALSE);
  bench_element_close (&b);
  gst_clear_object (&reader);
  bench_ring_free (&pictures);
  g_free (line);
}

int
main (int argc, char **argv)
{
  ImkError error;

  bench_open (argc, argv, "element");
  gst_init (NULL, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    run_case (&cases[i], "cpu");
  if (imk_backend_load ("cuda", &error) == IMK_OK)
    for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
      run_case (&cases[i], "cuda");
  else
    g_print ("  no rows for cuda: %s\n", error.message);
  return bench_close ();
}
