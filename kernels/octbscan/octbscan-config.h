/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The configuration: its defaults, the caller's version of it, the sizes that
 * follow from it, and whether it can be planned. */
#pragma once

#include "core/config.h"
#include "octbscan/octbscan-backend.h"

/* --- octbscan-config.c */

/* Copies what imk_octbscan_update () takes, but for the dispersion. */
void imk_octbscan_take_live (
    ImkOctbscanConfig *to, const ImkOctbscanConfig *from);

/* --- octbscan-check.c: IMK_ERROR_CONFIG says why not, in the names of the
 * properties */

/* Reads @given into @config, and checks all of it. */
ImkStatus imk_octbscan_take_config (
    const ImkOctbscanConfig *given, ImkOctbscanConfig *config, ImkError *error);

/* What may be changed by imk_octbscan_update.
 * @live: (nullable): pairs of d2 and d3 */
ImkStatus imk_octbscan_check_live (
    const double *live, uint32_t n_cameras, ImkError *error);
ImkStatus imk_octbscan_check_range (
    const ImkOctbscanConfig *config, ImkError *error);

/* Before memory is asked for that the system promises and does not have. */
ImkStatus imk_octbscan_check_operators (
    const ImkOctbscanConfig *config, ImkError *error);
