/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* K = I - D_S R_S, which is symmetric, as R = P D^T, and the Cholesky factor U,
 * K + w I = U^T U, which follows the cells of S one by one. Rows 2 i and 2 i +
 * 1 are dx and dy of the cell that is out as number i. Numbers of K are made of
 * D and R each time, and rows of U come and go by substitution and rotations
 * (Golub and Van Loan, Matrix Computations, section 6.5), so rounding does not
 * add up; an inverse that follows by itself drifts away. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shreconstruct/shreconstruct-private.h"

enum { MOST_OUT = 2048, LANES = 8 };

/* w, and how K y = g is solved: y += RELAX ((K + w I)^-1 (g + w y) - y), from
 * 0. K is singular where no valid cell sees a mode, which stays 0. Of another
 * eigenvalue k the result lacks (1 - RELAX k / (k + w))^ITERATIONS: 1e-6 from
 * k = 0.25 on, 1e-3 at 0.1. Noise grows by 1 / sqrt (k), here by less than 6.
 * More would cost a loop more than a weak mode: 40 x 40 lenslets of which 20 %
 * are dark leave 0.78 rad, 0.83 with 12 iterations, 0.90 with w = 0.03, 1.2
 * with w = 0.003, and 0.88 with invalid-policy=zero. */
#define WEIGHT 0.1
#define RELAX 1.15
enum { ITERATIONS = 8 };

/* a D R b - b D R a of random a and b, relative to D R: rounding to float32
 * leaves 1e-7 times the condition of R. */
#define MOST_ASYMMETRY 1e-3

/* The part of the largest eigenvalue of D R that one below 0 can be without
 * having the wrong sign: rounding. */
#define MOST_BELOW_0 0.1

struct ImkShreconstructExclude {
  uint32_t n_cells, n_modes, most_out;
  float *d, *r;    /* [2 n_cells][n_modes]: D M, R transposed, no gain */
  uint32_t next;   /* cell to begin with, so that each has its turn */
  uint32_t n;      /* cells that are out */
  uint32_t *cells; /* [most_out]: which */
  uint8_t *is_out; /* [n_cells] */
  double *factor;  /* [2 most_out][2 most_out], of which [2 n][2 n] is U */
  double *b;       /* [3][2 most_out]: columns of K, and what is solved */
};

static double
dot (const float *a, const float *b, uint32_t n)
{
  double sums[LANES] = {0}, sum = 0;
  uint32_t i = 0;

  for (; i + LANES <= n; i += LANES)
    for (uint32_t k = 0; k < LANES; k++)
      sums[k] += (double) a[i + k] * b[i + k];
  for (; i < n; i++)
    sum += (double) a[i] * b[i];
  for (uint32_t k = 0; k < LANES; k++)
    sum += sums[k];
  return sum;
}

static const float *
row_of (const ImkShreconstructExclude *self, const float *rows, uint32_t cell,
    uint32_t axis)
{
  return rows + ((size_t) axis * self->n_cells + cell) * self->n_modes;
}

static double *
factor_row (const ImkShreconstructExclude *self, uint32_t i)
{
  return self->factor + (size_t) i * 2 * self->most_out;
}

/* --- making --------------------------------------------------------------- */

static void
fill (ImkShreconstructExclude *self, const ImkShreconstructConfig *c)
{
  for (size_t i = 0; i < 2 * (size_t) c->n_cells; i++) {
    const float *d = c->interaction + i * c->n_commands;
    float *to = self->d + i * c->n_modes;

    for (uint32_t m = 0; m < c->n_modes; m++) {
      double sum = d[m];

      if (c->modes) {
        sum = 0;
        for (uint32_t k = 0; k < c->n_commands; k++)
          sum += (double) d[k] * c->modes[(size_t) k * c->n_modes + m];
      }
      to[m] = (float) sum;
      self->r[i * c->n_modes + m] = c->matrix[m * 2 * (size_t) c->n_cells + i];
    }
  }
}

