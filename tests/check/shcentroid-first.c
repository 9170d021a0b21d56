/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What shcentroid tells those who have set little: light outside the spots,
 * bits that are not set, lenslets that find-grid left out; and frames of
 * float32. */
#include <math.h>
#include <string.h>

#include "check-common.h"
#include "gstimagingnpy.h"
#include "gstimagingresults.h"

#include "imk/shcentroid.h"

static const gchar *const backends[] = {"cpu", "cuda"};
enum { N_BACKENDS = G_N_ELEMENTS (backends) };

enum { PITCH = 20, SIDE = 4, SIZE = SIDE * PITCH, N_CELLS = SIDE * SIDE };
#define GRID "columns=4 rows=4 pitch-x=20 pitch-y=20 "

typedef struct {
  GstHarness *h;
  GstBus *bus;
} Sh;

static Sh
sh_new (const gchar *backend, const gchar *properties, const gchar *caps)
{
  g_autofree gchar *launch =
      g_strdup_printf ("shcentroid name=sh backend=%s %s", backend, properties);
  Sh sh = {.bus = gst_bus_new ()};

  sh.h = gst_harness_new_parse (launch);
  gst_element_set_bus (sh.h->element, sh.bus);
  gst_harness_set_src_caps_str (sh.h, caps);
  return sh;
}

static void
sh_free (Sh *sh)
{
  gst_element_set_bus (sh->h->element, NULL);
  gst_object_unref (sh->bus);
  gst_harness_teardown (sh->h);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Sh, sh_free)

/* Pushes @in (transfer full). Returns: (transfer full): the numbers */
static gfloat *
sh_measure (Sh *sh, GstBuffer *in)
{
  g_autoptr (GstBuffer) out = NULL, data = NULL;
  GstMapInfo map;
  gfloat *numbers;

  check_push (sh->h, in, GST_FLOW_OK);
  out = check_pull (sh->h);
  fail_unless (gst_structure_get (gst_imaging_results_get (out, "sh"), "data",
      GST_TYPE_BUFFER, &data, NULL));
  fail_unless (gst_buffer_map (data, &map, GST_MAP_READ));
  numbers = g_memdup2 (map.data, map.size);
  gst_buffer_unmap (data, &map);
  return numbers;
}

static guint
n_warnings (Sh *sh)
{
  return check_count_messages (sh->bus, GST_MESSAGE_WARNING);
}

/* Light at a pixel: a spot of sigma 1.5 in each cell, off its middle by a
 * fraction of a pixel, with the peak 1, on @pedestal. */
static gdouble
light_at (guint x, guint y, gdouble pedestal)
{
  gdouble dx = x % PITCH - 9.5 - 0.7, dy = y % PITCH - 9.5 + 0.3;

  return pedestal + exp (-(dx * dx + dy * dy) / (2 * 1.5 * 1.5));
}

/* @sample_size: 1, 2 or 4 (float32); @scale: of the light */
static GstBuffer *
frame_new (guint sample_size, gdouble scale, gdouble pedestal)
{
  GstBuffer *buffer =
      gst_buffer_new_allocate (NULL, SIZE * SIZE * sample_size, NULL);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_WRITE);

  for (guint i = 0; i < SIZE * SIZE; i++) {
    gdouble light = scale * light_at (i % SIZE, i / SIZE, pedestal);

    if (sample_size == 1)
      map.data[i] = (guint8) rint (light);
    else if (sample_size == 2)
      ((guint16 *) map.data)[i] = (guint16) rint (light);
    else
      ((gfloat *) map.data)[i] = (gfloat) light;
  }
  return buffer;
}

#define GRAY16_CAPS \
  "video/x-raw,format=GRAY16_LE,width=80,height=80,framerate=30/1"
#define FLOAT_CAPS(dimensions) \
  "other/tensors,format=static,num_tensors=1,types=float32,dimensions=" \
  "(string)" dimensions ",framerate=30/1"

/* --- light outside the spots --- */

/* The flux of a spot is 2 pi sigma^2 of its peak. */
CHECK_LOOP_TEST (test_light_outside_the_spots_is_one_warning, N_BACKENDS)
{
  gdouble spot = 2 * G_PI * 1.5 * 1.5, all = spot + 0.2 * PITCH * PITCH;
  g_autofree gchar *words =
      g_strdup_printf ("%.0f %% of the flux", 100 * (1 - spot / all));
  g_auto (Sh) sh = sh_new (backends[__i__], GRID, GRAY16_CAPS);

  for (guint i = 0; i < 20; i++)
    g_free (sh_measure (&sh, frame_new (2, 10000, 0.2)));
  check_warning (sh.bus, LIBRARY, SETTINGS, words);
  fail_unless_equals_int (n_warnings (&sh), 0);
}

/* A look takes longer than a frame, and so frames 0, 100, 300, 700, ... of a
 * dark stream have one: fewer than one of a hundred. */
CHECK_LOOP_TEST (test_a_dark_stream_is_looked_at_less_and_less, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], GRID, GRAY16_CAPS);

  for (guint i = 0; i < 300; i++)
    g_free (sh_measure (&sh, frame_new (2, i > 100 ? 10000 : 0, 0.2)));
  fail_unless_equals_int (n_warnings (&sh), 0);
  g_free (sh_measure (&sh, frame_new (2, 10000, 0.2)));
  check_warning (sh.bus, LIBRARY, SETTINGS, "of the flux");
}

