/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Spectra as video and as tensors, and in which memory they are. */
#include "gstoctbscaninput.h"

#include "gstimagingmemory.h"
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
  gchar **words = g_strsplit (text, ":", -1);
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
  g_strfreev (words);
  return ok && n[0] > 0 && n[1] > 0;
}

static gboolean
parse_tensor (const GstStructure *s, GstVideoInfo *lines, ImkType *type,
    guint *bytes_a_pixel)
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
  *type = tensor_types[i].type;
  *bytes_a_pixel = (guint) imk_type_size (*type);
  if (!gst_imaging_video_info_set_format (
          lines, GST_VIDEO_FORMAT_GRAY8, width * *bytes_a_pixel, height))
    return FALSE;
  /* rows of a tensor stand close to each other */
  lines->stride[0] = lines->width;
  lines->size = (gsize) lines->width * height;
  lines->fps_n = 0;
  lines->fps_d = 1;
  gst_structure_get_fraction (s, "framerate", &lines->fps_n, &lines->fps_d);
  return TRUE;
}

gboolean
gst_oct_bscan_parse_caps (const GstCaps *caps, GstVideoInfo *lines,
    ImkType *type, guint *bytes_a_pixel)
{
  const GstStructure *s = gst_caps_get_structure (caps, 0);

  if (gst_structure_has_name (s, "other/tensors"))
    return parse_tensor (s, lines, type, bytes_a_pixel);
  if (!gst_imaging_video_info_from_caps (lines, caps))
    return FALSE;
  *type = GST_VIDEO_INFO_FORMAT (lines) == GST_VIDEO_FORMAT_GRAY8
              ? IMK_TYPE_U8
              : IMK_TYPE_U16;
  *bytes_a_pixel = 1;
  return TRUE;
}

void
gst_oct_bscan_input_image (const GstOctBscan *self, ImkImage *plane)
{
  plane->type = self->type;
  plane->width /= self->bytes_a_pixel;
  plane->data = (guint8 *) plane->data + self->n_skipped * plane->stride;
  plane->height -= self->n_skipped;
}

guint
gst_oct_bscan_first_camera (const GstOctBscan *self)
{
  return (self->next_camera + self->n_skipped) % self->open.config.n_cameras;
}

GstMemory *
gst_oct_bscan_peek_ours (GstBuffer *buffer)
{
  GstMemory *memory = gst_buffer_n_memory (buffer) == 1
                          ? gst_buffer_peek_memory (buffer, 0)
                          : NULL;

  return memory && gst_is_imaging_memory (memory) ? memory : NULL;
}

gboolean
gst_oct_bscan_is_on_device (GstBuffer *buffer)
{
  GstMemory *memory = gst_oct_bscan_peek_ours (buffer);

  return memory && gst_imaging_memory_is_on_device (memory);
}

gsize
gst_oct_bscan_work_in_step (const GstOctBscan *self)
{
  return (gsize) self->bscan.height * self->bscan.stride[0];
}
