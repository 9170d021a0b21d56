/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarplane.h"

#include <math.h>
#include <string.h>

#include "files/gstimagingfile.h"
#include "files/gstimagingformats.h"
#include "gstimagingndarray.h"
#ifdef HAVE_GDAL
#include "gstinsargdal.h"
#endif

#define MAX_PIXELS ((gsize) 1 << 31)

/* --- arrays --------------------------------------------------------------- */

/* GDAL, where it is there, knows more of a TIFF: its place, and nodata. */
static gboolean
is_array (const gchar *location)
{
  static const gchar *const names[] = {"npy", "OpenEXR", "PFM", "FITS",
#ifndef HAVE_GDAL
      "TIFF",
#endif
      NULL};
  const gchar *name = gst_imaging_formats_get_name (location);

  return name && g_strv_contains (names, name);
}

static ImkStatus
load_array (GstInsarPlane *self, const gchar *location, ImkError *error)
{
  g_autoptr (GError) why = NULL;
  g_autoptr (GstImagingNdArray) array =
      gst_imaging_nd_array_load (location, &why);
  g_autofree gdouble *values =
      array ? gst_imaging_nd_array_to_double (array, NULL, &why) : NULL;
  gsize n_bands = array && array->n_dims == 3 ? array->dims[2] : 1;

  if (!values)
    return imk_error_set (error, IMK_ERROR_FILE, "%s", why->message);
  if (array->n_dims < 2 || array->n_dims > 3 || array->n_values == 0 ||
      array->dims[0] > G_MAXINT || array->dims[1] > G_MAXINT) {
    g_autofree gchar *found = gst_imaging_nd_array_describe (array);

    return imk_error_set (error, IMK_ERROR_FILE,
        "\"%s\" is %s; expected is [lines, columns] or [lines, columns, 1 or "
        "more].",
        array->name, found);
  }
  self->height = (guint) array->dims[0];
  self->width = (guint) array->dims[1];
  self->values = g_new (gfloat, (gsize) self->width * self->height);
  for (gsize i = 0; i < (gsize) self->width * self->height; i++)
    self->values[i] = (gfloat) values[i * n_bands];
  return IMK_OK;
}

/* --- rasters -------------------------------------------------------------- */

#ifdef HAVE_GDAL

/* A transform without a reference system is one to columns and lines. The first
 * row is the first line also where y falls from row to row: GMTSAR turns
 * topo_ra.grd, r.grd and a.grd upside down, so that they are read like this. */
static void
read_grid (GstInsarPlane *self, const GstInsarGdal *gdal, gpointer dataset)
{
  const gchar *crs = gdal->projection (dataset);
  gdouble t[6];

  if (gdal->transform (dataset, t) != CE_None || (crs && *crs) || t[2] != 0 ||
      t[4] != 0 || t[1] == 0 || t[5] == 0)
    return;
  self->has_grid = TRUE;
  self->origin[0] = t[0];
  self->step[0] = t[1];
  self->origin[1] = MIN (t[3], t[3] + t[5] * self->height);
  self->step[1] = fabs (t[5]);
}

/* ISCE2 writes a reference system into rasters in radar coordinates, too, with
 * the transform of columns and lines. */
static gboolean
is_map (const GstInsarGdal *gdal, gpointer dataset)
{
  const gchar *crs = gdal->projection (dataset);
  gdouble t[6];

  return crs && *crs && gdal->transform (dataset, t) == CE_None &&
         (fabs (t[1]) != 1 || fabs (t[5]) != 1);
}

static void
clear_no_data (
    GstInsarPlane *self, const GstInsarGdal *gdal, GDALRasterBandH band)
{
  int has = 0;
  double no_data = gdal->no_data (band, &has);

  for (gsize i = 0; has && i < (gsize) self->width * self->height; i++)
    if (self->values[i] == (gfloat) no_data)
      self->values[i] = NAN;
}

static gboolean
read_band (GstInsarPlane *self, const GstInsarGdal *gdal, gpointer dataset)
{
  GDALRasterBandH from;

  if (gdal->n_bands (dataset) < 1 ||
      (gsize) gdal->width (dataset) * (gsize) gdal->height (dataset) >
          MAX_PIXELS)
    return FALSE;
  from = gdal->band (dataset, 1);
  self->width = (guint) gdal->width (dataset);
  self->height = (guint) gdal->height (dataset);
  self->values = g_try_new (gfloat, (gsize) self->width * self->height);
  if (!self->values || gdal->raster_io (from, GF_Read, 0, 0, (int) self->width,
                           (int) self->height, self->values, (int) self->width,
                           (int) self->height, GDT_Float32, 0, 0) != CE_None)
    return FALSE;
  read_grid (self, gdal, dataset);
  clear_no_data (self, gdal, from);
  return TRUE;
}

