/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructprepared.h"

typedef struct {
  GstShReconstructSettings *settings; /* that it was made for */
  ImkBackend backend;
  GstImagingContext *context; /* (nullable): of the device */
  ImkShreconstruct *kernel;
  gfloat *modes; /* (nullable) */
  ImkShreconstructFit fit;
  gboolean is_for_inverse; /* not for other matrices */
} Made;

struct _GstShReconstructPrepared {
  GstImagingSettings *settings;
  GstImagingEngine *engine;

  GMutex lock; /* not while something is made: a frame may wait for it */
  gboolean is_on;
  gboolean has_inverse; /* the kernel has had limits */
  ImkBackend backend;
  Made *made; /* (nullable) */
};

GstShReconstructPrepared *
gst_sh_reconstruct_prepared_new (
    GstImagingSettings *settings, GstImagingEngine *engine)
{
  GstShReconstructPrepared *self = g_new0 (GstShReconstructPrepared, 1);

  self->settings = settings;
  self->engine = engine;
  g_mutex_init (&self->lock);
  return self;
}

/* @made: (transfer full) (nullable) */
static void
free_made (GstShReconstructPrepared *self, Made *made)
{
  gboolean is_current;

  if (!made)
    return;
  is_current =
      made->kernel && gst_imaging_context_push (made->context, NULL) == IMK_OK;
  imk_shreconstruct_free (made->kernel);
  if (is_current)
    gst_imaging_context_pop (made->context);
  g_clear_object (&made->context);
  gst_imaging_settings_free_copy (self->settings, made->settings);
  g_free (made->modes);
  g_free (made);
}

/* @made: (transfer full) (nullable): takes the place of what there is */
static void
replace_made (GstShReconstructPrepared *self, Made *made)
{
  Made *old;

  g_mutex_lock (&self->lock);
  old = self->made;
  self->made = made;
  if (made && !(self->is_on && self->backend == made->backend)) {
    self->made = old;
    old = made;
  }
  g_mutex_unlock (&self->lock);
  free_made (self, old);
}

void
gst_sh_reconstruct_prepared_free (GstShReconstructPrepared *self)
{
  replace_made (self, NULL);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* --- in any thread -------------------------------------------------------- */

static gboolean
has_limits (const GstShReconstructSettings *s)
{
  const ImkShlimits limits = gst_sh_reconstruct_limits (s);

  return imk_shlimits_has_any (&limits) || s->dead;
}

/* For the first limit, and for other dead actuators. Cells that are excluded
 * would be so from the beginning again. */
static gboolean
needs_inverse (const GstShReconstructSettings *s, guint groups)
{
  return s->modes && has_limits (s) && groups &&
         s->invalid != IMK_SHRECONSTRUCT_INVALID_EXCLUDE;
}

/* What is wrong is said where it is applied. */
static ImkStatus
make_kernel (GstShReconstructPrepared *self, Made *made)
{
  GstShReconstructPlan plan;
  ImkStatus status =
      gst_sh_reconstruct_plan (made->settings, TRUE, 0, &plan, NULL);

  plan.config.n_threads = gst_imaging_engine_n_threads (self->engine);
  if (status == IMK_OK)
    status = gst_imaging_context_push (made->context, NULL);
  if (status == IMK_OK) {
    status = imk_shreconstruct_new (
        made->backend, &plan.config, &made->kernel, NULL);
    gst_imaging_context_pop (made->context);
  }
  if (status == IMK_OK)
    gst_sh_reconstruct_plan_find_fit (&plan);
  made->fit = plan.fit;
  made->modes = g_steal_pointer (&plan.modes);
  gst_sh_reconstruct_plan_clear (&plan);
  return status;
}

void
gst_sh_reconstruct_prepared_make (GstShReconstructPrepared *self,
    GstShReconstructSettings *candidate, guint groups)
{
  Made *made = g_new0 (Made, 1);
  gboolean wants;

  made->settings = candidate;
  g_mutex_lock (&self->lock);
  made->backend = self->backend;
  made->is_for_inverse = needs_inverse (
      candidate, groups & (self->has_inverse ? GST_SH_RECONSTRUCT_INVERSE
                                             : GST_SH_RECONSTRUCT_CONTROL));
  wants = self->is_on && candidate->matrix &&
          (groups & GST_SH_RECONSTRUCT_KERNEL || made->is_for_inverse);
  g_mutex_unlock (&self->lock);
  if (wants && made->backend == IMK_BACKEND_CUDA) {
    made->context = gst_imaging_engine_ref_context (self->engine);
    wants = made->context != NULL;
  }
  if (wants && make_kernel (self, made) == IMK_OK)
    replace_made (self, made);
  else
    free_made (self, made);
}

/* --- in the streaming thread ---------------------------------------------- */

void
gst_sh_reconstruct_prepared_begin (GstShReconstructPrepared *self,
    ImkBackend backend, const GstShReconstructSettings *settings,
    gboolean is_new)
{
  Made *other = NULL;

  g_mutex_lock (&self->lock);
  if (self->made && self->made->backend != backend)
    other = g_steal_pointer (&self->made);
  self->is_on = TRUE;
  self->backend = backend;
  self->has_inverse = has_limits (settings) || (self->has_inverse && !is_new);
  g_mutex_unlock (&self->lock);
  free_made (self, other);
}

void
gst_sh_reconstruct_prepared_stop (GstShReconstructPrepared *self)
{
  g_mutex_lock (&self->lock);
  self->is_on = FALSE;
  g_mutex_unlock (&self->lock);
  replace_made (self, NULL);
}

/* Under the lock. */
static gboolean
made_fits (GstShReconstructPrepared *self, const GstShReconstructSettings *s,
    guint groups)
{
  return self->made && (gst_imaging_settings_groups_of_change (
                            self->settings, self->made->settings, s) &
                           groups) == 0;
}

gboolean
gst_sh_reconstruct_prepared_is_for_inverse (
    GstShReconstructPrepared *self, const GstShReconstructSettings *settings)
{
  gboolean is;

  g_mutex_lock (&self->lock);
  is = made_fits (self, settings,
           GST_SH_RECONSTRUCT_KERNEL | GST_SH_RECONSTRUCT_INVERSE) &&
       self->made->is_for_inverse;
  g_mutex_unlock (&self->lock);
  return is;
}

ImkShreconstruct *
gst_sh_reconstruct_prepared_take (GstShReconstructPrepared *self,
    const GstShReconstructSettings *settings, ImkBackend backend,
    gfloat **modes, ImkShreconstructFit *fit)
{
  ImkShreconstruct *kernel = NULL;
  Made *made;

  g_mutex_lock (&self->lock);
  made = made_fits (self, settings, GST_SH_RECONSTRUCT_KERNEL)
             ? g_steal_pointer (&self->made)
             : NULL;
  g_mutex_unlock (&self->lock);
  if (made && made->backend == backend &&
      (backend != IMK_BACKEND_CUDA ||
          made->context == gst_imaging_engine_context (self->engine))) {
    kernel = g_steal_pointer (&made->kernel);
    *modes = g_steal_pointer (&made->modes);
    *fit = made->fit;
  }
  free_made (self, made);
  return kernel;
}
