/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "normalintegrate/normalintegrate-correct.h"

#include <math.h>
#include <stdlib.h>

#include "normalintegrate/normalintegrate-surface.h"

enum { SAMPLES = 1 << 15, MAX_GRID = 1 << 20, CORNERS = 4 };

/* Of points: on a line to a thousandth of their extent is on a line. */
static const double least_of_points = 1e-3;
static const double least_of_heights = 1e-9;

typedef ImkNormalintegrateCorrection Correction;
typedef ImkNormalintegratePlace Place;
typedef ImkNormalintegratePlan Plan;
typedef ImkNormalintegrateScale Scale;
typedef ImkNormalintegrateSurface Surface;

/* Heights at some pixels: those of a grid, and then the corners around each
 * point. */
typedef struct Samples {
  uint32_t n_grid, n;
  uint32_t *at;
  float *z;
  Place *places; /* of the grid, without holes */
  size_t n_places;
} Samples;

static ImkNormalintegrateModel
model_of_points (uint32_t n)
{
  return n < 3   ? IMK_NORMALINTEGRATE_OFFSET
         : n < 6 ? IMK_NORMALINTEGRATE_TILT
                 : IMK_NORMALINTEGRATE_PARABOLIC;
}

static ImkStatus
refuse_points (uint32_t n, ImkError *error)
{
  return n < 6 ? imk_error_set (error, IMK_ERROR_CONFIG,
                     "The %u points of known height lie on a line, which fits "
                     "no plane. Move one off the line, or give 1 or 2 points "
                     "for an offset.",
                     n)
               : imk_error_set (error, IMK_ERROR_CONFIG,
                     "The %u points of known height lie on a line or on a "
                     "curve of second order, which fits no quadratic surface. "
                     "Add one elsewhere, or give 3 to 5 points for a plane.",
                     n);
}

ImkStatus
imk_normalintegrate_check_correction (
    const ImkNormalintegrateConfig *c, const Plan *plan, ImkError *error)
{
  Place places[IMK_NORMALINTEGRATE_MAX_POINTS];
  Surface unused;
  bool determined = true;
  ImkStatus status = IMK_OK;

  if ((int) c->flatten < 0 || c->flatten > IMK_NORMALINTEGRATE_FLATTEN_RADIAL)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "flatten has no choice of the number %d; there are 0..%d.",
        (int) c->flatten, (int) IMK_NORMALINTEGRATE_FLATTEN_RADIAL);
  if (c->n_points > IMK_NORMALINTEGRATE_MAX_POINTS)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u points of known height; there can be %u.", c->n_points,
        IMK_NORMALINTEGRATE_MAX_POINTS);
  if (c->n_points > 0 && !c->points)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u points of known height, but no list of them.",
        c->n_points);
  for (uint32_t i = 0; i < c->n_points; i++) {
    const ImkNormalintegratePoint *p = &c->points[i];

    if (!(fabs (p->height) <= 1e9))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Point %u of known height is %g mm high; it can be -1e9 to 1e9.",
          i + 1, p->height);
    if (!(p->x >= 0 && p->x <= plan->width - 1 && p->y >= 0 &&
            p->y <= plan->height - 1))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Point %u of known height is at (%g, %g), outside of the map of %u x "
          "%u pixels.",
          i + 1, p->x, p->y, plan->width, plan->height);
    places[i] = (Place){p->x, p->y / plan->aspect, p->height};
  }
  if (c->n_points > 0)
    status = imk_normalintegrate_fit (model_of_points (c->n_points), places,
        c->n_points, least_of_points, &unused, NULL, &determined, error);
  return status == IMK_OK && !determined ? refuse_points (c->n_points, error)
                                         : status;
}

/* --- samples -------------------------------------------------------------- */

/* Returns: mm; the place is from the middle of the map */
static Place
place_of (const Plan *plan, const Scale *s, double x, double y, float z)
{
  double above = z - s->lowest, focal = s->focal, shrink = 1;
  Place p = {.height = s->mm * above};

  if (focal > 0) {
    p.height = -s->mm * focal * expm1 (-above / focal);
    shrink = 1 - p.height / (focal * s->mm);
  }
  p.x = (x - (plan->width - 1) / 2.0) * s->mm * shrink;
  p.y = ((plan->height - 1) / 2.0 - y) * s->mm / plan->aspect * shrink;
  return p;
}

