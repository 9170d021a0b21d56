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
#include "gstshcentroid.h"

#include <math.h>

#include "gstimagingenum.h"
#include "gstimagingtable.h"
#include "gstshcentroidcost.h"
#include "gstshcentroidfiles.h"
#include "gstshcentroidgeometry.h"
#include "gstshcentroidhints.h"
#include "gstshcentroidkernel.h"
#include "gstshcentroidpixels.h"
#include "gstshcentroidtemplate.h"

#include "core/parallel.h"

GST_DEBUG_CATEGORY_STATIC (shcentroid_debug);
#define GST_CAT_DEFAULT shcentroid_debug

#define DEFAULT_PROP_ORIGIN 0.0
#define DEFAULT_PROP_PITCH 0.0
#define DEFAULT_PROP_COUNT 0
#define DEFAULT_PROP_BIT_DEPTH 0
#define DEFAULT_PROP_SATURATION 0.0
#define DEFAULT_PROP_THRESHOLD 0.0
#define DEFAULT_PROP_THRESHOLD_MODE IMK_SHCENTROID_THRESHOLD_NONE
#define DEFAULT_PROP_THRESHOLD_ACTION IMK_SHCENTROID_ACTION_SUBTRACT
#define DEFAULT_PROP_MIN_FLUX 0.0
#define DEFAULT_PROP_INVALID_POLICY IMK_SHCENTROID_INVALID_ZERO
#define DEFAULT_PROP_GAIN 1.0
#define DEFAULT_PROP_READ_NOISE 0.0
#define DEFAULT_PROP_FIELDS IMK_SHCENTROID_FIELDS_ALL

/* Where a double property has no natural end: beyond every frame. */
#define FAR 1e6

enum {
  PROP_0,
  PROP_X0,
  PROP_Y0,
  PROP_PITCH_X,
  PROP_PITCH_Y,
  PROP_COLUMNS,
  PROP_ROWS,
  PROP_MAP_LOCATION,
  PROP_REFERENCE_LOCATION,
  PROP_FIELDS,
  PROP_FIRST_OF_FRAME, /* those above are the geometry */
  PROP_BIT_DEPTH = PROP_FIRST_OF_FRAME,
  PROP_SATURATION,
  PROP_THRESHOLD,
  PROP_THRESHOLD_MODE,
  PROP_THRESHOLD_ACTION,
  PROP_MIN_FLUX,
  PROP_INVALID_POLICY,
  PROP_GAIN,
  PROP_READ_NOISE,
  PROP_FIRST_OF_GEOMETRY = 1000, /* numbered in gstshcentroidgeometry.h */
};

/* The properties as they were at one moment. */
typedef struct {
  ImkShcentroidConfig config; /* without frame, map, tables, saturation */
  gchar *map_location;
  GstShCentroidCalibration calibration;
  guint bit_depth;
  gdouble saturation;
  guint serial;   /* counts changes */
  guint geometry; /* counts those of what needs a new kernel */
  GstShCentroidGeometry more_geometry; /* optics, find-grid */
} Settings;

struct _GstShCentroid {
  GstImagingFilter parent;

  /* under the object lock */
  Settings settings;
  GstShCentroidCapture requests[GST_SH_CENTROID_N_CAPTURES];

  /* of the streaming thread */
  GstShCentroidCapture captures[GST_SH_CENTROID_N_CAPTURES];
  GstShCentroidKernel open;
  gboolean in_radians;
  guint followed; /* the serial of the settings that were looked at last */
  guint hinted;   /* bits of gst_sh_centroid_hint () that were told */
};

enum {
  SIGNAL_CAPTURE_DARK,
  SIGNAL_CAPTURE_FLAT,
  SIGNAL_CAPTURE_REFERENCE,
  SIGNAL_CAPTURE_TEMPLATE,
  N_SIGNALS,
};

static guint signals[N_SIGNALS];

/* Of NV12, what Jetson's cameras give, the luma is measured. */
#define SH_CENTROID_CAPS \
  GST_VIDEO_CAPS_MAKE_WITH_FEATURES ("memory:NVMM", "{ GRAY8, NV12 }") \
  ";" GST_VIDEO_CAPS_MAKE ("{ GRAY8, GRAY16_LE }")

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (SH_CENTROID_CAPS));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (SH_CENTROID_CAPS));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstShCentroid, gst_sh_centroid,
    GST_TYPE_IMAGING_FILTER,
    GST_DEBUG_CATEGORY_INIT (
        shcentroid_debug, "shcentroid", 0, "Shack-Hartmann centroids"))
GST_ELEMENT_REGISTER_DEFINE (
    shcentroid, "shcentroid", GST_RANK_NONE, GST_TYPE_SH_CENTROID)

/* --- enumerations -------------------------------------------------------- */

static const GEnumValue threshold_mode_values[] = {
    {IMK_SHCENTROID_THRESHOLD_NONE, "Every sample counts", "none"},
    {IMK_SHCENTROID_THRESHOLD_ABSOLUTE, "T = threshold, in counts", "absolute"},
    {IMK_SHCENTROID_THRESHOLD_RELATIVE,
        "T = threshold * the largest value of the cell", "relative"},
    {IMK_SHCENTROID_THRESHOLD_RANGE,
        "T = smallest + threshold * (largest - smallest value of the cell)",
        "range"},
    {IMK_SHCENTROID_THRESHOLD_NOISE, "T = threshold * read-noise", "noise"},
    {0, NULL, NULL},
};

static const GEnumValue threshold_action_values[] = {
    {IMK_SHCENTROID_ACTION_SUBTRACT, "max (v - T, 0)", "subtract"},
    {IMK_SHCENTROID_ACTION_KEEP, "v where v >= T, else 0", "keep"},
    {0, NULL, NULL},
};

