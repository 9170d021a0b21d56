/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GstImagingFilter, by two small subclasses and by lapsharpen, on the CPU and
 * on the mock device. */
#include "check-common.h"

#include <string.h>

#include "gstimagingfilter.h"

/* --- two elements --------------------------------------------------------- */

/* What the subclasses were asked to do; reset by set_up (). */
static struct {
  gint n_opened, n_closed, n_processed, n_reset; /* atomic */
  gboolean prefers_cuda;
  ImkStatus open_fails, process_fails; /* on the device only */
  gboolean reopens;
  gboolean has_other_fields;
} seen;

typedef struct {
  GstImagingFilter parent;
  gboolean is_open;
  ImkBackend backend;
  gint identity; /* atomic */
} TestFilter;

typedef GstImagingFilterClass TestFilterClass;

static ImkStatus
test_filter_open (GstImagingFilter *filter, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  TestFilter *self = (TestFilter *) filter;

  fail_if (self->is_open, "opened twice");
  fail_unless ((gst_imaging_filter_open_context (filter) != NULL) ||
               backend == IMK_BACKEND_CPU);
  if (seen.open_fails != IMK_OK)
    return imk_error_set (
        error, seen.open_fails, "The kernel was told not to open.");
  self->is_open = TRUE;
  self->backend = backend;
  g_atomic_int_inc (&seen.n_opened);
  return IMK_OK;
}

static void
test_filter_close (GstImagingFilter *filter)
{
  TestFilter *self = (TestFilter *) filter;

  fail_unless (self->is_open, "closed and not open");
  self->is_open = FALSE;
  g_atomic_int_inc (&seen.n_closed);
}

static ImkStatus
test_filter_begin (GstImagingFilter *filter, ImkError *error)
{
  TestFilter *self = (TestFilter *) filter;

  fail_unless (self->is_open, "a frame for a kernel that is not open");
  g_atomic_int_inc (&seen.n_processed);
  if (seen.reopens) {
    ImkStatus status = gst_imaging_filter_reopen (filter, error);

    if (status != IMK_OK)
      return status;
  }
  if (seen.process_fails != IMK_OK && self->backend == IMK_BACKEND_CUDA)
    return imk_error_set (
        error, seen.process_fails, "The kernel was told to fail.");
  return IMK_OK;
}

static void
test_filter_reset (GstImagingFilter *filter, gpointer stream)
{
  fail_unless ((stream != NULL) ==
               (((TestFilter *) filter)->backend != IMK_BACKEND_CPU));
  g_atomic_int_inc (&seen.n_reset);
}

static gboolean
test_filter_prefers_cuda (GstImagingFilter *filter, const GstVideoInfo *info)
{
  return seen.prefers_cuda;
}

static gboolean
test_filter_is_identity (GstImagingFilter *filter)
{
  return g_atomic_int_get (&((TestFilter *) filter)->identity);
}

#define TEST_CAPS GST_VIDEO_CAPS_MAKE ("{ GRAY8, GRAY16_LE, RGBA, I420 }")

