/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingviewmessage.h"

#include <math.h>
#include <string.h>

#include "gstimaging-private.h"
#include "gstimagingnumber.h"
#include "gstimagingreader.h"
#include "gstimagingviewcolours.h"
#include "gstimagingviewmeasure.h"

#define EXACT 9007199254740992.0 /* 2^53: beyond it a double has gaps */

static void
add_count (GString *json, const gchar *name, guint64 value)
{
  gst_imaging_json_add_key (json, name);
  if (value == GST_BUFFER_OFFSET_NONE)
    g_string_append (json, "null");
  else
    g_string_append_printf (json, "%" G_GUINT64_FORMAT, value);
}

static void
add_rectangle (
    GString *json, const gchar *name, const GstImagingViewRectangle *r)
{
  gst_imaging_json_add_key (json, name);
  g_string_append_printf (
      json, "[%u,%u,%u,%u]", r->x, r->y, r->width, r->height);
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

  g_string_append_c (json, '{');
  gst_imaging_json_add_text (json, "name", axis->name ? axis->name : "");
  gst_imaging_json_add_text (json, "unit", axis->unit ? axis->unit : "");
  gst_imaging_json_add_number (json, "step", axis->step);
  gst_imaging_json_add_number (json, "origin", axis->origin);
  g_string_append_c (json, '}');
}

static void
add_quantity (GString *json, const GstImagingViewFrame *frame, guint section)
{
  const gboolean is_column = gst_imaging_view_section_is_column (section);
  const gboolean is_row = gst_imaging_view_section_is_row (section);
  GstImagingReaderQuantity q;

  g_string_append (json, ",\"quantity\":");
  if (!gst_imaging_reader_quantity (&q, frame->about) || !q.name) {
    g_string_append (json, "null,\"axes\":null");
    return;
  }
  g_string_append_c (json, '{');
  gst_imaging_json_add_text (json, "name", q.name);
  gst_imaging_json_add_text (json, "unit", q.unit ? q.unit : "");
  gst_imaging_json_add_number (json, "scale", q.scale);
  gst_imaging_json_add_number (json, "offset", q.offset);
  g_string_append (json, "},\"axes\":[");
  add_axis (json, &q, is_column ? 2 : 0);
  g_string_append_c (json, ',');
  add_axis (json, &q, is_row ? 2 : 1);
  g_string_append_c (json, ']');
}

/* As the values of properties: JSON has no infinities. */
static void
add_sample (GString *json, gdouble value)
{
  gchar text[GST_IMAGING_NUMBER_SIZE];

  if (isfinite (value))
    g_string_append_len (
        json, text, (gssize) gst_imaging_number_print (text, value));
  else
    g_string_append (json, isnan (value) ? "\"nan\""
                           : value > 0   ? "\"inf\""
                                         : "\"-inf\"");
}

/* A whole number that JavaScript rounds is a text. */
static void
add_exact (GString *json, const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, const GstImagingViewPoint *point,
    guint channel, gdouble value)
{
  gchar text[GST_IMAGING_VIEW_WHOLE_SIZE];

  if (fabs (value) >= EXACT && gst_imaging_view_section_print_whole (frame,
                                   settings, point->x, point->y, channel, text))
    g_string_append_printf (json, "\"%s\"", text);
  else
    add_sample (json, value);
}

/* @n samples of a frame, lists where there are several channels.
 * @at: [n][channels]: their values
 * @points: [n]: where they are */
static void
add_samples (GString *json, const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings, guint n, const gdouble *at,
    const GstImagingViewPoint *points)
{
  const guint channels = frame->channels;

  g_string_append_c (json, '[');
  for (guint i = 0; i < n; i++, at += channels) {
    g_string_append (json, i ? "," : "");
    if (!points[i].is_there) {
      g_string_append (json, "null");
      continue;
    }
    g_string_append (json, channels > 1 ? "[" : "");
    for (guint c = 0; c < channels; c++) {
      g_string_append (json, c ? "," : "");
      add_exact (json, frame, settings, &points[i], c, at[c]);
    }
    g_string_append (json, channels > 1 ? "]" : "");
  }
  g_string_append_c (json, ']');
}

