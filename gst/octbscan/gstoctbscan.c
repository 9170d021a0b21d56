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
 * `linear` has the linear image beside it.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 npysrc location=spectra.npy ! octbscan calibration=oct.ini
 * range-max=50 ! videoconvert ! autovideosink
 * ]|
 *
 * Since: 0.2
 */
#include "gstoctbscan-private.h"

#include "gstimagingallocation.h"
#include "gstimagingenum.h"
#include "gstoctbscancalibration.h"

GST_DEBUG_CATEGORY (gst_oct_bscan_debug);

#define DEFAULT_PROP_SCALING SCALING_DB
#define DEFAULT_PROP_ASCANS_PER_BSCAN 0
#define DEFAULT_PROP_FIRST_CAMERA 0

enum {
  PROP_0 = GST_IMAGING_ENGINE_N_PROPERTIES,
  PROP_CAMERAS,
  PROP_FIRST_CAMERA,
  PROP_CALIBRATION,
  PROP_CAMERA_ORDER,
  PROP_UPSAMPLE,
  PROP_SCALE,
  PROP_INTERPOLATION,
  PROP_GRID,
  PROP_TAPER,
  PROP_TAPER_CUT,
  PROP_TAPER_BELOW,
  PROP_WINDOW,
  PROP_BACKGROUND,
  PROP_BACKGROUND_LOCATION,
  PROP_CROP_TOP,
  PROP_CROP_BOTTOM,
  PROP_ORIENTATION,
  PROP_STRATEGY,
  PROP_ASCANS_PER_BSCAN,
  PROP_SCALING,
  PROP_RANGE,
  PROP_RANGE_MIN,
  PROP_RANGE_MAX,
  PROP_PERCENT_MIN,
  PROP_PERCENT_MAX,
};

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("{ GRAY16_LE, GRAY8 }")));

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("{ GRAY8, GRAY16_LE }")));

static GstStaticPadTemplate linear_template =
    GST_STATIC_PAD_TEMPLATE ("linear", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("{ GRAY8, GRAY16_LE }")));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstOctBscan, gst_oct_bscan, GST_TYPE_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (gst_oct_bscan_debug, "octbscan", 0,
        "B-scans of optical coherence tomography"))
GST_ELEMENT_REGISTER_DEFINE (
    octbscan, "octbscan", GST_RANK_NONE, GST_TYPE_OCT_BSCAN)

/* --- enumerations -------------------------------------------------------- */

static const GEnumValue interpolation_values[] = {
    {IMK_OCTBSCAN_INTERPOLATION_EXACT, "The band-limited signal, to 1e-7",
        "exact"},
    {IMK_OCTBSCAN_INTERPOLATION_LINEAR, "Linear after upsampling", "linear"},
    {IMK_OCTBSCAN_INTERPOLATION_CUBIC, "Catmull-Rom after upsampling", "cubic"},
    {IMK_OCTBSCAN_INTERPOLATION_LANCZOS,
        "Lanczos of eight samples after upsampling", "lanczos"},
    {IMK_OCTBSCAN_INTERPOLATION_THESIS,
        "Linear, with 0 at the first and last two wavenumbers", "thesis"},
    {0, NULL, NULL},
};

static const GEnumValue grid_values[] = {
    {IMK_OCTBSCAN_GRID_EXACT, "Sample m of M is at pixel m N / M", "exact"},
    {IMK_OCTBSCAN_GRID_THESIS, "Taken to be at m (N - 1) / (M - 1)", "thesis"},
    {0, NULL, NULL},
};

static const GEnumValue taper_values[] = {
    {IMK_OCTBSCAN_TAPER_TUKEY, "(1 - cos (pi n / cut)) / 2", "tukey"},
    {IMK_OCTBSCAN_TAPER_THESIS, "Hann (n) / Hann (cut), Hann of all samples",
        "thesis"},
    {IMK_OCTBSCAN_TAPER_NONE, "None", "none"},
    {0, NULL, NULL},
};

static const GEnumValue window_values[] = {
    {IMK_OCTBSCAN_WINDOW_NONE, "None", "none"},
    {IMK_OCTBSCAN_WINDOW_HANN, "Hann", "hann"},
    {IMK_OCTBSCAN_WINDOW_HAMMING, "Hamming", "hamming"},
    {IMK_OCTBSCAN_WINDOW_BLACKMAN, "Blackman", "blackman"},
    {IMK_OCTBSCAN_WINDOW_GAUSS, "exp (-(u / 0.4)^2 / 2), u from -1 to 1",
        "gauss"},
    {0, NULL, NULL},
};