static void
add_video_pads (gpointer klass)
{
  static GstStaticPadTemplate sink = GST_STATIC_PAD_TEMPLATE (
      "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (TEST_CAPS));
  static GstStaticPadTemplate src = GST_STATIC_PAD_TEMPLATE (
      "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (TEST_CAPS));

  gst_element_class_add_static_pad_template (klass, &sink);
  gst_element_class_add_static_pad_template (klass, &src);
}

/* testinvert: the CPU inverts, the device copies, so that a frame tells who
 * made it. */
typedef TestFilter TestInvert;
typedef TestFilterClass TestInvertClass;
static GType test_invert_get_type (void);
G_DEFINE_TYPE (TestInvert, test_invert, GST_TYPE_IMAGING_FILTER)

static void
invert (const ImkImage *in, ImkImage *out)
{
  for (guint y = 0; y < in->height; y++) {
    const guint8 *from = (guint8 *) in->data + y * in->stride;
    guint8 *to = (guint8 *) out->data + y * out->stride;

    for (gsize x = 0; x < imk_image_row_size (in); x++)
      to[x] = ~from[x];
  }
}

static ImkStatus
test_invert_process (GstImagingFilter *filter, GstImagingFrame *in,
    GstImagingFrame *out, GstBuffer *buffer, gboolean *done, ImkError *error)
{
  TestFilter *self = (TestFilter *) filter;
  ImkStatus status = test_filter_begin (filter, error);

  fail_unless (gst_buffer_is_writable (buffer));
  for (guint i = 0; i < in->n_planes && status == IMK_OK; i++) {
    ImkImage *from = &in->planes[i], *to = &out->planes[i];

    if (self->backend == IMK_BACKEND_CPU) {
      fail_unless (*done && !in->stream);
      invert (from, to);
    } else {
      fail_unless (!*done && in->stream && from->location != IMK_LOCATION_HOST);
      status =
          check_device ()->copy (to->data, to->stride, from->data, from->stride,
              imk_image_row_size (from), from->height, in->stream, error);
    }
  }
  return status;
}

static void
test_invert_class_init (TestInvertClass *klass)
{
  add_video_pads (klass);
  gst_element_class_set_static_metadata (GST_ELEMENT_CLASS (klass),
      "Test inverter", "Filter/Effect/Video", "Inverts or copies", "nobody");
  klass->device_reach = GST_IMAGING_REACH_DEVICE;
  klass->open = test_filter_open;
  klass->close = test_filter_close;
  klass->process = test_invert_process;
  klass->reset = test_filter_reset;
  klass->prefers_cuda = test_filter_prefers_cuda;
  klass->is_identity = test_filter_is_identity;
}

static void
test_invert_init (TestInvert *self)
{
}

/* testmeasure: the first two bytes of a frame. No optional vfunc. */
typedef TestFilter TestMeasure;
typedef TestFilterClass TestMeasureClass;
static GType test_measure_get_type (void);
G_DEFINE_TYPE (TestMeasure, test_measure, GST_TYPE_IMAGING_FILTER)

static void
publish (GstImagingFilter *filter, GstBuffer *buffer, const guint8 *bytes)
{
  static const gchar *const fields[] = {"first", "second"};
  static const gchar *const other_fields[] = {"one", "two"};
  static const gchar *const units[] = {"counts", "flags"};
  gfloat numbers[] = {bytes[0], bytes[1]};
  gdouble values[] = {bytes[0], bytes[1]};
  GstImagingResult result = {
      .id = "test-v1",
      .fields = seen.has_other_fields ? other_fields : fields,
      .units = units,
      .n_fields = 2,
      .n_rows = 1,
      .data = gst_buffer_new_memdup (numbers, sizeof (numbers)),
      .values = gst_imaging_filter_wants_values (filter) ? values : NULL,
      .ref_width = 4,
      .ref_height = 3,
      .frame = gst_imaging_filter_frame_number (filter),
  };

  gst_imaging_filter_publish (filter, buffer, &result);
  gst_buffer_unref (result.data);
}

static ImkStatus
test_measure_process (GstImagingFilter *filter, GstImagingFrame *in,
    GstImagingFrame *out, GstBuffer *buffer, gboolean *done, ImkError *error)
{
  ImkStatus status = test_filter_begin (filter, error);
  guint8 bytes[2];

  fail_unless (out == NULL && gst_buffer_is_writable (buffer));
  if (status == IMK_OK && in->stream)
    status = check_device ()->copy (
        bytes, 2, in->planes[0].data, 2, 2, 1, in->stream, error);
  else if (status == IMK_OK)
    memcpy (bytes, in->planes[0].data, 2);
  if (status == IMK_OK)
    status = gst_imaging_filter_synchronize (filter, error);
  if (status != IMK_OK)
    return status;
  *done = TRUE;
  publish (filter, buffer, bytes);
  return IMK_OK;
}

static void
test_measure_class_init (TestMeasureClass *klass)
{
  add_video_pads (klass);
  gst_imaging_filter_class_add_results_pad (klass);
  gst_element_class_set_static_metadata (GST_ELEMENT_CLASS (klass),
      "Test measurer", "Filter/Analyzer/Video", "First bytes", "nobody");
  klass->measures = TRUE;
  klass->device_reach = GST_IMAGING_REACH_DEVICE_OR_MAPPED;
  klass->open = test_filter_open;
  klass->close = test_filter_close;
  klass->process = test_measure_process;
}

static void
test_measure_init (TestMeasure *self)
{
}

/* testmeasurefast: on the device where there is one. */
typedef TestFilter TestMeasureFast;
typedef TestFilterClass TestMeasureFastClass;
static GType test_measure_fast_get_type (void);
G_DEFINE_TYPE (TestMeasureFast, test_measure_fast, test_measure_get_type ())

static void
test_measure_fast_class_init (TestMeasureFastClass *klass)
{
  klass->prefers_cuda = test_filter_prefers_cuda;
}

static void
test_measure_fast_init (TestMeasureFast *self)
{
}

/* --- helpers -------------------------------------------------------------- */

static guint n_live_before;

static void
set_up (void)
{
  memset (&seen, 0, sizeof (seen));
  gst_element_register (
      NULL, "testinvert", GST_RANK_NONE, test_invert_get_type ());
  gst_element_register (
      NULL, "testmeasure", GST_RANK_NONE, test_measure_get_type ());
  gst_element_register (
      NULL, "testmeasurefast", GST_RANK_NONE, test_measure_fast_get_type ());
  n_live_before = check_n_live ();
}

/* Nothing of a device outlives the element that opened it and its buffers. */
static void
tear_down (void)
{
  ImkError error;
  const ImkDevice *device = NULL;

  if (imk_device_get (&device, &error) == IMK_OK)
    device->inject_failure (0, FALSE);
  fail_unless_equals_int (seen.n_opened, seen.n_closed);
  fail_unless_equals_int (check_n_live (), n_live_before);
}

typedef struct {
  GstHarness *h;
  GstElement *element; /* not owned */
  GstBus *bus;
  GstVideoInfo info;
} Stage;

static void
stage_caps (Stage *s, const gchar *format, gint width, gint height)
{
  gchar *caps = check_caps_string (format, width, height);

  s->info = check_info (format, width, height);
  gst_harness_set_src_caps_str (s->h, caps);
  g_free (caps);
}

/* An element of the launch line between two pads; NULL for no pad. There is no
 * harness when the element cannot be started. */
static Stage
stage_try (const gchar *launch, const gchar *sink, const gchar *src)
{
  GError *error = NULL;
  Stage s = {NULL, gst_parse_launch (launch, &error), gst_bus_new ()};

  fail_unless (error == NULL, "%s", error ? error->message : "");
  gst_object_ref_sink (s.element);
  gst_element_set_bus (s.element, s.bus);
  if (gst_element_set_state (s.element, GST_STATE_PAUSED) !=
      GST_STATE_CHANGE_FAILURE) {
    s.h = gst_harness_new_with_element (s.element, sink, src);
    stage_caps (&s, "GRAY8", 641, 3);
  } else {
    gst_element_set_state (s.element, GST_STATE_NULL);
    gst_element_set_bus (s.element, NULL);
  }
  gst_object_unref (s.element);
  return s;
}

static Stage
stage_new (const gchar *launch, const gchar *sink, const gchar *src)
{
  Stage s = stage_try (launch, sink, src);

  fail_unless (s.h != NULL, "%s does not start", launch);
  return s;
}

static void
stage_free (Stage *s)
{
  gst_harness_teardown (s->h);
  gst_object_unref (s->bus);
}

static GstBuffer *
inverted (GstBuffer *buffer)
{
  GstBuffer *copy = gst_buffer_copy_deep (buffer);
  GstMapInfo map;

  fail_unless (gst_buffer_map (copy, &map, GST_MAP_READWRITE));
  for (gsize i = 0; i < map.size; i++)
    map.data[i] = ~map.data[i];
  gst_buffer_unmap (copy, &map);
  return copy;
}

/* Fails unless @found is what testinvert makes of noise number @seed. */
static void
check_made (Stage *s, GstBuffer *found, guint seed, ImkBackend backend)
{
  GstBuffer *noise = check_noise (&s->info, seed), *negative = inverted (noise);

  check_same_pixels (
      found, backend == IMK_BACKEND_CPU ? negative : noise, &s->info);
  fail_unless_equals_uint64 (GST_BUFFER_PTS (found), GST_BUFFER_PTS (noise));
  fail_unless_equals_uint64 (
      GST_BUFFER_DURATION (found), GST_BUFFER_DURATION (noise));
  gst_buffer_unref (noise);
  gst_buffer_unref (negative);
}

static void
push_and_check (Stage *s, guint seed, ImkBackend backend)
{
  GstBuffer *out;

  check_push (s->h, check_noise (&s->info, seed), GST_FLOW_OK);
  out = check_pull (s->h);
  check_made (s, out, seed, backend);
  gst_buffer_unref (out);
}

/* Returns: (transfer full): noise in memory of a device, and nowhere else */
static GstBuffer *
noise_on_device (const GstVideoInfo *info, guint seed, gint device_id)
{
  GstImagingContext *context = check_context (device_id);
  const ImkDevice *device = gst_imaging_context_device (context);
  GstAllocator *allocator =
      gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_DEVICE, NULL);
  GstBuffer *noise = check_noise (info, seed), *buffer = gst_buffer_new ();
  GstMemory *memory = gst_allocator_alloc (allocator, info->size, NULL);
  gpointer stream = gst_imaging_context_stream (context), pointer;
  ImkLocation location;
  GstMapInfo map;
  ImkError error;

  check_ok (gst_imaging_context_push (context, &error), &error);
  check_ok (gst_imaging_memory_acquire (memory, stream, GST_MAP_WRITE, FALSE,
                NULL, &pointer, &location, &error),
      &error);
  fail_unless (gst_buffer_map (noise, &map, GST_MAP_READ));
  check_ok (device->copy (pointer, map.size, map.data, map.size, map.size, 1,
                stream, &error),
      &error);
  gst_buffer_unmap (noise, &map);
  check_ok (
      gst_imaging_memory_release (memory, stream, GST_MAP_WRITE, FALSE, &error),
      &error);
  gst_imaging_context_pop (context);

  gst_buffer_append_memory (buffer, memory);
  gst_buffer_copy_into (buffer, noise, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_buffer_unref (noise);
  gst_object_unref (allocator);
  g_object_unref (context);
  return buffer;
}

static GstQuery *
query_allocation (Stage *s)
{
  GstCaps *caps = gst_pad_get_current_caps (s->h->srcpad);
  GstQuery *query = gst_query_new_allocation (caps, TRUE);

  fail_unless (gst_pad_peer_query (s->h->srcpad, query));
  gst_caps_unref (caps);
  return query;
}

static gboolean
offers_video_meta (GstQuery *query)
{
  return gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
}

/* Returns: (transfer full) (nullable): the pool that is offered first */
static GstBufferPool *
offered_pool (GstQuery *query, guint *size)
{
  GstBufferPool *pool = NULL;

  if (gst_query_get_n_allocation_pools (query) > 0)
    gst_query_parse_nth_allocation_pool (query, 0, &pool, size, NULL, NULL);
  return pool;
}

static gchar *
string_of (GstBuffer *buffer)
{
  GstMapInfo map;
  gchar *text;

  fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
  text = g_strndup ((gchar *) map.data, map.size);
  gst_buffer_unmap (buffer, &map);
  return text;
}

static void
check_text (GstBuffer *buffer, const gchar *expected)
{
  gchar *text = string_of (buffer);

  fail_unless_equals_string (text, expected);
  g_free (text);
  gst_buffer_unref (buffer);
}

/* The line of testmeasure for noise number @seed, with or without header. */
static void
check_line (Stage *s, GstBuffer *line, guint frame, guint seed, gboolean header)
{
  GstBuffer *noise = check_noise (&s->info, seed);
  guint8 bytes[2];
  gchar *expected;

  gst_buffer_extract (noise, 0, bytes, 2);
  expected = g_strdup_printf ("%s%u,%u,%u,%u\n",
      header ? "frame,pts,first,second\n" : "", frame, seed * 40000000,
      bytes[0], bytes[1]);
  check_text (line, expected);
  g_free (expected);
  gst_buffer_unref (noise);
}

static GstElement *
launch (const gchar *format, ...)
{
  GError *error = NULL;
  GstElement *pipeline;
  va_list args;
  gchar *line;

  va_start (args, format);
  line = g_strdup_vprintf (format, args);
  va_end (args);
  pipeline = gst_parse_launch (line, &error);
  fail_unless (error == NULL, "%s: %s", line, error ? error->message : "");
  g_free (line);
  return pipeline;
}

static void
dispose (GstElement *pipeline)
{
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
}

static guint64
stat_of (GstElement *pipeline, const gchar *element, const gchar *name)
{
  GstElement *e = gst_bin_get_by_name (GST_BIN (pipeline), element);
  guint64 value = check_stat (e, name);

  gst_object_unref (e);
  return value;
}

static void
check_active (GstElement *element, const gchar *backend, const gchar *memory)
{
  gchar *b = NULL, *m = NULL;

  g_object_get (element, "active-backend", &b, "active-memory", &m, NULL);
  fail_unless_equals_string (b, backend);
  fail_unless_equals_string (m, memory);
  g_free (b);
  g_free (m);
}

static const gchar *const backends[] = {"cpu", "cuda"};

/* --- the vfuncs ----------------------------------------------------------- */

GST_START_TEST (test_each_open_has_its_close_over_caps_changes)
{
  const gchar *formats[] = {"GRAY8", "GRAY16_LE", "RGBA", "I420", "GRAY8"};
  gchar *line = g_strdup_printf ("testinvert backend=%s", backends[__i__]);
  Stage s = stage_new (line, "sink", "src");

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
    stage_caps (&s, formats[i], 641 - 2 * i, 3 + i);
    for (guint seed = 0; seed < 3; seed++)
      push_and_check (&s, seed, __i__);
    fail_unless_equals_int (seen.n_opened - seen.n_closed, 1);
  }
  fail_unless (seen.n_opened >= 5);
  fail_unless_equals_int (seen.n_processed, 15);
  stage_free (&s);
  g_free (line);
}
GST_END_TEST;

GST_START_TEST (test_it_starts_and_stops_200_times)
{
  gchar *line = g_strdup_printf ("testinvert backend=%s", backends[__i__]);
  Stage s = stage_new (line, "sink", "src");
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  for (guint i = 0; i < 200; i++) {
    push_and_check (&s, i, __i__);
    fail_unless_equals_uint64 (check_stat (s.element, "frames"), 1);
    gst_element_set_state (s.element, GST_STATE_READY);
    fail_unless_equals_int (seen.n_opened, seen.n_closed);
    if (i % 2)
      gst_element_set_state (s.element, GST_STATE_NULL);
    fail_unless_equals_int (
        gst_element_set_state (s.element, GST_STATE_PLAYING),
        GST_STATE_CHANGE_SUCCESS);
    /* the pad of the harness remembers its events and sends them again */
    gst_harness_push_event (s.h, gst_event_new_stream_start ("again"));
    stage_caps (&s, "GRAY8", 641, 3 + i % 2);
    gst_harness_push_event (s.h, gst_event_new_segment (&segment));
  }
  stage_free (&s);
  g_free (line);
}
GST_END_TEST;

GST_START_TEST (test_absent_optional_vfuncs_are_not_called)
{
  Stage s = stage_new ("testmeasure", "sink", "src");

  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
  fail_unless (gst_harness_push_event (s.h, gst_event_new_flush_start ()));
  fail_unless (gst_harness_push_event (s.h, gst_event_new_flush_stop (TRUE)));
  stage_free (&s);
}
GST_END_TEST;

GST_START_TEST (test_a_flush_resets)
{
  gchar *line = g_strdup_printf ("testinvert backend=%s", backends[__i__]);
  Stage s = stage_new (line, "sink", "src");
  GstSegment segment;

  push_and_check (&s, 0, __i__);
  fail_unless_equals_int (seen.n_reset, 0);
  gst_harness_push_event (s.h, gst_event_new_flush_start ());
  gst_harness_push_event (s.h, gst_event_new_flush_stop (TRUE));
  fail_unless_equals_int (seen.n_reset, 1);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (s.h, gst_event_new_segment (&segment));
  push_and_check (&s, 1, __i__);
  stage_free (&s);
  g_free (line);
}
GST_END_TEST;

GST_START_TEST (test_a_kernel_that_does_not_open_is_one_error)
{
  struct {
    ImkStatus status;
    GQuark domain;
    gint code;
  } cases[] = {
      {IMK_ERROR_CONFIG, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS},
      {IMK_ERROR_IMAGE, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT},
      {IMK_ERROR_MEMORY, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT},
      {IMK_ERROR_FILE, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ},
      {IMK_ERROR_UNAVAILABLE, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND},
      {IMK_ERROR_DEVICE, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Stage s = {NULL};

    seen.open_fails = cases[i].status;
    s = stage_new ("testinvert backend=cpu", "sink", "src");
    for (guint n = 0; n < 3; n++)
      check_push (s.h, check_noise (&s.info, n), GST_FLOW_NOT_NEGOTIATED);
    check_message_says (check_message (s.bus, GST_MESSAGE_ERROR),
        cases[i].domain, cases[i].code, "told not to open");
    fail_unless_equals_int (check_count_messages (s.bus, GST_MESSAGE_ERROR), 0);
    stage_free (&s);
  }
  fail_unless_equals_int (seen.n_processed, 0);
}
GST_END_TEST;

GST_START_TEST (test_no_frame_is_given_to_a_kernel_that_did_not_reopen)
{
  Stage s = stage_new ("testinvert backend=cpu", "sink", "src");

  push_and_check (&s, 0, IMK_BACKEND_CPU);
  seen.reopens = TRUE;
  push_and_check (&s, 1, IMK_BACKEND_CPU);
  seen.open_fails = IMK_ERROR_CONFIG;
  check_push (s.h, check_noise (&s.info, 2), GST_FLOW_ERROR);
  /* a tee, or an appsrc, may go on all the same */
  check_push (s.h, check_noise (&s.info, 3), GST_FLOW_ERROR);
  fail_unless_equals_int (check_count_messages (s.bus, GST_MESSAGE_ERROR), 1);
  fail_unless (gst_harness_try_pull (s.h) == NULL);
  stage_free (&s);
}
GST_END_TEST;

static void
push_caps (Stage *s, const gchar *format, gint width, gint height)
{
  gchar *text = check_caps_string (format, width, height);
  GstCaps *caps = gst_caps_from_string (text);

  gst_harness_push_event (s->h, gst_event_new_caps (caps));
  gst_caps_unref (caps);
  g_free (text);
}

/* The base class, which never took the others, does not set them again. */
GST_START_TEST (test_refused_caps_leave_the_former_ones_in_force)
{
  gchar *line = g_strdup_printf ("testinvert backend=%s", backends[__i__]);
  Stage s = stage_new (line, "sink", "src");

  push_and_check (&s, 0, __i__);
  seen.open_fails = IMK_ERROR_CONFIG;
  push_caps (&s, "RGBA", 643, 5);
  seen.open_fails = IMK_OK;
  push_caps (&s, "GRAY8", 641, 3);
  push_and_check (&s, 1, __i__);
  fail_unless_equals_int (check_count_messages (s.bus, GST_MESSAGE_ERROR), 1);
  stage_free (&s);
  g_free (line);
}
GST_END_TEST;

GST_START_TEST (test_a_property_that_comes_too_late_is_said_once)
{
  Stage s = stage_new ("testinvert backend=cpu n-threads=2", "sink", "src");

  push_and_check (&s, 0, IMK_BACKEND_CPU);
  g_object_set (s.element, "n-threads", 2, NULL); /* as it was */
  fail_unless_equals_int (check_count_messages (s.bus, GST_MESSAGE_WARNING), 0);
  g_object_set (s.element, "backend", GST_IMAGING_BACKEND_CUDA, NULL);
  g_object_set (s.element, "n-threads", 1, NULL);
  check_message_says (check_message (s.bus, GST_MESSAGE_WARNING),
      GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS, "backend was set after");
  fail_unless_equals_int (check_count_messages (s.bus, GST_MESSAGE_WARNING), 0);
  push_and_check (&s, 1, IMK_BACKEND_CPU);
  stage_free (&s);
}
GST_END_TEST;

/* --- frames --------------------------------------------------------------- */

GST_START_TEST (test_any_stride_and_format_gives_the_same_pixels)
{
  const gchar *formats[] = {"GRAY8", "GRAY16_LE", "RGBA", "I420"};
  guint paddings[] = {0, 4, 60};
  gchar *line = g_strdup_printf ("testinvert backend=%s", backends[__i__]);
  Stage s = stage_new (line, "sink", "src");
  guint seed = 0;

  for (guint f = 0; f < G_N_ELEMENTS (formats); f++)
    for (guint p = 0; p < G_N_ELEMENTS (paddings); p++) {
      GstBuffer *out;

      stage_caps (&s, formats[f], 641, 5);
      check_push (
          s.h, check_noise_padded (&s.info, ++seed, paddings[p]), GST_FLOW_OK);
      out = check_pull (s.h);
      check_made (&s, out, seed, __i__);
      gst_buffer_unref (out);
    }
  stage_free (&s);
  g_free (line);
}
GST_END_TEST;

GST_START_TEST (test_1x1_frames_pass)
{
  gchar *line = g_strdup_printf ("testinvert backend=%s", backends[__i__]);
  Stage s = stage_new (line, "sink", "src");

  stage_caps (&s, "GRAY8", 1, 1);
  push_and_check (&s, 1, __i__);
  stage_caps (&s, "I420", 1, 1);
  push_and_check (&s, 2, __i__);
  stage_free (&s);
  g_free (line);
}
GST_END_TEST;

static GstBuffer *
small_buffer (Stage *s, gint memory)
{
  GstImagingContext *context;
  GstAllocator *allocator;
  GstBuffer *buffer;

  if (memory == 0)
    return gst_buffer_new_allocate (NULL, s->info.size - 5, NULL);
  context = check_context (0);
  allocator =
      gst_imaging_allocator_new (context, GST_IMAGING_MEMORY_PINNED, NULL);
  buffer = gst_buffer_new_allocate (allocator, s->info.size - 5, NULL);
  gst_object_unref (allocator);
  g_object_unref (context);
  return buffer;
}

/* Nobody's device is broken because a source sends nonsense. */
GST_START_TEST (test_a_buffer_that_is_too_small_is_an_error_and_no_fallback)
{
  const gchar *elements[] = {"testinvert", "testmeasure"};

  for (guint i = 0; i < 2 * G_N_ELEMENTS (elements); i++) {
    gchar *line =
        g_strdup_printf ("%s backend=%s", elements[i % 2], backends[__i__]);
    Stage s = stage_new (line, "sink", "src");

    check_push (s.h, small_buffer (&s, i / 2), GST_FLOW_ERROR);
    check_message_says (
        check_message (s.bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING),
        GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, "too small");
    fail_unless_equals_int (
        check_count_messages (s.bus, GST_MESSAGE_ERROR | GST_MESSAGE_WARNING),
        0);
    stage_free (&s);
    g_free (line);
  }
}
GST_END_TEST;

/* The rows of GStreamer's default are padded to 4 bytes, the last one as well.
 */
GST_START_TEST (test_a_frame_without_the_end_of_its_last_row_is_too_small)
{
  gchar *line = g_strdup_printf ("testinvert backend=%s", backends[__i__]);
  Stage s = stage_new (line, "sink", "src");
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, 253, NULL);

  stage_caps (&s, "GRAY8", 61, 4);
  gst_buffer_memset (buffer, 0, 0, -1);
  check_push (s.h, buffer, GST_FLOW_ERROR);
  check_message_says (check_message (s.bus, GST_MESSAGE_ERROR),
      GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, "253 bytes is too small");
  stage_free (&s);
  g_free (line);
}
GST_END_TEST;

/* Whatever failed before a good frame is another story than what fails after
 * it. */
GST_START_TEST (test_each_failure_with_a_good_frame_between_is_said)
{
  Stage s = stage_new ("testinvert backend=cpu", "sink", "src");

  for (guint i = 0; i < 3; i++) {
    for (guint n = 0; n < 2; n++)
      check_push (s.h, gst_buffer_new_allocate (NULL, 9, NULL), GST_FLOW_ERROR);
    fail_unless_equals_int (check_count_messages (s.bus, GST_MESSAGE_ERROR), 1);
    push_and_check (&s, i, IMK_BACKEND_CPU);
  }
  stage_free (&s);
}
GST_END_TEST;

/* Returns: (transfer full): noise in memories of these sizes, with a meta */
static GstBuffer *
noise_in_memories (GstVideoInfo *info, guint seed, const gsize *sizes)
{
  GstBuffer *noise = check_noise (info, seed), *buffer = gst_buffer_new ();
  gsize offset = 0;

  for (guint i = 0; sizes[i]; i++) {
    GstMemory *memory = gst_allocator_alloc (NULL, sizes[i], NULL);
    GstMapInfo map;

    fail_unless (gst_memory_map (memory, &map, GST_MAP_WRITE));
    gst_buffer_extract (noise, offset, map.data, map.size);
    gst_memory_unmap (memory, &map);
    gst_buffer_append_memory (buffer, memory);
    offset += sizes[i];
  }
  fail_unless_equals_uint64 (offset, info->size);
  gst_buffer_add_video_meta_full (buffer, GST_VIDEO_FRAME_FLAG_NONE,
      GST_VIDEO_INFO_FORMAT (info), info->width, info->height,
      GST_VIDEO_INFO_N_PLANES (info), info->offset, info->stride);
  gst_buffer_copy_into (buffer, noise, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_buffer_unref (noise);
  return buffer;
}

GST_START_TEST (test_a_plane_in_two_memories_is_refused)
{
  const gsize halves[] = {1024, 908, 0}, planes[] = {512, 128, 128, 0};
  gchar *line = g_strdup_printf ("testinvert backend=%s", backends[__i__]);
  Stage s = stage_new (line, "sink", "src");
  GstBuffer *out;

  /* a memory for each plane is fine */
  stage_caps (&s, "I420", 32, 16);
  check_push (s.h, noise_in_memories (&s.info, 1, planes), GST_FLOW_OK);
  out = check_pull (s.h);
  check_made (&s, out, 1, __i__);
  gst_buffer_unref (out);

  stage_caps (&s, "GRAY8", 641, 3);
  check_push (s.h, noise_in_memories (&s.info, 2, halves), GST_FLOW_ERROR);
  check_message_says (check_message (s.bus, GST_MESSAGE_ERROR),
      GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, "lies in several memories");
  stage_free (&s);
  g_free (line);
}
GST_END_TEST;

GST_START_TEST (test_metas_of_others_stay_on_the_frame)
{
  const gchar *elements[] = {"testinvert", "testmeasure", "lapsharpen"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    Stage s = stage_new (elements[i], "sink", "src");
    GstBuffer *in = check_noise_padded (&s.info, 1, 16), *out;
    GstCaps *caps = gst_caps_new_empty_simple ("timestamp/x-test");
    GstVideoRegionOfInterestMeta *roi;
    GstVideoMeta *video;

    gst_buffer_add_video_region_of_interest_meta (in, "spot", 3, 1, 7, 2);
    gst_buffer_add_reference_timestamp_meta (in, caps, 42, GST_CLOCK_TIME_NONE);
    check_push (s.h, in, GST_FLOW_OK);
    out = check_pull (s.h);
    roi = gst_buffer_get_video_region_of_interest_meta_id (out, 0);
    fail_unless (roi != NULL, "%s drops regions", elements[i]);
    fail_unless_equals_int (roi->x, 3);
    fail_unless_equals_int (roi->w, 7);
    fail_unless (gst_buffer_get_reference_timestamp_meta (out, caps) != NULL);
    /* and that of the memory is the one of the new memory */
    video = gst_buffer_get_video_meta (out);
    fail_unless (i == 1 || !video || video->stride[0] == 644);
    gst_buffer_unref (out);
    gst_caps_unref (caps);
    stage_free (&s);
  }
}
GST_END_TEST;

GST_START_TEST (test_a_passed_frame_is_the_same_buffer_and_counts)
{
  gchar *line = g_strdup_printf ("testinvert backend=%s", backends[__i__]);
  Stage s = stage_new (line, "sink", "src");

  for (guint i = 0; i < 20; i++) {
    gboolean identity = i / 3 % 2;

    g_atomic_int_set (&((TestFilter *) s.element)->identity, identity);
    if (identity) {
      GstBuffer *in = check_noise (&s.info, i), *out;

      check_push (s.h, gst_buffer_ref (in), GST_FLOW_OK);
      out = check_pull (s.h);
      fail_unless (out == in);
      gst_buffer_unref (in);
      gst_buffer_unref (out);
    } else {
      push_and_check (&s, i, __i__);
    }
  }
  fail_unless_equals_uint64 (check_stat (s.element, "frames"), 20);
  fail_unless_equals_uint64 (
      gst_imaging_filter_frame_number (GST_IMAGING_FILTER (s.element)), 20);
  stage_free (&s);
  g_free (line);
}
GST_END_TEST;

GST_START_TEST (test_stats_are_plausible)
{
  gchar *line = g_strdup_printf ("testinvert backend=%s", backends[__i__]);
  Stage s = stage_new (line, "sink", "src");
  gdouble p50 = -1, p99 = -1, max = -1, all;
  gint64 start = g_get_monotonic_time ();
  GstStructure *stats;

  check_active (s.element, backends[__i__], "none");
  for (guint i = 0; i < 50; i++)
    push_and_check (&s, i, __i__);
  all = g_get_monotonic_time () - start;
  g_object_get (s.element, "stats", &stats, NULL);
  fail_unless (gst_structure_get (stats, "time-p50", G_TYPE_DOUBLE, &p50,
      "time-p99", G_TYPE_DOUBLE, &p99, "time-max", G_TYPE_DOUBLE, &max, NULL));
  fail_unless (0 < p50 && p50 <= p99 && p99 <= max && max <= all,
      "%f %f %f of %f us", p50, p99, max, all);
  gst_structure_free (stats);
  fail_unless_equals_uint64 (check_stat (s.element, "frames"), 50);
  fail_unless_equals_uint64 (check_stat (s.element, "lost-frames"), 0);
  fail_unless_equals_uint64 (
      check_stat (s.element, "bytes-copied"), __i__ * 50 * s.info.size);
  fail_unless_equals_uint64 (
      check_stat (s.element, "bytes-uploaded"), __i__ * 50 * s.info.size);
  fail_unless_equals_uint64 (
      check_stat (s.element, "bytes-downloaded"), __i__ * 50 * s.info.size);
  check_active (s.element, backends[__i__], __i__ ? "device" : "system");
  stage_free (&s);
  g_free (line);
}
GST_END_TEST;

GST_START_TEST (test_a_segment_in_bytes_is_taken_as_it_is)
{
  const gchar *elements[] = {"testinvert", "testmeasure"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    Stage s = stage_new (elements[i], "sink", "src");
    GstSegment segment;
    GstEvent *event;

    gst_segment_init (&segment, GST_FORMAT_BYTES);
    gst_harness_push_event (s.h, gst_event_new_segment (&segment));
    check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
    gst_buffer_unref (check_pull (s.h));
    event = gst_pad_get_sticky_event (s.h->sinkpad, GST_EVENT_SEGMENT, 0);
    gst_event_copy_segment (event, &segment);
    fail_unless_equals_int (segment.format, GST_FORMAT_BYTES);
    gst_event_unref (event);
    stage_free (&s);
  }
}
GST_END_TEST;

/* --- results -------------------------------------------------------------- */

GST_START_TEST (test_results_go_on_without_anyone_at_src)
{
  gchar *line = g_strdup_printf ("testmeasure backend=%s", backends[__i__]);
  Stage s = stage_new (line, "sink", "results");

  for (guint i = 0; i < 10; i++)
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_OK);
  for (guint i = 0; i < 10; i++)
    check_line (&s, check_pull (s.h), i, i, i == 0);
  stage_free (&s);
  g_free (line);
}
GST_END_TEST;

GST_START_TEST (test_frames_go_on_without_anyone_at_results)
{
  Stage s = stage_new ("testmeasure name=m", "sink", "src");
  GstPad *results = gst_element_request_pad_simple (s.element, "results");

  for (guint i = 0; i < 10; i++) {
    GstBuffer *noise = check_noise (&s.info, i), *out;
    const GstStructure *result;
    guint64 frame;

    check_push (s.h, gst_buffer_ref (noise), GST_FLOW_OK);
    out = check_pull (s.h);
    check_same_pixels (out, noise, &s.info);
    result = gst_imaging_results_get (out, "m");
    fail_unless (result && gst_structure_get_uint64 (result, "frame", &frame));
    fail_unless_equals_uint64 (frame, i);
    gst_buffer_unref (out);
    gst_buffer_unref (noise);
  }
  gst_element_release_request_pad (s.element, results);
  gst_object_unref (results);
  stage_free (&s);
}
GST_END_TEST;

GST_START_TEST (test_nobody_at_all_stops_upstream)
{
  Stage s = stage_new ("testmeasure", "sink", NULL);
  GstPad *results;

  check_push (s.h, check_noise (&s.info, 0), GST_FLOW_NOT_LINKED);
  results = gst_element_request_pad_simple (s.element, "results");
  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_NOT_LINKED);
  gst_element_release_request_pad (s.element, results);
  gst_object_unref (results);
  stage_free (&s);
}
GST_END_TEST;

