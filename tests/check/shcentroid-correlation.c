/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element shcentroid with estimator=correlation: templates from files and
 * from live frames, and changes while playing, on the CPU and, through the mock
 * module, on a device. */
#include <math.h>
#include <string.h>

#include "gstimagingnpy.h"
#include "gstimagingresults.h"
#include "sh-check.h"

#include "imk/shcentroid.h"

static const gchar *const backends[] = {"cpu", "cuda"};
enum { N_BACKENDS = G_N_ELEMENTS (backends) };

enum {
  PITCH = 16,
  WIDTH = 3 * PITCH,
  HEIGHT = 2 * PITCH,
  N_PIXELS = WIDTH * HEIGHT,
  N_CELLS = 6,
  SIZE = 9, /* of templates in files */
};
#define GRID "pitch-x=16 pitch-y=16 columns=3 rows=2 "

/* --- harness --- */

static Sh
sh_new (const gchar *backend, const gchar *properties)
{
  return sh_open (backend, GRID, properties, WIDTH, HEIGHT, N_CELLS);
}

/* A spot in each cell, (x, y) from its centre, on a pedestal. */
static GstBuffer *
frame_new (gdouble x, gdouble y)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, 2 * N_PIXELS, NULL);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_WRITE);

  for (guint i = 0; i < N_PIXELS; i++) {
    gdouble u = i % WIDTH % PITCH - 7.5 - x, v = i / WIDTH % PITCH - 7.5 - y;

    GST_WRITE_UINT16_LE (
        map.data + 2 * i, 1000 + 20000 * exp (-(u * u + v * v) / 8));
  }
  return buffer;
}

/* The slope of a frame whose spots are moved by (x, y). A parabola through a
 * sampled spot of sigma 2 is 0.03 pixel off at worst. */
static void
check_slope (Sh *sh, guint cell, gdouble x, gdouble y, gdouble tolerance)
{
  gdouble dx = sh_value (sh, frame_new (x, y), cell, IMK_SHCENTROID_DX);
  gdouble dy = sh_value (sh, frame_new (x, y), cell, IMK_SHCENTROID_DY);
  gdouble flags = sh_value (sh, frame_new (x, y), cell, IMK_SHCENTROID_FLAGS);

  fail_unless (fabs (dx - x) < tolerance && fabs (dy - y) < tolerance,
      "slope (%g, %g) where it is (%g, %g)", dx, dy, x, y);
  fail_unless_equals_float (flags, 0);
}

/* Spots of SIZE x SIZE pixels; @n 0 for a file of one template for all. The
 * last of several is a pixel further right, so that it is found one further
 * left. */
static gchar *
save_templates (const gchar *name, guint64 n)
{
  gchar *path = check_path_of (name);
  guint64 dims[] = {n, SIZE, SIZE};
  g_autofree gfloat *values = g_new (gfloat, MAX (n, 1) * SIZE * SIZE);
  GError *error = NULL;

  for (guint i = 0; i < MAX (n, 1) * SIZE * SIZE; i++) {
    gdouble x = i % SIZE - 4.0, y = i / SIZE % SIZE - 4.0;

    if (n > 1 && i / (SIZE * SIZE) == n - 1)
      x -= 1;
    values[i] = (gfloat) exp (-(x * x + y * y) / 8);
  }
  fail_unless (gst_imaging_npy_save (path, GST_IMAGING_ND_ARRAY_TYPE_F32,
                   n ? 3 : 2, n ? dims : dims + 1, values, &error),
      "%s", error ? error->message : "");
  return path;
}

/* --- files --- */

CHECK_CASE ("elements", check_make_folder, check_remove_folder)

CHECK_LOOP_TEST (test_a_template_of_a_file_is_found, N_BACKENDS)
{
  g_autofree gchar *path = save_templates ("one.npy", 0);
  g_autofree gchar *properties =
      g_strdup_printf ("estimator=correlation template-location=%s", path);
  g_auto (Sh) sh = sh_new (backends[__i__], properties);

  check_slope (&sh, 0, 0, 0, 0.05);
  check_slope (&sh, 5, 1.3, -2.4, 0.05);
  g_object_set (sh.element, "correlation", 1, "peak-fit", 1, NULL);
  check_slope (&sh, 4, -2.3, 0.6, 0.05);
}

