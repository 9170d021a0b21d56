/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingresults-private.h"

#ifdef HAVE_GST_TENSORS
#define GST_USE_UNSTABLE_API
#include <gst/analytics/analytics.h>
#endif

/* A buffer refers to the descriptions of its results by metas of their own, so
 * that they stay as long as the structure of GST_IMAGING_RESULTS_META, which
 * only points at them. Copies of the meta by others are copies of all. */
typedef struct {
  GstMeta meta;
  GstImagingSharedResult *shared;
} Holder;

/* --- the metas ------------------------------------------------------------ */

const GstMetaInfo *
gst_imaging_results_info (void)
{
  static const GstMetaInfo *info;
  static gsize once;

  if (g_once_init_enter (&once)) {
    /* No tags: metas with tags are dropped by crops, scalers and filters that
     * do not know them; ours names the frame it was measured in. */
    const gchar *tags[] = {NULL};

    info = gst_meta_get_info (GST_IMAGING_RESULTS_META);
    if (!info)
      info = gst_meta_register_custom (
          GST_IMAGING_RESULTS_META, tags, NULL, NULL, NULL);
    g_once_init_leave (&once, 1);
  }
  return info;
}

void
gst_imaging_results_register (void)
{
  gst_imaging_results_info ();
}

static gboolean
init_holder (GstMeta *meta, gpointer params, GstBuffer *buffer)
{
  ((Holder *) meta)->shared = NULL;
  return TRUE;
}

static void
free_holder (GstMeta *meta, GstBuffer *buffer)
{
  gst_imaging_shared_result_unref (((Holder *) meta)->shared);
}

static const GstMetaInfo *
holder_info (void)
{
  static const GstMetaInfo *info;
  static gsize once;

  if (g_once_init_enter (&once)) {
    static const gchar *tags[] = {NULL};
    GType api = gst_meta_api_type_register ("GstImagingSharedResultAPI", tags);

    info = gst_meta_register (api, "GstImagingSharedResult", sizeof (Holder),
        init_holder, free_holder, NULL);
    g_once_init_leave (&once, 1);
  }
  return info;
}

/* Returns: (nullable): of the meta */
static GstStructure *
find_results (GstBuffer *buffer)
{
  GstMeta *meta =
      gst_buffer_get_meta (buffer, gst_imaging_results_info ()->api);

  return meta ? gst_custom_meta_get_structure ((GstCustomMeta *) meta) : NULL;
}

static GstStructure *
add_results (GstBuffer *buffer)
{
  GstStructure *all = find_results (buffer);

  return all ? all
             : gst_custom_meta_get_structure (
                   (GstCustomMeta *) gst_buffer_add_meta (
                       buffer, gst_imaging_results_info (), NULL));
}

/* @shared: (transfer full) */
static void
hold (GstBuffer *buffer, GstStructure *all, GQuark element,
    GstImagingSharedResult *shared)
{
  Holder *holder =
      (Holder *) gst_buffer_add_meta (buffer, holder_info (), NULL);
  GValue value = G_VALUE_INIT;

  holder->shared = shared;
  g_value_init (&value, GST_TYPE_STRUCTURE);
  g_value_set_static_boxed (
      &value, gst_imaging_shared_result_structure (shared));
  gst_structure_id_take_value (all, element, &value);
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
#ifdef HAVE_GST_TENSORS
  attach_tensor (buffer, element_name, result);
#endif
  hold (buffer, add_results (buffer),
      gst_imaging_results_cache_name (result->cache, element_name),
      gst_imaging_shared_result_new (result, buffer));
}

typedef struct {
  GstBuffer *from, *to;
  GstStructure *all; /* of @to */
} Copy;

/* Returns: (nullable): that of a result of @buffer */
static GstImagingSharedResult *
find_shared (GstBuffer *buffer, const GstStructure *result)
{
  const GstMetaInfo *info = holder_info ();
  gpointer state = NULL;
  GstMeta *meta;

  while ((meta = gst_buffer_iterate_meta_filtered (buffer, &state, info->api)))
    if (gst_imaging_shared_result_structure (((Holder *) meta)->shared) ==
        result)
      return ((Holder *) meta)->shared;
  return NULL;
}

static gboolean
copy_result (GQuark element, const GValue *value, gpointer data)
{
  const Copy *copy = data;
  GstImagingSharedResult *shared =
      GST_VALUE_HOLDS_STRUCTURE (value)
          ? find_shared (copy->from, gst_value_get_structure (value))
          : NULL;

  if (shared)
    hold (copy->to, copy->all, element, gst_imaging_shared_result_ref (shared));
  else
    gst_structure_id_set_value (copy->all, element, value);
  return TRUE;
}

void
gst_imaging_results_copy (GstBuffer *to, GstBuffer *from)
{
  const GstStructure *all = find_results (from);
  Copy copy = {.from = from, .to = to};

  if (!all)
    return;
  copy.all = add_results (to);
  gst_structure_foreach (all, copy_result, &copy);
}

static gboolean
take_first (GQuark element, const GValue *value, gpointer to)
{
  *(const GValue **) to = value;
  return FALSE;
}

const GstStructure *
gst_imaging_results_get (GstBuffer *buffer, const gchar *element_name)
{
  const GstStructure *all = find_results (buffer);
  const GValue *value = NULL;

  if (!all)
    return NULL;
  if (element_name)
    value = gst_structure_get_value (all, element_name);
  else
    gst_structure_foreach (all, take_first, &value);
  return value && GST_VALUE_HOLDS_STRUCTURE (value)
             ? gst_value_get_structure (value)
             : NULL;
}
