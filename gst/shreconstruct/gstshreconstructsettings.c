/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructsettings.h"

#include <math.h>

#include "shcentroid/gstshcentroidfiles.h"

static const GEnumValue loop_values[] = {
    {GST_SH_RECONSTRUCT_LOOP_CLOSED, "The controller drives the mirror",
        "closed"},
    {GST_SH_RECONSTRUCT_LOOP_OPEN,
        "The mirror takes the reference commands; the controller begins anew "
        "when the loop is closed",
        "open"},
    {0, NULL, NULL},
};

static const GEnumValue order_values[] = {
    {GST_SH_RECONSTRUCT_ORDER_X_THEN_Y, "dx of all cells, then dy of all cells",
        "x-then-y"},
    {GST_SH_RECONSTRUCT_ORDER_INTERLEAVED,
        "dx and dy of the first cell, then of the second, and so on",
        "interleaved"},
    {0, NULL, NULL},
};

static const GEnumValue invalid_values[] = {
    {IMK_SHRECONSTRUCT_INVALID_ZERO, "Slope 0: the cell moves nothing", "zero"},
    {IMK_SHRECONSTRUCT_INVALID_HOLD,
        "The last valid slope of the cell, 0 before the first", "hold"},
    {0, NULL, NULL},
};

static const GEnumValue dark_values[] = {
    {IMK_SHRECONSTRUCT_DARK_HOLD, "The mirror stays as it is", "hold"},
    {IMK_SHRECONSTRUCT_DARK_REFERENCE,
        "The mirror takes the reference commands; the controller begins anew",
        "reference"},
    {0, NULL, NULL},
};

/* --- files -----------------------------------------------------------------
 */

#define LOADER(NAME, PROPERTY) \
  static gpointer load_##NAME (const gchar *location, ImkError *error) \
  { \
    return gst_sh_centroid_array_load_finite (PROPERTY, location, error); \
  }

LOADER (matrix, "matrix-location")
LOADER (modes, "modes-location")
LOADER (controller, "controller-location")
LOADER (reference, "reference-location")
LOADER (offsets, "slope-offsets-location")

