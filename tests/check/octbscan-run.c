/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "octbscan-run.h"

#include <math.h>

const gchar *const pad_names[] = {"src", "linear", "complex", "enface"};

gboolean on_cuda;

/* --- expected images ----------------------------------------------------- */

static guint16
sample_at (guint bscan, guint line, guint x)
{
  guint32 v = ((bscan * HEIGHT + line) * WIDTH + x + 1) * 2654435761u;
  gdouble fringe = cos (0.3 * x + bscan + 0.1 * line * line);

  v ^= v >> 15;
  v *= 2246822519u;
  return (guint16) (3000 + 10 * x + ((v ^ v >> 13) >> 22) + 400 * fringe);
}

GstBuffer *
bscan_new (guint i)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, HEIGHT * WIDTH * 2, NULL);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_WRITE);

  for (guint k = 0; k < HEIGHT * WIDTH; k++)
    ((guint16 *) map.data)[k] = sample_at (i, k / WIDTH, k % WIDTH);
  GST_BUFFER_PTS (buffer) = i * 10 * GST_MSECOND;
  GST_BUFFER_DURATION (buffer) = 10 * GST_MSECOND;
  return buffer;
}

ImkOctbscanConfig
base_config (void)
{
  ImkOctbscanConfig c;

  imk_octbscan_config_init (&c);
  c.width = WIDTH;
  c.height = HEIGHT;
  c.taper_cut = 7;
  c.upsample = 128;
  c.range_max = 90;
  return c;
}

ImkImage
image_of (gpointer data, guint width, guint height, ImkType type)
{
  return (ImkImage){data, width * imk_type_size (type), width, height, 1, type,
      IMK_LOCATION_HOST};
}

/* As the page says: (v - lo) / (hi - lo), clamped, times 255, rounded. */
static guint8 *
levels_of (const gfloat *values, guint n, gfloat lo, gfloat hi)
{
  guint8 *levels = g_malloc (n);

  for (guint i = 0; i < n; i++) {
    gfloat level = (values[i] - lo) * (255 / (hi - lo));

    levels[i] = (guint8) (CLAMP (level, 0, 255) + 0.5f);
  }
  return levels;
}

Expected
expect (ImkOctbscanConfig *c, guint n, guint every)
{
  Expected e = {.n = n, .n_ascans = imk_octbscan_n_ascans (c)};
  g_autofree gfloat *rows = g_new0 (gfloat, MAX_BSCANS * e.n_ascans);
  guint size = e.n_ascans * DEPTHS;
  ImkOctbscan *kernel = NULL;
  ImkError error;

  check_ok (imk_octbscan_new (IMK_BACKEND_CPU, c, &kernel, &error), &error);
  for (guint i = 0; i < n; i++) {
    g_autoptr (GstBuffer) buffer = bscan_new (i);
    gboolean shows = (i + 1) % every == 0 || i + 1 == n;
    guint k = e.n_images;
    gfloat motion[4];
    ImkImage in, z, db, linear, enface;
    ImkImage track = image_of (motion, G_N_ELEMENTS (motion), 1, IMK_TYPE_F32);
    ImkOctbscanJob job = {
        .in = &in,
        .first_camera = i * HEIGHT % c->n_cameras,
        .complex = &z,
        .track = &track,
        .backward = c->bidirectional && i % 2,
    };
    g_auto (CheckMap) map = check_map (buffer, GST_MAP_READ);

    e.complex[i] = g_new0 (gfloat, 2 * HEIGHT * DEPTHS);
    in = image_of (map.data, WIDTH, HEIGHT, IMK_TYPE_U16);
    z = image_of (e.complex[i], DEPTHS, HEIGHT, IMK_TYPE_CF32);
    if (shows) {
      e.floats[SRC][k] = g_new0 (gfloat, size);
      e.floats[LINEAR][k] = g_new0 (gfloat, size);
      db = image_of (e.floats[SRC][k], e.n_ascans, DEPTHS, IMK_TYPE_F32);
      linear = image_of (e.floats[LINEAR][k], e.n_ascans, DEPTHS, IMK_TYPE_F32);
      enface = image_of (rows + k * e.n_ascans, e.n_ascans, 1, IMK_TYPE_F32);
      job.db = &db;
      job.linear = &linear;
      job.enface = &enface;
      e.n_images++;
    }
    check_ok (imk_octbscan_process (kernel, &job, 1, NULL, &error), &error);
    e.shifts[i] = motion[3];
    if (shows) {
      e.db[k] = levels_of (
          e.floats[SRC][k], size, (gfloat) c->range_min, (gfloat) c->range_max);
      e.linear[k] = levels_of (e.floats[LINEAR][k], size,
          (gfloat) c->linear_min, (gfloat) c->linear_max);
    }
  }
  for (; e.n_volumes < e.n_images / VOLUME; e.n_volumes++) {
    ImkImage in = image_of (rows + e.n_volumes * VOLUME * e.n_ascans,
        e.n_ascans, VOLUME, IMK_TYPE_F32);
    ImkImage out;

    e.floats[ENFACE][e.n_volumes] = g_new0 (gfloat, VOLUME * e.n_ascans);
    out = image_of (
        e.floats[ENFACE][e.n_volumes], e.n_ascans, VOLUME, IMK_TYPE_F32);
    check_ok (
        imk_octbscan_level_image (c, TRUE, &in, &out, NULL, &error), &error);
    e.enface[e.n_volumes] = levels_of (e.floats[ENFACE][e.n_volumes],
        VOLUME * e.n_ascans, (gfloat) c->range_min, (gfloat) c->range_max);
  }
  imk_octbscan_free (kernel);
  return e;
}