static const GEnumValue invalid_policy_values[] = {
    {IMK_SHCENTROID_INVALID_ZERO, "x, y are the reference, dx, dy are 0",
        "zero"},
    {IMK_SHCENTROID_INVALID_HOLD, "The last valid values", "hold"},
    {IMK_SHCENTROID_INVALID_NAN, "Not a number", "nan"},
    {IMK_SHCENTROID_INVALID_REFERENCE,
        "As zero, and the cell takes part in means over valid cells",
        "reference"},
    {0, NULL, NULL},
};

static const GEnumValue fields_values[] = {
    {IMK_SHCENTROID_FIELDS_ALL,
        "x, y, dx, dy, flux, flux_raw, max, var_x, var_y, flags of each cell",
        "all"},
    {IMK_SHCENTROID_FIELDS_XY, "x, y of each cell", "xy"},
    {IMK_SHCENTROID_FIELDS_SLOPES,
        "dx of all cells, then dy of all cells: the vector of a reconstructor",
        "slopes"},
    {0, NULL, NULL},
};

static const gchar *const names[IMK_SHCENTROID_N_FIELDS] = {
    "x", "y", "dx", "dy", "flux", "flux_raw", "max", "var_x", "var_y", "flags"};
static const gchar *const units[IMK_SHCENTROID_N_FIELDS] = {"px", "px", "px",
    "px", "counts", "counts", "counts", "px^2", "px^2", "flags"};
static const gchar *const units_rad[IMK_SHCENTROID_N_FIELDS] = {"px", "px",
    "rad", "rad", "counts", "counts", "counts", "px^2", "px^2", "flags"};

/* --- the kernel ---------------------------------------------------------- */

static void
settings_clear (Settings *settings)
{
  g_clear_pointer (&settings->map_location, g_free);
  gst_sh_centroid_calibration_clear (&settings->calibration);
  gst_sh_centroid_geometry_clear (&settings->more_geometry);
}

/* 0 counts stands for the largest sample of the format, -1 for never. */
static gdouble
saturation_of (const Settings *settings, ImkType type)
{
  guint bits = settings->bit_depth   ? settings->bit_depth
               : type == IMK_TYPE_U8 ? 8
                                     : 16;

  return settings->saturation > 0   ? settings->saturation
         : settings->saturation < 0 ? 0
                                    : (1u << bits) - 1;
}

static Settings
get_settings (GstShCentroid *self)
{
  Settings s;

  GST_OBJECT_LOCK (self);
  s = self->settings;
  s.map_location = g_strdup (s.map_location);
  s.calibration = gst_sh_centroid_calibration_copy (&s.calibration);
  s.more_geometry.find_location = NULL;
  s.more_geometry.pending = g_strdup (s.more_geometry.pending);
  GST_OBJECT_UNLOCK (self);
  return s;
}

static void
gst_sh_centroid_close (GstImagingFilter *filter)
{
  gst_sh_centroid_kernel_clear (&GST_SH_CENTROID (filter)->open);
}

static ImkStatus
load_geometry (const Settings *s, ImkShcentroidConfig *config,
    ImkShcentroidCell **cells, ImkError *error)
{
  if (s->map_location) {
    *cells =
        gst_sh_centroid_load_map (s->map_location, &config->n_cells, error);
    config->cells = *cells;
    if (!*cells)
      return IMK_ERROR_FILE;
  }
  return gst_sh_centroid_geometry_apply (&s->more_geometry, config, error);
}

static gboolean
has_grid (const Settings *s)
{
  return s->map_location || s->more_geometry.optics.aperture_mm > 0 ||
         (s->config.columns && s->config.rows);
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
tell_hints (GstShCentroid *self, const Settings *s)
{
  const GstShCentroidHintInput input = {
      .config = &s->config,
      .has_map = s->map_location != NULL,
      .has_optics = s->more_geometry.optics.aperture_mm > 0,
      .bit_depth = s->bit_depth,
      .saturation = s->saturation,
      .type = self->open.type,
  };

  for (guint i = 0; i < GST_SH_CENTROID_N_HINTS; i++) {
    const gchar *text = gst_sh_centroid_hint (i, &input);

    if (!text || self->hinted & 1u << i)
      continue;
    self->hinted |= 1u << i;
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS, ("%s", text), (NULL));
  }
}

static ImkStatus
open_settings (GstShCentroid *self, Settings *s, ImkBackend backend,
    GstShCentroidKernel *kernel, ImkError *error)
{
  ImkShcentroidCell *cells = NULL;
  ImkStatus status = IMK_OK;

  kernel->provisional = !has_grid (s) && s->more_geometry.pending;
  if (kernel->provisional) {
    take_whole_frame (&s->config);
  } else {
    status = load_geometry (s, &s->config, &cells, error);
    if (status == IMK_OK)
      status = gst_sh_centroid_tables_load (
          &kernel->tables, &s->calibration, &s->config, error);
    if (status == IMK_OK)
      status = gst_sh_centroid_template_load (
          &kernel->tables, &s->calibration, &s->config, error);
  }
  if (status == IMK_OK)
    status = gst_sh_centroid_kernel_open (kernel, GST_IMAGING_FILTER (self),
        backend, &s->config,
        self->captures[GST_SH_CENTROID_REFERENCE].n_wanted > 0, error);
  g_free (cells);
  return status;
}

