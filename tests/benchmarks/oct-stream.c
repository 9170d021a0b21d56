/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "oct-stream.h"

#include <glib/gstdio.h>
#include <math.h>
#include <time.h>

#include "bench-element.h"

/* --- calibrations --------------------------------------------------------- */

gchar *
oct_calibration (guint cameras)
{
  GString *text = g_string_new (NULL);
  gchar *path = NULL;
  gint file = g_file_open_tmp ("octbscan-XXXXXX.ini", &path, NULL);

  if (file < 0)
    bench_fail ("there is no place for a calibration.");
  g_close (file, NULL);
  for (guint i = 0; i < cameras; i++)
    g_string_append_printf (text,
        "[camera %u]\nlambda-first=%u\nlambda-last=%u\n"
        "dispersion=0;0;-%u;0.5\n",
        i, 806 - i, 675 + i, 12 - i);
  if (!g_file_set_contents (path, text->str, -1, NULL))
    bench_fail ("%s cannot be written.", path);
  g_string_free (text, TRUE);
  return path;
}

void
oct_calibration_free (gchar *path)
{
  g_unlink (path);
  g_free (path);
}

/* --- the viewers ---------------------------------------------------------- */

static GstFlowReturn
on_image (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  OctStream *s = g_object_get_data (G_OBJECT (pad), "stream");
  OctViewer *v = &s->viewers[pad == s->viewers[0].pad ? 0 : 1];
  gint64 frame = GST_BUFFER_PTS (buffer) / GST_USECOND;
  GstMapInfo map;

  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    bench_fail ("image %" G_GINT64_FORMAT " cannot be read.", frame);
  gst_buffer_unmap (buffer, &map);
  if (frame != v->last_frame + 1)
    v->n_out_of_order++;
  v->last_frame = frame;
  if (s->arrivals && v == s->viewers)
    s->arrivals[frame] = bench_now ();
  gst_buffer_unref (buffer);
  __atomic_add_fetch (&v->n_received, 1, __ATOMIC_RELEASE);
  return GST_FLOW_OK;
}

static void
add_viewer (OctStream *s, const gchar *name)
{
  OctViewer *v = &s->viewers[s->n_viewers++];
  GstPad *src = gst_element_get_static_pad (s->element, name);

  if (!src)
    src = gst_element_request_pad_simple (s->element, name);
  v->pad = gst_pad_new (name, GST_PAD_SINK);
  v->last_frame = -1;
  g_object_set_data (G_OBJECT (v->pad), "stream", s);
  gst_pad_set_chain_function (v->pad, on_image);
  gst_pad_set_active (v->pad, TRUE);
  bench_link (src, v->pad);
  gst_object_unref (src);
}

/* --- the camera ----------------------------------------------------------- */

/* Fringes of three inclined layers, of the wavelengths that oct_calibration ()
 * has. Layers that were the same in all A-scans would go with the background,
 * and leave noise alone. */
static const gfloat *
fringes (void)
{
  static gfloat samples[OCT_LINES * OCT_SAMPLES];
  const gdouble depths[] = {100e3, 180e3, 300e3}, slope = 73; /* nm */

  if (samples[0] != 0)
    return samples;
  for (guint i = 0; i < G_N_ELEMENTS (samples); i++) {
    gdouble column = i % OCT_SAMPLES, deeper = i / OCT_SAMPLES * slope;
    gdouble wavelength = 806 + (675.0 - 806) * column / (OCT_SAMPLES - 1);
    gdouble sum = 2000;

    for (guint k = 0; k < G_N_ELEMENTS (depths); k++)
      sum += 100 * cos (4 * G_PI * (depths[k] + deeper) / wavelength);
    samples[i] = (gfloat) sum;
  }
  return samples;
}

/* A sample, since the ends of noise alone are sought again and again, and since
 * no camera shows noise alone for long. */
static void
fill_once (OctStream *s, GstBuffer *buffer)
{
  const gfloat *fringe = fringes ();
  GstMapInfo map;
  guint32 v;

  if (!g_hash_table_add (s->filled, buffer))
    return;
  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  v = (guint32) GPOINTER_TO_SIZE (map.data);
  for (gsize i = 0; i < map.size / 2; i++) {
    v = v * 1664525u + 1013904223u;
    ((guint16 *) map.data)[i] =
        (guint16) ((s->has_sample ? fringe[i % (OCT_LINES * OCT_SAMPLES)]
                                  : 2000) +
                   (v >> 24));
  }
  gst_buffer_unmap (buffer, &map);
}

/* All that the camera has, as it takes about as long as from one B-scan to the
 * next: a camera that did so on the way would be late. */