#define FILE_OF(NAME, MEMBER, BLURB) \
  GST_IMAGING_PATH (NAME "-location", LIVE, GST_SH_RECONSTRUCT_KERNEL, \
      GstShReconstructSettings, MEMBER, load_##MEMBER, g_free, BLURB)
#define NUMBER_OF(NAME, MEMBER, MIN, MAX, UNIT, BLURB) \
  GST_IMAGING_DOUBLE (NAME, LIVE, GST_SH_RECONSTRUCT_KERNEL, \
      GstShReconstructSettings, MEMBER, MIN, MAX, UNIT, BLURB)
#define CHOICE_OF(NAME, MEMBER, TYPE_NAME, VALUES, BLURB) \
  GST_IMAGING_ENUM (NAME, LIVE, GST_SH_RECONSTRUCT_KERNEL, \
      GstShReconstructSettings, MEMBER, TYPE_NAME, VALUES, BLURB)

static const GstImagingSetting settings[] = {
    FILE_OF ("matrix", matrix,
        "Path of an array [commands, 2 cells], with modes-location [modes, 2 "
        "cells]: the control matrix R, in units of the mirror for each unit of "
        "a slope. Required"),
    FILE_OF ("modes", modes,
        "Path of an array [commands, modes]: the commands that make each mode. "
        "Empty: each command is a mode"),
    FILE_OF ("controller", controller,
        "Path of an array [2, terms] or [modes, 2, terms]: the terms a and b of "
        "the controller, in place of gain and leak. Empty: gain and leak"),
    FILE_OF ("reference", reference,
        "Path of an array [commands]: the commands of the flat mirror, to which "
        "corrections are added. Empty: 0"),
    FILE_OF ("slope-offsets", offsets,
        "Path of an array [2, cells]: the slopes that the loop shall reach, "
        "such as those of non-common-path aberrations. Empty: 0"),
    CHOICE_OF ("slope-order", order, "GstShReconstructOrder", order_values,
        "Order of the columns of the control matrix"),
    NUMBER_OF ("gain", gain, 0, 10, NULL,
        "Part of the measured error that is corrected in a frame, without "
        "controller-location"),
    NUMBER_OF ("leak", leak, 0, 1, NULL,
        "Part of the correction that is forgotten in a frame, without "
        "controller-location"),
    GST_IMAGING_ARRAY ("mode-gains", LIVE, GST_SH_RECONSTRUCT_KERNEL,
        GstShReconstructSettings, mode_gains, 0, 10, NULL,
        "Factors of the gain, one for each mode. Empty: 1 for all"),
    NUMBER_OF ("minimum", minimum, -G_MAXDOUBLE, G_MAXDOUBLE, NULL,
        "Smallest command that is sent, in units of the mirror"),
    NUMBER_OF ("maximum", maximum, -G_MAXDOUBLE, G_MAXDOUBLE, NULL,
        "Largest command that is sent, in units of the mirror"),
    NUMBER_OF ("slew-limit", slew, 0, G_MAXDOUBLE, NULL,
        "The most that a command changes from one frame to the next, in units "
        "of the mirror. 0: no limit"),
    CHOICE_OF ("invalid-policy", invalid, "GstShReconstructInvalid",
        invalid_values, "What the slope of an invalid cell counts as"),
    NUMBER_OF ("min-valid", min_valid, 0, 1, NULL,
        "Share of valid cells below which no correction is made: see low-light"),
    CHOICE_OF ("low-light", dark, "GstShReconstructLowLight", dark_values,
        "What the mirror does while fewer cells than min-valid are valid"),
    GST_IMAGING_ENUM ("loop", LIVE, 0, GstShReconstructSettings, loop,
        "GstShReconstructLoop", loop_values,
        "Whether the controller drives the mirror"),
    GST_IMAGING_BOOLEAN ("freeze", LIVE, 0, GstShReconstructSettings, freeze,
        "Keep the commands as they are. Slopes are not used meanwhile"),
    GST_IMAGING_STRING ("results", LIVE, 0, GstShReconstructSettings, results,
        "Name of the shcentroid whose slopes on a frame are used. Empty: the "
        "first ones on a frame"),
};

static void
init_settings (gpointer data)
{
  GstShReconstructSettings *s = data;
  ImkShreconstructConfig c;

  imk_shreconstruct_config_init (&c);
  s->gain = c.gain;
  s->leak = c.leak;
  s->minimum = -G_MAXDOUBLE;
  s->maximum = G_MAXDOUBLE;
  s->invalid = c.invalid;
  s->dark = c.dark;
  s->min_valid = c.min_valid;
}

const GstImagingSettingsTable gst_sh_reconstruct_table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (GstShReconstructSettings),
    .replan = GST_SH_RECONSTRUCT_KERNEL,
    .has_engine = TRUE,
    .init = init_settings,
    .apply = gst_sh_reconstruct_apply,
};

/* --- the plan --------------------------------------------------------------
 */

static ImkStatus
wrong_shape (const GstImagingFile *file, const gchar *property,
    const gchar *expected, ImkError *error)
{
  const GstShCentroidArray *a = file->data;

  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s \"%s\" has %s; it needs %s.", property, file->location, a->text,
      expected);
}

/* [n], [1, n] or [n, 1], or [2, n / 2] where @in_rows */
static gboolean
is_vector (const GstShCentroidArray *a, guint64 n, gboolean in_rows)
{
  return gst_sh_centroid_array_has_shape (a, 1, n) ||
         gst_sh_centroid_array_has_shape (a, n, 1) ||
         (in_rows && gst_sh_centroid_array_has_shape (a, 2, n / 2));
}

