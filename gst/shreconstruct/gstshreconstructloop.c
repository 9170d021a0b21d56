/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructloop.h"

static GstElement *
element_of (const GstShReconstructLoop *self)
{
  return GST_ELEMENT (self->kernel->element);
}

static GstImagingEngine *
engine_of (const GstShReconstructLoop *self)
{
  return self->kernel->element->engine;
}

void
gst_sh_reconstruct_loop_reset (GstShReconstructLoop *self)
{
  g_atomic_int_set (&self->wants_reset, TRUE);
}

static gboolean
is_closed (const GstShReconstructLoop *self, const GstShReconstructSettings *s)
{
  return s->loop == GST_SH_RECONSTRUCT_LOOP_CLOSED && !self->kernel->is_idle;
}

gboolean
gst_sh_reconstruct_loop_will_run (
    GstShReconstructLoop *self, const GstShReconstructSettings *s)
{
  return is_closed (self, s) && !s->freeze &&
         !g_atomic_int_get (&self->wants_reset) &&
         !gst_sh_reconstruct_calibration_is_on (self->calibration);
}

/* --- a closed loop -------------------------------------------------------- */

static ImkStatus
process_on_cpu (
    GstShReconstructLoop *self, GstShReconstructFrame *f, ImkError *error)
{
  ImkImage slopes, flags;
  ImkStatus status = gst_sh_reconstruct_slopes_map (&f->slopes, error);

  if (status != IMK_OK)
    return status;
  gst_sh_reconstruct_slopes_images (&f->slopes, &slopes, &flags);
  return imk_shreconstruct_process (self->kernel->now, &slopes,
      flags.data ? &flags : NULL, self->kernel->commands, &f->report, NULL,
      error);
}

/* Slopes that were on a device that fails are lost: the mirror stays as it is
 * for that frame. */
static ImkStatus
process_after_failure (
    GstShReconstructLoop *self, GstShReconstructFrame *f, ImkError *error)
{
  GstImagingEngine *engine = engine_of (self);
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
    imk_shreconstruct_commands (self->kernel->now, self->kernel->commands);
    f->is_closed = FALSE;
  }
  gst_imaging_engine_post_fall_back (engine, &why, is_lost);
  return IMK_OK;
}

static ImkStatus
process_closed (
    GstShReconstructLoop *self, GstShReconstructFrame *f, ImkError *error)
{
  GstImagingEngine *engine = engine_of (self);
  ImkStatus status;

  if (!gst_imaging_engine_is_on_cuda (engine))
    return process_on_cpu (self, f, error);
  status = gst_sh_reconstruct_device_begin (
      self->device, self->kernel->now, &f->slopes, error);
  if (status == IMK_OK) {
    gst_sh_reconstruct_commands_prepare (
        self->kernel->src, f); /* while the device works */
    status = gst_sh_reconstruct_device_end (self->device, self->kernel->now,
        self->kernel->commands, &f->report, error);
  }
  return gst_imaging_engine_can_fall_back (engine, status)
             ? process_after_failure (self, f, error)
             : status;
}

/* --- the reference commands ----------------------------------------------- */

/* Returns: whether all mirrors have the reference commands, so that the loop
 * can begin */
static gboolean
go_to_reference (GstShReconstructLoop *self)
{
  GstShReconstructKernel *kernel = self->kernel;
  const gboolean is_there = imk_shreconstruct_rest (kernel->now);

  imk_shreconstruct_commands (kernel->now, kernel->commands);
  return is_there &&
         gst_sh_reconstruct_mirrors_are_at (kernel->mirrors, kernel->commands);
}

/* Where the loop does not run, or is to begin anew, the mirror goes to the
 * reference commands. Returns: whether it need not, or is there; a calibration
 * that pokes it needs that no more */
static gboolean
rest_if_open (GstShReconstructLoop *self, const GstShReconstructFrame *f,
    const GstShReconstructSettings *s)
{
  const gboolean wants_reset =
      g_atomic_int_compare_and_exchange (&self->wants_reset, TRUE, FALSE);

  if (!wants_reset && !f->is_calibrating && is_closed (self, s))
    return TRUE;
  self->is_resting = TRUE;
  if (go_to_reference (self))
    return TRUE;
  if (wants_reset)
    gst_sh_reconstruct_loop_reset (self);
  return f->is_calibrating &&
         gst_sh_reconstruct_calibration_has_begun (self->calibration);
}

/* Sums of inf and NaN stay so for ever, and no mirror can take them. Limits
 * hide what a coefficient is. */