/* What was open stays until there is something new. */
static ImkStatus
gst_sh_centroid_open (GstImagingFilter *filter, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  GstShCentroid *self = GST_SH_CENTROID (filter);
  Settings s = get_settings (self);
  GstShCentroidKernel kernel = {.info = *info, .geometry = s.geometry};
  ImkStatus status;

  kernel.type = GST_VIDEO_INFO_FORMAT (info) == GST_VIDEO_FORMAT_GRAY16_LE
                    ? IMK_TYPE_U16
                    : IMK_TYPE_U8;
  s.config.type = kernel.type;
  s.config.width = info->width;
  s.config.height = info->height;
  s.config.n_threads = gst_imaging_filter_n_threads (filter);
  s.config.saturation = saturation_of (&s, kernel.type);
  status = open_settings (self, &s, backend, &kernel, error);
  if (status == IMK_OK) {
    gst_sh_centroid_kernel_clear (&self->open);
    self->open = kernel;
    self->in_radians = s.more_geometry.slope_unit == GST_SH_CENTROID_SLOPE_RAD;
    self->followed = s.serial;
    tell_hints (self, &s);
  } else {
    gst_sh_centroid_kernel_clear (&kernel);
  }
  settings_clear (&s);
  return status;
}

static gboolean
is_calibrated (const GstShCentroidCalibration *c)
{
  for (guint i = 0; i < GST_SH_CENTROID_N_CALIBRATIONS; i++)
    if (i != GST_SH_CENTROID_REFERENCE && (c->location[i] || c->captured[i]))
      return TRUE;
  return FALSE;
}

/* A tie goes to the CPU, which needs no copy of frames that are in ordinary
 * memory; that is why twice. */
static gboolean
gst_sh_centroid_prefers_cuda (
    GstImagingFilter *filter, const GstVideoInfo *info)
{
  Settings s = get_settings (GST_SH_CENTROID (filter));
  gdouble threads =
      imk_parallel_threads (gst_imaging_filter_n_threads (filter));
  gdouble samples = (gdouble) info->width * info->height, cpu_us, cuda_us;
  GstShCentroidTables tables = {0};
  ImkShcentroidCell *cells = NULL;
  guint n_cells = 0;

  if (load_geometry (&s, &s.config, &cells, NULL) == IMK_OK)
    n_cells = imk_shcentroid_n_cells (&s.config);
  if (s.config.estimator == IMK_SHCENTROID_ESTIMATOR_CORRELATION)
    gst_sh_centroid_template_load (&tables, &s.calibration, &s.config, NULL);
  cpu_us = gst_sh_centroid_cpu_us (
      &s.config, samples, n_cells, is_calibrated (&s.calibration));
  cuda_us = gst_sh_centroid_cuda_us (&s.config, samples, n_cells, info->size);
  gst_sh_centroid_tables_clear (&tables);
  g_free (cells);
  settings_clear (&s);
  return cpu_us / threads > 2 * cuda_us;
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

  return (GstImagingResult){
      .id = "shwfs-centroids-v1",
      .fields = names + (slopes ? IMK_SHCENTROID_DX : 0),
      .units = (self->in_radians ? units_rad : units) +
               (slopes ? IMK_SHCENTROID_DX : 0),
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
take_parameters (GstShCentroid *self, const Settings *s, ImkError *error)
{
  ImkShcentroidConfig config = s->config;
  ImkStatus status =
      gst_sh_centroid_geometry_scale (&s->more_geometry, &config, error);

  config.saturation = saturation_of (s, self->open.type);
  if (status == IMK_OK)
    status = imk_shcentroid_update (self->open.kernel, &config, error);
  if (status != IMK_OK)
    return status;
  gst_structure_set (
      self->open.more, "slope-scale", G_TYPE_DOUBLE, config.slope_scale, NULL);
  self->in_radians = s->more_geometry.slope_unit == GST_SH_CENTROID_SLOPE_RAD;
  return IMK_OK;
}

/* Settings that do not go together are, as a rule, on their way to others that
 * do: columns before the pitch. The frames in between are measured as those
 * before. */
static ImkStatus
keep_settings (GstShCentroid *self, const Settings *s, ImkStatus status,
    const ImkError *error)
{
  ImkError ignored; /* that of the geometry is told */

  if (self->open.provisional ||
      (status != IMK_ERROR_CONFIG && status != IMK_ERROR_FILE))
    return status;
  GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
      ("%s The settings before stay in force until these fit.", error->message),
      (NULL));
  if (self->open.geometry != s->geometry)
    take_parameters (self, s, &ignored);
  return IMK_OK;
}

/* A new kernel when the geometry changed. */
static ImkStatus
follow_settings (GstShCentroid *self, ImkError *error)
{
  Settings s = get_settings (self);
  gboolean same = !self->open.provisional && self->open.geometry == s.geometry;
  ImkStatus status = IMK_OK;

  if (!same)
    status = gst_imaging_filter_renew (GST_IMAGING_FILTER (self), error);
  if (status == IMK_OK && (!same || self->followed != s.serial)) {
    status = take_parameters (self, &s, error);
    tell_hints (self, &s);
  }
  if (status != IMK_OK)
    status = keep_settings (self, &s, status, error);
  self->followed = s.serial;
  self->open.geometry = s.geometry;
  settings_clear (&s);
  return status;
}

/* --- find-grid ----------------------------------------------------------- */

static void
gst_sh_centroid_ask_for_grid (GstShCentroid *self, const gchar *location)
{
  GST_OBJECT_LOCK (self);
  g_free (self->settings.more_geometry.pending);
  self->settings.more_geometry.pending = g_strdup (location);
  GST_OBJECT_UNLOCK (self);
}

/* The map that was written is the geometry from this frame on. */
static void
take_map (GstShCentroid *self, const gchar *location, GstStructure *report)
{
  GST_OBJECT_LOCK (self);
  g_free (self->settings.map_location);
  self->settings.map_location = g_strdup (location);
  self->settings.geometry++;
  GST_OBJECT_UNLOCK (self);
  g_object_notify (G_OBJECT (self), "map-location");
  GST_INFO_OBJECT (self, "found %" GST_PTR_FORMAT, report);
  gst_element_post_message (
      GST_ELEMENT (self), gst_message_new_element (GST_OBJECT (self), report));
}

/* Looks for the grid when it is asked for. Without one in the frame the old
 * grid stays, with a warning; when there is no old one it is an error. */
static ImkStatus
find_grid (GstShCentroid *self, GstBuffer *buffer, ImkError *error)
{
  ImkError why = {.code = IMK_OK};
  GstStructure *report;
  ImkShcentroidLattice lattice;
  gboolean had_grid;
  gchar *location;

  GST_OBJECT_LOCK (self);
  location = g_steal_pointer (&self->settings.more_geometry.pending);
  lattice = self->settings.more_geometry.lattice;
  had_grid = has_grid (&self->settings);
  GST_OBJECT_UNLOCK (self);
  if (!location)
    return IMK_OK;
  report = gst_sh_centroid_find_grid (
      buffer, &self->open.info, lattice, location, &why);
  if (report)
    take_map (self, location, report);
  else if (had_grid)
    GST_ELEMENT_WARNING (self, STREAM, FAILED, ("%s", why.message),
        ("find-grid to %s; the grid stays as it was", location));
  g_free (location);
  return report || had_grid
             ? IMK_OK
             : imk_error_set (error, why.code, "%s", why.message);
}

/* --- captures ------------------------------------------------------------ */

/* Takes over what was asked for since the last frame. */
static void
take_requests (GstShCentroid *self)
{
  GST_OBJECT_LOCK (self);
  for (guint i = 0; i < GST_SH_CENTROID_N_CAPTURES; i++)
    if (self->requests[i].n_wanted > 0) {
      gst_sh_centroid_capture_clear (&self->captures[i]);
      self->captures[i] = self->requests[i];
      self->requests[i] = (GstShCentroidCapture){0};
      if (i == GST_SH_CENTROID_REFERENCE) /* needs its kernel */
        self->settings.geometry++;
    }
  GST_OBJECT_UNLOCK (self);
}

/* Adds the samples of @buffer, wherever they are. */
static ImkStatus
capture_samples (GstShCentroid *self, GstBuffer *buffer,
    GstShCentroidCalibrationKind kind, ImkError *error)
{
  const gfloat *dark =
      kind == GST_SH_CENTROID_DARK ? NULL : self->open.tables.dark;
  GstVideoFrame frame;
  ImkImage image;

  if (!gst_video_frame_map (&frame, &self->open.info, buffer, GST_MAP_READ))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The frame cannot be read, which capture-%s needs.",
        gst_sh_centroid_calibration_name (kind));
  image = (ImkImage){
      .data = GST_VIDEO_FRAME_PLANE_DATA (&frame, 0),
      .stride = GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0),
      .width = self->open.info.width,
      .height = self->open.info.height,
      .channels = 1,
      .type = self->open.type,
  };
  gst_sh_centroid_capture_add_frame (
      &self->captures[kind], &image, self->open.tables.lut, dark);
  gst_video_frame_unmap (&frame);
  return IMK_OK;
}

