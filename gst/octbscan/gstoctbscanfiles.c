/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscanfiles.h"

#include <string.h>

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
  g_autofree gchar *shape = gst_imaging_nd_array_describe (npy);

  imk_error_set (error, IMK_ERROR_FILE, "%s \"%s\" is %s; it must be %s.",
      property, location, shape, wanted);
  return NULL;
}

/* @values: of @file, @parts numbers each: a row of @n for all cameras, or one
 *   for each; (nullable): they are of another kind
 * @what: the property, and what its values are, for messages
 * Returns: (transfer full): rows of all cameras */
static gdouble *
spread (const GstImagingFile *file, const gdouble *values, guint n_cameras,
    guint n, guint parts, const gchar *const what[2], ImkError *error)
{
  const GstImagingNdArray *npy = file->data;
  gboolean each = npy->n_dims == 2 && npy->dims[0] == n_cameras;
  gsize n_row = (gsize) n * parts;
  gdouble *rows;

  if (!values || npy->n_dims != (each ? 2 : 1) || npy->dims[each] != n) {
    g_autofree gchar *wanted =
        g_strdup_printf ("%s, [%u] for all cameras or [%u, %u] for each",
            what[1], n, n_cameras, n);

    return misshaped (what[0], file->location, npy, wanted, error);
  }
  rows = g_new (gdouble, n_cameras * n_row);
  for (guint i = 0; i < n_cameras; i++)
    memcpy (rows + i * n_row, values + (each ? i * n_row : 0),
        n_row * sizeof (gdouble));
  return rows;
}

gdouble *
gst_oct_bscan_get_background (
    const GstImagingFile *file, guint n_cameras, guint width, ImkError *error)
{
  static const gchar *const what[] = {"background-location", "spectra"};
  GError *why = NULL;
  g_autofree gdouble *values =
      gst_imaging_nd_array_to_double (file->data, NULL, &why);

  return why ? failed (what[0], why, error)
             : spread (file, values, n_cameras, width, 1, what, error);
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
  static const gchar *const what[] = {"pattern-location", "complex depths"};
  g_autofree gdouble *values = complex_values (file->data);

  return spread (file, values, n_cameras, n_depths, 2, what, error);
}

gpointer
gst_oct_bscan_load_curve (
    const gchar *property, const gchar *location, ImkError *error)
{
  GstImagingNdArray *npy =
      gst_imaging_setting_load_array (property, location, error);
  GError *why = NULL;

  if (npy) /* does it have numbers? */
    g_free (gst_imaging_nd_array_to_double (npy, NULL, &why));
  if (why) {
    failed (property, why, error);
    g_clear_pointer (&npy, gst_imaging_nd_array_free);
  } else if (npy && (npy->n_dims != 1 || npy->n_values > G_MAXUINT32)) {
    misshaped (property, location, npy, "[n], numbers", error);
    g_clear_pointer (&npy, gst_imaging_nd_array_free);
  }
  return npy;
}

gdouble *
gst_oct_bscan_get_curve (const GstImagingFile *file, guint32 *n)
{
  const GstImagingNdArray *npy = file->data;

  *n = (guint32) npy->n_values;
  return gst_imaging_nd_array_to_double (npy, NULL, NULL);
}
