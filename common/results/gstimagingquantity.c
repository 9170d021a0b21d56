/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingquantity.h"

/* By numbers: an element may attach a hundred thousand a second, and each name
 * that is looked up costs as much as the rest. */
enum { NAME, UNIT, SCALE, OFFSET, N_FIELDS };

static GQuark fields[N_FIELDS];

/* Returns: (nullable): what was registered */
static const GstMetaInfo *
get_info (void)
{
  static const gchar *const names[] = {"name", "unit", "scale", "offset"};
  static const gchar *const tags[] = {NULL};
  static const GstMetaInfo *info;
  static gsize once;

  if (g_once_init_enter (&once)) {
    info = gst_meta_get_info (GST_IMAGING_QUANTITY_META);
    if (!info)
      info = gst_meta_register_custom (
          GST_IMAGING_QUANTITY_META, (const gchar **) tags, NULL, NULL, NULL);
    for (guint i = 0; i < N_FIELDS; i++)
      fields[i] = g_quark_from_static_string (names[i]);
    g_once_init_leave (&once, 1);
  }
  return info;
}

static void
set_string (GstStructure *s, guint field, const gchar *text)
{
  GValue value = G_VALUE_INIT;

  g_value_init (&value, G_TYPE_STRING);
  g_value_set_static_string (&value, text);
  gst_structure_id_take_value (s, fields[field], &value);
}

static void
set_double (GstStructure *s, guint field, gdouble number)
{
  GValue value = G_VALUE_INIT;

  g_value_init (&value, G_TYPE_DOUBLE);
  g_value_set_double (&value, number);
  gst_structure_id_take_value (s, fields[field], &value);
}

void
gst_imaging_quantity_attach (GstBuffer *buffer, const gchar *name,
    const gchar *unit, gdouble scale, gdouble offset)
{
  const GstMetaInfo *info = get_info ();
  GstStructure *s;
  GstMeta *meta;

  if (!info)
    return;
  meta = gst_buffer_get_meta (buffer, info->api);
  if (!meta) {
    meta = gst_buffer_add_meta (buffer, info, NULL);
    /* kept when the buffer returns to its pool */
    GST_META_FLAG_SET (meta, GST_META_FLAG_POOLED);
  }
  s = gst_custom_meta_get_structure ((GstCustomMeta *) meta);
  set_string (s, NAME, name);
  set_string (s, UNIT, unit);
  set_double (s, SCALE, scale);
  set_double (s, OFFSET, offset);
}
