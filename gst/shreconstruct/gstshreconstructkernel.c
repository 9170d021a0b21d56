/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructkernel.h"

#include "gstshreconstructmatrix.h"
#include "imk/parallel.h"

void
gst_sh_reconstruct_kernel_init (GstShReconstructKernel *self,
    GstImagingElement *element, GstShReconstructMirrors *mirrors,
    GstShReconstructCommands *src)
{
  self->element = element;
  self->mirrors = mirrors;
  self->src = src;
  self->prepared =
      gst_sh_reconstruct_prepared_new (element->settings, element->engine);
  self->lenslets = gst_sh_reconstruct_lenslets_new ();
}

void
gst_sh_reconstruct_kernel_clear (GstShReconstructKernel *self)
{
  gst_sh_reconstruct_prepared_free (self->prepared);
  gst_sh_reconstruct_lenslets_free (self->lenslets);
  imk_shdivergence_free (self->divergence);
  g_free (self->commands);
  g_free (self->coefficients);
}

void
gst_sh_reconstruct_kernel_close (GstShReconstructKernel *self)
{
  if (!self->now)
    return;
  imk_shreconstruct_free (self->before);
  self->before = g_steal_pointer (&self->now);
  imk_shreconstruct_leave_device (self->before);
}

void
gst_sh_reconstruct_kernel_forget (GstShReconstructKernel *self)
{
  g_clear_pointer (&self->before, imk_shreconstruct_free);
  gst_sh_reconstruct_lenslets_forget (self->lenslets);
  self->warnings = (GstShReconstructWarnings){0};
}

static const GstShReconstructSettings *
settings_now (const GstShReconstructKernel *self)
{
  return gst_imaging_settings_now (self->element->settings);
}

/* --- the sensor ----------------------------------------------------------- */

/* @n_sensor: cells of the sensor; @n_cells: of the columns of the matrix */
static ImkStatus
check_cells (guint n_sensor, guint n_cells, guint n_modes, ImkError *error)
{
  if (n_sensor == n_cells)
    return IMK_OK;
  if (n_modes == 2 * n_sensor)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The control matrix has the shape [%u, %u] and would fit the %u cells "
        "of the sensor transposed. Transpose it, or name the axis of its "
        "slopes.",
        n_modes, 2 * n_cells, n_sensor);
  return imk_error_set (error, IMK_ERROR_CONFIG,
      "The sensor has %u cells and the control matrix is made for %u. Use "
      "the matrix of this sensor.",
      n_sensor, n_cells);
}

ImkStatus
gst_sh_reconstruct_kernel_check_cells (
    const GstShReconstructKernel *self, guint n_sensor, ImkError *error)
{
  return check_cells (n_sensor, self->n_cells, self->n_modes, error);
}

/* Returns: (nullable): [n_cells][2] of the control matrix */
static const guint32 *
lenslets_of_matrix (const GstShReconstructSettings *s)
{
  const GstShReconstructMatrix *m = gst_imaging_setting_file_data (s->matrix);

  return m ? m->lenslets : NULL;
}

/* Does the matrix fit the sensor? */
static ImkStatus
check_sensor (const GstShReconstructKernel *self,
    const GstShReconstructSensor *sensor, const GstShReconstructPlan *plan,
    ImkError *error)
{
  const GstShReconstructSettings *s = settings_now (self);
  const gboolean is_image =
      sensor->is_tensor && (sensor->shape == GST_SH_RECONSTRUCT_SHAPE_IMAGE ||
                               sensor->shape == GST_SH_RECONSTRUCT_SHAPE_PAIRS);
  const guint n_cells = plan->config.n_cells;
  ImkStatus status = IMK_OK;

  if (is_image && (plan->is_idle || sensor->n_cells != n_cells))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "These tensors of two axes with %u numbers are no slopes%s. Set "
        "fields=slopes on shcentroid, or matrix-location to a matrix that is "
        "made for them.",
        2 * sensor->n_cells,
        plan->is_idle ? ", as far as is known without a control matrix"
                      : " for the control matrix, which has other columns");
  if (sensor->n_cells)
    status =
        check_cells (sensor->n_cells, n_cells, plan->config.n_modes, error);
  return status == IMK_OK
             ? gst_sh_reconstruct_lenslets_check (self->lenslets,
                   lenslets_of_matrix (s), n_cells,
                   gst_imaging_setting_file_location (s->matrix), error)
             : status;
}

