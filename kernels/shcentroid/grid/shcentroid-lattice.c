/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shcentroid/grid/shcentroid-lattice.h"

#include <stdlib.h>
#include <string.h>

/* Sites to which both directions are fitted freely: fewer would stretch the
 * lattice to any chance. */
enum { LEAST_FREE = 16 };

static const int directions[6][2] = {
    {1, 0}, {0, 1}, {-1, 0}, {0, -1}, {-1, 1}, {1, -1}};

/* ------------------------------------------------------------------------
 * The nearest peak. */

static uint32_t
bin_of (double at, const Bins *b, uint32_t n)
{
  double bin = floor (at / b->size);

  return bin < 0 ? 0 : bin >= n ? n - 1 : (uint32_t) bin;
}

/* @size: the largest distance that will be asked for, at least 0.5 */
static void
fill_bins (Finder *f, const ImkPeak *peaks, uint32_t n, double size)
{
  Bins *b = &f->bins;

  b->size = size;
  b->peaks = peaks;
  b->columns = (uint32_t) (f->peaks.width / size) + 1;
  b->rows = (uint32_t) (f->peaks.height / size) + 1;
  memset (b->heads, 0xff, (size_t) b->columns * b->rows * sizeof (*b->heads));
  for (uint32_t k = n; k-- > 0;) { /* the strongest ends up first */
    size_t bin = (size_t) bin_of (peaks[k].y, b, b->rows) * b->columns +
                 bin_of (peaks[k].x, b, b->columns);

    b->next[k] = b->heads[bin];
    b->heads[bin] = (int32_t) k;
  }
}

/* Returns: the nearest peak within the size of a bin, -1 for none */
static int32_t
nearest (const Bins *b, Point to)
{
  uint32_t column = bin_of (creal (to), b, b->columns);
  uint32_t row = bin_of (cimag (to), b, b->rows);
  double best = b->size * b->size;
  int32_t found = -1;

  for (uint32_t y = row ? row - 1 : 0; y <= row + 1 && y < b->rows; y++)
    for (uint32_t x = column ? column - 1 : 0;
         x <= column + 1 && x < b->columns; x++)
      for (int32_t k = b->heads[(size_t) y * b->columns + x]; k >= 0;
           k = b->next[k]) {
        double distance = norm2 (peak_at (&b->peaks[k]) - to);

        if (distance < best) {
          best = distance;
          found = k;
        }
      }
  return found;
}

/* ------------------------------------------------------------------------
 * From peaks to points of a lattice. */

/* Least squares over the sites: pitch, rotation and origin. */
static void
fit (const Site *sites, uint32_t n, const Point *places, Lattice *l)
{
  Point mean_p = 0, mean_q = 0, up = 0;
  double down = 0;

  for (uint32_t k = 0; k < n; k++) {
    mean_p += places[k] / n;
    mean_q += (sites[k].i + sites[k].j * l->turn) / n;
  }
  for (uint32_t k = 0; k < n; k++) {
    Point q = sites[k].i + sites[k].j * l->turn - mean_q;

    up += conj (q) * (places[k] - mean_p);
    down += norm2 (q);
  }
  if (down > 0)
    l->step = up / down;
  l->origin = mean_p - l->step * mean_q;
}

void
imk_lattice_fit_freely (
    const Site *sites, uint32_t n, const Point *places, Lattice *l)
{
  double ii = 0, ij = 0, jj = 0, mean_i = 0, mean_j = 0, determinant;
  Point mean = 0, ip = 0, jp = 0, a, b;

  for (uint32_t k = 0; k < n; k++) {
    mean_i += (double) sites[k].i / n;
    mean_j += (double) sites[k].j / n;
    mean += places[k] / n;
  }
  for (uint32_t k = 0; k < n; k++) {
    double i = sites[k].i - mean_i, j = sites[k].j - mean_j;

    ii += i * i;
    ij += i * j;
    jj += j * j;
    ip += i * (places[k] - mean);
    jp += j * (places[k] - mean);
  }
  determinant = ii * jj - ij * ij;
  if (!(determinant > 1e-9 * ii * jj))
    return;
  a = (jj * ip - ij * jp) / determinant;
  b = (ii * jp - ij * ip) / determinant;
  l->step = a;
  l->turn = b / a;
  l->origin = mean - a * mean_i - b * mean_j;
}

