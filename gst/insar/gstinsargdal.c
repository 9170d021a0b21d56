/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifdef HAVE_GDAL

#include "gstinsargdal.h"

#include <dlfcn.h>

#include <gst/gst.h>

/* Its soname counts from 26 at version 3.0. */
#if GDAL_VERSION_MAJOR != 3
#error "Of this GDAL it is not known what its library is called."
#endif
#define SONAME_NUMBER (26 + GDAL_VERSION_MINOR)

static gpointer
load_library (gpointer data)
{
  static GstInsarGdal gdal;
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
      {&gdal.n_gcps, "GDALGetGCPCount"},
      {&gdal.gcps, "GDALGetGCPs"},
      {&gdal.gcp_projection, "GDALGetGCPProjection"},
      {&gdal.transform, "GDALGetGeoTransform"},
      {&gdal.projection, "GDALGetProjectionRef"},
      {&gdal.driver, "GDALGetDriverByName"},
      {&gdal.create, "GDALCreate"},
      {&gdal.dataset_io, "GDALDatasetRasterIO"},
      {&gdal.set_gcps, "GDALSetGCPs"},
      {&gdal.set_transform, "GDALSetGeoTransform"},
      {&gdal.set_projection, "GDALSetProjection"},
      {&gdal.set_metadata, "GDALSetMetadataItem"},
      {&gdal.set_description, "GDALSetDescription"},
      {&gdal.set_unit, "GDALSetRasterUnitType"},
      {&gdal.set_no_data, "GDALSetRasterNoDataValue"},
      {&gdal.no_data, "GDALGetRasterNoDataValue"},
      {&gdal.flush, "GDALFlushCache"},
      {&gdal.push_error_handler, "CPLPushErrorHandler"},
      {&gdal.quiet, "CPLQuietErrorHandler"},
      {&gdal.pop_error_handler, "CPLPopErrorHandler"},
      {&gdal.error_reset, "CPLErrorReset"},
      {&gdal.error_type, "CPLGetLastErrorType"},
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

const GstInsarGdal *
gst_insar_gdal_get (const gchar *what, const gchar *instead, GError **error)
{
  static GOnce once = G_ONCE_INIT;

  g_once (&once, load_library, NULL);
  if (!once.retval)
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
        "libgdal.so.%d, %s, was not found. Install GDAL %d.%d, %s.",
        SONAME_NUMBER, what, GDAL_VERSION_MAJOR, GDAL_VERSION_MINOR, instead);
  return once.retval;
}

/* GDAL has no switch for URLs. Its readers of network files are limited to one
 * file name, which no file has; drivers that fetch by themselves get a proxy
 * that does not exist. For this thread only: others may use GDAL, too. */
static void
set_urls (const GstInsarGdal *gdal, gboolean allow)
{
  gdal->set_option ("CPL_VSIL_CURL_ALLOWED_FILENAME", allow ? NULL : "none");
  gdal->set_option ("GDAL_HTTP_PROXY", allow ? NULL : "127.0.0.1:9");
  gdal->set_option ("GDAL_HTTPS_PROXY", allow ? NULL : "127.0.0.1:9");
}

void
gst_insar_gdal_begin (const GstInsarGdal *gdal, gboolean allow_urls)
{
  set_urls (gdal, allow_urls);
  gdal->push_error_handler (gdal->quiet);
  gdal->error_reset ();
}

void
gst_insar_gdal_end (const GstInsarGdal *gdal)
{
  gdal->pop_error_handler ();
  set_urls (gdal, TRUE);
}

#endif
