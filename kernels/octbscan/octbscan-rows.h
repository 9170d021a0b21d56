/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where rows and depths are. Cameras take turns, so every n_cameras-th row of a
 * B-scan is of the same one. */
#pragma once

#include <math.h>

#include "octbscan/octbscan-level.h"

/* The rows of a camera: @n, from @first on, @step apart. */
typedef struct ImkOctbscanRows {
  uint32_t first, step, n;
} ImkOctbscanRows;

/* @first_camera: of row 0 */
IMK_OCTBSCAN_INLINE ImkOctbscanRows
imk_octbscan_rows_of (
    uint32_t camera, uint32_t n_cameras, uint32_t first_camera, uint32_t height)
{
  ImkOctbscanRows rows;

  rows.first = (camera + n_cameras - first_camera % n_cameras) % n_cameras;
  rows.step = n_cameras;
  rows.n = rows.first < height ? (height - rows.first - 1) / n_cameras + 1 : 0;
  return rows;
}

/* Whether an image has the last A-scan first. */
IMK_OCTBSCAN_INLINE bool
imk_octbscan_flips_lateral (const ImkOctbscanConfig *c)
{
  return c->flip == IMK_OCTBSCAN_FLIP_LATERAL ||
         c->flip == IMK_OCTBSCAN_FLIP_BOTH;
}

/* Whether it has the largest depth first. */
IMK_OCTBSCAN_INLINE bool
imk_octbscan_flips_depth (const ImkOctbscanConfig *c)
{
  return c->flip == IMK_OCTBSCAN_FLIP_DEPTH ||
         c->flip == IMK_OCTBSCAN_FLIP_BOTH;
}

/* How many segments the fixed pattern has of @n rows. */
IMK_OCTBSCAN_INLINE uint32_t
imk_octbscan_n_segments (const ImkOctbscanConfig *c, uint32_t n)
{
  return c->pattern_segments < n / 2 ? c->pattern_segments : n / 2;
}

/* Of @n Z with these means, and the mean of |Z|^2; infinite for fewer than two,
 * which are no segment. */
IMK_OCTBSCAN_INLINE double
imk_octbscan_variance (double re, double im, double squares, uint32_t n)
{
  return n > 1 ? squares - re * re - im * im : INFINITY;
}

/* The en-face projection, once @sum takes @v in. */
IMK_OCTBSCAN_INLINE double
imk_octbscan_project (ImkOctbscanProjection projection, double sum, double v)
{
  if (projection == IMK_OCTBSCAN_PROJECTION_MEAN)
    return sum + v;
  return v > sum ? v : sum;
}

IMK_OCTBSCAN_INLINE uint32_t
imk_octbscan_camera_of (uint32_t row, uint32_t n_cameras, uint32_t first_camera)
{
  return (row + first_camera % n_cameras) % n_cameras;
}
