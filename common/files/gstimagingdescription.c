/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingdescription-private.h"

#include <math.h>
#include <string.h>

#include "gstimagingfile.h"
#include "gstimagingome.h"
#include "gstimagingquantity.h"

const gchar *
gst_imaging_description_find (gchar **cards, const gchar *key)
{
  gsize n = strlen (key);

  for (; cards && *cards; cards++)
    if (strncmp (*cards, key, n) == 0 && (*cards)[n] == '=')
      return *cards + n + 1;
  return NULL;
}

/* FITS has the exponents of Fortran, too. NaN for what is no finite number:
 * find_damaged () finds it, and its quantity or axis is not used. */
static gboolean
read_number (gchar **cards, const gchar *key, gdouble *number)
{
  g_autofree gchar *text = g_strdup (gst_imaging_description_find (cards, key));
  gchar *end;
  gdouble found;

  if (!text || !*g_strstrip (text))
    return FALSE;
  g_strdelimit (text, "Dd", 'E');
  found = g_ascii_strtod (text, &end);
  *number = *end || !isfinite (found) ? NAN : found;
  return TRUE;
}

void
gst_imaging_description_set_axis (GstStructure *quantity, guint axis,
    const gchar *name, const gchar *unit, gdouble step, gdouble origin)
{
  g_autofree gchar *name_field = g_strdup_printf ("axis-%u-name", axis);
  g_autofree gchar *unit_field = g_strdup_printf ("axis-%u-unit", axis);
  g_autofree gchar *step_field = g_strdup_printf ("axis-%u-step", axis);
  g_autofree gchar *origin_field = g_strdup_printf ("axis-%u-origin", axis);

  gst_structure_set (quantity, name_field, G_TYPE_STRING, name, unit_field,
      G_TYPE_STRING, unit ? unit : "", step_field, G_TYPE_DOUBLE, step,
      origin_field, G_TYPE_DOUBLE, origin, NULL);
}

static void
set_samples (GstStructure *quantity, const gchar *name, const gchar *unit,
    gdouble scale, gdouble offset)
{
  gst_structure_set (quantity, "name", G_TYPE_STRING, name ? name : "", "unit",
      G_TYPE_STRING, unit ? unit : "", "scale", G_TYPE_DOUBLE, scale, "offset",
      G_TYPE_DOUBLE, offset, NULL);
}

void
gst_imaging_description_set (
    GstStructure *quantity, const gchar *member, const gchar *text)
{
  const gchar *last = g_str_has_prefix (member, "axis-") &&
                              g_ascii_isdigit (member[5]) && member[6] == '-'
                          ? member + 7
                          : member;
  gboolean is_axis = last != member;
  gdouble number;
  gchar *end;

  if (strcmp (last, "name") == 0 || strcmp (last, "unit") == 0) {
    gst_structure_set (quantity, member, G_TYPE_STRING, text, NULL);
    return;
  }
  if (strcmp (last, is_axis ? "step" : "scale") != 0 &&
      strcmp (last, is_axis ? "origin" : "offset") != 0)
    return;
  number = g_ascii_strtod (text, &end);
  gst_structure_set (
      quantity, member, G_TYPE_DOUBLE, end > text ? number : NAN, NULL);
}

/* --- our own: PNG, OpenEXR, descriptions of TIFF -------------------------- */

/* Without a scale it is that of each frame, which stands elsewhere. */
static void
read_ours (gchar **cards, GstStructure *quantity)
{
  const gchar *name = gst_imaging_description_find (cards, "quantity");
  const gchar *unit = gst_imaging_description_find (cards, "unit");
  gdouble scale, offset;

  if ((name || unit) && read_number (cards, "scale", &scale) &&
      read_number (cards, "offset", &offset))
    set_samples (quantity, name, unit, scale, offset);
  for (guint i = 0; i < GST_IMAGING_MAX_AXES; i++) {
    g_autofree gchar *name_key = g_strdup_printf ("axis-%u-name", i);
    g_autofree gchar *unit_key = g_strdup_printf ("axis-%u-unit", i);
    g_autofree gchar *step_key = g_strdup_printf ("axis-%u-step", i);
    g_autofree gchar *origin_key = g_strdup_printf ("axis-%u-origin", i);
    gdouble step = 1, origin = 0;

    name = gst_imaging_description_find (cards, name_key);
    if (!name)
      continue;
    read_number (cards, step_key, &step);
    read_number (cards, origin_key, &origin);
    gst_imaging_description_set_axis (quantity, i, name,
        gst_imaging_description_find (cards, unit_key), step, origin);
  }
}

/* --- FITS ----------------------------------------------------------------- */

