/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-shcentroid
 * @title: shcentroid
 * @short_description: Shack-Hartmann centroids
 *
 * Measures where the spot of each lenslet is: the centre of gravity of each
 * cell of a grid or map, c = (m10 / m00, m01 / m00), after J. Mocci et al.,
 * JOSA A 37, 1548 (2020). Frames pass unchanged and carry the centroids as a
 * GstImagingResults meta; the `results` pad has them as text or tensors.
 *
 * Pixel (0, 0) is the top left one and its centre is at (0, 0).
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 v4l2src ! video/x-raw,format=GRAY8 ! shcentroid name=sh x0=10
 * y0=10 pitch-x=20 pitch-y=20 columns=16 rows=16 ! fakesink sh.results ! queue
 * ! text/csv ! filesink location=centroids.csv
 * ]|
 *
 * Since: 0.1
 */
#include "gstshcentroidprivate.h"

#include <stdio.h>

#include "gstimagingpicture.h"
#include "gstimagingtable.h"
#include "gstshcentroidhandover.h"
#include "gstshcentroidhints.h"
#include "gstshcentroidpupils.h"
#include "gstshcentroidtemplate.h"

#include "imk/parallel.h"

GST_DEBUG_CATEGORY (gst_sh_centroid_debug);

/* Of NV12, what Jetson's cameras give, the luma is measured. */
#define SH_CENTROID_CAPS \
  GST_VIDEO_CAPS_MAKE_WITH_FEATURES ("memory:NVMM", "{ GRAY8, NV12 }") \
  ";" GST_VIDEO_CAPS_MAKE ( \
      "{ GRAY8, GRAY16_LE }") ";" GST_IMAGING_PICTURE_TENSOR_CAPS

/* Of the height of a spot, above the level of noise: cells below are dark. */
#define DARK_PART 0.1

/* What float32 frames are mapped as: 4 bytes a pixel. No video of this format
 * is accepted. */
#define FLOAT_CARRIER GST_VIDEO_FORMAT_ARGB

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (SH_CENTROID_CAPS));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (SH_CENTROID_CAPS));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstShCentroid, gst_sh_centroid,
    GST_TYPE_IMAGING_FILTER,
    GST_DEBUG_CATEGORY_INIT (
        gst_sh_centroid_debug, "shcentroid", 0, "Shack-Hartmann centroids"))
GST_ELEMENT_REGISTER_DEFINE (
    shcentroid, "shcentroid", GST_RANK_NONE, GST_TYPE_SH_CENTROID)

static const gchar *const names[IMK_SHCENTROID_N_FIELDS] = {
    "x", "y", "dx", "dy", "flux", "flux_raw", "max", "var_x", "var_y", "flags"};
static const gchar *const units[IMK_SHCENTROID_N_FIELDS] = {"px", "px", "px",
    "px", "counts", "counts", "counts", "px^2", "px^2", "flags"};
/* Slopes of pupil images have none. */
static const gchar *const units_pupils[IMK_SHCENTROID_N_FIELDS] = {
    "px", "px", "1", "1", "counts", "counts", "counts", "1", "1", "flags"};
static const gchar *const units_rad[IMK_SHCENTROID_N_FIELDS] = {"px", "px",
    "rad", "rad", "counts", "counts", "counts", "px^2", "px^2", "flags"};

/* --- the kernel ---------------------------------------------------------- */

/* "width:height", further dimensions 1; or "1:width:height:1", a picture of one
 * channel as photostereo has them. */
static gboolean
read_dimensions (const gchar *text, guint *width, guint *height)
{
  guint d[4] = {0, 0, 1, 1}, first;
  gint n = text ? sscanf (text, "%u:%u:%u:%u", &d[0], &d[1], &d[2], &d[3]) : 0;

  first = n >= 3 && d[0] == 1 && d[2] > 1;
  *width = d[first];
  *height = d[first + 1];
  return n >= 2 && (first || d[2] == 1) && d[3] == 1 && *width >= 1 &&
         *width <= G_MAXUINT16 && *height >= 1 && *height <= G_MAXUINT16;
}

