/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element shcentroid while other threads change everything about it:
 * properties that fit and that do not, captures, grids. To be run under the
 * thread sanitizer as well. */
#include <math.h>

#include "check-common.h"
#include "gstimagingnpy.h"
#include "gstimagingresults.h"

#include "imk/shcentroid.h"

static const gchar *const backends[] = {"cpu", "cuda"};
enum { N_BACKENDS = G_N_ELEMENTS (backends) };

enum { WIDTH = 40, HEIGHT = 30, N_FRAMES = 300, N_STORMS = 3 };
#define GRID "pitch-x=10 pitch-y=10 columns=4 rows=3 "

static gchar *good_dark, *bad_dark, *nan_map, *map, *lut, *template, *found;

static gchar *
save (const gchar *name, guint64 n_rows, guint64 n_columns, gdouble value)
{
  const guint64 dims[] = {n_rows, n_columns};
  g_autofree gdouble *values = g_new (gdouble, n_rows * n_columns);
  gchar *path = check_path_of (name);

  for (guint64 i = 0; i < n_rows * n_columns; i++)
    values[i] = value;
  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_F64, 2, dims, values, NULL));
  return path;
}

static void
make_files (void)
{
  check_make_folder ();
  good_dark = save ("dark.npy", HEIGHT, WIDTH, 1.5);
  bad_dark = save ("other-dark.npy", HEIGHT + 1, WIDTH, 1.5);
  nan_map = save ("nan-map.npy", 2, 4, NAN);
  map = save ("map.npy", 3, 4, 7);
  lut = save ("lut.npy", 1, 256, -1e9);
  template = save ("template.npy", 3, 4, 5); /* even: refused */
  found = check_path_of ("found.npy");
}

static void
remove_files (void)
{
  gchar **paths[] = {
      &good_dark, &bad_dark, &nan_map, &map, &lut, &template, &found};

  for (guint i = 0; i < G_N_ELEMENTS (paths); i++)
    g_clear_pointer (paths[i], g_free);
  check_remove_folder ();
}

/* --- the storm --- */

typedef struct {
  const gchar *name, *values[5];
} Choice;

/* Some do not fit, alone or beside the others. */
static const Choice choices[] = {
    {"x0", {"0", "3.5", "-2", "1000", "0"}},
    {"y0", {"0", "1.25", "-3", "-1000", "0"}},
    {"pitch-x", {"10", "9.5", "0", "5", "20"}},
    {"pitch-y", {"10", "7.5", "0.5", "5", "15"}},
    {"columns", {"4", "2", "0", "8", "1"}},
    {"rows", {"3", "2", "0", "6", "1"}},
    {"grid-rule", {"single-floor", "paper", "single-floor", "paper", "paper"}},
    {"margin", {"0", "1", "2", "9", "0"}},
    {"fields", {"all", "xy", "slopes", "all", "all"}},
    {"aperture", {"0", "0.2", "0", "0", "9"}},
    {"lenslet-pitch", {"0", "100", "0", "50", "100"}},
    {"pixel-size", {"0", "10", "0", "10", "10"}},
    {"focal-length", {"0", "5", "0", "0", "5"}},
    {"slope-unit", {"px", "rad", "px", "rad", "px"}},
    {"threshold", {"0", "0.3", "20", "65535", "2"}},
    {"threshold-mode", {"none", "absolute", "relative", "range", "noise"}},
    {"threshold-action", {"subtract", "keep", "subtract", "keep", "keep"}},
    {"threshold-least", {"0", "5", "1e6", "0", "3"}},
    {"brightest", {"0", "1", "10", "100000", "0"}},
    {"weighting", {"none", "gaussian", "tracking", "none", "gaussian"}},
    {"sigma", {"1", "3", "0.01", "1e6", "2"}},
    {"iterations", {"1", "3", "1", "5", "1"}},
    {"power", {"1", "2", "1.5", "4", "1"}},
    {"estimator", {"cog", "quad", "correlation", "pupils", "matched"}},
    {"normalisation", {"local", "global", "local", "global", "local"}},
    {"template-source", {"stored", "frame", "stored", "frame", "stored"}},
    {"template-cell", {"-1", "0", "5", "100000", "0"}},
    {"template-margin", {"0", "1", "2", "40", "0"}},
    {"correlation",
        {"normalised", "covariance", "difference", "difference", "normalised"}},
    {"peak-fit",
        {"paraboloid", "parabola", "parabola", "parabola", "parabola"}},
    {"search-range", {"4", "1", "32", "2", "4"}},
    {"min-correlation", {"0.25", "0", "1", "0.5", "0"}},
    {"lattice", {"any", "square", "hexagonal", "any", "square"}},
    {"quad-gain", {"1", "2", "0.5", "1", "1"}},
    {"window", {"cell", "tracking", "cell", "cell", "tracking"}},
    {"tracking-gain", {"1", "0", "0.5", "1", "1"}},
    {"tracking-reset", {"0", "1", "5", "0", "0"}},
    {"remove-tilt", {"false", "true", "false", "true", "false"}},
    {"min-flux", {"0", "100", "1e300", "0", "0"}},
    {"min-illumination", {"0", "0.5", "1", "0", "0.1"}},
    {"bit-depth", {"0", "12", "16", "8", "0"}},
    {"saturation", {"0", "-1", "250", "60000", "0"}},
    {"gain", {"1", "0.5", "1e-9", "1e9", "2"}},
    {"read-noise", {"0", "3", "1e6", "0", "1"}},
    {"invalid-policy", {"zero", "hold", "reference", "zero", "hold"}},
};

