/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shcentroid/shcentroid-grid.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shcentroid/shcentroid-peaks.h"

/* A point (x, y) is the complex number x + i y: then a lattice is one number
 * for its pitch and rotation, and fitting it is linear. */
typedef double complex Point;

#define PI 3.14159265358979323846
#define TOLERANCE 0.2   /* of the pitch, within which a peak is at its point */
#define LEAST_SCORE 3.0 /* 3 x 3 spots have 6, chance among noise up to 2 */

enum {
  LEAST_SPOTS = 7,
  LEAST_SIDE = 16,    /* pixels of the frame */
  LEAST_PITCH = 3,    /* pixels; of 4, as measured before it is refined */
  MAX_VOTERS = 1024,  /* peaks that propose lattices */
  MAX_NEIGHBOURS = 8, /* of each, the nearest ones */
  MAX_VOTES = MAX_VOTERS * MAX_NEIGHBOURS,
  MAX_PROPOSALS = 4, /* of each number of peaks */
  N_SCREENED = 128,  /* votes whose support is counted */
};

typedef struct Lattice {
  Point origin, step; /* point (i, j) is origin + step * (i + j turn) */
  Point turn;         /* to the second direction: exp (i phi), or near it */
} Lattice;

/* A peak on its lattice point. */
typedef struct Site {
  int32_t i, j;
  uint32_t peak;
} Site;

/* Peaks by place, to find the nearest one. */
typedef struct Bins {
  double size;
  uint32_t columns, rows;
  const ImkPeak *peaks;
  int32_t *heads, *next; /* -1 ends a chain */
} Bins;

/* Works for one frame. */
typedef struct Finder {
  ImkPeaks peaks;
  ImkPeak *voters;
  Point *votes;
  double *lengths, *turns; /* of the votes */
  Bins bins;
  Site *sites; /* room for one a peak */
  uint32_t n_sites;
  bool *taken; /* peaks that are on a point */
  uint32_t room;
  /* what is best so far */
  double score;
  double sigma;
  Lattice lattice;
  float strength;      /* median */
  ImkPeak *best_peaks; /* of that scale */
  uint32_t n_best_peaks;
} Finder;

static const int directions[6][2] = {
    {1, 0}, {0, 1}, {-1, 0}, {0, -1}, {-1, 1}, {1, -1}};

static bool
is_hexagonal (const Lattice *l)
{
  return creal (l->turn) > 0.25;
}

static Point
unit (double angle)
{
  return cos (angle) + I * sin (angle);
}

static Point
place_of (const Lattice *l, double i, double j)
{
  return l->origin + l->step * (i + j * l->turn);
}

static double
norm2 (Point z) /* cabs () takes care of overflow, and its time */
{
  return creal (z) * creal (z) + cimag (z) * cimag (z);
}

static Point
peak_at (const ImkPeak *peak)
{
  return peak->x + I * peak->y;
}

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

static void
fit_peaks (Finder *f, const ImkPeak *peaks, Lattice *l)
{
  for (uint32_t k = 0; k < f->n_sites; k++)
    f->votes[k] = peak_at (&peaks[f->sites[k].peak]);
  fit (f->sites, f->n_sites, f->votes, l);
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

static int
compare_sites (const void *a, const void *b)
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

  qsort (f->sites, f->n_sites, sizeof (*f->sites), compare_sites);
  for (uint32_t k = 0; k < f->n_sites; k++)
    if (n == 0 || f->sites[k].i != f->sites[n - 1].i ||
        f->sites[k].j != f->sites[n - 1].j)
      f->sites[n++] = f->sites[k];
  f->n_sites = n;
}

/* The point of the lattice next to a place, as (i, j). */
static void
nearest_point (const Lattice *l, Point place, double *i, double *j)
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

    nearest_point (l, peak_at (&peaks[k]), &i, &j);
    if (fabs (i) < 1e6 && fabs (j) < 1e6 &&
        cabs (place_of (l, i, j) - peak_at (&peaks[k])) <
            TOLERANCE * cabs (l->step))
      f->sites[f->n_sites++] = (Site){(int32_t) i, (int32_t) j, k};
  }
  unique_sites (f);
}

static bool
has_site (const Finder *f, int32_t i, int32_t j)
{
  Site wanted = {i, j, 0};
  uint32_t from = 0, to = f->n_sites;

  while (from < to) {
    uint32_t middle = (from + to) / 2;

    if (compare_sites (&f->sites[middle], &wanted) < 0)
      from = middle + 1;
    else
      to = middle;
  }
  return from < f->n_sites && f->sites[from].i == i && f->sites[from].j == j;
}

