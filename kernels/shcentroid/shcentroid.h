/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "core/backend.h"
#include "core/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * ImkShcentroidCell: (one cell of an explicit map, in pixels)
 * @x, @y, @width, @height: the cell covers the columns [floor (x), floor (x +
 *   width)) and rows alike; sides of at least 1
 * @ref_x, @ref_y: the reference position; NaN for the centre of the cell,
 *   x + width / 2 - 0.5
 * @min_flux, @threshold: of this cell, in counts; NaN for the configured one */
typedef struct ImkShcentroidCell {
  double x, y, width, height;
  double ref_x, ref_y;
  double min_flux;
  double threshold;
} ImkShcentroidCell;

typedef enum ImkShcentroidThreshold {
  IMK_SHCENTROID_THRESHOLD_NONE,
  IMK_SHCENTROID_THRESHOLD_ABSOLUTE, /* T = threshold, in counts */
} ImkShcentroidThreshold;

/* What becomes of a sample v at the threshold T. */
typedef enum ImkShcentroidAction {
  IMK_SHCENTROID_ACTION_SUBTRACT, /* max (v - T, 0): continuous in T */
  IMK_SHCENTROID_ACTION_KEEP,     /* v >= T ? v : 0 */
} ImkShcentroidAction;

/* What a cell without a valid centroid reports; its flags say so anyway. */
typedef enum ImkShcentroidInvalid {
  IMK_SHCENTROID_INVALID_ZERO,      /* x, y = the reference, slopes 0 */
  IMK_SHCENTROID_INVALID_HOLD,      /* the last valid x, y and slopes */
  IMK_SHCENTROID_INVALID_NAN,       /* x, y, dx, dy, var_x, var_y are NaN */
  IMK_SHCENTROID_INVALID_REFERENCE, /* as ZERO, but the cell takes part where
                                     * frames are averaged over valid cells */
} ImkShcentroidInvalid;

/* Which pixels a cell of the grid covers. */
typedef enum ImkShcentroidRule {
  /* [floor (x0 + c d), floor (x0 + (c + 1) d)): a partition */
  IMK_SHCENTROID_RULE_SINGLE_FLOOR,
  /* from floor (x0 + c d) to before the floor of that + d, for parity with
   * eqs. 3 and 4 to the letter: a fractional pitch leaves pixels to nobody */
  IMK_SHCENTROID_RULE_PAPER,
} ImkShcentroidRule;

/* What is reported of every cell. */
typedef enum ImkShcentroidFields {
  IMK_SHCENTROID_FIELDS_ALL,    /* n_cells rows of IMK_SHCENTROID_N_FIELDS */
  IMK_SHCENTROID_FIELDS_XY,     /* n_cells rows of x, y */
  IMK_SHCENTROID_FIELDS_SLOPES, /* one row: dx of all cells, dy of all cells */
} ImkShcentroidFields;

/* The columns of FIELDS_ALL. */
typedef enum ImkShcentroidField {
  IMK_SHCENTROID_X, /* pixels; (0, 0) is the centre of the top left one */
  IMK_SHCENTROID_Y,
  IMK_SHCENTROID_DX, /* (x - reference) slope_scale, pixels */
  IMK_SHCENTROID_DY,
  IMK_SHCENTROID_FLUX,     /* m00, after the threshold, counts */
  IMK_SHCENTROID_FLUX_RAW, /* sum of the cell as it came, counts */
  IMK_SHCENTROID_MAX,      /* largest sample as it came, counts */
  IMK_SHCENTROID_VAR_X,    /* of x, by photon and read noise, pixels squared */
  IMK_SHCENTROID_VAR_Y,
  IMK_SHCENTROID_FLAGS, /* ImkShcentroidFlags; 0 = good */
  IMK_SHCENTROID_N_FIELDS,
} ImkShcentroidField;

typedef enum ImkShcentroidFlags {
  IMK_SHCENTROID_NO_FLUX = 1 << 0,   /* nothing above the threshold: invalid */
  IMK_SHCENTROID_LOW_FLUX = 1 << 1,  /* flux below min_flux: invalid */
  IMK_SHCENTROID_SATURATED = 1 << 2, /* a sample at or above saturation */
  IMK_SHCENTROID_CLIPPED = 1 << 3,   /* the cell reaches beyond the frame */
} ImkShcentroidFlags;

/* The flags of a cell that has no valid centroid. */
#define IMK_SHCENTROID_INVALID_MASK \
  (IMK_SHCENTROID_NO_FLUX | IMK_SHCENTROID_LOW_FLUX)

