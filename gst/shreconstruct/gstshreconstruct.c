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
 * shcentroid with fields=slopes. The request pads mirror_0 to mirror_3 split
 * the commands over several mirrors, wavefront is the wavefront by the lenslet
 * grid alone, and results has the coefficients of the modes as text.
 * docs/reference/shreconstruct.md has the formulas.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 picturesrc location=spots.npy ! shcentroid columns=7 rows=7
 * pitch-x=7 pitch-y=7 fields=slopes ! shreconstruct matrix-location=control.npy
 * gain=0.4 ! picturesink location=commands.npy
 * ]|
 */
#include "gstshreconstruct.h"

#include "gstimagingaction.h"
#include "gstimagingnumbering.h"
#include "gstshreconstructlight.h"
#include "gstshreconstructloop.h"
#include "gstshreconstructrealtime.h"
#include "gstshreconstructresults.h"
#include "gstshreconstructsource.h"
#include "gstshreconstructwavefront.h"
#include "shcentroid/gstshcentroidhandover.h"

GST_DEBUG_CATEGORY_STATIC (shreconstruct_debug);
#define GST_CAT_DEFAULT shreconstruct_debug

struct _GstShReconstruct {
  GstImagingElement base;
  GstPad *sinkpad;
  GstShReconstructOutputs *outputs;
  GstShReconstructMirrors *mirrors;
  GstShReconstructCalibration *calibration;

  /* of the streaming thread */
  GstShReconstructKernel kernel;
  GstShReconstructDevice *device;
  GstShReconstructSource source;
  GstShReconstructLoop loop;
  GstShReconstructCommands commands;
  GstShReconstructResults results;
  GstShReconstructWavefront *wavefront;
  GstShReconstructRealtime *realtime;
  GstShReconstructLight light;
  GstImagingNumbering numbering;
};

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (
        "other/tensors, format = (string) static, num_tensors = (int) 2, "
        "types = (string) \"float32,uint8\"; " GST_SH_RECONSTRUCT_TENSOR_CAPS
        "; video/x-raw; video/x-raw(ANY)"));

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_SH_RECONSTRUCT_TENSOR_CAPS));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstShReconstruct, gst_sh_reconstruct,
    GST_TYPE_IMAGING_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (
        shreconstruct_debug, "shreconstruct", 0, "commands of a mirror"))
GST_ELEMENT_REGISTER_DEFINE (
    shreconstruct, "shreconstruct", GST_RANK_NONE, GST_TYPE_SH_RECONSTRUCT)

/* --- the kernel ----------------------------------------------------------- */

static void
close_kernel (GstElement *element)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (element);

  gst_sh_reconstruct_kernel_close (&self->kernel);
  gst_sh_reconstruct_device_forget (self->device);
}

static gboolean
prefers_cuda (GstElement *element, const GstVideoInfo *info)
{
  return gst_sh_reconstruct_kernel_prefers_cuda (
      &GST_SH_RECONSTRUCT (element)->kernel);
}

static ImkStatus
open_kernel (GstElement *element, ImkBackend backend, const GstVideoInfo *info,
    ImkError *error)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (element);
  ImkStatus status = gst_sh_reconstruct_kernel_open (
      &self->kernel, backend, &self->source.sensor, error);

  if (status == IMK_OK)
    gst_sh_reconstruct_device_forget (self->device);
  return status;
}

void
gst_sh_reconstruct_prepare (
    GstElement *element, gpointer candidate, guint groups)
{
  gst_sh_reconstruct_prepared_make (
      GST_SH_RECONSTRUCT (element)->kernel.prepared, candidate, groups);
}

ImkStatus
gst_sh_reconstruct_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (element);
  const gboolean has_other_wavefront =
      !before || !self->kernel.now || groups & GST_SH_RECONSTRUCT_WAVEFRONT;
  ImkStatus status = gst_sh_reconstruct_kernel_apply (
      &self->kernel, &self->source.sensor, before, groups, error);

  if (status == IMK_OK && has_other_wavefront)
    gst_sh_reconstruct_wavefront_forget (self->wavefront);
  return status;
}

/* --- caps ----------------------------------------------------------------- */

