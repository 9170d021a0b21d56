/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pipelines of two SAR images while another thread changes every property, and
 * seeks, ends and stops come at any time. To be run under the thread sanitizer
 * as well. */
#include "insar-check.h"

enum { N_ROUNDS = 60, N_STOPS = 300 };

typedef struct {
  const gchar *name, *values[4]; /* the first is the one of the calm */
} Choice;

/* Some do not fit, alone or beside the others. */
static const Choice xcorr_choices[] = {
    {"nx", {"3", "1", "40", "60"}},
    {"ny", {"4", "1", "20", "3"}},
    {"grid",
        {"step", "gmtsar", "even", "even"}}, /* step: no warning of a span */
    {"step-x", {"32", "7", "1000", "50"}},
    {"step-y", {"32", "7", "1000", "50"}},
    {"xsearch", {"16", "4", "17", "1024"}},
    {"ysearch", {"16", "8", "13", "64"}},
    {"window-width", {"0", "20", "2048", "9"}},
    {"window-height", {"0", "20", "2048", "9"}},
    {"range-interp", {"2", "1", "4", "3"}},
    {"azimuth-interp", {"2", "1", "4", "3"}},
    {"interp", {"16", "1", "32", "5"}},
    {"mode", {"compat", "precise", "compat", "precise"}},
    {"use-shift", {"true", "false", "true", "false"}},
    {"mask-location", {"", "/nowhere.npy", "$/mask.npy", "$/gross.npy"}},
    {"gross-offsets-location", {"", "$/gross.npy", "/nowhere.npy", ""}},
    {"min-valid", {"0.5", "0", "1", "0.9"}},
    {"memory-limit", {"0", "1000", "600000", "0"}},
    {"cuda-devices", {"<>", "<0,1>", "<-1>", "<9>"}},
    {"fit-range", {"3", "0", "10", "1"}},
    {"fit-azimuth", {"3", "0", "10", "1"}},
    {"fit-snr", {"-2", "0", "-1", "18"}},
    {"n-threads", {"0", "1", "3", "2"}},
    {NULL, {NULL}},
};

static const Choice resample_choices[] = {
    {"shift-r", {"0", "3.5", "-1000", "1e6"}},
    {"shift-a", {"0", "-2.25", "1000", "-1e6"}},
    {"stretch-r", {"0", "0.01", "-0.25", "0.25"}},
    {"a-stretch-r", {"0", "0.01", "-0.25", "0.25"}},
    {"stretch-a", {"0", "0.01", "-0.25", "0.25"}},
    {"a-stretch-a", {"0", "0.01", "-0.25", "0.25"}},
    {"taps", {"16", "4", "7", "32"}},
    {"bandwidth", {"0.85", "0.1", "1", "0.5"}},
    {"doppler", {"auto", "caps", "data", "auto"}},
    {"width", {"0", "100", "0", "1"}},
    {"height", {"0", "100", "0", "1"}},
    {"fit-location", {"", "/nowhere", "$/ref.SLC", "$/sec.PRM"}},
    {"reference-location", {"", "/nowhere", "$/ref.SLC", "$/ref.PRM"}},
    {NULL, {NULL}},
};

static const Choice form_choices[] = {
    {"looks-x", {"2", "1", "256", "5"}},
    {"looks-y", {"2", "1", "256", "5"}},
    {"window-x", {"5", "4", "63", "1"}},
    {"window-y", {"5", "4", "63", "1"}},
    {"shade", {"none", "coherence", "amplitude", "none"}},
    {"amplitude-max", {"0", "1", "1e30", "0"}},
    {NULL, {NULL}},
};

typedef struct {
  const gchar *name;
  const Choice *choices;
} Target;

#define SOURCE(name) \
  "slcsrc name=" name " location=$/" name ".PRM lines-per-buffer=20 ! "
#define XCORR \
  SOURCE ("ref") "x.reference " SOURCE ("sec") "x.secondary insarxcorr name=x "
/* nobody takes out of it in the storm */
#define STORM_OUT " ! appsink name=out sync=false wait-on-eos=false "

