/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "imk/shcentroid.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * ImkShcentroidOptics: (a sensor as its data sheet describes it)
 * @aperture_mm: diameter of the beam on the lenslets; 0 when not known
 * @lenslet_pitch_um: from one lenslet to the next
 * @pixel_size_um: of the detector, as lenslets see it: divided by the
 *   magnification of a relay between them
 * @focal_length_mm: of the lenslets */
typedef struct ImkShcentroidOptics {
  double aperture_mm, lenslet_pitch_um, pixel_size_um, focal_length_mm;
} ImkShcentroidOptics;

/**
 * imk_shcentroid_optics_grid: (from lengths to pixels)
 * @config: width, height, x0 and y0 are read; x0, y0, pitches, columns and
 *   rows are written
 *
 * Mocci et al. 2020: floor (aperture / lenslet pitch) columns and rows (eq.
 * 1), of a pitch of lenslet pitch / pixel size pixels (eq. 2), together pitch
 * times columns pixels wide (eq. 5). That square is in the middle of the
 * frame, moved by what x0 and y0 were. Cells may reach beyond the frame, but
 * none may be outside.
 * Returns: IMK_ERROR_CONFIG; @config untouched */
IMK_API ImkStatus imk_shcentroid_optics_grid (const ImkShcentroidOptics *optics,
    ImkShcentroidConfig *config, ImkError *error);

/**
 * imk_shcentroid_optics_slope: (radians a pixel)
 * @scale: (out): pixel size / focal length: the tilt of the wavefront that
 *   moves a spot by one pixel, for small angles
 * Returns: IMK_ERROR_CONFIG when one of them is not known; @scale untouched */
IMK_API ImkStatus imk_shcentroid_optics_slope (
    const ImkShcentroidOptics *optics, double *scale, ImkError *error);

#ifdef __cplusplus
}
#endif
