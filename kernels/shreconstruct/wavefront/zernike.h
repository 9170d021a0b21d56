/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdint.h>

/* Zernike mode @j of Noll (1 is piston), with an rms of 1 over the unit circle,
 * at (@x, @y). Outside of the circle it goes on as the same polynomial. */
double imk_zernike (uint32_t j, double x, double y);

/* Points of Gauss and Legendre along an edge from -1 to 1, for means of
 * polynomials. */
typedef struct ImkZernikeEdge {
  uint32_t n;
  double at[32], weights[32]; /* the sum of weights is 1 */
} ImkZernikeEdge;

/* Exact for modes up to @j, which is at most 2000. */
void imk_zernike_edge_init (ImkZernikeEdge *edge, uint32_t j);

/* Mode @j across the square from (@x - @half, @y - @half) to (@x + @half,
 * @y + @half): mean differences between its right and left edges, and between
 * the edges of large and small y. */
void imk_zernike_across (const ImkZernikeEdge *edge, uint32_t j, double x,
    double y, double half, double *dx, double *dy);
