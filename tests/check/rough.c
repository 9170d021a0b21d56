/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Elements in rough use, on the CPU and on the mock of a device: settings that
 * another thread changes, flushes, changes of caps, stops and starts in the
 * middle of all, and buffers that are none. To be run under the sanitizers. */
#include "check-common.h"

#include <gst/base/gstaggregator.h>

#include "gstimagingnpy.h"

enum {
  WIDTH = 31,
  HEIGHT = 9,
  N_LIGHTS = 6,
  N_STEPS = 400,
  N_STARTS = 200,
  MAX_OUTPUTS = 4
};

typedef struct {
  const gchar *line; /* $ is the folder */
  const gchar *sink, *outputs[MAX_OUTPUTS];
  const gchar *format; /* of the first output */
} Kind;

static const Kind kinds[] = {
    {"lapsharpen", "sink", {"src"}, "RGB"},
    {"photostereo lights-location=$/lights.txt", "sink",
        {"normal", "albedo", "ambient", "quality"}, "RGB"},
    {"relight", "normal", {"src"}, "RGB"},
#ifdef HAVE_FFT
    {"normalintegrate", "sink", {"height", "tensor", "mesh"}, "GRAY16_LE"},
#endif
};

static const gchar *const backends[] = {"cpu", "cuda"};

enum { N_RUNS = G_N_ELEMENTS (kinds) * G_N_ELEMENTS (backends) };

static void
setup (void)
{
  check_make_folder ();
  check_write_file ("lights.txt",
      "0.6 0 0.8\n0 0.6 0.8\n-0.6 0 0.8\n0 -0.6 0.8\n0.28 0 0.96\n0 0 1\n", -1);
}

/* --- an element and its pads ---------------------------------------------- */

typedef struct {
  const Kind *kind;
  GstElement *element;
  GstHarness *in, *out[MAX_OUTPUTS];
  GstBus *bus;
  GstVideoInfo info;
} Rough;

static guint
n_outputs (const Rough *r)
{
  guint n = 0;

  while (n < MAX_OUTPUTS && r->kind->outputs[n])
    n++;
  return n;
}

static void
set_caps (Rough *r, gint height)
{
  g_autofree gchar *caps = check_caps_string ("RGB", WIDTH, height);

  r->info = check_info ("RGB", WIDTH, height);
  gst_harness_set_src_caps_str (r->in, caps);
}

/* The @i-th of N_RUNS. */
static Rough
rough_new (guint i)
{
  const Kind *kind = &kinds[i / G_N_ELEMENTS (backends)];
  Rough r = {.kind = kind, .element = check_launch (kind->line)};

  r.bus = check_watch (r.element);
  gst_util_set_object_arg (
      G_OBJECT (r.element), "backend", backends[i % G_N_ELEMENTS (backends)]);
  r.in = gst_harness_new_with_element (r.element, r.kind->sink, NULL);
  for (guint k = 0; k < n_outputs (&r); k++)
    r.out[k] =
        gst_harness_new_with_element (r.element, NULL, r.kind->outputs[k]);
  return r;
}

static void
rough_free (Rough *r)
{
  for (guint k = 0; k < n_outputs (r); k++)
    gst_harness_teardown (r->out[k]);
  check_take_down (r->element, r->bus, &r->in, 1);
  fail_unless_equals_int (check_n_live (), 0);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Rough, rough_free)

static void
drop_results (Rough *r)
{
  GstBuffer *buffer;

  for (guint k = 0; k < n_outputs (r); k++)
    while ((buffer = gst_harness_try_pull (r->out[k])))
      gst_buffer_unref (buffer);
  gst_bus_set_flushing (r->bus, TRUE);
  gst_bus_set_flushing (r->bus, FALSE);
}

static void
begin_stream (Rough *r, gint height)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (r->in, gst_event_new_stream_start ("rough"));
  set_caps (r, height);
  gst_harness_push_event (r->in, gst_event_new_segment (&segment));
}

static void
flush (Rough *r)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  check_flush (r->in);
}

static void
start_anew (Rough *r, gint height)
{
  gst_element_set_state (r->element, GST_STATE_READY);
  gst_element_set_state (r->element, GST_STATE_PLAYING);
  begin_stream (r, height);
}

