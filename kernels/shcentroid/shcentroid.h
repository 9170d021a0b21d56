/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "imk/backend.h"
#include "imk/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * ImkShcentroidCell: (one cell of an explicit map, in pixels)
 * @x, @y, @width, @height: the cell covers the columns [floor (x), floor (x +
 *   width)) and rows alike; sides of at least 1, and none of the four beyond
 *   1e9
 * @ref_x, @ref_y: the reference position, to 1e9; NaN for the centre of the
 *   cell, x + width / 2 - 0.5
 * @min_flux, @threshold: of this cell, in the units of the configuration; NaN
 *   for the configured one */
typedef struct ImkShcentroidCell {
  double x, y, width, height;
  double ref_x, ref_y;
  double min_flux;
  double threshold;
} ImkShcentroidCell;

/* The threshold T of a cell, t the configured one or its own, max and min the
 * largest and smallest of its calibrated values. */
typedef enum ImkShcentroidThreshold {
  IMK_SHCENTROID_THRESHOLD_NONE,
  IMK_SHCENTROID_THRESHOLD_ABSOLUTE, /* t, in counts */
  IMK_SHCENTROID_THRESHOLD_RELATIVE, /* t max, at least threshold_least */
  IMK_SHCENTROID_THRESHOLD_RANGE,    /* min + t (max - min), at least that */
  IMK_SHCENTROID_THRESHOLD_NOISE,    /* t read_noise */
  IMK_SHCENTROID_N_THRESHOLDS,
} ImkShcentroidThreshold;

/* What becomes of a sample v at the threshold T. */
typedef enum ImkShcentroidAction {
  IMK_SHCENTROID_ACTION_SUBTRACT, /* max (v - T, 0): continuous in T */
  IMK_SHCENTROID_ACTION_KEEP,     /* v >= T ? v : 0 */
} ImkShcentroidAction;

/* What a pixel is multiplied with: exp (-r^2 / (2 sigma^2)), r its distance
 * from a centre. A weight about a fixed centre draws the centroid towards it:
 * a Gaussian spot of sigma_s seems to move by sigma^2 / (sigma^2 + sigma_s^2)
 * of what it does (Thomas et al. 2006); iterations undo that. */
typedef enum ImkShcentroidWeighting {
  IMK_SHCENTROID_WEIGHTING_NONE,
  IMK_SHCENTROID_WEIGHTING_GAUSSIAN, /* about the reference */
  IMK_SHCENTROID_WEIGHTING_TRACKING, /* about the tracked position */
} ImkShcentroidWeighting;

typedef enum ImkShcentroidEstimator {
  IMK_SHCENTROID_ESTIMATOR_COG,         /* the centre of gravity */
  IMK_SHCENTROID_ESTIMATOR_QUAD,        /* quad cell: the middle of the cell +
                                         * quad_gain
                                         * ((right - left) / all, (bottom - top) /
                                         * all); a middle column counts for neither */
  IMK_SHCENTROID_ESTIMATOR_CORRELATION, /* where a template is found */
  IMK_SHCENTROID_ESTIMATOR_MATCHED,     /* the matched filter of a template */
  IMK_SHCENTROID_ESTIMATOR_PUPILS,      /* four pupil images of a pyramid */
  IMK_SHCENTROID_N_ESTIMATORS,
} ImkShcentroidEstimator;

/* What the differences of pupil images are divided by. */
typedef enum ImkShcentroidNormalisation {
  IMK_SHCENTROID_NORMALISATION_LOCAL,  /* the flux of the cell */
  IMK_SHCENTROID_NORMALISATION_GLOBAL, /* its mean over the valid cells */
} ImkShcentroidNormalisation;

/* How well the template R lies on the pixels I of a cell when it is moved by
 * whole pixels s: over the pixels p that lie in both, n of them, a = I (p + s)
 * and b = R (p) less their means, A = sum a^2, B = sum b^2, C = sum a b. The
 * best s is the shift. */
