/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the settings of shreconstruct and their files say to the kernel. */
#include <math.h>

#include "gstshreconstructcontroller.h"
#include "gstshreconstructmatrix.h"
#include "gstshreconstructsettings.h"
#include "shcentroid/gstshcentroidfiles.h"

enum { MAX_MODE_GAIN = 10 }; /* of mode-gains */

/* What the others need follows from the shape of R, so it may be the wrong one.
 */
static ImkStatus
refuse_shape (const GstShReconstructSettings *s, const GstImagingFile *file,
    const GstShCentroidArray *a, const gchar *property, const gchar *expected,
    ImkError *error)
{
  const GstShReconstructMatrix *matrix =
      gst_imaging_setting_file_data (s->matrix);
  g_autofree gchar *taken =
      matrix && file != s->matrix
          ? g_strdup_printf (
                " matrix-location \"%s\" has %s, which is taken as [%s, 2 cells].",
                s->matrix->location, matrix->array->text,
                s->modes ? "modes" : "commands")
          : NULL;

  return imk_error_set (error, IMK_ERROR_CONFIG,
      "%s \"%s\" has %s; it needs %s.%s", property, file->location, a->text,
      expected, taken ? taken : "");
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
take_vector (const GstShReconstructSettings *s, const GstImagingFile *file,
    const gchar *property, guint64 n, gboolean in_rows, gfloat **values,
    ImkError *error)
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
  return refuse_shape (s, file, file->data, property, expected, error);
}

/* What the file says and what slope-order says. */
static ImkStatus
find_order (const GstShReconstructSettings *s, const gchar *property,
    const GstImagingFile *file, GstShReconstructOrder *order, ImkError *error)
{
  const GstShReconstructMatrix *m = file->data;

  if (!m->is_guess && s->order != GST_SH_RECONSTRUCT_ORDER_AUTO &&
      m->order != GST_SH_RECONSTRUCT_ORDER_AUTO && s->order != m->order)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "%s \"%s\" says that its slopes are %s, and slope-order says the other "
        "order. Set slope-order=auto, or correct the file.",
        property, file->location,
        m->order == GST_SH_RECONSTRUCT_ORDER_INTERLEAVED ? "interleaved"
                                                         : "x-then-y");
  *order = s->order == GST_SH_RECONSTRUCT_ORDER_AUTO ? m->order : s->order;
  return IMK_OK;
}

/* Of slope @i in the order of the kernel: all dx, then all dy. */
static gsize
slope_index (gsize i, gsize n_slopes, GstShReconstructOrder order)
{
  const gsize n_cells = n_slopes / 2;

  return order == GST_SH_RECONSTRUCT_ORDER_INTERLEAVED
             ? i % n_cells * 2 + i / n_cells
             : i;
}

static gfloat *
order_columns (const GstShCentroidArray *a, GstShReconstructOrder order)
{
  const gsize n_slopes = a->dims[1];
  gfloat *values = g_new (gfloat, a->n);

  for (gsize row = 0; row < a->dims[0]; row++)
    for (gsize i = 0; i < n_slopes; i++)
      values[row * n_slopes + i] =
          (gfloat) a->values[row * n_slopes + slope_index (i, n_slopes, order)];
  return values;
}

/* Without a matrix the commands are those of the reference. */
static ImkStatus
plan_idle (const GstShReconstructSettings *s, gboolean with_matrices,
    guint n_cells, GstShReconstructPlan *p, ImkError *error)
{
  ImkShreconstructConfig *c = &p->config;

  if (s->n_commands == 0)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There is no control matrix. Set matrix-location to an array "
        "[commands, 2 cells], such as `gst-imaging ao invert` makes, or "
        "`commands` to calibrate.");
  p->is_idle = TRUE;
  c->n_cells = MAX (n_cells, 1);
  c->n_modes = c->n_commands = s->n_commands;
  if (!with_matrices)
    return IMK_OK;
  c->matrix = p->matrix =
      g_try_new0 (gfloat, 2 * (gsize) c->n_cells * s->n_commands);
  if (!p->matrix)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "A matrix of %u commands and %u cells does not fit in memory. Set "
        "fewer commands.",
        s->n_commands, c->n_cells);
  return IMK_OK;
}