static ImkStatus
capture_centroids (GstShCentroid *self, GstImagingFrame *in, ImkError *error)
{
  const gdouble *values = NULL;
  ImkImage numbers;
  ImkStatus status = gst_imaging_table_begin (
      self->open.reference_table, in->stream, TRUE, &numbers, error);

  if (status != IMK_OK)
    return status;
  status = imk_shcentroid_process (
      self->open.reference_kernel, &in->planes[0], &numbers, in->stream, error);
  if (status == IMK_OK)
    status = gst_imaging_filter_synchronize (GST_IMAGING_FILTER (self), error);
  gst_buffer_unref (
      gst_imaging_table_end (self->open.reference_table, &values));
  if (status == IMK_OK)
    gst_sh_centroid_capture_add_centroids (
        &self->captures[GST_SH_CENTROID_REFERENCE], values, 2,
        self->open.n_cells);
  return status;
}

/* Returns: (transfer full) (nullable): the templates, cut out with the cells as
 * they are set now */
static GBytes *
finish_template (GstShCentroid *self, guint64 dims[3], ImkError *error)
{
  Settings s = get_settings (self);
  ImkShcentroidCell *cells = NULL;
  GBytes *data = NULL;

  s.config.width = self->open.info.width;
  s.config.height = self->open.info.height;
  if (load_geometry (&s, &s.config, &cells, error) == IMK_OK)
    data = gst_sh_centroid_template_finish (
        &self->captures[GST_SH_CENTROID_TEMPLATE], &self->open.tables,
        &s.config, dims, error);
  g_free (cells);
  settings_clear (&s);
  return data;
}

/* Returns: whether it was saved where the capture was asked to */
static gboolean
save_capture (GstShCentroid *self, GstShCentroidCalibrationKind kind,
    GBytes *data, const guint64 dims[3])
{
  GstShCentroidCapture *capture = &self->captures[kind];
  GError *why = NULL;
  gboolean saved = FALSE;

  if (capture->location && kind == GST_SH_CENTROID_TEMPLATE)
    saved = gst_sh_centroid_template_save (capture->location, data, dims, &why);
  else if (capture->location)
    saved = gst_sh_centroid_capture_save (capture, kind, data, &why);
  if (why)
    GST_ELEMENT_WARNING (self, RESOURCE, WRITE,
        ("The captured %s is used, but was not saved: %s",
            gst_sh_centroid_calibration_name (kind), why->message),
        (NULL));
  g_clear_error (&why);
  return saved;
}

