/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element shcentroid with a geometry that it finds or works out: find-grid,
 * optics, and what viewers are told of the cells. */
#include <math.h>

#include <glib/gstdio.h>

#include "check-common.h"
#include "gstimagingnpy.h"
#include "gstimagingresults.h"

static const gchar *const backends[] = {"cpu", "cuda"};
enum { N_BACKENDS = G_N_ELEMENTS (backends) };

enum { WIDTH = 130, HEIGHT = 111, N_COLUMNS = 6, N_ROWS = 5 };
#define PITCH 20.5
#define FIRST_X 12.25
#define FIRST_Y 11.75

typedef struct {
  GstHarness *h;
  GstBus *bus;
  gchar *map;
} Sh;

static GstElement *
sh_element (Sh *sh)
{
  return GST_IS_BIN (sh->h->element)
             ? gst_bin_get_by_name (GST_BIN (sh->h->element), "sh")
             : gst_object_ref (sh->h->element);
}

static void
sh_find (Sh *sh)
{
  g_autoptr (GstElement) element = sh_element (sh);

  g_signal_emit_by_name (element, "find-grid", sh->map);
}

static Sh
sh_new (const gchar *backend, const gchar *properties, gboolean find)
{
  g_autofree gchar *launch =
      g_strdup_printf ("shcentroid name=sh backend=%s %s", backend, properties);
  g_autofree gchar *caps = check_caps_string ("GRAY8", WIDTH, HEIGHT);
  Sh sh = {.bus = gst_bus_new ()};
  gint fd = g_file_open_tmp ("grid-XXXXXX.npy", &sh.map, NULL);

  g_close (fd, NULL);
  g_unlink (sh.map);
  sh.h = gst_harness_new_parse (launch);
  gst_element_set_bus (sh.h->element, sh.bus);
  if (find) /* without any grid this has to be before the stream begins */
    sh_find (&sh);
  gst_harness_set_src_caps_str (sh.h, caps);
  return sh;
}

static void
sh_free (Sh *sh)
{
  gst_element_set_bus (sh->h->element, NULL);
  gst_object_unref (sh->bus);
  gst_harness_teardown (sh->h);
  g_unlink (sh->map);
  g_free (sh->map);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Sh, sh_free)

/* Spots of sigma 1.5 on the lattice, all but the one of column 2, row 3. */
static GstBuffer *
spots_new (void)
{
  GstVideoInfo info = check_info ("GRAY8", WIDTH, HEIGHT);
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, info.size, NULL);
  GstVideoFrame frame;

  gst_buffer_memset (buffer, 0, 5, info.size);
  fail_unless (gst_video_frame_map (&frame, &info, buffer, GST_MAP_WRITE));
  for (gint y = 0; y < HEIGHT; y++)
    for (gint x = 0; x < WIDTH; x++) {
      guint8 *row = (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, 0) +
                    y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0);
      gint i = (gint) rint ((x - FIRST_X) / PITCH);
      gint j = (gint) rint ((y - FIRST_Y) / PITCH);
      gdouble dx = x - FIRST_X - i * PITCH, dy = y - FIRST_Y - j * PITCH;

      if (i >= 0 && j >= 0 && i < N_COLUMNS && j < N_ROWS &&
          !(i == 2 && j == 3))
        row[x] += (guint8) (200 * exp (-(dx * dx + dy * dy) / 4.5) + 0.5);
    }
  gst_video_frame_unmap (&frame);
  GST_BUFFER_PTS (buffer) = 0;
  return buffer;
}

static GstBuffer *
dark_new (void)
{
  GstVideoInfo info = check_info ("GRAY8", WIDTH, HEIGHT);
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, info.size, NULL);

  gst_buffer_memset (buffer, 0, 5, info.size);
  return buffer;
}

static GstBuffer *
sh_frame (Sh *sh, GstBuffer *in)
{
  check_push (sh->h, in, GST_FLOW_OK);
  return check_pull (sh->h);
}

