/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GstImagingEngine in an element that is no GstBaseTransform; what it does in
 * one that is, filter.c tests. */
#include "check-common.h"

#include "gstimagingallocation.h"
#include "gstimagingsettings.h"

#define WIDTH 31
#define HEIGHT 7

/* --- the element ---------------------------------------------------------- */

enum {
  PROP_OWN = GST_IMAGING_ENGINE_N_PROPERTIES + 1,
};

typedef struct {
  GstElement parent;
  GstImagingEngine *engine;
  gint own;
  gboolean is_open, prefers_cuda, fails_on_cuda;
  guint n_reconfigured;
} TestOwner;

typedef GstElementClass TestOwnerClass;
static GType test_owner_get_type (void);
G_DEFINE_TYPE (TestOwner, test_owner, GST_TYPE_ELEMENT)

static ImkStatus
test_owner_open (GstElement *element, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  TestOwner *self = (TestOwner *) element;

  fail_if (self->is_open, "opened twice");
  fail_unless_equals_int (info->width, WIDTH);
  if (self->fails_on_cuda && backend == IMK_BACKEND_CUDA)
    return imk_error_set (
        error, IMK_ERROR_DEVICE, "The kernel was told not to open.");
  self->is_open = TRUE;
  return IMK_OK;
}

static void
test_owner_close (GstElement *element)
{
  TestOwner *self = (TestOwner *) element;

  fail_unless (self->is_open, "closed and not open");
  self->is_open = FALSE;
}

static gboolean
test_owner_prefers_cuda (GstElement *element, const GstVideoInfo *info)
{
  return ((TestOwner *) element)->prefers_cuda;
}

static void
test_owner_reconfigure (GstElement *element)
{
  ((TestOwner *) element)->n_reconfigured++;
}

static void
test_owner_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  TestOwner *self = (TestOwner *) object;

  if (gst_imaging_engine_set_property (self->engine, id, value))
    return;
  fail_unless_equals_int (id, PROP_OWN);
  self->own = g_value_get_int (value);
}

static void
test_owner_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  TestOwner *self = (TestOwner *) object;

  if (gst_imaging_engine_get_property (self->engine, id, value))
    return;
  fail_unless_equals_int (id, PROP_OWN);
  g_value_set_int (value, self->own);
}

static void
test_owner_finalize (GObject *object)
{
  gst_imaging_engine_free (((TestOwner *) object)->engine);
  G_OBJECT_CLASS (test_owner_parent_class)->finalize (object);
}

static void
test_owner_class_init (TestOwnerClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->set_property = test_owner_set_property;
  object_class->get_property = test_owner_get_property;
  object_class->finalize = test_owner_finalize;
  gst_imaging_engine_install_properties (object_class);
  g_object_class_install_property (object_class, PROP_OWN,
      g_param_spec_int ("own", "Own", "Own", 0, 9, 0, G_PARAM_READWRITE));
}

static void
test_owner_init (TestOwner *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = test_owner_open,
      .close = test_owner_close,
      .prefers_cuda = test_owner_prefers_cuda,
      .reconfigure = test_owner_reconfigure,
  };

  self->engine = gst_imaging_engine_new (GST_ELEMENT (self), &funcs);
}

static TestOwner *
owner_new (GstBus **bus)
{
  TestOwner *self = g_object_new (test_owner_get_type (), NULL);

  gst_object_ref_sink (self);
  *bus = gst_bus_new ();
  gst_element_set_bus (GST_ELEMENT (self), *bus);
  return self;
}

static void
owner_free (TestOwner *self, GstBus *bus)
{
  gst_imaging_engine_stop (self->engine);
  fail_if (self->is_open);
  gst_element_set_bus (GST_ELEMENT (self), NULL);
  gst_object_unref (bus);
  gst_object_unref (self);
  fail_unless_equals_int (check_n_live (), 0);
}

static GstCaps *
caps_new (void)
{
  g_autofree gchar *string = check_caps_string ("GRAY16_LE", WIDTH, HEIGHT);
  GstCaps *caps = gst_caps_from_string (string);

  return caps;
}

static gboolean
set_caps (TestOwner *self)
{
  g_autoptr (GstCaps) caps = caps_new ();
  gboolean done = gst_imaging_engine_set_caps (self->engine, caps, NULL);

  return done;
}

static void
check_active (TestOwner *self, const gchar *expected)
{
  g_autofree gchar *active = NULL;

  g_object_get (self, "active-backend", &active, NULL);
  fail_unless_equals_string (active, expected);
}

/* --- tests ---------------------------------------------------------------- */

