/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The settings that all elements share, seen from an element of this test. */
#include <gst/controller/controller.h>

#include <math.h>
#include <stdbool.h>

#include "check-common.h"
#include "gstimagingaction.h"
#include "gstimagingsettings.h"

/* --- an element with a setting of each kind ------------------------------- */

typedef enum { MODE_PLAIN, MODE_FILE } Mode;

static const GEnumValue modes[] = {
    {MODE_PLAIN, "Without the file", "plain"},
    {MODE_FILE, "Needs path", "file"},
    {0, NULL, NULL},
};

static const GFlagsValue parts[] = {
    {1, "Cells", "cells"},
    {2, "Arrows", "arrows"},
    {4, "Text", "text"},
    {0, NULL, NULL},
};

enum { GROUP_RANGE = 1, GROUP_FILE = 2 };

typedef struct {
  gdouble minimum, maximum;
  guint count;
  Mode mode;
  GstImagingFile *path;
  GstImagingArray *factors;
  gchar *name;
  gboolean flag;
  bool byte_flag;
  gint offset;
  guint64 wide;
  guint parts;
  GstImagingFraction rate;
  GstImagingArray *order;
  guint n_jobs;
  GstImagingFile *name_only;
} Settings;

typedef struct {
  GstElement parent;
  GstImagingSettings *settings;
  guint n_applied, groups;
  ImkStatus fail; /* of the next apply () */
  gboolean fail_second;
} TestSettled;

typedef GstElementClass TestSettledClass;
static GType test_settled_get_type (void);
G_DEFINE_TYPE (TestSettled, test_settled, GST_TYPE_ELEMENT)

static void (*while_loading) (void); /* of the next file */

static gpointer
load (const gchar *property, const gchar *location, ImkError *error)
{
  gchar *text;

  if (while_loading)
    while_loading ();
  if (g_file_get_contents (location, &text, NULL, NULL))
    return text;
  imk_error_set (
      error, IMK_ERROR_FILE, "%s \"%s\" cannot be read.", property, location);
  return NULL;
}

static const GstImagingSetting settings[] = {
    GST_IMAGING_DOUBLE ("minimum", LIVE, GROUP_RANGE, Settings, minimum, -200,
        300, "dB", "Black"),
    GST_IMAGING_DOUBLE ("maximum", LIVE, GROUP_RANGE, Settings, maximum, -200,
        300, "dB", "White"),
    GST_IMAGING_UINT ("count", NEXT_SET, 0, Settings, count, 1, 100, NULL, "n"),
    GST_IMAGING_ENUM (
        "mode", LIVE, GROUP_FILE, Settings, mode, "TestMode", modes, "Mode"),
    GST_IMAGING_PATH (
        "path", LIVE, GROUP_FILE, Settings, path, load, g_free, "A file"),
    GST_IMAGING_ARRAY (
        "factors", LIVE, 0, Settings, factors, -10, 10, NULL, "Factors"),
    GST_IMAGING_STRING ("label", NEXT_START, 0, Settings, name, "A \"label\""),
    GST_IMAGING_BOOLEAN ("flag", LIVE, 0, Settings, flag, "A flag"),
    GST_IMAGING_BOOLEAN ("byte-flag", LIVE, 0, Settings, byte_flag, "A byte"),
    GST_IMAGING_INT (
        "offset", LIVE, 0, Settings, offset, -9, 9, "px", "Offset"),
    GST_IMAGING_UINT64 (
        "wide", LIVE, 0, Settings, wide, 0, G_MAXUINT64, "ns", "64 bits"),
    GST_IMAGING_FLAGS (
        "parts", LIVE, 0, Settings, parts, "TestParts", parts, "Parts"),
    GST_IMAGING_FRACTION ("rate", LIVE, 0, Settings, rate, 0, "Hz", "Rate"),
    GST_IMAGING_INT_ARRAY (
        "order", LIVE, 0, Settings, order, 0, 7, NULL, "Whole numbers"),
    GST_IMAGING_UINT ("n-jobs", LIVE, GST_IMAGING_NEUTRAL, Settings, n_jobs, 0,
        9, NULL, "How fast"),
    GST_IMAGING_OUTPUT (
        "name-only", LIVE, 0, Settings, name_only, "What is written"),
};

static void
init_settings (gpointer data)
{
  Settings *s = data;

  s->maximum = 60;
  s->count = 3;
  s->offset = -2;
  s->wide = G_MAXUINT64;
  s->parts = 5;
  s->rate = (GstImagingFraction){25, 1};
}