static gboolean
set_caps (GstShReconstruct *self, GstCaps *caps)
{
  GstShReconstructCommands *src = &self->commands;

  gst_sh_reconstruct_commands_set_caps (src, caps);
  gst_sh_reconstruct_mirrors_set_rate (self->mirrors, src->fps_n, src->fps_d);
  return gst_sh_reconstruct_source_set_caps (&self->source, caps) &&
         gst_imaging_engine_set_caps (self->base.engine, caps, NULL) &&
         gst_sh_reconstruct_commands_send_caps (src);
}

/* --- frames --------------------------------------------------------------- */

/* Pokes that do not reach a mirror would be measured as if they did. */
static GstFlowReturn
push_mirrors (GstShReconstruct *self, GstShReconstructFrame *f)
{
  GstFlowReturn flow = gst_sh_reconstruct_mirrors_push (
      self->mirrors, self->kernel.commands, f->is_held, f->out, &f->limited);

  if (f->has_poke && f->limited >= 0) {
    g_autofree gchar *why = g_strdup_printf (
        "A poke goes beyond the limits of mirror_%d. Set a smaller "
        "calibration-poke, or other limits.",
        f->limited);

    gst_sh_reconstruct_calibration_fail (self->calibration, why);
  }
  return flow;
}

/* The mirrors are first. */
static GstFlowReturn
push_all (GstShReconstruct *self, GstShReconstructFrame *f)
{
  const GstShReconstructSettings *s =
      gst_imaging_settings_now (self->base.settings);
  g_autoptr (GstImagingResultsPad) results =
      gst_sh_reconstruct_outputs_get_results (self->outputs);
  g_autoptr (GstImagingSrcPad) wavefront =
      gst_sh_reconstruct_outputs_get_wavefront (self->outputs);
  const gint fps_n = self->commands.fps_n, fps_d = self->commands.fps_d;
  GstImagingResult result = gst_sh_reconstruct_results_make (
      &self->results, &self->kernel, f, results);
  GstFlowReturn flow;

  gst_imaging_results_attach (f->out, GST_OBJECT_NAME (self), &result);
  flow = push_mirrors (self, f);
  flow = gst_sh_reconstruct_combine (
      flow, gst_pad_push (self->commands.pad, g_steal_pointer (&f->out)));
  if (results)
    flow = gst_sh_reconstruct_combine (flow,
        gst_imaging_results_pad_push (results, &result, f->in, fps_n, fps_d));
  gst_sh_reconstruct_result_clear (&result);
  if (wavefront && gst_sh_reconstruct_slopes_map (&f->slopes, NULL) == IMK_OK)
    flow = gst_sh_reconstruct_combine (flow,
        gst_sh_reconstruct_wavefront_push (self->wavefront, wavefront, s,
            &f->slopes, self->kernel.n_cells, f->in, f->number, fps_n, fps_d));
  return flow;
}

static void
number_frame (GstShReconstruct *self, GstShReconstructFrame *f)
{
  f->is_after_gap = !self->numbering.has_last || GST_BUFFER_IS_DISCONT (f->in);
  f->number = gst_imaging_numbering_next (&self->numbering, f->in, &f->missing);
  f->is_after_gap |= f->missing > 0;
  if (f->missing)
    gst_imaging_stats_add_missing (
        gst_imaging_engine_stats (self->base.engine), f->missing);
}

static void
report_frame (GstShReconstruct *self, const GstShReconstructFrame *f)
{
  if (!f->is_closed)
    return;
  gst_sh_reconstruct_light_follow (
      &self->light, GST_ELEMENT (self), &f->report, self->kernel.n_cells);
  gst_sh_reconstruct_kernel_warn_of_doubt (&self->kernel);
}

