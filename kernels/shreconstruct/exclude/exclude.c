/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* K = I - D_S R_S, which is symmetric, as R without its gain is P D^T, and the
 * Cholesky factor U, K + w I = U^T U, which follows the cells of S one by one.
 * Rows 2 i and 2 i + 1 are dx and dy of the cell that is out as number i.
 * Numbers of K are made of D and R each time, and rows of U come and go by
 * substitution and rotations (Golub and Van Loan, Matrix Computations,
 * section 6.5), so rounding does not add up; an inverse that follows by itself
 * drifts away. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "imk/parallel.h"
#include "shreconstruct/cpu/loops.h"
#include "shreconstruct/dot.h"
#include "shreconstruct/exclude/scale.h"
#include "shreconstruct/shreconstruct-private.h"

enum { MAX_OUT = 2048 };

/* w, and how K y = g is solved: y += RELAXATION ((K + w I)^-1 (g + w y) - y),
 * from 0. K is singular where no valid cell sees a mode, which stays 0. Of
 * another eigenvalue k the result lacks (1 - RELAXATION k / (k +
 * w))^N_ITERATIONS: 1e-6 from k = 0.25 on, 1e-3 at 0.1. Noise grows by 1 / sqrt
 * (k), here by less than 6. A smaller w or more iterations lack less and let
 * more noise in, which costs a loop more than a weak mode. */
#define TIKHONOV_WEIGHT 0.1
#define RELAXATION 1.15
enum { N_ITERATIONS = 8 };

struct ImkShreconstructExclude {
  uint32_t n_cells, n_modes, max_out;
  float *d, *r;    /* [2 n_cells][n_modes]: D M, R transposed, no gain */
  uint32_t next;   /* cell to begin with, so that each has its turn */
  uint32_t n;      /* cells that are out */
  uint32_t *cells; /* [max_out]: which */
  uint8_t *is_out, *is_used; /* [n_cells] */
  double *factor; /* [2 max_out][2 max_out], of which [2 n][2 n] is U */
  double *b;      /* [3][2 max_out]: columns of K, and what is solved */
  ImkError doubt; /* of k; without a message if there is none */
};

IMK_SHRECONSTRUCT_DOT (dot, float, float, double)
IMK_SHRECONSTRUCT_DOT (product, double, double, double)

static const float *
row_of (const ImkShreconstructExclude *self, const float *rows, uint32_t cell,
    uint32_t axis)
{
  return rows + ((size_t) axis * self->n_cells + cell) * self->n_modes;
}

static double *
factor_row (const ImkShreconstructExclude *self, uint32_t i)
{
  return self->factor + (size_t) i * 2 * self->max_out;
}

static ImkStatus
no_memory (const ImkShreconstructConfig *c, ImkError *error)
{
  return imk_error_set (error, IMK_ERROR_MEMORY,
      "There is no memory to exclude cells of %u from the fit.", c->n_cells);
}

/* --- making --------------------------------------------------------------- */

/* D M, a tile of modes at a time. */
typedef struct Product {
  const ImkShreconstructMatrix *modes; /* M transposed */
  const float *d;                      /* [n_rows][n_commands] */
  float *to;                           /* [n_rows][n_modes] */
  size_t n_rows;
} Product;

static void
multiply_modes (void *data, uint32_t first, uint32_t end)
{
  enum { ROWS = IMK_SHRECONSTRUCT_TILE_ROWS };
  const Product *p = data;
  const uint32_t n_modes = p->modes->n_rows, n = p->modes->n_columns;
  float product[ROWS];

  for (uint32_t tile = first; tile < end; tile++)
    for (size_t i = 0; i < p->n_rows; i++) {
      const uint32_t mode = tile * ROWS;
      const uint32_t n_left = n_modes - mode < ROWS ? n_modes - mode : ROWS;

      p->modes->loops->multiply (
          p->modes->tiles + (size_t) mode * n, p->d + i * n, n, product);
      memcpy (p->to + i * n_modes + mode, product, n_left * sizeof (float));
    }
}

/* @to: [@n_columns][@n_rows] */
static void
transpose (const float *from, size_t n_rows, size_t n_columns, float *to)
{
  enum { BLOCK = 32 };

  for (size_t row = 0; row < n_rows; row += BLOCK)
    for (size_t i = 0; i < n_columns; i++)
      for (size_t k = row; k < n_rows && k < row + BLOCK; k++)
        to[i * n_rows + k] = from[k * n_columns + i];
}