/* Which part of the neighbours of the sites are sites too: a lattice of half
 * the pitch has every peak on a point, but most of its points empty. */
static double
occupancy (const Finder *f, const Lattice *l)
{
  int n_directions = is_hexagonal (l) ? 6 : 4;
  uint32_t occupied = 0;

  for (uint32_t k = 0; k < f->n_sites; k++)
    for (int d = 0; d < n_directions; d++)
      occupied += has_site (f, f->sites[k].i + directions[d][0],
          f->sites[k].j + directions[d][1]);
  return f->n_sites ? (double) occupied / (n_directions * f->n_sites) : 0;
}

/* ------------------------------------------------------------------------
 * Proposals. */

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

/* Puts @peaks on the points of the lattice that @l->step proposes, and fits
 * it to them. */
static void
settle (Finder *f, const ImkPeak *peaks, uint32_t n, Lattice *l)
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

static int
compare_floats (const void *a, const void *b)
{
  float x = *(const float *) a, y = *(const float *) b;

  return (x > y) - (x < y);
}

/* The strength that @part of the sites do not reach. */
static float
strength_at (const Finder *f, const ImkPeak *peaks, double part)
{
  float *strengths = (float *) f->votes; /* has room for more */

  for (uint32_t k = 0; k < f->n_sites; k++)
    strengths[k] = peaks[f->sites[k].peak].strength;
  qsort (strengths, f->n_sites, sizeof (*strengths), compare_floats);
  return strengths[(uint32_t) (part * (f->n_sites - 1))];
}

/* How many spots the sites are, weak ones in part: the crossings of the arms
 * that square lenslets give to their spots form a lattice, too. */
static double
count_spots (const Finder *f, const ImkPeak *peaks)
{
  float strong = strength_at (f, peaks, 0.9);
  double count = 0;

  for (uint32_t k = 0; k < f->n_sites; k++)
    count += fmin (1, peaks[f->sites[k].peak].strength / strong);
  return count;
}

/* Keeps the lattice when it explains @peaks better than what is best so far.
 * Returns: IMK_ERROR_MEMORY */
static ImkStatus
judge (Finder *f, const ImkPeak *peaks, uint32_t n, Lattice l, ImkError *error)
{
  double part, filled, score, better;
  ImkPeak *copy;

  settle (f, peaks, n, &l);
  part = (double) f->n_sites / n;
  filled = occupancy (f, &l);
  if (f->n_sites < LEAST_SPOTS || part < 0.5 || filled < 0.4 ||
      !(cabs (l.step) >= LEAST_PITCH))
    return IMK_OK;
  score = count_spots (f, peaks) * part * filled;
  /* a wider blur that does as well has less noise */
  better = f->peaks.sigma > f->sigma ? 0.98 * f->score : f->score;
  if (score < LEAST_SCORE || !(score > better))
    return IMK_OK;
  copy = realloc (f->best_peaks, f->peaks.n * sizeof (*copy));
  if (!copy)
    return imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for the grid.");
  memcpy (copy, f->peaks.peaks, f->peaks.n * sizeof (*copy));
  f->best_peaks = copy;
  f->n_best_peaks = f->peaks.n;
  f->score = score;
  f->sigma = f->peaks.sigma;
  f->lattice = l;
  f->strength = strength_at (f, peaks, 0.5);
  return IMK_OK;
}

/* Differences to the nearest neighbours, those to the left turned round. */
static uint32_t
collect_votes (Finder *f, uint32_t n)
{
  uint32_t n_votes = 0;

  for (uint32_t k = 0; k < n; k++) {
    Point near[MAX_NEIGHBOURS];
    double distances[MAX_NEIGHBOURS];
    int count = 0;

    for (uint32_t m = 0; m < n; m++) {
      Point to = peak_at (&f->voters[m]) - peak_at (&f->voters[k]);
      double distance = norm2 (to);
      int at;

      if (m == k || (count == MAX_NEIGHBOURS &&
                        distance >= distances[MAX_NEIGHBOURS - 1]))
        continue;
      at = count < MAX_NEIGHBOURS ? count++ : MAX_NEIGHBOURS - 1;
      for (; at > 0 && distances[at - 1] > distance; at--) {
        distances[at] = distances[at - 1];
        near[at] = near[at - 1];
      }
      distances[at] = distance;
      near[at] = to;
    }
    for (int m = 0; m < count; m++)
      f->votes[n_votes++] = creal (near[m]) < 0 ? -near[m] : near[m];
  }
  return n_votes;
}