/**
 * ImkShcentroidConfig: (what to measure)
 * @width, @height: the frame in pixels, 1..65535 each
 * @type: IMK_TYPE_U8 or IMK_TYPE_U16, one channel
 * @x0, @y0, @pitch_x, @pitch_y: pixels; cell (row r, column c) covers the
 *   columns [floor (x0 + c pitch_x), floor (x0 + (c + 1) pitch_x)) and rows
 *   alike: no gap, no overlap (Mocci et al. 2020, eqs. 3 and 4, floored once);
 *   pitches of at least 1
 * @columns, @rows: of cells, at least 1
 * @grid_rule: which pixels the cells of the grid cover, if not those
 * @cells, @n_cells: an explicit map instead of the grid when @n_cells is not
 *   0; read during the call only
 * @references: x, y of every cell, 2 n doubles, instead of the defaults; NULL
 *   for none; read during the call only. Default: the centre of the cell,
 *   x0 + (c + 0.5) pitch_x - 0.5
 * @n_threads: CPU threads, 0 for one a processor
 * @min_flux: counts of flux (m00) below which a cell is invalid
 * @saturation: counts at and above which a sample is saturated; 0 for never
 * @gain: electrons a count, above 0, and @read_noise: counts rms, for the
 *   variances
 * @slope_scale: what dx and dy are multiplied with, not 0; 1 for pixels
 *
 * A cell reaching beyond the frame is clipped and flagged; one wholly outside
 * is an error. The members from @threshold_mode on may change between frames;
 * the others are the geometry and need a new object. */
typedef struct ImkShcentroidConfig {
  uint32_t width, height;
  ImkType type;
  double x0, y0, pitch_x, pitch_y;
  uint32_t columns, rows;
  ImkShcentroidRule grid_rule;
  const ImkShcentroidCell *cells;
  uint32_t n_cells;
  const double *references;
  uint32_t n_threads;
  ImkShcentroidFields fields;

  ImkShcentroidThreshold threshold_mode;
  ImkShcentroidAction threshold_action;
  double threshold;
  double min_flux;
  double saturation;
  double gain, read_noise;
  ImkShcentroidInvalid invalid_policy;
  double slope_scale;
} ImkShcentroidConfig;

typedef struct ImkShcentroid ImkShcentroid;

/**
 * imk_shcentroid_config_init: (the defaults)
 * 1x1 u8, one cell of it; all fields; no threshold, action subtract; min_flux
 * 0, saturation 0, gain 1, read_noise 0, policy zero. */
void imk_shcentroid_config_init (ImkShcentroidConfig *config);

/**
 * imk_shcentroid_n_cells: (of a configuration)
 * Returns: n_cells of the map, or columns * rows */
uint32_t imk_shcentroid_n_cells (const ImkShcentroidConfig *config);

/**
 * imk_shcentroid_cell: (what a cell of a valid configuration came to be)
 * @index: below imk_shcentroid_n_cells ()
 * Returns: edges in whole pixels, inside the frame, and the reference; min_flux
 *   and threshold are NaN where the configured ones count */
ImkShcentroidCell imk_shcentroid_cell (
    const ImkShcentroidConfig *config, uint32_t index);

/**
 * imk_shcentroid_new: (an object for frames and cells of one geometry)
 * @self: (out): free with imk_shcentroid_free
 *
 * On IMK_BACKEND_CUDA the object belongs to the context that is current.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY, IMK_ERROR_UNAVAILABLE,
 *   IMK_ERROR_DEVICE; @self untouched */
ImkStatus imk_shcentroid_new (ImkBackend backend,
    const ImkShcentroidConfig *config, ImkShcentroid **self, ImkError *error);

/**
 * imk_shcentroid_update: (parameters for the frames from now on)
 * The geometry in @config (frame, grid, map, references, fields) is not looked
 * at. Returns: IMK_ERROR_CONFIG; the old parameters stay in force */
ImkStatus imk_shcentroid_update (
    ImkShcentroid *self, const ImkShcentroidConfig *config, ImkError *error);

/**
 * imk_shcentroid_process: (measures every cell of one frame)
 * @in: u8 or u16, 1 channel, width x height of the config, any stride
 * @out: f32 or f64, shape by `fields`: [cells][10], [cells][2] or [1][2 cells];
 *   cells row by row or in the order of the map
 * @stream: cudaStream_t, NULL for the CPU; the call returns before the GPU is
 *   done
 *
 * c = (m10 / m00, m01 / m00): Mocci et al. 2020, eqs. 6 and 7, with moments
 * about the corner of the cell. They are exact integers on both backends (also
 * with a fractional threshold T, which enters as m - T n), the rest is one and
 * the same sequence of float64 operations: backends agree bit for bit.
 *   var_x = sum (x - c_x)^2 (v / gain + read_noise^2) / m00^2
 * over the samples above the threshold, v as it came (photon noise in counts
 * squared is v / gain).
 * Returns: IMK_ERROR_IMAGE, @out untouched; IMK_ERROR_DEVICE, @out undefined */
ImkStatus imk_shcentroid_process (ImkShcentroid *self, const ImkImage *in,
    ImkImage *out, void *stream, ImkError *error);

/* Forgets what IMK_SHCENTROID_INVALID_HOLD holds: the next frame is the first.
 * @stream: as for imk_shcentroid_process. */
ImkStatus imk_shcentroid_reset (
    ImkShcentroid *self, void *stream, ImkError *error);

/* @self may be NULL. Waits for the GPU. */
void imk_shcentroid_free (ImkShcentroid *self);

#ifdef __cplusplus
}
#endif
