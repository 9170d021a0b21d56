/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* photostereo from pictures to normals on the host: a set of 260 of them as
 * fast as they are taken, until who looks has its result; of 20 Mpx in
 * page-locked memory on 1, 2, 4, ... GPUs, of 3 Mpx on 1 and 2 threads of the
 * CPU. */
#include <math.h>
#include <string.h>

#include "imk/device.h"
#include "bench-element.h"

enum { N_LIGHTS = 260, N_PICTURES = 26, N_SETS = 5, MAX_WIDTH = 5472 };

/* One run: what it is called, on which threads or devices, pictures how large.
 */
typedef struct Case {
  const gchar *backend, *name, *settings;
  guint width, height;
} Case;

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
render (const Case *c, guint8 *pixels, guint light)
{
  guint8 row[MAX_WIDTH];
  double l[3];

  light_at (light, l);
  for (guint x = 0; x < c->width; x++) {
    double slope = 0.6 * sin (0.02 * x), length = sqrt (1 + slope * slope);
    double diffuse = MAX ((slope * l[0] + l[2]) / length, 0);

    row[x] = (guint8) (120 * diffuse + 100 * pow (diffuse, 64));
  }
  for (guint y = 0; y < c->height; y++)
    memcpy (pixels + (gsize) y * c->width, row, c->width);
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

/* @pool: NULL for memory of the system */
static void
fill_pictures (
    const Case *c, GstBufferPool *pool, GstBuffer *pictures[N_PICTURES])
{
  for (guint i = 0; i < N_PICTURES; i++) {
    GstMapInfo map;

    if (!pool)
      pictures[i] =
          gst_buffer_new_allocate (NULL, (gsize) c->width * c->height, NULL);
    else if (gst_buffer_pool_acquire_buffer (pool, &pictures[i], NULL) !=
             GST_FLOW_OK)
      bench_fail ("the pool has no buffer.");
    if (!gst_buffer_map (pictures[i], &map, GST_MAP_WRITE))
      bench_fail ("a picture cannot be mapped.");
    render (c, map.data, i);
    gst_buffer_unmap (pictures[i], &map);
  }
}

static void
push_sets (const Case *c, GstPad *camera, GstBuffer *pictures[N_PICTURES],
    Viewer *viewer)
{
  double all[N_SETS], after[N_SETS];
  gchar *name = g_strdup_printf (
      "%s-%ux%ux%u-all", c->name, c->width, c->height, N_LIGHTS);

  for (guint set = 0; set <= N_SETS; set++) {
    double start = bench_now (), last = 0;

    for (guint i = 0; i < N_LIGHTS; i++) {
      last = bench_now (); /* in the end, when the last picture comes */
      if (gst_pad_push (camera, gst_buffer_ref (pictures[i % N_PICTURES])) !=
          GST_FLOW_OK)
        bench_fail ("the element does not take a picture.");
    }
    g_mutex_lock (&viewer->lock);
    while (viewer->n_received <= set)
      g_cond_wait (&viewer->came, &viewer->lock);
    g_mutex_unlock (&viewer->lock);
    if (set > 0) { /* after a warm-up */
      all[set - 1] = bench_now () - start;
      after[set - 1] = bench_now () - last;
    }
  }
  bench_samples (name, c->backend, "ours", all, N_SETS);
  g_free (name);
  name = g_strdup_printf (
      "%s-%ux%ux%u-after", c->name, c->width, c->height, N_LIGHTS);
  bench_samples (name, c->backend, "ours", after, N_SETS);
  g_free (name);
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
run (const Case *c, const gchar *lights)
{
  gchar *line = g_strdup_printf (
      "photostereo backend=%s mm-per-pixel=0.02 bayer-pattern=rggb "
      "lights-location=%s %s",
      c->backend, lights, c->settings);
  GstCaps *caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING,
      "GRAY8", "width", G_TYPE_INT, c->width, "height", G_TYPE_INT, c->height,
      "framerate", GST_TYPE_FRACTION, 1000, 1, NULL);
  GstBuffer *pictures[N_PICTURES];
  Viewer viewer = {.n_received = 0};
  GstBufferPool *pool;
  GstVideoInfo info;
  GstElement *element;
  GstPad *camera, *sink;

  element = gst_parse_launch (line, NULL);
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
  if (!pool && g_str_equal (c->backend, "cuda"))
    bench_fail ("the element offers no pool.");
  fill_pictures (c, pool, pictures);
  push_sets (c, camera, pictures, &viewer);
  gst_pad_push_event (camera, gst_event_new_eos ());
  gst_element_set_state (element, GST_STATE_NULL);
  for (guint i = 0; i < N_PICTURES; i++)
    gst_clear_buffer (&pictures[i]);
  if (pool)
    gst_buffer_pool_set_active (pool, FALSE);
  gst_clear_object (&pool);
  gst_object_unref (camera);
  gst_object_unref (sink);
  gst_object_unref (element);
  gst_caps_unref (caps);
  g_free (line);
}

static void
run_threads (const gchar *lights)
{
  static const Case cases[] = {
      {"cpu", "threads-1", "n-threads=1", 2048, 1500},
      {"cpu", "threads-2", "n-threads=2", 2048, 1500},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    run (&cases[i], lights);
}

static void
run_devices (const gchar *lights)
{
  GString *devices = g_string_new ("cuda-devices=<0");
  const ImkDevice *device;
  ImkError error;
  int n_devices;

  bench_ok (imk_backend_load ("cuda", &error), &error);
  bench_ok (imk_device_get (&device, &error), &error);
  bench_ok (device->count (&n_devices, &error), &error);
  for (int n = 1, listed = 1; n <= n_devices; n *= 2) {
    gchar *name = g_strdup_printf ("gpus-%d", n), *settings;
    Case c = {"cuda", name, NULL, 5472, 3648};

    for (; listed < n; listed++)
      g_string_append_printf (devices, ",%d", listed);
    settings = g_strconcat (devices->str, ">", NULL);
    c.settings = settings;
    run (&c, lights);
    g_free (settings);
    g_free (name);
  }
  g_string_free (devices, TRUE);
}

int
main (int argc, char **argv)
{
  gchar *lights;

  bench_open (argc, argv, "photostereo-element");
  gst_init (NULL, NULL);
  lights = write_lights ();
  if (bench_is_gpu ())
    run_devices (lights);
  else
    run_threads (lights);
  g_free (lights);
  return bench_close ();
}
