/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From input caps and settings to an open kernel, also while B-scans arrive. */
#include "gstoctbscanplan.h"

#include "gstimagingallocation.h"
#include "gstimaginglines.h"
#include "gstimagingstream.h"
#include "gstoctbscaninput.h"
#include "gstoctbscanoutput.h"
#include "gstoctbscanprocess.h"

void
gst_oct_bscan_reconfigure (GstElement *element)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);

  for (guint i = 0; i < N_OUTPUTS; i++) {
    GstImagingSrcPad *pad = gst_imaging_src_pads_get (self->base.outputs, i);

    if (pad)
      gst_oct_bscan_pad_forget (GST_OCT_BSCAN_PAD (pad));
    g_clear_object (&pad);
  }
}

/* For B-scans whose lines are in several buffers: page-locked for the GPU. */
static GstBufferPool *
gather_pool (GstOctBscan *self, GstCaps *caps)
{
  GstAllocator *allocator =
      gst_imaging_engine_is_on_cuda (self->base.engine)
          ? gst_imaging_engine_allocator_new (
                self->base.engine, GST_IMAGING_MEMORY_PINNED)
          : NULL;
  GstBufferPool *pool =
      gst_imaging_video_pool_new (allocator, caps, &self->input.bscan, FALSE);

  if (pool && !gst_buffer_pool_set_active (pool, TRUE))
    gst_clear_object (&pool);
  gst_clear_object (&allocator);
  return pool;
}

/* Opens the kernel for the input caps and the settings in use. */
static gboolean
configure (GstOctBscan *self)
{
  GstBufferPool *pool;
  g_autoptr (GstCaps) caps = NULL;
  gboolean ok;
  ImkError error;

  if (!self->in_use
           .plan) { /* the settings have changed after caps were refused */
    GstOctBscanPlan *plan =
        gst_oct_bscan_plan_new (self, self->in_use.now, &error);

    if (!plan) {
      gst_oct_bscan_post_error (self, &error);
      return FALSE;
    }
    g_mutex_lock (&self->engine_lock);
    self->in_use.plan = plan;
    g_mutex_unlock (&self->engine_lock);
  }
  if (self->in_use.has_caps &&
      self->input.bscan.height != self->in_use.plan->info.height)
    gst_oct_bscan_forget_lines (self, "ascans-per-bscan has changed");
  gst_oct_bscan_drain (self);
  gst_oct_bscan_release_devices (self);
  g_mutex_lock (&self->engine_lock);
  self->input.n_skipped = self->in_use.now->skip_first_line;
  self->input.bscan = self->in_use.plan->info;
  caps = gst_video_info_to_caps (&self->input.bscan);
  ok = gst_imaging_engine_set_caps (self->base.engine, caps, NULL);
  if (ok) {
    pool = gather_pool (self, caps);
    gst_oct_bscan_group_setup (
        self->input.group, &self->input.lines, &self->input.bscan, pool);
    gst_clear_object (&pool);
    gst_oct_bscan_update_latency (self);
    gst_oct_bscan_reconfigure (GST_ELEMENT (self));
  }
  /* the first B-scan posts the error if this fails */
  if (ok && gst_imaging_engine_is_on_cuda (self->base.engine))
    gst_oct_bscan_need_devices (self, &error);
  self->in_use.has_caps = ok;
  self->in_use.must_configure = !ok;
  g_mutex_unlock (&self->engine_lock);
  gst_oct_bscan_forget_next_kernel (self);
  if (ok)
    gst_oct_bscan_warn_of_settings (self);
  return ok;
}

