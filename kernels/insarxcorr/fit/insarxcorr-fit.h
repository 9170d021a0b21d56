/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A smooth field through measured offsets, as GMTSAR's fitoffset.csh makes it
 * with GMT's `trend2d -Nnr`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "imk/status.h"

IMK_BEGIN_DECLS

#define IMK_INSARXCORR_FIT_MIN_POINTS 8
#define IMK_INSARXCORR_FIT_MAX_TERMS 10

/* One measurement: offset (dx, dy) of the secondary at (x, y). */
typedef struct ImkInsarxcorrPoint {
  double x, y, dx, dy;
} ImkInsarxcorrPoint;

/**
 * ImkInsarxcorrTrend: (one axis of the field)
 * @terms: coefficients m1..m10 of
 *   m1 + m2 u + m3 v + m4 u v + m5 (2 u^2 - 1) + m6 (2 v^2 - 1)
 *   + m7 (4 u^3 - 3 u) + m8 (2 u^2 - 1) v + m9 u (2 v^2 - 1) + m10 (4 v^3 - 3
 * v) with u = (2 x - (xmin + xmax)) / (xmax - xmin) over the points, v alike; 0
 *   for those that were not wanted
 * @shift, @stretch, @a_stretch: the part of m1, m2, m3 as
 *   shift + stretch x + a_stretch y
 * @rms: of what the points differ from that plane, weighted by how well they
 *   fit the whole field
 * @n_iterations: of the weights */
typedef struct ImkInsarxcorrTrend {
  double terms[IMK_INSARXCORR_FIT_MAX_TERMS];
  double shift, stretch, a_stretch;
  double rms;
  int n_iterations;
} ImkInsarxcorrTrend;

/* Both axes. The points lie within [@x_least, @x_most] x [@y_least, @y_most];
 * beyond, the field is extrapolated. */
typedef struct ImkInsarxcorrFit {
  ImkInsarxcorrTrend range, azimuth;
  size_t n_points;
  double x_least, x_most, y_least, y_most;
} ImkInsarxcorrFit;

/**
 * imk_insarxcorr_fit: (fits both axes)
 * @points: those that are to be trusted
 * @range_terms, @azimuth_terms: 1..10; GMTSAR takes 1, 2 or 3
 * @fit: (out):
 *
 * Least squares, then weights 1 for residuals |r| up to k = 1.5 * 1.4826 times
 * their median and 2 k / |r| - (k / r)^2 beyond, again and again for as long as
 * chi, the weighted variance, gets smaller: P (F > chi / last chi) >= 0.51.
 * Directions in which the points say nothing (eigenvalues of the normal
 * equations below 1e-6 of the largest) stay 0. All in float64.
 * Returns: IMK_ERROR_CONFIG: terms out of range; fewer points than 8, or not
 *   more than terms; points that are not finite. IMK_ERROR_MEMORY. @fit is
 *   untouched then */
IMK_API ImkStatus imk_insarxcorr_fit (const ImkInsarxcorrPoint *points,
    size_t n_points, int range_terms, int azimuth_terms, ImkInsarxcorrFit *fit,
    ImkError *error);

/* Returns: shift + stretch x + a_stretch y of an axis, lines or columns: the
 * plane that is printed, without further terms */
IMK_API double imk_insarxcorr_fit_at (
    const ImkInsarxcorrFit *fit, bool is_azimuth, double x, double y);

#define IMK_INSARXCORR_FIT_TEXT_SIZE 512

/**
 * imk_insarxcorr_fit_print: (the eight lines that fitoffset.csh prints)
 * @text: (out): rshift, sub_int_r, stretch_r, a_stretch_r, then the same of
 *   azimuth; at least IMK_INSARXCORR_FIT_TEXT_SIZE bytes
 *
 * The whole and the fractional part are taken from the shift as it is printed
 * with six digits, and a negative shift is split into n - 1 and 1 + fraction
 * even when it is whole, as there.
 * Returns: bytes without the terminating NUL */
IMK_API size_t imk_insarxcorr_fit_print (
    const ImkInsarxcorrFit *fit, char *text);

IMK_END_DECLS
