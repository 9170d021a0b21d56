/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The definition of an interferogram: the sums of imk/insarform.h over all
 * samples of each cell and each window, in float64, and what
 * insarform-fringes.h and insarform-filter.h say, by sums instead of fast
 * transforms. The tests compare the CPU backend with it. */
#pragma once

#include "imk/insarform.h"

/* @reference, @secondary: the whole images
 * @phase: (nullable): f32 or f64, to be removed; not with a fringe_window
 * @out: (out): f64, IMK_INSARFORM_N_CHANNELS channels, width / looks_x x height
 *   / looks_y */
void imk_insarform_reference (const ImkInsarformConfig *config,
    const ImkImage *reference, const ImkImage *secondary, const ImkImage *phase,
    ImkImage *out);

/* @phase: (out): f64, of the size of the images: what is removed with a
 * fringe_window */
void imk_insarform_reference_fringes (const ImkInsarformConfig *config,
    const ImkImage *reference, const ImkImage *secondary, ImkImage *phase);

/* The images whose bands are common, @out_reference and @out_secondary: CF32.
 * @phase: f32 or f64, that is removed */
void imk_insarform_reference_band (const ImkInsarformConfig *config,
    const ImkImage *reference, const ImkImage *secondary, const ImkImage *phase,
    ImkImage *out_reference, ImkImage *out_secondary);

/* The sums of a transform, in place. @data: double complex [n][n]; @sign: -1
 * forward, 1 backward */
void imk_insarform_reference_transform (void *data, uint32_t n, int sign);

/* Filters @cells, f64, IMK_INSARFORM_N_CHANNELS channels, in place. */
void imk_insarform_reference_filter (
    const ImkInsarformConfig *config, ImkImage *cells);
