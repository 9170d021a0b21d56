/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarraster.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "files/gstimagingfile.h"
#include "gstinsarslc.h"

#ifdef HAVE_GDAL
#include "gstinsargdal.h"
#endif

struct _GstInsarRaster {
  gchar *location, *settings_hash;
  GstInsarRasterInfo info; /* without the caps */
  GstInsarSpacing spacing;
  GstInsarPlace place;
  gboolean is_placed; /* the image has a place on the ground */
  GstImagingSaver *saver;
  gpointer dataset; /* of GDAL; NULL: bare numbers */
  guint row;
};

static gboolean
has_extension (const gchar *location, const gchar *const *extensions)
{
  const gchar *dot = strrchr (location, '.');

  for (guint i = 0; dot && extensions[i]; i++)
    if (g_ascii_strcasecmp (dot + 1, extensions[i]) == 0)
      return TRUE;
  return FALSE;
}

static gboolean
is_tiff (const gchar *location)
{
  static const gchar *const extensions[] = {"tif", "tiff", NULL};

  return has_extension (location, extensions);
}

/* Returns: whether a raster can have this name; FALSE with @error set */
static gboolean
check_name (const gchar *location, GError **error)
{
  static const gchar *const others[] = {
      "hdr", "vrt", "png", "npy", "fits", "exr", "jpg", NULL};
  g_autofree gchar *name = gst_imaging_file_name (location);

  if (!has_extension (location, others))
    return TRUE;
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
      "\"%s\" is no name of a raster. Take .tif for GeoTIFF, or .img, .bin or "
      "none for numbers with an ENVI header (.hdr) and a .vrt beside them.",
      name);
  return FALSE;
}

/* --- what describes the numbers ------------------------------------------- */

/* Gets each card, a key and its value. */
typedef void (*SetCard) (gpointer data, const gchar *key, const gchar *value);

/* Returns: (transfer full) */
static gchar *
text_of (gdouble number)
{
  GString *text = g_string_new (NULL);

  gst_insar_place_append_number (text, "", number);
  return g_string_free (text, FALSE);
}

static void
set_axis (const gchar *name, guint i, gdouble spacing, gdouble first,
    const GstInsarGrid *grid, SetCard set, gpointer data)
{
  gdouble step = spacing > 0 ? spacing : 1;
  /* the first sample is at 0, in the middle of its pixel */
  gdouble middle = grid->origin[i] + (grid->step[i] - 1) / 2;
  g_autofree gchar *spaced = text_of (step * grid->step[i]);
  g_autofree gchar *origin =
      text_of ((spacing > 0 ? first : 0) + step * middle);
  const gchar *const cards[][2] = {{"name", name},
      {"unit", spacing > 0 ? "m" : "pixel"}, {"step", spaced},
      {"origin", origin}};

  for (guint f = 0; f < G_N_ELEMENTS (cards); f++) {
    g_autofree gchar *key = g_strdup_printf ("axis-%u-%s", i, cards[f][0]);

    set (data, key, cards[f][1]);
  }
}

/* The axes as in GstImagingQuantity. */
static void
set_cards (const GstInsarRaster *self, const GstInsarGrid *grid, SetCard set,
    gpointer data)
{
  const GstInsarSpacing *s = &self->spacing;

  set (data, "software", "gst-imaging " PACKAGE_VERSION);
  set (data, "element", self->info.element);
  if (self->settings_hash)
    set (data, "settings-hash", self->settings_hash);
  if (!self->is_placed)
    set (data, "coordinates",
        "radar: column (slant range) and line (azimuth) of the reference image");
  set_axis ("slant range", 0, s->range, s->near_range, grid, set, data);
  set_axis ("azimuth", 1, s->azimuth, 0, grid, set, data);
}

