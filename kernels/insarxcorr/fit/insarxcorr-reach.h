/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How good a fit is where it has no points: at the corners of the image. */
#pragma once

#include <stdbool.h>

#include "imk/insarxcorr-fit.h"

IMK_BEGIN_DECLS

/* Where the points of a fit lie. A plane is undetermined across a strip of
 * points, also across a diagonal one. */
typedef struct ImkInsarxcorrArea {
  double x_least, x_most, y_least, y_most; /* the image, columns and lines */
  double overlap; /* area of all templates / that of the image, at least 1:
                   * offsets of templates that overlap have one error */
} ImkInsarxcorrArea;

/* What one axis of the plane leaves: a field of the terms m1 to m6. */
typedef struct ImkInsarxcorrCurve {
  double rms;     /* of the field over the points, pixels */
  double largest; /* of its absolute values in the image, pixels */
  bool is_curved; /* @largest is above 0.1 pixel, and the field is significant:
                   * its F ratio is above 10 times the overlap */
} ImkInsarxcorrCurve;

/**
 * ImkInsarxcorrReach: (how far a fit can be trusted)
 * @span: of the points in their narrowest direction, as a part of the image:
 *   sqrt (12 times the least variance), columns and lines scaled to 1; 1 for
 *   points all over the image
 * @leverage: error of a plane at the worst corner of the image / that of one
 *   offset: sqrt (overlap a' (A'A)^-1 a), a = (1, x, y) of the corner and rows
 *   of A those of the points; 1e6 at most
 * @gain: the same / the error in the middle of the points
 * @range, @azimuth: a curve that the plane cannot follow */
typedef struct ImkInsarxcorrReach {
  double span, leverage, gain;
  ImkInsarxcorrCurve range, azimuth;
} ImkInsarxcorrReach;

/**
 * imk_insarxcorr_reach: (measures it)
 * @points: those of the @fit
 * @area: with %NULL the rectangle of the points, without overlap
 *
 * Points whose residual is above 0.5 pixel and 6 times the scatter do not
 * count. The curve is that of imk_insarxcorr_fit with 6 terms through the
 * residuals; its F ratio is n rms^2 / 6 over the square of the remaining
 * scatter (median). With fewer than 24 points it is 0. Returns:
 * IMK_ERROR_MEMORY, @reach untouched */
IMK_API ImkStatus imk_insarxcorr_reach (const ImkInsarxcorrPoint *points,
    size_t n_points, const ImkInsarxcorrFit *fit, const ImkInsarxcorrArea *area,
    ImkInsarxcorrReach *reach, ImkError *error);

IMK_END_DECLS