static const GEnumValue background_values[] = {
    {IMK_OCTBSCAN_BACKGROUND_MEAN,
        "The mean of the spectra of each camera in the B-scan", "mean"},
    {IMK_OCTBSCAN_BACKGROUND_FILE, "background-location", "file"},
    {IMK_OCTBSCAN_BACKGROUND_NONE, "Nothing is taken off", "none"},
    {0, NULL, NULL},
};

static const GEnumValue orientation_values[] = {
    {IMK_OCTBSCAN_ORIENTATION_DEPTH_DOWN, "An A-scan is a column",
        "depth-down"},
    {IMK_OCTBSCAN_ORIENTATION_ROWS, "An A-scan is a row", "rows"},
    {0, NULL, NULL},
};

static const GEnumValue strategy_values[] = {
    {IMK_OCTBSCAN_STRATEGY_AUTO, "The faster one on the backend", "auto"},
    {IMK_OCTBSCAN_STRATEGY_FFT, "Short Fourier transforms, on the CPU", "fft"},
    {IMK_OCTBSCAN_STRATEGY_OPERATOR, "One matrix a camera", "operator"},
    {0, NULL, NULL},
};

static const GEnumValue scaling_values[] = {
    {SCALING_DB, "10 log10 of the intensity", "db"},
    {SCALING_LINEAR, "The intensity", "linear"},
    {0, NULL, NULL},
};

static const GEnumValue range_values[] = {
    {IMK_OCTBSCAN_RANGE_FIXED, "range-min to range-max", "fixed"},
    {IMK_OCTBSCAN_RANGE_PERCENTILE,
        "percent-min to percent-max of the intensities of each B-scan",
        "percentile"},
    {IMK_OCTBSCAN_RANGE_MINMAX,
        "The least to the largest of each B-scan, as the thesis; flickers",
        "minmax"},
    {0, NULL, NULL},
};

/* --- settings ------------------------------------------------------------ */

static void
settings_clear (Settings *s)
{
  g_clear_pointer (&s->calibration, g_free);
  g_clear_pointer (&s->camera_order, g_free);
  g_clear_pointer (&s->background_location, g_free);
}

static Settings
get_settings (GstOctBscan *self)
{
  Settings s;

  GST_OBJECT_LOCK (self);
  s = self->settings;
  s.calibration = g_strdup (s.calibration);
  s.camera_order = g_strdup (s.camera_order);
  s.background_location = g_strdup (s.background_location);
  GST_OBJECT_UNLOCK (self);
  return s;
}

/* --- the kernel ---------------------------------------------------------- */

static void
gst_oct_bscan_close (GstElement *element)
{
  g_clear_pointer (&GST_OCT_BSCAN (element)->kernel, imk_octbscan_free);
}

static ImkStatus
open_with (GstOctBscan *self, ImkBackend backend, Settings *s, ImkError *error)
{
  ImkOctbscanConfig *c = &s->config;
  GstOctBscanCalibration *calibration = gst_oct_bscan_calibration_load (
      s->calibration, s->camera_order, c->n_cameras, c->width, error);
  gdouble *background = NULL;
  ImkStatus status = calibration ? IMK_OK : error->code;
  guint32 width, height;

  if (status == IMK_OK && s->background_location &&
      c->background_mode == IMK_OCTBSCAN_BACKGROUND_FILE) {
    background = gst_oct_bscan_load_background (
        s->background_location, c->n_cameras, c->width, error);
    status = background ? IMK_OK : IMK_ERROR_FILE;
  }
  if (status == IMK_OK) {
    c->cameras = calibration->cameras;
    c->background = background;
    status = imk_octbscan_new (backend, c, &self->kernel, error);
  }
  if (status == IMK_OK) {
    imk_octbscan_size (c, &width, &height);
    self->width = (gint) width;
    self->height = (gint) height;
    self->n_cameras = c->n_cameras;
  }
  gst_oct_bscan_calibration_free (calibration);
  g_free (background);
  return status;
}

static ImkStatus
gst_oct_bscan_open (GstElement *element, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);
  Settings s = get_settings (self);
  ImkStatus status;

  s.config.width = info->width;
  s.config.height = info->height;
  s.config.type = GST_VIDEO_INFO_FORMAT (info) == GST_VIDEO_FORMAT_GRAY8
                      ? IMK_TYPE_U8
                      : IMK_TYPE_U16;
  s.config.n_threads = gst_imaging_engine_n_threads (self->engine);
  status = open_with (self, backend, &s, error);
  settings_clear (&s);
  return status;
}

