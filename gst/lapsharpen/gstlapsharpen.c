/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-lapsharpen
 * @title: lapsharpen
 * @short_description: Laplacian sharpening
 *
 * Adds to every sample v the negative Laplacian of its neighbours v_i, s times:
 *
 *     out = clamp (floor (v + s (k v - sum v_i) + 0.5)), k = 4 or 8
 *
 * with the same bytes on CPU and GPU. After P. Bulic and D. Sluga, course text
 * of the University of Ljubljana; `border=zero alpha=filter` gives their bytes.
 * Other methods replace the Laplacian: an unsharp mask of any radius, the
 * Laplacian of a Gaussian, contrast adaptive sharpening, a kernel from a file.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc ! lapsharpen amount=1.5 ! videoconvert !
 * autovideosink
 * ]|
 *
 * Since: 0.1
 */
#include "gstlapsharpenfocus.h"
#include "gstlapsharpenformat.h"

#include "gstimagingarrayfile.h"
#include "gstimagingenum.h"
#include "gstimagingquantity.h"

#include "imk/lapsharpen.h"

GST_DEBUG_CATEGORY_STATIC (lapsharpen_debug);
#define GST_CAT_DEFAULT lapsharpen_debug

/* Groups of settings: what needs new kernels. */
enum { FORMAT = 1 };

typedef GstLapSharpenSettings Settings;

struct _GstLapSharpen {
  GstImagingFilter parent;
  GstImagingSettings *settings;

  /* of the streaming thread */
  guint n_kernels;
  ImkLapsharpen *kernels[GST_VIDEO_MAX_PLANES];
  ImkLapsharpenConfig formats[GST_VIDEO_MAX_PLANES];
  GstVideoInfo info;
  gboolean is_tensor; /* not video, but the picture */
  GstImagingPicture picture;
  GstLapSharpenAreas areas; /* of the frame at hand */
  gboolean said_border;     /* that a border-value is not used */
  gboolean said_transfer;   /* that light=linear knows no transfer function */
  gboolean said_regions;    /* that a frame has too many */
  gboolean said_empty;      /* that x or y is beyond the frame */
};

#define LAP_SHARPEN_FORMATS \
  "{ RGBA, BGRA, ARGB, ABGR, RGBx, BGRx, xRGB, xBGR, RGB, BGR, GRAY8, " \
  "GRAY16_LE, RGBA64_LE, ARGB64_LE, BGRA64_LE, ABGR64_LE, AYUV, I420, YV12, " \
  "Y42B, Y444, NV12, NV21, I420_10LE, I420_12LE, Y444_10LE, Y444_12LE, " \
  "P010_10LE, P012_LE, P016_LE, GRAY16_BE, GBR, GBR_10LE, GBR_12LE, " \
  "RGB10A2_LE, Y410, NV16 }"

/* What GstCuda 1.22 has of them. */
#define LAP_SHARPEN_CUDA_FORMATS \
  "{ RGBA, BGRA, ARGB, ABGR, RGBx, BGRx, RGB, BGR, I420, YV12, Y42B, Y444, " \
  "NV12, NV21, I420_10LE, P010_10LE, P016_LE }"

#define LAP_SHARPEN_CAPS \
  GST_VIDEO_CAPS_MAKE_WITH_FEATURES ( \
      "memory:CUDAMemory", LAP_SHARPEN_CUDA_FORMATS) \
  ";" GST_VIDEO_CAPS_MAKE_WITH_FEATURES ("memory:NVMM", \
      "{ GRAY8, NV12, RGBA, P010_10LE, NV16 }") ";" GST_VIDEO_CAPS_MAKE (LAP_SHARPEN_FORMATS) ";" GST_IMAGING_PICTURE_TENSOR_CAPS

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (LAP_SHARPEN_CAPS));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (LAP_SHARPEN_CAPS));

G_DEFINE_FINAL_TYPE_WITH_CODE (GstLapSharpen, gst_lap_sharpen,
    GST_TYPE_IMAGING_FILTER,
    GST_DEBUG_CATEGORY_INIT (
        lapsharpen_debug, "lapsharpen", 0, "Laplacian sharpening"))