/* The calibration is in force from the next frame on. */
static void
take_capture (GstShCentroid *self, GstShCentroidCalibrationKind kind,
    GBytes *data, const guint64 dims[3])
{
  GstShCentroidCapture *capture = &self->captures[kind];
  const gchar *name = gst_sh_centroid_calibration_name (kind);
  g_autofree gchar *property = g_strconcat (name, "-location", NULL);
  gboolean saved = save_capture (self, kind, data, dims);
  GstShCentroidCalibration *calibration = &self->settings.calibration;

  GST_OBJECT_LOCK (self);
  gst_sh_centroid_calibration_take (
      calibration, kind, data, saved ? capture->location : NULL);
  if (kind == GST_SH_CENTROID_TEMPLATE)
    for (guint i = 0; i < 3; i++)
      calibration->template_dims[i] = dims[i];
  self->settings.geometry++;
  GST_OBJECT_UNLOCK (self);
  g_object_notify (G_OBJECT (self), property);
  gst_element_post_message (GST_ELEMENT (self),
      gst_message_new_element (GST_OBJECT (self),
          gst_structure_new ("shcentroid-captured", "kind", G_TYPE_STRING, name,
              "frames", G_TYPE_UINT, capture->n_frames, "location",
              G_TYPE_STRING, saved ? capture->location : NULL, NULL)));
}

static void
finish_capture (GstShCentroid *self, GstShCentroidCalibrationKind kind)
{
  GstShCentroidCapture *capture = &self->captures[kind];
  guint64 dims[3] = {0, 0, 0};
  ImkError why = {.code = IMK_OK};
  GBytes *data;

  if (kind == GST_SH_CENTROID_TEMPLATE)
    data = finish_template (self, dims, &why);
  else
    data =
        gst_sh_centroid_capture_finish (capture, kind, self->open.references);
  if (data)
    take_capture (self, kind, data, dims);
  else
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("capture-template took its frames, but there is no template: %s",
            why.message),
        (NULL));
  gst_sh_centroid_capture_clear (capture);
}

/* A frame that has been measured. */
static ImkStatus
capture_frame (GstShCentroid *self, GstImagingFrame *in, GstBuffer *buffer,
    ImkError *error)
{
  for (guint i = 0; i < GST_SH_CENTROID_N_CAPTURES; i++) {
    ImkStatus status;

    if (self->captures[i].n_wanted == 0)
      continue;
    /* while settings do not fit, there is no kernel for it */
    if (i == GST_SH_CENTROID_REFERENCE && !self->open.reference_kernel)
      continue;
    status = i == GST_SH_CENTROID_REFERENCE
                 ? capture_centroids (self, in, error)
                 : capture_samples (self, buffer, i, error);
    if (status != IMK_OK)
      return status;
    if (gst_sh_centroid_capture_is_complete (&self->captures[i]))
      finish_capture (self, i);
  }
  return IMK_OK;
}

/* Only when the streaming thread has stopped. */
static void
drop_captures (GstShCentroid *self)
{
  for (guint i = 0; i < GST_SH_CENTROID_N_CAPTURES; i++) {
    GstShCentroidCapture *capture = &self->captures[i];

    if (capture->n_wanted > 0)
      GST_ELEMENT_WARNING (self, STREAM, FAILED,
          ("capture-%s came to %u of %u frames; the calibration is as before.",
              gst_sh_centroid_calibration_name (i), capture->n_frames,
              capture->n_wanted),
          (NULL));
    gst_sh_centroid_capture_clear (capture);
  }
}

static gboolean
request_capture (GstShCentroid *self, GstShCentroidCalibrationKind kind,
    guint n_frames, const gchar *location)
{
  if (n_frames == 0) {
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("capture-%s was asked for 0 frames; it needs at least 1.",
            gst_sh_centroid_calibration_name (kind)),
        (NULL));
    return FALSE;
  }
  GST_OBJECT_LOCK (self);
  gst_sh_centroid_capture_begin (&self->requests[kind], n_frames, location);
  GST_OBJECT_UNLOCK (self);
  return TRUE;
}

static gboolean
capture_dark (GstShCentroid *self, guint n_frames, const gchar *location)
{
  return request_capture (self, GST_SH_CENTROID_DARK, n_frames, location);
}

static gboolean
capture_flat (GstShCentroid *self, guint n_frames, const gchar *location)
{
  return request_capture (self, GST_SH_CENTROID_FLAT, n_frames, location);
}

static gboolean
capture_reference (GstShCentroid *self, guint n_frames, const gchar *location)
{
  return request_capture (self, GST_SH_CENTROID_REFERENCE, n_frames, location);
}

static gboolean
capture_template (GstShCentroid *self, guint n_frames, const gchar *location)
{
  return request_capture (self, GST_SH_CENTROID_TEMPLATE, n_frames, location);
}

/* --- frames -------------------------------------------------------------- */

static ImkStatus
gst_sh_centroid_process (GstImagingFilter *filter, GstImagingFrame *in,
    GstImagingFrame *out, GstBuffer *buffer, gboolean *done, ImkError *error)
{
  GstShCentroid *self = GST_SH_CENTROID (filter);
  GstImagingResult result;
  ImkImage numbers;
  ImkStatus status;

  take_requests (self);
  status = find_grid (self, buffer, error);
  if (status == IMK_OK)
    status = follow_settings (self, error);
  if (status == IMK_OK)
    status = gst_imaging_table_begin (self->open.table, in->stream,
        gst_imaging_filter_wants_values (filter), &numbers, error);
  if (status != IMK_OK)
    return status;
  status = imk_shcentroid_process (
      self->open.kernel, &in->planes[0], &numbers, in->stream, error);
  if (status == IMK_OK)
    status = gst_imaging_filter_synchronize (filter, error);
  *done = status == IMK_OK;

  result = describe (self, &in->planes[0]);
  result.data = gst_imaging_table_end (self->open.table, &result.values);
  if (status == IMK_OK)
    status = capture_frame (self, in, buffer, error);
  if (status == IMK_OK)
    gst_imaging_filter_publish (filter, buffer, &result);
  gst_buffer_unref (result.data);
  return status;
}

