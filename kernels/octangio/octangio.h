/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Flow from repeated B-scans of optical coherence tomography: what changes
 * between B-scans of one place is blood, what does not is tissue.
 *
 * N repeats of A x D pixels, A A-scans of D depths. Z_r is the complex value of
 * a pixel in repeat r, A_r = |Z_r| its amplitude. P_n is the mean power of the
 * noise, so that its real and its imaginary part have the variance P_n / 2
 * each.
 *
 *   method                 of each pixel                      static tissue
 *   MEAN                   (1/N) sum A_r^2                    A^2 + P_n
 *   SPECKLE_VARIANCE       (1/N) sum (A_r - mean A)^2         (N-1)/N P_n / 2
 *   DECORRELATION          1 - 1/(N-1) sum over pairs of      P_n / (2 A^2)
 *                            2 A_r A_r+1 / (A_r^2 + A_r+1^2)
 *   COMPLEX_DECORRELATION  1 - |S| / E                        P_n / (A^2 + P_n)
 *   DOPPLER                scale arg S                        rms R
 *   EIGEN                  (1/N) power of Z without the       (N-K)/N P_n
 *                            K strongest eigenvectors
 *
 *   R = scale sqrt (P_n / (A^2 W)) / (N-1)
 *   S = sum over the window and the pairs of Z_r+1 conj (Z_r)
 *   E = sum over the same of (|Z_r|^2 + |Z_r+1|^2) / 2
 *
 * W pixels in the window. The noise terms hold for A^2 well above P_n.
 *
 * The bulk motion of a pair of A-scans is the phase where most of their depths
 * are. P_g are sums of Z_r+1 conj (Z_r) over 8 depths each:
 *
 *   phi_0 = arg sum P_g
 *   phi_i = arg sum w_i P_g, i = 1, 2, 3
 *   w_i = max (0, (cos (arg P_g - phi_i-1) - cos L_i) / (1 - cos L_i))
 *   L_i = pi / 4, pi / 8, pi / 16
 *
 * S is the sum of Z_r+1 conj (Z_r) exp (-i phi_3) then.
 *
 * DECORRELATION of B bands is the mean of that of each band, whose A_r is that
 * of Z_r through a Gaussian of the wavenumbers. Its middle lies at b + 1/2 of
 * the B parts of the spectrum, and its full width at half of its maximum is one
 * part. In depths, s for each sample of the spectrum:
 *
 *   Z_b (z) = sum w (j) Z (z - j) exp (2 pi i (b + 1/2) (z - j) / (B s))
 *   w (j) = exp (-j^2 / (2 sigma^2)), j from -4 sigma to 4 sigma, rounded up
 *   sigma = B s sqrt (2 ln 2) / pi
 *
 * Neighbouring bands share 0.4 % of their noise, so that the noise falls with
 * the square root of B, and the resolution in depth with B.
 *
 * Sources: A. Mariampillai et al., "Speckle variance detection of
 * microvasculature using swept-source optical coherence tomography" (2008);
 * Y. Jia et al., "Split-spectrum amplitude-decorrelation angiography with
 * optical coherence tomography" (2012), with its split of the spectrum for B
 * above 1; A.
 * S. Nam, I. Chico-Calero and B. J. Vakoc, "Complex differential variance
 * algorithm for optical coherence tomography angiography" (2014), here without
 * its square root; C. Kasai, K. Namekawa, A. Koyano and R. Omoto, "Real-time
 * two-dimensional blood flow imaging using an autocorrelation technique"
 * (1985); V. X. D. Yang et al., "Improved phase-resolved optical Doppler
 * tomography using the Kasai velocity estimator and histogram segmentation"
 * (2002), for the bulk motion by the most frequent of such phases, here found
 * by Y. Cheng, "Mean shift, mode seeking, and clustering" (1995); S. Yousefi,
 * Z. Zhi and R. K. Wang, "Eigendecomposition-based clutter filtering technique
 * for optical microangiography" (2011). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "imk/backend.h"
#include "imk/image.h"

IMK_BEGIN_DECLS

typedef enum ImkOctangioMethod {
  IMK_OCTANGIO_MEAN,
  IMK_OCTANGIO_SPECKLE_VARIANCE,
  IMK_OCTANGIO_DECORRELATION,
  IMK_OCTANGIO_COMPLEX_DECORRELATION,
  IMK_OCTANGIO_DOPPLER,
  IMK_OCTANGIO_EIGEN,
} ImkOctangioMethod;

/* Which pixels are compared by the methods of pairs. */
typedef enum ImkOctangioPairs {
  IMK_OCTANGIO_PAIRS_BSCANS, /* the same pixel of repeats r and r + 1 */
  IMK_OCTANGIO_PAIRS_ASCANS, /* A-scans a and a + 1 of each repeat; the last
                              * A-scan has the pair before it. DOPPLER alone */
} ImkOctangioPairs;

typedef enum ImkOctangioProjection {
  IMK_OCTANGIO_PROJECTION_MEAN,
  IMK_OCTANGIO_PROJECTION_MAXIMUM,
} ImkOctangioProjection;

