/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-shreconstruct
 * @title: shreconstruct
 * @short_description: commands of a deformable mirror from slopes
 *
 * Multiplies the slopes of shcentroid with a control matrix and runs a
 * controller for each mode. The output are the commands of the mirror.
 *
 * It takes slopes from the metadata of frames, or from the pad results of
 * shcentroid with fields=slopes. docs/reference/shreconstruct.md has the
 * formulas.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 picturesrc location=spots.npy ! shcentroid columns=7 rows=7
 * pitch-x=7 pitch-y=7 fields=slopes ! shreconstruct matrix-location=control.npy
 * gain=0.4 ! picturesink location=commands.npy
 * ]|
 */
#include "gstshreconstruct.h"

#include "gstimagingengine.h"
#include "gstimagingmetadata.h"
#include "gstimagingquantity.h"
#include "gstimagingresults.h"
#include "gstshreconstructsettings.h"
#include "gstshreconstructslopes.h"

GST_DEBUG_CATEGORY_STATIC (shreconstruct_debug);
#define GST_CAT_DEFAULT shreconstruct_debug

struct _GstShReconstruct {
  GstElement parent;
  GstImagingEngine *engine;
  GstImagingSettings *settings; /* not owned */
  GstPad *sinkpad, *srcpad;

  gint wants_reset; /* atomic */

  /* of the streaming thread */
  ImkShreconstruct *kernel, *before; /* @before: whose state is taken over */
  guint n_cells, n_modes, n_commands;
  guint n_input; /* cells of the sensor; 0 while they are not known */
  gboolean is_tensor;
  gint fps_n, fps_d;
  guint n_sent; /* commands of the caps that were sent; 0 before */
  GstBufferPool *pool;
  gboolean is_dark; /* of the frame before */
};

#define TENSOR_CAPS "other/tensors, format = (string) static, "

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (TENSOR_CAPS
        "num_tensors = (int) 2, types = (string) \"float32,uint8\"; " TENSOR_CAPS
        "num_tensors = (int) 1, types = (string) float32; "
        "video/x-raw; video/x-raw(ANY)"));

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (
            TENSOR_CAPS "num_tensors = (int) 1, types = (string) float32"));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstShReconstruct, gst_sh_reconstruct,
    GST_TYPE_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        shreconstruct_debug, "shreconstruct", 0, "commands of a mirror"))
GST_ELEMENT_REGISTER_DEFINE (
    shreconstruct, "shreconstruct", GST_RANK_NONE, GST_TYPE_SH_RECONSTRUCT)

enum { SIGNAL_RESET, N_SIGNALS };
static guint signals[N_SIGNALS];

/* --- the kernel ----------------------------------------------------------- */

/* Its state is kept for the next one. */
static void
close_kernel (GstElement *element)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (element);

  if (!self->kernel)
    return;
  imk_shreconstruct_free (self->before);
  self->before = self->kernel;
  self->kernel = NULL;
}

/* Keeps the current kernel on failure. */
static ImkStatus
open_kernel (GstElement *element, ImkBackend backend, const GstVideoInfo *info,
    ImkError *error)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (element);
  ImkShreconstruct *kernel = NULL;
  GstShReconstructPlan plan;
  ImkStatus status = gst_sh_reconstruct_plan (
      gst_imaging_settings_now (self->settings), &plan, error);

  plan.config.n_threads = gst_imaging_engine_n_threads (self->engine);
  if (status == IMK_OK && self->n_input && self->n_input != plan.config.n_cells)
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "The sensor has %u cells and the control matrix is made for %u. Use "
        "the matrix of this sensor.",
        self->n_input, plan.config.n_cells);
  if (status == IMK_OK)
    status = imk_shreconstruct_new (backend, &plan.config, &kernel, error);
  if (status == IMK_OK) {
    close_kernel (element);
    self->kernel = kernel;
    self->n_cells = plan.config.n_cells;
    self->n_modes = plan.config.n_modes;
    self->n_commands = plan.config.n_commands;
    if (self->before)
      imk_shreconstruct_take_state (kernel, self->before);
  }
  gst_sh_reconstruct_plan_clear (&plan);
  return status;
}