static void
fill_all (OctStream *s, guint n)
{
  GstBuffer **buffers = g_new (GstBuffer *, n);

  for (guint i = 0; i < n; i++) {
    if (gst_buffer_pool_acquire_buffer (s->pool, &buffers[i], NULL) !=
        GST_FLOW_OK)
      bench_fail ("the pool has no buffer.");
    fill_once (s, buffers[i]);
  }
  for (guint i = 0; i < n; i++)
    gst_buffer_unref (buffers[i]);
  g_free (buffers);
}

/* A pool without an end grows with each burst, and to fill a buffer takes ten
 * times as long as to push it: a GPU would wait for that.
 * Returns: buffers of as many B-scans as a queue for two GPUs holds */
static guint
n_ready (const OctStream *s)
{
  guint n_together = s->info.height / OCT_LINES;

  return bench_is_gpu () ? MAX (8, 2048 / MAX (n_together, 1)) : 0;
}

static void
start (OctStream *s, guint n_buffers)
{
  GstPad *sink = gst_element_get_static_pad (s->element, "sink");

  s->camera = gst_pad_new ("camera", GST_PAD_SRC);
  gst_pad_set_active (s->camera, TRUE);
  bench_link (s->camera, sink);
  gst_object_unref (sink);
  bench_play (s->element, s->camera, s->caps);
  s->pool =
      bench_offered_pool (s->camera, s->caps, &s->info, n_buffers, n_buffers);
  if (!s->pool)
    s->pool = bench_plain_pool (s->caps, &s->info, n_buffers, n_buffers);
  fill_all (s, n_buffers ? n_buffers : n_ready (s));
}

void
oct_stream_open (OctStream *s, const gchar *properties, guint lines,
    gdouble rate, gboolean linear, gboolean has_sample, guint n_buffers)
{
  const gchar *more = g_getenv ("OCT_BENCH_SETTINGS");
  gchar *launch = g_strdup_printf ("octbscan %s %s", properties, more ?: "");
  GError *error = NULL;
  gint fps_n, fps_d;

  *s = (OctStream){
      .element = gst_parse_launch (launch, &error), .has_sample = has_sample};
  if (error)
    bench_fail ("%s", error->message);
  gst_object_ref_sink (s->element);
  s->filled = g_hash_table_new (NULL, NULL);
  gst_util_double_to_fraction (rate, &fps_n, &fps_d);
  s->caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING,
      "GRAY16_LE", "width", G_TYPE_INT, OCT_SAMPLES, "height", G_TYPE_INT,
      lines, "framerate", GST_TYPE_FRACTION, fps_n, fps_d, NULL);
  gst_video_info_from_caps (&s->info, s->caps);
  add_viewer (s, "src");
  if (linear)
    add_viewer (s, "linear");
  start (s, n_buffers);
  g_free (launch);
}

gboolean
oct_stream_push (OctStream *s, guint64 i)
{
  GstBufferPoolAcquireParams dont_wait = {
      .flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT};
  GstBuffer *buffer = NULL;
  GstFlowReturn flow =
      gst_buffer_pool_acquire_buffer (s->pool, &buffer, &dont_wait);

  if (flow == GST_FLOW_EOS)
    return FALSE;
  if (flow != GST_FLOW_OK)
    bench_fail ("the pool has no buffer.");
  fill_once (s, buffer);
  GST_BUFFER_PTS (buffer) = i * GST_USECOND;
  GST_BUFFER_DURATION (buffer) = s->info.height / OCT_LINES * GST_USECOND;
  if (gst_pad_push (s->camera, buffer) != GST_FLOW_OK)
    bench_fail ("the element does not take B-scan %" G_GUINT64_FORMAT ".", i);
  return TRUE;
}

void
oct_stream_end (OctStream *s, guint64 n_expected)
{
  gst_pad_push_event (s->camera, gst_event_new_eos ());
  for (guint i = 0; i < s->n_viewers; i++)
    if (s->viewers[i].n_received != n_expected)
      bench_fail ("%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                  " images came out.",
          s->viewers[i].n_received, n_expected);
}

double
oct_stream_busy (void)
{
  struct timespec t;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

guint64
oct_stream_stat (OctStream *s, const gchar *field)
{
  GstStructure *stats = NULL;
  guint64 value = 0;

  g_object_get (s->element, "stats", &stats, NULL);
  gst_structure_get_uint64 (stats, field, &value);
  gst_structure_free (stats);
  return value;
}

void
oct_stream_close (OctStream *s)
{
  gst_buffer_pool_set_active (s->pool, FALSE);
  gst_element_set_state (s->element, GST_STATE_NULL);
  gst_pad_set_active (s->camera, FALSE);
  gst_object_unref (s->camera);
  for (guint i = 0; i < s->n_viewers; i++) {
    gst_pad_set_active (s->viewers[i].pad, FALSE);
    gst_object_unref (s->viewers[i].pad);
  }
  gst_object_unref (s->pool);
  g_hash_table_unref (s->filled);
  gst_object_unref (s->element);
  gst_caps_unref (s->caps);
}
