/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether the cells of a configuration are where the lenslets are. */
#pragma once

#include "imk/shcentroid-grid.h"
#include "imk/shcentroid.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * ImkShcentroidFit: (the cells beside the lattice that a frame shows)
 * @is_off: the cells do not fit
 * @n_spots: found spots whose lattice points are in a cell
 * @n_misplaced: those of them whose point is farther than 0.35 of the side of
 *   its cell from the middle, in x or in y, or in one cell with another point
 * @cell_width, @cell_height: of the first cell that is whole, pixels
 * @grid: what was found, without the spots
 *
 * Cells are off if a quarter of the points are misplaced, or if those of a grid
 * (not of a map, which may leave gaps) are smaller than 1 / 1.3 of the lattice.
 */
typedef struct ImkShcentroidFit {
  bool is_off;
  uint32_t n_spots, n_misplaced;
  double cell_width, cell_height;
  ImkShcentroidGrid grid;
} ImkShcentroidFit;

/**
 * imk_shcentroid_check_fit: (compares the cells with the lattice of a frame)
 * @config: one that imk_shcentroid_new took, with its cells
 * @frame: as for imk_shcentroid_process, in host memory
 * @fit: (out)
 *
 * Takes as long as imk_shcentroid_find_grid() of a frame in which a cell has 12
 * to 24 pixels a side. Without a lattice that nearly all strong spots lie on,
 * @is_off is false.
 * Returns: IMK_ERROR_CONFIG, IMK_ERROR_IMAGE, IMK_ERROR_MEMORY; @fit untouched
 */
IMK_API ImkStatus imk_shcentroid_check_fit (const ImkShcentroidConfig *config,
    const ImkImage *frame, ImkShcentroidFit *fit, ImkError *error);

#ifdef __cplusplus
}
#endif
