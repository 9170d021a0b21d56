/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructcalibration.h"

#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "gstimagingarrayfile.h"
#include "gstimagingelement.h"
#include "gstimagingsidecar.h"
#include "gstshreconstructdestination.h"
#include "gstshreconstructjudgement.h"
#include "gstshreconstructlenslets.h"
#include "gstshreconstructsetup.h"

#define MAX_POKED 1e30 /* a command: 1e-7 pixels by it are a normal float32 */

struct _GstShReconstructCalibration {
  GstElement *element; /* owns this */
  gint is_wanted;      /* atomic: from the request to the end */
  gint wants_stop;     /* atomic: before the next frame */
  GMutex lock;

  /* under the lock */
  gchar *location;
  GstShReconstructFileState location_state, noise_state; /* at the request */
  gfloat *interaction, *noise; /* of the last one that was complete */
  guint n_cells, n_commands;
  guint32 *lenslets;         /* (nullable): [n_cells][2] */
  ImkShjudgement judgement;  /* of it */
  gboolean knows_saturation; /* likewise */

  /* of the streaming thread */
  ImkShcalibration *kernel;
  guint running_cells, running_commands;
  gdouble running_poke, reported_progress;
  guint32 *running_lenslets; /* (nullable): [running_cells][2] */
  gboolean has_all_flags;    /* each frame so far */
  GstShReconstructSetup running_setup;
};

GstShReconstructCalibration *
gst_sh_reconstruct_calibration_new (GstElement *element)
{
  GstShReconstructCalibration *self = g_new0 (GstShReconstructCalibration, 1);

  self->element = element;
  g_mutex_init (&self->lock);
  return self;
}

void
gst_sh_reconstruct_calibration_free (GstShReconstructCalibration *self)
{
  imk_shcalibration_free (self->kernel);
  gst_sh_reconstruct_setup_clear (&self->running_setup);
  g_free (self->running_lenslets);
  g_mutex_clear (&self->lock);
  g_free (self->location);
  g_free (self->interaction);
  g_free (self->noise);
  g_free (self->lenslets);
  g_free (self);
}

gboolean
gst_sh_reconstruct_calibration_is_on (GstShReconstructCalibration *self)
{
  return g_atomic_int_get (&self->is_wanted);
}

gboolean
gst_sh_reconstruct_calibration_has_begun (GstShReconstructCalibration *self)
{
  return self->kernel != NULL;
}

/* --- files ---------------------------------------------------------------- */

/* "d.npy": "d-noise.npy" */
static gchar *
noise_location (const gchar *location)
{
  const gchar *name = strrchr (location, G_DIR_SEPARATOR);
  const gchar *dot = strrchr (name ? name : location, '.');

  return dot ? g_strdup_printf (
                   "%.*s-noise%s", (gint) (dot - location), location, dot)
             : g_strconcat (location, "-noise", NULL);
}

/* Under the lock. */
static gboolean
save_sidecar (
    GstShReconstructCalibration *self, const gchar *location, GError **error)
{
  static const gchar *const axes[] = {"command", "slopes x-then-y", NULL};
  const GstImagingNdArray array = {.type = GST_IMAGING_ND_ARRAY_TYPE_F32,
      .n_dims = 2,
      .dims = {2 * (guint64) self->n_cells, self->n_commands}};
  g_autofree gchar *judgement = gst_sh_reconstruct_judgement_to_json (
      &self->judgement, self->knows_saturation);

  return gst_imaging_sidecar_save (
      location, &array, axes, self->lenslets, self->n_cells, judgement, error);
}

/* Under the lock. The matrix is the last one: where it is, all is. */
static gboolean
save_files (
    GstShReconstructCalibration *self, const gchar *location, GError **error)
{
  const guint64 dims[] = {2 * (guint64) self->n_cells, self->n_commands};
  g_autofree gchar *noise = noise_location (location);

  if (!gst_imaging_array_save (
          noise, GST_IMAGING_ND_ARRAY_TYPE_F32, 2, dims, self->noise, error))
    return FALSE;
  if (gst_imaging_array_save (location, GST_IMAGING_ND_ARRAY_TYPE_F32, 2, dims,
          self->interaction, error))
    return save_sidecar (self, location, error);
  g_unlink (noise);
  return FALSE;
}

/* An earlier calibration may be replaced, and no other file. */
static gboolean
check_earlier (const gchar *location, GError **error)
{
  g_autofree gchar *noise = noise_location (location);

  return gst_sh_reconstruct_destination_is_calibration (location) ||
         (gst_sh_reconstruct_destination_check_new (location, error) &&
             gst_sh_reconstruct_destination_check_new (noise, error));
}