static ImkStatus
multiply_by_modes (ImkShreconstructExclude *self,
    const ImkShreconstructConfig *c, ImkError *error)
{
  const size_t n_rows = 2 * (size_t) c->n_cells;
  const size_t n = (size_t) c->n_commands * c->n_modes;
  ImkShreconstructMatrix modes = {.tiles = NULL};
  float *turned;
  ImkStatus status;

  turned = malloc (n * sizeof (*turned));
  if (!turned)
    return no_memory (c, error);
  transpose (c->modes, c->n_commands, c->n_modes, turned);
  status = imk_shreconstruct_matrix_init (
      &modes, turned, c->n_modes, c->n_commands, error);
  free (turned);
  if (status == IMK_OK) {
    Product p = {&modes, c->interaction, self->d, n_rows};

    imk_parallel_for (c->n_threads,
        (uint32_t) (imk_shreconstruct_room (c->n_modes) /
                    IMK_SHRECONSTRUCT_TILE_ROWS),
        1, multiply_modes, &p);
  }
  imk_shreconstruct_matrix_clear (&modes);
  return status;
}

static bool
is_zero (const float *row, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    if (row[i] != 0)
      return false;
  return true;
}

/* A cell that D or R has no numbers for changes no command. */
static void
find_used (ImkShreconstructExclude *self)
{
  const uint32_t n = self->n_modes;

  for (uint32_t cell = 0; cell < self->n_cells; cell++)
    self->is_used[cell] = !(is_zero (row_of (self, self->d, cell, 0), n) &&
                              is_zero (row_of (self, self->d, cell, 1), n)) &&
                          !(is_zero (row_of (self, self->r, cell, 0), n) &&
                              is_zero (row_of (self, self->r, cell, 1), n));
}

/* R = k P D^T: the slopes that are not seen are those that P D^T predicts, and
 * R_S in exclude_correct () is that of P D^T. With as many modes as commands,
 * the shape does not tell which of them D is of. */
static ImkStatus
fill (ImkShreconstructExclude *self, const ImkShreconstructConfig *c,
    ImkError *error)
{
  const size_t n_rows = 2 * (size_t) c->n_cells;
  const size_t size = n_rows * c->n_modes * sizeof (float);
  ImkShreconstructPair pair = {
      c, c->interaction_is_modal, self->d, self->r, n_rows, c->n_modes};
  double scale;
  ImkStatus status = IMK_OK;

  transpose (c->matrix, c->n_modes, n_rows, self->r);
  if (c->modes && !c->interaction_is_modal)
    status = multiply_by_modes (self, c, error);
  else
    memcpy (self->d, c->interaction, size);
  if (status == IMK_OK)
    status = imk_shreconstruct_find_scale (&pair, &scale, &self->doubt, error);
  if (status == IMK_ERROR_CONFIG && c->modes && c->n_modes == c->n_commands) {
    memcpy (self->d, c->interaction, size);
    pair.is_modal = true;
    status = imk_shreconstruct_find_scale (&pair, &scale, &self->doubt, NULL);
  }
  if (status != IMK_OK)
    return status;
  find_used (self);
  for (size_t i = 0; i < n_rows * c->n_modes; i++)
    self->r[i] = (float) (self->r[i] / scale);
  return IMK_OK;
}