GST_ELEMENT_REGISTER_DEFINE (
    lapsharpen, "lapsharpen", GST_RANK_NONE, GST_TYPE_LAP_SHARPEN)

/* --- enumerations -------------------------------------------------------- */

static const GEnumValue method_values[] = {
    {IMK_LAPSHARPEN_METHOD_LAPLACIAN, "L, equally everywhere", "laplacian"},
    {IMK_LAPSHARPEN_METHOD_CAS,
        "Contrast adaptive sharpening: L times a gain of 0 to 1 that is small "
        "at strong edges and near black and white. AMD's with amount=1 and "
        "neighbours=4",
        "cas"},
    {IMK_LAPSHARPEN_METHOD_KERNEL,
        "What the kernel of kernel-location makes of the pixel, less the "
        "pixel: with amount=1 the same as OpenCV's filter2D",
        "kernel"},
    {IMK_LAPSHARPEN_METHOD_UNSHARP,
        "Unsharp mask: the pixel less a Gaussian of the frame of the standard "
        "deviation radius",
        "unsharp"},
    {IMK_LAPSHARPEN_METHOD_LOG,
        "Negative Laplacian of a Gaussian of the standard deviation radius, "
        "times radius squared",
        "log"},
    {0, NULL, NULL},
};

static const GEnumValue neighbours_values[] = {
    {4, "Those sharing a side: L = 4 v - sum", "4"},
    {8, "Those sharing a corner as well: L = 8 v - sum", "8"},
    {0, NULL, NULL},
};

static const GEnumValue border_values[] = {
    {IMK_LAPSHARPEN_BORDER_REPLICATE, "aa|abcd|dd: no frame around flat areas",
        "replicate"},
    {IMK_LAPSHARPEN_BORDER_ZERO, "00|abcd|00: brightens the border", "zero"},
    {IMK_LAPSHARPEN_BORDER_CONSTANT, "xx|abcd|xx: x is border-value",
        "constant"},
    {IMK_LAPSHARPEN_BORDER_REFLECT101, "cb|abcd|cb: OpenCV's default",
        "reflect101"},
    {IMK_LAPSHARPEN_BORDER_REFLECT, "ba|abcd|dc", "reflect"},
    {0, NULL, NULL},
};

static const GEnumValue alpha_values[] = {
    {IMK_LAPSHARPEN_ALPHA_COPY, "Alpha is copied", "copy"},
    {IMK_LAPSHARPEN_ALPHA_FILTER, "Alpha is sharpened like a colour", "filter"},
    {IMK_LAPSHARPEN_ALPHA_WEIGHTED,
        "Alpha is copied, and neighbours count by their alpha: hidden colours "
        "of transparent pixels do not show",
        "weighted"},
    {0, NULL, NULL},
};

static const GEnumValue planes_values[] = {
    {GST_LAP_SHARPEN_PLANES_LUMA, "Luma only", "luma"},
    {GST_LAP_SHARPEN_PLANES_ALL, "Luma and chroma", "all"},
    {0, NULL, NULL},
};

static const GEnumValue range_values[] = {
    {GST_LAP_SHARPEN_RANGE_AUTO, "As the colorimetry of the caps says", "auto"},
    {GST_LAP_SHARPEN_RANGE_FULL, "All values of the format", "full"},
    {GST_LAP_SHARPEN_RANGE_LIMITED,
        "16 to 235 of 8 bits, chroma 16 to 240, and their multiples",
        "limited"},
    {0, NULL, NULL},
};

static const GEnumValue light_values[] = {
    {GST_LAP_SHARPEN_LIGHT_STORED, "Samples are sharpened as they are stored",
        "stored"},
    {GST_LAP_SHARPEN_LIGHT_LINEAR,
        "Samples are sharpened in 16 bits of linear light, by the transfer "
        "function of the caps",
        "linear"},
    {0, NULL, NULL},
};