/* Length as its logarithm, angle in parts of the turn that maps the lattice on
 * itself. */
static void
measure_votes (Finder *f, uint32_t n_votes, int symmetry)
{
  for (uint32_t k = 0; k < n_votes; k++) {
    f->lengths[k] = log (cabs (f->votes[k]));
    f->turns[k] = carg (f->votes[k]) * symmetry / (2 * PI);
  }
}

/* How many votes agree with vote @v up to turns by @symmetry; their mean. */
static uint32_t
support (
    const Finder *f, uint32_t n_votes, uint32_t v, int symmetry, Point *mean)
{
  double reach = 0.5 * TOLERANCE, turn = 2 * PI / symmetry;
  double length = 0, angle = 0;
  uint32_t count = 0;

  for (uint32_t k = 0; k < n_votes; k++) {
    double longer = f->lengths[k] - f->lengths[v];
    double turned = f->turns[k] - f->turns[v];

    turned = (turned - rint (turned)) * turn;
    if (fabs (longer) < reach && fabs (turned) < reach) {
      length += longer;
      angle += turned;
      count++;
    }
  }
  *mean = f->votes[v] * exp (length / count) * unit (angle / count);
  return count;
}

static bool
is_alike (Point a, Point b, int symmetry)
{
  Point ratio = a / b;

  ratio *=
      unit (-2 * PI / symmetry * rint (carg (ratio) * symmetry / (2 * PI)));
  return cabs (ratio - 1) < TOLERANCE;
}

/* Proposes the few differences that most others agree with. */
static ImkStatus
propose (Finder *f, uint32_t n, int symmetry, ImkError *error)
{
  uint32_t n_votes = collect_votes (f, n);
  uint32_t every = n_votes / N_SCREENED + 1, n_means = 0;
  Point means[N_SCREENED], done[MAX_PROPOSALS];
  uint32_t counts[N_SCREENED];
  ImkStatus status = IMK_OK;

  measure_votes (f, n_votes, symmetry);
  for (uint32_t k = 0; k < n_votes && n_means < N_SCREENED; k += every)
    if (cabs (f->votes[k]) >= LEAST_PITCH) {
      counts[n_means] = support (f, n_votes, k, symmetry, &means[n_means]);
      n_means++;
    }
  for (int p = 0; p < MAX_PROPOSALS && status == IMK_OK; p++) {
    uint32_t best = N_SCREENED;

    for (uint32_t k = 0; k < n_means; k++)
      if (counts[k] && (best == N_SCREENED || counts[k] > counts[best]))
        best = k;
    if (best == N_SCREENED)
      break;
    done[p] = means[best];
    for (uint32_t k = 0; k < n_means; k++)
      if (is_alike (means[k], done[p], symmetry))
        counts[k] = 0;
    counts[best] = 0;
    status = judge (f, f->voters, n,
        (Lattice){.step = done[p], .turn = unit (2 * PI / symmetry)}, error);
  }
  return status;
}

static Point
centre_of (const ImkPeak *peaks, uint32_t n)
{
  Point sum = 0;

  for (uint32_t k = 0; k < n; k++)
    sum += peak_at (&peaks[k]);
  return sum / n;
}

typedef struct Ranked {
  double distance;
  uint32_t peak;
} Ranked;

static int
compare_ranked (const void *a, const void *b)
{
  const Ranked *x = a, *y = b;

  if (x->distance != y->distance)
    return x->distance < y->distance ? -1 : 1;
  return (x->peak > y->peak) - (x->peak < y->peak);
}

/* The voters are the first @n peaks, of more than MAX_VOTERS the innermost:
 * a lattice is told by neighbours. Returns: how many, 0 without memory */
static uint32_t
choose_voters (Finder *f, uint32_t n)
{
  Point centre = centre_of (f->peaks.peaks, n);
  Ranked *ranked;

  if (n <= MAX_VOTERS) {
    memcpy (f->voters, f->peaks.peaks, n * sizeof (*f->voters));
    return n;
  }
  ranked = malloc (n * sizeof (*ranked));
  if (!ranked)
    return 0;
  for (uint32_t k = 0; k < n; k++)
    ranked[k] = (Ranked){cabs (peak_at (&f->peaks.peaks[k]) - centre), k};
  qsort (ranked, n, sizeof (*ranked), compare_ranked);
  for (uint32_t k = 0; k < MAX_VOTERS; k++)
    f->voters[k] = f->peaks.peaks[ranked[k].peak];
  free (ranked);
  return MAX_VOTERS;
}

