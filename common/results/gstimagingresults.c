/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingresults.h"

#include <string.h>

#include "gstimagingnumber.h"

#ifdef HAVE_GST_TENSORS
#define GST_USE_UNSTABLE_API
#include <gst/analytics/analytics.h>
#endif

/* --- meta -------------------------------------------------------------- */

void
gst_imaging_results_register (void)
{
  static gsize done;

  if (g_once_init_enter (&done)) {
    /* No tags: metas with tags are dropped by crops, scalers and filters that
     * do not know them; ours names the frame it was measured in. */
    const gchar *tags[] = {NULL};

    if (!gst_meta_get_info (GST_IMAGING_RESULTS_META))
      gst_meta_register_custom (
          GST_IMAGING_RESULTS_META, tags, NULL, NULL, NULL);
    g_once_init_leave (&done, 1);
  }
}

static void
set_dims (GstStructure *s, gint slow, gint fast)
{
  GValue array = G_VALUE_INIT, value = G_VALUE_INIT;

  gst_value_array_init (&array, 2);
  g_value_init (&value, G_TYPE_INT);
  g_value_set_int (&value, slow);
  gst_value_array_append_value (&array, &value);
  g_value_set_int (&value, fast);
  gst_value_array_append_value (&array, &value);
  gst_structure_take_value (s, "dims", &array);
}

static gchar *
join (const gchar *const *names, guint n)
{
  GString *s = g_string_new (NULL);

  for (guint i = 0; i < n; i++) {
    if (i > 0)
      g_string_append_c (s, ',');
    g_string_append (s, names[i]);
  }
  return g_string_free (s, FALSE);
}

static void
take_string (GstStructure *s, const gchar *name, gchar *text)
{
  GValue value = G_VALUE_INIT;

  g_value_init (&value, G_TYPE_STRING);
  g_value_take_string (&value, text);
  gst_structure_take_value (s, name, &value);
}

static gboolean
copy_field (GQuark name, const GValue *value, gpointer to)
{
  gst_structure_id_set_value (to, name, value);
  return TRUE;
}

static GstStructure *
describe (const GstImagingResult *r)
{
  gint rows = r->by_field ? r->n_fields : r->n_rows;
  gint columns = r->by_field ? r->n_rows : r->n_fields;
  GstStructure *s = gst_structure_new ("result", "id", G_TYPE_STRING, r->id,
      "data", GST_TYPE_BUFFER, r->data, "type", G_TYPE_STRING, "float32",
      "dims-order", G_TYPE_STRING, "row-major", "rows", G_TYPE_INT, rows,
      "columns", G_TYPE_INT, columns, "by-field", G_TYPE_BOOLEAN, r->by_field,
      "ref-width", G_TYPE_INT, r->ref_width, "ref-height", G_TYPE_INT,
      r->ref_height, "frame", G_TYPE_UINT64, r->frame, "frames-missing",
      G_TYPE_UINT64, r->frames_missing, NULL);

  take_string (s, "fields", join (r->fields, r->n_fields));
  take_string (s, "unit", join (r->units, r->n_fields));
  set_dims (s, rows, columns);
  if (r->flags)
    gst_structure_set (s, "flags", GST_TYPE_BUFFER, r->flags, NULL);
  gst_imaging_origin_set (s, &r->origin);
  if (r->more)
    gst_structure_foreach (r->more, copy_field, s);
  return s;
}

/* The metadata outlives the times of its buffer, which muxers and encoders
 * change. */
static void
set_times (GstStructure *s, GstBuffer *buffer)
{
  GstReferenceTimestampMeta *camera =
      gst_buffer_get_reference_timestamp_meta (buffer, NULL);

  if (GST_BUFFER_PTS_IS_VALID (buffer))
    gst_structure_set (s, "pts", G_TYPE_UINT64, GST_BUFFER_PTS (buffer), NULL);
  if (camera) {
    gchar *reference = gst_caps_to_string (camera->reference);

    gst_structure_set (s, "timestamp", G_TYPE_UINT64, camera->timestamp,
        "timestamp-reference", G_TYPE_STRING, reference, NULL);
    g_free (reference);
  }
}

#ifdef HAVE_GST_TENSORS
static GstTensor *
tensor_new (const GstImagingResult *r)
{
  gsize dims[] = {r->by_field ? r->n_fields : r->n_rows,
      r->by_field ? r->n_rows : r->n_fields};

  return gst_tensor_new_simple (g_quark_from_string (r->id),
      GST_TENSOR_DATA_TYPE_FLOAT32, gst_buffer_ref (r->data),
      GST_TENSOR_DIM_ORDER_ROW_MAJOR, G_N_ELEMENTS (dims), dims);
}

static GstTensor *
flags_tensor_new (const GstImagingResult *r)
{
  g_autofree gchar *id = g_strconcat (r->id, "-flags", NULL);
  gsize dims[] = {r->n_rows};

  return gst_tensor_new_simple (g_quark_from_string (id),
      GST_TENSOR_DATA_TYPE_UINT8, gst_buffer_ref (r->flags),
      GST_TENSOR_DIM_ORDER_ROW_MAJOR, G_N_ELEMENTS (dims), dims);
}

static GstBuffer *
buffer_of (const GstStructure *result, const gchar *field)
{
  const GValue *value = result ? gst_structure_get_value (result, field) : NULL;

  return value ? gst_value_get_buffer (value) : NULL;
}

/* The same buffers once more, for readers of tensors who do not know our meta.
 * A frame has one GstTensorMeta: it is made anew with the tensors of others,
 * without that of an earlier result of this element. */