static ImkStatus
plan_matrix (const GstShReconstructSettings *s, gboolean with_matrices,
    guint n_cells, GstShReconstructPlan *p, ImkError *error)
{
  const GstShCentroidArray *a;
  gboolean is_transposed;
  ImkStatus status;

  if (!s->matrix)
    return plan_idle (s, with_matrices, n_cells, p, error);
  a = ((const GstShReconstructMatrix *) s->matrix->data)->array;
  is_transposed = n_cells && a->n_dims == 2 &&
                  a->dims[0] == 2 * (guint64) n_cells &&
                  a->dims[1] != a->dims[0];
  if (a->n_dims != 2 || a->dims[1] % 2 || a->dims[1] == 0 || a->dims[0] == 0 ||
      a->dims[1] / 2 > IMK_SHRECONSTRUCT_MAX_CELLS ||
      a->dims[0] > IMK_SHRECONSTRUCT_MAX_COMMANDS || is_transposed) {
    g_autofree gchar *expected = g_strdup_printf (
        "[commands, 2 cells] with up to %d commands%s",
        IMK_SHRECONSTRUCT_MAX_COMMANDS,
        is_transposed ? ", and would fit the sensor transposed. Transpose it, "
                        "or name the axis of its slopes"
                      : ": dx of all cells, then dy (slope-order)");

    return refuse_shape (s, s->matrix, a, "matrix-location", expected, error);
  }
  p->config.n_cells = (guint32) (a->dims[1] / 2);
  p->config.n_modes = p->config.n_commands = (guint32) a->dims[0];
  status = find_order (s, "matrix-location", s->matrix, &p->order, error);
  if (status == IMK_OK && with_matrices)
    p->config.matrix = p->matrix = order_columns (a, p->order);
  return status;
}

/* Both matrices are of the same lenslets, where both name them. */
static ImkStatus
check_lenslets (
    const GstShReconstructSettings *s, guint n_cells, ImkError *error)
{
  const GstShReconstructMatrix *r = s->matrix->data, *d = s->interaction->data;

  for (guint i = 0; r->lenslets && d->lenslets && i < 2 * n_cells; i++)
    if (r->lenslets[i] != d->lenslets[i])
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "interaction-location \"%s\" is measured with other lenslets than "
          "matrix-location \"%s\" is made for: cell %u is another one. Use the "
          "two that belong together.",
          s->interaction->location, s->matrix->location, i / 2);
  return IMK_OK;
}

/* D has a column for each command, or D M one for each mode; where these are
 * as many, the name of the axis tells. */
static ImkStatus
plan_interaction (const GstShReconstructSettings *s, gboolean with_matrices,
    guint n_cells, GstShReconstructPlan *p, ImkError *error)
{
  const ImkShreconstructConfig *c = &p->config;
  const guint64 n_slopes = 2 * (guint64) c->n_cells;
  const GstShReconstructMatrix *d;
  const GstShCentroidArray *a;
  GstShReconstructOrder order;
  gsize n;
  ImkStatus status;

  if (!s->interaction || p->is_idle)
    return IMK_OK;
  d = s->interaction->data;
  a = d->array;
  p->config.interaction_is_modal =
      c->n_modes == c->n_commands
          ? s->modes && d->rows == GST_SH_RECONSTRUCT_ROWS_MODES
          : gst_sh_centroid_array_has_shape (a, n_slopes, c->n_modes);
  n = p->config.interaction_is_modal ? c->n_modes : c->n_commands;
  if (!gst_sh_centroid_array_has_shape (a, n_slopes, n)) {
    g_autofree gchar *modal =
        c->n_modes == c->n_commands
            ? g_strdup ("")
            : g_strdup_printf (" or the %u modes", c->n_modes);
    g_autofree gchar *expected = g_strdup_printf (
        "[%u, %u]: slopes of the %u cells, and the commands%s%s",
        2 * c->n_cells, c->n_commands, c->n_cells, modal,
        gst_sh_centroid_array_has_shape (a, c->n_commands, n_slopes)
            ? (n_cells ? "; it would fit transposed"
                       : "; one of the two matrices is transposed")
            : "");

    return refuse_shape (
        s, s->interaction, a, "interaction-location", expected, error);
  }
  status = check_lenslets (s, c->n_cells, error);
  if (status == IMK_OK)
    status =
        find_order (s, "interaction-location", s->interaction, &order, error);
  if (status != IMK_OK || !with_matrices)
    return status;
  p->config.interaction = p->interaction = g_new (gfloat, a->n);
  for (gsize i = 0; i < a->dims[0]; i++)
    for (gsize k = 0; k < n; k++)
      p->interaction[i * n + k] =
          (gfloat) a->values[slope_index (i, a->dims[0], order) * n + k];
  return IMK_OK;
}

