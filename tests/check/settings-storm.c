/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every property of every element set to random, wrong and contradicting values
 * while the element plays. Nothing may end the stream, lose a frame of an
 * element with one output for each input, crash or leak. IMAGING_STORM_SECONDS
 * is the time of each element (default: one storm), IMAGING_STORM_SEED the
 * first seed, IMAGING_STORM_ELEMENT the only element. To be run under the
 * sanitizers as well. */
#include "check-common.h"

#include <stdlib.h>

#include "gstimagingnpy.h"
#include "gstimagingsettings.h"

#define WAIT (60 * GST_SECOND)
#define MAX_INPUTS 2

typedef struct {
  const gchar *name; /* of a property */
  gdouble maximum;   /* larger values only cost time and memory */
} Limit;

typedef struct {
  const gchar *factory;
  /* the element is called "e", its source is "in", its sink is "out"; $ is the
   * folder of the files */
  const gchar *line;
  gboolean one_to_one;
  const gchar *path_property, *path; /* a file that fits */
  Limit limits[6];
} Kind;

/* so that a storm is some hundred settings long */
#define SLOW "identity sleep-time=400 ! "
#define GREY(width, height) \
  "videotestsrc name=in num-buffers=200 pattern=snow ! " \
  "video/x-raw,format=GRAY16_LE,width=" #width ",height=" #height \
  ",framerate=30/1 ! " SLOW
#define COLOUR(width, height) \
  "videotestsrc name=in num-buffers=200 pattern=snow ! " \
  "video/x-raw,format=RGB,width=" #width ",height=" #height \
  ",framerate=30/1 ! " SLOW
#define SINK " ! fakesink name=out async=false"
#define PAIR \
  "slcsrc location=$/a.slc width=64 format=ci16 lines-per-buffer=1 ! " SLOW \
  "e.reference " \
  "slcsrc location=$/b.slc width=64 format=ci16 lines-per-buffer=1 ! " SLOW \
  "e.secondary "

static const Kind kinds[] = {
    {"lapsharpen", COLOUR (40, 30) "lapsharpen name=e" SINK, TRUE},
    {"shcentroid",
        GREY (40, 30) "shcentroid name=e pitch-x=10 pitch-y=10 columns=4 "
                      "rows=3" SINK,
        TRUE, "dark-location", "grey.npy",
        {{"iterations", 8}, {"search-range", 8}, {"template-margin", 8}}},
    {"shoverlay",
        GREY (40, 30) "shcentroid pitch-x=10 pitch-y=10 columns=4 rows=3 ! "
                      "shoverlay name=e" SINK,
        TRUE, NULL, NULL, {{"line-width", 50}}},
    {"octinterlace",
        "octinterlace name=e" SINK " " GREY (32,
            4) "e.sink_0 videotestsrc "
               "num-buffers=200 ! video/x-raw,format=GRAY16_LE,width=32,height=4,"
               "framerate=30/1 ! " SLOW "e.sink_1",
        FALSE}, /* counters and their offsets may be those of no frame */
    {"invert", COLOUR (40, 30) "invert name=e" SINK, TRUE},
    {"relight", COLOUR (24, 16) "relight name=e" SINK, TRUE},
    {"photostereo",
        COLOUR (24, 16) "photostereo name=e lights-location=$/lights.txt "
                        "e.normal" SINK,
        FALSE, "lights-location", "lights.txt",
        {{"max-iterations", 20}, {"bands", 3}}},
#ifdef HAVE_FFT
    {"normalintegrate", COLOUR (24, 16) "normalintegrate name=e e.height" SINK,
        TRUE, NULL, NULL, {{"max-iterations", 50}}},
    {"octbscan", GREY (64, 16) "octbscan name=e upsample=64 taper-cut=8" SINK,
        FALSE, "background-location", "spectrum.npy",
        {{"upsample", 512}, {"scale", 3}, {"taper-cut", 1e9}}},
    {"octangio",
        GREY (64, 16) "octbscan name=o upsample=64 taper-cut=8 ! "
                      "fakesink async=false o.complex ! queue ! octangio "
                      "name=e" SINK,
        FALSE, NULL, NULL, {{"repeats", 4}, {"bscans-per-volume", 5}}},
    {"insarxcorr", PAIR "insarxcorr name=e nx=3 ny=3 xsearch=8 ysearch=8" SINK,
        FALSE, NULL, NULL,
        {{"nx", 8}, {"ny", 8}, {"xsearch", 16}, {"ysearch", 16},
            {"interp", 8}}},
#endif
    {"insarform", PAIR "insarform name=e e.interferogram" SINK, FALSE},
    {"slcresample",
        "slcsrc location=$/b.slc width=64 format=ci16 lines-per-buffer=1 ! " SLOW
        "slcresample name=e" SINK,
        FALSE},
};