/* At zero shift a template lies half a pixel left of and above the centre of
 * the cell: what it is a picture of, nobody knows. One of each cell is what the
 * cell looks like when its spot is at the centre. */
CHECK_LOOP_TEST (test_each_cell_has_its_template, N_BACKENDS)
{
  g_autofree gchar *path = save_templates ("each.npy", N_CELLS);
  g_autofree gchar *properties =
      g_strdup_printf ("estimator=correlation template-location=%s", path);
  g_auto (Sh) sh = sh_new (backends[__i__], properties);

  for (guint i = 0; i < N_CELLS; i++) {
    gdouble x = sh_value (&sh, frame_new (1.5, 0.5), i, IMK_SHCENTROID_DX);

    fail_unless (fabs (x - (i == N_CELLS - 1 ? 1 : 2)) < 0.05,
        "cell %u: slope %g", i, x);
  }
}

/* Beyond the range there is nothing, and it can be made wider between two
 * frames. */
CHECK_LOOP_TEST (test_the_range_can_change_while_playing, N_BACKENDS)
{
  g_autofree gchar *path = save_templates ("one.npy", 0);
  g_autofree gchar *properties = g_strdup_printf (
      "estimator=correlation search-range=2 template-location=%s", path);
  g_auto (Sh) sh = sh_new (backends[__i__], properties);

  fail_unless_equals_float (
      sh_value (&sh, frame_new (3, 0), 1, IMK_SHCENTROID_FLAGS),
      IMK_SHCENTROID_NO_MATCH);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (3, 0), 1, IMK_SHCENTROID_DX), 0);
  g_object_set (sh.element, "search-range", 6, NULL);
  check_slope (&sh, 1, 3, 0, 0.05);
  g_object_set (sh.element, "min-correlation", 1.0, NULL);
  fail_unless_equals_float (
      sh_value (&sh, frame_new (3.4, 0), 1, IMK_SHCENTROID_FLAGS),
      IMK_SHCENTROID_NO_MATCH);
}

static void
check_refused (const gchar *backend, const gchar *properties, GQuark domain,
    gint code, const gchar *words)
{
  g_autofree gchar *launch =
      g_strdup_printf ("estimator=correlation %s", properties);
  g_auto (Sh) sh = sh_new (backend, launch);

  fail_unless (gst_harness_push (sh.h, frame_new (0, 0)) != GST_FLOW_OK);
  check_message_says (
      check_message (sh.bus, GST_MESSAGE_ERROR), domain, code, words);
}

