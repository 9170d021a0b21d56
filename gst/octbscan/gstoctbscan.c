/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-octbscan
 * @title: octbscan
 * @short_description: B-scans of optical coherence tomography
 *
 * Makes images of the depth from raw spectra: one line of a frame is a spectrum
 * (an A-scan), one frame of `ascans-per-bscan` lines a B-scan. Up to 16 cameras
 * take turns line by line, each with a calibration of its own. The steps are
 * those of B. Kriske, "Multi-Sensor Multi-GPU Adaptive Optics Optical Coherence
 * Tomography" (2014), with its errors corrected.
 *
 * `src` has the image in dB, or linear with scaling=linear; the request pad
 * `linear` has the linear image beside it. A peer that takes other/tensors gets
 * float32 of dB or intensities.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 picturesrc location=spectra.npy ! octbscan calibration=oct.ini
 * range-max=50 ! videoconvert ! autovideosink
 * ]|
 *
 * Since: 0.2
 */
#include "gstimaginglines.h"
#include "gstimagingpicture.h"
#include "gstoctbscaninput.h"
#include "gstoctbscanmirror.h"
#include "gstoctbscanplan.h"
#include "gstoctbscanprocess.h"
#include "gstoctbscanqueue.h"

GST_DEBUG_CATEGORY (gst_oct_bscan_debug);

enum { PROP_SHARES = GST_IMAGING_SETTINGS_FIRST_FREE_ID };

#define RATE ", framerate = (fraction) [ 0, max ]"
#define FLOAT_CAPS GST_IMAGING_PICTURE_TENSOR_CAPS RATE

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
            "{ GRAY16_LE, GRAY8 }") "; " GST_IMAGING_LINES_TENSOR_CAPS RATE));

#define IMAGE_CAPS GST_VIDEO_CAPS_MAKE ("{ GRAY8, GRAY16_LE }") "; " FLOAT_CAPS

static GstStaticPadTemplate src_templates[N_OUTPUTS] = {
    [LINEAR] = GST_STATIC_PAD_TEMPLATE (
        "linear", GST_PAD_SRC, GST_PAD_REQUEST, GST_STATIC_CAPS (IMAGE_CAPS)),
    [COMPLEX] = GST_STATIC_PAD_TEMPLATE (
        "complex", GST_PAD_SRC, GST_PAD_REQUEST, GST_STATIC_CAPS (FLOAT_CAPS)),
    [ENFACE] = GST_STATIC_PAD_TEMPLATE (
        "enface", GST_PAD_SRC, GST_PAD_REQUEST, GST_STATIC_CAPS (IMAGE_CAPS)),
    [SRC] = GST_STATIC_PAD_TEMPLATE (
        "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (IMAGE_CAPS)),
};

/* Of the templates. */
static const gchar *const output_names[N_OUTPUTS] = {
    "linear", "complex", "enface", "src"};

G_DEFINE_FINAL_TYPE_WITH_CODE (GstOctBscan, gst_oct_bscan,
    GST_TYPE_IMAGING_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (gst_oct_bscan_debug, "octbscan", 0,
        "B-scans of optical coherence tomography"))
GST_ELEMENT_REGISTER_DEFINE (
    octbscan, "octbscan", GST_RANK_NONE, GST_TYPE_OCT_BSCAN)

/* --- the kernel ---------------------------------------------------------- */

static void
gst_oct_bscan_close (GstElement *element)
{
  g_clear_pointer (&GST_OCT_BSCAN (element)->open.kernel, imk_octbscan_free);
}

static ImkStatus
gst_oct_bscan_open (GstElement *element, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);

  IMK_TRY (gst_oct_bscan_kernel_new (self, backend, &self->open.kernel, error));
  self->shared.depth_step = imk_octbscan_depth_step (self->open.kernel);
  if (!imk_octbscan_wavelengths (self->open.kernel, self->shared.wavelengths))
    self->shared.wavelengths[0] = self->shared.wavelengths[1] = 0;
  return IMK_OK;
}

/* docs/explanation/measurements.md: the way to the GPU and back takes as long
 * as a core takes for a handful of A-scans. */
static gboolean
gst_oct_bscan_prefers_cuda (GstElement *element, const GstVideoInfo *info)
{
  return info->height >= 16;
}

static const GstImagingEngineFuncs engine_funcs = {
    .open = gst_oct_bscan_open,
    .close = gst_oct_bscan_close,
    .prefers_cuda = gst_oct_bscan_prefers_cuda,
    .reconfigure = gst_oct_bscan_reconfigure,
};

