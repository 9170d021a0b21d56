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

ImkStatus
gst_photo_stereo_load_lights (const gchar *location,
    const gchar *intensities_location, ImkPhotostereoLights *lights,
    ImkError *error)
{
  g_autofree gchar *text = NULL;
  g_autofree gchar *intensities = NULL;
  g_autofree gchar *name = gst_imaging_file_name (location);
  gsize size;
  ImkStatus status =
      read_text ("lights-location", location, &text, &size, error);

  if (status == IMK_OK)
    status = imk_photostereo_lights_parse (text, size, name, lights, error);
  if (status != IMK_OK || !intensities_location)
    return status;
  g_free (name);
  name = gst_imaging_file_name (intensities_location);
  status = read_text (
      "intensities-location", intensities_location, &intensities, &size, error);
  if (status == IMK_OK)
    status = imk_photostereo_lights_parse_intensities (
        intensities, size, name, lights, error);
  if (status != IMK_OK)
    imk_photostereo_lights_clear (lights);
  return status;
}

/* Returns: FALSE for what cannot be pictures of all bands */
static gboolean
describe_bands (const GstImagingNpy *npy, guint bands, ImkImage *image)
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
describe_picture (const GstImagingNpy *npy, ImkImage *image)
{
  if ((npy->n_dims != 2 && npy->n_dims != 3) || npy->dims[0] > G_MAXUINT16 ||
      npy->dims[1] > G_MAXUINT16 || npy->dims[2] > 4)
    return FALSE;
  image->width = (guint32) npy->dims[1];
  image->height = (guint32) npy->dims[0];
  image->channels = npy->n_dims == 3 ? (guint32) npy->dims[2] : 1;
  return TRUE;
}

ImkStatus
gst_photo_stereo_load_image (const gchar *property, const gchar *location,
    guint bands, GstImagingNpy **npy, ImkImage *image, ImkError *error)
{
  GError *why = NULL;
  ImkStatus status = IMK_OK;

  *npy = gst_imaging_npy_load (location, &why);
  if (!*npy) {
    status =
        imk_error_set (error, IMK_ERROR_FILE, "%s: %s", property, why->message);
    g_clear_error (&why);
    return status;
  }
  *image = (ImkImage){
      .data = (gpointer) (*npy)->data,
      .type =
          (*npy)->type == GST_IMAGING_NPY_TYPE_U8 ? IMK_TYPE_U8 : IMK_TYPE_U16,
  };
  if (((*npy)->type != GST_IMAGING_NPY_TYPE_U8 &&
          (*npy)->type != GST_IMAGING_NPY_TYPE_U16) ||
      !(bands > 1 && (*npy)->n_dims == 3 ? describe_bands (*npy, bands, image)
                                         : describe_picture (*npy, image))) {
    g_autofree gchar *what = gst_imaging_npy_describe (*npy);
    g_autofree gchar *all =
        bands > 1 ? g_strdup_printf ("[%u, height, width] for each band", bands)
                  : g_strdup ("[height, width, channels]");

    return imk_error_set (error, IMK_ERROR_FILE,
        "%s \"%s\" is %s; it needs to be u8 or u16, [height, width] or %s, as "
        "the frames.",
        property, location, what, all);
  }
  image->stride = imk_image_row_size (image);
  return status;
}