ImkStatus
gst_sh_reconstruct_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  if (before && !(groups & GST_SH_RECONSTRUCT_KERNEL))
    return IMK_OK;
  return gst_imaging_engine_renew (GST_SH_RECONSTRUCT (element)->engine, error);
}

/* --- caps ------------------------------------------------------------------
 */

static gboolean
make_pool (GstShReconstruct *self, GstCaps *caps)
{
  GstStructure *config;

  if (self->pool)
    gst_buffer_pool_set_active (self->pool, FALSE);
  gst_clear_object (&self->pool);
  self->pool = gst_buffer_pool_new ();
  config = gst_buffer_pool_get_config (self->pool);
  gst_buffer_pool_config_set_params (
      config, caps, self->n_commands * (guint) sizeof (gfloat), 0, 0);
  return gst_buffer_pool_set_config (self->pool, config) &&
         gst_buffer_pool_set_active (self->pool, TRUE);
}

/* Another matrix may have other commands. */
static gboolean
send_caps (GstShReconstruct *self)
{
  g_autofree gchar *dimensions = g_strdup_printf ("%u:1:1:1", self->n_commands);
  GstCaps *caps;
  gboolean ok;

  if (self->n_sent == self->n_commands)
    return TRUE;
  caps = gst_caps_new_simple ("other/tensors", "format", G_TYPE_STRING,
      "static", "num_tensors", G_TYPE_INT, 1, "types", G_TYPE_STRING, "float32",
      "dimensions", G_TYPE_STRING, dimensions, "framerate", GST_TYPE_FRACTION,
      self->fps_n, self->fps_d, NULL);
  ok = make_pool (self, caps) &&
       gst_pad_push_event (self->srcpad, gst_event_new_caps (caps));
  gst_caps_unref (caps);
  if (ok)
    self->n_sent = self->n_commands;
  return ok;
}

static gboolean
set_caps (GstShReconstruct *self, GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);

  self->is_tensor = gst_structure_has_name (s, "other/tensors");
  self->fps_n = 0;
  self->fps_d = 1;
  gst_structure_get_fraction (s, "framerate", &self->fps_n, &self->fps_d);
  self->n_sent = 0; /* the frame rate may be another one */
  self->n_input = gst_sh_reconstruct_cells_of_caps (caps);
  if (self->is_tensor && self->n_input == 0) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("These tensors are no slopes. Set fields=slopes on shcentroid."),
        ("%" GST_PTR_FORMAT, caps));
    return FALSE;
  }
  return gst_imaging_engine_set_caps (self->engine, caps, NULL) &&
         send_caps (self);
}

/* --- frames ----------------------------------------------------------------
 */

/* Coefficients of the modes, and what was done, as metadata. */
static void
attach_results (GstShReconstruct *self, GstBuffer *out,
    const ImkShreconstructReport *report, gboolean is_closed)
{
  static const gchar *const fields[] = {"coefficient"}, *const units[] = {""};
  const double *q = imk_shreconstruct_coefficients (self->kernel);
  gfloat *numbers = g_new (gfloat, self->n_modes);
  GstStructure *more = gst_structure_new ("more", "cells-valid", G_TYPE_UINT,
      report->n_valid, "commands-limited", G_TYPE_UINT, report->n_limited,
      "low-light", G_TYPE_BOOLEAN, (gboolean) report->is_dark, "closed",
      G_TYPE_BOOLEAN, is_closed, NULL);
  GstImagingResult result = {.id = "ao-modes-v1",
      .fields = fields,
      .units = units,
      .n_fields = 1,
      .n_rows = self->n_modes,
      .frame = GST_BUFFER_OFFSET_IS_VALID (out)
                   ? GST_BUFFER_OFFSET (out)
                   : gst_imaging_engine_frame_number (self->engine),
      .origin = gst_imaging_engine_origin (self->engine),
      .more = more};

  for (guint i = 0; i < self->n_modes; i++)
    numbers[i] = (gfloat) q[i];
  result.data =
      gst_buffer_new_wrapped (numbers, self->n_modes * sizeof (gfloat));
  gst_imaging_results_attach (out, GST_OBJECT_NAME (self), &result);
  gst_buffer_unref (result.data);
  gst_structure_free (more);
}