/* @vector: [2 n_cells] random signs; @at: [n_modes]: R vector, or D^T vector */
static void
project (const ImkShreconstructExclude *self, const float *rows, uint64_t seed,
    double *at)
{
  memset (at, 0, self->n_modes * sizeof (*at));
  for (size_t i = 0; i < 2 * (size_t) self->n_cells; i++) {
    double sign =
        (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 63 ? 1
                                                                          : -1;

    for (uint32_t m = 0; m < self->n_modes; m++)
      at[m] += sign * rows[i * self->n_modes + m];
  }
}

static double
product (const double *a, const double *b, uint32_t n)
{
  double sums[LANES] = {0}, sum = 0;
  uint32_t i = 0;

  for (; i + LANES <= n; i += LANES)
    for (uint32_t k = 0; k < LANES; k++)
      sums[k] += a[i + k] * b[i + k];
  for (; i < n; i++)
    sum += a[i] * b[i];
  for (uint32_t k = 0; k < LANES; k++)
    sum += sums[k];
  return sum;
}

/* Whether D R is symmetric, tried with pairs of random vectors.
 * Returns: false also without memory */
static bool
is_least_squares (const ImkShreconstructExclude *self)
{
  uint32_t n = self->n_modes;
  double *da = malloc (4 * (size_t) n * sizeof (double));
  double *ra = da + n, *db = ra + n, *rb = db + n;
  double difference = 0, size = 0;

  if (!da)
    return false;
  for (uint64_t seed = 1; seed < 9; seed += 2) {
    double ab, ba;

    project (self, self->d, seed, da);
    project (self, self->r, seed, ra);
    project (self, self->d, seed + 1, db);
    project (self, self->r, seed + 1, rb);
    ab = product (da, rb, n);
    ba = product (db, ra, n);
    difference += (ab - ba) * (ab - ba);
    size += product (da, ra, n) * product (db, rb, n);
  }
  free (da);
  return difference <= MOST_ASYMMETRY * MOST_ASYMMETRY * fabs (size);
}

/* By power iteration.
 * @v: [2 n_cells + n_modes]: scratch
 * Returns: the size of the eigenvalue of D R - @shift that is farthest from 0
 */
static double
find_largest (const ImkShreconstructExclude *self, double shift, double *v)
{
  enum { MOST_STEPS = 30 };
  size_t n_rows = 2 * (size_t) self->n_cells;
  uint32_t n = self->n_modes;
  double *modes = v + n_rows, along = 0, image = 0;

  for (size_t i = 0; i < n_rows; i++)
    v[i] = sin ((double) (i * i + 1)); /* as good as random */
  for (int step = 0; step < MOST_STEPS; step++) {
    double size = 0;

    memset (modes, 0, n * sizeof (double));
    for (size_t i = 0; i < n_rows; i++) {
      size += v[i] * v[i];
      for (uint32_t m = 0; m < n; m++)
        modes[m] += v[i] * self->r[i * n + m];
    }
    along = image = 0;
    for (size_t i = 0; i < n_rows && size > 0; i++) {
      double next = -shift * v[i];

      for (uint32_t m = 0; m < n; m++)
        next += self->d[i * n + m] * modes[m];
      along += v[i] * next / size;
      image += next * next / size;
      v[i] = next / sqrt (size);
    }
    if (image - along * along <= 1e-6 * image)
      break;
  }
  return sqrt (image);
}

/* R = k P D^T with a gain k > 1: the slopes that are not seen are those that
 * P D^T predicts, and R_S in exclude_correct () is that of P D^T. */
static ImkStatus
leave_gain_out (ImkShreconstructExclude *self, ImkError *error)
{
  size_t n_rows = 2 * (size_t) self->n_cells;
  double *scratch = malloc ((n_rows + self->n_modes) * sizeof (double));
  double largest, lowest;

  if (!scratch)
    return imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory to compare the control matrix with the interaction "
        "matrix.");
  largest = find_largest (self, 0, scratch);
  lowest = largest - find_largest (self, largest, scratch);
  free (scratch);
  if (lowest < -MOST_BELOW_0 * largest)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The control matrix has another sign than the inverse of the "
        "interaction matrix, so the loop would run away: R D has the "
        "eigenvalue %.3g, and needs 0 or more. Change the sign of one of them.",
        lowest);
  for (size_t i = 0; i < n_rows * self->n_modes && largest > 1; i++)
    self->r[i] = (float) (self->r[i] / largest);
  return IMK_OK;
}

