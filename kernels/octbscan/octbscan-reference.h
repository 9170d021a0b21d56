/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The chain of octbscan.h in float64, by the sums of its definition: slow, and
 * written from the definition alone. */
#pragma once

#include "imk/octbscan.h"

/* @x: H spectra of N, the raw samples; @z: (out) H rows of n_depths complex
 * numbers, real then imaginary */
void imk_octbscan_reference (const ImkOctbscanConfig *config,
    uint32_t first_camera, const double *x, double *z);

/* Whether a spectrum of @n samples has an A-scan: all are numbers up to
 * 1e15. */
bool imk_octbscan_reference_is_sound (const double *x, uint32_t n);

/* Where wavenumber @i is, in pixels. */
double imk_octbscan_reference_position (const ImkOctbscanConfig *config,
    const ImkOctbscanCamera *camera, uint32_t i);
