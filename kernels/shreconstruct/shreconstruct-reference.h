/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The definition: the formulas of imk/shreconstruct.h in float64. All invalid
 * cells are excluded at once. */
#pragma once

#include "imk/shreconstruct.h"

/* @q, @u: the past, newest first, [MAX_TERMS + 1][n_modes]; @slopes_before
 * [2 n_cells] and @commands_before [n_commands]: of the frame before;
 * @c0_before [n_commands]: the c0 that these commands are about
 * @inverse: (nullable): pinv (M) [n_modes][n_commands]
 * @scale: k of R = k P D^T; read with IMK_SHRECONSTRUCT_INVALID_EXCLUDE */
typedef struct ImkShreconstructPast {
  double *q, *u, *slopes_before, *commands_before, *c0_before;
  const double *inverse;
  double scale;
} ImkShreconstructPast;

void imk_shreconstruct_reference (const ImkShreconstructConfig *config,
    ImkShreconstructPast *past, const float *slopes, const uint8_t *flags,
    double *commands);

/* Where the others make all modes, rows of M of dead actuators count as 0.
 * @inverse: (out): pinv (M) = (M^T M)^-1 M^T [n_modes][n_commands] */
void imk_shreconstruct_reference_invert (
    const ImkShreconstructConfig *config, double *inverse);