static ImkStatus
apply (GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  TestSettled *self = (TestSettled *) element;
  const Settings *s = gst_imaging_settings_now (self->settings);

  if (self->fail)
    return imk_error_set (error, self->fail, "The device is gone.");
  if (!(s->minimum < s->maximum))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "minimum %g is not below maximum %g.", s->minimum, s->maximum);
  if (s->count == 13)
    return imk_error_set (error, IMK_ERROR_CONFIG, "count is 13.");
  if (self->fail_second)
    return imk_error_set (error, IMK_ERROR_DEVICE, "The device is gone.");
  if (s->mode == MODE_FILE && !s->path)
    return imk_error_set (error, IMK_ERROR_CONFIG, "mode=file needs path.");
  self->n_applied++;
  self->groups = groups;
  return IMK_OK;
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .init = init_settings,
    .apply = apply,
};

static guint n_captured;
static gchar *captured_to;

static gboolean
capture (TestSettled *settled, guint n, const gchar *location)
{
  n_captured = n;
  g_free (captured_to);
  captured_to = g_strdup (location);
  return n > 1;
}

static void
clear (TestSettled *settled)
{
  n_captured = 0;
}

static const GstImagingAction actions[] = {
    {"capture", G_CALLBACK (capture), G_TYPE_BOOLEAN,
        {{"n-frames", GST_IMAGING_KIND_UINT},
            {"location", GST_IMAGING_KIND_PATH}},
        {"path", "name-only"}, "A \"mean\""},
    {"clear", G_CALLBACK (clear), G_TYPE_NONE, {{NULL}}, {NULL}, "Nothing"},
    {NULL},
};

static void
test_settled_class_init (TestSettledClass *klass)
{
  gst_imaging_settings_install (G_OBJECT_CLASS (klass), &table);
  gst_imaging_actions_install (G_OBJECT_CLASS (klass), actions);
}

static void
test_settled_init (TestSettled *self)
{
  self->settings = gst_imaging_settings_new (GST_ELEMENT (self), &table, NULL);
}

/* --- helpers ---------------------------------------------------- */

static TestSettled *self;
static GstBus *bus;

static void
set_up (void)
{
  check_make_folder ();
  self = g_object_new (test_settled_get_type (), NULL);
  gst_object_ref_sink (self);
  bus = gst_bus_new ();
  gst_element_set_bus (GST_ELEMENT (self), bus);
}

static void
tear_down (void)
{
  gst_element_set_bus (GST_ELEMENT (self), NULL);
  g_clear_object (&bus);
  g_clear_object (&self);
  check_remove_folder ();
}

static ImkError error;

static ImkStatus
update (GstImagingWhen when, GstClockTime time)
{
  return gst_imaging_settings_update (self->settings, when, time, &error);
}

static const Settings *
frame (void)
{
  check_ok (update (GST_IMAGING_WHEN_LIVE, GST_CLOCK_TIME_NONE), &error);
  return gst_imaging_settings_now (self->settings);
}

static void
check_fails (ImkStatus expected)
{
  fail_unless_equals_int (
      update (GST_IMAGING_WHEN_LIVE, GST_CLOCK_TIME_NONE), expected);
}

static gboolean
is_valid (void)
{
  gboolean valid;

  g_object_get (self, "settings-valid", &valid, NULL);
  return valid;
}

/* --- tests ---------------------------------------------------------------- */

CHECK_CASE ("all", set_up, tear_down)

CHECK_TEST (test_values_wait_for_the_next_frame_and_count_together)
{
  gdouble minimum;

  fail_unless_equals_float (frame ()->maximum, 60);
  g_object_set (self, "minimum", 70.0, NULL);
  g_object_get (self, "minimum", &minimum, NULL);
  fail_unless_equals_float (minimum, 70);
  g_object_set (self, "maximum", 100.0, NULL);
  fail_unless_equals_int ((gint) self->n_applied, 1);
  fail_unless_equals_float (frame ()->minimum, 70);
  fail_unless_equals_int ((gint) self->groups, GROUP_RANGE);
  fail_unless_equals_int ((gint) self->n_applied, 2);
  frame (); /* nothing was set */
  fail_unless_equals_int ((gint) self->n_applied, 2);
  check_no_messages (bus, GST_MESSAGE_WARNING);
}

static guint n_notified;

static void
count_notify (GObject *object, GParamSpec *spec, gpointer data)
{
  n_notified++;
}

