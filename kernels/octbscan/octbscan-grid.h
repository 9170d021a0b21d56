/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The calibration of a camera as numbers in float64: where each wavenumber is,
 * and what each sample is multiplied by. */
#pragma once

#include "imk/octbscan.h"

/* Coefficients of a polynomial or a dispersion. */
enum { IMK_OCTBSCAN_MAX_COEFFICIENTS = 16 };

/* Returns: entry @at, with fraction, of a curve of @n values, 2 and more; the
 * first two and the last two go on in a line */
double imk_octbscan_between (const double *values, uint32_t n, double at);

/* Returns: IMK_ERROR_CONFIG with the number of the camera and the entry of the
 * calibration that is wrong */
ImkStatus imk_octbscan_grid_check (
    const ImkOctbscanConfig *config, uint32_t camera, ImkError *error);

/* Of checked cameras. Returns: IMK_ERROR_CONFIG when they have no common range
 * that k_range COMMON could take */
ImkStatus imk_octbscan_grid_check_range (
    const ImkOctbscanConfig *config, ImkError *error);

/* @k: (out): 1 / wavelength of the N pixels
 * Returns: FALSE, @k untouched, without wavelengths of a known unit */
bool imk_octbscan_grid_wavenumbers (
    const ImkOctbscanConfig *config, uint32_t camera, double *k);

/* For the M wavenumbers of a checked camera, in pixels from 0 to N - 1, with
 * the thesis' grid stretched as it is. */
ImkStatus imk_octbscan_grid_positions (const ImkOctbscanConfig *config,
    uint32_t camera, double *positions, ImkError *error);

/* Returns: um of vacuum from one depth to the next; 0 without wavelengths, or
 * with wavelengths of no known unit */
double imk_octbscan_grid_depth_step (
    const ImkOctbscanConfig *config, uint32_t camera);

/* @nm: (out): wavelengths at the first and the last wavenumber of the grid
 * Returns: false, @nm untouched, without wavelengths of a known unit */
bool imk_octbscan_grid_wavelengths (
    const ImkOctbscanConfig *config, uint32_t camera, double nm[2]);

/* u of phases and dispersion at the first and the last wavenumber of the grid:
 * -1 and 1 over those of the camera's pixels, whatever the grid covers. The
 * second is the smaller one where the grid runs the other way, and phases are
 * negative then. */
void imk_octbscan_grid_axis (
    const ImkOctbscanConfig *config, uint32_t camera, double axis[2]);

/* For the M wavenumbers: window (i) exp (i phase (i)) / gain. */
void imk_octbscan_grid_weights (
    const ImkOctbscanConfig *config, uint32_t camera, double *re, double *im);

/* Returns: the sum of the window over the M wavenumbers */
double imk_octbscan_grid_window_sum (const ImkOctbscanConfig *config);

/* For the N pixels. */
void imk_octbscan_grid_taper (const ImkOctbscanConfig *config, double *taper);
