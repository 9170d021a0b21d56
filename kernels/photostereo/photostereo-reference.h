/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The definition of a normal, in float64: the light vector at a pixel, and the
 * robust solution with its rounds. The tests compare every backend with it. */
#pragma once

#include <stdbool.h>

#include "imk/photostereo.h"

enum { IMK_PHOTOSTEREO_REFERENCE_MAX_LIGHTS = 512 };

/* @v: (out): the vector of light @i at pixel (@x, @y), @h mm above the working
 * plane, as imk/photostereo.h defines it */
void imk_photostereo_reference_light (const ImkPhotostereoConfig *config,
    uint32_t i, double x, double y, double h, double v[3]);

/**
 * imk_photostereo_reference: (solves one pixel)
 * @l, @g: @n light vectors and grey values; 1 is full scale, where a sample is
 *   clipped
 * @unit: what a room light of 1 adds to the grey value under each light, 1 /
 *   intensity; NULL without room light
 * @t: the thresholds t-min, t-max, t-res
 * @x: (out): albedo times normal, and the light of the room, 0 without
 * @tie: (out): a value was so near to a threshold that float32 may decide
 *   otherwise
 *
 * Returns: lights used, 0 for invalid */
uint32_t imk_photostereo_reference (const ImkPhotostereoConfig *config,
    uint32_t n, double (*l)[3], const double *g, const double *unit,
    const double t[3], double x[4], bool *tie);