GST_START_TEST (test_there_is_one_results_pad)
{
  GstElement *element = gst_element_factory_make ("testmeasure", NULL);
  GstPad *pad = gst_element_request_pad_simple (element, "results");

  gst_object_ref_sink (element);
  fail_unless (pad != NULL);
  fail_unless (gst_element_request_pad (element,
                   gst_element_get_pad_template (element, "results"), NULL,
                   NULL) == NULL);
  gst_element_release_request_pad (element, pad);
  gst_object_unref (pad);
  pad = gst_element_request_pad_simple (element, "results");
  fail_unless (pad != NULL);
  gst_object_unref (pad); /* not released: the element does so */
  gst_object_unref (element);
}
GST_END_TEST;

typedef struct {
  GstElement *element;
  gint n_ready; /* atomic */
} Request;

/* With the other thread, at the same time as far as may be. */
static gpointer
request_results (gpointer data)
{
  Request *r = data;
  GstPadTemplate *template =
      gst_element_get_pad_template (r->element, "results");

  g_atomic_int_inc (&r->n_ready);
  while (g_atomic_int_get (&r->n_ready) < 2)
    g_thread_yield ();
  return gst_element_request_pad (r->element, template, NULL, NULL);
}

GST_START_TEST (test_two_threads_that_want_the_results_pad_get_one)
{
  GstElement *element = gst_element_factory_make ("testmeasure", NULL);

  gst_object_ref_sink (element);
  for (guint i = 0; i < 100; i++) {
    Request r = {.element = element};
    GThread *thread = g_thread_new ("other", request_results, &r);
    GstPad *mine = request_results (&r);
    GstPad *other = g_thread_join (thread);
    GstPad *pad = mine ? mine : other;

    fail_unless ((mine == NULL) != (other == NULL));
    gst_element_release_request_pad (element, pad);
    gst_object_unref (pad);
  }
  gst_object_unref (element);
}
GST_END_TEST;