/* In set_cards (), as a header and as a .vrt have it. */
static gboolean
is_free (const gchar *location, const gchar *suffix, GError **error)
{
  g_autofree gchar *name = g_strconcat (location, suffix, NULL);

  if (gst_imaging_file_check_beside (name,
          strcmp (suffix, ".vrt") == 0 ? "<MDI key=\"software\">gst-imaging "
                                       : "software = gst-imaging ",
          error))
    return TRUE;
  g_prefix_error (error, "The raster needs a file beside it, and ");
  return FALSE;
}

static gboolean
save_text (const GString *text, const gchar *location, const gchar *suffix,
    GError **error)
{
  g_autofree gchar *name = g_strconcat (location, suffix, NULL);

  /* again: it may be hours later */
  return is_free (location, suffix, error) &&
         gst_imaging_file_save (name, text->str, text->len, error);
}

/* --- ENVI's header -------------------------------------------------------- */

static void
set_envi_card (gpointer data, const gchar *key, const gchar *value)
{
  g_autofree gchar *name = g_strdelimit (g_strdup (key), "-", ' ');

  g_string_append_printf (data, "%s = %s\n", name, value);
}

static gboolean
is_geographic (const GstInsarPlace *place)
{
  return place->crs && g_str_has_prefix (place->crs, "GEOG");
}

static gboolean
is_north_up (const GstInsarPlace *place)
{
  const gdouble *t = place->transform;

  return place->has_transform && t[2] == 0 && t[4] == 0 && t[1] > 0 && t[5] < 0;
}

/* Returns: the number behind @key in the WKT; NaN without it */
static gdouble
find_number (const gchar *crs, const gchar *key)
{
  const gchar *at = strstr (crs, key);
  gchar *end;
  gdouble number;

  if (!at)
    return NAN;
  at += strlen (key);
  number = g_ascii_strtod (at, &end);
  return end > at ? number : NAN;
}

/* Returns: 1 to 60, by what a zone of UTM is, whatever its name; 0 for another
 * projection */
static gint
find_utm_zone (const gchar *crs)
{
  gdouble meridian = find_number (crs, "PARAMETER[\"central_meridian\",");
  gint zone = isnan (meridian) ? 0 : (gint) lrint ((meridian + 183) / 6);
  gdouble north = find_number (crs, "PARAMETER[\"false_northing\",");

  return g_str_has_prefix (crs, "PROJCS[") &&
                 strstr (crs, "\"Transverse_Mercator\"") && zone >= 1 &&
                 zone <= 60 && meridian == zone * 6 - 183 &&
                 find_number (crs, "PARAMETER[\"scale_factor\",") == 0.9996 &&
                 find_number (crs, "PARAMETER[\"latitude_of_origin\",") == 0 &&
                 find_number (crs, "PARAMETER[\"false_easting\",") == 500000 &&
                 (north == 0 || north == 1e7)
             ? zone
             : 0;
}

/* What ENVI calls the datum; others stand in the coordinate system string. */
static const gchar *
find_datum (const gchar *crs)
{
  static const gchar *const names[][2] = {{"\"WGS_1984\"", "WGS-84"},
      {"\"WGS_1972\"", "WGS-72"},
      {"\"North_American_Datum_1983\"", "North America 1983"},
      {"\"North_American_Datum_1927\"", "North America 1927"},
      {"\"European_Datum_1950\"", "European 1950"}};

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strstr (crs, names[i][0]))
      return names[i][1];
  return NULL;
}

/* The coordinates of "map info", and what follows them */
static void
append_envi_projection (GString *text, const GstInsarPlace *place)
{
  gint zone = place->crs ? find_utm_zone (place->crs) : 0;
  const gchar *datum = place->crs ? find_datum (place->crs) : NULL;

  if (zone > 0)
    g_string_append_printf (text, ", %d, %s", zone,
        find_number (place->crs, "PARAMETER[\"false_northing\",") > 0
            ? "South"
            : "North");
  if (datum && (zone > 0 || is_geographic (place)))
    g_string_append_printf (text, ", %s", datum);
  g_string_append (text, is_geographic (place) ? ", units=Degrees"
                         : zone > 0            ? ", units=Meters"
                                               : "");
}