/* --- the files ------------------------------------------------------------ */

static void
save_npy (const gchar *name, guint64 n_rows, guint64 n_columns)
{
  const guint64 dims[] = {n_rows, n_columns};
  g_autofree gdouble *values = g_new (gdouble, n_rows * n_columns);
  g_autofree gchar *path = check_path_of (name);

  for (guint64 i = 0; i < n_rows * n_columns; i++)
    values[i] = 1 + i % 7;
  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_F64, 2, dims, values, NULL));
}

static void
make_files (void)
{
  guint8 noise[64 * 96 * 4];
  g_autoptr (GRand) random = g_rand_new_with_seed (7);

  check_make_folder ();
  for (guint i = 0; i < sizeof (noise); i++)
    noise[i] = i % 2 ? 0 : (guint8) g_rand_int (random);
  check_write_file ("a.slc", noise, sizeof (noise));
  check_write_file ("b.slc", noise, sizeof (noise));
  check_write_file ("garbage", noise, 999);
  check_write_file ("lights.txt",
      "0.6 0 0.8\n0 0.6 0.8\n-0.6 0 0.8\n0 -0.6 0.8\n0.28 0 0.96\n0 0 1\n", -1);
  save_npy ("grey.npy", 30, 40);
  save_npy ("spectrum.npy", 1, 64);
}

/* --- random values -------------------------------------------------------- */

typedef struct {
  const Kind *kind;
  GstElement *element;
  GRand *random;
  GPtrArray *specs; /* of what may be set */
  gint stop;        /* atomic */
  guint n_set;
} Storm;

/* Near the default, anywhere, or at an end. */
static gdouble
random_number (Storm *s, const gchar *name, gdouble minimum, gdouble maximum,
    gdouble usual)
{
  gdouble value;

  for (guint i = 0; i < G_N_ELEMENTS (s->kind->limits); i++)
    if (g_strcmp0 (s->kind->limits[i].name, name) == 0)
      maximum = MIN (maximum, s->kind->limits[i].maximum);
  switch (g_rand_int_range (s->random, 0, 8)) {
  case 0:
    return minimum;
  case 1:
    return maximum;
  case 2:
    return usual;
  case 3:
    return g_rand_double_range (s->random, 0, 1) * (maximum - minimum) +
           minimum;
  case 4:
    value = g_rand_double_range (s->random, -8, 300);
    break;
  default:
    value = usual * g_rand_double_range (s->random, 0, 2) +
            g_rand_int_range (s->random, -3, 4);
  }
  return CLAMP (value, minimum, maximum);
}

static void
random_path (Storm *s, const gchar *name, GValue *value)
{
  static const gchar *const names[] = {
      "garbage", "nowhere.npy", "grey.npy", "spectrum.npy", "lights.txt", "."};
  gboolean fits = g_strcmp0 (s->kind->path_property, name) == 0 &&
                  g_rand_boolean (s->random);
  guint i = (guint) g_rand_int_range (s->random, 0, G_N_ELEMENTS (names) + 1);

  if (fits)
    g_value_take_string (value, check_path_of (s->kind->path));
  else if (i == G_N_ELEMENTS (names))
    g_value_set_static_string (value, "");
  else
    g_value_take_string (value, check_path_of (names[i]));
}

static void
random_array (Storm *s, GParamSpec *spec, GValue *value)
{
  GParamSpec *element = GST_PARAM_SPEC_ARRAY_LIST (spec)->element_spec;
  gint n = g_rand_int_range (s->random, 0, 4);

  for (gint i = 0; i < n; i++) {
    GValue v = G_VALUE_INIT;

    g_value_init (&v, element->value_type);
    if (G_VALUE_HOLDS_INT (&v))
      g_value_set_int (&v, g_rand_int_range (s->random, 0, 4));
    else
      g_value_set_double (&v, g_rand_double_range (s->random, -50, 50));
    g_param_value_validate (element, &v);
    gst_value_array_append_and_take_value (value, &v);
  }
}