static void
restart_overflowed (GstShReconstructLoop *self, const GstShReconstructFrame *f)
{
  GstShReconstructKernel *kernel = self->kernel;
  const gboolean overflowed =
      !imk_shreconstruct_get_coefficients (kernel->now, kernel->coefficients);

  if (overflowed) {
    if (!go_to_reference (self))
      gst_sh_reconstruct_loop_reset (self);
    imk_shreconstruct_get_coefficients (kernel->now, kernel->coefficients);
  }
  if (overflowed && !self->has_overflowed)
    GST_ELEMENT_WARNING (element_of (self), STREAM, FAILED,
        ("The commands of frame %" G_GUINT64_FORMAT
         " are too large for a float32, so the loop begins anew from the "
         "reference commands. Lower the gain, check the scale of the control "
         "matrix, or set minimum and maximum.",
            f->number),
        (NULL));
  self->has_overflowed = overflowed;
}

/* --- a frame -------------------------------------------------------------- */

static ImkStatus
poke (GstShReconstructLoop *self, GstShReconstructFrame *f,
    const GstShReconstructSettings *s, ImkError *error)
{
  GstShReconstructKernel *kernel = self->kernel;
  ImkStatus status = gst_sh_reconstruct_slopes_map (&f->slopes, error);

  if (status == IMK_OK)
    f->has_poke = gst_sh_reconstruct_calibration_step (self->calibration, s,
        &f->slopes, f->is_after_gap, kernel->n_cells, kernel->n_commands,
        kernel->commands);
  if (f->has_poke) {
    imk_shreconstruct_set_commands (kernel->now, kernel->commands);
    gst_sh_reconstruct_loop_reset (self); /* it may be the last one */
  }
  return status;
}

ImkStatus
gst_sh_reconstruct_loop_process (GstShReconstructLoop *self,
    GstShReconstructFrame *f, const GstShReconstructSettings *s,
    ImkError *error)
{
  GstShReconstructKernel *kernel = self->kernel;
  ImkStatus status = IMK_OK;
  gboolean can_begin;

  f->is_calibrating = gst_sh_reconstruct_calibration_is_on (self->calibration);
  can_begin = rest_if_open (self, f, s);
  f->is_closed =
      can_begin && is_closed (self, s) && !s->freeze && !f->is_calibrating;
  if (!f->is_closed || self->is_resting)
    gst_sh_reconstruct_kernel_begin_watch (kernel);
  self->is_resting &= !f->is_closed;
  if (f->is_closed)
    status = process_closed (self, f, error);
  else
    imk_shreconstruct_commands (kernel->now, kernel->commands);
  if (f->is_closed && status == IMK_OK)
    restart_overflowed (self, f);
  else
    imk_shreconstruct_get_coefficients (kernel->now, kernel->coefficients);
  if (f->is_calibrating && can_begin)
    status = poke (self, f, s, error);
  f->is_held = (s->freeze && !self->is_resting) ||
               (f->report.is_dark && s->dark == IMK_SHRECONSTRUCT_DARK_HOLD);
  return status;
}

void
gst_sh_reconstruct_loop_learn_limits (
    GstShReconstructLoop *self, const GstShReconstructFrame *f)
{
  g_autofree gfloat *change = NULL;

  if (f->limited < 0 || !f->is_closed || f->is_held || f->report.is_dark ||
      self->has_overflowed)
    return;
  change = g_new (gfloat, self->kernel->n_modes);
  if (gst_sh_reconstruct_mirrors_find_windup (self->kernel->mirrors, change))
    imk_shreconstruct_add (self->kernel->now, change);
}

/* Once for each closing a warning. The loop stays as it is. */
void
gst_sh_reconstruct_loop_watch (
    GstShReconstructLoop *self, GstShReconstructFrame *f)
{
  const GstShReconstructKernel *kernel = self->kernel;
  ImkShdivergenceReport report;
  ImkShdivergenceVerdict verdict;

  if (!f->is_closed ||
      gst_sh_reconstruct_slopes_map (&f->slopes, NULL) != IMK_OK)
    return;
  verdict = imk_shdivergence_follow (kernel->divergence, f->slopes.slopes,
      f->slopes.flags, kernel->coefficients, &f->report, &report);
  gst_sh_reconstruct_warn_of_divergence (element_of (self), verdict, &report,
      &f->report, kernel->n_cells, kernel->n_commands, f->number);
}

void
gst_sh_reconstruct_loop_stop (GstShReconstructLoop *self)
{
  self->has_overflowed = FALSE;
  g_atomic_int_set (&self->wants_reset, FALSE);
}
