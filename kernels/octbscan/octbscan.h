/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* B-scans of optical coherence tomography from raw spectra. The steps are
 * those of B. Kriske, "Multi-Sensor Multi-GPU Adaptive Optics Optical Coherence
 * Tomography" (2014), called the thesis here, with its errors corrected;
 * docs/reference/octbscan.md lists them. Over FFTW this library is under the
 * GPL, see fft/fft.h.
 *
 * N samples a spectrum, H spectra (A-scans) a B-scan, C cameras that take turns
 * row by row, row r is of camera c = (r + first) mod C. For a spectrum x:
 *
 *   a[n] = taper[n] (x[n] - m_c[n])      m_c: see ImkOctbscanBackground
 *   p_i  = where the i-th of M wavenumbers at equal distances is, in pixels
 *   y_i  = a at p_i                      see ImkOctbscanInterpolation
 *   z_i  = y_i window_i exp (i phase_c (i))
 *   Z_q  = 2 / sum (window) * sum over i of z_i exp (-2 pi i q i / (s M))
 *   I_q  = |Z_q|^2, dB_q = 10 log10 (I_q), for the depths q of the crop
 *
 * M is `upsample`, s is `scale`. The last depth is W = N s / 2 (rounded down),
 * half the sampling rate of the pixels. A fringe with an amplitude of one count
 * has I = 1, 0 dB, at its depth.
 *
 * From Z to the images, each step only when it is asked for:
 *
 *   Z_q - the fixed pattern of the camera       see ImkOctbscanFixedPattern
 *   I of each A-scan; rows in the order of the scan, at equal distances, means
 *     of neighbours                             see imk_octbscan_n_ascans
 *   shifted in depth by what tracking says      see ImkOctbscanTracking
 *   mean of several B-scans                     see ImkOctbscanJob
 *
 * Means are of intensities, not of dB. */
#pragma once

#include "imk/backend.h"
#include "imk/image.h"

IMK_BEGIN_DECLS

/* How the values of a camera say where each wavenumber is. Wavelengths in any
 * unit, only their ratios count; they may rise or fall with the pixels. */
typedef enum ImkOctbscanMap {
  IMK_OCTBSCAN_MAP_NONE,       /* pixels have equal distances in wavenumber */
  IMK_OCTBSCAN_MAP_RANGE,      /* 2 values: wavelength at the first and the last
                                * pixel, linear between */
  IMK_OCTBSCAN_MAP_POLYNOMIAL, /* c0, c1, ...: wavelength at pixel n is
                                * c0 + c1 n + c2 n^2 ...; 2 to 16 values */
  IMK_OCTBSCAN_MAP_WAVELENGTHS, /* N values: wavelength at each pixel, linear
                                 * between them */
  IMK_OCTBSCAN_MAP_CHIRP,       /* N values: at each pixel, its wavenumber as a
                                 * fraction of the grid, any offset and unit */
  IMK_OCTBSCAN_MAP_K_INDEX, /* 2 or more values: the pixel, with fraction, of
                             * each wavenumber; when there are not M they
                             * are interpolated linearly */
  IMK_OCTBSCAN_MAP_K_POLYNOMIAL, /* c0, c1, ...: wavenumber at a pixel is
                                  * c0 + c1 v + c2 v^2 ..., v from -1 to 1
                                  * over the pixels, any offset and unit; 2 to
                                  * 16 values */
} ImkOctbscanMap;

/* Which wavenumbers the grid of a camera covers. */
typedef enum ImkOctbscanKRange {
  IMK_OCTBSCAN_K_RANGE_OWN,    /* those of its pixels */
  IMK_OCTBSCAN_K_RANGE_COMMON, /* those that all cameras have, in the direction
                                * of the first one: a reflector is at the same
                                * depth for all of them. Needs wavelengths of
                                * every camera, in one unit of nm, um and m */
} ImkOctbscanKRange;

/* How y_i is had from the pixels. The first two take their name from what they
 * do to spectra that are upsampled first, to M samples by Fourier transform;
 * with M = N nothing is upsampled. Behind the end comes the beginning, as the
 * transform has it. */
