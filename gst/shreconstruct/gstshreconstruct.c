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
#include "gstimagingengine.h"
#include "gstimagingmetadata.h"
#include "gstimagingnumbering.h"
#include "gstimagingquantity.h"
#include "gstshreconstructcalibration.h"
#include "gstshreconstructdevice.h"
#include "gstshreconstructkernel.h"
#include "gstshreconstructrealtime.h"
#include "gstshreconstructresults.h"
#include "gstshreconstructmatrix.h"
#include "gstshreconstructtensors.h"
#include "gstshreconstructwavefront.h"
#include "imk/parallel.h"
#include "shcentroid/gstshcentroidhandover.h"

GST_DEBUG_CATEGORY_STATIC (shreconstruct_debug);
#define GST_CAT_DEFAULT shreconstruct_debug

struct _GstShReconstruct {
  GstImagingElement base;
  GstPad *sinkpad, *srcpad;
  GstShReconstructOutputs *outputs;
  GstShReconstructCalibration *calibration;
  GstShReconstructResults results;

  gint wants_reset; /* atomic */

  GstShReconstructKernel kernel;

  /* of the streaming thread */
  GstShReconstructDevice *device;
  GstShReconstructSensor sensor;
  gboolean has_source; /* slopes have been read, from @source */
  gchar *source;       /* (nullable): results of the frame before */
  gchar *refused;      /* (nullable): results that were warned of */
  gboolean is_resting; /* on the way to the reference commands, or there */
  GstShReconstructWavefront *wavefront;
  GstShReconstructRealtime *realtime;
  gint fps_n, fps_d;
  guint n_sent; /* outputs of the caps that were sent; 0 before */
  GstBufferPool *pool;
  gboolean is_dark, has_overflowed; /* of the frame before */
  guint64 n_blind; /* frames without a valid cell, up to the one before */
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

/* A product of this many numbers takes one core 40 us from its caches; a device
 * takes 20 us for launches and a wait, and the transfer of slopes. */
enum { LARGE_MATRIX = 1 << 20 };

enum { BLACKOUT = 100 }; /* frames */

static guint64
size_of_matrix (const GstShReconstructSettings *s)
{
  const GstShReconstructMatrix *m = gst_imaging_setting_file_data (s->matrix);

  return m ? m->array->n : 0;
}

/* Slopes that are on the device already, or a matrix that takes long. */
static gboolean
prefers_cuda (GstElement *element, const GstVideoInfo *info)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (element);
  GstShReconstructSettings *s = gst_imaging_settings_copy (self->base.settings);
  gboolean prefers =
      s->invalid != IMK_SHRECONSTRUCT_INVALID_EXCLUDE &&
      size_of_matrix (s) / imk_parallel_threads (gst_imaging_engine_n_threads (
                               self->base.engine)) >=
          LARGE_MATRIX;

  gst_imaging_settings_free_copy (self->base.settings, s);
  return prefers;
}

static ImkStatus
open_kernel (GstElement *element, ImkBackend backend, const GstVideoInfo *info,
    ImkError *error)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (element);
  ImkStatus status = gst_sh_reconstruct_kernel_open (
      &self->kernel, backend, &self->sensor, error);

  if (status == IMK_OK)
    gst_sh_reconstruct_device_forget (self->device);
  return status;
}

/* A file of terms has taken the place of gain and leak.
 * @before: (nullable) */
static ImkStatus
check_gain (const GstShReconstructSettings *before,
    const GstShReconstructSettings *now, ImkError *error)
{
  if (before && before->controller && now->controller &&
      (now->gain != before->gain || now->leak != before->leak))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "gain and leak do nothing while controller-location \"%s\" has the "
        "terms. Set mode-gains, or make controller-location empty.",
        now->controller->location);
  return IMK_OK;
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
  const GstShReconstructSettings *s =
      gst_imaging_settings_now (self->base.settings);
  ImkStatus status = check_gain (before, s, error);

  if (status != IMK_OK)
    return status;
  if (!before || !self->kernel.now || groups & GST_SH_RECONSTRUCT_WAVEFRONT)
    gst_sh_reconstruct_wavefront_forget (self->wavefront);
  if (!before || !self->kernel.now || groups & GST_SH_RECONSTRUCT_KERNEL ||
      gst_sh_reconstruct_prepared_is_for_limits (self->kernel.prepared, s))
    return gst_imaging_engine_renew (self->base.engine, error);
  if (groups & (GST_SH_RECONSTRUCT_CONTROL | GST_SH_RECONSTRUCT_OUTPUT |
                   GST_SH_RECONSTRUCT_WAVEFRONT))
    return gst_sh_reconstruct_kernel_update (
        &self->kernel, &self->sensor, error);
  return IMK_OK;
}

