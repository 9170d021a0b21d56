/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From properties and files to kernels. */
#include "gstoctbscan-private.h"

#include "gstoctbscancalibration.h"
#include "gstoctbscanfiles.h"
#include "gstimagingpicture.h"

/* Of the B-scans that a device is given at once. */
#define MOST_ASCANS 16384u
#define MOST_BYTES ((guint64) 512 << 20)
#define MOST_JOBS 256

/* The arrays that the settings name; those that are not asked for are NULL. */
typedef struct {
  gdouble *background, *pattern, *curve, *window;
} Arrays;

static ImkStatus
get_arrays (const Settings *s, ImkOctbscanConfig *c, Arrays *a, ImkError *error)
{
  gboolean ok = TRUE;

  if (s->background && c->background_mode == IMK_OCTBSCAN_BACKGROUND_FILE)
    ok = (a->background = gst_oct_bscan_get_background (
              s->background, c->n_cameras, c->width, error)) != NULL;
  if (ok && s->pattern && c->fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_FILE)
    ok = (a->pattern = gst_oct_bscan_get_pattern (s->pattern, c->n_cameras,
              imk_octbscan_n_depths (c), error)) != NULL;
  if (s->scan_curve && c->scan == IMK_OCTBSCAN_SCAN_CURVE)
    a->curve = gst_oct_bscan_get_curve (s->scan_curve, &c->n_scan_curve);
  if (s->window && c->window == IMK_OCTBSCAN_WINDOW_FILE)
    a->window = gst_oct_bscan_get_curve (s->window, &c->n_window_values);
  c->background = a->background;
  c->pattern = a->pattern;
  c->scan_curve = a->curve;
  c->window_values = a->window;
  return ok ? IMK_OK : IMK_ERROR_FILE;
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

/* @live: pairs of d2 and d3 for each camera */
static ImkStatus
get_live (
    const Settings *s, ImkOctbscanConfig *c, gdouble *live, ImkError *error)
{
  ImkStatus status = IMK_OK;

  if (!s->dispersion_2 && !s->dispersion_3)
    return IMK_OK;
  for (guint i = 0; i < c->n_cameras && status == IMK_OK; i++) {
    const ImkOctbscanCamera *own = &c->cameras[i];

    status = live_value ("dispersion-2", s->dispersion_2, c->n_cameras, i,
        own->n_dispersion > 2 ? own->dispersion[2] : 0, &live[2 * i], error);
    if (status == IMK_OK)
      status = live_value ("dispersion-3", s->dispersion_3, c->n_cameras, i,
          own->n_dispersion > 3 ? own->dispersion[3] : 0, &live[2 * i + 1],
          error);
  }
  c->live_dispersion = live;
  return status;
}

/* Of whole calibrations and files. */
static ImkStatus
use_with (const Settings *s, ImkOctbscanConfig *c, GstOctBscanUse use,
    gpointer data, guint *n_left_over, ImkError *error)
{
  GstOctBscanCalibration *calibration = gst_oct_bscan_calibration_new (
      gst_imaging_setting_file_data (s->calibration), s->camera_order,
      s->dispersion, c->n_cameras, c->width, error);
  ImkStatus status = calibration ? IMK_OK : error->code;
  gdouble live[2 * IMK_OCTBSCAN_MAX_CAMERAS];
  Arrays arrays = {NULL};

  if (status == IMK_OK)
    status = get_arrays (s, c, &arrays, error);
  if (status == IMK_OK) {
    c->cameras = calibration->cameras;
    *n_left_over = calibration->n_left_over;
    status = get_live (s, c, live, error);
  }
  if (status == IMK_OK)
    status = use (c, data, error);
  gst_oct_bscan_calibration_free (calibration);
  g_free (arrays.background);
  g_free (arrays.pattern);
  g_free (arrays.curve);
  g_free (arrays.window);
  return status;
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

ImkStatus
gst_oct_bscan_use_config (GstOctBscan *self, const Settings *settings,
    const GstVideoInfo *info, GstOctBscanUse use, gpointer data,
    guint *n_left_over, ImkError *error)
{
  ImkOctbscanConfig c = settings->config;
  guint n_skipped = settings->skip_first_line;

  if (n_skipped >= (guint) info->height)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "skip-first-line is %u and leaves none of the %d lines of a B-scan.",
        n_skipped, info->height);
  c.width = (guint32) info->width / self->bytes_a_pixel;
  c.height = (guint32) info->height - n_skipped;
  c.type = self->type;
  c.n_threads = gst_imaging_engine_n_threads (self->engine);
  c.averages_bscans = settings->average_bscans > 1;
  return use_with (settings, &c, use, data, n_left_over, error);
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

/* @data: where the live dispersion is put */
static ImkStatus
check_config (const ImkOctbscanConfig *config, gpointer data, ImkError *error)
{
  ImkStatus status = imk_octbscan_check (config, error);

  if (config->live_dispersion)
    memcpy (data, config->live_dispersion,
        2 * config->n_cameras * sizeof (gdouble));
  return status;
}

ImkStatus
gst_oct_bscan_check_settings (GstOctBscan *self, const Settings *settings,
    GstVideoInfo *info, gdouble *live, gboolean *is_live, ImkError *error)
{
  guint n_left_over;

  *is_live = settings->dispersion_2 || settings->dispersion_3;
  if (!describe_bscan (&self->lines, settings, info))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "B-scans of %u lines (ascans-per-bscan) would have 4 GiB or more. Take "
        "fewer.",
        settings->ascans_per_bscan);
  return gst_oct_bscan_use_config (
      self, settings, info, check_config, live, &n_left_over, error);
}

static ImkStatus
make_kernel (const ImkOctbscanConfig *config, gpointer data, ImkError *error)
{
  GstOctBscanOpen *made = data;
  ImkOctbscanConfig c = *config;

  c.max_jobs = jobs_at_once (made->backend, &c);
  made->config = c;
  made->config.live_dispersion = NULL;
  made->config.cameras = NULL;
  made->config.background = made->config.pattern = NULL;
  made->config.scan_curve = made->config.window_values = NULL;
  return imk_octbscan_new (made->backend, &c, &made->kernel, error);
}

/* @made: (out): untouched on an error */
static ImkStatus
open_new (GstOctBscan *self, const Settings *settings, ImkBackend backend,
    const GstVideoInfo *info, GstOctBscanOpen *made, ImkError *error)
{
  GstOctBscanOpen own = {.backend = backend};
  ImkStatus status = gst_oct_bscan_use_config (
      self, settings, info, make_kernel, &own, &own.n_left_over, error);

  if (status == IMK_OK)
    *made = own;
  return status;
}

ImkStatus
gst_oct_bscan_kernel_new (GstOctBscan *self, ImkBackend backend,
    const GstVideoInfo *info, ImkOctbscan **kernel, ImkError *error)
{
  GstOctBscanOpen made;
  ImkStatus status = IMK_OK;

  if (self->next.kernel && self->next.backend == backend) {
    made = self->next;
    self->next.kernel = NULL;
  } else {
    status = open_new (self, self->now, backend, info, &made, error);
  }
  if (status != IMK_OK)
    return status;
  self->open.backend = backend;
  self->open.config = made.config;
  self->open.n_left_over = made.n_left_over;
  *kernel = made.kernel;
  return IMK_OK;
}

ImkStatus
gst_oct_bscan_prepare_kernel (GstOctBscan *self, const Settings *settings,
    const GstVideoInfo *info, ImkError *error)
{
  gboolean on_device = gst_imaging_engine_is_on_cuda (self->engine);
  GstImagingContext *context = gst_imaging_engine_context (self->engine);
  ImkStatus status = IMK_OK;

  if (on_device)
    status = gst_imaging_context_push (context, error);
  if (status != IMK_OK)
    return status;
  status = open_new (self, settings,
      on_device ? IMK_BACKEND_CUDA : IMK_BACKEND_CPU, info, &self->next, error);
  if (on_device)
    gst_imaging_context_pop (context);
  return status;
}

/* Without the context of its device, when that is lost. */
void
gst_oct_bscan_forget_next_kernel (GstOctBscan *self)
{
  gboolean on_device = self->next.backend == IMK_BACKEND_CUDA;
  GstImagingContext *context = gst_imaging_engine_context (self->engine);

  if (!self->next.kernel)
    return;
  if (on_device && context)
    on_device = gst_imaging_context_push (context, NULL) == IMK_OK;
  g_clear_pointer (&self->next.kernel, imk_octbscan_free);
  if (on_device && context)
    gst_imaging_context_pop (context);
}

void
gst_oct_bscan_warn_of_settings (GstOctBscan *self)
{
  const ImkOctbscanConfig *c = &self->open.config;
  gboolean is_dark = c->background_mode == IMK_OCTBSCAN_BACKGROUND_MEAN &&
                     c->height <= c->n_cameras;

  if (!self->open.kernel)
    return;
  if (self->open.n_left_over > 0 && !self->warned_of_cameras)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("The calibration is of %u cameras, but cameras is %u: the others get "
         "no lines. Set cameras, or camera-order to those that are meant.",
            c->n_cameras + self->open.n_left_over, c->n_cameras),
        (NULL));
  if (is_dark && !self->warned_of_mean)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("background=mean takes off the mean of a camera's lines in a B-scan, "
         "which has one of them: images will be black. Gather lines with "
         "ascans-per-bscan, or take another background."),
        (NULL));
  self->warned_of_cameras = self->open.n_left_over > 0;
  self->warned_of_mean = is_dark;
}