static gboolean
has_sets (const Rough *r)
{
  return r->kind == &kinds[1];
}

/* As many frames as a set has. Returns: (transfer full): what came of the last
 * on the first output */
static GstBuffer *
play (Rough *r)
{
  guint n = has_sets (r) ? 1 : N_LIGHTS;

  for (guint i = 0; i < N_LIGHTS; i++)
    check_push (r->in, check_noise (&r->info, i), GST_FLOW_OK);
  while (--n > 0)
    gst_buffer_unref (check_pull (r->out[0]));
  return check_pull (r->out[0]);
}

/* --- the storm ------------------------------------------------------------ */

static gint stop; /* atomic */

/* Whether a storm may take it: not where the kernel is, nor a thousand
 * threads, nor a file. */
static gboolean
may_change (const GParamSpec *spec)
{
  return (spec->flags & G_PARAM_WRITABLE) &&
         spec->owner_type != G_TYPE_OBJECT &&
         spec->owner_type != GST_TYPE_OBJECT &&
         !G_IS_PARAM_SPEC_STRING (spec) &&
         (spec->flags & GST_PARAM_MUTABLE_PLAYING);
}

/* An end of its range, its default, or what is between. */
static void
change (GObject *element, GParamSpec *spec, GRand *random)
{
  g_auto (GValue) value = G_VALUE_INIT;
  guint which = (guint) g_rand_int_range (random, 0, 4);

  g_value_init (&value, spec->value_type);
  g_param_value_set_default (spec, &value);
  if (G_IS_PARAM_SPEC_BOOLEAN (spec)) {
    g_value_set_boolean (&value, which % 2);
  } else if (G_IS_PARAM_SPEC_ENUM (spec)) {
    GEnumClass *klass = G_PARAM_SPEC_ENUM (spec)->enum_class;

    g_value_set_enum (&value,
        klass->values[g_rand_int_range (random, 0, (gint32) klass->n_values)]
            .value);
  } else if (G_IS_PARAM_SPEC_DOUBLE (spec) && which > 0) {
    GParamSpecDouble *d = G_PARAM_SPEC_DOUBLE (spec);

    g_value_set_double (&value, which == 1   ? d->minimum
                                : which == 2 ? d->maximum
                                             : d->default_value / 2 + 0.1);
  } else if (G_IS_PARAM_SPEC_UINT (spec) && which > 0) {
    GParamSpecUInt *u = G_PARAM_SPEC_UINT (spec);

    g_value_set_uint (&value, which == 1   ? u->minimum
                              : which == 2 ? MIN (u->maximum, 5000)
                                           : u->minimum + 2);
  } else if (G_IS_PARAM_SPEC_UINT64 (spec) && which > 0) {
    g_value_set_uint64 (&value, which == 1   ? 1
                                : which == 2 ? G_MAXUINT64
                                             : 30000);
  }
  g_param_value_validate (spec, &value);
  g_object_set_property (element, spec->name, &value);
}

static void
read_all (GObject *element, GParamSpec **specs, guint n)
{
  for (guint i = 0; i < n; i++) {
    GValue value = G_VALUE_INIT;

    if (!(specs[i]->flags & G_PARAM_READABLE))
      continue;
    g_value_init (&value, specs[i]->value_type);
    g_object_get_property (element, specs[i]->name, &value);
    g_value_unset (&value);
  }
}

/* As the mouse over a window does. */
static void
move_mouse (Rough *r, GRand *random)
{
  GstStructure *s = gst_structure_new ("application/x-gst-navigation", "event",
      G_TYPE_STRING, "mouse-move", "button", G_TYPE_INT, 0, "pointer_x",
      G_TYPE_DOUBLE, g_rand_double (random) * WIDTH, "pointer_y", G_TYPE_DOUBLE,
      g_rand_double (random) * HEIGHT, NULL);

  gst_harness_push_upstream_event (r->out[0], gst_event_new_navigation (s));
}