static GstFlowReturn
process_frame (GstShReconstruct *self, GstBuffer *buffer, GstClockTime entered)
{
  const GstShReconstructSettings *s =
      gst_imaging_settings_now (self->base.settings);
  GstShReconstructFrame f = {.in = buffer};
  GstFlowReturn flow;
  ImkStatus status;
  ImkError error;

  gst_sh_reconstruct_realtime_follow (self->realtime, s);
  number_frame (self, &f);
  status =
      gst_sh_reconstruct_source_follow_cells (&self->source, &f, s, &error);
  if (status == IMK_OK &&
      !gst_sh_reconstruct_commands_send_caps (&self->commands))
    return GST_FLOW_NOT_NEGOTIATED;
  if (status == IMK_OK)
    status = gst_sh_reconstruct_source_open (&self->source, &f, s, &error);
  if (status == IMK_OK)
    status = gst_sh_reconstruct_loop_process (&self->loop, &f, s, &error);
  if (status != IMK_OK) {
    gst_clear_buffer (&f.out);
    gst_sh_reconstruct_slopes_close (&f.slopes);
    gst_imaging_engine_post_error (self->base.engine, status, &error);
    return GST_FLOW_ERROR;
  }
  gst_sh_reconstruct_commands_prepare (&self->commands, &f);
  flow = f.acquired;
  if (f.out) {
    gst_sh_reconstruct_commands_fill (
        &self->commands, &f, self->kernel.commands);
    report_frame (self, &f);
    gst_imaging_engine_count_frame (self->base.engine, entered);
    flow = push_all (self, &f);
    gst_sh_reconstruct_loop_learn_limits (&self->loop, &f);
  }
  gst_sh_reconstruct_loop_watch (&self->loop, &f);
  gst_sh_reconstruct_slopes_close (&f.slopes);
  return flow;
}

static GstFlowReturn
gst_sh_reconstruct_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (parent);
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_NOT_NEGOTIATED;

  if (self->commands.n_sent == 0)
    GST_ELEMENT_ERROR (self, CORE, NEGOTIATION,
        ("Slopes came before their caps. Put shcentroid before shreconstruct."),
        (NULL));
  else if (!gst_imaging_settings_take (self->base.settings,
               GST_IMAGING_WHEN_LIVE,
               gst_imaging_settings_stream_time (pad, buffer)))
    flow = GST_FLOW_ERROR;
  else
    flow = process_frame (self, buffer, entered);
  gst_buffer_unref (buffer);
  return flow;
}

/* --- queries -------------------------------------------------------------- */

/* Whether the next slopes are for the device. */
static gboolean
takes_over (GstShReconstruct *self, GstImagingContext *context)
{
  GstImagingEngine *engine = self->base.engine;
  const GstShReconstructSettings *s =
      gst_imaging_settings_now (self->base.settings);

  return gst_imaging_engine_is_on_cuda (engine) &&
         gst_imaging_engine_context (engine) == context &&
         !self->source.sensor.is_tensor &&
         gst_sh_reconstruct_loop_will_run (&self->loop, s);
}

static gboolean
gst_sh_reconstruct_sink_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (parent);
  GstImagingContext *context;
  gpointer stream;
  gboolean takes;

  if (!gst_sh_centroid_handover_is_asked (pad, query, &context, &stream))
    return gst_imaging_element_query (pad, parent, query);
  takes = takes_over (self, context);
  gst_sh_reconstruct_device_take_over (self->device, takes ? stream : NULL);
  return takes;
}

/* --- events --------------------------------------------------------------- */

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
    gst_sh_reconstruct_loop_reset (&self->loop);
    gst_sh_reconstruct_calibration_abandon (
        self->calibration, "The stream was flushed.");
    gst_imaging_numbering_interrupt (&self->numbering);
    break;
  case GST_EVENT_SEGMENT:
    gst_imaging_numbering_interrupt (&self->numbering);
    break;
  case GST_EVENT_EOS:
    gst_sh_reconstruct_calibration_abandon (self->calibration,
        "The stream has ended before the interaction matrix was complete.");
    break;
  default:
    break;
  }
  gst_sh_reconstruct_outputs_event (self->outputs, event);
  gst_pad_push_event (self->commands.pad, event);
  return TRUE;
}

/* --- states --------------------------------------------------------------- */

