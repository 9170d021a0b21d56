/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shreconstruct/shreconstruct-private.h"

/* @d, @r: [n_rows][n_modes]: D M, and R transposed; n_rows is 2 n_cells
 * @config, @is_modal: that they are of, by imk_shreconstruct_find_fit_as () */
typedef struct ImkShreconstructPair {
  const ImkShreconstructConfig *config;
  bool is_modal;
  const float *d, *r;
  size_t n_rows;
  uint32_t n_modes;
} ImkShreconstructPair;

/* @scale: (out): k of R = k P D^T with a symmetric P
 * @doubt: (out): set where P is not that of least squares, and k is a guess
 * Returns: IMK_ERROR_CONFIG where D R is not symmetric, or k is below 0;
 *   IMK_ERROR_MEMORY */
ImkStatus imk_shreconstruct_find_scale (const ImkShreconstructPair *pair,
    double *scale, ImkError *doubt, ImkError *error);