/* Fails unless the message and the map tell of the 29 spots. */
static void
check_found (Sh *sh)
{
  g_autoptr (GstMessage) message =
      check_element_message (sh->bus, "shcentroid-grid");
  const GstStructure *s = gst_message_get_structure (message);
  gdouble pitch = 0, rotation = 1, x0 = 0;
  guint cells = 0, columns = 0, rows = 0, holes = 0, column = 0, row = 0;
  g_autoptr (GstImagingNdArray) npy = NULL;
  g_autofree gdouble *table = NULL;

  fail_unless_equals_string (gst_structure_get_string (s, "location"), sh->map);
  fail_unless_equals_string (gst_structure_get_string (s, "lattice"), "square");
  fail_unless (gst_structure_get (s, "pitch", G_TYPE_DOUBLE, &pitch, "rotation",
      G_TYPE_DOUBLE, &rotation, "x0", G_TYPE_DOUBLE, &x0, "cells", G_TYPE_UINT,
      &cells, "columns", G_TYPE_UINT, &columns, "rows", G_TYPE_UINT, &rows,
      NULL));
  fail_unless (fabs (pitch - PITCH) < 0.01, "pitch %g", pitch);
  fail_unless (fabs (rotation) < 0.05, "rotation %g", rotation);
  fail_unless (fabs (x0 - (FIRST_X + 0.5 - PITCH / 2)) < 0.05, "x0 %g", x0);
  fail_unless (cells == 29 && columns == N_COLUMNS && rows == N_ROWS);
  fail_unless (
      gst_structure_get (s, "holes", G_TYPE_UINT, &holes, "hole-column",
          G_TYPE_UINT, &column, "hole-row", G_TYPE_UINT, &row, NULL) &&
      holes == 1 && column == 2 && row == 3);

  npy = gst_imaging_npy_load (sh->map, NULL);
  fail_unless (
      npy && npy->n_dims == 2 && npy->dims[0] == 29 && npy->dims[1] == 12);
  table = gst_imaging_nd_array_to_double (npy, NULL, NULL);
  fail_unless (fabs (table[4] - FIRST_X) < 0.05 &&
               fabs (table[5] - FIRST_Y) < 0.05 &&
               fabs (table[0] + table[2] / 2 - 0.5 - table[4]) < 1e-9);
}

static gint
n_rows_of (GstBuffer *buffer)
{
  const GstStructure *result = gst_imaging_results_get (buffer, "sh");
  gint rows = -1;

  if (result)
    gst_structure_get_int (result, "rows", &rows);
  return rows;
}

CHECK_LOOP_TEST (
    test_find_grid_without_a_grid_measures_that_frame_too, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], "", TRUE);
  g_autoptr (GstBuffer) out = NULL;

  out = sh_frame (&sh, spots_new ());
  check_found (&sh);
  fail_unless_equals_int (n_rows_of (out), 29);
  gst_buffer_unref (out);
  out = sh_frame (&sh, spots_new ());
  fail_unless_equals_int (n_rows_of (out), 29);
  fail_unless_equals_int (
      check_count_messages (sh.bus, GST_MESSAGE_ELEMENT), 0);
}

/* The template is a cell of the grid that is yet to be found. */
CHECK_LOOP_TEST (test_find_grid_goes_with_correlation, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__],
      "estimator=correlation template-source=frame template-cell=14", TRUE);
  g_autoptr (GstBuffer) out = sh_frame (&sh, spots_new ());

  check_found (&sh);
  fail_unless_equals_int (n_rows_of (out), 29);
}

CHECK_LOOP_TEST (test_find_grid_replaces_a_grid_while_playing, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__],
      "columns=2 rows=2 pitch-x=50 pitch-y=50 lattice=square", FALSE);
  g_autoptr (GstBuffer) out = sh_frame (&sh, spots_new ());

  fail_unless_equals_int (n_rows_of (out), 4);
  gst_buffer_unref (out);
  sh_find (&sh);
  out = sh_frame (&sh, spots_new ());
  check_found (&sh);
  fail_unless_equals_int (n_rows_of (out), 29);
}

CHECK_LOOP_TEST (
    test_a_grid_that_is_not_found_is_a_warning_or_an_error, N_BACKENDS)
{
  g_auto (Sh) sh =
      sh_new (backends[__i__], "columns=2 rows=2 pitch-x=50 pitch-y=50", FALSE);
  GstElement *element;
  GstBuffer *out;

  sh_find (&sh);
  out = sh_frame (&sh, dark_new ());
  check_warning (sh.bus, STREAM, FAILED, "There is no grid of spots");
  fail_unless_equals_int (n_rows_of (out), 4);
  gst_buffer_unref (out);
  fail_if (g_file_test (sh.map, G_FILE_TEST_EXISTS));

  /* that in force stays, also when another is just being set */
  element = sh_element (&sh);
  g_object_set (element, "columns", 0, NULL);
  sh_find (&sh);
  out = sh_frame (&sh, dark_new ());
  check_warning (sh.bus, LIBRARY, SETTINGS, "0 columns");
  check_warning (sh.bus, STREAM, FAILED, "There is no grid of spots");
  fail_unless_equals_int (n_rows_of (out), 4);
  gst_buffer_unref (out);
  gst_object_unref (element);
  sh_free (&sh);

  sh = sh_new (backends[__i__], "", TRUE);
  fail_unless (gst_harness_push (sh.h, dark_new ()) != GST_FLOW_OK);
  check_error (sh.bus, STREAM, FORMAT, "There is no grid of spots");
}