/* Downstream's memory is asked for anew. */
static void
gst_oct_bscan_reconfigure (GstElement *element)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);

  for (guint i = 0; i < N_OUTPUTS; i++)
    gst_oct_bscan_output_reset (&self->outputs[i]);
}

/* docs/benchmarks.md: the way to the GPU and back takes as long as a core takes
 * for a handful of A-scans. */
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

/* --- caps ---------------------------------------------------------------- */

/* Where the lines of several buffers are gathered: page-locked for the GPU. */
static GstBufferPool *
gather_pool (GstOctBscan *self, GstCaps *caps)
{
  GstAllocator *allocator = gst_imaging_engine_is_on_cuda (self->engine)
                                ? gst_imaging_engine_allocator_new (
                                      self->engine, GST_IMAGING_MEMORY_PINNED)
                                : NULL;
  GstBufferPool *pool =
      gst_imaging_video_pool_new (allocator, caps, &self->bscan, FALSE);

  if (pool && !gst_buffer_pool_set_active (pool, TRUE))
    gst_clear_object (&pool);
  gst_clear_object (&allocator);
  return pool;
}

static void
forget_lines (GstOctBscan *self, const gchar *why)
{
  guint n = gst_oct_bscan_group_reset (self->group);

  if (n > 0)
    GST_ELEMENT_WARNING (self, STREAM, FORMAT,
        ("%u lines do not fill a B-scan of %d (ascans-per-bscan) and are left "
         "out: %s.",
            n, self->bscan.height, why),
        (NULL));
}

/* A B-scan waits for the last of its buffers. */
static void
update_latency (GstOctBscan *self)
{
  guint n = (self->bscan.height + self->lines.height - 1) / self->lines.height;
  GstClockTime latency = self->lines.fps_n > 0
                             ? gst_util_uint64_scale ((n - 1) * GST_SECOND,
                                   self->lines.fps_d, self->lines.fps_n)
                             : 0;
  gboolean changed;

  GST_OBJECT_LOCK (self);
  changed = latency != self->latency;
  self->latency = latency;
  GST_OBJECT_UNLOCK (self);
  if (changed)
    gst_element_post_message (
        GST_ELEMENT (self), gst_message_new_latency (GST_OBJECT (self)));
}

/* Opens the kernel for the lines that come and the properties as they are. */
static gboolean
configure (GstOctBscan *self)
{
  guint height, plan;
  GstBufferPool *pool;
  GstCaps *caps;
  gint fps_n = self->lines.fps_n, fps_d = self->lines.fps_d;
  gboolean ok;

  GST_OBJECT_LOCK (self);
  height = self->settings.ascans_per_bscan;
  plan = self->settings.plan;
  GST_OBJECT_UNLOCK (self);
  if (height == 0)
    height = self->lines.height;
  if (self->has_caps && (guint) self->bscan.height != height)
    forget_lines (self, "ascans-per-bscan has changed");
  if (!gst_util_fraction_multiply (
          fps_n, fps_d, self->lines.height, height, &fps_n, &fps_d)) {
    fps_n = 0;
    fps_d = 1;
  }
  gst_video_info_set_format (&self->bscan, GST_VIDEO_INFO_FORMAT (&self->lines),
      self->lines.width, height);
  self->bscan.fps_n = fps_n;
  self->bscan.fps_d = fps_d;
  caps = gst_video_info_to_caps (&self->bscan);
  ok = gst_imaging_engine_set_caps (self->engine, caps, NULL);
  if (ok) {
    pool = gather_pool (self, caps);
    gst_oct_bscan_group_setup (self->group, &self->lines, &self->bscan, pool);
    gst_clear_object (&pool);
    update_latency (self);
    self->open_plan = plan;
    self->next_camera %= self->n_cameras;
    gst_oct_bscan_reconfigure (GST_ELEMENT (self));
  }
  self->has_caps = ok;
  gst_caps_unref (caps);
  return ok;
}

static void
begin_turns (GstOctBscan *self)
{
  GST_OBJECT_LOCK (self);
  self->next_camera = self->settings.first_camera;
  self->open_turns = self->settings.turns;
  GST_OBJECT_UNLOCK (self);
}

