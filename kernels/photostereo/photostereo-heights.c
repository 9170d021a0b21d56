/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A least-squares surface of mean slopes: sum over neighbouring blocks a, b of
 * (z_b - z_a - d_ab)^2 becomes least, with d_ab the mean of their slopes times
 * their distance. Its normal equations are solved by conjugate gradients
 * (Hestenes and Stiefel 1952). */
#include "photostereo/photostereo-heights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "photostereo/photostereo-backend.h"

enum {
  SIDE = 64, /* blocks along the longer side, at most */
  MOST_ROUNDS = 6 * SIDE,
};

#define STEEPEST 5.0   /* of a slope: the rim of a ball has no limit */
#define TOLERANCE 1e-3 /* of the residual */

/* Of the slopes and the solver, each [rows + 1][columns]; the last row is 0.
 * RIGHT and BELOW are 1 where a block and its neighbour there are known. */
enum {
  SLOPE_X,
  SLOPE_Y,
  COUNT,
  RIGHT,
  BELOW,
  HEIGHT,
  REST,
  SEARCH,
  PRODUCT,
  N_WORK
};

bool
imk_photostereo_heights_init (
    ImkPhotostereoHeights *self, uint32_t width, uint32_t height)
{
  uint32_t longer = width > height ? width : height;
  size_t n;

  *self = (ImkPhotostereoHeights){
      .width = width, .height = height, .block = imk_div_up (longer, SIDE)};
  self->columns = imk_div_up (width, self->block);
  self->rows = imk_div_up (height, self->block);
  self->step = self->block < 16 ? imk_div_up (self->block, 2) : 8;
  n = (size_t) self->columns * self->rows;
  self->z = calloc (n, sizeof (*self->z));
  self->work =
      calloc (N_WORK * ((size_t) n + self->columns), sizeof (*self->work));
  self->known = calloc (n, 1);
  return self->z && self->work && self->known;
}

void
imk_photostereo_heights_clear (ImkPhotostereoHeights *self)
{
  free (self->z);
  free (self->work);
  free (self->known);
  *self = (ImkPhotostereoHeights){0};
}

void
imk_photostereo_heights_reset (ImkPhotostereoHeights *self)
{
  memset (self->z, 0, (size_t) self->columns * self->rows * sizeof (*self->z));
}

static size_t
work_size (const ImkPhotostereoHeights *self)
{
  return (size_t) self->columns * (self->rows + 1);
}

static double *
work_of (const ImkPhotostereoHeights *self, int which)
{
  return self->work + (size_t) which * work_size (self);
}

static double
limited (double slope)
{
  return fmax (-STEEPEST, fmin (slope, STEEPEST));
}

/* Mean slopes, in mm from a block to the next. */
static void
fill_slopes (ImkPhotostereoHeights *self, const float *normals,
    const ImkPhotostereoPlan *p)
{
  double lean_x = p->camera_z > 0 ? p->pitch_x / p->camera_z : 0;
  double lean_y = p->camera_z > 0 ? p->pitch_y / p->camera_z : 0;
  double middle_x = (self->width - 1) / 2.0,
         middle_y = (self->height - 1) / 2.0;
  size_t n = (size_t) self->columns * self->rows;
  double *sx = work_of (self, SLOPE_X), *sy = work_of (self, SLOPE_Y);
  double *count = work_of (self, COUNT);

  memset (self->work, 0, N_WORK * work_size (self) * sizeof (*self->work));
  for (uint32_t y = 0; y < self->height; y += self->step)
    for (uint32_t x = 0; x < self->width; x++, normals += 3) {
      size_t at = (size_t) (y / self->block) * self->columns + x / self->block;

      double towards = normals[2] - normals[0] * lean_x * (x - middle_x) -
                       normals[1] * lean_y * (y - middle_y);

      if (!(towards > 0))
        continue;
      sx[at] += limited (-normals[0] / towards);
      sy[at] += limited (-normals[1] / towards);
      count[at]++;
    }
  for (size_t i = 0; i < n; i++) {
    self->known[i] = count[i] > 0;
    sx[i] *= self->known[i] ? p->pitch_x * self->block / count[i] : 0;
    sy[i] *= self->known[i] ? p->pitch_y * self->block / count[i] : 0;
  }
}

static void
connect (ImkPhotostereoHeights *self)
{
  double *right = work_of (self, RIGHT), *below = work_of (self, BELOW);
  size_t n = (size_t) self->columns * self->rows;

  for (size_t i = 0; i < n; i++) {
    right[i] = (i + 1) % self->columns && self->known[i] && self->known[i + 1];
    below[i] = i + self->columns < n && self->known[i] &&
               self->known[i + self->columns];
  }
}

/* @out: the normal matrix times @in */
static void
multiply (const ImkPhotostereoHeights *self, const double *in, double *out)
{
  const double *right = work_of (self, RIGHT), *below = work_of (self, BELOW);
  size_t columns = self->columns, n = columns * self->rows;

  memset (out, 0, n * sizeof (*out));
  for (size_t i = 0; i < n; i++) {
    double along = right[i] * (in[i + 1] - in[i]);
    double down = below[i] * (in[i + columns] - in[i]);

    out[i] -= along + down;
    out[i + 1] += along;
    out[i + columns] += down;
  }
}

static double
dot (const double *a, const double *b, size_t n)
{
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += a[i] * b[i];
  return sum;
}

