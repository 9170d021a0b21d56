/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The actions of octbscan: dispersion from an image, files that are written are
 * read again. */
#include "check-common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <glib/gstdio.h>

#include "gstimagingarrayfile.h"
#include "gstimagingnpy.h"
#include "imk/octbscan.h"

enum { WIDTH = 256, HEIGHT = 40 };

static gboolean on_cuda;

/* Four layers whose fringes have psi u^2 + chi u^3, each line of the cameras
 * its own; something that stands still at depth 100. */
static GstBuffer *
bscan_new (guint n_cameras, const gdouble psi[][2])
{
  static const gdouble depths[] = {20, 31, 44.5, 70};
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, WIDTH * HEIGHT * 2, NULL);
  guint32 seed = 1;
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_WRITE);

  for (guint r = 0; r < HEIGHT; r++) {
    gdouble phase[4], amplitude[4];

    for (guint k = 0; k < 4; k++) {
      seed = seed * 1664525u + 1013904223u;
      phase[k] = seed / 683565276.0;
      seed = seed * 1664525u + 1013904223u;
      amplitude[k] = 100 + seed / 8589934.0;
    }
    for (guint i = 0; i < WIDTH; i++) {
      gdouble u = 2.0 * i / (WIDTH - 1) - 1, v = 20000;
      gdouble turn =
          u * u * (psi[r % n_cameras][0] + psi[r % n_cameras][1] * u);

      for (guint k = 0; k < 4; k++)
        v += amplitude[k] *
             cos (2 * G_PI * depths[k] * i / WIDTH + phase[k] + turn);
      v += 500 * cos (2 * G_PI * 100 * i / WIDTH);
      ((guint16 *) map.data)[r * WIDTH + i] = (guint16) v;
    }
  }
  return buffer;
}

static GstHarness *
harness_new (const gchar *launch, GstBus **bus)
{
  GstElement *element = gst_parse_launch (launch, NULL);
  GstHarness *h;

  gst_util_set_object_arg (
      G_OBJECT (element), "backend", on_cuda ? "cuda" : "cpu");
  h = gst_harness_new_with_element (element, "sink", "src");
  *bus = gst_bus_new ();
  gst_element_set_bus (element, *bus);
  gst_object_unref (element);
  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=GRAY16_LE,width=256,height=40,framerate=25/1");
  return h;
}

static void
harness_free (GstHarness *h, GstBus *bus)
{
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
  gst_harness_teardown (h);
}

#define ELEMENT "octbscan upsample=256 taper=none window=hann "

/* The d2 and d3 of camera @i in the property. */
static void
check_dispersion (const gchar *text, guint i, gdouble d2, gdouble d3)
{
  gchar **cameras = g_strsplit (text, ",", -1);
  gchar **d = g_strsplit (cameras[i], ";", -1);

  fail_unless (g_strv_length (d) == 4, "\"%s\"", text);
  fail_unless (fabs (g_ascii_strtod (d[2], NULL) - d2) < 0.3 &&
                   fabs (g_ascii_strtod (d[3], NULL) - d3) < 0.5,
      "camera %u of \"%s\", expected %g and %g", i, text, d2, d3);
  g_strfreev (d);
  g_strfreev (cameras);
}

/* A mirror that camera c sees with @fringes[c], its wavenumbers bent by bend[c]
 * and with the dispersion 8 u^2. */
static GstBuffer *
mirror_new (guint n_cameras, const gdouble *fringes, const gdouble *bend,
    gdouble amplitude)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, WIDTH * HEIGHT * 2, NULL);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_WRITE);

  for (guint r = 0; r < HEIGHT; r++)
    for (guint i = 0; i < WIDTH; i++) {
      guint c = r % n_cameras;
      gdouble v = 2.0 * i / (WIDTH - 1) - 1, u = v + bend[c] * (v * v - 1);
      gdouble light = exp (-2.5 * v * v);
      gdouble phase = G_PI * fringes[c] * u + 8 * u * u;

      ((guint16 *) map.data)[r * WIDTH + i] =
          (guint16) (500 + 8000 * light + amplitude * light * cos (phase));
    }
  return buffer;
}

static gdouble
number_at (const GstStructure *s, const gchar *name, guint camera, guint i)
{
  g_autofree gchar *field = g_strdup_printf ("camera-%u-mirror-%u", camera, i);
  const GValue *value = gst_structure_get_value (s, field);
  gdouble number;

  fail_unless (value != NULL, "%s", field);
  fail_unless (gst_structure_get_double (
      gst_value_get_structure (value), name, &number));
  return number;
}

