/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much of the light in the cells is not that of their spots. */
#pragma once

#include "shcentroid/shcentroid.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * imk_shcentroid_background: (light outside the spots, of one frame)
 * @config: one that imk_shcentroid_new took, with all it points to; its frame,
 *   cells, calibration, threshold, brightest and min_flux are looked at
 * @frame: as for imk_shcentroid_process, in host memory
 * @share: (out): 0 to 1; -1 when no cell has a spot
 *
 * Of a cell of n pixels with the flux m00 = sum p, p the pixels after
 * calibration and threshold, before weight and power, b is the median of p over
 * the outermost pixels, and b n / m00 is its share. That of the frame is the
 * median over the cells with flux and a spot: its largest value is above the
 * median of the outermost ones by more than 4 times the distance of their
 * quartiles (and a count of u8 or u16). A centroid moves by 1 - share of what
 * its spot does. CPU only; some 20 ns a pixel. Returns: IMK_ERROR_MEMORY,
 * IMK_ERROR_IMAGE; @share untouched */
ImkStatus imk_shcentroid_background (const ImkShcentroidConfig *config,
    const ImkImage *frame, double *share, ImkError *error);

#ifdef __cplusplus
}
#endif