CHECK_LOOP_TEST (
    test_no_warning_where_a_threshold_or_dark_takes_it_away, N_BACKENDS)
{
  static const gchar *const properties[] = {GRID
      "threshold-mode=range threshold=0.2",
      GRID "threshold-mode=absolute threshold=2100", GRID "brightest=30",
      GRID "weighting=gaussian sigma=3"};
  g_auto (Sh) sh;

  for (guint i = 0; i < G_N_ELEMENTS (properties); i++) {
    sh = sh_new (backends[__i__], properties[i], GRAY16_CAPS);
    g_free (sh_measure (&sh, frame_new (2, 10000, 0.2)));
    fail_unless_equals_int (n_warnings (&sh), 0);
    sh_free (&sh);
  }
  sh = sh_new (backends[__i__], GRID, GRAY16_CAPS);
  g_free (sh_measure (&sh, frame_new (2, 10000, 0))); /* there is none */
  fail_unless_equals_int (n_warnings (&sh), 0);
}

/* --- a threshold that the first frame decides --- */

/* Seeded; of 12 even numbers. */
static gdouble
noise (GRand *random)
{
  gdouble sum = -6;

  for (guint i = 0; i < 12; i++)
    sum += g_rand_double (random);
  return sum;
}

/* Spots of a camera with a pedestal of 1000 and noise 30. */
static GstBuffer *
noisy_frame (GRand *random, gdouble peak, gdouble shift)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, 2 * SIZE * SIZE, NULL);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_WRITE);

  for (guint i = 0; i < SIZE * SIZE; i++) {
    gdouble dx = i % SIZE % PITCH - 9.2 - shift, dy = i / SIZE % PITCH - 9.2;
    gdouble light = 1000 + peak * exp (-(dx * dx + dy * dy) / (2 * 1.7 * 1.7));

    ((guint16 *) map.data)[i] = (guint16) rint (light + 30 * noise (random));
  }
  return buffer;
}

/* Of the mean of the cells over @n frames with each shift. */
static gdouble
measured_shift (Sh *sh, gdouble peak, gdouble shift)
{
  GRand *random = g_rand_new_with_seed (7);
  gdouble sum = 0;
  enum { N = 40 };

  for (guint i = 0; i < 2 * N; i++) {
    g_autofree gfloat *numbers =
        sh_measure (sh, noisy_frame (random, peak, i % 2 ? shift : 0));

    for (guint k = 0; k < N_CELLS; k++) {
      const gfloat *cell = numbers + k * IMK_SHCENTROID_N_FIELDS;

      fail_unless_equals_float (cell[IMK_SHCENTROID_FLAGS], 0);
      sum += (i % 2 ? 1 : -1) * (gdouble) cell[IMK_SHCENTROID_X];
    }
  }
  g_rand_free (random);
  return sum / (N * N_CELLS);
}

/* 8 to 23 sigmas above the noise; a fifth of the range measures 0.15 to 0.97
 * of the shift. */
CHECK_LOOP_TEST (
    test_faint_spots_are_measured_with_the_auto_threshold, N_BACKENDS)
{
  static const gdouble peaks[] = {250, 350, 500, 700};

  for (guint i = 0; i < G_N_ELEMENTS (peaks); i++) {
    g_auto (Sh) sh =
        sh_new (backends[__i__], GRID "threshold-mode=auto", GRAY16_CAPS);
    gdouble found = measured_shift (&sh, peaks[i], 2);

    fail_unless (fabs (found - 2) < 0.05, "peak %g: moved by 2, found %g",
        peaks[i], found);
    fail_unless_equals_int (n_warnings (&sh), 0);
  }
}

/* What it says is what is lost: the mean of the border sees half-waves of
 * noise, which its median does not. */
CHECK_LOOP_TEST (test_noise_above_the_threshold_is_one_warning, N_BACKENDS)
{
  static const gdouble peaks[] = {250, 300, 350, 400};

  for (guint i = 0; i < G_N_ELEMENTS (peaks); i++) {
    g_auto (Sh) sh = sh_new (backends[__i__],
        GRID "threshold-mode=range threshold=0.2", GRAY16_CAPS);
    gdouble lost = 1 - measured_shift (&sh, peaks[i], 2) / 2;
    GstMessage *message = check_message (sh.bus, GST_MESSAGE_WARNING);
    GError *error = NULL;

    gst_message_parse_warning (message, &error, NULL);
    fail_unless (
        fabs (g_ascii_strtod (error->message, NULL) / 100 - lost) < 0.1,
        "peak %g: %g is lost, and it says: %s", peaks[i], lost, error->message);
    fail_unless (strstr (error->message, "Set threshold-mode=auto, or "), "%s",
        error->message);
    g_error_free (error);
    gst_message_unref (message);
    fail_unless_equals_int (n_warnings (&sh), 0);
  }
}