/* Of a matrix and its noise. */
static gboolean
check_unused (
    const GstShReconstructSettings *s, const gchar *location, GError **error)
{
  g_autofree gchar *noise = noise_location (location);

  return gst_sh_reconstruct_destination_check (s, location, error) &&
         gst_sh_reconstruct_destination_check (s, noise, error);
}

/* Under the lock, after a calibration: properties and files may be others than
 * at the request, and a property that is not used yet may name the file. */
static gboolean
save_result (GstShReconstructCalibration *self,
    const GstShReconstructSettings *s, GError **error)
{
  GstImagingSettings *settings =
      ((GstImagingElement *) self->element)->settings;
  GstShReconstructSettings *wanted = gst_imaging_settings_copy (settings);
  g_autofree gchar *noise = noise_location (self->location);
  const gboolean ok = check_unused (s, self->location, error) &&
                      check_unused (wanted, self->location, error) &&
                      gst_sh_reconstruct_destination_check_since (
                          &self->location_state, self->location, error) &&
                      gst_sh_reconstruct_destination_check_since (
                          &self->noise_state, noise, error) &&
                      save_files (self, self->location, error);

  gst_imaging_settings_free_copy (settings, wanted);
  return ok;
}

gboolean
gst_sh_reconstruct_calibration_save (GstShReconstructCalibration *self,
    const gchar *location, const GstShReconstructSettings *s)
{
  GError *error = NULL;
  gboolean is_there, ok;

  g_mutex_lock (&self->lock);
  is_there = self->interaction != NULL;
  ok = is_there && location && check_unused (s, location, &error) &&
       check_earlier (location, &error) && save_files (self, location, &error);
  g_mutex_unlock (&self->lock);
  if (!is_there)
    GST_ELEMENT_WARNING (self->element, RESOURCE, WRITE,
        ("There is no interaction matrix to save. Emit calibrate, and wait for "
         "the message shreconstruct-calibration."),
        (NULL));
  else if (!ok)
    GST_ELEMENT_WARNING (self->element, RESOURCE, WRITE,
        ("The interaction matrix cannot be saved: %s",
            error ? error->message : "there is no path."),
        (NULL));
  g_clear_error (&error);
  return ok;
}

/* --- a run ---------------------------------------------------------------- */

static void
post_state (GstShReconstructCalibration *self, const gchar *state,
    const gchar *text, const ImkShcalibrationReport *report,
    const ImkShjudgement *judgement)
{
  GstStructure *s = gst_structure_new ("shreconstruct-calibration", "state",
      G_TYPE_STRING, state, "text", G_TYPE_STRING, text, NULL);

  if (report)
    gst_structure_set (s, "latency", G_TYPE_DOUBLE, report->latency, "frames",
        G_TYPE_UINT, report->n_frames, "cells-unseen", G_TYPE_UINT,
        report->n_unseen, "rms", G_TYPE_DOUBLE, report->rms, "noise",
        G_TYPE_DOUBLE, report->noise, NULL);
  if (judgement)
    gst_sh_reconstruct_judgement_describe (judgement, s);
  if (judgement && !self->knows_saturation)
    gst_sh_reconstruct_judgement_describe_no_saturation (s);
  gst_element_post_message (
      self->element, gst_message_new_element (GST_OBJECT (self->element), s));
}

/* A message for each part of a hundred. */
static void
post_progress (GstShReconstructCalibration *self)
{
  const gdouble part = imk_shcalibration_progress (self->kernel);

  if (part < self->reported_progress + 0.01)
    return;
  self->reported_progress = part;
  gst_element_post_message (self->element,
      gst_message_new_element (GST_OBJECT (self->element),
          gst_structure_new ("shreconstruct-calibration-progress", "part",
              G_TYPE_DOUBLE, part, NULL)));
}

/* A calibration takes long: a path that cannot be written is told before. */
static gboolean
check_location (GstShReconstructCalibration *self,
    const GstShReconstructSettings *s, const gchar *location)
{
  static const guint64 dims[] = {2, 1};
  g_autofree gchar *noise = noise_location (location);
  g_autoptr (GError) error = NULL;

  if (check_unused (s, location, &error) &&
      gst_imaging_sidecar_check_save (location, &error) &&
      gst_imaging_array_check_save (
          noise, GST_IMAGING_ND_ARRAY_TYPE_F32, 2, dims, &error) &&
      gst_imaging_array_check_save (
          location, GST_IMAGING_ND_ARRAY_TYPE_F32, 2, dims, &error) &&
      check_earlier (location, &error))
    return TRUE;
  post_state (self, "failed", error->message, NULL, NULL);
  return FALSE;
}