static ImkStatus
make_room (Finder *f, ImkError *error)
{
  uint32_t room = f->peaks.n < MAX_VOTES ? MAX_VOTES : f->peaks.n;
  size_t bins = (2 * (size_t) f->peaks.width + 1) * (2 * f->peaks.height + 1);

  if (room <= f->room)
    return IMK_OK;
  free (f->votes);
  free (f->sites);
  free (f->taken);
  free (f->bins.next);
  f->votes = malloc (room * sizeof (*f->votes));
  f->sites = malloc (room * sizeof (*f->sites));
  f->taken = malloc (room * sizeof (*f->taken));
  f->bins.next = malloc (room * sizeof (*f->bins.next));
  f->room = room;
  if (!f->voters)
    f->voters = malloc (MAX_VOTERS * sizeof (*f->voters));
  if (!f->lengths)
    f->lengths = malloc (MAX_VOTES * sizeof (*f->lengths));
  if (!f->turns)
    f->turns = malloc (MAX_VOTES * sizeof (*f->turns));
  if (!f->bins.heads)
    f->bins.heads = malloc (bins * sizeof (*f->bins.heads));
  if (f->votes && f->sites && f->taken && f->bins.next && f->voters &&
      f->lengths && f->turns && f->bins.heads)
    return IMK_OK;
  return imk_error_set (
      error, IMK_ERROR_MEMORY, "There is no memory for %u spots.", room);
}

/* How many of the peaks are spots is not known: from few to all. */
static ImkStatus
search_scale (Finder *f, ImkShcentroidLattice lattice, ImkError *error)
{
  ImkStatus status = make_room (f, error);

  for (uint32_t n = LEAST_SPOTS; status == IMK_OK && f->peaks.n >= n;) {
    uint32_t n_voters = choose_voters (f, n);

    if (!n_voters)
      return imk_error_set (
          error, IMK_ERROR_MEMORY, "There is no memory for %u spots.", n);
    if (lattice != IMK_SHCENTROID_LATTICE_HEXAGONAL)
      status = propose (f, n_voters, 4, error);
    if (lattice != IMK_SHCENTROID_LATTICE_SQUARE && status == IMK_OK)
      status = propose (f, n_voters, 6, error);
    if (n == f->peaks.n)
      break;
    n = 2 * n < f->peaks.n ? 2 * n : f->peaks.n;
  }
  return status;
}

/* ------------------------------------------------------------------------
 * The result. */

typedef struct Window {
  int64_t left, top, right, bottom; /* right and bottom excluded */
} Window;

static Window
window_about (const ImkPeaks *p, Point centre, double half)
{
  int64_t x = llrint (creal (centre)), y = llrint (cimag (centre));
  int64_t reach = (int64_t) fmax (half, 1);
  Window w = {x - reach, y - reach, x + reach + 1, y + reach + 1};

  w.left = w.left < 0 ? 0 : w.left;
  w.top = w.top < 0 ? 0 : w.top;
  w.right = w.right > p->width ? p->width : w.right;
  w.bottom = w.bottom > p->height ? p->height : w.bottom;
  return w;
}

/* The mean of the lowest quarter of the window's rim would be biased by noise,
 * the mean of all of it by light between the spots: the median of the rim. */
static float
rim_median (const ImkPeaks *p, const Window *w, float *room)
{
  uint32_t n = 0;

  for (int64_t y = w->top; y < w->bottom; y++)
    for (int64_t x = w->left; x < w->right; x++)
      if (y == w->top || y == w->bottom - 1 || x == w->left ||
          x == w->right - 1)
        room[n++] = p->pixels[y * p->width + x];
  qsort (room, n, sizeof (*room), compare_floats);
  return n ? room[n / 2] : 0;
}

/* The centre of gravity of what is more than a fifth of the spot's height above
 * the rim of a window that follows it. */
