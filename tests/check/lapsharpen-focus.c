/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pad `results` of lapsharpen, and the focus of tiles. */
#include "check-common.h"
#include "gstimagingresults.h"

static const gchar *const backends[] = {"cpu", "cuda"};

#define CAPS "video/x-raw,format=GRAY8,width=8,height=4,framerate=25/1"

/* Rows of 10 10 10 10 30 30 30 30: an edge between two tiles. */
static GstBuffer *
edge_new (void)
{
  static const guint8 row[] = {10, 10, 10, 10, 30, 30, 30, 30};
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, 4 * sizeof (row), NULL);

  for (guint y = 0; y < 4; y++)
    gst_buffer_fill (buffer, y * sizeof (row), row, sizeof (row));
  GST_BUFFER_PTS (buffer) = 0;
  GST_BUFFER_DURATION (buffer) = 40 * GST_MSECOND;
  return buffer;
}

static GstHarness *
harness_new (const gchar *launch, guint backend, const gchar *caps)
{
  g_autofree gchar *words =
      g_strdup_printf ("%s backend=%s", launch, backends[backend]);
  GstElement *element = gst_parse_launch (words, NULL);
  GstHarness *h = gst_harness_new_with_element (element, "sink", "src");

  gst_object_unref (element);
  gst_harness_set_src_caps_str (h, caps);
  return h;
}

static const GstStructure *
result_of (GstBuffer *buffer)
{
  const GstStructure *s = gst_imaging_results_get (buffer, NULL);

  fail_unless (s != NULL, "there is no result");
  return s;
}

CHECK_CASE ("lapsharpen-focus", NULL, NULL)

/* L is -20 left of the edge and 20 right of it, Gx 80 on both sides, and the
 * difference of two columns 20 in the two columns left of the edge. */
CHECK_LOOP_TEST (test_tiles_of_an_edge, G_N_ELEMENTS (backends))
{
  static const gfloat expected[2][3] = {{75, 1600, 200}, {75, 1600, 0}};
  GstHarness *h =
      harness_new ("lapsharpen focus-columns=2 amount=0", __i__, CAPS);
  GstBuffer *out, *data;
  const GstStructure *s;
  gfloat found[2][3];
  guint columns = 0, rows = 0;

  gst_harness_push (h, edge_new ());
  out = check_pull (h);
  s = result_of (out);
  fail_unless_equals_string (
      gst_structure_get_string (s, "id"), "focus-tiles-v1");
  fail_unless_equals_string (
      gst_structure_get_string (s, "fields"), "variance,tenengrad,brenner");
  fail_unless (gst_structure_get (s, "tile-columns", G_TYPE_UINT, &columns,
      "tile-rows", G_TYPE_UINT, &rows, "data", GST_TYPE_BUFFER, &data, NULL));
  fail_unless (columns == 2 && rows == 1, "%u x %u", columns, rows);
  fail_unless_equals_int (
      gst_buffer_extract (data, 0, found, sizeof (found)), sizeof (found));
  for (guint i = 0; i < 6; i++)
    fail_unless (found[i / 3][i % 3] == expected[i / 3][i % 3],
        "tile %u: %g, expected %g", i / 3, found[i / 3][i % 3],
        expected[i / 3][i % 3]);
  gst_buffer_unref (data);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}

/* A linked pad `results` is enough: no setting is needed. */
CHECK_LOOP_TEST (test_results_are_text, G_N_ELEMENTS (backends))
{
  GstHarness *h = harness_new ("lapsharpen amount=0", __i__, CAPS);
  GstHarness *text = gst_harness_new_with_element (h->element, NULL, "results");
  GstBuffer *out;
  gchar line[256] = "";

  gst_harness_set_sink_caps_str (text, "text/csv");
  gst_harness_push (h, edge_new ());
  gst_buffer_unref (check_pull (h));
  out = check_pull (text);
  gst_buffer_extract (out, 0, line, sizeof (line) - 1);
  fail_unless (g_str_has_prefix (line, "frame,pts,row,column,variance,"
                                       "tenengrad,brenner\n"),
      "%s", line);
  fail_unless (strstr (line, ",0,0,100,1600,100") != NULL, "%s", line);
  gst_buffer_unref (out);
  gst_harness_teardown (text);
  gst_harness_teardown (h);
}

/* More tiles than pixels. */
CHECK_TEST (test_a_tile_is_at_least_a_pixel)
{
  GstHarness *h = harness_new ("lapsharpen focus-columns=64 focus-rows=3", 0,
      "video/x-raw,format=GRAY8,width=8,height=4,framerate=0/1");
  GstBuffer *out;
  gint rows = 0;

  gst_harness_push (h, edge_new ());
  out = check_pull (h);
  gst_structure_get_int (result_of (out), "rows", &rows);
  fail_unless_equals_int (rows, 24);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}