/* --- caps ----------------------------------------------------------------- */

static gboolean
make_pool (GstShReconstruct *self, GstCaps *caps, guint n)
{
  GstStructure *config;

  gst_imaging_pool_clear (&self->pool);
  self->pool = gst_buffer_pool_new ();
  config = gst_buffer_pool_get_config (self->pool);
  gst_buffer_pool_config_set_params (
      config, caps, n * (guint) sizeof (gfloat), 0, 0);
  return gst_buffer_pool_set_config (self->pool, config) &&
         gst_buffer_pool_set_active (self->pool, TRUE);
}

/* Another matrix may have other commands. */
static gboolean
send_caps (GstShReconstruct *self)
{
  const guint n = gst_sh_reconstruct_outputs_n (self->outputs);
  GstCaps *caps;
  gboolean ok;

  if (self->n_sent == n)
    return TRUE;
  caps = gst_sh_reconstruct_commands_caps (n, self->fps_n, self->fps_d);
  ok = make_pool (self, caps, n);
  /* a pad that is not linked has them when it is */
  gst_pad_push_event (self->srcpad, gst_event_new_caps (caps));
  gst_caps_unref (caps);
  if (ok)
    self->n_sent = n;
  return ok;
}

static gboolean
set_caps (GstShReconstruct *self, GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);

  self->sensor.is_tensor = gst_structure_has_name (s, "other/tensors");
  self->fps_n = 0;
  self->fps_d = 1;
  gst_structure_get_fraction (s, "framerate", &self->fps_n, &self->fps_d);
  self->n_sent = 0; /* the frame rate may be another one */
  gst_sh_reconstruct_outputs_renew_caps (self->outputs);
  self->sensor.n_cells =
      gst_sh_reconstruct_cells_of_caps (caps, &self->sensor.shape);
  if (self->sensor.is_tensor && self->sensor.n_cells == 0) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("These tensors are no slopes, which have [2, cells] or [2 cells] "
         "numbers. Set fields=slopes on shcentroid."),
        ("%" GST_PTR_FORMAT, caps));
    return FALSE;
  }
  return gst_imaging_engine_set_caps (self->base.engine, caps, NULL) &&
         send_caps (self);
}

/* --- frames --------------------------------------------------------------- */

/* Of the frame that is worked on. */
typedef struct {
  GstBuffer *in;
  GstBuffer *out;         /* (nullable): for the commands */
  GstFlowReturn acquired; /* how @out was */
  GstShReconstructSlopes slopes;
  ImkShreconstructReport report;
  gboolean is_closed, is_calibrating;
  gboolean is_held;  /* the mirror stays as it is */
  gboolean has_poke; /* of a calibration */
  gint limited;      /* a further mirror whose limits have changed a command, or
                      * -1 */
  gboolean is_after_gap;
  guint64 number, missing;
} Frame;

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
              "cells", G_TYPE_UINT, self->kernel.n_cells, NULL)));
}

/* Once for each time without light, also where min-valid is 0. */
static void
report_blackout (GstShReconstruct *self, const ImkShreconstructReport *report)
{
  if (report->n_valid == 0 && ++self->n_blind == BLACKOUT)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("No cell has been valid for %d frames, so the loop corrects nothing. "
         "Bring light to the sensor, or lower the thresholds of shcentroid.",
            BLACKOUT),
        (NULL));
  if (report->n_valid == 0)
    return;
  if (self->n_blind >= BLACKOUT)
    GST_ELEMENT_INFO (self, STREAM, FAILED,
        ("%u of %u cells are valid again, after %" G_GUINT64_FORMAT
         " frames without one.",
            report->n_valid, self->kernel.n_cells, self->n_blind),
        (NULL));
  self->n_blind = 0;
}

/* The first frame tells how many cells there are, and without a matrix each. */
static ImkStatus
follow_sensor (GstShReconstruct *self, const Frame *f,
    const GstShReconstructSettings *s, ImkError *error)
{
  guint n_cells;

  if (!self->kernel.is_idle && self->sensor.n_cells)
    return IMK_OK;
  n_cells = self->sensor.is_tensor
                ? self->sensor.n_cells
                : gst_sh_reconstruct_cells_of_frame (f->in, s->results);
  if (!self->kernel.is_idle && n_cells > 0)
    return gst_sh_reconstruct_kernel_check_cells (
        &self->kernel, n_cells, error);
  if (n_cells == 0 || n_cells == self->kernel.n_cells)
    return IMK_OK;
  self->sensor.n_cells = n_cells;
  return gst_imaging_engine_renew (self->base.engine, error);
}