static ImkStatus
take_vector (const GstImagingFile *file, const gchar *property, guint64 n,
    gboolean in_rows, gfloat **values, ImkError *error)
{
  g_autofree gchar *expected = NULL;

  if (!file)
    return IMK_OK;
  if (is_vector (file->data, n, in_rows)) {
    *values = gst_sh_centroid_array_to_floats (file->data);
    return IMK_OK;
  }
  expected =
      in_rows ? g_strdup_printf (
                    "[2, %" G_GUINT64_FORMAT "], dx and dy of each cell", n / 2)
              : g_strdup_printf (
                    "[%" G_GUINT64_FORMAT "], a number for each command", n);
  return wrong_shape (file, property, expected, error);
}

/* The columns of all dx, then of all dy. */
static gfloat *
matrix_of (const GstShCentroidArray *a, GstShReconstructOrder order)
{
  gfloat *values = gst_sh_centroid_array_to_floats (a);
  const gsize n_slopes = a->dims[1], n_cells = n_slopes / 2;

  if (order == GST_SH_RECONSTRUCT_ORDER_X_THEN_Y)
    return values;
  for (gsize row = 0; row < a->dims[0]; row++)
    for (gsize i = 0; i < n_slopes; i++)
      values[row * n_slopes + i % 2 * n_cells + i / 2] =
          (gfloat) a->values[row * n_slopes + i];
  return values;
}

static ImkStatus
plan_matrix (
    const GstShReconstructSettings *s, GstShReconstructPlan *p, ImkError *error)
{
  const GstShCentroidArray *a;

  if (!s->matrix)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no control matrix. Set matrix-location to an array "
        "[commands, 2 cells], such as `gst-imaging ao invert` makes.");
  a = s->matrix->data;
  if (a->n_dims != 2 || a->dims[1] % 2 || a->dims[1] == 0 || a->dims[0] == 0 ||
      a->dims[1] / 2 > IMK_SHRECONSTRUCT_MAX_CELLS ||
      a->dims[0] > IMK_SHRECONSTRUCT_MAX_COMMANDS)
    return wrong_shape (s->matrix, "matrix-location",
        "[commands, 2 cells]: dx of all cells, then dy (slope-order)", error);
  p->config.n_cells = (guint32) (a->dims[1] / 2);
  p->config.n_modes = p->config.n_commands = (guint32) a->dims[0];
  p->config.matrix = p->matrix = matrix_of (a, s->order);
  return IMK_OK;
}

static ImkStatus
plan_modes (
    const GstShReconstructSettings *s, GstShReconstructPlan *p, ImkError *error)
{
  const GstShCentroidArray *a;
  g_autofree gchar *expected = NULL;

  if (!s->modes)
    return IMK_OK;
  a = s->modes->data;
  if (a->n_dims == 2 && a->dims[1] == p->config.n_modes &&
      a->dims[0] >= a->dims[1] &&
      a->dims[0] <= IMK_SHRECONSTRUCT_MAX_COMMANDS) {
    p->config.n_commands = (guint32) a->dims[0];
    p->config.modes = p->modes = gst_sh_centroid_array_to_floats (a);
    return IMK_OK;
  }
  expected = g_strdup_printf ("[commands, %u], a column for each row of the "
                              "control matrix and at least as many rows",
      p->config.n_modes);
  return wrong_shape (s->modes, "modes-location", expected, error);
}

static ImkStatus
plan_controller (
    const GstShReconstructSettings *s, GstShReconstructPlan *p, ImkError *error)
{
  const guint n_modes = p->config.n_modes;
  const GstShCentroidArray *a;
  gboolean for_each;
  gsize n_terms;

  if (!s->controller)
    return IMK_OK;
  a = s->controller->data;
  for_each = a->n_dims == 3 && a->dims[0] == n_modes && a->dims[1] == 2;
  n_terms = a->dims[a->n_dims - 1];
  if (!(for_each || (a->n_dims == 2 && a->dims[0] == 2)) || n_terms == 0 ||
      n_terms > IMK_SHRECONSTRUCT_MAX_TERMS) {
    g_autofree gchar *expected =
        g_strdup_printf ("[2, terms] or [%u, 2, terms] with 1 to %d terms: a "
                         "(of the past commands) and b (of the errors)",
            n_modes, IMK_SHRECONSTRUCT_MAX_TERMS);

    return wrong_shape (s->controller, "controller-location", expected, error);
  }
  p->feedback = g_new (gdouble, n_modes * n_terms);
  p->forward = g_new (gdouble, n_modes * n_terms);
  for (gsize m = 0; m < n_modes; m++)
    for (gsize i = 0; i < n_terms; i++) {
      const gdouble *terms = a->values + (for_each ? m * 2 * n_terms : 0);

      p->feedback[m * n_terms + i] = terms[i];
      p->forward[m * n_terms + i] = terms[n_terms + i];
    }
  p->config.n_feedback = p->config.n_forward = (guint32) n_terms;
  return IMK_OK;
}

