/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The definition of a centroid: pixel by pixel, in long double, without
 * regard to speed. The tests compare every backend with it. It has no memory of
 * earlier frames, so it leaves out tracking, `invalid=hold`, the mean tilt, and
 * correlation; samples must be finite. */
#pragma once

#include "imk/shcentroid.h"

/**
 * imk_shcentroid_reference: (measures one cell)
 * @in: u8, u16 or f32, width x height of @config
 * @cell: its index
 * @row: the fields of the cell, by ImkShcentroidField */
void imk_shcentroid_reference (const ImkShcentroidConfig *config,
    const ImkImage *in, uint32_t cell, double row[IMK_SHCENTROID_N_FIELDS]);

/* Returns: the threshold T of the cell, -INFINITY without one */
double imk_shcentroid_reference_threshold (
    const ImkShcentroidConfig *config, const ImkImage *in, uint32_t cell);

/* Variances are the difference of sums about the corner of the cell. Where one
 * pixel has nearly all the light and others the noise, they lose digits.
 * Returns: how far @field of a backend may be off for that; 0 for all others */
double imk_shcentroid_reference_rounding (const ImkShcentroidConfig *config,
    const ImkImage *in, uint32_t cell, ImkShcentroidField field);