/* ENVI counts pixels from 1, latitude comes first. A header has no place for
 * rotations, nor for radar coordinates; the .vrt has. */
static void
append_envi_place (GString *text, const GstInsarRaster *self)
{
  const GstInsarPlace *place = &self->place;
  const gdouble *t = place->transform;

  if (self->is_placed && is_north_up (place)) {
    g_string_append_printf (text, "map info = {%s, 1, 1",
        is_geographic (place)                          ? "Geographic Lat/Lon"
        : place->crs && find_utm_zone (place->crs) > 0 ? "UTM"
                                                       : "Arbitrary");
    gst_insar_place_append_number (text, ", ", t[0]);
    gst_insar_place_append_number (text, ", ", t[3]);
    gst_insar_place_append_number (text, ", ", t[1]);
    gst_insar_place_append_number (text, ", ", -t[5]);
    append_envi_projection (text, place);
    g_string_append (text, "}\n");
    if (place->crs)
      g_string_append_printf (
          text, "coordinate system string = {%s}\n", place->crs);
  }
  if (!place->points || !is_geographic (place))
    return;
  g_string_append (text, "geo points = {");
  for (guint i = 0; i < place->points->len; i++) {
    const GstInsarPoint *p = &g_array_index (place->points, GstInsarPoint, i);

    gst_insar_place_append_number (text, i ? ",\n " : "", p->column + 1);
    gst_insar_place_append_number (text, ", ", p->line + 1);
    gst_insar_place_append_number (text, ", ", p->y);
    gst_insar_place_append_number (text, ", ", p->x);
  }
  g_string_append (text, "}\n");
}

static gboolean
save_envi_header (
    const GstInsarRaster *self, const GstInsarGrid *grid, GError **error)
{
  const GstInsarRasterInfo *info = &self->info;
  g_autoptr (GString) text = g_string_new ("ENVI\n");

  g_string_append_printf (text,
      "samples = %u\nlines = %u\nbands = %u\nheader offset = 0\n"
      "file type = ENVI Standard\ndata type = %d\ninterleave = bil\n"
      "byte order = %d\n",
      info->width, info->height, info->n_bands, info->is_complex ? 6 : 4,
      G_BYTE_ORDER == G_BIG_ENDIAN);
  g_string_append (text, "band names = {");
  for (guint i = 0; i < info->n_bands; i++)
    g_string_append_printf (text, "%s%s", i ? ", " : "", info->bands[i].name);
  g_string_append (text, "}\ndata units = {");
  for (guint i = 0; i < info->n_bands; i++)
    g_string_append_printf (text, "%s%s", i ? ", " : "", info->bands[i].unit);
  g_string_append_printf (
      text, "}\ndata ignore value = %s\n", isnan (info->no_data) ? "NaN" : "0");
  append_envi_place (text, self);
  set_cards (self, grid, set_envi_card, text);
  return save_text (text, self->location, ".hdr", error);
}

/* --- GDAL's .vrt ---------------------------------------------------------- */

static void
append_element (GString *text, const gchar *format, const gchar *content)
{
  g_autofree gchar *line = g_markup_printf_escaped (format, content);

  g_string_append (text, line);
}

static void
set_vrt_card (gpointer data, const gchar *key, const gchar *value)
{
  g_autofree gchar *line =
      g_markup_printf_escaped ("    <MDI key=\"%s\">%s</MDI>\n", key, value);

  g_string_append (data, line);
}