typedef enum ImkOctbscanInterpolation {
  IMK_OCTBSCAN_INTERPOLATION_EXACT,   /* the band-limited signal itself: what
                                       * endless upsampling would converge to,
                                       * to 1e-7 */
  IMK_OCTBSCAN_INTERPOLATION_LINEAR,  /* between two samples */
  IMK_OCTBSCAN_INTERPOLATION_CUBIC,   /* Catmull-Rom, four samples */
  IMK_OCTBSCAN_INTERPOLATION_LANCZOS, /* sinc (x) sinc (x / 4), eight samples,
                                       * weights of sum 1 */
  IMK_OCTBSCAN_INTERPOLATION_THESIS, /* linear, and y is 0 at the first and last
                                      * two wavenumbers (algorithm 5.7) */
  IMK_OCTBSCAN_N_INTERPOLATIONS,
} ImkOctbscanInterpolation;

/* Where upsampled sample m of M lies. */
typedef enum ImkOctbscanGrid {
  IMK_OCTBSCAN_GRID_EXACT,  /* at pixel m N / M, where the transform puts it */
  IMK_OCTBSCAN_GRID_THESIS, /* taken to be at m (N - 1) / (M - 1): up to 0.8
                             * pixels off at the end */
} ImkOctbscanGrid;

/* What is done to the ends of spectra with fewer than `taper_below` pixels. */
typedef enum ImkOctbscanTaper {
  IMK_OCTBSCAN_TAPER_TUKEY,  /* (1 - cos (pi n / cut)) / 2 for n < cut, and
                              * mirrored */
  IMK_OCTBSCAN_TAPER_THESIS, /* w[n] / w[cut] for n < cut, and mirrored, with
                              * eq. 2.1, w[n] = (1 - cos (2 pi n / (N - 1))) / 2
                              */
  IMK_OCTBSCAN_TAPER_NONE,
} ImkOctbscanTaper;

/* The window over the wavenumbers; u runs from -1 to 1 over i = 0 .. M - 1. */
typedef enum ImkOctbscanWindow {
  IMK_OCTBSCAN_WINDOW_NONE,
  IMK_OCTBSCAN_WINDOW_HANN,     /* (1 + cos (pi u)) / 2 */
  IMK_OCTBSCAN_WINDOW_HAMMING,  /* 0.54 + 0.46 cos (pi u) */
  IMK_OCTBSCAN_WINDOW_BLACKMAN, /* 0.42 + 0.5 cos (pi u) + 0.08 cos (2 pi u) */
  IMK_OCTBSCAN_WINDOW_GAUSS,    /* exp (-(u / 0.4)^2 / 2) */
  IMK_OCTBSCAN_WINDOW_FILE,     /* `window_values`; when there are not M of
                                 * them they are interpolated linearly */
  IMK_OCTBSCAN_N_WINDOWS,
} ImkOctbscanWindow;

/* m_c, what is taken off every spectrum of a camera. */
typedef enum ImkOctbscanBackground {
  IMK_OCTBSCAN_BACKGROUND_MEAN,    /* the mean of this camera's spectra in this
                                    * B-scan (eq. 2.2); sums are exact */
  IMK_OCTBSCAN_BACKGROUND_FILE,    /* `background` */
  IMK_OCTBSCAN_BACKGROUND_NONE,    /* nothing */
  IMK_OCTBSCAN_BACKGROUND_RUNNING, /* m + (mean - m) / min (b, n) at the b-th
                                    * B-scan: the mean of the first n =
                                    * `background_bscans`, then a mean that
                                    * forgets */
  IMK_OCTBSCAN_BACKGROUND_FIRST, /* the same until the n-th B-scan, then kept */
  IMK_OCTBSCAN_BACKGROUND_ROLLING, /* along each spectrum: the mean of x[n - w]
                                    * .. x[n + w], fewer at the ends, w =
                                    * `background_reach` */
} ImkOctbscanBackground;

/* What is the same in all A-scans of a camera and is taken off their Z: the
 * minimum-variance mean line of S. Moon, S. W. Lee and Z. Chen, "Reference
 * spectrum extraction and fixed-pattern noise removal in optical coherence
 * tomography" (2010). The camera's A-scans of a B-scan are cut into
 * `pattern_segments` of them in a row (fewer, so that each has at least two);
 * at each depth the pattern is the mean of Z over the segment where
 * mean |Z|^2 - |mean Z|^2 is least, the first of equals. A camera with one
 * A-scan has none; nor has one where no segment has two, see
 * imk_octbscan_process. */
