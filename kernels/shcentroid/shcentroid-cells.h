/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the cells of a configuration are. */
#pragma once

#include "shcentroid/shcentroid-backend.h"

/* A cell before it is clipped; floors, but not yet integers that fit. */
typedef struct ImkShcentroidBox {
  double left, top, right, bottom; /* right and bottom excluded */
} ImkShcentroidBox;

/* However many they are. */
uint64_t imk_shcentroid_count_cells (const ImkShcentroidConfig *config);

ImkShcentroidBox imk_shcentroid_grid_box (
    const ImkShcentroidConfig *config, uint32_t row, uint32_t column);
ImkShcentroidBox imk_shcentroid_cell_box (const ImkShcentroidCell *cell);

/* A cell as it would be without the edges of the frame, less the margin. */
ImkShcentroidBox imk_shcentroid_whole_cell (
    const ImkShcentroidConfig *config, uint32_t index);

/* A cell as it is; of no width or height where the margin leaves nothing. */
ImkShcentroidRect imk_shcentroid_cell_rect (
    const ImkShcentroidConfig *config, uint32_t index);