static const GEnumValue clamp_values[] = {
    {IMK_LAPSHARPEN_CLAMP_FULL, "To the range of the format", "full"},
    {IMK_LAPSHARPEN_CLAMP_LOCAL,
        "To the least and largest of the 3x3 window: no halos", "local"},
    {0, NULL, NULL},
};

static const GEnumValue unit_values[] = {
    {IMK_LAPSHARPEN_UNIT_COUNTS, "Counts of the format", "counts"},
    {IMK_LAPSHARPEN_UNIT_SIGMA,
        "Standard deviations of L in a flat area, from the noise of each frame "
        "(Immerkaer 1996)",
        "sigma"},
    {0, NULL, NULL},
};

static const GEnumValue coring_values[] = {
    {IMK_LAPSHARPEN_CORING_HARD, "Hard: all of it, s L", "hard"},
    {IMK_LAPSHARPEN_CORING_SOFT,
        "Soft: what is beyond the threshold, s (|L| - threshold)", "soft"},
    {0, NULL, NULL},
};

static const GEnumValue output_values[] = {
    {IMK_LAPSHARPEN_OUTPUT_SHARPENED, "The sharpened frame", "sharpened"},
    {IMK_LAPSHARPEN_OUTPUT_EDGES, "What is added, as a magnitude: |s L|",
        "edges"},
    {0, NULL, NULL},
};

/* --- the kernel ---------------------------------------------------------- */

static const Settings *
now (GstLapSharpen *self)
{
  return gst_imaging_settings_now (self->settings);
}

/* The configuration with the kernel of the file. */
static ImkLapsharpenConfig
get_config (const Settings *settings)
{
  ImkLapsharpenConfig config = settings->config;
  const ImkLapsharpenConfig *kernel =
      gst_imaging_setting_file_data (settings->kernel);

  if (kernel) {
    config.kernel_size = kernel->kernel_size;
    memcpy (config.kernel, kernel->kernel, sizeof (config.kernel));
  }
  return config;
}

static void
free_kernels (ImkLapsharpen **kernels)
{
  for (guint i = 0; i < GST_VIDEO_MAX_PLANES; i++)
    g_clear_pointer (&kernels[i], imk_lapsharpen_free);
}

static void
gst_lap_sharpen_close (GstImagingFilter *filter)
{
  free_kernels (GST_LAP_SHARPEN (filter)->kernels);
  GST_LAP_SHARPEN (filter)->n_kernels = 0;
}

static void
warn_of_border_value (GstLapSharpen *self, const ImkLapsharpenConfig *config)
{
  if (config->border_value == 0 || self->said_border ||
      config->border == IMK_LAPSHARPEN_BORDER_CONSTANT)
    return;
  self->said_border = TRUE;
  GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
      ("border-value is %d, which counts with border=constant only.",
          (gint) config->border_value),
      (NULL));
}

/* Of a region that no pixel belongs to. */
static void
warn_of_region (GstLapSharpen *self)
{
  const Settings *s = now (self);
  gboolean is_empty =
      s->x >= (guint) self->info.width || s->y >= (guint) self->info.height;

  if (is_empty && !self->said_empty)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("x=%u y=%u begins outside of the frame of %d x %d pixels: nothing is "
         "sharpened.",
            s->x, s->y, self->info.width, self->info.height),
        (NULL));
  self->said_empty = is_empty;
}

static void
warn_of_transfer (GstLapSharpen *self, const GstVideoInfo *info)
{
  if (now (self)->light == GST_LAP_SHARPEN_LIGHT_STORED || self->is_tensor ||
      info->colorimetry.transfer != GST_VIDEO_TRANSFER_UNKNOWN ||
      self->said_transfer)
    return;
  self->said_transfer = TRUE;
  GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
      ("light=linear, but the caps name no transfer function. The samples count "
       "as linear light; set the colorimetry in a capsfilter if they are not."),
      (NULL));
}