ImkStatus
imk_shreconstruct_exclude_new (const ImkShreconstructConfig *c,
    ImkShreconstructExclude **self, ImkError *error)
{
  ImkShreconstructExclude *e = calloc (1, sizeof (*e));
  size_t n_rows = 2 * (size_t) c->n_cells, room;
  ImkStatus status;

  if (e) {
    e->n_cells = c->n_cells;
    e->n_modes = c->n_modes;
    e->max_out = c->n_cells / 2 < MAX_OUT ? c->n_cells / 2 : MAX_OUT;
    room = 2 * (size_t) e->max_out + 1;
    e->d = malloc (n_rows * c->n_modes * sizeof (float));
    e->r = malloc (n_rows * c->n_modes * sizeof (float));
    e->cells = malloc (room * sizeof (*e->cells));
    e->is_out = calloc (c->n_cells, 1);
    e->is_used = calloc (c->n_cells, 1);
    e->factor = malloc (room * room * sizeof (double));
    e->b = malloc (3 * room * sizeof (double));
  }
  status = e && e->d && e->r && e->cells && e->is_out && e->is_used &&
                   e->factor && e->b
               ? fill (e, c, error)
               : no_memory (c, error);
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
  free (self->is_used);
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
  uint32_t n = 2 * self->n, stride = 2 * self->max_out;

  for (uint32_t axis = 0; axis < 2; axis++) {
    const float *r = row_of (self, self->r, cell, axis);
    double *b = self->b + (size_t) axis * stride;

    for (uint32_t i = 0; i < n; i++)
      b[i] = -dot (
          row_of (self, self->d, self->cells[i / 2], i % 2), r, self->n_modes);
    solve_lower (self, b);
    for (uint32_t i = 0; i < 2; i++)
      k[i][axis] = (i == axis) * (1 + TIKHONOV_WEIGHT) -
                   dot (row_of (self, self->d, cell, i), r, self->n_modes);
  }
  for (uint32_t i = 0; i < 2; i++)
    for (uint32_t j = 0; j < 2; j++)
      k[i][j] -= product (self->b + i * stride, self->b + j * stride, n);
}

/* Borders U by @cell. No eigenvalue of K + w I is far below w, as none of D R
 * is above 1. */
static void
take_out (ImkShreconstructExclude *self, uint32_t cell)
{
  uint32_t n = 2 * self->n, stride = 2 * self->max_out;
  double k[2][2], beside, determinant, first;

  if (self->n == self->max_out)
    return;
  make_columns (self, cell, k);
  beside = (k[0][1] + k[1][0]) / 2;
  determinant = k[0][0] * k[1][1] - beside * beside;
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
    ImkShreconstructExclude *self, const uint8_t *valid, uint32_t max_changes)
{
  uint32_t first = self->next;

  for (uint32_t i = 0; i < self->n_cells && max_changes > 0; i++) {
    uint32_t cell = (first + i) % self->n_cells;

    if (valid[cell] || self->is_out[cell] || !self->is_used[cell])
      continue;
    take_out (self, cell);
    max_changes--;
    self->next = (cell + 1) % self->n_cells;
  }
}

/* Returns: how many of @max_changes are left */
static uint32_t
take_back_valid (
    ImkShreconstructExclude *self, const uint8_t *valid, uint32_t max_changes)
{
  for (uint32_t i = self->n; i-- > 0 && max_changes > 0;)
    if (valid[self->cells[i]]) {
      take_back (self, i);
      max_changes--;
    }
  return max_changes;
}

/* Valid cells come back first, so that nothing keeps them out. */
uint32_t
imk_shreconstruct_exclude_follow (
    ImkShreconstructExclude *self, uint8_t *valid, uint32_t max_changes)
{
  max_changes = take_back_valid (self, valid, max_changes);
  take_out_invalid (self, valid, max_changes);
  for (uint32_t i = 0; i < self->n; i++)
    valid[self->cells[i]] = false;
  return self->n;
}

void
imk_shreconstruct_exclude_correct (
    ImkShreconstructExclude *self, float *estimate)
{
  uint32_t n = 2 * self->n;
  double *b = self->b, *y = b + 2 * self->max_out;
  double *g = y + 2 * self->max_out;

  for (uint32_t i = 0; i < n; i++)
    g[i] = dot (row_of (self, self->d, self->cells[i / 2], i % 2), estimate,
        self->n_modes);
  memset (y, 0, n * sizeof (*y));
  for (int k = 0; k < N_ITERATIONS; k++) {
    for (uint32_t i = 0; i < n; i++)
      b[i] = g[i] + TIKHONOV_WEIGHT * y[i];
    solve_lower (self, b);
    solve_upper (self, b);
    for (uint32_t i = 0; i < n; i++)
      y[i] += RELAXATION * (b[i] - y[i]);
  }
  for (uint32_t i = 0; i < n; i++) {
    const float *r = row_of (self, self->r, self->cells[i / 2], i % 2);
    float slope = (float) y[i];

    for (uint32_t m = 0; m < self->n_modes; m++)
      estimate[m] += slope * r[m];
  }
}

const char *
imk_shreconstruct_exclude_doubt (const ImkShreconstructExclude *self)
{
  return self->doubt.message[0] ? self->doubt.message : NULL;
}
