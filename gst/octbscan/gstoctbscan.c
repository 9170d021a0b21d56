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
#include "gstoctbscanqueue.h"

#include "gstimagingallocation.h"
#include "gstimagingpicture.h"
#include "gstimagingstream.h"

GST_DEBUG_CATEGORY (gst_oct_bscan_debug);

enum { PROP_SHARES = GST_IMAGING_SETTINGS_FIRST_FREE_ID };

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink",
    GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (
        "{ GRAY16_LE, GRAY8 }") "; "
                                "other/tensors, format = (string) static, num_tensors = (int) 1, "
                                "types = (string) { int16, float32, uint16, uint8 }, "
                                "framerate = (fraction) [ 0, max ]"));

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("{ GRAY8, GRAY16_LE }")));

static GstStaticPadTemplate linear_template =
    GST_STATIC_PAD_TEMPLATE ("linear", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("{ GRAY8, GRAY16_LE }")));

static GstStaticPadTemplate complex_template =
    GST_STATIC_PAD_TEMPLATE ("complex", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS ("other/tensors, format = (string) static, "
                         "num_tensors = (int) 1, types = (string) float32, "
                         "framerate = (fraction) [ 0, max ]"));

static GstStaticPadTemplate enface_template =
    GST_STATIC_PAD_TEMPLATE ("enface", GST_PAD_SRC, GST_PAD_REQUEST,
        GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE ("{ GRAY8, GRAY16_LE }")));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstOctBscan, gst_oct_bscan, GST_TYPE_ELEMENT,
    GST_DEBUG_CATEGORY_INIT (gst_oct_bscan_debug, "octbscan", 0,
        "B-scans of optical coherence tomography"))
GST_ELEMENT_REGISTER_DEFINE (
    octbscan, "octbscan", GST_RANK_NONE, GST_TYPE_OCT_BSCAN)

/* --- the kernel ---------------------------------------------------------- */

static void
gst_oct_bscan_close (GstElement *element)
{
  g_clear_pointer (&GST_OCT_BSCAN (element)->kernel, imk_octbscan_free);
}

static ImkStatus
gst_oct_bscan_open (GstElement *element, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);
  ImkStatus status =
      gst_oct_bscan_kernel_new (self, backend, info, &self->kernel, error);
  guint32 width, height;

  if (status != IMK_OK)
    return status;
  imk_octbscan_size (&self->opened, &width, &height);
  self->width = (gint) width;
  self->height = (gint) height;
  self->n_cameras = self->opened.n_cameras;
  self->max_jobs = self->opened.max_jobs;
  return IMK_OK;
}

/* Downstream's memory is asked for anew. */
static void
gst_oct_bscan_reconfigure (GstElement *element)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);

  for (guint i = 0; i < N_OUTPUTS; i++) {
    GstImagingSrcPad *pad = gst_imaging_src_pads_get (self->pads, i);

    if (pad)
      gst_oct_bscan_pad_forget (GST_OCT_BSCAN_PAD (pad));
    g_clear_object (&pad);
  }
}

/* docs/explanation/benchmarks.md: the way to the GPU and back takes as long as
 * a core takes for a handful of A-scans. */
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

/* Call with the frames locked. */
static void
set_live (GstOctBscan *self, gboolean is_live, const gdouble *live)
{
  self->is_live = is_live;
  if (is_live)
    memcpy (self->live, live, sizeof (self->live));
}

/* Opens the kernel for the lines that come and the settings in force. */
static gboolean
configure (GstOctBscan *self)
{
  GstBufferPool *pool;
  gdouble live[2 * IMK_OCTBSCAN_MAX_CAMERAS];
  GstVideoInfo bscan;
  GstCaps *caps = NULL;
  gboolean ok, is_live;
  ImkError ignored;

  /* checked before */
  gst_oct_bscan_check_settings (
      self, self->now, &bscan, live, &is_live, &ignored);
  if (self->has_caps && self->bscan.height != bscan.height)
    forget_lines (self, "ascans-per-bscan has changed");
  gst_oct_bscan_drain (self);
  gst_oct_bscan_release_devices (self);
  g_mutex_lock (&self->frames);
  self->n_skipped = self->now->skip_first_line;
  self->bscan = bscan;
  set_live (self, is_live, live);
  caps = gst_video_info_to_caps (&self->bscan);
  ok = gst_imaging_engine_set_caps (self->engine, caps, NULL);
  if (ok) {
    pool = gather_pool (self, caps);
    gst_oct_bscan_group_setup (self->group, &self->lines, &self->bscan, pool);
    gst_clear_object (&pool);
    gst_oct_bscan_update_latency (self);
    self->next_camera %= self->n_cameras;
    gst_oct_bscan_reconfigure (GST_ELEMENT (self));
  }
  /* what fails now is said by the first B-scan */
  if (ok && gst_imaging_engine_is_on_cuda (self->engine))
    gst_oct_bscan_need_devices (self, &ignored);
  self->has_caps = ok;
  self->must_configure = !ok;
  g_mutex_unlock (&self->frames);
  gst_oct_bscan_forget_next_kernel (self);
  gst_clear_caps (&caps);
  if (ok)
    gst_oct_bscan_warn_of_settings (self);
  return ok;
}

