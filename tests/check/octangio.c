/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element octangio: sets of repeats become images on either backend, times
 * and units are right, and what cannot be compared is refused. */
#include "check-common.h"

#include <math.h>
#include <string.h>

#include "gstimagingarrayfile.h"
#include "gstimagingmemory.h"
#include "gstimagingnumbering.h"
#include "gstimagingquantity.h"

#include "core/failures.h"

enum { ASCANS = 5, DEPTHS = 7, LONG_ASCANS = 48, LONG_DEPTHS = 32768 };

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

/* B-scan @i: the upper four depths turn by 0.5 radians from one to the next.
 * Depth k of A-scan k is the brightest, so that rounding chooses no surface. */
static GstBuffer *
bscan_new (guint i)
{
  GstBuffer *buffer = gst_buffer_new_allocate (
      NULL, 2 * ASCANS * DEPTHS * sizeof (gfloat), NULL);
  GstMapInfo map;

  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  for (guint k = 0; k < ASCANS * DEPTHS; k++) {
    gdouble phase = k + (k % DEPTHS < 4 ? 0.5 * i : 0);
    gdouble amplitude = k % DEPTHS == k / DEPTHS ? 11 : 10;

    ((gfloat *) map.data)[2 * k] = (gfloat) (amplitude * cos (phase));
    ((gfloat *) map.data)[2 * k + 1] = (gfloat) (amplitude * sin (phase));
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
      "depth-window=1 wavelength-nm=800 interval-us=1000 refractive-index=1.4 "
      "falling-wavenumbers=false",
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
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (out), 3 * k);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET_END (out), 3 * k + 3);
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

CHECK_TEST (test_unknown_sign_is_said_once)
{
  GstBus *bus;
  GstHarness *h = harness_new (
      "octangio repeats=2 method=doppler", COMPLEX_CAPS, "ANY", &bus);

  for (guint i = 0; i < 4; i++)
    check_push (h, bscan_new (i), GST_FLOW_OK);
  check_warning (bus, STREAM, FORMAT, "falling-wavenumbers");
  harness_free (h, bus);
}

/* Images that are missing are counted behind octangio, not the B-scans that
 * became an image; also without times. */