static ImkStatus
load_raster (GstInsarPlane *self, const gchar *location, ImkError *error)
{
  g_autoptr (GError) missing = NULL;
  const GstInsarGdal *gdal = gst_insar_gdal_get (
      "which reads such rasters", "or save it as .npy", &missing);
  g_autofree gchar *why = NULL;
  gpointer dataset;
  gboolean ok = FALSE, on_map = FALSE;

  if (!gdal)
    return imk_error_set (
        error, IMK_ERROR_FILE, "\"%s\": %s", self->name, missing->message);
  gst_insar_gdal_begin (gdal, FALSE);
  dataset = gdal->open (
      location, GDAL_OF_RASTER | GDAL_OF_VERBOSE_ERROR, NULL, NULL, NULL);
  if (dataset) {
    on_map = is_map (gdal, dataset);
    ok = !on_map && read_band (self, gdal, dataset);
    gdal->close (dataset);
  }
  why = gst_imaging_file_escape (gdal->error_message ());
  gst_insar_gdal_end (gdal);
  if (on_map)
    return imk_error_set (error, IMK_ERROR_FILE,
        "\"%s\" is in map coordinates; expected are the columns and lines of "
        "the image. gst-imaging insar-dem makes such heights of a DEM.",
        self->name);
  return ok ? IMK_OK
            : imk_error_set (error, IMK_ERROR_FILE,
                  "\"%s\" has no band 1 of numbers that GDAL reads into "
                  "memory (%s).",
                  self->name, why);
}

#else

static ImkStatus
load_raster (GstInsarPlane *self, const gchar *location, ImkError *error)
{
  return imk_error_set (error, IMK_ERROR_FILE,
      "\"%s\" is no array, and this build has no GDAL, which reads other "
      "rasters. Save it as .npy.",
      self->name);
}

#endif

GstInsarPlane *
gst_insar_plane_load (const gchar *location, ImkError *error)
{
  GstInsarPlane *self = g_new0 (GstInsarPlane, 1);

  self->name = gst_imaging_file_name (location);
  if ((is_array (location) ? load_array : load_raster) (
          self, location, error) == IMK_OK)
    return self;
  gst_insar_plane_free (self);
  return NULL;
}

void
gst_insar_plane_free (GstInsarPlane *self)
{
  if (!self)
    return;
  g_free (self->name);
  g_free (self->values);
  g_free (self);
}

/* --- values --------------------------------------------------------------- */

ImkStatus
gst_insar_plane_fit (
    GstInsarPlane *self, guint width, guint height, ImkError *error)
{
  const gdouble size[2] = {width, height};
  const gdouble n[2] = {self->width, self->height};

  for (guint i = 0; i < 2; i++) {
    gdouble first, last;

    if (!self->has_grid) {
      self->origin[i] = 0;
      self->step[i] = size[i] / n[i];
    }
    first = MIN (self->origin[i], self->origin[i] + n[i] * self->step[i]);
    last = MAX (self->origin[i], self->origin[i] + n[i] * self->step[i]);
    if (!(first < size[i] && last > 0))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "\"%s\" covers %s %.10g to %.10g, and the image has %.0f. It must be "
          "in the radar coordinates of the reference.",
          self->name, i ? "lines" : "columns", first, last, size[i]);
  }
  return IMK_OK;
}

/* Returns: the pixel at or before the middle of sample @at; @share: (out): of
 * the next one */
static guint
find (const GstInsarPlane *self, guint axis, guint at, gfloat *share)
{
  guint n = axis ? self->height : self->width;
  gdouble place = (at + 0.5 - self->origin[axis]) / self->step[axis] - 0.5;
  gdouble first;

  place = CLAMP (place, 0, n - 1.0);
  first = MIN (floor (place), MAX (n, 2) - 2.0);
  *share = (gfloat) (place - first);
  return (guint) first;
}

static gfloat
mix (gfloat a, gfloat b, gfloat share)
{
  return share > 0 ? a + share * (b - a) : a; /* NaN far away is none */
}

void
gst_insar_plane_line (
    const GstInsarPlane *self, guint line, guint width, gfloat *to)
{
  gfloat down;
  guint y = find (self, 1, line, &down);
  const gfloat *above = self->values + (gsize) y * self->width;
  const gfloat *below = y + 1 < self->height ? above + self->width : above;

  for (guint x = 0; x < width; x++) {
    gfloat right;
    guint i = find (self, 0, x, &right), k = MIN (i + 1, self->width - 1);

    to[x] = mix (
        mix (above[i], below[i], down), mix (above[k], below[k], down), right);
  }
}

/* --- holes ---------------------------------------------------------------- */

/* Fills the gaps of @n values, @stride apart. */
static void
fill_line (gfloat *values, guint n, gsize stride)
{
  gint64 left = -1;

  for (gint64 i = 0; i <= n; i++) {
    if (i < n && isnan (values[i * stride]))
      continue;
    for (gint64 k = left + 1; k < i; k++)
      if (left >= 0 && i < n)
        values[k * stride] = mix (values[left * stride], values[i * stride],
            (gfloat) (k - left) / (gfloat) (i - left));
      else if (left >= 0 || i < n)
        values[k * stride] = values[(left >= 0 ? left : i) * stride];
    left = i;
  }
}

gsize
gst_insar_plane_fill (GstInsarPlane *self, gfloat most)
{
  gsize n = (gsize) self->width * self->height, n_holes = 0;

  for (gsize i = 0; i < n; i++) {
    if (!(fabsf (self->values[i]) <= most))
      self->values[i] = NAN;
    n_holes += isnan (self->values[i]);
  }
  if (n_holes == 0 || n_holes == n)
    return n_holes;
  for (guint y = 0; y < self->height; y++)
    fill_line (self->values + (gsize) y * self->width, self->width, 1);
  for (guint x = 0; x < self->width; x++)
    fill_line (self->values + x, self->height, self->width);
  return n_holes;
}
