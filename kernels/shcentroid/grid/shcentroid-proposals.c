/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which lattices the peaks of a scale propose, and the best of them. */
#include "shcentroid/grid/shcentroid-lattice.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_SCORE 3.0 /* 3 x 3 spots have 6, chance among noise up to 2 */
#define LEAST_PART 0.5  /* of the peaks that lie on a lattice */
/* a bent square lattice shall not be taken for a piece of a rectangular one */
#define LEAST_RECTANGLE 0.9
#define MOST_ASPECT 1.6 /* cells are square: in longer ones two spots */

enum {
  LEAST_PITCH = 3,    /* pixels; of 4, as measured before it is refined */
  MAX_VOTERS = 1024,  /* peaks that propose lattices */
  MAX_NEIGHBOURS = 8, /* of each, the nearest ones */
  MAX_VOTES = MAX_VOTERS * MAX_NEIGHBOURS,
  MAX_PROPOSALS = 4, /* of each number of peaks */
  N_SCREENED = 128,  /* votes whose support is counted */
};

/* The strength that @part of the sites do not reach. */
static float
strength_at (const Finder *f, const ImkPeak *peaks, double part)
{
  float *strengths = (float *) f->votes; /* has room for more */

  for (uint32_t k = 0; k < f->n_sites; k++)
    strengths[k] = peaks[f->sites[k].peak].strength;
  qsort (strengths, f->n_sites, sizeof (*strengths), imk_peaks_compare_floats);
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

/* Keeps the lattice when at least @least_part of @peaks lie on it, and it
 * explains them better than what is best so far.
 * Returns: IMK_ERROR_MEMORY */
static ImkStatus
judge (Finder *f, const ImkPeak *peaks, uint32_t n, Lattice l,
    double least_part, ImkError *error)
{
  double part, filled, score, better;
  ImkPeak *copy;

  imk_lattice_settle (f, peaks, n, &l);
  part = (double) f->n_sites / n;
  filled = imk_lattice_occupancy (f, &l);
  if (f->n_sites < LEAST_SPOTS || part < least_part || filled < 0.4 ||
      !(cabs (l.step) >= LEAST_PITCH))
    return IMK_OK;
  score = count_spots (f, peaks) * part * filled;
  /* a wider blur that does as well has less noise */
  better = f->peaks.sigma > f->sigma ? 0.98 * f->score : f->score;
  if (score < LEAST_SCORE || !(score > better))
    return IMK_OK;
  copy = realloc (f->best_peaks, f->peaks.n * sizeof (*copy));
  if (!copy)
    return IMK_NO_MEMORY (error, "for the grid.");
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

/* Votes, and how many others agree with each. */
typedef struct Screened {
  Point means[N_SCREENED];
  uint32_t counts[N_SCREENED], n;
} Screened;

/* Some of the differences between the first @n voters. */
static void
screen_votes (Finder *f, uint32_t n, int symmetry, Screened *s)
{
  uint32_t n_votes = collect_votes (f, n), every = n_votes / N_SCREENED + 1;

  s->n = 0;
  measure_votes (f, n_votes, symmetry);
  for (uint32_t k = 0; k < n_votes && s->n < N_SCREENED; k += every)
    if (cabs (f->votes[k]) >= LEAST_PITCH) {
      s->counts[s->n] = support (f, n_votes, k, symmetry, &s->means[s->n]);
      s->n++;
    }
}

/* Returns: the one that most agree with, the first of equals; s->n for none */
static uint32_t
most_supported (const Screened *s)
{
  uint32_t best = s->n;

  for (uint32_t k = 0; k < s->n; k++)
    if (s->counts[k] && (best == s->n || s->counts[k] > s->counts[best]))
      best = k;
  return best;
}

/* Proposes the few differences that most others agree with. */
static ImkStatus
propose (Finder *f, uint32_t n, int symmetry, ImkError *error)
{
  Screened s;

  screen_votes (f, n, symmetry, &s);
  for (int p = 0; p < MAX_PROPOSALS; p++) {
    uint32_t best = most_supported (&s);

    if (best == s.n)
      break;
    for (uint32_t k = 0; k < s.n; k++)
      if (is_alike (s.means[k], s.means[best], symmetry))
        s.counts[k] = 0;
    s.counts[best] = 0;
    IMK_TRY (judge (f, f->voters, n,
        (Lattice){.step = s.means[best], .turn = unit (2 * PI / symmetry)},
        LEAST_PART, error));
  }
  return IMK_OK;
}

/* The ratio of the best supported difference that is perpendicular to @a, but
 * of another length, to @a. Returns: 0 for none */
static Point
other_side (Point a, const Screened *s)
{
  uint32_t most = 0;
  Point best = 0;

  for (uint32_t k = 0; k < s->n; k++) {
    Point ratio = s->means[k] / a;
    double length = cabs (ratio), angle = fabs (carg (ratio));

    if (s->counts[k] > most && fabs (angle - PI / 2) < 0.5 * TOLERANCE &&
        fabs (log (length)) > 0.5 * TOLERANCE && length < MOST_ASPECT &&
        length > 1 / MOST_ASPECT) {
      most = s->counts[k];
      best = cimag (ratio) < 0 ? -ratio : ratio;
    }
  }
  return best;
}

/* Square pixels of a rectangular lattice, or the other way round: proposes the
 * two differences that most others agree with. */
static ImkStatus
propose_rectangle (Finder *f, uint32_t n, ImkError *error)
{
  Screened s;
  uint32_t best;
  Point turn;

  screen_votes (f, n, 2, &s);
  best = most_supported (&s);
  turn = best < s.n ? other_side (s.means[best], &s) : 0;
  return turn == 0 ? IMK_OK
                   : judge (f, f->voters, n,
                         (Lattice){.step = s.means[best], .turn = turn},
                         LEAST_RECTANGLE, error);
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
  return IMK_NO_MEMORY (error, "for %u spots.", room);
}

/* How many of the peaks are spots is not known: from few to all. */
ImkStatus
imk_lattice_search_scale (
    Finder *f, ImkShcentroidLattice lattice, ImkError *error)
{
  IMK_TRY (make_room (f, error));
  for (uint32_t n = LEAST_SPOTS; f->peaks.n >= n;) {
    uint32_t n_voters = choose_voters (f, n);

    if (!n_voters)
      return IMK_NO_MEMORY (error, "for %u spots.", n);
    if (lattice != IMK_SHCENTROID_LATTICE_HEXAGONAL) {
      IMK_TRY (propose (f, n_voters, 4, error));
      IMK_TRY (propose_rectangle (f, n_voters, error));
    }
    if (lattice != IMK_SHCENTROID_LATTICE_SQUARE)
      IMK_TRY (propose (f, n_voters, 6, error));
    if (n == f->peaks.n)
      break;
    n = 2 * n < f->peaks.n ? 2 * n : f->peaks.n;
  }
  return IMK_OK;
}