typedef enum ImkShcentroidCorrelation {
  IMK_SHCENTROID_CORRELATION_NORMALISED, /* C / sqrt (A B), 1 at best: scenes
                                          * that go on beyond the cell */
  IMK_SHCENTROID_CORRELATION_COVARIANCE, /* sum a b, means over the whole cell
                                          * and the whole template: spots; the
                                          * edge of a scene draws it to 0 */
  IMK_SHCENTROID_CORRELATION_DIFFERENCE, /* -(A - 2 C + B) / n */
} ImkShcentroidCorrelation;

/* The fraction of the shift, from the scores around the best one. */
typedef enum ImkShcentroidPeakFit {
  /* the vertex of z = c + a2 x + a3 x^2 + a4 y + a5 y^2 + a6 x y, a2 to a5 by
   * the next scores in x and y, a6 by those in the corners (2QI of Loefdahl
   * 2010, A&A 524, A90) */
  IMK_SHCENTROID_PEAK_PARABOLOID,
  IMK_SHCENTROID_PEAK_PARABOLA, /* the same without a6: one axis at a time */
} ImkShcentroidPeakFit;

/* Where the templates come from. */
typedef enum ImkShcentroidTemplateSource {
  IMK_SHCENTROID_TEMPLATE_STORED, /* the configuration */
  IMK_SHCENTROID_TEMPLATE_FRAME,  /* template_cell of the frame itself */
} ImkShcentroidTemplateSource;

/* Whole pixels, at most. */
enum { IMK_SHCENTROID_MAX_SEARCH_RANGE = 32 };

typedef enum ImkShcentroidWindowMode {
  IMK_SHCENTROID_WINDOW_CELL,     /* a cell stays where it is */
  IMK_SHCENTROID_WINDOW_TRACKING, /* it moves with the tracked position, in
                                   * whole pixels, as far as the frame goes */
} ImkShcentroidWindowMode;

/* What a cell without a valid centroid reports; its flags say so anyway. */
typedef enum ImkShcentroidInvalid {
  IMK_SHCENTROID_INVALID_ZERO,      /* x, y = the reference, slopes 0 */
  IMK_SHCENTROID_INVALID_HOLD,      /* the last valid x, y and slopes */
  IMK_SHCENTROID_INVALID_NAN,       /* x, y, dx, dy, var_x, var_y are NaN */
  IMK_SHCENTROID_INVALID_REFERENCE, /* as ZERO, but the cell takes part in means
                                     * over valid cells */
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
  IMK_SHCENTROID_FLUX,     /* m00, after threshold, weight and power */
  IMK_SHCENTROID_FLUX_RAW, /* sum of the calibrated values, counts */
  IMK_SHCENTROID_MAX,      /* the largest of them, counts */
  IMK_SHCENTROID_VAR_X,    /* of x, by photon and read noise, pixels squared */
  IMK_SHCENTROID_VAR_Y,
  IMK_SHCENTROID_FLAGS, /* ImkShcentroidFlags; 0 = good */
  IMK_SHCENTROID_N_FIELDS,
} ImkShcentroidField;

typedef enum ImkShcentroidFlags {
  IMK_SHCENTROID_NO_FLUX = 1 << 0,   /* nothing above the threshold: invalid */
  IMK_SHCENTROID_LOW_FLUX = 1 << 1,  /* flux below min_flux or the share of
                                      * min_illumination: invalid */
  IMK_SHCENTROID_SATURATED = 1 << 2, /* a sample at or above saturation */
  IMK_SHCENTROID_CLIPPED = 1 << 3,   /* the cell reaches beyond the frame */
  IMK_SHCENTROID_EDGE = 1 << 4, /* tracking stopped at the edge of the frame */
  IMK_SHCENTROID_NO_MATCH = 1 << 5, /* the template is not found within the
                                     * search range: invalid */
  IMK_SHCENTROID_OUTSIDE = 1 << 6,  /* values below 0 put the centroid more than
                                     * half a pixel outside: invalid */
  IMK_SHCENTROID_NOT_FINITE = 1
                              << 7, /* a float32 sample is no number or
                                     * infinite: invalid, no flux and no max */
} ImkShcentroidFlags;