CHECK_TEST (test_a_contradiction_is_one_warning_and_nothing_changes)
{
  GstMessage *message;
  const GstStructure *s;
  gboolean accepted = TRUE;
  const GValue *names;

  frame ();
  n_notified = 0;
  g_signal_connect (
      self, "notify::settings-valid", G_CALLBACK (count_notify), NULL);
  g_object_set (self, "minimum", 70.0, "flag", TRUE, NULL);
  for (guint i = 0; i < 5; i++) {
    fail_unless_equals_float (frame ()->minimum, 0);
    fail_if (frame ()->flag);
  }
  fail_if (is_valid ());
  fail_unless_equals_int ((gint) n_notified, 1);
  message = check_message (bus, GST_MESSAGE_WARNING);
  check_message_says (gst_message_ref (message), CHECK_CODE (LIBRARY, SETTINGS),
      "minimum 70 is not below maximum 60");
  check_message_says (
      message, CHECK_CODE (LIBRARY, SETTINGS), "minimum=70, flag=");
  message = check_message (bus, GST_MESSAGE_ELEMENT);
  s = gst_message_get_structure (message);
  fail_unless (gst_structure_has_name (s, "imaging-settings"));
  fail_unless (gst_structure_get_boolean (s, "accepted", &accepted));
  fail_if (accepted);
  fail_unless (strstr (gst_structure_get_string (s, "text"), "minimum 70"));
  names = gst_structure_get_value (s, "properties");
  fail_unless_equals_int (gst_value_array_get_size (names), 2);
  fail_unless_equals_string (
      g_value_get_string (gst_value_array_get_value (names, 0)), "minimum");
  gst_message_unref (message);
  fail_unless (gst_bus_pop (bus) == NULL, "one change, one warning");

  g_object_set (self, "maximum", 100.0, NULL);
  fail_unless_equals_float (frame ()->minimum, 70);
  fail_unless (frame ()->flag);
  fail_unless (is_valid ());
  message = check_message (bus, GST_MESSAGE_ELEMENT);
  s = gst_message_get_structure (message);
  fail_unless (gst_structure_get_boolean (s, "accepted", &accepted));
  fail_unless (accepted);
  gst_message_unref (message);

  /* setting back what is in use is valid without another attempt */
  g_object_set (self, "minimum", 170.0, NULL);
  frame ();
  fail_if (is_valid ());
  g_object_set (self, "minimum", 70.0, NULL);
  frame ();
  fail_unless (is_valid ());
}

/* A value that is not used waits, and others change meanwhile. */
CHECK_TEST (test_a_wrong_value_does_not_stop_the_others)
{
  const Settings *now;

  frame ();
  g_object_set (self, "path", "/nowhere/curve.npy", NULL);
  fail_unless (frame ()->path == NULL);
  check_warning (
      bus, LIBRARY, SETTINGS, "cannot be read. Not used until it fits: path=");
  g_object_set (self, "flag", TRUE, NULL);
  fail_unless (frame ()->flag);
  fail_if (is_valid ());

  g_object_set (self, "minimum", 70.0, NULL); /* above 60 */
  fail_unless_equals_float (frame ()->minimum, 0);
  check_warning (bus, LIBRARY, SETTINGS,
      "minimum 70 is not below maximum 60. Not used until it fits: minimum=70."
      " The settings before stay in use.");
  g_object_set (self, "maximum", 65.0, NULL);
  now = frame ();
  fail_unless (now->minimum == 0 && now->maximum == 65 && now->flag);
  g_object_set (self, "path", NULL, NULL);
  now = frame ();
  fail_unless (now->minimum == 0 && now->maximum == 65);
  fail_if (is_valid ());

  g_object_set (self, "maximum", 100.0, NULL);
  now = frame ();
  fail_unless (now->minimum == 70 && now->maximum == 100 && !now->path);
  fail_unless (is_valid ());
  check_no_messages (bus, GST_MESSAGE_WARNING);
}

static ImkStatus
open_below_50 (gpointer data, ImkError *error)
{
  const Settings *s = gst_imaging_settings_now (self->settings);

  if (s->minimum >= 50)
    return imk_error_set (
        error, IMK_ERROR_CONFIG, "minimum %g is not below 50.", s->minimum);
  return IMK_OK;
}

/* New caps find a value that waits beside one that is new. */
CHECK_TEST (test_new_caps_use_what_fits)
{
  const Settings *now;

  frame ();
  g_object_set (self, "path", "/nowhere/curve.npy", NULL);
  frame ();
  check_count_messages (bus, GST_MESSAGE_WARNING);

  g_object_set (self, "minimum", 20.0, NULL);
  check_ok (
      gst_imaging_settings_try (self->settings, open_below_50, NULL, &error),
      &error);
  now = gst_imaging_settings_now (self->settings);
  fail_unless (now->minimum == 20 && !now->path);
  fail_if (is_valid ());

  g_object_set (self, "minimum", 55.0, NULL);
  check_ok (
      gst_imaging_settings_try (self->settings, open_below_50, NULL, &error),
      &error);
  now = gst_imaging_settings_now (self->settings);
  fail_unless (now->minimum == 20 && !now->path);
  check_warning (bus, LIBRARY, SETTINGS,
      "minimum 55 is not below 50. Not used until it fits: minimum=55.");
  check_no_messages (bus, GST_MESSAGE_WARNING);
}

CHECK_TEST (test_the_same_sentence_comes_once_a_second)
{
  frame ();
  for (guint i = 0; i < 200; i++) {
    g_object_set (self, "minimum", 70.0 + i % 2, NULL);
    frame ();
    g_object_set (self, "minimum", 0.0, NULL);
    frame ();
  }
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 2);
  g_usleep (1100 * 1000);
  g_object_set (self, "minimum", 70.0, NULL);
  frame ();
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 1);
}

