/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidtemplate.h"

#include <math.h>
#include <stdlib.h>

#include <gst/gst.h>

#include "gstimagingenum.h"
#include "gstimagingnpy.h"

static const GEnumValue source_values[] = {
    {IMK_SHCENTROID_TEMPLATE_STORED,
        "template-location, or what capture-template has captured", "stored"},
    {IMK_SHCENTROID_TEMPLATE_FRAME,
        "The cell template-cell of each frame itself: a live reference",
        "frame"},
    {0, NULL, NULL},
};

static const GEnumValue correlation_values[] = {
    {IMK_SHCENTROID_CORRELATION_NORMALISED,
        "Covariance of what lies in both, divided by both standard deviations: "
        "scenes that go on beyond the cell",
        "normalised"},
    {IMK_SHCENTROID_CORRELATION_COVARIANCE,
        "Sum of products, less the means of cell and template: spots",
        "covariance"},
    {IMK_SHCENTROID_CORRELATION_DIFFERENCE,
        "The least mean square of the difference, less the means of what lies "
        "in both; the template has to be as bright as the cell",
        "difference"},
    {0, NULL, NULL},
};

static const GEnumValue peak_fit_values[] = {
    {IMK_SHCENTROID_PEAK_PARABOLOID,
        "A paraboloid by all nine scores about the best: oblique structure",
        "paraboloid"},
    {IMK_SHCENTROID_PEAK_PARABOLA, "A parabola in x and one in y", "parabola"},
    {0, NULL, NULL},
};

/* --- properties ---------------------------------------------------------- */

static void
install_template (GObjectClass *klass)
{
  const GParamFlags flags =
      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  g_object_class_install_property (klass,
      GST_SH_CENTROID_PROP_TEMPLATE_LOCATION,
      g_param_spec_string ("template-location", "Location of the template",
          "A .npy file [height, width] of what estimator=correlation looks for "
          "in all cells, or [cells, height, width] with one for each; at most "
          "as large as a cell; takes the place of a captured one",
          NULL, flags));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_TEMPLATE_SOURCE,
      g_param_spec_enum ("template-source", "Source of the template",
          "Where the template comes from",
          gst_imaging_enum_type ("GstShCentroidTemplateSource", source_values),
          IMK_SHCENTROID_TEMPLATE_STORED, flags));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_TEMPLATE_CELL,
      g_param_spec_int ("template-cell", "Cell of the template",
          "The cell, from 0 on, that the one template is a picture of: a "
          "shift is then measured from that cell's centre; with "
          "template-source=frame and for capture-template the cell that is "
          "taken; -1 for none: capture-template takes each cell its own",
          -1, G_MAXINT, -1, flags));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_TEMPLATE_MARGIN,
      g_param_spec_uint ("template-margin", "Margin of the template",
          "Pixels that a template taken from a cell is smaller than the "
          "smallest cell, at each edge; with search-range or more all of it "
          "stays in the cell",
          0, G_MAXUINT16, 0, flags));
}

static void
install_search (GObjectClass *klass)
{
  const GParamFlags live = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                           GST_PARAM_CONTROLLABLE | GST_PARAM_MUTABLE_PLAYING;

  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_CORRELATION,
      g_param_spec_enum ("correlation", "Correlation",
          "How well template and cell agree, with estimator=correlation",
          gst_imaging_enum_type (
              "GstShCentroidCorrelation", correlation_values),
          IMK_SHCENTROID_CORRELATION_NORMALISED, live));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_PEAK_FIT,
      g_param_spec_enum ("peak-fit", "Fit of the peak",
          "How the fraction of a pixel is found",
          gst_imaging_enum_type ("GstShCentroidPeakFit", peak_fit_values),
          IMK_SHCENTROID_PEAK_PARABOLOID, live));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_SEARCH_RANGE,
      g_param_spec_uint ("search-range", "Search range",
          "The template is looked for up to so many whole pixels from the "
          "middle, at most half a cell; a best shift at the very end is none, "
          "and flagged (32)",
          1, IMK_SHCENTROID_MAX_SEARCH_RANGE, 4, live));
  g_object_class_install_property (klass, GST_SH_CENTROID_PROP_MIN_CORRELATION,
      g_param_spec_double ("min-correlation", "Least correlation",
          "Normalised correlation, 0 to 1, below which nothing was found, and "
          "the cell is flagged (32)",
          0, 1, 0.25, live));
}