/* Pixels every so many columns and rows, so that some SAMPLES have a height. */
static uint32_t
choose_step (const Plan *plan, uint64_t n_valid)
{
  double n = (double) plan->width * plan->height;
  double most = fmin (MAX_GRID, SAMPLES * n / (double) n_valid);

  return (uint32_t) ceil (sqrt (fmax (1, n / most)));
}

static uint32_t
list_grid (const Plan *plan, uint32_t step, uint32_t *at)
{
  uint32_t n = 0;

  for (uint32_t y = (step - 1) / 2; y < plan->height; y += step)
    for (uint32_t x = (step - 1) / 2; x < plan->width; x += step, n++)
      if (at)
        at[n] = y * plan->width + x;
  return n;
}

static void
list_corners (const Plan *plan, const ImkNormalintegratePoint *p, uint32_t *at)
{
  uint32_t x = (uint32_t) p->x, y = (uint32_t) p->y;
  /* a corner without a share of the point need not be there */
  uint32_t right = p->x > x, below = p->y > y;

  for (uint32_t i = 0; i < CORNERS; i++)
    at[i] = (y + (i / 2) * below) * plan->width + x + (i % 2) * right;
}

static void
samples_clear (Samples *s)
{
  free (s->at);
  free (s->z);
  free (s->places);
}

static ImkStatus
samples_list (Samples *s, const Correction *c, const Plan *plan,
    uint64_t n_valid, ImkError *error)
{
  uint32_t step = choose_step (plan, n_valid);

  s->n_grid = c->flatten ? list_grid (plan, step, NULL) : 0;
  s->n = s->n_grid + CORNERS * c->n_points;
  s->at = malloc (s->n * sizeof (*s->at));
  s->z = malloc (s->n * sizeof (*s->z));
  s->places = malloc ((s->n_grid + 1) * sizeof (*s->places));
  if (!s->at || !s->z || !s->places)
    return IMK_NO_MEMORY (error, "for the heights of %u pixels.", s->n);
  if (c->flatten)
    list_grid (plan, step, s->at);
  for (uint32_t i = 0; i < c->n_points; i++)
    list_corners (plan, &c->points[i], s->at + s->n_grid + CORNERS * i);
  return IMK_OK;
}

static void
samples_place (Samples *s, const Plan *plan, const Scale *scale)
{
  for (uint32_t i = 0; i < s->n_grid; i++) {
    uint32_t x = s->at[i] % plan->width, y = s->at[i] / plan->width;

    if (isfinite (s->z[i]))
      s->places[s->n_places++] = place_of (plan, scale, x, y, s->z[i]);
  }
}

/* --- fits ----------------------------------------------------------------- */

static ImkStatus
flatten (ImkNormalintegrateFlatten how, const Samples *s, Surface *surface,
    ImkNormalintegrateSummary *summary, ImkError *error)
{
  static const ImkNormalintegrateModel models[] = {
      [IMK_NORMALINTEGRATE_FLATTEN_PLANE] = IMK_NORMALINTEGRATE_TILT,
      [IMK_NORMALINTEGRATE_FLATTEN_QUADRATIC] = IMK_NORMALINTEGRATE_PARABOLIC,
      [IMK_NORMALINTEGRATE_FLATTEN_RADIAL] = IMK_NORMALINTEGRATE_BOWL,
  };
  ImkNormalintegrateFit fit = {0, 0};
  bool determined;
  ImkStatus status = imk_normalintegrate_fit (models[how], s->places,
      s->n_places, least_of_heights, surface, &fit, &determined, error);

  summary->flatten_share = fit.share;
  summary->flatten_deviation = fit.deviation;
  return status;
}

/* @off: (out): by how much each point with a height is too high
 * @which: (out): the points that these are
 * Returns: how many */
