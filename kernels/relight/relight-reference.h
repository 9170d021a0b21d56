/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The definition of a pixel: the formula of imk/relight.h in float64. The tests
 * compare every backend with it. */
#pragma once

#include "imk/relight.h"

/* @normals, @albedo: as imk_relight_process () takes them, in host memory
 * Returns: red, green or blue (@colour 0..2) of pixel (@x, @y), 0..255, before
 *   it is rounded */
double imk_relight_reference (const ImkRelightConfig *config,
    const ImkRelightSource *normals, const ImkRelightSource *albedo, uint32_t x,
    uint32_t y, uint32_t colour);