/* --- GObject ------------------------------------------------------------- */

/* Empty is none: gst-launch cannot write NULL. */
static void
take_location (gchar **location, const GValue *value)
{
  const gchar *text = g_value_get_string (value);

  g_free (*location);
  *location = text && *text ? g_strdup (text) : NULL;
}

static void
set_geometry (Settings *s, guint id, const GValue *value)
{
  switch (id) {
  case PROP_X0:
    s->config.x0 = g_value_get_double (value);
    break;
  case PROP_Y0:
    s->config.y0 = g_value_get_double (value);
    break;
  case PROP_PITCH_X:
    s->config.pitch_x = g_value_get_double (value);
    break;
  case PROP_PITCH_Y:
    s->config.pitch_y = g_value_get_double (value);
    break;
  case PROP_COLUMNS:
    s->config.columns = g_value_get_uint (value);
    break;
  case PROP_ROWS:
    s->config.rows = g_value_get_uint (value);
    break;
  case PROP_MAP_LOCATION:
    take_location (&s->map_location, value);
    break;
  case PROP_REFERENCE_LOCATION:
    gst_sh_centroid_calibration_locate (
        &s->calibration, GST_SH_CENTROID_REFERENCE, g_value_get_string (value));
    break;
  case PROP_FIELDS:
    s->config.fields = g_value_get_enum (value);
    break;
  }
  s->geometry++;
}

static void
set_more_geometry (Settings *s, guint id, const GValue *value)
{
  gst_sh_centroid_geometry_set (&s->more_geometry, id, value);
  s->geometry += id <= GST_SH_CENTROID_PIXEL_SIZE;
}

static void
gst_sh_centroid_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  Settings *s = &GST_SH_CENTROID (object)->settings;
  gboolean is_geometry;

  GST_OBJECT_LOCK (object);
  s->serial++;
  switch (id) {
  case PROP_BIT_DEPTH:
    s->bit_depth = g_value_get_uint (value);
    break;
  case PROP_SATURATION:
    s->saturation = g_value_get_double (value);
    break;
  case PROP_THRESHOLD:
    s->config.threshold = g_value_get_double (value);
    break;
  case PROP_THRESHOLD_MODE:
    s->config.threshold_mode = g_value_get_enum (value);
    break;
  case PROP_THRESHOLD_ACTION:
    s->config.threshold_action = g_value_get_enum (value);
    break;
  case PROP_MIN_FLUX:
    s->config.min_flux = g_value_get_double (value);
    break;
  case PROP_INVALID_POLICY:
    s->config.invalid_policy = g_value_get_enum (value);
    break;
  case PROP_GAIN:
    s->config.gain = g_value_get_double (value);
    break;
  case PROP_READ_NOISE:
    s->config.read_noise = g_value_get_double (value);
    break;
  default:
    if (id >= PROP_FIRST_OF_GEOMETRY)
      set_more_geometry (s, id - PROP_FIRST_OF_GEOMETRY, value);
    else if (gst_sh_centroid_pixels_set (
                 &s->config, &s->calibration, id, value, &is_geometry) ||
             gst_sh_centroid_template_set (
                 &s->config, &s->calibration, id, value, &is_geometry))
      s->geometry += is_geometry;
    else if (id < PROP_FIRST_OF_FRAME)
      set_geometry (s, id, value);
    else
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
  GST_OBJECT_UNLOCK (object);
}

static void
gst_sh_centroid_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  const Settings *s = &GST_SH_CENTROID (object)->settings;

  GST_OBJECT_LOCK (object);
  switch (id) {
  case PROP_X0:
    g_value_set_double (value, s->config.x0);
    break;
  case PROP_Y0:
    g_value_set_double (value, s->config.y0);
    break;
  case PROP_PITCH_X:
    g_value_set_double (value, s->config.pitch_x);
    break;
  case PROP_PITCH_Y:
    g_value_set_double (value, s->config.pitch_y);
    break;
  case PROP_COLUMNS:
    g_value_set_uint (value, s->config.columns);
    break;
  case PROP_ROWS:
    g_value_set_uint (value, s->config.rows);
    break;
  case PROP_MAP_LOCATION:
    g_value_set_string (value, s->map_location);
    break;
  case PROP_REFERENCE_LOCATION:
    g_value_set_string (
        value, s->calibration.location[GST_SH_CENTROID_REFERENCE]);
    break;
  case PROP_FIELDS:
    g_value_set_enum (value, s->config.fields);
    break;
  case PROP_BIT_DEPTH:
    g_value_set_uint (value, s->bit_depth);
    break;
  case PROP_SATURATION:
    g_value_set_double (value, s->saturation);
    break;
  case PROP_THRESHOLD:
    g_value_set_double (value, s->config.threshold);
    break;
  case PROP_THRESHOLD_MODE:
    g_value_set_enum (value, s->config.threshold_mode);
    break;
  case PROP_THRESHOLD_ACTION:
    g_value_set_enum (value, s->config.threshold_action);
    break;
  case PROP_MIN_FLUX:
    g_value_set_double (value, s->config.min_flux);
    break;
  case PROP_INVALID_POLICY:
    g_value_set_enum (value, s->config.invalid_policy);
    break;
  case PROP_GAIN:
    g_value_set_double (value, s->config.gain);
    break;
  case PROP_READ_NOISE:
    g_value_set_double (value, s->config.read_noise);
    break;
  default:
    if (id >= PROP_FIRST_OF_GEOMETRY)
      gst_sh_centroid_geometry_get (
          &s->more_geometry, id - PROP_FIRST_OF_GEOMETRY, value);
    else if (!gst_sh_centroid_pixels_get (
                 &s->config, &s->calibration, id, value) &&
             !gst_sh_centroid_template_get (
                 &s->config, &s->calibration, id, value))
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
  GST_OBJECT_UNLOCK (object);
}

