/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the best lattice to the grid that is reported. */
#include "imk/shcentroid-grid.h"

#include <stdlib.h>
#include <string.h>

#include "shcentroid/grid/shcentroid-lattice.h"

enum { LEAST_SIDE = 16 }; /* pixels of the frame */

#define SAME_SPOT 0.4 /* of the pitch, from one peak of a spot to another */
#define AS_STRONG 0.5 /* of the median: a spot, and not noise beside it */
#define BROAD 0.24    /* of the cell: spots fill up to 0.2, granules 0.27 */
#define UNEVEN 0.04   /* of the pitch, rms */

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
  qsort (room, n, sizeof (*room), imk_peaks_compare_floats);
  return n ? room[n / 2] : 0;
}

static float
highest (const ImkPeaks *p, const Window *w, float base)
{
  float top = base;

  for (int64_t y = w->top; y < w->bottom; y++)
    for (int64_t x = w->left; x < w->right; x++) {
      float v = p->pixels[y * p->width + x];

      top = v > top ? v : top; /* gcc 12 for arm64 breaks down over fmax () */
    }
  return top;
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
    double base = rim_median (p, &w, room), sum = 0;
    double cut = base + 0.2 * (highest (p, &core, (float) base) - base);
    Point moment = 0;

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

/* The part of a window that is above half the height of its spot. */
static double
filled_part (const Finder *f, Point centre, double half, float *room)
{
  const ImkPeaks *p = &f->peaks;
  Window w = window_about (p, centre, half);
  Window core = window_about (p, centre, f->sigma);
  float base = rim_median (p, &w, room);
  float cut = base + 0.5f * (highest (p, &core, base) - base);
  uint32_t n = 0;

  for (int64_t y = w.top; y < w.bottom; y++)
    for (int64_t x = w.left; x < w.right; x++)
      n += p->pixels[y * p->width + x] > cut;
  return (double) n / ((w.bottom - w.top) * (w.right - w.left));
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

    imk_lattice_fit_freely (sites, n_used, places, l);
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
        f->taken[k] |= (i || j) && imk_lattice_has_site (
                                       f, f->sites[k].i + i, f->sites[k].j + j);
  }
  for (uint32_t k = 0; k < f->n_sites; k++)
    if (f->taken[k])
      f->sites[n++] = f->sites[k];
  f->n_sites = n;
}

/* The basis of the same lattice a turn of its symmetry before. */
static void
turn_back (Lattice *l, int symmetry)
{
  Point a = l->step, b = l->step * l->turn;

  l->step = symmetry == 6 ? a - b : -b;
  l->turn = a / l->step;
}

/* Turns the basis so that its first direction is next to the x axis, and
 * counts columns and rows from 0. */
static void
normalise (Finder *f, Lattice *l, ImkShcentroidGrid *grid)
{
  int symmetry = is_hexagonal (l) ? 6 : 4;
  int turns = (int) rint (carg (l->step) * symmetry / (2 * PI));
  int32_t first_i = INT32_MAX, first_j = INT32_MAX;
  int32_t last_i = INT32_MIN, last_j = INT32_MIN;
  Lattice turned = *l;

  for (turns += symmetry; turns % symmetry; turns--)
    turn_back (&turned, symmetry);
  for (uint32_t k = 0; k < f->n_sites; k++) {
    Site *s = &f->sites[k];
    double i, j;

    imk_lattice_nearest_point (&turned, place_of (l, s->i, s->j), &i, &j);
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
  qsort (f->sites, f->n_sites, sizeof (*f->sites), imk_lattice_compare_sites);
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

    imk_lattice_nearest_point (&f->lattice, at, &i, &j);
    if (cabs (place_of (&f->lattice, i, j) - at) >= reach)
      beside[n++] = f->best_peaks[k].strength;
  }
  qsort (beside, n, sizeof (*beside), imk_peaks_compare_floats);
  noise = n ? beside[(uint32_t) (0.95 * (n - 1))] : 0;
  return fmaxf ((float) least * f->strength, fminf (noise, f->strength / 2));
}

/* Is a peak part of a spot that is on a point? Broad or doubled spots have
 * several. */
