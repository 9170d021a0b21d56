/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rasters of float32 or complex float32 that are written row by row: GeoTIFF
 * through GDAL where the name ends with .tif or .tiff, else bare numbers, with
 * an ENVI header and a .vrt of GDAL beside them.
 *
 * Not through GDAL, whose ENVI driver needs the whole of it for a header of
 * twenty lines. */
#pragma once

#include "gstinsarplace.h"

typedef struct {
  const gchar *name, *unit;
} GstInsarBand;

/**
 * GstInsarRasterInfo:
 * @element: name of the element that writes
 * @settings_hash: (nullable): gst_imaging_settings_hash ()
 * @is_complex: pairs of real and imaginary part
 * @bands: @n_bands of them; no copy is made
 * @no_data: value of pixels without data
 * @image: caps of the image that the raster is made from: their spacing and
 *   place */
typedef struct {
  const gchar *element, *settings_hash;
  guint width, height;
  gboolean is_complex;
  const GstInsarBand *bands;
  guint n_bands;
  gdouble no_data;
  const GstCaps *image;
} GstInsarRasterInfo;

typedef struct _GstInsarRaster GstInsarRaster;

/* Of @info no copy is made of @bands and @element.
 * Opens a file under another name in the folder of @location.
 * Returns: NULL with @error set */
GstInsarRaster *gst_insar_raster_new (
    const gchar *location, const GstInsarRasterInfo *info, GError **error);

/* @row: packed, [bands][width]. Returns: FALSE with @error set */
gboolean gst_insar_raster_write (
    GstInsarRaster *self, const gfloat *row, GError **error);

/* All rows are there: writes what describes them, and gives the files their
 * names. Returns: FALSE with @error set */
gboolean gst_insar_raster_finish (
    GstInsarRaster *self, const GstInsarGrid *grid, GError **error);

/* Posts why a file was given up. @error: (nullable); @is_all: there is no other
 * output, so it is an error and not a warning */
void gst_insar_raster_report (
    GstElement *element, const GError *error, gboolean is_all);

/* Without gst_insar_raster_finish () nothing of it stays. */
void gst_insar_raster_free (GstInsarRaster *self);