/* --- making --------------------------------------------------------------- */

/* What is the same for another controller. */
static void
take_plan (GstShReconstructKernel *self, GstShReconstructPlan *plan)
{
  const GstShReconstructSettings *s = settings_now (self);

  imk_shdivergence_set_controller (self->divergence, &plan->config);
  gst_sh_reconstruct_commands_take (self->src, plan);
  gst_sh_reconstruct_mirrors_take (self->mirrors, plan);
  gst_sh_reconstruct_warn (
      &self->warnings, GST_ELEMENT (self->element), s, plan);
  gst_sh_reconstruct_prepared_begin (
      self->prepared, self->backend, s, plan->has_matrices);
}

void
gst_sh_reconstruct_kernel_begin_watch (GstShReconstructKernel *self)
{
  imk_shreconstruct_get_coefficients (self->now, self->coefficients);
  imk_shdivergence_begin (self->divergence, self->coefficients);
}

/* @kernel, @divergence: (transfer full) */
static void
take (GstShReconstructKernel *self, ImkShreconstruct *kernel,
    ImkShdivergence *divergence, ImkBackend backend, GstShReconstructPlan *plan)
{
  const GstShReconstructSettings *s = settings_now (self);

  gst_sh_reconstruct_kernel_close (self);
  self->now = kernel;
  self->backend = backend;
  self->is_idle = plan->is_idle;
  self->n_cells = plan->config.n_cells;
  self->n_modes = plan->config.n_modes;
  self->n_commands = plan->config.n_commands;
  self->order = plan->order;
  self->commands =
      g_realloc_n (self->commands, self->n_commands, sizeof (gfloat));
  self->coefficients =
      g_realloc_n (self->coefficients, self->n_modes, sizeof (gfloat));
  imk_shdivergence_free (self->divergence);
  self->divergence = divergence;
  gst_sh_reconstruct_lenslets_take (self->lenslets, lenslets_of_matrix (s),
      self->n_cells, gst_imaging_setting_file_location (s->matrix));
  take_plan (self, plan);
  self->warnings.has_doubt = FALSE;
  gst_sh_reconstruct_kernel_warn_of_doubt (self);
  if (self->before)
    imk_shreconstruct_take_state (kernel, self->before);
  gst_sh_reconstruct_kernel_begin_watch (self);
}

/* Without matrices: what is wrong is said before a kernel is made or taken. */
static ImkStatus
plan_checked (const GstShReconstructKernel *self,
    const GstShReconstructSensor *sensor, GstShReconstructPlan *plan,
    ImkError *error)
{
  ImkStatus status = gst_sh_reconstruct_plan (
      settings_now (self), FALSE, sensor->n_cells, plan, error);

  if (status == IMK_OK)
    status = check_sensor (self, sensor, plan, error);
  return status == IMK_OK
             ? gst_sh_reconstruct_mirrors_check (self->mirrors, plan, error)
             : status;
}

/* Made in this thread: at the start, and where nothing was prepared. */
static ImkStatus
make (const GstShReconstructKernel *self, ImkBackend backend,
    const GstShReconstructSensor *sensor, GstShReconstructPlan *plan,
    ImkShreconstruct **kernel, ImkError *error)
{
  ImkStatus status;

  gst_sh_reconstruct_plan_clear (plan);
  status = gst_sh_reconstruct_plan (
      settings_now (self), TRUE, sensor->n_cells, plan, error);
  plan->config.n_threads = gst_imaging_engine_n_threads (self->element->engine);
  if (status == IMK_OK)
    status = imk_shreconstruct_new (backend, &plan->config, kernel, error);
  if (status == IMK_OK)
    gst_sh_reconstruct_plan_find_fit (plan);
  return status;
}

/* @kernel: prepared, with the controller perhaps of settings before
 * @modes: (transfer full) (nullable): of it */