void
gst_sh_centroid_template_install (GObjectClass *klass)
{
  install_template (klass);
  install_search (klass);
}

gboolean
gst_sh_centroid_template_set (ImkShcentroidConfig *config,
    GstShCentroidCalibration *calibration, guint id, const GValue *value,
    gboolean *is_geometry)
{
  *is_geometry = id <= GST_SH_CENTROID_PROP_TEMPLATE_MARGIN;
  switch (id) {
  case GST_SH_CENTROID_PROP_TEMPLATE_LOCATION:
    gst_sh_centroid_calibration_locate (
        calibration, GST_SH_CENTROID_TEMPLATE, g_value_get_string (value));
    return TRUE;
  case GST_SH_CENTROID_PROP_TEMPLATE_SOURCE:
    config->template_source = g_value_get_enum (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_TEMPLATE_CELL:
    config->template_cell = g_value_get_int (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_TEMPLATE_MARGIN:
    config->template_margin = g_value_get_uint (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_CORRELATION:
    config->correlation = g_value_get_enum (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_PEAK_FIT:
    config->peak_fit = g_value_get_enum (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_SEARCH_RANGE:
    config->search_range = g_value_get_uint (value);
    return TRUE;
  case GST_SH_CENTROID_PROP_MIN_CORRELATION:
    config->min_correlation = g_value_get_double (value);
    return TRUE;
  }
  return FALSE;
}

gboolean
gst_sh_centroid_template_get (const ImkShcentroidConfig *config,
    const GstShCentroidCalibration *calibration, guint id, GValue *value)
{
  switch (id) {
  case GST_SH_CENTROID_PROP_TEMPLATE_LOCATION:
    g_value_set_string (value, calibration->location[GST_SH_CENTROID_TEMPLATE]);
    return TRUE;
  case GST_SH_CENTROID_PROP_TEMPLATE_SOURCE:
    g_value_set_enum (value, config->template_source);
    return TRUE;
  case GST_SH_CENTROID_PROP_TEMPLATE_CELL:
    g_value_set_int (value, config->template_cell);
    return TRUE;
  case GST_SH_CENTROID_PROP_TEMPLATE_MARGIN:
    g_value_set_uint (value, config->template_margin);
    return TRUE;
  case GST_SH_CENTROID_PROP_CORRELATION:
    g_value_set_enum (value, config->correlation);
    return TRUE;
  case GST_SH_CENTROID_PROP_PEAK_FIT:
    g_value_set_enum (value, config->peak_fit);
    return TRUE;
  case GST_SH_CENTROID_PROP_SEARCH_RANGE:
    g_value_set_uint (value, config->search_range);
    return TRUE;
  case GST_SH_CENTROID_PROP_MIN_CORRELATION:
    g_value_set_double (value, config->min_correlation);
    return TRUE;
  }
  return FALSE;
}

/* --- files --------------------------------------------------------------- */

/* Returns: (transfer full) (nullable): the pixels; @dims as
 * gst_sh_centroid_template_finish () gives them */
static gfloat *
load_file (const gchar *location, guint64 dims[3], ImkError *error)
{
  GError *why = NULL;
  GstImagingNpy *npy = gst_imaging_npy_load (location, &why);
  gdouble *values = NULL;
  gfloat *pixels = NULL;

  if (npy && ((npy->n_dims != 2 && npy->n_dims != 3) || npy->n_values == 0)) {
    g_autofree gchar *found = gst_imaging_npy_describe (npy);

    imk_error_set (error, IMK_ERROR_FILE,
        "template-location \"%s\" is %s; it has to be [height, width] for all "
        "cells or [cells, height, width], of at least one pixel.",
        location, found);
  } else if (npy) {
    values = gst_imaging_npy_to_double (npy, NULL, &why);
  }
  if (why)
    imk_error_set (
        error, IMK_ERROR_FILE, "template-location: %s", why->message);
  if (values) {
    dims[0] = npy->n_dims == 3 ? npy->dims[0] : 0;
    dims[1] = npy->dims[npy->n_dims - 2];
    dims[2] = npy->dims[npy->n_dims - 1];
    pixels = g_new (gfloat, npy->n_values);
    for (guint64 i = 0; i < npy->n_values; i++)
      pixels[i] = (gfloat) values[i];
  }
  g_free (values);
  g_clear_error (&why);
  g_clear_pointer (&npy, gst_imaging_npy_free);
  return pixels;
}

ImkStatus
gst_sh_centroid_template_load (GstShCentroidTables *tables,
    const GstShCentroidCalibration *calibration, ImkShcentroidConfig *config,
    ImkError *error)
{
  GBytes *captured = calibration->captured[GST_SH_CENTROID_TEMPLATE];
  const gchar *location = calibration->location[GST_SH_CENTROID_TEMPLATE];
  guint64 dims[3] = {calibration->template_dims[0],
      calibration->template_dims[1], calibration->template_dims[2]};

  if (config->template_source == IMK_SHCENTROID_TEMPLATE_FRAME)
    return IMK_OK;
  if (captured)
    tables->templates = g_memdup2 (
        g_bytes_get_data (captured, NULL), g_bytes_get_size (captured));
  else if (location)
    tables->templates = load_file (location, dims, error);
  else
    return IMK_OK;
  if (!tables->templates)
    return IMK_ERROR_FILE;
  /* one for each cell, where there is but one */
  if (dims[0] == 1 && imk_shcentroid_n_cells (config) == 1)
    config->template_cell = 0;
  if (MAX (dims[0], MAX (dims[1], dims[2])) > G_MAXUINT32)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "template-location \"%s\" is too large.", location);
  config->templates = tables->templates;
  config->n_templates = (guint32) MAX (dims[0], 1);
  config->template_height = (guint32) dims[1];
  config->template_width = (guint32) dims[2];
  return IMK_OK;
}

/* --- captures ------------------------------------------------------------ */

/* Returns: (transfer full): the mean frame, calibrated; NaN where bad */
static gfloat *
mean_frame (
    const GstShCentroidCapture *capture, const GstShCentroidTables *tables)
{
  gsize n = (gsize) capture->n_rows * capture->n_columns;
  gfloat *frame = g_new (gfloat, n);

  for (gsize i = 0; i < n; i++) {
    gdouble flat = tables->flat ? tables->flat[i] : 1;

    if (flat == 0 || (tables->bad && tables->bad[i]))
      frame[i] = NAN;
    else
      frame[i] = (gfloat) (capture->sums[i] / capture->n_frames * flat);
  }
  return frame;
}

GBytes *
gst_sh_centroid_template_finish (const GstShCentroidCapture *capture,
    const GstShCentroidTables *tables, const ImkShcentroidConfig *config,
    guint64 dims[3], ImkError *error)
{
  gfloat *frame = mean_frame (capture, tables);
  float *templates = NULL;
  ImkShcentroidConfig cut;
  GBytes *data = NULL;

  if (imk_shcentroid_cut_templates (config, frame, &cut, &templates, error) ==
      IMK_OK) {
    dims[0] = config->template_cell < 0 ? cut.n_templates : 0;
    dims[1] = cut.template_height;
    dims[2] = cut.template_width;
    data =
        g_bytes_new (templates, (gsize) cut.n_templates * cut.template_height *
                                    cut.template_width * sizeof (gfloat));
  }
  free (templates);
  g_free (frame);
  return data;
}

gboolean
gst_sh_centroid_template_save (
    const gchar *location, GBytes *data, const guint64 dims[3], GError **error)
{
  guint first = dims[0] == 0; /* no first dimension */

  return gst_imaging_npy_save (location, GST_IMAGING_NPY_TYPE_F32, 3 - first,
      dims + first, g_bytes_get_data (data, NULL), error);
}
