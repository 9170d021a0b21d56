/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element octangio: sets of repeats become images, times and units are
 * right, and what cannot be compared is refused. */
#include "check-common.h"

#include <math.h>
#include <string.h>

#include "gstimagingarrayfile.h"
#include "gstimagingquantity.h"

enum { ASCANS = 5, DEPTHS = 7 };

#define COMPLEX_CAPS \
  "other/tensors,format=(string)static,num_tensors=(int)1," \
  "types=(string)float32,dimensions=(string)2:7:5:1,framerate=40/1"
#define IMAGE_CAPS \
  "other/tensors,format=(string)static,num_tensors=(int)1," \
  "types=(string)float32,dimensions=(string)5:7:1:1,framerate=40/1"

static GstHarness *
harness_new (
    const gchar *launch, const gchar *in, const gchar *out, GstBus **bus)
{
  GstHarness *h = gst_harness_new_parse (launch);

  *bus = gst_bus_new ();
  gst_element_set_bus (h->element, *bus);
  gst_harness_set_sink_caps_str (h, out);
  gst_harness_set_src_caps_str (h, in);
  return h;
}

static void
harness_free (GstHarness *h, GstBus *bus)
{
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
  gst_harness_teardown (h);
}

/* B-scan @i: the upper four depths turn by 0.5 radians from one to the next. */
static GstBuffer *
bscan_new (guint i)
{
  GstBuffer *buffer = gst_buffer_new_allocate (
      NULL, 2 * ASCANS * DEPTHS * sizeof (gfloat), NULL);
  GstMapInfo map;

  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  for (guint k = 0; k < ASCANS * DEPTHS; k++) {
    gdouble phase = k + (k % DEPTHS < 4 ? 0.5 * i : 0);

    ((gfloat *) map.data)[2 * k] = (gfloat) (10 * cos (phase));
    ((gfloat *) map.data)[2 * k + 1] = (gfloat) (10 * sin (phase));
  }
  gst_buffer_unmap (buffer, &map);
  GST_BUFFER_PTS (buffer) = i * 25 * GST_MSECOND;
  GST_BUFFER_DURATION (buffer) = 25 * GST_MSECOND;
  GST_BUFFER_OFFSET (buffer) = i;
  return buffer;
}

CHECK_CASE ("octangio", check_make_folder, check_remove_folder)

/* Two images of three B-scans each, in mm/s; the third is not complete. */
CHECK_TEST (test_velocity_has_unit_and_time)
{
  const gdouble scale = 800 / (4 * G_PI * 1.4 * 1000);
  GstBus *bus;
  GstHarness *h = harness_new (
      "octangio repeats=3 method=doppler bulk-motion=false lateral-window=1 "
      "depth-window=1 wavelength-nm=800 interval-us=1000 refractive-index=1.4",
      COMPLEX_CAPS, "other/tensors", &bus);

  for (guint i = 0; i < 7; i++)
    check_push (h, bscan_new (i), GST_FLOW_OK);
  for (guint k = 0; k < 2; k++) {
    g_autoptr (GstBuffer) out = check_pull (h);
    const GstStructure *s = gst_custom_meta_get_structure (
        gst_buffer_get_custom_meta (out, GST_IMAGING_QUANTITY_META));
    GstMapInfo map;

    fail_unless_equals_string (
        gst_structure_get_string (s, "name"), "velocity");
    fail_unless_equals_string (gst_structure_get_string (s, "unit"), "mm/s");
    fail_unless_equals_uint64 (GST_BUFFER_PTS (out), k * 75 * GST_MSECOND);
    fail_unless_equals_uint64 (GST_BUFFER_DURATION (out), 75 * GST_MSECOND);
    gst_buffer_map (out, &map, GST_MAP_READ);
    fail_unless_equals_int (map.size, ASCANS * DEPTHS * sizeof (gfloat));
    for (guint i = 0; i < ASCANS * DEPTHS; i++)
      fail_unless (fabs (((gfloat *) map.data)[i] -
                         (i / ASCANS < 4 ? 0.5 * scale : 0)) < 1e-6);
    gst_buffer_unmap (out, &map);
  }
  gst_harness_push_event (h, gst_event_new_eos ());
  check_warning (bus, STREAM, FAILED, "1 B-scans of an incomplete");
  harness_free (h, bus);
}

/* Colours say the direction, grey values the size. */
CHECK_LOOP_TEST (test_colours_and_grey_values, 4)
{
  static const gchar *const outs[] = {"video/x-raw,format=GRAY8",
      "video/x-raw,format=GRAY16_LE", "video/x-raw,format=RGB", "ANY"};
  GstBus *bus;
  GstHarness *h = harness_new (
      "octangio repeats=2 method=doppler bulk-motion=false lateral-window=1 "
      "depth-window=1 range-min=-1 range-max=1",
      COMPLEX_CAPS, outs[__i__], &bus);
  GstBuffer *out;
  GstMapInfo map;

  check_push (h, bscan_new (0), GST_FLOW_OK);
  check_push (h, bscan_new (1), GST_FLOW_OK);
  out = check_pull (h);
  gst_buffer_map (out, &map, GST_MAP_READ);
  if (__i__ == 0) {
    fail_unless_equals_int (map.data[0], 191); /* 0.75 of 255 */
    fail_unless_equals_int (map.data[8 * 6], 128);
  } else if (__i__ == 1) {
    fail_unless_equals_int (GST_READ_UINT16_LE (map.data), 49151);
  } else { /* half of the largest flow to larger depths: red */
    fail_unless_equals_int (map.data[0], 255);
    fail_unless_equals_int (map.data[1], 0);
    fail_unless_equals_int (map.data[2], 0);
    fail_unless_equals_int (map.data[16 * 6], 0);
  }
  gst_buffer_unmap (out, &map);
  gst_buffer_unref (out);
  harness_free (h, bus);
}