typedef enum ImkOctbscanFixedPattern {
  IMK_OCTBSCAN_FIXED_PATTERN_NONE,
  IMK_OCTBSCAN_FIXED_PATTERN_MINVAR, /* of each B-scan */
  IMK_OCTBSCAN_FIXED_PATTERN_ONCE,   /* of the first B-scan, kept */
  IMK_OCTBSCAN_FIXED_PATTERN_FILE,   /* `pattern` */
} ImkOctbscanFixedPattern;

/* Where a scanner is when A-scan i of H is taken, and so where, in A-scans, the
 * image at equal distances is read; linear between A-scans. */
typedef enum ImkOctbscanScan {
  IMK_OCTBSCAN_SCAN_EVEN,
  IMK_OCTBSCAN_SCAN_SINE, /* half a swing, at -cos (pi i / (H - 1)): column j is
                           * read at acos (1 - 2 j / (H - 1)) (H - 1) / pi */
  IMK_OCTBSCAN_SCAN_CURVE, /* `scan_curve`: the A-scan of each column, 0 to
                            * H - 1; when there are not H they are interpolated
                            * linearly */
} ImkOctbscanScan;

typedef enum ImkOctbscanFlip {
  IMK_OCTBSCAN_FLIP_NONE,
  IMK_OCTBSCAN_FLIP_LATERAL, /* the last A-scan first */
  IMK_OCTBSCAN_FLIP_DEPTH,   /* the largest depth first; in images alone */
  IMK_OCTBSCAN_FLIP_BOTH,    /* LATERAL | DEPTH */
} ImkOctbscanFlip;

/* Follows the motion in depth: each B-scan b has a place L_b, in depths, and a
 * weight w_b; it is shifted by round (mu - L_b), mu = sum w L / sum w over the
 * last `tracking_bscans` of them (thesis, eq. 2.11). What comes in from outside
 * is 0. Places are to fractions, by a parabola through the largest value and
 * its neighbours. P is the mean of I over the A-scans, in the depths of the
 * window, 0 where that is not finite. A place or weight that is not finite is 0
 * with weight 0. */
typedef enum ImkOctbscanTracking {
  IMK_OCTBSCAN_TRACKING_NONE,
  IMK_OCTBSCAN_TRACKING_RPE, /* where P is largest: the brightest layer of the
                              * window; w is P there over its mean */
  IMK_OCTBSCAN_TRACKING_CONTOUR, /* the mean of where each A-scan is brightest,
                                  * weighted with that intensity; w is the mean
                                  * of these over that of P */
  IMK_OCTBSCAN_TRACKING_XCORR,   /* where P correlates best with the mean of the
                                  * P so far, each shifted to it, at most
                                  * `tracking_reach` depths away; w is the
                                  * correlation coefficient; where none is
                                  * positive, w and the place are 0 */
} ImkOctbscanTracking;

/* What an en-face row has of each A-scan, over the depths of the slab. */
typedef enum ImkOctbscanProjection {
  IMK_OCTBSCAN_PROJECTION_MEAN,
  IMK_OCTBSCAN_PROJECTION_MAXIMUM,
} ImkOctbscanProjection;

/* What is black and what is white. The ends are found as intensities. */
typedef enum ImkOctbscanRange {
  IMK_OCTBSCAN_RANGE_FIXED,      /* range_min and range_max in dB, linear_min
                                  * and linear_max of the linear image */
  IMK_OCTBSCAN_RANGE_PERCENTILE, /* of the B-scan, percent_min and percent_max,
                                  * rounded down to the nearest of 256
                                  * intensities an octave (0.02 dB) */
  IMK_OCTBSCAN_RANGE_MINMAX,     /* the least and the largest of the B-scan */
  IMK_OCTBSCAN_RANGE_AUTO,       /* m + (p - m) / (n + 1), p the percentiles 30
                                  * and 99.9 of the B-scan in dB, 30 and 99.7
                                  * of the linear image, m those of FIXED, n =
                                  * `auto_bscans`: with m the ends of the
                                  * B-scan before, a mean over n + 1 of them.
                                  * A dark B-scan leaves m */
  IMK_OCTBSCAN_N_RANGES,
} ImkOctbscanRange;

