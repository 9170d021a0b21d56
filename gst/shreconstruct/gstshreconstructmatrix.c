/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructmatrix.h"

#include <string.h>

#include "gstimagingarrayfile.h"
#include "gstimagingdescription.h"

/* Returns: (transfer full) (nullable): what the file tells of its axes */
static GstStructure *
read_told (const gchar *location)
{
  GstImagingArrayReader *reader =
      gst_imaging_array_reader_new (location, G_MAXUINT64, NULL);
  GstImagingDescription *description;
  GstStructure *told;

  if (!reader)
    return NULL;
  description = gst_imaging_description_new (
      gst_imaging_array_reader_get_array (reader), location);
  told = gst_imaging_description_at (description, 0);
  gst_imaging_description_free (description);
  gst_imaging_array_reader_free (reader);
  return told;
}

/* Returns: (transfer full): in lower case, as FITS has capitals; "" without */
static gchar *
name_of (const GstStructure *told, guint axis)
{
  g_autofree gchar *field = g_strdup_printf ("axis-%u-name", axis);
  const gchar *name = told ? gst_structure_get_string (told, field) : NULL;

  return g_ascii_strdown (name ? name : "", -1);
}

/* As in "slopes x-then-y". */
static GstShReconstructOrder
order_of (const gchar *name)
{
  if (strstr (name, "interleaved"))
    return GST_SH_RECONSTRUCT_ORDER_INTERLEAVED;
  return strstr (name, "x-then-y") ? GST_SH_RECONSTRUCT_ORDER_X_THEN_Y
                                   : GST_SH_RECONSTRUCT_ORDER_AUTO;
}

static gboolean
has_slopes (const gchar *name)
{
  return strstr (name, "slope") != NULL ||
         order_of (name) != GST_SH_RECONSTRUCT_ORDER_AUTO;
}

/* Returns: (transfer full). @a: (transfer full): with two dimensions */
static GstShCentroidArray *
transpose (GstShCentroidArray *a)
{
  const guint64 dims[] = {a->dims[1], a->dims[0]};
  GstShCentroidArray *turned = gst_sh_centroid_array_new (2, dims);

  for (guint64 row = 0; row < dims[0]; row++)
    for (guint64 i = 0; i < dims[1]; i++)
      turned->values[row * dims[1] + i] = a->values[i * dims[0] + row];
  g_snprintf (turned->text, sizeof (turned->text), "%s, transposed", a->text);
  g_free (a);
  return turned;
}

GstShReconstructMatrix *
gst_sh_reconstruct_matrix_load (
    const gchar *property, const gchar *location, guint axis, ImkError *error)
{
  GstShCentroidArray *array =
      gst_sh_centroid_array_load_finite (property, location, error);
  GstStructure *told = array ? read_told (location) : NULL;
  g_autofree gchar *of_slopes = name_of (told, axis);
  g_autofree gchar *of_others = name_of (told, 1 - axis);
  GstShReconstructMatrix *self;

  if (!array)
    return NULL;
  self = g_new (GstShReconstructMatrix, 1);
  self->order = order_of (of_slopes);
  if (array->n_dims == 2 && has_slopes (of_others) && !has_slopes (of_slopes)) {
    array = transpose (array);
    self->order = order_of (of_others);
  }
  self->array = array;
  g_clear_pointer (&told, gst_structure_free);
  return self;
}

void
gst_sh_reconstruct_matrix_free (gpointer matrix)
{
  GstShReconstructMatrix *self = matrix;

  g_free (self->array);
  g_free (self);
}
