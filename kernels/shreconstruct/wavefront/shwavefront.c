/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each method is one least-squares problem: rows of slopes, each of which is a
 * sum over a few unknowns. Its normal equations are banded, and solved by
 * Cholesky's factors, which stay until other cells are valid. */
#include "imk/shwavefront.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "shreconstruct/shreconstruct-private.h"
#include "shreconstruct/wavefront/zernike.h"

/* Added to the diagonal, relative to its largest element: chooses the smallest
 * of several solutions. The lowest mode of a 512 x 512 grid is at 1e-5. */
#define REGULARIZATION 1e-11

/* Of the slopes of a Zernike mode, the part that no sum of lower modes has. A
 * grid cannot tell a mode with less; as in bases.py. */
#define MIN_OWN_PART 0.03

struct ImkShwavefront {
  ImkShwavefrontConfig config;
  uint32_t columns, rows;   /* cells of the smallest rectangle */
  uint32_t width, height;   /* points */
  uint32_t *place;          /* [n_cells]: column + columns * row in it */
  uint32_t n, band;         /* unknowns, and elements below the diagonal */
  double *factors;          /* [n][band + 1]: L; the diagonal is the last one */
  double *x;                /* [n] */
  double *values, *gx, *gy; /* of ZERNIKE: [cells of the rectangle][n] */
  uint8_t *valid, *now;     /* [columns * rows]: of the factors, of the frame */
  double *sx, *sy;          /* [columns * rows] */
  uint8_t *has_point;       /* [width * height] */
  bool is_factored;
};

void
imk_shwavefront_config_init_sized (ImkShwavefrontConfig *config, size_t size)
{
  const ImkShwavefrontConfig defaults = {
      .size = size, .n_modes = 20, .scale = 1};

  imk_config_init (config, size, &defaults, sizeof (defaults));
}

/* --- making --------------------------------------------------------------- */

static ImkStatus
check_config (const ImkShwavefrontConfig *c, ImkError *error)
{
  if (c->n_cells - 1 >= IMK_SHRECONSTRUCT_MAX_CELLS || !c->row_column)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u cells with rows and columns; there can be 1 to %d.",
        c->row_column ? c->n_cells : 0, IMK_SHRECONSTRUCT_MAX_CELLS);
  for (uint32_t i = 0; i < c->n_cells; i++)
    if (c->row_column[2 * i] >= IMK_SHWAVEFRONT_MAX_SIDE ||
        c->row_column[2 * i + 1] >= IMK_SHWAVEFRONT_MAX_SIDE)
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Cell %u is in row %u, column %u; a wavefront can have rows and "
          "columns 0 to %d. Number the lenslets in the map of shcentroid.",
          i, c->row_column[2 * i], c->row_column[2 * i + 1],
          IMK_SHWAVEFRONT_MAX_SIDE - 1);
  if (c->method == IMK_SHWAVEFRONT_ZERNIKE &&
      c->n_modes - 1 >= IMK_SHWAVEFRONT_MAX_MODES)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "There are %u Zernike modes; there can be 1 to %d.", c->n_modes,
        IMK_SHWAVEFRONT_MAX_MODES);
  if (!(fabs (c->scale) > 0 && isfinite (c->scale)))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The scale of the wavefront is %g; it must be finite and not 0.",
        c->scale);
  return IMK_OK;
}

/* The smallest rectangle. Returns: IMK_ERROR_CONFIG where two cells share a
 * place */
static ImkStatus
find_places (ImkShwavefront *s, const ImkShwavefrontConfig *c, ImkError *error)
{
  uint32_t low[2] = {UINT32_MAX, UINT32_MAX}, high[2] = {0, 0};

  for (uint32_t i = 0; i < 2 * c->n_cells; i++) {
    uint32_t v = c->row_column[i];

    low[i % 2] = v < low[i % 2] ? v : low[i % 2];
    high[i % 2] = v > high[i % 2] ? v : high[i % 2];
  }
  s->rows = high[0] - low[0] + 1;
  s->columns = high[1] - low[1] + 1;
  s->place = malloc (c->n_cells * sizeof (*s->place));
  s->valid = calloc ((size_t) s->rows * s->columns, 1);
  s->now = calloc ((size_t) s->rows * s->columns, 1);
  if (!s->place || !s->valid || !s->now)
    return IMK_ERROR_MEMORY;
  for (uint32_t i = 0; i < c->n_cells; i++) {
    uint32_t row = c->row_column[2 * i], column = c->row_column[2 * i + 1];

    s->place[i] = column - low[1] + (row - low[0]) * s->columns;
    if (s->now[s->place[i]])
      return imk_error_set (error, IMK_ERROR_CONFIG,
          "Two cells are in row %u, column %u; a wavefront needs the place of "
          "each. Number the lenslets in the map of shcentroid.",
          row, column);
    s->now[s->place[i]] = true;
  }
  return IMK_OK;
}