/* The flags of a cell that has no valid centroid. */
#define IMK_SHCENTROID_INVALID_MASK \
  (IMK_SHCENTROID_NO_FLUX | IMK_SHCENTROID_LOW_FLUX | \
      IMK_SHCENTROID_NO_MATCH | IMK_SHCENTROID_OUTSIDE | \
      IMK_SHCENTROID_NOT_FINITE)

/**
 * ImkShcentroidConfig: (what to measure)
 * @size: set by imk_shcentroid_config_init, see imk/api.h
 * @width, @height: the frame in pixels, 1..65535 each
 * @type: IMK_TYPE_U8, IMK_TYPE_U16 or IMK_TYPE_F32, one channel. A float32
 *   sample that is no number, infinite or beyond 1e30 makes its cell invalid
 *   and leaves the others alone
 * @x0, @y0, @pitch_x, @pitch_y: pixels; cell (row r, column c) covers the
 *   columns [floor (x0 + c pitch_x), floor (x0 + (c + 1) pitch_x)) and rows
 *   alike: no gap, no overlap (Mocci et al. 2020, eqs. 3 and 4, floored once);
 *   pitches of at least 1
 * @columns, @rows: of cells, at least 1
 * @grid_rule: another rule for which pixels the cells of the grid cover
 * @cells, @n_cells: an explicit map instead of the grid when @n_cells is not
 *   0; read during the call only
 * @references: x, y of every cell, 2 n doubles, instead of the defaults; NULL
 *   for none; to 1e9; read during the call only. Default: the centre of the
 *   cell, x0 + (c + 0.5) pitch_x - 0.5
 * @margin: pixels left out at each edge of every cell; the reference stays
 * @dark, @flat: width x height numbers each, row by row; NULL for 0 and for 1.
 *   Finite; flat from 0 to 1e6, and a pixel whose flat is 0 is bad
 * @bad: width x height bytes, not 0 for a bad pixel; NULL for none
 * @lut: what each sample stands for, 256 numbers for u8, 65536 for u16, none
 *   for f32; NULL for itself. These four are read during the call only
 * @templates, @n_templates, @template_width, @template_height: what correlation
 *   looks for: as many pictures, row by row, one for all cells or one for each;
 *   none when @n_templates is 0. Finite, not constant, not larger than a cell;
 *   taken as they are, without threshold, weight or power. Read during the call
 *   only
 * @template_source: these, or the cell @template_cell of the frame itself, as
 *   it is after threshold, weight and power, less @template_margin pixels at
 *   each edge
 * @template_cell: the cell that the one template is a picture of; -1 for none.
 *   At shift 0 a template lies in the middle of its cell, rounded down to whole
 *   pixels. A template of each cell, or of @template_cell, shows its cell when
 *   the spot is at the cell's centre, or at the reference of its map: x is that
 *   plus the shift. One of no cell is a picture of what is looked for: x is
 *   where its middle is
 * @n_threads: CPU threads, 0 for one a processor
 * @threshold: t, in the unit of @threshold_mode: counts, a fraction (above
 *   1 nothing is left), or times the read noise; a cell of a map may have its
 *   own
 * @threshold_least: counts; the least T when relative or range
 * @brightest: pixels that count, and all that tie with the last of them; 0 for
 *   all. When subtracting, T is at least the next lower value that differs,
 *   else theirs. Where no value is lower all pixels count
 * @sigma: of the weight, pixels, above 0
 * @iterations: 1..100; from the second on the weight is about the centroid that
 *   the one before found. With the weight goes the noise: if a shift s of the
 *   weight moves the centroid by q s, k iterations have (1 + q + ... + q^(k -
 *   1))^2 times the variance of one; to find q in x and y takes two more passes
 *   with all fields
 * @power: 1..4, of the pixel after threshold and weight
 * @quad_gain: pixels, above 0
 * @correlation, @peak_fit: of ESTIMATOR_CORRELATION; iterations mean nothing to
 *   it. A bad pixel counts as the mean of its cell
 * @search_range: 1..IMK_SHCENTROID_MAX_SEARCH_RANGE pixels, the largest shift
 *   in x and y; at most half the width and height of the cell are searched. A
 * best shift at the end of the range, where the peak may be beyond, is none
 * @min_correlation: 0..1; the least C / sqrt (A B), whatever @correlation, of a
 *   template that is found
 * @tracking_gain: 0..1; a valid centroid c moves the tracked position t, which
 *   starts at the reference, by tracking_gain (c - t)
 * @tracking_reset: invalid frames in a row after which t is the reference
 *   again; 0 for never
 * @remove_tilt: slopes are less their mean over the valid cells. An invalid
 *   cell is not in the mean, and keeps its 0 or NaN; under HOLD its slope is
 *   less the mean; under REFERENCE it is as a valid one. x and y stay
 * @min_flux: flux (m00) below which a cell is invalid
 * @saturation: counts at and above which a sample, as it came, is saturated; 0
 *   for never
 * @gain: electrons a count, above 0, and @read_noise: counts rms, for the
 *   variances
 * @slope_scale: what dx and dy are multiplied with, not 0; 1 for pixels
 * @min_illumination: 0..1; a cell with less than this share of the flux of the
 *   brightest cell of the frame is invalid, as one below min_flux; 0 for none
 * @normalisation: of ESTIMATOR_PUPILS
 * @pupils: of ESTIMATOR_PUPILS: of each cell of the map its pixels y width + x
 * in pupil images 1 to 4, 4 n numbers; NULL for none; read during the call
 * only. imk_shcentroid_find_pupils () makes both
 *
 * A cell reaching beyond the frame is clipped and flagged; one wholly outside
 * is an error. The members from @threshold_mode on may change between frames;
 * the others, and @pupils, are the geometry and need a new object. */
