/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingquantity.h"

static gboolean
is_registered (void)
{
  static gsize once;
  static const gchar *const tags[] = {NULL};

  if (g_once_init_enter (&once)) {
    if (!gst_meta_get_info (GST_IMAGING_QUANTITY_META))
      gst_meta_register_custom (
          GST_IMAGING_QUANTITY_META, (const gchar **) tags, NULL, NULL, NULL);
    g_once_init_leave (&once, 1);
  }
  return gst_meta_get_info (GST_IMAGING_QUANTITY_META) != NULL;
}

void
gst_imaging_quantity_attach (GstBuffer *buffer, const gchar *name,
    const gchar *unit, gdouble scale, gdouble offset)
{
  GstCustomMeta *meta;

  if (!is_registered ())
    return;
  meta = gst_buffer_get_custom_meta (buffer, GST_IMAGING_QUANTITY_META);
  if (!meta)
    meta = gst_buffer_add_custom_meta (buffer, GST_IMAGING_QUANTITY_META);
  gst_structure_set (gst_custom_meta_get_structure (meta), "name",
      G_TYPE_STRING, name, "unit", G_TYPE_STRING, unit, "scale", G_TYPE_DOUBLE,
      scale, "offset", G_TYPE_DOUBLE, offset, NULL);
}
