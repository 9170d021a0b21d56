/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The dispersion of an instrument from one of its images: what is right makes
 * it sharp. */
#pragma once

#include "octbscan/octbscan.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * ImkOctbscanDispersion: (what was found)
 * @d2, @d3: radians, see ImkOctbscanCamera
 * @before, @after: sharpness with the coefficients of the camera, and with
 *   these: mean of I^2 over the square of the mean of I, over the A-scans and
 *   the depths of the crop, of those from 4 s on
 */
typedef struct ImkOctbscanDispersion {
  double d2, d3;
  double before, after;
} ImkOctbscanDispersion;

/**
 * imk_octbscan_estimate_dispersion: (of one camera from a B-scan)
 * @config: of the B-scan; backgrounds that remember others are taken to be the
 *   mean of this one
 * @in: N x H, in host memory
 * @first_camera: of row 0
 * @camera: whose A-scans are looked at; its other coefficients stay
 * @range: d2 is sought in -range .. range, d3 in the half of that; 0 for 60
 *
 * Spectra are resampled once; a few hundred pairs of d2 and d3 are tried on at
 * most 96 A-scans, first far apart, then about the best. Takes some tenths of a
 * second. Between two images that are equally sharp it cannot tell: there must
 * be layers or points in them.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_IMAGE, also for an image that is dark;
 *   IMK_ERROR_MEMORY; @found untouched */
ImkStatus imk_octbscan_estimate_dispersion (const ImkOctbscanConfig *config,
    const ImkImage *in, uint32_t first_camera, uint32_t camera, double range,
    ImkOctbscanDispersion *found, ImkError *error);

#ifdef __cplusplus
}
#endif