typedef struct ImkShcentroidConfig {
  size_t size;
  uint32_t width, height;
  ImkType type;
  double x0, y0, pitch_x, pitch_y;
  uint32_t columns, rows;
  ImkShcentroidRule grid_rule;
  const ImkShcentroidCell *cells;
  uint32_t n_cells;
  const double *references;
  uint32_t margin;
  const float *dark, *flat;
  const uint8_t *bad;
  const float *lut;
  const float *templates;
  uint32_t n_templates, template_width, template_height;
  ImkShcentroidTemplateSource template_source;
  int32_t template_cell;
  uint32_t template_margin;
  uint32_t n_threads;
  ImkShcentroidFields fields;

  ImkShcentroidThreshold threshold_mode;
  ImkShcentroidAction threshold_action;
  double threshold, threshold_least;
  uint32_t brightest;
  ImkShcentroidWeighting weighting;
  double sigma;
  uint32_t iterations;
  double power;
  ImkShcentroidEstimator estimator;
  double quad_gain;
  ImkShcentroidCorrelation correlation;
  ImkShcentroidPeakFit peak_fit;
  uint32_t search_range;
  double min_correlation;
  ImkShcentroidWindowMode window;
  double tracking_gain;
  uint32_t tracking_reset;
  bool remove_tilt;
  double min_flux;
  double saturation;
  double gain, read_noise;
  ImkShcentroidInvalid invalid_policy;
  double slope_scale;
  double min_illumination;
  ImkShcentroidNormalisation normalisation;
  const uint32_t *pupils;
} ImkShcentroidConfig;

typedef struct ImkShcentroid ImkShcentroid;