static gboolean stop;   /* atomic */
static guint next_seed; /* the same */

static void
change_files (GstElement *element, GRand *random)
{
  const gchar *const darks[] = {good_dark, bad_dark, "", "/nowhere.npy"};
  const gchar *const flats[] = {"", good_dark, bad_dark, nan_map};
  const gchar *const maps[] = {"", nan_map, map, ""};
  const gchar *const luts[] = {"", lut, "", map};
  const gchar *const templates[] = {"", template, map, good_dark};

  g_object_set (element, "dark-location",
      darks[g_rand_int_range (random, 0, 4)], "flat-location",
      flats[g_rand_int_range (random, 0, 4)], "bad-pixels-location",
      flats[g_rand_int_range (random, 0, 4)], "map-location",
      maps[g_rand_int_range (random, 0, 4)], "lut-location",
      luts[g_rand_int_range (random, 0, 4)], "template-location",
      templates[g_rand_int_range (random, 0, 4)], NULL);
}

static void
ask_for_captures (GstElement *element, GRand *random)
{
  static const gchar *const names[] = {
      "capture-dark", "capture-flat", "capture-reference", "capture-template"};
  guint n = (guint) g_rand_int_range (random, 1, 4);
  gboolean begun; /* not while one of another kind is under way */

  g_signal_emit_by_name (
      element, names[g_rand_int_range (random, 0, 4)], n, NULL, &begun);
  if (g_rand_boolean (random))
    g_signal_emit_by_name (element, "find-grid", found);
}

static void
read_all (GstElement *element)
{
  for (guint i = 0; i < G_N_ELEMENTS (choices); i++) {
    GValue value = G_VALUE_INIT;

    g_object_get_property (G_OBJECT (element), choices[i].name, &value);
    g_value_unset (&value);
  }
}

static gpointer
storm (gpointer data)
{
  GstElement *element = data;
  g_autoptr (GRand) random =
      g_rand_new_with_seed (g_atomic_int_add (&next_seed, 1));

  while (!g_atomic_int_get (&stop)) {
    const Choice *c =
        &choices[g_rand_int_range (random, 0, G_N_ELEMENTS (choices))];

    gst_util_set_object_arg (G_OBJECT (element), c->name,
        c->values[g_rand_int_range (random, 0, G_N_ELEMENTS (c->values))]);
    if (g_rand_int_range (random, 0, 20) == 0)
      change_files (element, random);
    if (g_rand_int_range (random, 0, 20) == 0)
      ask_for_captures (element, random);
    if (g_rand_int_range (random, 0, 20) == 0)
      read_all (element);
    g_usleep (200);
  }
  return NULL;
}

