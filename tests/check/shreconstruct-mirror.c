/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A further mirror of shreconstruct keeps its matrix while other settings
 * change. */
#include "check-common.h"

#include "shcentroid/gstshcentroidfiles.h"
#include "shreconstruct/gstshreconstructmirror.h"

/* Returns: [1, 2] of @value */
static GstImagingFile
file_of (guint serial, gdouble value)
{
  const guint64 dims[] = {1, 2};
  GstShCentroidArray *array = gst_sh_centroid_array_new (2, dims);

  array->values[0] = array->values[1] = value;
  return (GstImagingFile){.serial = serial, .data = array};
}

static void
take (GstShReconstructMirror *mirror, const GstShReconstructSettings *settings)
{
  GstShReconstructPlan plan;

  fail_unless_equals_int (
      gst_sh_reconstruct_plan (settings, FALSE, 0, &plan, NULL), IMK_OK);
  gst_sh_reconstruct_mirror_take (mirror, &plan, 0);
  gst_sh_reconstruct_plan_clear (&plan);
}

CHECK_TEST (test_only_another_file_copies_the_matrix)
{
  GstImagingFile first = file_of (1, 3), second = file_of (2, 5);
  GstShReconstructSettings settings = {.n_commands = 2,
      .gain = 0.5,
      .minimum = -G_MAXDOUBLE,
      .maximum = G_MAXDOUBLE,
      .exclude_cells = 1,
      .wavefront_scale = 1,
      .mirrors = {&first}};
  GstShReconstructMirror mirror = {0};
  const gfloat *matrix;

  take (&mirror, &settings);
  matrix = mirror.matrix;
  settings.gain = 0.25;
  settings.maximum = 7;
  settings.mirror_limits[0].maximum = 9;
  settings.wavefront_scale = 2;
  take (&mirror, &settings);
  fail_unless (mirror.matrix == matrix);
  fail_unless_equals_float (mirror.matrix[1], 3);
  fail_unless_equals_float (mirror.limits.maximum, 9);
  settings.mirrors[0] = &second;
  take (&mirror, &settings);
  fail_unless_equals_float (mirror.matrix[1], 5);
  gst_sh_reconstruct_mirror_clear (&mirror);
  g_free (first.data);
  g_free (second.data);
}