static void
solve (ImkPhotostereoHeights *self)
{
  size_t columns = self->columns, n = columns * self->rows;
  const double *sx = work_of (self, SLOPE_X), *sy = work_of (self, SLOPE_Y);
  const double *right = work_of (self, RIGHT), *below = work_of (self, BELOW);
  double *z = work_of (self, HEIGHT), *rest = work_of (self, REST);
  double *search = work_of (self, SEARCH), *product = work_of (self, PRODUCT);
  double before, least;

  for (size_t i = 0; i < n; i++) {
    double along = right[i] * (sx[i] + sx[i + 1]) / 2;
    double down = below[i] * (sy[i] + sy[i + columns]) / 2;

    rest[i] -= along + down;
    rest[i + 1] += along;
    rest[i + columns] += down;
  }
  memcpy (search, rest, n * sizeof (*rest));
  before = dot (rest, rest, n);
  least = TOLERANCE * TOLERANCE * before;
  for (int round = 0; round < MOST_ROUNDS && before > least; round++) {
    double along, now;

    multiply (self, search, product);
    along = before / dot (search, product, n);
    for (size_t i = 0; i < n; i++) {
      z[i] += along * search[i];
      rest[i] -= along * product[i];
    }
    now = dot (rest, rest, n);
    for (size_t i = 0; i < n; i++)
      search[i] = rest[i] + now / before * search[i];
    before = now;
  }
}

/* Marks what is connected with block @first, 2, and puts it on the plane. The
 * search has the list of blocks to visit. */
static void
settle (ImkPhotostereoHeights *self, size_t first, const ImkPhotostereoPlan *p)
{
  const double d = p->camera_z;
  double *z = work_of (self, HEIGHT), *list = work_of (self, SEARCH);
  double sum = 0, least = INFINITY, zero;
  size_t n = 0;

  list[n++] = (double) first;
  self->known[first] = 2;
  for (size_t i = 0; i < n; i++) {
    size_t block = (size_t) list[i], column = block % self->columns;
    size_t around[] = {
        block - 1, block + 1, block - self->columns, block + self->columns};
    bool inside[] = {column > 0, column + 1 < self->columns,
        block >= self->columns, block / self->columns + 1 < self->rows};

    sum += d > 0 ? exp (-z[block] / d) : z[block];
    least = fmin (least, z[block]);
    for (int k = 0; k < 4; k++)
      if (inside[k] && self->known[around[k]] == 1) {
        self->known[around[k]] = 2;
        list[n++] = (double) around[k];
      }
  }
  zero = p->plane_at == IMK_PHOTOSTEREO_PLANE_AT_LOWEST ? least
         : d > 0 ? -d * log (sum / (double) n) /* the mean height is 0 */
                 : sum / (double) n;
  for (size_t i = 0; i < n; i++) {
    double q = z[(size_t) list[i]] - zero;

    self->z[(size_t) list[i]] = (float) (d > 0 ? -d * expm1 (-q / d) : q);
  }
}

/* A block without normals gets the mean of those around it, so that what is
 * interpolated at a rim has no step. */
static void
fill_rim (ImkPhotostereoHeights *self)
{
  for (uint32_t row = 0; row < self->rows; row++)
    for (uint32_t column = 0; column < self->columns; column++) {
      float sum = 0, n = 0;

      if (self->known[(size_t) row * self->columns + column])
        continue;
      for (uint32_t y = row ? row - 1 : 0; y <= row + 1 && y < self->rows; y++)
        for (uint32_t x = column ? column - 1 : 0;
             x <= column + 1 && x < self->columns; x++)
          if (self->known[(size_t) y * self->columns + x]) {
            sum += self->z[(size_t) y * self->columns + x];
            n++;
          }
      self->z[(size_t) row * self->columns + column] = n > 0 ? sum / n : 0;
    }
}

void
imk_photostereo_heights_integrate (ImkPhotostereoHeights *self,
    const float *normals, const ImkPhotostereoPlan *plan)
{
  imk_photostereo_heights_reset (self);
  fill_slopes (self, normals, plan);
  connect (self);
  solve (self);
  for (size_t i = 0; i < (size_t) self->columns * self->rows; i++)
    if (self->known[i] == 1)
      settle (self, i, plan);
  fill_rim (self);
}

void
imk_photostereo_heights_of (const ImkPhotostereoHeights *self, uint32_t x,
    uint32_t y, uint32_t n, float *to)
{
  const float scale = 1 / (float) self->block;
  float v = ((float) y + 0.5f) * scale - 0.5f;
  uint32_t top = v > 0 ? (uint32_t) v : 0;
  uint32_t bottom = top + 1 < self->rows ? top + 1 : top;
  const float *above = self->z + (size_t) top * self->columns;
  const float *below = self->z + (size_t) bottom * self->columns;

  v = fmaxf (v - (float) top, 0);
  for (uint32_t i = 0; i < n; i++) {
    float u = ((float) (x + i) + 0.5f) * scale - 0.5f;
    uint32_t left = u > 0 ? (uint32_t) u : 0;
    uint32_t right = left + 1 < self->columns ? left + 1 : left;
    float a = above[left] + v * (below[left] - above[left]);
    float b = above[right] + v * (below[right] - above[right]);

    u -= (float) left;
    to[i] = a + (u > 0 ? u : 0) * (b - a);
  }
}
