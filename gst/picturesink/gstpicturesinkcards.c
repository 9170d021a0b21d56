/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstpicturesinkcards.h"

#include <string.h>

#include "gstimagingquantity.h"
#include "gstpicturesinkome.h"

typedef struct {
  GPtrArray *list;
  const GstPictureSinkFormat *format;
  const GstStructure *quantity; /* (nullable) */
  gboolean several;
} Cards;

static void
add (Cards *self, const gchar *key, const gchar *value)
{
  if (value && *value)
    g_ptr_array_add (self->list, g_strdup_printf ("%s=%s", key, value));
}

static void
add_number (Cards *self, const gchar *key, gdouble number)
{
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];

  add (self, key, g_ascii_dtostr (digits, sizeof (digits), number));
}

static gdouble
get_number (const GstStructure *s, const gchar *field, gdouble usual)
{
  gst_structure_get_double (s, field, &usual);
  return usual;
}

/* --- samples -------------------------------------------------------------- */

/* Samples that are the quantity itself stay so. */
static gboolean
is_quantity (const Cards *self)
{
  return get_number (self->quantity, "scale", 1) == 1 &&
         get_number (self->quantity, "offset", 0) == 0;
}

static void
add_samples (Cards *self)
{
  if (self->format->bits > 0 && self->format->bits < 16)
    add_number (self, "BITS", self->format->bits);
  if (self->format->bayer) {
    g_autofree gchar *pattern = g_ascii_strup (self->format->bayer, -1);

    add (self, "BAYERPAT", pattern);
  }
}

/* --- FITS ----------------------------------------------------------------- */

/* As the standard spells units: "counts^2" is "count**2". Returns: (transfer
 * full) (nullable) */
static gchar *
fits_unit (const gchar *unit)
{
  GString *text = unit ? g_string_new (unit) : NULL;

  if (!text)
    return NULL;
  g_string_replace (text, "counts", "count", 0);
  g_string_replace (text, "pixels", "pixel", 0);
  g_string_replace (text, "^", "**", 0);
  return g_string_free (text, FALSE);
}

static void
add_fits_unit (Cards *self, const gchar *key, const gchar *field)
{
  g_autofree gchar *unit =
      fits_unit (gst_structure_get_string (self->quantity, field));

  add (self, key, unit);
}

/* The first axis of FITS is that of the channels, if there are any. */
static void
add_fits_axis (Cards *self, guint axis)
{
  guint n = axis + 1 + (self->format->frame.n_dims > 2);
  const GstStructure *q = self->quantity;
  g_autofree gchar *name = g_strdup_printf ("axis-%u-name", axis);
  g_autofree gchar *unit = g_strdup_printf ("axis-%u-unit", axis);
  g_autofree gchar *step = g_strdup_printf ("axis-%u-step", axis);
  g_autofree gchar *origin = g_strdup_printf ("axis-%u-origin", axis);
  g_autofree gchar *ctype = g_strdup_printf ("CTYPE%u", n);
  g_autofree gchar *cunit = g_strdup_printf ("CUNIT%u", n);
  g_autofree gchar *cdelt = g_strdup_printf ("CDELT%u", n);
  g_autofree gchar *crval = g_strdup_printf ("CRVAL%u", n);
  g_autofree gchar *crpix = g_strdup_printf ("CRPIX%u", n);
  g_autofree gchar *upper = NULL;

  if (!gst_structure_has_field_typed (q, name, G_TYPE_STRING))
    return;
  upper = g_ascii_strup (gst_structure_get_string (q, name), -1);
  add (self, ctype, upper);
  add_fits_unit (self, cunit, unit);
  add_number (self, crpix, 1);
  add_number (self, crval, get_number (q, origin, 0));
  add_number (self, cdelt, get_number (q, step, 1));
}

static void
add_fits (Cards *self)
{
  const GstStructure *q = self->quantity;

  if (!q)
    return;
  add (self, "QNAME", gst_structure_get_string (q, "name"));
  if (is_quantity (self)) {
    add_fits_unit (self, "BUNIT", "unit");
  } else {
    add_fits_unit (self, "QUNIT", "unit");
    if (!self->several) {
      add_number (self, "QSCALE", get_number (q, "scale", 1));
      add_number (self, "QOFFSET", get_number (q, "offset", 0));
    }
  }
  for (guint axis = 0; axis < GST_IMAGING_MAX_AXES; axis++)
    add_fits_axis (self, axis);
}

/* --- names as in the meta: PNG, OpenEXR, stacks of TIFF ------------------- */

static gboolean
add_field (GQuark field, const GValue *value, gpointer data)
{
  Cards *self = data;
  const gchar *name = g_quark_to_string (field);

  if (G_VALUE_HOLDS_STRING (value))
    add (self, strcmp (name, "name") == 0 ? "quantity" : name,
        g_value_get_string (value));
  else if (G_VALUE_HOLDS_DOUBLE (value) &&
           (!self->several || is_quantity (self) ||
               g_str_has_prefix (name, "axis-")))
    add_number (self, name, g_value_get_double (value));
  return TRUE;
}

/* --- which ---------------------------------------------------------------- */

static gboolean
has_extension (const gchar *location, const gchar *extensions)
{
  const gchar *dot = strrchr (location, '.');
  g_autofree gchar *lower = dot ? g_ascii_strdown (dot + 1, -1) : NULL;
  g_autofree gchar *word = g_strdup_printf (" %s ", lower ? lower : "");

  return lower && strstr (extensions, word);
}

gchar **
gst_picture_sink_make_cards (const gchar *location, gboolean several,
    const GstPictureSinkFormat *format, GstBuffer *buffer)
{
  GstCustomMeta *meta =
      gst_meta_get_info (GST_IMAGING_QUANTITY_META)
          ? gst_buffer_get_custom_meta (buffer, GST_IMAGING_QUANTITY_META)
          : NULL;
  Cards self = {.list = g_ptr_array_new (),
      .format = format,
      .quantity = meta ? gst_custom_meta_get_structure (meta) : NULL,
      .several = several};
  gchar *ome = NULL;

  if (!several && self.quantity &&
      has_extension (location, " tif tiff btf tf8 "))
    ome = gst_picture_sink_make_ome (
        &format->frame, self.quantity, GST_BUFFER_PTS (buffer));
  if (ome) {
    g_ptr_array_add (self.list, ome);
  } else {
    add_samples (&self);
    if (has_extension (location, " fits fit fts "))
      add_fits (&self);
    else if (self.quantity)
      gst_structure_foreach (self.quantity, add_field, &self);
  }
  if (self.list->len == 0) {
    g_ptr_array_unref (self.list);
    return NULL;
  }
  g_ptr_array_add (self.list, NULL);
  return (gchar **) g_ptr_array_free (self.list, FALSE);
}
