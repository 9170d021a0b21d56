/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstinsarxcorrsettings.h"

#include "gstimagingnpy.h"

static ImkStatus
load (const gchar *property, const gchar *location, GstImagingNpy **npy,
    ImkError *error)
{
  GError *why = NULL;

  *npy = gst_imaging_npy_load (location, &why);
  if (*npy)
    return IMK_OK;
  imk_error_set (error, IMK_ERROR_CONFIG, "%s: %s", property, why->message);
  g_error_free (why);
  return IMK_ERROR_CONFIG;
}

static ImkStatus
wrong_array (const gchar *property, const GstImagingNpy *npy,
    const gchar *expected, ImkError *error)
{
  g_autofree gchar *found = gst_imaging_npy_describe (npy);

  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s: \"%s\" is %s; expected is %s.", property, npy->name, found,
      expected);
}

static ImkStatus
load_mask (GstInsarFiles *self, const gchar *location, ImkInsarxcorrConfig *c,
    ImkError *error)
{
  g_autoptr (GstImagingNpy) npy = NULL;
  ImkStatus status = load ("mask-location", location, &npy, error);

  if (status != IMK_OK)
    return status;
  if ((npy->type != GST_IMAGING_NPY_TYPE_U8 &&
          npy->type != GST_IMAGING_NPY_TYPE_BOOL) ||
      npy->n_dims != 2 || npy->n_values == 0 || npy->dims[0] > G_MAXUINT32 ||
      npy->dims[1] > G_MAXUINT32)
    return wrong_array ("mask-location", npy,
        "[lines, columns] of u8 or bool, over the whole reference", error);
  self->mask = gst_imaging_npy_get_bytes (npy);
  c->mask = g_bytes_get_data (self->mask, NULL);
  c->mask_width = (guint32) npy->dims[1];
  c->mask_height = (guint32) npy->dims[0];
  return IMK_OK;
}

static ImkStatus
load_gross_offsets (GstInsarFiles *self, const gchar *location,
    ImkInsarxcorrConfig *c, ImkError *error)
{
  g_autoptr (GstImagingNpy) npy = NULL;
  ImkStatus status = load ("gross-offsets-location", location, &npy, error);
  g_autofree gchar *expected = g_strdup_printf (
      "[%u, %u, 2], columns and lines of each patch", c->ny, c->nx);
  GError *why = NULL;

  if (status != IMK_OK)
    return status;
  if (npy->n_dims != 3 || npy->dims[0] != c->ny || npy->dims[1] != c->nx ||
      npy->dims[2] != 2)
    return wrong_array ("gross-offsets-location", npy, expected, error);
  self->gross_offsets = gst_imaging_npy_to_double (npy, NULL, &why);
  if (!self->gross_offsets) {
    imk_error_set (
        error, IMK_ERROR_CONFIG, "gross-offsets-location: %s", why->message);
    g_error_free (why);
    return IMK_ERROR_CONFIG;
  }
  c->gross_offsets = self->gross_offsets;
  return IMK_OK;
}

void
gst_insar_files_clear (GstInsarFiles *self)
{
  g_clear_pointer (&self->mask, g_bytes_unref);
  g_clear_pointer (&self->gross_offsets, g_free);
}

ImkStatus
gst_insar_files_load (GstInsarFiles *self, const GstInsarSettings *settings,
    ImkInsarxcorrConfig *config, ImkError *error)
{
  ImkStatus status = IMK_OK;

  *self = (GstInsarFiles){NULL};
  if (settings->mask_location)
    status = load_mask (self, settings->mask_location, config, error);
  if (status == IMK_OK && settings->gross_offsets_location)
    status = load_gross_offsets (
        self, settings->gross_offsets_location, config, error);
  if (status != IMK_OK)
    gst_insar_files_clear (self);
  return status;
}