static void
fit_peaks (Finder *f, const ImkPeak *peaks, Lattice *l)
{
  for (uint32_t k = 0; k < f->n_sites; k++)
    f->votes[k] = peak_at (&peaks[f->sites[k].peak]);
  if (f->n_sites < LEAST_FREE)
    fit (f->sites, f->n_sites, f->votes, l);
  else
    imk_lattice_fit_freely (f->sites, f->n_sites, f->votes, l);
}

/* The steps from a peak to its neighbours follow the peaks, so that they
 * stay on the lattice however far it is distorted. */
static void
grow (Finder *f, const ImkPeak *peaks, uint32_t seed, const Lattice *l)
{
  int n_directions = is_hexagonal (l) ? 6 : 4;

  f->sites[0] = (Site){0, 0, seed};
  f->n_sites = 1;
  f->taken[seed] = true;
  for (uint32_t k = 0; k < f->n_sites; k++)
    for (int d = 0; d < n_directions; d++) {
      Site site = f->sites[k];
      int32_t found = nearest (&f->bins,
          peak_at (&peaks[site.peak]) +
              l->step * (directions[d][0] + directions[d][1] * l->turn));

      if (found < 0 || f->taken[found])
        continue;
      f->taken[found] = true;
      f->sites[f->n_sites++] = (Site){site.i + directions[d][0],
          site.j + directions[d][1], (uint32_t) found};
    }
}

int
imk_lattice_compare_sites (const void *a, const void *b)
{
  const Site *s = a, *t = b;

  if (s->j != t->j)
    return s->j < t->j ? -1 : 1;
  if (s->i != t->i)
    return s->i < t->i ? -1 : 1;
  return (s->peak > t->peak) - (s->peak < t->peak); /* the stronger one */
}

/* Two peaks on one point: only the stronger one stays. */
static void
unique_sites (Finder *f)
{
  uint32_t n = 0;

  qsort (f->sites, f->n_sites, sizeof (*f->sites), imk_lattice_compare_sites);
  for (uint32_t k = 0; k < f->n_sites; k++)
    if (n == 0 || f->sites[k].i != f->sites[n - 1].i ||
        f->sites[k].j != f->sites[n - 1].j)
      f->sites[n++] = f->sites[k];
  f->n_sites = n;
}

void
imk_lattice_nearest_point (const Lattice *l, Point place, double *i, double *j)
{
  Point q = (place - l->origin) / l->step;

  *j = cimag (q) / cimag (l->turn);
  *i = creal (q) - *j * creal (l->turn);
  *i = rint (*i);
  *j = rint (*j);
}

/* All peaks that lie at a point, also on islands that grow () does not reach.
 */
static void
assign (Finder *f, const ImkPeak *peaks, uint32_t n, const Lattice *l)
{
  f->n_sites = 0;
  for (uint32_t k = 0; k < n; k++) {
    double i, j;

    imk_lattice_nearest_point (l, peak_at (&peaks[k]), &i, &j);
    if (fabs (i) < 1e6 && fabs (j) < 1e6 &&
        cabs (place_of (l, i, j) - peak_at (&peaks[k])) <
            TOLERANCE * cabs (l->step))
      f->sites[f->n_sites++] = (Site){(int32_t) i, (int32_t) j, k};
  }
  unique_sites (f);
}

/* The sites are in order. Returns: the one at (i, j), or NULL */
static const Site *
site_at (const Finder *f, int32_t i, int32_t j)
{
  Site wanted = {i, j, 0};
  uint32_t from = 0, to = f->n_sites;

  while (from < to) {
    uint32_t middle = (from + to) / 2;

    if (imk_lattice_compare_sites (&f->sites[middle], &wanted) < 0)
      from = middle + 1;
    else
      to = middle;
  }
  return from < f->n_sites && f->sites[from].i == i && f->sites[from].j == j
             ? &f->sites[from]
             : NULL;
}

bool
imk_lattice_has_site (const Finder *f, int32_t i, int32_t j)
{
  return site_at (f, i, j) != NULL;
}