static ImkStatus
gst_sh_centroid_carrier (GstImagingFilter *filter, GstCaps *caps,
    GstVideoInfo *info, ImkError *error)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  const gchar *text = gst_structure_get_string (s, "dimensions");
  guint width, height;

  if (!read_dimensions (text, &width, &height))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A tensor of dimensions %s is no frame; it has to be width:height, of "
        "up to 65535 pixels a side.",
        text ? text : "that are not told");
  if (!gst_imaging_video_info_set_format (info, FLOAT_CARRIER, width, height))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "A tensor of dimensions %s has 4 GiB or more, which cannot be taken. "
        "Use fewer pixels.",
        text);
  gst_structure_get_fraction (s, "framerate", &info->fps_n, &info->fps_d);
  return IMK_OK;
}

static ImkType
type_of (const GstVideoInfo *info)
{
  switch (GST_VIDEO_INFO_FORMAT (info)) {
  case GST_VIDEO_FORMAT_GRAY16_LE:
    return IMK_TYPE_U16;
  case FLOAT_CARRIER:
    return IMK_TYPE_F32;
  default:
    return IMK_TYPE_U8;
  }
}

/* The samples of a mapped frame. */
static ImkImage
image_of (const GstImagingFrame *frame, ImkType type)
{
  ImkImage image = frame->planes[0];

  if (type == IMK_TYPE_F32) {
    image.type = type;
    image.channels = 1;
  }
  return image;
}

static void
gst_sh_centroid_close (GstImagingFilter *filter)
{
  gst_sh_centroid_kernel_clear (&GST_SH_CENTROID (filter)->open);
}

static gboolean
has_grid_in_force (GstShCentroid *self)
{
  return self->open.kernel && !self->open.provisional;
}

/* Before find-grid has found one there is no grid: a kernel has to be open
 * when the frame comes in which it looks, and process () opens the right one
 * before anything is measured. Templates are of the cells to come. */
static void
take_whole_frame (ImkShcentroidConfig *config)
{
  config->x0 = config->y0 = 0;
  config->columns = config->rows = 1;
  config->pitch_x = config->width;
  config->pitch_y = config->height;
  config->estimator = IMK_SHCENTROID_ESTIMATOR_COG;
  config->template_source = IMK_SHCENTROID_TEMPLATE_STORED;
  config->template_cell = -1;
}

/* Once for each, until the next start. */
static void
tell_hints (GstShCentroid *self)
{
  const GstShCentroidSettings *s = gst_sh_centroid_now (self);
  ImkShcentroidConfig config = s->config;
  const GstShCentroidHintInput input = {
      .config = &config,
      .has_map = s->map != NULL,
      .has_optics = s->optics.aperture_mm > 0,
      .bit_depth = s->bit_depth,
      .saturation = s->saturation,
      .type = self->open.type,
  };

  gst_sh_centroid_settings_threshold (s, &self->light, &config);
  for (guint i = 0; i < GST_SH_CENTROID_N_HINTS; i++) {
    const gchar *text = gst_sh_centroid_hint (i, &input);

    if (!text || self->hinted & 1u << i)
      continue;
    self->hinted |= 1u << i;
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS, ("%s", text), (NULL));
  }
}

static const guint32 *
places_of (const GstShCentroidSettings *s)
{
  const GstShCentroidMap *map = gst_imaging_setting_file_data (s->map);
  const GstShCentroidPupils *pupils = gst_imaging_setting_file_data (s->pupils);

  if (s->config.estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS)
    return pupils ? pupils->places : NULL;
  return map ? map->places : NULL;
}

