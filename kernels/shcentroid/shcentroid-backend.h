/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between shcentroid.c, which validates and plans, and the backends. */
#pragma once

#include "core/filter-backend.h"
#include "imk/shcentroid.h"

/* What float64 may lose of a variance, a part of its sums about the corner of
 * the cell: 2^-51, four times what was found. */
#define IMK_SHCENTROID_ROUNDING 0x1p-51

#ifdef __cplusplus
extern "C" {
#endif

/* One cell, as the backends see it: inside the frame, never empty. */
typedef struct ImkShcentroidRect {
  uint16_t x, y, width, height;
  uint32_t flags; /* those known beforehand: IMK_SHCENTROID_CLIPPED */
  double ref_x, ref_y;
  double min_flux, threshold; /* NaN: the configured one */
} ImkShcentroidRect;

/* What a sample s becomes first: (s - dark) flat. A pixel whose flat is 0 is
 * bad: its dark is not a number, so that it takes part in nothing. */
typedef struct ImkShcentroidPixel {
  float dark, flat;
} ImkShcentroidPixel;

/* What is remembered of a cell under tracking; pixels, frames. */
typedef struct ImkShcentroidTrack {
  double x, y;
  uint32_t n_dark; /* invalid frames in a row */
} ImkShcentroidTrack;

/* Where a template lies in a cell. */
typedef struct ImkShcentroidAnchor {
  int32_t x, y;          /* its corner in the frame at shift 0 */
  double zero_x, zero_y; /* what is reported at shift 0 */
} ImkShcentroidAnchor;

/* Sums over a table of pixels, from its corner to before (column, row): of the
 * values and of their squares. */
typedef struct ImkShcentroidTotal {
  double sum, square;
} ImkShcentroidTotal;

/* What correlation looks for: @n templates of @width x @height pixels less
 * their mean, and of each the totals [height + 1][width + 1]. Taken from the
 * frame, they are not here, and @cell is where from. */
typedef struct ImkShcentroidTemplates {
  uint32_t n, width, height; /* n 0: there is nothing to look for */
  const float *pixels;       /* NULL: from the frame */
  const ImkShcentroidTotal *totals;
  uint32_t cell;
  const ImkShcentroidAnchor *anchors; /* of every cell */
} ImkShcentroidTemplates;

enum { IMK_SHCENTROID_FILTER_LANES = 32 };

/* Of the matched filter: @n_weights in all. Those of a cell begin at its @at: w
 * of its pixels row by row, with 0 up to whole lanes; then w_x, then w_y. */
typedef struct ImkShcentroidFilter {
  uint64_t n_weights; /* 0: there is none */
  const float *weights;
  const uint64_t *at;
} ImkShcentroidFilter;

/* The geometry. @rects holds @n_rects cells in the order of the output. When
 * @columns is not 0 they form a grid of @rows x @columns, in which all cells
 * of a row share y and height and touch from left to right. */
typedef struct ImkShcentroidPlan {
  uint32_t width, height;
  ImkType type;
  uint32_t columns, rows;
  uint32_t n_rects;
  const ImkShcentroidRect *rects; /* valid during create only, like the next */
  const ImkShcentroidPixel *pixels; /* width x height; NULL for none */
  const float *lut;                 /* of 256 or 65536 samples; NULL for none */
  ImkShcentroidTemplates templates; /* what it points to: during create only */
  ImkShcentroidFilter filter;       /* alike */
  const uint32_t *pupils; /* four pixels of each cell, alike; NULL for none */
  ImkShcentroidFields fields;
} ImkShcentroidPlan;

/* What may change from frame to frame; see ImkShcentroidConfig. */
typedef struct ImkShcentroidParams {
  ImkShcentroidThreshold threshold_mode;
  bool subtract;
  double unit;      /* counts of a threshold of 1: read noise, or 1 */
  double threshold; /* in counts; a fraction when RELATIVE or RANGE */
  double threshold_least;
  uint32_t brightest;
  ImkShcentroidWeighting weighting;
  double sigma; /* of the weight to the power */
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
  bool remove_tilt; /* never with FIELDS_XY */
  double min_flux, saturation, gain, read_noise;
  ImkShcentroidInvalid invalid_policy;
  double slope_scale;
  double min_illumination;
  ImkShcentroidNormalisation normalisation;
} ImkShcentroidParams;

/* Of an ImkShcentroidPlan and ImkShcentroidParams. */
extern const ImkFilterBackend imk_shcentroid_cpu;
extern const ImkFilterBackend imk_shcentroid_cuda;

#ifdef __cplusplus
}
#endif