static gpointer
storm (gpointer data)
{
  Rough *r = data;
  g_autoptr (GRand) random = g_rand_new_with_seed (7);
  guint n;
  GParamSpec **specs =
      g_object_class_list_properties (G_OBJECT_GET_CLASS (r->element), &n);

  while (!g_atomic_int_get (&stop)) {
    GParamSpec *spec = specs[g_rand_int_range (random, 0, (gint32) n)];

    if (may_change (spec))
      change (G_OBJECT (r->element), spec, random);
    if (g_rand_int_range (random, 0, 10) == 0)
      read_all (G_OBJECT (r->element), specs, n);
    if (g_rand_int_range (random, 0, 10) == 0)
      move_mouse (r, random);
    if (has_sets (r) && g_rand_int_range (random, 0, 10) == 0)
      g_signal_emit_by_name (r->element, "finish-set");
    g_usleep (100);
  }
  for (guint i = 0; i < n; i++)
    if (may_change (specs[i])) {
      const GValue *value = g_param_spec_get_default_value (specs[i]);

      g_object_set_property (G_OBJECT (r->element), specs[i]->name, value);
    }
  g_free (specs);
  return NULL;
}

/* Before 1.22, GstAggregator aborts when something comes behind an end. */
static gboolean
goes_on_after_the_end (const Rough *r)
{
  guint major, minor, micro, nano;

  gst_version (&major, &minor, &micro, &nano);
  return !GST_IS_AGGREGATOR (r->element) || major > 1 || minor >= 22;
}

/* What a pipeline and its user may do between two frames. */
static void
step (Rough *r, GRand *random, guint i)
{
  gint height = g_rand_int_range (random, 1, HEIGHT + 1);

  switch (g_rand_int_range (random, 0, 24)) {
  case 0:
    flush (r);
    break;
  case 1:
    set_caps (r, height);
    break;
  case 2:
    start_anew (r, height);
    break;
  case 3:
    if (!goes_on_after_the_end (r))
      break;
    gst_harness_push_event (r->in, gst_event_new_eos ());
    begin_stream (r, height);
    break;
  default: /* some settings do not go together */
    gst_harness_push (r->in, check_noise (&r->info, i));
  }
  drop_results (r);
}

/* Returns: (transfer full): what an element makes that has seen no storm */
static GstBuffer *
play_afresh (guint i)
{
  g_auto (Rough) r = rough_new (i);
  GstBuffer *found, *copy;
  GstMapInfo map;

  begin_stream (&r, HEIGHT);
  found = play (&r);
  fail_unless (gst_buffer_map (found, &map, GST_MAP_READ));
  copy = gst_buffer_new_memdup (map.data, map.size);
  gst_buffer_unmap (found, &map);
  gst_buffer_unref (found);
  return copy;
}

CHECK_CASE ("rough", setup, check_remove_folder)
CHECK_CASE_TAKES (120)

CHECK_LOOP_TEST (test_a_storm_leaves_nothing_behind, N_RUNS)
{
  GstBuffer *expected = play_afresh (__i__), *found;
  g_auto (Rough) r = rough_new (__i__);
  GRand *random = g_rand_new_with_seed (__i__);
  GstVideoInfo info = check_info (r.kind->format, WIDTH, HEIGHT);
  GThread *thread;

  begin_stream (&r, HEIGHT);
  g_atomic_int_set (&stop, FALSE);
  thread = g_thread_new ("storm", storm, &r);
  for (guint i = 0; i < N_STEPS; i++)
    step (&r, random, i);
  g_atomic_int_set (&stop, TRUE);
  g_thread_join (thread);
  g_rand_free (random);
  start_anew (&r, HEIGHT);
  drop_results (&r);
  found = play (&r);
  check_same_pixels (found, expected, &info);
  gst_buffer_unref (found);
  gst_buffer_unref (expected);
}

/* --- buffers that are none ------------------------------------------------ */

enum { EMPTY, NO_BYTES, SHORT, OTHER_FORMAT, NARROW, FAR_OFF, N_BAD };

