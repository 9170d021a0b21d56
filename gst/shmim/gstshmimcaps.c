/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshmimcaps.h"

#include "gstimagingpicture.h"

static guint
n_axes_of_frame (const GstShmimHeader *h)
{
  return gst_shmim_is_ring (h) ? 2 : h->n_axes;
}

static gboolean
is_complex (const GstShmimHeader *h)
{
  return h->type == GST_SHMIM_TYPE_COMPLEX64 ||
         h->type == GST_SHMIM_TYPE_COMPLEX128;
}

/* @inner: one more axis before the others, 0 for none */
static void
add_tensor (
    GstCaps *caps, const GstShmimHeader *h, GstShmimType type, guint inner)
{
  GString *text = g_string_new (NULL);
  guint n = 0;

  if (inner > 0) {
    g_string_append_printf (text, "%u:", inner);
    n++;
  }
  for (guint i = 0; i < n_axes_of_frame (h); i++, n++)
    g_string_append_printf (text, "%u:", h->size[i]);
  for (; n < 4; n++)
    g_string_append (text, "1:");
  g_string_truncate (text, text->len - 1);
  gst_caps_append (
      caps, gst_caps_new_simple ("other/tensors", "format", G_TYPE_STRING,
                "static", "num_tensors", G_TYPE_INT, 1, "types", G_TYPE_STRING,
                gst_shmim_type_name (type), "dimensions", G_TYPE_STRING,
                text->str, "framerate", GST_TYPE_FRACTION, 0, 1, NULL));
  g_string_free (text, TRUE);
}

GstCaps *
gst_shmim_caps (const GstShmimHeader *h)
{
  const gchar *format = h->type == GST_SHMIM_TYPE_U8    ? "GRAY8"
                        : h->type == GST_SHMIM_TYPE_U16 ? "GRAY16_LE"
                                                        : NULL;
  const gboolean is_plane = n_axes_of_frame (h) == 2;
  GstCaps *caps = gst_caps_new_empty ();
  GstVideoInfo info;

  if (format && is_plane && MAX (h->size[0], h->size[1]) <= G_MAXINT &&
      gst_imaging_video_info_set_format (
          &info, gst_video_format_from_string (format), h->size[0], h->size[1]))
    gst_caps_append (
        caps, gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING,
                  format, "width", G_TYPE_INT, (gint) h->size[0], "height",
                  G_TYPE_INT, (gint) h->size[1], "pixel-aspect-ratio",
                  GST_TYPE_FRACTION, 1, 1, "interlace-mode", G_TYPE_STRING,
                  "progressive", "framerate", GST_TYPE_FRACTION, 0, 1, NULL));
  add_tensor (caps, h, h->type, is_complex (h) ? 2 : 0);
  if (is_plane && !is_complex (h))
    add_tensor (caps, h, h->type, 1);
  if (h->type == GST_SHMIM_TYPE_F64)
    add_tensor (caps, h, GST_SHMIM_TYPE_F32, 0);
  return caps;
}