static void
calm (GstElement *element)
{
  for (guint i = 0; i < G_N_ELEMENTS (choices); i++)
    gst_util_set_object_arg (
        G_OBJECT (element), choices[i].name, choices[i].values[0]);
  g_object_set (element, "dark-location", "", "flat-location", "",
      "bad-pixels-location", "", "lut-location", "", "reference-location", "",
      "template-location", "", "map-location", "", NULL);
}

/* --- frames --- */

static GstBuffer *
frame_new (guint seed)
{
  GstVideoInfo info = check_info ("GRAY8", WIDTH, HEIGHT);

  return check_noise (&info, seed);
}

/* Returns: (transfer full): the numbers, all of which are finite */
static GBytes *
measure (GstHarness *h, guint seed)
{
  g_autoptr (GstBuffer) out = NULL, data = NULL;
  const GstStructure *result;
  GstMapInfo map_info;
  GBytes *bytes;

  check_push (h, frame_new (seed), GST_FLOW_OK);
  out = check_pull (h);
  result = gst_imaging_results_get (out, "sh");
  fail_unless (result != NULL);
  fail_unless (
      gst_structure_get (result, "data", GST_TYPE_BUFFER, &data, NULL));
  fail_unless (gst_buffer_map (data, &map_info, GST_MAP_READ));
  fail_unless (map_info.size > 0);
  for (gsize i = 0; i < map_info.size / sizeof (gfloat); i++)
    fail_unless (isfinite (((gfloat *) map_info.data)[i]),
        "frame %u has %g at %" G_GSIZE_FORMAT, seed,
        ((gfloat *) map_info.data)[i], i);
  bytes = g_bytes_new (map_info.data, map_info.size);
  gst_buffer_unmap (data, &map_info);
  return bytes;
}

static GstElement *
element_new (const gchar *backend, GstBus *bus)
{
  g_autofree gchar *launch =
      g_strdup_printf ("shcentroid name=sh backend=%s " GRID, backend);
  GstElement *element = gst_parse_launch (launch, NULL);

  fail_unless (element != NULL);
  gst_element_set_bus (element, bus);
  return element;
}

static GstHarness *
harness_new (GstElement *element)
{
  g_autofree gchar *caps = check_caps_string ("GRAY8", WIDTH, HEIGHT);
  GstHarness *h = gst_harness_new_with_element (element, "sink", "src");

  gst_harness_set_src_caps_str (h, caps);
  return h;
}

static GBytes *
measure_afresh (const gchar *backend, guint seed)
{
  g_autoptr (GstElement) element = element_new (backend, NULL);
  g_autoptr (CheckHarness) h = harness_new (element);
  GBytes *bytes = measure (h, seed);

  return bytes;
}

CHECK_CASE ("storm", make_files, remove_files)

CHECK_LOOP_TEST (
    test_a_storm_of_settings_leaves_the_stream_and_the_numbers_whole,
    N_BACKENDS)
{
  g_autoptr (CheckBus) bus = gst_bus_new ();
  g_autoptr (GstElement) element = element_new (backends[__i__], bus);
  g_autoptr (CheckHarness) h = harness_new (element);
  g_autoptr (GBytes) before = NULL, after = NULL;
  GThread *threads[N_STORMS];

  g_bytes_unref (measure (h, 0));
  g_atomic_int_set (&stop, FALSE);
  g_atomic_int_set (&next_seed, 7);
  for (guint i = 0; i < N_STORMS; i++)
    threads[i] = g_thread_new ("storm", storm, element);
  for (guint i = 1; i <= N_FRAMES; i++) {
    g_bytes_unref (measure (h, i));
    gst_bus_set_flushing (bus, TRUE); /* of warnings there are many */
    gst_bus_set_flushing (bus, FALSE);
  }
  g_atomic_int_set (&stop, TRUE);
  for (guint i = 0; i < N_STORMS; i++)
    g_thread_join (threads[i]);
  calm (element);
  for (guint i = 0; i < 5; i++) /* captures come to their end */
    g_bytes_unref (measure (h, i));
  calm (element);
  after = measure (h, 5);
  before = measure_afresh (backends[__i__], 5);
  fail_unless (
      g_bytes_equal (before, after), "the storm has left something behind");
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ERROR), 0);
}