CHECK_CASE ("octbscan-actions", check_make_folder, check_remove_folder)

/* Two cameras, two positions on either side of zero delay: what is found
 * narrows the point spread, is saved, and as a calibration gives the same
 * images. */
CHECK_BACKENDS_TEST (test_mirror_calibrates_each_camera)
{
  static const gdouble near_[] = {40, 55}, far_[] = {-70, -60};
  static const gdouble bend[] = {-0.1, 0.15};
  g_autofree gchar *from = check_path_of ("lamp.ini"),
                   *to = check_path_of ("mirror.ini");
  gchar *launch, *saved;
  const GstStructure *s;
  GstMessage *message;
  GstBuffer *out, *again;
  GstHarness *h;
  GstBus *bus;
  gboolean ok;
  guint n;

  fail_unless (g_file_set_contents (from,
      "[camera 0]\nlambda-first=806\nlambda-last=675\ngain=2\n"
      "[camera 1]\nlambda-first=806\nlambda-last=675\ndispersion=0;0;40\n",
      -1, NULL));
  launch = g_strdup_printf (
      ELEMENT "cameras=2 range=fixed background=rolling calibration=%s", from);
  h = harness_new (launch, &bus);
  g_signal_emit_by_name (h->element, "calibrate-mirror", "+-", 0.0);
  check_push (h, mirror_new (2, near_, bend, 6000), GST_FLOW_OK);
  check_push (h, mirror_new (2, far_, bend, 6000), GST_FLOW_OK);
  message = check_message (bus, GST_MESSAGE_ELEMENT);
  s = gst_message_get_structure (message);
  fail_unless (gst_structure_has_name (s, "octbscan-mirror"));
  fail_unless (gst_structure_get_boolean (s, "accepted", &ok) && ok, "%s",
      gst_structure_get_string (s, "text"));
  fail_unless (gst_structure_get_uint (s, "n-positions", &n) && n == 2);
  for (guint i = 0; i < 4; i++) {
    gdouble limit = number_at (s, "width-limit", i / 2, i % 2);

    fail_unless (number_at (s, "width", i / 2, i % 2) < 1.02 * limit);
    fail_unless (number_at (s, "width-before", i / 2, i % 2) > 2 * limit);
    fail_unless (number_at (s, "depth-um", i / 2, i % 2) > 10);
  }
  gst_message_unref (message);
  gst_buffer_unref (gst_harness_pull (h));
  gst_buffer_unref (gst_harness_pull (h));
  check_push (h, mirror_new (2, near_, bend, 6000), GST_FLOW_OK);
  out = check_pull (h);
  g_signal_emit_by_name (h->element, "save-calibration", to, &ok);
  fail_unless (ok);
  fail_unless (g_file_get_contents (to, &saved, NULL, NULL));
  fail_unless (strstr (saved, "k-polynomial=") && !strstr (saved, "lambda") &&
                   strstr (saved, "gain=2") && !strstr (saved, "0;0;40") &&
                   strstr (saved, "samples="),
      "%s", saved);
  g_free (saved);
  harness_free (h, bus);
  g_free (launch);

  launch = g_strdup_printf (
      ELEMENT "cameras=2 range=fixed background=rolling calibration=%s", to);
  h = harness_new (launch, &bus);
  check_push (h, mirror_new (2, near_, bend, 6000), GST_FLOW_OK);
  again = check_pull (h);
  {
    g_auto (CheckMap) map = check_map (out, GST_MAP_READ);

    fail_unless_equals_int (
        gst_buffer_memcmp (again, 0, map.data, map.size), 0);
  }
  gst_buffer_unref (out);
  gst_buffer_unref (again);
  harness_free (h, bus);
  g_free (launch);
  g_unlink (from);
  g_unlink (to);
}

/* What cannot calibrate anything leaves the properties as they are. */
CHECK_TEST (test_mirror_that_tells_nothing_is_refused)
{
  static const gdouble fringes[] = {40}, bend[] = {-0.1};
  gchar *k = NULL;
  GstMessage *message;
  const GstStructure *s;
  gboolean ok;
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;

  on_cuda = FALSE;
  h = harness_new (ELEMENT "background=none", &bus);
  g_signal_emit_by_name (h->element, "calibrate-mirror", "++", 0.0);
  check_push (h, mirror_new (1, fringes, bend, 0), GST_FLOW_OK);
  message = check_message (bus, GST_MESSAGE_ELEMENT);
  s = gst_message_get_structure (message);
  fail_unless (gst_structure_get_boolean (s, "accepted", &ok) && !ok);
  fail_unless (strstr (gst_structure_get_string (s, "text"), "weak") != NULL);
  gst_message_unref (message);
  gst_message_unref (check_message (bus, GST_MESSAGE_WARNING));
  g_object_get (h->element, "k-polynomial", &k, NULL);
  fail_unless (k == NULL);
  /* nothing is waited for any more */
  check_push (h, mirror_new (1, fringes, bend, 6000), GST_FLOW_OK);
  fail_unless (gst_bus_pop_filtered (
                   bus, GST_MESSAGE_ELEMENT | GST_MESSAGE_WARNING) == NULL);
  g_signal_emit_by_name (h->element, "calibrate-mirror", "+x", 0.0);
  gst_message_unref (check_message (bus, GST_MESSAGE_WARNING));
}

