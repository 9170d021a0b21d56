/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From slopes of a Shack-Hartmann sensor to the wavefront, by the lenslet grid
 * alone: no mirror and no interaction matrix is needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "imk/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IMK_SHWAVEFRONT_MAX_SIDE 512
#define IMK_SHWAVEFRONT_MAX_MODES 1000

typedef enum ImkShwavefrontMethod {
  IMK_SHWAVEFRONT_SOUTHWELL, /* a point in the middle of each cell: two
                              * neighbours differ by the mean of their slopes */
  IMK_SHWAVEFRONT_FRIED,     /* a point at each corner of a cell: the slope is
                              * the mean difference of its corners */
  IMK_SHWAVEFRONT_ZERNIKE,   /* Zernike modes, a point in the middle of each
                              * cell; slopes are means over its square */
} ImkShwavefrontMethod;

/**
 * ImkShwavefrontConfig: (the grid and the method)
 * @size: set by imk_shwavefront_config_init, see imk/api.h
 * @n_cells: cells of the sensor, each in a place of its own
 * @row_column: [n_cells][2]: row and column of each cell, below
 *   IMK_SHWAVEFRONT_MAX_SIDE
 * @method: see the enumeration
 * @n_modes: of IMK_SHWAVEFRONT_ZERNIKE: modes 2 to @n_modes + 1 of Noll, 1 to
 *   IMK_SHWAVEFRONT_MAX_MODES; fewer where the cells tell fewer, see
 *   imk_shwavefront_n_modes
 * @scale: wavefront across a cell for a slope of 1, finite and not 0
 *
 * @row_column belongs to the caller. */
typedef struct ImkShwavefrontConfig {
  size_t size;
  uint32_t n_cells;
  const uint32_t *row_column;
  ImkShwavefrontMethod method;
  uint32_t n_modes;
  double scale;
} ImkShwavefrontConfig;

typedef struct ImkShwavefrontReport {
  uint32_t n_points;            /* that have a value */
  double rms, minimum, maximum; /* of these; their mean is 0 */
} ImkShwavefrontReport;

typedef struct ImkShwavefront ImkShwavefront;

/* Southwell, 20 modes, scale 1. */
IMK_API void imk_shwavefront_config_init_sized (
    ImkShwavefrontConfig *config, size_t size);
static inline void
imk_shwavefront_config_init (ImkShwavefrontConfig *config)
{
  imk_shwavefront_config_init_sized (config, sizeof (*config));
}

/* Returns: IMK_ERROR_CONFIG, IMK_ERROR_MEMORY; @self untouched */
IMK_API ImkStatus imk_shwavefront_new (
    const ImkShwavefrontConfig *config, ImkShwavefront **self, ImkError *error);

/* Columns and rows of the picture: of the smallest rectangle of cells, of FRIED
 * one more of both. */
IMK_API void imk_shwavefront_shape (
    const ImkShwavefront *self, uint32_t *width, uint32_t *height);

/**
 * imk_shwavefront_process: (one frame)
 * @slopes: [2][n_cells]: all dx, then all dy
 * @flags: (nullable): [n_cells] of shcentroid; a cell is invalid if flags & 227
 *   is not 0, or if one of its slopes is not finite
 * @wavefront: (out): [height][width]; NaN where there is no value. A spot that
 *   moves to the right has a wavefront that grows to the right
 * @report: (out)
 *
 * The least-squares wavefront of the valid cells, in float64, with a mean of 0.
 * Of several that fit equally well (pieces that touch nowhere; the waffle of
 * FRIED; modes that too few cells see) it is the smallest one. A cell that is
 * invalid has no point; a corner has one if a cell at it is valid.
 *
 * Another set of valid cells than that of the frame before costs a
 * factorization: n_points w^2 multiplications, with w = width + 1, or the
 * number of modes; else a frame costs 2 n_points w.
 * Source: Southwell 1980, JOSA 70, 998; Fried 1977, JOSA 67, 370; Noll 1976,
 * JOSA 66, 207. */
IMK_API void imk_shwavefront_process (ImkShwavefront *self, const float *slopes,
    const uint8_t *flags, float *wavefront, ImkShwavefrontReport *report);

/* Returns: (transfer none): of ZERNIKE the modes 2, 3, ... of the last frame,
 * rms over the circle; NULL of others */
IMK_API const double *imk_shwavefront_modes (const ImkShwavefront *self);

/* Of ZERNIKE the modes that are used, 0 of others. The first mode whose slopes
 * have less than 3 % that no sum of lower modes has, and all after it, are left
 * out: they would hide in the lower ones. */
IMK_API uint32_t imk_shwavefront_n_modes (const ImkShwavefront *self);

/* @self may be NULL. */
IMK_API void imk_shwavefront_free (ImkShwavefront *self);

#ifdef __cplusplus
}
#endif
