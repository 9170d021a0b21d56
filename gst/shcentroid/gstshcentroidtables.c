/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidtables.h"

#include "gstshcentroidfiles.h"

/* Returns: (nullable): the array of @kind, which has to be [@n_rows,
 * @n_columns]; NULL with IMK_OK in @status where there is none */
static const GstShCentroidArray *
array_of (const GstShCentroidSettings *settings,
    GstShCentroidCalibrationKind kind, guint64 n_rows, guint64 n_columns,
    ImkStatus *status, ImkError *error)
{
  const gchar *property = gst_sh_centroid_settings_file_property (kind);
  const GstImagingFile *file = settings->files[kind];
  const GstShCentroidArray *array = gst_imaging_setting_file_data (file);

  if (*status != IMK_OK || !array)
    return NULL;
  if (gst_sh_centroid_array_has_shape (array, n_rows, n_columns))
    return array;
  if (!*array->text)
    *status = imk_error_set (error, IMK_ERROR_CONFIG,
        "The captured %s is of another frame or grid than this one. Set %s, to "
        "\"\" for none; then it can be captured again.",
        gst_sh_centroid_calibration_name (kind), property);
  else if (kind == GST_SH_CENTROID_REFERENCE)
    *status = imk_error_set (error, IMK_ERROR_FILE,
        "%s \"%s\" is %s; the %" G_GUINT64_FORMAT
        " cells need [%" G_GUINT64_FORMAT ", 2], x and y of each.",
        property, file->location, array->text, n_rows, n_rows);
  else
    *status = imk_error_set (error, IMK_ERROR_FILE,
        "%s \"%s\" is %s; it has to be [%" G_GUINT64_FORMAT
        ", %" G_GUINT64_FORMAT "].",
        property, file->location, array->text, n_rows, n_columns);
  return NULL;
}

/* Returns: (transfer full) (nullable) */
static gfloat *
floats_of (const GstShCentroidArray *array)
{
  return array ? gst_sh_centroid_array_to_floats (array) : NULL;
}

/* Returns: (transfer full) (nullable): 1 where @array is not 0 */
static guint8 *
flags_of (const GstShCentroidArray *array)
{
  guint8 *flags = array ? g_new (guint8, array->n) : NULL;

  for (gsize i = 0; array && i < array->n; i++)
    flags[i] = array->values[i] != 0;
  return flags;
}

static ImkStatus
load_templates (GstShCentroidTables *tables,
    const GstShCentroidSettings *settings, ImkShcentroidConfig *config,
    ImkError *error)
{
  const GstImagingFile *file = settings->files[GST_SH_CENTROID_TEMPLATE];
  const GstShCentroidArray *array = gst_imaging_setting_file_data (file);
  guint one;

  if (config->template_source == IMK_SHCENTROID_TEMPLATE_FRAME || !array)
    return IMK_OK;
  one = array->n_dims == 2; /* for all cells */
  if (array->n_dims < 2 || array->n == 0)
    return imk_error_set (error, IMK_ERROR_FILE,
        "template-location \"%s\" is %s; it has to be [height, width] for all "
        "cells or [cells, height, width], of at least one pixel.",
        file->location, array->text);
  if (MAX (array->dims[0], MAX (array->dims[1], array->dims[2])) > G_MAXUINT32)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "template-location \"%s\" is too large.", file->location);
  /* one for each cell, where there is but one */
  if (!one && array->dims[0] == 1 && imk_shcentroid_n_cells (config) == 1)
    config->template_cell = 0;
  tables->templates = gst_sh_centroid_array_to_floats (array);
  config->templates = tables->templates;
  config->n_templates = one ? 1 : (guint32) array->dims[0];
  config->template_height = (guint32) array->dims[1 - one];
  config->template_width = (guint32) array->dims[2 - one];
  return IMK_OK;
}

ImkStatus
gst_sh_centroid_tables_load (GstShCentroidTables *tables,
    const GstShCentroidSettings *s, ImkShcentroidConfig *config,
    ImkError *error)
{
  guint64 width = config->width, height = config->height;
  guint64 n_samples = config->type == IMK_TYPE_U8 ? 256 : 65536;
  ImkStatus status = IMK_OK;
  const GstShCentroidArray *references;

  tables->dark = floats_of (
      array_of (s, GST_SH_CENTROID_DARK, height, width, &status, error));
  tables->flat = floats_of (
      array_of (s, GST_SH_CENTROID_FLAT, height, width, &status, error));
  tables->bad = flags_of (
      array_of (s, GST_SH_CENTROID_BAD_PIXELS, height, width, &status, error));
  tables->lut = floats_of (
      array_of (s, GST_SH_CENTROID_LUT, 1, n_samples, &status, error));
  references = array_of (s, GST_SH_CENTROID_REFERENCE,
      imk_shcentroid_n_cells (config), 2, &status, error);
  if (references)
    tables->references =
        g_memdup2 (references->values, references->n * sizeof (gdouble));
  config->dark = tables->dark;
  config->flat = tables->flat;
  config->bad = tables->bad;
  config->lut = tables->lut;
  config->references = tables->references;
  return status == IMK_OK ? load_templates (tables, s, config, error) : status;
}

void
gst_sh_centroid_tables_clear (GstShCentroidTables *tables)
{
  g_clear_pointer (&tables->dark, g_free);
  g_clear_pointer (&tables->flat, g_free);
  g_clear_pointer (&tables->lut, g_free);
  g_clear_pointer (&tables->templates, g_free);
  g_clear_pointer (&tables->bad, g_free);
  g_clear_pointer (&tables->references, g_free);
}
