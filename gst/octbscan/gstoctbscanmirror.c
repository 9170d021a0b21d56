/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstoctbscanmirror.h"

#include <string.h>

#include "gstoctbscaninput.h"
#include "gstoctbscanplan.h"

/* Positions whose fringes differ by less are one. */
#define SAME_POSITION 0.05

/* One position, as each camera sees it. */
typedef struct {
  ImkOctbscanFringe fringes[IMK_OCTBSCAN_MAX_CAMERAS];
} Position;

struct _GstOctBscanMirrors {
  /* Under the object lock. */
  GString *sides;    /* of the B-scans that are waited for */
  gdouble travel_um; /* 0: unknown */
  gboolean forgets;  /* the positions, with the next B-scan */

  gint width; /* atomic; of all positions; the streaming thread changes it */

  /* Of the streaming thread. */
  guint n_cameras; /* of all positions */
  GPtrArray *positions;
};

/* What has been found, or why not. */
typedef struct {
  GString *k_polynomial, *dispersion; /* as the properties */
  GstStructure *message;
  gdouble phase_error; /* the largest of the cameras */
  gchar *doubt;        /* of the travel */
} Report;

static void
position_free (gpointer data)
{
  Position *p = data;

  for (guint i = 0; i < IMK_OCTBSCAN_MAX_CAMERAS; i++)
    imk_octbscan_fringe_clear (&p->fringes[i]);
  g_free (p);
}

GstOctBscanMirrors *
gst_oct_bscan_mirrors_new (void)
{
  GstOctBscanMirrors *self = g_new0 (GstOctBscanMirrors, 1);

  self->sides = g_string_new (NULL);
  self->positions = g_ptr_array_new_with_free_func (position_free);
  return self;
}

void
gst_oct_bscan_mirrors_free (GstOctBscanMirrors *self)
{
  if (!self)
    return;
  g_string_free (self->sides, TRUE);
  g_ptr_array_unref (self->positions);
  g_free (self);
}

/* --- the actions ---------------------------------------------------------- */

void
gst_oct_bscan_forget_mirrors (GstOctBscan *self)
{
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  self->mirrors->forgets = TRUE;
}

gboolean
gst_oct_bscan_wants_mirror (GstOctBscan *self)
{
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  return self->mirrors->sides->len > 0;
}

guint
gst_oct_bscan_mirror_samples (GstOctBscan *self)
{
  return (guint) g_atomic_int_get (&self->mirrors->width);
}

/* --- positions ------------------------------------------------------------ */

/* A position near one that is there takes its place. */
static void
keep_position (GstOctBscanMirrors *self, Position *p)
{
  const ImkOctbscanFringe *now = &p->fringes[0];

  for (guint i = 0; i < self->positions->len; i++) {
    const Position *other = g_ptr_array_index (self->positions, i);
    const ImkOctbscanFringe *then = &other->fringes[0];

    if (then->side == now->side &&
        ABS (then->bin - now->bin) < SAME_POSITION * now->bin) {
      g_ptr_array_remove_index (self->positions, i);
      break;
    }
  }
  if (self->positions->len == IMK_OCTBSCAN_MAX_MIRRORS)
    g_ptr_array_remove_index (self->positions, 0);
  g_ptr_array_add (self->positions, p);
}

static ImkStatus
measure (GstOctBscan *self, const ImkImage *in, gint side, ImkError *error)
{
  const ImkOctbscanConfig *c = &self->in_use.plan->config;
  GstOctBscanMirrors *mirrors = self->mirrors;
  Position *p = g_new0 (Position, 1);
  ImkStatus status = IMK_OK;

  if ((guint) mirrors->width != c->width || mirrors->n_cameras != c->n_cameras)
    g_ptr_array_set_size (mirrors->positions, 0);
  g_atomic_int_set (&mirrors->width, (gint) c->width);
  mirrors->n_cameras = c->n_cameras;
  for (guint i = 0; i < c->n_cameras && status == IMK_OK; i++) {
    status = imk_octbscan_measure_mirror (
        c, in, gst_oct_bscan_first_camera (self), i, &p->fringes[i], error);
    p->fringes[i].side = side;
  }
  if (status == IMK_OK)
    keep_position (mirrors, p);
  else
    position_free (p);
  return status;
}