CHECK_TEST (test_wrong_settings_at_the_start_are_an_error)
{
  g_object_set (self, "minimum", 70.0, NULL);
  for (guint i = 0; i < 2; i++) {
    check_fails (IMK_ERROR_CONFIG);
    fail_unless (strstr (error.message, "minimum 70"));
  }
  g_object_set (self, "minimum", 10.0, NULL);
  fail_unless_equals_float (frame ()->minimum, 10);
}

CHECK_TEST (test_a_failing_device_is_no_rejection)
{
  frame ();
  self->fail = IMK_ERROR_DEVICE;
  g_object_set (self, "minimum", 5.0, NULL);
  check_fails (IMK_ERROR_DEVICE);
  self->fail = IMK_OK;
  fail_unless_equals_float (frame ()->minimum, 5); /* tried again */
}

CHECK_TEST (test_files_are_read_when_set_and_those_in_use_stay)
{
  gchar *path = check_path_of ("data"), *text;

  check_write_file ("data", "one", -1);
  g_object_set (self, "path", path, NULL);
  check_write_file ("data", "two", -1); /* too late for that */
  fail_unless_equals_string (frame ()->path->data, "one");
  g_object_set (self, "path", path, NULL); /* the same path: read again */
  fail_unless_equals_string (frame ()->path->data, "two");

  g_object_set (self, "path", "/nonexistent/file", NULL);
  fail_unless_equals_string (frame ()->path->data, "two");
  check_warning (
      bus, LIBRARY, SETTINGS, "path \"/nonexistent/file\" cannot be read");
  g_object_get (self, "path", &text, NULL);
  fail_unless_equals_string (text, "/nonexistent/file");
  g_free (text);
  fail_if (is_valid ());

  g_object_set (self, "path", "", NULL);
  fail_unless (frame ()->path == NULL);
  g_object_get (self, "path", &text, NULL);
  fail_unless (text == NULL);
  fail_unless (is_valid ());

  gst_imaging_settings_put_file (
      self->settings, "path", "made here", g_strdup ("three"), NULL, 0);
  fail_unless_equals_string (frame ()->path->data, "three");
  g_free (path);
}

CHECK_TEST (test_a_file_that_appears_before_the_start_is_read)
{
  g_autofree gchar *path = check_path_of ("late");

  g_object_set (self, "path", path, NULL);
  check_fails (IMK_ERROR_FILE);
  check_write_file ("late", "here", -1);
  gst_imaging_settings_start (self->settings);
  fail_unless_equals_string (frame ()->path->data, "here");
}

static void
set_another (void)
{
  while_loading = NULL;
  g_object_set (self, "path", "", NULL);
}

CHECK_TEST (test_a_path_that_is_set_during_the_start_stays)
{
  g_autofree gchar *path = check_path_of ("late");

  g_object_set (self, "path", path, NULL);
  check_write_file ("late", "here", -1);
  while_loading = set_another;
  gst_imaging_settings_start (self->settings);
  fail_unless (while_loading == NULL);
  fail_unless (frame ()->path == NULL);
}

static void
begin_set (void)
{
  check_ok (update (GST_IMAGING_WHEN_NEXT_SET, GST_CLOCK_TIME_NONE), &error);
}

CHECK_TEST (test_a_frame_does_not_make_a_set_valid)
{
  frame ();
  g_object_set (self, "count", 13, NULL);
  begin_set ();
  fail_if (is_valid ());
  g_object_set (self, "minimum", 5.0, NULL);
  fail_unless_equals_float (frame ()->minimum, 5);
  fail_if (is_valid ());
  g_object_set (self, "count", 3, NULL);
  begin_set ();
  fail_unless (is_valid ());

  /* a correction before the next start counts there */
  g_object_set (self, "maximum", 10.0, "minimum", 70.0, NULL);
  frame ();
  fail_if (is_valid ());
  g_object_set (self, "minimum", 0.0, NULL);
  gst_imaging_settings_start (self->settings);
  frame ();
  fail_unless (is_valid ());
}

static ImkStatus
open_unless_13 (gpointer data, ImkError *error)
{
  const Settings *s = gst_imaging_settings_now (self->settings);

  return s->count == 13
             ? imk_error_set (error, IMK_ERROR_CONFIG, "count is 13.")
             : IMK_OK;
}

static void
new_caps (void)
{
  check_ok (
      gst_imaging_settings_try (self->settings, open_unless_13, NULL, &error),
      &error);
}