/* Coefficients of modes are no commands. */
static ImkStatus
check_rows (const GstShReconstructSettings *s, ImkError *error)
{
  const GstShReconstructMatrix *matrix = s->matrix->data;
  const gboolean is_modal = matrix->rows == GST_SH_RECONSTRUCT_ROWS_MODES;
  g_autofree gchar *says =
      matrix->image ? g_strdup_printf ("has the image %s", matrix->image)
                    : g_strdup_printf ("names its rows \"%s\"",
                          is_modal ? "mode" : "command");

  if (is_modal && !s->modes)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "matrix-location \"%s\" %s: set modes-location to the commands of each "
        "mode, such as modes.npy beside it or the same file, or make the matrix "
        "without --modal.",
        s->matrix->location, says);
  if (matrix->rows == GST_SH_RECONSTRUCT_ROWS_COMMANDS && s->modes)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "matrix-location \"%s\" %s, and modes-location needs a row for each "
        "mode: leave modes-location empty, or make the matrix with `gst-imaging "
        "ao invert --modal`.",
        s->matrix->location, says);
  return IMK_OK;
}

static ImkStatus
plan_modes (const GstShReconstructSettings *s, gboolean with_matrices,
    GstShReconstructPlan *p, ImkError *error)
{
  const GstShCentroidArray *a;
  g_autofree gchar *expected = NULL;
  ImkStatus status = p->is_idle ? IMK_OK : check_rows (s, error);

  if (!s->modes || p->is_idle || status != IMK_OK)
    return status;
  a = s->modes->data;
  if (a->n_dims == 2 && a->dims[1] == p->config.n_modes &&
      a->dims[0] >= a->dims[1] &&
      a->dims[0] <= IMK_SHRECONSTRUCT_MAX_COMMANDS) {
    p->config.n_commands = (guint32) a->dims[0];
    if (with_matrices)
      p->config.modes = p->modes = gst_sh_centroid_array_to_floats (a);
    return IMK_OK;
  }
  expected = g_strdup_printf ("[commands, %u], a column for each row of the "
                              "control matrix and at least as many rows",
      p->config.n_modes);
  return refuse_shape (s, s->modes, a, "modes-location", expected, error);
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
  a = ((const GstShReconstructController *) s->controller->data)->array;
  for_each = a->n_dims == 3 && a->dims[0] == n_modes && a->dims[1] == 2;
  n_terms = a->dims[a->n_dims - 1];
  if (!(for_each || (a->n_dims == 2 && a->dims[0] == 2)) || n_terms == 0 ||
      n_terms > IMK_SHRECONSTRUCT_MAX_TERMS) {
    g_autofree gchar *expected =
        g_strdup_printf ("[2, terms] or [%u, 2, terms] with 1 to %d terms: a "
                         "(of the past commands) and b (of the errors)",
            n_modes, IMK_SHRECONSTRUCT_MAX_TERMS);

    return refuse_shape (
        s, s->controller, a, "controller-location", expected, error);
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
  for (guint m = 0; m < c->n_modes; m++)
    if (!(s->mode_gains->values[m] >= 0 &&
            s->mode_gains->values[m] <= MAX_MODE_GAIN))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "mode-gains has %g for mode %u; factors are from 0 to %d.",
          s->mode_gains->values[m], m, MAX_MODE_GAIN);
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
plan_dead (
    const GstShReconstructSettings *s, GstShReconstructPlan *p, ImkError *error)
{
  const guint n = p->config.n_commands;

  if (!s->dead)
    return IMK_OK;
  p->config.dead = p->dead = g_new0 (guint8, n);
  for (guint i = 0; i < s->dead->n; i++) {
    if (!(s->dead->values[i] >= 0 && s->dead->values[i] < n))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "dead-actuators has %g; commands are numbered 0 to %u.",
          s->dead->values[i], n - 1);
    p->dead[(guint) s->dead->values[i]] = TRUE;
  }
  return IMK_OK;
}