static void
gst_sh_reconstruct_stop (GstElement *element)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (element);

  gst_sh_reconstruct_prepared_stop (self->kernel.prepared);
  gst_imaging_engine_stop (self->base.engine);
  gst_sh_reconstruct_kernel_forget (&self->kernel);
  gst_sh_reconstruct_realtime_stop (self->realtime);
  gst_sh_reconstruct_calibration_abandon (
      self->calibration, "The element was stopped.");
  gst_sh_reconstruct_wavefront_forget (self->wavefront);
  gst_sh_reconstruct_mirrors_reset (self->mirrors);
  gst_sh_reconstruct_outputs_reset (self->outputs);
  gst_imaging_numbering_reset (&self->numbering);
  gst_sh_reconstruct_source_forget (&self->source);
  gst_sh_reconstruct_commands_stop (&self->commands);
  gst_sh_reconstruct_loop_stop (&self->loop);
  self->light = (GstShReconstructLight){0};
}

/* --- the object ----------------------------------------------------------- */

static void
reset (GstShReconstruct *self)
{
  gst_sh_reconstruct_loop_reset (&self->loop);
}

static gboolean
calibrate (GstShReconstruct *self, const gchar *location)
{
  GstShReconstructSettings *s = gst_imaging_settings_copy (self->base.settings);
  const gboolean ok =
      gst_sh_reconstruct_calibration_request (self->calibration, location, s);

  gst_imaging_settings_free_copy (self->base.settings, s);
  return ok;
}

static void
stop_calibration (GstShReconstruct *self)
{
  gst_sh_reconstruct_calibration_stop (self->calibration);
}

static gboolean
save_interaction (GstShReconstruct *self, const gchar *location)
{
  GstShReconstructSettings *s = gst_imaging_settings_copy (self->base.settings);
  const gboolean ok =
      gst_sh_reconstruct_calibration_save (self->calibration, location, s);

  gst_imaging_settings_free_copy (self->base.settings, s);
  return ok;
}

static GstPad *
gst_sh_reconstruct_request_new_pad (GstElement *element,
    GstPadTemplate *template, const gchar *name, const GstCaps *caps)
{
  return gst_sh_reconstruct_outputs_request (
      GST_SH_RECONSTRUCT (element)->outputs, template, name);
}

static void
gst_sh_reconstruct_release_pad (GstElement *element, GstPad *pad)
{
  gst_sh_reconstruct_outputs_release (
      GST_SH_RECONSTRUCT (element)->outputs, pad);
}

static void
gst_sh_reconstruct_finalize (GObject *object)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (object);

  gst_sh_reconstruct_mirrors_free (self->mirrors);
  gst_sh_reconstruct_outputs_free (self->outputs);
  gst_sh_reconstruct_calibration_free (self->calibration);
  gst_sh_reconstruct_device_free (self->device);
  gst_sh_reconstruct_wavefront_free (self->wavefront);
  gst_sh_reconstruct_realtime_free (self->realtime);
  gst_sh_reconstruct_results_clear (&self->results);
  gst_sh_reconstruct_kernel_clear (&self->kernel);
  gst_sh_reconstruct_source_forget (&self->source);
  gst_sh_reconstruct_commands_stop (&self->commands);
  gst_sh_reconstruct_loop_stop (&self->loop);
  G_OBJECT_CLASS (gst_sh_reconstruct_parent_class)->finalize (object);
}