static bool
make_modes (ImkShwavefront *s)
{
  size_t n = (size_t) s->rows * s->columns * s->n;
  double across = s->columns > s->rows ? s->columns : s->rows;
  ImkZernikeEdge edge;

  s->values = malloc (n * sizeof (double));
  s->gx = malloc (n * sizeof (double));
  s->gy = malloc (n * sizeof (double));
  if (!s->values || !s->gx || !s->gy)
    return false;
  imk_zernike_edge_init (&edge, s->n + 1);
  for (uint32_t i = 0; i < s->rows * s->columns; i++) {
    double x = (2 * (i % s->columns) + 1.0 - s->columns) / across;
    double y = (2 * (i / s->columns) + 1.0 - s->rows) / across;

    for (uint32_t m = 0; m < s->n; m++) {
      size_t at = (size_t) i * s->n + m;

      s->values[at] = imk_zernike (m + 2, x, y);
      imk_zernike_across (
          &edge, m + 2, x, y, 1 / across, &s->gx[at], &s->gy[at]);
    }
  }
  return true;
}

static bool
make_arrays (ImkShwavefront *s)
{
  size_t n_cells = (size_t) s->rows * s->columns;
  bool is_fried = s->config.method == IMK_SHWAVEFRONT_FRIED;
  bool is_modal = s->config.method == IMK_SHWAVEFRONT_ZERNIKE;

  s->width = s->columns + is_fried;
  s->height = s->rows + is_fried;
  s->n = is_modal ? s->config.n_modes : s->width * s->height;
  s->band = is_modal ? s->n - 1 : s->width + is_fried;
  s->factors = malloc ((size_t) s->n * (s->band + 1) * sizeof (double));
  s->x = malloc (s->n * sizeof (double));
  s->sx = malloc (n_cells * sizeof (double));
  s->sy = malloc (n_cells * sizeof (double));
  s->has_point = malloc ((size_t) s->width * s->height);
  return s->factors && s->x && s->sx && s->sy && s->has_point &&
         (!is_modal || make_modes (s));
}

void
imk_shwavefront_free (ImkShwavefront *self)
{
  if (!self)
    return;
  free (self->place);
  free (self->factors);
  free (self->x);
  free (self->values);
  free (self->gx);
  free (self->gy);
  free (self->valid);
  free (self->now);
  free (self->sx);
  free (self->sy);
  free (self->has_point);
  free (self);
}

void
imk_shwavefront_shape (
    const ImkShwavefront *self, uint32_t *width, uint32_t *height)
{
  *width = self->width;
  *height = self->height;
}

const double *
imk_shwavefront_modes (const ImkShwavefront *self)
{
  return self->values ? self->x : NULL;
}

uint32_t
imk_shwavefront_n_modes (const ImkShwavefront *self)
{
  return self->values ? self->n : 0;
}

/* --- equations ------------------------------------------------------------ */

/* One measurement: the sum of weights times unknowns is @value. */
typedef struct Equation {
  uint32_t n;
  const uint32_t *unknowns; /* rising; NULL: all */
  const double *weights;
  double value;
} Equation;

typedef void (*Take) (ImkShwavefront *s, const Equation *e);

static void
add_to_matrix (ImkShwavefront *s, const Equation *e)
{
  for (uint32_t i = 0; i < e->n; i++) {
    uint32_t row = e->unknowns ? e->unknowns[i] : i;
    double *to = s->factors + (size_t) row * (s->band + 1) + s->band - row;

    for (uint32_t j = 0; j <= i; j++)
      to[e->unknowns ? e->unknowns[j] : j] += e->weights[i] * e->weights[j];
  }
}

static void
add_to_vector (ImkShwavefront *s, const Equation *e)
{
  for (uint32_t i = 0; i < e->n; i++)
    s->x[e->unknowns ? e->unknowns[i] : i] += e->weights[i] * e->value;
}

/* @step: to the neighbour */
static void
southwell (ImkShwavefront *s, uint32_t at, uint32_t step, const double *slopes,
    Take take)
{
  static const double weights[] = {-1, 1};
  const uint32_t both[] = {at, at + step};
  const Equation e = {2, both, weights, (slopes[at] + slopes[at + step]) / 2};

  if (s->now[at] && s->now[at + step])
    take (s, &e);
}