/* A view from above, between two surfaces. */
CHECK_TEST (test_enface_between_surfaces)
{
  static const gdouble surfaces[2][ASCANS] = {{0, 1, 2, 4, 5}, {4, 4, 6, 7, 5}};
  static const gfloat expected[] = {0.5, 0.5, 0.25, 0, 0};
  g_autofree gchar *path = check_path_of ("surfaces.npy");
  g_autofree gchar *launch = NULL;
  GstBuffer *out;
  GstMapInfo map;
  GstHarness *h;
  GstBus *bus;

  fail_unless (gst_imaging_array_save (path, GST_IMAGING_ND_ARRAY_TYPE_F64, 2,
      (const guint64[]){2, ASCANS}, surfaces, NULL));
  launch = g_strdup_printf (
      "octangio repeats=2 method=doppler bulk-motion=false lateral-window=1 "
      "depth-window=1 enface=mean bscans-per-volume=2 surfaces-location=%s",
      path);
  h = harness_new (launch, COMPLEX_CAPS, "other/tensors", &bus);
  for (guint i = 0; i < 4; i++)
    check_push (h, bscan_new (i), GST_FLOW_OK);
  out = check_pull (h);
  fail_unless_equals_uint64 (GST_BUFFER_DURATION (out), 100 * GST_MSECOND);
  gst_buffer_map (out, &map, GST_MAP_READ);
  fail_unless_equals_int (map.size, 2 * ASCANS * sizeof (gfloat));
  for (guint i = 0; i < 2 * ASCANS; i++)
    fail_unless (
        fabs (((gfloat *) map.data)[i] - expected[i % ASCANS]) < 1e-6, "%u", i);
  gst_buffer_unmap (out, &map);
  gst_buffer_unref (out);
  harness_free (h, bus);
}

/* A slab of two depths, one below the depth that is brightest. */
CHECK_TEST (test_enface_below_the_contour)
{
  static const guint brightest[ASCANS] = {1, 2, 2, 3, 4};
  GstBus *bus;
  GstHarness *h = harness_new (
      "octangio repeats=1 method=mean enface=mean bscans-per-volume=1 "
      "surface=contour surface-window=1 enface-top=1 enface-depths=2",
      COMPLEX_CAPS, "other/tensors", &bus);
  GstBuffer *in = bscan_new (0), *out;
  GstMapInfo map;

  gst_buffer_map (in, &map, GST_MAP_WRITE);
  for (guint k = 0; k < ASCANS * DEPTHS; k++) {
    ((gfloat *) map.data)[2 * k] =
        k % DEPTHS == brightest[k / DEPTHS] ? 100 : (gfloat) (k % DEPTHS);
    ((gfloat *) map.data)[2 * k + 1] = 0;
  }
  gst_buffer_unmap (in, &map);
  check_push (h, in, GST_FLOW_OK);
  out = check_pull (h);
  gst_buffer_map (out, &map, GST_MAP_READ);
  for (guint i = 0; i < ASCANS; i++) {
    gdouble z = brightest[i] + 1;
    gdouble expected = 10 * log10 ((z * z + (z + 1) * (z + 1)) / 2);

    fail_unless (fabs (((gfloat *) map.data)[i] - expected) < 1e-5, "%u", i);
  }
  gst_buffer_unmap (out, &map);
  gst_buffer_unref (out);
  harness_free (h, bus);
}

CHECK_LOOP_TEST (test_what_cannot_be_compared_is_refused, 5)
{
  static const struct {
    const gchar *launch, *caps, *words;
  } cases[] = {
      {"octangio method=doppler", IMAGE_CAPS, "needs phases"},
      {"octangio repeats=1", COMPLEX_CAPS, "repeats is 1; it can be 2 to 16"},
      {"octangio enface=mean enface-top=7", COMPLEX_CAPS,
          "leave none of the 7"},
      {"octangio enface=mean surface=contour surface-top=7", COMPLEX_CAPS,
          "surface-top is 7, but there are 7 depths"},
      {"octangio",
          "other/tensors,format=(string)static,num_tensors=(int)1,"
          "types=(string)float32,dimensions=(string)5:7:3:1,framerate=0/1",
          "are no B-scans"},
  };
  GstBus *bus;
  GstHarness *h =
      harness_new (cases[__i__].launch, cases[__i__].caps, "ANY", &bus);

  check_says (bus, GST_MESSAGE_ERROR, cases[__i__].words);
  harness_free (h, bus);
}

CHECK_TEST (test_a_bscan_that_is_too_small_is_refused)
{
  GstBus *bus;
  GstHarness *h = harness_new ("octangio", COMPLEX_CAPS, "ANY", &bus);

  check_push (h, gst_buffer_new_allocate (NULL, 279, NULL), GST_FLOW_ERROR);
  check_error (bus, STREAM, FORMAT, "5 A-scans of 7 depths have 280");
  harness_free (h, bus);
}

/* Levels in dB look like intensities. */
CHECK_TEST (test_levels_are_refused)
{
  GstBus *bus;
  GstHarness *h =
      harness_new ("octangio method=decorrelation", IMAGE_CAPS, "ANY", &bus);
  GstBuffer *in =
      gst_buffer_new_allocate (NULL, ASCANS * DEPTHS * sizeof (gfloat), NULL);

  gst_imaging_quantity_attach (in, "level", "dB", 1, 0, NULL, 0);
  check_push (h, in, GST_FLOW_ERROR);
  check_error (bus, STREAM, FORMAT, "scaling=linear");
  harness_free (h, bus);
}