static ImkStatus
gst_lap_sharpen_carrier (GstImagingFilter *filter, GstCaps *caps,
    GstVideoInfo *info, ImkError *error)
{
  GstLapSharpen *self = GST_LAP_SHARPEN (filter);

  IMK_TRY (gst_lap_sharpen_read_tensor (caps, &self->picture, error));
  *info = self->picture.carrier;
  info->fps_n = self->picture.fps_n;
  info->fps_d = self->picture.fps_d;
  return IMK_OK;
}

/* The pixels of a frame, which are not those of the carrier of a tensor. */
static void
describe_frame (
    GstLapSharpen *self, const GstVideoInfo *carrier, GstVideoInfo *info)
{
  *info = *carrier;
  if (!self->is_tensor)
    return;
  info->width = (gint) self->picture.width;
  info->height = (gint) self->picture.height;
}

static void
describe_plane (GstLapSharpen *self, const GstVideoInfo *info, guint plane,
    ImkLapsharpenConfig *config)
{
  if (self->is_tensor)
    gst_lap_sharpen_describe_tensor (&self->picture, config);
  else
    gst_lap_sharpen_describe_plane (info, plane, now (self), config);
}

static ImkImage
image_of (GstLapSharpen *self, const ImkImage *plane)
{
  return self->is_tensor ? gst_imaging_picture_image (&self->picture, plane)
                         : *plane;
}

/* The kernels that are open stay until there are new ones. */
static ImkStatus
gst_lap_sharpen_open (GstImagingFilter *filter, ImkBackend backend,
    const GstVideoInfo *carrier, ImkError *error)
{
  GstLapSharpen *self = GST_LAP_SHARPEN (filter);
  const Settings *settings = now (self);
  ImkLapsharpenConfig config = get_config (settings);
  ImkLapsharpenConfig formats[GST_VIDEO_MAX_PLANES];
  ImkLapsharpen *kernels[GST_VIDEO_MAX_PLANES] = {NULL};
  GstLapSharpenAreas areas;
  GstVideoInfo frame, *info = &frame;
  guint n = GST_VIDEO_INFO_N_PLANES (carrier);
  ImkStatus status;

  describe_frame (self, carrier, info);
  status = gst_lap_sharpen_check_mask (info, settings, error);
  gst_lap_sharpen_get_areas (info, settings, NULL, &areas);
  config.n_threads = gst_imaging_filter_n_threads (filter);
  for (guint i = 0; i < n && status == IMK_OK; i++) {
    GstLapSharpenTables tables;

    describe_plane (self, info, i, &config);
    gst_lap_sharpen_set_areas (info, &areas, &config);
    formats[i] = config;
    gst_lap_sharpen_make_tables (info, i, settings, &config, &tables);
    status = imk_lapsharpen_new (backend, &config, &kernels[i], error);
    gst_lap_sharpen_clear_tables (&tables);
  }
  if (status != IMK_OK) {
    free_kernels (kernels);
    return status;
  }
  gst_lap_sharpen_close (filter);
  memcpy (self->kernels, kernels, sizeof (kernels));
  memcpy (self->formats, formats, n * sizeof (formats[0]));
  self->n_kernels = n;
  self->info = *info;
  self->areas = areas;
  warn_of_border_value (self, &settings->config);
  warn_of_transfer (self, info);
  warn_of_region (self);
  return IMK_OK;
}

/* The parameters of @now with the format of one plane. Only the first plane,
 * luma or all colours, measures focus. */
static ImkLapsharpenConfig
config_of_plane (
    GstLapSharpen *self, guint plane, const ImkLapsharpenConfig *now)
{
  ImkLapsharpenConfig config = *now;

  config.n_threads = self->formats[plane].n_threads;
  describe_plane (self, &self->info, plane, &config);
  gst_lap_sharpen_set_areas (&self->info, &self->areas, &config);
  config.measure_focus = now->measure_focus && plane == 0;
  return config;
}

