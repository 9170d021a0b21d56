/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>

#include "core/backend.h"
#include "core/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The two images. A feature at (x, y) of the reference lies at (x + dx, y + dy)
 * of the secondary. x is range (columns), y azimuth (lines), from 0. */
typedef enum ImkInsarxcorrSide {
  IMK_INSARXCORR_REFERENCE,
  IMK_INSARXCORR_SECONDARY,
  IMK_INSARXCORR_N_SIDES,
} ImkInsarxcorrSide;

/* What the correlation surface is, over lags (dy, dx) of [-ysearch, ysearch) x
 * [-xsearch, xsearch); a and b are amplitudes without their mean, sums run over
 * the template of 2 ysearch x 2 xsearch samples. */
typedef enum ImkInsarxcorrMethod {
  IMK_INSARXCORR_FREQ,  /* |sum a(n + d) b(n)|, by FFT; at its peak `time` */
  IMK_INSARXCORR_TIME,  /* 100 |sum A B| / sqrt (sum A A sum B B), A(n + d) and
                         * B(n) being a and b without their fractions */
  IMK_INSARXCORR_TIME4, /* 100 sqrt (2 g - 1), g = sum AA BB / sqrt (sum AAAA
                         * sum BBBB); 0 for g up to 1/2 */
} ImkInsarxcorrMethod;

/* Where patches are: their centres, with X = width - 6 xsearch, Y = height - 6
 * ysearch of the reference,
 *   x(i) = 4 xsearch + i X / (nx + 3), i = 2..nx + 1
 *   y(j) = 4 ysearch + j Y / (ny + 1), j = 1..ny */
typedef enum ImkInsarxcorrGrid {
  IMK_INSARXCORR_GRID_GMTSAR, /* X / (nx + 3) and Y / (ny + 1) are cut to
                               * integers: dense grids end before the image */
  IMK_INSARXCORR_GRID_EVEN,   /* i X and j Y are divided, then cut */
} ImkInsarxcorrGrid;

/* The columns of the results. */
typedef enum ImkInsarxcorrField {
  IMK_INSARXCORR_X, /* centre of the patch in the reference, columns, lines */
  IMK_INSARXCORR_Y,
  IMK_INSARXCORR_DX, /* offset, columns, lines */
  IMK_INSARXCORR_DY,
  IMK_INSARXCORR_CORRELATION, /* 0..100; column 5 of GMTSAR, its "SNR" */
  IMK_INSARXCORR_VALID,       /* part of the samples that are data, 0..1: of
                               * the patch that has fewer */
  IMK_INSARXCORR_FLAGS,       /* ImkInsarxcorrFlags; 0 = good */
  IMK_INSARXCORR_N_FIELDS,
} ImkInsarxcorrField;

typedef enum ImkInsarxcorrFlags {
  IMK_INSARXCORR_EDGE = 1 << 0,    /* the peak is so close to the edge of the
                                    * search that its 8x8 surroundings leave the
                                    * surface; zeros stand in for the rest */
  IMK_INSARXCORR_OUTSIDE = 1 << 1, /* a patch reaches beyond its image */
  IMK_INSARXCORR_NO_DATA = 1 << 2, /* VALID is below min_valid, or there is no
                                    * peak */
  IMK_INSARXCORR_LOW = 1 << 3,     /* CORRELATION, with the two decimals that
                                    * GMTSAR prints, is not above the minimum */
} ImkInsarxcorrFlags;

/* Flags of offsets that mean nothing, whatever their correlation. */
#define IMK_INSARXCORR_INVALID_MASK \
  (IMK_INSARXCORR_EDGE | IMK_INSARXCORR_NO_DATA)

/**
 * ImkInsarxcorrConfig: (what to correlate)
 * @width, @height: of each image, columns and lines
 * @type: of both: CI16, CF32, or F32 (an amplitude that is known already)
 * @nx, @ny, @grid: patches a row and rows of them, 1..1000000 each
 * @xsearch, @ysearch: powers of two, 4..1024, their product at most 2^18. A
 *   patch has 4 xsearch x 4 ysearch samples, the template half of it each way
 * @range_interp: 1..16, how much finer columns are before detection. The middle
 *   of the finer patch is used (for 2 it is centred; for more it is not, as in
 *   GMTSAR), so template and search shrink by this factor in range
 * @interp: 1..64, how much finer the surface becomes around its peak: offsets
 *   are multiples of 1 / (range_interp interp) columns and 1 / interp lines
 * @rshift, @ashift: columns and lines that the secondary is behind, known
 *   beforehand, -1000000..1000000
 * @prf_ratio: (PRF of the secondary - PRF of the reference) / PRF of the
 *   reference, above -1: a patch of line y is shifted by another y prf_ratio
 *   lines, cut towards 0
 * @min_valid: of VALID, 0..1
 * @min_correlation: of CORRELATION, for IMK_INSARXCORR_LOW
 * @memory_limit: bytes, of lines and of work; 0 for none
 * @n_threads: CPU threads, 0 for one a processor */
