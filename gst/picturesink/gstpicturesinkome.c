/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstpicturesinkome.h"

#include <string.h>

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

/* Lengths alone. Returns: (nullable) */
static const gchar *
unit_name (const gchar *unit)
{
  static const gchar *const units[][2] = {
      {"nm", "nm"}, {"um", "&#181;m"}, {"mm", "mm"}, {"m", "m"}};

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

static void
append_size (
    GString *xml, const GstStructure *quantity, guint axis, gchar letter)
{
  g_autofree gchar *unit_field = g_strdup_printf ("axis-%u-unit", axis);
  g_autofree gchar *step_field = g_strdup_printf ("axis-%u-step", axis);
  const gchar *unit =
      unit_name (gst_structure_get_string (quantity, unit_field));
  gdouble step = 0;

  if (!unit || !gst_structure_get_double (quantity, step_field, &step) ||
      !(step > 0)) /* which OME wants it to be */
    return;
  g_string_append_printf (xml, " PhysicalSize%c=\"", letter);
  append_number (xml, step);
  g_string_append_printf (xml, "\" PhysicalSize%cUnit=\"%s\"", letter, unit);
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

gchar *
gst_picture_sink_make_ome (const GstImagingNdArray *frame,
    const GstStructure *quantity, GstClockTime pts)
{
  const gchar *type = type_name (frame->type);
  guint64 n_channels = frame->n_dims == 3 ? frame->dims[2] : 1;
  GString *xml;

  if (!type || frame->n_dims < 2 || frame->n_dims > 3)
    return NULL;
  xml = g_string_new ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
  g_string_append_printf (xml,
      "<OME xmlns=\"" OME "\" Creator=\"gst-imaging\"><Image ID=\"Image:0\">"
      "<Pixels ID=\"Pixels:0\" DimensionOrder=\"XYCZT\" Type=\"%s\" "
      "SizeX=\"%" G_GUINT64_FORMAT "\" SizeY=\"%" G_GUINT64_FORMAT
      "\" SizeC=\"%" G_GUINT64_FORMAT "\" SizeZ=\"1\" SizeT=\"1\"",
      type, frame->dims[1], frame->dims[0], n_channels);
  append_size (xml, quantity, 0, 'X');
  append_size (xml, quantity, 1, 'Y');
  g_string_append_printf (xml,
      "><Channel ID=\"Channel:0:0\" SamplesPerPixel=\"%" G_GUINT64_FORMAT
      "\"/><TiffData IFD=\"0\" PlaneCount=\"1\"/>",
      n_channels);
  if (GST_CLOCK_TIME_IS_VALID (pts)) {
    g_string_append (xml, "<Plane TheC=\"0\" TheZ=\"0\" TheT=\"0\" DeltaT=\"");
    append_number (xml, (gdouble) pts / GST_SECOND);
    g_string_append (xml, "\" DeltaTUnit=\"s\"/>");
  }
  g_string_append (xml, "</Pixels><AnnotationRef ID=\"Annotation:0\"/></Image>"
                        "<StructuredAnnotations><MapAnnotation "
                        "ID=\"Annotation:0\" "
                        "Namespace=\"gst-imaging/quantity\"><Value>");
  gst_structure_foreach (quantity, append_field, xml);
  g_string_append (
      xml, "</Value></MapAnnotation></StructuredAnnotations></OME>");
  return g_string_free (xml, FALSE);
}
