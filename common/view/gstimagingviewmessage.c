/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewmessage.h"

#include <math.h>
#include <string.h>

#include "gstimaging-private.h"
#include "gstimagingnumber.h"
#include "gstimagingreader.h"

static void
add_number (GString *json, gdouble value)
{
  gchar text[GST_IMAGING_NUMBER_SIZE];

  if (isfinite (value))
    g_string_append_len (
        json, text, (gssize) gst_imaging_number_print (text, value));
  else
    g_string_append (json, "null");
}

static void
add_member (GString *json, const gchar *name, gdouble value)
{
  g_string_append_printf (json, ",\"%s\":", name);
  add_number (json, value);
}

static void
add_count (GString *json, const gchar *name, guint64 value)
{
  if (value == GST_BUFFER_OFFSET_NONE)
    g_string_append_printf (json, ",\"%s\":null", name);
  else
    g_string_append_printf (json, ",\"%s\":%" G_GUINT64_FORMAT, name, value);
}

static void
add_rectangle (
    GString *json, const gchar *name, const GstImagingViewRectangle *r)
{
  g_string_append_printf (
      json, "\"%s\":[%u,%u,%u,%u]", name, r->x, r->y, r->width, r->height);
}

/* Of a section, the slices may be an axis of the buffer or its frames. */
static void
add_axis (GString *json, const GstImagingReaderQuantity *q, guint i)
{
  static const GstImagingReaderAxis frames = {"frame", "", 1, 0},
                                    pixels = {"", "pixel", 1, 0};
  const GstImagingReaderAxis *axis = i < q->n_axes ? &q->axes[i]
                                     : i == 2      ? &frames
                                                   : &pixels;

  g_string_append (json, "{\"of\":1"); /* the next one begins with a comma */
  gst_imaging_json_add_text (json, "name", axis->name ? axis->name : "");
  gst_imaging_json_add_text (json, "unit", axis->unit ? axis->unit : "");
  add_member (json, "step", axis->step);
  add_member (json, "origin", axis->origin);
  g_string_append_c (json, '}');
}

static void
add_quantity (GString *json, const GstImagingViewFrame *frame,
    GstImagingViewSection section)
{
  const gboolean is_column = section == GST_IMAGING_VIEW_COLUMN ||
                             section == GST_IMAGING_VIEW_MAX_COLUMN;
  const gboolean is_row =
      section == GST_IMAGING_VIEW_ROW || section == GST_IMAGING_VIEW_MAX_ROW;
  GstImagingReaderQuantity q;

  g_string_append (json, ",\"quantity\":");
  if (!gst_imaging_reader_quantity (&q, frame->about) || !q.name) {
    g_string_append (json, "null,\"axes\":null");
    return;
  }
  g_string_append (json, "{\"of\":1");
  gst_imaging_json_add_text (json, "name", q.name);
  gst_imaging_json_add_text (json, "unit", q.unit ? q.unit : "");
  add_member (json, "scale", q.scale);
  add_member (json, "offset", q.offset);
  g_string_append (json, "},\"axes\":[");
  add_axis (json, &q, is_column ? 2 : 0);
  g_string_append_c (json, ',');
  add_axis (json, &q, is_row ? 2 : 1);
  g_string_append_c (json, ']');
}

static void
add_values (GString *json, const GstImagingViewFrame *frame,
    const GstImagingViewRequest *request)
{
  GstImagingViewRectangle part = request->values;
  g_autofree gdouble *values = NULL;
  const gdouble *at;

  if (part.width == 0 || part.height == 0) {
    g_string_append (json, ",\"values\":null");
    return;
  }
  values = gst_imaging_view_picture_values (frame, request, &part);
  at = values;
  g_string_append (json, ",\"values\":{");
  add_rectangle (json, "crop", &part);
  g_string_append (json, ",\"samples\":[");
  for (guint y = 0; y < part.height; y++) {
    g_string_append (json, y ? ",[" : "[");
    for (guint x = 0; x < part.width; x++) {
      g_string_append (json, x ? "," : "");
      g_string_append (json, frame->channels > 1 ? "[" : "");
      for (guint c = 0; c < frame->channels; c++) {
        g_string_append (json, c ? "," : "");
        add_number (json, *at++);
      }
      g_string_append (json, frame->channels > 1 ? "]" : "");
    }
    g_string_append_c (json, ']');
  }
  g_string_append (json, "]}");
}

static GString *
write_header (guint id, guint64 serial, gint64 time,
    const GstImagingViewFrame *frame, const GstImagingViewRequest *request,
    const GstImagingViewPicture *picture)
{
  GString *json = g_string_new (NULL);

  g_string_append_printf (json, "{\"view\":%u", id);
  add_count (json, "serial", serial);
  add_count (json, "frame", GST_BUFFER_OFFSET (frame->about));
  add_count (json, "pts", GST_BUFFER_PTS (frame->about));
  g_string_append_printf (json,
      ",\"width\":%u,\"height\":%u,\"source\":[%u,%u],", picture->width,
      picture->height, picture->source_width, picture->source_height);
  add_rectangle (json, "crop", &picture->crop);
  add_member (json, "window", picture->window);
  add_member (json, "level", picture->level);
  add_member (json, "minimum", picture->minimum);
  add_member (json, "maximum", picture->maximum);
  gst_imaging_json_add_text (
      json, "type", gst_imaging_view_type_name (frame->type));
  add_count (json, "channels", frame->channels);
  gst_imaging_json_add_text (
      json, "colours", gst_imaging_view_colours_name (request->colours));
  gst_imaging_json_add_text (
      json, "section", gst_imaging_view_section_name (request->section));
  add_count (json, "place", request->place);
  add_count (json, "filled",
      frame->n_slices > 1 ? frame->n_filled : GST_BUFFER_OFFSET_NONE);
  add_quantity (json, frame, request->section);
  add_values (json, frame, request);
  add_member (
      json, "age-ms", (gdouble) (g_get_monotonic_time () - time) / 1000);
  g_string_append_c (json, '}');
  return json;
}

GBytes *
gst_imaging_view_message (guint id, guint64 serial, gint64 time,
    const GstImagingViewFrame *frame, const GstImagingViewRequest *request,
    const GstImagingViewPicture *picture, GstBuffer *jpeg)
{
  GString *header = write_header (id, serial, time, frame, request, picture);
  const gsize n = gst_buffer_get_size (jpeg);
  const gsize size = sizeof (guint32) + header->len + n;
  guint8 *message = g_malloc (size);

  GST_WRITE_UINT32_LE (message, (guint32) header->len);
  memcpy (message + sizeof (guint32), header->str, header->len);
  gst_buffer_extract (jpeg, 0, message + sizeof (guint32) + header->len, n);
  g_string_free (header, TRUE);
  return g_bytes_new_take (message, size);
}