/* Where light goes and where it comes back. */
static void
report_light (GstShReconstruct *self, const ImkShreconstructReport *report)
{
  if (self->is_dark == report->is_dark)
    return;
  self->is_dark = report->is_dark;
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("shreconstruct-light", "low-light", G_TYPE_BOOLEAN,
              self->is_dark, "cells-valid", G_TYPE_UINT, report->n_valid,
              "cells", G_TYPE_UINT, self->n_cells, NULL)));
}

static ImkStatus
compute (GstShReconstruct *self, GstBuffer *in, gfloat *commands,
    ImkShreconstructReport *report, gboolean *is_closed, ImkError *error)
{
  const GstShReconstructSettings *s = gst_imaging_settings_now (self->settings);
  GstShReconstructSlopes slopes;
  ImkStatus status = gst_sh_reconstruct_slopes_open (
      &slopes, in, self->is_tensor, s->results, self->n_cells, error);

  if (status != IMK_OK)
    return status;
  self->n_input = self->n_cells;
  if (g_atomic_int_compare_and_exchange (&self->wants_reset, TRUE, FALSE) ||
      s->loop == GST_SH_RECONSTRUCT_LOOP_OPEN)
    imk_shreconstruct_reset (self->kernel);
  *is_closed = s->loop == GST_SH_RECONSTRUCT_LOOP_CLOSED && !s->freeze;
  if (*is_closed)
    imk_shreconstruct_process (
        self->kernel, slopes.slopes, slopes.flags, commands, report);
  else
    imk_shreconstruct_commands (self->kernel, commands);
  gst_sh_reconstruct_slopes_close (&slopes);
  return IMK_OK;
}

/* Returns: commands, or NULL with @flow set */
static GstBuffer *
make_output (GstShReconstruct *self, GstBuffer *in, GstFlowReturn *flow)
{
  ImkShreconstructReport report = {.n_valid = 0};
  GstBuffer *out = NULL;
  gboolean is_closed;
  ImkStatus status;
  ImkError error;
  GstMapInfo map;

  *flow = gst_buffer_pool_acquire_buffer (self->pool, &out, NULL);
  if (*flow != GST_FLOW_OK)
    return NULL;
  gst_buffer_map (out, &map, GST_MAP_WRITE); /* our memory: cannot fail */
  status = compute (
      self, in, (gfloat *) (gpointer) map.data, &report, &is_closed, &error);
  gst_buffer_unmap (out, &map);
  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->engine, status, &error);
    gst_buffer_unref (out);
    *flow = GST_FLOW_ERROR;
    return NULL;
  }
  gst_imaging_metadata_pass (out, in, FALSE);
  attach_results (self, out, &report, is_closed);
  gst_imaging_engine_sign (self->engine, out);
  if (is_closed)
    report_light (self, &report);
  return out;
}

static GstFlowReturn
gst_sh_reconstruct_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (parent);
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_NOT_NEGOTIATED;
  GstBuffer *out = NULL;

  if (self->n_sent == 0)
    GST_ELEMENT_ERROR (self, CORE, NEGOTIATION,
        ("Slopes came before their caps. Put shcentroid before shreconstruct."),
        (NULL));
  else if (!gst_imaging_settings_take (self->settings, GST_IMAGING_WHEN_LIVE,
               gst_imaging_settings_stream_time (pad, buffer)))
    flow = GST_FLOW_ERROR;
  else if (send_caps (self))
    out = make_output (self, buffer, &flow);
  gst_buffer_unref (buffer);
  if (!out)
    return flow;
  gst_imaging_engine_count_frame (self->engine, entered);
  return gst_pad_push (self->srcpad, out);
}

/* --- events and queries ----------------------------------------------------
 */

static gboolean
gst_sh_reconstruct_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (parent);
  GstCaps *caps;
  gboolean ok;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    ok = set_caps (self, caps);
    gst_event_unref (event);
    return ok;
  case GST_EVENT_FLUSH_STOP:
    g_atomic_int_set (&self->wants_reset, TRUE);
    break;
  default:
    break;
  }
  return gst_pad_event_default (pad, parent, event);
}