/* Returns: (transfer full): "count**2" is "counts^2" */
static gchar *
unit_from_fits (const gchar *unit)
{
  GString *text = g_string_new (unit ? unit : "");

  if (!strstr (text->str, "counts"))
    g_string_replace (text, "count", "counts", 0);
  g_string_replace (text, "**", "^", 0);
  return g_strstrip (g_string_free (text, FALSE));
}

/* "RA---TAN", "WAVE-LOG": places that are no multiples of a step */
static gboolean
is_linear (const gchar *ctype)
{
  return !ctype || strlen (ctype) != 8 || ctype[4] != '-';
}

/* @n: of FITS, from 1 on */
static void
read_fits_axis (gchar **cards, guint n, guint axis, GstStructure *quantity)
{
  static const gchar *const usual[] = {"x", "y", "z", "t"};
  g_autofree gchar *ctype_key = g_strdup_printf ("CTYPE%u", n);
  g_autofree gchar *cunit_key = g_strdup_printf ("CUNIT%u", n);
  g_autofree gchar *cdelt_key = g_strdup_printf ("CDELT%u", n);
  g_autofree gchar *crval_key = g_strdup_printf ("CRVAL%u", n);
  g_autofree gchar *crpix_key = g_strdup_printf ("CRPIX%u", n);
  const gchar *ctype = gst_imaging_description_find (cards, ctype_key);
  g_autofree gchar *name = NULL, *unit = NULL;
  gdouble step = 1, value = 0, pixel = 1;
  gboolean has_step = read_number (cards, cdelt_key, &step);

  if (!(has_step || (ctype && *ctype)) || !is_linear (ctype))
    return;
  name = g_ascii_strdown (ctype && *ctype ? ctype : usual[axis], -1);
  if (has_step) { /* else the axis has but a name */
    read_number (cards, crval_key, &value);
    read_number (cards, crpix_key, &pixel);
    unit = unit_from_fits (gst_imaging_description_find (cards, cunit_key));
  }
  gst_imaging_description_set_axis (quantity, axis, g_strstrip (name), unit,
      step, value + (1 - pixel) * step);
}

guint
gst_imaging_description_fits_shift (gchar **cards, guint n_dims)
{
  return n_dims > 2 && !gst_imaging_description_find (cards, "CTYPE1") &&
         gst_imaging_description_find (cards, "CTYPE2");
}

/* Pixel 1 of FITS is sample 0. Axes that are turned against the picture have
 * no place of their own along a row. */
static void
read_fits (gchar **cards, guint n_dims, GstStructure *quantity)
{
  static const gchar *const turned[] = {
      "CD1_1", "CD1_2", "CD2_1", "PC1_2", "PC2_1", "CROTA1", "CROTA2"};
  const gchar *name = gst_imaging_description_find (cards, "QNAME");
  const gchar *stored = gst_imaging_description_find (cards, "QUNIT");
  const gchar *physical = gst_imaging_description_find (cards, "BUNIT");
  g_autofree gchar *unit = unit_from_fits (stored ? stored : physical);
  gdouble scale = 1, offset = 0, number = 0;
  guint shift = gst_imaging_description_fits_shift (cards, n_dims);

  if (stored ? read_number (cards, "QSCALE", &scale) &&
                   read_number (cards, "QOFFSET", &offset)
             : physical || name)
    set_samples (quantity, name, unit, scale, offset);
  for (guint i = 0; i < G_N_ELEMENTS (turned); i++)
    if (read_number (cards, turned[i], &number) && number != 0)
      return;
  for (guint axis = 0; axis < GST_IMAGING_MAX_AXES; axis++)
    read_fits_axis (cards, axis + 1 + shift, axis, quantity);
}

/* --- ImageJ --------------------------------------------------------------- */

static void
read_imagej (gchar **cards, const gchar *text, GstStructure *quantity)
{
  static const gchar *const keys[] = {"XResolution", "YResolution"};
  static const gchar *const names[] = {"x", "y", "z"};
  static const gchar *const others[] = {"channels", "frames"};
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  const gchar *unit = gst_imaging_description_find (lines, "unit");
  gdouble number = 0;

  if (!unit || !*unit)
    return;
  if (strcmp (unit, "micron") == 0 || strcmp (unit, "\302\265m") == 0 ||
      g_ascii_strcasecmp (unit, "\\u00B5m") == 0)
    unit = "um";
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (read_number (cards, keys[i], &number) && number > 0)
      gst_imaging_description_set_axis (
          quantity, i, names[i], unit, 1 / number, 0);
  /* pages that are times or channels, too, are not a step apart */
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    if (read_number (lines, others[i], &number) && number > 1)
      return;
  if (read_number (lines, "spacing", &number) && number != 0)
    gst_imaging_description_set_axis (quantity, 2, names[2], unit, number, 0);
}

/* --- GDAL ----------------------------------------------------------------- */

/* As our rasters have it; of several bands the unit of one is not that of the
 * others. */
