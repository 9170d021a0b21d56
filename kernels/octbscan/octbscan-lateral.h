/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Of which rows each A-scan of an image is made: correction of the scan, means
 * of neighbours and the lateral flip are one sparse matrix. */
#pragma once

#include "octbscan/octbscan-backend.h"

/* Returns: IMK_ERROR_CONFIG in the names of the properties */
ImkStatus imk_octbscan_lateral_check (
    const ImkOctbscanConfig *config, ImkError *error);

/* @config has been checked. */
ImkStatus imk_octbscan_lateral_new (const ImkOctbscanConfig *config,
    ImkOctbscanLateral **self, ImkError *error);

/* @self may be NULL. */
void imk_octbscan_lateral_free (ImkOctbscanLateral *self);