/* Call when the queue is empty. */
static void
forget_rows (GstOctBscan *self, const gchar *why)
{
  gst_oct_bscan_warn_of_rows (
      self, gst_oct_bscan_enface_reset (self->enface), why);
}

/* The B-scans so far have an end: all of them are shown. */
static void
end_run (GstOctBscan *self, const gchar *why)
{
  if (self->has_caps)
    gst_oct_bscan_show_mean (self);
  gst_oct_bscan_drain (self);
  forget_lines (self, why);
  forget_rows (self, why);
}

static void
begin_turns (GstOctBscan *self)
{
  self->n_bscans = self->n_added = 0;
  self->history++;
  self->next_camera = self->now->first_camera;
}

/* What comes next has nothing to do with what was. */
static void
restart_turns (GstOctBscan *self, const gchar *why)
{
  end_run (self, why);
  begin_turns (self);
}

/* @next (transfer full) is in force from now on. */
static void
take_settings (GstOctBscan *self, Settings *next)
{
  Settings *before = self->now;

  g_mutex_lock (&self->frames);
  self->now = next;
  self->n_changes++;
  g_mutex_unlock (&self->frames);
  gst_imaging_settings_free_copy (self->settings, before);
}

static void
post_wrong_caps (GstOctBscan *self, GstCaps *caps)
{
  gboolean is_video =
      gst_structure_has_name (gst_caps_get_structure (caps, 0), "video/x-raw");

  GST_ELEMENT_ERROR (self, STREAM, FORMAT,
      ("%s", is_video ? "Frames of 4 GiB and more cannot be taken. Bring fewer "
                        "lines a buffer."
                      : "The dimensions of a tensor must be samples:lines, as "
                        "832:240, of less than 4 GiB."),
      ("%" GST_PTR_FORMAT, caps));
}

static ImkStatus
try_settings (gpointer data, ImkError *error)
{
  GstOctBscan *self = data;
  gdouble live[2 * IMK_OCTBSCAN_MAX_CAMERAS];
  gboolean is_live;
  GstVideoInfo info;

  return gst_oct_bscan_check_settings (self,
      gst_imaging_settings_now (self->settings), &info, live, &is_live, error);
}

static void
negotiate_all (GstOctBscan *self)
{
  g_mutex_lock (&self->frames);
  for (guint i = 0; self->has_caps && i < N_OUTPUTS; i++) {
    GstImagingSrcPad *pad = gst_imaging_src_pads_get (self->pads, i);

    gst_oct_bscan_negotiate (self, i, GST_OCT_BSCAN_PAD (pad));
    g_clear_object (&pad);
  }
  g_mutex_unlock (&self->frames);
}

static gboolean
set_caps (GstOctBscan *self, GstCaps *caps)
{
  guint bytes_a_pixel;
  GstVideoInfo info;
  ImkStatus status;
  ImkType type;
  ImkError error;

  if (!gst_oct_bscan_parse_caps (caps, &info, &type, &bytes_a_pixel)) {
    post_wrong_caps (self, caps);
    return FALSE;
  }
  if (self->has_caps && gst_video_info_is_equal (&info, &self->lines) &&
      type == self->type && bytes_a_pixel == self->bytes_a_pixel)
    return TRUE;
  if (self->has_caps)
    end_run (self, "the format changes");
  g_mutex_lock (&self->frames);
  self->has_caps = FALSE;
  g_mutex_unlock (&self->frames);
  self->lines = info;
  self->type = type;
  self->bytes_a_pixel = bytes_a_pixel;
  status =
      gst_imaging_settings_try (self->settings, try_settings, self, &error);
  if (status != IMK_OK) {
    g_mutex_lock (&self->frames);
    gst_imaging_engine_post_error (self->engine, status, &error);
    g_mutex_unlock (&self->frames);
    return FALSE;
  }
  take_settings (self, gst_imaging_settings_copy_now (self->settings));
  gst_oct_bscan_reset_range (self);
  begin_turns (self);
  if (!configure (self))
    return FALSE;
  negotiate_all (self); /* the segment, which must follow caps, is next */
  return TRUE;
}

