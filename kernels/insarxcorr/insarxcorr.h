/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdbool.h>

#include "imk/backend.h"
#include "imk/image.h"

IMK_BEGIN_DECLS

/* The two images. A feature at (x, y) of the reference lies at (x + dx, y + dy)
 * of the secondary. x is range (columns), y azimuth (lines), from 0. */
typedef enum ImkInsarxcorrSide {
  IMK_INSARXCORR_REFERENCE,
  IMK_INSARXCORR_SECONDARY,
  IMK_INSARXCORR_N_SIDES,
} ImkInsarxcorrSide;

/* What is measured with. */
typedef enum ImkInsarxcorrMode {
  IMK_INSARXCORR_COMPAT,  /* GMTSAR's xcorr, to the printed decimal */
  IMK_INSARXCORR_PRECISE, /* both axes oversampled before detection, after the
                           * carrier is taken away; normalised correlation */
} ImkInsarxcorrMode;

/* What the correlation surface of IMK_INSARXCORR_COMPAT is, over lags (dy, dx)
 * of [-ysearch, ysearch) x
 * [-xsearch, xsearch); a and b are amplitudes without their mean, sums run over
 * the template of 2 ysearch x 2 xsearch samples. */
typedef enum ImkInsarxcorrMethod {
  IMK_INSARXCORR_FREQ,  /* |sum a(n + d) b(n)|, by FFT; at its peak `time` */
  IMK_INSARXCORR_TIME,  /* 100 |sum A B| / sqrt (sum A A sum B B), A(n + d) and
                         * B(n) being a and b without their fractions */
  IMK_INSARXCORR_TIME4, /* 100 sqrt (2 g - 1), g = sum AA BB / sqrt (sum AAAA
                         * sum BBBB); 0 for g up to 1/2 */
} ImkInsarxcorrMethod;

/* Where patches are: their centres, with P x Q the size of a patch of the
 * secondary (4 xsearch x 4 ysearch in IMK_INSARXCORR_COMPAT), X = width - 3 P /
 * 2, Y = height - 3 Q / 2 of the reference,
 *   x(i) = P + i X / (nx + 3), i = 2..nx + 1
 *   y(j) = Q + j Y / (ny + 1), j = 1..ny */
typedef enum ImkInsarxcorrGrid {
  IMK_INSARXCORR_GRID_GMTSAR, /* X / (nx + 3) and Y / (ny + 1) are cut to
                               * integers: dense grids end before the image */
  IMK_INSARXCORR_GRID_EVEN,   /* i X and j Y are divided, then cut */
  IMK_INSARXCORR_GRID_STEP,   /* x = P / 2 + i step_x, y = Q / 2 + j step_y from
                               * i = j = 0 on, as long as patches lie in the
                               * reference; nx and ny follow */
} ImkInsarxcorrGrid;

/* The columns of the results. */
typedef enum ImkInsarxcorrField {
  IMK_INSARXCORR_X, /* centre of the patch in the reference, columns, lines */
  IMK_INSARXCORR_Y,
  IMK_INSARXCORR_DX, /* offset, columns, lines */
  IMK_INSARXCORR_DY,
  IMK_INSARXCORR_CORRELATION, /* 0..100, at the whole lag; column 5 of GMTSAR,
                               * its "SNR" */
  IMK_INSARXCORR_PEAK,        /* 0..100, at the fine peak */
  IMK_INSARXCORR_SNR,    /* largest^2 of the surface over the mean square of
                          * all that is not in the 8x8 lags around it */
  IMK_INSARXCORR_COV_XX, /* of the offset, columns^2; -1 when unknown */
  IMK_INSARXCORR_COV_YY, /* lines^2; -1 when unknown */
  IMK_INSARXCORR_COV_XY,
  IMK_INSARXCORR_VALID, /* part of the samples that are data, 0..1: of the patch
                         * that has fewer */
  IMK_INSARXCORR_FLAGS, /* ImkInsarxcorrFlags; 0 = good */
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
  IMK_INSARXCORR_MASKED = 1 << 4,  /* the mask leaves the patch out; so NO_DATA
                                    * as well, and the offset is the shift that
                                    * was known beforehand */
} ImkInsarxcorrFlags;

/* A patch in one word. */
typedef enum ImkInsarxcorrState {
  IMK_INSARXCORR_STATE_OK,
  IMK_INSARXCORR_STATE_EDGE,
  IMK_INSARXCORR_STATE_NO_DATA,
  IMK_INSARXCORR_STATE_LOW,
} ImkInsarxcorrState;

/* Returns: the word for @flags; of several, no data before edge before low */
static inline ImkInsarxcorrState
imk_insarxcorr_state (uint32_t flags)
{
  if (flags & IMK_INSARXCORR_NO_DATA)
    return IMK_INSARXCORR_STATE_NO_DATA;
  if (flags & IMK_INSARXCORR_EDGE)
    return IMK_INSARXCORR_STATE_EDGE;
  return flags & IMK_INSARXCORR_LOW ? IMK_INSARXCORR_STATE_LOW
                                    : IMK_INSARXCORR_STATE_OK;
}