ImkStatus
imk_shreconstruct_exclude_new (const ImkShreconstructConfig *c,
    ImkShreconstructExclude **self, ImkError *error)
{
  ImkShreconstructExclude *e = calloc (1, sizeof (*e));
  size_t n_rows = 2 * (size_t) c->n_cells, room;
  ImkStatus status = IMK_OK;

  if (e) {
    e->n_cells = c->n_cells;
    e->n_modes = c->n_modes;
    e->most_out = c->n_cells / 2 < MOST_OUT ? c->n_cells / 2 : MOST_OUT;
    room = 2 * (size_t) e->most_out + 1;
    e->d = malloc (n_rows * c->n_modes * sizeof (float));
    e->r = malloc (n_rows * c->n_modes * sizeof (float));
    e->cells = malloc (room * sizeof (*e->cells));
    e->is_out = calloc (c->n_cells, 1);
    e->factor = malloc (room * room * sizeof (double));
    e->b = malloc (3 * room * sizeof (double));
  }
  if (!e || !e->d || !e->r || !e->cells || !e->is_out || !e->factor || !e->b)
    status = imk_error_set (error, IMK_ERROR_MEMORY,
        "There is no memory to exclude cells of %u from the fit.", c->n_cells);
  if (status == IMK_OK) {
    fill (e, c);
    if (!is_least_squares (e))
      status = imk_error_set (error, IMK_ERROR_CONFIG,
          "The control matrix is no least-squares inverse of the interaction "
          "matrix, so a cell cannot be excluded exactly. Invert this "
          "interaction matrix, or use invalid-policy zero or hold.");
  }
  if (status == IMK_OK)
    status = leave_gain_out (e, error);
  if (status == IMK_OK)
    *self = e;
  else
    imk_shreconstruct_exclude_free (e);
  return status;
}

void
imk_shreconstruct_exclude_free (ImkShreconstructExclude *self)
{
  if (!self)
    return;
  free (self->d);
  free (self->r);
  free (self->cells);
  free (self->is_out);
  free (self->factor);
  free (self->b);
  free (self);
}

/* --- cells that go and return --------------------------------------------- */

/* y of U^T y = @b, in its place. */
static void
solve_lower (const ImkShreconstructExclude *self, double *b)
{
  uint32_t n = 2 * self->n;

  for (uint32_t k = 0; k < n; k++) {
    const double *row = factor_row (self, k);

    b[k] /= row[k];
    for (uint32_t j = k + 1; j < n; j++)
      b[j] -= row[j] * b[k];
  }
}

/* x of U x = @b, in its place. */
static void
solve_upper (const ImkShreconstructExclude *self, double *b)
{
  uint32_t n = 2 * self->n;

  for (uint32_t k = n; k-- > 0;) {
    const double *row = factor_row (self, k);

    b[k] = (b[k] - product (row + k + 1, b + k + 1, n - k - 1)) / row[k];
  }
}

/* Columns of U for @cell in b. @k: what is left of K of the cell itself */
static void
make_columns (ImkShreconstructExclude *self, uint32_t cell, double k[2][2])
{
  uint32_t n = 2 * self->n, stride = 2 * self->most_out;

  for (uint32_t axis = 0; axis < 2; axis++) {
    const float *r = row_of (self, self->r, cell, axis);
    double *b = self->b + (size_t) axis * stride;

    for (uint32_t i = 0; i < n; i++)
      b[i] = -dot (
          row_of (self, self->d, self->cells[i / 2], i % 2), r, self->n_modes);
    solve_lower (self, b);
    for (uint32_t i = 0; i < 2; i++)
      k[i][axis] = (i == axis) * (1 + WEIGHT) -
                   dot (row_of (self, self->d, cell, i), r, self->n_modes);
  }
  for (uint32_t i = 0; i < 2; i++)
    for (uint32_t j = 0; j < 2; j++)
      k[i][j] -= product (self->b + i * stride, self->b + j * stride, n);
}

/* Borders U by @cell. K of an R that is not quite symmetric can have an
 * eigenvalue below 0: a cell that leaves less than w then counts as 0. */
static void
take_out (ImkShreconstructExclude *self, uint32_t cell)
{
  uint32_t n = 2 * self->n, stride = 2 * self->most_out;
  double k[2][2], beside, determinant, first;

  if (self->n == self->most_out)
    return;
  make_columns (self, cell, k);
  beside = (k[0][1] + k[1][0]) / 2;
  determinant = k[0][0] * k[1][1] - beside * beside;
  /* rounding can leave less than nothing of both */
  if (!(k[0][0] > 0 && k[1][1] > 0 &&
          determinant > WEIGHT / 4 * (k[0][0] + k[1][1])))
    return;
  for (uint32_t i = 0; i < n; i++) {
    factor_row (self, i)[n] = self->b[i];
    factor_row (self, i)[n + 1] = self->b[stride + i];
  }
  first = sqrt (k[0][0]);
  factor_row (self, n)[n] = first;
  factor_row (self, n)[n + 1] = beside / first;
  factor_row (self, n + 1)[n + 1] = sqrt (determinant) / first;
  self->is_out[cell] = true;
  self->cells[self->n++] = cell;
}