static uint32_t
read_points (const Correction *c, const Plan *plan, const Scale *scale,
    const float *corners, const Surface *surface, Place *off, uint32_t *which)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < c->n_points; i++, corners += CORNERS) {
    const ImkNormalintegratePoint *p = &c->points[i];
    double x = p->x - floor (p->x), y = p->y - floor (p->y);
    double z = (1 - y) * ((1 - x) * corners[0] + x * corners[1]) +
               y * ((1 - x) * corners[2] + x * corners[3]);

    if (!isfinite (z))
      continue;
    off[n] = place_of (plan, scale, p->x, p->y, (float) z);
    off[n].height -=
        imk_normalintegrate_surface_at (surface, off[n].x, off[n].y) +
        p->height;
    which[n++] = i;
  }
  return n;
}

/* Adds to @surface what makes the points right that have a height. Where these
 * are fewer than there were, or lie on a line, a simpler surface does. */
static ImkStatus
fit_points (const Correction *c, const Plan *plan, const Scale *scale,
    const float *corners, Surface *surface, ImkNormalintegrateSummary *summary,
    ImkError *error)
{
  Place off[IMK_NORMALINTEGRATE_MAX_POINTS];
  uint32_t which[IMK_NORMALINTEGRATE_MAX_POINTS];
  uint32_t n = read_points (c, plan, scale, corners, surface, off, which);
  Surface by_points;
  bool determined;

  if (n == 0)
    return IMK_OK;
  IMK_TRY (imk_normalintegrate_fit (model_of_points (n), off, n,
      least_of_points, &by_points, NULL, &determined, error));
  if (!determined)
    IMK_TRY (imk_normalintegrate_fit (IMK_NORMALINTEGRATE_OFFSET, off, n,
        least_of_points, &by_points, NULL, &determined, error));
  if (c->flatten == IMK_NORMALINTEGRATE_FLATTEN_NONE)
    *surface = (Surface){.middle_x = by_points.middle_x,
        .middle_y = by_points.middle_y,
        .unit = by_points.unit};
  imk_normalintegrate_surface_add (surface, &by_points);
  for (uint32_t i = 0; i < n; i++)
    summary->point_residuals[which[i]] =
        off[i].height -
        imk_normalintegrate_surface_at (&by_points, off[i].x, off[i].y);
  return IMK_OK;
}

static void
scale_set_surface (Scale *scale, const Plan *plan, const Surface *s)
{
  scale->is_bent = scale->is_corrected = true;
  scale->middle_x = (float) ((plan->width - 1) / 2.0);
  scale->middle_y = (float) ((plan->height - 1) / 2.0);
  scale->scale_x = (float) (scale->mm / s->unit);
  scale->scale_y = (float) (scale->mm / plan->aspect / s->unit);
  scale->from_u = (float) (s->middle_x / s->unit);
  scale->from_v = (float) (s->middle_y / s->unit);
  for (int i = 0; i < IMK_NORMALINTEGRATE_N_TERMS; i++)
    scale->terms[i] = (float) s->terms[i];
}

ImkStatus
imk_normalintegrate_correct (const Correction *c, const Plan *plan,
    const ImkNormalintegrateBackend *backend, void *state, Scale *scale,
    ImkNormalintegrateSummary *summary, void *stream, ImkError *error)
{
  Surface surface = {.unit = 1}, told = {.unit = 1};
  Samples s = {0};
  ImkStatus status = samples_list (&s, c, plan, summary->n_valid, error);

  if (status == IMK_OK)
    status = backend->gather (state, s.at, s.n, s.z, stream, error);
  if (status == IMK_OK && c->flatten) {
    samples_place (&s, plan, scale);
    status = flatten (c->flatten, &s, &surface, summary, error);
  }
  if (status == IMK_OK && c->n_points > 0)
    status =
        fit_points (c, plan, scale, s.z + s.n_grid, &surface, summary, error);
  samples_clear (&s);
  if (status != IMK_OK || (c->n_points == 0 && !(summary->flatten_share > 0)))
    return status;
  scale_set_surface (scale, plan, &surface);
  imk_normalintegrate_surface_add (&told, &surface);
  for (int i = 0; i < IMK_NORMALINTEGRATE_N_TERMS; i++)
    summary->removed[i] = told.terms[i];
  return IMK_OK;
}