static void
read_gdal (const gchar *text, GstStructure *quantity)
{
  g_autoptr (GRegex) item = g_regex_new (
      "<Item name=\"([^\"]*)\"(?: sample=\"([0-9]+)\")?[^>]*>([^<]*)</Item>", 0,
      0, NULL);
  g_autoptr (GMatchInfo) match = NULL;
  g_autoptr (GPtrArray) cards = g_ptr_array_new_with_free_func (g_free);
  gboolean has_bands = strstr (text, " sample=\"1\"") != NULL;

  for (g_regex_match (item, text, 0, &match); g_match_info_matches (match);
       g_match_info_next (match, NULL)) {
    g_autofree gchar *name = g_match_info_fetch (match, 1);
    g_autofree gchar *sample = g_match_info_fetch (match, 2);
    g_autofree gchar *value = g_match_info_fetch (match, 3);
    const gchar *key = strcmp (name, "UNITTYPE") == 0      ? "unit"
                       : strcmp (name, "DESCRIPTION") == 0 ? "quantity"
                       : strcmp (name, "SCALE") == 0       ? "scale"
                       : strcmp (name, "OFFSET") == 0      ? "offset"
                                                           : name;

    if (!*sample || !has_bands)
      g_ptr_array_add (cards, g_strdup_printf ("%s=%s", key, value));
  }
  g_ptr_array_add (cards, g_strdup ("scale=1")); /* the first one counts */
  g_ptr_array_add (cards, g_strdup ("offset=0"));
  g_ptr_array_add (cards, NULL);
  read_ours ((gchar **) cards->pdata, quantity);
}

/* --- all ------------------------------------------------------------------ */

gchar **
gst_imaging_description_flatten (gchar **cards)
{
  GPtrArray *all = g_ptr_array_new ();
  const gchar *text = gst_imaging_description_find (cards, "ImageDescription");

  for (; cards && *cards; cards++)
    if (!g_str_has_prefix (*cards, "ImageDescription="))
      g_ptr_array_add (all, g_strdup (*cards));
  if (text) {
    g_auto (GStrv) lines = g_strsplit (text, "\n", -1);

    for (gchar **line = lines; *line; line++)
      if (strchr (*line, '='))
        g_ptr_array_add (all, g_strdup (*line));
  }
  g_ptr_array_add (all, NULL);
  return (gchar **) g_ptr_array_free (all, FALSE);
}

GstStructure *
gst_imaging_description_from_cards (const GstImagingNdArray *array)
{
  const gchar *text =
      gst_imaging_description_find (array->cards, "ImageDescription");
  const gchar *gdal =
      gst_imaging_description_find (array->cards, "GDAL_METADATA");
  GstStructure *quantity = gst_structure_new_empty (GST_IMAGING_QUANTITY_META);

  if (gdal) {
    read_gdal (gdal, quantity);
  } else if (text && *text == '<') {
    gst_imaging_ome_read (text, quantity);
  } else if (text && g_str_has_prefix (text, "ImageJ=")) {
    read_imagej (array->cards, text, quantity);
  } else {
    g_auto (GStrv) cards = gst_imaging_description_flatten (array->cards);

    read_ours (cards, quantity);
    if (gst_structure_n_fields (quantity) == 0)
      read_fits (cards, array->n_dims, quantity);
  }
  if (gst_structure_n_fields (quantity) > 0)
    return quantity;
  gst_structure_free (quantity);
  return NULL;
}

/* --- of a file ------------------------------------------------------------ */

struct _GstImagingDescription {
  GstStructure *quantity; /* (nullable) */
  GPtrArray *series;      /* of what changes */
  gchar *sidecar;         /* (nullable): of numbered files */
  gchar *note;            /* (nullable): what was dropped */
  GstImagingSidecar told;
  guint64 number; /* of numbered files: this one */
};

void
gst_imaging_description_drop (GstStructure *quantity, const gchar *field)
{
  static const gchar *const samples[] = {"name", "unit", "scale", "offset"};
  static const gchar *const of_axis[] = {"name", "unit", "step", "origin"};
  gboolean is_axis = g_str_has_prefix (field, "axis-");

  for (guint i = 0; i < G_N_ELEMENTS (samples); i++) {
    g_autofree gchar *name = is_axis
                                 ? g_strdup_printf ("%.7s%s", field, of_axis[i])
                                 : g_strdup (samples[i]);

    gst_structure_remove_field (quantity, name);
  }
}

static const gchar *
find_damaged (const GstStructure *quantity)
{
  for (gint i = 0; i < gst_structure_n_fields (quantity); i++) {
    const gchar *field = gst_structure_nth_field_name (quantity, (guint) i);
    gdouble value = 0;

    gst_structure_get_double (quantity, field, &value);
    if (!isfinite (value))
      return field;
  }
  return NULL;
}