/* Calibrates again from two positions. Returns: (transfer full): the message */
static GstMessage *
calibrate (GstHarness *h, GstBus *bus, gdouble travel_um)
{
  static const gdouble near_[] = {40}, far_[] = {70}, bend[] = {-0.1};

  g_object_set (h->element, "k-polynomial", NULL, "dispersion", NULL, NULL);
  g_signal_emit_by_name (h->element, "forget-mirrors");
  g_signal_emit_by_name (h->element, "calibrate-mirror", "++", travel_um);
  check_push (h, mirror_new (1, near_, bend, 6000), GST_FLOW_OK);
  check_push (h, mirror_new (1, far_, bend, 6000), GST_FLOW_OK);
  return check_message (bus, GST_MESSAGE_ELEMENT);
}

CHECK_TEST (test_travel_of_the_mirror_scales_depths)
{
  static const struct {
    gdouble times; /* of the travel by the wavelengths */
    const gchar *words;
  } wrong[] = {{3.2, "on different sides of zero delay it would be about"},
      {20, "Is it in micrometres?"}, {-1, "needs a distance above 0"}};
  g_autofree gchar *from = check_path_of ("lamp.ini"), *launch = NULL;
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;
  GstMessage *message;
  const GstStructure *s;
  gdouble moved, scale;

  on_cuda = FALSE;
  fail_unless (g_file_set_contents (
      from, "[camera]\nlambda-first=806\nlambda-last=675\n", -1, NULL));
  launch = g_strdup_printf (ELEMENT "background=none calibration=%s", from);
  h = harness_new (launch, &bus);
  message = calibrate (h, bus, 0);
  s = gst_message_get_structure (message);
  moved = number_at (s, "depth-um", 0, 1) - number_at (s, "depth-um", 0, 0);
  fail_if (gst_structure_has_field (s, "camera-0-scale"));
  gst_message_unref (message);
  message = calibrate (h, bus, 1.04 * moved);
  s = gst_message_get_structure (message);
  fail_unless (gst_structure_get_double (s, "camera-0-scale", &scale) &&
               fabs (scale - 1.04) < 1e-6);
  fail_unless (fabs (number_at (s, "depth-um", 0, 1) -
                     number_at (s, "depth-um", 0, 0) - 1.04 * moved) < 1e-6);
  fail_if (gst_structure_has_field (s, "warning"));
  gst_message_unref (message);
  message = calibrate (h, bus, 1.17 * moved);
  fail_unless (
      gst_structure_has_field (gst_message_get_structure (message), "warning"));
  gst_message_unref (message);
  check_warning (
      bus, LIBRARY, SETTINGS, "Are the wavelengths or the travel wrong");
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    message = calibrate (h, bus, wrong[i].times * moved);
    check_warning (bus, LIBRARY, FAILED, wrong[i].words);
    gst_message_unref (message);
  }
  g_unlink (from);
}

