/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From properties and files to kernels. */
#include "gstoctbscanplan.h"

#include "gstoctbscanfiles.h"
#include "gstimagingpicture.h"
#include "gstoctbscaninput.h"

/* Of the B-scans that a device is given at once. */
#define MOST_ASCANS 16384u
#define MOST_BYTES ((guint64) 512 << 20)
#define MOST_JOBS 256

/* The arrays that the settings name; those that are not asked for are NULL. */
static ImkStatus
get_arrays (GstOctBscanPlan *self, const Settings *s, ImkError *error)
{
  ImkOctbscanConfig *c = &self->config;

  if (s->background && c->background_mode == IMK_OCTBSCAN_BACKGROUND_FILE &&
      !(c->background = gst_oct_bscan_get_background (
            s->background, c->n_cameras, c->width, error)))
    return IMK_ERROR_FILE;
  if (s->pattern && c->fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_FILE &&
      !(c->pattern = gst_oct_bscan_get_pattern (
            s->pattern, c->n_cameras, imk_octbscan_n_depths (c), error)))
    return IMK_ERROR_FILE;
  if (s->scan_curve && c->scan == IMK_OCTBSCAN_SCAN_CURVE)
    c->scan_curve = gst_oct_bscan_get_curve (s->scan_curve, &c->n_scan_curve);
  if (s->window && c->window == IMK_OCTBSCAN_WINDOW_FILE)
    c->window_values = gst_oct_bscan_get_curve (s->window, &c->n_window_values);
  if (s->tracking_reference && c->tracking != IMK_OCTBSCAN_TRACKING_NONE)
    c->tracking_profile =
        gst_oct_bscan_get_curve (s->tracking_reference, &c->n_tracking_profile);
  return IMK_OK;
}

/* The value for camera @i of one for all or one for each; @otherwise when there
 * is none. */
static ImkStatus
live_value (const gchar *name, const GstImagingArray *array, guint n_cameras,
    guint i, gdouble otherwise, gdouble *value, ImkError *error)
{
  *value = otherwise;
  if (!array)
    return IMK_OK;
  if (array->n != 1 && array->n != n_cameras)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "%s has %u values, but cameras is %u. Give one for all, or one for "
        "each.",
        name, array->n, n_cameras);
  *value = array->values[array->n == 1 ? 0 : i];
  return IMK_OK;
}

static ImkStatus
get_live (GstOctBscanPlan *self, const Settings *s, ImkError *error)
{
  ImkOctbscanConfig *c = &self->config;
  gdouble *live = self->live;

  if (!s->dispersion_2 && !s->dispersion_3)
    return IMK_OK;
  for (guint i = 0; i < c->n_cameras; i++) {
    const ImkOctbscanCamera *own = &c->cameras[i];

    IMK_TRY (live_value ("dispersion-2", s->dispersion_2, c->n_cameras, i,
        own->n_dispersion > 2 ? own->dispersion[2] : 0, &live[2 * i], error));
    IMK_TRY (live_value ("dispersion-3", s->dispersion_3, c->n_cameras, i,
        own->n_dispersion > 3 ? own->dispersion[3] : 0, &live[2 * i + 1],
        error));
  }
  c->live_dispersion = live;
  return IMK_OK;
}

/* A device takes so many B-scans at once that it is busy for about a
 * millisecond; the matrix of their Z is what takes memory. */
static guint
jobs_at_once (ImkBackend backend, const ImkOctbscanConfig *c)
{
  guint64 z = (guint64) c->height * MAX (imk_octbscan_n_depths (c), 1) * 8;
  guint64 n = MIN (MOST_ASCANS / c->height, MOST_BYTES / z);

  return backend == IMK_BACKEND_CUDA ? (guint) CLAMP (n, 1, MOST_JOBS) : 1;
}

/* Returns: FALSE when B-scans would be too large */
static gboolean
describe_bscan (
    const GstVideoInfo *lines, const Settings *settings, GstVideoInfo *info)
{
  guint height = settings->ascans_per_bscan ? settings->ascans_per_bscan
                                            : (guint) lines->height;
  gint fps_n = lines->fps_n, fps_d = lines->fps_d;

  if (!gst_util_fraction_multiply (
          fps_n, fps_d, lines->height, (gint) height, &fps_n, &fps_d)) {
    fps_n = 0;
    fps_d = 1;
  }
  if (!gst_imaging_video_info_set_format (
          info, GST_VIDEO_INFO_FORMAT (lines), lines->width, height))
    return FALSE;
  info->fps_n = fps_n;
  info->fps_d = fps_d;
  return TRUE;
}

/* As the kernel's default, but with all samples of a spectrum. */
static guint32
default_upsample (guint32 width)
{
  ImkOctbscanConfig defaults;

  imk_octbscan_config_init (&defaults);
  return MAX (defaults.upsample, width);
}

static ImkStatus
describe_lines (GstOctBscan *self, const Settings *s, GstOctBscanPlan *plan,
    ImkError *error)
{
  ImkOctbscanConfig *c = &plan->config;

  if (!describe_bscan (&self->input.lines, s, &plan->info))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "B-scans of %u lines (ascans-per-bscan) would have 4 GiB or more. Take "
        "fewer.",
        s->ascans_per_bscan);
  if (s->skip_first_line >= (guint) plan->info.height)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "skip-first-line is %u and leaves none of the %d lines of a B-scan.",
        s->skip_first_line, plan->info.height);
  c->width = (guint32) plan->info.width / self->input.bytes_a_pixel;
  c->height = (guint32) plan->info.height - s->skip_first_line;
  if (c->upsample == 0)
    c->upsample = default_upsample (c->width);
  c->type = self->input.type;
  c->n_threads = gst_imaging_engine_n_threads (self->base.engine);
  c->averages_bscans = s->average_bscans > 1;
  return IMK_OK;
}