static ImkStatus
adopt (ImkShreconstruct *kernel, gfloat *modes, GstShReconstructPlan *plan,
    ImkError *error)
{
  ImkStatus status = imk_shreconstruct_update (kernel, &plan->config, error);

  plan->modes = modes;
  plan->has_matrices = TRUE;
  if (status == IMK_OK)
    imk_shreconstruct_reset (kernel);
  return status;
}

ImkStatus
gst_sh_reconstruct_kernel_open (GstShReconstructKernel *self,
    ImkBackend backend, const GstShReconstructSensor *sensor, ImkError *error)
{
  ImkShreconstruct *kernel = NULL;
  ImkShdivergence *divergence;
  gfloat *modes = NULL;
  GstShReconstructPlan plan;
  ImkStatus status = plan_checked (self, sensor, &plan, error);

  if (status == IMK_OK) {
    kernel = gst_sh_reconstruct_prepared_take (
        self->prepared, settings_now (self), backend, &modes, &plan.fit);
    status = kernel ? adopt (kernel, modes, &plan, error)
                    : make (self, backend, sensor, &plan, &kernel, error);
  }
  if (status == IMK_OK)
    status = imk_shdivergence_new (plan.config.n_cells, plan.config.n_modes,
        plan.config.n_commands, &divergence, error);
  if (status == IMK_OK)
    take (self, kernel, divergence, backend, &plan);
  else
    imk_shreconstruct_free (kernel);
  gst_sh_reconstruct_plan_clear (&plan);
  return status;
}

static ImkStatus
update (GstShReconstructKernel *self, const GstShReconstructSensor *sensor,
    ImkError *error)
{
  GstShReconstructPlan plan;
  ImkStatus status = plan_checked (self, sensor, &plan, error);

  if (status == IMK_OK)
    status = imk_shreconstruct_update (self->now, &plan.config, error);
  if (status == IMK_OK)
    take_plan (self, &plan);
  gst_sh_reconstruct_plan_clear (&plan);
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

ImkStatus
gst_sh_reconstruct_kernel_apply (GstShReconstructKernel *self,
    const GstShReconstructSensor *sensor,
    const GstShReconstructSettings *before, guint groups, ImkError *error)
{
  const GstShReconstructSettings *s = settings_now (self);
  ImkStatus status = check_gain (before, s, error);

  if (status != IMK_OK)
    return status;
  if (!before || !self->now || groups & GST_SH_RECONSTRUCT_KERNEL ||
      gst_sh_reconstruct_prepared_is_for_inverse (self->prepared, s))
    return gst_imaging_engine_renew (self->element->engine, error);
  if (groups & (GST_SH_RECONSTRUCT_CONTROL | GST_SH_RECONSTRUCT_OUTPUT |
                   GST_SH_RECONSTRUCT_WAVEFRONT))
    return update (self, sensor, error);
  return IMK_OK;
}

/* A product of this many numbers takes one core 40 us from its caches; a device
 * takes 20 us for launches and a wait, and the transfer of slopes. */
enum { LARGE_MATRIX = 1 << 20 };

gboolean
gst_sh_reconstruct_kernel_prefers_cuda (const GstShReconstructKernel *self)
{
  GstImagingSettings *settings = self->element->settings;
  GstShReconstructSettings *s = gst_imaging_settings_copy (settings);
  const GstShReconstructMatrix *matrix =
      gst_imaging_setting_file_data (s->matrix);
  const guint64 n = matrix ? matrix->array->n : 0;
  const guint n_threads = imk_parallel_threads (
      gst_imaging_engine_n_threads (self->element->engine));
  const gboolean prefers = s->invalid != IMK_SHRECONSTRUCT_INVALID_EXCLUDE &&
                           n / n_threads >= LARGE_MATRIX;

  gst_imaging_settings_free_copy (settings, s);
  return prefers;
}

void
gst_sh_reconstruct_kernel_warn_of_doubt (GstShReconstructKernel *self)
{
  gst_sh_reconstruct_warn_of_doubt (
      &self->warnings, GST_ELEMENT (self->element), self->now);
}