static const struct {
  const gchar *pipeline, *pair; /* the name of who takes both images */
  Target targets[2];
} storms[] = {
    {XCORR "backend=cpu ! text/csv" STORM_OUT
           "x.fit ! queue ! fakesink x.rasters ! queue ! fakesink",
        "x", {{"x", xcorr_choices}, {NULL, NULL}}},
    {XCORR "backend=cuda ! text/csv" STORM_OUT "x.fit ! queue ! fakesink", "x",
        {{"x", xcorr_choices}, {NULL, NULL}}},
    {SOURCE ("ref") "i.reference " SOURCE (
         "sec") "slcresample name=r ! i.secondary insarform name=i "
                "i.interferogram ! queue ! other/tensors" STORM_OUT
                "i.phase ! queue ! fakesink i.coherence ! queue ! fakesink",
        "i", {{"r", resample_choices}, {"i", form_choices}}},
};

/* --- the storm ------------------------------------------------------------ */

static void
set (GstElement *element, const Choice *choice, guint i)
{
  g_auto (GStrv) parts = g_strsplit (choice->values[i], "$", -1);
  g_autofree gchar *value = g_strjoinv (check_folder (), parts);

  gst_util_set_object_arg (G_OBJECT (element), choice->name, value);
}

typedef struct {
  GstElement *pipeline;
  const Target *targets;
  gboolean stop; /* atomic */
} Storm;

static void
change_one (const Storm *self, GRand *random)
{
  const Target *target = &self->targets[g_rand_int_range (random, 0, 2)];
  g_autoptr (GstElement) element = NULL;
  g_auto (GValue) value = G_VALUE_INIT;
  gint n = 0;

  if (!target->name)
    target = self->targets;
  element = gst_bin_get_by_name (GST_BIN (self->pipeline), target->name);
  while (target->choices[n].name)
    n++;
  n = g_rand_int_range (random, 0, n);
  set (element, &target->choices[n], (guint) g_rand_int_range (random, 0, 4));
  g_object_get_property (G_OBJECT (element), target->choices[n].name, &value);
  g_value_unset (&value);
  g_object_get_property (G_OBJECT (element), "stats", &value);
}

static gpointer
storm (gpointer data)
{
  Storm *self = data;
  g_autoptr (GRand) random = g_rand_new_with_seed (5);

  while (!g_atomic_int_get (&self->stop)) {
    change_one (self, random);
    g_usleep (100);
  }
  return NULL;
}

static void
calm (const Storm *self)
{
  for (guint t = 0; t < 2 && self->targets[t].name; t++) {
    g_autoptr (GstElement) element =
        gst_bin_get_by_name (GST_BIN (self->pipeline), self->targets[t].name);

    for (const Choice *c = self->targets[t].choices; c->name; c++)
      set (element, c, 0);
  }
}

static void
seek_source (GstElement *pipeline, const gchar *name)
{
  g_autoptr (GstElement) source =
      gst_bin_get_by_name (GST_BIN (pipeline), name);

  gst_element_seek_simple (source, GST_FORMAT_DEFAULT, GST_SEEK_FLAG_FLUSH, 0);
}

/* What an application may do, in any order. */
static void
disturb (GstElement *pipeline, GRand *random)
{
  gboolean is_first = g_rand_boolean (random);

  switch (g_rand_int_range (random, 0, 6)) {
  case 0:
    gst_element_seek_simple (
        pipeline, GST_FORMAT_DEFAULT, GST_SEEK_FLAG_FLUSH, 0);
    break;
  case 1:
    seek_source (pipeline, is_first ? "ref" : "sec");
    g_usleep ((gulong) g_rand_int_range (random, 0, 3000));
    seek_source (pipeline, is_first ? "sec" : "ref");
    break;
  case 2: /* before it plays, a source would wait for a sink that waits */
    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    if (gst_element_get_state (pipeline, NULL, NULL, 50 * GST_MSECOND) ==
        GST_STATE_CHANGE_SUCCESS)
      gst_element_send_event (pipeline, gst_event_new_eos ());
    break;
  case 3:
    gst_element_set_state (pipeline, GST_STATE_PAUSED);
    break;
  case 4:
    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    break;
  default:
    break;
  }
  g_usleep ((gulong) g_rand_int_range (random, 0, 8000));
}

