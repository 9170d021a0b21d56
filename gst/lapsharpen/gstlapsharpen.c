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
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc ! lapsharpen amount=1.5 ! videoconvert !
 * autovideosink
 * ]|
 *
 * Since: 0.1
 */
#include "gstlapsharpen.h"

#include "gstimagingenum.h"

#include "lapsharpen/lapsharpen.h"

GST_DEBUG_CATEGORY_STATIC (lapsharpen_debug);
#define GST_CAT_DEFAULT lapsharpen_debug

#define DEFAULT_PROP_AMOUNT 1.0
#define DEFAULT_PROP_NEIGHBOURS 4
#define DEFAULT_PROP_BORDER IMK_LAPSHARPEN_BORDER_REPLICATE
#define DEFAULT_PROP_BORDER_VALUE 0
#define DEFAULT_PROP_ALPHA IMK_LAPSHARPEN_ALPHA_COPY
#define DEFAULT_PROP_PLANES GST_LAP_SHARPEN_PLANES_LUMA
#define DEFAULT_PROP_THRESHOLD 0
#define DEFAULT_PROP_CLAMP IMK_LAPSHARPEN_CLAMP_FULL
#define DEFAULT_PROP_OUTPUT IMK_LAPSHARPEN_OUTPUT_SHARPENED
#define DEFAULT_PROP_FOCUS_MEASURE FALSE
#define DEFAULT_PROP_BIT_DEPTH 0

enum {
  PROP_0,
  PROP_AMOUNT,
  PROP_NEIGHBOURS,
  PROP_BORDER,
  PROP_BORDER_VALUE,
  PROP_ALPHA,
  PROP_PLANES,
  PROP_THRESHOLD,
  PROP_CLAMP,
  PROP_OUTPUT,
  PROP_FOCUS_MEASURE,
  PROP_BIT_DEPTH,
};

typedef enum {
  GST_LAP_SHARPEN_PLANES_LUMA,
  GST_LAP_SHARPEN_PLANES_ALL,
} GstLapSharpenPlanes;

/* Properties that say what a sample of the format is. */
typedef struct {
  GstLapSharpenPlanes planes;
  guint bit_depth;
} Reading;

struct _GstLapSharpen {
  GstImagingFilter parent;

  /* under the object lock; the format in it is filled in by plane */
  ImkLapsharpenConfig config;
  Reading reading;

  /* of the streaming thread */
  const GstVideoFormatInfo *format;
  Reading open_reading;
  guint n_kernels;
  ImkLapsharpen *kernels[GST_VIDEO_MAX_PLANES];
  ImkLapsharpenConfig formats[GST_VIDEO_MAX_PLANES];
  gboolean said_border; /* that a border-value is not used */
};

#define LAP_SHARPEN_FORMATS \
  "{ RGBA, BGRA, ARGB, ABGR, RGBx, BGRx, xRGB, xBGR, RGB, BGR, GRAY8, " \
  "GRAY16_LE, RGBA64_LE, ARGB64_LE, BGRA64_LE, ABGR64_LE, AYUV, I420, YV12, " \
  "Y42B, Y444, NV12, NV21, I420_10LE, I420_12LE, Y444_10LE, Y444_12LE, " \
  "P010_10LE, P012_LE, P016_LE }"

/* What GstCuda 1.22 has of them. */
#define LAP_SHARPEN_CUDA_FORMATS \
  "{ RGBA, BGRA, ARGB, ABGR, RGBx, BGRx, RGB, BGR, I420, YV12, Y42B, Y444, " \
  "NV12, NV21, I420_10LE, P010_10LE, P016_LE }"

#define LAP_SHARPEN_CAPS \
  GST_VIDEO_CAPS_MAKE_WITH_FEATURES ( \
      "memory:CUDAMemory", LAP_SHARPEN_CUDA_FORMATS) \
  ";" GST_VIDEO_CAPS_MAKE_WITH_FEATURES ("memory:NVMM", \
      "{ GRAY8, NV12, RGBA }") ";" GST_VIDEO_CAPS_MAKE (LAP_SHARPEN_FORMATS)

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