/* Returns: (transfer full) (nullable): a sentence about the first one */
static gchar *
drop_damaged (GstStructure *quantity, const gchar *location)
{
  const gchar *field;
  gchar *note = NULL;

  while ((field = find_damaged (quantity))) {
    g_autofree gchar *name = gst_imaging_file_name (location);

    if (!note)
      note = g_strdup_printf (
          "The description of \"%s\" has damaged numbers: %s is no finite number. "
          "%s not used. Correct it in the file, or in the .json beside it.",
          name, field,
          g_str_has_prefix (field, "axis-") ? "This axis is"
                                            : "The quantity and its unit are");
    gst_imaging_description_drop (quantity, field);
  }
  return note;
}

GstImagingDescription *
gst_imaging_description_new (
    const GstImagingNdArray *array, const gchar *location)
{
  GstImagingDescription *self = g_new0 (GstImagingDescription, 1);
  gboolean is_numbered;
  g_autofree gchar *path =
      gst_imaging_sidecar_find (location, &is_numbered, &self->number);

  self->series = g_ptr_array_new ();
  self->quantity = gst_structure_new_empty (GST_IMAGING_QUANTITY_META);
  if (!path || !gst_imaging_sidecar_read (
                   path, array, self->quantity, self->series, &self->told)) {
    gst_structure_free (self->quantity);
    self->quantity = gst_imaging_description_from_cards (array);
  }
  if (self->quantity)
    self->note = drop_damaged (self->quantity, location);
  if (is_numbered && self->series->len > 0)
    self->sidecar = g_steal_pointer (&path);
  else
    self->told.first = self->number = 0;
  return self;
}

gboolean
gst_imaging_description_follow (
    GstImagingDescription *self, const gchar *location)
{
  gboolean is_numbered;
  guint64 number;
  g_autofree gchar *path =
      self->sidecar ? gst_imaging_sidecar_find (location, &is_numbered, &number)
                    : NULL;

  if (g_strcmp0 (path, self->sidecar) != 0 || !path)
    return FALSE;
  self->number = number;
  return TRUE;
}

const gchar *
gst_imaging_description_get_note (const GstImagingDescription *self)
{
  if (self->told.fault)
    return self->told.fault;
  return self->note ? self->note : self->told.note;
}

const gchar *
gst_imaging_description_get_fault (const GstImagingDescription *self)
{
  return self->told.fault;
}

const gchar *
gst_imaging_description_get_flags (const GstImagingDescription *self)
{
  return self->told.flags;
}

const guint32 *
gst_imaging_description_get_cells (
    const GstImagingDescription *self, guint *n_cells)
{
  *n_cells = self->told.cells ? self->told.cells->len / 2 : 0;
  return self->told.cells ? &g_array_index (self->told.cells, guint32, 0)
                          : NULL;
}

gboolean
gst_imaging_description_changes (const GstImagingDescription *self)
{
  return self->series->len > 0;
}

GstStructure *
gst_imaging_description_get_constant (const GstImagingDescription *self)
{
  GstStructure *quantity = gst_imaging_description_at (self, 0);

  for (guint i = 0; quantity && i < self->series->len; i++) {
    const GstImagingSeries *series = g_ptr_array_index (self->series, i);

    gst_imaging_description_drop (quantity, series->field);
  }
  return quantity;
}

GstStructure *
gst_imaging_description_at (const GstImagingDescription *self, guint64 frame)
{
  GstStructure *quantity;

  if (!self->quantity || self->number < self->told.first)
    return NULL;
  quantity = gst_structure_copy (self->quantity);
  frame += self->number - self->told.first;
  for (guint i = 0; i < self->series->len; i++) {
    const GstImagingSeries *series = g_ptr_array_index (self->series, i);
    gdouble value =
        frame >= series->first && frame - series->first < series->values->len
            ? g_array_index (series->values, gdouble, frame - series->first)
            : NAN;

    gst_structure_set (quantity, series->field, G_TYPE_DOUBLE, value, NULL);
  }
  for (guint i = 0; i < self->series->len; i++) {
    const GstImagingSeries *series = g_ptr_array_index (self->series, i);
    gdouble value = NAN;

    gst_structure_get_double (quantity, series->field, &value);
    if (!isfinite (value))
      gst_imaging_description_drop (quantity, series->field);
  }
  if (gst_structure_n_fields (quantity) > 0)
    return quantity;
  gst_structure_free (quantity);
  return NULL;
}

void
gst_imaging_description_free (GstImagingDescription *self)
{
  if (!self)
    return;
  g_ptr_array_unref (self->series);
  g_clear_pointer (&self->quantity, gst_structure_free);
  g_free (self->sidecar);
  g_free (self->note);
  g_free (self->told.flags);
  g_clear_pointer (&self->told.cells, g_array_unref);
  g_free (self->told.note);
  g_free (self->told.fault);
  g_free (self);
}