static Point
refine (const Finder *f, Point start, double half, float *room)
{
  const ImkPeaks *p = &f->peaks;
  Point centre = start;

  for (int round = 0; round < 4; round++) {
    Window w = window_about (p, centre, half);
    Window core = window_about (p, centre, f->sigma);
    double base = rim_median (p, &w, room), top = base, cut, sum = 0;
    Point moment = 0;

    for (int64_t y = core.top; y < core.bottom; y++)
      for (int64_t x = core.left; x < core.right; x++) {
        double v = p->pixels[y * p->width + x];

        top = v > top ? v : top; /* gcc 12 for arm64 breaks down over fmax () */
      }
    cut = base + 0.2 * (top - base);
    for (int64_t y = w.top; y < w.bottom; y++)
      for (int64_t x = w.left; x < w.right; x++) {
        double v = p->pixels[y * p->width + x] - cut;

        if (v > 0) {
          sum += v;
          moment += v * (x + I * y);
        }
      }
    if (!(sum > 0) || cabs (moment / sum - start) > half)
      return start;
    centre = moment / sum;
  }
  return centre;
}

static int
compare_doubles (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static bool
is_whole (const ImkPeaks *p, Point centre, double half)
{
  return creal (centre) >= half && cimag (centre) >= half &&
         creal (centre) <= p->width - 1 - half &&
         cimag (centre) <= p->height - 1 - half;
}

/* Least squares over the sites with both directions free: lenses and tilted
 * detectors stretch and shear a lattice. Nothing changes when the sites do not
 * span a plane. */
static void
fit_freely (const Site *sites, uint32_t n, const Point *places, Lattice *l)
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

/* Fits again without what lies apart: further than 6 sigmas from its point,
 * sigma of the inner half. A distorted lattice keeps nearly all.
 * Returns: the rms distance of those that count */
static double
fit_robustly (
    Site *sites, Point *places, uint32_t n, double *distances, Lattice *l)
{
  uint32_t n_used = n;
  double rms = 0;

  for (int round = 0; round < 3; round++) {
    double limit, sum = 0;
    uint32_t used = 0;

    fit_freely (sites, n_used, places, l);
    for (uint32_t k = 0; k < n; k++)
      distances[k] = cabs (places[k] - place_of (l, sites[k].i, sites[k].j));
    qsort (distances, n, sizeof (*distances), compare_doubles);
    limit = 6 * distances[n / 2] / 1.1774 + 1e-6;
    for (uint32_t k = 0; k < n; k++) { /* those that count come first */
      Site site = sites[k];
      Point place = places[k];
      double distance = cabs (place - place_of (l, site.i, site.j));

      if (distance > limit)
        continue;
      sum += distance * distance;
      sites[k] = sites[used];
      places[k] = places[used];
      sites[used] = site;
      places[used++] = place;
    }
    n_used = used;
    rms = sqrt (sum / used);
  }
  return rms;
}

/* The fit to the spots that have all of their window in the frame, when those
 * are enough. */
static double
fit_spots (const Finder *f, const Point *places, double half, Site *sites,
    Point *some, double *distances, Lattice *l)
{
  uint32_t n = 0;

  for (uint32_t k = 0; k < f->n_sites; k++)
    if (is_whole (&f->peaks, places[k], half)) {
      sites[n] = f->sites[k];
      some[n++] = places[k];
    }
  if (n < LEAST_SPOTS) {
    n = f->n_sites;
    memcpy (sites, f->sites, n * sizeof (*sites));
    memcpy (some, places, n * sizeof (*some));
  }
  return fit_robustly (sites, some, n, distances, l);
}

/* A site without another within two steps is a speck of light that happens to
 * lie on a point. */
static void
drop_lonely (Finder *f)
{
  uint32_t n = 0;

  for (uint32_t k = 0; k < f->n_sites; k++) {
    f->taken[k] = false;
    for (int j = -2; j <= 2; j++)
      for (int i = -2; i <= 2; i++)
        f->taken[k] |=
            (i || j) && has_site (f, f->sites[k].i + i, f->sites[k].j + j);
  }
  for (uint32_t k = 0; k < f->n_sites; k++)
    if (f->taken[k])
      f->sites[n++] = f->sites[k];
  f->n_sites = n;
}

/* Turns the basis so that its first direction is next to the x axis, and
 * counts columns and rows from 0. */
static void
normalise (Finder *f, Lattice *l, ImkShcentroidGrid *grid)
{
  int symmetry = is_hexagonal (l) ? 6 : 4;
  double turns = rint (carg (l->step) * symmetry / (2 * PI));
  int32_t first_i = INT32_MAX, first_j = INT32_MAX;
  int32_t last_i = INT32_MIN, last_j = INT32_MIN;
  Lattice turned = *l;

  turned.step = l->step * unit (-2 * PI * turns / symmetry);
  for (uint32_t k = 0; k < f->n_sites; k++) {
    Site *s = &f->sites[k];
    double i, j;

    nearest_point (&turned, place_of (l, s->i, s->j), &i, &j);
    s->i = (int32_t) i;
    s->j = (int32_t) j;
    first_i = s->i < first_i ? s->i : first_i;
    first_j = s->j < first_j ? s->j : first_j;
    last_i = s->i > last_i ? s->i : last_i;
    last_j = s->j > last_j ? s->j : last_j;
  }
  for (uint32_t k = 0; k < f->n_sites; k++) {
    f->sites[k].i -= first_i;
    f->sites[k].j -= first_j;
  }
  turned.origin = place_of (&turned, first_i, first_j);
  *l = turned;
  qsort (f->sites, f->n_sites, sizeof (*f->sites), compare_sites);
  grid->columns = (uint32_t) (last_i - first_i) + 1;
  grid->rows = (uint32_t) (last_j - first_j) + 1;
}

static void
report (const Finder *f, const Lattice *l, const Point *places,
    ImkShcentroidGrid *grid)
{
  grid->lattice = is_hexagonal (l) ? IMK_SHCENTROID_LATTICE_HEXAGONAL
                                   : IMK_SHCENTROID_LATTICE_SQUARE;
  grid->pitch = cabs (l->step) * sqrt (cabs (l->turn));
  grid->rotation = carg (l->step);
  grid->column_x = creal (l->step);
  grid->column_y = cimag (l->step);
  grid->row_x = creal (l->step * l->turn);
  grid->row_y = cimag (l->step * l->turn);
  grid->origin_x = creal (l->origin);
  grid->origin_y = cimag (l->origin);
  grid->n_spots = f->n_sites;
  for (uint32_t k = 0; k < f->n_sites; k++) {
    const Site *s = &f->sites[k];
    Point at = place_of (l, s->i, s->j);

    grid->spots[k] = (ImkShcentroidSpot){
        .column = s->i,
        .row = s->j,
        .x = creal (at),
        .y = cimag (at),
        .spot_x = creal (places[k]),
        .spot_y = cimag (places[k]),
        .strength = f->best_peaks[s->peak].strength,
    };
  }
}

/* The strength from which on a spot is lit. The peaks of noise are everywhere:
 * what 95 % of those beside the lattice do not reach is a spot, unless it is
 * half as strong as spots, which are hot pixels then. */
static float
lit_strength (Finder *f, double least)
{
  float *beside = (float *) f->votes;
  double reach = TOLERANCE * cabs (f->lattice.step);
  uint32_t n = 0;
  float noise;

  for (uint32_t k = 0; k < f->n_best_peaks; k++) {
    Point at = peak_at (&f->best_peaks[k]);
    double i, j;

    nearest_point (&f->lattice, at, &i, &j);
    if (cabs (place_of (&f->lattice, i, j) - at) >= reach)
      beside[n++] = f->best_peaks[k].strength;
  }
  qsort (beside, n, sizeof (*beside), compare_floats);
  noise = n ? beside[(uint32_t) (0.95 * (n - 1))] : 0;
  return fmaxf ((float) least * f->strength, fminf (noise, f->strength / 2));
}

static ImkStatus
no_grid (ImkShcentroidLattice lattice, uint32_t n_peaks, ImkError *error)
{
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "There is no grid of spots in the frame: %u peaks, but no %s lattice "
      "that half of them lie on. It needs a frame with at least %d sharp "
      "spots, best of a flat wavefront.",
      n_peaks,
      lattice == IMK_SHCENTROID_LATTICE_SQUARE      ? "square"
      : lattice == IMK_SHCENTROID_LATTICE_HEXAGONAL ? "hexagonal"
                                                    : "square or hexagonal",
      LEAST_SPOTS);
}