static gboolean
set_caps (GstOctBscan *self, GstCaps *caps)
{
  GstVideoInfo info;

  if (!gst_video_info_from_caps (&info, caps))
    return FALSE;
  if (self->has_caps && gst_video_info_is_equal (&info, &self->lines))
    return TRUE;
  if (self->has_caps)
    forget_lines (self, "the format changes");
  self->has_caps = FALSE;
  self->lines = info;
  begin_turns (self);
  if (!configure (self))
    return FALSE;
  /* now, as the segment comes next, which stands behind the caps */
  for (guint i = 0; i < N_OUTPUTS; i++) {
    GstPad *pad = gst_oct_bscan_ref_pad (self, i);

    gst_oct_bscan_negotiate (self, i, pad);
    g_clear_object (&pad);
  }
  return TRUE;
}

/* --- buffers ------------------------------------------------------------- */

/* Controlled properties follow stream time, which only TIME segments have. */
static void
sync_controlled (GstOctBscan *self, GstBuffer *buffer)
{
  GstClockTime pts = GST_BUFFER_PTS (buffer);

  if (self->segment.format != GST_FORMAT_TIME || !GST_CLOCK_TIME_IS_VALID (pts))
    return;
  pts = gst_segment_to_stream_time (&self->segment, GST_FORMAT_TIME, pts);
  if (GST_CLOCK_TIME_IS_VALID (pts))
    gst_object_sync_values (GST_OBJECT (self), pts);
}

/* New properties since the last B-scan. */
static gboolean
follow_settings (GstOctBscan *self)
{
  gboolean same_plan, same_turns;

  GST_OBJECT_LOCK (self);
  same_plan = self->settings.plan == self->open_plan;
  same_turns = self->settings.turns == self->open_turns;
  GST_OBJECT_UNLOCK (self);
  if (!same_turns)
    begin_turns (self);
  return same_plan || configure (self);
}

static GstFlowReturn
gst_oct_bscan_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstOctBscan *self = GST_OCT_BSCAN (parent);
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_OK;
  ImkStatus status = IMK_OK;
  GstBuffer *bscan;
  ImkError error;

  sync_controlled (self, buffer);
  if (!self->has_caps && self->lines.width == 0) {
    gst_buffer_unref (buffer);
    return GST_FLOW_NOT_NEGOTIATED;
  }
  if (GST_BUFFER_IS_DISCONT (buffer) &&
      gst_oct_bscan_group_n_waiting (self->group) > 0) {
    forget_lines (self, "the stream is interrupted");
    begin_turns (self);
  }
  if (!follow_settings (self) ||
      !gst_imaging_engine_follow (self->engine, buffer)) {
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  gst_oct_bscan_group_push (self->group, buffer);
  while (flow == GST_FLOW_OK &&
         (bscan = gst_oct_bscan_group_next (self->group, &status, &error)))
    flow = gst_oct_bscan_process (self, bscan, entered);
  if (status != IMK_OK) {
    gst_imaging_engine_post_error (self->engine, status, &error);
    flow = GST_FLOW_ERROR;
  }
  return flow;
}

/* --- events and queries --------------------------------------------------- */

static gboolean
gst_oct_bscan_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstOctBscan *self = GST_OCT_BSCAN (parent);
  GstCaps *caps;
  gboolean ok;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    ok = set_caps (self, caps);
    gst_event_unref (event);
    return ok;
  case GST_EVENT_SEGMENT:
    gst_event_copy_segment (event, &self->segment);
    break;
  case GST_EVENT_FLUSH_STOP:
    gst_oct_bscan_group_reset (self->group);
    gst_flow_combiner_reset (self->flows);
    gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
    begin_turns (self);
    break;
  case GST_EVENT_EOS:
    forget_lines (self, "the stream ends");
    break;
  default:
    break;
  }
  return gst_pad_event_default (pad, parent, event);
}

static gboolean
gst_oct_bscan_sink_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstOctBscan *self = GST_OCT_BSCAN (parent);

  if (gst_imaging_engine_query (self->engine, query))
    return TRUE;
  if (GST_QUERY_TYPE (query) != GST_QUERY_ALLOCATION)
    return gst_pad_query_default (pad, parent, query);
  if (!gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL))
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  gst_imaging_allocation_propose (self->engine, query);
  return TRUE;
}

