/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingresults.h"

#include <string.h>

#include "gstimagingnumber.h"
#include "gstimagingresults-private.h"

gchar *
gst_imaging_results_join (const gchar *const *names, guint n)
{
  GString *s = g_string_new (NULL);

  for (guint i = 0; i < n; i++) {
    if (i > 0)
      g_string_append_c (s, ',');
    g_string_append (s, names[i]);
  }
  return g_string_free (s, FALSE);
}

/* An integer, as far as it fits one; the columns of flags. */
static gdouble
whole_flags (gdouble value)
{
  return value >= G_MININT && value <= G_MAXINT ? (gint) value : value;
}

/* Numbers are written into place: a frame has up to some 100,000, and a call of
 * GString for each would cost as much as they do. */
static void
append_row (GString *text, const GstImagingResult *r, guint row,
    const guint32 *indices, const gboolean *is_flags, const gchar *prefix,
    gsize prefix_size)
{
  gsize first = (gsize) row * r->n_indices, before = text->len;
  gsize step = r->by_field ? r->n_rows : 1;
  gsize most =
      ((gsize) r->n_indices + r->n_fields) * (GST_IMAGING_NUMBER_SIZE + 1);
  const gdouble *value =
      r->values + (r->by_field ? row : (gsize) row * r->n_fields);
  gchar *at;

  g_string_set_size (text, before + prefix_size + most + 1);
  at = text->str + before;
  memcpy (at, prefix, prefix_size);
  at += prefix_size;
  for (guint i = 0; i < r->n_indices; i++) {
    *at++ = ',';
    at += gst_imaging_number_print (at, indices[first + i]);
  }
  for (guint f = 0; f < r->n_fields; f++, value += step) {
    *at++ = ',';
    at += gst_imaging_number_print (
        at, is_flags[f] ? whole_flags (*value) : *value);
  }
  *at++ = '\n';
  g_string_truncate (text, (gsize) (at - text->str));
}

gchar *
gst_imaging_results_csv_header (const GstImagingResult *r)
{
  g_autofree gchar *indices =
      gst_imaging_results_join (r->index_names, r->n_indices);
  g_autofree gchar *fields = gst_imaging_results_join (r->fields, r->n_fields);

  return g_strdup_printf (
      "frame,pts,%s%s%s\n", indices, r->n_indices ? "," : "", fields);
}

GstBuffer *
gst_imaging_results_to_csv (
    const GstImagingResult *r, GstClockTime pts, gboolean with_header)
{
  g_autofree gboolean *is_flags = g_new (gboolean, r->n_fields);
  g_autofree gchar *prefix =
      GST_CLOCK_TIME_IS_VALID (pts)
          ? g_strdup_printf (
                "%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, r->frame, pts)
          : g_strdup_printf ("%" G_GUINT64_FORMAT ",", r->frame);
  gsize prefix_size = strlen (prefix), size;
  GString *text = g_string_sized_new (
      256 + (gsize) r->n_rows *
                (prefix_size + 6 * r->n_indices + 19 * (gsize) r->n_fields));
  const guint32 *indices =
      r->indices ? g_bytes_get_data (r->indices, NULL) : NULL;

  for (guint f = 0; f < r->n_fields; f++)
    is_flags[f] = g_str_equal (r->units[f], "flags");
  if (with_header) {
    g_autofree gchar *header = gst_imaging_results_csv_header (r);

    g_string_append (text, header);
  }
  for (guint row = 0; row < r->n_rows; row++)
    append_row (text, r, row, indices, is_flags, prefix, prefix_size);
  size = text->len;
  return gst_buffer_new_wrapped (g_string_free (text, FALSE), size);
}

GstCaps *
gst_imaging_results_tensor_caps (
    const GstImagingResult *r, gboolean with_flags, gint fps_n, gint fps_d)
{
  /* nnstreamer writes the fastest dimension first */
  g_autofree gchar *dims =
      g_strdup_printf ("%u:%u:1:1", r->by_field ? r->n_rows : r->n_fields,
          r->by_field ? r->n_fields : r->n_rows);
  g_autofree gchar *both = g_strdup_printf ("%s,%u:1:1:1", dims, r->n_rows);

  return gst_caps_new_simple ("other/tensors", "format", G_TYPE_STRING,
      "static", "num_tensors", G_TYPE_INT, with_flags ? 2 : 1, "types",
      G_TYPE_STRING, with_flags ? "float32,uint8" : "float32", "dimensions",
      G_TYPE_STRING, with_flags ? both : dims, "framerate", GST_TYPE_FRACTION,
      fps_n, fps_d, NULL);
}