CHECK_LOOP_TEST (test_bad_templates_are_refused, N_BACKENDS)
{
  g_autofree gchar *three = save_templates ("three.npy", 3);
  g_autofree gchar *one = save_templates ("one.npy", 0);
  g_autofree gchar *row = check_path_of ("row.npy");
  g_autofree gchar *nan = check_path_of ("nan.npy");
  g_autofree gchar *launch = NULL;
  gfloat values[6] = {1, 2, NAN, 4, 5, 6};
  g_autofree gchar *empty = check_path_of ("empty.npy");
  const guint64 dims[] = {2, 3}, length = 6, nothing[] = {0, 3};
  const gchar *backend = backends[__i__];

  gst_imaging_npy_save (
      row, GST_IMAGING_ND_ARRAY_TYPE_F32, 1, &length, values, NULL);
  gst_imaging_npy_save (
      nan, GST_IMAGING_ND_ARRAY_TYPE_F32, 2, dims, values, NULL);
  gst_imaging_npy_save (
      empty, GST_IMAGING_ND_ARRAY_TYPE_F32, 2, nothing, NULL, NULL);
  check_refused (backend, "", GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS,
      "no template to look for");
  check_refused (backend, "template-location=/nowhere.npy", GST_RESOURCE_ERROR,
      GST_RESOURCE_ERROR_OPEN_READ, "template-location");
#define REFUSED(file, more, domain, code, words) \
  do { \
    g_free (launch); \
    launch = g_strdup_printf ("template-location=%s %s", file, more); \
    check_refused (backend, launch, GST_##domain##_ERROR, \
        GST_##domain##_ERROR_##code, words); \
  } while (0)
  REFUSED (row, "", RESOURCE, OPEN_READ, "has to be [height, width]");
  REFUSED (empty, "", RESOURCE, OPEN_READ, "of at least one pixel");
  REFUSED (nan, "", LIBRARY, SETTINGS, "value nan at (2, 0)");
  REFUSED (three, "", LIBRARY, SETTINGS, "3 templates for 6 cells");
  REFUSED (one, "margin=4", LIBRARY, SETTINGS, "larger than the smallest cell");
  REFUSED (one, "template-source=frame", LIBRARY, SETTINGS,
      "template-cell does not say which");
#undef REFUSED
}

/* --- live --- */

CHECK_LOOP_TEST (test_the_frame_is_its_own_template, N_BACKENDS)
{
  g_auto (Sh) sh =
      sh_new (backends[__i__], "estimator=correlation "
                               "template-source=frame template-cell=2");

  for (guint i = 0; i < 4; i++) {
    check_slope (&sh, 2, 0, 0, 1e-5);
    /* all spots move alike: none does, beside that of the template */
    fail_unless (
        fabs (sh_value (&sh, frame_new (i, 1), i, IMK_SHCENTROID_DX)) < 1e-5);
  }
}

static void
check_capture (const gchar *backend, const gchar *properties)
{
  g_autofree gchar *path = check_path_of ("captured.npy");
  g_autofree gchar *launch = NULL;
  g_auto (Sh) sh = sh_new (backend, properties);
  gsize n;

  fail_unless (sh_capture (&sh, "template", 2, path));
  g_free (sh_measure (&sh, frame_new (0.2, 0), &n));
  g_free (sh_measure (&sh, frame_new (-0.2, 0), &n));
  sh_check_captured (&sh, "template", 2, path);
  g_object_set (sh.element, "estimator", 2, NULL);
  check_slope (&sh, 3, 0, 0, 0.01);
  check_slope (&sh, 3, 1.4, -0.7, 0.03);
  sh_free (&sh);

  launch = g_strdup_printf (
      "%s estimator=correlation template-location=%s", properties, path);
  sh = sh_new (backend, launch);
  check_slope (&sh, 3, 0, 0, 0.01);
  check_slope (&sh, 0, 1.4, -0.7, 0.03);
}

CHECK_LOOP_TEST (test_captured_templates_are_found_and_saved, N_BACKENDS)
{
  check_capture (backends[__i__], "");
  check_capture (backends[__i__], "template-cell=3");
  check_capture (backends[__i__], "template-margin=3");
}

/* Dark, flat and bad pixels are in a captured template as they are in cells. */
CHECK_LOOP_TEST (test_a_template_is_captured_calibrated, N_BACKENDS)
{
  g_autofree gchar *dark = check_path_of ("dark.npy");
  g_autofree gchar *bad = check_path_of ("bad.npy");
  g_autofree gchar *path = check_path_of ("captured.npy");
  g_autofree gchar *properties =
      g_strdup_printf ("dark-location=%s bad-pixels-location=%s "
                       "template-cell=0 template-margin=4",
          dark, bad);
  const guint64 dims[] = {HEIGHT, WIDTH};
  g_autofree gfloat *values = g_new0 (gfloat, N_PIXELS);
  g_autoptr (GstImagingNdArray) npy = NULL;
  gdouble *pixels, mean = 0;
  gsize n;
  Sh sh;

  values[5 * WIDTH + 6] = 1; /* of the template: row 1, column 2 */
  gst_imaging_npy_save (
      bad, GST_IMAGING_ND_ARRAY_TYPE_F32, 2, dims, values, NULL);
  for (guint i = 0; i < N_PIXELS; i++)
    values[i] = 1000;
  gst_imaging_npy_save (
      dark, GST_IMAGING_ND_ARRAY_TYPE_F32, 2, dims, values, NULL);
  sh = sh_new (backends[__i__], properties);
  fail_unless (sh_capture (&sh, "template", 1, path));
  g_free (sh_measure (&sh, frame_new (0.5, 0.5), &n));
  sh_free (&sh);
  npy = gst_imaging_npy_load (path, NULL);
  fail_unless (npy != NULL);
  fail_unless_equals_int (npy->n_dims, 2);
  fail_unless_equals_int (npy->dims[0], 8);
  pixels = gst_imaging_nd_array_to_double (npy, NULL, NULL);
  fail_unless_equals_float (pixels[4 * 8 + 4], 20000);
  for (guint i = 0; i < 64; i++)
    mean += i == 8 + 2 ? 0 : pixels[i] / 63;
  fail_unless (fabs (pixels[8 + 2] - mean) < 1e-2, "a bad pixel is %g, not %g",
      pixels[8 + 2], mean);
  g_free (pixels);
}

/* There is no room for a template: the stream goes on as it was. */
CHECK_LOOP_TEST (test_a_capture_without_room_warns, N_BACKENDS)
{
  g_auto (Sh) sh =
      sh_new (backends[__i__], "template-margin=8 threshold-mode=range "
                               "threshold=0.2");
  gsize n;

  fail_unless (sh_capture (&sh, "template", 1, NULL));
  g_free (sh_measure (&sh, frame_new (0, 0), &n));
  check_warning (sh.bus, LIBRARY, SETTINGS, "template-margin is 8");
  g_free (sh_measure (&sh, frame_new (0, 0), &n));
}

/* The weights are made anew with gain and read-noise, between two frames. */
CHECK_LOOP_TEST (test_a_matched_filter_is_captured_and_changes_live, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], "");
  gdouble variance[2];
  gsize n;

  g_object_set (sh.element, "estimator", 3, NULL);
  g_free (sh_measure (&sh, frame_new (0, 0), &n));
  check_warning (sh.bus, LIBRARY, SETTINGS,
      "estimator is matched, but there is "
      "no template");
  g_object_set (sh.element, "estimator", 0, NULL);
  fail_unless (sh_capture (&sh, "template", 2, NULL));
  for (guint i = 0; i < 2; i++)
    g_free (sh_measure (&sh, frame_new (0, 0), &n));
  sh_check_captured (&sh, "template", 2, NULL);
  for (guint turn = 0; turn < 3; turn++) {
    g_object_set (sh.element, "estimator", 3, "read-noise", 30.0 * turn, NULL);
    check_slope (&sh, 0, 0, 0, 1e-5);
    check_slope (&sh, 4, 1, 0, 1e-3);
    check_slope (&sh, 5, 0, -1, 1e-3);
    check_slope (&sh, 2, 0.5, -0.5, 0.02);
    if (turn < 2)
      variance[turn] =
          sh_value (&sh, frame_new (0, 0), 0, IMK_SHCENTROID_VAR_X);
    g_object_set (sh.element, "estimator", 0, NULL);
    fail_unless (sh_value (&sh, frame_new (1, 0), 0, IMK_SHCENTROID_DX) < 0.7);
  }
  fail_unless (variance[0] > 0 && variance[1] > 1.05 * variance[0]);
  fail_unless_equals_int (check_count_messages (sh.bus, GST_MESSAGE_ERROR), 0);
}