static void
append_vrt_place (GString *text, const GstInsarPlace *place)
{
  const gchar *crs = place->crs ? place->crs : "";

  if (!place->points && *crs)
    append_element (text, "  <SRS>%s</SRS>\n", crs);
  if (!place->points) {
    g_string_append (text, "  <GeoTransform>");
    for (guint i = 0; i < 6; i++)
      gst_insar_place_append_number (text, i ? ", " : "", place->transform[i]);
    g_string_append (text, "</GeoTransform>\n");
    return;
  }
  append_element (text, "  <GCPList Projection=\"%s\">\n", crs);
  for (guint i = 0; i < place->points->len; i++) {
    const GstInsarPoint *p = &g_array_index (place->points, GstInsarPoint, i);

    g_string_append_printf (text, "    <GCP Id=\"%u\"", i + 1);
    gst_insar_place_append_number (text, " Pixel=\"", p->column);
    gst_insar_place_append_number (text, "\" Line=\"", p->line);
    gst_insar_place_append_number (text, "\" X=\"", p->x);
    gst_insar_place_append_number (text, "\" Y=\"", p->y);
    gst_insar_place_append_number (text, "\" Z=\"", p->z);
    g_string_append (text, "\"/>\n");
  }
  g_string_append (text, "  </GCPList>\n");
}

static void
append_vrt_band (GString *text, const GstInsarRaster *self, guint i)
{
  const GstInsarRasterInfo *info = &self->info;
  gsize pixel = info->is_complex ? 8 : 4;
  g_autofree gchar *file = g_path_get_basename (self->location);

  g_string_append_printf (text,
      "  <VRTRasterBand dataType=\"%s\" band=\"%u\" "
      "subClass=\"VRTRawRasterBand\">\n",
      info->is_complex ? "CFloat32" : "Float32", i + 1);
  append_element (
      text, "    <Description>%s</Description>\n", info->bands[i].name);
  append_element (text, "    <UnitType>%s</UnitType>\n", info->bands[i].unit);
  g_string_append_printf (text, "    <NoDataValue>%s</NoDataValue>\n",
      isnan (info->no_data) ? "nan" : "0");
  append_element (text,
      "    <SourceFilename relativeToVRT=\"1\">%s</SourceFilename>\n", file);
  g_string_append_printf (text,
      "    <ImageOffset>%" G_GSIZE_FORMAT "</ImageOffset>\n"
      "    <PixelOffset>%" G_GSIZE_FORMAT "</PixelOffset>\n"
      "    <LineOffset>%" G_GSIZE_FORMAT "</LineOffset>\n"
      "    <ByteOrder>%s</ByteOrder>\n  </VRTRasterBand>\n",
      i * info->width * pixel, pixel, info->n_bands * info->width * pixel,
      G_BYTE_ORDER == G_BIG_ENDIAN ? "MSB" : "LSB");
}

static gboolean
save_vrt (const GstInsarRaster *self, const GstInsarGrid *grid, GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);

  g_string_append_printf (text,
      "<VRTDataset rasterXSize=\"%u\" rasterYSize=\"%u\">\n", self->info.width,
      self->info.height);
  append_vrt_place (text, &self->place);
  g_string_append (text, "  <Metadata>\n");
  set_cards (self, grid, set_vrt_card, text);
  g_string_append (text, "  </Metadata>\n");
  for (guint i = 0; i < self->info.n_bands; i++)
    append_vrt_band (text, self, i);
  g_string_append (text, "</VRTDataset>\n");
  return save_text (text, self->location, ".vrt", error);
}

/* --- GeoTIFF -------------------------------------------------------------- */

#ifdef HAVE_GDAL

static const GstInsarGdal *
get_gdal (GError **error)
{
  return gst_insar_gdal_get ("which writes GeoTIFF",
      "or take a name with .img for numbers with an ENVI header", error);
}

/* GDAL has no place for what a TIFF cannot hold but a file beside it. */
static const GstInsarGdal *
begin_gdal (void)
{
  const GstInsarGdal *gdal = get_gdal (NULL);

  gst_insar_gdal_begin (gdal, FALSE);
  gdal->set_option ("GDAL_PAM_ENABLED", "NO");
  return gdal;
}

