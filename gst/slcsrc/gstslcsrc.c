/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-slcsrc
 * @title: slcsrc
 * @short_description: reads a single look complex SAR image by lines
 *
 * Reads a single look complex (SLC) image of a synthetic aperture radar: what
 * a PRM file of GMTSAR says; .npy of complex64 or float32; raw numbers in
 * little endian, line after line, when width and format are set; else what GDAL
 * reads: ENVI, ISCE's .vrt, GeoTIFF, Sentinel-1 and more.
 *
 * | format | a sample                                | GMTSAR         |
 * | ------ | --------------------------------------- | -------------- |
 * | ci16   | real and imaginary part, int16 each     | default        |
 * | cf32   | the same, float32                       |                |
 * | f32    | a real number, float32                  | `xcorr -real`  |
 *
 * A buffer of application/x-slc holds whole lines; its offset is the number of
 * the first, its offset-end that of the next. Seeking counts lines (format
 * DEFAULT). The file is read buffer by buffer, so it may be larger than
 * memory. After every tenth of it an element message "slcsrc-progress" says how
 * far it is; on a terminal, ` ! progressreport format=default ! ` does.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 slcsrc location=ref.PRM ! x.reference slcsrc
 * location=sec.PRM ! x.secondary insarxcorr name=x ! filesink
 * location=freq_xcorr.dat
 * ]|
 */
#include "gstimagingfilesrc.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include "gstimagingpost.h"
#include "insar/gstinsarslc.h"
#include "gstslcimage.h"

#define GST_TYPE_SLC_SRC (gst_slc_src_get_type ())
G_DECLARE_FINAL_TYPE (GstSlcSrc, gst_slc_src, GST, SLC_SRC, GstImagingFileSrc)

GST_ELEMENT_REGISTER_DECLARE (slcsrc);

GST_DEBUG_CATEGORY_STATIC (gst_slc_src_debug);
#define GST_CAT_DEFAULT gst_slc_src_debug

#define BUFFER_SIZE (1 << 20) /* bytes, about; stays in the cache */

typedef struct {
  GstImagingFileSrcSettings file;
  GstSlcFormat format;
  guint width, band, lines_per_buffer;
  gint rshift, ashift;
  gboolean allow_urls;
} Settings;

struct _GstSlcSrc {
  GstImagingFileSrc parent;

  GstSlcImage *image; /* from start to stop */
};

static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
        GST_STATIC_CAPS (GST_INSAR_SLC_CAPS ("{ ci16, cf32, f32 }")));

G_DEFINE_TYPE (GstSlcSrc, gst_slc_src, GST_TYPE_IMAGING_FILE_SRC)
GST_ELEMENT_REGISTER_DEFINE (slcsrc, "slcsrc", GST_RANK_NONE, GST_TYPE_SLC_SRC);

static const GEnumValue format_values[] = {
    {GST_SLC_FORMAT_AUTO, "As the image has it", "auto"},
    {GST_SLC_FORMAT_CI16, "Complex, int16", "ci16"},
    {GST_SLC_FORMAT_CF32, "Complex, float32", "cf32"},
    {GST_SLC_FORMAT_F32, "Real, float32", "f32"},
    {0, NULL, NULL},
};

static const GstImagingSetting settings[] = {
    GST_IMAGING_PATH ("location", NEXT_START, 0, Settings, file.location, NULL,
        NULL,
        "Path of the image: a .PRM file of GMTSAR (its SLC_file is searched in "
        "the working folder, then beside it); .npy of complex64 or float32 "
        "[lines, samples]; raw samples, which need width and format; or any "
        "file or subdataset that GDAL opens"),
    GST_IMAGING_ENUM ("format", NEXT_START, 0, Settings, format,
        "GstSlcSrcFormat", format_values,
        "Type of a sample, little endian in raw files. auto: ci16 for PRM "
        "files, the nearest type for GDAL, which converts to the others"),
    GST_IMAGING_UINT ("width", NEXT_START, 0, Settings, width, 0,
        GST_SLC_MAX_WIDTH, "samples",
        "Number of columns (samples per line) of raw files. 0 for other files, "
        "whose headers give it"),
    GST_IMAGING_UINT ("band", NEXT_START, 0, Settings, band, 1, G_MAXINT, NULL,
        "Number of the band, from 1, of an image that GDAL reads"),
    GST_IMAGING_INT ("rshift", NEXT_START, 0, Settings, rshift, -1000000,
        1000000, "columns",
        "Columns that the image is behind its reference, added to rshift of a "
        "PRM file. insarxcorr searches around it"),
    GST_IMAGING_INT ("ashift", NEXT_START, 0, Settings, ashift, -1000000,
        1000000, "lines", "The same in lines, added to ashift"),
    GST_IMAGING_UINT ("lines-per-buffer", NEXT_START, 0, Settings,
        lines_per_buffer, 0, GST_SLC_MAX_HEIGHT, "lines",
        "Number of whole lines in a buffer; the last buffer may have fewer. 0: "
        "as many as make 1 MiB"),
    GST_IMAGING_BOOLEAN ("allow-urls", NEXT_START, GST_IMAGING_NEUTRAL,
        Settings, allow_urls,
        "Allow GDAL to open network addresses, also those that a file such as "
        ".vrt names. Required for a location that is a URL"),
};