CHECK_LOOP_TEST (test_find_grid_without_a_location_is_a_warning, N_BACKENDS)
{
  static const gchar *const locations[] = {NULL, ""};
  g_auto (Sh) sh = sh_new (backends[__i__],
      "columns=2 rows=2 pitch-x=50 pitch-y=50 threshold-mode=range "
      "threshold=0.2",
      FALSE);
  g_autoptr (GstElement) element = sh_element (&sh);

  for (guint i = 0; i < G_N_ELEMENTS (locations); i++) {
    g_signal_emit_by_name (element, "find-grid", locations[i]);
    check_warning (sh.bus, LIBRARY, SETTINGS, "without a location");
  }
  gst_buffer_unref (sh_frame (&sh, spots_new ()));
  fail_unless_equals_int (
      check_count_messages (sh.bus, GST_MESSAGE_WARNING), 0);
}

CHECK_LOOP_TEST (test_optics_give_the_grid_and_radians, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__],
      "aperture=1.2 lenslet-pitch=200 pixel-size=10 focal-length=5 "
      "slope-unit=rad invalid-policy=zero threshold-mode=range threshold=0.2",
      FALSE);
  g_autoptr (GstBuffer) out = sh_frame (&sh, spots_new ());
  const GstStructure *result = gst_imaging_results_get (out, "sh");
  g_autoptr (GstBuffer) data = NULL, cells = NULL;
  gdouble scale = 0;
  gfloat numbers[10], cell[6];

  fail_unless_equals_int (n_rows_of (out), 36); /* 1200 / 200 a side */
  /* spots of another pitch */
  check_warning (
      sh.bus, LIBRARY, SETTINGS, "29 spots of a pitch of 20.50 x 20.50 pixels");
  fail_unless_equals_int (
      check_count_messages (sh.bus, GST_MESSAGE_WARNING), 0);
  fail_unless (
      gst_structure_get (result, "data", GST_TYPE_BUFFER, &data, "cells",
          GST_TYPE_BUFFER, &cells, "slope-scale", G_TYPE_DOUBLE, &scale, NULL));
  fail_unless (fabs (scale - 0.002) < 1e-15, "%g radians a pixel", scale);
  fail_unless (g_str_has_prefix (
                   gst_structure_get_string (result, "unit"), "px,px,rad,rad,"),
      "%s", gst_structure_get_string (result, "unit"));
  gst_buffer_extract (data, 7 * sizeof (numbers), numbers, sizeof (numbers));
  gst_buffer_extract (cells, 7 * sizeof (cell), cell, sizeof (cell));
  /* cell 7 is (1, 1): 20 pixels, from the middle of 130 x 111 */
  fail_unless (cell[0] == 25 && cell[1] == 15 && cell[2] == 20 &&
                   cell[3] == 20 && cell[4] == 34.5f && cell[5] == 25,
      "(%g, %g) %g x %g, reference (%g, %g)", cell[0], cell[1], cell[2],
      cell[3], cell[4], cell[5]);
  fail_unless (fabs (numbers[2] - 0.002 * (numbers[0] - cell[4])) < 1e-6);
  fail_unless (fabs (numbers[3] - 0.002 * (numbers[1] - cell[5])) < 1e-6);
}

CHECK_LOOP_TEST (test_radians_need_optics, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__],
      "columns=2 rows=2 pitch-x=50 pitch-y=50 slope-unit=rad pixel-size=5",
      FALSE);

  fail_unless (gst_harness_push (sh.h, spots_new ()) != GST_FLOW_OK);
  check_error (sh.bus, LIBRARY, SETTINGS, "focal-length");
}

static gpointer
storm (gpointer data)
{
  static const gchar *const units[] = {"px", "rad"};
  static const gchar *const rules[] = {"single-floor", "paper"};
  Sh *sh = data;
  g_autoptr (GstElement) element = sh_element (sh);

  for (guint k = 0; k < 200; k++) {
    gst_util_set_object_arg (G_OBJECT (element), "slope-unit", units[k & 1]);
    gst_util_set_object_arg (G_OBJECT (element), "grid-rule", rules[k & 1]);
    g_object_set (element, "focal-length", 4.0 + k, NULL);
    if (k % 50 == 0)
      g_signal_emit_by_name (element, "find-grid", sh->map);
    g_usleep (200);
  }
  return NULL;
}

CHECK_LOOP_TEST (test_another_thread_may_ask_for_all_of_it, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__],
      "columns=2 rows=2 pitch-x=50 pitch-y=50 pixel-size=5 focal-length=5",
      FALSE);
  GThread *thread = g_thread_new ("storm", storm, &sh);
  g_autoptr (GstBuffer) out = NULL;

  for (guint k = 0; k < 60; k++) {
    gst_clear_buffer (&out);
    out = sh_frame (&sh, spots_new ());
  }
  g_thread_join (thread);
  sh_find (&sh);
  gst_clear_buffer (&out);
  out = sh_frame (&sh, spots_new ());
  fail_unless_equals_int (n_rows_of (out), 29);
}