/* Row and column @i of K go: rotations take the rest of row @i of U into the
 * rows below, which move up. @n: rows */
static void
remove_row (ImkShreconstructExclude *self, uint32_t i, uint32_t n)
{
  double *rest = self->b;

  for (uint32_t k = 0; k < i; k++)
    memmove (factor_row (self, k) + i, factor_row (self, k) + i + 1,
        (n - i - 1) * sizeof (double));
  memcpy (rest, factor_row (self, i), n * sizeof (double));
  for (uint32_t k = i + 1; k < n; k++) {
    const double *from = factor_row (self, k);
    double *to = factor_row (self, k - 1);
    double length = hypot (from[k], rest[k]);
    double c = from[k] / length, s = rest[k] / length;

    to[k - 1] = length;
    for (uint32_t j = k + 1; j < n; j++) {
      double value = from[j];

      to[j - 1] = c * value + s * rest[j];
      rest[j] = c * rest[j] - s * value;
    }
  }
}

/* Takes the cell that is out as number @i back. */
static void
take_back (ImkShreconstructExclude *self, uint32_t i)
{
  remove_row (self, 2 * i, 2 * self->n);
  remove_row (self, 2 * i, 2 * self->n - 1);
  self->is_out[self->cells[i]] = false;
  self->n--;
  memmove (self->cells + i, self->cells + i + 1,
      (self->n - i) * sizeof (*self->cells));
}

static void
take_out_invalid (
    ImkShreconstructExclude *self, const uint8_t *valid, uint32_t most)
{
  uint32_t first = self->next;

  for (uint32_t i = 0; i < self->n_cells && most > 0; i++) {
    uint32_t cell = (first + i) % self->n_cells;

    if (valid[cell] || self->is_out[cell])
      continue;
    take_out (self, cell);
    most--; /* an attempt in vain takes as long */
    self->next = (cell + 1) % self->n_cells;
  }
}

/* Returns: how many of @most are left */
static uint32_t
take_back_valid (
    ImkShreconstructExclude *self, const uint8_t *valid, uint32_t most)
{
  for (uint32_t i = self->n; i-- > 0 && most > 0;)
    if (valid[self->cells[i]]) {
      take_back (self, i);
      most--;
    }
  return most;
}

/* Valid cells come back first, so that nothing keeps them out. */
uint32_t
imk_shreconstruct_exclude_follow (
    ImkShreconstructExclude *self, uint8_t *valid, uint32_t most)
{
  most = take_back_valid (self, valid, most);
  take_out_invalid (self, valid, most);
  for (uint32_t i = 0; i < self->n; i++)
    valid[self->cells[i]] = false;
  return self->n;
}

void
imk_shreconstruct_exclude_correct (
    ImkShreconstructExclude *self, float *estimate)
{
  uint32_t n = 2 * self->n;
  double *b = self->b, *y = b + 2 * self->most_out;
  double *g = y + 2 * self->most_out;

  for (uint32_t i = 0; i < n; i++)
    g[i] = dot (row_of (self, self->d, self->cells[i / 2], i % 2), estimate,
        self->n_modes);
  memset (y, 0, n * sizeof (*y));
  for (int k = 0; k < ITERATIONS; k++) {
    for (uint32_t i = 0; i < n; i++)
      b[i] = g[i] + WEIGHT * y[i];
    solve_lower (self, b);
    solve_upper (self, b);
    for (uint32_t i = 0; i < n; i++)
      y[i] += RELAX * (b[i] - y[i]);
  }
  for (uint32_t i = 0; i < n; i++) {
    const float *r = row_of (self, self->r, self->cells[i / 2], i % 2);
    float slope = (float) y[i];

    for (uint32_t m = 0; m < self->n_modes; m++)
      estimate[m] += slope * r[m];
  }
}

void
imk_shreconstruct_exclude_take (
    ImkShreconstructExclude *self, const ImkShreconstructExclude *from)
{
  for (uint32_t i = 0; i < from->n; i++)
    take_out (self, from->cells[i]);
}