static void
add_latency (GstOctBscan *self, GstQuery *query)
{
  GstClockTime minimum, maximum, ours;
  gboolean live;

  GST_OBJECT_LOCK (self);
  ours = self->latency;
  GST_OBJECT_UNLOCK (self);
  gst_query_parse_latency (query, &live, &minimum, &maximum);
  gst_query_set_latency (query, live, minimum + ours,
      GST_CLOCK_TIME_IS_VALID (maximum) ? maximum + ours : maximum);
}

static gboolean
gst_oct_bscan_src_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstOctBscan *self = GST_OCT_BSCAN (parent);

  if (gst_imaging_engine_query (self->engine, query))
    return TRUE;
  if (!gst_pad_query_default (pad, parent, query))
    return FALSE;
  if (GST_QUERY_TYPE (query) == GST_QUERY_LATENCY)
    add_latency (self, query);
  return TRUE;
}

/* --- the linear pad ------------------------------------------------------- */

static gboolean
copy_sticky (GstPad *pad, GstEvent **event, gpointer to)
{
  if (GST_EVENT_TYPE (*event) != GST_EVENT_CAPS)
    gst_pad_store_sticky_event (to, *event);
  return TRUE;
}

static GstPad *
gst_oct_bscan_request_new_pad (GstElement *element, GstPadTemplate *template,
    const gchar *name, const GstCaps *caps)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);
  GstPad *pad = gst_oct_bscan_ref_pad (self, LINEAR);

  if (pad) { /* there is one already */
    gst_object_unref (pad);
    return NULL;
  }
  pad = gst_pad_new_from_template (template, "linear");
  gst_pad_set_query_function (pad, gst_oct_bscan_src_query);
  gst_pad_set_active (pad, TRUE);
  gst_pad_sticky_events_foreach (self->sink, copy_sticky, pad);
  GST_PAD_STREAM_LOCK (self->sink);
  GST_OBJECT_LOCK (self);
  self->outputs[LINEAR].pad = gst_object_ref (pad);
  GST_OBJECT_UNLOCK (self);
  gst_flow_combiner_add_pad (self->flows, pad);
  GST_PAD_STREAM_UNLOCK (self->sink);
  gst_element_add_pad (element, pad);
  return pad;
}

static void
drop_linear (GstOctBscan *self)
{
  GstPad *pad;

  GST_PAD_STREAM_LOCK (self->sink);
  GST_OBJECT_LOCK (self);
  pad = g_steal_pointer (&self->outputs[LINEAR].pad);
  GST_OBJECT_UNLOCK (self);
  gst_oct_bscan_output_reset (&self->outputs[LINEAR]);
  if (pad)
    gst_flow_combiner_remove_pad (self->flows, pad);
  GST_PAD_STREAM_UNLOCK (self->sink);
  g_clear_object (&pad);
}

static void
gst_oct_bscan_release_pad (GstElement *element, GstPad *pad)
{
  gst_object_ref (pad);
  gst_pad_set_active (pad, FALSE); /* lets go of a thread that pushes there */
  drop_linear (GST_OCT_BSCAN (element));
  gst_element_remove_pad (element, pad);
  gst_object_unref (pad);
}

/* --- states -------------------------------------------------------------- */

static void
gst_oct_bscan_set_context (GstElement *element, GstContext *message)
{
  gst_imaging_engine_set_context (GST_OCT_BSCAN (element)->engine, message);
  GST_ELEMENT_CLASS (gst_oct_bscan_parent_class)
      ->set_context (element, message);
}

static gboolean
start (GstOctBscan *self)
{
  gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
  gst_video_info_init (&self->lines);
  self->has_caps = FALSE;
  self->latency = 0;
  gst_flow_combiner_reset (self->flows);
  return gst_imaging_engine_start (self->engine);
}

static void
stop (GstOctBscan *self)
{
  GstVideoInfo none;

  gst_oct_bscan_reconfigure (GST_ELEMENT (self));
  gst_video_info_init (&none);
  gst_oct_bscan_group_setup (self->group, &none, &none, NULL);
  gst_imaging_engine_stop (self->engine);
}

static GstStateChangeReturn
gst_oct_bscan_change_state (GstElement *element, GstStateChange change)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);
  GstStateChangeReturn result;

  if (change == GST_STATE_CHANGE_READY_TO_PAUSED && !start (self))
    return GST_STATE_CHANGE_FAILURE;
  result = GST_ELEMENT_CLASS (gst_oct_bscan_parent_class)
               ->change_state (element, change);
  if (change == GST_STATE_CHANGE_PAUSED_TO_READY ||
      (change == GST_STATE_CHANGE_READY_TO_PAUSED &&
          result == GST_STATE_CHANGE_FAILURE))
    stop (self);
  return result;
}

