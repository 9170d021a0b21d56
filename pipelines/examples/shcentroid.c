/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* shcentroid in a C program: appsrc -> shcentroid -> appsink, with the
 * centroids read from the meta of the frame. Needs GStreamer and one header of
 * ours, no library: cc shcentroid.c -I../../common/results -o shcentroid \
 *   $(pkg-config --cflags --libs gstreamer-app-1.0 gstreamer-video-1.0) -lm */
#include <math.h>
#include <string.h>

#include <gst/app/app.h>
#include <gst/video/video.h>

#include "gstimagingreader.h"

enum { COLUMNS = 8, ROWS = 6, N_CELLS = COLUMNS * ROWS, PITCH = 20 };
enum { PEDESTAL = 100 }; /* counts of a camera without light */
enum { WIDTH = COLUMNS * PITCH, HEIGHT = ROWS * PITCH, N_FRAMES = 5 };

/* Of the flags of a cell: no flux, too little, no match, outside; there is no
 * centroid then. */
#define INVALID_MASK 227

typedef struct {
  double x, y;
} Point;

/* Spots of 16 bits near the middle of their cells; where goes to @places. */
static GstBuffer *
make_frame (GRand *rand, Point *places)
{
  guint16 *pixels = g_new0 (guint16, WIDTH * HEIGHT);
  const gsize size = WIDTH * HEIGHT * sizeof (*pixels);

  for (int cell = 0; cell < N_CELLS; cell++) {
    int left = cell % COLUMNS * PITCH, top = cell / COLUMNS * PITCH;
    Point p = {left + PITCH / 2 - 0.5 + g_rand_double_range (rand, -2, 2),
        top + PITCH / 2 - 0.5 + g_rand_double_range (rand, -2, 2)};

    for (int y = top; y < top + PITCH; y++)
      for (int x = left; x < left + PITCH; x++)
        pixels[y * WIDTH + x] = (guint16) lround (
            PEDESTAL +
            4000 * exp (-(pow (x - p.x, 2) + pow (y - p.y, 2)) / 4.5));
    places[cell] = p;
  }
  return gst_buffer_new_wrapped (pixels, size);
}

/* Root mean square distance of what was found from where the spots are, in
 * pixels; a large number where a spot was not found. */
static double
compare (const GstImagingReader *r, const Point *places)
{
  int x = gst_imaging_reader_field (r, "x");
  int y = gst_imaging_reader_field (r, "y");
  double sum = 0;

  for (gsize cell = 0; cell < r->n; cell++) {
    if (r->flags[cell] & INVALID_MASK)
      return 1e9;
    sum += pow (gst_imaging_reader_value (r, cell, x) - places[cell].x, 2) +
           pow (gst_imaging_reader_value (r, cell, y) - places[cell].y, 2);
  }
  return sqrt (sum / N_CELLS);
}

static gboolean
check_results (GstBuffer *buffer, const gchar *element, const Point *places)
{
  GstImagingReader r;
  double error;

  if (!gst_imaging_reader_open (&r, buffer, element))
    return FALSE;
  error = compare (&r, places);
  g_print (
      "frame %" G_GUINT64_FORMAT ": rms error %.4f pixel\n", r.frame, error);
  gst_imaging_reader_close (&r);
  return error < 0.02;
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
  } else {
    g_printerr ("no frame came out\n");
  }
  gst_object_unref (bus);
}

static gboolean
run (GstElement *pipeline, GstAppSrc *source, GstAppSink *sink)
{
  GRand *rand = g_rand_new_with_seed (1);
  gboolean right = TRUE;

  for (int i = 0; i < N_FRAMES && right; i++) {
    Point places[N_CELLS];
    GstSample *sample;

    gst_app_src_push_buffer (source, make_frame (rand, places));
    sample = gst_app_sink_try_pull_sample (sink, 5 * GST_SECOND);
    if (sample) {
      right = check_results (gst_sample_get_buffer (sample), "sh", places);
      gst_sample_unref (sample);
    } else {
      print_error (pipeline);
      right = FALSE;
    }
  }
  g_rand_free (rand);
  return right;
}

int
main (int argc, char **argv)
{
  GError *error = NULL;
  GstElement *pipeline, *source, *sink;
  gchar *description = g_strdup_printf (
      "appsrc name=in format=time caps=video/x-raw,format=GRAY16_LE,width=%d,"
      "height=%d,framerate=1000/1 ! shcentroid name=sh columns=%d rows=%d "
      "pitch-x=%d pitch-y=%d threshold-mode=auto ! appsink name=out sync=false",
      WIDTH, HEIGHT, COLUMNS, ROWS, PITCH, PITCH);
  gboolean right;

  gst_init (&argc, &argv);
  pipeline = gst_parse_launch (description, &error);
  g_free (description);
  if (error) { /* no such element: are the plug-ins installed? */
    g_printerr ("%s\n", error->message);
    g_error_free (error);
    return 1;
  }
  source = gst_bin_get_by_name (GST_BIN (pipeline), "in");
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  right = run (pipeline, GST_APP_SRC (source), GST_APP_SINK (sink));
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (source);
  gst_object_unref (sink);
  gst_object_unref (pipeline);
  return right ? 0 : 1;
}