static void
add_values (GString *json, const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings)
{
  GstImagingViewRectangle part = settings->values;
  g_autofree gdouble *values = NULL;
  g_autofree GstImagingViewPoint *points = NULL;

  if (part.width == 0 || part.height == 0) {
    g_string_append (json, ",\"values\":null");
    return;
  }
  values = gst_imaging_view_measure_part (frame, settings, &part);
  points = g_new (GstImagingViewPoint, part.width);
  g_string_append (json, ",\"values\":{");
  add_rectangle (json, "crop", &part);
  g_string_append (json, ",\"samples\":[");
  for (guint i = 0; i < part.height; i++) {
    const guint y = part.y + i;

    for (guint k = 0; k < part.width; k++) {
      const guint x = part.x + k;

      points[k] = (GstImagingViewPoint){
          x, y, gst_imaging_view_section_has (frame, settings, x, y)};
    }
    g_string_append (json, i ? "," : "");
    add_samples (json, frame, settings, part.width,
        values + (gsize) i * part.width * frame->channels, points);
  }
  g_string_append (json, "]}");
}

/* The pixels before the JPEG rounds them, where each is a sample of @values */
static void
add_pixels (GString *json, const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings,
    const GstImagingViewPicture *picture)
{
  const gsize n_row = (gsize) picture->width * (picture->is_grey ? 1 : 3);
  GstImagingViewRectangle part = settings->values;
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  g_autofree gchar *text = NULL;

  gst_imaging_view_section_cut (frame, settings, &part);
  if (settings->values.width == 0 || settings->values.height == 0 ||
      memcmp (&part, &picture->crop, sizeof (part)) != 0 ||
      picture->width != part.width || picture->height != part.height) {
    g_string_append (json, ",\"pixels\":null");
    return;
  }
  for (guint y = 0; y < picture->height; y++)
    g_byte_array_append (
        bytes, picture->pixels + (gsize) y * picture->stride, (guint) n_row);
  text = g_base64_encode (bytes->data, bytes->len);
  gst_imaging_json_add_text (json, "pixels", text);
}

static void
add_profile (GString *json, const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings)
{
  const GstImagingViewLine *line = &settings->profile;
  const gdouble ends[] = {line->x0, line->y0, line->x1, line->y1};
  g_autofree gdouble *values = NULL;
  g_autofree GstImagingViewPoint *points = NULL;
  guint n;

  if (isnan (line->x0)) {
    g_string_append (json, ",\"profile\":null");
    return;
  }
  values = gst_imaging_view_measure_profile (frame, settings, &n, &points);
  g_string_append (json, ",\"profile\":{\"line\":[");
  for (guint i = 0; i < G_N_ELEMENTS (ends); i++) {
    g_string_append (json, i ? "," : "");
    add_sample (json, ends[i]);
  }
  g_string_append (json, "],\"samples\":");
  add_samples (json, frame, settings, n, values, points);
  g_string_append_c (json, '}');
}

static void
add_statistics (GString *json, const GstImagingViewFrame *frame,
    const GstImagingViewSettings *settings)
{
  GstImagingViewStatistics s;

  if (settings->n_bins == 0) {
    g_string_append (json, ",\"statistics\":null");
    return;
  }
  gst_imaging_view_measure_region (frame, settings, &s);
  g_string_append (json, ",\"statistics\":{");
  add_rectangle (json, "region", &s.region);
  gst_imaging_json_add_number (json, "low", s.low);
  gst_imaging_json_add_number (json, "step", s.step);
  g_string_append (json, ",\"channels\":[");
  for (guint c = 0; c < frame->channels; c++) {
    g_string_append_printf (
        json, "%s{\"n\":%" G_GUINT64_FORMAT, c ? "," : "", s.channels[c].n);
    add_count (json, "nan", s.channels[c].n_nan);
    add_count (json, "infinite", s.channels[c].n_infinite);
    add_count (json, "below", s.channels[c].n_below);
    add_count (json, "above", s.channels[c].n_above);
    gst_imaging_json_add_number (json, "mean", s.channels[c].mean);
    gst_imaging_json_add_number (json, "deviation", s.channels[c].deviation);
    gst_imaging_json_add_number (json, "minimum", s.channels[c].minimum);
    gst_imaging_json_add_number (json, "maximum", s.channels[c].maximum);
    g_string_append (json, ",\"counts\":[");
    for (guint i = 0; i < s.n_bins; i++)
      g_string_append_printf (
          json, "%s%" G_GUINT64_FORMAT, i ? "," : "", s.channels[c].counts[i]);
    g_string_append (json, "]}");
  }
  g_string_append (json, "]}");
  gst_imaging_view_statistics_clear (&s);
}