static void
random_value (Storm *s, GParamSpec *spec, GValue *value)
{
  const gchar *name = spec->name;

  g_value_init (value, spec->value_type);
  if (G_IS_PARAM_SPEC_BOOLEAN (spec)) {
    g_value_set_boolean (value, g_rand_boolean (s->random));
  } else if (G_IS_PARAM_SPEC_INT (spec)) {
    GParamSpecInt *p = G_PARAM_SPEC_INT (spec);

    g_value_set_int (value, (gint) random_number (s, name, p->minimum,
                                p->maximum, p->default_value));
  } else if (G_IS_PARAM_SPEC_UINT (spec)) {
    GParamSpecUInt *p = G_PARAM_SPEC_UINT (spec);

    g_value_set_uint (value, (guint) random_number (s, name, p->minimum,
                                 p->maximum, p->default_value));
  } else if (G_IS_PARAM_SPEC_UINT64 (spec)) {
    g_value_set_uint64 (
        value, g_rand_boolean (s->random) ? 0 : g_rand_int (s->random));
  } else if (G_IS_PARAM_SPEC_DOUBLE (spec)) {
    GParamSpecDouble *p = G_PARAM_SPEC_DOUBLE (spec);

    g_value_set_double (value,
        random_number (s, name, p->minimum, p->maximum, p->default_value));
  } else if (G_IS_PARAM_SPEC_ENUM (spec)) {
    GEnumClass *p = G_PARAM_SPEC_ENUM (spec)->enum_class;

    g_value_set_enum (value,
        p->values[g_rand_int_range (s->random, 0, (gint) p->n_values)].value);
  } else if (G_IS_PARAM_SPEC_STRING (spec)) {
    random_path (s, name, value);
  } else if (GST_IS_PARAM_SPEC_ARRAY_LIST (spec)) {
    random_array (s, spec, value);
  } else {
    g_param_value_set_default (spec, value);
  }
}

/* Those of the element's table; the engine's are of GstImagingFilter or cannot
 * change while it plays. */
static GPtrArray *
find_specs (GstElement *element)
{
  GPtrArray *specs = g_ptr_array_new ();
  guint n;
  GParamSpec **all =
      g_object_class_list_properties (G_OBJECT_GET_CLASS (element), &n);

  for (guint i = 0; i < n; i++)
    if (all[i]->owner_type == G_OBJECT_TYPE (element) &&
        all[i]->flags & G_PARAM_WRITABLE && all[i]->flags & G_PARAM_READABLE &&
        all[i]->flags & GST_PARAM_MUTABLE_PLAYING)
      g_ptr_array_add (specs, all[i]);
  g_free (all);
  return specs;
}

static void
set_one (Storm *s)
{
  GParamSpec *spec =
      s->specs->pdata[g_rand_int_range (s->random, 0, (gint) s->specs->len)];
  g_auto (GValue) value = G_VALUE_INIT;

  random_value (s, spec, &value);
  g_object_set_property (G_OBJECT (s->element), spec->name, &value);
}

static void
set_several (Storm *s)
{
  g_autoptr (GstStructure) values = gst_structure_new_empty ("settings");

  for (guint i = 0; i < 3; i++) {
    GParamSpec *spec =
        s->specs->pdata[g_rand_int_range (s->random, 0, (gint) s->specs->len)];
    GValue value = G_VALUE_INIT;

    random_value (s, spec, &value);
    gst_structure_take_value (values, spec->name, &value);
  }
  g_object_set (s->element, "settings", values, NULL);
}

/* Back to what works, so that the storm does not end in a lasting refusal. */
static void
set_defaults (Storm *s)
{
  for (guint i = 0; i < s->specs->len; i++) {
    GParamSpec *spec = s->specs->pdata[i];
    g_auto (GValue) value = G_VALUE_INIT;

    g_value_init (&value, spec->value_type);
    g_param_value_set_default (spec, &value);
    g_object_set_property (G_OBJECT (s->element), spec->name, &value);
  }
}

static gpointer
blow (gpointer data)
{
  Storm *s = data;

  while (!g_atomic_int_get (&s->stop)) {
    gint choice = g_rand_int_range (s->random, 0, 20);

    if (choice == 0)
      set_defaults (s);
    else if (choice < 4)
      set_several (s);
    else
      set_one (s);
    s->n_set++;
    g_usleep ((gulong) g_rand_int_range (s->random, 0, 300));
  }
  return NULL;
}

/* --- one storm ------------------------------------------------------------ */

static GstPadProbeReturn
count_buffer (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  g_atomic_int_inc ((gint *) data);
  return GST_PAD_PROBE_OK;
}