static const GEnumValue clamp_values[] = {
    {IMK_LAPSHARPEN_CLAMP_FULL, "To the range of the format", "full"},
    {IMK_LAPSHARPEN_CLAMP_LOCAL,
        "To the least and largest of the 3x3 window: no halos", "local"},
    {0, NULL, NULL},
};

static const GEnumValue output_values[] = {
    {IMK_LAPSHARPEN_OUTPUT_SHARPENED, "The sharpened frame", "sharpened"},
    {IMK_LAPSHARPEN_OUTPUT_EDGES, "What is added, as a magnitude: |s L|",
        "edges"},
    {0, NULL, NULL},
};

/* --- the kernel ---------------------------------------------------------- */

static ImkLapsharpenConfig
get_config (GstLapSharpen *self, Reading *reading)
{
  ImkLapsharpenConfig config;

  GST_OBJECT_LOCK (self);
  config = self->config;
  *reading = self->reading;
  GST_OBJECT_UNLOCK (self);
  return config;
}

/* Which channel of its plane a component is. Rounded up, because GStreamer 1.22
 * has the V of P010, P012 and P016 at byte 1, where U is not over yet. */
static guint
channel_of (const GstVideoFormatInfo *format, guint component)
{
  guint size = GST_VIDEO_FORMAT_INFO_DEPTH (format, component) > 8 ? 2 : 1;

  return (GST_VIDEO_FORMAT_INFO_POFFSET (format, component) + size - 1) / size;
}

/* Cameras put 10, 12 or 14 bits into it, and its caps cannot say so. */
static gboolean
is_camera_format (const GstVideoFormatInfo *format)
{
  return GST_VIDEO_FORMAT_INFO_FORMAT (format) == GST_VIDEO_FORMAT_GRAY16_LE;
}

/* The format members of @config for one plane. */
static void
describe_plane (const GstVideoInfo *info, guint plane, const Reading *reading,
    ImkLapsharpenConfig *config)
{
  const GstVideoFormatInfo *f = info->finfo;
  gboolean luma_only = GST_VIDEO_FORMAT_INFO_IS_YUV (f) &&
                       reading->planes == GST_LAP_SHARPEN_PLANES_LUMA;

  config->channel_mask = 0;
  config->alpha_channel = -1;
  for (guint c = 0; c < GST_VIDEO_FORMAT_INFO_N_COMPONENTS (f); c++) {
    if (GST_VIDEO_FORMAT_INFO_PLANE (f, c) != plane)
      continue;
    config->width = GST_VIDEO_FORMAT_INFO_SCALE_WIDTH (f, c, info->width);
    config->height = GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT (f, c, info->height);
    config->depth = GST_VIDEO_FORMAT_INFO_DEPTH (f, c);
    config->shift = GST_VIDEO_FORMAT_INFO_SHIFT (f, c);
    config->type = config->depth > 8 ? IMK_TYPE_U16 : IMK_TYPE_U8;
    if (is_camera_format (f) && reading->bit_depth)
      config->depth = reading->bit_depth;
    config->channels =
        GST_VIDEO_FORMAT_INFO_PSTRIDE (f, c) / imk_type_size (config->type);
    if (GST_VIDEO_FORMAT_INFO_HAS_ALPHA (f) && c == GST_VIDEO_COMP_A)
      config->alpha_channel = channel_of (f, c);
    else if (!luma_only || c == GST_VIDEO_COMP_Y)
      config->channel_mask |= 1u << channel_of (f, c);
  }
}