static void
fried (ImkShwavefront *s, uint32_t at, Take take)
{
  static const double across[] = {-0.5, 0.5, -0.5, 0.5};
  static const double down[] = {-0.5, -0.5, 0.5, 0.5};
  uint32_t first = at % s->columns + at / s->columns * s->width;
  const uint32_t corners[] = {
      first, first + 1, first + s->width, first + s->width + 1};
  const Equation x = {4, corners, across, s->sx[at]};
  const Equation y = {4, corners, down, s->sy[at]};

  if (!s->now[at])
    return;
  take (s, &x);
  take (s, &y);
}

static void
zernike (ImkShwavefront *s, uint32_t at, Take take)
{
  const Equation x = {s->n, NULL, s->gx + (size_t) at * s->n, s->sx[at]};
  const Equation y = {s->n, NULL, s->gy + (size_t) at * s->n, s->sy[at]};

  if (!s->now[at])
    return;
  take (s, &x);
  take (s, &y);
}

static void
for_all (ImkShwavefront *s, Take take)
{
  for (uint32_t i = 0; i < s->columns * s->rows; i++)
    switch (s->config.method) {
    case IMK_SHWAVEFRONT_SOUTHWELL:
      if (i % s->columns + 1 < s->columns)
        southwell (s, i, 1, s->sx, take);
      if (i / s->columns + 1 < s->rows)
        southwell (s, i, s->columns, s->sy, take);
      break;
    case IMK_SHWAVEFRONT_FRIED:
      fried (s, i, take);
      break;
    case IMK_SHWAVEFRONT_ZERNIKE:
      zernike (s, i, take);
      break;
    }
}

/* --- solution ------------------------------------------------------------- */

/* A = L L^T in place; rows have their diagonal at [band]. */
static void
factor (ImkShwavefront *s)
{
  uint32_t band = s->band;

  for (uint32_t i = 0; i < s->n; i++) {
    double *row = s->factors + (size_t) i * (band + 1) + band - i;
    uint32_t first = i > band ? i - band : 0;

    for (uint32_t j = first; j <= i; j++) {
      const double *other = s->factors + (size_t) j * (band + 1) + band - j;
      uint32_t from = j > band ? j - band : 0;
      double sum = row[j];

      for (uint32_t k = from > first ? from : first; k < j; k++)
        sum -= row[k] * other[k];
      row[j] = j < i ? sum / other[j] : sqrt (sum);
    }
  }
}

static void
solve (ImkShwavefront *s)
{
  uint32_t band = s->band;

  for (uint32_t i = 0; i < s->n; i++) {
    const double *row = s->factors + (size_t) i * (band + 1) + band - i;

    for (uint32_t k = i > band ? i - band : 0; k < i; k++)
      s->x[i] -= row[k] * s->x[k];
    s->x[i] /= row[i];
  }
  for (uint32_t i = s->n; i-- > 0;) {
    const double *row = s->factors + (size_t) i * (band + 1) + band - i;

    s->x[i] /= row[i];
    for (uint32_t k = i > band ? i - band : 0; k < i; k++)
      s->x[k] -= row[k] * s->x[i];
  }
}

static void
make_factors (ImkShwavefront *s)
{
  double largest = 0;

  memset (s->factors, 0, (size_t) s->n * (s->band + 1) * sizeof (double));
  for_all (s, add_to_matrix);
  for (uint32_t i = 0; i < s->n; i++)
    largest = fmax (largest, s->factors[(size_t) i * (s->band + 1) + s->band]);
  for (uint32_t i = 0; i < s->n; i++) {
    double *diagonal = &s->factors[(size_t) i * (s->band + 1) + s->band];
    /* slopes of high modes would hide tip and tilt */
    double size = s->values ? *diagonal : largest;

    *diagonal += size > 0 ? REGULARIZATION * size : 1;
  }
  factor (s);
  memcpy (s->valid, s->now, (size_t) s->rows * s->columns);
  s->is_factored = true;
}

/* --- the modes that a grid tells ------------------------------------------ */

/* Of ZERNIKE, with all cells. Returns: modes before the first one whose slopes
 * are nearly a sum of those before */
static uint32_t
count_modes (ImkShwavefront *s)
{
  const uint32_t n_cells = s->columns * s->rows;

  for (uint32_t i = 0; i < s->config.n_cells; i++)
    s->now[s->place[i]] = true;
  make_factors (s);
  for (uint32_t m = 0; m < s->n; m++) {
    double own = s->factors[(size_t) m * (s->band + 1) + s->band], all = 0;

    for (uint32_t i = 0; i < n_cells; i++)
      if (s->now[i])
        all += pow (s->gx[(size_t) i * s->n + m], 2) +
               pow (s->gy[(size_t) i * s->n + m], 2);
    if (!(all > 0 && own * own >= MIN_OWN_PART * MIN_OWN_PART * all))
      return m;
  }
  return s->n;
}