static ImkStatus
update_kernels (GstLapSharpen *self, ImkError *error)
{
  const ImkLapsharpenConfig parameters = get_config (now (self));

  for (guint i = 0; i < self->n_kernels; i++) {
    ImkLapsharpenConfig config = config_of_plane (self, i, &parameters);

    IMK_TRY (imk_lapsharpen_update (self->kernels[i], &config, error));
  }
  return IMK_OK;
}

static ImkStatus
gst_lap_sharpen_apply (
    GstElement *element, gconstpointer before, guint groups, ImkError *error)
{
  GstLapSharpen *self = GST_LAP_SHARPEN (element);

  if (groups & FORMAT)
    return gst_imaging_filter_renew (GST_IMAGING_FILTER (self), error);
  if (self->n_kernels)
    gst_lap_sharpen_get_areas (&self->info, now (self), NULL, &self->areas);
  IMK_TRY (update_kernels (self, error));
  warn_of_border_value (self, &now (self)->config);
  if (self->n_kernels)
    warn_of_region (self);
  return IMK_OK;
}

/* Follows the regions of a frame. */
static ImkStatus
update_areas (GstLapSharpen *self, GstBuffer *buffer, ImkError *error)
{
  GstLapSharpenAreas areas;

  if (!now (self)->roi_meta)
    return IMK_OK;
  if (!gst_lap_sharpen_get_areas (&self->info, now (self), buffer, &areas) &&
      !self->said_regions) {
    self->said_regions = TRUE;
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS,
        ("A frame has more than %d regions of interest; the first %d are "
         "sharpened.",
            IMK_LAPSHARPEN_MAX_AREAS, IMK_LAPSHARPEN_MAX_AREAS),
        (NULL));
  }
  if (memcmp (&areas, &self->areas, sizeof (areas)) == 0)
    return IMK_OK;
  self->areas = areas;
  return update_kernels (self, error);
}

/* How many tiles are measured: whoever asks for results and sets no number gets
 * one.
 * @columns: (out): 0 for none */
static void
get_tiles (GstLapSharpen *self, guint *columns, guint *rows)
{
  const Settings *s = now (self);
  GstPad *pad = NULL;

  *columns = s->focus_columns ? s->focus_columns : s->focus_rows ? 1 : 0;
  *rows = s->focus_rows ? s->focus_rows : 1;
  if (*columns || s->config.measure_focus)
    return;
  pad = gst_element_get_static_pad (GST_ELEMENT (self), "results");
  *columns = pad != NULL;
  g_clear_object (&pad);
}

static ImkStatus
gst_lap_sharpen_process (GstImagingFilter *filter, GstImagingFrame *in,
    GstImagingFrame *out, GstBuffer *buffer, gboolean *done, ImkError *error)
{
  GstLapSharpen *self = GST_LAP_SHARPEN (filter);
  ImkStatus status = update_areas (self, buffer, error);
  guint columns, rows;
  ImkImage first = image_of (self, &in->planes[0]);

  IMK_TRY (status);
  for (guint i = 0; i < self->n_kernels; i++) {
    const ImkImage from = image_of (self, &in->planes[i]);
    ImkImage to = image_of (self, &out->planes[i]);

    IMK_TRY (imk_lapsharpen_process (
        self->kernels[i], &from, &to, in->stream, error));
  }
  get_tiles (self, &columns, &rows);
  if (columns)
    return gst_lap_sharpen_publish_tiles (
        filter, &self->formats[0], &first, columns, rows, buffer, error);
  return now (self)->config.measure_focus
             ? gst_lap_sharpen_publish_focus (
                   filter, self->kernels[0], &first, buffer, error)
             : IMK_OK;
}

static gboolean
gst_lap_sharpen_is_identity (GstImagingFilter *filter)
{
  const ImkLapsharpenConfig *c = &now (GST_LAP_SHARPEN (filter))->config;
  guint columns, rows;

  get_tiles (GST_LAP_SHARPEN (filter), &columns, &rows);
  return c->amount == 0 && c->output == IMK_LAPSHARPEN_OUTPUT_SHARPENED &&
         !c->measure_focus && !columns;
}