/* The numbers that it chose do the same when they are set. */
CHECK_LOOP_TEST (test_the_auto_threshold_tells_what_it_chose, N_BACKENDS)
{
  g_auto (Sh) sh =
      sh_new (backends[__i__], GRID "threshold-mode=auto", GRAY16_CAPS);
  g_autoptr (GRand) random = g_rand_new_with_seed (3);
  g_autofree gfloat *chosen = sh_measure (&sh, noisy_frame (random, 600, 0)),
                    *set = NULL;
  GstMessage *message = check_element_message (sh.bus, "shcentroid-threshold");
  g_autofree gchar *properties = NULL;
  gdouble threshold = 0, least = 0, min_flux = 0;

  fail_unless (gst_structure_get (gst_message_get_structure (message),
      "threshold", G_TYPE_DOUBLE, &threshold, "threshold-least", G_TYPE_DOUBLE,
      &least, "min-flux", G_TYPE_DOUBLE, &min_flux, NULL));
  gst_message_unref (message);
  fail_unless (least > 1000 + 2 * 30 && least < 1000 + 4 * 30, "%g", least);
  fail_unless (min_flux > 30 && min_flux < 10 * 30, "%g", min_flux);
  sh_free (&sh);
  properties = g_strdup_printf (GRID
      "threshold-mode=range threshold=%.17g threshold-least=%.17g "
      "min-flux=%.17g",
      threshold, least, min_flux);
  sh = sh_new (backends[__i__], properties, GRAY16_CAPS);
  g_rand_set_seed (random, 3);
  set = sh_measure (&sh, noisy_frame (random, 600, 0));
  fail_unless (memcmp (chosen, set,
                   N_CELLS * IMK_SHCENTROID_N_FIELDS * sizeof (*set)) == 0);
}

/* Before there is light there is none; nor while it is off. */
CHECK_LOOP_TEST (test_frames_without_light_are_invalid, N_BACKENDS)
{
  static const gdouble peaks[] = {0, 0, 0, 0, 1500, 1500, 0, 0, 1500};
  g_auto (Sh) sh =
      sh_new (backends[__i__], GRID "threshold-mode=auto", GRAY16_CAPS);
  g_autoptr (GRand) random = g_rand_new_with_seed (5);

  for (guint i = 0; i < G_N_ELEMENTS (peaks); i++) {
    g_autofree gfloat *numbers =
        sh_measure (&sh, noisy_frame (random, peaks[i], 0));

    for (guint k = 0; i >= 4 && k < N_CELLS; k++) {
      const gfloat *cell = numbers + k * IMK_SHCENTROID_N_FIELDS;
      guint flags = (guint) cell[IMK_SHCENTROID_FLAGS];

      fail_unless ((flags & IMK_SHCENTROID_INVALID_MASK) == 0 ? peaks[i] > 0
                                                              : peaks[i] == 0,
          "frame %u with a peak of %g: flags %u", i, peaks[i], flags);
      fail_unless (peaks[i] > 0 || cell[IMK_SHCENTROID_DX] == 0);
    }
  }
}

/* 40x40 cells of 6x6, dark but for those from @first on, each @step-th. */
static GstBuffer *
many_cells (guint first, guint step)
{
  enum { MANY = 40, SMALL = 6, WIDTH = MANY * SMALL };
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, 2 * WIDTH * WIDTH, NULL);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_WRITE);

  memset (map.data, 0, map.size);
  for (guint i = first; i < MANY * MANY; i += step)
    ((guint16 *)
            map.data)[(i / MANY * SMALL + 3) * WIDTH + i % MANY * SMALL + 2] =
        1000;
  return buffer;
}

/* After a dark frame it looks at 256 cells of each, in turns. */
CHECK_LOOP_TEST (test_light_after_dark_frames_is_found, N_BACKENDS)
{
  enum { DARK = 1600, N_TURNS = 7, AT = 803 };
  g_auto (Sh) sh = sh_new (backends[__i__],
      "columns=40 rows=40 pitch-x=6 pitch-y=6 threshold-mode=auto",
      "video/x-raw,format=GRAY16_LE,width=240,height=240,framerate=30/1");
  guint n_frames = 0;

  for (guint i = 0; i < 5; i++)
    g_free (sh_measure (&sh, many_cells (DARK, 1)));
  fail_unless_equals_int (
      check_count_messages (sh.bus, GST_MESSAGE_ELEMENT), 0);
  while (check_count_messages (sh.bus, GST_MESSAGE_ELEMENT) == 0) {
    g_free (sh_measure (&sh, many_cells (AT, DARK)));
    fail_unless (++n_frames <= N_TURNS, "the spot is not found");
  }
}

/* --- spots at the edge of their cells --- */

CHECK_LOOP_TEST (test_spots_that_an_edge_cuts_are_counted, N_BACKENDS)
{
  static const struct {
    const gchar *properties;
    gdouble shift;
    gboolean cut;
  } cases[] = {{GRID "threshold-mode=range threshold=0.2", 6, FALSE},
      {GRID "threshold-mode=range threshold=0.2", 8, TRUE},
      {GRID "threshold-mode=auto", 8, TRUE},
      {GRID "threshold-mode=auto", 6, FALSE},
      {GRID "threshold-mode=auto window=tracking", 8, FALSE}};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Sh) sh = sh_new (backends[__i__], cases[i].properties, GRAY16_CAPS);
    g_autoptr (GRand) random = g_rand_new_with_seed (2);
    guint64 n_cut = 0, n_cells = 0;
    const GstStructure *s;
    GstMessage *message;

    for (gdouble shift = 0; shift <= cases[i].shift; shift += 2)
      g_free (sh_measure (&sh, noisy_frame (random, 3000, shift)));
    if (cases[i].cut)
      check_warning (sh.bus, LIBRARY, SETTINGS,
          "The spots of 16 of 16 cells are cut by the edge");
    gst_harness_push_event (sh.h, gst_event_new_eos ());
    do {
      message = check_message (sh.bus, GST_MESSAGE_ELEMENT);
      s = gst_message_get_structure (message);
      if (gst_structure_has_name (s, "shcentroid-summary"))
        fail_unless (gst_structure_get (s, "cut", G_TYPE_UINT64, &n_cut,
            "cells", G_TYPE_UINT64, &n_cells, NULL));
      gst_message_unref (message);
    } while (n_cells == 0);
    fail_unless_equals_uint64 (n_cut, cases[i].cut ? 16 : 0);
    fail_unless_equals_uint64 (n_cells, 16 * (1 + cases[i].shift / 2));
    fail_unless_equals_int (n_warnings (&sh), 0);
  }
}

