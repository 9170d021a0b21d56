/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* B-scans of optical coherence tomography from raw spectra. The steps are
 * those of B. Kriske, "Multi-Sensor Multi-GPU Adaptive Optics Optical Coherence
 * Tomography" (2014), called the thesis here, with its errors corrected;
 * docs/octbscan.md lists them. Over FFTW this library is under the GPL, see
 * fft/fft.h.
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
 * has I = 1, 0 dB, at its depth. */
#pragma once

#include "core/backend.h"
#include "core/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the values of a camera say where each wavenumber is. Wavelengths in any
 * unit, only their ratios count; they may rise or fall with the pixels. */
typedef enum ImkOctbscanMap {
  IMK_OCTBSCAN_MAP_NONE,       /* pixels have equal distances in wavenumber */
  IMK_OCTBSCAN_MAP_RANGE,      /* 2 values: wavelength at the first and the last
                                * pixel, linear between */
  IMK_OCTBSCAN_MAP_POLYNOMIAL, /* c0, c1, ...: wavelength at pixel n is
                                * c0 + c1 n + c2 n^2 ...; 2 to 16 values */
  IMK_OCTBSCAN_MAP_WAVELENGTHS, /* N values: wavelength at each pixel */
  IMK_OCTBSCAN_MAP_CHIRP,       /* N values: at each pixel, its wavenumber as a
                                 * fraction of the grid, any offset and unit */
  IMK_OCTBSCAN_MAP_K_INDEX, /* 2 or more values: the pixel, with fraction, of
                             * each wavenumber; when there are not M they
                             * are interpolated linearly */
} ImkOctbscanMap;

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
} ImkOctbscanWindow;

/* m_c, what is taken off every spectrum of a camera. */
typedef enum ImkOctbscanBackground {
  IMK_OCTBSCAN_BACKGROUND_MEAN, /* the mean of this camera's spectra in this
                                 * B-scan (eq. 2.2); sums are exact */
  IMK_OCTBSCAN_BACKGROUND_FILE, /* `background` */
  IMK_OCTBSCAN_BACKGROUND_NONE, /* nothing */
} ImkOctbscanBackground;

/* What is black and what is white. The ends are found as intensities, and are
 * the same for the dB and the linear image. */