static GstBuffer *
bad_buffer (const GstVideoInfo *info, guint which)
{
  GstBuffer *good = check_noise (info, 1), *bad;
  gsize offsets[] = {0, 0, 0, 0};
  gint strides[] = {info->stride[0], 0, 0, 0};

  switch (which) {
  case EMPTY:
    bad = gst_buffer_new ();
    break;
  case NO_BYTES:
    bad = gst_buffer_new_allocate (NULL, 0, NULL);
    break;
  case SHORT:
    bad = gst_buffer_copy_region (good, GST_BUFFER_COPY_ALL, 0, info->size - 1);
    break;
  default:
    bad = gst_buffer_copy_deep (good);
    offsets[0] = which == FAR_OFF ? 1 << 20 : 0;
    gst_buffer_add_video_meta_full (bad, 0,
        which == OTHER_FORMAT ? GST_VIDEO_FORMAT_GRAY8 : GST_VIDEO_FORMAT_RGB,
        which == NARROW ? WIDTH - 1 : WIDTH, HEIGHT, 1, offsets, strides);
  }
  gst_buffer_unref (good);
  return bad;
}

/* Fails unless an error about the stream comes. */
static void
check_stream_error (Rough *r, guint which)
{
  g_autoptr (GstMessage) message =
      gst_bus_timed_pop_filtered (r->bus, 10 * GST_SECOND, GST_MESSAGE_ERROR);
  g_autoptr (GError) error = NULL;

  fail_unless (message != NULL, "%s: buffer %u is taken", r->kind->line, which);
  gst_message_parse_error (message, &error, NULL);
  fail_unless (error->domain == GST_STREAM_ERROR, "%s", error->message);
}

CHECK_LOOP_TEST (test_what_is_no_frame_is_said, N_RUNS)
{
  for (guint which = 0; which < N_BAD; which++) {
    g_auto (Rough) r = rough_new (__i__);

    set_caps (&r, HEIGHT);
    gst_harness_push (r.in, bad_buffer (&r.info, which));
    check_stream_error (&r, which);
  }
}

/* So is what is no albedo, which is taken with the next normals. */
CHECK_LOOP_TEST (test_what_is_no_albedo_is_said, 2)
{
  g_autofree gchar *caps = check_caps_string ("RGB", WIDTH, HEIGHT);

  for (guint which = 0; which < N_BAD; which++) {
    g_auto (Rough) r = rough_new (2 * G_N_ELEMENTS (backends) + __i__);
    g_autoptr (CheckHarness) albedo =
        gst_harness_new_with_element (r.element, "albedo", NULL);

    set_caps (&r, HEIGHT);
    gst_harness_set_src_caps_str (albedo, caps);
    gst_harness_push (albedo, bad_buffer (&r.info, which));
    gst_harness_push (r.in, check_noise (&r.info, 0));
    check_stream_error (&r, which);
  }
}

/* A filesrc gives BYTES: nothing is converted. */
CHECK_LOOP_TEST (test_a_segment_may_be_of_bytes, N_RUNS)
{
  GstBuffer *expected = play_afresh (__i__), *found;
  g_auto (Rough) r = rough_new (__i__);
  GstVideoInfo info = check_info (r.kind->format, WIDTH, HEIGHT);
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_BYTES);
  begin_stream (&r, HEIGHT);
  gst_harness_push_event (r.in, gst_event_new_segment (&segment));
  found = play (&r);
  check_same_pixels (found, expected, &info);
  gst_buffer_unref (found);
  gst_buffer_unref (expected);
}

/* Upstream may not know yet what it is going to send. */
CHECK_LOOP_TEST (test_an_allocation_may_be_asked_for_without_caps, N_RUNS)
{
  g_auto (Rough) r = rough_new (__i__);

  for (guint i = 0; i < 2; i++) {
    GstQuery *query = gst_query_new_allocation (NULL, TRUE);

    gst_pad_peer_query (r.in->srcpad, query);
    fail_unless_equals_int (gst_query_get_n_allocation_pools (query), 0);
    gst_query_unref (query);
    begin_stream (&r, HEIGHT);
    gst_buffer_unref (play (&r));
  }
}

CHECK_LOOP_TEST (test_an_allocation_may_be_asked_for_at_any_time, N_RUNS)
{
  g_autofree gchar *caps = check_caps_string ("RGB", WIDTH, HEIGHT);
  g_auto (Rough) r = rough_new (__i__);
  CheckAsking asking;

  check_begin_asking (&asking, r.element, r.kind->sink, caps);
  for (guint i = 0; i < N_STARTS; i++)
    start_anew (&r, HEIGHT);
  check_end_asking (&asking);
  gst_buffer_unref (play (&r));
}

