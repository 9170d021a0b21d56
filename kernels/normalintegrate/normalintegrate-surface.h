/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Polynomials of the place, fitted to heights by least squares in float64. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "imk/normalintegrate.h"

typedef enum ImkNormalintegrateModel {
  IMK_NORMALINTEGRATE_OFFSET,    /* 1 */
  IMK_NORMALINTEGRATE_TILT,      /* 1, x, y */
  IMK_NORMALINTEGRATE_PARABOLIC, /* 1, x, y, x^2, x y, y^2 */
  IMK_NORMALINTEGRATE_BOWL,      /* 1, x, y, r^2, r^4 */
} ImkNormalintegrateModel;

/* terms * (1, u, v, u^2, u v, v^2, r^4) with u = (x - middle_x) / unit; x to
 * the right, y up. */
typedef struct ImkNormalintegrateSurface {
  double middle_x, middle_y, unit;
  double terms[IMK_NORMALINTEGRATE_N_TERMS];
} ImkNormalintegrateSurface;

/* Where a height was measured. */
typedef struct ImkNormalintegratePlace {
  double x, y, height;
} ImkNormalintegratePlace;

/* What is known of a fit. */
typedef struct ImkNormalintegrateFit {
  double deviation; /* of the places that fit, robust */
  double share;     /* of places that fit */
} ImkNormalintegrateFit;

/**
 * imk_normalintegrate_fit:
 * @least: a term is not determined where this share of its norm, or less, is
 *   not that of the terms before it
 * @fit: (out) (nullable): makes the fit robust: what is off by more than 4.685
 *   deviations has no weight (Tukey's biweight)
 * @determined: (out): false if the places do not tell the terms apart; @surface
 *   is untouched then
 *
 * The surface has the middle of the places, but that of the bowl is at 0.
 * Returns: IMK_ERROR_MEMORY */
ImkStatus imk_normalintegrate_fit (ImkNormalintegrateModel model,
    const ImkNormalintegratePlace *places, size_t n, double least,
    ImkNormalintegrateSurface *surface, ImkNormalintegrateFit *fit,
    bool *determined, ImkError *error);

double imk_normalintegrate_surface_at (
    const ImkNormalintegrateSurface *s, double x, double y);

/* Adds @s to @to, of another middle and unit. The term of r^4 needs one
 * middle. */
void imk_normalintegrate_surface_add (
    ImkNormalintegrateSurface *to, const ImkNormalintegrateSurface *s);