/* --- properties ---------------------------------------------------------- */

static const GParamFlags live = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                                GST_PARAM_CONTROLLABLE |
                                GST_PARAM_MUTABLE_PLAYING;
/* a new kernel is planned, which takes some time */
static const GParamFlags planned =
    G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

typedef struct {
  guint id;
  const gchar *name, *nick, *blurb;
  guint minimum, maximum;
  gsize offset; /* in Settings */
} UintProperty;

#define SETTING(member) G_STRUCT_OFFSET (Settings, member)

static const UintProperty uint_properties[] = {
    {PROP_CAMERAS, "cameras", "Cameras",
        "How many cameras take turns, line by line", 1,
        IMK_OCTBSCAN_MAX_CAMERAS, SETTING (config.n_cameras)},
    {PROP_FIRST_CAMERA, "first-camera", "First camera",
        "Camera of the first line of the stream, and of the next B-scan after "
        "this is set; from there the turns are carried on from B-scan to "
        "B-scan, also when their lines are no multiple of cameras",
        0, IMK_OCTBSCAN_MAX_CAMERAS - 1, SETTING (first_camera)},
    {PROP_UPSAMPLE, "upsample", "Upsample",
        "M, wavenumbers a spectrum is resampled to, and samples it is "
        "upsampled to first (not for interpolation=exact, which needs none); "
        "at least the samples of a spectrum, and without upsampling when equal",
        4, IMK_OCTBSCAN_MAX_POINTS, SETTING (config.upsample)},
    {PROP_SCALE, "scale", "Scale",
        "s, the transform has s M points, all but M of them zeros: N s / 2 "
        "depths for spectra of N samples",
        1, 64, SETTING (config.scale)},
    {PROP_TAPER_CUT, "taper-cut", "Taper cut",
        "Samples that are tapered at each end of a spectrum", 1,
        IMK_OCTBSCAN_MAX_WIDTH, SETTING (config.taper_cut)},
    {PROP_TAPER_BELOW, "taper-below", "Taper below",
        "Spectra with fewer samples than this are tapered", 0,
        IMK_OCTBSCAN_MAX_WIDTH + 1, SETTING (config.taper_below)},
    {PROP_CROP_TOP, "crop-top", "Crop top",
        "Depths left out at zero delay; they are not computed either", 0,
        G_MAXINT, SETTING (config.crop_top)},
    {PROP_CROP_BOTTOM, "crop-bottom", "Crop bottom",
        "Depths left out at the far end; they are not computed either", 0,
        G_MAXINT, SETTING (config.crop_bottom)},
    {PROP_ASCANS_PER_BSCAN, "ascans-per-bscan", "A-scans per B-scan",
        "Lines of a B-scan, whatever the lines of a buffer; 0 for those of a "
        "buffer",
        0, IMK_OCTBSCAN_MAX_HEIGHT, SETTING (ascans_per_bscan)},
};

typedef struct {
  guint id;
  const gchar *name, *nick, *blurb, *type;
  const GEnumValue *values;
  gsize offset; /* in Settings */
} EnumProperty;

static const EnumProperty enum_properties[] = {
    {PROP_INTERPOLATION, "interpolation", "Interpolation",
        "How samples at equal distances in wavenumber are had",
        "GstOctBscanInterpolation", interpolation_values,
        SETTING (config.interpolation)},
    {PROP_GRID, "grid", "Grid", "Where upsampled samples lie",
        "GstOctBscanGrid", grid_values, SETTING (config.grid)},
    {PROP_TAPER, "taper", "Taper",
        "What the first and last taper-cut samples of short spectra are "
        "multiplied by",
        "GstOctBscanTaper", taper_values, SETTING (config.taper)},
    {PROP_WINDOW, "window", "Window", "Window over the wavenumbers",
        "GstOctBscanWindow", window_values, SETTING (config.window)},
    {PROP_BACKGROUND, "background", "Background",
        "What is taken off each spectrum", "GstOctBscanBackground",
        background_values, SETTING (config.background_mode)},
    {PROP_ORIENTATION, "orientation", "Orientation", "How the image lies",
        "GstOctBscanOrientation", orientation_values,
        SETTING (config.orientation)},
    {PROP_STRATEGY, "strategy", "Strategy",
        "How it is computed; the image is the same", "GstOctBscanStrategy",
        strategy_values, SETTING (config.strategy)},
    {PROP_SCALING, "scaling", "Scaling", "What src shows", "GstOctBscanScaling",
        scaling_values, SETTING (scaling)},
    {PROP_RANGE, "range", "Range", "What is black and what is white",
        "GstOctBscanRange", range_values, SETTING (config.range)},
};

