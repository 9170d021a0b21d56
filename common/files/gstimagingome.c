/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingome.h"

#include <math.h>
#include <string.h>

#include "gstimagingdescription-private.h"

#define NAMESPACE "gst-imaging/quantity"
#define OME "http://www.openmicroscopy.org/Schemas/OME/2016-06"

/* Returns: (nullable) */
static const gchar *
type_name (GstImagingNdArrayType type)
{
  static const gchar *const names[] = {
      [GST_IMAGING_ND_ARRAY_TYPE_U8] = "uint8",
      [GST_IMAGING_ND_ARRAY_TYPE_I8] = "int8",
      [GST_IMAGING_ND_ARRAY_TYPE_U16] = "uint16",
      [GST_IMAGING_ND_ARRAY_TYPE_I16] = "int16",
      [GST_IMAGING_ND_ARRAY_TYPE_U32] = "uint32",
      [GST_IMAGING_ND_ARRAY_TYPE_I32] = "int32",
      [GST_IMAGING_ND_ARRAY_TYPE_F32] = "float",
      [GST_IMAGING_ND_ARRAY_TYPE_F64] = "double",
      [GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64] = "complex",
      [GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128] = "double-complex",
  };

  return (gsize) type < G_N_ELEMENTS (names) ? names[type] : NULL;
}

/* Lengths alone: ours, as it is written, and as it is read */
static const gchar *const units[][3] = {{"nm", "nm", "nm"},
    {"um", "&#181;m", "\302\265m"}, {"mm", "mm", "mm"}, {"m", "m", "m"}};

/* Returns: (nullable) */
static const gchar *
unit_name (const gchar *unit)
{
  for (guint i = 0; i < G_N_ELEMENTS (units); i++)
    if (g_strcmp0 (unit, units[i][0]) == 0)
      return units[i][1];
  return NULL;
}

static void
append_number (GString *xml, gdouble number)
{
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];

  g_string_append (xml, g_ascii_dtostr (digits, sizeof (digits), number));
}

/* Returns: whether the axis is a length */
static gboolean
append_size (
    GString *xml, const GstStructure *quantity, guint axis, gchar letter)
{
  g_autofree gchar *unit_field = g_strdup_printf ("axis-%u-unit", axis);
  g_autofree gchar *step_field = g_strdup_printf ("axis-%u-step", axis);
  const gchar *unit =
      unit_name (gst_structure_get_string (quantity, unit_field));
  gdouble step = 0;

  if (!unit || !gst_structure_get_double (quantity, step_field, &step))
    return FALSE;
  step = fabs (step); /* which way it goes is in the annotation */
  if (!(step > 0))
    return FALSE;
  g_string_append_printf (xml, " PhysicalSize%c=\"", letter);
  append_number (xml, step);
  g_string_append_printf (xml, "\" PhysicalSize%cUnit=\"%s\"", letter, unit);
  return TRUE;
}

static gboolean
append_field (GQuark field, const GValue *value, gpointer data)
{
  GString *xml = data;

  if (!G_VALUE_HOLDS_STRING (value) && !G_VALUE_HOLDS_DOUBLE (value))
    return TRUE;
  g_string_append_printf (xml, "<M K=\"%s\">", g_quark_to_string (field));
  if (G_VALUE_HOLDS_STRING (value)) {
    const gchar *text = g_value_get_string (value);
    g_autofree gchar *escaped = g_markup_escape_text (text ? text : "", -1);

    g_string_append (xml, escaped);
  } else {
    append_number (xml, g_value_get_double (value));
  }
  g_string_append (xml, "</M>");
  return TRUE;
}

gboolean
gst_imaging_ome_is_promised (const gchar *location)
{
  g_autofree gchar *lower = g_ascii_strdown (location, -1);

  return g_str_has_suffix (lower, ".ome.tif") ||
         g_str_has_suffix (lower, ".ome.tiff");
}

gchar *
gst_imaging_ome_make (const GstImagingNdArray *frame, guint64 n_frames,
    const GstStructure *quantity, GstClockTime pts)
{
  const gchar *type = type_name (frame->type);
  guint64 n_channels = frame->n_dims == 3 ? frame->dims[2] : 1;
  gboolean is_stack;
  GString *xml;

  if (!type || frame->n_dims < 2 || frame->n_dims > 3)
    return NULL;
  xml = g_string_new ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
  g_string_append_printf (xml,
      "<OME xmlns=\"" OME "\" Creator=\"gst-imaging\"><Image ID=\"Image:0\">"
      "<Pixels ID=\"Pixels:0\" DimensionOrder=\"XYCZT\" Type=\"%s\" "
      "SizeX=\"%" G_GUINT64_FORMAT "\" SizeY=\"%" G_GUINT64_FORMAT
      "\" SizeC=\"%" G_GUINT64_FORMAT "\"",
      type, frame->dims[1], frame->dims[0], n_channels);
  append_size (xml, quantity, 0, 'X');
  append_size (xml, quantity, 1, 'Y');
  is_stack = n_frames > 1 && append_size (xml, quantity, 2, 'Z');
  g_string_append_printf (xml,
      " SizeZ=\"%" G_GUINT64_FORMAT "\" SizeT=\"%" G_GUINT64_FORMAT
      "\"><Channel ID=\"Channel:0:0\" SamplesPerPixel=\"%" G_GUINT64_FORMAT
      "\"/><TiffData IFD=\"0\" PlaneCount=\"%" G_GUINT64_FORMAT "\"/>",
      is_stack ? n_frames : 1, is_stack ? 1 : n_frames, n_channels, n_frames);
  if (GST_CLOCK_TIME_IS_VALID (pts)) {
    g_string_append (xml, "<Plane TheC=\"0\" TheZ=\"0\" TheT=\"0\" DeltaT=\"");
    append_number (xml, (gdouble) pts / GST_SECOND);
    g_string_append (xml, "\" DeltaTUnit=\"s\"/>");
  }
  g_string_append (xml, "</Pixels><AnnotationRef ID=\"Annotation:0\"/></Image>"
                        "<StructuredAnnotations><MapAnnotation "
                        "ID=\"Annotation:0\" "
                        "Namespace=\"" NAMESPACE "\"><Value>");
  gst_structure_foreach (quantity, append_field, xml);
  g_string_append (
      xml, "</Value></MapAnnotation></StructuredAnnotations></OME>");
  return g_string_free (xml, FALSE);
}