/* --- states -------------------------------------------------------------- */

static gboolean
gst_oct_bscan_start (GstElement *element)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);

  gst_segment_init (&self->input.segment, GST_FORMAT_UNDEFINED);
  gst_video_info_init (&self->input.lines);
  gst_imaging_settings_start (self->base.settings);
  gst_oct_bscan_take_settings (
      self, gst_imaging_settings_copy (self->base.settings), NULL);
  gst_oct_bscan_reset_range (self);
  gst_oct_bscan_enface_reset (self->output.enface);
  GST_OBJECT_LOCK (self);
  self->latency = self->wait = 0;
  GST_OBJECT_UNLOCK (self);
  g_mutex_lock (&self->engine_lock);
  self->shared.host_images = self->shared.has_shown = FALSE;
  self->in_use.warned_of_cameras = self->in_use.warned_of_mean = FALSE;
  g_atomic_int_set (&self->warned_of_bad, FALSE);
  g_atomic_int_set (&self->warned_of_mirror, FALSE);
  self->input.next_fringe = 0;
  gst_imaging_numbering_reset (&self->input.numbering);
  self->input.n_missing = 0;
  self->output.mean_lines.n = 0;
  self->input.warned_of_gap = self->input.warned_of_jitter = FALSE;
  g_mutex_unlock (&self->engine_lock);
  for (guint i = 0; i < N_OUTPUTS; i++)
    gst_buffer_pool_set_active (self->output.parts[i], TRUE);
  /* the engine's device is the first of cuda-devices */
  return gst_imaging_engine_choose_devices (
             self->base.engine, self->in_use.now->cuda_devices, NULL) &&
         gst_imaging_engine_start (self->base.engine);
}

static void
gst_oct_bscan_stop (GstElement *element)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);
  GstVideoInfo none;

  /* queries pass an inactive pad, and pads and actions are requested in any
   * state */
  GST_PAD_STREAM_LOCK (self->sink);
  gst_oct_bscan_release_devices (self);
  gst_video_info_init (&none);
  g_mutex_lock (&self->engine_lock);
  self->in_use.has_caps = FALSE;
  gst_oct_bscan_reconfigure (element);
  gst_imaging_src_pads_reset (self->base.outputs);
  gst_oct_bscan_group_setup (self->input.group, &none, &none, NULL);
  gst_imaging_engine_stop (self->base.engine);
  for (guint i = 0; i < N_OUTPUTS; i++)
    gst_buffer_pool_set_active (self->output.parts[i], FALSE);
  g_mutex_unlock (&self->engine_lock);
  GST_PAD_STREAM_UNLOCK (self->sink);
}

/* A thread may wait for room. */
static GstStateChangeReturn
gst_oct_bscan_change_state (GstElement *element, GstStateChange change)
{
  if (change == GST_STATE_CHANGE_PAUSED_TO_READY)
    gst_oct_bscan_set_flushing (GST_OCT_BSCAN (element), TRUE);
  return GST_ELEMENT_CLASS (gst_oct_bscan_parent_class)
      ->change_state (element, change);
}

/* --- properties ---------------------------------------------------------- */

static const gchar *const ends[] = {
    "range-min", "range-max", "linear-min", "linear-max", NULL};

/* Whoever sets an end of the range means a fixed one. */
static void
set_with_range (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  const GstStructure *s = g_value_get_boxed (value);
  GValue whole = G_VALUE_INIT;
  gboolean has_end = FALSE;

  for (const gchar *const *name = ends; s && *name; name++)
    has_end |= gst_structure_has_field (s, *name);
  g_value_init (&whole, GST_TYPE_STRUCTURE);
  g_value_copy (value, &whole);
  if (has_end && !gst_structure_has_field (s, "range"))
    gst_structure_set (
        g_value_get_boxed (&whole), "range", G_TYPE_STRING, "fixed", NULL);
  gst_imaging_settings_set_property (object, id, &whole, pspec);
  g_value_unset (&whole);
}

static void
gst_oct_bscan_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  if (gst_imaging_engine_set_property (
          GST_OCT_BSCAN (object)->base.engine, id, value))
    return;
  if (g_str_equal (pspec->name, "settings")) {
    set_with_range (object, id, value, pspec);
    return;
  }
  gst_imaging_settings_set_property (object, id, value, pspec);
  if (g_strv_contains (ends, pspec->name))
    g_object_set (object, "range", IMK_OCTBSCAN_RANGE_FIXED, NULL);
}

