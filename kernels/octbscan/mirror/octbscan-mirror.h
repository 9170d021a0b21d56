/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The calibration of a camera from the fringes of a mirror.
 *
 * A mirror at the distance z from zero delay gives over the pixels n the fringe
 * A(n) cos (phi(n)), with
 *
 *   phi(n) = a kappa(n) + side psi(n) + b          a rises with z
 *
 * kappa is the wavenumber, psi the dispersion between the two arms; side is 1,
 * or -1 beyond zero delay, where a spectrometer sees the negative of the phase.
 * One position gives kappa with psi = 0, as if there were no dispersion. Two
 * positions give both: all a, kappa and psi that fit best (S. Makita, T.
 * Fabritius and Y. Yasuno, "Full-range, high-speed, high-resolution 1-um
 * spectral-domain optical coherence tomography using BM-scan for volumetric
 * imaging of the human posterior eye", 2008, take the difference of two
 * phases). A camera whose wavelengths are known, of a lamp, needs one position
 * for psi. */
#pragma once

#include "imk/octbscan.h"

IMK_BEGIN_DECLS

#define IMK_OCTBSCAN_MAX_MIRRORS 16u
#define IMK_OCTBSCAN_MIRROR_TERMS \
  9u /* of polynomials: the degree is 8 at most */

/**
 * ImkOctbscanFringe: (of one camera at one position of the mirror)
 * @width: N
 * @side: 1: the side of the sample, which imk_octbscan_measure_mirror sets; the
 *   caller makes it -1 for a mirror beyond zero delay
 * @phase: [N] radians, unwrapped; rises
 * @amplitude: [N] counts
 * @bin: fringes over the spectrum
 * @snr_db: power of the fringe over that of the noise, both summed over the
 *   width of its peak */
typedef struct ImkOctbscanFringe {
  uint32_t width;
  int side;
  double *phase, *amplitude;
  double bin, snr_db;
} ImkOctbscanFringe;

/* What the wavenumbers are taken from. */
typedef enum ImkOctbscanMirrorFit {
  IMK_OCTBSCAN_MIRROR_FIT_PHASE, /* the fringes: a polynomial of degree 2 to 7,
                                  * the least whose rms phase error is within 5
                                  * % of that of two degrees more */
  IMK_OCTBSCAN_MIRROR_FIT_MAP,   /* the calibration that the camera has */
} ImkOctbscanMirrorFit;

/**
 * ImkOctbscanMirrorPosition: (what one position says)
 * @depth: of the peak, at scale 1; @depth_um: in vacuum, 0 without wavelengths
 * @width_before, @width: of the peak at half of its intensity, in depths, with
 *   the calibration of the camera and with the new one, with the window of the
 *   configuration; 0 where it has no two sides
 * @width_limit: the same of the amplitudes alone, with no phase error
 * @level_db: 20 log10 of the fringe's amplitude in counts, as an image shows it
 * @snr_db: see ImkOctbscanFringe
 * @phase_error: rms radians, weighted with the intensity */
typedef struct ImkOctbscanMirrorPosition {
  double depth, depth_um;
  double width_before, width, width_limit;
  double level_db, snr_db, phase_error;
} ImkOctbscanMirrorPosition;

/**
 * ImkOctbscanMirrors: (the calibration that was found)
 * @n_k, @k: values of IMK_OCTBSCAN_MAP_K_POLYNOMIAL; 0 with FIT_MAP. In 1 / the
 *   unit of the camera's wavelengths where it has some, -1 to 1 where not
 * @n_dispersion, @dispersion: as ImkOctbscanCamera has them; 0 from one
 *   position without wavelengths. d0 and d1 are 0
 * @phase_error: rms of all positions, radians
 * @n, @positions: in the order of the fringes */
typedef struct ImkOctbscanMirrors {
  uint32_t n_k, n_dispersion, n;
  double k[IMK_OCTBSCAN_MIRROR_TERMS];
  double dispersion[IMK_OCTBSCAN_MIRROR_TERMS];
  double phase_error;
  ImkOctbscanMirrorPosition positions[IMK_OCTBSCAN_MAX_MIRRORS];
} ImkOctbscanMirrors;

/**
 * imk_octbscan_measure_mirror: (the fringe of one camera)
 * @config: of the B-scan; a background FILE is taken off
 * @in: N x H, in host memory: A-scans of one mirror. Up to 64 of them become
 *   one fringe, whatever their phases are
 * @first_camera: of row 0
 * @camera: whose A-scans are looked at
 * @fringe: (out): free with imk_octbscan_fringe_clear
 *
 * Returns: IMK_ERROR_IMAGE, with a sentence, when the fringe is weak (less than
 *   20 dB over the noise), clipped (0.5 % of the samples have the largest
 * value), of two reflectors (a second one with a quarter of the amplitude), too
 * close to zero delay or to the last depth, or in less than a third of the
 * samples; IMK_ERROR_CONFIG, IMK_ERROR_MEMORY; @fringe untouched */
IMK_API ImkStatus imk_octbscan_measure_mirror (const ImkOctbscanConfig *config,
    const ImkImage *in, uint32_t first_camera, uint32_t camera,
    ImkOctbscanFringe *fringe, ImkError *error);

/**
 * imk_octbscan_solve_mirrors: (the calibration of one camera)
 * @config: the cameras as they are now
 * @fringes: @n of this camera, 1 to IMK_OCTBSCAN_MAX_MIRRORS
 *
 * Returns: IMK_ERROR_IMAGE, with a sentence, when phase errors are above 0.5
 *   radians, or two positions are too close to each other to tell wavenumber
 * and dispersion apart, or the wavenumbers are not monotonic; IMK_ERROR_CONFIG;
 *   IMK_ERROR_MEMORY; @found untouched */
IMK_API ImkStatus imk_octbscan_solve_mirrors (const ImkOctbscanConfig *config,
    uint32_t camera, const ImkOctbscanFringe *fringes, uint32_t n,
    ImkOctbscanMirrorFit fit, ImkOctbscanMirrors *found, ImkError *error);

/* @fringe may be all zero. */
IMK_API void imk_octbscan_fringe_clear (ImkOctbscanFringe *fringe);

IMK_END_DECLS