/* @config: of the settings, with its frame and type */
static ImkStatus
open_settings (GstShCentroid *self, ImkBackend backend,
    ImkShcentroidConfig *config, GstShCentroidKernel *kernel, ImkError *error)
{
  const GstShCentroidSettings *s = gst_sh_centroid_now (self);

  IMK_TRY (gst_sh_centroid_settings_scale (s, config, error));
  kernel->provisional = !has_grid_in_force (self) &&
                        !gst_sh_centroid_settings_have_grid (s) &&
                        gst_sh_centroid_finds_grid (self);
  if (kernel->provisional) {
    take_whole_frame (config);
  } else {
    IMK_TRY (gst_sh_centroid_settings_cells (s, config, error));
    IMK_TRY (gst_sh_centroid_tables_load (&kernel->tables, s, config, error));
  }
  return gst_sh_centroid_kernel_open (kernel, GST_IMAGING_FILTER (self),
      backend, config, kernel->provisional ? NULL : places_of (s),
      self->capture.n_wanted > 0 &&
          self->capture.kind == GST_SH_CENTROID_REFERENCE,
      error);
}

/* What was open stays until there is something new. */
static ImkStatus
gst_sh_centroid_open (GstImagingFilter *filter, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  GstShCentroid *self = GST_SH_CENTROID (filter);
  const GstShCentroidSettings *s = gst_sh_centroid_now (self);
  ImkShcentroidConfig config = s->config;
  const ImkShcentroidLight none = {0};
  GstShCentroidKernel kernel = {.info = *info};
  ImkStatus status;

  kernel.type = type_of (info);
  config.type = kernel.type;
  config.width = info->width;
  config.height = info->height;
  config.n_threads = gst_imaging_filter_n_threads (filter);
  config.saturation = gst_sh_centroid_settings_saturation (s, kernel.type);
  gst_sh_centroid_settings_threshold (s, &none, &config);
  status = open_settings (self, backend, &config, &kernel, error);
  if (status != IMK_OK) {
    gst_sh_centroid_kernel_clear (&kernel);
    return status;
  }
  gst_sh_centroid_kernel_clear (&self->open);
  self->open = kernel;
  self->light = none;
  self->watch.n_looks = 0;
  self->watch.told_fit = FALSE;
  self->in_radians = s->slope_unit == GST_SH_CENTROID_SLOPE_RAD;
  /* what was captured through the tables and cells of another kernel means
   * something else */
  gst_sh_centroid_capture_restart (&self->capture);
  self->light_is_new = TRUE;
  tell_hints (self);
  return IMK_OK;
}

/* Returns: how often a frame is read. A search for the brightest samples takes
 * 3 to 12 times as long as one sum; other powers, from a table or a series,
 * take 5 to 25 times (docs/explanation/measurements.md). Both count as eight
 * passes. */
static guint64
passes_of (const ImkShcentroidConfig *c)
{
  const gboolean is_simple = c->power == 1 || c->power == 1.5 || c->power == 2;
  guint64 side = 2 * (guint64) c->search_range + 1, passes = 1;

  if (c->estimator == IMK_SHCENTROID_ESTIMATOR_CORRELATION)
    return side * side;
  if (c->weighting != IMK_SHCENTROID_WEIGHTING_NONE)
    passes = c->iterations;
  return c->brightest > 0 || !is_simple ? 8 * passes : passes;
}

/* To copy a frame into page-locked memory takes a core as long as to go through
 * it once. */
static gboolean
gst_sh_centroid_prefers_cuda (
    GstImagingFilter *filter, const GstVideoInfo *info)
{
  GstShCentroid *self = GST_SH_CENTROID (filter);
  GstShCentroidSettings *s = gst_imaging_settings_copy (self->settings);
  guint64 passes = passes_of (&s->config);
  guint64 samples = (guint64) info->width * info->height;

  gst_imaging_settings_free_copy (self->settings, s);
  return passes > 1 &&
         samples * passes /
                 imk_parallel_threads (gst_imaging_filter_n_threads (filter)) >=
             1 << 18;
}

static void
gst_sh_centroid_reset (GstImagingFilter *filter, gpointer stream)
{
  GstShCentroid *self = GST_SH_CENTROID (filter);

  imk_shcentroid_reset (self->open.kernel, stream, NULL);
  if (self->open.reference_kernel)
    imk_shcentroid_reset (self->open.reference_kernel, stream, NULL);
}