static GstStateChangeReturn
gst_sh_centroid_change_state (GstElement *element, GstStateChange transition)
{
  GstStateChangeReturn result = GST_ELEMENT_CLASS (gst_sh_centroid_parent_class)
                                    ->change_state (element, transition);

  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    drop_captures (GST_SH_CENTROID (element));
    GST_SH_CENTROID (element)->hinted = 0;
  }
  return result;
}

static void
gst_sh_centroid_finalize (GObject *object)
{
  GstShCentroid *self = GST_SH_CENTROID (object);

  settings_clear (&self->settings);
  for (guint i = 0; i < GST_SH_CENTROID_N_CAPTURES; i++)
    gst_sh_centroid_capture_clear (&self->requests[i]);
  G_OBJECT_CLASS (gst_sh_centroid_parent_class)->finalize (object);
}

static const GParamFlags live = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                                GST_PARAM_CONTROLLABLE |
                                GST_PARAM_MUTABLE_PLAYING;

static void
install_geometry (GObjectClass *klass)
{
  const GParamFlags flags =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  g_object_class_install_property (klass, PROP_X0,
      g_param_spec_double ("x0", "Left edge of the grid",
          "Left edge of the first column of cells, in pixels; cell column c "
          "covers the pixels floor (x0 + c * pitch-x) to before floor (x0 + "
          "(c + 1) * pitch-x)",
          -FAR, FAR, DEFAULT_PROP_ORIGIN, flags));
  g_object_class_install_property (klass, PROP_Y0,
      g_param_spec_double ("y0", "Top edge of the grid",
          "Top edge of the first row of cells, in pixels, as x0", -FAR, FAR,
          DEFAULT_PROP_ORIGIN, flags));
  g_object_class_install_property (klass, PROP_PITCH_X,
      g_param_spec_double ("pitch-x", "Pitch in x",
          "Width of a cell in pixels, at least 1, with any fraction", -FAR, FAR,
          DEFAULT_PROP_PITCH, flags));
  g_object_class_install_property (klass, PROP_PITCH_Y,
      g_param_spec_double ("pitch-y", "Pitch in y",
          "Height of a cell in pixels, at least 1, with any fraction", -FAR,
          FAR, DEFAULT_PROP_PITCH, flags));
  g_object_class_install_property (klass, PROP_COLUMNS,
      g_param_spec_uint ("columns", "Columns",
          "Cells in a row of the grid; needed without map-location", 0,
          G_MAXUINT16, DEFAULT_PROP_COUNT, flags));
  g_object_class_install_property (klass, PROP_ROWS,
      g_param_spec_uint ("rows", "Rows",
          "Rows of cells in the grid; needed without map-location", 0,
          G_MAXUINT16, DEFAULT_PROP_COUNT, flags));
  g_object_class_install_property (klass, PROP_MAP_LOCATION,
      g_param_spec_string ("map-location", "Location of the map",
          "A .npy file [n, 4..8] of cells instead of the grid: x, y, width, "
          "height in pixels, then optionally ref-x, ref-y, min-flux, threshold "
          "(NaN for the properties' values); cells may overlap",
          NULL, flags));
  g_object_class_install_property (klass, PROP_REFERENCE_LOCATION,
      g_param_spec_string ("reference-location", "Location of the references",
          "A .npy file [cells, 2] with the x and y that each slope is measured "
          "from, in pixels; without it the centres of the cells",
          NULL, flags));
  g_object_class_install_property (klass, PROP_FIELDS,
      g_param_spec_enum ("fields", "Fields", "What is reported",
          gst_imaging_enum_type ("GstShCentroidFields", fields_values),
          DEFAULT_PROP_FIELDS, flags));
}

static void
install_validity (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_BIT_DEPTH,
      g_param_spec_uint ("bit-depth", "Bit depth",
          "Significant bits of a sample, in its low bits, for the default "
          "saturation: 10, 12 or 14 of most cameras; 0 for all bits of the "
          "format",
          0, 16, DEFAULT_PROP_BIT_DEPTH, live));
  g_object_class_install_property (klass, PROP_SATURATION,
      g_param_spec_double ("saturation", "Saturation",
          "Counts at and above which a sample is saturated, and its cell "
          "flagged (4); 0 for the largest of bit-depth, -1 for never",
          -1, G_MAXUINT16, DEFAULT_PROP_SATURATION, live));
  g_object_class_install_property (klass, PROP_MIN_FLUX,
      g_param_spec_double ("min-flux", "Least flux",
          "Counts of flux, after the threshold, below which a cell is invalid "
          "and flagged (2)",
          0, G_MAXDOUBLE, DEFAULT_PROP_MIN_FLUX, live));
  g_object_class_install_property (klass, PROP_INVALID_POLICY,
      g_param_spec_enum ("invalid-policy", "Invalid policy",
          "What an invalid cell reports; its flags say that it is",
          gst_imaging_enum_type (
              "GstShCentroidInvalidPolicy", invalid_policy_values),
          DEFAULT_PROP_INVALID_POLICY, live));
  g_object_class_install_property (klass, PROP_GAIN,
      g_param_spec_double ("gain", "Gain",
          "Electrons a count, for the photon noise in var_x and var_y", 1e-9,
          1e9, DEFAULT_PROP_GAIN, live));
  g_object_class_install_property (klass, PROP_READ_NOISE,
      g_param_spec_double ("read-noise", "Read noise",
          "Counts rms of a sample, for var_x and var_y", 0, 1e6,
          DEFAULT_PROP_READ_NOISE, live));
}

