/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whole lines: the phase at nodes and heights, interpolated. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "imk/insarform-orbit.h"
#include "imk/parallel.h"

/* Heights of the polynomial, m; of the first alone where there are none. */
static const double heights_m[] = {
    0, IMK_INSARFORM_MIN_HEIGHT, 1600, 4400, 7200, IMK_INSARFORM_MAX_HEIGHT};

enum { N_HEIGHTS = 6, COARSEST = 64, FINEST = 4, GRAIN = 1024 };

struct ImkInsarformEarth {
  ImkInsarformOrbit grid, reference, secondary;
  bool has_reference; /* otherwise it is the image of the grid */
  ImkInsarformSurface surface;
  uint32_t width, height;
  uint32_t step;   /* from node to node */
  uint32_t nx, ny; /* node (i, j) is at ((i - 1) step, (j - 1) step) */
  double (*nodes)[N_HEIGHTS]; /* divided differences by height */
  double (*row)[N_HEIGHTS];   /* of a line, [nx] */
  double (*weights)[4];       /* of each place between two nodes, [step] */
};

/* Of the cubic through four nodes -1, 0, 1, 2 at @t of 0..1. */
static void
weigh (double t, double *w)
{
  w[0] = -t * (t - 1) * (t - 2) / 6;
  w[1] = (t + 1) * (t - 1) * (t - 2) / 2;
  w[2] = -(t + 1) * t * (t - 2) / 2;
  w[3] = (t + 1) * t * (t - 1) / 6;
}

/* --- nodes ---------------------------------------------------------------- */

static ImkStatus
phase_at (const ImkInsarformEarth *self, double column, double line,
    double height, double *phase, ImkError *error)
{
  return imk_insarform_earth_phase (&self->grid,
      self->has_reference ? &self->reference : NULL, &self->secondary,
      &self->surface, column, line, height, phase, error);
}

/* Newton's form: sum of c_k times the product of (h - h_i), i < k. */
static ImkStatus
make_node (const ImkInsarformEarth *self, double column, double line, double *c,
    ImkError *error)
{
  ImkStatus status = IMK_OK;

  for (int k = 0; k < N_HEIGHTS && status == IMK_OK; k++)
    status = phase_at (self, column, line, heights_m[k], &c[k], error);
  for (int order = 1; order < N_HEIGHTS; order++)
    for (int k = N_HEIGHTS - 1; k >= order; k--)
      c[k] = (c[k] - c[k - 1]) / (heights_m[k] - heights_m[k - order]);
  return status;
}

static double
at_height (const double *c, double h)
{
  double sum = c[N_HEIGHTS - 1];

  for (int k = N_HEIGHTS - 2; k >= 0; k--)
    sum = sum * (h - heights_m[k]) + c[k];
  return sum;
}

static void
free_nodes (ImkInsarformEarth *self)
{
  free (self->nodes);
  free (self->row);
  free (self->weights);
  self->nodes = self->row = NULL;
  self->weights = NULL;
}

static ImkStatus
make_nodes (ImkInsarformEarth *self, ImkError *error)
{
  free_nodes (self);
  self->nx = (self->width - 1) / self->step + 4;
  self->ny = (self->height - 1) / self->step + 4;
  self->nodes = malloc ((size_t) self->nx * self->ny * sizeof (*self->nodes));
  self->row = malloc (self->nx * sizeof (*self->row));
  self->weights = malloc (self->step * sizeof (*self->weights));
  if (!self->nodes || !self->row || !self->weights)
    return IMK_NO_MEMORY (error, "for the phase of the earth at %u x %u nodes.",
        self->nx, self->ny);
  for (uint32_t i = 0; i < self->step; i++)
    weigh ((double) i / self->step, self->weights[i]);
  for (uint32_t j = 0; j < self->ny; j++)
    for (uint32_t i = 0; i < self->nx; i++)
      IMK_TRY (make_node (self, ((double) i - 1) * self->step,
          ((double) j - 1) * self->step, self->nodes[(size_t) j * self->nx + i],
          error));
  return IMK_OK;
}

/* The four nodes of column @x at the current line. */
static void
interpolate_column (const ImkInsarformEarth *self, uint32_t x, double *c)
{
  const double *w = self->weights[x % self->step];
  double (*nodes)[N_HEIGHTS] = self->row + x / self->step;

  for (int k = 0; k < N_HEIGHTS; k++)
    c[k] = w[0] * nodes[0][k] + w[1] * nodes[1][k] + w[2] * nodes[2][k] +
           w[3] * nodes[3][k];
}

static void
interpolate_row (ImkInsarformEarth *self, uint32_t y)
{
  const double *w = self->weights[y % self->step];
  double (*nodes)[N_HEIGHTS] =
      self->nodes + (size_t) (y / self->step) * self->nx;

  for (uint32_t i = 0; i < self->nx; i++)
    for (int k = 0; k < N_HEIGHTS; k++)
      self->row[i][k] = w[0] * nodes[i][k] + w[1] * nodes[i + self->nx][k] +
                        w[2] * nodes[i + 2 * self->nx][k] +
                        w[3] * nodes[i + 3 * self->nx][k];
}

/* Returns: whether the phase is right halfway between nodes, in the corners and
 * the middle of the image. @is_right: (out) */