static GstImagingResult
describe (GstShCentroid *self, const ImkImage *frame)
{
  static const gchar *const index_names[] = {"cell", "row", "col"};
  gboolean all = self->open.fields == IMK_SHCENTROID_FIELDS_ALL;
  gboolean slopes = self->open.fields == IMK_SHCENTROID_FIELDS_SLOPES;
  const gchar *const *own = self->in_radians ? units_rad : units;

  if (self->open.config.estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS)
    own = units_pupils;
  return (GstImagingResult){
      .id = "shwfs-centroids-v1",
      .fields = names + (slopes ? IMK_SHCENTROID_DX : 0),
      .units = own + (slopes ? IMK_SHCENTROID_DX : 0),
      .n_fields = all ? IMK_SHCENTROID_N_FIELDS : 2,
      .n_rows = self->open.n_cells,
      .by_field = slopes,
      .index_names = index_names,
      .n_indices = G_N_ELEMENTS (index_names),
      .indices = self->open.indices,
      .ref_width = frame->width,
      .ref_height = frame->height,
      .frame = gst_imaging_filter_frame_number (GST_IMAGING_FILTER (self)),
      .more = self->open.more,
  };
}

/* The parameters that a kernel takes over between two frames. */
static ImkStatus
take_parameters (GstShCentroid *self, ImkError *error)
{
  const GstShCentroidSettings *s = gst_sh_centroid_now (self);
  ImkShcentroidConfig config = s->config;
  ImkStatus status = gst_sh_centroid_settings_scale (s, &config, error);

  gst_sh_centroid_settings_threshold (s, &self->light, &config);
  config.saturation = gst_sh_centroid_settings_saturation (s, self->open.type);
  if (self->open.provisional)
    return status; /* the kernel of the grid that is sought takes them */
  IMK_TRY (status);
  IMK_TRY (gst_sh_centroid_kernel_update (&self->open, &config, error));
  gst_structure_set (
      self->open.more, "slope-scale", G_TYPE_DOUBLE, config.slope_scale, NULL);
  self->in_radians = s->slope_unit == GST_SH_CENTROID_SLOPE_RAD;
  self->light_is_new = TRUE;
  tell_hints (self);
  return IMK_OK;
}

/* Does the estimator need cells, or weights, that the kernel was not made of?
 */
static gboolean
needs_new_kernel (GstShCentroid *self)
{
  const ImkShcentroidConfig *now = &gst_sh_centroid_now (self)->config;
  const ImkShcentroidConfig *open = &self->open.config;
  gboolean pupils = now->estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS;

  if (pupils != (open->estimator == IMK_SHCENTROID_ESTIMATOR_PUPILS))
    return TRUE;
  return now->estimator == IMK_SHCENTROID_ESTIMATOR_MATCHED &&
         (open->estimator != now->estimator || open->gain != now->gain ||
             open->read_noise != now->read_noise);
}

ImkStatus
gst_sh_centroid_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  GstShCentroid *self = GST_SH_CENTROID (element);
  const GstShCentroidSettings *old = before;

  if (old && old->threshold_mode != gst_sh_centroid_now (self)->threshold_mode)
    self->light = (ImkShcentroidLight){0};
  if (!self->open.kernel)
    return IMK_OK; /* opens with the next frame */
  return groups & GST_SH_CENTROID_SETTINGS_CELLS || needs_new_kernel (self)
             ? gst_imaging_filter_renew (GST_IMAGING_FILTER (self), error)
             : take_parameters (self, error);
}

/* --- frames -------------------------------------------------------------- */

static void
tell (GstShCentroid *self, gchar *text)
{
  if (text)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS, ("%s", text), (NULL));
  g_free (text);
}

/* That of the kernel in use. */
static ImkShcentroidConfig
config_of_light (GstShCentroid *self)
{
  const ImkShcentroidConfig *now = &gst_sh_centroid_now (self)->config;
  ImkShcentroidConfig config = self->open.config;

  gst_sh_centroid_settings_threshold (
      gst_sh_centroid_now (self), &self->light, &config);
  config.threshold_action = now->threshold_action;
  config.brightest = now->brightest;
  config.gain = now->gain;
  config.read_noise = now->read_noise;
  return config;
}