/* Returns: FALSE with @error set where GDAL has had one since begin_gdal () */
static gboolean
end_gdal (const GstInsarRaster *self, const GstInsarGdal *gdal, GError **error)
{
  gboolean ok = gdal->error_type () < CE_Failure;

  if (!ok) {
    g_autofree gchar *name = gst_imaging_file_name (self->location);
    g_autofree gchar *why = gst_imaging_file_escape (gdal->error_message ());

    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE,
        "\"%s\" cannot be written: %s. Is the disk full?", name, why);
  }
  gdal->set_option ("GDAL_PAM_ENABLED", NULL);
  gst_insar_gdal_end (gdal);
  return ok;
}

static gboolean
open_tiff (GstInsarRaster *self, GError **error)
{
  static const gchar *const options[] = {"BIGTIFF=IF_SAFER", NULL};
  const GstInsarRasterInfo *info = &self->info;
  const GstInsarGdal *gdal = get_gdal (error);

  if (!gdal)
    return FALSE;
  begin_gdal ();
  self->dataset = gdal->create (gdal->driver ("GTiff"),
      gst_imaging_saver_get_path (self->saver), (int) info->width,
      (int) info->height, (int) info->n_bands,
      info->is_complex ? GDT_CFloat32 : GDT_Float32, (gchar **) options);
  for (guint i = 0; self->dataset && i < info->n_bands; i++) {
    gpointer band = gdal->band (self->dataset, (int) i + 1);

    gdal->set_description (band, info->bands[i].name);
    gdal->set_unit (band, info->bands[i].unit);
    gdal->set_no_data (band, info->no_data);
  }
  return end_gdal (self, gdal, error) && self->dataset;
}

static gboolean
write_tiff (GstInsarRaster *self, const gfloat *row, GError **error)
{
  const GstInsarRasterInfo *info = &self->info;
  const GstInsarGdal *gdal = begin_gdal ();

  (void) !gdal->dataset_io (self->dataset, GF_Write, 0, (int) self->row,
      (int) info->width, 1, (gpointer) row, (int) info->width, 1,
      info->is_complex ? GDT_CFloat32 : GDT_Float32, (int) info->n_bands, NULL,
      0, 0, 0);
  return end_gdal (self, gdal, error);
}

static void
set_tiff_card (gpointer dataset, const gchar *key, const gchar *value)
{
  get_gdal (NULL)->set_metadata (dataset, key, value, NULL);
}

static void
place_tiff (GstInsarRaster *self, const GstInsarGdal *gdal)
{
  GstInsarPlace *place = &self->place;
  guint n = place->points ? place->points->len : 0;
  g_autofree GDAL_GCP *gcps = g_new0 (GDAL_GCP, n + 1);

  if (n == 0) {
    gdal->set_transform (self->dataset, place->transform);
    if (place->crs)
      gdal->set_projection (self->dataset, place->crs);
    return;
  }
  for (guint i = 0; i < n; i++) {
    const GstInsarPoint *p = &g_array_index (place->points, GstInsarPoint, i);

    gcps[i] = (GDAL_GCP){
        .pszId = (gchar *) "",
        .pszInfo = (gchar *) "",
        .dfGCPPixel = p->column,
        .dfGCPLine = p->line,
        .dfGCPX = p->x,
        .dfGCPY = p->y,
        .dfGCPZ = p->z,
    };
  }
  gdal->set_gcps (self->dataset, (int) n, gcps, place->crs ? place->crs : "");
}

/* What GDAL still holds is written here, and a full disk may be noticed by
 * nothing but the size. */
static gboolean
close_tiff (GstInsarRaster *self, const GstInsarGrid *grid, GError **error)
{
  const GstInsarRasterInfo *info = &self->info;
  const GstInsarGdal *gdal = begin_gdal ();
  struct stat now;

  place_tiff (self, gdal);
  set_cards (self, grid, set_tiff_card, self->dataset);
  gdal->flush (self->dataset);
  gdal->close (g_steal_pointer (&self->dataset));
  if (!end_gdal (self, gdal, error))
    return FALSE;
  if (fstat (gst_imaging_saver_get_fd (self->saver), &now) == 0 &&
      (guint64) now.st_size > (guint64) info->width * info->height *
                                  info->n_bands * (info->is_complex ? 8 : 4))
    return TRUE;
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE,
      "\"%s\" cannot be written: not all of it is on the disk. Is it full?",
      self->location);
  return FALSE;
}