#define IMK_OCTANGIO_MAX_REPEATS 16u
#define IMK_OCTANGIO_MAX_SIDE 65535u
#define IMK_OCTANGIO_MAX_WINDOW 64u
#define IMK_OCTANGIO_MAX_BANDS 16u
#define IMK_OCTANGIO_MAX_SCALE 64u

/**
 * ImkOctangioConfig: (one set of repeats)
 * @size: set by imk_octangio_config_init, see imk/api.h
 * @n_ascans, @n_depths, @n_repeats: A, D, N; N is at least 2, but for MEAN and
 *   PAIRS_ASCANS
 * @is_complex: Z as [A][D][2]; else intensities as [D][A], which
 *   COMPLEX_DECORRELATION, DOPPLER and EIGEN cannot use
 * @bulk_motion: the phase between two A-scans that most of their depths have is
 *   taken off, as above. Of COMPLEX_DECORRELATION and DOPPLER
 * @lateral, @axial: pixels of the window, 1 to 64; cut off at the edges. EIGEN
 *   finds the eigenvectors of an A-scan over @lateral A-scans and all depths
 * @n_tissue: K, below N
 * @floor: pixels with a mean intensity below have 0
 * @scale: of DOPPLER, such as mm/s for a radian
 * @n_threads: on the CPU, 0 for one a processor; no result depends on it
 * @n_bands: B, 1 to 16; above 1 for DECORRELATION of complex B-scans
 * @depth_scale: s, depths of Z for each sample of the spectrum, 1 to 64
 * @finds_surface: imk_octangio_surface () will be called */
typedef struct ImkOctangioConfig {
  size_t size;
  uint32_t n_ascans, n_depths, n_repeats;
  bool is_complex;
  ImkOctangioMethod method;
  ImkOctangioPairs pairs;
  bool bulk_motion;
  uint32_t lateral, axial;
  uint32_t n_tissue;
  double floor, scale;
  uint32_t n_threads;
  uint32_t n_bands, depth_scale;
  bool finds_surface;
} ImkOctangioConfig;

typedef struct ImkOctangio ImkOctangio;

/* DECORRELATION of 4 repeats, bulk motion taken off, a window of 3 x 3, one
 * eigenvector of tissue, no floor, a scale of 1, one band. */
IMK_API void imk_octangio_config_init_sized (
    ImkOctangioConfig *config, size_t size);
static inline void
imk_octangio_config_init (ImkOctangioConfig *config)
{
  imk_octangio_config_init_sized (config, sizeof (*config));
}

/**
 * imk_octangio_new:
 * @self: (out): free with imk_octangio_free; of CUDA, it belongs to the context
 *   that is current
 *
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY, IMK_ERROR_DEVICE;
 * IMK_ERROR_UNAVAILABLE without @backend; @self untouched */
IMK_API ImkStatus imk_octangio_new (ImkBackend backend,
    const ImkOctangioConfig *config, ImkOctangio **self, ImkError *error);

/**
 * imk_octangio_process:
 * @bscans: N images: with is_complex cf32, D wide and A high, else f32, A wide
 *   and D high; numbers that are not finite, or beyond 1e15 (intensities 1e30),
 *   count as 0
 * @flow: f32, A wide and D high
 * @stream: cudaStream_t, NULL for the CPU; the call returns before the GPU is
 *   done
 *
 * Agrees with float64 to 1e-5 of the largest value (DOPPLER: to 1e-4 radians
 * where |S| is above 1e-3 E), on either backend.
 * Returns: IMK_ERROR_IMAGE, @flow untouched; IMK_ERROR_DEVICE, @flow undefined
 */
IMK_API ImkStatus imk_octangio_process (ImkOctangio *self,
    const ImkImage *bscans, const ImkImage *flow, void *stream,
    ImkError *error);

/**
 * imk_octangio_surface: (the depth where each A-scan is brightest)
 * @first: depths before are not looked at; below D
 * @window: the median over this many A-scans, 1 to 64, cut off at the edges
 * @surface: (out): [A]
 * @stream: that of the last set; the call waits for it
 *
 * Of the mean intensity of the last set, of an object that finds_surface. Of
 * equal depths the first counts, and of an even number the upper one of the two
 * in the middle.
 * Returns: IMK_ERROR_CONFIG without finds_surface, IMK_ERROR_DEVICE */
IMK_API ImkStatus imk_octangio_surface (ImkOctangio *self, uint32_t first,
    uint32_t window, double *surface, void *stream, ImkError *error);

/**
 * imk_octangio_project: (a row of a view from above)
 * @flow: [D][A], in host memory
 * @top, @bottom: [A] depths of the slab of each A-scan, the bottom not
 * included; rounded to the nearest, cut off at the image. An empty slab, and
 * one with NaN at an end, as where no surface was found, gives 0
 * @row: (out): [A] */
IMK_API void imk_octangio_project (const float *flow, uint32_t n_ascans,
    uint32_t n_depths, const double *top, const double *bottom,
    ImkOctangioProjection projection, float *row);

/* From any thread. While @cancel the CPU ends imk_octangio_process () early,
 * within one band of one A-scan; the flow of that set is undefined then. A GPU
 * completes the set. */
IMK_API void imk_octangio_cancel (ImkOctangio *self, bool cancel);

/* @self may be NULL. */
IMK_API void imk_octangio_free (ImkOctangio *self);

IMK_END_DECLS