/* --- two settings --- */

/* One takes effect in the kernel that there is, one needs a new one. */
static void
choose (GstElement *element, guint which)
{
  g_object_set (element, "threshold", which & 1 ? 40.0 : 0.0, NULL);
  g_object_set (element, "x0", which & 2 ? 3.5 : 0.0, NULL);
}

static gpointer
choose_in_turns (gpointer element)
{
  for (guint i = 0; !g_atomic_int_get (&stop); i++) {
    choose (element, i / 2 + i % 2); /* one at a time */
    g_usleep (i % 500);
  }
  return NULL;
}

CHECK_LOOP_TEST (test_no_frame_is_of_two_settings, N_BACKENDS)
{
  g_autoptr (GstElement) element = element_new (backends[__i__], NULL);
  g_autoptr (CheckHarness) h = harness_new (element);
  GBytes *expected[4];
  GThread *thread;
  guint seen = 0;

  gst_util_set_object_arg (G_OBJECT (element), "threshold-mode", "absolute");
  for (guint i = 0; i < 4; i++) {
    choose (element, i);
    expected[i] = measure (h, 9);
  }
  g_atomic_int_set (&stop, FALSE);
  thread = g_thread_new ("choose", choose_in_turns, element);
  /* on a busy machine the other thread may take a while to run */
  for (guint k = 0; k < N_FRAMES || (seen != 15 && k < 100000); k++) {
    g_autoptr (GBytes) numbers = measure (h, 9);
    guint which = 0;

    while (which < 4 && !g_bytes_equal (numbers, expected[which]))
      which++;
    fail_unless (which < 4, "frame %u is of no setting", k);
    seen |= 1u << which;
  }
  g_atomic_int_set (&stop, TRUE);
  g_thread_join (thread);
  fail_unless_equals_int (seen, 15);
  for (guint i = 0; i < 4; i++)
    g_bytes_unref (expected[i]);
}

/* No frame comes: nothing is captured, and it is said at the end. */
CHECK_LOOP_TEST (
    test_a_capture_without_frames_is_a_warning_at_the_end, N_BACKENDS)
{
  g_autoptr (CheckBus) bus = gst_bus_new ();
  g_autoptr (GstElement) element = element_new (backends[__i__], bus);
  g_autoptr (CheckHarness) h = harness_new (element);
  gboolean begun = FALSE;

  g_bytes_unref (measure (h, 0));
  g_signal_emit_by_name (element, "capture-dark", 5, NULL, &begun);
  fail_unless (begun);
  g_bytes_unref (measure (h, 1));
  gst_element_set_state (element, GST_STATE_READY);
  check_warning (bus, STREAM, FAILED, "capture-dark came to 1 of 5 frames");
  g_signal_emit_by_name (element, "capture-dark", 0, NULL, &begun);
  fail_if (begun);
  check_warning (bus, LIBRARY, SETTINGS, "0 frames");
}

/* A gain of 0 would make every variance infinite; radians need a focal length,
 * and wait for it. */
CHECK_LOOP_TEST (test_what_cannot_be_is_not_taken, N_BACKENDS)
{
  g_autoptr (CheckBus) bus = gst_bus_new ();
  g_autoptr (GstElement) element = element_new (backends[__i__], bus);
  g_autoptr (CheckHarness) h = harness_new (element);
  g_autoptr (GBytes) before = measure (h, 3), after = NULL;

  g_object_set (element, "gain", 0.0, NULL);
  after = measure (h, 3);
  check_warning (bus, LIBRARY, SETTINGS, "gain");
  fail_unless (g_bytes_equal (before, after));
  g_bytes_unref (after);
  g_object_set (element, "gain", 1.0, NULL);
  gst_util_set_object_arg (G_OBJECT (element), "slope-unit", "rad");
  after = measure (h, 3);
  check_warning (bus, LIBRARY, SETTINGS, "focal-length");
  fail_unless (g_bytes_equal (before, after));
  g_bytes_unref (after);
  g_object_set (element, "pixel-size", 10.0, "focal-length", 5.0, NULL);
  after = measure (h, 3);
  fail_if (g_bytes_equal (before, after));
}