static GstShReconstructInput
input_of (const GstShReconstruct *self, const GstShReconstructSettings *s)
{
  const GstShReconstructOrder order =
      s->input_order == GST_SH_RECONSTRUCT_ORDER_AUTO ? self->kernel.order
                                                      : s->input_order;

  if (!self->sensor.is_tensor)
    return GST_SH_RECONSTRUCT_INPUT_METADATA;
  if (self->sensor.shape == GST_SH_RECONSTRUCT_SHAPE_TWO_ROWS)
    return GST_SH_RECONSTRUCT_INPUT_X_THEN_Y;
  return self->sensor.shape == GST_SH_RECONSTRUCT_SHAPE_PAIRS ||
                 order == GST_SH_RECONSTRUCT_ORDER_INTERLEAVED
             ? GST_SH_RECONSTRUCT_INPUT_INTERLEAVED
             : GST_SH_RECONSTRUCT_INPUT_X_THEN_Y;
}

static ImkStatus
open_slopes_of (GstShReconstruct *self, Frame *f,
    const GstShReconstructSettings *s, const gchar *source, ImkError *error)
{
  ImkStatus status = gst_sh_reconstruct_slopes_open (&f->slopes, f->in,
      input_of (self, s), source, self->kernel.n_cells, error);

  return status == IMK_OK ? gst_sh_reconstruct_lenslets_follow (
                                self->kernel.lenslets, &f->slopes, error)
                          : status;
}

/* Once for each name. */
static void
warn_of_source (
    GstShReconstruct *self, const gchar *refused, const ImkError *why)
{
  const gboolean is_named = self->source != NULL;

  if (self->refused && g_strcmp0 (self->refused, refused) == 0)
    return;
  g_free (self->refused);
  self->refused = g_strdup (refused ? refused : "");
  GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
      ("results=%s is not used until it fits: %s Until then the slopes%s%s%s "
       "as before are used.",
          self->refused, why->message, is_named ? " of \"" : "",
          is_named ? self->source : "", is_named ? "\"" : ""),
      (NULL));
}

/* Another name in results that does not fit the frames ends no stream. */
static ImkStatus
open_slopes (GstShReconstruct *self, Frame *f,
    const GstShReconstructSettings *s, ImkError *error)
{
  ImkStatus status = open_slopes_of (self, f, s, s->results, error);
  const gboolean is_other = g_strcmp0 (s->results, self->source) != 0;
  ImkError why;

  if (status == IMK_OK) {
    if (is_other || self->refused) {
      g_free (self->source);
      self->source = g_strdup (s->results);
      g_clear_pointer (&self->refused, g_free);
    }
    self->has_source = TRUE;
    return IMK_OK;
  }
  if (!self->has_source || !is_other)
    return status;
  why = *error;
  gst_sh_reconstruct_slopes_close (&f->slopes);
  status = open_slopes_of (self, f, s, self->source, error);
  if (status == IMK_OK)
    warn_of_source (self, s->results, &why);
  return status;
}

/* All that can be done before the commands are there. */
static void
prepare_output (GstShReconstruct *self, Frame *f)
{
  if (f->out || f->acquired != GST_FLOW_OK)
    return;
  f->acquired = gst_buffer_pool_acquire_buffer (self->pool, &f->out, NULL);
  if (f->acquired != GST_FLOW_OK)
    return;
  gst_imaging_metadata_pass (f->out, f->in, FALSE);
  gst_imaging_engine_sign (self->base.engine, f->out);
  gst_imaging_quantity_keep (f->out); /* the pool is ours alone */
}

static ImkStatus
process_on_cpu (GstShReconstruct *self, Frame *f, ImkError *error)
{
  ImkStatus status = gst_sh_reconstruct_slopes_map (&f->slopes, error);

  if (status == IMK_OK)
    imk_shreconstruct_process (self->kernel.now, f->slopes.slopes,
        f->slopes.flags, self->kernel.commands, &f->report);
  return status;
}

/* Slopes that were on a device that fails are lost: the mirror stays as it is
 * for that frame. */