/* Returns: (transfer full): what comes out of "out" when nothing disturbs */
static GString *
play_calmly (const Storm *self)
{
  GString *text = g_string_new (NULL);

  calm (self);
  gst_element_set_state (self->pipeline, GST_STATE_PLAYING);
  check_collect (self->pipeline, "out", text);
  insar_check_no_error (self->pipeline);
  gst_element_set_state (self->pipeline, GST_STATE_NULL);
  return text;
}

/* appsink keeps its last sample, with the results that are its metadata, until
 * it is freed. */
static void
remove_sink (GstElement *pipeline)
{
  g_autoptr (GstElement) sink = gst_bin_get_by_name (GST_BIN (pipeline), "out");

  gst_bin_remove (GST_BIN (pipeline), sink);
}

static void
setup (void)
{
  insar_setup ();
  insar_write_mask ("mask.npy");
  insar_write_gross_offsets ("gross.npy", 1, -1);
}

CHECK_CASE ("insar-storm", setup, check_remove_folder)

CHECK_LOOP_TEST (test_a_storm_leaves_the_next_run_whole, G_N_ELEMENTS (storms))
{
  guint n_live = check_n_live ();
  g_autoptr (CheckPipeline) pipeline = check_launch (storms[__i__].pipeline);
  Storm self = {.pipeline = pipeline, .targets = storms[__i__].targets};
  g_autoptr (GRand) random = g_rand_new_with_seed (11);
  g_autoptr (GString) before = play_calmly (&self), after = NULL;
  GstElement *pair =
      gst_bin_get_by_name (GST_BIN (pipeline), storms[__i__].pair);
  GThread *thread = g_thread_new ("storm", storm, &self);
  CheckAsking asking;

  fail_unless (before->len > 0);
  check_begin_asking (&asking, pair, "reference", "application/x-slc");
  for (guint i = 0; i < N_ROUNDS; i++) {
    gint n = g_rand_int_range (random, 0, 6);

    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    while (n-- > 0)
      disturb (pipeline, random);
    gst_element_set_state (
        pipeline, g_rand_boolean (random) ? GST_STATE_READY : GST_STATE_NULL);
  }
  g_atomic_int_set (&self.stop, TRUE);
  g_thread_join (thread);
  check_end_asking (&asking);
  gst_object_unref (pair);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  after = play_calmly (&self);
  remove_sink (pipeline);
  fail_unless_equals_int (check_n_live (), n_live);
  fail_unless (
      g_string_equal (before, after), "the storm has left something behind");
}

/* --- seeks while states change
 * ------------------------------------------------
 */

static gpointer
seek_again_and_again (gpointer data)
{
  const Storm *self = data;
  g_autoptr (GRand) random = g_rand_new_with_seed (3);

  while (!g_atomic_int_get (&self->stop)) {
    seek_source (self->pipeline, g_rand_boolean (random) ? "ref" : "sec");
    g_usleep ((gulong) g_rand_int_range (random, 0, 300));
  }
  return NULL;
}

/* An application may have a thread for its slider: a flush comes while a pad is
 * already, or still, not active. */
CHECK_LOOP_TEST (test_a_seek_may_meet_a_stop, G_N_ELEMENTS (storms))
{
  g_autoptr (CheckPipeline) pipeline = check_launch (storms[__i__].pipeline);
  Storm self = {.pipeline = pipeline, .targets = storms[__i__].targets};
  g_autoptr (GString) before = play_calmly (&self), after = NULL;
  GThread *thread = g_thread_new ("seek", seek_again_and_again, &self);

  for (guint i = 0; i < N_STOPS; i++) {
    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    g_usleep (i * 37 % 1500);
    gst_element_set_state (pipeline, GST_STATE_READY);
  }
  /* a source that is stopped keeps a seek for the next start */
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  g_atomic_int_set (&self.stop, TRUE);
  g_thread_join (thread);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  after = play_calmly (&self);
  fail_unless (
      g_string_equal (before, after), "a seek has left something behind");
}
