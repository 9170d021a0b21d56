/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstphotostereofiles.h"

#include "files/gstimagingfile.h"

static ImkStatus
read_text (const gchar *property, const gchar *location, gchar **text,
    gsize *size, ImkError *error)
{
  g_autoptr (GError) why = NULL;

  *text = gst_imaging_file_load (
      location, GST_IMAGING_FILE_MAX_NUMBERS, size, &why);
  return *text ? IMK_OK
               : imk_error_set (
                     error, IMK_ERROR_FILE, "%s: %s", property, why->message);
}

gpointer
gst_photo_stereo_load_lights (
    const gchar *property, const gchar *location, ImkError *error)
{
  g_autofree gchar *text = NULL;
  g_autofree gchar *name = gst_imaging_file_name (location);
  ImkPhotostereoLights *lights = g_new0 (ImkPhotostereoLights, 1);
  gsize size;

  if (read_text (property, location, &text, &size, error) == IMK_OK &&
      imk_photostereo_lights_parse (text, size, name, lights, error) == IMK_OK)
    return lights;
  g_free (lights);
  return NULL;
}

void
gst_photo_stereo_free_lights (gpointer lights)
{
  imk_photostereo_lights_clear (lights);
  g_free (lights);
}

gpointer
gst_photo_stereo_load_intensities (
    const gchar *property, const gchar *location, ImkError *error)
{
  gchar *text;
  gsize size;

  if (read_text (property, location, &text, &size, error) != IMK_OK)
    return NULL;
  return g_bytes_new_take (text, size);
}

ImkStatus
gst_photo_stereo_join_lights (const GstImagingFile *lights,
    const GstImagingFile *intensities, ImkPhotostereoLights *joined,
    ImkError *error)
{
  const ImkPhotostereoLights *from = lights->data;
  gsize bytes = from->n * sizeof (*from->lights);
  g_autofree gchar *name = NULL;
  ImkPhotostereoLights to = *from;
  ImkStatus status = IMK_OK;

  to.lights = malloc (bytes); /* imk_photostereo_lights_clear () frees it */
  if (!to.lights)
    return IMK_NO_MEMORY (error, "for %u lights.", from->n);
  memcpy (to.lights, from->lights, bytes);
  if (intensities) {
    gsize size;
    const gchar *text = g_bytes_get_data (intensities->data, &size);

    name = gst_imaging_file_name (intensities->location);
    /* an empty file has no data */
    status = imk_photostereo_lights_parse_intensities (
        text ? text : "", size, name, &to, error);
  }
  if (status == IMK_OK)
    *joined = to;
  else
    imk_photostereo_lights_clear (&to);
  return status;
}

/* Returns: FALSE for what cannot be pictures of all bands */
static gboolean
describe_bands (const GstImagingNdArray *npy, guint bands, ImkImage *image)
{
  if (npy->n_dims != 3 || npy->dims[0] != bands || npy->dims[1] > G_MAXUINT16 ||
      npy->dims[2] > G_MAXUINT16)
    return FALSE;
  image->width = (guint32) npy->dims[2];
  image->height = (guint32) npy->dims[1] * bands;
  image->channels = 1;
  return TRUE;
}

static gboolean
describe_picture (const GstImagingNdArray *npy, ImkImage *image)
{
  if ((npy->n_dims != 2 && npy->n_dims != 3) || npy->dims[0] > G_MAXUINT16 ||
      npy->dims[1] > G_MAXUINT16 || npy->dims[2] > 4)
    return FALSE;
  image->width = (guint32) npy->dims[1];
  image->height = (guint32) npy->dims[0];
  image->channels = npy->n_dims == 3 ? (guint32) npy->dims[2] : 1;
  return TRUE;
}

/* Writes bool as samples of 16 bits. */
static void
widen (const GstImagingNdArray *npy, ImkImage *image, gpointer *wide)
{
  gsize n = (gsize) image->width * image->height * image->channels;
  guint16 *words = g_new (guint16, n);

  for (gsize i = 0; i < n; i++)
    words[i] = ((const guint8 *) npy->data)[i];
  image->type = IMK_TYPE_U16;
  image->data = *wide = words;
}

ImkStatus
gst_photo_stereo_describe_image (const gchar *property,
    const GstImagingFile *file, guint bands, const ImkImage *frame,
    ImkImage *image, gpointer *wide, ImkError *error)
{
  const GstImagingNdArray *npy = file->data;
  g_autofree gchar *what = NULL, *all = NULL, *name = NULL;
  guint n_pictures = bands > 1 && npy->n_dims == 3 ? bands : 1;
  gboolean is_picture;

  *image = (ImkImage){
      .data = (gpointer) npy->data,
      .type = npy->type == GST_IMAGING_ND_ARRAY_TYPE_U16 ? IMK_TYPE_U16
                                                         : IMK_TYPE_U8,
  };
  *wide = NULL;
  is_picture = (npy->type == GST_IMAGING_ND_ARRAY_TYPE_U8 ||
                   npy->type == GST_IMAGING_ND_ARRAY_TYPE_U16 ||
                   npy->type == GST_IMAGING_ND_ARRAY_TYPE_BOOL) &&
               (n_pictures > 1 ? describe_bands (npy, bands, image)
                               : describe_picture (npy, image));
  if (is_picture && image->width == frame->width &&
      image->height == frame->height * n_pictures) {
    if (npy->type == GST_IMAGING_ND_ARRAY_TYPE_BOOL &&
        frame->type == IMK_TYPE_U16)
      widen (npy, image, wide);
    image->stride = imk_image_row_size (image);
    return IMK_OK;
  }
  what = gst_imaging_nd_array_describe (npy);
  name = gst_imaging_file_name (file->location);
  if (is_picture)
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "%s \"%s\" is %s; it needs height %u and width %u, as the pictures.",
        property, name, what, frame->height, frame->width);
  all = bands > 1 ? g_strdup_printf ("[%u, height, width] for each band", bands)
                  : g_strdup ("[height, width, channels]");
  return imk_error_set (error, IMK_ERROR_FILE,
      "%s \"%s\" is %s; it needs to be u8, u16 or bool, [height, width] or %s, "
      "as the frames.",
      property, name, what, all);
}
