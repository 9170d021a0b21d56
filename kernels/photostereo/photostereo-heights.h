/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Heights for the light vectors of lamps that are near: coarse, because a
 * vector turns by a degree when a pixel moves by a sixtieth of the distance of
 * the lamp. */
#pragma once

#include "imk/photostereo.h"

struct ImkPhotostereoPlan;

typedef struct ImkPhotostereoHeights {
  uint32_t width, height; /* of the picture */
  uint32_t block;         /* pixels a side */
  uint32_t columns, rows; /* of blocks */
  uint32_t step;          /* every which row of pixels is wanted */
  float *z;               /* [rows][columns], mm above the working plane */
  double *work;
  uint8_t *known;
} ImkPhotostereoHeights;

/* Returns: false without memory; to be cleared in any case */
bool imk_photostereo_heights_init (
    ImkPhotostereoHeights *self, uint32_t width, uint32_t height);
void imk_photostereo_heights_clear (ImkPhotostereoHeights *self);

/* A plane. */
void imk_photostereo_heights_reset (ImkPhotostereoHeights *self);

/* Integrates the slopes of @normals, [every step-th row][width][3], 0 where
 * there is none. A part of the picture that is surrounded by pixels without a
 * normal has its own mean, or lowest block, on the plane.
 *
 * Of a camera at D above the plane, a point is P = (s X, s Y, h) with s = 1 -
 * h / D, where its ray meets the plane at (X, Y). That n is perpendicular to
 * dP / dX and dP / dY gives for q = -D ln s: dq / dX = -n_x / w, dq / dY = -n_y
 * / w, w = n_z - (n_x X + n_y Y) / D. So q is integrated as heights are, and h
 * = D (1 - exp (-q / D)). */
void imk_photostereo_heights_integrate (ImkPhotostereoHeights *self,
    const float *normals, const struct ImkPhotostereoPlan *plan);

/* Of @n pixels from (@x, @y) on, between the middles of the blocks. */
void imk_photostereo_heights_of (const ImkPhotostereoHeights *self, uint32_t x,
    uint32_t y, uint32_t n, float *to);
