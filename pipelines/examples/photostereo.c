/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* photostereo in a C program: appsrc -> photostereo -> appsink, with the
 * normals read as 16-bit samples. Needs GStreamer alone, no header of ours: cc
 * photostereo.c -o photostereo $(pkg-config --cflags --libs \
 *   gstreamer-app-1.0 gstreamer-video-1.0) -lm */
#include <math.h>

#include <glib/gstdio.h>
#include <gst/app/app.h>
#include <gst/video/video.h>

enum { WIDTH = 64, HEIGHT = 48, N_LIGHTS = 24 };

/* Towards the light @i: x to the right, y up, z to the camera. */
static void
get_light (int i, double l[3])
{
  double z = 1 - 0.36 * (i + 0.5) / N_LIGHTS, r = sqrt (1 - z * z);

  l[0] = r * cos (2.4 * i);
  l[1] = r * sin (2.4 * i);
  l[2] = z;
}

/* A wavy surface. */
static void
get_normal (int x, int y, double n[3])
{
  double u = 0.4 * sin (x * 0.2), v = 0.4 * cos (y * 0.15);
  double length = sqrt (u * u + v * v + 1);

  n[0] = u / length;
  n[1] = v / length;
  n[2] = 1 / length;
}

/* Returns: the surface under the light @i */
static GstBuffer *
make_picture (int i)
{
  guint16 *pixels = g_new0 (guint16, WIDTH * HEIGHT);
  double l[3], n[3];

  get_light (i, l);
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++) {
      double shade;

      get_normal (x, y, n);
      shade = n[0] * l[0] + n[1] * l[1] + n[2] * l[2];
      pixels[y * WIDTH + x] = (guint16) lround (50000 * fmax (shade, 0));
    }
  return gst_buffer_new_wrapped (pixels, WIDTH * HEIGHT * sizeof (*pixels));
}

/* Returns: (transfer full): the name of a file with the lights, or NULL */
static gchar *
write_lights (void)
{
  GString *text = g_string_new (NULL);
  GError *error = NULL;
  gchar *path = NULL;
  int file = g_file_open_tmp ("lights-XXXXXX.txt", &path, NULL);

  if (file < 0)
    return NULL;
  g_close (file, NULL);
  for (int i = 0; i < N_LIGHTS; i++) {
    gchar number[G_ASCII_DTOSTR_BUF_SIZE];
    double l[3];

    get_light (i, l);
    for (int k = 0; k < 3; k++) /* with a dot in every locale */
      g_string_append_printf (text, "%s%c",
          g_ascii_dtostr (number, sizeof (number), l[k]), k < 2 ? ' ' : '\n');
  }
  if (!g_file_set_contents (path, text->str, -1, &error)) {
    g_printerr ("%s\n", error->message);
    g_clear_error (&error);
    g_clear_pointer (&path, g_free);
  }
  g_string_free (text, TRUE);
  return path;
}

/* The largest angle between what was found and the surface, in degrees; all
 * samples 0 are no normal. */
static double
compare (const guint16 *found)
{
  double worst = 0;

  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++) {
      const guint16 *p = found + 4 * (y * WIDTH + x);
      double n[3], dot = 0, length = 0;

      if (p[3] == 0)
        return 180;
      get_normal (x, y, n);
      for (int k = 0; k < 3; k++) {
        double v = (p[k] - 32768.0) / 32767;

        dot += v * n[k];
        length += v * v;
      }
      worst = fmax (worst, acos (fmin (dot / sqrt (length), 1)));
    }
  return worst * 180 / G_PI;
}

static gboolean
check_normals (GstSample *sample)
{
  GstBuffer *buffer = gst_sample_get_buffer (sample);
  GstMapInfo map;
  double worst = 180;

  if (gst_buffer_map (buffer, &map, GST_MAP_READ)) {
    worst = compare ((const guint16 *) map.data);
    gst_buffer_unmap (buffer, &map);
  }
  g_print ("normals are at most %.3f degrees off\n", worst);
  return worst < 0.1;
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
    g_printerr ("no result came out\n");
  }
  gst_object_unref (bus);
}

/* Two sets, as a turntable would bring them. */
static gboolean
run (GstElement *pipeline, GstAppSrc *source, GstAppSink *sink)
{
  gboolean right = TRUE;

  for (int set = 0; set < 2 && right; set++) {
    GstSample *sample;

    for (int i = 0; i < N_LIGHTS; i++)
      gst_app_src_push_buffer (source, make_picture (i));
    sample = gst_app_sink_try_pull_sample (sink, 5 * GST_SECOND);
    if (sample) {
      right = check_normals (sample);
      gst_sample_unref (sample);
    } else {
      print_error (pipeline);
      right = FALSE;
    }
  }
  return right;
}

int
main (int argc, char **argv)
{
  GError *error = NULL;
  GstElement *pipeline, *source, *sink;
  gchar *lights = write_lights ();
  gchar *description = g_strdup_printf (
      "appsrc name=in format=time caps=video/x-raw,format=GRAY16_LE,width=%d,"
      "height=%d,framerate=10/1 ! photostereo name=p lights-location=%s "
      "normal-encoding=rgba64 p.normal ! appsink name=out sync=false",
      WIDTH, HEIGHT, lights ? lights : "");
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
  if (lights)
    g_remove (lights);
  g_free (lights);
  return right ? 0 : 1;
}
