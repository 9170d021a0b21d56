/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* insarxcorr in a C program: two appsrc -> insarxcorr -> appsink, lines of two
 * images in, offsets out as tensors, row by row of patches. Needs GStreamer
 * alone, no header of ours: cc insarxcorr.c -o insarxcorr $(pkg-config --cflags
 *   --libs gstreamer-app-1.0) -lm */
#include <math.h>

#include <gst/app/app.h>

enum { WIDTH = 300, HEIGHT = 400, LINES = 50 }; /* LINES a buffer */
enum { SHIFT_X = 3, SHIFT_Y = -2, NX = 5, NY = 6 };

/* Of a patch, in this order; more numbers follow. */
enum { FIELD_X, FIELD_Y, FIELD_DX, FIELD_DY };

/* A sample, real and imaginary part: noise that is the same for one place. */
static void
put_sample (gint16 *sample, int x, int y)
{
  guint32 hash =
      (guint32) (y + 1000) * 2654435761u ^ (guint32) (x + 1000) * 2246822519u;

  for (int i = 0; i < 2; i++) {
    hash = (hash ^ hash >> 15) * 2654435761u;
    sample[i] = (gint16) ((hash >> 16) % 2001) - 1000;
  }
}

/* Lines @first and on of an image that is @dx and @dy away. */
static GstBuffer *
make_lines (int first, int dx, int dy)
{
  gint16 *samples = g_new (gint16, 2 * WIDTH * LINES);

  for (int y = 0; y < LINES; y++)
    for (int x = 0; x < WIDTH; x++)
      put_sample (samples + 2 * (y * WIDTH + x), x - dx, first + y - dy);
  return gst_buffer_new_wrapped (
      samples, 2 * WIDTH * LINES * sizeof (*samples));
}

/* Rows come as soon as their lines are there. Returns: the largest error of
 * their offsets */
static double
check_row (GstSample *sample, int *n)
{
  const GstStructure *caps =
      gst_caps_get_structure (gst_sample_get_caps (sample), 0);
  const gchar *dims = gst_structure_get_string (caps, "dimensions");
  GstBuffer *buffer = gst_sample_get_buffer (sample);
  gint64 n_fields = g_ascii_strtoll (dims, NULL, 10);
  double worst = 0;
  GstMapInfo map;

  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    return 1e9;
  for (gsize i = 0; i < map.size / sizeof (float); i += (gsize) n_fields) {
    const float *patch = (const float *) map.data + i;

    g_print ("(%.0f, %.0f): %.3f columns, %.3f lines\n", patch[FIELD_X],
        patch[FIELD_Y], patch[FIELD_DX], patch[FIELD_DY]);
    worst = fmax (worst, fabs (patch[FIELD_DX] - SHIFT_X));
    worst = fmax (worst, fabs (patch[FIELD_DY] - SHIFT_Y));
    (*n)++;
  }
  gst_buffer_unmap (buffer, &map);
  return worst;
}

static void
print_error (GstElement *pipeline)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  GError *error = NULL;

  if (message) {
    gst_message_parse_error (message, &error, NULL);
    g_printerr ("%s\n", error->message);
    g_error_free (error);
    gst_message_unref (message);
  }
  gst_object_unref (bus);
}

static gboolean
run (GstElement *pipeline)
{
  GstElement *reference = gst_bin_get_by_name (GST_BIN (pipeline), "r");
  GstElement *secondary = gst_bin_get_by_name (GST_BIN (pipeline), "s");
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  GstSample *sample;
  double worst = 0;
  int n = 0;

  /* appsrc keeps what insarxcorr has no room for yet */
  for (int y = 0; y < HEIGHT; y += LINES) {
    gst_app_src_push_buffer (GST_APP_SRC (reference), make_lines (y, 0, 0));
    gst_app_src_push_buffer (
        GST_APP_SRC (secondary), make_lines (y, SHIFT_X, SHIFT_Y));
  }
  gst_app_src_end_of_stream (GST_APP_SRC (reference));
  gst_app_src_end_of_stream (GST_APP_SRC (secondary));
  while ((sample = gst_app_sink_try_pull_sample (
              GST_APP_SINK (sink), 10 * GST_SECOND))) {
    worst = fmax (worst, check_row (sample, &n));
    gst_sample_unref (sample);
  }
  if (n != NX * NY)
    print_error (pipeline);
  g_print ("%d patches, off by %.3f at most\n", n, worst);
  gst_object_unref (reference);
  gst_object_unref (secondary);
  gst_object_unref (sink);
  return n == NX * NY && worst < 0.1;
}

#define SOURCE(name, pad) \
  "appsrc name=" name " caps=application/x-slc,format=ci16,width=300," \
  "height=400 ! x." pad " "

int
main (int argc, char **argv)
{
  GstElement *pipeline;
  gboolean right;

  gst_init (&argc, &argv);
  pipeline = gst_parse_launch (
      SOURCE ("r", "reference")
          SOURCE ("s", "secondary") "insarxcorr name=x nx=5 ny=6 xsearch=32 "
                                    "ysearch=32 grid=even ! appsink name=out "
                                    "sync=false caps=other/tensors",
      NULL);
  if (!pipeline)
    return 77; /* not installed */
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  right = run (pipeline);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
  return right ? 0 : 1;
}