/**
 * imk_shcentroid_config_init: (the defaults)
 * 1x1 u8, one cell of it; all fields; no calibration, no threshold, action
 * subtract, no weight, sigma 1, 1 iteration, power 1, estimator cog, quad_gain
 * 1, no templates, template_cell -1, template_margin 0, correlation normalised,
 * peak_fit paraboloid, search_range 4, min_correlation 0.25, cells that stay,
 * tracking_gain 1, tracking_reset 0, tilt stays; min_flux 0, saturation 0, gain
 * 1, read_noise 0, policy zero, min_illumination 0,
 * normalisation local, no pupils. */
IMK_API void imk_shcentroid_config_init_sized (
    ImkShcentroidConfig *config, size_t size);
static inline void
imk_shcentroid_config_init (ImkShcentroidConfig *config)
{
  imk_shcentroid_config_init_sized (config, sizeof (*config));
}

/**
 * imk_shcentroid_n_cells: (of a configuration)
 * Returns: n_cells of the map, or columns * rows */
IMK_API uint32_t imk_shcentroid_n_cells (const ImkShcentroidConfig *config);

/**
 * imk_shcentroid_cell: (what a cell of a valid configuration came to be)
 * @index: below imk_shcentroid_n_cells ()
 * Returns: edges in whole pixels, inside the frame, and the reference; min_flux
 *   and threshold are NaN where the configured ones count */
IMK_API ImkShcentroidCell imk_shcentroid_cell (
    const ImkShcentroidConfig *config, uint32_t index);

/**
 * imk_shcentroid_get_references: (that slopes are measured from)
 * @config: one that imk_shcentroid_new took
 * @xy: (out): x and y of each cell, 2 n doubles */
IMK_API void imk_shcentroid_get_references (
    const ImkShcentroidConfig *config, double *xy);

/**
 * imk_shcentroid_cut_templates: (from a picture of the whole frame)
 * @config: its frame and cells are looked at; @template_cell says which cell
 *   is cut out, -1 for each of them, and @template_margin how much less than
 *   the smallest cell
 * @frame: width x height calibrated values, NaN for a bad pixel; no template
 *   may be larger
 * @to: (out): its templates and their number and size are set
 * @templates: (out): what they point to, for free ()
 *
 * They lie where the object of that configuration looks for them.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY; nothing is set */
IMK_API ImkStatus imk_shcentroid_cut_templates (
    const ImkShcentroidConfig *config, const float *frame,
    ImkShcentroidConfig *to, float **templates, ImkError *error);

/**
 * imk_shcentroid_find_pupils: (the cells of four pupil images)
 * @numbers: width x height: 1 to 4 of a pixel of that pupil image, 0 of others
 * @to: (out): cells, n_cells and pupils are set
 * @cells, @pupils: (out): what they point to, for free ()
 *
 * A cell is a pixel of pupil image 1 and the pixels of the others that are as
 * many after their first, row by row.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY; nothing is set */
IMK_API ImkStatus imk_shcentroid_find_pupils (const uint8_t *numbers,
    uint32_t width, uint32_t height, ImkShcentroidConfig *to,
    ImkShcentroidCell **cells, uint32_t **pupils, ImkError *error);

/**
 * imk_shcentroid_new: (an object for frames and cells of one geometry)
 * @self: (out): free with imk_shcentroid_free
 *
 * On IMK_BACKEND_CUDA the object belongs to the context that is current.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY, IMK_ERROR_UNAVAILABLE,
 *   IMK_ERROR_DEVICE; @self untouched */
IMK_API ImkStatus imk_shcentroid_new (ImkBackend backend,
    const ImkShcentroidConfig *config, ImkShcentroid **self, ImkError *error);

/**
 * imk_shcentroid_update: (parameters for the frames from now on)
 * The geometry in @config (frame, grid, map, references, fields) is not looked
 * at. Returns: IMK_ERROR_CONFIG; the old parameters stay in force */
IMK_API ImkStatus imk_shcentroid_update (
    ImkShcentroid *self, const ImkShcentroidConfig *config, ImkError *error);