/* --- buffers ------------------------------------------------------------- */

/* A kernel that had a live dispersion takes another as it is. */
static gboolean
needs_plan (GstOctBscan *self, guint groups, gboolean is_live)
{
  return groups & PLAN ||
         (groups & TUNE && (!is_live || !self->is_live || !self->kernel ||
                               imk_octbscan_strategy (self->kernel) !=
                                   IMK_OCTBSCAN_STRATEGY_FFT));
}

/* A kernel for @next, where one is needed, while that in use works on.
 * @groups: (inout): gets PLAN then */
static ImkStatus
prepare_settings (
    GstOctBscan *self, const Settings *next, guint *groups, ImkError *error)
{
  GstClockTime began = gst_util_get_timestamp ();
  gdouble live[2 * IMK_OCTBSCAN_MAX_CAMERAS] = {0};
  gboolean is_live;
  GstVideoInfo info;
  ImkStatus status =
      gst_oct_bscan_check_settings (self, next, &info, live, &is_live, error);

  if (status != IMK_OK)
    return status;
  if (!needs_plan (self, *groups, is_live)) {
    g_mutex_lock (&self->frames);
    set_live (self, is_live, live);
    g_mutex_unlock (&self->frames);
    return IMK_OK;
  }
  *groups |= PLAN;
  gst_oct_bscan_forget_next_kernel (self);
  status = gst_oct_bscan_prepare_kernel (self, next, &info, error);
  if (status == IMK_OK)
    gst_imaging_stats_add_replan (gst_imaging_engine_stats (self->engine),
        gst_util_get_timestamp () - began);
  return status;
}

/* The mean so far is of the settings before. */
ImkStatus
gst_oct_bscan_apply_settings (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);
  Settings *next = gst_imaging_settings_copy_now (self->settings);
  ImkStatus status = IMK_OK;

  if (self->has_caps)
    status = prepare_settings (self, next, &groups, error);
  if (status != IMK_OK) {
    gst_imaging_settings_free_copy (self->settings, next);
    return status;
  }
  if (self->has_caps && groups & (PLAN | TURN))
    gst_oct_bscan_show_mean (self);
  take_settings (self, next);
  if (groups & PLAN || (before && ((const Settings *) before)->config.range !=
                                      IMK_OCTBSCAN_RANGE_AUTO))
    gst_oct_bscan_reset_range (self);
  if (groups & TURN)
    begin_turns (self);
  self->must_configure |= (groups & PLAN) != 0;
  return IMK_OK;
}

/* New properties since the last buffer; all B-scans of one have the same. */
static gboolean
follow_settings (GstOctBscan *self, GstBuffer *buffer)
{
  GstClockTime time = gst_imaging_stream_time (&self->segment, buffer);
  ImkError error;
  ImkStatus status = gst_imaging_settings_update (
      self->settings, GST_IMAGING_WHEN_LIVE, time, &error);

  if (status != IMK_OK && gst_imaging_engine_is_on_cuda (self->engine)) {
    if (!gst_oct_bscan_leave_device (self, NULL, status, &error))
      return FALSE;
    status = gst_imaging_settings_update (
        self->settings, GST_IMAGING_WHEN_LIVE, time, &error);
  }
  if (status != IMK_OK) {
    g_mutex_lock (&self->frames);
    gst_imaging_engine_post_error (self->engine, status, &error);
    g_mutex_unlock (&self->frames);
    return FALSE;
  }
  return (self->has_caps && !self->must_configure) || configure (self);
}

/* To the GPU, when the lines are there. */
static gboolean
follow_memory (GstOctBscan *self, GstBuffer *buffer)
{
  gboolean ok;

  g_mutex_lock (&self->frames);
  ok = gst_imaging_engine_follow (self->engine, buffer);
  g_mutex_unlock (&self->frames);
  return ok;
}

/* A mean ends at an interruption. If lines of an incomplete B-scan are waiting,
 * the order of the cameras is unknown, too, and restarts. */
static void
handle_discont (GstOctBscan *self)
{
  if (gst_oct_bscan_group_n_waiting (self->group) > 0) {
    restart_turns (self, "the stream is interrupted");
  } else {
    gst_oct_bscan_show_mean (self);
  }
}

