/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether a plane is enough for measured offsets: what is left of them should
 * be noise, not a hill. */
#pragma once

#include <stdbool.h>

#include "imk/insarxcorr-fit.h"

IMK_BEGIN_DECLS

/**
 * ImkInsarxcorrMisfit: (what the plane of a fit leaves of the offsets of one
 * axis)
 * @rms: of the medians of the residuals in cells, weighted by their points
 * @noise: what it would be if residuals did not depend on each other
 * @worst: the median that is furthest from 0; the cell at (@worst_x, @worst_y)
 *   has it. All in pixels
 * @is_local: a cell is far from the fit: by 0.25 pixel and three times the
 *   scatter of all residuals
 * @is_wide: many are: @rms is above 0.12 pixel and twice the @noise */
typedef struct ImkInsarxcorrMisfit {
  double rms, noise, worst, worst_x, worst_y;
  bool is_local, is_wide;
} ImkInsarxcorrMisfit;

/**
 * imk_insarxcorr_misfit: (measures both axes)
 * @points: those of the @fit
 *
 * Points are sorted into up to 16 x 16 cells over their extent, of about six
 * points each. Medians leave single wrong offsets out; cells of fewer than four
 * points, and those whose points scatter by more than half a pixel, do not
 * count.
 * Returns: IMK_ERROR_MEMORY, @range and @azimuth untouched */
IMK_API ImkStatus imk_insarxcorr_misfit (const ImkInsarxcorrPoint *points,
    size_t n_points, const ImkInsarxcorrFit *fit, ImkInsarxcorrMisfit *range,
    ImkInsarxcorrMisfit *azimuth, ImkError *error);

IMK_END_DECLS