static ImkStatus
process_after_failure (GstShReconstruct *self, Frame *f, ImkError *error)
{
  GstImagingEngine *engine = self->base.engine;
  const ImkError why = *error;
  ImkStatus status = gst_imaging_engine_fall_back (engine, error);
  ImkError lost;
  gboolean is_lost;

  if (status != IMK_OK)
    return status;
  gst_clear_buffer (&f->out); /* it says that the device has made it */
  is_lost = process_on_cpu (self, f, &lost) != IMK_OK;
  if (is_lost) {
    gst_imaging_stats_add_lost (gst_imaging_engine_stats (engine));
    imk_shreconstruct_commands (self->kernel.now, self->kernel.commands);
    f->is_closed = FALSE;
  }
  gst_imaging_engine_post_fall_back (engine, &why, is_lost);
  return IMK_OK;
}

static ImkStatus
process (GstShReconstruct *self, Frame *f, ImkError *error)
{
  GstImagingEngine *engine = self->base.engine;
  ImkStatus status;

  if (!gst_imaging_engine_is_on_cuda (engine))
    return process_on_cpu (self, f, error);
  status = gst_sh_reconstruct_device_begin (
      self->device, self->kernel.now, &f->slopes, error);
  if (status == IMK_OK) {
    prepare_output (self, f); /* while the device works */
    status = gst_sh_reconstruct_device_end (self->device, self->kernel.now,
        self->kernel.commands, &f->report, error);
  }
  return gst_imaging_engine_can_fall_back (engine, status)
             ? process_after_failure (self, f, error)
             : status;
}

/* Returns: whether all mirrors have the reference commands, so that the loop
 * can begin */
static gboolean
go_to_reference (GstShReconstruct *self)
{
  const gboolean is_there = imk_shreconstruct_rest (self->kernel.now);

  imk_shreconstruct_commands (self->kernel.now, self->kernel.commands);
  return is_there && gst_sh_reconstruct_outputs_are_at (
                         self->outputs, self->kernel.commands);
}

/* Sums of inf and NaN stay so for ever, and no mirror can take them. Limits
 * hide what a coefficient is. */
static void
restart_overflowed (GstShReconstruct *self, const Frame *f)
{
  const gboolean overflowed = !imk_shreconstruct_get_coefficients (
      self->kernel.now, self->kernel.coefficients);

  if (overflowed) {
    if (!go_to_reference (self))
      g_atomic_int_set (&self->wants_reset, TRUE);
    imk_shreconstruct_get_coefficients (
        self->kernel.now, self->kernel.coefficients);
  }
  if (overflowed && !self->has_overflowed)
    GST_ELEMENT_WARNING (self, STREAM, FAILED,
        ("The commands of frame %" G_GUINT64_FORMAT
         " are too large for a float32, so the loop begins anew from the "
         "reference commands. Lower the gain, check the scale of the control "
         "matrix, or set minimum and maximum.",
            f->number),
        (NULL));
  self->has_overflowed = overflowed;
}

/* Where the loop does not run, or is to begin anew, the mirror goes to the
 * reference commands. Returns: whether it need not, or is there; a calibration
 * that pokes it needs that no more */
static gboolean
rest (GstShReconstruct *self, const Frame *f, const GstShReconstructSettings *s)
{
  const gboolean wants_reset =
      g_atomic_int_compare_and_exchange (&self->wants_reset, TRUE, FALSE);

  if (!wants_reset && !f->is_calibrating && !self->kernel.is_idle &&
      s->loop == GST_SH_RECONSTRUCT_LOOP_CLOSED)
    return TRUE;
  self->is_resting = TRUE;
  if (go_to_reference (self))
    return TRUE;
  if (wants_reset)
    g_atomic_int_set (&self->wants_reset, TRUE);
  return f->is_calibrating &&
         gst_sh_reconstruct_calibration_has_begun (self->calibration);
}

/* Once for each closing. The loop stays as it is. */
static void
report_divergence (GstShReconstruct *self, const Frame *f)
{
  const GstShReconstructKernel *k = &self->kernel;
  ImkShdivergenceReport report;
  const ImkShdivergenceVerdict verdict = imk_shdivergence_follow (k->divergence,
      f->slopes.slopes, f->slopes.flags, k->coefficients, &f->report, &report);

  gst_sh_reconstruct_warn_of_divergence (GST_ELEMENT (self), verdict, &report,
      &f->report, k->n_cells, k->n_commands, f->number);
}

