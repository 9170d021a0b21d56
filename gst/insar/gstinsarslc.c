/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarslc.h"

#include "gstimagingmemory.h"

static ImkType
type_of (const gchar *format)
{
  if (g_strcmp0 (format, "cf32") == 0)
    return IMK_TYPE_CF32;
  return g_strcmp0 (format, "f32") == 0 ? IMK_TYPE_F32 : IMK_TYPE_CI16;
}

void
gst_insar_slc_info_from_caps (GstInsarSlcInfo *info, const GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);
  gint width = 0, height = 0;

  *info = (GstInsarSlcInfo){
      .type = type_of (gst_structure_get_string (s, "format")),
  };
  gst_structure_get_int (s, "width", &width);
  gst_structure_get_int (s, "height", &height);
  gst_structure_get_double (s, "prf", &info->prf);
  gst_structure_get_int (s, "rshift", &info->rshift);
  gst_structure_get_int (s, "ashift", &info->ashift);
  gst_structure_get_double (s, "range-spacing", &info->spacing.range);
  gst_structure_get_double (s, "near-range", &info->spacing.near_range);
  gst_structure_get_double (s, "azimuth-spacing", &info->spacing.azimuth);
  info->has_doppler = gst_structure_get_double (s, "doppler", &info->doppler);
  info->width = (guint) width;
  info->height = (guint) height;
  info->line_size = (gsize) info->width * imk_type_size (info->type);
}

static void
set_length (GstCaps *caps, const gchar *field, gdouble length)
{
  if (length > 0)
    gst_caps_set_simple (caps, field, G_TYPE_DOUBLE, length, NULL);
}

GstCaps *
gst_insar_slc_info_to_caps (const GstInsarSlcInfo *info)
{
  GstCaps *caps = gst_caps_new_simple ("application/x-slc", "format",
      G_TYPE_STRING, imk_type_name (info->type), "width", G_TYPE_INT,
      info->width, "height", G_TYPE_INT, info->height, "prf", G_TYPE_DOUBLE,
      info->prf, "rshift", G_TYPE_INT, info->rshift, "ashift", G_TYPE_INT,
      info->ashift, NULL);

  set_length (caps, "range-spacing", info->spacing.range);
  set_length (caps, "near-range", info->spacing.near_range);
  set_length (caps, "azimuth-spacing", info->spacing.azimuth);
  if (info->has_doppler)
    gst_caps_set_simple (caps, "doppler", G_TYPE_DOUBLE, info->doppler, NULL);
  return caps;
}

gboolean
gst_insar_slc_check_lines (GstPad *pad, const GstInsarSlcInfo *info, gsize size,
    guint64 offset, guint n_before)
{
  GstElement *element = GST_PAD_PARENT (pad);

  if (!info) {
    GST_ELEMENT_ERROR (element, CORE, NEGOTIATION,
        ("Lines arrived on the pad %s before their caps.", GST_PAD_NAME (pad)),
        (NULL));
    return FALSE;
  }
  if (size == 0 || size % info->line_size) {
    GST_ELEMENT_ERROR (element, STREAM, FORMAT,
        ("A buffer of %" G_GSIZE_FORMAT
         " bytes arrived on the pad %s; expected are whole lines of %" G_GSIZE_FORMAT
         " bytes.",
            size, GST_PAD_NAME (pad), info->line_size),
        (NULL));
    return FALSE;
  }
  if (offset != GST_BUFFER_OFFSET_NONE && offset != n_before) {
    GST_ELEMENT_ERROR (element, STREAM, FAILED,
        ("Line %" G_GUINT64_FORMAT
         " arrived on the pad %s; expected is line %u. Images are read from their "
         "first line on, without gaps.",
            offset, GST_PAD_NAME (pad), n_before),
        (NULL));
    return FALSE;
  }
  if (size / info->line_size > info->height - n_before) {
    GST_ELEMENT_ERROR (element, STREAM, FORMAT,
        ("More lines than the %u of the caps arrived on the pad %s.",
            info->height, GST_PAD_NAME (pad)),
        (NULL));
    return FALSE;
  }
  return TRUE;
}

gboolean
gst_insar_slc_map_lines (
    GstImagingEngine *engine, GstPad *pad, GstBuffer *buffer, GstMapInfo *map)
{
  gst_imaging_engine_note_memory (
      engine, gst_imaging_buffer_memory_name (buffer));
  if (gst_buffer_map (buffer, map, GST_MAP_READ))
    return TRUE;
  GST_ELEMENT_ERROR (GST_PAD_PARENT (pad), RESOURCE, READ,
      ("The memory of lines on the pad %s cannot be read.", GST_PAD_NAME (pad)),
      (NULL));
  return FALSE;
}

ImkImage
gst_insar_slc_lines (const GstInsarSlcInfo *info, gpointer data, gsize size)
{
  return imk_image_of_rows (
      data, info->type, info->width, (guint) (size / info->line_size));
}

gboolean
gst_insar_slc_is_rewind (GstEvent *seek)
{
  GstSeekType start_type, stop_type;
  GstSeekFlags flags;
  GstFormat format;
  gint64 start, stop;
  gdouble rate;

  gst_event_parse_seek (
      seek, &rate, &format, &flags, &start_type, &start, &stop_type, &stop);
  return rate == 1 && format == GST_FORMAT_DEFAULT &&
         (flags & GST_SEEK_FLAG_FLUSH) && start_type == GST_SEEK_TYPE_SET &&
         start == 0 && (stop_type == GST_SEEK_TYPE_NONE || stop == -1);
}

void
gst_insar_slc_post_end (GstElement *element, const gchar *name,
    const GstInsarSlcInfo *info, guint n_lines)
{
  if (info)
    GST_ELEMENT_ERROR (element, STREAM, FAILED,
        ("The %s ended after %u of %u lines.", name, n_lines, info->height),
        (NULL));
  else
    GST_ELEMENT_ERROR (element, STREAM, FAILED,
        ("The %s ended before its caps.", name), (NULL));
}
