/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What correlation looks for, checked and made ready for both backends. */
#pragma once

#include "shcentroid/shcentroid-backend.h"

/* A cell before it is clipped; floors, but not yet integers that fit. */
typedef struct ImkShcentroidBox {
  double left, top, right, bottom; /* right and bottom excluded */
} ImkShcentroidBox;

/* Whether the grid or map of @config lies in its frame. */
ImkStatus imk_shcentroid_check_cells (
    const ImkShcentroidConfig *config, ImkError *error);

/* A cell as it would be without the edges of the frame, less the margin. */
ImkShcentroidBox imk_shcentroid_whole_cell (
    const ImkShcentroidConfig *config, uint32_t index);

/* Returns: whether there is anything to look for */
bool imk_shcentroid_has_templates (const ImkShcentroidConfig *config);

/* The rest of @config has been checked. */
ImkStatus imk_shcentroid_check_templates (
    const ImkShcentroidConfig *config, ImkError *error);

/* Pixels less their mean, totals, and places in the cells; nothing where there
 * are no templates. Free with imk_shcentroid_templates_clear (), after an error
 * too. */
ImkStatus imk_shcentroid_templates_init (ImkShcentroidTemplates *templates,
    const ImkShcentroidConfig *config, ImkError *error);
void imk_shcentroid_templates_clear (ImkShcentroidTemplates *templates);