static void
wait_for_end (const Kind *kind, guint32 seed, GstElement *pipeline)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  GstMessage *message = gst_bus_timed_pop_filtered (
      bus, WAIT, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  GError *error = NULL;

  fail_unless (
      message != NULL, "%s, seed %u: no end after 60 s", kind->factory, seed);
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR) {
    gst_message_parse_error (message, &error, NULL);
    fail ("%s, seed %u: %s", kind->factory, seed, error->message);
  }
  gst_message_unref (message);
  while ((message = gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING))) {
    gst_message_parse_warning (message, &error, NULL);
    fail_unless (g_utf8_validate (error->message, -1, NULL));
    g_clear_error (&error);
    gst_message_unref (message);
  }
}

/* Wrong settings before the first frame are an error: waits until each input of
 * @element has passed one. */
static void
wait_for_frames (GstElement *element, gint *n_in)
{
  gint64 end = g_get_monotonic_time () + 60 * G_TIME_SPAN_SECOND;
  gboolean ready;

  do {
    g_usleep (1000);
    ready = TRUE;
    for (guint i = 0; i < element->numsinkpads; i++)
      ready &= g_atomic_int_get (&n_in[i]) > 1;
  } while (!ready && g_get_monotonic_time () < end);
  fail_unless (ready, "no frames");
}

static void
count_inputs (GstElement *element, gint *n_in)
{
  guint i = 0;

  fail_unless (element->numsinkpads <= MAX_INPUTS);
  for (GList *l = element->sinkpads; l; l = l->next)
    gst_pad_add_probe (
        l->data, GST_PAD_PROBE_TYPE_BUFFER, count_buffer, &n_in[i++], NULL);
}

/* Returns: how many settings it made */
static guint
run_storm (const Kind *kind, guint32 seed)
{
  GstElement *pipeline = check_launch (kind->line);
  GstElement *out = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  GstPad *pad = gst_element_get_static_pad (out, "sink");
  Storm storm = {.kind = kind,
      .element = gst_bin_get_by_name (GST_BIN (pipeline), "e"),
      .random = g_rand_new_with_seed (seed)};
  gint n_out = 0, n_in[MAX_INPUTS] = {0};
  GThread *thread;

  fail_unless (gst_imaging_settings_of (storm.element) != NULL);
  storm.specs = find_specs (storm.element);
  fail_unless (storm.specs->len > 0, "%s has no settings", kind->factory);
  gst_pad_add_probe (
      pad, GST_PAD_PROBE_TYPE_BUFFER, count_buffer, &n_out, NULL);
  count_inputs (storm.element, n_in);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  wait_for_frames (storm.element, n_in);
  thread = g_thread_new ("storm", blow, &storm);
  wait_for_end (kind, seed, pipeline);
  g_atomic_int_set (&storm.stop, 1);
  g_thread_join (thread);
  if (kind->one_to_one)
    fail_unless (g_atomic_int_get (&n_out) == 200,
        "%s, seed %u: %d of 200 frames", kind->factory, seed, n_out);
  g_ptr_array_unref (storm.specs);
  g_rand_free (storm.random);
  gst_object_unref (storm.element);
  gst_object_unref (pad);
  gst_object_unref (out);
  check_stop (pipeline);
  fail_unless_equals_int (check_n_live (), 0);
  return storm.n_set;
}

CHECK_CASE ("all", make_files, check_remove_folder)
CHECK_CASE_TAKES (300 + 2 * MAX (0, check_number ("IMAGING_STORM_SECONDS", 0)))

CHECK_LOOP_TEST (test_no_value_ends_a_running_stream, G_N_ELEMENTS (kinds))
{
  const Kind *kind = &kinds[__i__];
  const gchar *only = g_getenv ("IMAGING_STORM_ELEMENT");
  gint64 end = g_get_monotonic_time () +
               (gint64) (check_number ("IMAGING_STORM_SECONDS", 0) * 1e6);
  guint32 seed = (guint32) check_number ("IMAGING_STORM_SEED", 1), n = 0;
  guint n_set = 0;

  if ((only && g_strcmp0 (only, kind->factory) != 0) ||
      !check_have_element (kind->factory))
    return;
  do {
    n_set += run_storm (kind, seed++);
    n++;
  } while (g_get_monotonic_time () < end || n < 3 || n_set < 100);
  g_printerr ("%s: %u storms, %u settings\n", kind->factory, n, n_set);
}

/* Else a name that is mistyped would be a storm over nothing. */
CHECK_TEST (test_the_only_element_exists)
{
  const gchar *only = g_getenv ("IMAGING_STORM_ELEMENT");
  gboolean found = only == NULL;

  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    found |= g_strcmp0 (only, kinds[i].factory) == 0;
  fail_unless (found, "IMAGING_STORM_ELEMENT: there is no %s", only);
}