/* --- one after the other -------------------------------------------------- */

static guint
photostereo_on (guint backend)
{
  return G_N_ELEMENTS (backends) + backend;
}

/* A pad pushes caps that were refused again before the next buffer. */
CHECK_LOOP_TEST (test_caps_that_were_refused_stay_so, 2)
{
  const guint64 dims[] = {HEIGHT, WIDTH};
  g_autofree guint8 *ones = g_malloc (HEIGHT * WIDTH);
  g_autofree gchar *path = check_path_of ("mask.npy");
  g_auto (Rough) r = rough_new (photostereo_on (__i__));

  memset (ones, 1, HEIGHT * WIDTH);
  fail_unless (gst_imaging_npy_save (
      path, GST_IMAGING_ND_ARRAY_TYPE_U8, 2, dims, ones, NULL));
  g_object_set (r.element, "mask-location", path, NULL);
  begin_stream (&r, HEIGHT);
  gst_buffer_unref (play (&r));
  set_caps (&r, HEIGHT + 2); /* the mask is of another size */
  for (guint i = 0; i < 2; i++)
    fail_unless (
        gst_harness_push (r.in, check_noise (&r.info, i)) != GST_FLOW_OK);
  fail_unless_equals_int (check_count_messages (r.bus, GST_MESSAGE_ERROR), 1);
  g_object_set (r.element, "mask-location", NULL, NULL);
  gst_buffer_unref (play (&r));
}

/* The normals after it may be of another size. */
CHECK_LOOP_TEST (test_an_albedo_goes_with_its_pad, 2)
{
  g_auto (Rough) r = rough_new (2 * G_N_ELEMENTS (backends) + __i__);
  GstHarness *albedo = gst_harness_new_with_element (r.element, "albedo", NULL);
  g_autofree gchar *caps = check_caps_string ("RGB", WIDTH, HEIGHT);

  begin_stream (&r, HEIGHT);
  gst_harness_set_src_caps_str (albedo, caps);
  check_push (albedo, check_noise (&r.info, 0), GST_FLOW_OK);
  check_push (r.in, check_noise (&r.info, 0), GST_FLOW_OK);
  gst_buffer_unref (check_pull (r.out[0]));
  gst_harness_teardown (albedo); /* releases the pad */
  set_caps (&r, HEIGHT - 2);
  for (guint i = 1; i < 3; i++) {
    gst_harness_push (r.in, check_noise (&r.info, i));
    gst_buffer_unref (check_pull (r.out[0]));
  }
  check_no_messages (r.bus, GST_MESSAGE_ERROR);
}

typedef struct {
  GstElement *element;
  GstPadTemplate *template;
  gint n_ready; /* atomic */
} Request;

static gpointer
request (gpointer data)
{
  Request *r = data;

  g_atomic_int_inc (&r->n_ready);
  while (g_atomic_int_get (&r->n_ready) < 2)
    ;
  return gst_element_request_pad (r->element, r->template, NULL, NULL);
}

CHECK_TEST (test_two_threads_get_one_pad)
{
  static const gchar *const names[][2] = {
      {"photostereo", "normal"},
#ifdef HAVE_FFT
      {"normalintegrate", "height"},
#endif
      {"relight", "albedo"},
  };

  for (guint i = 0; i < 300; i++) {
    const gchar *const *name = names[i % G_N_ELEMENTS (names)];
    Request r = {.element = gst_element_factory_make (name[0], NULL)};
    GstPad *one, *other;
    GThread *thread;

    r.template = gst_element_get_pad_template (r.element, name[1]);
    thread = g_thread_new ("request", request, &r);
    one = request (&r);
    other = g_thread_join (thread);
    fail_unless ((one == NULL) != (other == NULL));
    one = one ? one : other;
    gst_element_release_request_pad (r.element, one);
    gst_object_unref (one);
    one = request (&r);
    fail_unless (one != NULL);
    gst_object_unref (one);
    gst_object_unref (r.element);
  }
}
