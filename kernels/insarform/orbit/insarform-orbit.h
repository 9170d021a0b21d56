/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The phase of the earth in an interferogram, from the orbits of both images.
 *
 * A sample (column c, line l) of the reference is the point P on the ellipsoid,
 * or at a height above it, with |P - S1| = near_range + c range_step and (P -
 * S1) . V1 = 0, on the side of @look. S1 and V1 are position and velocity at
 * first_time + l line_time. The secondary sees it from S2 (t) with (P - S2) .
 * V2 = 0. With a signal exp (-i 4 pi R / wavelength) the phase of s1 conj (s2)
 * is
 *   4 pi / wavelength (|P - S2| - |P - S1|)
 * for images focused at zero Doppler. Orbits are Hermite interpolations of the
 * four state vectors around t.
 *
 * In a stack the columns and lines of both images are those of a third one, the
 * grid. P is then the point of the grid, and |P - S1| that of the reference
 * where (P - S1) . V1 = 0. */
#pragma once

#include <stdint.h>

#include "imk/api.h"
#include "imk/status.h"

IMK_BEGIN_DECLS

/* Fixed to the earth: s, m, m/s. */
typedef struct ImkInsarformState {
  double time, position[3], velocity[3];
} ImkInsarformState;

/**
 * ImkInsarformOrbit: (where an image was taken from)
 * @states: at least 4, by time
 * @first_time: of line 0, s
 * @line_time: from line to line, s
 * @near_range, @range_step: of column 0, and from column to column, m
 * @wavelength: m
 * @look: 1 to the right, -1 to the left
 *
 * Of an image on the grid of another one the states alone count. */
typedef struct ImkInsarformOrbit {
  const ImkInsarformState *states;
  uint32_t n_states;
  double first_time, line_time, near_range, range_step, wavelength;
  int32_t look;
} ImkInsarformOrbit;

/**
 * ImkInsarformSurface: (what heights are above)
 * @equatorial, @polar: radii of an ellipsoid of revolution, m; equal ones are a
 *   sphere */
typedef struct ImkInsarformSurface {
  double equatorial, polar;
} ImkInsarformSurface;

#define IMK_INSARFORM_WGS84 \
  (ImkInsarformSurface) \
  { \
    6378137, 6356752.314245 \
  }

typedef struct ImkInsarformEarth ImkInsarformEarth;

/* The largest difference between a line and its definition, rad, for heights
 * between these, m. */
#define IMK_INSARFORM_EARTH_ERROR 1e-3
#define IMK_INSARFORM_MIN_HEIGHT (-1000)
#define IMK_INSARFORM_MAX_HEIGHT 9000

/**
 * imk_insarform_earth_phase: (the definition)
 * @grid: of the image whose columns and lines count
 * @reference: (nullable): NULL: the image of @grid
 * @height: of the point, m
 * @phase: (out): rad, not wrapped
 *
 * Returns: IMK_ERROR_CONFIG when the orbits do not cover it, or no such point
 *   exists */
IMK_API ImkStatus imk_insarform_earth_phase (const ImkInsarformOrbit *grid,
    const ImkInsarformOrbit *reference, const ImkInsarformOrbit *secondary,
    const ImkInsarformSurface *surface, double column, double line,
    double height, double *phase, ImkError *error);

/**
 * imk_insarform_earth_new: (nodes, between which lines are interpolated)
 * @grid, @reference: as of imk_insarform_earth_phase
 * @width, @height: of the images
 * @self: (out): free with imk_insarform_earth_free
 *
 * The phase is computed at nodes and at six heights. Where it bends too much
 * between nodes, they are made denser, to every 4th sample.
 * Returns: as imk_insarform_earth_phase; IMK_ERROR_MEMORY */
IMK_API ImkStatus imk_insarform_earth_new (const ImkInsarformOrbit *grid,
    const ImkInsarformOrbit *reference, const ImkInsarformOrbit *secondary,
    const ImkInsarformSurface *surface, uint32_t width, uint32_t height,
    ImkInsarformEarth **self, ImkError *error);

/* The phases of @line, within half a turn of 0. @heights: (nullable): of all
 * columns; not finite: NaN. @n_threads: 0 for one a processor. From one thread
 * at a time. */
IMK_API void imk_insarform_earth_line (ImkInsarformEarth *self, uint32_t line,
    const float *heights, uint32_t n_threads, float *phase);

/* @self may be NULL. */
IMK_API void imk_insarform_earth_free (ImkInsarformEarth *self);

IMK_END_DECLS