static void
assert_next_event (GstHarness *h, GstEventType type)
{
  GstEvent *event = gst_harness_try_pull_event (h);

  fail_unless (event != NULL, "no %s", gst_event_type_get_name (type));
  fail_unless_equals_string (
      GST_EVENT_TYPE_NAME (event), gst_event_type_get_name (type));
  gst_event_unref (event);
}

GST_START_TEST (test_results_have_the_events_of_a_stream)
{
  Stage s = stage_new ("testmeasure", "sink", "results");
  GstSegment segment;
  GstCaps *caps;

  check_push (s.h, check_noise (&s.info, 0), GST_FLOW_OK);
  assert_next_event (s.h, GST_EVENT_STREAM_START);
  assert_next_event (s.h, GST_EVENT_CAPS);
  assert_next_event (s.h, GST_EVENT_SEGMENT);
  caps = gst_pad_get_current_caps (s.h->sinkpad);
  fail_unless (
      gst_structure_has_name (gst_caps_get_structure (caps, 0), "text/csv"));
  gst_caps_unref (caps);

  gst_harness_push_event (s.h, gst_event_new_flush_start ());
  gst_harness_push_event (s.h, gst_event_new_flush_stop (TRUE));
  assert_next_event (s.h, GST_EVENT_FLUSH_START);
  assert_next_event (s.h, GST_EVENT_FLUSH_STOP);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.start = 7;
  gst_harness_push_event (s.h, gst_event_new_segment (&segment));
  /* a gap is no data and needs the segment all the same */
  gst_harness_push_event (s.h, gst_event_new_gap (7, 1));
  assert_next_event (s.h, GST_EVENT_SEGMENT);
  assert_next_event (s.h, GST_EVENT_GAP);
  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
  gst_harness_push_event (s.h, gst_event_new_eos ());
  assert_next_event (s.h, GST_EVENT_EOS);
  fail_unless_equals_int (gst_harness_buffers_received (s.h), 2);
  stage_free (&s);
}
GST_END_TEST;

GST_START_TEST (test_eos_without_a_frame_ends_both)
{
  Stage s = stage_new ("testmeasure", "sink", "results");

  gst_harness_push_event (s.h, gst_event_new_eos ());
  assert_next_event (s.h, GST_EVENT_STREAM_START);
  assert_next_event (s.h, GST_EVENT_CAPS);
  assert_next_event (s.h, GST_EVENT_SEGMENT);
  assert_next_event (s.h, GST_EVENT_EOS);
  stage_free (&s);
}
GST_END_TEST;

GST_START_TEST (test_eos_without_a_segment_is_no_critical)
{
  GstElement *element = gst_element_factory_make ("testmeasure", NULL);
  GstPad *sink, *results;

  gst_object_ref_sink (element);
  results = gst_element_request_pad_simple (element, "results");
  sink = gst_element_get_static_pad (element, "sink");
  gst_element_set_state (element, GST_STATE_PLAYING);
  gst_pad_send_event (sink, gst_event_new_stream_start ("x"));
  gst_pad_send_event (sink, gst_event_new_eos ());
  gst_element_set_state (element, GST_STATE_NULL);
  gst_object_unref (sink);
  gst_object_unref (results);
  gst_object_unref (element);
}
GST_END_TEST;

GST_START_TEST (test_a_stream_after_eos_has_results_again)
{
  Stage s = stage_new ("testmeasure", "sink", "results");
  GstSegment segment;

  check_push (s.h, check_noise (&s.info, 0), GST_FLOW_OK);
  gst_harness_push_event (s.h, gst_event_new_eos ());
  gst_buffer_unref (check_pull (s.h));
  gst_harness_push_event (s.h, gst_event_new_stream_start ("second"));
  stage_caps (&s, "GRAY8", 643, 3);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (s.h, gst_event_new_segment (&segment));
  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
  check_line (&s, check_pull (s.h), 1, 1, FALSE);
  stage_free (&s);
}
GST_END_TEST;

GST_START_TEST (test_results_come_again_after_a_restart)
{
  GstElement *pipeline = launch (
      "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width=33,height=5 "
      "! testmeasure name=m ! fakesink sync=false m.results ! "
      "queue ! fakesink name=out sync=false signal-handoffs=true");

  for (guint i = 0; i < 5; i++) {
    check_play (pipeline);
    fail_unless_equals_uint64 (stat_of (pipeline, "m", "frames"), 3);
    gst_element_set_state (pipeline, i % 2 ? GST_STATE_READY : GST_STATE_NULL);
  }
  dispose (pipeline);
}
GST_END_TEST;