static bool
is_of_a_site (const Finder *f, Point peak, double reach)
{
  for (uint32_t k = 0; k < f->n_sites; k++)
    if (cabs (peak_at (&f->best_peaks[f->sites[k].peak]) - peak) < reach)
      return true;
  return false;
}

/* The peaks as strong as spots that are on no point. Strongest come first. A
 * lattice that is too coarse shall not hide spots between its points. */
static uint32_t
count_unplaced (const Finder *f, const Lattice *l)
{
  double reach = fmin (SAME_SPOT * cabs (l->step), 4 * f->sigma);
  uint32_t n = 0;

  for (uint32_t k = 0; k < f->n_best_peaks; k++) {
    if (f->best_peaks[k].strength < AS_STRONG * f->strength)
      break;
    n += !is_of_a_site (f, peak_at (&f->best_peaks[k]), reach);
  }
  return n;
}

/* The median over the spots. */
static double
median_filled (const Finder *f, const Point *places, double half, double *parts,
    float *room)
{
  for (uint32_t k = 0; k < f->n_sites; k++)
    parts[k] = filled_part (f, places[k], half, room);
  qsort (parts, f->n_sites, sizeof (*parts), compare_doubles);
  return parts[f->n_sites / 2];
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

/* Cells that all see one scene, as of the sun, are a lattice of peaks, too,
 * which are broad and do not lie well. */
static ImkStatus
check_spots (double filled, const ImkShcentroidGrid *found, ImkError *error)
{
  if (filled <= BROAD || found->rms <= UNEVEN * found->pitch)
    return IMK_OK;
  return imk_error_set (error, IMK_ERROR_IMAGE,
      "There is no grid of spots in the frame: its %u peaks of a lattice fill "
      "%.0f %% of their cells at half their height; spots fill less than %.0f "
      "%%. Take a frame of a flatter wavefront. For scenes set columns, rows, "
      "pitch-x and pitch-y, with estimator=correlation.",
      found->n_spots, 100 * filled, 100 * BROAD);
}

/* A hexagonal lattice that was fitted to the spots of a square one has a side
 * and a diagonal of the square as its basis: takes both sides. */
static void
take_square (Lattice *l)
{
  Point a = l->step, b = l->step * l->turn, c = b - a;
  Lattice square = *l;

  if (!is_hexagonal (l))
    return;
  if (norm2 (b) >= norm2 (a))
    square.turn = c / a;
  else
    square = (Lattice){.origin = l->origin, .step = b, .turn = c / b};
  if (fabs (creal (square.turn)) <= 0.25)
    *l = square;
}

/* Structure that is no spots has peaks that propose a lattice, but hardly any
 * that are lit and stay. */
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
  double *distances, filled;
  float *room, lit = lit_strength (f, least);
  ImkStatus status = IMK_OK;

  if (lattice != IMK_SHCENTROID_LATTICE_HEXAGONAL)
    take_square (&l);
  while (n > 0 && f->best_peaks[n - 1].strength < lit)
    n--;
  imk_lattice_settle (f, f->best_peaks, n, &l);
  drop_lonely (f);
  while (n > 0 && f->best_peaks[n - 1].strength < AS_STRONG * f->strength)
    n--;
  imk_lattice_follow (f, f->best_peaks, n, &l);
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
    filled = median_filled (f, places, half, distances, room);
    found.rms =
        fit_spots (f, places, half, some_sites, some_places, distances, &l);
    report (f, &l, places, &found);
    found.n_unplaced = count_unplaced (f, &l);
    status = check_spots (filled, &found, error);
  } else {
    status = IMK_NO_MEMORY (error, "for %u spots.", n);
  }
  if (status == IMK_OK)
    *grid = found;
  else
    free (found.spots);
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
  bool known =
      frame && (frame->type == IMK_TYPE_U8 || frame->type == IMK_TYPE_F32);
  ImkType type = known ? frame->type : IMK_TYPE_U16;

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
  ImkStatus status;

  IMK_TRY (check (frame, lattice, least, error));
  status = imk_peaks_init (&f.peaks, frame, error);
  for (int k = 0; k < IMK_PEAKS_N_SCALES && status == IMK_OK; k++) {
    status = imk_peaks_next (&f.peaks, error);
    most = f.peaks.n > most ? f.peaks.n : most;
    if (status == IMK_OK)
      status = imk_lattice_search_scale (&f, lattice, error);
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
