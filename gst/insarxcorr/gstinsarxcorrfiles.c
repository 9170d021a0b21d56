/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingndarray.h"
#include "gstinsarxcorrsettings.h"

typedef struct {
  GstImagingNdArray *npy; /* [ny][nx][2] */
  gdouble *values;
} GrossOffsets;

static ImkStatus
wrong_array (const gchar *property, const GstImagingNdArray *npy,
    const gchar *expected, ImkError *error)
{
  g_autofree gchar *found = gst_imaging_nd_array_describe (npy);

  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s: \"%s\" is %s; expected is %s.", property, npy->name, found,
      expected);
}

gpointer
gst_insar_load_mask (
    const gchar *property, const gchar *location, ImkError *error)
{
  g_autoptr (GstImagingNdArray) npy =
      gst_imaging_setting_load_array (property, location, error);

  if (!npy)
    return NULL;
  if ((npy->type == GST_IMAGING_ND_ARRAY_TYPE_U8 ||
          npy->type == GST_IMAGING_ND_ARRAY_TYPE_BOOL) &&
      npy->n_dims == 2 && npy->n_values > 0 && npy->dims[0] <= G_MAXUINT32 &&
      npy->dims[1] <= G_MAXUINT32)
    return g_steal_pointer (&npy);
  wrong_array (property, npy,
      "[lines, columns] of u8 or bool, over the whole reference", error);
  return NULL;
}

gpointer
gst_insar_load_gross_offsets (
    const gchar *property, const gchar *location, ImkError *error)
{
  g_autoptr (GstImagingNdArray) npy =
      gst_imaging_setting_load_array (property, location, error);
  GrossOffsets *self;
  gdouble *values;
  GError *why = NULL;

  if (!npy)
    return NULL;
  values = gst_imaging_nd_array_to_double (npy, NULL, &why);
  if (!values) {
    imk_error_set (error, IMK_ERROR_FILE, "%s: %s", property, why->message);
    g_error_free (why);
    return NULL;
  }
  self = g_new (GrossOffsets, 1);
  self->npy = g_steal_pointer (&npy);
  self->values = values;
  return self;
}

void
gst_insar_free_gross_offsets (gpointer offsets)
{
  GrossOffsets *self = offsets;

  gst_imaging_nd_array_free (self->npy);
  g_free (self->values);
  g_free (self);
}

ImkStatus
gst_insar_settings_use_files (
    const GstInsarSettings *self, ImkInsarxcorrConfig *config, ImkError *error)
{
  const GstImagingNdArray *mask = gst_imaging_setting_file_data (self->mask);
  const GrossOffsets *gross =
      gst_imaging_setting_file_data (self->gross_offsets);
  g_autofree gchar *expected = g_strdup_printf (
      "[%u, %u, 2], columns and lines of each patch", config->ny, config->nx);

  if (gross &&
      (gross->npy->n_dims != 3 || gross->npy->dims[0] != config->ny ||
          gross->npy->dims[1] != config->nx || gross->npy->dims[2] != 2))
    return wrong_array ("gross-offsets-location", gross->npy, expected, error);
  config->gross_offsets = gross ? gross->values : NULL;
  config->mask = mask ? mask->data : NULL;
  config->mask_width = mask ? (guint32) mask->dims[1] : 0;
  config->mask_height = mask ? (guint32) mask->dims[0] : 0;
  return IMK_OK;
}