GST_START_TEST (test_the_peer_of_results_chooses_tensors)
{
  Stage s = stage_new ("testmeasure", "sink", NULL);
  GstCaps *caps, *expected;
  GstBuffer *tensor;

  gst_harness_set_sink_caps_str (s.h, "other/tensors");
  gst_harness_add_element_src_pad (
      s.h, gst_element_request_pad_simple (s.element, "results"));
  for (guint i = 0; i < 3; i++) {
    GstBuffer *noise = check_noise (&s.info, i);
    gfloat numbers[2];
    guint8 bytes[2];

    gst_buffer_extract (noise, 0, bytes, 2);
    check_push (s.h, noise, GST_FLOW_OK);
    tensor = check_pull (s.h);
    fail_unless_equals_uint64 (gst_buffer_get_size (tensor), sizeof (numbers));
    gst_buffer_extract (tensor, 0, numbers, sizeof (numbers));
    fail_unless (numbers[0] == bytes[0] && numbers[1] == bytes[1]);
    fail_unless_equals_uint64 (GST_BUFFER_PTS (tensor), i * 40 * GST_MSECOND);
    gst_buffer_unref (tensor);
  }
  caps = gst_pad_get_current_caps (s.h->sinkpad);
  expected = gst_caps_from_string (
      "other/tensors,format=(string)static,num_tensors=(int)1,"
      "types=(string)float32,dimensions=(string)2:1:1:1,framerate=25/1");
  fail_unless (gst_caps_is_equal (caps, expected));
  gst_caps_unref (caps);
  gst_caps_unref (expected);
  stage_free (&s);
}
GST_END_TEST;

/* Nothing waits: neither the pipeline for a sink that never gets caps, nor the
 * sink of the frames for that one. */
GST_START_TEST (test_a_peer_that_takes_no_results_is_one_error)
{
  GstElement *pipeline = launch (
      "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width=33,height=5 "
      "! testmeasure name=m ! fakesink m.results ! queue ! "
      "other/tensors,dimensions=(string)5:5 ! fakesink");
  GstBus *bus = gst_element_get_bus (pipeline);
  GstElement *m = gst_bin_get_by_name (GST_BIN (pipeline), "m");
  GstMessage *message;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = check_message (bus, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (GST_MESSAGE_SRC (message) == GST_OBJECT (m));
  gst_message_ref (message);
  check_message_says (message, GST_CORE_ERROR, GST_CORE_ERROR_NEGOTIATION,
      "dimensions=(string)2:1:1:1");
  check_message_says (message, GST_CORE_ERROR, GST_CORE_ERROR_NEGOTIATION,
      "dimensions=(string)5:5");
  gst_object_unref (m);
  gst_object_unref (bus);
  dispose (pipeline);
}
GST_END_TEST;

GST_START_TEST (test_refused_results_are_said_once_and_may_be_mended)
{
  Stage s = stage_new ("testmeasure", "sink", NULL);
  GstElement *filter = gst_element_factory_make ("capsfilter", NULL);
  GstPad *results = gst_element_request_pad_simple (s.element, "results");
  GstPad *sink = gst_element_get_static_pad (filter, "sink");

  gst_util_set_object_arg (
      G_OBJECT (filter), "caps", "other/tensors,dimensions=(string)5:5");
  gst_element_set_state (filter, GST_STATE_PLAYING);
  gst_harness_add_element_src_pad (
      s.h, gst_element_get_static_pad (filter, "src"));
  fail_unless (gst_pad_link (results, sink) == GST_PAD_LINK_OK);
  for (guint i = 0; i < 3; i++)
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_ERROR);
  check_message_says (check_message (s.bus, GST_MESSAGE_ERROR), GST_CORE_ERROR,
      GST_CORE_ERROR_NEGOTIATION,
      "what is linked to the pad \"results\" takes");
  fail_unless_equals_int (check_count_messages (s.bus, GST_MESSAGE_ERROR), 0);

  gst_util_set_object_arg (
      G_OBJECT (filter), "caps", "other/tensors,dimensions=(string)2:1:1:1");
  check_push (s.h, check_noise (&s.info, 3), GST_FLOW_OK);
  gst_buffer_unref (check_pull (s.h));
  gst_element_set_state (filter, GST_STATE_NULL);
  gst_pad_unlink (results, sink);
  gst_object_unref (sink);
  gst_object_unref (results);
  stage_free (&s);
  gst_object_unref (filter);
}
GST_END_TEST;

static GstPadProbeReturn
note_order (GstPad *pad, GstPadProbeInfo *info, gpointer order)
{
  g_string_append_c (order, GST_PAD_NAME (pad)[0]);
  return GST_PAD_PROBE_OK;
}

GST_START_TEST (test_results_come_before_their_frame)
{
  Stage s = stage_new ("testmeasure", "sink", "results");
  GstHarness *frames = gst_harness_new_with_element (s.element, NULL, "src");
  GString *order = g_string_new (NULL);
  const gchar *names[] = {"src", "results"};

  for (guint i = 0; i < 2; i++) {
    GstPad *pad = gst_element_get_static_pad (s.element, names[i]);

    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, note_order, order, NULL);
    gst_object_unref (pad);
  }
  for (guint i = 0; i < 3; i++)
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_OK);
  fail_unless_equals_string (order->str, "rsrsrs");
  g_string_free (order, TRUE);
  gst_harness_teardown (frames);
  stage_free (&s);
}
GST_END_TEST;

/* Waits until @element has processed a frame more. */
static void
wait_for_a_frame (GstElement *element)
{
  gint64 end = g_get_monotonic_time () + GST_TIME_AS_USECONDS (CHECK_TIMEOUT);
  guint64 before = check_stat (element, "frames");

  while (check_stat (element, "frames") == before) {
    fail_unless (g_get_monotonic_time () < end, "frames have stopped");
    g_usleep (50);
  }
}

/* Somebody looks in for a while and goes, again and again; frames flow on. */
GST_START_TEST (test_results_may_be_requested_and_released_while_playing)
{
  GstElement *pipeline =
      launch ("videotestsrc ! video/x-raw,format=GRAY8,width=16,height=4 ! "
              "testmeasure name=m ! fakesink sync=false");
  GstElement *m = gst_bin_get_by_name (GST_BIN (pipeline), "m");
  GstBus *bus = gst_element_get_bus (pipeline);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint n = 0; n < 500; n++) {
    GstElement *sink = gst_element_factory_make ("fakesink", NULL);
    GstPad *pad = gst_element_request_pad_simple (m, "results"), *peer;

    g_object_set (sink, "async", FALSE, "sync", FALSE, NULL);
    gst_bin_add (GST_BIN (pipeline), sink);
    gst_element_sync_state_with_parent (sink);
    peer = gst_element_get_static_pad (sink, "sink");
    fail_unless_equals_int (gst_pad_link (pad, peer), GST_PAD_LINK_OK);
    if (n % 3)
      wait_for_a_frame (m);
    if (n % 2)
      gst_pad_unlink (pad, peer);
    gst_element_release_request_pad (m, pad);
    gst_object_unref (pad);
    gst_object_unref (peer);
    /* the pipeline may still be on its way to PLAYING */
    gst_element_set_locked_state (sink, TRUE);
    gst_element_set_state (sink, GST_STATE_NULL);
    gst_bin_remove (GST_BIN (pipeline), sink);
  }
  wait_for_a_frame (m);
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ERROR), 0);
  gst_object_unref (bus);
  gst_object_unref (m);
  dispose (pipeline);
}
GST_END_TEST;

static GstEvent *
next_event (GstHarness *h, GstEventType type)
{
  GstEvent *event = gst_harness_try_pull_event (h);

  while (event && GST_EVENT_TYPE (event) != type) {
    gst_event_unref (event);
    event = gst_harness_try_pull_event (h);
  }
  fail_unless (event != NULL, "no %s", gst_event_type_get_name (type));
  return event;
}

/* Sinks of one pipeline whose streams are of several groups, or of none, tell
 * the application of a stream each. */
GST_START_TEST (test_results_are_of_the_group_of_their_frames)
{
  Stage s = stage_new ("testmeasure", "sink", "results");
  GstEvent *start = gst_event_new_stream_start ("grouped"), *event;
  guint32 seqnum = gst_event_get_seqnum (start);
  GstSegment segment;
  guint group = 0;

  gst_event_set_group_id (start, 77);
  gst_harness_push_event (s.h, start);
  stage_caps (&s, "GRAY8", 641, 3);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  start = gst_event_new_segment (&segment);
  gst_event_set_seqnum (start, seqnum + 1000);
  gst_harness_push_event (s.h, start);
  check_push (s.h, check_noise (&s.info, 0), GST_FLOW_OK);

  event = next_event (s.h, GST_EVENT_STREAM_START);
  fail_unless (gst_event_parse_group_id (event, &group));
  fail_unless_equals_int (group, 77);
  fail_unless_equals_int (gst_event_get_seqnum (event), seqnum);
  gst_event_unref (event);
  event = next_event (s.h, GST_EVENT_SEGMENT);
  fail_unless_equals_int (gst_event_get_seqnum (event), seqnum + 1000);
  gst_event_unref (event);
  stage_free (&s);
}
GST_END_TEST;

static void
push_late_segment (GstElement *element, GstPad *pad, gpointer stage)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.start = segment.time = 3600 * GST_SECOND;
  gst_harness_push_event (
      ((Stage *) stage)->h, gst_event_new_segment (&segment));
}

GST_START_TEST (test_a_segment_that_comes_with_the_pad_is_in_force)
{
  Stage s = stage_new ("testmeasure", "sink", "src");
  const GstSegment *segment;
  GstHarness *results;
  GstBuffer *frame;
  GstEvent *event;

  g_signal_connect (s.element, "pad-added", G_CALLBACK (push_late_segment), &s);
  results = gst_harness_new_with_element (s.element, NULL, "results");
  frame = check_noise (&s.info, 0);
  GST_BUFFER_PTS (frame) = 3600 * GST_SECOND;
  check_push (s.h, frame, GST_FLOW_OK);
  event = next_event (results, GST_EVENT_SEGMENT);
  gst_event_parse_segment (event, &segment);
  fail_unless_equals_uint64 (segment->start, 3600 * GST_SECOND);
  gst_event_unref (event);
  gst_harness_teardown (results);
  stage_free (&s);
}
GST_END_TEST;

/* Where a stream begins with a gap, a sink has to preroll with it. */
GST_START_TEST (test_a_gap_before_the_first_frame_comes_through)
{
  Stage s = stage_new ("testmeasure", "sink", "results");

  gst_harness_push_event (s.h, gst_event_new_gap (0, 40 * GST_MSECOND));
  assert_next_event (s.h, GST_EVENT_STREAM_START);
  assert_next_event (s.h, GST_EVENT_CAPS);
  assert_next_event (s.h, GST_EVENT_SEGMENT);
  assert_next_event (s.h, GST_EVENT_GAP);
  check_push (s.h, check_noise (&s.info, 0), GST_FLOW_OK);
  check_line (&s, check_pull (s.h), 0, 0, TRUE);
  stage_free (&s);
}
GST_END_TEST;