static void
get_shares (GstOctBscan *self, GValue *value)
{
  GstStructure *shares;

  GST_OBJECT_LOCK (self);
  shares = self->shared.queue ? gst_oct_bscan_queue_shares (self->shared.queue)
                              : gst_structure_new_empty ("octbscan-shares");
  GST_OBJECT_UNLOCK (self);
  g_value_take_boxed (value, shares);
}

static void
gst_oct_bscan_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstOctBscan *self = GST_OCT_BSCAN (object);

  if (gst_imaging_engine_get_property (self->base.engine, id, value))
    return;
  if (id == PROP_SHARES)
    get_shares (self, value);
  else
    gst_imaging_settings_get_property (object, id, value, pspec);
}

/* --- GObject ------------------------------------------------------------- */

static void
gst_oct_bscan_finalize (GObject *object)
{
  GstOctBscan *self = GST_OCT_BSCAN (object);

  gst_oct_bscan_mirrors_free (self->mirrors);
  imk_octbscan_sweep_free (self->input.sweep);
  gst_oct_bscan_plan_free (self->in_use.plan);
  gst_imaging_settings_free_copy (self->base.settings, self->in_use.now);
  gst_clear_buffer (&self->input.mean.last);
  gst_clear_buffer (&self->output.last_rows);
  for (guint i = 0; i < N_OUTPUTS; i++)
    gst_clear_object (&self->output.parts[i]);
  gst_oct_bscan_group_free (self->input.group);
  gst_oct_bscan_enface_free (self->output.enface);
  g_mutex_clear (&self->engine_lock);
  G_OBJECT_CLASS (gst_oct_bscan_parent_class)->finalize (object);
}

static void
gst_oct_bscan_class_init (GstOctBscanClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  gst_imaging_settings_install (object_class, &gst_oct_bscan_settings_table);
  object_class->set_property = gst_oct_bscan_set_property;
  object_class->get_property = gst_oct_bscan_get_property;
  object_class->finalize = gst_oct_bscan_finalize;
  gst_imaging_engine_install_properties (object_class);
  g_object_class_install_property (object_class, PROP_SHARES,
      g_param_spec_boxed ("shares", "Shares",
          "Number of B-scans that each GPU has made since the settings last "
          "changed: cuda0, cuda1, ...; and cpu, which continues alone after "
          "the last GPU is lost",
          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));

  gst_oct_bscan_install_actions (object_class);

  gst_element_class_set_static_metadata (element_class, "OCT B-scans",
      "Filter/Converter/Video",
      "Makes B-scans of optical coherence tomography from raw spectra",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (
      element_class, &src_templates[SRC]);
  for (guint i = 0; i < SRC; i++)
    gst_element_class_add_static_pad_template (
        element_class, &src_templates[i]);
  element_class->change_state = gst_oct_bscan_change_state;
  GST_IMAGING_ELEMENT_CLASS (klass)->start = gst_oct_bscan_start;
  GST_IMAGING_ELEMENT_CLASS (klass)->stop = gst_oct_bscan_stop;
}

static void
gst_oct_bscan_init (GstOctBscan *self)
{
  GstElement *element = GST_ELEMENT (self);

  self->base.engine = gst_imaging_engine_new (element, &engine_funcs);
  gst_imaging_engine_use_slabs (self->base.engine, GST_OCT_BSCAN_SLAB_SIZE);
  gst_imaging_stats_name_own (
      gst_imaging_engine_stats (self->base.engine), "bad-ascans");
  g_mutex_init (&self->engine_lock);
  self->mirrors = gst_oct_bscan_mirrors_new ();
  self->input.group = gst_oct_bscan_group_new ();
  for (guint i = 0; i < N_OUTPUTS; i++)
    self->output.parts[i] = gst_imaging_parts_new ();
  self->output.enface = gst_oct_bscan_enface_new ();
  self->base.outputs = gst_imaging_src_pads_new (
      element, GST_TYPE_OCT_BSCAN_PAD, output_names, N_OUTPUTS);
  gst_imaging_src_pads_set_functions (
      self->base.outputs, NULL, gst_oct_bscan_src_query);
  /* not of the engine: ascans-per-bscan is a part of what it opens for */
  self->base.settings =
      gst_imaging_settings_new (element, &gst_oct_bscan_settings_table, NULL);
  self->in_use.now = gst_imaging_settings_copy (self->base.settings);

  self->sink = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_oct_bscan_set_sink_functions (self->sink);
  gst_element_add_pad (element, self->sink);

  gst_imaging_src_pads_request (
      self->base.outputs, gst_element_class_get_pad_template (
                              GST_ELEMENT_GET_CLASS (element), "src"));
}