static void
add_components (GString *json, const GstImagingViewFrame *frame)
{
  const gchar *names = frame->meaning.names;

  if (!names) {
    g_string_append (json, ",\"components\":null");
    return;
  }
  g_string_append (json, ",\"components\":[");
  for (guint c = 0; c < frame->channels; c++)
    g_string_append_printf (json, "%s\"%c\"", c ? "," : "", names[c]);
  g_string_append_c (json, ']');
}

static GString *
write_header (guint id, guint64 serial, gint64 time,
    const GstImagingViewFrame *frame, const GstImagingViewSettings *settings,
    const GstImagingViewPicture *picture)
{
  GString *json = g_string_new (NULL);

  g_string_append_printf (json, "{\"view\":%u", id);
  add_count (json, "serial", serial);
  add_count (json, "frame", GST_BUFFER_OFFSET (frame->about));
  add_count (json, "pts", GST_BUFFER_PTS (frame->about));
  g_string_append_printf (json,
      ",\"width\":%u,\"height\":%u,\"source\":[%u,%u]", picture->width,
      picture->height, picture->source_width, picture->source_height);
  add_rectangle (json, "crop", &picture->crop);
  gst_imaging_json_add_number (json, "window", picture->window);
  gst_imaging_json_add_number (json, "level", picture->level);
  gst_imaging_json_add_number (json, "minimum", picture->minimum);
  gst_imaging_json_add_number (json, "maximum", picture->maximum);
  gst_imaging_json_add_text (
      json, "type", gst_imaging_nd_array_type_name (frame->type));
  add_count (json, "channels", frame->channels);
  add_components (json, frame);
  gst_imaging_json_add_text (
      json, "colours", gst_imaging_view_colours_name (settings->colours));
  gst_imaging_json_add_text (
      json, "section", gst_imaging_view_section_name (settings->section));
  add_count (json, "place", settings->place);
  add_count (json, "filled",
      frame->n_slices > 1 ? frame->n_filled : GST_BUFFER_OFFSET_NONE);
  add_quantity (json, frame, settings->section);
  add_values (json, frame, settings);
  add_pixels (json, frame, settings, picture);
  add_profile (json, frame, settings);
  add_statistics (json, frame, settings);
  gst_imaging_json_add_number (
      json, "age-ms", (gdouble) (g_get_monotonic_time () - time) / 1000);
  g_string_append_c (json, '}');
  return json;
}

GBytes *
gst_imaging_view_message (guint id, guint64 serial, gint64 time,
    const GstImagingViewFrame *frame, const GstImagingViewSettings *settings,
    const GstImagingViewPicture *picture, GstBuffer *jpeg)
{
  g_autoptr (GString) header =
      write_header (id, serial, time, frame, settings, picture);
  const gsize n = gst_buffer_get_size (jpeg);
  const gsize size = sizeof (guint32) + header->len + n;
  guint8 *message = g_malloc (size);

  GST_WRITE_UINT32_LE (message, (guint32) header->len);
  memcpy (message + sizeof (guint32), header->str, header->len);
  gst_buffer_extract (jpeg, 0, message + sizeof (guint32) + header->len, n);
  return g_bytes_new_take (message, size);
}