typedef struct {
  GstBus *bus;
  guint n_warnings; /* when the frame leaves */
  GstFlowReturn flow;
} Leaving;

static GstPadProbeReturn
take_frame (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Leaving *leaving = data;

  leaving->n_warnings +=
      check_count_messages (leaving->bus, GST_MESSAGE_WARNING);
  gst_clear_buffer ((GstBuffer **) &info->data);
  GST_PAD_PROBE_INFO_FLOW_RETURN (info) = leaving->flow;
  return GST_PAD_PROBE_HANDLED;
}

static guint64
frames_of_summary (Sh *sh)
{
  g_autoptr (GstMessage) message = NULL;
  guint64 n = 0;

  gst_harness_push_event (sh->h, gst_event_new_eos ());
  message = check_element_message (sh->bus, "shcentroid-summary");
  fail_unless (gst_structure_get (
      gst_message_get_structure (message), "frames", G_TYPE_UINT64, &n, NULL));
  return n;
}

/* Whatever becomes of the frame: it is counted, once, also before an end. */
CHECK_LOOP_TEST (test_cells_are_counted_when_their_frame_has_left, N_BACKENDS)
{
  static const GstFlowReturn flows[] = {
      GST_FLOW_OK, GST_FLOW_FLUSHING, GST_FLOW_EOS, GST_FLOW_ERROR};

  for (guint i = 0; i < G_N_ELEMENTS (flows); i++) {
    Sh sh = sh_new (backends[__i__], GRID "threshold-mode=range threshold=0.2",
        FLOAT_CAPS ("80:80"));
    Leaving leaving = {sh.bus, 0, flows[i]};
    GstElement *element = gst_harness_find_element (sh.h, "shcentroid");
    GstPad *src = gst_element_get_static_pad (element, "src");
    GstBuffer *in = frame_new (4, 100, 0);
    const gfloat nan = NAN;

    gst_pad_add_probe (
        src, GST_PAD_PROBE_TYPE_BUFFER, take_frame, &leaving, NULL);
    gst_buffer_fill (in, 0, &nan, sizeof (nan));
    check_push (sh.h, in, flows[i]);
    fail_unless_equals_int (leaving.n_warnings, 0);
    check_warning (sh.bus, LIBRARY, SETTINGS, "1 of 16 cells");
    if (flows[i] == GST_FLOW_FLUSHING) {
      gst_harness_push_event (sh.h, gst_event_new_flush_start ());
      gst_harness_push_event (sh.h, gst_event_new_flush_stop (TRUE));
    } else if (flows[i] == GST_FLOW_OK) { /* other cells: another kernel */
      g_object_set (element, "columns", 2, NULL);
      check_push (sh.h, frame_new (4, 100, 0), GST_FLOW_OK);
    }
    fail_unless_equals_uint64 (
        frames_of_summary (&sh), flows[i] == GST_FLOW_OK ? 2 : 1);
    gst_object_unref (src);
    gst_object_unref (element);
    sh_free (&sh);
  }
}

/* --- troubles that the first frame shows --- */

/* Spots of 600 counts and noise 30 on @slope counts a pixel in x and y, and
 * @n_hot hot pixels. */
static GstBuffer *
troubled_frame (GRand *random, gdouble slope, guint n_hot)
{
  GstBuffer *buffer = noisy_frame (random, 600, 0);
  guint16 *samples;
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_READWRITE);

  samples = (guint16 *) map.data;
  for (guint i = 0; i < SIZE * SIZE; i++)
    samples[i] += (guint16) rint (slope * (i % SIZE + i / SIZE));
  for (guint i = 0; i < n_hot; i++)
    samples[(3 + i * PITCH) * SIZE + 15] = 30000;
  return buffer;
}

CHECK_LOOP_TEST (test_troubles_of_the_first_frame_are_one_warning, N_BACKENDS)
{
  static const struct {
    const gchar *properties;
    gdouble slope;
    guint n_hot;
    const gchar *words;
  } cases[] = {
      {GRID "threshold-mode=auto", 0, 0, NULL},
      {GRID "threshold-mode=auto", 3, 0, NULL},
      {GRID "threshold-mode=auto", 15, 0,
          "of 16 cells with light the background is uneven"},
      {GRID "threshold-mode=range threshold=0.4", 15, 0,
          "of 16 cells with light the background is uneven"},
      {GRID "threshold-mode=auto", 0, 3,
          "In 3 of 16 cells with light a single pixel"},
      {GRID "threshold-mode=auto read-noise=30", 0, 0,
          "var_x and var_y count a pedestal"},
      {GRID "threshold-mode=auto read-noise=30 fields=slopes", 0, 0, NULL},
  };

  for (guint k = 0; k < G_N_ELEMENTS (cases); k++) {
    g_auto (Sh) sh = sh_new (backends[__i__], cases[k].properties, GRAY16_CAPS);
    g_autoptr (GRand) random = g_rand_new_with_seed (4);

    for (guint i = 0; i < 3; i++)
      g_free (sh_measure (
          &sh, troubled_frame (random, cases[k].slope, cases[k].n_hot)));
    if (cases[k].words)
      check_warning (sh.bus, LIBRARY, SETTINGS, cases[k].words);
    fail_unless_equals_int (n_warnings (&sh), 0);
  }
}