/* In two cameras that take turns from the second on. */
CHECK_BACKENDS_TEST (test_dispersion_is_estimated_and_saved)
{
  static const gdouble psi[][2] = {{9, -2}, {-14, 3}};
  g_autofree gchar *from = check_path_of ("from.ini");
  g_autofree gchar *to = check_path_of ("to.ini");
  g_autofree gchar *launch = NULL, *text = NULL, *saved = NULL;
  const GstStructure *s;
  GstMessage *message;
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;
  gdouble before, after, confidence;
  const GValue *curves;
  gboolean ok;

  fail_unless (g_file_set_contents (
      from, "# an instrument\n[camera]\ngain=2\ndispersion=0.5;1\n", -1, NULL));
  launch =
      g_strdup_printf (ELEMENT "cameras=2 first-camera=1 calibration=%s", from);
  h = harness_new (launch, &bus);
  g_signal_emit_by_name (h->element, "estimate-dispersion");
  check_push (h, bscan_new (2, psi), GST_FLOW_OK);
  message = check_message (bus, GST_MESSAGE_ELEMENT);
  s = gst_message_get_structure (message);
  fail_unless (gst_structure_has_name (s, "octbscan-dispersion"));
  fail_unless (gst_structure_get_boolean (s, "accepted", &ok) && ok);
  fail_unless (gst_structure_get_double (s, "confidence", &confidence) &&
               confidence > 0.7);
  curves = gst_structure_get_value (s, "curves");
  fail_unless_equals_int (gst_value_array_get_size (curves), 2);
  fail_unless_equals_int (
      gst_value_array_get_size (gst_value_array_get_value (curves, 1)), 81);
  fail_unless (gst_structure_get_double (s, "sharpness-before", &before));
  fail_unless (gst_structure_get_double (s, "sharpness-after", &after));
  fail_unless (after > 1.5 * before, "%g, then %g", before, after);
  fail_unless (strstr (gst_structure_get_string (s, "warning"),
      "Camera 0 has no calibration of its wavelengths"));
  gst_message_unref (message);
  check_warning (bus, LIBRARY, SETTINGS, "set calibration, then");
  g_object_get (h->element, "dispersion", &text, NULL);
  /* the second camera has the first line */
  check_dispersion (text, 1, -9, 2);
  check_dispersion (text, 0, 14, -3);
  fail_unless (g_str_has_prefix (text, "0.5;1;"), "\"%s\"", text);
  check_push (h, bscan_new (2, psi), GST_FLOW_OK);
  g_signal_emit_by_name (h->element, "save-calibration", to, &ok);
  fail_unless (ok);
  fail_unless (g_file_get_contents (to, &saved, NULL, NULL));
  fail_unless (strstr (saved, "[camera 1]") && !strstr (saved, "[camera]") &&
                   strstr (saved, "gain=2"),
      "%s", saved);
  /* it is a calibration like any other */
  g_object_set (h->element, "calibration", to, "dispersion", NULL, NULL);
  check_push (h, bscan_new (2, psi), GST_FLOW_OK);
  check_no_messages (bus, GST_MESSAGE_ERROR);
}

CHECK_TEST (test_files_of_a_calibration_stay_where_they_are)
{
  g_autofree gchar *other = check_path_of ("other");
  g_autofree gchar *curve = check_path_of ("chirp.txt");
  g_autofree gchar *from = check_path_of ("from.ini");
  g_autofree gchar *to = g_build_filename (other, "to.ini", NULL);
  gchar *launch = g_strdup_printf (ELEMENT "calibration=%s", from), *saved;
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;
  gboolean ok;

  on_cuda = FALSE;
  fail_unless (g_mkdir (other, 0700) == 0);
  fail_unless (g_file_set_contents (curve, "0\n", -1, NULL));
  fail_unless (
      g_file_set_contents (from, "[camera]\nchirp=chirp.txt\n", -1, NULL));
  h = harness_new (launch, &bus);
  g_object_set (h->element, "dispersion", "0;0;3", NULL);
  g_signal_emit_by_name (h->element, "save-calibration", to, &ok);
  fail_unless (ok);
  fail_unless (g_file_get_contents (to, &saved, NULL, NULL));
  fail_unless (
      strstr (saved, curve) && strstr (saved, "dispersion=0;0;3"), "%s", saved);
  g_free (saved);
  g_signal_emit_by_name (
      h->element, "save-calibration", "/nowhere/to.ini", &ok);
  fail_unless (!ok);
  check_warning (bus, RESOURCE, WRITE, "/nowhere/to.ini");
  g_unlink (to);
  g_rmdir (other);
  g_free (launch);
}

CHECK_TEST (test_dispersions_are_saved_in_their_order)
{
  g_autofree gchar *from = check_path_of ("from.ini"),
                   *to = check_path_of ("to.ini");
  g_autofree gchar *launch = g_strdup_printf (
      ELEMENT "cameras=2 camera-order=<1,0> calibration=%s", from);
  g_autofree gchar *zero = NULL, *one = NULL;
  GKeyFile *file = g_key_file_new ();
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;
  gboolean ok;

  on_cuda = FALSE;
  fail_unless (
      g_file_set_contents (from, "[camera 0]\n[camera 1]\n", -1, NULL));
  h = harness_new (launch, &bus);
  g_object_set (h->element, "dispersion", "1,0", NULL);
  g_signal_emit_by_name (h->element, "save-calibration", to, &ok);
  fail_unless (ok);
  fail_unless (g_key_file_load_from_file (file, to, G_KEY_FILE_NONE, NULL));
  zero = g_key_file_get_value (file, "camera 0", "dispersion", NULL);
  one = g_key_file_get_value (file, "camera 1", "dispersion", NULL);
  fail_unless_equals_string (zero, "0");
  fail_unless_equals_string (one, "1");
  gst_util_set_object_arg (G_OBJECT (h->element), "camera-order", "<1>");
  g_signal_emit_by_name (h->element, "save-calibration", to, &ok);
  fail_unless (!ok);
  check_warning (
      bus, RESOURCE, WRITE, "camera-order has 1 numbers, but cameras is 2");
  g_key_file_unref (file);
}