typedef struct {
  guint id;
  const gchar *name, *nick, *blurb;
  gdouble minimum, maximum;
  gsize offset; /* in Settings */
} DoubleProperty;

static const DoubleProperty double_properties[] = {
    {PROP_RANGE_MIN, "range-min", "Range minimum",
        "dB of black for range=fixed; 0 dB is a fringe with an amplitude of "
        "one count. Of the linear image its intensity",
        -200, 300, SETTING (config.range_min)},
    {PROP_RANGE_MAX, "range-max", "Range maximum",
        "dB of white for range=fixed, as range-min", -200, 300,
        SETTING (config.range_max)},
    {PROP_PERCENT_MIN, "percent-min", "Least percentile",
        "Percentile that is black for range=percentile", 0, 100,
        SETTING (config.percent_min)},
    {PROP_PERCENT_MAX, "percent-max", "Largest percentile",
        "Percentile that is white for range=percentile", 0, 100,
        SETTING (config.percent_max)},
};

typedef struct {
  guint id;
  const gchar *name, *nick, *blurb;
  gsize offset; /* in Settings */
} StringProperty;

static const StringProperty string_properties[] = {
    {PROP_CALIBRATION, "calibration", "Calibration",
        "An .ini file with a group [camera 0], [camera 1], ... for each "
        "camera, or [camera] for all; see the documentation. Without it pixels "
        "have equal distances in wavenumber",
        SETTING (calibration)},
    {PROP_CAMERA_ORDER, "camera-order", "Camera order",
        "\"1;0\": the calibrations in the order of the lines; without it 0, 1, "
        "...",
        SETTING (camera_order)},
    {PROP_BACKGROUND_LOCATION, "background-location", "Background location",
        "A .npy file with a spectrum [samples], or one for each camera "
        "[cameras, samples], for background=file",
        SETTING (background_location)},
};

#define FIND(table, wanted) \
  for (guint i_ = 0; i_ < G_N_ELEMENTS (table); i_++) \
    if (table[i_].id == (wanted)) \
  return G_STRUCT_MEMBER_P (s, table[i_].offset)

/* Where a property is kept; enumerations are as large as unsigned int. */
static gpointer
find_setting (Settings *s, guint id)
{
  FIND (uint_properties, id);
  FIND (enum_properties, id);
  FIND (double_properties, id);
  FIND (string_properties, id);
  return NULL;
}

static void
count_change (Settings *s, guint id)
{
  if (id == PROP_FIRST_CAMERA)
    s->turns++;
  else if (id < PROP_SCALING)
    s->plan++;
}

static void
gst_oct_bscan_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstOctBscan *self = GST_OCT_BSCAN (object);
  gpointer setting;

  if (gst_imaging_engine_set_property (self->engine, id, value))
    return;
  GST_OBJECT_LOCK (self);
  setting = find_setting (&self->settings, id);
  if (!setting) {
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  } else if (G_VALUE_HOLDS_STRING (value)) {
    const gchar *text = g_value_get_string (value);

    /* empty is none: gst-launch cannot write NULL */
    g_free (*(gchar **) setting);
    *(gchar **) setting = text && *text ? g_strdup (text) : NULL;
  } else if (G_VALUE_HOLDS_DOUBLE (value)) {
    *(gdouble *) setting = g_value_get_double (value);
  } else if (G_VALUE_HOLDS_ENUM (value)) {
    *(guint *) setting = (guint) g_value_get_enum (value);
  } else {
    *(guint *) setting = g_value_get_uint (value);
  }
  if (setting)
    count_change (&self->settings, id);
  GST_OBJECT_UNLOCK (self);
}

static void
gst_oct_bscan_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstOctBscan *self = GST_OCT_BSCAN (object);
  gconstpointer setting;

  if (gst_imaging_engine_get_property (self->engine, id, value))
    return;
  GST_OBJECT_LOCK (self);
  setting = find_setting (&self->settings, id);
  if (!setting)
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  else if (G_VALUE_HOLDS_STRING (value))
    g_value_set_string (value, *(gchar *const *) setting);
  else if (G_VALUE_HOLDS_DOUBLE (value))
    g_value_set_double (value, *(const gdouble *) setting);
  else if (G_VALUE_HOLDS_ENUM (value))
    g_value_set_enum (value, (gint) * (const guint *) setting);
  else
    g_value_set_uint (value, *(const guint *) setting);
  GST_OBJECT_UNLOCK (self);
}