/* Spots of a few counts on 8 bits, on a pedestal that is most of their flux. */
CHECK_LOOP_TEST (test_low_light_is_the_one_warning, N_BACKENDS)
{
  static const struct {
    const gchar *properties;
    gdouble scale, pedestal;
    const gchar *words;
  } cases[] = {{GRID, 5, 0.4, "The light is too low: the median spot rises 5 "},
      {GRID "threshold-mode=auto", 5, 4,
          "The light is too low: the median spot rises 5 "},
      {GRID "threshold-mode=range threshold=0.2", 8, 0,
          "The light is too low: the median spot rises 8 "},
      {GRID "weighting=gaussian sigma=3", 5, 4, "The light is too low"},
      {GRID, 30, 0.4, "of the flux"},
      {GRID "threshold-mode=auto", 12, 0.4, NULL}};

  for (guint k = 0; k < G_N_ELEMENTS (cases); k++) {
    g_auto (Sh) sh = sh_new (backends[__i__], cases[k].properties,
        "video/x-raw,format=GRAY8,width=80,height=80,framerate=30/1");

    for (guint i = 0; i < 3; i++)
      g_free (
          sh_measure (&sh, frame_new (1, cases[k].scale, cases[k].pedestal)));
    if (cases[k].words)
      check_warning (sh.bus, LIBRARY, SETTINGS, cases[k].words);
    check_no_messages (sh.bus, GST_MESSAGE_WARNING);
  }
}

/* --- cells that are elsewhere --- */

CHECK_LOOP_TEST (test_cells_off_the_lenslets_are_one_warning, N_BACKENDS)
{
  static const struct {
    const gchar *properties, *words;
  } cases[] = {
      {GRID "threshold-mode=auto", NULL},
      {"columns=5 rows=5 pitch-x=16 pitch-y=16 threshold-mode=auto",
          "Set columns=4 rows=4 pitch-x=20."},
      {"columns=5 rows=5 pitch-x=16 pitch-y=16", "16 spots of a pitch of 20."},
      {"columns=5 rows=5 pitch-x=16 pitch-y=16 weighting=gaussian sigma=3",
          "16 spots of a pitch of 20."},
      {"columns=3 rows=3 pitch-x=20 pitch-y=20 x0=10 y0=10", "16 spots"},
      {"columns=8 rows=8 pitch-x=10 pitch-y=10", "16 spots"},
      {"columns=3 rows=3 pitch-x=26 pitch-y=26", "16 spots"},
      {"columns=2 rows=2 pitch-x=20 pitch-y=20 x0=20 y0=20 "
       "threshold-mode=auto",
          NULL},
  };

  for (guint k = 0; k < G_N_ELEMENTS (cases); k++) {
    g_auto (Sh) sh = sh_new (backends[__i__], cases[k].properties, GRAY16_CAPS);
    g_autoptr (GRand) random = g_rand_new_with_seed (6);

    for (guint i = 0; i < 3; i++)
      g_free (sh_measure (&sh, noisy_frame (random, 9000, 0)));
    if (cases[k].words)
      check_warning (sh.bus, LIBRARY, SETTINGS, cases[k].words);
    check_no_messages (sh.bus, GST_MESSAGE_WARNING);
  }
}

/* Half of the cells are beside the lit ones: their noise has a centroid. */
CHECK_LOOP_TEST (test_valid_cells_without_a_spot_are_one_warning, N_BACKENDS)
{
  static const struct {
    const gchar *properties;
    gboolean is_told;
  } cases[] = {{"threshold-mode=range threshold=0.2", TRUE},
      {"threshold-mode=auto", FALSE},
      {"threshold-mode=absolute threshold=1200", FALSE}};

  for (guint k = 0; k < G_N_ELEMENTS (cases); k++) {
    g_autofree gchar *properties =
        g_strdup_printf (GRID "%s", cases[k].properties);
    g_auto (Sh) sh = sh_new (backends[__i__], properties, GRAY16_CAPS);
    g_autoptr (GRand) random = g_rand_new_with_seed (8);

    for (guint i = 0; i < 3; i++) {
      GstBuffer *dark = noisy_frame (random, 0, 0);
      GstBuffer *lit = noisy_frame (random, 9000, 0);

      g_free (sh_measure (&sh,
          gst_buffer_append (
              gst_buffer_copy_region (lit, GST_BUFFER_COPY_ALL, 0, SIZE * SIZE),
              gst_buffer_copy_region (
                  dark, GST_BUFFER_COPY_MEMORY, 0, SIZE * SIZE))));
      gst_buffer_unref (lit);
      gst_buffer_unref (dark);
    }
    if (cases[k].is_told)
      check_warning (sh.bus, LIBRARY, SETTINGS,
          "16 of 16 cells are valid, and 8 of them have no spot");
    check_no_messages (sh.bus, GST_MESSAGE_WARNING);
  }
}

/* --- bits --- */

static GstBuffer *
camera_frame (guint most, guint n_most)
{
  GstBuffer *buffer = frame_new (2, most / 2.0, 0);

  for (guint i = 0; i < n_most; i++) { /* at the tops of spots */
    guint x = 10 + i % SIDE * PITCH, y = 9 + i / SIDE * PITCH;
    guint16 sample = (guint16) most;

    gst_buffer_fill (buffer, 2 * (y * SIZE + x), &sample, sizeof (sample));
  }
  return buffer;
}