CHECK_TEST (test_new_caps_make_a_set_valid)
{
  frame ();
  g_object_set (self, "count", 13, NULL);
  begin_set ();
  fail_if (is_valid ());
  g_object_set (self, "minimum", 5.0, NULL);
  frame ();
  g_object_set (self, "count", 3, NULL);
  new_caps ();
  fail_unless_equals_int ((gint) frame ()->count, 3);
  begin_set ();
  fail_unless (is_valid ());
}

CHECK_TEST (test_a_frame_does_not_make_caps_valid)
{
  frame ();
  g_object_set (self, "minimum", 1.0, NULL);
  frame ();
  g_object_set (self, "count", 13, NULL);
  new_caps ();
  fail_if (is_valid ());
  fail_unless_equals_int ((gint) frame ()->count, 3);
  g_object_set (self, "minimum", 5.0, NULL);
  fail_unless_equals_float (frame ()->minimum, 5);
  fail_if (is_valid ());
}

CHECK_TEST (test_a_failing_device_keeps_values_new)
{
  frame ();
  g_object_set (self, "minimum", 70.0, NULL);
  frame (); /* rejected, waits */
  fail_if (is_valid ());
  self->fail_second = TRUE;
  g_object_set (self, "flag", TRUE,
      NULL); /* with minimum: rejected; alone: the device fails */
  check_fails (IMK_ERROR_DEVICE);
  self->fail_second = FALSE;
  fail_unless (frame ()->flag); /* tried again */
}

CHECK_TEST (test_settings_of_a_set_wait_for_it_and_those_of_a_start_say_so)
{
  const Settings *s;

  frame ();
  g_object_set (self, "count", 7, NULL);
  fail_unless_equals_int ((gint) frame ()->count, 3);
  begin_set ();
  fail_unless_equals_int ((gint) frame ()->count, 7);

  gst_element_set_state (GST_ELEMENT (self), GST_STATE_PAUSED);
  g_object_set (self, "label", "later", NULL);
  check_warning (bus, LIBRARY, SETTINGS, "label was set after the start");
  fail_unless (frame ()->name == NULL);
  gst_element_set_state (GST_ELEMENT (self), GST_STATE_NULL);
  gst_imaging_settings_start (self->settings);
  s = frame ();
  fail_unless_equals_string (s->name, "later");
}

CHECK_TEST (test_a_structure_sets_all_or_nothing)
{
  frame ();
  gst_util_set_object_arg (G_OBJECT (self), "settings",
      "settings, minimum=(double)70, maximum=(int)100, mode=plain, flag=true");
  fail_unless_equals_float (frame ()->minimum, 70);
  fail_unless_equals_float (frame ()->maximum, 100);
  fail_unless (frame ()->flag);

  gst_util_set_object_arg (G_OBJECT (self), "settings",
      "settings, minimum=(double)0, maximum=(double)900");
  check_warning (bus, LIBRARY, SETTINGS, "maximum=900, which is out of range");
  fail_unless_equals_float (frame ()->minimum, 70);
  gst_util_set_object_arg (
      G_OBJECT (self), "settings", "settings, minimum=(double)0, colour=blue");
  check_warning (bus, LIBRARY, SETTINGS, "\"colour\", which is not a property");
  fail_unless_equals_float (frame ()->minimum, 70);
}

CHECK_TEST (test_arrays_are_read_from_text_and_back)
{
  GValue value = G_VALUE_INIT;

  fail_unless (frame ()->factors == NULL);
  gst_util_set_object_arg (G_OBJECT (self), "factors", "<1.5, -2.0>");
  fail_unless_equals_int ((gint) frame ()->factors->n, 2);
  fail_unless_equals_float (frame ()->factors->values[1], -2);
  g_value_init (&value, GST_TYPE_ARRAY);
  g_object_get_property (G_OBJECT (self), "factors", &value);
  fail_unless_equals_int ((gint) gst_value_array_get_size (&value), 2);
  g_value_unset (&value);
  gst_util_set_object_arg (G_OBJECT (self), "factors", "<3>");
  fail_unless_equals_int ((gint) frame ()->factors->n, 1);
  fail_unless_equals_float (frame ()->factors->values[0], 3);
  gst_util_set_object_arg (G_OBJECT (self), "factors", "<>");
  fail_unless (frame ()->factors == NULL);
}

CHECK_TEST (test_no_number_is_no_setting)
{
  g_autoptr (GstStructure) s =
      gst_structure_new ("settings", "minimum", G_TYPE_DOUBLE, NAN, NULL);

  frame ();
  g_object_set (self, "settings", s, NULL);
  fail_unless_equals_float (frame ()->minimum, 0);
  check_warning (bus, LIBRARY, SETTINGS, "minimum=nan, which is out of range");
}

