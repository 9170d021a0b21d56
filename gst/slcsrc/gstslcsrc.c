/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-slcsrc
 * @title: slcsrc
 * @short_description: reads a single look complex SAR image by lines
 *
 * Reads a single look complex (SLC) image of a synthetic aperture radar: what
 * a PRM file of GMTSAR says; raw numbers in little endian, line after line,
 * when width and format are set; else what GDAL reads: ENVI, ISCE's .vrt,
 * GeoTIFF, Sentinel-1 and more.
 *
 * | format | a sample                                | GMTSAR         |
 * | ------ | --------------------------------------- | -------------- |
 * | ci16   | real and imaginary part, int16 each     | default        |
 * | cf32   | the same, float32                       |                |
 * | f32    | a real number, float32                  | `xcorr -real`  |
 *
 * A buffer of application/x-slc holds whole lines; its offset is the number of
 * the first, its offset-end that of the next. Seeking goes by lines (format
 * DEFAULT). The file is read as the buffers go, so it may be larger than
 * memory. Every tenth of it an element message "slcsrc-progress" says how far
 * it is; on a terminal, ` ! progressreport format=default ! ` does.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 slcsrc location=ref.PRM ! x.reference slcsrc
 * location=sec.PRM ! x.secondary insarxcorr name=x ! filesink
 * location=freq_xcorr.dat
 * ]|
 */
#include "gstslcsrc.h"

#include "gstimagingslc.h"
#include "gstslcimage.h"

GST_DEBUG_CATEGORY_STATIC (gst_slc_src_debug);
#define GST_CAT_DEFAULT gst_slc_src_debug

#define DEFAULT_PROP_LOCATION NULL
#define DEFAULT_PROP_FORMAT GST_SLC_FORMAT_AUTO
#define DEFAULT_PROP_WIDTH 0
#define DEFAULT_PROP_BAND 1
#define DEFAULT_PROP_LINES_PER_BUFFER 0

#define BUFFER_SIZE (1 << 20) /* bytes, about; stays in the cache */

enum {
  PROP_0,
  PROP_LOCATION,
  PROP_FORMAT,
  PROP_WIDTH,
  PROP_BAND,
  PROP_LINES_PER_BUFFER,
};

struct _GstSlcSrc {
  GstImagingFileSrc parent;

  GstSlcFormat format; /* under the object lock, as the other properties */
  guint width, band, lines_per_buffer;

  GstSlcImage *image; /* from start to stop */
};

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_IMAGING_SLC_CAPS ("{ ci16, cf32, f32 }")));

G_DEFINE_TYPE (GstSlcSrc, gst_slc_src, GST_TYPE_IMAGING_FILE_SRC)
GST_ELEMENT_REGISTER_DEFINE (slcsrc, "slcsrc", GST_RANK_NONE, GST_TYPE_SLC_SRC);

static GType
gst_slc_src_format_get_type (void)
{
  static gsize type;
  static const GEnumValue values[] = {
      {GST_SLC_FORMAT_AUTO, "As the image has it", "auto"},
      {GST_SLC_FORMAT_CI16, "Complex, int16", "ci16"},
      {GST_SLC_FORMAT_CF32, "Complex, float32", "cf32"},
      {GST_SLC_FORMAT_F32, "Real, float32", "f32"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (
        &type, g_enum_register_static ("GstSlcSrcFormat", values));
  return type;
}

/* --- the image -------------------------------------------------------------
 */

static gboolean
is_prm (const gchar *location)
{
  return g_str_has_suffix (location, ".PRM") ||
         g_str_has_suffix (location, ".prm");
}

/* GDAL's own names of what is no file: SENTINEL1_CALIB:..., /vsizip/... */
static gboolean
may_be_file (const gchar *location)
{
  return !strchr (location, ':') && !g_str_has_prefix (location, "/vsi");
}

/* GDAL would wait for the writer of a named pipe. */
static gboolean
is_special (const gchar *location)
{
  return g_file_test (location, G_FILE_TEST_EXISTS) &&
         !g_file_test (location, G_FILE_TEST_IS_REGULAR | G_FILE_TEST_IS_DIR);
}

static GstSlcImage *
open_image (GstSlcSrc *self, const gchar *location, GError **error)
{
  GstSlcFormat format;
  guint width, band;

  GST_OBJECT_LOCK (self);
  format = self->format;
  width = self->width;
  band = self->band;
  GST_OBJECT_UNLOCK (self);

  if (!location || !*location) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "No image to read: set the property location to a PRM file, to raw "
        "samples with width and format, or to an image that GDAL reads.");
    return NULL;
  }
  if (is_prm (location))
    return gst_slc_image_open_prm (location, format, error);
  if (width > 0 && format != GST_SLC_FORMAT_AUTO)
    return gst_slc_image_open_raw (location, format, width, error);
  if (width > 0) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "\"%s\" is read as raw samples, as width is set; these need the "
        "properties width (columns) and format (ci16, cf32 or f32).",
        location);
    return NULL;
  }
  if (may_be_file (location) && !g_file_test (location, G_FILE_TEST_EXISTS)) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "There is no file \"%s\".", location);
    return NULL;
  }
  if (is_special (location)) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ,
        "\"%s\" is no regular file.", location);
    return NULL;
  }
  return gst_slc_image_open_gdal (location, format, band, error);
}

