/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructmatrix.h"

#include <string.h>

#include "gstimagingarrayfile.h"
#include "gstimagingdescription.h"

/* The name of the axis has it, as "slopes x-then-y"; FITS has capitals. */
static GstShReconstructOrder
order_of (const GstStructure *told, guint axis)
{
  g_autofree gchar *field = g_strdup_printf ("axis-%u-name", axis);
  const gchar *name = told ? gst_structure_get_string (told, field) : NULL;
  g_autofree gchar *lower = g_ascii_strdown (name ? name : "", -1);

  if (strstr (lower, "interleaved"))
    return GST_SH_RECONSTRUCT_ORDER_INTERLEAVED;
  return strstr (lower, "x-then-y") ? GST_SH_RECONSTRUCT_ORDER_X_THEN_Y
                                    : GST_SH_RECONSTRUCT_ORDER_AUTO;
}

static GstShReconstructOrder
read_order (const gchar *location, guint axis)
{
  GstImagingArrayReader *reader =
      gst_imaging_array_reader_new (location, G_MAXUINT64, NULL);
  GstImagingDescription *description;
  GstShReconstructOrder order;
  GstStructure *told;

  if (!reader)
    return GST_SH_RECONSTRUCT_ORDER_AUTO;
  description = gst_imaging_description_new (
      gst_imaging_array_reader_get_array (reader), location);
  told = gst_imaging_description_at (description, 0);
  order = order_of (told, axis);
  g_clear_pointer (&told, gst_structure_free);
  gst_imaging_description_free (description);
  gst_imaging_array_reader_free (reader);
  return order;
}

GstShReconstructMatrix *
gst_sh_reconstruct_matrix_load (
    const gchar *property, const gchar *location, guint axis, ImkError *error)
{
  GstShCentroidArray *array =
      gst_sh_centroid_array_load_finite (property, location, error);
  GstShReconstructMatrix *self;

  if (!array)
    return NULL;
  self = g_new (GstShReconstructMatrix, 1);
  self->array = array;
  self->order = read_order (location, axis);
  return self;
}

void
gst_sh_reconstruct_matrix_free (gpointer matrix)
{
  GstShReconstructMatrix *self = matrix;

  g_free (self->array);
  g_free (self);
}