CHECK_TEST (test_controlled_values_take_the_same_way)
{
  GstControlSource *source = gst_interpolation_control_source_new ();

  g_object_set (source, "mode", GST_INTERPOLATION_MODE_LINEAR, NULL);
  gst_timed_value_control_source_set (
      GST_TIMED_VALUE_CONTROL_SOURCE (source), 0, 0);
  gst_timed_value_control_source_set (
      GST_TIMED_VALUE_CONTROL_SOURCE (source), 10 * GST_SECOND, 100);
  gst_object_add_control_binding (
      GST_OBJECT (self), gst_direct_control_binding_new_absolute (
                             GST_OBJECT (self), "minimum", source));
  for (guint t = 0; t <= 10; t++) {
    const Settings *s;

    check_ok (update (GST_IMAGING_WHEN_LIVE, t * GST_SECOND), &error);
    s = gst_imaging_settings_now (self->settings);
    fail_unless_equals_float (s->minimum, MIN (t * 10.0, 50)); /* max is 60 */
  }
  fail_unless_equals_int (check_count_messages (bus, GST_MESSAGE_WARNING), 5);
  gst_object_unref (source);
}

/* Each kind is set, read back, used, described, and named in a warning. */
CHECK_TEST (test_every_kind_of_setting)
{
  static const struct {
    const gchar *name, *initial, *text, *read, *json;
  } kinds[] = {
      {"minimum", "0", "0.25", "0.25", "\"type\":\"double\""},
      {"count", "3", "7", "7", "\"type\":\"int\",\"minimum\":1,"},
      {"mode", "plain", "plain", "plain", "\"type\":\"enum\""},
      {"label", NULL, "x", "x", "\"type\":\"string\""},
      {"flag", "false", "true", "true", "\"type\":\"boolean\""},
      {"byte-flag", "false", "true", "true", "\"type\":\"boolean\""},
      {"offset", "-2", "-9", "-9",
          "\"type\":\"int\",\"minimum\":-9,\"maximum\":9,\"default\":-2"},
      {"wide", "18446744073709551615", "9007199254740993", "9007199254740993",
          "\"default\":18446744073709551615"},
      {"parts", "Cells+Text", "arrows", "Arrows", "\"nick\":\"arrows\""},
      {"rate", "25/1", "30000/1001", "30000/1001", "\"default\":\"25/1\""},
      {"order", "<  >", "<2, 0>", "< (int)2, (int)0 >", "\"type\":\"array\""},
      {"factors", "<  >", "<0.5>", "< (double)0.5 >", "\"type\":\"array\""},
  };
  g_autofree gchar *json =
      gst_imaging_settings_describe (test_settled_get_type ());

  frame ();
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    GParamSpec *spec =
        g_object_class_find_property (G_OBJECT_GET_CLASS (self), kinds[i].name);
    g_autofree gchar *start =
        g_strdup_printf ("{\"name\":\"%s\",", kinds[i].name);
    const gchar *described = strstr (json, start), *end;
    g_autofree gchar *entry = NULL;

    for (guint k = 0; k < 2; k++) {
      g_auto (GValue) value = G_VALUE_INIT;
      g_autofree gchar *text = NULL;

      if (k)
        gst_util_set_object_arg (G_OBJECT (self), kinds[i].name, kinds[i].text);
      g_value_init (&value, spec->value_type);
      g_object_get_property (G_OBJECT (self), kinds[i].name, &value);
      text = gst_value_serialize (&value);
      fail_unless (g_strcmp0 (text, k ? kinds[i].read : kinds[i].initial) == 0,
          "%s is %s", kinds[i].name, text);
    }
    fail_unless (described != NULL, "%s is not described", kinds[i].name);
    end = strstr (described, "\"name\":\"");
    end = strstr (end + 1, "{\"name\":\"");
    entry = g_strndup (
        described, end ? (gsize) (end - described) : strlen (described));
    fail_unless (strstr (entry, kinds[i].json), "%s", entry);
  }
  fail_unless (frame ()->minimum == 0.25 && frame ()->byte_flag &&
               frame ()->offset == -9 && frame ()->parts == 2 &&
               frame ()->wide == 9007199254740993u &&
               frame ()->rate.n == 30000 && frame ()->rate.d == 1001 &&
               frame ()->order->values[0] == 2 &&
               frame ()->count == 3); /* of the next set */
}

/* --- the hash ------------------------------------------------------------- */

static gchar *
hash_of (void)
{
  gchar *hash;

  frame ();
  g_object_get (self, "settings-hash", &hash, NULL);
  fail_unless_equals_string (hash, gst_imaging_settings_hash (self->settings));
  return hash;
}

/* Whoever has the text finds the same hash, in another year and on another
 * host. */