gboolean
gst_sh_reconstruct_calibration_request (GstShReconstructCalibration *self,
    const gchar *given, const GstShReconstructSettings *s)
{
  const gchar *location = given && *given ? given : NULL;
  gboolean ok;

  if (gst_sh_reconstruct_calibration_is_on (self) ||
      (location && !check_location (self, s, location)))
    return FALSE;
  g_mutex_lock (&self->lock);
  ok = !g_atomic_int_get (&self->is_wanted);
  if (ok) {
    g_atomic_int_set (&self->wants_stop, FALSE);
    g_free (self->location);
    self->location = g_strdup (location);
    if (location) {
      g_autofree gchar *noise = noise_location (location);

      self->location_state =
          gst_sh_reconstruct_destination_get_state (location);
      self->noise_state = gst_sh_reconstruct_destination_get_state (noise);
    }
    g_atomic_int_set (&self->is_wanted, TRUE);
  }
  g_mutex_unlock (&self->lock);
  return ok;
}

void
gst_sh_reconstruct_calibration_stop (GstShReconstructCalibration *self)
{
  g_atomic_int_set (&self->wants_stop, TRUE);
}

static void
end_run (GstShReconstructCalibration *self)
{
  g_clear_pointer (&self->kernel, imk_shcalibration_free);
  gst_sh_reconstruct_setup_clear (&self->running_setup);
  g_clear_pointer (&self->running_lenslets, g_free);
  self->reported_progress = 0;
  g_atomic_int_set (&self->is_wanted, FALSE);
}

static void
fail_run (GstShReconstructCalibration *self, const gchar *text)
{
  end_run (self);
  post_state (self, "failed", text, NULL, NULL);
}

void
gst_sh_reconstruct_calibration_fail (
    GstShReconstructCalibration *self, const gchar *why)
{
  if (gst_sh_reconstruct_calibration_is_on (self))
    fail_run (self, why);
}

void
gst_sh_reconstruct_calibration_abandon (
    GstShReconstructCalibration *self, const gchar *why)
{
  if (!gst_sh_reconstruct_calibration_is_on (self))
    return;
  end_run (self);
  post_state (self, "abandoned", why, NULL, NULL);
}

/* A mirror is not sent beyond its limits, also for a poke. They may change
 * during a calibration. */
static ImkStatus
check_pokes (const GstShReconstructSettings *s, gdouble poke,
    const GstShReconstructSetup *setup, ImkError *error)
{
  const gfloat *flat = setup->flat;

  if (s->slew > 0 && 2 * poke > s->slew)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "From a poke of %g to one of %g is a step beyond slew-limit, which is "
        "%g. Set calibration-poke to half of it at most.",
        poke, -poke, s->slew);
  for (guint i = 0; i < setup->n_commands; i++) {
    if (setup->dead[i])
      continue;
    if (flat[i] - poke < s->minimum || flat[i] + poke > s->maximum)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "A poke of %g about command %u, which is %g, goes beyond minimum or "
          "maximum. Set a smaller calibration-poke.",
          poke, i, (gdouble) flat[i]);
    if (fabs ((gdouble) flat[i]) + poke > MAX_POKED)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "A poke of %g about command %u, which is %g, goes beyond %g: slopes "
          "by such commands are too small for a float32. Set a smaller "
          "calibration-poke.",
          poke, i, (gdouble) flat[i], MAX_POKED);
  }
  return IMK_OK;
}

static ImkStatus
begin_run (GstShReconstructCalibration *self, const GstShReconstructSettings *s,
    GstShReconstructSlopes *slopes, guint n_cells, guint n_commands,
    const gfloat *flat, ImkError *error)
{
  const guint32 *lenslets = gst_sh_reconstruct_slopes_places (slopes);
  ImkShcalibrationConfig c;

  gst_sh_reconstruct_setup_init (
      &self->running_setup, s, slopes, flat, n_commands);
  imk_shcalibration_config_init (&c);
  c.n_cells = self->running_cells = n_cells;
  c.n_commands = self->running_commands = n_commands;
  c.method = s->calibration_method;
  c.poke = self->running_poke = s->calibration_poke;
  c.n_repeats = s->calibration_repeats;
  c.n_frames = s->calibration_frames;
  c.dead = self->running_setup.dead;
  self->has_all_flags = TRUE;
  if (gst_sh_reconstruct_lenslets_are_known (lenslets, n_cells))
    self->running_lenslets =
        g_memdup2 (lenslets, 2 * (gsize) n_cells * sizeof (*lenslets));
  return imk_shcalibration_new (&c, &self->kernel, error);
}

