/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is taken off heights before they are written: a fitted surface, and what
 * points of known height say. */
#pragma once

#include <stdbool.h>

#include "normalintegrate/normalintegrate-backend.h"

/* As the configuration has them. */
typedef struct ImkNormalintegrateCorrection {
  ImkNormalintegrateFlatten flatten;
  uint32_t n_points;
  ImkNormalintegratePoint points[IMK_NORMALINTEGRATE_MAX_POINTS];
} ImkNormalintegrateCorrection;

/* Returns: IMK_ERROR_CONFIG */
ImkStatus imk_normalintegrate_check_correction (
    const ImkNormalintegrateConfig *c, const ImkNormalintegratePlan *plan,
    ImkError *error);

/* Completes @scale with the surface to take off the heights of @state.
 * @scale: lowest, mm and focal are set
 *
 * Returns: IMK_ERROR_IMAGE for a point that has no height; IMK_ERROR_MEMORY;
 *   what the backend said */
ImkStatus imk_normalintegrate_correct (const ImkNormalintegrateCorrection *c,
    const ImkNormalintegratePlan *plan,
    const ImkNormalintegrateBackend *backend, void *state,
    ImkNormalintegrateScale *scale, ImkNormalintegrateSummary *summary,
    void *stream, ImkError *error);