/* --- the properties ------------------------------------------------------ */

/* Returns: (transfer full): a configuration, of which the kernel counts */
static gpointer
load_kernel (const gchar *property, const gchar *location, ImkError *error)
{
  g_autoptr (GError) why = NULL;
  GstImagingNdArray *array = gst_imaging_nd_array_load (location, &why);
  g_autofree gdouble *values =
      array ? gst_imaging_nd_array_to_double (array, NULL, &why) : NULL;
  ImkLapsharpenConfig *kernel = NULL;

  if (!values)
    imk_error_set (error, IMK_ERROR_FILE, "%s: %s", property, why->message);
  else if (array->n_dims != 2 || array->dims[0] != array->dims[1] ||
           array->dims[0] > IMK_LAPSHARPEN_MAX_KERNEL ||
           array->dims[0] % 2 == 0 || array->dims[0] == 1) {
    g_autofree gchar *shape = gst_imaging_nd_array_describe (array);

    imk_error_set (error, IMK_ERROR_FILE,
        "kernel-location \"%s\" is %s; it must be [3, 3], [5, 5] or [7, 7].",
        location, shape);
  } else {
    kernel = g_new0 (ImkLapsharpenConfig, 1);
    kernel->kernel_size = (uint32_t) array->dims[0];
    for (gsize i = 0; i < array->n_values; i++)
      kernel->kernel[i] = (gfloat) values[i];
  }
  g_clear_pointer (&array, gst_imaging_nd_array_free);
  return kernel;
}

