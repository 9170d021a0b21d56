/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingplace.h"

#include <gst/video/video.h>

#include <string.h>

static const gchar *const keys[] = {"ModelPixelScaleTag", "ModelTiepointTag",
    "ModelTransformationTag", "GeoKeyDirectoryTag", "GeoDoubleParamsTag",
    "GeoAsciiParamsTag"};

static void
register_meta (void)
{
  static const gchar *const tags[] = {GST_META_TAG_VIDEO_STR,
      GST_META_TAG_VIDEO_SIZE_STR, GST_META_TAG_VIDEO_ORIENTATION_STR, NULL};
  static gsize once;

  if (g_once_init_enter (&once)) {
    if (!gst_meta_get_info (GST_IMAGING_PLACE_META))
      gst_meta_register_custom (
          GST_IMAGING_PLACE_META, (const gchar **) tags, NULL, NULL, NULL);
    g_once_init_leave (&once, 1);
  }
}

void
gst_imaging_place_attach (GstBuffer *buffer, gchar *const *cards)
{
  GstStructure *s = NULL;

  for (; cards && *cards; cards++)
    for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
      gsize n = strlen (keys[i]);

      if (strncmp (*cards, keys[i], n) != 0 || (*cards)[n] != '=')
        continue;
      if (!s) {
        register_meta ();
        s = gst_custom_meta_get_structure (
            gst_buffer_add_custom_meta (buffer, GST_IMAGING_PLACE_META));
      }
      gst_structure_set (s, keys[i], G_TYPE_STRING, *cards + n + 1, NULL);
    }
}

const GstStructure *
gst_imaging_place_get (GstBuffer *buffer)
{
  GstCustomMeta *meta =
      gst_meta_get_info (GST_IMAGING_PLACE_META)
          ? gst_buffer_get_custom_meta (buffer, GST_IMAGING_PLACE_META)
          : NULL;

  return meta ? gst_custom_meta_get_structure (meta) : NULL;
}