static void
warn_of_gap (GstOctBscan *self, guint64 n, guint n_waiting, guint n_skipped)
{
  if (self->warned_of_gap)
    return;
  self->warned_of_gap = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FAILED,
      ("%" G_GUINT64_FORMAT
       " buffer%s of %d lines did not arrive: %u lines before "
       "and %u after are left out, so that B-scans and cameras stay in step. "
       "Further ones are counted in frames-missing of stats.",
          n, n == 1 ? "" : "s", self->lines.height, n_waiting, n_skipped),
      (NULL));
}

/* @n buffers did not arrive: their lines still count in the order of the
 * cameras; the rest of an incomplete B-scan is dropped. */
static void
skip_missing (GstOctBscan *self, guint64 n)
{
  guint height = (guint) self->bscan.height;
  guint n_waiting = gst_oct_bscan_group_n_waiting (self->group);
  guint64 n_lines = n_waiting + n * (guint) self->lines.height;
  guint64 n_bscans = (n_lines + height - 1) / height;
  guint n_to_skip = (guint) (n_bscans * height - n_lines);

  gst_oct_bscan_show_mean (self);
  gst_oct_bscan_group_reset (self->group);
  gst_oct_bscan_group_skip (self->group, n_to_skip);
  self->next_camera =
      (guint) ((self->next_camera + n_bscans * height) % self->n_cameras);
  self->n_bscans += n_bscans;
  gst_imaging_stats_add_missing (gst_imaging_engine_stats (self->engine), n);
  warn_of_gap (self, n, n_waiting, n_to_skip);
}

static GstFlowReturn
gst_oct_bscan_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstOctBscan *self = GST_OCT_BSCAN (parent);
  GstClockTime entered = gst_util_get_timestamp ();
  GstFlowReturn flow = GST_FLOW_OK;
  ImkStatus status = IMK_OK;
  guint64 n_missing;
  guint most, n;
  GstBuffer *bscan;
  ImkError error;

  if (!self->has_caps && self->lines.width == 0) {
    gst_buffer_unref (buffer);
    return GST_FLOW_NOT_NEGOTIATED;
  }
  gst_imaging_numbering_next (&self->numbering, buffer, &n_missing);
  if (n_missing > 0 && self->has_caps)
    skip_missing (self, n_missing);
  else if (GST_BUFFER_IS_DISCONT (buffer))
    handle_discont (self);
  if (!follow_settings (self, buffer) || !follow_memory (self, buffer)) {
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  most = gst_oct_bscan_most_at_once (self, buffer);
  gst_oct_bscan_group_add_lines (self->group, buffer);
  while (flow == GST_FLOW_OK && (bscan = gst_oct_bscan_group_next (
                                     self->group, most, &n, &status, &error)))
    flow = gst_oct_bscan_process (self, bscan, n, entered);
  if (status != IMK_OK) {
    g_mutex_lock (&self->frames);
    gst_imaging_engine_post_error (self->engine, status, &error);
    g_mutex_unlock (&self->frames);
    flow = GST_FLOW_ERROR;
  }
  return flow;
}

/* --- events and queries --------------------------------------------------- */

/* Any thread. */
static void
set_flushing (GstOctBscan *self, gboolean flushing)
{
  GST_OBJECT_LOCK (self);
  if (self->queue)
    gst_oct_bscan_queue_set_flushing (self->queue, flushing);
  GST_OBJECT_UNLOCK (self);
}