/**
 * imk_shcentroid_process: (measures every cell of one frame)
 * @in: u8, u16 or f32, 1 channel, width x height of the config, any stride
 * @out: f32 or f64, shape by `fields`: [cells][10], [cells][2] or [1][2 cells];
 *   cells row by row or in the order of the map
 * @stream: cudaStream_t, NULL for the CPU; the call returns before the GPU is
 *   done
 *
 * From sample to sums, in this order, u and y counted from the cell's corner:
 *   v = (lut (sample) - dark) flat; a bad pixel takes part in nothing
 *   p = v where v >= T, less T when subtracting; else 0
 *   p = (p weight)^power
 *   m00 = sum p, m10 = sum p u, m01 = sum p y
 *   c = (m10 / m00, m01 / m00): Mocci et al. 2020, eqs. 6 and 7
 *   var_x = sum (u - c_x)^2 (dp / dv)^2 var (v) / m00^2
 *   var (v) = flat v / gain + flat^2 read_noise^2, not below T
 * v may be negative, and counts so, where there is no threshold.
 * With ESTIMATOR_CORRELATION x and y are where the template is found, var_x and
 * var_y what the same var (v) makes of the shift, to first order.
 * With ESTIMATOR_MATCHED the sums are of v with weights w, w_x and w_y from the
 * template in place of 1, u and y (shcentroid-filter.c): m00 is the flux of the
 * template times its brightness in the cell, background apart. The response is
 * exact at shifts of -1, 0 and 1 pixel in x and y. Threshold, weight and power
 * mean nothing to it. The weights have the @gain and @read_noise that
 * imk_shcentroid_new () was called with, and @estimator has to be this one
 * then. A cell whose template has no structure has no flux.
 *
 * With ESTIMATOR_PUPILS, I1 to I4 the pixels of a cell and N its flux, which is
 * their sum, or the mean of that over the valid cells:
 *   x = reference + (I1 + I2 - I3 - I4) / N
 *   y = reference + (I1 - I2 - I3 + I4) / N
 * The reference is by default the pixel of pupil image 1. Of the chain there is
 * nothing but look-up table, dark and flat. A cell with a bad pixel has no
 * flux.
 *
 * Where nothing but a threshold mode is asked for, the moments are exact
 * integers (also with a fractional T, which enters as m - T n). Else v is
 * float32 and the rest float64, added in an order that is the same everywhere
 * (arithmetic/float-centroid.h). So backends, and numbers of threads, agree bit
 * for bit. Correlation adds up float32 products in rows of float32, rows in
 * float64. Returns: IMK_ERROR_IMAGE, @out untouched; IMK_ERROR_DEVICE, @out
 * undefined */
IMK_API ImkStatus imk_shcentroid_process (ImkShcentroid *self,
    const ImkImage *in, ImkImage *out, void *stream, ImkError *error);

/**
 * imk_shcentroid_process_flags: (the same, in two precisions, and flags)
 * @out: as for imk_shcentroid_process (); f64 beside @rounded
 * @rounded: (nullable): f32 of the same shape: what imk_shcentroid_process ()
 *   writes into an f32 output
 * @flags: (nullable): u8 [1][cells]: with FIELDS_ALL the column of flags; else
 *   those of IMK_SHCENTROID_INVALID_MASK, as the others are not looked for. 0
 * is a valid cell whatever the fields */
IMK_API ImkStatus imk_shcentroid_process_flags (ImkShcentroid *self,
    const ImkImage *in, ImkImage *out, ImkImage *rounded, ImkImage *flags,
    void *stream, ImkError *error);

/* Forgets what is held and tracked: the next frame is the first.
 * @stream: as for imk_shcentroid_process. */
IMK_API ImkStatus imk_shcentroid_reset (
    ImkShcentroid *self, void *stream, ImkError *error);

/* @self may be NULL. Waits for the GPU. */
IMK_API void imk_shcentroid_free (ImkShcentroid *self);

#ifdef __cplusplus
}
#endif
