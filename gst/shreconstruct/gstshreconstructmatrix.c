/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructmatrix.h"

#include <math.h>
#include <string.h>

#include "gstimagingarrayfile.h"
#include "gstimagingdescription.h"
#include "gstshreconstructfile.h"

/* @axes: (out) (transfer full) (nullable): what the file tells of its axes
 * @lenslets, @n_cells: (out) (transfer full) (nullable): of its slopes
 * Returns: FALSE with @error set, where the file beside it cannot be used */
static gboolean
read_axes (const gchar *property, const gchar *location, gint part,
    GstStructure **axes, guint32 **lenslets, guint *n_cells, ImkError *error)
{
  g_autoptr (GstImagingArrayReader) reader =
      gst_imaging_array_reader_new_part (location, G_MAXUINT64, part, NULL);
  g_autoptr (GstImagingDescription) description = NULL;
  const guint32 *cells;
  const gchar *fault;

  *axes = NULL;
  *lenslets = NULL;
  *n_cells = 0;
  if (!reader)
    return TRUE;
  description = gst_imaging_description_new (
      gst_imaging_array_reader_get_array (reader), location);
  fault = gst_imaging_description_get_fault (description);
  if (fault) {
    imk_error_set (error, IMK_ERROR_FILE,
        "%s: the order of slopes is not known: %s", property, fault);
    return FALSE;
  }
  *axes = gst_imaging_description_at (description, 0);
  cells = gst_imaging_description_get_cells (description, n_cells);
  *lenslets = g_memdup2 (cells, 2 * (gsize) *n_cells * sizeof (*cells));
  return TRUE;
}

/* Returns: (transfer full): in lower case, as FITS has capitals; "" without */
static gchar *
axis_name (const GstStructure *axes, guint axis)
{
  g_autofree gchar *field = g_strdup_printf ("axis-%u-name", axis);
  const gchar *name = axes ? gst_structure_get_string (axes, field) : NULL;

  return g_ascii_strdown (name ? name : "", -1);
}

/* As in "slopes x-then-y". */
static GstShReconstructOrder
named_order (const gchar *name)
{
  if (strstr (name, "interleaved"))
    return GST_SH_RECONSTRUCT_ORDER_INTERLEAVED;
  return strstr (name, "x-then-y") ? GST_SH_RECONSTRUCT_ORDER_X_THEN_Y
                                   : GST_SH_RECONSTRUCT_ORDER_AUTO;
}

/* MEASUREMENTS_TO_MODES or CONTROL_MATRIX */
static GstShReconstructRows
image_rows (const gchar *image)
{
  return g_str_equal (image, "MEASUREMENTS_TO_MODES")
             ? GST_SH_RECONSTRUCT_ROWS_MODES
             : GST_SH_RECONSTRUCT_ROWS_COMMANDS;
}

static GstShReconstructRows
named_rows (const gchar *name)
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
         named_order (name) != GST_SH_RECONSTRUCT_ORDER_AUTO;
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

/* Slopes become those of @axis. Where names do not tell, slopes are where the
 * property has them, and in a cube along a row. */
static void
orient_slopes (GstShReconstructMatrix *self, const GstStructure *axes,
    gboolean is_cube, guint axis)
{
  g_autofree gchar *x = axis_name (axes, 0), *y = axis_name (axes, 1);
  g_autofree gchar *both = g_strjoin (" ", x, y, NULL);
  g_autofree gchar *mode = axis_name (axes, 2);
  const gchar *row = is_cube ? both : x, *column = is_cube ? mode : y;
  const gboolean is_named = has_slopes (row) != has_slopes (column);
  const gboolean along_row = is_named ? has_slopes (row) : is_cube || axis == 0;
  const gchar *name = along_row ? row : column;

  self->name = is_named ? g_strdup (name) : NULL;
  self->order = named_order (name);
  self->rows = named_rows (along_row ? column : row);
  self->is_guess &= along_row && self->order == GST_SH_RECONSTRUCT_ORDER_AUTO;
  if (self->is_guess)
    self->order = GST_SH_RECONSTRUCT_ORDER_INTERLEAVED;
  self->is_transposed = along_row != (axis == 0);
  if (self->is_transposed) {
    self->array = transpose (self->array);
    g_strlcat (self->array->text, is_cube ? " as a cube" : ", transposed",
        sizeof (self->array->text));
  }
}

/* Returns: whether an axis is named as that of slopes */
static gboolean
names_slopes (const GstStructure *axes)
{
  gboolean found = FALSE;

  for (guint axis = 0; axis < 3; axis++) {
    g_autofree gchar *name = axis_name (axes, axis);

    found |= has_slopes (name);
  }
  return found;
}

/* An interaction matrix [cells, 2, commands], as INTERACTION_MATRIX is.
 * Returns: whether @self is one */