/* Under the lock. Returns: whether there is a result, which was taken */
static gboolean
take_result (GstShReconstructCalibration *self, ImkShcalibrationReport *report,
    ImkShjudgement *judgement)
{
  const gsize n = 2 * (gsize) self->running_cells * self->running_commands;
  g_autofree gfloat *interaction = g_try_new (gfloat, n);
  g_autofree gfloat *noise = g_try_new (gfloat, n);

  if (!interaction || !noise)
    return FALSE;
  imk_shcalibration_result (self->kernel, interaction, noise, report);
  imk_shcalibration_judge (self->kernel, interaction, noise, judgement);
  if (judgement->verdict == IMK_SHJUDGE_NO_RESPONSE ||
      judgement->verdict == IMK_SHJUDGE_UNMEASURED)
    return FALSE;
  self->judgement = *judgement;
  self->knows_saturation = self->has_all_flags || judgement->n_saturated > 0;
  g_free (self->interaction);
  g_free (self->noise);
  self->interaction = g_steal_pointer (&interaction);
  self->noise = g_steal_pointer (&noise);
  self->n_cells = self->running_cells;
  self->n_commands = self->running_commands;
  g_free (self->lenslets);
  self->lenslets = g_steal_pointer (&self->running_lenslets);
  return TRUE;
}

/* Dark cells are expected; these are not. Of many of them the judgement tells.
 */
static void
warn_of_lost (GstShReconstructCalibration *self,
    const ImkShcalibrationReport *report, const ImkShjudgement *judgement)
{
  if (report->n_lost > 0 && judgement->verdict != IMK_SHJUDGE_INCOMPLETE)
    GST_ELEMENT_WARNING (self->element, STREAM, FAILED,
        ("%u cells were valid in most frames of the calibration, but not in "
         "enough of them, so some of their elements are 0. Set more "
         "calibration-repeats, or bring more light to the sensor.",
            report->n_lost),
        (NULL));
}

/* What makes the pokes longer, or the elements wrong. */
static void
warn_of_mirror (
    GstShReconstructCalibration *self, const ImkShcalibrationReport *report)
{
  if (!report->is_settled)
    GST_ELEMENT_WARNING (self->element, STREAM, FAILED,
        ("The mirror still moves 100 frames after a poke, so the elements of "
         "the interaction matrix are too small. Calibrate again at a lower "
         "frame rate."),
        (NULL));
  else if (!report->is_linear)
    GST_ELEMENT_WARNING (self->element, STREAM, FAILED,
        ("The mirror does not follow steps of twice calibration-poke in "
         "proportion, so each poke lasted %u frames longer. If it limits its "
         "own steps, set slew-limit to that of the mirror, and "
         "calibration-poke to half of it at most.",
            report->last - report->first),
        (NULL));
}

/* Of the mirror and of lost cells there are warnings of their own. */
static void
warn_of_judgement (
    GstShReconstructCalibration *self, const ImkShjudgement *judgement)
{
  gchar text[GST_SH_RECONSTRUCT_JUDGEMENT_SIZE];

  if (judgement->verdict == IMK_SHJUDGE_GOOD ||
      judgement->verdict == IMK_SHJUDGE_UNSETTLED ||
      judgement->verdict == IMK_SHJUDGE_LIMITED)
    return;
  imk_shjudge_describe (judgement, text, sizeof (text));
  GST_ELEMENT_WARNING (self->element, STREAM, FAILED,
      ("The interaction matrix may be wrong. %s", text), (NULL));
}

