/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How sharp each tile of a frame is. On the CPU; a frame on a GPU is downloaded
 * by the caller.
 *
 * v is a sample, i counts the samples of a tile, of all measured channels.
 * Samples outside the frame have the value of the nearest one inside.
 *
 *   variance  = mean L^2 - (mean L)^2, L = 4 v - the neighbours at its
 *               sides
 *               J. L. Pech-Pacheco et al., "Diatom autofocusing in brightfield
 *               microscopy" (2000)
 *   tenengrad = mean (Gx^2 + Gy^2), G from the Sobel operators
 *               E. Krotkov, "Focusing" (1987), after J. M. Tenenbaum (1970),
 *               here without his threshold
 *   brenner   = mean (v (x + 2, y) - v (x, y))^2
 *               J. F. Brenner et al., "An automated microscope for cytologic
 *               research" (1976)
 *
 * All sums are exact, so no result depends on the number of threads. Those of
 * f32 are float64 in the order of the samples; samples with a measure that is
 * not finite do not count, and a tile of such samples alone is 0. */
#pragma once

#include <stdint.h>

#include "imk/backend.h"
#include "imk/image.h"
#include "imk/lapsharpen.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In counts^2; an array of them is one of 3 numbers a tile. */
typedef struct ImkLapsharpenTile {
  double variance, tenengrad, brenner;
} ImkLapsharpenTile;

#define IMK_LAPSHARPEN_MAX_TILES 64u /* along a side */

/**
 * imk_lapsharpen_measure_tiles:
 * @in: u8, u16 or f32, in host memory, as imk_lapsharpen_process () takes it
 * @storage: of its samples
 * @shift: unused low bits of a sample, 0 of f32
 * @channel_mask: bit c: channel c is measured
 * @columns, @rows: of tiles; tile (c, r) has the columns c W / columns to
 *   (c + 1) W / columns, and the rows likewise
 * @n_threads: 0 for one a processor
 * @tiles: (out): [rows][columns]
 *
 * Returns: IMK_ERROR_CONFIG for more tiles than pixels along a side, or than
 *   IMK_LAPSHARPEN_MAX_TILES; IMK_ERROR_MEMORY */
IMK_API ImkStatus imk_lapsharpen_measure_tiles (const ImkImage *in,
    ImkLapsharpenStorage storage, uint32_t shift, uint32_t channel_mask,
    uint32_t columns, uint32_t rows, uint32_t n_threads,
    ImkLapsharpenTile *tiles, ImkError *error);

#ifdef __cplusplus
}
#endif