CHECK_LOOP_TEST (test_a_threshold_means_nothing_to_it, N_BACKENDS)
{
  g_autofree gchar *path = save_templates ("one.npy", 0);
  g_autofree gchar *properties = g_strdup_printf (
      "estimator=matched threshold-mode=range template-location=%s", path);
  g_auto (Sh) sh = sh_new (backends[__i__], properties);
  gsize n;

  g_free (sh_measure (&sh, frame_new (0, 0), &n));
  check_warning (sh.bus, LIBRARY, SETTINGS, "look at none of them");
}

/* The frame in quarters: those of pupil images are other cells than spots. */
CHECK_LOOP_TEST (test_pupil_images_change_live, N_BACKENDS)
{
  g_autofree gchar *path = check_path_of ("pupils.npy");
  const guint64 dims[] = {HEIGHT, WIDTH};
  g_autofree gdouble *numbers = g_new0 (gdouble, N_PIXELS);
  g_autofree gchar *template = save_templates ("one.npy", 0);
  g_auto (Sh) sh = sh_new (backends[__i__], "");
  gsize n;

  /* of spots, and in the way of nothing */
  g_object_set (sh.element, "template-location", template, NULL);
  for (guint i = 0; i < N_PIXELS; i++)
    numbers[i] =
        i % WIDTH < WIDTH / 2 ? 1 + i / (N_PIXELS / 2) : 4 - i / (N_PIXELS / 2);
  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_F64, 2, dims, numbers, NULL));
  for (guint turn = 0; turn < 2; turn++) {
    const gfloat *row;
    g_autofree gfloat *values = NULL;
    guint16 light[N_PIXELS];
    GstBuffer *in;

    g_object_set (sh.element, "estimator", 4, "pupils-location", path,
        "normalisation", turn, NULL);
    for (guint i = 0; i < N_PIXELS; i++)
      light[i] = (guint16) (100 * (i % WIDTH < WIDTH / 2 ? 3 : 1) +
                            (i < N_PIXELS / 2 ? 40 : 0));
    in = gst_buffer_new_memdup (light, sizeof (light));
    values = sh_measure (&sh, in, &n);
    fail_unless_equals_int (n, N_PIXELS / 4 * (guint) IMK_SHCENTROID_N_FIELDS);
    row = values + (n - IMK_SHCENTROID_N_FIELDS);
    fail_unless (fabs (row[IMK_SHCENTROID_DX] - 400.0 / 880) < 1e-6);
    fail_unless (fabs (row[IMK_SHCENTROID_DY] - 80.0 / 880) < 1e-6);
    g_object_set (sh.element, "estimator", 0, NULL);
    g_free (sh_measure (&sh, frame_new (0, 0), &n));
    fail_unless_equals_int (n, N_CELLS * (guint) IMK_SHCENTROID_N_FIELDS);
  }
}