CHECK_TEST (test_the_hash_is_of_a_text_that_anybody_can_write)
{
  static const gchar text[] = "gst-imaging-settings-v1 TestSettled\n"
                              "byte-flag=false\n"
                              "count=3\n"
                              "factors=\n"
                              "flag=false\n"
                              "label=\n"
                              "maximum=60\n"
                              "minimum=0\n"
                              "mode=plain\n"
                              "offset=-2\n"
                              "order=\n"
                              "parts=5\n"
                              "path=\n"
                              "rate=25/1\n"
                              "wide=18446744073709551615\n";
  g_autofree gchar *expected =
      g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);
  g_autofree gchar *before = NULL, *hash = NULL;

  g_object_get (self, "settings-hash", &before, NULL);
  fail_unless (before == NULL);
  fail_unless (gst_imaging_settings_hash (self->settings) == NULL);
  hash = hash_of ();
  fail_unless_equals_string (hash, expected);
}

CHECK_TEST (test_every_setting_that_counts_changes_the_hash)
{
  static const gchar *const values[][2] = {{"minimum", "0.1"},
      {"maximum", "60.000000000000007"}, {"mode", "file"}, {"path", NULL},
      {"factors", "<0.5, -1.0>"}, {"label", "a\nb"}, {"flag", "true"},
      {"byte-flag", "true"}, {"offset", "-9"}, {"wide", "9007199254740993"},
      {"parts", "arrows"}, {"rate", "30000/1001"}, {"order", "<2, 0>"},
      /* digits of two numbers are not those of one */
      {"factors", "<1.0, 0.0>"}, {"factors", "<10.0>"}};
  g_autoptr (GHashTable) seen =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (guint i = 0; i < G_N_ELEMENTS (values); i++) {
    g_autofree gchar *path = check_path_of ("data");

    check_write_file ("data", "one", -1);
    g_hash_table_add (seen, hash_of ());
    n_notified = 0;
    g_signal_connect (
        self, "notify::settings-hash", G_CALLBACK (count_notify), NULL);
    if (g_str_equal (values[i][0], "mode")) /* it needs a path */
      g_object_set (self, "path", path, NULL);
    gst_util_set_object_arg (
        G_OBJECT (self), values[i][0], values[i][1] ? values[i][1] : path);
    gst_imaging_settings_start (self->settings); /* for label */
    fail_unless (g_hash_table_add (seen, hash_of ()), "%s", values[i][0]);
    fail_unless_equals_int ((gint) n_notified, 1);
    tear_down ();
    set_up ();
  }
  fail_unless_equals_int (
      (gint) g_hash_table_size (seen), G_N_ELEMENTS (values) + 1);
}

CHECK_TEST (test_the_hash_has_the_content_of_files_not_their_names)
{
  g_autofree gchar *one = check_path_of ("one"), *same = check_path_of ("same");
  g_autofree gchar *hash = NULL, *again = NULL, *renamed = NULL, *other = NULL;
  g_autofree gchar *made = NULL, *saved = NULL;
  const gdouble numbers[] = {1, 2}, others[] = {1, 3};

  check_write_file ("one", "1", -1);
  check_write_file ("same", "1", -1);
  g_object_set (self, "path", one, NULL);
  hash = hash_of ();
  g_object_set (self, "path", one, NULL);
  again = hash_of ();
  fail_unless_equals_string (again, hash);
  g_object_set (self, "path", same, NULL);
  renamed = hash_of ();
  fail_unless_equals_string (renamed, hash);
  check_write_file ("same", "2", -1);
  g_object_set (self, "path", same, NULL);
  other = hash_of ();
  fail_if (g_str_equal (other, hash));

  /* what the element made itself: as the file where it was saved */
  gst_imaging_settings_put_file (
      self->settings, "path", one, g_strdup ("1"), numbers, 2);
  saved = hash_of ();
  fail_unless_equals_string (saved, hash);
  gst_imaging_settings_put_file (
      self->settings, "path", NULL, g_strdup ("1"), numbers, 2);
  made = hash_of ();
  fail_if (g_str_equal (made, hash));
  gst_imaging_settings_put_file (
      self->settings, "path", NULL, g_strdup ("1"), others, 2);
  g_free (saved);
  saved = hash_of ();
  fail_if (g_str_equal (saved, made));
}

CHECK_TEST (test_the_hash_leaves_out_how_and_where)
{
  g_autofree gchar *hash = hash_of (), *same = NULL, *rejected = NULL;
  g_autofree gchar *zero = NULL;

  g_object_set (self, "n-jobs", 4, "name-only", "/nonexistent/file", NULL);
  same = hash_of ();
  fail_unless_equals_string (same, hash);
  g_object_set (self, "minimum", -0.0, NULL);
  zero = hash_of ();
  fail_unless_equals_string (zero, hash);
  g_object_set (self, "minimum", 70.0, NULL); /* above the maximum: not used */
  rejected = hash_of ();
  fail_unless_equals_string (rejected, hash);
  fail_if (is_valid ());
}