/* --- what becomes of the commands ----------------------------------------- */

static ImkStatus
plan_map (
    const GstShReconstructSettings *s, GstShReconstructPlan *p, ImkError *error)
{
  const GstShCentroidArray *a;

  p->n_outputs = p->config.n_commands;
  if (!s->actuator_map)
    return IMK_OK;
  a = s->actuator_map->data;
  if (!is_vector (a, a->n, FALSE) || a->n == 0 ||
      a->n > IMK_SHRECONSTRUCT_MAX_COMMANDS)
    return refuse_shape (s, s->actuator_map, a, "actuator-map-location",
        "[outputs], the number of a command for each, or -1", error);
  p->n_outputs = (guint) a->n;
  p->map = g_new (gint, a->n);
  for (gsize i = 0; i < a->n; i++) {
    gdouble number = a->values[i];

    if (number != floor (number) || number < -1 ||
        number >= p->config.n_commands)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "actuator-map-location \"%s\" has %g for output %" G_GSIZE_FORMAT
          "; it needs whole numbers from -1 (none) to %u.",
          s->actuator_map->location, number, i, p->config.n_commands - 1);
    p->map[i] = (gint) number;
  }
  return IMK_OK;
}

/* What the properties call no limit is infinite. */
static ImkShlimits
to_limits (const ImkShlimits *given)
{
  return (ImkShlimits){
      given->minimum > -G_MAXDOUBLE ? given->minimum : -INFINITY,
      given->maximum < G_MAXDOUBLE ? given->maximum : INFINITY,
      given->slew > 0 ? given->slew : INFINITY};
}

ImkShlimits
gst_sh_reconstruct_limits (const GstShReconstructSettings *s)
{
  return to_limits (&(ImkShlimits){s->minimum, s->maximum, s->slew});
}

static ImkStatus
plan_mirror (const GstShReconstructSettings *s, guint mirror,
    GstShReconstructPlan *p, ImkError *error)
{
  const guint n = p->config.n_commands;
  const GstImagingFile *file = s->mirrors[mirror];
  const ImkShlimits *limits = &s->mirror_limits[mirror];
  const GstShCentroidArray *a = gst_imaging_setting_file_data (file);

  if (!file)
    return IMK_OK;
  if (limits->minimum > limits->maximum)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The smallest command of mirror_%u is %g and the largest %g. Set "
        "mirror-%u-minimum below mirror-%u-maximum.",
        mirror, limits->minimum, limits->maximum, mirror, mirror);
  if (limits->minimum > G_MAXFLOAT || limits->maximum < -G_MAXFLOAT)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "No command of 32 bits is between mirror-%u-minimum, %g, and "
        "mirror-%u-maximum, %g.",
        mirror, limits->minimum, mirror, limits->maximum);
  p->mirror_limits[mirror] = to_limits (limits);
  if (a->n_dims != 2 || a->dims[1] != n || a->dims[0] == 0 ||
      a->dims[0] > IMK_SHRECONSTRUCT_MAX_COMMANDS) {
    g_autofree gchar *property = g_strdup_printf ("mirror-%u-location", mirror);
    g_autofree gchar *expected = g_strdup_printf (
        "[commands of the mirror, %u], a column for each command", n);

    return refuse_shape (s, file, a, property, expected, error);
  }
  p->mirrors[mirror] = file;
  return IMK_OK;
}