static void
keep_modes (ImkShwavefront *s, uint32_t n)
{
  double *const arrays[] = {s->values, s->gx, s->gy};

  for (uint32_t a = 0; a < 3; a++)
    for (uint32_t i = 1; i < s->columns * s->rows; i++)
      memmove (arrays[a] + (size_t) i * n, arrays[a] + (size_t) i * s->n,
          n * sizeof (double));
  s->n = n;
  s->band = n - 1;
  s->is_factored = false;
}

ImkStatus
imk_shwavefront_new (
    const ImkShwavefrontConfig *given, ImkShwavefront **self, ImkError *error)
{
  ImkShwavefrontConfig own;
  const ImkShwavefrontConfig *c;
  ImkShwavefront *s;
  ImkStatus status;

  imk_shwavefront_config_init (&own);
  c = imk_config_read (given, &own, "imk_shwavefront_config_init", error);
  status = c ? check_config (c, error) : IMK_ERROR_CONFIG;
  if (status != IMK_OK)
    return status;
  s = calloc (1, sizeof (*s));
  if (s) {
    s->config = *c;
    s->config.row_column = NULL;
  }
  status = s ? find_places (s, c, error) : IMK_ERROR_MEMORY;
  if (status == IMK_OK && !make_arrays (s))
    status = IMK_ERROR_MEMORY;
  if (status == IMK_ERROR_MEMORY)
    imk_error_set (error, status,
        "There is no memory for the wavefront of %u cells.", c->n_cells);
  if (status == IMK_OK && s->values)
    keep_modes (s, count_modes (s));
  if (status == IMK_OK)
    *self = s;
  else
    imk_shwavefront_free (s);
  return status;
}

/* --- a frame -------------------------------------------------------------- */

static void
take_slopes (ImkShwavefront *s, const float *slopes, const uint8_t *flags)
{
  const float *dx = slopes, *dy = slopes + s->config.n_cells;

  memset (s->now, 0, (size_t) s->rows * s->columns);
  for (uint32_t i = 0; i < s->config.n_cells; i++) {
    uint32_t at = s->place[i];

    s->now[at] =
        imk_shreconstruct_is_valid (dx[i], dy[i], flags ? flags[i] : 0);
    s->sx[at] = s->now[at] ? s->config.scale * dx[i] : 0;
    s->sy[at] = s->now[at] ? s->config.scale * dy[i] : 0;
  }
}

static void
find_points (ImkShwavefront *s)
{
  memset (s->has_point, 0, (size_t) s->width * s->height);
  for (uint32_t i = 0; i < s->columns * s->rows; i++) {
    uint32_t at = i % s->columns + i / s->columns * s->width;

    if (!s->now[i])
      continue;
    s->has_point[at] = true;
    if (s->config.method == IMK_SHWAVEFRONT_FRIED)
      s->has_point[at + 1] = s->has_point[at + s->width] =
          s->has_point[at + s->width + 1] = true;
  }
}

static double
value_at (const ImkShwavefront *s, uint32_t i)
{
  double sum = 0;

  if (!s->values)
    return s->x[i];
  for (uint32_t m = 0; m < s->n; m++)
    sum += s->values[(size_t) i * s->n + m] * s->x[m];
  return sum;
}

/* Takes the mean off, and sums up. */
static void
finish (const ImkShwavefront *s, float *out, ImkShwavefrontReport *report)
{
  uint32_t n = s->width * s->height;
  double mean = 0, squares = 0;

  *report = (ImkShwavefrontReport){.n_points = 0};
  for (uint32_t i = 0; i < n; i++) {
    double value = s->has_point[i] ? value_at (s, i) : NAN;

    out[i] = (float) value;
    if (s->has_point[i])
      mean += (value - mean) / ++report->n_points;
  }
  for (uint32_t i = 0; i < n; i++) {
    double value = out[i] - mean;

    out[i] = (float) value;
    if (!s->has_point[i])
      continue;
    squares += value * value;
    report->minimum = fmin (report->minimum, value); /* 0 is between them */
    report->maximum = fmax (report->maximum, value);
  }
  if (report->n_points)
    report->rms = sqrt (squares / report->n_points);
}

void
imk_shwavefront_process (ImkShwavefront *self, const float *slopes,
    const uint8_t *flags, float *wavefront, ImkShwavefrontReport *report)
{
  take_slopes (self, slopes, flags);
  if (!self->is_factored ||
      memcmp (self->valid, self->now, (size_t) self->rows * self->columns) != 0)
    make_factors (self);
  memset (self->x, 0, self->n * sizeof (double));
  for_all (self, add_to_vector);
  solve (self);
  find_points (self);
  finish (self, wavefront, report);
}