GST_START_TEST (test_a_new_reader_gets_the_line_of_names)
{
  Stage s = stage_new ("testmeasure", "sink", "results");
  GstPad *results = gst_element_get_static_pad (s.element, "results");

  for (guint i = 0; i < 4; i++) {
    if (i == 2) {
      gst_pad_unlink (results, s.h->sinkpad);
      check_push (s.h, check_noise (&s.info, 9), GST_FLOW_NOT_LINKED);
      fail_unless (gst_pad_link (results, s.h->sinkpad) == GST_PAD_LINK_OK);
    }
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_OK);
    check_line (&s, check_pull (s.h), i < 2 ? i : i + 1, i, i % 2 == 0);
  }
  gst_object_unref (results);
  stage_free (&s);
}
GST_END_TEST;

GST_START_TEST (test_columns_that_change_are_named_again)
{
  Stage s = stage_new ("testmeasure", "sink", "results");
  const gboolean others[] = {FALSE, TRUE, TRUE, FALSE};
  const gchar *starts[] = {"frame,pts,first,second\n0,",
      "frame,pts,one,two\n1,", "2,", "frame,pts,first,second\n3,"};

  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    GstBuffer *line;
    gchar *text;

    seen.has_other_fields = others[i];
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_OK);
    line = check_pull (s.h);
    text = string_of (line);
    fail_unless (g_str_has_prefix (text, starts[i]), "%s", text);
    g_free (text);
    gst_buffer_unref (line);
  }
  stage_free (&s);
}
GST_END_TEST;

/* --- allocation ----------------------------------------------------------- */

GST_START_TEST (test_a_pinned_pool_is_offered_for_the_device_alone)
{
  const gchar *elements[] = {"testinvert", "testmeasure"};

  for (guint i = 0; i < 2 * G_N_ELEMENTS (elements); i++) {
    gchar *line =
        g_strdup_printf ("%s backend=%s", elements[i % 2], backends[i / 2]);
    Stage s = stage_new (line, "sink", "src");
    GstQuery *query = query_allocation (&s);
    guint size = 0;
    GstBufferPool *pool = offered_pool (query, &size);

    fail_unless_equals_int (pool != NULL, i / 2);
    if (pool) {
      GstBuffer *buffer = NULL;

      fail_unless_equals_int (size, s.info.size);
      gst_buffer_pool_set_active (pool, TRUE);
      fail_unless_equals_int (
          gst_buffer_pool_acquire_buffer (pool, &buffer, NULL), GST_FLOW_OK);
      fail_unless (gst_is_imaging_memory (gst_buffer_peek_memory (buffer, 0)));
      fail_if (
          gst_imaging_memory_is_on_device (gst_buffer_peek_memory (buffer, 0)));
      gst_buffer_unref (buffer);
      gst_buffer_pool_set_active (pool, FALSE);
      gst_object_unref (pool);
    }
    gst_query_unref (query);
    stage_free (&s);
    g_free (line);
  }
}
GST_END_TEST;

GST_START_TEST (test_rows_of_any_length_are_welcome_where_frames_are_new)
{
  for (guint i = 0; i < G_N_ELEMENTS (backends); i++) {
    gchar *line = g_strdup_printf ("testinvert backend=%s", backends[i]);
    Stage s = stage_new (line, "sink", "src");
    GstQuery *query = query_allocation (&s);

    fail_unless (offers_video_meta (query));
    gst_query_unref (query);
    stage_free (&s);
    g_free (line);
  }
}
GST_END_TEST;

/* A frame that is only measured goes on as it came: what downstream does not
 * understand must not come. */
GST_START_TEST (test_a_measuring_element_speaks_for_downstream)
{
  Stage s = stage_new ("testmeasure", "sink", "src");
  GstQuery *query = query_allocation (&s);

  fail_if (offers_video_meta (query));
  gst_query_unref (query);
  gst_harness_add_propose_allocation_meta (s.h, GST_VIDEO_META_API_TYPE, NULL);
  query = query_allocation (&s);
  fail_unless (offers_video_meta (query));
  gst_query_unref (query);
  stage_free (&s);

  /* nobody is downstream */
  s = stage_new ("testmeasure", "sink", "results");
  query = query_allocation (&s);
  fail_unless (offers_video_meta (query));
  gst_query_unref (query);
  stage_free (&s);
}
GST_END_TEST;

GST_START_TEST (test_frames_in_the_offered_pool_are_not_copied)
{
  const gchar *elements[] = {"testinvert", "testmeasure"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    gchar *line = g_strdup_printf ("%s backend=cuda", elements[i]);
    Stage s = stage_new (line, "sink", "src");
    GstQuery *query = query_allocation (&s);
    guint size;
    GstBufferPool *pool = offered_pool (query, &size);

    gst_buffer_pool_set_active (pool, TRUE);
    for (guint n = 0; n < 5; n++) {
      GstBuffer *noise = check_noise (&s.info, n), *in = NULL, *out;
      GstMapInfo map;

      gst_buffer_pool_acquire_buffer (pool, &in, NULL);
      fail_unless (gst_buffer_map (noise, &map, GST_MAP_READ));
      gst_buffer_fill (in, 0, map.data, map.size);
      gst_buffer_unmap (noise, &map);
      check_push (s.h, in, GST_FLOW_OK);
      out = check_pull (s.h);
      check_same_pixels (out, noise, &s.info);
      gst_buffer_unref (out);
      gst_buffer_unref (noise);
    }
    fail_unless_equals_uint64 (check_stat (s.element, "bytes-copied"), 0);
    /* one kernel wants frames on the device, the other reads over the bus */
    fail_unless_equals_uint64 (
        check_stat (s.element, "bytes-uploaded"), i == 0 ? 5 * s.info.size : 0);
    check_active (s.element, "cuda", i == 0 ? "device" : "pinned");
    gst_buffer_pool_set_active (pool, FALSE);
    gst_object_unref (pool);
    gst_query_unref (query);
    stage_free (&s);
    g_free (line);
  }
}
GST_END_TEST;

GST_START_TEST (test_frames_come_out_on_the_device_and_anyone_can_map_them)
{
  Stage s = stage_new ("testinvert backend=cuda", "sink", "src");
  GstBuffer *out;

  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
  out = check_pull (s.h);
  fail_unless (
      gst_imaging_memory_is_on_device (gst_buffer_peek_memory (out, 0)));
  fail_unless_equals_uint64 (check_stat (s.element, "bytes-downloaded"), 0);
  check_made (&s, out, 1, IMK_BACKEND_CUDA);
  fail_unless_equals_uint64 (
      check_stat (s.element, "bytes-downloaded"), s.info.size);
  gst_buffer_unref (out);
  stage_free (&s);
}
GST_END_TEST;

/* Noise into lapsharpen on the CPU: what every other way must give. */
static GstBuffer *
sharpened_on_cpu (const GstVideoInfo *info, guint seed, guint times)
{
  GstBuffer *buffer = check_noise (info, seed);

  for (guint i = 0; i < times; i++) {
    Stage s = stage_new ("lapsharpen backend=cpu amount=0.75", "sink", "src");

    stage_caps (&s, info->finfo->name, info->width, info->height);
    check_push (s.h, buffer, GST_FLOW_OK);
    buffer = check_pull (s.h);
    stage_free (&s);
  }
  return buffer;
}

/* The one page-locked block is that which ordinary frames are copied into. */
GST_START_TEST (test_frames_of_an_incoherent_gpu_are_never_read_uncached)
{
  GstBuffer *expected, *out;
  Stage s;

  g_setenv ("IMK_MOCK_INTEGRATED", "1", TRUE);
  g_setenv ("IMK_MOCK_COHERENT", "0", TRUE);
  s = stage_new ("lapsharpen backend=cuda amount=0.75", "sink", "src");
  expected = sharpened_on_cpu (&s.info, 1, 1);
  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
  out = check_pull (s.h);
  fail_unless_equals_int (check_n_page_locked (), 1);
  check_same_pixels (out, expected, &s.info);
  fail_unless_equals_int (check_n_page_locked (), 1);
  fail_unless_equals_uint64 (check_stat (s.element, "bytes-uploaded"), 0);
  gst_buffer_unref (out);
  gst_buffer_unref (expected);
  stage_free (&s);
  g_unsetenv ("IMK_MOCK_INTEGRATED");
  g_unsetenv ("IMK_MOCK_COHERENT");
}
GST_END_TEST;

GST_START_TEST (test_between_our_elements_frames_stay_on_the_device)
{
  const gchar *formats[] = {"GRAY8", "GRAY16_LE", "RGBA"};
  const gchar *between[] = {"!", "! queue !", "! identity !",
      "! tee name=t ! queue ! fakesink async=false t. ! queue !",
      "! videocrop !"};

  for (guint b = 0; b < G_N_ELEMENTS (between); b++)
    for (guint f = 0; f < G_N_ELEMENTS (formats); f++) {
      gchar *line =
          g_strdup_printf ("lapsharpen name=one backend=cuda amount=0.75 %s "
                           "lapsharpen name=two backend=%s amount=0.75",
              between[b], f % 2 ? "auto" : "cuda");
      Stage s = {NULL, gst_parse_bin_from_description (line, TRUE, NULL),
          gst_bus_new ()};
      GstBuffer *out, *expected;

      fail_unless (s.element != NULL, "%s", line);
      s.h = gst_harness_new_with_element (s.element, "sink", "src");
      stage_caps (&s, formats[f], 641, 7);
      for (guint n = 0; n < 4; n++) {
        check_push (s.h, check_noise (&s.info, n), GST_FLOW_OK);
        out = check_pull (s.h);
        expected = sharpened_on_cpu (&s.info, n, 2);
        check_same_pixels (out, expected, &s.info);
        gst_buffer_unref (out);
        gst_buffer_unref (expected);
      }
      fail_unless_equals_uint64 (
          stat_of (s.element, "one", "bytes-downloaded"), 0);
      fail_unless_equals_uint64 (
          stat_of (s.element, "two", "bytes-uploaded"), 0);
      fail_unless_equals_uint64 (stat_of (s.element, "two", "bytes-copied"), 0);
      fail_unless_equals_uint64 (stat_of (s.element, "two", "frames"), 4);
      fail_unless_equals_uint64 (
          stat_of (s.element, "two", "bytes-downloaded"), 4 * s.info.size);
      gst_object_unref (s.element);
      stage_free (&s);
      g_free (line);
    }
}
GST_END_TEST;

GST_START_TEST (test_a_branch_that_writes_leaves_the_other_as_it_was)
{
  Stage s = stage_new ("testinvert backend=cuda", "sink", "src");
  GstBuffer *out, *branch;
  GstMapInfo map;

  check_push (s.h, check_noise (&s.info, 1), GST_FLOW_OK);
  out = check_pull (s.h);
  /* what a tee and an in-place element do */
  branch = gst_buffer_make_writable (gst_buffer_ref (out));
  fail_unless (gst_buffer_map (branch, &map, GST_MAP_READWRITE));
  memset (map.data, 0, map.size);
  gst_buffer_unmap (branch, &map);
  gst_buffer_unref (branch);
  check_made (&s, out, 1, IMK_BACKEND_CUDA);
  gst_buffer_unref (out);
  stage_free (&s);
}
GST_END_TEST;