typedef enum ImkOctbscanOrientation {
  IMK_OCTBSCAN_ORIENTATION_DEPTH_DOWN, /* an A-scan is a column */
  IMK_OCTBSCAN_ORIENTATION_ROWS,       /* an A-scan is a row */
} ImkOctbscanOrientation;

/* Two ways to the same numbers, within 1e-6 of the rms of Z over a B-scan. */
typedef enum ImkOctbscanStrategy {
  IMK_OCTBSCAN_STRATEGY_AUTO,     /* what is faster on the backend */
  IMK_OCTBSCAN_STRATEGY_FFT,      /* a short chain of transforms */
  IMK_OCTBSCAN_STRATEGY_OPERATOR, /* one complex matrix a camera. Takes 8 bytes
                                   * times depths times N times C of memory */
} ImkOctbscanStrategy;

#define IMK_OCTBSCAN_MAX_CAMERAS 16u
#define IMK_OCTBSCAN_MAX_WIDTH 16384u          /* samples a spectrum */
#define IMK_OCTBSCAN_MAX_HEIGHT 65535u         /* A-scans a B-scan */
#define IMK_OCTBSCAN_MAX_POINTS 262144u        /* upsample times scale */
#define IMK_OCTBSCAN_MAX_OPERATORS 4294967296u /* bytes of all matrices */
#define IMK_OCTBSCAN_MAX_TRACKED 256u          /* tracking_bscans */

/**
 * ImkOctbscanCamera: (the calibration of one camera)
 * @map: how @values are read; see there
 * @values, @n_values: of @map, within 1e30; wavelengths from 1e-30
 * @phase, @n_phase: radians over the wavenumbers, 0 for none; when there are
 *   not M of them they are interpolated linearly
 * @spectrum_phase: N radians over the pixels, NULL for none: a[n] is multiplied
 *   by exp (i spectrum_phase[n]) before it is interpolated
 * @dispersion, @n_dispersion: d0, d1, ...: phase d0 + d1 u + d2 u^2 ... in
 *   radians is added, u from -1 to 1 over the wavenumbers; at most 16. Phases
 *   and coefficients lie within 1e9
 * @gain: how many times the counts of a camera of gain 1 this one gives for the
 *   same light; Z is divided by it. Above 0, or 0 for 1
 *
 * The arrays are read by imk_octbscan_new alone. */
typedef struct ImkOctbscanCamera {
  ImkOctbscanMap map;
  const double *values;
  uint32_t n_values;
  const double *phase;
  uint32_t n_phase;
  const double *spectrum_phase;
  const double *dispersion;
  uint32_t n_dispersion;
  double gain;
} ImkOctbscanCamera;