CHECK_LOOP_TEST (test_missing_sets_are_counted, 2)
{
  static const guint offsets[] = {0, 1, 2, 3, 5, 6, 7, 8, 9, 10};
  GstImagingNumbering numbering = {.n_frames = 0};
  GstBus *bus;
  GstHarness *h = harness_new ("octangio repeats=3", COMPLEX_CAPS, "ANY", &bus);

  for (guint i = 0; i < G_N_ELEMENTS (offsets); i++) {
    GstBuffer *in = bscan_new (offsets[i]);

    if (__i__ == 0)
      GST_BUFFER_PTS (in) = GST_BUFFER_DURATION (in) = GST_CLOCK_TIME_NONE;
    if (i > 0 && offsets[i] > offsets[i - 1] + 1)
      GST_BUFFER_FLAG_SET (in, GST_BUFFER_FLAG_DISCONT);
    check_push (h, in, GST_FLOW_OK);
  }
  for (guint i = 0; i < 3; i++) {
    g_autoptr (GstBuffer) out = check_pull (h);
    guint64 n_missing;

    gst_imaging_numbering_next (&numbering, out, &n_missing);
    fail_unless_equals_uint64 (n_missing, i == 1);
  }
  check_warning (bus, STREAM, FAILED, "1 B-scans of an incomplete set");
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
      "depth-window=1 range-min=-1 range-max=1 falling-wavenumbers=false",
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
      "depth-window=1 enface=mean bscans-per-volume=2 falling-wavenumbers=false "
      "surfaces-location=%s",
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

/* --- on the device -------------------------------------------------------- */

/* Where the B-scans lie. */
typedef enum { SYSTEM, PINNED, DEVICE } Place;

static GstBuffer *
bscan_at (Place place, guint i)
{
  GstBuffer *plain = bscan_new (i);

  return place == SYSTEM
             ? plain
             : check_ours (place == DEVICE ? GST_IMAGING_MEMORY_DEVICE
                                           : GST_IMAGING_MEMORY_PINNED,
                   NULL, plain);
}

/* Returns: (transfer full): the images of eight B-scans, and of a ninth */
static GArray *
run (const gchar *launch, const gchar *out_caps, Place place,
    gboolean *on_device, gchar **backend, gchar **memory)
{
  GArray *bytes = g_array_new (FALSE, FALSE, 1);
  GstBus *bus;
  GstHarness *h = harness_new (launch, COMPLEX_CAPS, out_caps, &bus);
  GstBuffer *out;
  GstMapInfo map;

  for (guint i = 0; i < 8; i++)
    check_push (h, bscan_at (place, i), GST_FLOW_OK);
  while ((out = gst_harness_try_pull (h))) {
    GstMemory *first = gst_buffer_peek_memory (out, 0);

    *on_device = gst_is_imaging_memory (first) &&
                 gst_imaging_memory_is_on_device (first);
    gst_buffer_map (out, &map, GST_MAP_READ);
    g_array_append_vals (bytes, map.data, map.size);
    gst_buffer_unmap (out, &map);
    gst_buffer_unref (out);
  }
  gst_harness_get (
      h, "octangio", "active-backend", backend, "active-memory", memory, NULL);
  harness_free (h, bus);
  return bytes;
}

/* Of all kinds of memory; `auto` goes where the B-scans are. Floats without a
 * logarithm stay on the device. */
CHECK_LOOP_TEST (test_the_device_gives_the_same, 9)
{
  static const struct {
    const gchar *launch, *caps;
    gboolean stays;
    gboolean uploads; /* the kernel reads B-scans more than once */
  } cases[] = {
      {"octangio repeats=4 method=mean", "other/tensors", FALSE},
      {"octangio repeats=4 method=speckle-variance", "other/tensors", FALSE},
      {"octangio repeats=4 method=decorrelation", "other/tensors", TRUE},
      {"octangio repeats=4 method=decorrelation bands=3", "other/tensors",
          TRUE},
      {"octangio repeats=2 method=complex-decorrelation floor=1",
          "other/tensors", TRUE, TRUE},
      {"octangio repeats=4 method=doppler falling-wavenumbers=false",
          "video/x-raw,format=GRAY16_LE", FALSE, TRUE},
      {"octangio repeats=1 method=doppler pairs=ascans bulk-motion=false "
       "falling-wavenumbers=false",
          "other/tensors", TRUE, TRUE},
      {"octangio repeats=4 method=eigen", "other/tensors", FALSE, TRUE},
      {"octangio repeats=2 method=doppler enface=mean bscans-per-volume=2 "
       "surface=contour surface-window=3 enface-depths=2 "
       "falling-wavenumbers=false",
          "other/tensors", FALSE, TRUE},
  };
  g_autofree gchar *cuda =
      g_strdup_printf ("%s backend=cuda", cases[__i__].launch);
  g_autofree gchar *cpu_name = NULL, *cpu_memory = NULL;
  gboolean on_device;
  GArray *expected = run (cases[__i__].launch, cases[__i__].caps, SYSTEM,
      &on_device, &cpu_name, &cpu_memory);

  fail_unless_equals_string (cpu_name, "cpu");
  fail_unless (!on_device && expected->len > 0);
  for (Place place = SYSTEM; place <= DEVICE; place++) {
    g_autofree gchar *name = NULL, *memory = NULL;
    GArray *found = run (place == DEVICE ? cases[__i__].launch : cuda,
        cases[__i__].caps, place, &on_device, &name, &memory);

    fail_unless_equals_string (name, "cuda");
    fail_unless_equals_string (
        memory, place == DEVICE || cases[__i__].uploads ? "device" : "pinned");
    fail_unless (on_device == cases[__i__].stays);
    fail_unless_equals_int (found->len, expected->len);
    for (guint i = 0; !strstr (cases[__i__].caps, "video") &&
                      i < found->len / sizeof (gfloat);
         i++) {
      gfloat a = g_array_index (found, gfloat, i);
      gfloat b = g_array_index (expected, gfloat, i);

      /* rounding alone is left of what does not move: down to -200 dB */
      fail_unless (
          fabs (a - b) < 1e-4 || (a < -50 && b < -50), "%u: %g, %g", i, a, b);
    }
    if (strstr (cases[__i__].caps, "video"))
      fail_unless (memcmp (found->data, expected->data, found->len) == 0 ||
                   !check_is_mock ());
    g_array_unref (found);
  }
  g_array_unref (expected);
}

/* Also the rows of a view from above that are there already. */
CHECK_MOCK_TEST (test_cpu_goes_on_when_the_device_fails)
{
  static const gchar launch[] =
      "octangio repeats=2 method=doppler bulk-motion=false lateral-window=1 "
      "depth-window=1 enface=mean bscans-per-volume=2 enface-bottom=3 "
      "falling-wavenumbers=false backend=cuda";
  guint n_warnings = 0;

  for (gulong nth = 1; nth < 30; nth++) {
    GstBus *bus;
    GstHarness *h = harness_new (launch, COMPLEX_CAPS, "other/tensors", &bus);
    GstBuffer *out;
    GstMapInfo map;

    check_push (h, bscan_new (0), GST_FLOW_OK);
    check_push (h, bscan_new (1), GST_FLOW_OK);
    /* auto would not have begun with CUDA for B-scans of the host */
    gst_harness_set (h, "octangio", "backend", 0, NULL);
    check_count_messages (bus, GST_MESSAGE_WARNING); /* that it is late */
    imk_inject_failure (nth, FALSE);
    check_push (h, bscan_new (2), GST_FLOW_OK);
    check_push (h, bscan_new (3), GST_FLOW_OK);
    out = check_pull (h);
    imk_inject_failure (0, FALSE);
    gst_buffer_map (out, &map, GST_MAP_READ);
    for (guint i = 0; i < 2 * ASCANS; i++)
      fail_unless (fabs (((gfloat *) map.data)[i] - 0.5) < 1e-6,
          "failure %lu: %g", nth, ((gfloat *) map.data)[i]);
    gst_buffer_unmap (out, &map);
    gst_buffer_unref (out);
    n_warnings += check_count_messages (bus, GST_MESSAGE_WARNING);
    harness_free (h, bus);
  }
  fail_unless (n_warnings > 3);
}

CHECK_MOCK_TEST (test_cuda_that_fails_is_an_error_without_leak)
{
  guint n_errors = 0;

  for (gulong nth = 1; nth < 40; nth++) {
    GstBus *bus;
    GstHarness *h =
        harness_new ("octangio repeats=2 method=decorrelation enface=mean "
                     "bscans-per-volume=1 surface=contour backend=cuda",
            COMPLEX_CAPS, "other/tensors", &bus);
    GstBuffer *out;

    imk_inject_failure (nth, FALSE);
    gst_harness_push (h, bscan_new (0));
    gst_harness_push (h, bscan_new (1));
    out = gst_harness_try_pull (h);
    imk_inject_failure (0, FALSE);
    fail_unless (out || gst_bus_have_pending (bus), "failure %lu", nth);
    n_errors += !out;
    gst_clear_buffer (&out);
    harness_free (h, bus);
  }
  fail_unless (n_errors > 3);
  fail_unless_equals_int (check_n_live (), 0);
}

/* The backend changes with the format: the view from above has other rows. */
CHECK_TEST (test_wider_bscans_on_another_backend)
{
  enum { WIDE = 40 };
  const gsize size = 2 * WIDE * DEPTHS * sizeof (gfloat);
  GstBus *bus;
  GstHarness *h = harness_new (
      "octangio repeats=1 method=mean enface=mean bscans-per-volume=3",
      COMPLEX_CAPS, "other/tensors", &bus);
  GstBuffer *out;

  check_push (h, bscan_at (DEVICE, 0), GST_FLOW_OK);
  gst_harness_set_src_caps_str (h,
      "other/tensors,format=(string)static,num_tensors=(int)1,"
      "types=(string)float32,dimensions=(string)2:7:40:1,framerate=40/1");
  check_warning (bus, STREAM, FAILED, "1 rows of an incomplete view");
  for (guint i = 0; i < 3; i++) {
    GstBuffer *in = gst_buffer_new_allocate (NULL, size, NULL);

    gst_buffer_memset (in, 0, 0, size);
    check_push (h, in, GST_FLOW_OK);
  }
  out = check_pull (h);
  fail_unless_equals_int (
      gst_buffer_get_size (out), 3 * WIDE * sizeof (gfloat));
  gst_buffer_unref (out);
  harness_free (h, bus);
}

static gpointer
push_two_bscans (gpointer data)
{
  const gsize size = 2 * LONG_ASCANS * LONG_DEPTHS * sizeof (gfloat);
  GstFlowReturn flow = GST_FLOW_OK;

  for (guint i = 0; i < 2; i++) {
    GstBuffer *in = gst_buffer_new_allocate (NULL, size, NULL);

    gst_buffer_memset (in, 0, 0, size);
    flow = gst_harness_push (data, in);
  }
  return GINT_TO_POINTER (flow);
}

/* The whole set takes many seconds. */
CHECK_TEST (test_a_long_set_ends_with_the_stream)
{
  GstBus *bus;
  GstHarness *h = harness_new (
      "octangio repeats=2 bands=16 depth-scale=64 backend=cpu n-threads=1",
      "other/tensors,format=(string)static,num_tensors=(int)1,"
      "types=(string)float32,dimensions=(string)2:32768:48:1,framerate=40/1",
      "ANY", &bus);
  GThread *thread = g_thread_new ("push", push_two_bscans, h);
  gint64 asked;

  g_usleep (G_USEC_PER_SEC / 2);
  asked = g_get_monotonic_time ();
  gst_element_set_state (h->element, GST_STATE_NULL);
  fail_unless (g_get_monotonic_time () - asked < 3 * G_USEC_PER_SEC);
  fail_unless_equals_int (
      GPOINTER_TO_INT (g_thread_join (thread)), GST_FLOW_FLUSHING);
  check_no_messages (bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
  harness_free (h, bus);
}
