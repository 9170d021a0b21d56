/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The header that programs copy, with GStreamer's core alone: reads results and
 * a quantity from the frames of a pipeline. */
#include "gstimagingreader.h"

#define ROWS 3
#define COLUMNS 4

static gint n_results, n_quantities; /* atomic */

static void
expect (gboolean is_right, const gchar *what)
{
  if (!is_right)
    g_error ("%s", what);
}

static void
check_text (const gchar *found, const gchar *expected)
{
  if (g_strcmp0 (found, expected) != 0)
    g_error ("found %s, expected %s", found, expected);
}

static GstPadProbeReturn
read_results (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstBuffer *buffer = gst_pad_probe_info_get_buffer (info);
  GstImagingReader r;

  expect (!gst_imaging_reader_open (&r, buffer, "other"), "an unknown element");
  expect (gst_imaging_reader_open (&r, buffer, "sh"), "no results");
  check_text (r.id, "shwfs-centroids-v1");
  check_text (r.fields, "dx,dy");
  check_text (r.element, "shcentroid");
  check_text (r.backend, "cpu");
  expect (r.version && r.settings_hash && strlen (r.settings_hash) == 64,
      "version and hash");
  expect (r.n == ROWS * COLUMNS && r.by_field && r.rows == 2, "shape");
  expect (r.ref_width == 80 && r.ref_height == 60, "size of the frame");
  expect (r.frame == (guint64) n_results && r.frames_missing == 0 &&
              r.pts == GST_BUFFER_PTS (buffer) &&
              r.timestamp == GST_CLOCK_TIME_NONE,
      "frame and times");
  expect (gst_imaging_reader_field (&r, "dx") == 0 &&
              gst_imaging_reader_field (&r, "dy") == 1 &&
              gst_imaging_reader_field (&r, "d") == -1 &&
              gst_imaging_reader_field (&r, "flags") == -1,
      "fields");
  expect (r.flags && r.row_column, "flags, rows and columns");
  for (gsize i = 0; i < r.n; i++) {
    expect (r.flags[i] == 1, "a black cell has no flux");
    expect (r.row_column[2 * i] == i / COLUMNS &&
                r.row_column[2 * i + 1] == i % COLUMNS,
        "row and column");
    expect (gst_imaging_reader_value (&r, i, 1) == 0.0f, "dy");
  }
  gst_imaging_reader_close (&r);
  expect (!r.data, "closed");
  g_atomic_int_inc (&n_results);
  return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn
read_quantity (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstBuffer *buffer = gst_pad_probe_info_get_buffer (info);
  GstImagingReaderQuantity q;

  expect (gst_imaging_reader_quantity (&q, buffer), "no quantity");
  check_text (q.name, "height");
  check_text (q.unit, "mm");
  check_text (q.element, "normalintegrate");
  expect (q.scale == -q.offset, "sample 0 is no surface");
  expect (
      q.n_axes == 2 && q.axes[1].step == -0.25 && q.axes[1].origin == 23 * 0.25,
      "axes: y goes up from the last row");
  check_text (q.axes[0].name, "x");
  check_text (q.axes[1].name, "y");
  check_text (q.axes[1].unit, "mm");
  g_atomic_int_inc (&n_quantities);
  return GST_PAD_PROBE_OK;
}

/* Of what was made once a second: nobody knows the width of a pixel. */
static void
check_axes_with_gaps (void)
{
  g_autoptr (GstBuffer) buffer = gst_buffer_new ();
  GstImagingReaderQuantity q;

  gst_structure_set (gst_custom_meta_get_structure (gst_buffer_add_custom_meta (
                         buffer, "GstImagingQuantity")),
      "axis-1-name", G_TYPE_STRING, "y", "axis-1-step", G_TYPE_DOUBLE, 0.5,
      "axis-3-name", G_TYPE_STRING, "time", "axis-3-step", G_TYPE_DOUBLE, 1.0,
      "axis-3-unit", G_TYPE_STRING, "s", NULL);
  expect (gst_imaging_reader_quantity (&q, buffer) && q.n_axes == 4,
      "an axis behind one that is unknown");
  expect (!q.axes[0].name && !q.axes[2].name, "axes that are unknown");
  check_text (q.axes[1].name, "y");
  check_text (q.axes[3].name, "time");
  check_text (q.axes[3].unit, "s");
  expect (q.axes[1].step == 0.5 && q.axes[3].step == 1, "steps");
}

static void
probe (GstElement *pipeline, const gchar *name, GstPadProbeCallback function)
{
  g_autoptr (GstElement) sink = gst_bin_get_by_name (GST_BIN (pipeline), name);
  g_autoptr (GstPad) pad = gst_element_get_static_pad (sink, "sink");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, function, NULL, NULL);
}

/* Returns: FALSE after an error, which is printed */
static gboolean
play (const gchar *description, GstPadProbeCallback function)
{
  GError *error = NULL;
  g_autoptr (GstElement) pipeline = gst_parse_launch (description, &error);
  GstMessage *message;
  g_autoptr (GstBus) bus = NULL;
  gboolean ended;

  if (error)
    g_error ("%s", error->message);
  probe (pipeline, "out", function);
  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (
      bus, 20 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  ended = message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS;
  if (message)
    gst_message_unref (message);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  return ended;
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  expect (
      play ("videotestsrc num-buffers=3 pattern=black ! "
            "video/x-raw,format=GRAY16_LE,width=80,height=60 ! "
            "shcentroid name=sh backend=cpu pitch-x=20 pitch-y=20 columns=4 "
            "rows=3 fields=slopes threshold-mode=absolute threshold=65535 ! "
            "fakesink name=out",
          read_results),
      "the first pipeline failed");
  expect (n_results == 3, "not each frame has results");
  if (g_strcmp0 (argv[1], "fft") == 0) {
    expect (play ("videotestsrc num-buffers=2 ! "
                  "video/x-raw,format=RGB,width=32,height=24 ! "
                  "normalintegrate backend=cpu mm-per-pixel=0.25 ! "
                  "fakesink name=out",
                read_quantity),
        "the second pipeline failed");
    expect (n_quantities == 2, "not each image has a quantity");
    check_axes_with_gaps ();
  }
  return 0;
}