/* Returns: whether the cells are not where the lenslets are: what else is told
 * of light would be a consequence */
static gboolean
watch_fit (GstShCentroid *self, const ImkShcentroidConfig *config,
    const ImkImage *host, const ImkShcentroidLight *light)
{
  GstShCentroidWatch *w = &self->watch;
  ImkShcentroidFit fit;

  if (!gst_sh_centroid_watch_wants_fit (w, config, light) ||
      imk_shcentroid_check_fit (config, host, &fit, NULL) != IMK_OK)
    return FALSE;
  tell (self, gst_sh_centroid_watch_fit (w, config, &fit));
  self->tally.told_cut |= fit.is_off;
  return fit.is_off;
}

/* @host: the frame */
static void
watch_light (GstShCentroid *self, const ImkImage *host)
{
  GstShCentroidWatch *w = &self->watch;
  gint mode = gst_sh_centroid_now (self)->threshold_mode;
  ImkShcentroidConfig config = config_of_light (self);
  ImkShcentroidLight seen;

  if (gst_sh_centroid_watch_stays_dark (w, &config, host)) {
    gst_sh_centroid_watch_wait (w);
    return;
  }
  if (imk_shcentroid_look (&config, host, &seen, NULL) != IMK_OK)
    return;
  gst_sh_centroid_watch_note (w, &seen);
  if (watch_fit (self, &config, host, &seen))
    return;
  if (gst_sh_centroid_watch_is_dim (&seen)) {
    tell (self, gst_sh_centroid_watch_dim (w, &seen));
    return;
  }
  if (config.weighting != IMK_SHCENTROID_WEIGHTING_NONE) /* cuts light off */
    return;
  tell (self, gst_sh_centroid_watch_light (w, &config, mode, &seen));
  tell (self, gst_sh_centroid_watch_background (w, &config, mode, &seen));
  tell (self, gst_sh_centroid_watch_hot (w, &seen));
  tell (self, gst_sh_centroid_watch_pedestal (w, &config, &seen));
  self->tally.has_hot = seen.n_hot > 0;
  self->tally.radius = seen.n_lit ? seen.radius : 0;
  if (!w->told_light && seen.n_lit) /* which is the same, and worse */
    self->tally.dark = seen.least + DARK_PART * seen.height;
}

/* Looks at the first frames, and at the first after other settings. */
static ImkStatus
watch (GstShCentroid *self, const ImkImage *in, ImkError *error)
{
  const GstShCentroidSettings *s = gst_sh_centroid_now (self);
  GstShCentroidWatch *w = &self->watch;
  gboolean depth = gst_sh_centroid_watch_wants_depth (w, s, self->open.type);
  gboolean light = gst_sh_centroid_watch_wants_light (w, s, self->light_is_new);
  g_autofree gpointer copy = NULL;
  ImkImage host;

  self->light_is_new = FALSE;
  if (!depth && !light)
    return IMK_OK;
  IMK_TRY (gst_imaging_filter_peek (
      GST_IMAGING_FILTER (self), in, &host, &copy, error));
  if (depth) {
    gst_sh_centroid_watch_depth (w, &host);
    tell (self, gst_sh_centroid_watch_tell_depth (w, FALSE));
  }
  if (light)
    watch_light (self, &host);
  return IMK_OK;
}

/* Of threshold-mode=auto. */
static void
tell_threshold (GstShCentroid *self, const ImkShcentroidConfig *config)
{
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("shcentroid-threshold", "threshold", G_TYPE_DOUBLE,
              config->threshold, "threshold-least", G_TYPE_DOUBLE,
              config->threshold_least, "min-flux", G_TYPE_DOUBLE,
              config->min_flux, NULL)));
}

/* Before a frame is measured: the first with spots decides of
 * threshold-mode=auto. */