static void
post_open_error (GstSlcSrc *self, const GError *error)
{
  gst_element_message_full (GST_ELEMENT (self), GST_MESSAGE_ERROR,
      error->domain, error->code, g_strdup (error->message), NULL, __FILE__,
      GST_FUNCTION, __LINE__);
}

/* GMTSAR's tools leave lines that the PRM file does not count, but whole ones.
 */
static void
warn_of_rest (GstSlcSrc *self)
{
  const GstSlcImage *image = self->image;

  if (image->rest)
    GST_ELEMENT_WARNING (self, STREAM, FORMAT,
        ("\"%s\" has %" G_GUINT64_FORMAT
         " bytes behind its last whole line of %u samples (%s). Is "
         "num_rng_bins of the PRM file the width of this image?",
            image->path, image->rest, image->width,
            gst_slc_format_name (image->format)),
        (NULL));
}

static GstCaps *
make_caps (const GstSlcImage *image)
{
  static const ImkType types[] = {
      [GST_SLC_FORMAT_CI16] = IMK_TYPE_CI16,
      [GST_SLC_FORMAT_CF32] = IMK_TYPE_CF32,
      [GST_SLC_FORMAT_F32] = IMK_TYPE_F32,
  };
  const GstImagingSlcInfo info = {
      .type = types[image->format],
      .width = image->width,
      .height = image->height,
      .prf = image->prf,
      .doppler = image->doppler,
      .has_doppler = image->doppler != 0,
      .rshift = image->rshift,
      .ashift = image->ashift,
  };

  return gst_imaging_slc_info_to_caps (&info);
}

static gboolean
gst_slc_src_open (
    GstImagingFileSrc *src, const gchar *location, GstImagingFileSrcInfo *info)
{
  GstSlcSrc *self = GST_SLC_SRC (src);
  g_autoptr (GError) error = NULL;
  guint wanted;

  self->image = open_image (self, location, &error);
  if (!self->image) {
    post_open_error (self, error);
    return FALSE;
  }
  warn_of_rest (self);
  info->caps = make_caps (self->image);
  info->unit_name = "lines";
  info->n_units = self->image->height;
  info->unit_size =
      self->image->width * gst_slc_format_size (self->image->format);
  GST_OBJECT_LOCK (self);
  wanted = self->lines_per_buffer
               ? self->lines_per_buffer
               : (guint) MAX (BUFFER_SIZE / info->unit_size, 1);
  GST_OBJECT_UNLOCK (self);
  /* the size of a buffer is an unsigned int in GstBaseSrc */
  wanted = MIN (wanted, MAX (G_MAXINT / info->unit_size, 1));
  info->n_per_buffer = MIN (wanted, self->image->height);
  return TRUE;
}

static gboolean
gst_slc_src_read (GstImagingFileSrc *src, guint64 first, guint n,
    GstBuffer *buffer, GError **error)
{
  GstSlcImage *image = GST_SLC_SRC (src)->image;
  GstMapInfo map;
  gboolean ok;

  if (!gst_buffer_map (buffer, &map, GST_MAP_WRITE)) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE,
        "The memory for line %" G_GUINT64_FORMAT
        " of \"%s\" cannot be written.",
        first, image->path);
    return FALSE;
  }
  ok = image->read (image, first, n, map.data, error);
  gst_buffer_unmap (buffer, &map);
  return ok;
}

static void
gst_slc_src_close (GstImagingFileSrc *src)
{
  g_clear_pointer (&GST_SLC_SRC (src)->image, gst_slc_image_free);
}