/**
 * ImkOctbscanConfig: (one stream of B-scans)
 * @size: set by imk_octbscan_config_init, see imk/api.h
 * @width, @height, @type: N, H and the type of a sample: u8, u16, i16 or f32
 * @n_cameras, @cameras: C, in the order in which they take turns
 * @upsample: M, at least N
 * @scale: s, at least 1
 * @taper_cut: samples at each end, at least 1, below N / 2
 * @window_values, @n_window_values: with IMK_OCTBSCAN_WINDOW_FILE; at least 2,
 *   their sum above 0, also where the wavenumbers are
 * @background: with IMK_OCTBSCAN_BACKGROUND_FILE, C spectra of N
 * @background_bscans: n, at least 1
 * @background_reach: w, at least 1
 * @fixed_pattern, @pattern_segments: see there; 1 to 65535 segments
 * @pattern: with IMK_OCTBSCAN_FIXED_PATTERN_FILE, C times n_depths of Z, real
 *   then imaginary
 * @scan_curve, @n_scan_curve: see ImkOctbscanScan; at least 2
 * @average_ascans: columns of which one is made, at least 1; the last one is of
 *   those that are left
 * @bidirectional: jobs may be backward, see ImkOctbscanJob
 * @averages_bscans: images are of the mean of B-scans, see ImkOctbscanJob
 * @tracking_top, @tracking_bottom: depths of the crop, as the complex image has
 *   them, that are left out of the window at either end
 * @tracking_bscans: 1 to IMK_OCTBSCAN_MAX_TRACKED
 * @enface_top, @enface_bottom: depths left out of the slab at either end
 * @crop_top, @crop_bottom: depths left out at either end of 0 .. W - 1
 * @max_jobs: how many B-scans imk_octbscan_process may be given at once
 * @n_threads: of the CPU, 0 for one a processor; no result depends on it
 *
 * What follows may be changed by imk_octbscan_update.
 * @live_dispersion: C pairs of d2 and d3, in the place of those of the cameras;
 *   NULL for none. Then the strategy AUTO is FFT, whose weights follow in about
 *   a millisecond a camera. An update does not change it where it was NULL
 *   before, or with the strategy OPERATOR
 * @history: with another number than before, B-scans so far are forgotten, as
 *   by imk_octbscan_reset
 * @range_min, @range_max: dB of black and white
 * @linear_min, @linear_max: intensity of black and white in linear images
 * @auto_bscans: n of IMK_OCTBSCAN_RANGE_AUTO
 * @percent_min, @percent_max: 0 .. 100
 *
 * @k_range: not changed by an update; last for the sake of @size
 * @tracking_lock: changed by an update. While it is set, mu and the reference
 * of XCORR stay as the B-scans before made them, or the first one, so that
 * nothing drifts
 * @tracking_profile, @n_tracking_profile: NULL; or a P, as many values as the
 *   window has, that is kept instead of those of the B-scans: the reference of
 *   XCORR; for RPE and CONTOUR mu is where it is largest
 * @tracking_complex: not changed by an update. Tracking also shifts the complex
 *   image, by mu - L_b depths. The other images are shifted by n whole depths,
 *   n = round (mu - L_b); the complex image by the fraction f = mu - L_b - n as
 *   well:
 *     Z'_q = sum over k from -8 to 8 of h (-f - k) Z_(q - n + k)
 *     h (x) = sinc (pi x) (1 + cos (pi x / 9)) / 2 exp (-i pi x / s)
 *   This sum is a phase ramp f over the wavenumbers; with s = 1 it differs from
 *   the ramp at the first and last wavenumbers. Z beyond the crop counts as 0,
 *   and the n depths that the shift leaves empty are 0. Motion also turns the
 *   phase of all depths alike; this turn is not corrected */
typedef struct ImkOctbscanConfig {
  size_t size;
  uint32_t width, height;
  ImkType type;
  uint32_t n_cameras;
  const ImkOctbscanCamera *cameras;
  uint32_t upsample, scale;
  ImkOctbscanInterpolation interpolation;
  ImkOctbscanGrid grid;
  ImkOctbscanTaper taper;
  uint32_t taper_cut, taper_below;
  ImkOctbscanWindow window;
  const double *window_values;
  uint32_t n_window_values;
  ImkOctbscanBackground background_mode;
  const double *background;
  uint32_t background_bscans, background_reach;
  uint32_t crop_top, crop_bottom;
  ImkOctbscanFixedPattern fixed_pattern;
  const double *pattern;
  uint32_t pattern_segments;
  ImkOctbscanScan scan;
  const double *scan_curve;
  uint32_t n_scan_curve;
  uint32_t average_ascans;
  bool averages_bscans;
  bool bidirectional;
  ImkOctbscanTracking tracking;
  uint32_t tracking_top, tracking_bottom, tracking_bscans, tracking_reach;
  ImkOctbscanProjection projection;
  uint32_t enface_top, enface_bottom;
  ImkOctbscanFlip flip;
  ImkOctbscanOrientation orientation;
  ImkOctbscanStrategy strategy;
  uint32_t max_jobs;
  uint32_t n_threads;

  const double *live_dispersion;
  uint32_t history;
  ImkOctbscanRange range;
  double range_min, range_max, linear_min, linear_max;
  uint32_t auto_bscans;
  double percent_min, percent_max;

  ImkOctbscanKRange k_range;
  bool tracking_lock;
  const double *tracking_profile;
  uint32_t n_tracking_profile;
  bool tracking_complex;
} ImkOctbscanConfig;