static GstBuffer *
show (const gchar *launch, const gdouble psi[][2])
{
  GstBus *bus;
  GstHarness *h = harness_new (launch, &bus);
  GstBuffer *out;

  check_push (h, bscan_new (1, psi), GST_FLOW_OK);
  out = check_pull (h);
  harness_free (h, bus);
  return out;
}

static void
check_same_image (GstBuffer *found, GstBuffer *expected, gint tolerance)
{
  GstMapInfo a, b;

  gst_buffer_map (found, &a, GST_MAP_READ);
  gst_buffer_map (expected, &b, GST_MAP_READ);
  fail_unless_equals_uint64 (a.size, b.size);
  for (gsize i = 0; i < a.size; i++)
    if (ABS (a.data[i] - b.data[i]) > tolerance)
      fail ("byte %" G_GSIZE_FORMAT " is %u, expected %u", i, a.data[i],
          b.data[i]);
  gst_buffer_unmap (found, &a);
  gst_buffer_unmap (expected, &b);
  gst_buffer_unref (found);
  gst_buffer_unref (expected);
}

/* What minvar has taken off is the same taken off from the file. */
CHECK_BACKENDS_TEST (test_fixed_pattern_is_saved_and_read)
{
  static const gdouble psi[][2] = {{0, 0}};
  g_autofree gchar *path = check_path_of ("pattern.npy");
  g_autofree gchar *launch = g_strdup_printf (
      ELEMENT "background=none fixed-pattern=file pattern-location=%s", path);
  GstBuffer *expected, *found;
  GstImagingNdArray *npy;
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;
  gboolean ok;

  h = harness_new (ELEMENT "background=none fixed-pattern=minvar", &bus);
  g_signal_emit_by_name (h->element, "save-fixed-pattern", path, &ok);
  fail_unless (!ok);
  check_warning (bus, RESOURCE, WRITE, "fixed pattern");
  check_push (h, bscan_new (1, psi), GST_FLOW_OK);
  expected = check_pull (h);
  g_signal_emit_by_name (h->element, "save-fixed-pattern", path, &ok);
  fail_unless (ok);
  npy = gst_imaging_npy_load (path, NULL);
  fail_unless (npy && npy->type == GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64 &&
               npy->n_dims == 2 && npy->dims[0] == 1 && npy->dims[1] == 128);
  /* what stands still has an amplitude of 500 */
  fail_unless (fabs (hypot (((const gfloat *) npy->data)[200],
                         ((const gfloat *) npy->data)[201]) -
                     500) < 5);
  gst_imaging_nd_array_free (npy);
  found = show (launch, psi);
  check_same_image (found, expected, 1);
}

/* What was averaged from the stream, taken off from a file of any format, gives
 * the same bytes. */
