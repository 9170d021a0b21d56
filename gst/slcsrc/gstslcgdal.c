/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstslcimage.h"

#ifdef HAVE_GDAL

#include <math.h>

#include "files/gstimagingfile.h"
#include "insar/gstinsargdal.h"

static const GstInsarGdal *
get_library (GError **error)
{
  return gst_insar_gdal_get ("which reads such images",
      "or read raw samples with width and format", error);
}

static void
close_dataset (gpointer dataset)
{
  get_library (NULL)->close (dataset);
}

static gboolean
read_gdal (
    GstSlcImage *self, guint64 first, guint n, gpointer data, GError **error)
{
  static const GDALDataType types[] = {
      [IMK_TYPE_CI16] = GDT_CInt16,
      [IMK_TYPE_CF32] = GDT_CFloat32,
      [IMK_TYPE_F32] = GDT_Float32,
  };
  const GstInsarGdal *gdal = get_library (NULL);
  gboolean ok;

  gst_insar_gdal_begin (gdal, self->allow_urls);
  ok = gdal->raster_io (self->band, GF_Read, 0, (int) first,
           (int) self->info.width, (int) n, data, (int) self->info.width,
           (int) n, types[self->info.type], 0, 0) == CE_None;
  if (!ok) {
    g_autofree gchar *why = gst_imaging_file_escape (gdal->error_message ());

    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ,
        "Lines %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
        " of \"%s\" cannot be read: %s.",
        first, first + n - 1, self->path, why);
  }
  gst_insar_gdal_end (gdal);
  return ok;
}

/* Returns: NULL with @error set: the words of GDAL and the remedy */
static gpointer
open_dataset (const GstInsarGdal *gdal, const gchar *location,
    gboolean allow_urls, GError **error)
{
  g_autofree gchar *name = gst_imaging_file_name (location), *why = NULL;
  gpointer dataset;

  gst_insar_gdal_begin (gdal, allow_urls);
  dataset = gdal->open (
      location, GDAL_OF_RASTER | GDAL_OF_VERBOSE_ERROR, NULL, NULL, NULL);
  why = gst_imaging_file_escape (gdal->error_message ());
  gst_insar_gdal_end (gdal);
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

static ImkType
nearest_type (const GstInsarGdal *gdal, GDALDataType type)
{
  if (type == GDT_CInt16)
    return IMK_TYPE_CI16;
  return gdal->is_complex (type) ? IMK_TYPE_CF32 : IMK_TYPE_F32;
}

static gboolean
describe_band (GstSlcImage *self, const GstInsarGdal *gdal, GstSlcFormat format,
    guint band, GError **error)
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
  self->info.type = gst_slc_format_type (format, nearest_type (gdal, type));
  if (self->info.type == IMK_TYPE_F32 && gdal->is_complex (type)) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "\"%s\" has complex samples (%s), of which format=f32 would read the "
        "real parts alone. Take cf32 or auto.",
        self->path, gdal->type_name (type));
    return FALSE;
  }
  self->info.width = (guint) width;
  self->info.height = (guint) height;
  return TRUE;
}

static gchar *
copy_crs (const gchar *crs)
{
  return crs && *crs && g_utf8_validate (crs, -1, NULL) ? g_strdup (crs) : NULL;
}

/* Points before a transform: of a file with both, they are those of the radar.
 */
static void
read_place (GstSlcImage *self, const GstInsarGdal *gdal)
{
  GstInsarPlace *place = &self->place;
  int n = gdal->n_gcps (self->dataset);
  const GDAL_GCP *gcps = gdal->gcps (self->dataset);

  if (n > 0) {
    place->points = g_array_new (FALSE, FALSE, sizeof (GstInsarPoint));
    place->crs = copy_crs (gdal->gcp_projection (self->dataset));
    for (int i = 0; i < n; i++) {
      GstInsarPoint point = {gcps[i].dfGCPPixel, gcps[i].dfGCPLine,
          gcps[i].dfGCPX, gcps[i].dfGCPY, gcps[i].dfGCPZ};

      g_array_append_val (place->points, point);
    }
  } else if (gdal->transform (self->dataset, place->transform) == CE_None) {
    place->has_transform = TRUE;
    place->crs = copy_crs (gdal->projection (self->dataset));
  }
}

static void
read_no_data (GstSlcImage *self, const GstInsarGdal *gdal)
{
  int has = 0;

  self->no_data = gdal->no_data (self->band, &has);
  self->has_no_data = has && !isnan (self->no_data);
}

GstSlcImage *
gst_slc_image_open_gdal (const gchar *location, GstSlcFormat format, guint band,
    gboolean allow_urls, GError **error)
{
  const GstInsarGdal *gdal = get_library (error);
  gpointer dataset =
      gdal ? open_dataset (gdal, location, allow_urls, error) : NULL;
  GstSlcImage *self;

  if (!dataset)
    return NULL;
  self = g_new0 (GstSlcImage, 1);
  self->path = gst_imaging_file_name (location);
  self->read = read_gdal;
  self->fd = -1;
  self->allow_urls = allow_urls;
  self->dataset = dataset;
  self->close = close_dataset;
  read_place (self, gdal);
  if (describe_band (self, gdal, format, band, error)) {
    read_no_data (self, gdal);
    return self;
  }
  gst_slc_image_free (self);
  return NULL;
}

#else

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