/**
 * ImkOctbscanJob: (one B-scan and what is wanted of it)
 * @in: N x H of the configured type, a spectrum a row, 1 channel. NULL, with
 *   averages_bscans, for images of what has been added
 * @first_camera: of row 0
 * @backward: the mirror was on its way back: the last row is the first A-scan
 * @db: u8, u16 or f32, or NULL. f32 is dB; u8 and u16 are
 *   (dB - lo) / (hi - lo), clamped to 0..1, times 255 or 65535, rounded to the
 *   nearest, 0 when hi is lo. dB is of max (I, 1e-20), at least -200
 * @linear: the same of I itself, or NULL
 * @db_is_linear: db is of I itself as well; another type of sample, perhaps
 * @complex: Z less the fixed pattern, cf32, or NULL; a row a row of @in, depths
 *   wide
 * @enface: f32, n_ascans x 1, or NULL: the projection of each A-scan's I
 * @track: f32, 4 x 1, or NULL: L_b, w_b, mu and the shift, 0 without tracking
 * @ends: NULL; or 4 floats of page-locked memory, as the device reaches it: dB
 * of black and white and intensity of black and white of db and linear, where
 * there are any
 * @n_bad: NULL; or a word, in memory like @ends, which gets the number of
 * A-scans that the B-scan does not have because a sample is not a number, see
 * imk_octbscan_process. It stays as it is for integers
 *
 * Images are as the orientation says, see imk_octbscan_size. With
 * averages_bscans each job adds its B-scan; one that wants db, linear or enface
 * gets them of the mean of those since the last that did, black without any. */
typedef struct ImkOctbscanJob {
  const ImkImage *in;
  uint32_t first_camera;
  ImkImage *db;
  ImkImage *linear;
  ImkImage *complex;
  ImkImage *enface;
  ImkImage *track;
  bool backward, db_is_linear;
  uint32_t *n_bad;
  float *ends;
} ImkOctbscanJob;

typedef struct ImkOctbscan ImkOctbscan;

/* One u16 camera whose pixels are linear in wavenumber; M = 4096, scale 1,
 * exact, tapered by 32 samples below 832, mean, all depths, 0 to 60 dB; none of
 * the steps after Z, which have 8 segments, 16 B-scans, a reach of 32. */
IMK_API void imk_octbscan_config_init_sized (
    ImkOctbscanConfig *config, size_t size);
static inline void
imk_octbscan_config_init (ImkOctbscanConfig *config)
{
  imk_octbscan_config_init_sized (config, sizeof (*config));
}

/* Returns: what may be kept of a configuration: NULL where it had pointers */
static inline ImkOctbscanConfig
imk_octbscan_without_pointers (const ImkOctbscanConfig *config)
{
  ImkOctbscanConfig own = *config;

  own.cameras = NULL;
  own.background = own.pattern = NULL;
  own.scan_curve = own.window_values = NULL;
  own.tracking_profile = own.live_dispersion = NULL;
  return own;
}

/* Returns: the number of depths that the crop leaves, 0 when none */
IMK_API uint32_t imk_octbscan_n_depths (const ImkOctbscanConfig *config);

/* Returns: um of vacuum from one depth to the next, (M - 1) / (s M) /
 * (2 |1 / lambda_first - 1 / lambda_last|). 0 without wavelengths in nm, um or
 * m, and for cameras whose steps differ by more than 0.1 % */
IMK_API double imk_octbscan_depth_step (const ImkOctbscan *self);

/* The phase of Z grows with the depth if @nm[0] > @nm[1], and falls otherwise.
 * @nm: (out): the wavelengths at the first and the last wavenumber, of camera 0
 * Returns: false, @nm untouched, without wavelengths in nm, um or m, and for
 * cameras whose wavenumbers run in different directions */
IMK_API bool imk_octbscan_wavelengths (const ImkOctbscan *self, double nm[2]);

/* Returns: the number of A-scans of an image: H over average_ascans, rounded
 * up */
IMK_API uint32_t imk_octbscan_n_ascans (const ImkOctbscanConfig *config);

/* Returns: does a B-scan depend on those before it? Then one object has to see
 * all of them in order: background RUNNING and FIRST, pattern ONCE, tracking,
 * averages_bscans */
IMK_API bool imk_octbscan_has_history (const ImkOctbscanConfig *config);