CHECK_TEST (test_the_table_describes_itself)
{
  gchar *json = gst_imaging_settings_describe (test_settled_get_type ());

  fail_unless (strstr (json,
      "{\"name\":\"minimum\",\"type\":\"double\",\"minimum\":-200,"
      "\"maximum\":300,\"default\":0,\"when\":\"frame\",\"unit\":\"dB\","
      "\"blurb\":\"Black\"}"));
  fail_unless (strstr (json, "{\"name\":\"count\",\"type\":\"int\","
                             "\"minimum\":1,\"maximum\":100,\"default\":3,"
                             "\"when\":\"set\""));
  fail_unless (strstr (json, "\"name\":\"path\",\"type\":\"path\""));
  fail_unless (strstr (json, "\"values\":[{\"value\":0,\"nick\":\"plain\","));
  fail_unless (strstr (json, "\"when\":\"start\",\"blurb\":\"A \\\"label"));
  fail_unless (strstr (json, "\"when\":\"frame\",\"written\":true,"
                             "\"blurb\":\"What is written\""));
  fail_if (strstr (json, "\"parent\""));
  g_free (json);
  fail_unless (gst_imaging_settings_describe (G_TYPE_OBJECT) == NULL);
  fail_unless (gst_imaging_settings_describe (GST_TYPE_PIPELINE) == NULL);
}

CHECK_TEST (test_actions_describe_themselves)
{
  gchar *json = gst_imaging_actions_describe (test_settled_get_type ());

  fail_unless_equals_string (json,
      "[\n{\"name\":\"capture\",\"blurb\":\"A \\\"mean\\\"\",\"arguments\":["
      "{\"name\":\"n-frames\",\"type\":\"int\"},"
      "{\"name\":\"location\",\"type\":\"path\"}],"
      "\"files\":[\"path\",\"name-only\"]},"
      "\n{\"name\":\"clear\",\"blurb\":\"Nothing\",\"arguments\":[],"
      "\"files\":[]}]\n");
  g_free (json);
  json = gst_imaging_actions_describe (GST_TYPE_PIPELINE);
  fail_unless_equals_string (json, "[]\n");
  g_free (json);
  json = gst_imaging_actions_describe (G_TYPE_OBJECT);
  fail_unless_equals_string (json, "[]\n");
  g_free (json);
}

CHECK_TEST (test_actions_call_their_handlers)
{
  gboolean ok = FALSE;

  g_signal_emit_by_name (self, "capture", 7u, "mean.npy", &ok);
  fail_unless (ok);
  fail_unless_equals_int (n_captured, 7);
  fail_unless_equals_string (captured_to, "mean.npy");
  g_signal_emit_by_name (self, "capture", 1u, NULL, &ok);
  fail_if (ok);
  fail_unless (captured_to == NULL);
  g_signal_emit_by_name (self, "clear");
  fail_unless_equals_int (n_captured, 0);
}

/* A number would be taken for the pointer of a text. */
CHECK_TEST (test_actions_take_no_arguments_of_other_kinds)
{
  static const GstImagingAction wrong[] = {
      {"move", G_CALLBACK (g_object_ref), G_TYPE_NONE,
          {{"by", GST_IMAGING_KIND_BOOLEAN}}, {NULL}, "Moves"},
      {NULL},
  };
  GstElementClass *klass = g_type_class_ref (GST_TYPE_PIPELINE);

  g_test_expect_message (NULL, G_LOG_LEVEL_CRITICAL, "*actions_install*kinds*");
  gst_imaging_actions_install (G_OBJECT_CLASS (klass), wrong);
  g_test_assert_expected_messages ();
  fail_if (g_signal_lookup ("move", GST_TYPE_PIPELINE));
  g_type_class_unref (klass);
}

/* --- two threads ---------------------------------------------------------- */

typedef struct {
  TestSettled *element;
  gint stop; /* atomic */
} Setter;

static gpointer
set_again_and_again (gpointer data)
{
  Setter *setter = data;
  gboolean high = FALSE;

  while (!g_atomic_int_get (&setter->stop)) {
    GstStructure *s = gst_structure_new ("settings", "minimum", G_TYPE_DOUBLE,
        high ? 70.0 : 0.0, "maximum", G_TYPE_DOUBLE, high ? 100.0 : 60.0, NULL);

    g_object_set (setter->element, "settings", s, NULL);
    gst_structure_free (s);
    high = !high;
  }
  return NULL;
}

CHECK_TEST (test_no_frame_sees_half_of_a_structure)
{
  Setter setter = {self, 0};
  GThread *thread = g_thread_new ("setter", set_again_and_again, &setter);
  guint n_low = 0, n_high = 0;

  for (guint i = 0; i < 20000 || !n_low || !n_high; i++) {
    const Settings *s = frame ();

    fail_unless_equals_float (s->maximum - s->minimum, s->minimum ? 30 : 60);
    n_low += s->minimum == 0;
    n_high += s->minimum != 0;
  }
  g_atomic_int_set (&setter.stop, 1);
  g_thread_join (thread);
  check_no_messages (bus, GST_MESSAGE_WARNING);
}