static void
gst_lap_sharpen_close (GstImagingFilter *filter)
{
  GstLapSharpen *self = GST_LAP_SHARPEN (filter);

  for (guint i = 0; i < self->n_kernels; i++)
    g_clear_pointer (&self->kernels[i], imk_lapsharpen_free);
  self->n_kernels = 0;
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

static ImkStatus
gst_lap_sharpen_open (GstImagingFilter *filter, ImkBackend backend,
    const GstVideoInfo *info, ImkError *error)
{
  GstLapSharpen *self = GST_LAP_SHARPEN (filter);
  ImkLapsharpenConfig config = get_config (self, &self->open_reading);
  ImkStatus status = IMK_OK;

  warn_of_border_value (self, &config);
  self->format = info->finfo;
  config.n_threads = gst_imaging_filter_n_threads (filter);
  for (guint i = 0; i < GST_VIDEO_INFO_N_PLANES (info); i++) {
    describe_plane (info, i, &self->open_reading, &config);
    self->formats[i] = config;
    status = imk_lapsharpen_new (backend, &config, &self->kernels[i], error);
    if (status != IMK_OK)
      break;
    self->n_kernels++;
  }
  if (status != IMK_OK)
    gst_lap_sharpen_close (filter);
  return status;
}

/* The parameters of @now with the format of one plane. Only the first plane,
 * luma or all colours, measures focus. */
static ImkLapsharpenConfig
config_of_plane (
    GstLapSharpen *self, guint plane, const ImkLapsharpenConfig *now)
{
  ImkLapsharpenConfig config = *now;
  const ImkLapsharpenConfig *format = &self->formats[plane];

  config.width = format->width;
  config.height = format->height;
  config.type = format->type;
  config.channels = format->channels;
  config.depth = format->depth;
  config.shift = format->shift;
  config.channel_mask = format->channel_mask;
  config.alpha_channel = format->alpha_channel;
  config.n_threads = format->n_threads;
  config.measure_focus = now->measure_focus && plane == 0;
  return config;
}

static ImkStatus
publish_focus (GstLapSharpen *self, GstBuffer *buffer, const ImkImage *image,
    ImkError *error)
{
  static const gchar *const fields[] = {"variance", "mean"};
  static const gchar *const units[] = {"counts^2", "counts"};
  GstImagingFilter *filter = GST_IMAGING_FILTER (self);
  ImkLapsharpenFocus focus;
  ImkStatus status = imk_lapsharpen_get_focus (self->kernels[0], &focus, error);
  gfloat numbers[2];
  GstImagingResult result = {
      .id = "laplacian-focus-v1",
      .fields = fields,
      .units = units,
      .n_fields = G_N_ELEMENTS (fields),
      .n_rows = 1,
      .ref_width = image->width,
      .ref_height = image->height,
      .frame = gst_imaging_filter_frame_number (filter),
  };

  if (status != IMK_OK)
    return status;
  numbers[0] = (gfloat) focus.variance;
  numbers[1] = (gfloat) focus.mean;
  result.data = gst_buffer_new_memdup (numbers, sizeof (numbers));
  gst_imaging_filter_publish (filter, buffer, &result);
  gst_buffer_unref (result.data);
  return IMK_OK;
}

/* Kernels are made for one reading of the format. */
static gboolean
reads_differently (const GstLapSharpen *self, const Reading *now)
{
  return (now->planes != self->open_reading.planes &&
             GST_VIDEO_FORMAT_INFO_IS_YUV (self->format)) ||
         (now->bit_depth != self->open_reading.bit_depth &&
             is_camera_format (self->format));
}

static ImkStatus
gst_lap_sharpen_process (GstImagingFilter *filter, GstImagingFrame *in,
    GstImagingFrame *out, GstBuffer *buffer, gboolean *done, ImkError *error)
{
  GstLapSharpen *self = GST_LAP_SHARPEN (filter);
  Reading reading;
  ImkLapsharpenConfig now = get_config (self, &reading);
  ImkStatus status = IMK_OK;

  if (reads_differently (self, &reading))
    status = gst_imaging_filter_reopen (filter, error);
  for (guint i = 0; i < self->n_kernels && status == IMK_OK; i++) {
    ImkLapsharpenConfig config = config_of_plane (self, i, &now);

    status = imk_lapsharpen_update (self->kernels[i], &config, error);
    if (status == IMK_OK)
      status = imk_lapsharpen_process (
          self->kernels[i], &in->planes[i], &out->planes[i], in->stream, error);
  }
  return status == IMK_OK && now.measure_focus
             ? publish_focus (self, buffer, &in->planes[0], error)
             : status;
}

static gboolean
gst_lap_sharpen_is_identity (GstImagingFilter *filter)
{
  Reading reading;
  ImkLapsharpenConfig c = get_config (GST_LAP_SHARPEN (filter), &reading);

  return c.amount == 0 && c.output == IMK_LAPSHARPEN_OUTPUT_SHARPENED &&
         !c.measure_focus;
}

/* --- GObject ------------------------------------------------------------- */

static void
gst_lap_sharpen_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstLapSharpen *self = GST_LAP_SHARPEN (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_AMOUNT:
    self->config.amount = g_value_get_double (value);
    break;
  case PROP_NEIGHBOURS:
    self->config.neighbours = g_value_get_enum (value);
    break;
  case PROP_BORDER:
    self->config.border = g_value_get_enum (value);
    break;
  case PROP_BORDER_VALUE:
    self->config.border_value = g_value_get_uint (value);
    break;
  case PROP_ALPHA:
    self->config.alpha = g_value_get_enum (value);
    break;
  case PROP_PLANES:
    self->reading.planes = g_value_get_enum (value);
    break;
  case PROP_THRESHOLD:
    self->config.threshold = g_value_get_uint (value);
    break;
  case PROP_CLAMP:
    self->config.clamp = g_value_get_enum (value);
    break;
  case PROP_OUTPUT:
    self->config.output = g_value_get_enum (value);
    break;
  case PROP_FOCUS_MEASURE:
    self->config.measure_focus = g_value_get_boolean (value);
    break;
  case PROP_BIT_DEPTH:
    self->reading.bit_depth = g_value_get_uint (value);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_lap_sharpen_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  Reading reading;
  ImkLapsharpenConfig c = get_config (GST_LAP_SHARPEN (object), &reading);

  switch (id) {
  case PROP_AMOUNT:
    g_value_set_double (value, c.amount);
    break;
  case PROP_NEIGHBOURS:
    g_value_set_enum (value, c.neighbours);
    break;
  case PROP_BORDER:
    g_value_set_enum (value, c.border);
    break;
  case PROP_BORDER_VALUE:
    g_value_set_uint (value, c.border_value);
    break;
  case PROP_ALPHA:
    g_value_set_enum (value, c.alpha);
    break;
  case PROP_PLANES:
    g_value_set_enum (value, reading.planes);
    break;
  case PROP_THRESHOLD:
    g_value_set_uint (value, c.threshold);
    break;
  case PROP_CLAMP:
    g_value_set_enum (value, c.clamp);
    break;
  case PROP_OUTPUT:
    g_value_set_enum (value, c.output);
    break;
  case PROP_FOCUS_MEASURE:
    g_value_set_boolean (value, c.measure_focus);
    break;
  case PROP_BIT_DEPTH:
    g_value_set_uint (value, reading.bit_depth);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
install_properties (GObjectClass *klass)
{
  const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                            GST_PARAM_CONTROLLABLE | GST_PARAM_MUTABLE_PLAYING;

  g_object_class_install_property (klass, PROP_AMOUNT,
      g_param_spec_double ("amount", "Amount",
          "Strength s in out = in + s * L, L the negative Laplacian; 0 passes "
          "frames on untouched. Any value gives the same bytes on CPU and GPU",
          0.0, 10.0, DEFAULT_PROP_AMOUNT, flags));
  g_object_class_install_property (klass, PROP_NEIGHBOURS,
      g_param_spec_enum ("neighbours", "Neighbours",
          "The neighbours v_i of a pixel v",
          gst_imaging_enum_type ("GstLapSharpenNeighbours", neighbours_values),
          DEFAULT_PROP_NEIGHBOURS, flags));
  g_object_class_install_property (klass, PROP_BORDER,
      g_param_spec_enum ("border", "Border",
          "What a neighbour outside the frame counts as, for a row abcd",
          gst_imaging_enum_type ("GstLapSharpenBorder", border_values),
          DEFAULT_PROP_BORDER, flags));
  g_object_class_install_property (klass, PROP_BORDER_VALUE,
      g_param_spec_uint ("border-value", "Border value",
          "The neighbours outside for border=constant, in counts of the "
          "format: 0 to 255 for 8 bits, to 65535 for 16",
          0, G_MAXUINT16, DEFAULT_PROP_BORDER_VALUE, flags));
  g_object_class_install_property (klass, PROP_ALPHA,
      g_param_spec_enum ("alpha", "Alpha",
          "What happens to the alpha channel and beside transparent pixels",
          gst_imaging_enum_type ("GstLapSharpenAlpha", alpha_values),
          DEFAULT_PROP_ALPHA, flags));
  g_object_class_install_property (klass, PROP_PLANES,
      g_param_spec_enum ("planes", "Planes",
          "Which components of a YUV frame are sharpened; of RGB and grey "
          "frames all are",
          gst_imaging_enum_type ("GstLapSharpenPlanes", planes_values),
          DEFAULT_PROP_PLANES, flags));
  g_object_class_install_property (klass, PROP_THRESHOLD,
      g_param_spec_uint ("threshold", "Threshold",
          "Where |L| is below it the pixel is left as it is, in counts of the "
          "format; 0 for everywhere sharpened. Keeps noise down in flat areas",
          0, 8 * G_MAXUINT16, DEFAULT_PROP_THRESHOLD, flags));
  g_object_class_install_property (klass, PROP_CLAMP,
      g_param_spec_enum ("clamp", "Clamp",
          "What the sharpened value is limited to",
          gst_imaging_enum_type ("GstLapSharpenClamp", clamp_values),
          DEFAULT_PROP_CLAMP, flags));
  g_object_class_install_property (klass, PROP_OUTPUT,
      g_param_spec_enum ("output", "Output", "What comes out",
          gst_imaging_enum_type ("GstLapSharpenOutput", output_values),
          DEFAULT_PROP_OUTPUT, flags));
  g_object_class_install_property (klass, PROP_FOCUS_MEASURE,
      g_param_spec_boolean ("focus-measure", "Focus measure",
          "Attach the variance and mean of L over the sharpened samples of the "
          "first plane to each frame (meta GstImagingResults, id "
          "laplacian-focus-v1): the variance is largest in focus. Waits for "
          "the GPU",
          DEFAULT_PROP_FOCUS_MEASURE, flags));
  g_object_class_install_property (klass, PROP_BIT_DEPTH,
      g_param_spec_uint ("bit-depth", "Bit depth",
          "Significant bits of a GRAY16_LE sample, in its low bits: 10, 12 or "
          "14 of most cameras; what is sharpened stays within them. 0 for all "
          "16. The other formats say it themselves",
          0, 16, DEFAULT_PROP_BIT_DEPTH, flags));
}

static void
gst_lap_sharpen_class_init (GstLapSharpenClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstImagingFilterClass *filter_class = GST_IMAGING_FILTER_CLASS (klass);

  object_class->set_property = gst_lap_sharpen_set_property;
  object_class->get_property = gst_lap_sharpen_get_property;
  install_properties (object_class);

  gst_element_class_set_static_metadata (element_class, "Laplacian sharpening",
      "Filter/Effect/Video",
      "Sharpens by subtracting the Laplacian of each pixel's neighbours",
      "gst-imaging developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);

  filter_class->device_reach = GST_IMAGING_REACH_DEVICE;
  filter_class->open = gst_lap_sharpen_open;
  filter_class->close = gst_lap_sharpen_close;
  filter_class->process = gst_lap_sharpen_process;
  filter_class->is_identity = gst_lap_sharpen_is_identity;
}

static void
gst_lap_sharpen_init (GstLapSharpen *self)
{
  imk_lapsharpen_config_init (&self->config);
  self->config.amount = DEFAULT_PROP_AMOUNT;
  self->reading.planes = DEFAULT_PROP_PLANES;
  self->reading.bit_depth = DEFAULT_PROP_BIT_DEPTH;
}