typedef struct ImkInsarxcorrConfig {
  uint32_t width[IMK_INSARXCORR_N_SIDES], height[IMK_INSARXCORR_N_SIDES];
  ImkType type;
  uint32_t nx, ny;
  ImkInsarxcorrGrid grid;
  uint32_t xsearch, ysearch;
  uint32_t range_interp, interp;
  ImkInsarxcorrMethod method;
  int32_t rshift, ashift;
  double prf_ratio;
  double min_valid, min_correlation;
  uint64_t memory_limit;
  uint32_t n_threads;
} ImkInsarxcorrConfig;

typedef struct ImkInsarxcorr ImkInsarxcorr;

/* The defaults are those of GMTSAR's xcorr -freq: 16 x 32 patches, search 64,
 * range_interp 2, interp 16; min_valid 0.5, min_correlation 18; CI16. */
void imk_insarxcorr_config_init (ImkInsarxcorrConfig *config);

/**
 * imk_insarxcorr_new: (an object for one pair of images)
 * @self: (out): free with imk_insarxcorr_free
 *
 * Images come by lines, and go again: of each image a band is kept that holds
 * one row of patches and what has come for the next, and of it those columns
 * alone that patches cover.
 * On IMK_BACKEND_CUDA the object belongs to the context that is current.
 * Returns: IMK_ERROR_CONFIG, also for a memory_limit that is too small for the
 *   bands; IMK_ERROR_MEMORY, IMK_ERROR_UNAVAILABLE, IMK_ERROR_DEVICE; @self
 *   untouched */
ImkStatus imk_insarxcorr_new (ImkBackend backend,
    const ImkInsarxcorrConfig *config, ImkInsarxcorr **self, ImkError *error);

/* Back to the first line of @side and the first row of patches, which needs the
 * first lines of the other side again, too. */
void imk_insarxcorr_rewind (ImkInsarxcorr *self, ImkInsarxcorrSide side);

/* Returns: how many lines of @side can be pushed now; 0 when rows of patches
 *   have to be processed first, or when all lines are there */
uint32_t imk_insarxcorr_room (
    const ImkInsarxcorr *self, ImkInsarxcorrSide side);

/* Returns: lines of @side that have been pushed */
uint32_t imk_insarxcorr_pushed (
    const ImkInsarxcorr *self, ImkInsarxcorrSide side);

/**
 * imk_insarxcorr_push: (the next lines of an image)
 * @lines: of the image's width and the type of the config, 1 channel, in host
 *   memory, at most imk_insarxcorr_room lines
 * @stream: cudaStream_t, NULL for the CPU; the call returns when @lines may be
 *   written again
 *
 * While one thread is in imk_insarxcorr_process, others may push, one a side.
 * All other calls are made one at a time.
 * Returns: IMK_ERROR_IMAGE, nothing was pushed; IMK_ERROR_DEVICE */
ImkStatus imk_insarxcorr_push (ImkInsarxcorr *self, ImkInsarxcorrSide side,
    const ImkImage *lines, void *stream, ImkError *error);

/* Returns: rows of patches that have been processed, ny after the last */
uint32_t imk_insarxcorr_row (const ImkInsarxcorr *self);

/* Returns: whether the lines of the next row of patches are all there */
bool imk_insarxcorr_is_ready (const ImkInsarxcorr *self);

/**
 * imk_insarxcorr_process: (measures the next row of patches)
 * @out: f64 [nx][IMK_INSARXCORR_N_FIELDS], patches by rising x
 * @stream: as for imk_insarxcorr_push; the call returns before the GPU is done
 *
 * Only when imk_insarxcorr_is_ready. imk_insarxcorr_advance goes with it, which
 * makes room for more lines.
 * Incoherent cross-correlation as GMTSAR's xcorr does it (Romano and Lapegna
 * 2021, algorithm 1); docs/insarxcorr.md has the formulas. What GMTSAR leaves
 * undefined is defined here:
 * - lines beyond the last repeat it, lines before the first repeat that,
 *   columns beyond the image are 0
 * - where the surroundings of a peak leave the surface there are zeros
 * - samples that are not finite are 0 and no data, as those that are 0
 * - a patch without any data gets the offset that GMTSAR prints, the corner of
 *   the search, and correlation 0
 * The CPU's results do not depend on n_threads, or on how lines are pushed.
 * Backends differ by the rounding of their FFTs: by one step of the finer
 * surface where two of its points are equal to 1e-6, and in CORRELATION by
 * 0.02 at most.
 * Returns: IMK_ERROR_IMAGE, @out untouched; IMK_ERROR_DEVICE, @out undefined */
ImkStatus imk_insarxcorr_process (
    ImkInsarxcorr *self, ImkImage *out, void *stream, ImkError *error);

/* The row is done: on a GPU, its stream has been waited for. */
void imk_insarxcorr_advance (ImkInsarxcorr *self);

/* @self may be NULL. Waits for the GPU. */
void imk_insarxcorr_free (ImkInsarxcorr *self);

#ifdef __cplusplus
}
#endif