/* --- the object --------------------------------------------------------------
 */

static void
gst_slc_src_set_property (
    GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstSlcSrc *self = GST_SLC_SRC (object);

  if (id == PROP_LOCATION) { /* which has the lock */
    gst_imaging_file_src_set_location (
        GST_IMAGING_FILE_SRC (self), g_value_get_string (value));
    return;
  }
  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_FORMAT:
    self->format = g_value_get_enum (value);
    break;
  case PROP_WIDTH:
    self->width = g_value_get_uint (value);
    break;
  case PROP_BAND:
    self->band = g_value_get_uint (value);
    break;
  case PROP_LINES_PER_BUFFER:
    self->lines_per_buffer = g_value_get_uint (value);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_slc_src_get_property (
    GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstSlcSrc *self = GST_SLC_SRC (object);

  if (id == PROP_LOCATION) {
    g_value_take_string (
        value, gst_imaging_file_src_dup_location (GST_IMAGING_FILE_SRC (self)));
    return;
  }
  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_FORMAT:
    g_value_set_enum (value, self->format);
    break;
  case PROP_WIDTH:
    g_value_set_uint (value, self->width);
    break;
  case PROP_BAND:
    g_value_set_uint (value, self->band);
    break;
  case PROP_LINES_PER_BUFFER:
    g_value_set_uint (value, self->lines_per_buffer);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
install_properties (GObjectClass *object_class)
{
  const GParamFlags flags =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;

  g_object_class_install_property (object_class, PROP_LOCATION,
      g_param_spec_string ("location", "Location",
          "Path of the image: a .PRM file of GMTSAR, whose SLC_file is looked "
          "for in the working folder and then beside it; raw samples, which "
          "need width and format; or what GDAL opens, also the name of a "
          "subdataset",
          DEFAULT_PROP_LOCATION, flags));
  g_object_class_install_property (object_class, PROP_FORMAT,
      g_param_spec_enum ("format", "Format",
          "What a sample is, in raw files little endian; auto: ci16 for PRM "
          "files, and what is nearest for GDAL, which converts to others",
          gst_slc_src_format_get_type (), DEFAULT_PROP_FORMAT, flags));
  g_object_class_install_property (object_class, PROP_WIDTH,
      g_param_spec_uint ("width", "Width",
          "Columns (samples a line) of raw samples; other files say their own",
          0, GST_SLC_MAX_WIDTH, DEFAULT_PROP_WIDTH, flags));
  g_object_class_install_property (object_class, PROP_BAND,
      g_param_spec_uint ("band", "Band",
          "Band of an image that GDAL reads, the first being 1", 1, G_MAXINT,
          DEFAULT_PROP_BAND, flags));
  g_object_class_install_property (object_class, PROP_LINES_PER_BUFFER,
      g_param_spec_uint ("lines-per-buffer", "Lines per buffer",
          "Whole lines that a buffer holds, the last one fewer; 0 for as many "
          "as make 1 MiB",
          0, GST_SLC_MAX_HEIGHT, DEFAULT_PROP_LINES_PER_BUFFER, flags));
  gst_type_mark_as_plugin_api (gst_slc_src_format_get_type (), 0);
}

static void
gst_slc_src_class_init (GstSlcSrcClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstImagingFileSrcClass *file_class = GST_IMAGING_FILE_SRC_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (
      gst_slc_src_debug, "slcsrc", 0, "single look complex SAR images");

  object_class->set_property = gst_slc_src_set_property;
  object_class->get_property = gst_slc_src_get_property;
  install_properties (object_class);

  gst_element_class_set_static_metadata (element_class, "SLC source",
      "Source/File", "Reads a single look complex SAR image by lines",
      "gst-imaging contributors");
  gst_element_class_add_static_pad_template (element_class, &src_template);

  file_class->open = gst_slc_src_open;
  file_class->read = gst_slc_src_read;
  file_class->close = gst_slc_src_close;
}

static void
gst_slc_src_init (GstSlcSrc *self)
{
  self->format = DEFAULT_PROP_FORMAT;
  self->width = DEFAULT_PROP_WIDTH;
  self->band = DEFAULT_PROP_BAND;
  self->lines_per_buffer = DEFAULT_PROP_LINES_PER_BUFFER;
  gst_base_src_set_format (GST_BASE_SRC (self), GST_FORMAT_DEFAULT);
}
