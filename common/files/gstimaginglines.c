/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimaginglines.h"

#include "gstimagingpicture.h"

static const struct {
  const gchar *name;
  ImkType type;
} tensor_types[] = {
    {"int16", IMK_TYPE_I16},
    {"float32", IMK_TYPE_F32},
    {"uint16", IMK_TYPE_U16},
    {"uint8", IMK_TYPE_U8},
};

/* "832:240", "832:240:1:1"; the further ones are 1, or 0 as some write. */
static gboolean
parse_dimensions (const gchar *text, guint *width, guint *height)
{
  g_auto (GStrv) words = g_strsplit (text, ":", -1);
  guint64 n[2] = {0, 0};
  gboolean ok = g_strv_length (words) >= 2;

  for (guint i = 0; ok && words[i]; i++) {
    guint64 value;

    ok =
        g_ascii_string_to_unsigned (words[i], 10, 0, G_MAXUINT16, &value, NULL);
    if (i < 2)
      n[i] = value;
    else
      ok = ok && value <= 1;
  }
  *width = (guint) n[0];
  *height = (guint) n[1];
  return ok && n[0] > 0 && n[1] > 0;
}

/* Rows of a tensor stand close to each other. */
static gboolean
set_tensor (GstVideoInfo *info, guint row_size, guint height)
{
  if (!gst_imaging_video_info_set_format (
          info, GST_VIDEO_FORMAT_GRAY8, row_size, height))
    return FALSE;
  info->stride[0] = info->width;
  info->size = (gsize) info->width * height;
  return TRUE;
}

static gboolean
parse_tensor (GstImagingLines *self, const GstStructure *s)
{
  const gchar *name = gst_structure_get_string (s, "types");
  const gchar *dimensions = gst_structure_get_string (s, "dimensions");
  guint width, height, i = 0;

  while (i < G_N_ELEMENTS (tensor_types) &&
         g_strcmp0 (name, tensor_types[i].name) != 0)
    i++;
  if (i == G_N_ELEMENTS (tensor_types) || !dimensions ||
      !parse_dimensions (dimensions, &width, &height))
    return FALSE;
  self->type = tensor_types[i].type;
  self->bytes_a_pixel = (guint) imk_type_size (self->type);
  if (!set_tensor (&self->info, width * self->bytes_a_pixel, height))
    return FALSE;
  self->info.fps_n = 0;
  self->info.fps_d = 1;
  gst_structure_get_fraction (
      s, "framerate", &self->info.fps_n, &self->info.fps_d);
  return TRUE;
}

gboolean
gst_imaging_lines_from_caps (GstImagingLines *self, const GstCaps *caps)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);

  self->is_tensor = gst_structure_has_name (s, "other/tensors");
  if (self->is_tensor)
    return parse_tensor (self, s);
  if (!gst_imaging_video_info_from_caps (&self->info, caps))
    return FALSE;
  self->type = GST_VIDEO_INFO_FORMAT (&self->info) == GST_VIDEO_FORMAT_GRAY8
                   ? IMK_TYPE_U8
                   : IMK_TYPE_U16;
  self->bytes_a_pixel = 1;
  return TRUE;
}

gboolean
gst_imaging_lines_set_height (GstImagingLines *self, guint height)
{
  GstVideoInfo info = self->info;
  gboolean ok = self->is_tensor ? set_tensor (&info, (guint) info.width, height)
                                : gst_imaging_video_info_set_format (&info,
                                      GST_VIDEO_INFO_FORMAT (&info),
                                      (guint) info.width, height);

  if (!ok)
    return FALSE;
  info.fps_n = self->info.fps_n;
  info.fps_d = self->info.fps_d;
  self->info = info;
  return TRUE;
}

guint
gst_imaging_lines_get_width (const GstImagingLines *self)
{
  return (guint) self->info.width / MAX (self->bytes_a_pixel, 1);
}

GstCaps *
gst_imaging_lines_to_caps (const GstImagingLines *self)
{
  g_autofree gchar *dimensions = NULL;
  const gchar *name = NULL;

  if (!self->is_tensor)
    return gst_video_info_to_caps (&self->info);
  for (guint i = 0; i < G_N_ELEMENTS (tensor_types); i++)
    if (tensor_types[i].type == self->type)
      name = tensor_types[i].name;
  dimensions = g_strdup_printf (
      "%u:%d:1:1", gst_imaging_lines_get_width (self), self->info.height);
  return gst_caps_new_simple ("other/tensors", "format", G_TYPE_STRING,
      "static", "num_tensors", G_TYPE_INT, 1, "types", G_TYPE_STRING, name,
      "dimensions", G_TYPE_STRING, dimensions, "framerate", GST_TYPE_FRACTION,
      self->info.fps_n, self->info.fps_d, NULL);
}
