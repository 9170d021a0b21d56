/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Polynomials over -1 to 1, as sums of Legendre's: these stay apart where sums
 * of powers of a degree of 8 lose half of the digits. */
#pragma once

#include "imk/octbscan-mirror.h"

enum { MIRROR_TERMS = IMK_OCTBSCAN_MIRROR_TERMS };

/* Returns: the sum of @n_terms with these factors at @x */
double imk_mirror_at (const double *factors, uint32_t n_terms, double x);

/* The factors of the least squares of weight (y - sum)^2 over @n points.
 * Returns: FALSE when the points do not determine them */
bool imk_mirror_fit (const double *x, const double *y, const double *weight,
    uint32_t n, uint32_t n_terms, double *factors);

/* Factors of powers: sum of powers[i] x^i. */
void imk_mirror_powers (
    const double *factors, uint32_t n_terms, double *powers);
