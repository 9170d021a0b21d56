/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstslcimage.h"

#ifdef HAVE_GDAL

#include <dlfcn.h>

#include <cpl_conv.h>
#include <cpl_error.h>
#include <gdal.h>

#include "files/gstimagingfile.h"

/* GDAL brings some 150 libraries, so it is loaded by the first image that needs
 * it, and not with the plug-in. Its soname counts from 26 at version 3.0. */
#if GDAL_VERSION_MAJOR != 3
#error "Of this GDAL it is not known what its library is called."
#endif
#define SONAME_NUMBER (26 + GDAL_VERSION_MINOR)

typedef struct {
  __typeof__ (GDALAllRegister) *register_all;
  __typeof__ (GDALOpenEx) *open;
  __typeof__ (GDALClose) *close;
  __typeof__ (GDALGetRasterXSize) *width;
  __typeof__ (GDALGetRasterYSize) *height;
  __typeof__ (GDALGetRasterCount) *n_bands;
  __typeof__ (GDALGetRasterBand) *band;
  __typeof__ (GDALGetRasterDataType) *type;
  __typeof__ (GDALGetDataTypeName) *type_name;
  __typeof__ (GDALDataTypeIsComplex) *is_complex;
  __typeof__ (GDALRasterIO) *raster_io;
  __typeof__ (CPLPushErrorHandler) *push_error_handler;
  __typeof__ (CPLQuietErrorHandler) *quiet;
  __typeof__ (CPLPopErrorHandler) *pop_error_handler;
  __typeof__ (CPLErrorReset) *error_reset;
  __typeof__ (CPLGetLastErrorMsg) *error_message;
  __typeof__ (CPLSetThreadLocalConfigOption) *set_option;
} Gdal;

static gpointer
load_library (gpointer data)
{
  static Gdal gdal;
  const struct {
    gpointer function;
    const gchar *name;
  } symbols[] = {
      {&gdal.register_all, "GDALAllRegister"},
      {&gdal.open, "GDALOpenEx"},
      {&gdal.close, "GDALClose"},
      {&gdal.width, "GDALGetRasterXSize"},
      {&gdal.height, "GDALGetRasterYSize"},
      {&gdal.n_bands, "GDALGetRasterCount"},
      {&gdal.band, "GDALGetRasterBand"},
      {&gdal.type, "GDALGetRasterDataType"},
      {&gdal.type_name, "GDALGetDataTypeName"},
      {&gdal.is_complex, "GDALDataTypeIsComplex"},
      {&gdal.raster_io, "GDALRasterIO"},
      {&gdal.push_error_handler, "CPLPushErrorHandler"},
      {&gdal.quiet, "CPLQuietErrorHandler"},
      {&gdal.pop_error_handler, "CPLPopErrorHandler"},
      {&gdal.error_reset, "CPLErrorReset"},
      {&gdal.error_message, "CPLGetLastErrorMsg"},
      {&gdal.set_option, "CPLSetThreadLocalConfigOption"},
  };
  gchar *name = g_strdup_printf ("libgdal.so.%d", SONAME_NUMBER);
  void *handle = dlopen (name, RTLD_NOW | RTLD_LOCAL);

  g_free (name);
  for (guint i = 0; handle && i < G_N_ELEMENTS (symbols); i++) {
    void *found = dlsym (handle, symbols[i].name);

    if (!found)
      return NULL;
    *(void **) symbols[i].function = found;
  }
  if (handle)
    gdal.register_all ();
  return handle ? &gdal : NULL;
}

static const Gdal *
get_library (GError **error)
{
  static GOnce once = G_ONCE_INIT;

  g_once (&once, load_library, NULL);
  if (!once.retval)
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "libgdal.so.%d, which reads such images, was not found. Install GDAL "
        "%d.%d, or read raw samples with width and format.",
        SONAME_NUMBER, GDAL_VERSION_MAJOR, GDAL_VERSION_MINOR);
  return once.retval;
}

void
gst_slc_image_close_gdal (gpointer dataset)
{
  if (dataset)
    get_library (NULL)->close (dataset);
}

/* GDAL has no switch for URLs. Its readers of network files are limited to one
 * file name, which no file has; drivers that fetch by themselves get a proxy
 * that does not exist. For this thread only: others may use GDAL, too. */
static void
set_urls (const Gdal *gdal, gboolean allow)
{
  gdal->set_option ("CPL_VSIL_CURL_ALLOWED_FILENAME", allow ? NULL : "none");
  gdal->set_option ("GDAL_HTTP_PROXY", allow ? NULL : "127.0.0.1:9");
  gdal->set_option ("GDAL_HTTPS_PROXY", allow ? NULL : "127.0.0.1:9");
}

/* Receives the errors of GDAL for our message. */
static void
begin (const Gdal *gdal, gboolean allow_urls)
{
  set_urls (gdal, allow_urls);
  gdal->push_error_handler (gdal->quiet);
  gdal->error_reset ();
}

static void
end (const Gdal *gdal)
{
  gdal->pop_error_handler ();
  set_urls (gdal, TRUE);
}