CHECK_TEST (test_properties_of_both_stand_side_by_side)
{
  GstBus *bus;
  TestOwner *self = owner_new (&bus);
  gint device_id, own;
  guint n_threads;

  g_object_get (self, "cuda-device-id", &device_id, "own", &own, NULL);
  fail_unless_equals_int (device_id, -1);
  fail_unless_equals_int (own, 0);
  g_object_set (self, "own", 5, "n-threads", 3, "backend",
      GST_IMAGING_BACKEND_CPU, "cuda-device-id", 1, NULL);
  g_object_get (self, "own", &own, "n-threads", &n_threads, "cuda-device-id",
      &device_id, NULL);
  fail_unless_equals_int (own, 5);
  fail_unless_equals_int (n_threads, 3);
  fail_unless_equals_int (device_id, 1);
  fail_unless_equals_int (gst_imaging_engine_n_threads (self->engine), 3);
  fail_unless_equals_int (
      gst_imaging_engine_choice (self->engine), GST_IMAGING_BACKEND_CPU);
  owner_free (self, bus);
}

CHECK_TEST (test_frames_are_counted)
{
  GstBus *bus;
  TestOwner *self = owner_new (&bus);

  for (guint run = 0; run < 2; run++) {
    fail_unless (gst_imaging_engine_start (self->engine));
    fail_unless (set_caps (self));
    check_active (self, "cpu");
    gst_imaging_engine_count_frame (self->engine, gst_util_get_timestamp ());
    gst_imaging_engine_count_lost (self->engine);
    fail_unless_equals_uint64 (check_stat (GST_ELEMENT (self), "frames"), 1);
    fail_unless_equals_uint64 (
        check_stat (GST_ELEMENT (self), "lost-frames"), 1);
    gst_imaging_engine_stop (self->engine);
  }
  owner_free (self, bus);
}

CHECK_TEST (test_ordinary_frames_reach_the_device_by_a_copy)
{
  GstVideoInfo info = check_info ("GRAY16_LE", WIDTH, HEIGHT);
  GstBuffer *frame = check_noise (&info, 1), *copy;
  GstImagingFrame mapped;
  GstImagingEngine *engine;
  ImkError error;
  GstBus *bus;
  TestOwner *self = owner_new (&bus);

  engine = self->engine;
  self->prefers_cuda = TRUE;
  fail_unless (gst_imaging_engine_start (engine));
  fail_unless (set_caps (self));
  check_active (self, "cuda");
  fail_unless (gst_imaging_engine_is_on_cuda (engine));
  fail_unless (gst_imaging_engine_stream (engine) != NULL);

  check_ok (
      gst_imaging_context_push (gst_imaging_engine_context (engine), &error),
      &error);
  copy = gst_imaging_engine_reachable (
      engine, frame, GST_IMAGING_REACH_DEVICE, &error);
  fail_unless (copy && copy != frame);
  fail_unless (gst_imaging_engine_reachable (
                   engine, copy, GST_IMAGING_REACH_DEVICE, &error) == copy);
  check_same_pixels (copy, frame, &info);
  check_ok (gst_imaging_engine_map (engine, copy, &info, GST_MAP_READ,
                GST_IMAGING_REACH_DEVICE, &mapped, &error),
      &error);
  fail_unless (mapped.stream == gst_imaging_engine_stream (engine));
  check_ok (gst_imaging_engine_synchronize (engine, &error), &error);
  check_ok (gst_imaging_frame_unmap (&mapped, TRUE, &error), &error);
  gst_imaging_context_pop (gst_imaging_engine_context (engine));
  fail_unless_equals_uint64 (
      check_stat (GST_ELEMENT (self), "bytes-uploaded"), info.size);

  gst_buffer_unref (copy);
  gst_buffer_unref (frame);
  owner_free (self, bus);
}

CHECK_TEST (test_auto_goes_on_with_the_cpu_until_the_next_start)
{
  GstBus *bus;
  TestOwner *self = owner_new (&bus);

  self->prefers_cuda = self->fails_on_cuda = TRUE;
  fail_unless (gst_imaging_engine_start (self->engine));
  fail_unless (set_caps (self));
  check_active (self, "cpu");
  fail_unless_equals_int (self->n_reconfigured, 1);
  check_warning (bus, LIBRARY, FAILED, "told not to open");

  self->fails_on_cuda = FALSE;
  fail_unless (set_caps (self));
  check_active (self, "cpu");
  check_no_messages (bus, GST_MESSAGE_ANY);

  gst_imaging_engine_stop (self->engine);
  fail_unless (gst_imaging_engine_start (self->engine));
  fail_unless (set_caps (self));
  check_active (self, "cuda");
  owner_free (self, bus);
}