static ImkStatus
probe (ImkInsarformEarth *self, bool *is_right, ImkError *error)
{
  ImkStatus status = IMK_OK;

  *is_right = true;
  for (uint32_t i = 0; i < 9 && status == IMK_OK; i++) {
    uint32_t half = self->step / 2;
    uint32_t x = (self->width - 1) / self->step * (i % 3) / 2 * self->step;
    uint32_t y = (self->height - 1) / self->step * (i / 3) / 2 * self->step;
    double c[N_HEIGHTS], h = i % 2 ? 2000 : 7000, expected;

    interpolate_row (self, y + half);
    interpolate_column (self, x + half, c);
    status = phase_at (self, x + half, y + half, h, &expected, error);
    *is_right &= status == IMK_OK &&
                 fabs (at_height (c, h) - expected) < IMK_INSARFORM_EARTH_ERROR;
  }
  return status;
}

/* --- the object ----------------------------------------------------------- */

static ImkStatus
check_orbit (const char *name, const ImkInsarformOrbit *o, ImkError *error)
{
  if (o->n_states < 4)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The orbit of the %s has %u state vectors; at least 4 are needed.",
        name, o->n_states);
  for (uint32_t i = 1; i < o->n_states; i++)
    if (!(o->states[i].time > o->states[i - 1].time))
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "State vector %u of the %s is of the time %.6f s, which is not after "
          "%.6f s, that of the one before.",
          i, name, o->states[i].time, o->states[i - 1].time);
  return IMK_OK;
}

static ImkStatus
check (const ImkInsarformEarth *s, ImkError *error)
{
  const char *name = s->has_reference ? "grid" : "reference";
  const ImkInsarformOrbit *r = &s->grid;

  IMK_TRY (check_orbit (name, r, error));
  if (s->has_reference)
    IMK_TRY (check_orbit ("reference", &s->reference, error));
  IMK_TRY (check_orbit ("secondary", &s->secondary, error));
  if (!(r->wavelength > 0 && r->line_time > 0 && r->range_step > 0 &&
          r->near_range > 0 && (r->look == 1 || r->look == -1) &&
          s->surface.equatorial > 0 && s->surface.polar > 0))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The %s has a wavelength of %g m, lines every %g s, columns every %g m "
        "from %g m on, looks to %d, and the earth has radii of %g and %g m. "
        "All must be above 0, the side 1 or -1.",
        name, r->wavelength, r->line_time, r->range_step, r->near_range,
        r->look, s->surface.equatorial, s->surface.polar);
  return IMK_OK;
}

ImkStatus
imk_insarform_earth_new (const ImkInsarformOrbit *grid,
    const ImkInsarformOrbit *reference, const ImkInsarformOrbit *secondary,
    const ImkInsarformSurface *surface, uint32_t width, uint32_t height,
    ImkInsarformEarth **self, ImkError *error)
{
  ImkInsarformEarth *s = calloc (1, sizeof (*s));
  bool is_right = false;
  ImkStatus status;

  if (!s)
    return IMK_NO_MEMORY (error, "for the phase of the earth.");
  s->grid = *grid;
  s->has_reference = reference != NULL;
  if (reference)
    s->reference = *reference;
  s->secondary = *secondary;
  s->surface = *surface;
  s->width = width;
  s->height = height;
  status = check (s, error);
  for (uint32_t step = COARSEST; status == IMK_OK && !is_right; step /= 2) {
    s->step = step;
    if (step < FINEST)
      status = imk_error_set (error, IMK_ERROR_CONFIG,
          "The phase of the earth bends too much between heights of %d and %d "
          "m, or between columns: near_range is %g m, the baseline too long.",
          IMK_INSARFORM_MIN_HEIGHT, IMK_INSARFORM_MAX_HEIGHT, grid->near_range);
    else
      status = make_nodes (s, error);
    if (status == IMK_OK)
      status = probe (s, &is_right, error);
  }
  if (status == IMK_OK)
    *self = s;
  else
    imk_insarform_earth_free (s);
  return status;
}

typedef struct Line {
  const ImkInsarformEarth *self;
  const float *heights; /* nullable */
  float *phase;
} Line;

static float
wrap (double f)
{
  return (float) (f - 2 * M_PI * round (f / (2 * M_PI)));
}

static void
make_columns (void *data, uint32_t first, uint32_t end)
{
  const Line *line = data;
  const ImkInsarformEarth *s = line->self;

  for (uint32_t x = first; x < end; x++) {
    const double *w = s->weights[x % s->step];
    double (*nodes)[N_HEIGHTS] = s->row + x / s->step;
    double c[N_HEIGHTS];

    if (line->heights) {
      interpolate_column (s, x, c);
      line->phase[x] = wrap (at_height (c, line->heights[x]));
    } else {
      line->phase[x] = wrap (w[0] * nodes[0][0] + w[1] * nodes[1][0] +
                             w[2] * nodes[2][0] + w[3] * nodes[3][0]);
    }
  }
}

void
imk_insarform_earth_line (ImkInsarformEarth *self, uint32_t line,
    const float *heights, uint32_t n_threads, float *phase)
{
  Line work = {self, heights, phase};

  interpolate_row (self, line);
  imk_parallel_for (n_threads, self->width, GRAIN, make_columns, &work);
}

void
imk_insarform_earth_free (ImkInsarformEarth *self)
{
  if (!self)
    return;
  free_nodes (self);
  free (self);
}