static const GstImagingAction actions[] = {
    /**
     * GstShReconstruct::reset:
     * @self: the element
     *
     * Before the next frame the controller forgets the past, and the mirror
     * begins at the reference commands. Any thread.
     */
    {"reset", G_CALLBACK (reset), G_TYPE_NONE, {{NULL}}, {NULL},
        "Clears the controller before the next frame: the mirror starts "
        "again at the reference commands"},
    /**
     * GstShReconstruct::calibrate:
     * @self: the element
     * @location: (nullable): path of the interaction matrix
     *   [2 cells, commands], which is written when it is complete; its noise
     *   beside it, as NAME-noise. NULL or empty: it waits for save-interaction
     *
     * From the next frame on pokes the mirror about the reference commands, as
     * the properties calibration-method, calibration-poke, calibration-repeats
     * and calibration-frames say; the loop does not run meanwhile. The message
     * shreconstruct-calibration tells its end. Any thread.
     *
     * Returns: FALSE while one is running, or with the message `failed` where
     * the files cannot be written
     */
    {"calibrate", G_CALLBACK (calibrate), G_TYPE_BOOLEAN,
        {{"location", GST_IMAGING_KIND_PATH}}, {"interaction-location"},
        "Pokes the mirror and measures the interaction matrix; the loop is "
        "open meanwhile. location: a file for the matrix, or empty"},
    /**
     * GstShReconstruct::stop-calibration:
     * @self: the element
     *
     * The next frame sends the reference commands and ends a calibration that
     * is running: its message has the state `abandoned`, and nothing is
     * written. Any thread.
     */
    {"stop-calibration", G_CALLBACK (stop_calibration), G_TYPE_NONE, {{NULL}},
        {NULL},
        "Ends a calibration that is running: the next frame sends the "
        "reference commands, and nothing is written"},
    /**
     * GstShReconstruct::save-interaction:
     * @self: the element
     * @location: path
     *
     * Writes the interaction matrix of the last calibration, and its noise. Any
     * thread.
     *
     * Returns: FALSE with a warning where there is none, or where @location is
     * a file that a property names
     */
    {"save-interaction", G_CALLBACK (save_interaction), G_TYPE_BOOLEAN,
        {{"location", GST_IMAGING_KIND_PATH}}, {"interaction-location"},
        "Writes the interaction matrix of the last calibration, and its "
        "noise. location: an array file"},
    {NULL},
};

static void
gst_sh_reconstruct_class_init (GstShReconstructClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->finalize = gst_sh_reconstruct_finalize;
  GST_IMAGING_ELEMENT_CLASS (klass)->stop = gst_sh_reconstruct_stop;
  element_class->request_new_pad = gst_sh_reconstruct_request_new_pad;
  element_class->release_pad = gst_sh_reconstruct_release_pad;

  gst_imaging_settings_install (object_class, &gst_sh_reconstruct_table);

  gst_imaging_actions_install (G_OBJECT_CLASS (klass), actions);

  gst_element_class_set_static_metadata (element_class,
      "Wavefront reconstructor and controller", "Filter/Analyzer",
      "Makes the commands of a deformable mirror from Shack-Hartmann slopes",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_sh_reconstruct_outputs_add_templates (element_class);
}

static void
gst_sh_reconstruct_init (GstShReconstruct *self)
{
  static const GstImagingEngineFuncs funcs = {
      .open = open_kernel,
      .close = close_kernel,
      .prefers_cuda = prefers_cuda,
  };

  gst_imaging_element_set_up (&self->base, &funcs, &gst_sh_reconstruct_table);
  self->outputs = gst_sh_reconstruct_outputs_new (
      GST_ELEMENT (self), gst_imaging_element_query);
  self->mirrors =
      gst_sh_reconstruct_mirrors_new (GST_ELEMENT (self), self->outputs);
  gst_sh_reconstruct_kernel_init (
      &self->kernel, &self->base, self->mirrors, &self->commands);
  self->device = gst_sh_reconstruct_device_new (self->base.engine);
  self->calibration = gst_sh_reconstruct_calibration_new (GST_ELEMENT (self));
  self->wavefront =
      gst_sh_reconstruct_wavefront_new (GST_ELEMENT (self), self->base.engine);
  gst_sh_reconstruct_results_init (&self->results, self->base.engine);
  self->realtime = gst_sh_reconstruct_realtime_new (GST_ELEMENT (self));
  self->sinkpad = gst_imaging_element_add_pad (&self->base, &sink_template);
  gst_pad_set_chain_function (self->sinkpad, gst_sh_reconstruct_chain);
  gst_pad_set_query_function (self->sinkpad, gst_sh_reconstruct_sink_query);
  gst_pad_set_event_function (self->sinkpad, gst_sh_reconstruct_sink_event);
  self->commands = (GstShReconstructCommands){
      .pad = gst_imaging_element_add_pad (&self->base, &src_template),
      .engine = self->base.engine};
  self->source.kernel = &self->kernel;
  self->loop = (GstShReconstructLoop){.kernel = &self->kernel,
      .device = self->device,
      .calibration = self->calibration};
}