/* Flags of offsets that mean nothing, whatever their correlation. */
#define IMK_INSARXCORR_INVALID_MASK \
  (IMK_INSARXCORR_EDGE | IMK_INSARXCORR_NO_DATA)

/* CUDA devices that can share the patches of a row. */
#define IMK_INSARXCORR_MAX_DEVICES 16

/* For min_correlation: what noise reaches in one patch of 100 at most. It
 * follows from the size of the template and of the search, see
 * docs/reference/insarxcorr.md, and imk_insarxcorr_config_complete fills it in.
 */
#define IMK_INSARXCORR_SIGNIFICANT (-1.0)

/**
 * ImkInsarxcorrConfig: (what to correlate)
 * @size: set by imk_insarxcorr_config_init, see imk/api.h
 * @width, @height: of each image, columns and lines
 * @type: of both: CI16, CF32, or F32 (an amplitude that is known already)
 * @mode: see there
 * @nx, @ny, @grid: patches a row and rows of them, 1..1000000 each
 * @step_x, @step_y: of IMK_INSARXCORR_GRID_STEP, at least 1
 * @xsearch, @ysearch: 4..1024. COMPAT: a patch has 4 xsearch x 4 ysearch
 *   samples, at most 2^22, the template half of it each way. PRECISE: columns
 *   and lines that are searched either way
 * @window_width, @window_height: PRECISE: columns and lines of the template,
 *   8..2048; 0 for 2 xsearch, 2 ysearch. With the search on both sides, and
 *   interpolated, they make at most 4096 either way and 2^22 together
 * @range_interp, @azimuth_interp: how much finer columns and lines are before
 *   detection, 1..16 and 1..4. COMPAT: the middle of the finer patch is used
 *   (for 2 it is centred; for more it is not, as in GMTSAR), so template and
 *   search shrink by range_interp; azimuth_interp is 1 whatever it says
 * @interp: 1..64, how much finer the surface becomes around its peak. COMPAT:
 *   offsets are multiples of 1 / (range_interp interp) columns and 1 / interp
 *   lines; PRECISE: a parabola goes on from there
 * @method: COMPAT
 * @rshift, @ashift: columns and lines that the secondary is behind, known
 *   beforehand, -1000000..1000000
 * @prf_ratio: (PRF of the secondary - PRF of the reference) / PRF of the
 *   reference, above -1: a patch of line y is shifted by another y prf_ratio
 *   lines, cut towards 0
 * @gross_offsets: [ny][nx][2]: of each patch, columns and lines, to be added to
 *   rshift and ashift, and rounded; NULL for none. Read by imk_insarxcorr_new
 * @mask, @mask_width, @mask_height: [mask_height][mask_width] over all of the
 *   reference; patches whose centre lies on a 0 are left out. NULL for none.
 *   Read by imk_insarxcorr_new
 * @min_valid: of VALID, 0..1
 * @min_correlation: of CORRELATION, for IMK_INSARXCORR_LOW: 0..100, or
 *   IMK_INSARXCORR_SIGNIFICANT
 * @memory_limit: bytes, of lines and of work; 0 for none
 * @n_threads: CPU threads, 0 for one a processor
 * @n_devices, @devices: CUDA: devices that take a part of each row's patches
 *   beside that of the current context; each has a band of the columns that
 *   its patches need. Results do not depend on them */
typedef struct ImkInsarxcorrConfig {
  size_t size;
  uint32_t width[IMK_INSARXCORR_N_SIDES], height[IMK_INSARXCORR_N_SIDES];
  ImkType type;
  ImkInsarxcorrMode mode;
  uint32_t nx, ny;
  ImkInsarxcorrGrid grid;
  uint32_t step_x, step_y;
  uint32_t xsearch, ysearch;
  uint32_t window_width, window_height;
  uint32_t range_interp, azimuth_interp, interp;
  ImkInsarxcorrMethod method;
  int32_t rshift, ashift;
  double prf_ratio;
  const double *gross_offsets;
  const uint8_t *mask;
  uint32_t mask_width, mask_height;
  double min_valid, min_correlation;
  uint64_t memory_limit;
  uint32_t n_threads;
  uint32_t n_devices;
  int devices[IMK_INSARXCORR_MAX_DEVICES - 1];
} ImkInsarxcorrConfig;

typedef struct ImkInsarxcorr ImkInsarxcorr;

/* The defaults are those of GMTSAR's xcorr -freq: 16 x 32 patches, search 64,
 * range_interp 2, interp 16; azimuth_interp 2 for PRECISE; min_valid 0.5,
 * min_correlation 18; CI16. */
IMK_API void imk_insarxcorr_config_init_sized (
    ImkInsarxcorrConfig *config, size_t size);
static inline void
imk_insarxcorr_config_init (ImkInsarxcorrConfig *config)
{
  imk_insarxcorr_config_init_sized (config, sizeof (*config));
}