static ImkStatus
choose_threshold (GstShCentroid *self, const ImkImage *in, ImkError *error)
{
  const GstShCentroidSettings *s = gst_sh_centroid_now (self);
  ImkShcentroidConfig config;
  g_autofree gpointer copy = NULL;
  ImkImage host;
  ImkStatus status = IMK_OK;

  if (!gst_sh_centroid_settings_choose (s) || self->light.n_lit > 0 ||
      self->open.provisional || !gst_sh_centroid_watch_looks (&self->watch))
    return IMK_OK;
  IMK_TRY (gst_imaging_filter_peek (
      GST_IMAGING_FILTER (self), in, &host, &copy, error));
  config = config_of_light (self);
  if (!gst_sh_centroid_watch_stays_dark (&self->watch, &config, &host)) {
    status = imk_shcentroid_look (&config, &host, &self->light, error);
    self->watch.is_dark = status == IMK_OK && self->light.n_lit == 0;
  }
  if (status != IMK_OK || self->light.n_lit == 0)
    return status;
  status = take_parameters (self, error);
  if (status == IMK_OK) {
    config = config_of_light (self);
    tell_threshold (self, &config);
  }
  return status;
}

/* Nobody else reads slopes before the element behind this one has them. */
static gboolean
can_hand_over (GstShCentroid *self)
{
  gboolean has_results;

  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  has_results = GST_ELEMENT (self)->numsrcpads > 1;
  return self->stream && !has_results &&
         self->open.fields == IMK_SHCENTROID_FIELDS_SLOPES;
}

static ImkStatus
gst_sh_centroid_process (GstImagingFilter *filter, GstImagingFrame *in,
    GstImagingFrame *out, GstBuffer *buffer, gboolean *done, ImkError *error)
{
  GstShCentroid *self = GST_SH_CENTROID (filter);
  const ImkImage image = image_of (in, self->open.type);
  GstImagingResult result;
  ImkImage numbers[2], flags;
  gboolean hands_over;
  ImkStatus status;

  self->stream = image.location == IMK_LOCATION_HOST ? NULL : in->stream;
  hands_over = self->hands_over && can_hand_over (self);
  IMK_TRY (gst_sh_centroid_take_requests (self, &image, error));
  IMK_TRY (choose_threshold (self, &image, error));
  gst_imaging_table_hand_over (self->open.table, hands_over);
  IMK_TRY (gst_imaging_table_begin (self->open.table, in->stream,
      gst_imaging_filter_wants_values (filter), numbers, error));
  status = gst_imaging_table_begin_flags (
      self->open.table, self->open.n_cells, &flags, error);
  if (status == IMK_OK)
    status =
        imk_shcentroid_process_flags (self->open.kernel, &image, &numbers[0],
            numbers[1].data ? &numbers[1] : NULL, &flags, in->stream, error);
  if (status == IMK_OK && !hands_over)
    status = gst_imaging_filter_synchronize (filter, error);
  *done = status == IMK_OK && !hands_over;

  result = describe (self, &image);
  result.data = gst_imaging_table_end (self->open.table, &result.values);
  result.flags = gst_imaging_table_take_flags (self->open.table);
  result.values_buffer = gst_imaging_table_values (self->open.table);
  if (status == IMK_OK)
    status = watch (self, &image, error);
  if (status == IMK_OK)
    status = gst_sh_centroid_capture_frame (self, &image, in->stream, error);
  if (status == IMK_OK) {
    gst_buffer_replace (&self->open.untallied,
        self->open.fields == IMK_SHCENTROID_FIELDS_ALL ? result.data
                                                       : result.flags);
    gst_imaging_filter_publish (filter, buffer, &result);
  }
  gst_buffer_unref (result.data);
  gst_clear_buffer (&result.flags);
  return status;
}

/* The numbers lie in the caches of the other cores, so that reading them takes
 * a third of the time of the kernel; readers of the results need not wait. */