void
gst_oct_bscan_take_settings (
    GstOctBscan *self, Settings *next, GstOctBscanPlan *plan)
{
  GstOctBscanPlan *last = self->in_use.plan;
  Settings *before = self->in_use.now;

  g_mutex_lock (&self->engine_lock);
  self->in_use.now = next;
  self->in_use.plan = plan;
  self->in_use.n_changes++;
  g_mutex_unlock (&self->engine_lock);
  gst_oct_bscan_plan_free (last);
  gst_imaging_settings_free_copy (self->base.settings, before);
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

typedef struct {
  GstOctBscan *self;
  GstOctBscanPlan *plan; /* (nullable): of the settings tried last */
} Trial;

static ImkStatus
try_settings (gpointer data, ImkError *error)
{
  Trial *trial = data;

  gst_oct_bscan_plan_free (trial->plan);
  trial->plan = gst_oct_bscan_plan_new (trial->self,
      gst_imaging_settings_now (trial->self->base.settings), error);
  return trial->plan ? IMK_OK : error->code;
}

void
gst_oct_bscan_negotiate_all (GstOctBscan *self)
{
  GST_IMAGING_HOLD (&self->engine_lock);
  for (guint i = 0; self->in_use.has_caps && i < N_OUTPUTS; i++) {
    GstImagingSrcPad *pad = gst_imaging_src_pads_get (self->base.outputs, i);

    gst_oct_bscan_negotiate (self, i, GST_OCT_BSCAN_PAD (pad));
    g_clear_object (&pad);
  }
}

gboolean
gst_oct_bscan_set_caps (GstOctBscan *self, GstCaps *caps)
{
  Trial trial = {.self = self};
  GstImagingLines lines;
  ImkStatus status;
  ImkError error;

  if (!gst_imaging_lines_from_caps (&lines, caps)) {
    post_wrong_caps (self, caps);
    return FALSE;
  }
  if (self->in_use.has_caps &&
      gst_video_info_is_equal (&lines.info, &self->input.lines) &&
      lines.type == self->input.type &&
      lines.bytes_a_pixel == self->input.bytes_a_pixel)
    return TRUE;
  if (self->in_use.has_caps)
    gst_oct_bscan_end_run (self, "the format changes");
  g_mutex_lock (&self->engine_lock);
  self->in_use.has_caps = FALSE;
  g_clear_pointer (&self->in_use.plan, gst_oct_bscan_plan_free);
  g_mutex_unlock (&self->engine_lock);
  self->input.lines = lines.info;
  self->input.type = lines.type;
  self->input.bytes_a_pixel = lines.bytes_a_pixel;
  status = gst_imaging_settings_try (
      self->base.settings, try_settings, &trial, &error);
  if (status != IMK_OK) {
    gst_oct_bscan_post_error (self, &error);
    return FALSE;
  }
  gst_oct_bscan_take_settings (
      self, gst_imaging_settings_copy_now (self->base.settings), trial.plan);
  gst_oct_bscan_reset_range (self);
  gst_oct_bscan_begin_turns (self);
  if (!configure (self))
    return FALSE;
  gst_oct_bscan_negotiate_all (
      self); /* the segment, which must follow caps, is next */
  return TRUE;
}

/* --- settings that change while B-scans arrive ---------------------------- */

/* A kernel with live dispersion takes new values as they are. */
static gboolean
needs_kernel (GstOctBscan *self, guint groups, const GstOctBscanPlan *next)
{
  return groups & PLAN ||
         (groups & TUNE && (!next->config.live_dispersion ||
                               !self->in_use.plan->config.live_dispersion ||
                               !self->open.kernel ||
                               imk_octbscan_strategy (self->open.kernel) !=
                                   IMK_OCTBSCAN_STRATEGY_FFT));
}

/* Makes a kernel for @plan if one is needed. The current one stays in use.
 * @groups: (inout): gets PLAN then */
static ImkStatus
prepare_settings (GstOctBscan *self, const GstOctBscanPlan *plan, guint *groups,
    ImkError *error)
{
  GstClockTime began = gst_util_get_timestamp ();

  if (!needs_kernel (self, *groups, plan))
    return IMK_OK;
  *groups |= PLAN;
  gst_oct_bscan_forget_next_kernel (self);
  IMK_TRY (gst_oct_bscan_prepare_kernel (self, plan, error));
  gst_imaging_stats_add_replan (gst_imaging_engine_stats (self->base.engine),
      gst_util_get_timestamp () - began);
  return IMK_OK;
}

/* Outputs the mean so far first: it has the earlier settings. */
ImkStatus
gst_oct_bscan_apply_settings (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  GstOctBscan *self = GST_OCT_BSCAN (element);
  Settings *next = gst_imaging_settings_copy_now (self->base.settings);
  GstOctBscanPlan *plan = NULL;
  ImkStatus status = IMK_OK;

  if (self->in_use.has_caps) {
    plan = gst_oct_bscan_plan_new (self, next, error);
    status = plan ? prepare_settings (self, plan, &groups, error) : error->code;
  }
  if (status != IMK_OK) {
    gst_oct_bscan_plan_free (plan);
    gst_imaging_settings_free_copy (self->base.settings, next);
    return status;
  }
  if (self->in_use.has_caps && groups & (PLAN | TURN))
    gst_oct_bscan_show_mean (self);
  gst_oct_bscan_take_settings (self, next, plan);
  if (groups & PLAN || (before && ((const Settings *) before)->config.range !=
                                      IMK_OCTBSCAN_RANGE_AUTO))
    gst_oct_bscan_reset_range (self);
  if (groups & TURN)
    gst_oct_bscan_begin_turns (self);
  self->in_use.must_configure |= (groups & PLAN) != 0;
  return IMK_OK;
}

gboolean
gst_oct_bscan_follow_settings (GstOctBscan *self, GstBuffer *buffer)
{
  GstClockTime time = gst_imaging_stream_time (&self->input.segment, buffer);
  ImkError error;
  ImkStatus status = gst_imaging_settings_update (
      self->base.settings, GST_IMAGING_WHEN_LIVE, time, &error);

  if (status != IMK_OK && gst_imaging_engine_is_on_cuda (self->base.engine)) {
    if (!gst_oct_bscan_leave_device (self, NULL, status, &error))
      return FALSE;
    status = gst_imaging_settings_update (
        self->base.settings, GST_IMAGING_WHEN_LIVE, time, &error);
  }
  if (status != IMK_OK) {
    gst_oct_bscan_post_error (self, &error);
    return FALSE;
  }
  return (self->in_use.has_caps && !self->in_use.must_configure) ||
         configure (self);
}