static const GstImagingSetting settings[] = {
    GST_IMAGING_DOUBLE ("amount", LIVE, 0, Settings, config.amount, 0, 10, NULL,
        "Strength s of the sharpening: out = in + s * L, L being the negative "
        "Laplacian. 0 passes frames on unchanged. CPU and GPU give the same "
        "bytes for any value"),
    GST_IMAGING_ENUM ("method", LIVE, 0, Settings, config.method,
        "GstLapSharpenMethod", method_values,
        "What is added to a pixel, times amount"),
    GST_IMAGING_PATH ("kernel-location", LIVE, 0, Settings, kernel, load_kernel,
        g_free,
        "Array file with the 3x3, 5x5 or 7x7 weights of method=kernel. They "
        "are not flipped: the first one is that of the top left neighbour"),
    GST_IMAGING_DOUBLE ("radius", LIVE, 0, Settings, config.radius, 0.3, 20,
        "px",
        "Standard deviation of the Gaussian of method=unsharp and method=log. "
        "From 5 pixels on it costs no more time"),
    GST_IMAGING_ENUM ("neighbours", LIVE, 0, Settings, config.neighbours,
        "GstLapSharpenNeighbours", neighbours_values,
        "Neighbours v_i of a pixel v that the Laplacian uses"),
    GST_IMAGING_ENUM ("border", LIVE, 0, Settings, config.border,
        "GstLapSharpenBorder", border_values,
        "Value of a neighbour outside the frame, shown for a row abcd"),
    GST_IMAGING_UINT ("border-value", LIVE, 0, Settings, config.border_value, 0,
        G_MAXUINT16, "counts",
        "Value of the neighbours outside the frame with border=constant, in "
        "counts of the format: up to 255 for 8 bits, up to 65535 for 16"),
    GST_IMAGING_ENUM ("alpha", LIVE, 0, Settings, config.alpha,
        "GstLapSharpenAlpha", alpha_values,
        "How the alpha channel and the neighbours of transparent pixels are "
        "treated"),
    GST_IMAGING_ENUM ("planes", LIVE, FORMAT, Settings, planes,
        "GstLapSharpenPlanes", planes_values,
        "Components of a YUV frame that are sharpened. RGB and grey frames are "
        "always sharpened completely"),
    GST_IMAGING_ENUM ("range", LIVE, FORMAT, Settings, range,
        "GstLapSharpenRange", range_values,
        "Range that sharpened samples stay in. A sample that was outside is "
        "kept, but goes no further out"),
    GST_IMAGING_ENUM ("light", LIVE, FORMAT, Settings, light,
        "GstLapSharpenLight", light_values,
        "Whether the transfer function (gamma) is undone for sharpening. Of YUV "
        "frames that is done for luma alone"),
    GST_IMAGING_DOUBLE ("threshold", LIVE, 0, Settings, config.threshold, 0,
        8 * G_MAXUINT16, NULL,
        "Pixels with |L| below this value stay unchanged, which keeps noise low "
        "in flat areas. In counts of the format, or as threshold-unit says. 0 "
        "sharpens all pixels"),
    GST_IMAGING_ENUM ("threshold-unit", LIVE, 0, Settings,
        config.threshold_unit, "GstLapSharpenThresholdUnit", unit_values,
        "Unit of threshold. On a GPU each frame waits for its noise"),
    GST_IMAGING_ENUM ("coring", LIVE, 0, Settings, config.coring,
        "GstLapSharpenCoring", coring_values,
        "What is added where |L| is not below the threshold"),
    GST_IMAGING_ENUM ("clamp", LIVE, 0, Settings, config.clamp,
        "GstLapSharpenClamp", clamp_values, "Limits of the sharpened value"),
    GST_IMAGING_UINT ("halo-bright", LIVE, 0, Settings, config.halo_bright, 0,
        G_MAXUINT, "counts",
        "The most that a sharpened sample may be above the largest of its 3x3 "
        "window, in counts of the format. Without effect from the largest "
        "sample on; clamp=local is 0"),
    GST_IMAGING_UINT ("halo-dark", LIVE, 0, Settings, config.halo_dark, 0,
        G_MAXUINT, "counts", "The same below the least of its 3x3 window"),
    GST_IMAGING_UINT ("x", LIVE, 0, Settings, x, 0, G_MAXUINT16, "px",
        "First column of the region to sharpen; pixels outside are copied"),
    GST_IMAGING_UINT ("y", LIVE, 0, Settings, y, 0, G_MAXUINT16, "px",
        "First row of the region"),
    GST_IMAGING_UINT ("width", LIVE, 0, Settings, width, 0, G_MAXUINT16, "px",
        "Columns of the region; 0: up to the right border"),
    GST_IMAGING_UINT ("height", LIVE, 0, Settings, height, 0, G_MAXUINT16, "px",
        "Rows of the region; 0: down to the lower border"),
    GST_IMAGING_BOOLEAN ("roi-meta", LIVE, 0, Settings, roi_meta,
        "Sharpen only what is in a GstVideoRegionOfInterestMeta of the frame, "
        "and in the region. A frame without one is copied"),
    GST_IMAGING_PATH ("mask-location", LIVE, FORMAT, Settings, mask,
        gst_lap_sharpen_load_mask, g_free,
        "Array or picture file [height, width] of the size of the frames: how "
        "much each pixel is sharpened, from 0 (copied) to the largest value of "
        "u8, u16 or bool, or 1.0"),
    GST_IMAGING_DOUBLE ("split", LIVE, 0, Settings, split, 0, 1, NULL,
        "Part of the width, on the left, that is copied, to compare with: 0.5 "
        "sharpens the right half"),
    GST_IMAGING_ENUM ("output", LIVE, 0, Settings, config.output,
        "GstLapSharpenOutput", output_values,
        "Whether the sharpened frame is output, or only the change"),
    GST_IMAGING_BOOLEAN ("focus-measure", LIVE, 0, Settings,
        config.measure_focus,
        "Attach the variance and mean of L over the sharpened samples of the "
        "first plane to each frame (meta GstImagingResults, id "
        "laplacian-focus-v1). The variance is largest in focus. On a GPU each "
        "frame waits for the result"),
    GST_IMAGING_UINT ("focus-columns", LIVE, 0, Settings, focus_columns, 0,
        IMK_LAPSHARPEN_MAX_TILES, "tiles",
        "Divide the first plane of the incoming frame into this many tiles "
        "along a row, and measure how sharp each is: three measures (id "
        "focus-tiles-v1). 0: no tiles. On a GPU each frame is downloaded"),
    GST_IMAGING_UINT ("focus-rows", LIVE, 0, Settings, focus_rows, 0,
        IMK_LAPSHARPEN_MAX_TILES, "tiles",
        "Number of rows of tiles; with focus-columns alone 1"),
    GST_IMAGING_UINT ("bit-depth", LIVE, FORMAT, Settings, bit_depth, 0, 16,
        "bits",
        "Number of significant low bits of a GRAY16_LE or GRAY16_BE sample: 10, 12 or 14 of "
        "most cameras; 0: all 16. Sharpened samples stay within these bits. "
        "Other formats ignore it"),
};