/* --- reading -------------------------------------------------------------- */

typedef struct {
  GstStructure *quantity;
  gboolean has_pixels;
  guint64 n_channels, n_samples; /* of all pages; of a page */
  gboolean has_z_alone;          /* but for the channels */
  gboolean is_ours;              /* inside of our annotation */
  gchar *key;                    /* of the member whose text comes */
} Parser;

static const gchar *
find (const gchar *const *names, const gchar *const *values, const gchar *name)
{
  for (; *names; names++, values++)
    if (strcmp (*names, name) == 0)
      return *values;
  return NULL;
}

static guint64
read_count (
    const gchar *const *names, const gchar *const *values, const gchar *name)
{
  const gchar *text = find (names, values, name);

  return text ? g_ascii_strtoull (text, NULL, 10) : 1;
}

static void
read_pixels (
    Parser *self, const gchar *const *names, const gchar *const *values)
{
  static const gchar *const axes[] = {"x", "y", "z"};

  self->n_channels = read_count (names, values, "SizeC");
  self->has_z_alone = read_count (names, values, "SizeT") <= 1;
  for (guint i = 0; i < G_N_ELEMENTS (axes); i++) {
    g_autofree gchar *size = g_strdup_printf ("PhysicalSize%c", 'X' + (gint) i);
    g_autofree gchar *unit_key = g_strconcat (size, "Unit", NULL);
    const gchar *text = find (names, values, size);
    const gchar *unit = find (names, values, unit_key);
    gdouble step = text ? g_ascii_strtod (text, NULL) : 0;

    if (!(step > 0) || !isfinite (step))
      continue;
    unit = unit ? unit : units[1][2]; /* as OME says */
    for (guint k = 0; k < G_N_ELEMENTS (units); k++)
      if (strcmp (unit, units[k][2]) == 0)
        unit = units[k][0];
    gst_imaging_description_set_axis (
        self->quantity, i, axes[i], unit, step, 0);
  }
}

static void
start (GMarkupParseContext *context, const gchar *element, const gchar **names,
    const gchar **values, gpointer data, GError **error)
{
  Parser *self = data;
  const gchar *colon = strrchr (element, ':');
  const gchar *name = colon ? colon + 1 : element;

  if (strcmp (name, "Pixels") == 0 && !self->has_pixels) {
    self->has_pixels = TRUE;
    read_pixels (
        self, (const gchar *const *) names, (const gchar *const *) values);
  } else if (strcmp (name, "Channel") == 0 && self->n_samples == 0) {
    self->n_samples = read_count ((const gchar *const *) names,
        (const gchar *const *) values, "SamplesPerPixel");
  } else if (strcmp (name, "MapAnnotation") == 0) {
    self->is_ours = g_strcmp0 (find ((const gchar *const *) names,
                                   (const gchar *const *) values, "Namespace"),
                        NAMESPACE) == 0;
  } else if (strcmp (name, "M") == 0 && self->is_ours) {
    g_free (self->key);
    self->key = g_strdup (find (
        (const gchar *const *) names, (const gchar *const *) values, "K"));
  }
}

static void
end (GMarkupParseContext *context, const gchar *element, gpointer data,
    GError **error)
{
  Parser *self = data;
  const gchar *colon = strrchr (element, ':');

  /* pages that are times or channels, too, are not a step apart */
  if (strcmp (colon ? colon + 1 : element, "Pixels") == 0 &&
      (!self->has_z_alone || self->n_channels > MAX (self->n_samples, 1)))
    gst_imaging_description_drop (self->quantity, "axis-2-name");
  g_clear_pointer (&self->key, g_free);
}

static void
take_text (GMarkupParseContext *context, const gchar *text, gsize size,
    gpointer data, GError **error)
{
  Parser *self = data;

  if (self->key)
    gst_imaging_description_set (self->quantity, self->key, text);
}

gboolean
gst_imaging_ome_read (const gchar *xml, GstStructure *quantity)
{
  const GMarkupParser functions = {start, end, take_text, NULL, NULL};
  Parser self = {.quantity = quantity};
  GMarkupParseContext *context =
      g_markup_parse_context_new (&functions, 0, &self, NULL);
  gboolean ok = g_markup_parse_context_parse (context, xml, -1, NULL);

  g_markup_parse_context_free (context);
  g_free (self.key);
  return ok && gst_structure_n_fields (quantity) > 0;
}

gboolean
gst_imaging_ome_is_ours (const gchar *xml)
{
  return strstr (xml, "Namespace=\"" NAMESPACE "\"") != NULL;
}
