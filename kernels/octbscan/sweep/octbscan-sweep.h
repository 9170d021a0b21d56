/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records of a swept source become spectra: sweeps back are reversed, and the
 * jitter of the trigger is taken out by whole samples. In host memory, before
 * imk_octbscan_process, so all backends get the same spectra.
 *
 * H records x_r of N samples are a B-scan. Camera and A-scan of record r are
 * (line + r) mod C and (line + r) div C, with the line of the first record.
 *
 *   x_r[n] becomes x_r[N - 1 - n]          of the A-scans that sweep back
 *   y_r[n] = x_r[n + s_r]                  the first or last sample, where
 * there is none
 *
 * In the calibration window, the samples n of F = jitter_first to F +
 * jitter_samples - 1, all records of a camera have the same signal, of a
 * fibre Bragg grating or a mirror of its own. s_r is the shift from -R to R
 * with the largest correlation coefficient of x_r[n + s] with m[n] over the
 * window. m is the mean of the camera's records of the first B-scan, and then,
 * once more, that of the records as they were shifted. If fewer than half of
 * them fit it, the next B-scan is the first. Later ones keep m, so that the
 * phases of all B-scans have one origin. R = jitter_reach. Of equal
 * coefficients the smaller shift counts, and of these the negative one.
 *
 * A record stays as it is, s_r = 0, and is counted as unaligned, if no
 * coefficient reaches 0.5, if a shift of R + 1 or -R - 1 fits better, and if a
 * sample of the window or of R + 1 beside it is not finite. Those that are not
 * finite are not in m. */
#pragma once

#include "imk/octbscan.h"

IMK_BEGIN_DECLS

/* Which A-scans of a camera were recorded while the source swept back. */
typedef enum ImkOctbscanSweeps {
  IMK_OCTBSCAN_SWEEPS_FORWARD,          /* none */
  IMK_OCTBSCAN_SWEEPS_ALTERNATING,      /* 1, 3, 5, ... */
  IMK_OCTBSCAN_SWEEPS_ALTERNATING_BACK, /* 0, 2, 4, ... */
} ImkOctbscanSweeps;

/**
 * ImkOctbscanSweepConfig: (how records become spectra)
 * @size: set by imk_octbscan_sweep_config_init, see imk/api.h
 * @width, @height, @type, @n_cameras: as those of ImkOctbscanConfig
 * @sweeps: which A-scans are reversed
 * @jitter_first, @jitter_samples: F, and the samples of the window, at least 4
 * @jitter_reach: R, 0: jitter is not corrected; @jitter_first is above it, and
 *   as many samples are behind the window */
typedef struct ImkOctbscanSweepConfig {
  size_t size;
  uint32_t width, height;
  ImkType type;
  uint32_t n_cameras;
  ImkOctbscanSweeps sweeps;
  uint32_t jitter_first, jitter_samples, jitter_reach;
} ImkOctbscanSweepConfig;

typedef struct ImkOctbscanSweep ImkOctbscanSweep;

/* The defaults: 2 x 1 u16 of one camera, nothing is changed; a window of the
 * samples 16 to 143. */
IMK_API void imk_octbscan_sweep_config_init_sized (
    ImkOctbscanSweepConfig *config, size_t size);
static inline void
imk_octbscan_sweep_config_init (ImkOctbscanSweepConfig *config)
{
  imk_octbscan_sweep_config_init_sized (config, sizeof (*config));
}

/* Returns: IMK_ERROR_CONFIG, with a sentence, for values that cannot be used */
IMK_API ImkStatus imk_octbscan_sweep_check (
    const ImkOctbscanSweepConfig *config, ImkError *error);

/**
 * imk_octbscan_sweep_new: (an object for B-scans of one format)
 * @self: (out): free with imk_octbscan_sweep_free
 *
 * Returns: as imk_octbscan_sweep_check, and IMK_ERROR_MEMORY; @self untouched
 */
IMK_API ImkStatus imk_octbscan_sweep_new (const ImkOctbscanSweepConfig *config,
    ImkOctbscanSweep **self, ImkError *error);

/**
 * imk_octbscan_sweep_process: (corrects the records of one B-scan, in place)
 * @records: N x H, in host memory
 * @line: of the first record; counts the records of all cameras
 * @shifts: (out): NULL, or [H] the shift of each record
 * @n_unaligned: (out): NULL, or how many records have no shift
 *
 * Sums are in double. Returns: IMK_ERROR_IMAGE; @records untouched */
IMK_API ImkStatus imk_octbscan_sweep_process (ImkOctbscanSweep *self,
    ImkImage *records, uint64_t line, int32_t *shifts, uint32_t *n_unaligned,
    ImkError *error);

/* The next B-scan is the first. @self may be NULL. */
IMK_API void imk_octbscan_sweep_reset (ImkOctbscanSweep *self);

/* @self may be NULL. */
IMK_API void imk_octbscan_sweep_free (ImkOctbscanSweep *self);

IMK_END_DECLS