static void
init_settings (gpointer data)
{
  Settings *s = data;

  imk_lapsharpen_config_init (&s->config);
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .replan = FORMAT,
    .init = init_settings,
    .apply = gst_lap_sharpen_apply,
};

/* --- GObject ------------------------------------------------------------- */

/* A difference of samples is one of what they stand for as well, where that
 * begins at 0: counts, but not dB. */
static gboolean
gst_lap_sharpen_transform_meta (
    GstBaseTransform *trans, GstBuffer *out, GstMeta *meta, GstBuffer *in)
{
  const Settings *s =
      gst_imaging_settings_now (GST_LAP_SHARPEN (trans)->settings);
  gdouble offset = 0;

  if (s->config.output == IMK_LAPSHARPEN_OUTPUT_EDGES &&
      gst_meta_info_is_custom (meta->info) &&
      gst_custom_meta_has_name (
          (GstCustomMeta *) meta, GST_IMAGING_QUANTITY_META))
    gst_structure_get_double (
        gst_custom_meta_get_structure ((GstCustomMeta *) meta), "offset",
        &offset);
  return offset == 0;
}

/* Caps that are refused leave those before in force. */
static gboolean
gst_lap_sharpen_set_caps (
    GstBaseTransform *trans, GstCaps *in_caps, GstCaps *out_caps)
{
  GstLapSharpen *self = GST_LAP_SHARPEN (trans);
  const gboolean was_tensor = self->is_tensor;
  const GstImagingPicture picture = self->picture;

  self->is_tensor = gst_structure_has_name (
      gst_caps_get_structure (in_caps, 0), "other/tensors");
  if (GST_BASE_TRANSFORM_CLASS (gst_lap_sharpen_parent_class)
          ->set_caps (trans, in_caps, out_caps))
    return TRUE;
  self->is_tensor = was_tensor;
  self->picture = picture;
  return FALSE;
}

static void
gst_lap_sharpen_class_init (GstLapSharpenClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstImagingFilterClass *filter_class = GST_IMAGING_FILTER_CLASS (klass);

  gst_imaging_settings_install (G_OBJECT_CLASS (klass), &table);

  gst_element_class_set_static_metadata (element_class, "Laplacian sharpening",
      "Filter/Effect/Video",
      "Sharpens by subtracting the Laplacian of each pixel's neighbours",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);

  gst_imaging_filter_class_add_results_pad (filter_class, FALSE);

  GST_BASE_TRANSFORM_CLASS (klass)->transform_meta =
      gst_lap_sharpen_transform_meta;
  GST_BASE_TRANSFORM_CLASS (klass)->set_caps = gst_lap_sharpen_set_caps;
  filter_class->carrier = gst_lap_sharpen_carrier;
  filter_class->device_reach = GST_IMAGING_REACH_DEVICE;
  filter_class->open = gst_lap_sharpen_open;
  filter_class->close = gst_lap_sharpen_close;
  filter_class->process = gst_lap_sharpen_process;
  filter_class->is_identity = gst_lap_sharpen_is_identity;
}

static void
gst_lap_sharpen_init (GstLapSharpen *self)
{
  self->settings =
      gst_imaging_filter_use_settings (GST_IMAGING_FILTER (self), &table);
}
