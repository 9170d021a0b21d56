/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* photostereo from page-locked memory to normals on the host: a set of 260
 * pictures as fast as they are taken, until who looks has its result, on 1, 2,
 * 4, ... GPUs. */
#include <math.h>
#include <string.h>

#include "core/device.h"
#include "bench-element.h"

enum {
  N_LIGHTS = 260,
  N_PICTURES = 26,
  N_SETS = 5,
  WIDTH = 5472,
  HEIGHT = 3648
};

typedef struct Viewer {
  GMutex lock;
  GCond came;
  guint n_received;
} Viewer;

static void
light_at (guint i, double l[3])
{
  double z = 0.1 + 0.85 * (i + 0.5) / N_PICTURES, r = sqrt (1 - z * z);

  l[0] = r * cos (2.399963 * i);
  l[1] = r * sin (2.399963 * i);
  l[2] = z;
}

/* Each picture comes ten times in a set, and its light as well. */
static gchar *
write_lights (void)
{
  gchar *path = g_build_filename (g_get_tmp_dir (), "bench-lights.txt", NULL);
  GString *text = g_string_new (NULL);
  gchar number[G_ASCII_DTOSTR_BUF_SIZE];

  for (guint i = 0; i < N_LIGHTS; i++) {
    double l[3];

    light_at (i % N_PICTURES, l);
    for (guint k = 0; k < 3; k++)
      g_string_append_printf (
          text, "%s ", g_ascii_dtostr (number, sizeof (number), 600 * l[k]));
    g_string_append (text, "\n");
  }
  if (!g_file_set_contents (path, text->str, -1, NULL))
    bench_fail ("%s cannot be written.", path);
  g_string_free (text, TRUE);
  return path;
}

/* Waves that run along x, with a highlight on each. */
static void
render (guint8 *pixels, guint light)
{
  guint8 row[WIDTH];
  double l[3];

  light_at (light, l);
  for (guint x = 0; x < WIDTH; x++) {
    double slope = 0.6 * sin (0.02 * x), length = sqrt (1 + slope * slope);
    double diffuse = MAX ((slope * l[0] + l[2]) / length, 0);

    row[x] = (guint8) (120 * diffuse + 100 * pow (diffuse, 64));
  }
  for (guint y = 0; y < HEIGHT; y++)
    memcpy (pixels + (gsize) y * WIDTH, row, WIDTH);
}

static GstFlowReturn
on_normals (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Viewer *viewer = g_object_get_data (G_OBJECT (pad), "viewer");
  GstMapInfo map;

  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    bench_fail ("the normals cannot be mapped.");
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
  g_mutex_lock (&viewer->lock);
  viewer->n_received++;
  g_cond_signal (&viewer->came);
  g_mutex_unlock (&viewer->lock);
  return GST_FLOW_OK;
}

static void
fill_pictures (GstBufferPool *pool, GstBuffer *pictures[N_PICTURES])
{
  for (guint i = 0; i < N_PICTURES; i++) {
    GstMapInfo map;

    if (gst_buffer_pool_acquire_buffer (pool, &pictures[i], NULL) !=
            GST_FLOW_OK ||
        !gst_buffer_map (pictures[i], &map, GST_MAP_WRITE))
      bench_fail ("the pool has no buffer.");
    render (map.data, i);
    gst_buffer_unmap (pictures[i], &map);
  }
}

static void
push_sets (GstPad *camera, GstBuffer *pictures[N_PICTURES], Viewer *viewer,
    const char *name)
{
  double samples[N_SETS];

  for (guint set = 0; set <= N_SETS; set++) {
    double start = bench_now ();

    for (guint i = 0; i < N_LIGHTS; i++)
      if (gst_pad_push (camera, gst_buffer_ref (pictures[i % N_PICTURES])) !=
          GST_FLOW_OK)
        bench_fail ("the element does not take a picture.");
    g_mutex_lock (&viewer->lock);
    while (viewer->n_received <= set)
      g_cond_wait (&viewer->came, &viewer->lock);
    g_mutex_unlock (&viewer->lock);
    if (set > 0) /* after a warm-up */
      samples[set - 1] = bench_now () - start;
  }
  bench_samples (name, "cuda", "ours", samples, N_SETS);
}

/* A pad of the benchmark, linked to @other (transfer full). */
static GstPad *
link_pad (GstPad *other, GstPadDirection direction)
{
  GstPad *pad = gst_pad_new (NULL, direction);

  if (direction == GST_PAD_SINK)
    gst_pad_set_chain_function (pad, on_normals);
  gst_pad_set_active (pad, TRUE);
  if (direction == GST_PAD_SINK)
    bench_link (other, pad);
  else
    bench_link (pad, other);
  gst_object_unref (other);
  return pad;
}

static void
run (const gchar *lights, guint n)
{
  GString *line = g_string_new ("photostereo backend=cuda mm-per-pixel=0.02 "
                                "bayer-pattern=rggb lights-location=");
  gchar *name =
      g_strdup_printf ("gpus-%u-%ux%ux%u-all", n, WIDTH, HEIGHT, N_LIGHTS);
  GstCaps *caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING,
      "GRAY8", "width", G_TYPE_INT, WIDTH, "height", G_TYPE_INT, HEIGHT,
      "framerate", GST_TYPE_FRACTION, 1000, 1, NULL);
  GstBuffer *pictures[N_PICTURES];
  Viewer viewer = {.n_received = 0};
  GstBufferPool *pool;
  GstVideoInfo info;
  GstElement *element;
  GstPad *camera, *sink;

  g_string_append_printf (line, "%s cuda-devices=\"0", lights);
  for (guint i = 1; i < n; i++)
    g_string_append_printf (line, ";%u", i);
  g_string_append (line, "\"");
  element = gst_parse_launch (line->str, NULL);
  if (!element)
    bench_fail ("there is no element photostereo.");
  gst_object_ref_sink (element);
  camera = link_pad (gst_element_get_static_pad (element, "sink"), GST_PAD_SRC);
  sink = link_pad (
      gst_element_request_pad_simple (element, "normal"), GST_PAD_SINK);
  g_object_set_data (G_OBJECT (sink), "viewer", &viewer);
  gst_video_info_from_caps (&info, caps);
  bench_play (element, camera, caps);
  pool = bench_offered_pool (camera, caps, &info, N_PICTURES, 0);
  if (!pool)
    bench_fail ("the element offers no pool.");
  fill_pictures (pool, pictures);
  push_sets (camera, pictures, &viewer, name);
  gst_pad_push_event (camera, gst_event_new_eos ());
  gst_element_set_state (element, GST_STATE_NULL);
  for (guint i = 0; i < N_PICTURES; i++)
    gst_clear_buffer (&pictures[i]);
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
  gst_object_unref (camera);
  gst_object_unref (sink);
  gst_object_unref (element);
  gst_caps_unref (caps);
  g_string_free (line, TRUE);
  g_free (name);
}

int
main (int argc, char **argv)
{
  const ImkDevice *device;
  ImkError error;
  gchar *lights;
  int n_devices;

  bench_open (argc, argv, "photostereo-element");
  gst_init (NULL, NULL);
  if (!bench_is_gpu ())
    return bench_close ();
  bench_ok (imk_backend_load ("cuda", &error), &error);
  bench_ok (imk_device_get (&device, &error), &error);
  bench_ok (device->count (&n_devices, &error), &error);
  lights = write_lights ();
  for (guint n = 1; n <= (guint) n_devices; n *= 2)
    run (lights, n);
  g_free (lights);
  return bench_close ();
}