/* Structure that is no spots, as granules, has peaks that propose a lattice,
 * but hardly any that are lit and stay. */
static ImkStatus
finish (Finder *f, ImkShcentroidLattice lattice, double least,
    ImkShcentroidGrid *grid, ImkError *error)
{
  Lattice l = f->lattice;
  double half = 0.5 * cabs (l.step);
  uint32_t n = f->n_best_peaks;
  size_t side = 2 * (size_t) half + 3;
  ImkShcentroidGrid found = {0};
  Point *places, *some_places;
  Site *some_sites;
  double *distances;
  float *room, lit = lit_strength (f, least);
  ImkStatus status = IMK_OK;

  while (n > 0 && f->best_peaks[n - 1].strength < lit)
    n--;
  settle (f, f->best_peaks, n, &l);
  drop_lonely (f);
  if (f->n_sites < LEAST_SPOTS)
    return no_grid (lattice, f->n_best_peaks, error);
  normalise (f, &l, &found);
  n = f->n_sites;
  places = malloc (2 * n * sizeof (*places));
  some_places = places + n;
  some_sites = malloc (n * sizeof (*some_sites));
  distances = malloc (n * sizeof (*distances));
  room = malloc (side * side * sizeof (*room));
  found.spots = malloc (n * sizeof (*found.spots));
  if (places && some_sites && distances && room && found.spots) {
    for (uint32_t k = 0; k < n; k++)
      places[k] =
          refine (f, peak_at (&f->best_peaks[f->sites[k].peak]), half, room);
    found.rms =
        fit_spots (f, places, half, some_sites, some_places, distances, &l);
    report (f, &l, places, &found);
    *grid = found;
  } else {
    free (found.spots);
    status = imk_error_set (
        error, IMK_ERROR_MEMORY, "There is no memory for %u spots.", n);
  }
  free (places);
  free (some_sites);
  free (distances);
  free (room);
  return status;
}