CHECK_LOOP_TEST (test_bits_that_are_not_set_are_one_warning, N_BACKENDS)
{
  static const guint most[] = {1023, 4095, 16383};
  static const gchar *const words[] = {
      "Set bit-depth=10,", "Set bit-depth=12,", "Set bit-depth=14,"};

  for (guint k = 0; k < G_N_ELEMENTS (most); k++) {
    g_auto (Sh) sh = sh_new (backends[__i__], GRID "fields=xy", GRAY16_CAPS);

    for (guint i = 0; i < 99; i++)
      g_free (sh_measure (&sh, camera_frame (most[k], i > 60 ? 5 : 0)));
    fail_unless_equals_int (n_warnings (&sh), 0);
    for (guint i = 0; i < 21; i++)
      g_free (sh_measure (&sh, camera_frame (most[k], 5)));
    check_warning (sh.bus, LIBRARY, SETTINGS, words[k]);
    fail_unless_equals_int (n_warnings (&sh), 0);
  }
}

CHECK_LOOP_TEST (test_bits_are_not_guessed, N_BACKENDS)
{
  static const struct {
    const gchar *properties;
    guint most, n_most, later;
  } cases[] = {{GRID, 4094, 9, 0}, {GRID, 4095, 0, 0}, {GRID, 4095, 9, 5000},
      {GRID "bit-depth=12", 4095, 9, 0}, {GRID "saturation=4000", 4095, 9, 0},
      {GRID, 65535, 9, 0}};

  for (guint k = 0; k < G_N_ELEMENTS (cases); k++) {
    g_auto (Sh) sh = sh_new (backends[__i__], cases[k].properties, GRAY16_CAPS);

    for (guint i = 0; i < 110; i++)
      g_free (sh_measure (
          &sh, camera_frame (
                   i == 50 && cases[k].later ? cases[k].later : cases[k].most,
                   cases[k].n_most)));
    gst_harness_push_event (sh.h, gst_event_new_eos ());
    fail_unless_equals_int (n_warnings (&sh), 0);
  }
}

CHECK_LOOP_TEST (test_bits_are_told_at_the_end_of_a_short_stream, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], GRID, GRAY16_CAPS);

  g_free (sh_measure (&sh, camera_frame (4095, 3)));
  gst_harness_push_event (sh.h, gst_event_new_eos ());
  check_warning (
      sh.bus, LIBRARY, SETTINGS, "the first 1 frames is 4095, 3 times");
}

/* Spots that are cut off at @most less a dark of 100, or times 16. */
static GstBuffer *
cut_frame (gdouble peak, guint most, guint step, guint dark)
{
  GstBuffer *buffer = frame_new (2, peak, 0.02);
  g_auto (CheckMap) map = check_map (buffer, GST_MAP_READWRITE);

  for (guint i = 0; i < SIZE * SIZE; i++) {
    guint16 *sample = &((guint16 *) map.data)[i];
    guint cut = MIN (*sample, most);

    *sample = (guint16) ((MAX (cut, dark) - dark) * step);
  }
  return buffer;
}

CHECK_LOOP_TEST (test_flat_tops_of_spots_are_one_warning, N_BACKENDS)
{
  static const struct {
    guint most, step, dark;
    const gchar *words;
  } cases[] = {{4095, 16, 0, "Set saturation=65520,"},
      {4095, 1, 100, "Set saturation=3995,"},
      {3700, 1, 0, "Set saturation=3700,"}, {9000, 1, 0, NULL}};

  for (guint k = 0; k < G_N_ELEMENTS (cases); k++) {
    g_auto (Sh) sh = sh_new (backends[__i__],
        GRID "threshold-mode=range threshold=0.2", GRAY16_CAPS);

    g_free (sh_measure (
        &sh, cut_frame (7000, cases[k].most, cases[k].step, cases[k].dark)));
    gst_harness_push_event (sh.h, gst_event_new_eos ());
    if (cases[k].words)
      check_warning (sh.bus, LIBRARY, SETTINGS, cases[k].words);
    fail_unless_equals_int (n_warnings (&sh), 0);
  }
}

/* Nobody waits for 100 frames where the tops of spots are cut. */
CHECK_LOOP_TEST (test_saturation_is_told_at_once, N_BACKENDS)
{
  static const struct {
    guint most, n_frames;
    const gchar *words;
  } cases[] = {{1023, 1, "Set bit-depth=10,"}, {4095, 1, "Set bit-depth=12,"},
      {16383, 1, "Set bit-depth=14,"}, {3700, 10, "Set saturation=3700,"}};

  for (guint k = 0; k < G_N_ELEMENTS (cases); k++) {
    g_auto (Sh) sh = sh_new (backends[__i__],
        GRID "threshold-mode=range threshold=0.2", GRAY16_CAPS);

    for (guint i = 0; i < cases[k].n_frames; i++) {
      fail_unless_equals_int (n_warnings (&sh), 0);
      g_free (sh_measure (&sh, cut_frame (30000, cases[k].most, 1, 0)));
    }
    check_warning (sh.bus, LIBRARY, SETTINGS, cases[k].words);
    fail_unless_equals_int (n_warnings (&sh), 0);
  }
}

/* --- float32 --- */