static gboolean
gst_oct_bscan_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstOctBscan *self = GST_OCT_BSCAN (parent);
  GstSegment segment;
  GstCaps *caps;
  gboolean ok;

  /* what comes behind B-scans leaves behind their images */
  if (GST_EVENT_IS_SERIALIZED (event))
    gst_oct_bscan_drain (self);
  if (GST_EVENT_TYPE (event) == GST_EVENT_STREAM_START ||
      GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT ||
      GST_EVENT_TYPE (event) == GST_EVENT_CAPS ||
      GST_EVENT_TYPE (event) == GST_EVENT_GAP)
    gst_imaging_numbering_interrupt (&self->numbering);
  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_FLUSH_START:
    set_flushing (self, TRUE);
    break;
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    ok = set_caps (self, caps);
    gst_event_unref (event);
    return ok;
  case GST_EVENT_STREAM_START:
    restart_turns (self, "a new stream begins");
    break;
  case GST_EVENT_SEGMENT:
    gst_event_copy_segment (event, &segment);
    if (!gst_segment_is_equal (&segment, &self->segment))
      restart_turns (self, "a new segment begins");
    self->segment = segment;
    break;
  case GST_EVENT_FLUSH_STOP:
    set_flushing (self, FALSE);
    gst_imaging_numbering_interrupt (&self->numbering);
    gst_oct_bscan_group_reset (self->group);
    gst_oct_bscan_enface_reset (self->enface);
    gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
    begin_turns (self);
    break;
  case GST_EVENT_EOS:
    restart_turns (self, "the stream ends");
    negotiate_all (self); /* pads that are linked since the last B-scan */
    break;
  case GST_EVENT_GAP:
    negotiate_all (self);
    break;
  default:
    break;
  }
  gst_imaging_src_pads_event (self->pads, event);
  if (GST_EVENT_TYPE (event) == GST_EVENT_STREAM_START ||
      GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT)
    gst_imaging_src_pads_begin (self->pads);
  gst_event_unref (event);
  return TRUE;
}

static gboolean
is_of_video (GstQuery *query)
{
  GstCaps *caps;

  gst_query_parse_allocation (query, &caps, NULL);
  return caps && gst_structure_has_name (
                     gst_caps_get_structure (caps, 0), "video/x-raw");
}

static gboolean
gst_oct_bscan_sink_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstOctBscan *self = GST_OCT_BSCAN (parent);

  if (gst_imaging_engine_query (self->engine, query))
    return TRUE;
  if (GST_QUERY_IS_SERIALIZED (query))
    gst_oct_bscan_drain (self);
  if (GST_QUERY_TYPE (query) != GST_QUERY_ALLOCATION || !is_of_video (query))
    return gst_pad_query_default (pad, parent, query);
  if (!gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL))
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  gst_imaging_allocation_propose (self->engine, query);
  return TRUE;
}

/* --- pads ---------------------------------------------------------------- */

static GstPad *
gst_oct_bscan_request_new_pad (GstElement *element, GstPadTemplate *template,
    const gchar *name, const GstCaps *caps)
{
  return gst_imaging_src_pads_request (GST_OCT_BSCAN (element)->pads, template);
}

static void
gst_oct_bscan_release_pad (GstElement *element, GstPad *pad)
{
  gst_imaging_src_pads_release (GST_OCT_BSCAN (element)->pads, pad);
}

/* --- states -------------------------------------------------------------- */

static void
gst_oct_bscan_set_context (GstElement *element, GstContext *message)
{
  gst_imaging_engine_set_context (GST_OCT_BSCAN (element)->engine, message);
  GST_ELEMENT_CLASS (gst_oct_bscan_parent_class)
      ->set_context (element, message);
}

/* The engine's device is the first of cuda-devices. */
static gboolean
choose_first_device (GstOctBscan *self)
{
  return gst_imaging_engine_choose_devices (
      self->engine, self->now->cuda_devices, NULL);
}

static gboolean
start (GstOctBscan *self)
{
  gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
  gst_video_info_init (&self->lines);
  gst_imaging_settings_start (self->settings);
  take_settings (self, gst_imaging_settings_copy (self->settings));
  gst_oct_bscan_reset_range (self);
  gst_oct_bscan_enface_reset (self->enface);
  GST_OBJECT_LOCK (self);
  self->latency = self->wait = 0;
  GST_OBJECT_UNLOCK (self);
  g_mutex_lock (&self->frames);
  self->host_images = self->has_shown = FALSE;
  self->warned_of_cameras = self->warned_of_mean = FALSE;
  g_atomic_int_set (&self->warned_of_bad, FALSE);
  g_atomic_int_set (&self->warned_of_mirror, FALSE);
  self->next_fringe = 0;
  gst_imaging_numbering_reset (&self->numbering);
  self->warned_of_gap = FALSE;
  g_mutex_unlock (&self->frames);
  return choose_first_device (self) && gst_imaging_engine_start (self->engine);
}

static void
stop (GstOctBscan *self)
{
  GstVideoInfo none;

  /* a pad that is no longer active still passes queries on, and pads and
   * actions are asked for in any state */
  GST_PAD_STREAM_LOCK (self->sink);
  gst_oct_bscan_release_devices (self);
  gst_video_info_init (&none);
  g_mutex_lock (&self->frames);
  self->has_caps = FALSE;
  gst_oct_bscan_reconfigure (GST_ELEMENT (self));
  gst_imaging_src_pads_reset (self->pads);
  gst_oct_bscan_group_setup (self->group, &none, &none, NULL);
  gst_imaging_engine_stop (self->engine);
  g_mutex_unlock (&self->frames);
  GST_PAD_STREAM_UNLOCK (self->sink);
}