static void
gst_sh_centroid_finish (GstImagingFilter *filter)
{
  GstShCentroid *self = GST_SH_CENTROID (filter);

  self->hands_over =
      can_hand_over (self) &&
      gst_sh_centroid_handover_ask (GST_BASE_TRANSFORM_SRC_PAD (self),
          gst_imaging_filter_open_context (filter), self->stream);
  if (!self->open.untallied)
    return;
  tell (self, gst_sh_centroid_tally_add (&self->tally, &self->open,
                  gst_sh_centroid_now (self)->config.window ==
                      IMK_SHCENTROID_WINDOW_CELL,
                  self->open.untallied));
  gst_clear_buffer (&self->open.untallied);
}

static void
tell_tally (GstShCentroid *self)
{
  GstStructure *summary = gst_sh_centroid_tally_describe (&self->tally);

  if (summary)
    gst_element_post_message (GST_ELEMENT (self),
        gst_message_new_element (GST_OBJECT (self), summary));
}

/* Who waits for a capture hears before EOS that it will not come. */
static gboolean
gst_sh_centroid_sink_event (GstBaseTransform *trans, GstEvent *event)
{
  GstShCentroid *self = GST_SH_CENTROID (trans);

  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS) {
    gst_sh_centroid_drop_capture (self);
    if (gst_sh_centroid_now (self)->bit_depth == 0)
      tell (self, gst_sh_centroid_watch_tell_depth (&self->watch, TRUE));
    tell_tally (self);
  }
  return GST_BASE_TRANSFORM_CLASS (gst_sh_centroid_parent_class)
      ->sink_event (trans, event);
}

/* --- GObject ------------------------------------------------------------- */

static GstStateChangeReturn
gst_sh_centroid_change_state (GstElement *element, GstStateChange transition)
{
  GstStateChangeReturn result = GST_ELEMENT_CLASS (gst_sh_centroid_parent_class)
                                    ->change_state (element, transition);

  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    gst_sh_centroid_drop_capture (GST_SH_CENTROID (element));
    GST_SH_CENTROID (element)->stream = NULL;
    GST_SH_CENTROID (element)->hands_over = FALSE;
    GST_SH_CENTROID (element)->hinted = 0;
    GST_SH_CENTROID (element)->watch = (GstShCentroidWatch){0};
    GST_SH_CENTROID (element)->tally = (GstShCentroidTally){0};
  }
  return result;
}

static void
gst_sh_centroid_finalize (GObject *object)
{
  GstShCentroid *self = GST_SH_CENTROID (object);

  g_free (self->find_location);
  gst_sh_centroid_capture_clear (&self->request);
  G_OBJECT_CLASS (gst_sh_centroid_parent_class)->finalize (object);
}

static void
gst_sh_centroid_class_init (GstShCentroidClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstImagingFilterClass *filter_class = GST_IMAGING_FILTER_CLASS (klass);

  object_class->finalize = gst_sh_centroid_finalize;
  gst_imaging_settings_install (object_class, &gst_sh_centroid_settings_table);
  gst_sh_centroid_add_requests (klass);
  element_class->change_state = gst_sh_centroid_change_state;
  GST_BASE_TRANSFORM_CLASS (klass)->sink_event = gst_sh_centroid_sink_event;

  gst_element_class_set_static_metadata (element_class,
      "Shack-Hartmann centroids", "Filter/Analyzer/Video",
      "Measures the spots of a Shack-Hartmann wavefront sensor",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_imaging_filter_class_add_results_pad (filter_class, TRUE);

  filter_class->measures = TRUE;
  filter_class->device_reach = GST_IMAGING_REACH_DEVICE_OR_MAPPED;
  filter_class->open = gst_sh_centroid_open;
  filter_class->close = gst_sh_centroid_close;
  filter_class->process = gst_sh_centroid_process;
  filter_class->finish = gst_sh_centroid_finish;
  filter_class->reset = gst_sh_centroid_reset;
  filter_class->prefers_cuda = gst_sh_centroid_prefers_cuda;
  filter_class->carrier = gst_sh_centroid_carrier;
}

static void
gst_sh_centroid_init (GstShCentroid *self)
{
  self->settings = gst_imaging_filter_use_settings (
      GST_IMAGING_FILTER (self), &gst_sh_centroid_settings_table);
}