static void
check_background (const gchar *mode, const gchar *extension)
{
  static const gdouble psi[][2] = {{0, 0}, {3, 1}};
  gchar *name = g_strconcat ("background", extension, NULL);
  gchar *path = check_path_of (name);
  gchar *launch = g_strdup_printf (
      ELEMENT "cameras=2 background-bscans=2 background=%s", mode);
  GstBuffer *expected;
  GstImagingNdArray *npy;
  GstHarness *h;
  GstBus *bus;
  gboolean ok;

  h = harness_new (launch, &bus);
  g_object_set (h->element, "range-max", 90.0, NULL);
  g_signal_emit_by_name (h->element, "save-background", path, &ok);
  fail_unless (!ok);
  check_warning (bus, RESOURCE, WRITE, "no B-scan to find it in");
  for (guint i = 0; i < 3; i++) {
    check_push (h, bscan_new (2, psi), GST_FLOW_OK);
    if (i < 2)
      gst_buffer_unref (check_pull (h));
  }
  expected = check_pull (h);
  g_signal_emit_by_name (h->element, "save-background", path, &ok);
  if (!ok) { /* without the library of the format */
    check_warning (bus, RESOURCE, WRITE, "this build is without");
    gst_buffer_unref (expected);
    goto out;
  }
  npy = gst_imaging_nd_array_load (path, NULL);
  fail_unless (npy && npy->type == GST_IMAGING_ND_ARRAY_TYPE_F64 &&
               npy->n_dims == 2 && npy->dims[0] == 2 && npy->dims[1] == WIDTH);
  for (guint i = 0; i < 2 * WIDTH; i++)
    fail_unless (fabs (((const gdouble *) npy->data)[i] - 20000) < 2000);
  gst_imaging_nd_array_free (npy);
  g_object_set (h->element, "background-location", path, NULL);
  gst_util_set_object_arg (G_OBJECT (h->element), "background", "file");
  check_push (h, bscan_new (2, psi), GST_FLOW_OK);
  check_same_image (check_pull (h), expected, 0);
  /* also what is given can be saved */
  g_signal_emit_by_name (h->element, "save-background", path, &ok);
  fail_unless (ok);
out:
  harness_free (h, bus);
  g_free (launch);
  g_free (path);
  g_free (name);
}

CHECK_BACKENDS_TEST (test_background_is_saved_and_read)
{
  check_background ("mean", ".npy");
  check_background ("running", ".npy");
  check_background ("first", ".npy");
  check_background ("mean", ".tif");
  check_background ("running", ".fits");
}

