/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "filter-check.h"
#include "core/failures.h"

#include <string.h>

FilterSeen filter_seen;
guint filter_n_live_before;

/* --- subclasses --------------------------------------------------------- */

typedef GstImagingFilterClass TestFilterClass;

static ImkStatus
test_filter_open (GstImagingFilter *filter, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  TestFilter *self = (TestFilter *) filter;

  fail_if (self->is_open, "opened twice");
  fail_unless ((gst_imaging_filter_open_context (filter) != NULL) ||
               backend == IMK_BACKEND_CPU);
  if (filter_seen.open_fails != IMK_OK)
    return imk_error_set (
        error, filter_seen.open_fails, "The kernel was told not to open.");
  self->is_open = TRUE;
  self->backend = backend;
  g_atomic_int_inc (&filter_seen.n_opened);
  return IMK_OK;
}

static void
test_filter_close (GstImagingFilter *filter)
{
  TestFilter *self = (TestFilter *) filter;

  fail_unless (self->is_open, "closed and not open");
  self->is_open = FALSE;
  g_atomic_int_inc (&filter_seen.n_closed);
}

static ImkStatus
test_filter_begin (GstImagingFilter *filter, ImkError *error)
{
  TestFilter *self = (TestFilter *) filter;

  fail_unless (self->is_open, "a frame for a kernel that is not open");
  g_atomic_int_inc (&filter_seen.n_processed);
  if (filter_seen.process_fails != IMK_OK && self->backend == IMK_BACKEND_CUDA)
    return imk_error_set (
        error, filter_seen.process_fails, "The kernel was told to fail.");
  return IMK_OK;
}

static void
test_filter_reset (GstImagingFilter *filter, gpointer stream)
{
  fail_unless ((stream != NULL) ==
               (((TestFilter *) filter)->backend != IMK_BACKEND_CPU));
  g_atomic_int_inc (&filter_seen.n_reset);
}

static gboolean
test_filter_prefers_cuda (GstImagingFilter *filter, const GstVideoInfo *info)
{
  return filter_seen.prefers_cuda;
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
      .fields = filter_seen.has_other_fields ? other_fields : fields,
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
  gst_imaging_filter_class_add_results_pad (klass, FALSE);
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

void
filter_set_up (void)
{
  memset (&filter_seen, 0, sizeof (filter_seen));
  gst_element_register (
      NULL, "testinvert", GST_RANK_NONE, test_invert_get_type ());
  gst_element_register (
      NULL, "testmeasure", GST_RANK_NONE, test_measure_get_type ());
  gst_element_register (
      NULL, "testmeasurefast", GST_RANK_NONE, test_measure_fast_get_type ());
  filter_n_live_before = check_n_live ();
}

void
filter_tear_down (void)
{
  ImkError error;
  const ImkDevice *device = NULL;

  if (imk_device_get (&device, &error) == IMK_OK)
    imk_inject_failure (0, FALSE);
  fail_unless_equals_int (filter_seen.n_opened, filter_seen.n_closed);
  fail_unless_equals_int (check_n_live (), filter_n_live_before);
}

void
stage_caps (Stage *s, const gchar *format, gint width, gint height)
{
  g_autofree gchar *caps = check_caps_string (format, width, height);

  s->info = check_info (format, width, height);
  gst_harness_set_src_caps_str (s->h, caps);
}

Stage
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

Stage
stage_new (const gchar *launch, const gchar *sink, const gchar *src)
{
  Stage s = stage_try (launch, sink, src);

  fail_unless (s.h != NULL, "%s does not start", launch);
  return s;
}

void
stage_free (Stage *s)
{
  gst_harness_teardown (s->h);
  gst_bus_set_flushing (s->bus, TRUE); /* its messages hold the element */
  gst_object_unref (s->bus);
}

static GstBuffer *
inverted (GstBuffer *buffer)
{
  GstBuffer *copy = gst_buffer_copy_deep (buffer);
  g_auto (CheckMap) map = check_map (copy, GST_MAP_READWRITE);

  for (gsize i = 0; i < map.size; i++)
    map.data[i] = ~map.data[i];
  return copy;
}

void
stage_check_made (Stage *s, GstBuffer *found, guint seed, ImkBackend backend)
{
  g_autoptr (GstBuffer) noise = check_noise (&s->info, seed),
                        negative = inverted (noise);
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (found, GST_IMAGING_QUANTITY_META);

  fail_unless (meta != NULL);
  fail_unless_equals_string (
      gst_structure_get_string (
          gst_custom_meta_get_structure (meta), "backend"),
      backend == IMK_BACKEND_CPU ? "cpu" : "cuda");
  check_same_pixels (
      found, backend == IMK_BACKEND_CPU ? negative : noise, &s->info);
  fail_unless_equals_uint64 (GST_BUFFER_PTS (found), GST_BUFFER_PTS (noise));
  fail_unless_equals_uint64 (
      GST_BUFFER_DURATION (found), GST_BUFFER_DURATION (noise));
}

void
stage_push_and_check (Stage *s, guint seed, ImkBackend backend)
{
  g_autoptr (GstBuffer) out = NULL;

  check_push (s->h, check_noise (&s->info, seed), GST_FLOW_OK);
  out = check_pull (s->h);
  stage_check_made (s, out, seed, backend);
}

GstElement *
filter_launch (const gchar *format, ...)
{
  GError *error = NULL;
  GstElement *pipeline;
  va_list args;
  g_autofree gchar *line = NULL;

  va_start (args, format);
  line = g_strdup_vprintf (format, args);
  va_end (args);
  pipeline = gst_parse_launch (line, &error);
  fail_unless (error == NULL, "%s: %s", line, error ? error->message : "");
  return pipeline;
}

guint64
filter_stat_of (GstElement *pipeline, const gchar *element, const gchar *name)
{
  g_autoptr (GstElement) e = gst_bin_get_by_name (GST_BIN (pipeline), element);
  guint64 value = check_stat (e, name);

  return value;
}

void
filter_check_active (
    GstElement *element, const gchar *backend, const gchar *memory)
{
  g_autofree gchar *b = NULL, *m = NULL;

  g_object_get (element, "active-backend", &b, "active-memory", &m, NULL);
  fail_unless_equals_string (b, backend);
  fail_unless_equals_string (m, memory);
}
