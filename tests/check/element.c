/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GstImagingElement, by a subclass that counts what it is asked. What needs a
 * context of the device, check-cuda tests. */
#include "check-common.h"

#include "gstimagingelement.h"

/* --- the element ---------------------------------------------------------- */

typedef struct {
  GstImagingElement base;
  gboolean is_open, refuses_start, refuses_pads;
  guint n_started, n_stopped;
} TestElement;

typedef GstImagingElementClass TestElementClass;
static GType test_element_get_type (void);
G_DEFINE_TYPE (TestElement, test_element, GST_TYPE_IMAGING_ELEMENT)

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS ("video/x-raw"));
static GstStaticPadTemplate output_template = GST_STATIC_PAD_TEMPLATE (
    "output", GST_PAD_SRC, GST_PAD_REQUEST, GST_STATIC_CAPS ("video/x-raw"));

typedef struct {
  gdouble gain;
} Settings;

static const GstImagingSetting settings[] = {
    GST_IMAGING_DOUBLE (
        "gain", LIVE, 0, Settings, gain, 0, 9, NULL, "Factor of each sample"),
};

static void
init_settings (gpointer data)
{
  ((Settings *) data)->gain = 2;
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .has_engine = TRUE,
    .init = init_settings,
};

static ImkStatus
open_kernel (GstElement *element, ImkBackend backend, const GstVideoInfo *info,
    ImkError *error)
{
  ((TestElement *) element)->is_open = TRUE;
  return IMK_OK;
}

static void
close_kernel (GstElement *element)
{
  ((TestElement *) element)->is_open = FALSE;
}

static gboolean
test_element_start (GstElement *element)
{
  TestElement *self = (TestElement *) element;

  self->n_started++;
  return !self->refuses_start &&
         GST_IMAGING_ELEMENT_CLASS (test_element_parent_class)->start (element);
}

static void
test_element_stop (GstElement *element)
{
  ((TestElement *) element)->n_stopped++;
  GST_IMAGING_ELEMENT_CLASS (test_element_parent_class)->stop (element);
}

static gboolean
activate_mode (GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active)
{
  return !active || !((TestElement *) parent)->refuses_pads;
}

static void
test_element_class_init (TestElementClass *klass)
{
  klass->start = test_element_start;
  klass->stop = test_element_stop;
  gst_imaging_settings_install (G_OBJECT_CLASS (klass), &table);
  gst_element_class_add_static_pad_template (
      GST_ELEMENT_CLASS (klass), &sink_template);
  gst_element_class_add_static_pad_template (
      GST_ELEMENT_CLASS (klass), &output_template);
}

static void
test_element_init (TestElement *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = open_kernel,
      .close = close_kernel,
  };
  static const gchar *const names[] = {"output"};

  gst_imaging_element_set_up (&self->base, &funcs, &table);
  gst_imaging_element_add_outputs (&self->base, names, 1, NULL);
  gst_pad_set_activatemode_function (
      gst_imaging_element_add_pad (&self->base, &sink_template), activate_mode);
}

/* --- tests ---------------------------------------------------------------- */

static TestElement *
element_new (void)
{
  TestElement *self = g_object_new (test_element_get_type (), NULL);

  gst_object_ref_sink (self);
  return self;
}

static void
element_free (TestElement *self)
{
  gst_element_set_state (GST_ELEMENT (self), GST_STATE_NULL);
  gst_object_unref (self);
  fail_unless_equals_int (check_n_live (), 0);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TestElement, element_free)

/* Fails unless the change to PAUSED ends with @expected, after so many calls of
 * start () and stop () in all. */
static void
pause (TestElement *self, GstStateChangeReturn expected, guint n_started,
    guint n_stopped)
{
  fail_unless_equals_int (
      gst_element_set_state (GST_ELEMENT (self), GST_STATE_PAUSED), expected);
  fail_unless_equals_int (self->n_started, n_started);
  fail_unless_equals_int (self->n_stopped, n_stopped);
}

CHECK_TEST (test_each_start_has_its_stop)
{
  g_autoptr (TestElement) self = element_new ();

  for (guint i = 0; i < 3; i++) {
    g_autoptr (GstCaps) caps = gst_caps_from_string (
        "video/x-raw,format=GRAY8,width=4,height=2,framerate=1/1");

    pause (self, GST_STATE_CHANGE_SUCCESS, i + 1, i);
    fail_unless (gst_imaging_engine_set_caps (self->base.engine, caps, NULL));
    fail_unless (self->is_open);
    gst_element_set_state (GST_ELEMENT (self), GST_STATE_READY);
    fail_unless_equals_int (self->n_stopped, i + 1);
    fail_if (self->is_open);
  }
}

CHECK_TEST (test_without_a_start_there_is_no_stop)
{
  g_autoptr (TestElement) self = element_new ();

  self->refuses_start = TRUE;
  pause (self, GST_STATE_CHANGE_FAILURE, 1, 0);
  self->refuses_start = FALSE;
  pause (self, GST_STATE_CHANGE_SUCCESS, 2, 0);
}

/* Without a device the engine does not start. */
CHECK_MOCK_TEST (test_an_engine_that_does_not_start_is_a_failure)
{
  g_autoptr (TestElement) self = NULL;

  g_setenv ("IMK_MOCK_DEVICES", "0", TRUE);
  self = element_new ();
  g_object_set (self, "backend", GST_IMAGING_BACKEND_CUDA, NULL);
  pause (self, GST_STATE_CHANGE_FAILURE, 1, 0);
}

CHECK_TEST (test_pads_that_refuse_are_a_stop)
{
  g_autoptr (TestElement) self = element_new ();

  self->refuses_pads = TRUE;
  pause (self, GST_STATE_CHANGE_FAILURE, 1, 1);
  self->refuses_pads = FALSE;
  pause (self, GST_STATE_CHANGE_SUCCESS, 2, 1);
}

CHECK_TEST (test_outputs_are_requested_and_released)
{
  g_autoptr (TestElement) self = element_new ();
  GstElement *element = GST_ELEMENT (self);

  for (guint i = 0; i < 2; i++) {
    GstPad *pad = gst_element_request_pad_simple (element, "output");

    fail_unless (pad != NULL);
    fail_unless_equals_int (element->numsrcpads, 1);
    gst_element_release_request_pad (element, pad);
    gst_object_unref (pad);
    fail_unless_equals_int (element->numsrcpads, 0);
  }
}

CHECK_TEST (test_it_has_the_properties_of_engine_and_table)
{
  g_autoptr (TestElement) self = element_new ();
  gdouble gain;
  gint backend;

  g_object_set (self, "backend", GST_IMAGING_BACKEND_CPU, "gain", 3.0, NULL);
  g_object_get (self, "backend", &backend, "gain", &gain, NULL);
  fail_unless_equals_int (backend, GST_IMAGING_BACKEND_CPU);
  fail_unless_equals_float (gain, 3);
}