/* The commands in self->kernel.commands. */
static ImkStatus
control (GstShReconstruct *self, Frame *f, const GstShReconstructSettings *s,
    ImkError *error)
{
  ImkStatus status = IMK_OK;
  gboolean can_begin;

  f->is_calibrating = gst_sh_reconstruct_calibration_is_on (self->calibration);
  can_begin = rest (self, f, s);
  f->is_closed = can_begin && s->loop == GST_SH_RECONSTRUCT_LOOP_CLOSED &&
                 !s->freeze && !f->is_calibrating && !self->kernel.is_idle;
  if (!f->is_closed || self->is_resting)
    imk_shdivergence_begin (self->kernel.divergence);
  self->is_resting &= !f->is_closed;
  if (f->is_closed)
    status = process (self, f, error);
  else
    imk_shreconstruct_commands (self->kernel.now, self->kernel.commands);
  if (f->is_closed && status == IMK_OK) {
    restart_overflowed (self, f);
    report_divergence (self, f);
  } else
    imk_shreconstruct_get_coefficients (
        self->kernel.now, self->kernel.coefficients);
  if (f->is_calibrating && can_begin)
    status = gst_sh_reconstruct_slopes_map (&f->slopes, error);
  if (f->is_calibrating && can_begin && status == IMK_OK)
    f->has_poke = gst_sh_reconstruct_calibration_step (self->calibration, s,
        &f->slopes, f->is_after_gap, self->kernel.n_cells,
        self->kernel.n_commands, self->kernel.commands);
  f->is_held = (s->freeze && !self->is_resting) ||
               (f->report.is_dark && s->dark == IMK_SHRECONSTRUCT_DARK_HOLD);
  return status;
}

static void
fill_output (GstShReconstruct *self, Frame *f)
{
  GstMapInfo map;

  gst_buffer_map (f->out, &map, GST_MAP_WRITE); /* our memory: cannot fail */
  gst_sh_reconstruct_outputs_map (
      self->outputs, self->kernel.commands, (gfloat *) (gpointer) map.data);
  gst_buffer_unmap (f->out, &map);
}

/* The controller learns what the mirrors were not sent, after they have the
 * frame. */
static void
unwind (GstShReconstruct *self, const Frame *f)
{
  g_autofree gfloat *change = NULL;

  if (f->limited < 0 || !f->is_closed || f->is_held || f->report.is_dark ||
      self->has_overflowed)
    return;
  change = g_new (gfloat, self->kernel.n_modes);
  if (gst_sh_reconstruct_outputs_find_windup (self->outputs, change))
    imk_shreconstruct_add (self->kernel.now, change);
}

