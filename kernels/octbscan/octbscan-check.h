/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Is a configuration one that can be planned? IMK_ERROR_CONFIG says why not, in
 * the names of the properties. */
#pragma once

#include "imk/octbscan.h"

/* All of it. */
ImkStatus imk_octbscan_check_config (
    const ImkOctbscanConfig *config, ImkError *error);

/* What may be changed by imk_octbscan_update. */
/* @live: (nullable): pairs of d2 and d3 */
ImkStatus imk_octbscan_check_live (
    const double *live, uint32_t n_cameras, ImkError *error);
ImkStatus imk_octbscan_check_range (
    const ImkOctbscanConfig *config, ImkError *error);

/* Before memory is asked for that the system promises and does not have. */
ImkStatus imk_octbscan_check_operators (
    const ImkOctbscanConfig *config, ImkError *error);