/* A warning says why there is none, and which format cannot hold it. */
CHECK_BACKENDS_TEST (test_background_that_cannot_be_saved)
{
  static const gdouble psi[][2] = {{0, 0}};
  static const struct {
    const gchar *mode, *name, *words;
  } cases[] = {
      {"none", "b.npy", "background is none"},
      {"rolling", "b.npy", "background is rolling"},
      {"mean", "b.pgm", "b.pgm"},
      {"mean", "none/b.npy", "none/b.npy"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *launch =
        g_strconcat (ELEMENT "background=", cases[i].mode, NULL);
    g_autofree gchar *path = check_path_of (cases[i].name);
    gboolean ok;
    g_autoptr (CheckHarness) h = NULL;
    g_autoptr (CheckBus) bus = NULL;

    h = harness_new (launch, &bus);
    check_push (h, bscan_new (1, psi), GST_FLOW_OK);
    gst_buffer_unref (check_pull (h));
    g_signal_emit_by_name (h->element, "save-background", path, &ok);
    fail_unless (!ok);
    check_warning (bus, RESOURCE, WRITE, cases[i].words);
    fail_unless (!g_file_test (path, G_FILE_TEST_EXISTS));
  }
}

/* Noise tells nothing: the dispersion stays, and the message says why. */
CHECK_BACKENDS_TEST (test_noise_keeps_the_dispersion)
{
  GstBuffer *noise = gst_buffer_new_allocate (NULL, WIDTH * HEIGHT * 2, NULL);
  GRand *random = g_rand_new_with_seed (3);
  const GstStructure *s;
  GstMessage *message;
  gboolean accepted;
  GstMapInfo map;
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;
  g_autofree gchar *text = NULL;

  gst_buffer_map (noise, &map, GST_MAP_WRITE);
  for (guint i = 0; i < WIDTH * HEIGHT; i++)
    ((guint16 *) map.data)[i] = (guint16) g_rand_int_range (random, 900, 1100);
  gst_buffer_unmap (noise, &map);
  h = harness_new (ELEMENT "dispersion=0;0;3.5;1", &bus);
  g_signal_emit_by_name (h->element, "estimate-dispersion");
  check_push (h, noise, GST_FLOW_OK);
  message = check_message (bus, GST_MESSAGE_ELEMENT);
  s = gst_message_get_structure (message);
  fail_unless (
      gst_structure_get_boolean (s, "accepted", &accepted) && !accepted);
  fail_unless (
      strstr (gst_structure_get_string (s, "text"), "cannot be estimated"));
  fail_unless_equals_string (
      gst_structure_get_string (s, "dispersion"), "0;0;3.5;1");
  gst_message_unref (message);
  check_warning (bus, LIBRARY, FAILED, "cannot be estimated");
  g_object_get (h->element, "dispersion", &text, NULL);
  fail_unless_equals_string (text, "0;0;3.5;1");
  g_rand_free (random);
}

CHECK_TEST (test_dark_images_have_no_dispersion)
{
  GstBuffer *dark = gst_buffer_new_allocate (NULL, WIDTH * HEIGHT * 2, NULL);
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;

  on_cuda = FALSE;
  gst_buffer_memset (dark, 0, 0, WIDTH * HEIGHT * 2);
  h = harness_new (ELEMENT, &bus);
  g_signal_emit_by_name (h->element, "estimate-dispersion");
  check_push (h, dark, GST_FLOW_OK);
  check_warning (bus, LIBRARY, FAILED, "the image is dark");
  gst_buffer_unref (check_pull (h));
}

/* --- real spectra --------------------------------------------------------- */

/* Estimates from the first B-scan of a file, NULL when it is not there. */
static gchar *
estimate_file (const gchar *name, const gchar *launch, guint width,
    guint height, gdouble *before, gdouble *after)
{
  gchar *path = g_build_filename (check_data_folder (), "octbscan", name, NULL);
  gchar *text = NULL, *bytes, *caps;
  GstElement *element;
  GstMessage *message;
  GstHarness *h;
  GstBus *bus;

  if (!g_file_get_contents (path, &bytes, NULL, NULL)) {
    g_free (path);
    return NULL;
  }
  element = gst_parse_launch (launch, NULL);
  h = gst_harness_new_with_element (element, "sink", "src");
  bus = gst_bus_new ();
  gst_element_set_bus (element, bus);
  caps = g_strdup_printf (
      "video/x-raw,format=GRAY16_LE,width=%u,height=%u,framerate=25/1", width,
      height);
  gst_harness_set_src_caps_str (h, caps);
  g_signal_emit_by_name (element, "estimate-dispersion");
  check_push (h, gst_buffer_new_memdup (bytes, (gsize) width * height * 2),
      GST_FLOW_OK);
  message = check_message (bus, GST_MESSAGE_ELEMENT);
  gst_structure_get_double (
      gst_message_get_structure (message), "sharpness-before", before);
  gst_structure_get_double (
      gst_message_get_structure (message), "sharpness-after", after);
  fail_unless_equals_string (/* it is calibrated */
      gst_structure_get_string (gst_message_get_structure (message), "warning"),
      "");
  gst_message_unref (message);
  g_object_get (element, "dispersion", &text, NULL);
  gst_object_unref (element);
  harness_free (h, bus);
  g_free (bytes);
  g_free (caps);
  g_free (path);
  return text;
}

/* octcal: without dispersion as its README found with numpy, 37.3; with what
 * is found at least as with its own calibration, 38.6. */
CHECK_TEST (test_a_published_calibration_is_matched)
{
  gchar *ini = check_path_of ("octcal.ini");
  gchar *text =
      g_strdup_printf ("[camera]\nk-index=%s/octbscan/octcal/klinear.npy\n",
          check_data_folder ());
  gchar *launch = g_strdup_printf (
      "octbscan backend=cpu calibration=%s upsample=1024 taper=none "
      "interpolation=linear window=hann crop-top=5",
      ini);
  gdouble before = 0, after = 0;
  g_autofree gchar *found = NULL;

  fail_unless (g_file_set_contents (ini, text, -1, NULL));
  found = estimate_file ("octcal/bscans_040-047_1024x100x8_u16le.raw", launch,
      1024, 100, &before, &after);
  if (!found) {
    g_free (launch);
    g_free (text);
    g_free (ini);
    check_skip ("there is no octcal");
  }
  fail_unless (fabs (before / 37.3 - 1) < 0.02, "%g before", before);
  fail_unless (after > 0.99 * 38.6, "%g after, with %s", after, found);
  g_free (launch);
  g_free (text);
  g_free (ini);
}

/* octopod: its README found d2 = -12 by eye and trial. */
CHECK_TEST (test_the_dispersion_of_a_retina)
{
  gchar *ini = check_path_of ("octopod.ini");
  gchar *launch = g_strdup_printf (
      "octbscan backend=cpu calibration=%s upsample=2048 taper=none "
      "interpolation=linear window=hann crop-top=20",
      ini);
  gdouble before = 0, after = 0, d2;
  gchar *found, **d;

  fail_unless (
      g_file_set_contents (ini, "[camera]\npolynomial=806;-0.064\n", -1, NULL));
  found = estimate_file (
      "octopod/volume_2048x20x20_u16le.unp", launch, 2048, 20, &before, &after);
  if (!found) {
    g_free (launch);
    g_free (ini);
    check_skip ("there is no octopod");
  }
  d = g_strsplit (found, ";", -1);
  d2 = g_ascii_strtod (d[2], NULL);
  fail_unless (fabs (d2 + 12) < 6, "\"%s\", expected about 0;0;-12", found);
  fail_unless (after > before, "%g, then %g", before, after);
  g_strfreev (d);
  g_free (found);
  g_free (launch);
  g_free (ini);
}

/* Nor is a file without a name written. */
CHECK_TEST (test_files_need_a_name)
{
  static const gchar *const actions[] = {
      "save-calibration", "save-background", "save-fixed-pattern"};
  static const gchar *const names[] = {NULL, ""};
  static const gdouble psi[][2] = {{0, 0}};
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;

  on_cuda = FALSE;
  h = harness_new (ELEMENT "fixed-pattern=minvar", &bus);
  check_push (h, bscan_new (1, psi), GST_FLOW_OK);
  for (guint i = 0; i < G_N_ELEMENTS (actions); i++)
    for (guint k = 0; k < G_N_ELEMENTS (names); k++) {
      gboolean ok = TRUE;

      g_signal_emit_by_name (h->element, actions[i], names[k], &ok);
      fail_unless (!ok);
      check_warning (bus, RESOURCE, WRITE, "name of a file");
    }
}

/* A wrong name must not cost a recording. */
CHECK_TEST (test_only_files_of_ours_are_replaced)
{
  static const gdouble psi[][2] = {{0, 0}};
  static const guint64 dims[] = {2, WIDTH};
  static const guint16 spectra[2 * WIDTH] = {1, 2, 3};
  static const struct {
    const gchar *action, *name;
    gsize size; /* of the text; 0: a recording */
  } cases[] = {
      {"save-calibration", "recording.npy", 0},
      {"save-background", "recording.npy", 0},
      {"save-fixed-pattern", "recording.npy", 0},
      {"save-calibration", "notes.ini", 30},
      {"save-background", "notes.npy", 30},
  };
  static const gchar text[] = "[results]\nmeasured=yesterday\n";
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;

  on_cuda = FALSE;
  h = harness_new (
      ELEMENT "fixed-pattern=minvar dispersion=0;0;1 background=mean", &bus);
  check_push (h, bscan_new (1, psi), GST_FLOW_OK);
  gst_buffer_unref (check_pull (h));
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *path = check_path_of (cases[i].name);
    g_autofree gchar *before = NULL, *after = NULL;
    gsize size_before, size_after;
    gboolean ok;

    if (cases[i].size)
      check_write_file (cases[i].name, text, cases[i].size);
    else
      fail_unless (gst_imaging_array_save (
          path, GST_IMAGING_ND_ARRAY_TYPE_U16, 2, dims, spectra, NULL));
    fail_unless (g_file_get_contents (path, &before, &size_before, NULL));
    g_signal_emit_by_name (h->element, cases[i].action, path, &ok);
    fail_unless (!ok);
    check_warning (bus, RESOURCE, WRITE, "so it stays");
    fail_unless (g_file_get_contents (path, &after, &size_after, NULL));
    fail_unless (size_before == size_after);
    fail_unless (memcmp (before, after, size_before) == 0);
  }
}