static void
finder_clear (Finder *f)
{
  imk_peaks_clear (&f->peaks);
  free (f->voters);
  free (f->votes);
  free (f->lengths);
  free (f->turns);
  free (f->bins.heads);
  free (f->bins.next);
  free (f->sites);
  free (f->taken);
  free (f->best_peaks);
}

static ImkStatus
check (const ImkImage *frame, ImkShcentroidLattice lattice, double least,
    ImkError *error)
{
  ImkType type =
      frame && frame->type == IMK_TYPE_U8 ? IMK_TYPE_U8 : IMK_TYPE_U16;

  if ((unsigned) lattice > IMK_SHCENTROID_LATTICE_HEXAGONAL)
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The lattice is %u; the choices are 0 to 2.", (unsigned) lattice);
  if (!(least > 0 && least < 1))
    return imk_error_set (error, IMK_ERROR_CONFIG,
        "The least strength of a spot is %g of the median; it must be above 0 "
        "and below 1.",
        least);
  if (frame && (frame->width < LEAST_SIDE || frame->height < LEAST_SIDE ||
                   frame->width > 65535 || frame->height > 65535))
    return imk_error_set (error, IMK_ERROR_IMAGE,
        "The frame is %ux%u; a grid is sought in 16 to 65535 pixels a side.",
        frame->width, frame->height);
  return imk_image_check (frame, "input", type, 1, frame ? frame->width : 0,
      frame ? frame->height : 0, false, error);
}

ImkStatus
imk_shcentroid_find_grid (const ImkImage *frame, ImkShcentroidLattice lattice,
    double least, ImkShcentroidGrid *grid, ImkError *error)
{
  Finder f = {0};
  uint32_t most = 0;
  ImkStatus status = check (frame, lattice, least, error);

  if (status != IMK_OK)
    return status;
  status = imk_peaks_init (&f.peaks, frame, error);
  for (int k = 0; k < IMK_PEAKS_N_SCALES && status == IMK_OK; k++) {
    status = imk_peaks_next (&f.peaks, error);
    most = f.peaks.n > most ? f.peaks.n : most;
    if (status == IMK_OK)
      status = search_scale (&f, lattice, error);
  }
  if (status == IMK_OK && f.score > 0)
    status = finish (&f, lattice, least, grid, error);
  else if (status == IMK_OK)
    status = no_grid (lattice, most, error);
  finder_clear (&f);
  return status;
}

double
imk_shcentroid_grid_side (const ImkShcentroidGrid *grid)
{
  return grid->lattice == IMK_SHCENTROID_LATTICE_HEXAGONAL
             ? grid->pitch * sqrt (sqrt (0.75))
             : grid->pitch;
}

void
imk_shcentroid_grid_clear (ImkShcentroidGrid *grid)
{
  free (grid->spots);
  *grid = (ImkShcentroidGrid){0};
}