double
imk_lattice_occupancy (const Finder *f, const Lattice *l)
{
  int n_directions = is_hexagonal (l) ? 6 : 4;
  uint32_t occupied = 0;

  for (uint32_t k = 0; k < f->n_sites; k++)
    for (int d = 0; d < n_directions; d++)
      occupied += imk_lattice_has_site (f, f->sites[k].i + directions[d][0],
          f->sites[k].j + directions[d][1]);
  return f->n_sites ? (double) occupied / (n_directions * f->n_sites) : 0;
}

/* The peak from which the most neighbours are where they should be; of the
 * first ones, which are the strongest or innermost. */
static uint32_t
best_seed (const Finder *f, const ImkPeak *peaks, uint32_t n, const Lattice *l)
{
  int n_directions = is_hexagonal (l) ? 6 : 4;
  uint32_t best = 0;
  int most = -1;

  for (uint32_t k = 0; k < n && k < 64 && most < n_directions; k++) {
    int found = 0;

    for (int d = 0; d < n_directions; d++)
      found +=
          nearest (&f->bins,
              peak_at (&peaks[k]) +
                  l->step * (directions[d][0] + directions[d][1] * l->turn)) >=
          0;
    if (found > most) {
      most = found;
      best = k;
    }
  }
  return best;
}

void
imk_lattice_settle (Finder *f, const ImkPeak *peaks, uint32_t n, Lattice *l)
{
  uint32_t seed;

  fill_bins (f, peaks, n, fmax (TOLERANCE * cabs (l->step), 0.5));
  memset (f->taken, 0, n * sizeof (*f->taken));
  seed = best_seed (f, peaks, n, l);
  l->origin = peak_at (&peaks[seed]);
  grow (f, peaks, seed, l);
  unique_sites (f);
  fit_peaks (f, peaks, l);
  for (int round = 0; round < 3 && f->n_sites > 2; round++) {
    assign (f, peaks, n, l);
    fit_peaks (f, peaks, l);
  }
}

/* Where the neighbour of a site is if the lattice goes on as it came. */
static Point
grow_from (const Finder *f, const ImkPeak *peaks, const Site *site, int i,
    int j, const Lattice *l)
{
  const Site *before = site_at (f, site->i - i, site->j - j);
  Point here = peak_at (&peaks[site->peak]);

  return here + (before ? here - peak_at (&peaks[before->peak])
                        : l->step * (i + j * l->turn));
}

/* Further away a spot is not in the cell about its point. */
static bool
is_in_reach (const Lattice *l, const Site *s, const ImkPeak *peak)
{
  return cabs (peak_at (peak) - place_of (l, s->i, s->j)) <=
         0.5 * cabs (l->step);
}

/* Returns: how many peaks became sites beside those that there were */
static uint32_t
follow_once (Finder *f, const ImkPeak *peaks, const Lattice *l)
{
  int n_directions = is_hexagonal (l) ? 6 : 4;
  uint32_t n = 0;

  for (uint32_t k = 0; k < f->n_sites; k++)
    for (int d = 0; d < n_directions; d++) {
      const Site *s = &f->sites[k];
      Site next = {s->i + directions[d][0], s->j + directions[d][1], 0};
      int32_t found = nearest (&f->bins,
          grow_from (f, peaks, s, directions[d][0], directions[d][1], l));

      if (found < 0 || f->taken[found] || site_at (f, next.i, next.j) ||
          !is_in_reach (l, &next, peaks + found))
        continue;
      f->taken[found] = true;
      next.peak = (uint32_t) found;
      f->sites[f->n_sites + n++] = next;
    }
  return n;
}

void
imk_lattice_follow (Finder *f, const ImkPeak *peaks, uint32_t n, Lattice *l)
{
  uint32_t before, n_left = 0;

  fill_bins (f, peaks, n, fmax (TOLERANCE * cabs (l->step), 0.5));
  do {
    before = f->n_sites;
    memset (f->taken, 0, f->n_best_peaks * sizeof (*f->taken));
    for (uint32_t k = 0; k < f->n_sites; k++)
      f->taken[f->sites[k].peak] = true;
    f->n_sites += follow_once (f, peaks, l);
    unique_sites (f);
    fit_peaks (f, peaks, l);
  } while (f->n_sites > before);
  for (uint32_t k = 0; k < f->n_sites; k++)
    if (is_in_reach (l, &f->sites[k], &f->best_peaks[f->sites[k].peak]))
      f->sites[n_left++] = f->sites[k];
  f->n_sites = n_left;
}
