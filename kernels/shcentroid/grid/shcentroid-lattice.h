/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What finding a grid is made of: peaks, a lattice, and which peak is on which
 * of its points. */
#pragma once

#include <complex.h>
#include <math.h>

#include "imk/shcentroid-grid.h"
#include "shcentroid/grid/shcentroid-peaks.h"

/* A point (x, y) is the complex number x + i y: then a lattice is one number
 * for its pitch and rotation, and fitting it is linear. */
typedef double complex Point;

#define PI 3.14159265358979323846
#define TOLERANCE 0.2 /* of the pitch, within which a peak is at its point */

enum { LEAST_SPOTS = 7 };

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

static inline bool
is_hexagonal (const Lattice *l)
{
  return creal (l->turn) > 0.25;
}

static inline Point
unit (double angle)
{
  return cos (angle) + I * sin (angle);
}

static inline Point
place_of (const Lattice *l, double i, double j)
{
  return l->origin + l->step * (i + j * l->turn);
}

static inline double
norm2 (Point z) /* cabs () takes care of overflow, and its time */
{
  return creal (z) * creal (z) + cimag (z) * cimag (z);
}

static inline Point
peak_at (const ImkPeak *peak)
{
  return peak->x + I * peak->y;
}

/* In the order of qsort (): by row, column, and the stronger peak first. */
int imk_lattice_compare_sites (const void *a, const void *b);

/* The point of the lattice next to a place, as (i, j). */
void imk_lattice_nearest_point (
    const Lattice *l, Point place, double *i, double *j);

/* The sites are in order. */
bool imk_lattice_has_site (const Finder *f, int32_t i, int32_t j);

/* Which part of the neighbours of the sites are sites too: a lattice of half
 * the pitch has every peak on a point, but most of its points empty. */
double imk_lattice_occupancy (const Finder *f, const Lattice *l);

/* Puts @peaks on the points of the lattice that @l->step proposes, and fits
 * it to them. */
void imk_lattice_settle (
    Finder *f, const ImkPeak *peaks, uint32_t n, Lattice *l);

/* Least squares over the sites with both directions free: lenses, tilted
 * detectors and astigmatism stretch and shear a lattice. Nothing changes when
 * the sites do not span a plane. */
void imk_lattice_fit_freely (
    const Site *sites, uint32_t n, const Point *places, Lattice *l);

/* Adds the peaks, of @n strong ones, that are neighbours of sites where the
 * lattice is bent too far from its points: each where the last step leads, and
 * up to half a pitch from its point. */
void imk_lattice_follow (
    Finder *f, const ImkPeak *peaks, uint32_t n, Lattice *l);

/* Keeps the best lattice among the peaks of a scale, if it is better than that
 * of those before. */
ImkStatus imk_lattice_search_scale (
    Finder *f, ImkShcentroidLattice lattice, ImkError *error);