void
expected_free (Expected *e)
{
  for (guint i = 0; i < MAX_BSCANS; i++) {
    g_free (e->db[i]);
    g_free (e->linear[i]);
    g_free (e->complex[i]);
    g_free (e->enface[i]);
    for (guint p = 0; p < N_PADS; p++)
      g_free (e->floats[p][i]);
  }
}

/* --- output ----------------------------------------------------------- */

static Run
run_new_with (const gchar *launch, guint pads, gboolean floats)
{
  Run r = {
      .element = check_launch (launch),
      .has_src = pads & 1 << SRC,
      .has_floats = floats,
  };

  r.bus = check_watch (r.element);
  gst_util_set_object_arg (
      G_OBJECT (r.element), "backend", on_cuda ? "cuda" : "cpu");
  r.pads[SRC] = gst_harness_new_with_element (
      r.element, "sink", pads & 1 << SRC ? "src" : NULL);
  for (guint p = LINEAR; p < N_PADS; p++)
    if (pads & 1 << p) {
      r.pads[p] = gst_harness_new_with_element (r.element, NULL, pad_names[p]);
      gst_harness_play (r.pads[p]);
    }
  for (guint p = 0; p < N_PADS; p++)
    if (floats && pads & 1 << p)
      gst_harness_set_sink_caps_str (r.pads[p], "other/tensors");
  gst_harness_set_src_caps_str (r.pads[SRC], CAPS);
  return r;
}

Run
run_new (const gchar *launch, guint pads)
{
  return run_new_with (launch, pads, FALSE);
}

Run
run_new_floats (const gchar *launch, guint pads)
{
  return run_new_with (launch, pads, TRUE);
}

void
run_free (Run *r)
{
  for (guint p = N_PADS - 1; p > 0; p--)
    if (r->pads[p])
      gst_harness_teardown (r->pads[p]);
  check_take_down (r->element, r->bus, r->pads, 1);
}

void
check_levels (GstBuffer *buffer, const guint8 *expected, guint width,
    guint height, const gchar *what, guint k)
{
  gint tolerance = on_cuda && !check_is_mock () ? 1 : 0;
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_READ);

  for (guint y = 0; y < height; y++)
    for (guint x = 0; x < width; x++) {
      gint found = map.data[y * GST_ROUND_UP_4 (width) + x];

      if (ABS (found - (gint) expected[y * width + x]) > tolerance)
        fail ("%s %u at (%u, %u) is %d, expected %u", what, k, x, y, found,
            expected[y * width + x]);
    }
}

/* CPU and mock give the same bits. Amplitudes of a card are as near as Z. */
static void
check_floats (GstBuffer *buffer, const gfloat *expected, guint n, gboolean db,
    const gchar *what, guint k)
{
  gdouble tolerance = 0, sum = 0;
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_READ);

  fail_unless_equals_uint64 (map.size, n * sizeof (gfloat));
  for (guint i = 0; i < n; i++)
    sum += db ? pow (10, expected[i] / 10) : expected[i];
  if (on_cuda && !check_is_mock ())
    tolerance = 4e-5 * sqrt (sum / n);
  for (guint i = 0; i < n; i++) {
    gdouble a = ((const gfloat *) map.data)[i], b = expected[i];
    gdouble d = db ? pow (10, a / 20) - pow (10, b / 20) : sqrt (a) - sqrt (b);

    if (tolerance > 0 ? !(fabs (d) <= tolerance) : a != b)
      fail ("%s %u: number %u is %.9g, expected %.9g", what, k, i, a, b);
  }
}