/* --- all of it ------------------------------------------------------------ */

static ImkStatus
plan_files (const GstShReconstructSettings *s, gboolean with_matrices,
    guint n_cells, GstShReconstructPlan *p, ImkError *error)
{
  ImkShreconstructConfig *c = &p->config;
  ImkStatus status = plan_matrix (s, with_matrices, n_cells, p, error);

  if (status == IMK_OK)
    status = plan_modes (s, with_matrices, p, error);
  if (status == IMK_OK)
    status = plan_interaction (s, with_matrices, n_cells, p, error);
  if (status == IMK_OK && !p->is_idle)
    status = plan_controller (s, p, error);
  if (status == IMK_OK && !p->is_idle)
    status = plan_gains (s, p, error);
  if (status == IMK_OK)
    status = take_vector (s, s->reference, "reference-location", c->n_commands,
        FALSE, &p->reference, error);
  if (status == IMK_OK && !p->is_idle)
    status = take_vector (s, s->offsets, "slope-offsets-location",
        2 * (guint64) c->n_cells, TRUE, &p->offsets, error);
  if (status == IMK_OK)
    status = plan_dead (s, p, error);
  if (status == IMK_OK)
    status = plan_map (s, p, error);
  for (guint i = 0; status == IMK_OK && i < GST_SH_RECONSTRUCT_N_MIRRORS; i++)
    status = plan_mirror (s, i, p, error);
  if (status == IMK_OK && s->wavefront_scale == 0)
    status = imk_error_set (error, IMK_ERROR_CONFIG,
        "wavefront-scale is 0; it must be another number.");
  return status;
}

ImkStatus
gst_sh_reconstruct_plan (const GstShReconstructSettings *s,
    gboolean with_matrices, guint n_cells, GstShReconstructPlan *p,
    ImkError *error)
{
  ImkShreconstructConfig *c = &p->config;
  const ImkShlimits limits = gst_sh_reconstruct_limits (s);
  ImkStatus status;

  *p = (GstShReconstructPlan){.has_matrices = with_matrices};
  imk_shreconstruct_config_init (c);
  status = plan_files (s, with_matrices, n_cells, p, error);
  c->feedback = p->feedback;
  c->forward = p->forward;
  c->reference = p->reference;
  c->offsets = p->offsets;
  c->gain = s->gain;
  c->leak = s->leak;
  c->minimum = limits.minimum;
  c->maximum = limits.maximum;
  c->slew = limits.slew;
  c->invalid = p->is_idle ? IMK_SHRECONSTRUCT_INVALID_ZERO : s->invalid;
  c->dark = s->dark;
  c->storage = p->is_idle ? IMK_SHRECONSTRUCT_STORAGE_F32 : s->storage;
  c->min_valid = s->min_valid;
  c->exclude_cells = s->exclude_cells;
  return status;
}

void
gst_sh_reconstruct_plan_find_fit (GstShReconstructPlan *p)
{
  if (!p->config.interaction ||
      imk_shreconstruct_find_fit (&p->config, &p->fit, NULL) != IMK_OK)
    p->fit = (ImkShreconstructFit){.largest = NAN};
}

void
gst_sh_reconstruct_plan_clear (GstShReconstructPlan *p)
{
  g_clear_pointer (&p->matrix, g_free);
  g_clear_pointer (&p->modes, g_free);
  g_clear_pointer (&p->reference, g_free);
  g_clear_pointer (&p->offsets, g_free);
  g_clear_pointer (&p->interaction, g_free);
  g_clear_pointer (&p->feedback, g_free);
  g_clear_pointer (&p->forward, g_free);
  g_clear_pointer (&p->dead, g_free);
  g_clear_pointer (&p->map, g_free);
}