static gboolean
read_gdal (
    GstSlcImage *self, guint64 first, guint n, gpointer data, GError **error)
{
  static const GDALDataType types[] = {
      [GST_SLC_FORMAT_CI16] = GDT_CInt16,
      [GST_SLC_FORMAT_CF32] = GDT_CFloat32,
      [GST_SLC_FORMAT_F32] = GDT_Float32,
  };
  const Gdal *gdal = get_library (NULL);
  gboolean ok;

  begin (gdal, self->allow_urls);
  ok = gdal->raster_io (self->band, GF_Read, 0, (int) first, (int) self->width,
           (int) n, data, (int) self->width, (int) n, types[self->format], 0,
           0) == CE_None;
  if (!ok) {
    g_autofree gchar *why = gst_imaging_file_escape (gdal->error_message ());

    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ,
        "Lines %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
        " of \"%s\" cannot be read: %s.",
        first, first + n - 1, self->path, why);
  }
  end (gdal);
  return ok;
}

/* Returns: NULL with @error set: the words of GDAL and the remedy */
static gpointer
open_dataset (const Gdal *gdal, const gchar *location, gboolean allow_urls,
    GError **error)
{
  g_autofree gchar *name = gst_imaging_file_name (location), *why = NULL;
  gpointer dataset;

  begin (gdal, allow_urls);
  dataset = gdal->open (
      location, GDAL_OF_RASTER | GDAL_OF_VERBOSE_ERROR, NULL, NULL, NULL);
  why = gst_imaging_file_escape (gdal->error_message ());
  end (gdal);
  if (!dataset && g_file_test (location, G_FILE_TEST_IS_DIR))
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "\"%s\" is a folder; of a Sentinel-1 product name a .tiff in its "
        "folder measurement, one for each swath and polarisation (GDAL: %s).",
        name, why);
  else if (!dataset)
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "\"%s\" is no .PRM file, and GDAL does not read it either (%s). If it "
        "is raw samples without a header beside it, they need the properties "
        "width (columns) and format (ci16, cf32 or f32).",
        name, why);
  return dataset;
}

static GstSlcFormat
nearest_format (const Gdal *gdal, GDALDataType type)
{
  if (type == GDT_CInt16)
    return GST_SLC_FORMAT_CI16;
  return gdal->is_complex (type) ? GST_SLC_FORMAT_CF32 : GST_SLC_FORMAT_F32;
}

static gboolean
describe_band (GstSlcImage *self, const Gdal *gdal, guint band, GError **error)
{
  int width = gdal->width (self->dataset),
      height = gdal->height (self->dataset);
  int n_bands = gdal->n_bands (self->dataset);
  GDALDataType type;

  if ((int) band > n_bands) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "\"%s\" has %d bands, and band is %u.%s", self->path, n_bands, band,
        n_bands ? "" : " Name one of its subdatasets; gdalinfo lists them.");
    return FALSE;
  }
  if (width > GST_SLC_MAX_WIDTH || height > GST_SLC_MAX_HEIGHT) {
    g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
        "\"%s\" has %d lines of %d samples; an image can have %d of %d.",
        self->path, height, width, GST_SLC_MAX_HEIGHT, GST_SLC_MAX_WIDTH);
    return FALSE;
  }
  self->band = gdal->band (self->dataset, (int) band);
  type = gdal->type (self->band);
  if (self->format == GST_SLC_FORMAT_AUTO)
    self->format = nearest_format (gdal, type);
  if (self->format == GST_SLC_FORMAT_F32 && gdal->is_complex (type)) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "\"%s\" has complex samples (%s), of which format=f32 would read the "
        "real parts alone. Take cf32 or auto.",
        self->path, gdal->type_name (type));
    return FALSE;
  }
  self->width = (guint) width;
  self->height = (guint) height;
  return TRUE;
}

GstSlcImage *
gst_slc_image_open_gdal (const gchar *location, GstSlcFormat format, guint band,
    gboolean allow_urls, GError **error)
{
  const Gdal *gdal = get_library (error);
  gpointer dataset =
      gdal ? open_dataset (gdal, location, allow_urls, error) : NULL;
  GstSlcImage *self;

  if (!dataset)
    return NULL;
  self = g_new0 (GstSlcImage, 1);
  self->path = gst_imaging_file_name (location);
  self->format = format;
  self->read = read_gdal;
  self->fd = -1;
  self->allow_urls = allow_urls;
  self->dataset = dataset;
  if (describe_band (self, gdal, band, error))
    return self;
  gst_slc_image_free (self);
  return NULL;
}

#else

void
gst_slc_image_close_gdal (gpointer dataset)
{
}

GstSlcImage *
gst_slc_image_open_gdal (const gchar *location, GstSlcFormat format, guint band,
    gboolean allow_urls, GError **error)
{
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
      "\"%s\" is no .PRM file, so it is read as raw samples, and these need "
      "the properties width (columns) and format (ci16, cf32 or f32). This "
      "build has no GDAL, which reads other images.",
      location);
  return NULL;
}

#endif