static gdouble
number_of (const GstStructure *s, const gchar *name)
{
  gdouble number = -1;

  fail_unless (gst_structure_get_double (s, name, &number));
  return number;
}

/* Floats are the quantity itself. */
static void
check_float_quantity (GstBuffer *buffer, gboolean db)
{
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (buffer, "GstImagingQuantity");
  const GstStructure *s;

  fail_unless (meta != NULL);
  s = gst_custom_meta_get_structure (meta);
  fail_unless_equals_string (
      gst_structure_get_string (s, "unit"), db ? "dB" : "counts^2");
  fail_unless_equals_float (number_of (s, "scale"), 1);
  fail_unless_equals_float (number_of (s, "offset"), 0);
  fail_unless (gst_structure_has_field (s, "axis-1-name"));
  fail_unless_equals_string (
      gst_structure_get_string (s, "element"), "octbscan");
  fail_unless_equals_string (
      gst_structure_get_string (s, "backend"), on_cuda ? "cuda" : "cpu");
}

static void
check_image_of (
    const Run *r, const Expected *e, guint pad, guint k, GstBuffer *buffer)
{
  guint height = pad == ENFACE ? VOLUME : DEPTHS;

  if (r->has_floats) {
    check_floats (buffer, e->floats[pad][k], e->n_ascans * height,
        pad != LINEAR, pad_names[pad], k);
    check_float_quantity (buffer, pad != LINEAR);
  } else {
    check_levels (buffer,
        pad == SRC      ? e->db[k]
        : pad == LINEAR ? e->linear[k]
                        : e->enface[k],
        e->n_ascans, height, pad_names[pad], k);
  }
}

static void
check_complex (GstBuffer *buffer, const gfloat *expected, guint k)
{
  gdouble rms = 0;
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_READ);

  fail_unless_equals_uint64 (map.size, 2 * HEIGHT * DEPTHS * sizeof (gfloat));
  for (guint i = 0; i < 2 * HEIGHT * DEPTHS; i++)
    rms += expected[i] * expected[i] / (HEIGHT * DEPTHS);
  for (guint i = 0; i < 2 * HEIGHT * DEPTHS; i++)
    if (!(fabs (((gfloat *) map.data)[i] - expected[i]) <= 2e-5 * sqrt (rms)))
      fail ("complex %u, number %u is %g, expected %g", k, i,
          ((gfloat *) map.data)[i], expected[i]);
}

void
check_time (GstBuffer *buffer, guint from, guint n)
{
  fail_unless_equals_uint64 (GST_BUFFER_PTS (buffer), from * 10 * GST_MSECOND);
  fail_unless_equals_uint64 (
      GST_BUFFER_DURATION (buffer), n * 10 * GST_MSECOND);
}

static gboolean
is_linked (const Run *r, guint pad)
{
  return pad == SRC ? r->has_src : r->pads[pad] != NULL;
}

void
check_run (Run *r, const Expected *e, guint every)
{
  GstBuffer *out;

  for (guint i = 0; r->pads[COMPLEX] && i < e->n; i++) {
    out = check_pull (r->pads[COMPLEX]);
    check_complex (out, e->complex[i], i);
    check_time (out, i, 1);
    gst_buffer_unref (out);
  }
  for (guint p = SRC; p <= LINEAR; p++)
    for (guint k = 0; is_linked (r, p) && k < e->n_images; k++) {
      guint n = MIN (every, e->n - k * every);

      out = check_pull (r->pads[p]);
      check_image_of (r, e, p, k, out);
      check_time (out, k * every, n);
      gst_buffer_unref (out);
    }
  for (guint k = 0; r->pads[ENFACE] && k < e->n_volumes; k++) {
    out = check_pull (r->pads[ENFACE]);
    check_image_of (r, e, ENFACE, k, out);
    check_time (out, k * VOLUME * every, VOLUME * every);
    gst_buffer_unref (out);
  }
  for (guint p = 0; p < N_PADS; p++)
    if (is_linked (r, p))
      fail_unless (gst_harness_try_pull (r->pads[p]) == NULL, "%s has one more",
          pad_names[p]);
}

void
push_all (Run *r, guint first, guint end)
{
  for (guint i = first; i < end; i++)
    check_push (r->pads[SRC], bscan_new (i), GST_FLOW_OK);
}
