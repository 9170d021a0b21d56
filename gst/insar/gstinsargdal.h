/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GDAL, which slcsrc reads images with and the rasters are written with. It
 * brings some 150 libraries, so it is loaded by the first file that needs it,
 * and not with a plug-in. */
#pragma once

#include <glib.h>

#include <cpl_conv.h>
#include <cpl_error.h>
#include <gdal.h>

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
  __typeof__ (GDALGetGCPCount) *n_gcps;
  __typeof__ (GDALGetGCPs) *gcps;
  __typeof__ (GDALGetGCPProjection) *gcp_projection;
  __typeof__ (GDALGetGeoTransform) *transform;
  __typeof__ (GDALGetProjectionRef) *projection;
  __typeof__ (GDALGetDriverByName) *driver;
  __typeof__ (GDALCreate) *create;
  __typeof__ (GDALDatasetRasterIO) *dataset_io;
  __typeof__ (GDALSetGCPs) *set_gcps;
  __typeof__ (GDALSetGeoTransform) *set_transform;
  __typeof__ (GDALSetProjection) *set_projection;
  __typeof__ (GDALSetMetadataItem) *set_metadata;
  __typeof__ (GDALSetDescription) *set_description;
  __typeof__ (GDALSetRasterUnitType) *set_unit;
  __typeof__ (GDALSetRasterNoDataValue) *set_no_data;
  __typeof__ (GDALGetRasterNoDataValue) *no_data;
  __typeof__ (GDALFlushCache) *flush;
  __typeof__ (CPLPushErrorHandler) *push_error_handler;
  __typeof__ (CPLQuietErrorHandler) *quiet;
  __typeof__ (CPLPopErrorHandler) *pop_error_handler;
  __typeof__ (CPLErrorReset) *error_reset;
  __typeof__ (CPLGetLastErrorType) *error_type;
  __typeof__ (CPLGetLastErrorMsg) *error_message;
  __typeof__ (CPLSetThreadLocalConfigOption) *set_option;
} GstInsarGdal;

/* @what: "which reads such images", for the message; @instead: a remedy
 * without GDAL, from "or" on
 * Returns: NULL with @error set where it is not installed */
const GstInsarGdal *gst_insar_gdal_get (
    const gchar *what, const gchar *instead, GError **error);

/* Around all calls of this thread: errors of GDAL are kept for our message. */
void gst_insar_gdal_begin (const GstInsarGdal *gdal, gboolean allow_urls);
void gst_insar_gdal_end (const GstInsarGdal *gdal);