static void
install_threshold (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_THRESHOLD,
      g_param_spec_double ("threshold", "Threshold",
          "T, in the unit of threshold-mode: counts, a fraction from 0 to 1, or "
          "times read-noise",
          0, G_MAXUINT16, DEFAULT_PROP_THRESHOLD, live));
  g_object_class_install_property (klass, PROP_THRESHOLD_MODE,
      g_param_spec_enum ("threshold-mode", "Threshold mode",
          "Which samples count",
          gst_imaging_enum_type (
              "GstShCentroidThresholdMode", threshold_mode_values),
          DEFAULT_PROP_THRESHOLD_MODE, live));
  g_object_class_install_property (klass, PROP_THRESHOLD_ACTION,
      g_param_spec_enum ("threshold-action", "Threshold action",
          "What a sample v counts as",
          gst_imaging_enum_type (
              "GstShCentroidThresholdAction", threshold_action_values),
          DEFAULT_PROP_THRESHOLD_ACTION, live));
}

static guint
add_capture (GstShCentroidClass *klass, const gchar *name, GCallback handler)
{
  return g_signal_new_class_handler (name, G_TYPE_FROM_CLASS (klass),
      G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION, handler, NULL, NULL, NULL,
      G_TYPE_BOOLEAN, 2, G_TYPE_UINT, G_TYPE_STRING);
}

static void
add_captures (GstShCentroidClass *klass)
{
  /**
   * GstShCentroid::capture-dark:
   * @n_frames: how many frames to take, at least 1
   * @location: (nullable): a .npy file to write
   *
   * Averages the next @n_frames frames, with the light off; the mean is
   * subtracted from the frames after them. `dark-location` becomes @location.
   *
   * All four post an element message "shcentroid-captured" with `kind`,
   * `frames` and `location` when they are done. A capture that is asked for
   * while one of the same kind is on its way takes its place; a change of the
   * frame's size begins it anew; stopping ends it with a warning.
   *
   * Returns: whether it will begin with the next frame
   */
  signals[SIGNAL_CAPTURE_DARK] =
      add_capture (klass, "capture-dark", G_CALLBACK (capture_dark));
  /**
   * GstShCentroid::capture-flat:
   *
   * The same with even light, after the dark: pixels are then multiplied with
   * the mean of all pixels divided by their own; those without light are bad.
   */
  signals[SIGNAL_CAPTURE_FLAT] =
      add_capture (klass, "capture-flat", G_CALLBACK (capture_flat));
  /**
   * GstShCentroid::capture-reference:
   *
   * The same with a flat wavefront: slopes are then measured from the mean of
   * the valid centroids. A cell that was never valid keeps its reference.
   */
  signals[SIGNAL_CAPTURE_REFERENCE] =
      add_capture (klass, "capture-reference", G_CALLBACK (capture_reference));
  /**
   * GstShCentroid::capture-template:
   *
   * The same with what is to be looked for: the mean of the calibrated frames
   * is cut into a template for each cell, or into that of template-cell for
   * all, less template-margin. estimator=correlation finds it from then on.
   */
  signals[SIGNAL_CAPTURE_TEMPLATE] =
      add_capture (klass, "capture-template", G_CALLBACK (capture_template));
}

static void
gst_sh_centroid_class_init (GstShCentroidClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstImagingFilterClass *filter_class = GST_IMAGING_FILTER_CLASS (klass);

  object_class->set_property = gst_sh_centroid_set_property;
  object_class->get_property = gst_sh_centroid_get_property;
  object_class->finalize = gst_sh_centroid_finalize;
  install_geometry (object_class);
  install_threshold (object_class);
  install_validity (object_class);
  gst_sh_centroid_pixels_install (object_class);
  gst_sh_centroid_template_install (object_class);
  add_captures (klass);
  element_class->change_state = gst_sh_centroid_change_state;
  gst_sh_centroid_geometry_install (object_class, PROP_FIRST_OF_GEOMETRY);

  /**
   * GstShCentroid::find-grid:
   * @self: the element
   * @location: (type filename): where the map is written
   *
   * Finds the lenslets in the next frame, which should be one of a flat
   * wavefront: pitch, rotation, which are lit. Writes a map to @location, sets
   * map-location to it, and measures that frame with it. The element message
   * "shcentroid-grid" says what was found. Takes about a second a megapixel.
   */
  g_signal_new_class_handler ("find-grid", G_TYPE_FROM_CLASS (klass),
      G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION,
      G_CALLBACK (gst_sh_centroid_ask_for_grid), NULL, NULL, NULL, G_TYPE_NONE,
      1, G_TYPE_STRING);

  gst_element_class_set_static_metadata (element_class,
      "Shack-Hartmann centroids", "Filter/Analyzer/Video",
      "Measures the spots of a Shack-Hartmann wavefront sensor",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_imaging_filter_class_add_results_pad (filter_class);

  filter_class->measures = TRUE;
  filter_class->device_reach = GST_IMAGING_REACH_DEVICE_OR_MAPPED;
  filter_class->open = gst_sh_centroid_open;
  filter_class->close = gst_sh_centroid_close;
  filter_class->process = gst_sh_centroid_process;
  filter_class->reset = gst_sh_centroid_reset;
  filter_class->prefers_cuda = gst_sh_centroid_prefers_cuda;
}

static void
gst_sh_centroid_init (GstShCentroid *self)
{
  imk_shcentroid_config_init (&self->settings.config);
  self->settings.config.columns = DEFAULT_PROP_COUNT;
  self->settings.config.rows = DEFAULT_PROP_COUNT;
  self->settings.config.pitch_x = DEFAULT_PROP_PITCH;
  self->settings.config.pitch_y = DEFAULT_PROP_PITCH;
}