static ImkStatus
get_calibration (GstOctBscanPlan *self, const Settings *s, ImkError *error)
{
  ImkOctbscanConfig *c = &self->config;

  self->calibration = gst_oct_bscan_calibration_new (
      gst_imaging_setting_file_data (s->calibration), s->camera_order,
      s->k_polynomial, s->dispersion, c->n_cameras, c->width, error);
  if (!self->calibration)
    return error->code;
  c->cameras = self->calibration->cameras;
  return IMK_OK;
}

GstOctBscanPlan *
gst_oct_bscan_plan_new (
    GstOctBscan *self, const Settings *settings, ImkError *error)
{
  GstOctBscanPlan *plan = g_new0 (GstOctBscanPlan, 1);
  ImkStatus status;

  plan->config = settings->config;
  status = describe_lines (self, settings, plan, error);
  if (status == IMK_OK)
    status = get_calibration (plan, settings, error);
  if (status == IMK_OK)
    status = get_arrays (plan, settings, error);
  if (status == IMK_OK)
    status = get_live (plan, settings, error);
  if (status == IMK_OK)
    status = imk_octbscan_check (&plan->config, error);
  if (status == IMK_OK)
    status = gst_oct_bscan_check_sweeps (settings, &plan->config, error);
  if (status != IMK_OK)
    g_clear_pointer (&plan, gst_oct_bscan_plan_free);
  return plan;
}

void
gst_oct_bscan_plan_free (GstOctBscanPlan *self)
{
  if (!self)
    return;
  gst_oct_bscan_calibration_free (self->calibration);
  g_free ((gpointer) self->config.background);
  g_free ((gpointer) self->config.pattern);
  g_free ((gpointer) self->config.scan_curve);
  g_free ((gpointer) self->config.window_values);
  g_free ((gpointer) self->config.tracking_profile);
  g_free (self);
}

/* @made: (out): untouched on an error */
static ImkStatus
open_new (const GstOctBscanPlan *plan, ImkBackend backend,
    GstOctBscanOpen *made, ImkError *error)
{
  GstOctBscanOpen own = {.backend = backend,
      .config = imk_octbscan_without_pointers (&plan->config)};
  ImkOctbscanConfig c = plan->config;

  c.max_jobs = own.config.max_jobs = jobs_at_once (backend, &c);
  IMK_TRY (imk_octbscan_new (backend, &c, &own.kernel, error));
  *made = own;
  return IMK_OK;
}

ImkStatus
gst_oct_bscan_kernel_new (GstOctBscan *self, ImkBackend backend,
    ImkOctbscan **kernel, ImkError *error)
{
  GstOctBscanOpen made;

  if (self->in_use.next.kernel && self->in_use.next.backend == backend) {
    made = self->in_use.next;
    self->in_use.next.kernel = NULL;
  } else {
    IMK_TRY (open_new (self->in_use.plan, backend, &made, error));
  }
  self->open.backend = backend;
  self->open.config = made.config;
  *kernel = made.kernel;
  return IMK_OK;
}

ImkStatus
gst_oct_bscan_prepare_kernel (
    GstOctBscan *self, const GstOctBscanPlan *plan, ImkError *error)
{
  GstImagingContext *context =
      gst_imaging_engine_kernel_context (self->base.engine);

  GST_IMAGING_ENTER (context, error);
  return open_new (plan, context ? IMK_BACKEND_CUDA : IMK_BACKEND_CPU,
      &self->in_use.next, error);
}

/* Without the context of its device, when that is lost. */
void
gst_oct_bscan_forget_next_kernel (GstOctBscan *self)
{
  gboolean on_device = self->in_use.next.backend == IMK_BACKEND_CUDA;
  GstImagingContext *context = gst_imaging_engine_context (self->base.engine);

  if (!self->in_use.next.kernel)
    return;
  if (on_device && context)
    on_device = gst_imaging_context_push (context, NULL) == IMK_OK;
  g_clear_pointer (&self->in_use.next.kernel, imk_octbscan_free);
  if (on_device && context)
    gst_imaging_context_pop (context);
}

ImkStatus
gst_oct_bscan_get_found (ImkOctbscan *kernel, GstOctBscanFound what,
    gpointer values, ImkError *error)
{
  return what == GST_OCT_BSCAN_BACKGROUND
             ? imk_octbscan_get_background (kernel, values, error)
             : imk_octbscan_get_pattern (kernel, values, error);
}

void
gst_oct_bscan_warn_of_settings (GstOctBscan *self)
{
  const ImkOctbscanConfig *c = &self->open.config;
  gboolean is_dark = c->background_mode == IMK_OCTBSCAN_BACKGROUND_MEAN &&
                     c->height <= c->n_cameras;
  guint n_left_over = self->in_use.plan->calibration->n_left_over;

  if (!self->open.kernel)
    return;
  if (n_left_over > 0 && !self->in_use.warned_of_cameras)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("The calibration is of %u cameras, but cameras is %u: the others get "
         "no lines. Set cameras, or camera-order to those that are meant.",
            c->n_cameras + n_left_over, c->n_cameras),
        (NULL));
  if (is_dark && !self->in_use.warned_of_mean)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("background=mean takes off the mean of a camera's lines in a B-scan, "
         "which has one of them: images will be black. Gather lines with "
         "ascans-per-bscan, or take another background."),
        (NULL));
  self->in_use.warned_of_cameras = n_left_over > 0;
  self->in_use.warned_of_mean = is_dark;
}