static GstStateChangeReturn
gst_oct_bscan_change_state (GstElement *element, GstStateChange change)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);
  GstStateChangeReturn result;

  if (change == GST_STATE_CHANGE_READY_TO_PAUSED && !start (self))
    return GST_STATE_CHANGE_FAILURE;
  if (change == GST_STATE_CHANGE_PAUSED_TO_READY)
    set_flushing (self, TRUE); /* who waits for room has to go */
  result = GST_ELEMENT_CLASS (gst_oct_bscan_parent_class)
               ->change_state (element, change);
  if (change == GST_STATE_CHANGE_PAUSED_TO_READY ||
      (change == GST_STATE_CHANGE_READY_TO_PAUSED &&
          result == GST_STATE_CHANGE_FAILURE))
    stop (self);
  return result;
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
          GST_OCT_BSCAN (object)->engine, id, value))
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
  shares = self->queue ? gst_oct_bscan_queue_shares (self->queue)
                       : gst_structure_new_empty ("octbscan-shares");
  GST_OBJECT_UNLOCK (self);
  g_value_take_boxed (value, shares);
}

static void
gst_oct_bscan_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstOctBscan *self = GST_OCT_BSCAN (object);

  if (gst_imaging_engine_get_property (self->engine, id, value))
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

  gst_imaging_settings_free_copy (self->settings, self->now);
  gst_clear_buffer (&self->mean_last);
  gst_imaging_src_pads_free (self->pads);
  gst_oct_bscan_group_free (self->group);
  gst_oct_bscan_enface_free (self->enface);
  gst_clear_object (&self->enface_pad);
  gst_imaging_engine_free (self->engine);
  g_mutex_clear (&self->frames);
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
          "How many B-scans each GPU has made since the settings were last "
          "planned anew: cuda0, cuda1, ...; cpu, which goes on alone, after the "
          "last was lost",
          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));

  gst_oct_bscan_install_actions (object_class);

  gst_element_class_set_static_metadata (element_class, "OCT B-scans",
      "Filter/Converter/Video",
      "Makes B-scans of optical coherence tomography from raw spectra",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_add_static_pad_template (element_class, &linear_template);
  gst_element_class_add_static_pad_template (element_class, &complex_template);
  gst_element_class_add_static_pad_template (element_class, &enface_template);
  element_class->change_state = gst_oct_bscan_change_state;
  element_class->set_context = gst_oct_bscan_set_context;
  element_class->request_new_pad = gst_oct_bscan_request_new_pad;
  element_class->release_pad = gst_oct_bscan_release_pad;
}

static void
gst_oct_bscan_init (GstOctBscan *self)
{
  static const gchar *const names[N_OUTPUTS] = {
      [LINEAR] = "linear",
      [COMPLEX] = "complex",
      [ENFACE] = "enface",
      [SRC] = "src",
  };
  GstElement *element = GST_ELEMENT (self);

  self->engine = gst_imaging_engine_new (element, &engine_funcs);
  gst_imaging_engine_use_slabs (self->engine, GST_OCT_BSCAN_SLAB_SIZE);
  gst_imaging_stats_name_own (
      gst_imaging_engine_stats (self->engine), "bad-ascans");
  g_mutex_init (&self->frames);
  self->group = gst_oct_bscan_group_new ();
  self->enface = gst_oct_bscan_enface_new ();
  self->pads = gst_imaging_src_pads_new (
      element, GST_TYPE_OCT_BSCAN_PAD, names, N_OUTPUTS);
  gst_imaging_src_pads_set_functions (
      self->pads, NULL, gst_oct_bscan_src_query);
  /* not of the engine: ascans-per-bscan is a part of what it opens for */
  self->settings =
      gst_imaging_settings_new (element, &gst_oct_bscan_settings_table, NULL);
  self->now = gst_imaging_settings_copy (self->settings);

  self->sink = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sink, gst_oct_bscan_chain);
  gst_pad_set_event_function (self->sink, gst_oct_bscan_sink_event);
  gst_pad_set_query_function (self->sink, gst_oct_bscan_sink_query);
  gst_element_add_pad (element, self->sink);

  gst_imaging_src_pads_request (
      self->pads, gst_element_class_get_pad_template (
                      GST_ELEMENT_GET_CLASS (element), "src"));
}