static void
drop_tiff (GstInsarRaster *self)
{
  const GstInsarGdal *gdal = begin_gdal ();

  gdal->close (self->dataset);
  end_gdal (self, gdal, NULL);
}

#else

static gboolean
open_tiff (GstInsarRaster *self, GError **error)
{
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
      "\"%s\": this build has no GDAL, which writes GeoTIFF. Take a name with "
      ".img for numbers with an ENVI header.",
      self->location);
  return FALSE;
}

static gboolean
write_tiff (GstInsarRaster *self, const gfloat *row, GError **error)
{
  return FALSE;
}

static gboolean
close_tiff (GstInsarRaster *self, const GstInsarGrid *grid, GError **error)
{
  return FALSE;
}

static void
drop_tiff (GstInsarRaster *self)
{
}

#endif

/* --- rasters -------------------------------------------------------------- */

GstInsarRaster *
gst_insar_raster_new (
    const gchar *location, const GstInsarRasterInfo *info, GError **error)
{
  GstInsarSlcInfo image;
  GstInsarRaster *self;

  if (!check_name (location, error) ||
      (!is_tiff (location) && (!is_free (location, ".hdr", error) ||
                                  !is_free (location, ".vrt", error)))) {
    return NULL;
  }
  self = g_new0 (GstInsarRaster, 1);
  self->location = g_strdup (location);
  self->settings_hash = g_strdup (info->settings_hash);
  self->info = *info;
  gst_insar_slc_info_from_caps (&image, info->image);
  self->spacing = image.spacing;
  gst_insar_place_from_caps (&self->place, info->image);
  self->is_placed = self->place.has_transform || self->place.points;
  self->saver = gst_imaging_saver_new (location, error);
  if (self->saver && (!is_tiff (location) || open_tiff (self, error)))
    return self;
  gst_insar_raster_free (self);
  return NULL;
}

gboolean
gst_insar_raster_write (GstInsarRaster *self, const gfloat *row, GError **error)
{
  const GstInsarRasterInfo *info = &self->info;
  gsize size = (gsize) info->width * info->n_bands * (info->is_complex ? 8 : 4);
  gboolean ok = self->dataset
                    ? write_tiff (self, row, error)
                    : gst_imaging_saver_write (self->saver, row, size, error);

  self->row++;
  return ok;
}

gboolean
gst_insar_raster_finish (
    GstInsarRaster *self, const GstInsarGrid *grid, GError **error)
{
  g_return_val_if_fail (self->row == self->info.height, FALSE);

  gst_insar_place_rescale (&self->place, grid);
  if (self->dataset)
    return close_tiff (self, grid, error) &&
           gst_imaging_saver_finish (self->saver, error);
  return gst_imaging_saver_finish (self->saver, error) &&
         save_envi_header (self, grid, error) && save_vrt (self, grid, error);
}

void
gst_insar_raster_report (
    GstElement *element, const GError *error, gboolean is_all)
{
  if (error && is_all)
    GST_ELEMENT_ERROR (
        element, RESOURCE, WRITE, ("%s", error->message), (NULL));
  else if (error)
    GST_ELEMENT_WARNING (
        element, RESOURCE, WRITE, ("%s", error->message), (NULL));
}

void
gst_insar_raster_free (GstInsarRaster *self)
{
  if (!self)
    return;
  if (self->dataset)
    drop_tiff (self);
  gst_imaging_saver_free (self->saver);
  gst_insar_place_clear (&self->place);
  g_free (self->location);
  g_free (self->settings_hash);
  g_free (self);
}