static void
settings_init (Settings *s)
{
  imk_octbscan_config_init (&s->config);
  s->first_camera = DEFAULT_PROP_FIRST_CAMERA;
  s->ascans_per_bscan = DEFAULT_PROP_ASCANS_PER_BSCAN;
  s->scaling = DEFAULT_PROP_SCALING;
}

/* Defaults are the kernel's. */
static void
install_properties (GObjectClass *klass)
{
  Settings d = {{0}}, *s = &d;

  settings_init (s);
  for (guint i = 0; i < G_N_ELEMENTS (uint_properties); i++) {
    const UintProperty *p = &uint_properties[i];

    g_object_class_install_property (klass, p->id,
        g_param_spec_uint (p->name, p->nick, p->blurb, p->minimum, p->maximum,
            *(guint *) find_setting (s, p->id), planned));
  }
  for (guint i = 0; i < G_N_ELEMENTS (enum_properties); i++) {
    const EnumProperty *p = &enum_properties[i];

    g_object_class_install_property (klass, p->id,
        g_param_spec_enum (p->name, p->nick, p->blurb,
            gst_imaging_enum_type (p->type, p->values),
            (gint) * (guint *) find_setting (s, p->id),
            p->id < PROP_SCALING ? planned : live));
  }
  for (guint i = 0; i < G_N_ELEMENTS (double_properties); i++) {
    const DoubleProperty *p = &double_properties[i];

    g_object_class_install_property (klass, p->id,
        g_param_spec_double (p->name, p->nick, p->blurb, p->minimum, p->maximum,
            *(gdouble *) find_setting (s, p->id), live));
  }
  for (guint i = 0; i < G_N_ELEMENTS (string_properties); i++) {
    const StringProperty *p = &string_properties[i];

    g_object_class_install_property (klass, p->id,
        g_param_spec_string (p->name, p->nick, p->blurb, NULL, planned));
  }
}

/* --- GObject ------------------------------------------------------------- */

static void
gst_oct_bscan_finalize (GObject *object)
{
  GstOctBscan *self = GST_OCT_BSCAN (object);

  settings_clear (&self->settings);
  gst_flow_combiner_free (self->flows);
  gst_oct_bscan_group_free (self->group);
  gst_imaging_engine_free (self->engine);
  G_OBJECT_CLASS (gst_oct_bscan_parent_class)->finalize (object);
}

static void
gst_oct_bscan_class_init (GstOctBscanClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  object_class->set_property = gst_oct_bscan_set_property;
  object_class->get_property = gst_oct_bscan_get_property;
  object_class->finalize = gst_oct_bscan_finalize;
  gst_imaging_engine_install_properties (object_class);
  install_properties (object_class);

  gst_element_class_set_static_metadata (element_class, "OCT B-scans",
      "Filter/Converter/Video",
      "Makes B-scans of optical coherence tomography from raw spectra",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_add_static_pad_template (element_class, &linear_template);
  element_class->change_state = gst_oct_bscan_change_state;
  element_class->set_context = gst_oct_bscan_set_context;
  element_class->request_new_pad = gst_oct_bscan_request_new_pad;
  element_class->release_pad = gst_oct_bscan_release_pad;
}

static void
gst_oct_bscan_init (GstOctBscan *self)
{
  GstElement *element = GST_ELEMENT (self);
  GstPad *src;

  self->engine = gst_imaging_engine_new (element, &engine_funcs);
  self->group = gst_oct_bscan_group_new ();
  self->flows = gst_flow_combiner_new ();
  settings_init (&self->settings);

  self->sink = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sink, gst_oct_bscan_chain);
  gst_pad_set_event_function (self->sink, gst_oct_bscan_sink_event);
  gst_pad_set_query_function (self->sink, gst_oct_bscan_sink_query);
  gst_element_add_pad (element, self->sink);

  src = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_set_query_function (src, gst_oct_bscan_src_query);
  gst_element_add_pad (element, src);
  self->outputs[SRC].pad = src;
  gst_flow_combiner_add_pad (self->flows, src);
}
