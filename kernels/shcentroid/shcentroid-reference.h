/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The definition of a centroid: pixel by pixel, in long double, without
 * regard to speed. The tests compare every backend with it. It has no memory of
 * earlier frames, so it leaves out tracking, `invalid=hold` and the mean tilt;
 * samples must be finite. The matched filter is compared with a fit of its
 * model, in the tests. */
#pragma once

#include "imk/shcentroid.h"

/**
 * imk_shcentroid_reference: (measures one cell)
 * @in: u8, u16 or f32, width x height of @config
 * @cell: its index
 * @row: the fields of the cell, by ImkShcentroidField */
void imk_shcentroid_reference (const ImkShcentroidConfig *config,
    const ImkImage *in, uint32_t cell, double row[IMK_SHCENTROID_N_FIELDS]);

/* Returns: a calibrated pixel, in float32 as the backends have it; NaN where
 * bad */
float imk_shcentroid_reference_pixel (const ImkShcentroidConfig *config,
    const ImkImage *in, int64_t x, int64_t y);

/* Returns: the threshold T of the cell, -INFINITY without one */
double imk_shcentroid_reference_threshold (
    const ImkShcentroidConfig *config, const ImkImage *in, uint32_t cell);

/* Variances are the difference of sums about the corner of the cell. Where one
 * pixel has nearly all the light and others the noise, they lose digits.
 * Returns: how far @field of a backend may be off for that; 0 for all others */
double imk_shcentroid_reference_rounding (const ImkShcentroidConfig *config,
    const ImkImage *in, uint32_t cell, ImkShcentroidField field);

/* A cell with correlation, in float64. */
typedef struct ImkShcentroidReferenceMatch {
  bool found;
  double x, y, flux;
  double var_x, var_y; /* NaN of all but the first cell, if it is wide: slow */
  double second;       /* best score of another shift, as a part of the best */
} ImkShcentroidReferenceMatch;

ImkShcentroidReferenceMatch imk_shcentroid_reference_match (
    const ImkShcentroidConfig *config, const ImkImage *in, uint32_t cell);

/* @pixels: room for the template of @cell as a file has it; NaN where bad */
void imk_shcentroid_reference_template (const ImkShcentroidConfig *config,
    const ImkImage *in, uint32_t cell, float *pixels);

/* A cell of pupil images: x, y, dx, dy, flux, var_x, var_y and flags of @row; 0
 * for the others. Cells have no min_flux, flags or reference of their own. */
void imk_shcentroid_reference_pupils (const ImkShcentroidConfig *config,
    const ImkImage *in, uint32_t cell, double row[IMK_SHCENTROID_N_FIELDS]);
