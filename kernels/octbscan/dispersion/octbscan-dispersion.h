/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The dispersion of an instrument from one of its images: what is right makes
 * it sharp. */
#pragma once

#include "imk/octbscan.h"

IMK_BEGIN_DECLS

/* Points of a sharpness curve, at equal distances from -range to range. */
#define IMK_OCTBSCAN_CURVE 81u

/**
 * ImkOctbscanDispersion: (what was found)
 * @d2, @d3: radians, see ImkOctbscanCamera
 * @before, @after: sharpness with the coefficients of the camera, and with
 *   these: mean of I^2 over the square of the mean of I, over the A-scans and
 *   the depths of the crop, of those from 4 s on
 * @range: of d2, that was searched
 * @curve: sharpness over d2 from -range to range, with the d3 that was found
 * @confidence: 0 to 1. With g how far the largest of @curve is above its
 * median, beside the median, and n the intensities that were measured, it is g
 * / (g + 0.05 + 8 / sqrt (n)). Noise stays below 0.4
 * @residue: depths at the top, at scale 1, that were left out, because they
 * have what is left of the DC
 */
typedef struct ImkOctbscanDispersion {
  double d2, d3;
  double before, after;
  double range, confidence;
  double curve[IMK_OCTBSCAN_CURVE];
  uint32_t residue;
} ImkOctbscanDispersion;

/* An estimate with less is refused. */
#define IMK_OCTBSCAN_LEAST_CONFIDENCE 0.5

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
 * second.
 *
 * What is left of the DC is sharpest without any phase, at depth 0, and falls
 * off from there. The depths up to where that ends, at most an eighth of all,
 * are taken out of the spectra before phases are tried. With a fixed pattern
 * the minimum-variance mean line of these A-scans is taken off for each pair,
 * FILE included: a file holds for the dispersion with which it was recorded.
 * Returns: IMK_OK; IMK_ERROR_IMAGE when nothing in the image tells: it is dark
 *   (@found untouched); the confidence is below 0.5, the best value is at an
 * end of the range, the even and the odd A-scans find a d2 that is more than
 * 2 points of the curve apart, or the upper and the lower half of the light,
 * each with that confidence, more than 3, as with a wrong map (@found has the
 * measures, with the d2 and d3 of the camera). IMK_ERROR_CONFIG,
 * IMK_ERROR_MEMORY; @found untouched */
IMK_API ImkStatus imk_octbscan_estimate_dispersion (
    const ImkOctbscanConfig *config, const ImkImage *in, uint32_t first_camera,
    uint32_t camera, double range, ImkOctbscanDispersion *found,
    ImkError *error);

IMK_END_DECLS