/* The width and height of the images db and linear. */
IMK_API void imk_octbscan_size (
    const ImkOctbscanConfig *config, uint32_t *width, uint32_t *height);

/**
 * imk_octbscan_check: (is this a configuration?)
 *
 * Plans nothing. Returns: IMK_ERROR_CONFIG where imk_octbscan_new would */
IMK_API ImkStatus imk_octbscan_check (
    const ImkOctbscanConfig *config, ImkError *error);

/**
 * imk_octbscan_new: (plans the chain; tens of milliseconds)
 * @self: (out): free with imk_octbscan_free
 *
 * With CUDA the context of the device must be current, here and in all calls.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY, IMK_ERROR_UNAVAILABLE,
 *   IMK_ERROR_DEVICE; @self untouched */
IMK_API ImkStatus imk_octbscan_new (ImkBackend backend,
    const ImkOctbscanConfig *config, ImkOctbscan **self, ImkError *error);

/* Takes range, history and live_dispersion from @config; the rest stays as it
 * is. On an error, so do these. */
IMK_API ImkStatus imk_octbscan_update (
    ImkOctbscan *self, const ImkOctbscanConfig *config, ImkError *error);

/**
 * imk_octbscan_process: (B-scans in the order of the jobs)
 * @jobs: 1 .. max_jobs of them; those of one call share the work of the device
 * @stream: cudaStream_t, NULL for the CPU; the call returns before the GPU is
 *   done
 *
 * Float results agree with exact arithmetic to 1e-5 of the rms of Z over the
 * B-scan before the crop, on both backends and with both strategies. Where a
 * sample is not a number, is infinite or is beyond 1e15, its A-scan alone is
 * black, Z and I are 0: it has no part in backgrounds, fixed patterns, means of
 * A-scans and B-scans, and what is black and white. Returns: IMK_ERROR_IMAGE,
 * images untouched; IMK_ERROR_DEVICE, undefined */
IMK_API ImkStatus imk_octbscan_process (ImkOctbscan *self,
    const ImkOctbscanJob *jobs, uint32_t n_jobs, void *stream, ImkError *error);

/* Forgets the B-scans so far, as after an interruption. */
IMK_API ImkStatus imk_octbscan_reset (ImkOctbscan *self, ImkError *error);

/**
 * imk_octbscan_get_pattern: (the fixed pattern that was last taken off)
 * @pattern: (out): C times n_depths complex numbers; 0 before there is one
 *
 * Waits for the GPU. Returns: IMK_ERROR_CONFIG with fixed_pattern NONE */
IMK_API ImkStatus imk_octbscan_get_pattern (
    ImkOctbscan *self, float *pattern, ImkError *error);

/**
 * imk_octbscan_get_background: (what was last taken off the spectra)
 * @background: (out): C spectra of N, m_c; those of FILE as they were given, in
 *   two float32 parts. As FILE of another object they are taken off alike. 0
 *   before the first B-scan and after a reset
 *
 * Of a camera without lines in the last B-scan that had any, MEAN may give 0.
 * Waits for the GPU. Returns: IMK_ERROR_CONFIG with NONE and ROLLING */
IMK_API ImkStatus imk_octbscan_get_background (
    ImkOctbscan *self, double *background, ImkError *error);

/**
 * imk_octbscan_level_image: (levels of intensities, as those of an en-face
 *   image)
 * @in: f32, in host memory
 * @out: u8, u16 or f32, of its size, in host memory; dB or linear as in
 *   ImkOctbscanJob, range and ends of @config found in @in
 * @ends: (out) (nullable): black and white, 4 numbers as in ImkOctbscanJob
 *
 * Returns: IMK_ERROR_CONFIG for a wrong range, IMK_ERROR_IMAGE,
 *   IMK_ERROR_MEMORY */
IMK_API ImkStatus imk_octbscan_level_image (const ImkOctbscanConfig *config,
    bool db, const ImkImage *in, ImkImage *out, float *ends, ImkError *error);

/* Returns: what AUTO has become, FFT or OPERATOR */
IMK_API ImkOctbscanStrategy imk_octbscan_strategy (const ImkOctbscan *self);

/* @self may be NULL. */
IMK_API void imk_octbscan_free (ImkOctbscan *self);

IMK_END_DECLS