/* Templates are cut from the cells in use, not from those that were refused. */
CHECK_LOOP_TEST (
    test_a_capture_beside_the_frame_takes_the_cells_in_use, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], "");
  gsize n;

  g_object_set (sh.element, "x0", -1e5, NULL);
  fail_unless (sh_capture (&sh, "template", 1, NULL));
  g_free (sh_measure (&sh, frame_new (0, 0), &n));
  check_warning (
      sh.bus, LIBRARY, SETTINGS, "Not used until it fits: x0=-100000");
  sh_check_captured (&sh, "template", 1, NULL);
  g_object_set (sh.element, "x0", 0.0, NULL);
  g_free (sh_measure (&sh, frame_new (0, 0), &n));
  fail_unless_equals_int (
      check_count_messages (sh.bus, GST_MESSAGE_WARNING), 0);
}

/* Returns: (transfer full): the backend for a frame of @side x @side */
static gchar *
preferred (guint side, const gchar *properties)
{
  g_autofree gchar *launch = g_strdup_printf (
      "shcentroid name=sh columns=16 rows=16 pitch-x=20 pitch-y=20 fields=xy %s",
      properties);
  g_autofree gchar *caps = check_caps_string ("GRAY8", side, side);
  g_autoptr (GstElement) element = gst_parse_launch (launch, NULL);
  g_autoptr (CheckHarness) h =
      gst_harness_new_with_element (element, "sink", "src");
  GstBuffer *in = gst_buffer_new_allocate (NULL, side * side, NULL);
  gchar *backend;

  gst_buffer_memset (in, 0, 7, -1);
  gst_harness_set_src_caps_str (h, caps);
  check_push (h, in, GST_FLOW_OK);
  gst_buffer_unref (check_pull (h));
  g_object_get (element, "active-backend", &backend, NULL);
  return backend;
}

/* By the rule of docs/reference/shcentroid.md: 2^18 samples for each thread and
 * pass, and two passes at least. */
CHECK_TEST (test_auto_counts_passes)
{
  static const struct {
    guint side;
    const gchar *properties, *backend;
  } cases[] = {
      {1024, "n-threads=1", "cpu"},
      {1024, "n-threads=1 threshold-mode=relative threshold=0.3", "cpu"},
      {1024, "n-threads=1 weighting=gaussian", "cpu"},
      {1024, "n-threads=1 iterations=10", "cpu"}, /* without weights: one */
      {512, "n-threads=3 weighting=gaussian iterations=3", "cuda"},
      {512, "n-threads=4 weighting=gaussian iterations=3", "cpu"},
      {512, "n-threads=8 brightest=20", "cuda"},
      {508, "n-threads=8 brightest=20", "cpu"},
      {512, "n-threads=8 power=1.7", "cuda"},
      {512, "n-threads=1 power=1.5", "cpu"},
      {512, "n-threads=1 power=2", "cpu"},
      {512, "n-threads=16 power=1.7 weighting=gaussian iterations=2", "cuda"},
      {512,
          "n-threads=49 estimator=correlation template-source=frame "
          "template-cell=0 search-range=3",
          "cuda"},
      {512,
          "n-threads=50 estimator=correlation template-source=frame "
          "template-cell=0 search-range=3",
          "cpu"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *backend = preferred (cases[i].side, cases[i].properties);

    fail_unless (g_str_equal (backend, cases[i].backend), "%s for \"%s\"",
        backend, cases[i].properties);
  }
}