static gboolean
take_pairs (GstShReconstructMatrix *self, const GstStructure *axes,
    const gchar *name, guint axis)
{
  GstShCentroidArray *a = self->array;

  if (axis != 1 || a->n_dims != 3 || a->dims[1] != 2 ||
      (g_strcmp0 (name, "INTERACTION_MATRIX") != 0 && names_slopes (axes)))
    return FALSE;
  a->n_dims = 2;
  a->dims[0] *= 2;
  a->dims[1] = a->dims[2];
  self->order = GST_SH_RECONSTRUCT_ORDER_INTERLEAVED;
  return TRUE;
}

/* Telemetry has the number of the cell at each place, and -1 for none.
 * Returns: (transfer full) (nullable): [n_cells][2]; NULL where it does not
 * have each cell once */
static guint32 *
read_mask (const gchar *location, guint64 n_cells)
{
  const gint part = gst_sh_reconstruct_find_part (location, "SUBAPERTURE_MASK");
  g_autofree GstShCentroidArray *mask = NULL;
  g_autofree guint32 *places = g_new (guint32, 2 * n_cells);
  guint64 n = 0;

  if (part >= 0)
    mask = gst_sh_centroid_array_load_part (
        "matrix-location", location, part, NULL);
  memset (places, 0xff, 2 * n_cells * sizeof (*places));
  for (gsize i = 0; mask && mask->n_dims == 2 && i < mask->n; i++) {
    const gdouble cell = mask->values[i];

    if (cell < 0)
      continue;
    if (!(cell < (gdouble) n_cells) || cell != floor (cell) ||
        places[2 * (gsize) cell] != G_MAXUINT32)
      return NULL;
    places[2 * (gsize) cell] = (guint32) (i / mask->dims[1]);
    places[2 * (gsize) cell + 1] = (guint32) (i % mask->dims[1]);
    n++;
  }
  return n == n_cells ? g_steal_pointer (&places) : NULL;
}

/* Two slopes for each lenslet that is named. */
static gboolean
check_lenslets (const GstShReconstructMatrix *self, guint n_cells, guint axis,
    const gchar *property, const gchar *location, ImkError *error)
{
  const guint64 n_slopes =
      self->array->n_dims == 2 ? self->array->dims[axis == 0] : 0;

  if (!self->lenslets || n_slopes == 2 * (guint64) n_cells)
    return TRUE;
  imk_error_set (error, IMK_ERROR_FILE,
      "%s \"%s\" has %" G_GUINT64_FORMAT
      " slopes, and the .json beside it names %u lenslets in \"row-column\". "
      "Write it again with its file, or remove it.",
      property, location, n_slopes, n_cells);
  return FALSE;
}

/* Names and order of the slopes, along @axis. */
static void
arrange_slopes (
    GstShReconstructMatrix *self, const GstStructure *axes, guint axis)
{
  GstShCentroidArray *array = self->array;
  gboolean is_cube;

  if (take_pairs (self, axes, self->image, axis))
    return;
  is_cube = flatten (array);
  if (array->n_dims == 2)
    orient_slopes (self, axes, is_cube, axis);
  if (self->image && axis == 0)
    self->rows = image_rows (self->image);
}

GstShReconstructMatrix *
gst_sh_reconstruct_matrix_load (
    const gchar *property, const gchar *location, guint axis, ImkError *error)
{
  const gchar *name;
  gint part;
  GstShCentroidArray *array =
      gst_sh_reconstruct_array_load (property, location, error);
  g_autoptr (GstStructure) axes = NULL;
  GstShReconstructMatrix *self;
  guint32 *lenslets;
  guint n_cells;

  if (!array ||
      !gst_sh_reconstruct_find_image (
          property, location, &name, &part, error) ||
      !read_axes (
          property, location, part, &axes, &lenslets, &n_cells, error)) {
    g_free (array);
    return NULL;
  }
  self = g_new0 (GstShReconstructMatrix, 1);
  self->is_guess =
      array->n_dims == 3 && array->dims[2] == 2 && array->dims[1] != 2;
  self->array = array;
  self->image = name;
  self->lenslets = lenslets;
  arrange_slopes (self, axes, axis);
  if (name && !lenslets && self->array->n_dims == 2) {
    n_cells = (guint) (self->array->dims[axis == 0] / 2);
    self->lenslets = read_mask (location, n_cells);
  }
  if (check_lenslets (self, n_cells, axis, property, location, error))
    return self;
  gst_sh_reconstruct_matrix_free (self);
  return NULL;
}

void
gst_sh_reconstruct_matrix_free (gpointer matrix)
{
  GstShReconstructMatrix *self = matrix;

  g_free (self->array);
  g_free (self->name);
  g_free (self->lenslets);
  g_free (self);
}