static void
init_settings (gpointer data)
{
  ((Settings *) data)->band = 1;
}

static const GstImagingSettingsTable table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (Settings),
    .init = init_settings,
};

static const Settings *
settings_of (GstSlcSrc *self)
{
  return gst_imaging_settings_now (gst_imaging_settings_of (self));
}

/* --- the image ------------------------------------------------------------ */

static gboolean
is_prm (const gchar *location)
{
  return g_str_has_suffix (location, ".PRM") ||
         g_str_has_suffix (location, ".prm");
}

static gboolean
is_npy (const gchar *location)
{
  return g_str_has_suffix (location, ".npy");
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
  const Settings *s = settings_of (self);
  GstSlcFormat format = s->format;
  guint width = s->width;

  if (!location) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "No image to read: set the property location to a PRM file, to raw "
        "samples with width and format, or to an image that GDAL reads.");
    return NULL;
  }
  if (is_prm (location))
    return gst_slc_image_open_prm (location, format, error);
  if (width > 0 && format != GST_SLC_FORMAT_AUTO)
    return gst_slc_image_open_raw (location, format, width, error);
  if (width == 0 && is_npy (location))
    return gst_slc_image_open_npy (location, format, error);
  if (width > 0) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "\"%s\" is read as raw samples, as width is set; these need the "
        "properties width (columns) and format (ci16, cf32 or f32).",
        location);
    return NULL;
  }
  if (may_be_file (location) && g_access (location, F_OK) < 0) {
    if (errno != ENOENT)
      g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ,
          "\"%s\" cannot be opened: %s.", location, g_strerror (errno));
    else
      g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
          "There is no file \"%s\".", location);
    return NULL;
  }
  if (is_special (location)) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ,
        "\"%s\" is no regular file.", location);
    return NULL;
  }
  return gst_slc_image_open_gdal (
      location, format, s->band, s->allow_urls, error);
}

/* Images that can be read but are probably not what the user means. */
static void
warn_of_doubts (GstSlcSrc *self)
{
  const GstSlcImage *image = self->image;

  /* GMTSAR's tools leave lines that the PRM file does not count, but whole ones
   */
  if (image->rest)
    GST_ELEMENT_WARNING (self, STREAM, FORMAT,
        ("\"%s\" has %" G_GUINT64_FORMAT
         " bytes behind its last whole line of %u samples (%s). Is "
         "num_rng_bins of the PRM file the width of this image?",
            image->path, image->rest, image->info.width,
            imk_type_name (image->info.type)),
        (NULL));
  /* GMTSAR's order, which users of a product from elsewhere may not know */
  if (image->other)
    GST_ELEMENT_WARNING (self, RESOURCE, OPEN_READ,
        ("\"%s\" of the working folder is read, and not \"%s\", which is beside "
         "the PRM file. Remove one of them, or work in the folder of the PRM "
         "file.",
            image->path, image->other),
        (NULL));
  if (image->contradiction)
    GST_ELEMENT_WARNING (
        self, STREAM, FORMAT, ("%s", image->contradiction), (NULL));
  if (image->looks_swapped)
    GST_ELEMENT_WARNING (self, STREAM, FORMAT,
        ("The samples of \"%s\" look like big endian ones, and are read as "
         "little endian: in the other order they would be ordinary numbers. Swap "
         "the bytes of each number, or read them by GDAL with an ENVI header that "
         "says \"byte order = 1\".",
            image->path),
        (NULL));
}

static GstCaps *
make_caps (const GstSlcImage *image, const Settings *settings)
{
  GstInsarSlcInfo info = image->info;
  GstCaps *caps;

  info.rshift += settings->rshift;
  info.ashift += settings->ashift;
  caps = gst_insar_slc_info_to_caps (&info);
  gst_insar_place_to_caps (&image->place, caps);
  if (image->has_no_data)
    gst_caps_set_simple (caps, "nodata", G_TYPE_DOUBLE, image->no_data, NULL);
  return caps;
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
    gst_imaging_post_error (self, error);
    return FALSE;
  }
  warn_of_doubts (self);
  info->caps = make_caps (self->image, settings_of (self));
  info->unit_name = "lines";
  info->n_units = self->image->info.height;
  info->unit_size = gst_slc_image_line_size (self->image);
  wanted = settings_of (self)->lines_per_buffer;
  if (wanted == 0)
    wanted = (guint) MAX (BUFFER_SIZE / info->unit_size, 1);
  /* the size of a buffer is an unsigned int in GstBaseSrc */
  wanted = MIN (wanted, MAX (G_MAXINT / info->unit_size, 1));
  info->n_per_buffer = MIN (wanted, self->image->info.height);
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

/* --- the object ----------------------------------------------------------- */

static void
gst_slc_src_class_init (GstSlcSrcClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstImagingFileSrcClass *file_class = GST_IMAGING_FILE_SRC_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (
      gst_slc_src_debug, "slcsrc", 0, "single look complex SAR images");

  gst_imaging_settings_install (G_OBJECT_CLASS (klass), &table);

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
  gst_imaging_settings_new (GST_ELEMENT (self), &table, NULL);
  gst_base_src_set_format (GST_BASE_SRC (self), GST_FORMAT_DEFAULT);
}