typedef enum ImkOctbscanRange {
  IMK_OCTBSCAN_RANGE_FIXED,      /* range_min and range_max, in dB */
  IMK_OCTBSCAN_RANGE_PERCENTILE, /* of the B-scan, percent_min and percent_max,
                                  * rounded down to the nearest of 256
                                  * intensities an octave (0.02 dB) */
  IMK_OCTBSCAN_RANGE_MINMAX,     /* the least and the largest of the B-scan */
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

/**
 * ImkOctbscanCamera: (the calibration of one camera)
 * @map: how @values are read; see there
 * @values, @n_values: of @map
 * @phase, @n_phase: radians over the wavenumbers, 0 for none; when there are
 *   not M of them they are interpolated linearly
 * @spectrum_phase: N radians over the pixels, NULL for none: a[n] is multiplied
 *   by exp (i spectrum_phase[n]) before it is interpolated
 * @dispersion, @n_dispersion: d0, d1, ...: phase d0 + d1 u + d2 u^2 ... in
 *   radians is added, u from -1 to 1 over the wavenumbers; at most 16
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
 * @width, @height, @type: N, H and the type of a sample: u8, u16, i16 or f32
 * @n_cameras, @cameras: C, in the order in which they take turns
 * @upsample: M, at least N
 * @scale: s, at least 1
 * @taper_cut: samples at each end, at least 1, below N / 2
 * @background: with IMK_OCTBSCAN_BACKGROUND_FILE, C spectra of N
 * @crop_top, @crop_bottom: depths left out at either end of 0 .. W - 1
 * @max_jobs: how many B-scans imk_octbscan_process may be given at once
 * @n_threads: of the CPU, 0 for one a processor; no result depends on it
 *
 * What follows may be changed by imk_octbscan_update.
 * @range_min, @range_max: dB of black and white
 * @percent_min, @percent_max: 0 .. 100 */
typedef struct ImkOctbscanConfig {
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
  ImkOctbscanBackground background_mode;
  const double *background;
  uint32_t crop_top, crop_bottom;
  ImkOctbscanOrientation orientation;
  ImkOctbscanStrategy strategy;
  uint32_t max_jobs;
  uint32_t n_threads;

  ImkOctbscanRange range;
  double range_min, range_max;
  double percent_min, percent_max;
} ImkOctbscanConfig;

/**
 * ImkOctbscanJob: (one B-scan and what is wanted of it)
 * @in: N x H of the configured type, a spectrum a row, 1 channel
 * @first_camera: of row 0
 * @db: u8, u16 or f32, or NULL. f32 is dB; u8 and u16 are
 *   (dB - lo) / (hi - lo), clamped to 0..1, times 255 or 65535, rounded to the
 *   nearest, 0 when hi is lo. dB is of max (I, 1e-20), at least -200
 * @linear: the same of I itself, or NULL
 * @complex: Z, cf32, or NULL; a row an A-scan, depths wide
 *
 * Images are as the orientation says, see imk_octbscan_size. */
typedef struct ImkOctbscanJob {
  const ImkImage *in;
  uint32_t first_camera;
  ImkImage *db;
  ImkImage *linear;
  ImkImage *complex;
} ImkOctbscanJob;

typedef struct ImkOctbscan ImkOctbscan;

/* One u16 camera whose pixels are linear in wavenumber; M = 4096, scale 1,
 * exact, tapered by 32 samples below 832, mean, all depths, 0 to 60 dB. */
void imk_octbscan_config_init (ImkOctbscanConfig *config);

/* Returns: the number of depths that the crop leaves, 0 when none */
uint32_t imk_octbscan_n_depths (const ImkOctbscanConfig *config);

/* The width and height of the images db and linear. */
void imk_octbscan_size (
    const ImkOctbscanConfig *config, uint32_t *width, uint32_t *height);

/**
 * imk_octbscan_new: (plans the chain; tens of milliseconds)
 * @self: (out): free with imk_octbscan_free
 *
 * With CUDA the context of the device must be current, here and in all calls.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY, IMK_ERROR_UNAVAILABLE,
 *   IMK_ERROR_DEVICE; @self untouched */
ImkStatus imk_octbscan_new (ImkBackend backend, const ImkOctbscanConfig *config,
    ImkOctbscan **self, ImkError *error);

/* Takes the range from @config; the rest stays as it is. On an error, so does
 * the range. */
ImkStatus imk_octbscan_update (
    ImkOctbscan *self, const ImkOctbscanConfig *config, ImkError *error);

/**
 * imk_octbscan_process: (B-scans in the order of the jobs)
 * @jobs: 1 .. max_jobs of them; those of one call share the work of the device
 * @stream: cudaStream_t, NULL for the CPU; the call returns before the GPU is
 *   done
 *
 * Float results agree with exact arithmetic to 1e-5 of the rms of Z over the
 * B-scan, on both backends and with both strategies. A sample that is not a
 * number blackens the A-scans of its camera in that B-scan.
 * Returns: IMK_ERROR_IMAGE, images untouched; IMK_ERROR_DEVICE, undefined */
ImkStatus imk_octbscan_process (ImkOctbscan *self, const ImkOctbscanJob *jobs,
    uint32_t n_jobs, void *stream, ImkError *error);

/* Returns: what AUTO has become, FFT or OPERATOR */
ImkOctbscanStrategy imk_octbscan_strategy (const ImkOctbscan *self);

/* @self may be NULL. */
void imk_octbscan_free (ImkOctbscan *self);

#ifdef __cplusplus
}
#endif