/* Pokes that do not reach a mirror would be measured as if they did. */
static GstFlowReturn
push_mirrors (GstShReconstruct *self, Frame *f, GstBuffer *out)
{
  GstFlowReturn flow = gst_sh_reconstruct_outputs_push_mirrors (self->outputs,
      self->kernel.commands, f->is_held, out, self->fps_n, self->fps_d,
      &f->limited);

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
push_all (GstShReconstruct *self, Frame *f, GstBuffer *out)
{
  const GstShReconstructSettings *s =
      gst_imaging_settings_now (self->base.settings);
  g_autoptr (GstImagingResultsPad) results =
      gst_sh_reconstruct_outputs_get_results (self->outputs);
  g_autoptr (GstImagingSrcPad) wavefront =
      gst_sh_reconstruct_outputs_get_wavefront (self->outputs);
  const GstShReconstructDone done = {f->report.n_valid, f->report.n_out,
      f->report.n_limited, f->report.is_dark, f->is_closed, f->is_calibrating};
  GstImagingResult result = gst_sh_reconstruct_results_make (
      &self->results, &self->kernel, &done, f->number, f->missing, results);
  GstFlowReturn flow;

  gst_imaging_results_attach (out, GST_OBJECT_NAME (self), &result);
  flow = push_mirrors (self, f, out);
  flow = gst_sh_reconstruct_combine (flow, gst_pad_push (self->srcpad, out));
  if (results)
    flow = gst_sh_reconstruct_combine (
        flow, gst_imaging_results_pad_push (
                  results, &result, f->in, self->fps_n, self->fps_d));
  gst_sh_reconstruct_result_clear (&result);
  if (wavefront && gst_sh_reconstruct_slopes_map (&f->slopes, NULL) == IMK_OK)
    flow = gst_sh_reconstruct_combine (
        flow, gst_sh_reconstruct_wavefront_push (self->wavefront, wavefront, s,
                  &f->slopes, self->kernel.n_cells, f->in, f->number,
                  self->fps_n, self->fps_d));
  unwind (self, f);
  return flow;
}

static GstFlowReturn
work (GstShReconstruct *self, GstBuffer *buffer, GstClockTime entered)
{
  const GstShReconstructSettings *s =
      gst_imaging_settings_now (self->base.settings);
  Frame f = {.in = buffer};
  GstFlowReturn flow;
  ImkStatus status;
  ImkError error;

  gst_sh_reconstruct_realtime_follow (self->realtime, s);
  f.is_after_gap = !self->numbering.has_last || GST_BUFFER_IS_DISCONT (buffer);
  f.number = gst_imaging_numbering_next (&self->numbering, buffer, &f.missing);
  f.is_after_gap |= f.missing > 0;
  if (f.missing)
    gst_imaging_stats_add_missing (
        gst_imaging_engine_stats (self->base.engine), f.missing);
  status = follow_sensor (self, &f, s, &error);
  if (status == IMK_OK && !send_caps (self))
    return GST_FLOW_NOT_NEGOTIATED;
  if (status == IMK_OK)
    status = open_slopes (self, &f, s, &error);
  if (status == IMK_OK) {
    self->sensor.n_cells = self->kernel.n_cells;
    status = control (self, &f, s, &error);
  }
  if (status != IMK_OK) {
    gst_clear_buffer (&f.out);
    gst_sh_reconstruct_slopes_close (&f.slopes);
    gst_imaging_engine_post_error (self->base.engine, status, &error);
    return GST_FLOW_ERROR;
  }
  prepare_output (self, &f);
  flow = f.acquired;
  if (f.out) {
    fill_output (self, &f);
    if (f.is_closed) {
      report_light (self, &f.report);
      report_blackout (self, &f.report);
      gst_sh_reconstruct_kernel_warn_of_doubt (&self->kernel);
    }
    gst_imaging_engine_count_frame (self->base.engine, entered);
    flow = push_all (self, &f, f.out);
  }
  gst_sh_reconstruct_slopes_close (&f.slopes);
  return flow;
}

static GstFlowReturn
gst_sh_reconstruct_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstShReconstruct *self = GST_SH_RECONSTRUCT (parent);
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_NOT_NEGOTIATED;

  if (self->n_sent == 0)
    GST_ELEMENT_ERROR (self, CORE, NEGOTIATION,
        ("Slopes came before their caps. Put shcentroid before shreconstruct."),
        (NULL));
  else if (!gst_imaging_settings_take (self->base.settings,
               GST_IMAGING_WHEN_LIVE,
               gst_imaging_settings_stream_time (pad, buffer)))
    flow = GST_FLOW_ERROR;
  else
    flow = work (self, buffer, entered);
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
         !self->sensor.is_tensor && !self->kernel.is_idle &&
         s->loop == GST_SH_RECONSTRUCT_LOOP_CLOSED && !s->freeze &&
         !g_atomic_int_get (&self->wants_reset) &&
         !gst_sh_reconstruct_calibration_is_on (self->calibration);
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
    g_atomic_int_set (&self->wants_reset, TRUE);
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
  gst_pad_push_event (self->srcpad, event);
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
  gst_sh_reconstruct_outputs_reset (self->outputs);
  gst_imaging_numbering_reset (&self->numbering);
  self->sensor.n_cells = 0;
  self->has_source = FALSE;
  g_clear_pointer (&self->source, g_free);
  g_clear_pointer (&self->refused, g_free);
  gst_imaging_pool_clear (&self->pool);
  self->n_sent = 0;
  self->is_dark = self->has_overflowed = FALSE;
  self->n_blind = 0;
  g_atomic_int_set (&self->wants_reset, FALSE);
}

/* --- the object ----------------------------------------------------------- */

static void
reset (GstShReconstruct *self)
{
  g_atomic_int_set (&self->wants_reset, TRUE);
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

  gst_sh_reconstruct_outputs_free (self->outputs);
  gst_sh_reconstruct_calibration_free (self->calibration);
  gst_sh_reconstruct_device_free (self->device);
  gst_sh_reconstruct_wavefront_free (self->wavefront);
  gst_sh_reconstruct_realtime_free (self->realtime);
  gst_sh_reconstruct_results_clear (&self->results);
  gst_sh_reconstruct_kernel_clear (&self->kernel);
  g_free (self->source);
  g_free (self->refused);
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
  gst_sh_reconstruct_kernel_init (&self->kernel, &self->base, self->outputs);
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
  self->srcpad = gst_imaging_element_add_pad (&self->base, &src_template);
}