/* From 0 to 1, where 16 bits have 0 to 50000. */
CHECK_LOOP_TEST (test_float_frames_are_measured_like_integers, N_BACKENDS)
{
  static const gchar *const caps[] = {
      FLOAT_CAPS ("80:80"), FLOAT_CAPS ("80:80:1:1"), FLOAT_CAPS ("1:80:80:1")};
  static const gchar *const options[] = {GRID "threshold=0.2 "
                                              "threshold-mode=range",
      GRID "power=1.5", GRID "weighting=gaussian sigma=4 iterations=3"};

  for (guint k = 0; k < G_N_ELEMENTS (options); k++) {
    g_auto (Sh) integers = sh_new ("cpu", options[k], GRAY16_CAPS);
    g_auto (Sh) floats = sh_new (backends[__i__], options[k], caps[k]);
    g_autofree gfloat *a = sh_measure (&integers, frame_new (2, 50000, 0));
    g_autofree gfloat *b = sh_measure (&floats, frame_new (4, 1, 0));

    for (guint i = 0; i < N_CELLS; i++) {
      const gfloat *x = a + i * IMK_SHCENTROID_N_FIELDS;
      const gfloat *y = b + i * IMK_SHCENTROID_N_FIELDS;

      for (guint f = IMK_SHCENTROID_X; f <= IMK_SHCENTROID_DY; f++)
        fail_unless (fabs (x[f] - y[f]) < 1e-4,
            "option %u cell %u field %u: "
            "%g in float32, %g in 16 bits",
            k, i, f, y[f], x[f]);
      fail_unless (fabs (y[IMK_SHCENTROID_FLUX_RAW] -
                         x[IMK_SHCENTROID_FLUX_RAW] / 50000) < 1e-3);
      fail_unless (y[IMK_SHCENTROID_FLAGS] == 0);
      fail_unless (fabs (y[IMK_SHCENTROID_DX] - 0.7) < 0.02, "dx %g",
          y[IMK_SHCENTROID_DX]);
    }
  }
}

CHECK_TEST (test_float_frames_have_the_same_bits_on_both_backends)
{
  g_auto (Sh) cpu = sh_new ("cpu", GRID "brightest=20", FLOAT_CAPS ("80:80"));
  g_auto (Sh) cuda = sh_new ("cuda", GRID "brightest=20", FLOAT_CAPS ("80:80"));
  g_autofree gfloat *a = sh_measure (&cpu, frame_new (4, 0.37, 0.01));
  g_autofree gfloat *b = sh_measure (&cuda, frame_new (4, 0.37, 0.01));

  fail_unless (
      memcmp (a, b, N_CELLS * IMK_SHCENTROID_N_FIELDS * sizeof (*a)) == 0);
}

CHECK_LOOP_TEST (test_a_sample_that_is_not_finite_flags_its_cell, N_BACKENDS)
{
  static const gfloat values[] = {NAN, INFINITY, -INFINITY};

  for (guint k = 0; k < G_N_ELEMENTS (values); k++) {
    g_auto (Sh) sh = sh_new (backends[__i__], GRID, FLOAT_CAPS ("80:80"));
    GstBuffer *in = frame_new (4, 1, 0);
    gfloat *numbers;

    gst_buffer_fill (in, 4 * (25 * SIZE + 47), &values[k], 4); /* cell 6 */
    numbers = sh_measure (&sh, in);
    for (guint i = 0; i < N_CELLS; i++) {
      const gfloat *x = numbers + i * IMK_SHCENTROID_N_FIELDS;

      fail_unless_equals_float (
          x[IMK_SHCENTROID_FLAGS], i == 6 ? IMK_SHCENTROID_NOT_FINITE : 0);
      for (guint f = 0; f < IMK_SHCENTROID_N_FIELDS; f++)
        fail_unless (isfinite (x[f]), "cell %u field %u is %g", i, f, x[f]);
      fail_unless (fabs (x[IMK_SHCENTROID_DX] - (i == 6 ? 0 : 0.7)) < 0.02);
    }
    g_free (numbers);
    check_warning (sh.bus, LIBRARY, SETTINGS,
        "1 of 16 cells have a sample that is NaN or infinite");
  }
}

/* Beyond 16 bits, as of a sum of exposures. */
CHECK_LOOP_TEST (test_float_frames_are_saturated_at_any_count, N_BACKENDS)
{
  g_auto (Sh) sh =
      sh_new (backends[__i__], GRID "saturation=200000", FLOAT_CAPS ("80:80"));

  for (guint k = 0; k < 2; k++) {
    g_autofree gfloat *numbers =
        sh_measure (&sh, frame_new (4, k ? 300000 : 190000, 0));

    for (guint i = 0; i < N_CELLS; i++)
      fail_unless_equals_float (
          numbers[i * IMK_SHCENTROID_N_FIELDS + IMK_SHCENTROID_FLAGS],
          k ? IMK_SHCENTROID_SATURATED : 0);
  }
  fail_unless_equals_int (n_warnings (&sh), 0);
}

/* The dark of a pixel that is not finite is 0; its cell is flagged anyway. */
CHECK_LOOP_TEST (test_float_frames_are_captured_and_searched, N_BACKENDS)
{
  g_auto (Sh) sh = sh_new (backends[__i__], GRID, FLOAT_CAPS ("80:80"));
  GstBuffer *in = frame_new (4, 0, 0);
  gfloat nan = NAN, *numbers;
  GstElement *element;
  gboolean begun = FALSE;

  gst_buffer_fill (in, 4 * (25 * SIZE + 47), &nan, 4);
  element = gst_bin_get_by_name (GST_BIN (sh.h->element), "sh");
  g_signal_emit_by_name (element, "capture-dark", 1, NULL, &begun);
  gst_object_unref (element);
  fail_unless (begun);
  g_free (sh_measure (&sh, in));
  gst_message_unref (check_element_message (sh.bus, "shcentroid-captured"));
  numbers = sh_measure (&sh, frame_new (4, 1, 0));
  for (guint i = 0; i < N_CELLS; i++)
    fail_unless_equals_float (
        numbers[i * IMK_SHCENTROID_N_FIELDS + IMK_SHCENTROID_FLAGS], 0);
  g_free (numbers);
  fail_unless_equals_int (check_count_messages (sh.bus, GST_MESSAGE_ERROR), 0);
}

