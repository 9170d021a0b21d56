/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The definition of heights: the formulas of imk/normalintegrate.h in
 * float64, without transforms. The tests compare every backend with it. */
#pragma once

#include "imk/normalintegrate.h"

/**
 * imk_normalintegrate_reference: (heights from normals)
 * @in: as imk_normalintegrate_process () takes it, in host memory
 * @z: (out): [height][width] of mm above the lowest point, NaN without a
 *   normal. Poisson: what holes cut off from the rest has any level.
 *   Bilateral: after max_iterations rounds, whatever the tolerance
 *
 * Returns: false without memory, or without a solution in 100000 steps */
bool imk_normalintegrate_reference (
    const ImkNormalintegrateConfig *config, const ImkImage *in, double *z);
