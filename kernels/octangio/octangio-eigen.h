/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <complex.h>

#include "imk/octangio.h"

/* The eigenvectors of a Hermitian matrix with the largest eigenvalues.
 * @matrix: [n][n] complex, destroyed
 * @vectors: (out): [n_wanted][n] complex, of length 1 */
void imk_octangio_eigenvectors (double complex *matrix, uint32_t n,
    uint32_t n_wanted, double complex *vectors);
