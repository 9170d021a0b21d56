/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From properties and files to kernels. */
#include "gstoctbscan-private.h"

#include "gstoctbscancalibration.h"
#include "gstoctbscanfiles.h"

/* Of the B-scans that a device is given at once. */
#define MOST_ASCANS 16384u
#define MOST_BYTES ((guint64) 512 << 20)
#define MOST_JOBS 256

Settings
gst_oct_bscan_get_settings (GstOctBscan *self)
{
  Settings s;

  GST_OBJECT_LOCK (self);
  s = gst_oct_bscan_settings_copy (&self->settings);
  GST_OBJECT_UNLOCK (self);
  return s;
}

/* The arrays that the settings name; those that are not asked for are NULL. */
typedef struct {
  gdouble *background, *pattern, *curve, *window;
} Arrays;

static ImkStatus
load_arrays (Settings *s, Arrays *a, ImkError *error)
{
  ImkOctbscanConfig *c = &s->config;
  gboolean ok = TRUE;

  if (s->background_location &&
      c->background_mode == IMK_OCTBSCAN_BACKGROUND_FILE)
    ok = (a->background = gst_oct_bscan_load_background (
              s->background_location, c->n_cameras, c->width, error)) != NULL;
  if (ok && s->pattern_location &&
      c->fixed_pattern == IMK_OCTBSCAN_FIXED_PATTERN_FILE)
    ok = (a->pattern = gst_oct_bscan_load_pattern (s->pattern_location,
              c->n_cameras, imk_octbscan_n_depths (c), error)) != NULL;
  if (ok && s->scan_curve && c->scan == IMK_OCTBSCAN_SCAN_CURVE)
    ok = (a->curve = gst_oct_bscan_load_curve (
              "scan-curve", s->scan_curve, &c->n_scan_curve, error)) != NULL;
  if (ok && s->window_location && c->window == IMK_OCTBSCAN_WINDOW_FILE)
    ok = (a->window = gst_oct_bscan_load_curve ("window-location",
              s->window_location, &c->n_window_values, error)) != NULL;
  c->background = a->background;
  c->pattern = a->pattern;
  c->scan_curve = a->curve;
  c->window_values = a->window;
  return ok ? IMK_OK : IMK_ERROR_FILE;
}

/* Of whole calibrations and files. */
static ImkStatus
use_with (Settings *s, GstOctBscanUse use, gpointer data, guint *n_left_over,
    ImkError *error)
{
  ImkOctbscanConfig *c = &s->config;
  GstOctBscanCalibration *calibration =
      gst_oct_bscan_calibration_load (s->calibration, s->camera_order,
          s->dispersion, c->n_cameras, c->width, error);
  ImkStatus status = calibration ? IMK_OK : error->code;
  Arrays arrays = {NULL};

  if (status == IMK_OK)
    status = load_arrays (s, &arrays, error);
  if (status == IMK_OK) {
    c->cameras = calibration->cameras;
    *n_left_over = calibration->n_left_over;
    status = use (c, data, error);
  }
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
gst_oct_bscan_use_config (GstOctBscan *self, const GstVideoInfo *info,
    GstOctBscanUse use, gpointer data, ImkError *error)
{
  Settings s = gst_oct_bscan_settings_copy (&self->now);
  ImkOctbscanConfig *c = &s.config;
  ImkStatus status;

  if (self->n_skipped >= (guint) info->height) {
    gst_oct_bscan_settings_clear (&s);
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "skip-first-line is %u and leaves none of the %d lines of a B-scan.",
        self->n_skipped, info->height);
  }
  c->width = (guint32) info->width / self->bytes_a_pixel;
  c->height = (guint32) info->height - self->n_skipped;
  c->type = self->type;
  c->n_threads = gst_imaging_engine_n_threads (self->engine);
  status = use_with (&s, use, data, &self->n_left_over, error);
  gst_oct_bscan_settings_clear (&s);
  return status;
}

/* A kernel that is to be made. */
typedef struct {
  ImkBackend backend;
  ImkOctbscan **kernel;
  ImkOctbscanConfig config; /* (out) */
} Making;

static ImkStatus
make_kernel (const ImkOctbscanConfig *config, gpointer data, ImkError *error)
{
  Making *m = data;
  ImkOctbscanConfig c = *config;

  c.max_jobs = jobs_at_once (m->backend, &c);
  m->config = c;
  return imk_octbscan_new (m->backend, &c, m->kernel, error);
}

ImkStatus
gst_oct_bscan_kernel_new (GstOctBscan *self, ImkBackend backend,
    const GstVideoInfo *info, ImkOctbscan **kernel, ImkError *error)
{
  Making m = {backend, kernel};
  ImkStatus status =
      gst_oct_bscan_use_config (self, info, make_kernel, &m, error);

  if (status != IMK_OK)
    return status;
  self->opened = m.config;
  self->opened.cameras = NULL;
  self->opened.background = self->opened.pattern = NULL;
  self->opened.scan_curve = self->opened.window_values = NULL;
  return IMK_OK;
}

void
gst_oct_bscan_warn_of_settings (GstOctBscan *self)
{
  const ImkOctbscanConfig *c = &self->opened;
  gboolean is_dark = c->background_mode == IMK_OCTBSCAN_BACKGROUND_MEAN &&
                     c->height <= c->n_cameras;

  if (!self->kernel)
    return;
  if (self->n_left_over > 0 && !self->warned_of_cameras)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("The calibration is of %u cameras, but cameras is %u: the others get "
         "no lines. Set cameras, or camera-order to those that are meant.",
            c->n_cameras + self->n_left_over, c->n_cameras),
        (NULL));
  if (is_dark && !self->warned_of_mean)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("background=mean takes off the mean of a camera's lines in a B-scan, "
         "which has one of them: images will be black. Gather lines with "
         "ascans-per-bscan, or take another background."),
        (NULL));
  self->warned_of_cameras = self->n_left_over > 0;
  self->warned_of_mean = is_dark;
}