/**
 * imk_insarxcorr_config_complete: (what follows from the rest)
 *
 * Fills in the window of PRECISE, the correlation that is significant, and, for
 * IMK_INSARXCORR_GRID_STEP, nx and ny; imk_insarxcorr_new does so on its own
 * copy.
 * Returns: IMK_ERROR_CONFIG when @config is not valid, untouched then */
IMK_API ImkStatus imk_insarxcorr_config_complete (
    ImkInsarxcorrConfig *config, ImkError *error);

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
IMK_API ImkStatus imk_insarxcorr_new (ImkBackend backend,
    const ImkInsarxcorrConfig *config, ImkInsarxcorr **self, ImkError *error);

/* Back to the first line of @side and the first row of patches, which needs the
 * first lines of the other side again, too. */
IMK_API void imk_insarxcorr_rewind (
    ImkInsarxcorr *self, ImkInsarxcorrSide side);

/* Returns: how many lines of @side can be pushed now; 0 when rows of patches
 *   have to be processed first, or when all lines are there */
IMK_API uint32_t imk_insarxcorr_room (
    const ImkInsarxcorr *self, ImkInsarxcorrSide side);

/* Returns: lines of @side that have been pushed */
IMK_API uint32_t imk_insarxcorr_pushed (
    const ImkInsarxcorr *self, ImkInsarxcorrSide side);

/**
 * imk_insarxcorr_push: (the next lines of an image)
 * @lines: of the image's width and the type of the config, 1 channel, in host
 *   memory, at most imk_insarxcorr_room lines
 *
 * The call returns when @lines may be written again. On a GPU, page-locked
 * lines are copied without the CPU.
 * While one thread is in imk_insarxcorr_process, others may push, one a side.
 * All other calls are made one at a time.
 * Returns: IMK_ERROR_IMAGE, nothing was pushed; IMK_ERROR_DEVICE */
IMK_API ImkStatus imk_insarxcorr_push (ImkInsarxcorr *self,
    ImkInsarxcorrSide side, const ImkImage *lines, ImkError *error);

/* Returns: bytes of lines that went into bands so far: of those lines and
 * columns alone that patches cover, each once a device */
IMK_API uint64_t imk_insarxcorr_bytes (const ImkInsarxcorr *self);

/* Returns: rows of patches that have been processed, ny after the last */
IMK_API uint32_t imk_insarxcorr_row (const ImkInsarxcorr *self);

/* Returns: whether the lines of the next row of patches are all there */
IMK_API bool imk_insarxcorr_is_ready (const ImkInsarxcorr *self);

/**
 * imk_insarxcorr_process: (measures the next row of patches)
 * @out: f64 [nx][IMK_INSARXCORR_N_FIELDS], patches by rising x; with further
 *   devices page-locked (HOST_MAPPED), as all of them write it
 * @stream: cudaStream_t, NULL for the CPU; the call returns before the GPU is
 *   done
 *
 * Only when imk_insarxcorr_is_ready. imk_insarxcorr_advance goes with it, which
 * makes room for more lines.
 * COMPAT is incoherent cross-correlation as GMTSAR's xcorr does it (Romano and
 * Lapegna 2021, algorithm 1), PRECISE an own chain;
 * docs/reference/insarxcorr.md has the formulas. What GMTSAR leaves undefined
 * is defined here:
 * - lines beyond the last repeat it, lines before the first repeat that,
 *   columns beyond the image are 0
 * - where the surroundings of a peak leave the surface there are zeros
 * - samples that are not finite are 0 and no data, as those that are 0
 * - a patch without any data gets the offset that GMTSAR prints, the corner of
 *   the search, and correlation 0
 * Results do not depend on n_threads, n_devices, memory_limit, or on how lines
 * are pushed. Backends differ by the rounding of their float32 FFTs. COMPAT: by
 * one step of the finer surface where two of its points are equal to 1e-6, and
 * in CORRELATION by 0.02 at most. PRECISE: by 0.002 samples and, in CORRELATION
 * and PEAK, by 0.02 at most. Where two peaks are that much alike, either may
 * be found. SNR and covariance agree to a thousandth, covariance to 1e-8.
 * Returns: IMK_ERROR_IMAGE, @out untouched; IMK_ERROR_DEVICE, @out undefined */
IMK_API ImkStatus imk_insarxcorr_process (
    ImkInsarxcorr *self, ImkImage *out, void *stream, ImkError *error);

/* The row is done: on a GPU, its stream has been waited for. */
IMK_API void imk_insarxcorr_advance (ImkInsarxcorr *self);

/* From any thread. While @cancel the CPU begins no more patches: a row that is
 * under way fails with IMK_ERROR_IMAGE, and is as if it had not been begun. A
 * row of a GPU ends in milliseconds, and as usual. */
IMK_API void imk_insarxcorr_cancel (ImkInsarxcorr *self, bool cancel);

/* @self may be NULL. Waits for the GPU. */
IMK_API void imk_insarxcorr_free (ImkInsarxcorr *self);

IMK_END_DECLS