/* --- the calibration ------------------------------------------------------ */

static void
append_numbers (GString *text, const gdouble *numbers, guint n, gboolean comma)
{
  gchar digits[G_ASCII_DTOSTR_BUF_SIZE];

  if (comma)
    g_string_append_c (text, ',');
  for (guint i = 0; i < n; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? ";" : "",
        g_ascii_formatd (digits, sizeof (digits), "%.12g", numbers[i]));
}

static void
report_position (
    Report *r, const ImkOctbscanMirrorPosition *p, guint camera, guint i)
{
  g_autofree gchar *name = g_strdup_printf ("camera-%u-mirror-%u", camera, i);
  g_autoptr (GstStructure) s = gst_structure_new ("mirror", "depth",
      G_TYPE_DOUBLE, p->depth, "depth-um", G_TYPE_DOUBLE, p->depth_um,
      "width-before", G_TYPE_DOUBLE, p->width_before, "width", G_TYPE_DOUBLE,
      p->width, "width-limit", G_TYPE_DOUBLE, p->width_limit, "level",
      G_TYPE_DOUBLE, p->level_db, "snr", G_TYPE_DOUBLE, p->snr_db,
      "phase-error", G_TYPE_DOUBLE, p->phase_error, NULL);

  gst_structure_set (r->message, name, GST_TYPE_STRUCTURE, s, NULL);
}

static void
report_camera (Report *r, const ImkOctbscanMirrors *found, guint camera)
{
  static const gdouble none = 0;

  append_numbers (r->k_polynomial, found->k, found->n_k, camera > 0);
  append_numbers (r->dispersion,
      found->n_dispersion > 0 ? found->dispersion : &none,
      MAX (found->n_dispersion, 1), camera > 0);
  for (guint i = 0; i < found->n; i++)
    report_position (r, &found->positions[i], camera, i);
  r->phase_error = MAX (r->phase_error, found->phase_error);
}

static ImkStatus
scale_camera (Report *r, ImkOctbscanMirrors *found,
    const ImkOctbscanFringe *fringes, guint camera, gdouble travel_um,
    ImkError *error)
{
  g_autofree gchar *name = g_strdup_printf ("camera-%u-scale", camera);
  g_autofree gchar *doubt = NULL;
  gdouble factor = 1;

  IMK_TRY (gst_oct_bscan_scale_by_travel (
      found, fringes, camera, travel_um, &factor, &doubt, error));
  gst_structure_set (r->message, name, G_TYPE_DOUBLE, factor, NULL);
  if (doubt && !r->doubt)
    r->doubt = g_steal_pointer (&doubt);
  return IMK_OK;
}

static ImkStatus
solve (GstOctBscan *self, gdouble travel_um, Report *r, ImkError *error)
{
  const ImkOctbscanConfig *c = &self->in_use.plan->config;
  const GPtrArray *positions = self->mirrors->positions;

  for (guint i = 0; i < c->n_cameras; i++) {
    ImkOctbscanFringe fringes[IMK_OCTBSCAN_MAX_MIRRORS];
    ImkOctbscanMirrors found;

    for (guint k = 0; k < positions->len; k++)
      fringes[k] = ((const Position *) positions->pdata[k])->fringes[i];
    IMK_TRY (imk_octbscan_solve_mirrors (c, i, fringes, positions->len,
        self->in_use.now->mirror_fit, &found, error));
    if (travel_um != 0)
      IMK_TRY (scale_camera (r, &found, fringes, i, travel_um, error));
    report_camera (r, &found, i);
  }
  return IMK_OK;
}

