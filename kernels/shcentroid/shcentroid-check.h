/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Is a configuration one that a backend can take, and what does it take? */
#pragma once

#include "shcentroid/shcentroid-backend.h"

/* Whether the grid or map of @config lies in its frame. */
ImkStatus imk_shcentroid_check_cells (
    const ImkShcentroidConfig *config, ImkError *error);

/* What may change from frame to frame. */
ImkStatus imk_shcentroid_check_params (
    const ImkShcentroidConfig *config, ImkError *error);

/* Whether there is what the estimator needs beside the frame. */
ImkStatus imk_shcentroid_check_has (const ImkShcentroidConfig *config,
    bool has_templates, bool has_filter, bool has_pupils, ImkError *error);

/* All of it. */
ImkStatus imk_shcentroid_check_config (
    const ImkShcentroidConfig *config, ImkError *error);

/* Of a configuration that has been checked, for an object with @fields. */
ImkShcentroidParams imk_shcentroid_params (
    const ImkShcentroidConfig *config, ImkShcentroidFields fields);