static gboolean
gst_sh_reconstruct_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstCaps *filter, *caps, *found;

  if (gst_imaging_engine_query (GST_SH_RECONSTRUCT (parent)->engine, query))
    return TRUE;
  if (GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION)
    return FALSE; /* slopes are read wherever they are */
  if (GST_QUERY_TYPE (query) != GST_QUERY_CAPS)
    return gst_pad_query_default (pad, parent, query);
  /* the template: slopes and commands differ in size */
  gst_query_parse_caps (query, &filter);
  caps = gst_pad_get_pad_template_caps (pad);
  found = filter
              ? gst_caps_intersect_full (filter, caps, GST_CAPS_INTERSECT_FIRST)
              : gst_caps_ref (caps);
  gst_query_set_caps_result (query, found);
  gst_caps_unref (found);
  gst_caps_unref (caps);
  return TRUE;
}

/* --- states ----------------------------------------------------------------
 */

static void
stop (GstShReconstruct *self)
{
  gst_imaging_engine_stop (self->engine);
  g_clear_pointer (&self->before, imk_shreconstruct_free);
  if (self->pool)
    gst_buffer_pool_set_active (self->pool, FALSE);
  gst_clear_object (&self->pool);
  self->n_sent = 0;
  self->is_dark = FALSE;
  g_atomic_int_set (&self->wants_reset, FALSE);
}

static GstStateChangeReturn
gst_sh_reconstruct_change_state (GstElement *element, GstStateChange transition)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (element);
  GstStateChangeReturn result;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED &&
      !gst_imaging_engine_start (self->engine))
    return GST_STATE_CHANGE_FAILURE;
  result = GST_ELEMENT_CLASS (gst_sh_reconstruct_parent_class)
               ->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY ||
      (transition == GST_STATE_CHANGE_READY_TO_PAUSED &&
          result == GST_STATE_CHANGE_FAILURE))
    stop (self);
  return result;
}

static void
gst_sh_reconstruct_set_context (GstElement *element, GstContext *context)
{
  gst_imaging_engine_set_context (
      GST_SH_RECONSTRUCT (element)->engine, context);
  GST_ELEMENT_CLASS (gst_sh_reconstruct_parent_class)
      ->set_context (element, context);
}

/* --- the object ------------------------------------------------------------
 */

static void
reset (GstShReconstruct *self)
{
  g_atomic_int_set (&self->wants_reset, TRUE);
}

static void
gst_sh_reconstruct_finalize (GObject *object)
{
  gst_imaging_engine_free (GST_SH_RECONSTRUCT (object)->engine);
  G_OBJECT_CLASS (gst_sh_reconstruct_parent_class)->finalize (object);
}

static void
gst_sh_reconstruct_class_init (GstShReconstructClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->finalize = gst_sh_reconstruct_finalize;
  element_class->change_state = gst_sh_reconstruct_change_state;
  element_class->set_context = gst_sh_reconstruct_set_context;

  gst_imaging_settings_install (object_class, &gst_sh_reconstruct_table);

  /**
   * GstShReconstruct::reset:
   * @self: the element
   *
   * Before the next frame the controller forgets the past, and the mirror
   * begins at the reference commands. Any thread.
   */
  signals[SIGNAL_RESET] = g_signal_new_class_handler ("reset",
      G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION,
      G_CALLBACK (reset), NULL, NULL, NULL, G_TYPE_NONE, 0);

  gst_element_class_set_static_metadata (element_class,
      "Wavefront reconstructor and controller", "Filter/Analyzer",
      "Makes the commands of a deformable mirror from Shack-Hartmann slopes",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
}

static void
gst_sh_reconstruct_init (GstShReconstruct *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = open_kernel,
      .close = close_kernel,
  };

  self->engine = gst_imaging_engine_new (GST_ELEMENT (self), &funcs);
  self->settings = gst_imaging_settings_new (
      GST_ELEMENT (self), &gst_sh_reconstruct_table, self->engine);

  self->sinkpad = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sinkpad, gst_sh_reconstruct_chain);
  gst_pad_set_event_function (self->sinkpad, gst_sh_reconstruct_sink_event);
  gst_pad_set_query_function (self->sinkpad, gst_sh_reconstruct_query);
  gst_element_add_pad (GST_ELEMENT (self), self->sinkpad);

  self->srcpad = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_use_fixed_caps (self->srcpad);
  gst_pad_set_query_function (self->srcpad, gst_sh_reconstruct_query);
  gst_element_add_pad (GST_ELEMENT (self), self->srcpad);
}
