/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscanfiles.h"

#include <string.h>

/* Is @npy one row of @n for all cameras, or a row for each? */
static gboolean
fits (const GstImagingNdArray *npy, guint n_cameras, guint n, gboolean *each)
{
  *each = npy->n_dims == 2;
  return *each ? npy->dims[0] == n_cameras && npy->dims[1] == n
               : npy->n_dims == 1 && npy->dims[0] == n;
}

/* @values: a row, or one for each camera. Returns: (transfer full) */
static gdouble *
spread (const gdouble *values, gboolean each, guint n_cameras, gsize n_row)
{
  gdouble *rows = g_new (gdouble, n_cameras * n_row);

  for (guint i = 0; i < n_cameras; i++)
    memcpy (rows + i * n_row, values + (each ? i * n_row : 0),
        n_row * sizeof (gdouble));
  return rows;
}

static gdouble *
failed (const gchar *property, GError *why, ImkError *error)
{
  imk_error_set (error, IMK_ERROR_FILE, "%s: %s", property, why->message);
  g_error_free (why);
  return NULL;
}

static gdouble *
misshaped (const gchar *property, const gchar *location,
    const GstImagingNdArray *npy, const gchar *wanted, ImkError *error)
{
  gchar *shape = gst_imaging_nd_array_describe (npy);

  imk_error_set (error, IMK_ERROR_FILE, "%s \"%s\" is %s; it must be %s.",
      property, location, shape, wanted);
  g_free (shape);
  return NULL;
}

gdouble *
gst_oct_bscan_get_background (
    const GstImagingFile *file, guint n_cameras, guint width, ImkError *error)
{
  const gchar *property = "background-location";
  const GstImagingNdArray *npy = file->data;
  GError *why = NULL;
  gdouble *values = gst_imaging_nd_array_to_double (npy, NULL, &why);
  gdouble *spectra = NULL;
  gboolean each;

  if (why) {
    failed (property, why, error);
  } else if (fits (npy, n_cameras, width, &each)) {
    spectra = spread (values, each, n_cameras, width);
  } else {
    gchar *wanted = g_strdup_printf (
        "[%u], a spectrum for all cameras, or [%u, %u], one for each", width,
        n_cameras, width);

    misshaped (property, file->location, npy, wanted, error);
    g_free (wanted);
  }
  g_free (values);
  return spectra;
}

/* Returns: (transfer full) (nullable): pairs, NULL when they are not complex */
static gdouble *
complex_values (const GstImagingNdArray *npy)
{
  gboolean is_double = npy->type == GST_IMAGING_ND_ARRAY_TYPE_COMPLEX128;
  gsize n = 2 * npy->n_values;
  gdouble *values;

  if (!is_double && npy->type != GST_IMAGING_ND_ARRAY_TYPE_COMPLEX64)
    return NULL;
  values = g_new (gdouble, n);
  for (gsize i = 0; i < n; i++)
    values[i] = is_double ? ((const gdouble *) npy->data)[i]
                          : ((const gfloat *) npy->data)[i];
  return values;
}

gdouble *
gst_oct_bscan_get_pattern (const GstImagingFile *file, guint n_cameras,
    guint n_depths, ImkError *error)
{
  const gchar *property = "pattern-location";
  const GstImagingNdArray *npy = file->data;
  gdouble *values = complex_values (npy), *pattern = NULL;
  gboolean each;

  if (values && fits (npy, n_cameras, n_depths, &each)) {
    pattern = spread (values, each, n_cameras, 2 * (gsize) n_depths);
  } else {
    gchar *wanted = g_strdup_printf (
        "complex, [%u] depths for all cameras or [%u, %u] for each", n_depths,
        n_cameras, n_depths);

    misshaped (property, file->location, npy, wanted, error);
    g_free (wanted);
  }
  g_free (values);
  return pattern;
}

gpointer
gst_oct_bscan_load_curve (
    const gchar *property, const gchar *location, ImkError *error)
{
  GstImagingNdArray *npy =
      gst_imaging_setting_load_array (property, location, error);
  GError *why = NULL;
  gdouble *values =
      npy ? gst_imaging_nd_array_to_double (npy, NULL, &why) : NULL;

  if (why) {
    failed (property, why, error);
    g_clear_pointer (&npy, gst_imaging_nd_array_free);
  } else if (npy && (npy->n_dims != 1 || npy->n_values > G_MAXUINT32)) {
    misshaped (property, location, npy, "[n], numbers", error);
    g_clear_pointer (&npy, gst_imaging_nd_array_free);
  }
  g_free (values);
  return npy;
}

gdouble *
gst_oct_bscan_get_curve (const GstImagingFile *file, guint32 *n)
{
  const GstImagingNdArray *npy = file->data;

  *n = (guint32) npy->n_values;
  return gst_imaging_nd_array_to_double (npy, NULL, NULL);
}