/* The factors of each mode, on b_0 or all b. */
static ImkStatus
plan_gains (
    const GstShReconstructSettings *s, GstShReconstructPlan *p, ImkError *error)
{
  ImkShreconstructConfig *c = &p->config;

  if (!s->mode_gains)
    return IMK_OK;
  if (s->mode_gains->n != c->n_modes)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "mode-gains has %u numbers; there are %u modes.", s->mode_gains->n,
        c->n_modes);
  if (c->n_forward == 0) {
    p->feedback = g_new (gdouble, c->n_modes);
    p->forward = g_new (gdouble, c->n_modes);
    c->n_feedback = c->n_forward = 1;
    for (guint m = 0; m < c->n_modes; m++) {
      p->feedback[m] = 1 - s->leak;
      p->forward[m] = s->gain;
    }
  }
  for (guint i = 0; i < c->n_modes * c->n_forward; i++)
    p->forward[i] *= s->mode_gains->values[i / c->n_forward];
  return IMK_OK;
}

static ImkStatus
plan_files (
    const GstShReconstructSettings *s, GstShReconstructPlan *p, ImkError *error)
{
  ImkShreconstructConfig *c = &p->config;
  ImkStatus status = plan_matrix (s, p, error);

  if (status == IMK_OK)
    status = plan_modes (s, p, error);
  if (status == IMK_OK)
    status = plan_controller (s, p, error);
  if (status == IMK_OK)
    status = plan_gains (s, p, error);
  if (status == IMK_OK)
    status = take_vector (s->reference, "reference-location", c->n_commands,
        FALSE, &p->reference, error);
  if (status == IMK_OK)
    status = take_vector (s->offsets, "slope-offsets-location",
        2 * (guint64) c->n_cells, TRUE, &p->offsets, error);
  return status;
}

ImkStatus
gst_sh_reconstruct_plan (
    const GstShReconstructSettings *s, GstShReconstructPlan *p, ImkError *error)
{
  ImkShreconstructConfig *c = &p->config;
  ImkStatus status;

  *p = (GstShReconstructPlan){.matrix = NULL};
  imk_shreconstruct_config_init (c);
  status = plan_files (s, p, error);
  c->feedback = p->feedback;
  c->forward = p->forward;
  c->reference = p->reference;
  c->offsets = p->offsets;
  c->gain = s->gain;
  c->leak = s->leak;
  c->minimum = s->minimum > -G_MAXDOUBLE ? s->minimum : -INFINITY;
  c->maximum = s->maximum < G_MAXDOUBLE ? s->maximum : INFINITY;
  c->slew = s->slew > 0 ? s->slew : INFINITY;
  c->invalid = s->invalid;
  c->dark = s->dark;
  c->min_valid = s->min_valid;
  return status;
}

void
gst_sh_reconstruct_plan_clear (GstShReconstructPlan *p)
{
  g_clear_pointer (&p->matrix, g_free);
  g_clear_pointer (&p->modes, g_free);
  g_clear_pointer (&p->reference, g_free);
  g_clear_pointer (&p->offsets, g_free);
  g_clear_pointer (&p->feedback, g_free);
  g_clear_pointer (&p->forward, g_free);
}