/* @why: (nullable): it is refused */
static void
tell (GstOctBscan *self, Report *r, const gchar *why)
{
  g_autofree gchar *k_polynomial = NULL, *dispersion = NULL;

  if (!why)
    gst_oct_bscan_settings_set_found (G_OBJECT (self),
        self->in_use.now->mirror_fit == IMK_OCTBSCAN_MIRROR_FIT_PHASE
            ? r->k_polynomial->str
            : NULL,
        r->dispersion->str);
  g_object_get (
      self, "k-polynomial", &k_polynomial, "dispersion", &dispersion, NULL);
  gst_structure_set (r->message, "accepted", G_TYPE_BOOLEAN, why == NULL,
      "text", G_TYPE_STRING, why ? why : "", "k-polynomial", G_TYPE_STRING,
      k_polynomial ? k_polynomial : "", "dispersion", G_TYPE_STRING,
      dispersion ? dispersion : "", "phase-error-rms", G_TYPE_DOUBLE,
      r->phase_error, "n-positions", G_TYPE_UINT, self->mirrors->positions->len,
      NULL);
  if (!why && r->doubt)
    gst_structure_set (r->message, "warning", G_TYPE_STRING, r->doubt, NULL);
  gst_element_post_message (
      GST_ELEMENT (self), gst_message_new_element (GST_OBJECT (self),
                              g_steal_pointer (&r->message)));
  if (why)
    GST_ELEMENT_WARNING (self, LIBRARY, FAILED, ("%s", why), (NULL));
  else if (r->doubt)
    GST_ELEMENT_WARNING (self, LIBRARY, SETTINGS, ("%s", r->doubt), (NULL));
}

/* Returns: the side of the next B-scan; @is_last: no other one is waited for */
static gint
take_side (GstOctBscan *self, gboolean *is_last, gdouble *travel_um)
{
  GstOctBscanMirrors *mirrors = self->mirrors;
  gint side;

  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  side = mirrors->sides->str[0] == '-' ? -1 : 1;
  g_string_erase (mirrors->sides, 0, 1);
  *is_last = mirrors->sides->len == 0;
  *travel_um = mirrors->travel_um;
  if (mirrors->forgets)
    g_ptr_array_set_size (mirrors->positions, 0);
  mirrors->forgets = FALSE;
  return side;
}

void
gst_oct_bscan_follow_mirror (GstOctBscan *self, const ImkImage *in)
{
  Report r = {g_string_new (NULL), g_string_new (NULL),
      gst_structure_new_empty ("octbscan-mirror")};
  gboolean is_last;
  gdouble travel_um;
  gint side = take_side (self, &is_last, &travel_um);
  ImkError error;
  ImkStatus status = measure (self, in, side, &error);

  if (status != IMK_OK) {
    GST_OBJECT_LOCK (self);
    g_string_truncate (self->mirrors->sides, 0);
    GST_OBJECT_UNLOCK (self);
  } else if (is_last) {
    status = solve (self, travel_um, &r, &error);
  }
  if (status != IMK_OK || is_last)
    tell (self, &r, status == IMK_OK ? NULL : error.message);
  gst_clear_structure (&r.message);
  g_string_free (r.k_polynomial, TRUE);
  g_string_free (r.dispersion, TRUE);
  g_free (r.doubt);
}

void
gst_oct_bscan_calibrate_mirror (
    GstOctBscan *self, const gchar *sides, gdouble travel_um)
{
  const gchar *wanted = sides && *sides ? sides : "+";

  if (strspn (wanted, "+-") != strlen (wanted) ||
      strlen (wanted) > IMK_OCTBSCAN_MAX_MIRRORS) {
    Report r = {.message = gst_structure_new_empty ("octbscan-mirror")};
    g_autofree gchar *why = g_strdup_printf (
        "calibrate-mirror takes up to %u signs, one for each position of the "
        "mirror: + on the side of the sample, - beyond zero delay. It was "
        "given \"%.40s\".",
        IMK_OCTBSCAN_MAX_MIRRORS, wanted);

    tell (self, &r, why);
    return;
  }
  GST_IMAGING_HOLD (GST_OBJECT_GET_LOCK (self));
  g_string_assign (self->mirrors->sides, wanted);
  self->mirrors->travel_um = travel_um;
}