static void
attach_tensor (GstBuffer *buffer, const gchar *element_name,
    const GstImagingResult *result)
{
  const GstStructure *old = gst_imaging_results_get (buffer, element_name);
  GstBuffer *old_data = buffer_of (old, "data");
  GstBuffer *old_flags = buffer_of (old, "flags");
  GstTensorMeta *meta = gst_buffer_get_tensor_meta (buffer);
  GstTensor **tensors = g_new (GstTensor *, meta ? meta->num_tensors + 2 : 2);
  guint n = 0;

  for (gsize i = 0; meta && i < meta->num_tensors; i++)
    if (meta->tensors[i]->data != old_data &&
        (!old_flags || meta->tensors[i]->data != old_flags))
      tensors[n++] = gst_tensor_copy (meta->tensors[i]);
  tensors[n++] = tensor_new (result);
  if (result->flags)
    tensors[n++] = flags_tensor_new (result);
  if (meta)
    gst_buffer_remove_meta (buffer, &meta->meta);
  gst_tensor_meta_set (gst_buffer_add_tensor_meta (buffer), n, tensors);
}
#endif

void
gst_imaging_results_attach (GstBuffer *buffer, const gchar *element_name,
    const GstImagingResult *result)
{
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (buffer, GST_IMAGING_RESULTS_META);
  GstStructure *fields = describe (result);
  GValue value = G_VALUE_INIT;

  set_times (fields, buffer);
  gst_imaging_results_register ();
#ifdef HAVE_GST_TENSORS
  attach_tensor (buffer, element_name, result);
#endif
  if (!meta)
    meta = gst_buffer_add_custom_meta (buffer, GST_IMAGING_RESULTS_META);
  g_value_init (&value, GST_TYPE_STRUCTURE);
  g_value_take_boxed (&value, fields);
  gst_structure_take_value (
      gst_custom_meta_get_structure (meta), element_name, &value);
}

const GstStructure *
gst_imaging_results_get (GstBuffer *buffer, const gchar *element_name)
{
  GstCustomMeta *meta =
      gst_buffer_get_custom_meta (buffer, GST_IMAGING_RESULTS_META);
  const GstStructure *all = meta ? gst_custom_meta_get_structure (meta) : NULL;
  const GValue *value = NULL;

  if (!all || gst_structure_n_fields (all) == 0)
    return NULL;
  if (!element_name)
    element_name = gst_structure_nth_field_name (all, 0);
  value = gst_structure_get_value (all, element_name);
  return value && GST_VALUE_HOLDS_STRUCTURE (value)
             ? gst_value_get_structure (value)
             : NULL;
}

/* --- text -------------------------------------------------------------- */

/* Text that grows. What is appended is written into place: a frame has up to
 * some 100,000 numbers, and a call of GString for each would cost as much as
 * they do. */
typedef struct {
  gchar *text;
  gsize size, room;
} Text;

/* Returns: where @n bytes can be written */
static gchar *
text_reserve (Text *self, gsize n)
{
  if (self->size + n > self->room) {
    self->room = MAX (2 * self->room, self->size + n);
    self->text = g_realloc (self->text, self->room);
  }
  return self->text + self->size;
}

static void
text_append (Text *self, const gchar *text, gsize n)
{
  memcpy (text_reserve (self, n), text, n);
  self->size += n;
}

/* An integer, as far as it fits one; the columns of flags. */
static gdouble
whole_flags (gdouble value)
{
  return value >= G_MININT && value <= G_MAXINT ? (gint) value : value;
}

static void
append_row (Text *text, const GstImagingResult *r, guint row,
    const guint32 *indices, const gboolean *is_flags, const gchar *prefix,
    gsize prefix_size)
{
  gsize first = (gsize) row * r->n_indices;
  gsize step = r->by_field ? r->n_rows : 1;
  const gdouble *value =
      r->values + (r->by_field ? row : (gsize) row * r->n_fields);
  gchar *at = text_reserve (text,
      prefix_size +
          ((gsize) r->n_indices + r->n_fields) * (GST_IMAGING_NUMBER_SIZE + 1) +
          1);

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
  text->size = (gsize) (at - text->text);
}

gchar *
gst_imaging_results_csv_header (const GstImagingResult *r)
{
  g_autofree gchar *indices = join (r->index_names, r->n_indices);
  g_autofree gchar *fields = join (r->fields, r->n_fields);

  return g_strdup_printf (
      "frame,pts,%s%s%s\n", indices, r->n_indices ? "," : "", fields);
}

GstBuffer *
gst_imaging_results_to_csv (
    const GstImagingResult *r, GstClockTime pts, gboolean with_header)
{
  Text text = {NULL, 0, 0};
  g_autofree gboolean *is_flags = g_new (gboolean, r->n_fields);
  g_autofree gchar *prefix =
      GST_CLOCK_TIME_IS_VALID (pts)
          ? g_strdup_printf (
                "%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, r->frame, pts)
          : g_strdup_printf ("%" G_GUINT64_FORMAT ",", r->frame);
  gsize prefix_size = strlen (prefix);
  const guint32 *indices =
      r->indices ? g_bytes_get_data (r->indices, NULL) : NULL;

  for (guint f = 0; f < r->n_fields; f++)
    is_flags[f] = g_str_equal (r->units[f], "flags");
  text_reserve (&text,
      256 + (gsize) r->n_rows *
                (prefix_size + 6 * r->n_indices + 19 * (gsize) r->n_fields));
  if (with_header) {
    g_autofree gchar *header = gst_imaging_results_csv_header (r);

    text_append (&text, header, strlen (header));
  }
  for (guint row = 0; row < r->n_rows; row++)
    append_row (&text, r, row, indices, is_flags, prefix, prefix_size);
  return gst_buffer_new_wrapped (text.text, text.size);
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
