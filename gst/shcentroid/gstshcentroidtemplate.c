/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshcentroidtemplate.h"

#include <math.h>
#include <stdlib.h>

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

GstShCentroidArray *
gst_sh_centroid_template_finish (const GstShCentroidCapture *capture,
    const GstShCentroidTables *tables, const ImkShcentroidConfig *config,
    ImkError *error)
{
  gfloat *frame = mean_frame (capture, tables);
  float *templates = NULL;
  ImkShcentroidConfig cut;
  GstShCentroidArray *array = NULL;

  if (imk_shcentroid_cut_templates (config, frame, &cut, &templates, error) ==
      IMK_OK) {
    guint one = config->template_cell >= 0; /* for all cells */
    const guint64 dims[] = {
        cut.n_templates, cut.template_height, cut.template_width};

    array = gst_sh_centroid_array_new (3 - one, dims + one);
    for (gsize i = 0; i < array->n; i++)
      array->values[i] = templates[i];
  }
  free (templates);
  g_free (frame);
  return array;
}