static void
finish_run (
    GstShReconstructCalibration *self, const GstShReconstructSettings *s)
{
  ImkShcalibrationReport report;
  ImkShjudgement judgement = {.verdict = IMK_SHJUDGE_GOOD};
  GError *error = NULL;
  gboolean has_result, has_file;

  g_mutex_lock (&self->lock);
  has_file = self->location != NULL;
  has_result = take_result (self, &report, &judgement);
  if (self->location && has_result)
    save_result (self, s, &error);
  g_mutex_unlock (&self->lock);
  if (!has_result) {
    gchar text[GST_SH_RECONSTRUCT_JUDGEMENT_SIZE] =
        "The interaction matrix does not fit in memory.";

    if (judgement.verdict != IMK_SHJUDGE_GOOD)
      imk_shjudge_describe (&judgement, text, sizeof (text));
    fail_run (self, text);
    return;
  }
  end_run (self);
  post_state (self, error ? "failed" : "done",
      error      ? error->message
      : has_file ? "The interaction matrix is complete."
                 : "The interaction matrix is complete, and in no file: emit "
                   "save-interaction with a path.",
      &report, &judgement);
  warn_of_judgement (self, &judgement);
  warn_of_lost (self, &report, &judgement);
  warn_of_mirror (self, &report);
  g_clear_error (&error);
}

/* Returns: FALSE when it has ended */
static gboolean
check_setup (GstShReconstructCalibration *self,
    const GstShReconstructSettings *s, const GstShReconstructSlopes *slopes,
    const gfloat *flat)
{
  GstShReconstructSetup now;
  g_autofree gchar *why = NULL;
  ImkError error;

  gst_sh_reconstruct_setup_init (&now, s, slopes, flat, self->running_commands);
  if (check_pokes (s, self->running_poke, &now, &error) != IMK_OK)
    why = g_strdup (error.message);
  else
    why = gst_sh_reconstruct_setup_compare (&self->running_setup, &now);
  gst_sh_reconstruct_setup_clear (&now);
  if (why)
    fail_run (self, why);
  return !why;
}

gboolean
gst_sh_reconstruct_calibration_step (GstShReconstructCalibration *self,
    const GstShReconstructSettings *s, GstShReconstructSlopes *slopes,
    gboolean is_after_gap, guint n_cells, guint n_commands, gfloat *commands)
{
  g_autofree gfloat *pokes = g_new (gfloat, n_commands);
  const guint32 *lenslets = gst_sh_reconstruct_slopes_places (slopes);
  ImkError error;

  if (g_atomic_int_get (&self->wants_stop)) {
    gst_sh_reconstruct_calibration_abandon (
        self, "It was stopped by stop-calibration.");
    return FALSE;
  }
  if (!self->kernel && begin_run (self, s, slopes, n_cells, n_commands,
                           commands, &error) != IMK_OK) {
    fail_run (self, error.message);
    return FALSE;
  }
  if (self->running_cells != n_cells || self->running_commands != n_commands ||
      (self->running_lenslets && lenslets &&
          memcmp (self->running_lenslets, lenslets,
              2 * n_cells * sizeof (*lenslets)) != 0)) {
    gst_sh_reconstruct_calibration_abandon (
        self, "The sensor or the mirror is another one.");
    return FALSE;
  }
  if (!check_setup (self, s, slopes, commands))
    return FALSE;
  self->has_all_flags &= slopes->has_all_flags;
  if (is_after_gap)
    imk_shcalibration_interrupt (self->kernel);
  switch (imk_shcalibration_process (
      self->kernel, slopes->slopes, slopes->flags, pokes)) {
  case IMK_SHCALIBRATION_RUNNING:
    for (guint i = 0; i < n_commands; i++)
      commands[i] += pokes[i];
    post_progress (self);
    return TRUE;
  case IMK_SHCALIBRATION_DONE:
    finish_run (self, s);
    return FALSE;
  case IMK_SHCALIBRATION_NO_RESPONSE:
    fail_run (self,
        "The slopes do not follow the pokes within " G_STRINGIFY (
            IMK_SHCALIBRATION_MAX_LATENCY) " frames. Check that the "
                                           "commands reach the mirror and its light the sensor, set a larger "
                                           "calibration-poke, or a smaller one if spots leave their cells, "
                                           "or lower the frame rate if they take longer.");
    return FALSE;
  case IMK_SHCALIBRATION_GAPS:
    fail_run (self,
        "Frames are missing so often that no poke could be measured "
        "for 1000 frames. Lower the frame rate, or find what loses "
        "them: stats counts frames-missing.");
    return FALSE;
  case IMK_SHCALIBRATION_NONLINEAR:
    fail_run (self,
        "The mirror does not follow steps of twice calibration-poke in "
        "proportion, so sinusoidal cannot measure it. If it limits its "
        "own steps, set slew-limit to that of the mirror, and "
        "calibration-poke to half of it at most, or take another "
        "calibration-method.");
    return FALSE;
  }
  return FALSE;
}