CHECK_LOOP_TEST (test_tensors_that_are_no_frame_are_refused, N_BACKENDS)
{
  static const gchar *const caps[] = {FLOAT_CAPS ("80"), FLOAT_CAPS ("80:80:2"),
      FLOAT_CAPS ("3:80:80:1"), FLOAT_CAPS ("80:80:1:2"), FLOAT_CAPS ("0:80"),
      FLOAT_CAPS ("70000:2")};

  for (guint k = 0; k < G_N_ELEMENTS (caps); k++) {
    g_auto (Sh) sh = sh_new (backends[__i__], GRID, caps[k]);

    fail_unless (gst_harness_push (sh.h, frame_new (4, 1, 0)) != GST_FLOW_OK);
    check_error (sh.bus, STREAM, FORMAT, "it has to be width:height");
  }
}

/* --- find-grid --- */

enum { WIDE = 300 };

/* 137 lenslets of a round pupil; astigmatism moves the outer spots by
 * @amplitude pitches. */
static GstBuffer *
pupil_new (gdouble amplitude)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, WIDE * WIDE, NULL);
  gdouble *light = g_new0 (gdouble, WIDE * WIDE);
  guint8 *bytes = g_new (guint8, WIDE * WIDE);

  for (gint j = -7; j <= 7; j++)
    for (gint i = -7; i <= 7; i++) {
      gdouble u = i / 6.7, v = j / 6.7;
      gdouble x = 150 + PITCH * (i + amplitude * (u * u - v * v));
      gdouble y = 150 + PITCH * (j - 2 * amplitude * u * v);

      if (u * u + v * v > 1)
        continue;
      for (gint k = MAX ((gint) y - 9, 0); k < MIN ((gint) y + 9, WIDE); k++)
        for (gint l = MAX ((gint) x - 9, 0); l < MIN ((gint) x + 9, WIDE); l++)
          light[k * WIDE + l] +=
              200 * exp (-((l - x) * (l - x) + (k - y) * (k - y)) / 8);
    }
  for (guint i = 0; i < WIDE * WIDE; i++)
    bytes[i] = (guint8) MIN (light[i] + 5.5, 255);
  gst_buffer_fill (buffer, 0, bytes, WIDE * WIDE);
  g_free (bytes);
  g_free (light);
  return buffer;
}

static void
check_pupil (const gchar *backend, gdouble amplitude, gboolean all)
{
  g_autofree gchar *path = check_path_of ("pupil.npy");
  g_autofree gchar *properties = g_strdup_printf (
      "find-grid-location=%s threshold-mode=range threshold=0.2", path);
  g_auto (Sh) sh = sh_new (backend, properties,
      "video/x-raw,format=GRAY8,width=300,height=300,framerate=30/1");
  guint n_cells = 0, n_unplaced = 0;
  gdouble rms = 0, *table;
  GstMessage *message;
  g_autoptr (GstImagingNdArray) npy = NULL;

  g_free (sh_measure (&sh, pupil_new (amplitude)));
  if (!all)
    check_warning (sh.bus, STREAM, FAILED, "left out");
  message = check_element_message (sh.bus, "shcentroid-grid");
  fail_unless (gst_structure_get (gst_message_get_structure (message), "cells",
      G_TYPE_UINT, &n_cells, "unplaced", G_TYPE_UINT, &n_unplaced, "rms",
      G_TYPE_DOUBLE, &rms, NULL));
  gst_message_unref (message);
  fail_unless_equals_int (n_cells + n_unplaced, 137);
  fail_unless ((n_unplaced == 0) == all, "%u unplaced", n_unplaced);
  npy = gst_imaging_npy_load (path, NULL);
  fail_unless (npy && npy->dims[0] == n_cells && npy->dims[1] == 12);
  table = gst_imaging_nd_array_to_double (npy, NULL, NULL);
  for (guint i = 0; i < n_cells; i++) {
    const gdouble *row = table + 12 * i;

    fail_unless (row[10] == n_unplaced && row[11] == rms);
    /* its row and column lead to it */
    fail_unless (fabs (row[5] - table[5] - (row[8] - table[8]) * PITCH) < 1 &&
                 fabs (row[4] - table[4] - (row[9] - table[9]) * PITCH) < 1);
  }
  if (amplitude > 0.4) /* of those that it placed some are at an edge */
    check_warning (sh.bus, LIBRARY, SETTINGS, "are cut by the edge");
  fail_unless_equals_int (n_warnings (&sh), 0);
  g_free (table);
}

CHECK_LOOP_TEST (test_find_grid_tells_of_spots_that_it_left_out, N_BACKENDS)
{
  check_make_folder ();
  check_pupil (backends[__i__], 0, TRUE);
  check_pupil (backends[__i__], 0.3, TRUE);
  check_pupil (backends[__i__], 0.45, TRUE);
  check_pupil (backends[__i__], 0.6, FALSE);
  check_remove_folder ();
}