GST_START_TEST (test_auto_follows_frames_to_the_device)
{
  const gchar *elements[] = {"testinvert", "testmeasure"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    Stage s = stage_new (elements[i], "sink", "src");
    GstBuffer *noise, *out;

    check_push (s.h, check_noise (&s.info, 0), GST_FLOW_OK);
    gst_buffer_unref (check_pull (s.h));
    check_active (s.element, "cpu", "system");
    for (guint n = 1; n < 4; n++) {
      check_push (s.h, noise_on_device (&s.info, n, 0), GST_FLOW_OK);
      out = check_pull (s.h);
      noise = check_noise (&s.info, n);
      fail_unless (
          gst_imaging_memory_is_on_device (gst_buffer_peek_memory (out, 0)));
      check_same_pixels (out, noise, &s.info);
      gst_buffer_unref (noise);
      gst_buffer_unref (out);
      check_active (s.element, "cuda", "device");
    }
    fail_unless_equals_uint64 (check_stat (s.element, "bytes-copied"), 0);
    fail_unless_equals_uint64 (check_stat (s.element, "bytes-uploaded"), 0);
    fail_unless_equals_int (
        check_count_messages (s.bus, GST_MESSAGE_WARNING), 0);
    stage_free (&s);
  }
}
GST_END_TEST;

GST_START_TEST (test_auto_takes_the_device_that_has_the_frames)
{
  Stage s = stage_new ("testinvert", "sink", "src");
  GstBuffer *out;

  check_push (s.h, noise_on_device (&s.info, 1, 1), GST_FLOW_OK);
  out = check_pull (s.h);
  check_made (&s, out, 1, IMK_BACKEND_CUDA);
  fail_unless_equals_int (
      gst_imaging_context_device_id (
          gst_imaging_memory_context (gst_buffer_peek_memory (out, 0))),
      1);
  fail_unless_equals_uint64 (check_stat (s.element, "bytes-copied"), 0);
  gst_buffer_unref (out);
  stage_free (&s);
}
GST_END_TEST;

GST_START_TEST (test_frames_of_another_device_come_through_the_host)
{
  Stage s =
      stage_new ("testinvert backend=cuda cuda-device-id=0", "sink", "src");
  GstBuffer *out;

  check_push (s.h, noise_on_device (&s.info, 1, 1), GST_FLOW_OK);
  out = check_pull (s.h);
  check_made (&s, out, 1, IMK_BACKEND_CUDA);
  fail_unless_equals_uint64 (
      check_stat (s.element, "bytes-copied"), s.info.size);
  gst_buffer_unref (out);
  stage_free (&s);
}
GST_END_TEST;

GST_START_TEST (test_auto_takes_cuda_where_it_is_faster)
{
  Stage s = {NULL};

  seen.prefers_cuda = TRUE;
  s = stage_new ("testinvert", "sink", "src");
  push_and_check (&s, 1, IMK_BACKEND_CUDA);
  stage_free (&s);
  s = stage_new ("testinvert backend=cpu", "sink", "src");
  push_and_check (&s, 1, IMK_BACKEND_CPU);
  stage_free (&s);
}
GST_END_TEST;

/* --- failures ------------------------------------------------------------- */

GST_START_TEST (test_auto_goes_on_with_the_cpu_and_says_so_once)
{
  Stage s = {NULL};

  seen.prefers_cuda = TRUE;
  s = stage_new ("testinvert", "sink", "src");
  push_and_check (&s, 0, IMK_BACKEND_CUDA);
  check_device ()->inject_failure (1, TRUE);
  for (guint i = 1; i < 5; i++)
    push_and_check (&s, i, IMK_BACKEND_CPU);
  check_message_says (
      check_message (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR),
      GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED, "the CPU goes on");
  /* caps may change: what is given up stays so */
  stage_caps (&s, "RGBA", 5, 3);
  push_and_check (&s, 5, IMK_BACKEND_CPU);
  fail_unless_equals_int (
      check_count_messages (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR), 0);
  fail_unless_equals_uint64 (check_stat (s.element, "frames"), 6);
  fail_unless_equals_uint64 (check_stat (s.element, "lost-frames"), 0);
  check_active (s.element, "cpu", "system");
  check_device ()->inject_failure (0, FALSE);
  stage_free (&s);
}
GST_END_TEST;

/* Upstream writes into page-locked memory of ours, which has no more of it. */
GST_START_TEST (test_upstream_goes_on_in_our_pool_without_the_device)
{
  Stage s = {NULL};
  GstBufferPool *pool;
  GstQuery *query;
  guint size;

  seen.prefers_cuda = TRUE;
  s = stage_new ("testinvert", "sink", "src");
  push_and_check (&s, 0, IMK_BACKEND_CUDA);
  query = query_allocation (&s);
  pool = offered_pool (query, &size);
  fail_unless (pool && gst_buffer_pool_set_active (pool, TRUE));
  check_device ()->inject_failure (1, TRUE);
  for (guint i = 1; i < 4; i++) {
    GstBuffer *noise = check_noise (&s.info, i), *buffer = NULL, *out;
    GstMapInfo map;

    fail_unless_equals_int (
        gst_buffer_pool_acquire_buffer (pool, &buffer, NULL), GST_FLOW_OK);
    fail_unless (gst_buffer_map (buffer, &map, GST_MAP_WRITE));
    gst_buffer_extract (noise, 0, map.data, map.size);
    gst_buffer_unmap (buffer, &map);
    gst_buffer_copy_into (buffer, noise, GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
    gst_buffer_unref (noise);
    check_push (s.h, buffer, GST_FLOW_OK);
    out = check_pull (s.h);
    check_made (&s, out, i, IMK_BACKEND_CPU);
    gst_buffer_unref (out);
  }
  check_device ()->inject_failure (0, FALSE);
  gst_query_unref (query);
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
  stage_free (&s);
}
GST_END_TEST;

GST_START_TEST (test_a_frame_of_a_working_device_is_not_lost_with_the_kernel)
{
  Stage s = stage_new ("testinvert", "sink", "src");
  GstBuffer *out;

  seen.process_fails = IMK_ERROR_MEMORY;
  for (guint i = 0; i < 3; i++) {
    check_push (s.h, noise_on_device (&s.info, i, 0), GST_FLOW_OK);
    out = check_pull (s.h);
    check_made (&s, out, i, IMK_BACKEND_CPU);
    gst_buffer_unref (out);
  }
  check_message_says (
      check_message (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR),
      GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED, "told to fail");
  fail_unless_equals_int (
      check_count_messages (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR), 0);
  fail_unless_equals_uint64 (check_stat (s.element, "lost-frames"), 0);
  stage_free (&s);
}
GST_END_TEST;

/* A queue may hold many of them. */
GST_START_TEST (test_frames_that_were_only_on_a_lost_device_are_counted_as_lost)
{
  const gchar *elements[] = {"testinvert", "testmeasure"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    Stage s = stage_new (elements[i], "sink", "src");
    GstBuffer *queue[3];

    check_push (s.h, noise_on_device (&s.info, 0, 0), GST_FLOW_OK);
    gst_buffer_unref (check_pull (s.h));
    for (guint n = 0; n < G_N_ELEMENTS (queue); n++)
      queue[n] = noise_on_device (&s.info, 1 + n, 0);
    check_device ()->inject_failure (1, TRUE);
    for (guint n = 0; n < G_N_ELEMENTS (queue); n++)
      check_push (s.h, queue[n], GST_FLOW_OK);
    fail_unless (gst_harness_try_pull (s.h) == NULL);
    check_message_says (
        check_message (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR),
        GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED, "is lost");
    check_push (s.h, check_noise (&s.info, 4), GST_FLOW_OK);
    gst_buffer_unref (check_pull (s.h));
    check_device ()->inject_failure (0, FALSE);
    fail_unless_equals_uint64 (check_stat (s.element, "lost-frames"), 3);
    fail_unless_equals_uint64 (check_stat (s.element, "frames"), 2);
    fail_unless_equals_int (
        check_count_messages (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR),
        0);
    stage_free (&s);
  }
}
GST_END_TEST;

GST_START_TEST (test_cuda_that_was_asked_for_fails_with_one_error)
{
  Stage s = stage_new ("testinvert backend=cuda", "sink", "src");

  push_and_check (&s, 0, IMK_BACKEND_CUDA);
  check_device ()->inject_failure (1, TRUE);
  for (guint i = 0; i < 3; i++)
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_ERROR);
  check_message_says (
      check_message (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR),
      GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED, "");
  fail_unless_equals_int (
      check_count_messages (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR), 0);
  check_device ()->inject_failure (0, FALSE);
  stage_free (&s);
}
GST_END_TEST;

/* Returns: whether no call failed. Whatever fails, and when: frames are right
 * or counted as lost, results come once for each, and it is said once. */
static gboolean
stream_with_failures (const gchar *launch, gulong nth, gboolean forever)
{
  const guint n_frames = 5;
  Stage s = {NULL};
  guint n_out = 0, n_results = 0, n_said;
  guint64 lost, frames;
  GstHarness *results = NULL;
  GstBuffer *out;

  check_device ()->inject_failure (nth, forever);
  s = stage_try (launch, "sink", "src");
  if (!s.h) {
    check_device ()->inject_failure (0, FALSE);
    fail_unless (strstr (launch, "backend=cuda") != NULL);
    fail_unless_equals_int (check_count_messages (s.bus, GST_MESSAGE_ERROR), 1);
    gst_object_unref (s.bus);
    return FALSE;
  }
  if (strstr (launch, "measure"))
    results = gst_harness_new_with_element (s.element, NULL, "results");
  for (guint i = 0; i < n_frames; i++)
    gst_harness_push (s.h, check_noise (&s.info, i));
  check_device ()->inject_failure (0, FALSE);
  while ((out = gst_harness_try_pull (s.h))) {
    gst_buffer_unref (out);
    n_out++;
  }
  while (results && (out = gst_harness_try_pull (results))) {
    gst_buffer_unref (out);
    n_results++;
  }
  lost = check_stat (s.element, "lost-frames");
  frames = check_stat (s.element, "frames");
  fail_unless_equals_uint64 (frames, n_out);
  if (results) {
    fail_unless_equals_int (n_results, n_out);
  }
  n_said =
      check_count_messages (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
  fail_unless (n_said <= 1, "call %lu: said %u times", nth, n_said);
  if (!strstr (launch, "backend=cuda")) {
    fail_unless_equals_uint64 (lost + n_out, n_frames);
  } else {
    fail_unless (n_out == n_frames || n_said == 1);
  }
  if (results)
    gst_harness_teardown (results);
  stage_free (&s);
  return n_said == 0;
}

static void
fail_each_call (const gchar *launch, gboolean forever)
{
  gulong nth = 1;

  /* that the device cannot be had is not said where it was not asked for */
  for (guint n_good = 0; n_good < 5; nth++) {
    fail_unless (nth < 500);
    n_good = stream_with_failures (launch, nth, forever) ? n_good + 1 : 0;
    fail_unless_equals_int (seen.n_opened, seen.n_closed);
    fail_unless_equals_int (check_n_live (), n_live_before);
  }
  fail_unless (nth > 20, "only %lu calls were made", nth);
}

GST_START_TEST (test_each_call_to_the_device_may_fail)
{
  const gchar *lines[] = {"testinvert", "testmeasurefast",
      "testinvert backend=cuda", "testmeasure backend=cuda"};

  seen.prefers_cuda = TRUE;
  fail_each_call (lines[__i__ / 2], __i__ % 2);
}
GST_END_TEST;

static void
check_refused (const gchar *launch, const gchar *words)
{
  GstElement *element = gst_parse_launch (launch, NULL);
  GstBus *bus = gst_bus_new ();

  gst_object_ref_sink (element);
  gst_element_set_bus (element, bus);
  for (guint i = 0; i < 3; i++) {
    fail_unless_equals_int (gst_element_set_state (element, GST_STATE_PAUSED),
        GST_STATE_CHANGE_FAILURE);
    check_message_says (check_message (bus, GST_MESSAGE_ERROR),
        GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, words);
    fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ERROR), 0);
    gst_element_set_state (element, GST_STATE_NULL);
  }
  gst_element_set_bus (element, NULL);
  gst_object_unref (bus);
  gst_object_unref (element);
}