CHECK_TEST (test_no_calibration_is_not_saved)
{
  g_autofree gchar *path = check_path_of ("none.ini");
  g_autoptr (CheckHarness) h = NULL;
  g_autoptr (CheckBus) bus = NULL;
  gboolean ok;

  on_cuda = FALSE;
  h = harness_new (ELEMENT, &bus);
  g_signal_emit_by_name (h->element, "save-calibration", path, &ok);
  fail_unless (!ok);
  check_warning (bus, RESOURCE, WRITE, "Set calibration, k-polynomial");
  fail_unless (!g_file_test (path, G_FILE_TEST_EXISTS));
}

CHECK_TEST (test_calibrations_without_a_camera_are_refused)
{
  static const gchar mark[] = "\xEF\xBB\xBF[camera]\nlambda-first=800\n"
                              "lambda-last=900\n";
  static const struct {
    const gchar *text;
    gboolean is_valid;
  } cases[] = {{"", FALSE}, {"# a note\n", FALSE}, {mark, TRUE}};
  static const gdouble psi[][2] = {{0, 0}};

  on_cuda = FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *path = check_path_of ("c.ini");
    g_autoptr (CheckHarness) h = NULL;
    g_autoptr (CheckBus) bus = NULL;

    check_write_file ("c.ini", cases[i].text, -1);
    h = harness_new (ELEMENT, &bus);
    g_object_set (h->element, "calibration", path, NULL);
    gst_harness_push (h, bscan_new (1, psi));
    if (cases[i].is_valid)
      check_no_messages (bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
    else
      check_warning (bus, LIBRARY, SETTINGS, "it is empty");
  }
}