CHECK_TEST (test_cuda_alone_posts_one_error)
{
  GstBus *bus;
  TestOwner *self = owner_new (&bus);

  self->fails_on_cuda = TRUE;
  g_object_set (self, "backend", GST_IMAGING_BACKEND_CUDA, NULL);
  fail_unless (gst_imaging_engine_start (self->engine));
  fail_if (set_caps (self));
  fail_if (set_caps (self));
  fail_if (gst_imaging_engine_is_open (self->engine));
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_ERROR), 1);
  owner_free (self, bus);
}

static void
check_runs_on (TestOwner *self, gint named, gint expected)
{
  gint device_id;

  fail_unless (gst_imaging_engine_start (self->engine));
  fail_unless (set_caps (self));
  fail_unless_equals_int (
      gst_imaging_context_device_id (gst_imaging_engine_context (self->engine)),
      expected);
  gst_imaging_engine_stop (self->engine);
  g_object_get (self, "cuda-device-id", &device_id, NULL);
  fail_unless_equals_int (device_id, named);
}

/* Returns: (transfer full): what a property cuda-devices holds, for g_free ()
 */
static GstImagingArray *
list_new (gint first, gint second)
{
  GstImagingArray *list =
      g_malloc0 (sizeof (GstImagingArray) + 2 * sizeof (gdouble));

  list->n = 2;
  list->values[0] = first;
  list->values[1] = second;
  return list;
}

CHECK_MOCK_TEST (test_a_list_of_devices_goes_before_the_device_while_it_counts)
{
  g_autofree GstImagingArray *list = list_new (2, 0);
  GArray *others;
  GstBus *bus;
  TestOwner *self;

  g_setenv ("IMK_MOCK_DEVICES", "3", TRUE);
  self = owner_new (&bus);
  self->prefers_cuda = TRUE;
  g_object_set (self, "cuda-device-id", 1, NULL);
  check_runs_on (self, 1, 1);
  fail_unless (gst_imaging_engine_choose_devices (self->engine, list, &others));
  fail_unless_equals_int (others->len, 1);
  fail_unless_equals_int (g_array_index (others, gint, 0), 0);
  g_array_unref (others);
  check_runs_on (self, 1, 2);
  fail_unless (gst_imaging_engine_choose_devices (self->engine, NULL, NULL));
  check_runs_on (self, 1, 1);
  owner_free (self, bus);
}

CHECK_MOCK_TEST (test_a_list_of_devices_does_not_count_without_cuda)
{
  GstImagingArray *const lists[] = {
      list_new (GST_IMAGING_ALL_DEVICES, 0), list_new (0, 1), list_new (7, 9)};

  g_setenv ("IMK_MOCK_DEVICES", "0", TRUE);
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    for (gboolean on_cuda = FALSE; on_cuda <= TRUE; on_cuda++) {
      GstBus *bus;
      TestOwner *self = owner_new (&bus);
      GArray *others;

      if (on_cuda)
        g_object_set (self, "backend", GST_IMAGING_BACKEND_CUDA, NULL);
      fail_unless (
          gst_imaging_engine_choose_devices (self->engine, lists[i], &others));
      fail_unless_equals_int (others->len, 0);
      g_array_unref (others);
      fail_unless (gst_imaging_engine_start (self->engine) != on_cuda);
      if (on_cuda)
        check_error (bus, RESOURCE, NOT_FOUND, "No CUDA device is visible");
      owner_free (self, bus);
    }
    g_free (lists[i]);
  }
}

/* Returns: (transfer full) (nullable): the allocator that @query offers */
static GstAllocator *
offered_allocator (GstQuery *query)
{
  GstAllocator *allocator = NULL;

  if (gst_query_get_n_allocation_params (query) > 0)
    gst_query_parse_nth_allocation_param (query, 0, &allocator, NULL);
  return allocator;
}

CHECK_TEST (test_allocation_follows_the_backend)
{
  for (guint on_cuda = 0; on_cuda < 2; on_cuda++) {
    GstCaps *caps = caps_new ();
    GstQuery *query = gst_query_new_allocation (caps, TRUE);
    GstAllocator *allocator;
    GstBus *bus;
    TestOwner *self = owner_new (&bus);

    self->prefers_cuda = on_cuda;
    fail_unless (gst_imaging_engine_start (self->engine));
    fail_unless (set_caps (self));
    gst_imaging_allocation_propose (self->engine, query);
    allocator = offered_allocator (query);
    fail_unless ((allocator != NULL) == on_cuda);
    fail_unless_equals_int (gst_query_get_n_allocation_pools (query), on_cuda);
    gst_clear_object (&allocator);

    fail_unless (gst_imaging_allocation_decide (self->engine, query));
    allocator = offered_allocator (query);
    fail_unless ((allocator != NULL) == on_cuda);
    fail_unless_equals_int (gst_query_get_n_allocation_pools (query), 1);
    gst_clear_object (&allocator);
    gst_query_unref (query);
    gst_caps_unref (caps);
    owner_free (self, bus);
  }
}