GST_START_TEST (test_cuda_without_a_device_is_refused_at_the_start)
{
  g_setenv ("IMK_MOCK_DEVICES", "0", TRUE);
  check_refused ("testinvert backend=cuda", "No CUDA device");
  check_refused ("testmeasure backend=cuda", "backend=cpu");
  g_unsetenv ("IMK_MOCK_DEVICES");
}
GST_END_TEST;

GST_START_TEST (test_a_device_number_beyond_the_last_is_refused)
{
  check_refused (
      "testinvert backend=cuda cuda-device-id=7", "cuda-device-id is 7");
}
GST_END_TEST;

GST_START_TEST (test_auto_without_a_device_runs_on_the_cpu_and_is_silent)
{
  Stage s = {NULL};

  g_setenv ("IMK_MOCK_DEVICES", "0", TRUE);
  seen.prefers_cuda = TRUE;
  s = stage_new ("testinvert", "sink", "src");
  for (guint i = 0; i < 3; i++)
    push_and_check (&s, i, IMK_BACKEND_CPU);
  fail_unless_equals_int (
      check_count_messages (s.bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR), 0);
  stage_free (&s);
  g_unsetenv ("IMK_MOCK_DEVICES");
}
GST_END_TEST;

/* --- properties ----------------------------------------------------------- */

typedef struct {
  GstElement *element;
  gint stop;
} Storm;

static gpointer
set_and_get (gpointer data)
{
  Storm *storm = data;

  for (guint i = 0; !g_atomic_int_get (&storm->stop); i++) {
    GstStructure *stats = NULL;
    gchar *backend = NULL, *memory = NULL;

    g_object_set (storm->element, "amount", i % 3 * 0.75, "n-threads", i % 4,
        "border", i % 5, NULL);
    g_object_get (storm->element, "stats", &stats, "active-backend", &backend,
        "active-memory", &memory, NULL);
    gst_structure_free (stats);
    g_free (backend);
    g_free (memory);
  }
  return NULL;
}

GST_START_TEST (test_a_storm_of_properties_does_no_harm)
{
  gchar *line = g_strdup_printf ("lapsharpen backend=%s", backends[__i__]);
  Stage s = stage_new (line, "sink", "src");
  Storm storm = {s.element, 0};
  GThread *threads[2];

  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("storm", set_and_get, &storm);
  for (guint i = 0; i < 400; i++) {
    GstBuffer *out;
    GstMapInfo map;

    if (i % 50 == 0)
      stage_caps (&s, i % 100 ? "RGBA" : "GRAY8", 33 + i, 5);
    check_push (s.h, check_noise (&s.info, i), GST_FLOW_OK);
    out = check_pull (s.h);
    fail_unless (gst_buffer_map (out, &map, GST_MAP_READ));
    gst_buffer_unmap (out, &map);
    gst_buffer_unref (out);
  }
  g_atomic_int_set (&storm.stop, 1);
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  stage_free (&s);
  g_free (line);
}
GST_END_TEST;

static Suite *
filter_suite (void)
{
  Suite *suite = suite_create ("filter");
  TCase *tcase = tcase_create ("vfuncs");

  suite_add_tcase (suite, tcase);
  tcase_add_checked_fixture (tcase, set_up, tear_down);
  tcase_add_loop_test (
      tcase, test_each_open_has_its_close_over_caps_changes, 0, 2);
  tcase_add_loop_test (tcase, test_it_starts_and_stops_200_times, 0, 2);
  tcase_add_test (tcase, test_absent_optional_vfuncs_are_not_called);
  tcase_add_loop_test (tcase, test_a_flush_resets, 0, 2);
  tcase_add_test (tcase, test_a_kernel_that_does_not_open_is_one_error);
  tcase_add_test (
      tcase, test_no_frame_is_given_to_a_kernel_that_did_not_reopen);
  tcase_add_test (tcase, test_a_property_that_comes_too_late_is_said_once);
  tcase_add_loop_test (
      tcase, test_refused_caps_leave_the_former_ones_in_force, 0, 2);

  tcase = tcase_create ("frames");
  suite_add_tcase (suite, tcase);
  tcase_add_checked_fixture (tcase, set_up, tear_down);
  tcase_add_loop_test (
      tcase, test_any_stride_and_format_gives_the_same_pixels, 0, 2);
  tcase_add_loop_test (tcase, test_1x1_frames_pass, 0, 2);
  tcase_add_loop_test (
      tcase, test_a_buffer_that_is_too_small_is_an_error_and_no_fallback, 0, 2);
  tcase_add_loop_test (
      tcase, test_a_frame_without_the_end_of_its_last_row_is_too_small, 0, 2);
  tcase_add_test (tcase, test_each_failure_with_a_good_frame_between_is_said);
  tcase_add_loop_test (tcase, test_a_plane_in_two_memories_is_refused, 0, 2);
  tcase_add_test (tcase, test_metas_of_others_stay_on_the_frame);
  tcase_add_loop_test (
      tcase, test_a_passed_frame_is_the_same_buffer_and_counts, 0, 2);
  tcase_add_loop_test (tcase, test_stats_are_plausible, 0, 2);
  tcase_add_test (tcase, test_a_segment_in_bytes_is_taken_as_it_is);

  tcase = tcase_create ("results");
  suite_add_tcase (suite, tcase);
  tcase_add_checked_fixture (tcase, set_up, tear_down);
  tcase_add_loop_test (tcase, test_results_go_on_without_anyone_at_src, 0, 2);
  tcase_add_test (tcase, test_frames_go_on_without_anyone_at_results);
  tcase_add_test (tcase, test_nobody_at_all_stops_upstream);
  tcase_add_test (tcase, test_there_is_one_results_pad);
  tcase_add_test (tcase, test_two_threads_that_want_the_results_pad_get_one);
  tcase_add_test (tcase, test_results_have_the_events_of_a_stream);
  tcase_add_test (tcase, test_eos_without_a_frame_ends_both);
  tcase_add_test (tcase, test_eos_without_a_segment_is_no_critical);
  tcase_add_test (tcase, test_a_stream_after_eos_has_results_again);
  tcase_add_test (tcase, test_results_come_again_after_a_restart);
  tcase_add_test (tcase, test_the_peer_of_results_chooses_tensors);
  tcase_add_test (tcase, test_a_peer_that_takes_no_results_is_one_error);
  tcase_add_test (tcase, test_refused_results_are_said_once_and_may_be_mended);
  tcase_add_test (tcase, test_results_are_of_the_group_of_their_frames);
  tcase_add_test (tcase, test_a_segment_that_comes_with_the_pad_is_in_force);
  tcase_add_test (tcase, test_a_gap_before_the_first_frame_comes_through);
  tcase_add_test (tcase, test_a_new_reader_gets_the_line_of_names);
  tcase_add_test (tcase, test_columns_that_change_are_named_again);
  tcase_add_test (tcase, test_results_come_before_their_frame);
  tcase_add_test (
      tcase, test_results_may_be_requested_and_released_while_playing);

  tcase = tcase_create ("allocation");
  suite_add_tcase (suite, tcase);
  tcase_add_checked_fixture (tcase, set_up, tear_down);
  tcase_add_test (tcase, test_a_pinned_pool_is_offered_for_the_device_alone);
  tcase_add_test (
      tcase, test_rows_of_any_length_are_welcome_where_frames_are_new);
  tcase_add_test (tcase, test_a_measuring_element_speaks_for_downstream);
  tcase_add_test (tcase, test_frames_in_the_offered_pool_are_not_copied);
  tcase_add_test (
      tcase, test_frames_come_out_on_the_device_and_anyone_can_map_them);
  tcase_add_test (tcase, test_between_our_elements_frames_stay_on_the_device);
  check_add_mock_test (
      tcase, test_frames_of_an_incoherent_gpu_are_never_read_uncached);
  tcase_add_test (tcase, test_a_branch_that_writes_leaves_the_other_as_it_was);
  tcase_add_test (tcase, test_auto_follows_frames_to_the_device);
  check_add_mock_test (tcase, test_auto_takes_the_device_that_has_the_frames);
  check_add_mock_test (
      tcase, test_frames_of_another_device_come_through_the_host);
  tcase_add_test (tcase, test_auto_takes_cuda_where_it_is_faster);

  tcase = tcase_create ("failures");
  suite_add_tcase (suite, tcase);
  tcase_add_checked_fixture (tcase, set_up, tear_down);
  tcase_add_test (tcase, test_auto_goes_on_with_the_cpu_and_says_so_once);
  tcase_add_test (tcase, test_upstream_goes_on_in_our_pool_without_the_device);
  tcase_add_test (
      tcase, test_a_frame_of_a_working_device_is_not_lost_with_the_kernel);
  tcase_add_test (
      tcase, test_frames_that_were_only_on_a_lost_device_are_counted_as_lost);
  tcase_add_test (tcase, test_cuda_that_was_asked_for_fails_with_one_error);
  tcase_add_loop_test (tcase, test_each_call_to_the_device_may_fail, 0, 8);
  check_add_mock_test (
      tcase, test_cuda_without_a_device_is_refused_at_the_start);
  tcase_add_test (tcase, test_a_device_number_beyond_the_last_is_refused);
  check_add_mock_test (
      tcase, test_auto_without_a_device_runs_on_the_cpu_and_is_silent);

  tcase = tcase_create ("properties");
  suite_add_tcase (suite, tcase);
  tcase_add_checked_fixture (tcase, set_up, tear_down);
  tcase_add_loop_test (tcase, test_a_storm_of_properties_does_no_harm, 0, 2);
  return suite;
}

GST_CHECK_MAIN (filter);
