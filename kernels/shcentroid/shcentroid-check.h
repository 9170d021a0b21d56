/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Is a configuration one that a backend can take? */
#pragma once

#include "shcentroid/shcentroid-backend.h"

/* Returns: as imk_config_read () */
const ImkShcentroidConfig *imk_shcentroid_read_config (
    const ImkShcentroidConfig *config, ImkShcentroidConfig *own,
    ImkError *error);

/* Whether the grid or map of @config lies in its frame. */
ImkStatus imk_shcentroid_check_cells (
    const ImkShcentroidConfig *config, ImkError *error);

/* What may change from frame to frame. */
ImkStatus imk_shcentroid_check_params (
    const ImkShcentroidConfig *config, ImkError *error);

/* Correlation needs something to look for. */
ImkStatus imk_shcentroid_check_has_templates (
    const ImkShcentroidConfig *config, bool has_templates, ImkError *error);

/* All of it. */
ImkStatus imk_shcentroid_check_config (
    const ImkShcentroidConfig *config, ImkError *error);
