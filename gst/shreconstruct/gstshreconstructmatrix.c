/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructmatrix.h"

#include <string.h>

#include "gstimagingarrayfile.h"
#include "gstimagingdescription.h"
#include "gstshreconstructfile.h"

/* @told: (out) (transfer full) (nullable): what the file tells of its axes
 * Returns: FALSE with @error set, where the file beside it cannot be used */
static gboolean
read_told (const gchar *property, const gchar *location, gint part,
    GstStructure **told, ImkError *error)
{
  g_autoptr (GstImagingArrayReader) reader =
      gst_imaging_array_reader_new_part (location, G_MAXUINT64, part, NULL);
  g_autoptr (GstImagingDescription) description = NULL;
  const gchar *fault;

  *told = NULL;
  if (!reader)
    return TRUE;
  description = gst_imaging_description_new (
      gst_imaging_array_reader_get_array (reader), location);
  fault = gst_imaging_description_get_fault (description);
  if (fault)
    imk_error_set (error, IMK_ERROR_FILE,
        "%s: the order of slopes is not known: %s", property, fault);
  else
    *told = gst_imaging_description_at (description, 0);
  return !fault;
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

static GstShReconstructRows
rows_of (const gchar *name)
{
  if (strstr (name, "mode"))
    return GST_SH_RECONSTRUCT_ROWS_MODES;
  return strstr (name, "command") ? GST_SH_RECONSTRUCT_ROWS_COMMANDS
                                  : GST_SH_RECONSTRUCT_ROWS_UNNAMED;
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
  g_strlcpy (turned->text, a->text, sizeof (turned->text));
  g_free (a);
  return turned;
}

/* The last two of three dimensions become one.
 * Returns: whether @a had three */
static gboolean
flatten (GstShCentroidArray *a)
{
  if (a->n_dims != 3)
    return FALSE;
  a->dims[1] *= a->dims[2];
  a->n_dims = 2;
  return TRUE;
}

gpointer
gst_sh_reconstruct_modes_load (
    const gchar *property, const gchar *location, ImkError *error)
{
  GstShCentroidArray *array =
      gst_sh_reconstruct_array_load (property, location, error);

  if (!array || !flatten (array))
    return array;
  array = transpose (array);
  g_strlcat (array->text, " as a cube [modes, y, x]", sizeof (array->text));
  return array;
}

/* Where names do not tell, slopes are where the property has them, and in a
 * cube along a row. */
static gboolean
has_slopes_along_row (
    const gchar *row, const gchar *column, gboolean is_cube, guint axis)
{
  if (has_slopes (row) != has_slopes (column))
    return has_slopes (row);
  return is_cube || axis == 0;
}

/* Slopes become those of @axis. */
static void
orient (GstShReconstructMatrix *self, const GstStructure *told,
    gboolean is_cube, guint axis)
{
  g_autofree gchar *x = name_of (told, 0), *y = name_of (told, 1);
  g_autofree gchar *both = g_strjoin (" ", x, y, NULL);
  g_autofree gchar *mode = name_of (told, 2);
  const gchar *row = is_cube ? both : x, *column = is_cube ? mode : y;
  const gboolean along_row = has_slopes_along_row (row, column, is_cube, axis);

  self->order = order_of (along_row ? row : column);
  self->rows = rows_of (along_row ? column : row);
  self->is_guess &= along_row && self->order == GST_SH_RECONSTRUCT_ORDER_AUTO;
  if (self->is_guess)
    self->order = GST_SH_RECONSTRUCT_ORDER_INTERLEAVED;
  if (along_row != (axis == 0)) {
    self->array = transpose (self->array);
    g_strlcat (self->array->text, is_cube ? " as a cube" : ", transposed",
        sizeof (self->array->text));
  }
}

/* Returns: whether an axis is named as that of slopes */
static gboolean
is_named (const GstStructure *told)
{
  gboolean found = FALSE;

  for (guint axis = 0; axis < 3; axis++) {
    g_autofree gchar *name = name_of (told, axis);

    found |= has_slopes (name);
  }
  return found;
}

/* An interaction matrix [cells, 2, commands], as INTERACTION_MATRIX is.
 * Returns: whether @self is one */
static gboolean
take_pairs (GstShReconstructMatrix *self, const GstStructure *told,
    const gchar *name, guint axis)
{
  GstShCentroidArray *a = self->array;

  if (axis != 1 || a->n_dims != 3 || a->dims[1] != 2 ||
      (g_strcmp0 (name, "INTERACTION_MATRIX") != 0 && is_named (told)))
    return FALSE;
  a->n_dims = 2;
  a->dims[0] *= 2;
  a->dims[1] = a->dims[2];
  self->order = GST_SH_RECONSTRUCT_ORDER_INTERLEAVED;
  return TRUE;
}

GstShReconstructMatrix *
gst_sh_reconstruct_matrix_load (
    const gchar *property, const gchar *location, guint axis, ImkError *error)
{
  const gchar *name;
  gint part;
  GstShCentroidArray *array =
      gst_sh_reconstruct_array_load (property, location, error);
  g_autoptr (GstStructure) told = NULL;
  GstShReconstructMatrix *self;
  gboolean is_cube;

  if (!array ||
      !gst_sh_reconstruct_find_image (
          property, location, &name, &part, error) ||
      !read_told (property, location, part, &told, error)) {
    g_free (array);
    return NULL;
  }
  self = g_new (GstShReconstructMatrix, 1);
  self->order = GST_SH_RECONSTRUCT_ORDER_AUTO;
  self->rows = GST_SH_RECONSTRUCT_ROWS_UNNAMED;
  self->is_guess =
      array->n_dims == 3 && array->dims[2] == 2 && array->dims[1] != 2;
  self->array = array;
  if (take_pairs (self, told, name, axis))
    return self;
  is_cube = flatten (array);
  if (array->n_dims == 2)
    orient (self, told, is_cube, axis);
  return self;
}

void
gst_sh_reconstruct_matrix_free (gpointer matrix)
{
  GstShReconstructMatrix *self = matrix;

  g_free (self->array);
  g_free (self);
}
